// SPDX-License-Identifier: Apache-2.0
//
// runtime: every struct that a caller hands in and that keeps a field
// `reserved` for later is refused while that is not zero: by whom it says, and
// what to do. layout_reserved_is_checked holds the table to the headers. So is
// every one that says a smaller size than it ever had.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/kiln.h"
#include "says.h"

enum { BYTES = 64, MOST_BYTES = 8192 };

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry take(.param .u32 n)\n{\n  ret;\n}\n";

static const char kProgram[] =
    "program count(n: u32, y: out u32[n]) work n\n"
    "{ let i = global_id.x; y[i] = i; }\n";

// What the calls need. one-thread
typedef struct world_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_buffer_t* buffer;
  kiln_code_t* code;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_graph_t* graph;
  kiln_cache_t* cache;
  kiln_locate_t* locate;
  kiln_compiler_t* compiler;
  kiln_dispatcher_t* dispatcher;
  kiln_program_t* program;
  kiln_pipeline_t* pipeline;
  kiln_sequence_t* sequence;
} world_t;

static void assert_ok(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  fail_msg("%s", text);
}

static kiln_bytes_view_t ptx(void) {
  kiln_bytes_view_t view = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  return view;
}

// ---- Calls that read such a struct ----
//
// Each hands in `given` and lets go of what it gets.

static kiln_status_t runtime(world_t* w, const void* given) {
  (void)w;
  kiln_runtime_t* out = NULL;
  kiln_status_t status = kiln_runtime_create(given, &out);
  kiln_runtime_release(out);
  return status;
}

static kiln_status_t toolkit(world_t* w, const void* given) {
  (void)w;
  kiln_toolkit_t* out = NULL;
  kiln_status_t status = kiln_toolkit_create(given, &out);
  kiln_toolkit_release(out);
  return status;
}

static kiln_status_t toolkit_of_a_runtime(world_t* w, const void* given) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.toolkit = given;
  return runtime(w, &options);
}

static kiln_status_t log_of_a_runtime(world_t* w, const void* given) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.log = given;
  return runtime(w, &options);
}

static kiln_status_t log_of_a_toolkit(world_t* w, const void* given) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.log = given;
  return toolkit(w, &options);
}

static kiln_status_t log_of_a_cache(world_t* w, const void* given) {
  (void)w;
  kiln_cache_options_t options = kiln_cache_options_default();
  options.disk = KILN_SWITCH_OFF;
  options.log = given;
  kiln_cache_t* out = NULL;
  kiln_status_t status = kiln_cache_create(&options, &out);
  kiln_cache_release(out);
  return status;
}

static kiln_status_t linker(world_t* w, const void* given) {
  kiln_linker_t* out = NULL;
  kiln_status_t status = kiln_runtime_open_linker(w->runtime, given, &out);
  kiln_linker_release(out);
  return status;
}

static kiln_status_t runtimes_dispatcher(world_t* w, const void* given) {
  kiln_dispatcher_t* out = NULL;
  kiln_status_t status =
      kiln_runtime_open_dispatcher(w->runtime, w->device, given, &out);
  kiln_dispatcher_release(out);
  return status;
}

static kiln_status_t dispatcher(world_t* w, const void* given) {
  kiln_dispatcher_t* out = NULL;
  kiln_status_t status = kiln_dispatcher_create(w->device, given, &out);
  kiln_dispatcher_release(out);
  return status;
}

// The output is refused behind it: this NVRTC never ends.
static kiln_status_t compile(world_t* w, const void* given) {
  kiln_compile_options_t options;
  memcpy(&options, given, sizeof(options));
  options.output = UINT32_MAX;
  kiln_string_view_t source = {"", 0};
  kiln_compile_result_t* out = NULL;
  kiln_status_t status =
      kiln_compiler_compile(w->compiler, source, &options, &out);
  kiln_compile_result_release(out);
  return status;
}

static kiln_status_t compile_plan(world_t* w, const void* given) {
  kiln_compile_result_t* out = NULL;
  kiln_status_t status = kiln_compiler_plan(w->compiler, given, &out);
  kiln_compile_result_release(out);
  return status;
}

static kiln_status_t link_facts(world_t* w, const void* given) {
  (void)w;
  kiln_link_choice_t* out = NULL;
  kiln_status_t status = kiln_link_choose(given, NULL, &out);
  kiln_link_choice_release(out);
  return status;
}

