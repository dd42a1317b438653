// SPDX-License-Identifier: Apache-2.0
//
// compile: the choice of a linker, as a pure function of facts.
//
// Each nvJitLink and the driver is a candidate, and each candidate is judged by
// itself: does it do what is requested, does it accept every input, and does
// the driver load its output? The best one is taken, an nvJitLink before the
// driver, and among those by the caller's order.
//
// An nvJitLink that is older than the driver is not a risk, whatever its major:
// its cubin and its PTX are older than the driver too. Preferring the driver's
// linker, which does not accept LTO-IR, would break links that work.
#include <stdio.h>
#include <string.h>

#include "base/fix_words.h"
#include "base/options.h"
#include "base/status_make.h"
#include "compile/link_choice.h"

enum {
  LINE_PARTIAL = 13000,      // nvJitLink's `-r`, for inputs other than LTO-IR
  LINE_RELOCATABLE = 13020,  // for LTO-IR too, and promised
  LINE_LTOIR = 13030,        // LTO-IR as output
  MESSAGE_BYTES = 4096,
};

// What keeps a candidate from linking.
typedef enum block_t {
  BLOCK_NOTHING = 0,
  BLOCK_OLD,       // an nvJitLink that counts as absent
  BLOCK_UNKNOWN,   // an nvJitLink whose version cannot be read
  BLOCK_ABSENT,    // no driver
  BLOCK_DEVICE,    // a driver, and no device to link in
  BLOCK_OUTPUT,    // it does not make the requested output
  BLOCK_LTO,       // it does not optimise across inputs
  BLOCK_FINISHED,  // it leaves an input out without a word
  BLOCK_INPUT,     // an input is too new for it
  BLOCK_LOAD,      // the driver does not load what it makes
} block_t;

// One candidate, judged. thread-compatible
typedef struct judged_t {
  block_t block;
  uint32_t input;  // that is too new, or for which nothing is promised
  bool promised;   // as far as the lines are known
  bool lines_known;
  bool early;  // the request works, but was documented only later
} judged_t;

// The question, read once. thread-compatible
typedef struct question_t {
  const kiln_link_facts_t* facts;
  uint32_t output;
  bool lto;
  bool has_ltoir;
  uint32_t finished;  // an input that is a cubin, linked; UINT32_MAX: none is
} question_t;

static const char* input_name(const kiln_link_facts_t* facts, uint32_t index) {
  const char* name = facts->inputs[index].name;
  return name != NULL ? name : "an input";
}

// ---- The question ----

// What an input is to a linker; 0: no linker accepts it. The contents of an
// object, an archive or a fatbin count as code that is not linked yet. Finished
// code goes to the driver alone (BLOCK_FINISHED), which accepts both.
static uint32_t artifact_of(uint32_t format) {
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
      return KILN_COMPAT_ARTIFACT_PTX;
    case KILN_CODE_FORMAT_LTOIR:
      return KILN_COMPAT_ARTIFACT_LTOIR;
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_FATBIN:
    case KILN_CODE_FORMAT_OBJECT:
    case KILN_CODE_FORMAT_LIBRARY:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return KILN_COMPAT_ARTIFACT_CUBIN;
    default:
      return 0;
  }
}

static kiln_status_t link_choose_check_numbers(const kiln_link_facts_t* facts) {
  KILNI_CHECK_RESERVED(facts->reserved, kiln_link_facts_t);
  KILNI_CHECK_ARGUMENT_SAYS(facts->input_count > 0 && facts->inputs != NULL,
                            "inputs", "contains nothing that can be linked",
                            "pass one input or more");
  KILNI_CHECK_ARGUMENT(facts->nvjitlink_count == 0 || facts->nvjitlinks != NULL,
                       "nvjitlinks");
  KILNI_CHECK_ARGUMENT(facts->backend <= KILN_LINK_BACKEND_DRIVER, "backend");
  KILNI_CHECK_ARGUMENT(facts->lto <= KILN_SWITCH_ON, "lto");
  KILNI_CHECK_ARGUMENT(facts->has_no_device <= 1, "has_no_device");
  if (facts->nvjitlink_count > KILN_LINK_MAX_NVJITLINKS ||
      facts->input_count > KILN_LINK_MAX_INPUTS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a link of %u inputs with %u nvJitLinks",
                   (unsigned)facts->input_count,
                   (unsigned)facts->nvjitlink_count),
        "give at most %d inputs and %d nvJitLinks", KILN_LINK_MAX_INPUTS,
        KILN_LINK_MAX_NVJITLINKS);
  }
  return kiln_ok();
}

