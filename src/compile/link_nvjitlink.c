// SPDX-License-Identifier: Apache-2.0
//
// compile: linking with nvJitLink.
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "compile/link_inside.h"
#include "table/nvjitlink_table.h"

enum { MAX_LOG_BYTES = 1 << 30 };

// One link of nvJitLink. one-thread
typedef struct session_t {
  const kilni_compile_link_nvjitlink_t* self;
  kiln_nvjitlink_handle_t handle;
  uint32_t output;
} session_t;

static kiln_allocator_t link_nvjitlink_allocator_of(
    const kilni_compile_link_nvjitlink_t* self) {
  return self->host->allocator;
}

static kiln_status_t call_create(session_t* session,
                                 const kilni_compile_link_plan_t* plan) {
  const kiln_nvjitlink_table_t* table = &session->self->table;
  kiln_allocator_t allocator = link_nvjitlink_allocator_of(session->self);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, plan->setting_count,
                                               sizeof(const char*), &block));
  const char** options = block;
  for (uint32_t i = 0; i < plan->setting_count; i++) {
    options[i] = plan->settings[i].text;
  }
  kiln_status_t status = KILNI_NVJITLINK_STATUS(
      table,
      table->nvJitLinkCreate(&session->handle, plan->setting_count, options),
      "nvJitLinkCreate");
  kilni_base_free_array(allocator, block, plan->setting_count,
                        sizeof(const char*));
  if (!kiln_status_is_ok(status)) {
    session->handle = NULL;
    for (uint32_t i = 0; i < plan->setting_count; i++) {
      status = KILNI_ANNOTATE(status, "option %s", plan->settings[i].text);
    }
  }
  return status;
}

static kiln_status_t link_nvjitlink_begin(void* self,
                                          const kilni_compile_link_plan_t* plan,
                                          void** out_session) {
  const kilni_compile_link_nvjitlink_t* backend = self;
  *out_session = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(link_nvjitlink_allocator_of(backend),
                                         sizeof(session_t), &block));
  session_t* session = block;
  session->self = backend;
  session->output = plan->output;
  kiln_status_t status = call_create(session, plan);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(link_nvjitlink_allocator_of(backend), session,
                    sizeof(*session));
    return status;
  }
  *out_session = session;
  return kiln_ok();
}

// What is not linked yet is a cubin to nvJitLink: as an object its symbols are
// dropped without a word.
static kiln_nvjitlink_input_t link_nvjitlink_kind_of(uint32_t format) {
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
      return KILN_NVJITLINK_INPUT_PTX;
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return KILN_NVJITLINK_INPUT_CUBIN;
    case KILN_CODE_FORMAT_FATBIN:
      return KILN_NVJITLINK_INPUT_FATBIN;
    case KILN_CODE_FORMAT_LTOIR:
      return KILN_NVJITLINK_INPUT_LTOIR;
    case KILN_CODE_FORMAT_OBJECT:
      return KILN_NVJITLINK_INPUT_OBJECT;
    case KILN_CODE_FORMAT_LIBRARY:
      return KILN_NVJITLINK_INPUT_LIBRARY;
    default:
      return KILN_NVJITLINK_INPUT_NONE;
  }
}

static kiln_status_t link_nvjitlink_add(
    void* opened, const kilni_compile_link_input_t* input) {
  session_t* session = opened;
  const kiln_nvjitlink_table_t* table = &session->self->table;
  kiln_nvjitlink_input_t kind = link_nvjitlink_kind_of(input->format);
  if (kind == KILN_NVJITLINK_INPUT_NONE) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "nvJitLink does not accept %s: \"%s\"",
                   kiln_code_format_name(input->format), input->name),
        "compile it first: to PTX, a cubin or LTO-IR");
  }
  return KILNI_NVJITLINK_STATUS(
      table,
      table->nvJitLinkAddData(session->handle, kind, input->bytes.data,
                              input->bytes.size, input->name),
      "nvJitLinkAddData");
}

// ---- What came out ----

static kiln_status_t ask_size(const session_t* session, size_t* out_size) {
  const kiln_nvjitlink_table_t* table = &session->self->table;
  kiln_nvjitlink_handle_t handle = session->handle;
  *out_size = 0;
  if (session->output == KILN_CODE_FORMAT_PTX) {
    return KILNI_NVJITLINK_STATUS(
        table, table->nvJitLinkGetLinkedPtxSize(handle, out_size),
        "nvJitLinkGetLinkedPtxSize");
  }
  if (session->output == KILN_CODE_FORMAT_LTOIR) {
    KILNI_RETURN_IF_ERROR(kilni_table_nvjitlink_need(
        table, KILNI_NVJITLINK_ROW_nvJitLinkGetLinkedLTOIRSize));
    return KILNI_NVJITLINK_STATUS(
        table, table->nvJitLinkGetLinkedLTOIRSize(handle, out_size),
        "nvJitLinkGetLinkedLTOIRSize");
  }
  return KILNI_NVJITLINK_STATUS(
      table, table->nvJitLinkGetLinkedCubinSize(handle, out_size),
      "nvJitLinkGetLinkedCubinSize");
}

