// SPDX-License-Identifier: Apache-2.0
//
// probe: the operating system, from the files in which it names itself.
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "probe/probe_sheet.h"

enum { SYSTEM_FILE_BYTES = 64 << 10, NAME_BYTES = 256 };

// The file below the system's root; "" if it cannot be read.
static kiln_status_t system_read_text(kiln_probe_t* probe,
                                      const char* system_root, const char* name,
                                      char* text, size_t capacity) {
  kiln_allocator_t allocator = probe->host->allocator;
  kilni_base_str_t path;
  uint8_t* data = NULL;
  size_t size = 0;
  text[0] = 0;
  kilni_base_str_init(&path, allocator, KILNI_PROBE_TEXT_BYTES);
  kilni_base_str_add_cstr(&path, system_root);
  kilni_base_str_add_cstr(&path, name);
  kiln_status_t status = kilni_base_str_status(&path);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_file_read(allocator, kilni_base_str_cstr(&path),
                                  SYSTEM_FILE_BYTES, &data, &size);
  }
  kilni_base_str_deinit(&path);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kiln_ok();
  }
  size_t length = size < capacity - 1 ? size : capacity - 1;
  memcpy(text, data, length);
  text[length] = 0;
  kilni_base_file_free(allocator, data, size);
  return kiln_ok();
}

static bool is_there(const char* system_root, const char* name) {
  char path[4096];
  size_t root = strlen(system_root);
  size_t size = strlen(name) + 1;
  if (root + size > sizeof(path)) return false;
  memcpy(path, system_root, root);
  memcpy(path + root, name, size);
  return kilni_base_file_look(path).kind != KILNI_FILE_NONE;
}

// The value of `KEY=value` or `KEY="value"`.
static void read_key(const char* text, const char* key, char out[NAME_BYTES]) {
  kiln_string_view_t rest = kilni_base_sv(text);
  kiln_string_view_t line;
  out[0] = 0;
  size_t length = strlen(key);
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    if (!kilni_base_sv_starts_with(line, key)) continue;
    line = kilni_base_sv_make(line.data + length, line.size - length);
    if (line.size >= 2 && line.data[0] == '"' &&
        line.data[line.size - 1] == '"') {
      line = kilni_base_sv_make(line.data + 1, line.size - 2);
    }
    if (line.size >= NAME_BYTES) line.size = NAME_BYTES - 1;
    if (line.size > 0) memcpy(out, line.data, line.size);
    out[line.size] = 0;
    return;
  }
}

static kilni_probe_packages_t packages_of(const char* id, const char* like) {
  static const struct {
    const char* word;
    kilni_probe_packages_t packages;
  } known[] = {
      {"debian", KILNI_PROBE_PACKAGES_APT},
      {"ubuntu", KILNI_PROBE_PACKAGES_APT},
      {"fedora", KILNI_PROBE_PACKAGES_DNF},
      {"rhel", KILNI_PROBE_PACKAGES_DNF},
      {"amzn", KILNI_PROBE_PACKAGES_DNF},
      {"suse", KILNI_PROBE_PACKAGES_ZYPPER},
      {"arch", KILNI_PROBE_PACKAGES_PACMAN},
  };
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (strstr(id, known[i].word) != NULL ||
        strstr(like, known[i].word) != NULL) {
      return known[i].packages;
    }
  }
  return KILNI_PROBE_PACKAGES_UNKNOWN;
}

static void system_cut_line(char* text) {
  text[strcspn(text, "\r\n")] = 0;
}

static const char* system_machine_name(void) {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "";
#endif
}

kiln_status_t kilni_probe_collect_system(kiln_probe_t* probe,
                                         const kilni_probe_source_t* source) {
  const char* root = source->system_root != NULL ? source->system_root : "";
  kiln_probe_system_t* system = &probe->system;
  char text[4096];
  char name[NAME_BYTES];
  char id[NAME_BYTES];
  char like[NAME_BYTES];
  system->name = "";
  system->kernel = "";
  system->machine = system_machine_name();
  KILNI_RETURN_IF_ERROR(
      system_read_text(probe, root, "/etc/os-release", text, sizeof(text)));
  read_key(text, "PRETTY_NAME=", name);
  read_key(text, "ID=", id);
  read_key(text, "ID_LIKE=", like);
  probe->packages = packages_of(id, like);
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, name, &system->name));
  KILNI_RETURN_IF_ERROR(system_read_text(
      probe, root, "/proc/sys/kernel/osrelease", text, sizeof(text)));
  system_cut_line(text);
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, text, &system->kernel));
  system->is_wsl =
      strstr(text, "icrosoft") != NULL || is_there(root, "/usr/lib/wsl/lib");
  system->is_container =
      is_there(root, "/.dockerenv") || is_there(root, "/run/.containerenv");
  return kiln_ok();
}
