// SPDX-License-Identifier: Apache-2.0
//
// cli: DOT made into SVG by Graphviz.
//
// Unnamed temporary files connect the two processes: no pipe can fill up, and
// no file is left over.
#define _POSIX_C_SOURCE 200809L
#include "cli/graph_svg.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_progress.h"

extern char** environ;

enum { SAID_BYTES = 400 };  // of Graphviz's message, in an error

static bool graph_svg_fail_missing(kilni_cli_error_t* error) {
  return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "install the package graphviz, or write the picture "
                        "with --dot and draw it elsewhere (dot -Tsvg)",
                        "drawing a picture needs the program \"dot\" of "
                        "Graphviz, which is not on the PATH");
}

static bool fail_file(kilni_cli_error_t* error) {
  return kilni_cli_fail(error, KILN_STATUS_IO_ERROR,
                        "make space in the folder for temporary files",
                        "no temporary file for Graphviz: %s", strerror(errno));
}

// 0, or an errno; `*out_code` is the exit code.
static int graph_svg_run(const char* const* words, int in, int out, int said,
                         int* out_code) {
  pid_t child = 0;
  posix_spawn_file_actions_t actions;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed != 0) return failed;
  failed = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  if (failed == 0) {
    failed = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  }
  if (failed == 0) {
    failed = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
  }
  char* args[4] = {NULL, NULL, NULL, NULL};
  for (int i = 0; i < 3 && words[i] != NULL; i++) {
    memcpy(&args[i], &words[i], sizeof(args[i]));
  }
  if (failed == 0) {
    failed = posix_spawnp(&child, words[0], &actions, NULL, args, environ);
  }
  (void)posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return failed;
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  *out_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return 0;
}

static bool read_back(FILE* file, kilni_cli_buffer_t* out,
                      kilni_cli_error_t* error) {
  char block[4096];
  size_t size;
  if (fseek(file, 0, SEEK_SET) != 0) return fail_file(error);
  while ((size = fread(block, 1, sizeof(block), file)) != 0) {
    if (!kilni_cli_buffer_add(out, block, size, error)) return false;
  }
  return ferror(file) == 0 || fail_file(error);
}

// The files are ended by the caller.
static bool graph_svg_convert(const char* const* words,
                              const kilni_cli_buffer_t* dot,
                              FILE* const files[3], kilni_cli_buffer_t* out,
                              kilni_cli_error_t* error) {
  if (files[0] == NULL || files[1] == NULL || files[2] == NULL) {
    return fail_file(error);
  }
  size_t put = dot->size == 0 ? 0 : fwrite(dot->data, 1, dot->size, files[0]);
  if (put != dot->size || fflush(files[0]) != 0 ||
      lseek(fileno(files[0]), 0, SEEK_SET) != 0) {
    return fail_file(error);
  }
  int code = 0;
  int failed = graph_svg_run(words, fileno(files[0]), fileno(files[1]),
                             fileno(files[2]), &code);
  // Code 127 means that the child could not run it.
  if (failed == ENOENT || (failed == 0 && code == 127)) {
    return graph_svg_fail_missing(error);
  }
  if (failed != 0) {
    return kilni_cli_fail(
        error, KILN_STATUS_IO_ERROR, "check that \"dot -V\" runs",
        "the program \"dot\" could not be run: %s", strerror(failed));
  }
  if (code != 0) {
    char said[SAID_BYTES];
    (void)fseek(files[2], 0, SEEK_SET);
    size_t size = fread(said, 1, sizeof(said) - 1, files[2]);
    said[size] = 0;
    (void)kilni_cli_fail(error, KILN_STATUS_IO_ERROR,
                         "write the picture with --dot, and see what dot "
                         "-Tsvg reports",
                         "Graphviz ended with %d and drew nothing", code);
    kilni_cli_copy_text(error->trail, sizeof(error->trail), said);
    return false;
  }
  return read_back(files[1], out, error);
}

static bool run_dot(const char* const* words, const kilni_cli_buffer_t* dot,
                    kilni_cli_buffer_t* out, kilni_cli_error_t* error) {
  FILE* files[3] = {tmpfile(), tmpfile(), tmpfile()};
  bool ok = graph_svg_convert(words, dot, files, out, error);
  for (int i = 0; i < 3; i++) {
    if (files[i] != NULL) (void)fclose(files[i]);
  }
  return ok;
}

bool kilni_cli_svg_check(kilni_cli_error_t* error) {
  static const char* const WORDS[] = {"dot", "-V", NULL};
  kilni_cli_buffer_t none = {0};
  kilni_cli_buffer_t ignored = {0};
  bool ok = run_dot(WORDS, &none, &ignored, error);
  kilni_cli_buffer_deinit(&ignored);
  return ok;
}

bool kilni_cli_svg_make(const kilni_cli_buffer_t* dot, kilni_cli_buffer_t* out,
                        kilni_cli_error_t* error) {
  static const char* const WORDS[] = {"dot", "-Tsvg", NULL};
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "drawing");
  bool ok = run_dot(WORDS, dot, out, error);
  kilni_cli_progress_stop(&progress);
  return ok;
}
