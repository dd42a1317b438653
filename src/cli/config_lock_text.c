// SPDX-License-Identifier: Apache-2.0
//
// cli: lock files as text.
#include "cli/config_lock_text.h"

#include <stdio.h>
#include <string.h>

#define SHA256_DIGITS 64

static const char kFixAnew[] =
    "make it again with \"kiln config --lock FILE ...\"";

// ---- Reading ----

// What is wrong with a file, and where. thread-compatible
typedef struct flaw_t {
  const char* list;  // "items", "components", "environment"; NULL: the file
  size_t index;
  const char* key;  // NULL: the thing itself
} flaw_t;

static bool is_sha256(const char* text) {
  return text != NULL && strlen(text) == SHA256_DIGITS &&
         strspn(text, "0123456789abcdef") == SHA256_DIGITS;
}

static bool is_text_or_null(const json_t* value) {
  return value == NULL || json_is_null(value) || json_is_string(value);
}

// The key of the first invalid item; NULL if all are valid.
static const char* bad_key(const json_t* item) {
  static const char* const texts[] = {"kind", "name", "path", "file", "scope"};
  static const char* const maybe[] = {"version", "real_path", "release"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    if (json_string_length(json_object_get(item, texts[i])) == 0) {
      return texts[i];
    }
  }
  for (size_t i = 0; i < sizeof(maybe) / sizeof(maybe[0]); i++) {
    if (!is_text_or_null(json_object_get(item, maybe[i]))) return maybe[i];
  }
  const json_t* size = json_object_get(item, "size");
  if (!json_is_integer(size) || json_integer_value(size) < 0) return "size";
  if (!is_sha256(json_string_value(json_object_get(item, "sha256")))) {
    return "sha256";
  }
  return NULL;
}

static const json_t* same_item(const json_t* items, const json_t* item) {
  size_t i;
  json_t* other;
  json_array_foreach(items, i, other) {
    if (json_equal(json_object_get(item, "kind"),
                   json_object_get(other, "kind")) &&
        json_equal(json_object_get(item, "name"),
                   json_object_get(other, "name"))) {
      return other;
    }
  }
  return NULL;
}

static bool items_are_sound(const json_t* items, flaw_t* flaw) {
  size_t i;
  json_t* item;
  *flaw = (flaw_t){NULL, 0, "items"};
  if (!json_is_array(items) || json_array_size(items) == 0 ||
      json_array_size(items) > KILNI_CONFIG_LOCK_MAX_ITEMS) {
    return false;
  }
  json_array_foreach(items, i, item) {
    const char* key = json_is_object(item) ? bad_key(item) : NULL;
    *flaw = (flaw_t){"items", i, key};
    if (!json_is_object(item) || key != NULL) return false;
    flaw->key = "name";  // it occurs twice
    if (same_item(items, item) != item) return false;
  }
  return true;
}

static bool components_are_sound(const json_t* components, flaw_t* flaw) {
  size_t i;
  json_t* value;
  *flaw = (flaw_t){NULL, 0, "components"};
  if (!json_is_array(components) ||
      json_array_size(components) > KILNI_CONFIG_LOCK_MAX_COMPONENTS) {
    return false;
  }
  json_array_foreach(components, i, value) {
    *flaw = (flaw_t){"components", i, NULL};
    if (json_string_length(value) == 0) return false;
  }
  return true;
}

static bool is_sound(const json_t* lock, flaw_t* flaw) {
  const char* name;
  json_t* value;
  const json_t* environment = json_object_get(lock, "environment");
  if (!components_are_sound(json_object_get(lock, "components"), flaw) ||
      !items_are_sound(json_object_get(lock, "items"), flaw)) {
    return false;
  }
  *flaw = (flaw_t){NULL, 0, "static"};
  if (!json_is_boolean(json_object_get(lock, "static"))) return false;
  *flaw = (flaw_t){NULL, 0, "environment"};
  if (environment != NULL && !json_is_object(environment)) return false;
  json_object_foreach((json_t*)(size_t)environment, name, value) {
    if (!is_text_or_null(value)) return false;
  }
  return true;
}

static bool fail_flaw(const char* name, const flaw_t* flaw,
                      kilni_cli_error_t* error) {
  char where[96];
  if (flaw->list == NULL) {
    (void)snprintf(where, sizeof(where), "%s", flaw->key);
  } else {
    (void)snprintf(where, sizeof(where), "%s[%zu]%s%s", flaw->list, flaw->index,
                   flaw->key == NULL ? "" : ".",
                   flaw->key == NULL ? "" : flaw->key);
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, kFixAnew,
                        "\"%s\" is a damaged lock file: \"%s\" is not as kiln "
                        "writes it",
                        name, where);
}

