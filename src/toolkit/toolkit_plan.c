// SPDX-License-Identifier: Apache-2.0
//
// toolkit: in which order a library and all that it needs is opened.
//
// Opens nothing. A library needs what its file lists (DT_NEEDED) and what it
// opens by itself according to the catalog; each component is taken from the
// root of the one that needs it, where that has it, so that a set stays one
// set. The file names in DT_NEEDED are binding: a library that was linked with
// libcublas.so.12 is not given libcublas.so.13.
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"
#include "toolkit/toolkit_inside.h"

// ---- What is in the process ----

// A name that is looked for among the mapped objects. one-thread
typedef struct mapped_t {
  const char* soname;
  bool found;
} mapped_t;

static bool plan_on_mapped(const kilni_base_dynlib_mapped_t* mapped,
                           void* user) {
  mapped_t* wanted = user;
  wanted->found = strcmp(mapped->soname, wanted->soname) == 0;
  return !wanted->found;
}

static bool is_mapped(const char* soname) {
  mapped_t wanted = {soname, false};
  kilni_base_dynlib_each_mapped(plan_on_mapped, &wanted);
  return wanted.found;
}

// ---- Steps ----

// The step number `at`, and all that it needs, are needed by the library whose
// needs are being planned.
static void note_need(kilni_toolkit_plan_t* plan, size_t at) {
  if (plan->depth == 0) return;
  uint64_t* needs = plan->open_needs[plan->depth - 1];
  needs[at / 64] |= UINT64_C(1) << (at % 64);
  for (size_t i = 0; i < KILNI_TOOLKIT_NEED_WORDS; i++) {
    needs[i] |= plan->steps[at].needs[i];
  }
}

bool kilni_toolkit_plan_needs(const kilni_toolkit_plan_t* plan, size_t at,
                              size_t before) {
  return (plan->steps[at].needs[before / 64] >> (before % 64)) & 1;
}

static kiln_status_t plan_add_step(kilni_toolkit_plan_t* plan,
                                   kilni_toolkit_step_t step,
                                   const char* path) {
  if (plan->count == KILNI_TOOLKIT_MAX_STEPS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" is library number %u of one load",
                   path, (unsigned)KILNI_TOOLKIT_MAX_STEPS + 1),
        "load the libraries that it needs first, one by one");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(plan->toolkit->host.allocator,
                                          kilni_base_sv(path), &step.path));
  plan->steps[plan->count] = step;
  kiln_toolkit_item_retain(step.item);
  note_need(plan, plan->count++);
  return kiln_ok();
}

// A library of which only the path is known: it is beside one that needs it.
static kiln_status_t add_sibling(kilni_toolkit_plan_t* plan, const char* path) {
  for (size_t i = 0; i < plan->count; i++) {
    if (strcmp(plan->steps[i].path, path) != 0) continue;
    note_need(plan, i);
    return kiln_ok();
  }
  kilni_toolkit_step_t step = {0};
  return plan_add_step(plan, step, path);
}

// True if there is nothing more to plan for an item. One that needs itself
// through others is being planned: either may then be opened first.
static bool is_planned(kilni_toolkit_plan_t* plan,
                       const kiln_toolkit_item_t* item) {
  for (size_t i = 0; i < plan->count; i++) {
    if (plan->steps[i].item != NULL &&
        kilni_toolkit_item_same(plan->steps[i].item, item)) {
      note_need(plan, i);
      return true;
    }
  }
  for (size_t i = 0; i < plan->depth; i++) {
    if (kilni_toolkit_item_same(plan->open[i], item)) return true;
  }
  return false;
}

static bool has_workaround(const kiln_locate_entry_t* entry, const char* word) {
  uint32_t count =
      kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_WORKAROUNDS);
  for (uint32_t i = 0; i < count; i++) {
    const char* text =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_WORKAROUNDS, i);
    if (strcmp(text, word) == 0) return true;
  }
  return false;
}

static bool finds_siblings(const kilni_locate_facts_t* facts) {
  return facts->rpath != NULL || facts->runpath != NULL;
}

// ---- The file that a library asks for ----

// The file name by which `facts` asks for one of the files of `entry`; NULL
// where it does not.
static const char* asked_name(const kilni_locate_facts_t* facts,
                              const kiln_locate_entry_t* entry) {
  for (uint32_t i = 0; i < facts->needed_count; i++) {
    if (kiln_locate_entry_find_file(KILN_LOCATE_KIND_LIB,
                                    kilni_base_sv(facts->needed[i])) == entry) {
      return facts->needed[i];
    }
  }
  return NULL;
}