static kiln_status_t link_input(world_t* w, const void* given) {
  (void)w;
  kiln_link_facts_t facts = kiln_link_facts_default();
  facts.inputs = given;
  facts.input_count = 1;
  kiln_link_choice_t* out = NULL;
  kiln_status_t status = kiln_link_choose(&facts, NULL, &out);
  kiln_link_choice_release(out);
  return status;
}

static kiln_status_t image(world_t* w, const void* given) {
  (void)w;
  kiln_image_t* out = NULL;
  kiln_status_t status = kiln_image_create(ptx(), given, &out);
  kiln_image_release(out);
  return status;
}

static kiln_status_t module(world_t* w, const void* given) {
  kiln_module_t* out = NULL;
  kiln_status_t status = kiln_module_load(w->device, ptx(), given, NULL, &out);
  kiln_module_release(out);
  return status;
}

static kiln_status_t module_of_code(world_t* w, const void* given) {
  kiln_module_t* out = NULL;
  kiln_status_t status = kiln_module_create(w->device, w->code, given, &out);
  kiln_module_release(out);
  return status;
}

static kiln_status_t launch_attributes(world_t* w, const void* given) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.attributes = given;
  kiln_launch_t* out = NULL;
  kiln_status_t status = kiln_launch_create(w->kernel, &config, &out);
  kiln_launch_release(out);
  return status;
}

static kiln_status_t pool(world_t* w, const void* given) {
  kiln_pool_t* out = NULL;
  kiln_status_t status = kiln_pool_create(w->device, given, &out);
  kiln_pool_release(out);
  return status;
}

static kiln_status_t transient(world_t* w, const void* given) {
  kiln_transient_t* out = NULL;
  kiln_status_t status = kiln_transient_create(w->stream, given, &out);
  kiln_transient_release(out);
  return status;
}

static kiln_status_t buffer_of_another(world_t* w, const void* given) {
  kiln_buffer_t* out = NULL;
  kiln_status_t status = kiln_buffer_import(w->device, given, NULL, &out);
  kiln_buffer_release(out);
  return status;
}

static kiln_status_t array(world_t* w, const void* given) {
  kiln_array_t* out = NULL;
  kiln_status_t status = kiln_array_create(w->device, given, &out);
  kiln_array_release(out);
  return status;
}

static kiln_status_t texels(world_t* w, const void* given) {
  kiln_texture_t* out = NULL;
  kiln_status_t status =
      kiln_texture_create_buffer(w->buffer, given, NULL, &out);
  kiln_texture_release(out);
  return status;
}

static kiln_status_t texture(world_t* w, const void* given) {
  kiln_texels_t from = kiln_texels_default();
  kiln_texture_t* out = NULL;
  kiln_status_t status =
      kiln_texture_create_buffer(w->buffer, &from, given, &out);
  kiln_texture_release(out);
  return status;
}

static kiln_status_t tensor(world_t* w, const void* given) {
  kiln_tensor_map_t out;
  return kiln_tensor_map_encode(w->device, given, &out);
}

static kiln_status_t builder(world_t* w, const void* given) {
  kiln_graph_builder_t* out = NULL;
  kiln_status_t status = kiln_graph_builder_create(w->device, given, &out);
  kiln_graph_builder_release(out);
  return status;
}

static kiln_status_t trace(world_t* w, const void* given) {
  kiln_graph_trace_t* out = NULL;
  kiln_status_t status = kiln_graph_trace_create(w->graph, given, &out);
  kiln_graph_trace_release(out);
  return status;
}

static kiln_status_t work(world_t* w, const void* given) {
  return kiln_graph_add(w->graph, NULL, 0, given, NULL);
}

// The short way, which launches that the graph knows take.
static kiln_status_t known_work(world_t* w, const void* given) {
  kiln_launch_t* launch = NULL;
  kiln_launch_config_t config = kiln_launch_config_default();
  assert_ok(kiln_launch_create(w->kernel, &config, &launch));
  assert_ok(kiln_launch_set(launch, 0, kiln_arg_u32(1)));
  kiln_graph_work_t plain = kiln_graph_work_launch(launch);
  assert_ok(kiln_graph_add(w->graph, NULL, 0, &plain, NULL));
  kiln_graph_work_t again = plain;
  again.reserved = ((const kiln_graph_work_t*)given)->reserved;
  kiln_status_t status = kiln_graph_add(w->graph, NULL, 0, &again, NULL);
  kiln_launch_release(launch);
  return status;
}

