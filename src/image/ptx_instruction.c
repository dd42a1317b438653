// SPDX-License-Identifier: Apache-2.0
//
// image: PTX instructions: guard, mnemonic, modifiers, operands.
#include "base/alloc.h"
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

enum {
  MODIFIERS = 64,  // hard bounds above any limit that a caller sets
  OPERANDS = 64
};

// An instruction being read. one-thread
typedef struct draft_t {
  kilni_image_ptx_token_t mnemonic;
  kilni_image_ptx_token_t modifiers[MODIFIERS];
  uint32_t modifier_count;
  uint32_t guard;
  uint32_t guard_register;
  uint32_t line;
  uint32_t column;
  uint32_t form;
  uint32_t opcode;
  uint32_t operand_count;
  kilni_image_ptx_operand_t operands[OPERANDS];
  kilni_image_ptx_place_t places[OPERANDS];
  kilni_image_ptx_token_t target;  // of bra
} draft_t;

// ---------------------------------------------------------------------------
// Forms
// ---------------------------------------------------------------------------

static bool spell(kilni_image_ptx_reader_t* reader, kiln_string_view_t text,
                  bool dot) {
  uint32_t size = (uint32_t)text.size + (dot ? 1 : 0);
  char* out = kilni_image_ptx_push(reader, &reader->spelling, size,
                                   "input_bytes", UINT32_MAX);
  if (out == NULL) return false;
  if (dot) *out++ = '.';
  memcpy(out, text.data, text.size);
  return true;
}

static kilni_image_ptx_form_t* form_at(const kilni_image_ptx_reader_t* reader,
                                       uint32_t index) {
  return KILNI_PTX_AT(reader->arena->forms, kilni_image_ptx_form_t, index);
}

static kiln_string_view_t form_text(const kilni_image_ptx_reader_t* reader,
                                    uint32_t index) {
  return kilni_base_sv(
      kilni_image_ptx_text(reader, form_at(reader, index)->text_offset));
}

static kiln_string_view_t spelling(const kilni_image_ptx_reader_t* reader) {
  kiln_string_view_t text = {reader->spelling.data, reader->spelling.count};
  return text;
}

static bool grow_forms(kilni_image_ptx_reader_t* reader) {
  size_t count = reader->form_bucket_count * 2;
  void* block = NULL;
  kiln_status_t status = kilni_base_alloc_array(reader->allocator, count,
                                                sizeof(uint32_t), &block);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kilni_image_ptx_fail_memory(reader);
  }
  kilni_base_free_array(reader->allocator, reader->form_buckets,
                        reader->form_bucket_count, sizeof(uint32_t));
  reader->form_buckets = block;
  reader->form_bucket_count = count;
  for (uint32_t i = 0; i < reader->arena->forms.count; i++) {
    size_t at = kilni_image_ptx_hash(form_text(reader, i)) & (count - 1);
    while (reader->form_buckets[at] != 0) at = (at + 1) & (count - 1);
    reader->form_buckets[at] = i + 1;
  }
  return true;
}

// The bucket of the spelling at hand: its form's, or a free one.
static size_t find_form(const kilni_image_ptx_reader_t* reader) {
  kiln_string_view_t text = spelling(reader);
  size_t mask = reader->form_bucket_count - 1;
  size_t at = kilni_image_ptx_hash(text) & mask;
  while (reader->form_buckets[at] != 0 &&
         !kilni_base_sv_equal(form_text(reader, reader->form_buckets[at] - 1),
                              text)) {
    at = (at + 1) & mask;
  }
  return at;
}

