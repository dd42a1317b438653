// SPDX-License-Identifier: Apache-2.0
//
// compat: what a check found, and what that means in a mode.
#include "compat/compat_report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

enum { USE_COUNT = KILN_COMPAT_USE_NVVM + 1 };

// A finding with what it owns. one-thread
typedef struct entry_t {
  kiln_compat_finding_t view;
  kiln_compat_party_t parties[3];
  char* items[3];
  char* paths[3];
  char* message;
  char* fix;
} entry_t;

struct kiln_compat_report_t {
  kiln_allocator_t allocator;
  atomic_uint references;
  uint32_t mode;
  uint32_t count;
  uint32_t judged[USE_COUNT];    // pipelines, by use
  uint32_t declared[USE_COUNT];  // those of them that the caller declared
  size_t capacity;
  entry_t* entries;
};

kiln_status_t kilni_compat_report_create(kiln_allocator_t allocator,
                                         uint32_t mode,
                                         kiln_compat_report_t** out_report) {
  *out_report = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_compat_report_t), &block));
  kiln_compat_report_t* report = block;
  report->allocator = allocator;
  report->mode = mode;
  atomic_init(&report->references, 1);
  *out_report = report;
  return kiln_ok();
}

static void entry_deinit(kiln_allocator_t allocator, entry_t* entry) {
  for (int i = 0; i < 3; i++) {
    kilni_base_strfree(allocator, entry->items[i]);
    kilni_base_strfree(allocator, entry->paths[i]);
  }
  kilni_base_strfree(allocator, entry->message);
  kilni_base_strfree(allocator, entry->fix);
  memset(entry, 0, sizeof(*entry));
}

void kiln_compat_report_retain(kiln_compat_report_t* report) {
  if (report == NULL) return;
  atomic_fetch_add_explicit(&report->references, 1, memory_order_relaxed);
}

void kiln_compat_report_release(kiln_compat_report_t* report) {
  if (report == NULL) return;
  if (atomic_fetch_sub_explicit(&report->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  for (uint32_t i = 0; i < report->count; i++) {
    entry_deinit(report->allocator, &report->entries[i]);
  }
  kilni_base_free_array(report->allocator, report->entries, report->capacity,
                        sizeof(entry_t));
  kilni_base_free(report->allocator, report, sizeof(*report));
}

// ---- Writing ----

void kilni_compat_finding_init(kilni_compat_finding_t* finding,
                               kiln_allocator_t allocator, uint32_t rule,
                               uint32_t use, uint32_t verdict, bool counts) {
  memset(finding, 0, sizeof(*finding));
  finding->rule = rule;
  finding->use = use;
  finding->verdict = verdict;
  finding->counts = counts;
  kilni_base_str_init(&finding->message, allocator, KILNI_COMPAT_MAX_TEXT);
  kilni_base_str_init(&finding->fix, allocator, KILNI_COMPAT_MAX_TEXT);
}

static kiln_status_t add_party(kiln_allocator_t allocator, entry_t* entry,
                               const char* kind, const char* name,
                               const char* path, uint32_t line) {
  uint32_t index = entry->view.party_count;
  kilni_base_str_t item;
  kilni_base_str_init(&item, allocator, KILNI_COMPAT_MAX_TEXT);
  if (kind != NULL) kilni_base_str_addf(&item, "%s:", kind);
  kilni_base_str_add_cstr(&item, name);
  KILNI_RETURN_IF_ERROR(kilni_base_str_take(&item, &entry->items[index]));
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(allocator, kilni_base_sv(path), &entry->paths[index]));
  entry->parties[index].item = entry->items[index];
  entry->parties[index].path = entry->paths[index];
  entry->parties[index].line = line;
  entry->view.party_count++;
  return kiln_ok();
}

static kiln_status_t report_fill(kiln_allocator_t allocator,
                                 kilni_compat_finding_t* finding,
                                 const kiln_compat_driver_t* driver,
                                 entry_t* entry) {
  entry->view.rule = finding->rule;
  entry->view.use = finding->use;
  entry->view.verdict = finding->verdict;
  entry->view.counts = finding->counts;
  for (int i = 0; i < 2; i++) {
    const kiln_compat_fact_t* fact = finding->parties[i];
    if (fact == NULL) continue;
    KILNI_RETURN_IF_ERROR(add_party(allocator, entry,
                                    kiln_compat_kind_word(fact->kind),
                                    fact->name, fact->path, fact->line));
  }
  if (finding->names_driver) {
    uint32_t line = driver != NULL ? driver->line : 0;
    KILNI_RETURN_IF_ERROR(
        add_party(allocator, entry, NULL, "driver", NULL, line));
  }
  KILNI_RETURN_IF_ERROR(
      kilni_base_str_take(&finding->message, &entry->message));
  return kilni_base_str_take(&finding->fix, &entry->fix);
}

kiln_status_t kilni_compat_report_add(kiln_compat_report_t* report,
                                      kilni_compat_finding_t* finding,
                                      const kiln_compat_driver_t* driver) {
  entry_t entry;
  memset(&entry, 0, sizeof(entry));
  kiln_status_t status = kiln_ok();
  if (report->count == KILNI_COMPAT_MAX_FINDINGS) {
    status = kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a check with more than %d findings",
                   (int)KILNI_COMPAT_MAX_FINDINGS),
        "check fewer components at once");
  }
  if (kiln_status_is_ok(status)) {
    void* entries = report->entries;
    status = kilni_base_grow(report->allocator, report->count + 1,
                             sizeof(entry_t), &report->capacity, &entries);
    report->entries = entries;
  }
  if (kiln_status_is_ok(status)) {
    status = report_fill(report->allocator, finding, driver, &entry);
  }
  kilni_base_str_deinit(&finding->message);
  kilni_base_str_deinit(&finding->fix);
  if (!kiln_status_is_ok(status)) {
    entry_deinit(report->allocator, &entry);
    return status;
  }
  report->entries[report->count++] = entry;
  return kiln_ok();
}

