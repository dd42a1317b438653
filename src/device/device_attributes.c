// SPDX-License-Identifier: Apache-2.0
//
// device: the attributes of a launch: each is compared with what the driver
// (launch_rules.inc) and the device know before the driver is asked, because
// that reports only "invalid value", or accepts what has no effect.
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "device/launch_check.h"

enum { PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16 };

// An attribute and what it needs. thread-safe
typedef struct rule_t {
  kiln_cu_launch_attribute_id_t id;
  uint32_t driver;
  uint32_t compute;
  uint32_t reserved;
  const char* field;
} rule_t;

static const rule_t kRules[] = {
#define KILNI_LAUNCH_RULE(id, field, driver, compute) \
  {KILN_CU_LAUNCH_ATTRIBUTE_##id, driver, compute, 0, field},
#include "device/launch_rules.inc"
#undef KILNI_LAUNCH_RULE
};

// What is being made. one-thread
typedef struct making_t {
  kiln_kernel_t* kernel;
  kiln_device_t* device;
  const kiln_launch_config_t* config;
  kiln_launch_attributes_t given;
  kilni_device_launch_how_t* how;
} making_t;

static const rule_t* rule_of(kiln_cu_launch_attribute_id_t id) {
  size_t i = 0;
  while (kRules[i].id != id) i++;
  return &kRules[i];
}

static kiln_status_t check_rule(const making_t* m, const rule_t* rule) {
  const kiln_device_info_t* info = &m->device->info;
  if (info->driver_version < rule->driver) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE,
                   "the launch attribute `%s` needs a driver for CUDA %u.%u, "
                   "and that of \"%s\" is for %u.%u",
                   rule->field, (unsigned)(rule->driver / 1000),
                   (unsigned)(rule->driver % 1000 / 10), m->device->name,
                   (unsigned)(info->driver_version / 1000),
                   (unsigned)(info->driver_version % 1000 / 10)),
        "launch without it, or install a newer NVIDIA driver");
  }
  if (info->compute_major * 10 + info->compute_minor < rule->compute) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "the launch attribute `%s` needs compute capability %u.%u, "
                   "and \"%s\" has %u.%u",
                   rule->field, (unsigned)(rule->compute / 10),
                   (unsigned)(rule->compute % 10), m->device->name,
                   (unsigned)info->compute_major,
                   (unsigned)info->compute_minor),
        "launch without it on this device");
  }
  return kiln_ok();
}

// Checks the rule of an attribute and appends it; `*out_value` is to be filled.
static kiln_status_t attributes_add(
    making_t* m, kiln_cu_launch_attribute_id_t id,
    kiln_cu_launch_attribute_value_t** out_value) {
  KILNI_RETURN_IF_ERROR(check_rule(m, rule_of(id)));
  kiln_cu_launch_attribute_t* made = &m->how->list[m->how->count++];
  memset(made, 0, sizeof(*made));
  made->id = id;
  *out_value = &made->value;
  return kiln_ok();
}
#define ADD(m, id, out_value) \
  KILNI_RETURN_IF_ERROR(      \
      attributes_add((m), KILN_CU_LAUNCH_ATTRIBUTE_##id, (out_value)))

static kiln_status_t attributes_lacks(const making_t* m, const char* field,
                                      const char* what) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "the launch attribute `%s` needs a device with %s, and \"%s\" "
                 "has none",
                 field, what, m->device->name),
      "launch without it on this device");
}

static kiln_status_t no_value(const char* field, uint64_t value,
                              const char* wanted) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the launch attribute `%s` is %llu", field,
                 (unsigned long long)value),
      "use %s", wanted);
}

// A field that this version does not know is an error and no silence.
static kiln_status_t attributes_check_given(const making_t* m) {
  const uint32_t known = KILN_LAUNCH_GIVEN_PRIORITY |
                         KILN_LAUNCH_GIVEN_CARVEOUT |
                         KILN_LAUNCH_GIVEN_SYNC_MAP;
  if ((m->given.given & ~known) == 0) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INCOMPATIBLE,
                 "the launch attribute `given` is 0x%x, and this library knows "
                 "only the bits 0x%x",
                 (unsigned)m->given.given, (unsigned)known),
      "use KILN_LAUNCH_GIVEN_* bits, and a libkiln at least as new as the "
      "headers");
}

// ---- Cooperative launches ----

