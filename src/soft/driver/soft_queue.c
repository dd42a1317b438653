// SPDX-License-Identifier: Apache-2.0
//
// soft: tasks, what each waits for, and the threads that do them.
#include "soft/driver/soft_queue.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_abi.h"

// As a GPU's driver, an issuing thread waits while this many tasks are queued.
enum { QUEUE_LIMIT = 1024, GIVE_UP_NS = 500 * 1000 * 1000 };

static uint64_t queue_next_random(uint64_t* state) {
  uint64_t value = (*state += 0x9e3779b97f4a7c15ull);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// ---- Workers ----

static void worker_main(void* user);

// One could not be started: the others do its work.
static void no_more_workers(kilni_soft_queue_t* queue) {
  queue->idle--;
  queue->more_threads = false;
  queue->short_of_threads = true;
}

// One worker more, as far as there may be. It counts as idle until it runs.
static void add_worker(kilni_soft_driver_t* driver) {
  kilni_soft_queue_t* queue = &driver->queue;
  if (queue->stopping || !queue->more_threads ||
      queue->thread_count == queue->thread_limit) {
    return;
  }
  queue->idle++;
  kiln_status_t status = kilni_base_thread_start(
      &queue->threads[queue->thread_count], "kiln-soft", worker_main, driver);
  if (kiln_status_is_ok(status)) {
    queue->thread_count++;
    return;
  }
  kiln_status_free(status);
  no_more_workers(queue);
}

// Something is ready: a waiting worker gets it, or one more is started.
static void wake_for_ready(kilni_soft_driver_t* driver) {
  kilni_soft_queue_t* queue = &driver->queue;
  if (queue->ready_count > queue->idle) add_worker(driver);
  kilni_base_cond_signal(&queue->work);
}

// A worker that begins a kernel wakes two more, which each wake two: no worker
// is woken or started for a kernel whose blocks are all taken by then.
static void call_help(kilni_soft_driver_t* driver,
                      const kilni_soft_task_t* task) {
  kilni_soft_queue_t* queue = &driver->queue;
  uint64_t space = kilni_soft_grid_space(task->work.as.grid, task->inside);
  for (uint32_t i = 1; i <= 2 && i <= space; i++) {
    if (queue->idle < i) {
      add_worker(driver);
      return;
    }
    kilni_base_cond_signal(&queue->work);
  }
}

static void drop_payload(kilni_soft_driver_t* driver, kilni_soft_work_t* work) {
  if (work->kind == KILNI_SOFT_TASK_KERNEL) {
    kilni_soft_grid_destroy(work->as.grid);
    work->as.grid = NULL;
  } else if (work->kind == KILNI_SOFT_TASK_COPY) {
    kilni_base_free(driver->host.allocator, work->as.copy.staged,
                    (size_t)work->as.copy.bytes);
    work->as.copy.staged = NULL;
  } else if (work->kind == KILNI_SOFT_TASK_VALUES) {
    kilni_base_free_array(driver->host.allocator, work->as.values.list,
                          work->as.values.count, sizeof(*work->as.values.list));
    work->as.values.list = NULL;
  } else if (work->kind == KILNI_SOFT_TASK_FLIGHT) {
    kilni_soft_flight_end(driver, work->as.flight);
    work->as.flight = NULL;
  }
}

bool kilni_soft_task_awaits(kilni_soft_driver_t* driver,
                            kilni_soft_task_t* task,
                            const kilni_soft_task_t* other) {
  uint64_t walk = ++driver->queue.walks;
  task->walk = walk;
  task->walk_next = NULL;
  while (task != NULL) {
    if (task == other) return true;
    kilni_soft_task_t* list = task->walk_next;
    for (size_t i = 0; i < task->edge_count; i++) {
      kilni_soft_task_t* blocker = task->edges[i].blocker;
      if (blocker == NULL || blocker->walk == walk) continue;
      blocker->walk = walk;
      blocker->walk_next = list;
      list = blocker;
    }
    task = list;
  }
  return false;
}

void kilni_soft_task_retain(kilni_soft_task_t* task) {
  task->refs++;
}

void kilni_soft_task_release(kilni_soft_driver_t* driver,
                             kilni_soft_task_t* task) {
  if (task == NULL || --task->refs != 0) return;
  kilni_base_free(driver->host.allocator, task,
                  sizeof(*task) + task->edge_space * sizeof(kilni_soft_edge_t));
}

// ---- The end of a task ----

static void do_free(kilni_soft_driver_t* driver,
                    const kilni_soft_task_t* task) {
  const kilni_soft_work_t* work = &task->work;
  kilni_soft_freed_t freed = {.stream = task->stream->handle,
                              .work = task->ticket,
                              .how = KILNI_SOFT_FREE_ORDERED};
  uint64_t address = work->as.release.address;
  kilni_soft_alloc_t alloc;
  bool known = kilni_soft_memory_query(driver->memory, address, &alloc);
  kiln_status_free(kilni_soft_memory_free_as(driver->memory, address,
                                             work->as.release.kind, &freed));
  if (known) kilni_soft_pool_give(driver, &alloc);
  kilni_soft_freeing_done(driver, address);
}

// `task` waits for nothing any more. What takes no time is done here and put
// on the list of those to be ended; the rest is for the workers.
static void queue_make_ready(kilni_soft_driver_t* driver,
                             kilni_soft_task_t* task,
                             kilni_soft_task_t** list) {
  kilni_soft_queue_t* queue = &driver->queue;
  if (task->work.kind == KILNI_SOFT_TASK_MARK ||
      task->work.kind == KILNI_SOFT_TASK_FLIGHT ||
      task->work.kind == KILNI_SOFT_TASK_FREE) {
    if (task->work.kind == KILNI_SOFT_TASK_FREE) do_free(driver, task);
    task->next = *list;
    *list = task;
    return;
  }
  task->is_ready = true;
  // Space for every pending task was made when it was issued. The list is
  // sorted by ticket, so that no choice depends on which task was done first.
  size_t at = queue->ready_count++;
  for (; at > 0 && queue->ready[at - 1]->ticket > task->ticket; at--) {
    queue->ready[at] = queue->ready[at - 1];
  }
  queue->ready[at] = task;
  wake_for_ready(driver);
}

// ---- Kernels that begin before the one in front has ended ----

// Whether the kernel in front, if there is one, allows it.
static bool may_begin(const kilni_soft_task_t* task) {
  return task->ahead == NULL || task->ahead->released || task->ahead->over;
}

static void begin_if_it_may(kilni_soft_driver_t* driver,
                            kilni_soft_task_t* task, kilni_soft_task_t** list) {
  if (task->blockers == 0 && !task->is_ready && !task->begun &&
      may_begin(task)) {
    queue_make_ready(driver, task, list);
  }
}

// The kernel before `task` has ended: its waits are over, and it goes on if it
// was put aside.
static void let_go_on(kilni_soft_driver_t* driver, kilni_soft_task_t* task,
                      kilni_soft_task_t** list) {
  kilni_soft_grid_t* grid = task->work.as.grid;
  if (grid == NULL) return;
  kilni_soft_grid_let_go(grid);
  begin_if_it_may(driver, task, list);
  if (task->begun && !task->is_ready && task->inside == 0) {
    queue_make_ready(driver, task, list);
  }
}

// The task before `task` is done.
static void queue_let_go(kilni_soft_driver_t* driver, kilni_soft_task_t* task,
                         kilni_soft_task_t** list) {
  task->ahead = NULL;
  if (task->over) {
    task->next = *list;
    *list = task;
    return;
  }
  let_go_on(driver, task, list);
}

static void finish_list(kilni_soft_driver_t* driver, kilni_soft_task_t* list) {
  kilni_soft_queue_t* queue = &driver->queue;
  if (list == NULL) return;
  while (list != NULL) {
    kilni_soft_task_t* task = list;
    kilni_soft_stream_t* stream = task->stream;
    list = task->next;
    drop_payload(driver, &task->work);
    task->done = true;
    task->done_ns = kilni_base_time_ns();
    queue->pending--;
    stream->context->pending--;
    if (task->wanted) queue->wanted--;
    for (kilni_soft_edge_t* edge = task->waiters; edge != NULL;
         edge = edge->next) {
      edge->blocker = NULL;
      if (edge->is_ahead) {
        queue_let_go(driver, edge->owner, &list);
      } else if (--edge->owner->blockers == 0 && may_begin(edge->owner)) {
        queue_make_ready(driver, edge->owner, &list);
      }
    }
    if (stream->last == task) stream->last = NULL;
    if (--stream->pending == 0 && stream->destroyed) {
      kilni_soft_stream_dispose(driver, stream);
    }
    kilni_soft_task_release(driver, task);
  }
  kilni_base_cond_broadcast(&queue->done);
}

static void queue_finish(kilni_soft_driver_t* driver, kilni_soft_task_t* task) {
  task->next = NULL;
  finish_list(driver, task);
}

// The kernel of `task` has ended, or never begins. Later ones that wait for it
// alone go on; all other work in stream order sees it done when the work before
// it is done, so that only griddepcontrol.wait can overtake.
static void end_kernel(kilni_soft_driver_t* driver, kilni_soft_task_t* task) {
  if (task->ahead == NULL) {
    queue_finish(driver, task);
    return;
  }
  kilni_soft_task_t* list = NULL;
  task->over = true;
  for (kilni_soft_edge_t* edge = task->waiters; edge != NULL;
       edge = edge->next) {
    if (edge->is_ahead) let_go_on(driver, edge->owner, &list);
  }
}

static kilni_soft_task_t* find_task(const kilni_soft_queue_t* queue,
                                    const kilni_soft_grid_t* grid) {
  kilni_soft_task_t* task = queue->running;
  while (task != NULL && task->work.as.grid != grid) task = task->next;
  return task;
}

void kilni_soft_queue_released(kilni_soft_grid_t* grid, void* user) {
  kilni_soft_driver_t* driver = user;
  kilni_soft_task_t* list = NULL;
  kilni_base_mutex_lock(&driver->lock);
  kilni_soft_task_t* task = find_task(&driver->queue, grid);
  if (task != NULL) {
    task->released = true;
    for (kilni_soft_edge_t* edge = task->waiters; edge != NULL;
         edge = edge->next) {
      if (edge->is_ahead) begin_if_it_may(driver, edge->owner, &list);
    }
  }
  kilni_base_mutex_unlock(&driver->lock);
}

// ---- Faults ----

static kiln_cu_result_t fault_result(kilni_soft_fault_kind_t kind) {
  switch (kind) {
    case KILNI_SOFT_FAULT_NONE:
    case KILNI_SOFT_FAULT_CANCELLED:
      return KILN_CU_SUCCESS;
    case KILNI_SOFT_FAULT_ILLEGAL_ADDRESS:
      return KILN_CU_ERROR_ILLEGAL_ADDRESS;
    case KILNI_SOFT_FAULT_MISALIGNED:
      return KILN_CU_ERROR_MISALIGNED_ADDRESS;
    case KILNI_SOFT_FAULT_ASSERT:
      return KILN_CU_ERROR_ASSERT;
    case KILNI_SOFT_FAULT_DEADLOCK:
      return KILN_CU_ERROR_LAUNCH_TIMEOUT;
    case KILNI_SOFT_FAULT_STACK:
      return KILN_CU_ERROR_HARDWARE_STACK_ERROR;
    case KILNI_SOFT_FAULT_ILLEGAL_INSTRUCTION:
      return KILN_CU_ERROR_ILLEGAL_INSTRUCTION;
    case KILNI_SOFT_FAULT_TRAP:
    case KILNI_SOFT_FAULT_OUT_OF_MEMORY:
    case KILNI_SOFT_FAULT_UNWRITTEN:
      return KILN_CU_ERROR_LAUNCH_FAILED;
  }
  return KILN_CU_ERROR_LAUNCH_FAILED;
}

static void cancel_running(kilni_soft_driver_t* driver,
                           const kilni_soft_context_t* context) {
  for (kilni_soft_task_t* task = driver->queue.running; task != NULL;
       task = task->next) {
    if (task->stream->context == context) {
      kilni_soft_grid_cancel(task->work.as.grid);
    }
  }
}

// ---- Giving up ----

static bool runs(const kilni_soft_queue_t* queue,
                 const kilni_soft_context_t* context, uint64_t owner) {
  for (const kilni_soft_task_t* task = queue->running; task != NULL;
       task = task->next) {
    if (task->stream->context == context && task->given_up &&
        task->owner == owner) {
      return true;
    }
  }
  return false;
}

// Whether other code has asked to wait for `task`.
static bool has_others(const kilni_soft_task_t* task) {
  const kilni_soft_edge_t* edge = task->waiters;
  while (edge != NULL &&
         (!edge->is_asked || edge->owner->owner == task->owner)) {
    edge = edge->next;
  }
  return edge != NULL;
}

// Marks `task` and what it waits for, as far as it is the owner's and no walk
// of this number met it. True if others have asked to wait for some of that.
static bool give_up_from(kilni_soft_task_t* task, uint64_t owner,
                         uint64_t walk) {
  bool others = false;
  if (task == NULL || task->walk == walk) return false;
  task->walk = walk;
  task->walk_next = NULL;
  while (task != NULL) {
    kilni_soft_task_t* list = task->walk_next;
    if (task->owner == owner) {
      task->given_up = true;
      others = has_others(task) || others;
      if (task->inside > 0) kilni_soft_grid_cancel(task->work.as.grid);
    }
    for (size_t i = 0; i < task->edge_count; i++) {
      kilni_soft_task_t* blocker = task->edges[i].blocker;
      if (blocker == NULL || blocker->walk == walk) continue;
      blocker->walk = walk;
      blocker->walk_next = list;
      list = blocker;
    }
    task = list;
  }
  return others;
}

// Every task that is not done is the last of its stream, or that waits for it.
static bool give_up_work(kilni_soft_driver_t* driver,
                         kilni_soft_context_t* context, uint64_t owner) {
  uint64_t walk = ++driver->queue.walks;
  bool others = give_up_from(context->legacy.last, owner, walk);
  for (kilni_soft_stream_t* stream = context->streams; stream != NULL;
       stream = stream->next) {
    others = give_up_from(stream->last, owner, walk) || others;
  }
  return others;
}

// Work of others waits for what never comes: no result of it may be taken.
static void fail_for_all(kilni_soft_driver_t* driver,
                         kilni_soft_context_t* context) {
  kiln_fault_t* fault = &driver->faults[context->device];
  *fault = kiln_fault_default();
  fault->kind = KILN_FAULT_TIME_LIMIT;
  context->sticky = KILN_CU_ERROR_LAUNCH_TIMEOUT;
  cancel_running(driver, context);
}

void kilni_soft_queue_give_up(kilni_soft_driver_t* driver,
                              kilni_soft_context_t* context, uint64_t owner) {
  kiln_fault_t* place = &driver->places[context->device];
  kilni_soft_place_t found;
  kilni_soft_place_find(driver, context, owner, &found);
  context->giving_up = owner;
  place->kind = KILN_FAULT_NONE;
  bool others = give_up_work(driver, context, owner) &&
                context->sticky == KILN_CU_SUCCESS;
  if (others) fail_for_all(driver, context);
  // Where the threads are is known at the end of their turns: soon.
  uint64_t until = kilni_base_time_ns() + GIVE_UP_NS;
  while (
      runs(&driver->queue, context, owner) &&
      kilni_base_cond_wait_until(&driver->queue.done, &driver->lock, until)) {
  }
  kilni_soft_place_take(&found, place);
  kiln_fault_t* fault = &driver->faults[context->device];
  if (others && place->kind != KILN_FAULT_NONE) *fault = *place;
}

// The first fault is logged, without the lock, and only then made known and
// sticky, and running work stopped: a waiting caller that gets the error finds
// the report in the log. Later faults belong to the same report, and are
// dropped.
static void fail_context(kilni_soft_driver_t* driver,
                         const kilni_soft_task_t* task, kiln_cu_result_t result,
                         kiln_fault_t* fault) {
  kilni_soft_context_t* context = task->stream->context;
  if (context->sticky != KILN_CU_SUCCESS || context->telling) return;
  context->telling = true;
  kilni_soft_fault_name_node(fault, task);
  kilni_base_mutex_unlock(&driver->lock);
  kilni_soft_fault_log(&driver->host.log, fault);
  kilni_base_mutex_lock(&driver->lock);
  context->telling = false;
  context->sticky = result;
  driver->faults[context->device] = *fault;
  cancel_running(driver, context);
}

static void fail_work(kilni_soft_driver_t* driver,
                      const kilni_soft_task_t* task, const char* text) {
  kiln_fault_t fault;
  kilni_soft_fault_of_work(&fault, task, "%s", text);
  fail_context(driver, task, KILN_CU_ERROR_ILLEGAL_ADDRESS, &fault);
}

// How a kernel ended: its fault, or where it was when it was given up.
static void end_grid(kilni_soft_driver_t* driver, const kilni_soft_task_t* task,
                     const kilni_soft_fault_t* fault) {
  const kilni_soft_context_t* context = task->stream->context;
  if (fault->kind == KILNI_SOFT_FAULT_NONE) return;
  kiln_fault_t told = kiln_fault_default();
  kilni_soft_fault_tell(fault, &told);
  kiln_cu_result_t result = fault_result(fault->kind);
  if (result != KILN_CU_SUCCESS) {
    fail_context(driver, task, result, &told);
  } else if (fault->has_thread && task->given_up &&
             task->owner == context->giving_up &&
             driver->places[context->device].kind == KILN_FAULT_NONE) {
    kilni_soft_fault_name_node(&told, task);
    driver->places[context->device] = told;
  }
}

// ---- What workers do, unlocked ----

static void* end_pointer(kilni_soft_driver_t* driver,
                         const kilni_soft_end_t* end, uint64_t bytes) {
  if (!end->known) return (void*)(uintptr_t)end->address;
  return kilni_soft_memory_host(driver->memory, end->address, bytes);
}

// Where marks of written memory are kept: bytes copied within the device are
// as written as they were, all others are.
static void mark_copy(kilni_soft_driver_t* driver, const kilni_soft_end_t* to,
                      const kilni_soft_end_t* from, uint64_t bytes) {
  const kilni_soft_marks_t* marks = kilni_soft_memory_marks(driver->memory);
  if (marks == NULL || !to->known) return;
  if (from->known) {
    kilni_soft_marks_copy(marks, to->address, from->address, bytes);
  } else {
    kilni_soft_marks_set(marks, to->address, bytes);
  }
}

// False if an end is gone by now.
static bool do_copy(kilni_soft_driver_t* driver, kilni_soft_work_t* work) {
  uint64_t bytes = work->as.copy.bytes;
  void* to = end_pointer(driver, &work->as.copy.to, bytes);
  const void* from = work->as.copy.staged;
  if (from == NULL) from = end_pointer(driver, &work->as.copy.from, bytes);
  if (to == NULL || from == NULL) return false;
  mark_copy(driver, &work->as.copy.to, &work->as.copy.from, bytes);
  memmove(to, from, (size_t)bytes);
  return true;
}

// One row of a box after the other.
static bool do_box(kilni_soft_driver_t* driver, const kilni_soft_box_t* box) {
  for (uint64_t z = 0; z < box->depth; z++) {
    for (uint64_t y = 0; y < box->height; y++) {
      kilni_soft_work_t row = {
          .kind = KILNI_SOFT_TASK_COPY,
          .as.copy = {
              .to = box->to.at, .from = box->from.at, .bytes = box->width}};
      row.as.copy.to.address += z * box->to.slice_bytes + y * box->to.row_bytes;
      row.as.copy.from.address +=
          z * box->from.slice_bytes + y * box->from.row_bytes;
      if (!do_copy(driver, &row)) return false;
    }
  }
  return true;
}

static bool fill_row(kilni_soft_driver_t* driver, const kilni_soft_work_t* work,
                     uint64_t address) {
  uint64_t count = work->as.fill.count;
  uint32_t width = work->as.fill.width;
  uint32_t value = work->as.fill.value;
  uint8_t* to = kilni_soft_memory_host(driver->memory, address, count * width);
  if (to == NULL) return false;
  const kilni_soft_marks_t* marks = kilni_soft_memory_marks(driver->memory);
  if (marks != NULL) kilni_soft_marks_set(marks, address, count * width);
  if (width == 1) {
    memset(to, (int)(value & 0xff), (size_t)count);
    return true;
  }
  // Little-endian hosts only, as the device: the low bytes come first.
  for (uint64_t i = 0; i < count; i++) memcpy(to + i * width, &value, width);
  return true;
}

static bool do_fill(kilni_soft_driver_t* driver,
                    const kilni_soft_work_t* work) {
  uint64_t rows = work->as.fill.rows > 0 ? work->as.fill.rows : 1;
  for (uint64_t i = 0; i < rows; i++) {
    uint64_t address = work->as.fill.address + i * work->as.fill.row_bytes;
    if (!fill_row(driver, work, address)) return false;
  }
  return true;
}

static void queue_take_out(kilni_soft_task_t** link,
                           const kilni_soft_task_t* task) {
  while (*link != task) link = &(*link)->next;
  *link = task->next;
}

// While the lock is given away for a task that is in no other list.
static void unlock_for(kilni_soft_driver_t* driver, kilni_soft_task_t* task) {
  task->next = driver->queue.between;
  driver->queue.between = task;
  kilni_base_mutex_unlock(&driver->lock);
}

static void lock_again(kilni_soft_driver_t* driver,
                       const kilni_soft_task_t* task) {
  kilni_base_mutex_lock(&driver->lock);
  queue_take_out(&driver->queue.between, task);
}

static void run_plain(kilni_soft_driver_t* driver, kilni_soft_task_t* task) {
  static const char kGone[] =
      "a copy or fill ran after its device memory had been freed";
  kiln_fault_t fault;
  bool good = true;
  if ((driver->report & KILNI_SOFT_REPORT_FREED) != 0 &&
      !kilni_soft_freeing_allows(driver, task, &fault)) {
    fail_context(driver, task, KILN_CU_ERROR_ILLEGAL_ADDRESS, &fault);
    queue_finish(driver, task);
    return;
  }
  unlock_for(driver, task);
  switch (task->work.kind) {
    case KILNI_SOFT_TASK_COPY:
      good = do_copy(driver, &task->work);
      break;
    case KILNI_SOFT_TASK_FILL:
      good = do_fill(driver, &task->work);
      break;
    case KILNI_SOFT_TASK_BOX:
      good = do_box(driver, &task->work.as.box);
      break;
    case KILNI_SOFT_TASK_HOST:
      kilni_soft_callback_begin();
      task->work.as.host.fn(task->work.as.host.user);
      kilni_soft_callback_end();
      break;
    default:
      break;
  }
  lock_again(driver, task);
  if (!good) fail_work(driver, task, kGone);
  queue_finish(driver, task);
}

// Works on a kernel; the last worker to leave it ends it.
static void queue_run_kernel(kilni_soft_driver_t* driver,
                             kilni_soft_task_t* task) {
  kilni_soft_queue_t* queue = &driver->queue;
  kilni_soft_grid_t* grid = task->work.as.grid;
  task->inside++;
  call_help(driver, task);
  kilni_base_mutex_unlock(&driver->lock);
  kilni_soft_grid_work(grid);
  kilni_base_mutex_lock(&driver->lock);
  if (--task->inside != 0) return;
  queue_take_out(&queue->running, task);
  if (kilni_soft_grid_is_aside(grid)) {
    // It may have been released meanwhile.
    kilni_soft_task_t* list = NULL;
    if (task->ahead == NULL || task->ahead->over) {
      queue_make_ready(driver, task, &list);
    }
    return;
  }
  // From here on no other thread may find it: the lock is released below.
  task->work.as.grid = NULL;
  queue->executed += kilni_soft_grid_executed(grid);
  const kilni_soft_profile_t* profile = kilni_soft_grid_profile(grid);
  if (profile && driver->profile) {
    kilni_soft_profile_add(driver->profile, profile);
  }
  end_grid(driver, task, kilni_soft_grid_fault(grid));
  unlock_for(driver, task);
  kilni_soft_grid_destroy(grid);
  lock_again(driver, task);
  end_kernel(driver, task);
}

static void start_task(kilni_soft_driver_t* driver, kilni_soft_task_t* task);
static kilni_soft_task_t* queue_take_at(kilni_soft_queue_t* queue, uint64_t at);

// Lets a conditional node decide, which may append tasks. A loop that does not
// change its own value lets others go first, whatever the order is: one of them
// may change it. Where others are at work it is put aside meanwhile: its
// iterations lock what they need.
static void run_condition(kilni_soft_driver_t* driver,
                          kilni_soft_task_t* task) {
  kiln_fault_t fault;
  kilni_soft_queue_t* queue = &driver->queue;
  if (kilni_soft_condition_idles(driver, task)) {
    if (queue->ready_count > 0) {
      start_task(driver, queue_take_at(queue, 0));
    } else if (!kilni_soft_queue_is_alone(driver)) {
      task->next = queue->watching;
      queue->watching = task;
      return;
    }
  }
  kiln_cu_result_t result = kilni_soft_condition_run(driver, task, &fault);
  if (result != KILN_CU_SUCCESS) fail_context(driver, task, result, &fault);
  queue_finish(driver, task);
}

// Operations on values in memory. One that has to wait is put aside, and looked
// at again by a worker without other work.
static void run_values(kilni_soft_driver_t* driver, kilni_soft_task_t* task) {
  static const char kGone[] =
      "a stream wrote to or waited for a value in memory that had been freed";
  bool gone = false;
  if (!kilni_soft_values_run(driver, &task->work, &gone)) {
    task->next = driver->queue.watching;
    driver->queue.watching = task;
    driver->queue.waiting_values++;
    return;
  }
  if (gone) fail_work(driver, task, kGone);
  queue_finish(driver, task);
}

bool kilni_soft_queue_is_alone(const kilni_soft_driver_t* driver) {
  const kilni_soft_queue_t* queue = &driver->queue;
  return queue->running == NULL && queue->waiting_values == 0 &&
         queue->ready_count == 0 && queue->thread_count <= queue->idle + 1;
}

// ---- Choosing ----

// Of the tasks that are ready and wanted the one that comes latest, or the
// seed's choice; `ready_count` if there is none.
static uint64_t choose_latest(kilni_soft_queue_t* queue) {
  size_t count = 0;
  for (size_t i = 0; i < queue->ready_count; i++) {
    count += queue->ready[i]->wanted;
  }
  if (count == 0) return queue->ready_count;
  uint64_t skip =
      queue->seed != 0 ? queue_next_random(&queue->random) % count : 0;
  size_t at = queue->ready_count;
  do {
    while (!queue->ready[--at]->wanted) continue;
  } while (skip-- > 0);
  return at;
}

static kilni_soft_task_t* queue_take_at(kilni_soft_queue_t* queue,
                                        uint64_t at) {
  kilni_soft_task_t* task = queue->ready[at];
  task->is_ready = false;
  task->depth = 0;
  size_t behind = (size_t)(--queue->ready_count - at);
  memmove(&queue->ready[at], &queue->ready[at + 1],
          behind * sizeof(*queue->ready));
  return task;
}

// With `all` also work that no caller waits for.
static kilni_soft_task_t* take_ready(kilni_soft_queue_t* queue, bool all) {
  if (queue->ready_count == 0) return NULL;
  uint64_t chosen = 0;
  if (queue->latest && !all) {
    chosen = choose_latest(queue);
    if (chosen == queue->ready_count) return NULL;
  } else if (queue->seed != 0) {
    chosen = queue_next_random(&queue->random) % queue->ready_count;
  } else if (queue->latest) {
    chosen = queue->ready_count - 1;
  }
  return queue_take_at(queue, chosen);
}

static kilni_soft_task_t* find_running(const kilni_soft_queue_t* queue) {
  for (kilni_soft_task_t* task = queue->running; task != NULL;
       task = task->next) {
    if (kilni_soft_grid_wants_work(task->work.as.grid)) return task;
  }
  return NULL;
}

static void start_task(kilni_soft_driver_t* driver, kilni_soft_task_t* task) {
  kilni_soft_queue_t* queue = &driver->queue;
  const kilni_soft_context_t* context = task->stream->context;
  bool skipped = context->sticky != KILN_CU_SUCCESS || task->given_up;
  if (skipped) {
    end_kernel(driver, task);
  } else if (task->work.kind == KILNI_SOFT_TASK_KERNEL) {
    if ((driver->report & KILNI_SOFT_REPORT_FREED) != 0 && !task->begun) {
      kilni_soft_freeing_forbid(driver, task);
    }
    task->begun = true;
    task->next = queue->running;
    queue->running = task;
    queue_run_kernel(driver, task);
  } else if (task->work.kind == KILNI_SOFT_TASK_CONDITION) {
    run_condition(driver, task);
  } else if (task->work.kind == KILNI_SOFT_TASK_VALUES) {
    run_values(driver, task);
  } else {
    run_plain(driver, task);
  }
}

// What may run while `task` does: a later kernel that may begin, or one after
// such a kernel that has already ended.
static kilni_soft_task_t* find_behind(const kilni_soft_queue_t* queue,
                                      const kilni_soft_task_t* task) {
  const kilni_soft_edge_t* edge = task->waiters;
  while (edge != NULL) {
    kilni_soft_task_t* owner = edge->owner;
    bool may = !queue->latest || owner->wanted || queue->drainers > 0;
    if (edge->is_ahead && owner->is_ready && may) return owner;
    // Only one of its successors is the stream's next.
    edge = edge->is_ahead && owner->over ? owner->waiters : edge->next;
  }
  return NULL;
}

// A kernel that has let its successor begin, and was chosen to: that runs now,
// on the same worker, as far as it can, and its successors, as far as the seed
// chooses.
void kilni_soft_queue_pause(kilni_soft_grid_t* grid, void* user) {
  enum { MOST_DEPTH = 16 };
  kilni_soft_driver_t* driver = user;
  kilni_soft_queue_t* queue = &driver->queue;
  kilni_base_mutex_lock(&driver->lock);
  kilni_soft_task_t* task = find_task(queue, grid);
  bool more = task != NULL && task->depth < MOST_DEPTH;
  while (more) {
    kilni_soft_task_t* next = find_behind(queue, task);
    if (next == NULL) break;
    uint64_t at = 0;
    while (queue->ready[at] != next) at++;
    next = queue_take_at(queue, at);
    next->depth = task->depth + 1;
    start_task(driver, next);
    more = queue_next_random(&queue->random) % 4 != 0;
  }
  kilni_base_mutex_unlock(&driver->lock);
}

static void tell_short(kilni_soft_driver_t* driver) {
  uint32_t limit = driver->queue.thread_limit;
  driver->queue.short_of_threads = false;
  kilni_base_mutex_unlock(&driver->lock);
  KILNI_LOG(&driver->host.log, WARNING,
            "the software device has fewer than its %u threads, since the "
            "system cannot start more",
            limit);
  kilni_base_mutex_lock(&driver->lock);
}

// Nothing else to do: what waits for values, and loops that others may end, are
// looked at again, after a while if nothing has come of it.
static void watch(kilni_soft_driver_t* driver) {
  enum { WAIT_NS = 200000 };
  kilni_soft_queue_t* queue = &driver->queue;
  kilni_soft_task_t* list = queue->watching;
  uint64_t left = queue->pending;
  queue->watching = NULL;
  while (list != NULL) {
    kilni_soft_task_t* task = list;
    list = task->next;
    if (task->work.kind == KILNI_SOFT_TASK_VALUES) queue->waiting_values--;
    start_task(driver, task);
  }
  if (queue->pending != left || queue->watching == NULL) return;
  // The value may be written by work that no caller waits for yet.
  kilni_soft_task_t* other = queue->wanted > 0 ? take_ready(queue, true) : NULL;
  if (other != NULL) {
    start_task(driver, other);
    return;
  }
  queue->idle++;
  (void)kilni_base_cond_wait_until(&queue->work, &driver->lock,
                                   kilni_base_time_ns() + WAIT_NS);
  queue->idle--;
}

static void worker_main(void* user) {
  kilni_soft_driver_t* driver = user;
  kilni_soft_queue_t* queue = &driver->queue;
  kilni_base_mutex_lock(&driver->lock);
  queue->idle--;
  while (!queue->stopping) {
    if (queue->short_of_threads) tell_short(driver);
    if (driver->ending != NULL) kilni_soft_objects_end(driver);
    bool may = !queue->lazy || queue->wanted > 0 || queue->drainers > 0;
    bool all = queue->drainers > 0;
    kilni_soft_task_t* task = may ? take_ready(queue, all) : NULL;
    if (task != NULL) {
      start_task(driver, task);
      continue;
    }
    task = find_running(queue);
    if (task != NULL) {
      queue_run_kernel(driver, task);
    } else if (queue->watching != NULL) {
      watch(driver);
    } else {
      queue->idle++;
      kilni_base_cond_wait(&queue->work, &driver->lock);
      queue->idle--;
    }
  }
  kilni_base_mutex_unlock(&driver->lock);
}

// ---- Start and stop ----

// The first worker starts the second, while the program goes on: no thread
// waits for that, and no lock is held.
static void first_main(void* user) {
  kilni_soft_driver_t* driver = user;
  kilni_soft_queue_t* queue = &driver->queue;
  if (queue->thread_limit > 1) {
    kiln_status_t status = kilni_base_thread_start(
        &queue->threads[1], "kiln-soft", worker_main, driver);
    if (!kiln_status_is_ok(status)) {
      kiln_status_free(status);
      kilni_base_mutex_lock(&driver->lock);
      no_more_workers(queue);
      kilni_base_mutex_unlock(&driver->lock);
    }
  }
  worker_main(driver);
}

kiln_status_t kilni_soft_queue_start(kilni_soft_driver_t* driver,
                                     uint32_t workers, uint64_t seed,
                                     bool latest) {
  kilni_soft_queue_t* queue = &driver->queue;
  queue->seed = seed;
  queue->random = seed;
  queue->lazy = latest || (seed != 0 && workers == 1);
  queue->latest = latest;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(driver->host.allocator, workers,
                                               sizeof(*queue->threads),
                                               (void**)&queue->threads));
  queue->thread_limit = workers;
  queue->thread_count = workers > 1 ? 2 : 1;
  queue->idle = queue->thread_count;
  queue->more_threads = true;
  kiln_status_t status = kilni_base_thread_start(
      &queue->threads[0], "kiln-soft", first_main, driver);
  if (kiln_status_is_ok(status)) return kiln_ok();
  queue->thread_count = 0;
  return KILNI_ANNOTATE(status, "starting a worker of the software device");
}

