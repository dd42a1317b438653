// SPDX-License-Identifier: Apache-2.0
//
// tests: links by real libraries, against what was said before linking.
//
// KILN_TEST_NVRTC and KILN_TEST_NVJITLINK (tests only) name real libraries,
// with colons between them; without them the machine's own are taken. Each
// NVRTC compiles to LTO-IR, PTX, relocatable and finished machine code; for
// each, each nvJitLink and each output, kiln_link_choose is asked first, with
// the driver unknown and with drivers of 12.9, 13.0 and 13.5; then the link is
// made. A cell that is promised must link, a refused one must fail, PTX must
// have the version that decided over it; what nobody promises is listed. What
// comes out is used: PTX runs on the software device, what is not finished is
// linked again, a cubin is read. Then the cases of one link. Each pair has a
// process of its own. Without libraries the test is skipped.
//
// Lines that begin with "| " are rows of the report that tools/linking makes.
#define _POSIX_C_SOURCE 200809L  // fork, waitpid

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compile/link_inside.h"
#include "compile/link_text.h"
#include "image/image.h"
#include "kiln/kiln.h"
#include "linking_use.h"
#include "table/nvjitlink_table.h"

enum { SKIP = 77, MAX_LIBRARIES = 16, MANY_LINKS = 40 };

static const char kSource[] =
    "__device__ int v = 3;\n"
    "__device__ int twice(int x) { return 2 * x; }\n"
    "extern \"C\" __global__ void k(int* p) { p[threadIdx.x] = "
    "twice(threadIdx.x) + 40; }\n";
static const char kMissing[] =
    "extern __device__ int Z();\n"
    "extern \"C\" __global__ void k(int* p) { *p = Z(); }\n";

// The two libraries of a pair. one-thread
typedef struct pair_t {
  kiln_runtime_t* runtime;
  kiln_compiler_t* nvrtc;
  kiln_linker_t* linker;
  kilni_compile_link_nvjitlink_t
      direct;  // the same nvJitLink, asked past the choice
  kilni_base_dynlib_t* library;
  kiln_host_t host;
  uint32_t from;
  uint32_t to;
  uint32_t links;
  uint32_t wrong;
} pair_t;

static void check(pair_t* pair, bool holds, const char* what) {
  if (holds) return;
  printf("  WRONG: %s\n", what);
  pair->wrong++;
}

// ---- Code ----

static kiln_code_t* compile(pair_t* pair, const char* source, uint32_t output) {
  kiln_compile_options_t options = kiln_compile_options_default();
  bool is_machine = output == KILN_CODE_FORMAT_CUBIN ||
                    output == KILN_CODE_FORMAT_RELOCATABLE;
  options.output = output;
  options.arch = is_machine ? "sm_80" : "compute_80";
  if (output == KILN_CODE_FORMAT_PTX) {
    options.relocatable_device_code = KILN_SWITCH_ON;
  }
  kiln_compile_result_t* result = NULL;
  kiln_code_t* code = NULL;
  if (linking_ok(kiln_compiler_compile(
                     pair->nvrtc, (kiln_string_view_t){source, strlen(source)},
                     &options, &result),
                 "compile")) {
    code = kiln_compile_result_code(result);
    kiln_code_retain(code);
  }
  kiln_compile_result_release(result);
  return code;
}

// ---- A link past the choice ----

static kiln_status_t keep_code(void* user, kiln_bytes_view_t bytes) {
  kiln_code_t** out = user;
  return kiln_code_create(bytes, NULL, out);
}

