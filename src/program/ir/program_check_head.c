// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: what stands around the bodies: parameters, counts,
// arrays, work and block; who calls whom; names.
#include <string.h>

#include "program/ir/program_checker.h"
#include "program/ir/program_integers.h"
#include "program/ir/program_names.h"
#include "program/ir/program_types.h"

// ---- Counts ----

// Integers of lengths, scalars and numbers.
static bool is_count(const kilni_program_ir_t* ir, uint32_t expr) {
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  uint32_t operands[KILNI_IR_MAX_CALL];
  if (!kilni_program_type_is_integer(record->type) &&
      record->type != KILN_PROGRAM_TYPE_BOOL) {
    return false;
  }
  switch (record->op) {
    case KILNI_EXPR_LITERAL:
    case KILNI_EXPR_SCALAR:
    case KILNI_EXPR_LENGTH:
      return true;
    case KILNI_EXPR_UNARY:
    case KILNI_EXPR_BINARY:
    case KILNI_EXPR_SELECT:
    case KILNI_EXPR_CAST:
      break;
    default:
      return false;
  }
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_count(ir, operands[i])) return false;
  }
  return true;
}

static void check_head_check_count(kilni_program_checker_t* checker,
                                   uint32_t expr, const char* what) {
  uint32_t type = kilni_program_check_value(checker, expr, false);
  if (type == KILN_PROGRAM_TYPE_NONE) return;
  if (is_count(checker->ir, expr) && kilni_program_type_is_integer(type)) {
    return;
  }
  kilni_program_checker_tell(checker, KILNI_RULE_COUNT, KILNI_IR_EXPR, expr,
                             "%s", what);
}

enum { CYCLE_NEW, CYCLE_OPEN, CYCLE_DONE };

static bool count_ends(const kilni_program_ir_t* ir, uint32_t buffer,
                       uint8_t* states);

// Whether the lengths in an expression are known without it.
static bool expr_ends(const kilni_program_ir_t* ir, uint32_t expr,
                      uint8_t* states) {
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  if (record->op == KILNI_EXPR_LENGTH) return count_ends(ir, record->a, states);
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!expr_ends(ir, operands[i], states)) return false;
  }
  return true;
}

static bool count_ends(const kilni_program_ir_t* ir, uint32_t buffer,
                       uint8_t* states) {
  uint32_t at = kilni_program_ir_parameter_of(ir, buffer);
  if (at == ir->order_count || states[at] == CYCLE_DONE) return true;
  if (states[at] == CYCLE_OPEN) return false;
  states[at] = CYCLE_OPEN;
  uint32_t count = ir->buffers.items[buffer].count;
  if (count != 0 && !expr_ends(ir, count, states)) return false;
  states[at] = CYCLE_DONE;
  return true;
}

static void check_cycles(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  uint8_t states[KILNI_IR_MAX_PARAMETERS] = {0};
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    uint32_t buffer = parameter & ~KILNI_PARAMETER_BUFFER;
    if ((parameter & KILNI_PARAMETER_BUFFER) == 0) continue;
    if (!count_ends(ir, buffer, states)) {
      kilni_program_checker_tell(
          checker, KILNI_RULE_COUNT_CYCLE, KILNI_IR_BUFFER, buffer, "\"%s\"",
          kilni_program_ir_name(ir, ir->buffers.items[buffer].name));
      return;
    }
  }
}

// ---- Buffers ----

// How many bytes the arrays have so far. one-thread
typedef struct array_bytes_t {
  uint64_t shared;
  uint64_t private_bytes;
} array_bytes_t;

