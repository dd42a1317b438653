// SPDX-License-Identifier: Apache-2.0
//
// cli: element types, shapes and arrays.
#ifndef KILN_SRC_CLI_CLI_ARRAY_H_
#define KILN_SRC_CLI_CLI_ARRAY_H_

#include "cli/cli_buffer.h"

// name, text, bytes, kind ('u' unsigned, 'i' signed, 'f' float, 'b' truth),
// numpy's name (NULL: numpy has none)
#define KILNI_CLI_TYPES(X)       \
  X(BOOL, "bool", 1, 'b', "|b1") \
  X(U8, "u8", 1, 'u', "|u1")     \
  X(I8, "i8", 1, 'i', "|i1")     \
  X(U16, "u16", 2, 'u', "<u2")   \
  X(I16, "i16", 2, 'i', "<i2")   \
  X(U32, "u32", 4, 'u', "<u4")   \
  X(I32, "i32", 4, 'i', "<i4")   \
  X(U64, "u64", 8, 'u', "<u8")   \
  X(I64, "i64", 8, 'i', "<i8")   \
  X(F16, "f16", 2, 'f', "<f2")   \
  X(BF16, "bf16", 2, 'f', NULL)  \
  X(F32, "f32", 4, 'f', "<f4")   \
  X(F64, "f64", 8, 'f', "<f8")

typedef enum kilni_cli_type_t {
  KILNI_CLI_TYPE_NONE = 0,
#define KILNI_CLI_TYPE_ENUM(name, text, bytes, kind, numpy) \
  KILNI_CLI_TYPE_##name,
  KILNI_CLI_TYPES(KILNI_CLI_TYPE_ENUM)
#undef KILNI_CLI_TYPE_ENUM
      KILNI_CLI_TYPE_COUNT
} kilni_cli_type_t;

// One row of the table above. thread-safe
typedef struct kilni_cli_type_info_t {
  const char* text;
  uint32_t bytes;
  char kind;
  const char* numpy;
} kilni_cli_type_info_t;

const kilni_cli_type_info_t* kilni_cli_type_info(kilni_cli_type_t type);
// The type named exactly `text`, or NONE.
kilni_cli_type_t kilni_cli_type_find(const char* text, size_t size);
// All names, for messages.
const char* kilni_cli_type_names(void);

#define KILNI_CLI_MAX_RANK       8
#define KILNI_CLI_MAX_DATA_BYTES ((uint64_t)1 << 34)

// Element type and extents. thread-compatible
typedef struct kilni_cli_shape_t {
  kilni_cli_type_t type;
  uint32_t rank;  // 0: one element
  uint64_t dims[KILNI_CLI_MAX_RANK];
  uint64_t count;  // product of dims
  uint64_t bytes;  // count times the element's size
} kilni_cli_shape_t;

// Computes count and bytes of a shape from its type, rank and dims.
// LIMIT_EXCEEDED above KILNI_CLI_MAX_DATA_BYTES.
bool kilni_cli_shape_finish(kilni_cli_shape_t* shape, kilni_cli_error_t* error);
// "f32[2,3]" into `out`.
void kilni_cli_shape_text(const kilni_cli_shape_t* shape, char* out,
                          size_t capacity);

// A shape with its bytes, in C order, little-endian. one-thread
typedef struct kilni_cli_array_t {
  kilni_cli_shape_t shape;
  kilni_cli_buffer_t data;  // shape.bytes bytes
} kilni_cli_array_t;

void kilni_cli_array_deinit(kilni_cli_array_t* array);

#endif  // KILN_SRC_CLI_CLI_ARRAY_H_
