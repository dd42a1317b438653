// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln inspect`: what is in a code file.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_report.h"
#include "kiln/image.h"

#define MAX_CODE_BYTES ((size_t)1 << 30)

static const char* kind_name(uint32_t kind) {
  static const char* const NAMES[] = {"unknown", "integer", "float", "bytes",
                                      "pointer"};
  return NAMES[kind < sizeof(NAMES) / sizeof(NAMES[0]) ? kind : 0];
}

static void version_text(uint32_t version, char out[32]) {
  (void)snprintf(out, 32, "%" PRIu32 ".%" PRIu32, version / 1000,
                 version % 1000 / 10);
}

// Null where the file does not say.
static json_t* number_or_null(uint32_t value) {
  return value == 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t* block_json(const uint32_t block[3]) {
  if (block[0] == 0) return json_null();
  return json_pack("[I,I,I]", (json_int_t)block[0],
                   (json_int_t)(block[1] == 0 ? 1 : block[1]),
                   (json_int_t)(block[2] == 0 ? 1 : block[2]));
}

static json_t* params_json(const kiln_image_t* image, uint32_t index) {
  const kiln_image_kernel_t* k = kiln_image_kernel(image, index);
  json_t* list = json_array();
  for (uint32_t i = 0; i < k->param_count; ++i) {
    const kiln_image_param_t* p = kiln_image_kernel_param(image, index, i);
    (void)json_array_append_new(
        list,
        json_pack("{s:I,s:s?,s:s?,s:I,s:I,s:I,s:s}", "index", (json_int_t)i,
                  "name", p->name[0] == 0 ? NULL : p->name, "type",
                  p->type[0] == 0 ? NULL : p->type, "offset",
                  (json_int_t)p->offset, "bytes", (json_int_t)p->bytes, "align",
                  (json_int_t)p->align, "kind", kind_name(p->kind)));
  }
  return list;
}

static json_t* image_json(const kiln_image_t* image) {
  json_t* targets = json_array();
  json_t* kernels = json_array();
  char version[32];
  version_text(kiln_image_ptx_version(image), version);
  for (uint32_t i = 0; i < kiln_image_target_count(image); ++i)
    (void)json_array_append_new(targets,
                                json_string(kiln_image_target(image, i)));
  for (uint32_t i = 0; i < kiln_image_kernel_count(image); ++i) {
    const kiln_image_kernel_t* k = kiln_image_kernel(image, i);
    (void)json_array_append_new(
        kernels,
        json_pack("{s:s,s:o,s:o,s:o,s:I,s:o,s:o}", "name", k->name, "line",
                  number_or_null(k->line), "params", params_json(image, i),
                  "registers", number_or_null(k->registers), "shared_bytes",
                  (json_int_t)k->static_shared_bytes, "required_block",
                  block_json(k->required_block), "maximum_block",
                  block_json(k->maximum_block)));
  }
  return json_pack("{s:s,s:s?,s:o,s:o}", "format",
                   kiln_code_format_name(kiln_image_format(image)), "version",
                   kiln_image_ptx_version(image) == 0 ? NULL : version,
                   "targets", targets, "kernels", kernels);
}

static void print_kernel(FILE* out, const kiln_image_t* image, uint32_t index) {
  const kiln_image_kernel_t* k = kiln_image_kernel(image, index);
  (void)fprintf(out, "\nkernel %s\n", k->name);
  if (k->line != 0) (void)fprintf(out, "  line %" PRIu32 "\n", k->line);
  if (k->registers != 0)
    (void)fprintf(out, "  %" PRIu32 " registers\n", k->registers);
  if (k->static_shared_bytes != 0)
    (void)fprintf(out, "  %" PRIu32 " bytes of shared memory\n",
                  k->static_shared_bytes);
  if (k->required_block[0] != 0)
    (void)fprintf(out, "  blocks of %" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n",
                  k->required_block[0], k->required_block[1],
                  k->required_block[2]);
  if (k->maximum_block[0] != 0)
    (void)fprintf(
        out, "  blocks of at most %" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n",
        k->maximum_block[0], k->maximum_block[1], k->maximum_block[2]);
  for (uint32_t i = 0; i < k->param_count; ++i) {
    const kiln_image_param_t* p = kiln_image_kernel_param(image, index, i);
    (void)fprintf(out, "  %" PRIu32 "  %-8s %-4s %4" PRIu32 " bytes  %s\n", i,
                  kind_name(p->kind), p->type, p->bytes, p->name);
  }
  if (k->params_known != 0 && k->param_count == 0)
    (void)fprintf(out, "  no parameters\n");
}

static void print_image(FILE* out, const kiln_image_t* image,
                        const char* path) {
  char version[32];
  version_text(kiln_image_ptx_version(image), version);
  (void)fprintf(out, "%s: %s", path,
                kiln_code_format_name(kiln_image_format(image)));
  if (kiln_image_ptx_version(image) != 0) (void)fprintf(out, " %s", version);
  for (uint32_t i = 0; i < kiln_image_target_count(image); ++i)
    (void)fprintf(out, "%s%s", i == 0 ? " for " : ", ",
                  kiln_image_target(image, i));
  uint32_t count = kiln_image_kernel_count(image);
  (void)fprintf(out, "\n%" PRIu32 " kernel%s\n", count, count == 1 ? "" : "s");
  for (uint32_t i = 0; i < count; ++i) print_kernel(out, image, i);
}

static bool ends_with(const char* text, const char* end) {
  size_t a = strlen(text), b = strlen(end);
  return a > b && strcmp(text + a - b, end) == 0;
}

// Formats that the library does not read, by what the file begins with.
static bool check_format(const kilni_cli_buffer_t* file, const char* path,
                         kilni_cli_error_t* error) {
  kiln_bytes_view_t view = {file->data, file->size};
  uint32_t format = kiln_code_format_of(view);
  if (format == KILN_CODE_FORMAT_CUBIN)
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "Inspect the PTX that it was made from, or use "
                          "cuobjdump of the CUDA toolkit.",
                          "\"%s\" is a cubin, which is not read yet", path);
  if (format == KILN_CODE_FORMAT_FATBIN)
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "Extract its parts with cuobjdump -xptx all and "
                          "inspect those.",
                          "\"%s\" is a fatbin, which is not read yet", path);
  if (format == KILN_CODE_FORMAT_UNKNOWN && ends_with(path, ".cu"))
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "Compile it to PTX first (nvcc -ptx), or run it: "
                          "kiln run takes .cu.",
                          "\"%s\" is CUDA C++ source, not a code file", path);
  return true;
}

