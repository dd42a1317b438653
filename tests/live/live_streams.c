// SPDX-License-Identifier: Apache-2.0
//
// live: streams, events and contexts on a real driver: a host program's own
// stream, event and context used and left as found; events between processes;
// calls beside a capture, which they must not end; what a call costs beside
// the driver's own.
//
//   live_streams            everything; exit 77 without a GPU
//   live_streams --opens    the other process: opens an event that standard
//                           input brings, in 64 bytes, and waits for it
#define _POSIX_C_SOURCE 200809L
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "kiln/kiln.h"
#include "table/cuda_table.h"
#include "live_check.h"

extern char** environ;

// Rows of a later space, taken by hand.
typedef kiln_cu_result_t (*begin_fn_t)(kiln_cu_stream_t stream, int mode);
typedef kiln_cu_result_t (*end_fn_t)(kiln_cu_stream_t stream, void** graph);
typedef kiln_cu_result_t (*destroy_fn_t)(void* graph);

// A host program with a GPU. one-thread
typedef struct live_t {
  kiln_cuda_table_t cu;  // the host program's own way to the driver
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  const char* program;
} live_t;

static void take(live_t* live, const char* name, int version, void* out) {
  kiln_cu_proc_address_query_t found = 0;
  void* address = NULL;
  CU(live->cu.cuGetProcAddress(name, &address, version,
                               KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found));
  memcpy(out, &address, sizeof(address));
}

static kiln_cu_context_t current(live_t* live) {
  kiln_cu_context_t context = NULL;
  CU(live->cu.cuCtxGetCurrent(&context));
  return context;
}

// ---- A host program's own ----

static void told(void* user) {
  ++*(int*)user;
}

static void host_program(live_t* live) {
  kiln_cu_stream_t raw = NULL;
  kiln_cu_event_t raw_event = NULL;
  int owners = 0;
  kiln_owner_t owner = {told, &owners};
  CU(live->cu.cuCtxSetCurrent(kiln_device_context(live->device)));
  CU(live->cu.cuStreamCreateWithPriority(&raw, KILN_CU_STREAM_NON_BLOCKING,
                                         -1));
  CU(live->cu.cuEventCreate(&raw_event, 0));
  CU(live->cu.cuCtxSetCurrent(NULL));
  kiln_stream_t* stream = NULL;
  kiln_stream_t* own = NULL;
  kiln_stream_t* again = NULL;
  kiln_event_t* event = NULL;
  kiln_buffer_t* buffer = NULL;
  if (!OK(kiln_stream_adopt(live->device, raw, &owner, &stream)) ||
      !OK(kiln_event_adopt(live->device, raw_event, &owner, &event)) ||
      !OK(kiln_stream_create(live->device, NULL, &own))) {
    return;
  }
  IS(kiln_stream_priority(stream) == -1);
  IS(!kiln_stream_with_default(stream));
  OK(kiln_stream_adopt(live->device, kiln_stream_handle(own), NULL, &again));
  IS(again == own);
  kiln_stream_release(again);
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = stream;
  OK(kiln_buffer_create(live->device, 4096, &options, &buffer));
  OK(kiln_buffer_fill_async(buffer, stream, 0, 4096, 0x5a, 1));
  OK(kiln_event_record(event, stream));
  OK(kiln_stream_wait_event(own, event));
  OK(kiln_stream_wait_stream(own, stream));
  uint8_t bytes[4096] = {0};
  OK(kiln_buffer_read_async(buffer, own, 0, sizeof(bytes), bytes));
  OK(kiln_stream_synchronize(own));
  IS(bytes[0] == 0x5a && bytes[4095] == 0x5a);
  kiln_buffer_release(buffer);
  kiln_stream_release(stream);
  kiln_event_release(event);
  kiln_stream_release(own);
  IS(owners == 2);
  IS(current(live) == NULL);
  // They are the host program's still.
  CU(live->cu.cuStreamSynchronize(raw));
  CU(live->cu.cuEventQuery(raw_event));
  CU(live->cu.cuStreamDestroy(raw));
  CU(live->cu.cuEventDestroy(raw_event));
}

