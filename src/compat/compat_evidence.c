// SPDX-License-Identifier: Apache-2.0
//
// compat: from evidence to a line.
//
// What a wheel's number proves is in compat_pins_gen.inc.
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "compat/compat_version.h"

// ---- Wheels ----

enum { NAME_BYTES = 128 };  // more than any name in the tables has

// A row of the built-in table.
typedef struct pin_t {
  const char* name;
  const char* version;
  uint32_t line;
} pin_t;

static const pin_t kPins[] = {
#define KILNI_COMPAT_PIN(name, version, line) {name, version, line},
#include "compat/compat_pins_gen.inc"
#undef KILNI_COMPAT_PIN
};

static const char* const kLineNumbered[] = {
#define KILNI_COMPAT_LINE_NUMBERED(name) name,
#include "compat/compat_pins_gen.inc"
#undef KILNI_COMPAT_LINE_NUMBERED
};

static bool evidence_is_dash(char c) {
  return c == '-' || c == '_' || c == '.';
}

// Names are equal where only case and runs of dashes, dots and underscores
// differ. `normal` has neither.
static bool same_name(const char* name, const char* normal) {
  while (*name != '\0' && *normal != '\0') {
    if (evidence_is_dash(*name)) {
      if (*normal != '-') return false;
      while (evidence_is_dash(*name)) name++;
      normal++;
      continue;
    }
    char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
    if (c != *normal) return false;
    name++;
    normal++;
  }
  return *name == *normal;
}

static bool is_line_numbered(const char* name) {
  size_t count = sizeof(kLineNumbered) / sizeof(kLineNumbered[0]);
  for (size_t i = 0; i < count; i++) {
    if (same_name(name, kLineNumbered[i])) return true;
  }
  return false;
}

// The name as the table writes names; false for one that is longer than any.
static bool evidence_normalise(const char* name, char out[NAME_BYTES]) {
  size_t size = 0;
  for (; *name != '\0'; name++) {
    char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
    if (evidence_is_dash(c)) c = '-';
    if (c == '-' && size > 0 && out[size - 1] == '-') continue;
    if (size + 1 == NAME_BYTES) return false;
    out[size++] = c;
  }
  out[size] = '\0';
  return true;
}

