// SPDX-License-Identifier: Apache-2.0
//
// locate: test support: a program that was linked with the module, or opens the
// one that its argument names.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#if defined(LOADER_LINKED)
int loader_module_ask(void);
#endif

int main(int argc, char** argv) {
#if defined(LOADER_LINKED)
  (void)argc;
  (void)argv;
  return loader_module_ask();
#else
  void* module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void* symbol = module != NULL ? dlsym(module, "loader_module_ask") : NULL;
  if (symbol == NULL) {
    const char* why = dlerror();
    fprintf(stderr, "%s\n", why != NULL ? why : "no module");
    return 1;
  }
  int (*ask)(void);
  memcpy(&ask, &symbol, sizeof(ask));
  return ask();
#endif
}
