// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the fields of kiln_telemetry_t as lists: numbers of counters and
// both texts are made of them.
#ifndef KILN_SRC_DISPATCH_TELEMETRY_FIELDS_H_
#define KILN_SRC_DISPATCH_TELEMETRY_FIELDS_H_

#include "kiln/telemetry.h"

// What there is now: a field, and what it is.
#define KILNI_TELEMETRY_GAUGES(X)                                           \
  X(resident_held_bytes, "bytes of resident buffers that exist")            \
  X(resident_peak_bytes, "maximum of the bytes of resident buffers so far") \
  X(resident_budget_bytes, "limit on the bytes of resident buffers")        \
  X(resident_buffers, "resident buffers that exist")                        \
  X(staging_held_bytes, "bytes of pinned memory in use or kept")            \
  X(transient_held_bytes, "bytes of memory for dispatches in use or kept")  \
  X(transient_idle_bytes, "bytes of memory for dispatches kept only")       \
  X(streams_made, "own streams that were made")                             \
  X(pipelines_alive, "pipelines that exist")                                \
  X(pendings_alive, "pendings that exist")                                  \
  X(measured_device_max_ns, "longest device time of a timed dispatch")

// Of the cache.
#define KILNI_TELEMETRY_CACHE(X)                               \
  X(cache_memory_hits, "entries of the cache found in memory") \
  X(cache_disk_hits, "entries of the cache found on disk")     \
  X(cache_misses, "entries of the cache not found")

// What is counted: its name inside, the field, and what one of it is.
#define KILNI_TELEMETRY_COUNTERS(X)                                            \
  X(DISPATCHES, dispatches,                                                    \
    "dispatches put on a stream, those of batches too")                        \
  X(BATCHES, batches, "batches put on streams")                                \
  X(PREPARED_RUNS, prepared_runs, "runs of prepared dispatches")               \
  X(LAUNCHES, launches, "kernels launched")                                    \
  X(THREADS, launched_threads, "threads launched")                             \
  X(WORK, work_items, "work items requested")                                  \
  X(WORK_SLOTS, work_slots, "work items that the launched threads could do")   \
  X(UPLOADS, uploads, "copies from the host")                                  \
  X(UPLOADED_BYTES, uploaded_bytes, "bytes copied from the host")              \
  X(DOWNLOADS, downloads, "copies to the host")                                \
  X(DOWNLOADED_BYTES, downloaded_bytes, "bytes copied to the host")            \
  X(STAGED_BYTES, staged_bytes, "bytes that went through pinned memory")       \
  X(CLEARED_BYTES, cleared_bytes, "bytes of outputs filled with zero")         \
  X(TRANSIENT_BYTES, transient_bytes, "bytes of device memory for dispatches") \
  X(TRANSIENT_HITS, transient_hits, "memory for a dispatch that was reused")   \
  X(TRANSIENT_MISSES, transient_misses,                                        \
    "memory for a dispatch newly allocated")                                   \
  X(RESIDENT_BYTES, resident_bytes, "bytes of resident buffers allocated")     \
  X(RESIDENTS, residents, "resident buffers allocated")                        \
  X(WAITS, waits, "waits for a pending or for all own streams")                \
  X(WAIT_NS, wait_ns, "time that callers spent in those waits")                \
  X(TRAPS, traps, "dispatches in which a thread trapped")                      \
  X(TIMED_DISPATCHES, timed_dispatches, "dispatches that were timed")          \
  X(TIMED_ENQUEUE_NS, timed_enqueue_ns, "of those, time in the call")          \
  X(MEASURED, measured_dispatches,                                             \
    "of those, found finished: their device time is known")                    \
  X(MEASURED_NS, measured_device_ns,                                           \
    "of those found finished, time on the device")                             \
  X(PIPELINES, pipelines, "pipelines made")                                    \
  X(CACHED_PIPELINES, cached_pipelines, "pipelines whose code the cache had")  \
  X(LINKED_PIPELINES, linked_pipelines,                                        \
    "pipelines whose code was newly linked")                                   \
  X(LOWER_NS, pipeline_lower_ns, "time that programs took to become PTX")      \
  X(CACHE_NS, pipeline_cache_ns, "time to fetch machine code from the cache")  \
  X(LINK_NS, pipeline_link_ns, "time to make machine code of PTX")             \
  X(LOAD_NS, pipeline_load_ns, "time to load code on the device")              \
  X(PTX_BYTES, pipeline_ptx_bytes, "bytes of PTX that programs became")        \
  X(CODE_BYTES, pipeline_code_bytes, "bytes of code loaded")                   \
  X(SEQUENCE_RUNS, sequence_runs, "sequences put on a stream")                 \
  X(REPLAY_RUNS, replay_runs, "replays put on a stream: graph launches")

#define KILNI_TELEMETRY_ONE(...) +1
_Static_assert(
    sizeof(kiln_telemetry_t) ==
        sizeof(uint64_t) *
            (1 + 16 +
             (0 KILNI_TELEMETRY_GAUGES(KILNI_TELEMETRY_ONE)
                  KILNI_TELEMETRY_CACHE(KILNI_TELEMETRY_ONE)
                      KILNI_TELEMETRY_COUNTERS(KILNI_TELEMETRY_ONE))),
    "every field is in a list");

#endif  // KILN_SRC_DISPATCH_TELEMETRY_FIELDS_H_
