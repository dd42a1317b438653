// SPDX-License-Identifier: Apache-2.0
//
// compile: one link, from its inputs to its code.
//
// The choice of a linker depends on the inputs, so nothing begins before the
// last of them is added: adding only records, and kiln_link_finish passes all
// of it to the backend. Logs are copied out of the backend while it lives.
#include <string.h>

#include "base/fix_words.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "compile/link_inside.h"
#include "compile/link_text.h"
#include "image/image.h"

enum {
  MAX_FILE_BYTES = INT32_MAX,
  MAX_LOG_BYTES = 1 << 30,
  LOG_COUNT = 2,
};

// The state of a link.
typedef enum stage_t { OPEN, FINISHED, CLOSED } stage_t;

// An earlier state of a log; it stays for callers that have read it. one-thread
typedef struct log_t log_t;
struct log_t {
  log_t* older;
  char* text;
};

struct kiln_link_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  kiln_linker_t* linker;  // NULL once closed
  atomic_uint references;
  stage_t stage;
  kilni_compile_link_options_copy_t options;
  kiln_code_t** inputs;
  size_t input_count;
  size_t input_capacity;
  kiln_link_choice_t* chosen;
  kiln_link_settings_t* used;
  kilni_base_mutex_t lock;  // guards `logs`
  bool has_lock;
  log_t* logs[LOG_COUNT];
  uint32_t cache;   // KILN_LINK_CACHE_*
  bool is_doubted;  // an input is damaged, and was linked
  const char* cache_reason;
};

// ---- Creation and end ----

static void drop_inputs(kiln_link_t* link) {
  for (size_t i = 0; i < link->input_count; i++) {
    kiln_code_release(link->inputs[i]);
  }
  kilni_base_free_array(link->host->allocator, link->inputs,
                        link->input_capacity, sizeof(kiln_code_t*));
  link->inputs = NULL;
  link->input_count = 0;
  link->input_capacity = 0;
}

static void link_run_destroy(kiln_link_t* link) {
  kiln_allocator_t allocator = link->host->allocator;
  kilni_base_keep_t keep = link->keep;
  kiln_link_close(link);
  kiln_link_choice_release(link->chosen);
  kiln_link_settings_release(link->used);
  for (size_t i = 0; i < LOG_COUNT; i++) {
    while (link->logs[i] != NULL) {
      log_t* log = link->logs[i];
      link->logs[i] = log->older;
      kilni_base_strfree(allocator, log->text);
      kilni_base_free(allocator, log, sizeof(*log));
    }
  }
  kilni_compile_link_options_free(&link->options);
  if (link->has_lock) kilni_base_mutex_deinit(&link->lock);
  kilni_base_free(allocator, link, sizeof(*link));
  kilni_base_keep_release(keep);
}

kiln_status_t kiln_link_create(kiln_linker_t* linker,
                               const kiln_link_options_t* options,
                               kiln_link_t** out_link) {
  KILNI_CHECK_ARGUMENT(out_link != NULL, "out_link");
  *out_link = NULL;
  KILNI_CHECK_ARGUMENT(linker != NULL, "linker");
  const kiln_host_t* host = kilni_compile_linker_host(linker);
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(host));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(host->allocator, sizeof(kiln_link_t), &block));
  kiln_link_t* link = block;
  link->host = host;
  link->keep = kilni_compile_linker_keep(linker);
  link->linker = linker;
  kilni_base_keep_retain(link->keep);
  kiln_linker_retain(linker);
  link->cache_reason = "";
  atomic_init(&link->references, 1);
  kiln_status_t status = kilni_base_mutex_init(&link->lock);
  link->has_lock = kiln_status_is_ok(status);
  if (kiln_status_is_ok(status)) {
    status = kilni_compile_link_options_copy(options, host->allocator,
                                             &link->options);
  }
  if (!kiln_status_is_ok(status)) {
    link_run_destroy(link);
    return status;
  }
  *out_link = link;
  return kiln_ok();
}

void kiln_link_retain(kiln_link_t* link) {
  if (link == NULL) return;
  atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
}

