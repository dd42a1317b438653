// SPDX-License-Identifier: Apache-2.0
//
// program: reports: what was found, and how it reads.
#include "program/ir/program_report.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"

enum { MAX_TEXT = 1 << 20, MAX_SOURCE = 160 };

struct kiln_program_report_t {
  kiln_allocator_t allocator;
  atomic_uint references;
  uint32_t count;
  uint32_t errors;
  kiln_status_code_t failed;
  char* file_name;
  char* text;
  // Each with strings of its own.
  kiln_program_problem_t problems[KILN_PROGRAM_MAX_PROBLEMS];
  uint32_t cut[KILN_PROGRAM_MAX_PROBLEMS];  // bytes in front of `source`
};

kiln_status_t kilni_program_report_create(kiln_allocator_t allocator,
                                          const char* file_name,
                                          kiln_program_report_t** out_report) {
  *out_report = NULL;
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_program_report_t), &block));
  kiln_program_report_t* report = block;
  report->allocator = allocator;
  atomic_init(&report->references, 1);
  kiln_status_t status = kilni_base_strdup(allocator, kilni_base_sv(file_name),
                                           &report->file_name);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, block, sizeof(*report));
    return status;
  }
  *out_report = report;
  return kiln_ok();
}

void kiln_program_report_retain(kiln_program_report_t* report) {
  if (report == NULL) return;
  atomic_fetch_add_explicit(&report->references, 1, memory_order_relaxed);
}

static void free_strings(const kiln_program_report_t* report,
                         const kiln_program_problem_t* problem) {
  kilni_base_strfree(report->allocator, (char*)(uintptr_t)problem->message);
  kilni_base_strfree(report->allocator, (char*)(uintptr_t)problem->fix);
  kilni_base_strfree(report->allocator, (char*)(uintptr_t)problem->source);
}

void kiln_program_report_release(kiln_program_report_t* report) {
  if (report == NULL || atomic_fetch_sub(&report->references, 1) != 1) return;
  kiln_allocator_t allocator = report->allocator;
  for (uint32_t i = 0; i < report->count; i++) {
    free_strings(report, &report->problems[i]);
  }
  kilni_base_strfree(allocator, report->text);
  kilni_base_strfree(allocator, report->file_name);
  kilni_base_free(allocator, report, sizeof(*report));
}

static void report_keep(kiln_program_report_t* report, kiln_string_view_t text,
                        const char** out_text) {
  char* copy = NULL;
  kiln_status_t status = kilni_base_strdup(report->allocator, text, &copy);
  if (!kiln_status_is_ok(status)) {
    report->failed = KILN_STATUS_OUT_OF_MEMORY;
    kiln_status_free(status);
  }
  *out_text = copy;
}

// Takes the last note out, to make space for an error.
static void drop_note(kiln_program_report_t* report) {
  uint32_t at = report->count - 1;
  while (!report->problems[at].is_note) at--;
  free_strings(report, &report->problems[at]);
  report->count--;
  for (; at < report->count; at++) {
    report->problems[at] = report->problems[at + 1];
    report->cut[at] = report->cut[at + 1];
  }
}

static bool is_inside_character(char c) {
  return ((unsigned char)c & 0xc0U) == 0x80;
}

// What is shown of a long line: the place and what is around it. How many
// bytes in front of that are left out.
static uint32_t cut_source(kiln_string_view_t* source, uint32_t column) {
  if (source->size <= MAX_SOURCE) return 0;
  size_t start = 0, most = source->size - MAX_SOURCE;
  if (column > MAX_SOURCE / 2) start = column - MAX_SOURCE / 2;
  if (start > most) start = most;
  size_t end = start + MAX_SOURCE;
  while (start < end && is_inside_character(source->data[start])) start++;
  while (end > start && end < source->size &&
         is_inside_character(source->data[end])) {
    end--;
  }
  source->data += start;
  source->size = end - start;
  return (uint32_t)start;
}

