# SPDX-License-Identifier: Apache-2.0
#
# kiln_find_cuda(COMPONENTS NAME...
#   [REQUIRED] [QUIET] [STATIC] [HERMETIC]
#   [ROOT DIR...] [SITE DIR...] [PYTHON EXE...] [SCOPE SCOPE...]
#   [CTK_VERSION SPEC] [MODE MODE] [TARGET TARGET] [SYSROOT DIR])
#
# Finds pieces of a CUDA toolkit through `kiln config --cmake`, makes a target
# kiln::cuda_NAME for each component and sets KILN_CUDA_FOUND,
# KILN_CUDA_VERSION and the other variables that docs/cli/config.md lists. The
# command is KILN_EXECUTABLE: the one installed beside this file, else one on
# the path.
#
# What the list KILN_CONFIG_OPTIONS holds goes to the command as well, so that
# who builds can say where to look: -DKILN_CONFIG_OPTIONS=--root=/opt/cuda
#
# A macro, so that the variables are the caller's.

function(kiln_find_cuda_script out_file out_error)
  cmake_parse_arguments(PARSE_ARGV 2 A "REQUIRED;QUIET;STATIC;HERMETIC"
    "CTK_VERSION;MODE;TARGET;SYSROOT" "COMPONENTS;ROOT;SITE;PYTHON;SCOPE")
  if(A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "kiln_find_cuda: what is \"${A_UNPARSED_ARGUMENTS}\"?")
  endif()
  if(NOT A_COMPONENTS)
    message(FATAL_ERROR "kiln_find_cuda: there are no COMPONENTS")
  endif()
  set(arguments "")
  foreach(switch STATIC HERMETIC)
    if(A_${switch})
      string(TOLOWER "--${switch}" option)
      list(APPEND arguments "${option}")
    endif()
  endforeach()
  foreach(list ROOT SITE PYTHON SCOPE CTK_VERSION MODE TARGET SYSROOT)
    string(TOLOWER "${list}" option)
    string(REPLACE "_" "-" option "${option}")
    foreach(value IN LISTS A_${list})
      string(REPLACE ";" "\\;" value "${value}")
      list(APPEND arguments "--${option}=${value}")
    endforeach()
  endforeach()
  if(NOT EXISTS "${KILN_EXECUTABLE}")
    set(${out_error} "the command kiln was not found; set KILN_EXECUTABLE"
      PARENT_SCOPE)
    return()
  endif()
  execute_process(
    COMMAND "${KILN_EXECUTABLE}" config --cmake ${KILN_CONFIG_OPTIONS}
      ${arguments} ${A_COMPONENTS}
    RESULT_VARIABLE result OUTPUT_VARIABLE script ERROR_VARIABLE error)
  string(STRIP "${error}" error)
  if(NOT result EQUAL 0)
    set(${out_error} "${error}" PARENT_SCOPE)
    return()
  endif()
  if(error AND NOT A_QUIET)
    message(WARNING "${error}")
  endif()
  string(SHA256 name "${KILN_CONFIG_OPTIONS} ${arguments} ${A_COMPONENTS}")
  string(SUBSTRING "${name}" 0 12 name)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/kiln_cuda_${name}.cmake")
  file(WRITE "${file}" "${script}")
  set(${out_file} "${file}" PARENT_SCOPE)
  set(${out_error} "" PARENT_SCOPE)
endfunction()

macro(kiln_find_cuda)
  set(kiln_find_cuda_file "")
  kiln_find_cuda_script(kiln_find_cuda_file kiln_find_cuda_error ${ARGN})
  set(KILN_CUDA_FOUND FALSE)
  if(kiln_find_cuda_file)
    include("${kiln_find_cuda_file}")
    set(KILN_CUDA_FOUND TRUE)
  elseif("${ARGN}" MATCHES "(^|;)REQUIRED(;|$)")
    message(FATAL_ERROR "kiln_find_cuda: ${kiln_find_cuda_error}")
  elseif(NOT "${ARGN}" MATCHES "(^|;)QUIET(;|$)")
    message(STATUS "kiln_find_cuda: ${kiln_find_cuda_error}")
  endif()
  unset(kiln_find_cuda_file)
  unset(kiln_find_cuda_error)
endmacro()
