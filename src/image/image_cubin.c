// SPDX-License-Identifier: Apache-2.0
//
// image: a cubin, linked or not: an ELF file for a GPU.
//
// Each kernel's code is a section ".text.NAME"; the sections with its
// attributes, shared memory and constants name that section by number.
#include "base/alloc.h"
#include "base/status_make.h"
#include "image/image_cubin.h"
#include "kiln/image.h"
#include "kiln/status.h"

#include <string.h>

enum {
  TYPE_PROGBITS = 1,
  TYPE_RELA = 4,
  TYPE_REL = 9,
  TYPE_SYMTAB_INDEXES = 18,
  TYPE_INFO = 0x70000000,
  TYPE_COMPAT = 0x70000086,

  SYMBOL_OBJECT = 1,
  SYMBOL_FUNCTION = 2,
  SYMBOL_CUDA_OBJECT = 13,
  BINDING_LOCAL = 0,
  BINDING_WEAK = 2,
  SECTION_UNDEFINED = 0,
  SECTION_ELSEWHERE = 0xffff,

  OTHER_ENTRY = 0x10,
  OTHER_SPACE = 0xe0,
  OTHER_CONSTANT = 0x80,
  OTHER_GLOBAL = 0x20,

  // From sm_90 on, the system takes this of the shared memory of a block.
  RESERVED_SHARED = 1024,
  RESERVED_SHARED_SM = 90,
};

static bool begins(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

uint32_t kilni_image_cubin_section_of(const kilni_image_cubin_t* cubin,
                                      uint32_t index) {
  uint64_t at = (uint64_t)index * KILNI_IMAGE_SYMBOL_BYTES;
  uint32_t section = kilni_image_u16(cubin->symtab.entries.data + at + 6);
  if (section == SECTION_ELSEWHERE &&
      kilni_image_part_has(&cubin->indexes, (uint64_t)index * 4, 4)) {
    section = kilni_image_u32(cubin->indexes.data + (uint64_t)index * 4);
  }
  return section;
}

// ---------------------------------------------------------------------------
// Sections, before the member is added
// ---------------------------------------------------------------------------

bool kilni_image_cubin_has_bytes(uint32_t type) {
  return type == TYPE_PROGBITS || type == TYPE_RELA || type == TYPE_REL ||
         type == TYPE_INFO || type == TYPE_COMPAT ||
         type == KILNI_IMAGE_SECTION_SYMTAB ||
         type == KILNI_IMAGE_SECTION_STRTAB || type == KILNI_IMAGE_SECTION_NOTE;
}

static void note_debug(kilni_image_cubin_t* cubin, const char* name) {
  if (strcmp(name, ".debug_info") == 0) cubin->debug |= KILN_IMAGE_DEBUG_FULL;
  if (strcmp(name, ".debug_line") == 0 ||
      strcmp(name, ".nv_debug_line_sass") == 0) {
    cubin->debug |= KILN_IMAGE_DEBUG_LINES;
  }
}

// ".version 9.0" at the beginning of the PTX that debuggers are given.
static void note_ptx(kilni_image_cubin_t* cubin,
                     const kilni_image_part_t* part) {
  static const char kWord[] = ".version ";
  uint64_t end = part->size < 4096 ? part->size : 4096;
  for (uint64_t i = 0; i + sizeof(kWord) + 2 < end; i++) {
    if (memcmp(part->data + i, kWord, sizeof(kWord) - 1) != 0) continue;
    const uint8_t* at = part->data + i + sizeof(kWord) - 1;
    if (at[0] >= '1' && at[0] <= '9' && at[1] == '.' && at[2] >= '0' &&
        at[2] <= '9') {
      cubin->ptx_version =
          (uint32_t)(at[0] - '0') * 1000 + (uint32_t)(at[2] - '0') * 10;
    }
    return;
  }
}

static kiln_status_t cubin_look_at(kilni_image_cubin_t* cubin,
                                   const kilni_image_section_t* section) {
  const char* name = section->name;
  kilni_image_part_t part = {0};
  if (kilni_image_cubin_has_bytes(section->type)) {
    KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&cubin->elf, section, &part));
  }
  note_debug(cubin, name);
  if (strcmp(name, ".nv.shared.reserved.0") == 0) cubin->reserves_shared = 1;
  if (begins(name, ".nv.global")) cubin->global_bytes += section->size;
  if (begins(name, ".nv.constant") && strchr(name + 12, '.') == NULL) {
    cubin->constant_bytes += section->size;
  }
  if (section->type == TYPE_INFO && begins(name, ".nv.info.") &&
      section->info < cubin->elf.count) {
    cubin->codes[section->info].info = section->index;
  }
  if (section->type == TYPE_COMPAT && strcmp(name, ".nv.compat") == 0) {
    return kilni_image_cubin_read_compat(cubin, &part);
  }
  if (section->type == KILNI_IMAGE_SECTION_NOTE) {
    return kilni_image_cubin_read_notes(cubin, &part);
  }
  if (section->type == KILNI_IMAGE_SECTION_SYMTAB &&
      strcmp(name, ".symtab") == 0) {
    return kilni_image_elf_symtab(&cubin->elf, section, &cubin->symtab);
  }
  if (section->type == TYPE_SYMTAB_INDEXES) {
    return kilni_image_elf_bytes(&cubin->elf, section, &cubin->indexes);
  }
  if (section->type == TYPE_PROGBITS &&
      strcmp(name, ".nv_debug_ptx_txt") == 0) {
    note_ptx(cubin, &part);
  }
  return kiln_ok();
}

