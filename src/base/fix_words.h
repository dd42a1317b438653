// SPDX-License-Identifier: Apache-2.0
//
// base: words that several texts of a Fix have in common.
#ifndef KILN_SRC_BASE_FIX_WORDS_H_
#define KILN_SRC_BASE_FIX_WORDS_H_

// Follows a `python3 -m pip install ...`: outside an environment there is no
// pip on a bare Debian, and one that refuses on other systems.
#define KILNI_FIX_ENVIRONMENT                                              \
  " (outside an environment after `python3 -m venv cuda && . "             \
  "cuda/bin/activate`, which on Debian and Ubuntu needs `apt-get install " \
  "python3-venv`)"

#endif  // KILN_SRC_BASE_FIX_WORDS_H_
