// SPDX-License-Identifier: Apache-2.0
//
// cli: files made ready on one device and run in turns, each timed.
#define _POSIX_C_SOURCE 200809L
#include "cli/bench_job.h"

#include <string.h>

#include "cli/cli_clock.h"
#include "cli/cli_progress.h"
#include "cli/run_entry.h"
#include "cli/run_library.h"
#include "cli/run_pipeline.h"
#include "cli/run_program.h"

// Target time of a sample without --runs.
#define SAMPLE_NS   1000000u
#define MAX_RUNS    1000u
#define FLOOR_BATCH 20u

static const char kNothing[] = "program nothing() work 1 block 32 { }\n";

// ---- Making ready ----

// The bytes that a run moves: a program declares the direction of each buffer;
// for a kernel, the options decide.
static void count_work(kilni_cli_bench_file_t* f) {
  const kilni_cli_request_t* r = &f->request;
  kiln_program_parameter_info_t p;
  kiln_pipeline_parameter_t q;
  uint64_t longest = 0;
  for (uint32_t i = 0; i < f->plan.count; i++) {
    const kilni_cli_slot_t* slot = &f->plan.slots[i];
    if (slot->arg != NULL) continue;
    bool both = slot->in != NULL && slot->out != NULL;
    if (f->entry != NULL && kiln_library_plan_parameter(f->entry, i, &q)) {
      both = q.role == KILN_PROGRAM_ROLE_INOUT;
    } else if (r->program != NULL &&
               kiln_program_parameter(r->program, i, &p)) {
      both = p.role == KILN_PROGRAM_ROLE_INOUT;
    }
    f->bytes += slot->shape.bytes * (both ? 2 : 1);
    if (slot->shape.count > longest) longest = slot->shape.count;
  }
  bool has_work = r->program != NULL && f->entry == NULL;
  f->elements = has_work ? r->work[0] * r->work[1] * r->work[2] : longest;
}

static bool prepare_runs(kilni_cli_bench_file_t* f, kilni_cli_error_t* error) {
  kiln_binding_t bindings[KILNI_CLI_MAX_PARAMS];
  kiln_dispatch_options_t options;
  const kilni_cli_session_t* s = &f->session;
  if (!kilni_cli_shared_check(s, s->kernel, "--shared",
                              s->request->shared_bytes, error) ||
      !kilni_cli_residents_make(&f->session, &f->plan, error) ||
      !kilni_cli_pipeline_make(&f->session, &f->plan, error)) {
    return false;
  }
  if (!kilni_cli_pipeline_options(&f->session, &f->plan, &options)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "give buffers with elements",
                          "\"%s\" has no work to do", f->request.file);
  }
  uint32_t count = kilni_cli_pipeline_bindings(&f->session, &f->plan, bindings);
  return kilni_cli_check_launch(
      error, kiln_pipeline_prepare(f->session.pipeline, bindings, count,
                                   &options, &f->prepared));
}

static bool prepare_kernel(kilni_cli_bench_file_t* f,
                           kilni_cli_error_t* error) {
  f->launches = 1;
  return kilni_cli_session_load(&f->session, error) &&
         kilni_cli_plan_make(&f->session.facts, &f->request, &f->plan, error) &&
         kilni_cli_program_shape(&f->request, f->session.code.lowered, &f->plan,
                                 error) &&
         prepare_runs(f, error);
}

// All launches of an entry of the library.
static bool prepare_entry(kilni_cli_bench_file_t* f, kilni_cli_error_t* error) {
  kiln_library_plan_info_t info;
  if (!kilni_cli_library_prepare(&f->session, &f->plan, &f->entry, error)) {
    return false;
  }
  kilni_cli_pipeline_bindings(&f->session, &f->plan, f->bindings);
  kiln_library_plan_info(f->entry, &info);
  f->launches = info.launches;
  return true;
}

