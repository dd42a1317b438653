// SPDX-License-Identifier: Apache-2.0
//
// library: recipes of entries on graphs and sparse matrices, both as CSR:
// starts[v] is where the edges of vertex v begin in columns.
#include <stdio.h>

#include "base/status_make.h"
#include "kiln/program.h"
#include "library/library_inside.h"

#define GIVEN(index)  {KILNI_PLACE_GIVEN, index}
#define MEMORY(index) {KILNI_PLACE_MEMORY, index}
#define COUNT(array)  ((uint32_t)(sizeof(array) / sizeof((array)[0])))

// ---- Sparse matrix times vector ----

// Of rows and numbers together, as in spmv.kiln: 7 for each of 256 threads.
enum { SPMV_TILE = 1792 };

// Says T, and S, what sums are of.
static kiln_status_t define_matrix(kilni_library_make_t* make) {
  uint32_t type = make->options.type;
  if (type == 0) return kiln_ok();
  if (type != KILN_PROGRAM_TYPE_F32 && type != KILN_PROGRAM_TYPE_F64 &&
      type != KILN_PROGRAM_TYPE_F16 && type != KILN_PROGRAM_TYPE_BF16) {
    return kilni_library_alien_type(make, type, "f32, f64, f16 and bf16");
  }
  kilni_library_define(make, "T", kiln_program_type_name(type));
  kilni_library_define(make, "S",
                       type == KILN_PROGRAM_TYPE_F64 ? "f64" : "f32");
  return kiln_ok();
}

// Memory: where tiles begin, rows that go on behind them, what those have.
kiln_status_t kilni_library_make_spmv(kilni_library_make_t* make) {
  static const kilni_library_place_t kTiles[] = {GIVEN(0), GIVEN(1), MEMORY(0)};
  static const kilni_library_place_t kRows[] = {GIVEN(0),  GIVEN(1), GIVEN(2),
                                                GIVEN(3),  GIVEN(4), MEMORY(0),
                                                MEMORY(1), MEMORY(2)};
  static const kilni_library_place_t kCarry[] = {GIVEN(0), GIVEN(1), MEMORY(1),
                                                 MEMORY(2), GIVEN(4)};
  KILNI_RETURN_IF_ERROR(
      kilni_library_uses(make, KILNI_USES_TYPE | KILNI_USES_COUNT));
  uint64_t tiles = make->options.count / SPMV_TILE + 1;
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, (tiles + 1) * 4));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, tiles * 4));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, tiles * 8));
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "spmv_tiles", kTiles,
                                          COUNT(kTiles), KILN_SWITCH_OFF));
  KILNI_RETURN_IF_ERROR(define_matrix(make));
  KILNI_RETURN_IF_ERROR(
      kilni_library_add(make, "spmv", kRows, COUNT(kRows), KILN_SWITCH_OFF));
  if (make->options.type == KILN_PROGRAM_TYPE_F64) {
    kilni_library_define(make, "S", "f64");
  }
  return kilni_library_add(make, "spmv_carry", kCarry, COUNT(kCarry),
                           KILN_SWITCH_OFF);
}

// ---- Breadth-first search ----

// Memory of a search, by its number.
enum { BFS_VISITED, BFS_QUEUE, BFS_STATE, BFS_CHANGED };

// As many blocks as the device has at once, fewer for few vertices: all blocks
// meet behind each round, which costs more the more there are.
static uint32_t workers_of(const kilni_library_make_t* make) {
  enum { BLOCK = 1024, VERTICES = 4096 };
  uint64_t most = kilni_library_device(make)->multiprocessors * UINT64_C(2);
  uint64_t blocks = make->options.count / VERTICES + 1;
  return (uint32_t)(blocks < most ? blocks : most) * BLOCK;
}

static kiln_status_t make_bfs_memory(kilni_library_make_t* make) {
  uint64_t count = make->options.count;
  const uint64_t sizes[] = {(count + 31) / 32 * 4, count * 8, 6 * 8, 4};
  for (uint32_t i = 0; i < COUNT(sizes); i++) {
    KILNI_RETURN_IF_ERROR(kilni_library_memory(make, sizes[i]));
  }
  return kiln_ok();
}

