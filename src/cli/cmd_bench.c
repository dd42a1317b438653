// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln bench`: how long kernels take, and which of them is faster.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench_job.h"
#include "cli/cli_command.h"
#include "cli/cli_report.h"
#include "cli/run_library.h"
#include "cli/run_program.h"

// ---- The request ----

static bool cmd_bench_read_number(const char* option, const char* text,
                                  double least, double most, double* inout,
                                  kilni_cli_error_t* error) {
  char* end = NULL;
  if (text == NULL) return true;
  double value = strtod(text, &end);
  if (end == text || *end != 0 || !(value >= least && value <= most)) {
    return kilni_cli_fail(
        error, KILN_STATUS_INVALID_ARGUMENT, "write a number in that range",
        "--%s \"%s\" is not a number from %g to %g", option, text, least, most);
  }
  *inout = value;
  return true;
}

static bool cmd_bench_read_limits(const kilni_cli_call_t* call,
                                  kilni_cli_bench_limits_t* out,
                                  kilni_cli_error_t* error) {
  double seconds = 3, steady = 1, runs = 0, warmup = 3;
  bool ok =
      cmd_bench_read_number("budget", kilni_cli_option_value(call, "budget"), 0,
                            3600, &seconds, error) &&
      cmd_bench_read_number("steady", kilni_cli_option_value(call, "steady"), 0,
                            100, &steady, error) &&
      cmd_bench_read_number("runs", kilni_cli_option_value(call, "runs"), 1,
                            1e6, &runs, error) &&
      cmd_bench_read_number("warmup", kilni_cli_option_value(call, "warmup"), 1,
                            1e6, &warmup, error);
  out->budget_ns = (uint64_t)(seconds * 1e9);
  out->steady = steady / 100;
  out->runs = (uint32_t)runs;
  out->warmup = (uint32_t)warmup;
  return ok;
}

// Unnamed outputs get the length that the program defines; their contents are
// discarded.
static bool cmd_bench_add_outputs(kilni_cli_request_t* r,
                                  kilni_cli_error_t* error) {
  kiln_program_parameter_info_t p;
  for (uint32_t i = 0; kiln_program_parameter(r->program, i, &p); i++) {
    if (p.role == KILN_PROGRAM_ROLE_OUT && p.is_counted != 0 &&
        !kilni_cli_request_has(r, i, p.name) &&
        !kilni_cli_request_add_output(r, p.name, error)) {
      return false;
    }
  }
  return true;
}

static bool is_source(const char* file) {
  kilni_cli_code_kind_t kind;
  kilni_cli_error_t ignored;
  return kilni_cli_code_kind_of(file, &kind, &ignored) &&
         kind == KILNI_CLI_CODE_SOURCE;
}

// Compiler options apply only to the files that are compiled.
static bool split_given(kilni_cli_bench_t* b, const kilni_cli_call_t* call,
                        kilni_cli_error_t* error) {
  size_t bytes = (call->given_count + 1) * sizeof(kilni_cli_given_t);
  for (size_t i = 0; i < call->operand_count; i++) {
    b->is_any_compiled |= is_source(call->operands[i]);
  }
  if (!kilni_cli_buffer_resize(&b->others, bytes, error)) return false;
  b->other_count =
      kilni_cli_source_without(call, (kilni_cli_given_t*)(void*)b->others.data);
  return true;
}

static bool cmd_bench_read_file(const kilni_cli_bench_t* b,
                                kilni_cli_bench_file_t* f,
                                const kilni_cli_call_t* call,
                                const char* const* operand,
                                kilni_cli_error_t* error) {
  kilni_cli_call_t one = *call;
  one.operands = operand;
  one.operand_count = 1;
  if (b->is_any_compiled && !is_source(*operand)) {
    one.given = (const kilni_cli_given_t*)(const void*)b->others.data;
    one.given_count = b->other_count;
  }
  kilni_cli_request_t* r = &f->request;
  if (!kilni_cli_request_init(r, &one, error)) return false;
  r->makes_outputs = true;
  if (r->code_kind == KILNI_CLI_CODE_PROGRAM &&
      !kilni_cli_library_read(r, &one, error)) {
    return false;
  }
  // A plan defines its inputs, and creating one needs a device.
  if (r->whole) return true;
  if (r->program != NULL && (!cmd_bench_add_outputs(r, error) ||
                             !kilni_cli_program_types(r, error))) {
    return false;
  }
  return kilni_cli_request_read(r, error) && kilni_cli_program_sizes(r, error);
}

