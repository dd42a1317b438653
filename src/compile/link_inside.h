// SPDX-License-Identifier: Apache-2.0
//
// compile: what the files about linking share; private to the module.
#ifndef KILN_SRC_COMPILE_LINK_INSIDE_H_
#define KILN_SRC_COMPILE_LINK_INSIDE_H_

#include <stdatomic.h>

#include "base/keep.h"
#include "compile/link_backend.h"
#include "kiln/image.h"
#include "table/nvjitlink_table.h"

// ---- Options ----

// Options with everything that they point to. one-thread
typedef struct kilni_compile_link_options_copy_t {
  kiln_link_options_t options;
  kiln_allocator_t allocator;
  struct kilni_compile_link_block_t* blocks;
  size_t block_count;
  size_t block_capacity;
  kiln_cache_t* cache;  // retained; NULL: none
} kilni_compile_link_options_copy_t;

// Reads, checks and copies; `given` may be NULL. What depends on the backend
// is not checked. On failure nothing is left to free.
kiln_status_t kilni_compile_link_options_copy(
    const kiln_link_options_t* given, kiln_allocator_t allocator,
    kilni_compile_link_options_copy_t* out_copy);
void kilni_compile_link_options_free(kilni_compile_link_options_copy_t* copy);

// ---- Settings ----

struct kiln_link_settings_t {
  atomic_uint references;
  kiln_allocator_t allocator;
  kilni_compile_link_setting_t* items;
  size_t count;
  size_t capacity;
  char** texts;  // of `items`, in the same order
  size_t text_capacity;
  char** warnings;
  size_t warning_count;
  size_t warning_capacity;
};

// What options become. thread-compatible
typedef struct kilni_compile_link_aim_t {
  uint32_t backend;
  uint32_t output;
  bool lto;
  const char* arch;  // where the options name none; NULL: not known
} kilni_compile_link_aim_t;

// `options` were checked.
kiln_status_t kilni_compile_link_settings_make(
    const kiln_link_options_t* options, const kilni_compile_link_aim_t* aim,
    kiln_allocator_t allocator, kiln_link_settings_t** out_settings);

// A note about them, for the user.
kiln_status_t kilni_compile_link_settings_warn(kiln_link_settings_t* settings,
                                               const char* format, ...)
    KILN_PRINTF(2, 3);

// ---- Images ----

// The image of some code. NULL where it cannot be read: linkers report that of
// inputs, and an output may be for a newer Kiln. Only OUT_OF_MEMORY.
kiln_status_t kilni_compile_link_read_image(const kiln_code_t* code,
                                            kiln_allocator_t allocator,
                                            kiln_image_t** out_image);

// ---- Backends ----

// nvJitLink over a table. thread-safe
typedef struct kilni_compile_link_nvjitlink_t {
  const kiln_host_t* host;
  kiln_nvjitlink_table_t table;
} kilni_compile_link_nvjitlink_t;

// `*out_backend` points into `self`, which outlives it.
void kilni_compile_link_nvjitlink_backend(
    kilni_compile_link_nvjitlink_t* self,
    kilni_compile_link_backend_t* out_backend);

// nvJitLink in a process of its own. one-thread
typedef struct kilni_compile_link_child_t {
  const kiln_host_t* host;
  const kilni_compile_link_nvjitlink_t* native;  // whose file the process opens
  const char* program;                           // that serves; NULL: beside us
  uint32_t seconds;                              // that it may take
  uint32_t reserved;
} kilni_compile_link_child_t;

// Makes a backend of nvJitLink one that links elsewhere; `self` outlives it.
void kilni_compile_link_child_backend(
    kilni_compile_link_child_t* self,
    kilni_compile_link_backend_t* inout_backend);

// ---- Inputs ----

// What is given to a link. one-thread
typedef struct kilni_compile_link_given_t {
  kiln_allocator_t allocator;
  kiln_code_t* const* inputs;
  size_t count;
  const char* arch;  // that is linked for; NULL or "": not known
  uint32_t backend;  // KILN_LINK_BACKEND_*
  bool lto;
  bool may_crash;  // the linker: it makes a cubin in its own process
  const kiln_link_options_t* options;
} kilni_compile_link_given_t;

// The number in "sm_90a"; 0: there is none.
uint32_t kilni_compile_link_arch_number(const char* arch);

// INVALID_ARGUMENT for an option that changes nothing in this link; where it
// reaches a part of the inputs, or the result is right without it, `settings`
// get a note. OUT_OF_MEMORY.
kiln_status_t kilni_compile_link_check_effect(
    const kilni_compile_link_given_t* given, uint32_t output,
    kiln_link_settings_t* settings);

// The names that the inputs define. one-thread
typedef struct kilni_compile_link_names_t kilni_compile_link_names_t;

// Checks the inputs before a linker reads them:
//
//   BAD_DATA          none has device code; one is damaged, or an object
//                     without device code; damage that a linker in a process of
//                     its own may survive is only a problem to report
//   INCOMPATIBLE      code for other architectures alone
//   LINK_FAILED       a name that two define; one that would be left out
//   INVALID_ARGUMENT  link-time optimisation of what is no LTO-IR
//   LIMIT_EXCEEDED, OUT_OF_MEMORY
//
// The caller frees `*out_names`; NULL is accepted there.
kiln_status_t kilni_compile_link_check_given(
    const kilni_compile_link_given_t* given,
    kilni_compile_link_names_t** out_names);
void kilni_compile_link_names_free(kilni_compile_link_names_t* names);

// What is doubted of the inputs; NULL: nothing. Borrowed.
const char* kilni_compile_link_doubt(const kilni_compile_link_names_t* names);