void kiln_link_release(kiln_link_t* link) {
  if (link == NULL || kilni_base_host_is_forked(link->host)) return;
  if (atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) ==
      1) {
    link_run_destroy(link);
  }
}

void kiln_link_close(kiln_link_t* link) {
  if (link == NULL || kilni_base_host_is_forked(link->host)) return;
  drop_inputs(link);
  kiln_linker_release(link->linker);
  link->linker = NULL;
  link->stage = CLOSED;
}

// OK while inputs may be added and nothing was linked.
static kiln_status_t link_run_check_open(const kiln_link_t* link) {
  KILNI_CHECK_ARGUMENT(link != NULL, "link");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(link->host));
  if (link->stage == OPEN) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "the link has been %s",
                 link->stage == CLOSED ? "closed" : "finished"),
      "create another link; the logs of this one can still be read");
}

// ---- Inputs ----

kiln_status_t kiln_link_add(kiln_link_t* link, kiln_code_t* code) {
  KILNI_RETURN_IF_ERROR(link_run_check_open(link));
  KILNI_CHECK_ARGUMENT(code != NULL, "code");
  uint32_t format = kiln_code_format(code);
  if (format == KILN_CODE_FORMAT_NVVM) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "no linker accepts \"%s\", of format %s",
                   kiln_code_name(code), kiln_code_format_name(format)),
        "compile it first: to PTX, a cubin or LTO-IR");
  }
  if (link->input_count == KILN_LINK_MAX_INPUTS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a link of more than %d inputs",
                   KILN_LINK_MAX_INPUTS),
        "put them into an archive, or link in two steps");
  }
  void* inputs = link->inputs;
  KILNI_RETURN_IF_ERROR(
      kilni_base_grow(link->host->allocator, link->input_count + 1,
                      sizeof(kiln_code_t*), &link->input_capacity, &inputs));
  link->inputs = inputs;
  link->inputs[link->input_count++] = code;
  kiln_code_retain(code);
  return kiln_ok();
}

kiln_status_t kiln_link_add_bytes(kiln_link_t* link, kiln_bytes_view_t bytes,
                                  uint32_t format, const char* name) {
  KILNI_RETURN_IF_ERROR(link_run_check_open(link));
  kiln_code_options_t options = kiln_code_options_default();
  options.format = format;
  options.name = name != NULL ? name : "input";
  options.allocator = &link->host->allocator;
  kiln_code_t* code = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_image_code_create(bytes, &options, link->keep, &code));
  kiln_status_t status = kiln_link_add(link, code);
  kiln_code_release(code);
  return status;
}

kiln_status_t kiln_link_add_file(kiln_link_t* link, const char* path,
                                 uint32_t format) {
  KILNI_RETURN_IF_ERROR(link_run_check_open(link));
  KILNI_CHECK_ARGUMENT(path != NULL, "path");
  kiln_allocator_t allocator = link->host->allocator;
  uint8_t* data = NULL;
  size_t size = 0;
  KILNI_RETURN_IF_ERROR(
      kilni_base_file_read(allocator, path, MAX_FILE_BYTES, &data, &size));
  kiln_status_t status =
      kiln_link_add_bytes(link, (kiln_bytes_view_t){data, size}, format, path);
  kilni_base_file_free(allocator, data, size);
  return status;
}

// ---- The choice ----

static kiln_status_t link_run_choose(kiln_link_t* link,
                                     kiln_link_choice_t** out_choice) {
  kiln_allocator_t allocator = link->host->allocator;
  const kiln_link_options_t* options = &link->options.options;
  void* block = NULL;
  *out_choice = NULL;
  if (link->input_count == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a link without inputs"),
        "add at least one: PTX, a cubin, a fatbin, an object, an archive or "
        "LTO-IR");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, link->input_count, sizeof(kiln_link_input_fact_t), &block));
  kiln_link_input_fact_t* inputs = block;
  for (size_t i = 0; i < link->input_count; i++) {
    kiln_link_input_fact_of(link->inputs[i], &inputs[i]);
  }
  kiln_link_facts_t facts = kiln_link_facts_default();
  facts.backend = options->backend;
  facts.output = options->output;
  facts.lto = options->lto;
  facts.inputs = inputs;
  facts.input_count = (uint32_t)link->input_count;
  kiln_status_t status =
      kilni_compile_linker_choose(link->linker, &facts, out_choice);
  kilni_base_free_array(allocator, block, link->input_count,
                        sizeof(kiln_link_input_fact_t));
  return status;
}

