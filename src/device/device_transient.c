// SPDX-License-Identifier: Apache-2.0
//
// device: transient stores: blocks kept for one stream and handed out again.
//
// A block is an ordinary stream-ordered buffer that comes back here with its
// last reference instead of ending: object and memory are used again as they
// are. Blocks are sorted by class of size. The owner of the store takes from
// `idle`, without an atomic operation; a release, on any thread, pushes its
// block on the stack `returned`, which is taken as a whole when `idle` has
// nothing that fits. That path has no allocation, lock or driver call.
//
// The limits apply to all blocks, in use or not: a block that would exceed them
// is an ordinary buffer that ends with its last reference. So a release has
// nothing to check.
//
// The end: the store puts the mark `closed` on the stack, from which moment on
// releases end their blocks themselves, and adds the number of blocks that are
// out to `left`, from which each of them takes one. The thread that then brings
// `left` to zero frees the store's own memory.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_inside.h"

enum {
  STEP_BYTES = 512,      // of the smallest classes
  EVEN_CLASSES = 4,      // 512, 1024, 1536, 2048
  PER_DOUBLING = 4,      // above, four classes up to each power of two
  CLASSES = 4 + 4 * 34,  // up to 32 TiB
  DEFAULT_BLOCKS = 1024,
  MAX_BLOCKS = 1 << 20,
};
#define DEFAULT_BYTES (256ull << 20)
#define MAX_BYTES     (1ull << 44)

struct kiln_transient_t {
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_pool_t* pool;
  atomic_uint references;
  bool asks;  // the driver for captures
  uint64_t max_bytes;
  uint32_t max_blocks;
  uint32_t reserved;

  // Of the thread that takes and trims, one at a time.
  kiln_buffer_t* idle[CLASSES];
  kiln_transient_stats_t counts;

  // Of all threads.
  _Atomic(kiln_buffer_t*) returned;
  atomic_llong left;
  kiln_buffer_t closed;  // only its address is used
};

// ---- Classes of size ----

// The class of blocks that fit `bytes`, and their size.
static uint32_t transient_class_of(uint64_t bytes, uint64_t* out_size) {
  uint64_t steps = (bytes + STEP_BYTES - 1) / STEP_BYTES;
  if (steps <= EVEN_CLASSES) {
    *out_size = steps * STEP_BYTES;
    return (uint32_t)steps - 1;
  }
  // The power of two at or below `steps - 1` is cut into four.
  uint32_t log = 63u - (uint32_t)__builtin_clzll(steps - 1);
  uint64_t quarter = UINT64_C(1) << (log - 2);
  uint64_t place = (steps - 1 - (UINT64_C(1) << log)) / quarter;
  *out_size = ((UINT64_C(1) << log) + (place + 1) * quarter) * STEP_BYTES;
  return EVEN_CLASSES + (log - 2) * PER_DOUBLING + (uint32_t)place;
}

static uint32_t class_of_block(const kiln_buffer_t* block) {
  uint64_t size;
  return transient_class_of(block->capacity, &size);
}

// ---- Blocks that come back ----

// Takes what was given back since the last time.
static void transient_collect(kiln_transient_t* store, kiln_buffer_t* list) {
  while (list != NULL) {
    kiln_buffer_t* block = list;
    list = block->next;
    uint32_t where = class_of_block(block);
    block->next = store->idle[where];
    store->idle[where] = block;
    store->counts.idle_blocks++;
    store->counts.idle_bytes += block->capacity;
  }
}

bool kilni_device_transient_give(kiln_transient_t* store,
                                 kiln_buffer_t* block) {
  kiln_buffer_t* head =
      atomic_load_explicit(&store->returned, memory_order_relaxed);
  do {
    if (head == &store->closed) return false;
    block->next = head;
  } while (!atomic_compare_exchange_weak_explicit(&store->returned, &head,
                                                  block, memory_order_release,
                                                  memory_order_relaxed));
  return true;
}

static void transient_destroy(kiln_transient_t* store) {
  kiln_device_t* device = store->device;
  kiln_pool_t* pool = store->pool;
  kiln_stream_t* stream = store->stream;
  kilni_base_free(device->host->allocator, store, sizeof(*store));
  kiln_pool_release(pool);
  kiln_stream_release(stream);
  kiln_device_release(device);
}

void kilni_device_transient_left(kiln_transient_t* store) {
  if (atomic_fetch_sub(&store->left, 1) == 1) transient_destroy(store);
}

// Ends a block that is in no list.
static void end_block(kiln_transient_t* store, kiln_buffer_t* block) {
  store->counts.blocks--;
  store->counts.bytes -= block->capacity;
  store->counts.idle_blocks--;
  store->counts.idle_bytes -= block->capacity;
  kilni_device_buffer_end(block);
}

