// SPDX-License-Identifier: Apache-2.0
//
// dispatch: resident buffers: names, budget, copies, fills.
#include "dispatch_kit.h"

enum { N = 300 };

static void test_names(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  enum { MANY = 1500 };  // more than one chunk of the table
  static kiln_resident_t r[MANY];
  uint64_t bytes = 0;
  uint64_t address = 0;
  for (int i = 0; i < MANY; i++) {
    assert_null(kiln_resident_allocate(kit.dispatcher, 16, &r[i]));
    for (int k = 0; k < i; k += 100) assert_true(r[k].id != r[i].id);
  }
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(kit.dispatcher, &counts);
  assert_int_equal(counts.residents, MANY);
  assert_int_equal(counts.resident_bytes, MANY * 16);
  // A place that is used again has another name.
  kiln_resident_t old = r[1200];
  assert_null(kiln_resident_free(kit.dispatcher, old));
  assert_null(kiln_resident_allocate(kit.dispatcher, 32, &r[1200]));
  assert_true(r[1200].id != old.id);
  assert_int_equal(r[1200].id & 0xfffff, old.id & 0xfffff);
  assert_says(kiln_resident_size(kit.dispatcher, old, &bytes),
              KILN_STATUS_INVALID_ARGUMENT, "was freed");
  assert_int_equal(bytes, 0);
  assert_says(kiln_resident_address(kit.dispatcher, old, &address),
              KILN_STATUS_INVALID_ARGUMENT, "was freed");
  assert_says(kiln_resident_free(kit.dispatcher, old),
              KILN_STATUS_INVALID_ARGUMENT, "was freed");
  assert_null(kiln_resident_size(kit.dispatcher, r[1200], &bytes));
  assert_int_equal(bytes, 32);
  kiln_resident_t made_up = {r[0].id + 77777};
  assert_says(kiln_resident_size(kit.dispatcher, made_up, &bytes),
              KILN_STATUS_INVALID_ARGUMENT, "was freed");
  kiln_resident_t far = {r[0].id ^ (UINT64_C(1) << 60)};
  assert_says(kiln_resident_size(kit.dispatcher, far, &bytes),
              KILN_STATUS_INVALID_ARGUMENT, "not of this dispatcher");
  for (int i = 0; i < MANY; i++) {
    assert_null(kiln_resident_free(kit.dispatcher, r[i]));
  }
  kiln_dispatcher_counts(kit.dispatcher, &counts);
  assert_int_equal(counts.residents, 0);
  assert_int_equal(counts.resident_bytes, 0);
  assert_int_equal(counts.resident_peak, MANY * 16 + 16);
  dispatch_kit_close(&kit);
}

static void test_empty(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_resident_t none = dispatch_kit_resident(&kit, 0, NULL);
  uint64_t address = 1;
  assert_null(kiln_resident_address(kit.dispatcher, none, &address));
  assert_int_equal(address, 0);
  kiln_resident_range_t all = {0, 0};
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, none, all, 1, 1));
  assert_null(kiln_resident_upload(kit.dispatcher, NULL, none, 0, 0, NULL));
  assert_null(kiln_resident_download(kit.dispatcher, NULL, none, 0, 0, NULL));
  // Also where they follow each other, at no address of the host.
  const kiln_resident_upload_t up[] = {{none, 0, 0, NULL}, {none, 0, 0, NULL}};
  const kiln_resident_download_t down[] = {{none, 0, 0, NULL},
                                           {none, 0, 0, NULL}};
  assert_null(kiln_resident_upload_many(kit.dispatcher, NULL, up, 2));
  assert_null(kiln_resident_download_many(kit.dispatcher, NULL, down, 2, NULL));
  // What nobody freed ends with the dispatcher.
  (void)dispatch_kit_resident(&kit, 4096, NULL);
  dispatch_kit_close(&kit);
}

static void test_budget(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.resident_bytes = 1000;
  dispatch_kit_open_with(&kit, &options);
  kiln_resident_t a = dispatch_kit_resident(&kit, 600, NULL);
  kiln_resident_t b = {1};
  assert_says(kiln_resident_allocate(kit.dispatcher, 401, &b),
              KILN_STATUS_DEVICE_OUT_OF_MEMORY, "401 bytes");
  assert_int_equal(b.id, 0);
  b = dispatch_kit_resident(&kit, 400, NULL);
  assert_null(kiln_resident_free(kit.dispatcher, a));
  a = dispatch_kit_resident(&kit, 600, NULL);
  assert_null(kiln_resident_free(kit.dispatcher, a));
  assert_null(kiln_resident_free(kit.dispatcher, b));
  dispatch_kit_close(&kit);
}

