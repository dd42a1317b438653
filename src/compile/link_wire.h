// SPDX-License-Identifier: Apache-2.0
//
// compile: numbers and texts as bytes between two processes; private to the
// module.
#ifndef KILN_SRC_COMPILE_LINK_WIRE_H_
#define KILN_SRC_COMPILE_LINK_WIRE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

// What every message begins with: what it is, and how many bytes follow.
#define KILNI_WIRE_ASK    UINT64_C(0x31306b73616e6c6b)
#define KILNI_WIRE_ANSWER UINT64_C(0x3130736e616e6c6b)
enum {
  KILNI_WIRE_HEAD_BYTES = 16,
  KILNI_WIRE_DESCRIPTOR = 3,  // the other process has its end here
};

// Bytes that are written. one-thread
typedef struct kilni_compile_wire_out_t {
  kiln_allocator_t allocator;
  uint8_t* data;
  size_t size;
  size_t capacity;
} kilni_compile_wire_out_t;

kiln_status_t kilni_compile_wire_put(kilni_compile_wire_out_t* out,
                                     uint64_t number);
// Its size, then its bytes, then a NUL that is not counted.
kiln_status_t kilni_compile_wire_put_bytes(kilni_compile_wire_out_t* out,
                                           kiln_bytes_view_t bytes);
kiln_status_t kilni_compile_wire_put_text(kilni_compile_wire_out_t* out,
                                          const char* text);
void kilni_compile_wire_free(kilni_compile_wire_out_t* out);

// Bytes that are read; nothing is believed of them. one-thread
typedef struct kilni_compile_wire_in_t {
  const uint8_t* data;
  size_t size;
  size_t at;
  bool failed;  // it has ended too early: all that follows is 0 and ""
} kilni_compile_wire_in_t;

uint64_t kilni_compile_wire_get(kilni_compile_wire_in_t* in);
// A NUL follows the last byte.
kiln_bytes_view_t kilni_compile_wire_get_bytes(kilni_compile_wire_in_t* in);
const char* kilni_compile_wire_get_text(kilni_compile_wire_in_t* in);

#endif  // KILN_SRC_COMPILE_LINK_WIRE_H_
