// SPDX-License-Identifier: Apache-2.0
//
// tests: links of inputs that compilers of two majors of CUDA made.
//
// A kernel of one and the function that it calls of the other. LTO-IR of two
// lines is recorded in data/; KILN_TEST_NVRTC (tests only) names compilers,
// with colons between them, that make more of it, and relocatable machine code
// and PTX. KILN_TEST_NVJITLINK names the linkers, else it is the machine's own;
// each has a process of its own, and without one the test is skipped. Whatever
// links must be right: LTO-IR becomes PTX that runs on the software device, and
// a cubin has the kernel. Where nvJitLink is as new as both inputs it must
// link; what is said before must hold.
//
//   linking_majors           the test
//   linking_majors FOLDER    records the LTO-IR of each compiler in there
#define _POSIX_C_SOURCE 200809L  // fork, waitpid

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "linking_use.h"

enum { SKIP = 77, MAX_LIBRARIES = 16, MAX_MAKERS = 20, MAX_BYTES = 1 << 16 };
enum { MAIN, CALLED, PARTS };
enum { LTOIR, RELOCATABLE, PTX, FORMS };

static const char* const kParts[PARTS] = {"main", "called"};
static const char* const kSources[PARTS] = {
    "extern __device__ int twice(int x);\n"
    "extern \"C\" __global__ void k(int* p) { p[threadIdx.x] = "
    "twice(threadIdx.x) + 40; }\n",
    "__device__ int twice(int x) { return 2 * x; }\n"};
static const uint32_t kForms[FORMS] = {
    KILN_CODE_FORMAT_LTOIR, KILN_CODE_FORMAT_RELOCATABLE, KILN_CODE_FORMAT_PTX};

// Who made code, and of which form it has both parts. one-thread
typedef struct maker_t {
  uint32_t line;
  bool is_recorded;
  kiln_code_t* code[FORMS][PARTS];
} maker_t;

// one-thread
typedef struct majors_t {
  kiln_runtime_t* runtime;
  kiln_linker_t* linker;
  uint32_t line;  // of the linker
  maker_t makers[MAX_MAKERS];
  size_t maker_count;
  uint32_t links;
  uint32_t wrong;
} majors_t;

static void wrong(majors_t* majors, const char* what) {
  printf("  WRONG: %s\n", what);
  majors->wrong++;
}

// ---- Makers ----

static void data_path(const char* folder, uint32_t line, const char* part,
                      char* out, size_t space) {
  (void)snprintf(out, space, "%s/major_%u_%u_%s.ltoir", folder, line / 1000,
                 line % 1000 / 10, part);
}

static kiln_code_t* read_recorded(uint32_t line, const char* part) {
  static unsigned char bytes[MAX_BYTES];
  char path[512];
  kiln_code_t* code = NULL;
  data_path(KILN_SOURCE_DIR "/tests/linking/data", line, part, path,
            sizeof(path));
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  size_t size = fread(bytes, 1, sizeof(bytes), file);
  (void)fclose(file);
  if (!linking_ok(
          kiln_code_create((kiln_bytes_view_t){bytes, size}, NULL, &code),
          path)) {
    return NULL;
  }
  return code;
}

static void add_recorded(majors_t* majors) {
  static const uint32_t kLines[] = {12090, 13000};
  for (size_t i = 0; i < sizeof(kLines) / sizeof(kLines[0]); i++) {
    maker_t* maker = &majors->makers[majors->maker_count++];
    maker->line = kLines[i];
    maker->is_recorded = true;
    for (size_t part = 0; part < PARTS; part++) {
      maker->code[LTOIR][part] = read_recorded(kLines[i], kParts[part]);
      kiln_link_input_fact_t fact = {0};
      if (maker->code[LTOIR][part] == NULL) {
        wrong(majors, "recorded LTO-IR is not there");
        continue;
      }
      kiln_link_input_fact_of(maker->code[LTOIR][part], &fact);
      if (fact.line != kLines[i]) wrong(majors, "its line is not known");
    }
  }
}

static kiln_code_t* compile(kiln_compiler_t* compiler, const char* source,
                            uint32_t form) {
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_compile_result_t* result = NULL;
  kiln_code_t* code = NULL;
  options.output = form;
  options.arch = form == KILN_CODE_FORMAT_RELOCATABLE ? "sm_80" : "compute_80";
  options.relocatable_device_code = KILN_SWITCH_ON;
  if (linking_ok(kiln_compiler_compile(
                     compiler, (kiln_string_view_t){source, strlen(source)},
                     &options, &result),
                 "compile")) {
    code = kiln_compile_result_code(result);
    kiln_code_retain(code);
  }
  kiln_compile_result_release(result);
  return code;
}

