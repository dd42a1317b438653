// SPDX-License-Identifier: Apache-2.0
//
// soft: starting and stopping the software driver, and filling the table.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/vm.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "soft/driver/soft_global.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

enum { WORKERS_LIMIT = 1024 };

// What a start asks for, with every default filled in.
typedef struct wish_t {
  kilni_soft_options_t given;
  uint32_t workers;
  uint32_t devices;
  uint64_t seed;
  bool exact;
  const char* lanes;
  uint32_t report;
  bool latest;
} wish_t;

// ---- Options ----

static kiln_status_t read_check(const kiln_host_t* host, wish_t* wish) {
  const char* text = kilni_base_env_text(host->env, KILNI_ENV_KILN_SOFT_CHECK);
  wish->exact = true;
  if (wish->given.page_check != KILN_SWITCH_DEFAULT) {
    wish->exact = wish->given.page_check != KILN_SWITCH_ON;
  } else if (text != NULL && strcmp(text, "page") == 0) {
    wish->exact = false;
  } else if (text != NULL && strcmp(text, "exact") != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            INVALID_ARGUMENT,
            "KILN_SOFT_CHECK is \"%s\", which is not a kind of address check",
            text),
        "set KILN_SOFT_CHECK to exact or page, or unset it");
  }
  return kiln_ok();
}

// The errors that are named by [name, name + length); 0: none is called so.
static uint32_t report_of(const char* name, size_t length) {
  static const struct {
    const char* name;
    uint32_t bits;
  } kNames[] = {{"unwritten", KILNI_SOFT_REPORT_UNWRITTEN},
                {"freed", KILNI_SOFT_REPORT_FREED},
                {"all", KILNI_SOFT_REPORT_UNWRITTEN | KILNI_SOFT_REPORT_FREED}};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    if (strlen(kNames[i].name) == length &&
        memcmp(kNames[i].name, name, length) == 0) {
      return kNames[i].bits;
    }
  }
  return 0;
}

static kiln_status_t read_report(const kiln_host_t* host, wish_t* wish) {
  const char* text = wish->given.report;
  if (text == NULL) {
    text = kilni_base_env_text(host->env, KILNI_ENV_KILN_SOFT_REPORT);
  }
  while (text != NULL && *text != '\0') {
    size_t length = strcspn(text, ",");
    uint32_t bits = report_of(text, length);
    if (bits == 0) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(
              INVALID_ARGUMENT,
              "the software device cannot look for an error named \"%.*s\"",
              (int)(length < 64 ? length : 64), text),
          "use unwritten, freed or all (`soft_report`, KILN_SOFT_REPORT), or "
          "leave it unset");
    }
    wish->report |= bits;
    text += length;
    if (*text == ',') text++;
  }
  return kiln_ok();
}

static kiln_status_t provide_read_order(const kiln_host_t* host, wish_t* wish) {
  const char* text = wish->given.order;
  if (text == NULL) {
    text = kilni_base_env_text(host->env, KILNI_ENV_KILN_SOFT_ORDER);
  }
  if (text == NULL || strcmp(text, "auto") == 0) return kiln_ok();
  wish->latest = strcmp(text, "latest") == 0;
  if (wish->latest) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the software device has no order of work named \"%s\"", text),
      "use auto or latest (`soft_order`, KILN_SOFT_ORDER), or leave it unset");
}

kiln_status_t kilni_soft_check_modes(const kiln_host_t* host,
                                     const char* report, const char* order) {
  wish_t wish = {.given = {.report = report, .order = order}};
  KILNI_RETURN_IF_ERROR(read_report(host, &wish));
  return provide_read_order(host, &wish);
}

// The owner of memory is known by byte only, not by page.
static kiln_status_t read_devices(const kiln_host_t* host, wish_t* wish) {
  uint64_t devices = wish->given.device_count;
  if (devices == 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_env_u64(host->env, KILNI_ENV_KILN_SOFT_DEVICES, &devices));
  }
  if (devices == 0) devices = 1;
  if (devices > KILNI_SOFT_DEVICES_MOST) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "%llu software devices were asked for, and there are at "
                   "most %d",
                   (unsigned long long)devices, (int)KILNI_SOFT_DEVICES_MOST),
        "ask for fewer devices (KILN_SOFT_DEVICES)");
  }
  if (devices > 1 && !wish->exact) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "address checks by page cannot distinguish the memory of "
                   "%llu software devices",
                   (unsigned long long)devices),
        "set KILN_SOFT_CHECK to exact, or use one device");
  }
  wish->devices = (uint32_t)devices;
  return kiln_ok();
}

