// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln config`: what a build needs from a CUDA toolkit, for build
// systems.
//
// Creates no runtime, opens no library, queries no driver.
#include <stdio.h>
#include <string.h>

#include "cli/cli_report.h"
#include "cli/config_form.h"
#include "cli/config_lock.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"

// What is printed; bits.
enum {
  FORM_ROOT = 1 << 0,
  FORM_VERSION = 1 << 1,
  FORM_CFLAGS = 1 << 2,
  FORM_LIBS = 1 << 3,
  FORM_CMAKE = 1 << 4,
  FORM_SHELL = 1 << 5,
  FORM_MAKE = 1 << 6,
  FORM_JSON = 1 << 7,
  FORM_PC = 1 << 8,
  FORM_FLAGS = FORM_CFLAGS | FORM_LIBS,
  FORM_LINES = FORM_ROOT | FORM_VERSION | FORM_FLAGS,
};

// One form. thread-safe
typedef struct form_t {
  const char* option;
  int form;
} form_t;

static const form_t kForms[] = {
    {"version", FORM_VERSION}, {"cflags", FORM_CFLAGS}, {"libs", FORM_LIBS},
    {"cmake", FORM_CMAKE},     {"shell", FORM_SHELL},   {"make", FORM_MAKE},
    {"json", FORM_JSON},       {"pc", FORM_PC},
};

static bool read_forms(const kilni_cli_call_t* call, int* forms,
                       kilni_cli_error_t* error) {
  *forms = 0;
  for (size_t i = 0; i < sizeof(kForms) / sizeof(kForms[0]); i++) {
    if (kilni_cli_option_value(call, kForms[i].option) != NULL) {
      *forms |= kForms[i].form;
    }
  }
  for (size_t i = 0; i < call->given_count; i++) {
    if (kilni_cli_option_is_bare(&call->given[i])) *forms |= FORM_ROOT;
  }
  int whole = *forms & ~FORM_LINES;
  bool is_lock = kilni_cli_option_value(call, "lock") != NULL ||
                 kilni_cli_option_value(call, "verify-lock") != NULL;
  if (*forms == 0 && !is_lock) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write \"kiln config --cflags --libs nvrtc\", for "
                          "example",
                          "there is nothing to print: give --root, --version, "
                          "--cflags, --libs, --cmake, --shell, --make, "
                          "--pc or --json");
  }
  if (whole != 0 &&
      ((whole & (whole - 1)) != 0 || (*forms & FORM_LINES) != 0)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "select one form at a time: only --root, --version, "
                          "--cflags and --libs can be combined",
                          "--cmake, --shell, --make, --pc and --json print "
                          "everything and cannot be combined with another "
                          "form");
  }
  return true;
}

// ---- Lines ----

static bool cmd_config_add(const kilni_cli_config_t* config,
                           kilni_cli_buffer_t* out, const char* text) {
  return kilni_cli_buffer_add(out, text, strlen(text), config->error);
}

static bool cmd_config_add_root(const kilni_cli_config_t* config,
                                kilni_cli_buffer_t* out) {
  if (config->root[0] != 0) {
    return cmd_config_add(config, out, config->root) &&
           cmd_config_add(config, out, "\n");
  }
  return kilni_cli_fail(config->error, KILN_STATUS_NOT_FOUND,
                        "use --cflags and --libs, or --json, which name all "
                        "folders",
                        "the components are in several folders, so there is "
                        "no single root");
}

static bool cmd_config_add_version(const kilni_cli_config_t* config,
                                   kilni_cli_buffer_t* out) {
  if (config->version[0] != 0) {
    return cmd_config_add(config, out, config->version) &&
           cmd_config_add(config, out, "\n");
  }
  return kilni_cli_fail(
      config->error, KILN_STATUS_INSUFFICIENT_METADATA,
      "see the evidence with \"kiln find --trail\"; headers have the best",
      "the version of what was found is unknown");
}