static void default_streams(live_t* live) {
  const uint32_t which[] = {KILN_STREAM_LEGACY, KILN_STREAM_PER_THREAD};
  for (int i = 0; i < 2; i++) {
    kiln_stream_t* stream = NULL;
    kiln_buffer_t* buffer = NULL;
    uint32_t word = 0;
    if (!OK(kiln_stream_default(live->device, which[i], &stream)) ||
        !OK(kiln_buffer_create(live->device, 64, NULL, &buffer))) {
      return;
    }
    IS(current(live) == NULL);
    OK(kiln_buffer_fill_async(buffer, stream, 0, 64, 7, 4));
    OK(kiln_buffer_read_async(buffer, stream, 0, 4, &word));
    OK(kiln_stream_synchronize(stream));
    IS(word == 7);
    IS(current(live) == NULL);
    kiln_buffer_release(buffer);
    kiln_stream_release(stream);
  }
}

static void priorities(live_t* live) {
  int32_t least = 9;
  int32_t greatest = 9;
  OK(kiln_device_priorities(live->device, &least, &greatest));
  printf("priorities %d to %d\n", (int)greatest, (int)least);
  for (int32_t priority = least; priority >= greatest; priority--) {
    kiln_stream_options_t options = kiln_stream_options_default();
    options.priority = priority;
    kiln_stream_t* stream = NULL;
    if (!OK(kiln_stream_create(live->device, &options, &stream))) return;
    int said = 9;
    CU(live->cu.cuStreamGetPriority(kiln_stream_handle(stream), &said));
    IS(said == priority);
    kiln_stream_release(stream);
  }
}

static void times(live_t* live) {
  kiln_event_options_t options = kiln_event_options_default();
  options.timing = KILN_SWITCH_ON;
  options.blocking = KILN_SWITCH_ON;
  kiln_event_t* start = NULL;
  kiln_event_t* end = NULL;
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* buffer = NULL;
  uint64_t elapsed = 0;
  if (!OK(kiln_event_create(live->device, &options, &start)) ||
      !OK(kiln_event_create(live->device, &options, &end)) ||
      !OK(kiln_stream_create(live->device, NULL, &stream)) ||
      !OK(kiln_buffer_create(live->device, 256 << 20, NULL, &buffer))) {
    return;
  }
  OK(kiln_event_record(start, stream));
  OK(kiln_buffer_fill_async(buffer, stream, 0, 256 << 20, 1, 1));
  OK(kiln_event_record(end, stream));
  OK(kiln_event_synchronize(end));
  OK(kiln_event_elapsed(start, end, &elapsed));
  IS(elapsed > 10000 && elapsed < 1000000000);
  kiln_buffer_release(buffer);
  kiln_stream_release(stream);
  kiln_event_release(end);
  kiln_event_release(start);
}

// ---- Beside a capture ----

// Everything here is forbidden while a stream is captured in global mode.
static void beside_a_capture(live_t* live) {
  begin_fn_t begin;
  end_fn_t end;
  destroy_fn_t destroy;
  take(live, "cuStreamBeginCapture", 10010, &begin);
  take(live, "cuStreamEndCapture", 10000, &end);
  take(live, "cuGraphDestroy", 10000, &destroy);
  kiln_stream_t* captured = NULL;
  kiln_stream_t* other = NULL;
  kiln_event_t* event = NULL;
  kiln_buffer_t* buffer = NULL;
  void* graph = NULL;
  bool ready = false;
  if (!OK(kiln_stream_create(live->device, NULL, &captured)) ||
      !OK(kiln_stream_create(live->device, NULL, &other)) ||
      !OK(kiln_event_create(live->device, NULL, &event))) {
    return;
  }
  CU(begin(kiln_stream_handle(captured), 0));
  OK(kiln_event_record(event, other));
  OK(kiln_stream_query(other, &ready));
  OK(kiln_stream_synchronize(other));
  OK(kiln_event_query(event, &ready));
  OK(kiln_event_synchronize(event));
  OK(kiln_buffer_create(live->device, 4096, NULL, &buffer));
  kiln_buffer_release(buffer);
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = other;
  OK(kiln_buffer_create(live->device, 4096, &options, &buffer));
  kiln_buffer_release(buffer);
  CU(end(kiln_stream_handle(captured), &graph));
  if (graph != NULL) CU(destroy(graph));
  kiln_event_release(event);
  kiln_stream_release(other);
  kiln_stream_release(captured);
}

// ---- Between processes ----

static int open_it(void) {
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_event_t* event = NULL;
  kiln_stream_t* stream = NULL;
  kiln_event_export_t exported;
  if (read(0, &exported, sizeof(exported)) != (ssize_t)sizeof(exported)) {
    return 3;
  }
  if (OK(kiln_runtime_create(NULL, &runtime)) &&
      OK(kiln_runtime_open_device(runtime, "cuda:0", &device)) &&
      OK(kiln_event_import(device, &exported, &event)) &&
      OK(kiln_stream_create(device, NULL, &stream))) {
    OK(kiln_stream_wait_event(stream, event));
    OK(kiln_stream_synchronize(stream));
    OK(kiln_event_synchronize(event));
  }
  kiln_stream_release(stream);
  kiln_event_release(event);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return failures == 0 ? 0 : 1;
}

