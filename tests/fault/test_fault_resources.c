// SPDX-License-Identifier: Apache-2.0
//
// fault: every public function of devices and their parts, memory, pools,
// streams, events, virtual memory, modules, kernels, launches, textures, tensor
// maps and watches, with each allocation and each call of the driver or of NVML
// on its path failing in turn, once and from then on.
//
// The cases are in resource_cases.inc; a function of the headers that has none
// fails the test. For each point a scene with one object of each kind is made
// while nothing fails, the function is called with the point failing, and the
// scene is taken away: then a driver's books, the allocator and the null
// provider say whether anything leaked or was ended twice, and the thread's
// context and capture mode whether they are what they were.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "driver_books.h"
#include "fault_alloc.h"
#include "fault_cases.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "table/nvml_table.h"

enum {
  LACKS = 1,     // a provider may not have it: UNSUPPORTED, also unfaulted
  MAY_PASS = 2,  // what failed may be done without
};
enum { TEXT_BYTES = 256, RUNS_MAX = 400 };

// What fails in a run, and with what.
typedef enum fails_t {
  ALLOCATIONS,
  OUT_OF_MEMORY,
  ENDING,
  LOST,
  NVML_CALLS,
  FAILS
} fails_t;

// One object of each kind, and what the cases make. one-thread
typedef struct scene_t {
  bool soft;
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_allocator_t own;
  kiln_cuda_table_t null_table;
  kiln_cuda_table_t table;
  kiln_cuda_table_t beside;  // a host program's way to the driver
  kiln_nvml_table_t nvml;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_device_t* peer;
  kiln_peer_t* access;
  kiln_buffer_t* far;  // of the peer
  kiln_stream_t* stream;
  kiln_stream_t* legacy;
  kiln_event_t* event;
  // NULL where nothing is shared between processes.
  kiln_event_t* shared;
  kiln_pool_t* shared_pool;
  kiln_pool_t* imported_pool;
  kiln_buffer_t* shared_buffer;
  // NULL on the software device.
  kiln_array_t* array;
  kiln_mipmap_t* mipmap;
  kiln_texture_t* texture;
  kiln_surface_t* surface;
  kiln_device_t* part;
  kiln_watch_t* watcher;
  kiln_pool_t* pool;
  kiln_transient_t* transient;
  kiln_buffer_t* buffer;
  kiln_buffer_t* ordered;
  kiln_virtual_t* memory;
  kiln_code_t* code;
  kiln_module_t* module;
  kiln_load_log_t* log;
  kiln_kernel_t* kernel;
  kiln_launch_t* launch;
  kiln_event_export_t exported;
  kiln_cu_stream_t raw_stream;
  kiln_cu_event_t raw_event;
  void* raw_kernel;
  // What a case makes.
  kiln_device_t* new_device;
  kiln_peer_t* new_peer;
  kiln_peer_info_t peer_info;
  kiln_managed_info_t managed;
  kiln_dlpack_t* tensor;
  kiln_dlpack_legacy_t* old_tensor;
  kiln_buffer_t* new_buffer;
  kiln_pool_t* new_pool;
  kiln_transient_t* new_transient;
  kiln_stream_t* new_stream;
  kiln_event_t* new_event;
  kiln_virtual_t* new_virtual;
  kiln_module_t* new_module;
  kiln_load_log_t* new_log;
  kiln_kernel_t* new_kernel;
  kiln_launch_t* new_launch;
  kiln_array_t* new_array;
  kiln_mipmap_t* new_mipmap;
  kiln_texture_t* new_texture;
  kiln_surface_t* new_surface;
  kiln_device_t* new_rest;
  kiln_watch_t* new_watch;
  int owned;  // owners that were taken
  int told;
  bool ready;
  int32_t i32;
  int32_t other_i32;
  uint32_t u32;
  uint32_t other_u32;
  uint64_t u64;
  char text[TEXT_BYTES];
} scene_t;

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 word;\n"
    ".visible .entry k(.param .u64 p) {\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [p];\ncvta.to.global.u64 %d2, %d1;\n"
    "st.global.u32 [%d2], 7;\nret;\n}\n";