kiln_status_t kiln_link_explain(kiln_link_t* link,
                                kiln_link_choice_t** out_choice) {
  KILNI_CHECK_ARGUMENT(out_choice != NULL, "out_choice");
  *out_choice = NULL;
  KILNI_RETURN_IF_ERROR(link_run_check_open(link));
  return link_run_choose(link, out_choice);
}

// Why no linker links. For an input that cannot be read that is the reason, not
// its apparent contents.
static kiln_status_t refusal(const kiln_link_t* link,
                             const kiln_link_choice_t* choice) {
  kiln_status_t status = kiln_link_choice_status(choice);
  if (kiln_status_is_ok(status)) return status;
  for (size_t i = 0; i < link->input_count; i++) {
    kiln_status_t damage = kilni_compile_link_input_damage(link->inputs[i]);
    if (kiln_status_is_ok(damage)) continue;
    kiln_status_free(status);
    return damage;
  }
  return kilni_compile_linker_annotate(link->linker, status);
}

static const char* link_run_arch_of(const kiln_link_t* link) {
  const char* arch = link->options.options.arch;
  if (arch == NULL) arch = kilni_compile_linker_arch(link->linker);
  return arch != NULL ? arch : "";
}

// Names can only be compared with those of a cubin.
static bool may_crash(const kiln_link_t* link,
                      const kiln_link_choice_t* choice) {
  return link->options.options.isolated == KILN_SWITCH_ON &&
         kiln_link_choice_output(choice) == KILN_CODE_FORMAT_CUBIN;
}

static kilni_compile_link_given_t given_of(const kiln_link_t* link,
                                           const kiln_link_choice_t* choice) {
  return (kilni_compile_link_given_t){link->host->allocator,
                                      link->inputs,
                                      link->input_count,
                                      link_run_arch_of(link),
                                      kiln_link_choice_backend(choice),
                                      kiln_link_choice_lto(choice),
                                      may_crash(link, choice),
                                      &link->options.options};
}

static kiln_status_t make_settings(kiln_link_t* link,
                                   const kiln_link_choice_t* choice,
                                   kiln_link_settings_t** out_settings) {
  uint32_t output = kiln_link_choice_output(choice);
  kilni_compile_link_aim_t aim = {kiln_link_choice_backend(choice), output,
                                  kiln_link_choice_lto(choice),
                                  kilni_compile_linker_arch(link->linker)};
  kilni_compile_link_given_t given = given_of(link, choice);
  KILNI_RETURN_IF_ERROR(kilni_compile_link_settings_make(
      &link->options.options, &aim, link->host->allocator, out_settings));
  kiln_status_t status =
      kilni_compile_link_check_effect(&given, output, *out_settings);
  if (kiln_status_is_ok(status)) return status;
  kiln_link_settings_release(*out_settings);
  *out_settings = NULL;
  return status;
}

kiln_status_t kiln_link_settings(kiln_link_t* link,
                                 kiln_link_settings_t** out_settings) {
  KILNI_CHECK_ARGUMENT(out_settings != NULL, "out_settings");
  *out_settings = NULL;
  KILNI_RETURN_IF_ERROR(link_run_check_open(link));
  kiln_link_choice_t* choice = NULL;
  KILNI_RETURN_IF_ERROR(link_run_choose(link, &choice));
  kiln_status_t status = kiln_link_choice_status(choice);
  if (kiln_status_is_ok(status)) {
    status = make_settings(link, choice, out_settings);
  }
  kiln_link_choice_release(choice);
  return status;
}

// ---- Logs ----

static const char* log_at(kiln_link_t* link, size_t index) {
  kilni_base_mutex_lock(&link->lock);
  const char* text = link->logs[index] != NULL ? link->logs[index]->text : "";
  kilni_base_mutex_unlock(&link->lock);
  return text;
}

