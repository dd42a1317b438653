// SPDX-License-Identifier: Apache-2.0
//
// bench: what the benches of the library share; see bench_world.h.
#include "bench_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"

static bench_report_t g_report;

static void start_one(const bench_world_t* world, const bench_job_t* job) {
  if (job->pipeline != NULL) {
    kiln_dispatch_options_t options = kiln_dispatch_options_default();
    options.clear_outputs = KILN_SWITCH_OFF;
    bench_expect(kiln_pipeline_dispatch(job->pipeline, world->stream,
                                        job->bindings, job->count, &options,
                                        NULL));
  } else if (job->plan == NULL) {
    bench_expect(kiln_buffer_copy_async(job->copies_to, world->stream, 0,
                                        job->copies_from, 0, job->bytes));
  } else {
    bench_expect(kiln_library_plan_run(job->plan, world->stream, job->bindings,
                                       job->count));
  }
}

double bench_world_spent(const bench_world_t* world, const bench_job_t* job,
                         uint32_t runs) {
  uint64_t least = UINT64_MAX;
  start_one(world, job);
  for (int round = 0; round < BENCH_ROUNDS; round++) {
    bench_expect(kiln_event_record(world->start, world->stream));
    for (uint32_t i = 0; i < runs; i++) start_one(world, job);
    bench_expect(kiln_event_record(world->end, world->stream));
    bench_expect(kiln_stream_synchronize(world->stream));
    uint64_t ns = 0;
    bench_expect(kiln_event_elapsed(world->start, world->end, &ns));
    if (ns < least) least = ns;
  }
  return (double)least / runs;
}

double bench_plain_spent(bench_plain_run_t run, void* context) {
  uint64_t least = UINT64_MAX;
  for (int round = 0; round <= BENCH_ROUNDS; round++) {
    uint64_t start = bench_time_ns();
    run(context);
    uint64_t ns = bench_time_ns() - start;
    if (ns < least) least = ns;
  }
  return (double)(least > 0 ? least : 1);
}

kiln_buffer_t* bench_world_memory(const bench_world_t* world, uint64_t bytes,
                                  const void* data) {
  kiln_buffer_t* buffer = NULL;
  bench_expect(
      kiln_buffer_create(world->device, bytes + (bytes == 0), NULL, &buffer));
  if (data != NULL) {
    bench_expect(kiln_buffer_write(buffer, 0, (size_t)bytes, data));
  }
  return buffer;
}

bench_job_t bench_world_job(const bench_world_t* world, const char* entry,
                            const kiln_library_options_t* options) {
  bench_job_t job;
  memset(&job, 0, sizeof(job));
  bench_expect(
      kiln_library_plan_create(world->dispatcher, entry, options, &job.plan));
  return job;
}

void bench_job_bind(bench_job_t* job, kiln_buffer_t* buffer) {
  bench_need(job->count < BENCH_ARGUMENTS, "space for a binding");
  job->bindings[job->count++] = kiln_bind_buffer(buffer);
}

static void open_world(bench_world_t* world) {
  bench_expect(kiln_dispatcher_create(world->device, NULL, &world->dispatcher));
  bench_expect(kiln_dispatcher_stream(world->dispatcher, 0, &world->stream));
  kiln_event_options_t timed = kiln_event_options_default();
  timed.timing = KILN_SWITCH_ON;
  bench_expect(kiln_event_create(world->device, &timed, &world->start));
  bench_expect(kiln_event_create(world->device, &timed, &world->end));
  world->soft = kiln_device_info(world->device)->kind == KILN_DEVICE_KIND_SOFT;
}

static void close_world(bench_world_t* world) {
  kiln_event_release(world->start);
  kiln_event_release(world->end);
  kiln_dispatcher_release(world->dispatcher);
  kiln_device_release(world->device);
}

static uint32_t within(uint32_t value, uint32_t least, uint32_t most) {
  return value < least ? least : value > most ? most : value;
}

int bench_world_main(int argc, char** argv, uint32_t least, uint32_t most,
                     bench_world_run_t run) {
  bench_world_t world;
  memset(&world, 0, sizeof(world));
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  world.log = within(argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10)
                              : (uint32_t)BENCH_WORLD_LOG,
                     least, most);
  world.runs = world.log < BENCH_SMALL_LOG ? 1 : BENCH_RUNS;
  world.report = &g_report;
  kiln_runtime_t* runtime = NULL;
  bench_expect(kiln_runtime_create(NULL, &runtime));
  kiln_status_t status =
      kiln_runtime_open_device(runtime, device, &world.device);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return BENCH_SKIPPED;
  }
  g_report.device = device;
  open_world(&world);
  run(&world);
  close_world(&world);
  kiln_runtime_release(runtime);
  bench_report_print(&g_report);
  return 0;
}
