// SPDX-License-Identifier: Apache-2.0
//
// cli: the format of a file by its first bytes, whatever its name.
#include "cli/cli_signature.h"

#include <string.h>

#include "cli/cli_files.h"

// One format: what it is, and the bytes that it begins with. thread-safe
typedef struct row_t {
  kilni_cli_signature_t is;
  const char* bytes;
  size_t size;
} row_t;

static const row_t kRows[] = {
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
} kAlso[] = {{".jpeg", ".jpg"}, {".tiff", ".tif"}, {".hdf5", ".h5"}};

enum { ROW_COUNT = sizeof(kRows) / sizeof(kRows[0]) };

const kilni_cli_signature_t* kilni_cli_signature_of(const uint8_t* data,
                                                    size_t size) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (size >= kRows[i].size &&
        memcmp(data, kRows[i].bytes, kRows[i].size) == 0) {
      return &kRows[i].is;
    }
  }
  return NULL;
}

// Whether files of the format have names like this.
static bool signature_has_name(const kilni_cli_signature_t* is,
                               const char* path) {
  if (kilni_cli_name_ends(path, is->end)) return true;
  for (size_t i = 0; i < sizeof(kAlso) / sizeof(kAlso[0]); i++) {
    if (strcmp(kAlso[i].as, is->end) == 0 &&
        kilni_cli_name_ends(path, kAlso[i].end)) {
      return true;
    }
  }
  return false;
}

const kilni_cli_signature_t* kilni_cli_signature_named(const char* path) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (!kRows[i].is.is_read && signature_has_name(&kRows[i].is, path)) {
      return &kRows[i].is;
    }
  }
  return NULL;
}

static const kilni_cli_named_t kNamed[] = {
    {".csv", "comma-separated values", true},
    {".tsv", "tab-separated values", true},
    {".txt", "a text", true},
    {".text", "a text", true},
    {".log", "a text", true},
    {".md", "a text", false},
    {".json", "JSON", false},
    {".jsonl", "lines of JSON", false},
    {".xml", "XML", false},
    {".svg", "an SVG picture", false},
    {".yaml", "YAML", false},
    {".yml", "YAML", false},
    {".toml", "TOML", false},
    {".ini", "settings", false},
    {".html", "HTML", false},
    {".htm", "HTML", false},
    {".npz", "an archive of arrays", false},
    {".jpg", "a JPEG picture", false},
    {".jpeg", "a JPEG picture", false},
    {".gif", "a GIF picture", false},
    {".tif", "a TIFF picture", false},
    {".tiff", "a TIFF picture", false},
    {".bmp", "a BMP picture", false},
    {".webp", "a WebP picture", false},
    {".exr", "an OpenEXR picture", false},
    {".pbm", "a PBM picture", false},
    {".pnm", "a PNM picture", false},
    {".pfm", "a PFM picture", false},
    {".h5", "an HDF5 file", false},
    {".hdf5", "an HDF5 file", false},
    {".mat", "a MATLAB file", false},
    {".parquet", "a Parquet file", false},
    {".arrow", "an Arrow file", false},
    {".feather", "an Arrow file", false},
    {".xlsx", "a spreadsheet", false},
    {".ods", "a spreadsheet", false},
    {".pkl", "pickled Python objects", false},
    {".pt", "a PyTorch file", false},
    {".pth", "a PyTorch file", false},
    {".safetensors", "tensors with a header", false},
    {".onnx", "an ONNX model", false},
    {".gguf", "a GGUF model", false},
    {".wav", "a WAV sound", false},
    {".mp3", "an MP3 sound", false},
    {".flac", "a FLAC sound", false},
    {".ogg", "an Ogg sound", false},
    {".mp4", "an MP4 film", false},
    {".pdf", "a PDF document", false},
    {".gz", "a compressed file", false},
    {".tgz", "a compressed archive", false},
    {".bz2", "a compressed file", false},
    {".xz", "a compressed file", false},
    {".zst", "a compressed file", false},
    {".lz4", "a compressed file", false},
    {".zip", "an archive", false},
    {".7z", "an archive", false},
    {".tar", "an archive", false},
};

const kilni_cli_named_t* kilni_cli_signature_says(const char* path) {
  for (size_t i = 0; i < sizeof(kNamed) / sizeof(kNamed[0]); i++) {
    if (kilni_cli_name_ends(path, kNamed[i].end)) return &kNamed[i];
  }
  return NULL;
}
