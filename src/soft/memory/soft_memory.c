// SPDX-License-Identifier: Apache-2.0
//
// soft: device memory: a window of device addresses backed by host pages, and
// one sorted table of everything that may be accessed.
//
// Window addresses are handed out by a cursor that goes round the whole window,
// so an address comes back as late as possible and a use after free meets no
// live allocation. Host pages are committed by the page of
// KILNI_SOFT_PAGE_BYTES, counted, and given back with the last allocation on
// them; they stay accessible to the host, so an access that raced with a free
// reads zero and cannot crash the process.
//
// Not here: what a free waits for (the driver front), and what an access
// outside does (the engine). The lock is a leaf: only the system is called with
// it held.
#include "soft/memory/soft_memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cpu_features.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "base/vm.h"
#include "soft/memory/soft_wide.h"

#define PAGE ((uint64_t)KILNI_SOFT_PAGE_BYTES)

// What a device has at least, whatever of it can be had.
#define TOTAL_LEAST (1ull << 30)
// What a window has at least, where the host limits addresses.
#define WINDOW_LEAST (64ull << 20)

enum {
  // Between two allocations under exact checks: a stray access by less than
  // this finds no neighbour.
  GUARD_BYTES = 4096,
  // Larger allocations are filled up to here and zero after it, since filling
  // takes the host's memory.
  FILL_BYTES = 64 << 20,
  FILL_BLOCK = 4096,
  // Smaller allocations do not ask what the host can give.
  ASK_BYTES = 4 << 20,
};

#define PAGE_COMMITTED 0x80000000u  // in `pages`; the rest counts allocations

// What all devices share is the first one's: `root`.
struct kilni_soft_memory_t {
  kilni_soft_memory_t* root;
  uint32_t device;
  uint32_t peers;  // whose plain memory it may access, a bit each
  uint64_t used;   // bytes of device kinds, rounded up
  uint64_t heap_used;
  uint64_t heap_limit;
  bool heap_was_full;
  // From here on of the root alone.
  kilni_soft_memory_t* joined[KILNI_SOFT_DEVICES_MOST];  // itself first
  uint32_t device_count;
  uint32_t reserved;
  kiln_allocator_t allocator;
  kilni_base_mutex_t lock;
  bool exact;
  uint64_t total;  // of each device
  uint64_t fill;   // the pattern word
  uint8_t* base;   // host address of the window
  uint64_t window_bytes;
  uint64_t cursor;             // device address where the next search starts
  uint32_t* pages;             // of the window
  kilni_soft_alloc_t* allocs;  // sorted by address
  size_t count;
  size_t capacity;
  uint64_t next_id;
  _Atomic uint32_t generation;
  kilni_soft_freed_t* freed;  // a ring
  uint64_t freed_space;
  uint64_t freed_count;
  uint8_t* marks_memory;  // of the next; NULL: none are kept
  kilni_soft_marks_t marks;
  bool locks_wide;
  atomic_uint wide_locks[KILNI_SOFT_WIDE_LOCKS];
};

atomic_uint* kilni_soft_memory_wide_locks(kilni_soft_memory_t* memory) {
  kilni_soft_memory_t* root = memory->root;
  return root->locks_wide ? root->wide_locks : NULL;
}

void kilni_soft_memory_lock_wide(kilni_soft_memory_t* memory) {
  memory->root->locks_wide = true;
}

static uint64_t memory_round_up(uint64_t value, uint64_t align) {
  return (value + align - 1) & ~(align - 1);
}

static bool is_device_kind(kilni_soft_alloc_kind_t kind) {
  return !kilni_soft_alloc_is_host(kind);
}

// Host memory that is the device's own.
static bool is_own_host(kilni_soft_alloc_kind_t kind) {
  return kilni_soft_alloc_is_host(kind) && kind != KILNI_SOFT_ALLOC_REGISTERED;
}

// Half of the host's available memory; where that is unknown, the maximum.
static uint64_t share_of_host(void) {
  uint64_t half = kilni_base_memory_left("") / 2;
  half -= half % PAGE;
  if (half < TOTAL_LEAST) return TOTAL_LEAST;
  return half < KILNI_SOFT_TOTAL_BYTES ? half : KILNI_SOFT_TOTAL_BYTES;
}

static int64_t window_delta(const kilni_soft_memory_t* memory) {
  return (int64_t)((uint64_t)(uintptr_t)memory->base - KILNI_SOFT_GLOBAL_BASE);
}

static void* host_pointer(uint64_t address, int64_t delta) {
  return (void*)(uintptr_t)(address + (uint64_t)delta);
}

// splitmix64's finisher: a seed of 0 too gives a word without zero meaning.
static uint64_t memory_mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// True if the host has `bytes` of contiguous addresses.
static bool try_window(kilni_soft_memory_t* memory, uint64_t bytes) {
  void* base;
  if (bytes > SIZE_MAX) return false;
  kiln_status_t status = kilni_base_vm_reserve((size_t)bytes, &base);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return false;
  }
  memory->base = base;
  memory->window_bytes = bytes;
  return true;
}

static kiln_status_t reserve_window(kilni_soft_memory_t* memory) {
  uint64_t bytes = KILNI_SOFT_WINDOW_BYTES * memory->device_count;
  if (try_window(memory, bytes)) return kiln_ok();
  while ((bytes /= 2) >= WINDOW_LEAST) {
    if (!try_window(memory, bytes)) continue;
    // Threads and the host program need addresses as well: half is enough.
    kilni_base_vm_release(memory->base, (size_t)bytes);
    memory->base = NULL;
    memory->window_bytes = 0;
    if (bytes / 2 >= WINDOW_LEAST) bytes /= 2;
    if (try_window(memory, bytes)) return kiln_ok();
    break;
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_MEMORY,
                 "the host cannot reserve %llu MiB of addresses for the "
                 "software device's memory",
                 WINDOW_LEAST >> 20),
      "raise the limit on address space (ulimit -v) or set it to unlimited");
}

static size_t pages_bytes(const kilni_soft_memory_t* memory) {
  return (size_t)memory_round_up(memory->window_bytes / PAGE * sizeof(uint32_t),
                                 kilni_base_vm_page_bytes());
}

// A word for each page of the window. Few are ever touched, so that clearing
// them is left to the system.
static kiln_status_t make_pages(kilni_soft_memory_t* memory) {
  void* words = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_vm_reserve(pages_bytes(memory), &words));
  memory->pages = words;
  return kilni_base_vm_commit(words, pages_bytes(memory));
}