// Links whatever the choice says; the first line of the log where it fails.
static bool link_directly(pair_t* pair, const kiln_code_t* input,
                          uint32_t output, bool lto, kiln_code_t** out_code,
                          char* why, size_t space) {
  kiln_link_options_t options = kiln_link_options_default();
  options.arch = "sm_80";
  options.output = output;
  options.lto = lto ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
  kiln_link_settings_t* settings = NULL;
  kilni_compile_link_backend_t backend;
  void* session = NULL;
  *out_code = NULL;
  why[0] = 0;
  if (!linking_ok(kiln_link_settings_create(
                      &options, KILN_LINK_BACKEND_NVJITLINK, NULL, &settings),
                  "settings")) {
    return false;
  }
  kilni_compile_link_nvjitlink_backend(&pair->direct, &backend);
  kilni_compile_link_plan_t plan = {output, (uint32_t)settings->count,
                                    settings->items, "direct"};
  kilni_compile_link_input_t given = {kiln_code_format(input), 0, "k",
                                      kiln_code_bytes(input)};
  kilni_compile_link_sink_t sink = {out_code, keep_code};
  kiln_status_t status = backend.begin(backend.self, &plan, &session);
  if (kiln_status_is_ok(status)) status = backend.add(session, &given);
  if (kiln_status_is_ok(status)) status = backend.finish(session, &sink);
  bool links = kiln_status_is_ok(status);
  if (!links) {
    kilni_base_str_t log;
    kilni_base_str_init(&log, kiln_allocator_libc(), 1 << 24);
    if (session != NULL) {
      kiln_status_free(backend.log(session, KILN_LINK_LOG_ERROR, &log));
    }
    kiln_string_view_t line =
        kilni_compile_link_first_error(kilni_base_str_cstr(&log));
    kiln_status_native_t native = {0};
    bool known = kiln_status_native(status, &native);
    // Without nvJitLink's own words Kiln's, up to where they name a file.
    const char* words = known ? native.name : kiln_status_message(status);
    snprintf(why, space, "%.*s%s%.*s", (int)strcspn(words, ";"), words,
             line.size > 0 ? ": " : "",
             (int)(line.size > 200 ? 200 : line.size),
             line.size > 0 ? line.data : "");
    kilni_base_str_deinit(&log);
  }
  kiln_status_free(status);
  backend.end(session);
  kiln_link_settings_release(settings);
  pair->links++;
  return links;
}

// ---- What is said, and what happens ----

static bool foretell(const pair_t* pair, const kiln_code_t* input,
                     uint32_t output, uint32_t driver, uint32_t backend,
                     kiln_link_choice_t** out_choice) {
  kiln_link_input_fact_t fact;
  kiln_link_input_fact_of(input, &fact);
  kiln_link_facts_t facts = kiln_link_facts_default();
  facts.backend = backend;
  facts.output = output;
  facts.inputs = &fact;
  facts.input_count = 1;
  facts.nvjitlinks = &pair->to;
  facts.nvjitlink_count = 1;
  if (driver != 0) {
    facts.driver.state = KILN_COMPAT_DRIVER_KNOWN;
    facts.driver.line = driver;
  }
  return linking_ok(kiln_link_choose(&facts, NULL, out_choice), "choose");
}

static uint32_t isa_of(const kiln_code_t* code) {
  return kilni_image_ptx_isa(kiln_code_bytes(code));
}

// With a known driver: it takes the nvJitLink whose product it loads, and of
// PTX only such as it knows.
static void check_driver(pair_t* pair, const kiln_code_t* input,
                         uint32_t output, uint32_t driver, bool links,
                         const kiln_code_t* linked, kilni_base_str_t* row) {
  kiln_link_choice_t* choice = NULL;
  if (!foretell(pair, input, output, driver, 0, &choice)) return;
  uint32_t backend = kiln_link_choice_backend(choice);
  uint32_t verdict = kiln_link_choice_verdict(choice);
  bool loaded = output == KILN_CODE_FORMAT_CUBIN ||
                output == KILN_CODE_FORMAT_PTX;  // by a driver
  bool of_major = !loaded || pair->to / 1000 <= driver / 1000;
  if (backend == KILN_LINK_BACKEND_NVJITLINK) {
    check(pair, links || verdict != KILN_COMPAT_VERDICT_COMPATIBLE,
          "a promised link fails");
    check(pair, of_major, "an nvJitLink of a newer major than the driver");
    if (links && output == KILN_CODE_FORMAT_PTX) {
      check(pair, isa_of(linked) <= kiln_compat_line_ptx_isa(driver),
            "its PTX is too new for the driver");
    }
  } else if (links && output == KILN_CODE_FORMAT_PTX) {
    check(pair, isa_of(linked) > kiln_compat_line_ptx_isa(driver),
          "PTX was refused that the driver knows");
  } else if (links && backend != KILN_LINK_BACKEND_DRIVER) {
    check(pair, !of_major || verdict == KILN_COMPAT_VERDICT_UNKNOWN,
          "a link was refused that works");
  }
  kilni_base_str_addf(row, " | %s%s",
                      backend == KILN_LINK_BACKEND_AUTO
                          ? "nobody"
                          : kiln_link_backend_word(backend),
                      backend != KILN_LINK_BACKEND_AUTO &&
                              verdict == KILN_COMPAT_VERDICT_UNKNOWN
                          ? " (unknown)"
                          : "");
  kiln_link_choice_release(choice);
}

