// SPDX-License-Identifier: Apache-2.0
//
// toolkit: a located component, with all sources for its release.
//
// Gathers what locate/ read; compat/ concludes.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"
#include "table/nvvm_table.h"
#include "toolkit/toolkit.h"
#include "toolkit/toolkit_inside.h"

// ---- Evidence ----

// Evidence while it is gathered; its texts are offsets until the end, since
// the buffer moves as it grows. one-thread
typedef struct gather_t {
  kiln_toolkit_item_t* item;
  uint32_t count;
  kiln_compat_evidence_t evidence[KILNI_TOOLKIT_MAX_EVIDENCE];
  size_t texts[KILNI_TOOLKIT_MAX_EVIDENCE];
} gather_t;

// `what` "text", and where it was read.
static void item_add(gather_t* gather, uint32_t source, uint32_t line,
                     const char* what, const char* text, const char* where) {
  kiln_toolkit_item_t* item = gather->item;
  if (line == 0 || gather->count == KILNI_TOOLKIT_MAX_EVIDENCE) return;
  uint32_t at = gather->count++;
  gather->evidence[at].source = source;
  gather->evidence[at].line = line;
  gather->texts[at] = item->texts.size;
  kilni_base_str_add_cstr(&item->texts, what);
  if (text != NULL && text[0] != 0) {
    if (what[0] != 0) kilni_base_str_add_char(&item->texts, ' ');
    kilni_base_str_add_cstr(&item->texts, text);
  }
  if (where != NULL && where[0] != 0) {
    kilni_base_str_add_cstr(&item->texts, " (");
    kilni_base_str_add_cstr(&item->texts, where);
    kilni_base_str_add_char(&item->texts, ')');
  }
  kilni_base_str_add_char(&item->texts, 0);
}

static void add_wheel(gather_t* gather, const kilni_locate_owner_t* owner) {
  kiln_compat_evidence_t wheel =
      kiln_compat_evidence_of_wheel(owner->name, owner->version);
  char text[512];
  snprintf(text, sizeof(text), "%s %s", owner->name, owner->version);
  item_add(gather, wheel.source, wheel.line, "wheel", text, NULL);
}

static void item_add_package(gather_t* gather,
                             const kilni_locate_package_t* package) {
  kiln_compat_evidence_t said = kiln_compat_evidence_of_package(
      package->name, package->version, package->source, package->toolkit);
  const char* manager =
      package->manager == KILNI_PACKAGE_CONDA ? "conda" : "dpkg";
  char text[512];
  snprintf(text, sizeof(text), "%s %s", package->name, package->version);
  item_add(gather, said.source, said.line, manager, text, NULL);
}

static void add_pins(gather_t* gather, const kilni_locate_facts_t* facts) {
  for (uint32_t i = 0; i < facts->pin_count; i++) {
    const kilni_locate_pin_t* pin = &facts->pins[i];
    char text[640];
    kiln_compat_evidence_t said = kiln_compat_evidence_of_pin(
        pin->toolkit_version, pin->name, pin->specifier, facts->owner->name,
        facts->owner->version);
    snprintf(text, sizeof(text), "cuda-toolkit %s requires %s%s",
             pin->toolkit_version, pin->name, pin->specifier);
    item_add(gather, said.source, said.line, text, NULL, NULL);
  }
}

static void add_file(gather_t* gather, uint32_t source, const char* what,
                     const kilni_locate_line_t* line) {
  item_add(gather, source, line->line, what, line->text, line->path);
}

static void gather_all(gather_t* gather, const kilni_locate_facts_t* facts,
                       const kilni_toolkit_call_t* call) {
  item_add(gather, KILN_COMPAT_SOURCE_SYMBOL, facts->symbol.line, "symbol",
           facts->symbol.text, NULL);
  item_add(gather, KILN_COMPAT_SOURCE_TEXT, facts->release.line, "text",
           facts->release.text, NULL);
  item_add(gather, KILN_COMPAT_SOURCE_SIBLING, facts->sibling.line, "sibling",
           facts->sibling.text, NULL);
  if (call != NULL && call->name != NULL) {
    item_add(gather, KILN_COMPAT_SOURCE_CALL, call->line, "call", call->name,
             NULL);
  }
  if (facts->owner != NULL) {
    add_wheel(gather, facts->owner);
    add_pins(gather, facts);
  }
  if (facts->package != NULL) item_add_package(gather, facts->package);
  if (facts->header_same_owner) {
    add_file(gather, KILN_COMPAT_SOURCE_HEADER, "cuda.h", &facts->header);
  }
  add_file(gather, KILN_COMPAT_SOURCE_VERSION_FILE, "version.json",
           &facts->version_json);
  add_file(gather, KILN_COMPAT_SOURCE_VERSION_FILE, "version.txt",
           &facts->version_txt);
}

