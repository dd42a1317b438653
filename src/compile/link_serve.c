// SPDX-License-Identifier: Apache-2.0
//
// compile: one link of nvJitLink for another process.
//
// The other end is link_child.c. What nvJitLink does to a process it does to
// this one: it may end here, and the other one sees that no answer came.
#define _POSIX_C_SOURCE 200809L  // MSG_NOSIGNAL
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/dynlib.h"
#include "base/status_make.h"
#include "compile/link_inside.h"
#include "compile/link_wire.h"
#include "table/nvjitlink_table.h"

enum { MAX_LOG_BYTES = 1 << 30 };
#define MAX_ASK_BYTES (UINT64_C(1) << 40)

static kiln_status_t lost_caller(void) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(IO_ERROR, "the process that requested a link has ended"),
      "call kiln_link_finish, which starts this process itself");
}

static kiln_status_t receive(int descriptor, void* data, size_t size) {
  uint8_t* at = data;
  while (size > 0) {
    ssize_t got = recv(descriptor, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return lost_caller();
    at += got;
    size -= (size_t)got;
  }
  return kiln_ok();
}

static kiln_status_t deliver(int descriptor, const void* data, size_t size) {
  const uint8_t* at = data;
  while (size > 0) {
    ssize_t put = send(descriptor, at, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return lost_caller();
    at += put;
    size -= (size_t)put;
  }
  return kiln_ok();
}

// ---- The link ----

// One that is served. one-thread
typedef struct served_t {
  kiln_host_t host;
  kilni_compile_link_nvjitlink_t native;
  kilni_base_dynlib_t* library;
  kilni_compile_link_backend_t backend;
  void* session;
  kilni_compile_link_setting_t* settings;
  size_t setting_count;
  kilni_compile_wire_out_t code;
} served_t;

static kiln_status_t keep_code(void* user, kiln_bytes_view_t bytes) {
  served_t* served = user;
  return kilni_compile_wire_put_bytes(&served->code, bytes);
}

static kiln_status_t link_serve_begin(served_t* served,
                                      kilni_compile_wire_in_t* in) {
  kiln_allocator_t allocator = served->host.allocator;
  kilni_compile_link_plan_t plan = {0};
  const char* library = kilni_compile_wire_get_text(in);
  plan.output = (uint32_t)kilni_compile_wire_get(in);
  plan.name = "linked";
  uint64_t count = kilni_compile_wire_get(in);
  if (in->failed || count > in->size) return lost_caller();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, (size_t)count, sizeof(kilni_compile_link_setting_t), &block));
  served->settings = block;
  served->setting_count = (size_t)count;
  for (uint64_t i = 0; i < count; i++) {
    served->settings[i].text = kilni_compile_wire_get_text(in);
  }
  plan.settings = served->settings;
  plan.setting_count = (uint32_t)count;
  KILNI_RETURN_IF_ERROR(kilni_table_nvjitlink_table_open(
      &served->host, library, &served->native.table, &served->library));
  served->native.host = &served->host;
  kilni_compile_link_nvjitlink_backend(&served->native, &served->backend);
  return served->backend.begin(served->backend.self, &plan, &served->session);
}

static kiln_status_t link_serve_link_all(served_t* served,
                                         kilni_compile_wire_in_t* in) {
  KILNI_RETURN_IF_ERROR(link_serve_begin(served, in));
  uint64_t count = kilni_compile_wire_get(in);
  for (uint64_t i = 0; i < count && !in->failed; i++) {
    kilni_compile_link_input_t input = {0};
    input.format = (uint32_t)kilni_compile_wire_get(in);
    input.name = kilni_compile_wire_get_text(in);
    input.bytes = kilni_compile_wire_get_bytes(in);
    if (in->failed) break;
    kiln_status_t status = served->backend.add(served->session, &input);
    if (kiln_status_is_ok(status)) continue;
    return KILNI_ANNOTATE(status, "input %llu, \"%s\" (%s)",
                          (unsigned long long)i + 1, input.name,
                          kiln_code_format_name(input.format));
  }
  if (in->failed) return lost_caller();
  kilni_compile_link_sink_t sink = {served, keep_code};
  return served->backend.finish(served->session, &sink);
}

