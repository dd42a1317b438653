// SPDX-License-Identifier: Apache-2.0
//
// truth: from the forms that the software device knows to kernels that ask
// each of them.
//
// An entry is one kernel: it loads an element of each source array, runs one
// form on them and stores what came out. Nothing is listed by hand that the
// decoder's own table of forms lists: a form added there is an entry here, or
// is reported as having none.
#ifndef KILN_TESTS_TRUTH_TRUTH_FORM_H_
#define KILN_TESTS_TRUTH_TRUTH_FORM_H_

#include <stdbool.h>
#include <stddef.h>

#include "truth_input.h"

enum {
  TRUTH_NAME_BYTES = 80,
  TRUTH_BODY_BYTES = 4800,
  TRUTH_COVERS_BYTES = 320,
  TRUTH_SOURCES = 4,
  TRUTH_FINE = 256,  // inputs of a digest near the front
};

// How many inputs, and which part of the answers is one number: the first
// `raw` are kept as they are, then come `fine` digests of 256 inputs each and
// `coarse` ones of `each`.
typedef struct truth_layout_t {
  uint32_t raw;
  uint32_t fine;
  uint32_t coarse;
  uint32_t each;
} truth_layout_t;

// one-thread
typedef struct truth_entry_t {
  char name[TRUTH_NAME_BYTES];  // the form, and a variant behind a blank
  char family[16];              // the file it is recorded in
  char body[TRUTH_BODY_BYTES];  // from %[hrdp]1..4 to %[hrdp]5..8
  // Patterns of the forms that it asks; "": the one that it is named after.
  char covers[TRUTH_COVERS_BYTES];
  truth_kind_t sources[TRUTH_SOURCES];
  truth_kind_t result;
  uint32_t outs;  // results of one input, all as wide
  truth_layout_t layout;
} truth_entry_t;

// All entries, in order of form. thread-compatible
typedef struct truth_list_t {
  truth_entry_t* entries;
  size_t count;
  size_t capacity;
} truth_list_t;

// False without memory.
bool truth_list_make(truth_list_t* out_list);
void truth_list_free(truth_list_t* list);

// True if some entry asks the form.
bool truth_list_has(const truth_list_t* list, const char* form);
bool truth_entry_asks(const truth_entry_t* entry, const char* form);

uint32_t truth_layout_inputs(const truth_layout_t* layout);
// Block 0 is the raw part, the others have a digest each.
uint32_t truth_layout_blocks(const truth_layout_t* layout);
void truth_layout_block(const truth_layout_t* layout, uint32_t block,
                        uint32_t* out_first, uint32_t* out_count);

// A module of the entries first .. first + count - 1, whose kernels are named
// t<index>; freed with free(), NULL without memory.
char* truth_module_text(const truth_list_t* list, const size_t* which,
                        size_t count);

// ---- Inside ----

// A fresh entry at the end of the list, NULL without memory.
truth_entry_t* truth_list_add(truth_list_t* list, const char* name,
                              const char* family);
// Entries for a form whose operands the operation list does not describe:
// memory, atomics, warps. Adds none where it has no way to ask.
bool truth_special_add(truth_list_t* list, const char* form);
// The entry of a form that computes, from its text alone: for forms that the
// decoder takes apart by hand.
bool truth_text_add(truth_list_t* list, const char* form);
// Entries for what is no form by itself.
bool truth_special_extra(truth_list_t* list);
bool truth_packed_extra(truth_list_t* list);
bool truth_matrix_extra(truth_list_t* list);

// The type named by a modifier of PTX, TRUTH_NONE if it is none.
truth_kind_t truth_kind_of(const char* word, size_t size);
// Splits a form at its dots; the words are not terminated.
typedef struct truth_words_t {
  const char* at[16];
  uint32_t size[16];
  uint32_t count;
  truth_kind_t types[6];
  uint32_t type_bits[6];
  uint32_t type_count;
} truth_words_t;
void truth_words_of(const char* form, truth_words_t* out_words);
bool truth_words_have(const truth_words_t* words, const char* word);
// 'h', 'r', 'd' or 'p': the letter of the registers that hold a kind.
char truth_kind_letter(truth_kind_t kind);

#endif  // KILN_TESTS_TRUTH_TRUTH_FORM_H_
