// SPDX-License-Identifier: Apache-2.0
//
// base: ranges of the host's address space, by mmap.
#define _GNU_SOURCE  // MAP_ANONYMOUS, MAP_NORESERVE, madvise, memfd_create
#include "base/vm.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/status_make.h"

enum { FALLBACK_PAGE_BYTES = 4096 };

size_t kilni_base_vm_page_bytes(void) {
  long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? (size_t)bytes : FALLBACK_PAGE_BYTES;
}

kiln_status_t kilni_base_vm_reserve(size_t bytes, void** out_base) {
  *out_base = NULL;
  void* base = mmap(NULL, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  *out_base = base;
  return kiln_ok();
}

void kilni_base_vm_release(void* base, size_t bytes) {
  if (base != NULL) munmap(base, bytes);
}

kiln_status_t kilni_base_vm_commit(void* at, size_t bytes) {
  if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  return kiln_ok();
}

void kilni_base_vm_discard(void* at, size_t bytes) {
  madvise(at, bytes, MADV_DONTNEED);
}

uint64_t kilni_base_vm_untouched(void* at, size_t bytes) {
  unsigned char there[4096];
  uint64_t count = 0;
  size_t page = kilni_base_vm_page_bytes();
  for (size_t done = 0; done < bytes;) {
    size_t pages = (bytes - done + page - 1) / page;
    if (pages > sizeof(there)) pages = sizeof(there);
    if (mincore((char*)at + done, pages * page, there) != 0) return count;
    for (size_t i = 0; i < pages; i++) count += !(there[i] & 1u);
    done += pages * page;
  }
  return count * page;
}

kiln_status_t kilni_base_vm_share_create(size_t bytes, int* out_share) {
  *out_share = memfd_create("kiln", MFD_CLOEXEC);
  if (*out_share < 0) return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  if (ftruncate(*out_share, (off_t)bytes) == 0) return kiln_ok();
  close(*out_share);
  *out_share = -1;
  return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
}

void kilni_base_vm_share_close(int share) {
  if (share >= 0) close(share);
}

kiln_status_t kilni_base_vm_share_map(int share, void* at, size_t bytes) {
  void* got =
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, share, 0);
  if (got == MAP_FAILED) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  return kiln_ok();
}

void kilni_base_vm_share_unmap(void* at, size_t bytes) {
  (void)mmap(at, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

const volatile uint64_t* kilni_base_vm_fork_mark(void) {
#if defined(MADV_WIPEONFORK)
  size_t bytes = kilni_base_vm_page_bytes();
  void* page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (madvise(page, bytes, MADV_WIPEONFORK) == 0) {
    uint64_t* mark = page;
    *mark = 1;
    return mark;
  }
  munmap(page, bytes);
#endif
  return NULL;
}

void kilni_base_vm_fork_unmark(const volatile uint64_t* mark) {
  if (mark != NULL) munmap((void*)(uintptr_t)mark, kilni_base_vm_page_bytes());
}