static kiln_status_t addition(world_t* w, const void* given) {
  return kiln_graph_add_all(w->graph, given, 1, NULL);
}

static kiln_status_t edge(world_t* w, const void* given) {
  return kiln_graph_connect(w->graph, given, 1);
}

static kiln_status_t cache_key(world_t* w, const void* given) {
  kiln_cache_entry_t* out = NULL;
  kiln_status_t status = kiln_cache_get(w->cache, given, &out);
  kiln_cache_entry_release(out);
  return status;
}

static kiln_status_t give(void* user, kiln_cache_output_t* out) {
  memcpy(out, user, sizeof(*out));
  return kiln_ok();
}

static kiln_status_t cache_output(world_t* w, const void* given) {
  kiln_cache_output_t output;
  memcpy(&output, given, sizeof(output));
  kiln_cache_request_t request = kiln_cache_request_default();
  request.key.kind = "reserved";
  request.make = give;
  request.user = &output;
  kiln_cache_entry_t* out = NULL;
  kiln_status_t status = kiln_cache_get_or_make(w->cache, &request, &out, NULL);
  kiln_cache_entry_release(out);
  return status;
}

static kiln_status_t override(world_t* w, const void* given) {
  (void)w;
  kiln_locate_options_t options = kiln_locate_options_default();
  options.overrides = given;
  options.override_count = 1;
  kiln_locate_t* out = NULL;
  kiln_status_t status = kiln_locate_create(&options, &out);
  kiln_locate_release(out);
  return status;
}

static kiln_status_t want(world_t* w, const void* given) {
  kiln_locate_set_t* out = NULL;
  kiln_status_t status = kiln_locate_find_set(w->locate, given, 1, &out);
  kiln_locate_set_release(out);
  return status;
}

static kiln_status_t need(world_t* w, const void* given) {
  (void)w;
  kiln_compat_fact_t fact = kiln_compat_fact_default();
  fact.name = "nvrtc";
  fact.kind = KILN_COMPAT_KIND_LIB;
  fact.class_id = KILN_COMPAT_CLASS_CTK;
  fact.needs = given;
  fact.need_count = 1;
  const kiln_compat_fact_t* facts[] = {&fact};
  kiln_compat_request_t request = kiln_compat_request_default();
  request.facts = facts;
  request.fact_count = 1;
  kiln_compat_report_t* out = NULL;
  kiln_status_t status = kiln_compat_check(&request, &out);
  kiln_compat_report_release(out);
  return status;
}

static kiln_status_t pipeline(world_t* w, const void* given) {
  kiln_pipeline_t* out = NULL;
  kiln_status_t status =
      kiln_pipeline_create(w->dispatcher, w->program, given, &out);
  kiln_pipeline_release(out);
  return status;
}

static kiln_status_t parameter(world_t* w, const void* given) {
  kiln_interface_t interface = kiln_interface_default();
  interface.parameters = given;
  interface.parameter_count = 1;
  kiln_pipeline_t* out = NULL;
  kiln_status_t status =
      kiln_pipeline_create_kernel(w->dispatcher, w->kernel, &interface, &out);
  kiln_pipeline_release(out);
  return status;
}

static kiln_status_t dispatch(world_t* w, const void* given) {
  static uint32_t y[1];  // written when the call has returned
  kiln_binding_t bindings[] = {kiln_bind_u32(1),
                               kiln_bind_host_out(y, sizeof(y))};
  return kiln_pipeline_dispatch(w->pipeline, NULL, bindings, 2, given, NULL);
}

static kiln_status_t step(world_t* w, const void* given) {
  static uint32_t y[1];  // written when the call has returned
  kiln_binding_t bindings[] = {kiln_bind_u32(1),
                               kiln_bind_host_out(y, sizeof(y))};
  return kiln_sequence_add_dispatch(w->sequence, w->pipeline, bindings, 2,
                                    given, NULL);
}

static kiln_status_t fixpoint(world_t* w, const void* given) {
  return kiln_sequence_begin_fixpoint(w->sequence, given, NULL);
}

