// SPDX-License-Identifier: Apache-2.0
//
// compile: linking device code, with nvJitLink or with the driver.
//
// The choice depends on versions and is made for each link. It is a pure
// function of facts, which needs neither linker: kiln_link_choose.
#ifndef KILN_LINK_H_
#define KILN_LINK_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/cache.h"
#include "kiln/code.h"
#include "kiln/compat.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Linkers. DRIVER is cuLinkCreate and related calls.
enum {
  KILN_LINK_BACKEND_AUTO = 0,
  KILN_LINK_BACKEND_NVJITLINK = 1,
  KILN_LINK_BACKEND_DRIVER = 2,
};

// "auto", "nvjitlink", "driver"; "?" for an invalid value. Static.
// Since 0.1.
KILN_API const char* kiln_link_backend_word(uint32_t backend);

// What a linker writes while it links.
enum {
  KILN_LINK_LOG_ERROR = 1,
  KILN_LINK_LOG_INFO = 2,
};

// ---- The choice ----

// The first nvJitLink that has names without a version in them, 12.3. Older
// ones count as absent.
enum { KILN_LINK_NVJITLINK_LEAST = 12030 };

// An nvJitLink whose version cannot be read.
enum { KILN_LINK_NVJITLINK_UNKNOWN = 1 };

enum {
  KILN_LINK_MAX_NVJITLINKS = 64,
  KILN_LINK_MAX_INPUTS = 65536,
};

// One input of a link. thread-compatible
typedef struct kiln_link_input_fact_t {
  uint32_t format;    // KILN_CODE_FORMAT_*
  uint32_t line;      // of the tool that made it, 13000 is 13.0; 0: unknown
  uint32_t ptx_isa;   // of PTX: 10 * major + minor, 90 is 9.0; 0: unknown
  uint32_t reserved;  // 0
  const char* name;   // for messages; may be NULL
} kiln_link_input_fact_t;

// The metadata of an input: its format, the tool that made it, and for PTX the
// version in its first line. LTO-IR has it in its header; in a fatbin, an
// object or an archive, the header identifies only the oldest release that
// writes it. `out_fact->name` is borrowed from `code`. Since 0.1.
KILN_API void kiln_link_input_fact_of(const kiln_code_t* code,
                                      kiln_link_input_fact_t* out_fact);

// The facts for a choice. thread-compatible
//
// Zero in any field is its default. Borrowed during the call.
typedef struct kiln_link_facts_t {
  uint32_t struct_size;  // sizeof(kiln_link_facts_t)
  uint32_t backend;      // KILN_LINK_BACKEND_*: the requested one

  // KILN_CODE_FORMAT_*: CUBIN, PTX, LTOIR or RELOCATABLE. Default: CUBIN.
  uint32_t output;

  uint32_t lto;  // KILN_SWITCH_*: link-time optimisation. Default: as needed.

  // The driver that will load what is linked. Default: unknown.
  kiln_compat_driver_t driver;

  // The releases of the nvJitLinks found, in order of preference: 12090 is
  // 12.9. None: absent.
  const uint32_t* nvjitlinks;

  // The inputs, in any order.
  const kiln_link_input_fact_t* inputs;

  uint32_t nvjitlink_count;
  uint32_t input_count;

  // 1: there is no device. The driver links in a device's context, so without
  // one it does not link.
  uint32_t has_no_device;
  uint32_t reserved;  // 0
} kiln_link_facts_t;

// All defaults. Since 0.1.
static inline kiln_link_facts_t kiln_link_facts_default(void) {
  kiln_link_facts_t facts = {
      (uint32_t)sizeof(facts),
      0,
      0,
      0,
      {(uint32_t)sizeof(kiln_compat_driver_t), 0, 0, 0, NULL, NULL},
      NULL,
      NULL,
      0,
      0,
      0,
      0};
  return facts;
}

// A choice and its reasons. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_link_choice_t kiln_link_choice_t;

