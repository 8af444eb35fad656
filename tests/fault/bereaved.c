// SPDX-License-Identifier: BSD-3-Clause
// The last PE dies at a certain point; the others notice, lose nothing of what they send each
// other, and leave the job together. Run by at least 3 PEs under GPUSHMEM_ON_PE_FAILURE=notify.
//   bereaved CASE
//     unborn    before it has joined the job: init of the others fails, and names it
//     handover  in init, before it has handed its memory to the others
//     greeting  in init, before it has sent the others a datagram, which they wait for
//     mourning  when all know, PE 0 leaves at once; the others still work with it after a while
//     leaving   in finalize, which PE 0 is in and the others are not
//     reminded  as mourning; what PE 0 sends from finalize, when its first word has arrived, is on
//               its way until the PE that it is for has left (over the software HCA)
//     parting   as mourning; PE 1 dies in finalize, when it has told PE 0, which comes there later
#define _GNU_SOURCE // usleep, RTLD_DEFAULT, RTLD_NEXT
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../pes/check.h"

enum { BYTES = 20000, WHILE_US = 400000 };

static struct {
    uint64_t never, sum, ready[8];
    uint32_t narrow;
    char piece[8][BYTES];
} * shared;
static char back[BYTES];

static bool names(int dead)
{
    char name[16];
    snprintf(name, sizeof name, "PE %d", dead);
    return gpushmem_last_error_code() == GPUSHMEM_ERR_PE_FAILED &&
           strstr(gpushmem_last_error(), name) != NULL;
}

static void *die_soon(void *unused)
{
    (void)unused;
    usleep(WHILE_US / 2);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void die_in_finalize(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, die_soon, NULL) == 0);
    gpushmem_finalize();
    pause();
}

static void survives(int me)
{
    printf("PE %d survives: %s\n", me, gpushmem_last_error());
    fflush(stdout);
}

// A reminder is due half a second after the first word.
static void *hold_later(void *bytes)
{
    usleep(WHILE_US / 2);
    atomic_store((_Atomic uint64_t *)bytes, sizeof(uint64_t));
    usleep(4 * WHILE_US);
    atomic_store((_Atomic uint64_t *)bytes, 0);
    return NULL;
}

static void hold_what_follows(void)
{
    pthread_t thread;
    void *bytes = dlsym(RTLD_DEFAULT, "gpushmem_softhca_hold_bytes");
    CHECK(bytes && pthread_create(&thread, NULL, hold_later, bytes) == 0);
}

static bool dies_in_handover;

// The library's calls come here.
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
                                                       int flags)
{
    if (dies_in_handover && message->msg_controllen)
        kill(getpid(), SIGKILL);
    return syscall(SYS_sendmsg, fd, message, flags);
}

static bool dies_in_greeting;

// Of the path that a PE's first datagram to another one takes.
__attribute__((visibility("default"))) struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
                                                                    struct ibv_ah_attr *attr)
{
    if (dies_in_greeting)
        kill(getpid(), SIGKILL);
    struct ibv_ah *(*next)(struct ibv_pd *, struct ibv_ah_attr *);
    *(void **)&next = dlsym(RTLD_NEXT, "ibv_create_ah");
    return next(pd, attr);
}

static void unborn(int me, int dead, const char *moment)
{
    dies_in_handover = me == dead && strcmp(moment, "handover") == 0;
    dies_in_greeting = me == dead && strcmp(moment, "greeting") == 0;
    if (me == dead && strcmp(moment, "unborn") == 0)
        kill(getpid(), SIGKILL);
    CHECK_THAT(gpushmem_init() < 0 && names(dead), "%s", gpushmem_last_error());
    survives(me);
}

// With every survivor but this one.
static void work(int me, int dead)
{
    char source[BYTES];
    fill(source, BYTES, (unsigned)me);
    for (int pe = 0; pe < dead; pe++) {
        if (pe == me)
            continue;
        CHECK_OK(gpushmem_putmem(shared->piece[me], source, BYTES, pe));
        CHECK_OK(gpushmem_uint64_atomic_add(&shared->sum, 1, pe));
        CHECK_OK(gpushmem_uint32_atomic_add(&shared->narrow, 1, pe));
        CHECK_OK(gpushmem_getmem(back, shared->piece[me], BYTES, pe));
        CHECK(memcmp(back, source, BYTES) == 0);
    }
    int status = gpushmem_quiet();
    CHECK_THAT(status == 0 || names(dead), "quiet: %d: %s", status, gpushmem_last_error());
}

static void until_known(int dead)
{
    int status = gpushmem_uint64_wait_until(&shared->never, GPUSHMEM_CMP_NE, 0);
    CHECK_THAT(status == GPUSHMEM_ERR_PE_FAILED && names(dead), "%s", gpushmem_last_error());
}

// Who has all such words dies, maybe before this one's arrival is acknowledged.
static void tell_ready(int me, int dead)
{
    int status = gpushmem_uint64_p(&shared->ready[me], 1, dead);
    CHECK_THAT(status == 0 || (status == GPUSHMEM_ERR_PE_FAILED && names(dead)), "p: %d: %s",
               status, gpushmem_last_error());
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("GPUSHMEM_RUN_PE"),
               *size = getenv("GPUSHMEM_RUN_SIZE");
    CHECK(argc == 2 && rank && size);
    int me = atoi(rank), dead = atoi(size) - 1;
    bool leaving = strcmp(argv[1], "leaving") == 0;
    static const char *const in_init[] = {"unborn", "handover", "greeting"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(argv[1], in_init[i]) != 0)
            continue;
        unborn(me, dead, in_init[i]);
        return 0;
    }
    bool reminded = strcmp(argv[1], "reminded") == 0;
    bool parting = strcmp(argv[1], "parting") == 0;
    CHECK(leaving || reminded || parting || strcmp(argv[1], "mourning") == 0);
    CHECK_OK(gpushmem_init());
    shared = gpushmem_calloc(1, sizeof *shared);
    CHECK(shared != NULL);
    for (int pe = 0; me == dead && pe < dead; pe++) // none is still in the call before
        CHECK_OK(gpushmem_uint64_wait_until(&shared->ready[pe], GPUSHMEM_CMP_EQ, 1));
    if (me != dead)
        tell_ready(me, dead);
    if (me == dead && leaving)
        die_in_finalize();
    if (me == dead)
        kill(getpid(), SIGKILL);
    if (!leaving || me != 0)
        until_known(dead);
    if (parting && me == 1) {
        survives(me); // the first death
        die_in_finalize();
    }
    if (parting) {
        usleep(2 * WHILE_US);
    } else if (me != 0) {
        usleep(reminded ? 2 * WHILE_US : WHILE_US);
        work(me, dead);
    } else if (reminded) {
        hold_what_follows();
    }
    int status = gpushmem_finalize();
    CHECK_THAT(status == 0 || names(dead), "finalize: %d: %s", status, gpushmem_last_error());
    survives(me);
    return 0;
}
