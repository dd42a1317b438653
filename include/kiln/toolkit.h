// SPDX-License-Identifier: Apache-2.0
//
// toolkit: finds a piece of a CUDA toolkit, checks that it fits, loads it.
//
// Joins the search (kiln/locate.h), the rules (kiln/compat.h) and the system's
// loader. A context remembers what it handed out, so that each new piece is
// checked against the pieces already in use, against the driver and against
// what the caller allows - before it is loaded, so that a refusal leaves
// nothing behind.
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

  // KILN_SWITCH_*: the driver may be older than the pieces (a forward
  // compatibility package is installed). Relaxes the rule about the driver and
  // no other. Default: the variables KILN_COMPAT and
  // CUDA_PATHFINDER_DRIVER_COMPATIBILITY, else off.
  uint32_t forward_compat;

  // KILN_SWITCH_*: what is read of a piece to tell its line. On: all evidence.
  // Default: what the piece says itself and who installed it, and all of it
  // where that does not tell or where two disagree. Off, where `mode` is off as
  // well: as little as tells the line, so that releases, wheels and what a
  // piece needs may not be known.
  uint32_t verify;

  // KILN_COMPAT_MODE_*: the mode where neither `mode` nor a variable says one.
  // Default: `warn`.
  uint32_t default_mode;

  uint32_t reserved;  // 0

  // How pieces are looked for; its allocator is not read. Default: all
  // defaults of kiln_locate_create.
  const kiln_locate_options_t* locate;

  // The toolkit lines that are allowed, as a PEP 440 specifier
  // (">=12.9,<13"). Default: all.
  const char* ctk_version;

  // The driver to check against, e.g. from kiln_compat_driver_parse. Default:
  // this machine's, asked once, when the first check needs it. No device is
  // touched by that.
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

// Makes a context. `options` may be NULL. Reads the environment; touches no
// disk and opens no library. INVALID_ARGUMENT: an option out of its range, or
// a variable with a value that cannot be read (in every mode). The caller owns
// `*out_toolkit`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_toolkit_create(
    const kiln_toolkit_options_t* options, kiln_toolkit_t** out_toolkit);

// One reference more, one less. NULL is accepted. Since 0.1.
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
// or not, with the values they had when the context was made. None where the
// search is hermetic or secure. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t kiln_toolkit_variable_count(const kiln_toolkit_t* toolkit);
KILN_API const kiln_toolkit_variable_t* kiln_toolkit_variable(
    const kiln_toolkit_t* toolkit, uint32_t index);

// Forgets which pieces are in use, the declared uses, and what the driver said.
// Finds stay cached; libraries stay loaded. Since 0.1.
KILN_API void kiln_toolkit_reset(kiln_toolkit_t* toolkit);

// The same, and finds are made anew from the disk. Since 0.1.
KILN_API void kiln_toolkit_refresh(kiln_toolkit_t* toolkit);

// The driver that is checked against; asks it if it has not been asked. Never
// fails because of the driver: one that is not there has the state NONE, one
// that cannot be asked UNKNOWN. The strings of `*out_driver` live until the
// context is reset. OUT_OF_MEMORY, INVALID_STATE. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_driver(kiln_toolkit_t* toolkit, kiln_compat_driver_t* out_driver);

// ---- Pieces ----

// A piece that was looked for, with what is known of its version. thread-safe
//
// Reference-counted and immutable; it does not keep its context.
typedef struct kiln_toolkit_item_t kiln_toolkit_item_t;

// Looks for a piece and reads its version. It is not checked and not
// remembered. OK also where nothing is there: the item says so. Errors as of
// kiln_locate_find. The caller owns `*out_item`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_resolve(kiln_toolkit_t* toolkit, uint32_t kind, const char* name,
                     kiln_toolkit_item_t** out_item);

// The same for something that kiln_locate_find and its like have found.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_toolkit_resolve_located(
    kiln_toolkit_t* toolkit, kiln_locate_item_t* located,
    kiln_toolkit_item_t** out_item);

// Looks for a piece, checks it against the pieces in use, and remembers it as
// one of them. The same piece again changes nothing. One that was not found is
// returned without a check.
//
// In mode `warn` what is wrong is logged; there the driver is not asked for a
// find alone. Otherwise, besides the errors of kiln_locate_find:
//
//   INCOMPATIBLE           a rule is broken (strict, best_effort); the message
//                          names it and both pieces
//   INSUFFICIENT_METADATA  a rule cannot be decided (strict)
//
// A refused piece is not remembered. The caller owns `*out_item`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_find(kiln_toolkit_t* toolkit, uint32_t kind, const char* name,
                  kiln_toolkit_item_t** out_item);

