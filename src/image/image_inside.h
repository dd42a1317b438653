// SPDX-License-Identifier: Apache-2.0
//
// image: what the readers of this module share while an image is made.
//
// A reader is given a part of a file and adds members, kernels, parameters and
// symbols to the image. Everything that it adds is copied: the bytes may go
// once the image is made.
#ifndef KILN_SRC_IMAGE_IMAGE_INSIDE_H_
#define KILN_SRC_IMAGE_IMAGE_INSIDE_H_

#include <stdatomic.h>

#include "image/image.h"
#include "image/ptx.h"
#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/image.h"
#include "kiln/status.h"

// The limits of an image; docs/internals/image.md lists them.
#define KILNI_IMAGE_MAX_MEMBERS      ((size_t)1 << 20)
#define KILNI_IMAGE_MAX_KERNELS      ((size_t)1 << 22)
#define KILNI_IMAGE_MAX_PARAMS       ((size_t)1 << 24)
#define KILNI_IMAGE_MAX_SYMBOLS      ((size_t)1 << 22)
#define KILNI_IMAGE_MAX_TEXT         ((size_t)1 << 30)    // bytes of all names
#define KILNI_IMAGE_MAX_UNPACKED     ((uint64_t)1 << 30)  // bytes of one member
#define KILNI_IMAGE_MAX_UNPACKED_ALL ((uint64_t)1 << 33)
enum {
  KILNI_IMAGE_MAX_SECTIONS = 1 << 22,  // of an ELF file
  KILNI_IMAGE_MAX_KERNEL_PARAMS = 8192,
  KILNI_IMAGE_MAX_NESTING = 6  // containers in containers
};

// A part of a file: bytes, and their place in it. thread-compatible
typedef struct kilni_image_part_t {
  const uint8_t* data;
  uint64_t size;
  uint64_t base;     // of the first byte, in the file
  const char* name;  // of the file, for messages
} kilni_image_part_t;

// Copied texts. one-thread
typedef struct kilni_image_texts_t kilni_image_texts_t;

// A kernel and where its parameters are. thread-safe
typedef struct kilni_image_row_t {
  kiln_image_kernel_t shown;
  size_t first_param;
  uint32_t member;
  uint32_t reserved;
} kilni_image_row_t;

// A member and where its kernels are. thread-safe
typedef struct kilni_image_box_t {
  kiln_image_member_t shown;
  size_t first_row;
} kilni_image_box_t;

struct kiln_image_t {
  atomic_uint references;
  uint32_t format;
  kiln_allocator_t allocator;
  kilni_base_keep_t keep;         // what the allocator lives by
  kilni_image_ptx_module_t* ptx;  // of a file that is PTX; else NULL
  kilni_image_texts_t* texts;
  size_t text_bytes;
  kilni_image_box_t* boxes;
  size_t box_count;
  size_t box_capacity;
  kilni_image_row_t* rows;
  size_t row_count;
  size_t row_capacity;
  kiln_image_param_t* params;
  size_t param_count;
  size_t param_capacity;
  kiln_image_symbol_t* symbols;
  size_t symbol_count;
  size_t symbol_capacity;
  // Made at the end: each name once.
  kilni_image_row_t* kernels;
  size_t kernel_count;
  const char** targets;
  size_t target_count;
  size_t target_capacity;
  // While it is made.
  uint64_t unpacked;
  uint32_t nesting;
  // The size of the container is beyond the end of its file: what follows its
  // last part need not be a part.
  bool is_clipped;
  // Cubins alone are read, and no further than to what made them.
  bool producers_only;
  // Nothing is listed: each part is checked for a linker. NULL: it is not.
  const kilni_image_link_visit_t* link;
};

// What the container of a member states of it. thread-compatible
typedef struct kilni_image_about_t {
  const char* origin;  // borrowed texts; NULL: ""
  const char* identifier;
  const char* options;
  uint64_t offset;
  uint64_t bytes;
  uint32_t packing;
  uint32_t debug;
  uint32_t target;  // 90 for sm_90; 0: unknown
  char suffix;      // of the target, or 0
  uint8_t reserved[3];
} kilni_image_about_t;

// An image of whole files, as kiln_image_create makes it; `keep` is kept until
// its end, for an allocator that must not outlive that.
kiln_status_t kilni_image_create(kiln_bytes_view_t bytes, const char* name,
                                 kiln_allocator_t allocator,
                                 kilni_base_keep_t keep,
                                 kiln_image_t** out_image);

// ---- Adding to an image (image_build.c) ----

// A copy of a text up to its first NUL, as long as the image.
kiln_status_t kilni_image_text(kiln_image_t* image, const char* text,
                               size_t size, const char** out_text);

// A member, with what its container states. Borrowed until the next is added.
kiln_status_t kilni_image_add_member(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about,
                                     uint32_t format,
                                     kiln_image_member_t** out_member);