// Words unquoted, one per line.
static bool add_words(const kilni_cli_config_t* config,
                      const kilni_cli_words_t* words, kilni_cli_buffer_t* out) {
  const char* at = NULL;
  while ((at = kilni_cli_words_next(words, at)) != NULL) {
    if (strchr(at, '\n') != NULL) {
      return kilni_cli_fail(config->error, KILN_STATUS_INVALID_ARGUMENT,
                            "omit --lines, or use --json",
                            "a path contains a newline");
    }
    if (!cmd_config_add(config, out, at) ||
        !cmd_config_add(config, out, "\n")) {
      return false;
    }
  }
  return true;
}

static bool cmd_config_add_lines(const kilni_cli_config_t* config, int forms,
                                 kilni_cli_buffer_t* out) {
  kilni_cli_error_t* e = config->error;
  if ((forms & FORM_ROOT) != 0 && !cmd_config_add_root(config, out)) {
    return false;
  }
  if ((forms & FORM_VERSION) != 0 && !cmd_config_add_version(config, out)) {
    return false;
  }
  if (kilni_cli_option_value(config->call, "lines") != NULL) {
    return ((forms & FORM_CFLAGS) == 0 ||
            add_words(config, &config->cflags, out)) &&
           ((forms & FORM_LIBS) == 0 || add_words(config, &config->libs, out));
  }
  if ((forms & FORM_CFLAGS) != 0 &&
      !kilni_cli_config_words_text(out, &config->cflags, e)) {
    return false;
  }
  if ((forms & FORM_FLAGS) == FORM_FLAGS && config->cflags.count != 0 &&
      config->libs.count != 0 && !cmd_config_add(config, out, " ")) {
    return false;
  }
  if ((forms & FORM_LIBS) != 0 &&
      !kilni_cli_config_words_text(out, &config->libs, e)) {
    return false;
  }
  return (forms & FORM_FLAGS) == 0 || cmd_config_add(config, out, "\n");
}

static bool cmd_config_show(const kilni_cli_config_t* config, int forms) {
  kilni_cli_buffer_t out = {0};
  bool ok = true;
  FILE* results = config->call->results;
  if (forms == FORM_JSON) {
    return kilni_cli_json_write(results, kilni_cli_config_json(config),
                                config->error);
  }
  if (forms == FORM_CMAKE) {
    ok = kilni_cli_config_cmake_text(config, &out);
  } else if (forms == FORM_SHELL) {
    ok = kilni_cli_config_shell_text(config, &out);
  } else if (forms == FORM_PC) {
    ok = kilni_cli_config_pc_text(config, &out);
  } else if (forms == FORM_MAKE) {
    ok = kilni_cli_config_make_text(config, &out);
  } else {
    ok = cmd_config_add_lines(config, forms, &out);
  }
  if (ok && out.size != 0) (void)fwrite(out.data, 1, out.size, results);
  kilni_cli_buffer_deinit(&out);
  return ok && kilni_cli_results_flush(results, config->error);
}

static void show_warnings(const kilni_cli_config_t* config) {
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    kiln_locate_item_t* item =
        kiln_toolkit_item_located(kilni_cli_config_piece(config, i)->item);
    // The same for every component: once is enough.
    if (kiln_locate_item_warning_count(item) == 0) continue;
    kilni_cli_note("%s", kiln_locate_item_warning(item, 0));
    return;
  }
}

// ---- Lock files ----

static void value_text(const json_t* value, char* out, size_t capacity) {
  const char* text = json_string_value(value);
  if (json_is_integer(value)) {
    (void)snprintf(out, capacity, "%lld", (long long)json_integer_value(value));
  } else {
    (void)snprintf(out, capacity, "%s", text == NULL ? "nothing" : text);
  }
}

