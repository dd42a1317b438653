// SPDX-License-Identifier: Apache-2.0
//
// compile: linking device code, with nvJitLink or with the driver.
//
// Which of the two is a question of versions, asked for each link anew. The
// answer is a pure function of facts, which needs neither: kiln_link_choose.
#ifndef KILN_LINK_H_
#define KILN_LINK_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/cache.h"
#include "kiln/code.h"
#include "kiln/compat.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Who links. DRIVER is cuLinkCreate and its like.
enum {
  KILN_LINK_BACKEND_AUTO = 0,
  KILN_LINK_BACKEND_NVJITLINK = 1,
  KILN_LINK_BACKEND_DRIVER = 2,
};

// "auto", "nvjitlink", "driver"; "?" for a value that is none. Static.
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

// One thing that goes into a link. thread-compatible
typedef struct kiln_link_input_fact_t {
  uint32_t format;    // KILN_CODE_FORMAT_*
  uint32_t line;      // of what made it, 13000 is 13.0; 0: not known
  uint32_t ptx_isa;   // of PTX: 10 * major + minor, 90 is 9.0; 0: not known
  uint32_t reserved;  // 0
  const char* name;   // for messages; may be NULL
} kiln_link_input_fact_t;

// What an input says of itself: its format, what made it, and of PTX the
// version in its first line. LTO-IR says it in its head; that in a fatbin, an
// object or an archive tells the oldest of the lines that write such a head.
// `out_fact->name` is borrowed from `code`. Since 0.1.
KILN_API void kiln_link_input_fact_of(const kiln_code_t* code,
                                      kiln_link_input_fact_t* out_fact);

// What a choice is made from. thread-compatible
//
// Zero in any field is its default. Borrowed during the call.
typedef struct kiln_link_facts_t {
  uint32_t struct_size;  // sizeof(kiln_link_facts_t)
  uint32_t backend;      // KILN_LINK_BACKEND_*: the one that is wanted

  // KILN_CODE_FORMAT_*: CUBIN, PTX, LTOIR or RELOCATABLE. Default: CUBIN.
  uint32_t output;

  uint32_t lto;  // KILN_SWITCH_*: link-time optimisation. Default: as needed.

  // The driver that will load what is linked. Default: unknown.
  kiln_compat_driver_t driver;

  // The lines of the nvJitLinks there are, in the order of preference: 12090 is
  // 12.9. None: absent.
  const uint32_t* nvjitlinks;

  // What is to be linked, in any order.
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

// What was chosen, and why. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_link_choice_t kiln_link_choice_t;

// Chooses who links. Pure: looks at nothing but `facts`.
//
//   * An nvJitLink not newer than the driver links, whatever its major: what it
//     makes, the driver loads.
//   * A newer one of the driver's major links too: its cubin follows
//     minor-version compatibility. Its PTX has its own ISA version, so PTX is
//     asked of one that the driver is not older than.
//   * One of a newer major makes what the driver cannot load. Without
//     link-time optimisation the driver links; with it another nvJitLink is
//     taken, or the link is refused.
//   * A linker is at least as new as what it is given.
//   * nvJitLink leaves finished machine code (a CUBIN) out without a word, so
//     none is a candidate for it; the driver is tried, and nobody promises it.
//   * An unknown driver counts as new enough, and so does none at all, where
//     something is linked for another machine.
//
// OK also where the choice is a refusal: ask kiln_link_choice_status.
// INVALID_ARGUMENT: no input, an output that no linker makes, an input that no
// linker takes. LIMIT_EXCEEDED, OUT_OF_MEMORY. `allocator` may be NULL. The
// caller owns `*out_choice`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_choose(
    const kiln_link_facts_t* facts, const kiln_allocator_t* allocator,
    kiln_link_choice_t** out_choice);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_link_choice_retain(kiln_link_choice_t* choice);
KILN_API void kiln_link_choice_release(kiln_link_choice_t* choice);

// KILN_LINK_BACKEND_*; AUTO where the link is refused. Since 0.1.
KILN_API uint32_t kiln_link_choice_backend(const kiln_link_choice_t* choice);

// Which nvJitLink, as an index into the facts; UINT32_MAX where none was
// chosen. Since 0.1.
KILN_API uint32_t kiln_link_choice_nvjitlink(const kiln_link_choice_t* choice);

