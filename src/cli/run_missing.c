// SPDX-License-Identifier: Apache-2.0
//
// cli: parameters of a program that are not given.
#define _POSIX_C_SOURCE 200809L
#include "cli/run_missing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/config_form.h"

// Elements of an input whose length is open, and a number for a size.
enum { ELEMENTS = 1024, NUMBER = 16 };

static bool is_missing(const kilni_cli_missing_t* m, uint32_t index) {
  return !kilni_cli_request_has(m->request, index, m->wanted[index].name);
}

// Whether it is a sample, which is dropped once an input is given.
static bool is_sample(const kilni_cli_missing_t* m, uint32_t index) {
  const kilni_cli_request_t* r = m->request;
  const char* name = m->wanted[index].name;
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (b->content != NULL && strcmp(b->parameter, name) == 0) return true;
  }
  return false;
}

// Whether the command names the user's data: generated numbers would silently
// mix with it.
static bool has_own_data(const kilni_cli_request_t* r) {
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (b->is_in && !b->is_made && b->content == NULL) return true;
  }
  return false;
}

static const kilni_cli_type_info_t* run_missing_info_of(
    const kilni_cli_wanted_t* w) {
  const char* name = kiln_program_type_name(w->type);
  return kilni_cli_type_info(kilni_cli_type_find(name, strlen(name)));
}

static char run_missing_kind_of(const kilni_cli_wanted_t* w) {
  return run_missing_info_of(w)->kind;
}

static bool run_missing_is_number(const kilni_cli_wanted_t* w) {
  return w->role == KILN_PROGRAM_ROLE_NONE;
}

// ---- Sizes ----

static bool run_missing_ask(const kilni_cli_missing_t* m,
                            kiln_program_size_t* sizes) {
  uint64_t work[3];
  kiln_status_t status = m->plan != NULL
                             ? kiln_library_plan_sizes(m->plan, sizes)
                             : kiln_program_sizes(m->program, sizes, work);
  bool ok = kiln_status_is_ok(status);
  kiln_status_free(status);
  return ok;
}

// That number, or NUMBER if it does not fit the type.
static uint64_t run_missing_fit(const kilni_cli_wanted_t* w, uint64_t number) {
  uint32_t bits = run_missing_info_of(w)->bytes * 8 -
                  (run_missing_kind_of(w) == 'i' ? 1 : 0);
  bool fits = bits >= 64 || number >> bits == 0;
  return fits ? number : NUMBER;
}

// Sizes where the first missing integer is `first` and all others are `rest`.
static bool try_numbers(const kilni_cli_missing_t* m, uint64_t first,
                        uint64_t rest, kiln_program_size_t* out) {
  uint64_t next = first;
  memcpy(out, m->known, sizeof(m->known));
  for (uint32_t i = 0; i < m->count; i++) {
    const kilni_cli_wanted_t* w = &m->wanted[i];
    if (!is_missing(m, i)) continue;
    if (!run_missing_is_number(w)) {
      if (!w->is_counted) out[i].count = ELEMENTS;
      continue;
    }
    // Floats do not affect sizes.
    out[i].bits = run_missing_kind_of(w) == 'f' ? 0 : run_missing_fit(w, next);
    if (run_missing_kind_of(w) != 'f') next = rest;
  }
  return run_missing_ask(m, out);
}

// Numbers consistent with what is given: sizes are often lengths of inputs.
static bool find_sizes(const kilni_cli_missing_t* m, kiln_program_size_t* out) {
  for (uint32_t i = 0; i < m->count; i++) {
    uint64_t count = m->known[i].count;
    if (run_missing_is_number(&m->wanted[i]) ||
        count == KILN_PROGRAM_COUNT_UNKNOWN) {
      continue;
    }
    if (try_numbers(m, count, 1, out) || try_numbers(m, count, count, out)) {
      return true;
    }
  }
  return try_numbers(m, NUMBER, NUMBER, out) || try_numbers(m, 1, 1, out);
}

