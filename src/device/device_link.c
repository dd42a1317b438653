// SPDX-License-Identifier: Apache-2.0
//
// device: linking with the driver, as a linker for compile/.
//
// The driver writes into the log buffers and into the list of values at any
// call up to cuLinkDestroy, that one too. So both belong to the session, and
// its end is always: the link, the lists, the buffers. A log that fills its
// buffer was cut off: then the link is made again with a larger one.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"

enum {
  FIRST_SPACE = 64 << 10,  // of each log
  LAST_SPACE = 64 << 20,
  ROOM_FACTOR = 16,
  LOG_OPTIONS = 4,
  INFO = 0,  // indices of `logs`
  ERROR = 1,
};

// One link of the driver. one-thread
typedef struct session_t {
  kiln_device_t* device;
  const kilni_compile_link_plan_t* plan;  // the caller's, until the end
  kiln_cu_link_state_t handle;
  kiln_cu_jit_option_t* options;
  void** values;
  uint32_t option_count;
  uint32_t reserved;
  char* logs[2];
  size_t space;  // of each
  kilni_compile_link_input_t* inputs;
  size_t input_count;
  size_t input_capacity;
} session_t;

static kiln_allocator_t link_allocator_of(const session_t* session) {
  return session->device->host->allocator;
}

// ---- The link and what must outlive it ----

static void link_fill_options(session_t* session) {
  static const kiln_cu_jit_option_t kLogs[LOG_OPTIONS] = {
      KILN_CU_JIT_INFO_LOG_BUFFER, KILN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      KILN_CU_JIT_ERROR_LOG_BUFFER, KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  for (int i = 0; i < LOG_OPTIONS; i++) {
    session->options[i] = kLogs[i];
    session->values[i] = i % 2 == 0 ? (void*)session->logs[i / 2]
                                    : (void*)(uintptr_t)(session->space - 1);
  }
  for (uint32_t i = 0; i < session->plan->setting_count; i++) {
    session->options[LOG_OPTIONS + i] = session->plan->settings[i].key;
    session->values[LOG_OPTIONS + i] =
        (void*)(uintptr_t)session->plan->settings[i].value;
  }
}

static kiln_status_t link_create(session_t* session) {
  kiln_device_t* device = session->device;
  kilni_device_scope_t scope;
  link_fill_options(session);
  KILNI_RETURN_IF_ERROR(
      kilni_device_scope_begin(&scope, device, KILNI_WAY_cuLinkCreate));
  kiln_cu_result_t result =
      device->table->cuLinkCreate(session->option_count, session->options,
                                  session->values, &session->handle);
  // What a failed call wrote is not a handle.
  if (result != KILN_CU_SUCCESS) session->handle = NULL;
  return kilni_device_scope_leave(
      &scope, KILNI_DEVICE_CHECK(device, result, "cuLinkCreate"));
}

static void link_destroy(session_t* session) {
  if (session->handle == NULL) return;
  KILNI_DEVICE_END(session->device, cuLinkDestroy, session->handle);
  session->handle = NULL;
}

static void free_logs(kiln_allocator_t allocator, char* logs[2], size_t space) {
  kilni_base_free(allocator, logs[INFO], space);
  kilni_base_free(allocator, logs[ERROR], space);
}

static kiln_status_t alloc_logs(kiln_allocator_t allocator, size_t space,
                                char* out_logs[2]) {
  void* info = NULL;
  void* error = NULL;
  out_logs[INFO] = NULL;
  out_logs[ERROR] = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, space, &info));
  kiln_status_t status = kilni_base_alloc(allocator, space, &error);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, info, space);
    return status;
  }
  out_logs[INFO] = info;
  out_logs[ERROR] = error;
  return kiln_ok();
}

// True if the driver's log did not fit. A size that still has its given value
// was not written.
static bool is_cut(const session_t* session) {
  size_t given = session->space - 1;
  for (int i = 0; i < 2; i++) {
    size_t written = (unsigned int)(uintptr_t)session->values[2 * i + 1];
    // The driver may have written past the end of the text as well.
    const char* stop = memchr(session->logs[i], 0, session->space);
    if (stop == NULL || (size_t)(stop - session->logs[i]) + 1 >= given) {
      return true;
    }
    if (written != given && written + 1 >= given) return true;
  }
  return false;
}

