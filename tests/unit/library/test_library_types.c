// SPDX-License-Identifier: Apache-2.0
//
// library: every entry that takes any type of numbers, on all of them, with
// what is awkward in each, beside plain C.
#include "library_values.h"

static const char* name_of(uint32_t type) {
  return kiln_program_type_name(type);
}

static uint32_t bytes_of(uint32_t type) {
  return program_type_bytes((uint8_t)type);
}

static void same_all(const char* what, uint32_t type, const void* have,
                     const void* want, uint64_t count, bool zeroes) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t a = typed_bits(type, have, i), b = typed_bits(type, want, i);
    if (values_same(type, a, b, zeroes)) continue;
    fail_msg("%s of %s: element %llu of %llu is %llx, should be %llx", what,
             name_of(type), (unsigned long long)i, (unsigned long long)count,
             (unsigned long long)a, (unsigned long long)b);
  }
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, const char* name,
                                    uint32_t type, uint32_t operation) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.operation = operation;
  bool counts = strcmp(name, "segments") != 0 && strcmp(name, "gather") != 0 &&
                strcmp(name, "scatter") != 0 && strcmp(name, "transpose") != 0;
  options.count = counts ? kSizes[SIZES - 1] : 0;
  return kit_plan(kit, name, &options);
}

// ---- Joined ----

static uint64_t joined(uint32_t type, uint32_t operation, const void* x,
                       uint64_t from, uint64_t to) {
  uint64_t value = from < to ? typed_bits(type, x, from) : 0;
  for (uint64_t i = from + 1; i < to; i++) {
    value = values_join(type, operation, value, typed_bits(type, x, i));
  }
  return value;
}

// Of sums only what is exact, of the least and the greatest any bits.
static void* joinable(uint32_t type, uint32_t operation, uint32_t count,
                      uint32_t turn) {
  if (operation == KILN_LIBRARY_ADD) {
    return values_exact(type, count, count + turn, turn % 2 == 1);
  }
  return values_make(type, turn % 2 == 1 ? VALUES_AWKWARD : VALUES_ANY, count,
                     count + turn);
}

static void fold(dispatch_kit_t* kit, kiln_library_plan_t* plan, uint32_t type,
                 uint32_t operation, uint32_t count, uint32_t turn) {
  void* x = joinable(type, operation, count, turn);
  uint64_t have = 0, want = joined(type, operation, x, 0, count);
  const kit_argument_t arguments[] = {
      {x, NULL, (uint64_t)count * bytes_of(type)},
      {NULL, &have, bytes_of(type)}};
  kit_run(kit, plan, arguments, 2, NULL, 0);
  same_all(operation == 0   ? "the sum"
           : operation == 1 ? "the least"
                            : "the top",
           type, &have, &want, 1, operation == KILN_LIBRARY_ADD);
  free(x);
}

