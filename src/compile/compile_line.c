// SPDX-License-Identifier: Apache-2.0
//
// compile: the options of one compilation as the compiler takes them.
#include "base/status_make.h"
#include "compile/compile_line.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "compile/compile_inside.h"
#include "table/nvrtc_table.h"

void kilni_compile_line_deinit(kilni_compile_line_t* line) {
  for (size_t i = 0; i < line->count; i++) {
    kilni_base_strfree(line->allocator, line->items[i]);
  }
  kilni_base_free_array(line->allocator, line->items, line->capacity,
                        sizeof(char*));
  line->items = NULL;
  line->count = 0;
  line->capacity = 0;
}

kiln_status_t kilni_compile_line_add(kilni_compile_line_t* line,
                                     const char* prefix, const char* text) {
  void* items = line->items;
  kiln_status_t status = kilni_base_grow(
      line->allocator, line->count + 1, sizeof(char*), &line->capacity, &items);
  line->items = items;
  KILNI_RETURN_IF_ERROR(status);
  kilni_base_str_t option;
  kilni_base_str_init(&option, line->allocator, KILNI_COMPILE_MAX_OPTION_BYTES);
  kilni_base_str_add_cstr(&option, prefix);
  kilni_base_str_add_cstr(&option, text);
  char* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_str_take(&option, &copy));
  line->items[line->count++] = copy;
  return kiln_ok();
}

// ---- Checks ----

static kiln_status_t line_check_list(const char* const* texts, uint32_t count,
                                     const char* field) {
  if (count > 0 && texts == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s` is NULL and its count is %u", field,
                   (unsigned)count),
        "set both or neither");
  }
  if (count > KILNI_COMPILE_MAX_OPTIONS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "`%s` has %u entries, more than %u", field,
                   (unsigned)count, (unsigned)KILNI_COMPILE_MAX_OPTIONS),
        "give fewer, or put them into a header");
  }
  for (uint32_t i = 0; i < count; i++) {
    if (texts[i] != NULL) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s[%u]` is NULL", field, (unsigned)i),
        "give %u texts, or a smaller count", (unsigned)count);
  }
  return kiln_ok();
}

