// SPDX-License-Identifier: Apache-2.0
//
// device: pools: the source of stream-ordered buffers.
//
// A driver keeps memory that was freed in a pool and hands it out again. Every
// device has a pool of its own, which kiln_buffer_create uses unless given
// another; it belongs to the whole process. A separate pool has its own limit,
// threshold and statistics.
//
// A transient store is a layer above a pool: it keeps blocks for one stream and
// reuses them there without calling the driver.
#ifndef KILN_POOL_H_
#define KILN_POOL_H_

#include "kiln/device.h"
#include "kiln/memory.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// ---- Pools ----

// How a pool is made. thread-compatible
typedef struct kiln_pool_options_t {
  uint32_t struct_size;  // sizeof(kiln_pool_options_t)

  // KILN_MEMORY_*: what its buffers are. Pools of pinned and of managed memory
  // need a driver of CUDA 13.0. Default: device memory.
  uint32_t kind;

  // The maximum size, which the driver may round up; needs a driver of CUDA
  // 12.2. Default: what the device has.
  uint64_t max_bytes;

  // As kiln_pool_set_threshold. Default: 0, the driver's own.
  uint64_t threshold_bytes;

  // KILN_SWITCH_*: other processes may open it (kiln_pool_export). Device
  // memory only. UNSUPPORTED where the driver shares none, as the software
  // device. Default: off.
  uint32_t interprocess;
  uint32_t reserved;  // 0
} kiln_pool_options_t;

// All defaults. Since 0.1.
static inline kiln_pool_options_t kiln_pool_options_default(void) {
  kiln_pool_options_t options = {(uint32_t)sizeof(options), 0, 0, 0, 0, 0};
  return options;
}

