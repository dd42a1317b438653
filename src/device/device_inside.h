// SPDX-License-Identifier: Apache-2.0
//
// device: what the files of this module share, and a public header for the
// modules that put work on devices: they call the driver in the same way.
//
// Every driver call goes through KILNI_DEVICE_CALL, one on a stream through
// KILNI_STREAM_CALL, one that makes a handle through KILNI_DEVICE_CREATE, and
// one in a destructor through KILNI_DEVICE_END: they switch to the device's
// context and to the relaxed capture mode where the row needs it, and back.
// Queries of one or two devices need neither and are called directly, and the
// short paths of frequent operations call a row directly once they have seen
// that there is nothing to switch (kilni_device_alive_t).
#ifndef KILN_SRC_DEVICE_DEVICE_INSIDE_H_
#define KILN_SRC_DEVICE_DEVICE_INSIDE_H_

#include <stdatomic.h>

#include "base/registry.h"
#include "base/thread.h"
#include "device/device.h"
#include "kiln/green.h"
#include "kiln/memory.h"
#include "kiln/module.h"
#include "kiln/pool.h"
#include "kiln/stream.h"
#include "kiln/tensor.h"
#include "kiln/texture.h"
#include "kiln/virtual.h"
#include "table/cuda_abi.h"
#include "table/table.h"

enum {
  KILNI_DEVICE_NAME_BYTES = 32,
  KILNI_DEVICE_MODEL_BYTES = 256,
  KILNI_DEVICE_NOTE_BYTES = 1024,
  KILNI_ATTRIBUTES = 16,
};

// What the device keeps for its own use (device_pool.c): streams and events
// that no caller ever sees.
enum {
  KILNI_POOL_EVENTS = 0,
  KILNI_POOL_TIMED_EVENTS = 1,
  KILNI_POOL_STREAMS = 2,
  KILNI_POOL_COUNT = 3,
  KILNI_POOL_KEPT = 32,  // of each; more are destroyed when they come back
  // Blocks of memory that come and go with graphs.
  KILNI_SPARE_BYTES = 5120,
  KILNI_SPARES_KEPT = 64,
};

// What there is of one of them. thread-compatible
typedef struct kilni_device_pool_counts_t {
  uint64_t made;  // ever
  uint32_t in_use;
  uint32_t kept;
  uint32_t peak;  // most in use at once
  uint32_t reserved;
} kilni_device_pool_counts_t;

// thread-safe under `lock`, which is not held during a driver call, and also
// guards what streams were left with
typedef struct kilni_device_pools_t {
  kilni_base_mutex_t lock;
  kilni_device_pool_counts_t counts[KILNI_POOL_COUNT];
  void* kept[KILNI_POOL_COUNT][KILNI_POOL_KEPT];
  uint32_t spare_count;
  uint32_t reserved;
  void* spares[KILNI_SPARES_KEPT];
} kilni_device_pools_t;

// Kinds of the registry.
enum {
  KILNI_REGISTERED_STREAM = 1,
  KILNI_REGISTERED_EVENT = 2,
  KILNI_REGISTERED_LIBRARY = 3,
  KILNI_REGISTERED_POOL = 4,
  KILNI_REGISTERED_ARRAY = 5,
};

// Lets go what must not be let go on a driver's thread (device_late.c).
// thread-safe
typedef struct kilni_device_late_t kilni_device_late_t;

// An object to release; embedded in it. one-thread
typedef struct kilni_device_late_entry_t {
  struct kilni_device_late_entry_t* next;
  void (*let_go)(struct kilni_device_late_entry_t* entry);
  atomic_bool claimed;  // it is being released, or will be
  struct kilni_device_late_entry_t*
      next_known;  // of those that wait for the driver's call
  struct kilni_device_late_entry_t* previous_known;
} kilni_device_late_entry_t;

// Of kiln_device_t::place_state: it is written once.
enum {
  KILNI_PLACE_NONE = 0,
  KILNI_PLACE_WRITING = 1,
  KILNI_PLACE_KNOWN = 2,
};

