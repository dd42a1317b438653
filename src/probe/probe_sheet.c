// SPDX-License-Identifier: Apache-2.0
//
// probe: the facts as an object: lists, the strings they own, accessors.
#include "base/status_make.h"
#include "locate/locate.h"
#include "probe/probe_sheet.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

static void list_init(kilni_probe_list_t* list, size_t item_bytes) {
  list->item_bytes = item_bytes;
}

kiln_status_t kilni_probe_sheet_create(const kilni_probe_source_t* source,
                                       kiln_probe_t** out_probe) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(source->host->allocator, sizeof(kiln_probe_t), &block));
  kiln_probe_t* probe = block;
  probe->host = source->host;
  probe->keep = source->keep;
  kilni_base_keep_retain(probe->keep);
  atomic_init(&probe->references, 1);
  list_init(&probe->texts, sizeof(char*));
  list_init(&probe->told, sizeof(kilni_probe_told_t*));
  list_init(&probe->devices, sizeof(kiln_probe_device_t));
  list_init(&probe->toolkits, sizeof(kiln_probe_toolkit_t));
  list_init(&probe->libraries, sizeof(kiln_probe_library_t));
  list_init(&probe->variables, sizeof(kiln_probe_variable_t));
  list_init(&probe->problems, sizeof(kiln_probe_problem_t));
  list_init(&probe->pieces, sizeof(kiln_probe_piece_t));
  list_init(&probe->roots, sizeof(kilni_probe_root_t));
  list_init(&probe->copies, sizeof(kiln_probe_copy_t));
  list_init(&probe->items, sizeof(kiln_toolkit_item_t*));
  list_init(&probe->located, sizeof(kiln_locate_item_t*));
  if (source->toolkit != NULL) {
    probe->hermetic =
        kilni_locate_is_hermetic(kiln_toolkit_locate(source->toolkit));
  }
  *out_probe = probe;
  return kiln_ok();
}

void kiln_probe_retain(kiln_probe_t* probe) {
  if (probe == NULL) return;
  atomic_fetch_add_explicit(&probe->references, 1, memory_order_relaxed);
}

static void list_deinit(const kiln_probe_t* probe, kilni_probe_list_t* list) {
  kilni_base_free_array(probe->host->allocator, list->items, list->capacity,
                        list->item_bytes);
}

static void release_pieces(kiln_probe_t* probe) {
  kiln_toolkit_item_t** items = probe->items.items;
  for (size_t i = 0; i < probe->items.count; i++) {
    kiln_toolkit_item_release(items[i]);
  }
  kiln_locate_item_t** located = probe->located.items;
  for (size_t i = 0; i < probe->located.count; i++) {
    kiln_locate_item_release(located[i]);
  }
  kiln_compat_report_release(probe->report);
  list_deinit(probe, &probe->pieces);
  list_deinit(probe, &probe->roots);
  list_deinit(probe, &probe->copies);
  list_deinit(probe, &probe->items);
  list_deinit(probe, &probe->located);
}

void kiln_probe_release(kiln_probe_t* probe) {
  if (probe == NULL || kilni_base_host_is_forked(probe->host)) return;
  if (atomic_fetch_sub_explicit(&probe->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  char** texts = probe->texts.items;
  for (size_t i = 0; i < probe->texts.count; i++) {
    kilni_base_strfree(probe->host->allocator, texts[i]);
  }
  list_deinit(probe, &probe->texts);
  kilni_probe_told_t** told = probe->told.items;
  for (size_t i = 0; i < probe->told.count; i++) {
    kilni_base_free(probe->host->allocator, told[i],
                    sizeof(kilni_probe_told_t));
  }
  list_deinit(probe, &probe->told);
  list_deinit(probe, &probe->devices);
  list_deinit(probe, &probe->toolkits);
  list_deinit(probe, &probe->libraries);
  list_deinit(probe, &probe->variables);
  list_deinit(probe, &probe->problems);
  release_pieces(probe);
  kilni_base_keep_t keep = probe->keep;
  kilni_base_free(probe->host->allocator, probe, sizeof(*probe));
  kilni_base_keep_release(keep);
}

kiln_status_t kilni_probe_add(kiln_probe_t* probe, kilni_probe_list_t* list,
                              void** out_item) {
  if (list->count >= KILNI_PROBE_MAX_ENTRIES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "more than %u facts of one kind",
                   (unsigned)KILNI_PROBE_MAX_ENTRIES),
        "examine the machine with simpler tools first");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_grow(probe->host->allocator, list->count + 1,
                                        list->item_bytes, &list->capacity,
                                        &list->items));
  *out_item = (char*)list->items + list->count * list->item_bytes;
  list->count++;
  return kiln_ok();
}

