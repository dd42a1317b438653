// SPDX-License-Identifier: Apache-2.0
//
// soft: the text of a kernel's printf.
//
// Pure: format and arguments are read through a function, the text goes into
// the caller's buffer. Called by the engine for one lane at a time.
#ifndef KILN_SRC_SOFT_ENGINE_SOFT_PRINT_H_
#define KILN_SRC_SOFT_ENGINE_SOFT_PRINT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  KILNI_SOFT_PRINT_FORMAT_BYTES = 4096,  // longest format string
  KILNI_SOFT_PRINT_STRING_BYTES = 4096,  // longest %s
};

// Reads `bytes` of device memory at a generic address; false if any is outside
// a live allocation.
typedef bool (*kilni_soft_read_fn_t)(uint64_t address, void* out, size_t bytes,
                                     void* user);

// How a call of vprintf ended. thread-compatible
typedef enum kilni_soft_print_result_t {
  KILNI_SOFT_PRINT_OK = 0,
  KILNI_SOFT_PRINT_BAD_ADDRESS,  // `out_address` could not be read
} kilni_soft_print_result_t;

// One call's text. thread-compatible
typedef struct kilni_soft_print_t {
  size_t size;       // bytes written, at most the capacity, without a NUL
  int32_t returned;  // what vprintf returns: the arguments taken, or -1 for a
                     // NULL format (CUDA C++ programming guide, formatted
                     // output)
  uint64_t address;  // of a BAD_ADDRESS
} kilni_soft_print_t;

// Formats as CUDA's device printf does: flags `# + - 0` and blank, width and
// precision (also `*`), sizes hh, h, l, ll, z, j and t, conversions % c d i o u
// x X p e E f F g G a A s. Of anything else only the `%` is printed, and no
// argument is taken. A NUL of %c is a NUL in the text. The argument block
// contains 4-byte integers, 8-byte integers, doubles and pointers, each at its
// natural alignment. Text beyond `capacity` is cut.
kilni_soft_print_result_t kilni_soft_print_format(
    kilni_soft_read_fn_t read, void* read_user, uint64_t format,
    uint64_t arguments, char* buffer, size_t capacity,
    kilni_soft_print_t* out_print);

#endif  // KILN_SRC_SOFT_ENGINE_SOFT_PRINT_H_
