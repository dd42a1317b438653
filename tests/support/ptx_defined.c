// SPDX-License-Identifier: Apache-2.0
//
// support: may a kernel read a register that has not been written?
//
// A forward walk over basic blocks. What is known at an instruction are two
// sets of registers: those written if their guard is true, and those written if
// it is false; what is in both is written. The guard of a register is that of
// the first write of it that has one. Where ways meet, the sets are cut.
//
// A predicate that is the negation or a copy of another stands for it where
// both have one write each, without a guard: who reads it has come by its
// write, and since then not by the other's.
#include "ptx_defined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One function under way. one-thread
typedef struct flow_t {
  const kilni_image_ptx_module_t* module;
  const kilni_image_ptx_function_t* f;
  uint32_t words;  // of one set; `no` lies behind `yes`
  uint32_t block_count;
  uint32_t* block_of;    // of each instruction
  uint32_t* first;       // of each block; then the count of instructions
  uint32_t* writes;      // of each register; one under a guard is two
  uint32_t* same;        // of each register: twice what it stands for; + 1: not
  uint32_t* guard;       // of each register, or KILNI_PTX_NONE
  uint32_t* dependents;  // of each guard: the first register, or NONE
  uint32_t* next;        // of each register: the next of the same guard
  uint8_t* reached;      // each block
  uint8_t* todo;         // each block
  uint64_t* held;        // what is known in front of each block
  uint64_t* now;         // and here
  uint64_t* edge;        // and on a way that leaves
} flow_t;

// ---- Sets ----

static bool has(const uint64_t* set, uint32_t r) {
  return (set[r / 64] >> r % 64 & 1) != 0;
}

static void put(uint64_t* set, uint32_t r) {
  set[r / 64] |= UINT64_C(1) << r % 64;
}

static void drop(uint64_t* set, uint32_t r) {
  set[r / 64] &= ~(UINT64_C(1) << r % 64);
}

// ---- Who reads and who writes ----

// Whether the first operand is written, and not read as the others are.
static bool writes(const flow_t* w, const kilni_image_ptx_instruction_t* i) {
  const kilni_image_ptx_form_t* form = &w->module->forms[i->form];
  const kilni_image_ptx_operand_t* o =
      kilni_image_ptx_instruction_operands(w->module, i);
  if (o == NULL || o->kind == KILNI_PTX_OPERAND_ADDRESS) return false;
  switch (i->opcode) {
    case KILNI_PTX_OP_BAR:
    case KILNI_PTX_OP_BARRIER:
      for (uint32_t k = 0; k < form->modifier_count; k++) {
        if (form->modifiers[k] == KILNI_PTX_MOD_RED) return true;
      }
      return false;
    case KILNI_PTX_OP_BRX:
    case KILNI_PTX_OP_NANOSLEEP:
    case KILNI_PTX_OP_PMEVENT:
    case KILNI_PTX_OP_SETMAXNREG:
    case KILNI_PTX_OP_STACKRESTORE:
      return false;
    default:
      return true;
  }
}

static bool ends(const kilni_image_ptx_instruction_t* i) {
  return i->opcode == KILNI_PTX_OP_RET || i->opcode == KILNI_PTX_OP_EXIT ||
         i->opcode == KILNI_PTX_OP_TRAP;
}

static bool jumps(const kilni_image_ptx_instruction_t* i) {
  return i->opcode == KILNI_PTX_OP_BRA || i->opcode == KILNI_PTX_OP_BRX;
}

typedef void (*write_t)(flow_t* w, const kilni_image_ptx_instruction_t* i,
                        uint32_t r);

static void writes_of(flow_t* w, const kilni_image_ptx_instruction_t* i,
                      const kilni_image_ptx_operand_t* o, write_t write) {
  if (o->kind == KILNI_PTX_OPERAND_REGISTER) write(w, i, o->index);
  const kilni_image_ptx_operand_t* inner =
      kilni_image_ptx_operand_children(w->module, o);
  for (uint32_t k = 0; k < o->count; k++) writes_of(w, i, &inner[k], write);
}

static void each_write(flow_t* w, const kilni_image_ptx_instruction_t* i,
                       write_t write) {
  if (!writes(w, i)) return;
  writes_of(w, i, kilni_image_ptx_instruction_operands(w->module, i), write);
}

