// SPDX-License-Identifier: Apache-2.0
//
// locate: facts about found files, over made-up toolkits and sites.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "elf_make.h"
#include "fault_run.h"
#include "locate/locate_facts.h"
#include "locate_world.h"

enum {
  LEAST = KILNI_LOCATE_FACTS_LEAST,
  CHEAP = KILNI_LOCATE_FACTS_CHEAP,
  VERIFY = KILNI_LOCATE_FACTS_VERIFY,
  LIB = KILN_LOCATE_KIND_LIB,
  HEADER = KILN_LOCATE_KIND_HEADER,
  BINARY = KILN_LOCATE_KIND_BINARY
};

#define SITE "env/lib/python3.11/site-packages"

static void put_elf(const world_t* world, const char* name,
                    const elf_plan_t* plan) {
  elf_made_t made = elf_make(plan);
  world_write(world, name, made.data, made.size);
  free(made.data);
}

static kilni_locate_reader_t* new_reader(const world_t* world) {
  kilni_locate_reader_t* reader = NULL;
  assert_null(
      kilni_locate_reader_create(kiln_allocator_libc(), world->root, &reader));
  assert_non_null(reader);
  return reader;
}

// Reads with a prefix in the world (NULL: none).
static const kilni_locate_facts_t* read_in(kilni_locate_reader_t* reader,
                                           const world_t* world, uint32_t depth,
                                           uint32_t kind, const char* name,
                                           const char* path,
                                           const char* prefix) {
  char full[WORLD_PATH_BYTES];
  char root[WORLD_PATH_BYTES];
  snprintf(full, sizeof(full), "%s", world_path(world, path));
  snprintf(root, sizeof(root), "%s", prefix ? world_path(world, prefix) : "");
  kilni_locate_facts_query_t query = {
      .path = full, .name = name, .kind = kind, .prefix = prefix ? root : NULL};
  const kilni_locate_facts_t* facts = NULL;
  assert_null(kilni_locate_facts_read(reader, &query, depth, &facts));
  assert_non_null(facts);
  assert_string_equal(facts->path, full);
  return facts;
}

static bool has_problem(const kilni_locate_facts_t* facts, const char* path,
                        const char* why) {
  for (uint32_t i = 0; i < facts->problem_count; i++) {
    if (strstr(facts->problems[i].path, path) &&
        strstr(facts->problems[i].why, why)) {
      return true;
    }
  }
  return false;
}

static void put_linker(const world_t* world, const char* path) {
  elf_plan_t plan = {
      .soname = "libnvJitLink.so.13",
      .needed = {"libc.so.6"},
      .defined = {"nvJitLinkVersion", "__nvJitLinkCreate_13_0",
                  "__nvJitLinkCreate_13_5", "__nvJitLinkCreate_13_1"},
      .rodata = "Cuda compilation tools, release 13.5, V13.5.37",
      .rodata_offset = 300};
  put_elf(world, path, &plan);
}

static void put_plain(const world_t* world, const char* path,
                      const char* soname) {
  elf_plan_t plan = {.soname = soname, .needed = {"libc.so.6"}};
  put_elf(world, path, &plan);
}

// The environment of one line with the nvJitLink of another that the official
// meta wheel gives.
static void put_mixed(const world_t* world) {
  put_linker(world, SITE "/nvidia/cu13/lib/libnvJitLink.so.13");
  world_text(world, SITE "/nvidia_nvjitlink-13.5.37.dist-info/RECORD",
             "nvidia/cu13/include/nvJitLink.h,sha256=abc,17213\r\n"
             "nvidia/cu13/lib/libnvJitLink.so.13,sha256=k-_Ojo,4711\r\n"
             "nvidia_nvjitlink-13.5.37.dist-info/RECORD,,\r\n");
  world_text(world, SITE "/nvidia_nvjitlink-13.5.37.dist-info/INSTALLER",
             "pip\n");
  world_text(world, SITE "/nvidia_cuda_runtime-13.0.96.dist-info/RECORD",
             "nvidia/cu13/include/cuda.h,sha256=x,9\n"
             "nvidia/cu13/lib/libcudart.so.13,sha256=y,9\n");
  world_text(world, SITE "/nvidia/cu13/include/cuda.h",
             "#define CUDA_VERSION 13000 /* here */\n");
  world_text(world, SITE "/nvidia/cu13/include/cuda_runtime_api.h",
             "#define CUDART_VERSION  13000\n");
  put_plain(world, SITE "/nvidia/cu13/lib/libcudart.so.13", "libcudart.so.13");
  world_text(world, SITE "/cuda_toolkit-13.0.3.0.dist-info/METADATA",
             "Metadata-Version: 2.4\n"
             "Name: cuda-toolkit\n"
             "Version: 13.0.3.0\n"
             "Requires-Dist: nvidia_nvjitlink<14,>=13.0.88; extra == 'all'\n"
             "Requires-Dist: ==broken\n"
             "Requires-Dist: nvidia-cuda-runtime==13.0.96.*; extra == 'x'\n"
             "\n"
             "Requires-Dist: nvidia-nvjitlink==1\n");
}

// ---- What a library says ----

