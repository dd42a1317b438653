// SPDX-License-Identifier: Apache-2.0
//
// compile: the files that a compilation depends on, and whether they are as
// they were.
#ifndef KILN_SRC_COMPILE_COMPILE_FILES_H_
#define KILN_SRC_COMPILE_COMPILE_FILES_H_

#include "base/str.h"
#include "kiln/compile.h"

enum {
  KILNI_FILES_MAX = 65536,            // of one compilation
  KILNI_FILES_MAX_BYTES = 256 << 20,  // of one file
};
// Of all files of one compilation.
#define KILNI_FILES_MAX_ALL_BYTES (UINT64_C(1) << 30)

enum {
  KILNI_FILE_ABSENT = 0,   // looked for, and not there
  KILNI_FILE_PRESENT = 1,  // read
  // Read so soon after it was written that the same time may come again: its
  // content is compared each time.
  KILNI_FILE_FRESH = 2,
};

// A file that was looked for. one-thread
typedef struct kilni_compile_file_dep_t {
  char* path;
  uint32_t state;  // KILNI_FILE_ABSENT, ...
  uint32_t reserved;
  uint64_t size;
  uint64_t inode;
  int64_t modified_ns;
  char digest[KILN_CACHE_NAME_BYTES];
} kilni_compile_file_dep_t;

// All of them. one-thread
typedef struct kilni_compile_files_t {
  kiln_allocator_t allocator;
  kilni_compile_file_dep_t* items;
  size_t count;
  size_t capacity;
  uint32_t* slots;  // of a table by path: index + 1
  size_t slot_count;
  uint64_t bytes;
  // What is included by a macro of which not all is known: "NAME (FILE:LINE)".
  // There may be more files. NULL: all were found.
  char* computed;
  // A macro that expands to a time: "__TIME__ (FILE)". NULL: there is none.
  char* timed;
  // What only a preprocessor can read: "a trigraph, ??= (FILE)". There may be
  // more files, or a time. NULL: nothing.
  char* unclear;
} kilni_compile_files_t;

void kilni_compile_files_deinit(kilni_compile_files_t* files);

// How NVRTC looks for what is included. thread-compatible
typedef struct kilni_compile_files_how_t {
  kiln_string_view_t source;
  const char* name;         // of the source, for people
  const char* source_dir;   // absolute; NULL: not looked at
  const char* working_dir;  // absolute: of virtual and of forced headers
  const char* const* dirs;  // absolute
  size_t dir_count;
  const kiln_compile_options_t* options;
} kilni_compile_files_how_t;

// Finds every file that the source may include. LIMIT_EXCEEDED,
// OUT_OF_MEMORY; a file that cannot be read counts as absent.
kiln_status_t kilni_compile_files_find(const kilni_compile_files_how_t* how,
                                       kilni_compile_files_t* files);

// True if a text depends on the folder that it is in.
kiln_status_t kilni_compile_files_has_quotes(kiln_allocator_t allocator,
                                             kiln_string_view_t text,
                                             bool* out_has);

// True if the file is unchanged; `verify`: by its contents.
bool kilni_compile_file_dep_holds(kiln_allocator_t allocator,
                                  const kilni_compile_file_dep_t* dep,
                                  bool verify);

// ---- What is kept with a cached result ----

// A result as it is kept. one-thread
typedef struct kilni_compile_kept_t {
  uint32_t format;
  uint32_t line;
  kiln_string_view_t log;
  kiln_string_view_t note;
  kiln_string_view_t arch;
  const char* const* names;  // expression, lowered, ...
  uint32_t name_count;       // of pairs
  const kilni_compile_files_t* files;
} kilni_compile_kept_t;

// Writes it as bytes.
void kilni_compile_kept_write(kilni_base_str_t* out,
                              const kilni_compile_kept_t* kept);

// Reads such bytes, one entry after the other. one-thread
typedef struct kilni_compile_kept_reader_t {
  const uint8_t* at;
  const uint8_t* end;
  bool bad;
  uint32_t format;
  uint32_t line;
  kiln_string_view_t log;  // each is followed by a NUL
  kiln_string_view_t note;
  kiln_string_view_t arch;
  uint32_t name_count;
  uint32_t file_count;
} kilni_compile_kept_reader_t;

// Reads the header; false where it is invalid. Then come the names, then the
// files, as many as it states.
bool kilni_compile_kept_open(kilni_compile_kept_reader_t* reader,
                             kiln_bytes_view_t bytes);
bool kilni_compile_kept_name(kilni_compile_kept_reader_t* reader,
                             kiln_code_name_t* out_name);
// `path` is borrowed from the bytes.
bool kilni_compile_kept_file(kilni_compile_kept_reader_t* reader,
                             kilni_compile_file_dep_t* out_dep);

#endif  // KILN_SRC_COMPILE_COMPILE_FILES_H_
