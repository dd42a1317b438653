// SPDX-License-Identifier: Apache-2.0
//
// soft: a decoded function, as the decoder leaves it and a warp runs it.
//
// Instructions are laid out so that every loop is contiguous and control flows
// downward except on loop back edges: a warp whose lanes have diverged runs the
// group with the smallest address first, and the others wait where they would
// reconverge (docs/internals/soft.md).
#ifndef KILN_SRC_SOFT_CODE_SOFT_FUNCTION_H_
#define KILN_SRC_SOFT_CODE_SOFT_FUNCTION_H_

#include "soft/code/soft_engine.h"

#define KILNI_SOFT_NONE UINT32_MAX

// Addresses of the kernel parameters in the generic space, and of functions
// (which no access may touch).
#define KILNI_SOFT_PARAM_BASE    0x0000000102000000ull
#define KILNI_SOFT_PARAM_BYTES   0x0000000000010000ull
#define KILNI_SOFT_FUNCTION_BASE 0x00007d0000000000ull
enum { KILNI_SOFT_FUNCTION_STRIDE = 16 };

// What fills a constant slot.
typedef enum kilni_soft_constant_kind_t {
  KILNI_SOFT_CONSTANT_VALUE = 0,  // `value`
  KILNI_SOFT_CONSTANT_PARAM,      // kernel parameter bytes at `value`
  KILNI_SOFT_CONSTANT_SHARED,     // address of variable `index` plus `value`
  KILNI_SOFT_CONSTANT_NTID,       // component `index`
  KILNI_SOFT_CONSTANT_NCTAID,     // component `index`
  KILNI_SOFT_CONSTANT_DYNAMIC_BYTES,
  KILNI_SOFT_CONSTANT_TOTAL_BYTES,
  KILNI_SOFT_CONSTANT_RESERVED,  // `value`, an address of reserved memory
  KILNI_SOFT_CONSTANT_WORKSPACE  // of a cooperative grid: half `index`
} kilni_soft_constant_kind_t;

// A slot of the constants area. thread-compatible
typedef struct kilni_soft_constant_t {
  uint64_t value;
  uint32_t offset;    // of the slot in the area
  uint32_t index;     //
  uint8_t kind;       // kilni_soft_constant_kind_t
  uint8_t wide;       // 64-bit lanes
  uint8_t bytes;      // PARAM: of the load
  uint8_t is_signed;  // PARAM: extend the sign
  uint8_t to_bytes;   // PARAM: width of the register
  uint8_t generic;    // SHARED: in the generic window
  uint16_t reserved;
} kilni_soft_constant_t;

// Bytes that a call passes: words of the frame, 32 lanes each.
// thread-compatible
typedef struct kilni_soft_pass_t {
  uint32_t slot;   // frame offset of the first word
  uint32_t bytes;  // of one lane
} kilni_soft_pass_t;

// A call. thread-compatible
typedef struct kilni_soft_call_t {
  uint32_t callee;        // function, KILNI_SOFT_NONE for an indirect call
  uint32_t return_count;  // passes[first ..] are the returns,
  uint32_t param_count;   // then the arguments
  uint32_t first_pass;
} kilni_soft_call_t;

// PTX instructions of a class. thread-compatible
typedef struct kilni_soft_tally_t {
  uint32_t class_;  // kiln_soft_class_t
  uint32_t count;
} kilni_soft_tally_t;

