// SPDX-License-Identifier: BSD-3-Clause
// What the files of the software HCA share. README.md says what it is; in short: it defines the
// symbols of libibverbs, executes the posted work requests between processes of one machine, and
// enforces the rules of RC queue pairs.
//
// Vocabulary
//   segment  a file mapped by every process that uses a device: what the registers and tables of a
//   real HCA would
//            hold, that is which process has it open, its QPs, its MRs, and a mailbox per process.
//   engine   executes work requests: a thread of each process that has the device open. A poll of
//   an empty CQ lends
//            it its time, so that on a small machine nobody waits for a context switch.
//   mail     a request to the engine of another process, for what only that process can do: touch
//   its GPU's memory,
//            take a receive from its queue.
#ifndef SOFTHCA_H
#define SOFTHCA_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define SHCA_EXPORT __attribute__((visibility("default")))

enum {
    SHCA_DEVICES = 8,
    SHCA_PROCS = 512,
    SHCA_QPS = 1 << 15,
    SHCA_MRS = 1 << 14,
    SHCA_MAILS = 32,
    SHCA_DATAGRAM_MAILS = SHCA_MAILS / 2, // boxes that datagrams may take
    SHCA_MAIL_BYTES = 256 << 10,
    SHCA_BATCH = 128,
    SHCA_LAYOUT = 8,
};

// settings.c
struct shca_settings {
    const char *dir;
    long devices, link, no_gid_device, no_ipv4_device, mtu, max_msg, max_qp, max_qp_wr, max_sge,
        max_inline, max_rd_atomic, max_cqe, atomic_cap, atomic_gap_us, dmabuf, peermem;
    long datagram_loss, datagram_twice;
    long misorder_us, late_us, late_devices, flush_us;
    long down_device, down_after, down_ms, down_lost, then_device, then_after, psn;
    long seed, delay_us, reorder, rank, fail_after, fail_status, post_full_every, reg_fail_after,
        reg_limit, event_after, event, fence_stall;
    long null, quiet;
    long mlx5, devx, look_us, cqe_burst;
};
extern struct shca_settings shca_settings;
bool shca_settings_read(void); // false (and a line on stderr) if one is wrong
void shca_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t shca_now_ns(void);
// A number from the seed and what it is for: the same in every run.
uint64_t shca_random(uint64_t a, uint64_t b);

enum shca_kind { SHCA_HOST, SHCA_GPU };

// misuse.c: what a program may not do, by name; README.md says what each means
#define SHCA_MISUSE_LIST(X)                                                                        \
    X(DOORBELL_STATE, "doorbell-state")                                                            \
    X(DOORBELL_QPN, "doorbell-qpn")                                                                \
    X(DOORBELL_AHEAD, "doorbell-ahead")                                                            \
    X(RECORD_RESERVED, "record-reserved")                                                          \
    X(RECORD_BACK, "record-back")                                                                  \
    X(RECORD_AHEAD, "record-ahead")                                                                \
    X(SQ_OVERRUN, "sq-overrun")                                                                    \
    X(WQE_INDEX, "wqe-index")                                                                      \
    X(WQE_QPN, "wqe-qpn")                                                                          \
    X(WQE_SIZE, "wqe-size")                                                                        \
    X(WQE_CUT, "wqe-cut")                                                                          \
    X(WQE_OPCODE, "wqe-opcode")                                                                    \
    X(WQE_OPMOD, "wqe-opmod")                                                                      \
    X(WQE_FLAGS, "wqe-flags")                                                                      \
    X(WQE_RESERVED, "wqe-reserved")                                                                \
    X(WQE_CHANGED, "wqe-changed")                                                                  \
    X(DATA_EMPTY, "data-empty")                                                                    \
    X(DATA_SEGMENTS, "data-segments")                                                              \
    X(DATA_INLINE, "data-inline")                                                                  \
    X(DATA_MIXED, "data-mixed")                                                                    \
    X(INLINE_LENGTH, "inline-length")                                                              \
    X(ATOMIC_LENGTH, "atomic-length")                                                              \
    X(ATOMIC_ALIGNMENT, "atomic-alignment")                                                        \
    X(LOCAL_KEY, "local-key")                                                                      \
    X(REMOTE_KEY, "remote-key")                                                                    \
    X(REMOTE_REQUEST, "remote-request")                                                            \
    X(LENGTH, "length")                                                                            \
    X(CQ_RECORD, "cq-record")                                                                      \
    X(CQ_OVERRUN, "cq-overrun")                                                                    \
    X(DEVX_OPCODE, "devx-opcode")                                                                  \
    X(DEVX_LENGTH, "devx-length")                                                                  \
    X(DEVX_FIELD, "devx-field")                                                                    \
    X(DEVX_RESERVED, "devx-reserved")                                                              \
    X(DEVX_UMEM, "devx-umem")                                                                      \
    X(DEVX_CQE, "devx-cqe")                                                                        \
    X(DEVX_STATE, "devx-state")                                                                    \
    X(VERBS, "verbs")

