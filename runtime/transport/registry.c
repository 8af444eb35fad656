// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "transport/transport.h"

const struct gpsh_transport_ops *gpsh_transport_find(const char *name)
{
    for (int i = 0; gpsh_transports[i]; i++)
        if (!strcmp(gpsh_transports[i]->name, name))
            return gpsh_transports[i];
    return NULL;
}
