// SPDX-License-Identifier: Apache-2.0
//
// compile: what there is to link with.
//
// Copies of nvJitLink are searched for once and judged by the versions that
// their files state; the context loads the one that was chosen. One that does
// not load, or has another version, is excluded from the next choice.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/keep.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "base/str.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "compile/compile_identity.h"
#include "compile/link_choice.h"
#include "compile/link_inside.h"
#include "kiln/toolkit.h"
#include "locate/locate.h"
#include "table/nvjitlink_table.h"

// The function itself, and not the one for analyzers.
#undef kilni_compile_linker_annotate

// One nvJitLink. Under the linker's lock, but for what never changes once it
// is `opened`. one-thread
typedef struct copy_t {
  kiln_locate_item_t* located;  // NULL: the loader finds it by `path`
  char* path;
  char* trouble;   // why it does not work; NULL
  char* identity;  // which build it is, "": unknown; NULL: not asked yet
  uint32_t line;
  bool opened;
  bool traced;
  kilni_compile_link_nvjitlink_t native;
  kilni_base_dynlib_t* library;
} copy_t;

// What a search found. one-thread
typedef struct found_t {
  copy_t* copies;
  size_t capacity;
  uint32_t count;
} found_t;

struct kiln_linker_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  atomic_uint references;
  kiln_toolkit_t* toolkit;
  char* named;  // the file, or the loader's name, of the only copy; NULL
  char* arch;   // NULL: not known
  bool trace;
  bool is_soft;
  bool has_device;
  bool has_driver;
  kiln_compat_driver_t driver;
  kilni_compile_link_backend_t device;  // the driver's
  kilni_base_keep_t device_keep;
  char* device_library;     // its file; NULL: unknown
  kilni_base_mutex_t lock;  // guards what follows
  bool has_lock;
  bool searched;
  found_t found;
  char* device_identity;  // as a copy's
};

// ---- Copies ----

static void close_copy(const kiln_linker_t* linker, copy_t* copy) {
  if (copy->traced) kilni_table_nvjitlink_trace_remove(&copy->native.table);
  kilni_base_dynlib_close(copy->library);
  copy->library = NULL;
  copy->opened = false;
  copy->traced = false;
  (void)linker;
}

static void free_found(const kiln_linker_t* linker, found_t* found) {
  kiln_allocator_t allocator = linker->host->allocator;
  for (uint32_t i = 0; i < found->count; i++) {
    copy_t* copy = &found->copies[i];
    close_copy(linker, copy);
    kiln_locate_item_release(copy->located);
    kilni_base_strfree(allocator, copy->path);
    kilni_base_strfree(allocator, copy->trouble);
    kilni_base_strfree(allocator, copy->identity);
  }
  kilni_base_free_array(allocator, found->copies, found->capacity,
                        sizeof(copy_t));
  memset(found, 0, sizeof(*found));
}

static kiln_status_t link_linker_add_copy(const kiln_linker_t* linker,
                                          found_t* found, const char* path,
                                          copy_t** out_copy) {
  kiln_allocator_t allocator = linker->host->allocator;
  void* copies = found->copies;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(allocator, (size_t)found->count + 1,
                                        sizeof(copy_t), &found->capacity,
                                        &copies));
  found->copies = copies;
  copy_t* copy = &found->copies[found->count];
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(allocator, kilni_base_sv(path), &copy->path));
  copy->line = KILN_LINK_NVJITLINK_UNKNOWN;
  found->count++;
  *out_copy = copy;
  return kiln_ok();
}

// Opens a library into `copy`, which no other thread sees.
static kiln_status_t open_copy(const kiln_linker_t* linker, copy_t* copy) {
  const kiln_host_t* host = linker->host;
  const char* path = copy->path;
  if (copy->located != NULL) {
    const kiln_toolkit_library_t* library = NULL;
    KILNI_RETURN_IF_ERROR(
        kiln_toolkit_load_located(linker->toolkit, copy->located, &library));
    path = kiln_toolkit_library_path(library);
  }
  KILNI_RETURN_IF_ERROR(kilni_table_nvjitlink_table_open(
      host, path, &copy->native.table, &copy->library));
  copy->native.host = host;
  copy->opened = true;
  copy->line =
      kiln_compat_line_make(copy->native.table.major, copy->native.table.minor);
  if (!linker->trace) return kiln_ok();
  kiln_status_t status = kilni_table_nvjitlink_trace_install(
      &copy->native.table, host->log, &copy->native.table);
  copy->traced = kiln_status_is_ok(status);
  if (!copy->traced) {
    KILNI_LOG(&host->log, WARNING, "nvJitLink \"%s\" is not traced: %s", path,
              kiln_status_message(status));
    kiln_status_free(status);
  }
  return kiln_ok();
}

