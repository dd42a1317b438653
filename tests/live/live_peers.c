// SPDX-License-Identifier: Apache-2.0
//
// live: two devices and what passes between them: access that is given and
// taken back, of contexts and of pools, copies both ways, events across, and at
// last a kernel that strays without access.
//
//   live_peers [DEVICE DEVICE]   cuda:0 cuda:1
//
// Exit code 77 where the two are not there, or do not reach each other. With
// soft and soft:1 it runs in CI.
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"
#include "live_check.h"

enum { COUNT = 1 << 18, BYTES = COUNT * 4, THREADS = 256 };

// to[i] = from[i] + 1
static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry next(.param .u64 to, .param .u64 from)\n{\n"
    "  .reg .b32 %r<8>;\n  .reg .b64 %rd<6>;\n"
    "  ld.param.u64 %rd1, [to];\n  ld.param.u64 %rd2, [from];\n"
    "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r2, %ntid.x;\n"
    "  mov.u32 %r3, %tid.x;\n  mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "  mul.wide.u32 %rd3, %r4, 4;\n"
    "  add.s64 %rd4, %rd1, %rd3;\n  add.s64 %rd5, %rd2, %rd3;\n"
    "  ld.global.u32 %r5, [%rd5];\n  add.u32 %r6, %r5, 1;\n"
    "  st.global.u32 [%rd4], %r6;\n  ret;\n}\n";

// One of the two, with what is made on it. one-thread
typedef struct side_t {
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_kernel_t* kernel;
  kiln_buffer_t* buffer;  // plain
} side_t;

static uint32_t read_back[COUNT];

static bool make_side(side_t* side) {
  kiln_bytes_view_t text = {(const uint8_t*)kPtx, strlen(kPtx)};
  kiln_module_t* module = NULL;
  if (!OK(kiln_stream_create(side->device, NULL, &side->stream)) ||
      !OK(kiln_module_load(side->device, text, NULL, NULL, &module))) {
    return false;
  }
  OK(kiln_kernel_create(module, "next", &side->kernel));
  kiln_module_release(module);
  OK(kiln_buffer_create(side->device, BYTES, NULL, &side->buffer));
  return side->kernel != NULL && side->buffer != NULL;
}

static void end_side(side_t* side) {
  kiln_buffer_release(side->buffer);
  kiln_kernel_release(side->kernel);
  kiln_stream_release(side->stream);
  kiln_device_release(side->device);
}

// Runs the kernel on a side, and waits for it.
static kiln_status_t run(side_t* side, kiln_buffer_t* to, kiln_buffer_t* from) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = COUNT / THREADS;
  config.block[0] = THREADS;
  // As numbers: the buffers are of either device.
  kiln_argument_t arguments[] = {kiln_arg_u64(kiln_buffer_address(to)),
                                 kiln_arg_u64(kiln_buffer_address(from))};
  kiln_status_t status =
      kiln_kernel_launch(side->kernel, side->stream, &config, arguments, 2);
  if (!kiln_status_is_ok(status)) return status;
  return kiln_stream_synchronize(side->stream);
}

static void holds(kiln_buffer_t* buffer, uint32_t wanted, int line) {
  if (!OK(kiln_buffer_read(buffer, 0, BYTES, read_back))) return;
  size_t wrong = 0;
  for (size_t i = 0; i < COUNT; i++) wrong += read_back[i] != wanted;
  live_check_is(wrong == 0, "the bytes are others", __FILE__, line);
}
#define HOLDS(buffer, wanted) holds((buffer), (wanted), __LINE__)

// ---- What there is to see ----

static void copies(side_t* a, side_t* b) {
  OK(kiln_buffer_fill(a->buffer, 0, BYTES, 11, 4));
  OK(kiln_buffer_fill(b->buffer, 0, BYTES, 12, 4));
  OK(kiln_buffer_copy(b->buffer, 0, a->buffer, 0, BYTES));
  HOLDS(b->buffer, 11);
  // In the order of a stream of the source, then of the target.
  OK(kiln_buffer_fill_async(a->buffer, a->stream, 0, BYTES, 13, 4));
  OK(kiln_buffer_copy_async(b->buffer, a->stream, 0, a->buffer, 0, BYTES));
  OK(kiln_stream_synchronize(a->stream));
  HOLDS(b->buffer, 13);
  OK(kiln_buffer_fill_async(b->buffer, b->stream, 0, BYTES, 14, 4));
  OK(kiln_buffer_copy_async(a->buffer, b->stream, 0, b->buffer, 0, BYTES));
  OK(kiln_stream_synchronize(b->stream));
  HOLDS(a->buffer, 14);
}