static kiln_status_t add_cooperative(making_t* m) {
  if (m->given.cooperative > KILN_SWITCH_ON) {
    return no_value("cooperative", m->given.cooperative, "KILN_SWITCH_*");
  }
  if (m->given.cooperative != KILN_SWITCH_ON) return kiln_ok();
  if (!m->device->info.cooperative_launch) {
    return attributes_lacks(m, "cooperative", "cooperative launches");
  }
  kiln_cu_launch_attribute_value_t* value;
  ADD(m, COOPERATIVE, &value);
  value->cooperative = 1;
  const uint32_t* block = m->config->block;
  uint32_t each = 0;
  KILNI_RETURN_IF_ERROR(kiln_kernel_max_blocks(m->kernel,
                                               block[0] * block[1] * block[2],
                                               m->config->shared_bytes, &each));
  m->how->cooperative = true;
  m->how->resident = each;
  return kiln_ok();
}

// ---- Clusters ----

// Puts 1 for 0 where any is given.
static bool attributes_complete(const uint32_t given[3], uint32_t out[3]) {
  bool any = given[0] != 0 || given[1] != 0 || given[2] != 0;
  for (int i = 0; i < 3; i++) out[i] = any && given[i] == 0 ? 1 : given[i];
  return any;
}

// Before CUDA 13.2 a launch cannot ask for a large cluster, but its kernel can.
static kiln_status_t allow_any_size(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  const rule_t* rule =
      rule_of(KILN_CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE);
  if (m->device->info.driver_version >= rule->driver) {
    ADD(m, PORTABLE_CLUSTER_SIZE_MODE, &value);
    value->cluster_size_mode = KILN_CLUSTER_SIZE_ANY;
    return kiln_ok();
  }
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, m->device, cuFuncSetAttribute, m->kernel->handle,
                    KILN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                    1);
  return status;
}

// Blocks of a cluster; a side above every limit is as many, so that no product
// is too large for its type.
static uint64_t blocks_of(const uint32_t cluster[3]) {
  uint64_t blocks = 1;
  for (int i = 0; i < 3; i++) {
    if (cluster[i] > LARGEST_CLUSTER) return cluster[i];
    blocks *= cluster[i];
  }
  return blocks;
}

static kiln_status_t check_cluster_size(making_t* m, uint64_t blocks) {
  uint32_t mode = m->given.cluster_size;
  uint32_t limit = PORTABLE_CLUSTER;
  if (mode > KILN_CLUSTER_SIZE_ANY) {
    return no_value("cluster_size", mode, "KILN_CLUSTER_SIZE_*");
  }
  if (mode == KILN_CLUSTER_SIZE_DEFAULT && blocks > limit) {
    int32_t allowed = 0;
    KILNI_RETURN_IF_ERROR(kiln_kernel_attribute(
        m->kernel, KILN_KERNEL_ATTRIBUTE_CLUSTER_NON_PORTABLE, &allowed));
    if (allowed != 0) limit = LARGEST_CLUSTER;
  }
  if (mode == KILN_CLUSTER_SIZE_ANY) limit = LARGEST_CLUSTER;
  if (blocks > limit) {
    return kilni_device_launch_over(
        m->kernel, "the number of blocks in a cluster", blocks, limit,
        limit == PORTABLE_CLUSTER ? "a portable cluster"
                                  : "the largest cluster");
  }
  return mode == KILN_CLUSTER_SIZE_ANY ? allow_any_size(m) : kiln_ok();
}

static kiln_status_t check_required_cluster(const making_t* m) {
  static const uint32_t kWhich[] = {KILN_KERNEL_ATTRIBUTE_CLUSTER_WIDTH,
                                    KILN_KERNEL_ATTRIBUTE_CLUSTER_HEIGHT,
                                    KILN_KERNEL_ATTRIBUTE_CLUSTER_DEPTH};
  const uint32_t* cluster = m->how->cluster;
  int32_t required[3] = {0, 0, 0};
  for (int i = 0; i < 3; i++) {
    KILNI_RETURN_IF_ERROR(
        kiln_kernel_attribute(m->kernel, kWhich[i], &required[i]));
  }
  if (required[0] <= 0 || ((uint32_t)required[0] == cluster[0] &&
                           (uint32_t)required[1] == cluster[1] &&
                           (uint32_t)required[2] == cluster[2])) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "kernel \"%s\" requires clusters of %d,%d,%d and is launched "
                 "with %u,%u,%u",
                 m->kernel->name, (int)required[0], (int)required[1],
                 (int)required[2], (unsigned)cluster[0], (unsigned)cluster[1],
                 (unsigned)cluster[2]),
      "use its clusters, or leave `cluster` 0");
}

