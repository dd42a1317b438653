// SPDX-License-Identifier: Apache-2.0
//
// base: making and passing on error values inside the library.
//
// A message is one line: what happened and to which thing, names quoted, no
// "failed to" that restates the call. A `Fix:` line states what the user can
// do: a phrase like the message, "set X; Y needs it", which may be a command.
// KILNI_MODULE is defined by the build for each module.
#ifndef KILN_SRC_BASE_STATUS_MAKE_H_
#define KILN_SRC_BASE_STATUS_MAKE_H_

#include <stdarg.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

#ifndef KILNI_MODULE
#define KILNI_MODULE "test"
#endif

// A bare code: no payload, no allocation. For out of memory, not-ready,
// timeouts and the end of an iteration.
kiln_status_t kilni_base_status_bare(kiln_status_code_t code);

// A status with a payload from the C library's allocator (a status may outlive
// every object of its runtime, and so every allocator that a user lent).
// Without memory it is the bare code.
kiln_status_t kilni_base_status_make(kiln_status_code_t code,
                                     const char* module, const char* file,
                                     int line, const char* format, ...)
    KILN_PRINTF(5, 6);

// The same with an allocator of the caller's, which must outlive the status.
kiln_status_t kilni_base_status_make_with(kiln_allocator_t allocator,
                                          kiln_status_code_t code,
                                          const char* module, const char* file,
                                          int line, const char* format,
                                          va_list args);

// Each takes `status` and returns it with more text; OK stays OK and a bare
// code stays bare. Annotations read from the inside out, newest last.
kiln_status_t kilni_base_status_annotate(kiln_status_t status,
                                         const char* module, const char* format,
                                         ...) KILN_PRINTF(3, 4);
kiln_status_t kilni_base_status_with_fix(kiln_status_t status,
                                         const char* format, ...)
    KILN_PRINTF(2, 3);
kiln_status_t kilni_base_status_with_native(kiln_status_t status,
                                            const char* domain, int64_t number,
                                            const char* name);

// The operation's own error wins: if both failed, `second` becomes an
// annotation of `first` and is ended.
kiln_status_t kilni_base_status_join(kiln_status_t first, kiln_status_t second);

#define KILNI_FAIL(code, ...)                                                  \
  kilni_base_status_make(KILN_STATUS_##code, KILNI_MODULE, __FILE__, __LINE__, \
                         __VA_ARGS__)

#define KILNI_ANNOTATE(status, ...) \
  kilni_base_status_annotate((status), KILNI_MODULE, __VA_ARGS__)

#define KILNI_RETURN_IF_ERROR(expr)                  \
  do {                                               \
    kiln_status_t kilni_status_ = (expr);            \
    if (kilni_status_ != NULL) return kilni_status_; \
  } while (0)

// An analyzer reads one file at a time. What it must know of status.c: a status
// that is made is an error, and what adds to one leaves it OK or an error.
#ifdef __clang_analyzer__
#define kilni_analyzed_error(made)              \
  ({                                            \
    kiln_status_t made_ = (made);               \
    if (made_ == NULL) __builtin_unreachable(); \
    made_;                                      \
  })
#define kilni_analyzed_same(given, made)                              \
  ({                                                                  \
    kiln_status_t given_ = (given);                                   \
    kiln_status_t said_ = (made);                                     \
    if ((given_ == NULL) != (said_ == NULL)) __builtin_unreachable(); \
    said_;                                                            \
  })
#define kilni_base_status_bare(...) \
  kilni_analyzed_error(kilni_base_status_bare(__VA_ARGS__))
#define kilni_base_status_make(...) \
  kilni_analyzed_error(kilni_base_status_make(__VA_ARGS__))
#define kilni_base_status_with_fix(status, ...) \
  kilni_analyzed_same(status, kilni_base_status_with_fix(given_, __VA_ARGS__))
#define kilni_base_status_with_native(status, ...) \
  kilni_analyzed_same(status,                      \
                      kilni_base_status_with_native(given_, __VA_ARGS__))
#define kilni_base_status_annotate(status, ...) \
  kilni_analyzed_same(status, kilni_base_status_annotate(given_, __VA_ARGS__))
#endif

// The error for `name` when it violates `condition`, written as C. Out of line,
// so that the checks stay short.
__attribute__((cold)) kiln_status_t
kilni_base_status_of_argument(const char* module, const char* file, int line,
                              const char* name, const char* condition);

#ifdef __clang_analyzer__
#define kilni_base_status_of_argument(...) \
  kilni_analyzed_error(kilni_base_status_of_argument(__VA_ARGS__))
#endif

// INVALID_ARGUMENT naming the parameter unless `condition` holds: for public
// calls, which tolerate wrong callers where internal code asserts. The message
// is derived from the condition: use only names that the caller knows.
#define KILNI_CHECK_ARGUMENT(condition, name)                                \
  do {                                                                       \
    if (!(condition)) {                                                      \
      return kilni_base_status_of_argument(KILNI_MODULE, __FILE__, __LINE__, \
                                           (name), #condition);              \
    }                                                                        \
  } while (0)

// The same where the condition is of the inside: `what` is wrong with it, and
// the Fix, in words.
#define KILNI_CHECK_ARGUMENT_SAYS(condition, name, what, fix)            \
  do {                                                                   \
    if (!(condition)) {                                                  \
      return kilni_base_status_with_fix(                                 \
          KILNI_FAIL(INVALID_ARGUMENT, "`%s` %s", (name), (what)), "%s", \
          (fix));                                                        \
    }                                                                    \
  } while (0)

#endif  // KILN_SRC_BASE_STATUS_MAKE_H_
