// SPDX-License-Identifier: Apache-2.0
//
// tests: a profiler that writes down what it is told through NVTX: given by
// injection, or with FAKE_PLAIN as the toolkit's library with its functions.
#include <stdio.h>
#include <string.h>

#include "table/nvtx_abi.h"
#include "table/nvtx_table.h"

enum { BYTES = 4096, DOMAINS = 8 };

static char words[BYTES];
static size_t used;
static int domains;  // the n-th is words + n
static _Thread_local int levels[DOMAINS];

#define SHOWN __attribute__((visibility("default")))
SHOWN const char* fake_nvtx_words(void);
SHOWN int nvtxDomainRangePushEx(kiln_nvtx_domain_t domain,
                                const kiln_nvtx_attributes_t* attributes);
SHOWN int nvtxDomainRangePop(kiln_nvtx_domain_t domain);
SHOWN kiln_nvtx_domain_t nvtxDomainCreateA(const char* name);
#if !defined(FAKE_PLAIN)
SHOWN int InitializeInjectionNvtx2(kiln_nvtx_give_table_t give);
#endif

const char* fake_nvtx_words(void) {
  return words;
}

static void note(const char* what, const char* name) {
  int n = snprintf(words + used, BYTES - used, "%s%s ", what, name);
  if (n > 0 && used + (size_t)n < BYTES) used += (size_t)n;
}

// Which of ours it is; -1: none.
static int find(kiln_nvtx_domain_t domain) {
  for (int i = 0; i < domains; i++) {
    const void* mine = words + i;
    if (memcmp(&domain, &mine, sizeof(mine)) == 0) return i;
  }
  return -1;
}

int nvtxDomainRangePushEx(kiln_nvtx_domain_t domain,
                          const kiln_nvtx_attributes_t* attributes) {
  const int at = find(domain);
  if (at < 0) note("foreign:", "domain");
  if (attributes->version != KILN_NVTX_VERSION ||
      attributes->size != sizeof(*attributes) ||
      attributes->message_type != KILN_NVTX_MESSAGE_ASCII) {
    note("wrong:", "attributes");
  }
  note(attributes->category == 2 ? "make:" : "push:", attributes->message);
  return at < 0 ? -1 : levels[at]++;
}

int nvtxDomainRangePop(kiln_nvtx_domain_t domain) {
  const int at = find(domain);
  note("pop", "");
  return at < 0 || levels[at] == 0 ? -1 : --levels[at];
}

kiln_nvtx_domain_t nvtxDomainCreateA(const char* name) {
  kiln_nvtx_domain_t domain = NULL;
  if (domains == DOMAINS) return NULL;
  const void* mine = words + domains++;
  note("domain:", name);
  memcpy(&domain, &mine, sizeof(domain));
  return domain;
}

#if !defined(FAKE_PLAIN)
int InitializeInjectionNvtx2(kiln_nvtx_give_table_t give) {
  const kiln_nvtx_callbacks_t* callbacks = give(KILN_NVTX_TABLE_CALLBACKS);
  const kiln_nvtx_version_t* version = give(KILN_NVTX_TABLE_VERSION);
  kiln_nvtx_entries_t entries = NULL;
  unsigned int count = 0;
  if (callbacks == NULL || version == NULL || give(77) != NULL ||
      callbacks->size != sizeof(*callbacks) || version->version < 3) {
    return 0;
  }
  version->tell(2);
  // A module that Kiln has nothing for.
  if (callbacks->entries_of(1, &entries, &count) != 0) return 0;
  if (callbacks->entries_of(KILN_NVTX_MODULE_CORE2, &entries, &count) == 0 ||
      count != KILN_NVTX_CORE2_ENTRIES) {
    return 0;
  }
  *entries[4] = (kiln_nvtx_entry_t)nvtxDomainRangePushEx;
  *entries[5] = (kiln_nvtx_entry_t)nvtxDomainRangePop;
  *entries[12] = (kiln_nvtx_entry_t)nvtxDomainCreateA;
  return 1;
}
#endif
