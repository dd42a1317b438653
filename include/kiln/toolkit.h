// SPDX-License-Identifier: Apache-2.0
//
// toolkit: finds a component of a CUDA toolkit, checks that it is compatible,
// loads it.
//
// Joins the search (kiln/locate.h), the rules (kiln/compat.h) and the system's
// loader. A context remembers what it returned, so that each new component is
// checked against those already in use, against the driver and against what the
// caller allows - before it is loaded, so that a refusal leaves nothing behind.
//
//   kiln_toolkit_t* toolkit = NULL;
//   const kiln_toolkit_library_t* nvrtc = NULL;
//   kiln_status_t status = kiln_toolkit_create(NULL, &toolkit);
//   if (kiln_status_is_ok(status)) {
//     status = kiln_toolkit_load(toolkit, "nvrtc", &nvrtc);
//   }
//
// After fork, every call in the child on a context of the parent is
// INVALID_STATE, and a release does nothing.
#ifndef KILN_TOOLKIT_H_
#define KILN_TOOLKIT_H_

#include "kiln/allocator.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/log.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A context of finds, checks and loads. thread-safe
//
// Reference-counted.
typedef struct kiln_toolkit_t kiln_toolkit_t;

// How a context works. thread-compatible
//
// Zero in any field is its default. Everything is copied.
typedef struct kiln_toolkit_options_t {
  uint32_t struct_size;  // sizeof(kiln_toolkit_options_t)

  // KILN_COMPAT_MODE_*: what a finding does. Default: the variable KILN_COMPAT,
  // then CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS, then `default_mode`.
  uint32_t mode;

  // KILN_SWITCH_*: the driver may be older than the components (a forward
  // compatibility package is installed). Relaxes the rule about the driver and
  // no other. Default: the variables KILN_COMPAT and
  // CUDA_PATHFINDER_DRIVER_COMPATIBILITY, else off.
  uint32_t forward_compat;

  // KILN_SWITCH_*: which evidence to read for a component's line. On: all
  // evidence. Default: that of the component itself and of its package, and all
  // of it if that is inconclusive or contradictory. Off, if `mode` is off as
  // well: the minimum that determines the line, so that releases, wheels and
  // needs of a component may be unknown.
  uint32_t verify;

  // KILN_COMPAT_MODE_*: the mode if neither `mode` nor a variable sets one.
  // Default: `warn`.
  uint32_t default_mode;

  uint32_t reserved;  // 0

  // How components are searched; its allocator is not read. Default: all
  // defaults of kiln_locate_create.
  const kiln_locate_options_t* locate;

  // The toolkit lines that are allowed, as a PEP 440 specifier
  // (">=12.9,<13"). Default: all.
  const char* ctk_version;

  // The driver to check against, e.g. from kiln_compat_driver_parse. Default:
  // this machine's, queried once, when the first check needs it. This does not
  // touch a device.
  const kiln_compat_driver_t* driver;

  // The driver library: a path, or a name for the system loader. Default: the
  // variable KILN_LIBCUDA, else "libcuda.so.1".
  const char* cuda_library;

  // Default: kiln_allocator_libc(). Must outlive the context.
  const kiln_allocator_t* allocator;

  // Default: silence.
  const kiln_log_sink_t* log;
} kiln_toolkit_options_t;

// All defaults. Since 0.1.
static inline kiln_toolkit_options_t kiln_toolkit_options_default(void) {
  kiln_toolkit_options_t options = {(uint32_t)sizeof(options),
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
                                    NULL};
  return options;
}

// Makes a context. `options` may be NULL. Reads the environment; does not
// access the disk and opens no library. INVALID_ARGUMENT: an option out of its
// range, or a variable with a value that cannot be read (in every mode). The
// caller owns `*out_toolkit`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_toolkit_create(
    const kiln_toolkit_options_t* options, kiln_toolkit_t** out_toolkit);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_toolkit_retain(kiln_toolkit_t* toolkit);
KILN_API void kiln_toolkit_release(kiln_toolkit_t* toolkit);

// The mode it works in: KILN_COMPAT_MODE_*, never DEFAULT. Since 0.1.
KILN_API uint32_t kiln_toolkit_mode(const kiln_toolkit_t* toolkit);

