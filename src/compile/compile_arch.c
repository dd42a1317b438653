// SPDX-License-Identifier: Apache-2.0
//
// compile: which architecture a compilation is for.
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile_inside.h"

const char* kilni_compile_raw_arch(const kiln_compile_options_t* options) {
  static const char* const names[] = {"--gpu-architecture", "-arch"};
  for (uint32_t i = 0; i < options->option_count; i++) {
    const char* text = options->options[i];
    for (size_t k = 0; k < 2; k++) {
      size_t length = strlen(names[k]);
      if (strncmp(text, names[k], length) != 0) continue;
      if (text[length] == '=') return text + length + 1;
      if (text[length] != 0 || i + 1 == options->option_count) continue;
      return options->options[i + 1];
    }
  }
  return NULL;
}

static bool arch_is_machine_code(uint32_t format) {
  return format == KILN_CODE_FORMAT_CUBIN ||
         format == KILN_CODE_FORMAT_RELOCATABLE;
}

// The number of "sm_90a" or "compute_90"; 0 for what is none.
static uint32_t arch_number_of(const char* arch) {
  const char* at = strchr(arch, '_');
  if (at == NULL) return 0;
  uint32_t number = 0;
  for (at++; *at >= '0' && *at <= '9' && number < 100000; at++) {
    number = number * 10 + (uint32_t)(*at - '0');
  }
  return number;
}

// "sm_90", "compute_80", "sm_90a", "sm_100f": what a compiler may know.
static bool is_arch(const char* text) {
  const char* at = strncmp(text, "sm_", 3) == 0        ? text + 3
                   : strncmp(text, "compute_", 8) == 0 ? text + 8
                                                       : "";
  size_t digits = strspn(at, "0123456789");
  if (digits < 2) return false;
  at += digits;
  return at[0] == 0 || ((at[0] == 'a' || at[0] == 'f') && at[1] == 0);
}

static bool knows(const kiln_compiler_t* compiler, uint32_t number) {
  for (size_t i = 0; i < compiler->arch_count; i++) {
    if ((uint32_t)compiler->archs[i] == number) return true;
  }
  return false;
}

// The newest that is not above `number`; 0 if none.
static uint32_t newest_below(const kiln_compiler_t* compiler, uint32_t number) {
  uint32_t best = 0;
  for (size_t i = 0; i < compiler->arch_count; i++) {
    uint32_t arch = (uint32_t)compiler->archs[i];
    if (arch <= number && arch > best) best = arch;
  }
  return best;
}

static kiln_status_t note_lowered(const kiln_compiler_t* compiler,
                                  const char* wanted,
                                  kiln_compile_result_t* result) {
  kilni_base_str_t note;
  kilni_base_str_init(&note, result->allocator, 1024);
  kilni_base_str_addf(&note,
                      "%s is newer than NVRTC %u.%u: compiled for %s, the "
                      "newest that it supports",
                      wanted, (unsigned)compiler->table.major,
                      (unsigned)compiler->table.minor, result->arch);
  return kilni_base_str_take(&note, &result->note);
}

// Lowers an architecture that is newer than the compiler supports. The compiler
// itself refuses an unsupported older one, and what is not an architecture.
static kiln_status_t arch_lower(const kiln_compiler_t* compiler,
                                kiln_compile_result_t* result) {
  uint32_t number = arch_number_of(result->arch);
  if (number == 0 || compiler->arch_count == 0 || knows(compiler, number)) {
    return kiln_ok();
  }
  uint32_t best = newest_below(compiler, number);
  if (best == 0) return kiln_ok();
  bool machine = arch_is_machine_code(result->format);
  if (machine && best / 10 != number / 10) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "NVRTC %u.%u does not support %s, and a %s for sm_%u would "
                   "not load there",
                   (unsigned)compiler->table.major,
                   (unsigned)compiler->table.minor, result->arch,
                   kiln_code_format_name(result->format), (unsigned)best),
        "use PTX, which newer GPUs load, or a newer NVRTC");
  }
  char wanted[KILNI_COMPILE_ARCH_BYTES];
  memcpy(wanted, result->arch, sizeof(wanted));
  bool real = strncmp(wanted, "sm_", 3) == 0;
  snprintf(result->arch, sizeof(result->arch), "%s_%u", real ? "sm" : "compute",
           (unsigned)best);
  return note_lowered(compiler, wanted, result);
}

static void choose_default(const kiln_compiler_t* compiler,
                           kiln_compile_result_t* result) {
  // What every GPU can load that this compiler still knows.
  bool has_75 = compiler->arch_count == 0 || knows(compiler, 75);
  snprintf(result->arch, sizeof(result->arch), "compute_%d",
           has_75 ? 75 : compiler->archs[0]);
}

kiln_status_t kilni_compile_arch(const kiln_compiler_t* compiler,
                                 const kiln_compile_options_t* options,
                                 kiln_compile_result_t* result) {
  const char* raw = kilni_compile_raw_arch(options);
  const char* arch = raw != NULL ? raw : options->arch;
  bool machine = arch_is_machine_code(result->format);
  if (arch == NULL && !machine) {
    choose_default(compiler, result);
    return kiln_ok();
  }
  if (arch == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a %s is made for one real architecture, and none is given",
                   kiln_code_format_name(result->format)),
        "set `arch` (--arch) to that of the device, e.g. \"sm_90\"");
  }
  if (machine && strncmp(arch, "sm_", 3) != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a %s is made for one real architecture, not for \"%s\"",
                   kiln_code_format_name(result->format), arch),
        "set `arch` (--arch) to that of the device, e.g. \"sm_90\"");
  }
  // An invalid one is not a failed compilation; raw options are the compiler's.
  if (strlen(arch) >= sizeof(result->arch) || (raw == NULL && !is_arch(arch))) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is not an architecture", arch),
        "use e.g. \"sm_90\" or \"compute_80\"");
  }
  memcpy(result->arch, arch, strlen(arch) + 1);
  if (raw != NULL) return kiln_ok();
  if (compiler->kind == KILN_COMPILER_KIND_NVVM &&
      strncmp(arch, "sm_", 3) == 0) {
    snprintf(result->arch, sizeof(result->arch), "compute_%s", arch + 3);
    return kiln_ok();
  }
  return arch_lower(compiler, result);
}
