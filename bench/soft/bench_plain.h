// SPDX-License-Identifier: Apache-2.0
//
// bench: the kernels of the benchmarks as plain C, compiled at -O2.
//
// The same arithmetic in the same order: the bytes must be the same.
#ifndef KILN_BENCH_SOFT_BENCH_PLAIN_H_
#define KILN_BENCH_SOFT_BENCH_PLAIN_H_

#include <stdint.h>

// `scalars`: width, height, limit; writes 3 bytes a pixel.
void bench_plain_mandelbrot(const uint8_t* in, uint8_t* out,
                            const int32_t* scalars);
enum { BENCH_PLAIN_MAX_PIXELS = 1 << 20 };

// `scalars`: width, height; at most BENCH_PLAIN_MAX_PIXELS pixels. Reads and
// writes 1 byte a pixel.
void bench_plain_blur(const uint8_t* in, uint8_t* out, const int32_t* scalars);

#endif  // KILN_BENCH_SOFT_BENCH_PLAIN_H_
