// SPDX-License-Identifier: BSD-3-Clause
// The program whose precompiled headers all programs with kernels of this build use.
int main(void)
{
    return 0;
}