// Chooses the linker. Pure: depends only on `facts`.
//
//   * An nvJitLink not newer than the driver links, whatever its major: its
//     output loads.
//   * A newer one of the driver's major links too: its cubin follows
//     minor-version compatibility. Its PTX has its own ISA version, so PTX is
//     made by one that the driver is not older than.
//   * One of a newer major makes what the driver cannot load. Without
//     link-time optimisation the driver links; with it another nvJitLink is
//     taken, or the link is refused.
//   * A linker is at least as new as its inputs.
//   * nvJitLink silently drops linked machine code (a CUBIN), so
//     none is a candidate for it; the driver is tried, without a documented
//     guarantee.
//   * An unknown driver counts as new enough, and so does an absent one, if
//     something is linked for another machine.
//
// OK even if the choice is a refusal: check kiln_link_choice_status.
// INVALID_ARGUMENT: no input, an output that no linker makes, an input that no
// linker takes. LIMIT_EXCEEDED, OUT_OF_MEMORY. `allocator` may be NULL. The
// caller owns `*out_choice`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_choose(
    const kiln_link_facts_t* facts, const kiln_allocator_t* allocator,
    kiln_link_choice_t** out_choice);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_link_choice_retain(kiln_link_choice_t* choice);
KILN_API void kiln_link_choice_release(kiln_link_choice_t* choice);

// KILN_LINK_BACKEND_*; AUTO if the link is refused. Since 0.1.
KILN_API uint32_t kiln_link_choice_backend(const kiln_link_choice_t* choice);

// Which nvJitLink, as an index into the facts; UINT32_MAX if none was chosen.
// Since 0.1.
KILN_API uint32_t kiln_link_choice_nvjitlink(const kiln_link_choice_t* choice);

// KILN_CODE_FORMAT_* of the output. Since 0.1.
KILN_API uint32_t kiln_link_choice_output(const kiln_link_choice_t* choice);

// True if link-time optimisation is on. Since 0.1.
KILN_API bool kiln_link_choice_lto(const kiln_link_choice_t* choice);

// COMPATIBLE: it will link and load, as far as versions determine. UNKNOWN:
// chosen, without a documented guarantee. INCOMPATIBLE: refused. Since 0.1.
KILN_API uint32_t kiln_link_choice_verdict(const kiln_link_choice_t* choice);

// Why, one sentence each, the deciding one last. Borrowed; NULL out of range.
// Since 0.1.
KILN_API uint32_t
kiln_link_choice_reason_count(const kiln_link_choice_t* choice);
KILN_API const char* kiln_link_choice_reason(const kiln_link_choice_t* choice,
                                             uint32_t index);

// The fix for a refusal; NULL if nothing was refused. Borrowed. Since 0.1.
KILN_API const char* kiln_link_choice_fix(const kiln_link_choice_t* choice);

// OK, or why the link is refused, each time a new status:
//
//   NOT_FOUND     there is nothing to link with
//   UNSUPPORTED   only nvJitLink does this, and it is absent or too old
//   INCOMPATIBLE  names the component that is too old
//   INVALID_STATE the driver would link, and there is no device
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_choice_status(const kiln_link_choice_t* choice);

// ---- Options ----

// Optimisation levels.
enum {
  KILN_LINK_LEVEL_DEFAULT = 0,
  KILN_LINK_LEVEL_0 = 1,
  KILN_LINK_LEVEL_1 = 2,
  KILN_LINK_LEVEL_2 = 3,
  KILN_LINK_LEVEL_3 = 4,
};

// One thread per processor.
#define KILN_LINK_ALL_THREADS UINT32_MAX

enum {
  KILN_LINK_MAX_LIST = 65536,            // entries of one list
  KILN_LINK_MAX_OPTION_BYTES = 1 << 20,  // of one text
};

