// SPDX-License-Identifier: Apache-2.0
//
// program: what the programs of lib/ compute, in plain C: one loop after the
// other, none of their tricks.
#ifndef KILN_TESTS_UNIT_PROGRAM_LIBRARY_PLAIN_H_
#define KILN_TESTS_UNIT_PROGRAM_LIBRARY_PLAIN_H_

#include <stddef.h>
#include <stdint.h>

void plain_map(const float* x, float* y, size_t count);
void plain_saxpy(float a, const float* x, float* y, size_t count);
void plain_reduce(const float* x, size_t count, float* sums);
void plain_transpose(const float* x, float* y, uint32_t w, uint32_t h);
void plain_histogram(const uint8_t* x, size_t count, uint32_t counts[256]);
void plain_mandelbrot(uint8_t* picture, uint32_t w, uint32_t h, uint32_t limit);
void plain_matmul(const float* a, const float* b, float* c, uint32_t m,
                  uint32_t n, uint32_t k);
void plain_blur(const uint8_t* picture, uint8_t* blurred, int w, int h,
                int channels);
void plain_life(const uint8_t* cells, uint8_t* next, uint32_t w, uint32_t h,
                uint32_t generations);

// How many bytes one character of UTF-8 takes at the start of a text; 0 where
// there is none.
size_t plain_utf8_character(const uint8_t* text, size_t size);

// How many bytes are left from the first that belongs to no character.
size_t plain_utf8(const uint8_t* text, size_t size);

#endif  // KILN_TESTS_UNIT_PROGRAM_LIBRARY_PLAIN_H_
