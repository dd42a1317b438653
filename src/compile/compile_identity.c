// SPDX-License-Identifier: Apache-2.0
//
// compile: which build of a library a file is, wherever it is.
//
// The linker's build id identifies it, and reading that costs one page. A file
// without one is read whole.
#include "compile/compile_identity.h"

#include <stdio.h>

#include "base/elf.h"
#include "base/file.h"
#include "base/status_make.h"
#include "cache/cache.h"

static kiln_status_t by_build_id(kiln_allocator_t allocator, const char* path,
                                 char out_text[KILNI_IDENTITY_BYTES]) {
  char build_id[2 * KILNI_ELF_MAX_BUILD_ID + 1] = "";
  kilni_base_elf_t* elf = NULL;
  uint64_t bytes = 0;
  kiln_status_t status = kilni_base_elf_open(allocator, path, &elf);
  if (kiln_status_is_ok(status)) {
    bytes = kilni_base_elf_file_bytes(elf);
    status = kilni_base_elf_build_id(elf, build_id);
  }
  kilni_base_elf_close(elf);
  if (kiln_status_is_ok(status) && build_id[0] != 0) {
    snprintf(out_text, KILNI_IDENTITY_BYTES, "build %s, %llu bytes", build_id,
             (unsigned long long)bytes);
  }
  return status;
}

static kiln_status_t by_content(kiln_allocator_t allocator, const char* path,
                                char out_text[KILNI_IDENTITY_BYTES]) {
  uint8_t* data = NULL;
  size_t size = 0;
  char digest[KILN_CACHE_NAME_BYTES];
  KILNI_RETURN_IF_ERROR(
      kilni_base_file_read(allocator, path, SIZE_MAX / 2, &data, &size));
  kilni_cache_digest((kiln_bytes_view_t){data, size}, digest);
  kilni_base_file_free(allocator, data, size);
  snprintf(out_text, KILNI_IDENTITY_BYTES, "file %s, %zu bytes", digest, size);
  return kiln_ok();
}

kiln_status_t kilni_compile_identity_of_file(
    kiln_allocator_t allocator, const char* path,
    char out_text[KILNI_IDENTITY_BYTES]) {
  out_text[0] = 0;
  kiln_status_t status = by_build_id(allocator, path, out_text);
  if (out_text[0] != 0) return status;
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  status = by_content(allocator, path, out_text);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  // A library without a file cannot be distinguished from another of its
  // version.
  kiln_status_free(status);
  return kiln_ok();
}