// ---- Results ----

// "12.3 us": three digits and a suitable unit.
static const char* time_text(double ns, char out[32]) {
  static const char* const kUnits[] = {"ns", "us", "ms", "s"};
  int unit = 0;
  while (ns >= 1000 && unit < 3) {
    ns /= 1000;
    unit++;
  }
  (void)snprintf(out, 32, "%.*f %s",
                 ns < 10    ? 2
                 : ns < 100 ? 1
                            : 0,
                 ns, kUnits[unit]);
  return out;
}

static void write_file(FILE* out, const kilni_cli_bench_t* b, size_t index) {
  const kilni_cli_bench_file_t* f = &b->files[index];
  kilni_cli_summary_t d, wall, call;
  char t[5][32];
  kilni_cli_samples_sum(&f->device, &d);
  kilni_cli_samples_sum(&f->wall, &wall);
  kilni_cli_samples_sum(&f->enqueue, &call);
  (void)fprintf(out, "%s (%s), ", f->request.file, f->session.facts.name);
  if (f->entry != NULL) {
    (void)fprintf(out, "%" PRIu32 " launch%s\n", f->launches,
                  f->launches == 1 ? "" : "es");
  } else {
    (void)fprintf(out,
                  "grid %" PRIu32 ",%" PRIu32 ",%" PRIu32 " of %" PRIu32
                  ",%" PRIu32 ",%" PRIu32 " threads\n",
                  f->plan.grid[0], f->plan.grid[1], f->plan.grid[2],
                  f->plan.block[0], f->plan.block[1], f->plan.block[2]);
  }
  (void)fprintf(out, "  %-9s %s, minimum %s, 90%% from %s to %s%s\n",
                b->simulated ? "time" : "device", time_text(d.median, t[0]),
                time_text(d.least, t[1]), time_text(d.low, t[2]),
                time_text(d.high, t[3]), f->steady ? "" : " (not steady)");
  if (f->bytes != 0 && d.median > 0) {
    (void)fprintf(out, "  %-9s %.4g GB/s of %" PRIu64 " bytes in buffers\n",
                  "moves", (double)f->bytes / d.median, f->bytes);
  }
  if (f->elements != 0 && d.median > 0) {
    (void)fprintf(out, "  %-9s %.4g million elements/s of %" PRIu64 "\n",
                  "does", (double)f->elements / d.median * 1e3, f->elements);
  }
  (void)fprintf(out, "  %-9s %s per run with the wait; the call takes %s\n",
                "wall", time_text(wall.median, t[0]),
                time_text(call.median, t[1]));
  (void)fprintf(out,
                "  %-9s %zu of %" PRIu32
                " run%s each; the first run took "
                "%s\n",
                "samples", f->device.count, f->runs, f->runs == 1 ? "" : "s",
                time_text((double)f->first_ns, t[2]));
  if (index == 0) return;
  double ratio = kilni_cli_samples_ratio(&b->files[0].device, &f->device);
  (void)fprintf(out, "  %-9s %.3f times as fast as %s\n", "ratio", ratio,
                b->files[0].request.file);
}

static bool cmd_bench_write_text(const kilni_cli_call_t* call,
                                 const kilni_cli_bench_t* b,
                                 kilni_cli_error_t* error) {
  kilni_cli_summary_t floor;
  char text[32];
  kilni_cli_samples_sum(&b->floor, &floor);
  kilni_cli_shown_t shown;
  bool opened = kilni_cli_shown_open(&shown, call->results);
  for (size_t i = 0; opened && i < b->count; i++) write_file(shown.text, b, i);
  kilni_cli_shown_close(&shown);
  (void)fprintf(call->results, "an empty run: %s\n",
                time_text(floor.median, text));
  return kilni_cli_results_flush(call->results, error);
}

