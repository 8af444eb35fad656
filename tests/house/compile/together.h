// SPDX-License-Identifier: BSD-3-Clause
// What most sources of GPU programs include: before all of them, where they are compiled in one
// file, each within a namespace (cmake/GpushmemTogether.cmake).
#ifndef TESTS_COMPILE_TOGETHER_H
#define TESTS_COMPILE_TOGETHER_H

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpushmem/device.cuh"
#include "gpushmem/gpushmem.h"

#endif