// thread-compatible
typedef struct kilni_soft_function_t {
  const char* name;
  kilni_soft_instr_t* code;
  uint32_t* lines;  // of the PTX, one an instruction
  uint32_t instr_count;
  uint32_t code_capacity;
  uint32_t is_entry;
  uint32_t frame_bytes;  // 32-bit slots, 64-bit slots, parameter words
  uint32_t wide_begin;   // offset of the 64-bit slots
  uint32_t wide_end;     // and their end
  uint32_t pred_count;   // with pred[0]
  uint32_t local_bytes;  // of one lane
  uint32_t register_count;
  kilni_soft_constant_t* constants;
  uint32_t constant_count;
  uint32_t constant_bytes;
  kilni_soft_call_t* calls;
  uint32_t call_count;
  uint32_t pass_count;
  kilni_soft_pass_t* passes;   // of the calls
  kilni_soft_pass_t* formals;  // of this function: returns, then parameters
  uint32_t formal_returns;
  uint32_t formal_params;
  uint32_t* targets;  // of brx: instruction indices
  uint32_t target_count;
  uint32_t uses_functions;  // takes a function's address or calls indirectly
  uint32_t* shared;         // module variables in .shared that it names
  uint32_t shared_count;
  uint32_t tally_count;
  // The tallies of the instructions that count a block, by class: those of
  // instruction i are from tally_ends[i - 1] to tally_ends[i].
  kilni_soft_tally_t* tallies;
  uint32_t* tally_ends;  // one an instruction, `code_capacity`
} kilni_soft_function_t;

// Words of memory instructions. `d`, the register (loads) or the value
// (stores); `a`, the address; `b`, a signed offset; `c`, these flags; `aux`,
// the site of the range cache. Of the accesses of one register `c` is the slot
// of an index, with KILNI_SOFT_ADDRESS_* in the bits that a slot leaves free.
// Of ld_sync, st_sync and atom: `d` result, `a` address, `b` and `c` values,
// `aux` flags. With several elements ld_sync and st_sync have their words in
// the next instruction; the count of an atom is the number of elements that the
// address is aligned to.
#define KILNI_SOFT_MEM_BASE32    0x1u  // the address is a 32-bit register
#define KILNI_SOFT_MEM_NEAR      0x2u  // and so is the sum with the offset
#define KILNI_SOFT_MEM_COUNT(c)  (((c) >> 4) & 0xfu)
#define KILNI_SOFT_MEM_BYTES(c)  (((c) >> 8) & 0xfu)
#define KILNI_SOFT_MEM_SPACE(c)  (((c) >> 12) & 0xfu)
#define KILNI_SOFT_MEM_ORDER(c)  (((c) >> 16) & 0xfu)
#define KILNI_SOFT_MEM_ACTION(c) (((c) >> 20) & 0x1fu)
#define KILNI_SOFT_MEM_NUMBER(c) (((c) >> 25) & 0x7u)
#define KILNI_SOFT_MEM_NO_RESULT 0x8u  // red
#define KILNI_SOFT_MEM_MAKE(count, bytes, space) \
  ((uint32_t)(count) << 4 | (uint32_t)(bytes) << 8 | (uint32_t)(space) << 12)

// How an access of one register makes its address: `a` as it is, 64 or 32 bits
// wide, with a sum that is 64 bits wide or, of spaces that 32 bits span, wraps
// (NEAR), or `a` plus the index in `c`, which is 64 bits wide, or 32 and
// shifted.
enum {
  KILNI_SOFT_ADDRESS_64,
  KILNI_SOFT_ADDRESS_32,
  KILNI_SOFT_ADDRESS_NEAR,
  KILNI_SOFT_ADDRESS_SUM,
  KILNI_SOFT_ADDRESS_S32,
  KILNI_SOFT_ADDRESS_U32
};
#define KILNI_SOFT_ADDRESS_KIND(c)  (((c) >> 1) & 7u)
#define KILNI_SOFT_ADDRESS_SHIFT(c) (((c) >> 4) & 3u)
#define KILNI_SOFT_ADDRESS_MAKE(kind, shift) \
  ((uint32_t)(kind) << 1 | (uint32_t)(shift) << 4)

typedef enum kilni_soft_space_t {
  KILNI_SOFT_SPACE_GENERIC = 0,
  KILNI_SOFT_SPACE_GLOBAL,
  KILNI_SOFT_SPACE_CONST,
  KILNI_SOFT_SPACE_SHARED,
  KILNI_SOFT_SPACE_LOCAL,
  KILNI_SOFT_SPACE_PARAM
} kilni_soft_space_t;