void kilni_soft_queue_stop(kilni_soft_driver_t* driver) {
  kilni_soft_queue_t* queue = &driver->queue;
  kilni_base_mutex_lock(&driver->lock);
  queue->stopping = true;
  for (kilni_soft_task_t* task = queue->running; task != NULL;
       task = task->next) {
    kilni_soft_grid_cancel(task->work.as.grid);
  }
  kilni_base_cond_broadcast(&queue->work);
  uint32_t count = queue->thread_count;  // and no more from here on
  kilni_base_mutex_unlock(&driver->lock);
  // In this order, since the first may be about to start the second.
  for (uint32_t i = 0; queue->threads != NULL && i < count; i++) {
    kilni_base_thread_join(&queue->threads[i]);
  }
  kilni_base_mutex_lock(&driver->lock);
  kilni_soft_task_t* task;
  while ((task = queue->watching) != NULL) {
    queue->watching = task->next;
    queue_finish(driver, task);
  }
  while ((task = take_ready(queue, true)) != NULL) end_kernel(driver, task);
  kilni_base_mutex_unlock(&driver->lock);
  kilni_base_free_array(driver->host.allocator, queue->threads,
                        queue->thread_limit, sizeof(*queue->threads));
  kilni_base_free_array(driver->host.allocator, queue->ready,
                        queue->ready_capacity, sizeof(*queue->ready));
  queue->threads = NULL;
  queue->ready = NULL;
}

