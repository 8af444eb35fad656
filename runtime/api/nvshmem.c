// SPDX-License-Identifier: BSD-3-Clause
// What gpushmem/compat/nvshmem.h calls beside the library's own functions: start and end, failures.
// docs/design/compatibility.md.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "api/compat.h"
#include "api/init.h"
#include "api/memory.h"
#include "gpu/gpu.h"
#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "job/job.h"

// ---- Failures ----

static int status_of(int code)
{
    switch (code) {
    case GPUSHMEM_OK: return NVSHMEMX_SUCCESS;
    case GPUSHMEM_ERR_INVALID:
    case GPUSHMEM_ERR_PE:
    case GPUSHMEM_ERR_ADDRESS:
    case GPUSHMEM_ERR_ALIGNMENT: return NVSHMEMX_ERROR_INVALID_VALUE;
    case GPUSHMEM_ERR_NO_MEMORY: return NVSHMEMX_ERROR_OUT_OF_MEMORY;
    case GPUSHMEM_ERR_UNSUPPORTED: return NVSHMEMX_ERROR_NOT_SUPPORTED;
    case GPUSHMEM_ERR_ASYMMETRY: return NVSHMEMX_ERROR_SYMMETRY;
    default: return NVSHMEMX_ERROR_INTERNAL;
    }
}

int gpushmem_nvshmem_failed(int status)
{
    gpsh_compat_failed("nvshmem");
    return status_of(status);
}

int gpushmem_nvshmem_void_failed(int status)
{
    gpsh_compat_lost("nvshmem");
    return status_of(status);
}

void gpushmem_nvshmem_zero(void)
{
    if (gpsh_last_error_code())
        gpsh_compat_failed("nvshmem");
}

static int fetch_after(const char *function, void *value, const void *source, size_t bytes, int pe,
                       gpushmem_stream_t stream)
{
    int status = gpsh_check_remote(function, source, bytes, pe);
    if (status == 0)
        status = gpsh_stream_drain(function, stream);
    return status < 0 ? status : gpushmem_getmem(value, source, bytes, pe);
}

void gpushmem_nvshmem_fetch(const char *function, void *value, const void *source, size_t bytes,
                            int pe, gpushmem_stream_t stream)
{
    if (fetch_after(function, value, source, bytes, pe, stream) == 0)
        return;
    memset(value, 0, bytes);
    gpsh_compat_lost("nvshmem");
}

// ---- The handle of kernels for those that the library does not launch: of the program's units
// ----

static struct {
    pthread_mutex_t lock;
    int (**functions)(void);
    size_t n;
} units = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Called while the program starts, or a library of it is loaded: what cannot be kept is told by
// the kernel's first call, which finds no handle.
void gpushmem_nvshmem_attach_by(int (*attach)(void))
{
    pthread_mutex_lock(&units.lock);
    int (**more)(void) = realloc(units.functions, (units.n + 1) * sizeof *more);
    if (more) {
        more[units.n++] = attach;
        units.functions = more;
    }
    pthread_mutex_unlock(&units.lock);
}

void gpushmem_nvshmem_attach_no_more(int (*attach)(void))
{
    pthread_mutex_lock(&units.lock);
    for (size_t i = 0; i < units.n; i++)
        if (units.functions[i] == attach)
            units.functions[i--] = units.functions[--units.n];
    pthread_mutex_unlock(&units.lock);
}

int gpushmem_nvshmem_attach(void)
{
    int status = 0;
    pthread_mutex_lock(&units.lock);
    for (size_t i = 0; i < units.n && !status; i++)
        status = units.functions[i]();
    pthread_mutex_unlock(&units.lock);
    return status;
}

// ---- Init ----

// What init finds by itself, and not in the arguments, it has logged already.
static bool init_has_said(void)
{
    const char *sentence = gpsh_last_error();
    return strncmp(sentence, "nvshmem", 7) != 0 && strncmp(sentence, "gpushmem_", 9) != 0;
}

static int init_failed(int status, bool said, bool told)
{
    gpsh_compat_init_failed("nvshmem", said, told);
    return status_of(status);
}

// All threads of the program may call: frameworks do so whatever level they ask for.
static int join(struct gpushmem_init_attr *attr)
{
    attr->thread_level = GPUSHMEM_THREAD_MULTIPLE;
    gpsh_memory_leave_blocks();
    gpsh_compat_begin("nvshmem");
    return gpsh_init_by_attr(attr, true);
}