const char* kiln_link_log(kiln_link_t* link, uint32_t which) {
  if (link == NULL ||
      (which != KILN_LINK_LOG_ERROR && which != KILN_LINK_LOG_INFO)) {
    return "";
  }
  return log_at(link, which - KILN_LINK_LOG_ERROR);
}

static kiln_status_t keep_log(kiln_link_t* link, size_t index,
                              kilni_base_str_t* text) {
  kiln_allocator_t allocator = link->host->allocator;
  void* block = NULL;
  kiln_status_t status = kilni_base_alloc(allocator, sizeof(log_t), &block);
  log_t* log = block;
  if (!kiln_status_is_ok(status)) {
    kilni_base_str_deinit(text);
    return status;
  }
  status = kilni_base_str_take(text, &log->text);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, log, sizeof(*log));
    return status;
  }
  kilni_base_mutex_lock(&link->lock);
  log->older = link->logs[index];
  link->logs[index] = log;
  kilni_base_mutex_unlock(&link->lock);
  return kiln_ok();
}

// Copies the logs out of the backend, where they have new text.
static kiln_status_t take_logs(kiln_link_t* link,
                               const kilni_compile_link_backend_t* backend,
                               void* session) {
  for (uint32_t i = 0; i < LOG_COUNT; i++) {
    kilni_base_str_t text;
    kilni_base_str_init(&text, link->host->allocator, MAX_LOG_BYTES);
    kiln_status_t status =
        backend->log(session, i + KILN_LINK_LOG_ERROR, &text);
    if (!kiln_status_is_ok(status) ||
        strcmp(kilni_base_str_cstr(&text), log_at(link, i)) == 0) {
      kilni_base_str_deinit(&text);
    } else {
      status = keep_log(link, i, &text);
    }
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

// ---- Linking ----

// What a link is made into. one-thread
typedef struct made_t {
  kiln_link_t* link;
  const kilni_compile_link_backend_t* backend;
  kiln_code_t* code;
} made_t;

static uint32_t count_names(const kiln_link_t* link) {
  uint32_t count = 0;
  for (size_t i = 0; i < link->input_count; i++) {
    count += kiln_code_lowered_count(link->inputs[i]);
  }
  return count;
}

static bool link_run_has_name(const kiln_code_name_t* names, uint32_t count,
                              const char* expression) {
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(names[i].expression, expression) == 0) return true;
  }
  return false;
}

// The lowered names of all inputs, the first of each expression.
static uint32_t gather_names(const kiln_link_t* link, kiln_code_name_t* names) {
  uint32_t count = 0;
  for (size_t i = 0; i < link->input_count; i++) {
    uint32_t own = kiln_code_lowered_count(link->inputs[i]);
    for (uint32_t k = 0; k < own; k++) {
      const kiln_code_name_t* name = kiln_code_lowered(link->inputs[i], k);
      if (!link_run_has_name(names, count, name->expression)) {
        names[count++] = *name;
      }
    }
  }
  return count;
}

// The driver of the software device gives back PTX; so its format is seen.
static uint32_t link_run_format_of(const made_t* made,
                                   kiln_bytes_view_t bytes) {
  uint32_t asked = kiln_link_choice_output(made->link->chosen);
  if (made->backend->kind != KILN_LINK_BACKEND_DRIVER) return asked;
  uint32_t seen = kiln_code_format_of(bytes);
  return seen != KILN_CODE_FORMAT_UNKNOWN ? seen : asked;
}

static kiln_status_t link_run_make_code(kiln_link_t* link,
                                        kiln_bytes_view_t bytes,
                                        uint32_t format, uint32_t line,
                                        kiln_code_t** out_code) {
  kiln_allocator_t allocator = link->host->allocator;
  uint32_t space = count_names(link);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, space, sizeof(kiln_code_name_t), &block));
  const char* name = link->options.options.name;
  kiln_code_options_t options = kiln_code_options_default();
  options.format = format;
  options.name = name != NULL ? name : "linked";
  options.arch = link_run_arch_of(link);
  options.names = block;
  options.name_count = gather_names(link, block);
  options.producer_line = line;
  options.allocator = &allocator;
  kiln_status_t status =
      kilni_image_code_create(bytes, &options, link->keep, out_code);
  kilni_base_free_array(allocator, block, space, sizeof(kiln_code_name_t));
  return status;
}

