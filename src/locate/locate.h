// SPDX-License-Identifier: Apache-2.0
//
// locate: the public header. What the modules above ask of the search.
#ifndef KILN_SRC_LOCATE_LOCATE_H_
#define KILN_SRC_LOCATE_LOCATE_H_

#include "base/env.h"
#include "kiln/locate.h"

enum { KILNI_OVERRIDE_NAME_BYTES = 96 };

// As kiln_locate_create, with the environment of the caller, which is copied.
// `env` NULL is an empty one.
kiln_status_t kilni_locate_create(const kiln_locate_options_t* options,
                                  const kilni_base_env_t* env,
                                  kiln_locate_t** out_locate);

// True if no variable of the environment counts in its searches.
bool kilni_locate_is_hermetic(const kiln_locate_t* locate);

// The variable that overrides a row: "KILN_LOCATE_LIB_NVRTC".
void kilni_locate_override_name(const kiln_locate_entry_t* entry,
                                size_t capacity, char* out_name);

// True if an option or a variable names a row by itself, whether it is there or
// not: then nothing else counts for it.
bool kilni_locate_is_named(const kiln_locate_t* locate, uint32_t kind,
                           const char* name);

// The site-packages folders of a context, in order; NULL out of range. Lives
// until the context is refreshed or released. The first call works them out.
kiln_status_t kilni_locate_site(kiln_locate_t* locate, uint32_t index,
                                const char** out_path);

#endif  // KILN_SRC_LOCATE_LOCATE_H_
