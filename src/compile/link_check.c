// SPDX-License-Identifier: Apache-2.0
//
// compile: what is checked before a link, so that no linker fails over it, and
// what must be there afterwards.
//
// nvJitLink trusts its inputs. Damaged ones end the process or are omitted; of
// two definitions of a name it keeps the first, reports that on the process's
// own standard error and returns success. All of that is found here first.
// Where nvJitLink has a process of its own, damage that it may survive is only
// a problem to report: the linker decides, and every name of the inputs must be
// in its result.
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "base/status_make.h"
#include "compile/link_inside.h"
#include "image/image.h"

enum { MAX_NAMES = 1 << 22, MAX_TEXT = 1 << 30 };

// A name that an input defines. one-thread
typedef struct defined_t {
  size_t text;  // where it begins among the texts, and then in the order
  uint32_t input;
  bool is_kernel;  // that a linker could leave out
} defined_t;

struct kilni_compile_link_names_t {
  kiln_allocator_t allocator;
  const kilni_compile_link_given_t* given;  // while inputs are read
  char* texts;
  size_t text_size;
  size_t text_capacity;
  defined_t* items;
  size_t count;
  size_t capacity;
  size_t* expected;  // where the names begin that must come out
  size_t expected_count;
  size_t expected_capacity;
  size_t* own;  // where the names of functions begin that only their input has
  size_t own_count;
  size_t own_capacity;
  defined_t* kept;  // kernels that are defined as others may be, too
  size_t kept_count;
  size_t kept_capacity;
  defined_t* types;  // of functions; each has its type after its name
  size_t type_count;
  size_t type_capacity;
  kiln_status_t doubt;  // the first
  size_t parts;         // with device code
  uint32_t input;       // the one that is read
  bool is_text;         // it is PTX, which no linker leaves out
};

static kiln_status_t link_check_add_text(kilni_compile_link_names_t* names,
                                         const char* name, size_t* out_text) {
  size_t size = strlen(name) + 1;
  size_t count = names->count + names->expected_count + names->own_count +
                 names->kept_count + names->type_count;
  if (count >= MAX_NAMES || names->text_size > MAX_TEXT - size) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a link of more than %d names", MAX_NAMES),
        "link in two steps");
  }
  void* texts = names->texts;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(names->allocator,
                                        names->text_size + size, 1,
                                        &names->text_capacity, &texts));
  names->texts = texts;
  memcpy(names->texts + names->text_size, name, size);
  *out_text = names->text_size;
  names->text_size += size;
  return kiln_ok();
}

static kiln_status_t link_check_add_name(void* user, const char* name,
                                         bool is_kernel) {
  kilni_compile_link_names_t* names = user;
  void* items = names->items;
  size_t text = 0;
  KILNI_RETURN_IF_ERROR(link_check_add_text(names, name, &text));
  KILNI_RETURN_IF_ERROR(kilni_base_grow(names->allocator, names->count + 1,
                                        sizeof(defined_t), &names->capacity,
                                        &items));
  names->items = items;
  names->items[names->count++] =
      (defined_t){text, names->input, is_kernel && !names->is_text};
  return kiln_ok();
}

static kiln_status_t add_to(kilni_compile_link_names_t* names, const char* name,
                            size_t** inout_list, size_t* inout_count,
                            size_t* inout_capacity) {
  void* list = *inout_list;
  size_t text = 0;
  KILNI_RETURN_IF_ERROR(link_check_add_text(names, name, &text));
  KILNI_RETURN_IF_ERROR(kilni_base_grow(names->allocator, *inout_count + 1,
                                        sizeof(size_t), inout_capacity, &list));
  *inout_list = list;
  (*inout_list)[(*inout_count)++] = text;
  return kiln_ok();
}

static kiln_status_t add_expected(void* user, const char* name) {
  kilni_compile_link_names_t* names = user;
  return add_to(names, name, &names->expected, &names->expected_count,
                &names->expected_capacity);
}

static kiln_status_t link_check_add_own(void* user, const char* name) {
  kilni_compile_link_names_t* names = user;
  return add_to(names, name, &names->own, &names->own_count,
                &names->own_capacity);
}

// Whether the options let a name be dropped: they name others.
static bool may_go(const kiln_link_options_t* options, const char* name,
                   bool is_variable) {
  const char* const* list =
      is_variable ? options->variables_used : options->kernels_used;
  uint32_t count =
      is_variable ? options->variables_used_count : options->kernels_used_count;
  if (is_variable && options->optimize_unused_variables == KILN_SWITCH_ON) {
    return true;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(list[i], name) == 0) return false;
  }
  return count > 0;
}

