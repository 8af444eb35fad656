// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // usleep
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/scratch.h"
#include "observe/status_request.h"
#include "proxy_rig.h"

TestSuite(proxy_report, .init = set_up, .fini = tear_down);

static char line[256];

static bool describe(int ring)
{
    return gpsh_proxy_describe(&proxy->rings[ring], line, sizeof line);
}

Test(proxy_report, describe__nothing_under_way__nothing)
{
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_NOP});
    step();
    cr_assert_not(describe(0));
    cr_assert_not(describe(1));
}

Test(proxy_report, describe__put_not_complete__names_it_and_its_pe)
{
    push(0, put_to(1));
    push(0, put_to(3));
    push(0, put_to(2));
    step();
    fake_complete(&fake, 1, 1);
    step();
    cr_assert(describe(0));
    cr_assert_str_eq(
        line, "ring 0: commands read: 3, complete: 1; the oldest under way is a put towards PE 3");
    cr_assert_not(describe(1));
}

Test(proxy_report, describe__no_room__names_what_waits)
{
    fake.again = 1000;
    push(1, put_to(2));
    step();
    cr_assert(describe(1));
    cr_assert_str_eq(
        line, "ring 1: commands complete: 0; a put towards PE 2 waits for room or for order");
}

Test(proxy_report, describe__no_command__says_that_the_ring_is_closed)
{
    push(0, (struct gpushmem_command){.opcode = 99});
    step();
    cr_assert(describe(0));
    cr_assert(strstr(line, "ring 0: closed because of an error"), "%s", line);
}

// What the log holds once it holds something; the patience is against hangs only.
static const char *logged(const char *path)
{
    static char text[1024];
    for (int i = 0; i < 30000 && !text[0]; i++) {
        FILE *file = fopen(path, "r");
        if (file && fread(text, 1, sizeof text - 1, file) == 0)
            usleep(1000);
        if (file)
            fclose(file);
    }
    return text;
}

Test(proxy_report, question__of_a_thread_that_waits__is_answered)
{
    char dir[64], path[80];
    cr_assert_eq(gpsh_scratch_dir("proxy-report", 32, dir, sizeof dir), 0);
    snprintf(path, sizeof path, "%s/log", dir);
    cr_assert_eq(gpsh_log_open(GPSH_LOG_WARN, path), 0);
    gpsh_status_requests_open();
    push(0, put_to(3));
    step();
    cr_assert_eq(gpsh_proxy_start(proxy), 0);
    raise(SIGUSR1);
    const char *text = logged(path);
    cr_expect(strstr(text, "SIGUSR1: ring 0: commands read: 1, complete: 0; the oldest under way "
                           "is a put towards PE 3"),
              "%s", text);
    gpsh_proxy_stop(proxy);
    gpsh_log_close();
    unlink(path);
    rmdir(dir);
}