struct kiln_device_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  const kiln_cuda_table_t* table;
  atomic_uint references;
  // The whole device that a part is of: it has the flag `lost` and the memory.
  // A whole device is its own.
  kiln_device_t* whole;
  kiln_device_t* parent;          // that was split; NULL: a whole device
  kiln_cu_green_context_t green;  // of a part
  bool foreign;                   // the context is foreign
  kiln_owner_t owner;             // of that; may be none
  atomic_bool lost;
  atomic_bool* lost_too;  // the source's; may be NULL
  kilni_device_peer_book_t* peers;
  bool has_context;
  bool has_registry;
  bool has_pools;
  kiln_cu_device_t handle;
  kiln_cu_context_t context;
  kilni_base_registry_t registry;  // handle to object, by kind
  kilni_device_pools_t pools;
  _Atomic(kilni_device_late_t*)
      late;                 // of a whole device; NULL: not needed yet
  atomic_uint dispatchers;  // of a whole device: that were ever made
  atomic_ullong launches;   // made ever: a number for each
  void (*fault)(uint32_t device, kiln_fault_t* out_fault);
  bool (*name_node)(void* node, const char* name);
  uint64_t (*executed)(void);
  void (*act_for)(uint64_t owner);
  void (*offer)(const void* text, kilni_image_ptx_module_t* tree);
  void (*give_up)(uint32_t device, uint64_t owner, kiln_fault_t* out_place);
  // Of a whole device: where its work was when a time limit ended it, KILNI_
  // PLACE_*. Another object over the same context has another.
  atomic_uint place_state;
  kiln_fault_t place;
  kiln_device_info_t info;
  char name[KILNI_DEVICE_NAME_BYTES];
  char model[KILNI_DEVICE_MODEL_BYTES];
  char note[KILNI_DEVICE_NOTE_BYTES];
};

// A capture that is over for its builder and not for the driver, which lets
// only the thread that began it end it. On a stream's list under the lock of
// the device's pools.
typedef struct kilni_device_left_t {
  struct kilni_device_left_t* next;
  uint64_t thread;  // kilni_base_thread_number of the one that began it
  // Tries to end it, on that thread: true if it is over, and `left` is gone.
  bool (*end)(struct kilni_device_left_t* left, kiln_stream_t* stream);
  // The stream ends first; `left` is gone.
  void (*drop)(struct kilni_device_left_t* left);
} kilni_device_left_t;

struct kiln_stream_t {
  kiln_device_t* device;
  atomic_uint references;
  uint32_t kind;  // KILN_STREAM_*
  // KILNI_WAY_CURRENT for a default stream, KILNI_WAY_IDLE, _LEFT, _BODY. Read
  // without order: builders may be released from any thread.
  atomic_uint way;
  int32_t priority;
  bool with_default_stream;
  bool spoiled;     // a captured stream that is not used again
  bool abandoned;   // and not destroyed either
  uint32_t bodies;  // that are captured now; under the lock of the pools
  kilni_device_left_t* left;  // the same
  kiln_owner_t owner;         // of a foreign handle; may be none
  kiln_cu_stream_t handle;
  kilni_base_registry_entry_t entry;
};

struct kiln_event_t {
  kiln_device_t* device;
  atomic_uint references;
  atomic_bool recorded;
  bool foreign;           // never destroyed here
  uint32_t timing;        // KILN_SWITCH_*; DEFAULT where it is unknown
  uint32_t blocking;      // the same
  uint32_t interprocess;  // the same
  kiln_owner_t owner;     // of a foreign handle; may be none
  kiln_cu_event_t handle;
  kilni_base_registry_entry_t entry;
};

// A buffer of another process that is retained here, or about to be, in the
// list of its pool. thread-safe under the list's lock
typedef struct kilni_device_import_t {
  struct kilni_device_import_t* next;
  kiln_buffer_t* buffer;  // NULL: the driver is being asked
  uint8_t key[64];        // what the other process reported
} kilni_device_import_t;

