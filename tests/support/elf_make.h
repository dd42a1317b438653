// SPDX-License-Identifier: Apache-2.0
//
// support: small ELF files, made byte by byte.
//
// One loaded segment whose addresses are offsets in the file, so that a test
// can say where everything lies and break it there.
#ifndef KILN_TESTS_SUPPORT_ELF_MAKE_H_
#define KILN_TESTS_SUPPORT_ELF_MAKE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is to be in a file; NULL and 0 leave a part out. thread-compatible
typedef struct elf_plan_t {
  const char* soname;
  const char* rpath;
  const char* runpath;
  const char* needed[8];    // up to the first NULL
  const char* defined[16];  // symbols
  const char* undefined[16];
  const char* rodata;          // text that stands in .rodata
  size_t rodata_offset;        // behind so many zeroes
  const char* version;         // the node that it defines
  const char* needed_version;  // the node that it needs of needed[0]
  uint8_t build_id[20];
  bool has_build_id;
  bool gnu_hash;     // instead of the old hash table
  bool narrow;       // 32 bits
  uint16_t machine;  // 0: x86-64
} elf_plan_t;

// A file and where its parts are. thread-compatible
typedef struct elf_made_t {
  uint8_t* data;  // freed by free()
  size_t size;
  size_t segments;  // offset of the program headers
  size_t dynamic;
  size_t strings;
  size_t symbols;
  size_t hash;
  size_t sections;  // offset of the section headers
} elf_made_t;

elf_made_t elf_make(const elf_plan_t* plan);

#endif  // KILN_TESTS_SUPPORT_ELF_MAKE_H_
