// SPDX-License-Identifier: Apache-2.0
//
// locate: fuzz target: pyvenv.cfg. What is read lies inside the text and is
// what it claims to be.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "locate/locate_pyvenv.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check_inside(kiln_string_view_t view, const char* text,
                         size_t size) {
  if (view.size == 0) return;
  if (view.data < text || view.data + view.size > text + size) abort();
  if (memchr(view.data, '\n', view.size) != NULL) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char* text = malloc(size + (size == 0));
  if (size > 0) memcpy(text, data, size);
  kilni_locate_pyvenv_t config;
  kilni_locate_pyvenv_parse((kiln_string_view_t){text, size}, &config);
  check_inside(config.home, text, size);
  check_inside(config.version, text, size);
  size_t dots = 0;
  for (size_t i = 0; i < config.version.size; i++) {
    char c = config.version.data[i];
    dots += c == '.' ? 1 : 0;
    if (c != '.' && (c < '0' || c > '9')) abort();
  }
  if (config.version.size > 0 && dots != 1) abort();
  free(text);
  return 0;
}