static void test_a_mixed_environment(void** state) {
  world_t* world = *state;
  put_mixed(world);
  kilni_locate_reader_t* reader = new_reader(world);
  const char* path = SITE "/nvidia/cu13/lib/libnvJitLink.so.13";
  const kilni_locate_facts_t* facts =
      read_in(reader, world, VERIFY, LIB, "nvJitLink", path, SITE);
  assert_int_equal(facts->symbol.line, 13050);
  assert_string_equal(facts->symbol.text, "__nvJitLinkCreate_13_5");
  assert_int_equal(facts->release.line, 13050);
  assert_string_equal(facts->release_version, "13.5.37");
  assert_string_equal(facts->soname, "libnvJitLink.so.13");
  assert_int_equal(facts->needs.line, 0);
  assert_non_null(facts->owner);
  assert_string_equal(facts->owner->name, "nvidia-nvjitlink");
  assert_string_equal(facts->owner->version, "13.5.37");
  assert_string_equal(facts->owner->sha256, "k-_Ojo");
  assert_string_equal(facts->owner->installer, "pip");
  assert_int_equal(facts->owner->size, 4711);
  assert_false(facts->owner->by_real_path);
  // The range, as it is written, and nothing from the description.
  assert_int_equal(facts->pin_count, 1);
  assert_string_equal(facts->pins[0].toolkit_version, "13.0.3.0");
  assert_string_equal(facts->pins[0].specifier, "<14,>=13.0.88");
  assert_string_equal(facts->pins[0].marker, "extra == 'all'");
  // A header is there, but it is another's.
  assert_true(facts->walked);
  assert_int_equal(facts->header.line, 13000);
  assert_int_equal(facts->runtime.line, 13000);
  assert_false(facts->header_same_owner);
  assert_string_equal(facts->header_owner, "nvidia-cuda-runtime");
  assert_int_equal(facts->problem_count, 0);
  // The runtime's header is its own.
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  SITE "/nvidia/cu13/lib/libcudart.so.13", SITE);
  assert_true(facts->header_same_owner);
  assert_int_equal(facts->header.line, 13000);
  assert_int_equal(facts->pin_count, 1);
  assert_string_equal(facts->pins[0].specifier, "==13.0.96.*");
  const kilni_locate_pin_t* pins;
  uint32_t count;
  char site[WORLD_PATH_BYTES];
  snprintf(site, sizeof(site), "%s", world_path(world, SITE));
  assert_null(kilni_locate_pins_read(reader, site, &pins, &count));
  assert_int_equal(count, 2);
  assert_string_equal(pins[0].name, "nvidia-nvjitlink");
  assert_null(kilni_locate_pins_read(reader, "/nowhere", &pins, &count));
  assert_int_equal(count, 0);
  kilni_locate_reader_release(reader);
}

static void test_cheap_is_enough_and_is_kept(void** state) {
  world_t* world = *state;
  put_mixed(world);
  kilni_locate_reader_t* reader = new_reader(world);
  const char* path = SITE "/nvidia/cu13/lib/libnvJitLink.so.13";
  const kilni_locate_facts_t* cheap =
      read_in(reader, world, CHEAP, LIB, "nvJitLink", path, SITE);
  assert_int_equal(cheap->symbol.line, 13050);
  assert_false(cheap->walked);
  assert_string_equal(cheap->owner->version, "13.5.37");
  // Nothing is read again: not even that the file is gone is noticed.
  world_remove(world, path);
  assert_ptr_equal(cheap,
                   read_in(reader, world, CHEAP, LIB, "nvJitLink", path, SITE));
  kilni_locate_reader_retain(reader);
  kilni_locate_reader_release(reader);
  kilni_locate_facts_query_t query = {
      .path = cheap->path, .name = "nvJitLink", .kind = LIB};
  const kilni_locate_facts_t* facts;
  kiln_status_t status =
      kilni_locate_facts_read(reader, &query, VERIFY, &facts);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_null(facts);
  kiln_status_free(status);
  kilni_locate_reader_release(reader);
}

static void test_what_a_consumer_needs(void** state) {
  world_t* world = *state;
  elf_plan_t plan = {
      .soname = "libcusparse.so.12",
      .runpath = "$ORIGIN",
      .needed = {"libnvJitLink.so.13", "libc.so.6"},
      .undefined = {"__nvJitLinkCreate_13_0", "__nvJitLinkAddData_12_9"},
      // Of its device code, and so no word about itself.
      .rodata = "Cuda compilation tools, release 13.1, V13.1.0"};
  put_elf(world, "kit/lib/libcusparse.so.12", &plan);
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, VERIFY, LIB, "cusparse",
              "kit/lib/libcusparse.so.12", "kit");
  assert_int_equal(facts->needs.line, 13000);
  assert_int_equal(facts->symbol.line, 0);
  assert_int_equal(facts->release.line, 0);
  assert_string_equal(facts->runpath, "$ORIGIN");
  assert_int_equal(facts->needed_count, 2);
  assert_string_equal(facts->needed[0], "libnvJitLink.so.13");
  kilni_locate_reader_release(reader);
}