// What a kernel lays them out as: private ones of all functions together.
static void check_private(kilni_program_checker_t* checker, uint32_t index,
                          uint64_t elements, uint64_t* inout_bytes) {
  const kilni_program_buffer_record_t* buffer =
      &checker->ir->buffers.items[index];
  const uint64_t most = KILNI_IR_MAX_PRIVATE_BYTES;
  const uint64_t before = *inout_bytes;
  uint64_t bytes = most + 1;  // of more elements than that
  if (elements <= most) {
    bytes = (elements * kilni_program_type_bytes(buffer->type) + 7) / 8 * 8;
  }
  *inout_bytes += bytes;
  if (before > most || *inout_bytes <= most) return;  // told once
  kilni_program_checker_tell(
      checker, KILNI_RULE_PRIVATE, KILNI_IR_BUFFER, index,
      "\"%s\" with %llu elements, behind %llu bytes",
      kilni_program_ir_name(checker->ir, buffer->name),
      (unsigned long long)elements, (unsigned long long)before);
}

static void check_array(kilni_program_checker_t* checker, uint32_t index,
                        array_bytes_t* inout) {
  const kilni_program_ir_t* ir = checker->ir;
  const kilni_program_buffer_record_t* buffer = &ir->buffers.items[index];
  const char* name = kilni_program_ir_name(ir, buffer->name);
  const kilni_program_expr_record_t* count =
      buffer->count == 0 ? NULL : &ir->exprs.items[buffer->count];
  if (count == NULL || count->op != KILNI_EXPR_LITERAL ||
      !kilni_program_type_is_integer(count->type)) {
    kilni_program_checker_tell(checker, KILNI_RULE_ARRAY, KILNI_IR_BUFFER,
                               index, "\"%s\" has no number of elements", name);
    return;
  }
  uint64_t elements = (uint64_t)kilni_program_integer_signed(
      count->type, kilni_program_ir_literal_bits(count));
  uint64_t bytes = elements * kilni_program_type_bytes(buffer->type);
  bool shared = buffer->role == KILN_PROGRAM_ROLE_SHARED;
  if (elements != 0 && !shared) {
    check_private(checker, index, elements, &inout->private_bytes);
    return;
  }
  if (elements != 0 && elements <= KILNI_IR_MAX_ARRAY_BYTES) {
    inout->shared += bytes;
    bytes = inout->shared;
  }
  if (elements == 0 || elements > KILNI_IR_MAX_ARRAY_BYTES ||
      bytes > KILNI_IR_MAX_ARRAY_BYTES) {
    kilni_program_checker_tell(checker, KILNI_RULE_ARRAY, KILNI_IR_BUFFER,
                               index, "\"%s\" with %llu elements", name,
                               (unsigned long long)elements);
  }
  if (shared && buffer->function != 0) {
    kilni_program_checker_tell(checker, KILNI_RULE_ROLE, KILNI_IR_BUFFER, index,
                               "\"%s\": shared arrays belong to the program",
                               name);
  }
}

static void check_parameter_role(kilni_program_checker_t* checker,
                                 uint32_t index) {
  const kilni_program_buffer_record_t* buffer =
      &checker->ir->buffers.items[index];
  uint32_t most = buffer->function != 0 ? KILN_PROGRAM_ROLE_INOUT
                                        : KILN_PROGRAM_ROLE_RESIDENT;
  if (buffer->role != KILN_PROGRAM_ROLE_NONE && buffer->role <= most) return;
  kilni_program_checker_tell(checker, KILNI_RULE_ROLE, KILNI_IR_BUFFER, index,
                             "\"%s\" is %s",
                             kilni_program_ir_name(checker->ir, buffer->name),
                             kilni_program_role_name(buffer->role));
}

static void check_buffers(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  array_bytes_t bytes = {0, 0};
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[i];
    if (buffer->role == KILN_PROGRAM_ROLE_SHARED ||
        buffer->role == KILN_PROGRAM_ROLE_PRIVATE) {
      check_array(checker, i, &bytes);
      continue;
    }
    check_parameter_role(checker, i);
    if (buffer->count != 0) {
      check_head_check_count(checker, buffer->count,
                             kilni_program_ir_name(ir, buffer->name));
    }
  }
}

// ---- Work and block ----

