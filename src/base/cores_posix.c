// SPDX-License-Identifier: Apache-2.0
//
// base: how many cores this process may use: those that it may run on, and no
// more than its control groups give it time for. And how much memory it can
// get: what the machine has left, and no more than its control groups leave.
//
// Control groups are where /proc lists them, of both kinds: version 2 keeps
// "quota period" in cpu.max, version 1 each in a file. A limit applies to all
// groups below it, so every folder from the process's own up to the mount is
// read and the tightest limit counts. What cannot be read limits nothing.
#define _GNU_SOURCE  // sched_getaffinity
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 8192, CHUNK_BYTES = 4096 };

// Called with a line; true where the rest of the file is of no interest.
typedef bool (*line_fn_t)(char* line, void* user);

// A file as it is read: the line that has begun. one-thread
typedef struct lines_t {
  line_fn_t fn;
  void* user;
  size_t used;
  bool whole;  // no longer than LINE_BYTES
  char line[LINE_BYTES];
} lines_t;

// True once `fn` has what it wants.
static bool lines_take(lines_t* lines, const char* text, size_t size) {
  const char* end = text + size;
  while (text != end) {
    const char* stop = memchr(text, '\n', (size_t)(end - text));
    size_t count = (size_t)((stop != NULL ? stop : end) - text);
    lines->whole = lines->whole && lines->used + count < sizeof(lines->line);
    if (lines->whole) {
      memcpy(lines->line + lines->used, text, count);
      lines->used += count;
    }
    if (stop == NULL) return false;
    lines->line[lines->used] = 0;
    if (lines->whole && lines->fn(lines->line, lines->user)) return true;
    lines->used = 0;
    lines->whole = true;
    text = stop + 1;
  }
  return false;
}

// Calls `fn` with each line of a file, without its end, until it says that this
// is enough; a line that is longer than LINE_BYTES is passed over.
static void each_line(const char* path, line_fn_t fn, void* user) {
  char chunk[CHUNK_BYTES];
  lines_t lines;
  lines.fn = fn;
  lines.user = user;
  lines.used = 0;
  lines.whole = true;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  bool done = false;
  while (!done) {
    ssize_t got = read(file, chunk, sizeof(chunk));
    if (got <= 0) break;
    done = lines_take(&lines, chunk, (size_t)got);
  }
  // A last line without an end.
  if (!done && lines.used != 0) (void)lines_take(&lines, "\n", 1);
  close(file);
}

// Whether `word` is one of the names in a list with commas.
static bool lists(const char* list, const char* word) {
  size_t size = strlen(word);
  for (const char* at = list; at; at = strchr(at, ',')) {
    if (*at == ',') at++;
    if (strncmp(at, word, size) == 0 && (at[size] == ',' || at[size] == 0)) {
      return true;
    }
  }
  return false;
}

// A hierarchy of groups: this process's place in it, and where it is mounted.
// one-thread
typedef struct groups_t {
  char path[PATH_BYTES];   // in the hierarchy; empty: not in one
  char root[PATH_BYTES];   // what of it is mounted
  char mount[PATH_BYTES];  // where; empty: not mounted
} groups_t;

// one-thread
typedef struct search_t {
  const char* controller;
  groups_t groups[2];  // version 1, version 2
} search_t;

static void copy_path(char to[PATH_BYTES], const char* from) {
  if (strlen(from) < PATH_BYTES) memcpy(to, from, strlen(from) + 1);
}

// "number:controllers:path" of /proc/self/cgroup.
static bool take_path(char* line, void* user) {
  search_t* search = user;
  char* controllers = strchr(line, ':');
  char* path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path) return false;
  *path++ = 0;
  controllers++;
  if (*controllers == 0) {
    copy_path(search->groups[1].path, path);
  } else if (lists(controllers, search->controller)) {
    copy_path(search->groups[0].path, path);
  }
  return false;
}

