// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln inspect`: what is in a code file.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_files.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "kiln/image.h"

#define MAX_CODE_BYTES ((size_t)1 << 30)

static const char* kind_name(uint32_t kind) {
  static const char* const NAMES[] = {"unknown", "integer", "float", "bytes",
                                      "pointer"};
  return NAMES[kind < sizeof(NAMES) / sizeof(NAMES[0]) ? kind : 0];
}

static void cmd_inspect_version_text(uint32_t version, char out[32]) {
  (void)snprintf(out, 32, "%" PRIu32 ".%" PRIu32, version / 1000,
                 version % 1000 / 10);
}

// Null if the file does not specify it.
static json_t* cmd_inspect_number_or_null(uint32_t value) {
  return value == 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t* block_json(const uint32_t block[3]) {
  if (block[0] == 0) return json_null();
  return json_pack("[I,I,I]", (json_int_t)block[0],
                   (json_int_t)(block[1] == 0 ? 1 : block[1]),
                   (json_int_t)(block[2] == 0 ? 1 : block[2]));
}

// Text in a file may contain any byte: invalid UTF-8, and whatever would move a
// terminal's cursor, is shown as a question mark.
static void clean_text(const char* text, char* out, size_t capacity) {
  size_t i = 0;
  for (; text[i] != 0 && i + 1 < capacity; i++) {
    unsigned char c = (unsigned char)text[i];
    out[i] = c < ' ' || c >= 0x7f ? '?' : text[i];
  }
  out[i] = 0;
}

enum { SHOWN_BYTES = 4096 };

static json_t* cmd_inspect_text_json(const char* text) {
  json_t* value = json_string(text);
  if (value != NULL) return value;
  char clean[SHOWN_BYTES];
  clean_text(text, clean, sizeof(clean));
  return json_string(clean);
}

static json_t* cmd_inspect_text_or_null(const char* text) {
  return text == NULL || text[0] == 0 ? json_null()
                                      : cmd_inspect_text_json(text);
}

static json_t* told_or_null(uint32_t value) {
  return value == KILN_IMAGE_UNTOLD ? json_null()
                                    : json_integer((json_int_t)value);
}

static json_t* version_or_null(uint32_t version) {
  char text[32];
  cmd_inspect_version_text(version, text);
  return version == 0 ? json_null() : json_string(text);
}

static json_t* ir_or_null(uint32_t version) {
  if (version == 0) return json_null();
  return json_sprintf("%" PRIu32 ".%" PRIu32, version / 1000, version % 1000);
}

// "sm_80, sm_90" as a list.
static json_t* cmd_inspect_words_json(const char* words) {
  json_t* list = json_array();
  while (words[0] != 0) {
    size_t size = strcspn(words, ",");
    (void)json_array_append_new(list, json_stringn(words, size));
    words += size;
    words += strspn(words, ", ");
  }
  return list;
}

static const char* debug_name(uint32_t debug) {
  if (debug & KILN_IMAGE_DEBUG_FULL) return "full";
  return debug & KILN_IMAGE_DEBUG_LINES ? "lines" : "none";
}

static const char* symbol_kind_name(uint32_t kind) {
  static const char* const NAMES[] = {"unknown", "variable", "constant",
                                      "function"};
  return NAMES[kind < sizeof(NAMES) / sizeof(NAMES[0]) ? kind : 0];
}

static json_t* cmd_inspect_params_json(const kiln_image_t* image,
                                       uint32_t index) {
  const kiln_image_kernel_t* k = kiln_image_kernel(image, index);
  json_t* list = json_array();
  for (uint32_t i = 0; i < k->param_count; i++) {
    const kiln_image_param_t* p = kiln_image_kernel_param(image, index, i);
    (void)json_array_append_new(
        list, json_pack("{s:I,s:o,s:o,s:I,s:I,s:o,s:s}", "index", (json_int_t)i,
                        "name", cmd_inspect_text_or_null(p->name), "type",
                        cmd_inspect_text_or_null(p->type), "offset",
                        (json_int_t)p->offset, "bytes", (json_int_t)p->bytes,
                        "align", cmd_inspect_number_or_null(p->align), "kind",
                        kind_name(p->kind)));
  }
  return list;
}

// What machine code records about a kernel, added to `object`.
static void add_resources(json_t* object, const kiln_image_kernel_t* k) {
  const struct {
    const char* key;
    uint32_t value;
  } told[] = {{"frame_bytes", k->frame_bytes},
              {"stack_bytes", k->stack_bytes},
              {"reserved_shared_bytes", k->reserved_shared_bytes},
              {"parameter_bank_bytes", k->parameter_bank_bytes},
              {"parameter_offset", k->parameter_offset},
              {"barriers", k->barriers},
              {"maximum_registers", k->maximum_registers},
              {"code_bytes", k->code_bytes}};
  for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
    (void)json_object_set_new(object, told[i].key, told_or_null(told[i].value));
  }
}