// ---- Issuing ----

// Counts the tasks that a new one of `stream` waits for; with `task`, links it
// to each of them. It may begin before `ahead` has ended, the stream's last.
static size_t link_blockers(kilni_soft_stream_t* stream,
                            kilni_soft_task_t* after,
                            const kilni_soft_task_t* ahead,
                            kilni_soft_task_t* task) {
  kilni_soft_context_t* context = stream->context;
  size_t count = 0;
  bool is_legacy = stream == &context->legacy;
  bool blocking = (stream->flags & KILN_CU_STREAM_NON_BLOCKING) == 0;
  kilni_soft_task_t* fixed[3] = {
      stream->last, after,
      !is_legacy && blocking ? context->legacy.last : NULL};
  kilni_soft_stream_t* other = is_legacy ? context->streams : NULL;
  for (size_t i = 0; i < 3 || other != NULL; i++) {
    kilni_soft_task_t* blocker;
    if (i < 3) {
      blocker = fixed[i];
    } else {
      blocker =
          (other->flags & KILN_CU_STREAM_NON_BLOCKING) ? NULL : other->last;
      other = other->next;
    }
    if (blocker == NULL || blocker->done) continue;
    if (task != NULL) {
      kilni_soft_edge_t* edge = &task->edges[count];
      edge->owner = task;
      edge->blocker = blocker;
      edge->is_ahead = i == 0 && blocker == ahead;
      edge->is_asked = i == 1;
      edge->next = blocker->waiters;
      blocker->waiters = edge;
    }
    count++;
  }
  return count;
}

