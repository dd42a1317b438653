// SPDX-License-Identifier: Apache-2.0
//
// dispatch: a dispatcher: what pipelines of one device share; and pendings,
// work that is under way.
//
// A dispatcher has streams of its own, pinned memory that pageable memory is
// copied through, a table of resident buffers (kiln/resident.h) and a budget.
// Pipelines (kiln/pipeline.h) are made from it and dispatched on it.
//
// Order. Every call that puts work on a device takes a stream, the caller's
// own; NULL is the dispatcher's first stream, so that calls without a stream
// run in the order in which they were made, whatever thread made them. What
// uses the same memory on two streams is ordered by the caller, with events,
// as everywhere.
#ifndef KILN_DISPATCH_H_
#define KILN_DISPATCH_H_

#include "kiln/api.h"
#include "kiln/cache.h"
#include "kiln/device.h"
#include "kiln/link.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// What pipelines of one device share. thread-safe
//
// Reference-counted. Retains its device; pipelines, prepared dispatches and
// pendings retain theirs.
//
// Once the device is lost every call that would use it is DEVICE_LOST, and
// nothing that the device may still use is freed. The context is never reset:
// it is the process's.
typedef struct kiln_dispatcher_t kiln_dispatcher_t;

// How a dispatcher is made. thread-compatible
//
// Zero in any field is its default. What is pointed at is retained.
typedef struct kiln_dispatcher_options_t {
  uint32_t struct_size;  // sizeof(kiln_dispatcher_options_t)

  // Streams of its own, over which batches are spread. Default: 4; at most 64.
  uint32_t streams;

  // Threads that copy a chunk between pageable and pinned memory together: the
  // calling one, which also hands chunks to the device, and the others, which
  // are started when they are first needed. Default: 1, which starts none: the
  // calling thread copies alone; at most 16.
  uint32_t copy_threads;

  // KILN_SWITCH_*: count and time what is done (kiln/telemetry.h). Default:
  // off, which costs nothing.
  uint32_t telemetry;

  // Pinned memory that pageable memory is copied through, in chunks. Nothing
  // is allocated before it is needed. Default: 32 MiB in chunks of 4 MiB; at
  // least one chunk, a chunk from 4 KiB to 1 GiB, at most 1024 chunks.
  uint64_t staging_bytes;
  uint64_t staging_chunk_bytes;

  // Device memory for the work of a dispatch (bindings of host memory) that is
  // kept for the next one, on all own streams together. Default: 256 MiB.
  uint64_t transient_bytes;

  // What resident buffers may take in all; more is DEVICE_OUT_OF_MEMORY. The
  // device is asked for its free memory once, when the dispatcher is made.
  // Default: nine tenths of what is free then.
  uint64_t resident_bytes;

  // Where machine code of pipelines is kept, and what makes it of PTX
  // (kiln_runtime_cache, kiln_runtime_open_linker with this device). Both or
  // none. Default: none; the driver compiles PTX whenever a pipeline is made,
  // unless its own cache has it.
  kiln_cache_t* cache;
  kiln_linker_t* linker;

  // KILN_SWITCH_*: tell a profiler through NVTX when dispatches, batches, runs
  // of prepared dispatches and the making of pipelines begin and end on the
  // host, by their labels, in the domain "kiln". On: to what the profiler
  // names in NVTX_INJECTION64_PATH, or else to libnvToolsExt.so.1, if one is
  // there. Default: where that variable is set. Without one of them, and when
  // it is off, it costs a branch.
  uint32_t ranges;
  uint32_t reserved;  // 0
} kiln_dispatcher_options_t;

// All defaults. Since 0.1.
static inline kiln_dispatcher_options_t kiln_dispatcher_options_default(void) {
  kiln_dispatcher_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0};
  return options;
}

