// SPDX-License-Identifier: Apache-2.0
//
// probe: a watch on the GPUs, inside; private to the module.
#ifndef KILN_SRC_PROBE_WATCH_INSIDE_H_
#define KILN_SRC_PROBE_WATCH_INSIDE_H_

#include "base/keep.h"
#include "kiln/watch.h"
#include "table/nvml_table.h"

enum {
  KILNI_WATCH_MAX_DEVICES = 512,    // GPUs and MIG devices
  KILNI_WATCH_MAX_PROCESSES = 256,  // of each
  KILNI_WATCH_TEXT_BYTES = 128,
  KILNI_WATCH_THROTTLE_BYTES = 160,
};

// A device of the list. one-thread
typedef struct kilni_probe_watched_t {
  kiln_nvml_device_t handle;
  bool is_mig;
  kiln_watch_device_t facts;
  char model[KILNI_WATCH_TEXT_BYTES];
  char uuid[KILNI_WATCH_TEXT_BYTES];
  char address[KILNI_WATCH_TEXT_BYTES];
  uint64_t known;  // bits of `values`
  int64_t values[KILN_WATCH_METRICS];
  kiln_watch_process_t processes[KILNI_WATCH_MAX_PROCESSES];
  char names[KILNI_WATCH_MAX_PROCESSES][KILNI_WATCH_TEXT_BYTES];
  kiln_watch_link_t links[KILN_NVML_NVLINK_MAX_LINKS];
  char remotes[KILN_NVML_NVLINK_MAX_LINKS][32];
} kilni_probe_watched_t;

struct kiln_watch_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  kilni_base_dynlib_t* library;  // NULL for a table of a test
  kiln_nvml_table_t table;
  bool in_session;
  bool pcie_traffic;
  uint32_t driver_version;
  uint32_t count;
  uint32_t capacity;
  kilni_probe_watched_t* devices;
  kiln_status_t why;
  char release[KILN_NVML_VERSION_BYTES];
  char throttle[KILNI_WATCH_THROTTLE_BYTES];
};

// Asks for everything of one device but its place in the list.
void kilni_probe_watch_ask(kiln_watch_t* watch, kilni_probe_watched_t* device);

#endif  // KILN_SRC_PROBE_WATCH_INSIDE_H_