void kilni_soft_queue_space(kilni_soft_driver_t* driver) {
  kilni_soft_queue_t* queue = &driver->queue;
  if (queue->pending < QUEUE_LIMIT) return;
  queue->drainers++;
  kilni_base_cond_broadcast(&queue->work);
  while (queue->pending >= (queue->lazy ? 1 : QUEUE_LIMIT)) {
    kilni_base_cond_wait(&queue->done, &driver->lock);
  }
  queue->drainers--;
}

kiln_cu_result_t kilni_soft_queue_reserve(kilni_soft_driver_t* driver,
                                          size_t count) {
  kilni_soft_queue_t* queue = &driver->queue;
  void* ready = queue->ready;
  kiln_status_t status =
      kilni_base_grow(driver->host.allocator, (size_t)queue->pending + count,
                      sizeof(*queue->ready), &queue->ready_capacity, &ready);
  queue->ready = ready;
  return kilni_soft_result(status);
}

kiln_cu_result_t kilni_soft_task_new(kilni_soft_driver_t* driver,
                                     kilni_soft_stream_t* stream,
                                     const kilni_soft_work_t* work,
                                     size_t space,
                                     kilni_soft_task_t** out_task) {
  kilni_soft_task_t* task = NULL;
  kiln_status_t status = kilni_base_alloc(
      driver->host.allocator, sizeof(*task) + space * sizeof(kilni_soft_edge_t),
      (void**)&task);
  *out_task = task;
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  task->work = *work;
  task->stream = stream;
  task->owner = stream->owner != 0 ? stream->owner : kilni_soft_acts_for();
  task->refs = 1;
  task->edge_space = space;
  return KILN_CU_SUCCESS;
}

