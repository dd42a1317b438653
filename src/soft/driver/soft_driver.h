// SPDX-License-Identifier: Apache-2.0
//
// soft: what the files of the driver front share: the driver's state, its
// objects, and how a row of the table begins and ends.
//
// Every row has the shape
//
//   kilni_soft_driver_t* driver;
//   kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_..., &driver);
//   if (result != KILN_CU_SUCCESS) return result;
//   ... under the driver's lock ...
//   return kilni_soft_leave(driver, result);
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_DRIVER_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_DRIVER_H_

#include "base/host.h"
#include "base/thread.h"
#include "soft/engine/soft_grid.h"
#include "soft/driver/soft_handle.h"
#include "soft/memory/soft_memory.h"
#include "soft/driver/soft_queue.h"
#include "table/cuda_table.h"

// Errors of the host program to look for.
enum { KILNI_SOFT_STORY_BYTES = 1024 };
enum { KILNI_SOFT_REPORT_UNWRITTEN = 1, KILNI_SOFT_REPORT_FREED = 2 };

enum {
  KILNI_SOFT_DRIVER_VERSION = 13000,
  KILNI_SOFT_PRIORITY_LEAST = 0,
  KILNI_SOFT_PRIORITY_GREATEST = -5,
  KILNI_SOFT_MAX_THREADS = 1024,
  KILNI_SOFT_SHARED_DEFAULT = 48 << 10,
  KILNI_SOFT_SHARED_MOST = 227 << 10,
  KILNI_SOFT_STACK_DEFAULT = 1024,
  KILNI_SOFT_STACK_MOST = 512 << 10,
  KILNI_SOFT_PRINTF_DEFAULT = 1 << 20,
};

// A stream. thread-compatible
struct kilni_soft_stream_t {
  kilni_soft_context_t* context;
  uint64_t handle;  // 0: a default stream
  uint64_t owner;   // whom its work is for; 0: whomever a thread acts for
  unsigned int flags;
  int priority;
  uint64_t pending;                        // its tasks that are not done
  bool destroyed;                          // freed with its last task
  kilni_soft_task_t* last;                 // NULL when all is done
  struct kilni_soft_captured_t* captured;  // NULL: it is not
  kilni_soft_stream_t* next;
};

// An event. thread-compatible
typedef struct kilni_soft_event_t {
  kilni_soft_context_t* context;
  uint64_t handle;
  unsigned int flags;
  unsigned int reserved;
  kilni_soft_task_t* recorded;             // NULL: never
  struct kilni_soft_captured_t* captured;  // where in a capture; NULL: in none
  struct kilni_soft_event_t* next;
} kilni_soft_event_t;

// A kernel with a handle. thread-compatible
typedef struct kilni_soft_kernel_t {
  uint64_t handle;
  uint64_t of_library;  // its handle as a kernel of a library; 0: none
  const kilni_soft_entry_t* entry;
  struct kilni_soft_module_t* module;
  int max_dynamic_shared;
  int carveout;
  struct kilni_soft_kernel_t* next;
} kilni_soft_kernel_t;

// A loaded module. thread-compatible
typedef struct kilni_soft_module_t {
  kilni_soft_context_t* context;
  uint64_t handle;
  uint64_t library;  // the handle of the library that it is of; 0: none
  kilni_image_ptx_module_t* tree;
  kilni_soft_code_t* code;
  kilni_soft_kernel_t* kernels;
  struct kilni_soft_module_t* next;
} kilni_soft_module_t;

typedef struct kilni_soft_jit_t kilni_soft_jit_t;
typedef struct kilni_soft_link_t kilni_soft_link_t;

typedef struct kilni_soft_physical_t kilni_soft_physical_t;

enum { KILNI_SOFT_POOL_SWITCHES = 3 };

// A memory pool. thread-compatible
typedef struct kilni_soft_pool_t {
  uint64_t handle;  // 0: destroyed, with allocations that live
  kilni_soft_alloc_kind_t kind;
  uint32_t access;     // of each device, two bits a device
  uint32_t device;     // whose memory it is of; of host memory: 0
  uint64_t max_bytes;  // 0: what the device has
  uint64_t threshold;
  uint64_t used;
  uint64_t used_high;
  uint64_t reserved;
  uint64_t reserved_high;
  int reuse[KILNI_SOFT_POOL_SWITCHES];  // kept and reported
  struct kilni_soft_pool_t* next;
} kilni_soft_pool_t;

