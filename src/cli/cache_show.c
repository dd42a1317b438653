// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln cache stats`, `list` and `verify`.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cache_run.h"
#include "cli/cache_text.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"
#include "kiln/compile.h"

enum { MAX_KINDS = 32, LABEL = 12, TEXT_BYTES = 512 };

static uint64_t now_s(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec;
}

// Text of a key may contain any byte.
static json_t* view_json(kiln_string_view_t text) {
  char raw[TEXT_BYTES];
  char clean[TEXT_BYTES];
  size_t size = text.size < sizeof(raw) ? text.size : sizeof(raw) - 1;
  if (text.size == 0) return json_null();
  memcpy(raw, text.data, size);
  raw[size] = 0;
  kilni_cli_copy_text(clean, sizeof(clean), raw);
  return json_string(clean);
}

static json_t* directory_json(const kiln_cache_t* cache) {
  const char* folder = kiln_cache_directory(cache);
  if (folder[0] == 0) return json_null();
  json_t* text = json_string(folder);
  return text != NULL ? text : json_string_nocheck("?");
}

static json_t* problem_json(const kiln_cache_t* cache) {
  const char* problem = kiln_cache_disk_problem(cache);
  return problem[0] != 0 ? json_string(problem) : json_null();
}

// A walk over the folder. An unusable folder is not a failure of an action that
// reports it.
static bool cache_show_walk(kilni_cli_cache_run_t* run, uint32_t flags,
                            kiln_cache_item_fn_t fn, void* user,
                            kiln_cache_report_t* out_report) {
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "looking through %s",
                           kiln_cache_directory(run->cache));
  kiln_status_t status =
      kiln_cache_walk(run->cache, flags, fn, user, out_report);
  kilni_cli_progress_stop(&progress);
  return kilni_cli_check(run->error, status);
}

// ---- stats ----

// The entries of one kind. one-thread
typedef struct kind_t {
  char name[KILN_CACHE_KIND_BYTES];
  uint64_t entries;
  uint64_t bytes;
} kind_t;

// What stats adds up. one-thread
typedef struct sums_t {
  kind_t kinds[MAX_KINDS];  // the last collects the rest
  size_t kind_count;
  uint64_t oldest_s;  // last use; 0: none
  uint64_t newest_s;
} sums_t;

static bool cache_show_add_item(void* user, const kiln_cache_item_t* item) {
  sums_t* sums = user;
  const char* name = item->state == KILN_CACHE_STATE_GOOD ? item->kind : "?";
  size_t i = 0;
  while (i < sums->kind_count && strcmp(sums->kinds[i].name, name) != 0) i++;
  if (i == MAX_KINDS) i = MAX_KINDS - 1;
  if (i == sums->kind_count) {
    (void)snprintf(sums->kinds[i].name, sizeof(sums->kinds[i].name), "%s",
                   name);
    sums->kind_count++;
  }
  sums->kinds[i].entries++;
  sums->kinds[i].bytes += item->file_bytes;
  if (sums->oldest_s == 0 || item->used_s < sums->oldest_s) {
    sums->oldest_s = item->used_s;
  }
  if (item->used_s > sums->newest_s) sums->newest_s = item->used_s;
  return true;
}

static json_t* seconds_json(uint64_t seconds) {
  return seconds == 0 ? json_null() : json_integer((json_int_t)seconds);
}

static bool stats_json(const kilni_cli_cache_run_t* run, const sums_t* sums,
                       const kiln_cache_report_t* report,
                       const kiln_cache_stats_t* stats) {
  json_t* kinds = json_array();
  for (size_t i = 0; i < sums->kind_count; i++) {
    (void)json_array_append_new(
        kinds, json_pack("{s:s,s:I,s:I}", "kind", sums->kinds[i].name,
                         "entries", (json_int_t)sums->kinds[i].entries, "bytes",
                         (json_int_t)sums->kinds[i].bytes));
  }
  json_int_t limit = stats->disk_limit_bytes > INT64_MAX
                         ? INT64_MAX
                         : (json_int_t)stats->disk_limit_bytes;
  return kilni_cli_json_write(
      run->call->results,
      json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "directory",
                directory_json(run->cache), "problem", problem_json(run->cache),
                "entries", (json_int_t)report->entries, "bytes",
                (json_int_t)report->bytes, "limit_bytes", limit, "bad",
                (json_int_t)report->bad, "oldest_use",
                seconds_json(sums->oldest_s), "newest_use",
                seconds_json(sums->newest_s), "kinds", kinds),
      run->error);
}