static kiln_status_t add_preferred(making_t* m) {
  uint32_t* wanted = m->how->preferred;
  if (!attributes_complete(m->given.preferred_cluster, wanted)) {
    return kiln_ok();
  }
  const uint32_t* cluster = m->how->cluster;
  for (int i = 0; i < 3; i++) {
    if (cluster[0] != 0 && wanted[i] % cluster[i] == 0 &&
        (i < 2 || wanted[i] == cluster[i])) {
      continue;
    }
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the launch attribute `preferred_cluster` is %u,%u,%u with "
                   "a `cluster` of %u,%u,%u",
                   (unsigned)wanted[0], (unsigned)wanted[1],
                   (unsigned)wanted[2], (unsigned)cluster[0],
                   (unsigned)cluster[1], (unsigned)cluster[2]),
        "use multiples of `cluster`, and the same z");
  }
  kiln_cu_launch_attribute_value_t* value;
  ADD(m, PREFERRED_CLUSTER_DIMENSION, &value);
  value->preferred_cluster.x = wanted[0];
  value->preferred_cluster.y = wanted[1];
  value->preferred_cluster.z = wanted[2];
  return kiln_ok();
}

static kiln_status_t add_clusters(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  uint32_t* cluster = m->how->cluster;
  if (m->given.cluster_policy > KILN_CLUSTER_POLICY_BALANCE) {
    return no_value("cluster_policy", m->given.cluster_policy,
                    "KILN_CLUSTER_POLICY_*");
  }
  bool any = attributes_complete(m->given.cluster, cluster);
  if ((any || m->given.cluster_policy != 0) &&
      !m->device->info.cluster_launch) {
    return attributes_lacks(m, any ? "cluster" : "cluster_policy", "clusters");
  }
  if (any) {
    KILNI_RETURN_IF_ERROR(check_required_cluster(m));
    KILNI_RETURN_IF_ERROR(check_cluster_size(m, blocks_of(cluster)));
    ADD(m, CLUSTER_DIMENSION, &value);
    value->cluster.x = cluster[0];
    value->cluster.y = cluster[1];
    value->cluster.z = cluster[2];
  }
  if (m->given.cluster_policy != 0) {
    ADD(m, CLUSTER_SCHEDULING_POLICY_PREFERENCE, &value);
    value->cluster_policy = (int)m->given.cluster_policy;
  }
  return add_preferred(m);
}

kiln_status_t kilni_device_launch_check_resident(
    const kiln_kernel_t* kernel, const kilni_device_launch_how_t* how,
    const kiln_device_t* device, uint64_t blocks) {
  const uint64_t most = (uint64_t)how->resident * device->info.multiprocessors;
  if (!how->cooperative || blocks <= most) return kiln_ok();
  char whose[KILNI_DEVICE_NAME_BYTES + 32];
  snprintf(whose, sizeof(whose), "\"%s\" at once", device->name);
  return kilni_device_launch_over(
      kernel, "the number of blocks of a cooperative launch", blocks, most,
      whose);
}

kiln_status_t kilni_device_launch_check_grid(
    const kiln_kernel_t* kernel, const kilni_device_launch_how_t* how,
    const uint32_t grid[3]) {
  static const char* const kNames[] = {"x", "y", "z"};
  // A kernel of a part goes with streams of the whole device too.
  KILNI_RETURN_IF_ERROR(kilni_device_launch_check_resident(
      kernel, how, kernel->module->device->whole,
      (uint64_t)grid[0] * grid[1] * grid[2]));
  for (int i = 0; i < 3 && how->cluster[0] != 0; i++) {
    uint32_t cluster =
        how->preferred[0] != 0 ? how->preferred[i] : how->cluster[i];
    if (grid[i] % cluster == 0) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "kernel \"%s\": grid.%s is %u, which clusters of %u do not "
                   "divide",
                   kernel->name, kNames[i], (unsigned)grid[i],
                   (unsigned)cluster),
        "make the grid, which counts blocks, a multiple of the cluster");
  }
  return kiln_ok();
}

// A kernel may be made for clusters, of a size that the driver knows, or one
// that each launch specifies.
static kiln_status_t take_own_cluster(const kiln_kernel_t* kernel,
                                      kilni_device_launch_how_t* how) {
  if (!kernel->in_clusters || how->cluster[0] != 0) return kiln_ok();
  if (kernel->cluster[0] != 0) {
    memcpy(how->cluster, kernel->cluster, sizeof(how->cluster));
    return kiln_ok();
  }
  if (!kernel->module->device->info.cluster_launch) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "kernel \"%s\" is launched in clusters only, and \"%s\" "
                   "has none",
                   kernel->name, kernel->module->device->name),
        "run it on a GPU of compute capability 9.0 or newer");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "kernel \"%s\" is launched in clusters only",
                 kernel->name),
      "give a `cluster` in the attributes of the launch");
}