static kiln_status_t read_wish(const kiln_host_t* host,
                               const kilni_soft_options_t* options,
                               wish_t* wish) {
  memset(wish, 0, sizeof(*wish));
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kilni_soft_options_t", sizeof(wish->given), &wish->given));
  uint64_t workers = wish->given.worker_count;
  if (workers == 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_env_u64(host->env, KILNI_ENV_KILN_SOFT_WORKERS, &workers));
  }
  if (workers == 0) workers = host->worker_count;
  if (workers == 0) workers = kilni_base_core_count();
  if (workers > WORKERS_LIMIT) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "the software device was asked for %llu worker threads and "
                   "takes at most %d",
                   (unsigned long long)workers, (int)WORKERS_LIMIT),
        "ask for fewer workers (KILN_SOFT_WORKERS)");
  }
  wish->workers = (uint32_t)workers;
  wish->seed = wish->given.seed;
  if (wish->seed == 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_env_u64(host->env, KILNI_ENV_KILN_SOFT_SEED, &wish->seed));
  }
  if (wish->seed == 0) wish->seed = host->seed;
  wish->lanes = wish->given.lanes;
  if (wish->lanes == NULL) {
    wish->lanes = kilni_base_env_text(host->env, KILNI_ENV_KILN_SOFT_LANES);
  }
  if (wish->lanes == NULL) wish->lanes = "auto";
  KILNI_RETURN_IF_ERROR(read_report(host, wish));
  KILNI_RETURN_IF_ERROR(provide_read_order(host, wish));
  KILNI_RETURN_IF_ERROR(read_check(host, wish));
  return read_devices(host, wish);
}

// ---- Building ----

static void free_faults(kilni_soft_driver_t* driver) {
  const kiln_allocator_t allocator = driver->host.allocator;
  kilni_base_free_array(allocator, driver->faults, driver->device_count,
                        sizeof(*driver->faults));
  kilni_base_free_array(allocator, driver->places, driver->device_count,
                        sizeof(*driver->places));
}

static kiln_status_t make_faults(kilni_soft_driver_t* driver) {
  const kiln_allocator_t allocator = driver->host.allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, driver->device_count, sizeof(*driver->faults), &block));
  driver->faults = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, driver->device_count, sizeof(*driver->places), &block));
  driver->places = block;
  return kiln_ok();
}

static void destroy_driver(kilni_soft_driver_t* driver) {
  kiln_allocator_t allocator = driver->host.allocator;
  bool faulted = false;
  kilni_soft_queue_stop(driver);
  kilni_base_mutex_lock(&driver->lock);
  for (uint32_t i = 0; i < driver->device_count; i++) {
    if (kilni_soft_sticky(&driver->contexts[i]) != KILN_CU_SUCCESS) {
      faulted = true;
    }
  }
  for (uint32_t i = 0; driver->memory != NULL && i < driver->device_count;
       i++) {
    kilni_soft_context_clear(driver, &driver->contexts[i]);
  }
  kilni_soft_graphs_clear(driver);
  // After a fault there is no callback, as with a driver: the owner of the
  // objects cannot have waited for it.
  if (faulted) kilni_soft_objects_forget(driver);
  kilni_soft_objects_end(driver);
  kilni_soft_pools_clear(driver);
  kilni_soft_physicals_clear(driver);
  kilni_base_mutex_unlock(&driver->lock);
  kilni_base_free_array(allocator, driver->freeing, driver->freeing_capacity,
                        sizeof(*driver->freeing));
  kilni_soft_memory_destroy(driver->memory);
  kilni_soft_handles_deinit(&driver->handles);
  kilni_base_cond_deinit(&driver->queue.done);
  kilni_base_cond_deinit(&driver->queue.work);
  kilni_base_mutex_deinit(&driver->lock);
  if (driver->profile != NULL) {
    kilni_base_free(allocator, driver->profile, sizeof(*driver->profile));
  }
  kilni_base_vm_fork_unmark(driver->host.fork_mark);
  free_faults(driver);
  kilni_base_free(allocator, driver, sizeof(*driver));
}

static kiln_status_t init_locks(kilni_soft_driver_t* driver) {
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&driver->lock));
  kiln_status_t status = kilni_base_cond_init(&driver->queue.work);
  if (!kiln_status_is_ok(status)) {
    kilni_base_mutex_deinit(&driver->lock);
    return status;
  }
  status = kilni_base_cond_init(&driver->queue.done);
  if (!kiln_status_is_ok(status)) {
    kilni_base_cond_deinit(&driver->queue.work);
    kilni_base_mutex_deinit(&driver->lock);
  }
  return status;
}