// Whether a member lists its contents: LTO-IR and NVVM IR do not, nor do
// members that could not be read.
static bool tells_names(const kiln_image_member_t* m) {
  return m->unread == NULL && m->format != KILN_CODE_FORMAT_LTOIR &&
         m->format != KILN_CODE_FORMAT_NVVM;
}

// Whether there may be names that cannot be read, and none was read.
static bool hides_names(const kiln_image_t* image, uint32_t count) {
  for (uint32_t i = 0; count == 0 && i < kiln_image_member_count(image); i++) {
    if (!tells_names(kiln_image_member(image, i))) return true;
  }
  return false;
}

static json_t* kernels_json(const kiln_image_t* image) {
  if (hides_names(image, kiln_image_kernel_count(image))) return json_null();
  json_t* kernels = json_array();
  for (uint32_t i = 0; i < kiln_image_kernel_count(image); i++) {
    const kiln_image_kernel_t* k = kiln_image_kernel(image, i);
    json_t* kernel = json_pack(
        "{s:o,s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:o,s:b}", "name",
        cmd_inspect_text_json(k->name), "line",
        cmd_inspect_number_or_null(k->line), "params",
        k->params_known ? cmd_inspect_params_json(image, i) : json_null(),
        "registers", cmd_inspect_number_or_null(k->registers), "shared_bytes",
        (json_int_t)k->static_shared_bytes, "required_block",
        block_json(k->required_block), "maximum_block",
        block_json(k->maximum_block), "targets",
        cmd_inspect_words_json(k->targets), "required_cluster",
        block_json(k->required_cluster), "blocks_are_clusters",
        k->blocks_are_clusters != 0);
    add_resources(kernel, k);
    (void)json_array_append_new(kernels, kernel);
  }
  return kernels;
}

static json_t* member_kernels_json(const kiln_image_t* image, uint32_t index) {
  const kiln_image_member_t* m = kiln_image_member(image, index);
  if (!tells_names(m)) return json_null();
  json_t* kernels = json_array();
  for (uint32_t i = 0; i < m->kernel_count; i++) {
    const kiln_image_kernel_t* k = kiln_image_member_kernel(image, index, i);
    json_t* kernel =
        json_pack("{s:o,s:o,s:I}", "name", cmd_inspect_text_json(k->name),
                  "registers", cmd_inspect_number_or_null(k->registers),
                  "shared_bytes", (json_int_t)k->static_shared_bytes);
    add_resources(kernel, k);
    (void)json_array_append_new(kernels, kernel);
  }
  return kernels;
}