// ---- Calls ----

static bool is_of_the_input(kiln_status_code_t code) {
  return code == KILN_STATUS_DRIVER_ERROR || code == KILN_STATUS_NOT_FOUND ||
         code == KILN_STATUS_BAD_DATA || code == KILN_STATUS_COMPILE_FAILED ||
         code == KILN_STATUS_INVALID_ARGUMENT;
}

// The driver's results for what it cannot link are vague; where it wrote an
// error, the link has failed.
static kiln_status_t link_explain(const session_t* session,
                                  kiln_status_t status) {
  if (kiln_status_is_ok(status) || session->logs[ERROR][0] == 0 ||
      !is_of_the_input(kiln_status_code(status))) {
    return status;
  }
  kiln_status_t better = kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED, "the driver cannot link \"%s\"",
                 session->plan->name),
      "read the error log of the link");
  better = kilni_device_driver_log_fix(better, session->logs[ERROR]);
  kiln_status_native_t native;
  if (kiln_status_native(status, &native)) {
    better = kilni_base_status_with_native(better, native.domain, native.number,
                                           native.name);
  }
  return kilni_base_status_join(better, status);
}

static bool input_type(uint32_t format, kiln_cu_jit_input_t* out_type) {
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
      *out_type = KILN_CU_JIT_INPUT_PTX;
      return true;
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
      // As an object it would lose its symbols without a word.
      *out_type = KILN_CU_JIT_INPUT_CUBIN;
      return true;
    case KILN_CODE_FORMAT_FATBIN:
      *out_type = KILN_CU_JIT_INPUT_FATBINARY;
      return true;
    case KILN_CODE_FORMAT_OBJECT:
      *out_type = KILN_CU_JIT_INPUT_OBJECT;
      return true;
    case KILN_CODE_FORMAT_LIBRARY:
      *out_type = KILN_CU_JIT_INPUT_LIBRARY;
      return true;
    default:
      return false;
  }
}

static kiln_status_t add_one(session_t* session,
                             const kilni_compile_link_input_t* input) {
  kiln_cu_jit_input_t type = 0;
  (void)input_type(input->format, &type);
  // With the NUL after it, which the driver requires for PTX.
  size_t bytes =
      input->bytes.size + (input->format == KILN_CODE_FORMAT_PTX ? 1 : 0);
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, session->device, cuLinkAddData, session->handle,
                    type, (void*)(uintptr_t)input->bytes.data, bytes,
                    input->name, 0, NULL, NULL);
  return status;
}

static kiln_status_t device_link_complete(session_t* session, void** out_image,
                                          size_t* out_bytes) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, session->device, cuLinkComplete, session->handle,
                    out_image, out_bytes);
  return status;
}

// Everything again, with space for longer logs. False if there is none left.
static bool again(session_t* session, kiln_status_t* inout_status) {
  if (!is_cut(session) || session->space >= LAST_SPACE) return false;
  if (kilni_device_is_lost(session->device)) return false;
  size_t space = session->space * ROOM_FACTOR;
  char* logs[2];
  kiln_status_t status = alloc_logs(link_allocator_of(session), space, logs);
  if (!kiln_status_is_ok(status)) {  // a log that is cut off is not a failure
    kiln_status_free(status);
    return false;
  }
  kiln_status_free(*inout_status);
  link_destroy(session);
  free_logs(link_allocator_of(session), session->logs, session->space);
  memcpy(session->logs, logs, sizeof(logs));
  session->space = space;
  *inout_status = link_create(session);
  for (size_t i = 0;
       i < session->input_count && kiln_status_is_ok(*inout_status); i++) {
    *inout_status = add_one(session, &session->inputs[i]);
  }
  return true;
}

// ---- The interface ----