// ---- The search ----

static kiln_status_t take_located(const kiln_linker_t* linker, found_t* found,
                                  kiln_locate_item_t* located) {
  kiln_toolkit_item_t* item = NULL;
  copy_t* copy = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_toolkit_resolve_located(linker->toolkit, located, &item));
  kiln_status_t status = link_linker_add_copy(
      linker, found, kiln_locate_item_path(located), &copy);
  if (kiln_status_is_ok(status)) {
    uint32_t line = kiln_toolkit_item_line(item);
    copy->located = located;
    kiln_locate_item_retain(located);
    if (line != 0) copy->line = line;
  }
  kiln_toolkit_item_release(item);
  return status;
}

static kiln_status_t search_all(const kiln_linker_t* linker, found_t* found) {
  kiln_locate_set_t* set = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_locate_find_all(kiln_toolkit_locate(linker->toolkit),
                           KILN_LOCATE_KIND_LIB, "nvJitLink", &set));
  kiln_status_t status = kiln_ok();
  uint32_t count = kiln_locate_set_count(set);
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    kiln_locate_item_t* item = kiln_locate_set_item(set, i);
    if (!kiln_locate_item_found(item)) continue;
    if (found->count == KILN_LINK_MAX_NVJITLINKS) break;
    status = take_located(linker, found, item);
  }
  kiln_locate_set_release(set);
  return status;
}

// The named file, as a search that must take it finds it.
static kiln_status_t search_file(const kiln_linker_t* linker, found_t* found,
                                 const char* path) {
  const kiln_host_t* host = linker->host;
  kiln_locate_override_t only = {KILN_LOCATE_KIND_LIB, 0, "nvJitLink", path};
  kiln_locate_options_t options = kiln_locate_options_default();
  options.allocator = &host->allocator;
  options.overrides = &only;
  options.override_count = 1;
  kiln_locate_t* locate = NULL;
  kiln_locate_item_t* located = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_create(&options, host->env, &locate));
  kiln_status_t status =
      kiln_locate_find(locate, KILN_LOCATE_KIND_LIB, "nvJitLink", &located);
  if (kiln_status_is_ok(status)) status = kiln_locate_item_require(located);
  if (kiln_status_is_ok(status)) status = take_located(linker, found, located);
  kiln_locate_item_release(located);
  kiln_locate_release(locate);
  return status;
}

// A named library is binding: it is opened at once, so that it reports its
// version itself, and its error is returned.
static kiln_status_t search_named(const kiln_linker_t* linker, found_t* found) {
  const char* path = linker->named;
  char* real = NULL;
  kiln_status_t status = kiln_ok();
  copy_t* copy = NULL;
  if (strchr(path, '/') == NULL) {
    status = link_linker_add_copy(linker, found, path, &copy);
  } else {
    if (path[0] != '/') {
      status = kilni_base_path_real(linker->host->allocator, path, &real);
      path = real;
    }
    if (kiln_status_is_ok(status)) status = search_file(linker, found, path);
    kilni_base_strfree(linker->host->allocator, real);
  }
  if (!kiln_status_is_ok(status)) return status;
  return open_copy(linker, &found->copies[0]);
}

static void log_found(const kiln_linker_t* linker, const found_t* found) {
  const kiln_log_sink_t* log = &linker->host->log;
  bool usable = false;
  for (uint32_t i = 0; i < found->count; i++) {
    const copy_t* copy = &found->copies[i];
    if (copy->line >= KILN_LINK_NVJITLINK_LEAST) usable = true;
    KILNI_LOG(log, INFO, "nvJitLink %u.%u \"%s\"",
              (unsigned)kiln_compat_line_major(copy->line),
              (unsigned)kiln_compat_line_minor(copy->line), copy->path);
  }
  if (usable) return;
  KILNI_LOG(
      log, WARNING,
      "%s: only the driver links, and link-time optimisation is not available",
      found->count == 0 ? "no nvJitLink was found"
                        : "no nvJitLink of 12.3 or newer was found");
}