static void init_device(kilni_soft_memory_t* memory, kilni_soft_memory_t* root,
                        uint32_t device) {
  memory->root = root;
  memory->device = device;
  memory->heap_limit = KILNI_SOFT_HEAP_BYTES;
  root->joined[device] = memory;
}

static kiln_status_t join_devices(kilni_soft_memory_t* memory) {
  for (uint32_t i = 1; i < memory->device_count; i++) {
    void* block;
    KILNI_RETURN_IF_ERROR(
        kilni_base_alloc(memory->allocator, sizeof(*memory), &block));
    init_device(block, memory, i);
  }
  return kiln_ok();
}

static kiln_status_t make_freed(kilni_soft_memory_t* memory, uint64_t space) {
  void* list;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(memory->allocator, (size_t)space,
                                               sizeof(*memory->freed), &list));
  kilni_base_free_array(memory->allocator, memory->freed,
                        (size_t)memory->freed_space, sizeof(*memory->freed));
  memory->freed = list;
  memory->freed_space = space;
  memory->freed_count = 0;
  return kiln_ok();
}

kiln_status_t kilni_soft_memory_create(const kiln_host_t* host, bool exact,
                                       kilni_soft_memory_t** out_memory) {
  return kilni_soft_memory_create_all(host, exact, 1, out_memory);
}

kiln_status_t kilni_soft_memory_create_all(const kiln_host_t* host, bool exact,
                                           uint32_t count,
                                           kilni_soft_memory_t** out_list) {
  memset(out_list, 0, count * sizeof(*out_list));
  kilni_soft_memory_t* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(*memory), (void**)&memory));
  init_device(memory, memory, 0);
  memory->device_count = count;
  memory->allocator = host->allocator;
  memory->exact = exact;
  memory->fill = memory_mix(host->seed) | 0x0101010101010101ull;
  memory->cursor = KILNI_SOFT_GLOBAL_BASE;
  memory->next_id = 1;
  atomic_init(&memory->generation, 1);
  memory->total = share_of_host();
  memory->locks_wide =
      kilni_soft_wide_way(kilni_base_cpu_features()) == KILNI_SOFT_WIDE_LOCK;
  for (int i = 0; i < KILNI_SOFT_WIDE_LOCKS; i++) {
    atomic_init(&memory->wide_locks[i], 0);
  }
  kiln_status_t status = kilni_base_mutex_init(&memory->lock);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(host->allocator, memory, sizeof(*memory));
    return status;
  }
  status = reserve_window(memory);
  if (kiln_status_is_ok(status)) {
    status = make_pages(memory);
  }
  if (kiln_status_is_ok(status)) {
    status = make_freed(memory, KILNI_SOFT_FREED_FEW);
  }
  if (kiln_status_is_ok(status)) status = join_devices(memory);
  if (!kiln_status_is_ok(status)) {
    kilni_soft_memory_destroy(memory);
    return status;
  }
  memcpy(out_list, memory->joined, count * sizeof(*out_list));
  return kiln_ok();
}

kiln_status_t kilni_soft_memory_watch(kilni_soft_memory_t* memory) {
  memory = memory->root;
  size_t bytes = (size_t)KILNI_SOFT_MARKS_SIZE(memory->window_bytes);
  void* words;
  kiln_status_t status = kilni_base_vm_reserve(bytes, &words);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_vm_commit(words, bytes);
    if (!kiln_status_is_ok(status)) kilni_base_vm_release(words, bytes);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kilni_base_status_with_fix(
        KILNI_FAIL(OUT_OF_MEMORY,
                   "the host cannot reserve %zu MiB of addresses to track "
                   "which memory was initialised",
                   bytes >> 20),
        "raise the limit on address space (ulimit -v) or leave unwritten out "
        "of KILN_SOFT_REPORT");
  }
  memory->marks_memory = words;
  memory->marks =
      (kilni_soft_marks_t){words, KILNI_SOFT_GLOBAL_BASE, memory->window_bytes};
  return kiln_ok();
}

const kilni_soft_marks_t* kilni_soft_memory_marks(
    const kilni_soft_memory_t* memory) {
  memory = memory->root;
  return memory->marks_memory != NULL ? &memory->marks : NULL;
}

// An allocation begins: nothing of it was written, unless the device writes it
// before anybody sees it. Whole pages of marks are given back at once.
static void start_marks(const kilni_soft_memory_t* memory,
                        const kilni_soft_alloc_t* alloc, uint64_t bytes) {
  const kilni_soft_marks_t* marks = &memory->marks;
  if (memory->marks_memory == NULL) return;
  if (alloc->kind == KILNI_SOFT_ALLOC_MODULE ||
      alloc->kind == KILNI_SOFT_ALLOC_CONSTANT ||
      alloc->kind == KILNI_SOFT_ALLOC_MAPPED) {
    kilni_soft_marks_set(marks, alloc->address, bytes);
    return;
  }
  uint64_t step = kilni_base_vm_page_bytes() * 8;
  uint64_t at = alloc->address;
  uint64_t end = at + bytes;
  uint64_t first = memory_round_up(at, step);
  uint64_t last = end & ~(step - 1);
  if (first < last) {
    kilni_base_vm_discard(memory->marks_memory + (first - marks->base) / 8,
                          (size_t)((last - first) / 8));
    kilni_soft_marks_clear(marks, at, first - at);
    kilni_soft_marks_clear(marks, last, end - last);
  } else {
    kilni_soft_marks_clear(marks, at, bytes);
  }
}

void kilni_soft_memory_destroy(kilni_soft_memory_t* memory) {
  if (memory == NULL) return;
  if (memory->freed != NULL) {
    kilni_base_free_array(memory->allocator, memory->freed,
                          (size_t)memory->freed_space, sizeof(*memory->freed));
  }
  if (memory->marks_memory != NULL) {
    kilni_base_vm_release(memory->marks_memory,
                          (size_t)KILNI_SOFT_MARKS_SIZE(memory->window_bytes));
  }
  kiln_allocator_t allocator = memory->allocator;
  for (size_t i = 0; i < memory->count; i++) {
    const kilni_soft_alloc_t* alloc = &memory->allocs[i];
    if (!is_own_host(alloc->kind)) continue;
    kilni_base_vm_release(
        host_pointer(alloc->address, 0),
        (size_t)memory_round_up(alloc->bytes, kilni_base_vm_page_bytes()));
  }
  for (uint32_t i = 1; i < memory->device_count; i++) {
    if (memory->joined[i] == NULL) break;
    kilni_base_free(allocator, memory->joined[i], sizeof(*memory));
  }
  kilni_base_vm_release(memory->base, (size_t)memory->window_bytes);
  kilni_base_vm_release(memory->pages, pages_bytes(memory));
  kilni_base_free_array(allocator, memory->allocs, memory->capacity,
                        sizeof(*memory->allocs));
  kilni_base_mutex_deinit(&memory->lock);
  kilni_base_free(allocator, memory, sizeof(*memory));
}

