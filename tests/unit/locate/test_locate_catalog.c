// SPDX-License-Identifier: Apache-2.0
//
// locate: what every row of the catalog must be.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "kiln/locate_catalog.h"

typedef const kiln_locate_entry_t* entry_t;

static const char* text_of(entry_t entry, uint32_t list, uint32_t index) {
  return kiln_locate_entry_list_text(entry, list, index);
}

static bool has(entry_t entry, uint32_t list, const char* text) {
  for (uint32_t i = 0; i < kiln_locate_entry_list_count(entry, list); i++) {
    if (strcmp(text_of(entry, list, i), text) == 0) return true;
  }
  return false;
}

static entry_t lib(const char* name) {
  entry_t entry = kiln_locate_entry_find(KILN_LOCATE_KIND_LIB, name);
  assert_non_null(entry);
  return entry;
}

static void test_every_row_is_found_by_its_name(void** state) {
  (void)state;
  uint32_t count = kiln_locate_entry_count();
  assert_in_range(count, 150, 255);
  for (uint32_t i = 0; i < count; i++) {
    entry_t entry = kiln_locate_entry(i);
    uint32_t kind = kiln_locate_entry_kind(entry);
    const char* name = kiln_locate_entry_name(entry);
    assert_ptr_equal(kiln_locate_entry_find(kind, name), entry);
    assert_int_equal(kiln_locate_entry_index(entry), i);
    assert_in_range(kind, KILN_LOCATE_KIND_LIB, KILN_LOCATE_KIND_STUB);
    assert_int_equal(
        kiln_locate_kind_parse(kilni_base_sv(kiln_locate_kind_name(kind))),
        kind);
  }
  assert_null(kiln_locate_entry(count));
  assert_null(kiln_locate_entry(UINT32_MAX));
}

static void test_rows_are_sorted_and_unique(void** state) {
  (void)state;
  for (uint32_t i = 1; i < kiln_locate_entry_count(); i++) {
    entry_t before = kiln_locate_entry(i - 1);
    entry_t entry = kiln_locate_entry(i);
    uint32_t kind = kiln_locate_entry_kind(entry);
    assert_in_range(kiln_locate_entry_kind(before), 1, kind);
    if (kiln_locate_entry_kind(before) != kind) continue;
    assert_true(strcmp(kiln_locate_entry_name(before),
                       kiln_locate_entry_name(entry)) < 0);
  }
}

static void test_what_is_not_there_is_not_found(void** state) {
  (void)state;
  static const char* const kNone[] = {"",       "a",       "zzz",   "NVRTC",
                                      "nvrtc ", "cudart.", "cuda\n"};
  for (uint32_t kind = 0; kind < 9; kind++) {
    for (size_t i = 0; i < sizeof(kNone) / sizeof(kNone[0]); i++) {
      assert_null(kiln_locate_entry_find(kind, kNone[i]));
    }
    assert_null(kiln_locate_entry_find(kind, NULL));
  }
  // One name in two kinds is two things, and case counts.
  assert_ptr_not_equal(
      lib("nvrtc"), kiln_locate_entry_find(KILN_LOCATE_KIND_HEADER, "nvrtc"));
  assert_null(kiln_locate_entry_find(KILN_LOCATE_KIND_LIB, "nvjitlink"));
  assert_null(kiln_locate_entry_find(KILN_LOCATE_KIND_HEADER, "nvJitLink"));
  // A view need not end in a NUL.
  kiln_string_view_t view = {"nvrtc_and_more", 5};
  assert_ptr_equal(kiln_locate_entry_find_view(KILN_LOCATE_KIND_LIB, view),
                   lib("nvrtc"));
}

static void test_names_can_be_typed(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const char* name = kiln_locate_entry_name(kiln_locate_entry(i));
    assert_int_not_equal(name[0], '\0');
    for (const char* c = name; *c != '\0'; c++) {
      assert_true(isalnum((unsigned char)*c) || strchr("_-+.", *c) != NULL);
    }
    // Pathfinder's names of libraries and headers are identifiers.
    entry_t entry = kiln_locate_entry(i);
    if ((kiln_locate_entry_flags(entry) & KILN_LOCATE_FLAG_PATHFINDER) == 0 ||
        kiln_locate_entry_kind(entry) > KILN_LOCATE_KIND_HEADER) {
      continue;
    }
    assert_false(isdigit((unsigned char)name[0]));
    for (const char* c = name; *c != '\0'; c++) {
      assert_true(isalnum((unsigned char)*c) || *c == '_');
    }
  }
}

