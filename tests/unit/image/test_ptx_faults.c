// SPDX-License-Identifier: Apache-2.0
//
// image: every allocation of a parse may fail.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "image/image.h"
#include "ptx_text.h"

static const char kText[] = PTX_HEAD
    ".file 1 \"a.cu\"\n.global .u32 t[2][2] = {{1, 2}, {3, 4}};\n"
    ".global .u32 v<3>;\n.extern .shared .b8 d[];\n"
    ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
    ".global .u64 pf[2] = {f, generic(t)};\n"
    ".entry e(.param .u64 p) .reqntid 32 {\n.reg .b32 %r<40>;\n"
    ".reg .b64 %rd<3>; .reg .pred %p;\n.param .b32 x; .param .b32 y;\n"
    ".loc 1 2 3\ncall (y), f, (x);\n"
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "call (y), %rd1, (x), P;\nT: .branchtargets L, M;\nbrx.idx %r1, T;\n"
    "L: @%p bra.uni L;\nM: { .reg .b32 q; mov.b32 q, 5; bra L; }\n"
    "ld.param.v2.u32 {%r1, %r2}, [p+8];\nsetp.eq.u32 %p|_, %r1, %r2;\n"
    "ret;\n}\n";

static kiln_status_t parse(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_bytes_view_t bytes = {(const uint8_t*)kText, strlen(kText)};
  kilni_image_ptx_module_t* module = (kilni_image_ptx_module_t*)&module;
  kiln_status_t status =
      kilni_image_ptx_module_create(bytes, "test", NULL, allocator, &module);
  assert_true(kiln_status_is_ok(status) == (module != NULL));
  kilni_image_ptx_module_release(module);
  return status;
}

static kiln_status_t make_image(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_bytes_view_t bytes = {(const uint8_t*)kText, strlen(kText)};
  kiln_image_options_t options = kiln_image_options_default();
  options.allocator = &allocator;
  kiln_image_t* image = (kiln_image_t*)&image;
  kiln_status_t status = kiln_image_create(bytes, &options, &image);
  assert_true(kiln_status_is_ok(status) == (image != NULL));
  kiln_image_release(image);
  return status;
}

static void a_parse_survives_every_failure(void** state) {
  (void)state;
  assert_true(fault_run_allocations(parse, NULL, 0) > 20);
}

static void an_image_survives_every_failure(void** state) {
  (void)state;
  assert_true(fault_run_allocations(make_image, NULL, 0) > 24);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_parse_survives_every_failure),
      cmocka_unit_test(an_image_survives_every_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
