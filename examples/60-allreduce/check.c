// SPDX-License-Identifier: BSD-3-Clause
#include <float.h>
#include <math.h>
#include <string.h>

#include "allreduce.h"

// Each of n - 1 additions of a sum rounds by at most half an epsilon of the magnitudes that were
// added, so two orders of adding differ by less than n epsilon of them.
static int differs(float got, size_t i, int n_pes, int same_order)
{
    float sum = value_of(0, i), magnitude = fabsf(sum);
    for (int pe = 1; pe < n_pes; pe++) {
        sum += value_of(pe, i);
        magnitude += fabsf(value_of(pe, i));
    }
    if (same_order)
        return memcmp(&got, &sum, sizeof got) != 0;
    return !(fabsf(got - sum) <= (float)n_pes * FLT_EPSILON * magnitude);
}

size_t allreduce_differences(const float *dest, size_t elements, int n_pes, int same_order)
{
    size_t count = 0;
    for (size_t i = 0; i < elements; i++)
        count += (size_t)differs(dest[i], i, n_pes, same_order);
    return count;
}
