// SPDX-License-Identifier: Apache-2.0
//
// bench: the kernels of the benchmarks as plain C, compiled at -O2.
//
// The same results to the bit, the same order of what is done; nothing is
// written for vectors by hand. Each takes the buffers of the kernel in the
// order of its parameters, and the scalars.
#ifndef KILN_BENCH_SOFT_BENCH_PLAIN_H_
#define KILN_BENCH_SOFT_BENCH_PLAIN_H_

#include <stdint.h>

typedef void (*bench_plain_t)(void* const* buffers, const int32_t* scalars);

// `scalars`: width, height, limit; writes 3 bytes a pixel.
void bench_plain_mandelbrot(void* const* buffers, const int32_t* scalars);
enum { BENCH_PLAIN_MAX_PIXELS = 1 << 20 };

// `scalars`: width, height; at most BENCH_PLAIN_MAX_PIXELS pixels. Reads and
// writes 1 byte a pixel.
void bench_plain_blur(void* const* buffers, const int32_t* scalars);

// `scalars`: n, a multiple of 32. Where the sums of products are exact, as
// of small whole numbers, the order of sums and fusing change nothing.
void bench_plain_product_f32(void* const* buffers, const int32_t* scalars);
void bench_plain_product_f64(void* const* buffers, const int32_t* scalars);

// `scalars`: messages; message m is the m bytes from text[m] on.
void bench_plain_sha256(void* const* buffers, const int32_t* scalars);

// `scalars`: keys of a part, at most BENCH_PLAIN_MOST_KEYS, and parts; each
// part is sorted by itself, keys with their values, four bits a pass.
enum { BENCH_PLAIN_MOST_KEYS = 512 };
void bench_plain_radix_sort(void* const* buffers, const int32_t* scalars);

#endif  // KILN_BENCH_SOFT_BENCH_PLAIN_H_
