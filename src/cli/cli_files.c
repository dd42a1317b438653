// SPDX-License-Identifier: Apache-2.0
//
// cli: which files a command reads and writes, so that no output replaces an
// input.
#define _XOPEN_SOURCE 700
#include "cli/cli_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli_output.h"

enum { WHAT_BYTES = 96 };

// One file. thread-compatible
typedef struct file_t {
  const char* path;
  char what[WHAT_BYTES];
  bool is_written;
  bool is_known;   // the next fields identify the file
  bool is_stream;  // a terminal or another device of characters
  dev_t device;    // of the file, or of the folder that it will be in
  ino_t inode;
  char name[NAME_MAX + 1];  // "" of a file that exists
} file_t;

// A file that does not exist yet is identified by its name and its folder.
static void files_identify(file_t* file) {
  struct stat st;
  char target[KILNI_CLI_PATH_BYTES], folder[KILNI_CLI_PATH_BYTES];
  if (stat(file->path, &st) == 0) {
    file->is_known = true;
    file->is_stream = S_ISCHR(st.st_mode);
  } else {
    if (!kilni_cli_output_target(file->path, target) ||
        !kilni_cli_output_folder(target, folder) || stat(folder, &st) != 0) {
      return;
    }
    const char* slash = strrchr(target, '/');
    const char* name = slash == NULL ? target : slash + 1;
    if (strlen(name) > NAME_MAX) return;
    memcpy(file->name, name, strlen(name) + 1);
    file->is_known = true;
  }
  file->device = st.st_dev;
  file->inode = st.st_ino;
}

static bool files_is_same(const file_t* a, const file_t* b) {
  if (!a->is_known || !b->is_known) return strcmp(a->path, b->path) == 0;
  return a->device == b->device && a->inode == b->inode &&
         strcmp(a->name, b->name) == 0;
}

// Each with the other's name if they differ.
static bool fail_outputs(const file_t* a, const file_t* b,
                         kilni_cli_error_t* error) {
  const char* fix = "write each output to a separate file";
  if (strcmp(a->path, b->path) == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, fix,
                          "two outputs go to the file \"%s\": %s and %s",
                          a->path, a->what, b->what);
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, fix,
                        "two outputs go to the file \"%s\": %s and, as \"%s\", "
                        "%s",
                        a->path, a->what, b->path, b->what);
}

static bool fail_input(const file_t* in, const file_t* out,
                       kilni_cli_error_t* error) {
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write the output to another file",
                        "the output file \"%s\" (%s) is the same file as the "
                        "input \"%s\" (%s)",
                        out->path, out->what, in->path, in->what);
}

static bool files_check(const file_t* a, const file_t* b,
                        kilni_cli_error_t* error) {
  if (!a->is_written && !b->is_written) return true;
  if (!files_is_same(a, b)) return true;
  if (a->is_written && b->is_written) return fail_outputs(a, b, error);
  // Reading from and writing to the same terminal is harmless.
  if (a->is_stream) return true;
  return a->is_written ? fail_input(b, a, error) : fail_input(a, b, error);
}

static bool files_check_all(const kilni_cli_files_t* files, const file_t* file,
                            kilni_cli_error_t* error) {
  const file_t* list = (const file_t*)(const void*)files->list.data;
  for (size_t i = 0; i < files->list.size / sizeof(*file); i++) {
    if (!files_check(&list[i], file, error)) return false;
  }
  return true;
}

static void name(file_t* file, const char* path, const char* what) {
  memset(file, 0, sizeof(*file));
  file->path = path;
  (void)snprintf(file->what, sizeof(file->what), "%s", what);
  files_identify(file);
}

static bool files_add(kilni_cli_files_t* files, const char* path,
                      const char* what, bool is_written,
                      kilni_cli_error_t* error) {
  file_t file;
  name(&file, path, what);
  file.is_written = is_written;
  return files_check_all(files, &file, error) &&
         kilni_cli_buffer_add(&files->list, &file, sizeof(file), error);
}

bool kilni_cli_files_check_input(const kilni_cli_files_t* files,
                                 const char* path, const char* what,
                                 kilni_cli_error_t* error) {
  file_t file;
  name(&file, path, what);
  return files_check_all(files, &file, error);
}

bool kilni_cli_files_add_input(kilni_cli_files_t* files, const char* path,
                               const char* what, kilni_cli_error_t* error) {
  return files_add(files, path, what, false, error);
}

bool kilni_cli_files_add_output(kilni_cli_files_t* files, const char* path,
                                const char* what, kilni_cli_error_t* error) {
  return files_add(files, path, what, true, error);
}

bool kilni_cli_files_replaces(const kilni_cli_files_t* files) {
  const file_t* list = (const file_t*)(const void*)files->list.data;
  for (size_t i = 0; i < files->list.size / sizeof(file_t); i++) {
    if (list[i].is_written && list[i].is_known && !list[i].is_stream &&
        list[i].name[0] == 0) {
      return true;
    }
  }
  return false;
}

void kilni_cli_files_deinit(kilni_cli_files_t* files) {
  kilni_cli_buffer_deinit(&files->list);
}

bool kilni_cli_name_ends(const char* path, const char* end) {
  size_t a = strlen(path), b = strlen(end);
  if (a <= b) return false;
  for (size_t i = 0; i < b; i++) {
    char c = path[a - b + i];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    if (c != end[i]) return false;
  }
  return true;
}