// One exported buffer is one object here: a driver that opens it twice may not
// close it twice correctly. thread-safe under `lock`, which is not held during
// a driver call
typedef struct kilni_device_imports_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  kilni_device_import_t* first;
} kilni_device_imports_t;

struct kiln_pool_t {
  kiln_device_t* device;
  atomic_uint references;
  uint32_t kind;       // KILN_MEMORY_*
  bool is_made;        // here, and so destroyed here
  bool interprocess;   // others may open it
  bool imported;       // it is another process's
  bool has_imports;    // `imports` is there
  uint64_t max_bytes;  // as it was made with; 0: no limit, or not known
  kilni_device_imports_t imports;
  atomic_ullong peers;  // devices that were ever allowed in, by number
  kiln_owner_t owner;   // of a foreign handle; may be none
  kilni_base_registry_entry_t entry;  // of the whole device
  kiln_cu_mempool_t handle;
};

// Enters a pool whose handle the driver has just returned.
void kilni_device_pool_enter(kiln_pool_t* pool);

// How the memory of a buffer ends.
enum {
  KILNI_BUFFER_NOTHING = 0,  // there is none, or it is foreign
  KILNI_BUFFER_FREE = 1,     // cuMemFree
  KILNI_BUFFER_ASYNC = 2,    // cuMemFreeAsync, in the order of `stream`
  KILNI_BUFFER_HOST = 3,     // cuMemFreeHost
  KILNI_BUFFER_OPENED = 4,   // cuIpcCloseMemHandle: it is another process's
};

struct kiln_buffer_t {
  kiln_device_t* device;
  _Atomic(kiln_stream_t*) stream;  // of a stream-ordered buffer
  kiln_pool_t* pool;               // it came from; NULL: the device's own
  kilni_device_import_t* import;   // of another process's pool; or NULL
  kiln_owner_t owner;              // of foreign memory; may be none
  atomic_uint references;
  uint32_t kind;  // KILN_MEMORY_*
  uint32_t end;   // KILNI_BUFFER_*
  // The thread of `stream`, where it is a per-thread default stream.
  _Atomic uint64_t thread;
  bool in_graph;  // allocated by a node of a graph: freed by one
  uint64_t size;
  kiln_cu_deviceptr_t address;
  void* host;  // NULL where the host has no address for it
  // Of a transient store: where it goes with its last reference, the size of
  // its memory, and its neighbour in a list there.
  kiln_transient_t* transient;
  uint64_t capacity;
  kiln_buffer_t* next;
};

// The facts about a kernel in a code file. thread-compatible
typedef struct kilni_device_code_kernel_t {
  char* name;
  kiln_kernel_param_t* params;  // names owned
  uint32_t param_count;
  uint32_t required_block[3];
  uint32_t required_cluster[3];
  bool explicit_cluster;
  bool blocks_are_clusters;
  bool params_known;
} kilni_device_code_kernel_t;

// The facts in a code file. thread-compatible
typedef struct kilni_device_code_facts_t {
  kiln_allocator_t allocator;
  uint32_t format;   // KILN_CODE_FORMAT_PTX, _CUBIN or _FATBIN
  uint32_t ptx_isa;  // of PTX, 90 is 9.0; 0 where it is unknown
  bool is_listed;    // `kernels` are all there are
  kilni_device_code_kernel_t* kernels;
  size_t kernel_count;
  size_t kernel_capacity;
  kilni_image_ptx_module_t* tree;  // of PTX, until it is loaded; or NULL
} kilni_device_code_facts_t;

// What facts are read of. thread-compatible
typedef struct kilni_device_code_source_t {
  kiln_bytes_view_t bytes;
  const char* name;   // for messages
  kiln_code_t* code;  // that the bytes are of; NULL: nobody's
  bool keeps;         // what is read stays with `code`
} kilni_device_code_source_t;

enum { KILNI_LOAD_OPTIONS = 4, KILNI_LOAD_LOG_BYTES = 16384 };

