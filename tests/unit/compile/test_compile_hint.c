// SPDX-License-Identifier: Apache-2.0
//
// compile: tests of what to do about a source that NVRTC refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "compile/compile_hint.h"

static char g_message[KILNI_HINT_BYTES];
static char g_fix[KILNI_HINT_BYTES];

static bool hint(const char* error, const char* source, bool has_headers) {
  kilni_compile_refusal_t refusal = {
      .error = kilni_base_sv(error),
      .source = kilni_base_sv(source),
      .name = "t.cu",
      .line = 13000,
      .has_cccl = has_headers,
      .has_toolkit = has_headers,
      .folders = {"/cuda/include", ""},
  };
  return kilni_compile_hint(&refusal, g_message, g_fix);
}

static bool hint_header(const char* header, bool has_headers) {
  char error[256];
  (void)snprintf(error, sizeof(error),
                 "t.cu(1): catastrophic error: cannot open source file \"%s\"",
                 header);
  return hint(error, "", has_headers);
}

static void assert_fix(const char* part) {
  if (strstr(g_fix, part) == NULL) fail_msg("%s: %s", part, g_fix);
  assert_string_equal(g_message, "");
}

static void standard_headers_are_not_there(void** state) {
  (void)state;
  static const struct {
    const char* header;
    const char* fix;
  } CASES[] = {
      {"cstdio", "which other compilers need: NVRTC has no standard headers"},
      {"cstdio", "put `#ifndef __CUDACC_RTC__` and `#endif` around the line"},
      {"stdio.h", "printf needs none"},
      {"cassert", "assert needs none"},
      {"assert.h", "assert needs none"},
      {"cmath", "mathematical functions need none"},
      {"string.h", "memcpy and memset need none"},
      {"cstdint", "write <cuda/std/cstdint> in its place"},
      {"stdint.h", "write <cuda/std/cstdint> in its place"},
      {"type_traits", "write <cuda/std/type_traits> in its place"},
      {"vector", "around the line and what uses it"},
      {"iostream", "__CUDACC_RTC__"},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    assert_true(hint_header(CASES[i].header, i % 2 == 0));
    assert_fix(CASES[i].fix);
  }
}

// By the wheel that has them, of the compiler's CUDA.
static void headers_of_the_toolkit_come_in_wheels(void** state) {
  (void)state;
  static const struct {
    const char* header;
    const char* wheel;
  } CASES[] = {
      {"cub/block/block_reduce.cuh", "\"nvidia-cuda-cccl==13.0.*\""},
      {"nv/target", "\"nvidia-cuda-cccl==13.0.*\""},
      {"cuda/std/cstdint", "\"nvidia-cuda-cccl==13.0.*\""},
      {"thrust/sort.h", "\"nvidia-cuda-cccl==13.0.*\""},
      {"cuda_fp16.h", "\"nvidia-cuda-runtime==13.0.*\""},
      {"cooperative_groups.h", "\"nvidia-cuda-runtime==13.0.*\""},
      {"mma.h", "\"nvidia-cuda-runtime==13.0.*\""},
      {"crt/host_defines.h", "\"nvidia-cuda-crt==13.0.*\""},
      {"curand_kernel.h", "\"nvidia-curand\""},
      {"cublas_v2.h", "\"nvidia-cublas\""},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    assert_true(hint_header(CASES[i].header, false));
    assert_fix(CASES[i].wheel);
    assert_fix("python3 -m pip install");
    assert_fix("python3 -m venv cuda");
    assert_fix("--include");
  }
  // In NVRTC's other words, where it has no folder to look into.
  kilni_compile_refusal_t older = {
      .error =
          kilni_base_sv("t.cu(1): catastrophic error: could not open source "
                        "file \"nv/target\" (no directories in search list)"),
      .name = "t.cu",
      .line = 12090,
  };
  assert_true(kilni_compile_hint(&older, g_message, g_fix));
  assert_fix("\"nvidia-cuda-cccl-cu12==12.9.*\"");
}

