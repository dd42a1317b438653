// SPDX-License-Identifier: Apache-2.0
//
// cli: which kernel of a file a user means.
#include "cli/run_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kiln/code.h"

enum { NAME_BYTES = 2048 };

// How well a name fits, best first.
typedef enum fit_t {
  FIT_CODE = 0,    // the name in the code
  FIT_ALL,         // that in C++, with the parameters
  FIT_NAME,        // without them
  FIT_LAST_PARTS,  // without namespaces
  FIT_TEMPLATE,    // without the arguments of the template
  FIT_PART,        // of a name that cannot be demangled: it contains the
                   // identifier
  FIT_NONE
} fit_t;

// ---- Names ----

static bool run_entry_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool run_entry_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Without insignificant parts: blanks, `int` of "unsigned int", and the suffix
// of a number that is not part of a word.
static void run_entry_plain(const char* text, char out[NAME_BYTES]) {
  size_t used = 0;
  for (size_t i = 0; text[i] != 0 && used < NAME_BYTES - 1; i++) {
    bool in_word = used != 0 && (run_entry_is_letter(out[used - 1]) ||
                                 run_entry_is_digit(out[used - 1]));
    if (run_entry_is_digit(text[i]) && !in_word) {
      while (run_entry_is_digit(text[i]) && used < NAME_BYTES - 1) {
        out[used++] = text[i++];
      }
      while (text[i] != 0 && strchr("uUlL", text[i]) != NULL) i++;
      i--;
      continue;
    }
    if (text[i] == ' ' || text[i] == '\t') {
      if (strncmp(text + i, " int", 4) == 0 &&
          !run_entry_is_letter(text[i + 4]) &&
          !run_entry_is_digit(text[i + 4]) && used >= 8 &&
          memcmp(out + used - 8, "unsigned", 8) == 0) {
        i += 3;
      }
      continue;
    }
    out[used++] = text[i];
  }
  out[used] = 0;
}

// The name without the arguments of the template that it ends with.
static void cut_arguments(char* name) {
  size_t size = strlen(name);
  int depth = 0;
  if (size == 0 || name[size - 1] != '>') return;
  for (size_t i = size; i-- != 0;) {
    if (name[i] == '>') depth++;
    if (name[i] == '<' && --depth == 0) {
      name[i] = 0;
      return;
    }
  }
}

// Whether `name` is `word`, or ends with "::" and that, outside brackets.
static bool ends_with_parts(const char* name, const char* word) {
  size_t a = strlen(name), b = strlen(word);
  if (a < b || strcmp(name + a - b, word) != 0) return false;
  if (a == b) return true;
  if (a < b + 2 || name[a - b - 1] != ':' || name[a - b - 2] != ':') {
    return false;
  }
  int depth = 0;
  for (size_t i = 0; i < a - b; i++) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
  }
  return depth == 0;
}

// True if `mangled`, which cannot be demangled, has the identifier `name`,
// whatever its parameters and namespaces.
static bool has_part(const char* mangled, const char* name) {
  char part[160];
  int n = snprintf(part, sizeof(part), "%zu%s", strlen(name), name);
  if (n < 0 || (size_t)n >= sizeof(part) || strncmp(mangled, "_Z", 2) != 0) {
    return false;
  }
  const char* at = strstr(mangled, part);
  if (at == NULL || run_entry_is_digit(at[-1])) return false;
  return at == mangled + 2 || mangled[2] == 'N' || mangled[2] == 'L';
}

// `wanted` is plain; `entry` is it as it was written.
static fit_t fit_of(const char* mangled, const char* entry,
                    const char* wanted) {
  char text[NAME_BYTES] = "", name[NAME_BYTES] = "";
  if (strcmp(mangled, entry) == 0) return FIT_CODE;
  if (!kiln_code_demangle(mangled, KILN_SWITCH_ON, sizeof(text), text)) {
    return has_part(mangled, entry) ? FIT_PART : FIT_NONE;
  }
  run_entry_plain(text, name);
  if (strcmp(name, wanted) == 0) return FIT_ALL;
  bool ends = strchr(wanted, '(') != NULL && ends_with_parts(name, wanted);
  if (ends) return FIT_LAST_PARTS;
  (void)kiln_code_demangle(mangled, KILN_SWITCH_OFF, sizeof(text), text);
  run_entry_plain(text, name);
  if (strcmp(name, wanted) == 0) return FIT_NAME;
  if (ends_with_parts(name, wanted)) return FIT_LAST_PARTS;
  cut_arguments(name);
  return ends_with_parts(name, wanted) ? FIT_TEMPLATE : FIT_NONE;
}

// ---- The list ----

// Whether another kernel has the same name without its parameters, or has it in
// the code.
static bool is_overloaded(const char* const* names, uint32_t count,
                          uint32_t index, const char* name) {
  char other[NAME_BYTES];
  for (uint32_t i = 0; i < count; i++) {
    if (i == index) continue;
    if (strcmp(names[i], name) == 0 ||
        (kiln_code_demangle(names[i], KILN_SWITCH_OFF, sizeof(other), other) &&
         strcmp(other, name) == 0)) {
      return true;
    }
  }
  return false;
}

