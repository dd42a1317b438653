// SPDX-License-Identifier: Apache-2.0
//
// compat: whether the components of a CUDA toolkit are compatible with each
// other and the driver.
//
// Pure: nothing here opens a file, queries the driver or reads a clock. The
// caller passes facts (paths, and evidence for versions), this module draws
// conclusions. The same facts give the same answer, in any order.
//
//   line      a toolkit release as major.minor, written as CUDA writes it:
//             1000 * major + 10 * minor (13.0 is 13000); 0 is unknown
//   evidence  something that says a line, and where it says it
//   fact      a component: its name, its line, its owner and its needs
//   use       a pipeline: one component consumes the output of another
//   finding   one broken or undecidable rule, with a sentence and a fix
#ifndef KILN_COMPAT_H_
#define KILN_COMPAT_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// ---- Lines ----

enum { KILN_COMPAT_LINE_UNKNOWN = 0 };

// The line of `major`.`minor`. Since 0.1.
static inline uint32_t kiln_compat_line_make(uint32_t major, uint32_t minor) {
  return major * 1000u + minor * 10u;
}

// The major of a line, e.g. 13 of 13020. Since 0.1.
static inline uint32_t kiln_compat_line_major(uint32_t line) {
  return line / 1000u;
}

// The minor of a line, e.g. 2 of 13020. Since 0.1.
static inline uint32_t kiln_compat_line_minor(uint32_t line) {
  return line % 1000u / 10u;
}

// Reads "13.2", "13.2.78" or "13.0.3.0" as its line, "13" as 13.0. False, with
// 0, for anything else; a major up to 999, a minor up to 99. Since 0.1.
KILN_API bool kiln_compat_line_parse(const char* text, uint32_t* out_line);

// Reads CUDA's own number, "13020", as its line (the last digit is dropped).
// False, with 0, for anything else, "13.2" and "-1" too. Since 0.1.
KILN_API bool kiln_compat_line_decode(const char* text, uint32_t* out_line);

// The PTX ISA that the compilers of a line write, as 10 * major + minor (13.0
// writes 90); 0 for a line unknown to this library. Since 0.1.
KILN_API uint32_t kiln_compat_line_ptx_isa(uint32_t line);

// The NVVM IR that libNVVM and the linker of a line read and write, as 1000 *
// major + minor (2.0 is 2000); 0 if unknown. Since 0.1.
KILN_API uint32_t kiln_compat_line_nvvm_ir(uint32_t line);

// ---- Versions and specifiers (PEP 440) ----

// Longer texts are LIMIT_EXCEEDED.
enum {
  KILN_COMPAT_MAX_VERSION_BYTES = 1024,
  KILN_COMPAT_MAX_SPEC_BYTES = 8192,
};

// OK if `version` is a version. INVALID_ARGUMENT names it and the problem.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_version_check(const char* version);

// Writes the normal form of `version` ("v1.0-ALPHA.01" is "1.0a1"): at most
// `capacity` bytes with the NUL (nothing when it is 0). `out_length`, if not
// NULL, receives the whole length without NUL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_compat_version_normalize(
    const char* version, size_t capacity, char* buffer, size_t* out_length);

// -1, 0 or 1 as `a` comes before, with or after `b`; local parts count.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_version_compare(const char* a, const char* b, int32_t* out_order);

// True if `version` is a pre-release or a development release. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_version_is_prerelease(const char* version, bool* out_is);

// OK if `spec` is a comma-separated list of specifiers, e.g. ">=12.9,<13", with
// at least one element. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_compat_spec_check(const char* spec);

// Whether `version` satisfies every specifier in `spec` (an empty list admits
// all). `prereleases` is a switch: ON admits pre-releases, OFF does not, and
// DEFAULT admits them if one of the specifiers names one. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_spec_admits(const char* spec, const char* version,
                        uint32_t prereleases, bool* out_admits);

// Whether the line, as `major.minor`, satisfies `spec`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_spec_admits_line(const char* spec, uint32_t line, bool* out_admits);

// ---- Evidence ----

