// SPDX-License-Identifier: Apache-2.0
//
// cli: output files, all of them whole or none of them.
#define _XOPEN_SOURCE 700
#include "cli/cli_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail_write(const char* path, int number, kilni_cli_error_t* error) {
  const char* fix = "check the folder and its disk";
  kiln_status_code_t code = KILN_STATUS_IO_ERROR;
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) {
    fix = "make space, or write to another disk";
  }
  if (number == EISDIR) {
    code = KILN_STATUS_INVALID_ARGUMENT;
    fix = "name a file: this is a folder";
  }
  if (number == ENOENT) {
    code = KILN_STATUS_NOT_FOUND;
    fix = "make the folder first";
  }
  if (number == ENOTDIR) {
    code = KILN_STATUS_NOT_FOUND;
    fix = "name a file in a folder: a part of the path is a file";
  }
  if (number == EACCES || number == EPERM || number == EROFS) {
    code = KILN_STATUS_PERMISSION_DENIED;
    fix = "write to a folder of your own";
  }
  return kilni_cli_fail(error, code, fix,
                        "the file \"%s\" could not be written: %s", path,
                        strerror(number));
}

bool kilni_cli_output_folder(const char* path,
                             char out_folder[KILNI_CLI_PATH_BYTES]) {
  size_t size = strlen(path);
  if (size == 0 || size >= KILNI_CLI_PATH_BYTES - 64) return false;
  memcpy(out_folder, path, size + 1);
  char* slash = strrchr(out_folder, '/');
  if (slash == NULL) {
    memcpy(out_folder, ".", 2);
  } else {
    slash[slash == out_folder ? 1 : 0] = 0;
  }
  return true;
}

// The target of the link `path`, relative to the folder of the link.
static bool output_follow(char path[KILNI_CLI_PATH_BYTES]) {
  char text[KILNI_CLI_PATH_BYTES];
  ssize_t size = readlink(path, text, sizeof(text) - 1);
  if (size < 0) return false;
  text[size] = 0;
  char* slash = strrchr(path, '/');
  size_t folder =
      text[0] == '/' || slash == NULL ? 0 : (size_t)(slash - path) + 1;
  if (folder + (size_t)size >= KILNI_CLI_PATH_BYTES - 64) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(path + folder, text, (size_t)size + 1);
  return true;
}

bool kilni_cli_output_target(const char* path,
                             char out_target[KILNI_CLI_PATH_BYTES]) {
  if (realpath(path, out_target) != NULL) return true;
  if (errno != ENOENT) return false;
  if (strlen(path) >= KILNI_CLI_PATH_BYTES - 64) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(out_target, path, strlen(path) + 1);
  // realpath has checked that there is no cycle.
  struct stat st;
  while (lstat(out_target, &st) == 0 && S_ISLNK(st.st_mode)) {
    if (!output_follow(out_target)) return false;
  }
  return true;
}

bool kilni_cli_output_check(const char* path, kilni_cli_error_t* error) {
  char folder[KILNI_CLI_PATH_BYTES], target[KILNI_CLI_PATH_BYTES];
  struct stat st;
  if (path[0] == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "name the file to write",
                          "an output file has an empty name: \"\"");
  }
  // Other programs take this for standard output; here it would be a file.
  if (strcmp(path, "-") == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write /dev/stdout, or ./- for a file of that name",
                          "\"-\" does not mean standard output");
  }
  if (stat(path, &st) == 0) {
    if (S_ISDIR(st.st_mode)) return fail_write(path, EISDIR, error);
    if (!S_ISREG(st.st_mode)) {
      return access(path, W_OK) == 0 || fail_write(path, errno, error);
    }
  }
  // A link to a file that does not exist yet is written through.
  if (!kilni_cli_output_target(path, target)) {
    return fail_write(path, errno, error);
  }
  if (!kilni_cli_output_folder(target, folder)) {
    return fail_write(path, ENAMETOOLONG, error);
  }
  if (stat(folder, &st) != 0) return fail_write(path, errno, error);
  if (!S_ISDIR(st.st_mode)) return fail_write(path, ENOTDIR, error);
  if (access(folder, W_OK | X_OK) != 0) return fail_write(path, errno, error);
  return true;
}

