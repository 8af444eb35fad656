// SPDX-License-Identifier: BSD-3-Clause
#include "api/failed_calls.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/config.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/text.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"

// The kinds that were logged, by their hashes, and what the line at finalize says of each. A slot
// is taken by writing its hash and stays taken; `named` is true once `name` may be read.
enum { KINDS = 256, NAME_BYTES = 120, TOLD = 4 };
struct kind {
    _Atomic uint64_t hash;
    _Atomic uint64_t more; // lost calls after the first one
    atomic_bool named;
    char name[NAME_BYTES];
};
static struct kind kinds[KINDS];
static _Atomic uint64_t more_of_others; // of kinds that found no slot
static atomic_flag enough = ATOMIC_FLAG_INIT;

// ---- Kinds ----

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// Where `at`, the begin of a word, begins a number that makes no kind of its own: its end. Digits
// within words are part of a name, like int32.
static const char *number_end(const char *sentence, const char *at)
{
    const char *end = at;
    if (!isdigit((unsigned char)*at) || (at > sentence && is_word(at[-1])))
        return at;
    if (at - sentence >= 3 && strncmp(at - 3, "PE ", 3) == 0)
        return at;
    if (at - sentence >= 4 && strncmp(at - 4, "PE -", 4) == 0)
        return at;
    while (is_word(*end))
        end++;
    return end;
}

static uint64_t hash_of(const char *prefix, const char *sentence)
{
    uint64_t hash = gpsh_hash_more(GPSH_HASH_START, prefix, strlen(prefix) + 1);
    for (const char *at = sentence, *end; *at; at = end) {
        end = number_end(sentence, at);
        if (end == at)
            hash = gpsh_hash_more(hash, at, (size_t)(++end - at));
        else
            hash = gpsh_hash_more(hash, "#", 1);
    }
    return hash ? hash : 1; // 0 is a free slot
}

// NULL if all slots are taken by other kinds.
static struct kind *kind_of(const char *prefix, const char *sentence, bool *first)
{
    uint64_t hash = hash_of(prefix, sentence);
    for (unsigned i = 0; i < KINDS; i++) {
        struct kind *kind = &kinds[(hash + i) % KINDS];
        uint64_t found = 0;
        *first = atomic_compare_exchange_strong(&kind->hash, &found, hash);
        if (*first || found == hash)
            return kind;
    }
    *first = false;
    if (!atomic_flag_test_and_set(&enough))
        GPSH_LOG(ERROR, prefix,
                 "%d different failures were logged; GPUSHMEM_LOG_LEVEL=debug logs further ones",
                 KINDS);
    return NULL;
}

bool gpsh_failure_is_new(const char *prefix, const char *sentence)
{
    bool first;
    (void)kind_of(prefix, sentence, &first);
    return first;
}

// ---- Calls that cannot return their failure ----

// The sentence without what to do about it, with "#" for what others of the kind need not share.
static void name_kind(struct kind *kind, const char *sentence)
{
    size_t used = 0;
    for (const char *at = sentence, *end; *at && used < NAME_BYTES - 1; at = end) {
        if (*at == ';' || strncmp(at, " (", 2) == 0)
            break;
        end = number_end(sentence, at);
        kind->name[used++] = end == at ? *end++ : '#';
    }
    kind->name[used] = '\0';
    atomic_store_explicit(&kind->named, true, memory_order_release);
}

// Nobody gets past the lock: the first thread's sentence is the one that the job ends with.
static _Noreturn void end_job(const char *subsystem, const char *sentence)
{
    static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&ending);
    GPSH_LOG(ERROR, subsystem, "%s; the job ends (GPUSHMEM_ON_ERROR=abort)", sentence);
    gpushmem_global_exit(1);
}

static void warn_or_count(const char *subsystem, const char *introduction, const char *sentence)
{
    bool first;
    struct kind *kind = kind_of(subsystem, sentence, &first);
    if (first) {
        name_kind(kind, sentence);
        GPSH_LOG(WARN, subsystem, "%s%s", introduction, sentence);
        return;
    }
    atomic_fetch_add_explicit(kind ? &kind->more : &more_of_others, 1, memory_order_relaxed);
}

// The child of a fork leaves its parent's job alone.
bool gpsh_call_lost_ends_job(void)
{
    return gpsh_settings()->on_error == GPSH_ON_ERROR_ABORT && !gpsh_job()->forked_from;
}

void gpsh_call_lost(const char *subsystem, const char *introduction, const char *sentence)
{
    bool ends = gpsh_call_lost_ends_job();
    bool silent = gpsh_settings()->on_error == GPSH_ON_ERROR_IGNORE;
    bool said = gpsh_error_is_said();
    gpsh_error_mark_said();
    if (silent || (said && !ends))
        return;
    if (ends)
        end_job(subsystem, sentence);
    warn_or_count(subsystem, introduction, sentence);
}

// ---- At finalize ----

struct count {
    uint64_t calls;
    const char *name;
};

// Keeps the greatest, in order.
static void keep_greatest(struct count most[static TOLD], struct count new)
{
    for (int i = 0; i < TOLD; i++)
        if (new.calls > most[i].calls) {
            struct count smaller = most[i];
            most[i] = new;
            new = smaller;
        }
}

static void say_counts(uint64_t calls, const struct count most[static TOLD])
{
    char text[TOLD * (NAME_BYTES + 40)] = "";
    struct gpsh_text t = {text, sizeof text, 0};
    uint64_t others = calls;
    for (int i = 0; i < TOLD && most[i].calls; i++) {
        gpsh_text_add(&t, "%s%llu of \"%s\"", i ? ", " : "", (unsigned long long)most[i].calls,
                      most[i].name);
        others -= most[i].calls;
    }
    if (others)
        gpsh_text_add(&t, "%s%llu of other kinds", t.used ? ", " : "", (unsigned long long)others);
    if (calls == 1)
        GPSH_LOG(WARN, "finalize", "1 more call failed that could not return it: %s", text);
    else
        GPSH_LOG(WARN, "finalize", "%llu more calls failed that could not return it: %s",
                 (unsigned long long)calls, text);
}

void gpsh_lost_calls_tell(void)
{
    struct count most[TOLD] = {{0, NULL}};
    uint64_t calls = atomic_exchange(&more_of_others, 0);
    for (int i = 0; i < KINDS; i++) {
        uint64_t more = atomic_exchange(&kinds[i].more, 0);
        calls += more;
        if (more && atomic_load_explicit(&kinds[i].named, memory_order_acquire))
            keep_greatest(most, (struct count){more, kinds[i].name});
    }
    if (calls)
        say_counts(calls, most);
}
