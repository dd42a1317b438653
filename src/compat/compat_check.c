// SPDX-License-Identifier: Apache-2.0
//
// compat: a request becomes a set, the rules are asked, and a report is made.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "compat/compat_report.h"
#include "compat/compat_rules.h"
#include "kiln/compat.h"

// ---- Reading the request ----

static const char* check_text_or_empty(const char* text) {
  return text != NULL ? text : "";
}

static kiln_status_t read_fact(const kiln_compat_fact_t* given, uint32_t index,
                               kiln_compat_fact_t* out) {
  if (given == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`facts[%u]` is NULL", (unsigned)index),
        "pass `fact_count` facts");
  }
  KILNI_RETURN_IF_ERROR(
      kilni_base_options_read(given, "kiln_compat_fact_t", sizeof(*out), out));
  if (out->name == NULL || out->kind < KILN_COMPAT_KIND_LIB ||
      out->kind > KILN_COMPAT_KIND_STUB ||
      out->class_id < KILN_COMPAT_CLASS_CTK ||
      out->class_id > KILN_COMPAT_CLASS_OTHER ||
      (out->tag_count > 0 && out->tags == NULL) ||
      (out->need_count > 0 && out->needs == NULL)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`facts[%u]` lacks its name, kind, class, or a list with a "
                   "nonzero count",
                   (unsigned)index),
        "start from kiln_compat_fact_default() and set them");
  }
  for (uint32_t i = 0; i < out->need_count; i++) {
    KILNI_CHECK_RESERVED(out->needs[i].reserved, kiln_compat_need_t);
  }
  out->path = check_text_or_empty(out->path);
  out->evidence = check_text_or_empty(out->evidence);
  out->release = check_text_or_empty(out->release);
  out->against = check_text_or_empty(out->against);
  if (out->component != NULL && out->component[0] == '\0') {
    out->component = NULL;
  }
  return kiln_ok();
}

static kiln_status_t check_read_use(const kiln_compat_use_t* given,
                                    uint32_t index, kiln_compat_use_t* out) {
  if (given == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`uses[%u]` is NULL", (unsigned)index),
        "pass `use_count` uses");
  }
  KILNI_RETURN_IF_ERROR(
      kilni_base_options_read(given, "kiln_compat_use_t", sizeof(*out), out));
  if (out->producer_kind == 0) out->producer_kind = KILN_COMPAT_KIND_LIB;
  if (out->consumer_kind == 0) out->consumer_kind = KILN_COMPAT_KIND_LIB;
  if (out->producer == NULL || out->consumer == NULL ||
      out->producer_kind > KILN_COMPAT_KIND_STUB ||
      out->consumer_kind > KILN_COMPAT_KIND_STUB ||
      out->artifact < KILN_COMPAT_ARTIFACT_LTOIR ||
      out->artifact > KILN_COMPAT_ARTIFACT_NVVM) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`uses[%u]` lacks its producer, consumer or artifact",
                   (unsigned)index),
        "start from kiln_compat_use_default() and set them; artifacts are "
        "ltoir, ptx, elf, cubin and nvvm");
  }
  return kiln_ok();
}

// ---- Sets ----

static int compare_numbers(uint32_t a, uint32_t b) {
  return (a > b) - (a < b);
}

static int compare_texts(const char* a, const char* b) {
  return strcmp(check_text_or_empty(a), check_text_or_empty(b));
}

static int compare_needs(const kiln_compat_fact_t* a,
                         const kiln_compat_fact_t* b) {
  int order = compare_numbers(a->need_count, b->need_count);
  for (uint32_t i = 0; order == 0 && i < a->need_count; i++) {
    order = compare_texts(a->needs[i].name, b->needs[i].name);
    if (order == 0) {
      order = compare_numbers(a->needs[i].line, b->needs[i].line);
    }
    if (order == 0) order = compare_texts(a->needs[i].text, b->needs[i].text);
  }
  return order;
}

static int compare_tags(const kiln_compat_fact_t* a,
                        const kiln_compat_fact_t* b) {
  int order = compare_numbers(a->tag_count, b->tag_count);
  for (uint32_t i = 0; order == 0 && i < a->tag_count; i++) {
    order = compare_texts(a->tags[i], b->tags[i]);
  }
  return order;
}

