// SPDX-License-Identifier: Apache-2.0
//
// compat: fuzz target: versions, specifiers, lines, drivers, modes and pins.
//
// The input is three texts with newlines between them. What a parser takes
// must keep its own promises: a normal form is its own normal form, an order
// is the same from both sides.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/compat.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static bool is_ok(kiln_status_t status) {
  bool ok = kiln_status_is_ok(status);
  kiln_status_free(status);
  return ok;
}

static void try_version(const char* text, const char* other) {
  static char normal[2048];
  static char again[2048];
  int32_t order = 0;
  int32_t back = 0;
  if (!is_ok(
          kiln_compat_version_normalize(text, sizeof(normal), normal, NULL))) {
    return;
  }
  if (!is_ok(
          kiln_compat_version_normalize(normal, sizeof(again), again, NULL)) ||
      strcmp(normal, again) != 0) {
    abort();
  }
  if (!is_ok(kiln_compat_version_compare(text, normal, &order)) || order != 0) {
    abort();
  }
  if (!is_ok(kiln_compat_version_compare(text, other, &order))) return;
  if (!is_ok(kiln_compat_version_compare(other, text, &back)) ||
      order != -back) {
    abort();
  }
}

static void try_spec(const char* spec, const char* version) {
  bool with = false;
  bool without = false;
  bool by_default = false;
  (void)is_ok(kiln_compat_spec_check(spec));
  if (!is_ok(kiln_compat_spec_admits(spec, version, KILN_SWITCH_ON, &with))) {
    return;
  }
  (void)is_ok(
      kiln_compat_spec_admits(spec, version, KILN_SWITCH_OFF, &without));
  (void)is_ok(
      kiln_compat_spec_admits(spec, version, KILN_SWITCH_DEFAULT, &by_default));
  if ((without && !with) || (by_default && !with)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char text[4096];
  if (size >= sizeof(text)) return 0;
  if (size != 0) memcpy(text, data, size);
  text[size] = '\0';
  char* second = strchr(text, '\n');
  if (second == NULL) return 0;
  *second++ = '\0';
  char* third = strchr(second, '\n');
  if (third == NULL) return 0;
  *third++ = '\0';
  try_version(text, second);
  try_version(second, text);
  try_spec(third, text);
  try_spec(text, second);
  uint32_t line = 0;
  (void)kiln_compat_line_parse(text, &line);
  (void)kiln_compat_line_decode(text, &line);
  kiln_compat_driver_t driver;
  (void)is_ok(kiln_compat_driver_parse(text, &driver));
  kiln_compat_policy_t policy;
  (void)is_ok(kiln_compat_mode_parse(text, second, third, 0, &policy));
  (void)kiln_compat_evidence_of_wheel(second, text);
  (void)kiln_compat_evidence_of_pin(text, second, third, second, text);
  return 0;
}
