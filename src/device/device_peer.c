// SPDX-License-Identifier: Apache-2.0
//
// device: access of one device to another's memory.
//
// Access is of contexts, and a device may be open several times over one
// context: so its users are counted for each pair of contexts, in a book that
// all devices of one driver share. The first user enables access in the driver,
// and the last one revokes what was enabled here; others wait meanwhile. The
// book's lock is not held during driver calls.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "kiln/peer.h"

// What is known of one pair. thread-safe under the book's lock
struct kilni_device_peer_pair_t {
  kilni_device_peer_pair_t* next;
  kiln_cu_context_t device;
  kiln_cu_context_t other;
  uint32_t users;
  bool is_asking;  // a thread is in a driver call about it
  bool is_ours;    // it was enabled here
};

struct kiln_peer_t {
  kiln_device_t* device;
  kiln_device_t* other;
  kilni_device_peer_pair_t* pair;
  atomic_uint references;
};

// ---- The book ----

kiln_status_t kilni_device_peer_book_init(kilni_device_peer_book_t* book,
                                          kiln_allocator_t allocator) {
  memset(book, 0, sizeof(*book));
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&book->lock));
  kiln_status_t status = kilni_base_cond_init(&book->changed);
  if (!kiln_status_is_ok(status)) {
    kilni_base_mutex_deinit(&book->lock);
    return status;
  }
  book->allocator = allocator;
  book->is_there = true;
  return kiln_ok();
}

void kilni_device_peer_book_deinit(kilni_device_peer_book_t* book) {
  if (!book->is_there) return;
  while (book->first != NULL) {
    kilni_device_peer_pair_t* pair = book->first;
    book->first = pair->next;
    kilni_base_free(book->allocator, pair, sizeof(*pair));
  }
  kilni_base_cond_deinit(&book->changed);
  kilni_base_mutex_deinit(&book->lock);
  book->is_there = false;
}

static kilni_device_peer_pair_t* peer_find(const kilni_device_peer_book_t* book,
                                           kiln_cu_context_t device,
                                           kiln_cu_context_t other) {
  kilni_device_peer_pair_t* pair = book->first;
  while (pair != NULL && (pair->device != device || pair->other != other)) {
    pair = pair->next;
  }
  return pair;
}

// The pair, which stays until the book ends.
static kiln_status_t need_pair(kilni_device_peer_book_t* book,
                               kiln_cu_context_t device,
                               kiln_cu_context_t other,
                               kilni_device_peer_pair_t** out_pair) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      book->allocator, sizeof(kilni_device_peer_pair_t), &block));
  kilni_device_peer_pair_t* fresh = block;
  fresh->device = device;
  fresh->other = other;
  kilni_base_mutex_lock(&book->lock);
  *out_pair = peer_find(book, device, other);
  if (*out_pair == NULL) {
    fresh->next = book->first;
    book->first = fresh;
    *out_pair = fresh;
  }
  kilni_base_mutex_unlock(&book->lock);
  if (*out_pair != fresh) {
    kilni_base_free(book->allocator, fresh, sizeof(*fresh));
  }
  return kiln_ok();
}

// One user more; false if that is the first, which must now call the driver.
static bool peer_join(kilni_device_peer_book_t* book,
                      kilni_device_peer_pair_t* pair) {
  kilni_base_mutex_lock(&book->lock);
  while (pair->is_asking) kilni_base_cond_wait(&book->changed, &book->lock);
  bool is_there = pair->users > 0;
  if (is_there) pair->users++;
  pair->is_asking = !is_there;
  kilni_base_mutex_unlock(&book->lock);
  return is_there;
}

// After the driver call.
static void asked(kilni_device_peer_book_t* book,
                  kilni_device_peer_pair_t* pair, uint32_t users,
                  bool is_ours) {
  kilni_base_mutex_lock(&book->lock);
  pair->is_asking = false;
  pair->users = users;
  pair->is_ours = is_ours;
  kilni_base_cond_broadcast(&book->changed);
  kilni_base_mutex_unlock(&book->lock);
}

// One user less; true if access is to be taken back now.
static bool peer_leave(kilni_device_peer_book_t* book,
                       kilni_device_peer_pair_t* pair) {
  kilni_base_mutex_lock(&book->lock);
  bool ends = --pair->users == 0 && pair->is_ours;
  pair->is_asking = ends;
  kilni_base_mutex_unlock(&book->lock);
  return ends;
}

// ---- Asking ----

static kiln_status_t peer_check_pair(const kiln_device_t* device,
                                     const kiln_device_t* other) {
  KILNI_RETURN_IF_ERROR(kilni_device_check_driver(device, other, "`other`"));
  if (device->whole->handle != other->whole->handle) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" and \"%s\" are one device",
                 device->name, other->name),
      "name two devices: each may use its own memory");
}

// A driver older than the attribute: the path lacks it.
static kiln_status_t peer_read(kiln_device_t* device,
                               const kiln_device_t* other,
                               kiln_cu_p2p_attribute_t attribute,
                               int* out_value) {
  int value = 0;
  kiln_cu_result_t result = device->table->cuDeviceGetP2PAttribute(
      &value, attribute, device->handle, other->handle);
  if (result == KILN_CU_ERROR_INVALID_VALUE) return kiln_ok();
  *out_value = value;
  return KILNI_DEVICE_CHECK(device, result, "cuDeviceGetP2PAttribute");
}

static uint32_t is_true(int value) {
  return value != 0 ? 1 : 0;
}

