// SPDX-License-Identifier: Apache-2.0
//
// toolkit: what is known of the driver.
//
// Its CUDA version comes from its library, without starting it. The release of
// the display driver, which decides minor-version compatibility, is the kernel
// module's: from /proc, else from NVML, else from the file name of the library
// (which under forward compatibility is newer than the module).
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "kiln/compat.h"
#include "kiln/toolkit.h"
#include "table/cuda_table.h"
#include "table/nvml_table.h"
#include "toolkit/toolkit_inside.h"

void kilni_toolkit_driver_deinit(kiln_allocator_t allocator,
                                 kilni_toolkit_driver_t* driver) {
  kilni_base_strfree(allocator, driver->evidence);
  memset(driver, 0, sizeof(*driver));
}

static void set_release(kilni_toolkit_driver_t* driver, const char* release) {
  if (release == NULL || strlen(release) >= sizeof(driver->release)) return;
  snprintf(driver->release, sizeof(driver->release), "%s", release);
  driver->said.release = driver->release;
  driver->said.branch = kiln_compat_driver_branch(driver->release);
}

kiln_status_t kilni_toolkit_driver_copy(kiln_allocator_t allocator,
                                        const kiln_compat_driver_t* from,
                                        kilni_toolkit_driver_t* to) {
  uint32_t branch = from->branch;
  to->asked = true;
  to->said = kiln_compat_driver_default();
  to->said.state = from->state;
  to->said.line = from->line;
  set_release(to, from->release);
  if (branch != 0) to->said.branch = branch;
  if (from->evidence == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      allocator, kilni_base_sv(from->evidence), &to->evidence));
  to->said.evidence = to->evidence;
  return kiln_ok();
}

// ---- Asking ----

static kiln_status_t driver_take_release(kiln_toolkit_t* toolkit,
                                         const char* libcuda,
                                         kilni_toolkit_driver_t* driver) {
  if (toolkit->reader == NULL) {
    KILNI_RETURN_IF_ERROR(kilni_locate_reader_create(
        toolkit->host.allocator, toolkit->system_root, &toolkit->reader));
  }
  const kilni_locate_driver_t* facts = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_driver_read(toolkit->reader, libcuda, &facts));
  if (facts->module_release != NULL) {
    set_release(driver, facts->module_release);
    return kiln_ok();
  }
  char asked[KILNI_TOOLKIT_RELEASE_BYTES];
  KILNI_RETURN_IF_ERROR(
      kilni_table_nvml_release_ask(&toolkit->host, NULL, sizeof(asked), asked));
  set_release(driver, asked[0] != 0 ? asked : facts->library_release);
  return kiln_ok();
}

static kiln_status_t take_evidence(kiln_toolkit_t* toolkit, const char* text,
                                   kilni_toolkit_driver_t* driver) {
  KILNI_RETURN_IF_ERROR(kilni_base_strdup(
      toolkit->host.allocator, kilni_base_sv(text), &driver->evidence));
  driver->said.evidence = driver->evidence;
  return kiln_ok();
}

// A driver that is not there is an answer; one that fails is none.
static kiln_status_t not_asked(kiln_toolkit_t* toolkit, kiln_status_t status,
                               kilni_toolkit_driver_t* driver) {
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OUT_OF_MEMORY) return status;
  driver->said.state = code == KILN_STATUS_NOT_FOUND
                           ? KILN_COMPAT_DRIVER_NONE
                           : KILN_COMPAT_DRIVER_UNKNOWN;
  kiln_status_t told =
      take_evidence(toolkit, kiln_status_message(status), driver);
  kiln_status_free(status);
  return told;
}

static kiln_status_t driver_ask(kiln_toolkit_t* toolkit,
                                kilni_toolkit_driver_t* driver) {
  driver->said = kiln_compat_driver_default();
  int version = 0;
  kilni_base_dynlib_t* library = NULL;
  kiln_status_t status = kilni_table_cuda_version_ask(
      &toolkit->host, toolkit->cuda_library, &version, &library);
  if (!kiln_status_is_ok(status)) return not_asked(toolkit, status, driver);
  // A toolkit's stand-in for the driver returns 0.
  if (version > 0) {
    driver->said.state = KILN_COMPAT_DRIVER_KNOWN;
    driver->said.line = (uint32_t)version / 10 * 10;
  }
  status = take_evidence(toolkit, kilni_base_dynlib_path(library), driver);
  if (kiln_status_is_ok(status)) {
    status =
        driver_take_release(toolkit, kilni_base_dynlib_path(library), driver);
  }
  kilni_base_dynlib_close(library);
  return status;
}

kiln_status_t kilni_toolkit_driver_ask(kiln_toolkit_t* toolkit) {
  if (toolkit->driver_given || toolkit->driver.asked) return kiln_ok();
  kiln_status_t status = driver_ask(toolkit, &toolkit->driver);
  if (!kiln_status_is_ok(status)) {
    kilni_toolkit_driver_deinit(toolkit->host.allocator, &toolkit->driver);
    return status;
  }
  toolkit->driver.asked = true;
  return kiln_ok();
}

kiln_status_t kiln_toolkit_driver(kiln_toolkit_t* toolkit,
                                  kiln_compat_driver_t* out_driver) {
  KILNI_CHECK_ARGUMENT(out_driver != NULL, "out_driver");
  *out_driver = kiln_compat_driver_default();
  KILNI_CHECK_ARGUMENT(toolkit != NULL, "toolkit");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&toolkit->host));
  kilni_base_mutex_lock(&toolkit->lock);
  kiln_status_t status = kilni_toolkit_driver_ask(toolkit);
  if (kiln_status_is_ok(status)) {
    *out_driver =
        toolkit->driver_given ? toolkit->given.said : toolkit->driver.said;
  }
  kilni_base_mutex_unlock(&toolkit->lock);
  return status;
}
