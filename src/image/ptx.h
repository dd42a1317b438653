// SPDX-License-Identifier: Apache-2.0
//
// image: the syntax tree of a PTX module, and the reader that makes it.
//
// Pure: text in, tree out, no I/O. Everything is plain arrays with counts and
// indices; a reader of the tree needs no search: every name in it is resolved
// (registers to an index into their function's `registers`, variables to an
// index into the module's `variables`, labels to one into their function's
// `labels`, and so on). The reader checks what a loader needs and ptxas
// refuses too; which instruction forms can be executed is not its business.
//
// Called by soft (which decodes the tree) and by image.c (which lists it).
#ifndef KILN_SRC_IMAGE_PTX_H_
#define KILN_SRC_IMAGE_PTX_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

// "No such thing" for every index below.
#define KILNI_PTX_NONE UINT32_MAX

// ---------------------------------------------------------------------------
// Words
// ---------------------------------------------------------------------------

// Base mnemonics: KILNI_PTX_OP_ADD ... (ptx_opcodes.inc).
typedef enum kilni_image_ptx_opcode_t {
#define KILNI_PTX_OPCODE(name, text, least, most) KILNI_PTX_OP_##name,
#include "image/ptx_opcodes.inc"
#undef KILNI_PTX_OPCODE
  KILNI_PTX_OPCODE_COUNT
} kilni_image_ptx_opcode_t;

// How the bits of a type are meant.
typedef enum kilni_image_ptx_class_t {
  KILNI_PTX_CLASS_NONE = 0,
  KILNI_PTX_CLASS_UNSIGNED,
  KILNI_PTX_CLASS_SIGNED,
  KILNI_PTX_CLASS_BITS,
  KILNI_PTX_CLASS_FLOAT,   // f16 f32 f64 bf16 tf32 and the small formats
  KILNI_PTX_CLASS_PACKED,  // two or more numbers in one word
  KILNI_PTX_CLASS_PREDICATE,
  KILNI_PTX_CLASS_OPAQUE  // .texref .samplerref .surfref
} kilni_image_ptx_class_t;

// name, text, bits, class. Types are the first modifiers: the type T and the
// modifier T have the same number (KILNI_PTX_TYPE_U32 == KILNI_PTX_MOD_U32).
#define KILNI_PTX_TYPES(X)                \
  X(U8, "u8", 8, UNSIGNED)                \
  X(U16, "u16", 16, UNSIGNED)             \
  X(U32, "u32", 32, UNSIGNED)             \
  X(U64, "u64", 64, UNSIGNED)             \
  X(S8, "s8", 8, SIGNED)                  \
  X(S16, "s16", 16, SIGNED)               \
  X(S32, "s32", 32, SIGNED)               \
  X(S64, "s64", 64, SIGNED)               \
  X(B8, "b8", 8, BITS)                    \
  X(B16, "b16", 16, BITS)                 \
  X(B32, "b32", 32, BITS)                 \
  X(B64, "b64", 64, BITS)                 \
  X(B128, "b128", 128, BITS)              \
  X(F16, "f16", 16, FLOAT)                \
  X(BF16, "bf16", 16, FLOAT)              \
  X(TF32, "tf32", 32, FLOAT)              \
  X(F32, "f32", 32, FLOAT)                \
  X(F64, "f64", 64, FLOAT)                \
  X(PRED, "pred", 1, PREDICATE)           \
  X(F16X2, "f16x2", 32, PACKED)           \
  X(BF16X2, "bf16x2", 32, PACKED)         \
  X(F32X2, "f32x2", 64, PACKED)           \
  X(U16X2, "u16x2", 32, PACKED)           \
  X(S16X2, "s16x2", 32, PACKED)           \
  X(U8X4, "u8x4", 32, PACKED)             \
  X(S8X4, "s8x4", 32, PACKED)             \
  X(E4M3, "e4m3", 8, FLOAT)               \
  X(E5M2, "e5m2", 8, FLOAT)               \
  X(E3M2, "e3m2", 6, FLOAT)               \
  X(E2M3, "e2m3", 6, FLOAT)               \
  X(E2M1, "e2m1", 4, FLOAT)               \
  X(UE8M0, "ue8m0", 8, FLOAT)             \
  X(UE4M3, "ue4m3", 8, FLOAT)             \
  X(E4M3X2, "e4m3x2", 16, PACKED)         \
  X(E5M2X2, "e5m2x2", 16, PACKED)         \
  X(E3M2X2, "e3m2x2", 16, PACKED)         \
  X(E2M3X2, "e2m3x2", 16, PACKED)         \
  X(E2M1X2, "e2m1x2", 8, PACKED)          \
  X(UE8M0X2, "ue8m0x2", 16, PACKED)       \
  X(E4M3X4, "e4m3x4", 32, PACKED)         \
  X(E5M2X4, "e5m2x4", 32, PACKED)         \
  X(E3M2X4, "e3m2x4", 32, PACKED)         \
  X(E2M3X4, "e2m3x4", 32, PACKED)         \
  X(E2M1X4, "e2m1x4", 16, PACKED)         \
  X(U4, "u4", 4, UNSIGNED)                \
  X(S4, "s4", 4, SIGNED)                  \
  X(U2, "u2", 2, UNSIGNED)                \
  X(S2, "s2", 2, SIGNED)                  \
  X(B1, "b1", 1, BITS)                    \
  X(B4X16, "b4x16", 64, PACKED)           \
  X(B4X16_P64, "b4x16_p64", 128, PACKED)  \
  X(B6X16_P32, "b6x16_p32", 128, PACKED)  \
  X(B6P2X16, "b6p2x16", 128, PACKED)      \
  X(TEXREF, "texref", 64, OPAQUE)         \
  X(SAMPLERREF, "samplerref", 64, OPAQUE) \
  X(SURFREF, "surfref", 64, OPAQUE)

