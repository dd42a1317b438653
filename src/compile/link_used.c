// SPDX-License-Identifier: Apache-2.0
//
// compile: names that a link is to keep, compared with its result.
//
// Linkers take a name that no input has without a word, and drop all that it
// was not. What inputs have cannot be read of LTO-IR, so the result is asked;
// for the nearest name, that of the same link without the lists.
#include <string.h>

#include "base/demangle.h"
#include "base/name_distance.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/link_inside.h"
#include "kiln/image.h"

enum { NAME_BYTES = 512, MAX_SHOWN = 8 };

static const char* link_used_word_of(bool is_variable) {
  return is_variable ? "variable" : "kernel";
}

static const char* link_used_field_of(bool is_variable) {
  return is_variable ? "variables_used" : "kernels_used";
}

// ---- The names of an image ----

static size_t name_count(const kiln_image_t* image, bool is_variable) {
  return is_variable ? kiln_image_symbol_count(image)
                     : kiln_image_kernel_count(image);
}

// NULL: it is none of this kind.
static const char* name_at(const kiln_image_t* image, bool is_variable,
                           size_t index) {
  if (!is_variable) return kiln_image_kernel(image, (uint32_t)index)->name;
  const kiln_image_symbol_t* symbol = kiln_image_symbol(image, (uint32_t)index);
  bool is_one =
      symbol->defined != 0 && (symbol->kind == KILN_IMAGE_SYMBOL_VARIABLE ||
                               symbol->kind == KILN_IMAGE_SYMBOL_CONSTANT);
  return is_one ? symbol->name : NULL;
}

static bool link_used_has(const kiln_image_t* image, bool is_variable,
                          const char* name) {
  for (size_t i = 0; i < name_count(image, is_variable); i++) {
    const char* other = name_at(image, is_variable, i);
    if (other != NULL && strcmp(other, name) == 0) return true;
  }
  return false;
}

// ---- What is missing ----

static const char* link_used_first_missing(const kiln_image_t* image,
                                           bool is_variable,
                                           const char* const* list,
                                           uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!link_used_has(image, is_variable, list[i])) return list[i];
  }
  return NULL;
}

kiln_status_t kilni_compile_link_find_missing(
    const kiln_link_options_t* options, const kiln_code_t* linked,
    kiln_allocator_t allocator, kilni_compile_link_missing_t* out_missing) {
  kiln_image_t* image = NULL;
  *out_missing = (kilni_compile_link_missing_t){NULL, false};
  if (options->kernels_used_count + options->variables_used_count == 0) {
    return kiln_ok();
  }
  if (kiln_code_format(linked) == KILN_CODE_FORMAT_LTOIR) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "names that are used (`%s`) cannot be compared with LTO-IR, "
                   "whose names cannot be read",
                   link_used_field_of(options->kernels_used_count == 0)),
        "name them in the link that makes machine code or PTX from it");
  }
  KILNI_RETURN_IF_ERROR(
      kilni_compile_link_read_image(linked, allocator, &image));
  if (image == NULL) return kiln_ok();
  out_missing->name = link_used_first_missing(
      image, false, options->kernels_used, options->kernels_used_count);
  if (out_missing->name == NULL) {
    out_missing->is_variable = true;
    out_missing->name = link_used_first_missing(
        image, true, options->variables_used, options->variables_used_count);
  }
  kiln_image_release(image);
  return kiln_ok();
}

// ---- What was meant ----

// As a source writes it: "scale" of "_Z5scalePfi".
static const char* link_used_plain(const char* name, char out[NAME_BYTES]) {
  return kilni_base_demangle(name, false, NAME_BYTES, out) ? out : name;
}

// Without what follows the name: parameters, arguments of a template.
static const char* link_used_bare(const char* name, char out[NAME_BYTES]) {
  size_t size = strcspn(name, "<(");
  if (size >= NAME_BYTES) size = NAME_BYTES - 1;
  memcpy(out, name, size);
  out[size] = 0;
  return out;
}

static uint32_t link_used_distance(const char* wanted, const char* name) {
  char texts[3][NAME_BYTES];
  const char* other = link_used_bare(link_used_plain(name, texts[0]), texts[1]);
  return kilni_base_name_distance(link_used_bare(wanted, texts[2]), other);
}

static const char* nearest(const kilni_compile_link_missing_t* missing,
                           const kiln_image_t* image) {
  const char* found = NULL;
  uint32_t best = (uint32_t)strlen(missing->name) / 3 + 2;
  for (size_t i = 0; i < name_count(image, missing->is_variable); i++) {
    const char* name = name_at(image, missing->is_variable, i);
    if (name == NULL) continue;
    uint32_t far = link_used_distance(missing->name, name);
    if (far >= best) continue;
    best = far;
    found = name;
  }
  return found;
}

static void link_used_list_names(const kilni_compile_link_missing_t* missing,
                                 const kiln_image_t* image,
                                 kilni_base_str_t* text) {
  size_t shown = 0;
  for (size_t i = 0; i < name_count(image, missing->is_variable); i++) {
    const char* name = name_at(image, missing->is_variable, i);
    if (name == NULL) continue;
    if (shown == MAX_SHOWN) {
      kilni_base_str_add_cstr(text, ", ...");
      return;
    }
    kilni_base_str_addf(text, "%s\"%.200s\"", shown++ > 0 ? ", " : "", name);
  }
}

static kiln_status_t link_used_advise(
    const kilni_compile_link_missing_t* missing, const kiln_image_t* image,
    kiln_allocator_t allocator, kiln_status_t status) {
  const char* near = nearest(missing, image);
  if (near != NULL) {
    return kilni_base_status_with_fix(
        status, "did you mean \"%.400s\"? names are those of the machine code",
        near);
  }
  kilni_base_str_t text;
  kilni_base_str_init(&text, allocator, (size_t)MAX_SHOWN * NAME_BYTES);
  link_used_list_names(missing, image, &text);
  const char* list = kilni_base_str_cstr(&text);
  status = list[0] != 0
               ? kilni_base_status_with_fix(status, "name one of: %s", list)
               : kilni_base_status_with_fix(
                     status, "leave it out: the inputs have no %s",
                     link_used_word_of(missing->is_variable));
  kilni_base_str_deinit(&text);
  return status;
}

static kiln_status_t say_missing(const kilni_compile_link_missing_t* missing,
                                 const kiln_image_t* image,
                                 kiln_allocator_t allocator) {
  const char* word = link_used_word_of(missing->is_variable);
  const char* field = link_used_field_of(missing->is_variable);
  if (!link_used_has(image, missing->is_variable, missing->name)) {
    return link_used_advise(
        missing, image, allocator,
        KILNI_FAIL(
            NOT_FOUND,
            "no input has the %s \"%.400s\", which is declared as used (`%s`)",
            word, missing->name, field));
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED,
                 "the %s \"%.400s\" (`%s`) is not in the result: the linker "
                 "drops it where names are given",
                 word, missing->name, field),
      "leave out the names that are used");
}

kiln_status_t kilni_compile_link_missing_status(
    const kilni_compile_link_missing_t* missing, const kiln_code_t* all,
    kiln_allocator_t allocator) {
  kiln_image_t* image = NULL;
  if (all != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_link_read_image(all, allocator, &image));
  }
  if (image == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "the %s \"%.400s\" (`%s`) is not in the result",
                   link_used_word_of(missing->is_variable), missing->name,
                   link_used_field_of(missing->is_variable)),
        "name it as the inputs have it");
  }
  kiln_status_t status = say_missing(missing, image, allocator);
  kiln_image_release(image);
  return status;
}
