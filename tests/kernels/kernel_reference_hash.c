// SPDX-License-Identifier: Apache-2.0
//
// tests: references of the kernels about bytes, texts and random numbers.
#include <string.h>

#include "kernel_reference.h"

// ---- sha256.cu: one message, straight from FIPS 180-4 ----

static uint32_t right(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

// The first 32 bits of the fractional parts of roots, by Newton in integers:
// the standard's definition, so that no table is copied from the kernel.
static uint32_t root_bits(uint32_t prime, int degree) {
  // The greatest r with r^degree <= prime * 2^(32 * degree).
  uint64_t low = 0;
  uint64_t high = (uint64_t)32 << 32;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    // Compared as long double: 64 bits of significand, and no root is near.
    long double m = (long double)middle / 4294967296.0L;
    long double power = degree == 2 ? m * m : m * m * m;
    if (power <= (long double)prime) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return (uint32_t)low;
}

static void sha_constants(uint32_t h[8], uint32_t k[64]) {
  int count = 0;
  for (uint32_t n = 2; count < 64; n++) {
    uint32_t d = 2;
    while (d * d <= n && n % d != 0) d++;
    if (d * d <= n) continue;
    if (count < 8) h[count] = root_bits(n, 2);
    k[count++] = root_bits(n, 3);
  }
}

static void sha_block(uint32_t h[8], const uint8_t* block,
                      const uint32_t k[64]) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++) {
    w[t] = (uint32_t)block[t * 4] << 24 | (uint32_t)block[t * 4 + 1] << 16 |
           (uint32_t)block[t * 4 + 2] << 8 | block[t * 4 + 3];
  }
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = right(w[t - 15], 7) ^ right(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = right(w[t - 2], 17) ^ right(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3];
  uint32_t e = h[4], f = h[5], g = h[6], i = h[7];
  for (int t = 0; t < 64; t++) {
    uint32_t one = i + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) +
                   ((e & f) ^ (~e & g)) + k[t] + w[t];
    uint32_t two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) +
                   ((a & b) ^ (a & c) ^ (b & c));
    i = g, g = f, f = e, e = d + one;
    d = c, c = b, b = a, a = one + two;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d;
  h[4] += e, h[5] += f, h[6] += g, h[7] += i;
}

static void sha256(kernel_case_t* c) {
  const uint8_t* text = kernel_in(c, "text");
  uint32_t* out = kernel_out(c, "digests");
  uint32_t first[8];
  uint32_t k[64];
  sha_constants(first, k);
  for (uint32_t m = 0; m < kernel_u32(c, "messages"); m++) {
    uint8_t message[320] = {0};
    memcpy(message, text + m, m);
    message[m] = 0x80;
    uint32_t total = (m + 9 + 63) / 64 * 64;
    for (int i = 0; i < 4; i++) {
      message[total - 1 - (uint32_t)i] = (uint8_t)(m * 8 >> 8 * i);
    }
    uint32_t* h = out + m * 8;
    memcpy(h, first, sizeof(first));
    for (uint32_t at = 0; at < total; at += 64) sha_block(h, message + at, k);
  }
}

// ---- crc32.cu: the division of polynomials, bit by bit ----

static void crc(kernel_case_t* c) {
  const uint8_t* text = kernel_in(c, "text");
  uint32_t* out = kernel_out(c, "sums");
  for (uint32_t s = 0; s < kernel_u32(c, "slices"); s++) {
    uint32_t rest = 0xffffffff;
    for (int bit = 0; bit < 25 * 8; bit++) {
      uint32_t next = text[s * 25 + (uint32_t)bit / 8] >> bit % 8 & 1;
      uint32_t out_bit = (rest & 1) ^ next;
      rest >>= 1;
      if (out_bit) rest ^= 0xedb88320;
    }
    out[s] = rest ^ 0xffffffff;
  }
}

// ---- hashes.cu ----

static void fnv(kernel_case_t* c) {
  const uint8_t* text = kernel_in(c, "text");
  uint64_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) {
    out[i] = 14695981039346656037ull;
    for (uint32_t n = 0; n < i; n++) {
      out[i] ^= text[i + n];
      out[i] *= 1099511628211ull;
    }
  }
}

static uint32_t rotate(uint32_t x, int n) {
  return x << n | x >> (32 - n);
}

static void murmur(kernel_case_t* c) {
  const uint8_t* text = kernel_in(c, "text");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) {
    uint32_t h = i * 17;
    for (uint32_t n = 0; n < i; n += 4) {
      uint32_t w = 0;
      for (uint32_t b = 0; b < 4 && n + b < i; b++) {
        w |= (uint32_t)text[i + n + b] << 8 * b;
      }
      h ^= rotate(w * 0xcc9e2d51, 15) * 0x1b873593;
      if (n + 4 <= i) h = rotate(h, 13) * 5 + 0xe6546b64;
    }
    h ^= i;
    h ^= h >> 16;
    h *= 0x85ebca6b;
    h ^= h >> 13;
    h *= 0xc2b2ae35;
    out[i] = h ^ h >> 16;
  }
}

