// SPDX-License-Identifier: Apache-2.0
//
// base: the error for an argument that violates its contract: message and Fix,
// derived from the violated condition, which is written as C: "edges != NULL ||
// count == 0".
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"

// The function itself, not its declaration for an analyzer.
#undef kilni_base_status_of_argument

enum { MOST_CLAUSES = 4, WORD_BYTES = 64, CHOICE_BYTES = 256 };

// "left op right", of words without spaces. one-thread
typedef struct clause_t {
  char left[WORD_BYTES];
  char op[WORD_BYTES];
  char right[WORD_BYTES];
} clause_t;

// Clauses with the same word between all of them. one-thread
typedef struct condition_t {
  clause_t clauses[MOST_CLAUSES];
  uint32_t count;
  bool both;    // && between them
  bool either;  // || between them
} condition_t;

// ---- Reading ----

// The next word; false at the end, and for one that is more than a name, a
// member or a number.
static bool status_argument_take_word(const char** at, char* word) {
  size_t size = strcspn(*at, " ");
  if (size == 0 || size >= WORD_BYTES) return false;
  memcpy(word, *at, size);
  word[size] = 0;
  *at += size;
  if (**at == ' ') (*at)++;
  return strpbrk(word, "()~'") == NULL && (word[0] != '!' || word[1] == '=');
}

static bool take_clause(const char** at, clause_t* clause) {
  return status_argument_take_word(at, clause->left) &&
         status_argument_take_word(at, clause->op) &&
         status_argument_take_word(at, clause->right);
}

static bool status_argument_read_condition(const char* text, condition_t* c) {
  memset(c, 0, sizeof(*c));
  for (const char* at = text;;) {
    if (!take_clause(&at, &c->clauses[c->count])) return false;
    c->count++;
    if (*at == 0) return c->count > 0 && !(c->both && c->either);
    char between[WORD_BYTES];
    if (!status_argument_take_word(&at, between) || c->count == MOST_CLAUSES) {
      return false;
    }
    bool both = strcmp(between, "&&") == 0;
    if (!both && strcmp(between, "||") != 0) return false;
    c->both |= both;
    c->either |= !both;
  }
}

static bool is(const clause_t* clause, const char* op, const char* right) {
  return strcmp(clause->op, op) == 0 && strcmp(clause->right, right) == 0;
}

static bool is_above_zero(const clause_t* c) {
  return is(c, ">", "0") || is(c, "!=", "0") || is(c, ">=", "1");
}

static bool is_at_most(const clause_t* c) {
  return strcmp(c->op, "<=") == 0 || strcmp(c->op, "<") == 0;
}

// Of a member, its own name: "count" of "given->list.count".
static const char* tail_of(const char* word) {
  for (const char* at = word; *at != 0; at++) {
    if (*at == '.' || *at == '>') word = at + 1;
  }
  return word;
}

// What a condition is about is the same in all its clauses.
static bool is_of_one(const condition_t* c) {
  for (uint32_t i = 1; i < c->count; i++) {
    if (strcmp(c->clauses[i].left, c->clauses[0].left) != 0) return false;
  }
  return true;
}

// ---- Messages ----

// The place of the check, for the status. thread-compatible
typedef struct place_t {
  const char* module;
  const char* file;
  int line;
  const char* name;
} place_t;

#define SAY(p, ...)                                                            \
  kilni_base_status_make(KILN_STATUS_INVALID_ARGUMENT, (p)->module, (p)->file, \
                         (p)->line, __VA_ARGS__)

static kiln_status_t say_null(const place_t* p) {
  const char* tail = tail_of(p->name);
  bool out = strncmp(tail, "out_", 4) == 0 || strncmp(tail, "inout_", 6) == 0;
  kiln_status_t status = SAY(p, "`%s` is NULL", p->name);
  return out ? kilni_base_status_with_fix(status,
                                          "pass the address to write it to")
             : kilni_base_status_with_fix(status, "pass one that is not NULL");
}

static kiln_status_t say_list(const place_t* p, const clause_t* list,
                              const clause_t* count) {
  if (strcmp(tail_of(list->left), "data") == 0 &&
      tail_of(list->left) != list->left) {
    return kilni_base_status_with_fix(
        SAY(p, "`%s` has a size, and its data is NULL", p->name),
        "pass the address of the bytes, or a size of 0");
  }
  return kilni_base_status_with_fix(
      SAY(p, "`%s` is NULL, and `%s` is not 0", p->name, tail_of(count->left)),
      "pass one that is not NULL, or 0 for `%s`", tail_of(count->left));
}

