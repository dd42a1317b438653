// SPDX-License-Identifier: Apache-2.0
//
// cli: defaults of the library's entries for what the command omits.
#include "cli/run_defaults.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_data.h"
#include "cli/cli_report.h"

// ---- The table ----

static bool run_defaults_is_called(const kilni_cli_binding_t* b,
                                   const char* name) {
  return strlen(name) == b->parameter_size &&
         memcmp(name, b->parameter, b->parameter_size) == 0;
}

static bool run_defaults_find_row(const kilni_cli_request_t* r,
                                  const char* parameter, size_t size,
                                  kiln_library_default_t* out) {
  const char* entry = kilni_cli_library_name(r->file);
  for (uint32_t i = 0; kiln_library_default(entry, i, out); i++) {
    if (strlen(out->parameter) == size &&
        memcmp(out->parameter, parameter, size) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_positional(const kilni_cli_request_t* r) {
  uint64_t position;
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (kilni_cli_u64_parse(b->parameter, b->parameter_size, &position)) {
      return true;
    }
  }
  return false;
}

// ---- Bindings without a name ----

// Whether a binding may be of a parameter of that role.
static bool run_defaults_suits(const kilni_cli_binding_t* b, uint32_t role) {
  bool is_read =
      role == KILN_PROGRAM_ROLE_IN || role == KILN_PROGRAM_ROLE_UNIFORM;
  bool is_both = role == KILN_PROGRAM_ROLE_INOUT;
  if (b->is_in && b->is_out) return is_both;
  return is_both || (b->is_out ? role == KILN_PROGRAM_ROLE_OUT : is_read);
}

// Parameter `index` of the table or of the program; false after the last.
static bool parameter_at(const kilni_cli_request_t* r, uint32_t index,
                         const char** out_name, uint32_t* out_role) {
  kiln_library_default_t row;
  kiln_program_parameter_info_t p;
  const char* entry = kilni_cli_library_name(r->file);
  if (entry != NULL) {
    bool has = kiln_library_default(entry, index, &row);
    *out_name = row.parameter;
    *out_role = row.role;
    return has;
  }
  bool has =
      r->program != NULL && kiln_program_parameter(r->program, index, &p);
  *out_name = has ? p.name : "";
  *out_role = has ? p.role : KILN_PROGRAM_ROLE_NONE;
  return has;
}

static bool name_one(const kilni_cli_request_t* r, kilni_cli_binding_t* b,
                     kilni_cli_error_t* error) {
  char names[256] = "", fix[512];
  const char *name, *only = NULL;
  uint32_t role, found = 0;
  size_t used = 0;
  for (uint32_t i = 0; parameter_at(r, i, &name, &role); i++) {
    if (!run_defaults_suits(b, role)) continue;
    if (found++ == 0) only = name;
    int n = snprintf(names + used, sizeof(names) - used, "%s%s",
                     used == 0 ? "" : ", ", name);
    if (n > 0 && used + (size_t)n < sizeof(names)) used += (size_t)n;
  }
  if (found == 1) {
    b->parameter = only;
    b->parameter_size = strlen(only);
    return true;
  }
  const char* path = (const char*)b->path.data;
  (void)snprintf(fix, sizeof(fix), "write --%s %s=%s", b->option,
                 found == 0 ? "P" : only, path);
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, fix,
                       "--%s \"%s\" names no parameter, and \"%s\" has %s%s",
                       b->option, path, r->file,
                       found == 0 ? "none that it could mean" : "several: ",
                       found == 0 ? "" : names);
  return false;
}

bool kilni_cli_defaults_name(kilni_cli_request_t* r, kilni_cli_error_t* error) {
  for (size_t i = 0; i < r->binding_count; i++) {
    kilni_cli_binding_t* b = &r->bindings[i];
    if (b->parameter_size == 0 && !name_one(r, b, error)) return false;
  }
  return true;
}

// ---- What is added ----

static bool has_input(const kilni_cli_request_t* r) {
  for (size_t i = 0; i < r->binding_count; i++) {
    if (r->bindings[i].is_in) return true;
  }
  return false;
}

static bool has_number(const kilni_cli_request_t* r, const char* name) {
  for (size_t i = 0; i < r->binding_count; i++) {
    if (r->bindings[i].is_arg &&
        run_defaults_is_called(&r->bindings[i], name)) {
      return true;
    }
  }
  return false;
}

static bool add_sample(kilni_cli_request_t* r,
                       const kiln_library_default_t* row,
                       kilni_cli_error_t* error) {
  kilni_cli_binding_t* b = kilni_cli_request_add(r, row->parameter, error);
  if (b == NULL) return false;
  b->option = "in";
  b->is_in = true;
  b->content = row->value;
  b->extents = row->shape;
  return true;
}

static bool run_defaults_add_number(kilni_cli_request_t* r,
                                    const kiln_library_default_t* row,
                                    kilni_cli_error_t* error) {
  kilni_cli_binding_t* b = kilni_cli_request_add(r, row->parameter, error);
  if (b == NULL) return false;
  b->option = "arg";
  b->is_arg = true;
  b->is_default = true;
  b->untyped = row->value;
  if (strncmp(row->value, "extent(", 7) == 0) b->extents = row->value;
  return true;
}

// Whether a sample is all zeroes: then an output that starts so is one that
// the entry is made for.
static bool run_defaults_is_zero(const char* content) {
  return strcmp(content, "count 0 0") == 0;
}

// With the user's own inputs, what is read and written must start as the user's
// data too: zero in its place would make the result meaningless.
static bool check_start(const kilni_cli_request_t* r,
                        const kiln_library_default_t* row,
                        kilni_cli_error_t* error) {
  if (row->role != KILN_PROGRAM_ROLE_INOUT ||
      run_defaults_is_zero(row->value)) {
    return true;
  }
  const kilni_cli_binding_t* out = NULL;
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (!run_defaults_is_called(b, row->parameter)) continue;
    if (b->is_in || b->spec.kind != KILNI_CLI_SPEC_NONE) return true;
    if (b->is_out) out = b;
  }
  if (out == NULL) return true;
  const char* path = (const char*)out->path.data;
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "\"%s\" of \"%s\" is read before it is written, and "
                       "has no initial contents",
                       row->parameter, r->file);
  kilni_cli_error_fix(error,
                      "add --in %s=FILE; or write --out %s=%s:TYPE[N], which "
                      "starts at zero",
                      row->parameter, row->parameter, path);
  return false;
}

