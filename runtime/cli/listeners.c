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

static bool process_listens(pid_t pid, int signal)
{
    char path[32], line[256];
    unsigned long long mask, heard = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    if (!status)
        return false; // it has ended
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "SigCgt: %llx", &mask) == 1 || sscanf(line, "SigBlk: %llx", &mask) == 1)
            heard |= mask;
    fclose(status);
    return heard >> (signal - 1) & 1;
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
