// SPDX-License-Identifier: BSD-3-Clause
// One PE of a job that nobody launched: it finds the unique id in a file.
//   peer FILE RANK N ring [ROUNDS]   joins, greets its neighbours, leaves; round i uses FILE.i
//   peer FILE RANK N thread          the same in a thread other than main
//   peer FILE RANK N late MS         joins MS later
//   peer FILE RANK N stay            joins, says so, and waits for a word that never comes; reads
//                                    what there is to do from standard input, a line each:
//                                    exit CODE (global_exit), leave (without finalize), fork (a
//                                    child that sleeps), nvshmem (its init, once more), crash (in
//                                    a handler at exit), end CODE (exit)
//   peer FILE RANK N barrier         joins, and ends after a barrier, without finalize
//   peer FILE RANK N flee            as stay, but leaves at the first loss
//   peer FILE RANK N print           the same, and prints and reads where standard streams would be
//   peer FILE RANK N starve          joins when it can open no more files
//   peer FILE RANK N survive         if init fails, is still there a while later, and says so
//   peer FILE - - host               only makes ids, and waits for the end of standard input
// The process with RANK 0, or host, makes the id if the file is not there. Exit code 3: init
// failed, with its sentence on standard output.
#define _GNU_SOURCE // usleep
#include <dirent.h>
#include <gpushmem/compat/nvshmem.h>
#include <gpushmem/gpushmem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *file, *command;
static int rank, n_pes, rounds = 1;

static void fail(const char *what)
{
    printf("rank %d: %s: %d: %s\n", rank, what, gpushmem_last_error_code(), gpushmem_last_error());
    fflush(stdout);
    exit(3);
}

static void write_id(const char *path)
{
    char unfinished[512];
    gpushmem_uniqueid_t id;
    if (gpushmem_get_uniqueid(&id))
        fail("get_uniqueid");
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    FILE *f = fopen(unfinished, "w");
    if (!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f) || rename(unfinished, path)) {
        perror(path);
        exit(1);
    }
}

static gpushmem_uniqueid_t read_id(const char *path)
{
    gpushmem_uniqueid_t id;
    FILE *f;
    while (!(f = fopen(path, "r")))
        usleep(2000);
    if (fread(&id, sizeof id, 1, f) != 1) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return id;
}

// Until no descriptor is left for the library.
static void starve(void)
{
    while (dup(STDERR_FILENO) >= 0)
        ;
}

// Whoever would end the process, ends it in this time.
static void survive(void)
{
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", gpushmem_last_error());
    usleep(400000);
    printf("rank %d survived: %s\n", rank, sentence);
    exit(3);
}

static void join(int round)
{
    char path[512];
    snprintf(path, sizeof path, "%s.%d", file, round);
    if (rank == 0 && access(path, F_OK))
        write_id(path);
    gpushmem_uniqueid_t id = read_id(path);
    if (strcmp(command, "starve") == 0)
        starve();
    int status = gpushmem_init_with_uniqueid(&id, rank, n_pes);
    if (status && strcmp(command, "survive") == 0)
        survive();
    if (status)
        fail("init");
}

// Everybody's number goes to everybody.
static void greet(void)
{
    long *inbox = gpushmem_calloc((size_t)n_pes, sizeof *inbox);
    if (!inbox)
        fail("calloc");
    for (int pe = 0; pe < n_pes; pe++)
        if (gpushmem_long_p(&inbox[rank], 100 + rank, pe))
            fail("p");
    if (gpushmem_barrier_all())
        fail("barrier");
    for (int pe = 0; pe < n_pes; pe++)
        if (inbox[pe] != 100 + pe) {
            printf("rank %d: PE %d said %ld\n", rank, pe, inbox[pe]);
            exit(1);
        }
    gpushmem_free(inbox);
}

// The program's static data stays where it is.
static bool is_static_data(const char *directory, const char *name)
{
    char path[512], target[64] = "";
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return readlink(path, target, sizeof target - 1) > 0 && strstr(target, "gpushmem-static");
}

static int count_entries(const char *directory)
{
    int n = 0;
    struct dirent *entry;
    DIR *d = opendir(directory);
    while (d && (entry = readdir(d)))
        n += !is_static_data(directory, entry->d_name);
    if (d)
        closedir(d);
    return n;
}