static kiln_status_t would_be_lost(const kiln_code_t* input, const char* name,
                                   bool is_variable) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED,
                 "the %s \"%s\" of \"%s\" would not be in the result: "
                 "nvJitLink silently omits finished machine code",
                 is_variable ? "variable" : "kernel", name,
                 kiln_code_name(input)),
      "compile it with relocatable device code (`-rdc=true`), or give it as "
      "PTX");
}

// What a linker may leave out of a container; PTX by itself it does not.
static kiln_status_t add_kept(void* user, const char* name, uint32_t kind) {
  kilni_compile_link_names_t* names = user;
  const kilni_compile_link_given_t* given = names->given;
  const kiln_code_t* input = given->inputs[names->input];
  bool is_variable = kind == KILNI_IMAGE_KEEP_VARIABLE;
  bool is_native = given->backend == KILN_LINK_BACKEND_NVJITLINK;
  if (names->is_text || may_go(given->options, name, is_variable)) {
    return kiln_ok();
  }
  if (kind != KILNI_IMAGE_KEEP_KERNEL && is_native) {
    return would_be_lost(input, name, is_variable);
  }
  void* kept = names->kept;
  size_t text = 0;
  if (is_variable) return kiln_ok();
  KILNI_RETURN_IF_ERROR(link_check_add_text(names, name, &text));
  KILNI_RETURN_IF_ERROR(kilni_base_grow(names->allocator, names->kept_count + 1,
                                        sizeof(defined_t),
                                        &names->kept_capacity, &kept));
  names->kept = kept;
  names->kept[names->kept_count++] = (defined_t){text, names->input, true};
  return kiln_ok();
}

// Nothing of a container is for what is linked for.
static kiln_status_t refuse_misfit(void* user, const char* file,
                                   const char* targets) {
  const kilni_compile_link_names_t* names = user;
  const char* arch = names->given->arch;
  return kilni_base_status_with_fix(
      KILNI_FAIL(INCOMPATIBLE,
                 "\"%s\" has device code for %s, and the link is for %s", file,
                 targets, arch),
      "compile it for %s with relocatable device code (`-rdc=true`), or link "
      "for one of those",
      arch);
}

// The type of a function. Its text follows that of the name.
static kiln_status_t add_type(void* user, const char* name, const char* type) {
  kilni_compile_link_names_t* names = user;
  void* types = names->types;
  size_t text = 0;
  size_t after = 0;
  KILNI_RETURN_IF_ERROR(link_check_add_text(names, name, &text));
  KILNI_RETURN_IF_ERROR(link_check_add_text(names, type, &after));
  KILNI_RETURN_IF_ERROR(kilni_base_grow(names->allocator, names->type_count + 1,
                                        sizeof(defined_t),
                                        &names->type_capacity, &types));
  names->types = types;
  names->types[names->type_count++] = (defined_t){text, names->input, false};
  return kiln_ok();
}

// Linkers look into an archive's objects, and pass over all else.
static kiln_status_t refuse_loose(void* user, const char* archive,
                                  const char* member, uint32_t format) {
  (void)user;
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED,
                 "the %s \"%.200s\" in the archive \"%s\" would not be linked: "
                 "linkers take only host objects from archives and silently "
                 "omit other members",
                 kiln_code_format_name(format), member, archive),
      "take it out of the archive (`ar x '%s' '%.200s' && ar d '%s' '%.200s'`) "
      "and link \"%.200s\" as an input of its own",
      archive, member, archive, member, member);
}

void kilni_compile_link_names_free(kilni_compile_link_names_t* names) {
  if (names == NULL) return;
  kiln_allocator_t allocator = names->allocator;
  kilni_base_free_array(allocator, names->texts, names->text_capacity, 1);
  kilni_base_free_array(allocator, names->items, names->capacity,
                        sizeof(defined_t));
  kilni_base_free_array(allocator, names->expected, names->expected_capacity,
                        sizeof(size_t));
  kilni_base_free_array(allocator, names->own, names->own_capacity,
                        sizeof(size_t));
  kilni_base_free_array(allocator, names->kept, names->kept_capacity,
                        sizeof(defined_t));
  kilni_base_free_array(allocator, names->types, names->type_capacity,
                        sizeof(defined_t));
  kiln_status_free(names->doubt);
  kilni_base_free(allocator, names, sizeof(*names));
}

