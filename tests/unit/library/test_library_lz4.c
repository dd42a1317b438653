// SPDX-License-Identifier: Apache-2.0
//
// library: LZ4 blocks, whole ones and broken ones, beside plain C.
#include "library_kit.h"
#include "plain_bytes.h"
#include "test_tree.h"

enum { MOST = 300000, BLOCKS = 2000, UNTOUCHED = 0xa5 };

// Blocks one behind the other, and where they go. one-thread
typedef struct heap_t {
  uint8_t* packed;
  uint32_t starts[BLOCKS + 1];
  uint32_t places[BLOCKS + 1];
  uint32_t count;
} heap_t;

static void open_heap(heap_t* heap) {
  heap->packed = kit_zeroes(2 * MOST, 1);
  heap->count = 0;
  heap->starts[0] = heap->places[0] = 0;
}

static void add(heap_t* heap, const uint8_t* block, size_t size, size_t space) {
  uint32_t k = heap->count++;
  assert_true(k < BLOCKS && heap->starts[k] + size <= 2 * MOST);
  if (size != 0) memcpy(heap->packed + heap->starts[k], block, size);
  heap->starts[k + 1] = heap->starts[k] + (uint32_t)size;
  heap->places[k + 1] = heap->places[k] + (uint32_t)space;
}

// The text in blocks of so many bytes.
static void add_text(heap_t* heap, const uint8_t* text, size_t count,
                     size_t each) {
  uint8_t* block = kit_zeroes(plain_bytes_lz4_most(each), 1);
  for (size_t at = 0; at < count || at == 0; at += each) {
    size_t here = count - at < each ? count - at : each;
    add(heap, block, plain_bytes_lz4_pack(text + at, here, block), here);
  }
  free(block);
}

// All bytes of the result are compared: nothing but what a block makes is
// written, and nothing else than plain C makes.
static void unpack(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                   const heap_t* heap) {
  uint32_t n = heap->count, all = heap->places[n];
  uint8_t* want = kit_zeroes(all, 1);
  uint8_t* have = kit_zeroes(all, 1);
  uint32_t* sizes = kit_zeroes(n, 4);
  uint32_t* errors = kit_zeroes(n, 4);
  memset(want, UNTOUCHED, all);
  const kit_argument_t arguments[] = {
      {heap->packed, NULL, heap->starts[n]},
      {heap->starts, NULL, (n + 1) * UINT64_C(4)},
      {heap->places, NULL, (n + 1) * UINT64_C(4)},
      {NULL, have, all},
      {NULL, sizes, n * UINT64_C(4)},
      {NULL, errors, n * UINT64_C(4)}};
  kit_run(kit, plan, arguments, 6, NULL, 0);
  for (uint32_t k = 0; k < n; k++) {
    size_t error = 0;
    size_t made = plain_bytes_lz4_unpack(
        heap->packed + heap->starts[k], heap->starts[k + 1] - heap->starts[k],
        want + heap->places[k], heap->places[k + 1] - heap->places[k], &error);
    if (sizes[k] != made || errors[k] != error) {
      fail_msg("block %u of %u made %u, %u; should be %zu, %zu", k, n, sizes[k],
               errors[k], made, error);
    }
  }
  if (memcmp(have, want, all) != 0) fail_msg("%u blocks: other bytes", n);
  free(want);
  free(have);
  free(sizes);
  free(errors);
}