static kiln_status_t link_choose_check_output(const question_t* question) {
  uint32_t output = question->output;
  if (output == KILN_CODE_FORMAT_CUBIN || output == KILN_CODE_FORMAT_PTX ||
      output == KILN_CODE_FORMAT_LTOIR ||
      output == KILN_CODE_FORMAT_RELOCATABLE) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "no linker makes a file of format \"%s\"",
                 kiln_code_format_name(output)),
      "ask for cubin, ptx, ltoir or relocatable");
}

// Linking LTO-IR, and making PTX or LTO-IR, is link-time optimisation.
static kiln_status_t link_choose_check_lto(const question_t* question,
                                           uint32_t ltoir) {
  const kiln_link_facts_t* facts = question->facts;
  if (!question->lto || facts->lto != KILN_SWITCH_OFF) return kiln_ok();
  kiln_status_t status =
      question->has_ltoir
          ? KILNI_FAIL(INVALID_ARGUMENT,
                       "`lto` is off and \"%s\" is LTO-IR, which only "
                       "link-time optimisation links",
                       input_name(facts, ltoir))
          : KILNI_FAIL(
                INVALID_ARGUMENT,
                "`lto` is off, and only link-time optimisation produces %s",
                kiln_code_format_name(question->output));
  return kilni_base_status_with_fix(status, "leave `lto` at its default");
}

// Whether the software device would link it: PTX of PTX alone.
static bool joins_ptx(const question_t* question) {
  const kiln_link_facts_t* facts = question->facts;
  for (uint32_t i = 0; i < facts->input_count; i++) {
    if (facts->inputs[i].format != KILN_CODE_FORMAT_PTX) return false;
  }
  return question->output == KILN_CODE_FORMAT_PTX &&
         facts->lto != KILN_SWITCH_ON;
}

// A linker that makes LTO-IR or PTX merges LTO-IR; machine code and PTX no
// longer are LTO-IR. nvJitLink: "-ptx requires that all inputs have LTOIR".
static kiln_status_t check_mixture(const question_t* question, uint32_t index) {
  uint32_t format = question->facts->inputs[index].format;
  if ((question->output != KILN_CODE_FORMAT_LTOIR &&
       question->output != KILN_CODE_FORMAT_PTX) ||
      (format != KILN_CODE_FORMAT_PTX && format != KILN_CODE_FORMAT_CUBIN &&
       format != KILN_CODE_FORMAT_RELOCATABLE)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s cannot be made from \"%s\", a %s",
                 question->output == KILN_CODE_FORMAT_PTX ? "PTX" : "LTO-IR",
                 input_name(question->facts, index),
                 kiln_code_format_name(format)),
      joins_ptx(question)
          ? "ask for a cubin, or let the software device join the PTX "
            "(--device "
            "soft, without --backend nvjitlink); or give LTO-IR only"
          : "give LTO-IR only, or ask for a cubin");
}

