// SPDX-License-Identifier: Apache-2.0
//
// base: the environment, read once into a snapshot. The only file that may
// call getenv.
#define _GNU_SOURCE  // secure_getenv
#include "base/env.h"

#include <stdlib.h>
#include <string.h>

#include "base/status_make.h"
#include "base/str.h"

#define KILNI_ENV_VAR(name, room, type, fallback, text) \
  {#name, #room, #type, fallback, text},
static const kilni_env_row_t kRows[] = {
#include "base/env_vars.inc"
};
#undef KILNI_ENV_VAR

const kilni_env_row_t* kilni_env_row(kilni_env_id_t id) {
  return &kRows[id];
}

kiln_status_t kilni_env_set(kilni_env_t* env, kilni_env_id_t id,
                            const char* value) {
  char* copy = NULL;
  if (value != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_strdup(env->allocator, kilni_sv(value), &copy));
  }
  kilni_strfree(env->allocator, env->values[id]);
  env->values[id] = copy;
  return NULL;
}

// An empty value is as good as none, but for text, where it may mean something
// (an empty CUDA_VISIBLE_DEVICES hides every GPU).
static bool counts_as_unset(const kilni_env_row_t* row, const char* value) {
  return value[0] == 0 && strcmp(row->type, "text") != 0;
}

kiln_status_t kilni_env_init(kilni_env_t* env, kiln_allocator_t allocator) {
  memset(env, 0, sizeof(*env));
  env->allocator = allocator;
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    const char* value = secure_getenv(kRows[i].name);
    if (value == NULL || counts_as_unset(&kRows[i], value)) continue;
    kiln_status_t status = kilni_env_set(env, (kilni_env_id_t)i, value);
    if (!kiln_status_is_ok(status)) {
      kilni_env_deinit(env);
      return status;
    }
  }
  return NULL;
}

void kilni_env_deinit(kilni_env_t* env) {
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    kilni_strfree(env->allocator, env->values[i]);
    env->values[i] = NULL;
  }
}

const char* kilni_env_text(const kilni_env_t* env, kilni_env_id_t id) {
  return env->values[id];
}

static const char* value_or_fallback(const kilni_env_t* env,
                                     kilni_env_id_t id) {
  return env->values[id] ? env->values[id] : kRows[id].fallback;
}

static kiln_status_t bad_value(kilni_env_id_t id, const char* value,
                               const char* wanted) {
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the environment variable %s is \"%s\", which is not %s",
                 kRows[id].name, value, wanted),
      "unset %s, or set it to %s", kRows[id].name, wanted);
}

kiln_status_t kilni_env_u64(const kilni_env_t* env, kilni_env_id_t id,
                            uint64_t* out_value) {
  const char* value = value_or_fallback(env, id);
  if (kilni_sv_to_u64(kilni_sv(value), out_value)) return NULL;
  return bad_value(id, value, "a whole number from 0 up");
}

kiln_status_t kilni_env_switch(const kilni_env_t* env, kilni_env_id_t id,
                               bool* out_on) {
  const char* value = value_or_fallback(env, id);
  *out_on = strcmp(value, "on") == 0 || strcmp(value, "1") == 0;
  if (*out_on || strcmp(value, "off") == 0 || strcmp(value, "0") == 0) {
    return NULL;
  }
  return bad_value(id, value, "on or off");
}
