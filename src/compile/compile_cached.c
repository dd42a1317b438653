// SPDX-License-Identifier: Apache-2.0
//
// compile: results looked up in a cache before anything is compiled.
//
// The key contains everything that can change a result except the contents of
// included files; those are listed beside the result and checked on each hit.
// For a hit no library is loaded: the compiler is known by the build id of its
// file.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "cache/cache.h"
#include "compile/compile_files.h"
#include "compile/compile_inside.h"
#include "image/image.h"

// Counted up whenever the key, or what is kept beside a result, changes.
enum { KEY_VERSION = 2, MAX_KEPT_BYTES = 64 << 20 };

// One compilation with a cache. one-thread
typedef struct cached_t {
  const kilni_compile_job_t* job;
  kilni_compile_files_how_t how;
  kilni_compile_line_t dirs;  // absolute
  char* working_dir;          // absolute
  char* source_dir;           // absolute
  kilni_base_str_t kept;      // the metadata of a new entry
  kilni_compile_files_t files;
  bool too_much;  // there are more files than are looked at
  bool changed;   // an entry was there, and a file of it has changed
  bool unread;    // an entry was there, and could not be read
} cached_t;

// ---- What is not cached ----

static const char* raw_reason(const kiln_compile_options_t* options) {
  // Each reads or writes files, or changes where they are looked for.
  static const char* const words[] = {
      "-I",          "--include-path", "-include",      "--pre-include",
      "-optf",       "--options-file", "-time",         "--time",
      "--pch",       "-pch",           "--create-pch",  "-create-pch",
      "--use-pch",   "-use-pch",       "-fdevice-time", "--fdevice-time",
      "--no-source", "-no-source"};
  for (uint32_t i = 0; i < options->option_count; i++) {
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
      if (strncmp(options->options[i], words[k], strlen(words[k])) == 0) {
        return "a raw option that names files";
      }
    }
  }
  return NULL;
}

// A macro that an option defines as a time of the compilation; it may be a part
// of the value.
static bool defines_time(const char* const* texts, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (strstr(texts[i], "__DATE__") != NULL ||
        strstr(texts[i], "__TIME") != NULL) {
      return true;
    }
  }
  return false;
}

static const char* cached_why_not(const kilni_compile_job_t* job) {
  const kiln_compile_options_t* options = job->options;
  if (job->compiler->identity[0] == 0) {
    return "the compiler cannot be distinguished from another";
  }
  if (options->time_file != NULL || options->time_trace_file != NULL) {
    return "an option that writes a file of times";
  }
  if (options->pch == KILN_SWITCH_ON || options->create_pch != NULL ||
      options->use_pch != NULL) {
    return "precompiled headers";
  }
  if (options->syntax_only == KILN_SWITCH_ON) return "no code will be produced";
  if (defines_time(options->defines, options->define_count) ||
      defines_time(options->options, options->option_count)) {
    return "an option that defines a macro as the time";
  }
  return raw_reason(options);
}

static kiln_status_t set_reason(kiln_compile_result_t* result, uint32_t cache,
                                const char* reason, const char* more) {
  result->cache = cache;
  kilni_base_strfree(result->allocator, result->cache_reason);
  result->cache_reason = NULL;
  kilni_base_str_t text;
  kilni_base_str_init(&text, result->allocator, 1 << 17);
  kilni_base_str_add_cstr(&text, reason);
  kilni_base_str_add_cstr(&text, more);
  return kilni_base_str_take(&text, &result->cache_reason);
}

// ---- Where headers are looked for ----

static kiln_status_t add_dir(cached_t* cached, const char* dir) {
  if (dir[0] == '/') return kilni_compile_line_add(&cached->dirs, dir, "");
  kilni_base_str_t path;
  kilni_base_str_init(&path, cached->job->result->allocator, 65536);
  kilni_base_str_addf(&path, "%s/%s", cached->working_dir, dir);
  kiln_status_t status = kilni_base_str_status(&path);
  if (kiln_status_is_ok(status)) {
    status =
        kilni_compile_line_add(&cached->dirs, kilni_base_str_cstr(&path), "");
  }
  kilni_base_str_deinit(&path);
  return status;
}

static kiln_status_t find_source_dir(cached_t* cached) {
  const char* name = cached->job->name;
  const char* slash = strrchr(name, '/');
  kilni_base_str_t path;
  kilni_base_str_init(&path, cached->job->result->allocator, 65536);
  if (name[0] != '/') kilni_base_str_add_cstr(&path, cached->working_dir);
  if (slash != NULL) {
    if (name[0] != '/') kilni_base_str_add_char(&path, '/');
    size_t size = slash == name ? 1 : (size_t)(slash - name);
    kilni_base_str_add(&path, kilni_base_sv_make(name, size));
  }
  return kilni_base_str_take(&path, &cached->source_dir);
}

