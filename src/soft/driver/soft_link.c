// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that link: several PTX texts become one, which the device loads
// like any other.
//
// Machine code and host objects are refused as by a driver without code for
// its device. The logs are written into the caller's buffers at every call.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/thread.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_jit.h"
#include "soft/driver/soft_merge.h"
#include "table/cuda_table.h"

enum {
  FILE_LIMIT = 256 << 20,
  PARTS_LIMIT = 65536,
  LOG_LIMIT = 64 << 20,
};

// A link in progress. thread-compatible
struct kilni_soft_link_t {
  kilni_soft_context_t* context;
  uint64_t handle;
  kilni_soft_jit_t jit;
  kilni_soft_part_t* parts;  // names and texts owned
  size_t part_count;
  size_t part_capacity;
  kilni_base_str_t text;  // what came out
  kilni_base_str_t errors;
  kilni_base_str_t infos;
  uint64_t started_ns;
  bool failed;
  bool done;
  bool busy;  // a call works on it without the driver's lock
  struct kilni_soft_link_t* next;
};

kiln_cu_result_t kilni_soft_file_read(kiln_allocator_t allocator,
                                      const char* path, size_t limit,
                                      uint8_t** out_data, size_t* out_size) {
  kiln_status_t status =
      kilni_base_file_read(allocator, path, limit, out_data, out_size);
  kiln_status_code_t code = kiln_status_code(status);
  kiln_status_free(status);
  switch (code) {
    case KILN_STATUS_OK:
      return KILN_CU_SUCCESS;
    case KILN_STATUS_OUT_OF_MEMORY:
      return KILN_CU_ERROR_OUT_OF_MEMORY;
    default:
      return KILN_CU_ERROR_FILE_NOT_FOUND;
  }
}

// ---- Life ----

static void link_end_part(kiln_allocator_t allocator, kilni_soft_part_t* part) {
  kilni_image_ptx_module_release(part->tree);
  // Owned here, and const only to the merge.
  kilni_base_strfree(allocator, (char*)(uintptr_t)part->name);
  kilni_base_strfree(allocator, (char*)(uintptr_t)part->text.data);
}

static void end_parts(kilni_soft_driver_t* driver, kilni_soft_link_t* link) {
  kiln_allocator_t allocator = driver->host.allocator;
  for (size_t i = 0; i < link->part_count; i++) {
    link_end_part(allocator, &link->parts[i]);
  }
  kilni_base_free_array(allocator, link->parts, link->part_capacity,
                        sizeof(*link->parts));
  link->parts = NULL;
  link->part_count = 0;
  link->part_capacity = 0;
}

// Ends a link that is in no list any more. Locked.
static void link_dispose(kilni_soft_driver_t* driver, kilni_soft_link_t* link) {
  kilni_soft_handle_remove(&driver->handles, link->handle);
  end_parts(driver, link);
  kilni_base_str_deinit(&link->text);
  kilni_base_str_deinit(&link->errors);
  kilni_base_str_deinit(&link->infos);
  kilni_base_free(driver->host.allocator, link, sizeof(*link));
}

// The buffers of these links may be gone: nothing is written into them.
void kilni_soft_links_clear(kilni_soft_driver_t* driver,
                            kilni_soft_context_t* context) {
  while (context->links != NULL) {
    kilni_soft_link_t* link = context->links;
    context->links = link->next;
    link_dispose(driver, link);
  }
}

static void link_put_logs(const kilni_soft_driver_t* driver,
                          const kilni_soft_link_t* link) {
  if (driver->scribble) kilni_soft_jit_scribble(&link->jit);
  kilni_soft_jit_put(&link->jit, kilni_base_str_cstr(&link->errors),
                     kilni_base_str_cstr(&link->infos), link->started_ns);
}