// Modifiers in the order types, then ptx_modifiers.inc (by name).
typedef enum kilni_image_ptx_modifier_t {
  KILNI_PTX_MOD_NONE = 0,
#define KILNI_PTX_TYPE_MOD(name, text, bits, class_) KILNI_PTX_MOD_##name,
  KILNI_PTX_TYPES(KILNI_PTX_TYPE_MOD)
#undef KILNI_PTX_TYPE_MOD
      KILNI_PTX_MODIFIER_TYPES_END,  // above every type, itself no modifier
#define KILNI_PTX_MODIFIER(name, text) KILNI_PTX_MOD_##name,
#include "image/ptx_modifiers.inc"
#undef KILNI_PTX_MODIFIER
  KILNI_PTX_MODIFIER_COUNT
} kilni_image_ptx_modifier_t;

typedef enum kilni_image_ptx_type_t {
  KILNI_PTX_TYPE_NONE = 0,
#define KILNI_PTX_TYPE_ENUM(name, text, bits, class_) \
  KILNI_PTX_TYPE_##name = KILNI_PTX_MOD_##name,
  KILNI_PTX_TYPES(KILNI_PTX_TYPE_ENUM)
#undef KILNI_PTX_TYPE_ENUM
} kilni_image_ptx_type_t;

typedef enum kilni_image_ptx_space_t {
  KILNI_PTX_SPACE_NONE = 0,  // generic where an address space is meant
  KILNI_PTX_SPACE_REG,
  KILNI_PTX_SPACE_CONST,
  KILNI_PTX_SPACE_GLOBAL,
  KILNI_PTX_SPACE_LOCAL,
  KILNI_PTX_SPACE_PARAM,
  KILNI_PTX_SPACE_SHARED,
  KILNI_PTX_SPACE_TEX  // the deprecated .tex variables
} kilni_image_ptx_space_t;

typedef enum kilni_image_ptx_linkage_t {
  KILNI_PTX_LINKAGE_NONE = 0,  // private to the module
  KILNI_PTX_LINKAGE_VISIBLE,
  KILNI_PTX_LINKAGE_EXTERN,
  KILNI_PTX_LINKAGE_WEAK,
  KILNI_PTX_LINKAGE_COMMON
} kilni_image_ptx_linkage_t;

