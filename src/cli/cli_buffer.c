// SPDX-License-Identifier: Apache-2.0
//
// cli: bytes that the command owns.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/allocator.h"

#define ALIGNMENT    16
#define READ_AT_ONCE ((size_t)1 << 20)

void kilni_cli_buffer_deinit(kilni_cli_buffer_t* buffer) {
  if (buffer->data != NULL) {
    kiln_allocator_t a = kiln_allocator_libc();
    (void)a.fn(buffer->data, buffer->capacity, 0, ALIGNMENT, a.user);
  }
  memset(buffer, 0, sizeof(*buffer));
}

static bool buffer_reserve(kilni_cli_buffer_t* buffer, size_t size,
                           kilni_cli_error_t* error) {
  if (size < buffer->capacity) return true;
  size_t wanted = buffer->capacity + buffer->capacity / 2;
  if (wanted < size + 1) wanted = size + 1;
  if (size >= SIZE_MAX / 2) wanted = 0;
  kiln_allocator_t a = kiln_allocator_libc();
  void* data = wanted == 0 ? NULL
                           : a.fn(buffer->data, buffer->capacity, wanted,
                                  ALIGNMENT, a.user);
  if (data == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY,
                          "give smaller data, or more memory",
                          "no memory for %zu bytes", size);
  }
  buffer->data = data;
  buffer->capacity = wanted;
  return true;
}

bool kilni_cli_buffer_resize(kilni_cli_buffer_t* buffer, size_t size,
                             kilni_cli_error_t* error) {
  if (!buffer_reserve(buffer, size, error)) return false;
  if (size > buffer->size) {
    memset(buffer->data + buffer->size, 0, size - buffer->size);
  }
  buffer->size = size;
  buffer->data[size] = 0;
  return true;
}

bool kilni_cli_buffer_add(kilni_cli_buffer_t* buffer, const void* data,
                          size_t size, kilni_cli_error_t* error) {
  if (size > SIZE_MAX / 2 - buffer->size) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for so many bytes");
  }
  if (!buffer_reserve(buffer, buffer->size + size, error)) return false;
  if (size != 0) memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
  buffer->data[buffer->size] = 0;
  return true;
}

static bool buffer_fail_open(const char* path, int number,
                             kilni_cli_error_t* error) {
  if (number == ENOENT || number == ENOTDIR) {
    return kilni_cli_fail(error, KILN_STATUS_NOT_FOUND,
                          "check the spelling of the path",
                          "there is no file \"%s\"", path);
  }
  if (number == EACCES || number == EPERM) {
    return kilni_cli_fail(error, KILN_STATUS_PERMISSION_DENIED,
                          "give yourself permission to read it",
                          "the file \"%s\" may not be read", path);
  }
  bool is_folder = number == EISDIR;
  return kilni_cli_fail(
      error, is_folder ? KILN_STATUS_INVALID_ARGUMENT : KILN_STATUS_IO_ERROR,
      is_folder ? "name a file: this is a folder"
                : "check the file and its disk",
      "the file \"%s\" could not be read: %s", path, strerror(number));
}

static bool buffer_read_all(int fd, kilni_cli_buffer_t* buffer,
                            const char* path, size_t limit,
                            kilni_cli_error_t* error) {
  struct stat st;
  size_t start = buffer->size;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
      (uint64_t)st.st_size <= limit &&
      !buffer_reserve(buffer, start + (size_t)st.st_size, error)) {
    return false;
  }
  for (;;) {
    size_t space = buffer->capacity - buffer->size;
    if (space < 2) {
      if (!buffer_reserve(buffer, buffer->size + READ_AT_ONCE, error)) {
        return false;
      }
      space = buffer->capacity - buffer->size;
    }
    ssize_t got = read(fd, buffer->data + buffer->size, space - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return buffer_fail_open(path, errno, error);
    if (got == 0) break;
    buffer->size += (size_t)got;
    if (buffer->size - start > limit) {
      return kilni_cli_fail(
          error, KILN_STATUS_LIMIT_EXCEEDED, "give a smaller file",
          "the file \"%s\" is longer than %zu bytes", path, limit);
    }
  }
  buffer->data[buffer->size] = 0;
  return true;
}

bool kilni_cli_buffer_read(kilni_cli_buffer_t* buffer, const char* path,
                           size_t limit, kilni_cli_error_t* error) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return buffer_fail_open(path, errno, error);
  bool ok = buffer_reserve(buffer, buffer->size + 1, error) &&
            buffer_read_all(fd, buffer, path, limit, error);
  (void)close(fd);
  return ok;
}

bool kilni_cli_buffer_read_some(kilni_cli_buffer_t* buffer, const char* path,
                                size_t limit, kilni_cli_error_t* error) {
  size_t before = buffer->size;
  if (!kilni_cli_buffer_read(buffer, path, limit, error)) return false;
  return buffer->size != before ||
         kilni_cli_fail(
             error, KILN_STATUS_BAD_DATA,
             "check what should have written it, or name another file",
             "the file \"%s\" is empty", path);
}
