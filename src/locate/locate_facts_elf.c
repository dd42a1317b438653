// SPDX-License-Identifier: Apache-2.0
//
// locate: the facts in a library or program.
//
// Symbols and texts are sought only where they are known to be the file's own:
// libraries with device code carry the release texts of the compilers that
// made it (CUPTI of 13.0 has one of 13.1 inside).
#include <stdio.h>
#include <string.h>

#include "base/elf.h"
#include "base/path.h"
#include "base/status_make.h"
#include "base/str.h"
#include "kiln/locate_catalog.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

enum { TEXT_BYTES = 256, FOLDER_BYTES = 4096, SIBLING_BYTES = 64 };

static const char kSymbolPrefix[] = "__nvJitLink";
static const char kRelease[] = "Cuda compilation tools, release ";
static const char kBuiltWith[] = "compiled with CUDA ";

// Whose own release text it is. In NVRTC and cicc it is megabytes deep.
static const struct {
  uint32_t kind;
  bool is_deep;
  const char* name;
} kTools[] = {
    {KILN_LOCATE_KIND_LIB, true, "nvrtc"},
    {KILN_LOCATE_KIND_LIB, false, "nvJitLink"},
    {KILN_LOCATE_KIND_LIB, false, "nvvm"},
    {KILN_LOCATE_KIND_BINARY, false, "nvcc"},
    {KILN_LOCATE_KIND_BINARY, false, "ptxas"},
    {KILN_LOCATE_KIND_BINARY, false, "nvlink"},
    {KILN_LOCATE_KIND_BINARY, false, "fatbinary"},
    {KILN_LOCATE_KIND_BINARY, true, "cicc"},
};

static bool facts_elf_is_named(const kilni_locate_facts_read_t* read,
                               const char* name) {
  const char* given = read->query->name;
  return given != NULL && strcmp(given, name) == 0;
}

// A tool by its kind and name; -1 where it is none.
static int facts_elf_tool_of(const kilni_locate_facts_read_t* read) {
  for (size_t i = 0; i < sizeof(kTools) / sizeof(kTools[0]); i++) {
    if (kTools[i].kind == read->query->kind &&
        facts_elf_is_named(read, kTools[i].name)) {
      return (int)i;
    }
  }
  return -1;
}

// ---- The dynamic part ----

static kiln_status_t facts_elf_copy_text(kilni_locate_facts_read_t* read,
                                         const char* text,
                                         const char** out_text) {
  if (text == NULL) return kiln_ok();
  return kilni_locate_store_text(&read->reader->store, kilni_base_sv(text),
                                 out_text);
}

static kiln_status_t take_dynamic(kilni_locate_facts_read_t* read,
                                  kilni_base_elf_t* elf) {
  kilni_locate_facts_t* facts = read->facts;
  facts->machine = kilni_base_elf_machine(elf);
  facts->bits = kilni_base_elf_bits(elf);
  facts->size = kilni_base_elf_file_bytes(elf);
  KILNI_RETURN_IF_ERROR(
      facts_elf_copy_text(read, kilni_base_elf_soname(elf), &facts->soname));
  KILNI_RETURN_IF_ERROR(
      facts_elf_copy_text(read, kilni_base_elf_rpath(elf), &facts->rpath));
  KILNI_RETURN_IF_ERROR(
      facts_elf_copy_text(read, kilni_base_elf_runpath(elf), &facts->runpath));
  uint32_t count = kilni_base_elf_needed_count(elf);
  if (count == 0) return kiln_ok();
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &read->reader->store, (size_t)count * sizeof(char*), &memory));
  const char** needed = memory;
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(
        facts_elf_copy_text(read, kilni_base_elf_needed(elf, i), &needed[i]));
  }
  facts->needed = needed;
  facts->needed_count = count;
  return kiln_ok();
}

// ---- Versioned symbols ----

// The highest lines so far.
typedef struct symbols_t {
  kilni_locate_facts_read_t* read;
  kiln_status_t status;
} symbols_t;

