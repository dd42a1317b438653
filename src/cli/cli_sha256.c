// SPDX-License-Identifier: Apache-2.0
//
// cli: SHA-256 of files (FIPS 180-4).
#include "cli/cli_sha256.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READ_AT_ONCE 65536

// The fractional parts of the cube roots of the first 64 primes.
static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned n) {
  return (x >> n) | (x << (32 - n));
}

static void take_block(uint32_t state[8], const uint8_t* p) {
  uint32_t w[64];
  uint32_t v[8];
  for (int i = 0; i < 16; ++i)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
           (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(v, state, sizeof(v));
  for (int i = 0; i < 64; ++i) {
    uint32_t e = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
    uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    uint32_t t = v[7] + e + choice + ROUND[i] + w[i];
    uint32_t a = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
    uint32_t most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    memmove(v + 1, v, 7 * sizeof(v[0]));
    v[4] += t;
    v[0] = t + a + most;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}

void kilni_cli_sha256_init(kilni_cli_sha256_t* sha) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  memset(sha, 0, sizeof(*sha));
  memcpy(sha->state, first, sizeof(first));
}

void kilni_cli_sha256_add(kilni_cli_sha256_t* sha, const void* data,
                          size_t size) {
  const uint8_t* at = data;
  while (size != 0) {
    size_t have = (size_t)(sha->bytes % 64);
    size_t take = 64 - have < size ? 64 - have : size;
    memcpy(sha->block + have, at, take);
    sha->bytes += take;
    at += take;
    size -= take;
    if (have + take == 64) take_block(sha->state, sha->block);
  }
}

void kilni_cli_sha256_text(kilni_cli_sha256_t* sha,
                           char out[KILNI_CLI_SHA256_TEXT]) {
  static const uint8_t one = 0x80;
  static const uint8_t zero = 0;
  uint64_t bits = sha->bytes * 8;
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = (uint8_t)(bits >> (56 - 8 * i));
  kilni_cli_sha256_add(sha, &one, 1);
  while (sha->bytes % 64 != 56) kilni_cli_sha256_add(sha, &zero, 1);
  kilni_cli_sha256_add(sha, length, sizeof(length));
  for (int i = 0; i < 8; ++i)
    (void)snprintf(out + 8 * i, 9, "%08" PRIx32, sha->state[i]);
}

bool kilni_cli_sha256_file(const char* path, char out[KILNI_CLI_SHA256_TEXT],
                           uint64_t* out_size, kilni_cli_error_t* error) {
  uint8_t data[READ_AT_ONCE];
  kilni_cli_sha256_t sha;
  out[0] = 0;
  *out_size = 0;
  FILE* file = fopen(path, "rb");
  if (file == NULL)
    return kilni_cli_fail(
        error, errno == ENOENT ? KILN_STATUS_NOT_FOUND : KILN_STATUS_IO_ERROR,
        "Check the file's permissions.", "\"%s\" could not be opened: %s", path,
        strerror(errno));
  kilni_cli_sha256_init(&sha);
  for (;;) {
    size_t got = fread(data, 1, sizeof(data), file);
    if (got == 0) break;
    kilni_cli_sha256_add(&sha, data, got);
  }
  bool ok = ferror(file) == 0;
  (void)fclose(file);
  if (!ok)
    return kilni_cli_fail(error, KILN_STATUS_IO_ERROR,
                          "Check the disk that it lies on.",
                          "\"%s\" could not be read", path);
  *out_size = sha.bytes;
  kilni_cli_sha256_text(&sha, out);
  return true;
}
