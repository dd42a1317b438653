// SPDX-License-Identifier: Apache-2.0
//
// cli: the argument of each kernel parameter, and the shape of the launch.
#include "cli/run_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_data.h"
#include "cli/cli_number.h"
#include "cli/run_element.h"
#include "cli/run_entry.h"
#include "cli/run_expect.h"

// Shared by the steps below. one-thread
typedef struct planner_t {
  const kilni_cli_kernel_t* kernel;
  kilni_cli_request_t* request;
  kilni_cli_plan_t* plan;
  kilni_cli_error_t* error;
} planner_t;

static bool is_buffer(const kilni_cli_slot_t* slot) {
  return slot->in != NULL || slot->out != NULL || slot->expect != NULL;
}

enum { WORD_BYTES = 64 };

// The position at the end of "add_param_2", as compilers name what has no name
// in PTX.
static bool is_made_up(const char* name, uint32_t index) {
  char end[32];
  int size = snprintf(end, sizeof(end), "_param_%" PRIu32, index);
  size_t length = strlen(name);
  return length >= (size_t)size && strcmp(name + length - size, end) == 0;
}

// What to write for a parameter on the command line: its name if the source has
// one, or its position.
static void run_plan_word_of(const planner_t* p, uint32_t index,
                             char out[WORD_BYTES]) {
  static const char kLetters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  (void)snprintf(out, WORD_BYTES, "%" PRIu32, index);
  if (index >= p->kernel->param_count) return;
  const char* name = p->kernel->params[index].name;
  size_t size = strlen(name);
  if (size == 0 || size >= WORD_BYTES || strspn(name, kLetters) != size ||
      is_made_up(name, index)) {
    return;
  }
  memcpy(out, name, size + 1);
}

// "2 ("n", an integer of 4 bytes)"
static void run_plan_describe(const planner_t* p, uint32_t index,
                              char out[256]) {
  static const char* const KINDS[] = {"a parameter", "an integer", "a float",
                                      "a struct", "a pointer"};
  if (!p->kernel->params_known || index >= p->kernel->param_count) {
    (void)snprintf(out, 256, "%" PRIu32, index);
    return;
  }
  const kilni_cli_param_t* param = &p->kernel->params[index];
  (void)snprintf(out, 256, "%" PRIu32 " (%s%.100s%s%s of %" PRIu32 " byte%s)",
                 index, param->name[0] != 0 ? "\"" : "", param->name,
                 param->name[0] != 0 ? "\", " : "",
                 KINDS[param->kind <= 4 ? param->kind : 0], param->bytes,
                 param->bytes == 1 ? "" : "s");
}

// A number of a known type.
static void suggest_typed(const char* word, const char* type, char* out,
                          size_t capacity) {
  bool is_truth = strcmp(type, "bool") == 0;
  bool is_float = type[0] == 'f' || strcmp(type, "bf16") == 0;
  (void)snprintf(out, capacity, "--arg %s=%s%s", word,
                 is_truth   ? "true"
                 : is_float ? "2.5"
                            : "1",
                 is_truth ? "" : type);
}

// A half that is passed by value is a struct of two bytes in PTX.
static bool run_plan_is_half(const kilni_cli_param_t* param) {
  return param->kind == KILN_PARAM_KIND_BYTES && param->bytes == 2;
}

static void suggest_half(kilni_cli_type_t type, const char* word, char* out,
                         size_t capacity) {
  if (type != KILNI_CLI_TYPE_NONE) {
    suggest_typed(word, kilni_cli_type_info(type)->text, out, capacity);
    return;
  }
  (void)snprintf(out, capacity,
                 "--arg %s=2.5f16 or --arg %s=2.5bf16, as the type of the "
                 "parameter is; or its bits as a u16",
                 word, word);
}