// ---- What the cases use ----

#define MUST(call) assert_null(call)
#define MADE(object) \
  assert_int_equal(s->object == NULL, !kiln_status_is_ok(status));
#define END_BUFFER                    \
  kiln_buffer_release(s->new_buffer); \
  s->new_buffer = NULL;

static kiln_cu_context_t callers(void) {
  return (kiln_cu_context_t)(uintptr_t)0xf04e1600;
}

static void told(void* user) {
  ((scene_t*)user)->told++;
}

static kiln_owner_t owner_of(scene_t* s) {
  kiln_owner_t owner = {told, s};
  return owner;
}

static void nothing(void* user) {
  (void)user;
}

static kiln_bytes_view_t ptx_view(void) {
  kiln_bytes_view_t view = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  return view;
}

static kiln_launch_config_t config_of(scene_t* s) {
  (void)s;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = 1;
  config.block[0] = 1;
  return config;
}

static kiln_status_t open_device(scene_t* s, kiln_device_t** out_device) {
  return kiln_runtime_open_device(s->runtime, s->soft ? "soft" : "cuda:0",
                                  out_device);
}

// What a device keeps for itself: a wait of one stream for another's work.
static kiln_status_t fill_pools(kiln_device_t* device) {
  kiln_stream_t* stream = NULL;
  kiln_stream_t* legacy = NULL;
  kiln_status_t status = kiln_stream_create(device, NULL, &stream);
  if (kiln_status_is_ok(status)) {
    status = kiln_stream_default(device, KILN_STREAM_LEGACY, &legacy);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_stream_wait_stream(stream, legacy);
  }
  kiln_stream_release(legacy);
  kiln_stream_release(stream);
  return status;
}

static kiln_status_t make_buffer(scene_t* s, uint32_t kind, bool on_stream,
                                 bool from_pool) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = kind;
  if (on_stream) options.stream = s->stream;
  if (from_pool) options.pool = s->pool;
  return kiln_buffer_create(s->device, 256, &options, &s->new_buffer);
}

static kiln_status_t make_pool(scene_t* s, uint32_t kind) {
  kiln_pool_options_t options = kiln_pool_options_default();
  options.kind = kind;
  options.threshold_bytes = 4096;
  return kiln_pool_create(s->device, &options, &s->new_pool);
}

// Of another process, as far as the null provider knows.
static kiln_status_t import_plain(scene_t* s) {
  kiln_buffer_export_t exported = {{3}, 256, 0, 0};
  return kiln_buffer_import(s->device, &exported, NULL, &s->new_buffer);
}

static kiln_status_t import_of_pool(scene_t* s) {
  kiln_buffer_export_t exported = {{4}, 256, 1, 0};
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.pool = s->imported_pool;
  options.stream = s->stream;
  return kiln_buffer_import(s->device, &exported, &options, &s->new_buffer);
}

// A store that keeps a block.
static kiln_status_t make_store(scene_t* s) {
  kiln_buffer_t* buffer = NULL;
  kiln_status_t status =
      kiln_transient_create(s->stream, NULL, &s->new_transient);
  if (kiln_status_is_ok(status)) {
    status = kiln_transient_acquire(s->new_transient, 256, &buffer);
  }
  kiln_buffer_release(buffer);
  return status;
}

static kiln_status_t make_virtual(scene_t* s) {
  kiln_virtual_options_t options = kiln_virtual_options_default();
  options.reserve_bytes = 1 << 24;
  return kiln_virtual_create(s->device, 256, &options, &s->new_virtual);
}

static kiln_status_t make_array(scene_t* s) {
  kiln_array_options_t options = kiln_array_options_default();
  options.width = 8;
  options.height = 4;
  options.surface = KILN_SWITCH_ON;
  return kiln_array_create(s->device, &options, &s->new_array);
}

static kiln_status_t make_mipmap(scene_t* s) {
  kiln_array_options_t options = kiln_array_options_default();
  options.width = 8;
  options.height = 4;
  return kiln_mipmap_create(s->device, &options, 0, &s->new_mipmap);
}

