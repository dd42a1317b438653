// SPDX-License-Identifier: Apache-2.0
//
// library: what each entry is made of: programs, their types and sizes, and
// memory between them.
//
// An entry without a recipe here is one launch of its own text, with the text's
// parameters.
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "kiln/library.h"
#include "kiln/program.h"
#include "library/library_inside.h"

#define GIVEN(index)  {KILNI_PLACE_GIVEN, index}
#define MEMORY(index) {KILNI_PLACE_MEMORY, index}
#define COUNT(array)  ((uint32_t)(sizeof(array) / sizeof((array)[0])))

// Elements of a block's tile at least, in those texts that have tiles.
enum { TILE = 2048 };

static uint64_t tiles(uint64_t count) {
  return (count + TILE - 1) / TILE;
}

// ---- Options ----

// INVALID_ARGUMENT for a field that is said and not used.
static kiln_status_t unused(const kilni_library_make_t* make,
                            const char* field) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" has no use for `options.%s`",
                 make->entry.name, field),
      "leave it zero");
}

kiln_status_t kilni_library_uses(const kilni_library_make_t* make,
                                 uint32_t what) {
  const kiln_library_options_t* o = &make->options;
  if (o->type != 0 && (what & KILNI_USES_TYPE) == 0) {
    return unused(make, "type");
  }
  if (o->value_type != 0 && (what & KILNI_USES_VALUE) == 0) {
    return unused(make, "value_type");
  }
  if (o->operation != 0 && (what & KILNI_USES_OPERATION) == 0) {
    return unused(make, "operation");
  }
  if (o->exclusive != 0 && (what & KILNI_USES_EXCLUSIVE) == 0) {
    return unused(make, "exclusive");
  }
  if (o->segment != 0 && (what & KILNI_USES_SEGMENT) == 0) {
    return unused(make, "segment");
  }
  if (o->descending != 0 && (what & KILNI_USES_DESCENDING) == 0) {
    return unused(make, "descending");
  }
  if (o->bins != 0 && (what & KILNI_USES_BINS) == 0) {
    return unused(make, "bins");
  }
  if (o->rounds != 0 && (what & KILNI_USES_ROUNDS) == 0) {
    return unused(make, "rounds");
  }
  if (o->symmetric != 0 && (what & KILNI_USES_SYMMETRIC) == 0) {
    return unused(make, "symmetric");
  }
  if (o->order != NULL && (what & KILNI_USES_ORDER) == 0) {
    return unused(make, "order");
  }
  if (o->rest != 0 && (what & KILNI_USES_REST) == 0) {
    return unused(make, "rest");
  }
  KILNI_CHECK_ARGUMENT(o->rest <= KILN_SWITCH_ON, "options.rest");
  KILNI_CHECK_ARGUMENT(o->descending <= KILN_SWITCH_ON, "options.descending");
  KILNI_CHECK_ARGUMENT(o->exclusive <= KILN_SWITCH_ON, "options.exclusive");
  KILNI_CHECK_ARGUMENT(o->operation <= KILN_LIBRARY_MAX, "options.operation");
  KILNI_CHECK_ARGUMENT(o->symmetric <= KILN_SWITCH_ON, "options.symmetric");
  if ((what & KILNI_USES_COUNT) == 0) return kiln_ok();
  return kilni_library_need_count(make);
}

kiln_status_t kilni_library_alien_type(const kilni_library_make_t* make,
                                       uint32_t type, const char* those) {
  const char* name = kiln_program_type_name(type);
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "\"%s\" of %s", make->entry.name,
                 name[0] != 0 ? name : "a type that is none"),
      "choose one of %s", those);
}

// ---- Types ----

static bool recipes_is_float(uint32_t type) {
  return type == KILN_PROGRAM_TYPE_F32 || type == KILN_PROGRAM_TYPE_F64;
}

static uint32_t bytes_of(uint32_t type) {
  switch (type) {
    case KILN_PROGRAM_TYPE_U64:
    case KILN_PROGRAM_TYPE_I64:
    case KILN_PROGRAM_TYPE_F64:
      return 8;
    case KILN_PROGRAM_TYPE_U32:
    case KILN_PROGRAM_TYPE_I32:
    case KILN_PROGRAM_TYPE_F32:
      return 4;
    default:
      return 0;
  }
}