// Sources of evidence for a line, strongest first: value, enum, word,
// confidence, description. A confidence of 0 proves nothing.
#define KILN_COMPAT_SOURCES(X)                                              \
  X(1, SYMBOL, "symbol", 7, "versioned symbols of the file")                \
  X(2, TEXT, "text", 7, "the release text inside the file")                 \
  X(3, SIBLING, "sibling", 6, "the versioned name of a file beside it")     \
  X(4, CALL, "call", 5, "the version call of the loaded library")           \
  X(5, WHEEL, "wheel", 4, "the version of the owning wheel")                \
  X(6, EXACT_PIN, "exact_pin", 3, "an exact pin of an installed toolkit")   \
  X(7, HEADER, "header", 2, "the cuda.h of the same owner")                 \
  X(8, VERSION_FILE, "version_file", 1, "a version file of the same root")  \
  X(9, RANGE_PIN, "range_pin", 0, "a range pin that the version satisfies") \
  X(10, PACKAGE, "package", 4, "the version of the owning package")

#define KILN_COMPAT_SOURCE_ENUM(value, name, word, confidence, text) \
  KILN_COMPAT_SOURCE_##name = value,
enum { KILN_COMPAT_SOURCES(KILN_COMPAT_SOURCE_ENUM) };
#undef KILN_COMPAT_SOURCE_ENUM

// The word of a source; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_compat_source_word(uint32_t source);

// The confidence of a source, 0 to 7. Since 0.1.
KILN_API uint32_t kiln_compat_source_confidence(uint32_t source);

// One item of evidence for a line. thread-compatible
typedef struct kiln_compat_evidence_t {
  uint32_t source;   // KILN_COMPAT_SOURCE_*
  uint32_t line;     // the line it indicates; 0: none
  const char* text;  // where: "symbol __nvJitLinkCreate_13_5"; may be NULL
} kiln_compat_evidence_t;

// The conclusion from the evidence. thread-compatible
typedef struct kiln_compat_conclusion_t {
  uint32_t line;        // 0: unknown
  uint32_t source;      // of the strongest evidence; 0: none
  uint32_t confidence;  // of that source
  uint32_t strongest;   // its index; UINT32_MAX: none
  uint32_t against;     // index of contradicting evidence; UINT32_MAX: none
  bool sufficient;      // no further evidence is needed
} kiln_compat_conclusion_t;

// Determines a line. The strongest source decides; contradicting evidence is
// reported in `against`; if two sources of the same confidence contradict each
// other, the line is unknown. A range pin never counts, for or against.
// `sufficient` from a wheel upwards, unless something contradicts it. Since
// 0.1.
KILN_API kiln_compat_conclusion_t kiln_compat_line_conclude(
    const kiln_compat_evidence_t* evidence, uint32_t evidence_count);

// The evidence in a wheel that owns a file: WHEEL with the line where the
// wheel's number is one, or where the built-in table of exact pins knows the
// (name, version); line 0 otherwise. Names are compared as PEP 503 specifies.
// `text` stays NULL. Since 0.1.
KILN_API kiln_compat_evidence_t
kiln_compat_evidence_of_wheel(const char* name, const char* version);

// The evidence in a package of conda or dpkg that owns a file: PACKAGE with the
// line that its name ends with (NVIDIA's "cuda-nvrtc-12-9"), that is in the
// version of a package of Debian's source nvidia-cuda-toolkit
// ("12.4.5.8~12.4.1-2"), that its requirement on conda's `cuda-version`
// determines uniquely (">=12.9,<12.10.0a0"), or that is the version itself if
// the package uses the toolkit's numbers (cuda-nvrtc 12.9.86); line 0
// otherwise. `source` and `toolkit` may be NULL or "". `text` stays NULL. Since
// 0.1.
KILN_API kiln_compat_evidence_t
kiln_compat_evidence_of_package(const char* name, const char* version,
                                const char* source, const char* toolkit);

// The evidence in one Requires-Dist line of an installed cuda-toolkit of
// `toolkit_version`, which asks for `pin_name` with `specifier` ("<14,>=13.0",
// "== 13.2.78.*"), for a file owned by `name` `version`: EXACT_PIN with the
// toolkit's line if an `==` is among the specifiers, RANGE_PIN if there is
// none, line 0 if it is about another name, is not satisfied or cannot be
// read. `text` stays NULL. Since 0.1.
KILN_API kiln_compat_evidence_t kiln_compat_evidence_of_pin(
    const char* toolkit_version, const char* pin_name, const char* specifier,
    const char* name, const char* version);

// ---- Facts ----

