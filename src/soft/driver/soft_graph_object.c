// SPDX-License-Identifier: Apache-2.0
//
// soft: what graphs own: user objects, the values that conditional nodes read,
// and the memory of allocation nodes.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// ---- User objects ----

static kilni_soft_object_t* graph_object_find_object(
    const kilni_soft_driver_t* driver, kiln_cu_user_object_t object) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_OBJECT,
                               (uintptr_t)object);
}

// References less; without any the object waits for its end.
static void graph_object_drop(kilni_soft_driver_t* driver,
                              kilni_soft_object_t* object, uint64_t count) {
  object->refs -= count;
  if (object->refs != 0) return;
  kilni_soft_object_t** link = &driver->objects;
  while (*link != object) link = &(*link)->next;
  *link = object->next;
  kilni_soft_handle_remove(&driver->handles, object->handle);
  // In the order in which they were let go of.
  link = &driver->ending;
  while (*link != NULL) link = &(*link)->next;
  object->next = NULL;
  *link = object;
}

void kilni_soft_objects_end(kilni_soft_driver_t* driver) {
  while (driver->ending != NULL) {
    kilni_soft_object_t* object = driver->ending;
    driver->ending = object->next;
    kilni_base_mutex_unlock(&driver->lock);
    kilni_soft_callback_begin();
    object->destroy(object->user);
    kilni_soft_callback_end();
    kilni_base_free(driver->host.allocator, object, sizeof(*object));
    kilni_base_mutex_lock(&driver->lock);
  }
}

void kilni_soft_objects_forget(kilni_soft_driver_t* driver) {
  while (driver->ending != NULL) {
    kilni_soft_object_t* object = driver->ending;
    driver->ending = object->next;
    kilni_base_free(driver->host.allocator, object, sizeof(*object));
  }
}

kiln_cu_result_t kilni_soft_holding_add(kilni_soft_driver_t* driver,
                                        kilni_soft_graph_t* graph,
                                        kilni_soft_object_t* object,
                                        uint64_t count) {
  kilni_soft_holding_t* holding = NULL;
  for (size_t i = 0; i < graph->holding_count && holding == NULL; i++) {
    if (graph->holdings[i].object == object) holding = &graph->holdings[i];
  }
  if (holding == NULL) {
    void* list = graph->holdings;
    kiln_status_t status =
        kilni_base_grow(driver->host.allocator, graph->holding_count + 1,
                        sizeof(*holding), &graph->holding_capacity, &list);
    graph->holdings = list;
    if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
    holding = &graph->holdings[graph->holding_count++];
    holding->object = object;
    holding->count = 0;
  }
  holding->count += count;
  object->refs += count;
  return KILN_CU_SUCCESS;
}

void kilni_soft_holdings_free(kilni_soft_driver_t* driver,
                              kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->holding_count; i++) {
    graph_object_drop(driver, graph->holdings[i].object,
                      graph->holdings[i].count);
  }
  kilni_base_free_array(driver->host.allocator, graph->holdings,
                        graph->holding_capacity, sizeof(*graph->holdings));
  graph->holdings = NULL;
  graph->holding_count = 0;
  graph->holding_capacity = 0;
}

