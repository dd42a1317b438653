// SPDX-License-Identifier: Apache-2.0
//
// cli: .kiln files: reading, compiling and listing them.
#include "cli/cli_program.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_files.h"
#include "cli/cli_output.h"
#include "cli/cli_report.h"
#include "cli/cli_code_name.h"
#include "cli/compile_job.h"
#include "cli/run_library.h"
#include "cli/run_request.h"

enum { MAX_PROGRAM_BYTES = 4 << 20, MAX_DEFINES = 64 };
#define NAME_BYTES KILNI_CLI_DEFINE_BYTES

bool kilni_cli_program_is(const char* file) {
  size_t size = strlen(file);
  if (kilni_cli_library_name(file) != NULL) return true;
  return size > 5 && strcmp(file + size - 5, ".kiln") == 0;
}

kilni_cli_type_t kilni_cli_program_type(uint32_t type) {
  const char* name = kiln_program_type_name(type);
  return kilni_cli_type_find(name, strlen(name));
}

// ---- The library ----

bool kilni_cli_library_find(const char* name, kiln_library_entry_t* out_entry,
                            kilni_cli_error_t* error) {
  enum { MOST = 256 };
  const char* names[MOST];
  size_t count = 0;
  kiln_library_entry_t entry;
  if (kiln_library_find(name, out_entry)) return true;
  while (count < MOST && kiln_library_entry((uint32_t)count, &entry)) {
    names[count++] = entry.name;
  }
  const char* near = kilni_cli_nearest(name, names, count);
  (void)kilni_cli_fail(error, KILN_STATUS_NOT_FOUND,
                       "see kiln lib list for all",
                       "the library has no program \"%s\"", name);
  if (near != NULL) {
    kilni_cli_error_fix(error,
                        "did you mean \"%s\"? see kiln lib list for "
                        "all",
                        near);
  }
  return false;
}

// The text of a file or, for lib:NAME, of the library. `file` is its memory.
static bool program_read_text(const char* path, kilni_cli_buffer_t* file,
                              kiln_string_view_t* out_text,
                              kilni_cli_error_t* error) {
  const char* name = kilni_cli_library_name(path);
  if (name != NULL) {
    kiln_library_entry_t entry;
    bool found = kilni_cli_library_find(name, &entry, error);
    *out_text = entry.text;
    return found;
  }
  bool ok = kilni_cli_buffer_read_some(file, path, MAX_PROGRAM_BYTES, error);
  *out_text = (kiln_string_view_t){(const char*)file->data, file->size};
  return ok;
}

// ---- Reading ----

// The values of --define. one-thread
typedef struct defines_t {
  kiln_program_define_t items[MAX_DEFINES];
  char names[MAX_DEFINES][NAME_BYTES];
  uint32_t count;
} defines_t;

// Without those that only a plan of the library has.
static bool read_defines(const kilni_cli_call_t* call, bool is_library,
                         defines_t* out, kilni_cli_error_t* error) {
  out->count = 0;
  for (size_t i = 0; call != NULL && i < call->given_count; i++) {
    const kilni_cli_given_t* given = &call->given[i];
    if (strcmp(given->option->name, "define") != 0) continue;
    const char* sign = strchr(given->value, '=');
    size_t size = sign == NULL ? 0 : (size_t)(sign - given->value);
    if (size == 0 || size >= NAME_BYTES || out->count == MAX_DEFINES) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                            "write --define NAME=VALUE, at most 64 times",
                            "--define \"%s\" of a program", given->value);
    }
    if (is_library && kilni_cli_library_is_own(given->value, size)) continue;
    memcpy(out->names[out->count], given->value, size);
    out->names[out->count][size] = 0;
    out->items[out->count].name = out->names[out->count];
    out->items[out->count].value = sign + 1;
    out->count++;
  }
  return true;
}