static json_t* members_json(const kiln_image_t* image) {
  json_t* members = json_array();
  for (uint32_t i = 0; i < kiln_image_member_count(image); i++) {
    const kiln_image_member_t* m = kiln_image_member(image, i);
    json_t* member =
        json_pack("{s:s,s:o,s:o,s:o,s:I,s:I,s:I,s:s,s:s}", "format",
                  kiln_code_format_name(m->format), "target",
                  cmd_inspect_text_or_null(m->target), "origin",
                  cmd_inspect_text_or_null(m->origin), "identifier",
                  cmd_inspect_text_or_null(m->identifier), "offset",
                  (json_int_t)m->offset, "bytes", (json_int_t)m->bytes,
                  "unpacked_bytes", (json_int_t)m->unpacked_bytes, "packing",
                  kiln_image_packing_name(m->packing), "debug_info",
                  debug_name(m->debug));
    json_t* more = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:o}",
                             "ptx_version", version_or_null(m->ptx_version),
                             "ir_version", ir_or_null(m->ir_version),
                             "compiler", cmd_inspect_text_or_null(m->producer),
                             "toolkit", version_or_null(m->producer_line),
                             "options", cmd_inspect_text_or_null(m->options),
                             "unread", cmd_inspect_text_or_null(m->unread),
                             "triple", cmd_inspect_text_or_null(m->triple),
                             "global_bytes", (json_int_t)m->global_bytes,
                             "constant_bytes", (json_int_t)m->constant_bytes,
                             "kernels", member_kernels_json(image, i));
    (void)json_object_update(member, more);
    json_decref(more);
    (void)json_array_append_new(members, member);
  }
  return members;
}

static json_t* symbols_json(const kiln_image_t* image) {
  if (hides_names(image, kiln_image_symbol_count(image))) return json_null();
  json_t* symbols = json_array();
  for (uint32_t i = 0; i < kiln_image_symbol_count(image); i++) {
    const kiln_image_symbol_t* symbol = kiln_image_symbol(image, i);
    (void)json_array_append_new(
        symbols,
        json_pack("{s:o,s:I,s:s,s:b,s:b,s:I}", "name",
                  cmd_inspect_text_json(symbol->name), "bytes",
                  (json_int_t)symbol->bytes, "kind",
                  symbol_kind_name(symbol->kind), "defined",
                  symbol->defined != 0, "exported", symbol->exported != 0,
                  "member", (json_int_t)symbol->member));
  }
  return symbols;
}

// The contents of all members together.
static uint32_t image_debug(const kiln_image_t* image) {
  uint32_t debug = 0;
  for (uint32_t i = 0; i < kiln_image_member_count(image); i++) {
    debug |= kiln_image_member(image, i)->debug;
  }
  return debug;
}

static const char* image_compiler(const kiln_image_t* image) {
  for (uint32_t i = 0; i < kiln_image_member_count(image); i++) {
    const char* producer = kiln_image_member(image, i)->producer;
    if (producer[0] != 0) return producer;
  }
  return "";
}

static json_t* image_json(const kiln_image_t* image) {
  json_t* targets = json_array();
  for (uint32_t i = 0; i < kiln_image_target_count(image); i++) {
    (void)json_array_append_new(
        targets, cmd_inspect_text_json(kiln_image_target(image, i)));
  }
  return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:s,s:o}", "format",
                   kiln_code_format_name(kiln_image_format(image)), "version",
                   version_or_null(kiln_image_ptx_version(image)), "targets",
                   targets, "kernels", kernels_json(image), "members",
                   members_json(image), "globals", symbols_json(image),
                   "debug_info", debug_name(image_debug(image)), "compiler",
                   cmd_inspect_text_or_null(image_compiler(image)));
}

// ---- For people ----

static void cmd_inspect_print_line(FILE* out, const char* what,
                                   uint32_t value) {
  if (value == 0 || value == KILN_IMAGE_UNTOLD) return;
  (void)fprintf(out, "  %" PRIu32 " %s\n", value, what);
}

static void cmd_inspect_print_block(FILE* out, const char* what,
                                    const uint32_t block[3]) {
  if (block[0] == 0) return;
  (void)fprintf(out, "  %s %" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n", what,
                block[0], block[1], block[2]);
}

