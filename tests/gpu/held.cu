// SPDX-License-Identifier: BSD-3-Clause
// On the fake driver, which keeps a proxy in a call as one does while another thread of the program
// copies in the default stream behind a kernel: the PE says so. usage: held told|past|shown
// [GPUSHMEM]: `told`: where a kernel has timed out for it; `past`: not where the driver has let the
// proxy go before the kernel began; `shown`: in the log, on SIGUSR1 and in what `gpushmem stat`
// says, though no thread of the program is in a wait of the library.
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/device/check.h"

enum { LONG_US = 2200000, PATIENCE_MS = 60000, VALUE = 7 };
static const char sentence[] =
    "the CUDA driver has kept the thread gpushmem-proxy of PE 0 waiting for ";

static void (*hold)(const char *function);

static void find_hold(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, "fake_cuda_hold") : NULL;
    CHECK(symbol);
    memcpy(&hold, &symbol, sizeof symbol);
}

// The driver's call returns at the end of a kernel at the latest.
__global__ void get(long *to, const long *from)
{
    gpushmem_dev_getmem(to, from, sizeof *to, 0);
    hold(NULL);
}

__global__ void wait_for(long *word)
{
    gpushmem_dev_long_wait_until(word, GPUSHMEM_CMP_EQ, VALUE);
}

static void kernel_is_served(long *words)
{
    CHECK_OK(GPUSHMEM_LAUNCH(get, 1, 1, NULL, words, words + 1));
    CHECK_OK(gpushmem_launch_wait(NULL));
}

static void kernel_that_was_not_served_tells_why(long *words)
{
    hold("cuMemcpyAsync");
    CHECK_OK(GPUSHMEM_LAUNCH(get, 1, 1, NULL, words, words + 1));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TIMEOUT);
    const char *told = strstr(gpushmem_last_error(), sentence);
    CHECK(strstr(gpushmem_last_error(), " timed out after ") && told);
    CHECK(told && atof(told + strlen(sentence)) > 1 && strstr(told, "cudaStreamNonBlocking"));
    fprintf(stderr, "%s\n", gpushmem_last_error());
}

static void kernel_that_waits_in_vain_does_not(long *words)
{
    hold("cuMemcpyAsync");
    CHECK_OK(GPUSHMEM_LAUNCH(get, 1, 1, NULL, words, words + 1));
    usleep(LONG_US);
    hold(NULL);
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(GPUSHMEM_LAUNCH(wait_for, 1, 1, NULL, words));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TIMEOUT);
    CHECK(strstr(gpushmem_last_error(), " timed out after ") &&
          !strstr(gpushmem_last_error(), "CUDA driver"));
}

// ---- What is shown meanwhile ----

static int log_file;
static char said[1 << 16];

static bool log_says(const char *text)
{
    ssize_t bytes = pread(log_file, said, sizeof said - 1, 0);
    said[bytes > 0 ? bytes : 0] = '\0';
    return strstr(said, text);
}

static bool stat_says(const char *gpushmem, const char *text)
{
    char command[512];
    snprintf(command, sizeof command, "'%s' stat --waits %d 2>&1", gpushmem, (int)getpid());
    FILE *out = popen(command, "r"); // NOLINT(cert-env33-c): a program of this build
    size_t bytes = out ? fread(said, 1, sizeof said - 1, out) : 0;
    said[bytes] = '\0';
    return out && pclose(out) == 0 && strstr(said, text);
}

// Now or soon.
template <typename Say> static bool soon(Say says)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 100, usleep(100000))
        if (says())
            return true;
    fprintf(stderr, "it said: %s\n", said);
    return false;
}

static void others_see_it(long *words, const char *gpushmem)
{
    char line[128];
    log_file = memfd_create("log", 0);
    int terminal = dup(STDERR_FILENO);
    dup2(log_file, STDERR_FILENO);
    hold("cuMemcpyAsync");
    CHECK_OK(GPUSHMEM_LAUNCH(get, 1, 1, NULL, words, words + 1));
    snprintf(line, sizeof line, "WARN gpu: %s", sentence);
    bool logged = soon([&] { return log_says(line); });
    bool reported = soon([&] {
        return log_says("WARN hang: PE 0 is in gpushmem-proxy, waiting for the CUDA "
                        "driver: is a thread of the program in a copy");
    });
    bool listed =
        soon([&] { return stat_says(gpushmem, "gpushmem-proxy  waiting for the CUDA driver"); });
    kill(getpid(), SIGUSR1);
    snprintf(line, sizeof line, "WARN gpu: SIGUSR1: %s", sentence);
    bool asked = soon([&] { return log_says(line); });
    hold(NULL);
    CHECK_OK(gpushmem_launch_wait(NULL));
    bool over = soon([&] { return stat_says(gpushmem, "in no wait of a second or longer"); });
    dup2(terminal, STDERR_FILENO);
    CHECK(logged);
    CHECK(reported);
    CHECK(listed);
    CHECK(asked);
    CHECK(over);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    check_begin();
    find_hold();
    long *words = (long *)gpushmem_calloc(2, sizeof *words);
    if (!check_failures) {
        kernel_is_served(words);
        if (!strcmp(mode, "told"))
            kernel_that_was_not_served_tells_why(words);
        else if (!strcmp(mode, "past"))
            kernel_that_waits_in_vain_does_not(words);
        else
            others_see_it(words, argc > 2 ? argv[2] : "");
    }
    gpushmem_free(words);
    return check_end("held");
}