static uint64_t high_product(uint64_t a, uint64_t b) {
  uint64_t al = a & 0xffffffff, ah = a >> 32;
  uint64_t bl = b & 0xffffffff, bh = b >> 32;
  uint64_t middle = ah * bl + (al * bl >> 32);
  uint64_t other = al * bh + (middle & 0xffffffff);
  return ah * bh + (middle >> 32) + (other >> 32);
}

static void lanes(kernel_case_t* c) {
  const uint64_t p = 0x9e3779b185ebca87ull;
  const uint64_t q = 0xc2b2ae3d27d4eb4full;
  const uint64_t* text = kernel_in(c, "text");
  uint64_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++) {
    uint64_t v[4] = {p + q, q, 0, 0 - p};
    for (uint32_t n = 0; n < 16; n++) {
      uint64_t x = v[n % 4] + text[(i + n) % 128] * q;
      v[n % 4] = (x << 31 | x >> 33) * p;
    }
    uint64_t h = 0;
    for (int n = 0; n < 4; n++) {
      int by = 1 + 6 * n;
      h += v[n] << by | v[n] >> (64 - by);
      h = (h ^ high_product(v[n], p)) * q;
    }
    out[i] = h ^ h >> 32;
  }
}

// ---- lz_match.cu ----

static void longest(kernel_case_t* c) {
  const uint8_t* raw = kernel_in(c, "raw");
  uint8_t* lengths = kernel_out(c, "lengths");
  uint8_t* distances = kernel_out(c, "distances");
  int size = (int)kernel_u32(c, "size");
  for (int i = 0; i < size; i++) {
    for (int from = i - 1; from >= 0 && from >= i - 63; from--) {
      int n = 0;
      while (n < 30 && i + n < size &&
             (raw[i + n] & 3) == (raw[from + n] & 3)) {
        n++;
      }
      if (n > lengths[i]) {
        lengths[i] = (uint8_t)n;
        distances[i] = (uint8_t)(i - from);
      }
    }
  }
}

static void last_seen(kernel_case_t* c) {
  const uint8_t* raw = kernel_in(c, "raw");
  uint32_t* heads = kernel_out(c, "heads");
  for (uint32_t i = 0; i + 4 <= kernel_u32(c, "size"); i++) {
    uint32_t word = 0;
    for (uint32_t n = 0; n < 4; n++) word = word << 8 | (raw[i + n] & 3);
    heads[word * 2654435761u >> 26] = i + 1;
  }
}

// ---- base64.cu ----

static const char kLetters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint8_t* out = kernel_out(c, "out");
  uint32_t size = kernel_u32(c, "size");
  for (uint32_t o = 0; o < (size + 2) / 3 * 4; o++) {
    uint32_t bit = o / 4 * 24 + o % 4 * 6;
    uint32_t value = 0;
    for (uint32_t b = bit; b < bit + 6; b++) {
      uint32_t one = b / 8 < size ? in[b / 8] >> (7 - b % 8) & 1u : 0;
      value = value * 2 + one;
    }
    out[o] = bit / 8 < size ? (uint8_t)kLetters[value] : '=';
  }
}

static void decode(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint8_t* out = kernel_out(c, "out");
  for (uint32_t b = 0; b < kernel_count(c, "in") * 6; b++) {
    uint32_t one = in[b / 6] >> (5 - b % 6) & 1u;
    out[b / 8] = (uint8_t)(out[b / 8] * 2u + one);
  }
}

// ---- utf8.cu: by code points ----

static void utf8(kernel_case_t* c) {
  const uint8_t* raw = kernel_in(c, "raw");
  uint8_t* lengths = kernel_out(c, "lengths");
  uint32_t* counts = kernel_out(c, "counts");
  uint32_t size = kernel_u32(c, "size");
  for (uint32_t i = 0; i < size; i++) {
    uint8_t b[4] = {0};
    for (uint32_t n = 0; n < 4 && i + n < size; n++) {
      uint8_t v = raw[i + n];
      b[n] = (i + n) % 4 == 0 ? v : v % 8 < 6 ? (uint8_t)(0x80 | v >> 2) : v;
    }
    uint32_t want = b[0] < 0x80   ? 1
                    : b[0] < 0xc0 ? 0
                    : b[0] < 0xe0 ? 2
                    : b[0] < 0xf0 ? 3
                    : b[0] < 0xf8 ? 4
                                  : 0;
    uint32_t point = want == 1 ? b[0] : b[0] & (0x7fu >> want);
    for (uint32_t n = 1; n < want; n++) {
      if (i + n >= size || (b[n] & 0xc0) != 0x80) {
        want = 0;
        break;
      }
      point = point << 6 | (b[n] & 0x3f);
    }
    static const uint32_t kLeast[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kLeast[want] || point > 0x10ffff ||
        (point >= 0xd800 && point < 0xe000)) {
      want = 0;
    }
    lengths[i] = (uint8_t)want;
    counts[want]++;
  }
}