// ---- Events ----

static kiln_status_t check_event(const making_t* m, const char* field,
                                 const kiln_event_t* event) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_same(m->device, event->device, "an event"));
  if (event->timing != KILN_SWITCH_ON &&
      event->interprocess != KILN_SWITCH_ON) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the launch attribute `%s` is an event %s",
                 field,
                 event->timing == KILN_SWITCH_ON ? "with timing"
                                                 : "for other processes"),
      "make the event without options");
}

static kiln_status_t add_events(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  kiln_event_t* event = m->given.programmatic_event;
  if (m->given.trigger_at_start > KILN_SWITCH_ON) {
    return no_value("trigger_at_start", m->given.trigger_at_start,
                    "KILN_SWITCH_*");
  }
  if (event != NULL) {
    KILNI_RETURN_IF_ERROR(check_event(m, "programmatic_event", event));
    ADD(m, PROGRAMMATIC_EVENT, &value);
    value->programmatic_event.event = event->handle;
    value->programmatic_event.trigger_at_block_start =
        m->given.trigger_at_start == KILN_SWITCH_ON;
    m->how->recorded[0] = event;
  }
  event = m->given.completion_event;
  if (event == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(check_event(m, "completion_event", event));
  ADD(m, LAUNCH_COMPLETION_EVENT, &value);
  value->completion_event.event = event->handle;
  m->how->recorded[1] = event;
  return kiln_ok();
}

void kilni_device_launch_mark_recorded(const kilni_device_launch_how_t* how) {
  for (int i = 0; i < 2; i++) {
    if (how->recorded[i] == NULL) continue;
    atomic_store_explicit(&how->recorded[i]->recorded, true,
                          memory_order_release);
  }
}

// ---- Memory ----

static kiln_status_t add_domains(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  uint32_t domain = m->given.sync_domain;
  uint32_t count = m->device->info.sync_domains;
  if (domain > KILN_SYNC_DOMAIN_REMOTE) {
    return no_value("sync_domain", domain, "KILN_SYNC_DOMAIN_*");
  }
  if (domain != KILN_SYNC_DOMAIN_UNSAID) {
    if (count == 0) {
      return attributes_lacks(m, "sync_domain", "synchronization domains");
    }
    ADD(m, MEM_SYNC_DOMAIN, &value);
    value->sync_domain = domain == KILN_SYNC_DOMAIN_REMOTE;
  }
  if ((m->given.given & KILN_LAUNCH_GIVEN_SYNC_MAP) == 0) return kiln_ok();
  uint32_t greatest = m->given.sync_map_default > m->given.sync_map_remote
                          ? m->given.sync_map_default
                          : m->given.sync_map_remote;
  if (count == 0) {
    return attributes_lacks(m, "sync_map_default", "synchronization domains");
  }
  if (greatest >= count) {
    return kilni_device_launch_over(m->kernel, "the number of a memory domain",
                                    greatest, count - 1, "the device");
  }
  ADD(m, MEM_SYNC_DOMAIN_MAP, &value);
  value->sync_map.normal = (unsigned char)m->given.sync_map_default;
  value->sync_map.remote = (unsigned char)m->given.sync_map_remote;
  return kiln_ok();
}

static kiln_status_t check_window(const making_t* m) {
  const kiln_launch_attributes_t* given = &m->given;
  uint32_t most = m->device->info.window_bytes;
  if (most == 0) {
    return attributes_lacks(m, "window_bytes", "access policy windows");
  }
  if (given->window_bytes > most) {
    return kilni_device_launch_over(
        m->kernel, "the size of the access policy window in bytes",
        given->window_bytes, most, "the device");
  }
  if (given->window_hit > KILN_CACHE_ACCESS_PERSISTING) {
    return no_value("window_hit", given->window_hit, "KILN_CACHE_ACCESS_*");
  }
  if (given->window_miss > KILN_CACHE_ACCESS_STREAMING) {
    return no_value("window_miss", given->window_miss,
                    "KILN_CACHE_ACCESS_NORMAL or KILN_CACHE_ACCESS_STREAMING");
  }
  if (given->window_ratio >= 0.0f && given->window_ratio <= 1.0f) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the launch attribute `window_ratio` is %g",
                 (double)given->window_ratio),
      "use a ratio from 0 to 1");
}

