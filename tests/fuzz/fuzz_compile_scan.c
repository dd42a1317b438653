// SPDX-License-Identifier: Apache-2.0
//
// fuzz: the include scan, and what macros stand for. What is reported lies
// inside the text, has no line break in it, and is the same the second time;
// a header that a macro names has a name.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compile/compile_macro.h"
#include "compile/compile_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// What was reported. one-thread
typedef struct sum_t {
  uint64_t hash;
  uint64_t count;
  kilni_compile_macros_t* macros;  // NULL: nothing is defined
  kilni_compile_scan_pieces_t pieces;
} sum_t;

static bool add(void* user, const kilni_compile_scan_found_t* found) {
  sum_t* sum = user;
  if (found->kind < KILNI_SCAN_QUOTE || found->kind > KILNI_SCAN_WORD ||
      found->name.size == 0) {
    abort();
  }
  for (size_t i = 0; i < found->name.size; i++) {
    if (found->name.data[i] == '\n') abort();
    sum->hash = sum->hash * 31 + (uint8_t)found->name.data[i];
  }
  if (found->value.data != NULL && !kilni_compile_scan_is_plain(found->value)) {
    abort();
  }
  if (found->kind == KILNI_SCAN_PIECE) {
    kilni_compile_scan_add_piece(&sum->pieces, NULL, found->name);
    (void)kilni_compile_scan_whole(&sum->pieces, &sum->pieces);
  }
  if (found->kind == KILNI_SCAN_COMPUTED && found->line == 0) abort();
  if (found->kind == KILNI_SCAN_DEFINE && sum->macros != NULL &&
      kilni_compile_macros_add(sum->macros, found->name, found->value) !=
          NULL) {
    abort();
  }
  sum->hash = (sum->hash * 31 + found->kind) * 31 + found->value.size;
  sum->count++;
  return sum->count < 1000;
}

static kiln_status_t check(void* user,
                           const kilni_compile_scan_found_t* found) {
  uint64_t* headers = user;
  if (found->kind != KILNI_SCAN_QUOTE && found->kind != KILNI_SCAN_ANGLE) {
    abort();
  }
  if (found->name.size == 0 ||
      memchr(found->name.data, '\n', found->name.size) != NULL ||
      memchr(found->name.data, 0, found->name.size) != NULL) {
    abort();
  }
  (*headers)++;
  return kiln_ok();
}

// What is computed, once all is defined.
static bool expand(void* user, const kilni_compile_scan_found_t* found) {
  uint64_t headers = 0;
  bool all = false;
  if (found->kind != KILNI_SCAN_COMPUTED || found->value.data == NULL) {
    return true;
  }
  if (kilni_compile_macros_expand(user, found->value, check, &headers, &all) !=
          NULL ||
      headers > 512) {
    abort();
  }
  return true;
}

// A text beyond a limit is refused, with a cure, and each time.
static bool is_refused(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return false;
  if (kiln_status_code(status) != KILN_STATUS_LIMIT_EXCEEDED ||
      kiln_status_fix(status) == NULL) {
    abort();
  }
  kiln_status_free(status);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bool refused[2];
  kilni_compile_macros_t macros;
  sum_t sums[2];
  memset(sums, 0, sizeof(sums));
  kiln_string_view_t text = {(const char*)data, size};
  kilni_compile_macros_init(&macros, kiln_allocator_libc());
  sums[0].macros = &macros;
  for (int i = 0; i < 2; i++) {
    refused[i] = is_refused(
        kilni_compile_scan_text(kiln_allocator_libc(), text, add, &sums[i]));
  }
  if (sums[0].hash != sums[1].hash || sums[0].count != sums[1].count) abort();
  (void)is_refused(
      kilni_compile_scan_text(kiln_allocator_libc(), text, expand, &macros));
  if (refused[0] != refused[1]) abort();
  kilni_compile_macros_deinit(&macros);
  return 0;
}
