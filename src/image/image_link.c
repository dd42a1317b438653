// SPDX-License-Identifier: Apache-2.0
//
// image: whether a linker can be given a file, and which names it defines.
//
// NVIDIA's linkers trust every index and size of a cubin that is not linked
// yet: a wrong one is a crash, or a result in which code is missing. So all of
// them are checked first, in one pass. Unknown data is not an error: newer
// tools have sections and attributes of their own.
//
// Many wrong values do no harm, depending on where they are and on the linker.
// Where a crash is harmless (the linker has a process of its own) they are
// tolerated: the linker decides, and the names that an input defines must be in
// its result. Damage that hides names, or makes a linker write endlessly, is an
// error everywhere.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "image/image.h"
#include "image/image_cubin.h"
#include "image/image_elf.h"
#include "kiln/api.h"
#include "kiln/image.h"
#include "kiln/status.h"

enum {
  ELF_TYPE_LAST = 4,
  ELF_TYPE_OWN = 0xfe00,
  SECTION_HEADER_BYTES = 64,
  TYPE_PROGBITS = 1,
  TYPE_RELA = 4,
  TYPE_REL = 9,
  TYPE_SYMTAB_INDEXES = 18,
  TYPE_INFO = 0x70000000,
  TYPE_OF_MACHINE = 0x70000000,  // NVIDIA's own
  TYPE_OF_MACHINE_LAST = 0x7fffffff,
  TYPE_CALLGRAPH = 0x70000001,
  TYPE_PROTOTYPE = 0x70000002,
  TYPE_GLOBAL_INIT = 0x70000008,
  TYPE_CONSTANT = 0x70000064,       // of bank 0; those of others follow
  TYPE_CONSTANT_LAST = 0x7000007f,  //
  FLAG_INFO_LINK = 0x40,
  FLAG_ALLOC = 0x2,
  FLAG_EXECUTABLE = 0x4,
  KIND_GAP = 0x1000,  // kinds of relocations
  KIND_AGAIN = 0x10000,
  KIND_END = 0x11000,
  RELA_BYTES = 24,
  REL_BYTES = 16,
  CALL_BYTES = 8,
  PROTOTYPE_BYTES = 8,
  SEGMENT_HEADER_BYTES = 56,

  SECTION_UNDEFINED = 0,
  SECTION_RESERVED = 0xff00,
  SECTION_ABSOLUTE = 0xfff1,
  SECTION_COMMON = 0xfff2,
  SECTION_ELSEWHERE = 0xffff,

  SYMBOL_OBJECT = 1,
  SYMBOL_FUNCTION = 2,
  SYMBOL_SECTION = 3,
  SYMBOL_CUDA_OBJECT = 13,
  BINDING_LOCAL = 0,
  BINDING_GLOBAL = 1,
  OTHER_ENTRY = 0x10,
};

// Of a section in memory: no compiler asks for more than a few kilobytes.
#define MAX_ALIGN ((uint32_t)1 << 20)

// A call graph's marks, which are not symbols, count down from 2^32 - 1.
#define CALL_MARKS 0xffffff00u
// After this one, up to the next, the second number of a pair is not a symbol
// but the place of the text of the first one's type: its address is taken here.
#define CALL_MARK_TYPES 0xfffffffeu

// A cubin while it is checked. one-thread
typedef struct checked_t {
  const kilni_image_link_visit_t* visit;
  kilni_image_elf_t elf;
  kilni_image_symtab_t symtab;
  kilni_image_part_t indexes;  // sections of symbols beyond 16 bits
  uint32_t symtab_index;
  bool is_linked;
} checked_t;

static uint64_t link_header_at(const checked_t* checked, uint32_t index) {
  return checked->elf.table + (uint64_t)index * checked->elf.stride;
}

static kiln_status_t bad_section(const checked_t* checked,
                                 const kilni_image_section_t* section,
                                 const char* what, uint64_t number) {
  return kilni_image_bad(&checked->elf.part,
                         link_header_at(checked, section->index),
                         "section %u, \"%.60s\", %s %" PRIu64, section->index,
                         section->name, what, number);
}

static kiln_status_t doubt(const checked_t* checked, kiln_status_t wrong) {
  return kilni_image_doubt(checked->visit, wrong);
}

// ---- Sections ----

// Memory that is not set has a size and no bytes; what other types have is not
// known.
static bool has_bytes(uint32_t type) {
  return kilni_image_cubin_has_bytes(type) || type == TYPE_CALLGRAPH ||
         type == TYPE_PROTOTYPE || type == TYPE_GLOBAL_INIT ||
         type == TYPE_SYMTAB_INDEXES ||
         (type >= TYPE_CONSTANT && type <= TYPE_CONSTANT_LAST);
}

// The unit of a section's entries; 1: it has none.
static uint32_t unit_of(uint32_t type) {
  switch (type) {
    case KILNI_IMAGE_SECTION_SYMTAB:
      return KILNI_IMAGE_SYMBOL_BYTES;
    case TYPE_RELA:
      return RELA_BYTES;
    case TYPE_REL:
      return REL_BYTES;
    case TYPE_CALLGRAPH:
      return CALL_BYTES;
    case TYPE_PROTOTYPE:
      return PROTOTYPE_BYTES;
    default:
      return 1;
  }
}

