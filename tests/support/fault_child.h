// SPDX-License-Identifier: Apache-2.0
//
// support: fault_run with each run in a process of its own, for a body that
// leaves its process in another state, e.g. with a library loaded.
#ifndef KILN_TESTS_SUPPORT_FAULT_CHILD_H_
#define KILN_TESTS_SUPPORT_FAULT_CHILD_H_

#include "fault_run.h"

// As fault_run. The body runs in a child, so that it may not use cmocka's
// assertions (they would go on with the parent's tests there): what is wrong it
// says as a status INTERNAL, which is never right. What it changes in memory
// is lost.
uint64_t fault_run_in_children(const fault_points_t* points, fault_body_t body,
                               void* user, uint32_t flags);

#endif  // KILN_TESTS_SUPPORT_FAULT_CHILD_H_
