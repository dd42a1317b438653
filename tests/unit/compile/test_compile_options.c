// SPDX-License-Identifier: Apache-2.0
//
// compile: options, architectures, the queue, virtual headers, libNVVM: over
// null providers.
#define _POSIX_C_SOURCE 200809L  // nanosleep
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/keep.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "compile/compile_inside.h"
#include "table/cuda_table.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"
#include "fault_alloc.h"

static fault_alloc_t g_watch;
static kilni_base_env_t g_env;
static kiln_host_t g_host;
static const kilni_base_keep_t g_nobody;

static kiln_compiler_t* open_null(int major, int minor) {
  kiln_nvrtc_table_t table;
  kilni_table_nvrtc_table_null(&table);
  table.major = major;
  table.minor = minor;
  kiln_compiler_t* compiler = NULL;
  assert_null(
      kilni_compile_compiler_create(&g_host, g_nobody, &table, &compiler));
  return compiler;
}

static kiln_compiler_t* open_null_nvvm(void) {
  kiln_nvvm_table_t table;
  kilni_table_nvvm_table_null(&table);
  kiln_compiler_t* compiler = NULL;
  assert_null(
      kilni_compile_compiler_create_nvvm(&g_host, g_nobody, &table, &compiler));
  return compiler;
}

// The options of a plan, one space between two; or the error's words.
static void plan(kiln_compiler_t* compiler,
                 const kiln_compile_options_t* options,
                 kiln_status_code_t* out_code, char text[1024]) {
  kiln_compile_result_t* result = NULL;
  kiln_status_t status = kiln_compiler_plan(compiler, options, &result);
  *out_code = kiln_status_code(status);
  text[0] = 0;
  if (!kiln_status_is_ok(status)) {
    assert_non_null(kiln_status_fix(status));
    snprintf(text, 1024, "%s", kiln_status_message(status));
  }
  for (uint32_t i = 0; *out_code == KILN_STATUS_OK &&
                       i < kiln_compile_result_option_count(result);
       i++) {
    size_t used = strlen(text);
    snprintf(text + used, 1024 - used, "%s%s", i ? " " : "",
             kiln_compile_result_option(result, i));
  }
  kiln_status_free(status);
  kiln_compile_result_release(result);
}

static void expect(kiln_compiler_t* compiler,
                   const kiln_compile_options_t* options, const char* wanted) {
  kiln_status_code_t code;
  char text[1024];
  plan(compiler, options, &code, text);
  assert_int_equal(code, KILN_STATUS_OK);
  assert_string_equal(text, wanted);
}

static void refuse(kiln_compiler_t* compiler,
                   const kiln_compile_options_t* options,
                   kiln_status_code_t wanted, const char* words) {
  kiln_status_code_t code;
  char text[1024];
  plan(compiler, options, &code, text);
  assert_int_equal(code, wanted);
  if (strstr(text, words) == NULL) print_error("%s\n", text);
  assert_non_null(strstr(text, words));
}

static void each_field_is_its_option(void** state) {
  (void)state;
  static const char* const texts[] = {"a", "b"};
  kiln_compiler_t* compiler = open_null(13, 2);
#define KILNI_COMPILE_ON(field, nvrtc, nvvm, since)                  \
  {                                                                  \
    kiln_compile_options_t options = kiln_compile_options_default(); \
    options.field = KILN_SWITCH_ON;                                  \
    expect(compiler, &options,                                       \
           "--gpu-architecture=compute_75 --no-cache " nvrtc);       \
  }
#define KILNI_COMPILE_OFF(field, nvrtc, nvvm, since)                    \
  {                                                                     \
    kiln_compile_options_t options = kiln_compile_options_default();    \
    options.field = KILN_SWITCH_OFF;                                    \
    expect(compiler, &options,                                          \
           nvrtc[0] ? "--gpu-architecture=compute_75 --no-cache " nvrtc \
                    : "--gpu-architecture=compute_75 --no-cache");      \
  }
#define KILNI_COMPILE_NUMBER(field, nvrtc, since)                    \
  {                                                                  \
    kiln_compile_options_t options = kiln_compile_options_default(); \
    options.field = 32;                                              \
    expect(compiler, &options,                                       \
           "--gpu-architecture=compute_75 --no-cache " nvrtc "32");  \
  }
#define KILNI_COMPILE_TEXT(field, nvrtc, since)                      \
  {                                                                  \
    kiln_compile_options_t options = kiln_compile_options_default(); \
    options.field = "x y";                                           \
    expect(compiler, &options,                                       \
           "--gpu-architecture=compute_75 --no-cache " nvrtc "x y"); \
  }
#define KILNI_COMPILE_LIST(field, count, nvrtc, since)                        \
  {                                                                           \
    kiln_compile_options_t options = kiln_compile_options_default();          \
    options.field = texts;                                                    \
    options.count = 2;                                                        \
    expect(compiler, &options,                                                \
           "--gpu-architecture=compute_75 --no-cache " nvrtc "a " nvrtc "b"); \
  }
#include "compile/compile_options.inc"
#undef KILNI_COMPILE_ON
#undef KILNI_COMPILE_OFF
#undef KILNI_COMPILE_NUMBER
#undef KILNI_COMPILE_TEXT
#undef KILNI_COMPILE_LIST
  kiln_compiler_release(compiler);
}

