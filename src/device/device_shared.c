// SPDX-License-Identifier: Apache-2.0
//
// device: pools and buffers between processes.
//
// What other processes may open, and what of theirs is opened here. Events are
// in device_event.c.
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

// ---- Pools ----

kiln_status_t kiln_pool_export(kiln_pool_t* pool, int* out_fd) {
  KILNI_CHECK_ARGUMENT(out_fd != NULL, "out_fd");
  *out_fd = -1;
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  if (!pool->interprocess || pool->imported) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "a pool of \"%s\" that is not to be shared",
                   pool->device->name),
        "set `interprocess` in kiln_pool_options_t where the pool is made");
  }
  int fd = -1;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuMemPoolExportToShareableHandle, &fd,
                    pool->handle, KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                    0);
  if (kiln_status_is_ok(status)) {
    *out_fd = fd;
  } else if (fd >= 0) {
    close(fd);
  }
  return status;
}

static kiln_status_t init_imports(kiln_pool_t* pool) {
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&pool->imports.lock));
  kiln_status_t status = kilni_base_cond_init(&pool->imports.changed);
  if (!kiln_status_is_ok(status)) {
    kilni_base_mutex_deinit(&pool->imports.lock);
    return status;
  }
  pool->has_imports = true;
  return kiln_ok();
}

// The device that opened a pool may use it, unless it differs from the pool's
// device: then access is granted.
static kiln_status_t shared_let_in(kiln_pool_t* pool) {
  kiln_device_t* device = pool->device;
  kiln_cu_mem_access_desc_t desc = {
      {KILN_CU_MEM_LOCATION_TYPE_DEVICE, device->handle},
      KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  kiln_cu_mem_access_t now = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuMemPoolGetAccess, &now, pool->handle,
                    &desc.location);
  if (!kiln_status_is_ok(status) || now == desc.flags) return status;
  KILNI_DEVICE_CALL(status, device, cuMemPoolSetAccess, pool->handle, &desc, 1);
  return status;
}

kiln_status_t kiln_pool_import(kiln_device_t* device, int fd,
                               kiln_pool_t** out_pool) {
  KILNI_CHECK_ARGUMENT(out_pool != NULL, "out_pool");
  *out_pool = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(fd >= 0, "fd");
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuMemPoolImportFromShareableHandle));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  kiln_pool_t* pool = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_device_pool_make(device, KILN_MEMORY_DEVICE, &pool));
  pool->imported = true;
  kiln_status_t status = init_imports(pool);
  if (kiln_status_is_ok(status)) {
    // The driver takes the number in place of a pointer.
    KILNI_DEVICE_CREATE(
        status, device, &pool->handle, cuMemPoolImportFromShareableHandle,
        (void*)(uintptr_t)fd, KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    pool->is_made = pool->handle != NULL;
  }
  if (kiln_status_is_ok(status)) status = shared_let_in(pool);
  if (!kiln_status_is_ok(status)) {
    kiln_pool_release(pool);
    return status;
  }
  kilni_device_pool_enter(pool);
  *out_pool = pool;
  return kiln_ok();
}

// ---- Giving a buffer ----