void kilni_compat_report_judge(kiln_compat_report_t* report, uint32_t use,
                               bool declared) {
  report->judged[use]++;
  if (declared) report->declared[use]++;
}

static int compare_entries(const void* left, const void* right) {
  const entry_t* a = left;
  const entry_t* b = right;
  if (a->view.counts != b->view.counts) return a->view.counts ? -1 : 1;
  if (a->view.verdict != b->view.verdict) {
    return a->view.verdict > b->view.verdict ? -1 : 1;
  }
  if (a->view.rule != b->view.rule) return a->view.rule < b->view.rule ? -1 : 1;
  if (a->view.use != b->view.use) return a->view.use < b->view.use ? -1 : 1;
  return strcmp(a->message, b->message);
}

void kilni_compat_report_finish(kiln_compat_report_t* report) {
  if (report->count > 0) {
    qsort(report->entries, report->count, sizeof(entry_t), compare_entries);
  }
  for (uint32_t i = 0; i < report->count; i++) {
    entry_t* entry = &report->entries[i];
    entry->view.parties = entry->parties;
    entry->view.message = entry->message;
    entry->view.fix = entry->fix;
  }
}

// ---- Reading ----

uint32_t kiln_compat_report_finding_count(const kiln_compat_report_t* report) {
  return report->count;
}

const kiln_compat_finding_t* kiln_compat_report_finding(
    const kiln_compat_report_t* report, uint32_t index) {
  return index < report->count ? &report->entries[index].view : NULL;
}

uint32_t kiln_compat_report_verdict(const kiln_compat_report_t* report) {
  if (report->mode == KILN_COMPAT_MODE_OFF) return KILN_COMPAT_VERDICT_UNKNOWN;
  uint32_t worst = KILN_COMPAT_VERDICT_COMPATIBLE;
  for (uint32_t i = 0; i < report->count; i++) {
    const kiln_compat_finding_t* finding = &report->entries[i].view;
    if (finding->counts && finding->verdict > worst) worst = finding->verdict;
  }
  return worst;
}

uint32_t kiln_compat_report_judged_count(const kiln_compat_report_t* report,
                                         uint32_t use, uint32_t* out_declared) {
  bool is_use = use > KILN_COMPAT_USE_ANY && use < USE_COUNT;
  if (out_declared != NULL) *out_declared = is_use ? report->declared[use] : 0;
  return is_use ? report->judged[use] : 0;
}

uint32_t kiln_compat_report_verdict_of_use(const kiln_compat_report_t* report,
                                           uint32_t use) {
  if (report->mode == KILN_COMPAT_MODE_OFF) return KILN_COMPAT_VERDICT_UNKNOWN;
  uint32_t worst = KILN_COMPAT_VERDICT_COMPATIBLE;
  if (use != KILN_COMPAT_USE_ANY &&
      kiln_compat_report_judged_count(report, use, NULL) == 0) {
    worst = KILN_COMPAT_VERDICT_UNKNOWN;
  }
  for (uint32_t i = 0; i < report->count; i++) {
    const kiln_compat_finding_t* finding = &report->entries[i].view;
    if (finding->use != use && finding->use != KILN_COMPAT_USE_ANY) continue;
    if (finding->verdict > worst) worst = finding->verdict;
  }
  return worst;
}