// How something is linked. thread-compatible
//
// Zero in any field is its default. Everything is copied. How each backend
// handles each field: docs/reference/link-options.md.
typedef struct kiln_link_options_t {
  uint32_t struct_size;  // sizeof(kiln_link_options_t)
  uint32_t backend;      // KILN_LINK_BACKEND_*: the requested one

  // KILN_CODE_FORMAT_*: CUBIN, PTX, LTOIR or RELOCATABLE. Default: CUBIN.
  uint32_t output;

  uint32_t lto;  // KILN_SWITCH_*: link-time optimisation. Default: as needed.

  // The name of the result in messages. Default: "linked".
  const char* name;

  // "sm_90", "sm_90a". Default: that of the linker's device; nvJitLink needs
  // one of the two. INVALID_ARGUMENT for an invalid architecture (nvJitLink 13
  // ends the process for some of those), and for "compute_90" if nvJitLink is
  // to make a cubin.
  const char* arch;

  // Options of what is compiled or assembled. Machine code is not recompiled:
  // for it alone, `max_registers`, `optimization_level` and `ptxas_options` are
  // refused, as are `ftz`, `prec_div`, `prec_sqrt` and `fma` if nvJitLink links
  // no LTO-IR, since PTX specifies its own arithmetic. An option that affects
  // only some of the inputs is a warning of the settings.
  uint32_t max_registers;       // of a thread
  uint32_t optimization_level;  // KILN_LINK_LEVEL_*

  // KILN_SWITCH_* all.
  uint32_t debug;                      // full debug information
  uint32_t lineinfo;                   // line numbers only
  uint32_t time;                       // log how long each step took
  uint32_t verbose;                    // log what is used
  uint32_t ftz;                        // flush denormal numbers to zero
  uint32_t prec_div;                   // divide as specified by IEEE 754
  uint32_t prec_sqrt;                  // take square roots likewise
  uint32_t fma;                        // contract a * b + c
  uint32_t optimize_unused_variables;  // drop those that are never read
  uint32_t no_cache;                   // do not use the driver's cache

  // Threads; KILN_LINK_ALL_THREADS for one per processor. The second splits
  // more finely, which may make the result slower.
  uint32_t split_compile;
  uint32_t split_compile_extended;

  // The kernels and the variables that will be used, by their names in the
  // machine code, so that others may be dropped; a name that no input defines
  // is refused. From machine code without link-time optimisation nvJitLink
  // drops unnamed kernels even if only variables are named: that is refused.
  const char* const* kernels_used;
  const char* const* variables_used;

  const char* const* ptxas_options;  // for the assembler, one string each

  // Options in nvJitLink's own syntax, after all others. Options that change
  // the kind of the output are refused.
  const char* const* extra;

  uint32_t kernels_used_count;
  uint32_t variables_used_count;
  uint32_t ptxas_options_count;
  uint32_t extra_count;

  // The cache for the result. The link retains it. Default: none.
  kiln_cache_t* cache;

  // KILN_SWITCH_*: nvJitLink links in a separate process, so that a crash of
  // that process is LINK_FAILED here, with the signal and the inputs, and its
  // standard error is in the log. An input with damage that nvJitLink may
  // survive is linked too; it is BAD_DATA if the linker fails, or if the result
  // lacks a name that the inputs define. Such a result is not cached, which the
  // log reports (WARNING). Default: in this process, where every damage is
  // BAD_DATA before the link. UNSUPPORTED if the driver is to link.
  uint32_t isolated;

  // Time limit in seconds; then it is terminated. Default: 600.
  uint32_t isolated_seconds;

  // The program of that process, as an absolute path. It is called with the
  // words `link --serve 3` and an empty environment, and calls kiln_link_serve.
  // Default: the command `kiln` that is installed with the library.
  const char* isolated_program;
} kiln_link_options_t;

// All defaults. Since 0.1.
static inline kiln_link_options_t kiln_link_options_default(void) {
  kiln_link_options_t options = {(uint32_t)sizeof(options),
                                 0,
                                 0,
                                 0,
                                 NULL,
                                 NULL,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
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
                                 0,
                                 0,
                                 0,
                                 0,
                                 NULL,
                                 0,
                                 0,
                                 NULL};
  return options;
}

// The options passed to a backend, as text. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_link_settings_t kiln_link_settings_t;

// Translates `options` for `backend`, NVJITLINK or DRIVER. Pure: links nothing
// and needs neither. `options` may be NULL.
//
//   INVALID_ARGUMENT  an option out of its range, or of two lines; one among
//                     `extra` that a field is for; no architecture for
//                     nvJitLink
//   UNSUPPORTED       the backend has no such option (it is named), or does
//                     not make the output
//   LIMIT_EXCEEDED, OUT_OF_MEMORY
//
// `allocator` may be NULL. The caller owns `*out_settings`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_settings_create(
    const kiln_link_options_t* options, uint32_t backend,
    const kiln_allocator_t* allocator, kiln_link_settings_t** out_settings);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_link_settings_retain(kiln_link_settings_t* settings);
KILN_API void kiln_link_settings_release(kiln_link_settings_t* settings);

