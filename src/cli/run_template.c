// SPDX-License-Identifier: Apache-2.0
//
// cli: kernels of CUDA C++ that are templates.
#include "cli/run_template.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli_buffer.h"

#define MAX_SOURCE_BYTES ((size_t)16 << 20)

enum { NAME_BYTES = 128, MAX_SPACES = 16 };

// A source being read. one-thread
typedef struct reader_t {
  const char* at;
  const char* end;
  const char* token;  // an identifier or a single character
  size_t size;        // of the token
  bool is_first;      // it is the first in its line
  // Namespaces that are open, and the depth of braces of each.
  char spaces[MAX_SPACES][NAME_BYTES];
  int depths[MAX_SPACES];
  int space_count;
  int depth;
} reader_t;

// The template being read. one-thread
typedef struct template_t {
  char arguments[NAME_BYTES];  // that fit its parameters
  char name[NAME_BYTES];       // of the kernel; "" if it is not a kernel
} template_t;

// ---- Tokens ----

static bool run_template_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= '0' && c <= '9');
}

static void run_template_skip_line(reader_t* r) {
  while (r->at < r->end && *r->at != '\n') {
    r->at += r->at[0] == '\\' && r->at + 1 < r->end ? 2 : 1;
  }
}

// A comment, a text or a character in quotes; false if none begins here.
static bool run_template_skip_quiet(reader_t* r) {
  const char* at = r->at;
  if (*at == '"' || *at == '\'') {
    char quote = *at++;
    while (at < r->end && *at != quote && *at != '\n') {
      at += *at == '\\' && at + 1 < r->end ? 2 : 1;
    }
    r->at = at < r->end ? at + 1 : r->end;
    return true;
  }
  if (*at != '/' || at + 1 >= r->end) return false;
  if (at[1] == '/') {
    run_template_skip_line(r);
    return true;
  }
  if (at[1] != '*') return false;
  for (at += 2; at + 1 < r->end && (at[0] != '*' || at[1] != '/');) at++;
  r->at = at + 2 < r->end ? at + 2 : r->end;
  return true;
}

static bool next(reader_t* r) {
  r->is_first = r->token == NULL;
  while (r->at < r->end) {
    if (*r->at == '\n') r->is_first = true;
    if (strchr(" \t\r\n\v\f", *r->at) != NULL) {
      r->at++;
    } else if (*r->at == '#' && r->is_first) {
      run_template_skip_line(r);
    } else if (!run_template_skip_quiet(r)) {
      break;
    }
  }
  if (r->at >= r->end) return false;
  r->token = r->at;
  do {
    r->at++;
  } while (r->at < r->end && run_template_is_letter(*r->token) &&
           run_template_is_letter(*r->at));
  r->size = (size_t)(r->at - r->token);
  return true;
}

static bool run_template_is_word(const reader_t* r, const char* word) {
  return strlen(word) == r->size && memcmp(r->token, word, r->size) == 0;
}

static void run_template_add(char* text, const char* more, size_t size) {
  size_t used = strlen(text);
  if (used + size >= NAME_BYTES) return;
  memcpy(text + used, more, size);
  text[used + size] = 0;
}

// To the bracket that closes the one that was just read.
static bool skip_brackets(reader_t* r) {
  int depth = 1;
  while (depth > 0 && next(r)) {
    depth += run_template_is_word(r, "(")   ? 1
             : run_template_is_word(r, ")") ? -1
                                            : 0;
  }
  return depth == 0;
}

// ---- Templates ----

// "typename T, int N = 4": an argument for each that has none; false at the end
// of the source. The token is the '<'.
static bool run_template_read_parameters(reader_t* r, template_t* out) {
  int depth = 1;
  bool begins = true, is_type = false, has_own = false;
  while (next(r)) {
    if (begins) {
      is_type = run_template_is_word(r, "typename") ||
                run_template_is_word(r, "class");
    }
    begins = false;
    // One with a default, or any number of them, needs no argument.
    has_own =
        has_own || run_template_is_word(r, "=") || run_template_is_word(r, ".");
    depth += run_template_is_word(r, "<") || run_template_is_word(r, "(")   ? 1
             : run_template_is_word(r, ">") || run_template_is_word(r, ")") ? -1
                                                                            : 0;
    if (depth != 0 && (depth != 1 || !run_template_is_word(r, ","))) continue;
    if (!has_own) {
      if (out->arguments[0] != 0) run_template_add(out->arguments, ", ", 2);
      run_template_add(out->arguments, is_type ? "float" : "1",
                       is_type ? 5 : 1);
    }
    begins = true;
    has_own = false;
    if (depth == 0) return true;
  }
  return false;
}

