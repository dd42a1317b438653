// SPDX-License-Identifier: Apache-2.0
//
// dispatch: a dispatcher, shared by the pipelines of one device; and pendings,
// work in progress.
//
// A dispatcher has streams of its own, pinned memory that pageable memory is
// copied through, a table of resident buffers (kiln/resident.h) and a budget.
// Pipelines (kiln/pipeline.h) are made from it and dispatched on it.
//
// Order. Every call that puts work on a device takes a stream, the caller's
// own; NULL is the dispatcher's first stream, so that calls without a stream
// run in the order in which they were made, whatever thread made them. The
// caller orders work that uses the same memory on two streams, with events, as
// usual.
#ifndef KILN_DISPATCH_H_
#define KILN_DISPATCH_H_

#include "kiln/api.h"
#include "kiln/cache.h"
#include "kiln/device.h"
#include "kiln/link.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// Shared by the pipelines of one device. thread-safe
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
// Zero in any field is its default. Pointers are retained.
typedef struct kiln_dispatcher_options_t {
  uint32_t struct_size;  // sizeof(kiln_dispatcher_options_t)

  // Streams of its own, over which batches are spread. Default: 4; at most 64.
  uint32_t streams;

  // Threads that together copy a chunk between pageable and pinned memory: the
  // calling one, which also submits chunks to the device, and the others, which
  // are started when first needed. Default: 1, which starts none: the calling
  // thread copies alone; at most 16.
  uint32_t copy_threads;

  // KILN_SWITCH_*: record counters and timings (kiln/telemetry.h). Default:
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

  // The budget of all resident buffers; more is DEVICE_OUT_OF_MEMORY. Free
  // memory is queried once, when the dispatcher is made. Default: nine tenths
  // of what is free then.
  uint64_t resident_bytes;

  // The cache for machine code of pipelines, and the linker that makes it from
  // PTX (kiln_runtime_cache, kiln_runtime_open_linker with this device). Both
  // or neither. Default: neither; the driver compiles PTX whenever a pipeline
  // is made, unless its own cache has it.
  kiln_cache_t* cache;
  kiln_linker_t* linker;

  // KILN_SWITCH_*: report to a profiler through NVTX when dispatches, batches,
  // runs of prepared dispatches and the creation of pipelines begin and end on
  // the host, by their labels, in the domain "kiln". On: to the library in
  // NVTX_INJECTION64_PATH, or else to libnvToolsExt.so.1, if it exists.
  // Default: on if that variable is set. Without either library, and when off,
  // it costs a branch.
  uint32_t ranges;
  uint32_t reserved;  // 0
} kiln_dispatcher_options_t;

// All defaults. Since 0.1.
static inline kiln_dispatcher_options_t kiln_dispatcher_options_default(void) {
  kiln_dispatcher_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0};
  return options;
}