static void check_head_check_block(kilni_program_checker_t* checker) {
  const uint32_t* block = checker->ir->block;
  if (block[0] == 0 && block[1] == 0 && block[2] == 0) return;
  uint64_t threads = (uint64_t)block[0] * block[1];
  if (threads <= 1024) threads *= block[2];
  if (threads >= 1 && threads <= 1024 && block[2] <= 64) return;
  kilni_program_checker_tell(checker, KILNI_RULE_BLOCK, KILNI_IR_PROGRAM, 0,
                             "%u x %u x %u threads", block[0], block[1],
                             block[2]);
}

void kilni_program_check_head(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  kilni_program_check_name(checker, ir->name, KILNI_IR_PROGRAM, 0);
  kilni_program_check_names_cut(checker, 1);
  if (ir->order_count > KILNI_IR_MAX_PARAMETERS) {
    kilni_program_checker_tell(checker, KILNI_RULE_LIMIT, KILNI_IR_PROGRAM, 0,
                               "%u parameters, at most %d", ir->order_count,
                               KILNI_IR_MAX_PARAMETERS);
    return;
  }
  uint32_t errors = checker->errors;
  check_buffers(checker);
  if (errors == checker->errors) check_cycles(checker);
  for (int i = 0; i < 3; i++) {
    if (ir->work[i] != 0) {
      check_head_check_count(checker, ir->work[i], "the work size");
    }
  }
  check_head_check_block(checker);
}

// ---- Calls ----

// How deep the calls below a function go; fills in `pure` on the way back.
// UINT32_MAX after a recursion.
static uint32_t call_depth(kilni_program_checker_t* checker, uint32_t function,
                           uint32_t level);

typedef struct calls_t {
  kilni_program_checker_t* checker;
  uint32_t function;
  uint32_t level;
  uint32_t depth;
  bool pure;
} calls_t;

static void check_head_see_expr(calls_t* calls, uint32_t expr) {
  const kilni_program_ir_t* ir = calls->checker->ir;
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) check_head_see_expr(calls, operands[i]);
  if (record->op == KILNI_EXPR_ATOMIC || record->op == KILNI_EXPR_SUBGROUP) {
    calls->pure = false;
  }
  if (record->op != KILNI_EXPR_CALL || calls->depth == UINT32_MAX) return;
  uint32_t depth = call_depth(calls->checker, record->a, calls->level + 1);
  if (depth == UINT32_MAX) {
    calls->depth = depth;
    return;
  }
  if (depth + 1 > calls->depth) calls->depth = depth + 1;
  if (!ir->functions.items[record->a].pure) calls->pure = false;
}

static bool is_own_array(const calls_t* calls, uint32_t buffer) {
  const kilni_program_buffer_record_t* record =
      &calls->checker->ir->buffers.items[buffer];
  return record->role == KILN_PROGRAM_ROLE_PRIVATE &&
         record->function == calls->function;
}

static void check_head_see_list(calls_t* calls, uint32_t first) {
  const kilni_program_statement_record_t* items =
      calls->checker->ir->statements.items;
  for (uint32_t at = first; at != 0; at = items[at].next) {
    const kilni_program_statement_record_t* statement = &items[at];
    uint32_t exprs[3];
    uint32_t count = kilni_program_ir_statement_exprs(statement, exprs);
    for (uint32_t i = 0; i < count; i++) check_head_see_expr(calls, exprs[i]);
    if (statement->op >= KILNI_STATEMENT_BARRIER ||
        (statement->op == KILNI_STATEMENT_STORE &&
         !is_own_array(calls, statement->a))) {
      calls->pure = false;
    }
    check_head_see_list(calls, statement->body);
    check_head_see_list(calls, statement->other);
  }
}

// In `pure` of a function while calls are looked at.
enum { PURE_UNKNOWN = 2, PURE_OPEN = 3 };