static void what_is_not_in_the_headers_that_are_there(void** state) {
  (void)state;
  assert_true(hint_header("cub/nothing.cuh", true));
  assert_fix("CUDA 13.0 have no <cub/nothing.cuh>");
  assert_true(hint_header("cuda_fp99.h", true));
  assert_fix("correct the name");
  assert_true(hint_header("mylib.h", true));
  assert_fix("name its folder (--include, `include_dirs`)");
  // One of the toolkit that is for a host.
  assert_true(
      hint("/cuda/include/cublas_api.h(68): catastrophic error: cannot "
           "open source file \"stdint.h\"",
           "", true));
  assert_fix("leads to \"/cuda/include/cublas_api.h\"");
}

static void whole_programs_are_seen(void** state) {
  (void)state;
  static const char ERROR[] =
      "t.cu(1): catastrophic error: cannot open source file \"cstdio\"";
  static const char* const WHOLE[] = {
      "int main() { k<<<1, 1>>>(0); }",
      "#include <cstdio>\nint\nmain (int argc, char** argv)\n{}",
      "void f();\nauto main() -> int {}",
  };
  for (size_t i = 0; i < sizeof(WHOLE) / sizeof(WHOLE[0]); i++) {
    assert_true(hint(ERROR, WHOLE[i], true));
    assert_non_null(strstr(g_message, "\"t.cu\" is a whole program"));
    assert_non_null(strstr(g_fix, "__CUDACC_RTC__"));
    bool says = strstr(g_message, "<<<>>>") != NULL;
    assert_int_equal(says, i == 0);
  }
  static const char* const NONE[] = {
      "// int main() {}\n__global__ void k() {}",
      "/* int main() */ /*/ int main( /*/",
      "const char* t = \"int main() \\\" int main()\";",
      "__device__ int domain(int x); int main_loop(int x); int main = 3;",
      "__device__ void f() { main(3); }",
      "#ifndef __CUDACC_RTC__\nint main() {}\n#endif",
      "/* int main() {}",
      "\"int main() {}",
      "//",
      "int main",
  };
  for (size_t i = 0; i < sizeof(NONE) / sizeof(NONE[0]); i++) {
    assert_true(hint(ERROR, NONE[i], true));
    if (g_message[0] != 0) fail_msg("%s: %s", NONE[i], g_message);
    assert_fix("around the line");
  }
}

static void other_errors(void** state) {
  (void)state;
  static const struct {
    const char* error;
    const char* fix;
  } CASES[] = {
      {"__nv_name_map(2): error: identifier \"tk\" is undefined",
       "ns::scale<float>"},
      {"t.cu(1): error: namespace \"std\" has no member \"min\"",
       "cuda::std::"},
      {"t.cu(1): error: A function without execution space annotations (...)",
       "-default-device"},
      {"/cuda/include/cccl/thrust/sort.h(124): error: A function without "
       "execution space annotations",
       "in place of <cub/cub.cuh> and of Thrust"},
      {"t.cu(2): error: device-side kernel launch could not be processed",
       "dynamic parallelism"},
      {"ptxas error   : Entry function 'k' uses too much shared data (0x10000 "
       "bytes, 0xc000 max)",
       "extern __shared__"},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    assert_true(hint(CASES[i].error, "", true));
    assert_fix(CASES[i].fix);
  }
  static const char* const NONE[] = {
      "t.cu(2): error: identifier \"nothing\" is undefined", "",
      "cannot open source file \"", "cannot open source file \"\""};
  for (size_t i = 0; i < sizeof(NONE) / sizeof(NONE[0]); i++) {
    assert_false(hint(NONE[i], "", true));
    assert_string_equal(g_fix, "");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(standard_headers_are_not_there),
      cmocka_unit_test(headers_of_the_toolkit_come_in_wheels),
      cmocka_unit_test(what_is_not_in_the_headers_that_are_there),
      cmocka_unit_test(whole_programs_are_seen),
      cmocka_unit_test(other_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