// Creates a dispatcher. `options` may be NULL. Queries the device's free memory
// and makes one stream; everything else is made when it is needed, or by
// kiln_dispatcher_warm.
//
//   INVALID_ARGUMENT  an option out of its range, a cache without a linker or
//                     vice versa
//   INCOMPATIBLE      options of a newer Kiln that set an unknown field
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_dispatcher`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_dispatcher_create(
    kiln_device_t* device, const kiln_dispatcher_options_t* options,
    kiln_dispatcher_t** out_dispatcher);

// Adds or releases a reference. NULL is accepted. Remaining resident buffers
// are freed after the work that uses them. The last release waits for copies
// through its pinned memory, and for dispatches whose code can trap and whose
// pending was never waited for. Since 0.1.
KILN_API void kiln_dispatcher_retain(kiln_dispatcher_t* dispatcher);
KILN_API void kiln_dispatcher_release(kiln_dispatcher_t* dispatcher);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_dispatcher_device(
    const kiln_dispatcher_t* dispatcher);

// Creates in advance what would be created later: all own streams, the pinned
// memory, the copy threads; and uses each once, so that no dispatch pays for
// it. May be called from any thread, whatever context is current there; a
// second call does nothing. DEVICE_OUT_OF_MEMORY, DEVICE_LOST, DRIVER_ERROR,
// OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dispatcher_warm(kiln_dispatcher_t* dispatcher);

// Waits for everything dispatched on own streams, and for the work that delays
// the freeing of resident buffers; then releases everything kept for reuse:
// pinned memory, including that of traps, transient memory, threads; references
// to callers' streams that order later frees; and the events, streams and
// blocks that the device keeps for reuse. Resident buffers, own streams and
// pipelines stay, as does everything in use, including by work on a caller's
// stream; but drivers wait for the whole device when pinned memory is freed.
// Whatever is needed again is created again. DEVICE_LOST, DRIVER_ERROR. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dispatcher_clean(kiln_dispatcher_t* dispatcher);

// Waits for everything on the dispatcher's own streams. A fault of a kernel is
// DEVICE_LOST; a trap is reported by its pending, and by kiln_prepared_check.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dispatcher_synchronize(kiln_dispatcher_t* dispatcher);

// The number of own streams, and one of them, made if it does not exist yet:
// for callers that need several orders of work without streams of their own.
// Number 0 is the default for NULL. On a stream returned by this call launches
// overlap only on request, since others may put work on it
// (kiln_dispatch_options_t.overlap). OUT_OF_RANGE, DEVICE_LOST, DRIVER_ERROR,
// OUT_OF_MEMORY. Borrowed; a retained one outlives the dispatcher. Since 0.1.
KILN_API uint32_t
kiln_dispatcher_stream_count(const kiln_dispatcher_t* dispatcher);
KILN_API KILN_MUST_USE kiln_status_t kiln_dispatcher_stream(
    kiln_dispatcher_t* dispatcher, uint32_t index, kiln_stream_t** out_stream);

// Whether the device can keep all blocks of a launch resident at once and let
// them wait for each other. Whether a pipeline's code does so is
// kiln_pipeline_info_t.grid_barrier, a separate property. Since 0.1.
KILN_API bool kiln_dispatcher_has_grid_barrier(
    const kiln_dispatcher_t* dispatcher);

// The current resources of a dispatcher. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_dispatcher_counts_t {
  uint64_t resident_bytes;   // of resident buffers
  uint64_t resident_peak;    // maximum of that
  uint64_t resident_budget;  // limit of that
  uint64_t staging_bytes;    // pinned, in use or kept
  uint64_t staging_idle;     // of it: kept only
  uint64_t transient_bytes;  // device memory for dispatches, in use or kept
  uint64_t transient_idle;   // of it: kept only
  uint64_t transient_hits;   // blocks that were reused
  uint64_t transient_misses;
  uint32_t residents;
  uint32_t streams;       // made
  uint32_t pipelines;     // alive
  uint32_t pendings;      // alive
  uint32_t copy_threads;  // running, without those that call
  uint32_t trap_pages;    // pinned, 4 KiB each: where threads report traps
} kiln_dispatcher_counts_t;

// All zero for NULL. Since 0.1.
KILN_API void kiln_dispatcher_counts(kiln_dispatcher_t* dispatcher,
                                     kiln_dispatcher_counts_t* out_counts);

// ---- Work in progress ----

// Work that was put on a device. thread-safe
//
// Reference-counted; retains what the work needs. Releasing one neither waits
// nor cancels.
typedef struct kiln_pending_t kiln_pending_t;

// For kiln_pending_wait: no limit.
#define KILN_PENDING_FOREVER UINT64_MAX

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_pending_retain(kiln_pending_t* pending);
KILN_API void kiln_pending_release(kiln_pending_t* pending);

// Queries, without waiting, whether the work is done, including its writes to
// host memory. If not, OK with `*out_ready` false; allocates nothing. When it
// is done, `*out_ready` is true and the status is the outcome:
//
//   LAUNCH_FAILED  a thread trapped: with tag, address, block and thread. The
//                  device remains usable; outputs are undefined
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
// passed: the work goes on and can be waited for again. It only limits this
// wait; the time limit of a dispatch (kiln_dispatch_options_t.timeout_ns) is
// separate. Since 0.1.
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

// The contents of a trap's status, as numbers: true if the work is done and a
// thread trapped; else false, with all zero. Since 0.1.
KILN_API bool kiln_pending_trap(kiln_pending_t* pending, kiln_trap_t* out_trap);

// Times of one dispatch. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_pending_times_t {
  uint64_t enqueue_ns;  // in the call that put it on the device
  uint64_t device_ns;   // from its first operation to its last one, by events
  uint64_t wait_ns;     // the longest wait in kiln_pending_wait
} kiln_pending_times_t;

// Of a dispatch with `timed`; another one, or several of a batch:
// INVALID_STATE. NOT_READY, bare, before it is done. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_pending_times(kiln_pending_t* pending, kiln_pending_times_t* out_times);

// The event that is recorded after the work, for streams to wait for. Borrowed.
// Since 0.1.
KILN_API kiln_event_t* kiln_pending_event(const kiln_pending_t* pending);

KILN_EXTERN_C_END

#endif  // KILN_DISPATCH_H_
