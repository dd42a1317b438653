# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` lays down: headers, both libraries, kiln.pc, a CMake
# package, the command and its manual pages, the documents and examples.
set(kiln_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

install(DIRECTORY include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(TARGETS kiln_shared kiln_static EXPORT kiln_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Messages and the README name pages as `docs/...`: below this folder, too.
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN man EXCLUDE)
install(DIRECTORY lib/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kiln/lib
  FILES_MATCHING PATTERN "*.kiln" PATTERN "defaults.txt")

# The command has the library inside: it needs none beside it and may be moved.
if(TARGET kiln_cli)
  install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    FILES_MATCHING PATTERN "*.1")
  # Completion is made by the command itself, where it can run here.
  if(NOT CMAKE_CROSSCOMPILING)
    set(made ${PROJECT_BINARY_DIR}/completion)
    file(MAKE_DIRECTORY ${made})
    install(CODE "
      foreach(shell bash zsh fish)
        execute_process(COMMAND \"$<TARGET_FILE:kiln_cli>\" completion \${shell}
          OUTPUT_FILE \"${made}/\${shell}\" RESULT_VARIABLE code)
        if(code)
          message(FATAL_ERROR \"kiln completion \${shell}: \${code}\")
        endif()
      endforeach()")
    install(FILES ${made}/bash RENAME kiln
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${made}/zsh RENAME _kiln
      DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${made}/fish RENAME kiln.fish
      DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()

# find_package(kiln) has the names that a subproject has (src/CMakeLists.txt).
set_target_properties(kiln_shared PROPERTIES EXPORT_NAME kiln)
set_target_properties(kiln_static PROPERTIES EXPORT_NAME kiln_static)
install(EXPORT kiln_targets NAMESPACE kiln:: FILE kiln-targets.cmake
  DESTINATION ${kiln_cmake_dir})
configure_package_config_file(cmake/kiln-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/kiln-config.cmake
  INSTALL_DESTINATION ${kiln_cmake_dir})
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/kiln-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kiln-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/kiln-config-version.cmake
  cmake/kiln_find_cuda.cmake
  DESTINATION ${kiln_cmake_dir})

# pkg-config: `--static` adds what the static library needs. The folders are
# told from where kiln.pc lies, so that an installed tree may be moved.
file(RELATIVE_PATH kiln_prefix_from_pc
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" kiln_prefix_from_pc "${kiln_prefix_from_pc}")
get_property(unpack_names GLOBAL PROPERTY KILN_UNPACK_NAMES)
set(kiln_unpack_flags "")
foreach(name ${unpack_names})
  string(APPEND kiln_unpack_flags "-l${name} ")
endforeach()
configure_file(cmake/kiln.pc.in ${CMAKE_CURRENT_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kiln.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
