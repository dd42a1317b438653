// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as conda's record of a package and as dpkg's list and status.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "locate/locate_package_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static bool inside(kiln_string_view_t part, const uint8_t* data, size_t size) {
  const char* begin = (const char*)data;
  return part.size == 0 ||
         (part.data >= begin && part.data + part.size <= begin + size);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_string_view_t text = kilni_base_sv_make((const char*)data, size);
  kiln_string_view_t paths[2] = {kilni_base_sv("lib/libnvrtc.so.12"),
                                 kilni_base_sv("/usr/lib/x")};
  kilni_locate_conda_record_t record;
  if (kilni_locate_conda_read(text, paths, 2, &record)) {
    require(record.name.size > 0 && record.version.size > 0);
    require(inside(record.name, data, size) &&
            inside(record.version, data, size) &&
            inside(record.toolkit, data, size));
    require(record.owned == SIZE_MAX || record.owned < 2);
  }
  if (kilni_locate_dpkg_list_has(text, paths[1])) {
    require(size >= paths[1].size);
  }
  static const char* const names[] = {"libcudart12", ""};
  for (size_t i = 0; i < 2; i++) {
    kilni_locate_dpkg_package_t package;
    if (!kilni_locate_dpkg_status_find(text, kilni_base_sv(names[i]),
                                       kilni_base_sv("amd64"), &package)) {
      continue;
    }
    require(package.version.size > 0 && inside(package.version, data, size) &&
            inside(package.source, data, size) &&
            inside(package.source_version, data, size));
  }
  return 0;
}
