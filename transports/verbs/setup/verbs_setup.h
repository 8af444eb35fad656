// SPDX-License-Identifier: BSD-3-Clause
// What the files of setup/ offer each other and post/: opening devices, registering memory, making
// and connecting queue pairs. verbs_state.h has what they work on.
#ifndef GPSH_VERBS_SETUP_H
#define GPSH_VERBS_SETUP_H

#include "transports/verbs/setup/verbs_state.h"

// verbs.c: entries of each send queue in a job of that size.
uint32_t gpsh_verbs_depth(uint32_t wanted, int n_pes);

// verbs_dev.c
int gpsh_verbs_rails_open(struct gpsh_verbs *verbs);
void gpsh_verbs_rails_close(struct gpsh_verbs *verbs);

// verbs_gid.c: sets gids and gid_kinds: those that can be used, or only the one of
// GPUSHMEM_VERBS_GID_INDEX.
int gpsh_verbs_gids_find(struct verbs_rail *rail, int table_length, int wanted);
// The kind of GID by which both ends reach each other, the same for both; or an error that lists
// what they have.
int gpsh_verbs_gid_agree(const struct verbs_rail *rail, const struct gpsh_verbs_blob_rail *remote,
                         int pe);
static inline int verbs_best_kind(uint32_t kinds) // not 0
{
    return 31 - __builtin_clz(kinds);
}

// verbs_path.c: how a queue pair's packets find the port of that PE.
int gpsh_verbs_path(const struct gpsh_verbs *verbs, const struct verbs_rail *rail,
                    const struct gpsh_verbs_blob_rail *remote, int pe, struct ibv_ah_attr *path);

// verbs_direct.c: registers a dma-buf, from `offset` in it, so that the NIC reaches it through its
// data-direct function; NULL if it has none, or refuses (errno says which).
struct ibv_mr *gpsh_verbs_register_direct(struct verbs_rail *rail, const struct gpsh_region *region,
                                          uint64_t offset, int access);

// verbs_in_order.c: whether writes that arrive over the rail are placed in order. If
// GPUSHMEM_VERBS_ORDER is auto the device says so, else the setting.
bool gpsh_verbs_in_order(const struct gpsh_settings *settings, const struct verbs_rail *rail,
                         bool soft_roce);

// verbs_explain.c: for the log and `gpushmem info`.
void gpsh_verbs_explain(struct gpsh_transport *self, int pe, char *line, size_t bytes);
bool gpsh_verbs_kernels_post(struct gpsh_transport *self, int pe);
void gpsh_verbs_about(struct gpsh_transport *self, char *line, size_t bytes);
// Why GPU memory was registered by its address.
const char *gpsh_verbs_why_no_dmabuf(const struct gpsh_verbs *verbs,
                                     const struct gpsh_region *region, const struct verbs_way *way);

// verbs_mr.c
uint64_t gpsh_verbs_dmabuf_offset(const struct gpsh_region *region); // where it begins there
unsigned gpsh_verbs_remote_access(const struct verbs_rail *rail);
// `way` may be NULL. NULL with a sentence on failure.
struct ibv_mr *gpsh_verbs_register(struct gpsh_verbs *verbs, struct verbs_rail *rail,
                                   const struct gpsh_region *region, int access,
                                   struct verbs_way *way);
int gpsh_verbs_region_register(struct gpsh_verbs *verbs, int number,
                               const struct gpsh_region *region);
// `remote`: peers may access it, too. With every rail, or with none and a sentence.
int gpsh_verbs_buffer_add(struct gpsh_verbs *verbs, struct gpsh_buffer *buffer, bool remote);
int gpsh_verbs_buffer_register(struct gpsh_transport *self, const struct gpsh_region *region);
int gpsh_verbs_buffer_unregister(struct gpsh_transport *self, const void *base);
void gpsh_verbs_buffers_free(struct gpsh_verbs *verbs);
enum verbs_where gpsh_verbs_where(struct gpsh_verbs *verbs, const char *local, uint64_t bytes);
// Key of a registered buffer; false if the range is in none (any more).
bool gpsh_verbs_buffer_lkey(struct gpsh_verbs *verbs, const char *local, uint64_t bytes, int rail,
                            uint32_t *lkey);

// verbs_peer.c
// The peer, or the flow, as it is or newly made. NULL with a sentence.
struct verbs_peer *gpsh_verbs_peer_get(struct gpsh_verbs *verbs, int pe);
struct verbs_flow *gpsh_verbs_flow_get(struct verbs_channel *channel, int pe);
// Whether this PE may connect to that one: 0, or why not.
int gpsh_verbs_peer_check(const struct gpsh_verbs *verbs, int pe,
                          const struct gpsh_verbs_blob *blob);
