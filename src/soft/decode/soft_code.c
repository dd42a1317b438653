// SPDX-License-Identifier: Apache-2.0
//
// soft: making a module ready to run: its variables in device memory, its
// functions decoded, its kernels listed. Nothing of the tree is kept.
#include "base/status_make.h"
#include "soft/code/soft_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "soft/decode/soft_lower.h"

enum { MAX_THREADS = 1024, PARAM_BYTES_MAX = 32764 };

// The first thing that the engine does not execute. one-thread
typedef struct refusal_t {
  uint32_t count;
  uint32_t line;
  bool undefined;  // it is declared only
  char text[256];
} refusal_t;

static uint64_t code_align_up(uint64_t value, uint64_t align) {
  return align > 1 ? (value + align - 1) & ~(align - 1) : value;
}

// --- Variables ---------------------------------------------------------------

static kiln_status_t code_copy_name(kilni_soft_code_t* code, const char* name,
                                    char** out_name) {
  return kilni_base_strdup(code->host->allocator, kilni_base_sv(name),
                           out_name);
}

static kiln_status_t make_symbol(kilni_soft_code_t* code,
                                 const kilni_image_ptx_variable_t* variable,
                                 kilni_soft_symbol_t* symbol) {
  symbol->space = variable->space;
  symbol->bytes = variable->size_bytes;
  symbol->align = variable->align;
  symbol->is_constant = variable->space == KILNI_PTX_SPACE_CONST;
  symbol->is_dynamic =
      variable->space == KILNI_PTX_SPACE_SHARED &&
      (variable->unsized || variable->linkage == KILNI_PTX_LINKAGE_EXTERN);
  bool in_memory = variable->space == KILNI_PTX_SPACE_GLOBAL ||
                   variable->space == KILNI_PTX_SPACE_CONST;
  if (!in_memory || variable->declared_only) return kiln_ok();
  if (variable->function == KILNI_PTX_NONE) {
    KILNI_RETURN_IF_ERROR(code_copy_name(code, variable->name, &symbol->name));
  }
  uint64_t bytes = symbol->bytes ? symbol->bytes : 1;
  KILNI_RETURN_IF_ERROR(kilni_soft_memory_alloc(
      code->memory, bytes,
      symbol->is_constant ? KILNI_SOFT_ALLOC_CONSTANT : KILNI_SOFT_ALLOC_MODULE,
      &symbol->address));
  uint8_t* host = kilni_soft_memory_host(code->memory, symbol->address, bytes);
  if (!host) return KILNI_FAIL(INTERNAL, "a variable has no memory");
  memset(host, 0, bytes);
  if (variable->bytes && variable->byte_count) {
    memcpy(host, variable->bytes, variable->byte_count);
  }
  return kiln_ok();
}

// The address that an initialiser means; false if it is known only at launch.
static bool relocation_value(const kilni_soft_code_t* code,
                             const kilni_image_ptx_relocation_t* relocation,
                             uint64_t* out_value) {
  if (relocation->kind == KILNI_PTX_RELOC_FUNCTION) {
    *out_value = KILNI_SOFT_FUNCTION_BASE +
                 (uint64_t)relocation->index * KILNI_SOFT_FUNCTION_STRIDE;
  } else {
    *out_value = code->symbols[relocation->index].address;
    if (!*out_value) return false;
  }
  *out_value += (uint64_t)relocation->addend;
  *out_value >>= relocation->shift;
  return true;
}

static kiln_status_t relocate(kilni_soft_code_t* code,
                              const kilni_image_ptx_module_t* module,
                              const kilni_image_ptx_variable_t* variable,
                              const kilni_soft_symbol_t* symbol) {
  for (uint32_t i = 0; i < variable->relocation_count; i++) {
    const kilni_image_ptx_relocation_t* r =
        &module->relocations[variable->first_relocation + i];
    uint64_t value;
    if (!relocation_value(code, r, &value)) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(UNSUPPORTED,
                     "line %u: the initialiser of \"%s\" contains an address "
                     "that is not known when the module is loaded",
                     variable->line, variable->name),
          "store the address from a kernel");
    }
    uint8_t* host = kilni_soft_memory_host(
        code->memory, symbol->address + r->offset, r->size);
    if (!host) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(BAD_DATA, "line %u: the initialiser of \"%s\" is too long",
                     variable->line, variable->name),
          "make the variable as large as its initialiser");
    }
    memcpy(host, &value, r->size);
  }
  return kiln_ok();
}

