// SPDX-License-Identifier: Apache-2.0
//
// locate: the facts about the display driver on disk.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

enum { MAX_MODULE_TEXT = 4096 };

// "580.159.04": two or three numbers and nothing else.
static bool facts_driver_is_release(kiln_string_view_t text) {
  size_t dots = 0;
  for (size_t i = 0; i < text.size; i++) dots += text.data[i] == '.';
  return dots >= 1 && dots <= 2 &&
         kilni_locate_version_at(text).size == text.size && text.data[0] != '.';
}

static kiln_status_t read_library(kilni_locate_reader_t* reader,
                                  const char* libcuda,
                                  kilni_locate_driver_t* driver) {
  kilni_locate_store_t* store = &reader->store;
  char* real = NULL;
  kiln_status_t status =
      kilni_base_path_real(reader->allocator, libcuda, &real);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  if (real == NULL) return kiln_ok();  // it is not there
  status =
      kilni_locate_store_text(store, kilni_base_sv(libcuda), &driver->path);
  if (kiln_status_is_ok(status)) {
    status =
        kilni_locate_store_text(store, kilni_base_sv(real), &driver->real_path);
  }
  const char* number = strstr(strrchr(real, '/'), ".so.");
  if (kiln_status_is_ok(status) && number != NULL &&
      facts_driver_is_release(kilni_base_sv(number + 4))) {
    status = kilni_locate_store_text(store, kilni_base_sv(number + 4),
                                     &driver->library_release);
  }
  driver->is_stub =
      strstr(libcuda, "/stubs/") != NULL || strstr(real, "/stubs/") != NULL;
  kilni_base_strfree(reader->allocator, real);
  return status;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Wed ...", or
// "... Open Kernel Module for x86_64  580.159.04  Release Build ...".
static kiln_status_t read_module_text(kilni_locate_reader_t* reader,
                                      kiln_string_view_t text,
                                      kilni_locate_driver_t* driver) {
  kiln_string_view_t line;
  if (!kilni_base_sv_split(&text, '\n', &line)) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(&reader->store, line, &driver->module_text));
  kiln_string_view_t word;
  while (kilni_base_sv_split(&line, ' ', &word)) {
    if (word.size == 0 || !facts_driver_is_release(word)) continue;
    return kilni_locate_store_text(&reader->store, word,
                                   &driver->module_release);
  }
  return kiln_ok();
}

static kiln_status_t facts_driver_read_module(kilni_locate_reader_t* reader,
                                              kilni_locate_driver_t* driver) {
  const char* path;
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
      &reader->store, &path, "%s/proc/driver/nvidia/version",
      reader->system_root));
  uint8_t* data;
  size_t size;
  size_t capacity;
  kiln_status_t status = kilni_locate_facts_front(
      reader->allocator, path, MAX_MODULE_TEXT, &data, &size, &capacity);
  if (!kiln_status_is_ok(status)) {
    if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
    kiln_status_free(status);  // no driver
    return kiln_ok();
  }
  status = read_module_text(reader, kilni_base_sv_make((const char*)data, size),
                            driver);
  kilni_base_free(reader->allocator, data, capacity);
  return status;
}

static kiln_status_t facts_driver_read_driver(kilni_locate_reader_t* reader,
                                              const char* libcuda) {
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &reader->store, sizeof(kilni_locate_driver_t), &memory));
  kilni_locate_driver_t* driver = memory;
  memset(driver, 0, sizeof(*driver));
  if (libcuda != NULL) {
    KILNI_RETURN_IF_ERROR(read_library(reader, libcuda, driver));
  }
  KILNI_RETURN_IF_ERROR(facts_driver_read_module(reader, driver));
  reader->driver = driver;
  return kiln_ok();
}

// The one that was read, if it was read for the same library.
static bool facts_driver_is_read(const kilni_locate_reader_t* reader,
                                 const char* libcuda) {
  const kilni_locate_driver_t* driver = reader->driver;
  if (driver == NULL) return false;
  if (libcuda == NULL || driver->path == NULL) {
    return libcuda == NULL && driver->path == NULL;
  }
  return strcmp(libcuda, driver->path) == 0;
}

kiln_status_t kilni_locate_driver_read(
    kilni_locate_reader_t* reader, const char* libcuda,
    const kilni_locate_driver_t** out_driver) {
  *out_driver = NULL;
  kilni_base_mutex_lock(&reader->mutex);
  kiln_status_t status = facts_driver_is_read(reader, libcuda)
                             ? NULL
                             : facts_driver_read_driver(reader, libcuda);
  if (kiln_status_is_ok(status)) *out_driver = reader->driver;
  kilni_base_mutex_unlock(&reader->mutex);
  return status;
}