static bool on_symbol(const kilni_base_elf_symbol_t* symbol, void* user) {
  symbols_t* symbols = user;
  kilni_locate_facts_t* facts = symbols->read->facts;
  uint32_t line = kilni_locate_line_of_symbol(symbol->name);
  kilni_locate_line_t* highest =
      symbol->defined ? &facts->symbol : &facts->needs;
  if (line <= highest->line) return true;
  symbols->status = kilni_locate_facts_line(&symbols->read->reader->store, line,
                                            symbol->name, facts->path, highest);
  return kiln_status_is_ok(symbols->status);
}

// Only those that define or need them are asked: the names of a large library
// are hundreds of kilobytes.
static bool has_versioned_symbols(const kilni_locate_facts_read_t* read) {
  if (facts_elf_is_named(read, "nvJitLink")) return true;
  for (uint32_t i = 0; i < read->facts->needed_count; i++) {
    if (strncmp(read->facts->needed[i], "libnvJitLink.so", 15) == 0) {
      return true;
    }
  }
  return false;
}

static kiln_status_t take_symbols(kilni_locate_facts_read_t* read,
                                  kilni_base_elf_t* elf) {
  if (!has_versioned_symbols(read)) return kiln_ok();
  symbols_t symbols = {read, NULL};
  KILNI_RETURN_IF_ERROR(
      kilni_base_elf_symbols_each(elf, kSymbolPrefix, on_symbol, &symbols));
  return symbols.status;
}

// ---- Texts ----

static kiln_status_t facts_elf_take_release(kilni_locate_facts_read_t* read,
                                            kilni_base_elf_t* elf) {
  int tool = facts_elf_tool_of(read);
  kilni_locate_facts_t* facts = read->facts;
  bool verify = read->depth >= KILNI_LOCATE_FACTS_LINE;
  if (tool < 0) return kiln_ok();
  bool is_known = facts->symbol.line != 0 || facts->sibling.line != 0;
  if (!verify && (is_known || kTools[tool].is_deep)) return kiln_ok();
  uint64_t limit = verify ? KILNI_FACTS_TEXT_VERIFY : KILNI_FACTS_TEXT_CHEAP;
  char text[TEXT_BYTES];
  KILNI_RETURN_IF_ERROR(kilni_base_elf_text_find(elf, ".rodata", kRelease,
                                                 limit, sizeof(text), text));
  if (text[0] == 0) return kiln_ok();
  const char* version = text + sizeof(kRelease) - 1;
  kilni_locate_store_t* store = &read->reader->store;
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_line(
      store, kilni_locate_line_of_version(kilni_base_sv(version)),
      kilni_base_sv(text), facts->path, &facts->release));
  const char* full = strstr(version, ", V");
  if (full == NULL || facts->release.line == 0) return kiln_ok();
  return kilni_locate_store_text(
      store, kilni_locate_version_at(kilni_base_sv(full + 3)),
      &facts->release_version);
}

// NCCL states which toolkit it was made with.
static kiln_status_t take_built(kilni_locate_facts_read_t* read,
                                kilni_base_elf_t* elf) {
  if (!facts_elf_is_named(read, "nccl") ||
      read->query->kind != KILN_LOCATE_KIND_LIB) {
    return kiln_ok();
  }
  bool verify = read->depth >= KILNI_LOCATE_FACTS_LINE;
  char text[TEXT_BYTES];
  KILNI_RETURN_IF_ERROR(kilni_base_elf_text_find(
      elf, ".rodata", kBuiltWith,
      verify ? KILNI_FACTS_TEXT_VERIFY : KILNI_FACTS_TEXT_CHEAP, sizeof(text),
      text));
  const char* version = text + (text[0] != 0 ? sizeof(kBuiltWith) - 1 : 0);
  return kilni_locate_facts_line(
      &read->reader->store,
      kilni_locate_line_of_version(kilni_base_sv(version)), kilni_base_sv(text),
      read->facts->path, &read->facts->built);
}