// ---- What is done with what came out ----

// Linked once more, and that used.
static bool goes_on(pair_t* pair, const kiln_code_t* code, uint32_t output) {
  char why[512];
  kiln_code_t* last = NULL;
  bool lto = kiln_code_format(code) == KILN_CODE_FORMAT_LTOIR;
  bool done = link_directly(pair, code, output, lto, &last, why, sizeof(why));
  if (!done) printf("  again: %s\n", why);
  if (done) {
    done = output == KILN_CODE_FORMAT_PTX ? linking_runs(pair->runtime, last)
                                          : linking_has_kernel(last);
  }
  kiln_code_release(last);
  return done;
}

// What was made of it; NULL if it is of no use, as what a linker left out.
static const char* use(pair_t* pair, const kiln_code_t* linked,
                       uint32_t output) {
  if (kiln_code_format(linked) != output) return NULL;
  switch (output) {
    case KILN_CODE_FORMAT_PTX:
      check(pair, isa_of(linked) == kiln_compat_line_ptx_isa(pair->to),
            "its PTX is not of its own version");
      return linking_runs(pair->runtime, linked) ? "runs, equals" : NULL;
    case KILN_CODE_FORMAT_LTOIR:
      return goes_on(pair, linked, KILN_CODE_FORMAT_PTX)
                 ? "linked to PTX that runs, equals"
                 : NULL;
    case KILN_CODE_FORMAT_RELOCATABLE:
      return goes_on(pair, linked, KILN_CODE_FORMAT_CUBIN)
                 ? "linked again, has its kernel"
                 : NULL;
    default:
      return linking_has_kernel(linked) ? "has its kernel" : NULL;
  }
}

static void try_cell(pair_t* pair, const kiln_code_t* input, uint32_t output) {
  static const uint32_t drivers[] = {12090, 13000, 13050};
  char why[512];
  kilni_base_str_t row;
  kiln_link_choice_t* choice = NULL;
  kiln_code_t* linked = NULL;
  if (!foretell(pair, input, output, 0, KILN_LINK_BACKEND_NVJITLINK, &choice)) {
    pair->wrong++;
    return;
  }
  uint32_t verdict = kiln_link_choice_verdict(choice);
  bool links = link_directly(pair, input, output, kiln_link_choice_lto(choice),
                             &linked, why, sizeof(why));
  const char* used = links ? use(pair, linked, output) : NULL;
  if (links && used == NULL) {
    snprintf(why, sizeof(why), "success, and the kernel is left out");
    links = false;
  }
  check(pair, links || verdict != KILN_COMPAT_VERDICT_COMPATIBLE,
        "a promised link fails");
  check(pair, !links || verdict != KILN_COMPAT_VERDICT_INCOMPATIBLE,
        "a refused link works");
  kilni_base_str_init(&row, kiln_allocator_libc(), 1 << 16);
  kilni_base_str_addf(
      &row, "| %u.%u | %u.%u | %s | %s | %s | ", pair->from / 1000,
      pair->from % 1000 / 10, pair->to / 1000, pair->to % 1000 / 10,
      kiln_code_format_name(kiln_code_format(input)),
      kiln_code_format_name(output), kiln_compat_verdict_word(verdict));
  if (links) {
    kilni_base_str_addf(&row, "links | %s", used);
  } else {
    kilni_base_str_addf(&row, "`%s` | ", why);
  }
  for (size_t i = 0; i < 3; i++) {
    check_driver(pair, input, output, drivers[i], links, linked, &row);
  }
  printf("%s |\n", kilni_base_str_cstr(&row));
  kilni_base_str_deinit(&row);
  kiln_code_release(linked);
  kiln_link_choice_release(choice);
}

