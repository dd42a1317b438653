// SPDX-License-Identifier: Apache-2.0
//
// cli: components that were found, as JSON and as lines.
#ifndef KILN_SRC_CLI_CLI_PIECE_REPORT_H_
#define KILN_SRC_CLI_CLI_PIECE_REPORT_H_

#include <jansson.h>

#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"

// A string that may contain invalid UTF-8; null for NULL and "".
json_t* kilni_cli_text_json(const char* text);

// {"kind","name","found","path","scope","version","evidence","tried"...}
json_t* kilni_cli_item_json(const kiln_toolkit_item_t* item);

// [{"path","why"}...], each line once.
json_t* kilni_cli_tried_json(const kiln_locate_tried_t* tried, uint32_t count);

// {"rule","use","verdict","counts","items","message","fix"}
json_t* kilni_cli_finding_json(const kiln_compat_finding_t* finding);

// Columns as wide as the widest entry. thread-compatible
typedef struct kilni_cli_columns_t {
  int name;
  int version;
  int path;
} kilni_cli_columns_t;

void kilni_cli_columns_fit(kilni_cli_columns_t* columns,
                           const kiln_toolkit_item_t* item);
void kilni_cli_item_print(FILE* out, const kilni_cli_columns_t* columns,
                          const kiln_toolkit_item_t* item);
// Evidence and every place that was searched, indented.
void kilni_cli_trail_print(FILE* out, const kiln_toolkit_item_t* item);

#endif  // KILN_SRC_CLI_CLI_PIECE_REPORT_H_