void kilni_soft_task_drop(kilni_soft_driver_t* driver,
                          kilni_soft_task_t* task) {
  drop_payload(driver, &task->work);
  kilni_soft_task_release(driver, task);
}

void kilni_soft_task_after(kilni_soft_task_t* task,
                           kilni_soft_task_t* blocker) {
  if (blocker == NULL || blocker->done) return;
  task->edges[task->edge_count++].blocker = blocker;
}

static void link_edge(kilni_soft_task_t* task, kilni_soft_edge_t* edge,
                      kilni_soft_task_t* blocker) {
  edge->owner = task;
  edge->blocker = blocker;
  edge->is_ahead = false;
  edge->is_asked = true;
  edge->next = blocker->waiters;
  blocker->waiters = edge;
  task->blockers++;
}

void kilni_soft_task_after_too(kilni_soft_task_t* task, size_t slot,
                               kilni_soft_task_t* blocker) {
  link_edge(task, &task->edges[slot], blocker);
  if (task->edge_count <= slot) task->edge_count = slot + 1;
}

void kilni_soft_queue_commit(kilni_soft_driver_t* driver,
                             kilni_soft_task_t** tasks, size_t count,
                             bool is_last) {
  kilni_soft_queue_t* queue = &driver->queue;
  kilni_soft_task_t* list = NULL;
  for (size_t i = 0; i < count; i++) {
    kilni_soft_task_t* task = tasks[i];
    task->ticket = ++queue->tickets;
    for (size_t k = 0; k < task->edge_count; k++) {
      kilni_soft_task_t* blocker = task->edges[k].blocker;
      task->edges[k].blocker = NULL;
      if (!blocker->done) link_edge(task, &task->edges[k], blocker);
    }
    task->stream->pending++;
    task->stream->context->pending++;
    queue->pending++;
  }
  if (is_last) tasks[count - 1]->stream->last = tasks[count - 1];
  // Nothing ends before all of them are in.
  for (size_t i = 0; i < count; i++) {
    if (tasks[i]->blockers == 0) queue_make_ready(driver, tasks[i], &list);
  }
  finish_list(driver, list);
}

