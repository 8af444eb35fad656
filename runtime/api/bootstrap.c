// SPDX-License-Identifier: BSD-3-Clause
// The public ways to start without a launcher.
#include "gpushmem/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/compat.h"
#include "api/init.h"
#include "bootstrap/bootstrap_ways.h"
#include "core/config.h"
#include "core/error.h"
#include "job/job.h"

int gpushmem_get_uniqueid(gpushmem_uniqueid_t *id)
{
    struct gpsh_settings settings;
    if (!id)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "gpushmem_get_uniqueid: no place for the id (NULL)");
    int status = gpsh_init_standard_streams(); // before sockets take their place
    // Of all settings only those of the bootstrap are read here: init reads the others, and has its
    // say about them once.
    if (!status)
        status = gpsh_settings_read_process("GPUSHMEM_BOOTSTRAP_", &settings);
    if (status)
        return status;
    status =
        gpsh_tcp_rendezvous_start(settings.bootstrap_interface, settings.bootstrap_timeout_ms, id);
    gpsh_settings_clear(&settings);
    return status;
}

// What rank 0 tells the others: its id, or why it has none.
struct broadcast_word {
    int status;
    gpushmem_uniqueid_t id;
    char sentence[256];
};

static int function_failed(const char *which, int code)
{
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                     "the program's function %s returned %d, where 0 is success", which, code);
}

static int broadcast_id(const struct gpushmem_bootstrap_functions *f, int rank,
                        gpushmem_uniqueid_t *id)
{
    struct broadcast_word word = {.status = 0};
    if (rank == 0) {
        word.status = gpushmem_get_uniqueid(&word.id);
        snprintf(word.sentence, sizeof word.sentence, "%.*s", (int)sizeof word.sentence - 1,
                 word.status ? gpsh_last_error() : "");
    }
    int code = f->broadcast(f->communicator, &word, sizeof word);
    if (code)
        return function_failed("broadcast", code);
    word.sentence[sizeof word.sentence - 1] = '\0';
    if (word.status)
        return rank == 0 ? word.status
                         : gpsh_fail(word.status < 0 ? word.status : GPUSHMEM_ERR_BOOTSTRAP,
                                     "rank 0 has no unique id: %s", word.sentence);
    *id = word.id;
    return 0;
}

static int join_by_functions(const struct gpushmem_bootstrap_functions *f, gpushmem_uniqueid_t *id,
                             struct gpsh_join *join)
{
    if (!f->rank || !f->size || !f->broadcast)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_init_attr: functions needs rank, size and broadcast; one of "
                         "them is NULL");
    int code = f->rank(f->communicator, &join->rank);
    if (code)
        return function_failed("rank", code);
    code = f->size(f->communicator, &join->n_pes);
    if (code)
        return function_failed("size", code);
    join->id = id;
    return gpsh_job()->n_pes > 0
               ? 0
               : broadcast_id(f, join->rank, id); // joined already: no id is needed
}

// What a later version's header has and this library does not know must not be asked for.
static bool is_unset(const void *from, size_t bytes)
{
    const unsigned char *byte = from;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i])
            return false;
    return true;
}

int gpsh_init_by_attr(const struct gpushmem_init_attr *attr, bool in_two_steps)
{
    gpushmem_uniqueid_t id;
    if (attr->uniqueid && attr->functions)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_init_attr: uniqueid and functions are both set; one of them "
                         "says how to join");
    struct gpsh_join join = {.id = attr->uniqueid,
                             .rank = attr->rank,
                             .n_pes = attr->n_pes,
                             .in_two_steps = in_two_steps};
    int status = attr->functions ? join_by_functions(attr->functions, &id, &join) : 0;
    return status ? status : gpsh_init_as("gpushmem_init_attr", &join, attr->thread_level, NULL);
}

int gpushmem_init_attr_sized(const struct gpushmem_init_attr *attr, size_t size)
{
    enum { FIRST_VERSION = sizeof(struct gpushmem_init_attr) };
    struct gpushmem_init_attr known = {.uniqueid = NULL};
    if (!attr || size < FIRST_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_init_attr: %s; pass a struct gpushmem_init_attr and its sizeof",
                         attr ? "the struct is smaller than that of any version" : "NULL");
    memcpy(&known, attr, sizeof known);
    if (!is_unset((const char *)attr + sizeof known, size - sizeof known))
        return gpsh_fail(
            GPUSHMEM_ERR_UNSUPPORTED,
            "gpushmem_init_attr: the program was compiled with a later gpushmem.h, and "
            "sets what this library (%d.%d) does not know: install a later one",
            GPUSHMEM_VERSION_MAJOR, GPUSHMEM_VERSION_MINOR);
    if (known.tells_failures)
        gpsh_caller_tells_failures();
    return gpsh_init_by_attr(&known, false);
}

int gpushmem_init_with_uniqueid(const gpushmem_uniqueid_t *id, int rank, int n_pes)
{
    const struct gpushmem_init_attr attr = {.uniqueid = id, .rank = rank, .n_pes = n_pes};
    if (!id)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "gpushmem_init_with_uniqueid: the id is NULL");
    return gpushmem_init_attr(&attr);
}

int gpushmem_init_with_functions(const struct gpushmem_bootstrap_functions *functions)
{
    const struct gpushmem_init_attr attr = {.functions = functions};
    if (!functions)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_init_with_functions: the functions are NULL");
    return gpushmem_init_attr(&attr);
}