// What is done on the one device is seen on the other, behind an event of the
// first, and behind its whole stream.
static void events(side_t* a, side_t* b) {
  kiln_event_t* event = NULL;
  OK(kiln_event_create(a->device, NULL, &event));
  for (uint32_t round = 0; round < 20; round++) {
    OK(kiln_buffer_fill_async(a->buffer, a->stream, 0, BYTES, 100 + round, 4));
    if (round % 2 == 0) {
      OK(kiln_event_record(event, a->stream));
      OK(kiln_stream_wait_event(b->stream, event));
    } else {
      OK(kiln_stream_wait_stream(b->stream, a->stream));
    }
    OK(kiln_buffer_copy_async(b->buffer, b->stream, 0, a->buffer, 0, BYTES));
    OK(kiln_stream_wait_stream(a->stream, b->stream));
  }
  OK(kiln_stream_synchronize(b->stream));
  HOLDS(b->buffer, 119);
  kiln_event_release(event);
}

static void give_access(side_t* a, side_t* b) {
  kiln_peer_t* access = NULL;
  kiln_peer_t* again = NULL;
  OK(kiln_peer_create(b->device, a->device, &access));
  OK(kiln_peer_create(b->device, a->device, &again));
  OK(kiln_buffer_fill(a->buffer, 0, BYTES, 30, 4));
  OK(run(b, b->buffer, a->buffer));
  HOLDS(b->buffer, 31);
  // While one is left there is access, also to what is made later.
  kiln_peer_release(again);
  kiln_buffer_t* later = NULL;
  OK(kiln_buffer_create(a->device, BYTES, NULL, &later));
  OK(run(b, later, a->buffer));
  HOLDS(later, 31);
  kiln_buffer_release(later);
  kiln_peer_release(access);
}

static uint32_t allowed(kiln_pool_t* pool, side_t* side) {
  uint32_t now = 99;
  OK(kiln_pool_query_access(pool, side->device, &now));
  return now;
}

static void pools(side_t* a, side_t* b) {
  kiln_pool_t* pool = NULL;
  kiln_buffer_t* buffer = NULL;
  if (!OK(kiln_pool_create(a->device, NULL, &pool))) return;
  IS(allowed(pool, a) == KILN_ACCESS_READ_WRITE);
  IS(allowed(pool, b) == KILN_ACCESS_NONE);
  OK(kiln_pool_allow(pool, b->device, KILN_ACCESS_READ_WRITE));
  IS(allowed(pool, b) == KILN_ACCESS_READ_WRITE);
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = a->stream;
  options.pool = pool;
  OK(kiln_buffer_create(a->device, BYTES, &options, &buffer));
  OK(kiln_buffer_fill_async(buffer, a->stream, 0, BYTES, 40, 4));
  OK(kiln_stream_wait_stream(b->stream, a->stream));
  OK(run(b, b->buffer, buffer));
  HOLDS(b->buffer, 41);
  OK(run(b, buffer, b->buffer));
  OK(kiln_buffer_copy(a->buffer, 0, buffer, 0, BYTES));
  HOLDS(a->buffer, 42);
  OK(kiln_pool_allow(pool, b->device, KILN_ACCESS_NONE));
  IS(allowed(pool, b) == KILN_ACCESS_NONE);
  // A pool ends with access that is still given.
  OK(kiln_pool_allow(pool, b->device, KILN_ACCESS_READ_WRITE));
  kiln_pool_release(pool);
  kiln_buffer_release(buffer);
  OK(kiln_stream_synchronize(a->stream));
}

// The last of all: the context does not survive it.
static void stray(side_t* a, side_t* b) {
  kiln_status_t status = run(b, b->buffer, a->buffer);
  kiln_status_native_t native;
  IS(kiln_status_code(status) == KILN_STATUS_DEVICE_LOST);
  IS(kiln_status_native(status, &native) &&
     strcmp(native.name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
  kiln_status_free(status);
}

static bool open_side(kiln_runtime_t* runtime, const char* label,
                      side_t* side) {
  kiln_status_t status =
      kiln_runtime_open_device(runtime, label, &side->device);
  if (kiln_status_is_ok(status)) return true;
  printf("%s: %s\n", label, kiln_status_message(status));
  kiln_status_free(status);
  return false;
}

int main(int argc, char** argv) {
  side_t a = {0};
  side_t b = {0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.soft_devices = 2;
  kiln_runtime_t* runtime = NULL;
  if (!OK(kiln_runtime_create(&options, &runtime))) return 1;
  bool open = open_side(runtime, argc > 2 ? argv[1] : "cuda:0", &a) &&
              open_side(runtime, argc > 2 ? argv[2] : "cuda:1", &b);
  kiln_peer_info_t info = {0};
  if (open && OK(kiln_peer_query(a.device, b.device, &info))) {
    printf("access %u, atomics %u, arrays %u, rank %d\n", (unsigned)info.access,
           (unsigned)info.atomics, (unsigned)info.arrays, (int)info.rank);
  }
  bool skip = failures == 0 && info.access == 0;
  if (skip) {
    printf("skipped: no two devices reach each other\n");
  } else if (make_side(&a) && make_side(&b)) {
    copies(&a, &b);
    events(&a, &b);
    give_access(&a, &b);
    give_access(&b, &a);
    pools(&a, &b);
    pools(&b, &a);
    if (failures == 0) stray(&a, &b);
  }
  end_side(&a);
  end_side(&b);
  kiln_runtime_release(runtime);
  if (skip) return 77;
  printf("%d failures\n", failures);
  return failures != 0;
}
