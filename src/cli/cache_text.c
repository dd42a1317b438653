// SPDX-License-Identifier: Apache-2.0
//
// cli: sizes and ages as people write and read them.
#include "cli/cache_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_literal.h"

void kilni_cli_size_text(uint64_t bytes, char out[KILNI_CLI_CACHE_TEXT_BYTES]) {
  static const char* const UNITS[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    (void)snprintf(out, KILNI_CLI_CACHE_TEXT_BYTES, "%" PRIu64 " B", bytes);
    return;
  }
  double value = (double)bytes / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < sizeof(UNITS) / sizeof(UNITS[0]); unit++) {
    value /= 1024;
  }
  (void)snprintf(out, KILNI_CLI_CACHE_TEXT_BYTES, "%.1f %s", value,
                 UNITS[unit]);
}

void kilni_cli_age_text(uint64_t seconds,
                        char out[KILNI_CLI_CACHE_TEXT_BYTES]) {
  static const struct {
    uint64_t seconds;
    const char* word;
  } UNITS[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
  for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++) {
    if (seconds >= UNITS[i].seconds) {
      (void)snprintf(out, KILNI_CLI_CACHE_TEXT_BYTES, "%" PRIu64 " %s ago",
                     seconds / UNITS[i].seconds, UNITS[i].word);
      return;
    }
  }
  (void)snprintf(out, KILNI_CLI_CACHE_TEXT_BYTES, "just now");
}

// A whole number with at most one letter of `letters` after it.
static bool cache_text_parse(const char* text, const char* letters,
                             const uint64_t* factors, uint64_t* out) {
  size_t digits = strspn(text, "0123456789");
  uint64_t number = 0;
  uint64_t factor = 1;
  *out = 0;
  if (text[digits] != 0) {
    const char* letter = strchr(letters, text[digits]);
    if (letter == NULL || text[digits + 1] != 0) return false;
    factor = factors[letter - letters];
  }
  if (digits == 0 || !kilni_cli_u64_parse(text, digits, &number) ||
      number > UINT64_MAX / factor) {
    return false;
  }
  *out = number * factor;
  return true;
}

bool kilni_cli_size_parse(const char* option, const char* text,
                          uint64_t* out_bytes, kilni_cli_error_t* error) {
  static const uint64_t FACTORS[] = {UINT64_C(1) << 10, UINT64_C(1) << 20,
                                     UINT64_C(1) << 30, UINT64_C(1) << 40};
  if (cache_text_parse(text, "KMGT", FACTORS, out_bytes) && *out_bytes > 0) {
    return true;
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write bytes, such as 500M or 2G",
                        "--%s \"%s\" is not a size above 0", option, text);
}

bool kilni_cli_age_parse(const char* option, const char* text,
                         uint64_t* out_seconds, kilni_cli_error_t* error) {
  static const uint64_t FACTORS[] = {1, 60, 3600, 86400, 604800};
  size_t size = strlen(text);
  bool has_unit = size > 0 && strchr("smhdw", text[size - 1]) != NULL;
  if (has_unit && cache_text_parse(text, "smhdw", FACTORS, out_seconds) &&
      *out_seconds > 0) {
    return true;
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write an age with its unit, such as 12h or 30d",
                        "--%s \"%s\" is not an age above 0", option, text);
}