static kiln_status_t telemetry(world_t* w, const void* given) {
  (void)w;
  char text[8192];
  return kiln_telemetry_format(given, NULL, sizeof(text), text, NULL);
}

static kiln_status_t telemetry_format(world_t* w, const void* given) {
  (void)w;
  kiln_telemetry_t read = kiln_telemetry_default();
  char text[8192];
  return kiln_telemetry_format(&read, given, sizeof(text), text, NULL);
}

// ---- The table ----

// A struct and a call that reads it. thread-safe
typedef struct row_t {
  const char* name;
  size_t size;
  size_t offset;  // of `reserved`
  size_t bytes;
  bool sized;  // it begins with its struct_size
  kiln_status_t (*call)(world_t* world, const void* given);
} row_t;

#define ROW(type, sized, call)      \
  {#type,                           \
   sizeof(type),                    \
   offsetof(type, reserved),        \
   sizeof(((type*)NULL)->reserved), \
   (sized),                         \
   (call)}
#define SIZED(type, call) ROW(type, true, call)
#define PLAIN(type, call) ROW(type, false, call)

static const row_t kRows[] = {
    SIZED(kiln_array_options_t, array),
    SIZED(kiln_compile_options_t, compile),
    SIZED(kiln_compile_options_t, compile_plan),
    SIZED(kiln_dispatch_options_t, dispatch),
    SIZED(kiln_dispatch_options_t, step),
    SIZED(kiln_dispatcher_options_t, dispatcher),
    SIZED(kiln_dispatcher_options_t, runtimes_dispatcher),
    SIZED(kiln_fixpoint_options_t, fixpoint),
    SIZED(kiln_graph_builder_options_t, builder),
    SIZED(kiln_graph_trace_options_t, trace),
    SIZED(kiln_image_options_t, image),
    SIZED(kiln_launch_attributes_t, launch_attributes),
    SIZED(kiln_link_facts_t, link_facts),
    SIZED(kiln_linker_options_t, linker),
    SIZED(kiln_module_options_t, module),
    SIZED(kiln_module_options_t, module_of_code),
    SIZED(kiln_pipeline_options_t, pipeline),
    SIZED(kiln_pool_options_t, pool),
    SIZED(kiln_runtime_options_t, runtime),
    SIZED(kiln_telemetry_format_t, telemetry_format),
    SIZED(kiln_telemetry_t, telemetry),
    SIZED(kiln_tensor_options_t, tensor),
    SIZED(kiln_texels_t, texels),
    SIZED(kiln_texture_options_t, texture),
    SIZED(kiln_toolkit_options_t, toolkit),
    SIZED(kiln_toolkit_options_t, toolkit_of_a_runtime),
    SIZED(kiln_transient_options_t, transient),
    PLAIN(kiln_buffer_export_t, buffer_of_another),
    PLAIN(kiln_cache_key_t, cache_key),
    PLAIN(kiln_cache_output_t, cache_output),
    PLAIN(kiln_compat_need_t, need),
    PLAIN(kiln_graph_addition_t, addition),
    PLAIN(kiln_graph_edge_t, edge),
    PLAIN(kiln_graph_work_t, work),
    PLAIN(kiln_graph_work_t, known_work),
    PLAIN(kiln_interface_parameter_t, parameter),
    PLAIN(kiln_link_input_fact_t, link_input),
    PLAIN(kiln_locate_override_t, override),
    PLAIN(kiln_locate_want_t, want),
    PLAIN(kiln_log_sink_t, log_of_a_cache),
    PLAIN(kiln_log_sink_t, log_of_a_runtime),
    PLAIN(kiln_log_sink_t, log_of_a_toolkit),
};
enum { ROWS = sizeof(kRows) / sizeof(kRows[0]) };

// All zero but its size.
static void fill(const row_t* row, void* given) {
  uint32_t size = (uint32_t)row->size;
  assert_true(row->size <= MOST_BYTES);
  memset(given, 0, row->size);
  if (row->sized) memcpy(given, &size, sizeof(size));
}

