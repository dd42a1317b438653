// SPDX-License-Identifier: Apache-2.0
//
// bench: what plans of the library do, in plain C on one core: the loop that
// one would write.
#include "bench_library_plain.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "plain_bytes.h"

void plain_fold(const plain_t* p) {
  const float* x = p->numbers;
  float* out = p->out;
  float sum = 0;
  for (size_t i = 0; i < p->count; i++) sum += x[i];
  out[0] = sum;
}

void plain_scan_u32(const plain_t* p) {
  const uint32_t* x = p->numbers;
  uint32_t* out = p->out;
  uint32_t sum = 0;
  for (size_t i = 0; i < p->count; i++) {
    out[i] = sum;
    sum += x[i];
  }
}

void plain_scan_segments(const plain_t* p) {
  const uint32_t* x = p->numbers;
  uint32_t* out = p->out;
  uint32_t sum = 0;
  for (size_t i = 0; i < p->count; i++) {
    sum = p->flags[i] != 0 ? x[i] : sum + x[i];
    out[i] = sum;
  }
}

void plain_scan_f32(const plain_t* p) {
  const float* x = p->numbers;
  float* out = p->out;
  float sum = 0;
  for (size_t i = 0; i < p->count; i++) {
    out[i] = sum;
    sum += x[i];
  }
}

void plain_compact(const plain_t* p) {
  const uint32_t* x = p->numbers;
  uint32_t* out = p->out;
  size_t kept = 0;
  for (size_t i = 0; i < p->count; i++) {
    if (p->flags[i] != 0) out[kept++] = x[i];
  }
  if (kept < p->count) out[kept] = 0;
}

void plain_unique(const plain_t* p) {
  const uint32_t* x = p->numbers;
  uint32_t* values = p->out;
  uint32_t* starts = p->other;
  size_t runs = 0;
  for (size_t i = 0; i < p->count; i++) {
    if (i > 0 && x[i] == x[i - 1]) continue;
    values[runs] = x[i];
    starts[runs++] = (uint32_t)i;
  }
}

void plain_sort(const plain_t* p) {
  size_t counts[4][256];
  memset(counts, 0, sizeof(counts));
  const uint32_t* from = p->numbers;
  for (size_t i = 0; i < p->count; i++) {
    for (int d = 0; d < 4; d++) counts[d][from[i] >> 8 * d & 255]++;
  }
  for (int d = 0; d < 4; d++) {
    uint32_t* to = d % 2 == 0 ? p->other : p->out;
    size_t at = 0;
    for (int v = 0; v < 256; v++) {
      size_t here = counts[d][v];
      counts[d][v] = at;
      at += here;
    }
    for (size_t i = 0; i < p->count; i++) {
      to[counts[d][from[i] >> 8 * d & 255]++] = from[i];
    }
    from = to;
  }
}

static void merge_runs(const uint32_t* from, uint32_t* to, size_t begin,
                       size_t middle, size_t end) {
  size_t i = begin, j = middle;
  for (size_t at = begin; at < end; at++) {
    bool first = i < middle && (j >= end || from[i] <= from[j]);
    to[at] = first ? from[i++] : from[j++];
  }
}

void plain_merge_sort(const plain_t* p) {
  const uint32_t* from = p->numbers;
  uint32_t* to = p->out;
  for (size_t width = 1; width < p->count; width *= 2) {
    for (size_t begin = 0; begin < p->count; begin += 2 * width) {
      size_t middle = begin + width < p->count ? begin + width : p->count;
      size_t end = middle + width < p->count ? middle + width : p->count;
      merge_runs(from, to, begin, middle, end);
    }
    from = to;
    to = to == p->out ? p->other : p->out;
  }
}

void plain_softmax(const plain_t* p) {
  const float* x = p->numbers;
  float* out = p->out;
  for (size_t r = 0; r + p->width <= p->count; r += p->width) {
    float top = x[r], sum = 0;
    for (size_t j = 1; j < p->width; j++) {
      if (x[r + j] > top) top = x[r + j];
    }
    for (size_t j = 0; j < p->width; j++) {
      out[r + j] = expf(x[r + j] - top);
      sum += out[r + j];
    }
    for (size_t j = 0; j < p->width; j++) out[r + j] /= sum;
  }
}