static void test_every_row_has_a_class_a_file_and_a_summary(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    assert_in_range(kiln_locate_entry_class(entry), KILN_LOCATE_CLASS_CTK,
                    KILN_LOCATE_CLASS_OTHER);
    assert_int_not_equal(
        kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES), 0);
    assert_int_not_equal(kiln_locate_entry_summary(entry)[0], '\0');
  }
}

static void test_file_names_look_like_their_kind(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    uint32_t files =
        kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
    for (uint32_t f = 0; f < files; f++) {
      const char* file = text_of(entry, KILN_LOCATE_LIST_FILES, f);
      kiln_string_view_t view = kilni_base_sv(file);
      bool is_lib = kilni_base_sv_starts_with(view, "lib");
      switch (kiln_locate_entry_kind(entry)) {
        case KILN_LOCATE_KIND_LIB:
          assert_true(is_lib && strstr(file, ".so") != NULL);
          break;
        case KILN_LOCATE_KIND_STUB:
          assert_true(is_lib && kilni_base_sv_ends_with(view, ".so"));
          break;
        case KILN_LOCATE_KIND_STATIC:
          assert_true(is_lib && kilni_base_sv_ends_with(view, ".a"));
          break;
        case KILN_LOCATE_KIND_BITCODE:
          assert_true(is_lib && kilni_base_sv_ends_with(view, ".bc"));
          break;
        default:
          assert_true(file[0] != '/');
      }
    }
  }
}

static void test_no_two_rows_share_a_file(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    uint32_t files =
        kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
    for (uint32_t f = 0; f < files; f++) {
      // Found by its file means: nobody else has it.
      kiln_string_view_t file =
          kilni_base_sv(text_of(entry, KILN_LOCATE_LIST_FILES, f));
      assert_ptr_equal(
          kiln_locate_entry_find_file(kiln_locate_entry_kind(entry), file),
          entry);
    }
  }
  assert_null(kiln_locate_entry_find_file(KILN_LOCATE_KIND_LIB,
                                          kilni_base_sv("libnone.so")));
  assert_null(kiln_locate_entry_find_file(KILN_LOCATE_KIND_BINARY,
                                          kilni_base_sv("libnvrtc.so.13")));
}

static void test_dependencies_are_other_libraries(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    for (uint32_t list = KILN_LOCATE_LIST_NEEDS; list <= KILN_LOCATE_LIST_WANTS;
         list++) {
      uint32_t count = kiln_locate_entry_list_count(entry, list);
      if (kiln_locate_entry_kind(entry) != KILN_LOCATE_KIND_LIB) {
        assert_int_equal(count, 0);
      }
      for (uint32_t n = 0; n < count; n++) {
        assert_ptr_not_equal(lib(text_of(entry, list, n)), entry);
      }
    }
  }
}

// The longest way down from a row; a circle would never end.
static uint32_t depth(entry_t entry, uint32_t limit) {
  assert_int_not_equal(limit, 0);
  uint32_t deepest = 0;
  for (uint32_t i = 0;
       i < kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_NEEDS); i++) {
    uint32_t below =
        1 + depth(lib(text_of(entry, KILN_LOCATE_LIST_NEEDS, i)), limit - 1);
    if (below > deepest) deepest = below;
  }
  return deepest;
}

static void test_dependencies_form_no_circle(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    depth(kiln_locate_entry(i), 8);
  }
  assert_int_equal(depth(lib("cublas"), 8), 1);
}

static void test_driver_rows_are_the_systems_own(void** state) {
  (void)state;
  uint32_t drivers = 0;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    if (kiln_locate_entry_class(entry) != KILN_LOCATE_CLASS_DRIVER) continue;
    if (kiln_locate_entry_kind(entry) != KILN_LOCATE_KIND_LIB) continue;
    drivers++;
    for (uint32_t list = 0; list < KILN_LOCATE_LIST_COUNT; list++) {
      if (list == KILN_LOCATE_LIST_FILES ||
          list == KILN_LOCATE_LIST_DISTRIBUTION_DIRS ||
          list == KILN_LOCATE_LIST_TAGS) {
        continue;
      }
      assert_int_equal(kiln_locate_entry_list_count(entry, list), 0);
    }
    assert_string_equal(kiln_locate_entry_component(entry), "");
  }
  assert_int_equal(drivers, 3);
}

