// SPDX-License-Identifier: Apache-2.0
//
// toolkit: contexts: options and environment, resolved once; reset, refresh.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "locate/locate.h"
#include "toolkit/toolkit.h"
#include "toolkit/toolkit_inside.h"

// ---- Lists ----

kiln_status_t kilni_toolkit_append(kiln_allocator_t allocator,
                                   kilni_toolkit_list_t* list, size_t limit,
                                   const void* item, size_t size) {
  if (list->count == limit) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "more than %zu entries in one context",
                   limit),
        "reset the context, or use several");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_grow(allocator, list->count + 1, size,
                                        &list->capacity, &list->items));
  memcpy((char*)list->items + list->count * size, item, size);
  list->count++;
  return kiln_ok();
}

void kilni_toolkit_list_deinit(kiln_allocator_t allocator,
                               kilni_toolkit_list_t* list, size_t size) {
  kilni_base_free_array(allocator, list->items, list->capacity, size);
  memset(list, 0, sizeof(*list));
}

// ---- What is remembered ----

static void create_forget(kiln_toolkit_t* toolkit) {
  kiln_allocator_t allocator = toolkit->host.allocator;
  kiln_toolkit_item_t** items = toolkit->items.items;
  for (size_t i = 0; i < toolkit->items.count; i++) {
    kiln_toolkit_item_release(items[i]);
  }
  kilni_toolkit_list_deinit(allocator, &toolkit->items, sizeof(*items));
  kilni_toolkit_list_deinit(allocator, &toolkit->uses,
                            sizeof(kiln_compat_use_t));
  kilni_toolkit_driver_deinit(allocator, &toolkit->driver);
}

void kiln_toolkit_reset(kiln_toolkit_t* toolkit) {
  if (toolkit == NULL || kilni_base_host_is_forked(&toolkit->host)) return;
  kilni_base_mutex_lock(&toolkit->lock);
  create_forget(toolkit);
  kilni_base_mutex_unlock(&toolkit->lock);
}

void kiln_toolkit_refresh(kiln_toolkit_t* toolkit) {
  if (toolkit == NULL || kilni_base_host_is_forked(&toolkit->host)) return;
  kilni_base_mutex_lock(&toolkit->load_lock);
  kiln_toolkit_library_t** libraries = toolkit->libraries.items;
  for (size_t i = 0; i < toolkit->libraries.count; i++) {
    libraries[i]->stale = true;
  }
  kilni_base_mutex_lock(&toolkit->lock);
  create_forget(toolkit);
  kilni_locate_reader_release(toolkit->reader);
  toolkit->reader = NULL;
  kilni_base_mutex_unlock(&toolkit->lock);
  kiln_locate_refresh(toolkit->locate);
  kilni_base_mutex_unlock(&toolkit->load_lock);
}

// ---- References ----

void kiln_toolkit_retain(kiln_toolkit_t* toolkit) {
  if (toolkit == NULL) return;
  atomic_fetch_add_explicit(&toolkit->references, 1, memory_order_relaxed);
}

static void toolkit_create_destroy(kiln_toolkit_t* toolkit) {
  kiln_allocator_t allocator = toolkit->host.allocator;
  create_forget(toolkit);
  kilni_toolkit_driver_deinit(allocator, &toolkit->given);
  kiln_toolkit_library_t** libraries = toolkit->libraries.items;
  for (size_t i = 0; i < toolkit->libraries.count; i++) {
    kilni_toolkit_library_destroy(libraries[i]);
  }
  kilni_toolkit_list_deinit(allocator, &toolkit->libraries, sizeof(*libraries));
  kilni_locate_reader_release(toolkit->reader);
  kiln_locate_release(toolkit->locate);
  if (toolkit->has_lock) kilni_base_mutex_deinit(&toolkit->lock);
  if (toolkit->has_load_lock) kilni_base_mutex_deinit(&toolkit->load_lock);
  kilni_base_strfree(allocator, toolkit->ctk_version);
  kilni_base_strfree(allocator, toolkit->cuda_library);
  kilni_base_strfree(allocator, toolkit->system_root);
  kilni_toolkit_variables_deinit(toolkit);
  kilni_base_env_deinit(&toolkit->env);
  kilni_base_free(allocator, toolkit, sizeof(*toolkit));
}