// Each option in its backend's syntax: "-arch=sm_90" for nvJitLink,
// "CU_JIT_TARGET=90" for the driver (besides those of its log buffers).
// Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_link_settings_count(const kiln_link_settings_t* settings);
KILN_API const char* kiln_link_settings_option(
    const kiln_link_settings_t* settings, uint32_t index);

// The options that were set but have no effect in this backend, one sentence
// each. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_link_settings_warning_count(const kiln_link_settings_t* settings);
KILN_API const char* kiln_link_settings_warning(
    const kiln_link_settings_t* settings, uint32_t index);

// ---- Linking ----

// The available linkers. thread-safe
//
// Every nvJitLink of this machine, and with a device its driver.
// Reference-counted; made by kiln_runtime_open_linker. Copies are searched when
// the first link needs them, and only the chosen ones are loaded. The result of
// the search is remembered, and an empty result is logged once.
typedef struct kiln_linker_t kiln_linker_t;

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_linker_retain(kiln_linker_t* linker);
KILN_API void kiln_linker_release(kiln_linker_t* linker);

// The nvJitLinks that were found, in order of preference; searches for them if
// necessary. 12090 is 12.9, KILN_LINK_NVJITLINK_UNKNOWN one of unknown version.
// `*out_path` is borrowed. NOT_FOUND for an index out of range; errors as of
// kiln_locate_find_all. `out_line` and `out_path` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_linker_nvjitlink_count(kiln_linker_t* linker, uint32_t* out_count);
KILN_API KILN_MUST_USE kiln_status_t
kiln_linker_nvjitlink(kiln_linker_t* linker, uint32_t index, uint32_t* out_line,
                      const char** out_path);

// The driver that will load the result. OUT_OF_MEMORY, INVALID_STATE. Its
// strings are NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_linker_driver(kiln_linker_t* linker, kiln_compat_driver_t* out_driver);

// One link: inputs in order, then one result. thread-compatible
//
// Reference-counted. Its logs may be read from any thread at any time.
//
//   kiln_link_t* link = NULL;
//   kiln_code_t* code = NULL;
//   kiln_status_t status = kiln_link_create(linker, &options, &link);
//   if (kiln_status_is_ok(status)) status = kiln_link_add(link, first);
//   if (kiln_status_is_ok(status)) status = kiln_link_add(link, second);
//   if (kiln_status_is_ok(status)) status = kiln_link_finish(link, &code);
typedef struct kiln_link_t kiln_link_t;

// Begins a link. `options` may be NULL. Reports errors of options that do not
// depend on the backend: INVALID_ARGUMENT, LIMIT_EXCEEDED. The caller owns
// `*out_link`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_create(kiln_linker_t* linker, const kiln_link_options_t* options,
                 kiln_link_t** out_link);

// Adds or releases a reference. The last one closes. NULL is accepted. Since
// 0.1.
KILN_API void kiln_link_retain(kiln_link_t* link);
KILN_API void kiln_link_release(kiln_link_t* link);

// Adds an input after the existing ones: PTX, a cubin (relocatable or not), a
// fatbin, an object file, an archive of object files or LTO-IR. `code` is
// retained; bytes are copied; a file is read at once. `format` is
// KILN_CODE_FORMAT_*; 0: detected from the bytes. `name` is for messages and
// may be NULL.
//
//   INVALID_ARGUMENT  a format that no linker takes, no bytes
//   BAD_DATA          the format cannot be detected from the bytes
//   NOT_FOUND, PERMISSION_DENIED, IO_ERROR  of a file
//   INVALID_STATE     the link is finished or closed
//   LIMIT_EXCEEDED    more than KILN_LINK_MAX_INPUTS
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_add(kiln_link_t* link,
                                                   kiln_code_t* code);
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_add_bytes(kiln_link_t* link, kiln_bytes_view_t bytes, uint32_t format,
                    const char* name);
KILN_API KILN_MUST_USE kiln_status_t kiln_link_add_file(kiln_link_t* link,
                                                        const char* path,
                                                        uint32_t format);

// Reports which linker would link the current inputs, without linking or
// loading anything. OK even if that is a refusal, like kiln_link_choose. Code
// newer than the driver version that the software device emulates does not
// prevent it from linking, or nvJitLink from linking for it: it reads PTX 6.0
// to 9.x. The caller owns `*out_choice`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_explain(kiln_link_t* link, kiln_link_choice_t** out_choice);