bool kilni_cli_program_read(const char* file, const kilni_cli_call_t* call,
                            kiln_program_t** out_program,
                            kilni_cli_error_t* error) {
  *out_program = NULL;
  defines_t defines;
  kilni_cli_buffer_t text = {0};
  kiln_string_view_t view;
  kiln_program_report_t* report = NULL;
  // Before the text, which may compute wrong results where its plan refuses.
  bool ok = (call == NULL || kilni_cli_library_check(file, call, error)) &&
            read_defines(call, kilni_cli_library_name(file) != NULL, &defines,
                         error) &&
            program_read_text(file, &text, &view, error);
  if (ok) {
    kiln_program_parse_options_t options = kiln_program_parse_options_default();
    options.file_name = file;
    options.defines = defines.items;
    options.define_count = defines.count;
    ok = kilni_cli_check(
        error, kiln_program_parse(view, &options, &report, out_program));
    const char* said = kiln_program_report_text(report);
    kilni_cli_print_text(stderr, said, strlen(said));
    if (!ok) {
      error->is_shown = error->code == KILN_STATUS_COMPILE_FAILED &&
                        strstr(said, ": error: ") != NULL;
    }
  }
  kiln_program_report_release(report);
  kilni_cli_buffer_deinit(&text);
  return ok;
}

// The name after `type` at the beginning of a line; moves to the next one.
static bool next_type(kiln_string_view_t text, size_t* inout_at,
                      char out[NAME_BYTES]) {
  while (*inout_at < text.size) {
    const char* line = text.data + *inout_at;
    const char* end = memchr(line, '\n', text.size - *inout_at);
    size_t size = end != NULL ? (size_t)(end - line) : text.size - *inout_at;
    size_t begin = 0;
    *inout_at += size + 1;
    while (begin < size && line[begin] == ' ') begin++;
    if (size - begin < 6 || memcmp(line + begin, "type ", 5) != 0) continue;
    size_t used = 0;
    for (size_t i = begin + 5; i < size && used < NAME_BYTES - 1; i++) {
      if (line[i] == ' ' && used == 0) continue;
      if (line[i] == ' ' || line[i] == '=') break;
      out[used++] = line[i];
    }
    out[used] = 0;
    if (used != 0) return true;
  }
  return false;
}

// Whether the parameter is of that type with one more definition, or another
// value of one that is given.
static bool program_has_type(kiln_string_view_t text, defines_t* defines,
                             const char* define, const char* name,
                             uint32_t type) {
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  kiln_program_t* program = NULL;
  kiln_program_parameter_info_t p;
  uint32_t index;
  uint32_t at = 0;
  while (at < defines->count && strcmp(defines->names[at], define) != 0) at++;
  if (at == MAX_DEFINES) return false;
  kiln_program_define_t before = {0};
  if (at < defines->count) before = defines->items[at];
  defines->items[at].name = define;
  defines->items[at].value = kiln_program_type_name(type);
  options.defines = defines->items;
  options.define_count = at < defines->count ? defines->count : at + 1;
  kiln_status_free(kiln_program_parse(text, &options, NULL, &program));
  bool has = program != NULL &&
             kiln_program_find_parameter(program, name, &index) &&
             kiln_program_parameter(program, index, &p) && p.type == type;
  kiln_program_release(program);
  defines->items[at] = before;
  return has;
}

// Whether the definition determines the type of the parameter.
static bool says_type(kiln_string_view_t text, defines_t* defines,
                      const char* define, const char* name, uint32_t type) {
  static const uint32_t others[] = {
      KILN_PROGRAM_TYPE_F32, KILN_PROGRAM_TYPE_U32, KILN_PROGRAM_TYPE_I32};
  if (!program_has_type(text, defines, define, name, type)) return false;
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
    if (others[i] != type &&
        program_has_type(text, defines, define, name, others[i])) {
      return true;
    }
  }
  return false;
}

// Whether an option is --define of that name.
static bool defines_it(const kilni_cli_given_t* given, const char* define) {
  size_t size = strlen(define);
  return strcmp(given->option->name, "define") == 0 &&
         strncmp(given->value, define, size) == 0 && given->value[size] == '=';
}

