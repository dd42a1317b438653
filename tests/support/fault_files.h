// SPDX-License-Identifier: Apache-2.0
//
// support: operations on files as points that can fail (fault_run.h).
//
// Works in a program that is linked with the options of kiln_fault_files
// (tests/fault/CMakeLists.txt): the linker then leads the library's calls of
// open, read, stat and so on through here. The calls of the system's own
// libraries, such as its loader, are not met.
#ifndef KILN_TESTS_SUPPORT_FAULT_FILES_H_
#define KILN_TESTS_SUPPORT_FAULT_FILES_H_

#include "fault_run.h"

// What fails and how. One in a process. one-thread
typedef struct fault_files_t {
  int error;  // errno of what fails: never EINTR, which is tried again
  char message[128];
} fault_files_t;

// Points of the arming thread. A run is clean when every file and folder that
// was opened since arming is closed.
fault_points_t fault_files_points(fault_files_t* files);

#endif  // KILN_TESTS_SUPPORT_FAULT_FILES_H_
