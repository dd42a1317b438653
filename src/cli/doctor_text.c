// SPDX-License-Identifier: Apache-2.0
//
// cli: the facts as text: short enough to paste into a bug report.
#include <inttypes.h>
#include <string.h>

#include "cli/cli_pieces.h"
#include "cli/cli_trail.h"
#include "cli/doctor_report.h"
#include "kiln/version.h"

#define WIDTH       78
#define LABEL       13
#define MAX_TITLE   20
#define MAX_VERSION 16
#define MAX_SCOPE   16

// The most important components, in this order.
static const kilni_cli_piece_t kImportant[] = {
    {KILN_LOCATE_KIND_LIB, "cuda"},      {KILN_LOCATE_KIND_LIB, "nvml"},
    {KILN_LOCATE_KIND_LIB, "cudart"},    {KILN_LOCATE_KIND_LIB, "nvrtc"},
    {KILN_LOCATE_KIND_LIB, "nvJitLink"}, {KILN_LOCATE_KIND_LIB, "nvvm"},
    {KILN_LOCATE_KIND_BINARY, "nvcc"},   {KILN_LOCATE_KIND_BINARY, "ptxas"},
    {KILN_LOCATE_KIND_LIB, "cublas"},    {KILN_LOCATE_KIND_LIB, "cudnn"},
    {KILN_LOCATE_KIND_LIB, "nccl"},
};

#define IMPORTANT_COUNT (sizeof(kImportant) / sizeof(kImportant[0]))

// The label of a block on its first line, spaces on the others.
static void label(FILE* out, const char** text) {
  (void)fprintf(out, "%-*s", LABEL, *text);
  *text = "";
}

static void doctor_text_put(FILE* out, const char* text) {
  char clean[4096];
  kilni_cli_copy_text(clean, sizeof(clean), text);
  for (char* c = clean; *c != 0; c++) {
    if (*c == '\n') *c = ' ';
  }
  (void)fputs(clean, out);
}

// `text` in lines of WIDTH, all but the first indented by `indent`.
static void put_wrapped(FILE* out, const char* text, int indent) {
  char clean[4096];
  kilni_cli_copy_text(clean, sizeof(clean), text);
  int at = indent;
  const char* word = clean;
  while (*word != 0) {
    int size = (int)strcspn(word, " \n");
    if (at > indent && at + 1 + size > WIDTH) {
      (void)fprintf(out, "\n%*s", indent, "");
      at = indent;
    } else if (at > indent) {
      (void)fputc(' ', out);
      at++;
    }
    (void)fwrite(word, 1, (size_t)size, out);
    at += size;
    word += size;
    word += strspn(word, " \n");
  }
  (void)fputc('\n', out);
}

static void print_system(FILE* out, const kiln_probe_t* probe) {
  const kiln_probe_system_t* s = kiln_probe_system(probe);
  (void)fprintf(out, "%-*s", LABEL, "system");
  doctor_text_put(out, s->name[0] != 0 ? s->name : "Linux");
  if (s->kernel[0] != 0) {
    (void)fputs(", Linux ", out);
    doctor_text_put(out, s->kernel);
  }
  if (s->machine[0] != 0) (void)fprintf(out, ", %s", s->machine);
  if (s->is_wsl != 0) (void)fputs(", WSL", out);
  if (s->is_container != 0) (void)fputs(", in a container", out);
  (void)fputc('\n', out);
}

static void print_driver(FILE* out, const kiln_probe_t* probe) {
  const kiln_probe_driver_t* d = kiln_probe_driver(probe);
  char version[32];
  (void)fprintf(out, "%-*s", LABEL, "driver");
  if (d->found == 0) {
    (void)fputs("none: ", out);
    put_wrapped(out, d->why, LABEL + 6);
    return;
  }
  kilni_cli_line_text(d->version, version);
  (void)fprintf(out, "CUDA %s", version[0] != 0 ? version : "?");
  if (d->release[0] != 0) (void)fprintf(out, ", release %s", d->release);
  (void)fputs(", ", out);
  doctor_text_put(out, d->path);
  if (d->works == 0 && d->why[0] != 0) {
    (void)fprintf(out, "\n%*sdoes not work: ", LABEL, "");
    doctor_text_put(out, d->why);
  }
  (void)fputc('\n', out);
}

