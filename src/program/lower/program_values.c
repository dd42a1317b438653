// SPDX-License-Identifier: Apache-2.0
//
// program: values, instructions and regions of a lowering.
#include <string.h>

#include "base/alloc.h"
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

// ---- The arena ----

struct kilni_program_arena_block_t {
  kilni_program_arena_block_t* next;
  size_t size;
};

enum { BLOCK_HEAD = 16, ARENA_ALIGN = 16 };

static bool values_add_block(kilni_program_arena_t* arena, size_t bytes) {
  void* memory;
  kiln_status_t status =
      kilni_base_alloc_unset(arena->allocator, bytes, &memory);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    arena->failed = 1;
    return false;
  }
  kilni_program_arena_block_t* block = memory;
  block->next = arena->blocks;
  block->size = bytes;
  arena->blocks = block;
  arena->block_count++;
  arena->next = (char*)memory + BLOCK_HEAD;
  arena->end = (char*)memory + bytes;
  return true;
}

void kilni_program_arena_init(kilni_program_arena_t* arena,
                              kiln_allocator_t allocator, size_t first) {
  memset(arena, 0, sizeof(*arena));
  arena->allocator = allocator;
  values_add_block(arena, first + BLOCK_HEAD);
}

void kilni_program_arena_deinit(kilni_program_arena_t* arena) {
  while (arena->blocks != NULL) {
    kilni_program_arena_block_t* next = arena->blocks->next;
    kilni_base_free(arena->allocator, arena->blocks, arena->blocks->size);
    arena->blocks = next;
  }
}

void* kilni_program_arena_get(kilni_program_arena_t* arena, size_t bytes) {
  if (arena->failed != 0 || bytes > SIZE_MAX / 4) {
    arena->failed = 1;
    return NULL;
  }
  bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
  if ((size_t)(arena->end - arena->next) < bytes) {
    size_t size = 2 * arena->blocks->size;
    if (size < 2 * bytes + BLOCK_HEAD) size = 2 * bytes + BLOCK_HEAD;
    if (!values_add_block(arena, size)) return NULL;
  }
  char* memory = arena->next;
  arena->next += bytes;
  return memory;
}

bool kilni_program_arena_grow(kilni_program_arena_t* arena, void** items,
                              uint32_t* capacity, uint32_t wanted,
                              size_t size) {
  if (wanted <= *capacity) return true;
  uint32_t next = *capacity < 64 ? 64 : *capacity;
  while (next < wanted) next *= 2;
  void* grown = kilni_program_arena_get(arena, next * size);
  if (grown == NULL) return false;
  if (*items != NULL) memcpy(grown, *items, *capacity * size);
  *items = grown;
  *capacity = next;
  return true;
}

#define GROW(w, table)                                                 \
  kilni_program_arena_grow(&(w)->arena, (void**)&(w)->table.items,     \
                           &(w)->table.capacity, (w)->table.count + 1, \
                           sizeof((w)->table.items[0]))

// ---- Failure ----

void kilni_program_lower_fail(kilni_program_lowering_t* w,
                              kiln_status_code_t code, const char* what,
                              const char* name) {
  if (w->failed != KILN_STATUS_OK) return;
  w->failed = (uint32_t)code;
  w->failed_what = what;
  w->failed_name = name;
}

static void no_memory(kilni_program_lowering_t* w) {
  kilni_program_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
}

// How much one lowering may come to.
enum { MAX_INSTRUCTIONS = 1 << 20 };

bool kilni_program_values_init(kilni_program_lowering_t* w) {
  w->hash =
      kilni_program_arena_get(&w->arena, KILNI_HASH_SIZE * sizeof(*w->hash));
  if (w->hash == NULL || !GROW(w, values) || !GROW(w, instructions) ||
      !GROW(w, regions)) {
    no_memory(w);
    return false;
  }
  memset(w->hash, 0, KILNI_HASH_SIZE * sizeof(*w->hash));
  memset(&w->values.items[0], 0, sizeof(w->values.items[0]));
  memset(&w->instructions.items[0], 0, sizeof(w->instructions.items[0]));
  memset(&w->regions.items[0], 0, sizeof(w->regions.items[0]));
  w->values.count = w->instructions.count = w->regions.count = 1;
  w->region = 0;
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  return w->failed == KILN_STATUS_OK;
}

// ---- Types ----

