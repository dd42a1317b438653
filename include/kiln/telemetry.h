// SPDX-License-Identifier: Apache-2.0
//
// dispatch: telemetry: what a dispatcher has counted and timed.
//
// A dispatcher counts when it is made with `telemetry` on
// (kiln_dispatcher_options_t); a dispatch then adds to memory that few threads
// share, and takes no lock. When it is off, which is the default, counting is
// one branch, and all counters are zero.
//
//   kiln_telemetry_t snapshot = kiln_telemetry_default();
//   kiln_telemetry_read(dispatcher, &snapshot);
//   kiln_telemetry_format(&snapshot, NULL, sizeof(text), text, &length);
#ifndef KILN_TELEMETRY_H_
#define KILN_TELEMETRY_H_

#include <string.h>

#include "kiln/api.h"
#include "kiln/dispatch.h"
#include "kiln/pipeline.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// The counters of a dispatcher, and its current resources. thread-compatible
//
// Begin with _default. Counters are appended in later versions. A field whose
// name ends in `_ns` is a time.
typedef struct kiln_telemetry_t {
  uint32_t struct_size;  // sizeof(kiln_telemetry_t)
  uint32_t enabled;      // 0: nothing is counted

  // What there is now, whether it is counted or not.
  uint64_t resident_held_bytes;  // bytes of resident buffers that there are
  // maximum bytes of resident buffers
  uint64_t resident_peak_bytes;
  uint64_t resident_budget_bytes;  // limit for bytes of resident buffers
  uint64_t resident_buffers;       // resident buffers that there are
  uint64_t staging_held_bytes;     // bytes of pinned memory in use or kept
  // bytes of memory for dispatches in use or kept
  uint64_t transient_held_bytes;
  uint64_t transient_idle_bytes;    // bytes of memory for dispatches kept only
  uint64_t streams_made;            // own streams that were made
  uint64_t pipelines_alive;         // pipelines that there are
  uint64_t pendings_alive;          // pendings that there are
  uint64_t measured_device_max_ns;  // longest device time of a timed dispatch

  // Of the dispatcher's cache, since that was made, for all its users; 0
  // without one.
  uint64_t cache_memory_hits;  // entries of the cache found in memory
  uint64_t cache_disk_hits;    // entries of the cache found on disk
  uint64_t cache_misses;       // entries of the cache not found

  uint64_t reserved[16];  // 0

  // Counted, since the dispatcher was made or since the last reset.
  uint64_t dispatches;     // dispatches put on a stream, those of batches too
  uint64_t batches;        // batches put on streams
  uint64_t prepared_runs;  // runs of prepared dispatches
  uint64_t launches;       // kernels launched
  uint64_t launched_threads;  // threads launched
  uint64_t work_items;        // work items requested
  uint64_t work_slots;        // work items that the launched threads could do
  uint64_t uploads;           // copies from the host
  uint64_t uploaded_bytes;    // bytes copied from the host
  uint64_t downloads;         // copies to the host
  uint64_t downloaded_bytes;  // bytes copied to the host
  uint64_t staged_bytes;      // bytes that went through pinned memory
  uint64_t cleared_bytes;     // bytes of outputs filled with zero
  uint64_t transient_bytes;   // bytes of device memory for dispatches
  uint64_t transient_hits;    // memory for a dispatch that was kept
  uint64_t transient_misses;  // memory for a dispatch made anew
  uint64_t resident_bytes;    // bytes of resident buffers allocated
  uint64_t residents;         // resident buffers allocated
  uint64_t waits;             // waits for a pending or for all own streams
  uint64_t wait_ns;           // time that callers spent in those waits
  uint64_t traps;             // dispatches in which a thread trapped
  uint64_t timed_dispatches;  // dispatches with a time taken
  uint64_t timed_enqueue_ns;  // of those, time in the call
  // of those, found done: their device time is known
  uint64_t measured_dispatches;
  uint64_t measured_device_ns;   // of those found done, time on the device
  uint64_t pipelines;            // pipelines made
  uint64_t cached_pipelines;     // pipelines whose code the cache had
  uint64_t linked_pipelines;     // pipelines whose code was linked anew
  uint64_t pipeline_lower_ns;    // time that programs took to become PTX
  uint64_t pipeline_cache_ns;    // time to fetch machine code from the cache
  uint64_t pipeline_link_ns;     // time to make machine code of PTX
  uint64_t pipeline_load_ns;     // time to load code on the device
  uint64_t pipeline_ptx_bytes;   // bytes of PTX that programs became
  uint64_t pipeline_code_bytes;  // bytes of code loaded
  // Steps of sequences count as runs of prepared dispatches; kernels of replays
  // are launched by the device and counted nowhere. Traps of all three are
  // counted by the check that reports them (kiln_prepared_check,
  // kiln_sequence_check, kiln_replay_check).
  uint64_t sequence_runs;  // sequences put on a stream
  uint64_t replay_runs;    // replays put on a stream: graph launches
} kiln_telemetry_t;