static void print_devices(FILE* out, const kiln_probe_t* probe) {
  const char* name = "devices";
  for (uint32_t i = 0; i < kiln_probe_device_count(probe); i++) {
    const kiln_probe_device_t* g = kiln_probe_device(probe, i);
    label(out, &name);
    (void)fprintf(out, "%-8s", g->name);
    doctor_text_put(out, g->model);
    (void)fprintf(out,
                  ", compute capability %" PRIu32 ".%" PRIu32 ", %" PRIu32
                  " multiprocessors, %" PRIu64 " MiB\n",
                  g->compute_major, g->compute_minor, g->multiprocessors,
                  g->memory_bytes >> 20);
    if (g->uuid[0] == 0 && g->address[0] == 0) continue;
    label(out, &name);
    (void)fprintf(out, "%-8s%s, PCI %s\n", "", g->uuid, g->address);
  }
  const kiln_probe_soft_t* s = kiln_probe_soft(probe);
  label(out, &name);
  (void)fprintf(out,
                "%-8ssoftware device, lanes %s (this CPU has %s), 16 bytes by "
                "%s, %" PRIu32 " workers\n",
                "soft", s->lanes[0] != 0 ? s->lanes : "?", s->lanes_have,
                s->wide, s->workers);
}

static int doctor_text_fit(int width, const char* text, int most) {
  int size = (int)strlen(text);
  if (size > most) size = most;
  return size > width ? size : width;
}

// Paths are last in each line, since they may have any length.
static void print_toolkits(FILE* out, const kiln_probe_t* probe) {
  const char* name = "toolkits";
  int version = 0;
  int scope = 0;
  uint32_t count = kiln_probe_toolkit_count(probe);
  if (count == 0) {
    label(out, &name);
    (void)fputs("none\n", out);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    const kiln_probe_toolkit_t* t = kiln_probe_toolkit(probe, i);
    version = doctor_text_fit(version, t->version[0] != 0 ? t->version : "?",
                              MAX_VERSION);
    scope = doctor_text_fit(scope, t->scope, MAX_SCOPE);
  }
  for (uint32_t i = 0; i < count; i++) {
    const kiln_probe_toolkit_t* t = kiln_probe_toolkit(probe, i);
    int indent = LABEL + version + 2;
    label(out, &name);
    (void)fprintf(out, "%-*s  %-*s  ", version,
                  t->version[0] != 0 ? t->version : "?", scope, t->scope);
    doctor_text_put(out, t->root);
    (void)fprintf(out, "\n%*s%" PRIu32 " piece%s", indent, "", t->piece_count,
                  t->piece_count == 1 ? "" : "s");
    if (strchr(t->lines, ',') != NULL) {
      (void)fprintf(out, " of CUDA %s", t->lines);
    }
    (void)fputc('\n', out);
    if (t->has[0] == 0) continue;
    (void)fprintf(out, "%*s", indent, "");
    put_wrapped(out, t->has, indent);
  }
}

// ---- Components ----

static const char* doctor_text_version_of(const kiln_probe_copy_t* copy,
                                          char out[32]) {
  if (copy->version[0] != 0) return copy->version;
  kilni_cli_line_text(copy->line, out);
  return out[0] != 0 ? out : "?";
}

static const kiln_probe_piece_t* doctor_text_piece_named(
    const kiln_probe_t* probe, const kilni_cli_piece_t* wanted) {
  for (uint32_t i = 0; i < kiln_probe_piece_count(probe); i++) {
    const kiln_probe_piece_t* p = kiln_probe_piece(probe, i);
    if (kiln_locate_entry_kind(p->entry) == wanted->kind &&
        strcmp(p->name, wanted->name) == 0) {
      return p;
    }
  }
  return NULL;
}

// How wide the columns of copies are. one-thread
typedef struct columns_t {
  int version;
  int scope;
} columns_t;

static void doctor_text_widen(columns_t* columns,
                              const kiln_probe_copy_t* copy) {
  char text[32];
  columns->version = doctor_text_fit(
      columns->version, doctor_text_version_of(copy, text), MAX_VERSION);
  columns->scope = doctor_text_fit(columns->scope, copy->scope, MAX_SCOPE);
}

static void doctor_text_print_copy(FILE* out, const kiln_probe_copy_t* copy,
                                   const columns_t* columns) {
  char text[32];
  (void)fprintf(out, "%-*s  %-*s  ", columns->version,
                doctor_text_version_of(copy, text), columns->scope,
                copy->scope);
  doctor_text_put(out, copy->path);
  (void)fputc('\n', out);
}

static void doctor_text_print_missing(FILE* out, const char** name,
                                      const kiln_probe_piece_t* const* pieces,
                                      size_t count) {
  char text[2048];
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    if (pieces[i] == NULL || pieces[i]->copy_count != 0) continue;
    int wrote = snprintf(text + at, sizeof(text) - at, " %s", pieces[i]->name);
    if (wrote > 0 && (size_t)wrote < sizeof(text) - at) at += (size_t)wrote;
  }
  text[at] = 0;
  if (at == 0) return;
  label(out, name);
  (void)fprintf(out, "not found:%s\n", text);
}