// The kernel writes blanks in a path as \040, in octal.
static void unescape(char* text) {
  char* to = text;
  for (char* from = text; *from; from++) {
    if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] &&
        from[3]) {
      *to++ =
          (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');
      from += 3;
    } else {
      *to++ = *from;
    }
  }
  *to = 0;
}

// "id parent device root mount options ... - kind source options".
static bool take_mount(char* line, void* user) {
  search_t* search = user;
  char* words[6] = {NULL};
  char* save = NULL;
  int count = 0;
  char* dash = strstr(line, " - ");
  // Most mounts are of other kinds.
  if (!dash || strncmp(dash + 3, "cgroup", 6) != 0) return false;
  *dash = 0;
  for (char* w = strtok_r(line, " ", &save); w && count < 6;
       w = strtok_r(NULL, " ", &save)) {
    words[count++] = w;
  }
  char* kind = strtok_r(dash + 3, " ", &save);
  char* source = kind ? strtok_r(NULL, " ", &save) : NULL;
  char* options = source ? strtok_r(NULL, " ", &save) : NULL;
  if (count < 6 || !options) return false;
  groups_t* groups = NULL;
  if (strcmp(kind, "cgroup2") == 0) groups = &search->groups[1];
  if (strcmp(kind, "cgroup") == 0 && lists(options, search->controller)) {
    groups = &search->groups[0];
  }
  if (!groups || groups->mount[0]) return false;
  unescape(words[3]);
  unescape(words[4]);
  copy_path(groups->root, words[3]);
  copy_path(groups->mount, words[4]);
  return false;
}

// The first line that is not empty.
static bool take_line(char* line, void* user) {
  snprintf(user, 64, "%.63s", line);
  return line[0] != 0;
}

// What one folder's files allow; UINT64_MAX if they set no limit.
typedef uint64_t (*limit_fn_t)(const char* folder, bool is_second);

static uint64_t cores_of(const char* folder, bool is_second) {
  char path[PATH_BYTES];
  char text[2][64] = {"", ""};
  if (snprintf(path, sizeof(path), "%s/%s", folder,
               is_second ? "cpu.max" : "cpu.cfs_quota_us") >= PATH_BYTES) {
    return UINT64_MAX;
  }
  each_line(path, take_line, text[0]);
  if (!is_second && text[0][0] != '-') {  // -1: no limit
    if (snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder) >=
        PATH_BYTES) {
      return UINT64_MAX;
    }
    each_line(path, take_line, text[1]);
  }
  char* end;
  long long quota = strtoll(text[0], &end, 10);
  long long period = strtoll(is_second ? end : text[1], NULL, 10);
  if (end == text[0] || quota <= 0 || period <= 0) return UINT64_MAX;
  long long cores = quota / period + (quota % period != 0);
  return cores < UINT32_MAX ? (uint64_t)cores : UINT32_MAX;
}

// A number in a file of the folder; UINT64_MAX if there is none.
static uint64_t number_in(const char* folder, const char* name) {
  char path[PATH_BYTES];
  char text[64] = "";
  char* end;
  if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_BYTES) {
    return UINT64_MAX;
  }
  each_line(path, take_line, text);
  unsigned long long number = strtoull(text, &end, 10);
  return end == text || text[0] == '-' ? UINT64_MAX : (uint64_t)number;
}

// A row "name number" or "name: number kB" that is looked for. one-thread
typedef struct row_t {
  const char* name;
  uint64_t value;  // UINT64_MAX: not found
} row_t;

static bool take_row(char* line, void* user) {
  row_t* row = user;
  size_t size = strlen(row->name);
  if (strncmp(line, row->name, size) != 0) return false;
  char* end;
  unsigned long long number = strtoull(line + size, &end, 10);
  if (end == line + size) return false;
  row->value = strstr(end, "kB") ? number << 10 : number;
  return true;
}

static uint64_t row_in(const char* folder, const char* file, const char* name) {
  char path[PATH_BYTES];
  row_t row = {name, UINT64_MAX};
  if (snprintf(path, sizeof(path), "%s/%s", folder, file) < PATH_BYTES) {
    each_line(path, take_row, &row);
  }
  return row.value;
}

