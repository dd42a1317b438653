// SPDX-License-Identifier: Apache-2.0
//
// compile: options of a link that change nothing in it.
//
// nvJitLink silently accepts them. Machine code stays as it was compiled; PTX
// is assembled, but its arithmetic is already fixed; only LTO-IR is compiled.
// An option that can have no effect is refused. Where it affects a part of the
// inputs, or where the result is right without it, a note reports that.
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "compile/link_inside.h"
#include "image/image.h"

// What an option needs to have an effect.
typedef enum need_t {
  NEEDS_LTO,       // code that is compiled: what it computes
  NEEDS_ASSEMBLY,  // code that is assembled, by this link
  NEEDS_COMPILER,  // either
} need_t;

// What of an option that changes nothing.
typedef enum answer_t { REFUSE, NOTE } answer_t;

// An option that may change nothing. thread-compatible
typedef struct option_t {
  const char* field;
  need_t need;
  answer_t answer;
  bool is_given;
} option_t;

enum { OPTION_COUNT = 12 };

static void list_options(const kiln_link_options_t* o,
                         option_t out[OPTION_COUNT]) {
  const option_t options[OPTION_COUNT] = {
      {"ftz", NEEDS_LTO, REFUSE, o->ftz != 0},
      {"prec_div", NEEDS_LTO, REFUSE, o->prec_div != 0},
      {"prec_sqrt", NEEDS_LTO, REFUSE, o->prec_sqrt != 0},
      {"fma", NEEDS_LTO, REFUSE, o->fma != 0},
      {"max_registers", NEEDS_ASSEMBLY, REFUSE, o->max_registers != 0},
      {"ptxas_options", NEEDS_ASSEMBLY, REFUSE, o->ptxas_options_count != 0},
      {"optimization_level", NEEDS_COMPILER, REFUSE,
       o->optimization_level != 0},
      {"debug", NEEDS_COMPILER, NOTE, o->debug == KILN_SWITCH_ON},
      {"lineinfo", NEEDS_COMPILER, NOTE, o->lineinfo == KILN_SWITCH_ON},
      {"split_compile", NEEDS_COMPILER, NOTE, o->split_compile != 0},
      {"split_compile_extended", NEEDS_COMPILER, NOTE,
       o->split_compile_extended != 0},
      {"optimize_unused_variables", NEEDS_COMPILER, NOTE,
       o->optimize_unused_variables == KILN_SWITCH_ON},
  };
  memcpy(out, options, sizeof(options));
}

// ---- What is linked ----

// The check before the link reports damage.
static kiln_status_t count_pieces(const kilni_compile_link_given_t* given,
                                  uint32_t sm,
                                  kilni_image_link_pieces_t* out_pieces) {
  memset(out_pieces, 0, sizeof(*out_pieces));
  out_pieces->takes_ltoir = given->lto;
  for (size_t i = 0; i < given->count; i++) {
    const kiln_code_t* code = given->inputs[i];
    kilni_image_link_visit_t visit = {.sm = sm, .inout_pieces = out_pieces};
    kiln_status_t status =
        kilni_image_check_link(kiln_code_bytes(code), kiln_code_format(code),
                               kiln_code_name(code), given->allocator, &visit);
    if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
    kiln_status_free(status);
  }
  return kiln_ok();
}

// ---- Messages ----

static const char* flag_of(const char* field, char out[64]) {
  (void)snprintf(out, 64, "--%s", field);
  for (char* at = out; *at != 0; at++) {
    if (*at == '_') *at = '-';
  }
  return out;
}

static kiln_status_t link_effect_refuse(const option_t* option,
                                        bool is_assembled) {
  char flag[64];
  flag_of(option->field, flag);
  if (option->need == NEEDS_ASSEMBLY && !is_assembled) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`%s` (%s) has no effect on this link: its output is not "
                   "assembled yet",
                   option->field, flag),
        "omit it, and give it where machine code is made");
  }
  if (option->need == NEEDS_LTO) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            INVALID_ARGUMENT,
            "`%s` (%s) has no effect on this link: no input is LTO-IR, and the "
            "arithmetic of PTX and machine code is already fixed",
            option->field, flag),
        "omit it, and compile the inputs with it, or to LTO-IR");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "`%s` (%s) has no effect on this link: the inputs are machine "
                 "code, which stays as it was compiled",
                 option->field, flag),
      "omit it, and compile the inputs with it; or give them as PTX or LTO-IR");
}

static kiln_status_t check_option(const option_t* option,
                                  const kilni_image_link_pieces_t* pieces,
                                  bool is_assembled,
                                  kiln_link_settings_t* settings) {
  bool reaches_text = option->need != NEEDS_LTO;
  bool is_lost = option->need == NEEDS_ASSEMBLY && !is_assembled;
  size_t reached = pieces->ltoir + (reaches_text ? pieces->ptx : 0);
  size_t missed = pieces->machine + (reaches_text ? 0 : pieces->ptx);
  if (is_lost || (reached == 0 && missed > 0)) {
    if (is_lost || option->answer == REFUSE) {
      return link_effect_refuse(option, is_assembled);
    }
    return kilni_compile_link_settings_warn(
        settings,
        "the option `%s` has no effect: machine code stays as it was compiled",
        option->field);
  }
  if (missed == 0) return kiln_ok();
  return kilni_compile_link_settings_warn(
      settings, "the option `%s` affects %s only: %s as it was compiled",
      option->field, reaches_text ? "PTX and LTO-IR" : "LTO-IR",
      pieces->machine == 0 ? "PTX stays" : "machine code stays");
}

kiln_status_t kilni_compile_link_check_effect(
    const kilni_compile_link_given_t* given, uint32_t output,
    kiln_link_settings_t* settings) {
  option_t options[OPTION_COUNT];
  kilni_image_link_pieces_t pieces;
  bool is_native = given->backend == KILN_LINK_BACKEND_NVJITLINK;
  bool is_assembled = output == KILN_CODE_FORMAT_CUBIN ||
                      output == KILN_CODE_FORMAT_RELOCATABLE;
  bool any = false;
  list_options(given->options, options);
  for (size_t i = 0; i < OPTION_COUNT; i++) any = any || options[i].is_given;
  if (!any) return kiln_ok();
  KILNI_RETURN_IF_ERROR(count_pieces(
      given, kilni_compile_link_arch_number(given->arch), &pieces));
  for (size_t i = 0; i < OPTION_COUNT; i++) {
    // Of those the driver has its own words (link_options.inc).
    bool is_other = !is_native && options[i].need == NEEDS_LTO;
    if (!options[i].is_given || is_other) continue;
    KILNI_RETURN_IF_ERROR(
        check_option(&options[i], &pieces, is_assembled, settings));
  }
  return kiln_ok();
}
