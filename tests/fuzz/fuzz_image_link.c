// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as an input of a link: an error with a cure, or each name
// that they define, whole. The first byte says for which architecture. What is
// refused is given to a linker that may crash, too: an error again, or a doubt.
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static kiln_status_t define(void* user, const char* name, bool is_kernel) {
  size_t* bytes = user;
  *bytes += strlen(name) + (is_kernel ? 1 : 0);
  return kiln_ok();
}

static kiln_status_t expect(void* user, const char* name) {
  return define(user, name, false);
}

static kiln_status_t keep(void* user, const char* name, uint32_t kind) {
  return define(user, name, kind == KILNI_IMAGE_KEEP_KERNEL);
}

static kiln_status_t misfit(void* user, const char* file, const char* targets) {
  (void)define(user, targets, false);
  return define(user, file, false);
}

static kiln_status_t loose(void* user, const char* archive, const char* member,
                           uint32_t format) {
  (void)define(user, archive, false);
  return define(user, member, format == KILN_CODE_FORMAT_PTX);
}

static kiln_status_t prototype(void* user, const char* name, const char* type) {
  (void)define(user, name, false);
  return define(user, type, false);
}

static bool is_promised(kiln_status_t status) {
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OK) return true;
  return (code == KILN_STATUS_BAD_DATA || code == KILN_STATUS_LIMIT_EXCEEDED) &&
         kiln_status_fix(status) != NULL;
}

static bool is_doubted(kiln_bytes_view_t view, kilni_image_link_visit_t visit) {
  kiln_status_t doubt = NULL;
  visit.expect = expect;
  visit.inout_doubt = &doubt;
  kiln_status_t status = kilni_image_check_link(
      view, kiln_code_format_of(view), "fuzz", kiln_allocator_libc(), &visit);
  bool promised = is_promised(status) && is_promised(doubt) &&
                  (status != NULL || doubt != NULL);
  kiln_status_free(status);
  kiln_status_free(doubt);
  return promised;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  // A copy of its own size, so that a read behind its end is seen.
  uint8_t* copy = malloc(size - 1);
  if (copy == NULL) return 0;
  memcpy(copy, data + 1, size - 1);
  size_t bytes = 0;
  kilni_image_link_visit_t visit = {
      .sm = data[0], .user = &bytes, .define = define};
  visit.keep = keep;
  visit.misfit = misfit;
  visit.loose = loose;
  visit.prototype = prototype;
  kiln_bytes_view_t view = {copy, size - 1};
  kiln_status_t status = kilni_image_check_link(
      view, kiln_code_format_of(view), "fuzz", kiln_allocator_libc(), &visit);
  bool promised =
      is_promised(status) && (status == NULL || is_doubted(view, visit));
  kiln_status_free(status);
  free(copy);
  if (!promised) __builtin_trap();
  return 0;
}