static void outputs_ask_for_what_they_need(void** state) {
  (void)state;
  kiln_compiler_t* compiler = open_null(12, 9);
  kiln_compile_options_t options = kiln_compile_options_default();
  expect(compiler, &options, "--gpu-architecture=compute_75");
  options.output = KILN_CODE_FORMAT_LTOIR;
  expect(compiler, &options, "--gpu-architecture=compute_75 --dlink-time-opt");
  options.output = KILN_CODE_FORMAT_RELOCATABLE;
  options.arch = "sm_75";
  expect(compiler, &options,
         "--gpu-architecture=sm_75 --relocatable-device-code=true");
  options.output = KILN_CODE_FORMAT_CUBIN;
  options.split_compile = KILN_COMPILE_ALL_CORES;
  expect(compiler, &options, "--gpu-architecture=sm_75 --split-compile=0");
  options.output = KILN_CODE_FORMAT_FATBIN;
  refuse(compiler, &options, KILN_STATUS_INVALID_ARGUMENT, "fatbin");
  options = kiln_compile_options_default();
  options.ftz = 3;
  refuse(compiler, &options, KILN_STATUS_INVALID_ARGUMENT, "`ftz`");
  options = kiln_compile_options_default();
  options.output = KILN_CODE_FORMAT_CUBIN;
  refuse(compiler, &options, KILN_STATUS_INVALID_ARGUMENT,
         "one real architecture");
  kiln_compiler_release(compiler);
}

static void what_is_too_new_names_its_version(void** state) {
  (void)state;
  kiln_compiler_t* compiler = open_null(12, 4);
  kiln_compile_options_t options = kiln_compile_options_default();
  options.minimal = KILN_SWITCH_ON;
  expect(compiler, &options, "--gpu-architecture=compute_75 --minimal");
  options.pch = KILN_SWITCH_ON;
  refuse(compiler, &options, KILN_STATUS_UNSUPPORTED,
         "NVRTC 12.4 has no option --pch, which came with 12.8");
  options = kiln_compile_options_default();
  options.random_seed = "1";
  refuse(compiler, &options, KILN_STATUS_UNSUPPORTED, "12.9");
  options = kiln_compile_options_default();
  options.device_library = KILN_SWITCH_ON;
  refuse(compiler, &options, KILN_STATUS_UNSUPPORTED, "device_library");
  kiln_compiler_release(compiler);
}

