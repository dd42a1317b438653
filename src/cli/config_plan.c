// SPDX-License-Identifier: Apache-2.0
//
// cli: what a build needs from a CUDA toolkit, found and checked.
#include "cli/config_plan.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli_report.h"
#include "cli/config_places.h"
#include "cli/config_words.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"

static bool config_plan_is_on(const kilni_cli_config_t* config,
                              const char* option) {
  return kilni_cli_option_value(config->call, option) != NULL;
}

size_t kilni_cli_config_component_count(const kilni_cli_config_t* config) {
  return config->components.size / sizeof(kilni_cli_config_component_t);
}

const kilni_cli_config_component_t* kilni_cli_config_component(
    const kilni_cli_config_t* config, size_t index) {
  return (const kilni_cli_config_component_t*)(const void*)
             config->components.data +
         index;
}

size_t kilni_cli_config_piece_count(const kilni_cli_config_t* config) {
  return config->pieces.size / sizeof(kilni_cli_config_piece_t);
}

const kilni_cli_config_piece_t* kilni_cli_config_piece(
    const kilni_cli_config_t* config, size_t index) {
  return (const kilni_cli_config_piece_t*)(const void*)config->pieces.data +
         index;
}

const kiln_locate_entry_t* kilni_cli_config_entry(
    const kilni_cli_config_piece_t* piece) {
  return kiln_locate_item_entry(kiln_toolkit_item_located(piece->item));
}

uint32_t kilni_cli_config_kind(const kilni_cli_config_piece_t* piece) {
  return kiln_locate_entry_kind(kilni_cli_config_entry(piece));
}

const char* kilni_cli_config_path(const kilni_cli_config_piece_t* piece) {
  return kiln_locate_item_path(kiln_toolkit_item_located(piece->item));
}

bool kilni_cli_config_is_first(const kilni_cli_config_t* config, size_t index) {
  const kiln_locate_entry_t* entry =
      kilni_cli_config_entry(kilni_cli_config_piece(config, index));
  for (size_t i = 0; i < index; i++) {
    if (kilni_cli_config_entry(kilni_cli_config_piece(config, i)) == entry) {
      return false;
    }
  }
  return true;
}

// ---- What is wanted ----

static bool read_components(kilni_cli_config_t* config) {
  static const char* const usual[] = {"cudart"};
  const char* const* names = config->call->operands;
  size_t count = config->call->operand_count;
  if (count == 0) {
    names = usual;
    count = 1;
  }
  for (size_t i = 0; i < count; i++) {
    kilni_cli_config_component_t component;
    if (!kilni_cli_config_component_read(
            &component, names[i], config->prefer_static, config->error) ||
        !kilni_cli_buffer_add(&config->components, &component,
                              sizeof(component), config->error)) {
      return false;
    }
  }
  return true;
}

static bool read_mode(kilni_cli_config_t* config, uint32_t* out_mode) {
  if (!kilni_cli_mode_read(config->call, out_mode, config->error)) return false;
  // --hermetic ignores the variable.
  if (*out_mode == KILN_COMPAT_MODE_DEFAULT &&
      config_plan_is_on(config, "hermetic")) {
    *out_mode = KILN_COMPAT_MODE_BEST_EFFORT;
  }
  return true;
}

static bool config_plan_make_context(kilni_cli_config_t* config) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  // A build needs no driver and no GPU.
  kiln_compat_driver_t driver = kiln_compat_driver_default();
  driver.state = KILN_COMPAT_DRIVER_NONE;
  if (!kilni_cli_where_read(&config->where, config->call, config->error) ||
      !read_mode(config, &options.mode)) {
    return false;
  }
  // A library loaded into this process is not part of a toolkit.
  config->where.options.loaded = KILN_SWITCH_OFF;
  options.locate = &config->where.options;
  options.default_mode = KILN_COMPAT_MODE_BEST_EFFORT;
  options.ctk_version = kilni_cli_option_value(config->call, "ctk-version");
  options.driver = &driver;
  if (config_plan_is_on(config, "verify")) options.verify = KILN_SWITCH_ON;
  return kilni_cli_check(config->error,
                         kiln_toolkit_create(&options, &config->toolkit));
}

