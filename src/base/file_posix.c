// SPDX-License-Identifier: Apache-2.0
//
// base: files.
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_look.h"
#include "base/status_make.h"
#include "base/str.h"
#include "base/thread.h"

enum {
  FIRST_READ_BYTES = 4096,
  TEMP_NAME_TRIES = 1000,
  DIR_MAX_ENTRIES = 1000000,
  ERROR_TEXT_BYTES = 256
};

static kiln_status_code_t file_posix_code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return KILN_STATUS_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
      return KILN_STATUS_PERMISSION_DENIED;
    case ENOMEM:
      return KILN_STATUS_OUT_OF_MEMORY;
    default:
      return KILN_STATUS_IO_ERROR;
  }
}

static const char* fix_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "check the path's spelling, and that its folder exists";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and of its folder";
    case EROFS:
      return "choose a path on a file system that can be written";
    case ENOSPC:
    case EDQUOT:
      return "free some disk space or choose a path on another disk";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case EISDIR:
      return "name a file, not a folder";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    default:
      return "check the disk and the path";
  }
}

const char* kilni_base_error_text(int error, size_t capacity, char* buffer) {
  if (strerror_r(error, buffer, capacity) != 0) {
    snprintf(buffer, capacity, "error %d", error);
  }
  return buffer;
}

// `verb` completes "the file ... cannot be".
static kiln_status_t file_error(int error, const char* verb, const char* path) {
  kiln_status_code_t code = file_posix_code_of(error);
  if (code == KILN_STATUS_OUT_OF_MEMORY) return kilni_base_status_bare(code);
  char text[ERROR_TEXT_BYTES];
  kilni_base_error_text(error, sizeof(text), text);
  kiln_status_t status =
      kilni_base_status_make(code, KILNI_MODULE, __FILE__, __LINE__,
                             "\"%s\" cannot be %s: %s", path, verb, text);
  status = kilni_base_status_with_native(status, "errno", error, text);
  return kilni_base_status_with_fix(status, "%s", fix_of(error));
}

static int open_retry(const char* path, int flags, mode_t mode) {
  int fd;
  do {
    fd = open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

static kiln_status_t over_limit(const char* path, size_t limit) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" is larger than the limit of %zu bytes",
                 path, limit),
      "check that it is the file you meant");
}

// What is read so far.
typedef struct reading_t {
  kiln_allocator_t allocator;
  const char* path;
  size_t limit;
  int fd;
  void* data;
  size_t capacity;
  size_t size;
} reading_t;

// Reads to the end, whatever size the system claims: pipes and /proc claim 0,
// and of what they claim /sys has less.
static kiln_status_t file_posix_read_all(reading_t* reading, size_t claimed) {
  size_t wanted = (claimed > 0 ? claimed : FIRST_READ_BYTES) + 1;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_unset(reading->allocator, wanted, &reading->data));
  reading->capacity = wanted;
  for (;;) {
    if (reading->size + 1 >= reading->capacity) {
      KILNI_RETURN_IF_ERROR(kilni_base_grow(
          reading->allocator, wanted, 1, &reading->capacity, &reading->data));
    }
    // One byte stays free for the NUL.
    size_t space = reading->capacity - reading->size - 1;
    ssize_t got =
        read(reading->fd, (char*)reading->data + reading->size, space);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(errno, "read", reading->path);
    if (got == 0) return kiln_ok();
    reading->size += (size_t)got;
    if (reading->size == claimed) return kiln_ok();
    if (reading->size > reading->limit) {
      return over_limit(reading->path, reading->limit);
    }
    wanted = reading->size + FIRST_READ_BYTES;
  }
}

// The caller knows the size only, so the block becomes exactly that.
static kiln_status_t read_finish(reading_t* reading) {
  size_t exact = reading->size + 1;
  if (exact == reading->capacity) {
    ((char*)reading->data)[reading->size] = 0;
    return kiln_ok();
  }
  kiln_allocator_t allocator = reading->allocator;
  void* data = allocator.fn(reading->data, reading->capacity, exact,
                            KILNI_ALLOC_ALIGN, allocator.user);
  if (data == NULL) return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  reading->data = data;
  reading->capacity = exact;
  ((char*)data)[reading->size] = 0;
  return kiln_ok();
}