// Makes a dispatcher. `options` may be NULL. Asks the device for its free
// memory and makes one stream; everything else is made when it is needed, or by
// kiln_dispatcher_warm.
//
//   INVALID_ARGUMENT  an option out of its range, a cache without a linker or
//                     the other way round
//   INCOMPATIBLE      options of a newer Kiln that set an unknown field
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_dispatcher`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_dispatcher_create(
    kiln_device_t* device, const kiln_dispatcher_options_t* options,
    kiln_dispatcher_t** out_dispatcher);

// One reference more, one less. NULL is accepted. Resident buffers that were
// not freed are freed behind the work that uses them. The last release waits
// for copies through its pinned memory, and for dispatches whose code can trap
// and whose pending nobody waited for. Since 0.1.
KILN_API void kiln_dispatcher_retain(kiln_dispatcher_t* dispatcher);
KILN_API void kiln_dispatcher_release(kiln_dispatcher_t* dispatcher);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_dispatcher_device(
    const kiln_dispatcher_t* dispatcher);

// Makes now what would be made later: all own streams, the pinned memory, the
// threads that copy; and uses each once, so that no dispatch pays for it. From
// any thread, whatever context is current there; again, it does nothing.
// DEVICE_OUT_OF_MEMORY, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dispatcher_warm(kiln_dispatcher_t* dispatcher);

// Waits for everything that was dispatched on own streams, and for what
// resident buffers wait to be freed behind; then gives back all that is kept:
// pinned memory, that of traps too, transient memory, threads; references to
// callers' streams, which later frees stay behind; and the events, streams and
// blocks that the device keeps for its own use, whoever used them. Resident
// buffers, own streams and pipelines stay, and what is in use, also by work on
// a caller's stream; but drivers that are given back pinned memory wait for the
// whole device. What is used again is made again. DEVICE_LOST, DRIVER_ERROR.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dispatcher_clean(kiln_dispatcher_t* dispatcher);

// Waits for everything on the dispatcher's own streams. A fault of a kernel is
// DEVICE_LOST; a trap is told by its pending, and by kiln_prepared_check.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dispatcher_synchronize(kiln_dispatcher_t* dispatcher);

// How many own streams there are, and one of them, made if it is not there
// yet: for callers who want several orders of work but no streams of their own.
// Number 0 is the one that NULL stands for. On a stream that was given out
// launches overlap by request only, since others may put work on it
// (kiln_dispatch_options_t.overlap). OUT_OF_RANGE, DEVICE_LOST,
// DRIVER_ERROR, OUT_OF_MEMORY. Borrowed; a retained one outlives the
// dispatcher. Since 0.1.
KILN_API uint32_t
kiln_dispatcher_stream_count(const kiln_dispatcher_t* dispatcher);
KILN_API KILN_MUST_USE kiln_status_t kiln_dispatcher_stream(
    kiln_dispatcher_t* dispatcher, uint32_t index, kiln_stream_t** out_stream);

// Whether the device can hold all blocks of a launch at once and let them wait
// for each other. Whether a pipeline's code does so is
// kiln_pipeline_info_t.grid_barrier: two questions, with two answers.
// Since 0.1.
KILN_API bool kiln_dispatcher_has_grid_barrier(
    const kiln_dispatcher_t* dispatcher);

// What a dispatcher holds now. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_dispatcher_counts_t {
  uint64_t resident_bytes;   // of resident buffers
  uint64_t resident_peak;    // most of that
  uint64_t resident_budget;  // most that there may be
  uint64_t staging_bytes;    // pinned, in use or kept
  uint64_t staging_idle;     // of it: kept only
  uint64_t transient_bytes;  // device memory for dispatches, in use or kept
  uint64_t transient_idle;   // of it: kept only
  uint64_t transient_hits;   // blocks that were used again
  uint64_t transient_misses;
  uint32_t residents;
  uint32_t streams;       // made
  uint32_t pipelines;     // alive
  uint32_t pendings;      // alive
  uint32_t copy_threads;  // running, without those that call
  uint32_t trap_pages;    // pinned, 4 KiB each: where threads tell of traps
} kiln_dispatcher_counts_t;

// All zero for NULL. Since 0.1.
KILN_API void kiln_dispatcher_counts(kiln_dispatcher_t* dispatcher,
                                     kiln_dispatcher_counts_t* out_counts);

// ---- Work under way ----

// Work that was put on a device. thread-safe
//
// Reference-counted; keeps what the work needs. Releasing one waits for
// nothing and cancels nothing.
typedef struct kiln_pending_t kiln_pending_t;

// For kiln_pending_wait: as long as it takes.
#define KILN_PENDING_FOREVER UINT64_MAX

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_pending_retain(kiln_pending_t* pending);
KILN_API void kiln_pending_release(kiln_pending_t* pending);

// Asks, without waiting, whether the work is done and host memory that it
// writes is there. Not done is OK with `*out_ready` false; allocates nothing.
// When it is done, `*out_ready` is true and the status is how it ended:
//
//   LAUNCH_FAILED  a thread trapped: with tag, address, block and thread. The
//                  device goes on; what the outputs hold is undefined
//   NOT_CONVERGED  of a sequence: a fixpoint reached its limit
//   DEVICE_LOST    a fault, or the time limit of the dispatch has passed: the
//                  device is lost to this process, nothing that the kernel may
//                  still use is freed
//   DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pending_query(kiln_pending_t* pending,
                                                        bool* out_ready);

// The same, waiting for at most `timeout_ns`. TIMED_OUT, bare, when they have
// passed: the work goes on and can be waited for again. That is the caller's
// patience; the time limit of a dispatch (kiln_dispatch_options_t.timeout_ns)
// is another thing. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pending_wait(kiln_pending_t* pending,
                                                       uint64_t timeout_ns);

// Where a thread trapped. thread-compatible
typedef struct kiln_trap_t {
  uint64_t address;  // the trap's second operand
  uint32_t tag;      // its first one
  uint32_t block[3];
  uint32_t thread[3];
  uint32_t reserved;  // 0
} kiln_trap_t;

// What the status of a trap says, as numbers: true if the work is done and a
// thread trapped; else false, with all zero. Since 0.1.
KILN_API bool kiln_pending_trap(kiln_pending_t* pending, kiln_trap_t* out_trap);

// Times of one dispatch. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_pending_times_t {
  uint64_t enqueue_ns;  // in the call that put it on the device
  uint64_t device_ns;   // from its first operation to its last one, by events
  uint64_t wait_ns;     // that callers of kiln_pending_wait waited, the longest
} kiln_pending_times_t;

// Of a dispatch with `timed`; another one, or several of a batch:
// INVALID_STATE. NOT_READY, bare, before it is done. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_pending_times(kiln_pending_t* pending, kiln_pending_times_t* out_times);

// The event that is recorded behind the work, for streams to wait for.
// Borrowed. Since 0.1.
KILN_API kiln_event_t* kiln_pending_event(const kiln_pending_t* pending);

KILN_EXTERN_C_END

#endif  // KILN_DISPATCH_H_