// Whether the plan of an entry accepts that definition together with the others
// of `call`: its limits are not in the text.
static bool program_is_taken(const char* file, const kilni_cli_call_t* call,
                             const char* define, uint32_t type) {
  kilni_cli_given_t given[MAX_DEFINES];
  kilni_cli_option_t option = {.name = "define"};
  kilni_cli_error_t refused;
  kilni_cli_call_t whole = *call;
  char value[NAME_BYTES + 16];
  size_t count = 0;
  if (kilni_cli_library_name(file) == NULL) return true;
  for (size_t i = 0; i < call->given_count && count + 1 < MAX_DEFINES; i++) {
    if (strcmp(call->given[i].option->name, "define") == 0 &&
        !defines_it(&call->given[i], define)) {
      given[count++] = call->given[i];
    }
  }
  (void)snprintf(value, sizeof(value), "%s=%s", define,
                 kiln_program_type_name(type));
  given[count].option = &option;
  given[count++].value = value;
  whole.given = given;
  whole.given_count = count;
  return kilni_cli_library_check(file, &whole, &refused);
}

bool kilni_cli_program_define_of(const char* file, const kilni_cli_call_t* call,
                                 const char* name, uint32_t type,
                                 char out[KILNI_CLI_DEFINE_BYTES]) {
  kilni_cli_error_t ignored;
  defines_t defines;
  kilni_cli_buffer_t memory = {0};
  kiln_string_view_t text;
  size_t at = 0;
  bool found = false;
  if (type != KILN_PROGRAM_TYPE_NONE &&
      read_defines(call, kilni_cli_library_name(file) != NULL, &defines,
                   &ignored) &&
      program_read_text(file, &memory, &text, &ignored)) {
    while (!found && next_type(text, &at, out)) {
      found = says_type(text, &defines, out, name, type) &&
              program_is_taken(file, call, out, type);
    }
  }
  kilni_cli_buffer_deinit(&memory);
  return found;
}

// ---- Compiling ----

// "sm_90" and "compute_90" are 90; 0 for none.
static bool read_arch(const char* text, uint32_t* out,
                      kilni_cli_error_t* error) {
  *out = 0;
  if (text == NULL) return true;
  const char* digits = strncmp(text, "sm_", 3) == 0        ? text + 3
                       : strncmp(text, "compute_", 8) == 0 ? text + 8
                                                           : "";
  uint32_t value = 0;
  const char* at = digits;
  for (; *at >= '0' && *at <= '9' && at < digits + 3; at++) {
    value = 10 * value + (uint32_t)(*at - '0');
  }
  if (at < digits + 2 || (*at != 0 && strcmp(at, "a") != 0)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write one such as sm_90",
                          "no architecture is called \"%s\"", text);
  }
  *out = value;
  return true;
}

static bool program_lower(const kiln_program_t* program, uint32_t arch,
                          uint32_t max_ulp, kiln_program_code_t** out_code,
                          kilni_cli_error_t* error) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.sm = arch;
  options.max_ulp = max_ulp;
  return kilni_cli_check(error,
                         kiln_program_lower(program, &options, out_code));
}

static json_t* program_text_json(const char* text) {
  json_t* value = json_string(text);
  return value != NULL ? value : json_string_nocheck("?");
}

static bool report_compiled(const kilni_cli_call_t* call, const char* out,
                            const kiln_program_code_t* code,
                            kilni_cli_error_t* error) {
  kilni_cli_compile_note_name(out, KILN_CODE_FORMAT_PTX);
  if (!call->json) return true;
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  json_t* object =
      json_pack("{s:o,s:s,s:o,s:I,s:n,s:s,s:s,s:[],s:s,s:s}", "file",
                program_text_json(out), "format", "ptx", "arch",
                json_sprintf("sm_%" PRIu32, launch.sm), "bytes",
                (json_int_t)kiln_program_code_text(code).size,
                "compiler_version", "cache", "none", "cache_reason",
                "lowered without a compiler", "names", "note", "", "log", "");
  return kilni_cli_json_write(call->results, object, error);
}

static bool write_code(const kiln_program_code_t* code, const char* out,
                       kilni_cli_error_t* error) {
  kilni_cli_output_t output;
  memset(&output, 0, sizeof(output));
  output.path = out;
  kiln_string_view_t text = kiln_program_code_text(code);
  bool ok =
      kilni_cli_buffer_add(&output.content, text.data, text.size, error) &&
      kilni_cli_outputs_write(&output, 1, error);
  kilni_cli_outputs_deinit(&output, 1);
  return ok;
}