// A pending stream-ordered free. thread-compatible
typedef struct kilni_soft_freeing_t {
  uint64_t address;
  kilni_soft_task_t* task;  // pending; NULL until it is issued
} kilni_soft_freeing_t;

// The primary context of a device, its only one. thread-compatible
struct kilni_soft_context_t {
  uint32_t device;
  bool telling;     // its first fault is being logged
  uint64_t handle;  // 0 while there is none
  uint32_t users;   // 0 with a handle: its last release waits for the queue
  unsigned int flags;
  kiln_cu_result_t sticky;
  uint32_t reserved;
  uint64_t giving_up;  // whose work is being given up
  size_t stack_bytes;
  size_t printf_bytes;
  uint64_t pending;             // tasks of its streams
  kilni_soft_memory_t* memory;  // of the device
  kilni_soft_stream_t legacy;
  kilni_soft_stream_t* streams;  // all but `legacy`
  kilni_soft_event_t* events;
  kilni_soft_module_t* modules;
  kilni_soft_link_t* links;
  kilni_soft_pool_t* default_pool;  // NULL until it is used
  uint64_t graph_used;  // bytes of graphs' allocations, as a driver counts them
  uint64_t graph_used_high;
  uint64_t graph_reserved;
  uint64_t graph_reserved_high;
};

// The software driver. thread-safe
struct kilni_soft_driver_t {
  kiln_host_t host;
  kilni_base_mutex_t lock;
  bool started;  // cuInit was called
  uint32_t worker_count;
  uint64_t seed;
  bool exact;
  bool latest;
  uint32_t report;  // KILNI_SOFT_REPORT_*
  bool scribble;    // over the buffers of links, whenever the driver may
  void (*print)(const char* text, size_t size, void* user);
  void* print_user;
  const kilni_soft_lane_set_t* lanes;
  kilni_soft_memory_t* memory;  // for queries that accept any device's
  kilni_soft_handles_t handles;
  kilni_soft_queue_t queue;
  uint32_t device_count;
  uint32_t reserved;
  kilni_soft_context_t contexts[KILNI_SOFT_DEVICES_MOST];
  kilni_soft_freeing_t* freeing;
  size_t freeing_count;
  size_t freeing_capacity;
  kilni_soft_profile_t* profile;      // of all launches; NULL: none is counted
  kilni_soft_pool_t* pools;           // they outlive the context
  kilni_soft_physical_t* physicals;   // as they do
  struct kilni_soft_graph_t* graphs;  // and they, and what is below
  struct kilni_soft_exec_t* execs;
  struct kilni_soft_object_t* objects;
  struct kilni_soft_object_t* ending;  // without references
  struct kilni_soft_capture_t* captures;
  struct kilni_soft_value_t* values;
  struct kilni_soft_store_t* stores;
  uint64_t serials;
  uint64_t capture_ids;
  // Of each device's context, the fault that made its error sticky, and where
  // the work was that was given up last; kind 0: there is none. As many as
  // there are devices.
  kiln_fault_t* faults;
  kiln_fault_t* places;
  char story[KILNI_SOFT_STORY_BYTES];  // for the log, by kilni_soft_leave
  kiln_cuda_table_t table;
};

// What a row needs before it can begin.
typedef enum kilni_soft_needs_t {
  KILNI_SOFT_NEEDS_NOTHING,  // a running driver
  KILNI_SOFT_NEEDS_START,    // and cuInit
  KILNI_SOFT_NEEDS_CURRENT,  // and a live current context
  KILNI_SOFT_NEEDS_HEALTHY,  // and no sticky error on it
} kilni_soft_needs_t;

// Checks and locks. Not locked on failure.
kiln_cu_result_t kilni_soft_enter(kilni_soft_needs_t needs,
                                  kilni_soft_driver_t** out_driver);