// VERIFY after CHEAP asks the file nothing that CHEAP asked: here it is gone.
static void test_nothing_is_read_twice(void** state) {
  world_t* world = *state;
  put_plain(world, "kit/lib/libcublas.so.13", "libcublas.so.13");
  world_text(world, "kit/include/cuda.h", "#define CUDA_VERSION 13000\n");
  char path[WORLD_PATH_BYTES];
  snprintf(path, sizeof(path), "%s",
           world_path(world, "kit/lib/libcublas.so.13"));
  kilni_locate_facts_query_t query = {
      .path = path, .real_path = path, .name = "cublas", .kind = LIB};
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* cheap;
  const kilni_locate_facts_t* verify;
  assert_null(kilni_locate_facts_read(reader, &query, CHEAP, &cheap));
  assert_int_equal(cheap->header.line, 13000);
  world_remove(world, "kit/lib/libcublas.so.13");
  world_remove(world, "kit/include/cuda.h");
  assert_null(kilni_locate_facts_read(reader, &query, VERIFY, &verify));
  assert_int_equal(verify->depth, VERIFY);
  assert_string_equal(verify->soname, "libcublas.so.13");
  assert_int_equal(verify->needed_count, 1);
  assert_int_equal(verify->size, cheap->size);
  assert_int_equal(verify->header.line, 13000);
  kilni_locate_reader_release(reader);
}

static void test_texts(void** state) {
  world_t* world = *state;
  elf_plan_t plan = {.rodata =
                         "Cuda compilation tools, release 12.9, V12.9.86"};
  plan.rodata_offset = KILNI_FACTS_TEXT_CHEAP;
  put_elf(world, "kit/bin/ptxas", &plan);
  plan.rodata_offset = 64;
  put_elf(world, "kit/bin/nvcc", &plan);
  plan.rodata = "NCCL version 2.28.9 compiled with CUDA 13.0";
  put_elf(world, "kit/lib/libnccl.so.2", &plan);
  world_text(world, "kit/bin/nvlink", "#!/bin/sh\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, CHEAP, BINARY, "nvcc", "kit/bin/nvcc", "kit");
  assert_int_equal(facts->release.line, 12090);
  assert_string_equal(facts->release.text,
                      "Cuda compilation tools, release 12.9, V12.9.86");
  facts =
      read_in(reader, world, CHEAP, BINARY, "ptxas", "kit/bin/ptxas", "kit");
  assert_int_equal(facts->release.line, 0);  // too deep for a glance
  facts =
      read_in(reader, world, VERIFY, BINARY, "ptxas", "kit/bin/ptxas", "kit");
  assert_int_equal(facts->release.line, 12090);
  facts =
      read_in(reader, world, CHEAP, LIB, "nccl", "kit/lib/libnccl.so.2", "kit");
  assert_int_equal(facts->built.line, 13000);
  // A script in a program's place says nothing, which is no problem.
  facts =
      read_in(reader, world, CHEAP, BINARY, "nvlink", "kit/bin/nvlink", "kit");
  assert_int_equal(facts->bits, 0);
  assert_int_equal(facts->problem_count, 0);
  kilni_locate_reader_release(reader);
}

// ---- Products with a number of their own ----

static void test_products(void** state) {
  world_t* world = *state;
  world_text(world, "kit/include/cudnn_version.h",
             "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 19\n"
             "#define CUDNN_PATCHLEVEL 0\n");
  world_put(world, "kit/include/cudnn.h");
  world_text(world, "kit/targets/x86_64-linux/include/nccl.h",
             "#define NCCL_MAJOR 2\n# define NCCL_MINOR 28 // x\n"
             "#define NCCL_PATCH 9\n");
  put_plain(world, "kit/lib64/libcudnn.so.9", "libcudnn.so.9");
  put_plain(world, "kit/lib64/libcudnn_ops.so.9", "libcudnn_ops.so.9");
  put_plain(world, "kit/lib/libnccl.so.2", "libnccl.so.2");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_in(
      reader, world, CHEAP, LIB, "cudnn", "kit/lib64/libcudnn.so.9", "kit");
  assert_string_equal(facts->header_release, "9.19.0");
  assert_string_equal(facts->header_release_path,
                      world_path(world, "kit/include/cudnn_version.h"));
  // No file is read twice: the header may change meanwhile.
  world_text(world, "kit/include/cudnn_version.h", "#define CUDNN_MAJOR 8\n");
  facts = read_in(reader, world, CHEAP, LIB, "cudnn_ops",
                  "kit/lib64/libcudnn_ops.so.9", "kit");
  assert_string_equal(facts->header_release, "9.19.0");
  facts = read_in(reader, world, CHEAP, HEADER, "cudnn", "kit/include/cudnn.h",
                  "kit");
  assert_string_equal(facts->header_release, "9.19.0");
  facts =
      read_in(reader, world, CHEAP, LIB, "nccl", "kit/lib/libnccl.so.2", "kit");
  assert_string_equal(facts->header_release, "2.28.9");
  kilni_locate_reader_release(reader);
  // Half a header says nothing, and is no problem.
  reader = new_reader(world);
  facts = read_in(reader, world, CHEAP, LIB, "cudnn", "kit/lib64/libcudnn.so.9",
                  "kit");
  assert_null(facts->header_release);
  assert_int_equal(facts->problem_count, 0);
  kilni_locate_reader_release(reader);
}

// A header beyond the borders of the walk is somebody else's; where the file's
// name or its owner says the number, a glance opens no header.
static void test_products_of_others(void** state) {
  world_t* world = *state;
  world_text(world, "include/nccl.h",
             "#define NCCL_MAJOR 2\n#define NCCL_MINOR 1\n"
             "#define NCCL_PATCH 0\n");
  world_text(world, "kit/include/nccl.h",
             "#define NCCL_MAJOR 2\n#define NCCL_MINOR 1\n"
             "#define NCCL_PATCH 0\n");
  put_plain(world, "bare/lib/libnccl.so.2", "libnccl.so.2");
  put_plain(world, "kit/lib/libnccl.so.2.22.3", "libnccl.so.2");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_in(reader, world, CHEAP, LIB, "nccl",
                                              "bare/lib/libnccl.so.2", "bare");
  assert_null(facts->header_release);
  facts = read_in(reader, world, CHEAP, LIB, "nccl",
                  "kit/lib/libnccl.so.2.22.3", "kit");
  assert_string_equal(facts->name_version, "2.22.3");
  assert_null(facts->header_release);
  facts = read_in(reader, world, VERIFY, LIB, "nccl",
                  "kit/lib/libnccl.so.2.22.3", "kit");
  assert_string_equal(facts->header_release, "2.1.0");
  kilni_locate_reader_release(reader);
}

static void test_siblings(void** state) {
  world_t* world = *state;
  put_plain(world, "a/lib/libnvrtc.so.13.0.88", "libnvrtc.so.13");
  world_link(world, "a/lib/libnvrtc.so.13", "libnvrtc.so.13.0.88");
  world_put(world, "a/lib/libnvrtc-builtins.so.13.0");
  world_put(world, "a/lib/libnvrtc-builtins.so.12.9");
  put_plain(world, "b/lib/libnvrtc.so.13", "libnvrtc.so.13");
  world_put(world, "b/lib/libnvrtc-builtins.so.13.0");
  world_put(world, "b/lib/libnvrtc-builtins.so.13.1");
  // Linked file by file into an environment.
  put_plain(world, "store/x/libnvrtc.so.13", "libnvrtc.so.13");
  world_link(world, "c/lib/libnvrtc.so.13", "../../store/x/libnvrtc.so.13");
  world_put(world, "c/lib/libnvrtc-builtins.so.13.5");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, CHEAP, LIB, "nvrtc", "a/lib/libnvrtc.so.13", "a");
  assert_int_equal(facts->sibling.line, 13000);
  assert_string_equal(facts->sibling.text, "libnvrtc-builtins.so.13.0");
  assert_string_equal(facts->name_version, "13.0.88");
  facts =
      read_in(reader, world, CHEAP, LIB, "nvrtc", "b/lib/libnvrtc.so.13", "b");
  assert_int_equal(facts->sibling.line, 0);  // which of both is its own?
  assert_null(facts->name_version);
  facts =
      read_in(reader, world, CHEAP, LIB, "nvrtc", "c/lib/libnvrtc.so.13", "c");
  assert_int_equal(facts->sibling.line, 13050);
  // It tells its own line before the folder does, which may be of another.
  put_plain(world, "d/lib/libnvrtc-builtins.so.13.0",
            "libnvrtc-builtins.so.13.0");
  world_text(world, "d/include/cuda.h", "#define CUDA_VERSION 13050\n");
  facts = read_in(reader, world, CHEAP, LIB, "nvrtc-builtins",
                  "d/lib/libnvrtc-builtins.so.13.0", "d");
  assert_int_equal(facts->sibling.line, 13000);
  assert_int_equal(facts->header.line, 0);
  kilni_locate_reader_release(reader);
}

