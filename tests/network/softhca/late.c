// SPDX-License-Identifier: BSD-3-Clause
// Acknowledged before visible: a target's NIC acknowledges a write when it has it, while the write
// itself is still on its way to memory. Only what follows it on that way, a read above all, proves
// that it has arrived.
#include <stdlib.h>

#include "softhca.h"

struct shca_late {
    struct shca_late *next;
    struct shca_wqe wqe; // the payload is a copy
    struct shca_peer *peer;
    uint64_t due_ns;
    char payload[];
};

static bool is_late_device(const struct shca_device *device)
{
    return shca_settings.late_us && shca_settings.late_devices & (1L << device->index);
}

bool shca_late_take(struct shca_qp *qp, const struct shca_wqe *wqe)
{
    if (!is_late_device(qp->device) || wqe->opcode != IBV_WR_RDMA_WRITE ||
        !shca_write_passes(qp, wqe))
        return false;
    struct shca_late *late = malloc(sizeof *late + wqe->bytes);
    if (!late)
        return false;
    late->wqe = *wqe;
    late->wqe.is_inline = true;
    late->wqe.payload = late->payload;
    late->peer = qp->peer;
    late->due_ns = shca_now_ns() + (uint64_t)shca_settings.late_us * 1000;
    late->next = NULL;
    if (shca_gather(qp, wqe, 0, late->payload, wqe->bytes) != IBV_WC_SUCCESS ||
        shca_gpu_finish(qp->device) != IBV_WC_SUCCESS) {
        free(late);
        return false; // in its turn it fails as it must
    }
    if (!qp->late)
        qp->late_end = &qp->late;
    *qp->late_end = late;
    qp->late_end = &late->next;
    return true;
}

// Nobody hears of one that cannot be placed any more: its target is gone.
bool shca_late_place(struct shca_qp *qp, bool all, uint64_t *wake_ns)
{
    while (qp->late) {
        struct shca_late *late = qp->late;
        if (!all && shca_now_ns() < late->due_ns) {
            *wake_ns = late->due_ns < *wake_ns ? late->due_ns : *wake_ns;
            return false;
        }
        qp->late = late->next;
        shca_place(qp, late->peer, &late->wqe);
        free(late);
    }
    return true;
}
