// SPDX-License-Identifier: Apache-2.0
//
// base: a folder that is held open, and the files in it.
//
// For what is kept in a folder over time: every file is named relative to the
// open folder, so that it cannot be replaced by another one. The calls are a
// table, one row for each system call, so that a test can let any of them fail,
// be interrupted or do half of its work; the functions below use the rows and
// handle that.
#ifndef KILN_SRC_BASE_FOLDER_H_
#define KILN_SRC_BASE_FOLDER_H_

#include "base/file.h"

// How a file is opened.
enum {
  KILNI_OPEN_READ = 1,     // an ordinary file, no link followed, no waiting
  KILNI_OPEN_LOCK = 2,     // for locks: read and write, made if not there
  KILNI_OPEN_NEW = 3,      // for writing, must not be there
  KILNI_OPEN_UNNAMED = 4,  // for writing, without a name yet
  KILNI_OPEN_WRITE = 5,    // for writing, must be there
};

enum { KILNI_LOCK_TRY = 1, KILNI_LOCK_RELEASE = 2 };

// The system calls. All return 0 or more, or minus an errno; what a folder
// opens and makes is this user's alone (0700, 0600) and closed by exec.
// thread-safe
typedef struct kilni_base_folder_calls_t {
  int (*open_folder)(void* user, const char* path);
  int (*make_folder)(void* user, const char* path);
  int (*open)(void* user, int folder, const char* name, uint32_t how);
  int (*close)(void* user, int handle);
  int64_t (*read)(void* user, int file, uint64_t offset, size_t size,
                  void* out);
  int64_t (*write)(void* user, int file, uint64_t offset, size_t size,
                   const void* data);
  int (*look)(void* user, int handle, kilni_base_file_look_t* out_look);
  int (*look_at)(void* user, int folder, const char* name,
                 kilni_base_file_look_t* out_look);  // of a link itself
  // Gives a file a name, which must be free.
  int (*link)(void* user, int file, int folder, const char* name);
  int (*rename)(void* user, int folder, const char* from, const char* to);
  int (*remove)(void* user, int folder, const char* name);
  int (*touch)(void* user, int file);  // its times become now
  int (*touch_at)(void* user, int folder, const char* name);
  // One byte of a file, KILNI_LOCK_*; belongs to `file`, not to the process,
  // and ends with it. -EAGAIN: another has it.
  int (*lock)(void* user, int file, uint64_t offset, uint32_t what);
  // Calls `fn` with each name but . and .., in any order.
  int (*list)(void* user, int folder, kilni_base_dir_fn_t fn, void* fn_user);
  void* user;
} kilni_base_folder_calls_t;

// The system's own.
kilni_base_folder_calls_t kilni_base_folder_calls_system(void);

// Opens a folder; `make_from` SIZE_MAX, or how much of `path` must exist:
// missing folders after that are created. 0 and `*out_folder`, or minus an
// errno.
int kilni_base_folder_open(const kilni_base_folder_calls_t* calls,
                           const char* path, size_t make_from, int* out_folder);

// Opens a file; an interruption is not seen.
int kilni_base_folder_open_file(const kilni_base_folder_calls_t* calls,
                                int folder, const char* name, uint32_t how);
// Up to `size` bytes, fewer only at the end; or minus an errno.
int64_t kilni_base_folder_read(const kilni_base_folder_calls_t* calls, int file,
                               uint64_t offset, size_t size, void* out);
// All of them: 0, or minus an errno.
int kilni_base_folder_write(const kilni_base_folder_calls_t* calls, int file,
                            uint64_t offset, size_t size, const void* data);

// Whether an errno of `lock` means that the file system has no locks.
bool kilni_base_folder_has_no_locks(int error);

#endif  // KILN_SRC_BASE_FOLDER_H_