static kiln_status_t file_posix_read_open(reading_t* reading) {
  struct stat info;
  if (fstat(reading->fd, &info) != 0) {
    return file_error(errno, "read", reading->path);
  }
  if (S_ISDIR(info.st_mode)) return file_error(EISDIR, "read", reading->path);
  size_t claimed = 0;
  if (S_ISREG(info.st_mode)) {
    if ((uint64_t)info.st_size > reading->limit ||
        (uint64_t)info.st_size > SIZE_MAX / 2) {
      return over_limit(reading->path, reading->limit);
    }
    claimed = (size_t)info.st_size;
  }
  KILNI_RETURN_IF_ERROR(file_posix_read_all(reading, claimed));
  return read_finish(reading);
}

kiln_status_t kilni_base_file_read(kiln_allocator_t allocator, const char* path,
                                   size_t limit, uint8_t** out_data,
                                   size_t* out_size) {
  *out_data = NULL;
  *out_size = 0;
  reading_t reading = {.allocator = allocator, .path = path, .limit = limit};
  reading.fd = open_retry(path, O_RDONLY, 0);
  if (reading.fd < 0) return file_error(errno, "opened", path);
  kiln_status_t status = file_posix_read_open(&reading);
  close(reading.fd);
  if (kiln_status_is_ok(status)) {
    *out_data = reading.data;
    *out_size = reading.size;
  } else {
    kilni_base_free(allocator, reading.data, reading.capacity);
  }
  return status;
}

void kilni_base_file_free(kiln_allocator_t allocator, uint8_t* data,
                          size_t size) {
  kilni_base_free(allocator, data, size + 1);
}