static void test_folders_are_relative_and_clean(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    for (uint32_t list = KILN_LOCATE_LIST_WHEEL_DIRS;
         list <= KILN_LOCATE_LIST_VARIABLE_DIRS; list++) {
      if (list == KILN_LOCATE_LIST_VARIABLES) continue;
      uint32_t count = kiln_locate_entry_list_count(entry, list);
      for (uint32_t n = 0; n < count; n++) {
        const char* dir = text_of(entry, list, n);
        kiln_string_view_t view = kilni_base_sv(dir);
        assert_true(view.size != 0 && dir[0] != '/');
        assert_false(kilni_base_sv_ends_with(view, "/"));
        assert_null(strstr(dir, ".."));
        assert_null(strstr(dir, "//"));
        const char* star = strchr(dir, '*');
        if (star != NULL) assert_null(strchr(star, '/'));
        const char* brace = strchr(dir, '{');
        if (brace == NULL) continue;
        assert_true(strncmp(brace, "{target}", 8) == 0 ||
                    strncmp(brace, "{multiarch}", 11) == 0);
        // The root of a toolkit or a prefix knows no multiarch, and a wheel
        // is made for one machine.
        assert_true(list != KILN_LOCATE_LIST_WHEEL_DIRS);
      }
    }
  }
}

// Lower-case words; tags once each; components on libraries alone.
static void test_tags_and_components_are_words(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_TAGS);
    for (uint32_t n = 0; n < count; n++) {
      const char* tag = text_of(entry, KILN_LOCATE_LIST_TAGS, n);
      assert_true(islower((unsigned char)tag[0]));
      for (const char* c = tag; *c != '\0'; c++) {
        assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
                    *c == '_');
      }
      for (uint32_t m = 0; m < n; m++) {
        assert_string_not_equal(tag, text_of(entry, KILN_LOCATE_LIST_TAGS, m));
      }
    }
    if (kiln_locate_entry_kind(entry) != KILN_LOCATE_KIND_LIB) {
      assert_string_equal(kiln_locate_entry_component(entry), "");
    }
  }
}

static void test_groups_are_those_that_link_together(void** state) {
  (void)state;
  static const struct {
    const char* component;
    const char* names;
  } kGroups[] = {
      {"cuda_blas_solver_runtime",
       "cublas cublasLt cublasmp cudart cudss cusolver cusolverMg cusolverMp "
       "cusparse cutensor cutensorMg nccl nvJitLink nvblas"},
      {"cufft_nvshmem", "cufft cufftMp cufftw nvshmem_host"},
      {"npp",
       "nppc nppial nppicc nppidei nppif nppig nppim nppist nppisu nppitc "
       "npps"},
      {"nvrtc_mathdx", "mathdx nvrtc nvrtc-builtins"},
      {"cufile", "cufile cufile_rdma"},
      {"", "nvfatbin nvvm curand nvjpeg cupti cudla cusparseLt nvpl_fftw"},
  };
  uint32_t grouped = 0;
  for (size_t g = 0; g < sizeof(kGroups) / sizeof(kGroups[0]); g++) {
    kiln_string_view_t names = kilni_base_sv(kGroups[g].names);
    kiln_string_view_t name;
    while (kilni_base_sv_split(&names, ' ', &name)) {
      entry_t entry = kiln_locate_entry_find_view(KILN_LOCATE_KIND_LIB, name);
      assert_non_null(entry);
      assert_string_equal(kiln_locate_entry_component(entry),
                          kGroups[g].component);
      if (kGroups[g].component[0] != '\0') grouped++;
    }
  }
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const char* component = kiln_locate_entry_component(kiln_locate_entry(i));
    if (component[0] == '\0' || strcmp(component, "cudnn") == 0) continue;
    grouped--;
  }
  assert_int_equal(grouped, 0);
}

static bool shares_a_tag(entry_t a, entry_t b) {
  for (uint32_t i = 0;
       i < kiln_locate_entry_list_count(a, KILN_LOCATE_LIST_TAGS); i++) {
    if (has(b, KILN_LOCATE_LIST_TAGS, text_of(a, KILN_LOCATE_LIST_TAGS, i))) {
      return true;
    }
  }
  return false;
}

