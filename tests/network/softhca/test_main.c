// SPDX-License-Identifier: BSD-3-Clause
// softhca_test [GROUP [CASE]]: each case runs in a process of its own, once per mode, with its own
// settings. The group gpu_queues is mlx5 and misuse with queues in GPU memory.
#define _GNU_SOURCE // setenv
#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/scratch.h"
#include "program.h"

int failures;

static const struct {
    const char *name;
    const struct test_case *cases;
} groups[] = {{"ops", ops_cases},       {"errors", error_cases}, {"order", order_cases},
              {"device", device_cases}, {"faults", fault_cases}, {"datagrams", datagram_cases},
              {"gpu", gpu_cases},       {"mlx5", mlx5_cases},    {"misuse", misuse_cases},
              {"devx", devx_cases}};

static void set_environment(const char *list)
{
    char copy[256], *rest;
    setenv("GPUSHMEM_SOFTHCA_QUIET", "1", 1);
    snprintf(copy, sizeof copy, "%s", list ? list : "");
    for (char *item = strtok_r(copy, " ", &rest); item; item = strtok_r(NULL, " ", &rest)) {
        char name[64], *value = strchr(item, '=');
        snprintf(name, sizeof name, "GPUSHMEM_SOFTHCA_%.*s", (int)(value - item), item);
        setenv(name, value + 1, 1);
    }
}

static const char *mode_name(enum mode mode)
{
    return mode == SAME_PROCESS     ? "same process"
           : mode == PRIVATE_MEMORY ? "private memory"
                                    : "mapped memory";
}

static void run_on_pair(const struct test_case *item, enum mode mode)
{
    struct pair pair;
    pair_open(&pair, mode, &usual);
    item->on_pair(&pair);
    pair_close(&pair);
}

static int run(const struct test_case *item, enum mode mode)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        set_environment(item->environment);
        alarm(60); // against a hang
        if (item->run)
            item->run(mode);
        else
            run_on_pair(item, mode);
        exit(failures != 0);
    }
    if (waitpid(child, &status, 0) != child || status) {
        printf("FAILED %s (%s), status %d\n", item->name, mode_name(mode), status);
        return 1;
    }
    printf("ok     %s (%s)\n", item->name, mode_name(mode));
    return 0;
}

static int entries(const char *path)
{
    DIR *directory = opendir(path);
    int n = -2; // . and ..
    while (directory && readdir(directory))
        n++;
    if (directory)
        closedir(directory);
    return directory ? n : 0;
}

// Those of mlx5 run with queues in GPU memory, too.
static bool is_asked(const char *wanted, const char *name, const struct test_case *cases)
{
    if (queues_on_gpu)
        return cases == mlx5_cases || cases == misuse_cases;
    return wanted ? !strcmp(wanted, name) : cases != gpu_cases;
}

int main(int argc, char **argv)
{
    queues_on_gpu = argc > 1 && !strcmp(argv[1], "gpu_queues");
    if (argc > 1 && (queues_on_gpu || !strcmp(argv[1], "gpu")) && !gpu_present()) {
        printf("[SKIP] no GPU here\n");
        return 77;
    }
    char directory[128];
    int failed = 0, ran = 0;
    if (gpsh_scratch_dir("softhca-test", 64, directory, sizeof directory)) {
        perror(directory);
        return 2;
    }
    setenv("GPUSHMEM_SOFTHCA_DIR", directory, 1);
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        if (!is_asked(argc > 1 ? argv[1] : NULL, groups[g].name, groups[g].cases))
            continue;
        for (const struct test_case *item = groups[g].cases; item->name; item++)
            for (int mode = SAME_PROCESS; mode <= MAPPED_MEMORY; mode *= 2)
                if ((item->modes & mode) && (argc < 3 || !strcmp(argv[2], item->name))) {
                    ran++;
                    failed += run(item, (enum mode)mode);
                }
    }
    if (entries(directory) > 0) {
        printf("FAILED the directory was not left empty\n");
        failed++;
    }
    rmdir(directory);
    printf("%d cases, %d failed\n", ran, failed);
    return failed || !ran;
}