// Kinds and classes, with the numbers of KILN_LOCATE_KIND_* and _CLASS_*.
enum {
  KILN_COMPAT_KIND_LIB = 1,
  KILN_COMPAT_KIND_HEADER = 2,
  KILN_COMPAT_KIND_STATIC = 3,
  KILN_COMPAT_KIND_BITCODE = 4,
  KILN_COMPAT_KIND_BINARY = 5,
  KILN_COMPAT_KIND_STUB = 6,
};
enum {
  KILN_COMPAT_CLASS_CTK = 1,
  KILN_COMPAT_CLASS_DRIVER = 2,
  KILN_COMPAT_CLASS_OTHER = 3,
};

// The word of a kind: "lib", "header" ...; "?" for none. Static. Since 0.1.
KILN_API const char* kiln_compat_kind_word(uint32_t kind);

// What a component needs from another. thread-compatible
//
// A library at least as new as `line`, according to undefined symbols: cuSPARSE
// of 13.0 needs nvJitLink 13.0.
typedef struct kiln_compat_need_t {
  const char* name;  // a lib of the catalog, e.g. "nvJitLink"
  const char* text;  // "symbol __nvJitLinkCreate_13_0"; may be NULL
  uint32_t line;     // the lower bound; its major must be equal
  uint32_t reserved;
} kiln_compat_need_t;

// A component that was found. thread-compatible
//
// Zero in any field but `struct_size`, `kind`, `class_id` and `name` is
// "unknown" or "none". Borrowed during the call.
typedef struct kiln_compat_fact_t {
  uint32_t struct_size;    // sizeof(kiln_compat_fact_t)
  uint32_t kind;           // KILN_COMPAT_KIND_*
  uint32_t class_id;       // KILN_COMPAT_CLASS_*
  uint32_t line;           // as determined; 0: unknown
  uint32_t source;         // KILN_COMPAT_SOURCE_* that decided
  uint32_t against_line;   // line of contradicting evidence; 0: none
  uint32_t toolkit_major;  // for class other: the major it is built for
  uint32_t nvvm_ir;        // of libNVVM or of a linker: 1000 * major + minor
  uint32_t tag_count;
  uint32_t need_count;
  const char* name;         // its name in the catalog: "nvJitLink"
  const char* path;         // for messages
  const char* evidence;     // for messages: what the line comes from
  const char* against;      // for messages: the contradicting evidence
  const char* component;    // items of one component have one line
  const char* const* tags;  // companions: items that share a tag, too
  const kiln_compat_need_t* needs;
  const char* release;  // its own version: "9.19.0"; of class other it counts
} kiln_compat_fact_t;

// All unknown. Since 0.1.
static inline kiln_compat_fact_t kiln_compat_fact_default(void) {
  kiln_compat_fact_t fact = {(uint32_t)sizeof(fact),
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             NULL,
                             NULL};
  return fact;
}

// States of knowledge about the driver.
enum {
  KILN_COMPAT_DRIVER_UNKNOWN = 0,  // there may be one; it cannot be queried
  KILN_COMPAT_DRIVER_NONE = 1,     // there is none, nothing runs here
  KILN_COMPAT_DRIVER_KNOWN = 2,
};

// The driver. thread-compatible
typedef struct kiln_compat_driver_t {
  uint32_t struct_size;  // sizeof(kiln_compat_driver_t)
  uint32_t state;        // KILN_COMPAT_DRIVER_*
  uint32_t line;         // the result of cuDriverGetVersion, as a line
  uint32_t branch;       // of the display driver: 535 of 535.54.03; 0: unknown
  const char* release;   // "535.54.03", for messages; NULL: unknown
  const char* evidence;  // for messages: where both come from; may be NULL
} kiln_compat_driver_t;

// Unknown. Since 0.1.
static inline kiln_compat_driver_t kiln_compat_driver_default(void) {
  kiln_compat_driver_t driver = {
      (uint32_t)sizeof(driver), KILN_COMPAT_DRIVER_UNKNOWN, 0, 0, NULL, NULL};
  return driver;
}

// Reads "13.0", "13.0,580.65.06", "13.0,580", "none" or "unknown" into a
// driver; `release` then points into `text`. INVALID_ARGUMENT otherwise, with
// an unknown driver. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_driver_parse(const char* text, kiln_compat_driver_t* out_driver);

