// SPDX-License-Identifier: Apache-2.0
//
// base: the environment, read once into a snapshot. The only file that may
// call getenv.
#define _GNU_SOURCE  // environ
#include "base/env.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"

#define KILNI_ENV_VAR(name, module, type, fallback, text) \
  {#name, #module, #type, fallback, text, sizeof(#name) - 1},
static const kilni_base_env_row_t kRows[] = {
#include "base/env_vars.inc"
};
#undef KILNI_ENV_VAR

const kilni_base_env_row_t* kilni_base_env_row(kilni_base_env_id_t id) {
  return &kRows[id];
}

kiln_status_t kilni_base_env_set(kilni_base_env_t* env, kilni_base_env_id_t id,
                                 const char* value) {
  char* copy = NULL;
  if (value != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(env->allocator, kilni_base_sv(value), &copy));
  }
  kilni_base_strfree(env->allocator, env->values[id]);
  env->values[id] = copy;
  return kiln_ok();
}

// An empty value is as good as none, but for text, where it may mean something
// (an empty CUDA_VISIBLE_DEVICES hides every GPU).
static bool counts_as_unset(const kilni_base_env_row_t* row,
                            const char* value) {
  return value[0] == 0 && strcmp(row->type, "text") != 0;
}

// ---- Families ----

// The place of `name` among the members, or their count.
static size_t member_place(const kilni_base_env_t* env, const char* name) {
  char* const* members = env->members;
  size_t length = strlen(name);
  for (size_t i = 0; i < env->member_count; i++) {
    if (strncmp(members[i], name, length) == 0 && members[i][length] == '=') {
      return i;
    }
  }
  return env->member_count;
}

static void remove_member(kilni_base_env_t* env, size_t index) {
  char** members = env->members;
  kilni_base_strfree(env->allocator, members[index]);
  env->member_count--;
  memmove(members + index, members + index + 1,
          (env->member_count - index) * sizeof(*members));
}

kiln_status_t kilni_base_env_set_member(kilni_base_env_t* env, const char* name,
                                        const char* value) {
  char* text = NULL;
  if (value != NULL && value[0] != 0) {
    KILNI_RETURN_IF_ERROR(kilni_base_grow(env->allocator, env->member_count + 1,
                                          sizeof(char*), &env->member_capacity,
                                          &env->members));
    kilni_base_str_t builder;
    kilni_base_str_init(&builder, env->allocator, SIZE_MAX - 1);
    kilni_base_str_addf(&builder, "%s=%s", name, value);
    KILNI_RETURN_IF_ERROR(kilni_base_str_take(&builder, &text));
  }
  size_t index = member_place(env, name);
  if (index < env->member_count) remove_member(env, index);
  if (text != NULL) ((char**)env->members)[env->member_count++] = text;
  return kiln_ok();
}

const char* kilni_base_env_member(const kilni_base_env_t* env,
                                  const char* name) {
  size_t index = member_place(env, name);
  if (index == env->member_count) return NULL;
  return ((char* const*)env->members)[index] + strlen(name) + 1;
}

const char* kilni_base_env_member_at(const kilni_base_env_t* env, size_t index,
                                     kiln_string_view_t* out_name) {
  *out_name = kilni_base_sv_make(NULL, 0);
  if (index >= env->member_count) return NULL;
  const char* text = ((char* const*)env->members)[index];
  const char* equals = strchr(text, '=');
  *out_name = kilni_base_sv_make(text, (size_t)(equals - text));
  return equals + 1;
}

static kiln_status_t take_member(kilni_base_env_t* env, const char* text,
                                 const char* equals) {
  char* name = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      env->allocator, kilni_base_sv_make(text, (size_t)(equals - text)),
      &name));
  kiln_status_t status = kiln_ok();
  if (kilni_base_env_member(env, name) == NULL) {
    status = kilni_base_env_set_member(env, name, equals + 1);
  }
  kilni_base_strfree(env->allocator, name);
  return status;
}

// ---- The snapshot ----

// One "NAME=value". `seen`: which rows have been met.
static kiln_status_t env_take_text(kilni_base_env_t* env, const char* text,
                                   bool seen[KILNI_ENV_COUNT]) {
  const char* equals = NULL;
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    const kilni_base_env_row_t* row = &kRows[i];
    if (text[0] != row->name[0]) continue;
    size_t length = row->length;
    if (strncmp(text, row->name, length) != 0) continue;
    if (equals == NULL) equals = strchr(text, '=');
    if (equals == NULL) return kiln_ok();
    if (strcmp(row->type, "family") == 0) return take_member(env, text, equals);
    // Of two with one name the first counts, as for getenv.
    if (text + length != equals || seen[i]) continue;
    seen[i] = true;
    if (counts_as_unset(row, equals + 1)) return kiln_ok();
    return kilni_base_env_set(env, (kilni_base_env_id_t)i, equals + 1);
  }
  return kiln_ok();
}

