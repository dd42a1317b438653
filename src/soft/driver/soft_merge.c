// SPDX-License-Identifier: Apache-2.0
//
// soft: several PTX texts as one, the work of a linker.
#include "soft/driver/soft_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/driver/soft_statement.h"

// What becomes of a statement.
typedef enum fate_t {
  STAYS = 0,
  GOES,        // another text has it
  DECLARES,    // its definition goes, and so a declaration stays
  FOLLOWS,     // a declaration of what another text defines
  COMES_FIRST  // above all others
} fate_t;

// A statement of a part. one-thread
typedef struct item_t {
  kilni_soft_statement_t says;
  uint32_t part;
  fate_t fate;
  bool renamed;                   // in all of its part
  kiln_string_view_t definition;  // FOLLOWS: linkage of the definition
} item_t;

// A merge in progress. one-thread
typedef struct merge_t {
  kiln_allocator_t allocator;
  const kilni_soft_part_t* parts;
  size_t part_count;
  item_t* items;
  size_t item_count;
  size_t item_capacity;
  item_t** named;  // items that declare something, by name
  size_t named_count;
  kilni_base_str_t* text;
  kilni_base_str_t* errors;
  kilni_base_str_t* infos;
} merge_t;

static bool is_linkage(const item_t* item, const char* word) {
  return kilni_base_sv_equal_cstr(item->says.linkage, word);
}

static bool merge_is_declaration(const item_t* item) {
  return item->says.kind == KILNI_SOFT_STATEMENT_FUNCTION
             ? !item->says.has_body
             : is_linkage(item, ".extern");
}

static int merge_compare(kiln_string_view_t a, kiln_string_view_t b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = memcmp(a.data, b.data, common);
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size;
}

// By name, then in the order of the texts.
static int by_name(const void* a, const void* b) {
  const item_t* const* first = a;
  const item_t* const* second = b;
  int order = merge_compare((*first)->says.name, (*second)->says.name);
  if (order != 0) return order;
  return *first < *second ? -1 : *first > *second;
}

// ---- Reading ----

static kiln_status_t merge_read_part(merge_t* merge, uint32_t part) {
  kiln_string_view_t rest = merge->parts[part].text;
  item_t item;
  memset(&item, 0, sizeof(item));
  item.part = part;
  while (kilni_soft_statement_next(&rest, &item.says)) {
    void* items = merge->items;
    kiln_status_t status =
        kilni_base_grow(merge->allocator, merge->item_count + 1,
                        sizeof(*merge->items), &merge->item_capacity, &items);
    merge->items = items;
    KILNI_RETURN_IF_ERROR(status);
    merge->items[merge->item_count++] = item;
  }
  return kiln_ok();
}

static kiln_status_t merge_sort_names(merge_t* merge) {
  void* named = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      merge->allocator, merge->item_count, sizeof(*merge->named), &named));
  merge->named = named;
  for (size_t i = 0; i < merge->item_count; i++) {
    kilni_soft_statement_kind_t kind = merge->items[i].says.kind;
    if ((kind == KILNI_SOFT_STATEMENT_FUNCTION ||
         kind == KILNI_SOFT_STATEMENT_VARIABLE) &&
        merge->items[i].says.name.size > 0) {
      merge->named[merge->named_count++] = &merge->items[i];
    }
  }
  if (merge->named_count > 0) {
    qsort(merge->named, merge->named_count, sizeof(*merge->named), by_name);
  }
  return kiln_ok();
}

// ---- Deciding ----

// All that is declared under one name.
typedef struct group_t {
  item_t** items;
  size_t count;
} group_t;

// Whether no other text sees the name as this part has it.
static bool is_private(const group_t* group, uint32_t part) {
  for (size_t i = 0; i < group->count; i++) {
    const item_t* item = group->items[i];
    if (item->part == part &&
        (item->says.linkage.size > 0 || item->says.is_entry)) {
      return false;
    }
  }
  return true;
}

static uint64_t merge_size_of(const merge_t* merge, const item_t* item) {
  const kilni_image_ptx_module_t* tree = merge->parts[item->part].tree;
  uint32_t index = kilni_image_ptx_variable_find(tree, item->says.name);
  return index == KILNI_PTX_NONE ? 0 : tree->variables[index].size_bytes;
}