static kiln_status_t read_question(const kiln_link_facts_t* facts,
                                   question_t* out_question) {
  memset(out_question, 0, sizeof(*out_question));
  KILNI_RETURN_IF_ERROR(link_choose_check_numbers(facts));
  out_question->facts = facts;
  out_question->finished = UINT32_MAX;
  out_question->output =
      facts->output != 0 ? facts->output : (uint32_t)KILN_CODE_FORMAT_CUBIN;
  KILNI_RETURN_IF_ERROR(link_choose_check_output(out_question));
  uint32_t ltoir = 0;
  for (uint32_t i = 0; i < facts->input_count; i++) {
    uint32_t format = facts->inputs[i].format;
    KILNI_CHECK_RESERVED(facts->inputs[i].reserved, kiln_link_input_fact_t);
    if (artifact_of(format) == 0) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "no linker accepts \"%s\", of format %s",
                     input_name(facts, i), kiln_code_format_name(format)),
          "compile it first: to PTX, a cubin or LTO-IR");
    }
    KILNI_RETURN_IF_ERROR(check_mixture(out_question, i));
    if (format == KILN_CODE_FORMAT_CUBIN &&
        out_question->finished == UINT32_MAX) {
      out_question->finished = i;
    }
    if (format != KILN_CODE_FORMAT_LTOIR || out_question->has_ltoir) continue;
    out_question->has_ltoir = true;
    ltoir = i;
  }
  out_question->lto = out_question->has_ltoir || facts->lto == KILN_SWITCH_ON ||
                      out_question->output == KILN_CODE_FORMAT_PTX ||
                      out_question->output == KILN_CODE_FORMAT_LTOIR;
  return link_choose_check_lto(out_question, ltoir);
}

// ---- Judging ----

// Whether a linker of release `line` accepts an input. PTX states itself what
// it needs.
static uint32_t takes(const kiln_link_input_fact_t* input, uint32_t line) {
  uint32_t artifact = artifact_of(input->format);
  uint32_t isa = kiln_compat_line_ptx_isa(line);
  if (artifact == KILN_COMPAT_ARTIFACT_PTX && input->ptx_isa != 0 && isa != 0) {
    return input->ptx_isa <= isa ? KILN_COMPAT_VERDICT_COMPATIBLE
                                 : KILN_COMPAT_VERDICT_INCOMPATIBLE;
  }
  return kiln_compat_linker_verdict(artifact, input->line, line);
}

static bool link_choose_is_known(const kiln_link_input_fact_t* input) {
  return input->line != 0 ||
         (input->format == KILN_CODE_FORMAT_PTX && input->ptx_isa != 0);
}

// All inputs into a linker of `line`. What is known of none blocks nothing.
static void judge_inputs(const question_t* question, uint32_t line,
                         judged_t* inout) {
  const kiln_link_facts_t* facts = question->facts;
  for (uint32_t i = 0; i < facts->input_count; i++) {
    if (!link_choose_is_known(&facts->inputs[i]) || line == 0) {
      inout->lines_known = false;
      continue;
    }
    uint32_t verdict = takes(&facts->inputs[i], line);
    if (verdict == KILN_COMPAT_VERDICT_COMPATIBLE) continue;
    if (inout->promised) inout->input = i;
    inout->promised = false;
    if (verdict != KILN_COMPAT_VERDICT_INCOMPATIBLE) continue;
    inout->block = BLOCK_INPUT;
    inout->input = i;
    return;
  }
}

static uint32_t least_line(const question_t* question) {
  if (question->output == KILN_CODE_FORMAT_LTOIR) return LINE_LTOIR;
  if (question->output == KILN_CODE_FORMAT_RELOCATABLE) {
    return question->lto ? LINE_RELOCATABLE : LINE_PARTIAL;
  }
  return KILN_LINK_NVJITLINK_LEAST;
}