// Members with that total size, for short structs.
static void suggest_struct(const char* word, uint32_t bytes, char* out,
                           size_t capacity) {
  static const char* const FIRST[] = {"1u8", "1u16", "2.5f32"};
  static const char* const REST[] = {"1u8", "1u16", "1i32"};
  // All of one size, so that there is no padding between them or at the end.
  uint32_t shift = bytes % 4 == 0 ? 2 : bytes % 2 == 0 ? 1 : 0;
  uint32_t count = bytes <= 32 ? bytes >> shift : 0;
  char members[160] = "";
  for (uint32_t i = 0; i < count; i++) {
    size_t used = strlen(members);
    (void)snprintf(members + used, sizeof(members) - used, "%s%s",
                   i == 0 ? "" : ",", i == 0 ? FIRST[shift] : REST[shift]);
  }
  (void)snprintf(out, capacity,
                 "--arg %s=@FILE, a file of its %" PRIu32
                 " bytes, or its members with their types%s%s%s%s%s",
                 word, bytes,
                 members[0] != 0 ? ", such as --arg '"
                                 : ", each inner struct in braces of its own",
                 members[0] != 0 ? word : "", members[0] != 0 ? "={" : "",
                 members, members[0] != 0 ? "}'" : "");
}

static bool is_pointer(const planner_t* p, uint32_t index) {
  return p->kernel->params_known &&
         (p->kernel->params[index].kind == KILN_PARAM_KIND_POINTER ||
          kilni_cli_is_pointer(p->kernel->name, index, p->kernel->use));
}

// The given number, as one of a type that the parameter can take.
static bool suggest_same(const planner_t* p, uint32_t index,
                         const kilni_cli_scalar_t* given, char* out,
                         size_t capacity) {
  static const char* const FLOATS[] = {"f16", "f32", "f64"};
  static const char* const SIGNED[] = {"i8", "i16", "i32", "i64"};
  static const char* const UNSIGNED[] = {"u8", "u16", "u32", "u64"};
  const kilni_cli_param_t* param = &p->kernel->params[index];
  uint32_t width = param->bytes == 8   ? 3
                   : param->bytes == 4 ? 2
                   : param->bytes == 2 ? 1
                                       : 0;
  char kind = kilni_cli_type_info(given->type)->kind;
  bool is_float = param->kind == KILN_PARAM_KIND_FLOAT ||
                  run_plan_is_half(param) ||
                  (param->kind == KILN_PARAM_KIND_UNKNOWN && kind == 'f');
  bool is_number = param->kind == KILN_PARAM_KIND_UNKNOWN ||
                   param->kind == KILN_PARAM_KIND_INTEGER ||
                   param->kind == KILN_PARAM_KIND_FLOAT ||
                   run_plan_is_half(param);
  if (!is_number || is_pointer(p, index) || kind == 'b' || param->bytes > 8 ||
      (is_float && width == 0)) {
    return false;
  }
  kilni_cli_type_t said = kilni_cli_value_type(p->kernel->name, index);
  const char* type = param->type != NULL ? param->type
                     : said != KILNI_CLI_TYPE_NONE
                         ? kilni_cli_type_info(said)->text
                     : is_float    ? FLOATS[width - 1]
                     : kind == 'u' ? UNSIGNED[width]
                                   : SIGNED[width];
  char word[WORD_BYTES], number[KILNI_CLI_NUMBER_TEXT];
  run_plan_word_of(p, index, word);
  if (!kilni_cli_number_text(given->type, given->bits,
                             kilni_cli_type_find(type, strlen(type)), number)) {
    return false;
  }
  (void)snprintf(out, capacity, "--arg %s=%s", word, number);
  return true;
}

// An integer of 4 bytes is usually a count: the elements of a buffer.
static void suggest_count(const planner_t* p, const char* word, char* out,
                          size_t capacity) {
  for (uint32_t i = 0; i < p->plan->count; i++) {
    char buffer[WORD_BYTES];
    if (!is_buffer(&p->plan->slots[i])) continue;
    run_plan_word_of(p, i, buffer);
    (void)snprintf(out, capacity,
                   "--arg '%s=len(%s)', if it counts those elements, or a "
                   "number such as 1024i32",
                   word, buffer);
    return;
  }
  (void)snprintf(out, capacity, "--arg %s=NUMBER, such as 1024i32", word);
}

