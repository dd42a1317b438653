// SPDX-License-Identifier: Apache-2.0
//
// toolkit: what the files of this module share; private to it.
//
// Two locks. `lock` guards what is cached and is held briefly. `load_lock` is
// held while libraries are opened, so that each is opened once; it is taken
// first. Neither is held when the caller's log is written.
#ifndef KILN_SRC_TOOLKIT_TOOLKIT_INSIDE_H_
#define KILN_SRC_TOOLKIT_TOOLKIT_INSIDE_H_

#include <stdatomic.h>

#include "base/dynlib.h"
#include "base/host.h"
#include "base/str.h"
#include "base/thread.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "locate/locate_facts.h"

enum {
  KILNI_TOOLKIT_MAX_ITEMS = KILN_COMPAT_MAX_FACTS,
  KILNI_TOOLKIT_MAX_USES = KILN_COMPAT_MAX_USES,
  KILNI_TOOLKIT_MAX_EVIDENCE = 64,  // sources for the release of one component
  KILNI_TOOLKIT_MAX_STEPS = 256,    // libraries that one load opens
  KILNI_TOOLKIT_MAX_DEPTH = 32,     // of what a library needs of others
  KILNI_TOOLKIT_MAX_LIBRARIES = 4096,
  KILNI_TOOLKIT_TEXT_BYTES = 1 << 20,  // texts of one component, of one load
  KILNI_TOOLKIT_RELEASE_BYTES = 64,
};

// An array that grows. one-thread
typedef struct kilni_toolkit_list_t {
  void* items;
  size_t count;
  size_t capacity;
} kilni_toolkit_list_t;

// Appends a copy of `item`, `size` bytes.
kiln_status_t kilni_toolkit_append(kiln_allocator_t allocator,
                                   kilni_toolkit_list_t* list, size_t limit,
                                   const void* item, size_t size);
void kilni_toolkit_list_deinit(kiln_allocator_t allocator,
                               kilni_toolkit_list_t* list, size_t size);

// What is known of the driver. one-thread
typedef struct kilni_toolkit_driver_t {
  bool asked;
  kiln_compat_driver_t said;
  char* evidence;
  char release[KILNI_TOOLKIT_RELEASE_BYTES];
} kilni_toolkit_driver_t;

struct kiln_toolkit_t {
  kiln_host_t host;
  kilni_base_env_t env;
  atomic_uint references;
  kiln_compat_policy_t policy;
  uint32_t depth;  // KILNI_LOCATE_FACTS_*: of the first look
  bool driver_given;
  bool has_lock;
  bool has_load_lock;
  char* ctk_version;
  char* cuda_library;
  char* system_root;
  kiln_locate_t* locate;
  kilni_toolkit_list_t variables;       // kiln_toolkit_variable_t
  kilni_toolkit_list_t variable_names;  // char*: of members of families
  kilni_base_mutex_t lock;
  kilni_base_mutex_t load_lock;

  // Under `lock`.
  kilni_locate_reader_t* reader;
  kilni_toolkit_driver_t given;
  kilni_toolkit_driver_t driver;
  kilni_toolkit_list_t items;  // kiln_toolkit_item_t*: in use
  kilni_toolkit_list_t uses;   // kiln_compat_use_t, names of the catalog
  // Under `load_lock`.
  kilni_toolkit_list_t libraries;  // kiln_toolkit_library_t*
};

struct kiln_toolkit_item_t {
  kiln_allocator_t allocator;
  atomic_uint references;
  kiln_locate_item_t* located;
  kilni_locate_reader_t* reader;      // keeps the facts
  const kilni_locate_facts_t* facts;  // NULL where nothing was found
  kilni_base_str_t texts;             // of the evidence
  uint32_t evidence_count;
  uint32_t tag_count;
  const char** tags;
  const char* release;
  const char* release_source;
  const char* release_evidence;
  kiln_compat_evidence_t* evidence;  // as many as `evidence_count`; or NULL
  kiln_compat_conclusion_t conclusion;
  kiln_compat_need_t need;
  kiln_compat_fact_t fact;
};

struct kiln_toolkit_library_t {
  kiln_allocator_t allocator;
  kiln_toolkit_item_t* item;
  kilni_base_dynlib_t* library;
  char* path;
  bool was_loaded;
  bool stale;                   // of before a refresh
  kilni_toolkit_list_t users;   // char*
  kilni_toolkit_list_t before;  // char*
};

// ---- Variables (toolkit_variables.c) ----

// Lists those that count. Values are borrowed from the snapshot.
kiln_status_t kilni_toolkit_variables_list(kiln_toolkit_t* toolkit);
void kilni_toolkit_variables_deinit(kiln_toolkit_t* toolkit);

// ---- Items (toolkit_item.c) ----

