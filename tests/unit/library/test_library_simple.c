// SPDX-License-Identifier: Apache-2.0
//
// library: the entries of one short launch, of every size, with what is awkward
// and on a picture, beside plain C: the same bits.
#include "library_plain.h"
#include "library_real.h"

enum { F32 = KILN_PROGRAM_TYPE_F32 };

// Bits as plain C has them, any NaN being like another.
static void same_floats(const char* what, const float* have, const float* want,
                        uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t a = typed_bits(F32, have, i), b = typed_bits(F32, want, i);
    if (values_same(F32, a, b, false)) continue;
    fail_msg("%s of %llu: element %llu is %llx, should be %llx", what,
             (unsigned long long)count, (unsigned long long)i,
             (unsigned long long)a, (unsigned long long)b);
  }
}

// ---- Lists ----

// One of each. one-thread
typedef struct lists_t {
  dispatch_kit_t kit;
  kiln_library_plan_t* map;
  kiln_library_plan_t* saxpy;
  kiln_library_plan_t* reduce;
} lists_t;

static void open_lists(lists_t* l) {
  dispatch_kit_open(&l->kit);
  l->map = kit_plan(&l->kit, "map", NULL);
  l->saxpy = kit_plan(&l->kit, "saxpy", NULL);
  l->reduce = kit_plan(&l->kit, "reduce", NULL);
}

static void close_lists(lists_t* l) {
  kiln_library_plan_release(l->map);
  kiln_library_plan_release(l->saxpy);
  kiln_library_plan_release(l->reduce);
  dispatch_kit_close(&l->kit);
}

static void check_lists(lists_t* l, const float* x, const float* y,
                        uint32_t count) {
  uint32_t parts = (count + 4095) / 4096;
  uint64_t bytes = count * UINT64_C(4);
  float* want = kit_zeroes(count, 4);
  float* have = kit_zeroes(count, 4);
  const kit_argument_t mapped[] = {{x, NULL, bytes}, {NULL, have, bytes}};
  kit_run(&l->kit, l->map, mapped, 2, NULL, 0);
  plain_map(x, want, count);
  same_floats("map", have, want, count);
  kiln_resident_t there[] = {dispatch_kit_resident(&l->kit, bytes, x),
                             dispatch_kit_resident(&l->kit, bytes, y)};
  const kiln_binding_t bindings[] = {kiln_bind_f32(-1.7f),
                                     kiln_bind_resident(there[0]),
                                     kiln_bind_resident(there[1])};
  assert_null(kiln_library_plan_run(l->saxpy, NULL, bindings, 3));
  dispatch_kit_fetch(&l->kit, there[1], bytes, have);
  memcpy(want, y, (size_t)bytes);
  plain_saxpy(-1.7f, x, want, count);
  same_floats("saxpy", have, want, count);
  for (int i = 0; i < 2; i++) {
    assert_null(kiln_resident_free(l->kit.dispatcher, there[i]));
  }
  const kit_argument_t sums[] = {{x, NULL, bytes},
                                 {NULL, have, parts * UINT64_C(4)}};
  kit_run(&l->kit, l->reduce, sums, 2, NULL, 0);
  plain_reduce(x, count, want);
  same_floats("reduce", have, want, parts);
  free(want);
  free(have);
}

static void test_lists(void** state) {
  (void)state;
  lists_t l;
  open_lists(&l);
  for (uint32_t s = 0; s < SIZES * VALUES_FORMS; s++) {
    uint32_t count = kSizes[s / VALUES_FORMS];
    values_form_t form = (values_form_t)(s % VALUES_FORMS);
    // Of many elements those that differ from each other are enough.
    if (count > 2000 && form > VALUES_AWKWARD) continue;
    float* x = values_make(F32, form, count, s);
    float* y = values_make(F32, form, count, s + 1);
    check_lists(&l, x, y, count);
    free(x);
    free(y);
  }
  // Rounded, and none of it infinite.
  for (uint32_t s = 0; s < SIZES; s++) {
    float* x = typed_numbers(F32, kSizes[s], 3, false);
    float* y = typed_numbers(F32, kSizes[s], 4, false);
    check_lists(&l, x, y, kSizes[s]);
    free(x);
    free(y);
  }
  close_lists(&l);
}