bool kilni_cli_defaults_take(kilni_cli_request_t* r, kilni_cli_error_t* error) {
  kiln_library_default_t row;
  const char* entry = kilni_cli_library_name(r->file);
  if (is_positional(r)) return true;
  r->takes_samples = !has_input(r);
  for (uint32_t i = 0; kiln_library_default(entry, i, &row); i++) {
    if (!r->takes_samples && !check_start(r, &row, error)) return false;
    if (row.is_sample != 0 && !r->takes_samples) continue;
    bool is_number = row.role == KILN_PROGRAM_ROLE_NONE;
    if (row.role == KILN_PROGRAM_ROLE_OUT ||
        (is_number && has_number(r, row.parameter))) {
      continue;
    }
    if (!(is_number ? run_defaults_add_number(r, &row, error)
                    : add_sample(r, &row, error))) {
      return false;
    }
  }
  return true;
}

// ---- Extents ----

// The parameter's name, even if it is given by its position: that of the plan
// and the table, or that of the text.
static const char* run_defaults_name_of(const kilni_cli_request_t* r,
                                        const kilni_cli_binding_t* b,
                                        size_t* out_size) {
  kiln_library_default_t row = {0};
  kiln_program_parameter_info_t p = {0};
  const char* entry = kilni_cli_library_name(r->file);
  const char* name = NULL;
  uint64_t position = 0;
  *out_size = b->parameter_size;
  if (entry == NULL || b->parameter_size == 0 ||
      !kilni_cli_u64_parse(b->parameter, b->parameter_size, &position) ||
      position > UINT32_MAX) {
    return b->parameter;
  }
  if (r->whole && kiln_library_default(entry, (uint32_t)position, &row)) {
    name = row.parameter;
  } else if (!r->whole && r->program != NULL &&
             kiln_program_parameter(r->program, (uint32_t)position, &p)) {
    name = p.name;
  }
  if (name == NULL) return b->parameter;
  *out_size = strlen(name);
  return name;
}

static bool find_row_of(const kilni_cli_request_t* r,
                        const kilni_cli_binding_t* b,
                        kiln_library_default_t* out) {
  size_t size;
  const char* name = run_defaults_name_of(r, b, &size);
  return run_defaults_find_row(r, name, size, out);
}

static bool run_defaults_is_of(const kilni_cli_request_t* r,
                               const kilni_cli_binding_t* b, const char* name,
                               size_t size) {
  size_t own_size;
  const char* own = run_defaults_name_of(r, b, &own_size);
  return own_size == size && memcmp(own, name, size) == 0;
}

