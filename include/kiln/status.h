// SPDX-License-Identifier: Apache-2.0
//
// base: the error value.
//
// A status is one pointer-sized word. OK is 0. The low bits hold a code; the
// rest may point at a payload: where it happened, a message, one line for each
// module it crossed, the native result behind it and a `Fix:` line with a
// remedy. Statuses are never kept in a thread-local, and a call that returns
// one has no other error channel.
//
//   kiln_status_t status = kiln_module_load(...);
//   if (!kiln_status_is_ok(status)) {
//     char text[1024];
//     kiln_status_format(status, sizeof(text), text, NULL);
//     fprintf(stderr, "%s\n", text);
//     kiln_status_free(status);
//   }
#ifndef KILN_STATUS_H_
#define KILN_STATUS_H_

#include "kiln/api.h"

KILN_EXTERN_C_BEGIN

// All codes: name, value, default text, the command's exit code.
//
// Values are part of the ABI and are only ever appended to.
#define KILN_STATUS_CODES(X)                                       \
  X(OK, 0, "ok", 0)                                                \
  X(INVALID_ARGUMENT, 1, "invalid argument", 2)                    \
  X(NOT_FOUND, 2, "not found", 3)                                  \
  X(ALREADY_EXISTS, 3, "already exists", 1)                        \
  X(INVALID_STATE, 4, "not allowed in this state", 1)              \
  X(OUT_OF_RANGE, 5, "out of range", 1)                            \
  X(LIMIT_EXCEEDED, 6, "a limit was exceeded", 1)                  \
  X(BAD_DATA, 7, "malformed data", 1)                              \
  X(IO_ERROR, 8, "input or output failed", 1)                      \
  X(PERMISSION_DENIED, 9, "permission denied", 1)                  \
  X(INCOMPATIBLE, 10, "incompatible", 4)                           \
  X(INSUFFICIENT_METADATA, 11, "not enough is known to decide", 5) \
  X(UNSUPPORTED, 12, "not supported here", 6)                      \
  X(COMPILE_FAILED, 13, "compilation failed", 7)                   \
  X(LINK_FAILED, 14, "linking failed", 7)                          \
  X(LAUNCH_FAILED, 15, "the kernel could not be launched", 8)      \
  X(DEVICE_LOST, 16, "the device is lost to this process", 8)      \
  X(DRIVER_ERROR, 17, "a driver call failed", 8)                   \
  X(DEVICE_OUT_OF_MEMORY, 18, "out of device memory", 9)           \
  X(OUT_OF_MEMORY, 19, "out of memory", 9)                         \
  X(NOT_READY, 20, "not ready yet", 1)                             \
  X(TIMED_OUT, 21, "timed out", 8)                                 \
  X(END, 22, "no more items", 1)                                   \
  X(CANCELLED, 23, "cancelled", 1)                                 \
  X(INTERNAL, 24, "internal error", 1)                             \
  X(NOT_CONVERGED, 25, "the last round still changed something", 8)

#define KILN_STATUS_ENUM(name, value, text, exit_code) \
  KILN_STATUS_##name = value,
// A status code. thread-compatible
typedef enum kiln_status_code_t {
  KILN_STATUS_CODES(KILN_STATUS_ENUM) KILN_STATUS_CODE_COUNT
} kiln_status_code_t;
#undef KILN_STATUS_ENUM

// An error value. thread-compatible
//
// Owned by its holder: pass it on, or free it with kiln_status_free.
typedef struct kiln_status_payload_t* kiln_status_t;

// OK: the value of a successful call. Since 0.1.
static inline kiln_status_t kiln_ok(void) {
  return NULL;
}

// True if `status` is OK. Since 0.1.
static inline bool kiln_status_is_ok(kiln_status_t status) {
  return status == NULL;
}

// The code of `status`. Since 0.1.
KILN_API kiln_status_code_t kiln_status_code(kiln_status_t status);

// The name of `code`, e.g. "NOT_FOUND"; "UNKNOWN" for an invalid value. The
// string is static. Since 0.1.
KILN_API const char* kiln_status_code_name(kiln_status_code_t code);

// The default sentence of `code`, e.g. "not found". Static. Since 0.1.
KILN_API const char* kiln_status_code_text(kiln_status_code_t code);

// The exit code of the command `kiln` for `code`. Since 0.1.
KILN_API int kiln_status_code_exit(kiln_status_code_t code);

// The message: what happened and to which thing, one line. Borrowed; the
// code's default text where `status` has no payload. Since 0.1.
KILN_API const char* kiln_status_message(kiln_status_t status);

// What the user can do, one line without "Fix: ". Borrowed; NULL if nothing
// is known. Since 0.1.
KILN_API const char* kiln_status_fix(kiln_status_t status);

// The module that made the error, e.g. "device"; NULL without a payload.
// Borrowed. Since 0.1.
KILN_API const char* kiln_status_origin(kiln_status_t status);

// The source file of the library in which the error was made, and its line,
// for bug reports; NULL and 0 without a payload. Borrowed. Since 0.1.
KILN_API const char* kiln_status_source(kiln_status_t status, int* out_line);

// The result behind an error that another library reported. thread-compatible
//
// Borrowed from its status: the strings live as long as it does.
typedef struct kiln_status_native_t {
  const char* domain;  // "cuda", "nvrtc", "errno"
  int64_t number;      // 700
  const char* name;    // "CUDA_ERROR_ILLEGAL_ADDRESS"; never NULL
} kiln_status_native_t;

// Fills `out_native` and returns true if `status` has a native part; leaves
// it zeroed and returns false otherwise. Since 0.1.
KILN_API bool kiln_status_native(kiln_status_t status,
                                 kiln_status_native_t* out_native);

// Writes the whole error as text: the message, one line for each annotation,
// the native part and the `Fix:` line. At most `capacity` bytes with the
// terminating NUL (nothing at all when it is 0; `buffer` may then be NULL).
// `out_length`, if not NULL, receives the length without NUL that the whole
// text has, so that a caller can call again with enough space. Since 0.1.
KILN_API void kiln_status_format(kiln_status_t status, size_t capacity,
                                 char* buffer, size_t* out_length);

// A copy of `status` with a payload of its own; a bare code when there is no
// memory for one. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_status_clone(kiln_status_t status);

// Ends `status`. OK and bare codes are accepted. Since 0.1.
KILN_API void kiln_status_free(kiln_status_t status);

KILN_EXTERN_C_END

#endif  // KILN_STATUS_H_
