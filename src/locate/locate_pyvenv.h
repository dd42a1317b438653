// SPDX-License-Identifier: Apache-2.0
//
// locate: reader of pyvenv.cfg, the mark of a Python virtual environment.
//
// Private to the module.
#ifndef KILN_SRC_LOCATE_LOCATE_PYVENV_H_
#define KILN_SRC_LOCATE_LOCATE_PYVENV_H_

#include "kiln/api.h"

// The contents of the file; views into its text. thread-compatible
typedef struct kilni_locate_pyvenv_t {
  kiln_string_view_t home;     // the folder of the base program; empty: unsaid
  kiln_string_view_t version;  // "3.11"; empty: unsaid
  bool system_sites;           // include-system-site-packages
} kilni_locate_pyvenv_t;

// Reads any text; a line that is none of `key = value` is passed over, and of
// a key that is there twice the last counts, as for Python.
void kilni_locate_pyvenv_parse(kiln_string_view_t text,
                               kilni_locate_pyvenv_t* out_config);

#endif  // KILN_SRC_LOCATE_LOCATE_PYVENV_H_
