// SPDX-License-Identifier: Apache-2.0
//
// test: a program run the slow and obvious way: what it means, by definition.
//
// A thread is a stack of frames, one for each list of statements it is in. It
// runs until it ends or until it comes to something that it does together
// with others: then it waits, and when all have come, it is done for all.
#include "program_evaluator.h"

#include <stdlib.h>
#include <string.h>

#include "program/math/program_math.h"
#include "evaluator_values.h"

enum {
  FRAMES_MAX = 256,
  LANES = 32,
  STEPS_DEFAULT = 100000000,
  COPIES_MAX = 16,
};

typedef enum frame_kind_t {
  FRAME_BODY,
  FRAME_FOR,
  FRAME_WHILE,
  FRAME_CALL,
} frame_kind_t;

typedef struct frame_t {
  frame_kind_t kind;
  uint32_t next;     // the statement to come
  uint32_t loop;     // the loop's own statement
  uint64_t counter;  // of a for
  uint64_t to;
  uint64_t step;
  uint32_t variable;  // that takes a call's result
} frame_t;

typedef enum wait_t {
  WAIT_NOT,  // it can go on
  WAIT_ENDED,
  WAIT_SUBGROUP,  // with a value
  WAIT_LANES,
  WAIT_MATRIX,
  WAIT_BARRIER,
  WAIT_COPY,
  WAIT_GRID,
} wait_t;

typedef struct thread_t {
  uint32_t local[3];
  uint32_t index;
  wait_t wait;
  uint32_t wait_at;    // the expression or statement it waits with
  uint32_t wait_into;  // the variable for a subgroup operation's result
  uint64_t operands[3];
  uint32_t depth;
  frame_t frames[FRAMES_MAX];
  uint64_t result;      // of the last return
  uint64_t* variables;  // by index
  uint32_t* bound;      // the buffer that a buffer of a function stands for
  uint8_t** privates;   // by buffer
} thread_t;

// A copy that goes on beside the threads. Backwards it is made as late as it
// may be, else as early: a program to which that matters has a race.
typedef struct copy_t {
  uint32_t to, from;
  uint64_t into, out, count;
  uint16_t tag;
} copy_t;

typedef struct block_t {
  uint32_t place[3];
  uint8_t** shared;  // by buffer
  thread_t* threads;
  copy_t copies[COPIES_MAX];  // under way, in the order they began
  uint32_t copy_count;
} block_t;

typedef struct run_t {
  const kilni_program_ir_t* ir;
  program_world_t* world;
  uint32_t block_count[3];
  uint32_t threads;  // in a block
  const char* error;
  uint64_t steps;
  const uint64_t* counts;  // of shared and private arrays; NULL: not yet
} run_t;

static uint64_t evaluate(run_t* run, block_t* block, thread_t* thread,
                         uint32_t expr);
static void advance(run_t* run, block_t* block, thread_t* thread,
                    uint32_t base);

static const char* fail(run_t* run, const char* text) {
  if (run->error == NULL) run->error = text;
  return run->error;
}

// -- buffers ----------------------------------------------------------------

static uint32_t buffer_behind(const thread_t* thread, uint32_t buffer) {
  while (thread->bound != NULL && thread->bound[buffer] != 0U) {
    buffer = thread->bound[buffer];
  }
  return buffer;
}

static uint64_t literal_bits(const kilni_program_expr_record_t* e) {
  return (uint64_t)e->b << 32U | e->a;
}

static uint64_t buffer_count(const run_t* run, uint32_t buffer) {
  const kilni_program_buffer_record_t* b = &run->ir->buffers.items[buffer];
  if (b->role == KILN_PROGRAM_ROLE_SHARED ||
      b->role == KILN_PROGRAM_ROLE_PRIVATE) {
    if (run->counts != NULL) return run->counts[buffer];
    return program_evaluate_count(run->ir, run->world, b->count);
  }
  return run->world->buffers[buffer].count;
}

// Where an element is; NULL out of range.
static uint8_t* element(const run_t* run, block_t* block, thread_t* thread,
                        uint32_t buffer, uint64_t index) {
  buffer = buffer_behind(thread, buffer);
  const kilni_program_buffer_record_t* b = &run->ir->buffers.items[buffer];
  if (index >= buffer_count(run, buffer)) {
    run->world->outside++;
    return NULL;
  }
  uint8_t* data = run->world->buffers[buffer].data;
  if (b->role == KILN_PROGRAM_ROLE_SHARED) data = block->shared[buffer];
  if (b->role == KILN_PROGRAM_ROLE_PRIVATE) data = thread->privates[buffer];
  return data + index * program_type_bytes(b->type);
}

static uint64_t load(const run_t* run, block_t* block, thread_t* thread,
                     uint32_t buffer, uint64_t index) {
  const uint8_t type = run->ir->buffers.items[buffer].type;
  const uint8_t* at = element(run, block, thread, buffer, index);
  uint64_t value = 0;
  if (at == NULL) return 0U;
  memcpy(&value, at, program_type_bytes(type));
  return type == KILN_PROGRAM_TYPE_BOOL ? value != 0U : value;
}

