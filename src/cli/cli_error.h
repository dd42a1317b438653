// SPDX-License-Identifier: Apache-2.0
//
// cli: one error of the command.
//
// The library's statuses end here: a call fails by filling the caller's error
// and returning false, so that an error is one value that leaves the command in
// one place (text on standard error, or the JSON object on standard output).
#ifndef KILN_SRC_CLI_CLI_ERROR_H_
#define KILN_SRC_CLI_CLI_ERROR_H_

#include "kiln/fault.h"
#include "kiln/status.h"

// An error with space for its words. one-thread
typedef struct kilni_cli_error_t {
  kiln_status_code_t code;
  char message[1024];
  char fix[768];           // "" if nothing is known
  char trail[2048];        // the lines between message and fix, "" if none
  char native_domain[16];  // "" without a native part
  char native_name[96];
  int64_t native_number;
  kiln_fault_t fault;  // of a kernel; its kind is 0 for any other error
  bool is_told;        // the results contain it: only the exit code is left
  bool is_shown;       // already on standard error, with more; not yet in JSON
} kilni_cli_error_t;

// Fills `error` and returns false. `fix` may be NULL.
bool kilni_cli_fail(kilni_cli_error_t* error, kiln_status_code_t code,
                    const char* fix, const char* format, ...) KILN_PRINTF(4, 5);

// Ends `status`: true if it is OK, else fills `error` and returns false.
bool kilni_cli_check(kilni_cli_error_t* error, kiln_status_t status);

// The same for a launch that the user specified: one beyond the limits of the
// device or the kernel is a usage error.
bool kilni_cli_check_launch(kilni_cli_error_t* error, kiln_status_t status);

// For complete results that report a problem: the command ends with the exit
// code of `code` and no error text. Returns false.
bool kilni_cli_tell(kilni_cli_error_t* error, kiln_status_code_t code);

// Where the fix names the field `arch` of options: names --arch instead.
void kilni_cli_error_name_arch(kilni_cli_error_t* error);

// Replaces the fix line.
void kilni_cli_error_fix(kilni_cli_error_t* error, const char* format, ...)
    KILN_PRINTF(2, 3);

// Puts "`prefix`: " before the message.
void kilni_cli_error_prefix(kilni_cli_error_t* error, const char* format, ...)
    KILN_PRINTF(2, 3);

// The character that `text` begins with as it may be shown: itself, or "\\x1b",
// "\\u202e" for one that changes what a terminal shows, and for an invalid
// UTF-8 byte. Returns its length in bytes. Not for the end of the text.
size_t kilni_cli_show_character(const char* text, char out[8]);

// Copies text into a field of `capacity` bytes: cut to fit, characters but
// newlines escaped as by kilni_cli_show_character, so that neither a terminal
// nor JSON sees the bytes that a file name may contain.
void kilni_cli_copy_text(char* out, size_t capacity, const char* text);

// An analyzer reads one file at a time: these are always false.
#ifdef __clang_analyzer__
#define kilni_cli_fail(...) (kilni_cli_fail(__VA_ARGS__), false)
#define kilni_cli_tell(...) (kilni_cli_tell(__VA_ARGS__), false)
#endif

#endif  // KILN_SRC_CLI_CLI_ERROR_H_
