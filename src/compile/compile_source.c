// SPDX-License-Identifier: Apache-2.0
//
// compile: one source through NVRTC.
//
// Builds the list of options, runs NVRTC and takes everything out of its
// program before that is destroyed.
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/options.h"
#include "base/str.h"
#include "compile/compile_inside.h"

// The options of one compilation. one-thread
typedef struct line_t {
  kiln_allocator_t allocator;
  char** items;
  size_t count;
  size_t capacity;
} line_t;

static void line_deinit(line_t* line) {
  for (size_t i = 0; i < line->count; i++) {
    kilni_strfree(line->allocator, line->items[i]);
  }
  kilni_free_array(line->allocator, line->items, line->capacity, sizeof(char*));
  memset(line, 0, sizeof(*line));
}

static kiln_status_t line_add(line_t* line, const char* prefix,
                              const char* text) {
  kilni_str_t option;
  kilni_str_init(&option, line->allocator, KILNI_COMPILE_MAX_OPTION_BYTES);
  kilni_str_add_cstr(&option, prefix);
  kilni_str_add_cstr(&option, text);
  char* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_str_take(&option, &copy));
  line->items[line->count++] = copy;
  return NULL;
}

static kiln_status_t line_add_all(line_t* line, const char* prefix,
                                  const char* const* texts, uint32_t count,
                                  const char* field) {
  for (uint32_t i = 0; i < count; i++) {
    if (texts[i] == NULL) {
      return kilni_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "`%s[%u]` is NULL", field, (unsigned)i),
          "give %u texts, or a smaller count", (unsigned)count);
    }
    KILNI_RETURN_IF_ERROR(line_add(line, prefix, texts[i]));
  }
  return NULL;
}

// ---- Options ----

