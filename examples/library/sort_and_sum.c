// SPDX-License-Identifier: Apache-2.0
//
// examples: programs that come with Kiln, in a program in C: numbers are
// sorted, and added up. Give a device, e.g. "soft", or none.
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100000, BYTES = N * sizeof(uint32_t) };
static uint32_t numbers[N], sorted[N];
static char message[4096];

static void check(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  kiln_status_format(status, sizeof(message), message, NULL);
  fprintf(stderr, "%s\n", message);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

int main(int argc, char** argv) {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_dispatcher_t* dispatcher;
  check(kiln_runtime_create(NULL, &runtime));
  check(
      kiln_runtime_open_device(runtime, argc > 1 ? argv[1] : "auto", &device));
  check(kiln_dispatcher_create(device, NULL, &dispatcher));
  // Planned once, for up to N elements.
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  options.count = N;
  kiln_library_plan_t *sort, *fold;
  check(kiln_library_plan_create(dispatcher, "sort", &options, &sort));
  check(kiln_library_plan_create(dispatcher, "fold", &options, &fold));
  kiln_resident_t x, y, sum;
  check(kiln_resident_allocate(dispatcher, BYTES, &x));
  check(kiln_resident_allocate(dispatcher, BYTES, &y));
  check(kiln_resident_allocate(dispatcher, sizeof(uint32_t), &sum));
  uint32_t total = 0, want = 0, wrong = 0;
  for (uint32_t i = 0; i < N; i++) want += numbers[i] = i * 2654435761u;
  // Run as often as one likes; NULL is the dispatcher's own first stream.
  const kiln_binding_t keys[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
  const kiln_binding_t all[] = {kiln_bind_resident(y), kiln_bind_resident(sum)};
  check(kiln_resident_upload(dispatcher, NULL, x, 0, BYTES, numbers));
  check(kiln_library_plan_run(sort, NULL, keys, 2));
  check(kiln_library_plan_run(fold, NULL, all, 2));
  check(kiln_resident_download(dispatcher, NULL, y, 0, BYTES, sorted));
  check(
      kiln_resident_download(dispatcher, NULL, sum, 0, sizeof(total), &total));
  for (uint32_t i = 1; i < N; i++) wrong += sorted[i - 1] > sorted[i];
  printf("%d numbers on \"%s\", %u out of order, sum %s\n", N,
         kiln_device_name(device), (unsigned)wrong,
         total == want ? "right" : "wrong");
  check(kiln_resident_free(dispatcher, x));
  check(kiln_resident_free(dispatcher, y));
  check(kiln_resident_free(dispatcher, sum));
  kiln_library_plan_release(sort), kiln_library_plan_release(fold);
  kiln_dispatcher_release(dispatcher);
  kiln_device_release(device), kiln_runtime_release(runtime);
  return wrong != 0 || total != want;
}