// Says T, a type of 4 or 8 bytes, and U.
static kiln_status_t define_type(kilni_library_make_t* make, uint32_t type) {
  uint32_t bytes = bytes_of(type);
  if (bytes == 0) {
    return kilni_library_alien_type(make, type,
                                    "u32, i32, u64, i64, f32 and f64");
  }
  kilni_library_define(make, "T", kiln_program_type_name(type));
  kilni_library_define(make, "U", bytes == 8 ? "u64" : "u32");
  return kiln_ok();
}

static uint32_t recipes_type_or(const kilni_library_make_t* make,
                                uint32_t type) {
  return make->options.type != 0 ? make->options.type : type;
}

// ---- Entries ----

static kiln_status_t make_scan(kilni_library_make_t* make) {
  uint32_t type = recipes_type_or(make, KILN_PROGRAM_TYPE_U32);
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_TYPE | KILNI_USES_EXCLUSIVE | KILNI_USES_COUNT));
  KILNI_RETURN_IF_ERROR(define_type(make, type));
  uint32_t words = bytes_of(type) / 4;
  kilni_library_define(make, "WORDS", words == 2 ? "2" : "1");
  kilni_library_define(make, "ORDERED", recipes_is_float(type) ? "1" : "0");
  kilni_library_define(make, "EXCLUSIVE",
                       make->options.exclusive == KILN_SWITCH_ON ? "1" : "0");
  uint64_t states = tiles(make->options.count) * words + 1;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, states * 8));
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1),
                                                  MEMORY(0)};
  static const kilni_library_place_t kOfSegments[] = {GIVEN(0), GIVEN(1),
                                                      GIVEN(2), MEMORY(0)};
  bool whole = strcmp(make->entry.name, "scan") == 0;
  return kilni_library_add(
      make, make->entry.name, whole ? kPlaces : kOfSegments,
      whole ? COUNT(kPlaces) : COUNT(kOfSegments), KILN_SWITCH_OFF);
}

// Says T, any type of numbers.
static kiln_status_t define_number(kilni_library_make_t* make) {
  uint32_t type = make->options.type;
  if (type == 0) return kiln_ok();
  const char* name = kiln_program_type_name(type);
  if (name[0] == 0 || type == KILN_PROGRAM_TYPE_BOOL) {
    return kilni_library_alien_type(make, type, "the types of numbers");
  }
  kilni_library_define(make, "T", name);
  return kiln_ok();
}

static void define_operation(kilni_library_make_t* make) {
  static const char* const kValues[] = {"0", "1", "2"};
  kilni_library_define(make, "OPERATION", kValues[make->options.operation]);
}

