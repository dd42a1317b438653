// SPDX-License-Identifier: Apache-2.0
//
// compat: how strict a check is, from the texts of three variables.
#include <string.h>

#include "base/status_make.h"
#include "base/str.h"
#include "kiln/compat.h"

static const char kiln_variable[] = "KILN_COMPAT";
static const char kGuardVariable[] =
    "CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS";
static const char kDriverVariable[] = "CUDA_PATHFINDER_DRIVER_COMPATIBILITY";

// A word of one of the variables and its meaning.
typedef struct word_t {
  const char* word;
  uint32_t mode;     // KILN_COMPAT_MODE_*; 0: does not set it
  uint32_t forward;  // a switch
} word_t;

static const word_t kiln_words[] = {
    {"off", KILN_COMPAT_MODE_OFF, 0},
    {"warn", KILN_COMPAT_MODE_WARN, 0},
    {"best_effort", KILN_COMPAT_MODE_BEST_EFFORT, 0},
    {"best-effort", KILN_COMPAT_MODE_BEST_EFFORT, 0},
    {"strict", KILN_COMPAT_MODE_STRICT, 0},
    {"forward_compat", 0, KILN_SWITCH_ON},
    {"no_forward_compat", 0, KILN_SWITCH_OFF},
    {NULL, 0, 0},
};

static const word_t kGuardWords[] = {
    {"off", KILN_COMPAT_MODE_OFF, 0},
    {"best_effort", KILN_COMPAT_MODE_BEST_EFFORT, 0},
    {"strict", KILN_COMPAT_MODE_STRICT, 0},
    {NULL, 0, 0},
};

static const word_t kDriverWords[] = {
    {"default", 0, KILN_SWITCH_OFF},
    {"assume_forward_compatibility", 0, KILN_SWITCH_ON},
    {NULL, 0, 0},
};

static const word_t* mode_find_word(const word_t* words,
                                    kiln_string_view_t text) {
  for (; words->word != NULL; words++) {
    if (kilni_base_sv_equal_cstr(text, words->word)) return words;
  }
  return NULL;
}

static void mode_apply(const word_t* word, const char* from,
                       kiln_compat_policy_t* policy) {
  if (word->mode != 0) {
    policy->mode = word->mode;
    policy->mode_from = from;
  }
  if (word->forward != KILN_SWITCH_DEFAULT) {
    policy->forward_compat = word->forward == KILN_SWITCH_ON;
    policy->forward_from = from;
  }
}

static kiln_status_t mode_bad_value(const char* name, const char* text,
                                    const char* allowed) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the variable %s is \"%s\"", name, text),
      "set %s to %s, or unset it", name, allowed);
}

// One word, or nothing where the variable is unset or empty.
static kiln_status_t apply_one(const char* name, const char* text,
                               const word_t* words, const char* allowed,
                               kiln_compat_policy_t* policy) {
  if (text == NULL || text[0] == '\0') return kiln_ok();
  const word_t* word = mode_find_word(words, kilni_base_sv(text));
  if (word == NULL) return mode_bad_value(name, text, allowed);
  mode_apply(word, name, policy);
  return kiln_ok();
}

// A mode, a word on forward compatibility, or both with a comma between them,
// in this order.
static kiln_status_t apply_kiln(const char* text,
                                kiln_compat_policy_t* policy) {
  static const char allowed[] =
      "off, warn, best_effort or strict, followed by \",forward_compat\" to "
      "waive the driver rule";
  if (text == NULL || text[0] == '\0') return kiln_ok();
  kiln_string_view_t rest = kilni_base_sv(text);
  kiln_string_view_t part;
  bool has_mode = false;
  bool has_forward = false;
  bool is_good = text[strlen(text) - 1] != ',';
  while (is_good && kilni_base_sv_split(&rest, ',', &part)) {
    const word_t* word = mode_find_word(kiln_words, part);
    is_good = word != NULL && !has_forward && !(word->mode != 0 && has_mode);
    if (!is_good) break;
    mode_apply(word, kiln_variable, policy);
    has_mode = has_mode || word->mode != 0;
    has_forward = word->mode == 0;
  }
  return is_good ? kiln_ok() : mode_bad_value(kiln_variable, text, allowed);
}

kiln_status_t kiln_compat_mode_parse(const char* kiln_compat,
                                     const char* guard_rails,
                                     const char* driver_compatibility,
                                     uint32_t fallback_mode,
                                     kiln_compat_policy_t* out_policy) {
  if (fallback_mode == KILN_COMPAT_MODE_DEFAULT) {
    fallback_mode = KILN_COMPAT_MODE_WARN;
  }
  kiln_compat_policy_t policy = {fallback_mode, false, NULL, NULL};
  *out_policy = policy;
  KILNI_CHECK_ARGUMENT(fallback_mode <= KILN_COMPAT_MODE_STRICT,
                       "fallback_mode");
  KILNI_RETURN_IF_ERROR(apply_one(kGuardVariable, guard_rails, kGuardWords,
                                  "off, best_effort or strict", &policy));
  KILNI_RETURN_IF_ERROR(
      apply_one(kDriverVariable, driver_compatibility, kDriverWords,
                "default or assume_forward_compatibility", &policy));
  KILNI_RETURN_IF_ERROR(apply_kiln(kiln_compat, &policy));
  *out_policy = policy;
  return kiln_ok();
}