static kiln_status_t open_symbols(checked_t* checked,
                                  const kilni_image_section_t* section) {
  if (checked->symtab_index != 0) {
    return bad_section(checked, section, "is a second table of symbols, beside",
                       checked->symtab_index);
  }
  kilni_image_section_t names;
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_symtab(&checked->elf, section, &checked->symtab));
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_section(&checked->elf, section->link, &names));
  const kilni_image_part_t* texts = &checked->symtab.names;
  if (names.type != KILNI_IMAGE_SECTION_STRTAB || texts->size == 0 ||
      texts->data[texts->size - 1] != 0) {
    // Whether each name is there is seen with its symbol.
    KILNI_RETURN_IF_ERROR(
        doubt(checked, bad_section(checked, section, "has no names in section",
                                   section->link)));
  }
  if (section->info > checked->symtab.count) {
    KILNI_RETURN_IF_ERROR(
        doubt(checked, bad_section(checked, section, "has fewer symbols than",
                                   section->info)));
  }
  checked->symtab_index = section->index;
  return kiln_ok();
}

// The types of sections that linkers find by name. thread-safe
typedef struct named_t {
  const char* name;
  uint32_t size;  // that is compared: with its NUL, or a beginning
  uint32_t type;
} named_t;

static kiln_status_t link_check_name(const checked_t* checked,
                                     const kilni_image_section_t* section) {
  static const named_t kNamed[] = {
      {".shstrtab", 10, KILNI_IMAGE_SECTION_STRTAB},
      {".strtab", 8, KILNI_IMAGE_SECTION_STRTAB},
      {".symtab", 8, KILNI_IMAGE_SECTION_SYMTAB},
      {".note.nv.", 9, KILNI_IMAGE_SECTION_NOTE},
      {".nv.info", 9, TYPE_INFO},
      {".nv.info.", 9, TYPE_INFO},
      {".nv.callgraph", 14, TYPE_CALLGRAPH},
      {".nv.prototype", 14, TYPE_PROTOTYPE},
      {".text.", 6, TYPE_PROGBITS},
      {".rela.", 6, TYPE_RELA},
      {".rel.", 5, TYPE_REL},
  };
  for (size_t i = 0; i < sizeof(kNamed) / sizeof(kNamed[0]); i++) {
    if (strncmp(section->name, kNamed[i].name, kNamed[i].size) == 0 &&
        section->type != kNamed[i].type) {
      return bad_section(checked, section, "cannot be of type", section->type);
    }
  }
  return kiln_ok();
}

static kiln_status_t check_align(const checked_t* checked,
                                 const kilni_image_section_t* section) {
  const uint8_t* header =
      checked->elf.part.data + link_header_at(checked, section->index);
  uint64_t align = kilni_image_u64(header + 48);
  bool is_loaded = (section->flags & FLAG_ALLOC) != 0;
  // Linkers take 32 bits of it, and fill the place up to there.
  bool is_far = is_loaded && (uint32_t)align > MAX_ALIGN;
  bool is_right = (align & (align - 1)) == 0 && align <= UINT32_MAX &&
                  (!is_loaded || align != 0);
  if (is_right && !is_far) return kiln_ok();
  kiln_status_t wrong = bad_section(checked, section, "is aligned to", align);
  return is_far ? wrong : doubt(checked, wrong);
}

static kiln_status_t check_unit(const checked_t* checked,
                                const kilni_image_section_t* section) {
  const uint8_t* header =
      checked->elf.part.data + link_header_at(checked, section->index);
  uint64_t unit = kilni_image_u64(header + 56);
  uint32_t wanted = unit_of(section->type);
  if (wanted == 1 || unit == wanted) return kiln_ok();
  return bad_section(checked, section, "has entries of bytes:", unit);
}

// The numbers of other sections in its header.
static kiln_status_t check_related(const checked_t* checked,
                                   const kilni_image_section_t* section) {
  if (section->link >= checked->elf.count) {
    return bad_section(checked, section, "belongs to section", section->link);
  }
  if ((section->flags & FLAG_INFO_LINK) != 0 &&
      section->info >= checked->elf.count) {
    return bad_section(checked, section, "is about section", section->info);
  }
  return kiln_ok();
}