// Special registers: name, text without '%', components (1: a scalar; 4: it
// has .x .y .z .w), type.
#define KILNI_PTX_SREGS(X)                                                 \
  X(TID, "tid", 4, U32)                                                    \
  X(NTID, "ntid", 4, U32)                                                  \
  X(CTAID, "ctaid", 4, U32)                                                \
  X(NCTAID, "nctaid", 4, U32)                                              \
  X(LANEID, "laneid", 1, U32)                                              \
  X(WARPID, "warpid", 1, U32)                                              \
  X(NWARPID, "nwarpid", 1, U32)                                            \
  X(SMID, "smid", 1, U32)                                                  \
  X(NSMID, "nsmid", 1, U32)                                                \
  X(GRIDID, "gridid", 1, U64)                                              \
  X(IS_EXPLICIT_CLUSTER, "is_explicit_cluster", 1, PRED)                   \
  X(CLUSTERID, "clusterid", 4, U32)                                        \
  X(NCLUSTERID, "nclusterid", 4, U32)                                      \
  X(CLUSTER_CTAID, "cluster_ctaid", 4, U32)                                \
  X(CLUSTER_NCTAID, "cluster_nctaid", 4, U32)                              \
  X(CLUSTER_CTARANK, "cluster_ctarank", 1, U32)                            \
  X(CLUSTER_NCTARANK, "cluster_nctarank", 1, U32)                          \
  X(LANEMASK_EQ, "lanemask_eq", 1, U32)                                    \
  X(LANEMASK_LE, "lanemask_le", 1, U32)                                    \
  X(LANEMASK_LT, "lanemask_lt", 1, U32)                                    \
  X(LANEMASK_GE, "lanemask_ge", 1, U32)                                    \
  X(LANEMASK_GT, "lanemask_gt", 1, U32)                                    \
  X(CLOCK, "clock", 1, U32)                                                \
  X(CLOCK_HI, "clock_hi", 1, U32)                                          \
  X(CLOCK64, "clock64", 1, U64)                                            \
  X(PM, "pm", 1, U32)         /* operand.index: 0 to 7 */                  \
  X(PM_64, "pm_64", 1, U64)   /* operand.index: 0 to 7 */                  \
  X(ENVREG, "envreg", 1, B32) /* operand.index: 0 to 31 */                 \
  X(GLOBALTIMER, "globaltimer", 1, U64)                                    \
  X(GLOBALTIMER_LO, "globaltimer_lo", 1, U32)                              \
  X(GLOBALTIMER_HI, "globaltimer_hi", 1, U32)                              \
  X(RESERVED_SMEM_OFFSET_BEGIN, "reserved_smem_offset_begin", 1, B32)      \
  X(RESERVED_SMEM_OFFSET_END, "reserved_smem_offset_end", 1, B32)          \
  X(RESERVED_SMEM_OFFSET_CAP, "reserved_smem_offset_cap", 1, B32)          \
  X(RESERVED_SMEM_OFFSET, "reserved_smem_offset", 1, B32) /* index 0, 1 */ \
  X(TOTAL_SMEM_SIZE, "total_smem_size", 1, U32)                            \
  X(AGGR_SMEM_SIZE, "aggr_smem_size", 1, U32)                              \
  X(DYNAMIC_SMEM_SIZE, "dynamic_smem_size", 1, U32)                        \
  X(CURRENT_GRAPH_EXEC, "current_graph_exec", 1, U64)

typedef enum kilni_image_ptx_sreg_t {
#define KILNI_PTX_SREG_ENUM(name, text, components, type) KILNI_PTX_SREG_##name,
  KILNI_PTX_SREGS(KILNI_PTX_SREG_ENUM)
#undef KILNI_PTX_SREG_ENUM
      KILNI_PTX_SREG_COUNT
} kilni_image_ptx_sreg_t;

// ---------------------------------------------------------------------------
// Operands
// ---------------------------------------------------------------------------