// The predicate that an instruction's guard stands for; whether it must hold.
static uint32_t guard_of(const flow_t* w,
                         const kilni_image_ptx_instruction_t* i,
                         bool* out_holds) {
  *out_holds = i->guard == KILNI_PTX_GUARD_TRUE;
  if (i->guard == KILNI_PTX_GUARD_NONE) return KILNI_PTX_NONE;
  uint32_t same = w->same[i->guard_register];
  *out_holds = *out_holds != (same % 2 != 0);
  return same / 2;
}

static bool is_written(const flow_t* w, const kilni_image_ptx_instruction_t* i,
                       uint32_t r) {
  bool yes = has(w->now, r), no = has(w->now + w->words, r);
  if (yes && no) return true;
  bool holds;
  uint32_t p = guard_of(w, i, &holds);
  return p != KILNI_PTX_NONE && w->guard[r] == p && (holds ? yes : no);
}

// A register of an operand that is read and may not be written, or NONE.
static uint32_t missing_in(const flow_t* w,
                           const kilni_image_ptx_instruction_t* i,
                           const kilni_image_ptx_operand_t* o) {
  bool reads = o->kind == KILNI_PTX_OPERAND_REGISTER ||
               (o->kind == KILNI_PTX_OPERAND_ADDRESS &&
                o->base == KILNI_PTX_BASE_REGISTER);
  if (reads && !is_written(w, i, o->index)) return o->index;
  const kilni_image_ptx_operand_t* inner =
      kilni_image_ptx_operand_children(w->module, o);
  for (uint32_t k = 0; k < o->count; k++) {
    uint32_t r = missing_in(w, i, &inner[k]);
    if (r != KILNI_PTX_NONE) return r;
  }
  return KILNI_PTX_NONE;
}

static uint32_t missing(const flow_t* w,
                        const kilni_image_ptx_instruction_t* i) {
  if (i->guard != KILNI_PTX_GUARD_NONE) {
    uint32_t p = i->guard_register;
    if (!has(w->now, p) || !has(w->now + w->words, p)) return p;
  }
  const kilni_image_ptx_operand_t* o =
      kilni_image_ptx_instruction_operands(w->module, i);
  for (uint32_t k = 0; k < i->operand_count; k++) {
    if (k == 0 && writes(w, i)) continue;
    uint32_t r = missing_in(w, i, &o[k]);
    if (r != KILNI_PTX_NONE) return r;
  }
  return KILNI_PTX_NONE;
}

// ---- One instruction ----

static void count_write(flow_t* w, const kilni_image_ptx_instruction_t* i,
                        uint32_t r) {
  w->writes[r] += i->guard == KILNI_PTX_GUARD_NONE ? 1 : 2;
}

static void note_guard(flow_t* w, const kilni_image_ptx_instruction_t* i,
                       uint32_t r) {
  bool holds;
  uint32_t p = guard_of(w, i, &holds);
  if (w->guard[r] != KILNI_PTX_NONE) return;
  w->guard[r] = p;
  w->next[r] = w->dependents[p];
  w->dependents[p] = r;
}

static void write_one(flow_t* w, const kilni_image_ptx_instruction_t* i,
                      uint32_t r) {
  uint64_t *yes = w->now, *no = w->now + w->words;
  // Which of its values a guard had is not known any more.
  for (uint32_t d = w->dependents[r]; d != KILNI_PTX_NONE; d = w->next[d]) {
    if (has(yes, d) && has(no, d)) continue;
    drop(yes, d);
    drop(no, d);
  }
  bool holds;
  uint32_t p = guard_of(w, i, &holds);
  if (p != KILNI_PTX_NONE && w->guard[r] != p) return;
  if (p == KILNI_PTX_NONE || holds) put(yes, r);
  if (p == KILNI_PTX_NONE || !holds) put(no, r);
}

// Behind a branch a guard is known: nothing is read under its other value.
static void assume(const flow_t* w, uint64_t* sets,
                   const kilni_image_ptx_instruction_t* i, bool taken) {
  bool holds;
  uint32_t p = guard_of(w, i, &holds);
  if (p == KILNI_PTX_NONE) return;
  uint64_t* other = holds == taken ? sets + w->words : sets;
  for (uint32_t d = w->dependents[p]; d != KILNI_PTX_NONE; d = w->next[d]) {
    put(other, d);
  }
}