static kiln_cu_result_t graph_object_row_create(kiln_cu_user_object_t* object,
                                                void* user,
                                                kiln_cu_host_fn_t destroy,
                                                unsigned int references,
                                                unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (object == NULL || destroy == NULL || references == 0 ||
      references > INT32_MAX ||
      flags != KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_object_t* made = NULL;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*made), (void**)&made);
  if (kiln_status_is_ok(status)) {
    status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_OBJECT,
                                   made, &made->handle);
    if (!kiln_status_is_ok(status)) {
      kilni_base_free(driver->host.allocator, made, sizeof(*made));
    }
  }
  result = kilni_soft_result(status);
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  made->refs = references;
  made->owned = references;
  made->destroy = destroy;
  made->user = user;
  made->next = driver->objects;
  driver->objects = made;
  *object = (kiln_cu_user_object_t)(uintptr_t)made->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t graph_object_change(kiln_cu_user_object_t object,
                                            unsigned int count, bool more) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_object_t* found = graph_object_find_object(driver, object);
  if (found == NULL || count == 0 || count > INT32_MAX ||
      (!more && found->owned < count)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (more) {
    found->owned += count;
    found->refs += count;
  } else {
    found->owned -= count;
    graph_object_drop(driver, found, count);
  }
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t graph_object_row_retain(kiln_cu_user_object_t object,
                                                unsigned int count) {
  return graph_object_change(object, count, true);
}

static kiln_cu_result_t graph_object_row_release(kiln_cu_user_object_t object,
                                                 unsigned int count) {
  return graph_object_change(object, count, false);
}

static kiln_cu_result_t row_graph_retain(kiln_cu_graph_t graph,
                                         kiln_cu_user_object_t object,
                                         unsigned int count,
                                         unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_graph_t* into = kilni_soft_graph_find(driver, graph);
  kilni_soft_object_t* found = graph_object_find_object(driver, object);
  bool move = flags == KILN_CU_GRAPH_USER_OBJECT_MOVE;
  if (into == NULL || found == NULL || count == 0 || count > INT32_MAX ||
      (flags != 0 && !move) || (move && found->owned < count)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  result = kilni_soft_holding_add(driver, into, found, count);
  if (result == KILN_CU_SUCCESS && move) {
    found->owned -= count;
    graph_object_drop(driver, found, count);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_graph_release(kiln_cu_graph_t graph,
                                          kiln_cu_user_object_t object,
                                          unsigned int count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_graph_t* from = kilni_soft_graph_find(driver, graph);
  kilni_soft_object_t* found = graph_object_find_object(driver, object);
  result = KILN_CU_ERROR_INVALID_VALUE;
  for (size_t i = 0; from != NULL && count > 0 && i < from->holding_count;
       i++) {
    kilni_soft_holding_t* holding = &from->holdings[i];
    if (holding->object != found || holding->count < count) continue;
    holding->count -= count;
    if (holding->count == 0) *holding = from->holdings[--from->holding_count];
    graph_object_drop(driver, found, count);
    result = KILN_CU_SUCCESS;
    break;
  }
  return kilni_soft_leave(driver, result);
}

// ---- Values that conditional nodes ask for ----

kilni_soft_value_t* kilni_soft_value_find(const kilni_soft_driver_t* driver,
                                          uint64_t handle) {
  kilni_soft_value_t* value = driver->values;
  while (value != NULL && (handle == 0 || value->address != handle)) {
    value = value->next;
  }
  return value;
}

static kiln_cu_result_t keep_value(kilni_soft_driver_t* driver,
                                   kilni_soft_graph_t* graph,
                                   kilni_soft_value_t* value) {
  void* list = graph->values;
  kiln_status_t status = kilni_base_grow(
      driver->host.allocator, graph->value_count + 1,
      sizeof(kilni_soft_value_t*), &graph->value_capacity, &list);
  graph->values = list;
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  graph->values[graph->value_count++] = value;
  value->refs++;
  return KILN_CU_SUCCESS;
}

static void free_value(kilni_soft_driver_t* driver, kilni_soft_value_t* value) {
  kilni_soft_value_t** link = &driver->values;
  while (*link != value) link = &(*link)->next;
  *link = value->next;
  if (value->address != 0) {
    kiln_status_free(
        kilni_soft_memory_free(driver->contexts[value->device].memory,
                               value->address, KILNI_SOFT_ALLOC_MODULE));
  }
  kilni_soft_task_release(driver, value->last);
  kilni_base_free(driver->host.allocator, value, sizeof(*value));
}

static kiln_cu_result_t new_value(kilni_soft_driver_t* driver,
                                  const kilni_soft_context_t* context,
                                  kilni_soft_graph_t* graph, uint32_t initial,
                                  bool assign, kilni_soft_value_t** out_value) {
  kilni_soft_value_t* value = NULL;
  *out_value = NULL;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*value), (void**)&value);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  value->next = driver->values;
  driver->values = value;
  value->graph = graph;
  value->initial = initial;
  value->assign = assign;
  value->device = context->device;
  status = kilni_soft_memory_alloc(context->memory, sizeof(initial),
                                   KILNI_SOFT_ALLOC_MODULE, &value->address);
  kiln_cu_result_t result = kilni_soft_result(status);
  if (result == KILN_CU_SUCCESS) {
    void* cell =
        kilni_soft_memory_host(driver->memory, value->address, sizeof(initial));
    memset(cell, 0, sizeof(initial));
    result = keep_value(driver, graph, value);
  }
  if (result == KILN_CU_SUCCESS) {
    *out_value = value;
  } else {
    free_value(driver, value);
  }
  return result;
}

kiln_cu_result_t kilni_soft_values_copy(kilni_soft_driver_t* driver,
                                        const kilni_soft_graph_t* graph,
                                        kilni_soft_graph_t* copy) {
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  for (size_t i = 0; i < graph->value_count && result == KILN_CU_SUCCESS; i++) {
    result = keep_value(driver, copy, graph->values[i]);
  }
  return result;
}

void kilni_soft_values_free(kilni_soft_driver_t* driver,
                            kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->value_count; i++) {
    kilni_soft_value_t* value = graph->values[i];
    if (value->graph == graph) value->graph = NULL;
    if (--value->refs == 0) free_value(driver, value);
  }
  kilni_base_free_array(driver->host.allocator, graph->values,
                        graph->value_capacity, sizeof(kilni_soft_value_t*));
  graph->values = NULL;
  graph->value_count = 0;
}

static kiln_cu_result_t row_condition(kiln_cu_graph_condition_t* handle,
                                      kiln_cu_graph_t graph,
                                      kiln_cu_context_t context,
                                      unsigned int value, unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_graph_t* found = kilni_soft_graph_find(driver, graph);
  if (handle == NULL || found == NULL ||
      flags > KILN_CU_GRAPH_COND_ASSIGN_DEFAULT) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  const kilni_soft_context_t* where = kilni_soft_current(driver);
  if (context != NULL) {
    where = kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_CONTEXT,
                                  (uintptr_t)context);
  }
  kilni_soft_value_t* made = NULL;
  result = KILN_CU_ERROR_INVALID_CONTEXT;
  if (where != NULL) {
    result = new_value(driver, where, kilni_soft_graph_top(found), value,
                       flags != 0, &made);
  }
  if (result == KILN_CU_SUCCESS) *handle = made->address;
  return kilni_soft_leave(driver, result);
}