// What to write for a parameter that has no value, or a wrong one.
static void run_plan_suggest(const planner_t* p, uint32_t index, char* out,
                             size_t capacity) {
  uint32_t bytes = 0, kind = KILN_PARAM_KIND_UNKNOWN;
  char word[WORD_BYTES];
  run_plan_word_of(p, index, word);
  if (p->kernel->params_known) {
    bytes = p->kernel->params[index].bytes;
    kind = p->kernel->params[index].kind;
  }
  if (p->kernel->params_known && p->kernel->params[index].type != NULL) {
    suggest_typed(word, p->kernel->params[index].type, out, capacity);
    return;
  }
  bool is_struct = kind == KILN_PARAM_KIND_BYTES;
  if (bytes == 8 && kind != KILN_PARAM_KIND_FLOAT && !is_struct &&
      p->request->makes_outputs) {
    (void)snprintf(out, capacity, "--buffer %s=TYPE[N], --in %s=FILE%s", word,
                   word, is_pointer(p, index) ? "" : ", or a u64 or i64");
    return;
  }
  if (bytes == 8 && kind != KILN_PARAM_KIND_FLOAT && !is_struct) {
    (void)snprintf(
        out, capacity, "--in %s=FILE, --out %s=FILE:TYPE[N], --inout %s=FILE%s",
        word, word, word, is_pointer(p, index) ? "" : ", or a u64 or i64");
    return;
  }
  if (p->kernel->params_known && run_plan_is_half(&p->kernel->params[index])) {
    suggest_half(kilni_cli_value_type(p->kernel->name, index), word, out,
                 capacity);
    return;
  }
  if (kind == KILN_PARAM_KIND_BYTES || bytes > 8) {
    suggest_struct(word, bytes, out, capacity);
    return;
  }
  if (bytes == 4 && kind == KILN_PARAM_KIND_INTEGER) {
    suggest_count(p, word, out, capacity);
    return;
  }
  const char* type = kind == KILN_PARAM_KIND_FLOAT ? (bytes == 8   ? "2.5f64"
                                                      : bytes == 4 ? "2.5f32"
                                                                   : "2.5f16")
                     : bytes == 8                  ? "1i64"
                     : bytes == 4                  ? "1i32 or 2.5f32"
                     : bytes == 2                  ? "1i16"
                     : bytes == 1                  ? "1u8 or true"
                                                   : "VALUE";
  (void)snprintf(out, capacity, "--arg %s=%s", word, type);
}

static bool find_parameter(const planner_t* p, const char* text, size_t size,
                           uint32_t* out) {
  uint64_t position;
  uint32_t count =
      p->kernel->params_known ? p->kernel->param_count : KILNI_CLI_MAX_PARAMS;
  bool digits = size != 0;
  for (size_t i = 0; i < size; i++) {
    digits = digits && text[i] >= '0' && text[i] <= '9';
  }
  if (digits && kilni_cli_u64_parse(text, size, &position)) {
    *out = position < count ? (uint32_t)position : 0;
    return position < count;
  }
  for (uint32_t i = 0; i < p->kernel->param_count; i++) {
    const char* name = p->kernel->params[i].name;
    if (name[0] != 0 && strlen(name) == size && memcmp(name, text, size) == 0) {
      *out = i;
      return true;
    }
  }
  return false;
}

