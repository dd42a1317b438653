// SPDX-License-Identifier: Apache-2.0
//
// image: whether the modifiers of a spelling go together (ptx_qualifiers.inc).
//
// Checked once for each distinct spelling, so that words are compared as text.
// What a version or a target adds is left to the executor of the code: the rows
// refuse only what ptxas accepts for no target.
#include "image/ptx_reader.h"

#include <stdio.h>
#include <string.h>

typedef enum demand_t {
  DEMAND_ONLY,
  DEMAND_WITHOUT,
  DEMAND_WITH,
  DEMAND_WITHOUT_OLD,
} demand_t;

typedef struct qualifier_t {
  const char* when;
  const char* words;
  uint16_t opcode;
  uint16_t demand;
} qualifier_t;

static const qualifier_t kRows[] = {
#define KILNI_PTX_QUALIFIER(opcode, when, demand, words) \
  {when, words, KILNI_PTX_OP_##opcode, DEMAND_##demand},
#include "image/ptx_qualifiers.inc"
#undef KILNI_PTX_QUALIFIER
};

// The modifiers of a spelling. one-thread
typedef struct spelling_t {
  const uint16_t* modifiers;
  uint32_t count;
} spelling_t;

// The modifier that is written with `size` bytes at `word`; NULL if none is.
static const char* ptx_qualifiers_find_word(const spelling_t* spelling,
                                            const char* word, size_t size) {
  for (uint32_t i = 0; i < spelling->count; i++) {
    const char* text = kilni_image_ptx_modifier_text(spelling->modifiers[i]);
    if (strlen(text) == size && memcmp(text, word, size) == 0) return text;
  }
  return NULL;
}

// The first of several words, with `between` them, that the spelling has.
static const char* ptx_qualifiers_find_any(const spelling_t* spelling,
                                           const char* words, size_t size,
                                           char between) {
  const char* end = words + size;
  while (words < end) {
    const char* stop = memchr(words, between, (size_t)(end - words));
    if (stop == NULL) stop = end;
    const char* found =
        ptx_qualifiers_find_word(spelling, words, (size_t)(stop - words));
    if (found != NULL) return found;
    words = stop + 1;
  }
  return NULL;
}

// Whether every term is met; `out_word` is the last modifier that one named.
static bool ptx_qualifiers_holds(const spelling_t* spelling, const char* when,
                                 const char** out_word) {
  while (*when != '\0') {
    size_t size = strcspn(when, " ");
    bool absent = *when == '!';
    const char* found =
        ptx_qualifiers_find_any(spelling, when + absent, size - absent, '|');
    if ((found != NULL) == absent) return false;
    if (found != NULL) *out_word = found;
    when += size;
    if (*when == ' ') when++;
  }
  return true;
}

static bool has_only(const spelling_t* spelling, const char* words,
                     const char** out_other) {
  for (uint32_t i = 0; i < spelling->count; i++) {
    uint32_t modifier = spelling->modifiers[i];
    if (kilni_image_ptx_modifier_is_type(modifier)) continue;
    const char* text = kilni_image_ptx_modifier_text(modifier);
    const spelling_t one = {&spelling->modifiers[i], 1};
    if (ptx_qualifiers_find_any(&one, words, strlen(words), ' ') != NULL) {
      continue;
    }
    *out_other = text;
    return false;
  }
  return true;
}

static bool fail_other(kilni_image_ptx_reader_t* reader,
                       const kilni_image_ptx_token_t* at, uint32_t opcode,
                       const char* word, const char* other) {
  if (word == NULL) {
    return kilni_image_ptx_fail(reader, at, "leave it out", "\"%s\" has no .%s",
                                kilni_image_ptx_opcode_text(opcode), other);
  }
  return kilni_image_ptx_fail(reader, at, "leave one of them out",
                              "\"%s\" with .%s has no .%s",
                              kilni_image_ptx_opcode_text(opcode), word, other);
}

static bool ptx_qualifiers_fail_missing(kilni_image_ptx_reader_t* reader,
                                        const kilni_image_ptx_token_t* at,
                                        uint32_t opcode, const char* word,
                                        const char* words) {
  return kilni_image_ptx_fail(reader, at, "write one of them",
                              "\"%s\"%s%s needs one of: %s",
                              kilni_image_ptx_opcode_text(opcode),
                              word ? " with ." : "", word ? word : "", words);
}

// Whether the text is of a version that no ptxas judged for us.
static bool ptx_qualifiers_is_new(const kilni_image_ptx_reader_t* reader) {
  const kilni_image_ptx_module_t* module = &reader->arena->module;
  return module->version_major > 9 ||
         (module->version_major == 9 && module->version_minor > 0);
}

bool kilni_image_ptx_qualifiers_check(kilni_image_ptx_reader_t* reader,
                                      const kilni_image_ptx_token_t* at,
                                      uint32_t opcode,
                                      const uint16_t* modifiers,
                                      uint32_t count) {
  const spelling_t spelling = {modifiers, count};
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    const qualifier_t* row = &kRows[i];
    const char* word = NULL;
    const char* other = NULL;
    if (row->opcode != opcode ||
        !ptx_qualifiers_holds(&spelling, row->when, &word)) {
      continue;
    }
    size_t size = strlen(row->words);
    switch (row->demand) {
      case DEMAND_ONLY:
        if (has_only(&spelling, row->words, &other)) break;
        return fail_other(reader, at, opcode, word, other);
      case DEMAND_WITHOUT_OLD:
        if (ptx_qualifiers_is_new(reader)) break;
        // fallthrough
      case DEMAND_WITHOUT:
        other = ptx_qualifiers_find_any(&spelling, row->words, size, ' ');
        if (other == NULL) break;
        return fail_other(reader, at, opcode, word, other);
      default:
        if (ptx_qualifiers_find_any(&spelling, row->words, size, ' ') != NULL) {
          break;
        }
        return ptx_qualifiers_fail_missing(reader, at, opcode, word,
                                           row->words);
    }
  }
  return true;
}