// Makes a pool. `options` may be NULL.
//
//   UNSUPPORTED       the device or its driver has no such pool
//   INVALID_ARGUMENT  an unknown kind; `interprocess` of any but device memory
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_pool`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_pool_create(kiln_device_t* device, const kiln_pool_options_t* options,
                 kiln_pool_t** out_pool);

// Wraps the pool that the driver currently uses for the device's stream-ordered
// memory. It is never destroyed, and not changed, except on request: if its
// threshold is 0, so that it keeps nothing beyond a synchronisation, it becomes
// `threshold_bytes` (UINT64_MAX: keep everything; 0 changes nothing), for the
// whole process and permanently. Statuses as create. The caller owns
// `*out_pool`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_default(kiln_device_t* device,
                                                       uint64_t threshold_bytes,
                                                       kiln_pool_t** out_pool);

// Wraps a foreign pool (CUmemoryPool) of `kind` (KILN_MEMORY_*), which is used
// as it is and never destroyed. `owner` may be NULL (kiln_owner_t). The handle
// of a pool that was made here returns that pool, retained, and the owner is
// released at once. Without an owner, so does that of a pool that was adopted
// without one; with an owner it is a separate object. INVALID_ARGUMENT: the
// pool is of another kind. DEVICE_LOST, OUT_OF_MEMORY. The caller owns
// `*out_pool`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_adopt(kiln_device_t* device,
                                                     uint32_t kind,
                                                     void* handle,
                                                     const kiln_owner_t* owner,
                                                     kiln_pool_t** out_pool);

// Exports the pool to another process of this machine: a file descriptor, which
// the caller owns, passes on (SCM_RIGHTS on a local socket) and closes; the
// pool does not need it. -1 on failure.
//
//   INVALID_STATE  the pool was not made with `interprocess`, or is imported
//   UNSUPPORTED    a driver that shares no memory
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_export(kiln_pool_t* pool,
                                                      int* out_fd);

// Opens a pool of another process, of the GPU that `device` is. `fd` stays the
// caller's, and may be closed afterwards. Nothing can be taken from such a
// pool: its buffers are imported one by one (kiln_buffer_import). Import a pool
// once in a process, and only from a process that is trusted: drivers check
// little of it. UNSUPPORTED (a driver that shares no memory, as the software
// device), DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. The caller owns
// `*out_pool`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_import(kiln_device_t* device,
                                                      int fd,
                                                      kiln_pool_t** out_pool);

// Adds or releases a reference. NULL is accepted. A buffer retains the pool
// that it came from, so a pool is destroyed after its last buffer, in whatever
// order they are released; access of other devices is revoked first. Since 0.1.
KILN_API void kiln_pool_retain(kiln_pool_t* pool);
KILN_API void kiln_pool_release(kiln_pool_t* pool);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_pool_device(const kiln_pool_t* pool);

// The driver's handle (CUmemoryPool). Valid as long as the pool lives.
// Borrowed. Since 0.1.
KILN_API void* kiln_pool_handle(const kiln_pool_t* pool);

// The kind of its buffers: KILN_MEMORY_*. Since 0.1.
KILN_API uint32_t kiln_pool_kind(const kiln_pool_t* pool);

// Sets how many bytes the pool keeps when a stream, an event or the device is
// waited for; the rest is then returned to the system. DEVICE_LOST,
// DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_pool_set_threshold(kiln_pool_t* pool, uint64_t threshold_bytes);

// Statistics of a pool. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_pool_stats_t {
  uint64_t used_bytes;           // handed out now
  uint64_t used_peak_bytes;      // maximum of that
  uint64_t reserved_bytes;       // taken from the system now
  uint64_t reserved_peak_bytes;  // maximum of that
  uint64_t threshold_bytes;
} kiln_pool_stats_t;

// Queries the driver's numbers, one after another: while work is running they
// may be from different moments. All zero on failure. DEVICE_LOST,
// DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_pool_stats(kiln_pool_t* pool, kiln_pool_stats_t* out_stats);

// Resets both peaks. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_reset_peaks(kiln_pool_t* pool);

// Returns unused memory to the system, until `keep_bytes` are reserved or no
// more is unused. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_trim(kiln_pool_t* pool,
                                                    uint64_t keep_bytes);

// Access of another device to memory of a pool.
enum {
  KILN_ACCESS_NONE = 0,
  KILN_ACCESS_READ = 1,
  KILN_ACCESS_READ_WRITE = 3,
};

// Lets `other`, a device of the same driver, use all memory of the pool, or no
// longer: `access` is one of KILN_ACCESS_*.
//
//   INVALID_ARGUMENT  the pool's own device, whose access cannot be changed; a
//                     device of another driver; an unknown access
//   LIMIT_EXCEEDED    a device numbered 64 or higher
//   DEVICE_LOST, DRIVER_ERROR (devices without a link to each other)
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_allow(kiln_pool_t* pool,
                                                     kiln_device_t* other,
                                                     uint32_t access);

// Queries the current access of `device` to memory of the pool: KILN_ACCESS_*.
// INVALID_ARGUMENT for a device of another driver. DEVICE_LOST, DRIVER_ERROR.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_pool_query_access(
    kiln_pool_t* pool, kiln_device_t* device, uint32_t* out_access);

// ---- Transient stores ----

// Blocks kept for one stream. thread-compatible
//
// For memory that work on a stream needs for a short while, again and again: a
// released block is reused by later work on the same stream, which runs after
// its previous user; so there is no waiting and no driver call. Object and
// memory are both reused: with a block of the size at hand, acquire and release
// together allocate nothing, take no lock and make no call of the driver.
//
// Threads: acquire, trim and stats may be called by one thread at a time; the
// caller ensures this. A block itself is a buffer like any other: it may be
// retained and released on any thread, at any time, without a lock; with its
// last reference it goes back to the store. Work on other streams that uses a
// block must have been ordered before that release, as with every buffer that a
// stream orders.
//
// Reference-counted. Retains its stream and its pool. Blocks may outlive the
// last release of their store: they end with their own.
typedef struct kiln_transient_t kiln_transient_t;

// How a transient store is made. thread-compatible
typedef struct kiln_transient_options_t {
  uint32_t struct_size;  // sizeof(kiln_transient_options_t)

  // KILN_SWITCH_*: ask the driver, in each acquire, whether the stream is being
  // captured (about a tenth of a microsecond). Default: only for a stream that
  // kiln_stream_create did not make. Turn it on if the handle of such a stream
  // is captured without the library's knowledge.
  uint32_t ask_capture;

  // The maximum size of the store's blocks, in use or kept; beyond it, ordinary
  // buffers are used. Default: 256 MiB; at most 16 TiB.
  uint64_t max_bytes;

  // The same as a number of blocks. Default: 1024; at most 1,048,576.
  uint32_t max_blocks;
  uint32_t reserved;  // 0

  // The pool of the blocks. NULL: the device's own pool.
  kiln_pool_t* pool;
} kiln_transient_options_t;

// All defaults. Since 0.1.
static inline kiln_transient_options_t kiln_transient_options_default(void) {
  kiln_transient_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, 0, NULL};
  return options;
}

// Makes a store for `stream`. `options` may be NULL. Nothing is allocated on
// the device.
//
//   INVALID_ARGUMENT  a pool of another device or of another process, a bound
//                     that is too large, the per-thread default stream, which
//                     is another one on each thread
//   DEVICE_LOST, OUT_OF_MEMORY
//
// The caller owns `*out_transient`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_transient_create(
    kiln_stream_t* stream, const kiln_transient_options_t* options,
    kiln_transient_t** out_transient);

// Adds or releases a reference. NULL is accepted. The last release frees what
// is kept, in the order of the stream. It counts as one of the calls limited to
// one thread at a time. Since 0.1.
KILN_API void kiln_transient_retain(kiln_transient_t* transient);
KILN_API void kiln_transient_release(kiln_transient_t* transient);

// The stream it is for. Borrowed. Since 0.1.
KILN_API kiln_stream_t* kiln_transient_stream(
    const kiln_transient_t* transient);

// A buffer of `size_bytes` for work on the store's stream; its content is
// undefined, and probably that of its last use. It belongs to the caller until
// its last release. 0 bytes is a buffer without an address.
//
// While the stream is being captured (see `ask_capture`) nothing is kept or
// reused: the driver allocates in the graph, and the release, which must come
// before the capture ends, frees in the graph.
//
//   DEVICE_OUT_OF_MEMORY  even after freeing everything kept
//   INVALID_ARGUMENT      more than 16 TiB
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_transient_acquire(kiln_transient_t* transient, uint64_t size_bytes,
                       kiln_buffer_t** out_buffer);

// Frees unused blocks, the largest first, until at most `keep_bytes` are kept.
// NULL is accepted. Since 0.1.
KILN_API void kiln_transient_trim(kiln_transient_t* transient,
                                  uint64_t keep_bytes);

// Statistics of a store. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_transient_stats_t {
  uint64_t bytes;        // of all its blocks
  uint64_t idle_bytes;   // of unused ones
  uint32_t blocks;       //
  uint32_t idle_blocks;  //
  uint64_t hits;         // reused blocks
  uint64_t misses;       // allocated by the driver
  uint64_t passed;       // that became a part of a graph
} kiln_transient_stats_t;

// Reads the statistics; all zero for NULL. Since 0.1.
KILN_API void kiln_transient_stats(kiln_transient_t* transient,
                                   kiln_transient_stats_t* out_stats);

KILN_EXTERN_C_END

#endif  // KILN_POOL_H_
