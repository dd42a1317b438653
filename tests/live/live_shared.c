// SPDX-License-Identifier: Apache-2.0
//
// live: pools and buffers between two processes: one makes and fills them, the
// other opens them, reads, writes and lets go in every order; no descriptor
// stays open in either.
//
//   live_shared            everything; exit 77 without a GPU
//   live_shared --opens N  the other process, in the N-th order; standard input
//                          is a local socket
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE 1
#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "live_check.h"

extern char** environ;

enum { BYTES = 3 << 20, ORDERS = 4 };

// What goes from one to the other, beside the descriptor. thread-compatible
typedef struct message_t {
  kiln_buffer_export_t of_pool;
  kiln_buffer_export_t plain;
} message_t;

// Space for one descriptor.
typedef union control_t {
  struct cmsghdr head;
  char space[CMSG_SPACE(sizeof(int))];
} control_t;

static bool send_all(int to, message_t* message, int fd) {
  control_t control;
  struct iovec part = {message, sizeof(*message)};
  struct msghdr head;
  memset(&head, 0, sizeof(head));
  memset(&control, 0, sizeof(control));
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = &control;
  head.msg_controllen = sizeof(control.space);
  struct cmsghdr* one = CMSG_FIRSTHDR(&head);
  one->cmsg_level = SOL_SOCKET;
  one->cmsg_type = SCM_RIGHTS;
  one->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(one), &fd, sizeof(fd));
  return sendmsg(to, &head, 0) == (ssize_t)sizeof(*message);
}

static bool receive_all(int from, message_t* message, int* out_fd) {
  control_t control;
  struct iovec part = {message, sizeof(*message)};
  struct msghdr head;
  memset(&head, 0, sizeof(head));
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = &control;
  head.msg_controllen = sizeof(control.space);
  if (recvmsg(from, &head, 0) != (ssize_t)sizeof(*message)) return false;
  struct cmsghdr* one = CMSG_FIRSTHDR(&head);
  if (one == NULL || one->cmsg_type != SCM_RIGHTS) return false;
  memcpy(out_fd, CMSG_DATA(one), sizeof(*out_fd));
  return true;
}

static int descriptors(void) {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

// Whether all bytes of a buffer are `value`.
static bool holds(kiln_buffer_t* buffer, int value) {
  static unsigned char bytes[BYTES];
  memset(bytes, ~value, sizeof(bytes));
  if (!OK(kiln_buffer_read(buffer, 0, BYTES, bytes))) return false;
  return bytes[0] == value && memcmp(bytes, bytes + 1, BYTES - 1) == 0;
}

// ---- The other process ----

// What it has. one-thread
typedef struct theirs_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_pool_t* pool;
  kiln_buffer_t* of_pool;
  kiln_buffer_t* again;
  kiln_buffer_t* plain;
} theirs_t;

static void use_theirs(theirs_t* t) {
  kiln_buffer_t* none = NULL;
  kiln_buffer_options_t options = kiln_buffer_options_default();
  IS(t->of_pool == t->again);
  IS(kiln_buffer_size(t->of_pool) == BYTES);
  IS(holds(t->of_pool, 0x5a));
  IS(holds(t->plain, 0x33));
  OK(kiln_buffer_copy_async(t->of_pool, t->stream, 0, t->plain, 0, BYTES));
  OK(kiln_buffer_fill_async(t->plain, t->stream, 0, BYTES, 0x77, 1));
  OK(kiln_stream_synchronize(t->stream));
  // Nothing new comes from somebody else's pool.
  options.pool = t->pool;
  options.stream = t->stream;
  kiln_status_t status = kiln_buffer_create(t->device, 64, &options, &none);
  IS(kiln_status_code(status) == KILN_STATUS_INVALID_STATE && none == NULL);
  kiln_status_free(status);
}

// Forwards and backwards, from two places.
static void release_theirs(theirs_t* t, int order) {
  for (int i = 0; i < 7; i++) {
    int at = (i + 3 * (order / 2)) % 7;
    switch (order % 2 ? 6 - at : at) {
      case 0:
        kiln_runtime_release(t->runtime);
        break;
      case 1:
        kiln_device_release(t->device);
        break;
      case 2:
        kiln_pool_release(t->pool);
        break;
      case 3:
        kiln_stream_release(t->stream);
        break;
      case 4:
        kiln_buffer_release(t->of_pool);
        break;
      case 5:
        kiln_buffer_release(t->again);
        break;
      default:
        kiln_buffer_release(t->plain);
        break;
    }
  }
}