static bool is_strong(const item_t* item) {
  return !is_linkage(item, ".weak") && !is_linkage(item, ".common");
}

static void merge_twice(merge_t* merge, const item_t* first,
                        const item_t* second) {
  kilni_base_str_addf(merge->errors,
                      "error   : Multiple definition of '%.*s' in '%s', first "
                      "defined in '%s'\n",
                      KILNI_SV(second->says.name),
                      merge->parts[second->part].name,
                      merge->parts[first->part].name);
}

// The definition that stays, NULL if there is none: a strong one, the first
// weak one, or the largest common one.
static item_t* merge_choose(merge_t* merge, const group_t* group) {
  item_t* best = NULL;
  for (size_t i = 0; i < group->count; i++) {
    item_t* item = group->items[i];
    if (item->renamed || merge_is_declaration(item)) continue;
    if (best == NULL) {
      best = item;
    } else if (is_strong(item)) {
      if (is_strong(best)) merge_twice(merge, best, item);
      best = is_strong(best) ? best : item;
    } else if (is_linkage(best, ".common") &&
               (is_linkage(item, ".weak") ||
                merge_size_of(merge, item) > merge_size_of(merge, best))) {
      best = item;
    }
  }
  return best;
}

static void settle_item(merge_t* merge, item_t* item, const item_t* chosen) {
  bool common = is_linkage(chosen, ".common");
  if (item->says.has_several && item->part != chosen->part) {
    kilni_base_str_addf(
        merge->errors,
        "error   : '%.*s' in '%s' shares its statement with other "
        "variables\n",
        KILNI_SV(item->says.name), merge->parts[item->part].name);
  }
  if (item == chosen) {
    item->fate = common ? COMES_FIRST : STAYS;
  } else if (merge_is_declaration(item)) {
    item->fate = common ? GOES : FOLLOWS;
    item->definition = chosen->says.linkage;
  } else {
    item->fate = common ? GOES : DECLARES;
  }
}

// Dynamic shared memory: each text may have its own name for the one block.
static void settle_shared(group_t* group) {
  for (size_t i = 1; i < group->count; i++) {
    item_t* item = group->items[i];
    if (item->says.is_shared && item->part != group->items[0]->part) {
      item->renamed = true;
    }
  }
}

static void merge_settle(merge_t* merge, group_t* group) {
  bool several = false;
  for (size_t i = 1; i < group->count; i++) {
    several = several || group->items[i]->part != group->items[0]->part;
  }
  if (!several) return;
  for (size_t i = 0; i < group->count; i++) {
    group->items[i]->renamed = is_private(group, group->items[i]->part);
  }
  const item_t* chosen = merge_choose(merge, group);
  if (chosen == NULL) {
    settle_shared(group);
    return;
  }
  for (size_t i = 0; i < group->count; i++) {
    if (!group->items[i]->renamed) {
      settle_item(merge, group->items[i], chosen);
    }
  }
}

static group_t group_at(const merge_t* merge, size_t at) {
  group_t group = {&merge->named[at], 1};
  while (at + group.count < merge->named_count &&
         merge_compare(merge->named[at]->says.name,
                       merge->named[at + group.count]->says.name) == 0) {
    group.count++;
  }
  return group;
}

