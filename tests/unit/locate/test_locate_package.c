// SPDX-License-Identifier: Apache-2.0
//
// locate: which package of conda or dpkg a file belongs to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/status_make.h"
#include "elf_make.h"
#include "fault_run.h"
#include "locate/locate_facts.h"
#include "locate/locate_package_parse.h"
#include "locate_world.h"

enum {
  CHEAP = KILNI_LOCATE_FACTS_CHEAP,
  VERIFY = KILNI_LOCATE_FACTS_VERIFY,
  LIB = KILN_LOCATE_KIND_LIB
};

// ---- What is written down ----

#define CONDA(name, version, depends, files)                              \
  "{\n  \"build\": \"h5888daf_0\",\n  \"depends\": [" depends             \
  "],\n  \"files\": [" files                                              \
  "],\n  \"link\": {\"type\": 1, \"source\": \"/pkgs/{x}]\"},\n"          \
  "  \"name\": \"" name "\",\n  \"size\": 12,\n  \"version\": \"" version \
  "\"\n}\n"

static void conda_records(void** state) {
  (void)state;
  kiln_string_view_t paths[2] = {kilni_base_sv("lib/b.so"),
                                 kilni_base_sv("lib/a.so")};
  kilni_locate_conda_record_t record;
  kiln_string_view_t text =
      kilni_base_sv(CONDA("libcublas", "12.9.1.4",
                          "\"libgcc >=13\", \"cuda-version >=12.9,<12.10.0a0\"",
                          "\"lib/a.so.1\", \"lib/a.so\", \"lib/b.so\""));
  assert_true(kilni_locate_conda_read(text, paths, 2, &record));
  assert_true(kilni_base_sv_equal_cstr(record.name, "libcublas"));
  assert_true(kilni_base_sv_equal_cstr(record.version, "12.9.1.4"));
  assert_true(kilni_base_sv_equal_cstr(record.toolkit, ">=12.9,<12.10.0a0"));
  assert_int_equal(record.owned, 0);
  paths[0] = kilni_base_sv("lib/none.so");
  assert_true(kilni_locate_conda_read(text, paths, 2, &record));
  assert_int_equal(record.owned, 1);
  paths[1] = kilni_base_sv("a.so");  // part of a name is no name
  assert_true(kilni_locate_conda_read(text, paths, 2, &record));
  assert_int_equal(record.owned, SIZE_MAX);
  // Cut off anywhere, it is none.
  for (size_t size = 0; size + 2 < text.size; size++) {
    char* part = malloc(size + 1);
    memcpy(part, text.data, size);
    assert_false(kilni_locate_conda_read(kilni_base_sv_make(part, size), paths,
                                         2, &record));
    free(part);
  }
  static const char* const none[] = {"",
                                     "[]",
                                     "{}",
                                     "{\"name\": \"x\"}",
                                     "{\"version\": \"1\"}",
                                     "{\"name\": 1, \"version\": \"1\"}",
                                     "not json"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    assert_false(
        kilni_locate_conda_read(kilni_base_sv(none[i]), paths, 2, &record));
  }
  assert_true(kilni_locate_conda_read(
      kilni_base_sv(
          "{\"files\": null, \"depends\": [1, [\"cuda-version 9\"], "
          "\"cuda-versions 8\"], \"name\": \"x\", \"version\": \"1\"}"),
      paths, 2, &record));
  assert_int_equal(record.owned, SIZE_MAX);
  assert_int_equal(record.toolkit.size, 0);
}

static const char kStatus[] =
    "Package: libcublas12\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Source: nvidia-cuda-toolkit (12.4.1-2)\n"
    "Version: 12.4.5.8~12.4.1-2\n"
    "Description: what\n Package: libnothing\n Version: 1\n"
    "\n"
    "Package: libcudart12\n"
    "Status: deinstall ok config-files\n"
    "Architecture: i386\n"
    "Version: 1\n"
    "\n"
    "Package: libcudart12\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Source: nvidia-cuda-toolkit\n"
    "Version: 12.4.127~12.4.1-2\n"
    "\n"
    "Package: nvidia-cuda-dev\n"
    "Status: install ok installed\n"
    "Architecture: amd64\n"
    "Source: nvidia-cuda-toolkit (12.4.1-2)\n"
    "Version: 12.4.127~12.4.1-2\n";