// The same for something that was located, e.g. in one consistent set.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_find_located(kiln_toolkit_t* toolkit, kiln_locate_item_t* located,
                          kiln_toolkit_item_t** out_item);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_toolkit_item_retain(kiln_toolkit_item_t* item);
KILN_API void kiln_toolkit_item_release(kiln_toolkit_item_t* item);

// Where it lies, and the whole trail. Borrowed. Since 0.1.
KILN_API kiln_locate_item_t* kiln_toolkit_item_located(
    const kiln_toolkit_item_t* item);

// The toolkit line it is of, 13000 is 13.0; 0 where it is not known, and for
// what is not a toolkit's. Since 0.1.
KILN_API uint32_t kiln_toolkit_item_line(const kiln_toolkit_item_t* item);

// Its own version as far as it is known: "13.0.88", "9.14.0"; "". Borrowed.
// Since 0.1.
KILN_API const char* kiln_toolkit_item_release_text(
    const kiln_toolkit_item_t* item);

// What tells that version: "text" (of the file itself), "wheel", "name" (the
// number in the name of the file that links lead to), "package" (of conda or
// dpkg) or "header" (of a product, the one that lies with it); "" where it is
// not known. Static. Since 0.1.
KILN_API const char* kiln_toolkit_item_release_source(
    const kiln_toolkit_item_t* item);

// The same in detail: the text, the wheel's or package's name, the file. ""
// where it is not known. Borrowed. Since 0.1.
KILN_API const char* kiln_toolkit_item_release_evidence(
    const kiln_toolkit_item_t* item);

// What the line follows from. Since 0.1.
KILN_API kiln_compat_conclusion_t
kiln_toolkit_item_conclusion(const kiln_toolkit_item_t* item);

// Everything that says a line. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_toolkit_item_evidence_count(const kiln_toolkit_item_t* item);
KILN_API const kiln_compat_evidence_t* kiln_toolkit_item_evidence(
    const kiln_toolkit_item_t* item, uint32_t index);

// The piece as the rules see it. Borrowed. Since 0.1.
KILN_API const kiln_compat_fact_t* kiln_toolkit_item_fact(
    const kiln_toolkit_item_t* item);

// ---- Checks ----

// Checks pieces and uses with each other, with the driver and with what is
// allowed. Nothing is remembered, and the pieces in use are not looked at, but
// where `item_count` is 0: then all of them and the declared uses are checked.
// Items that were not found are left out.
//
// OK whatever is found: ask kiln_compat_report_status for the verdict. The
// caller owns `*out_report`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_check(kiln_toolkit_t* toolkit, kiln_toolkit_item_t* const* items,
                   uint32_t item_count, const kiln_compat_use_t* const* uses,
                   uint32_t use_count, kiln_compat_report_t** out_report);

// Declares that what one piece makes goes into another; checked at once for the
// pieces in use, and with each that joins them. A use that was declared before
// changes nothing; one that is refused is not remembered. INVALID_ARGUMENT for
// a name that is not in the catalog or an artifact that is none. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_toolkit_use_declare(kiln_toolkit_t* toolkit, const kiln_compat_use_t* use);

// ---- Libraries ----

// A library that was loaded. thread-safe
//
// Belongs to its context and lives as long as that. Its code stays mapped until
// the process ends: nobody closes it.
typedef struct kiln_toolkit_library_t kiln_toolkit_library_t;

// Loads a library of the catalog: finds it and everything it needs, checks all
// of that as kiln_toolkit_find does, and only then opens it, what it needs
// first. One library is loaded once, from however many threads.
//
//   NOT_FOUND  it is not there, or something that it needs; or the system's
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

// The piece that was loaded; with what its own version call says. Borrowed.
// Since 0.1.
KILN_API kiln_toolkit_item_t* kiln_toolkit_library_item(
    const kiln_toolkit_library_t* library);

// The file that the loader really took, absolute. Borrowed. Since 0.1.
KILN_API const char* kiln_toolkit_library_path(
    const kiln_toolkit_library_t* library);

// What dlsym takes. Since 0.1.
KILN_API void* kiln_toolkit_library_handle(
    const kiln_toolkit_library_t* library);

// The address of a symbol; NULL if it is not there. Since 0.1.
KILN_API void* kiln_toolkit_library_symbol(
    const kiln_toolkit_library_t* library, const char* name);

// True if somebody else had it in the process before. Since 0.1.
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
