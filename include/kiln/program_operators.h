// SPDX-License-Identifier: Apache-2.0
//
// program: the operators of a program, and what each means: one table.
//
// The text form's spellings, the builder's constants, the validator's types,
// the lowering's and the reference evaluator's cases, the tests and the page
// docs/reference/program-semantics.md all come from these lists. Each meaning
// is total: every operand value has exactly one answer, on every device.
//
// X(NAME, "spelling", OPERANDS, RESULT, "meaning")
//
//   OPERANDS  which types all operands may have, all the same one unless the
//             meaning says otherwise:
//             ANY, NUMBER (all but bool), INTEGER, SIGNED (signed integers
//             and floats), FLOAT, BOOL
//   RESULT    SAME (the operands' type), BOOL, U32, UNSIGNED (the unsigned
//             integer of that width; a float's stays itself)
//
// f16 and bf16: the f32 operation on the widened operands, rounded once.
#ifndef KILN_PROGRAM_OPERATORS_H_
#define KILN_PROGRAM_OPERATORS_H_

// X(NAME, "spelling", bytes, CLASS): CLASS is BOOL, UNSIGNED, SIGNED, FLOAT.
// A bool in memory is one byte: 0 is false, everything else true; 1 is stored.
#define KILN_PROGRAM_TYPES(X) \
  X(BOOL, "bool", 1, BOOL)    \
  X(U8, "u8", 1, UNSIGNED)    \
  X(I8, "i8", 1, SIGNED)      \
  X(U16, "u16", 2, UNSIGNED)  \
  X(I16, "i16", 2, SIGNED)    \
  X(U32, "u32", 4, UNSIGNED)  \
  X(I32, "i32", 4, SIGNED)    \
  X(U64, "u64", 8, UNSIGNED)  \
  X(I64, "i64", 8, SIGNED)    \
  X(F16, "f16", 2, FLOAT)     \
  X(BF16, "bf16", 2, FLOAT)   \
  X(F32, "f32", 4, FLOAT)     \
  X(F64, "f64", 8, FLOAT)

