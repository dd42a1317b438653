// SPDX-License-Identifier: Apache-2.0
//
// soft: the lines of the source that a module's PTX comes from, for reports.
//
// A table by lines of the PTX, which is not read before a kernel faults:
// decoded instructions have only their line of the PTX.
#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "soft/code/soft_code_inside.h"

static uint32_t find_file(const kilni_image_ptx_module_t* module,
                          uint32_t number) {
  for (uint32_t i = 0; i < module->file_count; i++) {
    if (module->files[i].number == number) return i;
  }
  return KILNI_SOFT_NONE;
}

static kilni_soft_line_t lines_line_of(
    const kilni_image_ptx_module_t* module,
    const kilni_image_ptx_instruction_t* instruction) {
  kilni_soft_line_t line = {instruction->line, KILNI_SOFT_NONE, 0,
                            KILNI_SOFT_NONE, 0};
  if (instruction->location == KILNI_PTX_NONE) return line;
  const kilni_image_ptx_location_t* location =
      &module->locations[instruction->location];
  if (location->line == 0) return line;
  line.file = find_file(module, location->file);
  line.line = location->line;
  if (location->inlined_line == 0) return line;
  line.call_file = find_file(module, location->inlined_file);
  line.call_line = location->inlined_line;
  return line;
}

static bool changes(const kilni_image_ptx_module_t* module, uint32_t at) {
  return at == 0 || module->instructions[at].location !=
                        module->instructions[at - 1].location;
}

static kiln_status_t copy_files(kilni_soft_code_t* code,
                                const kilni_image_ptx_module_t* module) {
  kiln_allocator_t allocator = code->host->allocator;
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, module->file_count,
                                               sizeof(char*), &memory));
  code->files = memory;
  code->file_count = module->file_count;
  for (uint32_t i = 0; i < module->file_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        allocator, kilni_base_sv(module->files[i].name), &code->files[i]));
  }
  return kiln_ok();
}

kiln_status_t kilni_soft_lines_make(kilni_soft_code_t* code,
                                    const kilni_image_ptx_module_t* module) {
  if (module->location_count == 0 || module->file_count == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(copy_files(code, module));
  uint32_t count = 0;
  for (uint32_t i = 0; i < module->instruction_count; i++) {
    count += changes(module, i);
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(code->host->allocator, count,
                                               sizeof(*code->lines), &memory));
  code->lines = memory;
  code->line_count = count;
  uint32_t at = 0;
  for (uint32_t i = 0; i < module->instruction_count; i++) {
    if (!changes(module, i)) continue;
    code->lines[at++] = lines_line_of(module, &module->instructions[i]);
  }
  return kiln_ok();
}

void kilni_soft_lines_free(kilni_soft_code_t* code) {
  kiln_allocator_t allocator = code->host->allocator;
  for (uint32_t i = 0; i < code->file_count; i++) {
    kilni_base_strfree(allocator, code->files[i]);
  }
  kilni_base_free_array(allocator, code->files, code->file_count,
                        sizeof(char*));
  kilni_base_free_array(allocator, code->lines, code->line_count,
                        sizeof(*code->lines));
}

const kilni_soft_line_t* kilni_soft_lines_find(const kilni_soft_code_t* code,
                                               uint32_t ptx_line) {
  uint32_t low = 0;
  uint32_t high = code->line_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (code->lines[middle].ptx_line <= ptx_line) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || code->lines[low - 1].file == KILNI_SOFT_NONE) return NULL;
  return &code->lines[low - 1];
}