// Descriptors and threads. The thread where the PEs met may still be on its way out.
static void check_nothing_is_left(int descriptors, int threads)
{
    for (int i = 0; i < 1000; i++) {
        if (count_entries("/proc/self/fd") <= descriptors &&
            count_entries("/proc/self/task") <= threads)
            return;
        usleep(10000);
    }
    printf("rank %d: %d descriptors and %d threads, before %d and %d\n", rank,
           count_entries("/proc/self/fd"), count_entries("/proc/self/task"), descriptors, threads);
    exit(1);
}

static void *run_ring(void *unused)
{
    int descriptors = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    (void)unused;
    for (int round = 0; round < rounds; round++) {
        join(round);
        greet();
        if (round == rounds - 1)
            printf("pe %d of %d, %d of %d on its node: ok\n", gpushmem_my_pe(), gpushmem_n_pes(),
                   gpushmem_node_my_pe(), gpushmem_node_n_pes());
        if (gpushmem_finalize())
            fail("finalize");
    }
    check_nothing_is_left(descriptors, threads);
    return NULL;
}

static volatile bool crashes;

// Registered before any init, so that it is called after what those register.
static void handle_exit(void)
{
    if (crashes)
        abort();
}

static void *obey(void *unused)
{
    char line[64];
    int code;
    (void)unused;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "exit %d", &code) == 1)
            gpushmem_global_exit(code);
        if (strncmp(line, "leave", 5) == 0)
            _exit(0);
        if (strncmp(line, "nvshmem", 7) == 0) {
            nvshmem_init();
            printf("rank %d: joined again\n", rank);
            fflush(stdout);
        }
        crashes = crashes || strncmp(line, "crash", 5) == 0;
        if (sscanf(line, "end %d", &code) == 1)
            exit(code);
        if (strncmp(line, "fork", 4) == 0 && fork() == 0) {
            sleep(30); // holds copies of all descriptors
            _exit(0);
        }
    }
    return NULL;
}

static void flee(void)
{
    printf("rank %d: left: %s\n", rank, gpushmem_finalize() ? gpushmem_last_error() : "ok");
    exit(0);
}

static void run_stay(bool flees)
{
    pthread_t thread;
    atexit(handle_exit);
    join(0);
    long *never = gpushmem_calloc(1, sizeof *never);
    if (!never || pthread_create(&thread, NULL, obey, NULL))
        fail("calloc");
    printf("rank %d: here\n", rank);
    fflush(stdout);
    for (;;) { // each loss ends one wait
        if (gpushmem_long_wait_until(never, GPUSHMEM_CMP_EQ, 1)) {
            printf("rank %d: told: %s\n", rank, gpushmem_last_error());
            fflush(stdout);
            if (flees)
                flee();
        }
    }
}

static void run_barrier(void)
{
    join(0);
    nvshmem_init();
    long *word = gpushmem_calloc(1, sizeof *word);
    gpushmem_long_p(word, 1, (rank + 1) % n_pes); // there are connections
    for (int i = 0; i < 2; i++)
        if (gpushmem_barrier_all())
            fail("barrier_all");
}

static void run_print(void)
{
    join(0);
    for (int i = 0; i < 1000; i++) {
        printf("what the program prints\n");
        fflush(stdout);
        fprintf(stderr, "and what it complains of\n");
    }
    while (getchar() != EOF)
        ;
    greet();
    if (gpushmem_finalize())
        _exit(4);
}

static void run_host(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s.0", file);
    write_id(path);
    while (getchar() != EOF)
        ;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 5)
        return 2;
    file = argv[1];
    rank = atoi(argv[2]);
    n_pes = atoi(argv[3]);
    command = argv[4];
    if (strcmp(command, "host") == 0) {
        run_host();
    } else if (strcmp(command, "stay") == 0) {
        run_stay(false);
    } else if (strcmp(command, "barrier") == 0) {
        run_barrier();
    } else if (strcmp(command, "flee") == 0) {
        run_stay(true);
    } else if (strcmp(command, "print") == 0) {
        run_print();
    } else if (strcmp(command, "thread") == 0) {
        return pthread_create(&thread, NULL, run_ring, NULL) || pthread_join(thread, NULL);
    } else {
        if (strcmp(command, "late") == 0)
            usleep((useconds_t)atoi(argv[5]) * 1000);
        else if (argc > 5)
            rounds = atoi(argv[5]);
        run_ring(NULL);
    }
    return 0;
}
