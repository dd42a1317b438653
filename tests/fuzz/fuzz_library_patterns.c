// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as patterns, and as the text that they are looked for in: by
// the automaton, and by comparing all of them everywhere.
#include <stdlib.h>
#include <string.h>

#include "kiln/library.h"
#include "plain_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

enum { PATTERNS = 64, MATCHES = 4096, SIZE = 2048 };

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

// All numbers are of something that is there.
static void check_tables(const kiln_library_patterns_tables_t* t,
                         uint64_t* out_classes) {
  uint64_t states = t->quiet + t->end_count - 1;
  require(t->quiet > 0 && t->end_count > 0 && t->next_count % states == 0);
  *out_classes = t->next_count / states;
  for (uint32_t b = 0; b < 256; b++) require(t->kinds[b] < *out_classes);
  for (uint64_t i = 0; i < t->next_count; i++) require(t->next[i] < states);
  require(t->ends[0] == 0);
  for (uint64_t e = 1; e < t->end_count; e++) {
    require(t->ends[e] > t->ends[e - 1]);
  }
  require(t->ends[t->end_count - 1] * UINT64_C(2) == t->pattern_count);
}

static void search(const kiln_library_patterns_tables_t* t, uint64_t classes,
                   const uint8_t* text, size_t size, uint32_t found,
                   const uint32_t* places, const uint32_t* which) {
  uint64_t here = 0;
  uint32_t at = 0;
  for (size_t i = 0; i < size; i++) {
    here = t->next[here * classes + t->kinds[text[i]]];
    if (here < t->quiet) continue;
    for (uint32_t e = t->ends[here - t->quiet];
         e < t->ends[here - t->quiet + 1]; e++, at++) {
      if (at >= MATCHES) continue;
      require(which[at] == t->patterns[2 * e]);
      require(places[at] == i + 1 - t->patterns[2 * e + 1]);
    }
  }
  require(at == found);
}

// The first byte says how many patterns there are; before each stands its size.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > SIZE) return 0;
  kiln_string_view_t views[PATTERNS];
  memset(views, 0, sizeof(views));
  plain_bytes_pattern_t plain[PATTERNS];
  memset(plain, 0, sizeof(plain));
  uint32_t count = 0, most = data[0] % (PATTERNS + 1);
  bool is_empty = false;
  size_t at = 1;
  while (count < most && at < size && data[at] < size - at) {
    plain[count].bytes = data + at + 1;
    plain[count].size = data[at];
    views[count].data = (const char*)data + at + 1;
    views[count].size = data[at];
    is_empty = is_empty || data[at] == 0;
    at += 1U + data[at];
    count++;
  }
  kiln_library_patterns_t* made = NULL;
  kiln_status_t status =
      kiln_library_patterns_create(views, count, NULL, &made);
  require(kiln_status_is_ok(status) == !is_empty);
  kiln_status_free(status);
  if (is_empty) return 0;
  kiln_library_patterns_tables_t tables;
  uint64_t classes = 0;
  kiln_library_patterns_tables(made, &tables);
  check_tables(&tables, &classes);
  static uint32_t places[MATCHES], which[MATCHES];
  uint32_t found =
      plain_bytes_match(data, size, plain, count, places, which, MATCHES);
  search(&tables, classes, data, size, found, places, which);
  kiln_library_patterns_release(made);
  return 0;
}