static void stats_kinds(FILE* out, const sums_t* sums) {
  for (size_t i = 0; i < sums->kind_count; i++) {
    char size[KILNI_CLI_CACHE_TEXT_BYTES];
    kilni_cli_size_text(sums->kinds[i].bytes, size);
    (void)fprintf(out, "%*s%" PRIu64 " %s, %s\n", LABEL, "",
                  sums->kinds[i].entries, sums->kinds[i].name, size);
  }
}

static bool stats_text(const kilni_cli_cache_run_t* run, const sums_t* sums,
                       const kiln_cache_report_t* report,
                       const kiln_cache_stats_t* stats) {
  FILE* out = run->call->results;
  char size[KILNI_CLI_CACHE_TEXT_BYTES];
  char limit[KILNI_CLI_CACHE_TEXT_BYTES];
  const char* folder = kiln_cache_directory(run->cache);
  const char* problem = kiln_cache_disk_problem(run->cache);
  kilni_cli_size_text(report->bytes, size);
  kilni_cli_size_text(stats->disk_limit_bytes, limit);
  (void)fprintf(out, "%-*s%s\n", LABEL, "folder",
                folder[0] != 0 ? folder : "none: nothing is kept on disk");
  if (problem[0] != 0) {
    (void)fprintf(out, "%-*s%s\n", LABEL, "trouble", problem);
  }
  (void)fprintf(out, "%-*s%" PRIu64 "\n", LABEL, "entries", report->entries);
  stats_kinds(out, sums);
  (void)fprintf(out, "%-*s%s of %s\n", LABEL, "size", size, limit);
  if (report->bad != 0) {
    (void)fprintf(out, "%-*s%" PRIu64 ": see kiln cache verify\n", LABEL,
                  "not good", report->bad);
  }
  if (report->entries != 0) {
    char oldest[KILNI_CLI_CACHE_TEXT_BYTES];
    char newest[KILNI_CLI_CACHE_TEXT_BYTES];
    uint64_t now = now_s();
    kilni_cli_age_text(now > sums->oldest_s ? now - sums->oldest_s : 0, oldest);
    kilni_cli_age_text(now > sums->newest_s ? now - sums->newest_s : 0, newest);
    (void)fprintf(out, "%-*slast: %s; longest unused: %s\n", LABEL, "used",
                  newest, oldest);
  }
  return kilni_cli_results_flush(out, run->error);
}

bool kilni_cli_cache_stats(kilni_cli_cache_run_t* run) {
  kiln_cache_report_t report;
  kiln_cache_stats_t stats;
  sums_t sums;
  memset(&sums, 0, sizeof(sums));
  // Reasons why it cannot be used are part of the answer here.
  if (!cache_show_walk(run, 0, cache_show_add_item, &sums, &report) &&
      kiln_cache_disk_problem(run->cache)[0] == 0) {
    return false;
  }
  kiln_cache_stats(run->cache, &stats);
  return run->call->json ? stats_json(run, &sums, &report, &stats)
                         : stats_text(run, &sums, &report, &stats);
}

// ---- One entry ----

// What list and verify collect. one-thread
typedef struct shown_t {
  kilni_cli_cache_run_t* run;
  json_t* items;
  uint64_t good, stale, removed;
  bool verifies;
  bool repairs;
} shown_t;

static const char* state_word(uint32_t state) {
  static const char* const WORDS[] = {"good", "corrupt", "foreign",
                                      "unreadable"};
  return WORDS[state & 3];
}

static const char* action_word(uint32_t action) {
  return action == KILN_COMPILE_ENTRY_COMPILED ? "compiled"
         : action == KILN_COMPILE_ENTRY_LINKED ? "linked"
                                               : "other";
}

static json_t* cache_show_line_json(uint32_t line) {
  return line == 0 ? json_null()
                   : json_sprintf("%" PRIu32 ".%" PRIu32, line / 1000,
                                  line % 1000 / 10);
}