static void test_a_compiler_is_tied_to_the_headers_it_compiles(void** state) {
  (void)state;
  entry_t nvrtc = lib("nvrtc");
  static const char* const kTied[] = {"nvrtc", "cudart", "cccl", "cuda"};
  for (size_t i = 0; i < sizeof(kTied) / sizeof(kTied[0]); i++) {
    entry_t header = kiln_locate_entry_find(KILN_LOCATE_KIND_HEADER, kTied[i]);
    assert_non_null(header);
    assert_true(shares_a_tag(nvrtc, header));
  }
  assert_false(shares_a_tag(nvrtc, lib("nvJitLink")));
  assert_false(shares_a_tag(
      nvrtc, kiln_locate_entry_find(KILN_LOCATE_KIND_HEADER, "cufft")));
  assert_true(
      shares_a_tag(kiln_locate_entry_find(KILN_LOCATE_KIND_STATIC, "cudadevrt"),
                   kiln_locate_entry_find(KILN_LOCATE_KIND_BINARY, "nvcc")));
}

// A library and the headers of the same name are of one line.
static void test_libraries_are_tied_to_their_own_headers(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    if (kiln_locate_entry_kind(entry) != KILN_LOCATE_KIND_LIB) continue;
    entry_t header = kiln_locate_entry_find(KILN_LOCATE_KIND_HEADER,
                                            kiln_locate_entry_name(entry));
    if (header == NULL ||
        kiln_locate_entry_class(entry) == KILN_LOCATE_CLASS_DRIVER) {
      continue;
    }
    assert_true(shares_a_tag(entry, header));
  }
}

// How many rows of a kind and class pathfinder 1.9 has.
static uint32_t pathfinders(uint32_t kind, uint32_t class_value) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    entry_t entry = kiln_locate_entry(i);
    if (kiln_locate_entry_kind(entry) == kind &&
        kiln_locate_entry_class(entry) == class_value &&
        (kiln_locate_entry_flags(entry) & KILN_LOCATE_FLAG_PATHFINDER) != 0) {
      count++;
    }
  }
  return count;
}

static void test_all_of_pathfinders_names_are_there(void** state) {
  (void)state;
  enum {
    CTK = KILN_LOCATE_CLASS_CTK,
    DRIVER = KILN_LOCATE_CLASS_DRIVER,
    OTHER = KILN_LOCATE_CLASS_OTHER
  };
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_LIB, CTK), 29);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_LIB, OTHER), 18);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_LIB, DRIVER), 3);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_HEADER, CTK), 17);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_HEADER, OTHER), 14);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_STATIC, CTK), 1);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_BITCODE, CTK), 1);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_BITCODE, OTHER), 2);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_BINARY, CTK), 12);
  assert_int_equal(pathfinders(KILN_LOCATE_KIND_BINARY, OTHER), 4);
}

static void test_files_and_folders_of_a_major(void** state) {
  (void)state;
  entry_t nvrtc = lib("nvrtc");
  assert_string_equal(text_of(nvrtc, KILN_LOCATE_LIST_FILES, 0),
                      "libnvrtc.so.13");
  assert_int_equal(
      kiln_locate_entry_list_major(nvrtc, KILN_LOCATE_LIST_FILES, 0), 13);
  assert_int_equal(
      kiln_locate_entry_list_major(nvrtc, KILN_LOCATE_LIST_WHEEL_DIRS, 1), 12);
  // The file name of these does not tell the major.
  static const char* const kSame[] = {"cusparse", "cufile", "nvvm", "cudla"};
  for (size_t i = 0; i < sizeof(kSame) / sizeof(kSame[0]); i++) {
    assert_int_equal(
        kiln_locate_entry_list_major(lib(kSame[i]), KILN_LOCATE_LIST_FILES, 0),
        0);
  }
  assert_int_equal(
      kiln_locate_entry_list_major(lib("cufft"), KILN_LOCATE_LIST_FILES, 0),
      13);
  assert_true((kiln_locate_entry_flags(lib("cufftMp")) &
               KILN_LOCATE_FLAG_DEEPBIND) != 0);
}