static void store(const run_t* run, block_t* block, thread_t* thread,
                  uint32_t buffer, uint64_t index, uint64_t value) {
  const uint8_t type = run->ir->buffers.items[buffer].type;
  uint8_t* at = element(run, block, thread, buffer, index);
  if (at != NULL) memcpy(at, &value, program_type_bytes(type));
}

static uint64_t index_of(run_t* run, block_t* block, thread_t* thread,
                         uint32_t expr) {
  return program_extend(run->ir->exprs.items[expr].type,
                        evaluate(run, block, thread, expr));
}

// -- expressions ------------------------------------------------------------

static uint64_t id_of(const run_t* run, const block_t* block,
                      const thread_t* thread, uint16_t extra) {
  const uint32_t axis = extra >> 8U;
  const uint32_t* size = run->world->block;
  switch (extra & 0xffU) {
    case KILN_PROGRAM_ID_GLOBAL_ID:
      return block->place[axis] * size[axis] + thread->local[axis];
    case KILN_PROGRAM_ID_LOCAL_ID:
      return thread->local[axis];
    case KILN_PROGRAM_ID_BLOCK_ID:
      return block->place[axis];
    case KILN_PROGRAM_ID_BLOCK_SIZE:
      return size[axis];
    case KILN_PROGRAM_ID_BLOCK_COUNT:
      return run->block_count[axis];
    case KILN_PROGRAM_ID_WORK_SIZE:
      return run->world->work[axis];
    case KILN_PROGRAM_ID_LOCAL_INDEX:
      return thread->index;
    case KILN_PROGRAM_ID_LANE:
      return thread->index % LANES;
    default:
      return thread->index / LANES;
  }
}

// Starts a call: all operands first, then the parameters.
static void enter(run_t* run, block_t* block, thread_t* thread, uint32_t expr,
                  uint32_t into) {
  const kilni_program_ir_t* ir = run->ir;
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  const kilni_program_function_record_t* f = &ir->functions.items[e->a];
  uint64_t values[64] = {0};
  if (e->c > 64U || thread->depth == FRAMES_MAX) {
    fail(run, "a call of too many operands or too deep");
    return;
  }
  for (uint32_t i = 0; i < e->c; i++) {
    const uint32_t given = ir->operands.items[e->b + i];
    const uint32_t taken = ir->operands.items[f->parameters + i];
    values[i] = (taken & KILNI_PARAMETER_BUFFER) != 0U
                    ? buffer_behind(thread, given & ~KILNI_PARAMETER_BUFFER)
                    : evaluate(run, block, thread, given);
  }
  for (uint32_t i = 0; i < e->c; i++) {
    const uint32_t taken = ir->operands.items[f->parameters + i];
    if ((taken & KILNI_PARAMETER_BUFFER) != 0U) {
      thread->bound[taken & ~KILNI_PARAMETER_BUFFER] = (uint32_t)values[i];
    } else {
      thread->variables[taken] = values[i];
    }
  }
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (ir->buffers.items[b].role == KILN_PROGRAM_ROLE_PRIVATE &&
        ir->buffers.items[b].function == e->a) {
      memset(
          thread->privates[b], 0,
          buffer_count(run, b) * program_type_bytes(ir->buffers.items[b].type));
    }
  }
  thread->frames[thread->depth++] =
      (frame_t){.kind = FRAME_CALL, .next = f->body, .variable = into};
}

static uint64_t call_pure(run_t* run, block_t* block, thread_t* thread,
                          uint32_t expr) {
  const uint32_t base = thread->depth;
  enter(run, block, thread, expr, 0);
  advance(run, block, thread, base);
  return thread->result;
}

static uint64_t evaluate(run_t* run, block_t* block, thread_t* thread,
                         uint32_t expr) {
  if (run->error != NULL) return 0;
  const kilni_program_ir_t* ir = run->ir;
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  const uint8_t type = ir->exprs.items[e->a < ir->exprs.count ? e->a : 0].type;
#define OPERAND(name) evaluate(run, block, thread, e->name)
  switch ((kilni_program_expr_op_t)e->op) {
    case KILNI_EXPR_LITERAL:
      return literal_bits(e);
    case KILNI_EXPR_VARIABLE:
      return thread->variables[e->a];
    case KILNI_EXPR_SCALAR:
      return run->world->scalars[e->a];
    case KILNI_EXPR_LENGTH:
      return buffer_count(run, buffer_behind(thread, e->a));
    case KILNI_EXPR_ID:
      return id_of(run, block, thread, e->extra);
    case KILNI_EXPR_LOAD:
      return load(run, block, thread, e->a, index_of(run, block, thread, e->b));
    case KILNI_EXPR_UNARY:
      return program_unary(e->extra, type, OPERAND(a));
    case KILNI_EXPR_BINARY:
      return program_binary(e->extra, type, OPERAND(a), OPERAND(b));
    case KILNI_EXPR_SELECT:
      return OPERAND(a) != 0U ? OPERAND(b) : OPERAND(c);
    case KILNI_EXPR_FMA:
      return program_fma(type, OPERAND(a), OPERAND(b), OPERAND(c));
    case KILNI_EXPR_CAST:
      return program_cast(type, e->type, OPERAND(a));
    case KILNI_EXPR_BITCAST:
      return program_bitcast(type, e->type, OPERAND(a));
    case KILNI_EXPR_CALL:
      return call_pure(run, block, thread, expr);
    case KILNI_EXPR_NONE:
    case KILNI_EXPR_SUBGROUP:
    case KILNI_EXPR_ATOMIC:
      break;
  }
#undef OPERAND
  fail(run, "an expression that has no value here");
  return 0;
}