static kiln_status_t check_section(checked_t* checked,
                                   const kilni_image_section_t* section) {
  kilni_image_part_t bytes = {0};
  if (section->type == KILNI_IMAGE_SECTION_NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(doubt(checked, link_check_name(checked, section)));
  KILNI_RETURN_IF_ERROR(check_align(checked, section));
  KILNI_RETURN_IF_ERROR(doubt(checked, check_unit(checked, section)));
  if (has_bytes(section->type)) {
    KILNI_RETURN_IF_ERROR(
        kilni_image_elf_bytes(&checked->elf, section, &bytes));
  }
  if (section->size % unit_of(section->type) != 0) {
    KILNI_RETURN_IF_ERROR(doubt(
        checked, bad_section(checked, section,
                             "has part of an entry at its end: its size is",
                             section->size)));
  }
  KILNI_RETURN_IF_ERROR(doubt(checked, check_related(checked, section)));
  if (section->type == KILNI_IMAGE_SECTION_SYMTAB) {
    return open_symbols(checked, section);
  }
  if (section->type == TYPE_SYMTAB_INDEXES) checked->indexes = bytes;
  return kiln_ok();
}

// ---- Symbols ----

static uint32_t section_of(const checked_t* checked, uint64_t index,
                           const kilni_image_elf_symbol_t* symbol) {
  if (symbol->section == SECTION_ELSEWHERE &&
      kilni_image_part_has(&checked->indexes, index * 4, 4)) {
    return kilni_image_u32(checked->indexes.data + index * 4);
  }
  return symbol->section;
}

static kiln_status_t bad_symbol(const checked_t* checked, uint64_t index,
                                const char* name, const char* what,
                                uint64_t number) {
  return kilni_image_bad(
      &checked->symtab.entries, index * KILNI_IMAGE_SYMBOL_BYTES,
      "symbol %" PRIu64 ", \"%.60s\", %s %" PRIu64, index, name, what, number);
}

static bool is_value(uint32_t type) {
  return type == SYMBOL_FUNCTION || type == SYMBOL_OBJECT ||
         type == SYMBOL_CUDA_OBJECT;
}

static bool link_is_known(const kilni_image_elf_symbol_t* symbol) {
  enum { TYPE_FILE = 4, BINDING_WEAK = 2 };
  enum { TYPE_OF_SYSTEM = 10, BINDING_OF_SYSTEM = 10, BINDING_OF_MACHINE = 13 };
  return (symbol->type <= TYPE_FILE || symbol->type >= TYPE_OF_SYSTEM) &&
         (symbol->binding <= BINDING_WEAK ||
          (symbol->binding >= BINDING_OF_SYSTEM &&
           symbol->binding < BINDING_OF_MACHINE));
}

// Its place is in its section, and code is in a section of code.
static kiln_status_t link_check_place(const checked_t* checked, uint64_t index,
                                      const kilni_image_elf_symbol_t* symbol,
                                      uint32_t at) {
  kilni_image_section_t section;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_section(&checked->elf, at, &section));
  if (section.type == KILNI_IMAGE_SECTION_NULL) {
    return bad_symbol(checked, index, symbol->name,
                      "is in a section that does not exist,", at);
  }
  // In a linked file a value is an address.
  if (checked->is_linked || !has_bytes(section.type)) return kiln_ok();
  if (symbol->value > section.size ||
      symbol->size > section.size - symbol->value) {
    return bad_symbol(checked, index, symbol->name,
                      "extends past the end of its section, of bytes",
                      section.size);
  }
  if (symbol->type == SYMBOL_FUNCTION && section.type != TYPE_PROGBITS) {
    return bad_symbol(checked, index, symbol->name,
                      "is code in a section without code,", at);
  }
  return kiln_ok();
}

static bool link_is_special(const kilni_image_elf_symbol_t* symbol) {
  return symbol->section == SECTION_ABSOLUTE ||
         symbol->section == SECTION_COMMON;
}

static kiln_status_t check_symbol_fields(const checked_t* checked,
                                         uint64_t index,
                                         const kilni_image_elf_symbol_t* symbol,
                                         uint32_t at) {
  if (!link_is_known(symbol)) {
    return bad_symbol(checked, index, symbol->name, "is of type",
                      symbol->type + 16u * symbol->binding);
  }
  if (link_is_special(symbol)) return kiln_ok();
  if (at >= checked->elf.count) {
    return bad_symbol(checked, index, symbol->name, "is in section", at);
  }
  return at == SECTION_UNDEFINED ? kiln_ok()
                                 : link_check_place(checked, index, symbol, at);
}

// A name that a source gave to something here.
static bool link_is_named(const kilni_image_elf_symbol_t* symbol) {
  return symbol->section != SECTION_UNDEFINED && is_value(symbol->type) &&
         symbol->name[0] != 0 && symbol->name[0] != '.';
}

static kiln_status_t report_presence(const kilni_image_link_visit_t* visit,
                                     const kilni_image_elf_symbol_t* symbol) {
  bool is_own = symbol->binding == BINDING_LOCAL;
  if (!link_is_named(symbol)) return kiln_ok();
  if (!is_own && visit->expect != NULL) {
    return visit->expect(visit->user, symbol->name);
  }
  if (is_own && symbol->type == SYMBOL_FUNCTION && visit->own != NULL) {
    return visit->own(visit->user, symbol->name);
  }
  return kiln_ok();
}

static bool is_kernel(const kilni_image_elf_symbol_t* symbol) {
  return symbol->type == SYMBOL_FUNCTION && (symbol->other & OTHER_ENTRY) != 0;
}

// A variable that a host may ask for by its name. In finished code all of them
// are local; those that compilers and their headers made have such names.
static bool is_askable(const kilni_image_elf_symbol_t* symbol) {
  return symbol->type != SYMBOL_FUNCTION &&
         strncmp(symbol->name, "__", 2) != 0 &&
         strstr(symbol->name, "_INTERNAL_") == NULL &&
         strchr(symbol->name, '$') == NULL;
}

// What of finished code could be missed: functions are its own.
static kiln_status_t report_finished(const kilni_image_link_visit_t* visit,
                                     const kilni_image_elf_symbol_t* symbol) {
  if (visit->keep == NULL) return kiln_ok();
  if (is_kernel(symbol)) {
    return visit->keep(visit->user, symbol->name, KILNI_IMAGE_KEEP_FINISHED);
  }
  if (!is_askable(symbol)) return kiln_ok();
  return visit->keep(visit->user, symbol->name, KILNI_IMAGE_KEEP_VARIABLE);
}