// ---- Architectures ----

uint32_t kilni_compile_link_arch_number(const char* arch) {
  uint32_t number = 0;
  const char* at = arch != NULL ? strchr(arch, '_') : NULL;
  if (at == NULL) return 0;
  for (at++; *at >= '0' && *at <= '9' && number < 10000; at++) {
    number = number * 10 + (uint32_t)(*at - '0');
  }
  return number;
}

// Machine code runs on its own architecture and on later ones of its major.
// Of those that were renamed (10.1 is 11.0) linkers know.
static bool runs_on(uint32_t made_for, uint32_t sm) {
  enum { OLD_NAME = 101, NEW_NAME = 110 };
  if (made_for == 0 || sm == 0) return true;
  if (made_for == OLD_NAME || made_for == NEW_NAME) return true;
  return made_for / 10 == sm / 10 && made_for <= sm;
}

static kiln_status_t link_check_check_arch(const kiln_code_t* code,
                                           uint32_t sm) {
  uint32_t format = kiln_code_format(code);
  if (format != KILN_CODE_FORMAT_CUBIN &&
      format != KILN_CODE_FORMAT_RELOCATABLE) {
    return kiln_ok();
  }
  uint32_t made_for = kilni_image_cubin_sm(kiln_code_bytes(code));
  if (runs_on(made_for, sm)) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INCOMPATIBLE,
                 "\"%s\" is machine code for sm_%u, and the link is for sm_%u",
                 kiln_code_name(code), (unsigned)made_for, (unsigned)sm),
      "compile it for sm_%u, or give it as PTX", (unsigned)sm);
}

// ---- Each input ----

static bool link_check_is_machine_code(uint32_t format) {
  return format != KILN_CODE_FORMAT_PTX && format != KILN_CODE_FORMAT_LTOIR;
}

static kiln_status_t link_check_check_one(
    const kilni_compile_link_given_t* given, size_t index, uint32_t sm,
    kilni_compile_link_names_t* names) {
  const kiln_code_t* code = given->inputs[index];
  uint32_t format = kiln_code_format(code);
  KILNI_RETURN_IF_ERROR(link_check_check_arch(code, sm));
  // The names of a single text are not needed: its compiler checks those.
  bool asks = link_check_is_machine_code(format) || given->count > 1;
  kilni_image_link_visit_t visit = {.sm = sm,
                                    .user = names,
                                    .define = asks ? link_check_add_name : NULL,
                                    .keep = asks ? add_kept : NULL,
                                    .misfit = refuse_misfit,
                                    .loose = refuse_loose,
                                    .inout_parts = &names->parts};
  if (given->lto && given->count > 1) visit.own = link_check_add_own;
  if (asks && given->backend == KILN_LINK_BACKEND_NVJITLINK) {
    visit.prototype = add_type;
  }
  if (given->may_crash) {
    visit.expect = add_expected;
    visit.inout_doubt = &names->doubt;
  }
  names->input = (uint32_t)index;
  names->is_text = !link_check_is_machine_code(format);
  return kilni_image_check_link(kiln_code_bytes(code), format,
                                kiln_code_name(code), given->allocator, &visit);
}

// Without LTO-IR nothing is left to optimise; containers may have some.
static kiln_status_t link_check_check_lto(
    const kilni_compile_link_given_t* given) {
  if (!given->lto) return kiln_ok();
  for (size_t i = 0; i < given->count; i++) {
    uint32_t format = kiln_code_format(given->inputs[i]);
    if (format != KILN_CODE_FORMAT_PTX && format != KILN_CODE_FORMAT_CUBIN &&
        format != KILN_CODE_FORMAT_RELOCATABLE) {
      return kiln_ok();
    }
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "link-time optimisation is requested, and no input is LTO-IR"),
      "compile the inputs to LTO-IR (nvcc -dlto, NVRTC -dlto), or leave `lto` "
      "at its default");
}

// ---- Definitions ----

// What is sorted: it has its text, as sorting knows nothing but two items.
// one-thread
typedef struct sorted_t {
  const char* name;
  size_t order;
  uint32_t input;
} sorted_t;

static bool link_check_is_before(const void* a, const void* b) {
  const sorted_t* one = a;
  const sorted_t* two = b;
  int order = strcmp(one->name, two->name);
  return order != 0 ? order < 0 : one->order < two->order;
}

