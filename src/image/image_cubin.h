// SPDX-License-Identifier: Apache-2.0
//
// image: what the files that read a cubin share.
#ifndef KILN_SRC_IMAGE_IMAGE_CUBIN_H_
#define KILN_SRC_IMAGE_IMAGE_CUBIN_H_

#include "image/image_elf.h"
#include "kiln/image.h"
#include "kiln/status.h"

// What is known of the section with a function's code. thread-compatible
typedef struct kilni_image_cubin_code_t {
  uint32_t info;    // section of its attributes; 0: none
  uint32_t row;     // of its kernel in the image, counted from 1; 0: no kernel
  uint32_t symbol;  // of the kernel
} kilni_image_cubin_code_t;

// A cubin while it is read. one-thread
typedef struct kilni_image_cubin_t {
  kiln_image_t* image;
  kilni_image_elf_t elf;
  kilni_image_symtab_t symtab;
  kilni_image_part_t
      indexes;  // sections of symbols, where 16 bits are not enough
  kilni_image_cubin_code_t* codes;  // of each section
  uint32_t box;                     // the member
  uint32_t sm;
  uint32_t virtual_sm;
  char suffix;
  uint8_t accelerated;      // compiled for one architecture only
  uint8_t reserves_shared;  // its blocks give shared memory to the system
  uint8_t reserved;
  uint32_t line;  // of the toolkit, 13000; 0: unknown
  uint32_t debug;
  uint32_t ptx_version;  // of the PTX it was made from; 0: unknown
  uint64_t global_bytes;
  uint64_t constant_bytes;
  const char* producer;
  const char* options;
} kilni_image_cubin_t;

// Attributes of one section, one after another. one-thread
typedef struct kilni_image_cubin_attributes_t {
  kilni_image_part_t part;
  uint64_t at;
  uint64_t value_at;     // where `value` is, in the part
  const uint8_t* value;  // of the attribute met last
  uint32_t size;
  uint32_t code;
} kilni_image_cubin_attributes_t;

// Whether a file must have the bytes of a section of this type. Others may have
// none: memory that is not set, and what a linker has yet to make.
bool kilni_image_cubin_has_bytes(uint32_t type);

// The section that the symbol at `index` is in.
uint32_t kilni_image_cubin_section_of(const kilni_image_cubin_t* cubin,
                                      uint32_t index);

// Attributes of the kernel in row `row`, out of `part`. `params` counts the
// parameters that it describes.
kiln_status_t kilni_image_cubin_count_params(const kilni_image_part_t* part,
                                             uint32_t* out_count);
kiln_status_t kilni_image_cubin_read_kernel(kilni_image_cubin_t* cubin,
                                            const kilni_image_part_t* part,
                                            kilni_image_row_t* row);

// Attributes of the file.
kiln_status_t kilni_image_cubin_read_file(kilni_image_cubin_t* cubin,
                                          const kilni_image_part_t* part);
kiln_status_t kilni_image_cubin_read_compat(kilni_image_cubin_t* cubin,
                                            const kilni_image_part_t* part);

// Notes: what made it, and for what.
kiln_status_t kilni_image_cubin_read_notes(kilni_image_cubin_t* cubin,
                                           const kilni_image_part_t* part);

// A toolkit's number, 129, as a line, 12090.
uint32_t kilni_image_cubin_line(uint32_t number);

// Target and toolkit of the header; then, once all else is read, the suffix.
void kilni_image_cubin_read_header(kilni_image_cubin_t* cubin);
void kilni_image_cubin_settle_target(kilni_image_cubin_t* cubin);

#endif  // KILN_SRC_IMAGE_IMAGE_CUBIN_H_