typedef enum kilni_soft_order_t {
  KILNI_SOFT_ORDER_RELAXED = 0,
  KILNI_SOFT_ORDER_ACQUIRE,
  KILNI_SOFT_ORDER_RELEASE,
  KILNI_SOFT_ORDER_ACQ_REL,
  KILNI_SOFT_ORDER_SC
} kilni_soft_order_t;

typedef enum kilni_soft_action_t {
  KILNI_SOFT_ACTION_ADD = 0,
  KILNI_SOFT_ACTION_MIN,
  KILNI_SOFT_ACTION_MAX,
  KILNI_SOFT_ACTION_INC,
  KILNI_SOFT_ACTION_DEC,
  KILNI_SOFT_ACTION_AND,
  KILNI_SOFT_ACTION_OR,
  KILNI_SOFT_ACTION_XOR,
  KILNI_SOFT_ACTION_EXCH,
  KILNI_SOFT_ACTION_CAS
} kilni_soft_action_t;

typedef enum kilni_soft_number_t {
  KILNI_SOFT_NUMBER_UNSIGNED = 0,
  KILNI_SOFT_NUMBER_SIGNED,
  KILNI_SOFT_NUMBER_FLOAT,
  KILNI_SOFT_NUMBER_F16,
  KILNI_SOFT_NUMBER_BF16,
  KILNI_SOFT_NUMBER_F16X2,
  KILNI_SOFT_NUMBER_BF16X2
} kilni_soft_number_t;

// Special registers of sreg32 and sreg64, in `aux`.
typedef enum kilni_soft_sreg_t {
  KILNI_SOFT_SREG_TID_X = 0,
  KILNI_SOFT_SREG_TID_Y,
  KILNI_SOFT_SREG_TID_Z,
  KILNI_SOFT_SREG_CTAID_X,
  KILNI_SOFT_SREG_CTAID_Y,
  KILNI_SOFT_SREG_CTAID_Z,
  KILNI_SOFT_SREG_LANEID,
  KILNI_SOFT_SREG_WARPID,
  KILNI_SOFT_SREG_SMID,
  KILNI_SOFT_SREG_LANEMASK_EQ,
  KILNI_SOFT_SREG_LANEMASK_LE,
  KILNI_SOFT_SREG_LANEMASK_LT,
  KILNI_SOFT_SREG_LANEMASK_GE,
  KILNI_SOFT_SREG_LANEMASK_GT,
  KILNI_SOFT_SREG_CLOCK,
  KILNI_SOFT_SREG_CLOCK_HI,
  KILNI_SOFT_SREG_CLOCK64,
  KILNI_SOFT_SREG_GLOBALTIMER,
  KILNI_SOFT_SREG_GLOBALTIMER_LO,
  KILNI_SOFT_SREG_GLOBALTIMER_HI
} kilni_soft_sreg_t;

// shfl: `aux` is the mode; vote: the vote; barrier: the action.
enum {
  KILNI_SOFT_SHFL_UP,
  KILNI_SOFT_SHFL_DOWN,
  KILNI_SOFT_SHFL_BFLY,
  KILNI_SOFT_SHFL_IDX
};
enum {
  KILNI_SOFT_VOTE_ALL,
  KILNI_SOFT_VOTE_ANY,
  KILNI_SOFT_VOTE_UNI,
  KILNI_SOFT_VOTE_BALLOT
};
enum {
  KILNI_SOFT_BARRIER_SYNC,
  KILNI_SOFT_BARRIER_ARRIVE,
  KILNI_SOFT_BARRIER_AND,
  KILNI_SOFT_BARRIER_OR,
  KILNI_SOFT_BARRIER_POPC
};

#endif  // KILN_SRC_SOFT_CODE_SOFT_FUNCTION_H_
