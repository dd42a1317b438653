// SPDX-License-Identifier: Apache-2.0
//
// soft: tasks, what each waits for, and the threads that do them.
//
// A stream is a FIFO because each of its tasks waits for the one before it.
// Events and the legacy default stream are further tasks to wait for. A task
// that waits for nothing is ready; which ready task a worker takes is the
// seed's choice. Everything here is guarded by the driver's lock, which is
// never held while a kernel, a copy or a host function runs.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_QUEUE_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_QUEUE_H_

#include "base/thread.h"
#include "soft/engine/soft_grid.h"
#include "table/cuda_abi.h"

typedef struct kilni_soft_driver_t kilni_soft_driver_t;
typedef struct kilni_soft_context_t kilni_soft_context_t;
typedef struct kilni_soft_stream_t kilni_soft_stream_t;
typedef struct kilni_soft_task_t kilni_soft_task_t;

typedef enum kilni_soft_task_kind_t {
  KILNI_SOFT_TASK_MARK = 0,  // nothing to do: a place in the order
  KILNI_SOFT_TASK_FREE,
  KILNI_SOFT_TASK_KERNEL,
  KILNI_SOFT_TASK_COPY,
  KILNI_SOFT_TASK_FILL,
  KILNI_SOFT_TASK_HOST,
  KILNI_SOFT_TASK_BOX,
  KILNI_SOFT_TASK_VALUES,
  KILNI_SOFT_TASK_CONDITION,
  KILNI_SOFT_TASK_FLIGHT,  // a mark: the end of a graph's launch
} kilni_soft_task_kind_t;

typedef struct kilni_soft_flight_t kilni_soft_flight_t;
typedef struct kilni_soft_node_t kilni_soft_node_t;

// One end of a copy. thread-compatible
typedef struct kilni_soft_end_t {
  uint64_t address;
  uint32_t known;  // is in device memory's table; otherwise plain host bytes
  uint32_t reserved;
} kilni_soft_end_t;

// One side of a copy of rows. thread-compatible
typedef struct kilni_soft_side_t {
  kilni_soft_end_t at;  // of the first row
  uint64_t row_bytes;   // from row to row
  uint64_t slice_bytes;
} kilni_soft_side_t;

// A copy of a box. thread-compatible
typedef struct kilni_soft_box_t {
  kilni_soft_side_t to;
  kilni_soft_side_t from;
  uint64_t width;  // bytes
  uint64_t height;
  uint64_t depth;
} kilni_soft_box_t;

// What a task does. thread-compatible
typedef struct kilni_soft_work_t {
  kilni_soft_task_kind_t kind;
  union {
    struct {
      uint64_t address;
      kilni_soft_alloc_kind_t kind;
    } release;
    kilni_soft_grid_t* grid;  // owned once issued
    struct {
      kilni_soft_end_t to;
      kilni_soft_end_t from;
      void* staged;  // owned once issued: the source, if it was copied
      uint64_t bytes;
    } copy;
    struct {
      uint64_t address;
      uint64_t count;
      uint32_t value;
      uint32_t width;      // 1, 2 or 4
      uint64_t rows;       // 0 is 1
      uint64_t row_bytes;  // from row to row
    } fill;
    struct {
      kiln_cu_host_fn_t fn;
      void* user;
    } host;
    kilni_soft_box_t box;
    struct {
      kiln_cu_mem_op_t* list;  // owned once issued
      uint32_t count;
      uint32_t at;  // the next one
    } values;
    struct {
      kilni_soft_flight_t* flight;  // kept by its end
      const kilni_soft_node_t* node;
      kilni_soft_task_t* end;  // the node's successors wait for it
      uint32_t turns;          // of a loop, so far
    } condition;
    kilni_soft_flight_t* flight;  // owned once issued
  } as;
} kilni_soft_work_t;

// "`owner` waits for the task in whose list this is." thread-compatible
typedef struct kilni_soft_edge_t {
  kilni_soft_task_t* owner;
  kilni_soft_task_t* blocker;  // NULL once it is done
  bool is_ahead;               // the owner may begin before it has ended
  bool is_asked;               // by an event or a graph, not by streams alone
  struct kilni_soft_edge_t* next;
} kilni_soft_edge_t;

