// SPDX-License-Identifier: BSD-3-Clause
// Batches: what a queue pair asks of the memory of a GPU, several requests in one mail. The oldest
// request of the queue takes along those behind it that may be executed now; they complete in their
// turn.
#include <string.h>

#include "softhca.h"

// ---- The initiator ----

struct builder {
    struct shca_qp *qp;
    struct shca_block *block;
    uint32_t n, data, fetches; // data: bytes of the block in use
};

static enum shca_record_kind kind_of(const struct shca_wqe *wqe)
{
    switch (wqe->opcode) {
    case IBV_WR_RDMA_READ: return SHCA_RECORD_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return SHCA_RECORD_ADD;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return SHCA_RECORD_CAS;
    default: return SHCA_RECORD_WRITE;
    }
}

// The part of a request from `offset` on, at `address` in the target.
static int append(struct builder *b, const struct shca_wqe *wqe, uint32_t turn, uint64_t address,
                  uint64_t offset, uint64_t bytes)
{
    struct shca_record *record = &b->block->records[b->n];
    enum shca_record_kind kind = kind_of(wqe);
    *record = (struct shca_record){
        .address = address,
        .change = wqe->change,
        .kind = kind,
        .key = wqe->key,
        .bytes = (uint32_t)bytes,
        .data = b->data,
        .turn = turn,
        .fenced = wqe->flags & IBV_SEND_FENCE,
    };
    if (kind == SHCA_RECORD_WRITE) {
        int status = shca_gather(b->qp, wqe, offset, b->block->data + b->data, bytes);
        if (status != IBV_WC_SUCCESS)
            return status;
    }
    b->data += ((uint32_t)bytes + 7) & ~7u;
    b->fetches += kind != SHCA_RECORD_WRITE;
    b->n++;
    return IBV_WC_SUCCESS;
}

// Those behind the first one, as long as nothing speaks against executing them now.
static void follow(struct builder *b)
{
    struct shca_qp *qp = b->qp;
    uint64_t head = atomic_load(&qp->head), now = shca_settings.delay_us ? shca_now_ns() : 0,
             address;
    if (shca_settings.fail_after >= 0)
        return; // nothing behind a request that fails may have happened
    for (uint64_t at = qp->exec + 1; at < head && b->n < SHCA_BATCH; at++) {
        const struct shca_wqe *wqe = &qp->sq[at % qp->sq_depth];
        if (wqe->early)
            continue;
        bool fetches = kind_of(wqe) != SHCA_RECORD_WRITE;
        if (wqe->ready_ns > now || wqe->bytes > SHCA_MAIL_BYTES - b->data ||
            (fetches && b->fetches >= qp->attr.max_rd_atomic) ||
            !shca_may_join(qp, wqe, &address) ||
            append(b, wqe, (uint32_t)(at - qp->exec), address, 0, wqe->bytes) != IBV_WC_SUCCESS)
            return;
    }
}

// Without a fence, writes may overtake the reads and atomics before them. The first record stays
// the first.
static void reorder(struct shca_record *records, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 2; i < n; i++) {
        bool may = records[i].kind == SHCA_RECORD_WRITE && !records[i].fenced &&
                   records[i - 1].kind != SHCA_RECORD_WRITE;
        if (!may || shca_random(seed, i) % 2)
            continue;
        struct shca_record write = records[i];
        records[i] = records[i - 1];
        records[i - 1] = write;
    }
}