static kiln_cu_result_t queue_issue(kilni_soft_driver_t* driver,
                                    kilni_soft_stream_t* stream,
                                    const kilni_soft_work_t* work,
                                    kilni_soft_task_t* after,
                                    kilni_soft_task_t* ahead,
                                    kilni_soft_task_t** out_task) {
  kilni_soft_queue_t* queue = &driver->queue;
  if (out_task != NULL) *out_task = NULL;
  size_t edges = link_blockers(stream, after, ahead, NULL);
  kilni_soft_task_t* task = NULL;
  kiln_cu_result_t result = kilni_soft_queue_reserve(driver, 1);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_task_new(driver, stream, work, edges, &task);
  }
  if (result != KILN_CU_SUCCESS) return result;
  task->ticket = ++queue->tickets;
  task->edge_count = edges;
  task->blockers = (uint32_t)link_blockers(stream, after, ahead, task);
  if (ahead != NULL) {
    task->blockers--;
    task->ahead = ahead;
    if (ahead->over) {
      kilni_soft_grid_let_go(work->as.grid);
    } else if (ahead->work.as.grid != NULL) {
      kilni_soft_grid_follow(ahead->work.as.grid);
    }
  }
  stream->last = task;
  stream->pending++;
  stream->context->pending++;
  queue->pending++;
  if (out_task != NULL) {
    kilni_soft_task_retain(task);
    *out_task = task;
  }
  if (task->blockers == 0 && may_begin(task)) {
    kilni_soft_task_t* list = NULL;
    queue_make_ready(driver, task, &list);
    finish_list(driver, list);
  }
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_queue_issue(kilni_soft_driver_t* driver,
                                        kilni_soft_stream_t* stream,
                                        const kilni_soft_work_t* work,
                                        kilni_soft_task_t* after,
                                        kilni_soft_task_t** out_task) {
  return queue_issue(driver, stream, work, after, NULL, out_task);
}