// Code that is loaded. thread-compatible
//
// The driver may compile a library when it is first used, and write its log
// into buffers that it was given before: they are freed after the library.
typedef struct kilni_device_loaded_t {
  kiln_cu_library_t library;          // NULL: `handle` is a module of its own
  kiln_cu_module_t handle;            // of the library, where there is one
  bool foreign;                       // never unloaded here
  kilni_base_registry_entry_t entry;  // of `library`, unless it is foreign
  kilni_device_code_facts_t facts;
  kiln_cu_jit_option_t options[KILNI_LOAD_OPTIONS];
  void* values[KILNI_LOAD_OPTIONS];
  char* logs;  // errors, then infos, KILNI_LOAD_LOG_BYTES each
} kilni_device_loaded_t;

struct kiln_module_t {
  kiln_device_t* device;
  atomic_uint references;
  uint32_t reserved;
  _Atomic(kilni_device_loaded_t*) loaded;  // NULL: not yet; set once
  kiln_code_t* code;                       // NULL: loaded when it was made
  kiln_code_t* described_by;               // PTX; NULL: the code itself
  kiln_owner_t owner;                      // of a foreign handle; may be none
  char* name;
};

struct kiln_kernel_t {
  kiln_module_t* module;
  atomic_uint references;
  atomic_bool opted_in;  // to more shared memory than the default
  bool in_clusters;      // of `cluster`, or where that is 0, of each launch
  kiln_cu_function_t handle;
  kiln_kernel_info_t info;
  uint32_t cluster[3];  // that it is made for, in blocks
  char* name;
  atomic_uint known;                        // bits of `attributes`
  atomic_int attributes[KILNI_ATTRIBUTES];  // by their numbers
  const kiln_kernel_param_t* params;        // of the image, or `own_params`
  kiln_kernel_param_t* own_params;          // asked of the driver
};

// ---- Buffers (device_alloc.c) ----

// An object without memory.
kiln_status_t kilni_device_buffer_make(kiln_device_t* device, uint64_t size,
                                       kiln_buffer_t** out_buffer);
// Gives it stream-ordered memory; `pool` NULL is the device's own. A device
// without pools gives memory that is not.
kiln_status_t kilni_device_buffer_take(kiln_buffer_t* buffer,
                                       kiln_stream_t* stream,
                                       kiln_pool_t* pool);
// After giving it a stream: its thread, if it is a per-thread one.
void kilni_device_buffer_note_thread(kiln_buffer_t* buffer,
                                     const kiln_stream_t* stream);
// Ends a buffer without references: memory, object, what it retains.
void kilni_device_buffer_end(kiln_buffer_t* buffer);
// Takes back a block without references; false from a store that has ended. The
// caller then ends the block, and afterwards notifies the store.
bool kilni_device_transient_give(kiln_transient_t* store, kiln_buffer_t* block);
void kilni_device_transient_left(kiln_transient_t* store);
// After the last driver call on an imported buffer: it may be opened again.
void kilni_device_import_left(kiln_pool_t* pool, kilni_device_import_t* import);
// Whether the driver is capturing the stream now.
kiln_status_t kilni_device_stream_ask_capture(kiln_stream_t* stream,
                                              bool* out_captured);

// The range of an operation, and where there is a stream, its device; of a copy
// both ranges (device_buffer.c).
kiln_status_t kilni_device_buffer_check(const kiln_buffer_t* buffer,
                                        const kiln_stream_t* stream,
                                        uint64_t offset, uint64_t bytes,
                                        const char* what);
kiln_status_t kilni_device_buffer_check_copy(const kiln_buffer_t* target,
                                             const kiln_stream_t* stream,
                                             uint64_t target_offset,
                                             const kiln_buffer_t* source,
                                             uint64_t source_offset,
                                             uint64_t bytes);

// ---- Pools (device_mempool.c) ----

// An object without a pool.
kiln_status_t kilni_device_pool_make(kiln_device_t* device, uint32_t kind,
                                     kiln_pool_t** out_pool);

