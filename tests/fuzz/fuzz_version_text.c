// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as a header, as version.json and as the texts of versions.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "locate/locate_facts_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void check_line(uint32_t line) {
  require(line == 0 || (line >= 1000 && line % 10 == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_string_view_t text = kilni_base_sv_make((const char*)data, size);
  uint64_t value;
  if (kilni_locate_define_find(text, "CUDA_VERSION", &value)) {
    require(value <= UINT32_MAX);
    check_line(kilni_locate_line_of_number(value));
  }
  kiln_string_view_t found;
  if (kilni_locate_json_find(text, "cuda", "version", &found)) {
    require(found.size == 0 || found.data >= text.data);
    require(found.size <= text.size);
    check_line(kilni_locate_line_of_version(found));
  }
  check_line(kilni_locate_line_of_version(text));
  check_line(kilni_locate_line_of_symbol(text));
  check_line(kilni_locate_line_of_digits(text));
  require(kilni_locate_version_at(text).size <= text.size);
  return 0;
}