// The null provider knows compute capability 7.5 and nothing else.
static void an_architecture_is_brought_down(void** state) {
  (void)state;
  kiln_compiler_t* compiler = open_null(13, 0);
  kiln_compile_options_t options = kiln_compile_options_default();
  options.arch = "compute_130a";
  kiln_compile_result_t* result = NULL;
  kiln_string_view_t source = {"k", 1};
  assert_null(kiln_compiler_compile(compiler, source, &options, &result));
  assert_string_equal(kiln_code_arch(kiln_compile_result_code(result)),
                      "compute_75");
  assert_string_equal(kiln_compile_result_note(result),
                      "compute_130a is newer than NVRTC 13.0: compiled for "
                      "compute_75, the newest that it supports");
  kiln_compile_result_release(result);
  options.output = KILN_CODE_FORMAT_CUBIN;
  options.arch = "sm_130";
  refuse(compiler, &options, KILN_STATUS_UNSUPPORTED,
         "does not support sm_130");
  options.arch = "sm_79";
  expect(compiler, &options, "--gpu-architecture=sm_75 --no-cache");
  options.output = KILN_CODE_FORMAT_PTX;
  static const char* const kNone[] = {"sm_1",  "sm_",    "foo", "compute_1",
                                      "sm_9x", "sm_90x", "",    "90"};
  for (size_t i = 0; i < sizeof(kNone) / sizeof(kNone[0]); i++) {
    options.arch = kNone[i];
    refuse(compiler, &options, KILN_STATUS_INVALID_ARGUMENT,
           "is not an architecture");
  }
  options.arch = "compute_50";  // older than all: the compiler's to refuse
  expect(compiler, &options, "--gpu-architecture=compute_50 --no-cache");
  kiln_compiler_release(compiler);
}

static void nvvm_takes_what_it_has(void** state) {
  (void)state;
  kiln_compiler_t* compiler = open_null_nvvm();
  assert_int_equal(kiln_compiler_kind(compiler), KILN_COMPILER_KIND_NVVM);
  assert_int_equal(kiln_compiler_ir_version(compiler), 2000);
  kiln_compile_options_t options = kiln_compile_options_default();
  options.arch = "sm_90a";
  options.debug = KILN_SWITCH_ON;
  options.optimize = KILN_SWITCH_OFF;
  options.ftz = KILN_SWITCH_ON;
  options.prec_sqrt = KILN_SWITCH_OFF;
  options.prec_div = KILN_SWITCH_OFF;
  options.fma = KILN_SWITCH_ON;
  expect(compiler, &options,
         "-arch=compute_90a -g -opt=0 -ftz=1 -prec-sqrt=0 -prec-div=0 -fma=1");
  options = kiln_compile_options_default();
  options.output = KILN_CODE_FORMAT_LTOIR;
  expect(compiler, &options, "-arch=compute_75 -gen-lto");
  options.output = KILN_CODE_FORMAT_CUBIN;
  refuse(compiler, &options, KILN_STATUS_UNSUPPORTED, "cannot make cubin");
#define REFUSED(statement, word)            \
  options = kiln_compile_options_default(); \
  statement;                                \
  refuse(compiler, &options, KILN_STATUS_UNSUPPORTED, word);
  static const char* const texts[] = {"a"};
  REFUSED(options.max_registers = 1, "max_registers")
  REFUSED(options.std = "c++17", "std")
  REFUSED(options.use_fast_math = KILN_SWITCH_ON, "use_fast_math")
  REFUSED(options.defines = texts; options.define_count = 1, "defines")
  REFUSED(options.name_expressions = texts;
          options.name_expression_count = 1, "name_expressions")
  REFUSED(options.diag_warn = texts; options.diag_warn_count = 1, "diag_warn")
#undef REFUSED
  kiln_compiler_release(compiler);
}

static void nvvm_compiles_modules(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  kiln_compiler_t* compiler = open_null_nvvm();
  const kiln_compile_file_t more[] = {{"m", {(const uint8_t*)"BC\0", 3}}};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.modules = more;
  options.module_count = 1;
  kiln_compile_result_t* result = NULL;
  kiln_string_view_t source = {"BC\0\0", 4};
  assert_null(kiln_compiler_compile(compiler, source, &options, &result));
  assert_int_equal(kiln_code_format(kiln_compile_result_code(result)),
                   KILN_CODE_FORMAT_PTX);
  kiln_compile_result_release(result);
  // No device library was found, and one is asked for.
  options.device_library = KILN_SWITCH_ON;
  kiln_status_t status =
      kiln_compiler_compile(compiler, source, &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  kiln_compile_result_release(result);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
  kiln_compiler_release(compiler);
}

static bool say_yes(void* user) {
  ++*(int*)user;
  return true;
}

static void a_cancelled_one_is_cancelled(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  kiln_compiler_t* compilers[] = {open_null(13, 0), open_null_nvvm()};
  for (int i = 0; i < 2; i++) {
    int asked = 0;
    kiln_compile_options_t options = kiln_compile_options_default();
    options.cancelled = say_yes;
    options.cancelled_user = &asked;
    kiln_compile_result_t* result = NULL;
    kiln_string_view_t source = {"k", 1};
    kiln_status_t status =
        kiln_compiler_compile(compilers[i], source, &options, &result);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_CANCELLED);
    assert_non_null(kiln_status_fix(status));
    assert_true(asked > 0);
    assert_null(kiln_compile_result_code(result));
    kiln_status_free(status);
    kiln_compile_result_release(result);
    kiln_compiler_release(compilers[i]);
  }
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
}

