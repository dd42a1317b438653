// SPDX-License-Identifier: Apache-2.0
//
// runtime: the root object: options and environment, resolved once.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "base/vm.h"
#include "cache/cache.h"
#include "runtime/runtime_inside.h"
#include "soft/soft.h"
#include "toolkit/toolkit.h"

enum { MAX_WORKERS = 1024, MAX_DEVICES = 8 };

void kiln_runtime_retain(kiln_runtime_t* runtime) {
  if (runtime == NULL) return;
  atomic_fetch_add_explicit(&runtime->references, 1, memory_order_relaxed);
}

static void runtime_create_destroy(kiln_runtime_t* runtime) {
  kiln_allocator_t allocator = runtime->host.allocator;
  kilni_runtime_stop_providers(runtime);
  kiln_toolkit_release(runtime->toolkit);
  kiln_cache_release(runtime->cache);
  if (runtime->has_lock) kilni_base_mutex_deinit(&runtime->lock);
  kilni_base_env_deinit(&runtime->env);
  kilni_base_strfree(allocator, runtime->soft_lanes);
  kilni_base_strfree(allocator, runtime->soft_report);
  kilni_base_strfree(allocator, runtime->soft_order);
  kilni_base_strfree(allocator, runtime->cuda_library);
  kilni_base_vm_fork_unmark(runtime->host.fork_mark);
  kilni_base_free(allocator, runtime, sizeof(*runtime));
}

void kiln_runtime_release(kiln_runtime_t* runtime) {
  if (runtime == NULL || kilni_base_host_is_forked(&runtime->host)) return;
  if (atomic_fetch_sub_explicit(&runtime->references, 1,
                                memory_order_acq_rel) == 1) {
    runtime_create_destroy(runtime);
  }
}

static void retain_object(void* object) {
  kiln_runtime_retain(object);
}
static void release_object(void* object) {
  kiln_runtime_release(object);
}

kilni_base_keep_t kilni_runtime_keep(kiln_runtime_t* runtime) {
  kilni_base_keep_t keep = {runtime, retain_object, release_object};
  return keep;
}

// ---- Options, each falling back to its variable ----

static kiln_status_t runtime_create_bad_option(const char* name,
                                               const char* wanted) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "kiln_runtime_options_t has a bad `%s`",
                 name),
      "it takes %s; 0 is the default", wanted);
}

static kiln_status_t take_switch(uint32_t given, const char* name, bool* out) {
  if (given > KILN_SWITCH_ON) {
    return runtime_create_bad_option(name, "KILN_SWITCH_*");
  }
  if (given != KILN_SWITCH_DEFAULT) *out = given == KILN_SWITCH_ON;
  return kiln_ok();
}

static kiln_status_t take_page_check(kiln_runtime_t* runtime,
                                     const kiln_runtime_options_t* options) {
  const char* said =
      kilni_base_env_text(&runtime->env, KILNI_ENV_KILN_SOFT_CHECK);
  if (said != NULL && strcmp(said, "exact") != 0 && strcmp(said, "page") != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the environment variable KILN_SOFT_CHECK is \"%s\"", said),
        "unset KILN_SOFT_CHECK, or set it to exact or page");
  }
  runtime->page_check = said != NULL && strcmp(said, "page") == 0;
  return take_switch(options->soft_page_check, "soft_page_check",
                     &runtime->page_check);
}

static kiln_status_t take_lanes(kiln_runtime_t* runtime,
                                const kiln_runtime_options_t* options) {
  const char* said =
      kilni_base_env_text(&runtime->env, KILNI_ENV_KILN_SOFT_LANES);
  const char* lanes = options->soft_lanes ? options->soft_lanes : said;
  if (lanes == NULL) lanes = "auto";
  static const char* const known[] = {"auto", "plain", "avx2", "avx512"};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (strcmp(lanes, known[i]) == 0) {
      return kilni_base_strdup(runtime->host.allocator, kilni_base_sv(lanes),
                               &runtime->soft_lanes);
    }
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "no lane code is called \"%s\" (%s)", lanes,
                 options->soft_lanes ? "the option `soft_lanes`"
                                     : "the variable KILN_SOFT_LANES"),
      "use auto, plain, avx2 or avx512");
}

static kiln_status_t take_modes(kiln_runtime_t* runtime,
                                const kiln_runtime_options_t* options) {
  const kiln_allocator_t allocator = runtime->host.allocator;
  KILNI_RETURN_IF_ERROR(kilni_soft_check_modes(
      &runtime->host, options->soft_report, options->soft_order));
  if (options->soft_report != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        allocator, kilni_base_sv(options->soft_report), &runtime->soft_report));
  }
  if (options->soft_order == NULL) return kiln_ok();
  return kilni_base_strdup(allocator, kilni_base_sv(options->soft_order),
                           &runtime->soft_order);
}

static kiln_status_t take_devices(kiln_runtime_t* runtime,
                                  const kiln_runtime_options_t* options) {
  uint64_t devices = 0;
  KILNI_RETURN_IF_ERROR(
      kilni_base_env_u64(&runtime->env, KILNI_ENV_KILN_SOFT_DEVICES, &devices));
  if (options->soft_devices != 0) devices = options->soft_devices;
  if (devices > MAX_DEVICES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "%llu software devices",
                   (unsigned long long)devices),
        "ask for at most %u (`soft_devices`, KILN_SOFT_DEVICES)",
        (unsigned)MAX_DEVICES);
  }
  runtime->soft_devices = (uint32_t)devices;
  return kiln_ok();
}

