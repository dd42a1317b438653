// SPDX-License-Identifier: Apache-2.0
//
// probe: problems of the components: hidden copies, a compiler without its
// builtins, wheels that were published broken, variables that point nowhere.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate.h"
#include "probe/probe_sheet.h"
#include "toolkit/toolkit.h"

enum { PATH_BYTES = 4096, BUILTINS_BYTES = 128, MAX_PAIRS = 8 };

static unsigned doubt_pieces_major_of(uint32_t line) {
  return (unsigned)kiln_compat_line_major(line);
}
static unsigned minor_of(uint32_t line) {
  return (unsigned)kiln_compat_line_minor(line);
}

// ---- Copies that are hidden by others ----

// Two roots, one of which hides the other. thread-compatible
typedef struct pair_t {
  const kiln_probe_copy_t* over;
  const kiln_probe_copy_t* under;
  const char* name;
  uint32_t count;
} pair_t;

static bool doubt_pieces_is_hidden(const kiln_probe_t* probe,
                                   const kiln_probe_copy_t* over,
                                   const kiln_probe_copy_t* under) {
  return over->root[0] != 0 && under->root[0] != 0 &&
         strcmp(over->real_path, under->real_path) != 0 &&
         kilni_probe_toolkit_of(probe, over->root) !=
             kilni_probe_toolkit_of(probe, under->root);
}

static void add_pair(pair_t* pairs, size_t* count, const char* name,
                     const kiln_probe_copy_t* over,
                     const kiln_probe_copy_t* under) {
  size_t at = 0;
  for (; at < *count; at++) {
    if (strcmp(pairs[at].over->root, over->root) == 0 &&
        strcmp(pairs[at].under->root, under->root) == 0 &&
        pairs[at].over->line == over->line &&
        pairs[at].under->line == under->line) {
      break;
    }
  }
  if (at == MAX_PAIRS) return;
  if (at == *count) {
    pairs[at].over = over;
    pairs[at].under = under;
    pairs[at].name = name;
    pairs[at].count = 0;
    ++*count;
  }
  pairs[at].count++;
}

static const char* doubt_pieces_place(const kiln_probe_copy_t* copy) {
  return copy->root[0] != 0 ? copy->root : copy->path;
}

static kiln_status_t about_copies(kiln_probe_t* probe) {
  pair_t pairs[MAX_PAIRS];
  size_t count = 0;
  const kiln_probe_piece_t* pieces = probe->pieces.items;
  for (size_t i = 0; i < probe->pieces.count; i++) {
    bool lib = kiln_locate_entry_kind(pieces[i].entry) == KILN_LOCATE_KIND_LIB;
    for (uint32_t j = 1; lib && j < pieces[i].copy_count; j++) {
      if (!doubt_pieces_is_hidden(probe, &pieces[i].copies[0],
                                  &pieces[i].copies[j])) {
        continue;
      }
      add_pair(pairs, &count, pieces[i].name, &pieces[i].copies[0],
               &pieces[i].copies[j]);
    }
  }
  for (size_t i = 0; i < count; i++) {
    const pair_t* pair = &pairs[i];
    bool known = pair->over->line != 0 && pair->under->line != 0;
    bool same = !known || pair->over->line == pair->under->line;
    char of[64] = "";
    char fix[256];
    char variable[KILNI_OVERRIDE_NAME_BYTES];
    kilni_locate_override_name(
        kiln_locate_entry_find(KILN_LOCATE_KIND_LIB, pair->name),
        sizeof(variable), variable);
    snprintf(fix, sizeof(fix),
             "remove one of the two, or choose: \"--prefer %s\" selects the "
             "other, %s names one file",
             pair->under->scope, variable);
    if (!same) {
      snprintf(of, sizeof(of), " (CUDA %u.%u before %u.%u)",
               doubt_pieces_major_of(pair->over->line),
               minor_of(pair->over->line),
               doubt_pieces_major_of(pair->under->line),
               minor_of(pair->under->line));
    }
    KILNI_RETURN_IF_ERROR(kilni_probe_add_problem(
        probe, same ? "copies" : "copies-of-two-lines",
        same ? KILN_PROBE_SEVERITY_NOTE : KILN_PROBE_SEVERITY_WARNING, fix,
        "%u %s of \"%s\" %s hidden by \"%s\"%s, e.g. %s", (unsigned)pair->count,
        pair->count == 1 ? "library" : "libraries",
        doubt_pieces_place(pair->under), pair->count == 1 ? "is" : "are",
        doubt_pieces_place(pair->over), of, pair->name));
  }
  return kiln_ok();
}

