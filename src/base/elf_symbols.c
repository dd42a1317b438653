// SPDX-License-Identifier: Apache-2.0
//
// base: the dynamic symbols and version nodes of an ELF file.
#include <string.h>

#include "base/alloc.h"
#include "base/elf_inside.h"
#include "base/status_make.h"
#include "base/str.h"

enum {
  HASH_PIECE = 1024,    // words of a hash table read at a time
  MAX_VERSIONS = 65536  // version nodes of a file, over all libraries
};

// ---- Symbols ----

// The last symbol that a GNU hash table's chains reach, plus one.
static kiln_status_t count_by_chain(const kilni_base_elf_t* elf,
                                    uint64_t chains, uint32_t first,
                                    uint32_t highest, uint64_t* out_count) {
  uint8_t word[4];
  for (uint64_t at = highest; at < KILNI_ELF_MAX_SYMBOLS; at++) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_address(elf, chains + (at - first) * 4, 4, word));
    if (kilni_base_elf_get32(word) & 1) {
      *out_count = at + 1;
      return kiln_ok();
    }
  }
  return kilni_base_elf_too_many(elf, "dynamic symbols", KILNI_ELF_MAX_SYMBOLS,
                                 KILNI_ELF_MAX_SYMBOLS);
}

static kiln_status_t count_by_gnu_hash(const kilni_base_elf_t* elf,
                                       uint64_t* out_count) {
  uint8_t head[16];
  KILNI_RETURN_IF_ERROR(
      kilni_base_elf_fetch_address(elf, elf->gnu_hash, 16, head));
  uint32_t buckets = kilni_base_elf_get32(head);
  uint32_t first = kilni_base_elf_get32(head + 4);
  uint32_t bloom = kilni_base_elf_get32(head + 8);
  if (buckets > KILNI_ELF_MAX_SYMBOLS || bloom > KILNI_ELF_MAX_SYMBOLS ||
      first > KILNI_ELF_MAX_SYMBOLS) {
    return kilni_base_elf_broken(elf, "its hash table is too large");
  }
  uint64_t at = elf->gnu_hash + 16 + (uint64_t)bloom * (elf->wide ? 8 : 4);
  uint32_t highest = 0;
  uint8_t piece[HASH_PIECE * 4];
  for (uint32_t done = 0; done < buckets;) {
    uint32_t here = buckets - done < HASH_PIECE ? buckets - done : HASH_PIECE;
    KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch_address(
        elf, at + (uint64_t)done * 4, (size_t)here * 4, piece));
    for (uint32_t i = 0; i < here; i++) {
      uint32_t bucket = kilni_base_elf_get32(piece + (size_t)i * 4);
      if (bucket > highest) highest = bucket;
    }
    done += here;
  }
  *out_count = first;
  if (highest < first) return kiln_ok();
  return count_by_chain(elf, at + (uint64_t)buckets * 4, first, highest,
                        out_count);
}

static kiln_status_t count_symbols(const kilni_base_elf_t* elf,
                                   uint64_t* out_count) {
  *out_count = 0;
  if (elf->symbols == 0 || elf->strings == 0) return kiln_ok();
  if (elf->hash != 0) {
    uint8_t head[8];
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_address(elf, elf->hash, 8, head));
    *out_count = kilni_base_elf_get32(head + 4);
  } else if (elf->gnu_hash != 0) {
    KILNI_RETURN_IF_ERROR(count_by_gnu_hash(elf, out_count));
  }
  if (*out_count > KILNI_ELF_MAX_SYMBOLS) {
    return kilni_base_elf_too_many(elf, "dynamic symbols", *out_count,
                                   KILNI_ELF_MAX_SYMBOLS);
  }
  if (elf->strings_size > KILNI_ELF_MAX_STRINGS) {
    return kilni_base_elf_too_many(elf, "bytes of names", elf->strings_size,
                                   KILNI_ELF_MAX_STRINGS);
  }
  return kiln_ok();
}

static kilni_base_elf_symbol_t symbol_at(const kilni_base_elf_t* elf,
                                         const uint8_t* at) {
  kilni_base_elf_symbol_t symbol;
  memset(&symbol, 0, sizeof(symbol));
  if (elf->wide) {
    symbol.value = kilni_base_elf_get64(at + 8);
    symbol.size = kilni_base_elf_get64(at + 16);
    symbol.defined = kilni_base_elf_get16(at + 6) != 0;
  } else {
    symbol.value = kilni_base_elf_get32(at + 4);
    symbol.size = kilni_base_elf_get32(at + 8);
    symbol.defined = kilni_base_elf_get16(at + 14) != 0;
  }
  return symbol;
}

static void visit_symbols(const kilni_base_elf_t* elf, const uint8_t* symbols,
                          uint64_t count, const char* names, const char* prefix,
                          kilni_base_elf_symbol_fn_t fn, void* user) {
  size_t size = elf->wide ? 24 : 16;
  size_t names_size = (size_t)elf->strings_size;
  size_t prefix_size = strlen(prefix);
  for (uint64_t i = 0; i < count; i++) {
    const uint8_t* at = symbols + i * size;
    size_t offset = kilni_base_elf_get32(at);
    if (offset >= names_size || prefix_size > names_size - offset ||
        memcmp(names + offset, prefix, prefix_size) != 0) {
      continue;
    }
    const char* end = memchr(names + offset, 0, names_size - offset);
    if (end == NULL) continue;
    kilni_base_elf_symbol_t symbol = symbol_at(elf, at);
    symbol.name =
        kilni_base_sv_make(names + offset, (size_t)(end - names) - offset);
    if (!fn(&symbol, user)) return;
  }
}

