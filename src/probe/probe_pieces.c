// SPDX-License-Identifier: Apache-2.0
//
// probe: every row of the catalog, and each copy of it that a search meets.
//
// Texts are borrowed from the items, which the facts retain.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "locate/locate.h"
#include "probe/probe_sheet.h"
#include "toolkit/toolkit.h"

const kiln_probe_piece_t* kilni_probe_piece_find(const kiln_probe_t* probe,
                                                 uint32_t kind,
                                                 const char* name) {
  const kiln_locate_entry_t* entry = kiln_locate_entry_find(kind, name);
  if (entry == NULL) return NULL;
  const kiln_probe_piece_t* pieces = probe->pieces.items;
  // One component for each row, in the same order.
  uint32_t index = kiln_locate_entry_index(entry);
  return index < probe->pieces.count ? &pieces[index] : NULL;
}

const kiln_probe_copy_t* kilni_probe_copy_taken(const kiln_probe_t* probe,
                                                uint32_t kind,
                                                const char* name) {
  const kiln_probe_piece_t* piece = kilni_probe_piece_find(probe, kind, name);
  return piece != NULL && piece->copy_count > 0 ? piece->copies : NULL;
}

static void fill_copy(kiln_probe_copy_t* copy, kiln_toolkit_item_t* item) {
  const kiln_locate_item_t* located = kiln_toolkit_item_located(item);
  kiln_compat_conclusion_t said = kiln_toolkit_item_conclusion(item);
  copy->path = kiln_locate_item_path(located);
  copy->real_path = kiln_locate_item_real_path(located);
  copy->scope_id = kiln_locate_item_scope(located);
  copy->scope = kiln_locate_scope_name(copy->scope_id);
  copy->root = kiln_locate_item_root(located);
  copy->via = kiln_locate_item_via(located);
  copy->version = kiln_toolkit_item_release_text(item);
  copy->line = kiln_toolkit_item_line(item);
  copy->item = item;
  // Where no source gives a release, the source of its own version.
  copy->source = kiln_toolkit_item_release_source(item);
  copy->evidence = kiln_toolkit_item_release_evidence(item);
  const kiln_compat_evidence_t* best =
      kiln_toolkit_item_evidence(item, said.strongest);
  if (best == NULL) return;
  copy->source = kiln_compat_source_word(best->source);
  copy->evidence = best->text != NULL ? best->text : "";
}

// A reference to `located` joins the facts.
static kiln_status_t keep_located(kiln_probe_t* probe,
                                  kiln_locate_item_t* located) {
  void* slot = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->located, &slot));
  kiln_locate_item_retain(located);
  memcpy(slot, &located, sizeof(located));
  return kiln_ok();
}

static kiln_status_t pieces_add_copy(kiln_probe_t* probe,
                                     kiln_toolkit_t* toolkit,
                                     kiln_locate_item_t* located) {
  if (!kiln_locate_item_found(located)) return kiln_ok();
  void* slot = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->items, &slot));
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kiln_toolkit_resolve_located(toolkit, located, &item);
  memcpy(slot, &item, sizeof(item));
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);  // it went away meanwhile
    return kiln_ok();
  }
  void* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->copies, &copy));
  fill_copy(copy, item);
  return kiln_ok();
}

static bool has_override(const kiln_probe_t* probe,
                         const kiln_locate_entry_t* entry) {
  char name[KILNI_OVERRIDE_NAME_BYTES];
  kilni_locate_override_name(entry, sizeof(name), name);
  return !probe->hermetic &&
         kilni_base_env_member(probe->host->env, name) != NULL;
}

// True if a search has failed with the same text before: then it is not a
// single component's fault.
static bool pieces_is_told(const kiln_probe_t* probe, const char* message) {
  const kiln_probe_problem_t* problems = probe->problems.items;
  for (size_t i = 0; i < probe->problems.count; i++) {
    if (strcmp(problems[i].message, message) == 0) return true;
  }
  return false;
}