static kiln_status_t find_dirs(cached_t* cached) {
  const kilni_compile_job_t* job = cached->job;
  const kiln_compile_options_t* options = job->options;
  KILNI_RETURN_IF_ERROR(
      kilni_base_path_real(job->result->allocator, ".", &cached->working_dir));
  KILNI_RETURN_IF_ERROR(find_source_dir(cached));
  for (uint32_t i = 0; i < options->include_dir_count; i++) {
    KILNI_RETURN_IF_ERROR(add_dir(cached, options->include_dirs[i]));
  }
  const char* toolkit[] = {kiln_compiler_include_dir(job->compiler),
                           job->compiler->include_dir2};
  for (size_t i = 0; i < 2; i++) {
    if (options->toolkit_include == KILN_SWITCH_OFF || toolkit[i][0] == 0) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(add_dir(cached, toolkit[i]));
  }
  cached->how.source = job->source;
  cached->how.name = job->name;
  cached->how.source_dir =
      options->source_include == KILN_SWITCH_OFF ? NULL : cached->source_dir;
  cached->how.working_dir = cached->working_dir;
  cached->how.dirs = (const char* const*)cached->dirs.items;
  cached->how.dir_count = cached->dirs.count;
  cached->how.options = options;
  return kiln_ok();
}

// ---- The key ----

// The folders count where a text looks beside itself, and where the code names
// its source; one without either has one key, wherever its program is started.
static kiln_status_t cached_add_folders(const cached_t* cached,
                                        kilni_cache_key_builder_t* key) {
  const kilni_compile_job_t* job = cached->job;
  const kiln_compile_options_t* options = job->options;
  kiln_allocator_t allocator = job->result->allocator;
  bool beside = false;
  if (job->compiler->kind == KILN_COMPILER_KIND_NVVM) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_compile_files_has_quotes(allocator, job->source, &beside));
  if (beside) {
    kilni_cache_key_add_text(key, "source-dir",
                             kilni_base_sv(cached->source_dir));
  }
  bool names_source =
      options->lineinfo == KILN_SWITCH_ON || options->debug == KILN_SWITCH_ON;
  beside =
      options->pre_include_count != 0 || (names_source && job->name[0] != '/');
  for (uint32_t i = 0; i < options->header_count && !beside; i++) {
    const kiln_compile_file_t* file = &options->headers[i];
    KILNI_RETURN_IF_ERROR(kilni_compile_files_has_quotes(
        allocator,
        kilni_base_sv_make((const char*)file->bytes.data, file->bytes.size),
        &beside));
  }
  if (beside) {
    kilni_cache_key_add_text(key, "dir", kilni_base_sv(cached->working_dir));
  }
  return kiln_ok();
}

static void add_files(kilni_cache_key_builder_t* key, const char* field,
                      const kiln_compile_file_t* files, uint32_t count) {
  kilni_cache_key_add_u64(key, field, count);
  for (uint32_t i = 0; i < count; i++) {
    kilni_cache_key_add_text(key, "file", kilni_base_sv(files[i].name));
    kilni_cache_key_add_bytes(key, "bytes", files[i].bytes);
  }
}

static kiln_status_t cached_add_typed(const kilni_compile_job_t* job,
                                      kilni_cache_key_builder_t* key) {
  kilni_compile_line_t line = {job->result->allocator, NULL, 0, 0};
  kiln_status_t status =
      job->compiler->kind == KILN_COMPILER_KIND_NVVM
          ? kilni_compile_line_add_nvvm(&line, job->options)
          : kilni_compile_line_add_nvrtc(&line, job->options, UINT32_MAX);
  if (kiln_status_is_ok(status)) {
    kilni_cache_key_add_texts(key, "typed", (const char* const*)line.items,
                              line.count);
  }
  kilni_compile_line_deinit(&line);
  return status;
}