// ---- Modules (device_module.c) ----

// What is loaded; NULL before a module made from code was used.
const kilni_device_loaded_t* kilni_device_module_loaded(
    const kiln_module_t* module);
// Loads, if that was not done yet.
kiln_status_t kilni_device_module_need(
    kiln_module_t* module, const kilni_device_loaded_t** out_loaded);
// The module that loaded a library, with a reference more; NULL: none did.
kiln_module_t* kilni_device_module_of_library(kiln_device_t* device,
                                              kiln_cu_library_t library);
// Foreign, never unloaded and without known facts.
kiln_status_t kilni_device_module_make_foreign(kiln_device_t* device,
                                               kiln_cu_module_t handle,
                                               kiln_module_t** out_module);
// The name in the code of what is called `name` in the source.
const char* kilni_device_module_lower(const kiln_module_t* module,
                                      const char* name);

// ---- Scope (device_scope.c) ----

// What a row needs around it, from its columns. A row that takes its context
// from a stream needs nothing for a stream that has one; a default stream
// brings KILNI_WAY_CURRENT along.
enum {
  KILNI_WAY_CURRENT = 1,  // the device's context is current
  KILNI_WAY_RELAXED = 2,  // the thread's capture mode is the relaxed one
  // Nothing may be put on the stream: it is a builder's that does not capture.
  KILNI_WAY_IDLE = 4,
  // A capture was left on it: kilni_device_stream_settle.
  KILNI_WAY_LEFT = 8,
  // It is captured, and a conditional body is captured that precedes later
  // work.
  KILNI_WAY_BODY = 16,
};

// Whether calls may be made, for the short paths, which keep it next to the
// other state that they read. thread-safe
typedef struct kilni_device_alive_t {
  const volatile uint64_t* fork_mark;  // 0: not here, or it has to be asked
  const atomic_bool* lost;             // of the whole device
} kilni_device_alive_t;

kilni_device_alive_t kilni_device_alive(const kiln_device_t* device);

// False in a forked child and for a lost device, and where two loads cannot
// rule out both.
static inline bool kilni_device_is_alive(const kilni_device_alive_t* alive) {
  return *alive->fork_mark != 0 &&
         !atomic_load_explicit(alive->lost, memory_order_acquire);
}

// In a destructor: waits for the device's work.
void kilni_device_wait_end(kiln_device_t* device);

// True in a forked child, where releases do nothing.
bool kilni_device_is_forked(const kiln_device_t* device);

bool kilni_device_is_lost(const kiln_device_t* device);
// DEVICE_LOST for a device that is.
kiln_status_t kilni_device_lost_status(const kiln_device_t* device);
#ifdef __clang_analyzer__
#define kilni_device_lost_status(device) \
  kilni_analyzed_error(kilni_device_lost_status(device))
#endif
// The same, and OK for one that is not: for the second device of a call. A
// driver may answer with that one's error, which would be taken for the
// first's.
kiln_status_t kilni_device_check_not_lost(const kiln_device_t* device);
void kilni_device_mark_lost(kiln_device_t* device);
// The same after a time limit: the driver knows of no error. Where the provider
// can it ends what runs. Returns what to do next, as the end of a Fix.
const char* kilni_device_give_up(kiln_device_t* device);
// `status` is an error that the device does not recover from, met by `call`:
// returns one that reports what a kernel did, where the driver knows that.
// device_fault.c.
kiln_status_t kilni_device_tell_fault(const kiln_device_t* device,
                                      kiln_status_t status, const char* call);
// `status` reports that a time limit is reached: gives the device up, and
// reports where its work was with a Fix for that, else `fix`.
kiln_status_t kilni_device_end_of_time(kiln_device_t* device,
                                       kiln_status_t status, const char* fix);

// OK if two devices are driven by one driver.
kiln_status_t kilni_device_check_driver(const kiln_device_t* device,
                                        const kiln_device_t* other,
                                        const char* what);