void kiln_toolkit_release(kiln_toolkit_t* toolkit) {
  if (toolkit == NULL || kilni_base_host_is_forked(&toolkit->host)) return;
  if (atomic_fetch_sub_explicit(&toolkit->references, 1,
                                memory_order_acq_rel) == 1) {
    toolkit_create_destroy(toolkit);
  }
}

uint32_t kiln_toolkit_mode(const kiln_toolkit_t* toolkit) {
  return toolkit->policy.mode;
}

kiln_locate_t* kiln_toolkit_locate(kiln_toolkit_t* toolkit) {
  return toolkit->locate;
}

// ---- Options ----

static kiln_status_t toolkit_create_bad_option(const char* name,
                                               const char* wanted) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "kiln_toolkit_options_t has a bad `%s`",
                 name),
      "it takes %s; 0 is the default", wanted);
}

static kiln_status_t create_copy_text(kiln_toolkit_t* toolkit, const char* text,
                                      char** out_text) {
  if (text == NULL) return kiln_ok();
  return kilni_base_strdup(toolkit->host.allocator, kilni_base_sv(text),
                           out_text);
}

// True where no variable may affect the search; then none may set what an
// incompatibility causes either.
static bool is_hermetic(const kiln_locate_options_t* locate) {
  return locate->hermetic == KILN_SWITCH_ON || locate->secure == KILN_SWITCH_ON;
}

static const char* variable(const kiln_toolkit_t* toolkit,
                            kilni_base_env_id_t id, bool hermetic) {
  return hermetic ? NULL : kilni_base_env_text(&toolkit->env, id);
}

static kiln_status_t take_policy(kiln_toolkit_t* toolkit,
                                 const kiln_toolkit_options_t* options,
                                 bool hermetic) {
  if (options->default_mode > KILN_COMPAT_MODE_STRICT) {
    return toolkit_create_bad_option("default_mode", "KILN_COMPAT_MODE_*");
  }
  uint32_t fallback = options->default_mode != KILN_COMPAT_MODE_DEFAULT
                          ? options->default_mode
                          : KILN_COMPAT_MODE_WARN;
  KILNI_RETURN_IF_ERROR(kiln_compat_mode_parse(
      variable(toolkit, KILNI_ENV_KILN_COMPAT, hermetic),
      variable(toolkit, KILNI_ENV_CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS,
               hermetic),
      variable(toolkit, KILNI_ENV_CUDA_PATHFINDER_DRIVER_COMPATIBILITY,
               hermetic),
      fallback, &toolkit->policy));
  if (options->mode > KILN_COMPAT_MODE_STRICT) {
    return toolkit_create_bad_option("mode", "KILN_COMPAT_MODE_*");
  }
  if (options->mode != KILN_COMPAT_MODE_DEFAULT) {
    toolkit->policy.mode = options->mode;
  }
  if (options->forward_compat > KILN_SWITCH_ON) {
    return toolkit_create_bad_option("forward_compat", "KILN_SWITCH_*");
  }
  if (options->forward_compat != KILN_SWITCH_DEFAULT) {
    toolkit->policy.forward_compat = options->forward_compat == KILN_SWITCH_ON;
  }
  if (options->verify > KILN_SWITCH_ON) {
    return toolkit_create_bad_option("verify", "KILN_SWITCH_*");
  }
  static const uint32_t depths[] = {
      [KILN_SWITCH_DEFAULT] = KILNI_LOCATE_FACTS_CHEAP,
      [KILN_SWITCH_OFF] = KILNI_LOCATE_FACTS_LEAST,
      [KILN_SWITCH_ON] = KILNI_LOCATE_FACTS_VERIFY};
  toolkit->depth = depths[options->verify];
  return kiln_ok();
}

static kiln_status_t take_locate(kiln_toolkit_t* toolkit,
                                 kiln_locate_options_t* how) {
  how->allocator = &toolkit->host.allocator;
  KILNI_RETURN_IF_ERROR(
      create_copy_text(toolkit, how->system_root, &toolkit->system_root));
  return kilni_locate_create(how, &toolkit->env, &toolkit->locate);
}