// What liblz4 1.9.4 made of a text at its highest compression.
static void test_known(void** state) {
  (void)state;
  static const char kText[] =
      "To be, or not to be, that is the question: or not to be, or to be, to "
      "be, "
      "to be, to be, to be, to be, to be, to be, to be, to be, to be. ";
  static const uint8_t kBlock[] = {
      0xf2, 0x00, 0x54, 0x6f, 0x20, 0x62, 0x65, 0x2c, 0x20, 0x6f, 0x72, 0x20,
      0x6e, 0x6f, 0x74, 0x20, 0x74, 0x0e, 0x00, 0xfb, 0x06, 0x74, 0x68, 0x61,
      0x74, 0x20, 0x69, 0x73, 0x20, 0x74, 0x68, 0x65, 0x20, 0x71, 0x75, 0x65,
      0x73, 0x74, 0x69, 0x6f, 0x6e, 0x3a, 0x24, 0x00, 0x25, 0x6f, 0x72, 0x2e,
      0x00, 0x0f, 0x07, 0x00, 0x2d, 0x50, 0x20, 0x62, 0x65, 0x2e, 0x20};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "lz4", NULL);
  const uint32_t starts[] = {0, sizeof(kBlock)};
  const uint32_t places[] = {0, 200};
  uint32_t size = 0, error = 7;
  uint8_t text[200];
  const kit_argument_t arguments[] = {{kBlock, NULL, sizeof(kBlock)},
                                      {starts, NULL, 8},
                                      {places, NULL, 8},
                                      {NULL, text, 200},
                                      {NULL, &size, 4},
                                      {NULL, &error, 4}};
  kit_run(&kit, plan, arguments, 6, NULL, 0);
  assert_int_equal(size, sizeof(kText) - 1);
  assert_int_equal(error, 0);
  assert_memory_equal(text, kText, sizeof(kText) - 1);
  assert_int_equal(text[sizeof(kText) - 1], UNTOUCHED);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void test_files(void** state) {
  (void)state;
  static const char* const kFiles[] = {"README.md", "examples/pictures/cat.png",
                                       "tests/kernels/recorded.json",
                                       "docs/guide/programs.md"};
  static const uint32_t kEach[] = {200, 1025, 4096, 65536, MOST};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "lz4", NULL);
  uint8_t* text = kit_zeroes(MOST, 1);
  heap_t heap;
  for (uint32_t f = 0; f < 4; f++) {
    char path[1024];
    FILE* file = fopen(test_tree_path(path, sizeof(path), kFiles[f]), "rb");
    assert_non_null(file);
    size_t count = fread(text, 1, MOST, file);
    assert_true(count > 0);
    fclose(file);
    for (uint32_t e = 0; e < 5; e++) {
      open_heap(&heap);
      add_text(&heap, text, count, kEach[e]);
      unpack(&kit, plan, &heap);
      free(heap.packed);
    }
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Repetitions of all distances, lengths at all borders, and what does not get
// smaller.
static void test_awkward(void** state) {
  (void)state;
  static const uint32_t kPeriods[] = {1, 2, 3, 5, 31, 32, 33, 64, 1000, 65535};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "lz4", NULL);
  uint8_t* text = kit_zeroes(MOST, 1);
  uint64_t seed = 2;
  heap_t heap;
  for (uint32_t p = 0; p < sizeof(kPeriods) / sizeof(kPeriods[0]); p++) {
    for (uint32_t i = 0; i < MOST; i++) {
      text[i] =
          i < kPeriods[p] ? (uint8_t)kit_next(&seed) : text[i - kPeriods[p]];
    }
    open_heap(&heap);
    for (uint32_t s = 0; s < SIZES; s++) {
      add_text(&heap, text, kSizes[s], MOST);
    }
    for (uint32_t n = 1; n < 600; n++) {
      add_text(&heap, text, n % 2 == 0 ? n : n + 250, MOST);
    }
    unpack(&kit, plan, &heap);
    free(heap.packed);
  }
  for (uint32_t i = 0; i < MOST; i++) text[i] = (uint8_t)kit_next(&seed);
  open_heap(&heap);
  for (uint32_t n = 0; n < 600; n++) add_text(&heap, text + n, n, MOST);
  for (uint32_t s = 0; s < SIZES; s++) add_text(&heap, text, kSizes[s], MOST);
  unpack(&kit, plan, &heap);
  free(heap.packed);
  // No block at all.
  open_heap(&heap);
  unpack(&kit, plan, &heap);
  free(heap.packed);
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Cut at every place; every byte another one; less space; nothing but noise.
static void test_broken(void** state) {
  (void)state;
  enum { TEXT = 400 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "lz4", NULL);
  uint8_t text[TEXT], block[2 * TEXT], other[2 * TEXT];
  uint64_t seed = 12;
  heap_t heap;
  for (uint32_t i = 0; i < TEXT; i++) {
    text[i] = "abcab"[kit_next(&seed) % (i % 90 < 40 ? 5 : 1)];
  }
  size_t size = plain_bytes_lz4_pack(text, TEXT, block);
  assert_true(size < 250);
  open_heap(&heap);
  for (size_t n = 0; n < size; n++) add(&heap, block, n, TEXT);
  for (size_t space = 0; space < TEXT; space++) add(&heap, block, size, space);
  unpack(&kit, plan, &heap);
  free(heap.packed);
  for (uint32_t round = 0; round < 4; round++) {
    open_heap(&heap);
    for (size_t n = 0; n < size; n++) {
      memcpy(other, block, size);
      other[n] ^= (uint8_t)(1u << kit_next(&seed) % 8);
      add(&heap, other, size, TEXT + 40);
      other[n] = round % 2 == 0 ? 255 : 0;
      add(&heap, other, size, TEXT);
    }
    for (uint32_t k = 0; k < 300; k++) {
      size_t n = kit_next(&seed) % TEXT;
      for (size_t i = 0; i < n; i++) {
        uint64_t bits = kit_next(&seed);
        other[i] = (uint8_t)(bits % 4 == 0 ? 0xff : bits >> (8 * round));
      }
      add(&heap, other, n, TEXT);
    }
    unpack(&kit, plan, &heap);
    free(heap.packed);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A length behind its token's four bits.
static uint8_t* put_more(uint8_t* to, size_t length) {
  for (size_t left = length - 15; length >= 15; left -= 255) {
    *to++ = (uint8_t)(left < 255 ? left : 255);
    if (left < 255) break;
  }
  return to;
}

// Sequences of all lengths beside each other, around the borders of what is
// read of many at once; matches near and far, and now and then one that begins
// in front of the block.
static size_t write_mixed(uint8_t* block, uint64_t* seed, size_t* made) {
  static const uint16_t kFresh[] = {0,   0,   0,   1,   2,   14,  15,  16,  17,
                                    94,  95,  96,  97,  109, 110, 111, 112, 113,
                                    125, 126, 127, 128, 269, 270, 271, 600};
  static const uint16_t kOld[] = {4,  5,  6,   7,   17,  18,  19,  20,
                                  21, 80, 272, 273, 274, 275, 528, 529};
  uint8_t* to = block;
  *made = 0;
  for (uint32_t k = (uint32_t)(kit_next(seed) % 90); k != 0; k--) {
    bool is_small = kit_next(seed) % 8 != 0;
    size_t fresh = is_small ? kit_next(seed) % 6 : kFresh[kit_next(seed) % 26];
    size_t old = is_small ? 4 + kit_next(seed) % 12 : kOld[kit_next(seed) % 16];
    if (*made == 0 && fresh == 0) fresh = 1;
    size_t reach = *made + fresh;
    if (kit_next(seed) % 200 == 0) reach++;
    size_t back = 1 + kit_next(seed) % (kit_next(seed) % 2 == 0 ? reach
                                        : reach < 40            ? reach
                                                                : 40);
    *to++ = (uint8_t)((fresh < 15 ? fresh : 15) << 4 |
                      (old - 4 < 15 ? old - 4 : 15));
    to = put_more(to, fresh);
    for (size_t i = 0; i < fresh; i++) *to++ = (uint8_t)kit_next(seed);
    *to++ = (uint8_t)back;
    *to++ = (uint8_t)(back >> 8);
    to = put_more(to, old - 4);
    *made += fresh + old;
  }
  *to++ = 5 << 4;
  for (int i = 0; i < 5; i++) *to++ = (uint8_t)kit_next(seed);
  *made += 5;
  return (size_t)(to - block);
}

static void test_mixed(void** state) {
  (void)state;
  enum { SPACE = 120000, ROUNDS = 12, EACH = 24 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "lz4", NULL);
  uint8_t* block = kit_zeroes(SPACE, 1);
  uint64_t seed = 33;
  heap_t heap;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    open_heap(&heap);
    for (uint32_t k = 0; k < EACH; k++) {
      size_t made = 0, size = write_mixed(block, &seed, &made);
      size_t cut = round % 3 == 1 ? kit_next(&seed) % (size + 1) : size;
      if (round % 3 == 2) block[kit_next(&seed) % size] ^= 0x10;
      add(&heap, block, cut, made - (k % 5 == 0 ? kit_next(&seed) % made : 0));
    }
    unpack(&kit, plan, &heap);
    free(heap.packed);
  }
  free(block);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Tables of any numbers: what is there to read and to write still bounds all.
static void test_tables(void** state) {
  (void)state;
  enum { N = 40, BYTES = 500 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "lz4", NULL);
  uint32_t starts[N + 1], places[N + 1], sizes[N], errors[N];
  uint8_t packed[BYTES], result[BYTES];
  uint64_t seed = 14;
  for (uint32_t round = 0; round < 20; round++) {
    for (uint32_t k = 0; k <= N; k++) {
      uint64_t bits = kit_next(&seed);
      starts[k] = (uint32_t)(bits % 4 == 0 ? bits >> 32 : bits % 600);
      bits = kit_next(&seed);
      places[k] = (uint32_t)(bits % 4 == 0 ? bits >> 32 : bits % 600);
    }
    for (uint32_t i = 0; i < BYTES; i++) packed[i] = (uint8_t)kit_next(&seed);
    const kit_argument_t arguments[] = {
        {packed, NULL, BYTES},       {starts, NULL, (N + 1) * 4},
        {places, NULL, (N + 1) * 4}, {NULL, result, BYTES},
        {NULL, sizes, N * 4},        {NULL, errors, N * 4}};
    kit_run(&kit, plan, arguments, 6, NULL, 0);
    for (uint32_t k = 0; k < N; k++) assert_true(sizes[k] <= BYTES);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known),   cmocka_unit_test(test_files),
      cmocka_unit_test(test_awkward), cmocka_unit_test(test_broken),
      cmocka_unit_test(test_mixed),   cmocka_unit_test(test_tables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
