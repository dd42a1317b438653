// SPDX-License-Identifier: Apache-2.0
//
// compat: specifiers as PEP 440 has them, and whether a version satisfies one.
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "base/str.h"
#include "compat/compat_version.h"

// ---- Reading ----

// The operators, longer ones before those they start with.
static const struct {
  const char* text;
  uint32_t op;
  uint32_t allowed;  // what the version may end with
} kOperators[] = {
    {"===", KILNI_OP_ARBITRARY, 0},
    {"==", KILNI_OP_EQUAL, KILNI_VERSION_LOCAL | KILNI_VERSION_WILD},
    {"!=", KILNI_OP_NOT_EQUAL, KILNI_VERSION_LOCAL | KILNI_VERSION_WILD},
    {"<=", KILNI_OP_AT_MOST, 0},
    {">=", KILNI_OP_AT_LEAST, 0},
    {"~=", KILNI_OP_COMPATIBLE, 0},
    {"<", KILNI_OP_BELOW, 0},
    {">", KILNI_OP_ABOVE, 0},
};

// Without blanks, semicolons and closing brackets: after `===` any text is
// allowed that cannot be taken for the rest of a requirement.
static bool is_arbitrary(kiln_string_view_t text) {
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (c == ';' || c == ')') return false;
    if (kilni_compat_version_trim(kilni_base_sv_make(&c, 1)).size == 0) {
      return false;
    }
  }
  return true;
}

bool kilni_compat_clause_parse(kiln_string_view_t text,
                               kilni_compat_clause_t* out_clause) {
  memset(out_clause, 0, sizeof(*out_clause));
  text = kilni_compat_version_trim(text);
  for (size_t i = 0; i < sizeof(kOperators) / sizeof(kOperators[0]); i++) {
    if (!kilni_base_sv_starts_with(text, kOperators[i].text)) continue;
    size_t skip = strlen(kOperators[i].text);
    out_clause->op = kOperators[i].op;
    out_clause->text = kilni_compat_version_trim(
        kilni_base_sv_make(text.data + skip, text.size - skip));
    if (out_clause->op == KILNI_OP_ARBITRARY) {
      return is_arbitrary(out_clause->text);
    }
    if (!kilni_compat_version_parse(out_clause->text, kOperators[i].allowed,
                                    &out_clause->version, &out_clause->is_wild,
                                    NULL)) {
      return false;
    }
    return out_clause->op != KILNI_OP_COMPATIBLE ||
           kilni_compat_version_release_count(&out_clause->version) > 1;
  }
  return false;
}

bool kilni_compat_clause_next(kiln_string_view_t* inout_list,
                              kiln_string_view_t* out_text) {
  while (kilni_base_sv_split(inout_list, ',', out_text)) {
    *out_text = kilni_compat_version_trim(*out_text);
    if (out_text->size > 0) return true;
  }
  return false;
}

// ---- Deciding ----

static bool same_text(kiln_string_view_t a, kiln_string_view_t b) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; i++) {
    unsigned char x = (unsigned char)a.data[i];
    unsigned char y = (unsigned char)b.data[i];
    if (x >= 'A' && x <= 'Z') x = (unsigned char)(x - 'A' + 'a');
    if (y >= 'A' && y <= 'Z') y = (unsigned char)(y - 'A' + 'a');
    if (x != y) return false;
  }
  return true;
}

// A local part counts only where the specifier has one.
static bool is_equal(const kilni_compat_version_t* version,
                     const kilni_compat_clause_t* clause) {
  if (clause->is_wild) {
    return kilni_compat_version_same_prefix(
        version, &clause->version,
        kilni_compat_version_release_count(&clause->version));
  }
  return kilni_compat_version_order(version, &clause->version,
                                    clause->version.has_local) == 0;
}

// "<1.0" leaves out what comes before 1.0 only as a pre-release of it, and
// "<1.0.post1" the same of 1.0.post1; a limit that is a pre-release is exact.
static bool is_below(const kilni_compat_version_t* version,
                     const kilni_compat_version_t* limit) {
  kilni_compat_version_t first = *limit;
  if (!kilni_compat_version_is_pre(limit)) {
    first.has_dev = true;
    first.dev.size = 0;
  }
  return kilni_compat_version_order(version, &first, true) < 0;
}

// ">1.0" leaves out the local versions of 1.0 and its post-releases, ">1.0rc1"
// those of 1.0rc1; a limit that is a post-release or a development release is
// exact.
static bool spec_is_above(const kilni_compat_version_t* version,
                          const kilni_compat_version_t* limit) {
  if (kilni_compat_version_order(version, limit, false) <= 0) return false;
  if (limit->has_post || limit->has_dev || !version->has_post) return true;
  kilni_compat_version_t without = *version;
  without.has_post = false;
  without.has_dev = false;
  without.post.size = 0;
  without.dev.size = 0;
  return kilni_compat_version_order(&without, limit, false) != 0;
}

static bool is_compatible(const kilni_compat_version_t* version,
                          const kilni_compat_version_t* base) {
  return kilni_compat_version_order(version, base, false) >= 0 &&
         kilni_compat_version_same_prefix(
             version, base, kilni_compat_version_release_count(base) - 1);
}