static uint32_t call_depth(kilni_program_checker_t* checker, uint32_t function,
                           uint32_t level) {
  kilni_program_function_record_t* record =
      &checker->ir->functions.items[function];
  const char* name = kilni_program_ir_name(checker->ir, record->name);
  if (record->pure == PURE_OPEN) {
    kilni_program_checker_tell(checker, KILNI_RULE_RECURSION, KILNI_IR_FUNCTION,
                               function, "\"%s\"", name);
    return UINT32_MAX;
  }
  if (level > KILNI_IR_MAX_CALL_DEPTH) {
    kilni_program_checker_tell(
        checker, KILNI_RULE_LIMIT, KILNI_IR_FUNCTION, function,
        "functions that call each other, at most %d", KILNI_IR_MAX_CALL_DEPTH);
    return UINT32_MAX;
  }
  // What was looked at before is deep by what it then came to.
  if (record->pure != PURE_UNKNOWN) return checker->depths[function];
  record->pure = PURE_OPEN;
  calls_t calls = {checker, function, level, 0, true};
  check_head_see_list(&calls, record->body);
  checker->ir->functions.items[function].pure = calls.pure;
  if (calls.depth == UINT32_MAX) return UINT32_MAX;
  checker->depths[function] = (uint8_t)calls.depth;
  if (level + calls.depth > KILNI_IR_MAX_CALL_DEPTH) {
    kilni_program_checker_tell(
        checker, KILNI_RULE_LIMIT, KILNI_IR_FUNCTION, function,
        "functions that call each other, at most %d", KILNI_IR_MAX_CALL_DEPTH);
    return UINT32_MAX;
  }
  return calls.depth;
}

bool kilni_program_check_calls(kilni_program_checker_t* checker) {
  kilni_program_ir_t* ir = checker->ir;
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    ir->functions.items[i].pure = PURE_UNKNOWN;
  }
  bool ends = true;
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    if (call_depth(checker, i, 1) == UINT32_MAX) {
      ends = false;
      break;
    }
  }
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    if (ir->functions.items[i].pure > 1) ir->functions.items[i].pure = 0;
  }
  return ends;
}

// ---- Names ----

static uint32_t check_head_bucket_of(const char* name) {
  uint32_t hash = 2166136261U;
  for (; *name != 0; name++) hash = (hash ^ (unsigned char)*name) * 16777619U;
  return hash % KILNI_NAME_BUCKETS;
}

void kilni_program_check_name(kilni_program_checker_t* checker, uint32_t name,
                              uint32_t kind, uint32_t index) {
  // What has no name is in nobody's way.
  if (!checker->names || name == 0) return;
  const char* text = kilni_program_ir_name(checker->ir, name);
  if (kilni_program_name_is_word(text)) {
    kilni_program_checker_fix(checker, "choose another name");
    kilni_program_checker_tell(checker, KILNI_RULE_NAME_FORM, kind, index,
                               "\"%s\" is a word of the language", text);
    return;
  }
  if (!kilni_program_name_is_formed(text)) {
    kilni_program_checker_tell(checker, KILNI_RULE_NAME_FORM, kind, index,
                               "\"%s\"", text);
    return;
  }
  uint32_t* bucket = &checker->buckets[check_head_bucket_of(text)];
  for (uint32_t at = *bucket; at != 0; at = checker->seen[at].next) {
    if (strcmp(checker->seen[at].name, text) == 0) {
      kilni_program_checker_tell(checker, KILNI_RULE_NAME_TAKEN, kind, index,
                                 "\"%s\"", text);
      return;
    }
  }
  kilni_program_visible_name_t visible = {text, *bucket};
  *bucket = checker->seen_count;
  checker->seen[checker->seen_count++] = visible;
}

void kilni_program_check_names_cut(kilni_program_checker_t* checker,
                                   uint32_t count) {
  while (checker->seen_count > count) {
    const kilni_program_visible_name_t* last =
        &checker->seen[--checker->seen_count];
    checker->buckets[check_head_bucket_of(last->name)] = last->next;
  }
}
