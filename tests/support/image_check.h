// SPDX-License-Identifier: Apache-2.0
//
// test: what must hold of every image, whatever it was made from.
#ifndef KILN_TESTS_SUPPORT_IMAGE_CHECK_H_
#define KILN_TESTS_SUPPORT_IMAGE_CHECK_H_

#include "kiln/image.h"

// Reads `bytes` and walks the whole image. NULL, or what does not hold: an
// error without a cure, an error that is none of those promised, a text that
// is missing, a list that is not as long as it says.
const char* image_check_bytes(kiln_bytes_view_t bytes);

// The same of an image that is there.
const char* image_check(const kiln_image_t* image);

#endif  // KILN_TESTS_SUPPORT_IMAGE_CHECK_H_
