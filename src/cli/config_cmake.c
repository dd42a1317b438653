// SPDX-License-Identifier: Apache-2.0
//
// cli: a plan as a CMake script of imported targets.
#include <stdio.h>
#include <string.h>

#include "cli/config_form.h"
#include "cli/config_words.h"
#include "kiln/locate_catalog.h"
#include "kiln/version.h"

// A script being written. one-thread
typedef struct script_t {
  const kilni_cli_config_t* config;
  kilni_cli_buffer_t* out;
  bool ok;
} script_t;

static void config_cmake_add(script_t* s, const char* text) {
  s->ok = s->ok &&
          kilni_cli_buffer_add(s->out, text, strlen(text), s->config->error);
}

static void add_quoted(script_t* s, kilni_cli_config_quote_t how,
                       const char* text) {
  s->ok = s->ok && kilni_cli_config_quote(s->out, how, text, s->config->error);
}

static void set_text(script_t* s, const char* name, const char* text) {
  config_cmake_add(s, "set(");
  config_cmake_add(s, name);
  config_cmake_add(s, " \"");
  add_quoted(s, KILNI_CONFIG_CMAKE, text);
  config_cmake_add(s, "\")\n");
}

// Elements of a list are separated, not ended.
static void add_element(script_t* s, bool* any, const char* text) {
  if (*any) config_cmake_add(s, ";");
  *any = true;
  add_quoted(s, KILNI_CONFIG_CMAKE_LIST, text);
}

static void set_list(script_t* s, const char* name,
                     const kilni_cli_words_t* words) {
  const char* at = NULL;
  bool any = false;
  config_cmake_add(s, "set(");
  config_cmake_add(s, name);
  config_cmake_add(s, " \"");
  while ((at = kilni_cli_words_next(words, at)) != NULL) {
    add_element(s, &any, at);
  }
  config_cmake_add(s, "\")\n");
}

// ---- Targets ----

static void property_begin(script_t* s, const char* name) {
  config_cmake_add(s, "\n    ");
  config_cmake_add(s, name);
  config_cmake_add(s, " \"");
}

static void property_end(script_t* s) {
  config_cmake_add(s, "\"");
}

static bool is_runtime_header(const kilni_cli_config_piece_t* piece) {
  const char* name = kiln_locate_entry_name(kilni_cli_config_entry(piece));
  return strcmp(name, "cudart") == 0 || strcmp(name, "crt") == 0;
}

static void add_includes(script_t* s, size_t component) {
  const kilni_cli_config_component_t* c =
      kilni_cli_config_component(s->config, component);
  kilni_cli_words_t folders = {0};
  const char* at = NULL;
  for (size_t i = 0; i < kilni_cli_config_piece_count(s->config); i++) {
    const kilni_cli_config_piece_t* p = kilni_cli_config_piece(s->config, i);
    bool mine = p->component == component ||
                (c->wants_runtime_headers && is_runtime_header(p));
    if (kilni_cli_config_kind(p) == KILN_LOCATE_KIND_HEADER && mine) {
      s->ok =
          s->ok && kilni_cli_words_add_once(&folders, kilni_cli_config_path(p),
                                            s->config->error);
    }
  }
  if (folders.count != 0) {
    property_begin(s, "INTERFACE_INCLUDE_DIRECTORIES");
    bool any = false;
    while ((at = kilni_cli_words_next(&folders, at)) != NULL) {
      add_element(s, &any, at);
    }
    property_end(s);
  }
  kilni_cli_words_deinit(&folders);
}

static const kilni_cli_config_piece_t* config_cmake_piece_named(
    const script_t* s, uint32_t kind, const char* name) {
  const kiln_locate_entry_t* entry = kiln_locate_entry_find(kind, name);
  for (size_t i = 0; i < kilni_cli_config_piece_count(s->config); i++) {
    const kilni_cli_config_piece_t* p = kilni_cli_config_piece(s->config, i);
    if (entry != NULL && kilni_cli_config_entry(p) == entry) return p;
  }
  return NULL;
}

static void add_static_links(script_t* s, const char* needs) {
  bool any = false;
  property_begin(s, "INTERFACE_LINK_LIBRARIES");
  for (;;) {
    char word[KILNI_CLI_NAME_BYTES];
    needs += strspn(needs, " ");
    size_t size = strcspn(needs, " ");
    if (size == 0) break;
    (void)snprintf(word, sizeof(word), "%.*s", (int)size, needs);
    needs += size;
    const kilni_cli_config_piece_t* p =
        config_cmake_piece_named(s, KILN_LOCATE_KIND_STATIC, word);
    if (word[0] == '-') {
      add_element(s, &any, word);
    } else if (p != NULL) {
      add_element(s, &any, kilni_cli_config_path(p));
    }
  }
  property_end(s);
}

static void add_shared_needs(script_t* s, const kiln_locate_entry_t* entry) {
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_NEEDS);
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    const kilni_cli_config_piece_t* p = config_cmake_piece_named(
        s, KILN_LOCATE_KIND_LIB,
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_NEEDS, i));
    if (p == NULL) continue;
    if (!any) property_begin(s, "IMPORTED_LINK_DEPENDENT_LIBRARIES");
    add_element(s, &any, kilni_cli_config_path(p));
  }
  if (any) property_end(s);
}