// A round meets a vertex, or is the last one.
kiln_status_t kilni_library_make_bfs(kilni_library_make_t* make) {
  static const kilni_library_place_t kClear[] = {
      GIVEN(0), GIVEN(3), MEMORY(BFS_VISITED), MEMORY(BFS_STATE)};
  static const kilni_library_place_t kSources[] = {GIVEN(0),
                                                   GIVEN(1),
                                                   GIVEN(2),
                                                   GIVEN(3),
                                                   MEMORY(BFS_VISITED),
                                                   MEMORY(BFS_QUEUE),
                                                   MEMORY(BFS_STATE)};
  static const kilni_library_place_t kRound[] = {
      GIVEN(0),           GIVEN(1),
      GIVEN(3),           MEMORY(BFS_VISITED),
      MEMORY(BFS_QUEUE),  MEMORY(BFS_STATE),
      MEMORY(BFS_CHANGED)};
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_COUNT | KILNI_USES_ROUNDS | KILNI_USES_SYMMETRIC));
  KILNI_RETURN_IF_ERROR(make_bfs_memory(make));
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "bfs_clear", kClear,
                                          COUNT(kClear), KILN_SWITCH_OFF));
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "bfs_sources", kSources,
                                          COUNT(kSources), KILN_SWITCH_OFF));
  char workers[16];
  snprintf(workers, sizeof(workers), "%u", (unsigned)workers_of(make));
  kilni_library_define(make, "WORKERS", workers);
  kilni_library_define(make, "SYMMETRIC",
                       make->options.symmetric == KILN_SWITCH_ON ? "1" : "0");
  kilni_library_begin_rounds(make, BFS_CHANGED, (uint32_t)make->options.count);
  KILNI_RETURN_IF_ERROR(
      kilni_library_add(make, "bfs", kRound, COUNT(kRound), KILN_SWITCH_OFF));
  kilni_library_end_rounds(make);
  return kiln_ok();
}

// ---- Connected components ----

enum { COMPONENTS_GIANT, COMPONENTS_CHANGED };

static kiln_status_t make_trees(kilni_library_make_t* make) {
  static const kilni_library_place_t kStart[] = {GIVEN(0), GIVEN(1), GIVEN(2),
                                                 GIVEN(3)};
  static const kilni_library_place_t kNear[] = {GIVEN(0), GIVEN(1), GIVEN(2)};
  static const kilni_library_place_t kGiant[] = {GIVEN(2), GIVEN(0),
                                                 MEMORY(COMPONENTS_GIANT)};
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "components_start", kStart,
                                          COUNT(kStart), KILN_SWITCH_OFF));
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "components_near", kNear,
                                          COUNT(kNear), KILN_SWITCH_OFF));
  if (make->options.symmetric != KILN_SWITCH_ON) return kiln_ok();
  return kilni_library_add(make, "components_giant", kGiant, COUNT(kGiant),
                           KILN_SWITCH_OFF);
}

// A round makes two trees one, or is the last one.
kiln_status_t kilni_library_make_components(kilni_library_make_t* make) {
  static const kilni_library_place_t kRound[] = {GIVEN(0), GIVEN(1), GIVEN(2),
                                                 MEMORY(COMPONENTS_GIANT),
                                                 MEMORY(COMPONENTS_CHANGED)};
  static const kilni_library_place_t kEnd[] = {GIVEN(0), GIVEN(2), GIVEN(3)};
  KILNI_RETURN_IF_ERROR(kilni_library_uses(
      make, KILNI_USES_COUNT | KILNI_USES_ROUNDS | KILNI_USES_SYMMETRIC));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, 4));
  KILNI_RETURN_IF_ERROR(kilni_library_memory(make, 4));
  KILNI_RETURN_IF_ERROR(make_trees(make));
  kilni_library_define(make, "SYMMETRIC",
                       make->options.symmetric == KILN_SWITCH_ON ? "1" : "0");
  kilni_library_begin_rounds(make, COMPONENTS_CHANGED,
                             (uint32_t)make->options.count);
  KILNI_RETURN_IF_ERROR(kilni_library_add(make, "components", kRound,
                                          COUNT(kRound), KILN_SWITCH_OFF));
  kilni_library_end_rounds(make);
  return kilni_library_add(make, "components_end", kEnd, COUNT(kEnd),
                           KILN_SWITCH_OFF);
}