// Enters a row that names an object: also INVALID_VALUE unless `good` (what the
// row asks of its other arguments), then INVALID_HANDLE unless `handle` is a
// live one of `kind`.
kiln_cu_result_t kilni_soft_enter_object(kilni_soft_needs_t needs,
                                         kilni_soft_kind_t kind,
                                         const void* handle, bool good,
                                         kilni_soft_driver_t** out_driver,
                                         void** out_object);
// Enters a row that names a stream: with `issues`, waits first until the queue
// has space for a task; the rest as kilni_soft_stream_resolve.
kiln_cu_result_t kilni_soft_enter_stream(kiln_cu_stream_t handle, bool issues,
                                         kilni_soft_driver_t** out_driver,
                                         kilni_soft_stream_t** out_stream);
// One line more for the log, printed when the row is left. Locked.
void kilni_soft_tell(kilni_soft_driver_t* driver, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
// Unlocks and returns `result`; then prints pending lines, and ends user
// objects without references. INVALID_CONTEXT where no context is current; for
// rows around others.
kiln_cu_result_t kilni_soft_need_current(void);
kiln_cu_result_t kilni_soft_leave(kilni_soft_driver_t* driver,
                                  kiln_cu_result_t result);
// The result of the context of the calling thread: SUCCESS, INVALID_CONTEXT
// without one, CONTEXT_IS_DESTROYED for one that is gone. Locked.
kiln_cu_result_t kilni_soft_current_check(kilni_soft_driver_t* driver);
// The context of the calling thread; NULL where there is none that lives.
// Locked.
kilni_soft_context_t* kilni_soft_current(kilni_soft_driver_t* driver);
// SUCCESS, or the error that the context will never lose. Locked.
kiln_cu_result_t kilni_soft_sticky(const kilni_soft_context_t* context);
// True if `device` is the number of one.
bool kilni_soft_is_device(const kilni_soft_driver_t* driver, int64_t device);
// The result for `status`, which is ended.
kiln_cu_result_t kilni_soft_result(kiln_status_t status);

// Calls of the driver from a host function are refused (NOT_PERMITTED).
void kilni_soft_callback_begin(void);
void kilni_soft_callback_end(void);

// The stack of current contexts of this thread, as handles.
enum { KILNI_SOFT_STACK_LIMIT = 64 };
uint64_t kilni_soft_current_get(void);  // 0: none
void kilni_soft_current_set(uint64_t handle);
bool kilni_soft_current_push(uint64_t handle);  // false: the stack is full
uint64_t kilni_soft_current_pop(void);
// How this thread lives with captures; gives what it was.
kiln_cu_capture_mode_t kilni_soft_capture_exchange(kiln_cu_capture_mode_t mode);
kiln_cu_capture_mode_t kilni_soft_capture_mode(void);
// Whom this thread acts for (kilni_soft_act_for).
uint64_t kilni_soft_acts_for(void);

// What this thread was told that a text was read to (kilni_soft_offer), or
// NULL. Borrowed.
kilni_image_ptx_module_t* kilni_soft_offered(const void* text);
// A number of the calling thread, unlike that of every other there ever was.
uint64_t kilni_soft_thread_number(void);
// The per-thread default stream of this thread on a device, as a handle.
uint64_t kilni_soft_thread_stream_get(uint32_t device);
void kilni_soft_thread_stream_set(uint32_t device, uint64_t handle);

// Ends everything of the context: streams, events, modules, memory. Nothing of
// it is queued. Locked.
void kilni_soft_context_clear(kilni_soft_driver_t* driver,
                              kilni_soft_context_t* context);

// What may be launched, or asked for the blocks that fit: a function, or a
// kernel of a library that was cast to one, as the driver takes it; NULL for
// anything else. Locked.
kilni_soft_kernel_t* kilni_soft_launchable(kilni_soft_driver_t* driver,
                                           kiln_cu_function_t function);

// The stream behind a handle: the default streams need a current context.
// Also refuses when the context has a sticky error. Locked.
kiln_cu_result_t kilni_soft_stream_resolve(kilni_soft_driver_t* driver,
                                           kiln_cu_stream_t handle,
                                           kilni_soft_stream_t** out_stream);
// Takes a destroyed stream out and frees it. Locked.
void kilni_soft_stream_dispose(kilni_soft_driver_t* driver,
                               kilni_soft_stream_t* stream);
void kilni_soft_event_dispose(kilni_soft_driver_t* driver,
                              kilni_soft_event_t* event);
// Frees a module that is in no list any more and has no handles.
void kilni_soft_module_dispose(kilni_soft_driver_t* driver,
                               kilni_soft_module_t* module);
// Loads PTX into the context; locked on entry and on return, unlocked between.
kiln_cu_result_t kilni_soft_module_load(kilni_soft_driver_t* driver,
                                        const void* image,
                                        const kilni_soft_jit_t* jit,
                                        kilni_soft_module_t** out_module);
// Takes a module out, waits for what runs of it, and frees it. Locked.
void kilni_soft_module_end(kilni_soft_driver_t* driver,
                           kilni_soft_module_t* module);
// The kernel object of an entry: one for each entry, made when asked for.
kiln_cu_result_t kilni_soft_module_kernel(kilni_soft_driver_t* driver,
                                          kilni_soft_module_t* module,
                                          const kilni_soft_entry_t* entry,
                                          kilni_soft_kernel_t** out_kernel);
kiln_cu_result_t kilni_soft_kernel_read(const kilni_soft_kernel_t* kernel,
                                        kiln_cu_function_attribute_t attribute,
                                        int* out_value);
kiln_cu_result_t kilni_soft_kernel_set(kilni_soft_kernel_t* kernel,
                                       kiln_cu_function_attribute_t attribute,
                                       int value);
kiln_cu_result_t kilni_soft_kernel_param(const kilni_soft_kernel_t* kernel,
                                         size_t index, size_t* offset,
                                         size_t* bytes);
// A whole file: FILE_NOT_FOUND where it cannot be read. kilni_base_file_free.
kiln_cu_result_t kilni_soft_file_read(kiln_allocator_t allocator,
                                      const char* path, size_t limit,
                                      uint8_t** out_data, size_t* out_size);
// Ends all links of the context. Locked.
void kilni_soft_links_clear(kilni_soft_driver_t* driver,
                            kilni_soft_context_t* context);
void kilni_soft_module_unhandle(kilni_soft_driver_t* driver,
                                kilni_soft_module_t* module);
// Allocates on a device; when there is no space, once more after the pending
// frees.
kiln_cu_result_t kilni_soft_allocate(kilni_soft_driver_t* driver,
                                     uint32_t device, uint64_t bytes,
                                     kilni_soft_alloc_kind_t kind,
                                     uint64_t* out_address);
// The device's own pool.
kiln_cu_result_t kilni_soft_pool_default(kilni_soft_driver_t* driver,
                                         uint32_t device,
                                         kilni_soft_pool_t** out_pool);
// An allocation from a pool for a stream of `context`, and its end. Locked.
kiln_cu_result_t kilni_soft_pool_take(kilni_soft_driver_t* driver,
                                      const kilni_soft_context_t* context,
                                      kilni_soft_pool_t* pool, uint64_t bytes,
                                      uint64_t* out_address);
void kilni_soft_pool_give(kilni_soft_driver_t* driver,
                          const kilni_soft_alloc_t* alloc);
// A synchronisation: pools keep at most their limit.
void kilni_soft_pools_settle(kilni_soft_driver_t* driver);
// All allocations are gone; ends every pool.
void kilni_soft_pools_clear(kilni_soft_driver_t* driver);
// Ends all memory that was made to be mapped.
void kilni_soft_physicals_clear(kilni_soft_driver_t* driver);
// Where uses of freed memory are looked for. soft_freeing.c. Locked.
//
// Gives a kernel that is about to run the memory that is freed without waiting
// for it.
void kilni_soft_freeing_forbid(kilni_soft_driver_t* driver,
                               kilni_soft_task_t* task);
// False, with the report, if the copy or fill uses memory that is freed, or is
// about to be, without waiting for it.
bool kilni_soft_freeing_allows(kilni_soft_driver_t* driver,
                               kilni_soft_task_t* task,
                               kiln_fault_t* out_fault);

// Where a context's work is, for a time limit; soft_place.c. one-thread
typedef struct kilni_soft_place_t {
  kiln_fault_t at;  // kind 0: in a kernel, or not known
  uint32_t turns;   // of a loop
} kilni_soft_place_t;

// Before the work of `owner` is given up, and when it is over: `inout_fault` is
// what a kernel's end has reported. Locked.
void kilni_soft_place_find(kilni_soft_driver_t* driver,
                           const kilni_soft_context_t* context, uint64_t owner,
                           kilni_soft_place_t* out_place);
void kilni_soft_place_take(const kilni_soft_place_t* place,
                           kiln_fault_t* inout_fault);

// soft_faults.c: a fault of something other than a kernel, whose first line
// states what happened; the node that `task` does; the story for the log.
void kilni_soft_fault_of_work(kiln_fault_t* out_fault,
                              const kilni_soft_task_t* task, const char* format,
                              ...) __attribute__((format(printf, 3, 4)));
void kilni_soft_fault_name_node(kiln_fault_t* fault,
                                const kilni_soft_task_t* task);
// A node by its name or number, after that of the node that it is inside.
void kilni_soft_fault_name_of(kiln_fault_t* fault,
                              const kilni_soft_node_t* node);
void kilni_soft_fault_log(const kiln_log_sink_t* log,
                          const kiln_fault_t* fault);
// A stream-ordered free has happened. Locked.
void kilni_soft_freeing_done(kilni_soft_driver_t* driver, uint64_t address);
kiln_cu_result_t kilni_soft_attribute(kiln_cu_device_attribute_t attribute,
                                      uint32_t device, int* out_value);

// The rows that the device has, by the file that has them.
void kilni_soft_fill_device(kiln_cuda_table_t* table);
void kilni_soft_fill_context(kiln_cuda_table_t* table);
void kilni_soft_fill_alloc(kiln_cuda_table_t* table);
void kilni_soft_fill_pool(kiln_cuda_table_t* table);
void kilni_soft_fill_virtual(kiln_cuda_table_t* table);
void kilni_soft_fill_pointer(kiln_cuda_table_t* table);
void kilni_soft_fill_copy(kiln_cuda_table_t* table);
void kilni_soft_fill_managed(kiln_cuda_table_t* table);
void kilni_soft_fill_peer(kiln_cuda_table_t* table);
void kilni_soft_fill_stream(kiln_cuda_table_t* table);
void kilni_soft_fill_event(kiln_cuda_table_t* table);
void kilni_soft_fill_module(kiln_cuda_table_t* table);
void kilni_soft_fill_kernel(kiln_cuda_table_t* table);
void kilni_soft_fill_library(kiln_cuda_table_t* table);
void kilni_soft_fill_link(kiln_cuda_table_t* table);
void kilni_soft_fill_launch(kiln_cuda_table_t* table);

// soft_kernel.c: blocks of the kernel that fit the device at once.
uint64_t kilni_soft_resident_blocks(const kilni_soft_kernel_t* kernel,
                                    uint32_t threads, uint32_t dynamic_bytes);
// soft_launch.c: the result of a launch with this attribute.
kiln_cu_result_t kilni_soft_check_attribute(
    const kiln_cu_launch_attribute_t* attribute);

// An analyzer reads one file at a time. What it must know of soft_driver.c:
// a row is entered with good arguments only, left with the result it gives,
// and an error never becomes a success.
#ifdef __clang_analyzer__
static inline kiln_cu_result_t kilni_soft_analyzed(bool good,
                                                   kiln_cu_result_t result) {
  if (!good && result == KILN_CU_SUCCESS) __builtin_unreachable();
  return result;
}
#define kilni_soft_enter_object(needs, kind, handle, good, ...) \
  kilni_soft_analyzed(                                          \
      good, kilni_soft_enter_object(needs, kind, handle, good, __VA_ARGS__))
#define kilni_soft_leave(driver, result) \
  (kilni_soft_leave(driver, result), (result))
#define kilni_soft_result(status) \
  kilni_soft_analyzed(kiln_status_is_ok(status), kilni_soft_result(status))
#endif

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_DRIVER_H_