// What follows the parameters, up to the name of the kernel, or until it is
// clear that there is none.
static void run_template_read_declaration(reader_t* r, template_t* out) {
  bool is_kernel = false;
  char last[NAME_BYTES] = "";
  while (next(r)) {
    if (run_template_is_word(r, "__global__")) {
      is_kernel = true;
    } else if (run_template_is_word(r, "(")) {
      // __launch_bounds__(256) and its like
      if (strncmp(last, "__", 2) != 0) break;
      if (!skip_brackets(r)) return;
    } else if (run_template_is_word(r, ";") || run_template_is_word(r, "{") ||
               run_template_is_word(r, "}")) {
      if (run_template_is_word(r, "{")) r->depth++;
      if (run_template_is_word(r, "}")) r->depth--;
      return;
    } else if (run_template_is_letter(*r->token)) {
      last[0] = 0;
      run_template_add(last, r->token, r->size);
    }
  }
  if (is_kernel) memcpy(out->name, last, sizeof(last));
}

// "namespace a::b {"; `using namespace` is none.
static void read_namespace(reader_t* r) {
  char name[NAME_BYTES] = "";
  while (next(r) &&
         (run_template_is_letter(*r->token) || run_template_is_word(r, ":"))) {
    run_template_add(name, r->token, r->size);
  }
  if (!run_template_is_word(r, "{")) return;
  r->depth++;
  if (name[0] == 0 || r->space_count == MAX_SPACES) return;
  memcpy(r->spaces[r->space_count], name, sizeof(name));
  r->depths[r->space_count++] = r->depth;
}

static bool run_template_is_called(const char* name,
                                   const char* entry_or_null) {
  if (entry_or_null == NULL) return true;
  size_t size = strcspn(entry_or_null, "<(");
  size_t begin = size;
  while (begin > 0 && run_template_is_letter(entry_or_null[begin - 1])) begin--;
  return strlen(name) == size - begin &&
         memcmp(name, entry_or_null + begin, size - begin) == 0;
}

bool kilni_cli_template_find(const char* source, size_t size,
                             const char* entry_or_null,
                             char out[KILNI_CLI_ENTRY_SHOWN]) {
  reader_t r;
  memset(&r, 0, sizeof(r));
  r.at = source;
  r.end = source + size;
  while (next(&r)) {
    if (run_template_is_word(&r, "{")) r.depth++;
    if (run_template_is_word(&r, "}")) {
      if (r.space_count > 0 && r.depths[r.space_count - 1] == r.depth) {
        r.space_count--;
      }
      r.depth--;
    }
    if (run_template_is_word(&r, "namespace")) read_namespace(&r);
    if (!run_template_is_word(&r, "template") || !next(&r) ||
        !run_template_is_word(&r, "<")) {
      continue;
    }
    template_t found;
    memset(&found, 0, sizeof(found));
    if (!run_template_read_parameters(&r, &found)) return false;
    run_template_read_declaration(&r, &found);
    if (found.name[0] == 0 ||
        !run_template_is_called(found.name, entry_or_null)) {
      continue;
    }
    size_t used = 0;
    for (int i = 0; i < r.space_count && used < KILNI_CLI_ENTRY_SHOWN; i++) {
      used += (size_t)snprintf(out + used, KILNI_CLI_ENTRY_SHOWN - used,
                               "%s::", r.spaces[i]);
    }
    if (used >= KILNI_CLI_ENTRY_SHOWN) return false;
    int n = snprintf(out + used, KILNI_CLI_ENTRY_SHOWN - used, "%s<%s>",
                     found.name, found.arguments);
    return n > 0 && (size_t)n < KILNI_CLI_ENTRY_SHOWN - used;
  }
  return false;
}

void kilni_cli_template_fix(const char* file, const char* entry_or_null,
                            const char* where, char quote,
                            kilni_cli_error_t* error) {
  kilni_cli_buffer_t source = {0};
  kilni_cli_error_t ignored;
  char instance[KILNI_CLI_ENTRY_SHOWN];
  if (error->code == KILN_STATUS_NOT_FOUND &&
      kilni_cli_buffer_read(&source, file, MAX_SOURCE_BYTES, &ignored) &&
      kilni_cli_template_find((const char*)source.data, source.size,
                              entry_or_null, instance)) {
    kilni_cli_error_fix(error,
                        "the kernel is a template: name an instance, such as "
                        "%s%c%s%c, for which code is made then",
                        where, quote, instance, quote);
  }
  kilni_cli_buffer_deinit(&source);
}
