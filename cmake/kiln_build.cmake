# SPDX-License-Identifier: Apache-2.0
#
# How a module, a test and a benchmark are built.

add_library(kiln_flags INTERFACE)
target_compile_options(kiln_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wundef -Wvla -Wwrite-strings -Wpointer-arith -Wcast-qual
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  -ffp-contract=off -fno-math-errno -fno-strict-aliasing)
if(KILN_WERROR)
  target_compile_options(kiln_flags INTERFACE -Werror)
endif()
# Asserts are tested in builds for debugging only. Not by NDEBUG: a distribution
# that builds with flags of its own may leave that out.
target_compile_definitions(kiln_flags INTERFACE
  $<$<CONFIG:Debug>:KILNI_DEBUG=1>)
target_include_directories(kiln_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
if(KILN_FUZZ)
  target_compile_options(kiln_flags INTERFACE -fsanitize=fuzzer-no-link)
  # For code where watching every comparison takes most of the time and tells
  # nothing: words of PTX are in a dictionary, lanes are not the fuzzer's.
  set(KILN_FUZZ_FAST -fno-sanitize-coverage=trace-cmp)
endif()
if(KILN_SANITIZE)
  target_compile_options(kiln_flags INTERFACE
    -fsanitize=${KILN_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1 -g1)
  target_link_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE})
  add_compile_definitions(KILNI_SANITIZED=1)
endif()

# kiln_module(NAME SOURCES...): one module of src/ as an object library, and its
# objects a part of libkiln.
function(kiln_module name)
  add_library(kiln_module_${name} OBJECT ${ARGN})
  target_link_libraries(kiln_module_${name} PRIVATE kiln_flags)
  target_include_directories(kiln_module_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(kiln_module_${name}
    PRIVATE KILN_BUILD_SHARED=1 KILNI_MODULE="${name}")
  set_property(GLOBAL APPEND PROPERTY KILN_MODULE_OBJECTS
    $<TARGET_OBJECTS:kiln_module_${name}>)
endfunction()

# A test is compiled far more often than it is run: what it calls is optimised,
# and not the test itself.
add_library(kiln_test_flags INTERFACE)
target_link_libraries(kiln_test_flags INTERFACE kiln_flags)
target_compile_options(kiln_test_flags INTERFACE $<$<CONFIG:Release>:-O0>)

# What stands in for a library of NVIDIA's: hundreds of functions that do next
# to nothing.
add_library(kiln_fake_flags INTERFACE)
target_link_libraries(kiln_fake_flags INTERFACE kiln_flags)
target_compile_options(kiln_fake_flags INTERFACE $<$<CONFIG:Release>:-O0>)

# kiln_kit(NAME SOURCES...): what several tests share, compiled once. A test
# lists it in its LIBS and finds the headers beside the sources.
function(kiln_kit name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE kiln_test_flags)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/tests/support INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    KILN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KILNI_MODULE="test")
endfunction()

# kiln_test(NAME LABELS ... SOURCES ... [LIBS ...]): a cmocka program that sees
# the inside of the library.
function(kiln_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  set(wraps $<BOOL:$<TARGET_PROPERTY:${name},KILN_WRAPS>>)
  target_link_libraries(${name} PRIVATE kiln_test_flags ${T_LIBS}
    $<IF:${wraps},kiln_test_support,kiln_test_shared>
    $<IF:${wraps},kiln_static,kiln_inside> cmocka)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE
    KILN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KILNI_MODULE="test")
  add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  math(EXPR T_TIMEOUT "${T_TIMEOUT} * ${KILN_TEST_PATIENCE}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT}
    SKIP_RETURN_CODE 77 LABELS "${T_LABELS}")
  # What NVIDIA's libraries keep for themselves is not ours to free; that ours
  # are all ended is what the fault suites count.
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/driver.supp)
endfunction()

# kiln_wrap(NAME CALLS...): a test puts its own functions in place of these, also
# for what the library calls; so it has all of the library in it.
function(kiln_wrap name)
  list(TRANSFORM ARGN PREPEND -Wl,--wrap=)
  target_link_options(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES KILN_WRAPS ON)
endfunction()

# kiln_fuzz(NAME LABELS module SOURCES file... CORPUS folder [LIBS ...]): a fuzz
# target. Its test replays the corpus.
function(kiln_fuzz name)
  cmake_parse_arguments(T "" "CORPUS" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE kiln_test_flags ${T_LIBS}
    kiln_test_shared kiln_inside)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE KILNI_MODULE="test")
  if(KILN_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${T_CORPUS})
  else()
    target_link_libraries(${name} PRIVATE fuzz_replay)
    add_test(NAME ${name} COMMAND ${name} ${T_CORPUS})
  endif()
  math(EXPR timeout "120 * ${KILN_TEST_PATIENCE}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout}
    LABELS "fuzz;${T_LABELS}")
endfunction()