// -- effects ----------------------------------------------------------------

#define ATOMIC_JOIN(NAME, OP)      \
  case KILN_PROGRAM_ATOMIC_##NAME: \
    return program_binary(KILN_PROGRAM_BINARY_##OP, type, old, value);

// What an atomic writes.
static uint64_t atomic_new(uint32_t op, uint8_t type, uint64_t old,
                           uint64_t value) {
  switch (op) {
    ATOMIC_JOIN(ADD, ADD)
    ATOMIC_JOIN(SUB, SUB)
    ATOMIC_JOIN(MIN, MIN)
    ATOMIC_JOIN(MAX, MAX)
    ATOMIC_JOIN(AND, BIT_AND)
    ATOMIC_JOIN(OR, BIT_OR)
    ATOMIC_JOIN(XOR, BIT_XOR)
    case KILN_PROGRAM_ATOMIC_NAND:
      return program_unary(KILN_PROGRAM_UNARY_BIT_NOT, type, old & value);
    default:
      return value;  // store, exchange
  }
}

static uint64_t atomic(run_t* run, block_t* block, thread_t* thread,
                       const kilni_program_expr_record_t* e) {
  const uint32_t op = KILNI_ATOMIC_OP(e->extra);
  const uint32_t* operands = &run->ir->operands.items[e->b];
  const uint8_t type = run->ir->buffers.items[e->a].type;
  uint64_t values[3] = {0};
  values[0] = index_of(run, block, thread, operands[0]);
  for (uint32_t i = 1; i < e->c && i < 3U; i++) {
    values[i] = evaluate(run, block, thread, operands[i]);
  }
  if (element(run, block, thread, e->a, values[0]) == NULL) return 0U;
  const uint64_t old = load(run, block, thread, e->a, values[0]);
  if (op == KILN_PROGRAM_ATOMIC_LOAD) return old;
  if (op == KILN_PROGRAM_ATOMIC_COMPARE_EXCHANGE) {
    if (old == values[1]) {
      store(run, block, thread, e->a, values[0], values[2]);
    }
    return old;
  }
  store(run, block, thread, e->a, values[0],
        atomic_new(op, type, old, values[1]));
  return old;
}

static void wait_for(thread_t* thread, wait_t wait, uint32_t at) {
  thread->wait = wait;
  thread->wait_at = at;
}

// The right side of a let, var, assign or evaluate.
static void begin_value(run_t* run, block_t* block, thread_t* thread,
                        uint32_t expr, uint32_t into) {
  const kilni_program_expr_record_t* e = &run->ir->exprs.items[expr];
  switch (e->op) {
    case KILNI_EXPR_CALL:
      enter(run, block, thread, expr, into);
      return;
    case KILNI_EXPR_SUBGROUP:
      thread->operands[0] = evaluate(run, block, thread, e->a);
      thread->operands[1] = e->b ? evaluate(run, block, thread, e->b) : 0U;
      thread->wait_into = into;
      wait_for(thread, WAIT_SUBGROUP, expr);
      return;
    case KILNI_EXPR_ATOMIC:
      thread->variables[into] = atomic(run, block, thread, e);
      return;
    default:
      thread->variables[into] = evaluate(run, block, thread, expr);
      return;
  }
}

// -- statements -------------------------------------------------------------

static void push(run_t* run, thread_t* thread, frame_t frame) {
  if (thread->depth == FRAMES_MAX) {
    fail(run, "statements nested too deep");
    return;
  }
  thread->frames[thread->depth++] = frame;
}

// x < y, or the distance from x to y, both of a counter's type.
static bool counter_below(uint8_t type, uint64_t x, uint64_t y) {
  return program_binary(KILN_PROGRAM_BINARY_LT, type, x, y) != 0U;
}

static void begin_for(run_t* run, block_t* block, thread_t* thread,
                      uint32_t at) {
  const kilni_program_statement_record_t* s = &run->ir->statements.items[at];
  frame_t frame = {.kind = FRAME_FOR, .next = s->body, .loop = at, .step = 1};
  frame.counter = evaluate(run, block, thread, s->b);
  frame.to = evaluate(run, block, thread, s->c);
  if (s->d != 0U) frame.step = evaluate(run, block, thread, s->d);
  if (!counter_below(run->ir->variables.items[s->a].type, frame.counter,
                     frame.to)) {
    return;
  }
  thread->variables[s->a] = frame.counter;
  push(run, thread, frame);
}

// The end of a list of statements.
static void end_list(run_t* run, block_t* block, thread_t* thread) {
  frame_t* frame = &thread->frames[thread->depth - 1U];
  const kilni_program_statement_record_t* s =
      &run->ir->statements.items[frame->loop];
  if (frame->kind == FRAME_WHILE) {
    if (evaluate(run, block, thread, s->a) != 0U) {
      frame->next = s->body;
      return;
    }
  } else if (frame->kind == FRAME_FOR) {
    const uint8_t type = run->ir->variables.items[s->a].type;
    const uint64_t left = program_binary(KILN_PROGRAM_BINARY_ABS_DIFF, type,
                                         frame->to, frame->counter);
    if (left > frame->step) {
      frame->counter = program_binary(KILN_PROGRAM_BINARY_ADD, type,
                                      frame->counter, frame->step);
      thread->variables[s->a] = frame->counter;
      frame->next = s->body;
      return;
    }
  }
  thread->depth--;
}

// Leaves frames up to the innermost loop.
static frame_t* to_loop(run_t* run, thread_t* thread) {
  while (thread->depth != 0U) {
    frame_t* frame = &thread->frames[thread->depth - 1U];
    if (frame->kind == FRAME_FOR || frame->kind == FRAME_WHILE) return frame;
    thread->depth--;
  }
  fail(run, "break or continue outside a loop");
  return NULL;
}

static void do_return(run_t* run, block_t* block, thread_t* thread,
                      const kilni_program_statement_record_t* s) {
  thread->result = s->a != 0U ? evaluate(run, block, thread, s->a) : 0U;
  while (thread->depth != 0U) {
    const frame_t* frame = &thread->frames[--thread->depth];
    if (frame->kind == FRAME_CALL) {
      thread->variables[frame->variable] = thread->result;
      return;
    }
  }
}

static void do_trap(run_t* run, block_t* block, thread_t* thread,
                    const kilni_program_statement_record_t* s) {
  program_trap_t* trap = &run->world->trap;
  if (trap->set == 0U) {
    trap->set = 1;
    trap->tag = (uint32_t)evaluate(run, block, thread, s->a);
    trap->address = evaluate(run, block, thread, s->b);
    // Only a program that was checked for it has no block, and no traps.
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker)
    memcpy(trap->block, block->place, sizeof trap->block);
    memcpy(trap->thread, thread->local, sizeof trap->thread);
  }
  thread->depth = 0;
}

