// SPDX-License-Identifier: Apache-2.0
//
// tests: what the library's programs on bytes make, in plain C on one core: the
// loops that one would write. The benches take them as their baseline.
#ifndef KILN_TESTS_SUPPORT_PLAIN_BYTES_H_
#define KILN_TESTS_SUPPORT_PLAIN_BYTES_H_

#include <stddef.h>
#include <stdint.h>

// The BLAKE3 hash of `count` bytes, as eight words, the first byte lowest.
void plain_bytes_blake3(const uint8_t* text, size_t count, uint32_t hash[8]);

#endif  // KILN_TESTS_SUPPORT_PLAIN_BYTES_H_