// ---- json_classes.cu: a character after the other ----

static void classes(kernel_case_t* c) {
  const uint8_t* raw = kernel_in(c, "raw");
  uint32_t* quotes = kernel_out(c, "quotes");
  uint32_t* inside = kernel_out(c, "inside");
  uint32_t* structure = kernel_out(c, "structure");
  for (uint32_t w = 0; w < 32; w++) {
    bool in_string = false;
    bool escaped = false;
    for (uint32_t n = 0; n < 32; n++) {
      char letter = "{}[]:,\"\"\\ \nax01-"[raw[w * 32 + n] & 15];
      bool quote = letter == '"' && !escaped;
      escaped = letter == '\\' && !escaped;
      in_string = in_string != quote;
      bool special = strchr("{}[]:,", letter) != NULL;
      quotes[w] |= (uint32_t)quote << n;
      inside[w] |= (uint32_t)in_string << n;
      structure[w] |= (uint32_t)(special && !in_string) << n;
    }
  }
}

// ---- levenshtein.cu: by rows ----

static void levenshtein(kernel_case_t* c) {
  const uint8_t* raw = kernel_in(c, "raw");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t block = 0; block < kernel_count(c, "out"); block++) {
    const uint8_t* a = raw + block * 32;
    const uint8_t* b = a + 7;
    uint32_t row[33];
    for (uint32_t j = 0; j <= 32; j++) row[j] = j;
    for (uint32_t i = 1; i <= 20 + block % 13; i++) {
      uint32_t corner = row[0];
      row[0] = i;
      for (uint32_t j = 1; j <= 32; j++) {
        uint32_t best = corner + ((a[i - 1] & 3) != (b[j - 1] & 3));
        corner = row[j];
        if (row[j] + 1 < best) best = row[j] + 1;
        if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
        row[j] = best;
      }
    }
    out[block] = row[32];
  }
}

// ---- random_numbers.cu, pi.cu ----

static void philox(kernel_case_t* c) {
  const uint32_t* key = kernel_in(c, "key");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t x[4] = {i, i ^ 0x5555, 7, ~i};
    for (uint32_t r = 0; r < 10; r++) {
      uint64_t a = (uint64_t)0xd2511f53 * x[0];
      uint64_t b = (uint64_t)0xcd9e8d57 * x[2];
      uint32_t k0 = key[0] + r * 0x9e3779b9u;
      uint32_t k1 = key[1] + r * 0xbb67ae85u;
      uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k0, (uint32_t)b,
                       (uint32_t)(a >> 32) ^ x[3] ^ k1, (uint32_t)a};
      memcpy(x, y, sizeof(x));
    }
    memcpy(out + i * 4, x, sizeof(x));
  }
}

static void xorshift(kernel_case_t* c) {
  const uint32_t* seeds = kernel_in(c, "seeds");
  uint32_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 96; i++) {
    uint32_t s[64 + 4];
    memcpy(s, seeds + i * 4, 16);
    for (uint32_t n = 0; n < kernel_u32(c, "steps"); n++) {
      uint32_t t = s[n] ^ s[n] << 11;
      s[n + 4] = s[n + 3] ^ s[n + 3] >> 19 ^ t ^ t >> 8;
    }
    memcpy(out + i * 4, s + kernel_u32(c, "steps"), 16);
  }
}

static void pi(kernel_case_t* c) {
  uint64_t* hits = kernel_out(c, "hits");
  for (uint64_t i = 0; i < 512; i++) {
    uint64_t state = i * 2 + 1;
    for (uint32_t n = 0; n < kernel_u32(c, "throws"); n++) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      double x = (double)(state >> 48) / 65536;
      double y = (double)(state >> 32 & 0xffff) / 65536;
      *hits += x * x + y * y < 1;
    }
  }
}

const kernel_reference_t kernel_references_hash[] = {
    {"sha256.sha256", sha256, NULL},
    {"crc32.crc_table", crc, NULL},
    {"crc32.crc_bits", crc, NULL},
    {"hashes.fnv", fnv, NULL},
    {"hashes.murmur", murmur, NULL},
    {"hashes.lanes", lanes, NULL},
    {"lz_match.longest", longest, NULL},
    {"lz_match.last_seen", last_seen, NULL},
    {"base64.encode", encode, NULL},
    {"base64.decode", decode, NULL},
    {"utf8.utf8", utf8, NULL},
    {"json_classes.classes", classes, NULL},
    {"levenshtein.levenshtein", levenshtein, NULL},
    {"random_numbers.philox", philox, NULL},
    {"random_numbers.xorshift", xorshift, NULL},
    {"pi.pi", pi, NULL},
    {NULL, NULL, NULL},
};