kiln_status_t kilni_probe_text(kiln_probe_t* probe, const char* text,
                               const char** out_text) {
  void* slot = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->texts, &slot));
  char** place = slot;
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      probe->host->allocator, kilni_base_sv(text ? text : ""), place));
  *out_text = *place;
  return kiln_ok();
}

const char* kilni_probe_variable_text(const kiln_probe_t* probe,
                                      kilni_base_env_id_t id) {
  bool searched = strcmp(kilni_base_env_row(id)->module, "locate") == 0;
  if (probe->hermetic && searched && id != KILNI_ENV_HOME &&
      id != KILNI_ENV_LD_LIBRARY_PATH) {
    return NULL;
  }
  return kilni_base_env_text(probe->host->env, id);
}

kiln_status_t kilni_probe_textf(kiln_probe_t* probe, const char** out_text,
                                const char* format, ...) {
  kilni_base_str_t text;
  kilni_base_str_init(&text, probe->host->allocator, KILNI_PROBE_TEXT_BYTES);
  va_list args;
  va_start(args, format);
  kilni_base_str_addv(&text, format, args);
  va_end(args);
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    status = kilni_probe_text(probe, kilni_base_str_cstr(&text), out_text);
  }
  kilni_base_str_deinit(&text);
  return status;
}

static const void* sheet_at(const kilni_probe_list_t* list, uint32_t index) {
  if (index >= list->count) return NULL;
  return (const char*)list->items + index * list->item_bytes;
}

const kiln_probe_driver_t* kiln_probe_driver(const kiln_probe_t* probe) {
  return &probe->driver;
}

const kiln_probe_soft_t* kiln_probe_soft(const kiln_probe_t* probe) {
  return &probe->soft;
}

const kiln_probe_system_t* kiln_probe_system(const kiln_probe_t* probe) {
  return &probe->system;
}

const kiln_probe_cache_t* kiln_probe_cache(const kiln_probe_t* probe) {
  return &probe->cache;
}

const kiln_compat_report_t* kiln_probe_report(const kiln_probe_t* probe) {
  return probe->report;
}

uint32_t kiln_probe_piece_count(const kiln_probe_t* probe) {
  return (uint32_t)probe->pieces.count;
}

const kiln_probe_piece_t* kiln_probe_piece(const kiln_probe_t* probe,
                                           uint32_t index) {
  return sheet_at(&probe->pieces, index);
}

uint32_t kiln_probe_device_count(const kiln_probe_t* probe) {
  return (uint32_t)probe->devices.count;
}

const kiln_probe_device_t* kiln_probe_device(const kiln_probe_t* probe,
                                             uint32_t index) {
  return sheet_at(&probe->devices, index);
}

uint32_t kiln_probe_toolkit_count(const kiln_probe_t* probe) {
  return (uint32_t)probe->toolkits.count;
}

const kiln_probe_toolkit_t* kiln_probe_toolkit(const kiln_probe_t* probe,
                                               uint32_t index) {
  return sheet_at(&probe->toolkits, index);
}

uint32_t kiln_probe_library_count(const kiln_probe_t* probe) {
  return (uint32_t)probe->libraries.count;
}

const kiln_probe_library_t* kiln_probe_library(const kiln_probe_t* probe,
                                               uint32_t index) {
  return sheet_at(&probe->libraries, index);
}

uint32_t kiln_probe_variable_count(const kiln_probe_t* probe) {
  return (uint32_t)probe->variables.count;
}

const kiln_probe_variable_t* kiln_probe_variable(const kiln_probe_t* probe,
                                                 uint32_t index) {
  return sheet_at(&probe->variables, index);
}

uint32_t kiln_probe_problem_count(const kiln_probe_t* probe) {
  return (uint32_t)probe->problems.count;
}

const kiln_probe_problem_t* kiln_probe_problem(const kiln_probe_t* probe,
                                               uint32_t index) {
  return sheet_at(&probe->problems, index);
}

const char* kiln_probe_severity_name(uint32_t severity) {
  switch (severity) {
    case KILN_PROBE_SEVERITY_NOTE:
      return "note";
    case KILN_PROBE_SEVERITY_WARNING:
      return "warning";
    case KILN_PROBE_SEVERITY_ERROR:
      return "error";
    default:
      return "?";
  }
}
