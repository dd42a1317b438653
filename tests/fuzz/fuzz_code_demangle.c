// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as the name of a kernel.
#include <stdlib.h>
#include <string.h>

#include "kiln/code.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char all[4096], name[4096], small[16];
  char* text = malloc(size + 1);
  if (text == NULL) return 0;
  if (size != 0) memcpy(text, data, size);
  text[size] = 0;
  bool read = kiln_code_demangle(text, KILN_SWITCH_ON, sizeof(all), all);
  // Either way of writing it reads the same; parameters follow the name.
  require(kiln_code_demangle(text, KILN_SWITCH_OFF, sizeof(name), name) ==
          read);
  require((all[0] != 0) == read);
  require(strncmp(all, name, strlen(name)) == 0);
  bool fits = kiln_code_demangle(text, KILN_SWITCH_ON, sizeof(small), small);
  require(fits == (read && strlen(all) < sizeof(small)));
  free(text);
  return 0;
}