static bool in_status(const char* name, const char* architecture,
                      kilni_locate_dpkg_package_t* out) {
  return kilni_locate_dpkg_status_find(kilni_base_sv(kStatus),
                                       kilni_base_sv(name),
                                       kilni_base_sv(architecture), out);
}

static void dpkg_records(void** state) {
  (void)state;
  kilni_locate_dpkg_package_t package;
  assert_true(in_status("libcublas12", "amd64", &package));
  assert_true(kilni_base_sv_equal_cstr(package.version, "12.4.5.8~12.4.1-2"));
  assert_true(kilni_base_sv_equal_cstr(package.source, "nvidia-cuda-toolkit"));
  assert_true(kilni_base_sv_equal_cstr(package.source_version, "12.4.1-2"));
  assert_true(in_status("libcudart12", "", &package));
  assert_true(kilni_base_sv_equal_cstr(package.version, "12.4.127~12.4.1-2"));
  assert_true(
      kilni_base_sv_equal_cstr(package.source_version, "12.4.127~12.4.1-2"));
  assert_false(in_status("libcudart12", "i386", &package));
  assert_false(in_status("libcublas12", "arm64", &package));
  assert_false(in_status("libnothing", "", &package));
  assert_false(in_status("", "", &package));
  kiln_string_view_t list =
      kilni_base_sv("/.\n/usr\n/usr/lib/a.so.1\n/usr/lib/a");
  assert_true(
      kilni_locate_dpkg_list_has(list, kilni_base_sv("/usr/lib/a.so.1")));
  assert_true(kilni_locate_dpkg_list_has(list, kilni_base_sv("/usr/lib/a")));
  assert_false(
      kilni_locate_dpkg_list_has(list, kilni_base_sv("/usr/lib/a.so")));
  assert_false(kilni_locate_dpkg_list_has(list, kilni_base_sv("")));
}

// ---- Owners ----

static void put_library(const world_t* world, const char* name,
                        const char* soname) {
  elf_plan_t plan = {.soname = soname, .needed = {"libc.so.6"}};
  elf_made_t made = elf_make(&plan);
  world_write(world, name, made.data, made.size);
  free(made.data);
}

static kilni_locate_reader_t* new_reader(const world_t* world) {
  kilni_locate_reader_t* reader = NULL;
  assert_null(
      kilni_locate_reader_create(kiln_allocator_libc(), world->root, &reader));
  return reader;
}

static const kilni_locate_facts_t* read_at(kilni_locate_reader_t* reader,
                                           const world_t* world, uint32_t depth,
                                           const char* name, const char* path) {
  kilni_locate_facts_query_t query = {
      .path = world_path(world, path), .name = name, .kind = LIB};
  const kilni_locate_facts_t* facts = NULL;
  assert_null(kilni_locate_facts_read(reader, &query, depth, &facts));
  return facts;
}

static void put_conda(const world_t* world) {
  put_library(world, "env/lib/libcublas.so.12.9.1.4", "libcublas.so.12");
  world_link(world, "env/lib/libcublas.so.12", "libcublas.so.12.9.1.4");
  put_library(world, "env/lib/libcudart.so.12", "libcudart.so.12");
  world_text(world, "env/include/cuda.h", "#define CUDA_VERSION 12080\n");
  world_text(
      world, "env/conda-meta/libcublas-12.9.1.4-h9ab20c4_0.json",
      CONDA("libcublas", "12.9.1.4", "\"cuda-version >=12.9,<12.10.0a0\"",
            "\"lib/libcublas.so.12\", \"lib/libcublas.so.12.9.1.4\""));
  world_text(world, "env/conda-meta/cuda-cudart-12.9.79-h5888daf_0.json",
             CONDA("cuda-cudart", "12.9.79", "", "\"lib/libcudart.so.12\""));
  world_text(world, "env/conda-meta/cuda-broken-1-0.json", "{\"name\": ");
  // Nobody asks it: its name does not say that it is of CUDA.
  world_text(world, "env/conda-meta/python-3.11.json",
             CONDA("python", "3.11", "", "\"lib/libnvrtc.so.12\""));
}

