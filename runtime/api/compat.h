// SPDX-License-Identifier: BSD-3-Clause
// What lies under the compatibility headers of OpenSHMEM and NVSHMEM.
#ifndef GPSH_COMPAT_H
#define GPSH_COMPAT_H

#include <stdbool.h>

#include "gpushmem/bootstrap.h"
#include "gpushmem/stream.h"
#include "gpushmem/team.h"

// ---- Failures of functions that return none: they are logged ----

// The program began with that header's init, so that each failure is logged under its name there.
void gpsh_compat_begin(const char *prefix);

// Who called init tells of what calls return (struct gpushmem_init_attr).
void gpsh_caller_tells_failures(void);
// True after either of these: the library itself logs nothing of a status that it returns.
bool gpsh_failures_are_told(void);

// A call of subsystem `prefix` ("shmem", "nvshmem") returns that it has failed: logs this thread's
// last failure, unless it was said or one of its kind was logged, and clears it. Names gpushmem_X
// in the sentence become prefix_X, which is what the program called. lost: the call returns
// nothing, or a value, and GPUSHMEM_ON_ERROR holds.
void gpsh_compat_failed(const char *prefix);
void gpsh_compat_lost(const char *prefix);

// Init has failed: `said` and logged why, `told` to the program, which otherwise goes on unless
// GPUSHMEM_ON_ERROR=abort is set. Clears the failure.
void gpsh_compat_init_failed(const char *prefix, bool said, bool told);

// A call that returns a value has failed, and its result says nothing: GPUSHMEM_ON_ERROR holds.
// `shared`: the headers of compat call this one, too, and the program knows it by their name if it
// began with them.
void gpsh_value_failed(bool shared) __attribute__((cold));

// ---- Environment variables as settings of gpushmem ----

// The size of a heap as OpenSHMEM's variables write it, a number, maybe with a fraction, and maybe
// a suffix K, M, G or T, becomes the setting. One below the least that GPUSHMEM_HEAP_SIZE may be
// becomes that: programs ask for what they need. GPUSHMEM_ERR_SETTING: the text is no size, or less
// than 1 or more than 1e15 bytes. Between gpsh_setting_aliases_begin and _end.
int gpsh_compat_heap_size(const char *variable, const char *text);

// Gives the settings that SHMEM_* variables stand for aliases, for the next init.
// GPUSHMEM_ERR_SETTING: a value is malformed.
int gpsh_shmem_take_environment(void);

// A variable of NVSHMEM (nvshmem_env.def), or of OpenSHMEM.
struct gpsh_compat_variable {
    const char *name;
    const char *way;     // in words, for a reader
    const char *setting; // "" or GPUSHMEM_...
    const char *help;
};

// False if the table has fewer rows.
bool gpsh_nvshmem_variable(int row, struct gpsh_compat_variable *out);
bool gpsh_shmem_variable(int row, struct gpsh_compat_variable *out);

// Gives the settings that NVSHMEM_* variables stand for aliases, for the next init. Logs variables
// that are unknown or have no effect. GPUSHMEM_ERR_SETTING: a value is malformed.
int gpsh_nvshmem_take_environment(void);

// Collective, at the end of init: where PEs meet that make teams by ids. 0 or a negative status.
int gpsh_nvshmem_meetings_begin(void);

// What NVSHMEM_VERSION and NVSHMEM_INFO ask to print.
void gpsh_nvshmem_print_asked(void);

enum gpsh_nvshmem_bootstrap {
    GPSH_NVSHMEM_BY_LAUNCHER,
    GPSH_NVSHMEM_BY_MPI,
    GPSH_NVSHMEM_BY_SHMEM,
};
// What NVSHMEM_BOOTSTRAP asks for.
enum gpsh_nvshmem_bootstrap gpsh_nvshmem_asked_bootstrap(void);

// ---- Joining with the processes of an MPI communicator, or of an OpenSHMEM job, whose library the
// program has: its functions are looked for in the process ----

// `communicator` is the address of an MPI_Comm; NULL: MPI_COMM_WORLD. *out is good until the next
// call of this thread. A negative status with a sentence where there is no MPI, or it is not
// initialised.
int gpsh_nvshmem_mpi(void *communicator, struct gpushmem_bootstrap_functions *out);
// The same for the PEs of an OpenSHMEM job.
int gpsh_nvshmem_shmem(struct gpushmem_bootstrap_functions *out);

// ---- Teams ----

// gpushmem_team_split_strided for programs of NVSHMEM, which make disjoint teams in one call: PEs
// may pass different ranks, as long as the members of each new team pass the same.
int gpsh_team_split_apart(gpushmem_team_t parent_team, int start, int stride, int size,
                          const struct gpushmem_team_config *config, long config_mask,
                          gpushmem_team_t *new_team);

// ---- Streams ----

// Returns when everything in `stream` has ended. `function` is for the sentence of a failure.
int gpsh_stream_drain(const char *function, gpushmem_stream_t stream);

#endif
