// SPDX-License-Identifier: Apache-2.0
//
// base: files.
#ifndef KILN_SRC_BASE_FILE_H_
#define KILN_SRC_BASE_FILE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

// Reads a whole file. The block has a NUL after its `size` bytes. NOT_FOUND,
// PERMISSION_DENIED, IO_ERROR, or LIMIT_EXCEEDED above `limit` bytes; each
// names the path. Free with kilni_base_file_free.
kiln_status_t kilni_base_file_read(kiln_allocator_t allocator, const char* path,
                                   size_t limit, uint8_t** out_data,
                                   size_t* out_size);
void kilni_base_file_free(kiln_allocator_t allocator, uint8_t* data,
                          size_t size);

// Writes a file whole or not at all: a temporary file beside it, synced, then
// renamed over `path`; removed again on every failure. A link is followed. A
// device or pipe is written through, since it cannot be replaced.
kiln_status_t kilni_base_file_write(kiln_allocator_t allocator,
                                    const char* path, const void* data,
                                    size_t size);

// What a path leads to.
enum {
  KILNI_FILE_NONE = 0,     // nothing is there
  KILNI_FILE_REGULAR = 1,  // a file
  KILNI_FILE_DIR = 2,      // a folder
  KILNI_FILE_OTHER = 3,    // a device, a pipe
  KILNI_FILE_ERROR = 4     // it is unknown; `error` gives the reason
};

// What the system reports of a path. thread-safe
typedef struct kilni_base_file_look_t {
  uint32_t kind;   // KILNI_FILE_*
  int error;       // errno, where `kind` is NONE or ERROR
  uint32_t mode;   // permission bits
  uint32_t owner;  // user id
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  int64_t modified_ns;  // when its bytes last changed, since 1970
  uint64_t links;       // names that it has
} kilni_base_file_look_t;

// One stat, links followed. Never fails: `kind` is the result.
kilni_base_file_look_t kilni_base_file_look(const char* path);
bool kilni_base_file_can_execute(const char* path);
uint32_t kilni_base_file_user(void);  // the user id that files are opened with

// The target of a link, cut to `capacity` with its NUL; false for what is not a
// link or cannot be read.
bool kilni_base_link_read(const char* path, size_t capacity, char* out_target);

bool kilni_base_link_is(const char* path);  // its last part

// Calls `fn` for each entry of a folder except . and .., as the system gives
// them and with no copy of the list. 0, or errno.
typedef bool (*kilni_base_dir_fn_t)(const char* name, void* user);
int kilni_base_dir_scan(const char* path, kilni_base_dir_fn_t fn, void* user);

// The system's words for an errno, in `buffer`.
const char* kilni_base_error_text(int error, size_t capacity, char* buffer);

bool kilni_base_file_exists(const char* path);
bool kilni_base_dir_exists(const char* path);

// Calls `fn` for each entry of a folder except . and .., in name order.
// `fn` returns false to stop.
kiln_status_t kilni_base_dir_each(kiln_allocator_t allocator, const char* path,
                                  kilni_base_dir_fn_t fn, void* user);

// The same in whatever order the system has them, without keeping any: for
// folders of which a caller wants a few entries of very many.
kiln_status_t kilni_base_dir_visit(const char* path, kilni_base_dir_fn_t fn,
                                   void* user);

// The path with links resolved, freed by kilni_base_strfree.
kiln_status_t kilni_base_path_real(kiln_allocator_t allocator, const char* path,
                                   char** out_path);

// A file, or bytes in its place, read in parts. one-thread
//
// Never mapped: a file that shrinks while it is read is an error, not a fault.
typedef struct kilni_base_window_t {
  const char* name;  // borrowed; for messages
  int handle;        // -1: bytes
  uint64_t size;     // when it was opened
  kiln_bytes_view_t bytes;
} kilni_base_window_t;

// Opens a regular file; a pipe or device is refused without waiting for it.
// `path` is borrowed until the window is closed. NOT_FOUND, PERMISSION_DENIED,
// IO_ERROR, BAD_DATA for what is not a regular file.
kiln_status_t kilni_base_window_open(const char* path,
                                     kilni_base_window_t* out_window);
// Opens a file that may well be missing: no status and no text for that.
// `*out_there` is whether it was opened.
kiln_status_t kilni_base_window_open_if(const char* path,
                                        kilni_base_window_t* out_window,
                                        bool* out_there);
void kilni_base_window_of_bytes(kiln_bytes_view_t bytes, const char* name,
                                kilni_base_window_t* out_window);
void kilni_base_window_close(kilni_base_window_t* window);

// Reads up to `size` bytes at `offset`; fewer only at the end.
kiln_status_t kilni_base_window_read_some(const kilni_base_window_t* window,
                                          uint64_t offset, size_t size,
                                          void* out, size_t* out_size);
// Reads exactly that; BAD_DATA if the file ends before.
kiln_status_t kilni_base_window_read(const kilni_base_window_t* window,
                                     uint64_t offset, size_t size, void* out);

#endif  // KILN_SRC_BASE_FILE_H_