uint64_t kilni_program_type_most(uint8_t type) {
  switch (type) {
    case KILN_PROGRAM_TYPE_BOOL:
      return 1;
    case KILN_PROGRAM_TYPE_U8:
      return 0xff;
    case KILN_PROGRAM_TYPE_U16:
      return 0xffff;
    case KILN_PROGRAM_TYPE_U32:
      return 0xffffffff;
    default:
      return UINT64_MAX;
  }
}

uint8_t kilni_program_type_computed(uint8_t type) {
  switch (type) {
    case KILN_PROGRAM_TYPE_U8:
    case KILN_PROGRAM_TYPE_U16:
      return KILN_PROGRAM_TYPE_U32;
    case KILN_PROGRAM_TYPE_I8:
    case KILN_PROGRAM_TYPE_I16:
      return KILN_PROGRAM_TYPE_I32;
    case KILN_PROGRAM_TYPE_F16:
    case KILN_PROGRAM_TYPE_BF16:
      return KILN_PROGRAM_TYPE_F32;
    default:
      return type;
  }
}

// ---- Values ----

static kilni_program_value_t add_value(kilni_program_lowering_t* w,
                                       uint8_t type) {
  if (!GROW(w, values)) {
    no_memory(w);
    return 0;
  }
  kilni_program_value_record_t* value = &w->values.items[w->values.count];
  memset(value, 0, sizeof(*value));
  value->type = type;
  value->region = w->region;
  value->most = kilni_program_type_most(type);
  return w->values.count++;
}

