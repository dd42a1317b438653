// SPDX-License-Identifier: Apache-2.0
//
// compile: what to do about a source that NVRTC refused.
#include "compile/compile_hint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fix_words.h"
#include "base/str.h"
#include "kiln/locate_catalog.h"

#define WAY_TO_A_FOLDER "name its folder (--include, `include_dirs`)"

static bool hint_is_one_of(const char* const* words, size_t count,
                           const char* word) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(words[i], word) == 0) return true;
  }
  return false;
}

static bool starts_with(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

static bool hint_holds(kiln_string_view_t text, const char* word) {
  size_t size = strlen(word);
  for (size_t i = 0; i + size <= text.size; i++) {
    if (memcmp(text.data + i, word, size) == 0) return true;
  }
  return false;
}

static bool hint_say(char* out, const char* format, ...) KILN_PRINTF(2, 3);

static bool hint_say(char* out, const char* format, ...) {
  va_list args;
  va_start(args, format);
  (void)vsnprintf(out, KILNI_HINT_BYTES, format, args);
  va_end(args);
  return true;
}

// ---- Headers ----

enum { HEADER_BYTES = 128 };

// "cub/cub.cuh" of: cannot open source file "cub/cub.cuh"; without any folder:
// could not open source file "cub/cub.cuh" (no directories ...
static bool missing_header(kiln_string_view_t error, char out[HEADER_BYTES]) {
  static const char WORDS[] = " open source file \"";
  size_t size = sizeof(WORDS) - 1;
  for (size_t i = 0; i + size <= error.size; i++) {
    if (memcmp(error.data + i, WORDS, size) != 0) continue;
    const char* begin = error.data + i + size;
    const char* end = memchr(begin, '"', error.size - i - size);
    if (end == NULL || end == begin || end - begin >= HEADER_BYTES) {
      return false;
    }
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = 0;
    return true;
  }
  return false;
}

// Headers of C and C++ whose functions are built into NVRTC.
static const char* known_without(const char* header) {
  static const char* const KNOWN[][2] = {
      {"stdio.h", "printf needs"},
      {"cstdio", "printf needs"},
      {"assert.h", "assert needs"},
      {"cassert", "assert needs"},
      {"math.h", "mathematical functions need"},
      {"cmath", "mathematical functions need"},
      {"stdlib.h", "malloc and free need"},
      {"cstdlib", "malloc and free need"},
      {"string.h", "memcpy and memset need"},
      {"cstring", "memcpy and memset need"},
      {"memory.h", "memcpy and memset need"},
      {"stddef.h", "size_t and ptrdiff_t need"},
  };
  for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++) {
    if (strcmp(KNOWN[i][0], header) == 0) return KNOWN[i][1];
  }
  return NULL;
}

// The counterpart of libcu++ for a header of C or C++; NULL for none.
static const char* libcuxx_name(const char* header) {
  static const char* const SAME[] = {
      "array",       "atomic",  "barrier",    "bit",     "bitset",
      "cfloat",      "chrono",  "climits",    "complex", "concepts",
      "cstddef",     "cstdint", "functional", "limits",  "initializer_list",
      "iterator",    "latch",   "numbers",    "numeric", "optional",
      "ranges",      "ratio",   "semaphore",  "span",    "tuple",
      "type_traits", "utility", "variant",    "version", "expected",
      "mdspan"};
  static const char* const OTHER[][2] = {{"stdint.h", "cstdint"},
                                         {"inttypes.h", "cstdint"},
                                         {"cinttypes", "cstdint"},
                                         {"limits.h", "climits"},
                                         {"float.h", "cfloat"}};
  for (size_t i = 0; i < sizeof(OTHER) / sizeof(OTHER[0]); i++) {
    if (strcmp(OTHER[i][0], header) == 0) return OTHER[i][1];
  }
  bool same = hint_is_one_of(SAME, sizeof(SAME) / sizeof(SAME[0]), header);
  return same ? header : NULL;
}

