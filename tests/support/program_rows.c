// SPDX-License-Identifier: Apache-2.0
//
// test: a program for each row of the tables of operators, at each type.
//
// Every combination is written down; those that are no valid program (an
// operator that a type does not have) are left out.
#include "program_rows.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kiln/program.h"
#include "program/ir/program_types.h"

enum { ROWS_MAX = 4096 };

// What a row is of. thread-compatible
typedef enum row_kind_t {
  ROW_UNARY,
  ROW_BINARY,
  ROW_SHIFT,  // by u8 and u64; by u32 is a binary one's
  ROW_CAST,
  ROW_BITCAST,
  ROW_SELECT,
  ROW_FMA,
  ROW_ATOMIC,
  ROW_SUBGROUP,
  ROW_KINDS,
} row_kind_t;

typedef struct row_t {
  uint8_t kind;
  uint8_t op;
  uint8_t type;
  uint8_t other;  // a second type
} row_t;

static row_t rows[ROWS_MAX];
static uint32_t row_count;

static void unary(char* text, const char* name, const char* in, const char* out,
                  const char* function) {
  snprintf(text, PROGRAM_ROW_BYTES,
           "program %s(x: in %s[], o: out %s[length(x)])\n"
           "  work length(x) { let i = global_id.x; o[i] = %s(x[i]); }\n",
           name, in, out, function);
}

static void binary(char* text, const char* name, const row_t* r,
                   const char* type, const char* right) {
  const char* spelling = kilni_program_binary_operators[r->op].spelling;
  const bool called = isalpha((unsigned char)spelling[0]) != 0;
  const uint32_t out = kilni_program_type_of_binary(
      r->op, r->type, r->kind == ROW_SHIFT ? r->other : r->type);
  snprintf(text, PROGRAM_ROW_BYTES,
           "program %s(x: in %s[], y: in %s[], o: out %s[length(x)])\n"
           "  work length(x)\n"
           "{ let i = global_id.x; o[i] = %s(x[i] %s y[i]); }\n",
           name, type, right, kilni_program_type_name(out),
           called ? spelling : "", called ? "," : spelling);
}

static void atomic(char* text, const char* name, const row_t* r,
                   const char* type) {
  const char* spelling = kilni_program_atomics[r->op].spelling;
  const bool old = r->op != KILN_PROGRAM_ATOMIC_STORE;
  // Which bits a NaN has is left open, and with it what it is equal to.
  const bool is_float = kilni_program_type_class(r->type) == KILNI_CLASS_FLOAT;
  char values[96] = "";
  if (r->op == KILN_PROGRAM_ATOMIC_COMPARE_EXCHANGE) {
    if (is_float) {
      snprintf(values, sizeof values,
               ", select(is_nan(y[i]), %s(1u32), y[i]), x[i]", type);
    } else {
      snprintf(values, sizeof values, ", y[i], x[i]");
    }
  } else if (r->op != KILN_PROGRAM_ATOMIC_LOAD) {
    snprintf(values, sizeof values, ", x[i]");
  }
  snprintf(text, PROGRAM_ROW_BYTES,
           "program %s(x: in %s[], y: in %s[], a: inout %s[length(x)],\n"
           "    o: out %s[length(x)]) work length(x)\n"
           "{ let i = global_id.x; %s%s(a[i]%s); %s }\n",
           name, type, type, type, type, old ? "let b = " : "", spelling,
           values, old ? "o[i] = b;" : "");
}

static void subgroup(char* text, const char* name, const row_t* r,
                     const char* type) {
  const kilni_program_operator_t* row = &kilni_program_subgroups[r->op];
  const char* out = row->result == KILNI_RESULT_U32 ? "u32" : type;
  snprintf(text, PROGRAM_ROW_BYTES,
           "program %s(x: in %s[], o: out %s[length(x)])\n"
           "  work length(x) block 48\n"
           "{ let i = global_id.x; let b = %s(x[i]%s); o[i] = b; }\n",
           name, type, out, row->spelling,
           row->lane == 0U                            ? ""
           : r->op == KILN_PROGRAM_SUBGROUP_BROADCAST ? ", 5u32"
                                                      : ", lane * 7u32 + 1u32");
}