static void add_compiler(majors_t* majors, const char* library) {
  kiln_compiler_options_t options = kiln_compiler_options_default();
  kiln_compiler_t* compiler = NULL;
  options.library = library;
  if (!linking_ok(
          kiln_runtime_open_compiler(majors->runtime, &options, &compiler),
          library)) {
    wrong(majors, "a compiler that is named does not work");
    return;
  }
  maker_t* maker = &majors->makers[majors->maker_count++];
  maker->line = kiln_compiler_version(compiler);
  for (size_t form = 0; form < FORMS; form++) {
    for (size_t part = 0; part < PARTS; part++) {
      maker->code[form][part] = compile(compiler, kSources[part], kForms[form]);
      if (maker->code[form][part] == NULL) wrong(majors, "no code is made");
    }
  }
  kiln_compiler_release(compiler);
}

static void add_compilers(majors_t* majors) {
  static char copy[1 << 14];
  const char* libraries[MAX_LIBRARIES];
  if (getenv("KILN_TEST_NVRTC") == NULL) return;
  size_t count = linking_split("KILN_TEST_NVRTC", copy, sizeof(copy), libraries,
                               MAX_LIBRARIES);
  for (size_t i = 0; i < count; i++) add_compiler(majors, libraries[i]);
}

// ---- Links ----

static const char* use(const majors_t* majors, const kiln_code_t* linked) {
  if (kiln_code_format(linked) == KILN_CODE_FORMAT_PTX) {
    return linking_runs(majors->runtime, linked) ? "runs, equals" : NULL;
  }
  return linking_has_kernel(linked) ? "has its kernel" : NULL;
}

static void judge(majors_t* majors, uint32_t newest, uint32_t verdict,
                  const kiln_code_t* linked, const char* used) {
  if (linked != NULL && used == NULL) wrong(majors, "the result is of no use");
  if (linked == NULL && newest <= majors->line) {
    wrong(majors, "an nvJitLink that is as new as its inputs fails");
  }
  if (linked == NULL && verdict == KILN_COMPAT_VERDICT_COMPATIBLE) {
    wrong(majors, "a promised link fails");
  }
  if (linked != NULL && verdict == KILN_COMPAT_VERDICT_INCOMPATIBLE) {
    wrong(majors, "a refused link works");
  }
  majors->links++;
}

static void try_link(majors_t* majors, const maker_t* main_of,
                     const maker_t* called_of, size_t form, uint32_t output) {
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  kiln_link_choice_t* choice = NULL;
  kiln_code_t* linked = NULL;
  uint32_t verdict = KILN_COMPAT_VERDICT_UNKNOWN;
  options.arch = "sm_80";
  options.output = output;
  options.backend = KILN_LINK_BACKEND_NVJITLINK;
  if (!linking_ok(kiln_link_create(majors->linker, &options, &link), "link") ||
      !linking_ok(kiln_link_add(link, main_of->code[form][MAIN]), "add") ||
      !linking_ok(kiln_link_add(link, called_of->code[form][CALLED]), "add") ||
      !linking_ok(kiln_link_explain(link, &choice), "explain")) {
    wrong(majors, "no link begins");
  } else {
    verdict = kiln_link_choice_verdict(choice);
    linking_ok(kiln_link_finish(link, &linked), "  finish");
    const char* used = linked != NULL ? use(majors, linked) : NULL;
    printf("| %u.%u, %u.%u%s | %u.%u | %s | %s | %s | %s |\n",
           main_of->line / 1000, main_of->line % 1000 / 10,
           called_of->line / 1000, called_of->line % 1000 / 10,
           main_of->is_recorded && called_of->is_recorded ? " (recorded)" : "",
           majors->line / 1000, majors->line % 1000 / 10,
           kiln_code_format_name(kForms[form]), kiln_code_format_name(output),
           kiln_compat_verdict_word(verdict),
           linked == NULL ? "fails"
           : used != NULL ? used
                          : "of no use");
    uint32_t newest =
        main_of->line > called_of->line ? main_of->line : called_of->line;
    judge(majors, newest, verdict, linked, used);
  }
  kiln_code_release(linked);
  kiln_link_choice_release(choice);
  kiln_link_release(link);
}

