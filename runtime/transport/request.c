// SPDX-License-Identifier: BSD-3-Clause
#include "transport/request.h"

static bool is_inside(uint64_t offset, uint64_t bytes, uint64_t all)
{
    return offset <= all && bytes <= all - offset;
}

bool gpsh_request_is_valid(const struct gpsh_request *request, uint64_t region_bytes)
{
    switch (request->kind) {
    case GPSH_OP_PUT:
    case GPSH_OP_GET: return is_inside(request->remote, request->bytes, region_bytes);
    case GPSH_OP_PUT_SIGNAL:
        return is_inside(request->remote, request->bytes, region_bytes) &&
               request->signal % 8 == 0 && is_inside(request->signal, 8, region_bytes);
    case GPSH_OP_AMO:
        return (request->width == 4 || request->width == 8) && request->amo <= GPSH_AMO_XOR &&
               request->remote % request->width == 0 &&
               is_inside(request->remote, request->width, region_bytes);
    default: return false;
    }
}

struct gpsh_op gpsh_request_op(const struct gpsh_request *request, void *local, void *result)
{
    return (struct gpsh_op){.kind = request->kind,
                            .amo = request->amo,
                            .width = request->width,
                            .flags = request->flags & GPSH_OP_SIGNAL_ADD,
                            .region = request->region,
                            .local = local,
                            .remote = request->remote,
                            .bytes = request->bytes,
                            .operand = request->operand,
                            .compare = request->compare,
                            .signal = request->signal,
                            .result = request->fetch ? result : NULL};
}
