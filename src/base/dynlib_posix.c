// SPDX-License-Identifier: Apache-2.0
//
// base: shared libraries opened at run time. The only file that may call the
// system's loader.
#define _GNU_SOURCE  // dlinfo
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dynlib.h"
#include "base/status_make.h"
#include "base/str.h"

struct kilni_base_dynlib_t {
  kiln_allocator_t allocator;
  void* handle;
  char* path;
};

// The loader leaves its sentence in a slot of the calling thread.
static kiln_status_t open_error(const char* name) {
  const char* sentence = dlerror();
  size_t size = strlen(name);
  if (sentence && strncmp(sentence, name, size) == 0 &&
      strncmp(sentence + size, ": ", 2) == 0) {
    sentence += size + 2;  // the name is in our own sentence
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "the library \"%s\" cannot be opened: %s", name,
                 sentence ? sentence : "the loader gives no reason"),
      "install it, or add its folder to LD_LIBRARY_PATH");
}

// NODELETE: libraries of a driver start threads, register handlers and own
// static memory that they lose when unloaded. Once in, they stay.
static int open_mode(uint32_t flags) {
  int mode = RTLD_NOW | RTLD_NODELETE;
  mode |= (flags & KILNI_DYNLIB_GLOBAL) != 0 ? RTLD_GLOBAL : RTLD_LOCAL;
#if !defined(KILNI_SANITIZED)  // whose own symbols must come first
  if ((flags & KILNI_DYNLIB_DEEPBIND) != 0) mode |= RTLD_DEEPBIND;
#endif
  return mode;
}

kiln_status_t kilni_base_dynlib_open(kiln_allocator_t allocator,
                                     const char* name,
                                     kilni_base_dynlib_t** out_library) {
  return kilni_base_dynlib_open_with(allocator, name, 0, out_library);
}

kiln_status_t kilni_base_dynlib_open_with(kiln_allocator_t allocator,
                                          const char* name, uint32_t flags,
                                          kilni_base_dynlib_t** out_library) {
  *out_library = NULL;
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_base_dynlib_t), &block));
  kilni_base_dynlib_t* library = block;
  library->allocator = allocator;
  library->handle = dlopen(name, open_mode(flags));
  if (library->handle == NULL) {
    kiln_status_t status = open_error(name);
    kilni_base_dynlib_close(library);
    return status;
  }
  struct link_map* map = NULL;
  const char* path = "";
  if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL) {
    path = map->l_name;
  }
  kiln_status_t status =
      kilni_base_strdup(allocator, kilni_base_sv(path), &library->path);
  if (!kiln_status_is_ok(status)) {
    kilni_base_dynlib_close(library);
    return status;
  }
  *out_library = library;
  return kiln_ok();
}

void kilni_base_dynlib_close(kilni_base_dynlib_t* library) {
  if (library == NULL) return;
  if (library->handle != NULL) dlclose(library->handle);
  kilni_base_strfree(library->allocator, library->path);
  kilni_base_free(library->allocator, library, sizeof(*library));
}

void* kilni_base_dynlib_symbol(const kilni_base_dynlib_t* library,
                               const char* name) {
  return dlsym(library->handle, name);
}

const char* kilni_base_dynlib_path(const kilni_base_dynlib_t* library) {
  return library->path;
}

void* kilni_base_dynlib_handle(const kilni_base_dynlib_t* library) {
  return library->handle;
}

// ---- What is mapped already ----

// The dynamic section of a mapped object. one-thread
typedef struct dynamic_t {
  const struct dl_phdr_info* info;
  const ElfW(Dyn) * entries;
  const char* strings;
  size_t string_bytes;
} dynamic_t;

// glibc writes absolute addresses into most dynamic sections; the kernel's own
// object and some targets keep them relative.
static const char* dynamic_address(ElfW(Addr) base, ElfW(Addr) value) {
  return (const char*)(uintptr_t)(value < base ? value + base : value);
}

static void dynamic_read(const struct dl_phdr_info* info, dynamic_t* dynamic) {
  memset(dynamic, 0, sizeof(*dynamic));
  dynamic->info = info;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    dynamic->entries = (const ElfW(
        Dyn)*)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  }
  if (dynamic->entries == NULL) return;
  for (const ElfW(Dyn)* d = dynamic->entries; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB) {
      dynamic->strings = dynamic_address(info->dlpi_addr, d->d_un.d_ptr);
    }
    if (d->d_tag == DT_STRSZ) dynamic->string_bytes = d->d_un.d_val;
  }
}

static const char* dynamic_text(const dynamic_t* dynamic, ElfW(Xword) offset) {
  if (dynamic->strings == NULL || offset >= dynamic->string_bytes) return "";
  return dynamic->strings + offset;
}

// The text of the entry number `index` of a tag, or NULL.
static const char* dynamic_find(const dynamic_t* dynamic, ElfW(Sxword) tag,
                                uint32_t index) {
  if (dynamic->entries == NULL) return NULL;
  for (const ElfW(Dyn)* d = dynamic->entries; d->d_tag != DT_NULL; d++) {
    if (d->d_tag != tag) continue;
    if (index-- == 0) return dynamic_text(dynamic, d->d_un.d_val);
  }
  return NULL;
}

const char* kilni_base_dynlib_mapped_need(
    const kilni_base_dynlib_mapped_t* mapped, uint32_t index) {
  return dynamic_find(mapped->inside, DT_NEEDED, index);
}

const char* kilni_base_dynlib_mapped_runpath(
    const kilni_base_dynlib_mapped_t* mapped) {
  const char* text = dynamic_find(mapped->inside, DT_RUNPATH, 0);
  return text ? text : "";
}

const char* kilni_base_dynlib_mapped_rpath(
    const kilni_base_dynlib_mapped_t* mapped) {
  const char* text = dynamic_find(mapped->inside, DT_RPATH, 0);
  return text ? text : "";
}

bool kilni_base_dynlib_mapped_holds(const kilni_base_dynlib_mapped_t* mapped,
                                    const void* address) {
  const dynamic_t* dynamic = mapped->inside;
  const struct dl_phdr_info* info = dynamic->info;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    uintptr_t begin = (uintptr_t)(info->dlpi_addr + part->p_vaddr);
    if (part->p_type == PT_LOAD && (uintptr_t)address >= begin &&
        (uintptr_t)address - begin < part->p_memsz) {
      return true;
    }
  }
  return false;
}

// What each_mapped hands to its callback. one-thread
typedef struct visit_t {
  kilni_base_dynlib_mapped_fn_t fn;
  void* user;
} visit_t;

static int dynlib_posix_on_object(struct dl_phdr_info* info, size_t size,
                                  void* user) {
  (void)size;
  const visit_t* visit = user;
  dynamic_t dynamic;
  dynamic_read(info, &dynamic);
  const char* soname = dynamic_find(&dynamic, DT_SONAME, 0);
  kilni_base_dynlib_mapped_t mapped = {
      info->dlpi_name != NULL ? info->dlpi_name : "",
      soname != NULL ? soname : "", &dynamic};
  return visit->fn(&mapped, visit->user) ? 0 : 1;
}

void kilni_base_dynlib_each_mapped(kilni_base_dynlib_mapped_fn_t fn,
                                   void* user) {
  visit_t visit = {fn, user};
  (void)dl_iterate_phdr(dynlib_posix_on_object, &visit);
}