// Whether the driver loads what an nvJitLink of `line` makes. What goes into
// another link is not for a driver. Not asked: the release of a driver of the
// same major, the first of which is already the branch that the rule asks for.
static bool loads(const question_t* question, uint32_t line) {
  const kiln_compat_driver_t* driver = &question->facts->driver;
  if (driver->state != KILN_COMPAT_DRIVER_KNOWN) return true;
  if (question->output == KILN_CODE_FORMAT_RELOCATABLE ||
      question->output == KILN_CODE_FORMAT_LTOIR) {
    return true;
  }
  uint32_t artifact = question->output == KILN_CODE_FORMAT_PTX
                          ? KILN_COMPAT_ARTIFACT_PTX
                          : KILN_COMPAT_ARTIFACT_ELF;
  return kiln_compat_driver_verdict(driver, artifact, line) !=
         KILN_COMPAT_VERDICT_INCOMPATIBLE;
}

static judged_t judge_nvjitlink(const question_t* question, uint32_t line) {
  judged_t judged = {BLOCK_NOTHING, 0, true, true, false};
  if (line == KILN_LINK_NVJITLINK_UNKNOWN) {
    judged.block = BLOCK_UNKNOWN;
  } else if (line < KILN_LINK_NVJITLINK_LEAST) {
    judged.block = BLOCK_OLD;
  } else if (line < least_line(question)) {
    judged.block = BLOCK_OUTPUT;
  } else if (question->finished != UINT32_MAX) {
    judged.block = BLOCK_FINISHED;
    judged.input = question->finished;
  } else {
    judged.early = question->output == KILN_CODE_FORMAT_RELOCATABLE &&
                   line < LINE_RELOCATABLE;
    judge_inputs(question, line, &judged);
    if (judged.block == BLOCK_NOTHING && !loads(question, line)) {
      judged.block = BLOCK_LOAD;
    }
  }
  return judged;
}

static judged_t judge_driver(const question_t* question) {
  const kiln_compat_driver_t* driver = &question->facts->driver;
  judged_t judged = {BLOCK_NOTHING, 0, true, true, false};
  bool known = driver->state == KILN_COMPAT_DRIVER_KNOWN;
  if (driver->state == KILN_COMPAT_DRIVER_NONE) {
    judged.block = BLOCK_ABSENT;
  } else if (question->lto) {
    judged.block = BLOCK_LTO;
  } else if (question->output != KILN_CODE_FORMAT_CUBIN) {
    judged.block = BLOCK_OUTPUT;
  } else {
    judge_inputs(question, known ? driver->line : 0, &judged);
    if (judged.block == BLOCK_NOTHING && question->finished != UINT32_MAX) {
      judged.promised = false;
      judged.input = question->finished;
    }
    if (judged.block == BLOCK_NOTHING && question->facts->has_no_device) {
      judged.block = BLOCK_DEVICE;
    }
  }
  return judged;
}

// ---- Words ----

typedef struct line_text_t {
  char text[32];
} line_text_t;

static line_text_t line_text(uint32_t line) {
  line_text_t out;
  snprintf(out.text, sizeof(out.text), "%u.%u",
           (unsigned)kiln_compat_line_major(line),
           (unsigned)kiln_compat_line_minor(line));
  return out;
}

static void add_input(kilni_base_str_t* str, const kiln_link_facts_t* facts,
                      uint32_t index) {
  const kiln_link_input_fact_t* input = &facts->inputs[index];
  kilni_base_str_addf(str, "\"%s\" (%s", input_name(facts, index),
                      kiln_code_format_name(input->format));
  if (input->format == KILN_CODE_FORMAT_PTX && input->ptx_isa != 0) {
    kilni_base_str_addf(str, " %u.%u", (unsigned)(input->ptx_isa / 10),
                        (unsigned)(input->ptx_isa % 10));
  } else if (input->line != 0) {
    kilni_base_str_addf(str, " of CUDA %s", line_text(input->line).text);
  }
  kilni_base_str_add_char(str, ')');
}

