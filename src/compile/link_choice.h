// SPDX-License-Identifier: Apache-2.0
//
// compile: a choice of linker while it is made; private to the module.
#ifndef KILN_SRC_COMPILE_LINK_CHOICE_H_
#define KILN_SRC_COMPILE_LINK_CHOICE_H_

#include <stdatomic.h>

#include "base/str.h"
#include "kiln/link.h"

enum { KILNI_LINK_MAX_REASONS = KILN_LINK_MAX_NVJITLINKS + 8 };

struct kiln_link_choice_t {
  atomic_uint references;
  kiln_allocator_t allocator;
  uint32_t backend;
  uint32_t nvjitlink;
  uint32_t output;
  uint32_t verdict;
  bool lto;
  kiln_status_code_t refusal;  // OK where it is none
  char* message;               // of a refusal
  char* fix;
  uint32_t reason_count;
  char* reasons[KILNI_LINK_MAX_REASONS];
};

// An empty choice, refused by nothing yet.
kiln_status_t kilni_compile_link_choice_create(kiln_allocator_t allocator,
                                               kiln_link_choice_t** out_choice);

// Adds a sentence.
kiln_status_t kilni_compile_link_choice_because(kiln_link_choice_t* choice,
                                                const char* format, ...)
    KILN_PRINTF(2, 3);

// Makes it a refusal; both texts are ended.
kiln_status_t kilni_compile_link_choice_refuse(kiln_link_choice_t* choice,
                                               kiln_status_code_t code,
                                               kilni_base_str_t* message,
                                               kilni_base_str_t* fix);

#endif  // KILN_SRC_COMPILE_LINK_CHOICE_H_
