// SPDX-License-Identifier: Apache-2.0
//
// locate: who could have put a file where it is.
#include <string.h>

#include "locate/locate_inside.h"

enum { WRITABLE_BY_OTHERS = 022 };

static const char* why_not(const kilni_file_look_t* look, uint32_t user) {
  if (look->kind == KILNI_FILE_NONE || look->kind == KILNI_FILE_ERROR) {
    return "cannot be looked at";
  }
  if (look->owner != 0 && look->owner != user) {
    return "belongs to another user";
  }
  if ((look->mode & WRITABLE_BY_OTHERS) != 0) {
    return "can be written by others";
  }
  return NULL;
}

kiln_status_t kilni_trust_check(kiln_locate_t* locate, const char* path,
                                const char** out_why) {
  (void)locate;
  *out_why = NULL;
  uint32_t user = kilni_file_user();
  char text[KILNI_DISK_PATH_LIMIT];
  size_t size = strlen(path);
  if (size >= sizeof(text)) {
    *out_why = "its path is too long to be checked";
    return NULL;
  }
  memcpy(text, path, size + 1);
  // From the file up: whoever may write a folder may replace what is in it.
  bool is_file = true;
  for (;;) {
    kilni_file_look_t look = kilni_file_look(text[0] ? text : "/");
    const char* why = why_not(&look, user);
    if (why != NULL) {
      *out_why = is_file ? why
                 : look.owner != 0 && look.owner != user
                     ? "lies below a folder of another user"
                     : "lies below a folder that others can write";
      return NULL;
    }
    if (text[0] == 0) return NULL;
    *strrchr(text, '/') = 0;
    is_file = false;
  }
}