static bool say_later(void* user) {
  int* left = user;
  return --*left < 0;
}

// However often it is asked before: each time it may say so, nothing is left
// over, and what comes out is whole or nothing.
static void it_ends_at_each_step(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  for (int nvvm = 0; nvvm < 2; nvvm++) {
    kiln_compiler_t* compiler = nvvm ? open_null_nvvm() : open_null(13, 0);
    int steps = 0;
    for (bool ended = true; ended; steps++) {
      int left = steps;
      kiln_compile_options_t options = kiln_compile_options_default();
      options.cancelled = say_later;
      options.cancelled_user = &left;
      kiln_compile_result_t* result = NULL;
      kiln_string_view_t source = {"k", 1};
      kiln_status_t status =
          kiln_compiler_compile(compiler, source, &options, &result);
      ended = !kiln_status_is_ok(status);
      if (ended) {
        assert_int_equal(kiln_status_code(status), KILN_STATUS_CANCELLED);
      }
      assert_int_equal(kiln_compile_result_code(result) != NULL, !ended);
      kiln_status_free(status);
      kiln_compile_result_release(result);
      assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
      assert_int_equal(compiler->gate.running, 0);
      assert_true(steps < 16);
    }
    // In front of the compiler and behind it; of libNVVM between its two too.
    assert_int_equal(steps, nvvm ? 4 : 3);
    kiln_compiler_release(compiler);
  }
}

// ---- The queue ----

// ---- The memory of a compilation ----

static uint64_t estimate(const char* source, uint64_t header_bytes,
                         const kiln_compile_options_t* options) {
  kilni_compile_job_t job = {
      NULL, {source, strlen(source)}, options, NULL, "k.cu", header_bytes};
  return kilni_compile_estimate(&job);
}

// Headers are most of what NVRTC reads: they count, found or not.
static void headers_count_in_the_budget(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  static const char plain[] = "__global__ void k() {} // one #";
  static const char includes[] = "# \tinclude <cuda_fp16.h>";
  uint64_t least = estimate("", 0, &options);
  assert_true(least >= 32u << 20);
  assert_true(estimate(plain, 0, &options) < least + 4096);
  assert_true(estimate(includes, 0, &options) > least + (64u << 20));
  // 3,363,275 bytes of headers took 99 million bytes.
  uint64_t known = estimate(includes, 3363275, &options) - least;
  assert_true(known > 99000000 && known < 2 * UINT64_C(99000000));
  kiln_compile_file_t header = {"h.h", {(const uint8_t*)plain, sizeof(plain)}};
  options.headers = &header;
  options.header_count = 1;
  assert_true(estimate(plain, 0, &options) > estimate("", 0, &options));
}

// What threads that go through a gate see. thread-safe
typedef struct crowd_t {
  kilni_compile_gate_t gate;
  uint64_t bytes;
  atomic_uint inside;
  atomic_uint most;
  atomic_uint through;
} crowd_t;

static void go_through(void* user) {
  crowd_t* crowd = user;
  for (int i = 0; i < 50; i++) {
    assert_true(
        kilni_compile_gate_enter(&crowd->gate, crowd->bytes, NULL, NULL));
    unsigned now = atomic_fetch_add(&crowd->inside, 1) + 1;
    unsigned most = atomic_load(&crowd->most);
    while (now > most &&
           !atomic_compare_exchange_weak(&crowd->most, &most, now)) {
    }
    atomic_fetch_add(&crowd->through, 1);
    atomic_fetch_sub(&crowd->inside, 1);
    kilni_compile_gate_leave(&crowd->gate, crowd->bytes);
  }
}