static kiln_cu_result_t link_row_create(unsigned int count,
                                        kiln_cu_jit_option_t* options,
                                        void** values,
                                        kiln_cu_link_state_t* out_link) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_jit_t jit;
  result = kilni_soft_jit_read(count, options, values, &jit);
  if (out_link == NULL) result = KILN_CU_ERROR_INVALID_VALUE;
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  kilni_soft_link_t* link;
  result = kilni_soft_result(
      kilni_base_alloc(driver->host.allocator, sizeof(*link), (void**)&link));
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  link->jit = jit;
  link->started_ns = kilni_base_time_ns();
  kilni_base_str_init(&link->text, driver->host.allocator, FILE_LIMIT);
  kilni_base_str_init(&link->errors, driver->host.allocator, LOG_LIMIT);
  kilni_base_str_init(&link->infos, driver->host.allocator, LOG_LIMIT);
  result = kilni_soft_result(kilni_soft_handle_add(
      &driver->handles, KILNI_SOFT_KIND_LINK, link, &link->handle));
  if (result != KILN_CU_SUCCESS) {
    link_dispose(driver, link);
    return kilni_soft_leave(driver, result);
  }
  link->context = kilni_soft_current(driver);
  link->next = link->context->links;
  link->context->links = link;
  link_put_logs(driver, link);
  *out_link = (kiln_cu_link_state_t)(uintptr_t)link->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t link_row_destroy(kiln_cu_link_state_t link) {
  kilni_soft_driver_t* driver;
  void* object;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_CURRENT, KILNI_SOFT_KIND_LINK,
                              link, true, &driver, &object);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_link_t* found = object;
  const kilni_soft_context_t* context = found->context;
  kilni_soft_link_t** at = &found->context->links;
  while (*at != found) at = &(*at)->next;
  *at = found->next;
  link_put_logs(driver, found);
  if (driver->scribble) kilni_soft_jit_scribble(&found->jit);
  link_dispose(driver, found);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

// ---- Work without the lock ----

// Reading and merging texts may take long, and other calls do not wait for it:
// the lock is released, and the link's data is moved out. A link is used by one
// thread at a time: another call on it is refused meanwhile. If it is ended
// meanwhile, its data is ended here.

static void take_along(kilni_soft_driver_t* driver, kilni_soft_link_t* link,
                       kilni_soft_link_t* out_taken) {
  *out_taken = *link;
  link->busy = true;
  link->parts = NULL;
  link->part_count = 0;
  link->part_capacity = 0;
  kilni_base_str_init(&link->text, driver->host.allocator, FILE_LIMIT);
  kilni_base_str_init(&link->errors, driver->host.allocator, LOG_LIMIT);
  kilni_base_str_init(&link->infos, driver->host.allocator, LOG_LIMIT);
  kilni_base_mutex_unlock(&driver->lock);
}

// Locks. NULL: the link is gone, and what was taken along with it.
static kilni_soft_link_t* link_put_back(kilni_soft_driver_t* driver,
                                        kilni_soft_link_t* taken) {
  kilni_base_mutex_lock(&driver->lock);
  kilni_soft_link_t* link = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_LINK, taken->handle);
  if (link == NULL) {
    end_parts(driver, taken);
    kilni_base_str_deinit(&taken->text);
    kilni_base_str_deinit(&taken->errors);
    kilni_base_str_deinit(&taken->infos);
    return NULL;
  }
  taken->next = link->next;
  *link = *taken;
  link_put_logs(driver, link);
  return link;
}

// ---- Inputs ----

static void link_note(kilni_soft_link_t* link, const char* name,
                      const char* message) {
  link->failed = true;
  kilni_base_str_addf(&link->errors, "error   : %s: %s\n", name, message);
}

