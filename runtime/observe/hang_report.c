// SPDX-License-Identifier: BSD-3-Clause
#include "observe/hang_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/team_name.h"
#include "core/text.h"

enum { PES_BYTES = 96 };

// A set of PEs, for a sentence.
struct pe_set {
    int n;
    int first;
    char text[PES_BYTES]; // "PE 3", "PEs 0-2,5"; cut with dots where it gets too long
};

static bool is_in(const void *in, int pe)
{
    return ((const bool *)in)[pe];
}

static void pe_set_print(struct pe_set *some, const bool *in, int n)
{
    struct gpsh_text t = {some->text, sizeof some->text, 0};
    *some = (struct pe_set){.first = -1};
    for (int pe = 0; pe < n; pe++) {
        some->first = in[pe] && some->first < 0 ? pe : some->first;
        some->n += in[pe];
    }
    gpsh_text_add(&t, some->n == 1 ? "PE " : "PEs ");
    gpsh_text_add_ranges(&t, n, is_in, in);
}

// ---- What the sentence is about ----

static bool waits_for(const struct gpsh_pe_view *view, enum gpsh_awaited what)
{
    return view->state == GPSH_PE_WAITS && view->wait.awaited == (int)what;
}

// PEs meet at the same place if all of this is the same.
static bool meets(const struct gpsh_pe_view *view, const struct gpsh_wait_record *at)
{
    return waits_for(view, at->awaited) && view->wait.number == at->number &&
           (at->awaited != GPSH_AWAITED_TEAM || view->wait.team == at->team);
}

// The wait that tells most: for the furthest barrier, else for a team, else for a PE, else for a
// word; of several of a kind the longest. NULL: no PE waits.
static const struct gpsh_wait_record *main_wait(const struct gpsh_pe_view *views, int n)
{
    static const enum gpsh_awaited order[] = {GPSH_AWAITED_BARRIER, GPSH_AWAITED_TEAM,
                                              GPSH_AWAITED_INIT, GPSH_AWAITED_PE,
                                              GPSH_AWAITED_UNKNOWN};
    const struct gpsh_wait_record *best = NULL;
    for (size_t i = 0; i < sizeof order / sizeof order[0] && !best; i++)
        for (int pe = 0; pe < n; pe++) {
            const struct gpsh_wait_record *wait = &views[pe].wait;
            if (!waits_for(&views[pe], order[i]))
                continue;
            bool further = best && order[i] == GPSH_AWAITED_BARRIER
                               ? wait->number > best->number
                               : !best || wait->since_ns < best->since_ns;
            best = further ? wait : best;
        }
    return best;
}

// ---- Sentences ----

static void place_print(const struct gpsh_wait_record *at, char *text, size_t bytes)
{
    if (at->awaited == GPSH_AWAITED_TEAM)
        snprintf(text, bytes, "operation %" PRIu64 " of %s (%s)", at->number,
                 gpsh_team_name(at->team).text, at->what);
    else
        snprintf(text, bytes, "barrier %" PRIu64 " (%s)", at->number, at->what);
}

// What the PE that is late is doing instead.
static void add_alibi(struct gpsh_text *t, const struct gpsh_pe_view *views,
                      const struct pe_set *late)
{
    const struct gpsh_pe_view *view = &views[late->first];
    if (view->state == GPSH_PE_BUSY)
        gpsh_text_add(t,
                      late->n == 1 ? ". It is in no wait of the library"
                                   : ". PE %d is in no wait of the "
                                     "library",
                      late->first);
    else if (view->state == GPSH_PE_WAITS || view->state == GPSH_PE_KERNEL)
        gpsh_text_add(t, ". PE %d is in %s, waiting%s", late->first, view->wait.what,
                      view->wait.text);
    else if (view->state == GPSH_PE_ENDED)
        gpsh_text_add(t, ". PE %d has ended without gpushmem_finalize", late->first);
    else if (view->state == GPSH_PE_ABSENT)
        gpsh_text_add(t, ". PE %d is not between init and finalize", late->first);
    else
        gpsh_text_add(t, ". Nothing is known of PE %d here", late->first);
}