// Whether the number of a missing integer follows from what is given: it is
// the only one, and no other number agrees with it.
static bool is_settled(const kilni_cli_missing_t* m, uint32_t index,
                       const kiln_program_size_t* sizes) {
  kiln_program_size_t other[KILNI_CLI_MAX_PARAMS];
  uint32_t missing = 0;
  for (uint32_t i = 0; i < m->count; i++) {
    if (is_missing(m, i) && run_missing_is_number(&m->wanted[i])) missing++;
  }
  char kind = run_missing_kind_of(&m->wanted[index]);
  return missing == 1 && kind != 'f' && kind != 'b' &&
         !try_numbers(m, sizes[index].bits + 1, 1, other);
}

// ---- Words ----

static bool run_missing_add(kilni_cli_buffer_t* out, const char* text,
                            kilni_cli_error_t* error) {
  return kilni_cli_buffer_add(out, text, strlen(text), error);
}

static bool run_missing_add_word(kilni_cli_buffer_t* out, const char* text,
                                 kilni_cli_error_t* error) {
  return run_missing_add(out, " ", error) &&
         kilni_cli_config_quote(out, KILNI_CONFIG_SHELL, text, error);
}

static bool add_given(const kilni_cli_request_t* r, kilni_cli_buffer_t* out,
                      kilni_cli_error_t* error) {
  bool ok = run_missing_add(out, "kiln run", error) &&
            run_missing_add_word(out, r->file, error);
  for (size_t i = 0; ok && i < r->given_count; i++) {
    const kilni_cli_given_t* given = &r->given[i];
    ok = run_missing_add(out, " --", error) &&
         run_missing_add(out, given->option->name, error);
    if (!ok || given->option->value == NULL || given->value == NULL) continue;
    ok = run_missing_add_word(out, given->value, error);
  }
  return ok;
}

static bool run_missing_add_number(const kilni_cli_wanted_t* w, uint64_t bits,
                                   kilni_cli_buffer_t* out,
                                   kilni_cli_error_t* error) {
  char word[192];
  if (run_missing_kind_of(w) == 'f') {
    (void)snprintf(word, sizeof(word), "%s=1.0", w->name);
  } else if (run_missing_kind_of(w) == 'b') {
    (void)snprintf(word, sizeof(word), "%s=true", w->name);
  } else {
    (void)snprintf(word, sizeof(word), "%s=%" PRIu64, w->name, bits);
  }
  return run_missing_add(out, " --arg", error) &&
         run_missing_add_word(out, word, error);
}

// Whether a file of that name exists, or will be written.
static bool run_missing_is_taken(const kilni_cli_missing_t* m,
                                 const char* path) {
  const kilni_cli_request_t* r = m->request;
  for (size_t i = 0; i < r->binding_count; i++) {
    if (strcmp((const char*)r->bindings[i].path.data, path) == 0) return true;
  }
  return access(path, F_OK) == 0;
}

// A file for the output, neither named by the command already nor existing.
static void choose_file(const kilni_cli_missing_t* m, const char* name,
                        const char* end, char* out, size_t capacity) {
  (void)snprintf(out, capacity, "%.80s.%s", name, end);
  for (int i = 2; i < 100 && run_missing_is_taken(m, out); i++) {
    (void)snprintf(out, capacity, "%.80s_%d.%s", name, i, end);
  }
}