// The light of a picture, its negative, and how light each 4,096 pixels are.
static void test_light(void** state) {
  (void)state;
  real_picture_t p;
  lists_t l;
  real_picture_open(&p);
  open_lists(&l);
  uint32_t n = p.w * p.h;
  float* other = kit_zeroes(n, 4);
  for (uint32_t i = 0; i < n; i++) {
    other[i] = (float)(255 - p.gray[i]) / 255;
    p.floats[i] /= 255;
  }
  check_lists(&l, p.floats, other, n);
  free(other);
  close_lists(&l);
  real_picture_close(&p);
}

// Sums of every type, which wrap or are exact.
static void test_sums(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < 2 * NUMBER_TYPES * SIZES; k++) {
    uint32_t type = kNumberTypes[k / 2 / SIZES], count = kSizes[k / 2 % SIZES];
    uint64_t bytes = program_type_bytes((uint8_t)type);
    uint32_t parts = (count + 4095) / 4096;
    void* x = values_exact(type, count, k, k % 2 == 1);
    void* have = kit_zeroes(parts, (size_t)bytes);
    const kit_argument_t arguments[] = {{x, NULL, count * bytes},
                                        {NULL, have, parts * bytes}};
    kiln_library_plan_t* plan = real_plan(&kit, "reduce", type, 0);
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    kiln_library_plan_release(plan);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
      sum = values_join(type, KILN_LIBRARY_ADD, sum, typed_bits(type, x, i));
      if (i % 4096 != 4095 && i + 1 < count) continue;
      if (!values_same(type, typed_bits(type, have, i / 4096), sum, true)) {
        fail_msg("%u of %s: sum %u", count, kiln_program_type_name(type),
                 i / 4096);
      }
      sum = 0;
    }
    free(x);
    free(have);
  }
  dispatch_kit_close(&kit);
}

// ---- Pictures ----

// A picture from another one of as many bytes, or from nothing.
static void turn(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                 const uint8_t* x, uint64_t count, const uint32_t scalars[3],
                 const uint8_t* want) {
  kiln_library_plan_info_t info;
  kiln_library_plan_info(plan, &info);
  uint8_t* have = kit_zeroes(count, 1);
  const kit_argument_t arguments[] = {{x, NULL, count}, {NULL, have, count}};
  const kiln_binding_t bindings[] = {kiln_bind_u32(scalars[0]),
                                     kiln_bind_u32(scalars[1]),
                                     kiln_bind_u32(scalars[2])};
  bool is_made = info.parameter_count == 4;  // from nothing
  kit_run(kit, plan, is_made ? arguments + 1 : arguments, is_made ? 1 : 2,
          bindings, 3);
  for (uint64_t i = 0; i < count; i++) {
    if (have[i] == want[i]) continue;
    fail_msg("%s of %u x %u, %u: byte %llu is %u, should be %u", info.name,
             scalars[0], scalars[1], scalars[2], (unsigned long long)i, have[i],
             want[i]);
  }
  free(have);
}

// How a picture's bytes are. one-thread
typedef enum look_t { LOOK_ANY, LOOK_DARK, LOOK_LIGHT, LOOK_BOTH } look_t;

static uint8_t* make_bytes(uint64_t count, look_t look) {
  uint8_t* x = kit_zeroes(count, 1);
  uint64_t seed = count;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    x[i] = (uint8_t)(look == LOOK_ANY     ? bits
                     : look == LOOK_DARK  ? 0
                     : look == LOOK_LIGHT ? 255
                     : i % 2 == 0         ? 255
                                          : 0);
  }
  return x;
}

