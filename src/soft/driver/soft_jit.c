// SPDX-License-Identifier: Apache-2.0
//
// soft: the options of loads and links, and the logs that they ask for.
#include "soft/driver/soft_jit.h"

#include <string.h>

#include "base/thread.h"
#include "table/cuda_abi.h"

enum { KNOWN_JIT_OPTIONS = 64 };

kiln_cu_result_t kilni_soft_jit_read(unsigned int count,
                                     const kiln_cu_jit_option_t* options,
                                     void** values, kilni_soft_jit_t* out_jit) {
  memset(out_jit, 0, sizeof(*out_jit));
  if (count > 0 && (options == NULL || values == NULL)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  for (unsigned int i = 0; i < count; i++) {
    switch (options[i]) {
      case KILN_CU_JIT_ERROR_LOG_BUFFER:
        out_jit->error = values[i];
        break;
      case KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        out_jit->error_size = &values[i];
        out_jit->error_space = (unsigned int)(uintptr_t)values[i];
        break;
      case KILN_CU_JIT_INFO_LOG_BUFFER:
        out_jit->info = values[i];
        break;
      case KILN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        out_jit->info_size = &values[i];
        out_jit->info_space = (unsigned int)(uintptr_t)values[i];
        break;
      case KILN_CU_JIT_WALL_TIME:
        out_jit->wall_time = &values[i];
        break;
      default:
        // Hints for a compiler, which this device does not have.
        if (options[i] >= KNOWN_JIT_OPTIONS) return KILN_CU_ERROR_INVALID_VALUE;
        break;
    }
  }
  return KILN_CU_SUCCESS;
}

static void put_log(char* buffer, size_t space, void** size, const char* text) {
  size_t length = 0;
  if (buffer != NULL && space > 0) {
    length = strlen(text);
    if (length > space - 1) length = space - 1;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
  }
  if (size != NULL) *size = (void*)(uintptr_t)length;
}

void kilni_soft_jit_put(const kilni_soft_jit_t* jit, const char* error,
                        const char* info, uint64_t started_ns) {
  put_log(jit->error, jit->error_space, jit->error_size, error);
  put_log(jit->info, jit->info_space, jit->info_size, info);
  if (jit->wall_time != NULL) {
    float ms = (float)(kilni_base_time_ns() - started_ns) / 1e6f;
    memcpy(jit->wall_time, &ms, sizeof(ms));
  }
}

static void scribble(char* buffer, size_t space, void** size) {
  if (buffer != NULL && space > 0) {
    memset(buffer, '#', space - 1);
    buffer[space - 1] = '\0';
  }
  if (size != NULL) *size = (void*)(uintptr_t)(space > 0 ? space - 1 : 0);
}

void kilni_soft_jit_scribble(const kilni_soft_jit_t* jit) {
  scribble(jit->error, jit->error_space, jit->error_size);
  scribble(jit->info, jit->info_space, jit->info_size);
  if (jit->wall_time != NULL) *jit->wall_time = NULL;
}
