// SPDX-License-Identifier: Apache-2.0
//
// cli: misspelt environment variables.
#include "cli/cli_variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_command.h"
#include "kiln/locate_catalog.h"

enum { NAME_BYTES = KILNI_CLI_VARIABLE_BYTES - 1, SHORT_NAME = 10 };

static const char kHead[] = "KILN_";
static const char kPieces[] = "KILN_LOCATE_";

static const char* const kNames[] = {
#include "cli/cli_variables_gen.inc"
};
enum { NAME_COUNT = sizeof(kNames) / sizeof(kNames[0]) };

static bool is_family(const char* name) {
  return name[strlen(name) - 1] == '_';
}

static bool variables_is_known(const char* name) {
  for (size_t i = 0; i < NAME_COUNT; i++) {
    bool same = is_family(kNames[i])
                    ? strncmp(name, kNames[i], strlen(kNames[i])) == 0
                    : strcmp(name, kNames[i]) == 0;
    if (same) return true;
  }
  return false;
}

// A typing error changes a letter or two; in a short name that is another word.
static bool is_slip(const char* name, const char* known) {
  return kilni_cli_edits(name, known) <= (strlen(known) > SHORT_NAME ? 2 : 1);
}

// Of a family only the beginning can be misspelt.
static bool begins_like(const char* name, const char* family) {
  char head[NAME_BYTES + 1];
  for (const char* at = strchr(name + strlen(kHead), '_'); at != NULL;
       at = strchr(at + 1, '_')) {
    size_t size = (size_t)(at - name) + 1;
    memcpy(head, name, size);
    head[size] = 0;
    if (is_slip(head, family)) return true;
  }
  return false;
}

// ---- Components: KILN_LOCATE_LIB_NVRTC ----

// As locate/ makes it of a kind and a name.
static void piece_name(const kiln_locate_entry_t* entry,
                       char out[KILNI_CLI_VARIABLE_BYTES]) {
  (void)snprintf(out, KILNI_CLI_VARIABLE_BYTES, "%s%s_%s", kPieces,
                 kiln_locate_kind_name(kiln_locate_entry_kind(entry)),
                 kiln_locate_entry_name(entry));
  for (char* at = out; *at != 0; at++) {
    if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    bool is_plain = (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');
    if (!is_plain) *at = '_';
  }
}

// The component that is meant, the common prefix if none is near; NULL for one
// that exists.
static const char* piece_meant(const char* name,
                               char out[KILNI_CLI_VARIABLE_BYTES]) {
  char one[KILNI_CLI_VARIABLE_BYTES];
  size_t best = 3;
  out[0] = 0;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    piece_name(kiln_locate_entry(i), one);
    size_t edits = kilni_cli_edits(name, one);
    if (strcmp(name, one) == 0) return NULL;
    if (edits >= best) continue;
    best = edits;
    memcpy(out, one, sizeof(one));
  }
  return out[0] != 0 ? out : kPieces;
}

// ---- Names that begin otherwise: KLIN_CACHE, kiln_cache ----

static bool has_letters_of(const char* head) {
  for (const char* at = kHead; *at != 0; at++) {
    if (strchr(head, *at) == NULL) return false;
  }
  return strlen(head) == strlen(kHead);
}

// A known name with a misspelt prefix, or in lower case; the rest after the
// prefix must be exact, as such a prefix often belongs to another program.
static const char* head_meant(const char* name,
                              char out[KILNI_CLI_VARIABLE_BYTES]) {
  char large[KILNI_CLI_VARIABLE_BYTES];
  size_t size = 0;
  for (; name[size] != 0; size++) {
    char c = name[size];
    large[size] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
  }
  large[size] = 0;
  const char* rest = strchr(large, '_');
  if (rest == NULL || (size_t)(rest - large) >= strlen(kHead)) return NULL;
  char head[8];
  size_t length = (size_t)(rest - large) + 1;
  memcpy(head, large, length);
  head[length] = 0;
  if (kilni_cli_edits(head, kHead) > 1 && !has_letters_of(head)) return NULL;
  (void)snprintf(out, KILNI_CLI_VARIABLE_BYTES, "%s%.56s", kHead, rest + 1);
  return variables_is_known(out) && strcmp(out, name) != 0 ? out : NULL;
}

// ---- Queries ----

const char* kilni_cli_variable_meant(const char* name,
                                     char out[KILNI_CLI_VARIABLE_BYTES]) {
  if (strlen(name) > NAME_BYTES) return NULL;
  if (strncmp(name, kPieces, strlen(kPieces)) == 0) {
    return piece_meant(name, out);
  }
  if (strncmp(name, kHead, strlen(kHead)) != 0) return head_meant(name, out);
  if (variables_is_known(name)) return NULL;
  for (size_t i = 0; i < NAME_COUNT; i++) {
    bool meant = is_family(kNames[i]) ? begins_like(name, kNames[i])
                                      : is_slip(name, kNames[i]);
    if (meant) return kNames[i];
  }
  return NULL;
}

bool kilni_cli_variable_is_nobodys(const char* name) {
  // Of the tests and tools of Kiln itself.
  static const char* const own[] = {"KILN_TEST_", "KILN_FAULT_", "KILN_SOURCES",
                                    "KILN_WHEELS"};
  if (strncmp(name, kHead, strlen(kHead)) != 0 || variables_is_known(name)) {
    return false;
  }
  for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
    if (strncmp(name, own[i], strlen(own[i])) == 0) return false;
  }
  return true;
}