void plain_normalize(const plain_t* p) {
  const float* x = p->numbers;
  float* out = p->out;
  float width = (float)p->width;
  for (size_t r = 0; r + p->width <= p->count; r += p->width) {
    float sum = 0, squares = 0;
    for (size_t j = 0; j < p->width; j++) sum += x[r + j];
    float mean = sum / width;
    for (size_t j = 0; j < p->width; j++) {
      squares += (x[r + j] - mean) * (x[r + j] - mean);
    }
    float factor = 1 / sqrtf(squares / width + 1e-5f);
    for (size_t j = 0; j < p->width; j++) {
      out[r + j] = (x[r + j] - mean) * factor;
    }
  }
}

void plain_segments(const plain_t* p) {
  const float* x = p->numbers;
  float* out = p->out;
  for (size_t s = 0; s < p->count / p->width; s++) {
    float sum = 0;
    for (size_t i = 0; i < p->width; i++) sum += x[s * p->width + i];
    out[s] = sum;
  }
}

void plain_runs(const plain_t* p) {
  const uint32_t* x = p->numbers;
  uint32_t* values = p->out;
  uint32_t* lengths = p->other;
  size_t runs = 0;
  for (size_t i = 0; i < p->count; i++) {
    if (i > 0 && x[i] == x[i - 1]) {
      lengths[runs - 1]++;
      continue;
    }
    values[runs] = x[i];
    lengths[runs++] = 1;
  }
}

// Of the bytes of all numbers.
void plain_crc32(const plain_t* p) {
  static uint32_t tables[4][256];
  for (uint32_t v = 0; v < 256; v++) {
    uint32_t crc = v;
    for (int k = 0; k < 8; k++) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT32_C(0xedb88320) : 0);
    }
    tables[0][v] = crc;
  }
  for (uint32_t v = 0; v < 256; v++) {
    for (int k = 1; k < 4; k++) {
      uint32_t crc = tables[k - 1][v];
      tables[k][v] = crc >> 8 ^ tables[0][crc & 255];
    }
  }
  const uint32_t* x = p->numbers;
  uint32_t* out = p->out;
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < p->count; i++) {
    crc ^= x[i];
    crc = tables[3][crc & 255] ^ tables[2][crc >> 8 & 255] ^
          tables[1][crc >> 16 & 255] ^ tables[0][crc >> 24];
  }
  out[0] = ~crc;
}

// Of the bytes of the first of all numbers, one in 256 of which ends a line.
void plain_lines(const plain_t* p) {
  const uint8_t* text = p->numbers;
  uint32_t* starts = p->out;
  size_t lines = 0;
  for (size_t i = 0; i < p->count; i++) {
    if (i == 0 || text[i - 1] == '\n') starts[lines++] = (uint32_t)i;
  }
}

// Of the bytes of all numbers.
void plain_blake3(const plain_t* p) {
  plain_bytes_blake3(p->numbers, 4 * p->count, p->out);
}

// Of the bytes of all numbers.
static void histogram_of(const uint8_t* x, const plain_t* p) {
  uint32_t* counts = p->out;
  memset(counts, 0, 256 * sizeof(*counts));
  for (size_t i = 0; i < 4 * p->count; i++) counts[x[i]]++;
}

void plain_histogram(const plain_t* p) {
  histogram_of(p->numbers, p);
}

// The same of zeroes.
void plain_histogram_of_one(const plain_t* p) {
  memset(p->other, 0, 4 * p->count);
  histogram_of(p->other, p);
}

void plain_matmul(const plain_t* p) {
  size_t n = p->width;
  const float* a = p->floats;
  const float* b = a + n * n;
  float* c = p->out;
  memset(c, 0, n * n * sizeof(*c));
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < n; k++) {
      for (size_t j = 0; j < n; j++) {
        c[i * n + j] += a[i * n + k] * b[k * n + j];
      }
    }
  }
}

