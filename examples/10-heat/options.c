// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getopt_long, isatty
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "heat.h"

static const char usage[] =
    "usage: heat --image FILE.pgm [--out FILE.pgm|FILE.png] [--steps N] [--check]\n"
    "  --check   compare with a serial run, bit for bit\n";

bool heat_options_parse(struct heat_options *o, int argc, char **argv)
{
    static const struct option known[] = {{"image", required_argument, NULL, 'i'},
                                          {"out", required_argument, NULL, 'o'},
                                          {"steps", required_argument, NULL, 's'},
                                          {"check", no_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
    char *end = NULL;
    *o = (struct heat_options){.steps = 200};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'i')
            o->image = optarg;
        else if (c == 'o')
            o->out = optarg;
        else if (c == 's')
            o->steps = strtoull(optarg, &end, 10);
        else if (c == 'c')
            o->check = true;
        if (c == '?' || (c == 's' && (end == optarg || *end || *optarg == '-'))) {
            fputs(usage, stderr);
            return false;
        }
    }
    if (o->image && optind == argc)
        return true;
    fputs(usage, stderr);
    return false;
}

void heat_progress(uint64_t done, uint64_t all)
{
    enum { WIDTH = 40 };
    static const char bar[WIDTH + 1] = "########################################";
    if (!isatty(STDERR_FILENO))
        return;
    int filled = (int)(done * WIDTH / all);
    fprintf(stderr, "\rheat [%-*.*s] %3d %%%s", WIDTH, filled, bar, (int)(done * 100 / all),
            done == all ? "\n" : "");
}