// One operand. A spelling of letters is called: sqrt(x).
#define KILN_PROGRAM_UNARY_OPERATORS(X)                                       \
  X(NEGATE, "-", NUMBER, SAME,                                                \
    "0 - x for integers, wrapping; the sign bit "                             \
    "turned for floats")                                                      \
  X(BIT_NOT, "~", INTEGER, SAME, "every bit turned")                          \
  X(NOT, "!", BOOL, SAME, "true where x is false")                            \
  X(POPCOUNT, "popcount", INTEGER, U32, "how many bits are 1")                \
  X(CLZ, "clz", INTEGER, U32,                                                 \
    "zero bits above the highest 1; the width of "                            \
    "the type for 0")                                                         \
  X(CTZ, "ctz", INTEGER, U32,                                                 \
    "zero bits below the lowest 1; the width of "                             \
    "the type for 0")                                                         \
  X(REVERSE_BITS, "reverse_bits", INTEGER, SAME, "the bits in reverse order") \
  X(UNPACK4_LOW, "unpack4_low", INTEGER, SAME, "x & 15")                      \
  X(UNPACK4_HIGH, "unpack4_high", INTEGER, SAME, "x >> 4 & 15")               \
  X(UNPACK8_LOW, "unpack8_low", INTEGER, SAME, "x & 255")                     \
  X(UNPACK8_HIGH, "unpack8_high", INTEGER, SAME,                              \
    "bits 8 to 15 of x, 0 for "                                               \
    "a type of 8 bits")                                                       \
  X(ABS, "abs", SIGNED, SAME,                                                 \
    "x without its sign; the least integer stays "                            \
    "itself")                                                                 \
  X(SIGN, "sign", SIGNED, SAME,                                               \
    "-1, 0 or 1; a zero of x's sign and NaN for "                             \
    "floats")                                                                 \
  X(FLOOR, "floor", FLOAT, SAME, "the greatest whole number not above x")     \
  X(CEIL, "ceil", FLOAT, SAME, "the least whole number not below x")          \
  X(TRUNC, "trunc", FLOAT, SAME, "x without its fraction")                    \
  X(ROUND, "round", FLOAT, SAME,                                              \
    "the nearest whole number, halves to the "                                \
    "even one")                                                               \
  X(ROUND_AWAY, "round_away", FLOAT, SAME,                                    \
    "the nearest whole number, halves "                                       \
    "away from zero")                                                         \
  X(IS_NAN, "is_nan", FLOAT, BOOL, "x is no number")                          \
  X(IS_INF, "is_inf", FLOAT, BOOL, "x is an infinity")                        \
  X(IS_FINITE, "is_finite", FLOAT, BOOL, "x is neither")                      \
  X(SQRT, "sqrt", FLOAT, SAME, "rounded correctly; NaN below -0")             \
  X(INVERSE_SQRT, "inverse_sqrt", FLOAT, SAME, "1 / sqrt(x), under 1 ULP")    \
  X(RECIPROCAL, "reciprocal", FLOAT, SAME, "1 / x, rounded correctly")        \
  X(EXP, "exp", FLOAT, SAME, "under 1 ULP")                                   \
  X(EXP2, "exp2", FLOAT, SAME, "under 1 ULP")                                 \
  X(LOG, "log", FLOAT, SAME, "under 1 ULP")                                   \
  X(LOG2, "log2", FLOAT, SAME, "under 1 ULP")                                 \
  X(SIN, "sin", FLOAT, SAME, "under 1 ULP, at every size of x")               \
  X(COS, "cos", FLOAT, SAME, "under 1 ULP, at every size of x")               \
  X(TAN, "tan", FLOAT, SAME, "under 1 ULP, at every size of x")               \
  X(ASIN, "asin", FLOAT, SAME, "under 1 ULP")                                 \
  X(ACOS, "acos", FLOAT, SAME, "under 1 ULP")                                 \
  X(ATAN, "atan", FLOAT, SAME, "under 1 ULP")                                 \
  X(SINH, "sinh", FLOAT, SAME, "under 1 ULP")                                 \
  X(COSH, "cosh", FLOAT, SAME, "under 1 ULP")                                 \
  X(TANH, "tanh", FLOAT, SAME, "under 1 ULP")