// One query's scores, then their exponentials: the sum of these.
static float weigh(const float* q, const float* k, size_t n, float* weights) {
  float top = -INFINITY, sum = 0;
  for (size_t j = 0; j < n; j++) {
    float dot = 0;
    for (size_t d = 0; d < 64; d++) dot += q[d] * k[j * 64 + d];
    weights[j] = dot / 8;
    if (weights[j] > top) top = weights[j];
  }
  for (size_t j = 0; j < n; j++) {
    weights[j] = expf(weights[j] - top);
    sum += weights[j];
  }
  return sum;
}

void plain_attention(const plain_t* p) {
  size_t n = p->width;
  const float* q = p->floats;
  const float* k = q + n * 64;
  const float* v = k + n * 64;
  float* weights = p->other;
  for (size_t i = 0; i < n; i++) {
    float* y = (float*)p->out + i * 64;
    float sum = weigh(q + i * 64, k, n, weights);
    memset(y, 0, 64 * sizeof(*y));
    for (size_t j = 0; j < n; j++) {
      for (size_t d = 0; d < 64; d++) y[d] += weights[j] * v[j * 64 + d];
    }
    for (size_t d = 0; d < 64; d++) y[d] /= sum;
  }
}

// Adds one channel, moved by up to a row and a column, times a number.
static void add_moved(const float* x, float* y, int side, int down, int right,
                      float by) {
  for (int r = 0; r < side; r++) {
    if (r + down < 0 || r + down >= side) continue;
    const float* from = x + (r + down) * side + right;
    int first = right < 0 ? -right : 0;
    int end = right > 0 ? side - right : side;
    for (int s = first; s < end; s++) y[r * side + s] += by * from[s];
  }
}

void plain_convolution(const plain_t* p) {
  size_t plane = (size_t)p->width * p->width;
  const float* filters = p->floats + p->count * plane;
  memset(p->out, 0, p->count * plane * sizeof(float));
  for (size_t o = 0; o < p->count; o++) {
    for (size_t c = 0; c < p->count; c++) {
      const float* filter = filters + (o * p->count + c) * 9;
      for (int k = 0; k < 9; k++) {
        add_moved(p->floats + c * plane, (float*)p->out + o * plane,
                  (int)p->width, k / 3 - 1, k % 3 - 1, filter[k]);
      }
    }
  }
}

// Roots of one for transforms of n numbers: e^(-2 pi i k / n).
static const float* roots_of(size_t n) {
  static float roots[2 << 20];
  static size_t made;
  for (size_t k = 0; made != n && k < n; k++) {
    double angle = -6.28318530717958647692 * (double)k / (double)n;
    roots[2 * k] = (float)cos(angle);
    roots[2 * k + 1] = (float)sin(angle);
  }
  made = n;
  return roots;
}

// One step of a transform of n numbers, whose parts are of `done` numbers.
static void fft_step(const float* x, float* y, const float* roots, size_t n,
                     size_t done) {
  for (size_t part = 0; part < n / 2 / done; part++) {
    const float* a = x + 2 * part * done;
    const float* b = a + n;
    float* low = y + 4 * part * done;
    float* high = low + 2 * done;
    for (size_t k = 0; k < done; k++) {
      const float* root = roots + k * (n / done);
      float re = b[2 * k] * root[0] - b[2 * k + 1] * root[1];
      float im = b[2 * k] * root[1] + b[2 * k + 1] * root[0];
      low[2 * k] = a[2 * k] + re;
      low[2 * k + 1] = a[2 * k + 1] + im;
      high[2 * k] = a[2 * k] - re;
      high[2 * k + 1] = a[2 * k + 1] - im;
    }
  }
}

// Of rows of `width` complex numbers, at most 2^20 and as many as `count` has
// pairs.
void plain_fft(const plain_t* p) {
  size_t n = p->width;
  const float* roots = roots_of(n);
  for (size_t r = 0; r + 2 * n <= p->count; r += 2 * n) {
    const float* from = p->floats + r;
    float* to[] = {(float*)p->out + r, (float*)p->other + r};
    for (size_t done = 1, step = 0; done < n; done *= 2, step++) {
      fft_step(from, to[step % 2], roots, n, done);
      from = to[step % 2];
    }
  }
}

void plain_json_index(const plain_t* p) {
  (void)plain_bytes_json(p->flags, p->count, p->out, p->other);
}