static int open_theirs(int order) {
  theirs_t t;
  message_t message;
  int fd = -1;
  memset(&t, 0, sizeof(t));
  if (!IS(receive_all(0, &message, &fd))) return 3;
  kiln_buffer_options_t options = kiln_buffer_options_default();
  if (!OK(kiln_runtime_create(NULL, &t.runtime)) ||
      !OK(kiln_runtime_open_device(t.runtime, "cuda:0", &t.device)) ||
      !OK(kiln_stream_create(t.device, NULL, &t.stream))) {
    return 3;
  }
  int before = descriptors();
  if (!OK(kiln_pool_import(t.device, fd, &t.pool))) return 3;
  options.pool = t.pool;
  options.stream = t.stream;
  if (!OK(kiln_buffer_import(t.device, &message.of_pool, &options,
                             &t.of_pool)) ||
      !OK(kiln_buffer_import(t.device, &message.of_pool, &options, &t.again)) ||
      !OK(kiln_buffer_import(t.device, &message.plain, NULL, &t.plain))) {
    return 3;
  }
  use_theirs(&t);
  IS(close(fd) == 0);
  kiln_device_retain(t.device);
  kiln_device_t* kept = t.device;
  release_theirs(&t, order);
  int after = descriptors();
  printf("order %d: %d descriptors before, %d after\n", order, before, after);
  IS(after <= before);
  OK(kiln_device_synchronize(kept));
  kiln_device_release(kept);
  return failures == 0 ? 0 : 1;
}

// ---- This one ----

static bool run_other(const char* program, int order, message_t* message,
                      int fd) {
  int ends[2];
  if (!IS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0)) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  char name[4096];
  char word[] = "--opens";
  char number[16];
  snprintf(name, sizeof(name), "%s", program);
  snprintf(number, sizeof(number), "%d", order);
  char* const argv[] = {name, word, number, NULL};
  pid_t child = -1;
  fflush(stdout);
  int error = posix_spawn(&child, name, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[0]);
  bool sent = IS(error == 0) && IS(send_all(ends[1], message, fd));
  close(ends[1]);
  int how = 0;
  return error == 0 && IS(waitpid(child, &how, 0) == child) && sent &&
         IS(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void share(kiln_device_t* device, const char* program, int order) {
  kiln_stream_t* stream = NULL;
  kiln_pool_t* pool = NULL;
  kiln_buffer_t* of_pool = NULL;
  kiln_buffer_t* plain = NULL;
  message_t message;
  int fd = -1;
  kiln_pool_options_t wish = kiln_pool_options_default();
  kiln_buffer_options_t options = kiln_buffer_options_default();
  wish.interprocess = KILN_SWITCH_ON;
  if (!OK(kiln_stream_create(device, NULL, &stream)) ||
      !OK(kiln_pool_create(device, &wish, &pool))) {
    return;
  }
  options.pool = pool;
  options.stream = stream;
  if (!OK(kiln_buffer_create(device, BYTES, &options, &of_pool)) ||
      !OK(kiln_buffer_create(device, BYTES, NULL, &plain))) {
    return;
  }
  OK(kiln_buffer_fill_async(of_pool, stream, 0, BYTES, 0x5a, 1));
  OK(kiln_buffer_fill_async(plain, stream, 0, BYTES, 0x33, 1));
  OK(kiln_stream_synchronize(stream));
  if (OK(kiln_pool_export(pool, &fd)) &&
      OK(kiln_buffer_export(of_pool, &message.of_pool)) &&
      OK(kiln_buffer_export(plain, &message.plain)) &&
      run_other(program, order, &message, fd)) {
    IS(holds(of_pool, 0x33));
    IS(holds(plain, 0x77));
  }
  if (fd >= 0) IS(close(fd) == 0);
  kiln_pool_release(pool);
  kiln_buffer_release(of_pool);
  kiln_buffer_release(plain);
  kiln_stream_release(stream);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "--opens") == 0) {
    return open_theirs(atoi(argv[2]));
  }
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_status_t status = kiln_runtime_create(NULL, &runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(runtime, "cuda:0", &device);
  }
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return 77;
  }
  share(device, argv[0], 0);  // opens what a driver keeps open
  int before = descriptors();
  for (int order = 0; order < ORDERS; order++) share(device, argv[0], order);
  int after = descriptors();
  printf("%d descriptors before, %d after\n", before, after);
  IS(after == before);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