static bool run_missing_add_buffer(const kilni_cli_missing_t* m, uint32_t index,
                                   uint64_t count, kilni_cli_buffer_t* out,
                                   kilni_cli_error_t* error) {
  const kilni_cli_wanted_t* w = &m->wanted[index];
  char word[256], path[128];
  const char* type = kiln_program_type_name(w->type);
  bool is_out =
      w->role == KILN_PROGRAM_ROLE_OUT || w->role == KILN_PROGRAM_ROLE_INOUT;
  bool ok = true;
  if (w->role != KILN_PROGRAM_ROLE_OUT) {
    (void)snprintf(word, sizeof(word), "%s=%s[%" PRIu64 "]", w->name, type,
                   count);
    ok = run_missing_add(out, " --buffer", error) &&
         run_missing_add_word(out, word, error);
  }
  if (!ok || !is_out) return ok;
  const char* end = strcmp(type, "bf16") == 0 ? "bin" : "npy";
  choose_file(m, w->name, end, path, sizeof(path));
  (void)snprintf(word, sizeof(word), "%.80s=%s", w->name, path);
  if (w->role == KILN_PROGRAM_ROLE_OUT && !w->is_counted) {
    size_t used = strlen(word);
    (void)snprintf(word + used, sizeof(word) - used, ":%s[%" PRIu64 "]", type,
                   count);
  }
  return run_missing_add(out, " --out", error) &&
         run_missing_add_word(out, word, error);
}

// Whether a number is unknown, and so every size that depends on it.
static bool has_open(const kilni_cli_request_t* r) {
  for (size_t i = 0; i < r->binding_count; i++) {
    if (r->bindings[i].is_open) return true;
  }
  return false;
}

// What only the user can supply, if the rest is the user's own.
static bool run_missing_add_own(const kilni_cli_wanted_t* w,
                                kilni_cli_buffer_t* out,
                                kilni_cli_error_t* error) {
  char word[128];
  const char* option = run_missing_is_number(w)             ? "arg"
                       : w->role == KILN_PROGRAM_ROLE_INOUT ? "inout"
                                                            : "in";
  (void)snprintf(word, sizeof(word), " --%s %.80s=%s", option, w->name,
                 run_missing_is_number(w) ? "VALUE" : "FILE");
  return run_missing_add(out, word, error);
}

static void run_missing_append(char* text, size_t capacity, const char* between,
                               const char* word) {
  size_t used = strlen(text);
  (void)snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : between,
                 word);
}

// Whether an input is missing: with it given, samples are gone.
static bool lacks_input(const kilni_cli_missing_t* m) {
  for (uint32_t i = 0; i < m->count; i++) {
    const kilni_cli_wanted_t* w = &m->wanted[i];
    if (is_missing(m, i) && !run_missing_is_number(w) &&
        w->role != KILN_PROGRAM_ROLE_OUT) {
      return true;
    }
  }
  return false;
}

// The whole command; empty where no sizes agree.
static bool run_missing_write_command(const kilni_cli_missing_t* m,
                                      kilni_cli_buffer_t* out,
                                      kilni_cli_error_t* error) {
  kiln_program_size_t sizes[KILNI_CLI_MAX_PARAMS];
  if (!find_sizes(m, sizes)) return true;
  bool ends_samples = lacks_input(m);
  bool ok = add_given(m->request, out, error);
  for (uint32_t i = 0; ok && i < m->count; i++) {
    const kilni_cli_wanted_t* w = &m->wanted[i];
    if (!is_missing(m, i) && !(ends_samples && is_sample(m, i))) continue;
    ok = run_missing_is_number(w)
             ? run_missing_add_number(w, sizes[i].bits, out, error)
             : run_missing_add_buffer(m, i, sizes[i].count, out, error);
  }
  return ok;
}

