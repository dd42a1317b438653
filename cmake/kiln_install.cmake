# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` lays down: headers, both libraries, kiln.pc, a CMake
# package and the command.