// ---- Memory of allocation nodes ----

kiln_cu_result_t kilni_soft_store_new(kilni_soft_driver_t* driver,
                                      uint32_t device, uint64_t bytes,
                                      kilni_soft_store_t** out_store) {
  kilni_soft_store_t* store = NULL;
  *out_store = NULL;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*store), (void**)&store);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  kiln_cu_result_t result = kilni_soft_allocate(
      driver, device, bytes, KILNI_SOFT_ALLOC_ASYNC, &store->address);
  if (result != KILN_CU_SUCCESS) {
    kilni_base_free(driver->host.allocator, store, sizeof(*store));
    return result;
  }
  store->bytes = bytes;
  store->device = device;
  store->refs = 1;
  store->next = driver->stores;
  driver->stores = store;
  *out_store = store;
  return KILN_CU_SUCCESS;
}

kilni_soft_store_t* kilni_soft_store_find(const kilni_soft_driver_t* driver,
                                          uint64_t address) {
  kilni_soft_store_t* store = driver->stores;
  while (store != NULL && (address == 0 || store->address != address)) {
    store = store->next;
  }
  return store;
}

void kilni_soft_store_use(kilni_soft_driver_t* driver,
                          kilni_soft_store_t* store, bool used) {
  if (store->used == used) return;
  kilni_soft_context_t* context = &driver->contexts[store->device];
  store->used = used;
  context->graph_used += used ? store->bytes : 0 - store->bytes;
  if (context->graph_used > context->graph_used_high) {
    context->graph_used_high = context->graph_used;
  }
  if (context->graph_used > context->graph_reserved) {
    context->graph_reserved = context->graph_used;
  }
  if (context->graph_reserved > context->graph_reserved_high) {
    context->graph_reserved_high = context->graph_reserved;
  }
}

