// SPDX-License-Identifier: BSD-3-Clause
// A framework that loads libnvshmem_host.so.3 by name, and whose processes find each other by a
// unique id, as those of torchrun do: each calls from a thread of its own.
#define NVSHMEM_HOSTLIB_ONLY
#include <dlfcn.h>
#include <host/nvshmem_api.h>
#include <host/nvshmemx_api.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

enum { PES = 3 };

// The functions that the framework uses, with the types of the header.
#define USED(X)                                                                                    \
    X(nvshmemx_hostlib_init_attr)                                                                  \
    X(nvshmemx_hostlib_finalize)                                                                   \
    X(nvshmemx_get_uniqueid)                                                                       \
    X(nvshmemx_set_attr_uniqueid_args)                                                             \
    X(nvshmemx_init_status)                                                                        \
    X(nvshmem_my_pe)                                                                               \
    X(nvshmem_n_pes)                                                                               \
    X(nvshmem_malloc)                                                                              \
    X(nvshmem_free)                                                                                \
    X(nvshmem_ptr)                                                                                 \
    X(nvshmem_barrier_all)                                                                         \
    X(nvshmemx_barrier_all_on_stream)                                                              \
    X(nvshmem_int_p)                                                                               \
    X(nvshmemx_float_sum_reduce_on_stream)                                                         \
    X(nvshmemx_cumodule_init)                                                                      \
    X(nvshmemx_collective_launch)
#define POINTER(name) decltype(&::name) name;
struct table {
    USED(POINTER)
} used;

void *look_up(void *handle, const char *name)
{
    void *found = handle ? dlsym(handle, name) : nullptr;
    if (!found)
        fprintf(stderr, "no %s\n", name);
    return found;
}

bool load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
#define LOAD(name) used.name = (decltype(used.name))look_up(handle, #name);
    USED(LOAD)
#define MISSING(name) || !used.name
    return !(false USED(MISSING));
}

#define CHECK(condition)                                                                           \
    if (!(condition)) {                                                                            \
        fprintf(stderr, "rank %d: line %d: not true: %s\n", rank, __LINE__, #condition);           \
        _exit(1);                                                                                  \
    }

void peer(int rank, nvshmemx_uniqueid_t id)
{
    nvshmemx_init_attr_t attr;
    memset(&attr, 0xaa, sizeof attr); // what programs leave on the stack
    CHECK(used.nvshmemx_set_attr_uniqueid_args(rank, PES, &id, &attr) == 0);
    CHECK(used.nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
    CHECK(used.nvshmemx_init_status() >= 2 && used.nvshmem_my_pe() == rank);
    float *numbers = (float *)used.nvshmem_malloc(64);
    CHECK(numbers && used.nvshmem_ptr(numbers, rank) == numbers);
    numbers[0] = (float)rank;
    used.nvshmem_barrier_all();
    CHECK(used.nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, numbers + 1, numbers, 1,
                                                   nullptr) == 0);
    CHECK(numbers[1] == 3);
    used.nvshmem_int_p((int *)numbers + 2, rank + 10, (rank + 1) % PES);
    used.nvshmemx_barrier_all_on_stream(nullptr);
    CHECK(((int *)numbers)[2] == (rank + PES - 1) % PES + 10);
    used.nvshmem_free(numbers);
    used.nvshmemx_hostlib_finalize();
    CHECK(used.nvshmemx_init_status() == 0);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2 || !load(argv[1]))
        return 1;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    int pipes[PES][2];
    pid_t children[PES];
    for (int rank = 0; rank < PES; rank++) {
        if (pipe(pipes[rank]))
            return 1;
        if ((children[rank] = fork()) == 0) {
            if (read(pipes[rank][0], &id, sizeof id) != (ssize_t)sizeof id)
                _exit(1);
            std::thread(peer, rank, id).join();
            _exit(0);
        }
    }
    // After the forks: what makes the id has threads.
    int failed = used.nvshmemx_get_uniqueid(&id) != 0;
    for (int rank = 0; rank < PES; rank++)
        failed |= write(pipes[rank][1], &id, sizeof id) != (ssize_t)sizeof id;
    for (int rank = 0; rank < PES; rank++) {
        int status;
        failed |= waitpid(children[rank], &status, 0) < 0 || status != 0;
    }
    puts(failed ? "by_name: failed" : "by_name: ok");
    return failed;
}
