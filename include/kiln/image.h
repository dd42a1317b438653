// SPDX-License-Identifier: Apache-2.0
//
// image: the contents of a code file: its format, targets, kernels and
// parameters.
//
// Needs no device and no driver: an image is read, never run. PTX is parsed
// completely, with every error at its line and column; binary formats as far as
// they are documented, with every error at its byte.
//
// A file is a list of members, each the code of one compilation for one target:
// a cubin, PTX, LTO-IR. A file that is not a container is its own only member.
// The calls about kernels, targets and symbols are about all members together;
// those with `member` in their name about one.
#ifndef KILN_IMAGE_H_
#define KILN_IMAGE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A code file that was read. thread-safe
//
// Reference-counted. Does not reference the bytes it was made from.
typedef struct kiln_image_t kiln_image_t;

// Formats of device code.
enum {
  KILN_CODE_FORMAT_UNKNOWN = 0,
  KILN_CODE_FORMAT_PTX = 1,          // text
  KILN_CODE_FORMAT_CUBIN = 2,        // an ELF file for a GPU, linked
  KILN_CODE_FORMAT_FATBIN = 3,       // several of the others in one file
  KILN_CODE_FORMAT_LTOIR = 4,        // for link-time optimisation
  KILN_CODE_FORMAT_OBJECT = 5,       // a host's object file, device code inside
  KILN_CODE_FORMAT_LIBRARY = 6,      // an archive of object files
  KILN_CODE_FORMAT_RELOCATABLE = 7,  // an ELF file for a GPU, not yet linked
  KILN_CODE_FORMAT_NVVM = 8,         // NVVM IR: bitcode, or its text
};

// Kinds of parameters. PTX writes pointers and signed integers as unsigned
// ones, so an INTEGER of 8 bytes may well be a pointer.
enum {
  KILN_IMAGE_PARAM_UNKNOWN = 0,
  KILN_IMAGE_PARAM_INTEGER = 1,
  KILN_IMAGE_PARAM_FLOAT = 2,
  KILN_IMAGE_PARAM_BYTES = 3,    // a struct or array
  KILN_IMAGE_PARAM_POINTER = 4,  // declared as one
};

// Kinds of symbols.
enum {
  KILN_IMAGE_SYMBOL_VARIABLE = 1,  // __device__, __managed__
  KILN_IMAGE_SYMBOL_CONSTANT = 2,  // __constant__
  KILN_IMAGE_SYMBOL_FUNCTION = 3,  // a function that is not a kernel
};

// How a member is packed.
enum {
  KILN_IMAGE_PACKING_NONE = 0,
  KILN_IMAGE_PACKING_LZ4 = 1,
  KILN_IMAGE_PACKING_ZSTD = 2,
};

// The debug information of a member, as bits.
enum {
  KILN_IMAGE_DEBUG_LINES = 1,  // lines of the source
  KILN_IMAGE_DEBUG_FULL = 2,   // variables and types too
};

// How a kernel uses the elements that it reads or writes.
enum {
  KILN_IMAGE_ACCESS_BITS = 1,     // moved, or more than one thing
  KILN_IMAGE_ACCESS_INTEGER = 2,  // loaded with a sign, added to, converted
  KILN_IMAGE_ACCESS_FLOAT = 3,    // nothing but arithmetic on floats
};

// The value of an unknown field for which 0 is valid.
#define KILN_IMAGE_UNTOLD UINT32_MAX

// A parameter of a kernel. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_image_param_t {
  const char* name;  // "" if the file has none
  const char* type;  // "u64", "f32", "b8"; "" if unknown
  uint32_t offset;   // bytes, in the packed parameters
  uint32_t bytes;    // of the whole parameter
  uint32_t align;    // bytes; 0: unknown
  uint32_t kind;     // KILN_IMAGE_PARAM_*
} kiln_image_param_t;

// A kernel of a code file. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_image_kernel_t {
  const char* name;
  uint32_t line;                 // in PTX text; 0 elsewhere
  uint32_t params_known;         // 0: unknown
  uint32_t param_count;          //
  uint32_t param_bytes;          // end of the last parameter
  uint32_t registers;            // of a thread; 0: unknown
  uint32_t static_shared_bytes;  // without those of functions that it calls
  uint32_t required_block[3];    // .reqntid; zeroes if there is none
  uint32_t maximum_block[3];     // .maxntid; zeroes if there is none

  // The targets of the kernel in the file: "sm_80, sm_90". If there are
  // several, the other fields are those of the first.
  const char* targets;

  // Known from machine code only; KILN_IMAGE_UNTOLD otherwise.
  uint32_t frame_bytes;            // of local memory, a thread
  uint32_t stack_bytes;            // at least, with the functions it calls
  uint32_t reserved_shared_bytes;  // that the system takes of a block's
  uint32_t parameter_bank_bytes;   // of constant bank 0
  uint32_t parameter_offset;       // of the parameters in it
  uint32_t barriers;               // named barriers
  uint32_t maximum_registers;      // limit given to the compiler
  uint32_t code_bytes;

  uint32_t required_cluster[3];  // in blocks; zeroes if there is none
  uint32_t blocks_are_clusters;  // 1: a grid is counted in clusters

  // 1: it is launched in clusters only: of `required_cluster`, or if that is
  // zeroes, of the size that each launch gives. .explicitcluster
  uint32_t explicit_cluster;
} kiln_image_kernel_t;