// An empty program, to measure the cost of a launch alone.
static bool prepare_nothing(kilni_cli_bench_t* b, kilni_cli_error_t* error) {
  kiln_event_options_t timing = kiln_event_options_default();
  kilni_cli_session_t* s = &b->files[0].session;
  kiln_program_t* program = NULL;
  kiln_string_view_t text = {kNothing, sizeof(kNothing) - 1};
  timing.timing = KILN_SWITCH_ON;
  b->simulated = kiln_device_info(s->device)->kind == KILN_DEVICE_KIND_SOFT;
  bool ok =
      kilni_cli_check(error,
                      kiln_event_create(s->device, &timing, &b->start)) &&
      kilni_cli_check(error, kiln_event_create(s->device, &timing, &b->end)) &&
      kilni_cli_check(error, kiln_program_parse(text, NULL, NULL, &program)) &&
      kilni_cli_check(error, kiln_pipeline_create(s->dispatcher, program, NULL,
                                                  &b->nothing)) &&
      kilni_cli_check(error, kiln_pipeline_prepare(b->nothing, NULL, 0, NULL,
                                                   &b->nothing_prepared));
  kiln_program_release(program);
  return ok;
}

bool kilni_cli_bench_prepare(kilni_cli_bench_t* bench, size_t index,
                             kilni_cli_error_t* error) {
  kilni_cli_bench_file_t* f = &bench->files[index];
  if (index == 0) {
    if (!kilni_cli_session_open(&f->session, &f->request, error) ||
        !prepare_nothing(bench, error)) {
      return false;
    }
  } else {
    kilni_cli_session_share(&f->session, &bench->files[0].session, &f->request);
  }
  bool ok =
      kilni_cli_library_decide(&f->session, error) &&
      (f->request.whole ? prepare_entry(f, error) : prepare_kernel(f, error));
  bench->leave_at_once |= f->session.leave_at_once;
  if (ok) count_work(f);
  return ok;
}

// ---- Measuring ----

// Times per run of that many consecutive runs. one-thread
typedef struct sample_t {
  double device;
  double wall;
  double enqueue;
} sample_t;

// Puts one run on the stream; without a file, an empty one.
static kiln_status_t bench_job_run_once(kilni_cli_bench_t* b,
                                        const kilni_cli_bench_file_t* f) {
  kiln_stream_t* stream = b->files[0].session.stream;
  if (f == NULL) return kiln_prepared_run(b->nothing_prepared, stream);
  if (f->entry == NULL) return kiln_prepared_run(f->prepared, stream);
  return kiln_library_plan_run(f->entry, stream, f->bindings, f->plan.count);
}

static bool bench_job_take(kilni_cli_bench_t* b,
                           const kilni_cli_bench_file_t* f, uint32_t runs,
                           sample_t* out, kilni_cli_error_t* error) {
  kiln_stream_t* stream = b->files[0].session.stream;
  uint64_t device_ns = 0;
  kiln_status_t status = kiln_event_record(b->start, stream);
  uint64_t began = kilni_cli_now_ns();
  for (uint32_t i = 0; i < runs && kiln_status_is_ok(status); i++) {
    status = bench_job_run_once(b, f);
  }
  uint64_t called = kilni_cli_now_ns();
  if (kiln_status_is_ok(status)) status = kiln_event_record(b->end, stream);
  if (kiln_status_is_ok(status)) status = kiln_stream_synchronize(stream);
  uint64_t ended = kilni_cli_now_ns();
  if (kiln_status_is_ok(status)) {
    status = kiln_event_elapsed(b->start, b->end, &device_ns);
  }
  if (!kilni_cli_check(error, status)) return false;
  out->device = (double)device_ns / runs;
  out->wall = (double)(ended - began) / runs;
  out->enqueue = (double)(called - began) / runs;
  return true;
}

static void bench_job_keep(kilni_cli_samples_t* samples, double value) {
  if (samples->count < KILNI_CLI_BENCH_MAX_SAMPLES) {
    samples->values[samples->count++] = value;
  }
}

// Whether runs have succeeded; the result of an entry's first run applies to
// all.
static bool check_runs(const kilni_cli_bench_file_t* f,
                       kilni_cli_error_t* error) {
  return f->entry != NULL ||
         kilni_cli_check(error, kiln_prepared_check(f->prepared, NULL));
}

