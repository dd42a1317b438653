// SPDX-License-Identifier: Apache-2.0
//
// locate: the digest of a file: its size and SHA-256.
#include "locate/locate_digest.h"

#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "base/status_make.h"
#include "kiln/locate.h"

enum { PIECE_BYTES = 16384 };

// The public number has no header of base to take it from.
_Static_assert((int)KILN_LOCATE_SHA256_BYTES == (int)KILNI_SHA256_BYTES,
               "a SHA-256 has one size");

static kiln_status_t digest_add_window(const kilni_base_window_t* window,
                                       kilni_base_sha256_t* hash) {
  for (;;) {
    uint8_t piece[PIECE_BYTES];
    size_t got = 0;
    KILNI_RETURN_IF_ERROR(kilni_base_window_read_some(
        window, hash->size, sizeof(piece), piece, &got));
    if (got == 0) return kiln_ok();
    kilni_base_sha256_add(hash, piece, got);
  }
}

kiln_status_t kilni_locate_digest(const char* path, uint64_t* out_size,
                                  uint8_t out_sha256[KILNI_SHA256_BYTES]) {
  kilni_base_window_t window;
  kilni_base_sha256_t hash;
  *out_size = 0;
  memset(out_sha256, 0, KILNI_SHA256_BYTES);
  KILNI_RETURN_IF_ERROR(kilni_base_window_open(path, &window));
  kilni_base_sha256_init(&hash);
  kiln_status_t status = digest_add_window(&window, &hash);
  kilni_base_window_close(&window);
  KILNI_RETURN_IF_ERROR(status);
  *out_size = hash.size;
  kilni_base_sha256_finish(&hash, out_sha256);
  return kiln_ok();
}

kiln_status_t kiln_locate_item_sha256(
    const kiln_locate_item_t* item, uint64_t* out_size,
    uint8_t out_sha256[KILN_LOCATE_SHA256_BYTES]) {
  KILNI_CHECK_ARGUMENT(item != NULL, "item");
  KILNI_CHECK_ARGUMENT(out_size != NULL, "out_size");
  KILNI_CHECK_ARGUMENT(out_sha256 != NULL, "out_sha256");
  *out_size = 0;
  memset(out_sha256, 0, KILN_LOCATE_SHA256_BYTES);
  if (!kiln_locate_item_found(item)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "\"%s\" has no file to read",
                   kiln_locate_entry_name(kiln_locate_item_entry(item))),
        "call kiln_locate_item_found first");
  }
  return kilni_locate_digest(kiln_locate_item_file(item), out_size, out_sha256);
}
