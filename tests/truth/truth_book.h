// SPDX-License-Identifier: Apache-2.0
//
// truth: what a GPU answered, in memory and as files, one for each family.
//
// A file is a few lines of text (who answered, which streams there are, which
// entry has which) and behind them the streams: answers as they are, then
// digests, little-endian. Entries with the same answers share a stream.
#ifndef KILN_TESTS_TRUTH_TRUTH_BOOK_H_
#define KILN_TESTS_TRUTH_TRUTH_BOOK_H_

#include "truth_form.h"

// The answers of one or more entries. one-thread
typedef struct truth_stream_t {
  uint32_t width;  // bytes of an answer
  uint32_t outs;   // answers of an input
  truth_layout_t layout;
  uint64_t check;  // of all that follows, to find its like
  uint8_t* raw;    // of the first layout.raw inputs
  uint64_t* digests;
} truth_stream_t;

typedef struct truth_row_t {
  char name[TRUTH_NAME_BYTES];
  char family[16];
  uint32_t stream;
} truth_row_t;

// one-thread
typedef struct truth_book_t {
  char device[64];
  char driver[64];
  char date[32];
  uint32_t generator;
  truth_stream_t* streams;
  uint32_t stream_count;
  truth_row_t* rows;
  uint32_t row_count;
} truth_book_t;

uint64_t truth_digest(const uint8_t* bytes, size_t size);

// Adds what an entry answered to all inputs of its layout.
bool truth_book_add(truth_book_t* book, const truth_entry_t* entry,
                    const uint8_t* answers);
// Of a book that was read: the stream of an entry, NULL if it has none, or one
// of another shape.
const truth_stream_t* truth_book_find(const truth_book_t* book,
                                      const truth_entry_t* entry);

// One file for each family, FOLDER/FAMILY.truth; prints what fails.
bool truth_book_write(const truth_book_t* book, const char* folder);
// All files of the folder.
bool truth_book_read(truth_book_t* book, const char* folder);
void truth_book_free(truth_book_t* book);

#endif  // KILN_TESTS_TRUTH_TRUTH_BOOK_H_