static bool fail_parameter(const planner_t* p, const char* text, size_t size) {
  char name_text[KILNI_CLI_ENTRY_SHOWN];
  (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "the kernel \"%s\" has no parameter \"%.*s\"",
                       kilni_cli_entry_shown(p->kernel->name, name_text),
                       (int)(size > 200 ? 200 : size), text);
  if (p->kernel->param_count == 0 && p->kernel->params_known) {
    kilni_cli_error_fix(p->error, "give none: the kernel takes no parameters");
  } else if (!p->kernel->params_known) {
    kilni_cli_error_fix(p->error,
                        "write positions, counted from 0; this file does "
                        "not contain names");
  } else {
    const char* name = p->kernel->params[0].name;
    kilni_cli_error_fix(p->error,
                        "write a position from 0 to %" PRIu32 "%s%s%s",
                        p->kernel->param_count - 1,
                        name[0] != 0 ? ", or a name such as \"" : "", name,
                        name[0] != 0 ? "\"" : "");
  }
  return false;
}

// Slots are many, and most kernels have few: those that count are cleared.
static void plan_grow(kilni_cli_plan_t* plan, uint32_t count) {
  if (count <= plan->count) return;
  memset(&plan->slots[plan->count], 0,
         (count - plan->count) * sizeof(plan->slots[0]));
  plan->count = count;
}

static bool place_binding(planner_t* p, kilni_cli_binding_t* b) {
  uint32_t index;
  if (!find_parameter(p, b->parameter, b->parameter_size, &index)) {
    return fail_parameter(p, b->parameter, b->parameter_size);
  }
  plan_grow(p->plan, index + 1);
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  bool twice = slot->arg != NULL || (b->is_arg && is_buffer(slot)) ||
               (b->is_in && slot->in != NULL) ||
               (b->is_out && slot->out != NULL) ||
               (b->is_expect && slot->expect != NULL);
  if (twice) {
    char what[256];
    kilni_cli_param_words(p->kernel, index, what);
    return kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT,
                          "give each parameter once (or --in, --out and "
                          "--expect)",
                          "parameter %s is given twice", what);
  }
  if (b->is_arg) slot->arg = b;
  if (b->is_in) slot->in = b;
  if (b->is_out) slot->out = b;
  if (b->is_expect) slot->expect = b;
  return true;
}

static bool run_plan_check_complete(planner_t* p) {
  char trail[sizeof(p->error->trail)] = "";
  size_t used = 0;
  uint32_t missing = 0;
  for (uint32_t i = 0; i < p->plan->count; i++) {
    const kilni_cli_slot_t* slot = &p->plan->slots[i];
    if (is_buffer(slot) || slot->arg != NULL) continue;
    char what[256], write[256];
    run_plan_describe(p, i, what);
    run_plan_suggest(p, i, write, sizeof(write));
    int n = snprintf(trail + used, sizeof(trail) - used, "%s  parameter %s: %s",
                     missing == 0 ? "" : "\n", what, write);
    if (n > 0 && used + (size_t)n < sizeof(trail)) used += (size_t)n;
    if (missing++ == 0) {
      char name[KILNI_CLI_ENTRY_SHOWN];
      (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                           "the kernel \"%s\": parameter %s is not given",
                           kilni_cli_entry_shown(p->kernel->name, name), what);
      kilni_cli_error_fix(p->error, "write %s", write);
    }
  }
  if (missing > 1) {
    memcpy(p->error->trail, trail, sizeof(trail));
    kilni_cli_error_fix(p->error, "give all %" PRIu32 " of them", missing);
  }
  return missing == 0;
}

static bool fail_buffer(planner_t* p, uint32_t index) {
  char what[256], write[256];
  run_plan_describe(p, index, what);
  run_plan_suggest(p, index, write, sizeof(write));
  (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "parameter %s is not a buffer", what);
  kilni_cli_error_fix(p->error, "write %s", write);
  return false;
}

