// SPDX-License-Identifier: Apache-2.0
//
// cli: fuzz target: what the command reads of a source itself: its templates.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run_template.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const kEntries[] = {NULL, "scale", "ns::scale"};
  for (size_t i = 0; i < sizeof(kEntries) / sizeof(kEntries[0]); i++) {
    char out[KILNI_CLI_ENTRY_SHOWN];
    memset(out, 'x', sizeof(out));
    if (kilni_cli_template_find((const char*)data, size, kEntries[i], out) &&
        (out[0] == 0 || memchr(out, 0, sizeof(out)) == NULL)) {
      abort();
    }
  }
  return 0;
}
