// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what epoll needs
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/tcp_listener.h"
#include "bootstrap/tcp_tree.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "core/thread.h"

enum {
    REMARK_AFTER_MS = 10000,
    LINGER_MS = 10000, // for those that come when the start was given up
    GATHER_MS = 2000,  // as many as possible hear what is wrong before this process may end
    MOST_NAMED = 8,
};

// A PE that has come, or a process that says it is one.
struct guest {
    struct gpsh_tcp_link *link;
    struct gpsh_tcp_address listens;
};

struct rendezvous {
    struct gpsh_tcp_loop loop;
    struct gpsh_tcp_listener listener;
    int64_t timeout_ms;
    uint64_t began_ns; // when the first came; 0: nobody came yet
    uint64_t end_ns;   // when to leave; 0: not known yet
    bool remarked;
    int n_pes, first_pe, came;    // n_pes is what the first says
    struct guest *guests;         // [n_pes]
    struct gpsh_tcp_link *others; // those without a place
    int open;                     // links that are not closed yet
    int code;                     // the start was given up: why
    uint64_t tell_ns;             // when to tell so at the latest; 0: all have been told
    char sentence[GPSH_SENTENCE_BYTES];
};

static void guest_tell(const struct rendezvous *m, struct gpsh_tcp_link *link)
{
    struct gpsh_parcel *parcel =
        gpsh_parcel_text(GPSH_FRAME_FAIL, 0, (uint32_t)-m->code, m->sentence);
    if (parcel)
        gpsh_tcp_link_send(link, parcel);
    gpsh_parcel_release(parcel);
}

// The first wins. Those that are here are told when all have come, or a little later.
static void __attribute__((format(printf, 3, 4)))
rendezvous_fail(struct rendezvous *m, int code, const char *format, ...)
{
    va_list args;
    if (m->code)
        return;
    m->code = code;
    va_start(args, format);
    vsnprintf(m->sentence, sizeof m->sentence, format, args);
    va_end(args);
    GPSH_LOG(INFO, "bootstrap", "%s", m->sentence);
    uint64_t patience = (uint64_t)m->timeout_ms * 1000000;
    m->tell_ns = gpsh_clock_in(GATHER_MS);
    m->end_ns = gpsh_clock_in(LINGER_MS);
    if (m->began_ns && m->end_ns < m->began_ns + patience)
        m->end_ns = m->began_ns + patience;
}

// PE 0, whose process this mostly is, hears of it last: it may end the process.
static void rendezvous_tell(struct rendezvous *m)
{
    bool waited = m->code == GPUSHMEM_ERR_TIMEOUT || m->listener.accept_error;
    if (!m->tell_ns || (!waited && m->open < m->n_pes && gpsh_clock_ns() < m->tell_ns))
        return;
    m->tell_ns = 0;
    for (struct gpsh_tcp_link *link = m->others; link; link = link->next)
        guest_tell(m, link);
    for (int pe = m->n_pes - 1; pe >= 0; pe--)
        if (m->guests[pe].link)
            guest_tell(m, m->guests[pe].link);
}

// "PEs 3, 7 and 2 more of 16", and how many.
static int rendezvous_missing(const struct rendezvous *m, char *text, size_t bytes)
{
    int missing = m->n_pes - m->came, named = 0;
    struct gpsh_text t = {text, bytes, 0};
    gpsh_text_add(&t, missing == 1 ? "PE" : "PEs");
    for (int pe = 0; pe < m->n_pes && named < MOST_NAMED; pe++)
        if (!m->guests[pe].link)
            gpsh_text_add(&t, !named++ ? " %d" : named == missing ? " and %d" : ", %d", pe);
    if (missing > named)
        gpsh_text_add(&t, " and %d more", missing - named);
    gpsh_text_add(&t, " of %d", m->n_pes);
    return missing;
}

static void guest_frame(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    (void)link; // nothing is expected, and nothing asked
    gpsh_parcel_release(parcel);
}

static void guest_lost(struct gpsh_tcp_link *link)
{
    struct rendezvous *m = link->owner;
    struct gpsh_tcp_link **at = &m->others;
    while (*at && *at != link)
        at = &(*at)->next;
    if (*at)
        *at = link->next;
    int pe = link->pe;
    if (pe >= 0)
        m->guests[pe].link = NULL;
    m->open--;
    gpsh_tcp_link_destroy(link);
    if (pe >= 0 && m->came < m->n_pes)
        rendezvous_fail(m, GPUSHMEM_ERR_PE_FAILED,
                        "PE %d ended, or gave up, before all of the %d PEs had come", pe, m->n_pes);
}

