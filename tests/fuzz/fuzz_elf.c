// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as an ELF file: an error with a cure, or facts.
#include <stdlib.h>
#include <string.h>

#include "base/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void end(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  kiln_status_code_t code = kiln_status_code(status);
  require(code == KILN_STATUS_BAD_DATA || code == KILN_STATUS_UNSUPPORTED ||
          code == KILN_STATUS_LIMIT_EXCEEDED);
  require(kiln_status_fix(status) != NULL);
  kiln_status_free(status);
}

static bool on_symbol(const kilni_base_elf_symbol_t* symbol, void* user) {
  size_t* left = user;
  require(symbol->name.size == 0 ||
          memchr(symbol->name.data, 0, symbol->name.size) == NULL);
  return (*left)-- > 0;
}

static bool on_version(const char* name, const char* library, void* user) {
  size_t* left = user;
  require(name != NULL);
  (void)library;
  return (*left)-- > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_bytes_view_t bytes = {data, size};
  kilni_base_elf_t* elf;
  kiln_status_t status =
      kilni_base_elf_open_bytes(kiln_allocator_libc(), bytes, "fuzz", &elf);
  require(kiln_status_is_ok(status) == (elf != NULL));
  end(status);
  if (elf == NULL) return 0;
  char id[2 * KILNI_ELF_MAX_BUILD_ID + 1];
  end(kilni_base_elf_build_id(elf, id));
  require(strlen(id) % 2 == 0);
  size_t left = 100000;
  end(kilni_base_elf_symbols_each(elf, "_", on_symbol, &left));
  left = 1000;
  end(kilni_base_elf_versions_each(elf, on_version, &left));
  char text[32];
  end(kilni_base_elf_text_find(elf, ".rodata", "Cuda", 1 << 20, sizeof(text),
                               text));
  require(text[0] == 0 || strncmp(text, "Cuda", 4) == 0);
  for (uint32_t i = 0; i < kilni_base_elf_needed_count(elf); i++) {
    require(kilni_base_elf_needed(elf, i) != NULL);
  }
  kilni_base_elf_close(elf);
  return 0;
}