static kiln_status_t report_name(const checked_t* checked,
                                 const kilni_image_elf_symbol_t* symbol,
                                 uint32_t at) {
  const kilni_image_link_visit_t* visit = checked->visit;
  if (!link_is_named(symbol)) return kiln_ok();
  if (checked->is_linked) return report_finished(visit, symbol);
  KILNI_RETURN_IF_ERROR(report_presence(visit, symbol));
  bool is_strong = symbol->binding == BINDING_GLOBAL &&
                   !link_is_special(symbol) && at != SECTION_UNDEFINED;
  if (is_strong && visit->define != NULL) {
    return visit->define(visit->user, symbol->name, is_kernel(symbol));
  }
  if (is_strong || !is_kernel(symbol) || visit->keep == NULL) return kiln_ok();
  return visit->keep(visit->user, symbol->name, KILNI_IMAGE_KEEP_KERNEL);
}

static kiln_status_t link_check_symbol(const checked_t* checked,
                                       uint64_t index) {
  kilni_image_elf_symbol_t symbol;
  kiln_status_t wrong =
      kilni_image_elf_symbol(&checked->symtab, index, &symbol);
  if (!kiln_status_is_ok(wrong)) {
    // No other input refers to a symbol that is local, or defined elsewhere.
    bool is_own =
        symbol.binding == BINDING_LOCAL || symbol.section == SECTION_UNDEFINED;
    return is_own ? doubt(checked, wrong) : wrong;
  }
  uint32_t at = section_of(checked, index, &symbol);
  KILNI_RETURN_IF_ERROR(
      doubt(checked, check_symbol_fields(checked, index, &symbol, at)));
  return report_name(checked, &symbol, at);
}

// ---- What names symbols ----

static kiln_status_t check_each_relocation(const checked_t* checked,
                                           const kilni_image_section_t* section,
                                           bool* out_is_wild) {
  kilni_image_part_t bytes;
  kilni_image_section_t target;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&checked->elf, section, &bytes));
  if (section->link != checked->symtab_index) {
    return bad_section(checked, section, "has no symbols in section",
                       section->link);
  }
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_section(&checked->elf, section->info, &target));
  uint32_t unit = unit_of(section->type);
  for (uint64_t at = 0; at + unit <= bytes.size; at += unit) {
    uint64_t offset = kilni_image_u64(bytes.data + at);
    uint32_t kind = kilni_image_u32(bytes.data + at + 8);
    uint32_t symbol = kilni_image_u32(bytes.data + at + 12);
    // Two ranges are in use; what is far outside is not a relocation.
    if (kind >= KIND_END || (kind >= KIND_GAP && kind < KIND_AGAIN)) {
      return kilni_image_bad(&bytes, at, "a relocation of kind %u", kind);
    }
    if (symbol >= checked->symtab.count) {
      // What follows the table of symbols would go into the code.
      *out_is_wild = true;
      return kilni_image_bad(&bytes, at,
                             "a relocation of \"%.60s\" names symbol %u of "
                             "%" PRIu64,
                             target.name, symbol, checked->symtab.count);
    }
    if (offset >= target.size) {
      return kilni_image_bad(&bytes, at,
                             "a relocation at byte %" PRIu64
                             " of \"%.60s\", which has %" PRIu64,
                             offset, target.name, target.size);
    }
  }
  return kiln_ok();
}

// What relocations are for has bytes of its own; else they would be lost.
static kiln_status_t link_check_target(const checked_t* checked,
                                       const kilni_image_section_t* section) {
  kilni_image_section_t target = {0};
  if (section->info != 0 && section->info < checked->elf.count) {
    KILNI_RETURN_IF_ERROR(
        doubt(checked,
              kilni_image_elf_section(&checked->elf, section->info, &target)));
  }
  if (target.type == TYPE_PROGBITS ||
      (target.type >= TYPE_OF_MACHINE && target.type <= TYPE_OF_MACHINE_LAST)) {
    return kiln_ok();
  }
  return bad_section(checked, section, "relocates section", section->info);
}

static kiln_status_t check_relocations(const checked_t* checked,
                                       const kilni_image_section_t* section) {
  bool is_wild = false;
  KILNI_RETURN_IF_ERROR(link_check_target(checked, section));
  kiln_status_t wrong = check_each_relocation(checked, section, &is_wild);
  return is_wild ? wrong : doubt(checked, wrong);
}

static kiln_status_t check_calls(const checked_t* checked,
                                 const kilni_image_section_t* section) {
  kilni_image_part_t bytes;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&checked->elf, section, &bytes));
  uint32_t mark = 0;
  for (uint64_t at = 0; at + 4 <= bytes.size; at += 4) {
    uint32_t symbol = kilni_image_u32(bytes.data + at);
    bool is_second = at % CALL_BYTES != 0;
    if (symbol >= CALL_MARKS) {
      if (is_second) mark = symbol;
      continue;
    }
    uint64_t count = is_second && mark == CALL_MARK_TYPES
                         ? checked->symtab.names.size
                         : checked->symtab.count;
    if (symbol < count) continue;
    return kilni_image_bad(&bytes, at, "a call names symbol %u of %" PRIu64,
                           symbol, count);
  }
  return kiln_ok();
}