static const struct gpsh_tcp_link_ops guest_ops = {.frame = guest_frame, .ended = guest_lost};

// All are here.
static void rendezvous_succeed(struct rendezvous *m)
{
    for (int pe = m->n_pes - 1; pe >= 0; pe--) {
        int parent = gpsh_tree_parent(pe);
        struct gpsh_parcel *parcel =
            gpsh_parcel_create(GPSH_FRAME_PARENT, parent, 0, sizeof(struct gpsh_tcp_address));
        if (!parcel) {
            rendezvous_fail(m, GPUSHMEM_ERR_NO_MEMORY, "no memory to tell %d PEs where to go",
                            m->n_pes);
            return;
        }
        memcpy(parcel->payload, &m->guests[parent].listens, sizeof m->guests[parent].listens);
        gpsh_tcp_link_send(m->guests[pe].link, parcel);
        gpsh_parcel_release(parcel);
    }
    m->end_ns = gpsh_clock_in(LINGER_MS);
}

static void rendezvous_begin(struct rendezvous *m, const struct gpsh_hello *hello)
{
    if (m->began_ns)
        return;
    m->began_ns = gpsh_clock_ns();
    m->first_pe = hello->pe;
    if (hello->n_pes < 1 || hello->n_pes > GPSH_TCP_MOST_PES) {
        rendezvous_fail(m, GPUSHMEM_ERR_INVALID,
                        "PE %d says that the job has %d PEs: n_pes is from 1 to %d", hello->pe,
                        hello->n_pes, GPSH_TCP_MOST_PES);
        return;
    }
    m->guests = calloc((size_t)hello->n_pes, sizeof *m->guests);
    if (m->guests)
        m->n_pes = hello->n_pes;
    else
        rendezvous_fail(m, GPUSHMEM_ERR_NO_MEMORY, "no memory for a list of %d PEs", hello->n_pes);
}

// Whether this guest gets a place; else the start is given up.
static bool guest_fits(struct rendezvous *m, const struct gpsh_hello *hello,
                       const struct gpsh_tcp_address *from)
{
    char here[GPSH_TCP_TEXT_BYTES], there[GPSH_TCP_TEXT_BYTES];
    gpsh_tcp_address_text(from, here);
    if (m->code)
        return false;
    if (hello->n_pes != m->n_pes)
        rendezvous_fail(
            m, GPUSHMEM_ERR_INVALID,
            "PE %d says that the job has %d PEs, PE %d says %d: all pass the same n_pes", hello->pe,
            hello->n_pes, m->first_pe, m->n_pes);
    else if (hello->pe < 0 || hello->pe >= m->n_pes)
        rendezvous_fail(m, GPUSHMEM_ERR_INVALID,
                        "a process (%s) says that it is PE %d of %d: ranks go from 0 to %d", here,
                        hello->pe, m->n_pes, m->n_pes - 1);
    else if (m->guests[hello->pe].link)
        rendezvous_fail(
            m, GPUSHMEM_ERR_INVALID,
            "two processes say that they are PE %d (%s and %s): each needs a rank of its "
            "own",
            hello->pe, gpsh_tcp_address_text(&m->guests[hello->pe].link->address, there), here);
    return !m->code;
}

static void guest_admit(struct gpsh_tcp_listener *listener, struct gpsh_tcp_link *link)
{
    struct rendezvous *m = listener->owner;
    const struct gpsh_hello *hello = &link->hello;
    link->ops = &guest_ops;
    link->owner = m;
    link->pe = -1;
    m->open++;
    bool late = m->code && !m->tell_ns;
    link->next = m->others;
    m->others = link;
    rendezvous_begin(m, hello);
    if (!guest_fits(m, hello, &link->address)) {
        if (late)
            guest_tell(m, link);
        return;
    }
    m->others = link->next;
    link->next = NULL;
    link->pe = hello->pe;
    m->guests[hello->pe] = (struct guest){.link = link, .listens = hello->listens};
    if (++m->came == m->n_pes)
        rendezvous_succeed(m);
}