static json_t* cache_show_item_json(const kiln_cache_item_t* item,
                                    const kiln_compile_entry_t* entry,
                                    const char* state, const char* why) {
  return json_pack(
      "{s:s,s:s,s:s?,s:s,s:s,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:o,s:o}", "name",
      item->name, "state", state, "why", why[0] != 0 ? why : NULL, "kind",
      item->kind, "made", action_word(entry->action), "source",
      view_json(entry->name), "target", view_json(entry->arch), "tool",
      view_json(entry->tool), "tool_version", cache_show_line_json(entry->line),
      "files", (json_int_t)entry->file_count, "source_bytes",
      (json_int_t)entry->source_bytes, "payload_bytes",
      (json_int_t)item->payload_bytes, "bytes", (json_int_t)item->file_bytes,
      "created", seconds_json(item->created_s), "used",
      seconds_json(item->used_s));
}

static bool cache_show_append(shown_t* shown, json_t* item) {
  if (json_array_append_new(shown->items, item) == 0) return true;
  return kilni_cli_fail(shown->run->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                        "no memory for the list");
}

// Reports whether the inputs of an entry have changed: "" if not.
static bool cache_show_check_files(const shown_t* shown,
                                   const kiln_cache_entry_t* entry,
                                   char why[TEXT_BYTES]) {
  kiln_string_view_t changed;
  why[0] = 0;
  if (!shown->verifies || kiln_compile_entry_holds(entry, NULL, &changed)) {
    return true;
  }
  (void)snprintf(why, TEXT_BYTES, "%.*s has changed", (int)changed.size,
                 changed.data);
  return false;
}

static bool remove_entry(shown_t* shown, const kiln_cache_entry_t* entry) {
  kiln_cache_key_t key = {kiln_cache_entry_kind(entry),
                          kiln_cache_entry_version(entry), 0,
                          kiln_cache_entry_key(entry)};
  shown->removed++;
  return kilni_cli_check(shown->run->error,
                         kiln_cache_remove(shown->run->cache, &key));
}

static bool show_good(shown_t* shown, const kiln_cache_item_t* item,
                      const kiln_cache_entry_t* entry) {
  kiln_compile_entry_t inside;
  char why[TEXT_BYTES] = "";
  char clean[TEXT_BYTES];
  bool known = kiln_compile_entry_read(entry, &inside);
  bool holds = !known || cache_show_check_files(shown, entry, why);
  kilni_cli_copy_text(clean, sizeof(clean), why);
  ++*(holds ? &shown->good : &shown->stale);
  if (!cache_show_append(
          shown, cache_show_item_json(item, &inside, holds ? "good" : "stale",
                                      clean))) {
    return false;
  }
  return holds || !shown->repairs || remove_entry(shown, entry);
}

static bool show_item(void* user, const kiln_cache_item_t* item) {
  shown_t* shown = user;
  kiln_cache_entry_t* entry = NULL;
  kiln_compile_entry_t unknown;
  if (item->state == KILN_CACHE_STATE_GOOD &&
      !kilni_cli_check(
          shown->run->error,
          kiln_cache_get_named(shown->run->cache, item->name, &entry))) {
    return false;
  }
  if (entry != NULL) {
    bool ok = show_good(shown, item, entry);
    kiln_cache_entry_release(entry);
    return ok;
  }
  // Gone by now, or not read far enough to be found damaged.
  if (item->state == KILN_CACHE_STATE_GOOD) return true;
  (void)kiln_compile_entry_read(NULL, &unknown);
  return cache_show_append(
      shown,
      cache_show_item_json(item, &unknown, state_word(item->state), item->why));
}

static bool show_all(shown_t* shown, uint32_t flags,
                     kiln_cache_report_t* out_report) {
  shown->run->error->code = KILN_STATUS_OK;
  shown->items = json_array();
  return cache_show_walk(shown->run, flags, show_item, shown, out_report) &&
         shown->run->error->code == KILN_STATUS_OK;
}

// ---- list ----

static const char* cache_show_text_of(const json_t* item, const char* key,
                                      const char* none) {
  const char* text = json_string_value(json_object_get(item, key));
  return text != NULL ? text : none;
}

static uint64_t cache_show_number_of(const json_t* item, const char* key) {
  return (uint64_t)json_integer_value(json_object_get(item, key));
}

