// SPDX-License-Identifier: Apache-2.0
//
// locate: what an installed `cuda-toolkit` requires of the components.
//
// Requirements as they are written; what follows from them is for compat.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

static const char kMeta[] = "cuda-toolkit";

enum { MAX_PINS = 65536 };

// The pins of one site-packages while they are read.
typedef struct reading_t {
  kilni_locate_reader_t* reader;
  kilni_locate_pin_t* pins;
  size_t count;
  size_t capacity;
} reading_t;

static kiln_status_t add_pin(reading_t* reading, kiln_string_view_t version,
                             const kilni_locate_requirement_t* requirement,
                             const char* metadata) {
  if (reading->count == MAX_PINS) return kiln_ok();
  void* items = reading->pins;
  KILNI_RETURN_IF_ERROR(
      kilni_base_grow(reading->reader->allocator, reading->count + 1,
                      sizeof(kilni_locate_pin_t), &reading->capacity, &items));
  reading->pins = items;
  kilni_locate_pin_t* pin = &reading->pins[reading->count];
  kilni_locate_store_t* store = &reading->reader->store;
  char name[KILNI_PARSE_MAX_NAME + 1];
  kilni_locate_name_normalise(requirement->name, sizeof(name), name);
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, version, &pin->toolkit_version));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, kilni_base_sv(name), &pin->name));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, requirement->specifier, &pin->specifier));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, requirement->marker, &pin->marker));
  pin->metadata = metadata;
  reading->count++;
  return kiln_ok();
}

// The version precedes the requirements; without one, the folder's name has it.
static kiln_status_t facts_pins_read_text(reading_t* reading,
                                          const kilni_locate_facts_dist_t* dist,
                                          const char* metadata,
                                          kiln_string_view_t text) {
  kiln_string_view_t version = kilni_base_sv(dist->version);
  kilni_locate_metadata_field_t field;
  while (kilni_locate_metadata_next(&text, &field, NULL)) {
    if (kilni_locate_metadata_is(&field, "Version")) version = field.value;
    if (!kilni_locate_metadata_is(&field, "Requires-Dist")) continue;
    kilni_locate_requirement_t requirement;
    if (!kilni_locate_requirement_read(field.value, &requirement)) continue;
    KILNI_RETURN_IF_ERROR(add_pin(reading, version, &requirement, metadata));
  }
  return kiln_ok();
}

static kiln_status_t read_meta(reading_t* reading,
                               const kilni_locate_facts_dist_t* dist) {
  kilni_locate_reader_t* reader = reading->reader;
  const char* metadata;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_dist_path(reader, dist, "METADATA", &metadata));
  uint8_t* data;
  size_t size;
  size_t capacity;
  kiln_status_t status = kilni_locate_facts_front(reader->allocator, metadata,
                                                  KILNI_FACTS_MAX_METADATA,
                                                  &data, &size, &capacity);
  if (!kiln_status_is_ok(status)) {
    if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
    kiln_status_free(status);  // it asks for nothing then
    return kiln_ok();
  }
  status = facts_pins_read_text(reading, dist, metadata,
                                kilni_base_sv_make((const char*)data, size));
  kilni_base_free(reader->allocator, data, capacity);
  return status;
}

static kiln_status_t facts_pins_keep(reading_t* reading,
                                     kilni_locate_facts_site_t* site) {
  site->has_pins = true;
  if (reading->count == 0) return kiln_ok();
  void* memory;
  size_t size = reading->count * sizeof(kilni_locate_pin_t);
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(&reading->reader->store, size, &memory));
  memcpy(memory, reading->pins, size);
  site->pins = memory;
  site->pin_count = (uint32_t)reading->count;
  return kiln_ok();
}

// The pins of a site-packages, read once.
static kiln_status_t read_site(kilni_locate_reader_t* reader,
                               kilni_locate_facts_site_t* site) {
  if (site->has_pins) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_list(reader, site, false));
  reading_t reading = {reader, NULL, 0, 0};
  kiln_status_t status = kiln_ok();
  for (const kilni_locate_facts_dist_t* dist = site->dists;
       dist != NULL && kiln_status_is_ok(status); dist = dist->next) {
    if (strcmp(dist->name, kMeta) == 0) status = read_meta(&reading, dist);
  }
  if (kiln_status_is_ok(status)) status = facts_pins_keep(&reading, site);
  kilni_base_free_array(reader->allocator, reading.pins, reading.capacity,
                        sizeof(kilni_locate_pin_t));
  return status;
}

// Appends the pins of a site-packages on that name; with `out` NULL only counts
// them.
static uint32_t copy_pins(const kilni_locate_facts_site_t* site,
                          const char* name, kilni_locate_pin_t* out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < site->pin_count; i++) {
    if (strcmp(site->pins[i].name, name) != 0) continue;
    if (out != NULL) out[count] = site->pins[i];
    count++;
  }
  return count;
}

// Adds the pins of one site-packages on the owner to the facts.
static kiln_status_t take_site(kilni_locate_facts_read_t* read,
                               kilni_locate_facts_site_t* site) {
  kilni_locate_facts_t* facts = read->facts;
  KILNI_RETURN_IF_ERROR(read_site(read->reader, site));
  uint32_t more = copy_pins(site, facts->owner->name, NULL);
  if (more == 0) return kiln_ok();
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &read->reader->store,
      ((size_t)facts->pin_count + more) * sizeof(kilni_locate_pin_t), &memory));
  kilni_locate_pin_t* pins = memory;
  if (facts->pin_count > 0) {
    memcpy(pins, facts->pins, facts->pin_count * sizeof(*pins));
  }
  copy_pins(site, facts->owner->name, pins + facts->pin_count);
  facts->pins = pins;
  facts->pin_count += more;
  return kiln_ok();
}

// The site-packages that owns the file, and those that were given, may contain
// a meta.
kiln_status_t kilni_locate_facts_read_pins(kilni_locate_facts_read_t* read) {
  const kilni_locate_owner_t* owner = read->facts->owner;
  const kilni_locate_facts_query_t* query = read->query;
  if (owner == NULL) return kiln_ok();
  for (uint32_t i = 0; i < query->site_count; i++) {
    kilni_locate_facts_site_t* known;
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_site(
        read->reader, kilni_base_sv(query->sites[i]), false, &known));
  }
  for (kilni_locate_facts_site_t* site = read->reader->sites; site != NULL;
       site = site->next) {
    const char* rest;
    bool is_wanted =
        kilni_locate_facts_below(owner->record, site->path, &rest) &&
        strchr(rest, '/') == strrchr(rest, '/');
    for (uint32_t i = 0; i < query->site_count; i++) {
      is_wanted = is_wanted || strcmp(query->sites[i], site->path) == 0;
    }
    if (is_wanted) KILNI_RETURN_IF_ERROR(take_site(read, site));
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_pins_read(kilni_locate_reader_t* reader,
                                     const char* site,
                                     const kilni_locate_pin_t** out_pins,
                                     uint32_t* out_count) {
  *out_pins = NULL;
  *out_count = 0;
  kilni_base_mutex_lock(&reader->mutex);
  kilni_locate_facts_site_t* known;
  kiln_status_t status =
      kilni_locate_facts_site(reader, kilni_base_sv(site), false, &known);
  if (kiln_status_is_ok(status)) status = read_site(reader, known);
  if (kiln_status_is_ok(status)) {
    *out_pins = known->pins;
    *out_count = known->pin_count;
  }
  kilni_base_mutex_unlock(&reader->mutex);
  return status;
}