// The lowest verdict that fails in a mode; larger than all where nothing does.
static uint32_t failing_from(const kiln_compat_report_t* report,
                             uint32_t mode) {
  if (report->mode == KILN_COMPAT_MODE_OFF) return UINT32_MAX;
  switch (mode == KILN_COMPAT_MODE_DEFAULT ? report->mode : mode) {
    case KILN_COMPAT_MODE_STRICT:
      return KILN_COMPAT_VERDICT_UNKNOWN;
    case KILN_COMPAT_MODE_BEST_EFFORT:
      return KILN_COMPAT_VERDICT_INCOMPATIBLE;
    default:
      return UINT32_MAX;
  }
}

const kiln_compat_finding_t* kiln_compat_report_refusal(
    const kiln_compat_report_t* report, uint32_t mode) {
  // Those that count come first, the worst in front.
  const kiln_compat_finding_t* first = kiln_compat_report_finding(report, 0);
  if (first == NULL || !first->counts) return NULL;
  return first->verdict >= failing_from(report, mode) ? first : NULL;
}

kiln_status_t kiln_compat_report_status(const kiln_compat_report_t* report,
                                        uint32_t mode) {
  const kiln_compat_finding_t* first = kiln_compat_report_refusal(report, mode);
  if (first == NULL) return kiln_ok();
  kiln_status_t status =
      first->verdict == KILN_COMPAT_VERDICT_INCOMPATIBLE
          ? KILNI_FAIL(INCOMPATIBLE, "%s (rule %s)", first->message,
                       kiln_compat_rule_word(first->rule))
          : KILNI_FAIL(INSUFFICIENT_METADATA, "%s (rule %s)", first->message,
                       kiln_compat_rule_word(first->rule));
  status = kilni_base_status_with_fix(status, "%s", first->fix);
  uint32_t least = failing_from(report, mode);
  for (uint32_t i = 1; i < report->count; i++) {
    const kiln_compat_finding_t* next = &report->entries[i].view;
    if (!next->counts || next->verdict < least) break;
    if (i == 8) {
      return KILNI_ANNOTATE(status, "and more; the report lists all of them");
    }
    status = KILNI_ANNOTATE(status, "%s (rule %s)", next->message,
                            kiln_compat_rule_word(next->rule));
  }
  return status;
}

// Text that stops at a capacity and goes on counting. one-thread
typedef struct writer_t {
  char* buffer;
  size_t capacity;
  size_t length;
} writer_t;

static void report_put(writer_t* writer, const char* text) {
  size_t size = strlen(text);
  if (writer->length + 1 < writer->capacity) {
    size_t space = writer->capacity - 1 - writer->length;
    memcpy(writer->buffer + writer->length, text, size < space ? size : space);
  }
  writer->length += size;
}

static void put_finding(writer_t* writer,
                        const kiln_compat_finding_t* finding) {
  report_put(writer, kiln_compat_verdict_word(finding->verdict));
  report_put(writer, finding->counts ? "" : " (not counted)");
  report_put(writer, ": ");
  report_put(writer, finding->message);
  report_put(writer, " [");
  report_put(writer, kiln_compat_rule_word(finding->rule));
  report_put(writer, ", ");
  report_put(writer, kiln_compat_use_word(finding->use));
  report_put(writer, "]\n");
  if (finding->fix[0] == '\0') return;
  report_put(writer, "  Fix: ");
  report_put(writer, finding->fix);
  report_put(writer, "\n");
}

void kiln_compat_report_format(const kiln_compat_report_t* report,
                               size_t capacity, char* buffer,
                               size_t* out_length) {
  writer_t writer = {buffer, capacity, 0};
  if (report->mode == KILN_COMPAT_MODE_OFF) {
    report_put(&writer, "not checked: the mode is off\n");
  } else {
    report_put(&writer,
               kiln_compat_verdict_word(kiln_compat_report_verdict(report)));
    report_put(&writer, "\n");
  }
  for (uint32_t i = 0; i < report->count; i++) {
    put_finding(&writer, &report->entries[i].view);
  }
  if (capacity > 0) {
    buffer[writer.length < capacity ? writer.length : capacity - 1] = '\0';
  }
  if (out_length != NULL) *out_length = writer.length;
}