// The search context inside. Borrowed. Since 0.1.
KILN_API kiln_locate_t* kiln_toolkit_locate(kiln_toolkit_t* toolkit);

// An environment variable. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_toolkit_variable_t {
  const char* name;
  const char* value;  // NULL where it is not set, or empty
} kiln_toolkit_variable_t;

// The variables that count here: all that a search or the mode may follow, set
// or not, with the values they had when the context was made. None if the
// search is hermetic or secure. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t kiln_toolkit_variable_count(const kiln_toolkit_t* toolkit);
KILN_API const kiln_toolkit_variable_t* kiln_toolkit_variable(
    const kiln_toolkit_t* toolkit, uint32_t index);

// Forgets which components are in use, the declared uses, and the driver's
// version. Finds stay cached; libraries stay loaded. Since 0.1.
KILN_API void kiln_toolkit_reset(kiln_toolkit_t* toolkit);

// The same, and later finds search the disk again. Since 0.1.
KILN_API void kiln_toolkit_refresh(kiln_toolkit_t* toolkit);

// The driver to check against; queried on first use. Never fails because of the
// driver: an absent one has the state NONE, one that cannot be queried UNKNOWN.
// The strings of `*out_driver` live until the context is reset. OUT_OF_MEMORY,
// INVALID_STATE. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_driver(kiln_toolkit_t* toolkit, kiln_compat_driver_t* out_driver);

// ---- Components ----

// A component and what is known about its version. thread-safe
//
// Reference-counted and immutable; it does not retain its context.
typedef struct kiln_toolkit_item_t kiln_toolkit_item_t;

// Searches for a component and reads its version. It is not checked and not
// remembered. OK even if nothing is found: the item reports it. Errors as of
// kiln_locate_find. The caller owns `*out_item`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_resolve(kiln_toolkit_t* toolkit, uint32_t kind, const char* name,
                     kiln_toolkit_item_t** out_item);

// The same for an item found by kiln_locate_find and related calls. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_toolkit_resolve_located(
    kiln_toolkit_t* toolkit, kiln_locate_item_t* located,
    kiln_toolkit_item_t** out_item);

// Searches for a component, checks it against the components in use, and
// remembers it as one of them. Adding it again changes nothing. One that was
// not found is returned without a check.
//
// In mode `warn` problems are logged, and the driver is not queried for a find
// alone. Otherwise, besides the errors of kiln_locate_find:
//
//   INCOMPATIBLE           a rule is broken (strict, best_effort); the message
//                          names it and both components
//   INSUFFICIENT_METADATA  a rule cannot be decided (strict)
//
// A refused component is not remembered. The caller owns `*out_item`. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_find(kiln_toolkit_t* toolkit, uint32_t kind, const char* name,
                  kiln_toolkit_item_t** out_item);

// The same for an item that was located, e.g. in one consistent set. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_find_located(kiln_toolkit_t* toolkit, kiln_locate_item_t* located,
                          kiln_toolkit_item_t** out_item);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_toolkit_item_retain(kiln_toolkit_item_t* item);
KILN_API void kiln_toolkit_item_release(kiln_toolkit_item_t* item);

// Its location, and the whole search log. Borrowed. Since 0.1.
KILN_API kiln_locate_item_t* kiln_toolkit_item_located(
    const kiln_toolkit_item_t* item);

// The toolkit line it is of, 13000 is 13.0; 0 if unknown, and for items that
// are not part of a toolkit. Since 0.1.
KILN_API uint32_t kiln_toolkit_item_line(const kiln_toolkit_item_t* item);

// Its own version as far as it is known: "13.0.88", "9.14.0"; "". Borrowed.
// Since 0.1.
KILN_API const char* kiln_toolkit_item_release_text(
    const kiln_toolkit_item_t* item);

// The source of that version: "text" (of the file itself), "wheel", "name" (the
// number in the name of the file that links lead to), "package" (of conda or
// dpkg) or "header" (of a product, the one next to it); "" if unknown. Static.
// Since 0.1.
KILN_API const char* kiln_toolkit_item_release_source(
    const kiln_toolkit_item_t* item);

// The same in detail: the text, the wheel's or package's name, the file. "" if
// unknown. Borrowed. Since 0.1.
KILN_API const char* kiln_toolkit_item_release_evidence(
    const kiln_toolkit_item_t* item);

