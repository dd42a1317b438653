// SPDX-License-Identifier: Apache-2.0
//
// tests: prints the facts about files, a line of JSON for each.
//
//   facts_print DEPTH KIND NAME PATH
//
// NAME "-" is no name. For facts_beside.py, which compares.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/locate_catalog.h"
#include "locate/locate_facts.h"

static void text(const char* name, const char* value) {
  printf(", \"%s\": ", name);
  if (value == NULL) {
    printf("null");
    return;
  }
  putchar('"');
  for (const char* at = value; *at != 0; at++) {
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') {
      printf("\\u%04x", (unsigned)(unsigned char)*at);
    } else {
      putchar(*at);
    }
  }
  putchar('"');
}

static void line(const char* name, const kilni_locate_line_t* value) {
  printf(", \"%s\": %u", name, (unsigned)value->line);
}

static void print(const kilni_locate_facts_t* facts) {
  printf("{\"bits\": %u, \"machine\": %u", (unsigned)facts->bits,
         (unsigned)facts->machine);
  text("soname", facts->soname);
  text("rpath", facts->rpath);
  text("runpath", facts->runpath);
  text("build_id", facts->build_id);
  printf(", \"needed\": [");
  for (uint32_t i = 0; i < facts->needed_count; i++) {
    printf("%s\"%s\"", i ? ", " : "", facts->needed[i]);
  }
  putchar(']');
  text("name_version", facts->name_version);
  text("release_version", facts->release_version);
  line("symbol", &facts->symbol);
  line("needs", &facts->needs);
  line("sibling", &facts->sibling);
  line("release", &facts->release);
  line("built", &facts->built);
  line("header", &facts->header);
  printf(", \"walked\": %s", facts->walked ? "true" : "false");
  printf(", \"same_owner\": %s", facts->header_same_owner ? "true" : "false");
  text("header_owner", facts->header_owner);
  text("owner", facts->owner ? facts->owner->name : NULL);
  text("owner_version", facts->owner ? facts->owner->version : NULL);
  text("sha256", facts->owner ? facts->owner->sha256 : NULL);
  printf(", \"pins\": [");
  for (uint32_t i = 0; i < facts->pin_count; i++) {
    printf("%s\"%s %s\"", i ? ", " : "", facts->pins[i].toolkit_version,
           facts->pins[i].specifier);
  }
  printf("], \"problems\": %u}\n", (unsigned)facts->problem_count);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  kilni_locate_reader_t* reader;
  kiln_status_t status =
      kilni_locate_reader_create(kiln_allocator_libc(), NULL, &reader);
  kiln_string_view_t kind = {argv[2], strlen(argv[2])};
  kilni_locate_facts_query_t query = {
      .path = argv[4],
      .name = strcmp(argv[3], "-") != 0 ? argv[3] : NULL,
      .kind = kiln_locate_kind_parse(kind)};
  const kilni_locate_facts_t* facts = NULL;
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_facts_read(reader, &query, (uint32_t)atoi(argv[1]),
                                     &facts);
  }
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "%s\n", kiln_status_message(status));
    kiln_status_free(status);
    return 1;
  }
  print(facts);
  kilni_locate_reader_release(reader);
  return 0;
}