static void say_late(struct gpsh_text *t, const struct gpsh_pe_view *views,
                     const struct pe_set *late, const struct pe_set *waiting,
                     const struct pe_set *unseen, const struct gpsh_wait_record *at)
{
    char place[160];
    place_print(at, place, sizeof place);
    if (late->n) {
        gpsh_text_add(t, "%s %s not reached %s; %s %s for %s", late->text,
                      late->n == 1 ? "has" : "have", place, waiting->text,
                      waiting->n == 1 ? "waits" : "wait", late->n == 1 ? "it" : "them");
        add_alibi(t, views, late);
    } else if (unseen->n) {
        gpsh_text_add(t,
                      "%s %s reached %s, and %s; of %s nothing is known on this host: look there",
                      waiting->text, waiting->n == 1 ? "has" : "have all", place,
                      waiting->n == 1 ? "waits" : "wait", unseen->text);
    } else {
        gpsh_text_add(
            t,
            "%s %s reached %s, and still %s for each other: an operation between them is lost "
            "or stuck",
            waiting->text, waiting->n == 1 ? "has" : "have all", place,
            waiting->n == 1 ? "waits" : "wait");
    }
}

static void pe_set_in_state(struct pe_set *some, const struct gpsh_pe_view *views, int n, bool *in,
                            enum gpsh_pe_state state)
{
    for (int pe = 0; pe < n; pe++)
        in[pe] = views[pe].state == state;
    pe_set_print(some, in, n);
}

// PEs that have not called init come before those that have ended, and those that work in it.
static void say_init(struct gpsh_text *t, const struct gpsh_pe_view *views, int n, bool *in,
                     const struct pe_set *waiting)
{
    static const struct {
        enum gpsh_pe_state state;
        const char *one, *several;
    } reasons[] = {
        {GPSH_PE_ABSENT, "has not called gpushmem_init", "have not called gpushmem_init"},
        {GPSH_PE_ENDED, "has ended without gpushmem_init", "have ended without gpushmem_init"},
        {GPSH_PE_BUSY, "is at work in gpushmem_init", "are at work in gpushmem_init"},
    };
    struct pe_set late = {.n = 0};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0] && !late.n; i++) {
        pe_set_in_state(&late, views, n, in, reasons[i].state);
        if (late.n)
            gpsh_text_add(t, "%s %s; %s %s for %s in there", late.text,
                          late.n == 1 ? reasons[i].one : reasons[i].several, waiting->text,
                          waiting->n == 1 ? "waits" : "wait", late.n == 1 ? "it" : "them");
    }
    pe_set_in_state(&late, views, n, in, GPSH_PE_UNSEEN);
    if (late.n)
        gpsh_text_add(t, "%s%s; of %s nothing is known on this host: look there",
                      t->used ? "" : waiting->text,
                      t->used           ? ""
                      : waiting->n == 1 ? " waits in gpushmem_init"
                                        : " wait in gpushmem_init",
                      late.text);
    else if (!t->used)
        gpsh_text_add(
            t, "%s wait in gpushmem_init for each other: the launcher does not bring them together",
            waiting->text);
}

static bool is_late(const struct gpsh_pe_view *views, int n, int pe,
                    const struct gpsh_wait_record *at)
{
    if (meets(&views[pe], at))
        return false;
    if (at->awaited == GPSH_AWAITED_BARRIER)
        return views[pe].state != GPSH_PE_UNSEEN;
    for (int i = 0; i < n; i++)
        if (meets(&views[i], at) && views[i].wait.pe == pe)
            return true;
    return false;
}

