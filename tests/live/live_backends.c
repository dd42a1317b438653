// SPDX-License-Identifier: Apache-2.0
//
// live: two PTX texts linked by the driver and by nvJitLink, loaded, run, and
// compared; by the driver with each option by itself; and a finished cubin.
//
//   live_backends [cuda:0|soft]
//
// Exit code 77 where there is no such device. Where there is no nvJitLink, and
// on the software device, which runs no cubin, the driver's result is compared
// with what it must be, and that is said.
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"

enum { COUNT = 1024, ROUNDS = 50 };

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char caller[] = HEAD
    ".extern .func (.param .b32 out) mix(.param .b32 in);\n"
    ".extern .global .align 4 .u32 salt;\n"
    ".global .align 4 .u32 own = 3;\n"
    ".visible .entry fill(.param .u64 p) {\n"
    "  .reg .b32 %r<9>;\n  .reg .b64 %d<5>;\n"
    "  ld.param.u64 %d1, [p];\n  cvta.to.global.u64 %d2, %d1;\n"
    "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r2, %ntid.x;\n"
    "  mov.u32 %r3, %tid.x;\n  mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "  {\n  .param .b32 a;\n  .param .b32 b;\n  st.param.b32 [a], %r4;\n"
    "  call.uni (b), mix, (a);\n  ld.param.b32 %r5, [b];\n  }\n"
    "  ld.global.u32 %r6, [salt];\n  ld.global.u32 %r7, [own];\n"
    "  add.u32 %r5, %r5, %r6;\n  mul.lo.u32 %r5, %r5, %r7;\n"
    "  mul.wide.u32 %d3, %r4, 4;\n  add.u64 %d4, %d2, %d3;\n"
    "  st.global.u32 [%d4], %r5;\n  ret;\n}\n";

static const char called[] = HEAD
    ".visible .global .align 4 .u32 salt = 77;\n"
    ".global .align 4 .u32 own = 5;\n"
    ".visible .func (.param .b32 out) mix(.param .b32 in) {\n"
    "  .reg .b32 %r<5>;\n  ld.param.u32 %r1, [in];\n"
    "  ld.global.u32 %r2, [own];\n"
    "  mad.lo.u32 %r3, %r1, %r1, %r2;\n"
    "  st.param.b32 [out], %r3;\n  ret;\n}\n";

static uint32_t wanted(uint32_t i) {
  return (i * i + 5 + 77) * 3;
}

// Prints a failure and ends it. True if there was one.
static bool failed(const char* what, kiln_status_t status) {
  if (kiln_status_is_ok(status)) return false;
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("%s: %s\n", what, text);
  kiln_status_free(status);
  return true;
}

static kiln_status_t add(kiln_link_t* link, const char* text,
                         const char* name) {
  kiln_bytes_view_t view = {(const uint8_t*)text, strlen(text)};
  return kiln_link_add_bytes(link, view, KILN_CODE_FORMAT_PTX, name);
}

// Links; `out_warnings`, if not NULL, counts the options that do nothing.
static kiln_status_t link_as(kiln_linker_t* linker,
                             const kiln_link_options_t* options,
                             uint32_t* out_warnings, kiln_code_t** out_code) {
  kiln_link_t* link = NULL;
  kiln_status_t status = kiln_link_create(linker, options, &link);
  if (kiln_status_is_ok(status)) status = add(link, caller, "caller");
  if (kiln_status_is_ok(status)) status = add(link, called, "called");
  if (kiln_status_is_ok(status)) status = kiln_link_finish(link, out_code);
  if (out_warnings != NULL) {
    *out_warnings = kiln_link_settings_warning_count(kiln_link_used(link));
  }
  kiln_link_release(link);
  return status;
}

static kiln_status_t link_with(kiln_linker_t* linker, uint32_t backend,
                               kiln_code_t** out_code) {
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = backend;
  return link_as(linker, &options, NULL, out_code);
}

static kiln_status_t launch(kiln_device_t* device, kiln_kernel_t* kernel,
                            uint32_t* out_values) {
  kiln_buffer_t* buffer = NULL;
  kiln_stream_t* stream = NULL;
  kiln_status_t status =
      kiln_buffer_create(device, COUNT * sizeof(uint32_t), NULL, &buffer);
  if (kiln_status_is_ok(status)) {
    status = kiln_stream_create(device, NULL, &stream);
  }
  if (kiln_status_is_ok(status)) {
    kiln_argument_t argument = kiln_arg_buffer(buffer);
    kiln_launch_config_t config = kiln_launch_config_default();
    config.grid[0] = COUNT / 256;
    config.block[0] = 256;
    status = kiln_kernel_launch(kernel, stream, &config, &argument, 1);
  }
  if (kiln_status_is_ok(status)) status = kiln_stream_synchronize(stream);
  if (kiln_status_is_ok(status)) {
    status = kiln_buffer_read(buffer, 0, COUNT * sizeof(uint32_t), out_values);
  }
  kiln_buffer_release(buffer);
  kiln_stream_release(stream);
  return status;
}

static kiln_status_t run(kiln_device_t* device, kiln_code_t* code,
                         uint32_t* out_values) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_status_t status = kiln_module_create(device, code, NULL, &module);
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_create(module, "fill", &kernel);
  }
  kiln_module_release(module);
  if (kiln_status_is_ok(status)) status = launch(device, kernel, out_values);
  kiln_kernel_release(kernel);
  return status;
}