// A kernel of the last member with `param_count` parameters, unset but for
// their texts. Borrowed until the next is added.
kiln_status_t kilni_image_add_kernel(kiln_image_t* image, const char* name,
                                     size_t name_size, uint32_t param_count,
                                     kilni_image_row_t** out_row);

// A symbol of the last member.
kiln_status_t kilni_image_add_symbol(kiln_image_t* image, const char* name,
                                     size_t name_size,
                                     kiln_image_symbol_t symbol);

// "sm_90a" as a text of the image.
kiln_status_t kilni_image_target_text(kiln_image_t* image, const char* prefix,
                                      uint32_t number, char suffix,
                                      const char** out_text);

// Once all members are there: names and targets, each once.
kiln_status_t kilni_image_finish(kiln_image_t* image);
void kilni_image_drop(kiln_image_t* image);

// ---- Readers: bytes to members ----

// Code of one format: a member, or a container of some. `about` is what is
// already known of it.
kiln_status_t kilni_image_read_ptx(kiln_image_t* image,
                                   const kilni_image_part_t* part,
                                   const kilni_image_about_t* about);
kiln_status_t kilni_image_read_cubin(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about);

kiln_status_t kilni_image_read_fatbin(kiln_image_t* image,
                                      const kilni_image_part_t* part,
                                      const kilni_image_about_t* about);
// Whether all entries of a fatbin are complete; their contents are not checked.
kiln_status_t kilni_image_fatbin_whole(const kilni_image_part_t* part);
kiln_status_t kilni_image_read_host(kiln_image_t* image,
                                    const kilni_image_part_t* part,
                                    const kilni_image_about_t* about);
kiln_status_t kilni_image_read_archive(kiln_image_t* image,
                                       const kilni_image_part_t* part,
                                       const kilni_image_about_t* about);
kiln_status_t kilni_image_read_ltoir(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about);
// The line that writes such versions into its LTO-IR, of the first `size` of
// their 6 bytes the oldest; 0: it is not known.
uint32_t kilni_image_ltoir_line(const uint8_t* versions, size_t size);
// Whether the head of LTO-IR is all there.
kiln_status_t kilni_image_check_ltoir(const kilni_image_part_t* part);
kiln_status_t kilni_image_read_nvvm(kiln_image_t* image,
                                    const kilni_image_part_t* part,
                                    const kilni_image_about_t* about);

// Code of any format in a container: where it is not to be read it is listed
// with the reason.
kiln_status_t kilni_image_read_entry(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about);

// ---- What a linker is given (image_link.c) ----

// BAD_DATA for an ELF file that linkers skip: quotes its header.
kiln_status_t kilni_image_link_foreign(const kilni_image_part_t* part);

kiln_status_t kilni_image_link_cubin(const kilni_image_part_t* part,
                                     const kilni_image_link_visit_t* visit);
kiln_status_t kilni_image_link_ptx(const kilni_image_part_t* part,
                                   const kilni_image_link_visit_t* visit,
                                   kiln_allocator_t allocator);

// ---- Parts and their errors (image_part.c) ----

// The `size` bytes at `offset` of a part, which must be there.
kilni_image_part_t kilni_image_part_at(const kilni_image_part_t* part,
                                       uint64_t offset, uint64_t size);

// True if `size` bytes at `offset` are in the part.
bool kilni_image_part_has(const kilni_image_part_t* part, uint64_t offset,
                          uint64_t size);

// BAD_DATA at a byte of the part.
kiln_status_t kilni_image_bad(const kilni_image_part_t* part, uint64_t offset,
                              const char* format, ...) KILN_PRINTF(3, 4);
#ifdef __clang_analyzer__
#define kilni_image_bad(...) kilni_analyzed_error(kilni_image_bad(__VA_ARGS__))
#endif

// Decides whether a linker may be given damaged code: OK where `visit`
// tolerates damage, and stores this error if it is the first. Others than
// BAD_DATA stay.
kiln_status_t kilni_image_doubt(const kilni_image_link_visit_t* visit,
                                kiln_status_t wrong);

// Counts a part with device code, where `visit` requests it; may be NULL.
void kilni_image_count_part(const kilni_image_link_visit_t* visit);

// Counts a part that the linker takes, by its format.
void kilni_image_count_piece(const kilni_image_link_visit_t* visit,
                             uint32_t format);

// LIMIT_EXCEEDED, naming the limit.
kiln_status_t kilni_image_over(const char* name, const char* what,
                               uint64_t limit);

// Little-endian numbers, which must be there.
static inline uint32_t kilni_image_u16(const uint8_t* at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t kilni_image_u32(const uint8_t* at) {
  return kilni_image_u16(at) | kilni_image_u16(at + 2) << 16;
}

static inline uint64_t kilni_image_u64(const uint8_t* at) {
  return kilni_image_u32(at) | (uint64_t)kilni_image_u32(at + 4) << 32;
}

#endif  // KILN_SRC_IMAGE_IMAGE_INSIDE_H_
