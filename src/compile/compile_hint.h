// SPDX-License-Identifier: Apache-2.0
//
// compile: what to do about a source that NVRTC refused. Pure.
//
// NVRTC reports what it met. It does not know the usual causes: it has no
// standard headers, a header is in a wheel that is not installed, the file is a
// whole program.
#ifndef KILN_SRC_COMPILE_COMPILE_HINT_H_
#define KILN_SRC_COMPILE_COMPILE_HINT_H_

#include "kiln/api.h"

// What is known. thread-compatible
typedef struct kilni_compile_refusal_t {
  kiln_string_view_t error;   // the first line of the log that speaks of one
  kiln_string_view_t source;  // the source itself
  const char* name;           // what messages call it
  uint32_t line;              // of the compiler: 13000 is 13.0; 0: not known
  bool has_cccl;              // libcu++, CUB and Thrust were found
  bool has_toolkit;           // the runtime's headers were
  const char* folders[2];     // the folder of the toolkit's headers; "" or NULL
} kilni_compile_refusal_t;

enum { KILNI_HINT_BYTES = 704 };

// A message to replace the error, "" to keep it, and a Fix. False where only
// reading the log helps.
bool kilni_compile_hint(const kilni_compile_refusal_t* refusal,
                        char out_message[KILNI_HINT_BYTES],
                        char out_fix[KILNI_HINT_BYTES]);

#endif  // KILN_SRC_COMPILE_COMPILE_HINT_H_