static void try_makers(majors_t* majors, const maker_t* main_of,
                       const maker_t* called_of) {
  for (size_t form = 0; form < FORMS; form++) {
    if (main_of->code[form][MAIN] == NULL ||
        called_of->code[form][CALLED] == NULL) {
      continue;
    }
    try_link(majors, main_of, called_of, form, KILN_CODE_FORMAT_CUBIN);
    if (kForms[form] == KILN_CODE_FORMAT_LTOIR) {
      try_link(majors, main_of, called_of, form, KILN_CODE_FORMAT_PTX);
    }
  }
}

static void try_all(majors_t* majors) {
  for (size_t i = 0; i < majors->maker_count; i++) {
    for (size_t k = 0; k < majors->maker_count; k++) {
      const maker_t* one = &majors->makers[i];
      const maker_t* two = &majors->makers[k];
      if (one->line / 1000 != two->line / 1000) try_makers(majors, one, two);
    }
  }
}

// ---- Each linker ----

static bool open_linker(majors_t* majors, const char* library) {
  kiln_linker_options_t options = kiln_linker_options_default();
  kiln_compat_driver_t unknown = kiln_compat_driver_default();
  uint32_t count = 0;
  options.nvjitlink = library;
  options.driver = &unknown;
  return linking_ok(kiln_runtime_create(NULL, &majors->runtime), "runtime") &&
         linking_ok(kiln_runtime_open_linker(majors->runtime, &options,
                                             &majors->linker),
                    "linker") &&
         linking_ok(kiln_linker_nvjitlink_count(majors->linker, &count),
                    "count") &&
         count > 0 &&
         linking_ok(
             kiln_linker_nvjitlink(majors->linker, 0, &majors->line, NULL),
             "nvJitLink");
}

static void close_all(majors_t* majors) {
  for (size_t i = 0; i < majors->maker_count; i++) {
    for (size_t form = 0; form < FORMS; form++) {
      for (size_t part = 0; part < PARTS; part++) {
        kiln_code_release(majors->makers[i].code[form][part]);
      }
    }
  }
  kiln_linker_release(majors->linker);
  kiln_runtime_release(majors->runtime);
}

static int run_linker(const char* library) {
  static majors_t majors;
  int rc = SKIP;
  if (open_linker(&majors, library)) {
    add_recorded(&majors);
    add_compilers(&majors);
    try_all(&majors);
    printf("nvJitLink %u: %u links, %u wrong\n", (unsigned)majors.line,
           (unsigned)majors.links, (unsigned)majors.wrong);
    rc = majors.wrong == 0 && majors.links > 0 ? 0 : 1;
  }
  close_all(&majors);
  (void)fflush(stdout);
  return rc;
}

static int record(const char* folder) {
  static majors_t majors;
  if (linking_ok(kiln_runtime_create(NULL, &majors.runtime), "runtime")) {
    add_compilers(&majors);
  }
  for (size_t i = 0; i < majors.maker_count; i++) {
    for (size_t part = 0; part < PARTS; part++) {
      char path[512];
      const maker_t* maker = &majors.makers[i];
      if (maker->code[LTOIR][part] == NULL) continue;
      kiln_bytes_view_t bytes = kiln_code_bytes(maker->code[LTOIR][part]);
      data_path(folder, maker->line, kParts[part], path, sizeof(path));
      FILE* file = fopen(path, "wb");
      if (file == NULL) continue;
      (void)fwrite(bytes.data, 1, bytes.size, file);
      (void)fclose(file);
    }
  }
  close_all(&majors);
  return majors.wrong != 0;
}

int main(int argc, char** argv) {
  static char copy[1 << 14];
  const char* linkers[MAX_LIBRARIES];
  int rc = 0;
  if (argc > 1) return record(argv[1]);
  size_t count = linking_split("KILN_TEST_NVJITLINK", copy, sizeof(copy),
                               linkers, MAX_LIBRARIES);
  bool named = getenv("KILN_TEST_NVJITLINK") != NULL;
  for (size_t i = 0; i < count; i++) {
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(run_linker(linkers[i]));
    int state = 0;
    bool ended = child > 0 && waitpid(child, &state, 0) == child;
    if (ended && !named && WIFEXITED(state) && WEXITSTATUS(state) == SKIP) {
      printf("skipped: no nvJitLink\n");
      return SKIP;
    }
    if (ended && state == 0) continue;
    printf("FAILED: nvJitLink %zu (%d)\n", i, state);
    rc = 1;
  }
  return rc;
}
