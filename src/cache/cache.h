// SPDX-License-Identifier: Apache-2.0
//
// cache: the public header. Building keys, and making a cache with a known
// environment.
#ifndef KILN_SRC_CACHE_CACHE_H_
#define KILN_SRC_CACHE_CACHE_H_

#include "base/env.h"
#include "base/str.h"
#include "kiln/cache.h"

// As kiln_cache_create, with the environment of the caller, which is copied as
// far as it is needed. NULL reads the process's own.
kiln_status_t kilni_cache_create(const kiln_cache_options_t* options,
                                 const kilni_base_env_t* env,
                                 kiln_cache_t** out_cache);

// Builds a key's bytes from named fields. one-thread
//
// No two different lists of fields give the same bytes: each carries its type,
// its name and its length. Any number of adds, then `view`; a failure is
// recorded and returned by `status`, as in kilni_base_str_t.
typedef struct kilni_cache_key_builder_t {
  kilni_base_str_t bytes;
} kilni_cache_key_builder_t;

void kilni_cache_key_init(kilni_cache_key_builder_t* builder,
                          kiln_allocator_t allocator);
void kilni_cache_key_deinit(kilni_cache_key_builder_t* builder);
void kilni_cache_key_add_text(kilni_cache_key_builder_t* builder,
                              const char* name, kiln_string_view_t text);
void kilni_cache_key_add_bytes(kilni_cache_key_builder_t* builder,
                               const char* name, kiln_bytes_view_t bytes);
void kilni_cache_key_add_u64(kilni_cache_key_builder_t* builder,
                             const char* name, uint64_t value);
// A list: its length goes first, so that ("a", "b") is not ("a"), ("b").
void kilni_cache_key_add_texts(kilni_cache_key_builder_t* builder,
                               const char* name, const char* const* texts,
                               size_t count);
kiln_status_t kilni_cache_key_status(const kilni_cache_key_builder_t* builder);
// Borrowed until the next add.
kiln_bytes_view_t kilni_cache_key_view(
    const kilni_cache_key_builder_t* builder);

// Reads back what a builder wrote. one-thread
//
// The bytes are untrusted: an invalid field ends the reading.
typedef struct kilni_cache_key_reader_t {
  kiln_bytes_view_t rest;
} kilni_cache_key_reader_t;

// A field, borrowed from the bytes. thread-compatible
typedef struct kilni_cache_key_field_t {
  kiln_string_view_t name;
  kiln_bytes_view_t value;  // of a list: as it is written
  uint64_t number;          // of add_u64
} kilni_cache_key_field_t;

// The next field; false at the end, and where no field begins.
bool kilni_cache_key_next(kilni_cache_key_reader_t* reader,
                          kilni_cache_key_field_t* out_field);

// The 128-bit hash of bytes, as 32 hexadecimal digits and a NUL: to name what
// is long (a source, a file) inside a key, where finding is all it has to do
// and the risk of two alike is accepted by the caller.
void kilni_cache_digest(kiln_bytes_view_t bytes,
                        char out_text[KILN_CACHE_NAME_BYTES]);

#endif  // KILN_SRC_CACHE_CACHE_H_
