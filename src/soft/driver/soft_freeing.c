// SPDX-License-Identifier: Apache-2.0
//
// soft: finds work that uses memory which a stream frees without waiting for
// it, before the free has happened or after. Only where that is asked for.
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "soft/driver/soft_driver.h"

// What is about to be freed by entry `i` without waiting for `task`; false if
// the free waits, or is not issued yet.
static bool unordered(kilni_soft_driver_t* driver, size_t i,
                      kilni_soft_task_t* task, kilni_soft_freed_t* out_freed) {
  const kilni_soft_freeing_t* entry = &driver->freeing[i];
  kilni_soft_alloc_t alloc;
  if (entry->task == NULL ||
      kilni_soft_task_awaits(driver, entry->task, task) ||
      !kilni_soft_memory_query(driver->memory, entry->address, &alloc)) {
    return false;
  }
  *out_freed = (kilni_soft_freed_t){.address = alloc.address,
                                    .bytes = alloc.bytes,
                                    .stream = entry->task->stream->handle,
                                    .work = entry->task->ticket,
                                    .how = KILNI_SOFT_FREE_PENDING};
  return true;
}

void kilni_soft_freeing_forbid(kilni_soft_driver_t* driver,
                               kilni_soft_task_t* task) {
  size_t most = driver->freeing_count;
  size_t count = 0;
  void* memory;
  if (most == 0) return;
  kiln_status_t status = kilni_base_alloc_array(
      driver->host.allocator, most, sizeof(kilni_soft_freed_t), &memory);
  // Without memory for the list nothing is found: the kernel still runs.
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return;
  }
  kilni_soft_freed_t* list = memory;
  for (size_t i = 0; i < most; i++) {
    if (unordered(driver, i, task, &list[count])) count++;
  }
  if (count > 0) {
    kiln_status_free(kilni_soft_grid_forbid(task->work.as.grid, list, count));
  }
  kilni_base_free_array(driver->host.allocator, list, most, sizeof(*list));
}

// Whether [address, address + bytes) meets memory that was freed or is about
// to be, without waiting for `task`; then where, and what.
static bool meets(kilni_soft_driver_t* driver, kilni_soft_task_t* task,
                  uint64_t address, uint64_t bytes, uint64_t* out_at,
                  kilni_soft_freed_t* out_freed) {
  *out_at = address;
  if (kilni_soft_memory_host(driver->memory, address, bytes) == NULL) {
    return kilni_soft_memory_freed(driver->memory, address, out_freed);
  }
  for (size_t i = 0; i < driver->freeing_count; i++) {
    uint64_t at = driver->freeing[i].address;
    // The start is inside the other one, or the other's inside this.
    if (!unordered(driver, i, task, out_freed)) continue;
    if (address - at < out_freed->bytes) return true;
    if (at - address < bytes) {
      *out_at = at;
      return true;
    }
  }
  return false;
}

bool kilni_soft_freeing_allows(kilni_soft_driver_t* driver,
                               kilni_soft_task_t* task,
                               kiln_fault_t* out_fault) {
  const kilni_soft_work_t* work = &task->work;
  bool copy = work->kind == KILNI_SOFT_TASK_COPY;
  kilni_soft_freed_t freed;
  uint64_t at = 0;
  uint64_t bytes = 0;
  bool met = false;
  if (copy) {
    const kilni_soft_end_t* to = &work->as.copy.to;
    const kilni_soft_end_t* from = &work->as.copy.from;
    bytes = work->as.copy.bytes;
    met = to->known && meets(driver, task, to->address, bytes, &at, &freed);
    if (!met && from->known) {
      met = meets(driver, task, from->address, bytes, &at, &freed);
    }
  } else if (work->kind == KILNI_SOFT_TASK_FILL) {
    bytes = work->as.fill.count * work->as.fill.width;
    met = meets(driver, task, work->as.fill.address, bytes, &at, &freed);
  }
  if (!met) return true;
  char text[256];
  kilni_soft_freed_text(&freed, text, sizeof(text));
  kilni_soft_fault_of_work(
      out_fault, task,
      "use after free: a %s of %" PRIu64
      " bytes\n"
      "at byte %" PRIu64 " of a %" PRIu64
      "-byte allocation\n"
      "%s\nthe %s is work %" PRIu64 " on stream 0x%" PRIx64,
      copy ? "copy" : "fill", bytes, at - freed.address, freed.bytes, text,
      copy ? "copy" : "fill", task->ticket, task->stream->handle);
  out_fault->cause =
      freed.how == KILNI_SOFT_FREE_WAITED    ? KILN_FAULT_CAUSE_FREED
      : freed.how == KILNI_SOFT_FREE_PENDING ? KILN_FAULT_CAUSE_FREED_PENDING
                                             : KILN_FAULT_CAUSE_FREED_ORDERED;
  return false;
}
