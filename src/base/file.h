// SPDX-License-Identifier: Apache-2.0
//
// base: files.
#ifndef KILN_SRC_BASE_FILE_H_
#define KILN_SRC_BASE_FILE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

// Reads a whole file. The block has a NUL behind its `size` bytes. NOT_FOUND,
// PERMISSION_DENIED, IO_ERROR, or LIMIT_EXCEEDED above `limit` bytes; each
// names the path. Free with kilni_file_free.
kiln_status_t kilni_file_read(kiln_allocator_t allocator, const char* path,
                              size_t limit, uint8_t** out_data,
                              size_t* out_size);
void kilni_file_free(kiln_allocator_t allocator, uint8_t* data, size_t size);

// Writes a file whole or not at all: a temporary file beside it, synced, then
// renamed over `path`; removed again on every failure. A link is followed. A
// device or pipe is written through, since it cannot be replaced.
kiln_status_t kilni_file_write(kiln_allocator_t allocator, const char* path,
                               const void* data, size_t size);

bool kilni_file_exists(const char* path);
bool kilni_dir_exists(const char* path);

// Calls `fn` for each entry of a folder except . and .., in name order.
// `fn` returns false to stop.
typedef bool (*kilni_dir_fn_t)(const char* name, void* user);
kiln_status_t kilni_dir_each(kiln_allocator_t allocator, const char* path,
                             kilni_dir_fn_t fn, void* user);

// The path with links resolved, freed by kilni_strfree.
kiln_status_t kilni_path_real(kiln_allocator_t allocator, const char* path,
                              char** out_path);

#endif  // KILN_SRC_BASE_FILE_H_