static uint32_t values_mix(uint64_t a, uint64_t b) {
  uint64_t h =
      (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
  return (uint32_t)(h >> 40) % KILNI_HASH_SIZE;
}

const kilni_program_instruction_t* kilni_program_define_of(
    const kilni_program_lowering_t* w, kilni_program_value_t value) {
  uint32_t define = kilni_program_value_of(w, value)->define;
  if ((kilni_program_value_of(w, value)->flags & KILNI_VALUE_MOVED) != 0) {
    return NULL;
  }
  const kilni_program_instruction_t* i = &w->instructions.items[define];
  bool once = define != 0 && i->define == 0 && i->guard == 0 &&
              i->form == KILNI_FORM_PLAIN &&
              (i->flags & KILNI_INSTRUCTION_MOVES) == 0;
  return once ? i : NULL;
}

kilni_program_value_t kilni_program_const(kilni_program_lowering_t* w,
                                          uint8_t type, uint64_t bits) {
  uint32_t bytes = kilni_program_type_bytes(type);
  if (bytes < 8) bits &= (UINT64_C(1) << (8 * bytes)) - 1;
  if (type == KILN_PROGRAM_TYPE_BOOL) bits &= 1;
  uint32_t* head = &w->hash[values_mix(bits, type)];
  for (uint32_t v = *head; v != 0; v = w->values.items[v].chain) {
    const kilni_program_value_record_t* value = &w->values.items[v];
    if ((value->flags & KILNI_VALUE_CONST) != 0 && value->bits == bits &&
        value->type == type) {
      return v;
    }
  }
  kilni_program_value_t added = add_value(w, type);
  if (added == 0) return 0;
  kilni_program_value_record_t* value = &w->values.items[added];
  value->flags = KILNI_VALUE_CONST | KILNI_VALUE_UNIFORM;
  value->region = 1;
  value->bits = bits;
  value->most = bits;
  if (kilni_program_type_class(type) == KILNI_CLASS_SIGNED &&
      (bits >> (8 * bytes - 1) & 1) != 0) {
    value->most = UINT64_MAX;
  }
  value->chain = *head;
  *head = added;
  return added;
}

kilni_program_value_t kilni_program_register(kilni_program_lowering_t* w,
                                             uint8_t type) {
  return add_value(w, type);
}

// ---- Instructions ----

static uint32_t values_add_instruction(
    kilni_program_lowering_t* w, uint32_t region,
    const kilni_program_instruction_t* from) {
  if (w->instructions.count >= MAX_INSTRUCTIONS) {
    kilni_program_lower_fail(w, KILN_STATUS_LIMIT_EXCEEDED,
                             "comes to more than 1048576 instructions", "");
    return 0;
  }
  if (!GROW(w, instructions)) {
    no_memory(w);
    return 0;
  }
  uint32_t index = w->instructions.count++;
  kilni_program_instruction_t* to = &w->instructions.items[index];
  *to = *from;
  to->next = 0;
  to->define = 0;
  if (to->form == KILNI_FORM_LOAD_VECTOR) {
    for (uint32_t i = 0; i + 1U < to->count; i++) {
      w->values.items[to->operand[i]].define = index;
    }
  } else if ((to->flags & KILNI_INSTRUCTION_DEFINES) != 0) {
    kilni_program_value_record_t* value = &w->values.items[to->operand[0]];
    to->define = value->define;
    value->define = index;
  }
  kilni_program_region_t* list = &w->regions.items[region];
  if (list->last == 0) {
    list->first = index;
  } else {
    w->instructions.items[list->last].next = index;
  }
  list->last = index;
  return index;
}

// The outermost region in which all operands are there and to which no branch
// but only loops are left.
static uint32_t values_home_of(const kilni_program_lowering_t* w,
                               const kilni_program_instruction_t* instruction) {
  uint32_t depth = w->regions.items[w->floor].depth;
  uint32_t first = instruction->flags & KILNI_INSTRUCTION_DEFINES ? 1 : 0;
  for (uint32_t i = first; i <= instruction->count; i++) {
    kilni_program_value_t v =
        i == instruction->count ? instruction->guard : instruction->operand[i];
    v &= ~(uint32_t)KILNI_NOT;
    if (v == 0) continue;
    uint32_t d = w->regions.items[w->values.items[v].region].depth;
    if (d > depth) depth = d;
  }
  uint32_t home = w->region;
  for (uint32_t r = w->region; w->regions.items[r].depth > depth;
       r = w->regions.items[r].parent) {
    if (w->regions.items[r].kind == KILNI_REGION_LOOP) {
      home = w->regions.items[r].parent;
    }
  }
  return home;
}

static uint32_t values_hash_of(const kilni_program_instruction_t* i,
                               uint8_t type) {
  uint64_t a = (uint64_t)(uintptr_t)i->name;
  uint64_t b = i->operand[1] + (uint64_t)i->operand[2] * 0x10001U +
               (uint64_t)i->operand[3] * 0x1000003U + i->guard * 31U +
               i->number * 7U + type;
  return values_mix(a, b);
}

static bool same(const kilni_program_instruction_t* a,
                 const kilni_program_instruction_t* b) {
  return a->name == b->name && a->form == b->form && a->guard == b->guard &&
         a->number == b->number && a->count == b->count &&
         a->operand[1] == b->operand[1] && a->operand[2] == b->operand[2] &&
         a->operand[3] == b->operand[3] && a->operand[4] == b->operand[4];
}

static bool all_uniform(const kilni_program_lowering_t* w,
                        const kilni_program_instruction_t* i) {
  for (uint32_t k = 1; k < i->count; k++) {
    if (i->operand[k] != 0 && (kilni_program_value_of(w, i->operand[k])->flags &
                               KILNI_VALUE_UNIFORM) == 0) {
      return false;
    }
  }
  return i->guard == 0 || (kilni_program_value_of(w, i->guard)->flags &
                           KILNI_VALUE_UNIFORM) != 0;
}

kilni_program_value_t kilni_program_pure_form(
    kilni_program_lowering_t* w, const kilni_program_instruction_t* instruction,
    uint8_t type) {
  uint32_t* head = &w->hash[values_hash_of(instruction, type)];
  bool share = (w->off & KILN_PROGRAM_WITHOUT_SHARING) == 0;
  for (uint32_t v = share ? *head : 0; v != 0; v = w->values.items[v].chain) {
    const kilni_program_value_record_t* value = &w->values.items[v];
    if (value->define != 0 && value->type == type &&
        w->regions.items[value->region].open &&
        same(instruction, &w->instructions.items[value->define])) {
      return v;
    }
  }
  kilni_program_value_t added = add_value(w, type);
  if (added == 0) return 0;
  kilni_program_instruction_t copy = *instruction;
  copy.operand[0] = added;
  copy.flags |= KILNI_INSTRUCTION_DEFINES;
  bool hoist = (w->off & KILN_PROGRAM_WITHOUT_HOISTING) == 0;
  uint32_t home = hoist ? values_home_of(w, &copy) : w->region;
  values_add_instruction(w, home, &copy);
  kilni_program_value_record_t* value = &w->values.items[added];
  value->region = home;
  if (all_uniform(w, &copy)) value->flags |= KILNI_VALUE_UNIFORM;
  value->chain = *head;
  *head = added;
  return added;
}

static const char* move_of(uint8_t type) {
  switch (kilni_program_type_computed(type)) {
    case KILN_PROGRAM_TYPE_BOOL:
      return "mov.pred";
    case KILN_PROGRAM_TYPE_U64:
    case KILN_PROGRAM_TYPE_I64:
      return "mov.b64";
    case KILN_PROGRAM_TYPE_F32:
      return "mov.f32";
    case KILN_PROGRAM_TYPE_F64:
      return "mov.f64";
    default:
      return "mov.b32";
  }
}

kilni_program_value_t kilni_program_in_register(kilni_program_lowering_t* w,
                                                kilni_program_value_t x) {
  uint8_t type = kilni_program_value_type(w, x);
  kilni_program_instruction_t instruction = {0};
  instruction.name = move_of(type);
  instruction.operand[1] = x;
  instruction.count = 2;
  return kilni_program_pure_form(w, &instruction, type);
}

kilni_program_value_t kilni_program_pure(kilni_program_lowering_t* w,
                                         const char* name, uint8_t type,
                                         kilni_program_value_t a,
                                         kilni_program_value_t b,
                                         kilni_program_value_t c) {
  // An instruction of one operand takes no number; to move one to another
  // type is to have it there.
  if (b == 0 && a != 0 && kilni_program_value_is_const(w, a)) {
    uint64_t bits = w->values.items[a].bits;
    if (name[0] == 'm') {
      return kilni_program_const(
          w, type, type == KILN_PROGRAM_TYPE_BF16 ? bits >> 16 : bits);
    }
    a = kilni_program_in_register(w, a);
  }
  kilni_program_instruction_t instruction = {0};
  instruction.name = name;
  instruction.operand[1] = a;
  instruction.operand[2] = b;
  instruction.operand[3] = c;
  instruction.count = c != 0 ? 4 : b != 0 ? 3 : a != 0 ? 2 : 1;
  return kilni_program_pure_form(w, &instruction, type);
}

uint32_t kilni_program_pin(kilni_program_lowering_t* w, const char* name,
                           uint8_t form, uint8_t flags, uint8_t count,
                           const kilni_program_value_t* operands,
                           kilni_program_value_t guard, uint32_t number) {
  kilni_program_instruction_t instruction = {0};
  instruction.name = name;
  instruction.form = form;
  instruction.flags = flags;
  instruction.count = count;
  instruction.guard = guard;
  instruction.number = number;
  for (uint32_t i = 0; i < count; i++) instruction.operand[i] = operands[i];
  return values_add_instruction(w, w->region, &instruction);
}

kilni_program_value_t kilni_program_pin_value(
    kilni_program_lowering_t* w, const char* name, uint8_t type, uint8_t count,
    const kilni_program_value_t* operands, kilni_program_value_t guard) {
  kilni_program_value_t all[KILNI_OPERANDS_MAX] = {
      kilni_program_register(w, type)};
  for (uint32_t i = 0; i < count; i++) all[i + 1] = operands[i];
  kilni_program_pin(w, name, KILNI_FORM_PLAIN,
                    KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_PINNED,
                    (uint8_t)(count + 1), all, guard, 0);
  return all[0];
}

kilni_program_value_t kilni_program_fresh(kilni_program_lowering_t* w,
                                          const char* name, uint8_t type,
                                          kilni_program_value_t a,
                                          kilni_program_value_t b) {
  kilni_program_value_t all[3] = {kilni_program_register(w, type), a, b};
  kilni_program_pin(w, name, KILNI_FORM_PLAIN, KILNI_INSTRUCTION_DEFINES,
                    b != 0 ? 3 : 2, all, 0, 0);
  return all[0];
}

void kilni_program_pin_wide(
    kilni_program_lowering_t* w, const char* name,
    const kilni_program_value_t operands[KILNI_WIDE_OPERANDS]) {
  uint32_t first = w->wide.count, wanted = first + KILNI_WIDE_OPERANDS;
  if (!kilni_program_arena_grow(&w->arena, (void**)&w->wide.items,
                                &w->wide.capacity, wanted,
                                sizeof(*w->wide.items))) {
    no_memory(w);
    return;
  }
  memcpy(w->wide.items + first, operands,
         KILNI_WIDE_OPERANDS * sizeof(*operands));
  w->wide.count = wanted;
  uint32_t at = kilni_program_pin(w, name, KILNI_FORM_MATRIX,
                                  KILNI_INSTRUCTION_PINNED, 0, NULL, 0, first);
  for (uint32_t i = 0; i < KILNI_WIDE_WRITTEN; i++) {
    w->values.items[operands[i]].define = at;
  }
}

void kilni_program_pin_text(kilni_program_lowering_t* w, const char* name) {
  kilni_program_pin(w, name, KILNI_FORM_PLAIN, KILNI_INSTRUCTION_PINNED, 0,
                    NULL, 0, 0);
}

void kilni_program_move(kilni_program_lowering_t* w, kilni_program_value_t to,
                        kilni_program_value_t from) {
  if (to == 0 || from == 0) return;
  kilni_program_instruction_t instruction = {0};
  instruction.name = move_of(w->values.items[to].type);
  instruction.flags = KILNI_INSTRUCTION_DEFINES | KILNI_INSTRUCTION_MOVES;
  instruction.count = 2;
  instruction.operand[0] = to;
  instruction.operand[1] = from;
  w->values.items[to].flags |= KILNI_VALUE_MOVED;
  values_add_instruction(w, w->region, &instruction);
}

void kilni_program_place_label(kilni_program_lowering_t* w, uint32_t label) {
  kilni_program_pin(w, "", KILNI_FORM_LABEL, KILNI_INSTRUCTION_PINNED, 0, NULL,
                    0, label);
}

void kilni_program_branch(kilni_program_lowering_t* w, uint32_t label,
                          kilni_program_value_t guard) {
  // A block of one thread knows who its first one is.
  kilni_program_value_t value = guard & ~KILNI_NOT;
  if (value != 0 && kilni_program_value_is_const(w, value)) {
    bool taken = (kilni_program_value_of(w, value)->bits != 0) !=
                 ((guard & KILNI_NOT) != 0);
    if (!taken) return;
    guard = 0;
  }
  kilni_program_pin(w, "bra", KILNI_FORM_BRANCH, KILNI_INSTRUCTION_PINNED, 0,
                    NULL, guard, label);
}

// ---- Regions ----

uint32_t kilni_program_region_begin(kilni_program_lowering_t* w, uint8_t kind) {
  if (!GROW(w, regions)) {
    no_memory(w);
    return w->region;
  }
  kilni_program_region_t region = {0};
  region.parent = w->region;
  region.depth = w->regions.items[w->region].depth + 1;
  region.kind = kind;
  region.open = 1;
  region.facts = w->facts.count;
  w->region = w->regions.count;
  w->regions.items[w->regions.count++] = region;
  w->stamp++;
  // A loop's body is met again after what it writes.
  if (kind == KILNI_REGION_LOOP) w->epoch++;
  return w->region;
}

void kilni_program_region_end(kilni_program_lowering_t* w) {
  kilni_program_region_t* region = &w->regions.items[w->region];
  kilni_program_region_t* outer = &w->regions.items[region->parent];
  region->open = 0;
  w->facts.count = region->facts;
  w->stamp++;
  if (region->parent == 0) return;
  w->region = region->parent;
  if (region->first == 0) return;
  if (outer->last == 0) {
    outer->first = region->first;
  } else {
    w->instructions.items[outer->last].next = region->first;
  }
  outer->last = region->last;
}

// ---- Variables and facts ----

void kilni_program_bind(kilni_program_lowering_t* w, uint32_t variable,
                        kilni_program_value_t value) {
  if (!GROW(w, changes)) {
    no_memory(w);
    return;
  }
  kilni_program_change_t change = {variable, w->bindings[variable]};
  w->changes.items[w->changes.count++] = change;
  w->bindings[variable] = value;
  w->stamp++;
}

void kilni_program_unbind(kilni_program_lowering_t* w, uint32_t mark) {
  while (w->changes.count > mark) {
    const kilni_program_change_t* change =
        &w->changes.items[--w->changes.count];
    w->bindings[change->variable] = change->before;
  }
  w->stamp++;
}

void kilni_program_fact_add(kilni_program_lowering_t* w,
                            kilni_program_value_t a, kilni_program_value_t b) {
  if ((w->off & KILN_PROGRAM_WITHOUT_RANGES) != 0) return;
  if (!GROW(w, facts)) {
    no_memory(w);
    return;
  }
  kilni_program_fact_t fact = {a, b, w->region};
  w->facts.items[w->facts.count++] = fact;
}
