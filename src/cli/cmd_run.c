// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln run`: runs a kernel from files to files.
#define _POSIX_C_SOURCE 200809L
#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_command.h"
#include "cli/cli_data.h"
#include "cli/cli_mapped.h"
#include "cli/cli_output.h"
#include "cli/cli_report.h"
#include "cli/run_expect.h"
#include "cli/run_library.h"
#include "cli/run_pipeline.h"
#include "cli/run_program.h"
#include "cli/run_session.h"
#include "cli/run_stats.h"
#include "kiln/compile.h"

// A GPU's driver writes what kernels print to descriptor 1. While a device is
// open that is standard error; results must wait.
static json_t* cmd_run_dims_json(const uint32_t dims[3]) {
  return json_pack("[I,I,I]", (json_int_t)dims[0], (json_int_t)dims[1],
                   (json_int_t)dims[2]);
}

static json_t* outputs_json(const kilni_cli_plan_t* plan,
                            const kilni_cli_output_t* outputs) {
  json_t* list = json_array();
  size_t at = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    if (plan->slots[i].out == NULL) continue;
    json_t* path = json_string(outputs[at].path);
    if (path == NULL) path = json_string_nocheck("?");  // a name, no UTF-8
    (void)json_array_append_new(
        list, json_pack("{s:I,s:o,s:I}", "param", (json_int_t)i, "file", path,
                        "bytes", (json_int_t)outputs[at].content.size));
    at++;
  }
  return list;
}

// ---- Expected outputs ----

static json_t* number_json(double value) {
  return value <= DBL_MAX ? json_real(value) : json_null();
}

static json_t* cmd_run_place_json(const kilni_cli_shape_t* shape, uint64_t at) {
  json_t* list = json_array();
  for (uint32_t i = shape->rank; i-- != 0;) {
    uint64_t extent = shape->dims[i] != 0 ? shape->dims[i] : 1;
    (void)json_array_insert_new(list, 0,
                                json_integer((json_int_t)(at % extent)));
    at /= extent;
  }
  return list;
}

// In the order of the parameters, as `differences` is.
static json_t* expected_json(const kilni_cli_plan_t* plan,
                             const kilni_cli_difference_t* differences) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < plan->count; i++) {
    const kilni_cli_slot_t* slot = &plan->slots[i];
    if (slot->expect == NULL) continue;
    const kilni_cli_difference_t* d = &differences[i];
    json_t* path = json_string((const char*)slot->expect->path.data);
    if (path == NULL) path = json_string_nocheck("?");  // a name, no UTF-8
    json_t* one = json_pack("{s:I,s:o,s:I,s:I}", "param", (json_int_t)i, "file",
                            path, "elements", (json_int_t)slot->shape.count,
                            "differing", (json_int_t)d->count);
    json_t* first = json_null();
    if (d->count != 0) {
      first = json_pack("{s:o,s:s,s:s}", "index",
                        cmd_run_place_json(&slot->shape, d->first), "expected",
                        d->expected, "got", d->got);
    }
    (void)json_object_set_new(one, "first", first);
    (void)json_object_set_new(one, "largest", number_json(d->largest));
    (void)json_array_append_new(list, one);
  }
  return list;
}