// The first allocation that starts above `address`, as an index.
static size_t upper_bound(const kilni_soft_memory_t* memory, uint64_t address) {
  size_t lo = 0;
  size_t hi = memory->count;
  while (lo < hi) {
    size_t middle = lo + (hi - lo) / 2;
    if (memory->allocs[middle].address <= address) {
      lo = middle + 1;
    } else {
      hi = middle;
    }
  }
  return lo;
}

// The live allocation that contains `address`, or NULL.
static kilni_soft_alloc_t* holder(const kilni_soft_memory_t* memory,
                                  uint64_t address) {
  size_t above = upper_bound(memory, address);
  if (above == 0) return NULL;
  kilni_soft_alloc_t* alloc = &memory->allocs[above - 1];
  if (alloc->kind == KILNI_SOFT_ALLOC_RESERVED) return NULL;
  return address - alloc->address < alloc->bytes ? alloc : NULL;
}

// Whether any live allocation has a byte in [address, address + bytes).
static bool overlaps(const kilni_soft_memory_t* memory, uint64_t address,
                     uint64_t bytes) {
  size_t above = upper_bound(memory, address + bytes - 1);
  if (above == 0) return false;
  const kilni_soft_alloc_t* alloc = &memory->allocs[above - 1];
  return alloc->address + alloc->bytes > address;
}

static kiln_status_t insert(kilni_soft_memory_t* memory,
                            const kilni_soft_alloc_t* alloc) {
  void* block = memory->allocs;
  kiln_status_t status =
      kilni_base_grow(memory->allocator, memory->count + 1, sizeof(*alloc),
                      &memory->capacity, &block);
  memory->allocs = block;
  KILNI_RETURN_IF_ERROR(status);
  size_t at = upper_bound(memory, alloc->address);
  memmove(&memory->allocs[at + 1], &memory->allocs[at],
          (memory->count - at) * sizeof(*alloc));
  memory->allocs[at] = *alloc;
  memory->allocs[at].id = memory->next_id++;
  memory->count++;
  return kiln_ok();
}

static void memory_take_out(kilni_soft_memory_t* memory,
                            kilni_soft_alloc_t* alloc) {
  size_t at = (size_t)(alloc - memory->allocs);
  memmove(alloc, alloc + 1, (memory->count - at - 1) * sizeof(*alloc));
  memory->count--;
  atomic_fetch_add(&memory->generation, 1);
}

// Finds `bytes` free window addresses in [from, end of the window), leaving a
// guard on both sides.
static bool find_gap(const kilni_soft_memory_t* memory, uint64_t from,
                     uint64_t bytes, uint64_t* out_address) {
  uint64_t guard = memory->exact ? GUARD_BYTES : 0;
  uint64_t end = KILNI_SOFT_GLOBAL_BASE + memory->window_bytes;
  uint64_t at = memory_round_up(from, KILNI_SOFT_ALLOC_ALIGN);
  size_t i = upper_bound(memory, at);
  if (i > 0) {
    const kilni_soft_alloc_t* below = &memory->allocs[i - 1];
    uint64_t stop = below->address + below->bytes + guard;
    if (stop > at && below->address >= KILNI_SOFT_GLOBAL_BASE) {
      at = memory_round_up(stop, KILNI_SOFT_ALLOC_ALIGN);
    }
  }
  for (; at < end; i++) {
    uint64_t limit = end;
    if (i < memory->count && memory->allocs[i].address < end) {
      limit = memory->allocs[i].address;
    }
    if (limit > at && limit - at >= bytes + guard) {
      *out_address = at;
      return true;
    }
    if (limit == end) return false;
    at = memory_round_up(limit + memory->allocs[i].bytes + guard,
                         KILNI_SOFT_ALLOC_ALIGN);
  }
  return false;
}

static bool choose_address(kilni_soft_memory_t* memory, uint64_t bytes,
                           uint64_t* out_address) {
  return find_gap(memory, memory->cursor, bytes, out_address) ||
         find_gap(memory, KILNI_SOFT_GLOBAL_BASE, bytes, out_address);
}

// The window's pages that contain an allocation, as [*out_first, *out_end).
static void pages_of(uint64_t address, uint64_t bytes, uint64_t* out_first,
                     uint64_t* out_end) {
  *out_first = (address - KILNI_SOFT_GLOBAL_BASE) / PAGE;
  *out_end = (address + bytes - 1 - KILNI_SOFT_GLOBAL_BASE) / PAGE + 1;
}

// Commits the pages in runs; those already there cost nothing.
static kiln_status_t commit_pages(kilni_soft_memory_t* memory, uint64_t first,
                                  uint64_t end) {
  while (first < end) {
    if (memory->pages[first] & PAGE_COMMITTED) {
      first++;
      continue;
    }
    uint64_t stop = first + 1;
    while (stop < end && !(memory->pages[stop] & PAGE_COMMITTED)) stop++;
    KILNI_RETURN_IF_ERROR(kilni_base_vm_commit(
        memory->base + first * PAGE, (size_t)((stop - first) * PAGE)));
    for (; first < stop; first++) memory->pages[first] |= PAGE_COMMITTED;
  }
  return kiln_ok();
}

static void drop_pages(kilni_soft_memory_t* memory, uint64_t first,
                       uint64_t end) {
  for (uint64_t i = first; i < end; i++) memory->pages[i]--;
  while (first < end) {
    if (memory->pages[first] != PAGE_COMMITTED) {
      first++;
      continue;
    }
    uint64_t stop = first + 1;
    while (stop < end && memory->pages[stop] == PAGE_COMMITTED) stop++;
    kilni_base_vm_discard(memory->base + first * PAGE,
                          (size_t)((stop - first) * PAGE));
    first = stop;
  }
}

