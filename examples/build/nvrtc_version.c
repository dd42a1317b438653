// SPDX-License-Identifier: Apache-2.0
//
// examples: prints the version of the NVRTC that it is linked with; no GPU.
#include <nvrtc.h>
#include <stdio.h>

int main(void) {
  int major = 0;
  int minor = 0;
  if (nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return 1;
  printf("NVRTC %d.%d\n", major, minor);
  return 0;
}
