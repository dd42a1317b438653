// SPDX-License-Identifier: Apache-2.0
//
// cli: the format that the name of a code file implies.
#include "cli/cli_code_name.h"

#include <string.h>
#include <strings.h>

#include "kiln/code.h"

bool kilni_cli_ends_in(const char* text, const char* suffix) {
  size_t a = strlen(text);
  size_t b = strlen(suffix);
  return a > b && strcasecmp(text + a - b, suffix) == 0;
}

uint32_t kilni_cli_code_name_format(const char* path) {
  static const struct {
    const char* suffix;
    uint32_t format;
  } kFormats[] = {{".ptx", KILN_CODE_FORMAT_PTX},
                  {".cubin", KILN_CODE_FORMAT_CUBIN},
                  {".ltoir", KILN_CODE_FORMAT_LTOIR},
                  {".relocatable", KILN_CODE_FORMAT_RELOCATABLE}};
  for (size_t i = 0; i < sizeof(kFormats) / sizeof(kFormats[0]); i++) {
    if (kilni_cli_ends_in(path, kFormats[i].suffix)) return kFormats[i].format;
  }
  return 0;
}

// Not device code, or of a format that is not written here.
static const char* other_suffix(const char* path, uint32_t format) {
  static const char* const kOthers[] = {
      ".fatbin", ".o",   ".obj", ".a",    ".so",  ".lib", ".dll", ".exe",
      ".cu",     ".cuh", ".c",   ".cc",   ".cpp", ".cxx", ".h",   ".hpp",
      ".ll",     ".bc",  ".py",  ".json", ".csv", ".npy", ".png", ".kiln",
      ".gz",     ".zip", ".zst", ".xz",   ".bz2", ".tar", ".d"};
  static const char* const kTexts[] = {".txt", ".text", ".s", ".asm", ".log"};
  for (size_t i = 0; i < sizeof(kOthers) / sizeof(kOthers[0]); i++) {
    if (kilni_cli_ends_in(path, kOthers[i])) return kOthers[i];
  }
  for (size_t i = 0; i < sizeof(kTexts) / sizeof(kTexts[0]); i++) {
    bool is_text = format == KILN_CODE_FORMAT_PTX;
    if (!is_text && kilni_cli_ends_in(path, kTexts[i])) return kTexts[i];
  }
  return NULL;
}

bool kilni_cli_code_name_check(const char* path, uint32_t format, bool asked,
                               kilni_cli_error_t* error) {
  if (path == NULL) return true;
  uint32_t named = kilni_cli_code_name_format(path);
  // Relocatable code is a cubin that is not linked yet.
  if (named == format || (named == KILN_CODE_FORMAT_CUBIN &&
                          format == KILN_CODE_FORMAT_RELOCATABLE)) {
    return true;
  }
  if (named != 0) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "\"%s\" is a name for %s, but the output is %s", path,
                         kiln_code_format_name(named),
                         kiln_code_format_name(format));
    kilni_cli_error_fix(error, "let the name end in .%s",
                        kiln_code_format_name(format));
    return false;
  }
  const char* other = asked ? NULL : other_suffix(path, format);
  if (other == NULL) return true;
  return kilni_cli_fail(
      error, KILN_STATUS_UNSUPPORTED,
      "name it .ptx, .cubin or .ltoir, or select the format with --output; "
      "nvcc makes fatbins and objects",
      "\"%s\": Kiln does not write \"%s\" files", path, other);
}