// Over the scene's array, which the software device lacks.
static kiln_status_t make_texture(scene_t* s) {
  return kiln_texture_create(s->array, NULL, &s->new_texture);
}

static kiln_status_t make_surface(scene_t* s) {
  return kiln_surface_create(s->array, &s->new_surface);
}

static kiln_status_t texture_over_buffer(scene_t* s) {
  kiln_texels_t texels = kiln_texels_default();
  texels.width = 16;
  return kiln_texture_create_buffer(s->buffer, &texels, NULL, &s->new_texture);
}

static kiln_status_t make_parts(scene_t* s) {
  kiln_split_options_t options = kiln_split_options_default();
  options.multiprocessors = 3;
  options.single = KILN_SWITCH_ON;
  return kiln_device_split(s->device, &options, 1, &s->new_device,
                           &s->new_rest);
}

static kiln_tensor_options_t tensor_of(scene_t* s) {
  kiln_tensor_options_t options = kiln_tensor_options_default();
  options.type = KILN_TENSOR_F32;
  options.rank = 2;
  options.address = kiln_buffer_address(s->buffer);
  options.sizes[0] = options.sizes[1] = 8;
  options.strides[0] = 32;
  options.box[0] = options.box[1] = 4;
  return options;
}

#define CASE FAULT_CASE_CALL
#define ENDS FAULT_ENDS_CALL
#include "resource_cases.inc"
#undef CASE
#undef ENDS

static const case_t kCases[] = {
#define FAULT_PREFIX "kiln_"
#define CASE         FAULT_CASE_ROW
#define ENDS         FAULT_ENDS_ROW
#include "resource_cases.inc"
#undef CASE
#undef ENDS
};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

// ---- A scene ----

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  scene_t* s = user;
  driver_books_open(inout_table);
  driver_books_forgive(true);
  s->beside = *inout_table;
  kiln_status_t status =
      kilni_table_cuda_fault_install(inout_table, inout_table);
  s->table = *inout_table;
  return status;
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  (void)user;
  kilni_table_cuda_fault_remove(table);
}

static void make_shared(scene_t* s) {
  kiln_pool_options_t options = kiln_pool_options_default();
  options.interprocess = KILN_SWITCH_ON;
  MUST(kiln_pool_create(s->device, &options, &s->shared_pool));
  kiln_buffer_options_t of = kiln_buffer_options_default();
  of.pool = s->shared_pool;
  of.stream = s->stream;
  MUST(kiln_buffer_create(s->device, 256, &of, &s->shared_buffer));
  MUST(kiln_pool_import(s->device, 0, &s->imported_pool));
}

static void make_views(scene_t* s) {
  MUST(make_array(s));
  s->array = s->new_array;
  s->new_array = NULL;
  MUST(make_mipmap(s));
  s->mipmap = s->new_mipmap;
  s->new_mipmap = NULL;
  MUST(make_texture(s));
  s->texture = s->new_texture;
  s->new_texture = NULL;
  MUST(make_surface(s));
  s->surface = s->new_surface;
  s->new_surface = NULL;
  MUST(kiln_device_split(s->device, NULL, 1, &s->part, NULL));
}

static void make_more(scene_t* s) {
  kiln_event_options_t options = kiln_event_options_default();
  options.timing = KILN_SWITCH_ON;
  MUST(kiln_event_create(s->device, &options, &s->event));
  MUST(kiln_event_record(s->event, s->stream));
  MUST(kiln_event_synchronize(s->event));
  options = kiln_event_options_default();
  options.interprocess = KILN_SWITCH_ON;
  if (!s->soft) {
    MUST(kiln_event_create(s->device, &options, &s->shared));
    MUST(kiln_event_export(s->shared, &s->exported));
    make_shared(s);
  }
  if (!s->soft) make_views(s);
  MUST(kiln_runtime_watch(s->runtime, NULL, &s->watcher));
  kiln_code_options_t code = kiln_code_options_default();
  code.allocator = &s->allocator;
  MUST(kiln_code_create(ptx_view(), &code, &s->code));
  MUST(kiln_module_load(s->device, ptx_view(), NULL, &s->log, &s->module));
  MUST(kiln_kernel_create(s->module, "k", &s->kernel));
  kiln_launch_config_t config = config_of(s);
  MUST(kiln_launch_create(s->kernel, &config, &s->launch));
  MUST(kiln_launch_set(s->launch, 0, kiln_arg_buffer(s->buffer)));
  const kiln_cuda_table_t* t = &s->beside;
  t->cuCtxSetCurrent(kiln_device_context(s->device));
  assert_int_equal(t->cuStreamCreate(&s->raw_stream, 1), 0);
  assert_int_equal(t->cuEventCreate(&s->raw_event, 0), 0);
  s->raw_kernel = kiln_kernel_handle(s->kernel);
  t->cuCtxSetCurrent(s->soft ? NULL : callers());
}