static void link_end(void* opened) {
  session_t* session = opened;
  if (session == NULL || kilni_device_is_forked(session->device)) return;
  kiln_device_t* device = session->device;
  kiln_allocator_t allocator = link_allocator_of(session);
  link_destroy(session);
  kilni_base_free_array(allocator, session->options, session->option_count,
                        sizeof(*session->options));
  kilni_base_free_array(allocator, session->values, session->option_count,
                        sizeof(*session->values));
  free_logs(allocator, session->logs, session->space);
  kilni_base_free_array(allocator, session->inputs, session->input_capacity,
                        sizeof(*session->inputs));
  kilni_base_free(allocator, session, sizeof(*session));
  kiln_device_release(device);
}

static kiln_status_t link_prepare(session_t* session) {
  kiln_allocator_t allocator = link_allocator_of(session);
  session->option_count = LOG_OPTIONS + session->plan->setting_count;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, session->option_count, sizeof(*session->options), &block));
  session->options = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, session->option_count, sizeof(*session->values), &block));
  session->values = block;
  KILNI_RETURN_IF_ERROR(alloc_logs(allocator, FIRST_SPACE, session->logs));
  session->space = FIRST_SPACE;
  return link_create(session);
}

static kiln_status_t link_begin(void* self,
                                const kilni_compile_link_plan_t* plan,
                                void** out_session) {
  kiln_device_t* device = self;
  *out_session = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(session_t), &block));
  session_t* session = block;
  session->device = device;
  kiln_device_retain(device);
  session->plan = plan;
  kiln_status_t status = link_prepare(session);
  if (!kiln_status_is_ok(status)) {
    link_end(session);
    return status;
  }
  *out_session = session;
  return kiln_ok();
}

static kiln_status_t link_add(void* opened,
                              const kilni_compile_link_input_t* input) {
  session_t* session = opened;
  kiln_cu_jit_input_t type;
  if (!input_type(input->format, &type)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "the driver cannot link %s: \"%s\"",
                   kiln_code_format_name(input->format), input->name),
        "link it with nvJitLink, or compile it to PTX or to a cubin");
  }
  void* inputs = session->inputs;
  kiln_status_t status = kilni_base_grow(
      link_allocator_of(session), session->input_count + 1,
      sizeof(*session->inputs), &session->input_capacity, &inputs);
  session->inputs = inputs;
  KILNI_RETURN_IF_ERROR(status);
  session->inputs[session->input_count++] = *input;
  status = add_one(session, input);
  while (!kiln_status_is_ok(status) && again(session, &status)) {
  }
  return link_explain(session, status);
}

static kiln_status_t link_finish(void* opened,
                                 const kilni_compile_link_sink_t* sink) {
  session_t* session = opened;
  void* image = NULL;
  size_t bytes = 0;
  kiln_status_t status = device_link_complete(session, &image, &bytes);
  while (again(session, &status)) {
    if (kiln_status_is_ok(status)) {
      status = device_link_complete(session, &image, &bytes);
    }
  }
  KILNI_RETURN_IF_ERROR(link_explain(session, status));
  kiln_bytes_view_t view = {image, bytes};
  return sink->put(sink->user, view);
}

static kiln_status_t link_log_text(void* opened, uint32_t which,
                                   kilni_base_str_t* inout_text) {
  const session_t* session = opened;
  int index = which == KILN_LINK_LOG_ERROR ? ERROR : INFO;
  kilni_base_str_add_cstr(inout_text, session->logs[index]);
  return kilni_base_str_status(inout_text);
}

void kilni_device_link_backend(kiln_device_t* device,
                               kilni_compile_link_backend_t* out_backend) {
  memset(out_backend, 0, sizeof(*out_backend));
  out_backend->kind = KILN_LINK_BACKEND_DRIVER;
  out_backend->line = device->info.driver_version;
  out_backend->self = device;
  out_backend->begin = link_begin;
  out_backend->add = link_add;
  out_backend->finish = link_finish;
  out_backend->log = link_log_text;
  out_backend->end = link_end;
}