void kilni_soft_store_release(kilni_soft_driver_t* driver,
                              kilni_soft_store_t* store) {
  if (store == NULL || --store->refs != 0) return;
  kilni_soft_store_use(driver, store, false);
  kilni_soft_store_t** link = &driver->stores;
  while (*link != store) link = &(*link)->next;
  *link = store->next;
  if (store->address != 0) {
    kiln_status_free(
        kilni_soft_memory_free(driver->contexts[store->device].memory,
                               store->address, KILNI_SOFT_ALLOC_ASYNC));
  }
  kilni_base_free(driver->host.allocator, store, sizeof(*store));
}

void kilni_soft_graphs_forget(kilni_soft_driver_t* driver,
                              kilni_soft_context_t* context) {
  for (kilni_soft_value_t* value = driver->values; value != NULL;
       value = value->next) {
    if (value->device == context->device) value->address = 0;
  }
  for (kilni_soft_store_t* store = driver->stores; store != NULL;
       store = store->next) {
    if (store->device != context->device) continue;
    kilni_soft_store_use(driver, store, false);
    store->address = 0;
  }
}

// ---- What a device reports of that memory ----

static kiln_cu_result_t graph_object_row_trim(kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!kilni_soft_is_device(driver, device)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_DEVICE);
  }
  kilni_soft_context_t* context = &driver->contexts[device];
  context->graph_reserved = context->graph_used;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get(kiln_cu_device_t device,
                                kiln_cu_graph_mem_attribute_t attribute,
                                void* value) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!kilni_soft_is_device(driver, device)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_DEVICE);
  }
  const kilni_soft_context_t* context = &driver->contexts[device];
  const uint64_t told[] = {context->graph_used, context->graph_used_high,
                           context->graph_reserved,
                           context->graph_reserved_high};
  if (value == NULL || attribute > KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else {
    memcpy(value, &told[attribute], sizeof(told[attribute]));
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t graph_object_row_set(
    kiln_cu_device_t device, kiln_cu_graph_mem_attribute_t attribute,
    void* value) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  uint64_t number = 0;
  if (value != NULL) memcpy(&number, value, sizeof(number));
  if (!kilni_soft_is_device(driver, device)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_DEVICE);
  }
  kilni_soft_context_t* context = &driver->contexts[device];
  if (value == NULL || number != 0) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (attribute == KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    context->graph_used_high = context->graph_used;
  } else if (attribute == KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    context->graph_reserved_high = context->graph_reserved;
  } else {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_graph_object(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuUserObjectCreate, graph_object_row_create);
  KILNI_CUDA_SET(table, cuUserObjectRetain, graph_object_row_retain);
  KILNI_CUDA_SET(table, cuUserObjectRelease, graph_object_row_release);
  KILNI_CUDA_SET(table, cuGraphRetainUserObject, row_graph_retain);
  KILNI_CUDA_SET(table, cuGraphReleaseUserObject, row_graph_release);
  KILNI_CUDA_SET(table, cuGraphConditionalHandleCreate, row_condition);
  KILNI_CUDA_SET(table, cuDeviceGraphMemTrim, graph_object_row_trim);
  KILNI_CUDA_SET(table, cuDeviceGetGraphMemAttribute, row_get);
  KILNI_CUDA_SET(table, cuDeviceSetGraphMemAttribute, graph_object_row_set);
}
