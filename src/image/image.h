// SPDX-License-Identifier: Apache-2.0
//
// image: the room's door: what an image holds beyond its public face.
#ifndef KILN_SRC_IMAGE_IMAGE_H_
#define KILN_SRC_IMAGE_IMAGE_H_

#include "base/keep.h"
#include "image/ptx.h"
#include "kiln/code.h"
#include "kiln/image.h"

// kiln_code_create for a room above, whose allocator must not outlive what
// `keep` keeps.
kiln_status_t kilni_code_create(kiln_bytes_view_t bytes,
                                const kiln_code_options_t* options,
                                kilni_keep_t keep, kiln_code_t** out_code);

// The syntax tree of a PTX image; NULL for other formats. Borrowed.
const kilni_ptx_module_t* kilni_image_ptx(const kiln_image_t* image);

// What kind of argument a PTX parameter takes, KILN_IMAGE_PARAM_*.
uint32_t kilni_image_param_kind(const kilni_ptx_variable_t* variable);

#endif  // KILN_SRC_IMAGE_IMAGE_H_
