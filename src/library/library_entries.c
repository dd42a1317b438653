// SPDX-License-Identifier: Apache-2.0
//
// library: which programs there are.
#include <string.h>

#include "kiln/library.h"
#include "kiln/program.h"
#include "library/library_texts_gen.inc"

enum {
  ENTRIES = sizeof(kEntries) / sizeof(kEntries[0]),
  DEFAULTS = sizeof(kDefaults) / sizeof(kDefaults[0]),
};

uint32_t kiln_library_count(void) {
  return ENTRIES;
}

bool kiln_library_entry(uint32_t index, kiln_library_entry_t* out_entry) {
  memset(out_entry, 0, sizeof(*out_entry));
  if (index >= ENTRIES) return false;
  *out_entry = kEntries[index];
  return true;
}

bool kiln_library_find(const char* name, kiln_library_entry_t* out_entry) {
  for (uint32_t i = 0; name != NULL && i < ENTRIES; i++) {
    if (strcmp(kEntries[i].name, name) == 0) {
      return kiln_library_entry(i, out_entry);
    }
  }
  return kiln_library_entry(ENTRIES, out_entry);
}

bool kiln_library_default(const char* name, uint32_t index,
                          kiln_library_default_t* out_default) {
  memset(out_default, 0, sizeof(*out_default));
  for (uint32_t i = 0; name != NULL && i < DEFAULTS; i++) {
    if (strcmp(kDefaults[i].entry, name) != 0 || index-- != 0) continue;
    *out_default = kDefaults[i].is;
    return true;
  }
  return false;
}
