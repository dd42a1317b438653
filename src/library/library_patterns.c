// SPDX-License-Identifier: Apache-2.0
//
// library: the automaton of many patterns (Aho and Corasick, 1975), as tables.
//
// First a tree of the patterns' bytes, by classes: bytes that no pattern has
// are one class. Then, level by level, each state learns where it falls back
// to, the longest end of its own path that is a path as well, and takes from
// there the ways that it has not. Last, states are numbered anew: those at
// which nothing ends first.
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "kiln/library.h"

enum { KINDS = 256 };
#define MOST_ENTRIES (UINT64_C(1) << 26)
#define MOST_PAIRS   (UINT64_C(1) << 24)
#define NONE         UINT32_MAX

struct kiln_library_patterns_t {
  kiln_allocator_t allocator;
  atomic_uint references;
  uint8_t kinds[KINDS];
  uint32_t* next;
  uint32_t* ends;
  uint32_t* pairs;
  uint64_t next_count;
  uint64_t end_count;
  uint64_t pair_count;  // numbers, two for each
  uint32_t longest;
  uint32_t quiet;
};

// While it is made. one-thread
typedef struct tree_t {
  kiln_allocator_t allocator;
  const kiln_string_view_t* patterns;
  uint32_t count;
  uint32_t classes;
  uint32_t most;    // states that there is space for
  uint32_t states;  // that there are
  uint32_t* next;   // by state and class; 0 is none as long as it is a tree
  uint32_t* fall;   // by state: where it falls back to
  uint32_t* order;  // states, level by level
  uint32_t* first;  // by state: the first pattern that ends at it, or NONE
  uint32_t* other;  // by pattern: the next one that ends there, or NONE
  uint32_t* pairs;  // by state: how many patterns end at it
} tree_t;

// ---- The tree ----

static kiln_status_t too_large(const char* what, uint64_t most) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "the patterns make more than %llu %s",
                 (unsigned long long)most, what),
      "divide them into several sets");
}

static kiln_status_t patterns_take_numbers(tree_t* tree, uint64_t count,
                                           uint32_t** out) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(tree->allocator, (size_t)count,
                                               sizeof(uint32_t), &block));
  *out = block;
  return kiln_ok();
}

static void give_numbers(kiln_allocator_t allocator, uint32_t* numbers,
                         uint64_t count) {
  kilni_base_free_array(allocator, numbers, (size_t)count, sizeof(uint32_t));
}

static kiln_status_t open_tree(tree_t* tree) {
  uint64_t states = tree->most;
  KILNI_RETURN_IF_ERROR(
      patterns_take_numbers(tree, states * tree->classes, &tree->next));
  KILNI_RETURN_IF_ERROR(patterns_take_numbers(tree, states, &tree->fall));
  KILNI_RETURN_IF_ERROR(patterns_take_numbers(tree, states, &tree->order));
  KILNI_RETURN_IF_ERROR(patterns_take_numbers(tree, states, &tree->first));
  KILNI_RETURN_IF_ERROR(patterns_take_numbers(tree, states, &tree->pairs));
  KILNI_RETURN_IF_ERROR(patterns_take_numbers(tree, tree->count, &tree->other));
  for (uint64_t s = 0; s < states; s++) tree->first[s] = NONE;
  return kiln_ok();
}

static void close_tree(tree_t* tree) {
  uint64_t states = tree->most;
  give_numbers(tree->allocator, tree->next, states * tree->classes);
  give_numbers(tree->allocator, tree->fall, states);
  give_numbers(tree->allocator, tree->order, states);
  give_numbers(tree->allocator, tree->first, states);
  give_numbers(tree->allocator, tree->pairs, states);
  give_numbers(tree->allocator, tree->other, tree->count);
}

// From the last pattern to the first, so that equal ones are in their order.
static void plant(tree_t* tree, const uint8_t* kinds) {
  tree->states = 1;
  for (uint32_t k = tree->count; k-- > 0;) {
    const uint8_t* bytes = (const uint8_t*)tree->patterns[k].data;
    uint32_t at = 0;
    for (size_t i = 0; i < tree->patterns[k].size; i++) {
      uint32_t* way = &tree->next[(size_t)at * tree->classes + kinds[bytes[i]]];
      if (*way == 0) *way = tree->states++;
      at = *way;
    }
    tree->other[k] = tree->first[at];
    tree->first[at] = k;
  }
}