// Its number identifies a lock file and its format.
static bool config_lock_text_check_format(const json_t* lock, const char* name,
                                          kilni_cli_error_t* error) {
  const json_t* format = json_object_get(lock, "kiln_lock");
  const char* maker = json_string_value(json_object_get(lock, "kiln"));
  if (!json_is_integer(format)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, kFixAnew,
                          "\"%s\" is not a lock file of kiln: it has no "
                          "\"kiln_lock\"",
                          name);
  }
  if (json_integer_value(format) == KILNI_CONFIG_LOCK_FORMAT) return true;
  return kilni_cli_fail(
      error, KILN_STATUS_UNSUPPORTED,
      "use the kiln that made it, or make it again with \"kiln config --lock "
      "FILE ...\"",
      "\"%s\" is a lock file of format %lld, made by kiln %.40s; this one "
      "reads "
      "format %d",
      name, (long long)json_integer_value(format), maker == NULL ? "?" : maker,
      KILNI_CONFIG_LOCK_FORMAT);
}

bool kilni_cli_config_lock_parse(const char* text, size_t size,
                                 const char* name, json_t** out_lock,
                                 kilni_cli_error_t* error) {
  json_error_t why;
  flaw_t flaw;
  *out_lock = NULL;
  if (size > KILNI_CONFIG_LOCK_MAX_BYTES) {
    return kilni_cli_fail(error, KILN_STATUS_LIMIT_EXCEEDED, kFixAnew,
                          "\"%s\" is larger than any lock file", name);
  }
  json_t* lock = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
  if (lock == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, kFixAnew,
                          "\"%s\" is not a lock file of kiln, or only part of "
                          "one: line %d, column %d: %s",
                          name, why.line, why.column, why.text);
  }
  bool ok = config_lock_text_check_format(lock, name, error);
  if (ok && !is_sound(lock, &flaw)) ok = fail_flaw(name, &flaw, error);
  if (ok) {
    *out_lock = lock;
  } else {
    json_decref(lock);
  }
  return ok;
}

// ---- Comparing ----

static json_t* config_lock_text_copy(const json_t* value) {
  return value == NULL ? json_null() : json_deep_copy(value);
}

static bool add_difference(json_t* list, const json_t* item, const char* what,
                           const json_t* locked, const json_t* now) {
  char name[256];
  (void)snprintf(name, sizeof(name), "%s:%s",
                 json_string_value(json_object_get(item, "kind")),
                 json_string_value(json_object_get(item, "name")));
  return json_array_append_new(
             list, json_pack("{s:s,s:s,s:o,s:o}", "item", name, "what", what,
                             "locked", config_lock_text_copy(locked), "now",
                             config_lock_text_copy(now))) == 0;
}

static bool add_item_differences(json_t* list, const json_t* locked,
                                 const json_t* now) {
  static const char* const fields[] = {"path",  "real_path", "file",
                                       "scope", "version",   "release",
                                       "size",  "sha256"};
  for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
    const json_t* a = json_object_get(locked, fields[i]);
    const json_t* b = json_object_get(now, fields[i]);
    if (a == b || json_equal(a, b)) continue;
    if (!add_difference(list, locked, fields[i], a, b)) return false;
  }
  return true;
}

static bool add_differences(json_t* list, const json_t* locked,
                            const json_t* now) {
  json_t* item;
  size_t i;
  json_array_foreach(locked, i, item) {
    const json_t* other = same_item(now, item);
    if (!(other == NULL ? add_difference(list, item, "presence",
                                         json_object_get(item, "path"), NULL)
                        : add_item_differences(list, item, other))) {
      return false;
    }
  }
  json_array_foreach(now, i, item) {
    if (same_item(locked, item) == NULL &&
        !add_difference(list, item, "presence", NULL,
                        json_object_get(item, "path"))) {
      return false;
    }
  }
  return true;
}

json_t* kilni_cli_config_lock_differences(const json_t* locked,
                                          const json_t* now) {
  json_t* list = json_array();
  if (list == NULL || add_differences(list, locked, now)) return list;
  json_decref(list);
  return NULL;
}

static bool config_lock_text_add_variable(json_t* list, const char* name,
                                          const json_t* locked,
                                          const json_t* now) {
  bool a = json_is_string(locked), b = json_is_string(now);
  if (a == b && (!a || json_equal(locked, now))) return true;
  return json_array_append_new(
             list, json_pack("{s:s,s:o,s:o}", "name", name, "locked",
                             config_lock_text_copy(locked), "now",
                             config_lock_text_copy(now))) == 0;
}

json_t* kilni_cli_config_lock_variables(const json_t* locked,
                                        const json_t* now) {
  json_t* list = json_array();
  const char* name;
  json_t* value;
  bool ok = list != NULL;
  // The iterator of Jansson changes nothing, but takes a non-const pointer.
  json_object_foreach((json_t*)(size_t)locked, name, value) {
    ok = ok && config_lock_text_add_variable(list, name, value,
                                             json_object_get(now, name));
  }
  json_object_foreach((json_t*)(size_t)now, name, value) {
    if (json_object_get(locked, name) == NULL) {
      ok = ok && config_lock_text_add_variable(list, name, NULL, value);
    }
  }
  if (ok) return list;
  json_decref(list);
  return NULL;
}