kiln_cu_result_t kilni_soft_queue_issue_early(kilni_soft_driver_t* driver,
                                              kilni_soft_stream_t* stream,
                                              const kilni_soft_work_t* work,
                                              kilni_soft_task_t** out_task) {
  kilni_soft_task_t* last = stream->last;
  bool early = driver->queue.seed != 0 && last != NULL && !last->done &&
               last->work.kind == KILNI_SOFT_TASK_KERNEL;
  if (!early) kilni_soft_grid_let_go(work->as.grid);
  return queue_issue(driver, stream, work, NULL, early ? last : NULL, out_task);
}

// ---- Waiting ----

static void queue_want(kilni_soft_queue_t* queue, kilni_soft_task_t* task) {
  if (task->wanted) return;
  task->wanted = true;
  task->walk_next = NULL;
  while (task != NULL) {
    kilni_soft_task_t* list = task->walk_next;
    queue->wanted++;
    // What it waits for is wanted with it, where that makes a difference.
    for (size_t i = 0; queue->latest && i < task->edge_count; i++) {
      kilni_soft_task_t* blocker = task->edges[i].blocker;
      if (blocker == NULL || blocker->wanted) continue;
      blocker->wanted = true;
      blocker->walk_next = list;
      list = blocker;
    }
    task = list;
  }
  if (queue->lazy) kilni_base_cond_broadcast(&queue->work);
}

