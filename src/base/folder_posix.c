// SPDX-License-Identifier: Apache-2.0
//
// base: a folder that is held open, and the files in it.
#define _GNU_SOURCE  // O_TMPFILE, F_OFD_SETLK
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_look.h"
#include "base/folder.h"

enum { OWN_FOLDER = 0700, OWN_FILE = 0600, MAX_PATH_BYTES = 4096 };

// ---- The system's own calls ----

static int result(int value) {
  return value < 0 ? -errno : value;
}

static int call_open_folder(void* user, const char* path) {
  (void)user;
  return result(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int call_make_folder(void* user, const char* path) {
  (void)user;
  return result(mkdir(path, OWN_FOLDER));
}

static int call_open(void* user, int folder, const char* name, uint32_t how) {
  (void)user;
  int common = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  switch (how) {
    case KILNI_OPEN_READ:
      return result(openat(folder, name, common | O_RDONLY));
    case KILNI_OPEN_LOCK:
      return result(openat(folder, name, common | O_RDWR | O_CREAT, OWN_FILE));
    case KILNI_OPEN_NEW:
      return result(
          openat(folder, name, common | O_RDWR | O_CREAT | O_EXCL, OWN_FILE));
    case KILNI_OPEN_UNNAMED:
      return result(
          openat(folder, ".", O_CLOEXEC | O_RDWR | O_TMPFILE, OWN_FILE));
    case KILNI_OPEN_WRITE:
      return result(openat(folder, name, common | O_RDWR));
    default:
      return -EINVAL;
  }
}

static int call_close(void* user, int handle) {
  (void)user;
  return result(close(handle));
}

static int64_t call_read(void* user, int file, uint64_t offset, size_t size,
                         void* out) {
  (void)user;
  ssize_t got = pread(file, out, size, (off_t)offset);
  return got < 0 ? -errno : got;
}

static int64_t call_write(void* user, int file, uint64_t offset, size_t size,
                          const void* data) {
  (void)user;
  ssize_t done = pwrite(file, data, size, (off_t)offset);
  return done < 0 ? -errno : done;
}

static int call_look(void* user, int handle, kilni_base_file_look_t* out_look) {
  (void)user;
  struct stat info;
  memset(out_look, 0, sizeof(*out_look));
  if (fstat(handle, &info) != 0) return -errno;
  kilni_base_file_look_fill(&info, out_look);
  return 0;
}

static int call_look_at(void* user, int folder, const char* name,
                        kilni_base_file_look_t* out_look) {
  (void)user;
  struct stat info;
  memset(out_look, 0, sizeof(*out_look));
  if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  kilni_base_file_look_fill(&info, out_look);
  return 0;
}

static int call_link(void* user, int file, int folder, const char* name) {
  (void)user;
  char path[32];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  return result(linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW));
}

static int call_rename(void* user, int folder, const char* from,
                       const char* to) {
  (void)user;
  return result(renameat(folder, from, folder, to));
}

static int call_remove(void* user, int folder, const char* name) {
  (void)user;
  return result(unlinkat(folder, name, 0));
}

static int call_touch(void* user, int file) {
  (void)user;
  return result(futimens(file, NULL));
}

static int call_touch_at(void* user, int folder, const char* name) {
  (void)user;
  return result(utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW));
}

static int call_lock(void* user, int file, uint64_t offset, uint32_t what) {
  (void)user;
  struct flock lock;
  memset(&lock, 0, sizeof(lock));
  lock.l_type = what == KILNI_LOCK_TRY ? F_WRLCK : F_UNLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = (off_t)offset;
  lock.l_len = 1;
  int code = result(fcntl(file, F_OFD_SETLK, &lock));
  return code == -EACCES ? -EAGAIN : code;
}

