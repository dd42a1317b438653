// SPDX-License-Identifier: Apache-2.0
//
// compat: pieces of a toolkit for checks, with what the catalog says of them.
//
//   kit_t kit;
//   kit_init(&kit);
//   kit_lib(&kit, "nvrtc", 13000);
//   kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_LTOIR);
//   kit_check(&kit);
//   ... kit.report ...
//   kit_deinit(&kit);
#ifndef KILN_TESTS_UNIT_COMPAT_COMPAT_KIT_H_
#define KILN_TESTS_UNIT_COMPAT_COMPAT_KIT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/compat.h"
#include "kiln/locate_catalog.h"

enum { KIT_MAX = 64, KIT_MAX_TAGS = 8 };

// A request under construction. one-thread
typedef struct kit_t {
  kiln_compat_request_t request;
  kiln_compat_driver_t driver;
  kiln_compat_fact_t facts[KIT_MAX];
  const kiln_compat_fact_t* fact_pointers[KIT_MAX];
  const char* tags[KIT_MAX][KIT_MAX_TAGS];
  kiln_compat_use_t uses[KIT_MAX];
  const kiln_compat_use_t* use_pointers[KIT_MAX];
  kiln_compat_report_t* report;
} kit_t;

// Strict, with a driver of 13.0 and branch 580.
static inline void kit_init(kit_t* kit) {
  memset(kit, 0, sizeof(*kit));
  kit->request = kiln_compat_request_default();
  kit->request.mode = KILN_COMPAT_MODE_STRICT;
  kit->driver = kiln_compat_driver_default();
  kit->driver.state = KILN_COMPAT_DRIVER_KNOWN;
  kit->driver.line = 13000;
  kit->driver.branch = 580;
  kit->driver.release = "580.65.06";
  kit->request.driver = &kit->driver;
  kit->request.facts = kit->fact_pointers;
  kit->request.uses = kit->use_pointers;
}

static inline void kit_deinit(kit_t* kit) {
  kiln_compat_report_release(kit->report);
  kit->report = NULL;
}

static inline void kit_driver(kit_t* kit, const char* text) {
  kiln_status_t status = kiln_compat_driver_parse(text, &kit->driver);
  assert_true(kiln_status_is_ok(status));
}

// A piece as the catalog has it.
static inline kiln_compat_fact_t* kit_add(kit_t* kit, uint32_t kind,
                                          const char* name, uint32_t line) {
  uint32_t at = kit->request.fact_count++;
  assert_true(at < KIT_MAX);
  const kiln_locate_entry_t* entry = kiln_locate_entry_find(kind, name);
  if (entry == NULL) print_error("no row for %s\n", name);
  assert_non_null(entry);
  kiln_compat_fact_t* fact = &kit->facts[at];
  *fact = kiln_compat_fact_default();
  fact->kind = kind;
  fact->name = kiln_locate_entry_name(entry);
  fact->class_id = kiln_locate_entry_class(entry);
  fact->component = kiln_locate_entry_component(entry);
  fact->line = line;
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_TAGS);
  assert_true(count <= KIT_MAX_TAGS);
  for (uint32_t i = 0; i < count; i++) {
    kit->tags[at][i] =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_TAGS, i);
  }
  fact->tags = kit->tags[at];
  fact->tag_count = count;
  kit->fact_pointers[at] = fact;
  return fact;
}

static inline kiln_compat_fact_t* kit_lib(kit_t* kit, const char* name,
                                          uint32_t line) {
  return kit_add(kit, KILN_COMPAT_KIND_LIB, name, line);
}

static inline void kit_use(kit_t* kit, const char* producer,
                           const char* consumer, uint32_t artifact) {
  uint32_t at = kit->request.use_count++;
  assert_true(at < KIT_MAX);
  kit->uses[at] = kiln_compat_use_default();
  kit->uses[at].producer = producer;
  kit->uses[at].consumer = consumer;
  kit->uses[at].artifact = artifact;
  kit->use_pointers[at] = &kit->uses[at];
}

static inline void kit_check(kit_t* kit) {
  kiln_compat_report_release(kit->report);
  kiln_status_t status = kiln_compat_check(&kit->request, &kit->report);
  if (!kiln_status_is_ok(status)) {
    print_error("%s\n", kiln_status_message(status));
  }
  assert_true(kiln_status_is_ok(status));
}

static inline void kit_print(const kit_t* kit) {
  static char text[1 << 16];
  kiln_compat_report_format(kit->report, sizeof(text), text, NULL);
  print_error("%s", text);
}

// Checks, and wants nothing refused.
static inline void kit_accepts(kit_t* kit) {
  kit_check(kit);
  if (kiln_compat_report_refusal(kit->report, 0) != NULL) kit_print(kit);
  assert_null(kiln_compat_report_refusal(kit->report, 0));
}

// Checks, and wants this rule to refuse, with this in its sentence.
static inline void kit_refuses(kit_t* kit, uint32_t rule, uint32_t verdict,
                               const char* text) {
  kit_check(kit);
  const kiln_compat_finding_t* finding =
      kiln_compat_report_refusal(kit->report, 0);
  assert_non_null(finding);
  if (finding->rule != rule || finding->verdict != verdict ||
      strstr(finding->message, text) == NULL) {
    kit_print(kit);
  }
  assert_int_equal(finding->rule, rule);
  assert_int_equal(finding->verdict, verdict);
  assert_non_null(strstr(finding->message, text));
  assert_true(finding->fix[0] != '\0');
}

// The verdict of the first finding of a rule about a use, counted or not;
// COMPATIBLE where there is none.
static inline uint32_t kit_finding(const kit_t* kit, uint32_t rule,
                                   uint32_t use) {
  uint32_t count = kiln_compat_report_finding_count(kit->report);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_compat_finding_t* finding =
        kiln_compat_report_finding(kit->report, i);
    if (finding->rule == rule && finding->use == use) return finding->verdict;
  }
  return KILN_COMPAT_VERDICT_COMPATIBLE;
}

#endif  // KILN_TESTS_UNIT_COMPAT_COMPAT_KIT_H_