static void write_row(const row_t* r, const char* name, char* text) {
  const char* type = kilni_program_type_name(r->type);
  const char* other = kilni_program_type_name(r->other);
  char function[64];
  switch ((row_kind_t)r->kind) {
    case ROW_UNARY:
      unary(
          text, name, type,
          kilni_program_type_name(kilni_program_type_of_unary(r->op, r->type)),
          kilni_program_unary_operators[r->op].spelling);
      return;
    case ROW_BINARY:
    case ROW_SHIFT:
      binary(text, name, r, type,
             r->kind == ROW_SHIFT                   ? other
             : kilni_program_binary_is_shift(r->op) ? "u32"
                                                    : type);
      return;
    case ROW_CAST:
    case ROW_BITCAST:
      snprintf(function, sizeof function, "%s%s",
               r->kind == ROW_CAST ? "" : "bitcast_", other);
      unary(text, name, type, other, function);
      return;
    case ROW_SELECT:
    case ROW_FMA:
      snprintf(text, PROGRAM_ROW_BYTES,
               "program %s(x: in %s[], y: in %s[], z: in %s[],\n"
               "    o: out %s[length(x)]) work length(x)\n"
               "{ let i = global_id.x; o[i] = %s(%sx[i], y[i]%s); }\n",
               name, type, type, type, type,
               r->kind == ROW_FMA ? "fma" : "select",
               r->kind == ROW_FMA ? "" : "i % 3u32 == 0u32, ",
               r->kind == ROW_FMA ? ", z[i]" : "");
      return;
    case ROW_ATOMIC:
      atomic(text, name, r, type);
      return;
    default:
      subgroup(text, name, r, type);
      return;
  }
}

static bool is_valid(const row_t* r) {
  char text[PROGRAM_ROW_BYTES];
  kiln_program_t* program = NULL;
  write_row(r, "p", text);
  const kiln_string_view_t view = {text, strlen(text)};
  kiln_status_t status = kiln_program_parse(view, NULL, NULL, &program);
  const bool valid = kiln_status_is_ok(status);
  kiln_status_free(status);
  kiln_program_release(program);
  return valid;
}

// A shift by anything but u32, which is a binary one's row; else all.
static bool is_meant(const row_t* r) {
  return r->kind != ROW_SHIFT || (kilni_program_binary_is_shift(r->op) &&
                                  r->other != KILN_PROGRAM_TYPE_U32);
}

static void add_all(row_kind_t kind, uint32_t ops, uint32_t others) {
  for (uint32_t op = 0; op < ops; op++) {
    for (uint32_t type = 1; type < (uint32_t)KILNI_TYPE_COUNT; type++) {
      for (uint32_t other = 0; other < others; other++) {
        const row_t row = {(uint8_t)kind, (uint8_t)op, (uint8_t)type,
                           (uint8_t)other};
        if (row_count < (uint32_t)ROWS_MAX && is_meant(&row) &&
            is_valid(&row)) {
          rows[row_count++] = row;
        }
      }
    }
  }
}

uint32_t program_row_count(void) {
  static const uint32_t ops[ROW_KINDS] = {
      KILNI_UNARY_COUNT,  KILNI_BINARY_COUNT,  KILNI_BINARY_COUNT, 1, 1, 1, 1,
      KILNI_ATOMIC_COUNT, KILNI_SUBGROUP_COUNT};
  if (row_count != 0U) return row_count;
  for (uint32_t kind = 0; kind < (uint32_t)ROW_KINDS; kind++) {
    const bool two =
        kind == ROW_SHIFT || kind == ROW_CAST || kind == ROW_BITCAST;
    add_all((row_kind_t)kind, ops[kind], two ? KILNI_TYPE_COUNT : 1U);
  }
  return row_count;
}

void program_row_text(uint32_t row, const char* name, char* text) {
  text[0] = '\0';
  if (row < program_row_count()) write_row(&rows[row], name, text);
}