// What the loaded library reported of itself. thread-compatible
typedef struct kilni_toolkit_call_t {
  const char* name;  // of the function; NULL: none was asked
  uint32_t line;
  uint32_t nvvm_ir;  // of libNVVM, 1000 * major + minor; 0: not asked
} kilni_toolkit_call_t;

// An item with its evidence. `call` may be NULL.
kiln_status_t kilni_toolkit_item_make(kiln_toolkit_t* toolkit,
                                      kiln_locate_item_t* located,
                                      const kilni_toolkit_call_t* call,
                                      kiln_toolkit_item_t** out_item);
// Does that for a component that is only examined: with `verify` and the mode
// off, only enough to determine its release.
kiln_status_t kilni_toolkit_item_look(kiln_toolkit_t* toolkit,
                                      kiln_locate_item_t* located,
                                      kiln_toolkit_item_t** out_item);
// True if both are the same file.
bool kilni_toolkit_item_same(const kiln_toolkit_item_t* a,
                             const kiln_toolkit_item_t* b);

// ---- Checks (toolkit_check.c) ----

// How a check is made. thread-compatible
typedef struct kilni_toolkit_question_t {
  kiln_toolkit_item_t* const* items;
  size_t item_count;
  const kiln_compat_use_t* const* uses;
  size_t use_count;
  // 1 + the index of the item that is new; 0: all are.
  size_t subject;
  bool ask_driver;
} kilni_toolkit_question_t;

// Checks `items`, all new, against what is in use and each other. In mode
// `warn` what is found is added to `notes`, one line each, and the check
// passes. Under `lock`. `is_load`: the driver is asked in any mode.
kiln_status_t kilni_toolkit_admit(kiln_toolkit_t* toolkit,
                                  kiln_toolkit_item_t* const* items,
                                  size_t count, bool is_load,
                                  kilni_base_str_t* notes);
// Remembers an item as in use, instead of the one that is the same file.
// Under `lock`.
kiln_status_t kilni_toolkit_remember(kiln_toolkit_t* toolkit,
                                     kiln_toolkit_item_t* item);
// Writes the lines of `notes` to the log, as warnings. Under no lock.
void kilni_toolkit_tell(kiln_toolkit_t* toolkit, kilni_base_str_t* notes);

// ---- Driver (toolkit_driver.c) ----

// Asks the driver unless that has been done. Under `lock`.
kiln_status_t kilni_toolkit_driver_ask(kiln_toolkit_t* toolkit);
kiln_status_t kilni_toolkit_driver_copy(kiln_allocator_t allocator,
                                        const kiln_compat_driver_t* from,
                                        kilni_toolkit_driver_t* to);
void kilni_toolkit_driver_deinit(kiln_allocator_t allocator,
                                 kilni_toolkit_driver_t* driver);

// ---- Plans (toolkit_plan.c) ----

enum { KILNI_TOOLKIT_NEED_WORDS = (KILNI_TOOLKIT_MAX_STEPS + 63) / 64 };

// One library that a load opens. one-thread
typedef struct kilni_toolkit_step_t {
  kiln_toolkit_item_t* item;  // NULL: only a file, a sibling
  char* path;                 // that is opened
  uint32_t flags;             // KILNI_DYNLIB_*
  bool retry_librt;
  // Which steps before it are there for its sake: one bit for each.
  uint64_t needs[KILNI_TOOLKIT_NEED_WORDS];
} kilni_toolkit_step_t;

// The order in which a library and all that it needs is opened. one-thread
typedef struct kilni_toolkit_plan_t {
  kiln_toolkit_t* toolkit;
  kilni_toolkit_step_t steps[KILNI_TOOLKIT_MAX_STEPS];
  size_t count;
  // The chain of items whose needs are being planned, outermost first;
  // borrowed.
  kiln_toolkit_item_t* open[KILNI_TOOLKIT_MAX_DEPTH];
  // What each of them was found to need so far.
  uint64_t open_needs[KILNI_TOOLKIT_MAX_DEPTH][KILNI_TOOLKIT_NEED_WORDS];
  size_t depth;
} kilni_toolkit_plan_t;

// Plans without opening anything; the last step is the library itself.
kiln_status_t kilni_toolkit_plan_make(kiln_toolkit_t* toolkit,
                                      kiln_toolkit_item_t* item,
                                      kilni_toolkit_plan_t* plan);
void kilni_toolkit_plan_deinit(kilni_toolkit_plan_t* plan);
// True if the step number `at` needs the step number `before`, directly or
// through others.
bool kilni_toolkit_plan_needs(const kilni_toolkit_plan_t* plan, size_t at,
                              size_t before);

// ---- Libraries (toolkit_library.c) ----

void kilni_toolkit_library_destroy(kiln_toolkit_library_t* library);

#endif  // KILN_SRC_TOOLKIT_TOOLKIT_INSIDE_H_
