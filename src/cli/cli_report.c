// SPDX-License-Identifier: Apache-2.0
//
// cli: how results, notes and errors leave the command.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_fault.h"

void kilni_cli_print_text(FILE* out, const char* text, size_t size) {
  const char* end = text + size;
  while (text < end) {
    char shown[8] = {*text, 0};
    size_t bytes = 1;
    bool ends_line =
        *text == '\n' || (*text == '\r' && text + 1 < end && text[1] == '\n');
    if (*text == 0) {
      memcpy(shown, "\\x00", 5);
    } else if (!ends_line && *text != '\t' &&
               ((unsigned char)*text < ' ' || (unsigned char)*text >= 127)) {
      bytes = kilni_cli_show_character(text, shown);
    }
    (void)fputs(shown, out);
    text += bytes;
  }
}

bool kilni_cli_shown_open(kilni_cli_shown_t* shown, FILE* out) {
  memset(shown, 0, sizeof(*shown));
  shown->out = out;
  shown->text = open_memstream(&shown->data, &shown->size);
  return shown->text != NULL;
}

void kilni_cli_shown_close(kilni_cli_shown_t* shown) {
  if (shown->text == NULL) return;
  (void)fclose(shown->text);
  if (shown->data != NULL) {
    kilni_cli_print_text(shown->out, shown->data, shown->size);
  }
  free(shown->data);
  memset(shown, 0, sizeof(*shown));
}

void kilni_cli_note(const char* format, ...) {
  char text[1024];
  char clean[1024];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  kilni_cli_copy_text(clean, sizeof(clean), text);
  (void)fprintf(stderr, "kiln: %s\n", clean);
}

// Why writing failed. The errno of an earlier write by stdio is lost; since the
// output is already incomplete, writing one more byte reveals it harmlessly.
static int write_error(FILE* out, int number) {
  if (number == 0 && write(fileno(out), "\n", 1) < 0) number = errno;
  return number != 0 ? number : EIO;
}

int kilni_cli_results_hide(void) {
  (void)fflush(stdout);
  int hidden = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (hidden >= 0) (void)dup2(STDERR_FILENO, STDOUT_FILENO);
  return hidden;
}

void kilni_cli_results_show(int hidden) {
  if (hidden < 0) return;
  (void)fflush(stdout);
  (void)dup2(hidden, STDOUT_FILENO);
  (void)close(hidden);
}

bool kilni_cli_results_flush(FILE* out, kilni_cli_error_t* error) {
  errno = 0;
  if (ferror(out) == 0 && fflush(out) == 0) return true;
  int number = write_error(out, ferror(out) != 0 ? errno : 0);
  // A reader that has closed the pipe, such as `head`, wants no message.
  if (number == EPIPE) return kilni_cli_tell(error, KILN_STATUS_IO_ERROR);
  return kilni_cli_fail(
      error, KILN_STATUS_IO_ERROR, "check where standard output goes",
      "standard output could not be written: %s", strerror(number));
}

bool kilni_cli_json_write(FILE* out, json_t* object, kilni_cli_error_t* error) {
  int rc = -1;
  if (object != NULL) {
    rc = json_dumpf(object, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(object);
    if (rc != 0 && ferror(out) == 0) object = NULL;
  }
  if (object == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the result as JSON");
  }
  (void)fputc('\n', out);
  return kilni_cli_results_flush(out, error);
}

// The lines between message and fix, without the indent of the text form.
static json_t* notes_json(const char* trail) {
  json_t* list = json_array();
  while (*trail != 0) {
    trail += strspn(trail, " \n");
    size_t n = strcspn(trail, "\n");
    if (n != 0) (void)json_array_append_new(list, json_stringn(trail, n));
    trail += n;
  }
  return list;
}

static json_t* error_object(const kilni_cli_error_t* e) {
  json_t* native = json_null();
  if (e->native_domain[0] != 0) {
    native = json_pack("{s:s,s:I,s:s}", "domain", e->native_domain, "number",
                       (json_int_t)e->native_number, "name", e->native_name);
  }
  return json_pack("{s:{s:s,s:s,s:o,s:s?,s:o,s:o}}", "error", "code",
                   kiln_status_code_name(e->code), "message", e->message,
                   "native", native, "fix", e->fix[0] == 0 ? NULL : e->fix,
                   "notes", notes_json(e->trail), "fault",
                   kilni_cli_fault_json(&e->fault));
}

int kilni_cli_error_report(FILE* out, bool json,
                           const kilni_cli_error_t* error) {
  kilni_cli_error_t ignored;
  if (error->is_told) {
    (void)fflush(out);
  } else if (error->is_shown && !json) {
    (void)fflush(out);
  } else if (!json ||
             !kilni_cli_json_write(out, error_object(error), &ignored)) {
    // Even if standard output accepts nothing more, not even the error itself.
    (void)fprintf(stderr, "kiln: error: %s\n", error->message);
    if (error->trail[0] != 0) (void)fprintf(stderr, "%s\n", error->trail);
    if (error->fix[0] != 0) (void)fprintf(stderr, "Fix: %s\n", error->fix);
  }
  (void)fflush(stderr);
  int code = kiln_status_code_exit(error->code);
  return code == 0 ? 1 : code;
}