// OK if two devices are one (their context is): for events.
kiln_status_t kilni_device_check_same(const kiln_device_t* device,
                                      const kiln_device_t* other,
                                      const char* what);
// OK if two devices have the same memory and code: one, or parts of one.
kiln_status_t kilni_device_check_memory(const kiln_device_t* device,
                                        const kiln_device_t* other,
                                        const char* what);

// ---- Parts (device_green.c) ----

// Ends a part's context.
void kilni_device_green_end(kiln_device_t* device);

// ---- Streams (device_stream.c) ----

// Makes a stream in the device's context. With a status other than OK and a
// handle, the caller destroys that.
kiln_status_t kilni_device_stream_make(kiln_device_t* device,
                                       unsigned int flags, int32_t priority,
                                       kiln_cu_stream_t* out_stream);

// What is polled for readiness, and for how long: `timeout_ns` from `began_ns`
// on, with pauses that begin with `first_pause_ns` and double up to 1 ms.
// one-thread
typedef struct kilni_device_ask_t {
  kiln_status_t (*ask)(void* user, bool* out_ready);
  void* user;
  uint64_t began_ns;  // kilni_base_time_ns
  uint64_t timeout_ns;
  uint64_t first_pause_ns;
} kilni_device_ask_t;

// Asks at least once, until it is ready or fails; OK and not ready when the
// time has passed (device_order.c).
kiln_status_t kilni_device_ask_until_ready(const kilni_device_ask_t* ask,
                                           bool* out_ready);

// A stream for captures, idle at first (KILNI_WAY_IDLE). Its last release puts
// the handle back into the pool, unless it is `spoiled` or `abandoned`.
kiln_status_t kilni_device_stream_make_captured(kiln_device_t* device,
                                                kiln_stream_t** out_stream);
void kilni_device_stream_set_idle(kiln_stream_t* stream, bool idle);

// ---- Captures that stay on a stream (device_left.c) ----

// A conditional body of what the stream captures is captured from now on, or no
// more. Not for a per-thread default stream, which is another on each thread.
void kilni_device_stream_add_body(kiln_stream_t* stream);
void kilni_device_stream_drop_body(kiln_stream_t* stream);
void kilni_device_stream_clear_bodies(kiln_stream_t* stream);
// Hands a capture over, which the stream ends at its next use by the thread
// that began it; until then it refuses work.
void kilni_device_stream_leave(kiln_stream_t* stream,
                               kilni_device_left_t* left);
// The way of a stream that has KILNI_WAY_LEFT, after ending what this thread
// can end.
uint32_t kilni_device_stream_settle(kiln_stream_t* stream);
// At the last release.
void kilni_device_stream_drop_left(kiln_stream_t* stream);

static inline uint32_t kilni_device_stream_way(kiln_stream_t* stream) {
  uint32_t way = atomic_load_explicit(&stream->way, memory_order_relaxed);
  return (way & KILNI_WAY_LEFT) == 0 ? way : kilni_device_stream_settle(stream);
}

// ---- Late releases (device_late.c) ----

// That of the whole device, started on first need.
kiln_status_t kilni_device_late_need(kiln_device_t* device,
                                     kilni_device_late_t** out_late);
// When the device ends; on the thread itself it detaches that.
void kilni_device_late_stop(kilni_device_late_t* late);
// From any thread, also one that may not call the driver. Takes no lock but to
// wake the thread.
void kilni_device_late_push(kilni_device_late_t* late,
                            kilni_device_late_entry_t* entry);
// Around a driver call that may cause pushes: kilni_device_late_end lets go
// what came.
void kilni_device_late_begin(kilni_device_late_t* late);
void kilni_device_late_end(kilni_device_late_t* late);
// The driver of a lost device is not called any more, and does not call back.
// So what waits for its call is known, and is then released with the last user
// of the list.
void kilni_device_late_enter(kilni_device_late_t* late,
                             kilni_device_late_entry_t* entry);
void kilni_device_late_leave(kilni_device_late_t* late,
                             kilni_device_late_entry_t* entry);