// Ends idle blocks, the largest first, until at most these are left.
static void transient_shrink(kiln_transient_t* store, uint64_t keep_bytes,
                             uint32_t keep_blocks) {
  for (uint32_t i = CLASSES; i-- > 0;) {
    while (store->idle[i] != NULL &&
           (store->counts.idle_bytes > keep_bytes ||
            store->counts.idle_blocks > keep_blocks)) {
      kiln_buffer_t* block = store->idle[i];
      store->idle[i] = block->next;
      end_block(store, block);
    }
  }
}

static void close_store(kiln_transient_t* store) {
  transient_collect(store,
                    atomic_exchange_explicit(&store->returned, &store->closed,
                                             memory_order_acq_rel));
  transient_shrink(store, 0, 0);
  long long out = store->counts.blocks;
  if (atomic_fetch_add(&store->left, out) + out == 0) transient_destroy(store);
}

// ---- Making and ending ----

static kiln_status_t check_bounds(const kiln_transient_options_t* given) {
  if (given->max_bytes <= MAX_BYTES && given->max_blocks <= MAX_BLOCKS) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a transient store of up to %llu bytes in %u blocks",
                 (unsigned long long)given->max_bytes,
                 (unsigned)given->max_blocks),
      "ask for at most %llu bytes in %u blocks", MAX_BYTES,
      (unsigned)MAX_BLOCKS);
}

static kiln_status_t transient_check_options(
    const kiln_stream_t* stream, const kiln_transient_options_t* given) {
  KILNI_CHECK_ARGUMENT(given->ask_capture <= KILN_SWITCH_ON,
                       "options.ask_capture");
  KILNI_RETURN_IF_ERROR(check_bounds(given));
  if (stream->kind == KILN_STREAM_PER_THREAD) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a store for the per-thread default stream of \"%s\", which "
                   "is a different stream on each thread",
                   stream->device->name),
        "make the store for a stream of kiln_stream_create");
  }
  if (given->pool == NULL) return kiln_ok();
  if (given->pool->imported) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`options.pool` is of another process and cannot allocate "
                   "blocks here"),
        "name a pool of this process");
  }
  return kilni_device_check_memory(stream->device, given->pool->device,
                                   "`options.pool`");
}

kiln_status_t kiln_transient_create(kiln_stream_t* stream,
                                    const kiln_transient_options_t* options,
                                    kiln_transient_t** out_transient) {
  KILNI_CHECK_ARGUMENT(out_transient != NULL, "out_transient");
  *out_transient = NULL;
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  kiln_transient_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_transient_options_t, &given));
  KILNI_RETURN_IF_ERROR(transient_check_options(stream, &given));
  kiln_device_t* device = stream->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_transient_t), &block));
  kiln_transient_t* store = block;
  store->device = device;
  store->stream = stream;
  store->pool = given.pool;
  kiln_device_retain(device);
  kiln_stream_retain(stream);
  kiln_pool_retain(given.pool);
  atomic_init(&store->references, 1);
  atomic_init(&store->returned, NULL);
  atomic_init(&store->left, 0);
  store->asks = given.ask_capture == KILN_SWITCH_ON ||
                (given.ask_capture == KILN_SWITCH_DEFAULT &&
                 stream->kind != KILN_STREAM_CREATED);
  store->max_bytes = given.max_bytes != 0 ? given.max_bytes : DEFAULT_BYTES;
  store->max_blocks = given.max_blocks != 0 ? given.max_blocks : DEFAULT_BLOCKS;
  *out_transient = store;
  return kiln_ok();
}

void kiln_transient_retain(kiln_transient_t* transient) {
  if (transient == NULL) return;
  atomic_fetch_add_explicit(&transient->references, 1, memory_order_relaxed);
}

void kiln_transient_release(kiln_transient_t* transient) {
  if (transient == NULL || kilni_device_is_forked(transient->device)) return;
  if (atomic_fetch_sub_explicit(&transient->references, 1,
                                memory_order_acq_rel) == 1) {
    close_store(transient);
  }
}

kiln_stream_t* kiln_transient_stream(const kiln_transient_t* transient) {
  return transient->stream;
}

// ---- Blocks ----

// A buffer of its own; `capacity` 0: one that ends with its last reference.
// One that is taken in a graph ends there, also if taking it fails halfway.
static kiln_status_t make_block(kiln_transient_t* store, uint64_t size,
                                uint64_t capacity, bool in_graph,
                                kiln_buffer_t** out_buffer) {
  kiln_buffer_t* buffer = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_buffer_make(
      store->device, capacity != 0 ? capacity : size, &buffer));
  buffer->in_graph = in_graph;
  kiln_status_t status =
      kilni_device_buffer_take(buffer, store->stream, store->pool);
  if (!kiln_status_is_ok(status)) {
    kiln_buffer_release(buffer);
    return status;
  }
  buffer->size = size;
  if (capacity != 0) {
    buffer->capacity = capacity;
    buffer->transient = store;
    store->counts.blocks++;
    store->counts.bytes += capacity;
  }
  *out_buffer = buffer;
  return kiln_ok();
}