// The input that has extents of its own: raw bytes without a shape have none.
static const kilni_cli_shape_t* run_defaults_shape_of(
    const kilni_cli_request_t* r, const char* name, size_t size) {
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (!b->is_in || !run_defaults_is_of(r, b, name, size)) continue;
    bool is_raw =
        kilni_cli_format_of((const char*)b->path.data) == KILNI_CLI_FORMAT_RAW;
    bool says = b->content != NULL || b->spec.kind == KILNI_CLI_SPEC_SHAPE;
    return says || !is_raw ? &b->array.shape : NULL;
  }
  return NULL;
}

static const char* run_defaults_skip(const char* at, const char* those) {
  return at + strspn(at, those);
}

// One "extent(P, K)" or "extent(P, K, ELSE)". one-thread
typedef struct extent_t {
  const char* name;  // P
  size_t name_size;
  const kilni_cli_shape_t* shape;  // of P
  bool is_there;                   // P has an extent K
  uint64_t count;                  // that extent, or ELSE
  const char* end;                 // after it
} extent_t;

// False where the number is not known.
static bool find_extent(const kilni_cli_request_t* r, const char* text,
                        extent_t* out) {
  const char* name = text + strlen("extent(");
  size_t size = strcspn(name, ",");
  char* end = NULL;
  long at = strtol(run_defaults_skip(name + size, ", "), &end, 10);
  const char* rest = run_defaults_skip(end, ", ");
  bool has_else = *rest != ')';
  uint64_t otherwise = 0;
  if (has_else) {
    otherwise = strtoull(rest, &end, 10);
    rest = end;
  }
  memset(out, 0, sizeof(*out));
  out->name = name;
  out->name_size = size;
  out->end = *rest == ')' ? rest + 1 : rest;
  out->shape = run_defaults_shape_of(r, name, size);
  if (out->shape == NULL) return false;
  if (at < 0) at += (long)out->shape->rank;
  out->is_there = at >= 0 && at < (long)out->shape->rank;
  out->count = out->is_there ? out->shape->dims[at] : otherwise;
  return out->is_there || has_else;
}

static bool read_extent(const kilni_cli_request_t* r, const char* text,
                        uint64_t* out, const char** out_end) {
  extent_t extent;
  bool known = find_extent(r, text, &extent);
  *out_end = extent.end;
  *out = extent.count;
  return known;
}

// The number of an --arg of that name.
static bool run_defaults_read_number(const kilni_cli_request_t* r,
                                     const char* name, size_t size,
                                     uint64_t* out) {
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (!b->is_arg || b->value.is_length ||
        !run_defaults_is_of(r, b, name, size)) {
      continue;
    }
    *out = b->value.scalar.bits;
    return true;
  }
  return false;
}

// The number that a text of the library has for a const; 0 if it has none.
static uint64_t const_of(const kilni_cli_request_t* r, const char* name,
                         size_t size) {
  kiln_library_entry_t entry;
  char word[64];
  (void)snprintf(word, sizeof(word), "\nconst %.*s = ", (int)size, name);
  if (!kiln_library_find(kilni_cli_library_name(r->file), &entry)) return 0;
  const char* at = strstr(entry.text.data, word);
  return at == NULL ? 0 : strtoull(at + strlen(word), NULL, 10);
}

// The value of --define for a name, or the default: `otherwise` for a plan, the
// const of the text for a program.
static uint64_t define_of(const kilni_cli_request_t* r, const char* name,
                          size_t size, uint64_t otherwise) {
  if (r->whole) return r->options.segment != 0 ? r->options.segment : otherwise;
  for (size_t i = 0; i < r->given_count; i++) {
    const kilni_cli_given_t* given = &r->given[i];
    if (strcmp(given->option->name, "define") == 0 &&
        strncmp(given->value, name, size) == 0 && given->value[size] == '=') {
      return strtoull(given->value + size + 1, NULL, 10);
    }
  }
  return const_of(r, name, size);
}

// One word of a sample's shape, "N", "=N" or "NAME:N": what it is here.
static bool run_defaults_read_word(const kilni_cli_request_t* r, const char* at,
                                   size_t size, uint64_t* out) {
  const char* colon = memchr(at, ':', size);
  size_t before = colon != NULL ? (size_t)(colon - at) + 1 : *at == '=';
  if (!kilni_cli_u64_parse(at + before, size - before, out)) return false;
  if (colon != NULL) *out = define_of(r, at, before - 1, *out);
  return true;
}

