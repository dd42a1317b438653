// SPDX-License-Identifier: Apache-2.0
//
// library: a sort by any order: texts with another function `before`, and the
// recipe of merge_sort.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "kiln/library.h"
#include "kiln/program.h"
#include "kiln/program_operators.h"
#include "library/library_inside.h"

#define GIVEN(index)  {KILNI_PLACE_GIVEN, index}
#define MEMORY(index) {KILNI_PLACE_MEMORY, index}

// ---- The order ----

static const char kHead[] = "fn before(a: T, b: T) -> bool {\n";
static const char kTail[] = "\n}\n";

// One pair of braces may not be closed inside: what stands behind it would be a
// part of the text, and not of the function.
static kiln_status_t order_check_body(const char* order) {
  int depth = 0;
  for (const char* at = order; *at != 0 && depth >= 0; at++) {
    if (at[0] == '/' && at[1] == '/') {
      at += strcspn(at, "\n");
      if (*at == 0) break;
    }
    depth += (*at == '{') - (*at == '}');
  }
  if (depth == 0) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`options.order` is no body of a function"),
      "close each brace in it, and no other, as in `return a < b;`");
}

kiln_status_t kilni_library_reorder(const kilni_library_make_t* make,
                                    const kiln_library_entry_t* entry,
                                    char** out_text, size_t* out_bytes) {
  const char* order = make->options.order;
  KILNI_RETURN_IF_ERROR(order_check_body(order));
  const char* head = strstr(entry->text.data, kHead);
  const char* tail = head != NULL ? strstr(head, kTail) : NULL;
  if (tail == NULL) {
    return KILNI_FAIL(INTERNAL, "\"%s\" has no function `before`", entry->name);
  }
  size_t front = (size_t)(head - entry->text.data) + sizeof(kHead) - 1;
  size_t bytes = front + strlen(order) + strlen(tail) + 1;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(make->plan->allocator, bytes, &block));
  char* text = block;
  memcpy(text, entry->text.data, front);
  memcpy(text + front, order, strlen(order));
  memcpy(text + front + strlen(order), tail, strlen(tail) + 1);
  *out_text = text;
  *out_bytes = bytes;
  return kiln_ok();
}

// ---- Merge sort ----

// Keys of a run are fewer than this, so that twice a run's length is a u32.
#define SORT_MOST (UINT64_C(1) << 31)

// Memory of a sort, by its number. Values are there for pairs only.
enum { SORT_SPLITS, SORT_KEYS, SORT_VALUES };

