// SPDX-License-Identifier: Apache-2.0
//
// fuzz: what a cache keeps beside a compiled result. Texts end with their NUL,
// and what was read is written back as the same bytes.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/compile_files.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

enum { MAX_ITEMS = 64 };

static void check_text(kiln_string_view_t text) {
  if (strlen(text.data) != text.size) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* names[2 * MAX_ITEMS];
  static kilni_compile_file_dep_t deps[MAX_ITEMS];
  kilni_compile_kept_reader_t reader;
  if (!kilni_compile_kept_open(&reader, (kiln_bytes_view_t){data, size})) {
    return 0;
  }
  check_text(reader.log);
  check_text(reader.note);
  check_text(reader.arch);
  uint32_t name_count = reader.name_count;
  uint32_t file_count = reader.file_count;
  for (uint32_t i = 0; i < name_count; i++) {
    kiln_code_name_t name;
    if (!kilni_compile_kept_name(&reader, &name)) return 0;
    if (i >= MAX_ITEMS) continue;
    names[2 * i] = name.expression;
    names[2 * i + 1] = name.lowered;
  }
  for (uint32_t i = 0; i < file_count; i++) {
    kilni_compile_file_dep_t dep;
    if (!kilni_compile_kept_file(&reader, &dep)) return 0;
    if (i < MAX_ITEMS) deps[i] = dep;
  }
  if (name_count > MAX_ITEMS || file_count > MAX_ITEMS) return 0;
  kilni_compile_files_t files = {kiln_allocator_libc(),
                                 deps,
                                 file_count,
                                 MAX_ITEMS,
                                 NULL,
                                 0,
                                 0,
                                 NULL,
                                 NULL,
                                 NULL};
  kilni_compile_kept_t kept = {reader.format, reader.line, reader.log,
                               reader.note,   reader.arch, names,
                               name_count,    &files};
  kilni_base_str_t text;
  kilni_base_str_init(&text, kiln_allocator_libc(), size + 1);
  kilni_compile_kept_write(&text, &kept);
  if (kilni_base_str_status(&text) != NULL || text.size > size ||
      memcmp(text.data, data, text.size) != 0) {
    abort();
  }
  kilni_base_str_deinit(&text);
  return 0;
}
