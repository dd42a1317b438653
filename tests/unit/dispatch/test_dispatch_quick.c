// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the quick plan says yes only where the whole one does, and then to
// the same; and it does say yes to what is ordinary. Bindings are drawn, right
// and wrong ones.
#include "dispatch/pipeline_inside.h"
#include "dispatch_kit.h"

enum { MEMORIES = 8, WORDS = 64, DRAWS = 4000, MOST = 4 };

// Two counts, a work size of a scalar, and a second axis.
static const char kTwo[] =
    "program two(n: u32, m: u32, x: in u32[], y: inout u32[])\n"
    "  work (n, m) block (8, 4)\n"
    "{ let i = global_id.x + global_id.y * n;\n"
    "  if i < length(y) { if i < length(x) { y[i] = x[i]; } } }\n";

typedef struct world_t {
  dispatch_kit_t kit;
  kiln_buffer_t* buffer;
  kiln_resident_t residents[MEMORIES];
  uint32_t state;
} world_t;

static uint32_t draw(world_t* w, uint32_t below) {
  w->state = w->state * 1664525u + 1013904223u;
  return (w->state >> 8) % below;
}

static kiln_binding_t draw_binding(world_t* w, bool buffer) {
  static uint32_t host[WORDS];
  uint32_t which = draw(w, 48);
  kiln_binding_t b;
  if (!buffer && which < 46) {
    return which % 4 == 0 ? kiln_bind_f32(1.0f) : kiln_bind_u32(draw(w, 70));
  }
  switch (which) {
    case 0:
      return kiln_bind_u32(3);
    case 1:
      return kiln_bind_host_inout(host, sizeof(host));
    case 2:
      return kiln_bind_pointer(kiln_buffer_address(w->buffer), 64);
    case 3:
      b = kiln_bind_resident(w->residents[draw(w, MEMORIES)]);
      b.value.resident.id ^= (uint64_t)1 << draw(w, 64);
      break;
    case 4:
    case 5:
    case 6:
      b = kiln_bind_buffer(w->buffer);
      break;
    default:
      b = kiln_bind_resident(w->residents[draw(w, MEMORIES)]);
      break;
  }
  uint32_t range = draw(w, 32);
  if (range == 0) b.offset = draw(w, 5 * WORDS);
  if (range == 1) b.offset = 4 * (uint64_t)draw(w, WORDS + 2);
  if (range == 2) b.bytes = draw(w, 5 * WORDS);
  if (range == 3) b.bytes = 4 * (uint64_t)draw(w, WORDS + 2);
  if (range == 4) b.offset = UINT64_MAX - draw(w, 8);
  return b;
}

// Whether the quick one said yes.
static bool compare(kiln_pipeline_t* pipeline, const kiln_binding_t* bindings,
                    uint32_t count) {
  static kilni_dispatch_plan_t quick, whole;
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  memset(&quick, 0, sizeof(quick));
  memset(&whole, 0, sizeof(whole));
  bool yes = kilni_dispatch_quick_plan(pipeline, bindings, count, &quick);
  kiln_status_t status = kilni_dispatch_plan_make(pipeline, bindings, count,
                                                  &options, false, &whole);
  bool right = kiln_status_is_ok(status);
  kiln_dispatch_plan_t shown;
  kiln_status_t other =
      kiln_pipeline_plan(pipeline, bindings, count, NULL, &shown);
  assert_int_equal(kiln_status_code(status), kiln_status_code(other));
  if (!right) {
    assert_string_equal(kiln_status_message(status),
                        kiln_status_message(other));
  }
  kiln_status_free(status);
  kiln_status_free(other);
  if (right) assert_memory_equal(&shown, &whole.shown, sizeof(shown));
  if (!yes) return false;
  assert_true(right);
  assert_memory_equal(&quick.shown, &whole.shown, sizeof(quick.shown));
  assert_int_equal(quick.options.iterations, whole.options.iterations);
  assert_ptr_equal(quick.label, whole.label);
  assert_false(whole.idle || whole.has_how || whole.has_host);
  for (uint32_t i = 0; i < count; i++) {
    const kilni_dispatch_bound_t* a = &quick.bound[i];
    const kilni_dispatch_bound_t* b = &whole.bound[i];
    assert_int_equal(a->address, b->address);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->value, b->value);
    assert_false(b->clears || b->uploads || b->downloads);
  }
  return true;
}

static uint32_t draw_all(world_t* w, kiln_pipeline_t* pipeline) {
  uint32_t count = kiln_pipeline_info(pipeline)->parameter_count;
  uint32_t accepted = 0;
  kiln_binding_t bindings[MOST + 1];
  assert_true(count <= MOST);
  for (uint32_t i = 0; i < DRAWS; i++) {
    kiln_pipeline_parameter_t p;
    for (uint32_t k = 0; k <= count; k++) {
      bool there = kiln_pipeline_parameter(pipeline, k, &p);
      bindings[k] = draw_binding(w, !there || p.role != KILN_PROGRAM_ROLE_NONE);
    }
    accepted += compare(pipeline, bindings, count);
    if (i % 64 == 0) {
      assert_false(compare(pipeline, bindings, count + 1));
      assert_false(compare(pipeline, NULL, count));
    }
  }
  return accepted;
}

static void open_world(world_t* w) {
  memset(w, 0, sizeof(*w));
  dispatch_kit_open(&w->kit);
  assert_null(kiln_buffer_create(w->kit.device, 4 * WORDS, NULL, &w->buffer));
  for (uint32_t i = 0; i < MEMORIES; i++) {
    const uint64_t kBytes[MEMORIES] = {4 * WORDS, 4 * WORDS, 4 * WORDS,
                                       4,         8 * WORDS, 4 * WORDS + 3,
                                       4,         4 * WORDS};
    uint64_t bytes = kBytes[i];
    w->residents[i] = dispatch_kit_resident(&w->kit, bytes, NULL);
  }
  // A name that was freed stays among them.
  assert_null(kiln_resident_free(w->kit.dispatcher, w->residents[3]));
}

static void test_same(void** state) {
  (void)state;
  static const struct {
    const char* text;
    bool overlapping;
    bool ordinary;  // some of it is quick
  } kPrograms[] = {{kStep, false, true},  {kSaxpy, false, true},
                   {kFour, false, true},  {kTwo, false, true},
                   {kTwo, true, true},    {kEven, false, false},
                   {kOpen, false, false}, {kMeeting, false, false}};
  world_t w;
  open_world(&w);
  for (size_t i = 0; i < sizeof(kPrograms) / sizeof(kPrograms[0]); i++) {
    kiln_pipeline_options_t options = kiln_pipeline_options_default();
    if (kPrograms[i].overlapping) options.overlapping = KILN_SWITCH_ON;
    kiln_pipeline_t* pipeline =
        dispatch_kit_pipeline(&w.kit, kPrograms[i].text, &options);
    uint32_t accepted = draw_all(&w, pipeline);
    if (!kPrograms[i].ordinary) assert_int_equal(accepted, 0);
    if (kPrograms[i].ordinary) assert_in_range(accepted, 20, DRAWS - 20);
    kiln_pipeline_release(pipeline);
  }
  for (uint32_t i = 0; i < MEMORIES; i++) {
    if (i == 3) continue;
    assert_null(kiln_resident_free(w.kit.dispatcher, w.residents[i]));
  }
  kiln_buffer_release(w.buffer);
  dispatch_kit_close(&w.kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