// KILN_CODE_FORMAT_* of what will come out. Since 0.1.
KILN_API uint32_t kiln_link_choice_output(const kiln_link_choice_t* choice);

// True if link-time optimisation is on. Since 0.1.
KILN_API bool kiln_link_choice_lto(const kiln_link_choice_t* choice);

// COMPATIBLE: it will link and load, as far as versions go. UNKNOWN: chosen,
// and nobody promises it. INCOMPATIBLE: refused. Since 0.1.
KILN_API uint32_t kiln_link_choice_verdict(const kiln_link_choice_t* choice);

// Why, one sentence each, the deciding one last. Borrowed; NULL out of range.
// Since 0.1.
KILN_API uint32_t
kiln_link_choice_reason_count(const kiln_link_choice_t* choice);
KILN_API const char* kiln_link_choice_reason(const kiln_link_choice_t* choice,
                                             uint32_t index);

// What to do about a refusal; NULL where nothing was refused. Borrowed.
// Since 0.1.
KILN_API const char* kiln_link_choice_fix(const kiln_link_choice_t* choice);

// OK, or why the link is refused, each time a new status:
//
//   NOT_FOUND     there is nothing to link with
//   UNSUPPORTED   only nvJitLink does this, and there is none, or it is too old
//   INCOMPATIBLE  the component that is too old is named
//   INVALID_STATE the driver would link, and there is no device
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_choice_status(const kiln_link_choice_t* choice);

// ---- Options ----

// How hard the code is optimised.
enum {
  KILN_LINK_LEVEL_DEFAULT = 0,
  KILN_LINK_LEVEL_0 = 1,
  KILN_LINK_LEVEL_1 = 2,
  KILN_LINK_LEVEL_2 = 3,
  KILN_LINK_LEVEL_3 = 4,
};

// As many threads as there are processors.
#define KILN_LINK_ALL_THREADS UINT32_MAX

enum {
  KILN_LINK_MAX_LIST = 65536,            // entries of one list
  KILN_LINK_MAX_OPTION_BYTES = 1 << 20,  // of one text
};