// The conclusion about the line. Since 0.1.
KILN_API kiln_compat_conclusion_t
kiln_toolkit_item_conclusion(const kiln_toolkit_item_t* item);

// All evidence for a line. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_toolkit_item_evidence_count(const kiln_toolkit_item_t* item);
KILN_API const kiln_compat_evidence_t* kiln_toolkit_item_evidence(
    const kiln_toolkit_item_t* item, uint32_t index);

// The component as a fact for the rules. Borrowed. Since 0.1.
KILN_API const kiln_compat_fact_t* kiln_toolkit_item_fact(
    const kiln_toolkit_item_t* item);

// ---- Checks ----

// Checks components and uses against each other, the driver and the allowed
// versions. Nothing is remembered, and the components in use are ignored,
// unless `item_count` is 0: then all of them and the declared uses are checked.
// Items that were not found are left out.
//
// OK regardless of the findings: kiln_compat_report_status returns the verdict.
// The caller owns `*out_report`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_check(kiln_toolkit_t* toolkit, kiln_toolkit_item_t* const* items,
                   uint32_t item_count, const kiln_compat_use_t* const* uses,
                   uint32_t use_count, kiln_compat_report_t** out_report);

// Declares that one component consumes the output of another; checked at once
// for the components in use, and with each new one. A use that was declared
// before changes nothing; one that is refused is not remembered.
// INVALID_ARGUMENT for a name that is not in the catalog or an unknown
// artifact. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_use_declare(kiln_toolkit_t* toolkit, const kiln_compat_use_t* use);

// ---- Libraries ----

// A library that was loaded. thread-safe
//
// Belongs to its context and lives as long as that. Its code stays mapped until
// the process ends: it is never closed.
typedef struct kiln_toolkit_library_t kiln_toolkit_library_t;

// Loads a library of the catalog: finds it and everything it needs, checks all
// of that as kiln_toolkit_find does, and only then opens it, what it needs
// first. One library is loaded once, from however many threads.
//
//   NOT_FOUND  it or a dependency does not exist; or the system's
//              loader refuses it (its own sentence is in the message)
//   INVALID_ARGUMENT, INCOMPATIBLE, INSUFFICIENT_METADATA as
//              kiln_toolkit_find; nothing was opened
//
// `*out_library` is borrowed. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_load(kiln_toolkit_t* toolkit, const char* name,
                  const kiln_toolkit_library_t** out_library);

// The same for a library that was located. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_load_located(kiln_toolkit_t* toolkit, kiln_locate_item_t* located,
                          const kiln_toolkit_library_t** out_library);

// The component that was loaded; with the result of its version call. Borrowed.
// Since 0.1.
KILN_API kiln_toolkit_item_t* kiln_toolkit_library_item(
    const kiln_toolkit_library_t* library);

// The file that the loader actually loaded, absolute. Borrowed. Since 0.1.
KILN_API const char* kiln_toolkit_library_path(
    const kiln_toolkit_library_t* library);

// What dlsym takes. Since 0.1.
KILN_API void* kiln_toolkit_library_handle(
    const kiln_toolkit_library_t* library);

// The address of a symbol; NULL if it does not exist. Since 0.1.
KILN_API void* kiln_toolkit_library_symbol(
    const kiln_toolkit_library_t* library, const char* name);

// True if other code had loaded it into the process before. Since 0.1.
KILN_API bool kiln_toolkit_library_was_loaded(
    const kiln_toolkit_library_t* library);

// The files of the process that were linked with it, "" for the program
// itself; only for one that was loaded before. Borrowed; NULL out of range.
// Since 0.1.
KILN_API uint32_t
kiln_toolkit_library_user_count(const kiln_toolkit_library_t* library);
KILN_API const char* kiln_toolkit_library_user(
    const kiln_toolkit_library_t* library, uint32_t index);

// What was opened before it for its sake, in order: files. What the same load
// opened for others is not among them. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_toolkit_library_before_count(const kiln_toolkit_library_t* library);
KILN_API const char* kiln_toolkit_library_before(
    const kiln_toolkit_library_t* library, uint32_t index);

KILN_EXTERN_C_END

#endif  // KILN_TOOLKIT_H_