// All zero but the size. Since 0.1.
static inline kiln_telemetry_t kiln_telemetry_default(void) {
  kiln_telemetry_t telemetry;
  memset(&telemetry, 0, sizeof(telemetry));
  telemetry.struct_size = (uint32_t)sizeof(telemetry);
  return telemetry;
}

// Reads everything. Each number is right; numbers of work that other threads
// put on streams meanwhile may be from before or after it. INVALID_ARGUMENT:
// NULL, or a struct_size that is not one of kiln_telemetry_t. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_telemetry_read(
    kiln_dispatcher_t* dispatcher, kiln_telemetry_t* out_telemetry);

// Begins to count from zero. Touches no cache, no buffer, no kept memory, and
// waits for nothing; what other threads count meanwhile is counted or lost.
// NULL is accepted. Since 0.1.
KILN_API void kiln_telemetry_reset(kiln_dispatcher_t* dispatcher);

// ---- As text ----

// What a snapshot is written as.
enum {
  KILN_TELEMETRY_PROMETHEUS = 0,  // its text format, version 0.0.4
  KILN_TELEMETRY_JSON = 1,
};

// A label of every sample. thread-compatible
typedef struct kiln_telemetry_label_t {
  const char* name;   // [a-zA-Z_][a-zA-Z0-9_]*, not beginning with __
  const char* value;  // any text; invalid UTF-8 is written as U+FFFD
} kiln_telemetry_label_t;

// How a snapshot is written. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_telemetry_format_t {
  uint32_t struct_size;  // sizeof(kiln_telemetry_format_t)
  uint32_t format;       // KILN_TELEMETRY_PROMETHEUS or _JSON
  const kiln_telemetry_label_t* labels;
  uint32_t label_count;  // at most 32
  uint32_t reserved;     // 0

  // The allocator for writing it. Default: the C library.
  const kiln_allocator_t* allocator;
} kiln_telemetry_format_t;

// Prometheus, no labels. Since 0.1.
static inline kiln_telemetry_format_t kiln_telemetry_format_default(void) {
  kiln_telemetry_format_t format = {
      (uint32_t)sizeof(format), 0, NULL, 0, 0, NULL};
  return format;
}

// Writes a snapshot. `format` may be NULL. At most `capacity` bytes with the
// terminating NUL (nothing at all when it is 0; `buffer` may then be NULL).
// `out_length`, if not NULL, receives the length without NUL that the whole
// text has.
//
// Prometheus: names begin with kiln_, counters end in _total, times are seconds
// and sizes bytes. JSON: one object with "enabled", "labels", "counters" (the
// fields above by their names), "now", "cache" and "rates": a rate is a
// fraction of 1, or null where nothing was counted that it would be of.
//
//   INVALID_ARGUMENT  a label's name, or one name twice; an unknown format
//   LIMIT_EXCEEDED    more than 32 labels, a text of over 1 MiB
//   INCOMPATIBLE, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_telemetry_format(
    const kiln_telemetry_t* telemetry, const kiln_telemetry_format_t* format,
    size_t capacity, char* buffer, size_t* out_length);

// ---- One pipeline ----

// How a pipeline was made: times and sizes. thread-compatible
//
// Begin with _default. Parsing and validating are over when a pipeline is made:
// that is kiln_program_parse, and its caller's to time.
typedef struct kiln_pipeline_trace_t {
  uint32_t struct_size;  // sizeof(kiln_pipeline_trace_t)
  uint32_t from_cache;   // 1: machine code came from the cache
  uint64_t lower_ns;     // from program to PTX, optimising included
  uint64_t link_ns;     // from PTX to machine code, or to find it in the cache;
                        // 0 where the driver compiles while it loads
  uint64_t load_ns;     // on the device
  uint64_t total_ns;    // of the whole call
  uint64_t ptx_bytes;   // of the text; 0 of a kernel's pipeline
  uint64_t code_bytes;  // that were loaded: machine code, or the text
} kiln_pipeline_trace_t;

// All zero but the size. Since 0.1.
static inline kiln_pipeline_trace_t kiln_pipeline_trace_default(void) {
  kiln_pipeline_trace_t trace = {(uint32_t)sizeof(trace), 0, 0, 0, 0, 0, 0, 0};
  return trace;
}

// Of a pipeline of a dispatcher with telemetry; of another one INVALID_STATE.
// INVALID_ARGUMENT as kiln_telemetry_read. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pipeline_trace(
    const kiln_pipeline_t* pipeline, kiln_pipeline_trace_t* out_trace);

KILN_EXTERN_C_END

#endif  // KILN_TELEMETRY_H_