// The items that are called `name`; none: `count` is 0.
static group_t merge_find(const merge_t* merge, kiln_string_view_t name) {
  size_t low = 0;
  size_t high = merge->named_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (merge_compare(merge->named[middle]->says.name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  group_t none = {NULL, 0};
  if (low == merge->named_count ||
      merge_compare(merge->named[low]->says.name, name) != 0) {
    return none;
  }
  return group_at(merge, low);
}

// ---- What no text defines ----

// The device supplies these.
static bool is_supplied(const char* name) {
  static const char* const kNames[] = {"vprintf", "__assertfail", "malloc",
                                       "free", "cudaGraphSetConditional"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(*kNames); i++) {
    if (strcmp(name, kNames[i]) == 0) return true;
  }
  return false;
}

static bool is_defined(const merge_t* merge, const char* name) {
  group_t group = merge_find(merge, kilni_base_sv(name));
  for (size_t i = 0; i < group.count; i++) {
    if (!merge_is_declaration(group.items[i]) && !group.items[i]->renamed) {
      return true;
    }
  }
  return false;
}

// Marks of what a text uses. one-thread
typedef struct uses_t {
  bool* functions;
  bool* variables;
} uses_t;

static void merge_mark(const kilni_image_ptx_module_t* tree, uses_t* uses) {
  for (uint32_t i = 0; i < tree->operand_count; i++) {
    const kilni_image_ptx_operand_t* o = &tree->operands[i];
    bool at = o->kind == KILNI_PTX_OPERAND_ADDRESS;
    if (o->kind == KILNI_PTX_OPERAND_FUNCTION ||
        (at && o->base == KILNI_PTX_BASE_FUNCTION)) {
      uses->functions[o->index] = true;
    } else if (o->kind == KILNI_PTX_OPERAND_VARIABLE ||
               (at && o->base == KILNI_PTX_BASE_VARIABLE)) {
      uses->variables[o->index] = true;
    }
  }
  for (uint32_t i = 0; i < tree->relocation_count; i++) {
    const kilni_image_ptx_relocation_t* r = &tree->relocations[i];
    bool* marks =
        r->kind == KILNI_PTX_RELOC_FUNCTION ? uses->functions : uses->variables;
    marks[r->index] = true;
  }
}

static void undefined(merge_t* merge, const char* name, size_t part) {
  kilni_base_str_addf(merge->errors,
                      "error   : Undefined reference to '%s' in '%s'\n", name,
                      merge->parts[part].name);
}

static void check_uses(merge_t* merge, size_t part, const uses_t* uses) {
  const kilni_image_ptx_module_t* tree = merge->parts[part].tree;
  for (uint32_t i = 0; i < tree->function_count; i++) {
    const kilni_image_ptx_function_t* f = &tree->functions[i];
    if (uses->functions[i] && !f->is_defined && !is_supplied(f->name) &&
        !is_defined(merge, f->name)) {
      undefined(merge, f->name, part);
    }
  }
  for (uint32_t i = 0; i < tree->variable_count; i++) {
    const kilni_image_ptx_variable_t* v = &tree->variables[i];
    if (uses->variables[i] && v->declared_only &&
        v->space != KILNI_PTX_SPACE_SHARED && !is_defined(merge, v->name)) {
      undefined(merge, v->name, part);
    }
  }
}

static kiln_status_t merge_check_part(merge_t* merge, size_t part) {
  const kilni_image_ptx_module_t* tree = merge->parts[part].tree;
  size_t count = (size_t)tree->function_count + tree->variable_count;
  void* marks = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(merge->allocator, count, sizeof(bool), &marks));
  uses_t uses = {marks, (bool*)marks + tree->function_count};
  merge_mark(tree, &uses);
  check_uses(merge, part, &uses);
  kilni_base_free_array(merge->allocator, marks, count, sizeof(bool));
  return kiln_ok();
}

// ---- Writing ----

// How the words of one part are written. one-thread
typedef struct writer_t {
  merge_t* merge;
  uint32_t part;
  uint32_t file_base;  // what is added to the numbers of its files
  bool in_function;
} writer_t;

static bool merge_is_renamed(const writer_t* writer, kiln_string_view_t name) {
  group_t group = merge_find(writer->merge, name);
  for (size_t i = 0; i < group.count; i++) {
    if (group.items[i]->part == writer->part && group.items[i]->renamed) {
      return true;
    }
  }
  return false;
}

// `name` as this part has it from now on: no text has such a name yet.
static void write_new_name(const writer_t* writer, kiln_string_view_t name) {
  kilni_base_str_t fresh;
  kilni_base_str_init(&fresh, writer->merge->allocator, SIZE_MAX);
  uint32_t more = 0;
  do {
    fresh.size = 0;
    kilni_base_str_addf(&fresh, "%.*s$%u", KILNI_SV(name), writer->part + more);
    more += (uint32_t)writer->merge->part_count;
  } while (fresh.failed == KILN_STATUS_OK &&
           merge_find(writer->merge, kilni_base_sv_make(fresh.data, fresh.size))
                   .count > 0);
  if (fresh.failed != KILN_STATUS_OK) {
    writer->merge->text->failed = fresh.failed;
  }
  kilni_base_str_add(writer->merge->text,
                     kilni_base_sv_make(fresh.data, fresh.size));
  kilni_base_str_deinit(&fresh);
}

// A mnemonic or a label, which no name of a variable or function is.
static bool merge_stands_alone(const writer_t* writer, char before,
                               kiln_string_view_t rest) {
  if (rest.size > 0 && rest.data[0] == '.') return true;
  return writer->in_function &&
         (before == ';' || before == '{' || before == '}' || before == ':');
}

// Copies `text`, with names and numbers of files as they are now.
static void write_words(const writer_t* writer, kiln_string_view_t text) {
  kilni_base_str_t* to = writer->merge->text;
  const char* copied = text.data;
  bool file_next = false;
  char before = 0;
  while (true) {
    kilni_soft_word_t word = kilni_soft_word_next(&text);
    kilni_base_str_add(
        to, kilni_base_sv_make(copied, (size_t)(word.text.data - copied)));
    copied = word.text.data + word.text.size;
    if (word.kind == KILNI_SOFT_WORD_END) return;
    uint64_t number = 0;
    if (word.kind == KILNI_SOFT_WORD_NUMBER && file_next &&
        kilni_base_sv_to_u64(word.text, &number)) {
      kilni_base_str_addf(to, "%llu",
                          (unsigned long long)number + writer->file_base);
    } else if (word.kind == KILNI_SOFT_WORD_NAME && word.text.data[0] != '%' &&
               !merge_stands_alone(writer, before, text) &&
               merge_is_renamed(writer, word.text)) {
      write_new_name(writer, word.text);
    } else {
      kilni_base_str_add(to, word.text);
    }
    file_next = kilni_base_sv_equal_cstr(word.text, ".loc") ||
                kilni_base_sv_equal_cstr(word.text, ".file") ||
                kilni_base_sv_equal_cstr(word.text, "inlined_at");
    before = word.kind == KILNI_SOFT_WORD_MARK ? word.text.data[0] : 0;
  }
}

static kiln_string_view_t between(const char* begin, const char* end) {
  return kilni_base_sv_make(begin, (size_t)(end - begin));
}

// The head of a declaration with another linkage.
static void write_head(const writer_t* writer,
                       const kilni_soft_statement_t* says,
                       kiln_string_view_t linkage) {
  kilni_base_str_t* to = writer->merge->text;
  kilni_base_str_add(to, linkage);
  kilni_base_str_add_char(to, ' ');
  if (says->linkage.size > 0) {
    write_words(writer, between(says->text.data, says->linkage.data));
    write_words(writer, between(says->linkage.data + says->linkage.size,
                                says->head_end));
  } else {
    write_words(writer, between(says->text.data, says->head_end));
  }
  kilni_base_str_add_char(to, ';');
}

static void write_item(writer_t* writer, const item_t* item) {
  const kilni_soft_statement_t* says = &item->says;
  bool function = says->kind == KILNI_SOFT_STATEMENT_FUNCTION;
  writer->in_function = function;
  if (says->kind == KILNI_SOFT_STATEMENT_HEAD ||
      (says->kind == KILNI_SOFT_STATEMENT_SECTION &&
       writer->merge->part_count > 1)) {
    return;  // one head for all; debug sections: say_left_out
  }
  if (item->fate == DECLARES && function) {
    write_head(writer, says, says->linkage);
  } else if (item->fate == DECLARES) {
    write_head(writer, says, kilni_base_sv(".extern"));
  } else if (item->fate == FOLLOWS && function) {
    write_head(writer, says, item->definition);
  } else {
    write_words(writer, says->text);
  }
  kilni_base_str_add_char(writer->merge->text, '\n');
}

static uint32_t last_file(const kilni_image_ptx_module_t* tree) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < tree->file_count; i++) {
    if (tree->files[i].number > last) last = tree->files[i].number;
  }
  return last;
}