// The branch of a release of two or three numbers, or of a branch alone: 535
// of "535.54.03"; 0 for anything else. Since 0.1.
KILN_API uint32_t kiln_compat_driver_branch(const char* release);

// What a producer passes to a consumer. An `elf` may be linked code, which
// linkers drop from their output, so no linker is known to link one; for a
// driver both are machine code.
enum {
  KILN_COMPAT_ARTIFACT_LTOIR = 1,
  KILN_COMPAT_ARTIFACT_PTX = 2,
  KILN_COMPAT_ARTIFACT_ELF = 3,
  KILN_COMPAT_ARTIFACT_CUBIN = 4,
  KILN_COMPAT_ARTIFACT_NVVM = 5,
};

// The artifact of a word: ltoir, ptx, elf, cubin, nvvm. INVALID_ARGUMENT, with
// 0, otherwise. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_artifact_parse(const char* word, uint32_t* out_artifact);

// The word of an artifact; "?" for none. Static. Since 0.1.
KILN_API const char* kiln_compat_artifact_word(uint32_t artifact);

// A declared use: the consumer takes what the producer makes. thread-compatible
//
// A use is ignored if its producer or consumer is not a fact of the request.
// The driver is the consumer (lib, "cuda"), and is always present.
typedef struct kiln_compat_use_t {
  uint32_t struct_size;    // sizeof(kiln_compat_use_t)
  uint32_t artifact;       // KILN_COMPAT_ARTIFACT_*
  uint32_t producer_kind;  // KILN_COMPAT_KIND_*; 0: lib
  uint32_t consumer_kind;  // the same
  const char* producer;    // a name of the catalog
  const char* consumer;
} kiln_compat_use_t;

// All unset. Since 0.1.
static inline kiln_compat_use_t kiln_compat_use_default(void) {
  kiln_compat_use_t use = {(uint32_t)sizeof(use), 0, 0, 0, NULL, NULL};
  return use;
}

// ---- Modes ----

// How findings affect a check: value, enum, word, meaning. DEFAULT (0) is
// `warn`.
#define KILN_COMPAT_MODES(X)                                        \
  X(1, OFF, "off", "nothing is checked")                            \
  X(2, WARN, "warn", "findings are reported and nothing fails")     \
  X(3, BEST_EFFORT, "best_effort", "what cannot be decided passes") \
  X(4, STRICT, "strict", "what cannot be decided fails")

#define KILN_COMPAT_MODE_ENUM(value, name, word, text) \
  KILN_COMPAT_MODE_##name = value,
enum { KILN_COMPAT_MODE_DEFAULT = 0, KILN_COMPAT_MODES(KILN_COMPAT_MODE_ENUM) };
#undef KILN_COMPAT_MODE_ENUM

// The word of a mode; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_compat_mode_word(uint32_t mode);

// The checking policy of a process. thread-compatible
typedef struct kiln_compat_policy_t {
  uint32_t mode;             // KILN_COMPAT_MODE_*, never DEFAULT
  bool forward_compat;       // the driver rule is waived
  const char* mode_from;     // the variable that set it; NULL: the fallback
  const char* forward_from;  // the same for forward_compat
} kiln_compat_policy_t;

// Reads the values of three variables, NULL or "" if unset:
//
//   KILN_COMPAT                                  off, warn, best_effort or
//       strict (also best-effort), and after a comma forward_compat or
//       no_forward_compat; either part may be omitted
//   CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS    off, best_effort, strict
//   CUDA_PATHFINDER_DRIVER_COMPATIBILITY         default or
//       assume_forward_compatibility
//
// KILN_COMPAT overrides the other two. Any other value is INVALID_ARGUMENT in
// every mode, `off` and overridden ones included, and leaves the fallback in
// `*out_policy`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_mode_parse(const char* kiln_compat, const char* guard_rails,
                       const char* driver_compatibility, uint32_t fallback_mode,
                       kiln_compat_policy_t* out_policy);

// ---- Checks ----

// Verdicts: value, enum, word.
#define KILN_COMPAT_VERDICTS(X)  \
  X(1, COMPATIBLE, "compatible") \
  X(2, UNKNOWN, "unknown")       \
  X(3, INCOMPATIBLE, "incompatible")

#define KILN_COMPAT_VERDICT_ENUM(value, name, word) \
  KILN_COMPAT_VERDICT_##name = value,
enum { KILN_COMPAT_VERDICTS(KILN_COMPAT_VERDICT_ENUM) };
#undef KILN_COMPAT_VERDICT_ENUM