// The options passed to the backend; chooses the linker first. The caller owns
// `*out_settings`. Errors as of kiln_link_choice_status and
// kiln_link_settings_create; INVALID_ARGUMENT for an option that changes
// nothing in this link. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_settings(kiln_link_t* link, kiln_link_settings_t** out_settings);

// Links, once: afterwards the link only has its logs and the choice.
//
//   LINK_FAILED       a name that is not defined, code that cannot be read...:
//                     the message is the log's first error, also where the
//                     linker reports success; a name that two inputs define
//                     (but not a function of LTO-IR that was inlined wherever
//                     it was called: its name is not in the result);
//                     a function that one input declares or defines with
//                     parameters or a result of other sizes than another (not
//                     of LTO-IR, whose types are not readable);
//                     kernels of an input that the linker left out, or, of
//                     finished machine code in an object, a fatbin or an
//                     archive, would leave out, and its variables; an archive
//                     with a member that is PTX, LTO-IR, a cubin or a fatbin by
//                     itself: linkers take objects only out of archives
//   BAD_DATA          an input is cut off or damaged, is not of its format, or
//                     is an object without device code; archives in which no
//                     member has any, and nothing else; device code in an ELF
//                     file that is not 64 bits wide and little-endian; none was
//                     given to the linker, unless it is `isolated` and failed
//                     over it
//   INVALID_ARGUMENT  no input, or as of the choice and the settings; link-time
//                     optimisation, and no input is LTO-IR; an option that
//                     changes nothing in this link
//   INCOMPATIBLE      machine code for an architecture that the result is not
//                     for; an object, a fatbin or a member of an archive with
//                     code for others alone
//   INCOMPATIBLE, UNSUPPORTED, NOT_FOUND  the choice is a refusal, or the
//                     linker refuses what the choice could not know
//   INVALID_STATE     finished or closed before; the driver was chosen and the
//                     linker has no device
//   NOT_FOUND         a kernel or a variable is listed as used, but no
//                     input has
//   NOT_FOUND, IO_ERROR  `isolated`, and its program cannot be started
//   DRIVER_ERROR, LIMIT_EXCEEDED, OUT_OF_MEMORY
//
// With a cache the result is looked up by everything that can change it: the
// linker, by its build, its options, and the inputs. On a hit nothing is
// linked, no nvJitLink is loaded, and the logs are those of the original link.
//
// The caller owns `*out_code`; it has the lowered names of its inputs. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_finish(kiln_link_t* link,
                                                      kiln_code_t** out_code);

// Links once for kiln_link_finish of another process, with `isolated`, which
// started this one: `descriptor` is its end of a socket. The other process
// detects a crash of this one. IO_ERROR if the other process is gone or sends
// no request; a failed link is OK. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_serve(int descriptor);

// The linker that was used, and what it ignored; NULL before kiln_link_finish,
// and if that failed earlier. Borrowed. Since 0.1.
KILN_API const kiln_link_choice_t* kiln_link_chosen(const kiln_link_t* link);
KILN_API const kiln_link_settings_t* kiln_link_used(const kiln_link_t* link);

// The current text of a log, KILN_LINK_LOG_*: complete, "" if empty. From any
// thread, before, during and after linking, also after kiln_link_close; a
// returned text stays valid and unchanged until the link is released. Borrowed.
// Since 0.1.
KILN_API const char* kiln_link_log(kiln_link_t* link, uint32_t which);

// The role of the cache.
enum {
  KILN_LINK_CACHE_NONE = 0,         // no cache
  KILN_LINK_CACHE_HIT = 1,          // found; nothing was linked
  KILN_LINK_CACHE_MISS = 2,         // linked and stored
  KILN_LINK_CACHE_UNCACHEABLE = 3,  // linked, not stored
};
// KILN_LINK_CACHE_*, and why: "memory", "disk", "it was not there"; "" without
// a cache. Static. Since 0.1.
KILN_API uint32_t kiln_link_cache(const kiln_link_t* link);
KILN_API const char* kiln_link_cache_reason(const kiln_link_t* link);

// Releases the inputs and the linker; logs and choice stay. Since 0.1.
KILN_API void kiln_link_close(kiln_link_t* link);

KILN_EXTERN_C_END

#endif  // KILN_LINK_H_