// The first output that is not as expected is the error; further ones are
// listed below it.
static bool tell_differences(const kilni_cli_session_t* session,
                             const kilni_cli_plan_t* plan,
                             const kilni_cli_difference_t* differences,
                             kilni_cli_error_t* error) {
  bool ok = true;
  double enough = 0;
  bool is_rounding = true;
  char first[256] = "";
  for (uint32_t i = 0; i < plan->count; i++) {
    const kilni_cli_slot_t* slot = &plan->slots[i];
    const kilni_cli_difference_t* d = &differences[i];
    if (slot->expect == NULL || d->count == 0) continue;
    char place[256], text[800];
    const char* name =
        i < session->facts.param_count && session->facts.params[i].name[0] != 0
            ? session->facts.params[i].name
            : NULL;
    kilni_cli_expect_place(&slot->shape, d->first, place, sizeof(place));
    (void)snprintf(
        text, sizeof(text),
        "parameter %" PRIu32
        "%s%.60s%s differs from \"%.200s\" in "
        "%" PRIu64 " of %" PRIu64 " elements, first at %s: expected %s, got %s",
        i, name != NULL ? " (\"" : "", name != NULL ? name : "",
        name != NULL ? "\")" : "", (const char*)slot->expect->path.data,
        d->count, slot->shape.count, place, d->expected, d->got);
    if (d->rounding > enough) enough = d->rounding;
    is_rounding = is_rounding && d->rounding > 0;
    if (ok) {
      memcpy(first, place, sizeof(first));
      (void)kilni_cli_fail(error, KILN_STATUS_OUT_OF_RANGE, NULL, "%s", text);
    } else {
      size_t used = strlen(error->trail);
      (void)snprintf(error->trail + used, sizeof(error->trail) - used, "%s  %s",
                     used != 0 ? "\n" : "", text);
    }
    ok = false;
  }
  if (ok) return true;
  if (is_rounding) {
    char text[KILNI_CLI_NUMBER_BYTES];
    kilni_cli_expect_tolerance(enough, text);
    kilni_cli_error_fix(error,
                        "the differences are of the size of rounding: allow "
                        "them with --tolerance %s, or correct the kernel or "
                        "the file",
                        text);
  } else {
    kilni_cli_error_fix(error,
                        "check what the kernel computes for the element %s, "
                        "and the file: this is more than rounding",
                        first);
  }
  return false;
}

static bool is_as_expected(const kilni_cli_plan_t* plan,
                           const kilni_cli_difference_t* differences) {
  for (uint32_t i = 0; i < plan->count; i++) {
    if (plan->slots[i].expect != NULL && differences[i].count != 0) {
      return false;
    }
  }
  return true;
}

static bool cmd_run_compare(kilni_cli_session_t* session,
                            const kilni_cli_plan_t* plan,
                            kilni_cli_difference_t* differences,
                            kilni_cli_error_t* error) {
  memset(differences, 0, plan->count * sizeof(differences[0]));
  for (uint32_t i = 0; i < plan->count; i++) {
    const kilni_cli_slot_t* slot = &plan->slots[i];
    if (slot->expect == NULL) continue;
    kilni_cli_array_t array;
    bool ok = kilni_cli_session_read(session, plan, i, &array, error);
    if (ok) {
      kilni_cli_expect_compare(&slot->expect->array, &array,
                               session->request->tolerance, &differences[i]);
    }
    kilni_cli_array_deinit(&array);
    if (!ok) return false;
  }
  return true;
}

// ---- Results ----

static void cmd_run_add_library(const char* path, void* user) {
  json_t* text = json_string(path);
  (void)json_array_append_new(user,
                              text != NULL ? text : json_string_nocheck("?"));
}

// How the code was made, and which libraries that loaded into the process.
static void add_making(json_t* object, const kilni_cli_session_t* session) {
  const kilni_cli_code_t* code = &session->code;
  json_t* libraries = json_array();
  kilni_cli_mapped_each(cmd_run_add_library, libraries);
  (void)json_object_set_new(
      object, "cache",
      json_pack("{s:s,s:s,s:s,s:s}", "compile",
                kilni_cli_cache_word(code->compile_cache), "compile_reason",
                code->compile_reason, "link",
                kilni_cli_cache_word(code->link_cache), "link_reason",
                code->link_reason));
  (void)json_object_set_new(object, "libraries", libraries);
}

static void note_library(const char* path, void* user) {
  (void)user;
  kilni_cli_note("in the process: %s", path);
}

static void note_making(const kilni_cli_session_t* session) {
  const kilni_cli_code_t* code = &session->code;
  if (code->compile_cache != KILN_COMPILE_CACHE_NONE) {
    kilni_cli_note("compiled: cache %s (%s)",
                   kilni_cli_cache_word(code->compile_cache),
                   code->compile_reason);
  }
  if (code->link_cache != KILN_LINK_CACHE_NONE) {
    kilni_cli_note("linked: cache %s (%s)",
                   kilni_cli_cache_word(code->link_cache), code->link_reason);
  }
  kilni_cli_mapped_each(note_library, NULL);
}