typedef enum kilni_image_ptx_operand_kind_t {
  // Only where an optional part is absent: operand 3 of a call.
  KILNI_PTX_OPERAND_NONE = 0,
  // `index` into registers; `negated` for `!p` and for the `-a` of video
  // instructions; `component` 0 to 3 for `v.x` to `v.w` of a vector register.
  KILNI_PTX_OPERAND_REGISTER,
  // `value` has the bits, encoded by `immediate`.
  KILNI_PTX_OPERAND_IMMEDIATE,
  // `index` is a kilni_image_ptx_sreg_t, `component` 0 to 3 or KILNI_PTX_WHOLE,
  // `value` the number after %pm and %envreg.
  KILNI_PTX_OPERAND_SPECIAL,
  // The address of variables[index] plus `value` (signed bytes), as a value
  // in the variable's own space. In ld.param and st.param see ADDRESS.
  KILNI_PTX_OPERAND_VARIABLE,
  // The address of functions[index].
  KILNI_PTX_OPERAND_FUNCTION,
  // [base + value]: `base` defines what `index` is; `value` is signed bytes.
  // `first`, `count` are further parts inside the brackets ([tex, {x, y}]).
  KILNI_PTX_OPERAND_ADDRESS,
  // {a, b, ...}: `count` operands at module->operands[first].
  KILNI_PTX_OPERAND_VECTOR,
  // p|q: two operands at `first`; either may be a SINK, and the first a VECTOR
  // ({a, b, c, d}|p of texture loads).
  KILNI_PTX_OPERAND_PAIR,
  // _ : no destination.
  KILNI_PTX_OPERAND_SINK,
  // `index` into the function's labels.
  KILNI_PTX_OPERAND_LABEL,
  // `index` into the function's tables (brx.idx targets, call targets and
  // prototypes).
  KILNI_PTX_OPERAND_TABLE,
  // (a, b): the return list and the argument list of a call.
  KILNI_PTX_OPERAND_LIST
} kilni_image_ptx_operand_kind_t;

typedef enum kilni_image_ptx_immediate_t {
  KILNI_PTX_IMMEDIATE_S64 = 0,  // `value`, two's complement
  KILNI_PTX_IMMEDIATE_U64,      // written with U, or too large for S64
  KILNI_PTX_IMMEDIATE_F32,      // 0fXXXXXXXX: bits in the low half of `value`
  KILNI_PTX_IMMEDIATE_F64       // 0d... or a decimal float: all of `value`
} kilni_image_ptx_immediate_t;

typedef enum kilni_image_ptx_base_t {
  KILNI_PTX_BASE_NONE = 0,  // [imm]
  KILNI_PTX_BASE_REGISTER,  // `index` into the function's registers
  KILNI_PTX_BASE_VARIABLE,  // `index` into the module's variables
  KILNI_PTX_BASE_FUNCTION   // `index` into the module's functions
} kilni_image_ptx_base_t;

#define KILNI_PTX_WHOLE 0xff  // no component selected

// One operand. thread-safe
typedef struct kilni_image_ptx_operand_t {
  uint8_t kind;       // kilni_image_ptx_operand_kind_t
  uint8_t component;  // 0 to 3, or KILNI_PTX_WHOLE
  uint8_t negated;    // 0 or 1
  uint8_t immediate;  // kilni_image_ptx_immediate_t
  uint8_t base;       // kilni_image_ptx_base_t
  uint8_t selector;   // video .b0 .. .h1: kilni_image_ptx_selector_t
  uint16_t count;     // children
  uint32_t index;
  uint32_t first;  // children: module->operands[first .. first + count - 1]
  uint64_t value;
} kilni_image_ptx_operand_t;

typedef enum kilni_image_ptx_selector_t {
  KILNI_PTX_SELECT_NONE = 0,
  KILNI_PTX_SELECT_B0,
  KILNI_PTX_SELECT_B1,
  KILNI_PTX_SELECT_B2,
  KILNI_PTX_SELECT_B3,
  KILNI_PTX_SELECT_H0,
  KILNI_PTX_SELECT_H1,
  // Several (.b3210, .h10): in `value` the digits, 4 bits each, and from bit
  // 16 on how many.
  KILNI_PTX_SELECT_BYTES,
  KILNI_PTX_SELECT_HALVES
} kilni_image_ptx_selector_t;

// ---------------------------------------------------------------------------
// Instructions
// ---------------------------------------------------------------------------

