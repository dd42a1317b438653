// SPDX-License-Identifier: Apache-2.0
//
// bench: what plans of the library do, in plain C on one core.
#ifndef KILN_BENCH_LIBRARY_BENCH_LIBRARY_PLAIN_H_
#define KILN_BENCH_LIBRARY_BENCH_LIBRARY_PLAIN_H_

#include <stddef.h>
#include <stdint.h>

// What they are given, and where they put it. one-thread
typedef struct plain_t {
  const void* numbers;
  const float* floats;
  const uint8_t* flags;
  void* out;    // as long as numbers
  void* other;  // as well
  size_t count;
  uint32_t width;      // of rows and segments
  const void* tables;  // plain_bytes_tables_t; of lz4, where blocks begin; of
                       // gather and scatter, places
} plain_t;

typedef void (*plain_run_t)(const plain_t* p);

void plain_fold(const plain_t* p);
void plain_scan_u32(const plain_t* p);
void plain_scan_f32(const plain_t* p);
void plain_scan_segments(const plain_t* p);
void plain_compact(const plain_t* p);
void plain_unique(const plain_t* p);
void plain_sort(const plain_t* p);  // by radix, 8 bits at a time
void plain_merge_sort(const plain_t* p);
void plain_softmax(const plain_t* p);
void plain_normalize(const plain_t* p);
void plain_segments(const plain_t* p);
void plain_runs(const plain_t* p);
void plain_crc32(const plain_t* p);  // four bytes at a time by tables
void plain_lines(const plain_t* p);
void plain_utf8(const plain_t* p);
void plain_blake3(const plain_t* p);
void plain_matmul(const plain_t* p);     // of `width` rows and columns
void plain_attention(const plain_t* p);  // `width` queries and keys of 64
// By filters of 3 x 3 from `count` channels of `width` rows to as many.
void plain_convolution(const plain_t* p);
void plain_fft(const plain_t* p);         // by Stockham, two at a time
void plain_lz4(const plain_t* p);         // `width` blocks of 64 KiB
void plain_json_index(const plain_t* p);  // of the bytes of `flags`
void plain_histogram(const plain_t* p);   // of bytes, in one table
void plain_histogram_of_one(const plain_t* p);
void plain_aho_corasick(const plain_t* p);  // as well
void plain_transpose(const plain_t* p);     // a matrix of `width` rows
void plain_gather(const plain_t* p);
void plain_scatter(const plain_t* p);
void plain_philox(const plain_t* p);
void plain_nbody(const plain_t* p);  // `count` bodies

#endif  // KILN_BENCH_LIBRARY_BENCH_LIBRARY_PLAIN_H_