static kiln_status_t take_made(void* user, kiln_bytes_view_t bytes) {
  made_t* made = user;
  return link_run_make_code(made->link, bytes, link_run_format_of(made, bytes),
                            made->backend->line, &made->code);
}

// `*out_input` is the one that failed, counted from 1; 0.
static kiln_status_t link_run_add_all(
    const kiln_link_t* link, const kilni_compile_link_backend_t* backend,
    void* session, size_t* out_input) {
  for (size_t i = 0; i < link->input_count; i++) {
    const kiln_code_t* code = link->inputs[i];
    kilni_compile_link_input_t input = {
        kiln_code_format(code), 0, kiln_code_name(code), kiln_code_bytes(code)};
    *out_input = i + 1;
    KILNI_RETURN_IF_ERROR(backend->add(session, &input));
  }
  *out_input = 0;
  return kiln_ok();
}

static kiln_status_t name_input(const kiln_link_t* link, size_t input,
                                kiln_status_t status) {
  if (input == 0) return status;
  const kiln_code_t* code = link->inputs[input - 1];
  return KILNI_ANNOTATE(status, "input %zu, \"%s\" (%s)", input,
                        kiln_code_name(code),
                        kiln_code_format_name(kiln_code_format(code)));
}

// The log's first error as the message; the backend's own message is kept as
// well.
static kiln_status_t with_log(kiln_link_t* link, kiln_status_t status) {
  kiln_string_view_t line =
      kilni_compile_link_first_error(kiln_link_log(link, KILN_LINK_LOG_ERROR));
  kiln_status_code_t code = kiln_status_code(status);
  if (line.size == 0 || code == KILN_STATUS_OUT_OF_MEMORY ||
      kilni_base_sv_equal_cstr(line, kiln_status_message(status))) {
    return status;
  }
  if (line.size > 1000) line.size = 1000;
  kiln_status_t better = kilni_base_status_make(
      code, KILNI_MODULE, __FILE__, __LINE__, "%.*s", KILNI_SV(line));
  kiln_status_native_t native;
  if (kiln_status_native(status, &native)) {
    better = kilni_base_status_with_native(better, native.domain, native.number,
                                           native.name);
  }
  const char* fix = kilni_compile_link_fix_of(line);
  if (fix == NULL) fix = kiln_status_fix(status);
  if (fix != NULL) better = kilni_base_status_with_fix(better, "%s", fix);
  better = KILNI_ANNOTATE(better, "%s", kiln_status_message(status));
  kiln_status_free(status);
  return better;
}

static kiln_status_t check_log(kiln_link_t* link) {
  kiln_string_view_t line = kilni_compile_link_reported_error(
      kiln_link_log(link, KILN_LINK_LOG_ERROR));
  if (line.size == 0) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED, "the linker reports both an error and success"),
      "read the link log");
}

static kiln_status_t play(kiln_link_t* link,
                          const kilni_compile_link_backend_t* backend,
                          const kilni_compile_link_given_t* given,
                          const kilni_compile_link_names_t* names,
                          kiln_code_t** out_code) {
  const char* name = link->options.options.name;
  kilni_compile_link_plan_t plan = {
      kiln_link_choice_output(link->chosen), (uint32_t)link->used->count,
      link->used->items, name != NULL ? name : "linked"};
  made_t made = {link, backend, NULL};
  kilni_compile_link_sink_t sink = {&made, take_made};
  void* session = NULL;
  size_t input = 0;
  kiln_status_t status = backend->begin(backend->self, &plan, &session);
  if (kiln_status_is_ok(status)) {
    status = link_run_add_all(link, backend, session, &input);
  }
  if (kiln_status_is_ok(status)) status = take_logs(link, backend, session);
  if (kiln_status_is_ok(status)) status = backend->finish(session, &sink);
  if (session != NULL) {
    kiln_status_t logs = take_logs(link, backend, session);
    if (kiln_status_is_ok(status)) status = check_log(link);
    if (kiln_status_is_ok(status)) {
      status = kilni_compile_link_check_kept(given, names, made.code);
    }
    if (kiln_status_is_ok(status)) {
      status = kilni_compile_link_check_expected(names, made.code);
    }
    if (kiln_status_is_ok(status)) {
      status = kilni_compile_link_check_lto_names(given, names, made.code);
    }
    if (!kiln_status_is_ok(status)) {
      status = name_input(link, input, with_log(link, status));
    }
    status = kilni_base_status_join(status, logs);
    backend->end(session);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_code_release(made.code);
    return status;
  }
  *out_code = made.code;
  return kiln_ok();
}