// One distinct spelling of opcode and modifiers in a module, so that work on
// spellings is done once per form and not once per instruction. thread-safe
typedef struct kilni_image_ptx_form_t {
  uint16_t opcode;            // kilni_image_ptx_opcode_t
  uint16_t modifier_count;    //
  uint32_t first_modifier;    //
  const uint16_t* modifiers;  // kilni_image_ptx_modifier_t, in order as written
  const char* text;           // "mad.lo.s32"
  uint32_t line;              // of its first use
  uint32_t text_offset;       // (the reader's own)
} kilni_image_ptx_form_t;

typedef enum kilni_image_ptx_guard_t {
  KILNI_PTX_GUARD_NONE = 0,
  KILNI_PTX_GUARD_TRUE,  // @p
  KILNI_PTX_GUARD_FALSE  // @!p
} kilni_image_ptx_guard_t;

// One instruction. thread-safe
//
// `operands[0 .. operand_count - 1]` are its operands in order, destination
// first, with these two canonical shapes:
//
//   call  always four: LIST of returns (count 0 if none), callee (FUNCTION or
//         REGISTER), LIST of arguments (count 0 if none), TABLE (the
//         prototype or the list of targets) or NONE
//   brx   two: the index register, TABLE of kind BRANCH_TARGETS
typedef struct kilni_image_ptx_instruction_t {
  uint32_t form;    // into module->forms
  uint16_t opcode;  // kilni_image_ptx_opcode_t, the form's
  uint8_t guard;    // kilni_image_ptx_guard_t
  uint8_t operand_count;
  uint32_t guard_register;  // KILNI_PTX_NONE without a guard
  uint32_t first_operand;   // into module->operands
  uint32_t line;            // 1 is the first
  uint32_t column;          // 1 is the first; of the guard or the mnemonic
  uint32_t location;        // into module->locations, or KILNI_PTX_NONE
  uint32_t reserved;
} kilni_image_ptx_instruction_t;

// What `.loc` states of the instructions after it. thread-safe
typedef struct kilni_image_ptx_location_t {
  uint32_t
      file;  // the number `.file` gave it; see kilni_image_ptx_module_t.files
  uint32_t line;
  uint32_t column;
  // Where the function of this was inlined; 0: it was not.
  uint32_t inlined_file;
  uint32_t inlined_line;
} kilni_image_ptx_location_t;

// One `.file`. thread-safe
typedef struct kilni_image_ptx_file_t {
  uint32_t number;
  uint32_t name_offset;  // (the reader's own)
  const char* name;
} kilni_image_ptx_file_t;

// ---------------------------------------------------------------------------
// Variables and functions
// ---------------------------------------------------------------------------

typedef enum kilni_image_ptx_target_kind_t {
  KILNI_PTX_RELOC_VARIABLE = 0,
  KILNI_PTX_RELOC_FUNCTION
} kilni_image_ptx_target_kind_t;

// An address inside an initialiser. thread-safe
//
// The `size` bytes at `offset` are (address of target + addend), in generic
// form if `generic`, as an offset in the target's own space otherwise; shifted
// right by `shift` bits first (mask(...) forms, which take one byte: size is
// then 1).
typedef struct kilni_image_ptx_relocation_t {
  uint64_t offset;
  int64_t addend;
  uint32_t index;  // of the variable or function
  uint8_t kind;    // kilni_image_ptx_target_kind_t
  uint8_t generic;
  uint8_t size;  // 1, 2, 4 or 8
  uint8_t shift;
} kilni_image_ptx_relocation_t;

#define KILNI_PTX_MAX_DIMENSIONS 8