static void fill_fresh(const kilni_soft_memory_t* memory, uint8_t* at,
                       uint64_t bytes) {
  uint8_t block[FILL_BLOCK];
  for (size_t i = 0; i < sizeof(block); i += sizeof(memory->fill)) {
    memcpy(block + i, &memory->fill, sizeof(memory->fill));
  }
  if (bytes > FILL_BYTES) {
    // Bytes after it may be left over from an earlier allocation.
    uint64_t page = kilni_base_vm_page_bytes();
    uint64_t start =
        memory_round_up((uint64_t)(uintptr_t)at + FILL_BYTES, page);
    uint64_t stop = ((uint64_t)(uintptr_t)at + bytes) & ~(page - 1);
    if (stop > start) {
      kilni_base_vm_discard((void*)(uintptr_t)start, (size_t)(stop - start));
    }
    bytes = FILL_BYTES;
  }
  for (uint64_t done = 0; done < bytes; done += sizeof(block)) {
    uint64_t left = bytes - done;
    memcpy(at + done, block,
           left < sizeof(block) ? (size_t)left : sizeof(block));
  }
}

// Bytes of large allocations that the host has still to give: what is filled
// when it is made it has given already.
static uint64_t owed(const kilni_soft_memory_t* memory) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < memory->count; i++) {
    const kilni_soft_alloc_t* alloc = &memory->allocs[i];
    bool plain = is_device_kind(alloc->kind) &&
                 !kilni_soft_alloc_is_virtual(alloc->kind);
    if (!plain || alloc->bytes <= FILL_BYTES) continue;
    uint64_t page = kilni_base_vm_page_bytes();
    uint64_t from = memory_round_up(alloc->address + FILL_BYTES, page);
    uint64_t end = (alloc->address + alloc->bytes) & ~(page - 1);
    if (from >= end) continue;
    bytes += kilni_base_vm_untouched(host_pointer(from, alloc->delta),
                                     (size_t)(end - from));
  }
  return bytes;
}

// What can be had of a device's memory, for a request of `bytes`. A small one
// does not ask the host.
static uint64_t available(const kilni_soft_memory_t* own, uint64_t bytes) {
  const kilni_soft_memory_t* memory = own->root;
  uint64_t free_bytes =
      own->used < memory->total ? memory->total - own->used : 0;
  if (free_bytes > memory->window_bytes) free_bytes = memory->window_bytes;
  if (bytes < ASK_BYTES || free_bytes == 0) return free_bytes;
  uint64_t left = kilni_base_memory_left("");
  if (left == UINT64_MAX) return free_bytes;
  uint64_t promised = owed(memory);
  left = left > promised ? left - promised : 0;
  return left < free_bytes ? left : free_bytes;
}

static kiln_status_t no_device_memory(uint64_t bytes, uint64_t free_bytes) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(DEVICE_OUT_OF_MEMORY,
                 "%llu bytes of device memory were requested and %llu are "
                 "available on the software device",
                 (unsigned long long)bytes, (unsigned long long)free_bytes),
      "free device memory first, work in smaller parts, or give the process "
      "more memory: a software device has half of the memory that is available "
      "to the process");
}

static kiln_status_t alloc_window(kilni_soft_memory_t* own, uint64_t bytes,
                                  kilni_soft_alloc_kind_t kind,
                                  uint64_t* out_address) {
  kilni_soft_memory_t* memory = own->root;
  uint64_t rounded = memory_round_up(bytes, KILNI_SOFT_ALLOC_ALIGN);
  uint64_t free_bytes = available(own, rounded);
  uint64_t address;
  if (rounded > free_bytes || !choose_address(memory, rounded, &address)) {
    return no_device_memory(bytes, free_bytes);
  }
  uint64_t first;
  uint64_t end;
  pages_of(address, bytes, &first, &end);
  kiln_status_t status = commit_pages(memory, first, end);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return no_device_memory(bytes, free_bytes);
  }
  kilni_soft_alloc_t alloc = {.address = address,
                              .bytes = bytes,
                              .delta = window_delta(memory),
                              .kind = kind,
                              .device = own->device};
  fill_fresh(memory, host_pointer(address, alloc.delta), rounded);
  start_marks(memory, &alloc, rounded);
  KILNI_RETURN_IF_ERROR(insert(memory, &alloc));
  for (uint64_t i = first; i < end; i++) memory->pages[i]++;
  own->used += rounded;
  memory->cursor = address + rounded;
  *out_address = address;
  return kiln_ok();
}

static kiln_status_t alloc_host(kilni_soft_memory_t* own, uint64_t bytes,
                                kilni_soft_alloc_kind_t kind,
                                uint64_t* out_address) {
  uint64_t rounded = memory_round_up(bytes, kilni_base_vm_page_bytes());
  if (rounded < bytes || rounded > SIZE_MAX) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  void* base;
  KILNI_RETURN_IF_ERROR(kilni_base_vm_reserve((size_t)rounded, &base));
  kiln_status_t status = kilni_base_vm_commit(base, (size_t)rounded);
  if (kiln_status_is_ok(status)) {
    kilni_soft_alloc_t alloc = {.address = (uint64_t)(uintptr_t)base,
                                .bytes = bytes,
                                .kind = kind,
                                .device = own->device};
    status = insert(own->root, &alloc);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_base_vm_release(base, (size_t)rounded);
    return status;
  }
  *out_address = (uint64_t)(uintptr_t)base;
  return kiln_ok();
}

kiln_status_t kilni_soft_memory_alloc(kilni_soft_memory_t* memory,
                                      uint64_t bytes,
                                      kilni_soft_alloc_kind_t kind,
                                      uint64_t* out_address) {
  *out_address = 0;
  if (bytes == 0 || kind == KILNI_SOFT_ALLOC_REGISTERED) {
    return KILNI_FAIL(
        INVALID_ARGUMENT,
        "an allocation of %llu bytes and the unknown kind %d was requested",
        (unsigned long long)bytes, (int)kind);
  }
  if (bytes > memory->root->total && is_device_kind(kind)) {
    return no_device_memory(bytes, kilni_soft_memory_available(memory));
  }
  kilni_base_mutex_lock(&memory->root->lock);
  kiln_status_t status = is_device_kind(kind)
                             ? alloc_window(memory, bytes, kind, out_address)
                             : alloc_host(memory, bytes, kind, out_address);
  kilni_base_mutex_unlock(&memory->root->lock);
  return status;
}

kiln_status_t kilni_soft_memory_keep_freed(kilni_soft_memory_t* memory) {
  return make_freed(memory->root, KILNI_SOFT_FREED_KEPT);
}