// A function, and where the text of its type is.
static kiln_status_t check_prototypes(const checked_t* checked,
                                      const kilni_image_section_t* section) {
  kilni_image_part_t bytes;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&checked->elf, section, &bytes));
  for (uint64_t at = 0; at + PROTOTYPE_BYTES <= bytes.size;
       at += PROTOTYPE_BYTES) {
    uint32_t symbol = kilni_image_u32(bytes.data + at);
    uint32_t text = kilni_image_u32(bytes.data + at + 4);
    if (symbol < checked->symtab.count && text < checked->symtab.names.size) {
      continue;
    }
    return kilni_image_bad(&bytes, at, "a prototype at %u of symbol %u", text,
                           symbol);
  }
  return kiln_ok();
}

// How many numbers of an attribute are the index of a symbol: all, the first,
// or none.
static uint32_t symbols_in(uint32_t code, uint32_t size) {
  enum {
    PARAM_CBANK = 0x0a,
    EXTERNS = 0x0f,
    FRAME_SIZE = 0x11,
    MIN_STACK_SIZE = 0x12,
    KPARAM_INFO = 0x17,
    MAX_STACK_SIZE = 0x23,
    REGCOUNT = 0x2f,
  };
  switch (code) {
    case EXTERNS:
      return size / 4;
    case PARAM_CBANK:
    case FRAME_SIZE:
    case MIN_STACK_SIZE:
    case KPARAM_INFO:
    case MAX_STACK_SIZE:
    case REGCOUNT:
      return size < 4 ? 0 : 1;
    default:
      return 0;
  }
}

// The numbers of one attribute: symbols, and places in the code it is about.
static kiln_status_t link_check_numbers(const checked_t* checked,
                                        const kilni_image_part_t* bytes,
                                        uint64_t at, uint32_t size,
                                        uint64_t code_bytes) {
  enum { HEAD_BYTES = 4, EXIT_OFFSETS = 0x1c };
  const uint8_t* head = bytes->data + at;
  uint32_t count = symbols_in(head[1], size);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t symbol = kilni_image_u32(head + HEAD_BYTES + 4 * (size_t)i);
    if (symbol < checked->symtab.count) continue;
    return kilni_image_bad(bytes, at, "an attribute of symbol %u of %" PRIu64,
                           symbol, checked->symtab.count);
  }
  if (head[1] != EXIT_OFFSETS) return kiln_ok();
  for (uint32_t i = 0; i < size / 4; i++) {
    uint32_t place = kilni_image_u32(head + HEAD_BYTES + 4 * (size_t)i);
    if (place < code_bytes) continue;
    return kilni_image_bad(bytes, at,
                           "an attribute of byte %u of %" PRIu64 " of code",
                           place, code_bytes);
  }
  return kiln_ok();
}

static kiln_status_t check_attributes(const checked_t* checked,
                                      const kilni_image_section_t* section) {
  enum { HEAD_BYTES = 4, FORMAT_LAST = 4, FORMAT_SIZED = 4 };
  kilni_image_part_t bytes;
  kilni_image_section_t code;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(&checked->elf, section, &bytes));
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_section(&checked->elf, section->info, &code));
  uint64_t at = 0;
  while (at < bytes.size) {
    if (!kilni_image_part_has(&bytes, at, HEAD_BYTES)) {
      return kilni_image_bad(&bytes, at, "an attribute is cut off");
    }
    const uint8_t* head = bytes.data + at;
    uint32_t size = head[0] == FORMAT_SIZED ? kilni_image_u16(head + 2) : 0;
    if (head[0] == 0 || head[0] > FORMAT_LAST) {
      return kilni_image_bad(&bytes, at, "an attribute of form %u", head[0]);
    }
    if (!kilni_image_part_has(&bytes, at + HEAD_BYTES, size)) {
      return kilni_image_bad(&bytes, at, "an attribute of %u bytes is cut off",
                             size);
    }
    KILNI_RETURN_IF_ERROR(
        link_check_numbers(checked, &bytes, at, size, code.size));
    at += HEAD_BYTES + (uint64_t)size;
  }
  return kiln_ok();
}

static bool is_attributes(const kilni_image_section_t* section) {
  return section->type == TYPE_INFO &&
         strncmp(section->name, ".nv.info", 8) == 0;
}

static bool is_code(const kilni_image_section_t* section) {
  return section->type == TYPE_PROGBITS &&
         (section->flags & FLAG_EXECUTABLE) != 0;
}

// A section of code has the index of its function's symbol in 24 bits.
static kiln_status_t check_code(const checked_t* checked,
                                const kilni_image_section_t* section) {
  uint32_t index = section->info & 0xffffff;
  kilni_image_elf_symbol_t symbol = {0};
  if (index < checked->symtab.count) {
    KILNI_RETURN_IF_ERROR(
        kilni_image_elf_symbol(&checked->symtab, index, &symbol));
  }
  if (symbol.type == SYMBOL_FUNCTION &&
      section_of(checked, index, &symbol) == section->index) {
    return kiln_ok();
  }
  return bad_section(checked, section, "is the code of symbol", index);
}