static void do_if(run_t* run, block_t* block, thread_t* thread,
                  const kilni_program_statement_record_t* s) {
  const bool yes = evaluate(run, block, thread, s->a) != 0U;
  push(run, thread,
       (frame_t){.kind = FRAME_BODY, .next = yes ? s->body : s->other});
}

static void do_store(run_t* run, block_t* block, thread_t* thread,
                     const kilni_program_statement_record_t* s) {
  const uint64_t index = index_of(run, block, thread, s->b);
  const uint64_t value = evaluate(run, block, thread, s->c);
  store(run, block, thread, s->a, index, value);
}

static void do_copy(run_t* run, block_t* block, thread_t* thread,
                    const kilni_program_statement_record_t* s, uint32_t at) {
  thread->operands[0] = index_of(run, block, thread, s->b);
  thread->operands[1] = index_of(run, block, thread, s->c);
  thread->operands[2] = index_of(run, block, thread, s->d);
  wait_for(thread, WAIT_COPY, at);
}

static void do_statement(run_t* run, block_t* block, thread_t* thread,
                         uint32_t at) {
  const kilni_program_statement_record_t* s = &run->ir->statements.items[at];
  frame_t* loop = NULL;
  switch ((kilni_program_statement_op_t)s->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      begin_value(run, block, thread, s->b, s->a);
      return;
    case KILNI_STATEMENT_EVALUATE:
      begin_value(run, block, thread, s->a, 0);
      return;
    case KILNI_STATEMENT_STORE:
      do_store(run, block, thread, s);
      return;
    case KILNI_STATEMENT_IF:
      do_if(run, block, thread, s);
      return;
    case KILNI_STATEMENT_FOR:
      begin_for(run, block, thread, at);
      return;
    case KILNI_STATEMENT_WHILE:
      push(run, thread, (frame_t){.kind = FRAME_WHILE, .loop = at});
      return;
    case KILNI_STATEMENT_BREAK:
      if (to_loop(run, thread) != NULL) thread->depth--;
      return;
    case KILNI_STATEMENT_CONTINUE:
      loop = to_loop(run, thread);
      if (loop != NULL) loop->next = 0;
      return;
    case KILNI_STATEMENT_RETURN:
      do_return(run, block, thread, s);
      return;
    case KILNI_STATEMENT_BARRIER:
    case KILNI_STATEMENT_ASYNC_WAIT:
      wait_for(thread, WAIT_BARRIER, at);
      return;
    case KILNI_STATEMENT_GRID_BARRIER:
      wait_for(thread, WAIT_GRID, at);
      return;
    case KILNI_STATEMENT_SUBGROUP_BARRIER:
      wait_for(thread, WAIT_LANES, at);
      return;
    case KILNI_STATEMENT_MATRIX:
      wait_for(thread, WAIT_MATRIX, at);
      return;
    case KILNI_STATEMENT_ASYNC_COPY:
      do_copy(run, block, thread, s, at);
      return;
    case KILNI_STATEMENT_TRAP:
      do_trap(run, block, thread, s);
      return;
    case KILNI_STATEMENT_NONE:
    case KILNI_STATEMENT_COUNT:
      break;
  }
  fail(run, "a statement of no kind");
}

