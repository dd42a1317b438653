// SPDX-License-Identifier: Apache-2.0
//
// toolkit: libraries: loaded once, in order, after the check.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"
#include "toolkit/toolkit_inside.h"

// ---- Whether it is loaded already ----

// Objects of the process that have to do with a library. one-thread
typedef struct census_t {
  kiln_allocator_t allocator;
  const char* soname;
  kilni_toolkit_list_t copies;  // char*: mapped under its name
  kilni_toolkit_list_t users;   // char*: linked with it
  kiln_status_t status;
} census_t;

static void texts_deinit(kiln_allocator_t allocator,
                         kilni_toolkit_list_t* list) {
  char** texts = list->items;
  for (size_t i = 0; i < list->count; i++) {
    kilni_base_strfree(allocator, texts[i]);
  }
  kilni_toolkit_list_deinit(allocator, list, sizeof(*texts));
}

static kiln_status_t library_add_text(kiln_allocator_t allocator,
                                      kilni_toolkit_list_t* list,
                                      const char* text) {
  char* copy = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(allocator, kilni_base_sv(text), &copy));
  kiln_status_t status = kilni_toolkit_append(
      allocator, list, KILNI_TOOLKIT_MAX_LIBRARIES, &copy, sizeof(copy));
  if (!kiln_status_is_ok(status)) kilni_base_strfree(allocator, copy);
  return status;
}

static bool needs_it(const kilni_base_dynlib_mapped_t* mapped,
                     const char* soname) {
  const char* need = NULL;
  for (uint32_t i = 0;
       (need = kilni_base_dynlib_mapped_need(mapped, i)) != NULL; i++) {
    if (strcmp(need, soname) == 0) return true;
  }
  return false;
}

static bool library_on_object(const kilni_base_dynlib_mapped_t* mapped,
                              void* user) {
  census_t* census = user;
  if (strcmp(mapped->soname, census->soname) == 0) {
    census->status =
        library_add_text(census->allocator, &census->copies, mapped->path);
  } else if (needs_it(mapped, census->soname)) {
    census->status =
        library_add_text(census->allocator, &census->users, mapped->path);
  }
  return kiln_status_is_ok(census->status);
}

// True in `*out_same` if the path leads to the library's own file.
static kiln_status_t library_is_own(kiln_allocator_t allocator,
                                    const char* path, const char* real,
                                    bool* out_same) {
  *out_same = strcmp(path, real) == 0;
  if (*out_same) return kiln_ok();
  char* resolved = NULL;
  kiln_status_t status = kilni_base_path_real(allocator, path, &resolved);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  if (resolved == NULL) return kiln_ok();
  *out_same = strcmp(resolved, real) == 0;
  kilni_base_strfree(allocator, resolved);
  return kiln_ok();
}

// Finds out what has loaded the library, before it is opened.
static kiln_status_t take_census(kiln_toolkit_library_t* library,
                                 kilni_base_str_t* notes) {
  const kiln_toolkit_item_t* item = library->item;
  census_t census = {.allocator = library->allocator};
  census.soname = item->facts->soname != NULL
                      ? item->facts->soname
                      : kiln_locate_item_file_name(item->located);
  kilni_base_dynlib_each_mapped(library_on_object, &census);
  kiln_status_t status = census.status;
  char** copies = census.copies.items;
  for (size_t i = 0; kiln_status_is_ok(status) && i < census.copies.count;
       i++) {
    bool same = false;
    status = library_is_own(library->allocator, copies[i],
                            kiln_locate_item_real_path(item->located), &same);
    if (same) library->was_loaded = true;
    if (!same && kiln_status_is_ok(status)) {
      kilni_base_str_addf(
          notes,
          "\"%s\" is loaded beside \"%s\", which other code has loaded into "
          "this process: two copies of one library\n",
          kiln_locate_item_path(item->located), copies[i]);
    }
  }
  texts_deinit(library->allocator, &census.copies);
  if (library->was_loaded && kiln_status_is_ok(status)) {
    library->users = census.users;
    return kiln_ok();
  }
  texts_deinit(library->allocator, &census.users);
  return status;
}

// ---- Opening ----

// A failure of old systems has a workaround: the library needs shm_open without
// naming its library.
static kiln_status_t open_step(kiln_allocator_t allocator,
                               const kilni_toolkit_step_t* step,
                               kilni_base_dynlib_t** out_library) {
  kiln_status_t status = kilni_base_dynlib_open_with(allocator, step->path,
                                                     step->flags, out_library);
  if (kiln_status_is_ok(status) || !step->retry_librt ||
      strstr(kiln_status_message(status), "shm_open") == NULL) {
    return status;
  }
  kilni_base_dynlib_t* librt = NULL;
  kiln_status_t helped = kilni_base_dynlib_open_with(
      allocator, "librt.so.1", KILNI_DYNLIB_GLOBAL, &librt);
  bool there = kiln_status_is_ok(helped);
  kiln_status_free(helped);
  if (!there) return status;
  kilni_base_dynlib_close(librt);  // it stays mapped
  kilni_base_dynlib_t* again = NULL;
  helped =
      kilni_base_dynlib_open_with(allocator, step->path, step->flags, &again);
  if (!kiln_status_is_ok(helped)) {
    kiln_status_free(helped);
    return status;
  }
  kiln_status_free(status);
  *out_library = again;
  return kiln_ok();
}

