// SPDX-License-Identifier: Apache-2.0
//
// program: numbers of the text form: read and written exactly, in any locale.
#ifndef KILN_SRC_PROGRAM_TEXT_PROGRAM_NUMBER_H_
#define KILN_SRC_PROGRAM_TEXT_PROGRAM_NUMBER_H_

#include "kiln/api.h"

enum {
  KILNI_NUMBER_MAX_BYTES = 128,  // of one number in a text
  KILNI_NUMBER_TEXT = 48,        // space for one that is written
};

typedef enum kilni_program_number_result_t {
  KILNI_NUMBER_OK,
  KILNI_NUMBER_TOO_LARGE,  // for its type
  KILNI_NUMBER_NOT_WHOLE,  // has a point or an exponent, and is for an integer
  KILNI_NUMBER_MALFORMED,
} kilni_program_number_result_t;

// The bits of a number without sign and suffix as a value of `type` (any but
// bool): 12, 0x1f, 1.5, 1e-3, 0x1.8p3. Floats are rounded to nearest even.
kilni_program_number_result_t kilni_program_number_read(kiln_string_view_t text,
                                                        uint32_t type,
                                                        bool negative,
                                                        uint64_t* out_bits);

// Writes a literal that reads as exactly these bits: the fewest digits, with a
// suffix unless it is a u32, an f32 or a bool.
void kilni_program_number_write(uint32_t type, uint64_t bits,
                                char out_text[KILNI_NUMBER_TEXT]);

#endif  // KILN_SRC_PROGRAM_TEXT_PROGRAM_NUMBER_H_
