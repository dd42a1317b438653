// SPDX-License-Identifier: Apache-2.0
//
// toolkit: finds that are checked and remembered, declared uses, checks.
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"
#include "toolkit/toolkit.h"
#include "toolkit/toolkit_inside.h"

// ---- Asking the rules ----

static kiln_status_t check_facts_of(kiln_allocator_t allocator,
                                    const kilni_toolkit_question_t* question,
                                    const kiln_compat_fact_t*** out_facts,
                                    uint32_t* out_count,
                                    uint32_t* out_subject) {
  *out_count = 0;
  *out_subject = 0;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, question->item_count,
                                               sizeof(void*), &block));
  const kiln_compat_fact_t** facts = block;
  for (size_t i = 0; i < question->item_count; i++) {
    const kiln_toolkit_item_t* item = question->items[i];
    if (!kiln_locate_item_found(item->located)) continue;
    if (question->subject == i + 1) *out_subject = *out_count + 1;
    facts[(*out_count)++] = &item->fact;
  }
  *out_facts = facts;
  return kiln_ok();
}

static kiln_status_t check_ask(kiln_toolkit_t* toolkit,
                               const kilni_toolkit_question_t* question,
                               kiln_compat_report_t** out_report) {
  *out_report = NULL;
  kiln_allocator_t allocator = toolkit->host.allocator;
  if (question->ask_driver && toolkit->policy.mode != KILN_COMPAT_MODE_OFF) {
    KILNI_RETURN_IF_ERROR(kilni_toolkit_driver_ask(toolkit));
  }
  kiln_compat_driver_t nobody = kiln_compat_driver_default();
  nobody.state = KILN_COMPAT_DRIVER_NONE;
  const kiln_compat_fact_t** facts = NULL;
  kiln_compat_request_t request = kiln_compat_request_default();
  KILNI_RETURN_IF_ERROR(check_facts_of(allocator, question, &facts,
                                       &request.fact_count, &request.subject));
  request.mode = toolkit->policy.mode;
  request.forward_compat =
      toolkit->policy.forward_compat ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  request.facts = facts;
  request.uses = question->uses;
  request.use_count = (uint32_t)question->use_count;
  request.driver = &nobody;
  if (toolkit->driver_given) request.driver = &toolkit->given.said;
  if (!toolkit->driver_given && toolkit->driver.asked) {
    request.driver = &toolkit->driver.said;
  }
  request.constraint = toolkit->ctk_version;
  request.allocator = &allocator;
  kiln_status_t status = kiln_compat_check(&request, out_report);
  kilni_base_free_array(allocator, facts, question->item_count, sizeof(void*));
  return status;
}

// ---- What is in use ----

static kiln_toolkit_item_t** in_use(kiln_toolkit_t* toolkit,
                                    const kiln_toolkit_item_t* item) {
  kiln_toolkit_item_t** items = toolkit->items.items;
  for (size_t i = 0; i < toolkit->items.count; i++) {
    if (kilni_toolkit_item_same(items[i], item)) return &items[i];
  }
  return NULL;
}

kiln_status_t kilni_toolkit_remember(kiln_toolkit_t* toolkit,
                                     kiln_toolkit_item_t* item) {
  kiln_toolkit_item_t** place = in_use(toolkit, item);
  if (place == NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_toolkit_append(toolkit->host.allocator, &toolkit->items,
                             KILNI_TOOLKIT_MAX_ITEMS, &item, sizeof(item)));
    kiln_toolkit_item_retain(item);
    return kiln_ok();
  }
  kiln_toolkit_item_retain(item);
  kiln_toolkit_item_release(*place);
  *place = item;
  return kiln_ok();
}

// Pointers to the declared uses.
static kiln_status_t uses_of(kiln_toolkit_t* toolkit,
                             const kiln_compat_use_t* last,
                             const kiln_compat_use_t*** out_uses,
                             size_t* out_count) {
  size_t count = toolkit->uses.count + (last != NULL ? 1 : 0);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(toolkit->host.allocator, count,
                                               sizeof(void*), &block));
  const kiln_compat_use_t** uses = block;
  const kiln_compat_use_t* declared = toolkit->uses.items;
  for (size_t i = 0; i < toolkit->uses.count; i++) uses[i] = &declared[i];
  if (last != NULL) uses[count - 1] = last;
  *out_uses = uses;
  *out_count = count;
  return kiln_ok();
}