static void open_scene(scene_t* s, bool soft) {
  memset(s, 0, sizeof(*s));
  s->soft = soft;
  fault_alloc_init(&s->watch);
  s->allocator = fault_alloc_allocator(&s->watch);
  s->own = kiln_allocator_libc();
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&s->null_table);
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &s->null_table;
  hooks.wrap = wrap;
  hooks.unwrap = unwrap;
  hooks.user = s;
  hooks.soft_allocator = &s->own;
  kilni_table_nvml_table_null(&s->nvml);
  MUST(kilni_table_nvml_fault_install(&s->nvml, &s->nvml));
  hooks.nvml_table = &s->nvml;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &s->allocator;
  options.soft_workers = 1;
  options.soft_devices = 2;
  options.soft_lanes = "plain";
  MUST(kilni_runtime_create_with(&options, &hooks, &s->runtime));
  MUST(open_device(s, &s->device));
  MUST(kiln_runtime_open_device(s->runtime, soft ? "soft:1" : "cuda:1",
                                &s->peer));
  MUST(kiln_peer_create(s->peer, s->device, &s->access));
  MUST(kiln_buffer_create(s->peer, 256, NULL, &s->far));
  MUST(kiln_stream_create(s->device, NULL, &s->stream));
  MUST(kiln_stream_default(s->device, KILN_STREAM_LEGACY, &s->legacy));
  MUST(kiln_pool_create(s->device, NULL, &s->pool));
  MUST(kiln_transient_create(s->stream, NULL, &s->transient));
  kiln_buffer_t* block = NULL;
  MUST(kiln_transient_acquire(s->transient, 64, &block));
  kiln_buffer_release(block);
  MUST(kiln_buffer_create(s->device, 256, NULL, &s->buffer));
  MUST(make_buffer(s, 0, true, false));
  s->ordered = s->new_buffer;
  s->new_buffer = NULL;
  MUST(make_virtual(s));
  s->memory = s->new_virtual;
  s->new_virtual = NULL;
  make_more(s);
}

static void drop_new(scene_t* s) {
  kiln_watch_close(s->new_watch);
  kiln_texture_release(s->new_texture);
  kiln_surface_release(s->new_surface);
  kiln_array_release(s->new_array);
  kiln_mipmap_release(s->new_mipmap);
  kiln_device_release(s->new_rest);
  s->new_watch = NULL;
  s->new_texture = NULL;
  s->new_surface = NULL;
  s->new_array = NULL;
  s->new_mipmap = NULL;
  s->new_rest = NULL;
  kiln_launch_release(s->new_launch);
  kiln_kernel_release(s->new_kernel);
  kiln_module_release(s->new_module);
  kiln_load_log_release(s->new_log);
  kiln_virtual_release(s->new_virtual);
  kiln_event_release(s->new_event);
  kiln_buffer_release(s->new_buffer);
  kiln_transient_release(s->new_transient);
  kiln_pool_release(s->new_pool);
  kiln_stream_release(s->new_stream);
  kiln_device_release(s->new_device);
  s->new_launch = NULL;
  s->new_kernel = NULL;
  s->new_module = NULL;
  s->new_log = NULL;
  s->new_virtual = NULL;
  s->new_event = NULL;
  s->new_buffer = NULL;
  s->new_transient = NULL;
  s->new_pool = NULL;
  s->new_stream = NULL;
  s->new_device = NULL;
}