static bool run_inspect(const kilni_cli_call_t* call,
                        kilni_cli_error_t* error) {
  const char* path = call->operands[0];
  kilni_cli_buffer_t file = {0};
  kiln_image_t* image = NULL;
  bool ok = kilni_cli_buffer_read(&file, path, MAX_CODE_BYTES, error) &&
            check_format(&file, path, error);
  if (ok) {
    kiln_image_options_t options = kiln_image_options_default();
    options.name = path;
    kiln_bytes_view_t view = {file.data, file.size};
    ok = kilni_cli_check(error, kiln_image_create(view, &options, &image));
  }
  if (ok && call->json) {
    ok = kilni_cli_json_write(call->results, image_json(image), error);
  } else if (ok) {
    print_image(call->results, image, path);
  }
  kiln_image_release(image);
  kilni_cli_buffer_deinit(&file);
  return ok;
}

static const kilni_cli_option_t OPTIONS[] = {
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_inspect = {
    "inspect",
    "FILE",
    "List the kernels, parameters and targets of a code file.",
    "FILE is PTX. A cubin or a fatbin is recognised and refused by name. "
    "Nothing is executed and no device is needed; malformed PTX is an error "
    "at its line and column.",
    OPTIONS,
    sizeof(OPTIONS) / sizeof(OPTIONS[0]),
    1,
    1,
    "file",
    "kiln inspect examples/pictures/blur.ptx",
    run_inspect,
};