// A variable or a parameter. thread-safe
typedef struct kilni_image_ptx_variable_t {
  const char* name;   // "" for a parameter without one
  uint32_t function;  // its function, or KILNI_PTX_NONE at module scope
  uint8_t space;      // kilni_image_ptx_space_t
  uint8_t linkage;    // kilni_image_ptx_linkage_t
  uint8_t type;       // kilni_image_ptx_type_t of an element's component
  uint8_t vector;     // 1, 2 or 4
  uint32_t align;     // bytes; the natural one where none was written
  uint32_t line;
  uint32_t column;
  uint8_t dimension_count;  // 0: no array
  uint8_t unsized;          // 1: the first dimension is `[]` (size_bytes 0)
  uint8_t is_pointer;       // parameters: `.ptr`
  uint8_t pointer_space;    // kilni_image_ptx_space_t; NONE is generic
  uint32_t pointer_align;   // 0 where not written
  uint64_t dimensions[KILNI_PTX_MAX_DIMENSIONS];
  uint64_t size_bytes;      // whole variable
  uint32_t register_index;  // space REG (.func parameters): the register
  uint8_t managed;          // .attribute(.managed)
  uint8_t unified;          // .attribute(.unified(...))
  uint8_t has_initialiser;
  uint8_t declared_only;  // .extern without a definition in this module
  const uint8_t* bytes;   // size_bytes of them, or NULL (all zero)
  uint64_t byte_count;    // leading bytes present in `bytes`; the rest is zero
  uint32_t first_relocation;  // into module->relocations
  uint32_t relocation_count;
  uint64_t bytes_offset;  // (the reader's own)
  uint32_t name_id;       // (the reader's own)
  uint32_t reserved;
} kilni_image_ptx_variable_t;

// A register that some instruction names. thread-safe
//
// Registers that are declared and never used have no entry.
typedef struct kilni_image_ptx_register_t {
  const char* name;  // "%r7"
  uint8_t type;      // kilni_image_ptx_type_t
  uint8_t vector;    // 1, 2 or 4
  uint16_t reserved;
  uint32_t line;     // of its declaration
  uint32_t name_id;  // (the reader's own)
  uint32_t reserved2;
} kilni_image_ptx_register_t;

// A label. thread-safe
typedef struct kilni_image_ptx_label_t {
  const char* name;
  // Of the instruction after it, counted from the function's first; equal to
  // instruction_count for a label at the end.
  uint32_t instruction;
  uint32_t line;
  uint32_t name_id;  // (the reader's own)
  uint32_t reserved;
} kilni_image_ptx_label_t;

typedef enum kilni_image_ptx_table_kind_t {
  KILNI_PTX_TABLE_BRANCH_TARGETS = 0,  // entries: labels of the function
  KILNI_PTX_TABLE_CALL_TARGETS,        // entries: functions of the module
  KILNI_PTX_TABLE_PROTOTYPE            // variables: returns, then parameters
} kilni_image_ptx_table_kind_t;

// What a .branchtargets, .calltargets or .callprototype declares. thread-safe
typedef struct kilni_image_ptx_table_t {
  const char* name;
  uint32_t kind;  // kilni_image_ptx_table_kind_t
  uint32_t line;
  // Targets: module->entries[first .. first + count - 1].
  uint32_t first;
  uint32_t count;
  // Prototype: module->variables, space PARAM or REG.
  uint32_t first_return;
  uint32_t return_count;
  uint32_t first_parameter;
  uint32_t parameter_count;
  uint8_t noreturn;
  uint8_t variadic;  // .unsized last parameter or abi-preserve: reserved, 0
  uint16_t reserved;
  uint32_t name_id;  // (the reader's own)
} kilni_image_ptx_table_t;

// A kernel or a device function. thread-safe
//
// One entry per name: a declaration and the definition of it share theirs.
typedef struct kilni_image_ptx_function_t {
  const char* name;
  uint8_t is_entry;
  uint8_t linkage;  // kilni_image_ptx_linkage_t
  uint8_t is_defined;
  uint8_t noreturn;
  uint32_t line;
  uint32_t column;

  // Into module->variables. Of the definition where there is one.
  uint32_t first_return;
  uint32_t return_count;
  uint32_t first_parameter;
  uint32_t parameter_count;

  // Performance directives; 0 where not written. A written dimension that is
  // left out is 1.
  uint32_t reqntid[3];
  uint32_t maxntid[3];
  uint32_t reqnctapercluster[3];
  uint32_t maxclusterrank;
  uint32_t minnctapersm;
  uint32_t maxnctapersm;
  uint32_t maxnreg;
  uint8_t explicit_cluster;
  uint8_t blocks_are_clusters;
  uint16_t reserved;

  // Variables of the body (.local, .shared, .param, .const, .global), all
  // scopes. A recursive function has one .local of each per activation.
  uint32_t first_variable;
  uint32_t variable_count;

  uint32_t first_instruction;  // into module->instructions
  uint32_t instruction_count;
  uint32_t first_register;
  uint32_t register_count;
  uint32_t first_label;
  uint32_t label_count;
  uint32_t first_table;
  uint32_t table_count;

  // The same as pointers, for reading.
  const kilni_image_ptx_instruction_t* instructions;
  const kilni_image_ptx_register_t* registers;
  const kilni_image_ptx_label_t* labels;
  const kilni_image_ptx_table_t* tables;

  uint32_t name_id;  // (the reader's own)
  uint32_t reserved2;
} kilni_image_ptx_function_t;