// As a member of the result: the snapshot itself, or Prometheus' text.
static bool add_telemetry(json_t* object, const kilni_cli_session_t* session,
                          kilni_cli_error_t* error) {
  kilni_cli_telemetry_t format = session->request->telemetry;
  kilni_cli_buffer_t text = {0};
  if (format == KILNI_CLI_TELEMETRY_NONE) return true;
  bool ok = kilni_cli_telemetry_text(session, format, &text, error);
  if (ok) {
    (void)json_object_set_new(object, "telemetry",
                              format == KILNI_CLI_TELEMETRY_JSON
                                  ? json_loads((const char*)text.data, 0, NULL)
                                  : json_string((const char*)text.data));
  }
  kilni_cli_buffer_deinit(&text);
  return ok;
}

static bool write_telemetry(const kilni_cli_call_t* call,
                            const kilni_cli_session_t* session,
                            kilni_cli_error_t* error) {
  kilni_cli_telemetry_t format = session->request->telemetry;
  kilni_cli_buffer_t text = {0};
  if (format == KILNI_CLI_TELEMETRY_NONE) return true;
  bool ok = kilni_cli_telemetry_text(session, format, &text, error);
  if (ok) (void)fwrite(text.data, 1, text.size, call->results);
  kilni_cli_buffer_deinit(&text);
  return ok;
}

static bool cmd_run_report(const kilni_cli_call_t* call,
                           const kilni_cli_session_t* session,
                           const kilni_cli_plan_t* plan,
                           const kilni_cli_output_t* outputs,
                           size_t output_count,
                           const kilni_cli_difference_t* differences,
                           kilni_cli_error_t* error) {
  const kilni_cli_request_t* request = session->request;
  if (call->json) {
    json_t* object = json_pack(
        "{s:s,s:s,s:o,s:o,s:I,s:I,s:o}", "device", session->device_name,
        "entry", session->facts.name, "grid", cmd_run_dims_json(plan->grid),
        "block", cmd_run_dims_json(plan->block), "shared_bytes",
        (json_int_t)request->shared_bytes, "elapsed_ns",
        (json_int_t)session->elapsed_ns, "outputs",
        outputs_json(plan, outputs));
    json_t* expected = expected_json(plan, differences);
    if (json_array_size(expected) != 0) {
      (void)json_object_set(object, "expected", expected);
    }
    json_decref(expected);
    if (request->stats && session->counted) {
      (void)json_object_set_new(
          object, "thread_instructions",
          json_integer((json_int_t)session->instructions));
    }
    if (request->stats) add_making(object, session);
    if (session->profiled) {
      (void)json_object_set_new(object, "stats",
                                kilni_cli_stats_json(&session->profile));
    }
    if (!add_telemetry(object, session, error)) {
      json_decref(object);
      return false;
    }
    return kilni_cli_json_write(call->results, object, error);
  }
  for (size_t i = 0; i < output_count; i++) {
    kilni_cli_note("wrote %s (%zu bytes)", outputs[i].path,
                   outputs[i].content.size);
  }
  if (!write_telemetry(call, session, error)) return false;
  if (!request->stats) return true;
  kilni_cli_note("%s on %s: %.3f ms", session->facts.name, session->device_name,
                 (double)session->elapsed_ns * 1e-6);
  note_making(session);
  if (session->counted) {
    kilni_cli_note("%" PRIu64 " thread-instructions", session->instructions);
    if (session->profiled) kilni_cli_stats_note(&session->profile);
  } else {
    kilni_cli_note(
        "thread-instructions are counted on the software device "
        "only");
  }
  return true;
}