static void note_change(const char* item, const char* what,
                        const json_t* change) {
  char locked[1024], now[1024];
  value_text(json_object_get(change, "locked"), locked, sizeof(locked));
  value_text(json_object_get(change, "now"), now, sizeof(now));
  kilni_cli_note("%s: %s was %s, is %s", item, what, locked, now);
}

static void note_changes(const json_t* differences, const json_t* variables) {
  size_t i;
  json_t* change;
  json_array_foreach(differences, i, change) {
    note_change(json_string_value(json_object_get(change, "item")),
                json_string_value(json_object_get(change, "what")), change);
  }
  json_array_foreach(variables, i, change) {
    note_change("environment",
                json_string_value(json_object_get(change, "name")), change);
  }
}

static bool fail_lock(const kilni_cli_config_t* config, const char* path,
                      size_t count) {
  return kilni_cli_fail(
      config->error, KILN_STATUS_INCOMPATIBLE,
      "undo the change, or write the file again with --lock if it is intended",
      "%zu thing%s not as recorded in \"%s\"", count,
      count == 1 ? " is" : "s are", path);
}

// Compares the plan with the lock; with --json the answer is the result.
static bool verify_lock(const kilni_cli_config_t* config, const json_t* lock,
                        const char* path, int forms) {
  json_t* list = kilni_cli_config_lock_compare(config, lock);
  json_t* variables =
      list == NULL ? NULL : kilni_cli_config_lock_environment(config, lock);
  if (variables == NULL) {
    json_decref(list);
    return false;
  }
  size_t count = json_array_size(list);
  if (forms == FORM_JSON) {
    json_t* object = json_pack("{s:b,s:o,s:o}", "holds", count == 0,
                               "differences", list, "environment", variables);
    return kilni_cli_json_write(config->call->results, object, config->error) &&
           (count == 0 ||
            kilni_cli_tell(config->error, KILN_STATUS_INCOMPATIBLE));
  }
  // Changed variables alone are not a difference.
  if (count != 0) note_changes(list, variables);
  json_decref(list);
  json_decref(variables);
  return count == 0 || fail_lock(config, path, count);
}

// Takes the ITEMs from the lock where the command line has none.
static bool take_items(kilni_cli_config_t* config, kilni_cli_call_t* call,
                       const json_t* lock, kilni_cli_buffer_t* operands) {
  size_t i;
  json_t* value;
  const json_t* items = json_object_get(lock, "components");
  config->prefer_static |= json_is_true(json_object_get(lock, "static"));
  if (call->operand_count != 0) return true;
  json_array_foreach(items, i, value) {
    const char* text = json_string_value(value);
    if (!kilni_cli_buffer_add(operands, &text, sizeof(text), config->error)) {
      return false;
    }
  }
  call->operands = (const char* const*)(void*)operands->data;
  call->operand_count = json_array_size(items);
  return true;
}

// What was locked and no longer exists or is no longer compatible is a
// difference.
static bool cmd_config_make_plan(kilni_cli_config_t* config,
                                 const char* lock_path) {
  kilni_cli_error_t* error = config->error;
  if (kilni_cli_config_make(config)) return true;
  if (lock_path == NULL || (error->code != KILN_STATUS_NOT_FOUND &&
                            error->code != KILN_STATUS_INCOMPATIBLE)) {
    return false;
  }
  error->code = KILN_STATUS_INCOMPATIBLE;
  kilni_cli_error_prefix(error, "\"%s\" no longer matches", lock_path);
  return false;
}

static bool run_plan(kilni_cli_config_t* config, kilni_cli_call_t* call,
                     int forms, kilni_cli_buffer_t* operands, json_t** lock) {
  const char* verify = kilni_cli_option_value(call, "verify-lock");
  const char* write = kilni_cli_option_value(call, "lock");
  if (write != NULL && !kilni_cli_config_lock_check(config, write)) {
    return false;
  }
  if (verify != NULL &&
      !(kilni_cli_config_lock_read(verify, lock, config->error) &&
        take_items(config, call, *lock, operands))) {
    return false;
  }
  if (!cmd_config_make_plan(config, verify)) return false;
  show_warnings(config);
  if (verify != NULL && !verify_lock(config, *lock, verify, forms)) {
    return false;
  }
  if (write != NULL && !kilni_cli_config_lock_write(config, write)) {
    return false;
  }
  if (verify != NULL && forms == FORM_JSON) return true;
  return forms == 0 || cmd_config_show(config, forms);
}