// Two operands.
#define KILN_PROGRAM_BINARY_OPERATORS(X)                                      \
  X(ADD, "+", NUMBER, SAME, "wraps; floats round to nearest even")            \
  X(SUB, "-", NUMBER, SAME, "wraps; floats round to nearest even")            \
  X(MUL, "*", NUMBER, SAME,                                                   \
    "wraps; floats round to nearest even; never "                             \
    "joined with an addition")                                                \
  X(DIV, "/", NUMBER, SAME,                                                   \
    "towards zero; unsigned by 0: all ones; signed "                          \
    "by 0: 0; least by -1: least; floats as IEEE 754 says")                   \
  X(REM, "%", NUMBER, SAME,                                                   \
    "x - trunc(x / y) * y with the sign of x; by 0: "                         \
    "0; least by -1: 0; floats exactly, as C's fmod")                         \
  X(BIT_AND, "&", INTEGER, SAME, "bit by bit")                                \
  X(BIT_OR, "|", INTEGER, SAME, "bit by bit")                                 \
  X(BIT_XOR, "^", INTEGER, SAME, "bit by bit")                                \
  X(SHL, "<<", INTEGER, SAME,                                                 \
    "the count, an unsigned integer of any width, "                           \
    "is taken modulo the width of x")                                         \
  X(SHR, ">>", INTEGER, SAME, "as <<; signed ones copy their sign")           \
  X(ROTATE_LEFT, "rotate_left", INTEGER, SAME, "as <<, bits come back below") \
  X(ROTATE_RIGHT, "rotate_right", INTEGER, SAME,                              \
    "as >>, bits come back above")                                            \
  X(AND, "&&", BOOL, SAME, "both; both sides are evaluated")                  \
  X(OR, "||", BOOL, SAME, "one of them; both sides are evaluated")            \
  X(EQ, "==", ANY, BOOL, "false if one is NaN; -0 equals 0")                  \
  X(NE, "!=", ANY, BOOL, "true if one is NaN")                                \
  X(LT, "<", NUMBER, BOOL, "false if one is NaN")                             \
  X(GT, ">", NUMBER, BOOL, "false if one is NaN")                             \
  X(LE, "<=", NUMBER, BOOL, "false if one is NaN")                            \
  X(GE, ">=", NUMBER, BOOL, "false if one is NaN")                            \
  X(MIN, "min", NUMBER, SAME, "a NaN only if both are; min(-0, 0) is -0")     \
  X(MAX, "max", NUMBER, SAME, "a NaN only if both are; max(-0, 0) is 0")      \
  X(ABS_DIFF, "abs_diff", NUMBER, UNSIGNED,                                   \
    "the distance, exact for "                                                \
    "integers; abs(x - y) for floats")                                        \
  X(ADD_SAT, "add_sat", INTEGER, SAME, "the nearest value of the type")       \
  X(SUB_SAT, "sub_sat", INTEGER, SAME, "the nearest value of the type")       \
  X(MUL_SAT, "mul_sat", INTEGER, SAME, "the nearest value of the type")       \
  X(MUL_HIGH, "mul_high", INTEGER, SAME,                                      \
    "the upper half of the product of "                                       \
    "twice the width")                                                        \
  X(POW, "pow", FLOAT, SAME, "under 1 ULP; special cases as C's pow")         \
  X(ATAN2, "atan2", FLOAT, SAME, "under 1 ULP; special cases as C's atan2")

// What happens to one element of a buffer, as one step that no other atomic
// comes between; the old value is the result. X(NAME, "spelling", OPERANDS,
// "meaning"). Elements of less than 32 bits: the aligned word is exchanged.
#define KILN_PROGRAM_ATOMICS(X)                                     \
  X(LOAD, "atomic_load", ANY, "reads")                              \
  X(STORE, "atomic_store", ANY, "writes; no result")                \
  X(EXCHANGE, "atomic_exchange", ANY, "writes y")                   \
  X(COMPARE_EXCHANGE, "atomic_compare_exchange", ANY,               \
    "writes y where the "                                           \
    "bits are those of the expected value; (element, expected, y)." \
    " Which bits a NaN has is open, so whether one is met is too")  \
  X(ADD, "atomic_add", NUMBER, "x + y")                             \
  X(SUB, "atomic_sub", NUMBER, "x - y")                             \
  X(MIN, "atomic_min", NUMBER, "min(x, y)")                         \
  X(MAX, "atomic_max", NUMBER, "max(x, y)")                         \
  X(AND, "atomic_and", INTEGER, "x & y")                            \
  X(OR, "atomic_or", INTEGER, "x | y")                              \
  X(XOR, "atomic_xor", INTEGER, "x ^ y")                            \
  X(NAND, "atomic_nand", INTEGER, "~(x & y)")

// X(NAME, "spelling"): what an atomic orders, RELAXED unless said.
#define KILN_PROGRAM_ORDERINGS(X) \
  X(RELAXED, "relaxed")           \
  X(ACQUIRE, "acquire")           \
  X(RELEASE, "release")           \
  X(ACQ_REL, "acq_rel")           \
  X(SEQ_CST, "seq_cst")

// X(NAME, "spelling"): for whom. Of a buffer in global memory DEVICE unless
// said, of a shared one always BLOCK.
#define KILN_PROGRAM_SCOPES(X) \
  X(BLOCK, "block")            \
  X(DEVICE, "device")          \
  X(SYSTEM, "system")

