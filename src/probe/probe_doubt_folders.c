// SPDX-License-Identifier: Apache-2.0
//
// probe: problems of folders: writable by all users, or unreadable; and of the
// driver's cache.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "probe/probe_sheet.h"

enum { PATH_BYTES = 4096, MAX_FOLDERS = 256, MODE_OTHERS_WRITE = 0002 };

// The folders that were judged. one-thread
typedef struct folders_t {
  uint64_t device[MAX_FOLDERS];
  uint64_t inode[MAX_FOLDERS];
  size_t count;
} folders_t;

static bool stop(const char* name, void* user) {
  (void)name;
  (void)user;
  return false;
}

static bool doubt_folders_is_new(folders_t* seen,
                                 const kilni_base_file_look_t* look) {
  for (size_t i = 0; i < seen->count; i++) {
    if (seen->inode[i] == look->inode && seen->device[i] == look->device) {
      return false;
    }
  }
  if (seen->count == MAX_FOLDERS) return false;
  seen->device[seen->count] = look->device;
  seen->inode[seen->count] = look->inode;
  seen->count++;
  return true;
}

static kiln_status_t doubt_folders_judge(kiln_probe_t* probe, folders_t* seen,
                                         const char* folder) {
  char fix[PATH_BYTES + 64];
  char word[PATH_BYTES];
  kilni_base_file_look_t look = kilni_base_file_look(folder);
  bool closed = look.kind == KILNI_FILE_ERROR && look.error == EACCES;
  if (look.kind == KILNI_FILE_DIR) {
    if (!doubt_folders_is_new(seen, &look)) return kiln_ok();
    closed = kilni_base_dir_scan(folder, stop, NULL) == EACCES;
  }
  if (closed) {
    snprintf(fix, sizeof(fix), "sudo chmod a+rx %s",
             kilni_probe_shell_word(folder, sizeof(word), word));
    return kilni_probe_add_problem(
        probe, "folder-unreadable", KILN_PROBE_SEVERITY_WARNING, fix,
        "the folder \"%s\" cannot be read, so its files are not found", folder);
  }
  if (look.kind != KILNI_FILE_DIR || (look.mode & MODE_OTHERS_WRITE) == 0) {
    return kiln_ok();
  }
  snprintf(fix, sizeof(fix), "sudo chmod o-w %s",
           kilni_probe_shell_word(folder, sizeof(word), word));
  return kilni_probe_add_problem(probe, "folder-world-writable",
                                 KILN_PROBE_SEVERITY_WARNING, fix,
                                 "every user of this machine can put a library "
                                 "into \"%s\", which is searched",
                                 folder);
}

static kiln_status_t judge_list(kiln_probe_t* probe, folders_t* seen,
                                kilni_base_env_id_t id) {
  kiln_string_view_t rest = kilni_base_sv(kilni_probe_variable_text(probe, id));
  kiln_string_view_t part;
  while (kilni_base_sv_split(&rest, ':', &part)) {
    char folder[PATH_BYTES];
    if (part.size == 0 || part.data[0] != '/' || part.size >= sizeof(folder)) {
      continue;
    }
    memcpy(folder, part.data, part.size);
    folder[part.size] = 0;
    KILNI_RETURN_IF_ERROR(doubt_folders_judge(probe, seen, folder));
  }
  return kiln_ok();
}

// A path that is not absolute is relative to the working directory of the
// program.
static kiln_status_t about_loader_path(kiln_probe_t* probe) {
  const char* text =
      kilni_probe_variable_text(probe, KILNI_ENV_LD_LIBRARY_PATH);
  if (text == NULL || text[0] == 0) return kiln_ok();
  kiln_string_view_t rest = kilni_base_sv(text);
  kiln_string_view_t part;
  bool relative = text[strlen(text) - 1] == ':';
  while (kilni_base_sv_split(&rest, ':', &part)) {
    relative = relative || part.size == 0 || part.data[0] != '/';
  }
  if (!relative) return kiln_ok();
  return kilni_probe_add_problem(
      probe, "loader-path-relative", KILN_PROBE_SEVERITY_NOTE,
      "export LD_LIBRARY_PATH with absolute paths only, and no colon at its "
      "ends",
      "LD_LIBRARY_PATH has an entry that is empty or relative: the system's "
      "loader then searches the working directory of the program");
}