static void drop_evidence(kiln_toolkit_item_t* item) {
  kilni_base_free_array(item->allocator, item->evidence, item->evidence_count,
                        sizeof(kiln_compat_evidence_t));
  item->evidence = NULL;
  item->evidence_count = 0;
  kilni_base_str_deinit(&item->texts);
}

static kiln_status_t item_conclude(kiln_toolkit_item_t* item,
                                   const kilni_toolkit_call_t* call) {
  gather_t gather;
  gather.item = item;
  gather.count = 0;
  drop_evidence(item);
  uint32_t class_id =
      kiln_locate_entry_class(kiln_locate_item_entry(item->located));
  if (class_id == KILN_LOCATE_CLASS_CTK) {
    gather_all(&gather, item->facts, call);
  }
  KILNI_RETURN_IF_ERROR(kilni_base_str_status(&item->texts));
  for (uint32_t i = 0; i < gather.count; i++) {
    gather.evidence[i].text = item->texts.data + gather.texts[i];
  }
  item->conclusion = kiln_compat_line_conclude(gather.evidence, gather.count);
  if (gather.count == 0) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      item->allocator, gather.count, sizeof(kiln_compat_evidence_t), &block));
  memcpy(block, gather.evidence, gather.count * sizeof(kiln_compat_evidence_t));
  item->evidence = block;
  item->evidence_count = gather.count;
  return kiln_ok();
}

// ---- Facts ----

static kiln_status_t reader_get(kiln_toolkit_t* toolkit,
                                kilni_locate_reader_t** out_reader) {
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status = kiln_ok();
  if (toolkit->reader == NULL) {
    status = kilni_locate_reader_create(toolkit->host.allocator,
                                        toolkit->system_root, &toolkit->reader);
  }
  *out_reader = toolkit->reader;
  kilni_locate_reader_retain(toolkit->reader);
  kilni_base_mutex_unlock(&toolkit->lock);
  return status;
}

// True if a root lies above the folder of a file. Where it is that folder
// itself (it was named), the source of the version may be beside it.
static bool item_is_above(const char* root, const char* file) {
  size_t size = strlen(root);
  const char* slash = strrchr(file, '/');
  return size != 0 && slash != NULL && strncmp(file, root, size) == 0 &&
         (size_t)(slash - file) != size;
}

static kiln_status_t item_read_facts(kiln_toolkit_item_t* item,
                                     uint32_t depth) {
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(item->located);
  const char* root = kiln_locate_item_root(item->located);
  kilni_locate_facts_query_t query = {0};
  query.path = kiln_locate_item_file(item->located);
  query.name = kiln_locate_entry_name(entry);
  query.kind = kiln_locate_entry_kind(entry);
  if (item_is_above(root, query.path)) query.prefix = root;
  if (root[0] != 0 &&
      kiln_locate_item_scope(item->located) == KILN_LOCATE_SCOPE_WHEEL) {
    query.sites = &root;
    query.site_count = 1;
  }
  // Of a folder of headers the real path is the folder's.
  if (query.kind != KILN_LOCATE_KIND_HEADER) {
    query.real_path = kiln_locate_item_real_path(item->located);
  }
  return kilni_locate_facts_read(item->reader, &query, depth, &item->facts);
}

// The expensive evidence is read where the cheap one is silent or
// contradictory.
static bool needs_more(const kiln_toolkit_item_t* item) {
  return kiln_locate_entry_class(kiln_locate_item_entry(item->located)) ==
             KILN_LOCATE_CLASS_CTK &&
         (item->conclusion.line == 0 || item->conclusion.against != UINT32_MAX);
}

static kiln_status_t item_read_version(kiln_toolkit_t* toolkit,
                                       kiln_toolkit_item_t* item,
                                       const kilni_toolkit_call_t* call,
                                       uint32_t depth) {
  KILNI_RETURN_IF_ERROR(reader_get(toolkit, &item->reader));
  kiln_status_t status = item_read_facts(item, depth);
  if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) {
    kiln_status_free(status);  // gone since it was found: nothing is known
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(status);
  KILNI_RETURN_IF_ERROR(item_conclude(item, call));
  bool is_all = depth >= KILNI_LOCATE_FACTS_LINE;
  if (is_all || !needs_more(item)) return kiln_ok();
  KILNI_RETURN_IF_ERROR(item_read_facts(item, KILNI_LOCATE_FACTS_LINE));
  return item_conclude(item, call);
}