// Whether writes to that rail of a peer are taken for ones that may be placed in another order than
// they are posted in.
bool gpsh_verbs_may_misplace(const struct gpsh_verbs *verbs,
                             const struct gpsh_verbs_blob_rail *remote);
// NULL, or why kernels do not post to the PE that has published this themselves, by that rail, with
// GPUSHMEM_DEVICE_POST=nic.
const char *gpsh_verbs_kernel_refused(const struct gpsh_verbs *verbs,
                                      const struct gpsh_verbs_blob *blob, int rail);
int gpsh_verbs_kernel_rail(const struct gpsh_verbs *verbs, const struct verbs_channel *channel,
                           const struct gpsh_verbs_blob *blob);
void gpsh_verbs_peers_free(struct gpsh_verbs *verbs);

// verbs_books.c: what a channel keeps of a flow that it posts to. 0, or why there is no memory.
int gpsh_verbs_books_open(struct verbs_flow *flow);
// With its lanes' queue pairs.
void gpsh_verbs_flow_free(struct verbs_flow *flow);
void gpsh_verbs_results_free(struct verbs_channel *channel);

// verbs_channel.c
int gpsh_verbs_channel_create(struct gpsh_verbs *verbs, struct verbs_channel *channel);
void gpsh_verbs_channel_destroy(struct verbs_channel *channel);

// verbs_qp.c
// Whether the NIC makes queue pairs as they will be wanted, and what they have.
int gpsh_verbs_qp_try(struct gpsh_verbs *verbs, struct verbs_rail *rail);
int gpsh_verbs_lane_create(struct verbs_lane *lane);
int gpsh_verbs_lane_connect(struct verbs_lane *lane, uint32_t remote_qpn);
void gpsh_verbs_lane_destroy(struct verbs_lane *lane);
void gpsh_verbs_qp_kill(struct ibv_qp *qp);
void gpsh_verbs_kernel_kill(struct verbs_lane *lane); // of kernels
// The lane's queue pair forgets what it has: it adds no completion and touches no memory any more.
// Those that it had added may still be in the completion queue. An errno if the device refuses.
int gpsh_verbs_lane_reset(struct verbs_lane *lane);

// verbs_kernel.c: flows whose queue pairs kernels post to; nothing else is posted there.
// Whether mlx5's library has a say about its queues.
// NULL if the NIC is one of mlx5's and its library tells where queues are, or a sentence.
const char *gpsh_verbs_no_mlx5(const struct verbs_rail *rail);
// A flow is up, or will never be: tells who has asked for it, if anybody has.
void gpsh_verbs_kernel_up(struct verbs_flow *flow);
void gpsh_verbs_kernel_out(const struct verbs_flow *flow, const char *why);
// The peer is lost: what kernels have under way there ends.
void gpsh_verbs_kernel_lost(struct gpsh_verbs *verbs, int pe);

// verbs_devx.c: queue pairs of kernels whose queues are in memory near those who post.
// Takes and registers that memory, or notes why not (verbs_near.why). Before kernels run.
void gpsh_verbs_near_open(struct gpsh_verbs *verbs);
void gpsh_verbs_near_close(struct gpsh_verbs *verbs); // after all lanes
// False: it is to be made by libibverbs, and the log says why.
bool gpsh_verbs_devx_create(struct verbs_lane *lane);
void gpsh_verbs_devx_destroy(struct verbs_lane *lane); // the caller holds queue_pairs
void gpsh_verbs_devx_show(const struct verbs_lane *lane, struct gpsh_kernel_queue *out);
// As ibv_modify_qp, of all attributes of a state. An errno.
int gpsh_verbs_devx_modify(const struct verbs_lane *lane, struct ibv_qp_attr *attr);

// verbs_datagram.c: an unreliable datagram queue pair of a rail, and its buffers.
int gpsh_verbs_datagrams_open(struct gpsh_verbs *verbs, struct verbs_rail *rail);
void gpsh_verbs_datagrams_close(struct verbs_rail *rail);
struct ibv_qp *gpsh_verbs_datagrams_qp(const struct verbs_rail *rail);
int gpsh_verbs_datagrams_fd(const struct verbs_rail *rail); // readable when something has come
// One that finds no room, or a failing NIC, is lost like one that the network drops.
void gpsh_verbs_datagram_send(struct verbs_rail *rail, struct ibv_ah *path, uint32_t qpn,
                              uint32_t qkey, const void *bytes, size_t n);