// A search that fails is a fact and a problem: an override that points nowhere,
// or a place that it was given to search.
static kiln_status_t note_failure(kiln_probe_t* probe,
                                  kiln_probe_piece_t* piece,
                                  kiln_status_t status) {
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_t noted =
      kilni_probe_text(probe, kiln_status_message(status), &piece->why);
  if (kiln_status_is_ok(noted) && !pieces_is_told(probe, piece->why)) {
    noted = kilni_probe_add_problem(
        probe,
        has_override(probe, piece->entry) ? "override-wrong" : "search-failed",
        KILN_PROBE_SEVERITY_ERROR, kiln_status_fix(status), "%s",
        kiln_status_message(status));
  }
  kiln_status_free(status);
  return noted;
}

static kiln_status_t collect_piece(kiln_probe_t* probe, kiln_toolkit_t* toolkit,
                                   const kiln_locate_entry_t* entry) {
  void* slot = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->pieces, &slot));
  kiln_probe_piece_t* piece = slot;
  uint32_t kind = kiln_locate_entry_kind(entry);
  piece->entry = entry;
  piece->kind = kiln_locate_kind_name(kind);
  piece->name = kiln_locate_entry_name(entry);
  piece->why = "";
  kiln_locate_set_t* set = NULL;
  kiln_status_t status = kiln_locate_find_all(kiln_toolkit_locate(toolkit),
                                              kind, piece->name, &set);
  if (!kiln_status_is_ok(status)) return note_failure(probe, piece, status);
  size_t before = probe->copies.count;
  uint32_t count = kiln_locate_set_count(set);
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    kiln_locate_item_t* located = kiln_locate_set_item(set, i);
    if (i == 0) {
      status = keep_located(probe, located);
      piece->located = located;
    }
    if (kiln_status_is_ok(status)) {
      status = pieces_add_copy(probe, toolkit, located);
    }
  }
  piece->copy_count = (uint32_t)(probe->copies.count - before);
  kiln_locate_set_release(set);
  return status;
}

// The list of copies has its place only once it is whole.
static void point_at_copies(kiln_probe_t* probe) {
  kiln_probe_piece_t* pieces = probe->pieces.items;
  const kiln_probe_copy_t* copies = probe->copies.items;
  size_t at = 0;
  for (size_t i = 0; i < probe->pieces.count; i++) {
    pieces[i].copies = pieces[i].copy_count > 0 ? &copies[at] : NULL;
    at += pieces[i].copy_count;
  }
}

kiln_status_t kilni_probe_check_pieces(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source) {
  void* block = NULL;
  size_t count = 0;
  kiln_allocator_t allocator = probe->host->allocator;
  if (source->toolkit == NULL || probe->pieces.count == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, probe->pieces.count, sizeof(kiln_toolkit_item_t*), &block));
  kiln_toolkit_item_t** taken = block;
  const kiln_probe_piece_t* pieces = probe->pieces.items;
  for (size_t i = 0; i < probe->pieces.count; i++) {
    if (pieces[i].copy_count > 0) taken[count++] = pieces[i].copies[0].item;
  }
  kiln_status_t status = kiln_ok();
  if (count > 0) {
    status = kilni_toolkit_check_declared(source->toolkit, taken, count,
                                          &probe->report);
  }
  kilni_base_free_array(allocator, block, probe->pieces.count,
                        sizeof(kiln_toolkit_item_t*));
  return status;
}

kiln_status_t kilni_probe_collect_pieces(kiln_probe_t* probe,
                                         const kilni_probe_source_t* source) {
  if (source->toolkit == NULL) return kiln_ok();
  uint32_t count = kiln_locate_entry_count();
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(
        collect_piece(probe, source->toolkit, kiln_locate_entry(i)));
  }
  point_at_copies(probe);
  return kiln_ok();
}
