// SPDX-License-Identifier: BSD-3-Clause
// The settings: environment variables GPUSHMEM_SOFTHCA_*, all listed in README.md.
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"

struct shca_settings shca_settings;

struct choice {
    const char *name;
    long value;
};

static const struct choice links[] = {
    {"roce", IBV_LINK_LAYER_ETHERNET}, {"ib", IBV_LINK_LAYER_INFINIBAND}, {0}};
static const struct choice caps[] = {
    {"none", IBV_ATOMIC_NONE}, {"hca", IBV_ATOMIC_HCA}, {"glob", IBV_ATOMIC_GLOB}, {0}};
static const struct choice statuses[] = {
    {"retry", IBV_WC_RETRY_EXC_ERR},  {"access", IBV_WC_REM_ACCESS_ERR},
    {"operation", IBV_WC_REM_OP_ERR}, {"general", IBV_WC_GENERAL_ERR},
    {"local", IBV_WC_LOC_QP_OP_ERR},  {0}};
static const struct choice events[] = {{"fatal", IBV_EVENT_DEVICE_FATAL},
                                       {"port", IBV_EVENT_PORT_ERR},
                                       {"qp", IBV_EVENT_QP_FATAL},
                                       {0}};

struct row {
    const char *name;
    long *value;
    long fallback, min, max;
    const struct choice *choices;
};

#define LONG_TIME 1000000000L
static const struct row rows[] = {
    {"DEVICES", &shca_settings.devices, 1, 0, SHCA_DEVICES, NULL},
    {"LINK", &shca_settings.link, IBV_LINK_LAYER_ETHERNET, 0, 0, links},
    {"NO_GID_DEVICE", &shca_settings.no_gid_device, -1, -1, SHCA_DEVICES - 1, NULL},
    {"NO_IPV4_DEVICE", &shca_settings.no_ipv4_device, -1, -1, SHCA_DEVICES - 1, NULL},
    {"MTU", &shca_settings.mtu, 4096, 256, 4096, NULL},
    {"MAX_MSG", &shca_settings.max_msg, 1 << 30, 1, 1L << 31, NULL},
    {"MAX_QP", &shca_settings.max_qp, SHCA_QPS - 1, 1, SHCA_QPS - 1, NULL},
    {"MAX_QP_WR", &shca_settings.max_qp_wr, 32768, 1, 1 << 20, NULL},
    {"MAX_SGE", &shca_settings.max_sge, 30, 1, 64, NULL},
    {"MAX_INLINE", &shca_settings.max_inline, 512, 0, 4096, NULL},
    {"MAX_RD_ATOMIC", &shca_settings.max_rd_atomic, 16, 0, 128, NULL},
    {"MAX_CQE", &shca_settings.max_cqe, 1 << 22, 1, 1 << 22, NULL},
    {"ATOMIC_CAP", &shca_settings.atomic_cap, IBV_ATOMIC_HCA, 0, 0, caps},
    {"ATOMIC_GAP_US", &shca_settings.atomic_gap_us, 0, 0, 1000000, NULL},
    {"DMABUF", &shca_settings.dmabuf, 1, 0, 1, NULL},
    {"PEERMEM", &shca_settings.peermem, 1, 0, 1, NULL},
    {"SEED", &shca_settings.seed, 1, 0, LONG_TIME, NULL},
    {"DELAY_US", &shca_settings.delay_us, 0, 0, 1000000, NULL},
    {"REORDER", &shca_settings.reorder, 0, 0, 1, NULL},
    {"DATAGRAM_LOSS", &shca_settings.datagram_loss, 0, 0, 100, NULL},
    {"DATAGRAM_TWICE", &shca_settings.datagram_twice, 0, 0, 100, NULL},
    {"MISORDER_US", &shca_settings.misorder_us, 0, 0, 1000000, NULL},
    {"LATE_US", &shca_settings.late_us, 0, 0, 1000000, NULL},
    {"LATE_DEVICES", &shca_settings.late_devices, 255, 0, 255, NULL},
    {"FLUSH_US", &shca_settings.flush_us, 0, 0, 10000000, NULL},
    {"RANK", &shca_settings.rank, -1, -1, LONG_TIME, NULL},
    {"DOWN_DEVICE", &shca_settings.down_device, 0, 0, SHCA_DEVICES - 1, NULL},
    {"DOWN_AFTER", &shca_settings.down_after, -1, -1, LONG_TIME, NULL},
    {"DOWN_MS", &shca_settings.down_ms, 0, 0, 1000000, NULL},
    {"DOWN_LOST", &shca_settings.down_lost, 0, 0, 1000, NULL},
    {"THEN_DEVICE", &shca_settings.then_device, 0, 0, SHCA_DEVICES - 1, NULL},
    {"THEN_AFTER", &shca_settings.then_after, -1, -1, LONG_TIME, NULL},
    {"PSN", &shca_settings.psn, 1, 0, 1, NULL},
    {"FAIL_AFTER", &shca_settings.fail_after, -1, -1, LONG_TIME, NULL},
    {"FAIL_STATUS", &shca_settings.fail_status, IBV_WC_RETRY_EXC_ERR, 0, 0, statuses},
    {"POST_FULL_EVERY", &shca_settings.post_full_every, 0, 0, LONG_TIME, NULL},
    {"REG_FAIL_AFTER", &shca_settings.reg_fail_after, -1, -1, LONG_TIME, NULL},
    {"REG_LIMIT", &shca_settings.reg_limit, 0, 0, LONG_TIME * 1000, NULL},
    {"EVENT_AFTER", &shca_settings.event_after, -1, -1, LONG_TIME, NULL},
    {"EVENT", &shca_settings.event, IBV_EVENT_PORT_ERR, 0, 0, events},
    {"FENCE_STALL", &shca_settings.fence_stall, -1, -1, LONG_TIME, NULL},
    {"MLX5", &shca_settings.mlx5, 0, 0, 1, NULL},
    {"DEVX", &shca_settings.devx, 1, 0, 1, NULL},
    {"LOOK_US", &shca_settings.look_us, 50, 0, 1000000, NULL},
    {"CQE_BURST", &shca_settings.cqe_burst, 1, 1, 64, NULL},
    {"NULL", &shca_settings.null, 0, 0, 1, NULL},
    {"QUIET", &shca_settings.quiet, 0, 0, 1, NULL},
};