// By kind and name first, so that messages come in the catalog's order.
static int compare_facts(const void* left, const void* right) {
  const kiln_compat_fact_t* a = left;
  const kiln_compat_fact_t* b = right;
  int order = compare_numbers(a->kind, b->kind);
  if (order == 0) order = strcmp(a->name, b->name);
  if (order == 0) order = strcmp(a->path, b->path);
  if (order == 0) order = compare_numbers(a->line, b->line);
  if (order == 0) order = compare_numbers(a->class_id, b->class_id);
  if (order == 0) order = compare_numbers(a->source, b->source);
  if (order == 0) order = compare_numbers(a->against_line, b->against_line);
  if (order == 0) order = compare_numbers(a->toolkit_major, b->toolkit_major);
  if (order == 0) order = compare_numbers(a->nvvm_ir, b->nvvm_ir);
  if (order == 0) order = strcmp(a->evidence, b->evidence);
  if (order == 0) order = strcmp(a->against, b->against);
  if (order == 0) order = strcmp(a->release, b->release);
  if (order == 0) order = compare_texts(a->component, b->component);
  if (order == 0) order = compare_tags(a, b);
  return order != 0 ? order : compare_needs(a, b);
}

static int compare_uses(const void* left, const void* right) {
  const kiln_compat_use_t* a = left;
  const kiln_compat_use_t* b = right;
  int order = compare_numbers(a->artifact, b->artifact);
  if (order == 0) order = compare_numbers(a->producer_kind, b->producer_kind);
  if (order == 0) order = compare_numbers(a->consumer_kind, b->consumer_kind);
  if (order == 0) order = strcmp(a->producer, b->producer);
  return order != 0 ? order : strcmp(a->consumer, b->consumer);
}

// Sorts and drops repetitions; the new count.
static uint32_t make_set(void* items, uint32_t count, size_t size,
                         int (*compare)(const void*, const void*)) {
  char* bytes = items;
  uint32_t kept = 0;
  if (count == 0) return 0;
  qsort(items, count, size, compare);
  for (uint32_t i = 1; i < count; i++) {
    if (compare(bytes + kept * size, bytes + i * size) == 0) continue;
    kept++;
    memmove(bytes + kept * size, bytes + i * size, size);
  }
  return kept + 1;
}

// ---- The rules ----

bool kilni_compat_check_asks(const kilni_compat_check_t* check,
                             const kiln_compat_fact_t* a,
                             const kiln_compat_fact_t* b) {
  if (check->subject == UINT32_MAX) return true;
  const kiln_compat_fact_t* subject = &check->facts[check->subject];
  return a == subject || b == subject;
}

static kiln_status_t run_rules(kilni_compat_check_t* check) {
  for (uint32_t i = 0; i < check->fact_count; i++) {
    const kiln_compat_fact_t* fact = &check->facts[i];
    KILNI_RETURN_IF_ERROR(kilni_compat_rules_piece(check, fact));
    KILNI_RETURN_IF_ERROR(kilni_compat_rules_driver(check, fact));
    KILNI_RETURN_IF_ERROR(kilni_compat_rules_needs(check, fact));
    for (uint32_t j = i + 1; j < check->fact_count; j++) {
      KILNI_RETURN_IF_ERROR(
          kilni_compat_rules_pair(check, fact, &check->facts[j]));
    }
  }
  KILNI_RETURN_IF_ERROR(kilni_compat_rules_driver_unknown(check));
  return kilni_compat_rules_uses(check);
}

// ---- The call ----

// Arrays of a check, and how large they were made. one-thread
typedef struct arrays_t {
  kiln_compat_fact_t* facts;
  kiln_compat_use_t* uses;
} arrays_t;

static kiln_status_t read_sets(const kiln_compat_request_t* request,
                               arrays_t* arrays, kilni_compat_check_t* check) {
  for (uint32_t i = 0; i < request->fact_count; i++) {
    KILNI_RETURN_IF_ERROR(read_fact(request->facts[i], i, &arrays->facts[i]));
  }
  for (uint32_t i = 0; i < request->use_count; i++) {
    KILNI_RETURN_IF_ERROR(
        check_read_use(request->uses[i], i, &arrays->uses[i]));
  }
  kiln_compat_fact_t subject = kiln_compat_fact_default();
  if (request->subject > 0) subject = arrays->facts[request->subject - 1];
  check->facts = arrays->facts;
  check->uses = arrays->uses;
  check->fact_count = make_set(arrays->facts, request->fact_count,
                               sizeof(kiln_compat_fact_t), compare_facts);
  check->use_count = make_set(arrays->uses, request->use_count,
                              sizeof(kiln_compat_use_t), compare_uses);
  check->subject = UINT32_MAX;
  for (uint32_t i = 0; request->subject > 0 && i < check->fact_count; i++) {
    if (compare_facts(&arrays->facts[i], &subject) == 0) check->subject = i;
  }
  return kiln_ok();
}