static kiln_status_t judge_all(kiln_probe_t* probe) {
  folders_t seen;
  seen.count = 0;
  static const kilni_base_env_id_t lists[] = {
      KILNI_ENV_CUDA_PATH, KILNI_ENV_CUDA_HOME, KILNI_ENV_LD_LIBRARY_PATH};
  for (size_t i = 0; i < 3; i++) {
    KILNI_RETURN_IF_ERROR(judge_list(probe, &seen, lists[i]));
  }
  const kiln_probe_toolkit_t* toolkits = probe->toolkits.items;
  for (size_t i = 0; i < probe->toolkits.count; i++) {
    KILNI_RETURN_IF_ERROR(doubt_folders_judge(probe, &seen, toolkits[i].root));
  }
  const kiln_probe_copy_t* copies = probe->copies.items;
  char before[PATH_BYTES] = "";
  for (size_t i = 0; i < probe->copies.count; i++) {
    char folder[PATH_BYTES];
    const char* slash = strrchr(copies[i].real_path, '/');
    size_t length = slash ? (size_t)(slash - copies[i].real_path) : 0;
    if (length == 0 || length >= sizeof(folder)) continue;
    memcpy(folder, copies[i].real_path, length);
    folder[length] = 0;
    if (strcmp(folder, before) == 0) continue;
    memcpy(before, folder, length + 1);
    KILNI_RETURN_IF_ERROR(doubt_folders_judge(probe, &seen, folder));
  }
  return kiln_ok();
}

static kiln_status_t about_cache(kiln_probe_t* probe) {
  const kiln_probe_cache_t* cache = &probe->cache;
  if (cache->disabled != 0) {
    return kilni_probe_add_problem(
        probe, "jit-cache-off", KILN_PROBE_SEVERITY_NOTE,
        "unset CUDA_CACHE_DISABLE",
        "the driver keeps no compiled code (CUDA_CACHE_DISABLE), so every "
        "process compiles PTX again");
  }
  if (cache->path[0] == 0) return kiln_ok();
  if (cache->writable == 0) {
    return kilni_probe_add_problem(
        probe, "jit-cache-not-writable", KILN_PROBE_SEVERITY_WARNING,
        "set CUDA_CACHE_PATH to a folder of your own",
        "the driver's cache of compiled code, \"%s\", cannot be written, so "
        "every process compiles PTX again",
        cache->path);
  }
  // From here on each new entry throws out an old one.
  if (cache->bytes < cache->limit - cache->limit / 10) return kiln_ok();
  return kilni_probe_add_problem(
      probe, "jit-cache-full", KILN_PROBE_SEVERITY_NOTE,
      cache->limit < KILNI_PROBE_GREATEST_JIT_LIMIT
          ? "export CUDA_CACHE_MAXSIZE=4294967296, or remove the folder"
          : "remove the folder: it has its maximum size, and the driver "
            "creates it again",
      "the driver's cache of compiled code, \"%s\", is full: %llu of %llu "
      "bytes",
      cache->path, (unsigned long long)cache->bytes,
      (unsigned long long)cache->limit);
}

kiln_status_t kilni_probe_doubt_folders(kiln_probe_t* probe) {
  KILNI_RETURN_IF_ERROR(judge_all(probe));
  KILNI_RETURN_IF_ERROR(about_loader_path(probe));
  KILNI_RETURN_IF_ERROR(about_cache(probe));
  return kilni_probe_doubt_store(probe);
}