bool kilni_soft_memory_freed(kilni_soft_memory_t* memory, uint64_t address,
                             kilni_soft_freed_t* out_freed) {
  bool found = false;
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  uint64_t kept = memory->freed_count;
  uint64_t oldest = kept > memory->freed_space ? kept - memory->freed_space : 0;
  for (uint64_t i = kept; i > oldest && !found; i--) {
    const kilni_soft_freed_t* freed =
        &memory->freed[(i - 1) % memory->freed_space];
    found = address - freed->address < freed->bytes;
    if (found) *out_freed = *freed;
  }
  kilni_base_mutex_unlock(&memory->lock);
  return found;
}

kiln_status_t kilni_soft_memory_free(kilni_soft_memory_t* memory,
                                     uint64_t address,
                                     kilni_soft_alloc_kind_t kind) {
  kilni_soft_freed_t freed = {.how = KILNI_SOFT_FREE_WAITED};
  return kilni_soft_memory_free_as(memory, address, kind, &freed);
}

kiln_status_t kilni_soft_memory_free_as(kilni_soft_memory_t* memory,
                                        uint64_t address,
                                        kilni_soft_alloc_kind_t kind,
                                        kilni_soft_freed_t* freed) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  kilni_soft_alloc_t* found = holder(memory, address);
  if (found == NULL || found->address != address || found->kind != kind) {
    kilni_base_mutex_unlock(&memory->lock);
    return kilni_base_status_bare(KILN_STATUS_NOT_FOUND);
  }
  kilni_soft_alloc_t alloc = *found;
  memory_take_out(memory, found);
  freed->address = alloc.address;
  freed->bytes = alloc.bytes;
  freed->kind = kind;
  memory->freed[memory->freed_count++ % memory->freed_space] = *freed;
  if (is_device_kind(kind)) {
    uint64_t first;
    uint64_t end;
    pages_of(address, alloc.bytes, &first, &end);
    uint64_t rounded = memory_round_up(alloc.bytes, KILNI_SOFT_ALLOC_ALIGN);
    kilni_soft_memory_t* own = memory->joined[alloc.device];
    own->used -= rounded;
    if (kind == KILNI_SOFT_ALLOC_HEAP) own->heap_used -= rounded;
    drop_pages(memory, first, end);
  } else if (is_own_host(kind)) {
    kilni_base_vm_release(
        host_pointer(address, 0),
        (size_t)memory_round_up(alloc.bytes, kilni_base_vm_page_bytes()));
  }
  kilni_base_mutex_unlock(&memory->lock);
  return kiln_ok();
}

void kilni_soft_memory_own(kilni_soft_memory_t* memory, uint64_t address,
                           void* owner, uint32_t access) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  kilni_soft_alloc_t* alloc = holder(memory, address);
  if (alloc != NULL) {
    alloc->owner = owner;
    alloc->access = access;
  }
  kilni_base_mutex_unlock(&memory->lock);
}

void kilni_soft_memory_own_access(kilni_soft_memory_t* memory,
                                  const void* owner, uint32_t access) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  for (size_t i = 0; i < memory->count; i++) {
    kilni_soft_alloc_t* alloc = &memory->allocs[i];
    if (alloc->owner == owner && alloc->kind != KILNI_SOFT_ALLOC_MAPPED) {
      alloc->access = access;
    }
  }
  atomic_fetch_add(&memory->generation, 1);
  kilni_base_mutex_unlock(&memory->lock);
}

void kilni_soft_memory_set_flags(kilni_soft_memory_t* memory, uint64_t address,
                                 uint32_t flags) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  kilni_soft_alloc_t* alloc = holder(memory, address);
  if (alloc != NULL) alloc->flags = flags;
  kilni_base_mutex_unlock(&memory->lock);
}

void kilni_soft_memory_set_peer(kilni_soft_memory_t* memory, uint32_t owner,
                                bool may) {
  kilni_soft_memory_t* root = memory->root;
  kilni_base_mutex_lock(&root->lock);
  if (may) {
    memory->peers |= 1u << owner;
  } else {
    memory->peers &= ~(1u << owner);
  }
  atomic_fetch_add(&root->generation, 1);
  kilni_base_mutex_unlock(&root->lock);
}

bool kilni_soft_memory_is_peer(kilni_soft_memory_t* memory, uint32_t owner) {
  kilni_base_mutex_lock(&memory->root->lock);
  bool is_peer = (memory->peers >> owner & 1) != 0;
  kilni_base_mutex_unlock(&memory->root->lock);
  return is_peer;
}

// What the device may do with an allocation.
static uint32_t memory_access_of(const kilni_soft_memory_t* own,
                                 const kilni_soft_alloc_t* alloc) {
  bool by_device = alloc->kind == KILNI_SOFT_ALLOC_MAPPED ||
                   alloc->kind == KILNI_SOFT_ALLOC_ASYNC;
  bool mine = alloc->device == own->device;
  if (by_device && !(mine && alloc->kind == KILNI_SOFT_ALLOC_ASYNC)) {
    return alloc->access >> 2 * own->device & 3;
  }
  bool may = mine || kilni_soft_alloc_is_host(alloc->kind) ||
             (own->peers >> alloc->device & 1) != 0;
  return may ? KILNI_SOFT_ACCESS_ALL : 0;
}

void kilni_soft_heap_alloc(kilni_soft_memory_t* memory, uint64_t bytes,
                           uint64_t* out_address) {
  *out_address = 0;
  if (bytes == 0 || bytes > memory->root->total) return;
  uint64_t rounded = memory_round_up(bytes, KILNI_SOFT_ALLOC_ALIGN);
  kilni_base_mutex_lock(&memory->root->lock);
  if (memory->heap_used + rounded <= memory->heap_limit) {
    kiln_status_t status =
        alloc_window(memory, bytes, KILNI_SOFT_ALLOC_HEAP, out_address);
    if (kiln_status_is_ok(status)) {
      memory->heap_used += rounded;
    } else {
      kiln_status_free(status);
      *out_address = 0;
    }
  }
  if (*out_address == 0) memory->heap_was_full = true;
  kilni_base_mutex_unlock(&memory->root->lock);
}

bool kilni_soft_heap_was_full(kilni_soft_memory_t* memory) {
  kilni_base_mutex_lock(&memory->root->lock);
  bool was_full = memory->heap_was_full;
  kilni_base_mutex_unlock(&memory->root->lock);
  return was_full;
}