static void test_nothing_and_out_of_range_answer_nothing(void** state) {
  (void)state;
  entry_t nvrtc = lib("nvrtc");
  assert_int_equal(kiln_locate_entry_kind(NULL), 0);
  assert_int_equal(kiln_locate_entry_class(NULL), 0);
  assert_int_equal(kiln_locate_entry_flags(NULL), 0);
  assert_int_equal(kiln_locate_entry_index(NULL), 0);
  assert_string_equal(kiln_locate_entry_name(NULL), "");
  assert_string_equal(kiln_locate_entry_summary(NULL), "");
  assert_string_equal(kiln_locate_entry_component(NULL), "");
  assert_int_equal(kiln_locate_entry_list_count(NULL, 0), 0);
  assert_int_equal(kiln_locate_entry_list_count(nvrtc, KILN_LOCATE_LIST_COUNT),
                   0);
  assert_null(kiln_locate_entry_list_text(nvrtc, KILN_LOCATE_LIST_COUNT, 0));
  assert_null(kiln_locate_entry_list_text(nvrtc, KILN_LOCATE_LIST_FILES, 99));
  assert_int_equal(
      kiln_locate_entry_list_major(nvrtc, KILN_LOCATE_LIST_FILES, 99), 0);
  assert_string_equal(kiln_locate_kind_name(0), "?");
  assert_string_equal(kiln_locate_kind_name(99), "?");
  assert_string_equal(kiln_locate_class_name(99), "?");
  assert_string_equal(kiln_locate_list_name(99), "?");
  assert_string_equal(kiln_locate_list_name(KILN_LOCATE_LIST_PACKAGES),
                      "packages");
  assert_int_equal(kiln_locate_kind_parse(kilni_base_sv("bin")),
                   KILN_LOCATE_KIND_BINARY);
  assert_int_equal(kiln_locate_kind_parse(kilni_base_sv("libs")), 0);
  assert_int_equal(kiln_locate_kind_parse(kilni_base_sv("")), 0);
}

static void test_flaws_say_what_and_what_to_do(void** state) {
  (void)state;
  assert_in_range(kiln_locate_flaw_count(), 1, 100);
  for (uint32_t i = 0; i < kiln_locate_flaw_count(); i++) {
    kiln_locate_flaw_t flaw = kiln_locate_flaw(i);
    assert_non_null(flaw.id);
    assert_int_not_equal(flaw.id[0], '\0');
    assert_int_not_equal(flaw.distribution[0], '\0');
    assert_int_not_equal(flaw.versions[0], '\0');
    assert_int_not_equal(flaw.what[0], '\0');
    assert_int_not_equal(flaw.mend[0], '\0');
    if (flaw.file[0] != '\0') {
      assert_non_null(kiln_locate_entry_find_file(KILN_LOCATE_KIND_LIB,
                                                  kilni_base_sv(flaw.file)));
    }
    for (uint32_t before = 0; before < i; before++) {
      assert_string_not_equal(kiln_locate_flaw(before).id, flaw.id);
    }
  }
  assert_null(kiln_locate_flaw(kiln_locate_flaw_count()).id);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_row_is_found_by_its_name),
      cmocka_unit_test(test_rows_are_sorted_and_unique),
      cmocka_unit_test(test_what_is_not_there_is_not_found),
      cmocka_unit_test(test_names_can_be_typed),
      cmocka_unit_test(test_every_row_has_a_class_a_file_and_a_summary),
      cmocka_unit_test(test_file_names_look_like_their_kind),
      cmocka_unit_test(test_no_two_rows_share_a_file),
      cmocka_unit_test(test_dependencies_are_other_libraries),
      cmocka_unit_test(test_dependencies_form_no_circle),
      cmocka_unit_test(test_driver_rows_are_the_systems_own),
      cmocka_unit_test(test_folders_are_relative_and_clean),
      cmocka_unit_test(test_tags_and_components_are_words),
      cmocka_unit_test(test_groups_are_those_that_link_together),
      cmocka_unit_test(test_a_compiler_is_tied_to_the_headers_it_compiles),
      cmocka_unit_test(test_libraries_are_tied_to_their_own_headers),
      cmocka_unit_test(test_all_of_pathfinders_names_are_there),
      cmocka_unit_test(test_files_and_folders_of_a_major),
      cmocka_unit_test(test_nothing_and_out_of_range_answer_nothing),
      cmocka_unit_test(test_flaws_say_what_and_what_to_do),
  };
  return cmocka_run_group_tests_name("locate_catalog", tests, NULL, NULL);
}