// Where damage is tolerated, an unreadable type counts as none.
static kiln_status_t report_prototype(const checked_t* checked,
                                      const uint8_t* entry) {
  const kilni_image_link_visit_t* visit = checked->visit;
  const kilni_image_part_t* texts = &checked->symtab.names;
  uint32_t index = kilni_image_u32(entry);
  uint32_t text = kilni_image_u32(entry + 4);
  kilni_image_elf_symbol_t symbol;
  if (index >= checked->symtab.count || text >= texts->size ||
      memchr(texts->data + text, 0, (size_t)(texts->size - text)) == NULL) {
    return kiln_ok();
  }
  kiln_status_t wrong =
      kilni_image_elf_symbol(&checked->symtab, index, &symbol);
  bool is_seen = kiln_status_is_ok(wrong) && symbol.name[0] != 0 &&
                 symbol.binding != BINDING_LOCAL;
  kiln_status_free(wrong);
  if (!is_seen || texts->data[text] != '#') return kiln_ok();
  return visit->prototype(visit->user, symbol.name,
                          (const char*)texts->data + text);
}

// Whether a pair is a symbol and where its type is. `*inout_mark` is the call
// graph's mark that it follows.
static bool link_has_type(const kilni_image_section_t* section,
                          const uint8_t* pair, uint32_t* inout_mark) {
  uint32_t second = kilni_image_u32(pair + 4);
  if (section->type == TYPE_PROTOTYPE) return true;
  if (second >= CALL_MARKS) {
    *inout_mark = second;
    return false;
  }
  return *inout_mark == CALL_MARK_TYPES;
}

static kiln_status_t report_prototypes(const checked_t* checked) {
  if (checked->visit->prototype == NULL) return kiln_ok();
  for (uint32_t i = 1; i < checked->elf.count; i++) {
    kilni_image_section_t section;
    kilni_image_part_t bytes;
    KILNI_RETURN_IF_ERROR(
        doubt(checked, kilni_image_elf_section(&checked->elf, i, &section)));
    uint32_t mark = 0;
    if (section.type != TYPE_PROTOTYPE && section.type != TYPE_CALLGRAPH) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(
        kilni_image_elf_bytes(&checked->elf, &section, &bytes));
    for (uint64_t at = 0; at + PROTOTYPE_BYTES <= bytes.size;
         at += PROTOTYPE_BYTES) {
      if (!link_has_type(&section, bytes.data + at, &mark)) continue;
      KILNI_RETURN_IF_ERROR(report_prototype(checked, bytes.data + at));
    }
  }
  return kiln_ok();
}

// What a function owns names the section of its code; other sections none.
static kiln_status_t check_owner(const checked_t* checked,
                                 const kilni_image_section_t* section) {
  bool may_own =
      section->type == TYPE_PROGBITS || section->type == TYPE_INFO ||
      section->type == TYPE_GLOBAL_INIT ||
      (section->type >= TYPE_CONSTANT && section->type <= TYPE_CONSTANT_LAST);
  if (section->info == 0 || !may_own) return kiln_ok();
  kilni_image_section_t owner = {0};
  if (section->info < checked->elf.count) {
    KILNI_RETURN_IF_ERROR(
        kilni_image_elf_section(&checked->elf, section->info, &owner));
  }
  if (is_code(&owner)) return kiln_ok();
  return bad_section(checked, section, "belongs to code in section",
                     section->info);
}

static kiln_status_t check_references(const checked_t* checked,
                                      const kilni_image_section_t* section) {
  if (section->type == TYPE_CALLGRAPH) return check_calls(checked, section);
  if (section->type == TYPE_PROTOTYPE) {
    return check_prototypes(checked, section);
  }
  if (is_code(section)) return check_code(checked, section);
  KILNI_RETURN_IF_ERROR(check_owner(checked, section));
  if (is_attributes(section)) return check_attributes(checked, section);
  return kiln_ok();
}

// ---- The whole ----

static kiln_status_t check_sections(checked_t* checked) {
  for (uint32_t i = 1; i < checked->elf.count; i++) {
    kilni_image_section_t section;
    KILNI_RETURN_IF_ERROR(
        doubt(checked, kilni_image_elf_section(&checked->elf, i, &section)));
    KILNI_RETURN_IF_ERROR(check_section(checked, &section));
  }
  return kiln_ok();
}

static kiln_status_t check_all_references(const checked_t* checked) {
  for (uint32_t i = 1; i < checked->elf.count; i++) {
    kilni_image_section_t section;
    KILNI_RETURN_IF_ERROR(
        doubt(checked, kilni_image_elf_section(&checked->elf, i, &section)));
    bool relocates = section.type == TYPE_REL || section.type == TYPE_RELA;
    KILNI_RETURN_IF_ERROR(
        relocates ? check_relocations(checked, &section)
                  : doubt(checked, check_references(checked, &section)));
  }
  return kiln_ok();
}

