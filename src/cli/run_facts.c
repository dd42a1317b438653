// SPDX-License-Identifier: Apache-2.0
//
// cli: facts about a loaded kernel.
#include "cli/run_facts.h"

#include <inttypes.h>
#include <string.h>

#include "kiln/image.h"

static void find_use(kilni_cli_code_t* code, kilni_cli_kernel_t* facts,
                     kiln_image_use_t** out_use) {
  uint32_t index = 0;
  const kiln_image_t* image = kilni_cli_code_image(code);
  if (image == NULL) return;
  kiln_status_t status = kiln_image_kernel_find(image, facts->name, &index);
  if (kiln_status_is_ok(status)) {
    status = kiln_image_use_create(image, index, out_use);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return;
  }
  const kiln_image_threads_t* threads = kiln_image_use_threads(*out_use);
  facts->use = *out_use;
  facts->thread_dimensions = threads->tid_dimensions;
  facts->block_dimensions = threads->ctaid_dimensions;
}

bool kilni_cli_facts_make(kiln_kernel_t* kernel, kilni_cli_code_t* code,
                          kilni_cli_kernel_t* out, kiln_image_use_t** out_use,
                          kilni_cli_error_t* error) {
  const kiln_kernel_info_t* info = kiln_kernel_info(kernel);
  memset(out, 0, sizeof(*out));
  *out_use = NULL;
  out->name = info->name;
  out->params_known = info->params_known != 0;
  out->param_count = info->param_count;
  out->max_threads = info->max_threads;
  memcpy(out->required_block, info->required_block,
         sizeof(out->required_block));
  if (out->param_count > KILNI_CLI_MAX_PARAMS) {
    return kilni_cli_fail(error, KILN_STATUS_LIMIT_EXCEEDED,
                          "pass a struct, or a buffer of them",
                          "the kernel \"%s\" has %" PRIu32 " parameters",
                          out->name, out->param_count);
  }
  for (uint32_t i = 0; i < out->param_count; i++) {
    const kiln_kernel_param_t* param = kiln_kernel_param(kernel, i);
    out->params[i].name = param->name;
    out->params[i].bytes = param->bytes;
    out->params[i].kind = param->kind;
  }
  find_use(code, out, out_use);
  return true;
}