kiln_status_t kiln_buffer_export(kiln_buffer_t* buffer,
                                 kiln_buffer_export_t* out_export) {
  KILNI_CHECK_ARGUMENT(out_export != NULL, "out_export");
  memset(out_export, 0, sizeof(*out_export));
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  kiln_device_t* device = buffer->device;
  bool of_pool = buffer->pool != NULL && buffer->pool->interprocess &&
                 buffer->end == KILNI_BUFFER_ASYNC;
  bool plain =
      buffer->end == KILNI_BUFFER_FREE && buffer->kind == KILN_MEMORY_DEVICE;
  if (buffer->import != NULL || (!of_pool && !plain)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "a buffer of %llu bytes on \"%s\" that no other process can "
                   "open",
                   (unsigned long long)buffer->size, device->name),
        "make it without a stream, or from a pool with `interprocess`");
  }
  kiln_status_t status;
  if (of_pool) {
    kiln_cu_mempool_export_t shared;
    KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
        device->table, KILNI_CUDA_ROW_cuMemPoolExportPointer));
    KILNI_DEVICE_CALL(status, device, cuMemPoolExportPointer, &shared,
                      buffer->address);
    KILNI_RETURN_IF_ERROR(status);
    memcpy(out_export->bytes, &shared, sizeof(shared));
  } else {
    kiln_cu_ipc_mem_handle_t shared;
    KILNI_RETURN_IF_ERROR(
        kilni_table_cuda_need(device->table, KILNI_CUDA_ROW_cuIpcGetMemHandle));
    KILNI_DEVICE_CALL(status, device, cuIpcGetMemHandle, &shared,
                      buffer->address);
    KILNI_RETURN_IF_ERROR(status);
    memcpy(out_export->bytes, &shared, sizeof(shared));
  }
  out_export->size = buffer->size;
  out_export->of_pool = of_pool;
  return kiln_ok();
}

// ---- Taking one ----

static kiln_status_t check_import(const kiln_device_t* device,
                                  const kiln_buffer_export_t* exported,
                                  const kiln_buffer_options_t* given) {
  KILNI_CHECK_RESERVED(exported->reserved, kiln_buffer_export_t);
  KILNI_CHECK_ARGUMENT(exported->of_pool <= 1, "exported.of_pool");
  KILNI_CHECK_ARGUMENT(exported->size != 0, "exported.size");
  KILNI_CHECK_ARGUMENT(given->kind == 0, "options.kind");
  bool both = given->pool != NULL && given->stream != NULL;
  bool none = given->pool == NULL && given->stream == NULL;
  if (exported->of_pool ? !both : !none) {
    return kilni_base_status_with_fix(
        exported->of_pool
            ? KILNI_FAIL(INVALID_ARGUMENT,
                         "a buffer of another process's pool without that pool "
                         "and a stream")
            : KILNI_FAIL(INVALID_ARGUMENT,
                         "a pool or a stream for a buffer of another process "
                         "that is not of a pool"),
        exported->of_pool ? "import the pool, and name it and a stream"
                          : "leave out `pool` and `stream`");
  }
  if (none) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_memory(device, given->pool->device, "`options.pool`"));
  KILNI_RETURN_IF_ERROR(kilni_device_check_same(device, given->stream->device,
                                                "`options.stream`"));
  if (given->pool->imported) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`options.pool` is this process's own"),
      "name the pool that kiln_pool_import returned");
}

static bool shared_try_retain(kiln_buffer_t* buffer) {
  unsigned int seen = atomic_load(&buffer->references);
  while (seen != 0) {
    if (atomic_compare_exchange_weak(&buffer->references, &seen, seen + 1)) {
      return true;
    }
  }
  return false;
}

// The buffer of this key, retained; or NULL, and `import` takes its place in
// the list. Waits while another thread is opening or releasing it.
static kiln_buffer_t* shared_enter(kilni_device_imports_t* imports,
                                   kilni_device_import_t* import) {
  kiln_buffer_t* found = NULL;
  kilni_base_mutex_lock(&imports->lock);
  for (;;) {
    kilni_device_import_t* at = imports->first;
    while (at != NULL && memcmp(at->key, import->key, sizeof(at->key)) != 0) {
      at = at->next;
    }
    if (at == NULL) {
      import->next = imports->first;
      imports->first = import;
      break;
    }
    if (at->buffer != NULL && shared_try_retain(at->buffer)) {
      found = at->buffer;
      break;
    }
    kilni_base_cond_wait(&imports->changed, &imports->lock);
  }
  kilni_base_mutex_unlock(&imports->lock);
  return found;
}