static kiln_status_t toolkit_create_take_options(
    kiln_toolkit_t* toolkit, const kiln_toolkit_options_t* options) {
  kiln_locate_options_t how;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options->locate, "kiln_locate_options_t", sizeof(how), &how));
  bool hermetic = is_hermetic(&how);
  KILNI_RETURN_IF_ERROR(take_policy(toolkit, options, hermetic));
  if (!hermetic) KILNI_RETURN_IF_ERROR(kilni_toolkit_variables_list(toolkit));
  if (options->ctk_version != NULL) {
    KILNI_RETURN_IF_ERROR(kiln_compat_spec_check(options->ctk_version));
  }
  KILNI_RETURN_IF_ERROR(
      create_copy_text(toolkit, options->ctk_version, &toolkit->ctk_version));
  KILNI_RETURN_IF_ERROR(
      create_copy_text(toolkit, options->cuda_library, &toolkit->cuda_library));
  if (options->driver != NULL) {
    toolkit->driver_given = true;
    KILNI_RETURN_IF_ERROR(kilni_toolkit_driver_copy(
        toolkit->host.allocator, options->driver, &toolkit->given));
  }
  return take_locate(toolkit, &how);
}

static kiln_status_t take_environment(kiln_toolkit_t* toolkit,
                                      const kilni_base_env_t* env) {
  kiln_status_t status;
  if (env == NULL) {
    status = kilni_base_env_init(&toolkit->env, toolkit->host.allocator);
  } else {
    status = kilni_base_env_copy(env, toolkit->host.allocator, &toolkit->env);
  }
  if (kiln_status_is_ok(status)) toolkit->host.env = &toolkit->env;
  return status;
}

static kiln_status_t create_set_up(kiln_toolkit_t* toolkit,
                                   const kiln_toolkit_options_t* options,
                                   const kilni_base_env_t* env) {
  kiln_status_t status = kilni_base_mutex_init(&toolkit->lock);
  toolkit->has_lock = kiln_status_is_ok(status);
  KILNI_RETURN_IF_ERROR(status);
  status = kilni_base_mutex_init(&toolkit->load_lock);
  toolkit->has_load_lock = kiln_status_is_ok(status);
  KILNI_RETURN_IF_ERROR(status);
  KILNI_RETURN_IF_ERROR(take_environment(toolkit, env));
  return toolkit_create_take_options(toolkit, options);
}

kiln_status_t kilni_toolkit_create(const kiln_toolkit_options_t* options,
                                   const kilni_base_env_t* env,
                                   kiln_toolkit_t** out_toolkit) {
  *out_toolkit = NULL;
  kiln_toolkit_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_toolkit_options_t, &given));
  if (given.log != NULL) {
    KILNI_CHECK_RESERVED(given.log->reserved, kiln_log_sink_t);
  }
  kiln_allocator_t allocator =
      given.allocator ? *given.allocator : kiln_allocator_libc();
  if (allocator.fn == NULL) {
    return toolkit_create_bad_option("allocator", "a function");
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_toolkit_t), &block));
  kiln_toolkit_t* toolkit = block;
  toolkit->host.allocator = allocator;
  toolkit->host.process_id = kilni_base_process_id();
  if (given.log != NULL) toolkit->host.log = *given.log;
  toolkit->env.allocator = allocator;
  atomic_init(&toolkit->references, 1);
  kiln_status_t status = create_set_up(toolkit, &given, env);
  if (!kiln_status_is_ok(status)) {
    kiln_toolkit_release(toolkit);
    return status;
  }
  *out_toolkit = toolkit;
  return kiln_ok();
}

kiln_status_t kiln_toolkit_create(const kiln_toolkit_options_t* options,
                                  kiln_toolkit_t** out_toolkit) {
  KILNI_CHECK_ARGUMENT(out_toolkit != NULL, "out_toolkit");
  return kilni_toolkit_create(options, NULL, out_toolkit);
}