// Compiler options have no meaning for a program.
static bool program_check_options(const kilni_cli_call_t* call,
                                  kilni_cli_error_t* error) {
  static const char* const ALIEN[] = {"include", "pre-include", "std",
                                      "name",    "lineinfo",    "debug",
                                      "option",  "depfile"};
  for (size_t i = 0; i < sizeof(ALIEN) / sizeof(ALIEN[0]); i++) {
    if (kilni_cli_option_value(call, ALIEN[i]) != NULL) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                            "omit it: a program is lowered without a "
                            "compiler",
                            "--%s for the program \"%s\"", ALIEN[i],
                            call->operands[0]);
    }
  }
  const char* output = kilni_cli_option_value(call, "output");
  if (output == NULL || strcmp(output, "ptx") == 0) return true;
  if (strcmp(output, "cubin") != 0 && strcmp(output, "ltoir") != 0 &&
      strcmp(output, "relocatable") != 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "a program becomes ptx", "no output is called \"%s\"",
                          output);
  }
  return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "make PTX, and compile that with `kiln compile "
                        "FILE.ptx` to machine code",
                        "--output %s of a program", output);
}

// PTX under another format's name would be taken for that format.
static bool program_check_name(const kilni_cli_call_t* call, const char* out,
                               kilni_cli_error_t* error) {
  bool asked = kilni_cli_option_value(call, "output") != NULL;
  uint32_t named = kilni_cli_code_name_format(out);
  if (!asked && named != 0 && named != KILN_CODE_FORMAT_PTX) {
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "make PTX, and compile that with `kiln compile "
                          "FILE.ptx` to machine code",
                          "\"%s\": a program becomes PTX", out);
  }
  return kilni_cli_code_name_check(out, KILN_CODE_FORMAT_PTX, asked, error);
}

static bool program_check_files(const char* file, const char* out,
                                kilni_cli_error_t* error) {
  kilni_cli_files_t files = {0};
  bool ok = (kilni_cli_library_name(file) != NULL ||
             kilni_cli_files_add_input(&files, file, "the program", error)) &&
            kilni_cli_files_add_output(&files, out, "-o", error);
  kilni_cli_files_deinit(&files);
  return ok;
}

bool kilni_cli_program_compile(const kilni_cli_call_t* call, const char* out,
                               kilni_cli_error_t* error) {
  kiln_program_t* program = NULL;
  kiln_program_code_t* code = NULL;
  uint32_t arch, max_ulp;
  bool ok = program_check_options(call, error) &&
            program_check_files(call->operands[0], out, error) &&
            program_check_name(call, out, error) &&
            kilni_cli_ulp_read(call, &max_ulp, error) &&
            read_arch(kilni_cli_option_value(call, "arch"), &arch, error) &&
            kilni_cli_output_check(out, error) &&
            kilni_cli_program_read(call->operands[0], call, &program, error) &&
            program_lower(program, arch, max_ulp, &code, error) &&
            write_code(code, out, error) &&
            report_compiled(call, out, code, error);
  kiln_program_code_release(code);
  kiln_program_release(program);
  return ok;
}

// ---- Listing ----

static json_t* program_params_json(const kiln_program_t* program) {
  json_t* list = json_array();
  kiln_program_parameter_info_t p;
  for (uint32_t i = 0; kiln_program_parameter(program, i, &p); i++) {
    const char* role = kiln_program_role_name(p.role);
    (void)json_array_append_new(
        list,
        json_pack("{s:I,s:s,s:s,s:s?,s:b}", "index", (json_int_t)i, "name",
                  p.name, "type", kiln_program_type_name(p.type), "role",
                  role[0] != 0 ? role : NULL, "counted", (int)p.is_counted));
  }
  return list;
}

