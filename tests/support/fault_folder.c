// SPDX-License-Identifier: Apache-2.0
//
// support: calls on files as points that can fail (fault_run.h).
#include "fault_folder.h"

#include <errno.h>
#include <string.h>

// Whether this call is to fail.
static bool hit(fault_folder_t* files) {
  if (!files->armed) return false;
  files->met++;
  if (files->nth == 0) return false;
  // What is interrupted every time is tried for ever: only once, then.
  bool from_on = files->from_on && files->error != EINTR;
  return from_on ? files->met >= files->nth : files->met == files->nth;
}

static int failure(const fault_folder_t* files) {
  return files->error == FAULT_FOLDER_HALF ? -EIO : -files->error;
}

static bool fails(fault_folder_t* files) {
  return hit(files) && files->error != FAULT_FOLDER_HALF;
}

static int opened(fault_folder_t* files, int handle) {
  if (handle < 0) return handle;
  if (handle >= FAULT_FOLDER_HANDLES) {
    files->wrong = "more handles than can be watched";
  } else {
    files->open[handle] = true;
  }
  return handle;
}

static int f_open_folder(void* user, const char* path) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return opened(files, files->system.open_folder(NULL, path));
}

static int f_make_folder(void* user, const char* path) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.make_folder(NULL, path);
}

static int f_open(void* user, int folder, const char* name, uint32_t how) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return opened(files, files->system.open(NULL, folder, name, how));
}

static int f_close(void* user, int handle) {
  fault_folder_t* files = user;
  if (handle < 0 || handle >= FAULT_FOLDER_HANDLES || !files->open[handle]) {
    files->wrong = "a handle was closed that was not open";
    return -EBADF;
  }
  files->open[handle] = false;
  int code = files->system.close(NULL, handle);
  return fails(files) ? failure(files) : code;
}

static size_t amount(fault_folder_t* files, size_t size, bool* out_fails) {
  *out_fails = false;
  if (!hit(files)) return size;
  *out_fails = files->error != FAULT_FOLDER_HALF;
  return size > 1 ? size / 2 : size;
}

static int64_t f_read(void* user, int file, uint64_t offset, size_t size,
                      void* out) {
  fault_folder_t* files = user;
  bool failed;
  size = amount(files, size, &failed);
  if (failed) return failure(files);
  return files->system.read(NULL, file, offset, size, out);
}

static int64_t f_write(void* user, int file, uint64_t offset, size_t size,
                       const void* data) {
  fault_folder_t* files = user;
  bool failed;
  size = amount(files, size, &failed);
  if (failed) return failure(files);
  return files->system.write(NULL, file, offset, size, data);
}

static int f_look(void* user, int handle, kilni_base_file_look_t* out_look) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.look(NULL, handle, out_look);
}

static int f_look_at(void* user, int folder, const char* name,
                     kilni_base_file_look_t* out_look) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.look_at(NULL, folder, name, out_look);
}

static int f_link(void* user, int file, int folder, const char* name) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.link(NULL, file, folder, name);
}

static int f_rename(void* user, int folder, const char* from, const char* to) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.rename(NULL, folder, from, to);
}

static int f_remove(void* user, int folder, const char* name) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.remove(NULL, folder, name);
}

static int f_touch(void* user, int file) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.touch(NULL, file);
}

static int f_touch_at(void* user, int folder, const char* name) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.touch_at(NULL, folder, name);
}

static int f_lock(void* user, int file, uint64_t offset, uint32_t what) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.lock(NULL, file, offset, what);
}

static int f_list(void* user, int folder, kilni_base_dir_fn_t fn,
                  void* fn_user) {
  fault_folder_t* files = user;
  if (fails(files)) return failure(files);
  return files->system.list(NULL, folder, fn, fn_user);
}

void fault_folder_init(fault_folder_t* files, int error) {
  memset(files, 0, sizeof(*files));
  files->system = kilni_base_folder_calls_system();
  files->error = error;
  kilni_base_folder_calls_t calls = {
      f_open_folder, f_make_folder, f_open, f_close,  f_read,   f_write,
      f_look,        f_look_at,     f_link, f_rename, f_remove, f_touch,
      f_touch_at,    f_lock,        f_list, files};
  files->calls = calls;
}

// ---- Points ----

static void arm(void* user, uint64_t nth, bool from_on) {
  fault_folder_t* files = user;
  files->nth = nth;
  files->from_on = from_on;
  files->met = 0;
  files->wrong = NULL;
  files->armed = true;
}

static uint64_t disarm(void* user) {
  fault_folder_t* files = user;
  files->armed = false;
  return files->met;
}

static const char* problem(void* user) {
  fault_folder_t* files = user;
  if (files->wrong != NULL) return files->wrong;
  for (int i = 0; i < FAULT_FOLDER_HANDLES; i++) {
    if (files->open[i]) return "a file was never closed";
  }
  return NULL;
}

fault_points_t fault_folder_points(fault_folder_t* files) {
  fault_points_t points = {"call on a file", arm, disarm, problem, files};
  return points;
}
