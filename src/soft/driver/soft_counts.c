// SPDX-License-Identifier: Apache-2.0
//
// soft: the public calls to what kernels did: counting on, and the counts.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "kiln/soft.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_global.h"

// The running driver, with both locks held; NULL, and none held, without one.
static kilni_soft_driver_t* counts_enter(void) {
  if (kilni_soft_global_is_forked()) return NULL;
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  if (driver == NULL) {
    kilni_soft_global_unlock();
    return NULL;
  }
  kilni_base_mutex_lock(&driver->lock);
  return driver;
}

static void counts_leave(kilni_soft_driver_t* driver) {
  kilni_base_mutex_unlock(&driver->lock);
  kilni_soft_global_unlock();
}

static kiln_status_t not_open(void) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "no software device is open in this process"),
      "open one first: kiln_runtime_open_device with \"soft\"");
}

kiln_status_t kiln_soft_profile_start(void) {
  kilni_soft_driver_t* driver = counts_enter();
  if (driver == NULL) return not_open();
  kiln_status_t status = kiln_ok();
  if (driver->profile != NULL) {
    memset(driver->profile, 0, sizeof(*driver->profile));
  } else {
    void* memory;
    status = kilni_base_alloc(driver->host.allocator,
                              sizeof(kilni_soft_profile_t), &memory);
    driver->profile = memory;
  }
  counts_leave(driver);
  return status;
}

kiln_status_t kiln_soft_profile_read(kiln_soft_profile_t* out_profile) {
  KILNI_CHECK_ARGUMENT(out_profile != NULL, "out_profile");
  kiln_soft_profile_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      out_profile, "kiln_soft_profile_t", sizeof(given), &given));
  uint32_t size = out_profile->struct_size;
  if (size > sizeof(given)) size = (uint32_t)sizeof(given);
  memset(&given, 0, sizeof(given));
  kilni_soft_driver_t* driver = counts_enter();
  if (driver == NULL) return not_open();
  bool counted = driver->profile != NULL;
  if (counted) kilni_soft_profile_sum(driver->profile, &given);
  counts_leave(driver);
  if (!counted) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "nothing has been counted"),
        "call kiln_soft_profile_start before the launch");
  }
  given.struct_size = out_profile->struct_size;
  memcpy(out_profile, &given, size);
  return kiln_ok();
}
