// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getpgid
#include "listeners.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CLASSIC_SIGNALS = 0x7fffffff, CANNOT_BE_BLOCKED = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1) };

// Who blocks a signal reads it from a signalfd. But shells and C libraries block all of them for an
// instant around a fork: whoever does so runs, and whoever reads all of them sleeps.
static bool takes_blocked(unsigned long long blocked, char state, int signal)
{
    const unsigned long long all = CLASSIC_SIGNALS & ~CANNOT_BE_BLOCKED;
    return blocked >> (signal - 1) & 1 && (state == 'S' || (blocked & all) != all);
}

static bool process_listens(pid_t pid, int signal)
{
    char path[32], line[256], state = 0;
    unsigned long long caught = 0, blocked = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    if (!status)
        return false; // it has ended
    while (fgets(line, sizeof line, status)) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "SigBlk: %llx", &blocked);
        sscanf(line, "SigCgt: %llx", &caught);
    }
    fclose(status);
    return caught >> (signal - 1) & 1 || takes_blocked(blocked, state, signal);
}

void gpsh_listeners_signal(pid_t group, int signal)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (const struct dirent *e; (e = readdir(proc));) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)atoi(e->d_name) : 0;
        bool member = pid > 0 && (pid == group || getpgid(pid) == group);
        if (member && process_listens(pid, signal))
            kill(pid, signal);
    }
    closedir(proc);
}