// Any byte of it counts.
static void test_refused(void** state) {
  world_t* w = *state;
  for (size_t i = 0; i < ROWS; i++) {
    const row_t* row = &kRows[i];
    _Alignas(max_align_t) unsigned char given[MOST_BYTES];
    const size_t bytes[] = {0, row->bytes - 1};
    for (size_t j = 0; j < 2; j++) {
      fill(row, given);
      given[row->offset + bytes[j]] = 1;
      char says[96];
      int size =
          snprintf(says, sizeof(says), "`reserved` of \"%s\"", row->name);
      assert_in_range(size, 1, sizeof(says) - 1);
      assert_says(row->call(w, given), KILN_STATUS_INVALID_ARGUMENT, says);
    }
  }
}

// And with zero there is none to be refused, whatever else is missing.
static void test_zero_is_not(void** state) {
  world_t* w = *state;
  for (size_t i = 0; i < ROWS; i++) {
    const row_t* row = &kRows[i];
    _Alignas(max_align_t) unsigned char given[MOST_BYTES];
    fill(row, given);
    kiln_status_t status = row->call(w, given);
    char text[4096];
    kiln_status_format(status, sizeof(text), text, NULL);
    if (strstr(text, "`reserved`") != NULL) {
      fail_msg("%s: %s", row->name, text);
    }
    kiln_status_free(status);
  }
}

// ---- Sizes ----
//
// The rest of the structs that begin with their size.

static bool no_write(const char* text, size_t size, void* user) {
  (void)text;
  (void)size;
  (void)user;
  return true;
}

static kiln_status_t short_buffer(world_t* w, const void* given) {
  (void)w;
  kiln_buffer_t* out = NULL;
  kiln_status_t status = kiln_buffer_create(w->device, BYTES, given, &out);
  kiln_buffer_release(out);
  return status;
}

static kiln_status_t short_cache(world_t* w, const void* given) {
  (void)w;
  kiln_cache_t* out = NULL;
  kiln_status_t status = kiln_cache_create(given, &out);
  kiln_cache_release(out);
  return status;
}

static kiln_status_t short_request(world_t* w, const void* given) {
  (void)w;
  kiln_cache_entry_t* out = NULL;
  kiln_status_t status = kiln_cache_get_or_make(w->cache, given, &out, NULL);
  kiln_cache_entry_release(out);
  return status;
}

static kiln_status_t short_code(world_t* w, const void* given) {
  (void)w;
  kiln_code_t* out = NULL;
  kiln_status_t status = kiln_code_create(ptx(), given, &out);
  kiln_code_release(out);
  return status;
}

static kiln_status_t short_compat(world_t* w, const void* given) {
  (void)w;
  kiln_compat_report_t* out = NULL;
  kiln_status_t status = kiln_compat_check(given, &out);
  kiln_compat_report_release(out);
  return status;
}

static kiln_status_t short_driver(world_t* w, const void* given) {
  (void)w;
  kiln_compat_report_t* out = NULL;
  kiln_compat_request_t request = kiln_compat_request_default();
  request.driver = given;
  kiln_status_t status = kiln_compat_check(&request, &out);
  kiln_compat_report_release(out);
  return status;
}

static kiln_status_t short_fact(world_t* w, const void* given) {
  (void)w;
  kiln_compat_report_t* out = NULL;
  kiln_compat_request_t request = kiln_compat_request_default();
  const kiln_compat_fact_t* facts[] = {given};
  request.facts = facts;
  request.fact_count = 1;
  kiln_status_t status = kiln_compat_check(&request, &out);
  kiln_compat_report_release(out);
  return status;
}

static kiln_status_t short_use(world_t* w, const void* given) {
  (void)w;
  kiln_compat_report_t* out = NULL;
  kiln_compat_request_t request = kiln_compat_request_default();
  const kiln_compat_use_t* uses[] = {given};
  request.uses = uses;
  request.use_count = 1;
  kiln_status_t status = kiln_compat_check(&request, &out);
  kiln_compat_report_release(out);
  return status;
}

static kiln_status_t short_compiler(world_t* w, const void* given) {
  (void)w;
  kiln_compiler_t* out = NULL;
  kiln_status_t status = kiln_runtime_open_compiler(w->runtime, given, &out);
  kiln_compiler_release(out);
  return status;
}

static kiln_status_t short_copies(world_t* w, const void* given) {
  (void)w;
  kiln_copy_t copy;
  memset(&copy, 0, sizeof(copy));
  kiln_status_t status = kiln_copy_batch(w->stream, &copy, 1, given);
  return status;
}