static kiln_status_t choose_lanes(const char* name,
                                  const kilni_soft_lane_set_t** out_lanes) {
  *out_lanes = kilni_soft_lanes_choose(name);
  if (*out_lanes != NULL) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          UNSUPPORTED,
          "this machine cannot run the lane code \"%s\" of the software device",
          name),
      "set KILN_SOFT_LANES to auto, plain, avx2 or avx512, as the CPU allows");
}

// Every row the device has.
static void provide_fill(kiln_cuda_table_t* table) {
  kilni_table_cuda_table_init(table, "soft", "the software device");
  table->driver_version = KILNI_SOFT_DRIVER_VERSION;
  kilni_soft_fill_device(table);
  kilni_soft_fill_context(table);
  kilni_soft_fill_alloc(table);
  kilni_soft_fill_pool(table);
  kilni_soft_fill_virtual(table);
  kilni_soft_fill_pointer(table);
  kilni_soft_fill_copy(table);
  kilni_soft_fill_managed(table);
  kilni_soft_fill_peer(table);
  kilni_soft_fill_stream(table);
  kilni_soft_fill_event(table);
  kilni_soft_fill_module(table);
  kilni_soft_fill_kernel(table);
  kilni_soft_fill_library(table);
  kilni_soft_fill_link(table);
  kilni_soft_fill_launch(table);
  kilni_soft_fill_capture(table);
  kilni_soft_fill_graph(table);
  kilni_soft_fill_graph_edge(table);
  kilni_soft_fill_graph_node(table);
  kilni_soft_fill_graph_exec(table);
  kilni_soft_fill_graph_object(table);
  kilni_soft_fill_graph_update(table);
  kilni_soft_fill_graph_dot(table);
  kilni_soft_fill_values(table);
}

static kiln_status_t create_memory(kilni_soft_driver_t* driver,
                                   const wish_t* wish) {
  kilni_soft_memory_t* list[KILNI_SOFT_DEVICES_MOST];
  KILNI_RETURN_IF_ERROR(kilni_soft_memory_create_all(&driver->host, wish->exact,
                                                     wish->devices, list));
  driver->memory = list[0];
  for (uint32_t i = 0; i < wish->devices; i++) {
    driver->contexts[i].device = i;
    driver->contexts[i].memory = list[i];
  }
  return kiln_ok();
}

static kiln_status_t create_driver(const kiln_host_t* host, const wish_t* wish,
                                   kilni_soft_driver_t** out_driver) {
  kilni_soft_driver_t* driver;
  const kilni_soft_lane_set_t* lanes;
  KILNI_RETURN_IF_ERROR(choose_lanes(wish->lanes, &lanes));
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(*driver), (void**)&driver));
  driver->host = *host;
  // A mark of its own, since it may outlive the runtime that it was started by.
  driver->host.fork_mark = kilni_base_vm_fork_mark();
  driver->host.seed = wish->seed;
  driver->worker_count = wish->workers;
  driver->seed = wish->seed;
  driver->exact = wish->exact;
  driver->lanes = lanes;
  driver->report = wish->report;
  driver->latest = wish->latest;
  driver->scribble = wish->given.scribble == KILN_SWITCH_ON;
  driver->print = wish->given.print;
  driver->print_user = wish->given.print_user;
  driver->device_count = wish->devices;
  kiln_status_t status = make_faults(driver);
  if (kiln_status_is_ok(status)) status = init_locks(driver);
  if (!kiln_status_is_ok(status)) {
    kilni_base_vm_fork_unmark(driver->host.fork_mark);
    free_faults(driver);
    kilni_base_free(host->allocator, driver, sizeof(*driver));
    return status;
  }
  kilni_soft_handles_init(&driver->handles, host->allocator,
                          kilni_soft_global_next_epoch());
  provide_fill(&driver->table);
  status = create_memory(driver, wish);
  if (kiln_status_is_ok(status) &&
      (wish->report & KILNI_SOFT_REPORT_UNWRITTEN) != 0) {
    status = kilni_soft_memory_watch(driver->memory);
  }
  if (kiln_status_is_ok(status) &&
      (wish->report & KILNI_SOFT_REPORT_FREED) != 0) {
    status = kilni_soft_memory_keep_freed(driver->memory);
  }
  if (kiln_status_is_ok(status)) {
    status =
        kilni_soft_queue_start(driver, wish->workers, wish->seed, wish->latest);
  }
  if (!kiln_status_is_ok(status)) {
    destroy_driver(driver);
    return status;
  }
  *out_driver = driver;
  return kiln_ok();
}

