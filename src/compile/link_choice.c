// SPDX-License-Identifier: Apache-2.0
//
// compile: what was chosen to link with, and why.
#include "compile/link_choice.h"

#include "base/alloc.h"
#include "base/status_make.h"

enum { REASON_BYTES = 4096 };

kiln_status_t kilni_compile_link_choice_create(
    kiln_allocator_t allocator, kiln_link_choice_t** out_choice) {
  *out_choice = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_link_choice_t), &block));
  kiln_link_choice_t* choice = block;
  choice->allocator = allocator;
  choice->nvjitlink = UINT32_MAX;
  choice->verdict = KILN_COMPAT_VERDICT_COMPATIBLE;
  choice->refusal = KILN_STATUS_OK;
  atomic_init(&choice->references, 1);
  *out_choice = choice;
  return kiln_ok();
}

kiln_status_t kilni_compile_link_choice_because(kiln_link_choice_t* choice,
                                                const char* format, ...) {
  kilni_base_str_t text;
  kilni_base_str_init(&text, choice->allocator, REASON_BYTES);
  va_list args;
  va_start(args, format);
  kilni_base_str_addv(&text, format, args);
  va_end(args);
  char** place = &choice->reasons[choice->reason_count];
  KILNI_RETURN_IF_ERROR(kilni_base_str_take(&text, place));
  choice->reason_count++;
  return kiln_ok();
}

kiln_status_t kilni_compile_link_choice_refuse(kiln_link_choice_t* choice,
                                               kiln_status_code_t code,
                                               kilni_base_str_t* message,
                                               kilni_base_str_t* fix) {
  choice->backend = KILN_LINK_BACKEND_AUTO;
  choice->nvjitlink = UINT32_MAX;
  choice->verdict = KILN_COMPAT_VERDICT_INCOMPATIBLE;
  choice->refusal = code;
  kiln_status_t status = kilni_base_str_take(message, &choice->message);
  if (!kiln_status_is_ok(status)) {
    kilni_base_str_deinit(fix);
    return status;
  }
  return kilni_base_str_take(fix, &choice->fix);
}

void kiln_link_choice_retain(kiln_link_choice_t* choice) {
  if (choice == NULL) return;
  atomic_fetch_add_explicit(&choice->references, 1, memory_order_relaxed);
}

void kiln_link_choice_release(kiln_link_choice_t* choice) {
  if (choice == NULL) return;
  if (atomic_fetch_sub_explicit(&choice->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_allocator_t allocator = choice->allocator;
  kilni_base_strfree(allocator, choice->message);
  kilni_base_strfree(allocator, choice->fix);
  for (uint32_t i = 0; i < choice->reason_count; i++) {
    kilni_base_strfree(allocator, choice->reasons[i]);
  }
  kilni_base_free(allocator, choice, sizeof(*choice));
}

uint32_t kiln_link_choice_backend(const kiln_link_choice_t* choice) {
  return choice != NULL ? choice->backend : KILN_LINK_BACKEND_AUTO;
}

uint32_t kiln_link_choice_nvjitlink(const kiln_link_choice_t* choice) {
  return choice != NULL ? choice->nvjitlink : UINT32_MAX;
}

uint32_t kiln_link_choice_output(const kiln_link_choice_t* choice) {
  return choice != NULL ? choice->output : KILN_CODE_FORMAT_UNKNOWN;
}

bool kiln_link_choice_lto(const kiln_link_choice_t* choice) {
  return choice != NULL && choice->lto;
}

uint32_t kiln_link_choice_verdict(const kiln_link_choice_t* choice) {
  return choice != NULL ? choice->verdict : KILN_COMPAT_VERDICT_UNKNOWN;
}

uint32_t kiln_link_choice_reason_count(const kiln_link_choice_t* choice) {
  return choice != NULL ? choice->reason_count : 0;
}

const char* kiln_link_choice_reason(const kiln_link_choice_t* choice,
                                    uint32_t index) {
  if (choice == NULL || index >= choice->reason_count) return NULL;
  return choice->reasons[index];
}

const char* kiln_link_choice_fix(const kiln_link_choice_t* choice) {
  return choice != NULL ? choice->fix : NULL;
}

kiln_status_t kiln_link_choice_status(const kiln_link_choice_t* choice) {
  KILNI_CHECK_ARGUMENT(choice != NULL, "choice");
  if (choice->refusal == KILN_STATUS_OK) return kiln_ok();
  kiln_status_t status = kilni_base_status_make(
      choice->refusal, KILNI_MODULE, __FILE__, __LINE__, "%s", choice->message);
  return kilni_base_status_with_fix(status, "%s", choice->fix);
}

const char* kiln_link_backend_word(uint32_t backend) {
  static const char* const kWords[] = {"auto", "nvjitlink", "driver"};
  return backend < sizeof(kWords) / sizeof(kWords[0]) ? kWords[backend] : "?";
}