static void print_libraries(FILE* out, const kiln_probe_t* probe) {
  const char* name = "libraries";
  const kiln_probe_piece_t* pieces[IMPORTANT_COUNT];
  int title = 0;
  columns_t columns = {0, 0};
  for (size_t i = 0; i < IMPORTANT_COUNT; i++) {
    pieces[i] = doctor_text_piece_named(probe, &kImportant[i]);
    if (pieces[i] == NULL || pieces[i]->copy_count == 0) continue;
    title = doctor_text_fit(title, pieces[i]->name, MAX_TITLE);
    doctor_text_widen(&columns, pieces[i]->copies);
  }
  for (size_t i = 0; i < IMPORTANT_COUNT; i++) {
    if (pieces[i] == NULL || pieces[i]->copy_count == 0) continue;
    label(out, &name);
    (void)fprintf(out, "%-*s  ", title, pieces[i]->name);
    doctor_text_print_copy(out, pieces[i]->copies, &columns);
  }
  doctor_text_print_missing(out, &name, pieces, IMPORTANT_COUNT);
}

static void print_trail(FILE* out, const kiln_probe_piece_t* piece) {
  uint32_t count =
      piece->located != NULL ? kiln_locate_item_tried_count(piece->located) : 0;
  if (count == 0) return;
  kilni_cli_trail_t trail;
  kilni_cli_trail_init(&trail, kiln_locate_item_tried(piece->located, 0),
                       count);
  const kiln_locate_tried_t* tried;
  while ((tried = kilni_cli_trail_next(&trail)) != NULL) {
    (void)fprintf(out, "%*s", LABEL + 2, "");
    doctor_text_put(out, tried->path);
    (void)fputs(": ", out);
    doctor_text_put(out, tried->why);
    (void)fputc('\n', out);
  }
  kilni_cli_trail_deinit(&trail);
}

static void print_pieces(FILE* out, const kiln_probe_t* probe,
                         kilni_cli_doctor_view_t view) {
  const char* name = "pieces";
  columns_t columns = {0, 0};
  for (uint32_t i = 0; i < kiln_probe_piece_count(probe); i++) {
    const kiln_probe_piece_t* p = kiln_probe_piece(probe, i);
    for (uint32_t j = 0; j < p->copy_count; j++) {
      doctor_text_widen(&columns, &p->copies[j]);
    }
  }
  for (uint32_t i = 0; i < kiln_probe_piece_count(probe); i++) {
    const kiln_probe_piece_t* p = kiln_probe_piece(probe, i);
    for (uint32_t j = 0; j < p->copy_count; j++) {
      label(out, &name);
      (void)fprintf(out, "%-7s %-20s  ", j == 0 ? p->kind : "",
                    j == 0 ? p->name : "  hidden:");
      doctor_text_print_copy(out, &p->copies[j], &columns);
    }
    if (p->copy_count == 0) {
      label(out, &name);
      (void)fprintf(out, "%-7s %-20s  not found\n", p->kind, p->name);
    }
    if (view.trail) print_trail(out, p);
  }
}

// ---- The rest ----

// Whether the chosen components are compatible, for each use that could be
// judged.
static void print_fits(FILE* out, const kiln_probe_t* probe) {
  static const struct {
    uint32_t use;
    const char* text;
  } uses[] = {
      {KILN_COMPAT_USE_ANY, "pieces"},  {KILN_COMPAT_USE_PTX, "PTX"},
      {KILN_COMPAT_USE_CUBIN, "cubin"}, {KILN_COMPAT_USE_LTO, "LTO"},
      {KILN_COMPAT_USE_ELF, "ELF"},     {KILN_COMPAT_USE_NVVM, "NVVM IR"}};
  const kiln_compat_report_t* report = kiln_probe_report(probe);
  bool said = false;
  if (report == NULL) return;
  (void)fprintf(out, "%-*s", LABEL, "together");
  for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
    uint32_t verdict = kilni_cli_doctor_verdict(report, uses[i].use);
    if (verdict == 0) continue;
    (void)fprintf(out, "%s%s %s", said ? ", " : "", uses[i].text,
                  kiln_compat_verdict_word(verdict));
    said = true;
  }
  (void)fputc('\n', out);
}