static kiln_status_t short_batch(world_t* w, const void* given) {
  (void)w;
  kiln_status_t status =
      kiln_pipeline_dispatch_batch(w->pipeline, NULL, given, NULL, NULL);
  return status;
}

static kiln_status_t short_view(world_t* w, const void* given) {
  (void)w;
  kiln_dlpack_t* out = NULL;
  kiln_status_t status = kiln_dlpack_export(w->buffer, given, &out);
  if (out != NULL) out->deleter(out);
  return status;
}

static kiln_status_t short_event(world_t* w, const void* given) {
  (void)w;
  kiln_event_t* out = NULL;
  kiln_status_t status = kiln_event_create(w->device, given, &out);
  kiln_event_release(out);
  return status;
}

static kiln_status_t short_drawing(world_t* w, const void* given) {
  (void)w;
  kiln_status_t status = kiln_graph_draw(w->graph, given, no_write, NULL);
  return status;
}

static kiln_status_t short_exec(world_t* w, const void* given) {
  (void)w;
  kiln_graph_exec_t* out = NULL;
  kiln_status_t status = kiln_graph_exec_create(w->graph, given, &out);
  kiln_graph_exec_release(out);
  return status;
}

static kiln_status_t short_interface(world_t* w, const void* given) {
  (void)w;
  kiln_pipeline_t* out = NULL;
  kiln_status_t status =
      kiln_pipeline_create_kernel(w->dispatcher, w->kernel, given, &out);
  kiln_pipeline_release(out);
  return status;
}

static kiln_status_t short_launch(world_t* w, const void* given) {
  (void)w;
  kiln_launch_t* out = NULL;
  kiln_status_t status = kiln_launch_create(w->kernel, given, &out);
  kiln_launch_release(out);
  return status;
}

static kiln_status_t short_run(world_t* w, const void* given) {
  (void)w;
  kiln_status_t status =
      kiln_kernel_launch(w->kernel, w->stream, given, NULL, 0);
  return status;
}

static kiln_status_t short_plan(world_t* w, const void* given) {
  (void)w;
  kiln_library_plan_t* out = NULL;
  kiln_status_t status =
      kiln_library_plan_create(w->dispatcher, "sum", given, &out);
  kiln_library_plan_release(out);
  return status;
}

static kiln_status_t short_facts(world_t* w, const void* given) {
  (void)w;
  kiln_link_choice_t* out = NULL;
  kiln_status_t status = kiln_link_choose(given, NULL, &out);
  kiln_link_choice_release(out);
  return status;
}

static kiln_status_t short_settings(world_t* w, const void* given) {
  (void)w;
  kiln_link_settings_t* out = NULL;
  kiln_status_t status = kiln_link_settings_create(given, 1, NULL, &out);
  kiln_link_settings_release(out);
  return status;
}

static kiln_status_t short_locate(world_t* w, const void* given) {
  (void)w;
  kiln_locate_t* out = NULL;
  kiln_status_t status = kiln_locate_create(given, &out);
  kiln_locate_release(out);
  return status;
}

static kiln_status_t short_trace(world_t* w, const void* given) {
  (void)w;
  kiln_pipeline_trace_t out;
  memcpy(&out, given, sizeof(out));
  kiln_status_t status = kiln_pipeline_trace(w->pipeline, &out);
  return status;
}

static kiln_status_t short_probe(world_t* w, const void* given) {
  (void)w;
  kiln_probe_t* out = NULL;
  kiln_status_t status = kiln_runtime_probe(w->runtime, given, &out);
  kiln_probe_release(out);
  return status;
}

static kiln_status_t short_lowering(world_t* w, const void* given) {
  (void)w;
  kiln_program_code_t* out = NULL;
  kiln_status_t status = kiln_program_lower(w->program, given, &out);
  kiln_program_code_release(out);
  return status;
}

static kiln_status_t short_text(world_t* w, const void* given) {
  (void)w;
  kiln_string_view_t text = {kProgram, sizeof(kProgram) - 1};
  kiln_program_t* out = NULL;
  kiln_program_report_t* report = NULL;
  kiln_status_t status = kiln_program_parse(text, given, &report, &out);
  kiln_program_report_release(report);
  kiln_program_release(out);
  return status;
}