// Why nvJitLink `index` does not link.
static void say_blocked(kilni_base_str_t* str, const question_t* question,
                        uint32_t index, const judged_t* judged) {
  const kiln_link_facts_t* facts = question->facts;
  uint32_t line = facts->nvjitlinks[index];
  line_text_t version = line_text(line);
  switch (judged->block) {
    case BLOCK_UNKNOWN:
      kilni_base_str_add_cstr(str,
                              "an nvJitLink whose version cannot be read "
                              "counts as absent");
      return;
    case BLOCK_OLD:
      kilni_base_str_addf(
          str, "nvJitLink %s is older than %s and counts as absent",
          version.text, line_text(KILN_LINK_NVJITLINK_LEAST).text);
      return;
    case BLOCK_OUTPUT:
      kilni_base_str_addf(
          str, "nvJitLink %s cannot make %s%s: that came with %s", version.text,
          kiln_code_format_name(question->output),
          question->output == KILN_CODE_FORMAT_RELOCATABLE && question->lto
              ? " of LTO-IR"
              : "",
          line_text(least_line(question)).text);
      return;
    case BLOCK_FINISHED:
      kilni_base_str_add_cstr(
          str, "nvJitLink silently omits finished machine code: ");
      add_input(str, facts, judged->input);
      return;
    case BLOCK_INPUT:
      kilni_base_str_addf(str, "nvJitLink %s is too old for ", version.text);
      add_input(str, facts, judged->input);
      return;
    default:
      kilni_base_str_addf(str,
                          "the driver of CUDA %s is too old for the %s that "
                          "nvJitLink %s makes",
                          line_text(facts->driver.line).text,
                          kiln_code_format_name(question->output),
                          version.text);
  }
}

static void say_driver_blocked(kilni_base_str_t* str,
                               const question_t* question,
                               const judged_t* judged) {
  switch (judged->block) {
    case BLOCK_ABSENT:
      kilni_base_str_add_cstr(str, "there is no driver here to link with");
      return;
    case BLOCK_DEVICE:
      kilni_base_str_add_cstr(str,
                              "the driver links in a device's context, and the "
                              "linker was opened without a device");
      return;
    case BLOCK_LTO:
      kilni_base_str_add_cstr(str,
                              "the driver's linker does not do link-time "
                              "optimisation and does not accept LTO-IR");
      return;
    case BLOCK_OUTPUT:
      kilni_base_str_addf(str, "the driver's linker makes cubins only, not %s",
                          kiln_code_format_name(question->output));
      return;
    default:
      kilni_base_str_addf(str,
                          "the linker of the driver of CUDA %s is too old for ",
                          line_text(question->facts->driver.line).text);
      add_input(str, question->facts, judged->input);
  }
}

static kiln_status_t because_str(kiln_link_choice_t* choice,
                                 kilni_base_str_t* str) {
  kiln_status_t status = kilni_base_str_status(str);
  if (kiln_status_is_ok(status)) {
    status = kilni_compile_link_choice_because(choice, "%s",
                                               kilni_base_str_cstr(str));
  }
  kilni_base_str_deinit(str);
  return status;
}

// ---- Taking one ----

static void note_verdict(kiln_link_choice_t* choice, const judged_t* judged) {
  choice->verdict = judged->promised && judged->lines_known && !judged->early
                        ? KILN_COMPAT_VERDICT_COMPATIBLE
                        : KILN_COMPAT_VERDICT_UNKNOWN;
}

// What is not promised about the one that is taken.
static kiln_status_t say_doubts(kiln_link_choice_t* choice,
                                const question_t* question,
                                const judged_t* judged) {
  note_verdict(choice, judged);
  if (!judged->promised) {
    kilni_base_str_t text;
    kilni_base_str_init(&text, choice->allocator, MESSAGE_BYTES);
    kilni_base_str_add_cstr(&text, "it is not documented to link ");
    add_input(&text, question->facts, judged->input);
    KILNI_RETURN_IF_ERROR(because_str(choice, &text));
  }
  if (judged->early) {
    KILNI_RETURN_IF_ERROR(kilni_compile_link_choice_because(
        choice, "relocatable code of an nvJitLink before %s is not documented",
        line_text(LINE_RELOCATABLE).text));
  }
  if (judged->lines_known) return kiln_ok();
  return kilni_compile_link_choice_because(
      choice,
      "the version of an input or of the linker is unknown and counts as "
      "compatible");
}