// Runs a thread until it waits, or has no more frames than `base`.
static void advance(run_t* run, block_t* block, thread_t* thread,
                    uint32_t base) {
  while (run->error == NULL && thread->wait == WAIT_NOT &&
         thread->depth > base) {
    frame_t* frame = &thread->frames[thread->depth - 1U];
    const uint32_t at = frame->next;
    if (++run->steps > run->world->step_limit) {
      fail(run, "more statements than the limit");
    } else if (at == 0U) {
      end_list(run, block, thread);
    } else {
      frame->next = run->ir->statements.items[at].next;
      do_statement(run, block, thread, at);
    }
  }
  if (base == 0U && thread->depth == 0U) thread->wait = WAIT_ENDED;
}

// -- together ---------------------------------------------------------------

// Whether all of some threads that have not ended wait for the same thing.
// `out_first` is the first of them, NULL if all have ended.
static bool all_wait(thread_t* threads, uint32_t count, thread_t** out_first) {
  thread_t* first = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (threads[i].wait == WAIT_ENDED) continue;
    if (first == NULL) first = &threads[i];
    if (threads[i].wait != first->wait ||
        threads[i].wait_at != first->wait_at) {
      *out_first = first;
      return false;
    }
  }
  *out_first = first;
  return true;
}

static void go_on(thread_t* threads, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (threads[i].wait != WAIT_ENDED) threads[i].wait = WAIT_NOT;
  }
}

typedef struct lanes_t {
  uint64_t value[LANES];
  uint64_t lane[LANES];  // the second operand
  bool part[LANES];
} lanes_t;

static void reduce(lanes_t* l, uint32_t op, uint8_t type) {
  for (uint32_t d = 16; d != 0U; d /= 2U) {
    uint64_t next[LANES];
    for (uint32_t i = 0; i < LANES; i++) {
      next[i] = program_binary(op, type, l->value[i & ~d], l->value[i | d]);
    }
    memcpy(l->value, next, sizeof next);
  }
}

static void scan(lanes_t* l, uint32_t op, uint8_t type) {
  for (uint32_t d = 1; d < LANES; d *= 2U) {
    for (uint32_t i = LANES - 1U; i >= d; i--) {
      l->value[i] = program_binary(op, type, l->value[i - d], l->value[i]);
    }
  }
}

static void pick(lanes_t* l, bool same_for_all) {
  uint64_t next[LANES];
  uint32_t first = 0;
  while (first < LANES - 1U && !l->part[first]) first++;
  for (uint32_t i = 0; i < LANES; i++) {
    const uint64_t lane = l->lane[same_for_all ? first : i];
    next[i] = lane < LANES && l->part[lane] ? l->value[lane] : 0U;
  }
  memcpy(l->value, next, sizeof next);
}

static void subgroup(uint32_t op, uint8_t type, lanes_t* l) {
  uint64_t word = 0;
  switch (op) {
    case KILN_PROGRAM_SUBGROUP_BALLOT:
      for (uint32_t i = 0; i < LANES; i++) {
        if (l->part[i] && l->value[i] != 0U) word |= UINT64_C(1) << i;
      }
      for (uint32_t i = 0; i < LANES; i++) l->value[i] = word;
      return;
    case KILN_PROGRAM_SUBGROUP_SHUFFLE:
      pick(l, false);
      return;
    case KILN_PROGRAM_SUBGROUP_BROADCAST:
      pick(l, true);
      return;
    case KILN_PROGRAM_SUBGROUP_SCAN_EXCLUSIVE_ADD:
      scan(l, program_join(op), type);
      for (uint32_t i = LANES - 1U; i > 0U; i--) l->value[i] = l->value[i - 1U];
      l->value[0] = 0;
      return;
    case KILN_PROGRAM_SUBGROUP_SCAN_ADD:
    case KILN_PROGRAM_SUBGROUP_SCAN_MUL:
    case KILN_PROGRAM_SUBGROUP_SCAN_MIN:
    case KILN_PROGRAM_SUBGROUP_SCAN_MAX:
      scan(l, program_join(op), type);
      return;
    default:
      reduce(l, program_join(op), type);
      return;
  }
}

static void do_subgroup(const run_t* run, thread_t* threads, uint32_t count,
                        const thread_t* first) {
  const kilni_program_expr_record_t* e = &run->ir->exprs.items[first->wait_at];
  const uint8_t type = run->ir->exprs.items[e->a].type;
  const uint32_t into = first->wait_into;
  lanes_t lanes = {.part = {false}};
  for (uint32_t i = 0; i < LANES; i++) {
    lanes.part[i] = i < count && threads[i].wait == WAIT_SUBGROUP;
    lanes.value[i] = lanes.part[i] ? threads[i].operands[0]
                                   : program_neutral(e->extra, type);
    lanes.lane[i] = lanes.part[i] ? threads[i].operands[1] : 0U;
  }
  subgroup(e->extra, type, &lanes);
  for (uint32_t i = 0; i < count; i++) {
    if (lanes.part[i]) threads[i].variables[into] = lanes.value[i];
  }
}

// Which row and column of its matrix a lane's element is; of a, b and d.
static void place_of(char which, uint32_t lane, uint32_t element,
                     uint32_t* out_row, uint32_t* out_column) {
  const uint32_t g = lane / 4U, t = lane % 4U;
  if (which == 'b') {
    *out_row = 2U * t + element % 2U + 8U * (element / 2U);
    *out_column = g;
    return;
  }
  *out_row = g + 8U * (element / 2U % 2U);
  *out_column = 2U * t + element % 2U + 8U * (element / 4U);
}

