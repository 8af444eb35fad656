// SPDX-License-Identifier: BSD-3-Clause
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>

enum { FLOAT = 7, SUM = 0, SYMMETRIC = 1 };
enum { HANGS = 4 << 20 }; // broadcasts of registered buffers from so many bytes on, in NCCL 2.28
struct id {
    char bytes[128];
};

static struct {
    void *library, *communicator;
    void *unregistered; // a communicator that knows no buffers
    int (*get_id)(struct id *);
    int (*init)(void **communicator, int n, struct id, int rank);
    int (*destroy)(void *communicator);
    const char *(*error)(int code);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, gpushmem_stream_t);
    int (*all_gather)(const void *, void *, size_t, int, void *, gpushmem_stream_t);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, gpushmem_stream_t);
    int (*broadcast)(const void *, void *, size_t, int, int, void *, gpushmem_stream_t);
    int (*all_to_all)(const void *, void *, size_t, int, void *, gpushmem_stream_t);
    int (*send)(const void *, size_t, int, int, void *, gpushmem_stream_t);
    int (*receive)(void *, size_t, int, int, void *, gpushmem_stream_t);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*register_window)(void *communicator, void *buffer, size_t, void **window, int flags);
} nccl;

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "gpushmem perf: %s: %s\n", what, why);
    return GPUSHMEM_ERR_UNSUPPORTED;
}

static int check(int code, const char *what)
{
    return code ? complain(what, nccl.error(code)) : 0;
}

static int find(void *function, const char *name, bool required)
{
    *(void **)function = dlsym(nccl.library, name);
    return *(void **)function || !required ? 0 : complain("NCCL has no such function", name);
}

static int load(const char *library)
{
    nccl.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nccl.library)
        return complain("no NCCL", dlerror());
    int status = find(&nccl.get_id, "ncclGetUniqueId", true);
    status = status ? status : find(&nccl.init, "ncclCommInitRank", true);
    status = status ? status : find(&nccl.destroy, "ncclCommDestroy", true);
    status = status ? status : find(&nccl.error, "ncclGetErrorString", true);
    status = status ? status : find(&nccl.all_reduce, "ncclAllReduce", true);
    status = status ? status : find(&nccl.all_gather, "ncclAllGather", true);
    status = status ? status : find(&nccl.reduce_scatter, "ncclReduceScatter", true);
    status = status ? status : find(&nccl.broadcast, "ncclBroadcast", true);
    status = status ? status : find(&nccl.send, "ncclSend", true);
    status = status ? status : find(&nccl.receive, "ncclRecv", true);
    status = status ? status : find(&nccl.group_start, "ncclGroupStart", true);
    status = status ? status : find(&nccl.group_end, "ncclGroupEnd", true);
    status = status ? status : find(&nccl.all_to_all, "ncclAlltoAll", false); // since 2.28
    return status ? status : find(&nccl.register_window, "ncclCommWindowRegister", false);
}

// PE 0's number of the job, told to the others through the heap.
static int share_id(struct id *id)
{
    struct id *shared = gpushmem_calloc(1, sizeof *shared);
    int status = shared ? 0 : GPUSHMEM_ERR_NO_MEMORY;
    if (!status && gpushmem_my_pe() == 0)
        status = check(nccl.get_id(id), "ncclGetUniqueId");
    for (int pe = 0; pe < gpushmem_n_pes() && gpushmem_my_pe() == 0 && !status; pe++)
        status = gpushmem_putmem(shared, id, sizeof *id, pe);
    int met = gpushmem_barrier_all();
    if (!status && !met)
        status = gpushmem_getmem(id, shared, sizeof *id, gpushmem_my_pe());
    gpushmem_free(shared);
    return status ? status : met;
}

static void register_buffers(void *source, void *target, size_t bytes)
{
    void *window;
    int code = GPUSHMEM_ERR_UNSUPPORTED;
    if (nccl.register_window)
        code = nccl.register_window(nccl.communicator, source, bytes, &window, SYMMETRIC);
    if (!code)
        code = nccl.register_window(nccl.communicator, target, bytes, &window, SYMMETRIC);
    if (gpushmem_my_pe() == 0)
        fprintf(stderr, "gpushmem perf: NCCL's buffers are %sregistered\n", code ? "not " : "");
}

int perf_nccl_open(const char *library, void *source, void *target, size_t bytes)
{
    struct id id;
    int status = load(library);
    void **communicators[] = {&nccl.communicator, &nccl.unregistered};
    for (int i = 0; i < 2 && !status; i++) {
        status = share_id(&id);
        if (!status)
            status = check(nccl.init(communicators[i], gpushmem_n_pes(), id, gpushmem_my_pe()),
                           "ncclCommInitRank");
    }
    if (!status && bytes)
        register_buffers(source, target, bytes);
    return status;
}

bool perf_nccl_is_open(void)
{
    return nccl.communicator != NULL;
}

static int all_to_all(char *target, const char *source, size_t count, gpushmem_stream_t stream)
{
    if (nccl.all_to_all)
        return nccl.all_to_all(source, target, count, FLOAT, nccl.communicator, stream);
    int code = nccl.group_start();
    for (int pe = 0; pe < gpushmem_n_pes() && !code; pe++) {
        size_t at = (size_t)pe * count * sizeof(float);
        code = nccl.send(source + at, count, FLOAT, pe, nccl.communicator, stream);
        if (!code)
            code = nccl.receive(target + at, count, FLOAT, pe, nccl.communicator, stream);
    }
    int end = nccl.group_end();
    return code ? code : end;
}

int perf_nccl_enqueue(enum perf_nccl_kind kind, void *target, const void *source, size_t count,
                      gpushmem_stream_t stream)
{
    void *all = nccl.communicator;
    switch (kind) {
    case PERF_NCCL_ALL_REDUCE:
        return check(nccl.all_reduce(source, target, count, FLOAT, SUM, all, stream),
                     "ncclAllReduce");
    case PERF_NCCL_ALL_GATHER:
        return check(nccl.all_gather(source, target, count, FLOAT, all, stream), "ncclAllGather");
    case PERF_NCCL_REDUCE_SCATTER:
        return check(nccl.reduce_scatter(source, target, count, FLOAT, SUM, all, stream),
                     "ncclReduceScatter");
    case PERF_NCCL_BROADCAST:
        if (count * sizeof(float) >= HANGS)
            all = nccl.unregistered;
        return check(nccl.broadcast(source, target, count, FLOAT, 0, all, stream), "ncclBroadcast");
    default: return check(all_to_all(target, source, count, stream), "ncclAlltoAll");
    }
}

void perf_nccl_close(void)
{
    if (nccl.unregistered)
        nccl.destroy(nccl.unregistered);
    if (nccl.communicator)
        nccl.destroy(nccl.communicator);
    nccl.communicator = nccl.unregistered = NULL;
}