// The items of every part in order, or those that come first.
static void write_items(merge_t* merge, bool first) {
  writer_t writer = {merge, 0, 0, false};
  for (size_t i = 0; i < merge->item_count; i++) {
    const item_t* item = &merge->items[i];
    while (writer.part < item->part) {
      writer.file_base += last_file(merge->parts[writer.part].tree);
      writer.part++;
    }
    if (item->fate == GOES || (item->fate == COMES_FIRST) != first) continue;
    write_item(&writer, item);
  }
}

static bool merge_is_newer(const kilni_image_ptx_module_t* a,
                           const kilni_image_ptx_module_t* b) {
  return a->version_major != b->version_major
             ? a->version_major > b->version_major
             : a->version_minor > b->version_minor;
}

// The newest version and the highest target.
static void write_top(merge_t* merge) {
  const kilni_image_ptx_module_t* version = merge->parts[0].tree;
  const kilni_image_ptx_module_t* target = version;
  bool debug = false;
  kilni_base_str_addf(merge->text, "//\n// Linked from %zu PTX text%s:\n",
                      merge->part_count, merge->part_count == 1 ? "" : "s");
  for (size_t i = 0; i < merge->part_count; i++) {
    const kilni_image_ptx_module_t* tree = merge->parts[i].tree;
    if (merge_is_newer(tree, version)) version = tree;
    if (tree->target_sm > target->target_sm ||
        (tree->target_sm == target->target_sm && tree->target_suffix != 0)) {
      target = tree;
    }
    debug = debug || tree->debug != 0;
    kilni_base_str_add_cstr(merge->text, "//   ");
    for (const char* c = merge->parts[i].name; *c != '\0'; c++) {
      kilni_base_str_add_char(merge->text, *c < ' ' ? '?' : *c);
    }
    kilni_base_str_add_char(merge->text, '\n');
  }
  kilni_base_str_addf(
      merge->text, "//\n.version %u.%u\n.target %s%s%s\n",
      version->version_major, version->version_minor, target->target_text,
      merge->parts[0].tree->texmode_independent ? ", texmode_independent" : "",
      debug ? ", debug" : "");
  kilni_base_str_addf(merge->text, ".address_size %u\n\n",
                      target->address_size);
}

