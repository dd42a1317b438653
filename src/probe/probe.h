// SPDX-License-Identifier: Apache-2.0
//
// probe: the public header. What runtime/ passes to the collector of facts.
#ifndef KILN_SRC_PROBE_PROBE_H_
#define KILN_SRC_PROBE_PROBE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "base/keep.h"
#include "kiln/cache.h"
#include "kiln/probe.h"
#include "kiln/watch.h"
#include "table/table.h"

// What the runtime knows or has tried. All is borrowed during the call and
// copied, but `host`, which `keep` keeps. thread-compatible
typedef struct kilni_probe_source_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  const kiln_cuda_table_t* table;  // NULL where the driver is not there
  kiln_status_t driver_status;     // why not
  bool ask_devices;                // start the driver and ask
  const char* nvrtc_path;          // NULL where NVRTC is not there
  uint32_t nvrtc_version;
  uint32_t nvrtc_scope;
  kiln_status_t nvrtc_status;  // why not; both NULL: it was not asked for
  kiln_toolkit_t* toolkit;     // what is searched with; NULL: nothing is
  const char* system_root;     // the root of the system; NULL: "/"
  // Called once the disk has been searched, to open the driver and NVRTC and
  // fill in what came of it: what is open would be found first. May be NULL.
  kiln_status_t (*open)(struct kilni_probe_source_t* source, void* user);
  void* open_user;
  // What is mapped into the process: kilni_base_dynlib_each_mapped; NULL:
  // nothing.
  void (*each_mapped)(kilni_base_dynlib_mapped_fn_t fn, void* user);
  kiln_cache_t* cache;  // Kiln's own; NULL: there is none to look at
  kiln_probe_soft_t soft;
  const char* soft_lanes_wanted;
} kilni_probe_source_t;

kiln_status_t kilni_probe_create(const kilni_probe_source_t* source,
                                 kiln_probe_t** out_probe);

// What a watch looks through. `path` is NVML's library, NULL the system's;
// `table`, if not NULL, is taken in its place. thread-compatible
typedef struct kilni_probe_watch_source_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  const char* path;
  const kiln_nvml_table_t* table;
} kilni_probe_watch_source_t;

kiln_status_t kilni_probe_watch_create(const kilni_probe_watch_source_t* source,
                                       const kiln_watch_options_t* options,
                                       kiln_watch_t** out_watch);

#endif  // KILN_SRC_PROBE_PROBE_H_