// "h, w, 3" as extents; false where one of them is not known.
static bool run_defaults_read_shape(const kilni_cli_request_t* r,
                                    const char* text, kilni_cli_shape_t* out) {
  const char* at = text;
  out->rank = 0;
  while (*at != 0 && out->rank < KILNI_CLI_MAX_RANK) {
    uint64_t* dim = &out->dims[out->rank++];
    size_t size = strcspn(at, ", ");
    const char* end = at + size;
    bool known;
    if (strncmp(at, "extent(", 7) == 0) {
      known = read_extent(r, at, dim, &end);
    } else if ((*at >= '0' && *at <= '9') || *at == '=' ||
               memchr(at, ':', size) != NULL) {
      known = run_defaults_read_word(r, at, size, dim);
    } else {
      known = run_defaults_read_number(r, at, size, dim);
    }
    if (!known) return false;
    at = run_defaults_skip(end, ", ");
  }
  return out->rank != 0 && *at == 0;
}

bool kilni_cli_defaults_space(const kilni_cli_request_t* r,
                              kilni_cli_binding_t* b, kilni_cli_type_t type,
                              kilni_cli_error_t* error) {
  kiln_library_default_t row;
  if (!r->takes_samples || !b->is_out || b->is_in ||
      b->spec.kind != KILNI_CLI_SPEC_NONE ||
      !run_defaults_find_row(r, b->parameter, b->parameter_size, &row) ||
      row.role != KILN_PROGRAM_ROLE_OUT || row.is_sample == 0 ||
      !run_defaults_read_shape(r, row.shape, &b->spec.shape)) {
    return true;
  }
  b->spec.shape.type = type;
  b->spec.kind = KILNI_CLI_SPEC_SHAPE;
  return kilni_cli_shape_finish(&b->spec.shape, error);
}

void kilni_cli_defaults_shape(const kilni_cli_request_t* r,
                              const char* parameter, kilni_cli_shape_t* shape) {
  kiln_library_default_t row;
  kilni_cli_shape_t said = {0};
  if (!run_defaults_find_row(r, parameter, strlen(parameter), &row) ||
      !run_defaults_read_shape(r, row.shape, &said)) {
    return;
  }
  uint64_t count = 1;
  for (uint32_t i = 0; i < said.rank; i++) {
    if (said.dims[i] != 0 && count > UINT64_MAX / said.dims[i]) return;
    count *= said.dims[i];
  }
  if (count != shape->dims[0]) return;
  shape->rank = said.rank;
  memcpy(shape->dims, said.dims, sizeof(shape->dims));
}

// ---- What contradicts the files ----

// What a shape has after its first k extents, for each k: any two divisions of
// the same rows share those of the coarser one.
static bool has_product(const kilni_cli_shape_t* shape, uint64_t product) {
  uint64_t here = 1;
  for (uint32_t i = shape->rank; i-- != 0;) {
    if (here == product) return true;
    here *= shape->dims[i];
  }
  return here == product;
}

static bool is_divided(const kilni_cli_shape_t* fine,
                       const kilni_cli_shape_t* coarse) {
  uint64_t here = 1;
  for (uint32_t i = coarse->rank; i-- != 0;) {
    if (!has_product(fine, here)) return false;
    here *= coarse->dims[i];
  }
  return true;
}

static bool fail_shape(const kilni_cli_binding_t* b,
                       const kilni_cli_shape_t* given,
                       const kilni_cli_shape_t* said,
                       kilni_cli_error_t* error) {
  char have[128], want[128];
  kilni_cli_shape_t typed = *said;
  typed.type = given->type;
  kilni_cli_shape_text(given, have, sizeof(have));
  kilni_cli_shape_text(&typed, want, sizeof(want));
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--%s \"%.*s\" is given as %s; by the inputs it is %s",
                       b->option, (int)b->parameter_size, b->parameter, have,
                       want);
  kilni_cli_error_fix(error,
                      b->is_expect ? "give a file of that shape"
                                   : "write %.*s=FILE:%s, or no shape",
                      (int)b->parameter_size, b->parameter, want);
  return false;
}

// An output's shape is that of the table, or the same elements divided further
// or not as far: in one dimension, say.
static bool run_defaults_check_output(const kilni_cli_request_t* r,
                                      const kilni_cli_binding_t* b,
                                      kilni_cli_error_t* error) {
  kiln_library_default_t row;
  kilni_cli_shape_t said = {0};
  const kilni_cli_shape_t* given = &b->spec.shape;
  bool is_said = b->spec.kind == KILNI_CLI_SPEC_SHAPE;
  if (b->spec.kind == KILNI_CLI_SPEC_COPY) {
    given = run_defaults_shape_of(r, b->spec.copied, strlen(b->spec.copied));
    is_said = given != NULL;
  }
  if (!is_said || b->is_in || b->is_arg || given->count == 0 ||
      !find_row_of(r, b, &row) || row.role != KILN_PROGRAM_ROLE_OUT ||
      !run_defaults_read_shape(r, row.shape, &said)) {
    return true;
  }
  uint64_t count = 1;
  for (uint32_t i = 0; i < said.rank; i++) {
    if (said.dims[i] == 0 || count > UINT64_MAX / said.dims[i]) return true;
    count *= said.dims[i];
  }
  return count != given->count || is_divided(given, &said) ||
         is_divided(&said, given) || fail_shape(b, given, &said, error);
}