static void try_all(pair_t* pair) {
  static const struct {
    uint32_t input;
    uint32_t outputs[4];  // 0: no more
  } cells[] = {
      {KILN_CODE_FORMAT_LTOIR,
       {KILN_CODE_FORMAT_CUBIN, KILN_CODE_FORMAT_PTX,
        KILN_CODE_FORMAT_RELOCATABLE, KILN_CODE_FORMAT_LTOIR}},
      {KILN_CODE_FORMAT_PTX,
       {KILN_CODE_FORMAT_CUBIN, KILN_CODE_FORMAT_RELOCATABLE, 0, 0}},
      {KILN_CODE_FORMAT_RELOCATABLE,
       {KILN_CODE_FORMAT_CUBIN, KILN_CODE_FORMAT_RELOCATABLE, 0, 0}},
      {KILN_CODE_FORMAT_CUBIN, {KILN_CODE_FORMAT_CUBIN, 0, 0, 0}},
  };
  for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
    kiln_code_t* code = compile(pair, kSource, cells[i].input);
    check(pair, code != NULL, "NVRTC makes no such code");
    for (size_t k = 0; k < 4 && code != NULL; k++) {
      if (cells[i].outputs[k] != 0) try_cell(pair, code, cells[i].outputs[k]);
    }
    kiln_code_release(code);
  }
}

// ---- Cases of one link ----

static kiln_status_t link_one(pair_t* pair, kiln_code_t* input,
                              kiln_link_options_t* options,
                              kiln_link_t** out_link, kiln_code_t** out_code) {
  *out_code = NULL;
  *out_link = NULL;
  if (options->arch == NULL) options->arch = "sm_80";
  kiln_status_t status = kiln_link_create(pair->linker, options, out_link);
  if (kiln_status_is_ok(status)) status = kiln_link_add(*out_link, input);
  if (kiln_status_is_ok(status)) {
    status = kiln_link_finish(*out_link, out_code);
  }
  return status;
}

static bool links_with(pair_t* pair, kiln_code_t* input,
                       kiln_link_options_t options, const char* what) {
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  bool links = linking_ok(link_one(pair, input, &options, &link, &code), what);
  kiln_code_release(code);
  kiln_link_release(link);
  return links;
}

// L1: each row of the table of options by itself, as it comes in there.
static void try_option(pair_t* pair, kiln_code_t* ltoir, const char* field,
                       kiln_link_options_t options) {
  if (!links_with(pair, ltoir, options, field)) check(pair, false, field);
}

static const char* const* list_of(const char* field) {
  static const char* const kernels[] = {"k"};
  static const char* const variables[] = {"v"};
  static const char* const ptxas[] = {"-v"};
  static const char* const extra[] = {"-Xptxas=-v"};
  if (strcmp(field, "ptxas_options") == 0) return ptxas;
  if (strcmp(field, "variables_used") == 0) return variables;
  return strcmp(field, "extra") == 0 ? extra : kernels;
}

#define TRY_TEXT(field)   SET(field, "sm_80")
#define TRY_NUMBER(field) SET(field, 32)
#define TRY_LEVEL(field)        \
  SET(field, KILN_LINK_LEVEL_0) \
  SET(field, KILN_LINK_LEVEL_3)