static void test_copies(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.staging_bytes = 8192;
  options.staging_chunk_bytes = 4096;
  dispatch_kit_open_with(&kit, &options);
  enum { BYTES = 50000 };  // more than the ring, no multiple of a chunk
  static uint8_t from[BYTES], to[BYTES];
  for (uint32_t i = 0; i < BYTES; i++) from[i] = (uint8_t)(i * 7 + i / 256);
  kiln_resident_t r = dispatch_kit_resident(&kit, BYTES, from);
  dispatch_kit_fetch(&kit, r, BYTES, to);
  assert_memory_equal(from, to, BYTES);
  // At an offset, in the order of the calls.
  assert_null(kiln_resident_upload(kit.dispatcher, NULL, r, 10000, 9000, from));
  memset(to, 0, sizeof(to));
  assert_null(kiln_resident_download(kit.dispatcher, NULL, r, 9999, 9002, to));
  assert_int_equal(to[0], from[9999]);
  assert_memory_equal(to + 1, from, 9000);
  assert_int_equal(to[9001], from[19000]);
  // Many at once: of two that overlap the later one wins.
  const uint8_t kOnes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  const uint8_t kTwos[8] = {2, 2, 2, 2, 2, 2, 2, 2};
  const kiln_resident_upload_t kUploads[] = {
      {r, 0, 4, kOnes}, {r, 4, 4, kOnes + 4}, {r, 6, 8, kTwos}};
  assert_null(kiln_resident_upload_many(kit.dispatcher, NULL, kUploads, 3));
  uint8_t a[6], b[8];
  const kiln_resident_download_t kDownloads[] = {
      {r, 0, 6, a}, {r, 6, 4, b}, {r, 10, 4, b + 4}};
  kiln_pending_t* pending = NULL;
  assert_null(kiln_resident_download_many(kit.dispatcher, NULL, kDownloads, 3,
                                          &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  assert_memory_equal(a, kOnes, 6);
  assert_memory_equal(b, kTwos, 8);
  const kiln_resident_upload_t kWrong[] = {{r, 0, 4, kTwos},
                                           {r, BYTES - 3, 4, kTwos}};
  assert_says(kiln_resident_upload_many(kit.dispatcher, NULL, kWrong, 2),
              KILN_STATUS_OUT_OF_RANGE, "number 1");
  assert_null(kiln_resident_download(kit.dispatcher, NULL, r, 0, 4, a));
  assert_memory_equal(a, kOnes, 4);
  assert_says(kiln_resident_upload(kit.dispatcher, NULL, r, UINT64_MAX, 2, a),
              KILN_STATUS_OUT_OF_RANGE, "bytes at");
  assert_null(kiln_resident_free(kit.dispatcher, r));
  assert_says(kiln_resident_upload(kit.dispatcher, NULL, r, 0, 2, a),
              KILN_STATUS_INVALID_ARGUMENT, "was freed");
  dispatch_kit_close(&kit);
}

static void test_fill(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  uint32_t words[N];
  kiln_resident_t r = dispatch_kit_resident(&kit, sizeof(words), NULL);
  kiln_resident_range_t all = {0, 0};
  kiln_resident_range_t middle = {40, 80};
  kiln_resident_range_t odd = {41, 80};
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, r, all, 0x01020304, 4));
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, r, middle, 0xff, 1));
  dispatch_kit_fetch(&kit, r, sizeof(words), words);
  for (uint32_t i = 0; i < N; i++) {
    assert_int_equal(words[i], i >= 10 && i < 30 ? 0xffffffff : 0x01020304);
  }
  kiln_status_t status = kiln_resident_fill(kit.dispatcher, NULL, r, odd, 1, 4);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(kiln_resident_free(kit.dispatcher, r));
  dispatch_kit_close(&kit);
}

static void test_pin(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  static uint8_t memory[1 << 16];
  static uint8_t back[1 << 16];
  for (uint32_t i = 0; i < sizeof(memory); i++) memory[i] = (uint8_t)(i * 5);
  assert_null(kiln_resident_pin(kit.dispatcher, memory, sizeof(memory)));
  assert_says(kiln_resident_pin(kit.dispatcher, memory, sizeof(memory)),
              KILN_STATUS_ALREADY_EXISTS, "pinned");
  kiln_resident_t r = dispatch_kit_resident(&kit, sizeof(memory), memory);
  dispatch_kit_fetch(&kit, r, sizeof(back), back);
  assert_memory_equal(memory, back, sizeof(back));
  assert_null(kiln_resident_unpin(kit.dispatcher, memory));
  assert_says(kiln_resident_unpin(kit.dispatcher, memory),
              KILN_STATUS_NOT_FOUND, "not pinned");
  assert_null(kiln_resident_free(kit.dispatcher, r));
  dispatch_kit_close(&kit);
}