static void test_fold(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < NUMBER_TYPES * 3; k++) {
    uint32_t type = kNumberTypes[k / 3];
    kiln_library_plan_t* plan = plan_of(&kit, "fold", type, k % 3);
    for (uint32_t s = 0; s < SIZES * 2; s++) {
      fold(&kit, plan, type, k % 3, kSizes[s / 2], s % 2);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

static void segments(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     uint32_t type, uint32_t operation, uint32_t count,
                     uint32_t turn) {
  uint32_t* starts = kit_zeroes(count + 2, 4);
  uint64_t seed = count + turn;
  uint32_t n = 0;
  for (; starts[n] < count; n++) {
    uint32_t size = (uint32_t)(kit_next(&seed) % (turn < 2 ? 9 : 700)) + n % 2;
    starts[n + 1] = starts[n] + size < count ? starts[n] + size : count;
    if (n == count) starts[n + 1] = count;
  }
  void* x = joinable(type, operation, count, turn);
  void* want = kit_zeroes(n, bytes_of(type));
  void* have = kit_zeroes(n, bytes_of(type));
  for (uint32_t i = 0; i < n; i++) {
    values_set(type, want, i,
               joined(type, operation, x, starts[i], starts[i + 1]));
  }
  const kit_argument_t arguments[] = {
      {x, NULL, (uint64_t)count * bytes_of(type)},
      {starts, NULL, (n + 1) * UINT64_C(4)},
      {NULL, have, (uint64_t)n * bytes_of(type)}};
  kit_run(kit, plan, arguments, 3, NULL, 0);
  same_all("segments", type, have, want, n, operation == KILN_LIBRARY_ADD);
  free(starts);
  free(x);
  free(want);
  free(have);
}

static void test_segments(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < NUMBER_TYPES * 3; k++) {
    uint32_t type = kNumberTypes[k / 3];
    kiln_library_plan_t* plan = plan_of(&kit, "segments", type, k % 3);
    for (uint32_t s = 0; s < SIZES * 4; s++) {
      segments(&kit, plan, type, k % 3, kSizes[s / 4], s % 4);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// ---- Running sums ----

// Heads, where there are any: what stands in front of one is nothing to it, an
// infinity and a NaN as well.
static void scan(dispatch_kit_t* kit, kiln_library_plan_t* plan, uint32_t type,
                 bool exclusive, uint32_t count, uint32_t one_in) {
  uint64_t size = (uint64_t)count * bytes_of(type), seed = count;
  void* x = values_exact(type, count, count + one_in, count % 2 == 1);
  void* want = kit_zeroes(count, bytes_of(type));
  void* have = kit_zeroes(count, bytes_of(type));
  uint8_t* heads = kit_zeroes(count, 1);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    heads[i] =
        one_in != 0 && bits % one_in == 0 ? (uint8_t)(bits >> 57 | 1) : 0;
    if (heads[i] != 0) sum = 0;
    uint64_t next =
        values_join(type, KILN_LIBRARY_ADD, sum, typed_bits(type, x, i));
    values_set(type, want, i, exclusive ? sum : next);
    sum = next;
  }
  const kit_argument_t arguments[] = {
      {x, NULL, size}, {heads, NULL, count}, {NULL, have, size}};
  const kit_argument_t whole[] = {arguments[0], arguments[2]};
  kit_run(kit, plan, one_in == 0 ? whole : arguments, one_in == 0 ? 2 : 3, NULL,
          0);
  same_all(one_in == 0 ? "scan" : "scan of segments", type, have, want, count,
           true);
  free(x);
  free(want);
  free(have);
  free(heads);
}

static void test_scans(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < WIDE_TYPES * 4; k++) {
    uint32_t type = kWideTypes[k / 4];
    kiln_library_options_t options = kiln_library_options_default();
    options.type = type;
    options.exclusive = k % 2 == 1 ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
    options.count = kSizes[SIZES - 1];
    bool whole = k % 4 < 2;
    kiln_library_plan_t* plan =
        kit_plan(&kit, whole ? "scan" : "scan_segments", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      scan(&kit, plan, type, k % 2 == 1, kSizes[s], whole ? 0 : 20);
      scan(&kit, plan, type, k % 2 == 1, kSizes[s], whole ? 0 : 3000);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// ---- Moved ----

// Kept elements in their order; the rest, where it is wanted, from the end on.
// One in `one_in` is kept; 0: none.
static void compact(dispatch_kit_t* kit, kiln_library_plan_t* plan, bool rest,
                    uint32_t type, uint32_t count, uint32_t one_in) {
  uint64_t size = (uint64_t)count * bytes_of(type), seed = count;
  void* x = values_make(type, VALUES_AWKWARD, count, count);
  uint8_t* keep = kit_zeroes(count, 1);
  void* want = kit_zeroes(count, bytes_of(type));
  void* have = kit_zeroes(count, bytes_of(type));
  uint32_t kept = 0, others = 0, told = 1;
  memset(want, 0xa5, (size_t)size);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    keep[i] =
        one_in != 0 && bits % one_in == 0 ? (uint8_t)(bits >> 56 | 128) : 0;
    uint64_t value = typed_bits(type, x, i);
    if (keep[i] != 0) values_set(type, want, kept++, value);
    if (keep[i] == 0 && rest) {
      values_set(type, want, count - 1 - others++, value);
    }
  }
  const kit_argument_t arguments[] = {{x, NULL, size},
                                      {keep, NULL, count},
                                      {NULL, have, size},
                                      {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  assert_int_equal(told, kept);
  same_all(rest ? "partition" : "compact", type, have, want, count, false);
  free(x);
  free(keep);
  free(want);
  free(have);
}

// As C compares: a NaN begins a run by itself, -0 does not differ from 0.
static void unique(dispatch_kit_t* kit, kiln_library_plan_t* plan, bool lengths,
                   uint32_t type, uint32_t count, values_form_t form) {
  uint64_t size = (uint64_t)count * bytes_of(type);
  void* x = values_make(type, form, count, count);
  void* values = kit_zeroes(count, bytes_of(type));
  void* want = kit_zeroes(count, bytes_of(type));
  uint32_t* have = kit_zeroes(count, 4);
  uint32_t* places = kit_zeroes(count + 1, 4);
  uint32_t found = 0, told = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t here = typed_bits(type, x, i);
    uint64_t last = i == 0 ? 0 : typed_bits(type, x, i - 1);
    bool differs = i == 0 || values_is_nan(type, here) ||
                   values_is_nan(type, last) ||
                   values_compare(type, here, last) != 0;
    if (!differs) continue;
    values_set(type, want, found, here);
    places[found++] = i;
  }
  places[found] = count;
  const kit_argument_t arguments[] = {{x, NULL, size},
                                      {NULL, values, size},
                                      {NULL, have, count * UINT64_C(4)},
                                      {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  assert_int_equal(told, found);
  same_all(lengths ? "runs" : "unique", type, values, want, found, false);
  for (uint32_t k = 0; k < found; k++) {
    assert_int_equal(have[k], lengths ? places[k + 1] - places[k] : places[k]);
  }
  free(x);
  free(values);
  free(want);
  free(have);
  free(places);
}

static void test_close(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t t = 0; t < NUMBER_TYPES; t++) {
    uint32_t type = kNumberTypes[t];
    kiln_library_options_t options = kiln_library_options_default();
    options.type = type;
    options.count = kSizes[SIZES - 1];
    options.rest = KILN_SWITCH_ON;
    kiln_library_plan_t* parts = kit_plan(&kit, "compact", &options);
    kiln_library_plan_t* kept = plan_of(&kit, "compact", type, 0);
    kiln_library_plan_t* firsts = plan_of(&kit, "unique", type, 0);
    kiln_library_plan_t* runs = plan_of(&kit, "runs", type, 0);
    for (uint32_t s = 0; s < SIZES; s++) {
      for (uint32_t one_in = 0; one_in < 4; one_in++) {
        compact(&kit, kept, false, type, kSizes[s], one_in);
        compact(&kit, parts, true, type, kSizes[s], one_in * one_in);
      }
      for (uint32_t form = 0; form < VALUES_FORMS; form++) {
        unique(&kit, firsts, false, type, kSizes[s], (values_form_t)form);
        unique(&kit, runs, true, type, kSizes[s], (values_form_t)form);
      }
    }
    kiln_library_plan_release(parts);
    kiln_library_plan_release(kept);
    kiln_library_plan_release(firsts);
    kiln_library_plan_release(runs);
  }
  dispatch_kit_close(&kit);
}

// From anywhere, some of it nowhere, and back; several to one place.
static void move(dispatch_kit_t* kit, kiln_library_plan_t* gather,
                 kiln_library_plan_t* scatter, uint32_t type, uint32_t count) {
  uint64_t size = (uint64_t)count * bytes_of(type);
  void* x = values_make(type, VALUES_AWKWARD, count, count);
  void* want = kit_zeroes(count, bytes_of(type));
  void* back = kit_zeroes(count, bytes_of(type));
  void* have = kit_zeroes(count, bytes_of(type));
  uint32_t* places = kit_zeroes(count, 4);
  for (uint32_t i = 0; i < count; i++) {
    places[i] = i % 5 == 3 ? count + i % 3 : count - 1 - i;
    if (i % 5 == 3) continue;
    values_set(type, want, i, typed_bits(type, x, places[i]));
    values_set(type, back, places[i], typed_bits(type, x, i));
  }
  kit_argument_t arguments[] = {
      {x, NULL, size}, {places, NULL, count * UINT64_C(4)}, {NULL, have, size}};
  kit_run(kit, gather, arguments, 3, NULL, 0);
  same_all("gather", type, have, want, count, false);
  memset(have, 0, (size_t)size);
  arguments[2] = (kit_argument_t){have, have, size};
  kit_run(kit, scatter, arguments, 3, NULL, 0);
  same_all("scatter", type, have, back, count, false);
  // All to one place: one of them is there, whole.
  memset(places, 0, count * sizeof(uint32_t));
  memset(have, 0, (size_t)size);
  kit_run(kit, scatter, arguments, 3, NULL, 0);
  bool found = count == 0;
  for (uint32_t i = 0; i < count && !found; i++) {
    found = values_same(type, typed_bits(type, have, 0), typed_bits(type, x, i),
                        false);
  }
  assert_true(found);
  free(x);
  free(want);
  free(back);
  free(have);
  free(places);
}

static void transpose(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                      uint32_t type, uint32_t w, uint32_t h) {
  uint64_t count = (uint64_t)w * h, size = count * bytes_of(type);
  void* x = values_make(type, VALUES_ANY, count, w);
  void* want = kit_zeroes(count, bytes_of(type));
  void* have = kit_zeroes(count, bytes_of(type));
  for (uint64_t i = 0; i < count; i++) {
    values_set(type, want, i % w * h + i / w, typed_bits(type, x, i));
  }
  const kit_argument_t arguments[] = {{x, NULL, size}, {NULL, have, size}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(w), kiln_bind_u32(h)};
  kit_run(kit, plan, arguments, 2, scalars, 2);
  same_all("transpose", type, have, want, count, false);
  free(x);
  free(want);
  free(have);
}

static void test_moved(void** state) {
  (void)state;
  static const uint32_t kSides[][2] = {
      {0, 5},    {5, 0},    {1, 1},    {31, 33},   {32, 32},  {33, 31},
      {64, 128}, {1023, 9}, {7, 1024}, {1025, 65}, {133, 70}, {4, 260}};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t t = 0; t < NUMBER_TYPES; t++) {
    uint32_t type = kNumberTypes[t];
    kiln_library_plan_t* gather = plan_of(&kit, "gather", type, 0);
    kiln_library_plan_t* scatter = plan_of(&kit, "scatter", type, 0);
    kiln_library_plan_t* plan = plan_of(&kit, "transpose", type, 0);
    for (uint32_t s = 0; s < SIZES; s++) {
      move(&kit, gather, scatter, type, kSizes[s]);
      transpose(&kit, plan, type, s % 2 == 0 ? kSizes[s] : 1,
                s % 2 == 0 ? 1 : kSizes[s]);
    }
    for (uint32_t s = 0; s < sizeof(kSides) / sizeof(kSides[0]); s++) {
      transpose(&kit, plan, type, kSides[s][0], kSides[s][1]);
    }
    kiln_library_plan_release(gather);
    kiln_library_plan_release(scatter);
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// ---- Sorted ----

// A key with the place where it stood.
typedef struct item_t {
  uint64_t bits;
  uint32_t place;
} item_t;

static uint32_t g_type;
static bool g_descending;
static bool g_by_bits;

// merge_sort has NaN last either way, and both zeroes as one.
static int compare(const void* a, const void* b) {
  const item_t* x = a;
  const item_t* y = b;
  bool p = values_is_nan(g_type, x->bits), q = values_is_nan(g_type, y->bits);
  int order = g_by_bits ? values_order(g_type, x->bits, y->bits)
              : p || q  ? p - q
                        : values_compare(g_type, x->bits, y->bits);
  if (g_descending && (g_by_bits || (!p && !q))) order = -order;
  return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static void sort(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                 uint32_t value_type, uint32_t count, values_form_t form) {
  uint32_t bytes = bytes_of(g_type);
  uint32_t value_bytes = value_type == 0 ? 0 : bytes_of(value_type);
  void* keys = values_make(g_type, form, count, count);
  void* values = value_type == 0
                     ? kit_zeroes(1, 1)
                     : values_make(value_type, VALUES_ANY, count, 3);
  void* sorted = kit_zeroes(count, bytes);
  void* moved = kit_zeroes(count, 8);
  item_t* items = kit_zeroes(count, sizeof(item_t));
  for (uint32_t i = 0; i < count; i++) {
    items[i] = (item_t){typed_bits(g_type, keys, i), i};
  }
  qsort(items, count, sizeof(item_t), compare);
  const kit_argument_t pairs[] = {{keys, NULL, (uint64_t)count * bytes},
                                  {values, NULL, (uint64_t)count * value_bytes},
                                  {NULL, sorted, (uint64_t)count * bytes},
                                  {NULL, moved, (uint64_t)count * value_bytes}};
  const kit_argument_t alone[] = {pairs[0], pairs[2]};
  kit_run(kit, plan, value_type != 0 ? pairs : alone, value_type != 0 ? 4 : 2,
          NULL, 0);
  for (uint32_t i = 0; i < count; i++) {
    bool good = values_same(g_type, typed_bits(g_type, sorted, i),
                            items[i].bits, false);
    if (value_type != 0) {
      good = good &&
             values_same(value_type, typed_bits(value_type, moved, i),
                         typed_bits(value_type, values, items[i].place), false);
    }
    if (good) continue;
    fail_msg("%s of %u %s with %s, form %d: place %u",
             g_by_bits ? "sort" : "merge_sort", count, name_of(g_type),
             value_type != 0 ? name_of(value_type) : "nothing", (int)form, i);
  }
  free(keys);
  free(values);
  free(sorted);
  free(moved);
  free(items);
}

// Keys of every type, each with values of some of them.
static void sorts(const char* name, const uint32_t* types, uint32_t count) {
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  g_by_bits = strcmp(name, "sort") == 0;
  for (uint32_t k = 0; k < count * 3; k++) {
    uint32_t pick = (k / 3 + k % 3 * 5) % count;
    uint32_t value_type = k % 3 == 0 ? 0 : types[pick];
    g_type = types[k / 3];
    g_descending = k % 2 == 1;
    kiln_library_options_t options = kiln_library_options_default();
    options.type = g_type;
    options.value_type = value_type;
    options.descending = g_descending ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
    options.count = kSizes[SIZES - 1];
    kiln_library_plan_t* plan = kit_plan(&kit, name, &options);
    for (uint32_t s = 0; s < SIZES * VALUES_FORMS; s++) {
      // One form of the largest size for each plan is enough.
      if (s / VALUES_FORMS == SIZES - 1 &&
          s % VALUES_FORMS != k % VALUES_FORMS) {
        continue;
      }
      sort(&kit, plan, value_type, kSizes[s / VALUES_FORMS],
           (values_form_t)(s % VALUES_FORMS));
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

static void test_sort(void** state) {
  (void)state;
  sorts("sort", kWideTypes, WIDE_TYPES);
}

static void test_merge_sort(void** state) {
  (void)state;
  sorts("merge_sort", kNumberTypes, NUMBER_TYPES);
}

// ---- Refused ----

// Every entry with every type, and with what is none: it is planned, or refused
// as one that the entry does not do; nothing else becomes of it.
static void test_offered(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_entry_t entry;
  uint32_t planned = 0, refused = 0;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    for (uint32_t type = 1; type < 16 && entry.part_of == NULL; type++) {
      kiln_library_options_t options = kiln_library_options_default();
      kiln_library_plan_t* plan = NULL;
      options.type = type;
      kiln_status_t status =
          kiln_library_plan_create(kit.dispatcher, entry.name, &options, &plan);
      if (status != NULL &&
          strstr(kiln_status_message(status), "options.count") != NULL) {
        kiln_status_free(status);
        options.count = 100;
        status = kiln_library_plan_create(kit.dispatcher, entry.name, &options,
                                          &plan);
      }
      kiln_status_code_t code = kiln_status_code(status);
      bool unused = code == KILN_STATUS_INVALID_ARGUMENT &&
                    strstr(kiln_status_message(status), "has no use") != NULL;
      if (code != KILN_STATUS_OK && code != KILN_STATUS_UNSUPPORTED &&
          !unused) {
        fail_msg("%s of %s: %s", entry.name, name_of(type),
                 kiln_status_message(status));
      }
      planned += code == KILN_STATUS_OK;
      refused += code == KILN_STATUS_UNSUPPORTED;
      kiln_status_free(status);
      kiln_library_plan_release(plan);
    }
  }
  assert_true(planned > 100);
  assert_true(refused > 50);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fold),       cmocka_unit_test(test_segments),
      cmocka_unit_test(test_scans),      cmocka_unit_test(test_close),
      cmocka_unit_test(test_moved),      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_merge_sort), cmocka_unit_test(test_offered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
