// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: the public call.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "program/ir/program_check.h"
#include "program/ir/program_object.h"
#include "program/ir/program_report.h"
#include "program/text/program_reader.h"

enum { MAX_DEFINES = 64 };

// Which define before `index` has its name; `index` itself if none has.
static uint32_t first_of_name(const kiln_program_parse_options_t* options,
                              uint32_t index) {
  uint32_t i = 0;
  while (i < index &&
         strcmp(options->defines[i].name, options->defines[index].name) != 0) {
    i++;
  }
  return i;
}

static kiln_status_t read_check_arguments(
    kiln_string_view_t text, const kiln_program_parse_options_t* options) {
  if (text.size > KILNI_TEXT_MAX_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a program of %zu bytes; the limit is %d",
                   text.size, KILNI_TEXT_MAX_BYTES),
        "divide it into several programs");
  }
  if (options->define_count > MAX_DEFINES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "%u defines; the limit is %d",
                   options->define_count, MAX_DEFINES),
        "write some of the values into the text");
  }
  if (options->defines == NULL && options->define_count != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "%u defines, and `defines` is NULL",
                   options->define_count),
        "point `defines` at them, or set define_count to 0");
  }
  for (uint32_t i = 0; i < options->define_count; i++) {
    const kiln_program_define_t* define = &options->defines[i];
    if (define->name == NULL || define->value == NULL ||
        strlen(define->value) > KILNI_TEXT_MAX_BYTES) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "define %u has no name or value", i),
          "give it both");
    }
    if (first_of_name(options, i) != i) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is defined twice", define->name),
          "define it once");
    }
  }
  return kiln_ok();
}

static kiln_status_t check_defines(const kilni_program_reader_t* reader) {
  for (uint32_t i = 0; i < reader->define_count; i++) {
    if ((reader->defines_used >> i & 1) == 0) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(NOT_FOUND, "the text has no const or type \"%s\"",
                     reader->defines[i].name),
          "define what the text declares");
    }
  }
  return kiln_ok();
}

// A problem that the validator found, where its record stands.
static void read_tell(const kilni_program_problem_t* problem, void* user) {
  kilni_program_reader_t* reader = user;
  // The program's own place is with the scalars, of which 0 is none.
  uint32_t kind =
      problem->kind == KILNI_IR_PROGRAM ? KILNI_IR_SCALAR : problem->kind;
  uint32_t at = kilni_program_reader_placed(reader, kind, problem->index);
  if (problem->is_note) {
    kilni_program_reader_note(reader, at, problem->rule, problem->detail);
  } else {
    kilni_program_reader_error(reader, at, problem->rule, problem->fix, "%s",
                               problem->detail);
  }
}

static kiln_status_t program_read_read_text(kilni_program_reader_t* reader) {
  KILNI_RETURN_IF_ERROR(kilni_program_symbols_init(reader));
  kilni_program_reader_file(reader);
  KILNI_RETURN_IF_ERROR(kilni_program_ir_status(reader->ir));
  if (kilni_program_report_errors(reader->report) == 0) {
    KILNI_RETURN_IF_ERROR(check_defines(reader));
    KILNI_RETURN_IF_ERROR(
        kilni_program_ir_check(reader->ir, false, read_tell, reader));
  }
  return kilni_program_report_end(reader->report);
}

static void end_reader(kilni_program_reader_t* reader) {
  for (uint32_t kind = 0; kind < KILNI_IR_KIND_COUNT; kind++) {
    kilni_base_free_array(reader->allocator, reader->places[kind].items,
                          reader->places[kind].capacity, sizeof(uint32_t));
  }
  kilni_program_symbols_deinit(reader);
}

static kiln_status_t read_parse(kiln_string_view_t text,
                                const kiln_program_parse_options_t* options,
                                kiln_program_report_t* report,
                                kilni_program_ir_t* ir) {
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(ir->allocator, sizeof(kilni_program_reader_t), &block));
  kilni_program_reader_t* reader = block;
  reader->ir = ir;
  reader->allocator = ir->allocator;
  reader->report = report;
  reader->text = text;
  reader->defines = options->defines;
  reader->define_count = options->define_count;
  kilni_program_lexer_init(&reader->lexer, text);
  kiln_status_t status = program_read_read_text(reader);
  end_reader(reader);
  kilni_base_free(ir->allocator, reader, sizeof(*reader));
  return status;
}

// Editors on some systems mark UTF-8 by three bytes in front.
static kiln_string_view_t without_mark(kiln_string_view_t text) {
  static const char kMark[] = "\xef\xbb\xbf";
  if (text.data == NULL) return (kiln_string_view_t){"", 0};
  if (text.size < 3 || memcmp(text.data, kMark, 3) != 0) return text;
  return (kiln_string_view_t){text.data + 3, text.size - 3};
}

kiln_status_t kiln_program_parse(kiln_string_view_t text,
                                 const kiln_program_parse_options_t* options,
                                 kiln_program_report_t** out_report,
                                 kiln_program_t** out_program) {
  if (out_report != NULL) *out_report = NULL;
  KILNI_CHECK_ARGUMENT(out_program != NULL, "out_program");
  *out_program = NULL;
  KILNI_CHECK_ARGUMENT(text.data != NULL || text.size == 0, "text");
  kiln_program_parse_options_t how;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_program_parse_options_t", sizeof(how), &how));
  KILNI_RETURN_IF_ERROR(read_check_arguments(text, &how));
  kilni_program_ir_t ir;
  kilni_program_ir_init(
      &ir, how.allocator != NULL ? *how.allocator : kiln_allocator_libc());
  kiln_program_report_t* report;
  KILNI_RETURN_IF_ERROR(kilni_program_report_create(
      ir.allocator, how.file_name != NULL ? how.file_name : "program.kiln",
      &report));
  kiln_status_t status = read_parse(without_mark(text), &how, report, &ir);
  if (kiln_status_is_ok(status)) {
    status = kilni_program_create(&ir, out_program);
  } else {
    kilni_program_ir_deinit(&ir);
  }
  bool tells = kiln_status_is_ok(status) ||
               kiln_status_code(status) == KILN_STATUS_COMPILE_FAILED;
  if (out_report != NULL && tells) {
    *out_report = report;
  } else {
    kiln_program_report_release(report);
  }
  return status;
}