static int join_by(enum gpsh_nvshmem_bootstrap way, void *communicator)
{
    struct gpushmem_bootstrap_functions functions;
    struct gpushmem_init_attr attr = {.functions = &functions};
    int status = way == GPSH_NVSHMEM_BY_MPI ? gpsh_nvshmem_mpi(communicator, &functions)
                                            : gpsh_nvshmem_shmem(&functions);
    return status ? status : join(&attr);
}

static int join_by_launcher(void)
{
    struct gpushmem_init_attr attr = {.uniqueid = NULL};
    enum gpsh_nvshmem_bootstrap way = gpsh_nvshmem_asked_bootstrap();
    return way == GPSH_NVSHMEM_BY_LAUNCHER ? join(&attr) : join_by(way, NULL);
}

static int join_by_id(const nvshmemx_uniqueid_args_t *args)
{
    struct gpushmem_uniqueid id;
    struct gpushmem_init_attr attr = {.uniqueid = &id, .rank = args->myrank, .n_pes = args->nranks};
    if (!args->id)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "nvshmemx_init_attr: no unique id (NULL); call "
                                               "nvshmemx_set_attr_uniqueid_args before");
    memcpy(&id, args->id, sizeof id);
    return join(&attr);
}

// A GPU by its number, where the program has begun with the initialiser: others leave anything
// there.
static void take_device(unsigned flags, const nvshmemx_init_attr_t *attr)
{
    const bool sound = attr && flags && attr->version == GPSH_NVSHMEM_VERSION_OF(*attr) &&
                       attr->args.version == GPSH_NVSHMEM_VERSION_OF(attr->args);
    gpsh_gpu_prefer(sound ? attr->args.cuda_device_id : -1);
}

// Reads only the part of attr that the flag names: programs leave the rest uninitialised.
static int join_as(unsigned flags, const nvshmemx_init_attr_t *attr)
{
    const char *wanted = flags & NVSHMEMX_INIT_WITH_UNIQUEID   ? "UNIQUEID"
                         : flags & NVSHMEMX_INIT_WITH_MPI_COMM ? "MPI_COMM"
                                                               : NULL;
    if (wanted && !attr)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "nvshmemx_init_attr: NVSHMEMX_INIT_WITH_%s needs attributes, which are "
                         "NULL",
                         wanted);
    if (flags == 0)
        return join_by_launcher();
    if (flags & NVSHMEMX_INIT_THREAD_PES)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "nvshmemx_init_attr: NVSHMEMX_INIT_THREAD_PES asks for PEs that are "
                         "threads; here each PE is a process");
    if (flags == NVSHMEMX_INIT_WITH_UNIQUEID)
        return join_by_id(&attr->args.uid_args);
    if (flags == NVSHMEMX_INIT_WITH_MPI_COMM)
        return join_by(GPSH_NVSHMEM_BY_MPI, attr->mpi_comm);
    if (flags == NVSHMEMX_INIT_WITH_SHMEM)
        return gpsh_job()->n_pes ? join_by_launcher() : join_by(GPSH_NVSHMEM_BY_SHMEM, NULL);
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "nvshmemx_init_attr: flags %u are not one of 0, NVSHMEMX_INIT_WITH_MPI_COMM "
                     "(2), _SHMEM (4), _UNIQUEID (8)",
                     flags);
}

// Everywhere, when init is complete. A program whose kernels cannot reach the heap may still do
// what needs none, and one without room for teams by ids all the rest.
static void attach(void)
{
    if (gpsh_nvshmem_meetings_begin() || gpushmem_nvshmem_attach())
        gpsh_compat_failed("nvshmem");
}

// `told`: the program learns what this returns.
static int init(unsigned flags, const nvshmemx_init_attr_t *attr, bool told)
{
    bool first = !gpsh_job()->n_pes && !gpsh_init_is_partial();
    int status = first ? gpsh_nvshmem_take_environment() : 0;
    if (status)
        return init_failed(status, false, told);
    if (first)
        take_device(flags, attr);
    status = join_as(flags, attr);
    if (status)
        return init_failed(status, init_has_said(), told);
    if (first && gpsh_job()->boot->my_pe == 0)
        gpsh_nvshmem_print_asked();
    if (gpsh_job()->n_pes)
        attach();
    // extensions of frameworks call init once more, or alone, and finalize never
    gpsh_init_may_exit();
    return 0;
}