static kiln_status_t link_check_sort_names(
    const kilni_compile_link_names_t* names, const defined_t* items,
    size_t count, sorted_t** out_sorted) {
  void* block = NULL;
  *out_sorted = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(names->allocator, count,
                                               sizeof(sorted_t), &block));
  sorted_t* sorted = block;
  for (size_t i = 0; i < count; i++) {
    sorted[i] =
        (sorted_t){names->texts + items[i].text, items[i].text, items[i].input};
  }
  kilni_base_sort(sorted, count, sizeof(sorted_t), link_check_is_before);
  *out_sorted = sorted;
  return kiln_ok();
}

static kiln_status_t link_check_twice(const char* name, const char* second,
                                      const char* first) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED,
                 "Multiple definition of '%.400s' in '%s', first defined in "
                 "'%s'",
                 name, second, first),
      "define it in one input only, and declare it `extern` in the others; "
      "or make it `static` or `inline`");
}

// The second definition that comes first in the order of the inputs.
static kiln_status_t check_twice(const kilni_compile_link_given_t* given,
                                 const kilni_compile_link_names_t* names) {
  sorted_t* sorted = NULL;
  size_t found = 0;
  KILNI_RETURN_IF_ERROR(
      link_check_sort_names(names, names->items, names->count, &sorted));
  for (size_t i = 1; i < names->count; i++) {
    if (strcmp(sorted[i].name, sorted[i - 1].name) == 0 &&
        (found == 0 || sorted[i].order < sorted[found].order)) {
      found = i;
    }
  }
  kiln_status_t status = kiln_ok();
  if (found != 0) {
    status = link_check_twice(
        sorted[found].name, kiln_code_name(given->inputs[sorted[found].input]),
        kiln_code_name(given->inputs[sorted[found - 1].input]));
  }
  kilni_base_free_array(names->allocator, sorted, names->count,
                        sizeof(sorted_t));
  return status;
}

// ---- Types of functions ----

// As nvJitLink compares them: "b1" is "b".
static bool is_same_type(const char* one, const char* two) {
  while (true) {
    if (*one != *two) return false;
    if (*one == 0) return true;
    bool is_byte = *one == 'b';
    one++;
    two++;
    if (!is_byte) continue;
    if (one[0] == '1' && (one[1] < '0' || one[1] > '9')) one++;
    if (two[0] == '1' && (two[1] < '0' || two[1] > '9')) two++;
  }
}

static const char* link_check_type_of(const sorted_t* sorted) {
  return sorted->name + strlen(sorted->name) + 1;
}

static kiln_status_t unlike(const kilni_compile_link_given_t* given,
                            const sorted_t* second, const sorted_t* first) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED,
                 "Prototype doesn't match for '%.400s' in '%s', first declared "
                 "in '%s': its parameters or its result have other sizes",
                 second->name, kiln_code_name(given->inputs[second->input]),
                 kiln_code_name(given->inputs[first->input])),
      "declare it with the same types in all sources, e.g. in one header that "
      "all of them include; compile again what tools of another CUDA release "
      "compiled");
}

// A function that inputs declare with other types than the first that has it.
// nvJitLink reports it on the process's own standard error, and returns
// success.
static kiln_status_t link_check_check_types(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names) {
  sorted_t* sorted = NULL;
  size_t found = 0;
  size_t found_first = 0;
  size_t first = 0;
  KILNI_RETURN_IF_ERROR(
      link_check_sort_names(names, names->types, names->type_count, &sorted));
  for (size_t i = 1; i < names->type_count; i++) {
    if (strcmp(sorted[i].name, sorted[first].name) != 0) {
      first = i;
    } else if (!is_same_type(link_check_type_of(&sorted[i]),
                             link_check_type_of(&sorted[first])) &&
               (found == 0 || sorted[i].order < sorted[found].order)) {
      found = i;
      found_first = first;
    }
  }
  kiln_status_t status = kiln_ok();
  if (found != 0) status = unlike(given, &sorted[found], &sorted[found_first]);
  kilni_base_free_array(names->allocator, sorted, names->type_count,
                        sizeof(sorted_t));
  return status;
}

