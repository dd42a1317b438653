// SPDX-License-Identifier: Apache-2.0
//
// soft: device memory: a range of device addresses, a table of allocations, and
// the check that an access is inside a live one.
//
// Device addresses do not depend on the host's address layout: the global
// window starts at a fixed number and its host memory is found by adding a
// per-allocation delta. Pinned host memory is an allocation whose device
// address is its host address.
//
// The engine asks with `kilni_soft_memory_find` and keeps the answer for as
// long as `generation` does not change; only a miss takes the lock.
#ifndef KILN_SRC_SOFT_MEMORY_SOFT_MEMORY_H_
#define KILN_SRC_SOFT_MEMORY_SOFT_MEMORY_H_

#include <stdatomic.h>

#include "base/host.h"
#include "kiln/status.h"
#include "soft/memory/soft_freed.h"
#include "soft/memory/soft_marks.h"

// The generic address space: three windows. Addresses in the shared and local
// windows are the space's own address plus its base.
#define KILNI_SOFT_SHARED_BASE  0x0000000100000000ull
#define KILNI_SOFT_SHARED_BYTES 0x0000000001000000ull
// Of these the system's own, far past what a block can have, so that no overrun
// reaches it: on a GPU it comes first.
#define KILNI_SOFT_RESERVED_AT 0x0000000000800000ull
#define KILNI_SOFT_LOCAL_BASE  0x0000000200000000ull
#define KILNI_SOFT_LOCAL_BYTES 0x0000000100000000ull
#define KILNI_SOFT_GLOBAL_BASE 0x00007e0000000000ull

// The maximum memory of a device; a smaller host has less
// (kilni_soft_memory_total).
#define KILNI_SOFT_TOTAL_BYTES (16ull << 30)
// Addresses from KILNI_SOFT_GLOBAL_BASE that may be device memory: more than
// there is memory, so that fragments and the delay of reuse have space.
// For each device.
#define KILNI_SOFT_WINDOW_BYTES (4 * KILNI_SOFT_TOTAL_BYTES)
enum { KILNI_SOFT_DEVICES_MOST = 8 };
// Reserved shared memory: all of it, and where its second part begins, which
// cooperative groups use.
enum { KILNI_SOFT_RESERVED_BYTES = 1024, KILNI_SOFT_RESERVED_SECOND = 512 };
// Reading and writing, of the two bits of a device's access.
enum { KILNI_SOFT_ACCESS_ALL = 3 };
enum { KILNI_SOFT_ALLOC_ALIGN = 512, KILNI_SOFT_PAGE_BYTES = 2 << 20 };

// A stretch of device addresses that may be accessed. thread-compatible
typedef struct kilni_soft_range_t {
  uint64_t lo;          // first address
  uint64_t hi;          // one past the last
  int64_t delta;        // host address = device address + delta
  uint32_t generation;  // of the table when this was found
  uint32_t writable;    // 0 for .const
} kilni_soft_range_t;

// What an allocation is. thread-compatible
typedef enum kilni_soft_alloc_kind_t {
  KILNI_SOFT_ALLOC_DEVICE = 1,      // cuMemAlloc
  KILNI_SOFT_ALLOC_ASYNC = 2,       // cuMemAllocAsync
  KILNI_SOFT_ALLOC_MODULE = 3,      // .global of a module
  KILNI_SOFT_ALLOC_CONSTANT = 4,    // .const of a module, read-only to kernels
  KILNI_SOFT_ALLOC_HOST = 5,        // pinned by cuMemHostAlloc: ours
  KILNI_SOFT_ALLOC_REGISTERED = 6,  // cuMemHostRegister: the caller's
  KILNI_SOFT_ALLOC_HEAP = 7,        // malloc in a kernel
  KILNI_SOFT_ALLOC_MANAGED = 8,     // cuMemAllocManaged: host memory
  KILNI_SOFT_ALLOC_POOL_HOST = 9,   // of a pool of pinned host memory
  KILNI_SOFT_ALLOC_POOL_MANAGED = 10,  // of a pool of managed memory
  KILNI_SOFT_ALLOC_MAPPED = 11,        // cuMemMap
  KILNI_SOFT_ALLOC_RESERVED = 12,      // addresses without memory
} kilni_soft_alloc_kind_t;

// One allocation, as a query returns it. thread-compatible
typedef struct kilni_soft_alloc_t {
  uint64_t address;
  uint64_t bytes;
  int64_t delta;
  kilni_soft_alloc_kind_t kind;
  uint32_t flags;
  uint32_t device;  // the owner of the memory, or the device that registered it
  uint32_t access;  // of pools and mappings: two bits for each device, a
                    // KILN_CU_MEM_ACCESS_FLAGS_PROT_*
  uint64_t id;      // distinct for each allocation of the device's life
  void* owner;      // the pool, or the mapped memory, it is of; NULL: of none
  uint64_t range;   // of a mapping and of reserved addresses: where the
                    // reservation starts
} kilni_soft_alloc_t;