// A symbol of a code file that is not a kernel. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_image_symbol_t {
  const char* name;
  uint64_t bytes;     // 0: unknown
  uint32_t kind;      // KILN_IMAGE_SYMBOL_*
  uint32_t defined;   // 0: to be resolved elsewhere, by a linker or a driver
  uint32_t exported;  // 1: others may refer to it
  uint32_t member;    // that contains it
} kiln_image_symbol_t;

// A member of a code file. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_image_member_t {
  const char* origin;      // the archive's member that it is in; "" elsewhere
  const char* identifier;  // in a fatbin; "" if it has none
  const char* target;      // "sm_90a", "compute_80"; "" if unknown
  const char* producer;    // the name of its compiler; "" if unknown
  const char* options;     // of its compilation; "" if unknown

  const char* triple;  // of NVVM IR; "" elsewhere

  // NULL if it was read. Else why not: a newer PTX, a packing that this build
  // does not support. The container's own fields are set nevertheless.
  const char* unread;

  uint64_t offset;  // in the file
  uint64_t bytes;   // in the file
  uint64_t unpacked_bytes;
  uint64_t global_bytes;    // of variables; 0: none, or unknown
  uint64_t constant_bytes;  // of __constant__ ones, with the compiler's own

  uint32_t format;         // KILN_CODE_FORMAT_*; UNKNOWN: of an unknown kind
  uint32_t packing;        // KILN_IMAGE_PACKING_*
  uint32_t debug;          // KILN_IMAGE_DEBUG_* bits
  uint32_t ptx_version;    // 9000 is 9.0; 0: no PTX
  uint32_t producer_line;  // 13000 is CUDA 13.0; 0: unknown
  uint32_t ir_version;     // NVVM IR inside: 2098 is 2.98; 0: unknown
  uint32_t kernel_count;
  uint32_t symbol_count;
} kiln_image_member_t;

// Which index and size registers a kernel reads. thread-safe
//
// Bit 0 is x, 1 is y, 2 is z. Includes the reads of functions that it calls.
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_image_threads_t {
  uint32_t tid;     // threadIdx, %tid
  uint32_t ntid;    // blockDim, %ntid
  uint32_t ctaid;   // blockIdx, %ctaid
  uint32_t nctaid;  // gridDim, %nctaid

  // 1 to 3: the last dimension in which the position of a thread or a block
  // matters. A thread's rank in its block, tid.x + ntid.x * (tid.y + ntid.y *
  // tid.z), counts as one dimension, and so does a block's rank in its grid.
  // Comparing y or z with 0, or printing it, does not count.
  uint32_t dimensions;

  uint32_t tid_dimensions;    // of a thread's position in its block
  uint32_t ctaid_dimensions;  // of a block's position in its grid
} kiln_image_threads_t;

// One kind of access of a kernel to what a parameter points to. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_image_access_t {
  uint32_t kind;   // KILN_IMAGE_ACCESS_*
  uint32_t bytes;  // of an element: 4 of a vector of floats, 2 of halves

  // The distance of its elements in bytes, from the factors of thread indices
  // and loop counters; the largest if there are several. 0: unknown.
  uint32_t pitch;

  // For a struct passed by value: the offset of the loaded member. The kernel
  // then accesses the parameter itself, and `pitch` is 0.
  uint32_t offset;
} kiln_image_access_t;

// How a kernel uses its parameters and its thread indices. thread-safe
//
// Derived from its PTX. An address is followed from the parameter through
// moves, sums and selections to loads, stores and atomics; if it escapes (to a
// function, into memory, through an unsupported instruction, or combined with
// that of another parameter), nothing is reported about the parameter.
typedef struct kiln_image_use_t kiln_image_use_t;

// How an image is read. thread-compatible
typedef struct kiln_image_options_t {
  uint32_t struct_size;  // sizeof(kiln_image_options_t)
  uint32_t reserved;     // 0
  const char* name;      // its name in messages, e.g. the file. Default: "PTX"
  const kiln_allocator_t* allocator;  // copied. Default: the C library's
} kiln_image_options_t;

// All defaults. Since 0.1.
static inline kiln_image_options_t kiln_image_options_default(void) {
  kiln_image_options_t options = {(uint32_t)sizeof(options), 0, NULL, NULL};
  return options;
}

