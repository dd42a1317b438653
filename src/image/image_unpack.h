// SPDX-License-Identifier: Apache-2.0
//
// image: packed bytes to plain ones, through the libraries that this build has.
#ifndef KILN_SRC_IMAGE_IMAGE_UNPACK_H_
#define KILN_SRC_IMAGE_IMAGE_UNPACK_H_

#include "image/image_inside.h"
#include "kiln/status.h"

// True if this build reads `packing`, KILN_IMAGE_PACKING_*.
bool kilni_image_unpack_knows(uint32_t packing);

// BAD_DATA where `packed` cannot become `size` bytes: asked before there is
// space for them, so that a wrong size costs none.
kiln_status_t kilni_image_unpack_check(const kilni_image_part_t* packed,
                                       uint32_t packing, uint64_t size);

// Fills `out`, exactly `size` bytes, from all of `packed`. BAD_DATA where they
// do not become that.
kiln_status_t kilni_image_unpack(const kilni_image_part_t* packed,
                                 uint32_t packing, uint8_t* out, size_t size);

#endif  // KILN_SRC_IMAGE_IMAGE_UNPACK_H_
