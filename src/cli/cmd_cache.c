// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln cache`: shows, verifies, clears and warms the compilation cache.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cache_run.h"
#include "cli/cache_text.h"
#include "cli/cli_log.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"
#include "cli/compile_job.h"

enum { MAX_OPERANDS = 4096 };

static void cmd_cache_on_log(kiln_log_level_t level, const char* space,
                             const char* line, void* user) {
  (void)user;
  if (kilni_cli_log_trace(level, line)) return;
  if (kilni_cli_log_matters(level, space)) kilni_cli_note("warning: %s", line);
}

kiln_log_sink_t kilni_cli_cache_log(void) {
  kiln_log_sink_t log = {cmd_cache_on_log, NULL, kilni_cli_log_level(), 0};
  return log;
}

static bool open_cache(kilni_cli_cache_run_t* run) {
  kiln_log_sink_t log = kilni_cli_cache_log();
  kiln_cache_options_t options = run->where.options;
  options.log = &log;
  return kilni_cli_check(run->error, kiln_cache_create(&options, &run->cache));
}

// ---- clear ----

static bool report_cleared(const kilni_cli_cache_run_t* run,
                           const kiln_cache_report_t* report) {
  char freed[KILNI_CLI_CACHE_TEXT_BYTES];
  char left[KILNI_CLI_CACHE_TEXT_BYTES];
  FILE* out = run->call->results;
  const char* folder = kiln_cache_directory(run->cache);
  if (run->call->json) {
    return kilni_cli_json_write(
        out,
        json_pack("{s:s?,s:I,s:I,s:I,s:I,s:I,s:I}", "directory",
                  folder[0] != 0 ? folder : NULL, "removed",
                  (json_int_t)report->removed, "freed_bytes",
                  (json_int_t)report->freed_bytes, "temporaries",
                  (json_int_t)report->temporaries, "entries",
                  (json_int_t)report->entries, "bytes",
                  (json_int_t)report->bytes, "failures",
                  (json_int_t)report->failures),
        run->error);
  }
  kilni_cli_size_text(report->freed_bytes, freed);
  kilni_cli_size_text(report->bytes, left);
  (void)fprintf(out, "removed %" PRIu64 " (%s); %" PRIu64 " left (%s)\n",
                report->removed, freed, report->entries, left);
  return kilni_cli_results_flush(out, run->error);
}

static bool cmd_cache_clear(kilni_cli_cache_run_t* run) {
  const char* age = kilni_cli_option_value(run->call, "older-than");
  const char* size = kilni_cli_option_value(run->call, "max-bytes");
  kiln_cache_options_t* options = &run->where.options;
  bool all = age == NULL && size == NULL;
  options->max_age_s = KILN_CACHE_UNLIMITED;
  options->disk_bytes = KILN_CACHE_UNLIMITED;
  if (age != NULL && !kilni_cli_age_parse("older-than", age,
                                          &options->max_age_s, run->error)) {
    return false;
  }
  if (size != NULL && !kilni_cli_size_parse("max-bytes", size,
                                            &options->disk_bytes, run->error)) {
    return false;
  }
  if (!open_cache(run)) return false;
  kiln_cache_report_t report;
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "clearing %s",
                           kiln_cache_directory(run->cache));
  kiln_status_t status = all ? kiln_cache_clear(run->cache, &report)
                             : kiln_cache_trim(run->cache, &report);
  kilni_cli_progress_stop(&progress);
  if (!kilni_cli_check(run->error, status) || !report_cleared(run, &report)) {
    return false;
  }
  if (report.failures == 0) return true;
  kilni_cli_note("%" PRIu64 " files could not be removed", report.failures);
  return kilni_cli_tell(run->error, KILN_STATUS_IO_ERROR);
}

// ---- Which action ----

static bool stats(kilni_cli_cache_run_t* run) {
  return open_cache(run) && kilni_cli_cache_stats(run);
}

static bool cmd_cache_list(kilni_cli_cache_run_t* run) {
  return open_cache(run) && kilni_cli_cache_list(run);
}

static bool verify(kilni_cli_cache_run_t* run) {
  return open_cache(run) && kilni_cli_cache_verify(run);
}