// Whether it is an identifier, which a shell and a graph file read as it is.
static bool is_bare(const char* name) {
  for (const char* c = name; *c != 0; c++) {
    if (!run_entry_is_letter(*c) && !run_entry_is_digit(*c)) return false;
  }
  return true;
}

// The shortest name that identifies this kernel uniquely. If only identifiers
// can be written, one of those.
static void run_entry_show_name(const char* const* names, uint32_t count,
                                uint32_t index, bool is_option,
                                char out[NAME_BYTES]) {
  if (!is_option) {
    if (!kiln_code_demangle(names[index], KILN_SWITCH_OFF, NAME_BYTES, out) ||
        !is_bare(out) || is_overloaded(names, count, index, out)) {
      (void)snprintf(out, NAME_BYTES, "%s", names[index]);
    }
    return;
  }
  if (kiln_code_demangle(names[index], KILN_SWITCH_OFF, NAME_BYTES, out) &&
      (!is_overloaded(names, count, index, out) ||
       kiln_code_demangle(names[index], KILN_SWITCH_ON, NAME_BYTES, out))) {
    return;
  }
  (void)snprintf(out, NAME_BYTES, "%s", names[index]);
}

// Those whose `fits` is `worst` or better.
static void run_entry_list_names(const char* const* names, uint32_t count,
                                 const fit_t* fits, fit_t worst,
                                 const char* where, kilni_cli_error_t* error) {
  char text[sizeof(error->fix)] = "";
  char name[NAME_BYTES];
  size_t used = 0;
  size_t space = sizeof(text) - strlen(where) - 64;
  for (uint32_t i = 0; i < count; i++) {
    if (fits != NULL && fits[i] > worst) continue;
    run_entry_show_name(names, count, i, where[0] == '-', name);
    const char* quote = is_bare(name) || where[0] != '-' ? "" : "'";
    size_t size = strlen(name) + 4;
    if (used + size >= space) {
      if (used + 6 < sizeof(text)) memcpy(text + used, ", ...", 6);
      break;
    }
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s%s",
                             used == 0 ? "" : ", ", quote, name, quote);
  }
  kilni_cli_error_fix(error, "write %s with one of: %s", where, text);
}

// ---- The choice ----

enum { MAX_KERNELS = 4096 };

static bool run_entry_fail(const char* const* names, uint32_t count,
                           const char* entry, const char* file,
                           const char* where, const fit_t* fits, fit_t best,
                           uint32_t found, kilni_cli_error_t* error) {
  if (entry == NULL) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "the file \"%s\" has %" PRIu32 " kernels", file,
                         count);
  } else if (found > 1) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "the file \"%s\" has %" PRIu32
                         " kernels that \"%s\" may mean",
                         file, found, entry);
    run_entry_list_names(names, count, fits, best, where, error);
    return false;
  } else {
    (void)kilni_cli_fail(error, KILN_STATUS_NOT_FOUND, NULL,
                         "the file \"%s\" has no kernel \"%s\"", file, entry);
  }
  run_entry_list_names(names, count, NULL, FIT_NONE, where, error);
  return false;
}

bool kilni_cli_entry_find(const char* const* names, uint32_t count,
                          const char* entry, const char* file,
                          const char* where, uint32_t* out_index,
                          kilni_cli_error_t* error) {
  fit_t fits[MAX_KERNELS];
  fit_t best = FIT_NONE;
  char wanted[NAME_BYTES];
  uint32_t found = 0;
  *out_index = 0;
  if (count == 0) {
    return kilni_cli_fail(error, KILN_STATUS_NOT_FOUND,
                          "give a file with a __global__ function, or PTX with "
                          "a .visible .entry",
                          "the file \"%s\" has no kernels", file);
  }
  if (entry == NULL && count == 1) return true;
  if (count > MAX_KERNELS) count = MAX_KERNELS;
  if (entry != NULL) run_entry_plain(entry, wanted);
  for (uint32_t i = 0; entry != NULL && i < count; i++) {
    fits[i] = fit_of(names[i], entry, wanted);
    if (fits[i] == FIT_NONE || fits[i] > best) continue;
    if (fits[i] < best) found = 0;
    best = fits[i];
    *out_index = i;
    found++;
  }
  if (found == 1) return true;
  *out_index = 0;
  return run_entry_fail(names, count, entry, file, where,
                        entry == NULL ? NULL : fits, best, found, error);
}

const char* kilni_cli_entry_shown(const char* name,
                                  char out[KILNI_CLI_ENTRY_SHOWN]) {
  bool read =
      kiln_code_demangle(name, KILN_SWITCH_OFF, KILNI_CLI_ENTRY_SHOWN, out);
  return read ? out : name;
}
