// SPDX-License-Identifier: Apache-2.0
//
// toolkit: the environment variables that count in a context.
#include <string.h>

#include "base/status_make.h"
#include "base/str.h"
#include "kiln/toolkit.h"
#include "toolkit/toolkit_inside.h"

enum { MAX_VARIABLES = 4096 };

static bool counts(const kilni_base_env_row_t* row) {
  return strcmp(row->module, "locate") == 0 ||
         strcmp(row->module, "compat") == 0;
}

static kiln_status_t variables_add(kiln_toolkit_t* toolkit, const char* name,
                                   const char* value) {
  kiln_toolkit_variable_t variable = {name, value};
  return kilni_toolkit_append(toolkit->host.allocator, &toolkit->variables,
                              MAX_VARIABLES, &variable, sizeof(variable));
}

// Those of a family that are set; the family itself is not a variable.
static kiln_status_t variables_add_members(kiln_toolkit_t* toolkit,
                                           const kilni_base_env_row_t* family) {
  kiln_allocator_t allocator = toolkit->host.allocator;
  kiln_string_view_t name;
  const char* value = NULL;
  for (size_t i = 0;
       (value = kilni_base_env_member_at(&toolkit->env, i, &name)) != NULL;
       i++) {
    char* copy = NULL;
    if (!kilni_base_sv_starts_with(name, family->name)) continue;
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(allocator, name, &copy));
    kiln_status_t status =
        kilni_toolkit_append(allocator, &toolkit->variable_names, MAX_VARIABLES,
                             &copy, sizeof(copy));
    if (!kiln_status_is_ok(status)) {
      kilni_base_strfree(allocator, copy);
      return status;
    }
    KILNI_RETURN_IF_ERROR(variables_add(toolkit, copy, value));
  }
  return kiln_ok();
}

kiln_status_t kilni_toolkit_variables_list(kiln_toolkit_t* toolkit) {
  for (size_t i = 0; i < KILNI_ENV_COUNT; i++) {
    const kilni_base_env_row_t* row =
        kilni_base_env_row((kilni_base_env_id_t)i);
    if (!counts(row)) continue;
    KILNI_RETURN_IF_ERROR(
        strcmp(row->type, "family") == 0
            ? variables_add_members(toolkit, row)
            : variables_add(
                  toolkit, row->name,
                  kilni_base_env_text(&toolkit->env, (kilni_base_env_id_t)i)));
  }
  return kiln_ok();
}

void kilni_toolkit_variables_deinit(kiln_toolkit_t* toolkit) {
  kiln_allocator_t allocator = toolkit->host.allocator;
  char** names = toolkit->variable_names.items;
  for (size_t i = 0; i < toolkit->variable_names.count; i++) {
    kilni_base_strfree(allocator, names[i]);
  }
  kilni_toolkit_list_deinit(allocator, &toolkit->variable_names,
                            sizeof(*names));
  kilni_toolkit_list_deinit(allocator, &toolkit->variables,
                            sizeof(kiln_toolkit_variable_t));
}

uint32_t kiln_toolkit_variable_count(const kiln_toolkit_t* toolkit) {
  return (uint32_t)toolkit->variables.count;
}

const kiln_toolkit_variable_t* kiln_toolkit_variable(
    const kiln_toolkit_t* toolkit, uint32_t index) {
  const kiln_toolkit_variable_t* all = toolkit->variables.items;
  return index < toolkit->variables.count ? all + index : NULL;
}
