# SPDX-License-Identifier: Apache-2.0
#
# kiln_source_test(NAME test SOURCES name... COMMAND word...): a test that needs
# what CI cannot fetch, $KILN_SOURCES/name; {name} in its words is where it
# lies. Without it the test is a skip that says what is missing and where it
# comes from (tests/support/sources.txt).
function(kiln_source_test)
  cmake_parse_arguments(T "" "NAME" "SOURCES;COMMAND" ${ARGN})
  add_test(NAME ${T_NAME} COMMAND ${Python3_EXECUTABLE} -B
    ${PROJECT_SOURCE_DIR}/tests/support/kiln_sources.py ${T_SOURCES} --
    ${T_COMMAND})
  set_tests_properties(${T_NAME} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