static uint32_t order_type_bytes(uint32_t type) {
#define BYTES(name, spelling, bytes, kind) \
  if (type == KILN_PROGRAM_TYPE_##name) return bytes;
  KILN_PROGRAM_TYPES(BYTES)
#undef BYTES
  return 0;
}

// Keys of a thread and of a block of 256, as texts and as a number.
typedef struct sort_tile_t {
  const char* each;
  const char* tile;
  uint32_t keys;
} sort_tile_t;

// As many as there is shared memory for, where that is still the fastest.
static const sort_tile_t* tile_of(const kilni_library_make_t* make) {
  static const sort_tile_t kTiles[2][2] = {
      {{"15", "3840", 3840}, {"13", "3328", 3328}},
      {{"11", "2816", 2816}, {"9", "2304", 2304}}};
  const kiln_library_options_t* o = &make->options;
  bool wide =
      order_type_bytes(o->type) > 4 || order_type_bytes(o->value_type) > 4;
  return &kTiles[wide][o->value_type != 0];
}

static kiln_status_t order_check_type(const kilni_library_make_t* make,
                                      uint32_t type) {
  if (type != KILN_PROGRAM_TYPE_BOOL && order_type_bytes(type) != 0) {
    return kiln_ok();
  }
  return kilni_library_alien_type(make, type, "the types of numbers");
}

// What a program of a sort must know of keys, and of values if it moves them.
static void define_sort(kilni_library_make_t* make, bool moves) {
  const kiln_library_options_t* o = &make->options;
  if (o->type != 0) {
    kilni_library_define(make, "T", kiln_program_type_name(o->type));
  }
  kilni_library_define(make, "DESCENDING",
                       o->descending == KILN_SWITCH_ON ? "1" : "0");
  const sort_tile_t* tile = tile_of(make);
  kilni_library_define(make, moves ? "EACH" : "TILE",
                       moves ? tile->each : tile->tile);
  if (!moves || o->value_type == 0) return;
  kilni_library_define(make, "V", kiln_program_type_name(o->value_type));
  kilni_library_define(make, "PAIRS", "1");
}

// Where keys and values are read and written: pass 0 makes tiles, and the last
// pass writes the result.
static void place_pass(const kilni_library_make_t* make, uint32_t pass,
                       uint32_t passes, kilni_library_place_t* places) {
  bool pairs = make->options.value_type != 0;
  const kilni_library_place_t result[] = {
      GIVEN(pairs ? 2 : 1),
      {pairs ? KILNI_PLACE_GIVEN : KILNI_PLACE_NOTHING, 3}};
  const kilni_library_place_t memory[] = {
      {KILNI_PLACE_ALIKE, SORT_KEYS},
      {pairs ? KILNI_PLACE_MEMORY : KILNI_PLACE_NOTHING, SORT_VALUES}};
  const kilni_library_place_t given[] = {
      GIVEN(0), {pairs ? KILNI_PLACE_GIVEN : KILNI_PLACE_NOTHING, 1}};
  bool ends_here = (passes - pass) % 2 == 0;
  const kilni_library_place_t* to = ends_here ? result : memory;
  const kilni_library_place_t* from = ends_here ? memory : result;
  if (pass == 0) from = given;
  places[0] = from[0];
  places[1] = to[0];
  places[2] = from[1];
  places[3] = to[1];
}

static kiln_status_t order_add_pass(kilni_library_make_t* make, uint32_t pass,
                                    uint32_t passes) {
  uint32_t width = tile_of(make)->keys << (pass - 1);
  kilni_library_place_t places[6];
  place_pass(make, pass, passes, places);
  const kilni_library_place_t parts[] = {
      places[0], MEMORY(SORT_SPLITS), {KILNI_PLACE_VALUE, width}};
  places[4] = (kilni_library_place_t)MEMORY(SORT_SPLITS);
  places[5] = (kilni_library_place_t){KILNI_PLACE_VALUE, width};
  if (pass > 1) {
    kilni_library_again(make, 1, parts);
    kilni_library_again(make, 2, places);
    return kiln_ok();
  }
  define_sort(make, false);
  KILNI_RETURN_IF_ERROR(
      kilni_library_add(make, "merge_sort_parts", parts, 3, KILN_SWITCH_OFF));
  define_sort(make, true);
  return kilni_library_add(make, "merge_sort", places, 6, KILN_SWITCH_OFF);
}

// Whole words, which are filled.
static uint64_t words(uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

static kiln_status_t make_memory(kilni_library_make_t* make) {
  const kiln_library_options_t* o = &make->options;
  uint32_t key_bytes = o->type == 0 ? 4 : order_type_bytes(o->type);
  KILNI_RETURN_IF_ERROR(
      kilni_library_memory(make, (o->count / tile_of(make)->keys + 1) * 4));
  KILNI_RETURN_IF_ERROR(
      kilni_library_memory(make, words(o->count * key_bytes)));
  if (o->value_type == 0) return kiln_ok();
  return kilni_library_memory(
      make, words(o->count * order_type_bytes(o->value_type)));
}

static kiln_status_t order_check_options(const kilni_library_make_t* make) {
  const kiln_library_options_t* o = &make->options;
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_TYPE | KILNI_USES_VALUE | KILNI_USES_DESCENDING |
                KILNI_USES_COUNT | KILNI_USES_ORDER));
  if (o->type != 0) KILNI_RETURN_IF_ERROR(order_check_type(make, o->type));
  if (o->value_type != 0) {
    KILNI_RETURN_IF_ERROR(order_check_type(make, o->value_type));
  }
  if (o->count >= SORT_MOST) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`options.count` is %llu for \"%s\"",
                   (unsigned long long)o->count, make->entry.name),
        "sort fewer than 2^31 keys");
  }
  if (o->order == NULL || o->descending != KILN_SWITCH_ON) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "`options.order` and `options.descending` at once"),
      "say in `order` which way round it is");
}

kiln_status_t kilni_library_make_merge_sort(kilni_library_make_t* make) {
  kilni_library_place_t places[4];
  uint32_t passes = 0;
  KILNI_RETURN_IF_ERROR(order_check_options(make));
  KILNI_RETURN_IF_ERROR(make_memory(make));
  while (((uint64_t)tile_of(make)->keys << passes) < make->options.count) {
    passes++;
  }
  place_pass(make, 0, passes, places);
  define_sort(make, true);
  KILNI_RETURN_IF_ERROR(
      kilni_library_add(make, "merge_sort_tiles", places, 4, KILN_SWITCH_OFF));
  for (uint32_t pass = 1; pass <= passes; pass++) {
    KILNI_RETURN_IF_ERROR(order_add_pass(make, pass, passes));
  }
  return kiln_ok();
}