static void a_conda_prefix(void** state) {
  world_t* world = *state;
  put_conda(world);
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_at(reader, world, CHEAP, "cublas", "env/lib/libcublas.so.12");
  assert_null(facts->owner);
  assert_non_null(facts->package);
  assert_int_equal(facts->package->manager, KILNI_PACKAGE_CONDA);
  assert_string_equal(facts->package->name, "libcublas");
  assert_string_equal(facts->package->version, "12.9.1.4");
  assert_string_equal(facts->package->toolkit, ">=12.9,<12.10.0a0");
  assert_non_null(strstr(facts->package->record, "conda-meta/libcublas-12"));
  assert_false(facts->walked);  // the package tells
  assert_int_equal(facts->problem_count, 0);
  // What is asked again is not made again.
  const kilni_locate_package_t* before = facts->package;
  facts = read_at(reader, world, VERIFY, "cublas", "env/lib/libcublas.so.12");
  assert_ptr_equal(facts->package, before);
  assert_true(facts->walked);
  assert_int_equal(facts->header.line, 12080);
  assert_false(facts->header_same_owner);
  facts = read_at(reader, world, CHEAP, "cudart", "env/lib/libcudart.so.12");
  assert_string_equal(facts->package->version, "12.9.79");
  assert_string_equal(facts->package->toolkit, "");
  // Nobody's; the broken record is named.
  put_library(world, "env/lib/libnvrtc.so.12", "libnvrtc.so.12");
  facts = read_at(reader, world, CHEAP, "nvrtc", "env/lib/libnvrtc.so.12");
  assert_null(facts->package);
  assert_int_equal(facts->problem_count, 1);
  assert_non_null(strstr(facts->problems[0].path, "cuda-broken-1-0.json"));
  kilni_locate_reader_release(reader);
}

static void a_wheel_in_a_conda_prefix(void** state) {
  world_t* world = *state;
  put_conda(world);
#define SITE "env/lib/python3.11/site-packages/"
  put_library(world, SITE "nvidia/cu13/lib/libcublas.so.13", "libcublas.so.13");
  world_text(world, SITE "nvidia_cublas-13.1.0.3.dist-info/RECORD",
             "nvidia/cu13/lib/libcublas.so.13,sha256=x,9\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_at(
      reader, world, VERIFY, "cublas", SITE "nvidia/cu13/lib/libcublas.so.13");
  assert_string_equal(facts->owner->name, "nvidia-cublas");
  assert_null(facts->package);
  kilni_locate_reader_release(reader);
}

#define DEB_LIB "usr/lib/x86_64-linux-gnu/"

static void put_debian(const world_t* world) {
  put_library(world, DEB_LIB "libcudart.so.12.4.127", "libcudart.so.12");
  world_link(world, DEB_LIB "libcudart.so.12", "libcudart.so.12.4.127");
  world_text(world, "usr/include/cuda.h", "#define CUDA_VERSION 12040\n");
  world_text(world, "var/lib/dpkg/status", kStatus);
  world_text(world, "var/lib/dpkg/info/libcudart12:amd64.list",
             "/.\n/usr\n/usr/lib\n/" DEB_LIB "libcudart.so.12.4.127\n/" DEB_LIB
             "libcudart.so.12\n");
  world_text(world, "var/lib/dpkg/info/nvidia-cuda-dev:amd64.list",
             "/.\n/usr\n/usr/include\n/usr/include/cuda.h\n");
  world_text(world, "var/lib/dpkg/info/libcudart12:amd64.md5sums", "");
}

static void debian(void** state) {
  world_t* world = *state;
  put_debian(world);
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_at(reader, world, VERIFY, "cudart", DEB_LIB "libcudart.so.12");
  assert_non_null(facts->package);
  assert_int_equal(facts->package->manager, KILNI_PACKAGE_DPKG);
  assert_string_equal(facts->package->name, "libcudart12");
  assert_string_equal(facts->package->version, "12.4.127~12.4.1-2");
  assert_string_equal(facts->package->source, "nvidia-cuda-toolkit");
  kilni_locate_reader_release(reader);
}