// ---- What the library reports of itself ----

// How a library is asked for its line. thread-safe
typedef struct version_call_t {
  const char* name;      // in the catalog
  const char* function;  // exported
  bool is_pair;          // (int* major, int* minor); else (int* 13000)
} version_call_t;

// Only calls that start nothing.
static const version_call_t kVersionCalls[] = {
    {"nvrtc", "nvrtcVersion", true},
    {"nvJitLink", "nvJitLinkVersion", true},
    {"nvfatbin", "nvFatbinVersion", true},
    {"cudart", "cudaRuntimeGetVersion", false},
};

typedef int (*pair_fn_t)(int* major, int* minor);
typedef int (*number_fn_t)(int* version);

typedef int (*ir_fn_t)(int* major, int* minor, int* debug_major,
                       int* debug_minor);

// The NVVM IR that a loaded libNVVM reads; 0 for other libraries.
static uint32_t ask_nvvm_ir(const kiln_toolkit_library_t* library) {
  if (strcmp(library->item->fact.name, "nvvm") != 0) return 0;
  void* symbol = kilni_base_dynlib_symbol(library->library, "nvvmIRVersion");
  if (symbol == NULL) return 0;
  int said[4] = {0, 0, 0, 0};
  ir_fn_t ask;
  memcpy(&ask, &symbol, sizeof(ask));
  if (ask(&said[0], &said[1], &said[2], &said[3]) != 0) return 0;
  bool is_one = said[0] > 0 && said[0] < 1000 && said[1] >= 0 && said[1] < 1000;
  return is_one ? (uint32_t)(said[0] * 1000 + said[1]) : 0;
}

static kilni_toolkit_call_t ask_version(const kiln_toolkit_library_t* library) {
  kilni_toolkit_call_t call = {NULL, 0, ask_nvvm_ir(library)};
  for (size_t i = 0; i < sizeof(kVersionCalls) / sizeof(kVersionCalls[0]);
       i++) {
    const version_call_t* row = &kVersionCalls[i];
    if (strcmp(row->name, library->item->fact.name) != 0) continue;
    void* symbol = kilni_base_dynlib_symbol(library->library, row->function);
    if (symbol == NULL) break;
    int major = 0;
    int minor = 0;
    pair_fn_t pair;
    number_fn_t number;
    memcpy(&pair, &symbol, sizeof(pair));
    memcpy(&number, &symbol, sizeof(number));
    int result = row->is_pair ? pair(&major, &minor) : number(&major);
    if (result != 0 || major <= 0 || minor < 0 || minor > 99) break;
    call.name = row->function;
    call.line = row->is_pair
                    ? kiln_compat_line_make((uint32_t)major, (uint32_t)minor)
                    : (uint32_t)major / 10 * 10;
  }
  return call;
}

static kiln_status_t hear(kiln_toolkit_t* toolkit,
                          kiln_toolkit_library_t* library,
                          kilni_base_str_t* notes) {
  kilni_toolkit_call_t call = ask_version(library);
  if (call.name == NULL && call.nvvm_ir == 0) return kiln_ok();
  uint32_t thought = library->item->conclusion.line;
  kiln_toolkit_item_t* item = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_toolkit_item_make(toolkit, library->item->located, &call, &item));
  kiln_toolkit_item_release(library->item);
  library->item = item;
  if (call.name == NULL || thought == 0 || thought == call.line) {
    return kiln_ok();
  }
  kilni_base_str_addf(
      notes,
      "\"%s\" reports through %s that it is %u.%u, its file states %u.%u\n",
      library->path, call.name, (unsigned)kiln_compat_line_major(call.line),
      (unsigned)kiln_compat_line_minor(call.line),
      (unsigned)kiln_compat_line_major(thought),
      (unsigned)kiln_compat_line_minor(thought));
  return kiln_ok();
}

// ---- Records ----

void kilni_toolkit_library_destroy(kiln_toolkit_library_t* library) {
  if (library == NULL) return;
  kilni_base_dynlib_close(library->library);  // the code stays mapped
  kiln_toolkit_item_release(library->item);
  kilni_base_strfree(library->allocator, library->path);
  texts_deinit(library->allocator, &library->users);
  texts_deinit(library->allocator, &library->before);
  kilni_base_free(library->allocator, library, sizeof(*library));
}

