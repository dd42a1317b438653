// SPDX-License-Identifier: Apache-2.0
//
// cli: lock files.
#include "cli/config_lock.h"

#include <stdio.h>

#include "cli/cli_files.h"
#include "cli/cli_output.h"
#include "cli/cli_piece_report.h"
#include "cli/config_form.h"
#include "cli/config_lock_text.h"
#include "kiln/version.h"

enum { SHA256_TEXT = 2 * KILN_LOCATE_SHA256_BYTES + 1 };

static bool fail_memory(const kilni_cli_config_t* config) {
  return kilni_cli_fail(config->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                        "no memory for the lock file");
}

static void sha256_text(const uint8_t sha256[KILN_LOCATE_SHA256_BYTES],
                        char out[SHA256_TEXT]) {
  for (size_t i = 0; i < KILN_LOCATE_SHA256_BYTES; i++) {
    (void)snprintf(out + 2 * i, 3, "%02x", sha256[i]);
  }
}

// A component with a digest of its file; NULL if that cannot be read.
static json_t* config_lock_item_json(const kilni_cli_config_piece_t* piece,
                                     kilni_cli_error_t* error) {
  char digest[SHA256_TEXT];
  uint8_t sha256[KILN_LOCATE_SHA256_BYTES];
  uint64_t size = 0;
  const kiln_locate_item_t* located = kiln_toolkit_item_located(piece->item);
  if (!kilni_cli_check(error,
                       kiln_locate_item_sha256(located, &size, sha256))) {
    return NULL;
  }
  sha256_text(sha256, digest);
  json_t* object = kilni_cli_item_json(piece->item);
  // Other searched places are not part of the answer.
  (void)json_object_del(object, "tried");
  (void)json_object_set_new(
      object, "file", kilni_cli_text_json(kiln_locate_item_file(located)));
  (void)json_object_set_new(object, "size", json_integer((json_int_t)size));
  (void)json_object_set_new(object, "sha256", json_string(digest));
  return object;
}

static json_t* items_json(const kilni_cli_config_t* config) {
  json_t* list = json_array();
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    if (!kilni_cli_config_is_first(config, i)) continue;
    json_t* item =
        config_lock_item_json(kilni_cli_config_piece(config, i), config->error);
    if (item == NULL) {
      json_decref(list);
      return NULL;
    }
    (void)json_array_append_new(list, item);
  }
  return list;
}

// The ITEMs as the user wrote them: these are resolved again.
static json_t* config_lock_components_json(const kilni_cli_config_t* config) {
  json_t* list = json_array();
  for (size_t i = 0; i < config->call->operand_count; i++) {
    (void)json_array_append_new(list,
                                kilni_cli_text_json(config->call->operands[i]));
  }
  return list;
}

// Where the text of a lock file goes. one-thread
typedef struct sink_t {
  kilni_cli_buffer_t* out;
  kilni_cli_error_t* error;
} sink_t;

static int config_lock_take_text(const char* text, size_t size, void* user) {
  sink_t* sink = user;
  return kilni_cli_buffer_add(sink->out, text, size, sink->error) ? 0 : -1;
}

bool kilni_cli_config_lock_check(const kilni_cli_config_t* config,
                                 const char* path) {
  const char* verify = kilni_cli_option_value(config->call, "verify-lock");
  kilni_cli_files_t files = {0};
  bool ok =
      verify == NULL ||
      kilni_cli_files_add_input(&files, verify, "--verify-lock", config->error);
  for (size_t i = 0; ok && i < kilni_cli_config_piece_count(config); i++) {
    const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
    ok = kilni_cli_files_add_input(
        &files, kiln_locate_item_file(kiln_toolkit_item_located(piece->item)),
        "what was found", config->error);
  }
  ok = ok && kilni_cli_files_add_output(&files, path, "--lock", config->error);
  kilni_cli_files_deinit(&files);
  return ok;
}

bool kilni_cli_config_lock_write(const kilni_cli_config_t* config,
                                 const char* path) {
  if (!kilni_cli_config_lock_check(config, path)) return false;
  json_t* items = items_json(config);
  if (items == NULL) return false;
  json_t* lock = json_pack(
      "{s:i,s:s,s:o,s:b,s:o,s:o,s:o}", "kiln_lock", KILNI_CONFIG_LOCK_FORMAT,
      "kiln", kiln_version_string(), "components",
      config_lock_components_json(config), "static", config->prefer_static,
      "version", kilni_cli_text_json(config->version), "environment",
      kilni_cli_config_environment_json(config), "items", items);
  kilni_cli_output_t output = {.path = path};
  sink_t sink = {&output.content, config->error};
  bool ok = lock != NULL &&
            json_dump_callback(lock, config_lock_take_text, &sink,
                               JSON_INDENT(2) | JSON_PRESERVE_ORDER) == 0;
  if (!ok) (void)fail_memory(config);
  ok = ok && kilni_cli_buffer_add(&output.content, "\n", 1, config->error) &&
       kilni_cli_outputs_write(&output, 1, config->error);
  kilni_cli_outputs_deinit(&output, 1);
  json_decref(lock);
  return ok;
}

// ---- Reading ----

bool kilni_cli_config_lock_read(const char* path, json_t** out_lock,
                                kilni_cli_error_t* error) {
  kilni_cli_buffer_t text = {0};
  *out_lock = NULL;
  bool ok = kilni_cli_buffer_read_some(&text, path, KILNI_CONFIG_LOCK_MAX_BYTES,
                                       error) &&
            kilni_cli_config_lock_parse((const char*)text.data, text.size, path,
                                        out_lock, error);
  kilni_cli_buffer_deinit(&text);
  return ok;
}

// ---- Comparing ----

json_t* kilni_cli_config_lock_compare(const kilni_cli_config_t* config,
                                      const json_t* lock) {
  json_t* now = items_json(config);
  json_t* list = NULL;
  if (now == NULL) return NULL;
  list = kilni_cli_config_lock_differences(json_object_get(lock, "items"), now);
  json_decref(now);
  if (list == NULL) (void)fail_memory(config);
  return list;
}

json_t* kilni_cli_config_lock_environment(const kilni_cli_config_t* config,
                                          const json_t* lock) {
  json_t* now = kilni_cli_config_environment_json(config);
  json_t* list = kilni_cli_config_lock_variables(
      json_object_get(lock, "environment"), now);
  json_decref(now);
  if (list == NULL) (void)fail_memory(config);
  return list;
}
