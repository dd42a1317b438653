// SPDX-License-Identifier: Apache-2.0
//
// device: parts of a device: green contexts as devices.
//
// A part is a device whose context is a green one. It has a registry and pools
// of its own, since streams and events are of a context, and everything else
// from the device that was split, which it retains. The driver's interface
// cannot destroy descriptors of resources: they are not handles.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

enum { MOST_PARTS = 256 };

// What is split, how, and into what. one-thread
typedef struct split_t {
  kiln_device_t* device;
  kiln_cu_dev_resource_t all;
  unsigned int least;
  unsigned int flags;
  unsigned int count;  // of `parts`
  kiln_cu_dev_resource_t* parts;
  kiln_cu_dev_resource_t rest;
} split_t;

kiln_device_t* kiln_device_parent(const kiln_device_t* device) {
  return device->parent;
}

// ---- The end of a part ----

// A context that is current for the caller would be a dangling one afterwards.
static bool is_current(const kiln_device_t* device) {
  kiln_cu_context_t current = NULL;
  return device->table->cuCtxGetCurrent(&current) == KILN_CU_SUCCESS &&
         current == device->context;
}

void kilni_device_green_end(kiln_device_t* device) {
  if (kilni_device_is_lost(device)) return;
  if (device->context != NULL && is_current(device)) {
    KILNI_LOG(&device->host->log, WARNING,
              "the context of \"%s\" is left in place: it is current for the "
              "thread that releases it",
              device->name);
    return;
  }
  KILNI_DEVICE_END(device, cuGreenCtxDestroy, device->green);
}

// ---- What there is to split ----

static kiln_status_t green_ask_all(split_t* split) {
  kiln_device_t* device = split->device;
  kiln_status_t status;
  memset(&split->all, 0, sizeof(split->all));
  if (device->parent != NULL) {
    KILNI_DEVICE_CALL(status, device, cuGreenCtxGetDevResource, device->green,
                      &split->all, KILN_CU_DEV_RESOURCE_TYPE_SM);
  } else {
    KILNI_DEVICE_CALL(status, device, cuDeviceGetDevResource, device->handle,
                      &split->all, KILN_CU_DEV_RESOURCE_TYPE_SM);
  }
  return status;
}

static kiln_status_t check_least(const split_t* split) {
  if (split->least <= split->all.of.sm.count) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "parts of %u multiprocessors, of which \"%s\" has %u",
                 split->least, split->device->name, split->all.of.sm.count),
      "set `multiprocessors` in kiln_split_options_t to %u or less",
      split->all.of.sm.count);
}

// How many parts there would be.
static kiln_status_t ask_count(split_t* split, unsigned int* out_count) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, split->device, cuDevSmResourceSplitByCount, NULL,
                    out_count, &split->all, NULL, split->flags, split->least);
  return status;
}

static kiln_status_t green_begin(split_t* split, kiln_device_t* device,
                                 const kiln_split_options_t* options,
                                 unsigned int* out_count) {
  kiln_split_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_split_options_t",
                                                sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.single <= KILN_SWITCH_ON, "options.single");
  KILNI_CHECK_ARGUMENT(given.large_clusters <= KILN_SWITCH_ON,
                       "options.large_clusters");
  KILNI_CHECK_ARGUMENT_SAYS(
      given.single != KILN_SWITCH_ON || given.large_clusters != KILN_SWITCH_ON,
      "options.large_clusters", "is on, and so is `single`",
      "switch on one of the two");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuDevSmResourceSplitByCount));
  memset(split, 0, sizeof(*split));
  split->device = device;
  if (given.single == KILN_SWITCH_ON) {
    split->flags |= KILN_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
  }
  if (given.large_clusters == KILN_SWITCH_ON) {
    split->flags |= KILN_CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  }
  KILNI_RETURN_IF_ERROR(green_ask_all(split));
  // A driver takes 0, and rounds up.
  split->least = given.multiprocessors;
  KILNI_RETURN_IF_ERROR(check_least(split));
  return ask_count(split, out_count);
}

static void green_end(split_t* split) {
  kilni_base_free_array(split->device->host->allocator, split->parts,
                        split->count, sizeof(*split->parts));
}

// Splits into `count` parts, as values: nothing is made yet.
static kiln_status_t green_cut(split_t* split, unsigned int count) {
  kiln_device_t* device = split->device;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(device->host->allocator, count,
                                               sizeof(*split->parts), &block));
  split->parts = block;
  split->count = count;
  unsigned int made = count;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDevSmResourceSplitByCount, split->parts,
                    &made, &split->all, &split->rest, split->flags,
                    split->least);
  if (!kiln_status_is_ok(status) || made == count) return status;
  return kilni_base_status_with_fix(
      KILNI_FAIL(DRIVER_ERROR,
                 "the driver split \"%s\" into %u parts, not into the %u that "
                 "it had reported",
                 device->name, made, count),
      "ask for fewer parts, or update the driver");
}

kiln_status_t kiln_device_query_split(kiln_device_t* device,
                                      const kiln_split_options_t* options,
                                      kiln_split_t* out_split) {
  KILNI_CHECK_ARGUMENT(out_split != NULL, "out_split");
  memset(out_split, 0, sizeof(*out_split));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  split_t split;
  unsigned int count = 0;
  KILNI_RETURN_IF_ERROR(green_begin(&split, device, options, &count));
  kiln_status_t status = kiln_ok();
  kiln_split_t found = {count, 0, split.all.of.sm.count, split.all.of.sm.count};
  if (count > 0) {
    status = green_cut(&split, count);
    if (kiln_status_is_ok(status)) {
      found.multiprocessors = split.parts[0].of.sm.count;
      found.rest = split.rest.of.sm.count;
    }
    green_end(&split);
  }
  if (kiln_status_is_ok(status)) *out_split = found;
  return status;
}

