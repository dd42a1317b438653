// SPDX-License-Identifier: Apache-2.0
//
// image: the PTX reader against NVIDIA's assembler, where it is installed.
//
// What ptxas refuses the reader refuses, for the classes of errors that it
// claims, and what ptxas takes the reader takes. The verdicts are recorded, so
// that the reader is held to them where there is no ptxas.
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

enum { PATH_BYTES = 1024, SAMPLE = 8 };

// A kernel with a register of most types and a variable in each space.
#define TYPED_HEAD                                                          \
  PTX_HEAD                                                                  \
  ".global .align 16 .b32 g[16]; .const .align 16 .b32 c[16]; "             \
  ".shared .align 16 .b32 s[16]; .global .texref tx; .func fn() { ret; }\n" \
  ".visible .entry k(.param .align 16 .b64 pp, .param .b32 pn, "            \
  ".param .align 16 .b8 pa[16])\n{\n"                                       \
  ".reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; "   \
  ".reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .f64 %fd<9>; .reg .u8 %uc<9>; " \
  ".reg .u16 %uh<9>; .reg .u32 %u<9>; .reg .u64 %ud<9>; .reg .s16 %sh<9>; " \
  ".reg .s32 %si<9>; .reg .s64 %sd<9>; .reg .f16 %hf<9>; "                  \
  ".reg .f16x2 %hx<9>; .reg .v2 .b32 %v2r<9>; .reg .v4 .f32 %v4f<9>; "      \
  ".local .align 16 .b32 l[16]; .param .align 16 .b32 cp; "                 \
  ".param .align 16 .b8 cpa[16];\n"

enum { REFUSED, TAKEN };

static const struct {
  int verdict;
  const char* text;
} kTexts[] = {
#define ORACLE_BODY(verdict, text)   {verdict, PTX_KERNEL(text)},
#define ORACLE_MODULE(verdict, text) {verdict, PTX_HEAD text "\n"},
#define ORACLE_TYPED(verdict, text)  {verdict, TYPED_HEAD text PTX_KERNEL_TAIL},
#include "ptx_oracle.inc"
#include "ptx_oracle_types.inc"
#undef ORACLE_BODY
#undef ORACLE_MODULE
#undef ORACLE_TYPED
};

enum { TEXTS = sizeof(kTexts) / sizeof(kTexts[0]) };

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
  kilni_image_ptx_module_t* module;
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kiln_status_t status = kilni_image_ptx_module_create(
      bytes, "oracle", NULL, kiln_allocator_libc(), &module);
  bool taken = kiln_status_is_ok(status);
  kiln_status_free(status);
  kilni_image_ptx_module_release(module);
  return taken;
}

static void write_text(const char* path, const char* text) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static void judged_as_recorded(void** state) {
  (void)state;
  size_t taken = 0;
  size_t wrong = 0;
  for (size_t i = 0; i < TEXTS; i++) {
    bool mine = reader_takes(kTexts[i].text);
    taken += mine;
    if (mine == (kTexts[i].verdict == TAKEN)) continue;
    wrong++;
    print_message("the reader %s:\n%s\n", mine ? "takes" : "refuses",
                  kTexts[i].text);
  }
  print_message("%d texts, %zu taken, %zu judged otherwise\n", TEXTS, taken,
                wrong);
  assert_int_equal(wrong, 0);
  // The table has both kinds.
  assert_true(taken > 300 && taken < TEXTS - 300);
}

static void recorded_as_ptxas_judges(void** state) {
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
  // A process for each: all of them where every fault point is taken too.
  size_t step = getenv("KILN_FAULT_ALL") ? 1 : SAMPLE;
  size_t wrong = 0;
  size_t asked = 0;
  for (size_t i = 0; i < TEXTS; i += step, asked++) {
    write_text(in, kTexts[i].text);
    int answer = ask_ptxas(ptxas, in, out);
    assert_int_not_equal(answer, -1);
    if ((answer == 0) == (kTexts[i].verdict == TAKEN)) continue;
    wrong++;
    print_message("ptxas %s:\n%s\n", answer == 0 ? "takes" : "refuses",
                  kTexts[i].text);
  }
  unlink(in);
  unlink(out);
  rmdir(folder);
  print_message("%zu of %d texts asked, %zu judged otherwise\n", asked, TEXTS,
                wrong);
  assert_int_equal(wrong, 0);
}

// `ptxas`: asks ptxas in place of the reader.
int main(int argc, char** argv) {
  const struct CMUnitTest of_the_reader[] = {
      cmocka_unit_test(judged_as_recorded),
  };
  const struct CMUnitTest of_ptxas[] = {
      cmocka_unit_test(recorded_as_ptxas_judges),
  };
  if (argc > 1 && strcmp(argv[1], "ptxas") == 0) {
    return cmocka_run_group_tests(of_ptxas, NULL, NULL);
  }
  return cmocka_run_group_tests(of_the_reader, NULL, NULL);
}