kiln_status_t kilni_base_elf_symbols_each(kilni_base_elf_t* elf,
                                          const char* prefix,
                                          kilni_base_elf_symbol_fn_t fn,
                                          void* user) {
  uint64_t count;
  KILNI_RETURN_IF_ERROR(count_symbols(elf, &count));
  if (count == 0 || elf->strings_size == 0) return kiln_ok();
  size_t symbols_size = (size_t)count * (elf->wide ? 24 : 16);
  size_t names_size = (size_t)elf->strings_size;
  // Checked before memory is taken for what the file cannot hold.
  if (symbols_size > elf->window.size || names_size > elf->window.size) {
    return kilni_base_elf_broken(elf, "its symbols are longer than it is");
  }
  void* symbols = NULL;
  void* names = NULL;
  kiln_status_t status =
      kilni_base_alloc_unset(elf->allocator, symbols_size, &symbols);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_unset(elf->allocator, names_size, &names);
  }
  if (kiln_status_is_ok(status)) {
    status =
        kilni_base_elf_fetch_address(elf, elf->symbols, symbols_size, symbols);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_base_elf_fetch_address(elf, elf->strings, names_size, names);
  }
  if (kiln_status_is_ok(status)) {
    visit_symbols(elf, symbols, count, names, prefix, fn, user);
  }
  kilni_base_free(elf->allocator, names, names_size);
  kilni_base_free(elf->allocator, symbols, symbols_size);
  return status;
}

// ---- Version nodes ----

// How many nodes may still be visited. A table is a chain of offsets, and only
// a count keeps a hostile one from being endless.
typedef struct version_walk_t {
  const kilni_base_elf_t* elf;
  kilni_base_elf_version_fn_t fn;
  void* user;
  uint32_t left;
  bool stopped;
} version_walk_t;

static kiln_status_t visit_version(version_walk_t* walk, uint32_t name,
                                   const char* library) {
  if (walk->left == 0) {
    return kilni_base_elf_too_many(walk->elf, "version nodes", MAX_VERSIONS + 1,
                                   MAX_VERSIONS);
  }
  walk->left--;
  char* text;
  KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch_text(walk->elf, name, &text));
  walk->stopped = !walk->fn(text, library, walk->user);
  kilni_base_strfree(walk->elf->allocator, text);
  return kiln_ok();
}

static kiln_status_t visit_defined(version_walk_t* walk) {
  const kilni_base_elf_t* elf = walk->elf;
  uint64_t at = elf->defined_versions;
  for (uint64_t i = 0; i < elf->defined_version_count && !walk->stopped; i++) {
    uint8_t node[20];
    uint8_t name[4];
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_address(elf, at, sizeof(node), node));
    KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch_address(
        elf, at + kilni_base_elf_get32(node + 12), sizeof(name), name));
    KILNI_RETURN_IF_ERROR(
        visit_version(walk, kilni_base_elf_get32(name), elf->soname));
    uint32_t next = kilni_base_elf_get32(node + 16);
    if (next == 0) return kiln_ok();
    at += next;
  }
  return kiln_ok();
}

// The nodes that are asked of one library; `at` is the first of them.
static kiln_status_t visit_needed_of(version_walk_t* walk, uint64_t at,
                                     uint32_t count, const char* library) {
  for (uint32_t i = 0; i < count && !walk->stopped; i++) {
    uint8_t node[16];
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_address(walk->elf, at, sizeof(node), node));
    KILNI_RETURN_IF_ERROR(
        visit_version(walk, kilni_base_elf_get32(node + 8), library));
    uint32_t next = kilni_base_elf_get32(node + 12);
    if (next == 0) return kiln_ok();
    at += next;
  }
  return kiln_ok();
}

static kiln_status_t visit_needed(version_walk_t* walk) {
  const kilni_base_elf_t* elf = walk->elf;
  uint64_t at = elf->needed_versions;
  for (uint64_t i = 0; i < elf->needed_version_count && !walk->stopped; i++) {
    if (i == MAX_VERSIONS) {
      return kilni_base_elf_too_many(elf, "libraries with versions", i + 1,
                                     MAX_VERSIONS);
    }
    uint8_t node[16];
    char* library;
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_address(elf, at, sizeof(node), node));
    KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch_text(
        elf, kilni_base_elf_get32(node + 4), &library));
    kiln_status_t status =
        visit_needed_of(walk, at + kilni_base_elf_get32(node + 8),
                        kilni_base_elf_get16(node + 2), library);
    kilni_base_strfree(elf->allocator, library);
    KILNI_RETURN_IF_ERROR(status);
    uint32_t next = kilni_base_elf_get32(node + 12);
    if (next == 0) return kiln_ok();
    at += next;
  }
  return kiln_ok();
}

kiln_status_t kilni_base_elf_versions_each(kilni_base_elf_t* elf,
                                           kilni_base_elf_version_fn_t fn,
                                           void* user) {
  version_walk_t walk = {elf, fn, user, MAX_VERSIONS, false};
  if (elf->defined_versions != 0) KILNI_RETURN_IF_ERROR(visit_defined(&walk));
  if (elf->needed_versions != 0) KILNI_RETURN_IF_ERROR(visit_needed(&walk));
  return kiln_ok();
}
