// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln cache warm`: compiles ahead of time what `kiln run` and `kiln
// compile` would.
//
// It uses the same code, so that the keys are equal: run_code.c for a device,
// compile_job.c for the options of `kiln compile`.
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cache_run.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "cli/compile_job.h"
#include "cli/run_session.h"

// All files of one call. one-thread
typedef struct warm_t {
  kilni_cli_cache_run_t* run;
  kilni_cli_request_t request;  // of what `kiln run` would do
  kilni_cli_session_t session;  // with a device; else without one
  kiln_runtime_t* runtime;      // borrowed from the session, or own
  kiln_cache_t* cache;
  kilni_cli_source_t asked;  // how what `kiln run` compiles is compiled
  bool compiles;
  json_t* files;
  kiln_status_code_t failed;  // of the first file that failed
} warm_t;

static bool cache_warm_add_made(warm_t* warm, const char* file,
                                uint32_t compile, const char* compile_reason,
                                uint32_t link, const char* link_reason) {
  json_t* name = json_string(file);
  if (name == NULL) name = json_string_nocheck("?");
  if (json_array_append_new(
          warm->files,
          json_pack("{s:o,s:s,s:s,s:s,s:s,s:n}", "file", name, "compile",
                    kilni_cli_cache_word(compile), "compile_reason",
                    compile_reason, "link", kilni_cli_cache_word(link),
                    "link_reason", link_reason, "error")) != 0) {
    return kilni_cli_fail(warm->run->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the result");
  }
  if (warm->run->call->json) return true;
  (void)fprintf(warm->run->call->results, "%s:", file);
  if (compile != KILN_COMPILE_CACHE_NONE) {
    (void)fprintf(warm->run->call->results, " compiled, %s (%s)",
                  kilni_cli_cache_word(compile), compile_reason);
  }
  if (link != KILN_LINK_CACHE_NONE) {
    (void)fprintf(warm->run->call->results, "%s linked, %s (%s)",
                  compile != KILN_COMPILE_CACHE_NONE ? ";" : "",
                  kilni_cli_cache_word(link), link_reason);
  }
  if (compile == KILN_COMPILE_CACHE_NONE && link == KILN_LINK_CACHE_NONE) {
    (void)fputs(" nothing to compile", warm->run->call->results);
  }
  (void)fputc('\n', warm->run->call->results);
  return true;
}

// A failure of one file does not stop the others.
static bool add_failed(warm_t* warm, const char* file,
                       const kilni_cli_error_t* error) {
  json_t* name = json_string(file);
  if (name == NULL) name = json_string_nocheck("?");
  if (warm->failed == KILN_STATUS_OK) warm->failed = error->code;
  (void)json_array_append_new(
      warm->files,
      json_pack("{s:o,s:s,s:s,s:s,s:s,s:s}", "file", name, "compile", "none",
                "compile_reason", "", "link", "none", "link_reason", "",
                "error", error->message));
  if (!warm->run->call->json) {
    (void)kilni_cli_error_report(stderr, false, error);
  }
  return true;
}

// ---- As kiln run ----

// Compiler options do not apply to other code.
static bool check_asked(const warm_t* warm, const char* file,
                        kilni_cli_code_kind_t kind, kilni_cli_error_t* error) {
  if (kind == KILNI_CLI_CODE_SOURCE ||
      !kilni_cli_compile_is_asked(warm->run->call)) {
    return true;
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "warm it with a separate kiln cache warm, without the "
                        "options of kiln compile",
                        "options of a compiler for \"%s\", which is not "
                        "compiled",
                        file);
}

static bool warm_device(warm_t* warm, const char* file,
                        kilni_cli_error_t* error) {
  kilni_cli_code_t code;
  memset(&code, 0, sizeof(code));
  code.runtime = warm->runtime;
  code.device = warm->session.device;
  code.cache = warm->cache;
  code.file = file;
  code.asked = &warm->asked.options;
  kiln_program_t* program = NULL;
  bool ok = kilni_cli_code_kind_of(file, &code.kind, error) &&
            check_asked(warm, file, code.kind, error);
  if (ok && code.kind == KILNI_CLI_CODE_PROGRAM) {
    ok = kilni_cli_program_read(file, NULL, &program, error);
    code.program = program;
  }
  ok = ok && kilni_cli_code_make(&code, error) &&
       cache_warm_add_made(warm, file, code.compile_cache, code.compile_reason,
                           code.link_cache, code.link_reason);
  kilni_cli_code_deinit(&code);
  kiln_program_release(program);
  return ok;
}

static bool cache_warm_open_device(warm_t* warm) {
  kilni_cli_cache_run_t* run = warm->run;
  warm->request.cache = run->where;
  if (!kilni_cli_device_read(&warm->request,
                             kilni_cli_option_value(run->call, "device"),
                             run->error) ||
      !kilni_cli_session_open(&warm->session, &warm->request, run->error)) {
    return false;
  }
  warm->runtime = warm->session.runtime;
  return true;
}

// ---- As kiln compile ----

static bool warm_options(warm_t* warm, const char* file,
                         kilni_cli_error_t* error) {
  kilni_cli_compile_t* job = calloc(1, sizeof(*job));
  if (job == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the options");
  }
  bool ok = kilni_cli_compile_read(job, warm->run->call, file, NULL, error) &&
            kilni_cli_compile_make(job, warm->runtime, warm->cache, error);
  if (ok && job->is_ptx) {
    ok = cache_warm_add_made(warm, file, KILN_COMPILE_CACHE_NONE, "",
                             job->cache, job->cache_reason);
  } else if (ok) {
    ok = cache_warm_add_made(warm, file, job->cache, job->cache_reason,
                             KILN_LINK_CACHE_NONE, "");
  }
  kilni_cli_compile_deinit(job);
  free(job);
  return ok;
}

static bool cache_warm_open_runtime(warm_t* warm) {
  kiln_log_sink_t log = kilni_cli_cache_log();
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.log = &log;
  options.cache = &warm->run->where.options;
  return kilni_cli_check(warm->run->error,
                         kiln_runtime_create(&options, &warm->runtime));
}

// ---- Both ----

static bool cache_warm_open_all(warm_t* warm) {
  const kilni_cli_call_t* call = warm->run->call;
  bool has_device = kilni_cli_option_value(call, "device") != NULL;
  warm->compiles = kilni_cli_compile_is_asked(call) && !has_device;
  if (has_device && kilni_cli_option_value(call, "output") != NULL) {
    return kilni_cli_fail(warm->run->error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit --device or --output",
                          "--device is for what kiln run makes, and --output "
                          "for what kiln compile does");
  }
  if (!kilni_cli_source_read(&warm->asked, call, NULL, warm->run->error)) {
    return false;
  }
  if (!(warm->compiles ? cache_warm_open_runtime(warm)
                       : cache_warm_open_device(warm))) {
    return false;
  }
  warm->cache = kiln_runtime_cache(warm->runtime);
  if (kiln_cache_directory(warm->cache)[0] != 0) return true;
  return kilni_cli_fail(warm->run->error, KILN_STATUS_INVALID_STATE,
                        "unset KILN_CACHE, or name a folder with --cache-dir",
                        "there is no folder for the cache");
}

static bool cache_warm_make_all(warm_t* warm) {
  const kilni_cli_call_t* call = warm->run->call;
  for (size_t i = 1; i < call->operand_count; i++) {
    const char* file = call->operands[i];
    kilni_cli_error_t error;
    memset(&error, 0, sizeof(error));
    bool ok = warm->compiles ? warm_options(warm, file, &error)
                             : warm_device(warm, file, &error);
    if (!ok) (void)add_failed(warm, file, &error);
  }
  const char* problem = kiln_cache_disk_problem(warm->cache);
  if (problem[0] == 0) return true;
  return kilni_cli_fail(warm->run->error, KILN_STATUS_IO_ERROR,
                        "name another folder with --cache-dir", "%s", problem);
}

static bool cache_warm_report(warm_t* warm) {
  kilni_cli_cache_run_t* run = warm->run;
  if (run->call->json &&
      !kilni_cli_json_write(
          run->call->results,
          json_pack("{s:s,s:O}", "directory", kiln_cache_directory(warm->cache),
                    "files", warm->files),
          run->error)) {
    return false;
  }
  return warm->failed == KILN_STATUS_OK ||
         kilni_cli_tell(run->error, warm->failed);
}

bool kilni_cli_cache_warm(kilni_cli_cache_run_t* run) {
  warm_t* warm = calloc(1, sizeof(*warm));
  if (warm == NULL) {
    return kilni_cli_fail(run->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the files");
  }
  warm->run = run;
  warm->files = json_array();
  bool ok = cache_warm_open_all(warm) && cache_warm_make_all(warm) &&
            cache_warm_report(warm);
  json_decref(warm->files);
  kilni_cli_source_deinit(&warm->asked);
  if (warm->compiles) {
    kiln_runtime_release(warm->runtime);
  } else {
    kilni_cli_session_close(&warm->session);
  }
  free(warm);
  return ok;
}