// LEAST asks for no owner where the file tells, and then VERIFY for all of it.
static void test_the_least(void** state) {
  world_t* world = *state;
  put_mixed(world);
  kilni_locate_reader_t* reader = new_reader(world);
  const char* path = SITE "/nvidia/cu13/lib/libnvJitLink.so.13";
  const kilni_locate_facts_t* facts =
      read_in(reader, world, LEAST, LIB, "nvJitLink", path, SITE);
  assert_int_equal(facts->symbol.line, 13050);
  assert_string_equal(facts->soname, "libnvJitLink.so.13");
  assert_null(facts->owner);
  assert_false(facts->walked);
  facts = read_in(reader, world, LEAST, LIB, "cudart",
                  SITE "/nvidia/cu13/lib/libcudart.so.13", SITE);
  assert_non_null(facts->owner);
  assert_null(facts->soname);  // it would say nothing of a line
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  SITE "/nvidia/cu13/lib/libcudart.so.13", SITE);
  assert_string_equal(facts->soname, "libcudart.so.13");
  facts = read_in(reader, world, VERIFY, LIB, "nvJitLink", path, SITE);
  assert_int_equal(facts->symbol.line, 13050);
  assert_int_equal(facts->release.line, 13050);
  assert_non_null(facts->owner);
  kilni_locate_reader_release(reader);
}

// ---- Whose it is ----

static const kilni_locate_owner_t* owner_at(kilni_locate_reader_t* reader,
                                            const world_t* world,
                                            const char* path) {
  return read_in(reader, world, CHEAP, LIB, "cudart", path, NULL)->owner;
}