static kiln_status_t take_nvjitlink(kiln_link_choice_t* choice,
                                    const question_t* question, uint32_t index,
                                    const judged_t* judged) {
  const kiln_compat_driver_t* driver = &question->facts->driver;
  uint32_t line = question->facts->nvjitlinks[index];
  line_text_t version = line_text(line);
  choice->backend = KILN_LINK_BACKEND_NVJITLINK;
  choice->nvjitlink = index;
  KILNI_RETURN_IF_ERROR(say_doubts(choice, question, judged));
  if (driver->state != KILN_COMPAT_DRIVER_KNOWN) {
    return kilni_compile_link_choice_because(
        choice, "nvJitLink %s links: %s, which counts as new enough",
        version.text,
        driver->state == KILN_COMPAT_DRIVER_NONE
            ? "there is no driver here"
            : "the driver's version is unknown");
  }
  line_text_t loader = line_text(driver->line);
  if (line <= driver->line) {
    return kilni_compile_link_choice_because(
        choice,
        "nvJitLink %s links: the driver of CUDA %s is not older and loads what "
        "it makes",
        version.text, loader.text);
  }
  return kilni_compile_link_choice_because(
      choice, "nvJitLink %s links: it is newer than the driver of CUDA %s, %s",
      version.text, loader.text,
      question->output != KILN_CODE_FORMAT_CUBIN
          ? "and its output does not depend on that"
          : "of the same major, whose drivers load each other's cubins");
}

static kiln_status_t take_driver(kiln_link_choice_t* choice,
                                 const question_t* question,
                                 const judged_t* judged) {
  const kiln_compat_driver_t* driver = &question->facts->driver;
  choice->backend = KILN_LINK_BACKEND_DRIVER;
  KILNI_RETURN_IF_ERROR(say_doubts(choice, question, judged));
  if (driver->state != KILN_COMPAT_DRIVER_KNOWN) {
    return kilni_compile_link_choice_because(
        choice,
        "the driver links: its version is unknown, which counts as new enough");
  }
  return kilni_compile_link_choice_because(
      choice, "the driver of CUDA %s links: it loads what it makes",
      line_text(driver->line).text);
}

// ---- Refusing ----

// The newest release that any input needs of a linker.
static uint32_t needed_line(const question_t* question) {
  const kiln_link_facts_t* facts = question->facts;
  uint32_t line = least_line(question);
  for (uint32_t i = 0; i < facts->input_count; i++) {
    const kiln_link_input_fact_t* input = &facts->inputs[i];
    if (input->line <= line ||
        (input->format == KILN_CODE_FORMAT_PTX && input->ptx_isa != 0)) {
      continue;
    }
    line = input->line;
  }
  return line;
}

static uint32_t needed_isa(const question_t* question) {
  const kiln_link_facts_t* facts = question->facts;
  uint32_t isa = 0;
  for (uint32_t i = 0; i < facts->input_count; i++) {
    const kiln_link_input_fact_t* input = &facts->inputs[i];
    if (input->format == KILN_CODE_FORMAT_PTX && input->ptx_isa > isa) {
      isa = input->ptx_isa;
    }
  }
  return isa;
}

// The first release whose tools write PTX of `isa`; 0 if none is known.
static uint32_t line_of_isa(uint32_t isa) {
  for (uint32_t major = 11; isa != 0 && major < 20; major++) {
    for (uint32_t minor = 0; minor < 10; minor++) {
      uint32_t line = kiln_compat_line_make(major, minor);
      if (kiln_compat_line_ptx_isa(line) >= isa) return line;
    }
  }
  return 0;
}

