// SPDX-License-Identifier: Apache-2.0
//
// locate: search contexts.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "locate/locate.h"
#include "locate/locate_inside.h"

enum { MAX_OPTION_PATHS = 1024, MAX_TARGET_BYTES = 64 };

#if defined(__x86_64__)
static const char* const kNativeTargets[] = {"x86_64-linux", NULL};
#elif defined(__aarch64__)
static const char* const kNativeTargets[] = {"sbsa-linux", "aarch64-linux"};
#else
static const char* const kNativeTargets[] = {"unknown-linux", NULL};
#endif

// ---- Options ----

static kiln_status_t check_path(const char* path, const char* what) {
  if (path != NULL && path[0] == '/' &&
      strlen(path) < KILNI_DISK_PATH_LIMIT - 1) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s \"%s\" is not an absolute path", what,
                 path ? path : ""),
      "begin it with /: the working directory is never searched");
}

static kiln_status_t check_scopes(uint32_t mask, const char* what) {
  uint32_t known = (UINT32_C(1) << KILNI_SCOPE_COUNT) - 2;
  if ((mask & ~known) == 0) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`%s` has a bit that is not a scope (0x%x)",
                 what, (unsigned)(mask & ~known)),
      "build it from KILN_LOCATE_SCOPE_BIT");
}