static void between_processes(live_t* live) {
  kiln_event_options_t options = kiln_event_options_default();
  options.interprocess = KILN_SWITCH_ON;
  kiln_event_t* event = NULL;
  kiln_stream_t* stream = NULL;
  kiln_event_export_t exported;
  int fds[2];
  if (!OK(kiln_event_create(live->device, &options, &event)) ||
      !OK(kiln_stream_create(live->device, NULL, &stream)) ||
      !OK(kiln_event_export(event, &exported)) || !IS(pipe(fds) == 0)) {
    return;
  }
  OK(kiln_event_record(event, stream));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[0], 0);
  posix_spawn_file_actions_addclose(&actions, fds[1]);
  char name[4096];
  char word[] = "--opens";
  snprintf(name, sizeof(name), "%s", live->program);
  char* const argv[] = {name, word, NULL};
  pid_t child = -1;
  fflush(stdout);
  int error = posix_spawn(&child, name, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[0]);
  IS(write(fds[1], &exported, sizeof(exported)) == (ssize_t)sizeof(exported));
  close(fds[1]);
  int how = 0;
  if (IS(error == 0) && IS(waitpid(child, &how, 0) == child)) {
    IS(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  }
  kiln_stream_release(stream);
  kiln_event_release(event);
}

// ---- What it costs ----

enum { COST_ROUNDS = 20000 };

static void costs(live_t* live) {
  kiln_stream_t* stream = NULL;
  kiln_event_t* event = NULL;
  if (!OK(kiln_stream_create(live->device, NULL, &stream)) ||
      !OK(kiln_event_create(live->device, NULL, &event))) {
    return;
  }
  kiln_cu_stream_t raw = kiln_stream_handle(stream);
  kiln_cu_event_t raw_event = kiln_event_handle(event);
  bool ready = false;
  uint64_t at[7];
  at[0] = kilni_base_time_ns();
  for (int i = 0; i < COST_ROUNDS; i++) live->cu.cuStreamQuery(raw);
  at[1] = kilni_base_time_ns();
  for (int i = 0; i < COST_ROUNDS; i++) {
    kiln_status_free(kiln_stream_query(stream, &ready));
  }
  at[2] = kilni_base_time_ns();
  for (int i = 0; i < COST_ROUNDS; i++) live->cu.cuEventQuery(raw_event);
  at[3] = kilni_base_time_ns();
  for (int i = 0; i < COST_ROUNDS; i++) {
    kiln_status_free(kiln_event_query(event, &ready));
  }
  at[4] = kilni_base_time_ns();
  for (int i = 0; i < COST_ROUNDS; i++) live->cu.cuEventRecord(raw_event, raw);
  at[5] = kilni_base_time_ns();
  for (int i = 0; i < COST_ROUNDS; i++) {
    kiln_status_free(kiln_event_record(event, stream));
  }
  at[6] = kilni_base_time_ns();
  static const char* const names[] = {"stream query", "event query",
                                      "event record"};
  for (int i = 0; i < 3; i++) {
    printf("%s: driver %.0f ns, kiln %.0f ns\n", names[i],
           (double)(at[2 * i + 1] - at[2 * i]) / COST_ROUNDS,
           (double)(at[2 * i + 2] - at[2 * i + 1]) / COST_ROUNDS);
  }
  OK(kiln_stream_synchronize(stream));
  kiln_event_release(event);
  kiln_stream_release(stream);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--opens") == 0) return open_it();
  static live_t live;
  live.program = argv[0];
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = kiln_allocator_libc();
  static kilni_base_dynlib_t*
      library;  // never closed: the driver keeps threads
  kiln_status_t status =
      kilni_table_cuda_table_open(&host, NULL, &live.cu, &library);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_create(NULL, &live.runtime);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(live.runtime, "cuda:0", &live.device);
  }
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(live.runtime);
    return 77;
  }
  IS(current(&live) == NULL);
  priorities(&live);
  host_program(&live);
  default_streams(&live);
  times(&live);
  beside_a_capture(&live);
  between_processes(&live);
  costs(&live);
  IS(current(&live) == NULL);
  kiln_device_release(live.device);
  kiln_runtime_release(live.runtime);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
