// SPDX-License-Identifier: Apache-2.0
//
// cli: the files of a graph file, and what can be checked without a device.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_data.h"
#include "cli/cli_output.h"
#include "cli/cli_program.h"
#include "cli/graph_job.h"
#include "cli/run_element.h"

enum { SHAPE_TEXT = 256 };

static bool out_of_memory(kilni_cli_error_t* error) {
  return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                        "no memory for the graph");
}

// A path in the file is relative to the file's own folder.
static bool beside_file(const kilni_cli_sketch_t* sketch, const char* path,
                        kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  const char* slash = strrchr(sketch->file, '/');
  size_t folder =
      slash == NULL || path[0] == '/' ? 0 : (size_t)(slash - sketch->file) + 1;
  return kilni_cli_buffer_add(out, sketch->file, folder, error) &&
         kilni_cli_buffer_add(out, path, strlen(path) + 1, error);
}

static const char* graph_prepare_path_of(const kilni_cli_buffer_t* buffer) {
  return buffer->size == 0 ? NULL : (const char*)buffer->data;
}

bool kilni_cli_graph_is_of_bytes(const kilni_cli_graph_data_t* data) {
  const char* const paths[] = {graph_prepare_path_of(&data->in),
                               graph_prepare_path_of(&data->out)};
  for (int i = 0; i < 2; i++) {
    if (paths[i] != NULL &&
        kilni_cli_format_of(paths[i]) != KILNI_CLI_FORMAT_RAW) {
      return false;
    }
  }
  return true;
}

// ---- --in and --out ----

static bool graph_prepare_take_option(kilni_cli_graph_job_t* job,
                                      const kilni_cli_given_t* given,
                                      kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  const char* option = given->option->name;
  bool is_in = strcmp(option, "in") == 0;
  size_t size;
  const char* rest;
  if (!kilni_cli_split_assignment(option, given->value, &size, &rest, error)) {
    return false;
  }
  if (rest[0] == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write --in NAME=FILE or --out NAME=FILE",
                          "--%s %s names no file", option, given->value);
  }
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const char* name = k->buffers[i].name.text;
    if (strlen(name) != size || memcmp(name, given->value, size) != 0) continue;
    kilni_cli_buffer_t* path = is_in ? &job->data[i].in : &job->data[i].out;
    path->size = 0;
    return kilni_cli_buffer_add(path, rest, strlen(rest) + 1, error);
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "name a buffer that the file declares",
                        "--%s %s: \"%s\" has no buffer \"%.*s\"", option,
                        given->value, k->file, (int)size, given->value);
}

// Compiler options must apply to some file.
static bool graph_prepare_read_source(kilni_cli_graph_job_t* job,
                                      const kilni_cli_call_t* call,
                                      kilni_cli_error_t* error) {
  bool is_compiled = false;
  for (uint32_t i = 0; i < job->sketch->code_count; i++) {
    is_compiled |= job->modules[i].code.kind == KILNI_CLI_CODE_SOURCE;
  }
  const char* asked = kilni_cli_source_asked(call);
  if (kilni_cli_option_value(call, "define") != NULL) asked = "define";
  if (asked != NULL && !is_compiled) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it, or name a file of CUDA C++ (.cu) in a "
                          "`code` statement",
                          "--%s for \"%s\", which has no CUDA C++", asked,
                          job->sketch->file);
  }
  if (!is_compiled) return true;
  const kiln_compile_options_t* o = &job->request.source.options;
  bool ok = kilni_cli_source_read(&job->request.source, call, NULL, error);
  for (uint32_t i = 0; ok && i < o->pre_include_count; i++) {
    ok = kilni_cli_files_add_input(&job->files, o->pre_includes[i],
                                   "--pre-include", error);
  }
  return ok;
}

static bool graph_prepare_take_paths(kilni_cli_graph_job_t* job,
                                     const kilni_cli_call_t* call,
                                     kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const kilni_cli_graph_buffer_t* buffer = &k->buffers[i];
    if ((buffer->in.line != 0 &&
         !beside_file(k, buffer->in.text, &job->data[i].in, error)) ||
        (buffer->out.line != 0 &&
         !beside_file(k, buffer->out.text, &job->data[i].out, error))) {
      return false;
    }
  }
  for (uint32_t i = 0; i < k->code_count; i++) {
    kilni_cli_graph_module_t* module = &job->modules[i];
    if (!beside_file(k, k->codes[i].file.text, &module->path, error)) {
      return false;
    }
    module->code.file = graph_prepare_path_of(&module->path);
    if (!kilni_cli_code_kind_of(module->code.file, &module->code.kind, error)) {
      kilni_cli_sketch_point(k, &k->codes[i].file, error);
      return false;
    }
    if (module->code.kind != KILNI_CLI_CODE_PROGRAM) continue;
    if (!kilni_cli_program_read(module->code.file, NULL, &module->program,
                                error)) {
      kilni_cli_sketch_point(k, &k->codes[i].file, error);
      return false;
    }
    module->code.program = module->program;
  }
  if (!graph_prepare_read_source(job, call, error)) return false;
  for (size_t i = 0; i < call->given_count; i++) {
    const char* name = call->given[i].option->name;
    if ((strcmp(name, "in") == 0 || strcmp(name, "out") == 0) &&
        !graph_prepare_take_option(job, &call->given[i], error)) {
      return false;
    }
  }
  return true;
}

