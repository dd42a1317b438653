// SPDX-License-Identifier: Apache-2.0
//
// compat: words for numbers, and the reverse.
//
// Lines, kinds, rules, verdicts, uses, artifacts and what the caller writes to
// describe a driver.
#include <string.h>

#include "base/status_make.h"
#include "kiln/compat.h"

// ---- Lines ----

// A decimal number of at most `limit` at the start of `*inout`, which moves
// past it. False where there is no digit or the number is larger.
static bool words_take_number(const char** inout, uint32_t limit,
                              uint32_t* out_value) {
  const char* at = *inout;
  uint32_t value = 0;
  if (*at < '0' || *at > '9') return false;
  for (; *at >= '0' && *at <= '9'; at++) {
    value = value * 10 + (uint32_t)(*at - '0');
    if (value > limit) return false;
  }
  *inout = at;
  *out_value = value;
  return true;
}

bool kiln_compat_line_parse(const char* text, uint32_t* out_line) {
  *out_line = 0;
  if (text == NULL) return false;
  uint32_t numbers[2] = {0, 0};
  for (int i = 0;; i++) {
    uint32_t value;
    uint32_t limit = i == 0 ? 999 : i == 1 ? 99 : 100000000;
    if (!words_take_number(&text, limit, &value)) return false;
    if (i < 2) numbers[i] = value;
    if (*text == '\0') break;
    if (*text != '.') return false;
    text++;
  }
  *out_line = kiln_compat_line_make(numbers[0], numbers[1]);
  return *out_line != 0;
}

bool kiln_compat_line_decode(const char* text, uint32_t* out_line) {
  *out_line = 0;
  uint32_t value;
  if (text == NULL || !words_take_number(&text, 999999, &value) ||
      *text != '\0') {
    return false;
  }
  *out_line = value - value % 10;
  return *out_line != 0;
}

uint32_t kiln_compat_line_ptx_isa(uint32_t line) {
  // What each release's compilers write; from 12.8 on, where it was measured,
  // the ISA of 12.x is one minor below the release's, that of 13.x equals the
  // release's.
  static const struct {
    uint32_t line;
    uint32_t isa;
  } table[] = {
      {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74},
      {11050, 75}, {11060, 76}, {11070, 77}, {11080, 78}, {12000, 80},
      {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
      {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90},
      {13010, 91}, {13020, 92}, {13030, 93}, {13040, 94}, {13050, 95},
  };
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
    if (table[i].line == line) return table[i].isa;
  }
  return 0;
}

uint32_t kiln_compat_line_nvvm_ir(uint32_t line) {
  // What nvvmIRVersion of each release's libNVVM returned: 1.9 in 11.8, 2.0
  // from 12.0 to 13.5.
  if (line == 11080) return 1009;
  return line >= 12000 && line <= 13050 ? 2000 : 0;
}

// ---- Words ----

const char* kiln_compat_source_word(uint32_t source) {
  switch (source) {
#define WORD(value, name, word, confidence, text) \
  case value:                                     \
    return word;
    KILN_COMPAT_SOURCES(WORD)
#undef WORD
    default:
      return "?";
  }
}

uint32_t kiln_compat_source_confidence(uint32_t source) {
  switch (source) {
#define CONFIDENCE(value, name, word, confidence, text) \
  case value:                                           \
    return confidence;
    KILN_COMPAT_SOURCES(CONFIDENCE)
#undef CONFIDENCE
    default:
      return 0;
  }
}

#define WORD_OF_3(value, name, word) \
  case value:                        \
    return word;
#define WORD_OF_4(value, name, word, text) \
  case value:                              \
    return word;

const char* kiln_compat_mode_word(uint32_t mode) {
  switch (mode) {
    KILN_COMPAT_MODES(WORD_OF_4)
    default:
      return "?";
  }
}

const char* kiln_compat_verdict_word(uint32_t verdict) {
  switch (verdict) {
    KILN_COMPAT_VERDICTS(WORD_OF_3)
    default:
      return "?";
  }
}

const char* kiln_compat_use_word(uint32_t use) {
  switch (use) {
    KILN_COMPAT_USES(WORD_OF_3)
    default:
      return "?";
  }
}

const char* kiln_compat_rule_word(uint32_t rule) {
  switch (rule) {
    KILN_COMPAT_RULES(WORD_OF_4)
    default:
      return "?";
  }
}

const char* kiln_compat_kind_word(uint32_t kind) {
  static const char* const words[] = {"?",       "lib",    "header", "static",
                                      "bitcode", "binary", "stub"};
  return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : "?";
}

static const char* const kArtifactWords[] = {"?",   "ltoir", "ptx",
                                             "elf", "cubin", "nvvm"};

enum {
  ARTIFACT_COUNT = sizeof(kArtifactWords) / sizeof(kArtifactWords[0]),
};

const char* kiln_compat_artifact_word(uint32_t artifact) {
  return kArtifactWords[artifact < ARTIFACT_COUNT ? artifact : 0];
}

kiln_status_t kiln_compat_artifact_parse(const char* word,
                                         uint32_t* out_artifact) {
  *out_artifact = 0;
  KILNI_CHECK_ARGUMENT(word != NULL, "word");
  for (uint32_t i = 1; i < ARTIFACT_COUNT; i++) {
    if (strcmp(word, kArtifactWords[i]) == 0) {
      *out_artifact = i;
      return kiln_ok();
    }
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is not a kind of artifact", word),
      "write ltoir, ptx, elf, cubin or nvvm");
}

// ---- The driver ----

uint32_t kiln_compat_driver_branch(const char* release) {
  uint32_t branch = 0;
  if (release == NULL || !words_take_number(&release, 99999, &branch)) return 0;
  for (int i = 0; *release != '\0'; i++) {
    uint32_t part;
    if (i == 2 || *release++ != '.' ||
        !words_take_number(&release, 99999, &part)) {
      return 0;
    }
  }
  return branch;
}

// "13.0" or "13.0,580.65.06"; the release goes to a buffer of its own since the
// text goes on after it.
static bool words_read_driver(const char* text, kiln_compat_driver_t* driver) {
  char line[16];
  const char* comma = strchr(text, ',');
  size_t size = comma != NULL ? (size_t)(comma - text) : strlen(text);
  if (size >= sizeof(line)) return false;
  memcpy(line, text, size);
  line[size] = '\0';
  if (strchr(line, '.') == NULL) return false;
  if (!kiln_compat_line_parse(line, &driver->line)) return false;
  driver->state = KILN_COMPAT_DRIVER_KNOWN;
  if (comma == NULL) return true;
  driver->release = comma + 1;
  driver->branch = kiln_compat_driver_branch(comma + 1);
  return driver->branch != 0;
}

kiln_status_t kiln_compat_driver_parse(const char* text,
                                       kiln_compat_driver_t* out_driver) {
  *out_driver = kiln_compat_driver_default();
  KILNI_CHECK_ARGUMENT(text != NULL, "text");
  kiln_compat_driver_t driver = *out_driver;
  if (strcmp(text, "none") == 0) {
    driver.state = KILN_COMPAT_DRIVER_NONE;
  } else if (strcmp(text, "unknown") != 0 &&
             !words_read_driver(text, &driver)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" describes no driver", text),
        "write the driver's CUDA version, with its release after a comma if it "
        "is known (\"13.0\", \"13.0,580.65.06\"), or \"none\"");
  }
  *out_driver = driver;
  return kiln_ok();
}