static json_t* summary_json(const kilni_cli_samples_t* samples) {
  kilni_cli_summary_t s;
  kilni_cli_samples_sum(samples, &s);
  return json_pack("{s:f,s:f,s:f,s:f,s:f}", "median", s.median, "least",
                   s.least, "low", s.low, "high", s.high, "most", s.most);
}

static json_t* file_json(const kilni_cli_bench_t* b, size_t index) {
  const kilni_cli_bench_file_t* f = &b->files[index];
  kilni_cli_summary_t d, first;
  kilni_cli_samples_sum(&f->device, &d);
  kilni_cli_samples_sum(&b->files[0].device, &first);
  json_t* name = json_string(f->request.file);
  json_t* base_name = json_string(b->files[0].request.file);
  if (name == NULL) name = json_string_nocheck("?");
  if (base_name == NULL) base_name = json_string_nocheck("?");
  json_t* baseline = index == 0 ? json_null()
                                : json_pack("{s:O,s:f}", "name", base_name,
                                            "value", first.median);
  json_decref(base_name);
  json_t* ratio =
      index == 0
          ? json_null()
          : json_real(kilni_cli_samples_ratio(&b->files[0].device, &f->device));
  return json_pack(
      "{s:o,s:s,s:s,s:f,s:o,s:o,s:o,s:o,s:o,s:b,s:I,s:I,s:I,s:I,s:f,s:f,s:I,s:"
      "I}",
      "name", name, "entry", f->session.facts.name, "unit", "ns", "value",
      d.median, "baseline", baseline, "ratio", ratio, "device_ns",
      summary_json(&f->device), "wall_ns", summary_json(&f->wall), "enqueue_ns",
      summary_json(&f->enqueue), "steady", f->steady, "samples",
      (json_int_t)f->device.count, "runs", (json_int_t)f->runs, "bytes",
      (json_int_t)f->bytes, "elements", (json_int_t)f->elements,
      "gigabytes_per_second", d.median > 0 ? (double)f->bytes / d.median : 0.0,
      "elements_per_second",
      d.median > 0 ? (double)f->elements / d.median * 1e9 : 0.0, "first_ns",
      (json_int_t)f->first_ns, "launches", (json_int_t)f->launches);
}

static bool cmd_bench_write_json(const kilni_cli_call_t* call,
                                 const kilni_cli_bench_t* b,
                                 kilni_cli_error_t* error) {
  json_t* list = json_array();
  for (size_t i = 0; i < b->count; i++) {
    (void)json_array_append_new(list, file_json(b, i));
  }
  return kilni_cli_json_write(
      call->results,
      json_pack("{s:s,s:b,s:I,s:o,s:o}", "device",
                b->files[0].session.device_name, "simulated", b->simulated,
                "rounds", (json_int_t)b->rounds, "launch_ns",
                summary_json(&b->floor), "benches", list),
      error);
}

// ---- All together ----

static bool cmd_bench_run_all(const kilni_cli_call_t* call,
                              kilni_cli_bench_t* b, kilni_cli_error_t* error) {
  if (!cmd_bench_read_limits(call, &b->limits, error) ||
      !split_given(b, call, error)) {
    return false;
  }
  for (size_t i = 0; i < call->operand_count; i++) {
    if (!cmd_bench_read_file(b, &b->files[i], call, &call->operands[i],
                             error)) {
      return false;
    }
  }
  int hidden = kilni_cli_results_hide();
  bool ok = true;
  for (size_t i = 0; i < call->operand_count && ok; i++) {
    b->count = i + 1;
    ok = kilni_cli_bench_prepare(b, i, error);
  }
  if (ok && b->simulated) {
    kilni_cli_note(
        "the software device runs on this CPU: its times compare kernels with "
        "each other, but do not predict those of a GPU");
  }
  ok = ok && kilni_cli_bench_measure(b, error);
  if (b->leave_at_once) {
    kilni_cli_results_show(hidden);
    _exit(kilni_cli_error_report(stdout, call->json, error));
  }
  (void)fflush(stderr);
  kilni_cli_results_show(hidden);
  return ok && (call->json ? cmd_bench_write_json(call, b, error)
                           : cmd_bench_write_text(call, b, error));
}

