// SPDX-License-Identifier: Apache-2.0
//
// device: the Fix in a driver's log.
//
// The software device ends its text with a line "Fix: ...", which becomes the
// Fix of the status. NVIDIA's drivers have none.
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_inside.h"

enum { FIX_BYTES = 512 };

static const char kFix[] = "Fix: ";

bool kilni_device_driver_log_is_fix(kiln_string_view_t line) {
  return kilni_base_sv_starts_with(line, kFix);
}

kiln_status_t kilni_device_driver_log_fix(kiln_status_t status,
                                          const char* log) {
  kiln_string_view_t rest = kilni_base_sv(log);
  kiln_string_view_t line;
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    if (!kilni_device_driver_log_is_fix(line)) continue;
    line = kilni_base_sv_make(line.data + sizeof(kFix) - 1,
                              line.size - (sizeof(kFix) - 1));
    if (line.size > FIX_BYTES) line.size = FIX_BYTES;
    return kilni_base_status_with_fix(status, "%.*s", KILNI_SV(line));
  }
  return status;
}
