// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln doctor`: what this machine has, and how to fix what is missing.
//
// Prints the library's facts and adds none of its own. What is missing is a
// line of the report, never a failure of the command.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "cli/cli_pieces.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"
#include "cli/doctor_report.h"
#include "kiln/runtime.h"

static bool cmd_doctor_is_on(const kilni_cli_call_t* call, const char* option) {
  return kilni_cli_option_value(call, option) != NULL;
}

static const char* cmd_doctor_home_of(const kiln_probe_t* probe) {
  for (uint32_t i = 0; i < kiln_probe_variable_count(probe); i++) {
    const kiln_probe_variable_t* v = kiln_probe_variable(probe, i);
    if (strcmp(v->name, "HOME") == 0) return v->value;
  }
  return NULL;
}

static bool write_to(FILE* out, const kilni_cli_call_t* call,
                     const kiln_probe_t* probe, const kiln_watch_t* watch,
                     kilni_cli_error_t* error) {
  kilni_cli_doctor_view_t view = {cmd_doctor_is_on(call, "all"),
                                  cmd_doctor_is_on(call, "trail"), watch};
  if (call->json) {
    return kilni_cli_json_write(out, kilni_cli_doctor_json(probe, view), error);
  }
  kilni_cli_doctor_print(out, probe, view);
  return true;
}

static bool cmd_doctor_show(const kilni_cli_call_t* call,
                            const kiln_probe_t* probe,
                            const kiln_watch_t* watch,
                            kilni_cli_error_t* error) {
  if (!cmd_doctor_is_on(call, "shorten")) {
    return write_to(call->results, call, probe, watch, error);
  }
  char* text = NULL;
  size_t size = 0;
  FILE* memory = open_memstream(&text, &size);
  if (memory == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "out of memory");
  }
  bool ok = write_to(memory, call, probe, watch, error);
  if (fclose(memory) != 0 && ok) {
    ok =
        kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL, "out of memory");
  }
  if (ok) {
    kilni_cli_shorten(call->results, text, size, cmd_doctor_home_of(probe));
  }
  free(text);
  return ok;
}

static bool cmd_doctor_make_runtime(const kilni_cli_call_t* call,
                                    const kilni_cli_where_t* where,
                                    kiln_runtime_t** out_runtime,
                                    kilni_cli_error_t* error) {
  kiln_toolkit_options_t toolkit = kiln_toolkit_options_default();
  toolkit.locate = &where->options;
  if (cmd_doctor_is_on(call, "verify")) toolkit.verify = KILN_SWITCH_ON;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.toolkit = &toolkit;
  return kilni_cli_check(error, kiln_runtime_create(&options, out_runtime));
}

static bool run_doctor(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  kilni_cli_where_t where;
  kiln_runtime_t* runtime = NULL;
  kiln_probe_t* probe = NULL;
  kiln_watch_t* watch = NULL;
  kilni_cli_progress_t progress;
  bool ok = kilni_cli_where_read(&where, call, error);
  kilni_cli_progress_start(&progress, "looking at this machine");
  ok = ok && cmd_doctor_make_runtime(call, &where, &runtime, error) &&
       kilni_cli_check(error, kiln_runtime_probe(runtime, NULL, &probe)) &&
       kilni_cli_check(error, kiln_runtime_watch(runtime, NULL, &watch));
  kilni_cli_progress_stop(&progress);
  ok = ok && cmd_doctor_show(call, probe, watch, error);
  kiln_watch_close(watch);
  kiln_probe_release(probe);
  kiln_runtime_release(runtime);
  kilni_cli_where_deinit(&where);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"all", NULL,
     "Show every component in the catalog, and every copy of "
     "each.",
     false, NULL},
    {"trail", NULL,
     "Show, for each component, every path that was rejected, and why.", false,
     NULL},
    {"shorten", NULL,
     "Shorten private paths, so that the report can be shared: the user's "
     "folder becomes ~, the user's name USER.",
     false, NULL},
    KILNI_CLI_WHERE_OPTIONS,
    {"json", NULL, "Write the facts, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_doctor = {
    "doctor",
    "",
    "Report what this machine has for CUDA, what is missing, and how to fix "
    "it.",
    "It examines the system, the driver, the GPUs and what NVML reports about "
    "them now, toolkits and all their components, the software device, the "
    "driver's cache and the environment, and reports for each where it was "
    "found and where its version comes from. Problems are listed last, most "
    "severe first, each with its fix.\nThe output of `kiln doctor --shorten` "
    "can be pasted into a bug report.\nThe exit code is 0 even if there are "
    "problems, since the report succeeded. Scripts read \"severity\" in the "
    "JSON.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    0,
    0,
    NULL,
    "kiln doctor --shorten",
    run_doctor,
};