static void add_location(script_t* s, const kilni_cli_config_piece_t* piece) {
  property_begin(s, "IMPORTED_LOCATION");
  add_quoted(s, KILNI_CONFIG_CMAKE, kilni_cli_config_path(piece));
  property_end(s);
}

// A stub is linked by name: given its path, CMake would add its folder to those
// that the loader searches.
static void add_stub(script_t* s, const kilni_cli_config_piece_t* piece) {
  char folder[8192];
  if (!kilni_cli_config_folder(piece, folder, sizeof(folder))) return;
  property_begin(s, "INTERFACE_LINK_OPTIONS");
  config_cmake_add(s, "-L");
  add_quoted(s, KILNI_CONFIG_CMAKE_LIST, folder);
  property_end(s);
  property_begin(s, "INTERFACE_LINK_LIBRARIES");
  config_cmake_add(s, "-l:");
  config_cmake_add(s, strrchr(kilni_cli_config_path(piece), '/') + 1);
  property_end(s);
}

// The component that a target represents; NULL: headers alone.
static const kilni_cli_config_piece_t* main_piece(const script_t* s,
                                                  size_t component) {
  for (size_t i = 0; i < kilni_cli_config_piece_count(s->config); i++) {
    const kilni_cli_config_piece_t* p = kilni_cli_config_piece(s->config, i);
    if (p->component == component && p->role == KILNI_CONFIG_ASKED &&
        kilni_cli_config_kind(p) != KILN_LOCATE_KIND_HEADER) {
      return p;
    }
  }
  return NULL;
}

static void config_cmake_add_target(script_t* s, size_t component) {
  const kilni_cli_config_piece_t* piece = main_piece(s, component);
  uint32_t kind =
      piece == NULL ? KILN_LOCATE_KIND_HEADER : kilni_cli_config_kind(piece);
  char name[KILNI_CLI_NAME_BYTES + 16], line[512];
  if (kind == KILN_LOCATE_KIND_BITCODE) return;
  (void)snprintf(name, sizeof(name), "kiln::cuda_%s",
                 kilni_cli_config_component(s->config, component)->name);
  (void)snprintf(line, sizeof(line), "if(NOT TARGET %s)\n  add_%s", name,
                 kind == KILN_LOCATE_KIND_BINARY ? "executable" : "library");
  config_cmake_add(s, line);
  (void)snprintf(line, sizeof(line), "(%s%s IMPORTED)", name,
                 kind == KILN_LOCATE_KIND_BINARY   ? ""
                 : kind == KILN_LOCATE_KIND_LIB    ? " SHARED"
                 : kind == KILN_LOCATE_KIND_STATIC ? " STATIC"
                                                   : " INTERFACE");
  config_cmake_add(s, line);
  (void)snprintf(line, sizeof(line),
                 "\n  set_target_properties(%s PROPERTIES\n"
                 "    KILN_COMPONENT \"%s\"",
                 name, kilni_cli_config_component(s->config, component)->name);
  config_cmake_add(s, line);
  if (kind != KILN_LOCATE_KIND_HEADER && kind != KILN_LOCATE_KIND_STUB) {
    add_location(s, piece);
  }
  if (kind == KILN_LOCATE_KIND_STUB) add_stub(s, piece);
  if (kind == KILN_LOCATE_KIND_LIB) {
    add_shared_needs(s, kilni_cli_config_entry(piece));
  }
  if (kind == KILN_LOCATE_KIND_STATIC) {
    add_static_links(s, kilni_cli_config_static_needs(kiln_locate_entry_name(
                            kilni_cli_config_entry(piece))));
  }
  if (kind != KILN_LOCATE_KIND_BINARY) add_includes(s, component);
  config_cmake_add(s, ")\nendif()\n");
}

bool kilni_cli_config_cmake_text(const kilni_cli_config_t* config,
                                 kilni_cli_buffer_t* out) {
  script_t s = {config, out, true};
  char name[256];
  config_cmake_add(&s, "# made by kiln ");
  config_cmake_add(&s, kiln_version_string());
  config_cmake_add(&s, "\n");
  set_text(&s, "KILN_CUDA_VERSION", config->version);
  set_text(&s, "KILN_CUDA_ROOT", config->root);
  set_list(&s, "KILN_CUDA_INCLUDE_DIRS", &config->includes);
  set_list(&s, "KILN_CUDA_LIBRARY_DIRS", &config->library_dirs);
  set_list(&s, "KILN_CUDA_RPATH_DIRS", &config->rpaths);
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
    if (piece->role == KILNI_CONFIG_NEEDED ||
        !kilni_cli_config_is_first(config, i)) {
      continue;
    }
    kilni_cli_config_variable(piece, name, sizeof(name));
    set_text(&s, name, kilni_cli_config_path(piece));
  }
  for (size_t i = 0; i < kilni_cli_config_component_count(config); i++) {
    config_cmake_add_target(&s, i);
  }
  return s.ok;
}
