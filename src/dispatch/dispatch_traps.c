// SPDX-License-Identifier: Apache-2.0
//
// dispatch: records that trapping threads write to, in memory that host and
// device share. Taken for one dispatch and returned after it.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/dispatch_inside.h"

// Pages are few and stay until a clean.
static kiln_status_t add_page(kiln_dispatcher_t* dispatcher) {
  void* block = NULL;
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = KILN_MEMORY_PINNED;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      dispatcher->allocator, sizeof(kilni_dispatch_trap_page_t), &block));
  kilni_dispatch_trap_page_t* page = block;
  kiln_status_t status =
      kiln_buffer_create(dispatcher->device,
                         (uint64_t)KILNI_TRAP_RECORDS * KILNI_TRAP_RECORD_BYTES,
                         &options, &page->buffer);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(dispatcher->allocator, page, sizeof(*page));
    return status;
  }
  uint8_t* host = kiln_buffer_host(page->buffer);
  uint64_t address = kiln_buffer_address(page->buffer);
  kilni_base_mutex_lock(&dispatcher->traps.lock);
  for (uint32_t i = 0; i < KILNI_TRAP_RECORDS; i++) {
    kilni_dispatch_trap_record_t* record = &page->records[i];
    void* at = host + (size_t)i * KILNI_TRAP_RECORD_BYTES;
    record->host = at;
    record->page = page;
    record->address = address + (uint64_t)i * KILNI_TRAP_RECORD_BYTES;
    record->next = dispatcher->traps.free;
    dispatcher->traps.free = record;
  }
  page->next = dispatcher->traps.pages;
  dispatcher->traps.pages = page;
  dispatcher->traps.page_count++;
  kilni_base_mutex_unlock(&dispatcher->traps.lock);
  return kiln_ok();
}

kiln_status_t kilni_dispatch_trap_take(
    kiln_dispatcher_t* dispatcher, kilni_dispatch_trap_record_t** out_record) {
  kilni_dispatch_traps_t* traps = &dispatcher->traps;
  *out_record = NULL;
  for (;;) {
    kilni_base_mutex_lock(&traps->lock);
    kilni_dispatch_trap_record_t* record = traps->free;
    if (record != NULL) {
      traps->free = record->next;
      record->page->in_use++;
    }
    kilni_base_mutex_unlock(&traps->lock);
    if (record != NULL) {
      memset(record->host, 0, sizeof(*record->host));
      *out_record = record;
      return kiln_ok();
    }
    KILNI_RETURN_IF_ERROR(add_page(dispatcher));
  }
}

void kilni_dispatch_trap_give(kiln_dispatcher_t* dispatcher,
                              kilni_dispatch_trap_record_t* record) {
  if (record == NULL) return;
  kilni_base_mutex_lock(&dispatcher->traps.lock);
  record->next = dispatcher->traps.free;
  record->page->in_use--;
  dispatcher->traps.free = record;
  kilni_base_mutex_unlock(&dispatcher->traps.lock);
}

// What cannot be guarded is not used again before the dispatcher ends.
void kilni_dispatch_trap_retire(kiln_dispatcher_t* dispatcher,
                                kilni_dispatch_trap_record_t* record) {
  kiln_pending_t* pending = NULL;
  kiln_stream_t* frees = NULL;
  kiln_status_t status = kilni_dispatch_own_stream(
      dispatcher, dispatcher->stream_count + 1, &frees);
  if (kiln_status_is_ok(status)) {
    status = kilni_dispatch_streams_join(dispatcher, frees);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_dispatch_pending_create(dispatcher, "", false, &pending);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_dispatch_pending_finish(pending, frees);
  }
  if (kiln_status_is_ok(status)) pending->record = record;
  kiln_status_free(status);
  kiln_pending_release(pending);
}

static void end_pages(kiln_dispatcher_t* dispatcher,
                      kilni_dispatch_trap_page_t* page) {
  while (page != NULL) {
    kilni_dispatch_trap_page_t* next = page->next;
    kiln_buffer_release(page->buffer);
    kilni_base_free(dispatcher->allocator, page, sizeof(*page));
    page = next;
  }
}

// Under the lock: unused pages, taken out of both lists.
static kilni_dispatch_trap_page_t* take_out_pages(
    kilni_dispatch_traps_t* traps) {
  kilni_dispatch_trap_page_t* idle = NULL;
  kilni_dispatch_trap_record_t** at = &traps->free;
  while (*at != NULL) {
    if ((*at)->page->in_use == 0) {
      *at = (*at)->next;
    } else {
      at = &(*at)->next;
    }
  }
  kilni_dispatch_trap_page_t** page_at = &traps->pages;
  while (*page_at != NULL) {
    kilni_dispatch_trap_page_t* page = *page_at;
    if (page->in_use != 0) {
      page_at = &page->next;
      continue;
    }
    *page_at = page->next;
    page->next = idle;
    idle = page;
    traps->page_count--;
  }
  return idle;
}

void kilni_dispatch_traps_trim(kiln_dispatcher_t* dispatcher) {
  kilni_base_mutex_lock(&dispatcher->traps.lock);
  kilni_dispatch_trap_page_t* idle = take_out_pages(&dispatcher->traps);
  kilni_base_mutex_unlock(&dispatcher->traps.lock);
  end_pages(dispatcher, idle);
}

uint32_t kilni_dispatch_traps_count(kiln_dispatcher_t* dispatcher) {
  kilni_base_mutex_lock(&dispatcher->traps.lock);
  uint32_t count = dispatcher->traps.page_count;
  kilni_base_mutex_unlock(&dispatcher->traps.lock);
  return count;
}

void kilni_dispatch_traps_deinit(kiln_dispatcher_t* dispatcher) {
  end_pages(dispatcher, dispatcher->traps.pages);
  if (dispatcher->has_trap_lock) {
    kilni_base_mutex_deinit(&dispatcher->traps.lock);
  }
}

void kilni_dispatch_trap_read(const kiln_program_trap_t* record,
                              kiln_trap_t* out_trap) {
  memset(out_trap, 0, sizeof(*out_trap));
  out_trap->tag = record->tag;
  out_trap->address = record->address;
  memcpy(out_trap->block, record->block, sizeof(out_trap->block));
  memcpy(out_trap->thread, record->thread, sizeof(out_trap->thread));
}

kiln_status_t kilni_dispatch_trap_status(const char* label,
                                         const kiln_trap_t* trap) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LAUNCH_FAILED,
                 "\"%s\" trapped with tag %u and address 0x%llx in thread "
                 "%u,%u,%u of block %u,%u,%u",
                 label, (unsigned)trap->tag, (unsigned long long)trap->address,
                 (unsigned)trap->thread[0], (unsigned)trap->thread[1],
                 (unsigned)trap->thread[2], (unsigned)trap->block[0],
                 (unsigned)trap->block[1], (unsigned)trap->block[2]),
      "look for trap(%u, ...) in the program: its second operand is the "
      "address; a program of the library traps so when a number exceeds its "
      "limit, and the address is then that number: its page in docs/library/ "
      "gives the limits",
      (unsigned)trap->tag);
}