static kiln_status_t short_replay(world_t* w, const void* given) {
  (void)w;
  kiln_replay_t* out = NULL;
  kiln_status_t status = kiln_sequence_instantiate(w->sequence, given, &out);
  kiln_replay_release(out);
  return status;
}

static kiln_status_t short_sequence(world_t* w, const void* given) {
  (void)w;
  kiln_sequence_t* out = NULL;
  kiln_status_t status = kiln_sequence_create(w->dispatcher, given, &out);
  kiln_sequence_release(out);
  return status;
}

static kiln_status_t short_profile(world_t* w, const void* given) {
  (void)w;
  kiln_soft_profile_t out;
  memcpy(&out, given, sizeof(out));
  kiln_status_t status = kiln_soft_profile_read(&out);
  return status;
}

static kiln_status_t short_fault(world_t* w, const void* given) {
  kiln_fault_t out;
  memcpy(&out, given, sizeof(out));
  kiln_status_t status = kiln_device_fault(w->device, &out);
  return status;
}

static kiln_status_t short_split(world_t* w, const void* given) {
  (void)w;
  kiln_split_t out;
  kiln_status_t status = kiln_device_query_split(w->device, given, &out);
  return status;
}

static kiln_status_t short_stream(world_t* w, const void* given) {
  (void)w;
  kiln_stream_t* out = NULL;
  kiln_status_t status = kiln_stream_create(w->device, given, &out);
  kiln_stream_release(out);
  return status;
}

static kiln_status_t short_columns(world_t* w, const void* given) {
  (void)w;
  kiln_tensor_map_t out;
  kiln_tensor_options_t options = kiln_tensor_options_default();
  kiln_status_t status =
      kiln_tensor_map_encode_columns(w->device, &options, given, &out);
  return status;
}

static kiln_status_t short_virtual(world_t* w, const void* given) {
  (void)w;
  kiln_virtual_t* out = NULL;
  kiln_status_t status = kiln_virtual_create(w->device, BYTES, given, &out);
  kiln_virtual_release(out);
  return status;
}

static kiln_status_t short_watch(world_t* w, const void* given) {
  (void)w;
  kiln_watch_t* out = NULL;
  kiln_status_t status = kiln_runtime_watch(w->runtime, given, &out);
  kiln_watch_close(out);
  return status;
}

#define SHORT(type, call) {#type, sizeof(type), 0, 0, true, (call)}

static const row_t kShort[] = {
    SHORT(kiln_buffer_options_t, short_buffer),
    SHORT(kiln_cache_options_t, short_cache),
    SHORT(kiln_cache_request_t, short_request),
    SHORT(kiln_code_options_t, short_code),
    SHORT(kiln_compat_request_t, short_compat),
    SHORT(kiln_compat_driver_t, short_driver),
    SHORT(kiln_compat_fact_t, short_fact),
    SHORT(kiln_compat_use_t, short_use),
    SHORT(kiln_compiler_options_t, short_compiler),
    SHORT(kiln_copy_options_t, short_copies),
    SHORT(kiln_dispatch_batch_t, short_batch),
    SHORT(kiln_dlpack_view_t, short_view),
    SHORT(kiln_event_options_t, short_event),
    SHORT(kiln_graph_draw_options_t, short_drawing),
    SHORT(kiln_graph_exec_options_t, short_exec),
    SHORT(kiln_interface_t, short_interface),
    SHORT(kiln_fault_t, short_fault),
    SHORT(kiln_launch_config_t, short_launch),
    SHORT(kiln_launch_config_t, short_run),
    SHORT(kiln_library_options_t, short_plan),
    SHORT(kiln_link_facts_t, short_facts),
    SHORT(kiln_link_options_t, short_settings),
    SHORT(kiln_locate_options_t, short_locate),
    SHORT(kiln_pipeline_trace_t, short_trace),
    SHORT(kiln_probe_options_t, short_probe),
    SHORT(kiln_program_lower_options_t, short_lowering),
    SHORT(kiln_program_parse_options_t, short_text),
    SHORT(kiln_replay_options_t, short_replay),
    SHORT(kiln_sequence_options_t, short_sequence),
    SHORT(kiln_soft_profile_t, short_profile),
    SHORT(kiln_split_options_t, short_split),
    SHORT(kiln_stream_options_t, short_stream),
    SHORT(kiln_tensor_columns_t, short_columns),
    SHORT(kiln_virtual_options_t, short_virtual),
    SHORT(kiln_watch_options_t, short_watch),
};
enum { SHORT_ROWS = sizeof(kShort) / sizeof(kShort[0]) };