// What the driver captures is a graph's: neither kept nor taken from what is.
static kiln_status_t pass_through(kiln_transient_t* store, uint64_t size,
                                  kiln_buffer_t** out_buffer) {
  KILNI_RETURN_IF_ERROR(make_block(store, size, 0, true, out_buffer));
  store->counts.passed++;
  return kiln_ok();
}

static bool transient_has_space(const kiln_transient_t* store,
                                uint64_t capacity) {
  return store->counts.blocks < store->max_blocks &&
         capacity <= store->max_bytes &&
         store->counts.bytes <= store->max_bytes - capacity;
}

static kiln_status_t miss(kiln_transient_t* store, uint64_t size,
                          uint64_t capacity, kiln_buffer_t** out_buffer) {
  store->counts.misses++;
  if (capacity <= store->max_bytes && !transient_has_space(store, capacity)) {
    // As many idle blocks are freed as are in it.
    uint64_t others = store->counts.bytes - store->counts.idle_bytes;
    uint64_t space = store->max_bytes - capacity;
    uint32_t out = store->counts.blocks - store->counts.idle_blocks;
    transient_shrink(
        store, space > others ? space - others : 0,
        store->max_blocks - 1 > out ? store->max_blocks - 1 - out : 0);
  }
  bool keep = transient_has_space(store, capacity);
  kiln_status_t status =
      make_block(store, size, keep ? capacity : 0, false, out_buffer);
  if (kiln_status_code(status) != KILN_STATUS_DEVICE_OUT_OF_MEMORY ||
      store->counts.idle_blocks == 0) {
    return status;
  }
  // Blocks that are idle here may be the missing memory.
  kiln_status_free(status);
  transient_shrink(store, 0, 0);
  return make_block(store, size, 0, false, out_buffer);
}

static kiln_status_t acquire_slowly(kiln_transient_t* store, uint64_t size,
                                    kiln_buffer_t** out_buffer) {
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(store->device->host));
  if (kilni_device_is_lost(store->device)) {
    return kilni_device_lost_status(store->device);
  }
  if (size == 0) return kilni_device_buffer_make(store->device, 0, out_buffer);
  if (size > MAX_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a transient block of %llu bytes",
                   (unsigned long long)size),
        "use kiln_buffer_create for blocks above %llu bytes", MAX_BYTES);
  }
  uint64_t capacity;
  (void)transient_class_of(size, &capacity);
  return miss(store, size, capacity, out_buffer);
}

kiln_status_t kiln_transient_acquire(kiln_transient_t* transient,
                                     uint64_t size_bytes,
                                     kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(transient != NULL, "transient");
  kiln_transient_t* store = transient;
  if (store->asks && size_bytes != 0) {
    bool captured = false;
    KILNI_RETURN_IF_ERROR(
        kilni_device_stream_ask_capture(store->stream, &captured));
    if (captured) return pass_through(store, size_bytes, out_buffer);
  }
  if (size_bytes - 1 >= MAX_BYTES || kilni_device_is_lost(store->device) ||
      kilni_device_is_forked(store->device)) {
    return acquire_slowly(store, size_bytes, out_buffer);
  }
  uint64_t capacity;
  uint32_t where = transient_class_of(size_bytes, &capacity);
  kiln_buffer_t* block = store->idle[where];
  if (block == NULL) {
    transient_collect(store, atomic_exchange_explicit(&store->returned, NULL,
                                                      memory_order_acquire));
    block = store->idle[where];
    if (block == NULL) return miss(store, size_bytes, capacity, out_buffer);
  }
  store->idle[where] = block->next;
  store->counts.idle_blocks--;
  store->counts.idle_bytes -= capacity;
  store->counts.hits++;
  block->size = size_bytes;
  atomic_store_explicit(&block->references, 1, memory_order_relaxed);
  *out_buffer = block;
  return kiln_ok();
}

void kiln_transient_trim(kiln_transient_t* transient, uint64_t keep_bytes) {
  if (transient == NULL || kilni_device_is_forked(transient->device)) return;
  transient_collect(transient,
                    atomic_exchange_explicit(&transient->returned, NULL,
                                             memory_order_acquire));
  transient_shrink(transient, keep_bytes, UINT32_MAX);
}

void kiln_transient_stats(kiln_transient_t* transient,
                          kiln_transient_stats_t* out_stats) {
  memset(out_stats, 0, sizeof(*out_stats));
  if (transient == NULL) return;
  transient_collect(transient,
                    atomic_exchange_explicit(&transient->returned, NULL,
                                             memory_order_acquire));
  *out_stats = transient->counts;
}