// Linkers make an empty cubin of what has no code for them, and report success.
static kiln_status_t check_parts(const kilni_compile_link_given_t* given,
                                 const kilni_compile_link_names_t* names) {
  if (names->parts > 0) return kiln_ok();
  kiln_status_t status =
      given->count == 1
          ? KILNI_FAIL(BAD_DATA, "\"%s\" contains no device code",
                       kiln_code_name(given->inputs[0]))
          : KILNI_FAIL(
                BAD_DATA,
                "none of the %zu inputs, such as \"%s\", contains device code",
                given->count, kiln_code_name(given->inputs[0]));
  return kilni_base_status_with_fix(
      status,
      "compile it with nvcc and `-rdc=true`; objects and archives of the host "
      "alone belong to the host's linker");
}

kiln_status_t kilni_compile_link_check_given(
    const kilni_compile_link_given_t* given,
    kilni_compile_link_names_t** out_names) {
  uint32_t sm = kilni_compile_link_arch_number(given->arch);
  void* block = NULL;
  *out_names = NULL;
  KILNI_RETURN_IF_ERROR(link_check_check_lto(given));
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      given->allocator, sizeof(kilni_compile_link_names_t), &block));
  kilni_compile_link_names_t* names = block;
  names->allocator = given->allocator;
  names->given = given;
  kiln_status_t status = kiln_ok();
  for (size_t i = 0; i < given->count && kiln_status_is_ok(status); i++) {
    status = link_check_check_one(given, i, sm, names);
  }
  if (kiln_status_is_ok(status)) status = check_parts(given, names);
  if (kiln_status_is_ok(status)) status = check_twice(given, names);
  if (kiln_status_is_ok(status)) status = link_check_check_types(given, names);
  names->given = NULL;
  if (!kiln_status_is_ok(status)) {
    kilni_compile_link_names_free(names);
    return status;
  }
  *out_names = names;
  return kiln_ok();
}

// ---- What came out ----

const char* kilni_compile_link_doubt(const kilni_compile_link_names_t* names) {
  return kiln_status_is_ok(names->doubt) ? NULL
                                         : kiln_status_message(names->doubt);
}

kiln_status_t kilni_compile_link_doubt_settle(kilni_compile_link_names_t* names,
                                              kiln_status_t failed) {
  kiln_status_code_t code = kiln_status_code(failed);
  bool is_of_linker = code == KILN_STATUS_LINK_FAILED ||
                      code == KILN_STATUS_BAD_DATA ||
                      code == KILN_STATUS_INVALID_ARGUMENT;
  if (kiln_status_is_ok(names->doubt) || !is_of_linker) return failed;
  kiln_status_t doubt = names->doubt;
  names->doubt = kiln_ok();
  doubt = KILNI_ANNOTATE(doubt, "%s", kiln_status_message(failed));
  kiln_status_free(failed);
  return doubt;
}

static bool name_is_before(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b) < 0;
}

static bool link_check_has_name(const char* const* sorted, size_t count,
                                const char* name) {
  size_t first = 0;
  while (first < count) {
    size_t middle = first + (count - first) / 2;
    int order = strcmp(sorted[middle], name);
    if (order == 0) return true;
    if (order < 0) {
      first = middle + 1;
    } else {
      count = middle;
    }
  }
  return false;
}

// A driver may omit unused members of an archive; nvJitLink does not.
static kiln_status_t check_kernels(const kilni_compile_link_given_t* given,
                                   const kilni_compile_link_names_t* names,
                                   const defined_t* items, size_t item_count,
                                   const char* const* sorted, size_t count) {
  for (size_t i = 0; i < item_count; i++) {
    const kiln_code_t* input = given->inputs[items[i].input];
    const char* name = names->texts + items[i].text;
    bool is_chosen = given->backend == KILN_LINK_BACKEND_DRIVER &&
                     kiln_code_format(input) == KILN_CODE_FORMAT_LIBRARY;
    if (!items[i].is_kernel || is_chosen ||
        link_check_has_name(sorted, count, name)) {
      continue;
    }
    return kilni_compile_link_lost(given, input, name);
  }
  return kiln_ok();
}

kiln_status_t kilni_compile_link_check_kernels(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names, const kiln_image_t* linked) {
  uint32_t count = kiln_image_kernel_count(linked);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(given->allocator, count,
                                               sizeof(const char*), &block));
  const char** sorted = block;
  for (uint32_t i = 0; i < count; i++) {
    sorted[i] = kiln_image_kernel(linked, i)->name;
  }
  kilni_base_sort(sorted, count, sizeof(const char*), name_is_before);
  kiln_status_t status =
      check_kernels(given, names, names->items, names->count, sorted, count);
  if (kiln_status_is_ok(status)) {
    status = check_kernels(given, names, names->kept, names->kept_count, sorted,
                           count);
  }
  kilni_base_free_array(given->allocator, block, count, sizeof(const char*));
  return status;
}

