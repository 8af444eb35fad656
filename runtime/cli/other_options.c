// SPDX-License-Identifier: BSD-3-Clause
#include "other_options.h"

#include <stdio.h>
#include <string.h>

enum way {
    DROPPED,       // has no effect on one machine
    DROPPED_VALUE, // the same, with a value
    RENAMED,       // the same as this program's option `ours`
    REFUSED,
};

struct other {
    const char *name; // without its dashes
    enum way way;
    const char *ours; // RENAMED; REFUSED: what this program has for it, or NULL
};

static const struct other others[] = {
    // All PEs are of this machine, whoever starts them and however many there are.
    {"oversubscribe", DROPPED, NULL},
    {"allow-run-as-root", DROPPED, NULL},
    {"overcommit", DROPPED, NULL},
    {"use-hwthread-cpus", DROPPED, NULL},
    {"ppn", DROPPED_VALUE, NULL},
    {"npernode", DROPPED_VALUE, NULL},
    {"perhost", DROPPED_VALUE, NULL},
    {"ntasks-per-node", DROPPED_VALUE, NULL},
    // In other words.
    {"ntasks", RENAMED, "--np"},
    {"bind-to", RENAMED, "--bind"},
    {"wd", RENAMED, "--wdir"},
    {"chdir", RENAMED, "--wdir"},
    {"label", RENAMED, "--tag-output"},
    {"prepend-rank", RENAMED, "--tag-output"},
    // What several machines or a resource manager are for.
    {"H", REFUSED, NULL},
    {"N", REFUSED, NULL},
    {"f", REFUSED, NULL},
    {"p", REFUSED, NULL},
    {"w", REFUSED, NULL},
    {"host", REFUSED, NULL},
    {"hosts", REFUSED, NULL},
    {"hostfile", REFUSED, NULL},
    {"machinefile", REFUSED, NULL},
    {"default-hostfile", REFUSED, NULL},
    {"nodelist", REFUSED, NULL},
    {"partition", REFUSED, NULL},
    {"account", REFUSED, NULL},
    {"mpi", REFUSED, NULL},
    {"launcher", REFUSED, NULL},
    {"prefix", REFUSED, NULL},
    {"app", REFUSED, NULL},
    {"map-by", REFUSED, "--bind core|numa|socket and --cores K"},
    {"rank-by", REFUSED, "--bind core|numa|socket"},
    {"rankfile", REFUSED, "--bind core|numa|socket"},
    {"distribution", REFUSED, "--bind core|numa|socket"},
    {"cpu-bind", REFUSED, "--bind core|numa|socket"},
    {"cpu-set", REFUSED, "taskset in front of it"},
    {"c", REFUSED, "--bind core --cores K"},
    {"cpus-per-task", REFUSED, "--bind core --cores K"},
    {"cpus-per-rank", REFUSED, "--bind core --cores K"},
    {"display-map", REFUSED, "--report-bindings"},
    {"mca", REFUSED, "-x VAR=VALUE, and GPUSHMEM_* settings"},
    {"pmixmca", REFUSED, "-x VAR=VALUE, and GPUSHMEM_* settings"},
    {"genv", REFUSED, "-x VAR=VALUE"},
    {"env", REFUSED, "-x VAR=VALUE"},
    {"export", REFUSED, "-x VAR=VALUE"},
    {"gpus-per-task", REFUSED, NULL},
    {"gpus-per-node", REFUSED, NULL},
    {"gres", REFUSED, NULL},
};

// The row of "--map-by", "-map-by" or "--map-by=x"; NULL: none.
static const struct other *other_find(const char *word)
{
    const char *name = word + 1 + (word[1] == '-');
    size_t bytes = strcspn(name, "=");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i].name) == bytes && !memcmp(others[i].name, name, bytes))
            return &others[i];
    return NULL;
}

// So many words of argv this program's option at `word` takes: 0 if it is not known.
static int own_words(const struct gpsh_command_line *line, const char *word)
{
    const char *name = word[1] == '-' ? word + 2 : NULL;
    for (const struct gpsh_option *o = line->options; o->help; o++) {
        if (name && o->name && !strncmp(o->name, name, strcspn(name, "=")))
            return o->value && !strchr(name, '=') ? 2 : 1;
        // "-n4", "-n 4", "-np 4"
        if (!name && o->letter && o->letter == word[1])
            return o->value && (!word[2] || (o->name && !strcmp(o->name, word + 1))) ? 2 : 1;
    }
    return 0;
}

static void words_drop(int *argc, char **argv, int at, int n)
{
    for (int i = at; i + n <= *argc; i++) // argv ends with NULL
        argv[i] = argv[i + n];
    *argc -= n;
}

static bool refuse(const struct gpsh_command_line *line, const struct other *other,
                   const char *word)
{
    const char *ours = other->ours;
    return gpsh_options_complain(
        line,
        "%.*s is an option of mpirun or srun; %s starts the PEs of one machine%s%s. For several "
        "machines use srun --mpi=pmix, mpirun or prterun in its place: they start the same program",
        (int)strcspn(word, "="), word, line->program, ours ? ", and has for it: " : "",
        ours ? ours : "");
}

// "--bind-to core" becomes "--bind core", and "--bind-to=core", in its own memory, "--bind=core".
static bool rename_word(const struct gpsh_command_line *line, char **word, const char *ours)
{
    static char words[][16] = {"--np", "--bind", "--wdir", "--tag-output"};
    const char *value = strchr(*word, '=');
    if (value && strlen(ours) + strlen(value) > strlen(*word))
        return gpsh_options_complain(line, "%s is %s%s here", *word, ours, value);
    if (value) {
        memmove(*word + strlen(ours), value, strlen(value) + 1);
        memcpy(*word, ours, strlen(ours));
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i], ours))
            *word = words[i];
    return true;
}

bool gpsh_other_options_take(const struct gpsh_command_line *line, int *argc, char **argv)
{
    for (int i = 1; i < *argc && argv[i][0] == '-' && argv[i][1] && strcmp(argv[i], "--") != 0;) {
        const struct other *other = other_find(argv[i]);
        bool joined = strchr(argv[i], '=') != NULL;
        int own = own_words(line, argv[i]);
        if (!other)
            i += own ? own : 1;
        else if (other->way == REFUSED)
            return refuse(line, other, argv[i]);
        else if (other->way == DROPPED || other->way == DROPPED_VALUE)
            words_drop(argc, argv, i, other->way == DROPPED || joined || i + 1 == *argc ? 1 : 2);
        else if (!rename_word(line, &argv[i], other->ours))
            return false;
    }
    return true;
}