static kiln_status_t cached_build_key(const cached_t* cached,
                                      kilni_cache_key_builder_t* key) {
  const kilni_compile_job_t* job = cached->job;
  const kiln_compile_options_t* options = job->options;
  const kiln_compiler_t* compiler = job->compiler;
  kilni_cache_key_add_text(key, "tool", kilni_base_sv(compiler->identity));
  kilni_cache_key_add_u64(key, "line", kiln_compiler_version(compiler));
  kilni_cache_key_add_u64(key, "output", job->result->format);
  kilni_cache_key_add_text(key, "arch", kilni_base_sv(options->arch));
  kilni_cache_key_add_text(key, "name", kilni_base_sv(job->name));
  kilni_cache_key_add_text(key, "source", job->source);
  KILNI_RETURN_IF_ERROR(cached_add_typed(job, key));
  kilni_cache_key_add_texts(key, "raw", options->options,
                            options->option_count);
  kilni_cache_key_add_texts(key, "names", options->name_expressions,
                            options->name_expression_count);
  kilni_cache_key_add_texts(key, "defines", options->defines,
                            options->define_count);
  kilni_cache_key_add_texts(key, "dirs", (const char* const*)cached->dirs.items,
                            cached->dirs.count);
  add_files(key, "headers", options->headers, options->header_count);
  add_files(key, "modules", options->modules, options->module_count);
  kilni_cache_key_add_u64(key, "device-library", options->device_library);
  KILNI_RETURN_IF_ERROR(cached_add_folders(cached, key));
  return kilni_cache_key_status(key);
}

// ---- A result out of an entry ----

static bool cached_check_entry(void* user, const kiln_cache_entry_t* entry) {
  cached_t* cached = user;
  const kilni_compile_job_t* job = cached->job;
  bool verify = job->options->cache_verify == KILN_SWITCH_ON;
  kilni_compile_kept_reader_t reader;
  kilni_compile_file_dep_t dep;
  kiln_code_name_t name;
  cached->unread = true;
  if (!kilni_compile_kept_open(&reader, kiln_cache_entry_metadata(entry))) {
    return false;
  }
  for (uint32_t i = 0; i < reader.name_count; i++) {
    if (!kilni_compile_kept_name(&reader, &name)) return false;
  }
  for (uint32_t i = 0; i < reader.file_count; i++) {
    if (!kilni_compile_kept_file(&reader, &dep)) return false;
    if (kilni_compile_file_dep_holds(job->result->allocator, &dep, verify)) {
      continue;
    }
    cached->changed = true;
    return false;
  }
  cached->unread = false;
  return true;
}

static kiln_status_t read_headers(kilni_compile_kept_reader_t* reader,
                                  kiln_compile_result_t* result) {
  kilni_compile_file_dep_t dep;
  for (uint32_t i = 0; i < reader->file_count; i++) {
    if (!kilni_compile_kept_file(reader, &dep)) break;
    if (dep.state == KILNI_FILE_ABSENT) continue;
    KILNI_RETURN_IF_ERROR(
        kilni_compile_line_add(&result->headers, dep.path, ""));
  }
  return kiln_ok();
}

static kiln_status_t fill_code(const kilni_compile_job_t* job,
                               kilni_compile_kept_reader_t* reader,
                               kiln_bytes_view_t payload) {
  kiln_compile_result_t* result = job->result;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      result->allocator, reader->name_count, sizeof(kiln_code_name_t), &block));
  kiln_code_name_t* names = block;
  for (uint32_t i = 0; i < reader->name_count; i++) {
    (void)kilni_compile_kept_name(reader, &names[i]);
  }
  kiln_code_options_t how = kiln_code_options_default();
  how.format = result->format;
  how.name = job->name;
  how.arch = result->arch;
  how.names = names;
  how.name_count = reader->name_count;
  how.producer_line = reader->line;
  how.allocator = &result->allocator;
  kiln_status_t status =
      kilni_image_code_create(payload, &how, result->keep, &result->code);
  kilni_base_free_array(result->allocator, block, reader->name_count,
                        sizeof(kiln_code_name_t));
  return status;
}

static kiln_status_t fill_result(const cached_t* cached,
                                 const kiln_cache_entry_t* entry,
                                 uint32_t from) {
  const kilni_compile_job_t* job = cached->job;
  kiln_compile_result_t* result = job->result;
  kilni_compile_kept_reader_t reader;
  if (!kilni_compile_kept_open(&reader, kiln_cache_entry_metadata(entry)) ||
      reader.arch.size >= sizeof(result->arch)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INTERNAL, "a checked entry of the cache is not whole"),
        "clear the cache with `kiln cache clear`, and report this");
  }
  memcpy(result->arch, reader.arch.data, reader.arch.size + 1);
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(result->allocator, reader.log, &result->log));
  if (reader.note.size != 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(result->allocator, reader.note, &result->note));
  }
  KILNI_RETURN_IF_ERROR(
      fill_code(job, &reader, kiln_cache_entry_payload(entry)));
  KILNI_RETURN_IF_ERROR(read_headers(&reader, result));
  return set_reason(result, KILN_COMPILE_CACHE_HIT,
                    from == KILN_CACHE_FROM_MEMORY ? "memory"
                    : from == KILN_CACHE_FROM_DISK ? "disk"
                                                   : "another version made it",
                    "");
}