// ---- The answer ----

static kiln_status_t link_serve_put_logs(served_t* served,
                                         kilni_compile_wire_out_t* out) {
  static const uint32_t kLogs[] = {KILN_LINK_LOG_ERROR, KILN_LINK_LOG_INFO};
  for (size_t i = 0; i < 2; i++) {
    kilni_base_str_t text;
    kilni_base_str_init(&text, served->host.allocator, MAX_LOG_BYTES);
    kiln_status_t status = kiln_ok();
    if (served->session != NULL) {
      status = served->backend.log(served->session, kLogs[i], &text);
    }
    if (kiln_status_is_ok(status)) {
      status = kilni_compile_wire_put_text(out, kilni_base_str_cstr(&text));
    }
    kilni_base_str_deinit(&text);
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

static kiln_status_t put_answer(served_t* served, kiln_status_t linked,
                                kilni_compile_wire_out_t* out) {
  kiln_status_native_t native;
  bool has_native = kiln_status_native(linked, &native);
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(out, kiln_status_code(linked)));
  KILNI_RETURN_IF_ERROR(
      kilni_compile_wire_put_text(out, kiln_status_message(linked)));
  KILNI_RETURN_IF_ERROR(
      kilni_compile_wire_put_text(out, kiln_status_fix(linked)));
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(out, (uint64_t)native.number));
  KILNI_RETURN_IF_ERROR(
      kilni_compile_wire_put_text(out, has_native ? native.name : ""));
  return link_serve_put_logs(served, out);
}

static kiln_status_t link_serve_answer(int descriptor, served_t* served,
                                       kiln_status_t linked) {
  kilni_compile_wire_out_t out = {.allocator = served->host.allocator};
  kiln_status_t status = put_answer(served, linked, &out);
  uint64_t head[2] = {KILNI_WIRE_ANSWER, out.size + served->code.size};
  if (kiln_status_is_ok(status)) {
    status = deliver(descriptor, head, sizeof(head));
  }
  if (kiln_status_is_ok(status)) {
    status = deliver(descriptor, out.data, out.size);
  }
  if (kiln_status_is_ok(status)) {
    status = deliver(descriptor, served->code.data, served->code.size);
  }
  kilni_compile_wire_free(&out);
  return status;
}

static kiln_status_t link_serve_serve(int descriptor,
                                      kilni_compile_wire_in_t* in) {
  served_t served;
  memset(&served, 0, sizeof(served));
  served.host.allocator = kiln_allocator_libc();
  served.code.allocator = served.host.allocator;
  kiln_status_t linked = link_serve_link_all(&served, in);
  kiln_status_t status = link_serve_answer(descriptor, &served, linked);
  kiln_status_free(linked);
  if (served.session != NULL) served.backend.end(served.session);
  kilni_base_dynlib_close(served.library);
  kilni_base_free_array(served.host.allocator, served.settings,
                        served.setting_count,
                        sizeof(kilni_compile_link_setting_t));
  kilni_compile_wire_free(&served.code);
  return status;
}

kiln_status_t kiln_link_serve(int descriptor) {
  kiln_allocator_t allocator = kiln_allocator_libc();
  uint64_t head[2] = {0, 0};
  KILNI_RETURN_IF_ERROR(receive(descriptor, head, sizeof(head)));
  if (head[0] != KILNI_WIRE_ASK || head[1] > MAX_ASK_BYTES) {
    return lost_caller();
  }
  void* block = NULL;
  size_t size = (size_t)head[1];
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, size, &block));
  kilni_compile_wire_in_t in = {block, size, 0, false};
  kiln_status_t status = receive(descriptor, block, size);
  if (kiln_status_is_ok(status)) status = link_serve_serve(descriptor, &in);
  kilni_base_free(allocator, block, size);
  return status;
}