static void test_both_spellings(void** state) {
  world_t* world = *state;
  put_mixed(world);
  // The environment through a link, a library folder through a link, and a
  // package cache whose files are linked into an environment.
  world_link(world, "way", "env");
  world_link(world, SITE "/nvidia/cu13/lib64", "lib");
  put_plain(world, "cache/v0/libcudart.so.13", "libcudart.so.13");
  world_link(world,
             "uv/lib/python3.11/site-packages/nvidia/cu13/lib/"
             "libcudart.so.13",
             world_path(world, "cache/v0/libcudart.so.13"));
  world_text(world,
             "uv/lib/python3.11/site-packages/"
             "nvidia_cuda_runtime-13.0.48.dist-info/RECORD",
             "nvidia/cu13/lib/libcudart.so.13,sha256=y,9\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_owner_t* owner = owner_at(
      reader, world,
      "way/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13");
  assert_non_null(owner);
  assert_string_equal(owner->version, "13.0.96");
  assert_false(owner->by_real_path);
  owner = owner_at(reader, world, SITE "/nvidia/cu13/lib64/libcudart.so.13");
  assert_non_null(owner);
  assert_string_equal(owner->version, "13.0.96");
  assert_true(owner->by_real_path);
  owner = owner_at(
      reader, world,
      "uv/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13");
  assert_non_null(owner);
  assert_string_equal(owner->version, "13.0.48");
  assert_string_equal(owner->row, "nvidia/cu13/lib/libcudart.so.13");
  // Strokes and dots in the path say nothing.
  owner = owner_at(reader, world, SITE "//nvidia/./cu13/lib/libcudart.so.13");
  assert_non_null(owner);
  kilni_locate_reader_release(reader);
}

static void test_records_that_own_nothing(void** state) {
  world_t* world = *state;
  put_plain(world, SITE "/nvidia/cu13/lib/libcudart.so.13", "libcudart.so.13");
  world_text(world, SITE "/nvidia_cuda_runtime-13.0.egg-info/RECORD",
             "nvidia/cu13/lib/libcudart.so.13,,\n");
  world_text(world, SITE "/nvidia_cuda_nvrtc-13.0.88.dist-info/RECORD",
             "nonsense\n\"open\n,,\n");
  world_folder(world, SITE "/nvidia_empty-1.0.dist-info");
  world_folder(world, SITE "/.dist-info");
  world_folder(world, SITE "/-.dist-info");
  char fifo[WORLD_PATH_BYTES];
  world_folder(world, SITE "/nvidia_pipe-1.0.dist-info");
  snprintf(fifo, sizeof(fifo), "%s",
           world_path(world, SITE "/nvidia_pipe-1.0.dist-info/RECORD"));
  assert_int_equal(mkfifo(fifo, 0600), 0);
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, VERIFY, LIB, "cudart",
              SITE "/nvidia/cu13/lib/libcudart.so.13", NULL);
  assert_null(facts->owner);
  assert_int_equal(facts->pin_count, 0);
  assert_true(
      has_problem(facts, "nvidia_cuda_nvrtc-13.0.88", "3 of its lines"));
  assert_true(has_problem(facts, "nvidia_pipe", "not a regular file"));
  assert_true(has_problem(facts, "nvidia_empty", "No such file"));
  // A RECORD that is asked first by name and then with all others is named
  // once.
  world_text(world, SITE "/nvidia_cuda_runtime-13.0.96.dist-info/RECORD", "x");
  put_plain(world, SITE "/nvidia/cu13/lib/libother.so.1", "libother.so.1");
  kilni_locate_reader_release(reader);
  reader = new_reader(world);
  read_in(reader, world, VERIFY, LIB, "cudart",
          SITE "/nvidia/cu13/lib/libcudart.so.13", NULL);
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  SITE "/nvidia/cu13/lib/libother.so.1", NULL);
  uint32_t count = 0;
  for (uint32_t i = 0; i < facts->problem_count; i++) {
    count += strstr(facts->problems[i].path, "nvidia_cuda_runtime-") != NULL;
  }
  assert_int_equal(count, 1);
  kilni_locate_reader_release(reader);
}

static void test_odd_names(void** state) {
  world_t* world = *state;
  put_plain(world, "env/site-packages/a\nb/lib\"x\".so", "libx.so");
  world_text(world, "env/site-packages/a_b-1+local.dist-info/RECORD",
             "\"a\nb/lib\"\"x\"\".so\",sha256=1,2\nnext,,\n");
  world_text(world, "env/site-packages/a\nb/y,z.so", "no library");
  world_text(world, "env/site-packages/other-2.dist-info/RECORD",
             "\"a\nb/y,z.so\",sha256=5,6\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_in(
      reader, world, VERIFY, LIB, NULL, "env/site-packages/a\nb/y,z.so", NULL);
  assert_non_null(facts->owner);
  assert_string_equal(facts->owner->name, "other");
  assert_string_equal(facts->owner->row, "a\nb/y,z.so");
  assert_true(has_problem(facts, "y,z.so", "is not an ELF file"));
  facts = read_in(reader, world, VERIFY, LIB, NULL,
                  "env/site-packages/a\nb/lib\"x\".so", NULL);
  assert_string_equal(facts->soname, "libx.so");
  kilni_locate_reader_release(reader);
}