// ---- Making a part ----

static kiln_status_t green_make_context(kiln_device_t* part,
                                        kiln_cu_dev_resource_t* resource) {
  kiln_device_t* device = part->parent;
  kiln_cu_resource_desc_t desc = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDevResourceGenerateDesc, &desc, resource,
                    1);
  KILNI_RETURN_IF_ERROR(status);
  KILNI_DEVICE_CREATE(status, device, &part->green, cuGreenCtxCreate, desc,
                      device->handle, KILN_CU_GREEN_CTX_DEFAULT_STREAM);
  // From here on the part's release destroys it.
  part->has_context = part->green != NULL;
  KILNI_RETURN_IF_ERROR(status);
  KILNI_DEVICE_CALL(status, device, cuCtxFromGreenCtx, &part->context,
                    part->green);
  return status;
}

static kiln_status_t green_start(kiln_device_t* part,
                                 kiln_cu_dev_resource_t* resource) {
  KILNI_RETURN_IF_ERROR(kilni_base_registry_init(&part->registry));
  part->has_registry = true;
  KILNI_RETURN_IF_ERROR(kilni_device_pools_init(&part->pools));
  part->has_pools = true;
  return green_make_context(part, resource);
}

// What a part has from the device that was split.
static void inherit(kiln_device_t* part, kiln_device_t* device) {
  part->host = device->host;
  part->keep = device->keep;
  kilni_base_keep_retain(part->keep);
  part->table = device->table;
  part->whole = device->whole;
  part->parent = device;
  kiln_device_retain(device);
  part->handle = device->handle;
  part->fault = device->fault;
  part->name_node = device->name_node;
  part->act_for = device->act_for;
  part->offer = device->offer;
  part->give_up = device->give_up;
  part->executed = device->executed;
  part->info = device->info;
  memcpy(part->model, device->model, sizeof(part->model));
  part->info.model = part->model;
}

static kiln_status_t make_part(kiln_device_t* device, const char* called,
                               kiln_cu_dev_resource_t* resource,
                               kiln_device_t** out_part) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_device_t), &block));
  kiln_device_t* part = block;
  inherit(part, device);
  part->info.multiprocessors = resource->of.sm.count;
  atomic_init(&part->references, 1);
  atomic_init(&part->lost, false);
  atomic_init(&part->place_state, KILNI_PLACE_NONE);
  snprintf(part->name, sizeof(part->name), "%.*s/%s",
           KILNI_DEVICE_NAME_BYTES - 16, device->name, called);
  kiln_status_t status = green_start(part, resource);
  if (!kiln_status_is_ok(status)) {
    status = KILNI_ANNOTATE(status, "making \"%s\" of %u multiprocessors",
                            part->name, resource->of.sm.count);
    kiln_device_release(part);
    return status;
  }
  *out_part = part;
  return kiln_ok();
}

static kiln_status_t green_make_parts(split_t* split, kiln_device_t** out_parts,
                                      kiln_device_t** out_rest) {
  for (unsigned int i = 0; i < split->count; i++) {
    char called[12];
    snprintf(called, sizeof(called), "%u", i);
    KILNI_RETURN_IF_ERROR(
        make_part(split->device, called, &split->parts[i], &out_parts[i]));
  }
  if (out_rest == NULL || split->rest.of.sm.count == 0) return kiln_ok();
  return make_part(split->device, "rest", &split->rest, out_rest);
}

static kiln_status_t green_check_count(const split_t* split, uint32_t wanted,
                                       unsigned int most) {
  if (wanted <= most) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "%u parts of at least %u multiprocessors: \"%s\", which has "
                 "%u, can be split into %u",
                 (unsigned)wanted, split->least, split->device->name,
                 split->all.of.sm.count, most),
      "ask for no more than kiln_device_query_split reports, or for smaller "
      "ones");
}

kiln_status_t kiln_device_split(kiln_device_t* device,
                                const kiln_split_options_t* options,
                                uint32_t part_count, kiln_device_t** out_parts,
                                kiln_device_t** out_rest) {
  if (out_rest != NULL) *out_rest = NULL;
  KILNI_CHECK_ARGUMENT(out_parts != NULL, "out_parts");
  KILNI_CHECK_ARGUMENT_SAYS(part_count > 0 && part_count <= MOST_PARTS,
                            "part_count", "is 0, or over the limit of 256",
                            "pass 1 to 256 parts");
  memset(out_parts, 0, part_count * sizeof(*out_parts));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  split_t split;
  unsigned int most = 0;
  KILNI_RETURN_IF_ERROR(green_begin(&split, device, options, &most));
  KILNI_RETURN_IF_ERROR(green_check_count(&split, part_count, most));
  kiln_status_t status = green_cut(&split, part_count);
  if (kiln_status_is_ok(status)) {
    status = green_make_parts(&split, out_parts, out_rest);
  }
  green_end(&split);
  if (kiln_status_is_ok(status)) return kiln_ok();
  for (uint32_t i = 0; i < part_count; i++) {
    kiln_device_release(out_parts[i]);
    out_parts[i] = NULL;
  }
  return status;
}