static kiln_status_t make_fold(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_TYPE | KILNI_USES_OPERATION | KILNI_USES_COUNT));
  KILNI_RETURN_IF_ERROR(define_number(make));
  define_operation(make);
  uint64_t parts = tiles(make->options.count);
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, parts * 8));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, 4));
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1), MEMORY(0),
                                                  MEMORY(1)};
  return kilni_library_add(make, "fold", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// Threads for a segment: about four elements each, and a block for long ones.
static kiln_status_t make_segments(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_TYPE | KILNI_USES_OPERATION | KILNI_USES_SEGMENT));
  KILNI_RETURN_IF_ERROR(define_number(make));
  define_operation(make);
  static const char* const kLanes[] = {"1", "2", "4", "8", "16", "32", "256"};
  uint64_t segment = make->options.segment != 0 ? make->options.segment : 32;
  uint32_t at = 0;
  while (at < 5 && (UINT64_C(4) << at) < segment) at++;
  if (segment >= 4096) at = 6;
  kilni_library_define(make, "LANES", kLanes[at]);
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1), GIVEN(2)};
  return kilni_library_add(make, "segments", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// Says T, and fewer elements a thread where 24 would not stay in registers.
static kiln_status_t define_close(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(define_number(make));
  if (bytes_of(make->options.type) == 8) {
    kilni_library_define(make, "EACH", "12");
  }
  return kiln_ok();
}

// Where lines begin: as those below, of bytes.
static kiln_status_t make_lines(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_COUNT));
  uint64_t states = tiles(make->options.count) + 1;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, states * 8));
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1), GIVEN(2),
                                                  MEMORY(0)};
  return kilni_library_add(make, "lines", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// The text is bound twice, by bytes and by words.
static kiln_status_t make_blake3(kilni_library_make_t* make) {
  enum { HASH_TILE = 1 << 19, LARGE = 3 << 26 };
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_COUNT));
  uint64_t parts = (make->options.count + HASH_TILE - 1) / HASH_TILE;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, parts * 32));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, 4));
  // Larger blocks are faster where there are enough for a large GPU.
  if (make->options.count >= LARGE) {
    kilni_library_define(make, "THREADS", "1024");
  }
  static const kilni_library_place_t kPlaces[] = {
      GIVEN(0), {KILNI_PLACE_WORDS, 0}, GIVEN(1), MEMORY(0), MEMORY(1)};
  return kilni_library_add(make, "blake3", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// The text by bytes and by words, too; two words of state a tile.
static kiln_status_t make_json_index(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_COUNT));
  uint64_t states = tiles(make->options.count) * 2 + 1;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, states * 8));
  static const kilni_library_place_t kPlaces[] = {
      GIVEN(0), {KILNI_PLACE_WORDS, 0}, GIVEN(1), GIVEN(2), MEMORY(0)};
  return kilni_library_add(make, "json_index", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// All but the words and the state is given, tables as well.
static kiln_status_t make_aho_corasick(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_COUNT));
  uint64_t states = tiles(make->options.count) + 1;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, states * 8));
  static const kilni_library_place_t kPlaces[] = {
      GIVEN(0), {KILNI_PLACE_WORDS, 0},
      GIVEN(1), GIVEN(2),
      GIVEN(3), GIVEN(4),
      GIVEN(5), GIVEN(6),
      GIVEN(7), GIVEN(8),
      GIVEN(9), MEMORY(0)};
  return kilni_library_add(make, "aho_corasick", kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

// Those that put elements close together: all but the state is given.
static kiln_status_t make_close(kilni_library_make_t* make, uint32_t uses) {
  KILNI_RETURN_IF_ERROR(
      kilni_library_uses(make, KILNI_USES_TYPE | KILNI_USES_COUNT | uses));
  KILNI_RETURN_IF_ERROR(define_close(make));
  if (make->options.rest == KILN_SWITCH_ON) {
    kilni_library_define(make, "REST", "1");
  }
  uint64_t states = tiles(make->options.count) + 1;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, states * 8));
  static const kilni_library_place_t kPlaces[] = {GIVEN(0), GIVEN(1), GIVEN(2),
                                                  GIVEN(3), MEMORY(0)};
  return kilni_library_add(make, make->entry.name, kPlaces, COUNT(kPlaces),
                           KILN_SWITCH_OFF);
}

static kiln_status_t make_compact(kilni_library_make_t* make) {
  return make_close(make, KILNI_USES_REST);
}

static kiln_status_t make_unique(kilni_library_make_t* make) {
  return make_close(make, 0);
}

// Runs of equal elements with their lengths: where they begin is the plan's.
static kiln_status_t make_runs(kilni_library_make_t* make) {
  KILNI_RETURN_IF_ERROR(
      kilni_library_uses(make, KILNI_USES_TYPE | KILNI_USES_COUNT));
  uint64_t count = make->options.count;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, (tiles(count) + 1) * 8));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, count * 4));
  KILNI_RETURN_IF_ERROR(define_close(make));
  static const kilni_library_place_t kUnique[] = {GIVEN(0), GIVEN(1), MEMORY(1),
                                                  GIVEN(3), MEMORY(0)};
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "unique", kUnique,
                                          COUNT(kUnique), KILN_SWITCH_OFF));
  KILNI_RETURN_IF_ERROR(define_number(make));
  make->plan->apart[0] = 1;
  make->plan->apart[1] = 2;
  static const kilni_library_place_t kRuns[] = {GIVEN(0), MEMORY(1), GIVEN(3),
                                                GIVEN(2)};
  return kilni_library_add(make, "runs", kRuns, COUNT(kRuns), KILN_SWITCH_OFF);
}

// What all programs of a sort must know of the keys.
static kiln_status_t define_keys(kilni_library_make_t* make, uint32_t type) {
  KILNI_RETURN_IF_ERROR(define_type(make, type));
  bool is_signed =
      type == KILN_PROGRAM_TYPE_I32 || type == KILN_PROGRAM_TYPE_I64;
  kilni_library_define(make, "BITS", bytes_of(type) == 8 ? "64" : "32");
  kilni_library_define(make, "KIND",
                       recipes_is_float(type) ? "2"
                       : is_signed            ? "1"
                                              : "0");
  kilni_library_define(make, "DESCENDING",
                       make->options.descending == KILN_SWITCH_ON ? "1" : "0");
  return kiln_ok();
}