static kiln_status_t link_check_header(const checked_t* checked) {
  const kilni_image_elf_t* elf = &checked->elf;
  const kilni_image_part_t* part = &elf->part;
  // Beyond the types that ELF has, a system or a machine may have its own.
  if (elf->type == 0 ||
      (elf->type > ELF_TYPE_LAST && elf->type < ELF_TYPE_OWN)) {
    return kilni_image_bad(part, 16, "an ELF file of type %u", elf->type);
  }
  if (elf->count != 0 && elf->stride != SECTION_HEADER_BYTES) {
    return kilni_image_bad(part, 58, "section headers of %u bytes",
                           elf->stride);
  }
  // The table of names, and section 0, which is none.
  const uint8_t* texts = elf->names.data;
  if (elf->count != 0 &&
      (elf->names.size == 0 || texts[elf->names.size - 1] != 0 ||
       kilni_image_u32(part->data + elf->table + 4) != 0)) {
    KILNI_RETURN_IF_ERROR(
        doubt(checked,
              kilni_image_bad(part, 62,
                              "the names of the sections are not terminated")));
  }
  if (elf->count == 0 && elf->table != 0) {
    return kilni_image_bad(part, 60,
                           "there are section headers, but their number is 0");
  }
  uint32_t unit = kilni_image_u16(part->data + 54);
  if (unit != 0 && unit != SEGMENT_HEADER_BYTES) {
    return doubt(checked, kilni_image_bad(part, 54,
                                          "segment headers of %u bytes", unit));
  }
  uint64_t segments = (uint64_t)unit * kilni_image_u16(part->data + 56);
  if (kilni_image_part_has(part, kilni_image_u64(part->data + 32), segments)) {
    return kiln_ok();
  }
  return kilni_image_bad(part, 32, "the file ends within its segments");
}

kiln_status_t kilni_image_link_foreign(const kilni_image_part_t* part) {
  enum { CLASS_AT = 4 };
  char kind[KILNI_IMAGE_ELF_KIND_BYTES];
  kilni_image_elf_kind(part, kind);
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "%s: at byte %" PRIu64 ": its ELF header states %s; linkers "
                 "take no device code from such a file",
                 part->name, part->base + CLASS_AT, kind),
      "compile it for a 64-bit machine (`nvcc -m64`); if it was, make the file "
      "again: its header is damaged");
}

kiln_status_t kilni_image_link_cubin(const kilni_image_part_t* part,
                                     const kilni_image_link_visit_t* visit) {
  checked_t checked;
  memset(&checked, 0, sizeof(checked));
  checked.visit = visit;
  if (kilni_image_elf_is_foreign(part)) return kilni_image_link_foreign(part);
  KILNI_RETURN_IF_ERROR(kilni_image_elf_open(part, &checked.elf));
  checked.is_linked = checked.elf.type != KILNI_IMAGE_ELF_REL;
  KILNI_RETURN_IF_ERROR(link_check_header(&checked));
  KILNI_RETURN_IF_ERROR(check_sections(&checked));
  for (uint64_t i = 1; i < checked.symtab.count; i++) {
    KILNI_RETURN_IF_ERROR(link_check_symbol(&checked, i));
  }
  if (checked.is_linked || checked.elf.count == 0) return kiln_ok();
  if (checked.symtab_index == 0) {
    return kilni_image_bad(part, 60, "no section contains the symbols");
  }
  KILNI_RETURN_IF_ERROR(check_all_references(&checked));
  return report_prototypes(&checked);
}

// ---- Names of a cubin ----

kiln_status_t kilni_image_cubin_names(kiln_bytes_view_t bytes, const char* name,
                                      const kilni_image_link_visit_t* visit) {
  kilni_image_part_t part = {bytes.data, bytes.size, 0, name};
  kilni_image_elf_t elf;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_open(&part, &elf));
  for (uint32_t i = 1; i < elf.count; i++) {
    kilni_image_section_t section;
    kilni_image_symtab_t symtab;
    KILNI_RETURN_IF_ERROR(kilni_image_elf_section(&elf, i, &section));
    if (section.type != KILNI_IMAGE_SECTION_SYMTAB) continue;
    KILNI_RETURN_IF_ERROR(kilni_image_elf_symtab(&elf, &section, &symtab));
    for (uint64_t at = 1; at < symtab.count; at++) {
      kilni_image_elf_symbol_t symbol;
      KILNI_RETURN_IF_ERROR(kilni_image_elf_symbol(&symtab, at, &symbol));
      KILNI_RETURN_IF_ERROR(report_presence(visit, &symbol));
    }
  }
  return kiln_ok();
}

// ---- Names of PTX ----

static kiln_status_t define_all(const kilni_image_ptx_module_t* module,
                                const kilni_image_link_visit_t* visit) {
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_image_ptx_function_t* function = &module->functions[i];
    if (!function->is_defined) continue;
    if (function->linkage != KILNI_PTX_LINKAGE_VISIBLE) {
      bool is_own = function->linkage == KILNI_PTX_LINKAGE_NONE;
      if (is_own && visit->own != NULL) {
        KILNI_RETURN_IF_ERROR(visit->own(visit->user, function->name));
      }
      if (function->is_entry && visit->keep != NULL) {
        KILNI_RETURN_IF_ERROR(
            visit->keep(visit->user, function->name, KILNI_IMAGE_KEEP_KERNEL));
      }
      continue;
    }
    KILNI_RETURN_IF_ERROR(
        visit->define(visit->user, function->name, function->is_entry != 0));
  }
  for (uint32_t i = 0; i < module->variable_count; i++) {
    const kilni_image_ptx_variable_t* variable = &module->variables[i];
    if (variable->function != KILNI_PTX_NONE || variable->declared_only ||
        variable->linkage != KILNI_PTX_LINKAGE_VISIBLE) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(visit->define(visit->user, variable->name, false));
  }
  return kiln_ok();
}

