// SPDX-License-Identifier: Apache-2.0
//
// compile: a link of nvJitLink in a process of its own.
//
// A program that calls kiln_link_serve (the command does) is started, gets the
// inputs through a socket and answers through it. Started and not forked: in a
// fork of a process with threads nvJitLink could not run. What it writes to its
// standard error becomes part of the log.
#define _POSIX_C_SOURCE 200809L  // F_DUPFD_CLOEXEC, MSG_NOSIGNAL
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dynlib.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "compile/link_inside.h"
#include "compile/link_wire.h"

enum {
  PATH_BYTES = 4096,
  BLOCK_BYTES = 1 << 16,
  LEAST_DESCRIPTOR = 10,  // so that none is in the place of another
  MAX_SAID_BYTES = 1 << 20,
};
#define MAX_ANSWER_BYTES ((size_t)1 << 32)

// One link that goes elsewhere. one-thread
typedef struct session_t {
  const kilni_compile_link_child_t* self;
  const kilni_compile_link_plan_t* plan;
  kilni_compile_wire_out_t ask;  // the inputs, after space for their number
  uint64_t inputs;
  kilni_compile_wire_out_t answer;
  kilni_base_str_t logs[2];  // error, info
  kilni_base_str_t said;     // to its standard error
} session_t;

// A running process. one-thread
typedef struct child_t {
  pid_t pid;
  int wire;  // -1: closed
  int said;
  uint64_t deadline;
  bool is_late;
} child_t;

// ---- Starting ----

static void close_one(int* inout_descriptor) {
  if (*inout_descriptor >= 0) (void)close(*inout_descriptor);
  *inout_descriptor = -1;
}

// Two ends, high enough, and of no program that is started meanwhile.
static bool open_pair(int ends[2]) {
  int low[2];
  ends[0] = -1;
  ends[1] = -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) != 0) {
    return false;
  }
  for (int i = 0; i < 2; i++) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR);
    (void)close(low[i]);
  }
  if (ends[0] >= 0 && ends[1] >= 0) return true;
  close_one(&ends[0]);
  close_one(&ends[1]);
  return false;
}

// 0, or an errno.
static int link_child_start(const char* program, int wire, int said,
                            pid_t* out_pid) {
  char link[] = "link";
  char serve[] = "--serve";
  char descriptor[] = "3";
  char name[PATH_BYTES];
  char* none[] = {NULL};
  (void)snprintf(name, sizeof(name), "%s", program);
  char* words[] = {name, link, serve, descriptor, NULL};
  posix_spawn_file_actions_t actions;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed != 0) return failed;
  failed =
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (int to = 1; to <= 2 && failed == 0; to++) {
    failed = posix_spawn_file_actions_adddup2(&actions, said, to);
  }
  if (failed == 0) {
    failed =
        posix_spawn_file_actions_adddup2(&actions, wire, KILNI_WIRE_DESCRIPTOR);
  }
  if (failed == 0) {
    failed = posix_spawn(out_pid, program, &actions, NULL, words, none);
  }
  (void)posix_spawn_file_actions_destroy(&actions);
  return failed;
}

// The file that this code is in. one-thread
typedef struct own_t {
  char path[PATH_BYTES];
} own_t;

static const char kOwnPlace;

static bool link_child_take_own(const kilni_base_dynlib_mapped_t* mapped,
                                void* user) {
  own_t* own = user;
  if (!kilni_base_dynlib_mapped_holds(mapped, &kOwnPlace)) return true;
  if (mapped->path[0] == '/') {
    (void)snprintf(own->path, sizeof(own->path), "%s", mapped->path);
  }
  return false;
}

// The command as it is installed beside the library.
static int start_beside(int wire, int said, pid_t* out_pid) {
  static const char* const kPlaces[] = {"../bin/kiln", "../../bin/kiln",
                                        "kiln"};
  own_t own = {""};
  kilni_base_dynlib_each_mapped(link_child_take_own, &own);
  char* slash = strrchr(own.path, '/');
  if (slash == NULL) return ENOENT;
  *slash = 0;
  for (size_t i = 0; i < sizeof(kPlaces) / sizeof(kPlaces[0]); i++) {
    char path[PATH_BYTES];
    int size = snprintf(path, sizeof(path), "%.4000s/%s", own.path, kPlaces[i]);
    if (size < 0 || size >= PATH_BYTES) continue;
    int failed = link_child_start(path, wire, said, out_pid);
    if (failed != ENOENT && failed != ENOTDIR) return failed;
  }
  return ENOENT;
}

