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

struct kilni_dynlib_t {
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
  return kilni_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "the library \"%s\" cannot be opened: %s", name,
                 sentence ? sentence : "the loader gives no reason"),
      "install it, or add its folder to LD_LIBRARY_PATH");
}

kiln_status_t kilni_dynlib_open(kiln_allocator_t allocator, const char* name,
                                kilni_dynlib_t** out_library) {
  *out_library = NULL;
  void* block;
  KILNI_RETURN_IF_ERROR(kilni_alloc(allocator, sizeof(kilni_dynlib_t), &block));
  kilni_dynlib_t* library = block;
  library->allocator = allocator;
  // NODELETE: libraries of a driver start threads, register handlers and own
  // static memory that they lose when unloaded. Once in, they stay.
  library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library->handle == NULL) {
    kiln_status_t status = open_error(name);
    kilni_dynlib_close(library);
    return status;
  }
  struct link_map* map = NULL;
  const char* path = "";
  if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL) {
    path = map->l_name;
  }
  kiln_status_t status =
      kilni_strdup(allocator, kilni_sv(path), &library->path);
  if (!kiln_status_is_ok(status)) {
    kilni_dynlib_close(library);
    return status;
  }
  *out_library = library;
  return NULL;
}

void kilni_dynlib_close(kilni_dynlib_t* library) {
  if (library == NULL) return;
  if (library->handle != NULL) dlclose(library->handle);
  kilni_strfree(library->allocator, library->path);
  kilni_free(library->allocator, library, sizeof(*library));
}

void* kilni_dynlib_symbol(const kilni_dynlib_t* library, const char* name) {
  return dlsym(library->handle, name);
}

const char* kilni_dynlib_path(const kilni_dynlib_t* library) {
  return library->path;
}