static void note_findings(const kiln_compat_report_t* report,
                          kilni_base_str_t* notes) {
  uint32_t count = kiln_compat_report_finding_count(report);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_compat_finding_t* finding =
        kiln_compat_report_finding(report, i);
    // What cannot be decided is worth no line in a log.
    if (!finding->counts ||
        finding->verdict != KILN_COMPAT_VERDICT_INCOMPATIBLE) {
      continue;
    }
    kilni_base_str_addf(notes, "%s; Fix: %s\n", finding->message, finding->fix);
  }
}

static kiln_status_t check_settle(kiln_toolkit_t* toolkit,
                                  const kiln_compat_report_t* report,
                                  kilni_base_str_t* notes) {
  if (toolkit->policy.mode == KILN_COMPAT_MODE_WARN) {
    note_findings(report, notes);
    return kiln_ok();
  }
  return kiln_compat_report_status(report, toolkit->policy.mode);
}

// The items in use followed by the new ones.
static kiln_status_t toolkit_check_together(kiln_toolkit_t* toolkit,
                                            kiln_toolkit_item_t* const* items,
                                            size_t count,
                                            kiln_toolkit_item_t*** out_all,
                                            size_t* out_used) {
  size_t used = toolkit->items.count;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      toolkit->host.allocator, used + count, sizeof(void*), &block));
  kiln_toolkit_item_t** all = block;
  if (used != 0) memcpy(all, toolkit->items.items, used * sizeof(*all));
  memcpy(all + used, items, count * sizeof(*all));
  *out_all = all;
  *out_used = used;
  return kiln_ok();
}

kiln_status_t kilni_toolkit_admit(kiln_toolkit_t* toolkit,
                                  kiln_toolkit_item_t* const* items,
                                  size_t count, bool is_load,
                                  kilni_base_str_t* notes) {
  uint32_t mode = toolkit->policy.mode;
  if (mode == KILN_COMPAT_MODE_OFF) return kiln_ok();
  kilni_toolkit_question_t question = {0};
  const kiln_compat_use_t** uses = NULL;
  kiln_toolkit_item_t** all = NULL;
  size_t used = 0;
  size_t use_count = 0;
  kiln_allocator_t allocator = toolkit->host.allocator;
  kiln_status_t status = uses_of(toolkit, NULL, &uses, &use_count);
  if (kiln_status_is_ok(status)) {
    status = toolkit_check_together(toolkit, items, count, &all, &used);
  }
  question.items = all;
  question.item_count = used + count;
  question.uses = uses;
  question.use_count = use_count;
  question.ask_driver = is_load || mode != KILN_COMPAT_MODE_WARN;
  for (size_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    if (in_use(toolkit, items[i]) != NULL) continue;
    kiln_compat_report_t* report = NULL;
    question.subject = used + i + 1;
    status = check_ask(toolkit, &question, &report);
    if (kiln_status_is_ok(status)) {
      status = check_settle(toolkit, report, notes);
    }
    kiln_compat_report_release(report);
  }
  kilni_base_free_array(allocator, uses, use_count, sizeof(void*));
  kilni_base_free_array(allocator, all, used + count, sizeof(void*));
  return status;
}

void kilni_toolkit_tell(kiln_toolkit_t* toolkit, kilni_base_str_t* notes) {
  kiln_string_view_t rest =
      kilni_base_sv_make(kilni_base_str_cstr(notes), notes->size);
  kiln_string_view_t line;
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    if (line.size == 0) continue;
    KILNI_LOG(&toolkit->host.log, WARNING, "%.*s", KILNI_SV(line));
  }
}

// ---- Finding ----

static kiln_status_t toolkit_check_check_call(const kiln_toolkit_t* toolkit) {
  KILNI_CHECK_ARGUMENT(toolkit != NULL, "toolkit");
  return kilni_base_host_check_fork(&toolkit->host);
}

kiln_status_t kiln_toolkit_resolve_located(kiln_toolkit_t* toolkit,
                                           kiln_locate_item_t* located,
                                           kiln_toolkit_item_t** out_item) {
  KILNI_CHECK_ARGUMENT(out_item != NULL, "out_item");
  *out_item = NULL;
  KILNI_RETURN_IF_ERROR(toolkit_check_check_call(toolkit));
  KILNI_CHECK_ARGUMENT(located != NULL, "located");
  return kilni_toolkit_item_look(toolkit, located, out_item);
}