// ---- The component as the rules see it ----

static kiln_status_t take_tags(kiln_toolkit_item_t* item,
                               const kiln_locate_entry_t* entry) {
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_TAGS);
  if (count == 0) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(item->allocator, count, sizeof(char*), &block));
  item->tags = block;
  item->tag_count = count;
  for (uint32_t i = 0; i < count; i++) {
    item->tags[i] =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_TAGS, i);
  }
  return kiln_ok();
}

// The component's own version: from itself, its package, its name
// ("libcudart.so.13.0.96" is more exact than "libcudart.so.13"), and for a
// product with a number of its own the header beside it.
static void item_take_release(kiln_toolkit_item_t* item,
                              const kilni_locate_facts_t* facts) {
  const struct {
    const char* version;
    const char* source;
    const char* evidence;
  } said[] = {
      {facts->release_version, "text", facts->release.text},
      {facts->owner != NULL ? facts->owner->version : NULL, "wheel",
       facts->owner != NULL ? facts->owner->name : NULL},
      {facts->name_version, "name", facts->real_path},
      {facts->package != NULL ? facts->package->version : NULL, "package",
       facts->package != NULL ? facts->package->name : NULL},
      {facts->header_release, "header", facts->header_release_path},
  };
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
    if (said[i].version == NULL || said[i].version[0] == 0) continue;
    item->release = said[i].version;
    item->release_source = said[i].source;
    if (said[i].evidence != NULL) item->release_evidence = said[i].evidence;
    return;
  }
}

// What reads or contains NVVM IR: libNVVM, the linker, libdevice. The loaded
// library takes precedence over the table.
static uint32_t nvvm_ir_of(const kiln_compat_fact_t* fact,
                           const kilni_toolkit_call_t* call) {
  if (call != NULL && call->nvvm_ir != 0) return call->nvvm_ir;
  bool is_reader =
      fact->kind == KILN_COMPAT_KIND_LIB &&
      (strcmp(fact->name, "nvvm") == 0 || strcmp(fact->name, "nvJitLink") == 0);
  bool is_held = fact->kind == KILN_COMPAT_KIND_BITCODE &&
                 strcmp(fact->name, "device") == 0;
  return is_reader || is_held ? kiln_compat_line_nvvm_ir(fact->line) : 0;
}

static void make_fact(kiln_toolkit_item_t* item,
                      const kiln_locate_entry_t* entry,
                      const kilni_toolkit_call_t* call) {
  const kilni_locate_facts_t* facts = item->facts;
  const kiln_compat_conclusion_t* said = &item->conclusion;
  kiln_compat_fact_t* fact = &item->fact;
  *fact = kiln_compat_fact_default();
  fact->kind = kiln_locate_entry_kind(entry);
  fact->class_id = kiln_locate_entry_class(entry);
  fact->name = kiln_locate_entry_name(entry);
  fact->component = kiln_locate_entry_component(entry);
  fact->tags = item->tags;
  fact->tag_count = item->tag_count;
  fact->path = kiln_locate_item_path(item->located);
  fact->release = item->release;
  if (facts == NULL) return;
  fact->line = said->line;
  fact->nvvm_ir = nvvm_ir_of(fact, call);
  if (said->strongest != UINT32_MAX) {
    fact->source = said->source;
    fact->evidence = item->evidence[said->strongest].text;
  }
  if (said->against != UINT32_MAX) {
    fact->against_line = item->evidence[said->against].line;
    fact->against = item->evidence[said->against].text;
  }
  if (fact->class_id == KILN_LOCATE_CLASS_OTHER) {
    fact->toolkit_major = facts->built.line != 0
                              ? kiln_compat_line_major(facts->built.line)
                              : kiln_locate_item_major(item->located);
  }
  if (facts->needs.line != 0) {
    item->need.name = "nvJitLink";
    item->need.line = facts->needs.line;
    item->need.text = facts->needs.text;
    fact->needs = &item->need;
    fact->need_count = 1;
  }
}