// One state: where its children fall back to, and where it goes without them.
static void join_state(tree_t* tree, uint32_t state, uint32_t* inout_seen) {
  size_t classes = tree->classes;
  uint32_t fall = tree->fall[state];
  for (size_t c = 0; c < classes; c++) {
    uint32_t* way = &tree->next[state * classes + c];
    uint32_t behind = state == 0 ? 0 : tree->next[fall * classes + c];
    if (*way == 0) {
      *way = behind;
      continue;
    }
    tree->fall[*way] = behind;
    tree->order[(*inout_seen)++] = *way;
  }
}

// Level by level; what a state falls back to is on a level before it.
static uint64_t join_all(tree_t* tree) {
  uint32_t seen = 1;
  uint64_t pairs = 0;
  tree->order[0] = 0;
  for (uint32_t i = 0; i < tree->states && pairs <= MOST_PAIRS; i++) {
    uint32_t state = tree->order[i];
    uint32_t here = i == 0 ? 0 : tree->pairs[tree->fall[state]];
    for (uint32_t k = tree->first[state]; k != NONE; k = tree->other[k]) here++;
    tree->pairs[state] = here;
    pairs += here;
    join_state(tree, state, &seen);
  }
  return pairs;
}

// ---- The tables ----

// New numbers: those at which nothing ends are first.
static void number_states(tree_t* tree, uint32_t* renamed, uint32_t* quiet) {
  uint32_t next = 0;
  for (uint32_t loud = 0; loud < 2; loud++) {
    for (uint32_t i = 0; i < tree->states; i++) {
      uint32_t state = tree->order[i];
      if ((tree->pairs[state] != 0) == (loud != 0)) renamed[state] = next++;
    }
    if (loud == 0) *quiet = next;
  }
}

// What ends at a state: its own patterns, then those of what it falls back to,
// each shorter than the one before.
static uint32_t* list_pairs(const tree_t* tree, uint32_t state, uint32_t* to) {
  while (tree->pairs[state] != 0) {
    for (uint32_t k = tree->first[state]; k != NONE; k = tree->other[k]) {
      *to++ = k;
      *to++ = (uint32_t)tree->patterns[k].size;
    }
    state = tree->fall[state];
  }
  return to;
}

static void fill_tables(const tree_t* tree, const uint32_t* renamed,
                        kiln_library_patterns_t* made) {
  size_t classes = tree->classes;
  uint32_t* to = made->pairs;
  uint64_t loud = 0;
  for (uint32_t i = 0; i < tree->states; i++) {
    uint32_t state = tree->order[i];
    uint32_t* row = made->next + renamed[state] * classes;
    for (size_t c = 0; c < classes; c++) {
      row[c] = renamed[tree->next[state * classes + c]];
    }
    if (tree->pairs[state] == 0) continue;
    made->ends[loud++] = (uint32_t)((to - made->pairs) / 2);
    to = list_pairs(tree, state, to);
  }
  made->ends[loud] = (uint32_t)((to - made->pairs) / 2);
}

static kiln_status_t make_tables(tree_t* tree, uint64_t pairs,
                                 kiln_library_patterns_t* made) {
  uint32_t* renamed = NULL;
  KILNI_RETURN_IF_ERROR(patterns_take_numbers(tree, tree->states, &renamed));
  number_states(tree, renamed, &made->quiet);
  made->next_count = (uint64_t)tree->states * tree->classes;
  made->end_count = (uint64_t)tree->states - made->quiet + 1;
  made->pair_count = pairs * 2;
  kiln_status_t status =
      patterns_take_numbers(tree, made->next_count, &made->next);
  if (kiln_status_is_ok(status)) {
    status = patterns_take_numbers(tree, made->end_count, &made->ends);
  }
  if (kiln_status_is_ok(status)) {
    status = patterns_take_numbers(tree, made->pair_count, &made->pairs);
  }
  if (kiln_status_is_ok(status)) fill_tables(tree, renamed, made);
  give_numbers(tree->allocator, renamed, tree->states);
  return status;
}

// ---- Making ----