typedef struct kilni_soft_node_t kilni_soft_node_t;

// A place in the order of a stream. thread-compatible
struct kilni_soft_task_t {
  kilni_soft_work_t work;
  kilni_soft_stream_t* stream;
  const kilni_soft_node_t* node;  // of a graph, that it does; NULL: none
  uint64_t ticket;                // counts tasks in the order they were issued
  uint64_t owner;                 // whom it was issued for; 0: not known
  uint64_t done_ns;
  uint32_t refs;      // the queue, events, waiting threads
  uint32_t blockers;  // tasks it still waits for
  uint32_t inside;    // workers in its kernel
  bool done;
  bool wanted;  // a caller waits for it or queried it
  // Of a kernel that may begin before the one in front has ended: that one, and
  // how many are in each other's turns. It is done when that one is.
  kilni_soft_task_t* ahead;  // NULL once it is done
  uint32_t depth;
  bool is_ready;  // in the list of those
  bool begun;     // a worker was in its kernel, which may be put aside
  bool released;  // all its blocks let the successor begin
  bool over;      // its kernel has ended; but for `ahead` it is done
  bool given_up;  // it is skipped, or its kernel cancelled
  kilni_soft_edge_t* waiters;
  kilni_soft_task_t* next;  // in the list of running kernels, or of those done
  kilni_soft_task_t* walk_next;  // while edges are followed
  uint64_t walk;                 // the last walk that met it
  size_t edge_count;
  size_t edge_space;
  kilni_soft_edge_t edges[];
};

// The queue of the device. thread-compatible
typedef struct kilni_soft_queue_t {
  kilni_base_cond_t work;  // for workers: something is ready
  kilni_base_cond_t done;  // for callers: a task is done
  kilni_base_thread_t* threads;
  // Workers are started as there is work for them: two, and from then on one
  // for each ready task or block that finds none idle.
  uint32_t thread_limit;
  uint32_t thread_count;
  uint32_t idle;          // of them, those that wait or have not begun
  bool more_threads;      // false: the system gave no more
  bool short_of_threads;  // that is still to be reported
  bool stopping;
  // One worker and a seed: work starts only when a caller waits for it, so that
  // the order depends on the calls and the seed alone.
  bool lazy;
  // Work starts only when a caller waits for it or for a successor, the last
  // issued first, or, with a seed, in any order.
  bool latest;
  uint64_t seed;
  uint64_t random;
  uint64_t tickets;
  uint64_t walks;
  uint64_t pending;           // tasks issued and not done
  uint64_t wanted;            // of those, wanted
  uint64_t drainers;          // threads that wait for all
  kilni_soft_task_t** ready;  // by ticket
  size_t ready_count;
  size_t ready_capacity;
  kilni_soft_task_t* running;  // kernels with workers inside
  kilni_soft_task_t* between;  // that a worker is at without the lock
  // Tasks that wait for a value in memory, and loops that others may end.
  kilni_soft_task_t* watching;
  uint32_t waiting_values;  // how many of the first kind there are
  uint64_t executed;        // thread-instructions of kernels that have ended
} kilni_soft_queue_t;

kiln_status_t kilni_soft_queue_start(kilni_soft_driver_t* driver,
                                     uint32_t workers, uint64_t seed,
                                     bool latest);
// Cancels the running kernels that were issued on the context for `owner`, and
// has what else was issued for it so far skipped; the work of others goes on.
// Where others have asked to wait for that, the context fails for all. Locked.
void kilni_soft_queue_give_up(kilni_soft_driver_t* driver,
                              kilni_soft_context_t* context, uint64_t owner);
// Cancels running kernels, ends the workers and everything that is queued.
void kilni_soft_queue_stop(kilni_soft_driver_t* driver);