static int write_bytes(int fd, const kilni_cli_buffer_t* content) {
  size_t at = 0;
  while (at < content->size) {
    ssize_t put = write(fd, content->data + at, content->size - at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    at += (size_t)put;
  }
  return 0;
}

// The mode of a new file, or that of the file that it replaces.
static mode_t wanted_mode(const char* target) {
  struct stat st;
  if (stat(target, &st) == 0) return st.st_mode & 0777;
  mode_t mask = umask(0);
  (void)umask(mask);
  return 0666 & ~mask;
}

// Sets target (links followed) and a temporary name in the same folder.
static bool name_files(kilni_cli_output_t* o, kilni_cli_error_t* error) {
  char real[KILNI_CLI_PATH_BYTES];
  char name[KILNI_CLI_PATH_BYTES + 32];
  if (!kilni_cli_output_target(o->path, real)) {
    return fail_write(o->path, errno, error);
  }
  int n = snprintf(name, sizeof(name), "%s.kiln-XXXXXX", real);
  size_t size = strlen(real) + 1;
  if (!kilni_cli_buffer_add(&o->names, real, size, error) ||
      !kilni_cli_buffer_add(&o->names, name, (size_t)n + 1, error)) {
    return false;
  }
  o->target = (char*)o->names.data;
  return true;
}

// No fsync, as in compilers: after a power failure the old or the new file
// exists, if the file system writes data before renames.
static bool write_temporary(kilni_cli_output_t* o, kilni_cli_error_t* error) {
  if (!name_files(o, error)) return false;
  char* name = o->target + strlen(o->target) + 1;
  kilni_cli_leave_hold();
  int fd = mkstemp(name);
  int number = errno;
  if (fd >= 0) kilni_cli_leave_add(&o->leaving, name);
  kilni_cli_leave_let();
  if (fd < 0) return fail_write(o->path, number, error);
  o->temporary = name;
  number = write_bytes(fd, &o->content);
  if (number == 0 && fchmod(fd, wanted_mode(o->target)) != 0) number = errno;
  if (close(fd) != 0 && number == 0) number = errno;
  return number == 0 || fail_write(o->path, number, error);
}

static bool output_write_through(kilni_cli_output_t* o,
                                 kilni_cli_error_t* error) {
  int fd = open(o->path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail_write(o->path, errno, error);
  int number = write_bytes(fd, &o->content);
  if (close(fd) != 0 && number == 0) number = errno;
  return number == 0 || fail_write(o->path, number, error);
}

static bool output_is_special(const char* path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static void forget_temporary(kilni_cli_output_t* o) {
  kilni_cli_leave_forget(&o->leaving);
  o->temporary = NULL;
}

static bool rename_all(kilni_cli_output_t* outputs, size_t count,
                       kilni_cli_error_t* error) {
  for (size_t i = 0; i < count; i++) {
    if (outputs[i].temporary == NULL) continue;
    if (rename(outputs[i].temporary, outputs[i].target) != 0) {
      return fail_write(outputs[i].path, errno, error);
    }
    forget_temporary(&outputs[i]);
  }
  return true;
}

bool kilni_cli_outputs_write(kilni_cli_output_t* outputs, size_t count,
                             kilni_cli_error_t* error) {
  bool ok = true;
  for (size_t i = 0; ok && i < count; i++) {
    if (!output_is_special(outputs[i].path)) {
      ok = write_temporary(&outputs[i], error);
    }
  }
  for (size_t i = 0; ok && i < count; i++) {
    if (outputs[i].temporary == NULL) {
      ok = output_write_through(&outputs[i], error);
    }
  }
  // The renames are one step: signals wait.
  kilni_cli_leave_hold();
  ok = ok && rename_all(outputs, count, error);
  for (size_t i = 0; i < count; i++) {
    if (outputs[i].temporary == NULL) continue;
    (void)unlink(outputs[i].temporary);
    forget_temporary(&outputs[i]);
  }
  kilni_cli_leave_let();
  return ok;
}

void kilni_cli_outputs_deinit(kilni_cli_output_t* outputs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    kilni_cli_buffer_deinit(&outputs[i].content);
    kilni_cli_buffer_deinit(&outputs[i].names);
    outputs[i].temporary = outputs[i].target = NULL;
  }
}
