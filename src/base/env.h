// SPDX-License-Identifier: Apache-2.0
//
// base: the environment, read once into a snapshot. The only module that may
// call getenv, and env.c the only file.
#ifndef KILN_SRC_BASE_ENV_H_
#define KILN_SRC_BASE_ENV_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

typedef enum kilni_base_env_id_t {
#define KILNI_ENV_VAR(name, module, type, fallback, text) KILNI_ENV_##name,
#include "base/env_vars.inc"
#undef KILNI_ENV_VAR
  KILNI_ENV_COUNT
} kilni_base_env_id_t;

// One row of env_vars.inc. thread-safe
typedef struct kilni_base_env_row_t {
  const char* name;
  const char* module;
  const char* type;
  const char* fallback;
  const char* text;
  size_t length;  // of the name
} kilni_base_env_row_t;

// A snapshot. thread-safe
typedef struct kilni_base_env_t {
  kiln_allocator_t allocator;
  char* values[KILNI_ENV_COUNT];  // NULL where unset
  void* members;                  // of families, "NAME=VALUE"
  size_t member_count;
  size_t member_capacity;
} kilni_base_env_t;

const kilni_base_env_row_t* kilni_base_env_row(kilni_base_env_id_t id);
// Reads every row. In a privileged process (set-user-id) all are unset.
kiln_status_t kilni_base_env_init(kilni_base_env_t* env,
                                  kiln_allocator_t allocator);
void kilni_base_env_deinit(kilni_base_env_t* env);
// Sets a value in the snapshot only (tests, options). NULL unsets.
kiln_status_t kilni_base_env_set(kilni_base_env_t* env, kilni_base_env_id_t id,
                                 const char* value);
const char* kilni_base_env_text(const kilni_base_env_t* env,
                                kilni_base_env_id_t id);  // or NULL

// The value of a row by its name; NULL where it is unset or no row.
const char* kilni_base_env_text_by_name(const kilni_base_env_t* env,
                                        const char* name);

// The variables that belong to a family (a row of that type): one by name, or
// all; NULL where it is unset or out of range. Empty
// ones are unset.
const char* kilni_base_env_member(const kilni_base_env_t* env,
                                  const char* name);
const char* kilni_base_env_member_at(const kilni_base_env_t* env, size_t index,
                                     kiln_string_view_t* out_name);
// As kilni_base_env_set, for a member.
kiln_status_t kilni_base_env_set_member(kilni_base_env_t* env, const char* name,
                                        const char* value);
// A copy with everything that is set.
kiln_status_t kilni_base_env_copy(const kilni_base_env_t* from,
                                  kiln_allocator_t allocator,
                                  kilni_base_env_t* out_env);

// A number; the row's default when unset. INVALID_ARGUMENT naming the variable
// when it is none.
kiln_status_t kilni_base_env_u64(const kilni_base_env_t* env,
                                 kilni_base_env_id_t id, uint64_t* out_value);
kiln_status_t kilni_base_env_switch(const kilni_base_env_t* env,
                                    kilni_base_env_id_t id, bool* out_on);

#endif  // KILN_SRC_BASE_ENV_H_