kiln_status_t kiln_toolkit_resolve(kiln_toolkit_t* toolkit, uint32_t kind,
                                   const char* name,
                                   kiln_toolkit_item_t** out_item) {
  KILNI_CHECK_ARGUMENT(out_item != NULL, "out_item");
  *out_item = NULL;
  KILNI_RETURN_IF_ERROR(toolkit_check_check_call(toolkit));
  kiln_locate_item_t* located = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_locate_find(toolkit->locate, kind, name, &located));
  kiln_status_t status = kilni_toolkit_item_look(toolkit, located, out_item);
  kiln_locate_item_release(located);
  return status;
}

static kiln_status_t find_checked(kiln_toolkit_t* toolkit,
                                  kiln_toolkit_item_t* item) {
  if (toolkit->policy.mode == KILN_COMPAT_MODE_OFF ||
      !kiln_locate_item_found(item->located)) {
    return kiln_ok();
  }
  kilni_base_str_t notes;
  kilni_base_str_init(&notes, toolkit->host.allocator,
                      KILNI_TOOLKIT_TEXT_BYTES);
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status = kilni_toolkit_admit(toolkit, &item, 1, false, &notes);
  if (kiln_status_is_ok(status) && in_use(toolkit, item) == NULL) {
    status = kilni_toolkit_remember(toolkit, item);
  }
  kilni_base_mutex_unlock(&toolkit->lock);
  if (kiln_status_is_ok(status)) kilni_toolkit_tell(toolkit, &notes);
  kilni_base_str_deinit(&notes);
  return status;
}

kiln_status_t kiln_toolkit_find_located(kiln_toolkit_t* toolkit,
                                        kiln_locate_item_t* located,
                                        kiln_toolkit_item_t** out_item) {
  KILNI_RETURN_IF_ERROR(
      kiln_toolkit_resolve_located(toolkit, located, out_item));
  kiln_status_t status = find_checked(toolkit, *out_item);
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_toolkit_item_release(*out_item);
  *out_item = NULL;
  return status;
}

kiln_status_t kiln_toolkit_find(kiln_toolkit_t* toolkit, uint32_t kind,
                                const char* name,
                                kiln_toolkit_item_t** out_item) {
  KILNI_RETURN_IF_ERROR(kiln_toolkit_resolve(toolkit, kind, name, out_item));
  kiln_status_t status = find_checked(toolkit, *out_item);
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_toolkit_item_release(*out_item);
  *out_item = NULL;
  return status;
}

// ---- Uses ----

static kiln_status_t known_name(uint32_t kind, const char* name,
                                const char* which, const char** out_name) {
  const kiln_locate_entry_t* entry =
      name != NULL ? kiln_locate_entry_find(kind, name) : NULL;
  if (entry == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the %s of a use is \"%s\", which is not a "
                   "%s of the catalog",
                   which, name != NULL ? name : "",
                   kiln_locate_kind_name(kind)),
        "names are exact; `kiln find --all` lists them");
  }
  *out_name = kiln_locate_entry_name(entry);
  return kiln_ok();
}

// A use whose strings are the catalog's.
static kiln_status_t normal_use(const kiln_compat_use_t* given,
                                kiln_compat_use_t* use) {
  *use = kiln_compat_use_default();
  use->artifact = given->artifact;
  use->producer_kind =
      given->producer_kind ? given->producer_kind : KILN_COMPAT_KIND_LIB;
  use->consumer_kind =
      given->consumer_kind ? given->consumer_kind : KILN_COMPAT_KIND_LIB;
  if (given->artifact < KILN_COMPAT_ARTIFACT_LTOIR ||
      given->artifact > KILN_COMPAT_ARTIFACT_NVVM) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "no artifact has the number %u",
                   (unsigned)given->artifact),
        "use KILN_COMPAT_ARTIFACT_*: ltoir, ptx, elf, cubin or nvvm");
  }
  KILNI_RETURN_IF_ERROR(known_name(use->producer_kind, given->producer,
                                   "producer", &use->producer));
  return known_name(use->consumer_kind, given->consumer, "consumer",
                    &use->consumer);
}

static bool check_is_declared(const kiln_toolkit_t* toolkit,
                              const kiln_compat_use_t* use) {
  const kiln_compat_use_t* uses = toolkit->uses.items;
  for (size_t i = 0; i < toolkit->uses.count; i++) {
    // Names are the catalog's own, so that their addresses are compared.
    if (uses[i].artifact == use->artifact &&
        uses[i].producer_kind == use->producer_kind &&
        uses[i].consumer_kind == use->consumer_kind &&
        uses[i].producer == use->producer &&
        uses[i].consumer == use->consumer) {
      return true;
    }
  }
  return false;
}