static kiln_status_t link_nvjitlink_get(const session_t* session, char* data) {
  const kiln_nvjitlink_table_t* table = &session->self->table;
  kiln_nvjitlink_handle_t handle = session->handle;
  if (session->output == KILN_CODE_FORMAT_PTX) {
    return KILNI_NVJITLINK_STATUS(table,
                                  table->nvJitLinkGetLinkedPtx(handle, data),
                                  "nvJitLinkGetLinkedPtx");
  }
  if (session->output == KILN_CODE_FORMAT_LTOIR) {
    return KILNI_NVJITLINK_STATUS(table,
                                  table->nvJitLinkGetLinkedLTOIR(handle, data),
                                  "nvJitLinkGetLinkedLTOIR");
  }
  return KILNI_NVJITLINK_STATUS(table,
                                table->nvJitLinkGetLinkedCubin(handle, data),
                                "nvJitLinkGetLinkedCubin");
}

static kiln_status_t hand_over(const session_t* session,
                               const kilni_compile_link_sink_t* sink) {
  kiln_allocator_t allocator = link_nvjitlink_allocator_of(session->self);
  size_t size = 0;
  void* data = NULL;
  KILNI_RETURN_IF_ERROR(ask_size(session, &size));
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, size, &data));
  kiln_status_t status = link_nvjitlink_get(session, data);
  if (kiln_status_is_ok(status)) {
    size_t used = size;
    const char* text = data;
    if (session->output == KILN_CODE_FORMAT_PTX) {  // its NUL is counted
      while (used > 0 && text[used - 1] == 0) used--;
    }
    status = sink->put(sink->user, (kiln_bytes_view_t){data, used});
  }
  kilni_base_free(allocator, data, size);
  return status;
}

static kiln_status_t link_nvjitlink_finish(
    void* opened, const kilni_compile_link_sink_t* sink) {
  session_t* session = opened;
  const kiln_nvjitlink_table_t* table = &session->self->table;
  KILNI_RETURN_IF_ERROR(KILNI_NVJITLINK_STATUS(
      table, table->nvJitLinkComplete(session->handle), "nvJitLinkComplete"));
  return hand_over(session, sink);
}

// ---- Logs ----

static kiln_status_t link_nvjitlink_log_text(void* opened, uint32_t which,
                                             kilni_base_str_t* inout_text) {
  session_t* session = opened;
  const kiln_nvjitlink_table_t* table = &session->self->table;
  kiln_allocator_t allocator = link_nvjitlink_allocator_of(session->self);
  bool is_error = which == KILN_LINK_LOG_ERROR;
  size_t size = 0;
  kiln_nvjitlink_result_t result =
      is_error ? table->nvJitLinkGetErrorLogSize(session->handle, &size)
               : table->nvJitLinkGetInfoLogSize(session->handle, &size);
  if (result != KILN_NVJITLINK_SUCCESS || size == 0 || size > MAX_LOG_BYTES) {
    return kiln_ok();
  }
  void* data = NULL;  // one byte more than asked for: a NUL in any case
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, size + 1, &data));
  char* text = data;
  result = is_error ? table->nvJitLinkGetErrorLog(session->handle, text)
                    : table->nvJitLinkGetInfoLog(session->handle, text);
  if (result == KILN_NVJITLINK_SUCCESS) {
    kilni_base_str_add_cstr(inout_text, text);
  }
  kilni_base_free(allocator, data, size + 1);
  return kilni_base_str_status(inout_text);
}

static void link_nvjitlink_end(void* opened) {
  session_t* session = opened;
  if (session == NULL) return;
  const kilni_compile_link_nvjitlink_t* self = session->self;
  kiln_status_t status = KILNI_NVJITLINK_STATUS(
      &self->table, self->table.nvJitLinkDestroy(&session->handle),
      "nvJitLinkDestroy");
  if (!kiln_status_is_ok(status)) {
    KILNI_LOG(&self->host->log, WARNING, "a link was not ended cleanly: %s",
              kiln_status_message(status));
    kiln_status_free(status);
  }
  kilni_base_free(link_nvjitlink_allocator_of(self), session, sizeof(*session));
}

void kilni_compile_link_nvjitlink_backend(
    kilni_compile_link_nvjitlink_t* self,
    kilni_compile_link_backend_t* out_backend) {
  memset(out_backend, 0, sizeof(*out_backend));
  out_backend->kind = KILN_LINK_BACKEND_NVJITLINK;
  out_backend->line =
      kiln_compat_line_make(self->table.major, self->table.minor);
  out_backend->self = self;
  out_backend->begin = link_nvjitlink_begin;
  out_backend->add = link_nvjitlink_add;
  out_backend->finish = link_nvjitlink_finish;
  out_backend->log = link_nvjitlink_log_text;
  out_backend->end = link_nvjitlink_end;
}
