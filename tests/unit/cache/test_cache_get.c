// SPDX-License-Identifier: Apache-2.0
//
// cache: get, put and get or make, in memory and on disk.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/cache_inside.h"

static void ok(kiln_status_t status) {
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
}

static kiln_status_t make_text(void* user, kiln_cache_output_t* out) {
  int* calls = user;
  ++*calls;
  out->payload.data = (const uint8_t*)"payload";
  out->payload.size = 7;
  return NULL;
}

static void test_make_once(void** state) {
  (void)state;
  char folder[] = "/tmp/kiln-cache-XXXXXX";
  assert_non_null(mkdtemp(folder));
  int calls = 0;
  for (int round = 0; round < 2; round++) {
    kiln_cache_options_t options = kiln_cache_options_default();
    options.directory = folder;
    kiln_cache_t* cache = NULL;
    ok(kiln_cache_create(&options, &cache));
    for (int i = 0; i < 2; i++) {
      kiln_cache_request_t request = kiln_cache_request_default();
      request.key.kind = "text";
      request.key.bytes.data = (const uint8_t*)"key";
      request.key.bytes.size = 3;
      request.make = make_text;
      request.user = &calls;
      kiln_cache_entry_t* entry = NULL;
      uint32_t from = 0;
      ok(kiln_cache_get_or_make(cache, &request, &entry, &from));
      assert_int_equal(kiln_cache_entry_payload(entry).size, 7);
      assert_int_equal(calls, 1);
      assert_int_equal(from, i == 1       ? KILN_CACHE_FROM_MEMORY
                             : round == 0 ? KILN_CACHE_FROM_MAKE
                                          : KILN_CACHE_FROM_DISK);
      kiln_cache_entry_release(entry);
    }
    kiln_cache_release(cache);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_make_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