bool kilni_soft_heap_free(kilni_soft_memory_t* memory, uint64_t address) {
  kiln_status_t status =
      kilni_soft_memory_free(memory, address, KILNI_SOFT_ALLOC_HEAP);
  bool good = kiln_status_is_ok(status);
  kiln_status_free(status);
  return good;
}

uint64_t kilni_soft_heap_limit(kilni_soft_memory_t* memory) {
  kilni_base_mutex_lock(&memory->root->lock);
  uint64_t limit = memory->heap_limit;
  kilni_base_mutex_unlock(&memory->root->lock);
  return limit;
}

void kilni_soft_heap_set_limit(kilni_soft_memory_t* memory, uint64_t bytes) {
  kilni_base_mutex_lock(&memory->root->lock);
  memory->heap_limit = bytes;
  kilni_base_mutex_unlock(&memory->root->lock);
}

kiln_status_t kilni_soft_memory_register(kilni_soft_memory_t* memory,
                                         void* data, uint64_t bytes,
                                         kilni_soft_alloc_kind_t kind,
                                         uint32_t flags) {
  uint64_t address = (uint64_t)(uintptr_t)data;
  if (data == NULL || bytes == 0 || address + bytes < address ||
      kind != KILNI_SOFT_ALLOC_REGISTERED) {
    return KILNI_FAIL(INVALID_ARGUMENT, "%llu bytes at %p cannot be registered",
                      (unsigned long long)bytes, data);
  }
  kilni_soft_memory_t* own = memory;
  memory = memory->root;
  // A host address that looks like a device address cannot be distinguished
  // from one.
  bool clash = address < KILNI_SOFT_GLOBAL_BASE + memory->window_bytes &&
               address + bytes > KILNI_SOFT_GLOBAL_BASE;
  kilni_soft_alloc_t alloc = {.address = address,
                              .bytes = bytes,
                              .kind = kind,
                              .flags = flags,
                              .device = own->device};
  kilni_base_mutex_lock(&memory->lock);
  kiln_status_t status;
  if (clash || overlaps(memory, address, bytes)) {
    status = kilni_base_status_bare(KILN_STATUS_ALREADY_EXISTS);
  } else {
    status = insert(memory, &alloc);
  }
  kilni_base_mutex_unlock(&memory->lock);
  return status;
}

bool kilni_soft_memory_clear_one(kilni_soft_memory_t* memory,
                                 kilni_soft_alloc_t* out_alloc) {
  kilni_soft_memory_t* root = memory->root;
  kilni_base_mutex_lock(&root->lock);
  size_t at = root->count;
  while (at > 0 && (root->allocs[at - 1].device != memory->device ||
                    kilni_soft_alloc_is_virtual(root->allocs[at - 1].kind))) {
    at--;
  }
  if (at > 0) *out_alloc = root->allocs[at - 1];
  kilni_base_mutex_unlock(&root->lock);
  if (at == 0) return false;
  kiln_status_free(
      kilni_soft_memory_free(memory, out_alloc->address, out_alloc->kind));
  return true;
}

void kilni_soft_memory_clear(kilni_soft_memory_t* memory) {
  kilni_soft_alloc_t gone;
  while (kilni_soft_memory_clear_one(memory, &gone)) continue;
}

bool kilni_soft_memory_query(kilni_soft_memory_t* memory, uint64_t address,
                             kilni_soft_alloc_t* out_alloc) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  const kilni_soft_alloc_t* alloc = holder(memory, address);
  if (alloc != NULL) *out_alloc = *alloc;
  kilni_base_mutex_unlock(&memory->lock);
  return alloc != NULL;
}

// True if `next` is a mapping that goes on where the mapping `alloc` ends.
static bool continues(const kilni_soft_alloc_t* alloc,
                      const kilni_soft_alloc_t* next) {
  return alloc->kind == KILNI_SOFT_ALLOC_MAPPED &&
         next->kind == KILNI_SOFT_ALLOC_MAPPED &&
         alloc->access == next->access &&
         alloc->address + alloc->bytes == next->address;
}

// The pages of the window around `address` on which anything lives.
static bool find_pages(const kilni_soft_memory_t* memory, uint64_t address,
                       kilni_soft_range_t* out_range) {
  uint64_t offset = address - KILNI_SOFT_GLOBAL_BASE;
  if (offset >= memory->window_bytes) return false;
  uint64_t page_count = memory->window_bytes / PAGE;
  uint64_t first = offset / PAGE;
  if ((memory->pages[first] & ~PAGE_COMMITTED) == 0) return false;
  uint64_t end = first + 1;
  while (end < page_count && (memory->pages[end] & ~PAGE_COMMITTED) != 0) {
    end++;
  }
  while (first > 0 && (memory->pages[first - 1] & ~PAGE_COMMITTED) != 0) {
    first--;
  }
  out_range->lo = KILNI_SOFT_GLOBAL_BASE + first * PAGE;
  out_range->hi = KILNI_SOFT_GLOBAL_BASE + end * PAGE;
  out_range->delta = window_delta(memory);
  out_range->writable = 1;
  return true;
}

// The adjacent mappings with the same access.
static void find_mapped(const kilni_soft_memory_t* memory,
                        const kilni_soft_alloc_t* alloc,
                        kilni_soft_range_t* out_range) {
  const kilni_soft_alloc_t* first = alloc;
  const kilni_soft_alloc_t* last = alloc;
  const kilni_soft_alloc_t* end = memory->allocs + memory->count;
  while (first > memory->allocs && continues(&first[-1], first)) first--;
  while (last + 1 < end && continues(last, &last[1])) last++;
  out_range->lo = first->address;
  out_range->hi = last->address + last->bytes;
  out_range->delta = alloc->delta;
}

