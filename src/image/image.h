// SPDX-License-Identifier: Apache-2.0
//
// image: the room's door: what an image holds beyond its public face.
#ifndef KILN_SRC_IMAGE_IMAGE_H_
#define KILN_SRC_IMAGE_IMAGE_H_

#include "image/ptx.h"
#include "kiln/image.h"

// The syntax tree of a PTX image; NULL for other formats. Borrowed.
const kilni_ptx_module_t* kilni_image_ptx(const kiln_image_t* image);

// What kind of argument a PTX parameter takes, KILN_IMAGE_PARAM_*.
uint32_t kilni_image_param_kind(const kilni_ptx_variable_t* variable);

#endif  // KILN_SRC_IMAGE_IMAGE_H_