static kiln_status_t make_symbols(kilni_soft_code_t* code,
                                  const kilni_image_ptx_module_t* module) {
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(code->host->allocator, module->variable_count,
                             sizeof(kilni_soft_symbol_t), &memory));
  code->symbols = memory;
  code->symbol_count = module->variable_count;
  for (uint32_t i = 0; i < module->variable_count; i++) {
    KILNI_RETURN_IF_ERROR(
        make_symbol(code, &module->variables[i], &code->symbols[i]));
  }
  for (uint32_t i = 0; i < module->variable_count; i++) {
    if (!code->symbols[i].address) continue;
    KILNI_RETURN_IF_ERROR(
        relocate(code, module, &module->variables[i], &code->symbols[i]));
  }
  return kiln_ok();
}

// --- Functions ---------------------------------------------------------------

static void note_refusal(refusal_t* refusal, const kilni_soft_lower_t* lower) {
  if (!lower->refused_count) return;
  if (!refusal->count || lower->refused_line < refusal->line) {
    refusal->line = lower->refused_line;
    refusal->undefined = lower->refused_undefined;
    memcpy(refusal->text, lower->refused_text, sizeof(refusal->text));
  }
  refusal->count += lower->refused_count;
}

static kiln_status_t code_decode(kilni_soft_code_t* code,
                                 const kilni_image_ptx_module_t* module,
                                 uint32_t index, const uint32_t* param_offsets,
                                 refusal_t* refusal) {
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(code->host->allocator,
                                         sizeof(kilni_soft_lower_t), &memory));
  kilni_soft_lower_t* lower = memory;
  lower->host = code->host;
  lower->module = module;
  lower->source = &module->functions[index];
  lower->code = code;
  lower->out = &code->functions[index];
  lower->param_offsets = param_offsets;
  kiln_status_t status = kilni_soft_decode_function(lower);
  bool whole = kiln_status_is_ok(status) && !lower->refused_count;
  if (whole) status = kilni_soft_flow(lower);
  if (whole && kiln_status_is_ok(status)) status = kilni_soft_combine(lower);
  if (whole && kiln_status_is_ok(status)) status = kilni_soft_slots(lower);
  if (whole && kiln_status_is_ok(status)) status = kilni_soft_emit(lower);
  note_refusal(refusal, lower);
  kilni_soft_lower_deinit(lower);
  kilni_base_free(code->host->allocator, lower, sizeof(*lower));
  return status;
}

static kiln_status_t code_refused(const refusal_t* refusal) {
  if (!refusal->count) return kiln_ok();
  char more[64] = "";
  if (refusal->count > 1) {
    snprintf(more, sizeof(more), " (and %" PRIu32 " more lines)",
             refusal->count - 1);
  }
  if (refusal->undefined) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "line %" PRIu32 ": %s%s", refusal->line,
                   refusal->text, more),
        "link it with the PTX that defines it: `kiln link FILE OTHER --device "
        "soft -o whole.ptx`");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "line %" PRIu32 ": the software device does not execute: %s%s",
                 refusal->line, refusal->text, more),
      "run it on a GPU; docs/reference/soft-instructions.md lists what the "
      "software device executes");
}

static kiln_status_t make_functions(kilni_soft_code_t* code,
                                    const kilni_image_ptx_module_t* module,
                                    const uint32_t* param_offsets) {
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(code->host->allocator, module->function_count,
                             sizeof(kilni_soft_function_t), &memory));
  code->functions = memory;
  code->function_count = module->function_count;
  refusal_t refusal = {0};
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_image_ptx_function_t* source = &module->functions[i];
    kilni_soft_function_t* function = &code->functions[i];
    function->is_entry = source->is_entry;
    char* name;
    KILNI_RETURN_IF_ERROR(code_copy_name(code, source->name, &name));
    function->name = name;
    if (!source->is_defined) continue;
    KILNI_RETURN_IF_ERROR(
        code_decode(code, module, i, param_offsets, &refusal));
  }
  return code_refused(&refusal);
}

// --- Kernels -----------------------------------------------------------------

// Offsets of all kernels' parameters, by variable.
static kiln_status_t place_params(const kilni_image_ptx_module_t* module,
                                  uint32_t* offsets) {
  for (uint32_t i = 0; i < module->variable_count; i++) {
    offsets[i] = KILNI_SOFT_NONE;
  }
  for (uint32_t f = 0; f < module->function_count; f++) {
    const kilni_image_ptx_function_t* function = &module->functions[f];
    uint64_t at = 0;
    for (uint32_t i = 0; function->is_entry && i < function->parameter_count;
         i++) {
      uint32_t index = function->first_parameter + i;
      const kilni_image_ptx_variable_t* variable = &module->variables[index];
      at = code_align_up(at, variable->align);
      offsets[index] = (uint32_t)at;
      at += variable->size_bytes;
      if (at > PARAM_BYTES_MAX) {
        return kilni_base_status_with_fix(
            KILNI_FAIL(UNSUPPORTED,
                       "line %u: kernel \"%s\" has more than %d bytes of "
                       "parameters",
                       function->line, function->name, PARAM_BYTES_MAX),
            "pass large data through global memory");
      }
    }
  }
  return kiln_ok();
}

