// SPDX-License-Identifier: Apache-2.0
//
// soft: several PTX texts as one, the work of a linker.
//
// Names that only their own text sees are renamed where two texts have them;
// of several weak or common definitions one stays; a declaration that another
// text defines becomes a declaration of that one.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_MERGE_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_MERGE_H_

#include "base/str.h"
#include "image/ptx.h"

// One text. thread-compatible
typedef struct kilni_soft_part_t {
  const char* name;  // for messages
  kiln_string_view_t text;
  kilni_image_ptx_module_t* tree;  // of the text
} kilni_soft_part_t;

// Adds the one text to `out_text`, or what is wrong to `out_errors`, a line
// each in the driver's words; then the text is of no use. What was left out of
// the text (debug sections: they refer to places in their own text) is reported
// in `out_infos`. OUT_OF_MEMORY.
kiln_status_t kilni_soft_merge(kiln_allocator_t allocator,
                               const kilni_soft_part_t* parts, size_t count,
                               kilni_base_str_t* out_text,
                               kilni_base_str_t* out_errors,
                               kilni_base_str_t* out_infos);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_MERGE_H_
