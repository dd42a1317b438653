// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pinned memory that pageable memory is copied through.
//
// Knows streams and buffers, and nothing of pipelines. What is pinned already
// is handed to the driver as it is.
#ifndef KILN_SRC_DISPATCH_STAGING_RING_H_
#define KILN_SRC_DISPATCH_STAGING_RING_H_

#include "dispatch/dispatch_counters.h"
#include "kiln/dispatch.h"
#include "kiln/memory.h"

// Chunks of pinned memory, and their users. thread-safe
typedef struct kilni_dispatch_staging_t kilni_dispatch_staging_t;

// How it is made. thread-compatible
typedef struct kilni_dispatch_staging_options_t {
  uint64_t bytes;        // in all; a multiple of chunks is used
  uint64_t chunk_bytes;  //
  uint32_t threads;      // that copy a chunk together, with the caller
  uint32_t past_caches;  // 1: uploads too; slower, bench_staging measures by
                         // how much
  kilni_dispatch_counters_t* counters;  // may be NULL; outlives the ring
} kilni_dispatch_staging_options_t;

// Allocates nothing on the device and starts no thread. Borrows `device`.
kiln_status_t kilni_dispatch_staging_create(
    kiln_device_t* device, const kilni_dispatch_staging_options_t* options,
    kilni_dispatch_staging_t** out_staging);
// It may not be used any more; waits for copies in progress. NULL is accepted.
void kilni_dispatch_staging_destroy(kilni_dispatch_staging_t* staging);

// Makes all chunks, and starts the threads.
kiln_status_t kilni_dispatch_staging_warm(kilni_dispatch_staging_t* staging);
// Gives back what is not in use at the moment, and ends the threads.
kiln_status_t kilni_dispatch_staging_trim(kilni_dispatch_staging_t* staging);
// Fills in what of the counts is about pinned memory and threads that copy.
void kilni_dispatch_staging_count(kilni_dispatch_staging_t* staging,
                                  kiln_dispatcher_counts_t* counts);

// Copies `bytes` from the host to `buffer` at `offset`, after the work on
// `stream`; returns when pageable `data` may be changed. The range and the
// stream's device must have been checked.
kiln_status_t kilni_dispatch_staging_upload(kilni_dispatch_staging_t* staging,
                                            kiln_stream_t* stream,
                                            kiln_buffer_t* buffer,
                                            uint64_t offset, uint64_t bytes,
                                            const void* data);
// Copies in the other direction; `out_data` is complete when `stream` has
// passed what the call put on it, and may not be touched before; with `waits`,
// when the call returns and the memory is pageable. Where the data exceeds the
// pinned memory, the call waits for the device until the rest fits. On failure
// the device may still be writing pinned memory, and a host function
// `out_data`: after the work on the stream.
kiln_status_t kilni_dispatch_staging_download(kilni_dispatch_staging_t* staging,
                                              kiln_stream_t* stream,
                                              kiln_buffer_t* buffer,
                                              uint64_t offset, uint64_t bytes,
                                              void* out_data, bool waits);

#endif  // KILN_SRC_DISPATCH_STAGING_RING_H_
