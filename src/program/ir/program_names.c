// SPDX-License-Identifier: Apache-2.0
//
// program: which words the language has taken.
#include "program/ir/program_names.h"

#include <string.h>

#include "program/ir/program_ir.h"

bool kilni_program_name_is_word(const char* name) {
  static const char* const kWords[] = {
#define ROW(NAME, spelling, ...) spelling,
#define KEYWORD(NAME, spelling)  spelling,
#define TYPE(NAME, spelling, bytes, class_) \
  spelling, "bitcast_" spelling, "inf_" spelling, "nan_" spelling,
#define OTHER(spelling) spelling,
      // clang-format off
      KILNI_KEYWORDS(KEYWORD)
      KILN_PROGRAM_TYPES(TYPE)
      KILN_PROGRAM_UNARY_OPERATORS(ROW)
      KILN_PROGRAM_BINARY_OPERATORS(ROW)
      KILN_PROGRAM_ATOMICS(ROW)
      KILN_PROGRAM_SUBGROUPS(ROW)
      KILN_PROGRAM_IDS(ROW)
      KILNI_OTHER_WORDS(OTHER)
      // clang-format on
  };
  for (size_t i = 0; i < sizeof(kWords) / sizeof(kWords[0]); i++) {
    if (strcmp(kWords[i], name) == 0) return true;
  }
  return false;
}

bool kilni_program_name_is_formed(const char* name) {
  static const char kFirst[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  size_t size = strlen(name);
  if (size == 0 || size > KILNI_IR_MAX_NAME) return false;
  if (strchr(kFirst, name[0]) == NULL) return false;
  size_t used = 0;
  while (used < size && (strchr(kFirst, name[used]) != NULL ||
                         strchr("0123456789", name[used]) != NULL)) {
    used++;
  }
  return used == size;
}