// What a group may still take: its limit without what it uses, of which files
// that were not used for a while are given up first.
static uint64_t memory_of(const char* folder, bool is_second) {
  uint64_t limit =
      number_in(folder, is_second ? "memory.max" : "memory.limit_in_bytes");
  uint64_t used =
      number_in(folder, is_second ? "memory.current" : "memory.usage_in_bytes");
  uint64_t files =
      row_in(folder, "memory.stat",
             is_second ? "inactive_file " : "total_inactive_file ");
  if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
  if (files < used) used -= files;
  return used < limit ? limit - used : 0;
}

// The tightest limit from the process's own group up to the mount.
static uint64_t tightest(const groups_t* groups, const char* prefix,
                         bool is_second, limit_fn_t limit_of) {
  char folder[PATH_BYTES];
  uint64_t least = UINT64_MAX;
  if (!groups->path[0] || !groups->mount[0]) return least;
  size_t root = strlen(groups->root);
  if (root == 1) root = 0;
  const char* below = groups->path + root;
  if (below[0] == '/' && below[1] == 0) below++;  // the mount, asked once
  // A group outside of what is mounted shows only the mount itself.
  bool inside = strncmp(groups->path, groups->root, root) == 0 &&
                (*below == '/' || *below == 0) && !strstr(groups->path, "/..");
  int size = snprintf(folder, sizeof(folder), "%s%s", prefix, groups->mount);
  if (size < 0 || size >= PATH_BYTES) return least;
  int whole = snprintf(folder, sizeof(folder), "%s%s%s", prefix, groups->mount,
                       inside ? below : "");
  if (whole < 0 || whole >= PATH_BYTES) return least;
  for (;;) {
    uint64_t limit = limit_of(folder, is_second);
    if (limit < least) least = limit;
    char* slash = strrchr(folder, '/');
    if (!slash || slash < folder + size) return least;
    *slash = 0;
  }
}

// The tightest limit that a control group of either kind sets.
static uint64_t group_limit(const char* prefix, const char* controller,
                            limit_fn_t limit_of) {
  search_t search;  // its paths are begun, and not cleared
  search.controller = controller;
  for (int i = 0; i < 2; i++) {
    groups_t* groups = &search.groups[i];
    groups->path[0] = groups->root[0] = groups->mount[0] = 0;
  }
  char path[PATH_BYTES];
  uint64_t least = UINT64_MAX;
  if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", prefix) >=
      PATH_BYTES) {
    return least;
  }
  each_line(path, take_path, &search);
  snprintf(path, sizeof(path), "%s/proc/self/mountinfo", prefix);
  each_line(path, take_mount, &search);
  for (int i = 0; i < 2; i++) {
    uint64_t limit = tightest(&search.groups[i], prefix, i == 1, limit_of);
    if (limit < least) least = limit;
  }
  return least;
}

uint32_t kilni_base_core_quota(const char* prefix) {
  uint64_t cores = group_limit(prefix, "cpu", cores_of);
  return cores == UINT64_MAX ? 0 : (uint32_t)cores;
}

uint64_t kilni_base_memory_left(const char* prefix) {
  char folder[PATH_BYTES];
  uint64_t left = UINT64_MAX;
  if (snprintf(folder, sizeof(folder), "%s/proc", prefix) < PATH_BYTES) {
    left = row_in(folder, "meminfo", "MemAvailable:");
  }
  uint64_t limit = group_limit(prefix, "memory", memory_of);
  return limit < left ? limit : left;
}

static uint32_t cores_to_run_on(void) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    int count = CPU_COUNT(&cores);
    if (count > 0) return (uint32_t)count;
  }
  // More cores than fit a cpu_set_t.
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

uint32_t kilni_base_core_count(void) {
  uint32_t cores = cores_to_run_on();
  uint32_t quota = kilni_base_core_quota("");
  return quota && quota < cores ? quota : cores;
}
