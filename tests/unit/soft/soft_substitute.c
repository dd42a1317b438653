// SPDX-License-Identifier: Apache-2.0
//
// soft: an engine whose kernels are C functions.
#include "soft_substitute.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/engine/soft_grid.h"

#define BODY "{ ret; }\n"

const char* const soft_substitute_ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".global .align 4 .u32 word;\n"
    ".visible .entry put(.param .u64 p, .param .u32 v)\n" BODY
    ".visible .entry add(.param .u64 p, .param .u32 v)\n" BODY
    ".visible .entry append(.param .u64 p, .param .u32 v)\n" BODY
    ".visible .entry wait(.param .u64 p)\n" BODY ".visible .entry bad()\n" BODY
    ".visible .entry stop()\n" BODY ".visible .entry spin()\n" BODY
    ".visible .entry narrow() .maxntid 64, 1, 1\n" BODY;

enum { ENTRIES_MOST = 16, PARAMS_MOST = 4 };

struct kilni_soft_code_t {
  kiln_allocator_t allocator;
  kilni_soft_memory_t* memory;
  uint64_t word;
  uint32_t count;
  kilni_soft_entry_t entries[ENTRIES_MOST];
  kilni_soft_param_t params[ENTRIES_MOST][PARAMS_MOST];
};

static void read_entry(kilni_soft_code_t* code,
                       const kilni_image_ptx_module_t* module,
                       const kilni_image_ptx_function_t* function) {
  uint32_t at = code->count++;
  kilni_soft_entry_t* entry = &code->entries[at];
  *entry = (kilni_soft_entry_t){.name = function->name,
                                .code = code,
                                .params = code->params[at],
                                .max_threads = 1024,
                                .register_count = 16,
                                .line = function->line};
  if (function->maxntid[0] != 0) entry->max_threads = function->maxntid[0];
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    const kilni_image_ptx_variable_t* v =
        &module->variables[function->first_parameter + i];
    uint32_t bytes = kilni_image_ptx_type_bytes(v->type);
    uint32_t offset = (entry->param_bytes + bytes - 1) / bytes * bytes;
    code->params[at][i] = (kilni_soft_param_t){offset, bytes, bytes, 0};
    entry->param_bytes = offset + bytes;
    entry->param_count++;
  }
}

kiln_status_t kilni_soft_code_create(const kiln_host_t* host,
                                     const kilni_image_ptx_module_t* module,
                                     const kilni_soft_lane_set_t* lanes,
                                     kilni_soft_memory_t* memory,
                                     kilni_soft_code_t** out_code) {
  (void)lanes;
  *out_code = NULL;
  kilni_soft_code_t* code;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(*code), (void**)&code));
  code->allocator = host->allocator;
  code->memory = memory;
  kiln_status_t status =
      kilni_soft_memory_alloc(memory, 4, KILNI_SOFT_ALLOC_MODULE, &code->word);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(host->allocator, code, sizeof(*code));
    return status;
  }
  for (uint32_t i = 0; i < module->function_count; i++) {
    if (module->functions[i].is_entry && code->count < ENTRIES_MOST) {
      read_entry(code, module, &module->functions[i]);
    }
  }
  *out_code = code;
  return kiln_ok();
}

void kilni_soft_code_destroy(kilni_soft_code_t* code) {
  if (code == NULL) return;
  kiln_status_free(kilni_soft_memory_free(code->memory, code->word,
                                          KILNI_SOFT_ALLOC_MODULE));
  kilni_base_free(code->allocator, code, sizeof(*code));
}

uint32_t kilni_soft_code_entry_count(const kilni_soft_code_t* code) {
  return code->count;
}

const kilni_soft_entry_t* kilni_soft_code_entry(const kilni_soft_code_t* code,
                                                uint32_t index) {
  return &code->entries[index];
}

const kilni_soft_entry_t* kilni_soft_code_find(const kilni_soft_code_t* code,
                                               const char* name) {
  for (uint32_t i = 0; i < code->count; i++) {
    if (strcmp(code->entries[i].name, name) == 0) return &code->entries[i];
  }
  return NULL;
}

bool kilni_soft_code_global(const kilni_soft_code_t* code, const char* name,
                            uint64_t* out_address, uint64_t* out_bytes) {
  if (strcmp(name, "word") != 0) return false;
  *out_address = code->word;
  *out_bytes = 4;
  return true;
}

// ---- Running ----

struct kilni_soft_grid_t {
  kiln_allocator_t allocator;
  kilni_soft_memory_t* memory;
  kilni_soft_launch_t launch;
  uint8_t params[64];
  atomic_bool taken;
  atomic_bool cancelled;
  kilni_soft_fault_t fault;
  uint64_t executed;
};