// Memory of a sort, by its number. SORT_VALUES is there for pairs only.
enum { SORT_COUNTS, SORT_BASES, SORT_STATE, SORT_KEYS, SORT_VALUES };

enum { SORT_THREADS = 512 };

// How many keys a thread has: as many as the shared memory of 48 KiB has space
// for beside the counts, values with them where they have another width.
static uint32_t sort_each(const kilni_library_make_t* make,
                          uint32_t key_bytes) {
  uint32_t value_bytes = bytes_of(make->options.value_type);
  if (value_bytes != 0 && value_bytes != key_bytes) return 6;
  return key_bytes == 8 ? 8 : 16;
}

static kiln_status_t make_sort_memory(kilni_library_make_t* make,
                                      uint32_t key_bytes) {
  uint64_t count = make->options.count;
  uint64_t digits = key_bytes * UINT64_C(256);
  uint64_t tile = UINT64_C(1) * SORT_THREADS * sort_each(make, key_bytes);
  uint64_t parts = (count + tile - 1) / tile;
  const uint64_t sizes[] = {digits * 4, digits * 4, (parts * 256 + 1) * 8,
                            count * key_bytes,
                            count * bytes_of(make->options.value_type)};
  uint32_t memories = make->options.value_type != 0 ? 5 : 4;
  for (uint32_t i = 0; i < memories; i++) {
    KILNI_RETURN_IF_ERROR(kilni_library_memory(make, sizes[i]));
  }
  return kiln_ok();
}

static void define_sort_tile(kilni_library_make_t* make, uint32_t key_bytes) {
  uint32_t type = make->options.value_type;
  uint32_t each = sort_each(make, key_bytes);
  kilni_library_define(make, "EACH", each == 6 ? "6" : each == 8 ? "8" : "16");
  if (type == 0) return;
  kilni_library_define(make, "V", kiln_program_type_name(type));
  kilni_library_define(make, "W", bytes_of(type) == 8 ? "u64" : "u32");
  kilni_library_define(make, "SHARES", each == 6 ? "0" : "1");
}

// Keys go to and fro between memory and the result, which is where they are
// behind the last pass: their number is even.
static kiln_status_t make_sort_pass(kilni_library_make_t* make, uint32_t type,
                                    uint32_t pass) {
  bool pairs = make->options.value_type != 0;
  uint32_t result = pairs ? 2 : 1;
  kilni_library_place_t places[] = {{KILNI_PLACE_ALIKE, SORT_KEYS},
                                    GIVEN(result),
                                    MEMORY(SORT_VALUES),
                                    GIVEN(3),
                                    MEMORY(SORT_BASES),
                                    MEMORY(SORT_STATE),
                                    {KILNI_PLACE_VALUE, pass}};
  if (pass % 2 == 0) {
    kilni_library_place_t memory = places[0];
    places[0] = pass == 0 ? (kilni_library_place_t)GIVEN(0) : places[1];
    places[1] = memory;
    places[2] = pass == 0 ? (kilni_library_place_t)GIVEN(1) : places[3];
    places[3] = (kilni_library_place_t)MEMORY(SORT_VALUES);
  }
  KILNI_RETURN_IF_ERROR(define_keys(make, type));
  kilni_library_define(make, "PAIRS", pairs ? "1" : "0");
  define_sort_tile(make, bytes_of(type));
  if (!pairs) places[2].kind = places[3].kind = KILNI_PLACE_NOTHING;
  return kilni_library_add(make, "sort", places, COUNT(places),
                           KILN_SWITCH_OFF);
}