// Shape of a buffer that is only written; `depth` ends a cycle of copies.
static bool resolve_shape(planner_t* p, uint32_t index, uint32_t depth) {
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (slot->shape.type != KILNI_CLI_TYPE_NONE) return true;
  if (slot->in != NULL) {
    slot->shape = slot->in->array.shape;
    return true;
  }
  char what[256];
  kilni_cli_param_words(p->kernel, index, what);
  const kilni_cli_spec_t* spec =
      slot->out != NULL ? &slot->out->spec : &slot->expect->spec;
  if (spec->kind == KILNI_CLI_SPEC_NONE && slot->expect != NULL) {
    slot->shape = slot->expect->spec.kind == KILNI_CLI_SPEC_SHAPE
                      ? slot->expect->spec.shape
                      : slot->expect->array.shape;
    return true;
  }
  if (spec->kind == KILNI_CLI_SPEC_SHAPE) {
    slot->shape = spec->shape;
    return true;
  }
  if (spec->kind != KILNI_CLI_SPEC_COPY) {
    char word[WORD_BYTES];
    run_plan_word_of(p, index, word);
    (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "the output of parameter %s has no type and shape",
                         what);
    if (p->request->makes_outputs) {
      kilni_cli_error_fix(p->error, "write --buffer %s=TYPE[N,...]", word);
    } else {
      kilni_cli_error_fix(
          p->error,
          "write --out %s=%s:TYPE[N,...], or :@P to copy "
          "those of parameter P",
          word, slot->out == NULL ? "FILE" : (char*)slot->out->path.data);
    }
    return false;
  }
  uint32_t from;
  size_t size = strlen(spec->copied);
  if (!find_parameter(p, spec->copied, size, &from)) {
    return fail_parameter(p, spec->copied, size);
  }
  if (depth == 0 || from == index) {
    return kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT,
                          "give one of them a type and shape",
                          "the shape of parameter %s is copied in a cycle",
                          what);
  }
  if (from >= p->plan->count || !is_buffer(&p->plan->slots[from])) {
    kilni_cli_param_words(p->kernel, from, what);
    return kilni_cli_fail(
        p->error, KILN_STATUS_INVALID_ARGUMENT, "copy the shape of a buffer",
        "parameter %s, whose shape is to be copied, is not a buffer", what);
  }
  if (!resolve_shape(p, from, depth - 1)) return false;
  slot->shape = p->plan->slots[from].shape;
  return true;
}

static bool is_alike(const kilni_cli_shape_t* a, const kilni_cli_shape_t* b) {
  return a->type == b->type && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

// The shape in --out must match --in of the same parameter; :@P may be the
// parameter itself.
static bool check_said_shape(planner_t* p, uint32_t index) {
  const kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (slot->in == NULL || slot->out == NULL || slot->in == slot->out) {
    return true;
  }
  const kilni_cli_spec_t* spec = &slot->out->spec;
  if (spec->kind == KILNI_CLI_SPEC_NONE) return true;
  const kilni_cli_shape_t* said = &spec->shape;
  if (spec->kind == KILNI_CLI_SPEC_COPY) {
    uint32_t from;
    size_t size = strlen(spec->copied);
    if (!find_parameter(p, spec->copied, size, &from)) {
      return fail_parameter(p, spec->copied, size);
    }
    if (from < p->plan->count && is_buffer(&p->plan->slots[from]) &&
        !resolve_shape(p, from, KILNI_CLI_MAX_PARAMS)) {
      return false;
    }
    said = &p->plan->slots[from].shape;
  }
  if (spec->kind != KILNI_CLI_SPEC_TYPE && is_alike(said, &slot->shape)) {
    return true;
  }
  char what[256];
  kilni_cli_param_words(p->kernel, index, what);
  return kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT,
                        "omit the type and shape of the output",
                        "parameter %s has the shape of its input, not the one "
                        "of its output",
                        what);
}

