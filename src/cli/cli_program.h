// SPDX-License-Identifier: Apache-2.0
//
// cli: .kiln files: reading, compiling and listing them.
#ifndef KILN_SRC_CLI_CLI_PROGRAM_H_
#define KILN_SRC_CLI_CLI_PROGRAM_H_

#include <jansson.h>

#include "cli/cli_array.h"
#include "cli/cli_command.h"
#include "kiln/image.h"
#include "kiln/library.h"
#include "kiln/program.h"

// True for a file name that ends in .kiln, and for lib:NAME.
bool kilni_cli_program_is(const char* file);

// The program of the library by that name; NOT_FOUND names the nearest.
bool kilni_cli_library_find(const char* name, kiln_library_entry_t* out_entry,
                            kilni_cli_error_t* error);

// Reads a program; its errors go to standard error, with their lines, and the
// first one is the error. `call` NULL: without --define.
bool kilni_cli_program_read(const char* file, const kilni_cli_call_t* call,
                            kiln_program_t** out_program,
                            kilni_cli_error_t* error);

enum { KILNI_CLI_DEFINE_BYTES = 80 };

// The type in the text that, set to `type` by --define, gives the parameter
// `name` that type; false if there is none. `call` has the other definitions.
bool kilni_cli_program_define_of(const char* file, const kilni_cli_call_t* call,
                                 const char* name, uint32_t type,
                                 char out[KILNI_CLI_DEFINE_BYTES]);

// The type of its elements or values among the command's own.
kilni_cli_type_t kilni_cli_program_type(uint32_t type);

// `kiln compile FILE.kiln` and `kiln inspect FILE.kiln`.
bool kilni_cli_program_compile(const kilni_cli_call_t* call, const char* out,
                               kilni_cli_error_t* error);
// `describe` lists the image of its PTX.
typedef json_t* (*kilni_cli_image_json_t)(const kiln_image_t* image);
bool kilni_cli_program_inspect(const kilni_cli_call_t* call,
                               kilni_cli_image_json_t describe,
                               kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_PROGRAM_H_