kiln_status_t kilni_soft_grid_create(const kiln_host_t* host,
                                     kilni_soft_memory_t* memory,
                                     const kilni_soft_launch_t* launch,
                                     kilni_soft_grid_t** out_grid) {
  *out_grid = NULL;
  kilni_soft_grid_t* grid;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(*grid), (void**)&grid));
  grid->allocator = host->allocator;
  grid->memory = memory;
  grid->launch = *launch;
  memcpy(grid->params, launch->params, launch->entry->param_bytes);
  *out_grid = grid;
  return kiln_ok();
}

kiln_status_t kilni_soft_grid_forbid(kilni_soft_grid_t* grid,
                                     const kilni_soft_freed_t* list,
                                     size_t count) {
  (void)grid;
  (void)list;
  (void)count;
  return kiln_ok();
}

void kilni_soft_grid_destroy(kilni_soft_grid_t* grid) {
  if (grid != NULL) kilni_base_free(grid->allocator, grid, sizeof(*grid));
}

static void fail(kilni_soft_grid_t* grid, kilni_soft_fault_kind_t kind) {
  grid->fault.kind = kind;
  grid->fault.what = KILN_FAULT_HOST_MEMORY;
  snprintf(grid->fault.detail, sizeof(grid->fault.detail),
           "kernel \"%s\" failed", grid->launch.entry->name);
}

static void spin(kilni_soft_grid_t* grid, const _Atomic uint32_t* flag) {
  while (!atomic_load(&grid->cancelled)) {
    if (flag != NULL && atomic_load(flag) != 0) return;
    sched_yield();
  }
  fail(grid, KILNI_SOFT_FAULT_CANCELLED);
}

static void run(kilni_soft_grid_t* grid) {
  const char* name = grid->launch.entry->name;
  uint64_t address = 0;
  uint32_t value = 0;
  memcpy(&address, grid->params, sizeof(address));
  memcpy(&value, grid->params + sizeof(address), sizeof(value));
  if (strcmp(name, "bad") == 0) {
    fail(grid, KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
    return;
  }
  if (strcmp(name, "stop") == 0) {
    fail(grid, KILNI_SOFT_FAULT_TRAP);
    return;
  }
  if (strcmp(name, "spin") == 0) {
    spin(grid, NULL);
    return;
  }
  if (grid->launch.entry->param_count == 0) return;
  uint32_t* word = kilni_soft_memory_host(grid->memory, address, sizeof(*word));
  if (word == NULL) {
    fail(grid, KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
  } else if (strcmp(name, "put") == 0) {
    atomic_store((_Atomic uint32_t*)word, value);
  } else if (strcmp(name, "add") == 0) {
    *word += value;
  } else if (strcmp(name, "append") == 0) {
    word[++word[0]] = value;
  } else if (strcmp(name, "wait") == 0) {
    spin(grid, (const _Atomic uint32_t*)word);
  }
}

void kilni_soft_grid_work(kilni_soft_grid_t* grid) {
  if (atomic_exchange(&grid->taken, true)) return;
  run(grid);
  grid->executed = (uint64_t)grid->launch.block[0] * grid->launch.grid[0];
}

uint64_t kilni_soft_grid_space(const kilni_soft_grid_t* grid, uint64_t inside) {
  (void)grid;
  (void)inside;
  return 0;
}

bool kilni_soft_grid_wants_work(kilni_soft_grid_t* grid) {
  return !atomic_load(&grid->taken);
}

void kilni_soft_grid_cancel(kilni_soft_grid_t* grid) {
  atomic_store(&grid->cancelled, true);
}

void kilni_soft_fault_tell(const kilni_soft_fault_t* fault,
                           kiln_fault_t* out_fault) {
  out_fault->kind = fault->what;
  memcpy(out_fault->detail, fault->detail, sizeof(fault->detail));
}

const kilni_soft_fault_t* kilni_soft_grid_fault(const kilni_soft_grid_t* grid) {
  return &grid->fault;
}

const kilni_soft_profile_t* kilni_soft_grid_profile(
    const kilni_soft_grid_t* grid) {
  (void)grid;
  return NULL;
}

uint64_t kilni_soft_grid_executed(const kilni_soft_grid_t* grid) {
  return grid->executed;
}

// ---- Lanes: none, by any of the names that exist ----

const kilni_soft_lane_set_t* kilni_soft_lanes_choose(const char* name) {
  static const kilni_soft_lane_set_t none = {.name = "plain"};
  bool known = strcmp(name, "auto") == 0 || strcmp(name, "plain") == 0;
  return known ? &none : NULL;
}