// Whether the type of a buffer was given; `depth` ends a cycle of copies.
static bool is_type_said(planner_t* p, uint32_t index, uint32_t depth) {
  const kilni_cli_slot_t* slot = &p->plan->slots[index];
  const kilni_cli_binding_t* const said[] = {slot->in, slot->out, slot->expect};
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
    const kilni_cli_binding_t* b = said[i];
    if (b == NULL) continue;
    uint32_t from;
    if (b->spec.kind == KILNI_CLI_SPEC_COPY) {
      if (depth != 0 &&
          find_parameter(p, b->spec.copied, strlen(b->spec.copied), &from) &&
          from < p->plan->count && is_type_said(p, from, depth - 1)) {
        return true;
      }
    } else if (b->spec.kind != KILNI_CLI_SPEC_NONE) {
      return true;
    } else if ((b->is_in || b->is_expect) &&
               (b->path.size == 0 ||
                kilni_cli_format_of((const char*)b->path.data) !=
                    KILNI_CLI_FORMAT_RAW)) {
      return true;
    }
  }
  return false;
}

// Raw bytes have no numeric difference.
static bool check_tolerance(planner_t* p, uint32_t index) {
  const kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (slot->expect == NULL || !(p->request->tolerance > 0) ||
      is_type_said(p, index, KILNI_CLI_MAX_PARAMS)) {
    return true;
  }
  const char* path = (const char*)slot->expect->path.data;
  char word[WORD_BYTES];
  run_plan_word_of(p, index, word);
  (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--tolerance needs numbers, and the type of those in "
                       "\"%.200s\" of --expect is unknown",
                       path);
  kilni_cli_error_fix(p->error,
                      "write --expect %s=%s:TYPE[N,...], e.g. :f32[16], or "
                      "omit --tolerance",
                      word, path);
  return false;
}

// The expected file must have the buffer's type and shape. Raw bytes without a
// type of their own take those.
static bool check_expected(planner_t* p, uint32_t index) {
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (slot->expect == NULL) return true;
  kilni_cli_shape_t* shape = &slot->expect->array.shape;
  bool is_silent = slot->expect->spec.kind == KILNI_CLI_SPEC_NONE ||
                   !is_alike(&slot->expect->spec.shape, shape);
  if (is_silent && shape->bytes == slot->shape.bytes) *shape = slot->shape;
  if (kilni_cli_expect_fits(shape, &slot->shape)) return true;
  char what[256], holds[256], has[256];
  kilni_cli_param_words(p->kernel, index, what);
  kilni_cli_shape_text(shape, holds, sizeof(holds));
  kilni_cli_shape_text(&slot->shape, has, sizeof(has));
  return kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT,
                        "expect a file of the parameter's type and shape, or "
                        "give the parameter those of the file",
                        "parameter %s is %s, but the file \"%.200s\" that it "
                        "is compared with contains %s",
                        what, has, (const char*)slot->expect->path.data, holds);
}

// Whether the u8 of a buffer are raw bytes of any type: a file of another
// format declares them numbers, and so do generated ones.
static bool run_plan_is_of_bytes(planner_t* p, uint32_t index, uint32_t depth) {
  const kilni_cli_slot_t* slot = &p->plan->slots[index];
  const kilni_cli_binding_t* const said[] = {slot->in, slot->out, slot->expect};
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
    const kilni_cli_binding_t* b = said[i];
    uint32_t from;
    if (b == NULL) continue;
    if (b->is_made ||
        (b->path.size != 0 && kilni_cli_format_of((const char*)b->path.data) !=
                                  KILNI_CLI_FORMAT_RAW)) {
      return false;
    }
    if (b->spec.kind == KILNI_CLI_SPEC_COPY && depth != 0 &&
        find_parameter(p, b->spec.copied, strlen(b->spec.copied), &from) &&
        from < p->plan->count && !run_plan_is_of_bytes(p, from, depth - 1)) {
      return false;
    }
  }
  return true;
}