static kiln_status_t ensure_searched(kiln_linker_t* linker) {
  kilni_base_mutex_lock(&linker->lock);
  bool searched = linker->searched;
  kilni_base_mutex_unlock(&linker->lock);
  if (searched) return kiln_ok();
  found_t found = {0};
  kiln_status_t status = linker->named != NULL ? search_named(linker, &found)
                                               : search_all(linker, &found);
  if (kiln_status_is_ok(status)) {
    kilni_base_mutex_lock(&linker->lock);
    bool first = !linker->searched;
    if (first) {
      linker->searched = true;
      linker->found = found;
    }
    kilni_base_mutex_unlock(&linker->lock);
    if (first) {
      log_found(linker, &linker->found);
      return kiln_ok();
    }
  }
  free_found(linker, &found);
  return status;
}

// ---- The linker ----

static void link_linker_destroy(kiln_linker_t* linker) {
  kiln_allocator_t allocator = linker->host->allocator;
  kilni_base_keep_t keep = linker->keep;
  free_found(linker, &linker->found);
  kilni_base_keep_release(linker->device_keep);
  if (linker->has_lock) kilni_base_mutex_deinit(&linker->lock);
  kilni_base_strfree(allocator, linker->named);
  kilni_base_strfree(allocator, linker->arch);
  kilni_base_strfree(allocator, linker->device_library);
  kilni_base_strfree(allocator, linker->device_identity);
  kilni_base_free(allocator, linker, sizeof(*linker));
  kilni_base_keep_release(keep);
}

static kiln_status_t link_linker_fill(kiln_linker_t* linker,
                                      const kilni_compile_linker_wish_t* wish) {
  kiln_allocator_t allocator = linker->host->allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&linker->lock));
  linker->has_lock = true;
  if (wish->library != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        allocator, kilni_base_sv(wish->library), &linker->named));
  }
  if (wish->arch != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(allocator, kilni_base_sv(wish->arch), &linker->arch));
  }
  if (wish->device_library != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(allocator,
                                            kilni_base_sv(wish->device_library),
                                            &linker->device_library));
  }
  if (wish->table == NULL) return kiln_ok();
  copy_t* copy = NULL;
  linker->searched = true;
  KILNI_RETURN_IF_ERROR(
      link_linker_add_copy(linker, &linker->found, wish->table->origin, &copy));
  copy->native.host = linker->host;
  copy->native.table = *wish->table;
  copy->opened = true;
  copy->line = kiln_compat_line_make(wish->table->major, wish->table->minor);
  return kiln_ok();
}

kiln_status_t kilni_compile_linker_create(
    const kiln_host_t* host, kilni_base_keep_t keep,
    const kilni_compile_linker_wish_t* wish, kiln_linker_t** out_linker) {
  *out_linker = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(kiln_linker_t), &block));
  kiln_linker_t* linker = block;
  linker->host = host;
  linker->keep = keep;
  linker->toolkit = wish->toolkit;
  linker->trace = wish->trace;
  linker->is_soft = wish->is_soft;
  if (wish->device != NULL) {
    linker->has_device = true;
    linker->device = *wish->device;
  }
  linker->device_keep = wish->device_keep;
  kilni_base_keep_retain(linker->device_keep);
  if (wish->driver != NULL) {
    linker->has_driver = true;
    linker->driver = *wish->driver;
  }
  linker->driver.struct_size = (uint32_t)sizeof(linker->driver);
  linker->driver.release = NULL;
  linker->driver.evidence = NULL;
  kilni_base_keep_retain(keep);
  atomic_init(&linker->references, 1);
  kiln_status_t status = link_linker_fill(linker, wish);
  if (!kiln_status_is_ok(status)) {
    link_linker_destroy(linker);
    return status;
  }
  *out_linker = linker;
  return kiln_ok();
}

void kiln_linker_retain(kiln_linker_t* linker) {
  if (linker == NULL) return;
  atomic_fetch_add_explicit(&linker->references, 1, memory_order_relaxed);
}

void kiln_linker_release(kiln_linker_t* linker) {
  if (linker == NULL || kilni_base_host_is_forked(linker->host)) return;
  if (atomic_fetch_sub_explicit(&linker->references, 1, memory_order_acq_rel) ==
      1) {
    link_linker_destroy(linker);
  }
}

const kiln_host_t* kilni_compile_linker_host(const kiln_linker_t* linker) {
  return linker->host;
}