static bool plan_fits(const kiln_locate_item_t* found, const char* asked,
                      uint32_t major) {
  if (!kiln_locate_item_found(found)) return false;
  if (asked != NULL) {
    return strcmp(kiln_locate_item_file_name(found), asked) == 0;
  }
  uint32_t own = kiln_locate_item_major(found);
  return major == 0 || own == 0 || own == major;
}

// Of every copy, the first that fits, one of the same root before others.
static kiln_status_t plan_choose(kiln_toolkit_t* toolkit,
                                 const kiln_locate_item_t* user,
                                 const char* name, const char* asked,
                                 kiln_locate_item_t** out_found) {
  kiln_locate_set_t* set = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_locate_find_all(toolkit->locate, KILN_LOCATE_KIND_LIB, name, &set));
  uint32_t major = kiln_locate_item_major(user);
  kiln_locate_item_t* best = NULL;
  for (uint32_t i = 0; i < kiln_locate_set_count(set); i++) {
    kiln_locate_item_t* item = kiln_locate_set_item(set, i);
    if (!plan_fits(item, asked, major)) continue;
    uint32_t scope = kiln_locate_item_scope(item);
    bool named = scope == KILN_LOCATE_SCOPE_OVERRIDE ||
                 scope == KILN_LOCATE_SCOPE_LOADED;
    bool same_root =
        strcmp(kiln_locate_item_root(item), kiln_locate_item_root(user)) == 0 &&
        kiln_locate_item_root(item)[0] != 0;
    if (best == NULL) best = item;
    if (named || same_root) {
      best = item;
      break;
    }
  }
  kiln_locate_item_retain(best);
  kiln_locate_set_release(set);
  *out_found = best;
  return kiln_ok();
}

static kiln_status_t plan_item(kilni_toolkit_plan_t* plan,
                               kiln_toolkit_item_t* item);

static kiln_status_t not_there(const kiln_toolkit_item_t* user,
                               const char* name, const char* asked) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "\"%s\" needs \"%s\"%s%s%s, which was not found",
                 kiln_locate_item_path(user->located), name,
                 asked != NULL ? " (" : "", asked != NULL ? asked : "",
                 asked != NULL ? ")" : ""),
      "install it from where \"%s\" came; `kiln find lib %s --trail` shows "
      "every place that was tried",
      user->fact.name, name);
}

// Plans one library that `user` needs.
static kiln_status_t plan_need(kilni_toolkit_plan_t* plan,
                               kiln_toolkit_item_t* user, const char* name,
                               bool required) {
  kiln_toolkit_t* toolkit = plan->toolkit;
  const kiln_locate_entry_t* entry =
      kiln_locate_entry_find(KILN_LOCATE_KIND_LIB, name);
  if (entry == NULL) return kiln_ok();
  const char* asked = asked_name(user->facts, entry);
  kiln_locate_item_t* found = NULL;
  KILNI_RETURN_IF_ERROR(
      plan_choose(toolkit, user->located, name, asked, &found));
  if (found == NULL) {
    bool there = asked != NULL && is_mapped(asked);
    if (required && !there) return not_there(user, name, asked);
    return kiln_ok();
  }
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kilni_toolkit_item_make(toolkit, found, NULL, &item);
  kiln_locate_item_release(found);
  KILNI_RETURN_IF_ERROR(status);
  status = plan_item(plan, item);
  kiln_toolkit_item_release(item);
  return status;
}

static kiln_status_t plan_list(kilni_toolkit_plan_t* plan,
                               kiln_toolkit_item_t* item, uint32_t list,
                               bool required) {
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(item->located);
  uint32_t count = kiln_locate_entry_list_count(entry, list);
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(plan_need(
        plan, item, kiln_locate_entry_list_text(entry, list, i), required));
  }
  return kiln_ok();
}

// A file beside the library that it asks for and the loader would not find.
static kiln_status_t plan_beside(kilni_toolkit_plan_t* plan,
                                 kiln_toolkit_item_t* item, const char* name) {
  if (finds_siblings(item->facts) || strchr(name, '/') != NULL) {
    return kiln_ok();
  }
  const char* own = kiln_locate_item_path(item->located);
  const char* slash = strrchr(own, '/');
  if (slash == NULL) return kiln_ok();
  kilni_base_str_t path;
  kilni_base_str_init(&path, plan->toolkit->host.allocator,
                      KILNI_TOOLKIT_TEXT_BYTES);
  kilni_base_str_add(&path, kilni_base_sv_make(own, (size_t)(slash + 1 - own)));
  kilni_base_str_add_cstr(&path, name);
  kiln_status_t status = kilni_base_str_status(&path);
  if (kiln_status_is_ok(status) && kilni_base_file_exists(path.data)) {
    status = add_sibling(plan, path.data);
  }
  kilni_base_str_deinit(&path);
  return status;
}