static bool cmd_run_collect(kilni_cli_session_t* session,
                            const kilni_cli_plan_t* plan,
                            kilni_cli_output_t* outputs,
                            kilni_cli_error_t* error) {
  size_t at = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    if (plan->slots[i].out == NULL) continue;
    const char* path = (const char*)plan->slots[i].out->path.data;
    memset(&outputs[at], 0, sizeof(outputs[at]));
    outputs[at].path = path;
    kilni_cli_array_t array;
    bool ok = kilni_cli_session_read(session, plan, i, &array, error) &&
              kilni_cli_data_encode(path, &array, &outputs[at].content, error);
    kilni_cli_array_deinit(&array);
    if (!ok) return false;
    at++;
  }
  return true;
}

static void note_grid(const kilni_cli_plan_t* plan) {
  if (!plan->grid_chosen) return;
  kilni_cli_note("grid: %" PRIu32 ",%" PRIu32 ",%" PRIu32 " of %" PRIu32
                 ",%" PRIu32 ",%" PRIu32 " threads, for %" PRIu64
                 " elements (see --grid)",
                 plan->grid[0], plan->grid[1], plan->grid[2], plan->block[0],
                 plan->block[1], plan->block[2], plan->grid_covers);
}

static bool run_device(kilni_cli_session_t* session,
                       kilni_cli_request_t* request, kilni_cli_plan_t* plan,
                       kilni_cli_output_t* outputs,
                       kilni_cli_difference_t* differences,
                       kilni_cli_error_t* error) {
  if (!kilni_cli_session_open(session, request, error) ||
      !kilni_cli_library_decide(session, error)) {
    return false;
  }
  if (request->whole) {
    bool ok = kilni_cli_library_run(session, plan, error) &&
              cmd_run_collect(session, plan, outputs, error);
    if (!ok) kilni_cli_session_explain(session, plan, error);
    return ok && cmd_run_compare(session, plan, differences, error);
  }
  if (!kilni_cli_session_load(session, error) ||
      !kilni_cli_plan_make(&session->facts, request, plan, error) ||
      !kilni_cli_program_shape(request, session->code.lowered, plan, error)) {
    return false;
  }
  note_grid(plan);
  return kilni_cli_session_run(session, plan, error) &&
         cmd_run_collect(session, plan, outputs, error) &&
         cmd_run_compare(session, plan, differences, error);
}

static bool run_request(const kilni_cli_call_t* call,
                        kilni_cli_request_t* request,
                        kilni_cli_error_t* error) {
  kilni_cli_session_t session;
  kilni_cli_plan_t plan;
  kilni_cli_output_t outputs[KILNI_CLI_MAX_PARAMS];
  kilni_cli_difference_t differences[KILNI_CLI_MAX_PARAMS];
  size_t output_count = 0;
  for (size_t i = 0; i < request->binding_count; i++) {
    if (request->bindings[i].is_out) output_count++;
  }
  if (output_count > KILNI_CLI_MAX_PARAMS) {
    return kilni_cli_fail(error, KILN_STATUS_LIMIT_EXCEEDED, NULL,
                          "more than %d outputs", KILNI_CLI_MAX_PARAMS);
  }
  memset(outputs, 0, output_count * sizeof(outputs[0]));
  int hidden = kilni_cli_results_hide();
  bool ok = run_device(&session, request, &plan, outputs, differences, error);
  if (session.leave_at_once) {
    kilni_cli_results_show(hidden);
    _exit(kilni_cli_error_report(stdout, call->json, error));
  }
  (void)fflush(stderr);
  kilni_cli_results_show(hidden);
  ok = ok && kilni_cli_outputs_write(outputs, output_count, error) &&
       cmd_run_report(call, &session, &plan, outputs, output_count, differences,
                      error);
  // The files can be examined; the JSON has the rest.
  if (ok && !is_as_expected(&plan, differences)) {
    ok = call->json ? kilni_cli_tell(error, KILN_STATUS_OUT_OF_RANGE)
                    : tell_differences(&session, &plan, differences, error);
  }
  kilni_cli_outputs_deinit(outputs, output_count);
  kilni_cli_session_close(&session);
  return ok;
}

