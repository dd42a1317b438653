// SPDX-License-Identifier: Apache-2.0
//
// program: the rules of the language by name.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_RULES_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_RULES_H_

// KILNI_RULE_*: the numbers.
#define X(number, NAME, message, fix) KILNI_RULE_##NAME = number,
enum {
#include "program/ir/program_rules.inc"
  KILNI_RULE_END
};
#undef X

// The message and fix of a rule; "" for what is none.
const char* kilni_program_rule_message(unsigned rule);
const char* kilni_program_rule_fix(unsigned rule);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_RULES_H_
