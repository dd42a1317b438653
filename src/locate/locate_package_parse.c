// SPDX-License-Identifier: Apache-2.0
//
// locate: readers of conda-meta, and of dpkg's lists and status.
#include "locate/locate_package_parse.h"

#include <string.h>

#include "base/str.h"
#include "locate/locate_facts_parse.h"

static kiln_string_view_t package_parse_trim(kiln_string_view_t text) {
  while (text.size > 0 && (unsigned char)text.data[0] <= ' ') {
    text = kilni_base_sv_make(text.data + 1, text.size - 1);
  }
  while (text.size > 0 && (unsigned char)text.data[text.size - 1] <= ' ') {
    text.size--;
  }
  return text;
}

// ---- conda ----

// Calls for each string of an array; other values in it are passed over.
typedef void (*on_string_t)(kiln_string_view_t text, void* user);

static bool each_string(kiln_string_view_t* inout, on_string_t fn, void* user) {
  if (!kilni_locate_json_cut(inout, '[')) return kilni_locate_json_skip(inout);
  if (kilni_locate_json_cut(inout, ']')) return true;
  do {
    kiln_string_view_t text;
    if (kilni_locate_json_string(inout, &text)) {
      fn(text, user);
    } else if (!kilni_locate_json_skip(inout)) {
      return false;
    }
  } while (kilni_locate_json_cut(inout, ','));
  return kilni_locate_json_cut(inout, ']');
}

// A record while it is read. one-thread
typedef struct conda_t {
  kilni_locate_conda_record_t* record;
  const kiln_string_view_t* paths;
  size_t path_count;
} conda_t;

static void on_file(kiln_string_view_t text, void* user) {
  conda_t* conda = user;
  for (size_t i = 0; i < conda->path_count; i++) {
    if (i < conda->record->owned &&
        kilni_base_sv_equal(text, conda->paths[i])) {
      conda->record->owned = i;
    }
  }
}

static void on_dependency(kiln_string_view_t text, void* user) {
  static const char word[] = "cuda-version";
  size_t size = sizeof(word) - 1;
  conda_t* conda = user;
  if (text.size <= size || memcmp(text.data, word, size) != 0 ||
      text.data[size] != ' ') {
    return;
  }
  conda->record->toolkit = package_parse_trim(
      kilni_base_sv_make(text.data + size, text.size - size));
}

// One member of the record, whose key was cut off.
static bool conda_member(kiln_string_view_t* inout, kiln_string_view_t key,
                         conda_t* conda) {
  kilni_locate_conda_record_t* record = conda->record;
  if (kilni_base_sv_equal_cstr(key, "files")) {
    return each_string(inout, on_file, conda);
  }
  if (kilni_base_sv_equal_cstr(key, "depends")) {
    return each_string(inout, on_dependency, conda);
  }
  kiln_string_view_t* field = NULL;
  if (kilni_base_sv_equal_cstr(key, "name")) field = &record->name;
  if (kilni_base_sv_equal_cstr(key, "version")) field = &record->version;
  if (field != NULL && kilni_locate_json_string(inout, field)) return true;
  return kilni_locate_json_skip(inout);
}

bool kilni_locate_conda_read(kiln_string_view_t text,
                             const kiln_string_view_t* paths, size_t path_count,
                             kilni_locate_conda_record_t* out_record) {
  memset(out_record, 0, sizeof(*out_record));
  out_record->owned = SIZE_MAX;
  conda_t conda = {out_record, paths, path_count};
  if (!kilni_locate_json_cut(&text, '{')) return false;
  do {
    kiln_string_view_t key;
    if (!kilni_locate_json_string(&text, &key) ||
        !kilni_locate_json_cut(&text, ':') ||
        !conda_member(&text, key, &conda)) {
      return false;
    }
  } while (kilni_locate_json_cut(&text, ','));
  return kilni_locate_json_cut(&text, '}') && out_record->name.size > 0 &&
         out_record->version.size > 0;
}

// ---- dpkg ----

bool kilni_locate_dpkg_list_has(kiln_string_view_t list,
                                kiln_string_view_t path) {
  kiln_string_view_t line;
  while (kilni_base_sv_split(&list, '\n', &line)) {
    if (kilni_base_sv_equal(line, path)) return path.size > 0;
  }
  return false;
}

// A paragraph while it is read. one-thread
typedef struct stanza_t {
  kiln_string_view_t name;
  kiln_string_view_t architecture;
  kiln_string_view_t status;
  kiln_string_view_t version;
  kiln_string_view_t source;
} stanza_t;

// Cuts one paragraph off; false at the end.
static bool next_stanza(kiln_string_view_t* inout, stanza_t* out) {
  static const char* const names[] = {
      "Package:", "Architecture:", "Status:", "Version:", "Source:"};
  memset(out, 0, sizeof(*out));
  kiln_string_view_t* const values[] = {&out->name, &out->architecture,
                                        &out->status, &out->version,
                                        &out->source};
  kiln_string_view_t line;
  bool any = false;
  while (kilni_base_sv_split(inout, '\n', &line)) {
    if (line.size == 0) {
      if (any) return true;
      continue;
    }
    any = true;
    // Most lines are of none of these.
    if (strchr("PASV", line.data[0]) == NULL) continue;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
      if (!kilni_base_sv_starts_with(line, names[i])) continue;
      size_t size = strlen(names[i]);
      *values[i] = package_parse_trim(
          kilni_base_sv_make(line.data + size, line.size - size));
    }
  }
  return any;
}

// "nvidia-cuda-toolkit (11.8.0-5~deb12u1)"
static void take_source(const stanza_t* stanza,
                        kilni_locate_dpkg_package_t* out) {
  out->source = stanza->source.size > 0 ? stanza->source : stanza->name;
  out->source_version = stanza->version;
  const char* open = out->source.size > 0
                         ? memchr(out->source.data, '(', out->source.size)
                         : NULL;
  if (open == NULL) return;
  size_t at = (size_t)(open - out->source.data);
  kiln_string_view_t rest =
      kilni_base_sv_make(open + 1, out->source.size - at - 1);
  if (rest.size > 0 && rest.data[rest.size - 1] == ')') rest.size--;
  out->source_version = package_parse_trim(rest);
  out->source = package_parse_trim(kilni_base_sv_make(out->source.data, at));
}

bool kilni_locate_dpkg_status_find(kiln_string_view_t status,
                                   kiln_string_view_t name,
                                   kiln_string_view_t architecture,
                                   kilni_locate_dpkg_package_t* out_package) {
  memset(out_package, 0, sizeof(*out_package));
  stanza_t stanza;
  while (next_stanza(&status, &stanza)) {
    if (!kilni_base_sv_equal(stanza.name, name) || stanza.version.size == 0) {
      continue;
    }
    if (architecture.size > 0 &&
        !kilni_base_sv_equal(stanza.architecture, architecture)) {
      continue;
    }
    // "install ok installed"; what is left of a removed package is its settings
    if (kilni_base_sv_ends_with(stanza.status, "not-installed") ||
        kilni_base_sv_ends_with(stanza.status, "config-files")) {
      continue;
    }
    out_package->version = stanza.version;
    take_source(&stanza, out_package);
    return true;
  }
  return false;
}