// The header of the same /usr counts where one source made both packages.
static void whose_header(void** state) {
  world_t* world = *state;
  put_debian(world);
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_at(reader, world, CHEAP, "cudart", DEB_LIB "libcudart.so.12");
  assert_int_equal(facts->header.line, 12040);
  // libcudart12's paragraph has no source version: its own is another.
  assert_false(facts->header_same_owner);
  assert_string_equal(facts->header_owner, "nvidia-cuda-dev");
  kilni_locate_reader_release(reader);
  put_library(world, DEB_LIB "libcublas.so.12", "libcublas.so.12");
  world_text(world, "var/lib/dpkg/info/libcublas12:amd64.list",
             "/" DEB_LIB "libcublas.so.12\n");
  put_library(world, DEB_LIB "libcufft.so.11", "libcufft.so.11");
  reader = new_reader(world);
  facts = read_at(reader, world, CHEAP, "cublas", DEB_LIB "libcublas.so.12");
  assert_true(facts->header_same_owner);
  assert_string_equal(facts->package->name, "libcublas12");
  // Somebody put it there by hand.
  facts = read_at(reader, world, CHEAP, "cufft", DEB_LIB "libcufft.so.11");
  assert_int_equal(facts->header.line, 12040);
  assert_false(facts->header_same_owner);
  kilni_locate_reader_release(reader);
  // Without dpkg nothing is known against it.
  world_remove(world, "var");
  reader = new_reader(world);
  facts = read_at(reader, world, CHEAP, "cufft", DEB_LIB "libcufft.so.11");
  assert_true(facts->header_same_owner);
  kilni_locate_reader_release(reader);
}

// /lib is a link to /usr/lib, and the list has the old spelling.
static void merged_folders(void** state) {
  world_t* world = *state;
  put_debian(world);
  put_library(world, DEB_LIB "libcublas.so.12", "libcublas.so.12");
  world_text(world, "var/lib/dpkg/info/libcublas12:amd64.list",
             "/lib/x86_64-linux-gnu/libcublas.so.12\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_at(reader, world, VERIFY, "cublas", DEB_LIB "libcublas.so.12");
  assert_non_null(facts->package);
  kilni_locate_reader_release(reader);
}

static void records_that_are_wrong(void** state) {
  world_t* world = *state;
  put_debian(world);
  world_text(world, "var/lib/dpkg/status", "no paragraph\n");
  world_text(world, "var/lib/dpkg/info/libcuda-a.list", "");
  world_folder(world, "var/lib/dpkg/info/libcuda-b.list");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_at(reader, world, VERIFY, "cudart", DEB_LIB "libcudart.so.12");
  assert_null(facts->package);
  assert_true(facts->problem_count >= 1);
  bool said = false;
  for (uint32_t i = 0; i < facts->problem_count; i++) {
    said = said || strstr(facts->problems[i].why, "status does not list");
  }
  assert_true(said);
  kilni_locate_reader_release(reader);
}

static kiln_status_t read_body(kiln_allocator_t allocator, void* user) {
  world_t* world = user;
  kilni_locate_reader_t* reader = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_reader_create(allocator, world->root, &reader));
  static const char* const paths[] = {DEB_LIB "libcudart.so.12",
                                      "env/lib/libcublas.so.12"};
  kiln_status_t status = kiln_ok();
  for (size_t i = 0; i < 2 && kiln_status_is_ok(status); i++) {
    kilni_locate_facts_query_t query = {.path = world_path(world, paths[i]),
                                        .kind = LIB};
    const kilni_locate_facts_t* facts = NULL;
    status = kilni_locate_facts_read(reader, &query, VERIFY, &facts);
    if (kiln_status_is_ok(status)) assert_non_null(facts->package);
  }
  kilni_locate_reader_release(reader);
  return status;
}

static void memory_may_run_out(void** state) {
  world_t* world = *state;
  put_debian(world);
  put_conda(world);
  assert_true(fault_run_allocations(read_body, world, 0) > 10);
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conda_records),
      cmocka_unit_test(dpkg_records),
      IN_A_WORLD(a_conda_prefix),
      IN_A_WORLD(a_wheel_in_a_conda_prefix),
      IN_A_WORLD(debian),
      IN_A_WORLD(whose_header),
      IN_A_WORLD(merged_folders),
      IN_A_WORLD(records_that_are_wrong),
      IN_A_WORLD(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
