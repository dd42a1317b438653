// SPDX-License-Identifier: Apache-2.0
//
// compile: what the options of a link become for each backend.
//
// A switch that is off gives no option, a list gives one for each entry, and an
// option that a backend lacks is refused or named in a warning, by the table
// link_options.inc.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "compile/link_inside.h"
#include "table/cuda_abi.h"

enum {
  KILN_CU_JIT_NOTHING = 0x7fffffff,  // no option of the driver
  CACHE_OPTION_NONE = 0,             // CU_JIT_CACHE_OPTION_NONE
  TARGET_ACCELERATED = 0x10000,      // CU_COMPUTE_ACCELERATED_TARGET_BASE
  TARGET_FAMILY = 0x20000,           // CU_COMPUTE_FAMILY_TARGET_BASE
};

// What the driver makes of an option.
typedef enum treatment_t { APPLIED, REFUSED, IGNORED } treatment_t;

// One row of the table. thread-safe
typedef struct row_t {
  const char* field;
  const char* spelling;
  const char* key_name;
  uint32_t key;
  treatment_t treatment;
} row_t;

// Settings while they are made. one-thread
typedef struct make_t {
  kiln_link_settings_t* settings;
  bool is_driver;
  bool makes_cubin;
} make_t;

// ---- Adding ----

static kiln_status_t link_settings_add_item(make_t* make, uint32_t key,
                                            uint64_t value,
                                            kilni_base_str_t* text) {
  kiln_link_settings_t* s = make->settings;
  void* items = s->items;
  void* texts = s->texts;
  kiln_status_t status = kilni_base_grow(s->allocator, s->count + 1,
                                         sizeof(kilni_compile_link_setting_t),
                                         &s->capacity, &items);
  if (kiln_status_is_ok(status)) {
    s->items = items;
    status = kilni_base_grow(s->allocator, s->count + 1, sizeof(char*),
                             &s->text_capacity, &texts);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_base_str_deinit(text);
    return status;
  }
  s->texts = texts;
  KILNI_RETURN_IF_ERROR(kilni_base_str_take(text, &s->texts[s->count]));
  s->items[s->count].key = key;
  s->items[s->count].value = value;
  s->items[s->count].text = s->texts[s->count];
  s->count++;
  return kiln_ok();
}

static void begin_text(const make_t* make, kilni_base_str_t* text) {
  kilni_base_str_init(text, make->settings->allocator,
                      2 * (size_t)KILN_LINK_MAX_OPTION_BYTES);
}

static kiln_status_t add_native(make_t* make, const char* spelling,
                                const char* value) {
  kilni_base_str_t text;
  begin_text(make, &text);
  kilni_base_str_add_cstr(&text, spelling);
  kilni_base_str_add_cstr(&text, value);
  return link_settings_add_item(make, 0, 0, &text);
}

static kiln_status_t add_key(make_t* make, const row_t* row, uint64_t value) {
  kilni_base_str_t text;
  begin_text(make, &text);
  kilni_base_str_addf(&text, "CU_JIT_%s=%llu", row->key_name,
                      (unsigned long long)value);
  return link_settings_add_item(make, row->key, value, &text);
}

kiln_status_t kilni_compile_link_settings_warn(kiln_link_settings_t* s,
                                               const char* format, ...) {
  void* warnings = s->warnings;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(s->allocator, s->warning_count + 1,
                                        sizeof(char*), &s->warning_capacity,
                                        &warnings));
  s->warnings = warnings;
  kilni_base_str_t text;
  kilni_base_str_init(&text, s->allocator,
                      2 * (size_t)KILN_LINK_MAX_OPTION_BYTES);
  va_list args;
  va_start(args, format);
  kilni_base_str_addv(&text, format, args);
  va_end(args);
  KILNI_RETURN_IF_ERROR(
      kilni_base_str_take(&text, &s->warnings[s->warning_count]));
  s->warning_count++;
  return kiln_ok();
}