// The first row of a name, or the count.
static size_t first_pin_of(const char* normal) {
  size_t low = 0;
  size_t high = sizeof(kPins) / sizeof(kPins[0]);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(kPins[middle].name, normal) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A pin `13.0.96` means `==13.0.96.*`.
static uint32_t line_of_pin(const char* name,
                            const kilni_compat_version_t* version) {
  char normal[NAME_BYTES];
  if (!evidence_normalise(name, normal)) return 0;
  size_t count = sizeof(kPins) / sizeof(kPins[0]);
  for (size_t i = first_pin_of(normal);
       i < count && strcmp(kPins[i].name, normal) == 0; i++) {
    kilni_compat_version_t pin;
    if (kilni_compat_version_parse(kilni_base_sv(kPins[i].version), 0, &pin,
                                   NULL, NULL) &&
        kilni_compat_version_same_prefix(
            version, &pin, kilni_compat_version_release_count(&pin))) {
      return kPins[i].line;
    }
  }
  return 0;
}

static uint32_t line_of_release(const kilni_compat_version_t* version) {
  char text[32];
  size_t size = version->release.size;
  if (size >= sizeof(text)) return 0;
  memcpy(text, version->release.data, size);
  text[size] = '\0';
  uint32_t line = 0;
  if (strchr(text, '.') == NULL || !kiln_compat_line_parse(text, &line)) {
    return 0;
  }
  return line;
}

kiln_compat_evidence_t kiln_compat_evidence_of_wheel(const char* name,
                                                     const char* version) {
  kiln_compat_evidence_t evidence = {KILN_COMPAT_SOURCE_WHEEL, 0, NULL};
  kilni_compat_version_t parts;
  if (name == NULL || version == NULL ||
      !kilni_compat_version_parse(kilni_base_sv(version), KILNI_VERSION_LOCAL,
                                  &parts, NULL, NULL)) {
    return evidence;
  }
  evidence.line = is_line_numbered(name) ? line_of_release(&parts)
                                         : line_of_pin(name, &parts);
  return evidence;
}

// ---- Packages of conda and dpkg ----

// "cuda-nvrtc-12-9" is of 12.9.
static uint32_t line_of_name(const char* name) {
  const char* dash[2] = {NULL, NULL};
  for (const char* at = name; *at != '\0'; at++) {
    if (*at != '-') continue;
    dash[0] = dash[1];
    dash[1] = at;
  }
  if (dash[0] == NULL) return 0;
  char text[16];
  size_t size = strlen(dash[0] + 1);
  if (size >= sizeof(text)) return 0;
  memcpy(text, dash[0] + 1, size + 1);
  size_t at = (size_t)(dash[1] - dash[0] - 1);
  text[at] = '.';
  uint32_t line = 0;
  return kiln_compat_line_parse(text, &line) ? line : 0;
}

// "11.1.1+~10.3.0.86~11.8.0-5~deb12u1" is of 11.8: what Debian builds of the
// source nvidia-cuda-toolkit has the toolkit's release last, before its own.
static uint32_t line_of_debian(const char* version) {
  const char* end = strrchr(version, '-');
  if (end == NULL) end = version + strlen(version);
  const char* begin = end;
  while (begin > version && begin[-1] != '~') begin--;
  char text[32];
  size_t size = (size_t)(end - begin);
  if (size >= sizeof(text)) return 0;
  memcpy(text, begin, size);
  text[size] = '\0';
  uint32_t line = 0;
  bool is = strchr(text, '.') != NULL && kiln_compat_line_parse(text, &line);
  return is ? line : 0;
}

static bool admits_minor(kiln_string_view_t spec, uint32_t major,
                         uint32_t minor) {
  char text[24];
  snprintf(text, sizeof(text), "%u.%u", (unsigned)major, (unsigned)minor);
  return kilni_compat_spec_admits(spec, kilni_base_sv(text), true);
}

// The only line that a specifier leaves: 12.9 of ">=12.9,<12.10.0a0". conda's
// bare "12.9.*" is "==12.9.*".
static uint32_t line_of_toolkit(const char* toolkit) {
  enum { FIRST_MAJOR = 11, LAST_MAJOR = 20, LAST_MINOR = 12 };
  char text[128];
  bool is_bare = toolkit[0] >= '0' && toolkit[0] <= '9';
  int size = snprintf(text, sizeof(text), "%s%s", is_bare ? "==" : "", toolkit);
  if (size <= 2 || (size_t)size >= sizeof(text)) return 0;
  kiln_string_view_t spec = kilni_base_sv(text);
  uint32_t line = 0;
  for (uint32_t major = FIRST_MAJOR; major <= LAST_MAJOR; major++) {
    for (uint32_t minor = 0; minor <= LAST_MINOR; minor++) {
      if (!admits_minor(spec, major, minor)) continue;
      if (line != 0) return 0;
      line = kiln_compat_line_make(major, minor);
    }
  }
  return line;
}

// True if a package of conda has the toolkit's numbers: "cuda-nvcc-tools" as
// "cuda-nvcc".
static bool is_line_numbered_package(const char* name) {
  static const char* const names[] = {
      "cuda-cudart",   "cuda-nvrtc",     "cuda-nvcc",
      "cuda-nvvm",     "cuda-crt",       "cuda-cupti",
      "cuda-culibos",  "cuda-cuobjdump", "cuda-nvdisasm",
      "cuda-cuxxfilt", "cuda-opencl",    "cuda-sanitizer-api",
      "cuda-nvtx",     "cuda-nvml-dev",  "cuda-profiler-api",
      "cuda-tileiras", "cuda-nvprune",   "cuda-driver-dev",
      "libnvjitlink",  "libnvfatbin",    "libnvptxcompiler",
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    size_t size = strlen(names[i]);
    if (strncmp(name, names[i], size) == 0 &&
        (name[size] == '\0' || name[size] == '-' || name[size] == '_')) {
      return true;
    }
  }
  return false;
}

kiln_compat_evidence_t kiln_compat_evidence_of_package(const char* name,
                                                       const char* version,
                                                       const char* source,
                                                       const char* toolkit) {
  kiln_compat_evidence_t evidence = {KILN_COMPAT_SOURCE_PACKAGE, 0, NULL};
  if (name == NULL || version == NULL) return evidence;
  evidence.line = line_of_name(name);
  if (evidence.line != 0) return evidence;
  if (source != NULL && strcmp(source, "nvidia-cuda-toolkit") == 0) {
    evidence.line = line_of_debian(version);
    return evidence;
  }
  if (toolkit != NULL) evidence.line = line_of_toolkit(toolkit);
  if (evidence.line != 0 || !is_line_numbered_package(name)) return evidence;
  kilni_compat_version_t parts;
  if (kilni_compat_version_parse(kilni_base_sv(version), KILNI_VERSION_LOCAL,
                                 &parts, NULL, NULL)) {
    evidence.line = line_of_release(&parts);
  }
  return evidence;
}

// ---- Pins of an installed toolkit ----

static bool has_exact(kiln_string_view_t specifier) {
  kiln_string_view_t part;
  kilni_compat_clause_t clause;
  while (kilni_compat_clause_next(&specifier, &part)) {
    if (kilni_compat_clause_parse(part, &clause) &&
        (clause.op == KILNI_OP_EQUAL || clause.op == KILNI_OP_ARBITRARY)) {
      return true;
    }
  }
  return false;
}

// Whether two names as they are written in metadata are the same.
static bool same_written_name(const char* a, const char* b) {
  char normal[256];
  size_t size = 0;
  for (; *a != '\0' && size + 1 < sizeof(normal); size++) {
    char c = *a;
    if (evidence_is_dash(c)) {
      while (evidence_is_dash(*a)) a++;
      normal[size] = '-';
      continue;
    }
    normal[size] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    a++;
  }
  normal[size] = '\0';
  return *a == '\0' && same_name(b, normal);
}

kiln_compat_evidence_t kiln_compat_evidence_of_pin(const char* toolkit_version,
                                                   const char* pin_name,
                                                   const char* specifier,
                                                   const char* name,
                                                   const char* version) {
  kiln_compat_evidence_t evidence = {KILN_COMPAT_SOURCE_RANGE_PIN, 0, NULL};
  kilni_compat_version_t toolkit;
  if (toolkit_version == NULL || pin_name == NULL || specifier == NULL ||
      name == NULL || version == NULL || !same_written_name(pin_name, name) ||
      !kilni_compat_version_parse(kilni_base_sv(toolkit_version),
                                  KILNI_VERSION_LOCAL, &toolkit, NULL, NULL)) {
    return evidence;
  }
  kiln_string_view_t spec = kilni_compat_version_trim(kilni_base_sv(specifier));
  if (spec.size >= 2 && spec.data[0] == '(' &&
      spec.data[spec.size - 1] == ')') {
    spec = kilni_base_sv_make(spec.data + 1, spec.size - 2);
  }
  if (spec.size == 0 ||
      !kilni_compat_spec_admits(spec, kilni_base_sv(version), true)) {
    return evidence;
  }
  evidence.line = line_of_release(&toolkit);
  if (has_exact(spec)) evidence.source = KILN_COMPAT_SOURCE_EXACT_PIN;
  return evidence;
}

// ---- Conclusion ----

static uint32_t weight(const kiln_compat_evidence_t* evidence) {
  return evidence->line != 0 ? kiln_compat_source_confidence(evidence->source)
                             : 0;
}

// More confidence, then the lower number of its source, then the lower line: so
// that the order of the evidence decides nothing.
static bool is_stronger(const kiln_compat_evidence_t* a,
                        const kiln_compat_evidence_t* b) {
  if (weight(a) != weight(b)) return weight(a) > weight(b);
  if (a->source != b->source) return a->source < b->source;
  return a->line < b->line;
}

// The strongest that states a release, of those that do not state `other_than`.
static uint32_t find_strongest(const kiln_compat_evidence_t* evidence,
                               uint32_t count, uint32_t other_than) {
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < count; i++) {
    if (weight(&evidence[i]) == 0 || evidence[i].line == other_than) continue;
    if (best == UINT32_MAX || is_stronger(&evidence[i], &evidence[best])) {
      best = i;
    }
  }
  return best;
}

kiln_compat_conclusion_t kiln_compat_line_conclude(
    const kiln_compat_evidence_t* evidence, uint32_t evidence_count) {
  kiln_compat_conclusion_t out = {0, 0, 0, UINT32_MAX, UINT32_MAX, false};
  out.strongest = find_strongest(evidence, evidence_count, 0);
  if (out.strongest == UINT32_MAX) return out;
  const kiln_compat_evidence_t* first = &evidence[out.strongest];
  out.line = first->line;
  out.source = first->source;
  out.confidence = weight(first);
  out.against = find_strongest(evidence, evidence_count, first->line);
  if (out.against != UINT32_MAX &&
      weight(&evidence[out.against]) == out.confidence) {
    out.line = 0;
  }
  out.sufficient =
      out.against == UINT32_MAX &&
      out.confidence >= kiln_compat_source_confidence(KILN_COMPAT_SOURCE_WHEEL);
  return out;
}
