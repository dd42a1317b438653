// SPDX-License-Identifier: Apache-2.0
//
// base: ranges of the host's address space.
//
// For the one user that needs more addresses than memory: the software device
// reserves its whole address window and commits what is allocated. Sizes and
// addresses are multiples of kilni_base_vm_page_bytes.
#ifndef KILN_SRC_BASE_VM_H_
#define KILN_SRC_BASE_VM_H_

#include "kiln/status.h"

size_t kilni_base_vm_page_bytes(void);

// Addresses without memory: any access is a host fault. Bare OUT_OF_MEMORY when
// the host (or a limit on it) has no such range.
kiln_status_t kilni_base_vm_reserve(size_t bytes, void** out_base);
void kilni_base_vm_release(void* base, size_t bytes);

// Makes a part of a reserved range readable and writable. Fresh bytes are
// zero and take memory when they are touched.
kiln_status_t kilni_base_vm_commit(void* at, size_t bytes);

// Returns the memory of a committed part. The part stays accessible and reads
// as zero, so that a thread that still has its address cannot crash.
void kilni_base_vm_discard(void* at, size_t bytes);

// Bytes of a committed part that have no memory yet, since they are untouched.
uint64_t kilni_base_vm_untouched(void* at, size_t bytes);

// Memory that can be mapped at several places of reserved ranges at once, and
// keeps its content when mapped at none. Zero at first. Bare OUT_OF_MEMORY.
kiln_status_t kilni_base_vm_share_create(size_t bytes, int* out_share);
void kilni_base_vm_share_close(int share);  // -1 is accepted
// Puts the whole of it at `at`, readable and writable.
kiln_status_t kilni_base_vm_share_map(int share, void* at, size_t bytes);
// Maps fresh bytes there instead, as after kilni_base_vm_discard.
void kilni_base_vm_share_unmap(void* at, size_t bytes);

// A word of 1 that is 0 in every forked child; NULL where the system has no
// such memory. Ended by kilni_base_vm_fork_unmark, which accepts NULL.
const volatile uint64_t* kilni_base_vm_fork_mark(void);
void kilni_base_vm_fork_unmark(const volatile uint64_t* mark);

#endif  // KILN_SRC_BASE_VM_H_