// A link that failed: because of the reported problem, if there is one. Takes
// `failed`.
kiln_status_t kilni_compile_link_doubt_settle(kilni_compile_link_names_t* names,
                                              kiln_status_t failed);

// Of doubted inputs, whether what came out is whole and has all their names:
// LINK_FAILED, BAD_DATA.
kiln_status_t kilni_compile_link_check_expected(
    const kilni_compile_link_names_t* names, const kiln_code_t* linked);

// LINK_FAILED where LTO-IR defines a function that another input defines for
// all. Link-time optimisation makes its functions its own, so that each side
// calls the one that it brought; what it inlined everywhere leaves no trace.
kiln_status_t kilni_compile_link_check_lto_names(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names, const kiln_code_t* linked);

// LINK_FAILED where a kernel of an input is not in what came out.
kiln_status_t kilni_compile_link_check_kernels(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names, const kiln_image_t* linked);
kiln_status_t kilni_compile_link_lost(const kilni_compile_link_given_t* given,
                                      const kiln_code_t* input,
                                      const char* kernel);

// BAD_DATA for machine code by itself that cannot be read to its end; OK for
// anything else.
kiln_status_t kilni_compile_link_input_damage(const kiln_code_t* input);

// Both for what came out: linkers leave out, without a word, what was linked
// before, and code for other devices.
kiln_status_t kilni_compile_link_check_kept(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names, const kiln_code_t* linked);

// ---- Names that are used ----

// A name of the options that is not in what came out. thread-compatible
typedef struct kilni_compile_link_missing_t {
  const char* name;  // borrowed from the options; NULL: all are there
  bool is_variable;
} kilni_compile_link_missing_t;

// The first of the names that `options` declares as used. UNSUPPORTED: the
// result is LTO-IR, whose names cannot be read.
kiln_status_t kilni_compile_link_find_missing(
    const kiln_link_options_t* options, const kiln_code_t* linked,
    kiln_allocator_t allocator, kilni_compile_link_missing_t* out_missing);

// The error for it: NOT_FOUND, LINK_FAILED. `all` is what the same link makes
// without such names; NULL: nothing.
kiln_status_t kilni_compile_link_missing_status(
    const kilni_compile_link_missing_t* missing, const kiln_code_t* all,
    kiln_allocator_t allocator);

// ---- The linker ----

const kiln_host_t* kilni_compile_linker_host(const kiln_linker_t* linker);
kilni_base_keep_t kilni_compile_linker_keep(const kiln_linker_t* linker);
const char* kilni_compile_linker_arch(const kiln_linker_t* linker);

// Chooses among what there is; the fields of `facts` about that are filled in.
kiln_status_t kilni_compile_linker_choose(kiln_linker_t* linker,
                                          kiln_link_facts_t* facts,
                                          kiln_link_choice_t** out_choice);

// What was chosen, ready to link; a copy of nvJitLink is loaded, which may
// show that it is another version than it seemed, or does not work: then
// `*out_again` is true and the choice is to be made anew.
kiln_status_t kilni_compile_linker_backend(
    kiln_linker_t* linker, const kiln_link_choice_t* choice, bool* out_again,
    kilni_compile_link_backend_t* out_backend);

// Which build of what was chosen will link, wherever it is, "" where that
// is not known; and its line. Loads nothing. Borrowed from the linker.
kiln_status_t kilni_compile_linker_identity(kiln_linker_t* linker,
                                            const kiln_link_choice_t* choice,
                                            const char** out_identity,
                                            uint32_t* out_line);

// Adds what was learnt of copies that do not work to a refusal.
kiln_status_t kilni_compile_linker_annotate(kiln_linker_t* linker,
                                            kiln_status_t status);
#ifdef __clang_analyzer__
#define kilni_compile_linker_annotate(linker, status) \
  kilni_analyzed_same(status, kilni_compile_linker_annotate(linker, given_))
#endif

// ---- The cache ----

// A link as a cache has it. one-thread
typedef struct kilni_compile_link_product_t {
  kiln_bytes_view_t bytes;
  kiln_string_view_t info;   // the logs; each ends with a NUL
  kiln_string_view_t error;  //
  uint32_t format;
  uint32_t line;  // of what linked
} kilni_compile_link_product_t;

// A link that is to be looked up. one-thread
typedef struct kilni_compile_link_lookup_t {
  kiln_allocator_t allocator;
  const kiln_link_options_t* options;  // with a cache
  const char* identity;                // of the linker
  uint32_t line;
  uint32_t output;
  const kiln_link_settings_t* settings;  // its options
  kiln_code_t* const* inputs;
  size_t input_count;

  // Links where nothing was there. `*out_keep` false: the result is not what
  // was looked up, and is not kept. What is borrowed lives until the lookup
  // returns.
  kiln_status_t (*link)(void* user, kilni_compile_link_product_t* out_product,
                        bool* out_keep);
  // Takes what was there. Borrowed during the call.
  kiln_status_t (*take)(void* user,
                        const kilni_compile_link_product_t* product);
  void* user;
} kilni_compile_link_lookup_t;

// Why such a link is not looked up; NULL: it is.
const char* kilni_compile_link_uncacheable(
    const kilni_compile_link_lookup_t* lookup);

// Calls `link` or `take`; `*out_from` is KILN_CACHE_FROM_*.
kiln_status_t kilni_compile_link_look_up(
    const kilni_compile_link_lookup_t* lookup, uint32_t* out_from);

#endif  // KILN_SRC_COMPILE_LINK_INSIDE_H_