// A missing code file is reported before a device is started.
static bool check_file(const char* path, kilni_cli_error_t* error) {
  if (kilni_cli_library_name(path) != NULL || access(path, R_OK) == 0) {
    return true;
  }
  kilni_cli_buffer_t none = {0};
  bool ok = kilni_cli_buffer_read(&none, path, 1, error);
  kilni_cli_buffer_deinit(&none);
  return ok;
}

static bool cmd_run_read_program(kilni_cli_request_t* request,
                                 const kilni_cli_call_t* call,
                                 kilni_cli_error_t* error) {
  if (request->code_kind != KILNI_CLI_CODE_PROGRAM) return true;
  return kilni_cli_library_read(request, call, error) &&
         (request->whole || kilni_cli_program_types(request, error));
}

// A plan defines its inputs, and creating one needs a device.
static bool cmd_run_read_inputs(kilni_cli_request_t* request,
                                kilni_cli_error_t* error) {
  return request->whole || (kilni_cli_request_read(request, error) &&
                            kilni_cli_program_sizes(request, error));
}

static bool run_run(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  kilni_cli_request_t request;
  bool ok = kilni_cli_request_init(&request, call, error);
  request.takes_defaults = true;
  ok = ok && check_file(request.file, error) &&
       cmd_run_read_program(&request, call, error) &&
       cmd_run_read_inputs(&request, error) &&
       run_request(call, &request, error);
  kilni_cli_request_deinit(&request);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"entry", "NAME",
     "Name of the kernel; not needed if the file has only one. For C++, the "
     "name in the source, as much of it as is needed: scale, ns::scale, "
     "'scale<float>' or 'scale(float*, int)'. For a .cu file, a template "
     "instance such as 'scale<float>' is compiled for it.",
     false, NULL},
    {"device", "auto|cuda:N|soft|NAME",
     "Where to run. auto, the default, uses cuda:0 if it works, else the "
     "software device, and reports the fallback. cuda:N is entry N of your "
     "CUDA_VISIBLE_DEVICES. NAME is the UUID of a GPU or its PCI bus address, "
     "as kiln doctor lists them.",
     false, "auto cuda:0 soft"},
    {"grid", "X,Y,Z",
     "Blocks. Default: the minimum that covers the longest buffer with one "
     "thread per element: wrong for kernels that use one block per row or fix "
     "their block size. There is no default for a kernel with two or three "
     "dimensions (threadIdx.y): PTX and CUDA C++ are refused without --grid "
     "and --block.",
     false, NULL},
    {"block", "X,Y,Z",
     "Threads per block. Default: what the kernel requires, else 256,1,1, or "
     "as many as it is bounded to.",
     false, NULL},
    {"shared", "BYTES", "Dynamic shared memory per block. Default: 0.", false,
     NULL},
    {"cooperative", NULL,
     "Cooperative launch: blocks may wait for each other (grid.sync()), so "
     "the whole grid must fit the device at once.",
     false, NULL},
    {"time-limit", "S",
     "Give up with exit code 8 when the compilation of FILE, or then the "
     "kernel, takes longer than S seconds. Default: no limit.",
     false, NULL},
    {"in", "P=FILE[:TYPE[N,...]]",
     "Parameter P is a buffer with the contents of FILE. P is the position "
     "from 0, or the name if the code file has names. The type is for raw "
     "bytes; without it they are u8.",
     true, "file"},
    {"out", "P=FILE[:TYPE[N,...]]",
     "Parameter P is a buffer of this type and shape that starts at zero and "
     "is written to FILE. :@Q copies type and shape of parameter Q. With --in "
     "for the same P it has the contents and shape of that file.",
     true, "file"},
    {"inout", "P=FILE[:TYPE[N,...]]",
     "Parameter P is a buffer with the contents of FILE and is written back "
     "to it.",
     true, "file"},
    {"buffer", "P=TYPE[N,...]",
     "Parameter P is a buffer of this type and shape with generated numbers, "
     "the same in every run: floats from 0.5 to 1, integers from 0 to 99. For "
     "trying out a kernel.",
     true, NULL},
    {"arg", "P=VALUE",
     "Parameter P is a number with its type, such as 1024i32, 2.5f32 or "
     "0x1fu64; or true, false; or len(Q), the element count of buffer Q; or, "
     "for a struct, @FILE, the bytes of FILE, or '{2.5f32,1i32}', its "
     "members. A program (.kiln) declares the types itself: 1024 is enough.",
     true, NULL},
    {"expect", "P=FILE[:TYPE[N,...]]",
     "Compare the buffer of parameter P with FILE after the run: exit code 1 "
     "if an element differs. Without --in, --out and --inout for P, the "
     "buffer has the type and shape of FILE and starts at zero.",
     true, "file"},
    {"tolerance", "T",
     "The maximum difference between an element and its expected value: T, or "
     "T times the expected value. A file of raw bytes then needs a type. "
     "Default: 0.",
     false, NULL},
    {"define", "NAME[=VALUE]",
     "For CUDA C++ (.cu), a macro; for a program (.kiln), the value of a "
     "const or the type of a type, in place of the one in the text.",
     true, NULL},
    {"arch", "ARCH",
     "The architecture to compile CUDA C++ for, such as compute_75. Default: "
     "that of the device.",
     false, NULL},
    KILNI_CLI_SOURCE_OPTIONS,
    {"max-ulp", "N",
     "For a program: the maximum error of its f32 functions, in units in the "
     "last place; above 0 the device's approximations may be used. Default: "
     "0, strict: less than 1, and the same bits on every device.",
     false, NULL},
    {"seed", "N",
     "Seed for every order that CUDA leaves undefined, on the software "
     "device.",
     false, NULL},
    {"report", "NAMES",
     "Errors to detect on the software device: unwritten (reads of "
     "uninitialised memory), freed (use after free), all or none; separate "
     "several with commas. Default: KILN_SOFT_REPORT.",
     false, "unwritten freed all none"},
    {"order", "auto|latest",
     "When work runs on the software device: auto, or latest, which delays it "
     "until something waits for it. Default: KILN_SOFT_ORDER.",
     false, "auto latest"},
    {"stats", NULL,
     "Also report the cost of the run: time, cache hits, the CUDA libraries "
     "in the process and, on the software device, instructions by kind, "
     "active lanes, memory accesses, barriers and the time of blocks. "
     "Counting makes the kernel take about three times as long.",
     false, NULL},
    {"telemetry", "json|prometheus",
     "Also write counters and timings to standard output: dispatches, "
     "threads, bytes copied, memory reused, time on the device. With --json "
     "they are the key \"telemetry\" of the result.",
     false, "json prometheus"},
    KILNI_CLI_CACHE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};
