// SPDX-License-Identifier: Apache-2.0
//
// compile: the options of a link, checked and copied.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "compile/link_inside.h"

typedef struct kilni_compile_link_block_t block_t;
struct kilni_compile_link_block_t {
  void* data;
  size_t size;
};

// ---- Checks ----

static kiln_status_t link_options_out_of_range(const char* field,
                                               uint32_t value,
                                               const char* fix) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`%s` of kiln_link_options_t is %u", field,
                 (unsigned)value),
      "%s", fix);
}

static kiln_status_t check_text(const char* field, const char* text) {
  if (text == NULL) return kiln_ok();
  if (text[0] == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s` is empty", field),
        "give a text, or leave it out");
  }
  if (strlen(text) > KILN_LINK_MAX_OPTION_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "`%s` has %zu bytes", field, strlen(text)),
        "give at most %d", KILN_LINK_MAX_OPTION_BYTES);
  }
  return kiln_ok();
}

static kiln_status_t link_options_check_list(const char* field,
                                             const char* const* list,
                                             uint32_t count) {
  if (count > 0 && list == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`%s` is NULL and its count is %u", field,
                   (unsigned)count),
        "set both or neither");
  }
  if (count > KILN_LINK_MAX_LIST) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "`%s` has %u entries", field,
                   (unsigned)count),
        "give at most %d", KILN_LINK_MAX_LIST);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (list[i] == NULL) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "`%s[%u]` is NULL", field, (unsigned)i),
          "give %u texts, or a smaller count", (unsigned)count);
    }
    KILNI_RETURN_IF_ERROR(check_text(field, list[i]));
  }
  return kiln_ok();
}

static kiln_status_t link_options_check_switch(const char* field,
                                               uint32_t value) {
  if (value <= KILN_SWITCH_ON) return kiln_ok();
  return link_options_out_of_range(field, value, "use KILN_SWITCH_*");
}

static kiln_status_t check_level(const char* field, uint32_t value) {
  if (value <= KILN_LINK_LEVEL_3) return kiln_ok();
  return link_options_out_of_range(field, value, "use KILN_LINK_LEVEL_*");
}

// An option is one line: a linker would take a second one for another option,
// or for a part of this one.
static kiln_status_t check_line(const char* field, const char* text) {
  for (const char* at = text; *at != 0; at++) {
    if ((unsigned char)*at >= ' ' && *at != 0x7f) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "an option in `%s` has the control character %u at byte %zu",
                   field, (unsigned)(unsigned char)*at, (size_t)(at - text)),
        "give each option as an element of its own");
  }
  return kiln_ok();
}

// Linkers take "a,b" for two names over LTO-IR, and for one over machine code.
static kiln_status_t link_options_check_names(const char* field,
                                              const char* const* list,
                                              uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(check_line(field, list[i]));
    if (strchr(list[i], ',') == NULL) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%.400s\" in `%s` is more than one name",
                   list[i], field),
        "give each name by itself, as an element of its own (on a command line "
        "the option once for each)");
  }
  return kiln_ok();
}

// What an option among `extra` would change without its field.
static kiln_status_t check_extra(const char* text) {
  static const char* const kFields[][2] = {
      {"-arch=", "arch"}, {"-lto", "lto"},  {"-ptx", "output"},
      {"-r", "output"},   {"-dlto", "lto"},
  };
  KILNI_RETURN_IF_ERROR(check_line("extra", text));
  for (size_t i = 0; i < sizeof(kFields) / sizeof(kFields[0]); i++) {
    const char* name = kFields[i][0];
    size_t size = strlen(name);
    bool is_prefix = name[size - 1] == '=';
    if (is_prefix ? strncmp(text, name, size) != 0 : strcmp(text, name) != 0) {
      continue;
    }
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is among the extra options", text),
        "set `%s` instead; the choice of a linker depends on it",
        kFields[i][1]);
  }
  return kiln_ok();
}

static kiln_status_t check_program(const char* path) {
  KILNI_RETURN_IF_ERROR(check_text("isolated_program", path));
  if (path == NULL || (path[0] == '/' && strlen(path) < 4000)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`isolated_program` is \"%.200s\"", path),
      "give an absolute path, e.g. \"/usr/bin/kiln\"");
}

#define CHECK_TEXT(field)    check_text(#field, o->field)
#define CHECK_NUMBER(field)  NULL
#define CHECK_THREADS(field) NULL
#define CHECK_LEVEL(field)   check_level(#field, o->field)
#define CHECK_FLAG(field)    link_options_check_switch(#field, o->field)
#define CHECK_CHOICE(field)  link_options_check_switch(#field, o->field)
#define CHECK_LIST(field) \
  link_options_check_list(#field, o->field, o->field##_count)

static kiln_status_t link_options_check_options(const kiln_link_options_t* o) {
#define KILNI_LINK_OPTION(field, kind, spelling, key, treatment, what) \
  KILNI_RETURN_IF_ERROR(CHECK_##kind(field));
#include "compile/link_options.inc"
#undef KILNI_LINK_OPTION
  KILNI_RETURN_IF_ERROR(check_text("name", o->name));
  KILNI_RETURN_IF_ERROR(link_options_check_switch("lto", o->lto));
  KILNI_RETURN_IF_ERROR(link_options_check_switch("isolated", o->isolated));
  KILNI_RETURN_IF_ERROR(check_program(o->isolated_program));
  for (uint32_t i = 0; i < o->extra_count; i++) {
    KILNI_RETURN_IF_ERROR(check_extra(o->extra[i]));
  }
  for (uint32_t i = 0; i < o->ptxas_options_count; i++) {
    KILNI_RETURN_IF_ERROR(check_line("ptxas_options", o->ptxas_options[i]));
  }
  KILNI_RETURN_IF_ERROR(link_options_check_names(
      "kernels_used", o->kernels_used, o->kernels_used_count));
  KILNI_RETURN_IF_ERROR(link_options_check_names(
      "variables_used", o->variables_used, o->variables_used_count));
  if (o->backend > KILN_LINK_BACKEND_DRIVER) {
    return link_options_out_of_range("backend", o->backend,
                                     "use KILN_LINK_BACKEND_*");
  }
  switch (o->output) {
    case 0:
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_PTX:
    case KILN_CODE_FORMAT_LTOIR:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return kiln_ok();
    default:
      return link_options_out_of_range(
          "output", o->output, "ask for cubin, ptx, ltoir or relocatable");
  }
}

// ---- Copies ----

static kiln_status_t new_block(kilni_compile_link_options_copy_t* copy,
                               size_t size, void** out_data) {
  void* blocks = copy->blocks;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(copy->allocator, copy->block_count + 1,
                                        sizeof(block_t), &copy->block_capacity,
                                        &blocks));
  copy->blocks = blocks;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(copy->allocator, size, out_data));
  copy->blocks[copy->block_count++] = (block_t){*out_data, size};
  return kiln_ok();
}

static kiln_status_t link_options_copy_text(
    kilni_compile_link_options_copy_t* copy, const char** inout_text) {
  if (*inout_text == NULL) return kiln_ok();
  size_t size = strlen(*inout_text) + 1;
  void* data = NULL;
  KILNI_RETURN_IF_ERROR(new_block(copy, size, &data));
  memcpy(data, *inout_text, size);
  *inout_text = data;
  return kiln_ok();
}

static kiln_status_t copy_list(kilni_compile_link_options_copy_t* copy,
                               const char* const** inout_list, uint32_t count) {
  void* data = NULL;
  if (count == 0) {
    *inout_list = NULL;
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(new_block(copy, count * sizeof(const char*), &data));
  const char** list = data;
  for (uint32_t i = 0; i < count; i++) {
    list[i] = (*inout_list)[i];
    KILNI_RETURN_IF_ERROR(link_options_copy_text(copy, &list[i]));
  }
  *inout_list = data;
  return kiln_ok();
}

#define COPY_TEXT(field)    link_options_copy_text(copy, &o->field)
#define COPY_NUMBER(field)  NULL
#define COPY_THREADS(field) NULL
#define COPY_LEVEL(field)   NULL
#define COPY_FLAG(field)    NULL
#define COPY_CHOICE(field)  NULL
#define COPY_LIST(field)    copy_list(copy, &o->field, o->field##_count)

static kiln_status_t copy_all(kilni_compile_link_options_copy_t* copy) {
  kiln_link_options_t* o = &copy->options;
#define KILNI_LINK_OPTION(field, kind, spelling, key, treatment, what) \
  KILNI_RETURN_IF_ERROR(COPY_##kind(field));
#include "compile/link_options.inc"
#undef KILNI_LINK_OPTION
  kiln_cache_retain(o->cache);
  copy->cache = o->cache;
  KILNI_RETURN_IF_ERROR(link_options_copy_text(copy, &o->isolated_program));
  return link_options_copy_text(copy, &o->name);
}

kiln_status_t kilni_compile_link_options_copy(
    const kiln_link_options_t* given, kiln_allocator_t allocator,
    kilni_compile_link_options_copy_t* out_copy) {
  memset(out_copy, 0, sizeof(*out_copy));
  out_copy->allocator = allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(given, "kiln_link_options_t",
                                                sizeof(out_copy->options),
                                                &out_copy->options));
  kiln_status_t status = link_options_check_options(&out_copy->options);
  if (kiln_status_is_ok(status)) status = copy_all(out_copy);
  if (!kiln_status_is_ok(status)) kilni_compile_link_options_free(out_copy);
  return status;
}

void kilni_compile_link_options_free(kilni_compile_link_options_copy_t* copy) {
  kiln_cache_release(copy->cache);
  for (size_t i = 0; i < copy->block_count; i++) {
    kilni_base_free(copy->allocator, copy->blocks[i].data,
                    copy->blocks[i].size);
  }
  kilni_base_free_array(copy->allocator, copy->blocks, copy->block_capacity,
                        sizeof(block_t));
  memset(copy, 0, sizeof(*copy));
}