static kiln_status_t cannot_start(const kilni_compile_link_child_t* self,
                                  int failed) {
  const char* program = self->program;
  if (program == NULL) program = "kiln";
  return kilni_base_status_with_fix(
      kilni_base_status_make(
          failed == ENOENT ? KILN_STATUS_NOT_FOUND : KILN_STATUS_IO_ERROR,
          KILNI_MODULE, __FILE__, __LINE__,
          "the program \"%s\", which links in a process of its own, cannot be "
          "started (errno %d)",
          program, failed),
      "name the command with `isolated_program`, e.g. \"/usr/bin/kiln\"; by "
      "default it is searched for beside the library");
}

static kiln_status_t open_child(const kilni_compile_link_child_t* self,
                                child_t* out_child) {
  int wire[2];
  int said[2];
  *out_child = (child_t){0, -1, -1, 0, false};
  if (!open_pair(wire)) return cannot_start(self, errno);
  if (!open_pair(said)) {
    close_one(&wire[0]);
    close_one(&wire[1]);
    return cannot_start(self, EMFILE);
  }
  int failed =
      self->program != NULL
          ? link_child_start(self->program, wire[1], said[1], &out_child->pid)
          : start_beside(wire[1], said[1], &out_child->pid);
  close_one(&wire[1]);
  close_one(&said[1]);
  out_child->wire = wire[0];
  out_child->said = said[0];
  if (failed == 0) return kiln_ok();
  close_one(&out_child->wire);
  close_one(&out_child->said);
  return cannot_start(self, failed);
}

// ---- Talking ----

static bool must_wait(void) {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// Writes what goes in; `*inout_at` is how much went. What cannot be written is
// seen where nothing comes back.
static void link_child_push(const child_t* child,
                            const kilni_compile_wire_out_t* ask,
                            size_t* inout_at) {
  ssize_t put = send(child->wire, ask->data + *inout_at, ask->size - *inout_at,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put > 0) {
    *inout_at += (size_t)put;
  } else if (!must_wait()) {
    *inout_at = ask->size;
  }
}

static kiln_status_t pull_answer(session_t* session, child_t* child,
                                 uint8_t* block) {
  ssize_t got = recv(child->wire, block, BLOCK_BYTES, MSG_DONTWAIT);
  if (got > 0) {
    kilni_compile_wire_out_t* to = &session->answer;
    void* data = to->data;
    if (to->size + (size_t)got > MAX_ANSWER_BYTES) return kiln_ok();
    KILNI_RETURN_IF_ERROR(kilni_base_grow(to->allocator, to->size + (size_t)got,
                                          1, &to->capacity, &data));
    to->data = data;
    memcpy(to->data + to->size, block, (size_t)got);
    to->size += (size_t)got;
  } else if (got == 0 || !must_wait()) {
    close_one(&child->wire);
  }
  return kiln_ok();
}

static void pull_said(session_t* session, child_t* child, uint8_t* block) {
  ssize_t got = recv(child->said, block, BLOCK_BYTES, MSG_DONTWAIT);
  if (got > 0) {
    for (ssize_t i = 0; i < got; i++) {
      if (block[i] != 0) {
        kilni_base_str_add_char(&session->said, (char)block[i]);
      }
    }
  } else if (got == 0 || !must_wait()) {
    close_one(&child->said);
  }
}

// Until both ends are closed, or there is no more time.
static kiln_status_t talk(session_t* session, child_t* child, uint8_t* block) {
  enum { NS_PER_MS = 1000000 };
  size_t at = 0;
  while (child->wire >= 0 || child->said >= 0) {
    uint64_t now = kilni_base_time_ns();
    if (now >= child->deadline) {
      child->is_late = true;
      return kiln_ok();
    }
    uint64_t left = (child->deadline - now) / NS_PER_MS + 1;
    bool writes = at < session->ask.size;
    struct pollfd ends[2] = {
        {child->wire, (short)(POLLIN | (writes ? POLLOUT : 0)), 0},
        {child->said, POLLIN, 0}};
    int ready = poll(ends, 2, left < 1000 ? (int)left : 1000);
    if (ready < 0 && errno != EINTR) return kiln_ok();
    if (ready <= 0) continue;
    if (writes && (ends[0].revents & POLLOUT) != 0) {
      link_child_push(child, &session->ask, &at);
    }
    if ((ends[0].revents & ~POLLOUT) != 0) {
      KILNI_RETURN_IF_ERROR(pull_answer(session, child, block));
    }
    if (ends[1].revents != 0) pull_said(session, child, block);
  }
  return kiln_ok();
}

// How it ended; 0 where the host program's own handler got its state instead.
static int reap(child_t* child, bool stop) {
  int state = 0;
  close_one(&child->wire);
  close_one(&child->said);
  if (stop) (void)kill(child->pid, SIGKILL);
  while (waitpid(child->pid, &state, 0) < 0) {
    if (errno != EINTR) return 0;
  }
  return state;
}

// ---- What came of it ----

// The signals that a process ends itself with. thread-safe
static const char* signal_word(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGKILL:
      return "SIGKILL";
    default:
      return "a signal";
  }
}