// The format by the first bytes, KILN_CODE_FORMAT_*. Since 0.1.
KILN_API uint32_t kiln_code_format_of(kiln_bytes_view_t bytes);

// "ptx", "cubin", "fatbin", "ltoir", "object", "library", "relocatable", "nvvm"
// or "unknown". Static. Since 0.1.
KILN_API const char* kiln_code_format_name(uint32_t format);

// Reads a code file: of any format above, and programs and shared libraries of
// a host with device code inside. `options` may be NULL.
//
//   BAD_DATA        not a code file, or malformed: with line and column for
//   PTX,
//                   with the byte for others
//   UNSUPPORTED     an unsupported format or PTX version; it is named.
//                   A member like that is listed with the reason
//   LIMIT_EXCEEDED  larger than a named limit
//   OUT_OF_MEMORY
//
// The caller owns `*out_image`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_image_create(kiln_bytes_view_t bytes, const kiln_image_options_t* options,
                  kiln_image_t** out_image);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_image_retain(kiln_image_t* image);
KILN_API void kiln_image_release(kiln_image_t* image);

// KILN_CODE_FORMAT_*; OBJECT for programs and shared libraries too. Since 0.1.
KILN_API uint32_t kiln_image_format(const kiln_image_t* image);

// The PTX version as 1000 times major plus 10 times minor (9000 is 9.0); 0 if
// the image is not PTX. Since 0.1.
KILN_API uint32_t kiln_image_ptx_version(const kiln_image_t* image);

// The architectures that the code is for, e.g. "sm_90a". Borrowed; NULL for an
// index out of range. Since 0.1.
KILN_API uint32_t kiln_image_target_count(const kiln_image_t* image);
KILN_API const char* kiln_image_target(const kiln_image_t* image,
                                       uint32_t index);

// The kernels with code, in the order of the file, each name once. Borrowed;
// NULL for an index out of range. Since 0.1.
KILN_API uint32_t kiln_image_kernel_count(const kiln_image_t* image);
KILN_API const kiln_image_kernel_t* kiln_image_kernel(const kiln_image_t* image,
                                                      uint32_t index);

// The index of a kernel by name. NOT_FOUND lists the existing ones. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_image_kernel_find(
    const kiln_image_t* image, const char* name, uint32_t* out_index);

// A parameter of the kernel at `kernel_index`. Borrowed; NULL for an index out
// of range. Since 0.1.
KILN_API const kiln_image_param_t* kiln_image_kernel_param(
    const kiln_image_t* image, uint32_t kernel_index, uint32_t param_index);

// How the kernel at `kernel_index` uses its parameters and its thread indices.
//
//   NOT_FOUND    there is no such kernel
//   UNSUPPORTED  the image is not PTX text
//   OUT_OF_MEMORY
//
// The caller owns `*out_use`, which does not reference the image. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_image_use_create(const kiln_image_t* image, uint32_t kernel_index,
                      kiln_image_use_t** out_use);

// NULL is accepted. Since 0.1.
KILN_API void kiln_image_use_release(kiln_image_use_t* use);

// Borrowed. Since 0.1.
KILN_API const kiln_image_threads_t* kiln_image_use_threads(
    const kiln_image_use_t* use);

// The accesses by the address in a parameter; none if unknown. Borrowed; NULL
// for an index out of range. Since 0.1.
KILN_API uint32_t kiln_image_use_access_count(const kiln_image_use_t* use,
                                              uint32_t param_index);
KILN_API const kiln_image_access_t* kiln_image_use_access(
    const kiln_image_use_t* use, uint32_t param_index, uint32_t index);

// The members, in the order of the file. Borrowed; NULL for an index out of
// range. Since 0.1.
KILN_API uint32_t kiln_image_member_count(const kiln_image_t* image);
KILN_API const kiln_image_member_t* kiln_image_member(const kiln_image_t* image,
                                                      uint32_t index);

// A kernel of a member, 0 to its kernel_count - 1, and a parameter of that.
// Borrowed; NULL for an index out of range. Since 0.1.
KILN_API const kiln_image_kernel_t* kiln_image_member_kernel(
    const kiln_image_t* image, uint32_t member_index, uint32_t kernel_index);
KILN_API const kiln_image_param_t* kiln_image_member_param(
    const kiln_image_t* image, uint32_t member_index, uint32_t kernel_index,
    uint32_t param_index);

// The symbols of all members, in order. Borrowed; NULL for an index out of
// range. Since 0.1.
KILN_API uint32_t kiln_image_symbol_count(const kiln_image_t* image);
KILN_API const kiln_image_symbol_t* kiln_image_symbol(const kiln_image_t* image,
                                                      uint32_t index);

// "none", "lz4", "zstd" or "unknown". Static. Since 0.1.
KILN_API const char* kiln_image_packing_name(uint32_t packing);

KILN_EXTERN_C_END

#endif  // KILN_IMAGE_H_