static void print_store(FILE* out, const kiln_probe_t* probe) {
  const kiln_probe_store_t* s = kiln_probe_store(probe);
  if (s == NULL) return;
  (void)fprintf(out, "%-*s", LABEL, "cache");
  doctor_text_put(out, s->path[0] != 0 ? s->path : "none");
  if (s->switched == 0) {
    (void)fputs(", off", out);
  } else if (s->problem[0] != 0) {
    (void)fputs(", in memory only (see cache-not-used)", out);
  } else if (s->exists == 0) {
    (void)fputs(", does not exist yet", out);
  } else {
    (void)fprintf(out, ", %" PRIu64 " entries, %.1f of %.0f MiB", s->entries,
                  (double)s->bytes / 1048576.0, (double)s->limit / 1048576.0);
  }
  (void)fputc('\n', out);
}

static void print_cache(FILE* out, const kiln_probe_t* probe) {
  const kiln_probe_cache_t* c = kiln_probe_cache(probe);
  if (c->path[0] == 0) return;
  (void)fprintf(out, "%-*s", LABEL, "JIT cache");
  doctor_text_put(out, c->path);
  if (c->disabled != 0) {
    (void)fputs(", off", out);
  } else if (c->exists == 0) {
    (void)fputs(", does not exist yet", out);
  } else {
    (void)fprintf(out, ", %s%.1f of %.0f MiB", c->complete == 0 ? "over " : "",
                  (double)c->bytes / 1048576.0, (double)c->limit / 1048576.0);
  }
  if (c->writable == 0) (void)fputs(", not writable", out);
  (void)fputc('\n', out);
}

// The set variables that change what is found.
static void print_environment(FILE* out, const kiln_probe_t* probe) {
  const char* name = "environment";
  for (uint32_t i = 0; i < kiln_probe_variable_count(probe); i++) {
    const kiln_probe_variable_t* v = kiln_probe_variable(probe, i);
    if (v->value == NULL || strcmp(v->name, "HOME") == 0) continue;
    label(out, &name);
    (void)fprintf(out, "%s=", v->name);
    doctor_text_put(out, v->value);
    (void)fputc('\n', out);
  }
  if (name[0] == 0) return;
  label(out, &name);
  (void)fputs("no variable set that Kiln reads\n", out);
}

static void print_problems(FILE* out, const kiln_probe_t* probe) {
  uint32_t count = kiln_probe_problem_count(probe);
  if (count == 0) {
    (void)fprintf(out, "\n%-*snone\n", LABEL, "problems");
    return;
  }
  (void)fprintf(out, "\nproblems\n");
  for (uint32_t i = 0; i < count; i++) {
    const kiln_probe_problem_t* p = kiln_probe_problem(probe, i);
    (void)fprintf(out, "  %-8s %s\n", kiln_probe_severity_name(p->severity),
                  p->id);
    (void)fprintf(out, "%*s", 11, "");
    put_wrapped(out, p->message, 11);
    if (p->fix == NULL || p->fix[0] == 0) continue;
    // In one line, however long: it may be a command to paste.
    (void)fprintf(out, "%*sFix: ", 11, "");
    doctor_text_put(out, p->fix);
    (void)fputc('\n', out);
  }
}

static void print_count(FILE* out, uint32_t count, const char* word,
                        bool* said) {
  if (count == 0) return;
  (void)fprintf(out, "%s%" PRIu32 " %s%s", *said ? ", " : "", count, word,
                count == 1 ? "" : "s");
  *said = true;
}

// A summary of the end, for readers of the first lines.
static void print_summary(FILE* out, const kiln_probe_t* probe) {
  uint32_t counts[KILN_PROBE_SEVERITY_ERROR + 1] = {0};
  bool said = false;
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    counts[kiln_probe_problem(probe, i)->severity]++;
  }
  (void)fprintf(out, "%-*s%s: ", LABEL, "kiln", kiln_version_string());
  print_count(out, counts[KILN_PROBE_SEVERITY_ERROR], "error", &said);
  print_count(out, counts[KILN_PROBE_SEVERITY_WARNING], "warning", &said);
  print_count(out, counts[KILN_PROBE_SEVERITY_NOTE], "note", &said);
  (void)fputs(said ? ", listed at the end\n" : "no problem found\n", out);
}

void kilni_cli_doctor_print(FILE* out, const kiln_probe_t* probe,
                            kilni_cli_doctor_view_t view) {
  print_summary(out, probe);
  print_system(out, probe);
  print_driver(out, probe);
  print_devices(out, probe);
  kilni_cli_now_print(out, view.watch, LABEL);
  print_toolkits(out, probe);
  if (view.all || view.trail) {
    print_pieces(out, probe, view);
  } else {
    print_libraries(out, probe);
  }
  print_fits(out, probe);
  print_store(out, probe);
  print_cache(out, probe);
  print_environment(out, probe);
  print_problems(out, probe);
}