static void print_kernel(FILE* out, const kiln_image_t* image, uint32_t index) {
  const kiln_image_kernel_t* k = kiln_image_kernel(image, index);
  char name[SHOWN_BYTES];
  clean_text(k->name, name, sizeof(name));
  (void)fprintf(out, "\nkernel %s\n", name);
  if (kiln_image_target_count(image) > 1) {
    (void)fprintf(out, "  for %s\n", k->targets);
  }
  if (k->line != 0) (void)fprintf(out, "  line %" PRIu32 "\n", k->line);
  cmd_inspect_print_line(out, "registers", k->registers);
  cmd_inspect_print_line(out, "bytes of shared memory", k->static_shared_bytes);
  cmd_inspect_print_line(out, "bytes of local memory", k->frame_bytes);
  cmd_inspect_print_line(out, "bytes of stack", k->stack_bytes);
  cmd_inspect_print_line(out, k->barriers == 1 ? "barrier" : "barriers",
                         k->barriers);
  cmd_inspect_print_line(out, "bytes of code", k->code_bytes);
  cmd_inspect_print_block(out, "blocks of", k->required_block);
  cmd_inspect_print_block(out, "blocks of at most", k->maximum_block);
  cmd_inspect_print_block(out, "clusters of", k->required_cluster);
  for (uint32_t i = 0; i < k->param_count; i++) {
    const kiln_image_param_t* p = kiln_image_kernel_param(image, index, i);
    (void)fprintf(out, "  %" PRIu32 "  %-8s %-4s %4" PRIu32 " bytes%s%s\n", i,
                  kind_name(p->kind), p->type, p->bytes,
                  p->name[0] == 0 ? "" : "  ", p->name);
  }
  if (k->params_known != 0 && k->param_count == 0) {
    (void)fprintf(out, "  no parameters\n");
  }
}

static void print_member(FILE* out, const kiln_image_t* image, uint32_t index) {
  const kiln_image_member_t* m = kiln_image_member(image, index);
  char text[SHOWN_BYTES];
  (void)fprintf(out, "  %-2" PRIu32 " %s", index,
                kiln_code_format_name(m->format));
  if (m->ptx_version != 0 && m->format == KILN_CODE_FORMAT_PTX) {
    cmd_inspect_version_text(m->ptx_version, text);
    (void)fprintf(out, " %.8s", text);
  }
  if (m->target[0] != 0) (void)fprintf(out, " for %s", m->target);
  (void)fprintf(out, ", %" PRIu64 " bytes at %" PRIu64, m->bytes, m->offset);
  if (m->packing != KILN_IMAGE_PACKING_NONE) {
    (void)fprintf(out, ", %s of %" PRIu64, kiln_image_packing_name(m->packing),
                  m->unpacked_bytes);
  }
  clean_text(m->origin, text, sizeof(text));
  if (text[0] != 0) (void)fprintf(out, ", in %s", text);
  clean_text(m->identifier, text, sizeof(text));
  if (text[0] != 0) (void)fprintf(out, ", \"%s\"", text);
  clean_text(m->unread != NULL ? m->unread : "", text, sizeof(text));
  if (text[0] != 0) (void)fprintf(out, "\n     not read: %s", text);
  (void)fputc('\n', out);
}

static void print_symbols(FILE* out, const kiln_image_t* image) {
  uint32_t count = kiln_image_symbol_count(image);
  if (count > 0) (void)fputc('\n', out);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_image_symbol_t* symbol = kiln_image_symbol(image, i);
    char name[SHOWN_BYTES];
    clean_text(symbol->name, name, sizeof(name));
    (void)fprintf(out, "%s %s", symbol_kind_name(symbol->kind), name);
    if (symbol->bytes != 0 && symbol->kind != KILN_IMAGE_SYMBOL_FUNCTION) {
      (void)fprintf(out, ", %" PRIu64 " bytes", symbol->bytes);
    }
    (void)fprintf(out, "%s\n", symbol->defined ? "" : ", not in this file");
  }
}