// Which nvJitLink would do, or which driver.
static void link_choose_advise(kilni_base_str_t* fix,
                               const question_t* question) {
  const kiln_compat_driver_t* driver = &question->facts->driver;
  uint32_t from = needed_line(question);
  uint32_t of_isa = line_of_isa(needed_isa(question));
  if (of_isa > from) from = of_isa;
  uint32_t major = kiln_compat_line_major(from);
  bool known = driver->state == KILN_COMPAT_DRIVER_KNOWN;
  if (known && kiln_compat_line_major(driver->line) > major &&
      !question->has_ltoir) {
    major = kiln_compat_line_major(driver->line);
    from = kiln_compat_line_make(major, 0);
  }
  uint32_t to = kiln_compat_line_make(major + 1, 0);
  if (known && question->output == KILN_CODE_FORMAT_PTX &&
      driver->line + 10 < to) {
    to = driver->line + 10;
  }
  if (!loads(question, from)) {
    kilni_base_str_addf(fix,
                        "install a driver of CUDA %s or newer: no older driver "
                        "loads the output of the linker that this needs",
                        line_text(from).text);
    return;
  }
  line_text_t least = line_text(from);
  line_text_t end = line_text(to);
  kilni_base_str_addf(fix,
                      "install an nvJitLink from %s up to, not including, %s: "
                      "`python3 -m pip install "
                      "\"nvidia-nvjitlink%s>=%s,<%s\"`" KILNI_FIX_ENVIRONMENT,
                      least.text, end.text, major < 13 ? "-cu12" : "",
                      least.text, end.text);
}

static kiln_status_code_t refusal_code(block_t block) {
  if (block == BLOCK_INPUT || block == BLOCK_LOAD) {
    return KILN_STATUS_INCOMPATIBLE;
  }
  if (block == BLOCK_DEVICE) return KILN_STATUS_INVALID_STATE;
  return block == BLOCK_ABSENT ? KILN_STATUS_NOT_FOUND
                               : KILN_STATUS_UNSUPPORTED;
}

// The candidate whose problem is the message: the first nvJitLink that is one,
// else the driver.
static kiln_status_t link_choose_refuse(kiln_link_choice_t* choice,
                                        const question_t* question) {
  const kiln_link_facts_t* facts = question->facts;
  kilni_base_str_t message;
  kilni_base_str_t fix;
  kilni_base_str_init(&message, choice->allocator, MESSAGE_BYTES);
  kilni_base_str_init(&fix, choice->allocator, MESSAGE_BYTES);
  judged_t driver = judge_driver(question);
  judged_t first = {BLOCK_NOTHING, 0, true, true, false};
  uint32_t index = 0;
  if (facts->backend != KILN_LINK_BACKEND_DRIVER) {
    for (; index < facts->nvjitlink_count; index++) {
      first = judge_nvjitlink(question, facts->nvjitlinks[index]);
      if (first.block > BLOCK_UNKNOWN) break;
    }
  }
  kiln_status_code_t code = refusal_code(driver.block);
  if (first.block > BLOCK_UNKNOWN) {
    code = refusal_code(first.block);
    say_blocked(&message, question, index, &first);
    if (facts->backend == KILN_LINK_BACKEND_AUTO) {
      kilni_base_str_add_cstr(&message, "; ");
      say_driver_blocked(&message, question, &driver);
    }
  } else if (facts->backend == KILN_LINK_BACKEND_DRIVER) {
    say_driver_blocked(&message, question, &driver);
  } else {
    if (facts->backend == KILN_LINK_BACKEND_NVJITLINK ||
        driver.block != BLOCK_ABSENT) {
      code = KILN_STATUS_UNSUPPORTED;
    }
    kilni_base_str_add_cstr(&message, "no usable nvJitLink was found");
    if (facts->backend == KILN_LINK_BACKEND_AUTO) {
      kilni_base_str_add_cstr(&message, ", and ");
      say_driver_blocked(&message, question, &driver);
    }
  }
  if (driver.block == BLOCK_DEVICE &&
      facts->backend != KILN_LINK_BACKEND_NVJITLINK) {
    code = KILN_STATUS_INVALID_STATE;
    kilni_base_str_add_cstr(&fix, "open the linker with a device, or ");
  }
  if (facts->backend == KILN_LINK_BACKEND_DRIVER) {
    kilni_base_str_add_cstr(&fix, "leave the choice to Kiln (auto), or ");
  }
  if (first.block == BLOCK_FINISHED) {
    kilni_base_str_addf(
        &fix,
        "compile \"%s\" with relocatable device code (`-rdc=true`), "
        "or give it as PTX",
        input_name(facts, question->finished));
  } else {
    link_choose_advise(&fix, question);
  }
  return kilni_compile_link_choice_refuse(choice, code, &message, &fix);
}