static bool clause_admits(const kilni_compat_clause_t* clause,
                          kiln_string_view_t text,
                          const kilni_compat_version_t* version) {
  if (clause->op == KILNI_OP_ARBITRARY) return same_text(clause->text, text);
  if (version == NULL) return false;
  switch (clause->op) {
    case KILNI_OP_EQUAL:
      return is_equal(version, clause);
    case KILNI_OP_NOT_EQUAL:
      return !is_equal(version, clause);
    case KILNI_OP_AT_MOST:
      return kilni_compat_version_order(version, &clause->version, false) <= 0;
    case KILNI_OP_AT_LEAST:
      return kilni_compat_version_order(version, &clause->version, false) >= 0;
    case KILNI_OP_BELOW:
      return is_below(version, &clause->version);
    case KILNI_OP_ABOVE:
      return spec_is_above(version, &clause->version);
    default:
      return is_compatible(version, &clause->version);
  }
}

// Whether the specifier asks for a pre-release by naming one.
static bool names_prerelease(const kilni_compat_clause_t* clause) {
  if (clause->op == KILNI_OP_NOT_EQUAL || clause->is_wild) return false;
  kilni_compat_version_t version = clause->version;
  if (clause->op == KILNI_OP_ARBITRARY &&
      !kilni_compat_version_parse(clause->text, KILNI_VERSION_LOCAL, &version,
                                  NULL, NULL)) {
    return false;
  }
  return kilni_compat_version_is_pre(&version);
}

// The first specifier that cannot be read; false where all can.
static bool find_bad(kiln_string_view_t spec, kiln_string_view_t* out_bad,
                     size_t* out_count) {
  kilni_compat_clause_t clause;
  *out_count = 0;
  while (kilni_compat_clause_next(&spec, out_bad)) {
    if (!kilni_compat_clause_parse(*out_bad, &clause)) return true;
    ++*out_count;
  }
  return false;
}

bool kilni_compat_spec_admits(kiln_string_view_t spec, kiln_string_view_t text,
                              bool prereleases) {
  kilni_compat_version_t parts;
  const kilni_compat_version_t* version =
      kilni_compat_version_parse(text, KILNI_VERSION_LOCAL, &parts, NULL, NULL)
          ? &parts
          : NULL;
  kiln_string_view_t part;
  kilni_compat_clause_t clause;
  bool asked =
      prereleases || version == NULL || !kilni_compat_version_is_pre(version);
  while (kilni_compat_clause_next(&spec, &part)) {
    if (!kilni_compat_clause_parse(part, &clause)) return false;
    if (!clause_admits(&clause, text, version)) return false;
  }
  return asked;
}

// ---- The public calls ----

static kiln_status_t check_spec(const char* spec, size_t* out_count) {
  *out_count = 0;
  KILNI_CHECK_ARGUMENT(spec != NULL, "spec");
  size_t size = strlen(spec);
  if (size > KILN_COMPAT_MAX_SPEC_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a specifier of %zu bytes; the limit is %d",
                   size, (int)KILN_COMPAT_MAX_SPEC_BYTES),
        "give one like \">=12.9,<13\"");
  }
  kiln_string_view_t bad;
  if (find_bad(kilni_base_sv_make(spec, size), &bad, out_count)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "\"%.*s\" in \"%s\" is not a PEP 440 specifier",
                   KILNI_SV(bad), spec),
        "give one like \">=13.2,<14\", \"==12.9\" or \"~=12.8\"");
  }
  return kiln_ok();
}

kiln_status_t kiln_compat_spec_check(const char* spec) {
  size_t count;
  KILNI_RETURN_IF_ERROR(check_spec(spec, &count));
  if (count == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" contains no PEP 440 specifier",
                   spec),
        "give one like \">=13.2,<14\", \"==12.9\" or \"~=12.8\"");
  }
  return kiln_ok();
}

static bool any_names_prerelease(kiln_string_view_t spec) {
  kiln_string_view_t part;
  kilni_compat_clause_t clause;
  while (kilni_compat_clause_next(&spec, &part)) {
    if (kilni_compat_clause_parse(part, &clause) && names_prerelease(&clause)) {
      return true;
    }
  }
  return false;
}

kiln_status_t kiln_compat_spec_admits(const char* spec, const char* version,
                                      uint32_t prereleases, bool* out_admits) {
  *out_admits = false;
  size_t count;
  KILNI_CHECK_ARGUMENT(version != NULL, "version");
  KILNI_CHECK_ARGUMENT(prereleases <= KILN_SWITCH_ON, "prereleases");
  KILNI_CHECK_ARGUMENT_SAYS(strlen(version) <= KILN_COMPAT_MAX_VERSION_BYTES,
                            "version",
                            "exceeds the maximum length of a version",
                            "pass at most KILN_COMPAT_MAX_VERSION_BYTES bytes");
  KILNI_RETURN_IF_ERROR(check_spec(spec, &count));
  bool admitted = prereleases == KILN_SWITCH_ON;
  if (prereleases == KILN_SWITCH_DEFAULT) {
    admitted = any_names_prerelease(kilni_base_sv(spec));
  }
  *out_admits = kilni_compat_spec_admits(kilni_base_sv(spec),
                                         kilni_base_sv(version), admitted);
  return kiln_ok();
}

kiln_status_t kiln_compat_spec_admits_line(const char* spec, uint32_t line,
                                           bool* out_admits) {
  char version[32];
  snprintf(version, sizeof(version), "%u.%u",
           (unsigned)kiln_compat_line_major(line),
           (unsigned)kiln_compat_line_minor(line));
  return kiln_compat_spec_admits(spec, version, KILN_SWITCH_ON, out_admits);
}
