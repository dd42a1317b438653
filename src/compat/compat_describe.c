// SPDX-License-Identifier: Apache-2.0
//
// compat: how a message names a component, the driver, a release and a command.
#include <stdio.h>
#include <string.h>

#include "base/fix_words.h"
#include "base/str.h"
#include "compat/compat_rules.h"
#include "kiln/compat.h"

bool kilni_compat_fact_is(const kiln_compat_fact_t* fact, uint32_t kind,
                          const char* name) {
  return fact->kind == kind && strcmp(fact->name, name) == 0;
}

kilni_compat_line_text_t kilni_compat_line_text(uint32_t line) {
  kilni_compat_line_text_t out;
  if (line == 0) {
    snprintf(out.text, sizeof(out.text), "an unknown release");
  } else {
    snprintf(out.text, sizeof(out.text), "CUDA %u.%u",
             (unsigned)kiln_compat_line_major(line),
             (unsigned)kiln_compat_line_minor(line));
  }
  return out;
}

void kilni_compat_fact_describe(kilni_base_str_t* str,
                                const kiln_compat_fact_t* fact) {
  kilni_base_str_addf(str, "%s:%s of %s", kiln_compat_kind_word(fact->kind),
                      fact->name, kilni_compat_line_text(fact->line).text);
  bool has_path = fact->path[0] != '\0';
  bool has_evidence = fact->evidence[0] != '\0';
  if (!has_path && !has_evidence) return;
  kilni_base_str_add_cstr(str, " (");
  if (has_path) kilni_base_str_addf(str, "\"%s\"", fact->path);
  if (has_path && has_evidence) kilni_base_str_add_cstr(str, ", ");
  if (has_evidence) kilni_base_str_addf(str, "by %s", fact->evidence);
  kilni_base_str_add_cstr(str, ")");
}

void kilni_compat_driver_describe(kilni_base_str_t* str,
                                  const kiln_compat_driver_t* driver) {
  kilni_base_str_addf(str, "the driver of %s",
                      kilni_compat_line_text(driver->line).text);
  bool has_release = driver->release != NULL || driver->branch != 0;
  bool has_evidence = driver->evidence != NULL && driver->evidence[0] != '\0';
  if (!has_release && !has_evidence) return;
  kilni_base_str_add_cstr(str, " (");
  if (driver->release != NULL) {
    kilni_base_str_addf(str, "release %s", driver->release);
  } else if (has_release) {
    kilni_base_str_addf(str, "branch %u", (unsigned)driver->branch);
  }
  if (has_release && has_evidence) kilni_base_str_add_cstr(str, ", ");
  if (has_evidence) kilni_base_str_addf(str, "by %s", driver->evidence);
  kilni_base_str_add_cstr(str, ")");
}

// The extra of the wheel cuda-toolkit that brings a component.
static const struct {
  uint32_t kind;
  const char* name;
  const char* extra;
} kExtras[] = {
    {KILN_COMPAT_KIND_LIB, "cudart", "cudart"},
    {KILN_COMPAT_KIND_LIB, "nvrtc", "nvrtc"},
    {KILN_COMPAT_KIND_LIB, "nvJitLink", "nvjitlink"},
    {KILN_COMPAT_KIND_LIB, "nvfatbin", "nvfatbin"},
    {KILN_COMPAT_KIND_LIB, "nvvm", "nvvm"},
    {KILN_COMPAT_KIND_LIB, "cublas", "cublas"},
    {KILN_COMPAT_KIND_LIB, "cublasLt", "cublas"},
    {KILN_COMPAT_KIND_LIB, "cufft", "cufft"},
    {KILN_COMPAT_KIND_LIB, "curand", "curand"},
    {KILN_COMPAT_KIND_LIB, "cusolver", "cusolver"},
    {KILN_COMPAT_KIND_LIB, "cusparse", "cusparse"},
    {KILN_COMPAT_KIND_HEADER, "cudart", "cudart"},
    {KILN_COMPAT_KIND_HEADER, "cccl", "cccl"},
    {KILN_COMPAT_KIND_HEADER, "nvrtc", "nvrtc"},
    {KILN_COMPAT_KIND_STATIC, "cudadevrt", "cudart"},
    {KILN_COMPAT_KIND_BITCODE, "device", "nvvm"},
    {KILN_COMPAT_KIND_BINARY, "nvcc", "nvcc"},
    {KILN_COMPAT_KIND_BINARY, "ptxas", "nvcc"},
};

void kilni_compat_fact_install(kilni_base_str_t* str,
                               const kiln_compat_fact_t* fact, uint32_t line) {
  const char* extra = "all";
  for (size_t i = 0; i < sizeof(kExtras) / sizeof(kExtras[0]); i++) {
    if (kilni_compat_fact_is(fact, kExtras[i].kind, kExtras[i].name)) {
      extra = kExtras[i].extra;
    }
  }
  // In CUDA 12 the compiler's wheel brings libNVVM and libdevice.
  if (kiln_compat_line_major(line) < 13 && strcmp(extra, "nvvm") == 0) {
    extra = "nvcc";
  }
  kilni_base_str_addf(str,
                      "`python3 -m pip install "
                      "\"cuda-toolkit[%s]==%u.%u.*\"`" KILNI_FIX_ENVIRONMENT,
                      extra, (unsigned)kiln_compat_line_major(line),
                      (unsigned)kiln_compat_line_minor(line));
}
