// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pipelines. Nothing of them is there yet, and says so.
#include <string.h>

#include "dispatch/dispatch_inside.h"

static kiln_status_t missing(const char* what) {
  return kilni_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "%s is not there yet", what),
      "launch the kernel with kiln_kernel_launch");
}

kiln_status_t kiln_pipeline_create(kiln_dispatcher_t* dispatcher,
                                   kiln_program_t* program,
                                   const kiln_pipeline_options_t* options,
                                   kiln_pipeline_t** out_pipeline) {
  (void)dispatcher;
  (void)program;
  (void)options;
  if (out_pipeline != NULL) *out_pipeline = NULL;
  return missing("kiln_pipeline_create");
}

kiln_status_t kiln_pipeline_create_kernel(kiln_dispatcher_t* dispatcher,
                                          kiln_kernel_t* kernel,
                                          const kiln_interface_t* interface,
                                          kiln_pipeline_t** out_pipeline) {
  (void)dispatcher;
  (void)kernel;
  (void)interface;
  if (out_pipeline != NULL) *out_pipeline = NULL;
  return missing("kiln_pipeline_create_kernel");
}

void kiln_pipeline_retain(kiln_pipeline_t* pipeline) {
  (void)pipeline;
}

void kiln_pipeline_release(kiln_pipeline_t* pipeline) {
  (void)pipeline;
}

const kiln_pipeline_info_t* kiln_pipeline_info(
    const kiln_pipeline_t* pipeline) {
  (void)pipeline;
  return NULL;
}

bool kiln_pipeline_parameter(const kiln_pipeline_t* pipeline, uint32_t index,
                             kiln_pipeline_parameter_t* out_parameter) {
  (void)pipeline;
  (void)index;
  if (out_parameter != NULL) memset(out_parameter, 0, sizeof(*out_parameter));
  return false;
}

bool kiln_pipeline_find_parameter(const kiln_pipeline_t* pipeline,
                                  const char* name, uint32_t* out_index) {
  (void)pipeline;
  (void)name;
  *out_index = 0;
  return false;
}

kiln_dispatcher_t* kiln_pipeline_dispatcher(const kiln_pipeline_t* pipeline) {
  (void)pipeline;
  return NULL;
}

kiln_kernel_t* kiln_pipeline_kernel(const kiln_pipeline_t* pipeline) {
  (void)pipeline;
  return NULL;
}

kiln_program_code_t* kiln_pipeline_code(const kiln_pipeline_t* pipeline) {
  (void)pipeline;
  return NULL;
}

kiln_status_t kiln_pipeline_plan(kiln_pipeline_t* pipeline,
                                 const kiln_binding_t* bindings,
                                 uint32_t binding_count,
                                 const kiln_dispatch_options_t* options,
                                 kiln_dispatch_plan_t* out_plan) {
  (void)pipeline;
  (void)bindings;
  (void)binding_count;
  (void)options;
  if (out_plan != NULL) memset(out_plan, 0, sizeof(*out_plan));
  return missing("kiln_pipeline_plan");
}

kiln_status_t kiln_pipeline_dispatch(kiln_pipeline_t* pipeline,
                                     kiln_stream_t* stream,
                                     const kiln_binding_t* bindings,
                                     uint32_t binding_count,
                                     const kiln_dispatch_options_t* options,
                                     kiln_pending_t** out_pending) {
  (void)pipeline;
  (void)stream;
  (void)bindings;
  (void)binding_count;
  (void)options;
  if (out_pending != NULL) *out_pending = NULL;
  return missing("kiln_pipeline_dispatch");
}

kiln_status_t kiln_pipeline_dispatch_batch(
    kiln_pipeline_t* pipeline, kiln_stream_t* stream,
    const kiln_dispatch_batch_t* batch, const kiln_dispatch_options_t* options,
    kiln_pending_t** out_pending) {
  (void)pipeline;
  (void)stream;
  (void)batch;
  (void)options;
  if (out_pending != NULL) *out_pending = NULL;
  return missing("kiln_pipeline_dispatch_batch");
}

kiln_status_t kiln_pipeline_prepare(kiln_pipeline_t* pipeline,
                                    const kiln_binding_t* bindings,
                                    uint32_t binding_count,
                                    const kiln_dispatch_options_t* options,
                                    kiln_prepared_t** out_prepared) {
  (void)pipeline;
  (void)bindings;
  (void)binding_count;
  (void)options;
  if (out_prepared != NULL) *out_prepared = NULL;
  return missing("kiln_pipeline_prepare");
}

void kiln_prepared_retain(kiln_prepared_t* prepared) {
  (void)prepared;
}

void kiln_prepared_release(kiln_prepared_t* prepared) {
  (void)prepared;
}

kiln_status_t kiln_prepared_run(kiln_prepared_t* prepared,
                                kiln_stream_t* stream) {
  (void)prepared;
  (void)stream;
  return missing("kiln_prepared_run");
}

kiln_status_t kiln_prepared_rebind(kiln_prepared_t* prepared, uint32_t index,
                                   const kiln_binding_t* binding) {
  (void)prepared;
  (void)index;
  (void)binding;
  return missing("kiln_prepared_rebind");
}

kiln_status_t kiln_prepared_set_scalar(kiln_prepared_t* prepared,
                                       uint32_t index, uint64_t bits) {
  (void)prepared;
  (void)index;
  (void)bits;
  return missing("kiln_prepared_set_scalar");
}

kiln_status_t kiln_prepared_check(kiln_prepared_t* prepared,
                                  kiln_trap_t* out_trap) {
  (void)prepared;
  if (out_trap != NULL) memset(out_trap, 0, sizeof(*out_trap));
  return missing("kiln_prepared_check");
}

void kiln_prepared_plan(const kiln_prepared_t* prepared,
                        kiln_dispatch_plan_t* out_plan) {
  (void)prepared;
  if (out_plan != NULL) memset(out_plan, 0, sizeof(*out_plan));
}

kiln_pipeline_t* kiln_prepared_pipeline(const kiln_prepared_t* prepared) {
  (void)prepared;
  return NULL;
}

kiln_launch_t* kiln_prepared_launch(const kiln_prepared_t* prepared) {
  (void)prepared;
  return NULL;
}