static bool ptx_instruction_find_words(kilni_image_ptx_reader_t* reader,
                                       const draft_t* draft,
                                       uint32_t* out_opcode,
                                       uint16_t* out_modifiers) {
  const kilni_image_ptx_token_t* at = &draft->mnemonic;
  *out_opcode = kilni_image_ptx_opcode_find(at->text);
  if (*out_opcode == KILNI_PTX_NONE) {
    return kilni_image_ptx_fail(reader, at, "correct the mnemonic",
                                "\"%.*s\" is not an instruction",
                                KILNI_SV(at->text));
  }
  for (uint32_t i = 0; i < draft->modifier_count; i++) {
    at = &draft->modifiers[i];
    uint32_t modifier = kilni_image_ptx_modifier_find(at->text);
    if (modifier == KILNI_PTX_MOD_NONE) {
      return kilni_image_ptx_fail(reader, at, "correct the modifier",
                                  "the modifier \".%.*s\" is not known",
                                  KILNI_SV(at->text));
    }
    out_modifiers[i] = (uint16_t)modifier;
  }
  return true;
}

static bool add_form(kilni_image_ptx_reader_t* reader, const draft_t* draft,
                     size_t bucket) {
  uint16_t modifiers[MODIFIERS];
  uint32_t opcode;
  uint32_t offset;
  if (!ptx_instruction_find_words(reader, draft, &opcode, modifiers)) {
    return false;
  }
  if (!kilni_image_ptx_add_text(reader, spelling(reader), &offset)) {
    return false;
  }
  uint32_t first = reader->arena->modifiers.count;
  if (draft->modifier_count > 0) {
    uint16_t* slots =
        kilni_image_ptx_push(reader, &reader->arena->modifiers,
                             draft->modifier_count, "forms", UINT32_MAX);
    if (slots == NULL) return false;
    memcpy(slots, modifiers, draft->modifier_count * sizeof(*slots));
  }
  kilni_image_ptx_form_t* form = kilni_image_ptx_push(
      reader, &reader->arena->forms, 1, "forms", reader->limits.forms);
  if (form == NULL) return false;
  form->opcode = (uint16_t)opcode;
  form->modifier_count = (uint16_t)draft->modifier_count;
  form->first_modifier = first;
  form->text_offset = offset;
  form->line = draft->line;
  kilni_image_ptx_rule_t* rule =
      kilni_image_ptx_push(reader, &reader->rules, 1, "forms", UINT32_MAX);
  if (rule == NULL ||
      !kilni_image_ptx_qualifiers_check(reader, &draft->mnemonic, opcode,
                                        modifiers, draft->modifier_count) ||
      !kilni_image_ptx_rule_find(reader, &draft->mnemonic, opcode, modifiers,
                                 draft->modifier_count, rule)) {
    return false;
  }
  reader->form_buckets[bucket] = reader->arena->forms.count;
  if ((size_t)reader->arena->forms.count * 2 < reader->form_bucket_count) {
    return true;
  }
  return grow_forms(reader);
}

// Reads the modifiers and finds the form; the token is then the first operand.
static bool read_form(kilni_image_ptx_reader_t* reader, draft_t* draft) {
  uint64_t most = reader->limits.modifiers;
  if (most > MODIFIERS) most = MODIFIERS;
  reader->spelling.count = 0;
  if (!spell(reader, draft->mnemonic.text, false)) return false;
  while (reader->token.kind == KILNI_PTX_TOKEN_DOT_WORD) {
    if (draft->modifier_count >= most) {
      return kilni_image_ptx_fail_limit(reader, "modifiers", most);
    }
    draft->modifiers[draft->modifier_count++] = reader->token;
    if (!spell(reader, reader->token.text, true) ||
        !kilni_image_ptx_next_modifier(reader)) {
      return false;
    }
  }
  size_t bucket = find_form(reader);
  if (reader->form_buckets[bucket] != 0) {
    draft->form = reader->form_buckets[bucket] - 1;
  } else {
    if (!add_form(reader, draft, bucket)) return false;
    draft->form = reader->arena->forms.count - 1;
  }
  draft->opcode = form_at(reader, draft->form)->opcode;
  return true;
}

// ---------------------------------------------------------------------------
// Operands
// ---------------------------------------------------------------------------