// ---- The second user ----

static kiln_status_t provide_disagree(const char* what) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the software device already runs in this process with "
                 "another %s",
                 what),
      "use the same options for every runtime of the process, or release the "
      "other one first");
}

// Whether a further start fits the driver that runs.
static kiln_status_t check_agreement(const kilni_soft_driver_t* driver,
                                     const kiln_host_t* host,
                                     const wish_t* wish) {
  const kilni_soft_options_t* given = &wish->given;
  if (host->allocator.fn != driver->host.allocator.fn ||
      host->allocator.user != driver->host.allocator.user) {
    return provide_disagree("allocator");
  }
  if (given->worker_count != 0 && given->worker_count != driver->worker_count) {
    return provide_disagree("number of workers");
  }
  if (given->seed != 0 && given->seed != driver->seed) {
    return provide_disagree("seed");
  }
  if (given->lanes != NULL && strcmp(given->lanes, "auto") != 0 &&
      strcmp(given->lanes, driver->lanes->name) != 0) {
    return provide_disagree("lane code");
  }
  if (given->page_check != KILN_SWITCH_DEFAULT &&
      wish->exact != driver->exact) {
    return provide_disagree("kind of address check");
  }
  if (given->device_count != 0 && given->device_count != driver->device_count) {
    return provide_disagree("number of devices");
  }
  if (given->report != NULL && wish->report != driver->report) {
    return provide_disagree("set of errors to look for");
  }
  if (given->order != NULL && wish->latest != driver->latest) {
    return provide_disagree("order of work");
  }
  if (given->print != NULL && (given->print != driver->print ||
                               given->print_user != driver->print_user)) {
    return provide_disagree("receiver of printed text");
  }
  return kiln_ok();
}

// ---- Public ----

kiln_status_t kilni_soft_start(const kiln_host_t* host,
                               const kilni_soft_options_t* options,
                               kiln_cuda_table_t* out_table) {
  memset(out_table, 0, sizeof(*out_table));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(host));
  wish_t wish;
  KILNI_RETURN_IF_ERROR(read_wish(host, options, &wish));
  kilni_soft_global_begin();
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  kiln_status_t status;
  if (driver == NULL) {
    status = create_driver(host, &wish, &driver);
    if (kiln_status_is_ok(status)) kilni_soft_global_set(driver);
  } else {
    status = check_agreement(driver, host, &wish);
  }
  if (kiln_status_is_ok(status)) {
    ++*kilni_soft_global_users();
    *out_table = driver->table;
  }
  kilni_soft_global_unlock();
  return status;
}

void kilni_soft_stop(void) {
  if (kilni_soft_global_is_forked()) return;
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  uint32_t* users = kilni_soft_global_users();
  bool last = driver != NULL && *users > 0 && --*users == 0;
  if (last) kilni_soft_global_set(NULL);
  if (last) destroy_driver(driver);
  kilni_soft_global_unlock();
}

void kilni_soft_give_up(uint32_t device, uint64_t owner,
                        kiln_fault_t* out_place) {
  *out_place = kiln_fault_default();
  if (kilni_soft_global_is_forked()) return;
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  if (driver != NULL && device < driver->device_count) {
    kilni_base_mutex_lock(&driver->lock);
    kilni_soft_queue_give_up(driver, &driver->contexts[device], owner);
    if (driver->places[device].kind != KILN_FAULT_NONE) {
      *out_place = driver->places[device];
    }
    kilni_base_mutex_unlock(&driver->lock);
  }
  kilni_soft_global_unlock();
}

const char* kilni_soft_lanes_name(void) {
  if (kilni_soft_global_is_forked()) return NULL;
  kilni_soft_global_lock();
  const kilni_soft_driver_t* driver = kilni_soft_global_driver();
  const char* name = driver != NULL ? driver->lanes->name : NULL;
  kilni_soft_global_unlock();
  return name;
}

uint64_t kilni_soft_executed(void) {
  uint64_t executed = 0;
  if (kilni_soft_global_is_forked()) return 0;
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  if (driver != NULL) {
    kilni_base_mutex_lock(&driver->lock);
    executed = driver->queue.executed;
    kilni_base_mutex_unlock(&driver->lock);
  }
  kilni_soft_global_unlock();
  return executed;
}
