// SPDX-License-Identifier: Apache-2.0
//
// locate: a report while it is written.
//
// Not a door: the files of this room share it.
#ifndef KILN_SRC_LOCATE_LOCATE_REPORT_H_
#define KILN_SRC_LOCATE_LOCATE_REPORT_H_

#include "base/str.h"
#include "locate/locate.h"

// More entries of either kind than this are LIMIT_EXCEEDED.
enum { KILNI_LOCATE_MAX_ENTRIES = 4096 };

kiln_status_t kilni_locate_report_create(kiln_allocator_t allocator,
                                         kiln_locate_report_t** out_report);

// A library that may be opened. A file that is there already (under its real
// name) becomes a tried entry that says so. `include_dir` may be NULL.
kiln_status_t kilni_locate_report_add(kiln_locate_report_t* report,
                                      uint32_t scope, const char* path,
                                      const char* include_dir);

kiln_allocator_t kilni_locate_report_allocator(
    const kiln_locate_report_t* report);

#endif  // KILN_SRC_LOCATE_LOCATE_REPORT_H_