static void test_options(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  enum { CASES = 5 };
  const char* const kWords[CASES] = {"65 streams", "17 copy threads",
                                     "without a linker", "chunks", "telemetry"};
  for (int i = 0; i < CASES; i++) {
    kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
    kiln_dispatcher_t* dispatcher = NULL;
    if (i == 0) options.streams = 65;
    if (i == 1) options.copy_threads = 17;
    if (i == 2) options.cache = kiln_runtime_cache(kit.runtime);
    if (i == 3) options.staging_chunk_bytes = 100;
    if (i == 4) options.telemetry = 3;
    kiln_status_t status =
        kiln_dispatcher_create(kit.device, &options, &dispatcher);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_status_message(status), kWords[i]));
    kiln_status_free(status);
    assert_null(dispatcher);
  }
  dispatch_kit_close(&kit);
}

// Machine code from the cache: the second pipeline is not linked again.
static void test_cache(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_cache_options_t memory = kiln_cache_options_default();
  kiln_cache_t* cache = NULL;
  kiln_linker_t* linker = NULL;
  kiln_linker_options_t how = kiln_linker_options_default();
  kiln_dispatcher_t* dispatcher = NULL;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  memory.disk = KILN_SWITCH_OFF;
  how.device = kit.device;
  assert_null(kiln_cache_create(&memory, &cache));
  assert_null(kiln_runtime_open_linker(kit.runtime, &how, &linker));
  options.cache = cache;
  options.linker = linker;
  assert_null(kiln_dispatcher_create(kit.device, &options, &dispatcher));
  kiln_linker_release(linker);
  kiln_cache_release(cache);
  kiln_program_t* program = dispatch_kit_program(kStep);
  for (uint32_t i = 0; i < 2; i++) {
    kiln_pipeline_t* pipeline = NULL;
    uint32_t x[N] = {0};
    assert_null(kiln_pipeline_create(dispatcher, program, NULL, &pipeline));
    assert_int_equal(kiln_pipeline_info(pipeline)->from_cache, i);
    kiln_binding_t binding = kiln_bind_host_inout(x, sizeof(x));
    kiln_pending_t* pending = NULL;
    assert_null(
        kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    for (uint32_t k = 0; k < N; k++) assert_int_equal(x[k], 1);
    kiln_pipeline_release(pipeline);
  }
  kiln_program_release(program);
  kiln_dispatcher_release(dispatcher);
  dispatch_kit_close(&kit);
}

// The runtime's own cache and a linker for the device, unless others are named.
static void test_runtime(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_dispatcher_t* dispatcher = (kiln_dispatcher_t*)&kit;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  kiln_cache_options_t memory = kiln_cache_options_default();
  kiln_cache_t* cache = NULL;
  memory.disk = KILN_SWITCH_OFF;
  assert_null(kiln_cache_create(&memory, &cache));
  options.cache = cache;
  assert_says(kiln_runtime_open_dispatcher(kit.runtime, kit.device, &options,
                                           &dispatcher),
              KILN_STATUS_INVALID_ARGUMENT, "without a linker");
  assert_null(dispatcher);
  kiln_cache_release(cache);
  assert_null(
      kiln_runtime_open_dispatcher(kit.runtime, kit.device, NULL, &dispatcher));
  assert_ptr_equal(kiln_dispatcher_device(dispatcher), kit.device);
  kiln_dispatcher_release(dispatcher);
  dispatch_kit_close(&kit);
}

// A name tells whose it is: no two dispatchers of a device that are made one
// behind the other have names that look alike.
static void test_whose(void** state) {
  (void)state;
  enum { MANY = 600 };
  static uint64_t tags[MANY];
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (int i = 0; i < MANY; i++) {
    kiln_dispatcher_t* dispatcher = NULL;
    kiln_resident_t r;
    assert_null(kiln_dispatcher_create(kit.device, NULL, &dispatcher));
    assert_null(kiln_resident_allocate(dispatcher, 4, &r));
    tags[i] = r.id;
    for (int j = 0; j < i; j++) assert_true(tags[j] != r.id);
    assert_null(kiln_resident_free(dispatcher, r));
    kiln_dispatcher_release(dispatcher);
  }
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),   cmocka_unit_test(test_empty),
      cmocka_unit_test(test_budget),  cmocka_unit_test(test_copies),
      cmocka_unit_test(test_fill),    cmocka_unit_test(test_pin),
      cmocka_unit_test(test_options), cmocka_unit_test(test_cache),
      cmocka_unit_test(test_runtime), cmocka_unit_test(test_whose),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