// ---------------------------------------------------------------------------
// The module
// ---------------------------------------------------------------------------

// Upper bounds of what a text may contain: name, default, what it counts. One
// that is exceeded is LIMIT_EXCEEDED, with its name and the place.
#define KILNI_PTX_LIMITS(X)                                          \
  X(input_bytes, 256u << 20, "bytes of text")                        \
  X(identifier_bytes, 8192, "bytes of one identifier")               \
  X(string_bytes, 65536, "bytes of one string")                      \
  X(identifiers, 4u << 20, "distinct identifiers")                   \
  X(nesting, 64, "scopes, brackets or operators inside one another") \
  X(functions, 65536, "functions")                                   \
  X(variables, 1u << 20, "variables and parameters")                 \
  X(parameters, 4096, "parameters of one function")                  \
  X(registers, 1u << 20, "registers declared in one function")       \
  X(labels, 1u << 20, "labels of one function")                      \
  X(instructions, 16u << 20, "instructions of a module")             \
  X(operands, 64u << 20, "operands of a module")                     \
  X(instruction_operands, 16, "operands of one instruction")         \
  X(vector_elements, 1024, "elements between one pair of braces")    \
  X(modifiers, 32, "modifiers of one instruction")                   \
  X(forms, 65536, "distinct instruction spellings")                  \
  X(variable_bytes, 1u << 30, "bytes of one variable")               \
  X(initialiser_bytes, 256u << 20, "initialised bytes of a module")  \
  X(relocations, 4u << 20, "addresses in initialisers")              \
  X(locations, 16u << 20, ".loc directives")                         \
  X(files, 65536, ".file directives")

// Limits of one parse. thread-compatible
//
// Zero in any field is its default.
typedef struct kilni_image_ptx_limits_t {
#define KILNI_PTX_LIMIT_FIELD(name, value, text) uint64_t name;
  KILNI_PTX_LIMITS(KILNI_PTX_LIMIT_FIELD)
#undef KILNI_PTX_LIMIT_FIELD
} kilni_image_ptx_limits_t;

// A module: the tree and everything it points at. thread-safe
//
// Reference-counted. Completed by kilni_image_ptx_module_create and never
// changed afterwards. Refers to nothing of the text it was made from.
typedef struct kilni_image_ptx_module_t {
  uint32_t version_major;
  uint32_t version_minor;
  uint32_t target_sm;  // 75 of "sm_75"
  char target_suffix;  // 'a', 'f' or 0
  uint8_t texmode_independent;
  uint8_t debug;  // `debug` in .target
  uint8_t map_f64_to_f32;
  uint32_t address_size;  // 64 or 32
  char target_text[32];   // "sm_90a"

  kilni_image_ptx_function_t* functions;
  uint32_t function_count;
  uint32_t variable_count;
  kilni_image_ptx_variable_t* variables;  // all: module, parameters, bodies
  kilni_image_ptx_instruction_t* instructions;
  kilni_image_ptx_operand_t* operands;
  uint32_t instruction_count;
  uint32_t operand_count;
  kilni_image_ptx_form_t* forms;
  kilni_image_ptx_register_t* registers;
  kilni_image_ptx_label_t* labels;
  kilni_image_ptx_table_t* tables;
  uint32_t form_count;
  uint32_t register_count;
  uint32_t label_count;
  uint32_t table_count;
  uint32_t* entries;  // of the tables
  kilni_image_ptx_relocation_t* relocations;
  kilni_image_ptx_location_t* locations;
  kilni_image_ptx_file_t* files;
  uint32_t entry_count;
  uint32_t relocation_count;
  uint32_t location_count;
  uint32_t file_count;
} kilni_image_ptx_module_t;

