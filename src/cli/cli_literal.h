// SPDX-License-Identifier: Apache-2.0
//
// cli: the values of `kiln run`'s options. Pure: text in, values out.
#ifndef KILN_SRC_CLI_CLI_LITERAL_H_
#define KILN_SRC_CLI_CLI_LITERAL_H_

#include "cli/cli_array.h"

// A typed scalar. thread-compatible
typedef struct kilni_cli_scalar_t {
  kilni_cli_type_t type;
  uint32_t bytes;
  uint64_t bits;  // the low `bytes` bytes, little-endian
} kilni_cli_scalar_t;

// The right side of --arg. thread-compatible
typedef struct kilni_cli_value_t {
  bool is_length;             // len(P)
  kilni_cli_scalar_t scalar;  // else this
  const char* parameter;      // P of len(P), inside the text
  size_t parameter_size;
} kilni_cli_value_t;

// `1024i32`, `-3i64`, `0x1fu64`, `2.5f32`, `true`, `false`, `len(P)`.
bool kilni_cli_value_parse(const char* text, kilni_cli_value_t* out,
                           kilni_cli_error_t* error);

enum { KILNI_CLI_MAX_STRUCT_BYTES = 32764 };  // of a kernel's parameters

// A struct of numbers, `{2.5f32,1i32,{1u8,2u8}}`, as C lays it out: each at a
// multiple of its size, an inner struct at that of its largest member, zeroes
// between and after them. The bytes go to the end of `out`, which is empty.
bool kilni_cli_struct_parse(const char* text, kilni_cli_buffer_t* out,
                            kilni_cli_error_t* error);

// Called for each number in it, with the offset of its first byte; false, with
// the error, stops reading.
typedef bool kilni_cli_member_fn_t(void* user, uint32_t offset,
                                   kilni_cli_type_t type);

// The same with `visit`, which may be NULL.
bool kilni_cli_struct_visit(const char* text, kilni_cli_buffer_t* out,
                            kilni_cli_member_fn_t* visit, void* user,
                            kilni_cli_error_t* error);

// True for a value with an explicit type, as those above.
bool kilni_cli_value_is_typed(const char* text);

// A number without a type, `1024`, `-3`, `2.5`, as one of `type`.
bool kilni_cli_value_parse_as(const char* text, kilni_cli_type_t type,
                              kilni_cli_scalar_t* out,
                              kilni_cli_error_t* error);

// `count` as an integer of `bytes` bytes: OUT_OF_RANGE if it does not fit.
bool kilni_cli_scalar_length(uint64_t count, uint32_t bytes, bool is_signed,
                             kilni_cli_scalar_t* out, kilni_cli_error_t* error);

// `P=REST`: the part before the first '=' and the part after it. `option` is
// for the message.
bool kilni_cli_split_assignment(const char* option, const char* text,
                                size_t* out_name_size, const char** out_rest,
                                kilni_cli_error_t* error);

// How the type and shape after a file's name are given.
typedef enum kilni_cli_spec_kind_t {
  KILNI_CLI_SPEC_NONE = 0,  // FILE
  KILNI_CLI_SPEC_TYPE,      // FILE:f32, for raw input
  KILNI_CLI_SPEC_SHAPE,     // FILE:f32[2,3]
  KILNI_CLI_SPEC_COPY       // FILE:@P
} kilni_cli_spec_kind_t;

// `FILE`, `FILE:TYPE`, `FILE:TYPE[N,...]` or `FILE:@P`. thread-compatible
typedef struct kilni_cli_spec_t {
  kilni_cli_spec_kind_t kind;
  size_t path_size;         // FILE is the first path_size bytes of the text
  kilni_cli_shape_t shape;  // TYPE: only its type; SHAPE: all of it
  const char* copied;       // COPY: the parameter, up to the text's end
  bool is_type_written;     // by the user, and no program's own
} kilni_cli_spec_t;

bool kilni_cli_spec_parse(const char* text, kilni_cli_spec_t* out,
                          kilni_cli_error_t* error);

// `X`, `X,Y` or `X,Y,Z`, each 1 to 2^32-1; missing ones are 1.
bool kilni_cli_dims_parse(const char* option, const char* text, uint32_t out[3],
                          kilni_cli_error_t* error);

// A decimal or 0x number that is the whole of `text`.
bool kilni_cli_u64_parse(const char* text, size_t size, uint64_t* out);

#endif  // KILN_SRC_CLI_CLI_LITERAL_H_