static void rendezvous_check_files(struct rendezvous *m)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (m->listener.accept_error)
        rendezvous_fail(
            m, GPUSHMEM_ERR_SYSTEM,
            "the process where the %d PEs meet cannot take more connections (%s): it may "
            "have %llu files open, and each PE needs one at the start; raise that (ulimit "
            "-n)",
            m->n_pes, strerror(m->listener.accept_error), (unsigned long long)limit.rlim_cur);
}

static void rendezvous_check_time(struct rendezvous *m)
{
    char missing[160], where[GPSH_TCP_TEXT_BYTES];
    if (!m->began_ns || m->end_ns)
        return;
    int64_t waited_ms = (int64_t)((gpsh_clock_ns() - m->began_ns) / 1000000);
    if (waited_ms >= m->timeout_ms) {
        rendezvous_missing(m, missing, sizeof missing);
        rendezvous_fail(m, GPUSHMEM_ERR_TIMEOUT,
                        "%s did not come within %g s (GPUSHMEM_BOOTSTRAP_TIMEOUT_MS): were they "
                        "started, did they get this unique id, and can they reach %s?",
                        missing, (double)m->timeout_ms / 1000,
                        gpsh_tcp_address_text(&m->listener.id.address[0], where));
    } else if (waited_ms >= REMARK_AFTER_MS && !m->remarked) {
        m->remarked = true;
        rendezvous_missing(m, missing, sizeof missing);
        GPSH_LOG(WARN, "bootstrap", "waiting for %s", missing);
    }
}

// All have been told, and gone, or had the time for it.
static bool rendezvous_is_over(const struct rendezvous *m)
{
    if (!m->end_ns)
        return false;
    return (!m->open && !m->code) || gpsh_clock_ns() >= m->end_ns;
}

static void rendezvous_destroy(struct rendezvous *m)
{
    for (int pe = 0; pe < m->n_pes; pe++)
        gpsh_tcp_link_destroy(m->guests[pe].link);
    while (m->others) {
        struct gpsh_tcp_link *next = m->others->next;
        gpsh_tcp_link_destroy(m->others);
        m->others = next;
    }
    gpsh_tcp_listener_close(&m->listener);
    gpsh_tcp_loop_close(&m->loop);
    free(m->guests);
    free(m);
}

static void *rendezvous_run(void *arg)
{
    enum { LOOK_MS = 100 };
    struct rendezvous *m = arg;
    while (!rendezvous_is_over(m)) {
        gpsh_tcp_loop_turn(&m->loop, m->began_ns ? LOOK_MS : -1, NULL);
        rendezvous_check_files(m);
        rendezvous_check_time(m);
        rendezvous_tell(m);
        if (m->listener.accept_error)
            break; // it would be ready again and again
    }
    rendezvous_destroy(m);
    return NULL;
}

static int rendezvous_open(struct rendezvous *m, const char *interface)
{
    struct gpsh_uniqueid id = {.n_addresses = 0};
    int error = gpsh_random(id.job, sizeof id.job);
    if (!error)
        error = gpsh_random(id.secret, sizeof id.secret);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "the kernel gives no random numbers for a unique id: %s", strerror(error));
    int n = gpsh_tcp_address_choose(interface, id.address, GPSH_ID_ADDRESSES);
    if (n < 0)
        return n;
    id.n_addresses = n;
    error = gpsh_tcp_loop_open(&m->loop);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "no file descriptors for the place where PEs meet: %s", strerror(error));
    int status = gpsh_tcp_listener_open(&m->listener, &m->loop, &id, guest_admit, m);
    if (status)
        gpsh_tcp_loop_close(&m->loop);
    return status;
}

int gpsh_tcp_rendezvous_start(const char *interface, int64_t timeout_ms,
                              struct gpushmem_uniqueid *packed)
{
    struct gpsh_thread thread;
    struct rendezvous *m = calloc(1, sizeof *m);
    if (!m)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a unique id");
    m->timeout_ms = timeout_ms;
    int status = rendezvous_open(m, interface);
    if (status) {
        free(m);
        return status;
    }
    struct gpushmem_uniqueid made;
    gpsh_uniqueid_pack(&m->listener.id, &made);
    status = gpsh_thread_start(&thread, "gpushmem-meet", rendezvous_run, m);
    if (status) {
        rendezvous_destroy(m);
        return status;
    }
    pthread_detach(thread.id);
    *packed = made;
    return 0;
}
