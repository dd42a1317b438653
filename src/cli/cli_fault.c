// SPDX-License-Identifier: Apache-2.0
//
// cli: an error of a device, reported as what its kernel did wrong.
//
// Everything comes from the record, and nothing from the call that detected the
// fault: one fault has one text.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NOTES_BYTES = 4096, NAME_BYTES = 600 };

// A file in the working directory is called by its name.
static void shorten_path(char* path) {
  char folder[PATH_BYTES];
  if (getcwd(folder, sizeof(folder)) == NULL) return;
  size_t size = strlen(folder);
  if (size > 1 && strncmp(path, folder, size) == 0 && path[size] == '/') {
    memmove(path, path + size + 1, strlen(path + size + 1) + 1);
  }
}

static bool read_fault(const kiln_device_t* device, kiln_fault_t* fault) {
  *fault = kiln_fault_default();
  kiln_status_t status = kiln_device_fault(device, fault);
  bool ok = kiln_status_is_ok(status);
  kiln_status_free(status);
  shorten_path(fault->source);
  shorten_path(fault->call_source);
  return ok && fault->kind != KILN_FAULT_NONE;
}

static void copy_notes(const kiln_fault_t* fault, kilni_cli_error_t* error) {
  char notes[NOTES_BYTES];
  char lines[NOTES_BYTES + NOTES_BYTES / 2];
  size_t used = 0;
  kiln_fault_notes(fault, sizeof(notes), notes, NULL);
  for (const char* at = notes; *at != 0 && used + 4 < sizeof(lines);) {
    size_t size = strcspn(at, "\n");
    int n = snprintf(lines + used, sizeof(lines) - used, "%s  %.*s",
                     used == 0 ? "" : "\n", (int)size, at);
    if (n < 0 || used + (size_t)n >= sizeof(lines)) break;
    used += (size_t)n;
    at += size + (at[size] == '\n');
  }
  lines[used] = 0;
  kilni_cli_copy_text(error->trail, sizeof(error->trail), lines);
}

// What a program on the driver's own interface would see.
static void note_native(kilni_cli_error_t* error) {
  size_t used = strlen(error->trail);
  if (error->native_domain[0] == 0) return;
  int n =
      snprintf(error->trail + used, sizeof(error->trail) - used,
               "%s  %s %" PRId64 " %s", used == 0 ? "" : "\n",
               error->native_domain, error->native_number, error->native_name);
  if (n < 0 || used + (size_t)n >= sizeof(error->trail)) error->trail[used] = 0;
}

bool kilni_cli_fault_tell(const kiln_device_t* device,
                          kilni_cli_fault_namer_t namer, void* user,
                          kilni_cli_error_t* error) {
  kiln_fault_t fault;
  char text[sizeof(error->message)];
  char fix[sizeof(error->fix)];
  if (!read_fault(device, &fault) || fault.kind == KILN_FAULT_TIME_LIMIT) {
    return false;
  }
  char name[sizeof(fault.buffer_name)];
  if (fault.buffer != 0 && namer != NULL &&
      namer(user, fault.buffer, name, sizeof(name))) {
    memcpy(fault.buffer_name, name, sizeof(name));
  }
  kiln_fault_message(&fault, sizeof(text), text, NULL);
  kiln_fault_fix(&fault, sizeof(fix), fix, NULL);
  kilni_cli_copy_text(error->message, sizeof(error->message), text);
  kilni_cli_copy_text(error->fix, sizeof(error->fix), fix);
  copy_notes(&fault, error);
  note_native(error);
  error->fault = fault;
  return true;
}

void kilni_cli_fault_place(const kiln_device_t* device,
                           kilni_cli_error_t* error) {
  kiln_fault_t fault;
  if (!read_fault(device, &fault)) return;
  copy_notes(&fault, error);
  error->fault = fault;
}

// ---- JSON ----

static json_t* fault_text_or_null(const char* text) {
  json_t* object = text[0] != 0 ? json_string(text) : json_null();
  return object != NULL ? object : json_string_nocheck("?");  // no UTF-8
}

static json_t* fault_number_or_null(bool is_known, uint64_t number) {
  return is_known ? json_integer((json_int_t)number) : json_null();
}

static json_t* three(bool is_known, const uint32_t numbers[3]) {
  if (!is_known) return json_null();
  return json_pack("[I,I,I]", (json_int_t)numbers[0], (json_int_t)numbers[1],
                   (json_int_t)numbers[2]);
}

static json_t* fault_place_json(const char* file, uint32_t line) {
  if (line == 0) return json_null();
  return json_pack("{s:o,s:I}", "file", fault_text_or_null(file), "line",
                   (json_int_t)line);
}

static const char* fault_access_word(const kiln_fault_t* fault) {
  static const char* const kWords[] = {"", "load", "store", "atomic"};
  return fault->access < 4 ? kWords[fault->access] : "";
}

static const char* memory_word(const kiln_fault_t* fault) {
  static const char* const kWords[KILN_FAULT_MEMORY_COUNT] = {
      [KILN_FAULT_MEMORY_NONE] = "",
      [KILN_FAULT_MEMORY_ALLOCATION] = "device",
      [KILN_FAULT_MEMORY_HOST] = "host",
      [KILN_FAULT_MEMORY_VARIABLE] = "variable",
      [KILN_FAULT_MEMORY_HEAP_BLOCK] = "heap",
      [KILN_FAULT_MEMORY_SHARED] = "shared",
      [KILN_FAULT_MEMORY_LOCAL] = "local",
      [KILN_FAULT_MEMORY_PARAMETERS] = "parameters"};
  return fault->memory < KILN_FAULT_MEMORY_COUNT ? kWords[fault->memory] : "";
}

static json_t* buffer_json(const kiln_fault_t* fault) {
  if (fault->memory == KILN_FAULT_MEMORY_NONE) return json_null();
  return json_pack(
      "{s:o,s:s,s:I}", "name", fault_text_or_null(fault->buffer_name), "memory",
      memory_word(fault), "bytes", (json_int_t)fault->buffer_bytes);
}

json_t* kilni_cli_fault_json(const kiln_fault_t* fault) {
  char name[NAME_BYTES];
  if (fault->kind == KILN_FAULT_NONE) return json_null();
  kiln_fault_kernel(fault, sizeof(name), name, NULL);
  bool access = fault->access != KILN_FAULT_ACCESS_NONE;
  bool placed = fault->memory != KILN_FAULT_MEMORY_NONE;
  json_t* object = json_pack(
      "{s:s,s:o,s:o,s:o,s:o,s:o}", "kind", kiln_fault_kind_name(fault->kind),
      "kernel", fault_text_or_null(name), "entry",
      fault_text_or_null(fault->kernel), "node",
      fault_text_or_null(fault->node), "block",
      three(fault->has_thread != 0, fault->block), "thread",
      three(fault->has_thread != 0, fault->thread));
  if (object == NULL) return NULL;
  json_t* where = json_pack(
      "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "source",
      fault_place_json(fault->source, fault->source_line), "called_from",
      fault_place_json(fault->call_source, fault->call_line), "ptx_line",
      fault_number_or_null(fault->ptx_line != 0, fault->ptx_line), "access",
      fault_text_or_null(fault_access_word(fault)), "address",
      fault_number_or_null(access, fault->address), "bytes",
      fault_number_or_null(access, fault->bytes), "buffer", buffer_json(fault),
      "offset", placed ? json_integer((json_int_t)fault->offset) : json_null());
  (void)json_object_update(object, where);
  json_decref(where);
  return object;
}
