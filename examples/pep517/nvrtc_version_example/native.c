// SPDX-License-Identifier: Apache-2.0
//
// examples: what the Python module calls. 13000 for NVRTC 13.0, -1 if it fails.
#include <nvrtc.h>

int nvrtc_version_encoded(void);

int nvrtc_version_encoded(void) {
  int major = 0;
  int minor = 0;
  if (nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return -1;
  return major * 1000 + minor * 10;
}
