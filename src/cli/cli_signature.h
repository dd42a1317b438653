// SPDX-License-Identifier: Apache-2.0
//
// cli: the format of a file by its first bytes, whatever its name. Pure.
#ifndef KILN_SRC_CLI_CLI_SIGNATURE_H_
#define KILN_SRC_CLI_CLI_SIGNATURE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A format of files. thread-safe
typedef struct kilni_cli_signature_t {
  const char* what;  // "a JPEG picture"
  const char* end;   // of the names of such files, ".jpg"
  bool is_read;      // the command reads it under that name
  bool is_sure;      // numbers do not begin like that by chance
} kilni_cli_signature_t;

// NULL if the bytes begin like no known format.
const kilni_cli_signature_t* kilni_cli_signature_of(const uint8_t* data,
                                                    size_t size);

// The format that a file name implies, of those that the command neither reads
// nor writes; NULL: any other name.
const kilni_cli_signature_t* kilni_cli_signature_named(const char* path);

// The format that a file name implies, where its bytes are not a plain sequence
// of numbers. thread-safe
typedef struct kilni_cli_named_t {
  const char* end;   // ".csv"
  const char* what;  // "comma-separated values"
  bool is_list;      // a list of numbers as people write them, mostly
} kilni_cli_named_t;

// NULL for a name that implies none, such as "x.bin" or "x".
const kilni_cli_named_t* kilni_cli_signature_says(const char* path);

#endif  // KILN_SRC_CLI_CLI_SIGNATURE_H_