// A run that ends by itself, in time.
static bool first_run(kilni_cli_bench_t* b, kilni_cli_bench_file_t* f,
                      kilni_cli_error_t* error) {
  kilni_cli_session_t* s = &f->session;
  uint64_t limit = f->request.time_limit_ns;
  uint64_t began = kilni_cli_now_ns();
  bool ok = false;
  if (f->entry != NULL) {
    ok = kilni_cli_library_wait(s, f->entry, f->bindings, f->plan.count, error);
  } else {
    kiln_status_t status = bench_job_run_once(b, f);
    if (kiln_status_is_ok(status)) {
      status = limit == 0 ? kiln_stream_synchronize(s->stream)
                          : kiln_stream_wait(s->stream, limit);
    }
    ok = kilni_cli_check(error, status);
  }
  f->first_ns = kilni_cli_now_ns() - began;
  if (ok) return check_runs(f, error);
  char shown[KILNI_CLI_ENTRY_SHOWN];
  b->leave_at_once =
      s->leave_at_once ||
      kilni_cli_session_overdue(s, began, "the kernel",
                                kilni_cli_entry_shown(s->facts.name, shown),
                                KILNI_CLI_ENDLESS_KERNEL, error);
  if (!b->leave_at_once) kilni_cli_session_explain(s, &f->plan, error);
  return false;
}

// The first runs, and how many make a sample.
static bool warm_up(kilni_cli_bench_t* b, kilni_cli_bench_file_t* f,
                    kilni_cli_error_t* error) {
  sample_t sample = {0, 0, 0};
  if (!first_run(b, f, error)) return false;
  uint32_t more = b->limits.warmup == 0 ? 0 : b->limits.warmup - 1;
  if (more != 0 && !bench_job_take(b, f, more, &sample, error)) return false;
  double each = more != 0 ? sample.wall : (double)f->first_ns;
  double runs = each < 1 ? MAX_RUNS : SAMPLE_NS / each;
  f->runs = b->limits.runs != 0 ? b->limits.runs
            : runs < 1          ? 1
            : runs > MAX_RUNS   ? MAX_RUNS
                                : (uint32_t)runs;
  return true;
}

// One sample of each file, starting with a different one each time.
static bool round_of(kilni_cli_bench_t* b, kilni_cli_error_t* error) {
  sample_t sample;
  for (size_t i = 0; i < b->count; i++) {
    kilni_cli_bench_file_t* f = &b->files[(i + b->rounds) % b->count];
    if (!bench_job_take(b, f, f->runs, &sample, error)) return false;
    bench_job_keep(&f->device, sample.device);
    bench_job_keep(&f->wall, sample.wall);
    bench_job_keep(&f->enqueue, sample.enqueue);
  }
  if (!bench_job_take(b, NULL, FLOOR_BATCH, &sample, error)) return false;
  bench_job_keep(&b->floor, sample.device);
  b->rounds++;
  return true;
}

static bool all_steady(kilni_cli_bench_t* b) {
  bool all = true;
  for (size_t i = 0; i < b->count; i++) {
    kilni_cli_bench_file_t* f = &b->files[i];
    f->steady = kilni_cli_samples_steady(&f->device, b->limits.steady);
    all = all && f->steady;
  }
  return all;
}

bool kilni_cli_bench_measure(kilni_cli_bench_t* bench,
                             kilni_cli_error_t* error) {
  kilni_cli_progress_t progress;
  bool ok = true;
  kilni_cli_progress_start(&progress, "measuring on %s",
                           bench->files[0].session.device_name);
  for (size_t i = 0; i < bench->count && ok; i++) {
    ok = warm_up(bench, &bench->files[i], error);
  }
  uint64_t began = kilni_cli_now_ns();
  while (ok && bench->rounds < KILNI_CLI_BENCH_MAX_SAMPLES) {
    ok = round_of(bench, error);
    if (!ok || all_steady(bench) ||
        kilni_cli_now_ns() - began >= bench->limits.budget_ns) {
      break;
    }
  }
  for (size_t i = 0; i < bench->count && ok; i++) {
    ok = check_runs(&bench->files[i], error);
  }
  kilni_cli_progress_stop(&progress);
  return ok;
}

void kilni_cli_bench_close(kilni_cli_bench_t* bench) {
  kiln_prepared_release(bench->nothing_prepared);
  kiln_pipeline_release(bench->nothing);
  kiln_event_release(bench->start);
  kiln_event_release(bench->end);
  for (size_t i = bench->count; i-- != 0;) {
    kilni_cli_bench_file_t* f = &bench->files[i];
    kiln_prepared_release(f->prepared);
    kiln_library_plan_release(f->entry);
    kilni_cli_session_close(&f->session);
  }
}