// ---- Finding ----

static bool config_plan_keep(kilni_cli_config_t* config,
                             kiln_locate_item_t* located, size_t component,
                             kilni_cli_config_role_t role) {
  kilni_cli_config_piece_t piece = {NULL, component, role};
  if (!kilni_cli_check(config->error,
                       kiln_toolkit_resolve_located(config->toolkit, located,
                                                    &piece.item))) {
    return false;
  }
  if (kilni_cli_buffer_add(&config->pieces, &piece, sizeof(piece),
                           config->error)) {
    return true;
  }
  kiln_toolkit_item_release(piece.item);
  return false;
}

static bool config_plan_has(const kilni_cli_config_t* config, uint32_t kind,
                            const char* name) {
  const kiln_locate_entry_t* entry = kiln_locate_entry_find(kind, name);
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    if (kilni_cli_config_entry(kilni_cli_config_piece(config, i)) == entry) {
      return true;
    }
  }
  return false;
}

static bool is_driver_stub(const kilni_cli_piece_t* piece) {
  return piece->kind == KILN_LOCATE_KIND_STUB &&
         kiln_locate_entry_class(kiln_locate_entry_find(
             piece->kind, piece->name)) == KILN_LOCATE_CLASS_DRIVER;
}

// Fills `wants` and, for each, the component that it belongs to.
static bool list_wants(kilni_cli_config_t* config, kilni_cli_buffer_t* wants,
                       kilni_cli_buffer_t* owners) {
  for (size_t i = 0; i < kilni_cli_config_component_count(config); i++) {
    const kilni_cli_config_component_t* c =
        kilni_cli_config_component(config, i);
    for (size_t j = 0; j < c->piece_count; j++) {
      kiln_locate_want_t want = {c->pieces[j].kind, 0, c->pieces[j].name};
      if (is_driver_stub(&c->pieces[j])) continue;
      if (!kilni_cli_buffer_add(wants, &want, sizeof(want), config->error) ||
          !kilni_cli_buffer_add(owners, &i, sizeof(i), config->error)) {
        return false;
      }
    }
  }
  return true;
}

// Adds what it was needed for.
static bool require_set(kilni_cli_config_t* config,
                        const kiln_locate_set_t* set) {
  char names[256] = "";
  size_t at = 0;
  if (kilni_cli_check(config->error, kiln_locate_set_require(set))) return true;
  for (size_t i = 0; i < kilni_cli_config_component_count(config); i++) {
    int n = snprintf(names + at, sizeof(names) - at, "%s%s", i == 0 ? "" : " ",
                     kilni_cli_config_component(config, i)->name);
    if (n < 0 || (size_t)n >= sizeof(names) - at) break;
    at += (size_t)n;
  }
  kilni_cli_error_prefix(config->error, "for %s", names);
  return false;
}

static bool config_plan_find_set(kilni_cli_config_t* config) {
  kilni_cli_buffer_t wants = {0}, owners = {0};
  kiln_locate_set_t* set = NULL;
  bool ok = list_wants(config, &wants, &owners);
  uint32_t count = (uint32_t)(wants.size / sizeof(kiln_locate_want_t));
  const size_t* owner = (const size_t*)(const void*)owners.data;
  if (ok && count != 0) {
    ok = kilni_cli_check(
        config->error,
        kiln_locate_find_set(kiln_toolkit_locate(config->toolkit),
                             (const kiln_locate_want_t*)(const void*)wants.data,
                             count, &set));
    if (ok && !require_set(config, set)) {
      kilni_cli_config_places_explain(config);
      ok = false;
    }
    for (uint32_t i = 0; ok && i < count; i++) {
      ok = config_plan_keep(config, kiln_locate_set_item(set, i), owner[i],
                            KILNI_CONFIG_ASKED);
    }
    ok = ok && kilni_cli_config_places_check(config);
  }
  kiln_locate_set_release(set);
  kilni_cli_buffer_deinit(&wants);
  kilni_cli_buffer_deinit(&owners);
  return ok;
}