static bool run_config(const kilni_cli_call_t* given,
                       kilni_cli_error_t* error) {
  kilni_cli_call_t call = *given;
  kilni_cli_config_t config = {.call = &call, .error = error};
  kilni_cli_buffer_t operands = {0};
  json_t* lock = NULL;
  int forms = 0;
  config.prefer_static = kilni_cli_option_value(given, "static") != NULL;
  bool ok = read_forms(given, &forms, error) &&
            run_plan(&config, &call, forms, &operands, &lock);
  kilni_cli_config_deinit(&config);
  kilni_cli_buffer_deinit(&operands);
  json_decref(lock);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"root", "[DIR]",
     "Print the toolkit's folder. With DIR, which begins with / or . or "
     "follows =, search that folder first instead.",
     true, "file"},
    {"version", NULL, "Print the CUDA version.", false, NULL},
    {"cflags", NULL, "Print flags for the compiler.", false, NULL},
    {"libs", NULL, "Print flags for the linker.", false, NULL},
    {"cmake", NULL, "Print a CMake script that defines imported targets.",
     false, NULL},
    {"shell", NULL, "Print variables for a shell.", false, NULL},
    {"make", NULL, "Print variables for a makefile.", false, NULL},
    {"pc", NULL, "Print a file for pkg-config.", false, NULL},
    {"json", NULL, "Write everything, or the error, as JSON.", false, NULL},
    {"lines", NULL,
     "With --cflags and --libs: print one word per line, unquoted.", false,
     NULL},
    {"static", NULL, "Prefer static libraries where a name could be either.",
     false, NULL},
    {"rpath", NULL,
     "Add run paths, so that programs find the shared libraries where they "
     "are now.",
     false, NULL},
    {"lock", "FILE",
     "Write a lock file of what was found: paths, versions, sizes, SHA-256.",
     false, "file"},
    {"verify-lock", "FILE",
     "Resolve again and report differences from that lock file; without ITEM, "
     "resolve what the file lists.",
     false, "file"},
    {"mode", "MODE",
     "What incompatible components lead to. Default: KILN_COMPAT, else "
     "best-effort.",
     false, "strict best-effort warn off"},
    {"ctk-version", "SPEC",
     "The allowed CUDA versions, as a PEP 440 specifier: \">=12.9,<13\".",
     false, NULL},
    {"sysroot", "DIR", "The root folder of another system, to build for it.",
     false, "file"},
    KILNI_CLI_WHERE_BUT_ROOT,
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_config = {
    "config",
    "[ITEM]...",
    "Print what a build needs from a CUDA toolkit, for build systems.",
    "ITEM is a library with its headers (nvrtc, cublas, cudart_static), "
    "\"headers\", \"cuda\" for the driver, a program (nvcc), or KIND:NAME for "
    "that alone; the default is cudart. A toolkit may be a folder, a conda "
    "prefix, a distribution's packages, or wheels in "
    "site-packages.\nEverything is taken from one place and one CUDA major "
    "version, and checked for compatibility. Neither a driver nor a GPU is "
    "needed, and no program is run.\nThe exit code is 3 if a component is not "
    "found, 4 if components are incompatible with each other or with "
    "--ctk-version or differ from the lock, 5 if nothing has the requested "
    "version for.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    0,
    256,
    NULL,
    "cc $(kiln config --cflags nvrtc) main.c $(kiln config --libs nvrtc)",
    run_config,
};