void kilni_soft_task_want(kilni_soft_driver_t* driver,
                          kilni_soft_task_t* task) {
  queue_want(&driver->queue, task);
}

void kilni_soft_queue_wait(kilni_soft_driver_t* driver,
                           kilni_soft_task_t* task) {
  if (task == NULL || task->done) return;
  kilni_soft_task_retain(task);
  queue_want(&driver->queue, task);
  while (!task->done) kilni_base_cond_wait(&driver->queue.done, &driver->lock);
  kilni_soft_task_release(driver, task);
}

void kilni_soft_queue_drain(kilni_soft_driver_t* driver,
                            const kilni_soft_context_t* context) {
  kilni_soft_queue_t* queue = &driver->queue;
  // A lazy queue does everything, so that no order depends on time.
  const uint64_t* pending =
      context != NULL && !queue->lazy ? &context->pending : &queue->pending;
  queue->drainers++;
  if (queue->lazy) kilni_base_cond_broadcast(&queue->work);
  while (*pending > 0) kilni_base_cond_wait(&queue->done, &driver->lock);
  queue->drainers--;
}

bool kilni_soft_queue_poll(kilni_soft_driver_t* driver,
                           kilni_soft_task_t* task) {
  if (task == NULL || task->done) return true;
  queue_want(&driver->queue, task);
  return false;
}