// Why datagrams do not leave or reach this PE's own NIC, or NULL.
const char *gpsh_verbs_datagrams_trouble(struct verbs_rail *rail);
// An event has told so: by any thread, and then gpsh_verbs_handshakes_wake.
void gpsh_verbs_datagrams_broken(struct verbs_rail *rail);
// Brings the queue pair back if it has failed. Until when it cannot be used, or UINT64_MAX.
uint64_t gpsh_verbs_datagrams_mend(struct gpsh_verbs *verbs, struct verbs_rail *rail);
// Hands on what has come.
void gpsh_verbs_datagrams_take(struct verbs_rail *rail,
                               void (*take)(void *arg, int rail, const void *bytes, size_t n),
                               int number, void *arg);

// verbs_close.c: shutting a flow that is up, by the handshake's thread.
// Whether flows can be shut at all on this kernel.
bool gpsh_verbs_shut_prepare(void);
// True if it has nothing under way: its state is VERBS_SHUT, and nobody uses its lanes.
bool gpsh_verbs_shut(struct verbs_flow *flow);
// Lanes begin anew, as they did when the flow was made.
void gpsh_verbs_lanes_renew(struct verbs_flow *flow);

// verbs_connector.c: a thread that connects flows, those of this PE and those of its peers. Stop:
// NULL is legal.
int gpsh_verbs_handshakes_start(struct gpsh_verbs *verbs);
void gpsh_verbs_handshakes_stop(struct gpsh_verbs *verbs);
void gpsh_verbs_handshakes_wake(struct gpsh_verbs *verbs);
// The flow is wanted, by the channel's thread. Its state tells how that went.
void gpsh_verbs_handshake_ask(struct verbs_flow *flow);

// verbs_turnover.c: the flows that are up, of the handshake's thread.
void gpsh_verbs_up_add(struct verbs_flow **ups, struct verbs_flow *flow);
void gpsh_verbs_up_remove(struct verbs_flow *flow); // if it is there
// Of those that may be closed the one that was used least recently; or any of them, if the flow
// that wants its place was closed itself: a program that goes round more peers than there is room
// for wants next what was used least recently. NULL: none.
struct verbs_flow *gpsh_verbs_up_choose(struct verbs_flow *ups, const struct verbs_flow *wants,
                                        uint32_t *dice);
// A flow is up again, for which operations have waited, as it was closed to make room here or
// there. `ups`: the others that are up.
void gpsh_verbs_turnover_note(struct verbs_turnover *turnover, struct verbs_flow *flow,
                              struct verbs_flow *ups);

// verbs_patience.c: of the handshake's thread.
uint64_t gpsh_verbs_patience_ns(const struct gpsh_verbs *verbs);
// The clock as it is now; it is asked in each turn of the thread.
uint64_t gpsh_verbs_awake(struct verbs_awake *clock);
void gpsh_verbs_patience_begin(struct verbs_flow *flow, uint64_t awake_ns);
// Begins anew while the peer is known to be stopped, and says so when it would have been over.
void gpsh_verbs_patience_look(struct verbs_flow *flow, uint64_t awake_ns);
// Why the flow fails, and the code.
int gpsh_verbs_patience_over(const struct verbs_flow *flow, char *why, size_t bytes);

// verbs_bounce.c
int gpsh_verbs_bounce_create(struct gpsh_verbs *verbs, struct verbs_bounce *bounce);
void gpsh_verbs_bounce_destroy(struct verbs_bounce *bounce);
uint16_t gpsh_verbs_bounce_take(struct verbs_bounce *bounce, uint64_t bytes);
uint16_t gpsh_verbs_bounce_capture(struct verbs_bounce *bounce, uint64_t bytes);
void gpsh_verbs_bounce_give(struct verbs_bounce *bounce, uint16_t block);
char *gpsh_verbs_bounce_at(const struct verbs_bounce *bounce, uint16_t block);

// verbs_answer.c: a thread that tells peers which have lost a rail how far they got by it. Started
// once, where there are several rails; a PE without it is asked in vain. Stop: NULL is legal.
int gpsh_verbs_answerer_start(struct gpsh_verbs *verbs);
void gpsh_verbs_answerer_stop(struct gpsh_verbs *verbs);
// A question is a channel and a rail, and never 0. An answer repeats it.
static inline uint32_t verbs_question(uint32_t channel, uint32_t rail)
{
    return UINT32_C(1) << 31 | rail << 16 | channel;
}
enum { VERBS_ANSWER_KNOWN = 1 << 24 }; // its lower bits are a packet number

// verbs_growth.c: extend, extended and retract of gpsh_transport_ops.
int gpsh_verbs_heap_extend(struct gpsh_transport *self, const struct gpsh_region *chunk,
                           void *keys);
int gpsh_verbs_heap_extended(struct gpsh_transport *self, int pe, const void *keys);
void gpsh_verbs_heap_retract(struct gpsh_transport *self);

// verbs_event.c
void gpsh_verbs_peer_lost(struct gpsh_transport *self, int pe);
void gpsh_verbs_events_poll(struct gpsh_verbs *verbs);

#endif