// How something is linked. thread-compatible
//
// Zero in any field is its default. Everything is copied. What each backend
// makes of each field is a table: docs/reference/link-options.md.
typedef struct kiln_link_options_t {
  uint32_t struct_size;  // sizeof(kiln_link_options_t)
  uint32_t backend;      // KILN_LINK_BACKEND_*: the one that is wanted

  // KILN_CODE_FORMAT_*: CUBIN, PTX, LTOIR or RELOCATABLE. Default: CUBIN.
  uint32_t output;

  uint32_t lto;  // KILN_SWITCH_*: link-time optimisation. Default: as needed.

  // What messages call the result. Default: "linked".
  const char* name;

  // "sm_90", "sm_90a". Default: that of the linker's device; nvJitLink needs
  // one of the two. INVALID_ARGUMENT for what is no architecture at all
  // (nvJitLink 13 ends the process over some of those), and for "compute_90"
  // where nvJitLink is to make a cubin.
  const char* arch;

  // Options of what is compiled or assembled. Machine code stays as it was: of
  // it alone, `max_registers`, `optimization_level` and `ptxas_options` are
  // refused, as are `ftz`, `prec_div`, `prec_sqrt` and `fma` where nvJitLink
  // links no LTO-IR, since PTX says itself what it computes. An option that
  // reaches a part of the inputs is a warning of the settings.
  uint32_t max_registers;       // of a thread
  uint32_t optimization_level;  // KILN_LINK_LEVEL_*

  // KILN_SWITCH_* all.
  uint32_t debug;                      // full debug information
  uint32_t lineinfo;                   // line numbers only
  uint32_t time;                       // say in the log what took how long
  uint32_t verbose;                    // say in the log what is used
  uint32_t ftz;                        // flush denormal numbers to zero
  uint32_t prec_div;                   // divide as IEEE 754 says
  uint32_t prec_sqrt;                  // take square roots as it says
  uint32_t fma;                        // contract a * b + c
  uint32_t optimize_unused_variables;  // drop those that nobody reads
  uint32_t no_cache;                   // keep no copy in the driver's cache

  // Threads; KILN_LINK_ALL_THREADS for as many as there are processors. The
  // second splits more finely, and may cost speed of the result.
  uint32_t split_compile;
  uint32_t split_compile_extended;

  // The kernels and the variables that will be used, by their names in the
  // machine code, so that others may be dropped; one that no input has is
  // refused. Over machine code without link-time optimisation nvJitLink drops
  // the kernels that are not named also where only variables are: that is
  // refused.
  const char* const* kernels_used;
  const char* const* variables_used;

  const char* const* ptxas_options;  // for the assembler, one string each

  // Options as nvJitLink takes them, behind all others. What changes the kind
  // of the output is refused among them.
  const char* const* extra;

  uint32_t kernels_used_count;
  uint32_t variables_used_count;
  uint32_t ptxas_options_count;
  uint32_t extra_count;

  // Where the result is looked up and kept. It is kept by the link. Default:
  // nowhere.
  kiln_cache_t* cache;

  // KILN_SWITCH_*: nvJitLink links in a process of its own, so that what ends
  // that process is LINK_FAILED here, with the signal and the inputs, and what
  // it writes to its standard error is in the log. An input that is damaged in
  // a way that nvJitLink may survive is linked too; it is BAD_DATA where the
  // linker fails, or where the result lacks a name that the inputs define. Such
  // a result is not cached, and a line of the log (WARNING) says so. Default:
  // in this process, where every damage is BAD_DATA before the link.
  // UNSUPPORTED where the driver is to link.
  uint32_t isolated;

  // How long it may take; then it is ended. Default: 600.
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

// The options that a backend gets, as text. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_link_settings_t kiln_link_settings_t;

// What `options` become for `backend`, NVJITLINK or DRIVER. Pure: links
// nothing and needs neither. `options` may be NULL.
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

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_link_settings_retain(kiln_link_settings_t* settings);
KILN_API void kiln_link_settings_release(kiln_link_settings_t* settings);

// Each option as its backend is told: "-arch=sm_90" to nvJitLink,
// "CU_JIT_TARGET=90" to the driver (besides those of its log buffers).
// Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_link_settings_count(const kiln_link_settings_t* settings);
KILN_API const char* kiln_link_settings_option(
    const kiln_link_settings_t* settings, uint32_t index);

// The options that were set and do nothing in this backend, one sentence each.
// Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_link_settings_warning_count(const kiln_link_settings_t* settings);
KILN_API const char* kiln_link_settings_warning(
    const kiln_link_settings_t* settings, uint32_t index);

// ---- Linking ----

// What there is to link with. thread-safe
//
// Every nvJitLink of this machine, and with a device its driver.
// Reference-counted; made by kiln_runtime_open_linker. Copies are looked for
// when the first link needs them, and of those only the chosen ones are loaded.
// What was found is remembered, and that there is none is logged once.
typedef struct kiln_linker_t kiln_linker_t;

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_linker_retain(kiln_linker_t* linker);
KILN_API void kiln_linker_release(kiln_linker_t* linker);

// The nvJitLinks that were found, in the order of preference; looks for them
// if nobody has. 12090 is 12.9, KILN_LINK_NVJITLINK_UNKNOWN one that does not
// tell. `*out_path` is borrowed. NOT_FOUND for an index out of range; errors as
// of kiln_locate_find_all. `out_line` and `out_path` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_linker_nvjitlink_count(kiln_linker_t* linker, uint32_t* out_count);
KILN_API KILN_MUST_USE kiln_status_t
kiln_linker_nvjitlink(kiln_linker_t* linker, uint32_t index, uint32_t* out_line,
                      const char** out_path);

// The driver that will load what is linked. OUT_OF_MEMORY, INVALID_STATE. Its
// strings are NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_linker_driver(kiln_linker_t* linker, kiln_compat_driver_t* out_driver);

// One link: inputs in their order, then one result. thread-compatible
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

// Begins a link. `options` may be NULL. Errors of options that do not depend
// on the backend come here: INVALID_ARGUMENT, LIMIT_EXCEEDED. The caller owns
// `*out_link`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_create(kiln_linker_t* linker, const kiln_link_options_t* options,
                 kiln_link_t** out_link);