// ---- Buffers ----

static bool read_data(const kilni_cli_sketch_t* k, uint32_t index,
                      kilni_cli_graph_data_t* data, kilni_cli_error_t* error) {
  const kilni_cli_graph_buffer_t* buffer = &k->buffers[index];
  const char* in = graph_prepare_path_of(&data->in);
  data->shape = buffer->shape;
  if (in != NULL) {
    kilni_cli_spec_t spec;
    memset(&spec, 0, sizeof(spec));
    spec.kind = buffer->shape.type == KILNI_CLI_TYPE_NONE ? KILNI_CLI_SPEC_NONE
                : buffer->shape.count == 0                ? KILNI_CLI_SPEC_TYPE
                                           : KILNI_CLI_SPEC_SHAPE;
    spec.shape = buffer->shape;
    // Such a file has no type of its own: u8 means "as it is".
    spec.is_type_written = buffer->shape.type == KILNI_CLI_TYPE_U8;
    if (!kilni_cli_data_read(in, &spec, &data->array, error)) {
      kilni_cli_sketch_point(k, &buffer->name, error);
      return false;
    }
    data->shape = data->array.shape;
    if (data->shape.bytes == 0) {
      return kilni_cli_sketch_fail(
          k, buffer->name.line, buffer->name.column,
          KILN_STATUS_INVALID_ARGUMENT, "give a file that is not empty", error,
          "the buffer \"%s\" has no elements", buffer->name.text);
    }
  }
  const char* out = graph_prepare_path_of(&data->out);
  if (out == NULL || (kilni_cli_output_check(out, error) &&
                      kilni_cli_data_check(out, &data->shape, error))) {
    return true;
  }
  kilni_cli_sketch_point(k, &buffer->name, error);
  return false;
}

// A file belongs to one buffer, and to nothing else that is read or written.
static bool note_data(kilni_cli_graph_job_t* job, uint32_t index, bool is_out,
                      kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  const kilni_cli_graph_data_t* data = &job->data[index];
  const char* path = graph_prepare_path_of(is_out ? &data->out : &data->in);
  char what[80];
  if (path == NULL) return true;
  (void)snprintf(what, sizeof(what), "buffer %s", k->buffers[index].name.text);
  if (is_out ? kilni_cli_files_add_output(&job->files, path, what, error)
             : kilni_cli_files_add_input(&job->files, path, what, error)) {
    return true;
  }
  kilni_cli_sketch_point(k, &k->buffers[index].name, error);
  return false;
}

static bool graph_prepare_check_files(kilni_cli_graph_job_t* job,
                                      kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  for (uint32_t i = 0; i < k->code_count; i++) {
    const char* path = graph_prepare_path_of(&job->modules[i].path);
    if (kilni_cli_library_name(path) == NULL &&
        !kilni_cli_files_add_input(&job->files, path, "code", error)) {
      kilni_cli_sketch_point(k, &k->codes[i].file, error);
      return false;
    }
  }
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < k->buffer_count; i++) {
      if (!note_data(job, i, pass == 1, error)) return false;
    }
  }
  return true;
}

// ---- Nodes ----

static bool graph_prepare_check_part(const kilni_cli_graph_job_t* job,
                                     const kilni_cli_graph_part_t* part,
                                     uint64_t* out_bytes,
                                     kilni_cli_error_t* error) {
  const kilni_cli_shape_t* shape = &job->data[part->buffer].shape;
  uint64_t count = shape->count;
  if (!part->whole && part->end > count) {
    return kilni_cli_sketch_fail(
        job->sketch, part->name.line, part->name.column,
        KILN_STATUS_INVALID_ARGUMENT, "end the part there or before", error,
        "\"%s\" has %" PRIu64 " elements, and the part ends at %" PRIu64,
        part->name.text, count, part->end);
  }
  uint64_t elements = part->whole ? count : part->end - part->first;
  *out_bytes = elements * kilni_cli_type_info(shape->type)->bytes;
  return true;
}