static void say_alone(struct gpsh_text *t, const struct gpsh_pe_view *views, int n,
                      const struct gpsh_wait_record *at, const struct pe_set *waiting,
                      const struct pe_set *busy)
{
    int pe = 0;
    while (pe < n - 1 && &views[pe].wait != at)
        pe++;
    gpsh_text_add(t, "PE %d is in %s, waiting%s", pe, at->what, at->text);
    if (waiting->n > 1)
        gpsh_text_add(t, "; %s are in waits that do not end, this is the longest", waiting->text);
    if (busy->n)
        gpsh_text_add(t, "; %s %s in no wait of the library", busy->text,
                      busy->n == 1 ? "is" : "are");
}

static void say(struct gpsh_text *t, const struct gpsh_pe_view *views, int n, bool *in,
                const struct gpsh_wait_record *at)
{
    struct pe_set waiting, late, busy, unseen;
    bool meeting = at->awaited == GPSH_AWAITED_BARRIER || at->awaited == GPSH_AWAITED_TEAM;
    bool init = at->awaited == GPSH_AWAITED_INIT;
    for (int pe = 0; pe < n; pe++)
        in[pe] = meeting || init ? meets(&views[pe], at) : views[pe].state == GPSH_PE_WAITS;
    pe_set_print(&waiting, in, n);
    for (int pe = 0; pe < n; pe++)
        in[pe] = meeting && is_late(views, n, pe, at);
    pe_set_print(&late, in, n);
    pe_set_in_state(&busy, views, n, in, GPSH_PE_BUSY);
    pe_set_in_state(&unseen, views, n, in, GPSH_PE_UNSEEN);
    if (init)
        say_init(t, views, n, in, &waiting);
    else if (meeting)
        say_late(t, views, &late, &waiting, &unseen, at);
    else
        say_alone(t, views, n, at, &waiting, &busy);
}

bool gpsh_hang_report(const struct gpsh_pe_view *views, int n, char *text, size_t bytes)
{
    struct gpsh_text t = {text, bytes, 0};
    const struct gpsh_wait_record *at = main_wait(views, n);
    bool *in = at ? calloc((size_t)n, sizeof *in) : NULL;
    text[0] = '\0';
    if (in)
        say(&t, views, n, in, at);
    free(in);
    return text[0] != '\0';
}

// ---- Boards ----

void gpsh_views_set(struct gpsh_pe_view *views, int n, const struct gpsh_boards *boards)
{
    for (int i = 0; i < boards->n; i++) {
        const struct gpsh_board *board = boards->list[i].board;
        if (board->pe < 0 || board->pe >= n)
            continue;
        const struct gpsh_wait_record *wait = gpsh_board_longest_wait(board);
        struct gpsh_pe_view *view = &views[board->pe];
        view->state = !wait                                  ? GPSH_PE_BUSY
                      : wait->awaited == GPSH_AWAITED_KERNEL ? GPSH_PE_KERNEL
                                                             : GPSH_PE_WAITS;
        if (wait)
            view->wait = *wait;
    }
}

static int first_that_waits(const struct gpsh_pe_view *views, int n)
{
    for (int pe = 0; pe < n; pe++)
        if (views[pe].state == GPSH_PE_WAITS)
            return pe;
    return -1;
}

static bool is_news(const char *text)
{
    static _Atomic uint64_t last; // 0: none yet
    uint64_t now = gpsh_hash_more(GPSH_HASH_START, text, strlen(text)) | 1;
    return atomic_exchange(&last, now) != now;
}

void gpsh_hang_report_log(const char *job, int pe, int n_pes)
{
    struct gpsh_boards boards;
    char text[GPSH_HANG_REPORT_BYTES];
    struct gpsh_pe_view *views = calloc((size_t)n_pes, sizeof *views);
    if (views && !gpsh_boards_read(&boards, gpsh_board_is_of_job, job)) {
        gpsh_views_set(views, n_pes, &boards);
        if (first_that_waits(views, n_pes) == pe &&
            gpsh_hang_report(views, n_pes, text, sizeof text) && is_news(text))
            GPSH_LOG(WARN, "hang", "%s", text);
        gpsh_boards_free(&boards);
    }
    free(views);
}