static kiln_status_t warn_ignored(make_t* make, const row_t* row) {
  return kilni_compile_link_settings_warn(
      make->settings,
      "the option `%s` has no effect in the driver's linker and was omitted",
      row->field);
}

static kiln_status_t link_settings_refuse(const row_t* row) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "the driver's linker has no option `%s`",
                 row->field),
      "leave it out, or link with an nvJitLink (`backend`)");
}

// True if it goes on to the driver; else `*out_status` is all there is to it.
static bool is_applied(make_t* make, const row_t* row,
                       kiln_status_t* out_status) {
  *out_status = NULL;
  if (row->treatment == APPLIED) return true;
  *out_status = row->treatment == REFUSED ? link_settings_refuse(row)
                                          : warn_ignored(make, row);
  return false;
}

// ---- Kinds ----

static kiln_status_t link_settings_add_number(make_t* make, const row_t* row,
                                              uint64_t value) {
  kiln_status_t status = kiln_ok();
  if (make->is_driver) {
    return is_applied(make, row, &status) ? add_key(make, row, value) : status;
  }
  char digits[24];
  snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
  return add_native(make, row->spelling, digits);
}

static kiln_status_t add_NUMBER(make_t* make, const row_t* row,
                                uint32_t value) {
  return value != 0 ? link_settings_add_number(make, row, value) : kiln_ok();
}

static kiln_status_t add_LEVEL(make_t* make, const row_t* row, uint32_t value) {
  return value != 0
             ? link_settings_add_number(make, row, value - KILN_LINK_LEVEL_0)
             : kiln_ok();
}

static kiln_status_t add_THREADS(make_t* make, const row_t* row,
                                 uint32_t value) {
  if (value == 0) return kiln_ok();
  return link_settings_add_number(make, row,
                                  value == KILN_LINK_ALL_THREADS ? 0 : value);
}

static kiln_status_t add_FLAG(make_t* make, const row_t* row, uint32_t value) {
  kiln_status_t status = kiln_ok();
  if (value != KILN_SWITCH_ON) return kiln_ok();
  if (!make->is_driver) return add_native(make, row->spelling, "");
  if (!is_applied(make, row, &status)) return status;
  bool is_mode = row->key == KILN_CU_JIT_CACHE_MODE;
  return add_key(make, row, is_mode ? CACHE_OPTION_NONE : 1);
}

static kiln_status_t add_CHOICE(make_t* make, const row_t* row,
                                uint32_t value) {
  kiln_status_t status = kiln_ok();
  if (value == KILN_SWITCH_DEFAULT) return kiln_ok();
  if (!make->is_driver) {
    return add_native(make, row->spelling, value == KILN_SWITCH_ON ? "1" : "0");
  }
  if (!is_applied(make, row, &status)) return status;
  return add_key(make, row, value == KILN_SWITCH_ON);
}

static kiln_status_t add_LIST(make_t* make, const row_t* row,
                              const char* const* list, uint32_t count) {
  kiln_status_t status = kiln_ok();
  if (count == 0) return kiln_ok();
  if (make->is_driver && !is_applied(make, row, &status)) return status;
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(add_native(make, row->spelling, list[i]));
  }
  return kiln_ok();
}

static const char kVirtual[] = "compute_";

// "sm_90", "sm_90a", "sm_100f" as the driver counts them.
static bool link_settings_read_target(const char* arch, uint64_t* out_target) {
  uint64_t number = 0;
  const size_t skipped = sizeof(kVirtual) - 1;
  const char* at = strncmp(arch, "sm_", 3) == 0            ? arch + 3
                   : strncmp(arch, kVirtual, skipped) == 0 ? arch + skipped
                                                           : "";
  size_t digits = strspn(at, "0123456789");
  char last = at[digits];
  if (digits < 2 || digits > 3 ||
      !kilni_base_sv_to_u64(kilni_base_sv_make(at, digits), &number)) {
    return false;
  }
  if (last == 'a') number += TARGET_ACCELERATED;
  if (last == 'f') number += TARGET_FAMILY;
  *out_target = number;
  return last == 0 || ((last == 'a' || last == 'f') && at[digits + 1] == 0);
}