static kiln_status_t name_inputs(const session_t* session,
                                 kiln_status_t status) {
  enum { SHOWN = 8 };
  kilni_compile_wire_in_t in = {session->ask.data, session->ask.size, 0, false};
  (void)kilni_compile_wire_get(&in);
  (void)kilni_compile_wire_get(&in);
  (void)kilni_compile_wire_get_text(&in);
  (void)kilni_compile_wire_get(&in);
  for (uint64_t left = kilni_compile_wire_get(&in); left > 0 && !in.failed;
       left--) {
    (void)kilni_compile_wire_get_text(&in);
  }
  uint64_t count = kilni_compile_wire_get(&in);
  for (uint64_t i = 0; i < count && !in.failed; i++) {
    uint32_t format = (uint32_t)kilni_compile_wire_get(&in);
    const char* name = kilni_compile_wire_get_text(&in);
    kiln_bytes_view_t bytes = kilni_compile_wire_get_bytes(&in);
    if (i < SHOWN) {
      status = KILNI_ANNOTATE(status, "input \"%s\" (%s, %zu bytes)", name,
                              kiln_code_format_name(format), bytes.size);
    }
  }
  return status;
}

// The event becomes the log's first error, before the rest of the log.
static void log_end(session_t* session, kiln_status_t status) {
  kilni_base_str_addf(&session->logs[0], "error   : %s\n",
                      kiln_status_message(status));
}

static kiln_status_t ended(session_t* session, int state) {
  const char* origin = session->self->native->table.origin;
  kiln_status_t status =
      WIFSIGNALED(state)
          ? KILNI_FAIL(LINK_FAILED,
                       "nvJitLink \"%s\" ended its process with signal %d "
                       "(%s)",
                       origin, WTERMSIG(state), signal_word(WTERMSIG(state)))
          : KILNI_FAIL(LINK_FAILED,
                       "the process that was to link with \"%s\" sent no "
                       "answer and exited with %d",
                       origin, WIFEXITED(state) ? WEXITSTATUS(state) : -1);
  status = kilni_base_status_with_fix(
      status,
      "link the inputs one by one, to see which of them it is, and make that "
      "one again; or use another nvJitLink");
  log_end(session, status);
  return name_inputs(session, status);
}

static kiln_status_t late(session_t* session) {
  kiln_status_t status = kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED, "the link took longer than %u seconds",
                 (unsigned)session->self->seconds),
      "give it more with `isolated_seconds`, or link less at once");
  log_end(session, status);
  return name_inputs(session, status);
}

static kiln_status_t take_answer(session_t* session,
                                 const kilni_compile_link_sink_t* sink,
                                 int state) {
  kilni_compile_wire_in_t in = {session->answer.data, session->answer.size, 0,
                                false};
  bool whole = kilni_compile_wire_get(&in) == KILNI_WIRE_ANSWER &&
               kilni_compile_wire_get(&in) == in.size - in.at;
  uint64_t code = kilni_compile_wire_get(&in);
  const char* message = kilni_compile_wire_get_text(&in);
  const char* fix = kilni_compile_wire_get_text(&in);
  int64_t number = (int64_t)kilni_compile_wire_get(&in);
  const char* native = kilni_compile_wire_get_text(&in);
  const char* error = kilni_compile_wire_get_text(&in);
  const char* info = kilni_compile_wire_get_text(&in);
  if (!whole || in.failed || code >= KILN_STATUS_CODE_COUNT) {
    return ended(session, state);
  }
  kilni_base_str_add_cstr(&session->logs[0], error);
  kilni_base_str_add_cstr(&session->logs[1], info);
  if (code == KILN_STATUS_OK) {
    kiln_bytes_view_t bytes = kilni_compile_wire_get_bytes(&in);
    if (in.failed) return ended(session, state);
    return sink->put(sink->user, bytes);
  }
  kiln_status_t status =
      kilni_base_status_make((kiln_status_code_t)code, KILNI_MODULE, __FILE__,
                             __LINE__, "%s", message);
  if (native[0] != 0) {
    status = kilni_base_status_with_native(status, "nvjitlink", number, native);
  }
  return fix[0] != 0 ? kilni_base_status_with_fix(status, "%s", fix) : status;
}

// ---- The backend ----

