// SPDX-License-Identifier: Apache-2.0
//
// tests: what compat says of a pair of libraries against what the pair does.
//
// KILN_TEST_NVRTC and KILN_TEST_NVJITLINK (tests only) name real libraries,
// with colons between them. Each NVRTC compiles a kernel to LTO-IR, PTX,
// relocatable machine code (cubin) and finished machine code (elf), each
// nvJitLink links each of the four, and the verdict on that use is compared:
// never "compatible" where the link fails, never "incompatible" where it works.
// A link whose machine code lacks the kernel has failed, whatever nvJitLink
// says. No driver is needed. Each pair has a process of its own. Without
// libraries the test is skipped.
#define _POSIX_C_SOURCE 200809L  // fork, waitpid

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "kiln/compat.h"
#include "kiln/image.h"

enum { SKIP = 77, MAX_CODE = 1 << 20, MAX_LIBRARIES = 16 };

static const char kernel[] =
    "__device__ int twice(int x) { return 2 * x; }\n"
    "extern \"C\" __global__ void k(int* p) { *p = twice(*p); }\n";

// What one library made. one-thread
typedef struct code_t {
  size_t size;
  char data[MAX_CODE];
} code_t;

static void* symbol(const kilni_base_dynlib_t* library, const char* name) {
  return kilni_base_dynlib_symbol(library, name);
}

