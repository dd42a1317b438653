// SPDX-License-Identifier: Apache-2.0
//
// library: the BLAKE3 hash, beside the test vectors of its specification and
// plain C.
#include "library_kit.h"
#include "plain_bytes.h"
#include "test_tree.h"

// Of bytes 0, 1, ..., 250, 0, ...: the first 32 bytes of `hash` in
// test_vectors.json, which the specification's authors publish beside it.
static const struct {
  uint32_t count;
  const char* hash;
} kVectors[] = {
    // clang-format off
    {0,
     "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
    {1,
     "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
    {1023,
     "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
    {1024,
     "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
    {1025,
     "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
    {2048,
     "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
    {2049,
     "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
    {3072,
     "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
    {3073,
     "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
    {4096,
     "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
    {4097,
     "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995"},
    {5120,
     "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833"},
    {5121,
     "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff"},
    {6144,
     "3e2e5b74e048f3add6d21faab3f83aa44d3b2278afb83b80b3c35164ebeca205"},
    {6145,
     "f1323a8631446cc50536a9f705ee5cb619424d46887f3c376c695b70e0f0507f"},
    {7168,
     "61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a"},
    {7169,
     "a003fc7a51754a9b3c7fae0367ab3d782dccf28855a03d435f8cfe74605e7817"},
    {8193,
     "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
    {16384,
     "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
    {31744,
     "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
    {102400,
     "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
    // clang-format on
};

static void text_of(const uint32_t hash[8], char text[65]) {
  for (int k = 0; k < 32; k++) {
    snprintf(text + 2 * k, 3, "%02x", hash[k / 4] >> (8 * (k % 4)) & 255);
  }
}

static void check(const uint32_t have[8], const uint32_t want[8],
                  uint32_t count) {
  char a[65], b[65];
  text_of(have, a);
  text_of(want, b);
  if (strcmp(a, b) != 0) fail_msg("%u bytes: %s, should be %s", count, a, b);
}

static void hash(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                 const uint8_t* text, uint32_t count) {
  uint32_t have[8], want[8];
  const kit_argument_t arguments[] = {{text, NULL, count}, {NULL, have, 32}};
  kit_run(kit, plan, arguments, 2, NULL, 0);
  plain_bytes_blake3(text, count, want);
  check(have, want, count);
}

static uint8_t* counted(uint32_t count, uint32_t modulus) {
  uint8_t* text = kit_zeroes(count, 1);
  for (uint32_t i = 0; i < count; i++) text[i] = (uint8_t)(i % modulus);
  return text;
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, uint32_t most) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = most;
  return kit_plan(kit, "blake3", &options);
}

static void test_vectors(void** state) {
  (void)state;
  enum { VECTORS = sizeof(kVectors) / sizeof(kVectors[0]), MOST = 102400 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, MOST);
  uint8_t* text = counted(MOST, 251);
  for (uint32_t i = 0; i < VECTORS; i++) {
    uint32_t want[8], have[8];
    char found[65];
    plain_bytes_blake3(text, kVectors[i].count, want);
    text_of(want, found);
    assert_string_equal(found, kVectors[i].hash);
    const kit_argument_t arguments[] = {{text, NULL, kVectors[i].count},
                                        {NULL, have, 32}};
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    check(have, want, kVectors[i].count);
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// All sizes, and two and three tiles, of which the last is short.
static void test_sizes(void** state) {
  (void)state;
  static const uint32_t kMore[] = {2,      3,      63,     64,     65,
                                   262144, 524288, 524289, 1050625};
  enum { MORE = sizeof(kMore) / sizeof(kMore[0]), MOST = 1050625 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, MOST);
  uint8_t* text = kit_zeroes(MOST, 1);
  uint64_t seed = 3;
  for (uint32_t i = 0; i < MOST; i++) text[i] = (uint8_t)kit_next(&seed);
  for (uint32_t s = 0; s < SIZES + MORE; s++) {
    hash(&kit, plan, text, s < SIZES ? kSizes[s] : kMore[s - SIZES]);
  }
  memset(text, 0, MOST);
  hash(&kit, plan, text, 33);
  hash(&kit, plan, text, 34);
  memset(text, 255, MOST);
  hash(&kit, plan, text, 300001);
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A plan for large texts has larger blocks.
static void test_large(void** state) {
  (void)state;
  enum { MOST = 2100000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, 1u << 28);
  uint8_t* text = counted(MOST, 239);
  hash(&kit, plan, text, 0);
  hash(&kit, plan, text, 1025);
  hash(&kit, plan, text, MOST);
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A file of the tree.
static void hash_file(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                      const char* name, uint32_t most) {
  char path[1024];
  FILE* file = fopen(test_tree_path(path, sizeof(path), name), "rb");
  assert_non_null(file);
  uint8_t* text = kit_zeroes(most, 1);
  uint32_t count = (uint32_t)fread(text, 1, most, file);
  assert_true(count > 0 && count < most);
  fclose(file);
  hash(kit, plan, text, count);
  free(text);
}

static void test_files(void** state) {
  (void)state;
  enum { MOST = 1 << 20 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, MOST);
  hash_file(&kit, plan, "README.md", MOST);
  hash_file(&kit, plan, "examples/pictures/cat.png", MOST);
  hash_file(&kit, plan, "lib/blake3.kiln", MOST);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A text that begins between two words, and one that is a part of a buffer.
static void test_places(void** state) {
  (void)state;
  enum { ALL = 5000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, ALL);
  uint8_t* text = counted(ALL, 253);
  uint32_t zero[8] = {0}, have[8], want[8];
  kiln_resident_t all = dispatch_kit_resident(&kit, ALL, text);
  kiln_resident_t result = dispatch_kit_resident(&kit, 32, zero);
  for (uint32_t from = 0; from < 9; from++) {
    uint32_t count = 4321 - from * 3;
    const kiln_binding_t bindings[] = {
        kiln_bind_resident_range(all, from, count), kiln_bind_resident(result)};
    assert_null(kiln_library_plan_run(plan, NULL, bindings, 2));
    dispatch_kit_fetch(&kit, result, 32, have);
    plain_bytes_blake3(text + from, count, want);
    check(have, want, count);
  }
  assert_null(kiln_resident_free(kit.dispatcher, all));
  assert_null(kiln_resident_free(kit.dispatcher, result));
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static kiln_pipeline_t* pipeline_of(dispatch_kit_t* kit, const char* threads,
                                    const char* products) {
  kiln_library_entry_t entry;
  assert_true(kiln_library_find("blake3", &entry));
  const kiln_program_define_t defines[] = {{"THREADS", threads},
                                           {"PRODUCTS", products}};
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  options.defines = defines;
  options.define_count = 2;
  kiln_program_t* program = NULL;
  assert_null(kiln_program_parse(entry.text, &options, NULL, &program));
  kiln_pipeline_t* pipeline = NULL;
  assert_null(kiln_pipeline_create(kit->dispatcher, program, NULL, &pipeline));
  kiln_program_release(program);
  return pipeline;
}

// Tiles of 32 chunks, by the text alone: more of them than threads, so that one
// joins several; without words.
static void tiles(const char* products) {
  static const uint32_t kTiles[] = {31, 32, 33, 65, 100};
  enum { TILE = 32768, MOST = 100 * TILE };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = pipeline_of(&kit, "32", products);
  uint8_t* text = counted(MOST, 241);
  uint8_t* zeroes = kit_zeroes(4096, 1);
  kiln_resident_t all = dispatch_kit_resident(&kit, MOST, text);
  kiln_resident_t parts = dispatch_kit_resident(&kit, 4096, zeroes);
  kiln_resident_t done = dispatch_kit_resident(&kit, 4, zeroes);
  kiln_resident_t result = dispatch_kit_resident(&kit, 32, zeroes);
  for (uint32_t i = 0; i < 5; i++) {
    uint32_t count = kTiles[i] * TILE - 1023 * i;
    const kiln_binding_t bindings[] = {
        kiln_bind_resident_range(all, 0, count), kiln_bind_pointer(0, 0),
        kiln_bind_resident(result), kiln_bind_resident(parts),
        kiln_bind_resident(done)};
    assert_null(
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 5, NULL, NULL));
    uint32_t have[8], want[8], left = 1;
    dispatch_kit_fetch(&kit, result, 32, have);
    dispatch_kit_fetch(&kit, done, 4, &left);
    plain_bytes_blake3(text, count, want);
    check(have, want, count);
    assert_int_equal(left, 0);
  }
  assert_null(kiln_resident_free(kit.dispatcher, all));
  assert_null(kiln_resident_free(kit.dispatcher, parts));
  assert_null(kiln_resident_free(kit.dispatcher, done));
  assert_null(kiln_resident_free(kit.dispatcher, result));
  free(text);
  free(zeroes);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_tiles(void** state) {
  (void)state;
  tiles("0");
  tiles("1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vectors), cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_files),   cmocka_unit_test(test_large),
      cmocka_unit_test(test_places),  cmocka_unit_test(test_tiles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