static void print_item(FILE* out, const json_t* item, uint64_t now) {
  char size[KILNI_CLI_CACHE_TEXT_BYTES];
  char age[KILNI_CLI_CACHE_TEXT_BYTES];
  char by[64];
  uint64_t used = cache_show_number_of(item, "used");
  kilni_cli_size_text(cache_show_number_of(item, "bytes"), size);
  kilni_cli_age_text(now > used ? now - used : 0, age);
  (void)snprintf(
      by, sizeof(by), "%s%s%s", cache_show_text_of(item, "tool", "-"),
      json_is_string(json_object_get(item, "tool_version")) ? " " : "",
      cache_show_text_of(item, "tool_version", ""));
  (void)fprintf(out, "%s  %-11s %-11s %-15s %10s %10s  %s",
                cache_show_text_of(item, "name", ""),
                cache_show_text_of(item, "kind", ""),
                cache_show_text_of(item, "target", "-"), by, size, age,
                cache_show_text_of(item, "source", "-"));
  if (strcmp(cache_show_text_of(item, "state", ""), "good") != 0) {
    (void)fprintf(out, "  (%s: %s)", cache_show_text_of(item, "state", ""),
                  cache_show_text_of(item, "why", ""));
  }
  (void)fputc('\n', out);
}

bool kilni_cli_cache_list(kilni_cli_cache_run_t* run) {
  kiln_cache_report_t report;
  shown_t shown = {.run = run};
  FILE* out = run->call->results;
  if (!show_all(&shown, 0, &report)) {
    json_decref(shown.items);
    return false;
  }
  if (run->call->json) {
    return kilni_cli_json_write(
        out,
        json_pack("{s:o,s:o,s:I}", "directory", directory_json(run->cache),
                  "entries", shown.items, "bytes", (json_int_t)report.bytes),
        run->error);
  }
  if (json_array_size(shown.items) != 0) {
    (void)fprintf(out, "%-32s  %-11s %-11s %-15s %10s %10s  %s\n", "NAME",
                  "KIND", "TARGET", "BY", "SIZE", "USED", "SOURCE");
  }
  for (size_t i = 0; i < json_array_size(shown.items); i++) {
    print_item(out, json_array_get(shown.items, i), now_s());
  }
  json_decref(shown.items);
  return kilni_cli_results_flush(out, run->error);
}

// ---- verify ----

// Only the items with a problem.
static json_t* not_good(const json_t* items) {
  json_t* list = json_array();
  for (size_t i = 0; i < json_array_size(items); i++) {
    json_t* item = json_array_get(items, i);
    if (strcmp(cache_show_text_of(item, "state", ""), "good") != 0) {
      (void)json_array_append(list, item);
    }
  }
  return list;
}

static void print_verified(FILE* out, const shown_t* shown,
                           const kiln_cache_report_t* report,
                           const json_t* items) {
  for (size_t i = 0; i < json_array_size(items); i++) {
    const json_t* item = json_array_get(items, i);
    (void)fprintf(out, "%s  %s: %s\n", cache_show_text_of(item, "name", ""),
                  cache_show_text_of(item, "state", ""),
                  cache_show_text_of(item, "why", ""));
  }
  (void)fprintf(out,
                "%" PRIu64 " good, %" PRIu64 " out of date, %" PRIu64
                " not good, %" PRIu64 " removed\n",
                shown->good, shown->stale, report->bad,
                report->removed + shown->removed);
}

static bool report_verified(const shown_t* shown,
                            const kiln_cache_report_t* report) {
  const kilni_cli_cache_run_t* run = shown->run;
  json_t* items = not_good(shown->items);
  if (run->call->json) {
    return kilni_cli_json_write(
        run->call->results,
        json_pack("{s:o,s:I,s:I,s:I,s:I,s:I,s:o}", "directory",
                  directory_json(run->cache), "good", (json_int_t)shown->good,
                  "stale", (json_int_t)shown->stale, "bad",
                  (json_int_t)report->bad, "removed",
                  (json_int_t)(report->removed + shown->removed), "temporaries",
                  (json_int_t)report->temporaries, "items", items),
        run->error);
  }
  print_verified(run->call->results, shown, report, items);
  json_decref(items);
  return kilni_cli_results_flush(run->call->results, run->error);
}

bool kilni_cli_cache_verify(kilni_cli_cache_run_t* run) {
  kiln_cache_report_t report;
  shown_t shown = {.run = run, .verifies = true};
  shown.repairs = kilni_cli_option_value(run->call, "repair") != NULL;
  uint32_t flags = KILN_CACHE_WALK_VERIFY;
  if (shown.repairs) flags |= KILN_CACHE_WALK_REPAIR;
  bool ok =
      show_all(&shown, flags, &report) && report_verified(&shown, &report);
  json_decref(shown.items);
  if (!ok) return false;
  // Outdated entries are compiled again when needed: only damage is a failure.
  return report.bad <= report.removed ||
         kilni_cli_tell(run->error, KILN_STATUS_BAD_DATA);
}
