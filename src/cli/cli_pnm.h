// SPDX-License-Identifier: Apache-2.0
//
// cli: PGM and PPM pictures. Pure: bytes in, array out, and back.
#ifndef KILN_SRC_CLI_CLI_PNM_H_
#define KILN_SRC_CLI_CLI_PNM_H_

#include "cli/cli_array.h"

#define KILNI_CLI_PICTURE_MAX_SIDE  65535
#define KILNI_CLI_PICTURE_MAX_BYTES ((uint64_t)1 << 30)

// Reads P2, P3, P5 and P6 with one byte a sample into u8[h,w] (gray) or
// u8[h,w,3]. A maximum other than 255 is scaled to 255.
bool kilni_cli_pnm_read(const uint8_t* data, size_t size,
                        kilni_cli_array_t* out, kilni_cli_error_t* error);

// Appends P5 for u8[h,w] and u8[h,w,1] when `gray`, P6 for u8[h,w,3] when not.
bool kilni_cli_pnm_write(const kilni_cli_array_t* array, bool gray,
                         kilni_cli_buffer_t* out, kilni_cli_error_t* error);

// Height, width and channels of a picture: u8[h,w] or u8[h,w,c] with `c` from
// 1 to 4, within the limits above. INVALID_ARGUMENT for another shape.
bool kilni_cli_picture_shape(const kilni_cli_shape_t* shape, uint32_t* out_h,
                             uint32_t* out_w, uint32_t* out_channels,
                             kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_PNM_H_
