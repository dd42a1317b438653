// SPDX-License-Identifier: Apache-2.0
//
// cli: what a file is by its first bytes, whatever its name says.
#include "cli/cli_signature.h"

#include <string.h>

#include "cli/cli_files.h"

// One format: what it is, and the bytes that it begins with. thread-safe
typedef struct row_t {
  kilni_cli_signature_t is;
  const char* bytes;
  size_t size;
} row_t;

static const row_t ROWS[] = {
    {{"a .npy array", ".npy", true, true}, "\x93NUMPY", 6},
    {{"a PNG picture", ".png", true, true}, "\x89PNG\r\n\x1a\n", 8},
    {{"an archive of arrays (.npz) or another zip file", ".npz", false, false},
     "PK\x03\x04",
     4},
    {{"a JPEG picture", ".jpg", false, false}, "\xff\xd8\xff", 3},
    {{"a GIF picture", ".gif", false, true}, "GIF89a", 6},
    {{"a GIF picture", ".gif", false, true}, "GIF87a", 6},
    {{"a TIFF picture", ".tif", false, false}, "II*\0", 4},
    {{"a TIFF picture", ".tif", false, false}, "MM\0*", 4},
    {{"an HDF5 file", ".h5", false, true}, "\x89HDF\r\n\x1a\n", 8},
    {{"a gzip file", ".gz", false, false}, "\x1f\x8b\x08", 3},
};

// Further ends of names of the same formats.
static const struct {
  const char* end;
  const char* as;
} ALSO[] = {{".jpeg", ".jpg"}, {".tiff", ".tif"}, {".hdf5", ".h5"}};

enum { ROW_COUNT = sizeof(ROWS) / sizeof(ROWS[0]) };

const kilni_cli_signature_t* kilni_cli_signature_of(const uint8_t* data,
                                                    size_t size) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (size >= ROWS[i].size &&
        memcmp(data, ROWS[i].bytes, ROWS[i].size) == 0) {
      return &ROWS[i].is;
    }
  }
  return NULL;
}

// Whether files of the format have names like this.
static bool has_name(const kilni_cli_signature_t* is, const char* path) {
  if (kilni_cli_name_ends(path, is->end)) return true;
  for (size_t i = 0; i < sizeof(ALSO) / sizeof(ALSO[0]); i++) {
    if (strcmp(ALSO[i].as, is->end) == 0 &&
        kilni_cli_name_ends(path, ALSO[i].end)) {
      return true;
    }
  }
  return false;
}

const kilni_cli_signature_t* kilni_cli_signature_named(const char* path) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (!ROWS[i].is.is_read && has_name(&ROWS[i].is, path)) return &ROWS[i].is;
  }
  return NULL;
}
