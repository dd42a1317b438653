// SPDX-License-Identifier: Apache-2.0
//
// cli: what a file is by its first bytes, whatever its name says. Pure.
#ifndef KILN_SRC_CLI_CLI_SIGNATURE_H_
#define KILN_SRC_CLI_CLI_SIGNATURE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A format of files. thread-safe
typedef struct kilni_cli_signature_t {
  const char* what;  // "a JPEG picture"
  const char* end;   // of the names of such files, ".jpg"
  bool is_read;      // under that name the command reads it
  bool is_sure;      // no numbers begin like that by chance
} kilni_cli_signature_t;

// NULL where the bytes begin like no format that is known.
const kilni_cli_signature_t* kilni_cli_signature_of(const uint8_t* data,
                                                    size_t size);

// The format that the name of a file says, of those that the command neither
// reads nor writes; NULL: any other name.
const kilni_cli_signature_t* kilni_cli_signature_named(const char* path);

#endif  // KILN_SRC_CLI_CLI_SIGNATURE_H_
