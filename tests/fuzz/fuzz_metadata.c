// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as METADATA, each value as a requirement.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "locate/locate_facts_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static bool inside(kiln_string_view_t part, kiln_string_view_t whole) {
  return part.size == 0 || (part.data >= whole.data &&
                            part.data + part.size <= whole.data + whole.size);
}

static void check_requirement(kiln_string_view_t text) {
  kilni_locate_requirement_t requirement;
  if (!kilni_locate_requirement_read(text, &requirement)) return;
  require(requirement.name.size > 0);
  require(requirement.name.size <= KILNI_PARSE_MAX_NAME);
  require(inside(requirement.name, text));
  require(inside(requirement.specifier, text));
  require(inside(requirement.marker, text));
  char name[64];
  size_t length =
      kilni_locate_name_normalise(requirement.name, sizeof(name), name);
  require(strlen(name) == length);
  char again[64];
  kilni_locate_name_normalise(kilni_base_sv(name), sizeof(again), again);
  require(strcmp(name, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_string_view_t whole = kilni_base_sv_make((const char*)data, size);
  kiln_string_view_t rest = whole;
  kilni_locate_metadata_field_t field;
  size_t broken = 0;
  while (kilni_locate_metadata_next(&rest, &field, &broken)) {
    require(field.name.size > 0);
    require(inside(field.name, whole) && inside(field.value, whole));
    check_requirement(field.value);
  }
  require(broken <= size);
  check_requirement(whole);
  return 0;
}