// A script folder beside the site, and a package whose name is in the path.
static void test_other_owners(void** state) {
  world_t* world = *state;
  world_text(world, "env/bin/ptxas", "#!/bin/sh\n");
  world_text(world, SITE "/nvidia_cuda_nvcc-13.0.88.dist-info/RECORD",
             "../../../bin/ptxas,sha256=1,2\n");
  put_plain(world, SITE "/triton/backends/nvidia/bin/ptxas", NULL);
  world_text(world, SITE "/Triton-3.5.0.dist-info/RECORD",
             "triton/backends/nvidia/bin/ptxas,sha256=3,4\n");
  char path[WORLD_PATH_BYTES];
  char site[WORLD_PATH_BYTES];
  snprintf(path, sizeof(path), "%s", world_path(world, "env/bin/ptxas"));
  snprintf(site, sizeof(site), "%s", world_path(world, SITE));
  const char* sites[] = {site};
  kilni_locate_facts_query_t query = {.path = path,
                                      .name = "ptxas",
                                      .kind = BINARY,
                                      .sites = sites,
                                      .site_count = 1};
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts;
  assert_null(kilni_locate_facts_read(reader, &query, CHEAP, &facts));
  assert_non_null(facts->owner);
  assert_string_equal(facts->owner->name, "nvidia-cuda-nvcc");
  assert_string_equal(facts->owner->row, "../../../bin/ptxas");
  facts = read_in(reader, world, CHEAP, BINARY, "ptxas",
                  SITE "/triton/backends/nvidia/bin/ptxas", NULL);
  assert_non_null(facts->owner);
  assert_string_equal(facts->owner->name, "triton");
  kilni_locate_reader_release(reader);
}

// In a folder of very many entries, what says its own line is not worth a
// listing; what can be guessed is found all the same.
static void test_a_crowded_site(void** state) {
  world_t* world = *state;
  put_mixed(world);
  put_plain(world, SITE "/nvidia/cu13/lib/libnvrtc.so.13", "libnvrtc.so.13");
  world_put(world, SITE "/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
  for (int i = 0; i < KILNI_FACTS_CHEAP_ENTRIES + 200; i++) {
    char name[WORLD_PATH_BYTES];
    snprintf(name, sizeof(name), "%s/m%d.py", world_path(world, SITE), i);
    FILE* file = fopen(name, "w");
    assert_non_null(file);
    fclose(file);
  }
  world_text(world, SITE "/nvidia_cuda_nvrtc-13.0.88.dist-info/RECORD",
             "nvidia/cu13/lib/libnvrtc.so.13,sha256=1,2\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, CHEAP, LIB, "nvJitLink",
              SITE "/nvidia/cu13/lib/libnvJitLink.so.13", NULL);
  assert_non_null(facts->owner);
  facts = read_in(reader, world, CHEAP, LIB, "nvrtc",
                  SITE "/nvidia/cu13/lib/libnvrtc.so.13", NULL);
  assert_int_equal(facts->sibling.line, 13000);
  facts = read_in(reader, world, VERIFY, LIB, "nvrtc",
                  SITE "/nvidia/cu13/lib/libnvrtc.so.13", NULL);
  assert_non_null(facts->owner);
  assert_string_equal(facts->owner->version, "13.0.88");
  // What says nothing itself is looked up at any price.
  facts = read_in(reader, world, CHEAP, LIB, "cudart",
                  SITE "/nvidia/cu13/lib/libcudart.so.13", NULL);
  assert_non_null(facts->owner);
  kilni_locate_reader_release(reader);
}

// ---- The folders above ----

static void test_a_toolkit(void** state) {
  world_t* world = *state;
  put_plain(world, "opt/kit/targets/x86_64-linux/lib/libcublas.so.13.1.0.3",
            "libcublas.so.13");
  world_link(world, "opt/kit/lib64", "targets/x86_64-linux/lib");
  world_link(world, "opt/kit/targets/x86_64-linux/lib/libcublas.so.13",
             "libcublas.so.13.1.0.3");
  world_text(world, "opt/kit/targets/x86_64-linux/include/cuda.h",
             "#define CUDA_VERSION 13000\n");
  world_text(world, "opt/kit/version.json",
             "{\"cuda\":{\"name\":\"CUDA SDK\",\"version\":\"13.0.1\"}}");
  world_text(world, "opt/kit/version.txt", "CUDA Version 13.0.1\n");
  world_text(world, "opt/version.txt", "CUDA Version 9.0\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, CHEAP, LIB, "cublas",
              "opt/kit/lib64/libcublas.so.13", "opt/kit");
  assert_string_equal(facts->name_version, "13.1.0.3");
  assert_true(facts->walked);
  assert_int_equal(facts->header.line, 13000);
  assert_true(facts->header_same_owner);
  // The target's own folder is nearer than the root; with a verified read or
  // not, what stands above the nearest is another's.
  assert_string_equal(facts->root,
                      world_path(world, "opt/kit/targets/x86_64-linux"));
  facts = read_in(reader, world, CHEAP, 0, NULL, "opt/kit/version.json", NULL);
  assert_int_equal(facts->version_json.line, 13000);
  assert_string_equal(facts->version_json.text, "13.0.1");
  assert_int_equal(facts->version_txt.line, 13000);
  assert_int_equal(facts->header.line, 13000);  // below targets/
  kilni_locate_reader_release(reader);
}

static void test_targets_that_differ(void** state) {
  world_t* world = *state;
  put_plain(world, "kit/lib/libcudart.so.13", "libcudart.so.13");
  world_text(world, "kit/targets/a/include/cuda.h",
             "#define CUDA_VERSION 13000\n");
  world_text(world, "kit/targets/b/include/cuda.h",
             "#define CUDA_VERSION 12090\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_in(
      reader, world, CHEAP, LIB, "cudart", "kit/lib/libcudart.so.13", "kit");
  assert_int_equal(facts->header.line, 0);
  assert_true(has_problem(facts, "kit", "two releases"));
  kilni_locate_reader_release(reader);
}

// The header walk of a library ends at its site and at its prefix.
static void test_borders(void** state) {
  world_t* world = *state;
  put_plain(world, "conda/lib/python3.11/site-packages/nvidia/x/libx.so.1",
            "libx.so.1");
  put_plain(world, "conda/lib/libcudart.so.12", "libcudart.so.12");
  world_text(world, "conda/include/cuda.h", "#define CUDA_VERSION 12080\n");
  world_folder(world, "conda/conda-meta");
  put_plain(world, "usr/lib/python3/dist-packages/nvidia/libx.so.1",
            "libx.so.1");
  put_plain(world, "usr/lib/x86_64-linux-gnu/libcudart.so.12",
            "libcudart.so.12");
  world_text(world, "usr/include/cuda.h", "#define CUDA_VERSION 12020\n");
  put_plain(world, "usr/local/lib/liby.so.1", "liby.so.1");
  world_text(world, "usr/local/include/cuda.h", "#define CUDA_VERSION 11080\n");
  put_plain(world, "deep/kit/lib/libcudart.so.12", "libcudart.so.12");
  world_text(world, "deep/include/cuda.h", "#define CUDA_VERSION 10000\n");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts =
      read_in(reader, world, VERIFY, LIB, "cudart",
              "conda/lib/python3.11/site-packages/nvidia/x/libx.so.1", "conda");
  assert_true(facts->walked);
  assert_int_equal(facts->header.line, 0);
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  "conda/lib/libcudart.so.12", "conda");
  assert_int_equal(facts->header.line, 12080);
  assert_false(facts->header_same_owner);  // conda has a package for each
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  "usr/lib/python3/dist-packages/nvidia/libx.so.1", NULL);
  assert_int_equal(facts->header.line, 0);
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  "usr/lib/x86_64-linux-gnu/libcudart.so.12", NULL);
  assert_int_equal(facts->header.line, 12020);
  assert_true(facts->header_same_owner);
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  "usr/local/lib/liby.so.1", NULL);
  assert_int_equal(facts->header.line, 0);
  facts = read_in(reader, world, VERIFY, LIB, "cudart",
                  "deep/kit/lib/libcudart.so.12", "deep/kit");
  assert_int_equal(facts->header.line, 0);
  kilni_locate_reader_release(reader);
}

