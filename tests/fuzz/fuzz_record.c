// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as a RECORD: rows that lie in the text, and an end.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "locate/locate_facts_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static bool inside(kiln_string_view_t part, const uint8_t* data, size_t size) {
  const char* begin = (const char*)data;
  return part.size == 0 ||
         (part.data >= begin && part.data + part.size <= begin + size);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_string_view_t rest = kilni_base_sv_make((const char*)data, size);
  kilni_locate_record_row_t row;
  size_t lines = 1;
  for (size_t i = 0; i < size; i++) lines += data[i] == '\n';
  for (size_t rows = 0; kilni_locate_record_next(&rest, &row); rows++) {
    require(rows < lines);
    require(inside(rest, data, size));
    if (row.is_broken) continue;
    require(inside(row.path, data, size) && inside(row.hash, data, size) &&
            inside(row.size, data, size));
    require(row.path.size <= KILNI_PARSE_MAX_PATH);
    char path[256];
    size_t length = kilni_locate_record_path(&row, sizeof(path), path);
    require(length == SIZE_MAX || length <= row.path.size);
  }
  return 0;
}
