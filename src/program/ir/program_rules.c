// SPDX-License-Identifier: Apache-2.0
//
// program: what the rules say.
#include "program/ir/program_rules.h"

static const struct {
  const char* message;
  const char* fix;
} kRules[] = {
    {"", ""},
#define X(number, NAME, message, fix) [number] = {message, fix},
#include "program/ir/program_rules.inc"
#undef X
};

const char* kilni_program_rule_message(unsigned rule) {
  return kRules[rule < KILNI_RULE_END ? rule : 0].message;
}

const char* kilni_program_rule_fix(unsigned rule) {
  return kRules[rule < KILNI_RULE_END ? rule : 0].fix;
}