// ---- The sibling ----

// The release of the libnvrtc-builtins.so.M.m in the folder of `path`. Two
// releases in one folder decide nothing.
static kiln_status_t seek_sibling(kilni_locate_facts_read_t* read,
                                  const char* path, uint64_t major) {
  char folder[FOLDER_BYTES];
  char start[SIBLING_BYTES / 2];
  char texts[KILNI_FACTS_MAX_MINOR][SIBLING_BYTES];
  const char* names[KILNI_FACTS_MAX_MINOR];
  const char* slash = strrchr(path, '/');
  size_t size = slash != NULL && slash != path ? (size_t)(slash - path) : 1;
  if (size >= sizeof(folder)) return kiln_ok();
  memcpy(folder, path, size);
  folder[size] = 0;
  int length = snprintf(start, sizeof(start), "libnvrtc-builtins.so.%u.",
                        (unsigned)major);
  for (int minor = 0; minor < KILNI_FACTS_MAX_MINOR; minor++) {
    char* text = texts[minor];
    names[minor] = text;
    memcpy(text, start, (size_t)length);
    text += length;
    if (minor >= 10) *text++ = (char)('0' + minor / 10);
    *text++ = (char)('0' + minor % 10);
    *text = 0;
  }
  uint32_t there =
      kilni_base_path_files_in(folder, names, KILNI_FACTS_MAX_MINOR);
  if (there == 0 || (there & (there - 1)) != 0) return kiln_ok();
  uint32_t minor = 0;
  while ((there >> minor & 1) == 0) minor++;
  const char* whole;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_print(&read->reader->store, &whole, "%s/%s",
                               size > 1 ? folder : "", names[minor]));
  return kilni_locate_facts_line(
      &read->reader->store, (uint32_t)(1000 * major + 10 * (uint64_t)minor),
      kilni_base_sv(names[minor]), whole, &read->facts->sibling);
}

// A source of NVRTC's release gives its own first.
static kiln_status_t take_own_name(kilni_locate_facts_read_t* read) {
  kilni_locate_facts_t* facts = read->facts;
  const char* slash = strrchr(facts->real_path, '/');
  const char* name = slash != NULL ? slash + 1 : facts->real_path;
  const char* number = strstr(name, ".so.");
  if (number == NULL) return kiln_ok();
  return kilni_locate_facts_line(
      &read->reader->store,
      kilni_locate_line_of_version(kilni_base_sv(number + 4)),
      kilni_base_sv(name), facts->real_path, &facts->sibling);
}

// Beside the file that links lead to: its own is there. Beside the link, where
// an installer links file by file.
static kiln_status_t take_sibling(kilni_locate_facts_read_t* read) {
  kilni_locate_facts_t* facts = read->facts;
  if (facts_elf_is_named(read, "nvrtc-builtins")) return take_own_name(read);
  if (!facts_elf_is_named(read, "nvrtc") ||
      read->query->kind != KILN_LOCATE_KIND_LIB || facts->soname == NULL) {
    return kiln_ok();
  }
  const char* number = strstr(facts->soname, ".so.");
  uint64_t major;
  if (number == NULL ||
      !kilni_base_sv_to_u64(kilni_locate_version_at(kilni_base_sv(number + 4)),
                            &major) ||
      major > KILNI_PARSE_MAX_MAJOR) {
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(seek_sibling(read, facts->real_path, major));
  if (facts->sibling.line != 0 || strcmp(facts->real_path, facts->path) == 0) {
    return kiln_ok();
  }
  return seek_sibling(read, facts->path, major);
}

// ---- The file ----

static kiln_status_t take_build_id(kilni_locate_facts_read_t* read,
                                   kilni_base_elf_t* elf) {
  char text[2 * KILNI_ELF_MAX_BUILD_ID + 1];
  KILNI_RETURN_IF_ERROR(kilni_base_elf_build_id(elf, text));
  return text[0] != 0 ? facts_elf_copy_text(read, text, &read->facts->build_id)
                      : kiln_ok();
}

static kiln_status_t take_texts(kilni_locate_facts_read_t* read,
                                kilni_base_elf_t* elf) {
  const char* path = read->facts->path;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_absorb(read, path, facts_elf_take_release(read, elf)));
  return kilni_locate_facts_absorb(read, path, take_built(read, elf));
}