// ---- Choosing ----

// How good a candidate is: 0 is none.
static uint32_t rank(const judged_t* judged) {
  if (judged->block != BLOCK_NOTHING) return 0;
  return judged->promised && !judged->early ? 2 : 1;
}

static kiln_status_t choose_into(kiln_link_choice_t* choice,
                                 const question_t* question) {
  const kiln_link_facts_t* facts = question->facts;
  judged_t best = {BLOCK_ABSENT, 0, false, false, false};
  uint32_t best_index = UINT32_MAX;
  uint32_t count =
      facts->backend == KILN_LINK_BACKEND_DRIVER ? 0 : facts->nvjitlink_count;
  for (uint32_t i = 0; i < count; i++) {
    judged_t judged = judge_nvjitlink(question, facts->nvjitlinks[i]);
    if (rank(&judged) > rank(&best)) {
      best = judged;
      best_index = i;
    }
    if (judged.block == BLOCK_NOTHING) continue;
    kilni_base_str_t text;
    kilni_base_str_init(&text, choice->allocator, MESSAGE_BYTES);
    say_blocked(&text, question, i, &judged);
    KILNI_RETURN_IF_ERROR(because_str(choice, &text));
  }
  if (count == 0 && facts->backend != KILN_LINK_BACKEND_DRIVER) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_link_choice_because(choice, "there is no nvJitLink"));
  }
  judged_t driver = judge_driver(question);
  bool may_drive = facts->backend != KILN_LINK_BACKEND_NVJITLINK;
  if (may_drive && rank(&driver) > rank(&best)) {
    return take_driver(choice, question, &driver);
  }
  if (rank(&best) > 0) {
    return take_nvjitlink(choice, question, best_index, &best);
  }
  if (may_drive) {
    kilni_base_str_t text;
    kilni_base_str_init(&text, choice->allocator, MESSAGE_BYTES);
    say_driver_blocked(&text, question, &driver);
    KILNI_RETURN_IF_ERROR(because_str(choice, &text));
  }
  return link_choose_refuse(choice, question);
}

kiln_status_t kiln_link_choose(const kiln_link_facts_t* facts,
                               const kiln_allocator_t* allocator,
                               kiln_link_choice_t** out_choice) {
  KILNI_CHECK_ARGUMENT(out_choice != NULL, "out_choice");
  *out_choice = NULL;
  KILNI_CHECK_ARGUMENT(facts != NULL, "facts");
  kiln_link_facts_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(facts, "kiln_link_facts_t",
                                                sizeof(given), &given));
  question_t question;
  KILNI_RETURN_IF_ERROR(read_question(&given, &question));
  kiln_link_choice_t* choice = NULL;
  KILNI_RETURN_IF_ERROR(kilni_compile_link_choice_create(
      allocator != NULL ? *allocator : kiln_allocator_libc(), &choice));
  choice->output = question.output;
  choice->lto = question.lto;
  kiln_status_t status = choose_into(choice, &question);
  if (!kiln_status_is_ok(status)) {
    kiln_link_choice_release(choice);
    return status;
  }
  *out_choice = choice;
  return kiln_ok();
}
