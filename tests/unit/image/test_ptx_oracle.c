// SPDX-License-Identifier: Apache-2.0
//
// image: the PTX reader against NVIDIA's assembler, where it is installed.
//
// What ptxas refuses the reader refuses, for the classes of errors that it
// claims, and what ptxas takes the reader takes.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ptx_text.h"

enum { PATH_BYTES = 1024 };

static const char* const kTexts[] = {
#define ORACLE_BODY(text)   PTX_KERNEL(text),
#define ORACLE_MODULE(text) PTX_HEAD text "\n",
#include "ptx_oracle.inc"
#undef ORACLE_BODY
#undef ORACLE_MODULE
};

static bool try_path(const char* folder, const char* tail, char* out) {
  if (folder == NULL || folder[0] == '\0') return false;
  snprintf(out, PATH_BYTES, "%s/%sptxas", folder, tail);
  return access(out, X_OK) == 0;
}

static bool find_ptxas(char* out) {
  const char* path = getenv("PATH");
  char copy[8192];
  snprintf(copy, sizeof(copy), "%s", path != NULL ? path : "");
  char* rest = copy;
  for (char* part = strtok_r(copy, ":", &rest); part != NULL;
       part = strtok_r(NULL, ":", &rest)) {
    if (try_path(part, "", out)) return true;
  }
  return try_path(getenv("CUDA_PATH"), "bin/", out) ||
         try_path(getenv("CUDA_HOME"), "bin/", out) ||
         try_path("/usr/local/cuda", "bin/", out);
}

// 0 taken, 1 refused, -1 it could not be asked.
static int ask_ptxas(const char* ptxas, const char* in, const char* out) {
  pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == NULL ||
        freopen("/dev/null", "w", stderr) == NULL) {
      _exit(127);
    }
    execl(ptxas, "ptxas", "-arch=sm_90", in, "-o", out, (char*)NULL);
    _exit(127);
  }
  int code;
  if (child < 0 || waitpid(child, &code, 0) != child || !WIFEXITED(code) ||
      WEXITSTATUS(code) == 127) {
    return -1;
  }
  return WEXITSTATUS(code) == 0 ? 0 : 1;
}

static bool reader_takes(const char* text) {
  kilni_ptx_module_t* module;
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kiln_status_t status = kilni_ptx_module_create(
      bytes, "oracle", NULL, kiln_allocator_libc(), &module);
  bool taken = kiln_status_is_ok(status);
  kiln_status_free(status);
  kilni_ptx_module_release(module);
  return taken;
}

static void write_text(const char* path, const char* text) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static void judged_alike(void** state) {
  (void)state;
  char ptxas[PATH_BYTES];
  if (!find_ptxas(ptxas)) {
    print_message("skip: no ptxas in PATH, CUDA_PATH or /usr/local/cuda\n");
    skip();
  }
  char folder[] = "/tmp/kiln_oracle_XXXXXX";
  assert_non_null(mkdtemp(folder));
  char in[PATH_BYTES];
  char out[PATH_BYTES];
  snprintf(in, sizeof(in), "%s/in.ptx", folder);
  snprintf(out, sizeof(out), "%s/out.cubin", folder);
  size_t taken = 0;
  size_t wrong = 0;
  size_t count = sizeof(kTexts) / sizeof(kTexts[0]);
  for (size_t i = 0; i < count; i++) {
    write_text(in, kTexts[i]);
    int answer = ask_ptxas(ptxas, in, out);
    assert_int_not_equal(answer, -1);
    bool mine = reader_takes(kTexts[i]);
    taken += answer == 0;
    if (mine == (answer == 0)) continue;
    wrong++;
    print_message("ptxas %s, the reader %s:\n%s\n",
                  answer == 0 ? "takes" : "refuses", mine ? "takes" : "refuses",
                  kTexts[i]);
  }
  unlink(in);
  unlink(out);
  rmdir(folder);
  print_message("%zu texts, %zu taken by ptxas, %zu judged otherwise\n", count,
                taken, wrong);
  assert_int_equal(wrong, 0);
  // The table has both kinds.
  assert_true(taken > 50 && taken < count - 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(judged_alike)};
  char ptxas[PATH_BYTES];
  if (!find_ptxas(ptxas)) {
    print_message("skip: no ptxas in PATH, CUDA_PATH or /usr/local/cuda\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