// A function of a library, as a pointer of the type that stands before it.
#define CALL(type, name, library)            \
  type name;                                 \
  do {                                       \
    void* address_ = symbol(library, #name); \
    memcpy(&name, &address_, sizeof(name));  \
  } while (0)

// ---- NVRTC ----

typedef int (*version_fn)(int*, int*);
typedef int (*create_fn)(void**, const char*, const char*, int,
                         const char* const*, const char* const*);
typedef int (*compile_fn)(void*, int, const char* const*);
typedef int (*size_fn)(void*, size_t*);
typedef int (*get_fn)(void*, char*);

static uint32_t nvrtc_line(const kilni_base_dynlib_t* nvrtc) {
  CALL(version_fn, nvrtcVersion, nvrtc);
  int major = 0;
  int minor = 0;
  if (nvrtcVersion == NULL || nvrtcVersion(&major, &minor) != 0) return 0;
  return kiln_compat_line_make((uint32_t)major, (uint32_t)minor);
}

static bool compile(const kilni_base_dynlib_t* nvrtc, uint32_t artifact,
                    code_t* out) {
  static const char* const lto[] = {"-arch=compute_80", "-dlto"};
  static const char* const ptx[] = {"-arch=compute_80", "-rdc=true"};
  static const char* const cubin[] = {"-arch=sm_80", "-rdc=true"};
  static const char* const elf[] = {"-arch=sm_80", "-rdc=false"};
  const char* const* options = artifact == KILN_COMPAT_ARTIFACT_LTOIR ? lto
                               : artifact == KILN_COMPAT_ARTIFACT_PTX ? ptx
                               : artifact == KILN_COMPAT_ARTIFACT_ELF ? elf
                                                                      : cubin;
  const char* size_name =
      artifact == KILN_COMPAT_ARTIFACT_LTOIR ? "nvrtcGetLTOIRSize"
      : artifact == KILN_COMPAT_ARTIFACT_PTX ? "nvrtcGetPTXSize"
                                             : "nvrtcGetCUBINSize";
  char get_name[32];
  snprintf(get_name, sizeof(get_name), "%.*s", (int)strlen(size_name) - 4,
           size_name);
  CALL(create_fn, nvrtcCreateProgram, nvrtc);
  CALL(compile_fn, nvrtcCompileProgram, nvrtc);
  size_fn get_size;
  get_fn get;
  void* address = symbol(nvrtc, size_name);
  memcpy(&get_size, &address, sizeof(get_size));
  address = symbol(nvrtc, get_name);
  memcpy(&get, &address, sizeof(get));
  void* program = NULL;
  return get_size != NULL && get != NULL &&
         nvrtcCreateProgram(&program, kernel, "k.cu", 0, NULL, NULL) == 0 &&
         nvrtcCompileProgram(program, 2, options) == 0 &&
         get_size(program, &out->size) == 0 && out->size <= MAX_CODE &&
         get(program, out->data) == 0;
}

// ---- nvJitLink ----

typedef int (*link_create_fn)(void**, uint32_t, const char**);
typedef int (*link_add_fn)(void*, int, const void*, size_t, const char*);
typedef int (*link_fn)(void*);
typedef int (*link_version_fn)(unsigned*, unsigned*);

// The functions of the newest version that the library has.
static void* link_symbol(const kilni_base_dynlib_t* library, const char* name,
                         uint32_t line) {
  char text[64];
  for (int minor = (int)kiln_compat_line_minor(line); minor >= 0; minor--) {
    snprintf(text, sizeof(text), "__nvJitLink%s_%u_%d", name,
             (unsigned)kiln_compat_line_major(line), minor);
    void* address = symbol(library, text);
    if (address != NULL) return address;
  }
  return NULL;
}

#define LINK_CALL(type, name, library, line)            \
  type name;                                            \
  do {                                                  \
    void* address_ = link_symbol(library, #name, line); \
    memcpy(&name, &address_, sizeof(name));             \
  } while (0)

static uint32_t link_line(const kilni_base_dynlib_t* library) {
  CALL(link_version_fn, nvJitLinkVersion, library);
  unsigned major = 0;
  unsigned minor = 0;
  if (nvJitLinkVersion == NULL || nvJitLinkVersion(&major, &minor) != 0) {
    return 0;
  }
  return kiln_compat_line_make(major, minor);
}

// Links to machine code, or LTO-IR to PTX; `out_step` says where it failed.
static bool link_code(const kilni_base_dynlib_t* library, uint32_t line,
                      uint32_t artifact, const code_t* in, bool to_ptx,
                      code_t* out, const char** out_step, int* out_result) {
  static const int inputs[] = {0, 3, 2, 1, 1};
  const char* options[3] = {"-arch=sm_80", NULL, NULL};
  uint32_t count = 1;
  if (artifact == KILN_COMPAT_ARTIFACT_LTOIR) options[count++] = "-lto";
  if (to_ptx) options[count++] = "-ptx";
  LINK_CALL(link_create_fn, Create, library, line);
  LINK_CALL(link_add_fn, AddData, library, line);
  LINK_CALL(link_fn, Complete, library, line);
  LINK_CALL(size_fn, GetLinkedCubinSize, library, line);
  LINK_CALL(get_fn, GetLinkedCubin, library, line);
  LINK_CALL(size_fn, GetLinkedPtxSize, library, line);
  LINK_CALL(get_fn, GetLinkedPtx, library, line);
  size_fn get_size = to_ptx ? GetLinkedPtxSize : GetLinkedCubinSize;
  get_fn get = to_ptx ? GetLinkedPtx : GetLinkedCubin;
  void* handle = NULL;
  *out_step = "nvJitLinkCreate";
  *out_result = Create(&handle, count, options);
  if (*out_result != 0) return false;
  *out_step = "nvJitLinkAddData";
  *out_result = AddData(handle, inputs[artifact], in->data, in->size, "k");
  if (*out_result != 0) return false;
  *out_step = "nvJitLinkComplete";
  *out_result = Complete(handle);
  if (*out_result != 0) return false;
  *out_step = "nvJitLinkGetLinked";
  *out_result = get_size(handle, &out->size);
  return *out_result == 0 && out->size < MAX_CODE &&
         get(handle, out->data) == 0;
}

// ---- Verdicts ----

static uint32_t verdict_on(uint32_t nvrtc, uint32_t linker, uint32_t artifact) {
  kiln_compat_fact_t producer = kiln_compat_fact_default();
  producer.kind = KILN_COMPAT_KIND_LIB;
  producer.class_id = KILN_COMPAT_CLASS_CTK;
  producer.name = "nvrtc";
  producer.line = nvrtc;
  kiln_compat_fact_t consumer = producer;
  consumer.name = "nvJitLink";
  consumer.line = linker;
  const kiln_compat_fact_t* facts[] = {&producer, &consumer};
  kiln_compat_use_t use = kiln_compat_use_default();
  use.producer = "nvrtc";
  use.consumer = "nvJitLink";
  use.artifact = artifact;
  const kiln_compat_use_t* uses[] = {&use};
  kiln_compat_driver_t driver = kiln_compat_driver_default();
  driver.state = KILN_COMPAT_DRIVER_NONE;
  kiln_compat_request_t request = kiln_compat_request_default();
  request.facts = facts;
  request.fact_count = 2;
  request.uses = uses;
  request.use_count = 1;
  request.driver = &driver;
  kiln_compat_report_t* report = NULL;
  kiln_status_t status = kiln_compat_check(&request, &report);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 0;
  }
  uint32_t verdict = kiln_compat_report_verdict(report);
  kiln_compat_report_release(report);
  return verdict;
}

// 10 * major + minor of the `.version` line.
static uint32_t ptx_version(const code_t* code) {
  const char* line = strstr(code->data, ".version ");
  unsigned major = 0;
  unsigned minor = 0;
  if (line == NULL || sscanf(line, ".version %u.%u", &major, &minor) != 2) {
    return 0;
  }
  return major * 10 + minor;
}

static code_t made;
static code_t linked;

// Whether the kernel is in the machine code that came out.
static bool has_kernel(const code_t* code) {
  kiln_image_t* image = NULL;
  uint32_t index = 0;
  kiln_bytes_view_t bytes = {(const uint8_t*)code->data, code->size};
  kiln_status_t status = kiln_image_create(bytes, NULL, &image);
  if (kiln_status_is_ok(status)) {
    status = kiln_image_kernel_find(image, "k", &index);
  }
  bool has = kiln_status_is_ok(status);
  kiln_status_free(status);
  kiln_image_release(image);
  return has;
}

// True if reality and verdict agree.
static bool try_use(const kilni_base_dynlib_t* nvrtc, uint32_t from,
                    const kilni_base_dynlib_t* linker, uint32_t to,
                    uint32_t artifact) {
  const char* step = "nvrtc";
  int result = 0;
  if (!compile(nvrtc, artifact, &made)) {
    printf("NVRTC of %u makes no %s\n", (unsigned)from,
           kiln_compat_artifact_word(artifact));
    return false;
  }
  if (artifact == KILN_COMPAT_ARTIFACT_PTX &&
      ptx_version(&made) != kiln_compat_line_ptx_isa(from)) {
    printf("NVRTC of %u writes PTX %u, not %u\n", (unsigned)from,
           (unsigned)ptx_version(&made),
           (unsigned)kiln_compat_line_ptx_isa(from));
    return false;
  }
  bool works =
      link_code(linker, to, artifact, &made, false, &linked, &step, &result);
  const char* said = works ? "links" : "fails";
  if (works && !has_kernel(&linked)) {
    works = false;
    said = "leaves it out";
    step = "";
  }
  uint32_t verdict = verdict_on(from, to, artifact);
  bool agrees = verdict == KILN_COMPAT_VERDICT_UNKNOWN ||
                (verdict == KILN_COMPAT_VERDICT_COMPATIBLE) == works;
  printf("%5u -> %5u %-5s %-6s %s%s(%d)  verdict %s%s\n", (unsigned)from,
         (unsigned)to, kiln_compat_artifact_word(artifact), said,
         works || step[0] == 0 ? "" : "in ", works ? "" : step, result,
         kiln_compat_verdict_word(verdict), agrees ? "" : "  CONTRADICTION");
  if (!works || artifact != KILN_COMPAT_ARTIFACT_LTOIR) return agrees;
  if (!link_code(linker, to, artifact, &made, true, &linked, &step, &result)) {
    printf("  no PTX: %s (%d)\n", step, result);
    return false;
  }
  printf("  its PTX is %u\n", (unsigned)ptx_version(&linked));
  return agrees && ptx_version(&linked) == kiln_compat_line_ptx_isa(to);
}

static int run_pair(const char* nvrtc_path, const char* linker_path) {
  kilni_base_dynlib_t* nvrtc = NULL;
  kilni_base_dynlib_t* linker = NULL;
  kiln_allocator_t allocator = kiln_allocator_libc();
  kiln_status_t status = kilni_base_dynlib_open(allocator, nvrtc_path, &nvrtc);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_dynlib_open(allocator, linker_path, &linker);
  }
  if (!kiln_status_is_ok(status)) {
    printf("%s\n", kiln_status_message(status));
    return 1;
  }
  uint32_t from = nvrtc_line(nvrtc);
  uint32_t to = link_line(linker);
  bool agrees = from != 0 && to != 0;
  static const uint32_t artifacts[] = {
      KILN_COMPAT_ARTIFACT_LTOIR, KILN_COMPAT_ARTIFACT_PTX,
      KILN_COMPAT_ARTIFACT_CUBIN, KILN_COMPAT_ARTIFACT_ELF};
  for (size_t i = 0; from != 0 && to != 0 && i < 4; i++) {
    agrees = try_use(nvrtc, from, linker, to, artifacts[i]) && agrees;
  }
  fflush(stdout);
  return agrees ? 0 : 1;
}