static void meet_at(flow_t* w, uint32_t target, const uint64_t* sets) {
  if (target == w->f->instruction_count) return;
  uint32_t block = w->block_of[target];
  uint64_t* held = w->held + (size_t)block * 2 * w->words;
  uint64_t lost = 0;
  for (uint32_t k = 0; k < 2 * w->words; k++) {
    lost |= held[k] & ~sets[k];
    held[k] &= sets[k];
  }
  if (lost != 0 || !w->reached[block]) w->todo[block] = 1;
  w->reached[block] = 1;
}

static void jump(flow_t* w, const kilni_image_ptx_instruction_t* i) {
  const kilni_image_ptx_operand_t* o =
      kilni_image_ptx_instruction_operands(w->module, i);
  memcpy(w->edge, w->now, 2 * w->words * sizeof(uint64_t));
  assume(w, w->edge, i, true);
  if (i->opcode == KILNI_PTX_OP_BRA) {
    meet_at(w, w->f->labels[o->index].instruction, w->edge);
    return;
  }
  const kilni_image_ptx_table_t* t = &w->f->tables[o[1].index];
  for (uint32_t k = 0; k < t->count; k++) {
    uint32_t label = w->module->entries[t->first + k];
    meet_at(w, w->f->labels[label].instruction, w->edge);
  }
}

// ---- One function ----

// From the start of a block to where it ends: `now` goes along. With `out_read`
// the first instruction that reads what may not be written, and what.
static uint32_t run_block(flow_t* w, uint32_t block, uint32_t* out_read) {
  const size_t sets = (size_t)2 * w->words;
  memcpy(w->now, w->held + block * sets, sets * sizeof(uint64_t));
  uint32_t end = w->first[block + 1];
  for (uint32_t at = w->first[block]; at < end; at++) {
    const kilni_image_ptx_instruction_t* i = &w->f->instructions[at];
    if (out_read != NULL) {
      *out_read = at;
      uint32_t r = missing(w, i);
      if (r != KILNI_PTX_NONE) return r;
    }
    if (jumps(i)) {
      jump(w, i);
    } else if (!ends(i)) {
      each_write(w, i, write_one);
      continue;
    }
    if (i->guard == KILNI_PTX_GUARD_NONE) return KILNI_PTX_NONE;
    assume(w, w->now, i, false);
  }
  meet_at(w, end, w->now);
  return KILNI_PTX_NONE;
}

// Which guards stand for others, and which registers are written under them.
static void find_guards(flow_t* w) {
  const kilni_image_ptx_function_t* f = w->f;
  for (uint32_t r = 0; r < f->register_count; r++) w->same[r] = 2 * r;
  for (uint32_t at = 0; at < f->instruction_count; at++) {
    each_write(w, &f->instructions[at], count_write);
  }
  for (uint32_t at = 0; at < f->instruction_count; at++) {
    const kilni_image_ptx_instruction_t* i = &f->instructions[at];
    const kilni_image_ptx_operand_t* o =
        kilni_image_ptx_instruction_operands(w->module, i);
    bool is_not = i->opcode == KILNI_PTX_OP_NOT;
    if ((is_not || i->opcode == KILNI_PTX_OP_MOV) &&
        o[0].kind == KILNI_PTX_OPERAND_REGISTER &&
        o[1].kind == KILNI_PTX_OPERAND_REGISTER &&
        f->registers[o[0].index].type == KILNI_PTX_TYPE_PRED &&
        w->writes[o[0].index] == 1 && w->writes[o[1].index] == 1) {
      w->same[o[0].index] = w->same[o[1].index] ^ is_not;
    }
    if (i->guard != KILNI_PTX_GUARD_NONE) each_write(w, i, note_guard);
  }
}

static void find_blocks(flow_t* w) {
  const kilni_image_ptx_function_t* f = w->f;
  uint32_t count = f->instruction_count;
  memset(w->block_of, 0, (count + 1) * sizeof(uint32_t));
  w->block_of[0] = 1;
  for (uint32_t k = 0; k < f->label_count; k++) {
    w->block_of[f->labels[k].instruction] = 1;
  }
  for (uint32_t at = 0; at < count; at++) {
    const kilni_image_ptx_instruction_t* i = &f->instructions[at];
    if (jumps(i) || ends(i)) w->block_of[at + 1] = 1;
  }
  w->block_count = 0;
  for (uint32_t at = 0; at < count; at++) {
    if (w->block_of[at] != 0) w->first[w->block_count++] = at;
    w->block_of[at] = w->block_count - 1;
  }
  w->first[w->block_count] = count;
}