// ---------------------------------------------------------------------------
// Symbols
// ---------------------------------------------------------------------------

static kiln_status_t cubin_add_kernel(kilni_image_cubin_t* cubin,
                                      uint32_t index,
                                      const kilni_image_elf_symbol_t* symbol) {
  kilni_image_cubin_code_t* code = &cubin->codes[symbol->section];
  kilni_image_part_t info = {0};
  uint32_t params = 0;
  if (code->info != 0) {
    kilni_image_section_t section;
    KILNI_RETURN_IF_ERROR(
        kilni_image_elf_section(&cubin->elf, code->info, &section));
    KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&cubin->elf, &section, &info));
    KILNI_RETURN_IF_ERROR(kilni_image_cubin_count_params(&info, &params));
  }
  kilni_image_section_t text;
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_section(&cubin->elf, symbol->section, &text));
  kilni_image_row_t* row = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_add_kernel(
      cubin->image, symbol->name, strlen(symbol->name), params, &row));
  code->row = (uint32_t)cubin->image->row_count;
  code->symbol = index;
  row->shown.code_bytes =
      text.size < UINT32_MAX ? (uint32_t)text.size : UINT32_MAX - 1;
  row->shown.registers = text.info >> 24;
  row->shown.reserved_shared_bytes = 0;
  row->shown.barriers = 0;
  if (code->info == 0) return kiln_ok();
  return kilni_image_cubin_read_kernel(cubin, &info, row);
}

// What kind of symbol it is; 0 for one that no user wrote.
static uint32_t cubin_kind_of(const kilni_image_cubin_t* cubin,
                              const kilni_image_elf_symbol_t* symbol,
                              const char* section) {
  bool undefined = symbol->section == SECTION_UNDEFINED;
  if (symbol->name[0] == 0 || symbol->name[0] == '$' ||
      (undefined && symbol->binding == BINDING_WEAK)) {
    return 0;
  }
  if (symbol->type == SYMBOL_FUNCTION) {
    bool linked = cubin->elf.type != KILNI_IMAGE_ELF_REL;
    if (!undefined && (symbol->binding == BINDING_LOCAL || linked)) return 0;
    return KILN_IMAGE_SYMBOL_FUNCTION;
  }
  if (symbol->type != SYMBOL_OBJECT && symbol->type != SYMBOL_CUDA_OBJECT) {
    return 0;
  }
  if (begins(section, ".nv.global")) return KILN_IMAGE_SYMBOL_VARIABLE;
  if (begins(section, ".nv.constant")) return KILN_IMAGE_SYMBOL_CONSTANT;
  if (!undefined) return 0;
  if ((symbol->other & OTHER_SPACE) == OTHER_CONSTANT) {
    return KILN_IMAGE_SYMBOL_CONSTANT;
  }
  if ((symbol->other & OTHER_SPACE) == OTHER_GLOBAL) {
    return KILN_IMAGE_SYMBOL_VARIABLE;
  }
  return 0;
}

static kiln_status_t add_symbol(kilni_image_cubin_t* cubin, uint32_t index) {
  kilni_image_elf_symbol_t symbol;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_symbol(&cubin->symtab, index, &symbol));
  symbol.section = kilni_image_cubin_section_of(cubin, index);
  // What nvJitLink makes has this symbol where others have the section.
  if (begins(symbol.name, ".nv.reservedSmem.")) cubin->reserves_shared = 1;
  kilni_image_section_t section = {0};
  section.name = "";
  bool inside =
      symbol.section != SECTION_UNDEFINED && symbol.section < cubin->elf.count;
  if (inside) {
    KILNI_RETURN_IF_ERROR(
        kilni_image_elf_section(&cubin->elf, symbol.section, &section));
  }
  if (symbol.type == SYMBOL_FUNCTION && (symbol.other & OTHER_ENTRY)) {
    if (!inside || cubin->codes[symbol.section].row != 0) return kiln_ok();
    return cubin_add_kernel(cubin, index, &symbol);
  }
  kiln_image_symbol_t shown = {0};
  shown.kind = cubin_kind_of(cubin, &symbol, section.name);
  if (shown.kind == 0) return kiln_ok();
  shown.bytes = symbol.size;
  shown.defined = symbol.section != SECTION_UNDEFINED;
  shown.exported = symbol.binding != BINDING_LOCAL;
  return kilni_image_add_symbol(cubin->image, symbol.name, strlen(symbol.name),
                                shown);
}