// A number whose default is an extent of a file, but which differs from it. One
// dimension matches any shape.
static bool check_number(const kilni_cli_request_t* r,
                         const kilni_cli_binding_t* b,
                         kilni_cli_error_t* error) {
  kiln_library_default_t row;
  extent_t extent;
  uint64_t given = b->value.scalar.bits;
  if (b->is_default || b->value.is_length || !find_row_of(r, b, &row) ||
      strncmp(row.value, "extent(", 7) != 0 ||
      !find_extent(r, row.value, &extent) || !extent.is_there ||
      extent.shape->rank < 2) {
    return true;
  }
  if (b->untyped != NULL &&
      !kilni_cli_u64_parse(b->untyped, strlen(b->untyped), &given)) {
    return true;  // other numbers are refused when they are read
  }
  if (given == extent.count) return true;
  char shape[128];
  kilni_cli_shape_text(extent.shape, shape, sizeof(shape));
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--arg %s=%" PRIu64
                       ", and \"%.*s\" is %s, which makes it %s=%" PRIu64,
                       row.parameter, given, (int)extent.name_size, extent.name,
                       shape, row.parameter, extent.count);
  kilni_cli_error_fix(error, "write --arg %s=%" PRIu64 ", or omit it",
                      row.parameter, extent.count);
  return false;
}

// The words of a shape.
static uint32_t run_defaults_find_words(const char* text,
                                        const char* out[KILNI_CLI_MAX_RANK]) {
  uint32_t count = 0;
  for (const char* at = text; *at != 0 && count < KILNI_CLI_MAX_RANK;) {
    out[count++] = at;
    at = run_defaults_skip(at + strcspn(at, ", "), ", ");
  }
  return count;
}

// Whether another input has another extent with that word as its `last`,
// counted from 1: then no --define fits both.
static bool run_defaults_disagree(const kilni_cli_request_t* r,
                                  const char* word, size_t size, uint32_t last,
                                  uint64_t have) {
  kiln_library_default_t row;
  const char* words[KILNI_CLI_MAX_RANK];
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    const kilni_cli_shape_t* shape = &b->array.shape;
    if (!b->is_in || shape->rank < 2 || shape->rank < last ||
        !find_row_of(r, b, &row)) {
      continue;
    }
    uint32_t count = run_defaults_find_words(row.shape, words);
    if (count >= last && strncmp(words[count - last], word, size) == 0 &&
        shape->dims[shape->rank - last] != have) {
      return true;
    }
  }
  return false;
}

// That --define, if the entry takes it.
static void fix_segment(const kilni_cli_request_t* r, const char* word,
                        size_t size, uint64_t have, kilni_cli_error_t* error) {
  kiln_library_options_t options = r->options;
  kilni_cli_error_t refused;
  if (options.struct_size == 0) options = kiln_library_options_default();
  options.segment = have;
  options.count = 1;
  if (kilni_cli_check(&refused,
                      kiln_library_check(kilni_cli_library_name(r->file),
                                         &options, NULL))) {
    kilni_cli_error_fix(error, "write --define %.*s=%" PRIu64, (int)size, word,
                        have);
  } else {
    kilni_cli_error_fix(error,
                        "give rows of another length, since there is no "
                        "--define %.*s=%" PRIu64 ": %.400s",
                        (int)size, word, have, refused.fix);
  }
}

// Extent `last`, counted from 1, contradicts that word.
static bool fail_extent(const kilni_cli_request_t* r,
                        const kilni_cli_binding_t* b, const char* word,
                        uint32_t last, uint64_t want,
                        kilni_cli_error_t* error) {
  char shape[128];
  size_t size = strcspn(word, ":, ");
  uint64_t have = b->array.shape.dims[b->array.shape.rank - last];
  kilni_cli_shape_text(&b->array.shape, shape, sizeof(shape));
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "parameter \"%.*s\" is given as %s; \"%s\" takes "
                       "%" PRIu64 " where that has %" PRIu64,
                       (int)b->parameter_size, b->parameter, shape, r->file,
                       want, have);
  if (*word == '=') {
    kilni_cli_error_fix(error, "give rows of %" PRIu64 " numbers", want);
  } else if (run_defaults_disagree(r, word, size, last, have)) {
    kilni_cli_error_fix(error,
                        "give inputs whose rows have one length, and that "
                        "length as --define %.*s=N",
                        (int)size, word);
  } else {
    fix_segment(r, word, size, have, error);
  }
  return false;
}