// The one option of text is the architecture. One that is none is not handed
// on: over "sm_1" nvJitLink 13 ends the process.
static kiln_status_t add_TEXT(make_t* make, const row_t* row,
                              const char* text) {
  if (text == NULL && make->is_driver) return kiln_ok();  // that of its context
  if (text == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "nvJitLink links for one architecture, and none is given"),
        "set `%s` (--%s) to that of the device, e.g. \"sm_90\"", row->field,
        row->field);
  }
  uint64_t target = 0;
  if (!make->is_driver && make->makes_cubin &&
      strncmp(text, kVirtual, sizeof(kVirtual) - 1) == 0 &&
      link_settings_read_target(text, &target)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "machine code cannot be linked for \"%s\", an architecture "
                   "of PTX",
                   text),
        "write --%s sm_%s (of the options: %s)", row->field,
        text + sizeof(kVirtual) - 1, row->field);
  }
  if (link_settings_read_target(text, &target)) {
    return make->is_driver ? add_key(make, row, target)
                           : add_native(make, row->spelling, text);
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is not an architecture", text),
      "write --%s (of the options: %s) as sm_90, or with a letter after the "
      "number as sm_90a or sm_100f; for PTX, compute_90 and the like are "
      "accepted too",
      row->field, row->field);
}

// ---- All of them ----

// What follows from the output.
static kiln_status_t add_aim(make_t* make,
                             const kilni_compile_link_aim_t* aim) {
  if (make->is_driver && (aim->lto || aim->output != KILN_CODE_FORMAT_CUBIN)) {
    return kilni_base_status_with_fix(
        aim->lto ? KILNI_FAIL(
                       UNSUPPORTED,
                       "the driver's linker does not do link-time optimisation")
                 : KILNI_FAIL(UNSUPPORTED,
                              "the driver's linker makes cubins only, not %s",
                              kiln_code_format_name(aim->output)),
        "link with an nvJitLink (`backend`)");
  }
  if (aim->lto) KILNI_RETURN_IF_ERROR(add_native(make, "-lto", ""));
  if (aim->output == KILN_CODE_FORMAT_PTX) {
    return add_native(make, "-ptx", "");
  }
  if (aim->output == KILN_CODE_FORMAT_RELOCATABLE ||
      aim->output == KILN_CODE_FORMAT_LTOIR) {
    return add_native(make, "-r", "");
  }
  return kiln_ok();
}

#define ARGS_TEXT(field)    o->field
#define ARGS_NUMBER(field)  o->field
#define ARGS_THREADS(field) o->field
#define ARGS_LEVEL(field)   o->field
#define ARGS_FLAG(field)    o->field
#define ARGS_CHOICE(field)  o->field
#define ARGS_LIST(field)    o->field, o->field##_count

static kiln_status_t link_settings_add_all(make_t* make,
                                           const kiln_link_options_t* o) {
#define KILNI_LINK_OPTION(field, kind, spelling, key, treatment, what)      \
  KILNI_RETURN_IF_ERROR(add_##kind(                                         \
      make,                                                                 \
      &(const row_t){#field, spelling, #key, KILN_CU_JIT_##key, treatment}, \
      ARGS_##kind(field)));
#include "compile/link_options.inc"
#undef KILNI_LINK_OPTION
  return kiln_ok();
}

kiln_status_t kilni_compile_link_settings_make(
    const kiln_link_options_t* options, const kilni_compile_link_aim_t* aim,
    kiln_allocator_t allocator, kiln_link_settings_t** out_settings) {
  *out_settings = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_link_settings_t), &block));
  kiln_link_settings_t* settings = block;
  settings->allocator = allocator;
  atomic_init(&settings->references, 1);
  make_t make = {settings, aim->backend == KILN_LINK_BACKEND_DRIVER,
                 aim->output == KILN_CODE_FORMAT_CUBIN};
  kiln_link_options_t resolved = *options;
  if (resolved.arch == NULL) resolved.arch = aim->arch;
  kiln_status_t status = add_aim(&make, aim);
  if (kiln_status_is_ok(status)) {
    status = link_settings_add_all(&make, &resolved);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_link_settings_release(settings);
    return status;
  }
  *out_settings = settings;
  return kiln_ok();
}