bool kilni_soft_memory_find(kilni_soft_memory_t* memory, uint64_t address,
                            kilni_soft_range_t* out_range) {
  const kilni_soft_memory_t* own = memory;
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  memset(out_range, 0, sizeof(*out_range));
  out_range->generation = atomic_load(&memory->generation);
  const kilni_soft_alloc_t* alloc = holder(memory, address);
  uint32_t access = alloc != NULL ? memory_access_of(own, alloc) : 0;
  bool found = access != 0;
  bool by_page = !memory->exact &&
                 (alloc == NULL || (is_device_kind(alloc->kind) &&
                                    alloc->kind != KILNI_SOFT_ALLOC_CONSTANT));
  if (alloc != NULL && alloc->kind == KILNI_SOFT_ALLOC_MAPPED) {
    find_mapped(memory, alloc, out_range);
    out_range->writable = access == KILNI_SOFT_ACCESS_ALL;
  } else if (by_page) {
    found = find_pages(memory, address, out_range);
  } else if (alloc != NULL) {
    out_range->lo = alloc->address;
    out_range->hi = alloc->address + alloc->bytes;
    out_range->delta = alloc->delta;
    out_range->writable = alloc->kind != KILNI_SOFT_ALLOC_CONSTANT &&
                          access == KILNI_SOFT_ACCESS_ALL;
  }
  kilni_base_mutex_unlock(&memory->lock);
  return found;
}

void* kilni_soft_memory_host(kilni_soft_memory_t* memory, uint64_t address,
                             uint64_t bytes) {
  void* data = NULL;
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  const kilni_soft_alloc_t* alloc = holder(memory, address);
  if (alloc != NULL) {
    const kilni_soft_alloc_t* last = alloc;
    const kilni_soft_alloc_t* end = memory->allocs + memory->count;
    while (last->address + last->bytes - address < bytes && last + 1 < end &&
           continues(last, &last[1])) {
      last++;
    }
    if (bytes <= last->address + last->bytes - address) {
      data = host_pointer(address, alloc->delta);
    }
  }
  kilni_base_mutex_unlock(&memory->lock);
  return data;
}

uint64_t kilni_soft_memory_total(const kilni_soft_memory_t* memory) {
  return memory->root->total;
}

uint64_t kilni_soft_memory_available(kilni_soft_memory_t* memory) {
  kilni_base_mutex_lock(&memory->root->lock);
  uint64_t bytes = available(memory, UINT64_MAX);
  kilni_base_mutex_unlock(&memory->root->lock);
  return bytes;
}

uint64_t kilni_soft_memory_used(kilni_soft_memory_t* memory) {
  kilni_base_mutex_lock(&memory->root->lock);
  uint64_t used = memory->used;
  kilni_base_mutex_unlock(&memory->root->lock);
  return used;
}

bool kilni_soft_memory_in_window(const kilni_soft_memory_t* memory,
                                 uint64_t address) {
  return address - KILNI_SOFT_GLOBAL_BASE <
         KILNI_SOFT_WINDOW_BYTES * memory->root->device_count;
}

uint32_t kilni_soft_memory_generation(const kilni_soft_memory_t* memory) {
  return atomic_load_explicit(&memory->root->generation, memory_order_acquire);
}

static bool memory_is_reserved(const kilni_soft_memory_t* memory, size_t at) {
  return memory->allocs[at].kind == KILNI_SOFT_ALLOC_RESERVED;
}

bool kilni_soft_memory_nearest(kilni_soft_memory_t* memory, uint64_t address,
                               kilni_soft_alloc_t* out_alloc) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  size_t above = upper_bound(memory, address);
  size_t below = above;
  while (below > 0 && memory_is_reserved(memory, below - 1)) below--;
  while (above < memory->count && memory_is_reserved(memory, above)) above++;
  bool has_above = above < memory->count;
  uint64_t up = has_above ? memory->allocs[above].address - address : 0;
  bool found = has_above;
  if (has_above) *out_alloc = memory->allocs[above];
  if (below > 0) {
    const kilni_soft_alloc_t* alloc = &memory->allocs[below - 1];
    uint64_t end = alloc->address + alloc->bytes;
    uint64_t down = address < end ? 0 : address - end;
    if (!has_above || down <= up) *out_alloc = *alloc;
    found = true;
  }
  kilni_base_mutex_unlock(&memory->lock);
  return found;
}

// ---- Virtual memory ----

// Where a range of the table is that covers [address, address + bytes) with
// whole entries of one kind; `count` if there is none.
static size_t cover(const kilni_soft_memory_t* memory, uint64_t address,
                    uint64_t bytes, kilni_soft_alloc_kind_t kind) {
  size_t at = upper_bound(memory, address);
  if (at == 0 || memory->allocs[at - 1].address != address) {
    return memory->count;
  }
  uint64_t reached = address;
  for (size_t i = at - 1; i < memory->count; i++) {
    const kilni_soft_alloc_t* alloc = &memory->allocs[i];
    if (alloc->kind != kind || alloc->address != reached) break;
    reached += alloc->bytes;
    if (reached - address == bytes) return at - 1;
    if (reached - address > bytes) break;
  }
  return memory->count;
}

static bool choose_reserved(kilni_soft_memory_t* memory, uint64_t bytes,
                            uint64_t align, uint64_t hint,
                            uint64_t* out_address) {
  uint64_t offset = hint - KILNI_SOFT_GLOBAL_BASE;
  if (hint != 0 && hint % align == 0 && offset < memory->window_bytes &&
      bytes <= memory->window_bytes - offset &&
      !overlaps(memory, hint, bytes)) {
    *out_address = hint;
    return true;
  }
  uint64_t at;
  if (bytes > memory->window_bytes || align > memory->window_bytes ||
      !choose_address(memory, bytes + align, &at)) {
    return false;
  }
  *out_address = memory_round_up(at, align);
  return true;
}

kiln_status_t kilni_soft_memory_reserve(kilni_soft_memory_t* memory,
                                        uint64_t bytes, uint64_t align,
                                        uint64_t hint, uint64_t* out_address) {
  *out_address = 0;
  memory = memory->root;
  kilni_soft_alloc_t alloc = {.bytes = bytes,
                              .delta = window_delta(memory),
                              .kind = KILNI_SOFT_ALLOC_RESERVED};
  kilni_base_mutex_lock(&memory->lock);
  kiln_status_t status = kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  if (choose_reserved(memory, bytes, align, hint, &alloc.address)) {
    alloc.range = alloc.address;
    status = insert(memory, &alloc);
  }
  if (kiln_status_is_ok(status)) {
    *out_address = alloc.address;
    memory->cursor = alloc.address + bytes;
  }
  kilni_base_mutex_unlock(&memory->lock);
  return status;
}