// Links once more, without names that are used, to find the existing names.
static kiln_status_t play_all(kiln_link_t* link,
                              const kilni_compile_link_backend_t* backend,
                              kiln_code_t** out_code) {
  kiln_link_options_t options = link->options.options;
  kiln_link_settings_t* settings = NULL;
  kilni_compile_link_aim_t aim = {kiln_link_choice_backend(link->chosen),
                                  kiln_link_choice_output(link->chosen),
                                  kiln_link_choice_lto(link->chosen),
                                  kilni_compile_linker_arch(link->linker)};
  options.kernels_used_count = 0;
  options.variables_used_count = 0;
  KILNI_RETURN_IF_ERROR(kilni_compile_link_settings_make(
      &options, &aim, link->host->allocator, &settings));
  kilni_compile_link_plan_t plan = {kiln_link_choice_output(link->chosen),
                                    (uint32_t)settings->count, settings->items,
                                    "linked"};
  made_t made = {link, backend, NULL};
  kilni_compile_link_sink_t sink = {&made, take_made};
  void* session = NULL;
  size_t input = 0;
  kiln_status_t status = backend->begin(backend->self, &plan, &session);
  if (kiln_status_is_ok(status)) {
    status = link_run_add_all(link, backend, session, &input);
  }
  if (kiln_status_is_ok(status)) status = backend->finish(session, &sink);
  backend->end(session);
  kiln_link_settings_release(settings);
  *out_code = made.code;
  return status;
}

// Whether the names that are used are there; `code` is what came out.
static kiln_status_t check_used(kiln_link_t* link,
                                const kilni_compile_link_backend_t* backend,
                                const kiln_code_t* code) {
  kiln_allocator_t allocator = link->host->allocator;
  kilni_compile_link_missing_t missing;
  kiln_code_t* all = NULL;
  KILNI_RETURN_IF_ERROR(kilni_compile_link_find_missing(
      &link->options.options, code, allocator, &missing));
  if (missing.name == NULL) return kiln_ok();
  kiln_status_t status = play_all(link, backend, &all);
  if (kiln_status_code(status) != KILN_STATUS_OUT_OF_MEMORY) {
    kiln_status_free(status);
    status = kilni_compile_link_missing_status(&missing, all, allocator);
  }
  kiln_code_release(all);
  return status;
}

// Chooses a linker, until the chosen one is what it seemed to be.
static kiln_status_t decide(kiln_link_t* link,
                            kilni_compile_link_backend_t* out_backend) {
  for (uint32_t i = 0; i <= KILN_LINK_MAX_NVJITLINKS; i++) {
    bool again = false;
    kiln_link_choice_release(link->chosen);
    link->chosen = NULL;
    KILNI_RETURN_IF_ERROR(link_run_choose(link, &link->chosen));
    KILNI_RETURN_IF_ERROR(refusal(link, link->chosen));
    KILNI_RETURN_IF_ERROR(kilni_compile_linker_backend(
        link->linker, link->chosen, &again, out_backend));
    if (!again) return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "no nvJitLink of this machine works"),
      "install one again, e.g. with `python3 -m pip install --force-reinstall "
      "nvidia-nvjitlink`" KILNI_FIX_ENVIRONMENT);
}

