// SPDX-License-Identifier: Apache-2.0
//
// test: the fault of the software device's first context, as it is told.
#ifndef KILN_TESTS_SUPPORT_SOFT_FAULT_STORY_H_
#define KILN_TESTS_SUPPORT_SOFT_FAULT_STORY_H_

#include <string.h>

#include "kiln/fault.h"
#include "soft/soft.h"

// The first line, those behind it and the Fix; "" without a fault.
static inline void soft_fault_format(const kiln_fault_t* fault, char* out_text,
                                     size_t capacity) {
  static const char kFix[] = "\nFix: ";
  out_text[0] = 0;
  if (fault->kind == KILN_FAULT_NONE) return;
  kiln_fault_message(fault, capacity, out_text, NULL);
  size_t used = strlen(out_text);
  if (used + sizeof(kFix) > capacity) return;
  out_text[used++] = '\n';
  kiln_fault_notes(fault, capacity - used, out_text + used, NULL);
  used += strlen(out_text + used);
  if (used + sizeof(kFix) > capacity) return;
  memcpy(out_text + used, kFix, sizeof(kFix));
  used += sizeof(kFix) - 1;
  kiln_fault_fix(fault, capacity - used, out_text + used, NULL);
}

static inline void soft_fault_story(char* out_text, size_t capacity) {
  kiln_fault_t fault;
  kilni_soft_fault_of(0, &fault);
  soft_fault_format(&fault, out_text, capacity);
}

#endif  // KILN_TESTS_SUPPORT_SOFT_FAULT_STORY_H_