kilni_base_keep_t kilni_compile_linker_keep(const kiln_linker_t* linker) {
  return linker->keep;
}

const char* kilni_compile_linker_arch(const kiln_linker_t* linker) {
  return linker->arch;
}

kiln_status_t kiln_linker_nvjitlink_count(kiln_linker_t* linker,
                                          uint32_t* out_count) {
  KILNI_CHECK_ARGUMENT(out_count != NULL, "out_count");
  *out_count = 0;
  KILNI_CHECK_ARGUMENT(linker != NULL, "linker");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(linker->host));
  KILNI_RETURN_IF_ERROR(ensure_searched(linker));
  *out_count = linker->found.count;
  return kiln_ok();
}

kiln_status_t kiln_linker_nvjitlink(kiln_linker_t* linker, uint32_t index,
                                    uint32_t* out_line, const char** out_path) {
  uint32_t count = 0;
  if (out_line != NULL) *out_line = 0;
  if (out_path != NULL) *out_path = NULL;
  KILNI_RETURN_IF_ERROR(kiln_linker_nvjitlink_count(linker, &count));
  if (index >= count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "nvJitLink number %u does not exist",
                   (unsigned)index),
        "there are %u, counted from 0", (unsigned)count);
  }
  kilni_base_mutex_lock(&linker->lock);
  if (out_line != NULL) *out_line = linker->found.copies[index].line;
  if (out_path != NULL) *out_path = linker->found.copies[index].path;
  kilni_base_mutex_unlock(&linker->lock);
  return kiln_ok();
}

kiln_status_t kiln_linker_driver(kiln_linker_t* linker,
                                 kiln_compat_driver_t* out_driver) {
  KILNI_CHECK_ARGUMENT(out_driver != NULL, "out_driver");
  *out_driver = kiln_compat_driver_default();
  KILNI_CHECK_ARGUMENT(linker != NULL, "linker");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(linker->host));
  if (linker->has_driver) {
    *out_driver = linker->driver;
    return kiln_ok();
  }
  if (linker->has_device) {
    if (linker->device.line == 0) return kiln_ok();
    out_driver->state = KILN_COMPAT_DRIVER_KNOWN;
    out_driver->line = linker->device.line;
    return kiln_ok();
  }
  if (linker->toolkit == NULL) return kiln_ok();
  kiln_compat_driver_t driver;
  KILNI_RETURN_IF_ERROR(kiln_toolkit_driver(linker->toolkit, &driver));
  out_driver->state = driver.state;
  out_driver->line = driver.line;
  out_driver->branch = driver.branch;
  return kiln_ok();
}

// ---- Choosing ----

// The software device runs PTX and no machine code: its own linker makes what
// it loads, and nvJitLink makes PTX for it.
static void aim_at_soft(kiln_link_facts_t* facts) {
  bool lto = facts->lto == KILN_SWITCH_ON;
  for (uint32_t i = 0; i < facts->input_count; i++) {
    if (facts->inputs[i].format == KILN_CODE_FORMAT_LTOIR) lto = true;
  }
  if (facts->output == 0 && lto) facts->output = KILN_CODE_FORMAT_PTX;
  // PTX of PTX is what its own linker makes; nvJitLink needs LTO-IR for it.
  bool own = facts->output == KILN_CODE_FORMAT_PTX && !lto;
  if (own && facts->backend != KILN_LINK_BACKEND_NVJITLINK) facts->output = 0;
  if (facts->output == 0 && facts->backend == KILN_LINK_BACKEND_AUTO) {
    facts->backend = KILN_LINK_BACKEND_DRIVER;
  }
}

// Whether something is newer than the driver that the software device is like.
static bool is_past_driver(const kiln_link_facts_t* facts) {
  uint32_t line = facts->driver.line;
  for (uint32_t i = 0; i < facts->input_count; i++) {
    const kiln_link_input_fact_t* input = &facts->inputs[i];
    if (input->line > line || input->ptx_isa > kiln_compat_line_ptx_isa(line)) {
      return true;
    }
  }
  for (uint32_t i = 0; i < facts->nvjitlink_count; i++) {
    if (facts->nvjitlinks[i] > line) return true;
  }
  return false;
}

