// SPDX-License-Identifier: Apache-2.0
//
// cli: numbers of the types that elements and values have. Pure.
#ifndef KILN_SRC_CLI_CLI_NUMBER_H_
#define KILN_SRC_CLI_CLI_NUMBER_H_

#include "cli/cli_array.h"

enum { KILNI_CLI_NUMBER_TEXT = 64 };

// The value of the lowest bits of `bits` as a number of the type; integers
// above 2^53 are rounded.
double kilni_cli_number_of(kilni_cli_type_t type, uint64_t bits);

// The bits of the float of the type nearest to `value`, ties to even. False if
// it is too large for the type; infinities are representable.
bool kilni_cli_number_bits(double value, kilni_cli_type_t type, uint64_t* out);

// The number `bits` of `type` as a literal of another type, "77i32". False if
// that type cannot represent it.
bool kilni_cli_number_text(kilni_cli_type_t type, uint64_t bits,
                           kilni_cli_type_t as,
                           char out[KILNI_CLI_NUMBER_TEXT]);

#endif  // KILN_SRC_CLI_CLI_NUMBER_H_