// Whether memory of `kind` is host memory under its own address.
static inline bool kilni_soft_alloc_is_host(kilni_soft_alloc_kind_t kind) {
  return kind == KILNI_SOFT_ALLOC_HOST || kind == KILNI_SOFT_ALLOC_REGISTERED ||
         (kind >= KILNI_SOFT_ALLOC_MANAGED &&
          kind <= KILNI_SOFT_ALLOC_POOL_MANAGED);
}
static inline bool kilni_soft_alloc_is_virtual(kilni_soft_alloc_kind_t kind) {
  return kind >= KILNI_SOFT_ALLOC_MAPPED;
}
static inline bool kilni_soft_alloc_is_managed(kilni_soft_alloc_kind_t kind) {
  return kind == KILNI_SOFT_ALLOC_MANAGED ||
         kind == KILNI_SOFT_ALLOC_POOL_MANAGED;
}

// The memory of one device. thread-safe
//
// All devices have one range of addresses and one table, so that an address
// identifies its device; each counts its own memory, and finds what it may
// access.
typedef struct kilni_soft_memory_t kilni_soft_memory_t;

// `exact`: an access must be inside the requested bytes; otherwise inside their
// pages, as on hardware.
kiln_status_t kilni_soft_memory_create(const kiln_host_t* host, bool exact,
                                       kilni_soft_memory_t** out_memory);
// Does that for `count` devices with one range of addresses; the first of them
// represents all.
kiln_status_t kilni_soft_memory_create_all(const kiln_host_t* host, bool exact,
                                           uint32_t count,
                                           kilni_soft_memory_t** out_list);
// Ends all devices' memory; of the first of them.
void kilni_soft_memory_destroy(kilni_soft_memory_t* memory);
// The memory that a device has: half of what the host could give when it was
// made, since a program has its own copy of what it brings in and takes out,
// and KILNI_SOFT_TOTAL_BYTES at most. What of it can be had now: what is not
// used, and no more than the host can give now.
uint64_t kilni_soft_memory_total(const kilni_soft_memory_t* memory);
uint64_t kilni_soft_memory_available(kilni_soft_memory_t* memory);
// The locks of accesses of 16 bytes (soft_wide.h), NULL where none are needed;
// common to all devices.
atomic_uint* kilni_soft_memory_wide_locks(kilni_soft_memory_t* memory);
// Has them used wherever the CPU could do without; before the first kernel.
void kilni_soft_memory_lock_wide(kilni_soft_memory_t* memory);
// Keeps from now on which bytes of device memory were ever written; before the
// first allocation. Memory of modules counts as written, and so do mapped
// memory, which is zero, and the host's, whose state is unknown.
kiln_status_t kilni_soft_memory_watch(kilni_soft_memory_t* memory);
// The marks, NULL where nothing is kept.
const kilni_soft_marks_t* kilni_soft_memory_marks(
    const kilni_soft_memory_t* memory);
// Ends every allocation and registration of the device.
void kilni_soft_memory_clear(kilni_soft_memory_t* memory);
// Ends one of them, any; false if there is none.
bool kilni_soft_memory_clear_one(kilni_soft_memory_t* memory,
                                 kilni_soft_alloc_t* out_alloc);

// Zeroed? No: fresh bytes are filled with a pattern, as a GPU's are not zero.
// DEVICE_OUT_OF_MEMORY with requested and available bytes.
kiln_status_t kilni_soft_memory_alloc(kilni_soft_memory_t* memory,
                                      uint64_t bytes,
                                      kilni_soft_alloc_kind_t kind,
                                      uint64_t* out_address);
// NOT_FOUND (bare) unless `address` is the start of a live allocation of
// `kind`.
kiln_status_t kilni_soft_memory_free(kilni_soft_memory_t* memory,
                                     uint64_t address,
                                     kilni_soft_alloc_kind_t kind);
// Does that for memory that a stream frees, described by `freed`, whose address
// and size are filled in.
kiln_status_t kilni_soft_memory_free_as(kilni_soft_memory_t* memory,
                                        uint64_t address,
                                        kilni_soft_alloc_kind_t kind,
                                        kilni_soft_freed_t* freed);
// What was freed is remembered, the last of it; from this call on more.
enum { KILNI_SOFT_FREED_FEW = 256, KILNI_SOFT_FREED_KEPT = 4096 };
kiln_status_t kilni_soft_memory_keep_freed(kilni_soft_memory_t* memory);
// The allocation that contained `address` and was freed last; false if none is
// recorded.
bool kilni_soft_memory_freed(kilni_soft_memory_t* memory, uint64_t address,
                             kilni_soft_freed_t* out_freed);