// It reads PTX of later tools, too: what it does not know it refuses by its
// name, as where PTX is loaded without a link.
static kiln_status_t choose_for_soft(const kiln_linker_t* linker,
                                     kiln_link_facts_t* facts,
                                     kiln_link_choice_t** out_choice) {
  bool is_past = facts->driver.state == KILN_COMPAT_DRIVER_KNOWN &&
                 !linker->has_driver && is_past_driver(facts);
  if (is_past) facts->driver = kiln_compat_driver_default();
  KILNI_RETURN_IF_ERROR(
      kiln_link_choose(facts, &linker->host->allocator, out_choice));
  if (!is_past || kiln_link_choice_backend(*out_choice) == 0) return kiln_ok();
  kiln_status_t status = kilni_compile_link_choice_because(
      *out_choice, "the software device reads PTX 6.0 to 9.x of any producer");
  if (!kiln_status_is_ok(status)) {
    kiln_link_choice_release(*out_choice);
    *out_choice = NULL;
  }
  return status;
}

kiln_status_t kilni_compile_linker_choose(kiln_linker_t* linker,
                                          kiln_link_facts_t* facts,
                                          kiln_link_choice_t** out_choice) {
  uint32_t lines[KILN_LINK_MAX_NVJITLINKS];
  *out_choice = NULL;
  if (linker->is_soft) aim_at_soft(facts);
  KILNI_RETURN_IF_ERROR(kiln_linker_driver(linker, &facts->driver));
  facts->has_no_device = linker->has_device ? 0 : 1;
  if (facts->backend != KILN_LINK_BACKEND_DRIVER) {
    KILNI_RETURN_IF_ERROR(
        kiln_linker_nvjitlink_count(linker, &facts->nvjitlink_count));
    kilni_base_mutex_lock(&linker->lock);
    for (uint32_t i = 0; i < facts->nvjitlink_count; i++) {
      const copy_t* copy = &linker->found.copies[i];
      lines[i] = copy->trouble != NULL ? (uint32_t)KILN_LINK_NVJITLINK_UNKNOWN
                                       : copy->line;
    }
    kilni_base_mutex_unlock(&linker->lock);
    facts->nvjitlinks = lines;
  }
  kiln_status_t status =
      linker->is_soft
          ? choose_for_soft(linker, facts, out_choice)
          : kiln_link_choose(facts, &linker->host->allocator, out_choice);
  facts->nvjitlinks = NULL;
  facts->nvjitlink_count = 0;
  return status;
}

static kiln_status_t driver_backend(const kiln_linker_t* linker,
                                    kilni_compile_link_backend_t* out_backend) {
  *out_backend = linker->device;
  if (linker->has_device) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the driver is to link, and the linker was opened without a "
                 "device"),
      "open the linker with a device, or install an nvJitLink that is not "
      "newer than the driver");
}

// True for what is wrong with this one file, and not with the process.
static bool is_of_file(kiln_status_t status) {
  switch (kiln_status_code(status)) {
    case KILN_STATUS_NOT_FOUND:
    case KILN_STATUS_INCOMPATIBLE:
    case KILN_STATUS_BAD_DATA:
    case KILN_STATUS_PERMISSION_DENIED:
      return true;
    default:
      return false;
  }
}

static kiln_status_t note_trouble(kiln_linker_t* linker, copy_t* copy,
                                  kiln_status_t why) {
  char* text = NULL;
  kiln_status_t status = kilni_base_strdup(
      linker->host->allocator, kilni_base_sv(kiln_status_message(why)), &text);
  if (kiln_status_is_ok(status)) {
    KILNI_LOG(&linker->host->log, WARNING, "nvJitLink \"%s\" does not work: %s",
              copy->path, text);
    kilni_base_mutex_lock(&linker->lock);
    char* other = copy->trouble;
    copy->trouble = text;
    kilni_base_mutex_unlock(&linker->lock);
    kilni_base_strfree(linker->host->allocator, other);
  }
  kiln_status_free(why);
  return status;
}

// Puts what was opened in its place, unless another thread was first.
static bool link_linker_publish(kiln_linker_t* linker, copy_t* copy,
                                copy_t* opened) {
  kilni_base_mutex_lock(&linker->lock);
  bool same = copy->line == opened->line;
  if (!copy->opened) {
    copy->native = opened->native;
    copy->library = opened->library;
    copy->traced = opened->traced;
    copy->line = opened->line;
    copy->opened = true;
    opened->library = NULL;
    opened->traced = false;
  }
  kilni_base_mutex_unlock(&linker->lock);
  close_copy(linker, opened);
  return same;
}

