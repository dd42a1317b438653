// SPDX-License-Identifier: Apache-2.0
//
// table: the one thing that NVML is asked: the display driver's release.
//
// Opens libnvidia-ml.so.1 by the system loader. Initialising it is counted by
// the library, so that a host program which uses it too is not disturbed.
#include <string.h>

#include "table/table.h"

// A result of NVML; 0 is success.
typedef int (*nvml_plain_fn_t)(void);
typedef int (*nvml_text_fn_t)(char* text, unsigned int size);

enum { NVML_VERSION_BYTES = 80 };

// "580.65.06", or nothing for what is no such text.
static bool is_release(const char* text) {
  size_t dots = 0;
  bool digit = false;
  for (const char* at = text; *at != 0; at++) {
    if (*at == '.') {
      if (!digit) return false;
      dots++;
      digit = false;
    } else if (*at >= '0' && *at <= '9') {
      digit = true;
    } else {
      return false;
    }
  }
  return digit && (dots == 1 || dots == 2);
}

static void take(const kilni_dynlib_t* library, size_t capacity,
                 char* out_text) {
  void* symbols[] = {
      kilni_dynlib_symbol(library, "nvmlInit_v2"),
      kilni_dynlib_symbol(library, "nvmlShutdown"),
      kilni_dynlib_symbol(library, "nvmlSystemGetDriverVersion")};
  if (symbols[0] == NULL || symbols[1] == NULL || symbols[2] == NULL) return;
  nvml_plain_fn_t init;
  nvml_plain_fn_t shutdown;
  nvml_text_fn_t version;
  memcpy(&init, &symbols[0], sizeof(init));
  memcpy(&shutdown, &symbols[1], sizeof(shutdown));
  memcpy(&version, &symbols[2], sizeof(version));
  char text[NVML_VERSION_BYTES] = "";
  if (init() != 0) return;
  int result = version(text, (unsigned int)sizeof(text));
  (void)shutdown();
  text[sizeof(text) - 1] = 0;
  if (result != 0 || !is_release(text) || strlen(text) >= capacity) return;
  memcpy(out_text, text, strlen(text) + 1);
}

kiln_status_t kilni_nvml_release_ask(const kiln_host_t* host, size_t capacity,
                                     char* out_text) {
  out_text[0] = 0;
  kilni_dynlib_t* library = NULL;
  kiln_status_t status =
      kilni_dynlib_open(host->allocator, "libnvidia-ml.so.1", &library);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  if (library == NULL) return NULL;
  take(library, capacity, out_text);
  kilni_dynlib_close(library);
  return NULL;
}