static kiln_status_t check_list(const char* const* texts, uint32_t count,
                                const char* field) {
  if (count > 0 && texts == NULL) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s` is NULL and its count is %u", field,
                   (unsigned)count),
        "set both or neither");
  }
  if (count > KILNI_COMPILE_MAX_OPTIONS) {
    return kilni_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "`%s` has %u entries, more than %u", field,
                   (unsigned)count, (unsigned)KILNI_COMPILE_MAX_OPTIONS),
        "give fewer, or put them into a header");
  }
  return NULL;
}

static kiln_status_t check_options(const kiln_compile_options_t* options) {
  KILNI_RETURN_IF_ERROR(
      check_list(options->options, options->option_count, "options"));
  KILNI_RETURN_IF_ERROR(check_list(options->name_expressions,
                                   options->name_expression_count,
                                   "name_expressions"));
  KILNI_RETURN_IF_ERROR(check_list(options->include_dirs,
                                   options->include_dir_count, "include_dirs"));
  KILNI_RETURN_IF_ERROR(
      check_list(options->defines, options->define_count, "defines"));
  if (options->output > KILN_CODE_FORMAT_CUBIN ||
      options->toolkit_include > KILN_SWITCH_ON ||
      options->nvrtc_cache > KILN_SWITCH_ON) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "kiln_compile_options_t has `output` %u, `toolkit_include` "
                   "%u, `nvrtc_cache` %u",
                   (unsigned)options->output,
                   (unsigned)options->toolkit_include,
                   (unsigned)options->nvrtc_cache),
        "use KILN_CODE_FORMAT_* and KILN_SWITCH_*");
  }
  return NULL;
}

// The value of an architecture that is among the raw options; NULL if none.
static const char* raw_arch(const kiln_compile_options_t* options) {
  static const char* const names[] = {"--gpu-architecture", "-arch"};
  for (uint32_t i = 0; i < options->option_count; i++) {
    const char* text = options->options[i];
    for (size_t k = 0; text != NULL && k < 2; k++) {
      size_t length = strlen(names[k]);
      if (strncmp(text, names[k], length) != 0) continue;
      if (text[length] == '=') return text + length + 1;
      if (text[length] != 0 || i + 1 == options->option_count) continue;
      return options->options[i + 1] ? options->options[i + 1] : "";
    }
  }
  return NULL;
}

// Decides the architecture and writes it into the result.
static kiln_status_t choose_arch(const kiln_compiler_t* compiler,
                                 const kiln_compile_options_t* options,
                                 kiln_compile_result_t* result) {
  const char* arch = raw_arch(options);
  if (arch == NULL) arch = options->arch;
  bool cubin = options->output == KILN_CODE_FORMAT_CUBIN;
  if (arch == NULL && !cubin) {
    // What every GPU can load that this compiler still knows.
    int oldest = compiler->archs[0];
    bool has_75 = kiln_compiler_has_arch(compiler, 75);
    snprintf(result->arch, sizeof(result->arch), "compute_%d",
             has_75 ? 75 : oldest);
    return NULL;
  }
  if (arch == NULL || (cubin && strncmp(arch, "sm_", 3) != 0)) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a cubin is made for one real architecture, not for \"%s\"",
                   arch ? arch : ""),
        "set `arch` to that of the device, e.g. \"sm_90\"");
  }
  if (strlen(arch) >= sizeof(result->arch)) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "no architecture is called \"%s\"", arch),
        "use e.g. \"sm_90\" or \"compute_80\"");
  }
  memcpy(result->arch, arch, strlen(arch) + 1);
  return NULL;
}

static kiln_status_t build_line(const kiln_compiler_t* compiler,
                                const kiln_compile_options_t* options,
                                const kiln_compile_result_t* result,
                                line_t* line) {
  size_t wanted = (size_t)options->option_count + options->include_dir_count +
                  options->define_count + 4;
  void* items = NULL;
  line->allocator = compiler->host->allocator;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc_array(line->allocator, wanted, sizeof(char*), &items));
  line->items = items;
  line->capacity = wanted;
  if (raw_arch(options) == NULL) {
    KILNI_RETURN_IF_ERROR(line_add(line, "--gpu-architecture=", result->arch));
  }
  // NVRTC 13 asks the driver for its cache, and so loads it, unless told not.
  if (compiler->table.major >= 13 && options->nvrtc_cache != KILN_SWITCH_ON) {
    KILNI_RETURN_IF_ERROR(line_add(line, "--no-cache", ""));
  }
  KILNI_RETURN_IF_ERROR(line_add_all(line, "--define-macro=", options->defines,
                                     options->define_count, "defines"));
  KILNI_RETURN_IF_ERROR(
      line_add_all(line, "--include-path=", options->include_dirs,
                   options->include_dir_count, "include_dirs"));
  if (options->toolkit_include != KILN_SWITCH_OFF &&
      compiler->include_dir[0] != 0) {
    KILNI_RETURN_IF_ERROR(
        line_add(line, "--include-path=", compiler->include_dir));
  }
  if (options->toolkit_include != KILN_SWITCH_OFF &&
      compiler->include_dir2[0] != 0) {
    KILNI_RETURN_IF_ERROR(
        line_add(line, "--include-path=", compiler->include_dir2));
  }
  return line_add_all(line, "", options->options, options->option_count,
                      "options");
}

// ---- Taking things out of NVRTC's program ----

static kiln_status_t take_log(const kiln_nvrtc_table_t* table,
                              kiln_nvrtc_program_t program,
                              kiln_compile_result_t* result) {
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_NVRTC_STATUS(table, table->nvrtcGetProgramLogSize(program, &bytes),
                         "nvrtcGetProgramLogSize"));
  void* text = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc(result->allocator, bytes + 1, &text));
  kiln_status_t status = KILNI_NVRTC_STATUS(
      table, table->nvrtcGetProgramLog(program, text), "nvrtcGetProgramLog");
  if (kiln_status_is_ok(status)) {
    status = kilni_strdup(result->allocator, kilni_sv(text), &result->log);
  }
  kilni_free(result->allocator, text, bytes + 1);
  return status;
}

// What is taken out of NVRTC's program on the way to the code. one-thread
typedef struct taken_t {
  uint8_t* bytes;
  size_t size;
  size_t capacity;
  kiln_code_name_t* names;
  uint32_t name_count;
} taken_t;

static void taken_deinit(kiln_allocator_t allocator, taken_t* taken) {
  kilni_free(allocator, taken->bytes, taken->capacity);
  kilni_free_array(allocator, taken->names, taken->name_count,
                   sizeof(kiln_code_name_t));
}

static kiln_status_t take_bytes(const kiln_nvrtc_table_t* table,
                                kiln_nvrtc_program_t program,
                                const kiln_compile_result_t* result,
                                taken_t* taken) {
  bool cubin = result->format == KILN_CODE_FORMAT_CUBIN;
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_NVRTC_STATUS(table,
                         cubin ? table->nvrtcGetCUBINSize(program, &bytes)
                               : table->nvrtcGetPTXSize(program, &bytes),
                         cubin ? "nvrtcGetCUBINSize" : "nvrtcGetPTXSize"));
  if (bytes == 0) {
    return kilni_status_with_fix(
        KILNI_FAIL(COMPILE_FAILED, "the compiler gave no %s for \"%s\"",
                   cubin ? "cubin" : "PTX", result->arch),
        "look at the options: some ask for another kind of output");
  }
  void* code = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc(result->allocator, bytes, &code));
  taken->bytes = code;
  taken->capacity = bytes;
  KILNI_RETURN_IF_ERROR(
      KILNI_NVRTC_STATUS(table,
                         cubin ? table->nvrtcGetCUBIN(program, code)
                               : table->nvrtcGetPTX(program, code),
                         cubin ? "nvrtcGetCUBIN" : "nvrtcGetPTX"));
  // PTX comes with its NUL counted.
  taken->size = cubin || taken->bytes[bytes - 1] != 0 ? bytes : bytes - 1;
  return NULL;
}

// The names belong to the program and are copied before that is destroyed.
static kiln_status_t take_names(const kiln_nvrtc_table_t* table,
                                kiln_nvrtc_program_t program,
                                const kiln_compile_options_t* options,
                                kiln_allocator_t allocator, taken_t* taken) {
  uint32_t count = options->name_expression_count;
  if (count == 0) return NULL;
  void* names = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc_array(allocator, count, sizeof(kiln_code_name_t), &names));
  taken->names = names;
  taken->name_count = count;
  for (uint32_t i = 0; i < count; i++) {
    taken->names[i].expression = options->name_expressions[i];
    KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
        table,
        table->nvrtcGetLoweredName(program, options->name_expressions[i],
                                   &taken->names[i].lowered),
        "nvrtcGetLoweredName"));
  }
  return NULL;
}

static kiln_status_t take_code(const kiln_compiler_t* compiler,
                               kiln_nvrtc_program_t program,
                               const kiln_compile_options_t* options,
                               kiln_compile_result_t* result) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  taken_t taken = {0};
  kiln_status_t status =
      take_names(table, program, options, result->allocator, &taken);
  if (kiln_status_is_ok(status)) {
    status = take_bytes(table, program, result, &taken);
  }
  if (kiln_status_is_ok(status)) {
    kiln_code_options_t how = kiln_code_options_default();
    how.format = result->format;
    how.name = options->file_name ? options->file_name : "kernel.cu";
    how.arch = result->arch;
    how.names = taken.names;
    how.name_count = taken.name_count;
    how.producer_line = kiln_compiler_version(compiler);
    how.allocator = &result->allocator;
    kiln_bytes_view_t bytes = {taken.bytes, taken.size};
    status = kilni_code_create(bytes, &how, result->keep, &result->code);
  }
  taken_deinit(result->allocator, &taken);
  return status;
}

// ---- Errors ----

static bool contains(kiln_string_view_t text, const char* word) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= text.size; i++) {
    if (memcmp(text.data + i, word, length) == 0) return true;
  }
  return false;
}

// The first line of the log that speaks of an error, else its first line.
static kiln_string_view_t first_error(const char* log) {
  kiln_string_view_t rest = kilni_sv(log);
  kiln_string_view_t first = {NULL, 0};
  kiln_string_view_t line;
  while (kilni_sv_split(&rest, '\n', &line)) {
    if (line.size == 0) continue;
    if (contains(line, "error")) return line;
    if (first.size == 0) first = line;
  }
  return first;
}

static kiln_status_t compile_failed(const kiln_compiler_t* compiler,
                                    kiln_nvrtc_result_t result,
                                    const char* log) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  kiln_status_t native =
      KILNI_NVRTC_STATUS(table, result, "nvrtcCompileProgram");
  kiln_string_view_t line = first_error(log);
  kiln_status_code_t code = kiln_status_code(native);
  bool of_source = code == KILN_STATUS_COMPILE_FAILED ||
                   result == KILN_NVRTC_ERROR_INVALID_OPTION;
  if (line.size == 0) return native;
  if (!of_source) return KILNI_ANNOTATE(native, "%.*s", KILNI_SV(line));
  kiln_status_t status = KILNI_FAIL(COMPILE_FAILED, "%.*s", KILNI_SV(line));
  kiln_status_native_t part;
  if (kiln_status_native(native, &part)) {
    status =
        kilni_status_with_native(status, part.domain, part.number, part.name);
  }
  const char* fix = kiln_status_fix(native);
  status = kilni_status_with_fix(
      status, "%s",
      fix ? fix : "correct the source; the whole log is in the result");
  kiln_status_free(native);
  return status;
}

// ---- The compilation ----

// NVRTC up to 12.6 may leave another locale behind, which it shares with the
// whole process.
static kiln_nvrtc_result_t run_nvrtc(const kiln_nvrtc_table_t* table,
                                     kiln_nvrtc_program_t program,
                                     const line_t* line) {
  bool guarded = table->major < 12 || (table->major == 12 && table->minor <= 6);
  char saved[256] = "";
  if (guarded) {
    const char* now = setlocale(LC_ALL, NULL);
    if (now != NULL && strlen(now) < sizeof(saved)) {
      memcpy(saved, now, strlen(now) + 1);
    }
  }
  kiln_nvrtc_result_t result = table->nvrtcCompileProgram(
      program, (int)line->count, (const char* const*)line->items);
  if (saved[0] != 0) {
    const char* now = setlocale(LC_ALL, NULL);
    if (now == NULL || strcmp(now, saved) != 0) (void)setlocale(LC_ALL, saved);
  }
  return result;
}

static kiln_status_t compile_program(const kiln_compiler_t* compiler,
                                     kiln_nvrtc_program_t program,
                                     const kiln_compile_options_t* options,
                                     const line_t* line,
                                     kiln_compile_result_t* result) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  for (uint32_t i = 0; i < options->name_expression_count; i++) {
    KILNI_CHECK_ARGUMENT(options->name_expressions[i] != NULL,
                         "name_expressions");
    KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
        table,
        table->nvrtcAddNameExpression(program, options->name_expressions[i]),
        "nvrtcAddNameExpression"));
  }
  kiln_nvrtc_result_t compiled = run_nvrtc(table, program, line);
  KILNI_RETURN_IF_ERROR(take_log(table, program, result));
  if (compiled != KILN_NVRTC_SUCCESS) {
    return compile_failed(compiler, compiled, result->log);
  }
  return take_code(compiler, program, options, result);
}

static kiln_status_t compile_text(const kiln_compiler_t* compiler,
                                  const char* source,
                                  const kiln_compile_options_t* options,
                                  const line_t* line,
                                  kiln_compile_result_t* result) {
  const kiln_nvrtc_table_t* table = &compiler->table;
  const char* name = options->file_name ? options->file_name : "kernel.cu";
  kiln_nvrtc_program_t program = NULL;
  KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
      table, table->nvrtcCreateProgram(&program, source, name, 0, NULL, NULL),
      "nvrtcCreateProgram"));
  kiln_status_t status =
      compile_program(compiler, program, options, line, result);
  return kilni_status_join(
      status, KILNI_NVRTC_STATUS(table, table->nvrtcDestroyProgram(&program),
                                 "nvrtcDestroyProgram"));
}

static kiln_status_t check_source(kiln_string_view_t source) {
  KILNI_CHECK_ARGUMENT(source.data != NULL || source.size == 0, "source");
  if (source.size > KILNI_COMPILE_MAX_SOURCE_BYTES) {
    return kilni_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "the source has %zu bytes, more than %u",
                   source.size, (unsigned)KILNI_COMPILE_MAX_SOURCE_BYTES),
        "split it into several");
  }
  const char* nul = source.size ? memchr(source.data, 0, source.size) : NULL;
  if (nul == NULL || nul == source.data + source.size - 1) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the source has a NUL at byte %zu",
                 (size_t)(nul - source.data)),
      "check that this is CUDA C++ text and not a binary file");
}

// Everything with a result to write into.
static kiln_status_t compile_into(const kiln_compiler_t* compiler,
                                  kiln_string_view_t source,
                                  const kiln_compile_options_t* options,
                                  kiln_compile_result_t* result) {
  result->format =
      options->output ? options->output : (uint32_t)KILN_CODE_FORMAT_PTX;
  KILNI_RETURN_IF_ERROR(choose_arch(compiler, options, result));
  line_t line = {0};
  char* text = NULL;
  kiln_status_t status = build_line(compiler, options, result, &line);
  if (kiln_status_is_ok(status)) {
    size_t size = source.size;
    if (size > 0 && source.data[size - 1] == 0) size--;
    status = kilni_strdup(result->allocator, kilni_sv_make(source.data, size),
                          &text);
  }
  if (kiln_status_is_ok(status)) {
    status = compile_text(compiler, text, options, &line, result);
  }
  kilni_strfree(result->allocator, text);
  line_deinit(&line);
  return status;
}

kiln_status_t kiln_compiler_compile(kiln_compiler_t* compiler,
                                    kiln_string_view_t source,
                                    const kiln_compile_options_t* options,
                                    kiln_compile_result_t** out_result) {
  KILNI_CHECK_ARGUMENT(out_result != NULL, "out_result");
  *out_result = NULL;
  KILNI_CHECK_ARGUMENT(compiler != NULL, "compiler");
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(compiler->host));
  kiln_compile_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_compile_options_t",
                                           sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(check_options(&given));
  KILNI_RETURN_IF_ERROR(check_source(source));
  kiln_compile_result_t* result = NULL;
  KILNI_RETURN_IF_ERROR(kilni_compile_result_create(compiler, &result));
  kiln_status_t status = compile_into(compiler, source, &given, result);
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OUT_OF_MEMORY ||
      code == KILN_STATUS_INVALID_ARGUMENT ||
      code == KILN_STATUS_LIMIT_EXCEEDED) {
    kiln_compile_result_release(result);
    return status;
  }
  if (!kiln_status_is_ok(status)) {
    kiln_code_release(result->code);
    result->code = NULL;
  }
  *out_result = result;
  return status;
}