static int file_posix_write_all(int fd, const void* data, size_t size) {
  const char* from = data;
  while (size > 0) {
    ssize_t written = write(fd, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    from += written;
    size -= (size_t)written;
  }
  return 0;
}

// A device or pipe (/dev/stdout) has no "beside it" and cannot be replaced.
static kiln_status_t file_posix_write_through(const char* path,
                                              const void* data, size_t size) {
  int fd = open_retry(path, O_WRONLY, 0);
  if (fd < 0) return file_error(errno, "opened", path);
  int error = file_posix_write_all(fd, data, size);
  if (close(fd) != 0 && error == 0) error = errno;
  return error ? file_error(error, "written", path) : kiln_ok();
}

// Opens a new file in the folder of `path`; `*out_temp` is its path. The name
// does not depend on `path`, whose own may already be as long as names can be.
static kiln_status_t open_temp(kiln_allocator_t allocator, const char* path,
                               char** out_temp, int* out_fd) {
  *out_temp = NULL;
  *out_fd = -1;
  const char* slash = strrchr(path, '/');
  size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
  for (int i = 0; i < TEMP_NAME_TRIES; i++) {
    kilni_base_str_t name;
    kilni_base_str_init(&name, allocator, SIZE_MAX - 1);
    kilni_base_str_add(&name, kilni_base_sv_make(path, folder));
    kilni_base_str_addf(&name, ".kiln-%llu-%llx.tmp",
                        (unsigned long long)kilni_base_process_id(),
                        (unsigned long long)kilni_base_time_ns());
    KILNI_RETURN_IF_ERROR(kilni_base_str_take(&name, out_temp));
    *out_fd = open_retry(*out_temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (*out_fd >= 0) return kiln_ok();
    int error = errno;
    kilni_base_strfree(allocator, *out_temp);
    *out_temp = NULL;
    if (error != EEXIST) return file_error(error, "created", path);
  }
  return file_error(EEXIST, "created", path);
}

static int write_and_sync(int fd, const void* data, size_t size) {
  int error = file_posix_write_all(fd, data, size);
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

static kiln_status_t replace(kiln_allocator_t allocator, const char* path,
                             const struct stat* old, const void* data,
                             size_t size) {
  char* temp;
  int fd;
  KILNI_RETURN_IF_ERROR(open_temp(allocator, path, &temp, &fd));
  // A file that is replaced keeps its mode; if that is refused, the new
  // file's own is as good.
  if (old != NULL && fchmod(fd, old->st_mode & 0777) != 0) errno = 0;
  int error = write_and_sync(fd, data, size);
  if (error == 0 && rename(temp, path) != 0) error = errno;
  if (error != 0) unlink(temp);
  kilni_base_strfree(allocator, temp);
  return error ? file_error(error, "written", path) : kiln_ok();
}

kiln_status_t kilni_base_file_write(kiln_allocator_t allocator,
                                    const char* path, const void* data,
                                    size_t size) {
  struct stat info;
  bool exists = stat(path, &info) == 0;
  if (!exists) return replace(allocator, path, NULL, data, size);
  if (S_ISDIR(info.st_mode)) return file_error(EISDIR, "written", path);
  if (!S_ISREG(info.st_mode)) return file_posix_write_through(path, data, size);
  // Through a link: what it points to is replaced, not the link.
  char* target;
  KILNI_RETURN_IF_ERROR(kilni_base_path_real(allocator, path, &target));
  kiln_status_t status = replace(allocator, target, &info, data, size);
  kilni_base_strfree(allocator, target);
  return status;
}

void kilni_base_file_look_fill(const struct stat* info,
                               kilni_base_file_look_t* out_look) {
  out_look->kind = S_ISREG(info->st_mode)   ? KILNI_FILE_REGULAR
                   : S_ISDIR(info->st_mode) ? KILNI_FILE_DIR
                                            : KILNI_FILE_OTHER;
  out_look->error = 0;
  out_look->mode = (uint32_t)(info->st_mode & 07777);
  out_look->owner = (uint32_t)info->st_uid;
  out_look->device = (uint64_t)info->st_dev;
  out_look->inode = (uint64_t)info->st_ino;
  out_look->size = (uint64_t)info->st_size;
  out_look->modified_ns =
      (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
  out_look->links = (uint64_t)info->st_nlink;
}

kilni_base_file_look_t kilni_base_file_look(const char* path) {
  kilni_base_file_look_t look;
  memset(&look, 0, sizeof(look));
  struct stat info;
  if (stat(path, &info) != 0) {
    look.error = errno;
    bool absent = errno == ENOENT || errno == ENOTDIR;
    look.kind = absent ? KILNI_FILE_NONE : KILNI_FILE_ERROR;
    return look;
  }
  kilni_base_file_look_fill(&info, &look);
  return look;
}

bool kilni_base_file_can_execute(const char* path) {
  return access(path, X_OK) == 0;
}

uint32_t kilni_base_file_user(void) {
  return (uint32_t)geteuid();
}

bool kilni_base_link_read(const char* path, size_t capacity, char* out_target) {
  out_target[0] = 0;
  ssize_t size = readlink(path, out_target, capacity);
  if (size <= 0 || (size_t)size >= capacity) {
    out_target[0] = 0;
    return false;
  }
  out_target[size] = 0;
  return true;
}

bool kilni_base_link_is(const char* path) {
  char target[1];
  return readlink(path, target, sizeof(target)) > 0;
}

int kilni_base_dir_scan(const char* path, kilni_base_dir_fn_t fn, void* user) {
  DIR* folder = opendir(path);
  if (folder == NULL) return errno;
  int error = 0;
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(folder);
    if (entry == NULL) {
      error = errno;
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    if (!fn(entry->d_name, user)) break;
  }
  closedir(folder);
  return error;
}

bool kilni_base_file_exists(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

bool kilni_base_dir_exists(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// The names of a folder's entries.
typedef struct names_t {
  char** items;
  size_t count;
  size_t capacity;
} names_t;

static int file_posix_compare_names(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static kiln_status_t names_add(kiln_allocator_t allocator, names_t* names,
                               const char* name) {
  void* items = names->items;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      allocator, names->count + 1, sizeof(char*), &names->capacity, &items));
  names->items = items;
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(allocator, kilni_base_sv(name),
                                          &names->items[names->count]));
  names->count++;
  return kiln_ok();
}

static void names_deinit(kiln_allocator_t allocator, names_t* names) {
  for (size_t i = 0; i < names->count; i++) {
    kilni_base_strfree(allocator, names->items[i]);
  }
  kilni_base_free_array(allocator, names->items, names->capacity,
                        sizeof(char*));
}

static kiln_status_t names_read(kiln_allocator_t allocator, DIR* folder,
                                const char* path, names_t* names) {
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(folder);
    if (entry == NULL) {
      return errno ? file_error(errno, "listed", path) : kiln_ok();
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    if (names->count == DIR_MAX_ENTRIES) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" has more than %d entries", path,
                     (int)DIR_MAX_ENTRIES),
          "name another folder, or take files out of this one");
    }
    KILNI_RETURN_IF_ERROR(names_add(allocator, names, entry->d_name));
  }
}

kiln_status_t kilni_base_dir_each(kiln_allocator_t allocator, const char* path,
                                  kilni_base_dir_fn_t fn, void* user) {
  DIR* folder = opendir(path);
  if (folder == NULL) return file_error(errno, "listed", path);
  names_t names = {NULL, 0, 0};
  kiln_status_t status = names_read(allocator, folder, path, &names);
  closedir(folder);
  if (kiln_status_is_ok(status) && names.count > 0) {
    qsort(names.items, names.count, sizeof(char*), file_posix_compare_names);
    for (size_t i = 0; i < names.count; i++) {
      if (!fn(names.items[i], user)) break;
    }
  }
  names_deinit(allocator, &names);
  return status;
}

kiln_status_t kilni_base_dir_visit(const char* path, kilni_base_dir_fn_t fn,
                                   void* user) {
  const int error = kilni_base_dir_scan(path, fn, user);
  return error ? file_error(error, "listed", path) : kiln_ok();
}

kiln_status_t kilni_base_path_real(kiln_allocator_t allocator, const char* path,
                                   char** out_path) {
  *out_path = NULL;
  void* buffer;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, PATH_MAX, &buffer));
  kiln_status_t status;
  if (realpath(path, buffer) == NULL) {
    status = file_error(errno, "resolved", path);
  } else {
    status = kilni_base_strdup(allocator, kilni_base_sv(buffer), out_path);
  }
  kilni_base_free(allocator, buffer, PATH_MAX);
  return status;
}