kiln_status_t kilni_compile_linker_backend(
    kiln_linker_t* linker, const kiln_link_choice_t* choice, bool* out_again,
    kilni_compile_link_backend_t* out_backend) {
  *out_again = false;
  memset(out_backend, 0, sizeof(*out_backend));
  if (kiln_link_choice_backend(choice) == KILN_LINK_BACKEND_DRIVER) {
    return driver_backend(linker, out_backend);
  }
  copy_t* copy = &linker->found.copies[kiln_link_choice_nvjitlink(choice)];
  kilni_base_mutex_lock(&linker->lock);
  bool opened = copy->opened;
  copy_t fresh = {.located = copy->located, .path = copy->path};
  kilni_base_mutex_unlock(&linker->lock);
  if (!opened) {
    kiln_status_t status = open_copy(linker, &fresh);
    if (!kiln_status_is_ok(status)) {
      bool refused =
          kiln_toolkit_mode(linker->toolkit) >= KILN_COMPAT_MODE_BEST_EFFORT;
      if (!is_of_file(status) || refused) return status;
      *out_again = true;
      return note_trouble(linker, copy, status);
    }
    *out_again = !link_linker_publish(linker, copy, &fresh);
  }
  kilni_compile_link_nvjitlink_backend(&copy->native, out_backend);
  return kiln_ok();
}

// ---- Identity ----

// `path` NULL: it has no file, and `fallback` is what is known of it.
static kiln_status_t link_linker_identify(const kiln_linker_t* linker,
                                          const char* word, const char* path,
                                          const char* fallback,
                                          char** out_identity) {
  char text[KILNI_IDENTITY_BYTES];
  snprintf(text, sizeof(text), "%s", fallback);
  if (path != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_identity_of_file(linker->host->allocator, path, text));
  }
  kilni_base_str_t whole;
  kilni_base_str_init(&whole, linker->host->allocator,
                      2 * KILNI_IDENTITY_BYTES);
  if (text[0] != 0) kilni_base_str_addf(&whole, "%s %s", word, text);
  return kilni_base_str_take(&whole, out_identity);
}

static kiln_status_t identify_chosen(const kiln_linker_t* linker,
                                     const copy_t* copy, char** out_identity) {
  if (copy == NULL) {
    return link_linker_identify(linker, linker->is_soft ? "soft" : "driver",
                                linker->device_library, "", out_identity);
  }
  // The table of one without a file is the caller's.
  const char* path = copy->located != NULL ? copy->path
                     : copy->library != NULL
                         ? kilni_base_dynlib_path(copy->library)
                         : NULL;
  return link_linker_identify(linker, "nvJitLink", path, "table", out_identity);
}

kiln_status_t kilni_compile_linker_identity(kiln_linker_t* linker,
                                            const kiln_link_choice_t* choice,
                                            const char** out_identity,
                                            uint32_t* out_line) {
  bool native = kiln_link_choice_backend(choice) == KILN_LINK_BACKEND_DRIVER;
  copy_t* copy =
      native ? NULL : &linker->found.copies[kiln_link_choice_nvjitlink(choice)];
  char** place = native ? &linker->device_identity : &copy->identity;
  kilni_base_mutex_lock(&linker->lock);
  *out_identity = *place;
  *out_line = native ? linker->device.line : copy->line;
  kilni_base_mutex_unlock(&linker->lock);
  if (*out_identity != NULL) return kiln_ok();
  char* identity = NULL;
  KILNI_RETURN_IF_ERROR(identify_chosen(linker, copy, &identity));
  kilni_base_mutex_lock(&linker->lock);
  if (*place == NULL) {
    *place = identity;
    identity = NULL;
  }
  *out_identity = *place;
  kilni_base_mutex_unlock(&linker->lock);
  kilni_base_strfree(linker->host->allocator, identity);
  return kiln_ok();
}

kiln_status_t kilni_compile_linker_annotate(kiln_linker_t* linker,
                                            kiln_status_t status) {
  kilni_base_mutex_lock(&linker->lock);
  for (uint32_t i = 0; i < linker->found.count; i++) {
    const copy_t* copy = &linker->found.copies[i];
    if (copy->trouble == NULL) continue;
    status = KILNI_ANNOTATE(status, "\"%s\": %s", copy->path, copy->trouble);
  }
  kilni_base_mutex_unlock(&linker->lock);
  return status;
}