// ---- The merge ----

// Only one text alone keeps its debug sections: they name places in the text.
static void say_left_out(merge_t* merge) {
  uint32_t last = UINT32_MAX;
  if (merge->part_count < 2) return;
  for (size_t i = 0; i < merge->item_count; i++) {
    const item_t* item = &merge->items[i];
    if (item->says.kind != KILNI_SOFT_STATEMENT_SECTION || item->part == last) {
      continue;
    }
    last = item->part;
    kilni_base_str_addf(
        merge->infos,
        "info    : the debug sections of '%s' were left out; line "
        "numbers stay\n",
        merge->parts[last].name);
  }
}

static kiln_status_t merge_run(merge_t* merge) {
  for (size_t i = 0; i < merge->part_count; i++) {
    KILNI_RETURN_IF_ERROR(merge_read_part(merge, (uint32_t)i));
  }
  KILNI_RETURN_IF_ERROR(merge_sort_names(merge));
  for (size_t i = 0; i < merge->named_count;) {
    group_t group = group_at(merge, i);
    merge_settle(merge, &group);
    i += group.count;
  }
  for (size_t i = 0; i < merge->part_count; i++) {
    KILNI_RETURN_IF_ERROR(merge_check_part(merge, i));
  }
  if (merge->errors->size > 0) return kilni_base_str_status(merge->errors);
  write_top(merge);
  write_items(merge, true);
  write_items(merge, false);
  say_left_out(merge);
  KILNI_RETURN_IF_ERROR(kilni_base_str_status(merge->infos));
  KILNI_RETURN_IF_ERROR(kilni_base_str_status(merge->errors));
  return kilni_base_str_status(merge->text);
}

kiln_status_t kilni_soft_merge(kiln_allocator_t allocator,
                               const kilni_soft_part_t* parts, size_t count,
                               kilni_base_str_t* out_text,
                               kilni_base_str_t* out_errors,
                               kilni_base_str_t* out_infos) {
  merge_t merge;
  memset(&merge, 0, sizeof(merge));
  merge.allocator = allocator;
  merge.parts = parts;
  merge.part_count = count;
  merge.text = out_text;
  merge.errors = out_errors;
  merge.infos = out_infos;
  kiln_status_t status = merge_run(&merge);
  kilni_base_free_array(allocator, merge.named, merge.item_count,
                        sizeof(*merge.named));
  kilni_base_free_array(allocator, merge.items, merge.item_capacity,
                        sizeof(*merge.items));
  return status;
}
