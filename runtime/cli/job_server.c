// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, asprintf
#include "job_server.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bootstrap/pmix_reply.h"
#include "core/launcher_log.h"
#include "door.h"
#include "job_info.h"
#include "say.h"

enum { LEAST_ROOM = 16 << 20, LEAST_FILES = 64 }; // more than a small job's files take

static struct {
    int event_pipe; // write end
    pmix_nspace_t nspace;
    char hostname[256];
} server = {.event_pipe = -1};

// Waits for the answer to a call. `called` is what the call itself returned: no answer comes unless
// that is PMIX_SUCCESS.
static pmix_status_t answer(struct gpsh_pmix_reply *r, pmix_status_t called)
{
    pmix_status_t rc = called == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : called;
    if (called == PMIX_SUCCESS && gpsh_pmix_reply_wait(r, -1))
        rc = gpsh_pmix_reply_get(r, NULL);
    gpsh_pmix_reply_destroy(r);
    return rc;
}

// A struct gpsh_server_event is smaller than PIPE_BUF: the write is atomic.
static void post_event(enum gpsh_server_event_kind kind, const pmix_proc_t *proc, int status,
                       const char *message)
{
    struct gpsh_server_event e = {.kind = kind, .pe = (int)proc->rank, .status = status};
    snprintf(e.message, sizeof(e.message), "%s", message ? message : "");
    while (write(server.event_pipe, &e, sizeof(e)) < 0 && errno == EINTR)
        continue;
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t n_info, pmix_op_cbfunc_t reply, void *reply_arg)
{
    post_event(GPSH_SERVER_CONNECTED, proc, 0, NULL);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t reply,
                                  void *reply_arg)
{
    post_event(GPSH_SERVER_FINALIZED, proc, 0, NULL);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status,
                              const char message[], pmix_proc_t procs[], size_t n_procs,
                              pmix_op_cbfunc_t reply, void *reply_arg)
{
    post_event(GPSH_SERVER_ABORT, proc, status, message);
    return PMIX_OPERATION_SUCCEEDED;
}

static void release_data(void *data)
{
    free(data);
}

// Every PE is a client of this one server, so what it collected is already everything.
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[],
                              size_t n_info, char *data, size_t n_data, pmix_modex_cbfunc_t reply,
                              void *reply_arg)
{
    reply(PMIX_SUCCESS, data, n_data, reply_arg, release_data, data);
    return PMIX_SUCCESS;
}

static pmix_server_module_t callbacks = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
};