// The word of a verdict; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_compat_verdict_word(uint32_t verdict);

// Whether a linker (nvJitLink, nvlink) of `linker_line` takes an artifact that
// a toolkit of `producer_line` made: LTOIR, PTX, ELF or CUBIN, the last being
// code that is not linked yet. A KILN_COMPAT_VERDICT_*; UNKNOWN if a line is 0
// or compatibility is not documented, INCOMPATIBLE for another artifact.
// Source: links of real libraries, and nvJitLink's manual ("Compatibility").
// Since 0.1.
KILN_API uint32_t kiln_compat_linker_verdict(uint32_t artifact,
                                             uint32_t producer_line,
                                             uint32_t linker_line);

// Whether a driver loads an artifact that a toolkit of `line` made: PTX, ELF or
// CUBIN. A KILN_COMPAT_VERDICT_*; UNKNOWN if the driver or the line is unknown,
// INCOMPATIBLE for another artifact. Source: CUDA Compatibility, "Minor Version
// Compatibility". Since 0.1.
KILN_API uint32_t kiln_compat_driver_verdict(const kiln_compat_driver_t* driver,
                                             uint32_t artifact, uint32_t line);

// The subject of a finding: value, enum, word.
#define KILN_COMPAT_USES(X) \
  X(1, ANY, "any")          \
  X(2, LTO, "lto")          \
  X(3, CUBIN, "cubin")      \
  X(4, PTX, "ptx")          \
  X(5, ELF, "elf")          \
  X(6, NVVM, "nvvm")

#define KILN_COMPAT_USE_ENUM(value, name, word) KILN_COMPAT_USE_##name = value,
enum { KILN_COMPAT_USES(KILN_COMPAT_USE_ENUM) };
#undef KILN_COMPAT_USE_ENUM

// The word of a use; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_compat_use_word(uint32_t use);

// The rules: value, enum, word, requirement.
#define KILN_COMPAT_RULES(X)                                                  \
  X(1, LINE, "line", "the line of a toolkit component is known")              \
  X(2, EVIDENCE, "evidence", "all evidence for a line agrees")                \
  X(3, CONSTRAINT, "constraint", "the caller allows the line")                \
  X(4, COMPONENT, "component", "items of one component have one line")        \
  X(5, COMPANION, "companion",                                                \
    "items that share a tag have one line, those of a product one release")   \
  X(6, HEADER_COMPILER, "header_compiler",                                    \
    "a compiler's headers are of its line")                                   \
  X(7, NEEDED_SYMBOL, "needed_symbol",                                        \
    "a library has the symbols that others need from it")                     \
  X(8, LINKER_RANGE, "linker_range",                                          \
    "nvJitLink is at least as new as what it links")                          \
  X(9, NVVM_IR, "nvvm_ir", "NVVM IR goes to a reader of its version")         \
  X(10, PTX_DRIVER, "ptx_driver", "the driver supports the PTX version")      \
  X(11, CUBIN_DRIVER, "cubin_driver", "the driver can load the machine code") \
  X(12, LTO_DRIVER, "lto_driver", "LTO code is linked before it is loaded")   \
  X(13, DRIVER, "driver", "the driver is new enough for the component")       \
  X(14, USE, "use", "the inputs of the consumer of a declared use are known")

#define KILN_COMPAT_RULE_ENUM(value, name, word, text) \
  KILN_COMPAT_RULE_##name = value,
enum { KILN_COMPAT_RULES(KILN_COMPAT_RULE_ENUM) };
#undef KILN_COMPAT_RULE_ENUM

// The word of a rule; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_compat_rule_word(uint32_t rule);

// A request for a check. thread-compatible
//
// Facts and uses are sets: order and repetition do not matter. Borrowed during
// the call.
typedef struct kiln_compat_request_t {
  uint32_t struct_size;     // sizeof(kiln_compat_request_t)
  uint32_t mode;            // KILN_COMPAT_MODE_*; default: warn
  uint32_t forward_compat;  // switch; default: off. Waives the driver rule
  uint32_t fact_count;      // at most KILN_COMPAT_MAX_FACTS
  uint32_t use_count;       // at most KILN_COMPAT_MAX_USES
  // 1 + the index of the fact that is new: only findings about it are made,
  // as for a check before a load. Default (0): all.
  uint32_t subject;
  const kiln_compat_fact_t* const* facts;
  const kiln_compat_use_t* const* uses;
  const kiln_compat_driver_t* driver;  // default: unknown
  const char* constraint;              // a specifier for lines; default: none
  // Default: kiln_allocator_libc(). Copied; must outlive the report.
  const kiln_allocator_t* allocator;
} kiln_compat_request_t;

