// SPDX-License-Identifier: Apache-2.0
//
// base: SHA-256, as FIPS 180-4 has it.
//
// For comparing a file with its package's record. Not for secrets: it takes no
// care about timing.
#ifndef KILN_SRC_BASE_SHA256_H_
#define KILN_SRC_BASE_SHA256_H_

#include "kiln/api.h"

enum { KILNI_SHA256_BYTES = 32, KILNI_SHA256_BLOCK = 64 };

// A hash while it is made. one-thread
//
// `init`, any number of adds, `finish`.
typedef struct kilni_base_sha256_t {
  uint32_t state[8];
  uint64_t size;  // bytes so far
  uint8_t block[KILNI_SHA256_BLOCK];
} kilni_base_sha256_t;

void kilni_base_sha256_init(kilni_base_sha256_t* hash);
void kilni_base_sha256_add(kilni_base_sha256_t* hash, const void* data,
                           size_t size);
void kilni_base_sha256_finish(kilni_base_sha256_t* hash,
                              uint8_t out_digest[KILNI_SHA256_BYTES]);

// The digest as URL-safe base64 without padding, as RECORD files have it, and
// a NUL.
enum { KILNI_SHA256_TEXT_BYTES = 44 };
void kilni_base_sha256_text(const uint8_t digest[KILNI_SHA256_BYTES],
                            char out_text[KILNI_SHA256_TEXT_BYTES]);

#endif  // KILN_SRC_BASE_SHA256_H_