// Every block is a cluster by itself: it would read other sizes and ranks of a
// larger one than it is made for.
static kiln_status_t check_cluster(const kilni_image_ptx_function_t* source) {
  const uint32_t* blocks = source->reqnctapercluster;
  if (blocks[0] <= 1 && blocks[1] <= 1 && blocks[2] <= 1) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "line %" PRIu32
                 ": kernel \"%s\" requires clusters of %u,%u,%u; a cluster of "
                 "the software device is one block",
                 source->line, source->name, (unsigned)blocks[0],
                 (unsigned)blocks[1], (unsigned)blocks[2]),
      "run it on a GPU of compute capability 9.0 or newer");
}

static uint32_t thread_limit(const kilni_image_ptx_function_t* source) {
  const uint32_t* dims = source->reqntid[0] ? source->reqntid : source->maxntid;
  if (!dims[0]) return MAX_THREADS;
  uint64_t product = dims[0];
  for (int i = 1; i < 3; i++) {
    if (dims[i]) product *= dims[i];
    if (product > MAX_THREADS) return MAX_THREADS;
  }
  return (uint32_t)product;
}

static void code_fill_params(kilni_soft_code_t* code,
                             const kilni_image_ptx_module_t* module,
                             const kilni_image_ptx_function_t* source,
                             const uint32_t* offsets,
                             kilni_soft_entry_t* entry) {
  entry->params = &code->params[code->param_count];
  entry->param_count = source->parameter_count;
  for (uint32_t i = 0; i < source->parameter_count; i++) {
    uint32_t index = source->first_parameter + i;
    const kilni_image_ptx_variable_t* variable = &module->variables[index];
    code->params[code->param_count++] = (kilni_soft_param_t){
        .offset = offsets[index],
        .bytes = (uint32_t)variable->size_bytes,
        .align = variable->align,
        .is_float = variable->dimension_count == 0 &&
                    kilni_image_ptx_type_class(variable->type) ==
                        KILNI_PTX_CLASS_FLOAT};
    entry->param_bytes = offsets[index] + (uint32_t)variable->size_bytes;
  }
}

static kiln_status_t shared_of(kilni_soft_code_t* code,
                               kilni_soft_entry_t* entry) {
  kiln_allocator_t allocator = code->host->allocator;
  void* reached;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, code->function_count,
                                               sizeof(void*), &reached));
  void* offsets;
  kiln_status_t status = kilni_base_alloc_array(allocator, code->symbol_count,
                                                sizeof(uint32_t), &offsets);
  if (kiln_status_is_ok(status)) {
    kilni_soft_reach(code, entry->function, reached);
    entry->static_shared_bytes =
        kilni_soft_shared_bytes(code, reached, offsets);
    kilni_base_free_array(allocator, offsets, code->symbol_count,
                          sizeof(uint32_t));
  }
  kilni_base_free_array(allocator, reached, code->function_count,
                        sizeof(void*));
  return status;
}

static kiln_status_t make_entries(kilni_soft_code_t* code,
                                  const kilni_image_ptx_module_t* module,
                                  const uint32_t* offsets) {
  void* memory;
  kiln_allocator_t allocator = code->host->allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, code->function_count, sizeof(kilni_soft_entry_t), &memory));
  code->entries = memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, code->symbol_count, sizeof(kilni_soft_param_t), &memory));
  code->params = memory;
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_image_ptx_function_t* source = &module->functions[i];
    if (!source->is_entry || !source->is_defined) continue;
    kilni_soft_entry_t* entry = &code->entries[code->entry_count++];
    const kilni_soft_function_t* function = &code->functions[i];
    entry->name = function->name;
    entry->code = code;
    entry->function = i;
    entry->line = source->line;
    entry->local_bytes = function->local_bytes;
    entry->register_count = function->register_count;
    entry->max_threads = thread_limit(source);
    entry->cluster = source->reqnctapercluster[0];
    entry->explicit_cluster = source->explicit_cluster;
    KILNI_RETURN_IF_ERROR(check_cluster(source));
    memcpy(entry->required_block, source->reqntid,
           sizeof(entry->required_block));
    code_fill_params(code, module, source, offsets, entry);
    KILNI_RETURN_IF_ERROR(shared_of(code, entry));
  }
  return kiln_ok();
}