// Reads one text into `part`.
static kiln_cu_result_t link_read_part(kiln_allocator_t allocator,
                                       kilni_soft_link_t* link,
                                       kilni_soft_part_t* part,
                                       const char* data, size_t size,
                                       const char* name) {
  const char* end = memchr(data, '\0', size);
  kiln_bytes_view_t text = {(const uint8_t*)data,
                            end != NULL ? (size_t)(end - data) : size};
  char message[KILNI_SOFT_MESSAGE_BYTES] = "the text is empty";
  if (text.size == 0) {
    link_note(link, name, message);
    return KILN_CU_ERROR_INVALID_IMAGE;
  }
  kiln_status_t status =
      kilni_image_ptx_module_create(text, name, NULL, allocator, &part->tree);
  if (!kiln_status_is_ok(status)) {
    kiln_cu_result_t result = kilni_soft_read_result(status, true, message);
    link_note(link, name, message);
    return result;
  }
  kiln_cu_result_t result = kilni_soft_check_target(part->tree, message);
  if (result != KILN_CU_SUCCESS) {
    link_note(link, name, message);
    return result;
  }
  char* copy = NULL;
  status = kilni_base_strdup(allocator, kilni_base_sv(name), &copy);
  part->name = copy;
  if (kiln_status_is_ok(status)) {
    copy = NULL;
    status = kilni_base_strdup(allocator, kilni_base_sv_make(data, text.size),
                               &copy);
    part->text = kilni_base_sv_make(copy, copy != NULL ? text.size : 0);
  }
  return kilni_soft_result(status);
}

// Whether the device links this kind at all; reports why not.
static kiln_cu_result_t link_check_type(kilni_soft_link_t* link,
                                        kiln_cu_jit_input_t type,
                                        const char* name) {
  if (type == KILN_CU_JIT_INPUT_PTX) return KILN_CU_SUCCESS;
  if (type > KILN_CU_JIT_INPUT_NVVM) return KILN_CU_ERROR_INVALID_VALUE;
  link_note(link, name,
            type == KILN_CU_JIT_INPUT_NVVM
                ? "the software device links PTX, and this is NVVM IR"
                : "the software device links PTX, and this is not PTX");
  return type == KILN_CU_JIT_INPUT_NVVM ? KILN_CU_ERROR_NOT_SUPPORTED
                                        : KILN_CU_ERROR_NO_BINARY_FOR_GPU;
}

static kiln_cu_result_t link_take(kiln_allocator_t allocator,
                                  kilni_soft_link_t* link, const char* data,
                                  size_t size, const char* name) {
  if (link->part_count == PARTS_LIMIT) return KILN_CU_ERROR_INVALID_VALUE;
  void* parts = link->parts;
  kiln_cu_result_t result = kilni_soft_result(
      kilni_base_grow(allocator, link->part_count + 1, sizeof(*link->parts),
                      &link->part_capacity, &parts));
  link->parts = parts;
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_part_t* part = &link->parts[link->part_count];
  memset(part, 0, sizeof(*part));
  link->part_count++;  // so that its data is ended with the link
  return link_read_part(allocator, link, part, data, size, name);
}

static kiln_cu_result_t row_add_data(kiln_cu_link_state_t link,
                                     kiln_cu_jit_input_t type, void* data,
                                     size_t bytes, const char* name,
                                     unsigned int count,
                                     kiln_cu_jit_option_t* options,
                                     void** values) {
  kilni_soft_driver_t* driver;
  void* object;
  bool good = data != NULL && bytes > 0;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_HEALTHY, KILNI_SOFT_KIND_LINK,
                              link, good, &driver, &object);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_link_t* found = object;
  kilni_soft_jit_t ignored;
  result = kilni_soft_jit_read(count, options, values, &ignored);
  if (found->done || found->busy) result = KILN_CU_ERROR_INVALID_VALUE;
  if (name == NULL || name[0] == '\0') name = "<unnamed>";
  if (result == KILN_CU_SUCCESS) result = link_check_type(found, type, name);
  if (result != KILN_CU_SUCCESS) {
    if (!found->busy) link_put_logs(driver, found);
    return kilni_soft_leave(driver, result);
  }
  kilni_soft_link_t taken;
  take_along(driver, found, &taken);
  result = link_take(driver->host.allocator, &taken, data, bytes, name);
  if (result != KILN_CU_SUCCESS) taken.failed = true;
  found = link_put_back(driver, &taken);
  if (found == NULL) result = KILN_CU_ERROR_INVALID_HANDLE;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_add_file(kiln_cu_link_state_t link,
                                     kiln_cu_jit_input_t type, const char* path,
                                     unsigned int count,
                                     kiln_cu_jit_option_t* options,
                                     void** values) {
  kilni_soft_driver_t* driver;
  void* object;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_HEALTHY, KILNI_SOFT_KIND_LINK,
                              link, path != NULL, &driver, &object);
  if (result != KILN_CU_SUCCESS) return result;
  kiln_allocator_t allocator = driver->host.allocator;
  kilni_soft_link_t* found = object;
  if (!found->busy) link_put_logs(driver, found);
  kilni_soft_leave(driver, result);
  uint8_t* data = NULL;
  size_t size = 0;
  result = kilni_soft_file_read(allocator, path, FILE_LIMIT, &data, &size);
  if (result != KILN_CU_SUCCESS) return result;
  result = row_add_data(link, type, data, size, path, count, options, values);
  kilni_base_file_free(allocator, data, size);
  return result;
}