#define TRY_THREADS(field) \
  SET(field, 2)            \
  SET(field, KILN_LINK_ALL_THREADS)
#define TRY_FLAG(field) SET(field, KILN_SWITCH_ON)
#define TRY_CHOICE(field)    \
  SET(field, KILN_SWITCH_ON) \
  SET(field, KILN_SWITCH_OFF)
#define TRY_LIST(field)                  \
  options = kiln_link_options_default(); \
  options.field = list_of(#field);       \
  options.field##_count = 1;             \
  try_option(pair, ltoir, #field, options);
#define SET(field_, value)               \
  options = kiln_link_options_default(); \
  options.field_ = (value);              \
  try_option(pair, ltoir, #field_, options);

static void test_each_option(pair_t* pair, kiln_code_t* ltoir) {
  kiln_link_options_t options;
#define KILNI_LINK_OPTION(field, kind, spelling, key, treatment, what) \
  TRY_##kind(field)
#include "compile/link_options.inc"
#undef KILNI_LINK_OPTION
}

// L2, L7: what is wrong is said, and the whole log stays.
static void test_errors(pair_t* pair, kiln_code_t* ptx) {
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  options.arch = "sm_95";
  kiln_status_t status = link_one(pair, ptx, &options, &link, &code);
  printf("  sm_95: %s\n", kiln_status_message(status));
  check(pair, !kiln_status_is_ok(status) && code == NULL, "sm_95 links");
  kiln_status_free(status);
  kiln_link_release(link);
  kiln_code_t* missing = compile(pair, kMissing, KILN_CODE_FORMAT_RELOCATABLE);
  options = kiln_link_options_default();
  status = link_one(pair, missing, &options, &link, &code);
  printf("  undefined: %s\n", kiln_status_message(status));
  check(pair, kiln_status_code(status) == KILN_STATUS_LINK_FAILED,
        "an undefined name is no LINK_FAILED");
  check(pair,
        strstr(kiln_status_message(status), "Undefined reference to '_Z1Zv'") !=
            NULL,
        "the name is not said");
  kiln_link_close(link);
  check(pair, strstr(kiln_link_log(link, KILN_LINK_LOG_ERROR), "_Z1Zv") != NULL,
        "the log is gone");
  kiln_status_free(status);
  kiln_link_release(link);
  kiln_code_release(missing);
}

// L10: the heap is whole behind many links.
static void test_many_links(pair_t* pair, kiln_code_t* ptx) {
  for (int i = 0; i < MANY_LINKS; i++) {
    check(pair, links_with(pair, ptx, kiln_link_options_default(), "many"),
          "one of many links");
  }
  kiln_code_t* after = compile(pair, kSource, KILN_CODE_FORMAT_PTX);
  check(pair, after != NULL, "a compilation behind many links");
  kiln_code_release(after);
}

// L18: relocatable code out of a link goes into another.
static void test_two_steps(pair_t* pair, kiln_code_t* ptx) {
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  options.output = KILN_CODE_FORMAT_RELOCATABLE;
  kiln_status_t status = link_one(pair, ptx, &options, &link, &code);
  if (pair->to < 13000) {
    check(pair, kiln_status_code(status) == KILN_STATUS_UNSUPPORTED,
          "relocatable code of an old nvJitLink");
    kiln_status_free(status);
  } else if (linking_ok(status, "relocatable")) {
    check(pair, links_with(pair, code, kiln_link_options_default(), "two"),
          "the second step");
  } else {
    pair->wrong++;
  }
  kiln_code_release(code);
  kiln_link_release(link);
}

static void try_cases(pair_t* pair) {
  kiln_code_t* ltoir = compile(pair, kSource, KILN_CODE_FORMAT_LTOIR);
  kiln_code_t* ptx = compile(pair, kSource, KILN_CODE_FORMAT_PTX);
  if (pair->from <= pair->to && pair->from / 1000 == pair->to / 1000 &&
      ltoir != NULL && ptx != NULL) {
    test_each_option(pair, ltoir);
    test_errors(pair, ptx);
    test_many_links(pair, ptx);
    test_two_steps(pair, ptx);
  }
  kiln_code_release(ltoir);
  kiln_code_release(ptx);
}

// ---- Pairs ----

static bool open_pair(pair_t* pair, const char* nvrtc, const char* nvjitlink) {
  kiln_compiler_options_t compiler = kiln_compiler_options_default();
  kiln_linker_options_t linker = kiln_linker_options_default();
  kiln_compat_driver_t unknown = kiln_compat_driver_default();
  const char* path = NULL;
  uint32_t count = 0;
  compiler.library = nvrtc;
  linker.nvjitlink = nvjitlink;
  linker.driver = &unknown;
  if (!linking_ok(kiln_runtime_create(NULL, &pair->runtime), "runtime") ||
      !linking_ok(
          kiln_runtime_open_compiler(pair->runtime, &compiler, &pair->nvrtc),
          "NVRTC") ||
      !linking_ok(
          kiln_runtime_open_linker(pair->runtime, &linker, &pair->linker),
          "linker") ||
      !linking_ok(kiln_linker_nvjitlink_count(pair->linker, &count), "count") ||
      count == 0 ||
      !linking_ok(kiln_linker_nvjitlink(pair->linker, 0, NULL, &path),
                  "nvJitLink")) {
    return false;
  }
  pair->host.allocator = kiln_allocator_libc();
  pair->direct.host = &pair->host;
  if (!linking_ok(kilni_table_nvjitlink_table_open(
                      &pair->host, path, &pair->direct.table, &pair->library),
                  "table")) {
    return false;
  }
  pair->from = kiln_compiler_version(pair->nvrtc);
  pair->to =
      kiln_compat_line_make(pair->direct.table.major, pair->direct.table.minor);
  return true;
}

static int run_pair(const char* nvrtc, const char* nvjitlink) {
  static pair_t pair;
  int rc = SKIP;
  if (open_pair(&pair, nvrtc, nvjitlink)) {
    try_all(&pair);
    try_cases(&pair);
    printf("%5u with %5u: %u cells, %u wrong\n", (unsigned)pair.from,
           (unsigned)pair.to, (unsigned)pair.links, (unsigned)pair.wrong);
    rc = pair.wrong == 0 && pair.links > 0 ? 0 : 1;
  }
  kilni_base_dynlib_close(pair.library);
  kiln_linker_release(pair.linker);
  kiln_compiler_release(pair.nvrtc);
  kiln_runtime_release(pair.runtime);
  fflush(stdout);
  return rc;
}

int main(void) {
  static char copies[2][1 << 14];
  const char* producers[MAX_LIBRARIES];
  const char* linkers[MAX_LIBRARIES];
  size_t producer_count =
      linking_split("KILN_TEST_NVRTC", copies[0], sizeof(copies[0]), producers,
                    MAX_LIBRARIES);
  size_t linker_count =
      linking_split("KILN_TEST_NVJITLINK", copies[1], sizeof(copies[1]),
                    linkers, MAX_LIBRARIES);
  bool named = getenv("KILN_TEST_NVRTC") != NULL;
  int failed = 0;
  int skipped = 0;
  for (size_t i = 0; i < producer_count; i++) {
    for (size_t j = 0; j < linker_count; j++) {
      fflush(stdout);
      pid_t child = fork();
      if (child == 0) _exit(run_pair(producers[i], linkers[j]));
      int state = 0;
      bool ended = child > 0 && waitpid(child, &state, 0) == child;
      if (ended && !named && WIFEXITED(state) && WEXITSTATUS(state) == SKIP) {
        skipped++;
      } else if (!ended || state != 0) {
        printf("FAILED: NVRTC %zu with nvJitLink %zu (%d)\n", i, j, state);
        failed++;
      }
    }
  }
  if (failed == 0 && skipped > 0) printf("skipped: no NVRTC or nvJitLink\n");
  return failed != 0 ? 1 : skipped > 0 ? SKIP : 0;
}