// One backend, several times. 0: as it must be; 1: not; 2: cannot be asked.
static int try_backend(kiln_device_t* device, kiln_linker_t* linker,
                       uint32_t backend) {
  static uint32_t values[COUNT];
  const char* word = kiln_link_backend_word(backend);
  for (int round = 0; round < ROUNDS; round++) {
    kiln_code_t* code = NULL;
    kiln_status_t status = link_with(linker, backend, &code);
    if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) {
      failed(word, status);
      return 2;
    }
    if (failed(word, status)) return 1;
    memset(values, 0, sizeof(values));
    status = run(device, code, values);
    kiln_code_release(code);
    if (failed(word, status)) return 1;
    for (uint32_t i = 0; i < COUNT; i++) {
      if (values[i] == wanted(i)) continue;
      printf("%s: value %u is %u, not %u\n", word, i, values[i], wanted(i));
      return 1;
    }
  }
  printf("%s: %d links, all as they must be\n", word, (int)ROUNDS);
  return 0;
}

// ---- Options ----

typedef enum treatment_t { APPLIED, REFUSED, IGNORED } treatment_t;

// What the options are tried on. one-thread
typedef struct trial_t {
  kiln_device_t* device;
  kiln_linker_t* linker;
  const char* arch;
  uint32_t tried;
  uint32_t wrong;
} trial_t;

static bool runs(trial_t* trial, kiln_code_t* code) {
  static uint32_t values[COUNT];
  memset(values, 0, sizeof(values));
  if (failed("run", run(trial->device, code, values))) return false;
  for (uint32_t i = 0; i < COUNT; i++) {
    if (values[i] != wanted(i)) return false;
  }
  return true;
}

// What the table says of an option is what the driver does with it.
static void try_option(trial_t* trial, const char* field, treatment_t treatment,
                       kiln_link_options_t options) {
  kiln_code_t* code = NULL;
  uint32_t warnings = 0;
  options.backend = KILN_LINK_BACKEND_DRIVER;
  kiln_status_t status = link_as(trial->linker, &options, &warnings, &code);
  bool good;
  if (treatment == REFUSED) {
    good = kiln_status_code(status) == KILN_STATUS_UNSUPPORTED;
    kiln_status_free(status);
  } else {
    good = !failed(field, status) &&
           warnings == (treatment == IGNORED ? 1u : 0u) && runs(trial, code);
  }
  kiln_code_release(code);
  trial->tried++;
  trial->wrong += !good;
  if (!good) printf("option %s: not as the table says\n", field);
}