// The limits that zero fields select.
kilni_image_ptx_limits_t kilni_image_ptx_limits_default(void);

// Reads `text` (a single NUL at its end is ignored). `name` is what messages
// call the text, e.g. the file's name; NULL is "PTX". `limits` may be NULL.
//
//   BAD_DATA        with `name`, line and column in the message, the line
//                   itself and a caret below it as annotations, and a Fix
//   UNSUPPORTED     a PTX version below 6.0 or above 9.x
//   LIMIT_EXCEEDED  one of `limits`
//   OUT_OF_MEMORY   bare
//
// `*out_module` is NULL on failure.
kiln_status_t kilni_image_ptx_module_create(
    kiln_bytes_view_t text, const char* name,
    const kilni_image_ptx_limits_t* limits, kiln_allocator_t allocator,
    kilni_image_ptx_module_t** out_module);

// One reference more, one less; the last one ends the module and everything in
// it. From any thread. NULL is accepted.
void kilni_image_ptx_module_retain(kilni_image_ptx_module_t* module);
void kilni_image_ptx_module_release(kilni_image_ptx_module_t* module);

// Where its memory comes from, which must last as long as it.
kiln_allocator_t kilni_image_ptx_module_allocator(
    const kilni_image_ptx_module_t* module);

// The index of a function or of a variable at module scope by name;
// KILNI_PTX_NONE if there is none.
uint32_t kilni_image_ptx_function_find(const kilni_image_ptx_module_t* module,
                                       kiln_string_view_t name);
uint32_t kilni_image_ptx_variable_find(const kilni_image_ptx_module_t* module,
                                       kiln_string_view_t name);

// Words as text, without dot or '%'. Static; "?" for a value that is none.
const char* kilni_image_ptx_opcode_text(uint32_t opcode);
const char* kilni_image_ptx_modifier_text(uint32_t modifier);
const char* kilni_image_ptx_sreg_text(uint32_t sreg);
const char* kilni_image_ptx_space_text(
    uint32_t space);  // "global"; "" for NONE

// Facts about words; 0 or NONE for a value that is none.
uint32_t kilni_image_ptx_type_bits(uint32_t type);
uint32_t kilni_image_ptx_type_bytes(uint32_t type);  // rounded up; 1 for .pred
kilni_image_ptx_class_t kilni_image_ptx_type_class(uint32_t type);
uint32_t kilni_image_ptx_sreg_components(uint32_t sreg);  // 1 or 4
uint32_t kilni_image_ptx_sreg_type(uint32_t sreg);  // kilni_image_ptx_type_t

// A modifier is a type exactly if it is below KILNI_PTX_MODIFIER_TYPES_END.
static inline bool kilni_image_ptx_modifier_is_type(uint32_t modifier) {
  return modifier != 0 && modifier < KILNI_PTX_MODIFIER_TYPES_END;
}

// The spelling of an instruction, e.g. "mad.lo.s32". Borrowed.
static inline const char* kilni_image_ptx_instruction_text(
    const kilni_image_ptx_module_t* module,
    const kilni_image_ptx_instruction_t* ins) {
  return module->forms[ins->form].text;
}

static inline const kilni_image_ptx_form_t* kilni_image_ptx_instruction_form(
    const kilni_image_ptx_module_t* module,
    const kilni_image_ptx_instruction_t* ins) {
  return &module->forms[ins->form];
}

// The operands of an instruction, and the children of an operand; NULL where
// there is none.
static inline const kilni_image_ptx_operand_t*
kilni_image_ptx_instruction_operands(const kilni_image_ptx_module_t* module,
                                     const kilni_image_ptx_instruction_t* ins) {
  return ins->operand_count ? &module->operands[ins->first_operand] : NULL;
}

static inline const kilni_image_ptx_operand_t* kilni_image_ptx_operand_children(
    const kilni_image_ptx_module_t* module,
    const kilni_image_ptx_operand_t* operand) {
  return operand->count ? &module->operands[operand->first] : NULL;
}

#endif  // KILN_SRC_IMAGE_PTX_H_
