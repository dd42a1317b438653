// SPDX-License-Identifier: Apache-2.0
//
// locate: the door. What the rooms above ask of the search.
#ifndef KILN_SRC_LOCATE_LOCATE_H_
#define KILN_SRC_LOCATE_LOCATE_H_

#include "base/env.h"
#include "kiln/locate.h"

enum { KILNI_OVERRIDE_NAME_BYTES = 96 };

// As kiln_locate_create, with the environment of the caller, which is copied.
// `env` NULL is an empty one.
kiln_status_t kilni_locate_create(const kiln_locate_options_t* options,
                                  const kilni_env_t* env,
                                  kiln_locate_t** out_locate);

// The variable that overrides a row: "KILN_LOCATE_LIB_NVRTC".
void kilni_override_name(const kiln_locate_entry_t* entry, size_t capacity,
                         char* out_name);

// The site-packages folders of a context, in order; NULL out of range. Lives
// until the context is refreshed or released. The first call works them out.
kiln_status_t kilni_locate_site(kiln_locate_t* locate, uint32_t index,
                                const char** out_path);

// ---- Going away: the search for NVRTC alone ----

// With the environment of the caller. `explicit_path` and
// `system_root` may be NULL. The report is made also with NOT_FOUND.
kiln_status_t kilni_locate_nvrtc(kiln_allocator_t allocator,
                                 const kilni_env_t* env,
                                 const char* explicit_path,
                                 const char* system_root,
                                 kiln_locate_report_t** out_report);

// The include folder of the toolkit that the library file at `path` belongs
// to, by where it lies; "" where there is none. Freed by kilni_strfree.
kiln_status_t kilni_locate_include_dir(kiln_allocator_t allocator,
                                       const char* path, char** out_dir);

// Adds to a report a place that gave nothing, e.g. a candidate that could not
// be opened. Only while the caller is the report's only user.
kiln_status_t kilni_locate_report_reject(kiln_locate_report_t* report,
                                         const char* path, const char* why);

#endif  // KILN_SRC_LOCATE_LOCATE_H_