void kilni_program_report_add(kiln_program_report_t* report,
                              const kiln_program_problem_t* problem,
                              kiln_string_view_t source) {
  bool space = !kilni_program_report_is_full(report);
  if (problem->is_note) space = report->count < KILN_PROGRAM_MAX_PROBLEMS;
  if (!problem->is_note) report->errors++;
  if (report->failed != KILN_STATUS_OK || !space) return;
  if (report->count == KILN_PROGRAM_MAX_PROBLEMS) drop_note(report);
  uint32_t at = report->count++;
  kiln_program_problem_t* mine = &report->problems[at];
  *mine = *problem;
  report->cut[at] = cut_source(&source, problem->column);
  report_keep(report, kilni_base_sv(problem->message), &mine->message);
  report_keep(report, kilni_base_sv(problem->fix), &mine->fix);
  report_keep(report, source, &mine->source);
}

uint32_t kilni_program_report_errors(const kiln_program_report_t* report) {
  return report->errors;
}

bool kilni_program_report_is_full(const kiln_program_report_t* report) {
  return report->errors >= KILN_PROGRAM_MAX_PROBLEMS;
}

// `column` is in what is shown of the line.
static void write_caret(kilni_base_str_t* text,
                        const kiln_program_problem_t* problem,
                        uint32_t column) {
  if (problem->line == 0) return;
  kilni_base_str_addf(text, "  %s\n  ", problem->source);
  // Tabs stay tabs, so that the caret stands below its character.
  size_t length = strlen(problem->source);
  for (uint32_t i = 1; i < column && i <= length; i++) {
    kilni_base_str_add_char(text, problem->source[i - 1] == '\t' ? '\t' : ' ');
  }
  kilni_base_str_add_cstr(text, "^\n");
}

static void write_problem(const kiln_program_report_t* report, uint32_t index,
                          kilni_base_str_t* text) {
  const kiln_program_problem_t* problem = &report->problems[index];
  kilni_base_str_add_cstr(text, report->file_name);
  if (problem->line != 0) {
    kilni_base_str_addf(text, ":%u:%u", problem->line, problem->column);
  }
  kilni_base_str_addf(text, ": %s: %s", problem->is_note ? "note" : "error",
                      problem->message);
  if (problem->rule != 0) kilni_base_str_addf(text, " [P%03u]", problem->rule);
  kilni_base_str_add_char(text, '\n');
  write_caret(text, problem, problem->column - report->cut[index]);
  if (problem->fix[0] != 0) {
    kilni_base_str_addf(text, "  Fix: %s\n", problem->fix);
  }
}

static kiln_status_t report_first_error(const kiln_program_report_t* report) {
  const kiln_program_problem_t* first = report->problems;
  while (first->is_note) first++;
  kiln_status_t status;
  if (first->line != 0) {
    status = KILNI_FAIL(COMPILE_FAILED, "%s:%u:%u: %s", report->file_name,
                        first->line, first->column, first->message);
  } else {
    status = KILNI_FAIL(COMPILE_FAILED, "%s", first->message);
  }
  if (report->errors > 1) {
    status = KILNI_ANNOTATE(status, "the first of %u errors", report->errors);
  }
  return kilni_base_status_with_fix(status, "%s", first->fix);
}

kiln_status_t kilni_program_report_end(kiln_program_report_t* report) {
  if (report->failed != KILN_STATUS_OK) {
    return kilni_base_status_bare(report->failed);
  }
  kilni_base_str_t text;
  kilni_base_str_init(&text, report->allocator, MAX_TEXT);
  for (uint32_t i = 0; i < report->count; i++) {
    write_problem(report, i, &text);
  }
  KILNI_RETURN_IF_ERROR(kilni_base_str_take(&text, &report->text));
  return report->errors == 0 ? kiln_ok() : report_first_error(report);
}

uint32_t kiln_program_report_count(const kiln_program_report_t* report) {
  return report == NULL ? 0 : report->count;
}

bool kiln_program_report_problem(const kiln_program_report_t* report,
                                 uint32_t index,
                                 kiln_program_problem_t* out_problem) {
  memset(out_problem, 0, sizeof(*out_problem));
  if (report == NULL || index >= report->count) return false;
  *out_problem = report->problems[index];
  return true;
}

const char* kiln_program_report_text(const kiln_program_report_t* report) {
  return report == NULL || report->text == NULL ? "" : report->text;
}
