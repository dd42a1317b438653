// SPDX-License-Identifier: Apache-2.0
//
// cli: the terminal of `kiln top`, by the escapes that every terminal of the
// last thirty years knows. Signals are blocked and polled, so that no handler
// and no global state is needed.
#define _POSIX_C_SOURCE 200809L
#include "cli/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#if !defined(SIGWINCH)
#define SIGWINCH 28  // not in POSIX of 2008
#endif

enum { SLICE_MS = 50, CTRL_C = 3, ROWS = 24, COLUMNS = 80 };

static const char kEnter[] = "\033[?1049h\033[?25l\033[H\033[2J";
static const char kLeave[] = "\033[?25h\033[?1049l";

static bool top_screen_write_all(int out, const char* text, size_t size) {
  while (size > 0) {
    ssize_t wrote = write(out, text, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text += wrote;
    size -= (size_t)wrote;
  }
  return true;
}

bool kilni_cli_screen_is_one(FILE* out) {
  const char* kind = getenv("TERM");
  return isatty(fileno(out)) == 1 && kind != NULL && kind[0] != 0 &&
         strcmp(kind, "dumb") != 0;
}

static void take_keys(kilni_cli_screen_t* screen) {
  screen->has_keys = isatty(STDIN_FILENO) == 1;
  if (!screen->has_keys || tcgetattr(STDIN_FILENO, &screen->found) != 0) return;
  struct termios keys = screen->found;
  keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
  keys.c_cc[VMIN] = 0;
  keys.c_cc[VTIME] = 0;
  screen->changed = tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) == 0;
}

static const int kSignals[] = {SIGINT,  SIGTERM, SIGHUP,
                               SIGQUIT, SIGTSTP, SIGWINCH};

void kilni_cli_screen_hold(kilni_cli_screen_t* screen) {
  memset(screen, 0, sizeof(*screen));
  (void)sigemptyset(&screen->signals);
  for (size_t i = 0; i < sizeof(kSignals) / sizeof(kSignals[0]); i++) {
    struct sigaction action;
    // Signals ignored at the start stay ignored: SIGHUP under nohup.
    if (sigaction(kSignals[i], NULL, &action) == 0 &&
        action.sa_handler != SIG_IGN) {
      (void)sigaddset(&screen->signals, kSignals[i]);
    }
  }
  (void)sigprocmask(SIG_BLOCK, &screen->signals, &screen->mask);
}

void kilni_cli_screen_open(kilni_cli_screen_t* screen, FILE* out) {
  screen->out = fileno(out);
  (void)fflush(out);
  take_keys(screen);
  (void)top_screen_write_all(screen->out, kEnter, sizeof(kEnter) - 1);
}

void kilni_cli_screen_close(kilni_cli_screen_t* screen) {
  (void)top_screen_write_all(screen->out, kLeave, sizeof(kLeave) - 1);
  if (screen->changed) (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->found);
}

void kilni_cli_screen_let_go(kilni_cli_screen_t* screen) {
  (void)sigprocmask(SIG_SETMASK, &screen->mask, NULL);
}

static void top_screen_read_size(const kilni_cli_screen_t* screen,
                                 size_t* out_rows, size_t* out_columns) {
  struct winsize size;
  memset(&size, 0, sizeof(size));
  bool told = ioctl(screen->out, TIOCGWINSZ, &size) == 0;
  *out_rows = told && size.ws_row > 0 ? size.ws_row : ROWS;
  *out_columns = told && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

// What must not reach the terminal: names of processes and GPUs are untrusted,
// and the terminal would obey an escape in them.
static size_t put_line(char* to, const char* from, size_t size,
                       size_t columns) {
  size_t wrote = 0;
  for (size_t i = 0; i < size && i < columns; i++) {
    unsigned char c = (unsigned char)from[i];
    to[wrote++] = c < 32 || c == 127 ? '?' : (char)c;
  }
  return wrote;
}

bool kilni_cli_screen_show(const kilni_cli_screen_t* screen, const char* text) {
  size_t rows;
  size_t columns;
  top_screen_read_size(screen, &rows, &columns);
  size_t space = strlen(text) + rows * 8 + 32;
  char* page = malloc(space);
  if (page == NULL) return true;  // the last page stays
  size_t at = 0;
  memcpy(page + at, "\033[H", 3);
  at += 3;
  for (size_t row = 0; row < rows && *text != 0; row++) {
    size_t size = strcspn(text, "\n");
    if (row > 0) {
      memcpy(page + at, "\r\n", 2);
      at += 2;
    }
    at += put_line(page + at, text, size, columns);
    memcpy(page + at, "\033[K", 3);
    at += 3;
    text += size + (text[size] == '\n');
  }
  memcpy(page + at, "\033[J", 3);
  at += 3;
  bool good = top_screen_write_all(screen->out, page, at);
  free(page);
  return good;
}

// `q` or Ctrl-C among the keys that were pressed. A closed terminal ends it
// too.
static bool asked_to_quit(const kilni_cli_screen_t* screen, int milliseconds) {
  struct pollfd keys = {STDIN_FILENO, POLLIN, 0};
  if (!screen->has_keys) {
    (void)poll(NULL, 0, milliseconds);
    return false;
  }
  if (poll(&keys, 1, milliseconds) <= 0) return false;
  if ((keys.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return true;
  char typed[64];
  ssize_t count = read(STDIN_FILENO, typed, sizeof(typed));
  for (ssize_t i = 0; i < count; i++) {
    if (typed[i] == 'q' || typed[i] == 'Q' || typed[i] == CTRL_C) return true;
  }
  return false;
}

kilni_cli_event_t kilni_cli_screen_wait(kilni_cli_screen_t* screen,
                                        int milliseconds, int* out_signal) {
  *out_signal = 0;
  for (;;) {
    struct timespec none = {0, 0};
    int signal = sigtimedwait(&screen->signals, NULL, &none);
    if (signal == SIGWINCH) return KILNI_CLI_EVENT_SIZE;
    if (signal > 0 && signal != SIGTSTP) {
      *out_signal = signal;
      return KILNI_CLI_EVENT_SIGNAL;
    }
    if (milliseconds <= 0) return KILNI_CLI_EVENT_TIME;
    int slice = milliseconds < SLICE_MS ? milliseconds : SLICE_MS;
    if (asked_to_quit(screen, slice)) return KILNI_CLI_EVENT_QUIT;
    milliseconds -= slice;
  }
}