// ---------------------------------------------------------------------------
// Sections, once the kernels are known
// ---------------------------------------------------------------------------

static void set_shared(const kilni_image_cubin_t* cubin, uint64_t size,
                       kiln_image_kernel_t* kernel) {
  if (cubin->elf.type != KILNI_IMAGE_ELF_REL && cubin->reserves_shared &&
      cubin->sm >= RESERVED_SHARED_SM && size >= RESERVED_SHARED) {
    size -= RESERVED_SHARED;
    kernel->reserved_shared_bytes = RESERVED_SHARED;
  }
  kernel->static_shared_bytes = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static kiln_status_t cubin_complete(kilni_image_cubin_t* cubin,
                                    const kilni_image_section_t* section) {
  if (section->type == TYPE_INFO && strcmp(section->name, ".nv.info") == 0) {
    kilni_image_part_t part;
    KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&cubin->elf, section, &part));
    return kilni_image_cubin_read_file(cubin, &part);
  }
  if (section->info >= cubin->elf.count ||
      cubin->codes[section->info].row == 0) {
    return kiln_ok();
  }
  kiln_image_kernel_t* kernel =
      &cubin->image->rows[cubin->codes[section->info].row - 1].shown;
  if (begins(section->name, ".nv.shared.")) {
    set_shared(cubin, section->size, kernel);
  }
  if (begins(section->name, ".nv.constant0.")) {
    kernel->parameter_bank_bytes =
        section->size < UINT32_MAX ? (uint32_t)section->size : UINT32_MAX - 1;
  }
  return kiln_ok();
}

// ---------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------

typedef kiln_status_t (*section_fn_t)(kilni_image_cubin_t* cubin,
                                      const kilni_image_section_t* section);

static kiln_status_t each_section(kilni_image_cubin_t* cubin, section_fn_t fn) {
  for (uint32_t i = 1; i < cubin->elf.count; i++) {
    kilni_image_section_t section;
    KILNI_RETURN_IF_ERROR(kilni_image_elf_section(&cubin->elf, i, &section));
    KILNI_RETURN_IF_ERROR(fn(cubin, &section));
  }
  return kiln_ok();
}

static kiln_status_t cubin_add_member(kilni_image_cubin_t* cubin,
                                      const kilni_image_about_t* about) {
  bool linked = cubin->elf.type != KILNI_IMAGE_ELF_REL;
  kiln_image_member_t* member = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_add_member(
      cubin->image, &cubin->elf.part, about,
      linked ? KILN_CODE_FORMAT_CUBIN : KILN_CODE_FORMAT_RELOCATABLE, &member));
  kilni_image_cubin_settle_target(cubin);
  char suffix = cubin->suffix;
  if (suffix == 0 && about->target == cubin->sm) suffix = about->suffix;
  if (cubin->sm != 0) {
    KILNI_RETURN_IF_ERROR(kilni_image_target_text(
        cubin->image, "sm_", cubin->sm, suffix, &member->target));
  }
  member->producer = cubin->producer;
  if (cubin->options[0] != 0) member->options = cubin->options;
  member->producer_line = cubin->line;
  member->debug |= cubin->debug;
  member->ptx_version = cubin->ptx_version;
  member->global_bytes = cubin->global_bytes;
  member->constant_bytes = cubin->constant_bytes;
  cubin->box = (uint32_t)(cubin->image->box_count - 1);
  return kiln_ok();
}

static kiln_status_t read_cubin(kilni_image_cubin_t* cubin,
                                const kilni_image_about_t* about) {
  kilni_image_cubin_read_header(cubin);
  KILNI_RETURN_IF_ERROR(each_section(cubin, cubin_look_at));
  KILNI_RETURN_IF_ERROR(cubin_add_member(cubin, about));
  if (cubin->image->producers_only && cubin->line != 0) return kiln_ok();
  for (uint64_t i = 1; i < cubin->symtab.count; i++) {
    KILNI_RETURN_IF_ERROR(add_symbol(cubin, (uint32_t)i));
  }
  KILNI_RETURN_IF_ERROR(each_section(cubin, cubin_complete));
  // Only a kernel's own attributes may identify the toolkit.
  cubin->image->boxes[cubin->box].shown.producer_line = cubin->line;
  return kiln_ok();
}

kiln_status_t kilni_image_read_cubin(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about) {
  kilni_image_cubin_t cubin;
  memset(&cubin, 0, sizeof(cubin));
  cubin.image = image;
  cubin.producer = "";
  cubin.options = "";
  KILNI_RETURN_IF_ERROR(kilni_image_elf_open(part, &cubin.elf));
  void* codes = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      image->allocator, cubin.elf.count, sizeof(*cubin.codes), &codes));
  cubin.codes = codes;
  kiln_status_t status = read_cubin(&cubin, about);
  kilni_base_free_array(image->allocator, codes, cubin.elf.count,
                        sizeof(*cubin.codes));
  return status;
}