// ---- A new result ----

static kiln_status_t list_headers(const kilni_compile_files_t* files,
                                  kiln_compile_result_t* result) {
  for (size_t i = 0; i < files->count; i++) {
    if (files->items[i].state == KILNI_FILE_ABSENT) continue;
    KILNI_RETURN_IF_ERROR(
        kilni_compile_line_add(&result->headers, files->items[i].path, ""));
  }
  return kiln_ok();
}

static kiln_status_t write_kept(cached_t* cached) {
  const kiln_compile_result_t* result = cached->job->result;
  uint32_t count = kiln_code_lowered_count(result->code);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      result->allocator, (size_t)count * 2, sizeof(char*), &block));
  const char** names = block;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_code_name_t* name = kiln_code_lowered(result->code, i);
    names[2 * i] = name->expression;
    names[2 * i + 1] = name->lowered;
  }
  kilni_compile_kept_t kept = {result->format,
                               kiln_code_producer_line(result->code),
                               kilni_base_sv(kiln_compile_result_log(result)),
                               kilni_base_sv(kiln_compile_result_note(result)),
                               kilni_base_sv(result->arch),
                               names,
                               count,
                               &cached->files};
  kilni_compile_kept_write(&cached->kept, &kept);
  kilni_base_free_array(result->allocator, block, (size_t)count * 2,
                        sizeof(char*));
  return kilni_base_str_status(&cached->kept);
}

// Why the result that was just made is not to be kept, and of what; NULL: it
// is.
static const char* why_not_kept(const cached_t* cached,
                                const kiln_compiler_t* used,
                                const char** out_more) {
  const kilni_compile_files_t* files = &cached->files;
  *out_more = files->timed != NULL ? files->timed : files->computed;
  if (files->timed != NULL) return "it contains the time of its compilation: ";
  if (files->computed != NULL) return "an #include that a macro computes: ";
  *out_more = files->unclear;
  if (files->unclear != NULL) {
    return "a construct that only a preprocessor can read: ";
  }
  *out_more = "";
  if (cached->too_much) return "it may include more files than are examined";
  if (used != cached->job->compiler) {
    return "another compiler has replaced the one that was found";
  }
  for (size_t i = 0; i < files->count; i++) {
    kilni_compile_file_dep_t dep = files->items[i];
    // Only what changed while it was compiled.
    if (dep.state == KILNI_FILE_FRESH) dep.state = KILNI_FILE_PRESENT;
    if (!kilni_compile_file_dep_holds(files->allocator, &dep, false)) {
      return "a file changed meanwhile";
    }
  }
  return NULL;
}

// A limit of ours is not a reason to refuse a compilation.
static bool is_over_a_limit(kiln_status_t status) {
  if (kiln_status_code(status) != KILN_STATUS_LIMIT_EXCEEDED) return false;
  kiln_status_free(status);
  return true;
}

static kiln_status_t find_files(cached_t* cached) {
  kiln_status_t status = kilni_compile_files_find(&cached->how, &cached->files);
  if (!is_over_a_limit(status)) return status;
  cached->too_much = true;
  return kiln_ok();
}

static bool is_cancelled(void* user) {
  const cached_t* cached = user;
  return kilni_compile_is_cancelled(cached->job->options);
}