// What only a host has.
static bool is_of_host(const char* header) {
  static const char* const HOST[] = {
      "algorithm",     "any",         "condition_variable",
      "ctime",         "deque",       "exception",
      "execution",     "filesystem",  "forward_list",
      "format",        "fstream",     "future",
      "iomanip",       "ios",         "iosfwd",
      "iostream",      "istream",     "list",
      "map",           "memory",      "memory_resource",
      "mutex",         "new",         "ostream",
      "print",         "queue",       "random",
      "regex",         "set",         "sstream",
      "stack",         "stdexcept",   "stop_token",
      "streambuf",     "string",      "string_view",
      "system_error",  "thread",      "unordered_map",
      "unordered_set", "vector",      "cerrno",
      "errno.h",       "csignal",     "signal.h",
      "time.h",        "unistd.h",    "fcntl.h",
      "sys/time.h",    "sys/types.h", "sys/stat.h",
      "getopt.h",      "pthread.h",   "omp.h",
      "ctype.h",       "cctype",      "wchar.h",
      "locale",        "typeinfo",    "typeindex"};
  return hint_is_one_of(HOST, sizeof(HOST) / sizeof(HOST[0]), header);
}

static bool is_of_cccl(const char* header) {
  return starts_with(header, "cub/") || starts_with(header, "thrust/") ||
         starts_with(header, "cuda/") || starts_with(header, "nv/") ||
         starts_with(header, "libcudacxx/");
}

static bool is_of_runtime(const char* header) {
  static const char* const STARTS[] = {
      "cuda_", "cooperative_groups", "device_",      "vector_", "driver_",
      "sm_",   "surface_",           "texture_",     "math_",   "channel_",
      "host_", "library_types",      "builtin_types"};
  for (size_t i = 0; i < sizeof(STARTS) / sizeof(STARTS[0]); i++) {
    if (starts_with(header, STARTS[i])) return true;
  }
  return strcmp(header, "mma.h") == 0 ||
         strcmp(header, "common_functions.h") == 0;
}

// The row of the catalog that has it: the row whose name is its prefix, as for
// curand_kernel.h.
static const kiln_locate_entry_t* hint_row_of(const char* header) {
  const kiln_locate_entry_t* best = NULL;
  uint32_t kind = KILN_LOCATE_KIND_HEADER;
  if (is_of_cccl(header)) return kiln_locate_entry_find(kind, "cccl");
  if (starts_with(header, "crt/")) return kiln_locate_entry_find(kind, "crt");
  if (is_of_runtime(header)) return kiln_locate_entry_find(kind, "cudart");
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* row = kiln_locate_entry(i);
    const char* name = kiln_locate_entry_name(row);
    if (kiln_locate_entry_kind(row) == kind && starts_with(header, name) &&
        (best == NULL || strlen(name) > strlen(kiln_locate_entry_name(best)))) {
      best = row;
    }
  }
  return best;
}

// The wheel for a major of CUDA; the first where there is none of its own.
static const char* wheel_of(const kiln_locate_entry_t* row, uint32_t major) {
  uint32_t count = kiln_locate_entry_list_count(row, KILN_LOCATE_LIST_WHEELS);
  for (uint32_t i = 0; i < count; i++) {
    if (kiln_locate_entry_list_major(row, KILN_LOCATE_LIST_WHEELS, i) ==
        major) {
      return kiln_locate_entry_list_text(row, KILN_LOCATE_LIST_WHEELS, i);
    }
  }
  return kiln_locate_entry_list_text(row, KILN_LOCATE_LIST_WHEELS, 0);
}

// Some wheels have the version of CUDA, those of libraries one of their own.
static bool say_wheel(const kilni_compile_refusal_t* r, const char* header,
                      const kiln_locate_entry_t* row, char* fix) {
  const char* name = kiln_locate_entry_name(row);
  const char* wheel = wheel_of(row, r->line / 1000);
  bool has_version = strcmp(name, "cccl") == 0 || strcmp(name, "crt") == 0 ||
                     strcmp(name, "cudart") == 0;
  char version[32] = "";
  if (wheel == NULL) return false;
  if (has_version && r->line != 0) {
    (void)snprintf(version, sizeof(version), "==%u.%u.*",
                   (unsigned)(r->line / 1000), (unsigned)(r->line % 1000 / 10));
  }
  return hint_say(fix,
                  "install the wheel that has <%s>: `python3 -m pip install "
                  "\"%s%s\"`" KILNI_FIX_ENVIRONMENT "; or " WAY_TO_A_FOLDER,
                  header, wheel, version);
}

