// SPDX-License-Identifier: Apache-2.0
//
// toolkit: the public header. What runtime/ makes a context with.
#ifndef KILN_SRC_TOOLKIT_TOOLKIT_H_
#define KILN_SRC_TOOLKIT_TOOLKIT_H_

#include "base/env.h"
#include "kiln/toolkit.h"

// As kiln_toolkit_create, with the environment of the caller, which is copied.
kiln_status_t kilni_toolkit_create(const kiln_toolkit_options_t* options,
                                   const kilni_base_env_t* env,
                                   kiln_toolkit_t** out_toolkit);

// As kiln_toolkit_check, with the uses that were declared to the context.
kiln_status_t kilni_toolkit_check_declared(kiln_toolkit_t* toolkit,
                                           kiln_toolkit_item_t* const* items,
                                           size_t item_count,
                                           kiln_compat_report_t** out_report);

// The wheel that owns a component, by its RECORD; false, with "", where none
// does. Borrowed.
bool kilni_toolkit_item_wheel(const kiln_toolkit_item_t* item,
                              const char** out_name, const char** out_version);

#endif  // KILN_SRC_TOOLKIT_TOOLKIT_H_