// ---- Hostile files ----

static void test_a_huge_header(void** state) {
  world_t* world = *state;
  put_plain(world, "kit/lib/libcudart.so.13", "libcudart.so.13");
  world_text(world, "kit/include/cuda.h", "// nothing here\n");
  char path[WORLD_PATH_BYTES];
  snprintf(path, sizeof(path), "%s", world_path(world, "kit/include/cuda.h"));
  assert_int_equal(truncate(path, (off_t)1 << 30), 0);
  world_text(world, "kit/version.json", "{\"cuda\":");
  // The macro behind the first piece, and one that the piece cuts in two.
  put_plain(world, "late/lib/libcudart.so.13", "libcudart.so.13");
  char* text = malloc(40000);
  assert_non_null(text);
  memset(text, '\n', 40000);
  memcpy(text + (24 << 10) - 23, "#define CUDA_VERSION 13050", 26);
  text[39999] = 0;
  world_text(world, "late/include/cuda.h", text);
  free(text);
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_in(
      reader, world, CHEAP, LIB, "cudart", "kit/lib/libcudart.so.13", "kit");
  assert_int_equal(facts->header.line, 0);
  assert_int_equal(facts->version_json.line, 0);
  assert_true(has_problem(facts, "cuda.h", "does not define"));
  facts = read_in(reader, world, CHEAP, LIB, "cudart",
                  "late/lib/libcudart.so.13", "late");
  assert_int_equal(facts->header.line, 13050);
  kilni_locate_reader_release(reader);
}

static void test_broken_libraries(void** state) {
  world_t* world = *state;
  elf_plan_t plan = {.soname = "libcudart.so.13"};
  elf_made_t made = elf_make(&plan);
  made.data[54] = 1;  // headers of one byte
  world_write(world, "kit/lib/libcudart.so.13", made.data, made.size);
  free(made.data);
  world_text(world, "kit/include/cuda.h", "#define CUDA_VERSION 13000\n");
  world_put(world, "kit/lib/libempty.so.1");
  world_folder(world, "kit/lib/libfolder.so.1");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_facts_t* facts = read_in(
      reader, world, CHEAP, LIB, "cudart", "kit/lib/libcudart.so.13", "kit");
  assert_true(has_problem(facts, "libcudart.so.13", "damaged ELF file"));
  assert_int_equal(facts->header.line, 13000);  // the rest is still told
  facts =
      read_in(reader, world, CHEAP, LIB, NULL, "kit/lib/libempty.so.1", "kit");
  assert_true(has_problem(facts, "libempty", "is not an ELF file"));
  facts =
      read_in(reader, world, CHEAP, LIB, NULL, "kit/lib/libfolder.so.1", "kit");
  assert_true(has_problem(facts, "libfolder", "not a regular file"));
  const kilni_locate_facts_t* none;
  kilni_locate_facts_query_t query = {.path = "/nowhere/libx.so"};
  kiln_status_t status = kilni_locate_facts_read(reader, &query, CHEAP, &none);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  query.path = "relative";
  status = kilni_locate_facts_read(reader, &query, CHEAP, &none);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kilni_locate_reader_release(reader);
  kilni_locate_reader_release(NULL);
}