// No version has had fewer bytes, and half a pointer is none.
static void refuse_short(world_t* w, const row_t* row) {
  _Alignas(max_align_t) unsigned char given[MOST_BYTES];
  const size_t sizes[] = {0, 3, 4, row->size / 2, row->size - 4, row->size - 1};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    uint32_t size = (uint32_t)sizes[i];
    char says[96];
    fill(row, given);
    memcpy(given, &size, sizeof(size));
    (void)snprintf(says, sizeof(says), "`struct_size` of \"%s\"", row->name);
    assert_says(row->call(w, given), KILN_STATUS_INVALID_ARGUMENT, says);
  }
  fill(row, given);
  kiln_status_t status = row->call(w, given);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  if (strstr(text, "`struct_size`") != NULL) fail_msg("%s", text);
  kiln_status_free(status);
}

static void test_short_ones(void** state) {
  for (size_t i = 0; i < ROWS; i++) {
    if (kRows[i].sized) refuse_short(*state, &kRows[i]);
  }
  for (size_t i = 0; i < SHORT_ROWS; i++) refuse_short(*state, &kShort[i]);
}

// ---- The world ----

static void open_code(world_t* w) {
  kiln_code_options_t code = kiln_code_options_default();
  assert_ok(kiln_code_create(ptx(), &code, &w->code));
  assert_ok(kiln_module_load(w->device, ptx(), NULL, NULL, &w->module));
  assert_ok(kiln_kernel_create(w->module, "take", &w->kernel));
  kiln_compiler_options_t how = kiln_compiler_options_default();
  how.library = FAKE_NVRTC;
  assert_ok(kiln_runtime_open_compiler(w->runtime, &how, &w->compiler));
}

static void open_dispatch(world_t* w) {
  kiln_string_view_t text = {kProgram, sizeof(kProgram) - 1};
  kiln_program_report_t* report = NULL;
  assert_ok(kiln_dispatcher_create(w->device, NULL, &w->dispatcher));
  assert_ok(kiln_program_parse(text, NULL, &report, &w->program));
  kiln_program_report_release(report);
  assert_ok(
      kiln_pipeline_create(w->dispatcher, w->program, NULL, &w->pipeline));
  assert_ok(kiln_sequence_create(w->dispatcher, NULL, &w->sequence));
}

static int setup(void** state) {
  static world_t world;
  world_t* w = &world;
  kiln_cache_options_t cache = kiln_cache_options_default();
  kiln_locate_options_t locate = kiln_locate_options_default();
  cache.disk = KILN_SWITCH_OFF;
  locate.system_root = "/nonexistent-root";
  assert_ok(kiln_cache_create(&cache, &w->cache));
  assert_ok(kiln_locate_create(&locate, &w->locate));
  assert_ok(kiln_runtime_create(NULL, &w->runtime));
  assert_ok(kiln_runtime_open_device(w->runtime, "soft", &w->device));
  assert_ok(kiln_stream_create(w->device, NULL, &w->stream));
  assert_ok(kiln_buffer_create(w->device, BYTES, NULL, &w->buffer));
  assert_ok(kiln_graph_create(w->device, &w->graph));
  open_code(w);
  open_dispatch(w);
  *state = w;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  kiln_sequence_release(w->sequence);
  kiln_pipeline_release(w->pipeline);
  kiln_program_release(w->program);
  kiln_dispatcher_release(w->dispatcher);
  kiln_compiler_release(w->compiler);
  kiln_locate_release(w->locate);
  kiln_cache_release(w->cache);
  kiln_graph_release(w->graph);
  kiln_kernel_release(w->kernel);
  kiln_module_release(w->module);
  kiln_code_release(w->code);
  kiln_buffer_release(w->buffer);
  kiln_stream_release(w->stream);
  kiln_device_release(w->device);
  kiln_runtime_release(w->runtime);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_zero_is_not),
      cmocka_unit_test(test_short_ones),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