static bool run_bench(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  kilni_cli_bench_t* b = calloc(1, sizeof(*b));
  if (b != NULL) b->files = calloc(call->operand_count, sizeof(*b->files));
  if (b == NULL || b->files == NULL) {
    free(b);
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to measure");
  }
  bool ok = cmd_bench_run_all(call, b, error);
  kilni_cli_bench_close(b);
  for (size_t i = 0; i < call->operand_count; i++) {
    kilni_cli_request_deinit(&b->files[i].request);
  }
  kilni_cli_buffer_deinit(&b->others);
  free(b->files);
  free(b);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"buffer", "P=TYPE[N,...]",
     "Parameter P is a buffer of this type and shape, filled with generated "
     "numbers: floats from 0.5 to 1, integers from 0 to 99. Not needed for "
     "outputs whose length the program defines.",
     true, NULL},
    {"in", "P=FILE[:TYPE[N,...]]",
     "Parameter P is a buffer with the contents of FILE, as in kiln run.", true,
     "file"},
    {"arg", "P=VALUE", "Parameter P is a number, or len(Q), as in kiln run.",
     true, NULL},
    {"device", "auto|cuda:N|soft|NAME", "Where to run, as in kiln run.", false,
     "auto cuda:0 soft"},
    {"entry", "NAME", "Name of the kernel, where a file has several.", false,
     NULL},
    {"grid", "X,Y,Z",
     "Blocks. Default: the minimum that covers the longest buffer.", false,
     NULL},
    {"block", "X,Y,Z",
     "Threads per block. Default: what the kernel requires, else 256,1,1, or "
     "as many as it is bounded to.",
     false, NULL},
    {"shared", "BYTES", "Dynamic shared memory per block. Default: 0.", false,
     NULL},
    {"cooperative", NULL,
     "Cooperative launch: blocks may wait for each other, as in kiln run.",
     false, NULL},
    {"budget", "S",
     "Stop after S seconds of measuring, steady or not; at least one round is "
     "made. Default: 3.",
     false, NULL},
    {"steady", "PERCENT",
     "Stop when the 95% confidence interval of every file's median is within "
     "this percentage of the median. Default: 1.",
     false, NULL},
    {"runs", "N",
     "Consecutive runs per sample. Default: as many as take a millisecond.",
     false, NULL},
    {"warmup", "N", "Runs before the first sample. Default: 3.", false, NULL},
    {"time-limit", "S",
     "Give up with exit code 8 when a compilation or a first run takes longer "
     "than S seconds.",
     false, NULL},
    {"define", "NAME[=VALUE]",
     "For CUDA C++, a macro; for a program (.kiln), the value of a const or "
     "the type of a type; for lib:NAME, also the options on its page, as kiln "
     "lib has them.",
     true, NULL},
    {"arch", "ARCH",
     "The architecture to compile CUDA C++ for. Default: that of the device.",
     false, NULL},
    KILNI_CLI_SOURCE_OPTIONS,
    {"max-ulp", "N",
     "For a program: the maximum error of its f32 functions. Default: 0, "
     "strict.",
     false, NULL},
    KILNI_CLI_CACHE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};
const kilni_cli_command_t kilni_cli_command_bench = {
    "bench",
    "FILE...",
    "Measure how long kernels take, and which is faster.",
    "Each FILE is anything that kiln run takes, including lib:NAME, which "
    "runs as a whole if it has several launches or memory of its own. All "
    "files get the same buffers and numbers; buffers stay on the device, so "
    "each run sees what the previous one computed.\nThe files run in turns, "
    "in rounds, until the median of each is steady or the time is up. The "
    "time of a run is device time, measured by events; wall-clock time "
    "including the wait, the time of the call alone, and the time of an empty "
    "launch are reported as well. Further files are compared with the first, "
    "round by round: a ratio above 1 is faster.\nCompiler options apply to "
    "the files that are compiled.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    KILNI_CLI_BENCH_MAX_FILES,
    "program",
    "kiln bench lib:saxpy --buffer x=f32[1048576] --buffer y=f32[1048576] "
    "--arg a=2",
    run_bench,
};
