// SPDX-License-Identifier: Apache-2.0
//
// cli: options for compiling a source.
#include "cli/source_options.h"

#include <string.h>

static const kilni_cli_option_t kRows[] = {
    {"arch", "", "", false, NULL},
    KILNI_CLI_SOURCE_OPTIONS,
};
enum { ROW_COUNT = sizeof(kRows) / sizeof(kRows[0]) };

const char* kilni_cli_source_asked(const kilni_cli_call_t* call) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (kilni_cli_option_value(call, kRows[i].name) != NULL) {
      return kRows[i].name;
    }
  }
  return NULL;
}

size_t kilni_cli_source_without(const kilni_cli_call_t* call,
                                kilni_cli_given_t* out) {
  size_t count = 0;
  for (size_t i = 0; i < call->given_count; i++) {
    bool is_one = false;
    for (size_t row = 0; row < ROW_COUNT; row++) {
      is_one |= strcmp(call->given[i].option->name, kRows[row].name) == 0;
    }
    if (!is_one) out[count++] = call->given[i];
  }
  return count;
}

// Puts all values of one option at `*inout_end`. `more` is one more, unless
// it is among them; or NULL.
static bool source_options_collect(const kilni_cli_call_t* call,
                                   const char* name, const char* more,
                                   const char*** inout_end,
                                   const char* const** out_list,
                                   uint32_t* out_count,
                                   kilni_cli_error_t* error) {
  const char** list = *inout_end;
  uint32_t count = 0;
  for (size_t i = 0; i < call->given_count; i++) {
    const kilni_cli_given_t* given = &call->given[i];
    if (strcmp(given->option->name, name) != 0) continue;
    if (count == KILNI_CLI_SOURCE_LIST_MAX) {
      return kilni_cli_fail(error, KILN_STATUS_LIMIT_EXCEEDED,
                            "put them into a header", "more than %d of --%s",
                            KILNI_CLI_SOURCE_LIST_MAX, name);
    }
    if (more != NULL && strcmp(given->value, more) == 0) more = NULL;
    list[count++] = given->value;
  }
  if (more != NULL) list[count++] = more;
  *inout_end = list + count;
  *out_list = list;
  *out_count = count;
  return true;
}

// The architecture set by an option of the compiler itself; NULL: none.
static const char* option_arch(const kiln_compile_options_t* o) {
  static const char* const NAMES[] = {"--gpu-architecture", "-arch"};
  for (uint32_t i = 0; i < o->option_count; i++) {
    for (size_t k = 0; k < sizeof(NAMES) / sizeof(NAMES[0]); k++) {
      size_t length = strlen(NAMES[k]);
      const char* end = o->options[i] + length;
      if (strncmp(o->options[i], NAMES[k], length) != 0) continue;
      if (*end == '=') return end + 1;
      if (*end == 0 && i + 1 < o->option_count) return o->options[i + 1];
    }
  }
  return NULL;
}

static bool source_options_check_arch(const kiln_compile_options_t* o,
                                      kilni_cli_error_t* error) {
  const char* other = option_arch(o);
  if (o->arch == NULL || other == NULL || strcmp(o->arch, other) == 0) {
    return true;
  }
  return kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT, "omit one of the two",
      "--arch is \"%s\", but --option sets \"%s\"", o->arch, other);
}

bool kilni_cli_source_read(kilni_cli_source_t* out,
                           const kilni_cli_call_t* call, const char* expression,
                           kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  kiln_compile_options_t* o = &out->options;
  *o = kiln_compile_options_default();
  o->arch = kilni_cli_option_value(call, "arch");
  o->std = kilni_cli_option_value(call, "std");
  if (kilni_cli_option_value(call, "lineinfo") != NULL) {
    o->lineinfo = KILN_SWITCH_ON;
  }
  if (kilni_cli_option_value(call, "debug") != NULL) o->debug = KILN_SWITCH_ON;
  // Each given option is in one list at most.
  if (!kilni_cli_buffer_resize(
          &out->words, (call->given_count + 2) * sizeof(const char*), error)) {
    return false;
  }
  const char** end = (const char**)(void*)out->words.data;
  return source_options_collect(call, "define", NULL, &end, &o->defines,
                                &o->define_count, error) &&
         source_options_collect(call, "include", NULL, &end, &o->include_dirs,
                                &o->include_dir_count, error) &&
         source_options_collect(call, "name", expression, &end,
                                &o->name_expressions, &o->name_expression_count,
                                error) &&
         source_options_collect(call, "option", NULL, &end, &o->options,
                                &o->option_count, error) &&
         source_options_collect(call, "pre-include", NULL, &end,
                                &o->pre_includes, &o->pre_include_count,
                                error) &&
         source_options_check_arch(o, error);
}

void kilni_cli_source_deinit(kilni_cli_source_t* source) {
  kilni_cli_buffer_deinit(&source->words);
}