// Returns NULL, or what is wrong now that all is gone.
static const char* close_scene(scene_t* s, bool lost) {
  drop_new(s);
  const char* wrong = s->told != s->owned ? "an owner was not told" : NULL;
  s->beside.cuStreamDestroy(s->raw_stream);
  s->beside.cuEventDestroy(s->raw_event);
  kiln_watch_close(s->watcher);
  kiln_texture_release(s->texture);
  kiln_surface_release(s->surface);
  kiln_array_release(s->array);
  kiln_mipmap_release(s->mipmap);
  kiln_device_release(s->part);
  kiln_launch_release(s->launch);
  kiln_kernel_release(s->kernel);
  kiln_load_log_release(s->log);
  kiln_module_release(s->module);
  kiln_code_release(s->code);
  kiln_virtual_release(s->memory);
  kiln_buffer_release(s->shared_buffer);
  kiln_pool_release(s->imported_pool);
  kiln_pool_release(s->shared_pool);
  kiln_event_release(s->shared);
  kiln_event_release(s->event);
  kiln_buffer_release(s->ordered);
  kiln_buffer_release(s->buffer);
  kiln_transient_release(s->transient);
  kiln_pool_release(s->pool);
  kiln_stream_release(s->legacy);
  kiln_stream_release(s->stream);
  kiln_peer_release(s->new_peer);
  kiln_peer_release(s->access);
  kiln_buffer_release(s->far);
  kiln_device_release(s->peer);
  kiln_device_release(s->device);
  kiln_runtime_release(s->runtime);
  kilni_table_nvml_fault_remove(&s->nvml);
  const char* left = fault_left(&s->watch, s->soft, lost);
  return wrong != NULL ? wrong : left;
}

// ---- A run ----

static const kiln_cu_result_t kResults[FAILS] = {
    KILN_CU_SUCCESS, KILN_CU_ERROR_OUT_OF_MEMORY, KILN_CU_ERROR_DEINITIALIZED,
    KILN_CU_ERROR_ILLEGAL_ADDRESS, KILN_CU_SUCCESS};

// Whether the failing call was one that puts context or mode back.
static bool restores(const scene_t* s, bool from_on) {
  const char* hit = kilni_table_cuda_fault_hit(&s->table);
  return hit != NULL && (from_on || strcmp(hit, "cuCtxSetCurrent") == 0 ||
                         strcmp(hit, "cuThreadExchangeStreamCaptureMode") == 0);
}

static const char* check_thread(const scene_t* s) {
  if (driver_books_current() != (s->soft ? NULL : callers())) {
    return "the current context is another one";
  }
  if (driver_books_mode() != KILN_CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return "the capture mode is another one";
  }
  return NULL;
}

// Calls with the `nth` point failing; `out_met` is how many there were.
static kiln_status_t call_with(scene_t* s, const case_t* c, fails_t fails,
                               uint64_t nth, bool from_on, uint64_t* out_met) {
  if (fails == ALLOCATIONS) {
    fault_alloc_arm(&s->watch, nth, from_on);
  } else if (fails == NVML_CALLS) {
    kilni_table_nvml_fault_arm(&s->nvml, nth,
                               from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                               KILN_NVML_ERROR_UNKNOWN);
  } else {
    kilni_table_cuda_fault_arm(&s->table, nth,
                               from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                               kResults[fails]);
  }
  kiln_status_t status = c->call(s);
  *out_met = fails == ALLOCATIONS  ? fault_alloc_disarm(&s->watch)
             : fails == NVML_CALLS ? kilni_table_nvml_fault_disarm(&s->nvml)
                                   : kilni_table_cuda_fault_disarm(&s->table);
  return status;
}

