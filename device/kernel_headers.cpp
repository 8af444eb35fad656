// SPDX-License-Identifier: BSD-3-Clause
// A program that does nothing. Programs with kernels of this build share its precompiled headers.
int main(void)
{
    return 0;
}