// Holds the caller back while the queue is full, as a GPU's driver does;
// unlocks while it waits, so call it before handles are looked up. A lazy queue
// does everything first, so that the order stays independent of time.
void kilni_soft_queue_space(kilni_soft_driver_t* driver);

// Puts `work` at the end of `stream`, to wait also for `after` (may be NULL).
// On success the queue owns what `work` owns; `out_task`, if not NULL,
// receives a reference. OUT_OF_MEMORY otherwise. Driver locked.
kiln_cu_result_t kilni_soft_queue_issue(kilni_soft_driver_t* driver,
                                        kilni_soft_stream_t* stream,
                                        const kilni_soft_work_t* work,
                                        kilni_soft_task_t* after,
                                        kilni_soft_task_t** out_task);
// The same of a kernel that waits itself for the one in front: it may begin
// before that has ended, if a kernel is the stream's last task and there is a
// seed. Otherwise it waits as all others, and its grid is let go.
kiln_cu_result_t kilni_soft_queue_issue_early(kilni_soft_driver_t* driver,
                                              kilni_soft_stream_t* stream,
                                              const kilni_soft_work_t* work,
                                              kilni_soft_task_t** out_task);
// What a grid of this driver is launched with under a seed.
void kilni_soft_queue_released(kilni_soft_grid_t* grid, void* user);
void kilni_soft_queue_pause(kilni_soft_grid_t* grid, void* user);

// ---- Tasks with an order of their own: what a graph is made of ----
//
// They are made first, which may fail, and then committed together, which
// cannot. Driver locked throughout.
//
// A task of `stream` that may wait for up to `space` others. It owns what
// `work` owns.
kiln_cu_result_t kilni_soft_task_new(kilni_soft_driver_t* driver,
                                     kilni_soft_stream_t* stream,
                                     const kilni_soft_work_t* work,
                                     size_t space,
                                     kilni_soft_task_t** out_task);
// Makes `task`, not committed yet, wait for `blocker` (may be NULL).
void kilni_soft_task_after(kilni_soft_task_t* task, kilni_soft_task_t* blocker);
// Does that for one that is committed and not done, in place of edge `slot`,
// whose blocker is done.
void kilni_soft_task_after_too(kilni_soft_task_t* task, size_t slot,
                               kilni_soft_task_t* blocker);
// Frees a task that was not committed.
void kilni_soft_task_drop(kilni_soft_driver_t* driver, kilni_soft_task_t* task);
// Whether nothing is there that could go on but the task of the worker that
// asks.
bool kilni_soft_queue_is_alone(const kilni_soft_driver_t* driver);
// Makes space for `count` more tasks.
kiln_cu_result_t kilni_soft_queue_reserve(kilni_soft_driver_t* driver,
                                          size_t count);
// Puts tasks into the queue, in this order. The last is the end of its stream,
// if `is_last`.
void kilni_soft_queue_commit(kilni_soft_driver_t* driver,
                             kilni_soft_task_t** tasks, size_t count,
                             bool is_last);
// Sees to it that `task` gets done.
void kilni_soft_task_want(kilni_soft_driver_t* driver, kilni_soft_task_t* task);

// Whether `task`, which is pending, waits for `other`, at once or through
// others.
bool kilni_soft_task_awaits(kilni_soft_driver_t* driver,
                            kilni_soft_task_t* task,
                            const kilni_soft_task_t* other);
void kilni_soft_task_retain(kilni_soft_task_t* task);
void kilni_soft_task_release(kilni_soft_driver_t* driver,
                             kilni_soft_task_t* task);

// Waits until `task` is done; NULL returns at once. Unlocks while it waits.
void kilni_soft_queue_wait(kilni_soft_driver_t* driver,
                           kilni_soft_task_t* task);
// Waits until nothing of the context, or with NULL nothing at all, is queued
// or runs.
void kilni_soft_queue_drain(kilni_soft_driver_t* driver,
                            const kilni_soft_context_t* context);
// True if `task` is done or NULL; otherwise sees to it that it gets done.
bool kilni_soft_queue_poll(kilni_soft_driver_t* driver,
                           kilni_soft_task_t* task);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_QUEUE_H_