// Each element of d is fma(a[row, k], b[k, column], d) for k = 0 ... 15, in
// f32; what a lane that takes no part would hold is 0.
static void do_matrix(run_t* run, block_t* block, thread_t* threads,
                      uint32_t count, const thread_t* first) {
  const kilni_program_statement_record_t* s =
      &run->ir->statements.items[first->wait_at];
  const uint8_t type = run->ir->buffers.items[s->b].type;
  const uint8_t to = KILN_PROGRAM_TYPE_F32;
  uint64_t a[16][16] = {{0}}, b[16][16] = {{0}};
  uint32_t row = 0, column = 0;
  for (uint32_t lane = 0; lane < count; lane++) {
    thread_t* thread = &threads[lane];
    if (thread->wait == WAIT_ENDED) continue;
    for (uint32_t e = 0; e < 8U; e++) {
      place_of('a', lane, e, &row, &column);
      a[row][column] =
          program_cast(type, to, load(run, block, thread, s->b, e));
    }
    for (uint32_t e = 0; e < 4U; e++) {
      place_of('b', lane, e, &row, &column);
      b[row][column] =
          program_cast(type, to, load(run, block, thread, s->c, e));
    }
  }
  for (uint32_t lane = 0; lane < count; lane++) {
    thread_t* thread = &threads[lane];
    if (thread->wait == WAIT_ENDED) continue;
    for (uint32_t e = 0; e < 4U; e++) {
      uint64_t sum = load(run, block, thread, s->a, e);
      place_of('d', lane, e, &row, &column);
      for (uint32_t k = 0; k < 16U; k++) {
        sum = program_fma(to, a[row][k], b[k][column], sum);
      }
      store(run, block, thread, s->a, e, sum);
    }
  }
}

static void make_copy(const run_t* run, block_t* block, thread_t* first,
                      const copy_t* copy) {
  // A count is signed, and so are the indices: one in front of a buffer is out
  // of range, and those behind it come into it.
  for (uint64_t i = 0; i < copy->count && copy->count >> 63U == 0U; i++) {
    const uint64_t into = copy->into + i;
    if (into >> 63U == 0U && into >= buffer_count(run, copy->to)) break;
    store(run, block, first, copy->to, into,
          load(run, block, first, copy->from, copy->out + i));
  }
}

// Ends the first `count` copies that are under way.
static void end_copies(const run_t* run, block_t* block, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    make_copy(run, block, &block->threads[0], &block->copies[i]);
  }
  block->copy_count -= count;
  memmove(block->copies, block->copies + count,
          block->copy_count * sizeof *block->copies);
}

static void do_async_copy(const run_t* run, block_t* block, thread_t* first) {
  const kilni_program_statement_record_t* s =
      &run->ir->statements.items[first->wait_at];
  const copy_t copy = {.to = buffer_behind(first, s->a & 0xffffU),
                       .from = buffer_behind(first, s->a >> 16U),
                       .into = first->operands[0],
                       .out = first->operands[1],
                       .count = first->operands[2],
                       .tag = s->extra};
  if (block->copy_count == (uint32_t)COPIES_MAX) end_copies(run, block, 1);
  block->copies[block->copy_count++] = copy;
  if (!run->world->backwards) end_copies(run, block, block->copy_count);
}

// Copies end up to the last one with this tag.
static void do_async_wait(const run_t* run, block_t* block,
                          const thread_t* first) {
  const kilni_program_statement_record_t* s =
      &run->ir->statements.items[first->wait_at];
  if (s->op != KILNI_STATEMENT_ASYNC_WAIT) return;
  uint32_t count = block->copy_count;
  while (count != 0U && block->copies[count - 1U].tag != s->extra) count--;
  end_copies(run, block, count);
}

static bool is_of_subgroup(const thread_t* thread) {
  return thread->wait == WAIT_SUBGROUP || thread->wait == WAIT_LANES ||
         thread->wait == WAIT_MATRIX;
}

// Runs a block until all its threads have ended or wait for the grid.
static void run_block(run_t* run, block_t* block) {
  const bool back = run->world->backwards;
  thread_t* first = NULL;
  while (run->error == NULL) {
    for (uint32_t k = 0; k < run->threads; k += LANES) {
      const uint32_t at = back ? (run->threads - 1U) / LANES * LANES - k : k;
      const uint32_t left = run->threads - at;
      const uint32_t count = left < LANES ? left : LANES;
      thread_t* threads = &block->threads[at];
      for (;;) {
        for (uint32_t i = 0; i < count; i++) {
          const uint32_t which = back ? count - 1U - i : i;
          advance(run, block, &threads[which], 0);
        }
        if (run->error != NULL) return;
        const bool same = all_wait(threads, count, &first);
        if (first == NULL || (same && !is_of_subgroup(first))) break;
        if (!same) {
          fail(run, "threads of a subgroup wait at different places");
          return;
        }
        if (first->wait == WAIT_SUBGROUP) {
          do_subgroup(run, threads, count, first);
        }
        if (first->wait == WAIT_MATRIX) {
          do_matrix(run, block, threads, count, first);
        }
        go_on(threads, count);
      }
    }
    if (!all_wait(block->threads, run->threads, &first)) {
      fail(run, "threads of a block wait at different places");
      return;
    }
    if (first == NULL) end_copies(run, block, block->copy_count);
    if (first == NULL || first->wait == WAIT_GRID) return;
    if (first->wait == WAIT_COPY) do_async_copy(run, block, first);
    if (first->wait == WAIT_BARRIER) do_async_wait(run, block, first);
    go_on(block->threads, run->threads);
  }
}