// Among the 32 threads of a subgroup. X(NAME, "spelling", OPERANDS, RESULT,
// lane, "meaning"): lane is 1 where a second operand, u32, names a lane. Only
// where all threads of a subgroup that have not returned come together (rule
// of the validator). A thread beyond the work size takes no part.
#define KILN_PROGRAM_SUBGROUPS(X)                                             \
  X(BALLOT, "ballot", BOOL, U32, 0,                                           \
    "bit i: what lane i said; 0 for one that "                                \
    "takes no part")                                                          \
  X(SHUFFLE, "shuffle", ANY, SAME, 1,                                         \
    "what that lane holds; 0 for a lane "                                     \
    "above 31 or one that takes no part")                                     \
  X(BROADCAST, "broadcast", ANY, SAME, 1,                                     \
    "as shuffle; the lane must be the "                                       \
    "same in all threads: that of the lowest one counts")                     \
  X(REDUCE_ADD, "reduce_add", NUMBER, SAME, 0, "in the fixed order below")    \
  X(REDUCE_MUL, "reduce_mul", NUMBER, SAME, 0, "in the fixed order below")    \
  X(REDUCE_MIN, "reduce_min", NUMBER, SAME, 0, "the least")                   \
  X(REDUCE_MAX, "reduce_max", NUMBER, SAME, 0, "the greatest")                \
  X(REDUCE_AND, "reduce_and", INTEGER, SAME, 0, "bit by bit")                 \
  X(REDUCE_OR, "reduce_or", INTEGER, SAME, 0, "bit by bit")                   \
  X(REDUCE_XOR, "reduce_xor", INTEGER, SAME, 0, "bit by bit")                 \
  X(SCAN_ADD, "scan_add", NUMBER, SAME, 0, "of this lane and those below it") \
  X(SCAN_MUL, "scan_mul", NUMBER, SAME, 0, "of this lane and those below it") \
  X(SCAN_MIN, "scan_min", NUMBER, SAME, 0, "of this lane and those below it") \
  X(SCAN_MAX, "scan_max", NUMBER, SAME, 0, "of this lane and those below it") \
  X(SCAN_EXCLUSIVE_ADD, "scan_exclusive_add", NUMBER, SAME, 0,                \
    "of the lanes "                                                           \
    "below it; 0 for the first")
// Order of a reduction: for d in 16, 8, 4, 2, 1: x = x op (x of lane ^ d),
// the lower lane's on the left; one that takes no part holds the operation's
// neutral value (0, 1, all ones, the least or greatest; for floats -0 for add,
// 1, and the infinities). Order of a scan: for d in 1, 2, 4, 8, 16: lanes from
// d on become (x of lane - d) op x. An exclusive scan is the inclusive one of
// the lane below.

// X(NAME, "spelling", axes, "meaning"): what a thread knows of itself. Where
// axes is 1, .x, .y or .z follows. All are u32.
#define KILN_PROGRAM_IDS(X)                                             \
  X(GLOBAL_ID, "global_id", 1, "the thread's place in the work")        \
  X(LOCAL_ID, "local_id", 1, "its place in its block")                  \
  X(BLOCK_ID, "block_id", 1, "its block's place in the grid")           \
  X(BLOCK_SIZE, "block_size", 1, "threads in a block")                  \
  X(BLOCK_COUNT, "block_count", 1, "blocks in the grid")                \
  X(WORK_SIZE, "work_size", 1, "the work size, 1 where none is said")   \
  X(LOCAL_INDEX, "local_index", 0, "local_id as one number, x fastest") \
  X(LANE, "lane", 0, "local_index % 32")                                \
  X(SUBGROUP, "subgroup", 0, "local_index / 32")

#endif  // KILN_PROGRAM_OPERATORS_H_