// Of every width and height, a few pixels in the other direction.
static void test_blur(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "blur", NULL);
  for (uint32_t s = 0; s < 2 * SIZES; s++) {
    uint32_t size = kSizes[s / 2], few = s % 3 + 1;
    const uint32_t scalars[] = {s % 2 == 0 ? size : few,
                                s % 2 == 0 ? few : size, s % 4 + 1};
    uint64_t count = (uint64_t)size * few * scalars[2];
    uint8_t* x = make_bytes(count, (look_t)(s / 2 % 4));
    uint8_t* want = kit_zeroes(count, 1);
    plain_blur(x, want, (int)scalars[0], (int)scalars[1], (int)scalars[2]);
    turn(&kit, plan, x, count, scalars, want);
    free(x);
    free(want);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void test_life(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "life", NULL);
  for (uint32_t s = 0; s < 2 * SIZES; s++) {
    uint32_t size = kSizes[s / 2], few = s % 3 + 1;
    const uint32_t scalars[] = {s % 2 == 0 ? size : few,
                                s % 2 == 0 ? few : size,
                                size < 2000 ? s % 5 * 4 : 1};
    uint64_t count = (uint64_t)size * few;
    uint8_t* x = make_bytes(count, (look_t)(s / 2 % 4));
    uint8_t* want = kit_zeroes(count, 1);
    plain_life(x, want, scalars[0], scalars[1], scalars[2]);
    turn(&kit, plan, x, count, scalars, want);
    free(x);
    free(want);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void test_mandelbrot(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "mandelbrot", NULL);
  // Behind the sizes the picture that everybody knows.
  for (uint32_t s = 0; s < 2 * SIZES + 1; s++) {
    uint32_t size = s < 2 * SIZES ? kSizes[s / 2] : 451 / KIT_LESS;
    uint32_t other = s < 2 * SIZES ? s % 3 + 1 : 300 / KIT_LESS;
    const uint32_t scalars[] = {s % 2 == 0 ? size : other,
                                s % 2 == 0 ? other : size, 100};
    uint64_t count = (uint64_t)size * other * 3;
    uint8_t* want = kit_zeroes(count, 1);
    plain_mandelbrot(want, scalars[0], scalars[1], scalars[2]);
    turn(&kit, plan, NULL, count, scalars, want);
    free(want);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A photograph made soft, and its light parts as cells that live.
static void test_photograph(void** state) {
  (void)state;
  real_picture_t p;
  real_picture_open(&p);
  uint32_t n = p.w * p.h, alive = 0;
  uint8_t* want = kit_zeroes(n, 3);
  const uint32_t of_blur[] = {p.w, p.h, 3};
  kiln_library_plan_t* plan = kit_plan(&p.kit, "blur", NULL);
  plain_blur(p.colours, want, (int)p.w, (int)p.h, 3);
  turn(&p.kit, plan, p.colours, n * UINT64_C(3), of_blur, want);
  kiln_library_plan_release(plan);
  plan = kit_plan(&p.kit, "life", NULL);
  for (uint32_t i = 0; i < n; i++) {
    p.gray[i] = p.gray[i] & 16;
    alive += p.gray[i] != 0;
  }
  assert_true(alive > n / 8 && alive < n);
  // `real_picture_close` frees what `p` holds.
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
  for (uint32_t generations = 1; generations <= 16; generations += 15) {
    const uint32_t of_life[] = {p.w, p.h, generations};
    plain_life(p.gray, want, p.w, p.h, generations);
    turn(&p.kit, plan, p.gray, n, of_life, want);
  }
  kiln_library_plan_release(plan);
  free(want);
  real_picture_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists),      cmocka_unit_test(test_light),
      cmocka_unit_test(test_sums),       cmocka_unit_test(test_blur),
      cmocka_unit_test(test_life),       cmocka_unit_test(test_mandelbrot),
      cmocka_unit_test(test_photograph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