// ---- Pairs ----

static size_t split(const char* text, char* copy, size_t capacity,
                    const char** out) {
  size_t count = 0;
  snprintf(copy, capacity, "%s", text);
  for (char* part = strtok(copy, ":"); part != NULL && count < MAX_LIBRARIES;
       part = strtok(NULL, ":")) {
    out[count++] = part;
  }
  return count;
}

int main(void) {
  static char copies[2][1 << 14];
  const char* producers[MAX_LIBRARIES];
  const char* linkers[MAX_LIBRARIES];
  const char* nvrtc = getenv("KILN_TEST_NVRTC");
  const char* linker = getenv("KILN_TEST_NVJITLINK");
  if (nvrtc == NULL || linker == NULL) {
    printf(
        "skipped: KILN_TEST_NVRTC and KILN_TEST_NVJITLINK name no "
        "libraries\n");
    return SKIP;
  }
  size_t producer_count = split(nvrtc, copies[0], sizeof(copies[0]), producers);
  size_t linker_count = split(linker, copies[1], sizeof(copies[1]), linkers);
  int failed = 0;
  for (size_t i = 0; i < producer_count; i++) {
    for (size_t j = 0; j < linker_count; j++) {
      fflush(stdout);
      pid_t child = fork();
      if (child == 0) _exit(run_pair(producers[i], linkers[j]));
      int state = 0;
      if (child < 0 || waitpid(child, &state, 0) != child || state != 0) {
        printf("FAILED: %s with %s\n", producers[i], linkers[j]);
        failed++;
      }
    }
  }
  return failed == 0 && producer_count * linker_count > 0 ? 0 : 1;
}
