// SPDX-License-Identifier: Apache-2.0
//
// soft: what every handler of the engine sees: a decoded instruction, a warp,
// and how an operand is reached.
//
// A warp is 32 lanes that execute one decoded instruction at a time. A register
// is a slot of the warp's frame: 32 lanes of 4 bytes (128 bytes, also for 8-
// and 16-bit registers, zero-extended) or of 8 bytes (256 bytes). A predicate
// register is one 32-bit word, a bit per lane. Constants, kernel parameters
// and launch-wide special registers are slots of a second, read-only area, so
// that every operand is read the same way.
//
// A handler does its work for the lanes of `exec` and returns the instruction
// to run next, or NULL to give the warp back to its scheduler. Handlers are
// compiled once for each lane set (plain, avx2, avx512); see soft_lanes.h.
#ifndef KILN_SRC_SOFT_CODE_SOFT_ENGINE_H_
#define KILN_SRC_SOFT_CODE_SOFT_ENGINE_H_

#include <stdbool.h>
#include <stdint.h>

enum {
  KILNI_SOFT_LANES = 32,
  KILNI_SOFT_SLOT32_BYTES = 128,
  KILNI_SOFT_SLOT64_BYTES = 256,
  KILNI_SOFT_SLOT_ALIGN = 64,
};

#define KILNI_SOFT_FULL_MASK 0xffffffffu

typedef struct kilni_soft_instr_t kilni_soft_instr_t;
typedef struct kilni_soft_warp_t kilni_soft_warp_t;

typedef const kilni_soft_instr_t* (*kilni_soft_fn_t)(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr);

// An operand word that names a slot: the byte offset from one of the two areas
// in `warp->area`; bit 0 chooses the area (0 frame, 1 constants). Offsets are
// multiples of KILNI_SOFT_SLOT_ALIGN.
//
// An operand word that names a predicate: its index in `warp->pred`; bit 31
// negates it where it is read.
#define KILNI_SOFT_AREA_CONSTANT 1u
#define KILNI_SOFT_PRED_NEGATED  0x80000000u

// One decoded instruction, 32 bytes. thread-compatible
struct kilni_soft_instr_t {
  kilni_soft_fn_t fn;
  uint32_t d;      // destination
  uint32_t a;      // first source
  uint32_t b;      // second source
  uint32_t c;      // third source
  uint16_t guard;  // index of the guard's word in `pred`; bit 15 negates it
  uint16_t op;     // kilni_soft_op_t
  uint32_t aux;    // fourth source, an immediate, or an index, as the op
                   // defines
};

// The part of a warp that handlers touch; the scheduler's part follows in
// soft_warp.h (whose first member is this struct). one-thread
struct kilni_soft_warp_t {
  uint8_t* area[2];   // frame, constants
  uint32_t* pred;     // predicate words of the frame; pred[0] is all ones
  uint32_t mask;      // the lanes of the running group
  uint32_t carry;     // CC.CF of each lane
  int64_t budget;     // branches left before the group yields
  uint64_t executed;  // thread-instructions so far
};

static inline void* kilni_soft_slot(const kilni_soft_warp_t* warp,
                                    uint32_t word) {
  return warp->area[word & KILNI_SOFT_AREA_CONSTANT] + (word & ~63u);
}

// The lanes that execute `instr`: those of the group whose guard holds.
// Unguarded instructions name pred[0].
static inline uint32_t kilni_soft_exec(const kilni_soft_warp_t* warp,
                                       const kilni_soft_instr_t* instr) {
  uint32_t word = warp->pred[instr->guard & 0x7fffu];
  return warp->mask & (word ^ (0u - (uint32_t)(instr->guard >> 15)));
}

// The value of a predicate operand that is read, for all lanes.
static inline uint32_t kilni_soft_pred(const kilni_soft_warp_t* warp,
                                       uint32_t word) {
  return warp->pred[word & ~KILNI_SOFT_PRED_NEGATED] ^ (0u - (word >> 31));
}

// Writes `value` to predicate `word` in the lanes of `exec` only.
static inline void kilni_soft_set_pred(kilni_soft_warp_t* warp, uint32_t word,
                                       uint32_t exec, uint32_t value) {
  uint32_t* p = &warp->pred[word];
  *p = (*p & ~exec) | (value & exec);
}

// Every operation of the engine, as two lists of data:
//
//   KILNI_SOFT_OP(id, family, signature, forms)
//
//   id         handler name: kilni_soft_<lane set>_<id>
//   family     file of the handler: soft_ops_<family>.c
//   signature  "<destination>:<sources>", a letter each:
//                w  slot of 32-bit lanes (8-, 16- and 32-bit registers)
//                x  slot of 64-bit lanes
//                p  predicate
//                i  a raw 32-bit immediate in `aux`
//                -  none
//              Sources fill a, b, c and then aux, in the order of the PTX
//              operands. Immediates become constants of the slot's width.
//              "*" in place of a signature: the decoder builds the operands
//              by hand.
//   forms      the PTX forms it executes, separated by blanks, with
//              alternatives in braces: "add.{u32,s32} add.b32". An empty
//              alternative is allowed: "mul{.rn,}.f32".
//
// tools/gen_soft_forms.py expands the forms into a sorted table (form -> op)
// and into docs/reference/soft-instructions.md.
typedef enum kilni_soft_op_t {
#define KILNI_SOFT_OP(id, family, signature, forms) KILNI_SOFT_OP_##id,
#include "soft/code/soft_ops_alu.inc"
#include "soft/code/soft_ops_core.inc"
#undef KILNI_SOFT_OP
  KILNI_SOFT_OP_COUNT
} kilni_soft_op_t;

// The handlers of one lane set. thread-compatible
typedef struct kilni_soft_lane_set_t {
  const char* name;  // "plain", "avx2", "avx512"
  kilni_soft_fn_t fn[KILNI_SOFT_OP_COUNT];
  // For a compare (family `compare`, unguarded) directly followed by a branch
  // on its result: does both and counts as both. NULL where there is none.
  kilni_soft_fn_t compare_branch[KILNI_SOFT_OP_COUNT];
  // The same with the sum before it, which is the compare's first source:
  // add_b32 or add_f32, as the compare's type is.
  kilni_soft_fn_t sum_branch[KILNI_SOFT_OP_COUNT];
  uint32_t combines;  // the decoder may make one operation of two
  uint32_t reserved;
} kilni_soft_lane_set_t;

extern const kilni_soft_lane_set_t kilni_soft_lanes_plain;
#if defined(__x86_64__)
extern const kilni_soft_lane_set_t kilni_soft_lanes_avx2;
extern const kilni_soft_lane_set_t kilni_soft_lanes_avx512;
#endif

// The lane set to use: `name` is "auto", "plain", "avx2" or "avx512". NULL when
// this CPU does not support it, or the name is unknown.
const kilni_soft_lane_set_t* kilni_soft_lanes_choose(const char* name);

// Branching, for handlers that end a block (soft_branch.c): `branch` is the
// decoded `bra`, `taken` the lanes that want to take it. Returns the next
// instruction to run. Compare handlers fused with a branch end with this.
const kilni_soft_instr_t* kilni_soft_branch(kilni_soft_warp_t* warp,
                                            const kilni_soft_instr_t* branch,
                                            uint32_t taken);

#endif  // KILN_SRC_SOFT_CODE_SOFT_ENGINE_H_
