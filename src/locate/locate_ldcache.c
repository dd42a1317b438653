// SPDX-License-Identifier: Apache-2.0
//
// locate: reader of glibc's ld.so.cache.
#include "locate/locate_ldcache.h"

#include <string.h>

#include "base/cpu_features.h"

// Old format: 12 bytes of magic, a count, entries of 12 bytes. New format, by
// itself or after an old one: 20 bytes of magic and version, a count, the size
// of the strings, a byte of flags, padding, the offset of extensions, 12 unused
// bytes; then entries of 24 bytes: flags, name, path, OS version, CPU
// capabilities. Offsets count from the start of the new format.
enum {
  OLD_HEAD = 16,
  OLD_ENTRY = 12,
  NEW_HEAD = 48,
  NEW_ENTRY = 24,
  AT_COUNT = 20,
  AT_FLAGS = 28,
  AT_EXTENSIONS = 32,
  ENDIAN_MASK = 3,
  ENDIAN_LITTLE = 2,
  EXTENSION_HEAD = 8,
  EXTENSION_SECTION = 16,
  EXTENSION_HWCAPS = 1,
  MAX_SECTIONS = 64
};

static const char kOldMagic[] = "ld.so-1.7.0";
static const char kNewMagic[] = "glibc-ld.so.cache1.1";
static const uint32_t kExtensionMagic = 0xeaa42174u;
static const uint64_t kHwcapIsIndex = UINT64_C(1) << 62;

static uint32_t read_u32(const uint8_t* at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
         (uint32_t)at[3] << 24;
}

static uint64_t ldcache_read_u64(const uint8_t* at) {
  return (uint64_t)read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

// The text at an offset; empty where it leaves the cache.
static kiln_string_view_t ldcache_text_at(const kilni_locate_ldcache_t* cache,
                                          uint32_t offset) {
  kiln_string_view_t none = {"", 0};
  if (offset >= cache->size) return none;
  const uint8_t* text = cache->base + offset;
  const uint8_t* end = memchr(text, 0, cache->size - offset);
  if (end == NULL) return none;
  kiln_string_view_t view = {(const char*)text, (size_t)(end - text)};
  return view;
}

// Where the new format starts: after the old one, on the next 8 bytes.
static size_t new_start(const uint8_t* data, size_t size) {
  size_t magic = sizeof(kOldMagic) - 1;
  if (size < OLD_HEAD || memcmp(data, kOldMagic, magic) != 0) return 0;
  uint64_t end = OLD_HEAD + (uint64_t)read_u32(data + 12) * OLD_ENTRY;
  end = (end + 7) & ~(uint64_t)7;
  return end < size ? (size_t)end : size;
}

static void read_extensions(kilni_locate_ldcache_t* cache) {
  uint32_t at = read_u32(cache->base + AT_EXTENSIONS);
  if (at == 0 || at % 4 != 0 || at > cache->size ||
      cache->size - at < EXTENSION_HEAD) {
    return;
  }
  const uint8_t* head = cache->base + at;
  if (read_u32(head) != kExtensionMagic) return;
  uint32_t count = read_u32(head + 4);
  size_t space = (cache->size - at - EXTENSION_HEAD) / EXTENSION_SECTION;
  if (count > space || count > MAX_SECTIONS) return;
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t* section =
        head + EXTENSION_HEAD + (size_t)i * EXTENSION_SECTION;
    uint32_t offset = read_u32(section + 8);
    uint32_t size = read_u32(section + 12);
    if (read_u32(section) != EXTENSION_HWCAPS) continue;
    if (offset > cache->size || size > cache->size - offset) continue;
    cache->hwcaps = offset;
    cache->hwcaps_count = size / 4;
  }
}

bool kilni_locate_ldcache_open(const uint8_t* data, size_t size,
                               kilni_locate_ldcache_t* out_cache,
                               const char** out_why) {
  memset(out_cache, 0, sizeof(*out_cache));
  *out_why = NULL;
  size_t start = new_start(data, size);
  size_t magic = sizeof(kNewMagic) - 1;
  if (size - start < NEW_HEAD || memcmp(data + start, kNewMagic, magic) != 0) {
    *out_why = "not a cache of the form that glibc writes since 2.32";
    return false;
  }
  out_cache->base = data + start;
  out_cache->size = size - start;
  out_cache->count = read_u32(out_cache->base + AT_COUNT);
  uint8_t endian = out_cache->base[AT_FLAGS] & ENDIAN_MASK;
  if (endian != 0 && endian != ENDIAN_LITTLE) {
    *out_why = "a cache of a machine with the other byte order";
    return false;
  }
  if (out_cache->count > (out_cache->size - NEW_HEAD) / NEW_ENTRY) {
    *out_why = "cut off: it has fewer entries than its header states";
    return false;
  }
  read_extensions(out_cache);
  return true;
}

