// SPDX-License-Identifier: Apache-2.0
//
// truth: every answer of an approximate form over whole binades.
#ifndef KILN_TESTS_TRUTH_TRUTH_BINADES_H_
#define KILN_TESTS_TRUTH_TRUTH_BINADES_H_

// Writes FOLDER/FORM.SIGN_AND_EXPONENT.d2 for the binades that say how the unit
// works: for each of the 2^23 mantissas the answer's bits, as the difference
// of the difference to the one before (both start at 0), zigzag, a byte; 255
// is an escape in front of the four bytes of the answer itself. 0, 1, or 77
// where there is no GPU. `soft`: asks the software device, to try it out.
int truth_binades(const char* folder, int soft, const char* only);

#endif  // KILN_TESTS_TRUTH_TRUTH_BINADES_H_