bool kilni_soft_memory_unreserve(kilni_soft_memory_t* memory, uint64_t address,
                                 uint64_t bytes) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  size_t at = cover(memory, address, bytes, KILNI_SOFT_ALLOC_RESERVED);
  bool whole = at < memory->count && memory->allocs[at].bytes == bytes &&
               memory->allocs[at].range == address;
  // What follows must not be the rest of the same reservation.
  if (whole && at + 1 < memory->count &&
      kilni_soft_alloc_is_virtual(memory->allocs[at + 1].kind) &&
      memory->allocs[at + 1].range == address) {
    whole = false;
  }
  if (whole) memory_take_out(memory, &memory->allocs[at]);
  kilni_base_mutex_unlock(&memory->lock);
  return whole;
}

// Cuts the entry at `at` in two; there is space in the table.
static void memory_cut(kilni_soft_memory_t* memory, size_t at, uint64_t bytes) {
  kilni_soft_alloc_t* alloc = &memory->allocs[at];
  memmove(alloc + 2, alloc + 1, (memory->count - at - 1) * sizeof(*alloc));
  alloc[1] = alloc[0];
  alloc[1].address += bytes;
  alloc[1].bytes -= bytes;
  alloc[0].bytes = bytes;
  memory->count++;
}

// Joins the entry at `at` with the next if both are free addresses of one
// reservation.
static void memory_join(kilni_soft_memory_t* memory, size_t at) {
  kilni_soft_alloc_t* alloc = &memory->allocs[at];
  if (at + 1 >= memory->count || alloc[0].kind != KILNI_SOFT_ALLOC_RESERVED ||
      alloc[1].kind != KILNI_SOFT_ALLOC_RESERVED ||
      alloc[0].range != alloc[1].range) {
    return;
  }
  alloc[0].bytes += alloc[1].bytes;
  memory_take_out(memory, &alloc[1]);
}

static kiln_status_t memory_place(kilni_soft_memory_t* memory, uint64_t address,
                                  uint64_t bytes, int share, void* owner,
                                  uint32_t device) {
  size_t at = upper_bound(memory, address);
  if (at == 0) return kilni_base_status_bare(KILN_STATUS_INVALID_ARGUMENT);
  const kilni_soft_alloc_t* free_range = &memory->allocs[--at];
  uint64_t before = address - free_range->address;
  if (free_range->kind != KILNI_SOFT_ALLOC_RESERVED ||
      before >= free_range->bytes || bytes > free_range->bytes - before) {
    return kilni_base_status_bare(KILN_STATUS_INVALID_ARGUMENT);
  }
  void* list = memory->allocs;
  kiln_status_t status =
      kilni_base_grow(memory->allocator, memory->count + 2,
                      sizeof(*memory->allocs), &memory->capacity, &list);
  memory->allocs = list;
  KILNI_RETURN_IF_ERROR(status);
  KILNI_RETURN_IF_ERROR(kilni_base_vm_share_map(
      share, host_pointer(address, window_delta(memory)), (size_t)bytes));
  if (before > 0) memory_cut(memory, at++, before);
  if (memory->allocs[at].bytes > bytes) memory_cut(memory, at, bytes);
  memory->allocs[at].kind = KILNI_SOFT_ALLOC_MAPPED;
  memory->allocs[at].owner = owner;
  memory->allocs[at].access = 0;
  memory->allocs[at].device = device;
  memory->allocs[at].id = memory->next_id++;
  start_marks(memory, &memory->allocs[at], bytes);
  return kiln_ok();
}

kiln_status_t kilni_soft_memory_map(kilni_soft_memory_t* memory,
                                    uint64_t address, uint64_t bytes, int share,
                                    void* owner) {
  kilni_soft_memory_t* root = memory->root;
  kilni_base_mutex_lock(&root->lock);
  kiln_status_t status =
      memory_place(root, address, bytes, share, owner, memory->device);
  kilni_base_mutex_unlock(&root->lock);
  return status;
}

bool kilni_soft_memory_is_mapped(kilni_soft_memory_t* memory, uint64_t address,
                                 uint64_t bytes) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  bool mapped =
      cover(memory, address, bytes, KILNI_SOFT_ALLOC_MAPPED) < memory->count;
  kilni_base_mutex_unlock(&memory->lock);
  return mapped;
}

// Sets whether accesses by page may reach the pages.
static void set_pages(kilni_soft_memory_t* memory, uint64_t address,
                      uint64_t bytes, uint32_t value) {
  uint64_t first;
  uint64_t end;
  pages_of(address, bytes, &first, &end);
  for (; first < end; first++) memory->pages[first] = PAGE_COMMITTED | value;
}

void kilni_soft_memory_unmap(kilni_soft_memory_t* memory, uint64_t address,
                             kilni_soft_alloc_t* out_alloc) {
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  size_t at = upper_bound(memory, address) - 1;
  kilni_soft_alloc_t* alloc = &memory->allocs[at];
  *out_alloc = *alloc;
  kilni_base_vm_share_unmap(host_pointer(address, alloc->delta),
                            (size_t)alloc->bytes);
  set_pages(memory, address, alloc->bytes, 0);
  alloc->kind = KILNI_SOFT_ALLOC_RESERVED;
  alloc->owner = NULL;
  atomic_fetch_add(&memory->generation, 1);
  memory_join(memory, at);
  if (at > 0) memory_join(memory, at - 1);
  kilni_base_mutex_unlock(&memory->lock);
}

void kilni_soft_memory_set_access(kilni_soft_memory_t* memory, uint64_t address,
                                  uint64_t bytes, uint32_t access) {
  uint32_t shift = 2 * memory->device;
  memory = memory->root;
  kilni_base_mutex_lock(&memory->lock);
  size_t at = cover(memory, address, bytes, KILNI_SOFT_ALLOC_MAPPED);
  for (; at < memory->count; at++) {
    kilni_soft_alloc_t* alloc = &memory->allocs[at];
    if (alloc->address - address >= bytes) break;
    alloc->access = (alloc->access & ~(3u << shift)) | access << shift;
  }
  set_pages(memory, address, bytes, access != 0);
  atomic_fetch_add(&memory->generation, 1);
  kilni_base_mutex_unlock(&memory->lock);
}

bool kilni_soft_memory_charge(kilni_soft_memory_t* memory, uint64_t bytes) {
  kilni_base_mutex_lock(&memory->root->lock);
  bool space = bytes <= available(memory, bytes);
  if (space) memory->used += bytes;
  kilni_base_mutex_unlock(&memory->root->lock);
  return space;
}

void kilni_soft_memory_uncharge(kilni_soft_memory_t* memory, uint64_t bytes) {
  kilni_base_mutex_lock(&memory->root->lock);
  memory->used -= bytes;
  kilni_base_mutex_unlock(&memory->root->lock);
}