// The number at `*inout_at`, whose digits it passes; large ones wrap.
static uint32_t ldcache_number_at(const char** inout_at) {
  uint32_t value = 0;
  while (**inout_at >= '0' && **inout_at <= '9') {
    value = value * 10 + (uint32_t)(**inout_at - '0');
    (*inout_at)++;
  }
  return value;
}

// The order of the entries, which have the greatest name first: digits count
// as numbers and are greater than any other character.
static int ldcache_compare_names(const char* a, const char* b) {
  while (*a != 0) {
    bool a_digit = *a >= '0' && *a <= '9';
    bool b_digit = *b >= '0' && *b <= '9';
    if (a_digit && b_digit) {
      uint32_t x = ldcache_number_at(&a);
      uint32_t y = ldcache_number_at(&b);
      if (x != y) return x < y ? -1 : 1;
    } else if (a_digit != b_digit) {
      return a_digit ? 1 : -1;
    } else {
      if (*a != *b) return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
      a++;
      b++;
    }
  }
  return *b == 0 ? 0 : -1;
}

static const uint8_t* entry_at(const kilni_locate_ldcache_t* cache,
                               uint32_t index) {
  return cache->base + NEW_HEAD + (size_t)index * NEW_ENTRY;
}

static int compare_entry(const kilni_locate_ldcache_t* cache, uint32_t index,
                         const char* name) {
  return ldcache_compare_names(
      name, ldcache_text_at(cache, read_u32(entry_at(cache, index) + 4)).data);
}

// The first entry of a name, or the count.
static uint32_t ldcache_first_of(const kilni_locate_ldcache_t* cache,
                                 const char* name) {
  uint32_t low = 0;
  uint32_t high = cache->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (compare_entry(cache, middle, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The CPU level of an entry: 0 plain, 2 to 4, or above all for one that is
// not known.
static uint32_t ldcache_level_of(const kilni_locate_ldcache_t* cache,
                                 uint64_t hwcap) {
  if (hwcap == 0) return 0;
  if ((hwcap & kHwcapIsIndex) == 0) return UINT32_MAX;
  uint32_t index = (uint32_t)hwcap;
  if (index >= cache->hwcaps_count) return UINT32_MAX;
  kiln_string_view_t name = ldcache_text_at(
      cache, read_u32(cache->base + cache->hwcaps + (size_t)index * 4));
  static const char prefix[] = "x86-64-v";
  size_t length = sizeof(prefix) - 1;
  if (name.size != length + 1 || memcmp(name.data, prefix, length) != 0) {
    return UINT32_MAX;
  }
  return (uint32_t)(uint8_t)name.data[length] - '0';
}

kiln_string_view_t kilni_locate_ldcache_find(
    const kilni_locate_ldcache_t* cache, const char* name, uint32_t flags,
    uint32_t level) {
  kiln_string_view_t best = {"", 0};
  uint32_t best_level = 0;
  uint32_t index = ldcache_first_of(cache, name);
  for (int i = 0; i < KILNI_LDCACHE_MAX_SAME && index < cache->count;
       i++, index++) {
    const uint8_t* entry = entry_at(cache, index);
    // Equal in the order of the cache is not the same text: "1" and "01".
    kiln_string_view_t key = ldcache_text_at(cache, read_u32(entry + 4));
    if (ldcache_compare_names(name, key.data) != 0) break;
    if (strcmp(key.data, name) != 0 || read_u32(entry) != flags) continue;
    uint32_t its_level = ldcache_level_of(cache, ldcache_read_u64(entry + 16));
    kiln_string_view_t path = ldcache_text_at(cache, read_u32(entry + 8));
    if (path.size == 0) continue;
    if (its_level > 0 && level == KILNI_LDCACHE_LEVEL_ASK) {
      level = kilni_locate_ldcache_cpu_level();
    }
    if (its_level > level) continue;
    if (best.size == 0 || its_level > best_level) {
      best = path;
      best_level = its_level;
    }
  }
  return best;
}

uint32_t kilni_locate_ldcache_cpu_level(void) {
  uint32_t features = kilni_base_cpu_features();
  if ((features & KILNI_CPU_V4) != 0) return 4;
  if ((features & KILNI_CPU_V3) != 0) return 3;
  return (features & KILNI_CPU_V2) != 0 ? 2 : 0;
}