// --- The module --------------------------------------------------------------

static kiln_status_t code_make_all(kilni_soft_code_t* code,
                                   const kilni_image_ptx_module_t* module) {
  if (module->address_size != 64) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "the module has %u-bit addresses",
                   module->address_size),
        "compile it with `.address_size 64`");
  }
  kiln_allocator_t allocator = code->host->allocator;
  void* offsets;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, module->variable_count, sizeof(uint32_t), &offsets));
  kiln_status_t status = place_params(module, offsets);
  if (kiln_status_is_ok(status)) status = make_symbols(code, module);
  if (kiln_status_is_ok(status)) {
    status = make_functions(code, module, offsets);
  }
  if (kiln_status_is_ok(status)) status = make_entries(code, module, offsets);
  if (kiln_status_is_ok(status)) status = kilni_soft_lines_make(code, module);
  kilni_base_free_array(allocator, offsets, module->variable_count,
                        sizeof(uint32_t));
  return status;
}

kiln_status_t kilni_soft_code_create(const kiln_host_t* host,
                                     const kilni_image_ptx_module_t* module,
                                     const kilni_soft_lane_set_t* lanes,
                                     kilni_soft_memory_t* memory,
                                     kilni_soft_code_t** out_code) {
  *out_code = NULL;
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(kilni_soft_code_t), &block));
  kilni_soft_code_t* code = block;
  code->host = host;
  code->memory = memory;
  code->lanes = lanes;
  kiln_status_t status = code_make_all(code, module);
  if (!kiln_status_is_ok(status)) {
    kilni_soft_code_destroy(code);
    return status;
  }
  *out_code = code;
  return kiln_ok();
}

void kilni_soft_code_destroy(kilni_soft_code_t* code) {
  if (!code) return;
  kiln_allocator_t allocator = code->host->allocator;
  for (uint32_t i = 0; code->symbols && i < code->symbol_count; i++) {
    kilni_soft_symbol_t* symbol = &code->symbols[i];
    kilni_base_strfree(allocator, symbol->name);
    if (!symbol->address) continue;
    kiln_status_free(kilni_soft_memory_free(code->memory, symbol->address,
                                            symbol->is_constant
                                                ? KILNI_SOFT_ALLOC_CONSTANT
                                                : KILNI_SOFT_ALLOC_MODULE));
  }
  for (uint32_t i = 0; code->functions && i < code->function_count; i++) {
    kilni_soft_function_deinit(allocator, &code->functions[i]);
    kilni_base_strfree(allocator, (char*)(uintptr_t)code->functions[i].name);
  }
  kilni_base_free_array(allocator, code->params, code->symbol_count,
                        sizeof(*code->params));
  kilni_base_free_array(allocator, code->entries, code->function_count,
                        sizeof(*code->entries));
  kilni_base_free_array(allocator, code->functions, code->function_count,
                        sizeof(*code->functions));
  kilni_base_free_array(allocator, code->symbols, code->symbol_count,
                        sizeof(*code->symbols));
  kilni_soft_lines_free(code);
  kilni_base_free(allocator, code, sizeof(*code));
}

uint32_t kilni_soft_code_entry_count(const kilni_soft_code_t* code) {
  return code->entry_count;
}

const kilni_soft_entry_t* kilni_soft_code_entry(const kilni_soft_code_t* code,
                                                uint32_t index) {
  return index < code->entry_count ? &code->entries[index] : NULL;
}

const kilni_soft_entry_t* kilni_soft_code_find(const kilni_soft_code_t* code,
                                               const char* name) {
  for (uint32_t i = 0; i < code->entry_count; i++) {
    if (strcmp(code->entries[i].name, name) == 0) return &code->entries[i];
  }
  return NULL;
}

bool kilni_soft_code_global(const kilni_soft_code_t* code, const char* name,
                            uint64_t* out_address, uint64_t* out_bytes) {
  *out_address = 0;
  *out_bytes = 0;
  for (uint32_t i = 0; i < code->symbol_count; i++) {
    const kilni_soft_symbol_t* symbol = &code->symbols[i];
    if (!symbol->name || strcmp(symbol->name, name) != 0) continue;
    *out_address = symbol->address;
    *out_bytes = symbol->bytes;
    return true;
  }
  return false;
}