// ---- NVRTC's builtins ----

// What a folder has of them. thread-compatible
typedef struct builtins_t {
  const char* wanted;
  char other[BUILTINS_BYTES];
  bool found;
} builtins_t;

static bool see_builtins(const char* name, void* user) {
  builtins_t* builtins = user;
  if (strncmp(name, "libnvrtc-builtins.so", 20) != 0) return true;
  if (strncmp(name, builtins->wanted, strlen(builtins->wanted)) == 0) {
    builtins->found = true;
    return false;
  }
  snprintf(builtins->other, sizeof(builtins->other), "%s", name);
  return true;
}

// The interpreter beside a wheel's library: DIR/bin/python3 of
// DIR/lib/python3.12/site-packages/...; that of the path where there is none.
static void wheel_python(const char* path, char out[PATH_BYTES]) {
  const char* lib = strstr(path, "/lib/python3");
  if (lib != NULL) {
    snprintf(out, PATH_BYTES, "%.*s/bin/python3", (int)(lib - path), path);
    if (kilni_base_file_look(out).kind == KILNI_FILE_REGULAR) return;
  }
  snprintf(out, PATH_BYTES, "python3");
}

static void nvrtc_fix(const kiln_probe_t* probe, const kiln_probe_copy_t* copy,
                      char* fix, size_t capacity) {
  unsigned major = doubt_pieces_major_of(copy->line);
  unsigned minor = minor_of(copy->line);
  bool apt = probe->packages == KILNI_PROBE_PACKAGES_APT;
  if (copy->scope_id == KILN_LOCATE_SCOPE_WHEEL) {
    // The interpreter whose wheels they are: another one has a place of its
    // own, and the system's may refuse.
    char python[PATH_BYTES];
    wheel_python(copy->real_path, python);
    snprintf(fix, capacity,
             "%s -m pip install --force-reinstall nvidia-cuda-nvrtc%s", python,
             major == 12 ? "-cu12" : "");
  } else if (copy->scope_id == KILN_LOCATE_SCOPE_CONDA) {
    snprintf(fix, capacity, "conda install --force-reinstall cuda-nvrtc");
  } else if (strncmp(copy->real_path, "/usr/", 5) == 0 &&
             probe->packages != KILNI_PROBE_PACKAGES_UNKNOWN && major != 0 &&
             probe->packages != KILNI_PROBE_PACKAGES_PACMAN) {
    snprintf(fix, capacity, "sudo %s cuda-nvrtc-%u-%u",
             apt ? "apt install --reinstall"
                 : (probe->packages == KILNI_PROBE_PACKAGES_DNF
                        ? "dnf reinstall"
                        : "zypper install --force"),
             major, minor);
  } else {
    snprintf(fix, capacity,
             "install NVRTC again, all of its files, from where \"%s\" came",
             copy->path);
  }
}

static kiln_status_t about_builtins(kiln_probe_t* probe) {
  const kiln_probe_piece_t* piece =
      kilni_probe_piece_find(probe, KILN_LOCATE_KIND_LIB, "nvrtc");
  for (uint32_t i = 0; piece != NULL && i < piece->copy_count; i++) {
    const kiln_probe_copy_t* copy = &piece->copies[i];
    char folder[PATH_BYTES];
    char wanted[64] = "libnvrtc-builtins.so";
    snprintf(folder, sizeof(folder), "%s", copy->real_path);
    char* slash = strrchr(folder, '/');
    if (slash == NULL) continue;
    *slash = 0;
    if (copy->line != 0) {
      snprintf(wanted, sizeof(wanted), "libnvrtc-builtins.so.%u.%u",
               doubt_pieces_major_of(copy->line), minor_of(copy->line));
    }
    builtins_t builtins = {wanted, "", false};
    if (kilni_base_dir_scan(folder, see_builtins, &builtins) != 0) continue;
    if (builtins.found) continue;
    char fix[PATH_BYTES + 128];
    nvrtc_fix(probe, copy, fix, sizeof(fix));
    KILNI_RETURN_IF_ERROR(kilni_probe_add_problem(
        probe, "nvrtc-builtins-missing",
        i == 0 ? KILN_PROBE_SEVERITY_ERROR : KILN_PROBE_SEVERITY_NOTE, fix,
        "\"%s\" cannot compile: %s is not beside it%s%s%s", copy->path, wanted,
        builtins.other[0] != 0 ? " (but " : "", builtins.other,
        builtins.other[0] != 0 ? ")" : ""));
  }
  return kiln_ok();
}