// Where the options request it, nvJitLink links elsewhere. The driver needs the
// context of this process.
static kiln_status_t isolate(const kiln_link_t* link,
                             kilni_compile_link_child_t* child,
                             kilni_compile_link_backend_t* inout_backend) {
  enum { DEFAULT_SECONDS = 600 };
  const kiln_link_options_t* options = &link->options.options;
  memset(child, 0, sizeof(*child));
  if (options->isolated != KILN_SWITCH_ON) return kiln_ok();
  if (inout_backend->kind != KILN_LINK_BACKEND_NVJITLINK) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "the driver is to link, and it links in this process only"),
        "leave `isolated` off, or ask for nvJitLink (`backend`)");
  }
  child->host = link->host;
  child->program = options->isolated_program;
  child->seconds = options->isolated_seconds != 0 ? options->isolated_seconds
                                                  : DEFAULT_SECONDS;
  kilni_compile_link_child_backend(child, inout_backend);
  return kiln_ok();
}

static kiln_status_t link_run_finish(kiln_link_t* link,
                                     kiln_code_t** out_code) {
  kilni_compile_link_backend_t backend;
  KILNI_RETURN_IF_ERROR(decide(link, &backend));
  KILNI_RETURN_IF_ERROR(make_settings(link, link->chosen, &link->used));
  link->stage = FINISHED;
  kilni_compile_link_given_t given = given_of(link, link->chosen);
  kilni_compile_link_names_t* names = NULL;
  kilni_compile_link_child_t child;
  KILNI_RETURN_IF_ERROR(kilni_compile_link_check_given(&given, &names));
  kiln_status_t status = isolate(link, &child, &backend);
  if (kiln_status_is_ok(status)) {
    status = play(link, &backend, &given, names, out_code);
  }
  if (kiln_status_is_ok(status)) {
    status = check_used(link, &backend, *out_code);
    if (!kiln_status_is_ok(status)) {
      kiln_code_release(*out_code);
      *out_code = NULL;
    }
  }
  if (!kiln_status_is_ok(status)) {
    status = kilni_compile_link_doubt_settle(names, status);
  } else if (kilni_compile_link_doubt(names) != NULL) {
    link->is_doubted = true;
    KILNI_LOG(&link->host->log, WARNING, "%s; nvJitLink linked it nevertheless",
              kilni_compile_link_doubt(names));
  }
  kilni_compile_link_names_free(names);
  return status;
}

// ---- The cache ----

// One link with a cache. one-thread
typedef struct cached_t {
  kiln_link_t* link;
  kiln_link_choice_t* choice;  // as it was when it was looked up
  kiln_link_settings_t* settings;
  const char* identity;
  uint32_t line;
  kiln_code_t* code;
} cached_t;

// Nothing was there. What links in the end may be another than was looked up.
static kiln_status_t link_for_cache(void* user,
                                    kilni_compile_link_product_t* out_product,
                                    bool* out_keep) {
  cached_t* cached = user;
  kiln_link_t* link = cached->link;
  const char* identity = NULL;
  uint32_t line = 0;
  KILNI_RETURN_IF_ERROR(link_run_finish(link, &cached->code));
  KILNI_RETURN_IF_ERROR(kilni_compile_linker_identity(
      link->linker, link->chosen, &identity, &line));
  bool is_same =
      line == cached->line && strcmp(identity, cached->identity) == 0;
  *out_keep = is_same && !link->is_doubted;
  out_product->bytes = kiln_code_bytes(cached->code);
  out_product->info = kilni_base_sv(kiln_link_log(link, KILN_LINK_LOG_INFO));
  out_product->error = kilni_base_sv(kiln_link_log(link, KILN_LINK_LOG_ERROR));
  out_product->format = kiln_code_format(cached->code);
  out_product->line = kiln_code_producer_line(cached->code);
  link->cache = *out_keep ? KILN_LINK_CACHE_MISS : KILN_LINK_CACHE_UNCACHEABLE;
  link->cache_reason =
      *out_keep ? "it was not present"
      : is_same ? "an input is damaged"
                : "another linker has replaced the one that was found";
  return kiln_ok();
}