// ---- Types of PTX's functions ----

// As ptxas 13.0 writes it: a letter of the kind, and of an array its length;
// 0: of what functions cannot take.
static char letter_of(uint32_t type) {
  kilni_image_ptx_class_t class_ = kilni_image_ptx_type_class(type);
  bool is_plain = class_ == KILNI_PTX_CLASS_UNSIGNED ||
                  class_ == KILNI_PTX_CLASS_SIGNED ||
                  class_ == KILNI_PTX_CLASS_BITS;
  if (type == KILNI_PTX_TYPE_F32) return 'f';
  if (type == KILNI_PTX_TYPE_F64) return 'd';
  if (type == KILNI_PTX_TYPE_F16) return 'h';
  if (!is_plain) return 0;
  switch (kilni_image_ptx_type_bits(type)) {
    case 8:
      return 'b';
    case 16:
      return 'h';
    case 32:
      return 'i';
    case 64:
      return 'l';
    case 128:
      return 'x';
    default:
      return 0;
  }
}

static bool add_types(const kilni_image_ptx_module_t* module, uint32_t first,
                      uint32_t count, kilni_base_str_t* inout_text) {
  for (uint32_t i = 0; i < count; i++) {
    const kilni_image_ptx_variable_t* variable = &module->variables[first + i];
    char letter = letter_of(variable->type);
    if (letter == 0 || variable->vector > 1 || variable->dimension_count > 1) {
      return false;
    }
    kilni_base_str_add_char(inout_text, letter);
    if (variable->dimension_count == 0) continue;
    kilni_base_str_addf(inout_text, "%" PRIu64,
                        variable->unsized ? 0 : variable->dimensions[0]);
  }
  return true;
}

static kiln_status_t report_type(const kilni_image_ptx_module_t* module,
                                 const kilni_image_ptx_function_t* function,
                                 const kilni_image_link_visit_t* visit,
                                 kiln_allocator_t allocator) {
  enum { MAX_TYPE_BYTES = 1 << 16 };
  kilni_base_str_t text;
  if (function->return_count > 1) return kiln_ok();
  kilni_base_str_init(&text, allocator, MAX_TYPE_BYTES);
  kilni_base_str_add_cstr(&text, function->return_count == 0 ? "#v" : "#");
  bool is_known = add_types(module, function->first_return,
                            function->return_count, &text) &&
                  add_types(module, function->first_parameter,
                            function->parameter_count, &text);
  kiln_status_t status = kilni_base_str_status(&text);
  if (is_known && kiln_status_is_ok(status)) {
    status = visit->prototype(visit->user, function->name,
                              kilni_base_str_cstr(&text));
  }
  kilni_base_str_deinit(&text);
  return status;
}

// Functions that something names: ptxas drops the declarations of others.
static void link_mark_used(const kilni_image_ptx_module_t* module, bool* used) {
  for (uint32_t i = 0; i < module->operand_count; i++) {
    const kilni_image_ptx_operand_t* operand = &module->operands[i];
    bool names = operand->kind == KILNI_PTX_OPERAND_FUNCTION ||
                 (operand->kind == KILNI_PTX_OPERAND_ADDRESS &&
                  operand->base == KILNI_PTX_BASE_FUNCTION);
    if (names && operand->index < module->function_count) {
      used[operand->index] = true;
    }
  }
}

static kiln_status_t report_types(const kilni_image_ptx_module_t* module,
                                  const kilni_image_link_visit_t* visit,
                                  kiln_allocator_t allocator) {
  void* block = NULL;
  uint32_t count = module->function_count;
  if (visit->prototype == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, count, sizeof(bool), &block));
  bool* used = block;
  link_mark_used(module, used);
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    const kilni_image_ptx_function_t* function = &module->functions[i];
    if (function->is_entry || function->linkage == KILNI_PTX_LINKAGE_NONE ||
        (!function->is_defined && !used[i])) {
      continue;
    }
    status = report_type(module, function, visit, allocator);
  }
  kilni_base_free_array(allocator, block, count, sizeof(bool));
  return status;
}

// Its compiler, which may be newer, decides whether the text is right.
kiln_status_t kilni_image_link_ptx(const kilni_image_part_t* part,
                                   const kilni_image_link_visit_t* visit,
                                   kiln_allocator_t allocator) {
  if (visit->define == NULL) return kiln_ok();
  kilni_image_ptx_module_t* module = NULL;
  kiln_bytes_view_t text = {part->data, (size_t)part->size};
  kiln_status_t status =
      kilni_image_ptx_module_create(text, part->name, NULL, allocator, &module);
  if (!kiln_status_is_ok(status)) {
    if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
    kiln_status_free(status);
    return kiln_ok();
  }
  status = define_all(module, visit);
  if (kiln_status_is_ok(status)) {
    status = report_types(module, visit, allocator);
  }
  kilni_image_ptx_module_release(module);
  return status;
}