static kiln_status_t line_check_files(const kiln_compile_file_t* files,
                                      uint32_t count, bool texts,
                                      const char* field) {
  if (count > KILNI_COMPILE_MAX_OPTIONS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "`%s` has %u entries, more than %u", field,
                   (unsigned)count, (unsigned)KILNI_COMPILE_MAX_OPTIONS),
        "give fewer");
  }
  for (uint32_t i = 0; i < count; i++) {
    const kiln_compile_file_t* file = files != NULL ? &files[i] : NULL;
    bool bad = file == NULL || file->name == NULL || file->name[0] == 0 ||
               (file->bytes.data == NULL && file->bytes.size != 0);
    if (!bad && file->bytes.size > KILNI_COMPILE_MAX_SOURCE_BYTES) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" has %zu bytes, more than %u",
                     file->name, file->bytes.size,
                     (unsigned)KILNI_COMPILE_MAX_SOURCE_BYTES),
          "split it into several");
    }
    if (!bad && texts && file->bytes.size != 0 &&
        memchr(file->bytes.data, 0, file->bytes.size) != NULL) {
      bad = true;
    }
    if (!bad) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s[%u]` has no name, no bytes%s", field,
                   (unsigned)i, texts ? " or a NUL among them" : ""),
        "give a name and the whole text of each");
  }
  return kiln_ok();
}

static kiln_status_t line_check_switch(uint32_t value, const char* field) {
  if (value <= KILN_SWITCH_ON) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`%s` is %u, which is not a KILN_SWITCH_*",
                 field, (unsigned)value),
      "use KILN_SWITCH_ON, KILN_SWITCH_OFF or 0");
}

static kiln_status_t line_check_typed(const kiln_compile_options_t* options) {
#define KILNI_COMPILE_ON(field, nvrtc, nvvm, since) \
  KILNI_RETURN_IF_ERROR(line_check_switch(options->field, #field));
#define KILNI_COMPILE_OFF(field, nvrtc, nvvm, since) \
  KILNI_COMPILE_ON(field, nvrtc, nvvm, since)
#define KILNI_COMPILE_NUMBER(field, nvrtc, since)
#define KILNI_COMPILE_TEXT(field, nvrtc, since)
#define KILNI_COMPILE_LIST(field, count, nvrtc, since) \
  KILNI_RETURN_IF_ERROR(                               \
      line_check_list(options->field, options->count, #field));
#include "compile/compile_options.inc"
#undef KILNI_COMPILE_ON
#undef KILNI_COMPILE_OFF
#undef KILNI_COMPILE_NUMBER
#undef KILNI_COMPILE_TEXT
#undef KILNI_COMPILE_LIST
  return kiln_ok();
}

static kiln_status_t line_check_switches(
    const kiln_compile_options_t* options) {
  KILNI_RETURN_IF_ERROR(
      line_check_switch(options->toolkit_include, "toolkit_include"));
  KILNI_RETURN_IF_ERROR(line_check_switch(options->nvrtc_cache, "nvrtc_cache"));
  KILNI_RETURN_IF_ERROR(
      line_check_switch(options->list_headers, "list_headers"));
  KILNI_RETURN_IF_ERROR(
      line_check_switch(options->cache_verify, "cache_verify"));
  KILNI_RETURN_IF_ERROR(line_check_switch(options->relocatable_device_code,
                                          "relocatable_device_code"));
  KILNI_RETURN_IF_ERROR(line_check_switch(options->link_time_optimization,
                                          "link_time_optimization"));
  KILNI_RETURN_IF_ERROR(
      line_check_switch(options->device_library, "device_library"));
  switch (options->output) {
    case KILN_CODE_FORMAT_UNKNOWN:
    case KILN_CODE_FORMAT_PTX:
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_LTOIR:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return kiln_ok();
    default:
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "no compiler makes %s (`output` is %u)",
                     kiln_code_format_name(options->output),
                     (unsigned)options->output),
          "use KILN_CODE_FORMAT_PTX, _CUBIN, _LTOIR or _RELOCATABLE");
  }
}

kiln_status_t kilni_compile_check_options(
    const kiln_compile_options_t* options) {
  KILNI_RETURN_IF_ERROR(
      line_check_list(options->options, options->option_count, "options"));
  KILNI_RETURN_IF_ERROR(line_check_list(options->name_expressions,
                                        options->name_expression_count,
                                        "name_expressions"));
  KILNI_RETURN_IF_ERROR(line_check_list(
      options->include_dirs, options->include_dir_count, "include_dirs"));
  KILNI_RETURN_IF_ERROR(
      line_check_list(options->defines, options->define_count, "defines"));
  KILNI_RETURN_IF_ERROR(line_check_files(
      options->headers, options->header_count, true, "headers"));
  KILNI_RETURN_IF_ERROR(line_check_files(
      options->modules, options->module_count, false, "modules"));
  KILNI_RETURN_IF_ERROR(line_check_typed(options));
  return line_check_switches(options);
}

// ---- NVRTC ----

// One list of NVRTC's options while it is made. one-thread
typedef struct making_t {
  kilni_compile_line_t* line;
  uint32_t version;
} making_t;

static kiln_status_t line_add(making_t* making, const char* prefix,
                              const char* text, uint32_t since) {
  if (prefix[0] == 0) return kiln_ok();
  if (since > making->version) {
    size_t name = strcspn(prefix, "=");
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "NVRTC %u.%u has no option %.*s, which came with %u.%u",
                   (unsigned)(making->version / 1000),
                   (unsigned)(making->version % 1000 / 10), (int)name, prefix,
                   (unsigned)(since / 1000), (unsigned)(since % 1000 / 10)),
        "leave it at its default, or use NVRTC %u.%u or newer",
        (unsigned)(since / 1000), (unsigned)(since % 1000 / 10));
  }
  return kilni_compile_line_add(making->line, prefix, text);
}

static kiln_status_t line_add_number(making_t* making, const char* prefix,
                                     uint32_t number, uint32_t since) {
  if (number == 0) return kiln_ok();
  char text[16];
  snprintf(text, sizeof(text), "%u", (unsigned)number);
  return line_add(making, prefix, text, since);
}

static kiln_status_t line_add_list(making_t* making, const char* prefix,
                                   const char* const* texts, uint32_t count,
                                   uint32_t since) {
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(line_add(making, prefix, texts[i], since));
  }
  return kiln_ok();
}

static kiln_status_t line_add_typed(making_t* making,
                                    const kiln_compile_options_t* options) {
#define KILNI_COMPILE_ON(field, nvrtc, nvvm, since) \
  if (options->field == KILN_SWITCH_ON)             \
    KILNI_RETURN_IF_ERROR(line_add(making, nvrtc, "", since));
#define KILNI_COMPILE_OFF(field, nvrtc, nvvm, since) \
  if (options->field == KILN_SWITCH_OFF)             \
    KILNI_RETURN_IF_ERROR(line_add(making, nvrtc, "", since));
#define KILNI_COMPILE_NUMBER(field, nvrtc, since) \
  KILNI_RETURN_IF_ERROR(line_add_number(making, nvrtc, options->field, since));
#define KILNI_COMPILE_TEXT(field, nvrtc, since) \
  if (options->field != NULL)                   \
    KILNI_RETURN_IF_ERROR(line_add(making, nvrtc, options->field, since));
#define KILNI_COMPILE_LIST(field, count, nvrtc, since) \
  KILNI_RETURN_IF_ERROR(                               \
      line_add_list(making, nvrtc, options->field, options->count, since));
#include "compile/compile_options.inc"
#undef KILNI_COMPILE_ON
#undef KILNI_COMPILE_OFF
#undef KILNI_COMPILE_NUMBER
#undef KILNI_COMPILE_TEXT
#undef KILNI_COMPILE_LIST
  return kiln_ok();
}

// What the output asks for by itself, and what may be switched beside it.
static kiln_status_t line_add_output(making_t* making,
                                     const kiln_compile_options_t* options) {
  if (options->output == KILN_CODE_FORMAT_LTOIR ||
      options->link_time_optimization == KILN_SWITCH_ON) {
    KILNI_RETURN_IF_ERROR(line_add(making, "--dlink-time-opt", "", 12000));
  }
  if (options->output == KILN_CODE_FORMAT_RELOCATABLE ||
      options->relocatable_device_code == KILN_SWITCH_ON) {
    return line_add(making, "--relocatable-device-code=true", "", 12000);
  }
  if (options->relocatable_device_code == KILN_SWITCH_OFF) {
    return line_add(making, "--relocatable-device-code=false", "", 12000);
  }
  return kiln_ok();
}

kiln_status_t kilni_compile_line_add_nvrtc(
    kilni_compile_line_t* line, const kiln_compile_options_t* options,
    uint32_t version) {
  making_t making = {line, version};
  // NVRTC 13 queries the driver for its cache, and so loads it, unless an
  // option disables that.
  if (version >= 13000 && options->nvrtc_cache != KILN_SWITCH_ON) {
    KILNI_RETURN_IF_ERROR(line_add(&making, "--no-cache", "", 12090));
  }
  KILNI_RETURN_IF_ERROR(line_add_output(&making, options));
  if (options->split_compile == KILN_COMPILE_ALL_CORES) {
    KILNI_RETURN_IF_ERROR(line_add(&making, "--split-compile=0", "", 12000));
  } else {
    KILNI_RETURN_IF_ERROR(line_add_number(
        &making, "--split-compile=", options->split_compile, 12000));
  }
  return line_add_typed(&making, options);
}

// ---- libNVVM ----

static kiln_status_t line_no_such(const char* field) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "libNVVM has no option for `%s`", field),
      "leave it at its default; NVVM IR is compiled with `arch`, `debug`, "
      "`optimize`, `ftz`, `prec_sqrt`, `prec_div`, `fma`, and `options`");
}

static kiln_status_t refuse_untyped(const kiln_compile_options_t* options) {
  if (options->name_expression_count != 0) {
    return line_no_such("name_expressions");
  }
  if (options->include_dir_count != 0) return line_no_such("include_dirs");
  if (options->define_count != 0) return line_no_such("defines");
  if (options->header_count != 0) return line_no_such("headers");
  if (options->toolkit_include != 0) return line_no_such("toolkit_include");
  if (options->nvrtc_cache != 0) return line_no_such("nvrtc_cache");
  if (options->split_compile != 0) return line_no_such("split_compile");
  if (options->relocatable_device_code != 0) {
    return line_no_such("relocatable_device_code");
  }
  if (options->link_time_optimization == KILN_SWITCH_ON &&
      options->output != KILN_CODE_FORMAT_LTOIR) {
    return line_no_such("link_time_optimization");
  }
  return kiln_ok();
}

kiln_status_t kilni_compile_line_add_nvvm(
    kilni_compile_line_t* line, const kiln_compile_options_t* options) {
  KILNI_RETURN_IF_ERROR(refuse_untyped(options));
#define KILNI_COMPILE_ON(field, nvrtc, nvvm, since)                \
  if (options->field == KILN_SWITCH_ON) {                          \
    if (nvvm[0] == 0) return line_no_such(#field);                 \
    KILNI_RETURN_IF_ERROR(kilni_compile_line_add(line, nvvm, "")); \
  }
#define KILNI_COMPILE_OFF(field, nvrtc, nvvm, since)     \
  if (options->field == KILN_SWITCH_OFF && nvvm[0] != 0) \
    KILNI_RETURN_IF_ERROR(kilni_compile_line_add(line, nvvm, ""));
#define KILNI_COMPILE_NUMBER(field, nvrtc, since) \
  if (options->field != 0) return line_no_such(#field);
#define KILNI_COMPILE_TEXT(field, nvrtc, since) \
  if (options->field != NULL) return line_no_such(#field);
#define KILNI_COMPILE_LIST(field, count, nvrtc, since) \
  if (options->count != 0) return line_no_such(#field);
#include "compile/compile_options.inc"
#undef KILNI_COMPILE_ON
#undef KILNI_COMPILE_OFF
#undef KILNI_COMPILE_NUMBER
#undef KILNI_COMPILE_TEXT
#undef KILNI_COMPILE_LIST
  if (options->output == KILN_CODE_FORMAT_LTOIR) {
    return kilni_compile_line_add(line, "-gen-lto", "");
  }
  return kiln_ok();
}