// Each part is read whatever became of the others.
static kiln_status_t facts_elf_take_all(kilni_locate_facts_read_t* read,
                                        kilni_base_elf_t* elf) {
  const char* path = read->facts->path;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_absorb(read, path, take_dynamic(read, elf)));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_absorb(read, path, take_symbols(read, elf)));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_absorb(read, path, take_sibling(read)));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_absorb(read, path, take_build_id(read, elf)));
  return take_texts(read, elf);
}

// True of a file that may state its own release.
static bool may_tell(const kilni_locate_facts_read_t* read) {
  return facts_elf_tool_of(read) >= 0 || facts_elf_is_named(read, "nccl");
}

// Takes over what a CHEAP read found; false where it was not made, or had
// problems with an ELF file. It may only have missed text deep in the file.
static bool take_before(kilni_locate_facts_read_t* read) {
  const kilni_locate_facts_t* before = read->before;
  kilni_locate_facts_t* facts = read->facts;
  if (before == NULL || (before->problem_count > 0 && before->bits != 0)) {
    return false;
  }
  // LEAST leaves files out.
  if (before->depth == KILNI_LOCATE_FACTS_LEAST && !may_tell(read)) {
    return false;
  }
  facts->size = before->size;
  facts->machine = before->machine;
  facts->bits = before->bits;
  facts->soname = before->soname;
  facts->rpath = before->rpath;
  facts->runpath = before->runpath;
  facts->build_id = before->build_id;
  facts->needed = before->needed;
  facts->needed_count = before->needed_count;
  facts->symbol = before->symbol;
  facts->needs = before->needs;
  facts->sibling = before->sibling;
  facts->release = before->release;
  facts->built = before->built;
  facts->release_version = before->release_version;
  return true;
}

static bool may_have_text(const kilni_locate_facts_read_t* read) {
  const kilni_locate_facts_t* facts = read->facts;
  if (facts->bits == 0) return false;
  return (facts_elf_tool_of(read) >= 0 && facts->release.line == 0) ||
         (facts_elf_is_named(read, "nccl") && facts->built.line == 0);
}

kiln_status_t kilni_locate_facts_read_elf(kilni_locate_facts_read_t* read) {
  uint32_t kind = read->query->kind;
  if (read->depth == KILNI_LOCATE_FACTS_LEAST && !may_tell(read)) {
    return kiln_ok();
  }
  bool is_known = take_before(read);
  for (uint32_t i = 0; is_known && i < read->before->problem_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_problem(
        read, read->before->problems[i].path, read->before->problems[i].why));
  }
  if (is_known && !may_have_text(read)) return kiln_ok();
  bool may_be_text =
      kind != KILN_LOCATE_KIND_LIB && kind != KILN_LOCATE_KIND_STUB;
  // These state nothing that is worth opening them for.
  if (kind == KILN_LOCATE_KIND_HEADER || kind == KILN_LOCATE_KIND_STATIC ||
      kind == KILN_LOCATE_KIND_BITCODE) {
    return kiln_ok();
  }
  kilni_base_elf_t* elf;
  kiln_status_t status =
      kilni_base_elf_open(read->reader->allocator, read->facts->path, &elf);
  if (kiln_status_is_ok(status)) {
    status = is_known ? take_texts(read, elf) : facts_elf_take_all(read, elf);
    kilni_base_elf_close(elf);
  } else if (may_be_text &&
             kiln_status_code(status) == KILN_STATUS_UNSUPPORTED) {
    // A script in a program's place is all right.
    kiln_status_free(status);
    status = kiln_ok();
  }
  return status;
}