// A header of the toolkit that needs one of a host is for a host itself.
static bool is_in_toolkit(const kilni_compile_refusal_t* r,
                          kiln_string_view_t* out) {
  for (size_t i = 0; i < 2; i++) {
    const char* folder = r->folders[i];
    size_t size = folder != NULL ? strlen(folder) : 0;
    if (size == 0 || r->error.size <= size ||
        memcmp(r->error.data, folder, size) != 0) {
      continue;
    }
    const char* end = memchr(r->error.data, '(', r->error.size);
    *out = r->error;
    if (end != NULL) out->size = (size_t)(end - r->error.data);
    return true;
  }
  return false;
}

static bool hint_header(const kilni_compile_refusal_t* r, const char* header,
                        char* fix) {
  kiln_string_view_t from;
  static const char NONE[] = "NVRTC has no standard headers";
  const char* needs = known_without(header);
  const char* other = libcuxx_name(header);
  bool is_standard = needs != NULL || other != NULL || is_of_host(header);
  if (is_standard && is_in_toolkit(r, &from)) {
    return hint_say(fix,
                    "put `#ifndef __CUDACC_RTC__` and `#endif` around the line "
                    "of the source that leads to \"%.*s\": that header is for "
                    "a host, and NVRTC compiles device code only",
                    KILNI_SV(from));
  }
  if (needs != NULL) {
    return hint_say(
        fix,
        "put `#ifndef __CUDACC_RTC__` and `#endif` around the line, "
        "which other compilers need: %s, and %s none",
        NONE, needs);
  }
  if (other != NULL) {
    return hint_say(fix,
                    "write <cuda/std/%s> in its place, with cuda::std:: for "
                    "std::; %s",
                    other, NONE);
  }
  if (is_of_host(header)) {
    return hint_say(
        fix,
        "put `#ifndef __CUDACC_RTC__` and `#endif` around the line and what "
        "uses it: %s, and device code has no counterpart of this one",
        NONE);
  }
  const kiln_locate_entry_t* row = hint_row_of(header);
  const char* name = kiln_locate_entry_name(row);
  bool is_here = (strcmp(name, "cccl") == 0 && r->has_cccl) ||
                 (strcmp(name, "cudart") == 0 && r->has_toolkit);
  if (is_here) {
    return hint_say(
        fix,
        "correct the name: the headers of CUDA %u.%u have no <%s>; or, "
        "where it is from elsewhere, " WAY_TO_A_FOLDER,
        (unsigned)(r->line / 1000), (unsigned)(r->line % 1000 / 10), header);
  }
  if (row != NULL && say_wheel(r, header, row, fix)) return true;
  return hint_say(fix, WAY_TO_A_FOLDER ", or correct the name of the header");
}

// ---- Whole programs ----

static bool hint_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= '0' && c <= '9');
}

// The end of a comment or of a text in quotes that begins at `at`; `at` itself
// if none does.
static size_t hint_skip_quiet(kiln_string_view_t text, size_t at) {
  char c = text.data[at];
  char next = at + 1 < text.size ? text.data[at + 1] : 0;
  if (c == '/' && next == '/') {
    while (at < text.size && text.data[at] != '\n') at++;
  } else if (c == '/' && next == '*') {
    at += 2;
    while (at + 1 < text.size &&
           (text.data[at] != '*' || text.data[at + 1] != '/')) {
      at++;
    }
    at = at + 2 < text.size ? at + 2 : text.size;
  } else if (c == '"') {
    at++;
    while (at < text.size && text.data[at] != '"' && text.data[at] != '\n') {
      at += text.data[at] == '\\' ? 2 : 1;
    }
    at = at < text.size ? at + 1 : text.size;
  }
  return at;
}

