// SPDX-License-Identifier: Apache-2.0
//
// support: calls on files as points that can fail (fault_run.h).
//
// Goes round the table of a kilni_base_folder_calls_t. Each run fails another
// call with an errno, or lets it do half of its work; a failed close closes all
// the same. Afterwards every handle must have been closed once.
#ifndef KILN_TESTS_SUPPORT_FAULT_FOLDER_H_
#define KILN_TESTS_SUPPORT_FAULT_FOLDER_H_

#include "base/folder.h"
#include "fault_run.h"

// In place of an errno: reads and writes do half of what they are asked.
enum { FAULT_FOLDER_HALF = -1, FAULT_FOLDER_HANDLES = 1024 };

// The table and what is to fail in it. one-thread
typedef struct fault_folder_t {
  kilni_base_folder_calls_t system;
  kilni_base_folder_calls_t calls;  // for what is tested
  int error;
  uint64_t nth;
  bool from_on;
  bool armed;
  uint64_t met;
  bool open[FAULT_FOLDER_HANDLES];
  const char* wrong;
} fault_folder_t;

// `error` is an errno or FAULT_FOLDER_HALF.
void fault_folder_init(fault_folder_t* files, int error);
fault_points_t fault_folder_points(fault_folder_t* files);

#endif  // KILN_TESTS_SUPPORT_FAULT_FOLDER_H_
