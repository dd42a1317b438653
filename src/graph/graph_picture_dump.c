// SPDX-License-Identifier: Apache-2.0
//
// graph: the driver's own dump of a graph.
//
// The driver writes to a path, and what it has written when it fails stays
// there. So it gets a file beside the one that was asked for.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/folder.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "graph/graph_picture.h"

enum {
  TRIES = 64,         // of names for the file beside
  SUFFIX_BYTES = 32,  // of such a name
  ALL_FLAGS = (1 << 16) - 1,
};

// The file beside. one-thread
typedef struct beside_t {
  kilni_base_folder_calls_t calls;
  int folder;        // -1: not open
  char* path;        // of it
  size_t path_size;  // with its NUL
  const char* name;  // inside of `path`
  bool is_there;
} beside_t;

static kiln_status_t picture_dump_fail_open(const char* path, int error) {
  char text[96];
  (void)kilni_base_error_text(error, sizeof(text), text);
  if (error == ENOENT || error == ENOTDIR) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "the file \"%s\" has no folder: %s", path, text),
        "make the folder first");
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(PERMISSION_DENIED,
                   "no file can be created beside \"%s\": %s", path, text),
        "write to a folder of your own");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(IO_ERROR, "no file can be created beside \"%s\": %s", path,
                 text),
      "check the folder and its disk");
}

static int picture_dump_try_name(beside_t* b, size_t name_at, const void* key,
                                 unsigned attempt) {
  (void)snprintf(b->path + name_at, SUFFIX_BYTES, ".%llx-%u",
                 (unsigned long long)(uintptr_t)key & 0xffffffffffffu, attempt);
  int file = b->calls.open(b->calls.user, b->folder, b->name, KILNI_OPEN_NEW);
  if (file >= 0) {
    b->is_there = true;
    (void)b->calls.close(b->calls.user, file);
  }
  return file < 0 ? -file : 0;
}

static kiln_status_t beside_init(beside_t* b, kiln_allocator_t allocator,
                                 const char* path) {
  memset(b, 0, sizeof(*b));
  b->folder = -1;
  b->calls = kilni_base_folder_calls_system();
  size_t size = strlen(path);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, size + SUFFIX_BYTES + 2, &block));
  b->path = block;
  b->path_size = size + SUFFIX_BYTES + 2;
  memcpy(b->path, path, size + 1);
  char* slash = strrchr(b->path, '/');
  if (slash != NULL) slash[slash == b->path ? 1 : 0] = 0;
  int folder =
      b->calls.open_folder(b->calls.user, slash == NULL ? "." : b->path);
  memcpy(b->path, path, size + 1);
  if (folder < 0) return picture_dump_fail_open(path, -folder);
  b->folder = folder;
  b->name = slash == NULL ? b->path : slash + 1;
  int error = EEXIST;
  for (unsigned i = 0; i < TRIES && error == EEXIST; i++) {
    error = picture_dump_try_name(b, size, b, i);
  }
  return error == 0 ? kiln_ok() : picture_dump_fail_open(path, error);
}

static void beside_deinit(beside_t* b, kiln_allocator_t allocator) {
  if (b->is_there) (void)b->calls.remove(b->calls.user, b->folder, b->name);
  if (b->folder >= 0) (void)b->calls.close(b->calls.user, b->folder);
  kilni_base_free(allocator, b->path, b->path_size);
}

static kiln_status_t move_over(const beside_t* b, kiln_allocator_t allocator,
                               const char* path) {
  uint8_t* data = NULL;
  size_t size = 0;
  KILNI_RETURN_IF_ERROR(kilni_base_file_read(
      allocator, b->path, KILNI_PICTURE_MAX_BYTES, &data, &size));
  kiln_status_t status;
  if (size == 0) {
    status = kilni_base_status_with_fix(
        KILNI_FAIL(IO_ERROR, "the driver wrote nothing to \"%s\"", b->path),
        "free some disk space, or draw the graph with kiln_graph_draw_file");
  } else {
    status = kilni_base_file_write(allocator, path, data, size);
  }
  kilni_base_file_free(allocator, data, size);
  return status;
}

kiln_status_t kiln_graph_dump_file(kiln_graph_t* graph, uint32_t flags,
                                   const char* path) {
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT_SAYS((flags & ~(uint32_t)ALL_FLAGS) == 0, "flags",
                            "has bits that are not flags of a dump",
                            "pass 0, or flags of CUgraphDebugDot_flags");
  KILNI_CHECK_ARGUMENT(path != NULL && path[0] != 0, "path");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  if (!kilni_table_cuda_has(graph->device->table,
                            KILNI_CUDA_ROW_cuGraphDebugDotPrint)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "the driver of \"%s\" cannot dump graphs",
                   kiln_device_name(graph->device)),
        "draw the graph with kiln_graph_draw_file (kiln graph --dot)");
  }
  kiln_allocator_t allocator = graph->device->host->allocator;
  beside_t beside;
  kiln_status_t status = beside_init(&beside, allocator, path);
  if (kiln_status_is_ok(status)) {
    KILNI_DEVICE_CALL(status, graph->device, cuGraphDebugDotPrint,
                      graph->handle, beside.path, flags);
  }
  if (kiln_status_is_ok(status)) {
    status = move_over(&beside, allocator, path);
  }
  beside_deinit(&beside, allocator);
  return status;
}
