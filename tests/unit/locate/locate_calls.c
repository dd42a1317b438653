// SPDX-License-Identifier: Apache-2.0
//
// locate: tests: a program that searches once, for check_calls.py to watch.
//
//   locate_calls nothing | one | all | twice
#include <string.h>

#include "kiln/locate.h"

static int find(kiln_locate_t* locate, uint32_t kind, const char* name) {
  kiln_locate_item_t* item = NULL;
  kiln_status_t status = kiln_locate_find(locate, kind, name, &item);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 1;
  }
  kiln_locate_item_release(item);
  return 0;
}

static int find_all(kiln_locate_t* locate) {
  int result = 0;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    result |= find(locate, kiln_locate_entry_kind(entry),
                   kiln_locate_entry_name(entry));
  }
  return result;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "nothing";
  if (strcmp(what, "nothing") == 0) return 0;
  kiln_locate_t* locate = NULL;
  kiln_status_t status = kiln_locate_create(NULL, &locate);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 1;
  }
  int result = 0;
  if (strcmp(what, "one") == 0) {
    result = find(locate, KILN_LOCATE_KIND_LIB, "nvrtc");
  } else {
    result = find_all(locate);
    if (strcmp(what, "twice") == 0) result |= find_all(locate);
  }
  kiln_locate_release(locate);
  return result;
}