// -- memory and the grid ----------------------------------------------------

static void start_thread(const run_t* run, block_t* block, uint32_t index) {
  const uint32_t* size = run->world->block;
  thread_t* t = &block->threads[index];
  const kilni_program_ir_t* ir = run->ir;
  t->index = index;
  t->local[0] = index % size[0];
  t->local[1] = index / size[0] % size[1];
  t->local[2] = index / size[0] / size[1];
  t->wait = WAIT_NOT;
  for (uint32_t k = 0; k < 3U; k++) {
    const uint64_t id = (uint64_t)block->place[k] * size[k] + t->local[k];
    if (id >= run->world->work[k]) t->wait = WAIT_ENDED;
  }
  t->depth = 1;
  t->frames[0] = (frame_t){.kind = FRAME_BODY, .next = ir->body};
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (t->privates[b] == NULL) continue;
    memset(
        t->privates[b], 0,
        buffer_count(run, b) * program_type_bytes(ir->buffers.items[b].type));
  }
}

static void start_block(const run_t* run, block_t* block, uint64_t number) {
  const uint32_t* count = run->block_count;
  const kilni_program_ir_t* ir = run->ir;
  block->copy_count = 0;
  block->place[0] = (uint32_t)(number % count[0]);
  block->place[1] = (uint32_t)(number / count[0] % count[1]);
  block->place[2] = (uint32_t)(number / count[0] / count[1]);
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (block->shared[b] == NULL) continue;
    memset(
        block->shared[b], 0,
        buffer_count(run, b) * program_type_bytes(ir->buffers.items[b].type));
  }
  for (uint32_t i = 0; i < run->threads; i++) start_thread(run, block, i);
}

// Memory for arrays of a role, by buffer.
static uint8_t** make_arrays(const run_t* run, uint8_t role) {
  const kilni_program_ir_t* ir = run->ir;
  uint8_t** arrays = calloc(ir->buffers.count + 1U, sizeof *arrays);
  for (uint32_t b = 1; arrays != NULL && b < ir->buffers.count; b++) {
    if (ir->buffers.items[b].role != role) continue;
    arrays[b] = calloc(buffer_count(run, b) + 1U,
                       program_type_bytes(ir->buffers.items[b].type));
  }
  return arrays;
}

static void free_arrays(const run_t* run, uint8_t** arrays) {
  for (uint32_t b = 1; arrays != NULL && b < run->ir->buffers.count; b++) {
    free(arrays[b]);
  }
  free(arrays);
}

static void close_block(const run_t* run, block_t* block) {
  for (uint32_t i = 0; block->threads != NULL && i < run->threads; i++) {
    free(block->threads[i].variables);
    free(block->threads[i].bound);
    free_arrays(run, block->threads[i].privates);
  }
  free(block->threads);
  free_arrays(run, block->shared);
}

static bool open_block(const run_t* run, block_t* block) {
  const kilni_program_ir_t* ir = run->ir;
  block->shared = make_arrays(run, KILN_PROGRAM_ROLE_SHARED);
  block->threads = calloc(run->threads, sizeof *block->threads);
  for (uint32_t i = 0; block->threads != NULL && i < run->threads; i++) {
    thread_t* t = &block->threads[i];
    t->variables = calloc(ir->variables.count + 1U, sizeof *t->variables);
    t->bound = calloc(ir->buffers.count + 1U, sizeof *t->bound);
    t->privates = make_arrays(run, KILN_PROGRAM_ROLE_PRIVATE);
    if (t->variables == NULL || t->bound == NULL || t->privates == NULL) {
      return false;
    }
  }
  return block->threads != NULL && block->shared != NULL;
}

// All blocks side by side, from one grid barrier to the next.
static void run_together(run_t* run, block_t* blocks, uint64_t count) {
  for (uint64_t b = 0; b < count; b++) start_block(run, &blocks[b], b);
  while (run->error == NULL) {
    const thread_t* waiting = NULL;
    uint32_t at = 0;
    for (uint64_t b = 0; b < count && run->error == NULL; b++) {
      block_t* block = &blocks[run->world->backwards ? count - 1U - b : b];
      thread_t* first = NULL;
      run_block(run, block);
      (void)all_wait(block->threads, run->threads, &first);
      if (first == NULL) continue;
      if (waiting != NULL && first->wait_at != at) {
        fail(run, "blocks wait at different grid barriers");
      }
      waiting = first;
      at = first->wait_at;
    }
    if (waiting == NULL) return;
    for (uint64_t b = 0; b < count; b++) go_on(blocks[b].threads, run->threads);
  }
}