static void print_image(FILE* out, const kiln_image_t* image,
                        const char* path) {
  char text[SHOWN_BYTES];
  cmd_inspect_version_text(kiln_image_ptx_version(image), text);
  (void)fprintf(out, "%s: %s", path,
                kiln_code_format_name(kiln_image_format(image)));
  if (kiln_image_ptx_version(image) != 0) (void)fprintf(out, " %.8s", text);
  for (uint32_t i = 0; i < kiln_image_target_count(image); i++) {
    (void)fprintf(out, "%s%s", i == 0 ? " for " : ", ",
                  kiln_image_target(image, i));
  }
  (void)fputc('\n', out);
  clean_text(image_compiler(image), text, sizeof(text));
  if (text[0] != 0) (void)fprintf(out, "made by %s\n", text);
  if (image_debug(image) != 0) {
    (void)fprintf(out, "debug information: %s\n",
                  debug_name(image_debug(image)));
  }
  uint32_t members = kiln_image_member_count(image);
  const kiln_image_member_t* first = kiln_image_member(image, 0);
  bool plain = members == 1 && first->offset == 0 && first->unread == NULL;
  if (!plain) {
    (void)fprintf(out, "%" PRIu32 " member%s\n", members,
                  members == 1 ? "" : "s");
  }
  for (uint32_t i = 0; !plain && i < members; i++) print_member(out, image, i);
  uint32_t count = kiln_image_kernel_count(image);
  if (hides_names(image, count)) {
    (void)fputs("kernels unknown: the names in the file cannot be read\n", out);
  } else {
    (void)fprintf(out, "%" PRIu32 " kernel%s\n", count, count == 1 ? "" : "s");
  }
  for (uint32_t i = 0; i < count; i++) print_kernel(out, image, i);
  print_symbols(out, image);
}

// What people mistake for a code file.
static bool cmd_inspect_check_format(const kilni_cli_buffer_t* file,
                                     const char* path,
                                     kilni_cli_error_t* error) {
  kiln_bytes_view_t view = {file->data, file->size};
  uint32_t format = kiln_code_format_of(view);
  if (format == KILN_CODE_FORMAT_UNKNOWN && kilni_cli_name_ends(path, ".cu")) {
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "compile it first (`kiln compile FILE -o "
                          "FILE.ptx`), or run it: `kiln run` takes .cu",
                          "\"%s\" is CUDA C++ source, not a code file", path);
  }
  return true;
}

static bool run_inspect(const kilni_cli_call_t* call,
                        kilni_cli_error_t* error) {
  const char* path = call->operands[0];
  if (kilni_cli_program_is(path)) {
    return kilni_cli_program_inspect(call, image_json, error);
  }
  kilni_cli_buffer_t file = {0};
  kiln_image_t* image = NULL;
  bool ok = kilni_cli_buffer_read_some(&file, path, MAX_CODE_BYTES, error) &&
            cmd_inspect_check_format(&file, path, error);
  if (ok) {
    kiln_image_options_t options = kiln_image_options_default();
    options.name = path;
    kiln_bytes_view_t view = {file.data, file.size};
    ok = kilni_cli_check(error, kiln_image_create(view, &options, &image));
  }
  if (ok && call->json) {
    ok = kilni_cli_json_write(call->results, image_json(image), error);
  } else if (ok) {
    kilni_cli_shown_t shown;
    if (kilni_cli_shown_open(&shown, call->results)) {
      print_image(shown.text, image, path);
    }
    kilni_cli_shown_close(&shown);
  }
  kiln_image_release(image);
  kilni_cli_buffer_deinit(&file);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_inspect = {
    "inspect",
    "FILE",
    "List the kernels, parameters and targets of a code file.",
    "FILE is a program (.kiln), PTX, a cubin (linked or relocatable), a "
    "fatbin, LTO-IR, NVVM IR, "
    "a host's object file, program or library with device code inside, or an "
    "archive of those. Nothing is executed and no device is needed; malformed "
    "PTX is an error at its line and column, any other file at its byte.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    1,
    "program",
    "kiln inspect examples/pictures/blur.ptx",
    run_inspect,
};