static bool fail_rest(const kilni_cli_request_t* r,
                      const kilni_cli_binding_t* b, uint64_t each,
                      kilni_cli_error_t* error) {
  return kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT,
      "give whole rows, with their length in --define if it differs",
      "parameter \"%.*s\" of \"%s\" has %" PRIu64
      " elements, which are not whole rows of %" PRIu64,
      (int)b->parameter_size, b->parameter, r->file, b->array.shape.count,
      each);
}

// An input whose last extents the entry fixes, or a --define does. One
// dimension, and raw bytes, are whole rows of them.
static bool run_defaults_check_input(const kilni_cli_request_t* r,
                                     const kilni_cli_binding_t* b,
                                     kilni_cli_error_t* error) {
  kiln_library_default_t row;
  const char* words[KILNI_CLI_MAX_RANK];
  if (!b->is_in || b->content != NULL || !find_row_of(r, b, &row)) {
    return true;
  }
  uint32_t count = run_defaults_find_words(row.shape, words);
  const kilni_cli_shape_t* shape =
      run_defaults_shape_of(r, row.parameter, strlen(row.parameter));
  uint64_t want, each = 1;
  for (uint32_t i = 1; i <= count; i++) {
    const char* word = words[count - i];
    size_t size = strcspn(word, ", ");
    if ((*word != '=' && memchr(word, ':', size) == NULL) ||
        !run_defaults_read_word(r, word, size, &want) || want == 0) {
      break;
    }
    each *= want;
    if (shape == NULL || shape->rank < 2 || shape->rank < i) continue;
    uint64_t have = shape->dims[shape->rank - i];
    if (have != want) return fail_extent(r, b, word, i, want, error);
  }
  return b->array.shape.count % each == 0 || fail_rest(r, b, each, error);
}

static bool run_defaults_check_given(const kilni_cli_request_t* r,
                                     kilni_cli_error_t* error) {
  if (kilni_cli_library_name(r->file) == NULL) return true;
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (!(b->is_arg  ? check_number(r, b, error)
          : b->is_in ? run_defaults_check_input(r, b, error)
                     : run_defaults_check_output(r, b, error))) {
      return false;
    }
  }
  return true;
}

// ---- Numbers that are extents ----

static bool settle_one(const kilni_cli_request_t* r, kilni_cli_binding_t* b,
                       bool* out_known, kilni_cli_error_t* error) {
  uint64_t count = 0;
  const char* end;
  char text[32];
  *out_known = read_extent(r, b->extents, &count, &end);
  if (!*out_known) return true;
  kilni_cli_type_t type = b->value.scalar.type;
  (void)snprintf(text, sizeof(text), "%" PRIu64, count);
  return kilni_cli_value_parse_as(text, type, &b->value.scalar, error);
}

static void run_defaults_append(char* text, size_t capacity, const char* word) {
  size_t used = strlen(text);
  (void)snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : " ",
                 word);
}

// The input that an "extent(P, ...)" is of; NULL where there is none.
static const kilni_cli_binding_t* run_defaults_bound(
    const kilni_cli_request_t* r, const char* extents) {
  const char* name = extents + strlen("extent(");
  size_t size = strcspn(name, ",");
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (b->is_in && run_defaults_is_of(r, b, name, size)) return b;
  }
  return NULL;
}

static bool run_defaults_is_bound(const kilni_cli_request_t* r,
                                  const char* extents) {
  return run_defaults_bound(r, extents) != NULL;
}

// Whether an input that should define two extents or more has at most one: then
// all of them must be given.
static bool is_flat(const kilni_cli_request_t* r, const char* extents) {
  const kilni_cli_binding_t* b = run_defaults_bound(r, extents);
  return b != NULL && b->array.shape.rank < 2;
}

// How many dimensions an "extent(P, K)" asks of P.
static uint32_t dimensions_of(const char* extents) {
  const char* comma = strchr(extents, ',');
  long place = comma != NULL ? strtol(comma + 1, NULL, 10) : 0;
  return (uint32_t)(place < 0 ? -place : place + 1);
}

// Whether an input with several extents lacks the requested one.
static bool run_defaults_lacks(const kilni_cli_request_t* r,
                               const char* extents) {
  uint64_t count;
  const char* end;
  return run_defaults_is_bound(r, extents) &&
         !read_extent(r, extents, &count, &end);
}