static json_t* program_json(const kiln_program_t* program,
                            const kiln_program_code_t* code, const char* hash) {
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  json_t* zeroed = json_array();
  const char* name;
  for (uint32_t i = 0; (name = kiln_program_code_zeroed(code, i)) != NULL;
       i++) {
    (void)json_array_append_new(zeroed, json_string(name));
  }
  return json_pack(
      "{s:s,s:s,s:o,s:[I,I,I],s:I,s:I,s:I,s:o,s:b}", "name",
      kiln_program_name(program), "hash", hash, "params",
      program_params_json(program), "block", (json_int_t)launch.block[0],
      (json_int_t)launch.block[1], (json_int_t)launch.block[2],
      "work_dimensions", (json_int_t)kiln_program_work_dimensions(program),
      "elements", (json_int_t)launch.elements, "dynamic_shared_bytes",
      (json_int_t)launch.dynamic_shared_bytes, "zeroed_shared", zeroed,
      "cooperative", (int)launch.cooperative);
}

static void cli_program_print_program(FILE* out, const kiln_program_t* program,
                                      const kiln_program_code_t* code,
                                      const char* file, const char* hash) {
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  (void)fprintf(out,
                "%s: a program, lowered to PTX %" PRIu32 ".%" PRIu32
                " for sm_%" PRIu32 " and newer\nhash %s\n",
                file, launch.isa / 10, launch.isa % 10, launch.sm, hash);
  (void)fprintf(out, "kernel %s\n", kiln_program_name(program));
  kiln_program_parameter_info_t p;
  for (uint32_t i = 0; kiln_program_parameter(program, i, &p); i++) {
    const char* type = kiln_program_type_name(p.type);
    if (p.role == KILN_PROGRAM_ROLE_NONE) {
      (void)fprintf(out, "  %" PRIu32 " %s: %s\n", i, p.name, type);
    } else {
      (void)fprintf(out, "  %" PRIu32 " %s: %s %s[]%s\n", i, p.name,
                    kiln_program_role_name(p.role), type,
                    p.is_counted ? ", counted by the program" : "");
    }
  }
  (void)fprintf(out, "  block %" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n",
                launch.block[0], launch.block[1], launch.block[2]);
  if (launch.static_shared_bytes + launch.dynamic_shared_bytes != 0) {
    (void)fprintf(out, "  shared %" PRIu32 " bytes\n",
                  launch.static_shared_bytes + launch.dynamic_shared_bytes);
  }
  if (launch.elements > 1) {
    (void)fprintf(out, "  %" PRIu32 " elements a thread\n", launch.elements);
  }
  const char* name;
  for (uint32_t i = 0; (name = kiln_program_code_zeroed(code, i)) != NULL;
       i++) {
    (void)fprintf(out,
                  "  shared array %s is zeroed: it may be read before all of "
                  "it is written\n",
                  name);
  }
}

bool kilni_cli_program_inspect(const kilni_cli_call_t* call,
                               kilni_cli_image_json_t describe,
                               kilni_cli_error_t* error) {
  const char* file = call->operands[0];
  kiln_program_t* program = NULL;
  kiln_program_code_t* code = NULL;
  kiln_image_t* image = NULL;
  char hash[KILN_PROGRAM_HASH_BYTES];
  bool ok = kilni_cli_program_read(file, NULL, &program, error) &&
            program_lower(program, 0, 0, &code, error) &&
            kilni_cli_check(error, kiln_program_hash(program, hash));
  if (ok && call->json) {
    kiln_string_view_t text = kiln_program_code_text(code);
    kiln_bytes_view_t bytes = {(const uint8_t*)text.data, text.size};
    kiln_image_options_t options = kiln_image_options_default();
    options.name = file;
    ok = kilni_cli_check(error, kiln_image_create(bytes, &options, &image));
  }
  if (ok && call->json) {
    // The properties of the PTX, and those of the program.
    json_t* object = describe(image);
    (void)json_object_set_new(object, "format", json_string("kiln"));
    (void)json_object_set_new(object, "program",
                              program_json(program, code, hash));
    ok = kilni_cli_json_write(call->results, object, error);
  } else if (ok) {
    kilni_cli_shown_t shown;
    if (kilni_cli_shown_open(&shown, call->results)) {
      cli_program_print_program(shown.text, program, code, file, hash);
    }
    kilni_cli_shown_close(&shown);
  }
  kiln_image_release(image);
  kiln_program_code_release(code);
  kiln_program_release(program);
  return ok;
}
