// SPDX-License-Identifier: Apache-2.0
//
// base: how far two names are apart.
#include "base/name_distance.h"

#include <stddef.h>
#include <string.h>

enum { NAME_LIMIT = 64, FAR = 1000 };

static char name_distance_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

uint32_t kilni_base_name_distance(const char* a, const char* b) {
  size_t a_size = strlen(a);
  size_t b_size = strlen(b);
  uint32_t row[NAME_LIMIT + 1];
  if (a_size > NAME_LIMIT || b_size > NAME_LIMIT) return FAR;
  for (size_t j = 0; j <= b_size; j++) row[j] = (uint32_t)j;
  for (size_t i = 1; i <= a_size; i++) {
    uint32_t diagonal = row[0];
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= b_size; j++) {
      uint32_t above = row[j];
      uint32_t best =
          diagonal +
          (name_distance_lower(a[i - 1]) == name_distance_lower(b[j - 1]) ? 0u
                                                                          : 1u);
      if (above + 1 < best) best = above + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
      diagonal = above;
    }
  }
  return row[b_size];
}
