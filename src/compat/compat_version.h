// SPDX-License-Identifier: Apache-2.0
//
// compat: a version taken apart.
//
// Private to the module: its files share it. Numbers stay texts, so that no
// version is too large; nothing is allocated.
#ifndef KILN_SRC_COMPAT_COMPAT_VERSION_H_
#define KILN_SRC_COMPAT_COMPAT_VERSION_H_

#include "kiln/compat.h"

// The parts of a version. thread-compatible
//
// Views into the text that was parsed. A number's view may be empty (0) where
// its part is there ("1.0a").
typedef struct kilni_compat_version_t {
  kiln_string_view_t epoch;    // digits; empty: 0
  kiln_string_view_t release;  // "1.2.3"
  kiln_string_view_t pre;      // digits after the letter
  kiln_string_view_t post;
  kiln_string_view_t dev;
  kiln_string_view_t local;  // "ubuntu-1", without the plus
  char pre_letter;           // 'a', 'b', 'c' (for rc); 0: no pre-release
  bool has_post;
  bool has_dev;
  bool has_local;
} kilni_compat_version_t;

// What a version may end with.
enum {
  KILNI_VERSION_LOCAL = 1,  // "+local"
  KILNI_VERSION_WILD = 2,   // ".*" right after the release
};

// Parses the whole of `text`, ignoring blanks around it. `allowed` is a set of
// KILNI_VERSION_*; `out_wild` (NULL: not allowed) reports a ".*". On failure
// `*out_at` is where the text stops being a version.
bool kilni_compat_version_parse(kiln_string_view_t text, uint32_t allowed,
                                kilni_compat_version_t* out_version,
                                bool* out_wild, size_t* out_at);

// -1, 0, 1. Without locals, they are taken as absent from both.
int kilni_compat_version_order(const kilni_compat_version_t* a,
                               const kilni_compat_version_t* b,
                               bool with_locals);

// How many numbers the release has.
size_t kilni_compat_version_release_count(
    const kilni_compat_version_t* version);

// Epochs are equal and the first `count` numbers of both releases too, missing
// ones being 0.
bool kilni_compat_version_same_prefix(const kilni_compat_version_t* a,
                                      const kilni_compat_version_t* b,
                                      size_t count);

static inline bool kilni_compat_version_is_pre(
    const kilni_compat_version_t* version) {
  return version->pre_letter != 0 || version->has_dev;
}

// `text` without the blanks around it.
kiln_string_view_t kilni_compat_version_trim(kiln_string_view_t text);

// These two are for texts between files of this module; the public calls check
// their arguments and report more.
bool kilni_compat_spec_admits(kiln_string_view_t spec,
                              kiln_string_view_t version, bool prereleases);

// Parts of one specifier. thread-compatible
typedef struct kilni_compat_clause_t {
  uint32_t op;                     // KILNI_OP_*
  bool is_wild;                    // "1.2.*"
  kiln_string_view_t text;         // the version as written
  kilni_compat_version_t version;  // unset for KILNI_OP_ARBITRARY
} kilni_compat_clause_t;

enum {
  KILNI_OP_ARBITRARY = 1,  // ===
  KILNI_OP_EQUAL,
  KILNI_OP_NOT_EQUAL,
  KILNI_OP_AT_MOST,
  KILNI_OP_AT_LEAST,
  KILNI_OP_BELOW,
  KILNI_OP_ABOVE,
  KILNI_OP_COMPATIBLE,  // ~=
};

// Parses one specifier, ignoring blanks around it.
bool kilni_compat_clause_parse(kiln_string_view_t text,
                               kilni_compat_clause_t* out_clause);

// The next specifier of a list, empty places skipped; false at its end.
bool kilni_compat_clause_next(kiln_string_view_t* inout_list,
                              kiln_string_view_t* out_text);

#endif  // KILN_SRC_COMPAT_COMPAT_VERSION_H_
