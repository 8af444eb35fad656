// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Whether writes are placed in the order in which they were posted. Fabrics with adaptive routing
// deliver the packets of one queue pair in any order, and their NICs place them as they come. Only
// the receiving end knows, so each PE asks a queue pair that is connected to itself and publishes
// the answer.
#include "transports/verbs/setup/verbs_setup.h"

// rdma-core has it since version 43.
__attribute__((weak)) extern int ibv_query_qp_data_in_order(struct ibv_qp *qp,
                                                            enum ibv_wr_opcode op, uint32_t flags);

static int to_init(struct ibv_qp *qp, const struct gpsh_settings *settings, uint8_t port)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = (uint16_t)settings->verbs_pkey_index,
                               .port_num = port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, const struct gpsh_settings *settings,
                  const struct verbs_rail *rail)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = rail->mtu,
                               .dest_qp_num = qp->qp_num,
                               .max_dest_rd_atomic = rail->reads_in,
                               .min_rnr_timer = 12};
    attr.ah_attr.port_num = rail->port;
    attr.ah_attr.sl = (uint8_t)settings->verbs_service_level;
    attr.ah_attr.dlid = rail->lid;
    attr.ah_attr.is_global = rail->ethernet || rail->needs_grh;
    const struct verbs_gid *gid = &rail->gids[verbs_best_kind(rail->gid_kinds)];
    attr.ah_attr.grh.dgid = gid->gid;
    attr.ah_attr.grh.sgid_index = gid->index;
    attr.ah_attr.grh.hop_limit = 1;
    attr.ah_attr.grh.traffic_class = (uint8_t)settings->verbs_traffic_class;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

// A device that cannot be asked is taken for one that does not keep the order.
static bool device_says(const struct gpsh_settings *settings, const struct verbs_rail *rail)
{
    struct ibv_cq *cq = ibv_create_cq(rail->context, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = cq ? ibv_create_qp(rail->pd, &init) : NULL;
    bool in_order = qp && !to_init(qp, settings, rail->port) && !to_rtr(qp, settings, rail) &&
                    ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) == 1;
    if (qp)
        ibv_destroy_qp(qp);
    if (cq)
        ibv_destroy_cq(cq);
    return in_order;
}

// Soft-RoCE cannot be asked, but drops packets that come out of order.
bool gpsh_verbs_in_order(const struct gpsh_settings *settings, const struct verbs_rail *rail,
                         bool soft_roce)
{
    if (settings->verbs_order != GPSH_VERBS_ORDER_AUTO)
        return settings->verbs_order == GPSH_VERBS_ORDER_QUEUE;
    return soft_roce || (ibv_query_qp_data_in_order && device_says(settings, rail));
}
