// SPDX-License-Identifier: Apache-2.0
//
// cli: makes a single GPU visible to this process.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_visible.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_literal.h"

enum { CUDA_NO_DEVICE = 100 };  // the driver's number

// The length of the valid entry at `text`, 0 if it is invalid.
static size_t entry_length(const char* text) {
  size_t size = strcspn(text, ",");
  while (size > 0 && text[size - 1] == ' ') size--;
  if (size == 0 || size >= KILNI_CLI_VISIBLE_MAX) return 0;
  if ((size > 4 && memcmp(text, "GPU-", 4) == 0) ||
      (size > 4 && memcmp(text, "MIG-", 4) == 0)) {
    return size;
  }
  for (size_t i = 0; i < size; i++) {
    if (text[i] < '0' || text[i] > '9') return 0;
  }
  return size;
}

bool kilni_cli_visible_compose(const char* visible, uint32_t ordinal,
                               char out[KILNI_CLI_VISIBLE_MAX],
                               kilni_cli_error_t* error) {
  out[0] = 0;
  if (visible == NULL) {
    (void)snprintf(out, KILNI_CLI_VISIBLE_MAX, "%" PRIu32, ordinal);
    return true;
  }
  const char* at = visible;
  uint32_t seen = 0;
  for (;;) {
    while (*at == ' ') at++;
    size_t size = entry_length(at);
    if (size == 0) break;
    if (seen == ordinal) {
      memcpy(out, at, size);
      out[size] = 0;
      return true;
    }
    seen++;
    at += strcspn(at, ",");
    if (*at == 0) break;
    at++;
  }
  return kilni_cli_fail(
      error, KILN_STATUS_NOT_FOUND,
      "unset CUDA_VISIBLE_DEVICES, name a GPU that it lists, or use "
      "--device soft",
      "there is no GPU cuda:%" PRIu32
      ": CUDA_VISIBLE_DEVICES=\"%s\" shows %" PRIu32 " GPU%s",
      ordinal, visible, seen, seen == 1 ? "" : "s");
}

bool kilni_cli_visible_apply(uint32_t ordinal, kilni_cli_error_t* error) {
  char value[KILNI_CLI_VISIBLE_MAX];
  if (!kilni_cli_visible_compose(getenv("CUDA_VISIBLE_DEVICES"), ordinal, value,
                                 error)) {
    return false;
  }
  if (setenv("CUDA_VISIBLE_DEVICES", value, 1) == 0) return true;
  return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                        "no memory for an environment variable");
}

void kilni_cli_visible_explain(uint32_t ordinal, kilni_cli_error_t* error) {
  if (strcmp(error->native_domain, "cuda") != 0 ||
      error->native_number != CUDA_NO_DEVICE) {
    return;
  }
  const kilni_cli_error_t native = *error;
  (void)kilni_cli_fail(
      error, KILN_STATUS_NOT_FOUND,
      "run `kiln doctor` or `nvidia-smi -L` to see which GPUs there are, name "
      "one of them, or use --device soft",
      "there is no GPU cuda:%" PRIu32 ": the driver shows none (%s)", ordinal,
      native.native_name);
  memcpy(error->native_domain, native.native_domain,
         sizeof(error->native_domain));
  memcpy(error->native_name, native.native_name, sizeof(error->native_name));
  error->native_number = native.native_number;
}

bool kilni_cli_cuda_name_parse(const char* name, uint32_t* out_ordinal) {
  *out_ordinal = 0;
  if (strcmp(name, "cuda") == 0) return true;
  if (strncmp(name, "cuda:", 5) != 0) return false;
  uint64_t value;
  if (strspn(name + 5, "0123456789") != strlen(name + 5) ||
      !kilni_cli_u64_parse(name + 5, strlen(name + 5), &value) ||
      value > INT32_MAX) {
    return false;
  }
  *out_ordinal = (uint32_t)value;
  return true;
}