// Checks one use with the components in use.
static kiln_status_t admit_use(kiln_toolkit_t* toolkit,
                               const kiln_compat_use_t* use,
                               kilni_base_str_t* notes) {
  if (toolkit->policy.mode == KILN_COMPAT_MODE_OFF) return kiln_ok();
  kilni_toolkit_question_t question = {0};
  question.items = toolkit->items.items;
  question.item_count = toolkit->items.count;
  question.uses = &use;
  question.use_count = 1;
  question.ask_driver = toolkit->policy.mode != KILN_COMPAT_MODE_WARN;
  kiln_compat_report_t* report = NULL;
  KILNI_RETURN_IF_ERROR(check_ask(toolkit, &question, &report));
  kiln_status_t status = check_settle(toolkit, report, notes);
  kiln_compat_report_release(report);
  return status;
}

kiln_status_t kiln_toolkit_use_declare(kiln_toolkit_t* toolkit,
                                       const kiln_compat_use_t* use) {
  KILNI_RETURN_IF_ERROR(toolkit_check_check_call(toolkit));
  KILNI_CHECK_ARGUMENT(use != NULL, "use");
  kiln_compat_use_t known;
  KILNI_RETURN_IF_ERROR(normal_use(use, &known));
  kilni_base_str_t notes;
  kilni_base_str_init(&notes, toolkit->host.allocator,
                      KILNI_TOOLKIT_TEXT_BYTES);
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status = kiln_ok();
  if (!check_is_declared(toolkit, &known)) {
    status = admit_use(toolkit, &known, &notes);
    if (kiln_status_is_ok(status)) {
      status =
          kilni_toolkit_append(toolkit->host.allocator, &toolkit->uses,
                               KILNI_TOOLKIT_MAX_USES, &known, sizeof(known));
    }
  }
  kilni_base_mutex_unlock(&toolkit->lock);
  if (kiln_status_is_ok(status)) kilni_toolkit_tell(toolkit, &notes);
  kilni_base_str_deinit(&notes);
  return status;
}

// ---- Checking ----

// Checks items with the declared uses. Under `lock`.
static kiln_status_t toolkit_check_check_declared(
    kiln_toolkit_t* toolkit, kiln_toolkit_item_t* const* items,
    size_t item_count, kiln_compat_report_t** out_report) {
  kilni_toolkit_question_t question = {0};
  const kiln_compat_use_t** uses = NULL;
  size_t use_count = 0;
  KILNI_RETURN_IF_ERROR(uses_of(toolkit, NULL, &uses, &use_count));
  question.items = items;
  question.item_count = item_count;
  question.uses = uses;
  question.use_count = use_count;
  question.ask_driver = true;
  kiln_status_t status = check_ask(toolkit, &question, out_report);
  kilni_base_free_array(toolkit->host.allocator, uses, use_count,
                        sizeof(void*));
  return status;
}

kiln_status_t kilni_toolkit_check_declared(kiln_toolkit_t* toolkit,
                                           kiln_toolkit_item_t* const* items,
                                           size_t item_count,
                                           kiln_compat_report_t** out_report) {
  *out_report = NULL;
  KILNI_RETURN_IF_ERROR(toolkit_check_check_call(toolkit));
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status =
      toolkit_check_check_declared(toolkit, items, item_count, out_report);
  kilni_base_mutex_unlock(&toolkit->lock);
  return status;
}

kiln_status_t kiln_toolkit_check(kiln_toolkit_t* toolkit,
                                 kiln_toolkit_item_t* const* items,
                                 uint32_t item_count,
                                 const kiln_compat_use_t* const* uses,
                                 uint32_t use_count,
                                 kiln_compat_report_t** out_report) {
  KILNI_CHECK_ARGUMENT(out_report != NULL, "out_report");
  *out_report = NULL;
  KILNI_RETURN_IF_ERROR(toolkit_check_check_call(toolkit));
  KILNI_CHECK_ARGUMENT(items != NULL || item_count == 0, "items");
  KILNI_CHECK_ARGUMENT(uses != NULL || use_count == 0, "uses");
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status;
  if (item_count == 0) {
    status = toolkit_check_check_declared(toolkit, toolkit->items.items,
                                          toolkit->items.count, out_report);
  } else {
    kilni_toolkit_question_t question = {items,     item_count, uses,
                                         use_count, 0,          true};
    status = check_ask(toolkit, &question, out_report);
  }
  kilni_base_mutex_unlock(&toolkit->lock);
  return status;
}