// ---- Wheels that are known to be broken ----

static bool has_flaw(const kiln_probe_copy_t* copy,
                     const kiln_locate_flaw_t* flaw, const char** out_version) {
  const char* name = "";
  const char* file =
      kiln_locate_item_file_name(kiln_toolkit_item_located(copy->item));
  if (!kilni_toolkit_item_wheel(copy->item, &name, out_version) ||
      strcmp(name, flaw->distribution) != 0 ||
      (flaw->file[0] != 0 && strcmp(file, flaw->file) != 0)) {
    return false;
  }
  bool admits = false;
  // A version that cannot be read is of no release that is known.
  kiln_status_free(kiln_compat_spec_admits(flaw->versions, *out_version,
                                           KILN_SWITCH_ON, &admits));
  return admits;
}

// A flaw is reported once, of the copy that is taken; hidden copies are
// harmless. A note: kiln_toolkit_load applies the workaround of those that have
// one.
static kiln_status_t about_flaw(kiln_probe_t* probe,
                                const kiln_locate_flaw_t* flaw) {
  const kiln_probe_piece_t* pieces = probe->pieces.items;
  for (size_t i = 0; i < probe->pieces.count; i++) {
    const char* version = "";
    if (pieces[i].copy_count == 0 ||
        !has_flaw(&pieces[i].copies[0], flaw, &version)) {
      continue;
    }
    return kilni_probe_add_problem(
        probe, "wheel-flawed", KILN_PROBE_SEVERITY_NOTE, flaw->mend,
        "the wheel %s %s was published with a flaw: %s", flaw->distribution,
        version, flaw->what);
  }
  return kiln_ok();
}

static kiln_status_t about_flaws(kiln_probe_t* probe) {
  for (uint32_t i = 0; i < kiln_locate_flaw_count(); i++) {
    const kiln_locate_flaw_t flaw = kiln_locate_flaw(i);
    KILNI_RETURN_IF_ERROR(about_flaw(probe, &flaw));
  }
  return kiln_ok();
}

// ---- CUDA_PATH and CUDA_HOME ----

static kiln_status_t about_root(kiln_probe_t* probe, const char* variable,
                                const char* id, const char* value) {
  char fix[128];
  if (value == NULL || value[0] == 0 || kilni_base_dir_exists(value)) {
    return kiln_ok();
  }
  snprintf(fix, sizeof(fix), "unset %s, or set it to a toolkit's folder",
           variable);
  return kilni_probe_add_problem(probe, id, KILN_PROBE_SEVERITY_WARNING, fix,
                                 "%s is \"%s\", which is not a directory",
                                 variable, value);
}

static kiln_status_t about_roots(kiln_probe_t* probe) {
  const char* path = kilni_probe_variable_text(probe, KILNI_ENV_CUDA_PATH);
  const char* home = kilni_probe_variable_text(probe, KILNI_ENV_CUDA_HOME);
  KILNI_RETURN_IF_ERROR(
      about_root(probe, "CUDA_PATH", "cuda-path-missing", path));
  KILNI_RETURN_IF_ERROR(
      about_root(probe, "CUDA_HOME", "cuda-home-missing", home));
  if (path == NULL || home == NULL || path[0] == 0 || home[0] == 0) {
    return kiln_ok();
  }
  kilni_base_file_look_t one = kilni_base_file_look(path);
  kilni_base_file_look_t two = kilni_base_file_look(home);
  bool both = one.kind == KILNI_FILE_DIR && two.kind == KILNI_FILE_DIR;
  if (!both || (one.device == two.device && one.inode == two.inode)) {
    return kiln_ok();
  }
  return kilni_probe_add_problem(
      probe, "cuda-path-and-home-differ", KILN_PROBE_SEVERITY_WARNING,
      "set both to the same folder, or unset one",
      "CUDA_PATH is \"%s\" and CUDA_HOME \"%s\": CUDA_PATH is used here, other "
      "programs may use the other",
      path, home);
}

kiln_status_t kilni_probe_doubt_pieces(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source) {
  (void)source;
  KILNI_RETURN_IF_ERROR(about_roots(probe));
  KILNI_RETURN_IF_ERROR(about_builtins(probe));
  KILNI_RETURN_IF_ERROR(about_flaws(probe));
  return about_copies(probe);
}
