// SPDX-License-Identifier: BSD-3-Clause
// The same calls through the overloads.
#include "generic.c"
