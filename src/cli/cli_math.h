// SPDX-License-Identifier: Apache-2.0
//
// cli: functions of the system's libm, which is opened when one is called.
//
// The linker substitutes these for the names without the prefix
// (src/cli/CMakeLists.txt): few commands call any of them, and a program linked
// with libm pays for it at every start. They call the same functions, so every
// result is identical.
#ifndef KILN_SRC_CLI_CLI_MATH_H_
#define KILN_SRC_CLI_CLI_MATH_H_

double kilni_cli_math_ceil(double x);
double kilni_cli_math_cos(double x);
double kilni_cli_math_floor(double x);
double kilni_cli_math_fma(double x, double y, double z);
double kilni_cli_math_pow(double x, double y);
double kilni_cli_math_rint(double x);
double kilni_cli_math_sin(double x);
double kilni_cli_math_trunc(double x);
float kilni_cli_math_ceilf(float x);
float kilni_cli_math_floorf(float x);
float kilni_cli_math_fmaf(float x, float y, float z);
float kilni_cli_math_rintf(float x);
float kilni_cli_math_truncf(float x);
int kilni_cli_math_fegetround(void);

#endif  // KILN_SRC_CLI_CLI_MATH_H_