#define TRY_TEXT(field, treatment)   SET(field, trial->arch, treatment)
#define TRY_NUMBER(field, treatment) SET(field, 32, treatment)
#define TRY_LEVEL(field, treatment)        \
  SET(field, KILN_LINK_LEVEL_0, treatment) \
  SET(field, KILN_LINK_LEVEL_3, treatment)
#define TRY_THREADS(field, treatment) SET(field, 2, treatment)
#define TRY_FLAG(field, treatment)    SET(field, KILN_SWITCH_ON, treatment)
#define TRY_CHOICE(field, treatment)    \
  SET(field, KILN_SWITCH_ON, treatment) \
  SET(field, KILN_SWITCH_OFF, treatment)
#define TRY_LIST(field, treatment)       \
  options = kiln_link_options_default(); \
  options.field = list_of(#field);       \
  options.field##_count = 1;             \
  try_option(trial, #field, treatment, options);
#define SET(field_, value, treatment)    \
  options = kiln_link_options_default(); \
  options.field_ = (value);              \
  try_option(trial, #field_, treatment, options);

// Names that are there: others are refused.
static const char* const* list_of(const char* field) {
  static const char* const kernels[] = {"fill"};
  static const char* const variables[] = {"salt"};
  return strcmp(field, "variables_used") == 0 ? variables : kernels;
}

static void try_options(trial_t* trial) {
  kiln_link_options_t options;
#define KILNI_LINK_OPTION(field, kind, spelling, key, treatment, what) \
  TRY_##kind(field, treatment)
#include "compile/link_options.inc"
#undef KILNI_LINK_OPTION
  printf("driver, options one by one: %u tried, %u wrong\n", trial->tried,
         trial->wrong);
}

// A finished cubin into a link of the driver: there afterwards, or an error;
// never success without it.
static void try_finished(trial_t* trial) {
  kiln_code_t* finished = NULL;
  kiln_code_t* code = NULL;
  kiln_link_t* link = NULL;
  if (failed("first",
             link_with(trial->linker, KILN_LINK_BACKEND_DRIVER, &finished))) {
    trial->wrong++;
    return;
  }
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  kiln_status_t status = kiln_link_create(trial->linker, &options, &link);
  if (kiln_status_is_ok(status)) status = kiln_link_add(link, finished);
  if (kiln_status_is_ok(status)) status = kiln_link_finish(link, &code);
  bool links = kiln_status_is_ok(status);
  printf("driver, finished code once more: %s\n",
         links ? "links" : kiln_status_message(status));
  if (links && !runs(trial, code)) {
    printf("and what came out does not run\n");
    trial->wrong++;
  }
  kiln_status_free(status);
  kiln_code_release(code);
  kiln_link_release(link);
  kiln_code_release(finished);
}

static int try_driver(kiln_device_t* device, kiln_linker_t* linker) {
  const kiln_device_info_t* info = kiln_device_info(device);
  char arch[32];
  (void)snprintf(arch, sizeof(arch), "sm_%u%u", info->compute_major,
                 info->compute_minor);
  trial_t trial = {device, linker, arch, 0, 0};
  try_options(&trial);
  try_finished(&trial);
  return trial.wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const char* label = argc > 1 ? argv[1] : "cuda:0";
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_linker_t* linker = NULL;
  if (failed("runtime", kiln_runtime_create(NULL, &runtime))) return 1;
  if (failed(label, kiln_runtime_open_device(runtime, label, &device))) {
    printf("skipped: there is no %s\n", label);
    kiln_runtime_release(runtime);
    return 77;
  }
  kiln_linker_options_t options = kiln_linker_options_default();
  options.device = device;
  int result = 1;
  if (!failed("linker", kiln_runtime_open_linker(runtime, &options, &linker))) {
    result = try_backend(device, linker, KILN_LINK_BACKEND_DRIVER);
    if (try_driver(device, linker) != 0) result = 1;
    if (strcmp(label, "soft") != 0) {
      int other = try_backend(device, linker, KILN_LINK_BACKEND_NVJITLINK);
      if (other == 2) printf("no nvJitLink: the driver alone was tried\n");
      if (other == 1) result = 1;
    }
  }
  kiln_linker_release(linker);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return result;
}
