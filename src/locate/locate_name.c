// SPDX-License-Identifier: Apache-2.0
//
// locate: rows by name, and what was meant where there is none.
#include <string.h>

#include "base/name_distance.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"

enum { NAME_LIMIT = 64, MAX_NEAREST = 3 };

// "lib" before the name and ".so" with all that follows are not part of the
// name.
static const char* name_bare(const char* name, char out[NAME_LIMIT + 1]) {
  if (strncmp(name, "lib", 3) == 0 && name[3] != 0) name += 3;
  size_t size = strcspn(name, ".");
  if (size > NAME_LIMIT) size = NAME_LIMIT;
  memcpy(out, name, size);
  out[size] = 0;
  return out;
}

static void find_nearest(uint32_t kind, const char* name,
                         const char* out_names[MAX_NEAREST],
                         size_t* out_count) {
  char wanted[NAME_LIMIT + 1];
  uint32_t distances[MAX_NEAREST];
  name_bare(name, wanted);
  uint32_t limit = (uint32_t)strlen(wanted) / 3 + 1;
  *out_count = 0;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    if (kiln_locate_entry_kind(entry) != kind) continue;
    const char* other = kiln_locate_entry_name(entry);
    uint32_t far = kilni_base_name_distance(wanted, other);
    if (far > limit) continue;
    size_t at = *out_count;
    while (at > 0 && distances[at - 1] > far) at--;
    if (at == MAX_NEAREST) continue;
    size_t last = *out_count < MAX_NEAREST ? *out_count : MAX_NEAREST - 1;
    memmove(&distances[at + 1], &distances[at],
            (last - at) * sizeof(distances[0]));
    memmove(&out_names[at + 1], &out_names[at],
            (last - at) * sizeof(out_names[0]));
    distances[at] = far;
    out_names[at] = other;
    if (*out_count < MAX_NEAREST) (*out_count)++;
  }
}

// Another kind that has the name as it is; 0 for none.
static uint32_t kind_that_has(const char* name) {
  for (uint32_t kind = KILN_LOCATE_KIND_LIB; kind <= KILN_LOCATE_KIND_STUB;
       kind++) {
    if (kiln_locate_entry_find(kind, name) != NULL) return kind;
  }
  return 0;
}

static kiln_status_t unknown_name(uint32_t kind, const char* name) {
  const char* word = kiln_locate_kind_name(kind);
  kiln_status_t status =
      KILNI_FAIL(INVALID_ARGUMENT, "the catalog has no %s \"%s\"", word, name);
  const char* nearest[MAX_NEAREST + 1];
  size_t count = 0;
  find_nearest(kind, name, nearest, &count);
  uint32_t other = kind_that_has(name);
  if (count == 1) {
    return kilni_base_status_with_fix(status, "ask for %s \"%s\"", word,
                                      nearest[0]);
  }
  if (count == 2) {
    return kilni_base_status_with_fix(status, "ask for %s \"%s\" or \"%s\"",
                                      word, nearest[0], nearest[1]);
  }
  if (count > 2) {
    return kilni_base_status_with_fix(status,
                                      "ask for %s \"%s\", \"%s\" or \"%s\"",
                                      word, nearest[0], nearest[1], nearest[2]);
  }
  if (other != 0) {
    return kilni_base_status_with_fix(status, "ask for %s \"%s\"",
                                      kiln_locate_kind_name(other), name);
  }
  return kilni_base_status_with_fix(status,
                                    "`kiln find --all` lists every name");
}

kiln_status_t kilni_locate_search_entry(uint32_t kind, const char* name,
                                        const kiln_locate_entry_t** out_entry) {
  *out_entry = NULL;
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  if (kind < KILN_LOCATE_KIND_LIB || kind > KILN_LOCATE_KIND_STUB) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "%u is not a kind of component",
                   (unsigned)kind),
        "use one of KILN_LOCATE_KIND_*");
  }
  *out_entry = kiln_locate_entry_find(kind, name);
  return *out_entry != NULL ? kiln_ok() : unknown_name(kind, name);
}