static int call_list(void* user, int folder, kilni_base_dir_fn_t fn,
                     void* fn_user) {
  (void)user;
  // A handle of its own: the place in the list belongs to what is opened.
  int handle = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return -errno;
  DIR* list = fdopendir(handle);
  if (list == NULL) {
    int error = errno;
    close(handle);
    return -error;
  }
  int error = 0;
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(list);
    if (entry == NULL) {
      error = errno;
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    if (!fn(entry->d_name, fn_user)) break;
  }
  closedir(list);
  return -error;
}

kilni_base_folder_calls_t kilni_base_folder_calls_system(void) {
  kilni_base_folder_calls_t calls = {
      call_open_folder, call_make_folder, call_open,   call_close,
      call_read,        call_write,       call_look,   call_look_at,
      call_link,        call_rename,      call_remove, call_touch,
      call_touch_at,    call_lock,        call_list,   NULL};
  return calls;
}

// ---- What is made of them ----

static int folder_posix_open_folder(const kilni_base_folder_calls_t* calls,
                                    const char* path) {
  int handle;
  do {
    handle = calls->open_folder(calls->user, path);
  } while (handle == -EINTR);
  return handle;
}

// Makes the folders of `path` after its first `from` bytes.
static int make_folders(const kilni_base_folder_calls_t* calls,
                        const char* path, size_t from) {
  char part[MAX_PATH_BYTES];
  size_t length = strlen(path);
  if (length >= sizeof(part)) return -ENAMETOOLONG;
  for (size_t i = from > 0 ? from : 1; i <= length; i++) {
    if ((path[i] != '/' && path[i] != 0) || path[i - 1] == '/' || i <= from) {
      continue;
    }
    memcpy(part, path, i);
    part[i] = 0;
    int code = calls->make_folder(calls->user, part);
    // An existing folder may give errors other than EEXIST (EROFS, EACCES):
    // only whether it can be opened counts, and the last one is opened.
    if (code < 0 && path[i] == 0 && code != -EEXIST) return code;
  }
  return 0;
}

int kilni_base_folder_open(const kilni_base_folder_calls_t* calls,
                           const char* path, size_t make_from,
                           int* out_folder) {
  *out_folder = -1;
  int handle = folder_posix_open_folder(calls, path);
  if (handle == -ENOENT && make_from != SIZE_MAX) {
    int code = make_folders(calls, path, make_from);
    if (code < 0) return code;
    handle = folder_posix_open_folder(calls, path);
  }
  if (handle < 0) return handle;
  *out_folder = handle;
  return 0;
}

int kilni_base_folder_open_file(const kilni_base_folder_calls_t* calls,
                                int folder, const char* name, uint32_t how) {
  int file;
  do {
    file = calls->open(calls->user, folder, name, how);
  } while (file == -EINTR);
  return file;
}

int64_t kilni_base_folder_read(const kilni_base_folder_calls_t* calls, int file,
                               uint64_t offset, size_t size, void* out) {
  size_t done = 0;
  while (done < size) {
    int64_t got = calls->read(calls->user, file, offset + done, size - done,
                              (char*)out + done);
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += (size_t)got;
  }
  return (int64_t)done;
}

int kilni_base_folder_write(const kilni_base_folder_calls_t* calls, int file,
                            uint64_t offset, size_t size, const void* data) {
  size_t done = 0;
  while (done < size) {
    int64_t put = calls->write(calls->user, file, offset + done, size - done,
                               (const char*)data + done);
    if (put == -EINTR) continue;
    if (put < 0) return (int)put;
    // A disk that writes nothing and reports no error is full.
    if (put == 0) return -ENOSPC;
    done += (size_t)put;
  }
  return 0;
}

bool kilni_base_folder_has_no_locks(int error) {
  switch (error < 0 ? -error : error) {
    case ENOLCK:
    case EOPNOTSUPP:
    case ENOSYS:
    case EINVAL:
    case EIO:
    case EBADF:
    case EPERM:
      return true;
    default:
      return false;
  }
}