static bool fail_operands(kilni_image_ptx_reader_t* reader,
                          const draft_t* draft) {
  uint32_t least = kilni_image_ptx_opcode_least(draft->opcode);
  uint32_t most = kilni_image_ptx_opcode_most(draft->opcode);
  return kilni_image_ptx_fail(reader, &draft->mnemonic, "correct the operands",
                              "%s takes %u to %u operands and has %u",
                              kilni_image_ptx_opcode_text(draft->opcode), least,
                              most, draft->operand_count);
}

static bool ptx_instruction_read_operands(kilni_image_ptx_reader_t* reader,
                                          draft_t* draft) {
  uint64_t limit = reader->limits.instruction_operands;
  if (limit > OPERANDS) limit = OPERANDS;
  bool more = !kilni_image_ptx_is(reader, ';');
  while (more) {
    if (draft->operand_count >= limit) {
      return kilni_image_ptx_fail_limit(reader, "instruction_operands", limit);
    }
    kilni_image_ptx_operand_t* slot = &draft->operands[draft->operand_count];
    kilni_image_ptx_place_t* place = &draft->places[draft->operand_count];
    place->start = reader->token.start;
    place->line = reader->token.line;
    place->column = reader->token.column;
    if (!kilni_image_ptx_operand(reader, draft->opcode, slot)) return false;
    draft->operand_count++;
    if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  if (!kilni_image_ptx_is(reader, ';')) {
    return kilni_image_ptx_fail_expected(reader, "\";\"");
  }
  if (draft->operand_count < kilni_image_ptx_opcode_least(draft->opcode) ||
      draft->operand_count > kilni_image_ptx_opcode_most(draft->opcode)) {
    return fail_operands(reader, draft);
  }
  return true;
}

static bool read_branch(kilni_image_ptx_reader_t* reader, draft_t* draft) {
  draft->target = reader->token;
  if (draft->target.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a label");
  }
  kilni_image_ptx_operand_init(&draft->operands[0], KILNI_PTX_OPERAND_LABEL);
  draft->operand_count = 1;
  return kilni_image_ptx_next(reader);
}

static bool read_callee(kilni_image_ptx_reader_t* reader, draft_t* draft) {
  kilni_image_ptx_token_t at = reader->token;
  uint32_t kind;
  if (at.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a function or a register");
  }
  kilni_image_ptx_operand_t* callee = &draft->operands[1];
  kilni_image_ptx_operand_init(callee, KILNI_PTX_OPERAND_FUNCTION);
  if (!kilni_image_ptx_resolve(reader, at.text, &kind, &callee->index)) {
    return false;
  }
  if (kind == KILNI_PTX_SYMBOL_REGISTER) {
    callee->kind = KILNI_PTX_OPERAND_REGISTER;
  } else if (kind != KILNI_PTX_SYMBOL_FUNCTION) {
    return kilni_image_ptx_fail(
        reader, &at, "declare the function before its call",
        "\"%.*s\" is not a function", KILNI_SV(at.text));
  }
  draft->target = at;
  return kilni_image_ptx_next(reader);
}

// A call's lists must have the lengths that its function or prototype has.
static bool ptx_instruction_check_call(kilni_image_ptx_reader_t* reader,
                                       const draft_t* draft) {
  uint32_t returns;
  uint32_t parameters;
  if (draft->operands[1].kind == KILNI_PTX_OPERAND_FUNCTION) {
    const kilni_image_ptx_function_t* function =
        KILNI_PTX_AT(reader->arena->functions, kilni_image_ptx_function_t,
                     draft->operands[1].index);
    returns = function->return_count;
    parameters = function->parameter_count;
  } else {
    if (draft->operands[3].kind != KILNI_PTX_OPERAND_TABLE) {
      return kilni_image_ptx_fail(
          reader, &draft->target,
          "name a .callprototype or .calltargets after the arguments",
          "a call through a register needs a prototype");
    }
    const kilni_image_ptx_table_t* table =
        KILNI_PTX_AT(reader->arena->tables, kilni_image_ptx_table_t,
                     reader->first_table + draft->operands[3].index);
    if (table->kind == KILNI_PTX_TABLE_BRANCH_TARGETS) {
      return kilni_image_ptx_fail(reader, &draft->target,
                                  "name a .callprototype or .calltargets",
                                  "branch targets cannot be called");
    }
    if (table->kind != KILNI_PTX_TABLE_PROTOTYPE) return true;
    returns = table->return_count;
    parameters = table->parameter_count;
  }
  if (draft->operands[0].count == returns &&
      draft->operands[2].count == parameters) {
    return true;
  }
  return kilni_image_ptx_fail(
      reader, &draft->target, "call it as it is declared",
      "\"%.*s\" has %u results and %u parameters, and is called with %u and %u",
      KILNI_SV(draft->target.text), returns, parameters,
      draft->operands[0].count, draft->operands[2].count);
}

// call (results), callee, (arguments), prototype
static bool ptx_instruction_read_call(kilni_image_ptx_reader_t* reader,
                                      draft_t* draft) {
  bool more;
  kilni_image_ptx_operand_init(&draft->operands[0], KILNI_PTX_OPERAND_LIST);
  kilni_image_ptx_operand_init(&draft->operands[2], KILNI_PTX_OPERAND_LIST);
  kilni_image_ptx_operand_init(&draft->operands[3], KILNI_PTX_OPERAND_NONE);
  draft->operand_count = 4;
  if (kilni_image_ptx_is(reader, '(') &&
      (!kilni_image_ptx_list(reader, &draft->operands[0]) ||
       !kilni_image_ptx_expect(reader, ','))) {
    return false;
  }
  if (!read_callee(reader, draft) ||
      !kilni_image_ptx_accept(reader, ',', &more)) {
    return false;
  }
  if (more && kilni_image_ptx_is(reader, '(')) {
    if (!kilni_image_ptx_list(reader, &draft->operands[2]) ||
        !kilni_image_ptx_accept(reader, ',', &more)) {
      return false;
    }
  }
  if (more) {
    kilni_image_ptx_token_t at = reader->token;
    if (!kilni_image_ptx_operand(reader, KILNI_PTX_OP_CALL,
                                 &draft->operands[3])) {
      return false;
    }
    if (draft->operands[3].kind != KILNI_PTX_OPERAND_TABLE) {
      return kilni_image_ptx_fail(reader, &at, "name a .callprototype",
                                  "\"%.*s\" is not a prototype",
                                  KILNI_SV(at.text));
    }
  }
  return ptx_instruction_check_call(reader, draft);
}

static bool check_brx(kilni_image_ptx_reader_t* reader, const draft_t* draft) {
  const kilni_image_ptx_operand_t* table = &draft->operands[1];
  if (table->kind == KILNI_PTX_OPERAND_TABLE &&
      KILNI_PTX_AT(reader->arena->tables, kilni_image_ptx_table_t,
                   reader->first_table + table->index)
              ->kind == KILNI_PTX_TABLE_BRANCH_TARGETS) {
    return true;
  }
  return kilni_image_ptx_fail(reader, &draft->mnemonic,
                              "name a .branchtargets list declared before",
                              "brx needs a list of branch targets");
}

static bool ptx_instruction_add_instruction(kilni_image_ptx_reader_t* reader,
                                            const draft_t* draft) {
  uint32_t first = reader->arena->operands.count;
  if (draft->operand_count > 0) {
    kilni_image_ptx_operand_t* slots = kilni_image_ptx_push(
        reader, &reader->arena->operands, draft->operand_count, "operands",
        reader->limits.operands);
    if (slots == NULL) return false;
    memcpy(slots, draft->operands, draft->operand_count * sizeof(*slots));
  }
  kilni_image_ptx_instruction_t* instruction =
      kilni_image_ptx_push(reader, &reader->arena->instructions, 1,
                           "instructions", reader->limits.instructions);
  if (instruction == NULL) return false;
  instruction->form = draft->form;
  instruction->opcode = (uint16_t)draft->opcode;
  instruction->guard = (uint8_t)draft->guard;
  instruction->guard_register = draft->guard_register;
  instruction->operand_count = (uint8_t)draft->operand_count;
  instruction->first_operand = first;
  instruction->line = draft->line;
  instruction->column = draft->column;
  instruction->location = reader->location;
  if (draft->opcode != KILNI_PTX_OP_BRA) return true;
  uint32_t name;
  return kilni_image_ptx_intern(reader, draft->target.text, &name) &&
         kilni_image_ptx_pend(reader, &draft->target, name, false, first);
}

static bool check_operands(kilni_image_ptx_reader_t* reader,
                           const draft_t* draft) {
  const kilni_image_ptx_rule_t* rule =
      KILNI_PTX_AT(reader->rules, kilni_image_ptx_rule_t, draft->form);
  if (rule->shapes == NULL) return true;
  const kilni_image_ptx_judge_t judge = {.reader = reader,
                                         .rule = rule,
                                         .operands = draft->operands,
                                         .places = draft->places,
                                         .opcode = draft->opcode,
                                         .count = draft->operand_count};
  return kilni_image_ptx_check_operands(&judge);
}

static bool ptx_instruction_read_rest(kilni_image_ptx_reader_t* reader,
                                      draft_t* draft) {
  if (!read_form(reader, draft)) return false;
  bool ok;
  if (draft->opcode == KILNI_PTX_OP_BRA) {
    ok = read_branch(reader, draft);
  } else if (draft->opcode == KILNI_PTX_OP_CALL) {
    ok = ptx_instruction_read_call(reader, draft);
  } else {
    ok = ptx_instruction_read_operands(reader, draft) &&
         check_operands(reader, draft);
  }
  if (ok && draft->opcode == KILNI_PTX_OP_BRX) ok = check_brx(reader, draft);
  return ok && kilni_image_ptx_expect(reader, ';') &&
         ptx_instruction_add_instruction(reader, draft);
}

static void init_draft(draft_t* draft, const kilni_image_ptx_token_t* start) {
  // The arrays are written before they are read.
  draft->modifier_count = 0;
  draft->operand_count = 0;
  draft->guard = KILNI_PTX_GUARD_NONE;
  draft->guard_register = KILNI_PTX_NONE;
  draft->line = start->line;
  draft->column = start->column;
}

bool kilni_image_ptx_instruction(kilni_image_ptx_reader_t* reader,
                                 const kilni_image_ptx_token_t* mnemonic) {
  draft_t draft;
  init_draft(&draft, mnemonic);
  draft.mnemonic = *mnemonic;
  return ptx_instruction_read_rest(reader, &draft);
}

bool kilni_image_ptx_guarded(kilni_image_ptx_reader_t* reader) {
  draft_t draft;
  init_draft(&draft, &reader->token);
  draft.guard = KILNI_PTX_GUARD_TRUE;
  bool negated;
  if (!kilni_image_ptx_next(reader) ||
      !kilni_image_ptx_accept(reader, '!', &negated)) {
    return false;
  }
  if (negated) draft.guard = KILNI_PTX_GUARD_FALSE;
  kilni_image_ptx_token_t at = reader->token;
  uint32_t kind;
  if (at.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a predicate");
  }
  if (!kilni_image_ptx_resolve(reader, at.text, &kind, &draft.guard_register)) {
    return false;
  }
  if (kind != KILNI_PTX_SYMBOL_REGISTER ||
      KILNI_PTX_AT(reader->arena->registers, kilni_image_ptx_register_t,
                   reader->first_register + draft.guard_register)
              ->type != KILNI_PTX_TYPE_PRED) {
    return kilni_image_ptx_fail(
        reader, &at, "guard with a register of type .pred",
        "\"%.*s\" is not a predicate", KILNI_SV(at.text));
  }
  if (!kilni_image_ptx_next(reader)) return false;
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "an instruction");
  }
  draft.mnemonic = reader->token;
  return kilni_image_ptx_next_modifier(reader) &&
         ptx_instruction_read_rest(reader, &draft);
}