// What a function is handed in registers is written.
static void enter(flow_t* w) {
  memset(w->held, 0xff,
         (size_t)w->block_count * 2 * w->words * sizeof(uint64_t));
  memset(w->now, 0, 2 * w->words * sizeof(uint64_t));
  for (uint32_t k = 0; k < w->f->parameter_count; k++) {
    const kilni_image_ptx_variable_t* v =
        &w->module->variables[w->f->first_parameter + k];
    if (v->space != KILNI_PTX_SPACE_REG) continue;
    if (v->register_index == KILNI_PTX_NONE) continue;
    put(w->now, v->register_index);
    put(w->now + w->words, v->register_index);
  }
  meet_at(w, 0, w->now);
}

static const char* walk(flow_t* w, char out[PTX_DEFINED_BYTES]) {
  find_guards(w);
  find_blocks(w);
  enter(w);
  bool more = true;
  while (more) {
    more = false;
    for (uint32_t b = 0; b < w->block_count; b++) {
      if (!w->todo[b]) continue;
      w->todo[b] = 0;
      (void)run_block(w, b, NULL);
      more = true;
    }
  }
  for (uint32_t b = 0; b < w->block_count; b++) {
    uint32_t at = 0;
    uint32_t r = w->reached[b] ? run_block(w, b, &at) : KILNI_PTX_NONE;
    if (r == KILNI_PTX_NONE) continue;
    const kilni_image_ptx_instruction_t* i = &w->f->instructions[at];
    snprintf(out, PTX_DEFINED_BYTES,
             "%.64s, line %u: %s reads %.64s, which may not be written",
             w->f->name, i->line,
             kilni_image_ptx_instruction_text(w->module, i),
             w->f->registers[r].name);
    return out;
  }
  return NULL;
}

static const char* check_function(const kilni_image_ptx_module_t* module,
                                  const kilni_image_ptx_function_t* f,
                                  char out[PTX_DEFINED_BYTES]) {
  flow_t w = {.module = module, .f = f, .words = (f->register_count + 63) / 64};
  // As many blocks as instructions at most; most have far fewer.
  size_t count = f->instruction_count, registers = f->register_count;
  size_t blocks = 1 + f->label_count;
  for (size_t i = 0; i < count; i++) {
    blocks += jumps(&f->instructions[i]) || ends(&f->instructions[i]);
  }
  const size_t longs = (blocks + 1) * 2 * w.words + 2 * w.words;
  const size_t words = (count + 1) + (blocks + 1) + 5 * registers;
  uint64_t* memory =
      malloc(longs * sizeof(uint64_t) + words * sizeof(uint32_t) + 2 * blocks);
  if (memory == NULL) abort();
  w.held = memory;
  w.now = w.held + blocks * 2 * w.words;
  w.edge = w.now + 2 * w.words;
  w.writes = (uint32_t*)(memory + longs);
  w.same = w.writes + registers;
  w.guard = w.same + registers;
  w.dependents = w.guard + registers;
  w.next = w.dependents + registers;
  w.block_of = w.next + registers;
  w.first = w.block_of + count + 1;
  w.reached = (uint8_t*)(w.first + blocks + 1);
  w.todo = w.reached + blocks;
  memset(w.writes, 0, registers * sizeof(uint32_t));
  memset(w.guard, 0xff, 3 * registers * sizeof(uint32_t));
  memset(w.reached, 0, 2 * blocks);
  const char* problem = walk(&w, out);
  free(memory);
  return problem;
}

const char* ptx_defined(const kilni_image_ptx_module_t* module,
                        char out[PTX_DEFINED_BYTES]) {
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_image_ptx_function_t* f = &module->functions[i];
    if (f->instruction_count == 0) continue;
    const char* problem = check_function(module, f, out);
    if (problem != NULL) return problem;
  }
  return NULL;
}

const char* ptx_defined_text(kiln_string_view_t text,
                             char out[PTX_DEFINED_BYTES]) {
  kilni_image_ptx_module_t* module = NULL;
  const kiln_bytes_view_t bytes = {(const uint8_t*)text.data, text.size};
  kiln_status_t status = kilni_image_ptx_module_create(
      bytes, "lowered", NULL, kiln_allocator_libc(), &module);
  if (!kiln_status_is_ok(status)) {
    snprintf(out, PTX_DEFINED_BYTES, "refused: %.200s",
             kiln_status_message(status));
    kiln_status_free(status);
    return out;
  }
  const char* problem = ptx_defined(module, out);
  kilni_image_ptx_module_release(module);
  return problem;
}