static bool run_defaults_fail_unknown(const kilni_cli_request_t* r,
                                      const char* names,
                                      kilni_cli_error_t* error) {
  char fix[256] = "";
  bool is_raw = true;
  uint32_t dimensions = 2;
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (!b->is_default || b->extents == NULL ||
        (!is_flat(r, b->extents) && !run_defaults_lacks(r, b->extents))) {
      continue;
    }
    if (!is_flat(r, b->extents) && dimensions_of(b->extents) > dimensions) {
      dimensions = dimensions_of(b->extents);
    }
    const char* path =
        (const char*)run_defaults_bound(r, b->extents)->path.data;
    if (path != NULL && kilni_cli_format_of(path) != KILNI_CLI_FORMAT_RAW) {
      is_raw = false;
    }
    size_t used = strlen(fix);
    (void)snprintf(fix + used, sizeof(fix) - used, " --arg %.80s=N",
                   b->parameter);
  }
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "not given, and no input has a shape that defines it: "
                       "%s",
                       names);
  // No entry needs more than four.
  const char* array = dimensions == 2   ? "two dimensions or more"
                      : dimensions == 3 ? "three dimensions or more"
                                        : "four dimensions";
  if (is_raw && dimensions == 2) {
    kilni_cli_error_fix(error,
                        "add%s, or give the input's shape, as in --in "
                        "P=FILE:TYPE[N,...]",
                        fix);
  } else {
    kilni_cli_error_fix(error, "add%s, or give an array of %s", fix, array);
  }
  return false;
}

// The chosen defaults: a line of numbers and a line for each sample.
static void note_choices(const kilni_cli_request_t* r) {
  char numbers[512] = "", word[128], shape[128];
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (b->content != NULL) {
      kilni_cli_shape_text(&b->array.shape, shape, sizeof(shape));
      kilni_cli_note("a sample for %s: %s (--in %s=FILE for your own)",
                     b->parameter, shape, b->parameter);
    }
    if (!b->is_default || b->is_open) continue;
    if (b->extents != NULL) {
      (void)snprintf(word, sizeof(word), "%s=%" PRIu64, b->parameter,
                     b->value.scalar.bits);
    } else {
      (void)snprintf(word, sizeof(word), "%s=%s", b->parameter, b->untyped);
    }
    run_defaults_append(numbers, sizeof(numbers), word);
  }
  if (numbers[0] != 0) kilni_cli_note("by default: %s", numbers);
}

bool kilni_cli_defaults_settle(kilni_cli_request_t* r,
                               kilni_cli_error_t* error) {
  char names[256] = "";
  for (size_t i = 0; i < r->binding_count; i++) {
    kilni_cli_binding_t* b = &r->bindings[i];
    bool known = true;
    if (!b->is_default || b->extents == NULL) continue;
    if (!settle_one(r, b, &known, error)) return false;
    // A missing parameter is reported by its name later.
    b->is_open = !known && !run_defaults_is_bound(r, b->extents);
    if (known || b->is_open) continue;
    run_defaults_append(names, sizeof(names), b->parameter);
  }
  if (names[0] != 0) return run_defaults_fail_unknown(r, names, error);
  if (!run_defaults_check_given(r, error)) return false;
  note_choices(r);
  return true;
}

// ---- Contents of samples ----

// A number as one of `type`, at `out`.
static void run_defaults_store(kilni_cli_type_t type, double number,
                               uint8_t* out) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(type);
  uint64_t bits = (uint64_t)(int64_t)number;
  float single = (float)number;
  uint32_t word;
  memcpy(&word, &single, sizeof(word));
  if (type == KILNI_CLI_TYPE_F64) memcpy(&bits, &number, sizeof(bits));
  if (type == KILNI_CLI_TYPE_F32) bits = word;
  // Towards zero is near enough for a sample; its small integers are exact.
  if (type == KILNI_CLI_TYPE_BF16) bits = word >> 16;
  if (type == KILNI_CLI_TYPE_F16) {
    uint32_t size = word & 0x7fffffff;
    // Below the normal numbers of f16 there is zero.
    bits = (word >> 16 & 0x8000) |
           (size < 0x38800000 ? 0 : (size - 0x38000000) >> 13);
  }
  memcpy(out, &bits, info->bytes);
}

// A content while it is read. one-thread
typedef struct content_t {
  const char* at;  // words of it that were not read
  kilni_cli_type_t type;
  uint64_t random;
  double first, second;
  uint64_t repeat;
} content_t;