// An action and the options that it accepts. thread-safe
typedef struct action_t {
  const char* name;
  bool (*run)(kilni_cli_cache_run_t* run);
  const char* options;  // between blanks
  bool files;
} action_t;

static const action_t kActions[] = {
    {"stats", stats, " cache-dir json ", false},
    {"list", cmd_cache_list, " cache-dir json ", false},
    {"verify", verify, " cache-dir json repair ", false},
    {"clear", cmd_cache_clear, " cache-dir json older-than max-bytes ", false},
    {"warm", kilni_cli_cache_warm,
     " cache-dir json device output arch define include pre-include std name "
     "lineinfo debug option ",
     true},
};
enum { ACTION_COUNT = sizeof(kActions) / sizeof(kActions[0]) };

static const action_t* find_action(const char* name, kilni_cli_error_t* error) {
  const char* names[ACTION_COUNT];
  for (size_t i = 0; i < ACTION_COUNT; i++) {
    if (strcmp(kActions[i].name, name) == 0) return &kActions[i];
    names[i] = kActions[i].name;
  }
  const char* near = kilni_cli_nearest(name, names, ACTION_COUNT);
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                       "use stats, list, verify, clear or warm",
                       "\"%s\" is not an action of \"kiln cache\"", name);
  if (near != NULL) {
    kilni_cli_error_fix(error, "did you mean \"kiln cache %s\"?", near);
  }
  return NULL;
}

static bool check_action(const action_t* action, const kilni_cli_call_t* call,
                         kilni_cli_error_t* error) {
  for (size_t i = 0; i < call->given_count; i++) {
    char word[64];
    const char* name = call->given[i].option->name;
    (void)snprintf(word, sizeof(word), " %s ", name);
    if (strstr(action->options, word) == NULL) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                            "--%s has no meaning for \"kiln cache %s\"", name,
                            action->name);
    }
  }
  if (action->files && call->operand_count < 2) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "name the files to be run or compiled",
                          "\"kiln cache warm\" needs FILE...");
  }
  if (action->files || call->operand_count < 2) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                        "\"kiln cache %s\" takes no argument \"%s\"",
                        action->name, call->operands[1]);
}

static bool run_cache(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  const action_t* action = find_action(call->operands[0], error);
  if (action == NULL || !check_action(action, call, error)) return false;
  kilni_cli_cache_run_t run;
  memset(&run, 0, sizeof(run));
  run.call = call;
  run.error = error;
  bool ok = kilni_cli_cache_read(&run.where, call, error) && action->run(&run);
  kiln_cache_release(run.cache);
  kilni_cli_cache_deinit(&run.where);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"cache-dir", "DIR",
     "The folder. Default: KILN_CACHE_DIR, else kiln in XDG_CACHE_HOME, else "
     ".cache/kiln in HOME.",
     false, "file"},
    {"repair", NULL,
     "verify: remove damaged and outdated entries, and files left by writers "
     "that were killed.",
     false, NULL},
    {"older-than", "AGE",
     "clear: remove only entries unused for this long, such as 12h or 30d.",
     false, NULL},
    {"max-bytes", "SIZE",
     "clear: remove only the least recently used entries, until the rest is "
     "at most this size, such as 500M or 2G.",
     false, NULL},
    {"device", "auto|cuda:N|soft|NAME",
     "warm: compile what kiln run would compile for this device, with the "
     "given options. Default: auto, unless an option of kiln compile is "
     "given.",
     false, "auto cuda:0 soft"},
    KILNI_CLI_COMPILE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_cache = {
    "cache",
    "stats|list|verify|clear|warm [FILE]...",
    "Manage the compilation cache.",
    "stats reports where the cache is, how large it is and whether it can be "
    "used. list shows each entry: what was compiled, for which target, by "
    "which compiler, and when. verify reads every entry in full, and every "
    "file that it was compiled from, and reports what is damaged and what has "
    "changed. clear removes all entries, or those selected by --older-than "
    "and --max-bytes.\nwarm compiles ahead of time what kiln run FILE would "
    "compile or, if an option of kiln compile is given (--output, --arch, "
    "--define ...) and --device is not, what kiln compile FILE with these "
    "options would: the next start finds it in the cache.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    MAX_OPERANDS,
    "stats list verify clear warm",
    "kiln cache warm saxpy.cu --device soft",
    run_cache,
};
