// SPDX-License-Identifier: Apache-2.0
//
// locate: the digest of a file: its size and SHA-256.
#ifndef KILN_SRC_LOCATE_LOCATE_DIGEST_H_
#define KILN_SRC_LOCATE_LOCATE_DIGEST_H_

#include "base/sha256.h"
#include "kiln/status.h"

// Of the file at `path`, which is read to its end. NOT_FOUND,
// PERMISSION_DENIED, IO_ERROR, BAD_DATA for what is not a regular file.
kiln_status_t kilni_locate_digest(const char* path, uint64_t* out_size,
                                  uint8_t out_sha256[KILNI_SHA256_BYTES]);

#endif  // KILN_SRC_LOCATE_LOCATE_DIGEST_H_
