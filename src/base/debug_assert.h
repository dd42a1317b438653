// SPDX-License-Identifier: Apache-2.0
//
// base: asserts of debug builds.
//
// An assert states what the code around it relies on and no caller can break:
// an argument that violates its contract is a status (KILNI_CHECK_ARGUMENT), a
// bug of ours is an assert. Builds for debugging and those under sanitizers
// test it, and an analyzer takes it as given; in any other build it is not even
// evaluated, so it has no side effects.
#ifndef KILN_SRC_BASE_DEBUG_ASSERT_H_
#define KILN_SRC_BASE_DEBUG_ASSERT_H_

#if defined(KILNI_DEBUG) || defined(__clang_analyzer__)
#define KILNI_ASSERT(condition) \
  ((condition) ? (void)0        \
               : kilni_base_assert_failed(__FILE__, __LINE__, #condition))
#else
// Compiled all the same, so that it does not rot and its names are used.
#define KILNI_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

// Writes "FILE:LINE: assert failed: CONDITION" to standard error and stops the
// process where a debugger shows the caller. Called by KILNI_ASSERT only.
__attribute__((cold, noreturn)) void kilni_base_assert_failed(
    const char* file, int line, const char* condition);

#endif  // KILN_SRC_BASE_DEBUG_ASSERT_H_