static bool plan_buffer(planner_t* p, uint32_t index) {
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (p->kernel->params_known) {
    const kilni_cli_param_t* param = &p->kernel->params[index];
    if (param->bytes != 8 || param->kind == KILN_PARAM_KIND_FLOAT ||
        param->kind == KILN_PARAM_KIND_BYTES) {
      return fail_buffer(p, index);
    }
  }
  if (!resolve_shape(p, index, KILNI_CLI_MAX_PARAMS)) return false;
  if (!kilni_cli_fit_data(p->kernel, index, &slot->shape,
                          run_plan_is_of_bytes(p, index, KILNI_CLI_MAX_PARAMS),
                          p->error)) {
    return false;
  }
  if (!check_said_shape(p, index) || !check_expected(p, index) ||
      !check_tolerance(p, index)) {
    return false;
  }
  return slot->out == NULL || kilni_cli_data_check((char*)slot->out->path.data,
                                                   &slot->shape, p->error);
}

static bool fail_scalar(planner_t* p, uint32_t index, const char* type) {
  char what[256], write[256];
  run_plan_describe(p, index, what);
  const kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (slot->arg->value.is_length || slot->arg->is_bytes ||
      !suggest_same(p, index, &slot->scalar, write, sizeof(write))) {
    run_plan_suggest(p, index, write, sizeof(write));
  }
  (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "parameter %s cannot take a value of type %s", what,
                       type);
  kilni_cli_error_fix(p->error, "write %s", write);
  return false;
}

static bool plan_length(planner_t* p, uint32_t index) {
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  const kilni_cli_value_t* value = &slot->arg->value;
  uint32_t of;
  if (!find_parameter(p, value->parameter, value->parameter_size, &of)) {
    return fail_parameter(p, value->parameter, value->parameter_size);
  }
  if (of >= p->plan->count || !is_buffer(&p->plan->slots[of])) {
    char what[256];
    kilni_cli_param_words(p->kernel, of, what);
    return kilni_cli_fail(
        p->error, KILN_STATUS_INVALID_ARGUMENT, "write len(P) with P a buffer",
        "parameter %s is not a buffer, so it has no length", what);
  }
  if (!p->kernel->params_known) {
    return kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT,
                          "write the number with its type",
                          "len() needs a parameter whose size is known");
  }
  const kilni_cli_param_t* param = &p->kernel->params[index];
  if (param->kind == KILN_PARAM_KIND_FLOAT ||
      param->kind == KILN_PARAM_KIND_BYTES || param->bytes > 8) {
    return fail_scalar(p, index, "integer");
  }
  return kilni_cli_scalar_length(p->plan->slots[of].shape.count, param->bytes,
                                 true, &slot->scalar, p->error);
}

// A member of a struct as it is read. one-thread
typedef struct member_t {
  planner_t* p;
  uint32_t index;
} member_t;

static bool check_member(void* user, uint32_t offset, kilni_cli_type_t type) {
  const member_t* m = user;
  char taken[KILNI_CLI_TAKEN_TEXT], types[KILNI_CLI_TAKEN_TEXT], what[256];
  if (kilni_cli_member_fits(m->p->kernel->use, m->index, offset, type, taken,
                            types)) {
    return true;
  }
  kilni_cli_param_words(m->p->kernel, m->index, what);
  (void)kilni_cli_fail(m->p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "the kernel uses byte %" PRIu32
                       " of parameter %s as %s, and its member there is %s",
                       offset, what, taken, kilni_cli_type_info(type)->text);
  kilni_cli_error_fix(m->p->error,
                      "write the members in order, each with its type: %s "
                      "there",
                      types);
  return false;
}

// Whether the kernel uses the members as numbers of their types.
static bool check_members(planner_t* p, uint32_t index) {
  member_t member = {p, index};
  kilni_cli_buffer_t again;
  const char* text = p->plan->slots[index].arg->members;
  if (text == NULL || p->kernel->use == NULL) return true;
  memset(&again, 0, sizeof(again));
  bool ok =
      kilni_cli_struct_visit(text, &again, check_member, &member, p->error);
  kilni_cli_buffer_deinit(&again);
  return ok;
}