static pmix_status_t init_library(const char *dir)
{
    struct gpsh_info_list list;
    pmix_rank_t rank = 0;
    bool no = false;
    gpsh_info_list_begin(&list);
    gpsh_info_list_add(&list, PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    gpsh_info_list_add(&list, PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    gpsh_info_list_add(&list, PMIX_SERVER_NSPACE, "gpushmem-run", PMIX_STRING);
    gpsh_info_list_add(&list, PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    gpsh_info_list_add(&list, PMIX_SERVER_TOOL_SUPPORT, &no, PMIX_BOOL);
    gpsh_info_list_add(&list, PMIX_HOSTNAME, server.hostname, PMIX_STRING);

    pmix_data_array_t infos;
    pmix_status_t rc = gpsh_info_list_end(&list, &infos);
    if (rc != PMIX_SUCCESS)
        return rc;
    rc = PMIx_server_init(&callbacks, infos.array, infos.size);
    PMIX_DATA_ARRAY_DESTRUCT(&infos);
    return rc;
}

static pmix_status_t register_job(const struct gpsh_job_server *s, const char *dir)
{
    struct gpsh_job_layout layout = {.nspace = server.nspace,
                                     .hostname = server.hostname,
                                     .dir = dir,
                                     .n_pes = s->n_pes,
                                     .n_nodes = s->n_nodes};
    pmix_data_array_t infos;
    pmix_status_t rc = gpsh_job_info_build(&layout, &infos);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct gpsh_pmix_reply *r = gpsh_pmix_reply_create();
    rc = PMIX_ERR_NOMEM;
    if (r)
        rc = answer(r, PMIx_server_register_nspace(server.nspace, s->n_pes, infos.array, infos.size,
                                                   gpsh_pmix_reply_status, r));
    PMIX_DATA_ARRAY_DESTRUCT(&infos);
    return rc;
}

static pmix_status_t register_pe(int pe)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, server.nspace, (pmix_rank_t)pe);
    struct gpsh_pmix_reply *r = gpsh_pmix_reply_create();
    if (!r)
        return PMIX_ERR_NOMEM;
    return answer(r, PMIx_server_register_client(&proc, geteuid(), getegid(), NULL,
                                                 gpsh_pmix_reply_status, r));
}

// A client joins by naming its job: the server asks for no other proof. So the name is a secret; it
// must not appear in a command line, a file name that others can list, or a message.
static int choose_nspace(void)
{
    char nspace[sizeof(server.nspace)], secret[2 * GPSH_SECRET_BYTES + 1];
    int error = gpsh_door_secret(secret);
    if (error) {
        gpsh_cli_say("run", "cannot get random numbers from the kernel: %s", strerror(error));
        return -1;
    }
    snprintf(nspace, sizeof(nspace), "gpushmem-%s", secret);
    PMIX_LOAD_NSPACE(server.nspace, nspace);
    return 0;
}

// libpmix listens on TCP.
static bool has_address(void)
{
    struct ifaddrs *all, *one;
    if (getifaddrs(&all))
        return true; // nobody knows
    for (one = all; one; one = one->ifa_next)
        if (one->ifa_addr && (one->ifa_flags & IFF_UP) &&
            (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6))
            break;
    freeifaddrs(all);
    return one != NULL;
}

// libpmix keeps the job's data in files of the session directory, and says no more than "ERROR".
static const char *lack_of(const char *dir)
{
    if (!has_address())
        return "; no network interface has an address here, not even lo: `gpushmem doctor` "
               "explains it under pmix";
    struct rlimit limit;
    struct statvfs fs;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < LEAST_ROOM)
        return "; the limit of file sizes is low: raise it (ulimit -f)";
    if (statvfs(dir, &fs) == 0 && fs.f_frsize &&
        (fs.f_bavail < LEAST_ROOM / fs.f_frsize || (fs.f_files && fs.f_favail < LEAST_FILES)))
        return "; the place for temporary files is full: set TMPDIR to one with room";
    return "";
}

int gpsh_job_server_start(struct gpsh_job_server *s, const char *dir, int n_pes, int n_nodes)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        gpsh_cli_say("run", "cannot make a pipe: %s", strerror(errno));
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *s = (struct gpsh_job_server){.event_fd = ends[0], .n_pes = n_pes, .n_nodes = n_nodes};
    server.event_pipe = ends[1];
    gethostname(server.hostname, sizeof(server.hostname) - 1);
    if (choose_nspace() < 0)
        return -1;

    const char *step = "start";
    pmix_status_t rc = init_library(dir);
    if (rc == PMIX_SUCCESS) {
        step = "describe the job to";
        rc = register_job(s, dir);
    }
    for (int pe = 0; pe < n_pes && rc == PMIX_SUCCESS; pe++) {
        step = "announce a PE to";
        rc = register_pe(pe);
    }
    if (rc == PMIX_SUCCESS)
        return 0;
    gpsh_cli_say("run", "cannot %s the PMIx server: %s (%d)%s", step, PMIx_Error_string(rc),
                 (int)rc, lack_of(dir));
    return -1;
}

static bool environment_set(char ***environment, size_t *n, const char *name, const char *value)
{
    char *entry;
    if (asprintf(&entry, "%s=%s", name, value) < 0)
        return false;
    size_t length = strlen(name) + 1;
    for (size_t i = 0; i < *n; i++) {
        if (strncmp((*environment)[i], entry, length) == 0) {
            free((*environment)[i]);
            (*environment)[i] = entry;
            return true;
        }
    }
    char **grown = realloc(*environment, (*n + 2) * sizeof(*grown));
    if (!grown) {
        free(entry);
        return false;
    }
    grown[(*n)++] = entry;
    grown[*n] = NULL;
    *environment = grown;
    return true;
}