// ---- Windows ----

// Without waiting: a pipe of that name may never have a writer.
static int file_posix_open_window(const char* path,
                                  kilni_base_window_t* out_window) {
  kilni_base_window_t window = {path, -1, 0, {NULL, 0}};
  *out_window = window;
  return open_retry(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

// Takes the handle over, also on failure.
static kiln_status_t start_window(const char* path, int handle,
                                  kilni_base_window_t* window) {
  struct stat info;
  kiln_status_t status = kiln_ok();
  if (fstat(handle, &info) != 0) {
    status = file_error(errno, "read", path);
  } else if (!S_ISREG(info.st_mode)) {
    status = kilni_base_status_with_fix(
        KILNI_FAIL(BAD_DATA, "\"%s\" is not a regular file", path),
        "name a file, not a folder, a pipe or a device");
  }
  if (!kiln_status_is_ok(status)) {
    close(handle);
    return status;
  }
  window->handle = handle;
  window->size = (uint64_t)info.st_size;
  return kiln_ok();
}

kiln_status_t kilni_base_window_open(const char* path,
                                     kilni_base_window_t* out_window) {
  int handle = file_posix_open_window(path, out_window);
  if (handle < 0) return file_error(errno, "opened", path);
  return start_window(path, handle, out_window);
}

kiln_status_t kilni_base_window_open_if(const char* path,
                                        kilni_base_window_t* out_window,
                                        bool* out_there) {
  *out_there = false;
  int handle = file_posix_open_window(path, out_window);
  if (handle < 0) {
    bool absent = errno == ENOENT || errno == ENOTDIR;
    return absent ? kiln_ok() : file_error(errno, "opened", path);
  }
  KILNI_RETURN_IF_ERROR(start_window(path, handle, out_window));
  *out_there = true;
  return kiln_ok();
}

void kilni_base_window_of_bytes(kiln_bytes_view_t bytes, const char* name,
                                kilni_base_window_t* out_window) {
  kilni_base_window_t window = {name, -1, bytes.size, bytes};
  *out_window = window;
}

void kilni_base_window_close(kilni_base_window_t* window) {
  if (window->handle >= 0) close(window->handle);
  window->handle = -1;
}

kiln_status_t kilni_base_window_read_some(const kilni_base_window_t* window,
                                          uint64_t offset, size_t size,
                                          void* out, size_t* out_size) {
  *out_size = 0;
  if (offset >= window->size) return kiln_ok();
  if (window->handle < 0) {
    uint64_t rest = window->size - offset;
    *out_size = rest < size ? (size_t)rest : size;
    memcpy(out, window->bytes.data + offset, *out_size);
    return kiln_ok();
  }
  // The size is known from opening it and needs no query.
  if (size > window->size - offset) size = (size_t)(window->size - offset);
  while (*out_size < size) {
    ssize_t got = pread(window->handle, (char*)out + *out_size,
                        size - *out_size, (off_t)(offset + *out_size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(errno, "read", window->name);
    if (got == 0) return kiln_ok();
    *out_size += (size_t)got;
  }
  return kiln_ok();
}

kiln_status_t kilni_base_window_read(const kilni_base_window_t* window,
                                     uint64_t offset, size_t size, void* out) {
  size_t got;
  KILNI_RETURN_IF_ERROR(
      kilni_base_window_read_some(window, offset, size, out, &got));
  if (got == size) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "\"%s\" ends at or before byte %llu, where more is expected",
                 window->name, (unsigned long long)(offset + size)),
      "install the package that the file belongs to again");
}