void kilni_device_import_left(kiln_pool_t* pool,
                              kilni_device_import_t* import) {
  kilni_device_imports_t* imports = &pool->imports;
  kilni_base_mutex_lock(&imports->lock);
  kilni_device_import_t** at = &imports->first;
  while (*at != import) at = &(*at)->next;
  *at = import->next;
  kilni_base_cond_broadcast(&imports->changed);
  kilni_base_mutex_unlock(&imports->lock);
  kilni_base_free(pool->device->host->allocator, import, sizeof(*import));
}

// Asks the driver; the buffer has its place in the list.
static kiln_status_t open_of_pool(kiln_buffer_t* buffer, kiln_stream_t* stream,
                                  kiln_pool_t* pool) {
  kiln_stream_retain(stream);
  atomic_store(&buffer->stream, stream);
  kilni_device_buffer_note_thread(buffer, stream);
  kiln_cu_mempool_export_t shared;
  memcpy(&shared, buffer->import->key, sizeof(shared));
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, buffer->device, &buffer->address,
                      cuMemPoolImportPointer, pool->handle, &shared);
  if (buffer->address != 0) buffer->end = KILNI_BUFFER_ASYNC;
  return status;
}

static void shared_publish(kilni_device_imports_t* imports,
                           kiln_buffer_t* buffer) {
  kilni_base_mutex_lock(&imports->lock);
  buffer->import->buffer = buffer;
  kilni_base_cond_broadcast(&imports->changed);
  kilni_base_mutex_unlock(&imports->lock);
}

static kiln_status_t import_of_pool(kiln_device_t* device,
                                    const kiln_buffer_export_t* exported,
                                    const kiln_buffer_options_t* given,
                                    kiln_buffer_t** out_buffer) {
  const kiln_allocator_t allocator = device->host->allocator;
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuMemPoolImportPointer));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_device_import_t), &block));
  kilni_device_import_t* import = block;
  memcpy(import->key, exported->bytes, sizeof(import->key));
  kiln_buffer_t* buffer = NULL;
  kiln_status_t status =
      kilni_device_buffer_make(device, exported->size, &buffer);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, import, sizeof(*import));
    return status;
  }
  kiln_buffer_t* known = shared_enter(&given->pool->imports, import);
  if (known != NULL) {
    kilni_base_free(allocator, import, sizeof(*import));
    kiln_buffer_release(buffer);
    *out_buffer = known;
    return kiln_ok();
  }
  buffer->import = import;
  buffer->pool = given->pool;
  kiln_pool_retain(given->pool);
  status = open_of_pool(buffer, given->stream, given->pool);
  if (!kiln_status_is_ok(status)) {
    kiln_buffer_release(buffer);
    return status;
  }
  shared_publish(&given->pool->imports, buffer);
  *out_buffer = buffer;
  return kiln_ok();
}

static kiln_status_t import_plain(kiln_device_t* device,
                                  const kiln_buffer_export_t* exported,
                                  kiln_buffer_t** out_buffer) {
  KILNI_RETURN_IF_ERROR(
      kilni_table_cuda_need(device->table, KILNI_CUDA_ROW_cuIpcOpenMemHandle));
  kiln_buffer_t* buffer = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_make(device, exported->size, &buffer));
  kiln_cu_ipc_mem_handle_t shared;
  memcpy(&shared, exported->bytes, sizeof(shared));
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &buffer->address, cuIpcOpenMemHandle,
                      shared, KILN_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (buffer->address != 0) buffer->end = KILNI_BUFFER_OPENED;
  if (!kiln_status_is_ok(status)) {
    kiln_buffer_release(buffer);
    return status;
  }
  *out_buffer = buffer;
  return kiln_ok();
}

kiln_status_t kiln_buffer_import(kiln_device_t* device,
                                 const kiln_buffer_export_t* exported,
                                 const kiln_buffer_options_t* options,
                                 kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(exported != NULL, "exported");
  kiln_buffer_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_buffer_options_t", sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(check_import(device, exported, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  return exported->of_pool
             ? import_of_pool(device, exported, &given, out_buffer)
             : import_plain(device, exported, out_buffer);
}
