// SPDX-License-Identifier: Apache-2.0
//
// locate: test support: this library and a dlopen in one object, asked for one
// name. Prints both answers, a line each; "-" for none.
#define _GNU_SOURCE  // dlinfo
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "kiln/locate.h"

__attribute__((visibility("default"))) int loader_module_ask(void);

static int ask_kiln(void) {
  kiln_locate_options_t options = kiln_locate_options_default();
  options.require_scopes = KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_LOADER);
  options.loaded = KILN_SWITCH_OFF;
  kiln_locate_t* locate = NULL;
  kiln_locate_item_t* item = NULL;
  kiln_status_t status = kiln_locate_create(&options, &locate);
  if (kiln_status_is_ok(status)) {
    status = kiln_locate_find(locate, KILN_LOCATE_KIND_LIB, "cufile", &item);
  }
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "%s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_locate_release(locate);
    return 1;
  }
  printf("%s\n",
         kiln_locate_item_found(item) ? kiln_locate_item_path(item) : "-");
  kiln_locate_item_release(item);
  kiln_locate_release(locate);
  return 0;
}

int loader_module_ask(void) {
  if (ask_kiln() != 0) return 1;
  void* handle = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_LOCAL);
  struct link_map* map = NULL;
  if (handle != NULL) (void)dlinfo(handle, RTLD_DI_LINKMAP, &map);
  printf("%s\n", map != NULL ? map->l_name : "-");
  return 0;
}