static void run_crowd(uint32_t most_running, uint64_t most_bytes,
                      uint64_t bytes, unsigned limit) {
  crowd_t crowd = {.bytes = bytes};
  assert_null(kilni_compile_gate_init(&crowd.gate, most_running, most_bytes));
  kilni_base_thread_t threads[8] = {0};
  for (int i = 0; i < 8; i++) {
    assert_null(
        kilni_base_thread_start(&threads[i], "gate", go_through, &crowd));
  }
  for (int i = 0; i < 8; i++) kilni_base_thread_join(&threads[i]);
  assert_int_equal(atomic_load(&crowd.through), 400);
  assert_true(atomic_load(&crowd.most) <= limit);
  assert_int_equal(crowd.gate.running, 0);
  assert_int_equal(crowd.gate.used_bytes, 0);
  assert_null(crowd.gate.first);
  kilni_compile_gate_deinit(&crowd.gate);
}

static void pause_shortly(void) {
  const struct timespec tenth = {0, 100000};
  (void)nanosleep(&tenth, NULL);
}

static unsigned in_line(kilni_compile_gate_t* gate) {
  unsigned count = 0;
  kilni_base_mutex_lock(&gate->lock);
  for (kilni_compile_gate_place_t* at = gate->first; at != NULL;
       at = at->next) {
    count++;
  }
  kilni_base_mutex_unlock(&gate->lock);
  return count;
}

enum { CROWD = 6 };

// Compilations that have begun and end together. thread-safe
typedef struct meeting_t {
  kiln_compiler_t* compiler;
  unsigned wanted;
  atomic_uint inside;
  atomic_uint most;
  atomic_bool open;
} meeting_t;

// The null provider has no place for a user's pointer.
static meeting_t g_meeting;

static kiln_nvrtc_result_t compile_at_meeting(kiln_nvrtc_program_t program,
                                              int count,
                                              const char* const* options) {
  (void)program;
  (void)count;
  (void)options;
  unsigned now = atomic_fetch_add(&g_meeting.inside, 1) + 1;
  unsigned most = atomic_load(&g_meeting.most);
  while (now > most &&
         !atomic_compare_exchange_weak(&g_meeting.most, &most, now)) {
  }
  kilni_compile_gate_t* gate = &g_meeting.compiler->gate;
  while (!atomic_load(&g_meeting.open)) {
    unsigned inside = atomic_load(&g_meeting.inside);
    if (inside >= g_meeting.wanted && inside + in_line(gate) == CROWD) {
      atomic_store(&g_meeting.open, true);
    }
    pause_shortly();
  }
  atomic_fetch_sub(&g_meeting.inside, 1);
  return KILN_NVRTC_SUCCESS;
}

static void compile_in_crowd(void* user) {
  meeting_t* meeting = user;
  kiln_string_view_t source = {"k", 1};
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(meeting->compiler, source, NULL, &result));
  kiln_compile_result_release(result);
}

static void meet(uint32_t most_running, uint64_t most_bytes, unsigned wanted) {
  kiln_nvrtc_table_t table;
  kilni_table_nvrtc_table_null(&table);
  table.major = 13;
  table.nvrtcCompileProgram = compile_at_meeting;
  memset(&g_meeting, 0, sizeof(g_meeting));
  g_meeting.wanted = wanted;
  assert_null(kilni_compile_compiler_create(&g_host, g_nobody, &table,
                                            &g_meeting.compiler));
  kilni_compile_gate_t* gate = &g_meeting.compiler->gate;
  gate->most_running = most_running;
  gate->most_bytes = most_bytes;
  kilni_base_thread_t threads[CROWD] = {0};
  for (int i = 0; i < CROWD; i++) {
    assert_null(kilni_base_thread_start(&threads[i], "compile",
                                        compile_in_crowd, &g_meeting));
  }
  for (int i = 0; i < CROWD; i++) kilni_base_thread_join(&threads[i]);
  // So many were inside at once, while the others stood in line.
  assert_int_equal(atomic_load(&g_meeting.most), wanted);
  kiln_compiler_release(g_meeting.compiler);
}

