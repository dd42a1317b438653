// SPDX-License-Identifier: Apache-2.0
//
// locate: reader of glibc's ld.so.cache.
//
// Private to the module. Reads a block of bytes that may be anything: every
// offset is checked before it is followed, and a search takes a number of steps
// that grows with the logarithm of the entries, whatever the entries contain.
#ifndef KILN_SRC_LOCATE_LOCATE_LDCACHE_H_
#define KILN_SRC_LOCATE_LOCATE_LDCACHE_H_

#include "kiln/api.h"

enum {
  KILNI_LDCACHE_X86_64 = 0x0303,   // flags of a 64-bit x86 library
  KILNI_LDCACHE_AARCH64 = 0x0a03,  // and of a 64-bit Arm one
  KILNI_LDCACHE_MAX_SAME = 64      // entries of one name that are looked at
};

// This machine's level, which is asked only where an entry has one.
#define KILNI_LDCACHE_LEVEL_ASK (UINT32_MAX - 1)

// An open cache; borrows its bytes. thread-compatible
typedef struct kilni_locate_ldcache_t {
  const uint8_t* base;  // of the new format, after an old one
  size_t size;
  uint32_t count;
  uint32_t hwcaps;        // offset of the names of CPU levels
  uint32_t hwcaps_count;  // 0: none
} kilni_locate_ldcache_t;

// False if the bytes are not a cache of a known form; `*out_why` gives the
// reason.
bool kilni_locate_ldcache_open(const uint8_t* data, size_t size,
                               kilni_locate_ldcache_t* out_cache,
                               const char** out_why);

// The path for a name among the entries with those flags: of several the one
// for the highest CPU level that is at most `level` (0: plain, 2 to 4:
// x86-64-v2 to v4, or KILNI_LDCACHE_LEVEL_ASK). Empty if there is none.
kiln_string_view_t kilni_locate_ldcache_find(
    const kilni_locate_ldcache_t* cache, const char* name, uint32_t flags,
    uint32_t level);

// The highest level of this machine's CPU.
uint32_t kilni_locate_ldcache_cpu_level(void);

#endif  // KILN_SRC_LOCATE_LOCATE_LDCACHE_H_