// Once along the environment, which is long where the list of rows is not.
kiln_status_t kilni_base_env_init(kilni_base_env_t* env,
                                  kiln_allocator_t allocator) {
  memset(env, 0, sizeof(*env));
  env->allocator = allocator;
  // A program with more rights than its caller believes none of it.
  if (environ == NULL || getauxval(AT_SECURE) != 0) return kiln_ok();
  bool seen[KILNI_ENV_COUNT] = {false};
  // Most variables begin with a letter that no row begins with.
  uint64_t letters = 0;
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    letters |= 1ull << (kRows[i].name[0] & 63);
  }
  for (char** at = environ; *at != NULL; at++) {
    if ((letters >> ((*at)[0] & 63) & 1) == 0) continue;
    kiln_status_t status = env_take_text(env, *at, seen);
    if (kiln_status_is_ok(status)) continue;
    kilni_base_env_deinit(env);
    return status;
  }
  return kiln_ok();
}

kiln_status_t kilni_base_env_copy(const kilni_base_env_t* from,
                                  kiln_allocator_t allocator,
                                  kilni_base_env_t* out_env) {
  memset(out_env, 0, sizeof(*out_env));
  out_env->allocator = allocator;
  kiln_status_t status = kiln_ok();
  for (size_t i = 0; i < KILNI_ENV_COUNT && kiln_status_is_ok(status); i++) {
    status =
        kilni_base_env_set(out_env, (kilni_base_env_id_t)i, from->values[i]);
  }
  for (size_t i = 0; i < from->member_count && kiln_status_is_ok(status); i++) {
    kiln_string_view_t view;
    const char* value = kilni_base_env_member_at(from, i, &view);
    char* name = NULL;
    status = kilni_base_strdup(allocator, view, &name);
    if (!kiln_status_is_ok(status)) break;
    status = kilni_base_env_set_member(out_env, name, value);
    kilni_base_strfree(allocator, name);
  }
  if (!kiln_status_is_ok(status)) kilni_base_env_deinit(out_env);
  return status;
}

void kilni_base_env_deinit(kilni_base_env_t* env) {
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    kilni_base_strfree(env->allocator, env->values[i]);
    env->values[i] = NULL;
  }
  char** members = env->members;
  for (size_t i = 0; i < env->member_count; i++) {
    kilni_base_strfree(env->allocator, members[i]);
  }
  kilni_base_free_array(env->allocator, members, env->member_capacity,
                        sizeof(char*));
  env->members = NULL;
  env->member_count = 0;
  env->member_capacity = 0;
}

const char* kilni_base_env_text_by_name(const kilni_base_env_t* env,
                                        const char* name) {
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    if (strcmp(kRows[i].name, name) == 0) return env->values[i];
  }
  return NULL;
}

const char* kilni_base_env_text(const kilni_base_env_t* env,
                                kilni_base_env_id_t id) {
  return env->values[id];
}

static const char* value_or_fallback(const kilni_base_env_t* env,
                                     kilni_base_env_id_t id) {
  return env->values[id] ? env->values[id] : kRows[id].fallback;
}

static kiln_status_t env_bad_value(kilni_base_env_id_t id, const char* value,
                                   const char* wanted) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the environment variable %s is \"%s\", which is not %s",
                 kRows[id].name, value, wanted),
      "unset %s, or set it to %s", kRows[id].name, wanted);
}

kiln_status_t kilni_base_env_u64(const kilni_base_env_t* env,
                                 kilni_base_env_id_t id, uint64_t* out_value) {
  const char* value = value_or_fallback(env, id);
  if (kilni_base_sv_to_u64(kilni_base_sv(value), out_value)) return kiln_ok();
  return env_bad_value(id, value, "a whole number from 0 up");
}

kiln_status_t kilni_base_env_switch(const kilni_base_env_t* env,
                                    kilni_base_env_id_t id, bool* out_on) {
  const char* value = value_or_fallback(env, id);
  *out_on = strcmp(value, "on") == 0 || strcmp(value, "1") == 0;
  if (*out_on || strcmp(value, "off") == 0 || strcmp(value, "0") == 0) {
    return kiln_ok();
  }
  return env_bad_value(id, value, "on or off");
}
