// SPDX-License-Identifier: BSD-3-Clause
#include "trace_folder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/error.h"
#include "core/scratch.h"
#include "core/sha256.h"
#include "observe/trace.h"

char folder[64], file[80];
const char *job = "job";
size_t contents_bytes;

void trace_folder_begin(void)
{
    cr_assert_eq(gpsh_scratch_dir("trace", 40, folder, sizeof folder), 0, "%s", folder);
    snprintf(file, sizeof file, "%s/t.json", folder);
}

void trace_folder_end(void)
{
    char command[96];
    gpsh_trace_close();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

int open_part_of(int pe, uint64_t records)
{
    return gpsh_trace_open(&(struct gpsh_trace_owner){.file = file,
                                                      .job = job,
                                                      .pe = pe,
                                                      .n_pes = PES,
                                                      .n_channels = LANES,
                                                      .n_proxies = 1,
                                                      .lane_records = records});
}

int open_part(int pe)
{
    return open_part_of(pe, RECORDS);
}

char *part_path(int pe)
{
    static char path[192];
    char mark[GPSH_SHA256_MARK];
    gpsh_sha256_mark(job, mark);
    snprintf(path, sizeof path, "%s.%d.%s.part", file, pe, mark);
    return path;
}

bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

char *contents(void)
{
    static char text[1 << 20];
    FILE *in = fopen(file, "r");
    cr_assert_not_null(in);
    contents_bytes = fread(text, 1, sizeof text - 1, in);
    text[contents_bytes] = '\0';
    fclose(in);
    return text;
}

void write_part(int pe)
{
    cr_assert_eq(open_part(pe), 0, "%s", gpsh_last_error());
    gpsh_trace_stop();
    gpsh_trace_close();
}