// ---- The driver ----

static void test_the_driver(void** state) {
  world_t* world = *state;
  world_put(world, "usr/lib/libcuda.so.580.159.04");
  world_link(world, "usr/lib/libcuda.so.1", "libcuda.so.580.159.04");
  world_put(world, "kit/lib/stubs/libcuda.so");
  kilni_locate_reader_t* reader = new_reader(world);
  const kilni_locate_driver_t* driver;
  char path[WORLD_PATH_BYTES];
  snprintf(path, sizeof(path), "%s", world_path(world, "usr/lib/libcuda.so.1"));
  assert_null(kilni_locate_driver_read(reader, path, &driver));
  assert_string_equal(driver->library_release, "580.159.04");
  assert_null(driver->module_release);
  assert_false(driver->is_stub);
  kilni_locate_reader_release(reader);

  static const char* const texts[] = {
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23\n"
      "GCC version:  gcc version 12.2.0\n",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  "
      "Release Build\n"};
  for (size_t i = 0; i < 2; i++) {
    world_text(world, "proc/driver/nvidia/version", texts[i]);
    reader = new_reader(world);
    assert_null(kilni_locate_driver_read(reader, NULL, &driver));
    assert_string_equal(driver->module_release, "580.95.05");
    assert_null(driver->path);
    snprintf(path, sizeof(path), "%s",
             world_path(world, "kit/lib/stubs/libcuda.so"));
    assert_null(kilni_locate_driver_read(reader, path, &driver));
    assert_true(driver->is_stub);
    assert_null(driver->library_release);
    kilni_locate_reader_release(reader);
  }
}

// ---- Threads and memory ----

typedef struct work_t {
  kilni_locate_reader_t* reader;
  char path[WORLD_PATH_BYTES];
  kilni_base_thread_t thread;
  const kilni_locate_facts_t* facts;
} work_t;

static void work(void* user) {
  work_t* self = user;
  kilni_locate_facts_query_t query = {
      .path = self->path, .name = "nvJitLink", .kind = LIB};
  for (int i = 0; i < 20; i++) {
    kiln_status_t status = kilni_locate_facts_read(
        self->reader, &query, i % 2 ? VERIFY : CHEAP, &self->facts);
    kiln_status_free(status);
  }
}

static void test_threads(void** state) {
  world_t* world = *state;
  put_mixed(world);
  work_t works[4] = {0};
  kilni_locate_reader_t* reader = new_reader(world);
  for (size_t i = 0; i < 4; i++) {
    works[i].reader = reader;
    snprintf(works[i].path, WORLD_PATH_BYTES, "%s",
             world_path(world, SITE "/nvidia/cu13/lib/libnvJitLink.so.13"));
    assert_null(
        kilni_base_thread_start(&works[i].thread, "facts", work, &works[i]));
  }
  for (size_t i = 0; i < 4; i++) kilni_base_thread_join(&works[i].thread);
  for (size_t i = 0; i < 4; i++) {
    assert_non_null(works[i].facts);
    assert_int_equal(works[i].facts->symbol.line, 13050);
  }
  kilni_locate_reader_release(reader);
}

static kiln_status_t read_body(kiln_allocator_t allocator, void* user) {
  const world_t* world = user;
  kilni_locate_reader_t* reader;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_reader_create(allocator, world->root, &reader));
  char path[WORLD_PATH_BYTES];
  snprintf(path, sizeof(path), "%s",
           world_path(world, SITE "/nvidia/cu13/lib/libnvJitLink.so.13"));
  kilni_locate_facts_query_t query = {
      .path = path, .name = "nvJitLink", .kind = LIB};
  const kilni_locate_facts_t* facts;
  const kilni_locate_driver_t* driver;
  kiln_status_t status =
      kilni_locate_facts_read(reader, &query, VERIFY, &facts);
  assert_int_equal(kiln_status_is_ok(status), facts != NULL);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_driver_read(reader, path, &driver);
  }
  kilni_locate_reader_release(reader);
  return status;
}

static void test_memory_may_run_out(void** state) {
  world_t* world = *state;
  put_mixed(world);
  world_text(world, "proc/driver/nvidia/version",
             "NVRM version: x 580.95.05\n");
  assert_true(fault_run_allocations(read_body, world, 0) > 30);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_mixed_environment),
      TEST(test_cheap_is_enough_and_is_kept),
      TEST(test_what_a_consumer_needs),
      TEST(test_nothing_is_read_twice),
      TEST(test_texts),
      TEST(test_the_least),
      TEST(test_products),
      TEST(test_products_of_others),
      TEST(test_siblings),
      TEST(test_both_spellings),
      TEST(test_records_that_own_nothing),
      TEST(test_odd_names),
      TEST(test_other_owners),
      TEST(test_a_crowded_site),
      TEST(test_a_toolkit),
      TEST(test_targets_that_differ),
      TEST(test_borders),
      TEST(test_a_huge_header),
      TEST(test_broken_libraries),
      TEST(test_the_driver),
      TEST(test_threads),
      TEST(test_memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