// A copy converts nothing.
static bool check_copied(const kilni_cli_graph_job_t* job,
                         const kilni_cli_graph_node_t* node,
                         kilni_cli_error_t* error) {
  const kilni_cli_graph_data_t* from = &job->data[node->from.buffer];
  const kilni_cli_graph_data_t* to = &job->data[node->to.buffer];
  if (kilni_cli_type_suits(from->shape.type, kilni_cli_graph_is_of_bytes(from),
                           to->shape.type) ||
      kilni_cli_type_suits(to->shape.type, kilni_cli_graph_is_of_bytes(to),
                           from->shape.type)) {
    return true;
  }
  char has[SHAPE_TEXT], holds[SHAPE_TEXT];
  kilni_cli_shape_text(&from->shape, holds, sizeof(holds));
  kilni_cli_shape_text(&to->shape, has, sizeof(has));
  return kilni_cli_sketch_fail(
      job->sketch, node->from.name.line, node->from.name.column,
      KILN_STATUS_INVALID_ARGUMENT,
      "declare both with the same type, or let a kernel convert the elements",
      error, "\"%s\" is %s and \"%s\" is %s, and a copy converts nothing",
      node->from.name.text, holds, node->to.name.text, has);
}

static bool graph_prepare_check_copy(const kilni_cli_graph_job_t* job,
                                     const kilni_cli_graph_node_t* node,
                                     kilni_cli_error_t* error) {
  uint64_t to = 0;
  uint64_t from = 0;
  if (!graph_prepare_check_part(job, &node->to, &to, error) ||
      !graph_prepare_check_part(job, &node->from, &from, error)) {
    return false;
  }
  if (to == from) return check_copied(job, node, error);
  return kilni_cli_sketch_fail(
      job->sketch, node->from.name.line, node->from.name.column,
      KILN_STATUS_INVALID_ARGUMENT,
      "take parts of the same size, such as NAME[0..16]", error,
      "%" PRIu64 " bytes of \"%s\" do not fill %" PRIu64 " bytes of \"%s\"",
      from, node->from.name.text, to, node->to.name.text);
}

// A driver fills with 1, 2 or 4 bytes; of 8, if both halves are the same.
static bool graph_prepare_check_fill(const kilni_cli_graph_job_t* job,
                                     const kilni_cli_graph_node_t* node,
                                     kilni_cli_error_t* error) {
  uint64_t bytes = 0;
  if (!graph_prepare_check_part(job, &node->to, &bytes, error)) return false;
  const kilni_cli_shape_t* shape = &job->data[node->to.buffer].shape;
  uint32_t element = kilni_cli_type_info(shape->type)->bytes;
  if (!kilni_cli_type_suits(node->value.type, false, shape->type)) {
    char text[SHAPE_TEXT];
    kilni_cli_shape_text(shape, text, sizeof(text));
    return kilni_cli_sketch_fail(
        job->sketch, node->to.name.line, node->to.name.column,
        KILN_STATUS_INVALID_ARGUMENT,
        "write a number of the buffer's own type, such as 0f32", error,
        "a number of type %s for elements of another: \"%s\" is %s",
        kilni_cli_type_info(node->value.type)->text, node->to.name.text, text);
  }
  if (element == 8 &&
      (uint32_t)node->value.bits != (uint32_t)(node->value.bits >> 32)) {
    return kilni_cli_sketch_fail(
        job->sketch, node->to.name.line, node->to.name.column,
        KILN_STATUS_UNSUPPORTED,
        "declare a second buffer with that value, and copy it: `copy NAME = "
        "TO <- FROM`",
        error, "a fill with 8 bytes whose halves differ");
  }
  return true;
}

static bool check_nodes(const kilni_cli_graph_job_t* job,
                        kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  for (uint32_t i = 0; i < k->node_count; i++) {
    const kilni_cli_graph_node_t* node = &k->nodes[i];
    if ((node->kind == KILNI_CLI_GRAPH_COPY &&
         !graph_prepare_check_copy(job, node, error)) ||
        (node->kind == KILNI_CLI_GRAPH_FILL &&
         !graph_prepare_check_fill(job, node, error))) {
      return false;
    }
  }
  return true;
}

bool kilni_cli_graph_prepare(kilni_cli_graph_job_t* job,
                             const kilni_cli_call_t* call,
                             kilni_cli_error_t* error) {
  const kilni_cli_sketch_t* k = job->sketch;
  job->data = calloc((size_t)k->buffer_count + 1, sizeof(*job->data));
  job->modules = calloc((size_t)k->code_count + 1, sizeof(*job->modules));
  job->launches = calloc((size_t)k->node_count + 1, sizeof(*job->launches));
  if (job->data == NULL || job->modules == NULL || job->launches == NULL) {
    return out_of_memory(error);
  }
  if (!graph_prepare_take_paths(job, call, error) ||
      !graph_prepare_check_files(job, error)) {
    return false;
  }
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    if (!read_data(k, i, &job->data[i], error)) return false;
  }
  return check_nodes(job, error);
}