static kiln_status_t say_at_most(const place_t* p, const clause_t* c) {
  const char* most = tail_of(c->right);
  if (strcmp(most, "KILN_SWITCH_ON") == 0) {
    return kilni_base_status_with_fix(
        SAY(p, "`%s` is not a switch", p->name),
        "set it to KILN_SWITCH_DEFAULT, KILN_SWITCH_OFF or KILN_SWITCH_ON");
  }
  if (strncmp(most, "KILN_", 5) == 0 && c->op[1] == '=') {
    return kilni_base_status_with_fix(
        SAY(p, "`%s` is not one of its values", p->name),
        "set it to one of its values, of which %s is the last", most);
  }
  return kilni_base_status_with_fix(
      SAY(p, "`%s` is too large", p->name), "pass one %s %s",
      c->op[1] == '=' ? "of at most" : "less than", most);
}

static kiln_status_t status_argument_say_one(const place_t* p,
                                             const clause_t* c,
                                             const char* text) {
  if (is(c, "!=", "NULL")) return say_null(p);
  if (is_above_zero(c)) {
    return kilni_base_status_with_fix(SAY(p, "`%s` is 0", p->name),
                                      "pass one of 1 or more");
  }
  if (is(c, ">=", "0")) {
    return kilni_base_status_with_fix(SAY(p, "`%s` is below 0", p->name),
                                      "pass one of 0 or more");
  }
  if (is(c, "==", "0")) {
    return kilni_base_status_with_fix(SAY(p, "`%s` is not 0", p->name),
                                      "leave it 0");
  }
  if (is_at_most(c)) return say_at_most(p, c);
  return kilni_base_status_with_fix(
      SAY(p, "`%s` violates its contract: %s", p->name, text),
      "pass one that satisfies it");
}

// "A, B or C"
static void list_choices(const condition_t* c, char* text) {
  size_t size = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    const char* before = i == 0 ? "" : i + 1 == c->count ? " or " : ", ";
    int more = snprintf(text + size, CHOICE_BYTES - size, "%s%s", before,
                        c->clauses[i].right);
    if (more < 0 || size + (size_t)more >= CHOICE_BYTES) return;
    size += (size_t)more;
  }
}

static bool all_are(const condition_t* c, const char* op) {
  for (uint32_t i = 0; i < c->count; i++) {
    if (strcmp(c->clauses[i].op, op) != 0) return false;
  }
  return true;
}

// One of several values, a range, a list that is counted, a text; false if it
// is none of these.
static bool say_several(const place_t* p, const condition_t* c,
                        kiln_status_t* out) {
  const clause_t* a = &c->clauses[0];
  const clause_t* b = &c->clauses[1];
  if (c->either && is_of_one(c) && all_are(c, "==")) {
    char choices[CHOICE_BYTES];
    list_choices(c, choices);
    *out = kilni_base_status_with_fix(
        SAY(p, "`%s` is not one of its values", p->name), "set it to %s",
        choices);
    return true;
  }
  if (c->count != 2) return false;
  if (c->either && is(a, "!=", "NULL") && is(b, "==", "0")) {
    *out = say_list(p, a, b);
    return true;
  }
  if (c->either && is(a, "==", "0") && is(b, "!=", "NULL")) {
    *out = say_list(p, b, a);
    return true;
  }
  bool from_one = is_above_zero(a);
  if (c->both && is_of_one(c) && (from_one || strcmp(a->op, ">=") == 0) &&
      strcmp(b->op, "<=") == 0) {
    *out = kilni_base_status_with_fix(
        SAY(p, "`%s` is out of range", p->name), "pass one from %s to %s",
        from_one ? "1" : tail_of(a->right), tail_of(b->right));
    return true;
  }
  size_t size = strlen(a->left);
  if (c->both && is(a, "!=", "NULL") && is(b, "!=", "0") &&
      strncmp(b->left, a->left, size) == 0 &&
      strcmp(b->left + size, "[0]") == 0) {
    *out = kilni_base_status_with_fix(SAY(p, "`%s` is NULL or empty", p->name),
                                      "pass one of at least one character");
    return true;
  }
  return false;
}

kiln_status_t kilni_base_status_of_argument(const char* module,
                                            const char* file, int line,
                                            const char* name,
                                            const char* condition) {
  const place_t place = {module, file, line, name};
  condition_t read;
  kiln_status_t status;
  if (status_argument_read_condition(condition, &read)) {
    if (read.count == 1) {
      return status_argument_say_one(&place, &read.clauses[0], condition);
    }
    if (say_several(&place, &read, &status)) return status;
  }
  return kilni_base_status_with_fix(
      SAY(&place, "`%s` violates its contract: %s", name, condition),
      "pass one that satisfies it");
}