enum { KILN_COMPAT_MAX_FACTS = 1024, KILN_COMPAT_MAX_USES = 1024 };

// Nothing to check. Since 0.1.
static inline kiln_compat_request_t kiln_compat_request_default(void) {
  kiln_compat_request_t request = {
      (uint32_t)sizeof(request), 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL};
  return request;
}

// A component as a finding names it. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_compat_party_t {
  const char* item;  // "lib:nvJitLink", or "driver"
  const char* path;  // "" if none was given
  uint32_t line;     // 0: unknown
  uint32_t reserved;
} kiln_compat_party_t;

// One broken or undecidable rule. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_compat_finding_t {
  uint32_t rule;     // KILN_COMPAT_RULE_*
  uint32_t use;      // KILN_COMPAT_USE_*
  uint32_t verdict;  // KILN_COMPAT_VERDICT_*; COMPATIBLE is a remark
  bool counts;       // false: a remark, or about an undeclared use
  uint32_t party_count;
  const kiln_compat_party_t* parties;
  const char* message;  // one sentence with names, lines, paths and evidence
  const char* fix;      // how to fix it, with a command if there is one
} kiln_compat_finding_t;

// What a check found. thread-safe
//
// Reference-counted and immutable; has copies of everything.
typedef struct kiln_compat_report_t kiln_compat_report_t;

// Checks. A report is made whatever the findings are; the caller owns it.
// INVALID_ARGUMENT for an invalid request (a bad constraint or artifact, also
// in mode `off`), LIMIT_EXCEEDED for more than the limits. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_compat_check(
    const kiln_compat_request_t* request, kiln_compat_report_t** out_report);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_compat_report_retain(kiln_compat_report_t* report);
KILN_API void kiln_compat_report_release(kiln_compat_report_t* report);

// The worst verdict of the findings that count: KILN_COMPAT_VERDICT_*.
// UNKNOWN in mode `off`, which checks nothing. Since 0.1.
KILN_API uint32_t
kiln_compat_report_verdict(const kiln_compat_report_t* report);

// How much a report covers one use (not `any`): how many pipelines of it were
// judged, and how many of these were declared. A pipeline is judged if a rule
// knows what its consumer takes and the lines of both ends are known, or if it
// is declared. Since 0.1.
KILN_API uint32_t kiln_compat_report_judged_count(
    const kiln_compat_report_t* report, uint32_t use, uint32_t* out_declared);

// The worst verdict of the findings about one use, declared or not, and about
// `any`. UNKNOWN if no pipeline of the use was judged: the absence of findings
// is then not a verdict. Since 0.1.
KILN_API uint32_t kiln_compat_report_verdict_of_use(
    const kiln_compat_report_t* report, uint32_t use);

// The findings: those that count first, the worst first among them, then by
// rule. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_compat_report_finding_count(const kiln_compat_report_t* report);
KILN_API const kiln_compat_finding_t* kiln_compat_report_finding(
    const kiln_compat_report_t* report, uint32_t index);

// The finding that makes the check fail in `mode` (DEFAULT: the request's), or
// NULL if it passes. Its `rule` names the rule. Borrowed. Since 0.1.
KILN_API const kiln_compat_finding_t* kiln_compat_report_refusal(
    const kiln_compat_report_t* report, uint32_t mode);

// The same as a status: OK, INCOMPATIBLE or INSUFFICIENT_METADATA, with the
// first refusal as message and fix and the others as annotations. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_compat_report_status(const kiln_compat_report_t* report, uint32_t mode);

// Writes the report as text, for each finding its sentence and its fix: at
// most `capacity` bytes with the NUL (nothing when it is 0). `out_length`, if
// not NULL, receives the whole length without NUL. Since 0.1.
KILN_API void kiln_compat_report_format(const kiln_compat_report_t* report,
                                        size_t capacity, char* buffer,
                                        size_t* out_length);

KILN_EXTERN_C_END

#endif  // KILN_COMPAT_H_