kiln_status_t kiln_peer_query(kiln_device_t* device, kiln_device_t* other,
                              kiln_peer_info_t* out_info) {
  KILNI_CHECK_ARGUMENT(out_info != NULL, "out_info");
  memset(out_info, 0, sizeof(*out_info));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(other != NULL, "other");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(peer_check_pair(device, other));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  int access = 0;
  int atomics = 0;
  int some = 0;
  int arrays = 0;
  int rank = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_DEVICE_CHECK(device,
                         device->table->cuDeviceCanAccessPeer(
                             &access, device->handle, other->handle),
                         "cuDeviceCanAccessPeer"));
  KILNI_RETURN_IF_ERROR(peer_read(
      device, other, KILN_CU_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, &atomics));
  KILNI_RETURN_IF_ERROR(peer_read(
      device, other, KILN_CU_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED,
      &some));
  KILNI_RETURN_IF_ERROR(peer_read(
      device, other, KILN_CU_P2P_ATTRIBUTE_ARRAY_ACCESS_SUPPORTED, &arrays));
  KILNI_RETURN_IF_ERROR(
      peer_read(device, other, KILN_CU_P2P_ATTRIBUTE_PERFORMANCE_RANK, &rank));
  out_info->access = is_true(access);
  out_info->atomics = is_true(atomics);
  out_info->some_atomics = is_true(some);
  out_info->arrays = is_true(arrays);
  out_info->rank = rank;
  return kiln_ok();
}

// ---- Giving and taking back ----

// In another context the driver would revoke other code's access: it then stays
// until the context ends.
static void disable(kiln_device_t* device, const kiln_device_t* other) {
  kilni_device_scope_t scope;
  if (!kilni_device_scope_begin_end(&scope, device,
                                    KILNI_WAY_cuCtxDisablePeerAccess)) {
    return;
  }
  bool is_here = scope.switched || scope.previous == device->context;
  kiln_cu_result_t result =
      is_here ? device->table->cuCtxDisablePeerAccess(other->context)
              : KILN_CU_ERROR_INVALID_CONTEXT;
  kilni_device_scope_leave_end(&scope, result, "cuCtxDisablePeerAccess");
}

// With a status other than OK nothing is enabled that was not before.
static kiln_status_t enable(kiln_device_t* device, kiln_device_t* other,
                            bool* out_ours) {
  *out_ours = false;
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_enter(
      &scope, device, KILNI_CUDA_ROW_cuCtxEnablePeerAccess));
  kiln_cu_result_t result =
      device->table->cuCtxEnablePeerAccess(other->context, 0);
  *out_ours = result == KILN_CU_SUCCESS;
  if (result == KILN_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
    result = KILN_CU_SUCCESS;
  }
  kiln_status_t status = kilni_device_scope_leave(
      &scope, KILNI_DEVICE_CHECK(device, result, "cuCtxEnablePeerAccess"));
  if (!kiln_status_is_ok(status) && *out_ours) {
    disable(device, other);
    *out_ours = false;
  }
  return status;
}

static kiln_status_t peer_begin(kiln_device_t* device, kiln_device_t* other,
                                kilni_device_peer_pair_t* pair) {
  kilni_device_peer_book_t* book = device->peers;
  if (peer_join(book, pair)) return kiln_ok();
  bool is_ours;
  kiln_status_t status = enable(device, other, &is_ours);
  asked(book, pair, kiln_status_is_ok(status) ? 1 : 0, is_ours);
  return status;
}

kiln_status_t kiln_peer_create(kiln_device_t* device, kiln_device_t* other,
                               kiln_peer_t** out_peer) {
  KILNI_CHECK_ARGUMENT(out_peer != NULL, "out_peer");
  *out_peer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(other != NULL, "other");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(peer_check_pair(device, other));
  kiln_device_t* whole = device->whole;
  KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(whole));
  KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(other));
  kilni_device_peer_pair_t* pair = NULL;
  KILNI_RETURN_IF_ERROR(
      need_pair(whole->peers, whole->context, other->whole->context, &pair));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(whole->host->allocator, sizeof(kiln_peer_t), &block));
  kiln_status_t status = peer_begin(whole, other->whole, pair);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(whole->host->allocator, block, sizeof(kiln_peer_t));
    return status;
  }
  kiln_peer_t* peer = block;
  peer->device = device;
  peer->other = other;
  peer->pair = pair;
  kiln_device_retain(device);
  kiln_device_retain(other);
  atomic_init(&peer->references, 1);
  *out_peer = peer;
  return kiln_ok();
}

void kiln_peer_retain(kiln_peer_t* peer) {
  if (peer == NULL) return;
  atomic_fetch_add_explicit(&peer->references, 1, memory_order_relaxed);
}

void kiln_peer_release(kiln_peer_t* peer) {
  if (peer == NULL || kilni_device_is_forked(peer->device)) return;
  if (atomic_fetch_sub_explicit(&peer->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = peer->device;
  kiln_device_t* other = peer->other;
  kiln_device_t* whole = device->whole;
  if (peer_leave(whole->peers, peer->pair)) {
    disable(whole, other->whole);
    asked(whole->peers, peer->pair, 0, false);
  }
  kilni_base_free(device->host->allocator, peer, sizeof(*peer));
  kiln_device_release(other);
  kiln_device_release(device);
}

kiln_device_t* kiln_peer_device(const kiln_peer_t* peer) {
  return peer->device;
}

kiln_device_t* kiln_peer_other(const kiln_peer_t* peer) {
  return peer->other;
}
