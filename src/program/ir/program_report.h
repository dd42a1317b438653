// SPDX-License-Identifier: Apache-2.0
//
// program: a report while it is made.
//
// The reader and the validator add problems; once handed out it never changes.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_REPORT_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_REPORT_H_

#include "kiln/allocator.h"
#include "kiln/program.h"
#include "kiln/status.h"

// An empty report; `file_name` is copied.
kiln_status_t kilni_program_report_create(kiln_allocator_t allocator,
                                          const char* file_name,
                                          kiln_program_report_t** out_report);

// Adds a problem, whose strings are copied; `source` need not end in NUL.
// Problems over KILN_PROGRAM_MAX_PROBLEMS are dropped, but an error takes the
// place of the last note. Without memory kilni_program_report_end says so.
void kilni_program_report_add(kiln_program_report_t* report,
                              const kiln_program_problem_t* problem,
                              kiln_string_view_t source);

// How many errors were added, the dropped ones too.
uint32_t kilni_program_report_errors(const kiln_program_report_t* report);
// Whether there is no space for another error.
bool kilni_program_report_is_full(const kiln_program_report_t* report);

// Writes the text. OK where there is no error; COMPILE_FAILED with the first
// one; OUT_OF_MEMORY where anything did not fit.
kiln_status_t kilni_program_report_end(kiln_program_report_t* report);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_REPORT_H_
