// SPDX-License-Identifier: Apache-2.0
//
// cli: variables of the environment that are misspelt.
#include "cli/cli_variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/cli_command.h"

enum { NAME_BYTES = 63, SHORT_NAME = 10 };

static const char kHead[] = "KILN_";

static const char* const kNames[] = {
#include "cli/cli_variables_gen.inc"
};
enum { NAME_COUNT = sizeof(kNames) / sizeof(kNames[0]) };

static bool is_family(const char* name) {
  return name[strlen(name) - 1] == '_';
}

static bool is_known(const char* name) {
  for (size_t i = 0; i < NAME_COUNT; i++) {
    bool same = is_family(kNames[i])
                    ? strncmp(name, kNames[i], strlen(kNames[i])) == 0
                    : strcmp(name, kNames[i]) == 0;
    if (same) return true;
  }
  return false;
}

// A slip of the hand changes a letter or two; of a short name that is another
// word.
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

const char* kilni_cli_variable_meant(const char* name) {
  if (strncmp(name, kHead, strlen(kHead)) != 0 || strlen(name) > NAME_BYTES ||
      is_known(name)) {
    return NULL;
  }
  for (size_t i = 0; i < NAME_COUNT; i++) {
    bool meant = is_family(kNames[i]) ? begins_like(name, kNames[i])
                                      : is_slip(name, kNames[i]);
    if (meant) return kNames[i];
  }
  return NULL;
}