static bool read_choice(const struct row *row, const char *text)
{
    for (const struct choice *choice = row->choices; choice->name; choice++)
        if (!strcmp(choice->name, text)) {
            *row->value = choice->value;
            return true;
        }
    fprintf(stderr, "softhca: GPUSHMEM_SOFTHCA_%s=%s is not one of", row->name, text);
    for (const struct choice *choice = row->choices; choice->name; choice++)
        fprintf(stderr, " %s", choice->name);
    fprintf(stderr, "\n");
    return false;
}

static bool read_row(const struct row *row)
{
    char name[64];
    snprintf(name, sizeof name, "GPUSHMEM_SOFTHCA_%s", row->name);
    const char *text = getenv(name);
    *row->value = row->fallback;
    if (!text || !*text)
        return true;
    if (row->choices)
        return read_choice(row, text);
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || value < row->min || value > row->max) {
        shca_say("%s=%s: wants a number in %ld..%ld", name, text, row->min, row->max);
        return false;
    }
    *row->value = value;
    return true;
}

// Faults may be for one PE only: the job's launcher gives every process the same environment.
static void forget_faults(void)
{
    const char *rank = getenv("PMIX_RANK");
    if (!rank)
        rank = getenv("GPUSHMEM_RUN_PE");
    if (shca_settings.rank < 0 || (rank && atol(rank) == shca_settings.rank))
        return;
    shca_settings.fail_after = shca_settings.reg_fail_after = shca_settings.event_after = -1;
    shca_settings.down_after = shca_settings.fence_stall = -1;
    shca_settings.post_full_every = 0;
}

static bool settings_ok;

static void settings_read_once(void)
{
    settings_ok = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        settings_ok = read_row(&rows[i]) && settings_ok;
    long mtu = shca_settings.mtu;
    if (mtu & (mtu - 1)) {
        shca_say("GPUSHMEM_SOFTHCA_MTU=%ld: wants 256, 512, 1024, 2048 or 4096", mtu);
        settings_ok = false;
    }
    const char *dir = getenv("GPUSHMEM_SOFTHCA_DIR");
    static char usual_dir[64];
    snprintf(usual_dir, sizeof usual_dir, "/dev/shm/gpushmem-softhca-%u", (unsigned)getuid());
    shca_settings.dir = dir && *dir ? dir : usual_dir;
    forget_faults();
}

bool shca_settings_read(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, settings_read_once);
    return settings_ok;
}

void shca_say(const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "softhca: %s\n", line);
}

uint64_t shca_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), over seed and arguments.
uint64_t shca_random(uint64_t a, uint64_t b)
{
    uint64_t z = (uint64_t)shca_settings.seed * 0x9e3779b97f4a7c15u + a * 0xd1342543de82ef95u +
                 b * 0x2545f4914f6cdd1du;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