static void run_grid(run_t* run, uint64_t count) {
  bool together = false;
  for (uint32_t i = 1; i < run->ir->statements.count; i++) {
    together |= run->ir->statements.items[i].op == KILNI_STATEMENT_GRID_BARRIER;
  }
  const uint64_t held = together ? count : 1U;
  block_t* blocks = calloc(held, sizeof *blocks);
  bool enough = blocks != NULL;
  for (uint64_t b = 0; enough && b < held; b++) {
    enough = open_block(run, &blocks[b]);
  }
  if (!enough) {
    fail(run, "not enough memory");
  } else if (together) {
    run_together(run, blocks, count);
  } else {
    for (uint64_t b = 0; b < count && run->error == NULL; b++) {
      start_block(run, &blocks[0], run->world->backwards ? count - 1U - b : b);
      run_block(run, &blocks[0]);
    }
  }
  for (uint64_t b = 0; blocks != NULL && b < held; b++) {
    close_block(run, &blocks[b]);
  }
  free(blocks);
}

uint64_t program_evaluate_count(const kilni_program_ir_t* ir,
                                const program_world_t* world, uint32_t expr) {
  program_world_t copy = *world;
  if (copy.step_limit == 0U) copy.step_limit = STEPS_DEFAULT;
  run_t run = {.ir = ir, .world = &copy};
  thread_t none = {.wait = WAIT_NOT};
  if (ir->exprs.items[expr].op == KILNI_EXPR_LITERAL) {
    return literal_bits(&ir->exprs.items[expr]);
  }
  return evaluate(&run, NULL, &none, expr);
}

const char* program_evaluate_sizes(const kilni_program_ir_t* ir,
                                   program_world_t* world) {
  static const uint32_t usual[3][3] = {{256, 1, 1}, {16, 16, 1}, {8, 8, 8}};
  uint32_t axes = 1;
  for (uint32_t k = 0; k < 3U; k++) {
    if (ir->work[k] != 0U) axes = k + 1U;
    if (world->work[k] != 0U) continue;
    const uint64_t size =
        ir->work[k] ? program_evaluate_count(ir, world, ir->work[k]) : 1U;
    if (size > UINT32_MAX) return "a work size of more than 32 bits";
    world->work[k] = (uint32_t)size;
  }
  for (uint32_t k = 0; k < 3U; k++) {
    if (world->block[k] != 0U) continue;
    world->block[k] = ir->block[0] != 0U ? ir->block[k] : usual[axes - 1U][k];
    if (world->block[k] == 0U) world->block[k] = 1;
  }
  return NULL;
}

const char* program_evaluate(const kilni_program_ir_t* ir,
                             program_world_t* world) {
  const char* error = program_evaluate_sizes(ir, world);
  if (error != NULL) return error;
  if (ir->buffers.count > PROGRAM_BUFFERS_MAX ||
      ir->scalars.count > PROGRAM_SCALARS_MAX) {
    return "more buffers or scalars than a world has";
  }
  if (world->step_limit == 0U) world->step_limit = STEPS_DEFAULT;
  run_t run = {.ir = ir, .world = world, .threads = 1};
  uint64_t blocks = 1;
  for (uint32_t k = 0; k < 3U; k++) {
    run.threads *= world->block[k];
    run.block_count[k] =
        (uint32_t)(((uint64_t)world->work[k] + world->block[k] - 1U) /
                   world->block[k]);
    blocks *= run.block_count[k];
  }
  uint64_t counts[PROGRAM_BUFFERS_MAX];
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    counts[b] = buffer_count(&run, b);
  }
  run.counts = counts;
  memset(&world->trap, 0, sizeof world->trap);
  if (blocks != 0U) run_grid(&run, blocks);
  world->steps = run.steps;
  return run.error;
}

// -- strict math ------------------------------------------------------------

enum { LIBRARY_VARIABLES_MAX = 8192 };

static uint64_t strict(uint32_t function, uint64_t x, uint64_t y) {
  uint64_t variables[LIBRARY_VARIABLES_MAX];
  kilni_program_ir_t library;
  kilni_program_math_view(&library);
  program_world_t world = {.step_limit = STEPS_DEFAULT};
  run_t run = {.ir = &library, .world = &world};
  thread_t thread = {.variables = variables, .depth = 1};
  const kilni_program_function_record_t* f = &library.functions.items[function];
  const uint32_t* parameters = &library.operands.items[f->parameters];
  variables[0] = 0;
  variables[parameters[0]] = x;
  if (f->parameter_count > 1U) variables[parameters[1]] = y;
  thread.frames[0] = (frame_t){.kind = FRAME_CALL, .next = f->body};
  advance(&run, NULL, &thread, 0);
  return thread.result;
}

static uint64_t strict_of(uint32_t op, uint8_t type, uint64_t x, uint64_t y,
                          bool two) {
  const bool is_half =
      type == KILN_PROGRAM_TYPE_F16 || type == KILN_PROGRAM_TYPE_BF16;
  const uint8_t wide = is_half ? KILN_PROGRAM_TYPE_F32 : type;
  const uint32_t f = two ? kilni_program_math_binary(op, wide)
                         : kilni_program_math_unary(op, wide);
  const uint64_t result =
      strict(f, program_cast(type, wide, x), program_cast(type, wide, y));
  return program_cast(wide, type, result);
}

uint64_t program_strict_unary(uint32_t op, uint8_t type, uint64_t x) {
  return strict_of(op, type, x, 0, false);
}

uint64_t program_strict_binary(uint32_t op, uint8_t type, uint64_t x,
                               uint64_t y) {
  return strict_of(op, type, x, y, true);
}