// ---- Linking ----

// Whether the one text is PTX after all: the merge does not know types.
static kiln_cu_result_t link_check_whole(kiln_allocator_t allocator,
                                         kilni_soft_link_t* link) {
  kiln_bytes_view_t text = {(const uint8_t*)link->text.data, link->text.size};
  kilni_image_ptx_module_t* tree = NULL;
  kiln_status_t status = kilni_image_ptx_module_create(text, "the linked PTX",
                                                       NULL, allocator, &tree);
  kilni_image_ptx_module_release(tree);
  if (kiln_status_is_ok(status)) return KILN_CU_SUCCESS;
  char message[KILNI_SOFT_MESSAGE_BYTES];
  kiln_cu_result_t result = kilni_soft_read_result(status, true, message);
  link_note(link, "the linked PTX", message);
  return result;
}

static kiln_cu_result_t soft_link_complete(kiln_allocator_t allocator,
                                           kilni_soft_link_t* link) {
  size_t before = link->errors.size;
  link->text.size = 0;
  kiln_cu_result_t result = kilni_soft_result(
      kilni_soft_merge(allocator, link->parts, link->part_count, &link->text,
                       &link->errors, &link->infos));
  if (result == KILN_CU_SUCCESS && link->errors.size > before) {
    result = KILN_CU_ERROR_UNKNOWN;  // as NVIDIA's linker
  }
  if (result == KILN_CU_SUCCESS) result = link_check_whole(allocator, link);
  if (result == KILN_CU_SUCCESS) {
    kilni_base_str_addf(&link->infos,
                        "info    : %zu PTX texts linked, %zu bytes\n",
                        link->part_count, link->text.size);
  }
  link->failed = result != KILN_CU_SUCCESS;
  link->done = !link->failed;
  return result;
}

static kiln_cu_result_t row_complete(kiln_cu_link_state_t link, void** image,
                                     size_t* bytes) {
  kilni_soft_driver_t* driver;
  void* object;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_HEALTHY, KILNI_SOFT_KIND_LINK,
                              link, image != NULL, &driver, &object);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_link_t* found = object;
  if (found->busy ||
      (!found->done && (found->failed || found->part_count == 0))) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  if (result == KILN_CU_SUCCESS && !found->done) {
    kilni_soft_link_t taken;
    take_along(driver, found, &taken);
    result = soft_link_complete(driver->host.allocator, &taken);
    found = link_put_back(driver, &taken);
    if (found == NULL) {
      return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_HANDLE);
    }
  } else if (!found->busy) {
    link_put_logs(driver, found);
  }
  if (result == KILN_CU_SUCCESS) {
    *image = found->text.data;
    if (bytes != NULL) *bytes = found->text.size;
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_link(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuLinkCreate, link_row_create);
  KILNI_CUDA_SET(table, cuLinkAddData, row_add_data);
  KILNI_CUDA_SET(table, cuLinkAddFile, row_add_file);
  KILNI_CUDA_SET(table, cuLinkComplete, row_complete);
  KILNI_CUDA_SET(table, cuLinkDestroy, link_row_destroy);
}