void kilni_device_late_add_user(kilni_device_late_t* late);
void kilni_device_late_drop_user(kilni_device_late_t* late, bool lost);
// The device is lost: the thread releases what waits, once the list is unused.
void kilni_device_late_lose(kilni_device_late_t* late);
// Waits until all that was pushed is let go. For tests.
void kilni_device_late_settle(kilni_device_late_t* late);

// ---- Pools (device_pool.c) ----

kiln_status_t kilni_device_pools_init(kilni_device_pools_t* pools);
void kilni_device_pools_deinit(kilni_device_pools_t* pools);
// Destroys what is kept; what is in use comes back and is kept again. From any
// thread, and before the context goes.
void kilni_device_pools_drain(kiln_device_t* device);
// A block of KILNI_SPARE_BYTES, with whatever was in it, and back: of the whole
// device, so that graphs that are made again and again touch the same memory.
kiln_status_t kilni_device_spare_take(kiln_device_t* device, void** out_block);
void kilni_device_spare_give(kiln_device_t* device, void* block);
// Frees what is kept, of a whole device. From any thread.
void kilni_device_spares_drain(kiln_device_t* device);
// KILNI_POOL_*.
kilni_device_pool_counts_t kilni_device_pools_counts(kiln_device_t* device,
                                                     uint32_t pool);

// An event of the device for its own use, and back. It may be recycled as soon
// as the waits for it are in their streams. What its last user recorded, in a
// capture perhaps, it still has: record it first.
kiln_status_t kilni_device_event_acquire(kiln_device_t* device, bool timing,
                                         kiln_cu_event_t* out_event);
void kilni_device_event_recycle(kiln_device_t* device, bool timing,
                                kiln_cu_event_t event);
// A stream, not ordered with the default stream; work may still be on it when
// it is recycled, and the next user's work runs after that.
kiln_status_t kilni_device_stream_acquire(kiln_device_t* device,
                                          kiln_cu_stream_t* out_stream);
void kilni_device_stream_recycle(kiln_device_t* device,
                                 kiln_cu_stream_t stream);
// One that cannot be used again; it is destroyed, or abandoned.
void kilni_device_stream_forget(kiln_device_t* device, kiln_cu_stream_t stream,
                                bool destroy);

// ---- Foreign handles ----

static inline void kilni_device_owner_release(kiln_owner_t owner) {
  if (owner.release != NULL) owner.release(owner.user_data);
}

// ---- Code files (device_image.c) ----

// Reads the facts of a file, or takes them from code that was read before.
// For a file that the reader cannot read but a driver may, `is_listed` is false
// and `*out_doubt` gives the reason.
kiln_status_t kilni_device_code_facts_init(
    kilni_device_code_facts_t* facts, kiln_allocator_t allocator,
    const kilni_device_code_source_t* source, kiln_status_t* out_doubt);
// Releases the tree, which the facts do not need.
void kilni_device_code_facts_drop_tree(kilni_device_code_facts_t* facts);
void kilni_device_code_facts_deinit(kilni_device_code_facts_t* facts);
// Describes kernels of a cubin by the PTX that it was made of. Those that are
// not there stay as they are.
kiln_status_t kilni_device_code_facts_describe(
    kilni_device_code_facts_t* facts, const kilni_device_code_source_t* ptx);
// The index of a kernel; kernel_count if there is none.
size_t kilni_device_code_facts_find(const kilni_device_code_facts_t* facts,
                                    const char* name);
// Appends a kernel of which only the name is known.
kiln_status_t kilni_device_code_facts_add(kilni_device_code_facts_t* facts,
                                          const char* name);

// ---- A driver's log (device_log.c) ----

// Whether a line is a Fix.
bool kilni_device_driver_log_is_fix(kiln_string_view_t line);
// The first such line of a log as the Fix of the status.
kiln_status_t kilni_device_driver_log_fix(kiln_status_t status,
                                          const char* log);

#endif  // KILN_SRC_DEVICE_DEVICE_INSIDE_H_
