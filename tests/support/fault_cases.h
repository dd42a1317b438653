// SPDX-License-Identifier: Apache-2.0
//
// support: what fault tests with a list of cases share: whether every function
// of a header has a case, what a driver's books say at the end of a run, and
// what was done.
//
// A file of cases has rows
//
//   CASE(function, variant, flags, code)
//   ENDS(function, variant, flags, preparation, code)
//
// and is read twice: with CASE as FAULT_CASE_CALL and ENDS as FAULT_ENDS_CALL
// it is the functions that make the calls, with FAULT_CASE_ROW and
// FAULT_ENDS_ROW the table of them. FAULT_PREFIX is what their names begin
// with: "kiln_". The code has the scene as `s`, and leaves its `status`.
#ifndef KILN_TESTS_SUPPORT_FAULT_CASES_H_
#define KILN_TESTS_SUPPORT_FAULT_CASES_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "driver_books.h"
#include "fault_alloc.h"
#include "kiln/status.h"
#include "test_tree.h"
#include "table/cuda_table.h"

enum { FAULT_HEADER_BYTES = 1 << 18 };

// ---- Cases ----

struct scene_t;  // what each test calls its own

// A function of the headers in one variant. thread-compatible
typedef struct case_t {
  const char* function;
  const char* variant;
  uint32_t flags;
  void (*prepare)(struct scene_t* s);
  kiln_status_t (*call)(struct scene_t* s);
} case_t;

#define FAULT_CASE_CALL(function, variant, flags, ...)                  \
  static kiln_status_t call_##function##_##variant(struct scene_t* s) { \
    kiln_status_t status = kiln_ok();                                   \
    (void)s;                                                            \
    __VA_ARGS__                                                         \
    return status;                                                      \
  }
#define FAULT_ENDS_CALL(function, variant, flags, preparation, ...) \
  static void prepare_##function##_##variant(struct scene_t* s) {   \
    preparation;                                                    \
  }                                                                 \
  FAULT_CASE_CALL(function, variant, flags, __VA_ARGS__)

#define FAULT_CASE_ROW(function, variant, flags, ...) \
  {FAULT_PREFIX #function, #variant, (flags), NULL,   \
   call_##function##_##variant},
#define FAULT_ENDS_ROW(function, variant, flags, preparation, ...)            \
  {FAULT_PREFIX #function, #variant, (flags), prepare_##function##_##variant, \
   call_##function##_##variant},

// ---- What was done ----

// What was done. thread-compatible
typedef struct fault_sums_t {
  uint64_t points;
  uint64_t runs;
  uint64_t wrong;
} fault_sums_t;

// thread-compatible
typedef struct fault_list_t {
  const case_t* cases;
  size_t count;
} fault_list_t;

#define FAULT_LIST(cases_) \
  ((fault_list_t){(cases_), sizeof(cases_) / sizeof((cases_)[0])})

static inline bool fault_has_case(fault_list_t list, const char* name,
                                  size_t size) {
  for (size_t i = 0; i < list.count; i++) {
    const char* function = list.cases[i].function;
    if (strlen(function) == size && memcmp(function, name, size) == 0) {
      return true;
    }
  }
  return false;
}

// The number of functions that a header of include/kiln declares: the first
// "kiln_...(" behind each KILN_API. One without a case fails the test.
static inline int fault_check_header(fault_list_t list, const char* header) {
  static char text[FAULT_HEADER_BYTES];
  char path[1024];
  snprintf(path, sizeof(path), "%s/include/kiln/%s.h", test_tree(), header);
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  assert_true(size < sizeof(text) - 1);
  text[size] = 0;
  int count = 0;
  for (char* at = strstr(text, "\nKILN_API"); at != NULL;
       at = strstr(at, "\nKILN_API")) {
    char* open = strchr(++at, '(');
    assert_non_null(open);
    char* name = open;
    while (name > at && strchr(" \n*", name[-1]) == NULL) name--;
    if (!fault_has_case(list, name, (size_t)(open - name))) {
      fail_msg("%s.h: %.*s has no case", header, (int)(open - name), name);
    }
    count++;
  }
  return count;
}

// From here on the n-th allocation fails, or with `result` the n-th call of
// the table; from then on all, if `from_on`. 0 only counts.
static inline void fault_arm(fault_alloc_t* watch,
                             const kiln_cuda_table_t* table,
                             kiln_cu_result_t result, uint64_t nth,
                             bool from_on) {
  if (result == KILN_CU_SUCCESS) {
    fault_alloc_arm(watch, nth, from_on);
  } else {
    kilni_table_cuda_fault_arm(
        table, nth, from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE, result);
  }
}

// How many there were.
static inline uint64_t fault_disarm(fault_alloc_t* watch,
                                    const kiln_cuda_table_t* table,
                                    kiln_cu_result_t result) {
  return result == KILN_CU_SUCCESS ? fault_alloc_disarm(watch)
                                   : kilni_table_cuda_fault_disarm(table);
}

// When everything was released: NULL, or what the books of the driver, the
// null provider (of which a software device has nothing) and the allocator
// say. What a lost device holds is left alone. Ends the watch.
static inline const char* fault_left(fault_alloc_t* watch, bool soft,
                                     bool lost) {
  const char* wrong = NULL;
  driver_books_counts_t counts = driver_books_counts();
  if (counts.wrong != 0) wrong = counts.first_wrong;
  if (counts.live != 0 && !lost) wrong = "a handle lives";
  if (!soft && !lost && kilni_table_cuda_null_live(KILNI_HANDLE_NONE) != 0) {
    wrong = "a handle lives in the driver";
  }
  if (!soft && kilni_table_cuda_null_bad_destroys() != 0) {
    wrong = "a handle was ended that did not live";
  }
  if (wrong == NULL) wrong = fault_alloc_problem(watch);
  fault_alloc_deinit(watch);
  return wrong;
}

// Fails the test if anything was wrong, or fewer than `least` points were met.
static inline void fault_judge(const fault_sums_t* sums, size_t cases,
                               uint64_t least, const char* what) {
  print_message("%s: %d cases, %llu points, %llu runs, %llu wrong\n", what,
                (int)cases, (unsigned long long)sums->points,
                (unsigned long long)sums->runs,
                (unsigned long long)sums->wrong);
  assert_int_equal(sums->wrong, 0);
  assert_true(sums->points > least);
}

#endif  // KILN_TESTS_SUPPORT_FAULT_CASES_H_