enum shca_misuse {
#define SHCA_MISUSE_ID(id, text) SHCA_MISUSE_##id,
    SHCA_MISUSE_LIST(SHCA_MISUSE_ID)
#undef SHCA_MISUSE_ID
        SHCA_MISUSE_KINDS
};
extern _Atomic uint32_t shca_misuses[SHCA_MISUSE_KINDS]; // how often
const char *shca_misuse_name(enum shca_misuse kind);
// number: of the queue pair
void shca_misuse(enum shca_misuse kind, uint32_t number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// What an atomic does to a word. Shared between processes, too.
struct shca_change {
    uint64_t operand, compare; // of an addition only the operand
    // Which bits are exchanged, which are compared; of an addition: the bits that no carry leaves.
    uint64_t operand_mask, compare_mask;
    uint32_t add, width; // width: 4 or 8 bytes; 0: no atomic
};

// Shared between processes: fixed layout, atomics, no pointers.
struct shca_mr_entry {
    _Atomic uint32_t key;   // 0: free; written last, cleared first
    _Atomic uint32_t users; // engines in the middle of an access
    uint32_t proc, pd, access, kind;
    uint64_t address, iova, bytes; // address: in the owner's address space
    int32_t file;                  // the owner's descriptor of the file that is mapped there, or -1
    uint64_t file_offset, file_start, file_bytes;
};

// What a packet's global route header says, and the encapsulation around it; 0 without one.
struct shca_path {
    union ibv_gid source, target;
    uint32_t gid_type;
};

struct shca_qp_entry {
    _Atomic uint32_t qpn;      // 0: free
    _Atomic uint32_t state;    // enum ibv_qp_state; a peer may set IBV_QPS_ERR
    _Atomic uint32_t insulted; // a peer made an access that this QP had to refuse
    uint32_t proc, pd, access, reads_in, rnr_timer;
    uint32_t qkey; // of datagrams; 0: it takes none
    uint32_t dest_qpn, dest_device;
    struct shca_path path;
    _Atomic uint32_t rq_psn; // the packet that it takes next
};

enum shca_mail_state { SHCA_MAIL_FREE, SHCA_MAIL_CLAIMED, SHCA_MAIL_POSTED, SHCA_MAIL_DONE };
enum shca_mail_kind { SHCA_MAIL_BATCH, SHCA_MAIL_SEND, SHCA_MAIL_IMM, SHCA_MAIL_DATAGRAM };

struct shca_mail {
    _Atomic uint32_t state;
    // status: enum ibv_wc_status, IBV_WC_RNR_RETRY_EXC_ERR for "no receive posted"
    uint32_t from_pid, from_device, from_proc, kind, status;
    uint32_t key, qpn, has_imm, imm, solicited, source; // source: QP number of a datagram's sender
    uint64_t bytes;
    // of a batch: records, and how many of them were executed; the one behind them failed with
    // status
    uint32_t count, done;
};

// One request of a batch.
enum shca_record_kind { SHCA_RECORD_WRITE, SHCA_RECORD_READ, SHCA_RECORD_ADD, SHCA_RECORD_CAS };
struct shca_record {
    uint64_t address;
    struct shca_change change;
    uint32_t kind, key, bytes;
    uint32_t data;         // where its data is in the block
    uint32_t turn, fenced; // turn: its place in the queue behind the oldest request
};

// What travels with a mail.
struct shca_block {
    struct shca_record records[SHCA_BATCH];
    char data[SHCA_MAIL_BYTES];
};

struct shca_proc {
    _Atomic uint32_t pid; // 0: free
    uint64_t start_time;  // of the process, against reuse of its number
    _Atomic uint32_t doorbell, asleep, insulted;
    struct shca_mail mails[SHCA_MAILS];
};

struct shca_segment {
    _Atomic uint64_t magic;
    uint32_t layout, next_pd;
    _Atomic uint64_t down_until_ns; // its link is down until then, 0: it never was
    pthread_mutex_t tables;         // robust: allocation of entries
    pthread_mutex_t atomics;        // robust: the device is the one agent of atomics on its memory
    uint32_t qp_hint, mr_hint, qp_top, mr_top;
    struct shca_proc procs[SHCA_PROCS];
    struct shca_qp_entry qps[SHCA_QPS];
    struct shca_mr_entry mrs[SHCA_MRS];
    struct shca_block blocks[SHCA_PROCS][SHCA_MAILS];
};

// Private to the process.
struct shca_context {
    struct verbs_context verbs; // its last member is the ibv_context
    struct shca_device *device;
    int event_writer;
    atomic_int objects;
};

struct shca_pd {
    struct ibv_pd ibv;
    struct shca_pd *next; // of this process
    uint32_t id;
    atomic_int users;
};

// A dma-buf, however many descriptors there are of it. Bytes 0: none.
struct shca_dmabuf {
    dev_t device;
    ino_t inode;
    off_t bytes;
};

struct shca_mr {
    struct ibv_mr ibv;
    struct shca_mr_entry *entry;
    int file;
    void *mapped; // a dma-buf that had to be mapped
    size_t mapped_bytes;
    struct shca_dmabuf dmabuf; // of GPU memory
    struct shca_mr *next_dmabuf;
};

struct shca_cqe {
    struct ibv_wc wc;
    struct shca_qp *qp;
    uint64_t retires; // send queue: everything before this position is free again
    bool send, solicited;
    uint16_t index; // of the WQE, in blocks, and what it says it is (mlx5.h)
    uint8_t hw_opcode;
};

struct shca_channel {
    struct ibv_comp_channel ibv;
    int writer;
};

// Zeroed memory in cache lines of its own: queues of different threads do not share one.
static inline void *shca_lines(size_t bytes)
{
    bytes = (bytes + 127) / 128 * 128;
    void *memory = aligned_alloc(128, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

struct shca_cq {
    struct ibv_cq ibv;
    pthread_mutex_t lock;
    struct shca_cqe *ring; // [depth]
    uint32_t depth, head;
    _Atomic uint32_t count;
    int armed; // 0 no, 1 for any completion, 2 for solicited ones
    bool overrun;
    uint32_t events_sent;
    atomic_int users;
    struct shca_mlx5_cq *mlx5; // its ring is in memory that the program reads
};

struct shca_ah {
    struct ibv_ah ibv;
    int device;
    struct shca_path path;
    struct mlx5_wqe_av av; // as mlx5dv tells it
};

// Beside those of enum ibv_wr_opcode: nothing is done, and early_status is what comes of it.
enum { SHCA_WR_NOP = 0x100 };

struct shca_wqe {
    uint64_t wr_id, remote, bytes, ready_ns;
    struct shca_change change; // of an atomic
    uint32_t key, imm, opcode, flags;
    int n_sge;
    bool is_inline, early; // early: executed before its turn to complete
    bool counted;          // among the packets that the other end has taken
    int early_status;
    struct ibv_sge *sges;
    char *payload;
    struct shca_ah ah; // of a datagram
    // Of a WQE (mlx5.h): its first block, its opcode, its blocks and their sum.
    uint16_t index;
    uint8_t hw_opcode, blocks;
    uint64_t sum;
};

struct shca_recv {
    uint64_t wr_id;
    int n_sge;
    struct ibv_sge *sges;
};

struct shca_qp {
    struct ibv_qp ibv;
    struct shca_device *device;
    struct shca_qp_entry *entry;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct shca_peer *peer; // where it is connected to
    pthread_mutex_t lock;   // posting, the receive queue
    struct shca_wqe *sq;
    struct ibv_sge *sges;
    char *payloads;
    uint32_t sq_depth;
    _Atomic uint64_t head, tail; // posted, retired by polling
    uint64_t due;                // of the last signalled one: 1 + its position
    uint64_t exec;               // engine: next to execute
    struct shca_recv *rq;
    struct ibv_sge *recv_sges;
    uint64_t rq_head, rq_tail;
    atomic_bool queued;
    struct shca_qp *next_ready;
    bool active;
    // engine only: the work request being executed
    uint64_t retry_until, retry_at, moved; // moved: bytes that went by mail
    uint64_t flush_ns;                     // in the error state: when to flush, 0: not known yet
    uint64_t fence_seen, stalled_at;       // 1 + request looked at for FENCE_STALL; head then, or 0
    uint32_t rnr_left;
    bool gap;                // a request has failed that the other end has not taken
    bool retrying, imm_turn; // imm_turn: the data is written, the immediate comes
    // by mail nothing can overtake: it would be taken for the older request's
    bool overtaking;
    struct shca_late *late, **late_end; // acknowledged, not yet placed (late.c)
    bool peer_seen;                     // alive, in this turn
    int mail;                           // under way, or -1
    atomic_int unacked;
    struct shca_mlx5_queue *mlx5; // its WQEs are in memory that the program writes
    bool by_devx;                 // libibverbs knows nothing of it, and tells no events
};

// A device as another endpoint: this process's view of one process that has a device open.
struct shca_peer {
    struct shca_segment *segment;
    int device, proc, pidfd;
    bool own; // this process: asked once, since getpid is a system call
    uint32_t pid;
    uint64_t start_time;
    struct shca_map *maps;
    struct shca_peer *next;
};

struct shca_device {
    struct ibv_device ibv;
    char reserved[256]; // zero: where providers look for their own operations (mlx5dv_is_supported)
    int index;
    struct shca_segment *segment;
    ino_t segment_inode;
    int proc, opens; // slot in the segment, -1 if not open
    struct shca_peer *peers;
    struct shca_qp *qps[SHCA_QPS];
    atomic_long n_qps; // of this process
    pthread_t thread;
    atomic_bool stop, thread_waits; // thread_waits: for the engine's lock; helpers step back
    atomic_bool abandoned;          // the process exits: nobody makes a pass any more
    pthread_mutex_t engine_lock, ready_lock;
    struct shca_qp *ready;
    struct shca_qp **active; // [active_room]
    uint32_t n_active, active_room, turn;
    struct shca_context *contexts[16];
    struct shca_gpu *gpu;
    bool use_gpu;                   // this pass may touch GPU memory
    struct shca_mlx5_queue *queues; // engine lock
    struct shca_block *block;       // for GPU memory and for mail to this process itself
};

// segment.c
struct shca_segment *shca_segment_map(int device);
int shca_segment_attach(struct shca_device *device);
void shca_segment_detach(struct shca_device *device);
void shca_lock(pthread_mutex_t *robust);
uint64_t shca_start_time(uint32_t pid);
struct shca_qp_entry *shca_qp_entry_new(struct shca_device *device, uint32_t pd);
struct shca_mr_entry *shca_mr_entry_new(struct shca_device *device, uint32_t *key);

// device.c
struct shca_device *shca_device_of(struct ibv_context *context);
int shca_device_by_address(const struct ibv_ah_attr *address);
struct shca_path shca_path_of(const struct shca_device *device, const struct ibv_ah_attr *address);
void shca_device_event(struct shca_device *device, const struct ibv_async_event *event);
void shca_context_event(struct ibv_context *context, const struct ibv_async_event *event);
void shca_context_forget(struct ibv_context *context, const void *object); // its unread events
void shca_pipe_forget(int reader, int writer, size_t item, const void *object);
void shca_context_use(struct ibv_context *context, int n);
extern struct shca_device shca_devices[SHCA_DEVICES];

// memory.c
struct ibv_pd *shca_pd_numbered(struct ibv_context *context, uint32_t number); // of its device
// NULL: no such key
struct shca_mr_entry *shca_mr_begin(struct shca_segment *segment, uint32_t key);
void shca_mr_end(struct shca_mr_entry *entry);
// Where GPU memory is of which this is a dma-buf. NULL: it is none, or none that is registered.
char *shca_dmabuf_pointer(int fd, uint64_t offset);

// peer.c: memory of another process, by mapping or by the kernel's help
struct shca_peer *shca_peer_get(struct shca_device *device, int remote_device, uint32_t qpn);
bool shca_peer_alive(struct shca_peer *peer);
void shca_peers_free(struct shca_device *device);
void *shca_peer_map(struct shca_peer *peer, const struct shca_mr_entry *entry, uint32_t key,
                    uint64_t address);
int shca_peer_read(struct shca_peer *peer, void *to, uint64_t from, size_t bytes);
int shca_peer_write(struct shca_peer *peer, uint64_t to, const void *from, size_t bytes);
// aligned words whole; unseen by sanitizers
void shca_copy(void *to, const void *from, size_t bytes);

// queue.c
enum ibv_wc_opcode shca_wc_opcode(uint32_t opcode); // of a work request's completion
void shca_cq_push(struct ibv_cq *cq, const struct shca_cqe *cqe);
void shca_cq_forget(struct ibv_cq *cq, const struct shca_qp *qp);
int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);

// post.c
int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
// When a request posted now is to be executed (DELAY_US, MISORDER_US).
uint64_t shca_ready_time(const struct shca_qp *qp, uint64_t position, uint32_t opcode);
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

// engine.c
int shca_engine_start(struct shca_device *device);
void shca_engine_stop(struct shca_device *device);
void shca_engine_wake(struct shca_segment *segment, int proc);
void shca_engine_submit(struct shca_qp *qp);
void shca_engine_forget(struct shca_qp *qp);
void shca_engine_help(struct shca_device *device);

// change.c
uint64_t shca_changed(const struct shca_change *change, uint64_t old);
// Does it to the word there, with one access for each; the old value.
uint64_t shca_change_word(const struct shca_change *change, void *word);
// The old value as the requester gets it.
void shca_change_answer(const struct shca_change *change, uint64_t old, char bytes[8]);

// execute.c
enum { SHCA_AGAIN = -1, SHCA_NO_ANSWER = -2, SHCA_NOT_READY = -3 };
// enum ibv_wc_status, or one of the above: to be tried again later, the peer does not answer, it
// has no receive posted.
int shca_execute(struct shca_qp *qp, struct shca_wqe *wqe);
// Whether the request is for GPU memory at the target, and nothing is wrong with it; *address:
// there.
bool shca_may_join(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t *address);
// Copies between this process's scattered memory and one block; the GPU's part is done at
// shca_gpu_finish. A status.
int shca_gather(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t offset, char *to,
                uint64_t bytes);
int shca_scatter(struct shca_qp *qp, const struct ibv_sge *sges, int n, uint64_t offset,
                 const char *from, uint64_t bytes);

// Whether a write would pass the target's checks now, and goes to host memory there.
bool shca_write_passes(struct shca_qp *qp, const struct shca_wqe *wqe);
// Places such a write, if the memory is still there.
void shca_place(struct shca_qp *qp, struct shca_peer *peer, const struct shca_wqe *wqe);

// mlx5_queue.c
// Looks at the doorbells of the device's queues, and makes work requests of what they announce.
// Engine lock held.
void shca_mlx5_look(struct shca_device *device);
bool shca_mlx5_is_far(const struct shca_qp *qp); // its queues are in GPU memory
void shca_mlx5_queue_reset(struct shca_mlx5_queue *queue);
void shca_mlx5_queue_free(struct shca_qp *qp);
// A work request completes, its CQE is not written yet. `injected`: the status is a setting's.
void shca_mlx5_completed(struct shca_qp *qp, const struct shca_wqe *wqe, int status, bool injected);

// mlx5_cqe.c
// The queue's lock is held.
bool shca_mlx5_cqe_push(struct shca_cq *cq, const struct shca_cqe *cqe); // false: no room
void shca_mlx5_cqe_release(struct shca_cq *cq); // held ones that are due; takes the lock
void shca_mlx5_cq_free(struct shca_cq *cq);

// link.c
// Counts a request; true if its answer is the first thing that the link loses (DOWN_LOST), or the
// request itself.
bool shca_link_goes_down(const struct shca_qp *qp);
bool shca_link_is_up(const struct shca_qp *qp);
bool shca_link_between(const struct shca_device *device, int remote,
                       const struct shca_segment *segment);

// peer.c: the other end has executed the request, whose packets it will not take again.
void shca_packets_taken(struct shca_qp *qp, struct shca_wqe *wqe);

// late.c: writes that are acknowledged first and placed later, each device's in order
// True if the write was taken: it is to be completed now.
bool shca_late_take(struct shca_qp *qp, const struct shca_wqe *wqe);
// Places what is due, or everything; false, and when the next is due, if something is left.
bool shca_late_place(struct shca_qp *qp, bool all, uint64_t *wake_ns);

// datagram.c
static inline bool shca_is_datagrams(const struct shca_qp *qp)
{
    return qp->ibv.qp_type == IBV_QPT_UD;
}
// A status of this side: what becomes of it on its way nobody hears.
int shca_datagram_send(struct shca_qp *qp, struct shca_wqe *wqe);
// The receiving side of a mail.
void shca_datagram_deliver(struct shca_qp *qp, const struct shca_mail *mail, const char *data);

// mail.c
// A free one of the first so many boxes, or -1.
int shca_box_claim(struct shca_proc *proc, int boxes);
void shca_mail_serve(struct shca_device *device);
bool shca_mail_waiting(const struct shca_device *device);
bool shca_mail_pending(struct shca_qp *qp);
void shca_mail_drop(struct shca_qp *qp);
bool shca_mail_answered(const struct shca_qp *qp);
// Sends a request and picks up its answer in a later call; status as shca_execute.
int shca_mail_run(struct shca_qp *qp, struct shca_wqe *wqe, enum shca_mail_kind kind);

// batch.c: several requests to GPU memory as one mail
int shca_batch_fill(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t address,
                    struct shca_mail *mail, struct shca_block *block);
int shca_batch_pick_up(struct shca_qp *qp, const struct shca_mail *mail,
                       const struct shca_block *block);
// Queues what the mail asks for; all is done at the next shca_gpu_finish, whose status end() is
// told.
void shca_batch_begin(struct shca_device *device, struct shca_mail *mail, struct shca_block *block);
void shca_batch_end(struct shca_device *device, struct shca_mail *mail,
                    const struct shca_block *block, int status);

// gpu.c
bool shca_gpu_owns(const void *address, size_t bytes);
int shca_gpu_use(struct shca_device *device, uint64_t address);
// GPU memory and host memory, for the engine's thread. In order. What is read is there after
// shca_gpu_finish; what is to be written may be reused at once. Up to SHCA_MAIL_BYTES.
int shca_gpu_read(struct shca_device *device, void *to, const void *from, size_t bytes);
int shca_gpu_write(struct shca_device *device, void *to, const void *from, size_t bytes);
int shca_gpu_finish(struct shca_device *device); // costs nothing if nothing was queued
int shca_gpu_submit(struct shca_device *device); // what was queued goes on its way
// A write of whole words of 8 bytes, the last of which is not seen before the rest.
int shca_gpu_publish(struct shca_device *device, void *to, const void *from, size_t bytes);
// any size; complete
int shca_gpu_copy(struct shca_device *device, void *to, const void *from, size_t bytes);
// What lies in GPU memory, for any thread; not with the engine's lock held.
int shca_gpu_look(struct shca_device *device, void *to, const void *from, size_t bytes);
void shca_gpu_free(struct shca_device *device);

#endif
