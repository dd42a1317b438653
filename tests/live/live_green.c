// SPDX-License-Identifier: Apache-2.0
//
// live: parts of a GPU (green contexts): which multiprocessors the blocks of a
// kernel run on, and what parts share with the device that was split.
//
// The kernel is loaded on the whole device and writes to a buffer of it. That
// the blocks stay on their part is the driver's promise but for the cases that
// its manual names, so a block elsewhere is a failure here.
//
// Exit code 77 without a GPU, or where the driver has no parts.
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "kiln/kiln.h"
#include "table/cuda_table.h"
#include "live_check.h"

enum { BLOCKS = 4096, MOST_NUMBERS = 1024 };

// places[block] = the multiprocessor it ran on; takes a while, so that blocks
// do not all fit behind each other on a few.
static const char place_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry place(.param .u64 places) {\n"
    "  .reg .pred %p<2>;\n  .reg .b32 %r<6>;\n  .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d1, [places];\n"
    "  cvta.to.global.u64 %d1, %d1;\n"
    "  mov.u32 %r1, %ctaid.x;\n"
    "  mov.u32 %r2, %smid;\n"
    "  mov.u32 %r3, 0;\n"
    "LOOP:\n"
    "  mul.wide.u32 %d2, %r1, 4;\n"
    "  add.u64 %d3, %d1, %d2;\n"
    "  st.volatile.global.u32 [%d3], %r2;\n"
    "  add.u32 %r3, %r3, 1;\n"
    "  setp.lt.u32 %p1, %r3, 500;\n"
    "  @%p1 bra LOOP;\n"
    "  ret;\n}\n";

// A host program with a GPU. one-thread
typedef struct live_t {
  kiln_cuda_table_t cu;  // the host program's own way to the driver
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_buffer_t* places;
} live_t;

// Which multiprocessors a launch on a stream used.
static uint32_t used(live_t* live, kiln_stream_t* stream,
                     bool seen[MOST_NUMBERS]) {
  static uint32_t numbers[BLOCKS];
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_argument_t argument = kiln_arg_buffer(live->places);
  uint32_t count = 0;
  config.grid[0] = BLOCKS;
  memset(seen, 0, MOST_NUMBERS * sizeof(*seen));
  memset(numbers, 0xff, sizeof(numbers));
  if (!OK(kiln_kernel_launch(live->kernel, stream, &config, &argument, 1)) ||
      !OK(kiln_buffer_read_async(live->places, stream, 0, sizeof(numbers),
                                 numbers)) ||
      !OK(kiln_stream_synchronize(stream))) {
    return 0;
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (!IS(numbers[i] < MOST_NUMBERS)) return 0;
    if (!seen[numbers[i]]) count++;
    seen[numbers[i]] = true;
  }
  return count;
}

static void one_stream(live_t* live, kiln_device_t* device, const char* what,
                       kiln_stream_t* stream, bool seen[MOST_NUMBERS]) {
  uint32_t most = kiln_device_info(device)->multiprocessors;
  uint32_t count = used(live, stream, seen);
  printf("%s, %s: blocks ran on %u of %u multiprocessors\n",
         kiln_device_name(device), what, (unsigned)count, (unsigned)most);
  IS(count > 0 && count <= most);
}

// Streams of two parts, at once and apart, and the default stream of one.
static void two_parts(live_t* live) {
  static bool first[MOST_NUMBERS];
  static bool second[MOST_NUMBERS];
  static bool third[MOST_NUMBERS];
  kiln_device_t* parts[2] = {NULL, NULL};
  kiln_device_t* rest = NULL;
  kiln_stream_t* streams[2] = {NULL, NULL};
  kiln_stream_t* legacy = NULL;
  if (!OK(kiln_device_split(live->device, NULL, 2, parts, &rest))) return;
  IS(rest != NULL);
  for (int i = 0; i < 2; i++) {
    OK(kiln_stream_create(parts[i], NULL, &streams[i]));
  }
  OK(kiln_stream_default(parts[0], KILN_STREAM_LEGACY, &legacy));
  if (streams[0] != NULL && streams[1] != NULL && legacy != NULL) {
    one_stream(live, parts[0], "own stream", streams[0], first);
    one_stream(live, parts[1], "own stream", streams[1], second);
    one_stream(live, parts[0], "default stream", legacy, third);
    for (int i = 0; i < MOST_NUMBERS; i++) IS(!(first[i] && second[i]));
    OK(kiln_stream_wait_stream(streams[0], streams[1]));
    OK(kiln_stream_synchronize(streams[0]));
  }
  OK(kiln_device_synchronize(parts[1]));
  // A part is released before its stream.
  kiln_device_release(parts[0]);
  kiln_device_release(parts[1]);
  kiln_device_release(rest);
  kiln_stream_release(legacy);
  kiln_stream_release(streams[0]);
  kiln_stream_release(streams[1]);
}

// All blocks of a cooperative launch are on the part at once, or refused.
static void cooperative(live_t* live) {
  kiln_device_t* part = NULL;
  kiln_stream_t* stream = NULL;
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t with = kiln_launch_attributes_default();
  const kiln_argument_t argument = kiln_arg_buffer(live->places);
  uint32_t each = 0;
  if (!OK(kiln_device_split(live->device, NULL, 1, &part, NULL)) ||
      !OK(kiln_stream_create(part, NULL, &stream)) ||
      !OK(kiln_kernel_max_blocks(live->kernel, 1024, 0, &each))) {
    kiln_stream_release(stream);
    kiln_device_release(part);
    return;
  }
  const uint32_t most = each * kiln_device_info(part)->multiprocessors;
  with.cooperative = KILN_SWITCH_ON;
  config.attributes = &with;
  config.block[0] = 1024;
  config.grid[0] = most;
  IS(most <= BLOCKS);
  OK(kiln_kernel_launch(live->kernel, stream, &config, &argument, 1));
  OK(kiln_stream_synchronize(stream));
  config.grid[0] = most + 1;
  kiln_status_t status =
      kiln_kernel_launch(live->kernel, stream, &config, &argument, 1);
  printf("%u blocks on a part that has %u at once: %s\n", (unsigned)most + 1,
         (unsigned)most,
         kiln_status_is_ok(status) ? "taken" : kiln_status_message(status));
  IS(kiln_status_code(status) == KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  OK(kiln_stream_synchronize(stream));
  kiln_stream_release(stream);
  kiln_device_release(part);
}

// What hangs off a part: memory, an event, code, and a part of the part.
static void whole_part(live_t* live) {
  static bool seen[MOST_NUMBERS];
  kiln_split_options_t options = kiln_split_options_default();
  kiln_device_t* part = NULL;
  kiln_device_t* less = NULL;
  kiln_stream_t* stream = NULL;
  kiln_event_t* event = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  options.multiprocessors = kiln_device_info(live->device)->multiprocessors / 2;
  if (!OK(kiln_device_split(live->device, &options, 1, &part, NULL))) return;
  kiln_bytes_view_t image = {(const uint8_t*)place_ptx, sizeof(place_ptx)};
  kiln_buffer_options_t memory = kiln_buffer_options_default();
  OK(kiln_stream_create(part, NULL, &stream));
  memory.stream = stream;
  OK(kiln_event_create(part, NULL, &event));
  OK(kiln_buffer_create(part, 4096, &memory, &buffer));
  OK(kiln_module_load(part, image, NULL, NULL, &module));
  if (module != NULL) OK(kiln_kernel_create(module, "place", &kernel));
  if (stream != NULL && event != NULL && buffer != NULL && kernel != NULL) {
    kiln_launch_config_t config = kiln_launch_config_default();
    kiln_argument_t argument = kiln_arg_buffer(buffer);
    config.grid[0] = 1024;
    OK(kiln_kernel_launch(kernel, stream, &config, &argument, 1));
    OK(kiln_event_record(event, stream));
    OK(kiln_event_synchronize(event));
  }
  options.multiprocessors = 0;
  if (OK(kiln_device_split(part, &options, 1, &less, NULL))) {
    kiln_stream_t* inner = NULL;
    if (OK(kiln_stream_create(less, NULL, &inner))) {
      one_stream(live, less, "own stream", inner, seen);
    }
    kiln_stream_release(inner);
  }
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  kiln_device_release(less);
  kiln_device_release(part);
  kiln_buffer_release(buffer);
  kiln_event_release(event);
  kiln_stream_release(stream);
}

// A host program's stream of a part is of that part and of no other device.
static void foreign_stream(live_t* live) {
  kiln_device_t* part = NULL;
  kiln_cu_stream_t raw = NULL;
  kiln_stream_t* stream = NULL;
  kiln_stream_t* wrong = NULL;
  if (!OK(kiln_device_split(live->device, NULL, 1, &part, NULL))) return;
  CU(live->cu.cuCtxSetCurrent(kiln_device_context(part)));
  CU(live->cu.cuStreamCreate(&raw, KILN_CU_STREAM_NON_BLOCKING));
  CU(live->cu.cuCtxSetCurrent(NULL));
  OK(kiln_stream_adopt(part, raw, NULL, &stream));
  kiln_status_t refused = kiln_stream_adopt(live->device, raw, NULL, &wrong);
  IS(kiln_status_code(refused) == KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(refused);
  kiln_stream_release(wrong);
  kiln_stream_release(stream);
  CU(live->cu.cuStreamDestroy(raw));
  kiln_device_release(part);
}

// What this driver does with a part that is current in two threads: said, and
// no failure.
static void query_free(void* user) {
  kiln_device_t* part = user;
  uint64_t bytes = 0;
  kiln_status_t status = kiln_device_query_free(part, &bytes);
  printf("a part that is current elsewhere: %s\n",
         kiln_status_is_ok(status) ? "works in a second thread"
                                   : kiln_status_message(status));
  kiln_status_free(status);
}

static void second_thread(live_t* live) {
  kiln_device_t* part = NULL;
  kilni_base_thread_t thread;
  memset(&thread, 0, sizeof(thread));
  if (!OK(kiln_device_split(live->device, NULL, 1, &part, NULL))) return;
  CU(live->cu.cuCtxSetCurrent(kiln_device_context(part)));
  if (OK(kilni_base_thread_start(&thread, "part", query_free, part))) {
    kilni_base_thread_join(&thread);
  }
  CU(live->cu.cuCtxSetCurrent(NULL));
  kiln_device_release(part);
}

static bool set_up(live_t* live) {
  kiln_bytes_view_t image = {(const uint8_t*)place_ptx, sizeof(place_ptx)};
  return OK(kiln_module_load(live->device, image, NULL, NULL, &live->module)) &&
         OK(kiln_kernel_create(live->module, "place", &live->kernel)) &&
         OK(kiln_buffer_create(live->device, BLOCKS * 4, NULL, &live->places));
}

static kiln_status_t open_all(live_t* live) {
  static kilni_base_dynlib_t*
      library;  // never closed: the driver keeps threads
  kiln_host_t host;
  kiln_split_t split;
  memset(&host, 0, sizeof(host));
  host.allocator = kiln_allocator_libc();
  kiln_status_t status =
      kilni_table_cuda_table_open(&host, NULL, &live->cu, &library);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_create(NULL, &live->runtime);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(live->runtime, "cuda:0", &live->device);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_device_query_split(live->device, NULL, &split);
  }
  if (!kiln_status_is_ok(status)) return status;
  printf("%u multiprocessors: %u parts of %u, %u left\n", (unsigned)split.all,
         (unsigned)split.parts, (unsigned)split.multiprocessors,
         (unsigned)split.rest);
  return kiln_ok();
}

int main(void) {
  static live_t live;
  int code = 0;
  kiln_status_t status = open_all(&live);
  if (kiln_status_is_ok(status)) {
    if (set_up(&live)) {
      two_parts(&live);
      cooperative(&live);
      whole_part(&live);
      foreign_stream(&live);
      second_thread(&live);
      kiln_cu_context_t current = NULL;
      CU(live.cu.cuCtxGetCurrent(&current));
      IS(current == NULL);
    }
    printf("%d failures\n", failures);
    code = failures == 0 ? 0 : 1;
  } else {
    bool absent = kiln_status_code(status) == KILN_STATUS_UNSUPPORTED ||
                  live.device == NULL;
    printf("%s: %s\n", absent ? "skipped" : "failed",
           kiln_status_message(status));
    kiln_status_free(status);
    code = absent ? 77 : 1;
  }
  kiln_buffer_release(live.places);
  kiln_kernel_release(live.kernel);
  kiln_module_release(live.module);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  return code;
}