static kiln_status_t attributes_add_window(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  if (m->given.window_bytes == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(check_window(m));
  ADD(m, ACCESS_POLICY_WINDOW, &value);
  value->window.address = (void*)(uintptr_t)m->given.window_address;
  value->window.bytes = (size_t)m->given.window_bytes;
  value->window.hit_ratio = m->given.window_ratio;
  value->window.hit = m->given.window_hit;
  value->window.miss = m->given.window_miss;
  return kiln_ok();
}

static kiln_status_t add_shared(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  if ((m->given.given & KILN_LAUNCH_GIVEN_CARVEOUT) != 0) {
    if (m->given.carveout > 100) {
      return no_value("carveout", m->given.carveout, "a percentage");
    }
    ADD(m, PREFERRED_SHARED_MEMORY_CARVEOUT, &value);
    value->carveout = m->given.carveout;
  }
  if (m->given.shared_mode == KILN_SHARED_MODE_DEFAULT) return kiln_ok();
  if (m->given.shared_mode > KILN_SHARED_MODE_PREFER_OVERSIZED) {
    return no_value("shared_mode", m->given.shared_mode, "KILN_SHARED_MODE_*");
  }
  ADD(m, SHARED_MEMORY_MODE, &value);
  value->shared_mode = m->given.shared_mode;
  return kiln_ok();
}

// ---- Order and place ----

static kiln_status_t add_priority(making_t* m) {
  if ((m->given.given & KILN_LAUNCH_GIVEN_PRIORITY) == 0) return kiln_ok();
  int32_t least = 0;
  int32_t greatest = 0;
  int32_t wanted = m->given.priority;
  KILNI_RETURN_IF_ERROR(kiln_device_priorities(m->device, &least, &greatest));
  if (wanted < greatest || wanted > least) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "the launch attribute `priority` is %d, and \"%s\" has %d "
                   "to %d",
                   (int)wanted, m->device->name, (int)greatest, (int)least),
        "use a priority from %d to %d", (int)greatest, (int)least);
  }
  kiln_cu_launch_attribute_value_t* value;
  ADD(m, PRIORITY, &value);
  value->priority = wanted;
  return kiln_ok();
}

static kiln_status_t add_switches(making_t* m) {
  kiln_cu_launch_attribute_value_t* value;
  if (m->given.overlap > KILN_SWITCH_ON) {
    return no_value("overlap", m->given.overlap, "KILN_SWITCH_*");
  }
  if (m->given.nvlink_centric > KILN_SWITCH_ON) {
    return no_value("nvlink_centric", m->given.nvlink_centric, "KILN_SWITCH_*");
  }
  if (m->given.overlap == KILN_SWITCH_ON) {
    ADD(m, PROGRAMMATIC_STREAM_SERIALIZATION, &value);
    value->programmatic_serialization = 1;
  }
  if (m->given.nvlink_centric != KILN_SWITCH_DEFAULT) {
    ADD(m, NVLINK_UTIL_CENTRIC_SCHEDULING, &value);
    value->nvlink_centric = m->given.nvlink_centric == KILN_SWITCH_ON;
  }
  return kiln_ok();
}

kiln_status_t kilni_device_launch_how(kiln_kernel_t* kernel,
                                      const kiln_launch_config_t* config,
                                      kilni_device_launch_how_t* out_how) {
  memset(out_how, 0, offsetof(kilni_device_launch_how_t, list));
  if (config->attributes == NULL) {
    KILNI_RETURN_IF_ERROR(take_own_cluster(kernel, out_how));
    return kilni_device_launch_check_grid(kernel, out_how, config->grid);
  }
  making_t m;
  memset(&m, 0, sizeof(m));
  m.kernel = kernel;
  m.device = kernel->module->device;
  m.config = config;
  m.how = out_how;
  KILNI_RETURN_IF_ERROR(KILNI_OPTIONS_READ(config->attributes,
                                           kiln_launch_attributes_t, &m.given));
  KILNI_RETURN_IF_ERROR(attributes_check_given(&m));
  KILNI_RETURN_IF_ERROR(add_cooperative(&m));
  KILNI_RETURN_IF_ERROR(add_clusters(&m));
  KILNI_RETURN_IF_ERROR(take_own_cluster(kernel, out_how));
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_check_grid(kernel, out_how, config->grid));
  KILNI_RETURN_IF_ERROR(add_switches(&m));
  KILNI_RETURN_IF_ERROR(add_events(&m));
  KILNI_RETURN_IF_ERROR(add_priority(&m));
  KILNI_RETURN_IF_ERROR(add_domains(&m));
  KILNI_RETURN_IF_ERROR(attributes_add_window(&m));
  return add_shared(&m);
}
