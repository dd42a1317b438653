// SPDX-License-Identifier: Apache-2.0
//
// compile: links looked up in a cache before anything is linked.
//
// No input names a file that is not among the inputs, so the key alone decides
// whether a result is valid. It has inputs by hash and size: a library can have
// hundreds of megabytes. For a hit no nvJitLink is loaded: the build id of its
// file identifies it.
#include <string.h>

#include "base/status_make.h"
#include "cache/cache.h"
#include "compile/compile_files.h"
#include "compile/link_inside.h"

// Counted up whenever the key, or what is kept beside a result, changes; and
// when links are refused that were kept.
enum { KEY_VERSION = 5, MAX_KEPT_BYTES = 64 << 20 };

// One lookup in progress. one-thread
typedef struct looked_t {
  const kilni_compile_link_lookup_t* lookup;
  kilni_base_str_t kept;  // the metadata of a new entry
} looked_t;

// Options of the assembler that would read options out of a file.
static bool names_file(const char* const* list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (strstr(list[i], "options-file") != NULL ||
        strstr(list[i], "optf") != NULL) {
      return true;
    }
  }
  return false;
}

const char* kilni_compile_link_uncacheable(
    const kilni_compile_link_lookup_t* lookup) {
  const kiln_link_options_t* options = lookup->options;
  if (lookup->identity[0] == 0) {
    return "the build of the linker cannot be determined";
  }
  if (names_file(options->extra, options->extra_count) ||
      names_file(options->ptxas_options, options->ptxas_options_count)) {
    return "an option that names files";
  }
  return NULL;
}

static kiln_status_t link_cached_build_key(
    const kilni_compile_link_lookup_t* lookup, kilni_cache_key_builder_t* key) {
  const kiln_link_settings_t* settings = lookup->settings;
  const char* name = lookup->options->name;
  kilni_cache_key_add_text(key, "tool", kilni_base_sv(lookup->identity));
  kilni_cache_key_add_u64(key, "line", lookup->line);
  kilni_cache_key_add_u64(key, "output", lookup->output);
  kilni_cache_key_add_text(key, "name",
                           kilni_base_sv(name != NULL ? name : "linked"));
  uint32_t count = kiln_link_settings_count(settings);
  kilni_cache_key_add_u64(key, "settings", count);
  for (uint32_t i = 0; i < count; i++) {
    kilni_cache_key_add_text(
        key, "setting", kilni_base_sv(kiln_link_settings_option(settings, i)));
  }
  kilni_cache_key_add_u64(key, "inputs", lookup->input_count);
  for (size_t i = 0; i < lookup->input_count; i++) {
    const kiln_code_t* code = lookup->inputs[i];
    char digest[KILN_CACHE_NAME_BYTES];
    kilni_cache_digest(kiln_code_bytes(code), digest);
    kilni_cache_key_add_u64(key, "format", kiln_code_format(code));
    kilni_cache_key_add_text(key, "input", kilni_base_sv(kiln_code_name(code)));
    kilni_cache_key_add_u64(key, "bytes", kiln_code_bytes(code).size);
    kilni_cache_key_add_text(key, "digest", kilni_base_sv(digest));
  }
  return kilni_cache_key_status(key);
}

static const char* link_cached_arch_of(
    const kilni_compile_link_lookup_t* lookup) {
  const char* arch = lookup->options->arch;
  return arch != NULL ? arch : "";
}

static kiln_status_t link_cached_make_entry(void* user,
                                            kiln_cache_output_t* out) {
  looked_t* looked = user;
  const kilni_compile_link_lookup_t* lookup = looked->lookup;
  kilni_compile_link_product_t product = {0};
  bool keep = false;
  KILNI_RETURN_IF_ERROR(lookup->link(lookup->user, &product, &keep));
  out->payload = product.bytes;
  if (!keep) {
    out->store = KILN_SWITCH_OFF;
    return kiln_ok();
  }
  kilni_compile_files_t none = {0};
  kilni_compile_kept_t kept = {product.format,
                               product.line,
                               product.info,
                               product.error,
                               kilni_base_sv(link_cached_arch_of(lookup)),
                               NULL,
                               0,
                               &none};
  kilni_compile_kept_write(&looked->kept, &kept);
  kiln_status_t status = kilni_base_str_status(&looked->kept);
  if (kiln_status_code(status) == KILN_STATUS_LIMIT_EXCEEDED) {
    // A log that is too long to be kept is not a reason to refuse the link.
    kiln_status_free(status);
    out->store = KILN_SWITCH_OFF;
    return kiln_ok();
  }
  out->metadata.data = (const uint8_t*)looked->kept.data;
  out->metadata.size = looked->kept.size;
  return status;
}

static bool link_cached_read_entry(const kiln_cache_entry_t* entry,
                                   kilni_compile_link_product_t* out_product) {
  kilni_compile_kept_reader_t reader;
  if (!kilni_compile_kept_open(&reader, kiln_cache_entry_metadata(entry))) {
    return false;
  }
  *out_product = (kilni_compile_link_product_t){kiln_cache_entry_payload(entry),
                                                reader.log, reader.note,
                                                reader.format, reader.line};
  return true;
}

static bool link_cached_check_entry(void* user,
                                    const kiln_cache_entry_t* entry) {
  kilni_compile_link_product_t product;
  (void)user;
  return link_cached_read_entry(entry, &product);
}

static kiln_status_t link_cached_look_up(looked_t* looked,
                                         kilni_cache_key_builder_t* key,
                                         uint32_t* out_from) {
  const kilni_compile_link_lookup_t* lookup = looked->lookup;
  KILNI_RETURN_IF_ERROR(link_cached_build_key(lookup, key));
  kiln_cache_request_t request = kiln_cache_request_default();
  request.key.kind = kiln_code_format_name(lookup->output);
  request.key.version = KEY_VERSION;
  request.key.bytes = kilni_cache_key_view(key);
  request.make = link_cached_make_entry;
  request.check = link_cached_check_entry;
  request.user = looked;
  kiln_cache_entry_t* entry = NULL;
  KILNI_RETURN_IF_ERROR(kiln_cache_get_or_make(lookup->options->cache, &request,
                                               &entry, out_from));
  kiln_status_t status = kiln_ok();
  kilni_compile_link_product_t product;
  if (*out_from != KILN_CACHE_FROM_MAKE &&
      link_cached_read_entry(entry, &product)) {
    status = lookup->take(lookup->user, &product);
  }
  kiln_cache_entry_release(entry);
  return status;
}

kiln_status_t kilni_compile_link_look_up(
    const kilni_compile_link_lookup_t* lookup, uint32_t* out_from) {
  looked_t looked = {.lookup = lookup};
  kilni_cache_key_builder_t key;
  *out_from = KILN_CACHE_FROM_NOWHERE;
  kilni_cache_key_init(&key, lookup->allocator);
  kilni_base_str_init(&looked.kept, lookup->allocator, MAX_KEPT_BYTES);
  kiln_status_t status = link_cached_look_up(&looked, &key, out_from);
  kilni_base_str_deinit(&looked.kept);
  kilni_cache_key_deinit(&key);
  return status;
}