static kiln_status_t link_child_put_head(session_t* session, uint64_t inputs,
                                         size_t* out_inputs_at) {
  kilni_compile_wire_out_t* ask = &session->ask;
  const kilni_compile_link_plan_t* plan = session->plan;
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(ask, KILNI_WIRE_ASK));
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(ask, 0));
  KILNI_RETURN_IF_ERROR(
      kilni_compile_wire_put_text(ask, session->self->native->table.origin));
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(ask, plan->output));
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(ask, plan->setting_count));
  for (uint32_t i = 0; i < plan->setting_count; i++) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_wire_put_text(ask, plan->settings[i].text));
  }
  *out_inputs_at = ask->size;
  return kilni_compile_wire_put(ask, inputs);
}

static void link_child_end(void* opened) {
  session_t* session = opened;
  if (session == NULL) return;
  kiln_allocator_t allocator = session->self->host->allocator;
  kilni_compile_wire_free(&session->ask);
  kilni_compile_wire_free(&session->answer);
  kilni_base_str_deinit(&session->logs[0]);
  kilni_base_str_deinit(&session->logs[1]);
  kilni_base_str_deinit(&session->said);
  kilni_base_free(allocator, session, sizeof(*session));
}

static kiln_status_t link_child_begin(void* self,
                                      const kilni_compile_link_plan_t* plan,
                                      void** out_session) {
  const kilni_compile_link_child_t* child = self;
  kiln_allocator_t allocator = child->host->allocator;
  void* block = NULL;
  *out_session = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, sizeof(session_t), &block));
  session_t* session = block;
  session->self = child;
  session->plan = plan;
  session->ask.allocator = allocator;
  session->answer.allocator = allocator;
  kilni_base_str_init(&session->logs[0], allocator, INT32_MAX);
  kilni_base_str_init(&session->logs[1], allocator, INT32_MAX);
  kilni_base_str_init(&session->said, allocator, MAX_SAID_BYTES);
  size_t at = 0;
  kiln_status_t status = link_child_put_head(session, 0, &at);
  session->inputs = at;
  if (!kiln_status_is_ok(status)) {
    link_child_end(session);
    return status;
  }
  *out_session = session;
  return kiln_ok();
}

// Counts in the place that `link_child_begin` left.
static kiln_status_t link_child_add(void* opened,
                                    const kilni_compile_link_input_t* input) {
  session_t* session = opened;
  kilni_compile_wire_out_t* ask = &session->ask;
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put(ask, input->format));
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put_text(ask, input->name));
  KILNI_RETURN_IF_ERROR(kilni_compile_wire_put_bytes(ask, input->bytes));
  uint64_t count = 0;
  memcpy(&count, ask->data + session->inputs, sizeof(count));
  count++;
  memcpy(ask->data + session->inputs, &count, sizeof(count));
  return kiln_ok();
}

static kiln_status_t link_child_finish(void* opened,
                                       const kilni_compile_link_sink_t* sink) {
  enum { NS_PER_S = 1000000000 };
  session_t* session = opened;
  kiln_allocator_t allocator = session->self->host->allocator;
  uint64_t size = session->ask.size - KILNI_WIRE_HEAD_BYTES;
  memcpy(session->ask.data + 8, &size, sizeof(size));
  void* block = NULL;
  child_t child;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, BLOCK_BYTES, &block));
  kiln_status_t status = open_child(session->self, &child);
  if (kiln_status_is_ok(status)) {
    child.deadline =
        kilni_base_time_ns() + (uint64_t)session->self->seconds * NS_PER_S;
    status = talk(session, &child, block);
    bool stop = child.is_late || !kiln_status_is_ok(status);
    int state = reap(&child, stop);
    if (kiln_status_is_ok(status)) {
      status = child.is_late        ? late(session)
               : WIFSIGNALED(state) ? ended(session, state)
                                    : take_answer(session, sink, state);
    }
  }
  kilni_base_free(allocator, block, BLOCK_BYTES);
  return status;
}

// What it wrote to its standard error is not in nvJitLink's own log, and is the
// only place where it reports some errors.
static kiln_status_t link_child_log_text(void* opened, uint32_t which,
                                         kilni_base_str_t* inout_text) {
  session_t* session = opened;
  bool is_error = which == KILN_LINK_LOG_ERROR;
  kilni_base_str_add_cstr(
      inout_text, kilni_base_str_cstr(&session->logs[is_error ? 0 : 1]));
  if (is_error) {
    kilni_base_str_add_cstr(inout_text, kilni_base_str_cstr(&session->said));
  }
  return kilni_base_str_status(inout_text);
}

void kilni_compile_link_child_backend(
    kilni_compile_link_child_t* self,
    kilni_compile_link_backend_t* inout_backend) {
  self->native = inout_backend->self;
  inout_backend->self = self;
  inout_backend->begin = link_child_begin;
  inout_backend->add = link_child_add;
  inout_backend->finish = link_child_finish;
  inout_backend->log = link_child_log_text;
  inout_backend->end = link_child_end;
}
