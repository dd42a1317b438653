// SPDX-License-Identifier: Apache-2.0
//
// compile: a linker, as an interface.
//
// nvJitLink implements it in this module; the driver's linker, which needs a
// context, in device/. A link is played through it in one go: begin, each add
// in the order given, finish, end; logs are asked for in between and before
// the end. Everything that the caller gives lives until `end` has returned.
#ifndef KILN_SRC_COMPILE_LINK_BACKEND_H_
#define KILN_SRC_COMPILE_LINK_BACKEND_H_

#include "base/str.h"
#include "kiln/link.h"

// One option as a backend takes it. thread-compatible
typedef struct kilni_compile_link_setting_t {
  uint32_t key;  // the driver: KILN_CU_JIT_*; nvJitLink: 0
  uint32_t reserved;
  uint64_t value;    // the driver: what goes into its place
  const char* text;  // nvJitLink: the option itself, "-arch=sm_90"; the driver:
                     // for people, "CU_JIT_TARGET=90"
} kilni_compile_link_setting_t;

// What is to be linked, decided. thread-compatible
typedef struct kilni_compile_link_plan_t {
  uint32_t output;  // KILN_CODE_FORMAT_*; of the driver always CUBIN
  uint32_t setting_count;
  const kilni_compile_link_setting_t*
      settings;      // without those of the log buffers
  const char* name;  // of the result, for messages
} kilni_compile_link_plan_t;

// One input, in memory: files were read by then. thread-compatible
typedef struct kilni_compile_link_input_t {
  uint32_t format;  // KILN_CODE_FORMAT_*
  uint32_t reserved;
  const char* name;         // for messages of the linker
  kiln_bytes_view_t bytes;  // a NUL, which is not counted, follows them
} kilni_compile_link_input_t;

// Takes what was linked: a copy, made before it returns. thread-compatible
typedef struct kilni_compile_link_sink_t {
  void* user;
  kiln_status_t (*put)(void* user, kiln_bytes_view_t bytes);
} kilni_compile_link_sink_t;

// A linker. thread-safe
//
// Several sessions may be open at once, each used by one thread at a time.
// Sessions keep what they need; `self` belongs to the maker of the backend.
typedef struct kilni_compile_link_backend_t {
  uint32_t kind;  // KILN_LINK_BACKEND_NVJITLINK or _DRIVER
  uint32_t line;  // its version, 13000 is 13.0; 0: not known
  void* self;

  // Starts a link. A session may be left also on failure, where there is a log
  // to be read; it is ended like any other.
  kiln_status_t (*begin)(void* self, const kilni_compile_link_plan_t* plan,
                         void** out_session);

  // INVALID_ARGUMENT for a format that it does not take.
  kiln_status_t (*add)(void* session, const kilni_compile_link_input_t* input);

  // Links, and puts what came out into the sink, once, only if all went well.
  kiln_status_t (*finish)(void* session, const kilni_compile_link_sink_t* sink);

  // Adds the whole log, KILN_LINK_LOG_*, verbatim. At any time, also after a
  // failure. A log that cannot be read is OK and empty.
  kiln_status_t (*log)(void* session, uint32_t which,
                       kilni_base_str_t* inout_text);

  // Ends the session and frees what belongs to it. Once; NULL is accepted.
  void (*end)(void* session);
} kilni_compile_link_backend_t;

#endif  // KILN_SRC_COMPILE_LINK_BACKEND_H_
