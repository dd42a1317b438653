// SPDX-License-Identifier: Apache-2.0
//
// cli: lock files.
#include "cli/config_lock.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli_output.h"
#include "cli/cli_piece_report.h"
#include "cli/cli_sha256.h"
#include "kiln/version.h"

#define MAX_LOCK_BYTES ((size_t)16 << 20)
#define FORMAT         1

// A piece with what its file holds; NULL if that cannot be read.
static json_t* item_json(const kilni_config_piece_t* piece,
                         kilni_cli_error_t* error) {
  char digest[KILNI_CLI_SHA256_TEXT];
  uint64_t size = 0;
  const char* file =
      kiln_locate_item_file(kiln_toolkit_item_located(piece->item));
  if (!kilni_cli_sha256_file(file, digest, &size, error)) return NULL;
  json_t* object = kilni_cli_item_json(piece->item);
  // Where else was looked is no part of the answer.
  (void)json_object_del(object, "tried");
  (void)json_object_set_new(object, "file", kilni_cli_text_json(file));
  (void)json_object_set_new(object, "size", json_integer((json_int_t)size));
  (void)json_object_set_new(object, "sha256", json_string(digest));
  return object;
}

static json_t* items_json(const kilni_config_t* config) {
  json_t* list = json_array();
  for (size_t i = 0; i < kilni_config_piece_count(config); ++i) {
    if (!kilni_config_is_first(config, i)) continue;
    json_t* item = item_json(kilni_config_piece(config, i), config->error);
    if (item == NULL) {
      json_decref(list);
      return NULL;
    }
    (void)json_array_append_new(list, item);
  }
  return list;
}

// The ITEMs as the user wrote them: they are what is resolved again.
static json_t* components_json(const kilni_config_t* config) {
  json_t* list = json_array();
  for (size_t i = 0; i < config->call->operand_count; ++i)
    (void)json_array_append_new(list,
                                kilni_cli_text_json(config->call->operands[i]));
  return list;
}

// Where the text of a lock file goes. one-thread
typedef struct sink_t {
  kilni_cli_buffer_t* out;
  kilni_cli_error_t* error;
} sink_t;

static int take_text(const char* text, size_t size, void* user) {
  sink_t* sink = user;
  return kilni_cli_buffer_add(sink->out, text, size, sink->error) ? 0 : -1;
}

bool kilni_config_lock_write(const kilni_config_t* config, const char* path) {
  json_t* items = items_json(config);
  if (items == NULL) return false;
  json_t* lock =
      json_pack("{s:i,s:s,s:o,s:b,s:o,s:o}", "kiln_lock", FORMAT, "kiln",
                kiln_version_string(), "components", components_json(config),
                "static", config->prefer_static, "version",
                kilni_cli_text_json(config->version), "items", items);
  kilni_cli_output_t output = {.path = path};
  sink_t sink = {&output.content, config->error};
  bool ok = lock != NULL &&
            json_dump_callback(lock, take_text, &sink,
                               JSON_INDENT(2) | JSON_PRESERVE_ORDER) == 0;
  if (!ok)
    (void)kilni_cli_fail(config->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                         "no memory for the lock file");
  ok = ok && kilni_cli_buffer_add(&output.content, "\n", 1, config->error) &&
       kilni_cli_outputs_write(&output, 1, config->error);
  kilni_cli_outputs_deinit(&output, 1);
  json_decref(lock);
  return ok;
}

// ---- Reading ----

static bool is_lock(const json_t* lock) {
  size_t i;
  json_t* value;
  const json_t* items = json_object_get(lock, "items");
  const json_t* components = json_object_get(lock, "components");
  if (json_integer_value(json_object_get(lock, "kiln_lock")) != FORMAT ||
      !json_is_array(items) || !json_is_array(components))
    return false;
  json_array_foreach(components, i, value) {
    if (!json_is_string(value)) return false;
  }
  json_array_foreach(items, i, value) {
    if (!json_is_string(json_object_get(value, "kind")) ||
        !json_is_string(json_object_get(value, "name")))
      return false;
  }
  return json_array_size(components) <= 256;
}

bool kilni_config_lock_read(const char* path, json_t** out_lock,
                            kilni_cli_error_t* error) {
  kilni_cli_buffer_t text = {0};
  json_error_t why;
  *out_lock = NULL;
  bool ok = kilni_cli_buffer_read(&text, path, MAX_LOCK_BYTES, error);
  json_t* lock =
      ok ? json_loadb((const char*)text.data, text.size, 0, &why) : NULL;
  kilni_cli_buffer_deinit(&text);
  if (!ok) return false;
  if (lock != NULL && is_lock(lock)) {
    *out_lock = lock;
    return true;
  }
  json_decref(lock);
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "Make a new one with \"kiln config --lock FILE\".",
                        lock == NULL ? "\"%s\" is no JSON: line %d"
                                     : "\"%s\" is no lock file of this kiln "
                                       "(%d)",
                        path, lock == NULL ? why.line : FORMAT);
}

// ---- Comparing ----

static void add_difference(json_t* list, const json_t* item, const char* what,
                           const json_t* locked, const json_t* now) {
  char name[256];
  (void)snprintf(name, sizeof(name), "%s:%s",
                 json_string_value(json_object_get(item, "kind")),
                 json_string_value(json_object_get(item, "name")));
  json_t* a = locked == NULL ? json_null() : json_deep_copy(locked);
  json_t* b = now == NULL ? json_null() : json_deep_copy(now);
  (void)json_array_append_new(
      list, json_pack("{s:s,s:s,s:o,s:o}", "item", name, "what", what, "locked",
                      a, "now", b));
}

static const json_t* same_item(const json_t* items, const json_t* item) {
  size_t i;
  json_t* other;
  json_array_foreach(items, i, other) {
    if (json_equal(json_object_get(item, "kind"),
                   json_object_get(other, "kind")) &&
        json_equal(json_object_get(item, "name"),
                   json_object_get(other, "name")))
      return other;
  }
  return NULL;
}

static void compare_item(json_t* list, const json_t* locked,
                         const json_t* now) {
  static const char* const fields[] = {"path",  "real_path", "file",
                                       "scope", "version",   "release",
                                       "size",  "sha256"};
  for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
    const json_t* a = json_object_get(locked, fields[i]);
    const json_t* b = json_object_get(now, fields[i]);
    if (!json_equal(a, b)) add_difference(list, locked, fields[i], a, b);
  }
}

json_t* kilni_config_lock_compare(const kilni_config_t* config,
                                  const json_t* lock) {
  const json_t* locked = json_object_get(lock, "items");
  json_t* now = items_json(config);
  json_t* list = NULL;
  json_t* item;
  size_t i;
  if (now == NULL) return NULL;
  list = json_array();
  json_array_foreach(locked, i, item) {
    const json_t* other = same_item(now, item);
    if (other == NULL)
      add_difference(list, item, "presence", json_object_get(item, "path"),
                     NULL);
    else
      compare_item(list, item, other);
  }
  json_array_foreach(now, i, item) {
    if (same_item(locked, item) == NULL)
      add_difference(list, item, "presence", NULL,
                     json_object_get(item, "path"));
  }
  json_decref(now);
  return list;
}