static kiln_toolkit_library_t* known(const kiln_toolkit_t* toolkit,
                                     const kiln_locate_item_t* located) {
  kiln_toolkit_library_t** libraries = toolkit->libraries.items;
  for (size_t i = 0; i < toolkit->libraries.count; i++) {
    const kiln_locate_item_t* own = libraries[i]->item->located;
    if (!libraries[i]->stale &&
        kiln_locate_item_entry(own) == kiln_locate_item_entry(located) &&
        strcmp(kiln_locate_item_real_path(own),
               kiln_locate_item_real_path(located)) == 0) {
      return libraries[i];
    }
  }
  return NULL;
}

static kiln_status_t library_path_of(kiln_toolkit_library_t* library,
                                     const char* wanted) {
  const char* taken = kilni_base_dynlib_path(library->library);
  if (taken[0] != '/') taken = wanted;
  return kilni_base_strdup(library->allocator, kilni_base_sv(taken),
                           &library->path);
}

// Opens the step number `at` of a plan into `library`.
static kiln_status_t library_fill(kiln_toolkit_t* toolkit,
                                  kilni_toolkit_plan_t* plan, size_t at,
                                  kiln_toolkit_library_t* library,
                                  kilni_base_str_t* notes) {
  const kilni_toolkit_step_t* step = &plan->steps[at];
  KILNI_RETURN_IF_ERROR(take_census(library, notes));
  for (size_t i = 0; i < at; i++) {
    if (!kilni_toolkit_plan_needs(plan, at, i)) continue;
    KILNI_RETURN_IF_ERROR(library_add_text(library->allocator, &library->before,
                                           plan->steps[i].path));
  }
  KILNI_RETURN_IF_ERROR(open_step(library->allocator, step, &library->library));
  KILNI_RETURN_IF_ERROR(library_path_of(library, step->path));
  KILNI_RETURN_IF_ERROR(hear(toolkit, library, notes));
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status = kiln_ok();
  if (toolkit->policy.mode != KILN_COMPAT_MODE_OFF) {
    status = kilni_toolkit_remember(toolkit, library->item);
  }
  kilni_base_mutex_unlock(&toolkit->lock);
  return status;
}

static kiln_status_t toolkit_library_open_library(kiln_toolkit_t* toolkit,
                                                  kilni_toolkit_plan_t* plan,
                                                  size_t at,
                                                  kilni_base_str_t* notes) {
  kiln_allocator_t allocator = toolkit->host.allocator;
  if (known(toolkit, plan->steps[at].item->located) != NULL) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_toolkit_library_t), &block));
  kiln_toolkit_library_t* library = block;
  library->allocator = allocator;
  library->item = plan->steps[at].item;
  kiln_toolkit_item_retain(library->item);
  kiln_status_t status = library_fill(toolkit, plan, at, library, notes);
  if (kiln_status_is_ok(status)) {
    status = kilni_toolkit_append(allocator, &toolkit->libraries,
                                  KILNI_TOOLKIT_MAX_LIBRARIES, &library,
                                  sizeof(library));
  }
  if (!kiln_status_is_ok(status)) kilni_toolkit_library_destroy(library);
  return status;
}

static kiln_status_t open_sibling(kiln_toolkit_t* toolkit,
                                  const kilni_toolkit_step_t* step,
                                  kilni_base_str_t* notes) {
  kilni_base_dynlib_t* opened = NULL;
  kiln_status_t status = open_step(toolkit->host.allocator, step, &opened);
  kilni_base_dynlib_close(opened);  // it stays mapped
  if (kiln_status_is_ok(status) ||
      kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) {
    return status;
  }
  kilni_base_str_addf(notes, "%s\n", kiln_status_message(status));
  kiln_status_free(status);
  return kiln_ok();
}

static kiln_status_t carry_out(kiln_toolkit_t* toolkit,
                               kilni_toolkit_plan_t* plan,
                               kilni_base_str_t* notes) {
  for (size_t i = 0; i < plan->count; i++) {
    const kilni_toolkit_step_t* step = &plan->steps[i];
    KILNI_RETURN_IF_ERROR(
        step->item != NULL
            ? toolkit_library_open_library(toolkit, plan, i, notes)
            : open_sibling(toolkit, step, notes));
  }
  return kiln_ok();
}

// ---- Loading ----