static kiln_status_t make_sort(kilni_library_make_t* make) {
  uint32_t type = recipes_type_or(make, KILN_PROGRAM_TYPE_U32);
  uint32_t key_bytes = bytes_of(type);
  KILNI_RETURN_IF_ERROR(
      kilni_library_uses(make, KILNI_USES_TYPE | KILNI_USES_VALUE |
                                   KILNI_USES_DESCENDING | KILNI_USES_COUNT));
  uint32_t value_type = make->options.value_type;
  if (value_type != 0 && bytes_of(value_type) == 0) {
    return kilni_library_alien_type(make, value_type,
                                    "u32, i32, u64, i64, f32 and f64");
  }
  KILNI_RETURN_IF_ERROR(define_keys(make, type));
  static const kilni_library_place_t kCount[] = {GIVEN(0), MEMORY(SORT_COUNTS)};
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "sort_count", kCount,
                                          COUNT(kCount), KILN_SWITCH_OFF));
  static const kilni_library_place_t kBases[] = {MEMORY(SORT_COUNTS),
                                                 MEMORY(SORT_BASES)};
  kilni_library_define(make, "PASSES", key_bytes == 8 ? "8" : "4");
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "sort_bases", kBases,
                                          COUNT(kBases), KILN_SWITCH_OFF));
  KILNI_RETURN_IF_ERROR(make_sort_memory(make, key_bytes));
  for (uint32_t pass = 0; pass < key_bytes; pass++) {
    KILNI_RETURN_IF_ERROR(make_sort_pass(make, type, pass));
  }
  return kiln_ok();
}

// One launch of the text, with the text's own parameters.
static kiln_status_t make_one(kilni_library_make_t* make, uint32_t clears) {
  KILNI_RETURN_IF_ERROR(kilni_library_uses(make, KILNI_USES_TYPE));
  if (make->options.type != 0 &&
      strstr(make->entry.text.data, "\ntype T = ") == NULL) {
    return unused(make, "type");
  }
  KILNI_RETURN_IF_ERROR(define_number(make));
  kilni_library_place_t places[KILNI_LIBRARY_PLACES];
  for (uint32_t i = 0; i < KILNI_LIBRARY_PLACES; i++) {
    places[i] = (kilni_library_place_t)GIVEN(i);
  }
  return kilni_library_add(make, make->entry.name, places, KILNI_LIBRARY_EVERY,
                           clears);
}

static kiln_status_t make_plain(kilni_library_make_t* make) {
  return make_one(make, KILN_SWITCH_DEFAULT);
}

// One that writes every element of its outputs, which the dispatch need not
// see: they are not cleared.
static kiln_status_t make_whole(kilni_library_make_t* make) {
  return make_one(make, KILN_SWITCH_OFF);
}

// Rows of floats that f32 holds, in which all is computed.
static kiln_status_t make_rows(kilni_library_make_t* make) {
  uint32_t type = make->options.type;
  if (type != 0 && type != KILN_PROGRAM_TYPE_F32 &&
      type != KILN_PROGRAM_TYPE_F16 && type != KILN_PROGRAM_TYPE_BF16) {
    return kilni_library_alien_type(make, type, "f32, f16 and bf16");
  }
  return make_whole(make);
}

static const struct {
  const char* name;
  kiln_status_t (*make)(kilni_library_make_t* make);
} kRecipes[] = {
    // clang-format off
    {"aho_corasick", make_aho_corasick},
    {"attention", kilni_library_make_attention},
    {"bfs", kilni_library_make_bfs},
    {"blake3", make_blake3},
    {"compact", make_compact},
    {"components", kilni_library_make_components},
    {"convolution", kilni_library_make_convolution},
    {"fft", kilni_library_make_fft},
    {"fold", make_fold},
    {"gather", make_whole},
    {"histogram", kilni_library_make_histogram},
    {"json_index", make_json_index},
    {"lines", make_lines},
    {"lz4", make_whole},
    {"matmul", kilni_library_make_matmul},
    {"merge_sort", kilni_library_make_merge_sort},
    {"nbody", make_whole},
    {"normalize", make_rows},
    {"philox", make_whole},
    {"reduce", make_whole},
    {"runs", make_runs},
    {"scan", make_scan},
    {"scan_segments", make_scan},
    {"segments", make_segments},
    {"softmax", make_rows},
    {"sort", make_sort},
    {"spmv", kilni_library_make_spmv},
    {"transpose", make_whole},
    {"unique", make_unique},
    // clang-format on
};

kiln_status_t kilni_library_recipe(kilni_library_make_t* make) {
  for (uint32_t i = 0; i < COUNT(kRecipes); i++) {
    if (strcmp(kRecipes[i].name, make->entry.name) == 0) {
      return kRecipes[i].make(make);
    }
  }
  return make_plain(make);
}