static char **environment_copy(char **base, size_t *n)
{
    for (*n = 0; base[*n];)
        ++*n;
    char **copy = calloc(*n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < *n; i++) {
        copy[i] = strdup(base[i]);
        if (!copy[i]) {
            gpsh_environment_free(copy);
            return NULL;
        }
    }
    return copy;
}

void gpsh_environment_free(char **environment)
{
    for (size_t i = 0; environment && environment[i]; i++)
        free(environment[i]);
    free(environment);
}

// What wrapper scripts want to know, and, if nodes are pretended, the node that a client believes
// to be on.
static bool environment_add_place(const struct gpsh_job_server *s, int pe, char ***environment,
                                  size_t *n)
{
    int node = gpsh_job_server_node_of(s, pe), first = pe, end = pe + 1;
    while (first > 0 && gpsh_job_server_node_of(s, first - 1) == node)
        first--;
    while (end < s->n_pes && gpsh_job_server_node_of(s, end) == node)
        end++;
    const struct {
        const char *name;
        int value;
    } numbers[] = {{"GPUSHMEM_RUN_PE", pe},
                   {"GPUSHMEM_RUN_LOCAL_PE", pe - first},
                   {"GPUSHMEM_RUN_LOCAL_SIZE", end - first}};
    char text[32];
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(text, sizeof(text), "%d", numbers[i].value);
        if (!environment_set(environment, n, numbers[i].name, text))
            return false;
    }
    gpsh_job_node_name(text, sizeof(text), node);
    return s->n_nodes == 1 || environment_set(environment, n, "PMIX_HOSTNAME", text);
}

char **gpsh_job_server_environment(const struct gpsh_job_server *s, int pe, char **base,
                                   const char *log)
{
    size_t n;
    char **environment = environment_copy(base, &n);
    if (!environment)
        goto err_no_memory;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, server.nspace, (pmix_rank_t)pe);
    pmix_status_t rc = PMIx_server_setup_fork(&proc, &environment);
    if (rc != PMIX_SUCCESS) {
        gpsh_cli_say("run", "cannot set up the environment of PE %d: %s", pe,
                     PMIx_Error_string(rc));
        goto err_free_environment;
    }
    for (n = 0; environment[n];)
        n++;
    if (environment_add_place(s, pe, &environment, &n) &&
        (!log || environment_set(&environment, &n, GPSH_LAUNCHER_LOG, log)))
        return environment;
    gpsh_cli_say("run", "out of memory for the environment of PE %d", pe);

err_free_environment:
    gpsh_environment_free(environment);
    return NULL;
err_no_memory:
    gpsh_cli_say("run", "out of memory for the environment of PE %d", pe);
    return NULL;
}

int gpsh_job_server_node_of(const struct gpsh_job_server *s, int pe)
{
    return gpsh_job_node_of(pe, s->n_pes, s->n_nodes);
}

// The library keeps pointing at what PMIx_Notify_event got until its callback runs.
struct announcement {
    pmix_proc_t proc;
    pmix_info_t info[1];
};

static void announcement_done(pmix_status_t status, void *arg)
{
    struct announcement *a = arg;
    PMIX_INFO_DESTRUCT(&a->info[0]);
    free(a);
}

void gpsh_job_server_announce_death(const struct gpsh_job_server *s, int pe)
{
    struct announcement *a = calloc(1, sizeof(*a));
    if (!a)
        return;
    PMIX_LOAD_PROCID(&a->proc, server.nspace, (pmix_rank_t)pe);
    PMIX_INFO_LOAD(&a->info[0], PMIX_EVENT_AFFECTED_PROC, &a->proc, PMIX_PROC);
    pmix_status_t rc = PMIx_Notify_event(PMIX_ERR_PROC_ABORTED, &a->proc, PMIX_RANGE_LOCAL, a->info,
                                         1, announcement_done, a);
    if (rc != PMIX_SUCCESS)
        announcement_done(rc, a);
}
