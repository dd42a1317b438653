// SPDX-License-Identifier: Apache-2.0
//
// locate: readers of what package managers write down.
//
// Private to the module. Pure: no files. conda's record of a package is a JSON
// file in conda-meta; dpkg's are a list of paths for each package and one
// status file for all. RPM's is a database of another program's and is not
// read. Each takes any bytes and gives views into them.
#ifndef KILN_SRC_LOCATE_LOCATE_PACKAGE_PARSE_H_
#define KILN_SRC_LOCATE_LOCATE_PACKAGE_PARSE_H_

#include "kiln/api.h"

// What conda's record states of a package. thread-compatible
typedef struct kilni_locate_conda_record_t {
  kiln_string_view_t name;
  kiln_string_view_t version;
  kiln_string_view_t toolkit;  // what it asks of `cuda-version`: ">=12.9,<13"
  size_t owned;  // the first of the paths that is among its files; or SIZE_MAX
} kilni_locate_conda_record_t;

// False for a text that is not such a record: not an object, or without a name
// and a version. `paths` are relative to the prefix.
bool kilni_locate_conda_read(kiln_string_view_t text,
                             const kiln_string_view_t* paths, size_t path_count,
                             kilni_locate_conda_record_t* out_record);

// True if one of the lines of a list is the path.
bool kilni_locate_dpkg_list_has(kiln_string_view_t list,
                                kiln_string_view_t path);

// What dpkg's status states of a package. thread-compatible
typedef struct kilni_locate_dpkg_package_t {
  kiln_string_view_t version;
  kiln_string_view_t source;          // the name, where none is written
  kiln_string_view_t source_version;  // the version, where none is written
} kilni_locate_dpkg_package_t;

// The paragraph of that package, of that architecture where one is given ("" is
// any), which dpkg has unpacked; false where there is none.
bool kilni_locate_dpkg_status_find(kiln_string_view_t status,
                                   kiln_string_view_t name,
                                   kiln_string_view_t architecture,
                                   kilni_locate_dpkg_package_t* out_package);

#endif  // KILN_SRC_LOCATE_LOCATE_PACKAGE_PARSE_H_