// Adds a component from the same place, if it exists.
static bool add_beside(kilni_cli_config_t* config, uint32_t kind,
                       const char* name, size_t component,
                       kilni_cli_config_role_t role) {
  kiln_locate_item_t* item = NULL;
  if (kilni_cli_config_piece_count(config) == 0 ||
      config_plan_has(config, kind, name)) {
    return true;
  }
  if (kiln_locate_entry_find(kind, name) == NULL) return true;
  kiln_locate_item_t* first =
      kiln_toolkit_item_located(kilni_cli_config_piece(config, 0)->item);
  bool ok = kilni_cli_check(
      config->error,
      kiln_locate_find_beside(kiln_toolkit_locate(config->toolkit), first, kind,
                              name, &item));
  if (ok && kiln_locate_item_found(item)) {
    ok = config_plan_keep(config, item, component, role);
  }
  kiln_locate_item_release(item);
  return ok;
}

// The driver is linked through its stub, of this toolkit or another; where
// there is none, through the driver itself.
static bool add_driver(kilni_cli_config_t* config, size_t component,
                       const char* name) {
  static const uint32_t kinds[] = {KILN_LOCATE_KIND_STUB, KILN_LOCATE_KIND_LIB};
  kiln_locate_t* locate = kiln_toolkit_locate(config->toolkit);
  if (!add_beside(config, KILN_LOCATE_KIND_STUB, name, component,
                  KILNI_CONFIG_ASKED)) {
    return false;
  }
  if (config_plan_has(config, KILN_LOCATE_KIND_STUB, name)) return true;
  for (size_t i = 0; i < 2; i++) {
    kiln_locate_item_t* item = NULL;
    bool ok = kilni_cli_check(config->error,
                              kiln_locate_find(locate, kinds[i], name, &item));
    bool found = ok && kiln_locate_item_found(item);
    if (found) {
      ok = config_plan_keep(config, item, component, KILNI_CONFIG_ASKED);
    }
    if (ok && !found && i == 1) {
      ok = kilni_cli_check(config->error, kiln_locate_item_require(item));
    }
    kiln_locate_item_release(item);
    if (!ok || found) return ok;
  }
  return true;
}

static bool add_drivers(kilni_cli_config_t* config) {
  for (size_t i = 0; i < kilni_cli_config_component_count(config); i++) {
    const kilni_cli_config_component_t* c =
        kilni_cli_config_component(config, i);
    for (size_t j = 0; j < c->piece_count; j++) {
      if (is_driver_stub(&c->pieces[j]) &&
          !add_driver(config, i, c->pieces[j].name)) {
        return false;
      }
    }
  }
  return true;
}

static bool add_static_needs(kilni_cli_config_t* config, const char* needs,
                             size_t component) {
  for (;;) {
    char name[KILNI_CLI_NAME_BYTES];
    needs += strspn(needs, " ");
    size_t size = strcspn(needs, " ");
    if (size == 0) return true;
    (void)snprintf(name, sizeof(name), "%.*s", (int)size, needs);
    needs += size;
    if (name[0] == '-') continue;
    // One runtime is enough: the shared one will do.
    if (strcmp(name, "cudart_static") == 0 &&
        config_plan_has(config, KILN_LOCATE_KIND_LIB, "cudart")) {
      continue;
    }
    if (!add_beside(config, KILN_LOCATE_KIND_STATIC, name, component,
                    KILNI_CONFIG_LINKED)) {
      return false;
    }
  }
}