// Every component of the plan, with those in use, before any is opened.
static kiln_status_t admit(kiln_toolkit_t* toolkit, kilni_toolkit_plan_t* plan,
                           kilni_base_str_t* notes) {
  kiln_toolkit_item_t* items[KILNI_TOOLKIT_MAX_STEPS];
  size_t count = 0;
  for (size_t i = 0; i < plan->count; i++) {
    if (plan->steps[i].item != NULL) items[count++] = plan->steps[i].item;
  }
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status =
      kilni_toolkit_admit(toolkit, items, count, true, notes);
  kilni_base_mutex_unlock(&toolkit->lock);
  if (kiln_status_is_ok(status)) return kiln_ok();
  return KILNI_ANNOTATE(status, "nothing was loaded");
}

static kiln_status_t load_new(kiln_toolkit_t* toolkit,
                              kiln_locate_item_t* located,
                              kilni_base_str_t* notes) {
  kiln_toolkit_item_t* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_toolkit_item_make(toolkit, located, NULL, &item));
  kilni_toolkit_plan_t plan;
  kiln_status_t status = kilni_toolkit_plan_make(toolkit, item, &plan);
  if (kiln_status_is_ok(status)) status = admit(toolkit, &plan, notes);
  if (kiln_status_is_ok(status)) status = carry_out(toolkit, &plan, notes);
  kilni_toolkit_plan_deinit(&plan);
  kiln_toolkit_item_release(item);
  return status;
}

kiln_status_t kiln_toolkit_load_located(
    kiln_toolkit_t* toolkit, kiln_locate_item_t* located,
    const kiln_toolkit_library_t** out_library) {
  KILNI_CHECK_ARGUMENT(out_library != NULL, "out_library");
  *out_library = NULL;
  KILNI_CHECK_ARGUMENT(toolkit != NULL, "toolkit");
  KILNI_CHECK_ARGUMENT(located != NULL, "located");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&toolkit->host));
  uint32_t kind = kiln_locate_entry_kind(kiln_locate_item_entry(located));
  if (kind != KILN_LOCATE_KIND_LIB) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a %s cannot be loaded",
                   kiln_locate_kind_name(kind)),
        "name an item of kind lib");
  }
  KILNI_RETURN_IF_ERROR(kiln_locate_item_require(located));
  kilni_base_str_t notes;
  kilni_base_str_init(&notes, toolkit->host.allocator,
                      KILNI_TOOLKIT_TEXT_BYTES);
  kilni_base_mutex_lock(&toolkit->load_lock);
  kiln_status_t status = kiln_ok();
  if (known(toolkit, located) == NULL) {
    status = load_new(toolkit, located, &notes);
  }
  if (kiln_status_is_ok(status)) *out_library = known(toolkit, located);
  kilni_base_mutex_unlock(&toolkit->load_lock);
  kilni_toolkit_tell(toolkit, &notes);
  kilni_base_str_deinit(&notes);
  return status;
}

kiln_status_t kiln_toolkit_load(kiln_toolkit_t* toolkit, const char* name,
                                const kiln_toolkit_library_t** out_library) {
  KILNI_CHECK_ARGUMENT(out_library != NULL, "out_library");
  *out_library = NULL;
  KILNI_CHECK_ARGUMENT(toolkit != NULL, "toolkit");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&toolkit->host));
  kiln_locate_item_t* located = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_locate_find(toolkit->locate, KILN_LOCATE_KIND_LIB, name, &located));
  kiln_status_t status =
      kiln_toolkit_load_located(toolkit, located, out_library);
  kiln_locate_item_release(located);
  return status;
}

// ---- Accessors ----

kiln_toolkit_item_t* kiln_toolkit_library_item(
    const kiln_toolkit_library_t* library) {
  return library->item;
}

const char* kiln_toolkit_library_path(const kiln_toolkit_library_t* library) {
  return library->path;
}

void* kiln_toolkit_library_handle(const kiln_toolkit_library_t* library) {
  return kilni_base_dynlib_handle(library->library);
}

void* kiln_toolkit_library_symbol(const kiln_toolkit_library_t* library,
                                  const char* name) {
  return kilni_base_dynlib_symbol(library->library, name);
}

bool kiln_toolkit_library_was_loaded(const kiln_toolkit_library_t* library) {
  return library->was_loaded;
}

static const char* library_text_at(const kilni_toolkit_list_t* list,
                                   uint32_t index) {
  char* const* texts = list->items;
  return index < list->count ? texts[index] : NULL;
}

uint32_t kiln_toolkit_library_user_count(
    const kiln_toolkit_library_t* library) {
  return (uint32_t)library->users.count;
}

const char* kiln_toolkit_library_user(const kiln_toolkit_library_t* library,
                                      uint32_t index) {
  return library_text_at(&library->users, index);
}

uint32_t kiln_toolkit_library_before_count(
    const kiln_toolkit_library_t* library) {
  return (uint32_t)library->before.count;
}

const char* kiln_toolkit_library_before(const kiln_toolkit_library_t* library,
                                        uint32_t index) {
  return library_text_at(&library->before, index);
}