// The next of "V N*V ...".
static double next_value(content_t* c) {
  char* end = NULL;
  if (c->repeat == 0) {
    c->first = strtod(c->at, &end);
    c->repeat = 1;
    if (*end == '*') {
      c->repeat = (uint64_t)c->first;
      c->first = strtod(end + 1, &end);
    }
    c->at = end;
  }
  c->repeat--;
  return c->first;
}

// The next of "random LOW HIGH".
static double run_defaults_next_random(content_t* c) {
  c->random = c->random * 6364136223846793005u + 1442695040888963407u;
  uint64_t bits = c->random >> 33;
  double range = c->second - c->first;
  if (kilni_cli_type_info(c->type)->kind != 'f') {
    return c->first + (double)(bits % ((uint64_t)range + 1));
  }
  return c->first + range * (double)bits / 2147483648.0;
}

// "checks SIDE": by the two extents before the channels, if there are any.
static double run_defaults_check_at(const content_t* c,
                                    const kilni_cli_shape_t* shape,
                                    uint64_t index) {
  bool has_channels = shape->rank == 3 && shape->dims[2] <= 4;
  uint64_t channels = has_channels ? shape->dims[2] : 1;
  uint64_t w = shape->dims[shape->rank - (has_channels ? 2 : 1)];
  uint64_t pixel = index / channels, side = (uint64_t)c->first;
  return (pixel % w / side + pixel / w / side) % 2 == 0 ? 255 : 0;
}

static uint64_t count_values(const char* words) {
  content_t c = {words, KILNI_CLI_TYPE_U32, 0, 0, 0, 0};
  uint64_t count = 0;
  while (*run_defaults_skip(c.at, " ") != 0 || c.repeat != 0) {
    (void)next_value(&c);
    count++;
  }
  return count;
}

// "text ...": its expansion, up to `capacity` bytes; returns the length.
static uint64_t run_defaults_read_text(const char* text, uint8_t* out,
                                       uint64_t capacity) {
  uint64_t count = 0;
  while (*text != 0) {
    char byte = *text++;
    if (byte == '\\' && *text == 'n') {
      byte = '\n';
      text++;
    } else if (byte == '\\' && *text == 'x') {
      char digits[3] = {text[1], text[2], 0};
      byte = (char)strtoul(digits, NULL, 16);
      text += 3;
    }
    if (count < capacity) out[count] = (uint8_t)byte;
    count++;
  }
  return count;
}

static const char* run_defaults_words_of(const char* content,
                                         const char* kind) {
  size_t size = strlen(kind);
  bool is = strncmp(content, kind, size) == 0 && content[size] == ' ';
  return is ? content + size + 1 : NULL;
}

static double run_defaults_next_number(content_t* c,
                                       const kilni_cli_shape_t* shape,
                                       const char* content, uint64_t index) {
  switch (content[0]) {
    case 'v':
      return next_value(c);
    case 'r':
      return run_defaults_next_random(c);
    case 'k':
      return run_defaults_check_at(c, shape, index);
    default:
      return c->first + c->second * (double)index;
  }
}

bool kilni_cli_defaults_fill(const kilni_cli_request_t* r,
                             kilni_cli_binding_t* b, kilni_cli_error_t* error) {
  kilni_cli_shape_t* shape = &b->array.shape;
  const char* text = run_defaults_words_of(b->content, "text");
  const char* values = run_defaults_words_of(b->content, "values");
  const char* checks = run_defaults_words_of(b->content, "checks");
  shape->type = b->spec.shape.type;
  if (!run_defaults_read_shape(r, b->extents, shape)) {
    shape->rank = 1;
    shape->dims[0] = text != NULL ? run_defaults_read_text(text, NULL, 0)
                                  : count_values(values != NULL ? values : "");
  }
  if (!kilni_cli_shape_finish(shape, error) ||
      !kilni_cli_buffer_resize(&b->array.data, (size_t)shape->bytes, error)) {
    return false;
  }
  uint8_t* data = b->array.data.data;
  if (text != NULL) {
    (void)run_defaults_read_text(text, data, shape->bytes);
    return true;
  }
  content_t c = {
      values != NULL ? values : "", shape->type, 0x9e3779b97f4a7c15u, 0, 0, 0};
  if (values == NULL) {
    char* end = NULL;
    c.first = strtod(strchr(b->content, ' '), &end);
    c.second = strtod(end, NULL);
  }
  uint32_t bytes = kilni_cli_type_info(shape->type)->bytes;
  const char* kind = checks != NULL ? "k" : b->content;
  for (uint64_t i = 0; i < shape->count; i++) {
    run_defaults_store(shape->type,
                       run_defaults_next_number(&c, shape, kind, i),
                       data + i * bytes);
  }
  return true;
}