// One reference more, one less. The last one closes. NULL is accepted.
// Since 0.1.
KILN_API void kiln_link_retain(kiln_link_t* link);
KILN_API void kiln_link_release(kiln_link_t* link);

// Adds an input behind those there are: PTX, a cubin (relocatable or not), a
// fatbin, an object file, an archive of object files or LTO-IR. `code` is
// retained; bytes are copied; a file is read at once. `format` is
// KILN_CODE_FORMAT_*; 0: seen from the bytes. `name` is for messages and may be
// NULL.
//
//   INVALID_ARGUMENT  a format that no linker takes, no bytes
//   BAD_DATA          the format is not to be seen from the bytes
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

// Says who would link what there is, without linking or loading anything.
// OK also where that is a refusal, as kiln_link_choose. Code that is newer than
// the driver which the software device is like does not keep it from linking,
// or nvJitLink from linking for it: it reads PTX 6.0 to 9.x. The caller owns
// `*out_choice`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_explain(kiln_link_t* link, kiln_link_choice_t** out_choice);

// The options that the backend gets; decides who links first. The caller owns
// `*out_settings`. Errors as of kiln_link_choice_status and
// kiln_link_settings_create; INVALID_ARGUMENT for an option that changes
// nothing in this link. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_link_settings(kiln_link_t* link, kiln_link_settings_t** out_settings);

// Links. Once: afterwards the link only holds its logs and the choice.
//
//   LINK_FAILED       a name that is not defined, code that cannot be read...:
//                     the message is the log's first error, also where the
//                     linker reports success; a name that two inputs define
//                     (but not a function of LTO-IR that was inlined wherever
//                     it was called: its name is not in the result);
//                     a function that one input declares or defines with
//                     parameters or a result of other sizes than another (not
//                     of LTO-IR, whose types nobody can read);
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
//   NOT_FOUND         a kernel or a variable that is said to be used, and no
//                     input has
//   NOT_FOUND, IO_ERROR  `isolated`, and its program cannot be started
//   DRIVER_ERROR, LIMIT_EXCEEDED, OUT_OF_MEMORY
//
// With a cache the result is looked up by everything that can change it: who
// links, by its build, what that one is told, and the inputs. On a hit nothing
// is linked, no nvJitLink is loaded, and the logs are those of then.
//
// The caller owns `*out_code`; it holds the lowered names of its inputs.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_finish(kiln_link_t* link,
                                                      kiln_code_t** out_code);

// Links once for kiln_link_finish of another process, with `isolated`, which
// started this one: `descriptor` is its end of a socket. What ends this process
// meanwhile is seen there. IO_ERROR where the other process is gone or asks for
// nothing; a link that fails is OK. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_link_serve(int descriptor);

// Who linked, and what that one ignored; NULL before kiln_link_finish, and
// where it did not come so far. Borrowed. Since 0.1.
KILN_API const kiln_link_choice_t* kiln_link_chosen(const kiln_link_t* link);
KILN_API const kiln_link_settings_t* kiln_link_used(const kiln_link_t* link);

// A log as it stands, KILN_LINK_LOG_*: whole, "" before there is one. From any
// thread, before, during and after linking, also after kiln_link_close; what
// was returned once stays as it was until the link is released. Borrowed.
// Since 0.1.
KILN_API const char* kiln_link_log(kiln_link_t* link, uint32_t which);

// What the cache had to do with it.
enum {
  KILN_LINK_CACHE_NONE = 0,         // there was none
  KILN_LINK_CACHE_HIT = 1,          // it was there; nothing was linked
  KILN_LINK_CACHE_MISS = 2,         // it was linked, and kept
  KILN_LINK_CACHE_UNCACHEABLE = 3,  // it was linked, and not kept
};
// KILN_LINK_CACHE_*, and why: "memory", "disk", "it was not there"; "" where
// there was no cache. Static. Since 0.1.
KILN_API uint32_t kiln_link_cache(const kiln_link_t* link);
KILN_API const char* kiln_link_cache_reason(const kiln_link_t* link);

// Lets go of the inputs and of the linker; logs and choice stay. Since 0.1.
KILN_API void kiln_link_close(kiln_link_t* link);

KILN_EXTERN_C_END

#endif  // KILN_LINK_H_