static kiln_status_t cached_make_entry(void* user, kiln_cache_output_t* out) {
  cached_t* cached = user;
  kilni_compile_job_t job = *cached->job;
  KILNI_RETURN_IF_ERROR(
      kilni_compile_compiler_ready(cached->job->compiler, &job.compiler));
  if (job.compiler->kind == KILN_COMPILER_KIND_NVRTC) {
    KILNI_RETURN_IF_ERROR(find_files(cached));
    KILNI_RETURN_IF_ERROR(list_headers(&cached->files, job.result));
  }
  job.header_bytes = cached->files.bytes;
  KILNI_RETURN_IF_ERROR(kilni_compile_run(&job));
  const char* more = "";
  const char* reason = why_not_kept(cached, job.compiler, &more);
  out->payload = kiln_code_bytes(job.result->code);
  if (reason == NULL) {
    kiln_status_t status = write_kept(cached);
    if (is_over_a_limit(status)) {
      reason = "its log exceeds the cache's limit";
    } else if (!kiln_status_is_ok(status)) {
      return status;
    }
  }
  if (reason != NULL) {
    out->store = KILN_SWITCH_OFF;
    KILNI_LOG(&job.compiler->host->log, INFO, "%s is not kept: %s%s", job.name,
              reason, more);
    return set_reason(job.result, KILN_COMPILE_CACHE_UNCACHEABLE, reason, more);
  }
  out->metadata.data = (const uint8_t*)cached->kept.data;
  out->metadata.size = cached->kept.size;
  return set_reason(job.result, KILN_COMPILE_CACHE_MISS,
                    cached->changed  ? "an included file has changed"
                    : cached->unread ? "the cached entry could not be read"
                                     : "it was not present",
                    "");
}

// ---- All together ----

static kiln_status_t run_uncached(cached_t* cached, const char* reason);

static kiln_status_t cached_look_up(cached_t* cached) {
  const kilni_compile_job_t* job = cached->job;
  kilni_cache_key_builder_t key;
  kilni_cache_key_init(&key, job->result->allocator);
  kiln_status_t status = cached_build_key(cached, &key);
  if (is_over_a_limit(status)) {
    kilni_cache_key_deinit(&key);
    return run_uncached(cached, "it exceeds the cache's limit");
  }
  kiln_cache_entry_t* entry = NULL;
  uint32_t from = KILN_CACHE_FROM_NOWHERE;
  if (kiln_status_is_ok(status)) {
    kiln_cache_request_t request = kiln_cache_request_default();
    request.key.kind = kiln_code_format_name(job->result->format);
    request.key.version = KEY_VERSION;
    request.key.bytes = kilni_cache_key_view(&key);
    request.make = cached_make_entry;
    request.check = cached_check_entry;
    request.user = cached;
    request.cancelled = is_cancelled;
    status =
        kiln_cache_get_or_make(job->options->cache, &request, &entry, &from);
  }
  if (kiln_status_is_ok(status) && from != KILN_CACHE_FROM_MAKE) {
    status = fill_result(cached, entry, from);
  }
  kiln_cache_entry_release(entry);
  kilni_cache_key_deinit(&key);
  return status;
}

static void cached_deinit(cached_t* cached) {
  kiln_allocator_t allocator = cached->job->result->allocator;
  kilni_compile_files_deinit(&cached->files);
  kilni_compile_line_deinit(&cached->dirs);
  kilni_base_strfree(allocator, cached->working_dir);
  kilni_base_strfree(allocator, cached->source_dir);
  kilni_base_str_deinit(&cached->kept);
}

static kiln_status_t run_uncached(cached_t* cached, const char* reason) {
  kilni_compile_job_t job = *cached->job;
  KILNI_RETURN_IF_ERROR(
      kilni_compile_compiler_ready(cached->job->compiler, &job.compiler));
  if (job.options->list_headers == KILN_SWITCH_ON &&
      job.compiler->kind == KILN_COMPILER_KIND_NVRTC) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_files_find(&cached->how, &cached->files));
    KILNI_RETURN_IF_ERROR(list_headers(&cached->files, job.result));
  }
  if (reason != NULL) {
    KILNI_RETURN_IF_ERROR(
        set_reason(job.result, KILN_COMPILE_CACHE_UNCACHEABLE, reason, ""));
  }
  job.header_bytes = cached->files.bytes;
  return kilni_compile_run(&job);
}

kiln_status_t kilni_compile_cached(const kilni_compile_job_t* job) {
  const kiln_compile_options_t* options = job->options;
  cached_t cached;
  memset(&cached, 0, sizeof(cached));
  cached.job = job;
  cached.dirs.allocator = job->result->allocator;
  cached.files.allocator = job->result->allocator;
  kilni_base_str_init(&cached.kept, job->result->allocator, MAX_KEPT_BYTES);
  const char* reason = options->cache != NULL ? cached_why_not(job) : NULL;
  kiln_status_t status = kiln_ok();
  if (options->cache != NULL || options->list_headers == KILN_SWITCH_ON) {
    status = find_dirs(&cached);
  }
  if (kiln_status_is_ok(status)) {
    status = options->cache == NULL || reason != NULL
                 ? run_uncached(&cached, reason)
                 : cached_look_up(&cached);
  }
  cached_deinit(&cached);
  return status;
}
