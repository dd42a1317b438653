// SPDX-License-Identifier: Apache-2.0
//
// image: the public header: what an image has beyond its public interface.
#ifndef KILN_SRC_IMAGE_IMAGE_H_
#define KILN_SRC_IMAGE_IMAGE_H_

#include "base/keep.h"
#include "image/ptx.h"
#include "kiln/code.h"
#include "kiln/image.h"

// A text of PTX ends at its first NUL, wherever its bytes end. BAD_DATA, with
// the offset, where something else comes after that.
kiln_status_t kilni_image_code_check_text(kiln_bytes_view_t bytes,
                                          const char* name);

// BAD_DATA for a thin archive, which only names the files that it is of.
kiln_status_t kilni_image_code_check_thin(kiln_bytes_view_t bytes,
                                          const char* name);

// kiln_code_create for a module above, whose allocator must not outlive what
// `keep` retains.
kiln_status_t kilni_image_code_create(kiln_bytes_view_t bytes,
                                      const kiln_code_options_t* options,
                                      kilni_base_keep_t keep,
                                      kiln_code_t** out_code);

// kiln_code_image, with what messages call the code.
kiln_status_t kilni_image_code_read(kiln_code_t* code, const char* name,
                                    kiln_image_t** out_image);

// The same if it was read before, and NULL if not. The caller owns it.
kiln_image_t* kilni_image_code_seen(const kiln_code_t* code);

// The syntax tree of a PTX image; NULL for other formats. Borrowed.
const kilni_image_ptx_module_t* kilni_image_ptx(const kiln_image_t* image);

// The same for who keeps it longer than the image: one reference, the caller's.
kilni_image_ptx_module_t* kilni_image_ptx_share(const kiln_image_t* image);

// The ISA version of PTX by its first directive, 90 is 9.0; 0 if it is not
// there.
uint32_t kilni_image_ptx_isa(kiln_bytes_view_t bytes);

// The newest release (13000 is 13.0) of the compilers that made the machine
// code in a file; 0 where none is known. Cheaper than an image: of packed code
// one member at a time is unpacked, and no names are read. The refusals of
// kiln_image_create, except those of code that is not machine code.
kiln_status_t kilni_image_producer_line(kiln_bytes_view_t bytes,
                                        const char* name,
                                        kiln_allocator_t allocator,
                                        uint32_t* out_line);

// Whether everything is there that the headers of a cubin or a fatbin promise:
// what a driver believes without looking. BAD_DATA at the byte, a host's ELF
// file too; UNSUPPORTED and LIMIT_EXCEEDED where that cannot be read.
kiln_status_t kilni_image_check_whole(kiln_bytes_view_t bytes,
                                      const char* name);

// The architecture of a cubin by its header, 90 for sm_90; 0: unknown.
uint32_t kilni_image_cubin_sm(kiln_bytes_view_t bytes);

// What must come out of a link, and may not.
enum {
  KILNI_IMAGE_KEEP_KERNEL = 0,    // that others may define, too
  KILNI_IMAGE_KEEP_FINISHED = 1,  // a kernel of finished machine code
  KILNI_IMAGE_KEEP_VARIABLE = 2,  // of the same, by a name of the source's
};

// What is in the parts that a linker takes. thread-compatible
typedef struct kilni_image_link_pieces_t {
  size_t machine;  // machine code, finished or not
  size_t ptx;
  size_t ltoir;
  bool takes_ltoir;  // in: of a fatbin that has some the linker takes that
} kilni_image_link_pieces_t;

// What a link needs to know of its inputs; zero where not needed.
// thread-compatible
typedef struct kilni_image_link_visit_t {
  // The architecture that is linked for, 90 for sm_90: of a container only the
  // part that a linker takes is checked. 0: each part.
  uint32_t sm;
  uint32_t reserved;
  void* user;
  // A name that is defined here and may be defined nowhere else; borrowed
  // during the call. NULL: not needed, and PTX is not read.
  kiln_status_t (*define)(void* user, const char* name, bool is_kernel);
  // A name that linkers silently omit, though `define` need not have it,
  // KILNI_IMAGE_KEEP_*; borrowed during the call. NULL: not needed.
  kiln_status_t (*keep)(void* user, const char* name, uint32_t kind);
  // A container has device code, and none that a linker for `sm` takes: of
  // which file it is, and what it is for ("sm_90, compute_90"); borrowed during
  // the call. Not called where that code defines nothing. NULL: not needed.
  kiln_status_t (*misfit)(void* user, const char* file, const char* targets);
  // A member of an archive is device code by itself, in no object of a host,
  // KILN_CODE_FORMAT_*: what linkers omit from archives. Called before it is
  // read; both names are borrowed during the call. NULL: not needed.
  kiln_status_t (*loose)(void* user, const char* archive, const char* member,
                         uint32_t format);
  // A name that must be in the result, weak ones included; borrowed during the
  // call. NULL: not needed. PTX has none.
  kiln_status_t (*expect)(void* user, const char* name);
  // A function that is defined here and visible nowhere else; borrowed during
  // the call. NULL: not needed.
  kiln_status_t (*own)(void* user, const char* name);
  // The type of a function that others may define or call, as nvJitLink
  // compares it ("#iii" of `int ff(int, int)`); borrowed during the call. Of a
  // function that is defined elsewhere, where something here uses it. NULL: not
  // needed. PTX has none unless `define` is set as well.
  kiln_status_t (*prototype)(void* user, const char* name, const char* type);
  // The linker runs where it may crash: damage that it may survive, and that
  // hides no name, is then not an error. The first is put here, and the caller
  // frees it. NULL: it is an error.
  kiln_status_t* inout_doubt;
  // Incremented for each part with device code, for any architecture; an
  // archive may have none. NULL: not needed.
  size_t* inout_parts;
  // Incremented for each part that a linker takes. NULL: not needed.
  kilni_image_link_pieces_t* inout_pieces;
} kilni_image_link_visit_t;

// Whether a linker can be given this: all that is indexed, sized and named in
// it exists. Linear in time; allocates what is packed, unpacked, and the tree
// of PTX. `format` is its declared format.
//
//   BAD_DATA        cut off or damaged, with the byte, unless it is tolerated;
//   an
//                   object of a host without device code; not of this format
//   LIMIT_EXCEEDED  of an image
//   OUT_OF_MEMORY, and what `define` returns
//
// What this build cannot read (a newer form, a packing) passes.
kiln_status_t kilni_image_check_link(kiln_bytes_view_t bytes, uint32_t format,
                                     const char* name,
                                     kiln_allocator_t allocator,
                                     const kilni_image_link_visit_t* visit);

// Calls `expect` and `own` of `visit` for the names of a cubin, linked or not,
// and checks nothing else of it. BAD_DATA where they cannot be read; what
// they return.
kiln_status_t kilni_image_cubin_names(kiln_bytes_view_t bytes, const char* name,
                                      const kilni_image_link_visit_t* visit);

#endif  // KILN_SRC_IMAGE_IMAGE_H_