void plain_aho_corasick(const plain_t* p) {
  (void)plain_bytes_scan(p->flags, p->count, p->tables, p->out, p->other);
}

void plain_lz4(const plain_t* p) {
  const uint32_t* starts = p->tables;
  uint8_t* out = p->out;
  for (uint32_t k = 0; k < p->width; k++) {
    size_t error, at = (size_t)k << 16;
    size_t left = 4 * p->count - at, space = left < 65536 ? left : 65536;
    (void)plain_bytes_lz4_unpack(p->flags + starts[k],
                                 starts[k + 1] - starts[k], out + at, space,
                                 &error);
  }
}

// Bytes of one that starts with `a`, by its first byte alone; 0: none does.
static size_t sequence(uint8_t a) {
  if (a < 0x80) return 1;
  if (a < 0xc2 || a > 0xf4) return 0;
  return a < 0xe0 ? 2 : a < 0xf0 ? 3 : 4;
}

void plain_utf8(const plain_t* p) {
  const uint8_t* text = p->flags;
  uint32_t* out = p->out;
  size_t i = 0;
  while (i < p->count) {
    size_t size = sequence(text[i]);
    bool good = size != 0 && size <= p->count - i;
    for (size_t k = 1; good && k < size; k++) {
      uint8_t least = 0x80, most = 0xbf;
      if (k == 1 && text[i] == 0xe0) least = 0xa0;
      if (k == 1 && text[i] == 0xf0) least = 0x90;
      if (k == 1 && text[i] == 0xed) most = 0x9f;
      if (k == 1 && text[i] == 0xf4) most = 0x8f;
      good = text[i + k] >= least && text[i + k] <= most;
    }
    if (!good) break;
    i += size;
  }
  out[0] = (uint32_t)(p->count - i);
}

void plain_transpose(const plain_t* p) {
  float* y = p->out;
  size_t height = p->width, width = p->count / height;
  for (size_t row = 0; row < height; row++) {
    for (size_t column = 0; column < width; column++) {
      y[column * height + row] = p->floats[row * width + column];
    }
  }
}

void plain_gather(const plain_t* p) {
  const uint32_t* places = p->tables;
  float* y = p->out;
  for (size_t i = 0; i < p->count; i++) {
    y[i] = places[i] < p->count ? p->floats[places[i]] : 0;
  }
}

void plain_scatter(const plain_t* p) {
  const uint32_t* places = p->tables;
  float* y = p->out;
  for (size_t i = 0; i < p->count; i++) {
    if (places[i] < p->count) y[places[i]] = p->floats[i];
  }
}

void plain_philox(const plain_t* p) {
  uint32_t* y = p->out;
  for (size_t i = 0; i + 4 <= p->count; i += 4) {
    uint32_t w[4] = {(uint32_t)(i / 4), (uint32_t)((uint64_t)i / 4 >> 32), 0,
                     0};
    uint32_t k0 = 1, k1 = 0;
    for (int r = 0; r < 10; r++) {
      uint64_t a = (uint64_t)w[0] * 0xd2511f53u;
      uint64_t c = (uint64_t)w[2] * 0xcd9e8d57u;
      w[0] = (uint32_t)(c >> 32) ^ w[1] ^ k0;
      w[1] = (uint32_t)c;
      w[2] = (uint32_t)(a >> 32) ^ w[3] ^ k1;
      w[3] = (uint32_t)a;
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    memcpy(y + i, w, sizeof(w));
  }
}

void plain_nbody(const plain_t* p) {
  float* out = p->out;
  const float* x = p->floats;
  for (size_t i = 0; i < p->count; i++) {
    float sum[3] = {0, 0, 0};
    for (size_t j = 0; j < p->count; j++) {
      float d[3], square = 0.01f * 0.01f;
      for (int c = 0; c < 3; c++) d[c] = x[j * 4 + c] - x[i * 4 + c];
      for (int c = 0; c < 3; c++) square += d[c] * d[c];
      float near = 1 / sqrtf(square);
      float pull = x[j * 4 + 3] * near * near * near;
      for (int c = 0; c < 3; c++) sum[c] += d[c] * pull;
    }
    memcpy(out + i * 3, sum, sizeof(sum));
  }
}