// The names of what came out. one-thread
typedef struct came_t {
  kiln_allocator_t allocator;
  const char** items;  // borrowed from its bytes
  size_t count;
  size_t capacity;
} came_t;

static kiln_status_t link_check_take_name(void* user, const char* name) {
  came_t* came = user;
  void* items = came->items;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(came->allocator, came->count + 1,
                                        sizeof(const char*), &came->capacity,
                                        &items));
  came->items = items;
  came->items[came->count++] = name;
  return kiln_ok();
}

// Those that others see, or functions that no other input sees.
static kiln_status_t take_names(const kiln_code_t* linked, bool own,
                                came_t* inout_came) {
  kilni_image_link_visit_t visit = {.user = inout_came};
  if (own) {
    visit.own = link_check_take_name;
  } else {
    visit.expect = link_check_take_name;
  }
  kiln_bytes_view_t bytes = kiln_code_bytes(linked);
  KILNI_RETURN_IF_ERROR(
      kilni_image_cubin_names(bytes, kiln_code_name(linked), &visit));
  kilni_base_sort(inout_came->items, inout_came->count, sizeof(const char*),
                  name_is_before);
  return kiln_ok();
}

static void free_names(came_t* came) {
  kilni_base_free_array(came->allocator, came->items, came->capacity,
                        sizeof(const char*));
}

static kiln_status_t find_expected(const kilni_compile_link_names_t* names,
                                   const came_t* came) {
  for (size_t i = 0; i < names->expected_count; i++) {
    const char* name = names->texts + names->expected[i];
    if (link_check_has_name(came->items, came->count, name)) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(LINK_FAILED, "\"%s\" is not in the result", name),
        "make the damaged input again");
  }
  return kiln_ok();
}

kiln_status_t kilni_compile_link_check_expected(
    const kilni_compile_link_names_t* names, const kiln_code_t* linked) {
  came_t came = {names->allocator, NULL, 0, 0};
  if (kiln_status_is_ok(names->doubt)) return kiln_ok();
  kiln_status_t status =
      kilni_image_check_whole(kiln_code_bytes(linked), kiln_code_name(linked));
  if (kiln_status_is_ok(status)) status = take_names(linked, false, &came);
  if (kiln_status_is_ok(status)) status = find_expected(names, &came);
  free_names(&came);
  return status;
}

// ---- Functions of LTO-IR ----

static bool link_check_is_own(const kilni_compile_link_names_t* names,
                              const char* name) {
  for (size_t i = 0; i < names->own_count; i++) {
    if (strcmp(names->texts + names->own[i], name) == 0) return true;
  }
  return false;
}

// The name of the LTO-IR, where it is one input by itself.
static const char* lto_name(const kilni_compile_link_given_t* given) {
  const char* name = NULL;
  for (size_t i = 0; i < given->count; i++) {
    if (kiln_code_format(given->inputs[i]) != KILN_CODE_FORMAT_LTOIR) continue;
    if (name != NULL) return "LTO-IR";
    name = kiln_code_name(given->inputs[i]);
  }
  return name != NULL ? name : "LTO-IR";
}

static kiln_status_t find_made_own(const kilni_compile_link_given_t* given,
                                   const kilni_compile_link_names_t* names,
                                   const came_t* came) {
  for (size_t i = 0; i < names->count; i++) {
    const defined_t* item = &names->items[i];
    const char* name = names->texts + item->text;
    if (!link_check_has_name(came->items, came->count, name) ||
        link_check_is_own(names, name)) {
      continue;
    }
    return link_check_twice(name, lto_name(given),
                            kiln_code_name(given->inputs[item->input]));
  }
  return kiln_ok();
}

kiln_status_t kilni_compile_link_check_lto_names(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names, const kiln_code_t* linked) {
  came_t came = {names->allocator, NULL, 0, 0};
  if (!given->lto || names->count == 0 ||
      kiln_code_format(linked) != KILN_CODE_FORMAT_CUBIN) {
    return kiln_ok();
  }
  kiln_status_t status = take_names(linked, true, &came);
  if (kiln_status_is_ok(status)) status = find_made_own(given, names, &came);
  free_names(&came);
  return status;
}