// Whether the source has a main() with a type before it, and launches; comments
// do not count.
static bool find_main(kiln_string_view_t text, bool* out_launches) {
  bool found = false, after_type = false;
  *out_launches = false;
  for (size_t i = 0; i < text.size;) {
    size_t next = hint_skip_quiet(text, i);
    if (next != i) {
      i = next;
      continue;
    }
    char c = text.data[i];
    if (hint_is_letter(c)) {
      size_t begin = i;
      while (i < text.size && hint_is_letter(text.data[i])) i++;
      kiln_string_view_t word = {text.data + begin, i - begin};
      size_t open = i;
      while (open < text.size && text.data[open] == ' ') open++;
      if (after_type && kilni_base_sv_equal(word, kilni_base_sv("main")) &&
          open < text.size && text.data[open] == '(') {
        found = true;
      }
      after_type = kilni_base_sv_equal(word, kilni_base_sv("int")) ||
                   kilni_base_sv_equal(word, kilni_base_sv("void")) ||
                   kilni_base_sv_equal(word, kilni_base_sv("auto"));
      continue;
    }
    if (c == '<' && i + 2 < text.size && text.data[i + 1] == '<' &&
        text.data[i + 2] == '<') {
      *out_launches = true;
    }
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') after_type = false;
    i++;
  }
  return found;
}

static bool hint_program(const kilni_compile_refusal_t* r, char* message,
                         char* fix) {
  bool launches;
  // Where it minds NVRTC, what is wrong is something else.
  if (hint_holds(r->source, "__CUDACC_RTC__") ||
      !find_main(r->source, &launches)) {
    return false;
  }
  (void)hint_say(message,
                 "\"%.200s\" is a whole program: main()%s is for nvcc, and "
                 "NVRTC compiles device code only",
                 r->name, launches ? ", which launches with <<<>>>," : "");
  return hint_say(
      fix,
      "put `#ifndef __CUDACC_RTC__` and `#endif` around main(), the host "
      "functions and the host's headers, or the kernels into a file of "
      "their own; what launched them is then `kiln run FILE`");
}

// ---- All of it ----

bool kilni_compile_hint(const kilni_compile_refusal_t* refusal,
                        char out_message[KILNI_HINT_BYTES],
                        char out_fix[KILNI_HINT_BYTES]) {
  static const struct {
    const char* words;
    const char* fix;
  } KNOWN[] = {
      {"__nv_name_map(",
       "write the expression as the source would spell it, with its namespace, "
       "such as ns::scale<float>"},
      {"device-side kernel launch",
       "launch each kernel by itself: one that launches others (dynamic "
       "parallelism) is not compiled this way"},
      {"namespace \"std\" has no member",
       "write cuda::std:: and include the header of libcu++, such as "
       "<cuda/std/functional> for min and max: NVRTC has no standard library"},
      {"/cub/",
       "include the part of CUB that a kernel uses, such as "
       "<cub/block/block_reduce.cuh>: code that launches kernels is for a "
       "host, and NVRTC compiles device code only"},
      {"/thrust/",
       "include the part of CUB that a kernel uses, such as "
       "<cub/block/block_reduce.cuh>, in place of <cub/cub.cuh> and of Thrust, "
       "whose algorithms a host launches: NVRTC compiles device code only"},
      {"uses too much shared data",
       "declare the array `extern __shared__` and give its size to the launch, "
       "which may take more than the 48 KiB of static arrays"},
      {"without execution space annotations",
       "mark the function __device__, or add the compiler's option "
       "-default-device (--option=-default-device, `options`)"},
  };
  char header[HEADER_BYTES];
  out_message[0] = out_fix[0] = 0;
  if (hint_program(refusal, out_message, out_fix)) return true;
  if (missing_header(refusal->error, header)) {
    return hint_header(refusal, header, out_fix);
  }
  for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++) {
    if (hint_holds(refusal->error, KNOWN[i].words)) {
      return hint_say(out_fix, "%s", KNOWN[i].fix);
    }
  }
  return false;
}