// What the components need in turn; the list grows while it is walked.
static bool add_needs(kilni_cli_config_t* config) {
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    const kilni_cli_config_piece_t piece = *kilni_cli_config_piece(config, i);
    const kiln_locate_entry_t* entry = kilni_cli_config_entry(&piece);
    uint32_t kind = kiln_locate_entry_kind(entry);
    const char* name = kiln_locate_entry_name(entry);
    if (kind == KILN_LOCATE_KIND_STATIC &&
        !add_static_needs(config, kilni_cli_config_static_needs(name),
                          piece.component)) {
      return false;
    }
    uint32_t count =
        kind != KILN_LOCATE_KIND_LIB
            ? 0
            : kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_NEEDS);
    for (uint32_t j = 0; j < count; j++) {
      if (!add_beside(
              config, KILN_LOCATE_KIND_LIB,
              kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_NEEDS, j),
              piece.component, KILNI_CONFIG_NEEDED)) {
        return false;
      }
    }
  }
  return true;
}

static bool add_headers(kilni_cli_config_t* config) {
  for (size_t i = 0; i < kilni_cli_config_component_count(config); i++) {
    if (!kilni_cli_config_component(config, i)->wants_runtime_headers) continue;
    if (!add_beside(config, KILN_LOCATE_KIND_HEADER, "cudart", i,
                    KILNI_CONFIG_LINKED) ||
        !add_beside(config, KILN_LOCATE_KIND_HEADER, "crt", i,
                    KILNI_CONFIG_LINKED)) {
      return false;
    }
  }
  return true;
}

// ---- Checking ----

static void tell_findings(const kilni_cli_config_t* config) {
  uint32_t count = kiln_compat_report_finding_count(config->report);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_compat_finding_t* f =
        kiln_compat_report_finding(config->report, i);
    if (f->counts && f->verdict == KILN_COMPAT_VERDICT_INCOMPATIBLE) {
      kilni_cli_note("%s", f->message);
    }
  }
}

static bool config_plan_check(kilni_cli_config_t* config) {
  kilni_cli_buffer_t items = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < kilni_cli_config_piece_count(config); i++) {
    ok = kilni_cli_buffer_add(&items, &kilni_cli_config_piece(config, i)->item,
                              sizeof(kiln_toolkit_item_t*), config->error);
  }
  uint32_t mode = kiln_toolkit_mode(config->toolkit);
  uint32_t count = (uint32_t)kilni_cli_config_piece_count(config);
  ok = ok &&
       kilni_cli_check(
           config->error,
           kiln_toolkit_check(config->toolkit,
                              (kiln_toolkit_item_t* const*)(void*)items.data,
                              count, NULL, 0, &config->report)) &&
       kilni_cli_check(config->error,
                       kiln_compat_report_status(config->report, mode));
  if (ok && mode == KILN_COMPAT_MODE_WARN) tell_findings(config);
  kilni_cli_buffer_deinit(&items);
  return ok;
}

// ---- The whole ----

bool kilni_cli_config_make(kilni_cli_config_t* config) {
  return read_components(config) && config_plan_make_context(config) &&
         config_plan_find_set(config) && add_drivers(config) &&
         add_headers(config) && add_needs(config) &&
         config_plan_check(config) && kilni_cli_config_words_fill(config);
}

void kilni_cli_config_deinit(kilni_cli_config_t* config) {
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    kiln_toolkit_item_release(kilni_cli_config_piece(config, i)->item);
  }
  kiln_compat_report_release(config->report);
  kiln_toolkit_release(config->toolkit);
  kilni_cli_where_deinit(&config->where);
  kilni_cli_buffer_deinit(&config->components);
  kilni_cli_buffer_deinit(&config->pieces);
  kilni_cli_words_t* lists[] = {&config->includes, &config->library_dirs,
                                &config->rpaths,   &config->rpath_links,
                                &config->links,    &config->cflags,
                                &config->libs};
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
    kilni_cli_words_deinit(lists[i]);
  }
}