const kilni_cli_command_t kilni_cli_command_run = {
    "run",
    "FILE",
    "Run a kernel on files, on a GPU or on the software device.",
    "FILE is CUDA C++ (.cu, compiled by NVRTC), a program in Kiln's own "
    "language (.kiln, or lib:NAME for one of kiln lib list, which needs no "
    "compiler and defines the lengths of its outputs and its work size "
    "itself; one that has several launches or memory of its own runs as a "
    "whole, unless all parameters of the program are given), PTX (.ptx), "
    "LTO-IR (.ltoir, linked by nvJitLink) or device code (.cubin, on a GPU). "
    "Compiled code is cached (see kiln cache), for a GPU as machine code. "
    "Every parameter of the kernel is given by one of --in, --out, --inout, "
    "--expect and --arg. A program needs no P= if only one parameter can be "
    "meant; parameters of lib:NAME that are not given are as kiln lib NAME "
    "says.\nData files are .npy arrays, .pgm, .ppm and .png pictures (u8[h,w] "
    "or u8[h,w,c]) or raw bytes, by extension. Output files are written "
    "completely or not at all. What a kernel prints goes to standard error.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    1,
    "program",
    "kiln run grayscale.ptx --in 0=cat.png --out 1=gray.png:u8[300,451] "
    "--arg 2=135300i32",
    run_run,
};