int shca_batch_fill(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t address,
                    struct shca_mail *mail, struct shca_block *block)
{
    struct builder b = {.qp = qp, .block = block};
    uint64_t left = wqe->bytes - qp->moved, bytes = left < SHCA_MAIL_BYTES ? left : SHCA_MAIL_BYTES;
    int status = append(&b, wqe, 0, address + qp->moved, qp->moved, bytes);
    if (status == IBV_WC_SUCCESS && bytes == left && wqe->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
        follow(&b);
    if (shca_settings.reorder)
        reorder(block->records, b.n, qp->exec);
    mail->count = b.n;
    // also after a failure: nothing may arrive in the block later
    int arrived = shca_gpu_finish(qp->device);
    return status == IBV_WC_SUCCESS ? arrived : status;
}

// Hands out the results: that of the first request is returned, the others' are kept for their
// turn. SHCA_AGAIN: only the engine's own thread can.
int shca_batch_pick_up(struct shca_qp *qp, const struct shca_mail *mail,
                       const struct shca_block *block)
{
    int first = IBV_WC_SUCCESS;
    for (uint32_t i = 0; i < mail->count; i++) {
        const struct shca_record *record = &block->records[i];
        struct shca_wqe *wqe = &qp->sq[(qp->exec + record->turn) % qp->sq_depth];
        if (i > mail->done)
            break; // it was not executed, and will be in its turn
        int status = i == mail->done ? (int)mail->status : IBV_WC_SUCCESS;
        if (status == IBV_WC_SUCCESS && record->kind != SHCA_RECORD_WRITE)
            status = shca_scatter(qp, wqe->sges, wqe->n_sge, record->turn ? 0 : qp->moved,
                                  block->data + record->data, record->bytes);
        if (status == SHCA_AGAIN)
            return status;
        wqe->early = record->turn != 0;
        wqe->early_status = status;
        if (!record->turn)
            first = status;
    }
    if (shca_gpu_finish(qp->device) != IBV_WC_SUCCESS)
        return IBV_WC_GENERAL_ERR;
    if (first == IBV_WC_SUCCESS)
        qp->moved += block->records[0].bytes;
    return first;
}

// ---- The target ----

static bool is_atomic(const struct shca_record *record)
{
    return record->kind == SHCA_RECORD_ADD || record->kind == SHCA_RECORD_CAS;
}

// Words of one size do not overlap, so that a row of them may be fetched before any is written.
static bool is_of_the_row(const struct shca_record *first, const struct shca_record *next)
{
    return is_atomic(next) && next->bytes == first->bytes;
}

static int read_or_write(struct shca_device *device, const struct shca_record *record, char *data)
{
    // The sender's NIC has checked it, but it may be gone since.
    struct shca_mr_entry *mr = shca_mr_begin(device->segment, record->key);
    if (!mr)
        return IBV_WC_REM_ACCESS_ERR;
    void *at = (void *)(uintptr_t)record->address;
    int status = record->kind == SHCA_RECORD_WRITE ? shca_gpu_write(device, at, data, record->bytes)
                                                   : shca_gpu_read(device, data, at, record->bytes);
    if (status != IBV_WC_SUCCESS)
        shca_mr_end(mr);
    return status;
}

// The word as the records before this one of the row leave it, if one of them changes it.
static uint64_t value_before(const struct shca_record *row, const uint64_t *after, uint32_t i,
                             uint64_t found)
{
    for (uint32_t k = i; k-- > 0;)
        if (row[k].address == row[i].address)
            return after[k];
    return found;
}

// Atomics in a row, *n of them or as many as there is access for: all words are fetched, then all
// are written. Nobody comes in between, since only this thread of this process touches the words
// for the device.
static int change_words(struct shca_device *device, const struct shca_record *row, uint32_t *n,
                        char *data)
{
    uint64_t after[SHCA_BATCH];
    uint32_t begun = 0;
    int status = IBV_WC_SUCCESS;
    while (begun < *n &&
           (status = read_or_write(device, &row[begun], data + row[begun].data)) == IBV_WC_SUCCESS)
        begun++;
    if (!begun)
        return status;
    *n = begun;
    status = shca_gpu_finish(device);
    for (uint32_t i = 0; i < begun && status == IBV_WC_SUCCESS; i++) {
        uint64_t old = 0;
        memcpy(&old, data + row[i].data, row[i].bytes);
        old = value_before(row, after, i, old);
        after[i] = shca_changed(&row[i].change, old);
        shca_change_answer(&row[i].change, old, data + row[i].data);
        status = shca_gpu_write(device, (void *)(uintptr_t)row[i].address, &after[i], row[i].bytes);
    }
    while (status != IBV_WC_SUCCESS && begun)
        shca_mr_end(&device->segment->mrs[row[--begun].key >> 16]);
    return status;
}

void shca_batch_begin(struct shca_device *device, struct shca_mail *mail, struct shca_block *block)
{
    int status = IBV_WC_SUCCESS;
    for (mail->done = 0; mail->done < mail->count && status == IBV_WC_SUCCESS;) {
        const struct shca_record *record = &block->records[mail->done];
        uint32_t n = 1;
        while (is_atomic(record) && mail->done + n < mail->count &&
               is_of_the_row(record, record + n))
            n++;
        status = is_atomic(record) ? change_words(device, record, &n, block->data)
                                   : read_or_write(device, record, block->data + record->data);
        mail->done += status == IBV_WC_SUCCESS ? n : 0;
    }
    mail->status = (uint32_t)status;
}

void shca_batch_end(struct shca_device *device, struct shca_mail *mail,
                    const struct shca_block *block, int status)
{
    for (uint32_t i = 0; i < mail->done; i++)
        shca_mr_end(&device->segment->mrs[block->records[i].key >> 16]);
    if (status == IBV_WC_SUCCESS)
        return;
    mail->status = (uint32_t)status;
    mail->done = 0;
}
