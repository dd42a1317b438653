// SPDX-License-Identifier: Apache-2.0
//
// base: questions about paths that cost one walk along them, not many.
#define _GNU_SOURCE  // O_PATH, syscall
#include "base/path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// As in <linux/openat2.h>, which older systems do not have.
typedef struct open_how_t {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
} open_how_t;

enum { NO_LINKS = 4 };

bool kilni_base_path_has_no_link(const char* path) {
#if defined(SYS_openat2)
  const open_how_t how = {O_PATH | O_CLOEXEC, 0, NO_LINKS};
  long handle = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
  if (handle < 0) return false;
  close((int)handle);
  return true;
#else
  (void)path;
  return false;
#endif
}

uint32_t kilni_base_path_files_in(const char* folder, const char* const* names,
                                  uint32_t count) {
  uint32_t there = 0;
  int handle = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return 0;
  for (uint32_t i = 0; i < count && i < KILNI_PATH_MAX_NAMES; i++) {
    struct stat info;
    if (fstatat(handle, names[i], &info, 0) == 0 && !S_ISDIR(info.st_mode)) {
      there |= UINT32_C(1) << i;
    }
  }
  close(handle);
  return there;
}