// Neither more than fit, nor fewer.
static void as_many_compile_at_once_as_fit(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  uint64_t each = estimate("k", 0, &options);
  meet(4, 0, 4);
  meet(6, 3 * each, 3);
  meet(6, 3 * each - 1, 2);
  meet(6, 1, 1);  // one alone always goes in
}

// ---- In turn ----

// One that waits at a gate, and when its turn came. one-thread
typedef struct waiter_t {
  kilni_compile_gate_t* gate;
  uint64_t bytes;
  atomic_uint* turns;
  unsigned turn;
} waiter_t;

static void wait_in_line(void* user) {
  waiter_t* waiter = user;
  assert_true(
      kilni_compile_gate_enter(waiter->gate, waiter->bytes, NULL, NULL));
  waiter->turn = atomic_fetch_add(waiter->turns, 1) + 1;
  kilni_compile_gate_leave(waiter->gate, waiter->bytes);
}

// A large one is not passed by small ones that would fit.
static void first_come_first_served(void** state) {
  (void)state;
  kilni_compile_gate_t gate;
  assert_null(kilni_compile_gate_init(&gate, 8, 100));
  assert_true(kilni_compile_gate_enter(&gate, 60, NULL, NULL));
  atomic_uint turns = 0;
  static const uint64_t bytes[] = {90, 20, 95, 30};
  waiter_t waiters[4];
  kilni_base_thread_t threads[4] = {0};
  for (unsigned i = 0; i < 4; i++) {
    waiters[i] = (waiter_t){&gate, bytes[i], &turns, 0};
    assert_null(kilni_base_thread_start(&threads[i], "gate", wait_in_line,
                                        &waiters[i]));
    while (in_line(&gate) != i + 1) pause_shortly();
  }
  assert_int_equal(atomic_load(&turns), 0);
  kilni_compile_gate_leave(&gate, 60);
  for (int i = 0; i < 4; i++) kilni_base_thread_join(&threads[i]);
  for (unsigned i = 0; i < 4; i++) assert_int_equal(waiters[i].turn, i + 1);
  kilni_compile_gate_deinit(&gate);
}

static void no_more_than_fit_go_in(void** state) {
  (void)state;
  run_crowd(3, 0, 100, 3);
  run_crowd(8, 250, 100, 2);
  run_crowd(8, 50, 100, 1);  // one alone always goes in
}

static void who_gives_up_leaves_the_queue(void** state) {
  (void)state;
  kilni_compile_gate_t gate;
  assert_null(kilni_compile_gate_init(&gate, 1, 0));
  assert_true(kilni_compile_gate_enter(&gate, 1, NULL, NULL));
  int asked = 0;
  assert_false(kilni_compile_gate_enter(&gate, 1, say_yes, &asked));
  assert_int_equal(asked, 1);
  assert_null(gate.first);
  kilni_compile_gate_leave(&gate, 1);
  assert_true(kilni_compile_gate_enter(&gate, 1, say_yes, &asked));
  assert_int_equal(asked, 1);
  kilni_compile_gate_leave(&gate, 1);
  kilni_compile_gate_deinit(&gate);
}

int main(void) {
  fault_alloc_init(&g_watch);
  g_host.allocator = fault_alloc_allocator(&g_watch);
  g_env.allocator = g_host.allocator;
  g_host.env = &g_env;
  g_host.process_id = kilni_base_process_id();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_field_is_its_option),
      cmocka_unit_test(headers_count_in_the_budget),
      cmocka_unit_test(outputs_ask_for_what_they_need),
      cmocka_unit_test(what_is_too_new_names_its_version),
      cmocka_unit_test(an_architecture_is_brought_down),
      cmocka_unit_test(nvvm_takes_what_it_has),
      cmocka_unit_test(nvvm_compiles_modules),
      cmocka_unit_test(a_cancelled_one_is_cancelled),
      cmocka_unit_test(no_more_than_fit_go_in),
      cmocka_unit_test(as_many_compile_at_once_as_fit),
      cmocka_unit_test(first_come_first_served),
      cmocka_unit_test(it_ends_at_each_step),
      cmocka_unit_test(who_gives_up_leaves_the_queue),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  const char* problem = fault_alloc_problem(&g_watch);
  if (problem != NULL) printf("memory: %s\n", problem);
  return failed + (problem != NULL);
}