static kiln_status_t check_read_rest(const kiln_compat_request_t* request,
                                     kilni_compat_check_t* check) {
  if (request->constraint != NULL) {
    KILNI_RETURN_IF_ERROR(kiln_compat_spec_check(request->constraint));
  }
  check->constraint = request->constraint;
  check->forward_compat = request->forward_compat == KILN_SWITCH_ON;
  check->driver = kiln_compat_driver_default();
  if (request->driver != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_options_read(request->driver, "kiln_compat_driver_t",
                                sizeof(check->driver), &check->driver));
  }
  KILNI_CHECK_ARGUMENT(check->driver.state <= KILN_COMPAT_DRIVER_KNOWN,
                       "driver->state");
  if (check->driver.line == 0 &&
      check->driver.state == KILN_COMPAT_DRIVER_KNOWN) {
    check->driver.state = KILN_COMPAT_DRIVER_UNKNOWN;
  }
  return kiln_ok();
}

static kiln_status_t check_limits(const kiln_compat_request_t* request) {
  if (request->fact_count > KILN_COMPAT_MAX_FACTS ||
      request->use_count > KILN_COMPAT_MAX_USES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "a request with %u facts and %u uses; the limits are %d "
                   "and %d",
                   (unsigned)request->fact_count, (unsigned)request->use_count,
                   (int)KILN_COMPAT_MAX_FACTS, (int)KILN_COMPAT_MAX_USES),
        "check fewer components at once");
  }
  KILNI_CHECK_ARGUMENT(request->fact_count == 0 || request->facts != NULL,
                       "facts");
  KILNI_CHECK_ARGUMENT(request->use_count == 0 || request->uses != NULL,
                       "uses");
  KILNI_CHECK_ARGUMENT(request->subject <= request->fact_count, "subject");
  KILNI_CHECK_ARGUMENT(request->mode <= KILN_COMPAT_MODE_STRICT, "mode");
  KILNI_CHECK_ARGUMENT(request->forward_compat <= KILN_SWITCH_ON,
                       "forward_compat");
  return kiln_ok();
}

static kiln_status_t make_report(const kiln_compat_request_t* request,
                                 arrays_t* arrays,
                                 kilni_compat_check_t* check) {
  KILNI_RETURN_IF_ERROR(read_sets(request, arrays, check));
  KILNI_RETURN_IF_ERROR(check_read_rest(request, check));
  uint32_t mode = request->mode == KILN_COMPAT_MODE_DEFAULT
                      ? (uint32_t)KILN_COMPAT_MODE_WARN
                      : request->mode;
  KILNI_RETURN_IF_ERROR(
      kilni_compat_report_create(check->allocator, mode, &check->report));
  if (mode != KILN_COMPAT_MODE_OFF) KILNI_RETURN_IF_ERROR(run_rules(check));
  kilni_compat_report_finish(check->report);
  return kiln_ok();
}

kiln_status_t kiln_compat_check(const kiln_compat_request_t* request,
                                kiln_compat_report_t** out_report) {
  *out_report = NULL;
  kiln_compat_request_t read;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      request, "kiln_compat_request_t", sizeof(read), &read));
  KILNI_RETURN_IF_ERROR(check_limits(&read));
  kilni_compat_check_t check;
  memset(&check, 0, sizeof(check));
  check.allocator =
      read.allocator != NULL ? *read.allocator : kiln_allocator_libc();
  arrays_t arrays = {NULL, NULL};
  void* block = NULL;
  kiln_status_t status = kilni_base_alloc_array(
      check.allocator, read.fact_count, sizeof(kiln_compat_fact_t), &block);
  arrays.facts = block;
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(check.allocator, read.use_count,
                                    sizeof(kiln_compat_use_t), &block);
    arrays.uses = kiln_status_is_ok(status) ? block : NULL;
  }
  if (kiln_status_is_ok(status)) status = make_report(&read, &arrays, &check);
  kilni_base_free_array(check.allocator, arrays.facts, read.fact_count,
                        sizeof(kiln_compat_fact_t));
  kilni_base_free_array(check.allocator, arrays.uses, read.use_count,
                        sizeof(kiln_compat_use_t));
  if (kiln_status_is_ok(status)) {
    *out_report = check.report;
  } else {
    kiln_compat_report_release(check.report);
  }
  return status;
}