// The bytes of a file fit any parameter of that size.
static bool plan_bytes(planner_t* p, uint32_t index) {
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  slot->bytes = slot->arg->array.data.data;
  slot->byte_count = (uint32_t)slot->arg->array.data.size;
  if (!p->kernel->params_known ||
      p->kernel->params[index].bytes == slot->byte_count) {
    return check_members(p, index);
  }
  char what[256], write[256];
  run_plan_describe(p, index, what);
  run_plan_suggest(p, index, write, sizeof(write));
  (void)kilni_cli_fail(p->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "parameter %s is given %" PRIu32 " bytes", what,
                       slot->byte_count);
  kilni_cli_error_fix(p->error, "write %s", write);
  return false;
}

static bool plan_scalar(planner_t* p, uint32_t index) {
  kilni_cli_slot_t* slot = &p->plan->slots[index];
  if (slot->arg->is_bytes) return plan_bytes(p, index);
  if (slot->arg->value.is_length) return plan_length(p, index);
  slot->scalar = slot->arg->value.scalar;
  if (!p->kernel->params_known) return true;
  const kilni_cli_param_t* param = &p->kernel->params[index];
  const kilni_cli_type_info_t* info = kilni_cli_type_info(slot->scalar.type);
  bool is_float = info->kind == 'f';
  if (run_plan_is_half(param) && info->bytes == 2 &&
      kilni_cli_fit_half(p->kernel, index, slot->scalar.type)) {
    slot->bytes = (const uint8_t*)&slot->scalar.bits;
    slot->byte_count = 2;
    return true;
  }
  if (param->bytes != info->bytes || param->kind == KILN_PARAM_KIND_BYTES ||
      (param->kind == KILN_PARAM_KIND_FLOAT && !is_float && info->bytes != 2) ||
      (param->kind == KILN_PARAM_KIND_INTEGER && is_float) ||
      (param->kind == KILN_PARAM_KIND_POINTER && is_float)) {
    return fail_scalar(p, index, info->text);
  }
  return true;
}

static bool plan_shape(planner_t* p) {
  kilni_cli_plan_t* plan = p->plan;
  const kilni_cli_request_t* r = p->request;
  kilni_cli_asked_t asked = {r->has_grid ? r->grid : NULL,
                             r->has_block ? r->block : NULL, 0, "--"};
  for (uint32_t i = 0; i < plan->count; i++) {
    uint64_t count = plan->slots[i].shape.count;
    if (is_buffer(&plan->slots[i]) && count > asked.longest) {
      asked.longest = count;
    }
  }
  if (!kilni_cli_fit_launch(p->kernel, &asked, plan->grid, plan->block,
                            p->error)) {
    return false;
  }
  plan->grid_chosen = !r->has_grid;
  plan->grid_covers = r->has_grid ? 0 : asked.longest;
  return true;
}

bool kilni_cli_plan_make(const kilni_cli_kernel_t* kernel,
                         kilni_cli_request_t* request, kilni_cli_plan_t* out,
                         kilni_cli_error_t* error) {
  out->count = 0;
  out->grid_chosen = false;
  out->grid_covers = 0;
  memset(out->grid, 0, sizeof(out->grid));
  memset(out->block, 0, sizeof(out->block));
  planner_t p = {kernel, request, out, error};
  if (kernel->params_known) plan_grow(out, kernel->param_count);
  for (size_t i = 0; i < request->binding_count; i++) {
    if (!place_binding(&p, &request->bindings[i])) return false;
  }
  if (!run_plan_check_complete(&p)) return false;
  for (uint32_t i = 0; i < out->count; i++) {
    if (is_buffer(&out->slots[i]) && !plan_buffer(&p, i)) return false;
  }
  for (uint32_t i = 0; i < out->count; i++) {
    if (out->slots[i].arg != NULL && !plan_scalar(&p, i)) return false;
  }
  return plan_shape(&p);
}