// What the file needs and the catalog does not list.
static kiln_status_t plan_file_needs(kilni_toolkit_plan_t* plan,
                                     kiln_toolkit_item_t* item) {
  const kilni_locate_facts_t* facts = item->facts;
  for (uint32_t i = 0; i < facts->needed_count; i++) {
    const char* name = facts->needed[i];
    if (is_mapped(name)) continue;
    const kiln_locate_entry_t* entry =
        kiln_locate_entry_find_file(KILN_LOCATE_KIND_LIB, kilni_base_sv(name));
    kiln_status_t status = kiln_ok();
    if (entry == NULL) {
      status = plan_beside(plan, item, name);
    } else if (kiln_locate_entry_class(entry) != KILN_LOCATE_CLASS_DRIVER) {
      // Where it is not found, the loader has the last word.
      status = plan_need(plan, item, kiln_locate_entry_name(entry), false);
    }
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

static kiln_status_t plan_needs(kilni_toolkit_plan_t* plan,
                                kiln_toolkit_item_t* item) {
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(item->located);
  if (kiln_locate_item_scope(item->located) == KILN_LOCATE_SCOPE_LOADED) {
    return kiln_ok();  // the code that loaded it did that
  }
  KILNI_RETURN_IF_ERROR(plan_list(plan, item, KILN_LOCATE_LIST_NEEDS, true));
  KILNI_RETURN_IF_ERROR(plan_list(plan, item, KILN_LOCATE_LIST_WANTS, false));
  KILNI_RETURN_IF_ERROR(plan_file_needs(plan, item));
  const kilni_locate_line_t* sibling = &item->facts->sibling;
  if (has_workaround(entry, "nvrtc-builtins") && sibling->path != NULL &&
      !finds_siblings(item->facts)) {
    return add_sibling(plan, sibling->path);
  }
  return kiln_ok();
}

static kiln_status_t plan_item(kilni_toolkit_plan_t* plan,
                               kiln_toolkit_item_t* item) {
  if (is_planned(plan, item)) return kiln_ok();
  if (plan->depth == KILNI_TOOLKIT_MAX_DEPTH) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "\"%s\" is needed through a chain of %u other libraries",
                   kiln_locate_item_path(item->located),
                   (unsigned)KILNI_TOOLKIT_MAX_DEPTH),
        "load the libraries that it needs first, one by one");
  }
  if (item->facts == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "\"%s\" was found and no longer exists",
                   kiln_locate_item_path(item->located)),
        "refresh the context (kiln_toolkit_refresh) and try again");
  }
  memset(plan->open_needs[plan->depth], 0, sizeof(plan->open_needs[0]));
  plan->open[plan->depth++] = item;
  kiln_status_t status = plan_needs(plan, item);
  plan->depth--;
  KILNI_RETURN_IF_ERROR(status);
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(item->located);
  kilni_toolkit_step_t step = {0};
  step.item = item;
  memcpy(step.needs, plan->open_needs[plan->depth], sizeof(step.needs));
  step.retry_librt = has_workaround(entry, "librt");
  if (kiln_locate_entry_flags(entry) & KILN_LOCATE_FLAG_DEEPBIND) {
    step.flags |= KILNI_DYNLIB_DEEPBIND;
  }
  return plan_add_step(plan, step, kiln_locate_item_path(item->located));
}

kiln_status_t kilni_toolkit_plan_make(kiln_toolkit_t* toolkit,
                                      kiln_toolkit_item_t* item,
                                      kilni_toolkit_plan_t* plan) {
  memset(plan, 0, sizeof(*plan));
  plan->toolkit = toolkit;
  return plan_item(plan, item);
}

void kilni_toolkit_plan_deinit(kilni_toolkit_plan_t* plan) {
  for (size_t i = 0; i < plan->count; i++) {
    kiln_toolkit_item_release(plan->steps[i].item);
    kilni_base_strfree(plan->toolkit->host.allocator, plan->steps[i].path);
  }
  plan->count = 0;
}