static kiln_status_t make_item(kiln_toolkit_t* toolkit,
                               kiln_locate_item_t* located,
                               const kilni_toolkit_call_t* call, uint32_t depth,
                               kiln_toolkit_item_t** out_item) {
  *out_item = NULL;
  kiln_allocator_t allocator = toolkit->host.allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_toolkit_item_t), &block));
  kiln_toolkit_item_t* item = block;
  item->allocator = allocator;
  atomic_init(&item->references, 1);
  item->located = located;
  item->release = "";
  item->release_source = "";
  item->release_evidence = "";
  item->conclusion = kiln_compat_line_conclude(NULL, 0);
  kiln_locate_item_retain(located);
  kilni_base_str_init(&item->texts, allocator, KILNI_TOOLKIT_TEXT_BYTES);
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(located);
  kiln_status_t status = take_tags(item, entry);
  if (kiln_status_is_ok(status) && kiln_locate_item_found(located)) {
    status = item_read_version(toolkit, item, call, depth);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_toolkit_item_release(item);
    return status;
  }
  if (item->facts != NULL) item_take_release(item, item->facts);
  make_fact(item, entry, call);
  *out_item = item;
  return kiln_ok();
}

// What is taken into use is asked what it needs.
static uint32_t full_depth(const kiln_toolkit_t* toolkit) {
  return toolkit->depth == KILNI_LOCATE_FACTS_LEAST ? KILNI_LOCATE_FACTS_CHEAP
                                                    : toolkit->depth;
}

kiln_status_t kilni_toolkit_item_make(kiln_toolkit_t* toolkit,
                                      kiln_locate_item_t* located,
                                      const kilni_toolkit_call_t* call,
                                      kiln_toolkit_item_t** out_item) {
  return make_item(toolkit, located, call, full_depth(toolkit), out_item);
}

kiln_status_t kilni_toolkit_item_look(kiln_toolkit_t* toolkit,
                                      kiln_locate_item_t* located,
                                      kiln_toolkit_item_t** out_item) {
  bool is_off = toolkit->policy.mode == KILN_COMPAT_MODE_OFF;
  uint32_t depth = is_off ? toolkit->depth : full_depth(toolkit);
  return make_item(toolkit, located, NULL, depth, out_item);
}

bool kilni_toolkit_item_same(const kiln_toolkit_item_t* a,
                             const kiln_toolkit_item_t* b) {
  return kiln_locate_item_entry(a->located) ==
             kiln_locate_item_entry(b->located) &&
         strcmp(kiln_locate_item_real_path(a->located),
                kiln_locate_item_real_path(b->located)) == 0;
}

// ---- Accessors ----

void kiln_toolkit_item_retain(kiln_toolkit_item_t* item) {
  if (item == NULL) return;
  atomic_fetch_add_explicit(&item->references, 1, memory_order_relaxed);
}

void kiln_toolkit_item_release(kiln_toolkit_item_t* item) {
  if (item == NULL || atomic_fetch_sub_explicit(&item->references, 1,
                                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_locate_item_release(item->located);
  kilni_locate_reader_release(item->reader);
  drop_evidence(item);
  kilni_base_free_array(item->allocator, item->tags, item->tag_count,
                        sizeof(char*));
  kilni_base_free(item->allocator, item, sizeof(*item));
}

kiln_locate_item_t* kiln_toolkit_item_located(const kiln_toolkit_item_t* item) {
  return item->located;
}

uint32_t kiln_toolkit_item_line(const kiln_toolkit_item_t* item) {
  return item->conclusion.line;
}

const char* kiln_toolkit_item_release_text(const kiln_toolkit_item_t* item) {
  return item->release;
}

const char* kiln_toolkit_item_release_source(const kiln_toolkit_item_t* item) {
  return item->release_source;
}

bool kilni_toolkit_item_wheel(const kiln_toolkit_item_t* item,
                              const char** out_name, const char** out_version) {
  const kilni_locate_owner_t* owner =
      item->facts != NULL ? item->facts->owner : NULL;
  *out_name = owner != NULL ? owner->name : "";
  *out_version = owner != NULL ? owner->version : "";
  return owner != NULL;
}

const char* kiln_toolkit_item_release_evidence(
    const kiln_toolkit_item_t* item) {
  return item->release_evidence;
}

kiln_compat_conclusion_t kiln_toolkit_item_conclusion(
    const kiln_toolkit_item_t* item) {
  return item->conclusion;
}

uint32_t kiln_toolkit_item_evidence_count(const kiln_toolkit_item_t* item) {
  return item->evidence_count;
}

const kiln_compat_evidence_t* kiln_toolkit_item_evidence(
    const kiln_toolkit_item_t* item, uint32_t index) {
  return index < item->evidence_count ? &item->evidence[index] : NULL;
}

const kiln_compat_fact_t* kiln_toolkit_item_fact(
    const kiln_toolkit_item_t* item) {
  return &item->fact;
}