static kiln_status_t context_check_switches(
    const kiln_locate_options_t* options) {
  uint32_t values[] = {options->hermetic, options->secure, options->loaded,
                       options->records};
  static const char* const names[] = {"hermetic", "secure", "loaded",
                                      "records"};
  for (size_t i = 0; i < 4; i++) {
    if (values[i] <= KILN_SWITCH_ON) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s` is %u, which is not a switch",
                   names[i], (unsigned)values[i]),
        "use one of KILN_SWITCH_*");
  }
  KILNI_RETURN_IF_ERROR(
      check_scopes(options->require_scopes, "require_scopes"));
  KILNI_RETURN_IF_ERROR(check_scopes(options->prefer_scopes, "prefer_scopes"));
  return check_scopes(options->forbid_scopes, "forbid_scopes");
}

static kiln_status_t check_paths(const char* const* paths, uint32_t count,
                                 const char* what) {
  KILNI_CHECK_ARGUMENT(count == 0 || paths != NULL, what);
  KILNI_CHECK_ARGUMENT_SAYS(count <= MAX_OPTION_PATHS, what,
                            "has more than 1024 entries", "pass fewer");
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(check_path(paths[i], what));
  }
  return kiln_ok();
}

static kiln_status_t check_overrides(const kiln_locate_options_t* options) {
  uint32_t count = options->override_count;
  KILNI_CHECK_ARGUMENT(count == 0 || options->overrides != NULL, "overrides");
  KILNI_CHECK_ARGUMENT_SAYS(count <= MAX_OPTION_PATHS, "overrides",
                            "has more than 1024 entries", "pass fewer");
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_override_t* item = &options->overrides[i];
    const kiln_locate_entry_t* entry = NULL;
    KILNI_CHECK_RESERVED(item->reserved, kiln_locate_override_t);
    KILNI_RETURN_IF_ERROR(
        kilni_locate_search_entry(item->kind, item->name, &entry));
    KILNI_RETURN_IF_ERROR(check_path(item->path, "the override"));
  }
  return kiln_ok();
}

// A part of a path: "x86_64-linux". The toolkits define which exist.
static kiln_status_t context_check_target(const char* target) {
  static const char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (target == NULL) return kiln_ok();
  size_t size = strlen(target);
  const char* dash = strchr(target, '-');
  if (dash != NULL && dash != target && dash[1] != 0 &&
      size < MAX_TARGET_BYTES && strspn(target, letters) == size) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%.64s\" is not a target of a toolkit",
                 target),
      "write x86_64-linux, sbsa-linux or aarch64-linux, for example");
}

static kiln_status_t context_check_options(
    const kiln_locate_options_t* options) {
  KILNI_RETURN_IF_ERROR(context_check_switches(options));
  KILNI_RETURN_IF_ERROR(
      check_paths(options->roots, options->root_count, "the root"));
  KILNI_RETURN_IF_ERROR(
      check_paths(options->sites, options->site_count, "the site"));
  KILNI_RETURN_IF_ERROR(
      check_paths(options->pythons, options->python_count, "the program"));
  KILNI_RETURN_IF_ERROR(check_overrides(options));
  KILNI_RETURN_IF_ERROR(context_check_target(options->target));
  if (options->system_root == NULL) return kiln_ok();
  return check_path(options->system_root, "the system's root");
}

// ---- Copies ----

static kiln_status_t copy_paths(kiln_locate_t* locate, const char* const* from,
                                uint32_t count, char*** out_paths,
                                uint32_t* out_count) {
  if (count == 0) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(locate->allocator, count, sizeof(char*), &block));
  *out_paths = block;
  *out_count = count;
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        locate->allocator, kilni_base_sv(from[i]), &(*out_paths)[i]));
  }
  return kiln_ok();
}

static void free_paths(kiln_locate_t* locate, char** paths, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    kilni_base_strfree(locate->allocator, paths[i]);
  }
  kilni_base_free_array(locate->allocator, paths, count, sizeof(char*));
}

static kiln_status_t copy_overrides(kiln_locate_t* locate,
                                    const kiln_locate_options_t* options) {
  uint32_t count = options->override_count;
  if (count == 0) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      locate->allocator, count, sizeof(kiln_locate_override_t), &block));
  locate->overrides = block;
  locate->override_count = count;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_entry_t* entry = NULL;
    KILNI_RETURN_IF_ERROR(kilni_locate_search_entry(
        options->overrides[i].kind, options->overrides[i].name, &entry));
    char* path = NULL;
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        locate->allocator, kilni_base_sv(options->overrides[i].path), &path));
    locate->overrides[i].kind = options->overrides[i].kind;
    locate->overrides[i].name = kiln_locate_entry_name(entry);
    locate->overrides[i].path = path;
  }
  return kiln_ok();
}

static kiln_status_t copy_target(kiln_locate_t* locate, const char* target) {
  locate->is_native = target == NULL;
  for (size_t i = 0; target != NULL && i < 2; i++) {
    if (kNativeTargets[i] == NULL) continue;
    locate->is_native |= strcmp(target, kNativeTargets[i]) == 0;
  }
  if (target == NULL) {
    target = kNativeTargets[0];
    locate->target2 = kNativeTargets[1];
  }
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      locate->allocator, kilni_base_sv(target), &locate->target));
  const char* dash = strchr(target, '-');
  size_t length = dash ? (size_t)(dash - target) : strlen(target);
  // The toolkit's word for servers is not the system's.
  bool server = length == 4 && strncmp(target, "sbsa", length) == 0;
  kilni_base_str_t text;
  kilni_base_str_init(&text, locate->allocator, 256);
  kilni_base_str_add(&text, server ? kilni_base_sv("aarch64")
                                   : kilni_base_sv_make(target, length));
  kilni_base_str_add_cstr(&text, "-linux-gnu");
  return kilni_base_str_take(&text, &locate->multiarch);
}

static kiln_status_t copy_system_root(kiln_locate_t* locate, const char* root) {
  kiln_string_view_t view = kilni_base_sv(root);
  while (view.size > 0 && view.data[view.size - 1] == '/') view.size--;
  locate->is_mounted = view.size > 0;
  return kilni_base_strdup(locate->allocator, view, &locate->system_root);
}

// The scopes of the folders that the options name.
static uint32_t context_places_of(const kiln_locate_options_t* options) {
  uint32_t scopes = 0;
  if (options->root_count != 0) {
    scopes |= KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_ROOT);
  }
  if (options->site_count != 0 || options->python_count != 0) {
    scopes |= KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_WHEEL);
  }
  return scopes;
}

static kiln_status_t copy_options(kiln_locate_t* locate,
                                  const kiln_locate_options_t* options) {
  KILNI_RETURN_IF_ERROR(copy_system_root(locate, options->system_root));
  KILNI_RETURN_IF_ERROR(copy_target(locate, options->target));
  KILNI_RETURN_IF_ERROR(copy_paths(locate, options->roots, options->root_count,
                                   &locate->roots, &locate->root_count));
  KILNI_RETURN_IF_ERROR(copy_paths(locate, options->sites, options->site_count,
                                   &locate->sites, &locate->site_count));
  KILNI_RETURN_IF_ERROR(copy_paths(locate, options->pythons,
                                   options->python_count, &locate->pythons,
                                   &locate->python_count));
  KILNI_RETURN_IF_ERROR(copy_overrides(locate, options));
  locate->secure = options->secure == KILN_SWITCH_ON;
  locate->hermetic = locate->secure || options->hermetic == KILN_SWITCH_ON;
  bool may_ask = !locate->secure && locate->is_native;
  locate->use_loaded =
      may_ask &&
      (options->loaded == KILN_SWITCH_ON ||
       (options->loaded == KILN_SWITCH_DEFAULT && !locate->is_mounted));
  locate->records = options->records == KILN_SWITCH_ON;
  locate->require = options->require_scopes;
  if (options->hermetic == KILN_SWITCH_ON) {
    locate->named = context_places_of(options);
  }
  locate->prefer = options->prefer_scopes;
  locate->forbid = options->forbid_scopes;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(locate->allocator, kiln_locate_entry_count(),
                             sizeof(kiln_locate_item_t*), &block));
  locate->finds = block;
  return kiln_ok();
}

// ---- Life ----

// Drops all cached results. The lock is held, or no other thread uses it.
static void context_forget(kiln_locate_t* locate) {
  const uint32_t count = locate->finds ? kiln_locate_entry_count() : 0;
  for (uint32_t i = 0; i < count; i++) {
    if (locate->finds[i] == NULL) continue;
    kiln_locate_item_release(locate->finds[i]);
    locate->finds[i] = NULL;
  }
  for (uint32_t i = 0; i < KILNI_SCOPE_COUNT; i++) {
    kilni_locate_place_deinit(locate, &locate->places[i]);
  }
  kilni_locate_trail_deinit(&locate->spare);
  kilni_locate_loader_deinit(locate);
  kilni_locate_reader_release(locate->reader);
  locate->reader = NULL;
  kilni_locate_disk_deinit(&locate->disk);
}

static void context_destroy(kiln_locate_t* locate, bool has_lock) {
  context_forget(locate);
  for (uint32_t i = 0; i < locate->override_count; i++) {
    // The path was copied as a whole, so that it can be freed as one.
    char* path = NULL;
    memcpy(&path, &locate->overrides[i].path, sizeof(path));
    kilni_base_strfree(locate->allocator, path);
  }
  kilni_base_free_array(locate->allocator, locate->overrides,
                        locate->override_count, sizeof(kiln_locate_override_t));
  free_paths(locate, locate->roots, locate->root_count);
  free_paths(locate, locate->sites, locate->site_count);
  free_paths(locate, locate->pythons, locate->python_count);
  kilni_base_strfree(locate->allocator, locate->system_root);
  kilni_base_strfree(locate->allocator, locate->target);
  kilni_base_strfree(locate->allocator, locate->multiarch);
  kilni_base_free_array(locate->allocator, locate->finds,
                        kiln_locate_entry_count(), sizeof(kiln_locate_item_t*));
  kilni_base_env_deinit(&locate->env);
  if (has_lock) kilni_base_mutex_deinit(&locate->lock);
  kilni_base_free(locate->allocator, locate, sizeof(*locate));
}

static kiln_status_t context_create(const kiln_locate_options_t* options,
                                    const kilni_base_env_t* env,
                                    kiln_locate_t** out_locate) {
  kiln_allocator_t allocator =
      options->allocator ? *options->allocator : kiln_allocator_libc();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_locate_t), &block));
  kiln_locate_t* locate = block;
  atomic_init(&locate->references, 1);
  locate->allocator = allocator;
  locate->env.allocator = allocator;
  kilni_locate_disk_init(&locate->disk, allocator);
  kilni_locate_trail_init(&locate->spare, allocator);
  kiln_status_t status = copy_options(locate, options);
  if (kiln_status_is_ok(status) && env != NULL && !locate->hermetic) {
    status = kilni_base_env_copy(env, allocator, &locate->env);
  }
  bool has_lock = false;
  if (kiln_status_is_ok(status)) {
    status = kilni_base_mutex_init(&locate->lock);
    has_lock = kiln_status_is_ok(status);
  }
  if (!kiln_status_is_ok(status)) {
    context_destroy(locate, has_lock);
    return status;
  }
  *out_locate = locate;
  return kiln_ok();
}

kiln_status_t kilni_locate_create(const kiln_locate_options_t* options,
                                  const kilni_base_env_t* env,
                                  kiln_locate_t** out_locate) {
  *out_locate = NULL;
  kiln_locate_options_t read;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_locate_options_t", sizeof(read), &read));
  KILNI_RETURN_IF_ERROR(context_check_options(&read));
  return context_create(&read, env, out_locate);
}

kiln_status_t kiln_locate_create(const kiln_locate_options_t* options,
                                 kiln_locate_t** out_locate) {
  KILNI_CHECK_ARGUMENT(out_locate != NULL, "out_locate");
  *out_locate = NULL;
  kilni_base_env_t env;
  KILNI_RETURN_IF_ERROR(kilni_base_env_init(&env, kiln_allocator_libc()));
  kiln_status_t status = kilni_locate_create(options, &env, out_locate);
  kilni_base_env_deinit(&env);
  return status;
}

bool kilni_locate_is_hermetic(const kiln_locate_t* locate) {
  return locate->hermetic;
}

void kiln_locate_retain(kiln_locate_t* locate) {
  if (locate == NULL) return;
  atomic_fetch_add_explicit(&locate->references, 1, memory_order_relaxed);
}

void kiln_locate_release(kiln_locate_t* locate) {
  if (locate == NULL) return;
  if (atomic_fetch_sub_explicit(&locate->references, 1, memory_order_acq_rel) ==
      1) {
    context_destroy(locate, true);
  }
}

void kiln_locate_refresh(kiln_locate_t* locate) {
  if (locate == NULL) return;
  kilni_base_mutex_lock(&locate->lock);
  context_forget(locate);
  kilni_base_mutex_unlock(&locate->lock);
}

// ---- Finding ----

// The answer that stays; the lock is held. Borrowed.
static kiln_status_t find_locked(kiln_locate_t* locate,
                                 const kiln_locate_entry_t* entry,
                                 kiln_locate_item_t** out_item) {
  kiln_locate_item_t** slot = &locate->finds[kiln_locate_entry_index(entry)];
  if (*slot == NULL) {
    kilni_locate_search_plan_t plan = {entry, 0, NULL, NULL, 0, 0};
    KILNI_RETURN_IF_ERROR(kilni_locate_search(locate, &plan, slot));
  }
  *out_item = *slot;
  kiln_locate_item_retain(*out_item);
  return kiln_ok();
}

kiln_status_t kiln_locate_find(kiln_locate_t* locate, uint32_t kind,
                               const char* name,
                               kiln_locate_item_t** out_item) {
  KILNI_CHECK_ARGUMENT(out_item != NULL, "out_item");
  *out_item = NULL;
  KILNI_CHECK_ARGUMENT(locate != NULL, "locate");
  const kiln_locate_entry_t* entry = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_search_entry(kind, name, &entry));
  kilni_base_mutex_lock(&locate->lock);
  kiln_status_t status = find_locked(locate, entry, out_item);
  kilni_base_mutex_unlock(&locate->lock);
  return status;
}

kiln_status_t kiln_locate_find_beside(kiln_locate_t* locate,
                                      const kiln_locate_item_t* item,
                                      uint32_t kind, const char* name,
                                      kiln_locate_item_t** out_item) {
  KILNI_CHECK_ARGUMENT(out_item != NULL, "out_item");
  *out_item = NULL;
  KILNI_CHECK_ARGUMENT(locate != NULL, "locate");
  KILNI_CHECK_ARGUMENT(item != NULL, "item");
  if (!kiln_locate_item_found(item)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "\"%s\" was not found, so nothing is beside it",
                   kiln_locate_entry_name(kiln_locate_item_entry(item))),
        "call kiln_locate_item_found first");
  }
  const kiln_locate_entry_t* entry = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_search_entry(kind, name, &entry));
  const char* root = kiln_locate_item_root(item);
  kilni_locate_search_plan_t plan = {entry,
                                     kiln_locate_item_major(item),
                                     root[0] ? root : "/",
                                     kiln_locate_item_via(item),
                                     kiln_locate_item_scope(item),
                                     kilni_locate_item_layout(item)};
  kilni_base_mutex_lock(&locate->lock);
  kiln_status_t status = kilni_locate_search(locate, &plan, out_item);
  kilni_base_mutex_unlock(&locate->lock);
  return status;
}

kiln_status_t kilni_locate_site(kiln_locate_t* locate, uint32_t index,
                                const char** out_path) {
  *out_path = NULL;
  kilni_dispatch_place_t* place = NULL;
  kilni_base_mutex_lock(&locate->lock);
  kiln_status_t status =
      kilni_locate_place_get(locate, KILN_LOCATE_SCOPE_WHEEL, &place);
  if (kiln_status_is_ok(status) && index < place->count) {
    *out_path = ((const kilni_locate_root_t*)place->roots)[index].path;
  }
  kilni_base_mutex_unlock(&locate->lock);
  return status;
}