static kiln_status_t create_take_numbers(
    kiln_runtime_t* runtime, const kiln_runtime_options_t* options) {
  uint64_t workers = 0;
  KILNI_RETURN_IF_ERROR(
      kilni_base_env_u64(&runtime->env, KILNI_ENV_KILN_SOFT_WORKERS, &workers));
  if (options->soft_workers != 0) workers = options->soft_workers;
  if (workers > MAX_WORKERS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "%llu worker threads for the software device",
                   (unsigned long long)workers),
        "ask for at most %u (`soft_workers`, KILN_SOFT_WORKERS)",
        (unsigned)MAX_WORKERS);
  }
  runtime->soft_workers =
      workers != 0 ? (uint32_t)workers : runtime->host.worker_count;
  KILNI_RETURN_IF_ERROR(take_devices(runtime, options));
  KILNI_RETURN_IF_ERROR(take_modes(runtime, options));
  KILNI_RETURN_IF_ERROR(kilni_base_env_u64(
      &runtime->env, KILNI_ENV_KILN_SOFT_SEED, &runtime->host.seed));
  if (options->soft_seed != 0) runtime->host.seed = options->soft_seed;
  return kiln_ok();
}

static kiln_status_t take_toolkit(kiln_runtime_t* runtime,
                                  const kiln_runtime_options_t* options) {
  kiln_toolkit_options_t how;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options->toolkit, kiln_toolkit_options_t, &how));
  how.allocator = &runtime->host.allocator;
  how.log = &runtime->host.log;
  if (how.cuda_library == NULL) how.cuda_library = runtime->cuda_library;
  return kilni_toolkit_create(&how, &runtime->env, &runtime->toolkit);
}

static kiln_status_t take_cache(kiln_runtime_t* runtime,
                                const kiln_runtime_options_t* options) {
  kiln_cache_options_t how;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options->cache, "kiln_cache_options_t", sizeof(how), &how));
  how.allocator = &runtime->host.allocator;
  how.log = &runtime->host.log;
  return kilni_cache_create(&how, &runtime->env, &runtime->cache);
}

kiln_cache_t* kiln_runtime_cache(kiln_runtime_t* runtime) {
  return runtime->cache;
}

kiln_toolkit_t* kiln_runtime_toolkit(kiln_runtime_t* runtime) {
  return runtime->toolkit;
}

static kiln_status_t runtime_create_take_options(
    kiln_runtime_t* runtime, const kiln_runtime_options_t* options) {
  kiln_allocator_t allocator = runtime->host.allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_env_init(&runtime->env, allocator));
  runtime->host.env = &runtime->env;
  if (options->log != NULL) runtime->host.log = *options->log;
  runtime->host.worker_count = kilni_base_core_count();
  KILNI_RETURN_IF_ERROR(kilni_base_env_switch(
      &runtime->env, KILNI_ENV_KILN_TRACE, &runtime->trace));
  KILNI_RETURN_IF_ERROR(take_switch(options->trace, "trace", &runtime->trace));
  KILNI_RETURN_IF_ERROR(take_page_check(runtime, options));
  KILNI_RETURN_IF_ERROR(take_lanes(runtime, options));
  KILNI_RETURN_IF_ERROR(create_take_numbers(runtime, options));
  runtime->print = options->print;
  runtime->print_user = options->print_user;
  if (options->cuda_library != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(allocator, kilni_base_sv(options->cuda_library),
                          &runtime->cuda_library));
  }
  KILNI_RETURN_IF_ERROR(take_toolkit(runtime, options));
  KILNI_RETURN_IF_ERROR(take_cache(runtime, options));
  runtime->soft_host = runtime->host;
  if (runtime->hooks.soft_allocator != NULL) {
    runtime->soft_host.allocator = *runtime->hooks.soft_allocator;
  }
  return kiln_ok();
}

kiln_status_t kilni_runtime_create_with(const kiln_runtime_options_t* options,
                                        const kilni_runtime_hooks_t* hooks,
                                        kiln_runtime_t** out_runtime) {
  KILNI_CHECK_ARGUMENT(out_runtime != NULL, "out_runtime");
  *out_runtime = NULL;
  kiln_runtime_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_runtime_options_t, &given));
  if (given.log != NULL) {
    KILNI_CHECK_RESERVED(given.log->reserved, kiln_log_sink_t);
  }
  kiln_allocator_t allocator =
      given.allocator ? *given.allocator : kiln_allocator_libc();
  if (allocator.fn == NULL) {
    return runtime_create_bad_option("allocator", "a function");
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_runtime_t), &block));
  kiln_runtime_t* runtime = block;
  runtime->host.allocator = allocator;
  runtime->host.process_id = kilni_base_process_id();
  runtime->host.fork_mark = kilni_base_vm_fork_mark();
  runtime->env.allocator = allocator;
  atomic_init(&runtime->references, 1);
  atomic_init(&runtime->cuda.lost, false);
  atomic_init(&runtime->soft.lost, false);
  if (hooks != NULL) runtime->hooks = *hooks;
  kiln_status_t status = kilni_base_mutex_init(&runtime->lock);
  runtime->has_lock = kiln_status_is_ok(status);
  if (kiln_status_is_ok(status)) {
    status = runtime_create_take_options(runtime, &given);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_runtime_release(runtime);
    return status;
  }
  *out_runtime = runtime;
  return kiln_ok();
}

kiln_status_t kiln_runtime_create(const kiln_runtime_options_t* options,
                                  kiln_runtime_t** out_runtime) {
  return kilni_runtime_create_with(options, NULL, out_runtime);
}
