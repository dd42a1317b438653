// SPDX-License-Identifier: Apache-2.0
//
// base: the facts in an ELF file, without loading it.
//
// Reads shared libraries and programs, 32 and 64 bits wide, in the byte order
// of x86 and ARM. Every offset of the file is checked; nothing is mapped, so
// that a file which shrinks while it is read is an error and not a fault. Of a
// large library a few dozen kilobytes are read: the dynamic part, and a section
// only when it is asked for.
#ifndef KILN_SRC_BASE_ELF_H_
#define KILN_SRC_BASE_ELF_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

enum {
  // Limits: above any of them a file is LIMIT_EXCEEDED, or BAD_DATA where no
  // real file comes near.
  KILNI_ELF_MAX_PROGRAM_HEADERS = 4096,
  KILNI_ELF_MAX_SECTIONS = 65536,
  KILNI_ELF_MAX_DYNAMIC = 65536,     // entries of .dynamic
  KILNI_ELF_MAX_STRINGS = 64 << 20,  // bytes of .dynstr
  KILNI_ELF_MAX_SYMBOLS = 2 << 20,   // dynamic symbols
  KILNI_ELF_MAX_BUILD_ID = 64,       // bytes
  KILNI_ELF_MAX_NOTES = 1 << 20,     // bytes of one note segment
  KILNI_ELF_SCAN_BYTES = 256 << 10,  // read at a time when text is sought
  KILNI_ELF_MAX_NEEDLE = 256,        // bytes of a text that is sought
  KILNI_ELF_HEAD_BYTES = 16 << 10    // read at once when a file is opened
};

// The machines that Kiln names; others are numbers.
enum { KILNI_ELF_X86_64 = 62, KILNI_ELF_AARCH64 = 183 };

// An open ELF file. one-thread
typedef struct kilni_base_elf_t kilni_base_elf_t;

// The symbols that kilni_base_elf_symbols_each visits. thread-compatible
typedef struct kilni_base_elf_symbol_t {
  kiln_string_view_t name;  // without a version; borrowed during the visit
  uint64_t value;
  uint64_t size;
  bool defined;
} kilni_base_elf_symbol_t;

// Opens a file; the path is copied for messages. NOT_FOUND, PERMISSION_DENIED,
// IO_ERROR; UNSUPPORTED for what is not an ELF file (or one of another byte
// order), BAD_DATA for a damaged one.
kiln_status_t kilni_base_elf_open(kiln_allocator_t allocator, const char* path,
                                  kilni_base_elf_t** out_elf);

// The same over bytes, which must outlive the object; `name` for messages.
kiln_status_t kilni_base_elf_open_bytes(kiln_allocator_t allocator,
                                        kiln_bytes_view_t bytes,
                                        const char* name,
                                        kilni_base_elf_t** out_elf);
void kilni_base_elf_close(kilni_base_elf_t* elf);  // NULL is accepted

// ---- Known once it is open; borrowed from the object ----

uint32_t kilni_base_elf_machine(const kilni_base_elf_t* elf);
uint32_t kilni_base_elf_bits(const kilni_base_elf_t* elf);  // 32 or 64
uint64_t kilni_base_elf_file_bytes(const kilni_base_elf_t* elf);
bool kilni_base_elf_is_dynamic(const kilni_base_elf_t* elf);     // has .dynamic
const char* kilni_base_elf_soname(const kilni_base_elf_t* elf);  // or NULL
const char* kilni_base_elf_rpath(const kilni_base_elf_t* elf);   // or NULL
const char* kilni_base_elf_runpath(const kilni_base_elf_t* elf);  // or NULL
uint32_t kilni_base_elf_needed_count(const kilni_base_elf_t* elf);
const char* kilni_base_elf_needed(const kilni_base_elf_t* elf, uint32_t index);

// ---- Read when asked for ----

// The build id as lower-case hexadecimal; "" without one. `out_text` has space
// for 2 * KILNI_ELF_MAX_BUILD_ID + 1 bytes.
kiln_status_t kilni_base_elf_build_id(kilni_base_elf_t* elf, char* out_text);

// Visits the dynamic symbols whose name begins with `prefix`, until `fn`
// returns false. A file without any is not an error.
typedef bool (*kilni_base_elf_symbol_fn_t)(
    const kilni_base_elf_symbol_t* symbol, void* user);
kiln_status_t kilni_base_elf_symbols_each(kilni_base_elf_t* elf,
                                          const char* prefix,
                                          kilni_base_elf_symbol_fn_t fn,
                                          void* user);

// Visits the names of the version nodes that the file defines
// ("libnvJitLink.so.13"), then those that it needs of others.
typedef bool (*kilni_base_elf_version_fn_t)(const char* name,
                                            const char* library, void* user);
kiln_status_t kilni_base_elf_versions_each(kilni_base_elf_t* elf,
                                           kilni_base_elf_version_fn_t fn,
                                           void* user);

// Seeks `needle` in the section `section` (".rodata") and copies the printable
// text that begins there, at most `capacity` - 1 bytes and a NUL, up to the
// first control character. At most `limit` bytes of the section are read, and
// none of the rest of the file. "" where it is missing.
kiln_status_t kilni_base_elf_text_find(kilni_base_elf_t* elf,
                                       const char* section, const char* needle,
                                       uint64_t limit, size_t capacity,
                                       char* out_text);

#endif  // KILN_SRC_BASE_ELF_H_