static kiln_status_t keep_text(kiln_link_t* link, size_t index,
                               kiln_string_view_t from) {
  if (from.size == 0) return kiln_ok();
  kilni_base_str_t text;
  kilni_base_str_init(&text, link->host->allocator, MAX_LOG_BYTES);
  kilni_base_str_add(&text, from);
  return keep_log(link, index, &text);
}

static kiln_status_t take_from_cache(
    void* user, const kilni_compile_link_product_t* product) {
  cached_t* cached = user;
  kiln_link_t* link = cached->link;
  KILNI_RETURN_IF_ERROR(keep_text(link, 0, product->error));
  KILNI_RETURN_IF_ERROR(keep_text(link, 1, product->info));
  KILNI_RETURN_IF_ERROR(link_run_make_code(
      link, product->bytes, product->format, product->line, &cached->code));
  link->chosen = cached->choice;
  link->used = cached->settings;
  cached->choice = NULL;
  cached->settings = NULL;
  link->stage = FINISHED;
  link->cache = KILN_LINK_CACHE_HIT;
  return kiln_ok();
}

static const char* link_run_word_of(uint32_t from) {
  return from == KILN_CACHE_FROM_MEMORY ? "memory"
         : from == KILN_CACHE_FROM_DISK ? "disk"
                                        : "another version made it";
}

static kiln_status_t link_run_look_up(cached_t* cached) {
  kiln_link_t* link = cached->link;
  KILNI_RETURN_IF_ERROR(link_run_choose(link, &cached->choice));
  KILNI_RETURN_IF_ERROR(refusal(link, cached->choice));
  KILNI_RETURN_IF_ERROR(make_settings(link, cached->choice, &cached->settings));
  KILNI_RETURN_IF_ERROR(kilni_compile_linker_identity(
      link->linker, cached->choice, &cached->identity, &cached->line));
  kilni_compile_link_lookup_t lookup = {link->host->allocator,
                                        &link->options.options,
                                        cached->identity,
                                        cached->line,
                                        kiln_link_choice_output(cached->choice),
                                        cached->settings,
                                        link->inputs,
                                        link->input_count,
                                        link_for_cache,
                                        take_from_cache,
                                        cached};
  const char* reason = kilni_compile_link_uncacheable(&lookup);
  if (reason != NULL) {
    link->cache = KILN_LINK_CACHE_UNCACHEABLE;
    link->cache_reason = reason;
    return link_run_finish(link, &cached->code);
  }
  uint32_t from = KILN_CACHE_FROM_NOWHERE;
  KILNI_RETURN_IF_ERROR(kilni_compile_link_look_up(&lookup, &from));
  if (link->cache == KILN_LINK_CACHE_HIT) {
    link->cache_reason = link_run_word_of(from);
  }
  return kiln_ok();
}

static kiln_status_t finish_cached(kiln_link_t* link, kiln_code_t** out_code) {
  cached_t cached = {.link = link};
  kiln_status_t status = link_run_look_up(&cached);
  kiln_link_choice_release(cached.choice);
  kiln_link_settings_release(cached.settings);
  if (!kiln_status_is_ok(status)) {
    kiln_code_release(cached.code);
    return status;
  }
  *out_code = cached.code;
  return kiln_ok();
}

uint32_t kiln_link_cache(const kiln_link_t* link) {
  return link != NULL ? link->cache : (uint32_t)KILN_LINK_CACHE_NONE;
}

const char* kiln_link_cache_reason(const kiln_link_t* link) {
  return link != NULL ? link->cache_reason : "";
}

kiln_status_t kiln_link_finish(kiln_link_t* link, kiln_code_t** out_code) {
  KILNI_CHECK_ARGUMENT(out_code != NULL, "out_code");
  *out_code = NULL;
  KILNI_RETURN_IF_ERROR(link_run_check_open(link));
  return link->options.options.cache != NULL ? finish_cached(link, out_code)
                                             : link_run_finish(link, out_code);
}

const kiln_link_choice_t* kiln_link_chosen(const kiln_link_t* link) {
  return link != NULL ? link->chosen : NULL;
}

const kiln_link_settings_t* kiln_link_used(const kiln_link_t* link) {
  return link != NULL ? link->used : NULL;
}