int gpushmem_nvshmem_init(int requested, int *provided)
{
    if (requested < NVSHMEM_THREAD_SINGLE || requested > NVSHMEM_THREAD_MULTIPLE)
        return gpushmem_nvshmem_failed(
            gpsh_fail(GPUSHMEM_ERR_INVALID,
                      "nvshmem_init_thread: thread level %d is outside NVSHMEM_THREAD_SINGLE (0) "
                      ".. NVSHMEM_THREAD_MULTIPLE (3)",
                      requested));
    int status = init(0, NULL, provided != NULL);
    if (!status && provided)
        *provided = NVSHMEM_THREAD_MULTIPLE;
    return status;
}

int gpushmem_nvshmem_init_attr(unsigned int flags, const nvshmemx_init_attr_t *attr)
{
    return init(flags, attr, true);
}

int gpushmem_nvshmem_complete(int status)
{
    if (status != GPUSHMEM_ERR_STATE || !gpsh_init_is_partial())
        return 0;
    status = gpsh_init_complete();
    if (!status)
        attach();
    return !status;
}

int gpushmem_nvshmem_finalize(void)
{
    int status = gpsh_init_complete();
    if (!status)
        status = gpushmem_finalize();
    return gpushmem_nvshmem_lost(status);
}

int gpushmem_nvshmem_init_status(void)
{
    if (gpsh_init_is_partial())
        return NVSHMEM_STATUS_IS_BOOTSTRAPPED;
    return gpsh_job()->n_pes ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED;
}

void gpushmem_nvshmem_query_thread(int *provided)
{
    if (provided)
        *provided = NVSHMEM_THREAD_MULTIPLE;
}

int gpushmem_nvshmem_get_uniqueid(nvshmemx_uniqueid_t *id)
{
    struct gpushmem_uniqueid made;
    int status = id ? gpsh_nvshmem_take_environment()
                    : gpsh_fail(GPUSHMEM_ERR_INVALID,
                                "nvshmemx_get_uniqueid: there is no place for the id (NULL)");
    if (!status)
        status = gpushmem_get_uniqueid(&made);
    if (status)
        return gpushmem_nvshmem_failed(status);
    memcpy(id, &made, sizeof made);
    return 0;
}

// The attributes point to the id, as in NVSHMEM: it has to last until init.
int gpushmem_nvshmem_set_uniqueid(int rank, int n, const nvshmemx_uniqueid_t *id,
                                  nvshmemx_init_attr_t *attr)
{
    if (!id || !attr)
        return gpushmem_nvshmem_failed(gpsh_fail(GPUSHMEM_ERR_INVALID,
                                                 "nvshmemx_set_attr_uniqueid_args: the %s NULL",
                                                 id ? "attributes are" : "unique id is"));
    if (n < 1 || rank < 0 || rank >= n)
        return gpushmem_nvshmem_failed(gpsh_fail(
            GPUSHMEM_ERR_INVALID, "nvshmemx_set_attr_uniqueid_args: rank %d is not among 0 .. %d",
            rank, n - 1));
    attr->args.uid_args =
        (nvshmemx_uniqueid_args_t){GPSH_NVSHMEM_VERSION_OF(nvshmemx_uniqueid_args_t),
                                   (nvshmemx_uniqueid_t *)(uintptr_t)id, rank, n};
    return 0;
}

int gpushmem_nvshmem_set_mpi_comm(void *mpi_comm, nvshmemx_init_attr_t *attr)
{
    if (!attr)
        return gpushmem_nvshmem_failed(gpsh_fail(
            GPUSHMEM_ERR_INVALID, "nvshmemx_set_attr_mpi_comm_args: the attributes are NULL"));
    attr->mpi_comm = mpi_comm;
    return 0;
}

// Before the second step of init the job's PEs are known, and those of the node.
int gpushmem_nvshmem_early_pe(nvshmem_team_t team)
{
    if (!gpsh_init_is_partial())
        return -1;
    if (team == NVSHMEM_TEAM_WORLD)
        return gpsh_job()->boot->my_pe;
    return team == NVSHMEMX_TEAM_NODE || team == NVSHMEM_TEAM_SHARED ? gpsh_job()->boot->node_my_pe
                                                                     : -1;
}

int gpushmem_nvshmem_early_n(nvshmem_team_t team)
{
    if (!gpsh_init_is_partial())
        return -1;
    if (team == NVSHMEM_TEAM_WORLD)
        return gpsh_job()->boot->n_pes;
    return team == NVSHMEMX_TEAM_NODE || team == NVSHMEM_TEAM_SHARED ? gpsh_job()->boot->node_n_pes
                                                                     : -1;
}