// Sets the pool of the allocation at `address`, and which devices may access
// it.
void kilni_soft_memory_own(kilni_soft_memory_t* memory, uint64_t address,
                           void* owner, uint32_t access);
// Which devices may access memory of a pool from now on.
void kilni_soft_memory_own_access(kilni_soft_memory_t* memory,
                                  const void* owner, uint32_t access);
// Sets the flags of the allocation at `address`.
void kilni_soft_memory_set_flags(kilni_soft_memory_t* memory, uint64_t address,
                                 uint32_t flags);
// Whether the device may access memory of device `owner` that is neither of a
// pool nor mapped.
void kilni_soft_memory_set_peer(kilni_soft_memory_t* memory, uint32_t owner,
                                bool may);
bool kilni_soft_memory_is_peer(kilni_soft_memory_t* memory, uint32_t owner);
// Virtual memory. Sizes and addresses are whole pages.
//
// Addresses without memory, aligned to `align`, at `hint` if that is free.
kiln_status_t kilni_soft_memory_reserve(kilni_soft_memory_t* memory,
                                        uint64_t bytes, uint64_t align,
                                        uint64_t hint, uint64_t* out_address);
// False unless this is a whole reservation with nothing mapped.
bool kilni_soft_memory_unreserve(kilni_soft_memory_t* memory, uint64_t address,
                                 uint64_t bytes);
// Puts memory there, out of reach at first. INVALID_ARGUMENT (bare) unless all
// of it is reserved and free.
kiln_status_t kilni_soft_memory_map(kilni_soft_memory_t* memory,
                                    uint64_t address, uint64_t bytes, int share,
                                    void* owner);
// True if the range is made of whole mappings.
bool kilni_soft_memory_is_mapped(kilni_soft_memory_t* memory, uint64_t address,
                                 uint64_t bytes);
// Takes the mapping that starts there away.
void kilni_soft_memory_unmap(kilni_soft_memory_t* memory, uint64_t address,
                             kilni_soft_alloc_t* out_alloc);
// For whole mappings, of this device. `access` is a
// KILN_CU_MEM_ACCESS_FLAGS_PROT_*.
void kilni_soft_memory_set_access(kilni_soft_memory_t* memory, uint64_t address,
                                  uint64_t bytes, uint32_t access);
// Counts memory that is not an allocation; false if there is not so much.
bool kilni_soft_memory_charge(kilni_soft_memory_t* memory, uint64_t bytes);
void kilni_soft_memory_uncharge(kilni_soft_memory_t* memory, uint64_t bytes);

// Makes a host range known under its own address (pinned memory).
kiln_status_t kilni_soft_memory_register(kilni_soft_memory_t* memory,
                                         void* data, uint64_t bytes,
                                         kilni_soft_alloc_kind_t kind,
                                         uint32_t flags);
// malloc and free of kernels: up to `limit` bytes in all. An address of 0, and
// false, mean that the heap is exhausted, or that no heap block is at
// `address`.
enum { KILNI_SOFT_HEAP_BYTES = 8 << 20 };
void kilni_soft_heap_alloc(kilni_soft_memory_t* memory, uint64_t bytes,
                           uint64_t* out_address);
bool kilni_soft_heap_free(kilni_soft_memory_t* memory, uint64_t address);
uint64_t kilni_soft_heap_limit(kilni_soft_memory_t* memory);
void kilni_soft_heap_set_limit(kilni_soft_memory_t* memory, uint64_t bytes);
// The live allocation that contains `address`; false if none does.
bool kilni_soft_memory_query(kilni_soft_memory_t* memory, uint64_t address,
                             kilni_soft_alloc_t* out_alloc);
// The range around `address` that the device may access; false if there is
// none.
bool kilni_soft_memory_find(kilni_soft_memory_t* memory, uint64_t address,
                            kilni_soft_range_t* out_range);
// The host bytes of [address, address + bytes), NULL if any is outside.
void* kilni_soft_memory_host(kilni_soft_memory_t* memory, uint64_t address,
                             uint64_t bytes);
uint64_t kilni_soft_memory_used(kilni_soft_memory_t* memory);
// True if `address` is one that device memory could have.
bool kilni_soft_memory_in_window(const kilni_soft_memory_t* memory,
                                 uint64_t address);

// Changes with every free; a range of an older generation must be found anew.
uint32_t kilni_soft_memory_generation(const kilni_soft_memory_t* memory);

// Whether malloc of a kernel ever gave 0 for want of space.
bool kilni_soft_heap_was_full(kilni_soft_memory_t* memory);

// The allocation that is nearest to `address`, below it or above, for reports
// ("16 bytes past ...").
bool kilni_soft_memory_nearest(kilni_soft_memory_t* memory, uint64_t address,
                               kilni_soft_alloc_t* out_alloc);

#endif  // KILN_SRC_SOFT_MEMORY_SOFT_MEMORY_H_