// The whole command with the user's data: placeholders replace what would be
// generated, which is listed after it. Empty if no sizes agree.
static bool write_own(const kilni_cli_missing_t* m, kilni_cli_buffer_t* out,
                      kilni_cli_error_t* error) {
  kiln_program_size_t sizes[KILNI_CLI_MAX_PARAMS];
  kilni_cli_buffer_t made = {0};
  char words[32] = "";
  if (!find_sizes(m, sizes)) return true;
  bool ok = add_given(m->request, out, error);
  for (uint32_t i = 0; ok && i < m->count; i++) {
    const kilni_cli_wanted_t* w = &m->wanted[i];
    if (!is_missing(m, i)) continue;
    if (w->role == KILN_PROGRAM_ROLE_OUT) {
      ok = run_missing_add_buffer(m, i, sizes[i].count, out, error);
    } else if (run_missing_is_number(w) && is_settled(m, i, sizes)) {
      ok = run_missing_add_number(w, sizes[i].bits, out, error);
    } else {
      bool is_other =
          strstr(words, run_missing_is_number(w) ? "VALUE" : "FILE") == NULL;
      if (is_other) {
        run_missing_append(words, sizeof(words), " and ",
                           run_missing_is_number(w) ? "VALUE" : "FILE");
      }
      ok = run_missing_add_own(w, out, error) &&
           (run_missing_is_number(w)
                ? run_missing_add_number(w, sizes[i].bits, &made, error)
                : run_missing_add_buffer(m, i, sizes[i].count, &made, error));
    }
  }
  if (ok && made.size != 0) {
    ok = run_missing_add(out, ", with your own in place of ", error) &&
         run_missing_add(out, words, error);
    if (ok && !has_open(m->request)) {
      ok = run_missing_add(out, "; to try it with generated numbers, write",
                           error) &&
           kilni_cli_buffer_add(out, made.data, made.size, error);
    }
  }
  kilni_cli_buffer_deinit(&made);
  return ok;
}

// "x" (in f32)
static void run_missing_describe(const kilni_cli_wanted_t* w, char* out,
                                 size_t capacity) {
  const char* role = kiln_program_role_name(w->role);
  (void)snprintf(out, capacity, "\"%.80s\" (%s%s%s)", w->name, role,
                 role[0] != 0 ? " " : "", kiln_program_type_name(w->type));
}

static void run_missing_suggest(const kilni_cli_wanted_t* w, char* out,
                                size_t capacity) {
  bool counts = w->role == KILN_PROGRAM_ROLE_OUT && !w->is_counted;
  const char* option = run_missing_is_number(w)             ? "arg"
                       : w->role == KILN_PROGRAM_ROLE_OUT   ? "out"
                       : w->role == KILN_PROGRAM_ROLE_INOUT ? "inout"
                                                            : "in";
  (void)snprintf(out, capacity, "--%s %.80s=%s%s%s%s", option, w->name,
                 run_missing_is_number(w) ? "VALUE" : "FILE", counts ? ":" : "",
                 counts ? kiln_program_type_name(w->type) : "",
                 counts ? "[N]" : "");
}

bool kilni_cli_missing_check(const kilni_cli_missing_t* m,
                             kilni_cli_error_t* error) {
  char names[768] = "", trail[sizeof(error->trail)] = "", word[160], line[256];
  uint32_t missing = 0;
  for (uint32_t i = 0; i < m->count; i++) {
    if (!is_missing(m, i)) continue;
    run_missing_describe(&m->wanted[i], word, sizeof(word));
    run_missing_append(names, sizeof(names), ", ", word);
    run_missing_suggest(&m->wanted[i], word, sizeof(word));
    (void)snprintf(line, sizeof(line), "  %s", word);
    run_missing_append(trail, sizeof(trail), "\n", line);
    missing++;
  }
  if (missing == 0) return true;
  kilni_cli_buffer_t command = {0};
  kilni_cli_error_t none;
  bool written = has_own_data(m->request)
                     ? write_own(m, &command, &none)
                     : run_missing_write_command(m, &command, &none);
  bool whole =
      written && command.size != 0 && command.size < sizeof(error->fix);
  (void)kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT, NULL,
      "parameters of the program \"%s\" that are not given: %s",
      m->request->file, names);
  memcpy(error->trail, trail, sizeof(trail));
  if (whole) {
    kilni_cli_error_fix(error, "%s", (const char*)command.data);
  } else {
    kilni_cli_error_fix(error, "give %s", missing == 1 ? "it" : "all of them");
  }
  kilni_cli_buffer_deinit(&command);
  return false;
}
