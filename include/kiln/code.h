// SPDX-License-Identifier: Apache-2.0
//
// image: device code of any form, as one type.
//
// The output of compilers, the input and output of linkers, the contents of
// caches, and what devices load: bytes, their format, and associated names.
#ifndef KILN_CODE_H_
#define KILN_CODE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/image.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Device code. thread-safe
//
// Reference-counted and immutable, but for what it once reads of itself.
typedef struct kiln_code_t kiln_code_t;

// A name in the source and its name in the code. thread-compatible
typedef struct kiln_code_name_t {
  const char* expression;  // as requested: "add<float>"
  const char* lowered;     // in the code: "_Z3addIfEvPT_"
} kiln_code_name_t;

// How code is made from bytes. thread-compatible
//
// Zero in any field is its default. Everything is copied.
typedef struct kiln_code_options_t {
  uint32_t struct_size;  // sizeof(kiln_code_options_t)
  uint32_t format;       // KILN_CODE_FORMAT_*. Default: detected from the
                         // bytes.

  // What messages call it, e.g. the file. Default: "code".
  const char* name;

  // The architecture: "sm_90", "compute_75". Default: "", unknown.
  const char* arch;

  const kiln_code_name_t* names;
  uint32_t name_count;

  // The CUDA release of the tool that made it: 13000 is 13.0. Default: 0,
  // unknown.
  uint32_t producer_line;

  const kiln_allocator_t* allocator;  // Default: the C library's.
} kiln_code_options_t;

// All defaults. Since 0.1.
static inline kiln_code_options_t kiln_code_options_default(void) {
  kiln_code_options_t options = {
      (uint32_t)sizeof(options), 0, NULL, NULL, NULL, 0, 0, NULL};
  return options;
}

// Makes code from a copy of `bytes`. `options` may be NULL. Checks only the
// format; reading, linking or loading it checks whether the code is complete.
//
//   BAD_DATA          the format cannot be detected from the bytes, or
//                     PTX with a NUL inside, where its text would end
//   INVALID_ARGUMENT  no bytes, an unknown format, or one that the bytes
//                     certainly are not (PTX that begins like an ELF file)
//   LIMIT_EXCEEDED    more than 4 GiB, or more than 65,536 names
//   OUT_OF_MEMORY
//
// The caller owns `*out_code`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_code_create(kiln_bytes_view_t bytes, const kiln_code_options_t* options,
                 kiln_code_t** out_code);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_code_retain(kiln_code_t* code);
KILN_API void kiln_code_release(kiln_code_t* code);

// What the code says of itself: its kernels, their parameters, what made it.
// The first call reads it (the refusals of kiln_image_create), and it stays
// with the code: who asks again, and the software device when it loads the
// code, reads nothing. What is refused is read anew by each call. From any
// thread; it is made with the code's allocator.
//
// The caller owns `*out_image`, which may outlive the code. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_code_image(kiln_code_t* code,
                                                     kiln_image_t** out_image);

// KILN_CODE_FORMAT_*, never UNKNOWN. Since 0.1.
KILN_API uint32_t kiln_code_format(const kiln_code_t* code);

// The bytes, followed by a NUL that is not counted. Borrowed. Since 0.1.
KILN_API kiln_bytes_view_t kiln_code_bytes(const kiln_code_t* code);

// Its name in messages, and its architecture; "" if unknown. Borrowed. Since
// 0.1.
KILN_API const char* kiln_code_name(const kiln_code_t* code);
KILN_API const char* kiln_code_arch(const kiln_code_t* code);

// The CUDA release of the tool that made it, 13000 is 13.0; 0 if unknown. Since
// 0.1.
KILN_API uint32_t kiln_code_producer_line(const kiln_code_t* code);

// Its names. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t kiln_code_lowered_count(const kiln_code_t* code);
KILN_API const kiln_code_name_t* kiln_code_lowered(const kiln_code_t* code,
                                                   uint32_t index);

// The lowered name of `expression`; NULL if it was not requested when the code
// was compiled. Borrowed. Since 0.1.
KILN_API const char* kiln_code_lowered_name(const kiln_code_t* code,
                                            const char* expression);

// ---- Names ----

// Writes a kernel's C++ name: "ns::scale<float, 4>(float*, int)" of
// "_ZN2ns5scaleIfLi4EEEvPT_i". `parameters` is KILN_SWITCH_*: off omits the
// parameter types, "ns::scale<float, 4>"; default: on. The return type is never
// included. `out` has space for `capacity` bytes, including the NUL; 2048 are
// enough for every supported name.
//
// False, with "" in `out`, for a name that is not mangled, as of extern "C", or
// contains more than functions, namespaces, classes and templates of types and
// integers (operators, expressions, function types and local names are not
// supported), or does not fit: then show the name itself. Since 0.1.
KILN_API bool kiln_code_demangle(const char* name, uint32_t parameters,
                                 size_t capacity, char* out);

KILN_EXTERN_C_END

#endif  // KILN_CODE_H_
