// SPDX-License-Identifier: Apache-2.0
//
// base: definitions shared by all public headers of Kiln.
//
// Conventions:
//
//   * Every fallible call returns a kiln_status_t that must be used; OK is 0.
//   * Out-parameters come last and are NULL or zero on failure.
//   * `create/retain/release` count references, `open/close` hold an OS or
//     driver resource, a noun (`kiln_kernel_name`) is borrowed and lives as
//     long as its object, `take` moves ownership to the caller, and a `_view`
//     never owns. `release` and `close` accept NULL.
//   * Children retain their parents, so objects may be released in any order.
//   * Sizes in bytes end in `_bytes`; host sizes are size_t, device sizes and
//     device addresses are uint64_t.
//   * An options struct starts with `uint32_t struct_size`. Zero in any other
//     field means its default. Fill one with its `_default()` function. A size
//     of 0 is INVALID_ARGUMENT; one of later headers is taken, but a field set
//     there that this library does not know is INCOMPATIBLE.
//   * Every public type says in its first comment line who may use it:
//       thread-safe        any thread, at any time;
//       thread-compatible  const use from many threads at once, any other use
//                          serialised by the caller;
//       one-thread         by one thread, the one that made it.
#ifndef KILN_API_H_
#define KILN_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(KILN_BUILD_SHARED) && defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

#if defined(__GNUC__)
#define KILN_MUST_USE     __attribute__((warn_unused_result))
#define KILN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define KILN_MUST_USE
#define KILN_PRINTF(f, a)
#endif

#if defined(__cplusplus)
#define KILN_EXTERN_C_BEGIN extern "C" {
#define KILN_EXTERN_C_END   }
#else
#define KILN_EXTERN_C_BEGIN
#define KILN_EXTERN_C_END
#endif

// Values of the `switch` fields of options structs.
enum { KILN_SWITCH_DEFAULT = 0, KILN_SWITCH_OFF = 1, KILN_SWITCH_ON = 2 };

// A borrowed, not necessarily NUL-terminated string. thread-compatible
//
// Never owns. `data` may be NULL when `size` is 0.
typedef struct kiln_string_view_t {
  const char* data;
  size_t size;
} kiln_string_view_t;

// Borrowed bytes. thread-compatible
//
// Never owns. `data` may be NULL when `size` is 0.
typedef struct kiln_bytes_view_t {
  const uint8_t* data;
  size_t size;
} kiln_bytes_view_t;

#endif  // KILN_API_H_