// Returns NULL, or what is wrong.
static const char* run(bool soft, const case_t* c, fails_t fails, uint64_t nth,
                       bool from_on, uint64_t* out_met) {
  static scene_t scene;
  scene_t* s = &scene;
  open_scene(s, soft);
  if (c->prepare != NULL) c->prepare(s);
  kiln_status_t status = call_with(s, c, fails, nth, from_on, out_met);
  bool hit = nth != 0 && *out_met >= nth;
  bool ok = kiln_status_is_ok(status);
  bool lacks = (c->flags & LACKS) != 0 && !ok &&
               (soft || kiln_status_code(status) == KILN_STATUS_UNSUPPORTED);
  kiln_status_free(status);
  const char* wrong = NULL;
  if (!hit && !ok && !lacks) wrong = "it fails though nothing did";
  if (!restores(s, from_on)) {
    if (wrong == NULL) wrong = check_thread(s);
  } else {
    kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
    s->beside.cuThreadExchangeStreamCaptureMode(&mode);
    s->beside.cuCtxSetCurrent(soft ? NULL : callers());
  }
  // What failed once does not stay.
  if (hit && !ok && fails != LOST && c->prepare == NULL) {
    drop_new(s);
    status = c->call(s);
    bool again = kiln_status_is_ok(status);
    if (!again && (c->flags & LACKS) == 0 && wrong == NULL) {
      wrong = "it does not work any more";
      print_error("%s\n", kiln_status_message(status));
    }
    kiln_status_free(status);
  }
  const char* left = close_scene(s, fails == LOST && hit);
  if (wrong == NULL) wrong = left;
  // A release has nobody to tell.
  bool tells = strstr(c->function, "_release") == NULL;
  if (wrong == NULL && hit && ok && tells && (c->flags & MAY_PASS) == 0) {
    wrong = "something failed, and it says OK";
  }
  return wrong;
}

static void sweep_case(bool soft, const case_t* c, fails_t fails,
                       fault_sums_t* sums) {
  uint64_t points = 0;
  uint64_t met = 0;
  for (int from_on = 0; from_on < 2; from_on++) {
    for (uint64_t nth = from_on; nth < RUNS_MAX; nth++) {
      if (from_on && nth > points) break;
      const char* wrong = run(soft, c, fails, nth, from_on != 0, &met);
      sums->runs++;
      if (nth == 0) points = met;
      if (wrong != NULL) {
        sums->wrong++;
        print_error("%s/%s on %s, point %llu of %llu%s, way %d: %s\n",
                    c->function, c->variant, soft ? "soft" : "null",
                    (unsigned long long)nth, (unsigned long long)points,
                    from_on ? " and later" : "", (int)fails, wrong);
      }
      if (nth >= points && !from_on) break;
    }
  }
  sums->points += points;
}

static void sweep(bool soft, fails_t fails) {
  fault_sums_t sums = {0, 0, 0};
  for (int i = 0; i < CASES; i++) {
    sweep_case(soft, &kCases[i], fails, &sums);
  }
  char what[128];
  snprintf(what, sizeof(what), "%s, %s", soft ? "soft" : "null",
           fails == ALLOCATIONS ? "allocations"
           : fails == NVML_CALLS
               ? "calls into NVML"
               : kilni_table_cuda_result_name(kResults[fails]));
  fault_judge(&sums, CASES, 50, what);
  kilni_table_cuda_null_reset();
}

static void test_null(void** state) {
  (void)state;
  for (int fails = 0; fails < FAILS; fails++) sweep(false, (fails_t)fails);
}

static void test_soft(void** state) {
  (void)state;
  for (int fails = 0; fails < FAILS; fails++) sweep(true, (fails_t)fails);
}

// ---- Whether nothing is missing ----

static void test_every_function(void** state) {
  (void)state;
  static const char* const headers[] = {
      "device", "memory",  "pool",   "stream", "virtual", "module",  "launch",
      "green",  "texture", "tensor", "watch",  "peer",    "managed", "dlpack"};
  int count = 0;
  for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
    int found = fault_check_header(FAULT_LIST(kCases), headers[i]);
    assert_true(found > 0);
    count += found;
  }
  print_message("%d functions, %d cases\n", count, (int)CASES);
  assert_true(count > 170);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_function),
      cmocka_unit_test(test_null),
      cmocka_unit_test(test_soft),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