// Classes of bytes, and how many states there are at most.
static kiln_status_t survey(tree_t* tree, kiln_library_patterns_t* made) {
  uint64_t states = 1;
  bool is_used[KINDS] = {false};
  for (uint32_t k = 0; k < tree->count; k++) {
    size_t size = tree->patterns[k].size;
    if (size == 0) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "pattern %u is empty", (unsigned)k),
          "leave it out: it would be everywhere");
    }
    if (size > MOST_ENTRIES - states) {
      return too_large("entries of a table", MOST_ENTRIES);
    }
    states += size;
    if (size > made->longest) made->longest = (uint32_t)size;
    for (size_t i = 0; i < size; i++) {
      is_used[(uint8_t)tree->patterns[k].data[i]] = true;
    }
  }
  // Class 0 is that of all other bytes, where there are any.
  uint32_t used = 0;
  for (uint32_t b = 0; b < KINDS; b++) used += is_used[b];
  tree->classes = used < KINDS ? 1 : 0;
  for (uint32_t b = 0; b < KINDS; b++) {
    if (is_used[b]) made->kinds[b] = (uint8_t)tree->classes++;
  }
  if (states * tree->classes > MOST_ENTRIES) {
    return too_large("entries of a table", MOST_ENTRIES);
  }
  tree->most = (uint32_t)states;
  return kiln_ok();
}

static kiln_status_t patterns_make_all(tree_t* tree,
                                       kiln_library_patterns_t* made) {
  KILNI_RETURN_IF_ERROR(survey(tree, made));
  kiln_status_t status = open_tree(tree);
  if (kiln_status_is_ok(status)) {
    plant(tree, made->kinds);
    uint64_t pairs = join_all(tree);
    status = pairs > MOST_PAIRS
                 ? too_large("pairs of a place and a pattern", MOST_PAIRS)
                 : make_tables(tree, pairs, made);
  }
  close_tree(tree);
  return status;
}

kiln_status_t kiln_library_patterns_create(
    const kiln_string_view_t* patterns, uint32_t count,
    const kiln_allocator_t* allocator, kiln_library_patterns_t** out_patterns) {
  KILNI_CHECK_ARGUMENT(out_patterns != NULL, "out_patterns");
  *out_patterns = NULL;
  KILNI_CHECK_ARGUMENT(patterns != NULL || count == 0, "patterns");
  tree_t tree;
  memset(&tree, 0, sizeof(tree));
  tree.allocator = allocator != NULL ? *allocator : kiln_allocator_libc();
  tree.patterns = patterns;
  tree.count = count;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      tree.allocator, sizeof(kiln_library_patterns_t), &block));
  kiln_library_patterns_t* made = block;
  made->allocator = tree.allocator;
  atomic_init(&made->references, 1);
  kiln_status_t status = patterns_make_all(&tree, made);
  if (!kiln_status_is_ok(status)) {
    kiln_library_patterns_release(made);
    return status;
  }
  *out_patterns = made;
  return kiln_ok();
}

void kiln_library_patterns_retain(kiln_library_patterns_t* patterns) {
  if (patterns != NULL) atomic_fetch_add(&patterns->references, 1);
}

void kiln_library_patterns_release(kiln_library_patterns_t* patterns) {
  if (patterns == NULL || atomic_fetch_sub(&patterns->references, 1) != 1) {
    return;
  }
  kiln_allocator_t allocator = patterns->allocator;
  give_numbers(allocator, patterns->next, patterns->next_count);
  give_numbers(allocator, patterns->ends, patterns->end_count);
  give_numbers(allocator, patterns->pairs, patterns->pair_count);
  kilni_base_free(allocator, patterns, sizeof(*patterns));
}

void kiln_library_patterns_tables(const kiln_library_patterns_t* patterns,
                                  kiln_library_patterns_tables_t* out_tables) {
  memset(out_tables, 0, sizeof(*out_tables));
  if (patterns == NULL) return;
  out_tables->kinds = patterns->kinds;
  out_tables->next = patterns->next;
  out_tables->next_count = patterns->next_count;
  out_tables->ends = patterns->ends;
  out_tables->end_count = patterns->end_count;
  out_tables->patterns = patterns->pairs;
  out_tables->pattern_count = patterns->pair_count;
  out_tables->longest = patterns->longest;
  out_tables->quiet = patterns->quiet;
}