kiln_status_t kiln_link_settings_create(const kiln_link_options_t* options,
                                        uint32_t backend,
                                        const kiln_allocator_t* allocator,
                                        kiln_link_settings_t** out_settings) {
  KILNI_CHECK_ARGUMENT(out_settings != NULL, "out_settings");
  *out_settings = NULL;
  KILNI_CHECK_ARGUMENT(backend == KILN_LINK_BACKEND_NVJITLINK ||
                           backend == KILN_LINK_BACKEND_DRIVER,
                       "backend");
  kiln_allocator_t own = allocator != NULL ? *allocator : kiln_allocator_libc();
  kilni_compile_link_options_copy_t copy;
  KILNI_RETURN_IF_ERROR(kilni_compile_link_options_copy(options, own, &copy));
  uint32_t output = copy.options.output != 0 ? copy.options.output
                                             : (uint32_t)KILN_CODE_FORMAT_CUBIN;
  kilni_compile_link_aim_t aim = {backend, output,
                                  copy.options.lto == KILN_SWITCH_ON ||
                                      output == KILN_CODE_FORMAT_PTX ||
                                      output == KILN_CODE_FORMAT_LTOIR,
                                  NULL};
  kiln_status_t status =
      kilni_compile_link_settings_make(&copy.options, &aim, own, out_settings);
  kilni_compile_link_options_free(&copy);
  return status;
}

void kiln_link_settings_retain(kiln_link_settings_t* settings) {
  if (settings == NULL) return;
  atomic_fetch_add_explicit(&settings->references, 1, memory_order_relaxed);
}

void kiln_link_settings_release(kiln_link_settings_t* settings) {
  if (settings == NULL ||
      atomic_fetch_sub_explicit(&settings->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_allocator_t allocator = settings->allocator;
  for (size_t i = 0; i < settings->count; i++) {
    kilni_base_strfree(allocator, settings->texts[i]);
  }
  for (size_t i = 0; i < settings->warning_count; i++) {
    kilni_base_strfree(allocator, settings->warnings[i]);
  }
  kilni_base_free_array(allocator, settings->items, settings->capacity,
                        sizeof(kilni_compile_link_setting_t));
  kilni_base_free_array(allocator, settings->texts, settings->text_capacity,
                        sizeof(char*));
  kilni_base_free_array(allocator, settings->warnings,
                        settings->warning_capacity, sizeof(char*));
  kilni_base_free(allocator, settings, sizeof(*settings));
}

uint32_t kiln_link_settings_count(const kiln_link_settings_t* settings) {
  return settings != NULL ? (uint32_t)settings->count : 0;
}

const char* kiln_link_settings_option(const kiln_link_settings_t* settings,
                                      uint32_t index) {
  if (settings == NULL || index >= settings->count) return NULL;
  return settings->texts[index];
}

uint32_t kiln_link_settings_warning_count(
    const kiln_link_settings_t* settings) {
  return settings != NULL ? (uint32_t)settings->warning_count : 0;
}

const char* kiln_link_settings_warning(const kiln_link_settings_t* settings,
                                       uint32_t index) {
  if (settings == NULL || index >= settings->warning_count) return NULL;
  return settings->warnings[index];
}
