// SPDX-License-Identifier: BSD-3-Clause
// Checks of GPUs and their driver.
#include "gpu/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "core/config.h"
#include "doctor/check.h"
#include "gpu/gpu_driver.h"
#include "gpushmem/gpushmem.h"

enum { OLDEST_DRIVER = 515, VERSION_BYTES = 32 };

// "580.65.06": the first word of the kernel driver's line that looks like one. False if there is
// none.
static bool version_find(const char *text, char *version)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " \t\n");
        if (strspn(at, "0123456789.") == length && memchr(at, '.', length) &&
            length < VERSION_BYTES) {
            memcpy(version, at, length);
            version[length] = '\0';
            return true;
        }
        at += length + (at[length] != '\0');
    }
    return false;
}

static int kernel_driver_read(const struct gpsh_host *host, char *text, size_t bytes)
{
    int n = gpsh_host_read(host, text, bytes, "proc/driver/nvidia/version");
    text[strcspn(text, "\n")] = '\0'; // the second line is about the compiler
    return n;
}

GPSH_CHECK_FUNCTION(driver)
{
    char text[256], version[VERSION_BYTES];
    int status = kernel_driver_read(host, text, sizeof text);
    if (status == -ENOENT) {
        bool nouveau = !gpsh_host_access(host, 0, "sys/module/nouveau");
        gpsh_found(finding, GPSH_PROBLEM, "%d GPU%s, and NVIDIA's kernel driver is not loaded%s",
                   host->gpus.n, host->gpus.n > 1 ? "s" : "", nouveau ? "; nouveau has them" : "");
        if (nouveau)
            gpsh_mend(finding, "echo blacklist nouveau | sudo tee /etc/modprobe.d/nouveau.conf; "
                               "sudo update-initramfs -u; reboot");
    } else if (status < 0) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/driver/nvidia/version cannot be read (%s)",
                   strerror(-status));
    } else if (!version_find(text, version)) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/driver/nvidia/version has no version: %.80s",
                   text);
    } else if (atoi(version) < OLDEST_DRIVER) {
        gpsh_found(finding, GPSH_PROBLEM, "NVIDIA driver %s is older than %d", version,
                   OLDEST_DRIVER);
        gpsh_mend(finding, "install driver %d or newer (CUDA 11.7)", OLDEST_DRIVER);
    } else {
        gpsh_found(finding, GPSH_OK, "%d GPU%s, NVIDIA driver %s", host->gpus.n,
                   host->gpus.n > 1 ? "s" : "", version);
    }
}

// ---- The user's half of the driver ----

// Which version libcuda.so.1 leads to. False if it is in none of the usual places.
static bool libcuda_find(const struct gpsh_host *host, char *version)
{
    char target[256];
    if (!gpsh_host_library(host, "libcuda.so.1", target, sizeof target))
        return false;
    const char *at = strstr(target, "libcuda.so.");
    snprintf(version, VERSION_BYTES, "%.31s", at ? at + strlen("libcuda.so.") : "?");
    return true;
}

static void cuda_ask(struct gpsh_finding *finding)
{
    int n = gpsh_cli_gpus();
    if (!n) { // without the hint at this very check
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s", gpushmem_last_error());
        char *hint = strstr(sentence, " `gpushmem doctor`");
        if (hint)
            *hint = '\0';
        gpsh_found(finding, GPSH_PROBLEM, "%s", sentence);
    } else
        gpsh_found(finding, GPSH_OK, "the driver knows CUDA %d.%d and gives this process %d GPU%s",
                   gpsh_gpu_driver_version() / 1000, gpsh_gpu_driver_version() % 1000 / 10, n,
                   n > 1 ? "s" : "");
}

// Without GPUs, init fails if a setting insists on one.
static void cuda_wanted(const struct gpsh_host *host, struct gpsh_finding *finding)
{
    char kind[32];
    gpsh_environment_setting(host, "GPUSHMEM_HEAP_KIND", kind, sizeof kind);
    if (finding->result != GPSH_NOT_APPLICABLE || strcmp(kind, "device") != 0)
        return;
    gpsh_found(finding, GPSH_PROBLEM,
               "no NVIDIA GPU on the PCI bus, and GPUSHMEM_HEAP_KIND=device wants one");
    gpsh_mend(finding, "unset GPUSHMEM_HEAP_KIND, or start on a machine with a GPU (docker: "
                       "--gpus all)");
}

GPSH_CHECK_FUNCTION(cuda)
{
    char text[256], kernel[VERSION_BYTES] = "", library[VERSION_BYTES] = "";
    if (!gpsh_has_need(host, GPSH_NEEDS_GPU, finding)) {
        cuda_wanted(host, finding);
        return;
    }
    bool found = libcuda_find(host, library);
    if (kernel_driver_read(host, text, sizeof text) > 0)
        version_find(text, kernel);
    if (found && kernel[0] && library[0] != '?' && strcmp(library, "1") != 0 &&
        strcmp(kernel, library) != 0)
        gpsh_found(finding, GPSH_PROBLEM, "libcuda.so.1 is of driver %s, the kernel's is %s",
                   library, kernel);
    else if (host->live)
        cuda_ask(finding);
    else if (found)
        gpsh_found(finding, GPSH_OK, "libcuda.so.1 is of driver %s", library);
    else
        gpsh_found(finding, GPSH_PROBLEM, "there is no libcuda.so.1");
}

// ---- Files of GPUs ----

static void file_check(const struct gpsh_host *host, struct gpsh_finding *finding, const char *name)
{
    int status = gpsh_host_access(host, 4 | 2, "dev/%s", name);
    if (status == -ENOENT)
        gpsh_found(finding, GPSH_PROBLEM, "/dev/%s is missing", name);
    else if (status)
        gpsh_found(finding, GPSH_PROBLEM, "/dev/%s may not be opened by this user (%s)", name,
                   strerror(-status));
    else
        gpsh_found(finding, GPSH_OK, "/dev/%s", name);
}

GPSH_CHECK_FUNCTION(gpu_files)
{
    static struct gpsh_names names;
    int n = 0;
    file_check(host, finding, "nvidiactl");
    file_check(host, finding, "nvidia-uvm");
    gpsh_host_list(host, &names, "dev");
    for (int i = 0; i < names.n; i++) {
        const char *digits = names.name[i] + strlen("nvidia");
        if (strncmp(names.name[i], "nvidia", 6) != 0 || !*digits ||
            digits[strspn(digits, "0123456789")])
            continue;
        file_check(host, finding, names.name[i]);
        n++;
    }
    if (!n)
        gpsh_found(finding, GPSH_PROBLEM, "/dev/nvidia0 and so on are missing");
    if (finding->result == GPSH_PROBLEM && gpsh_environment_container(host))
        gpsh_mend(finding, "start the container with --gpus all");
}

// ---- NVSwitches ----

GPSH_CHECK_FUNCTION(fabric_manager)
{
    char first[32];
    if (gpsh_host_runs(host, "nv-fabricmanager"))
        gpsh_found(finding, GPSH_OK, "%d NVSwitches, nv-fabricmanager runs", host->switches.n);
    else if (gpsh_environment_container(host))
        gpsh_found(finding, GPSH_CANNOT_TELL,
                   "%d NVSwitches; processes of the host cannot be seen in this container",
                   host->switches.n);
    else if (gpsh_host_read(host, first, sizeof first, "proc/1/comm") <= 0)
        gpsh_found(finding, GPSH_CANNOT_TELL,
                   "%d NVSwitches; /proc shows this user no processes of others (hidepid)",
                   host->switches.n);
    else
        gpsh_found(finding, GPSH_PROBLEM, "%d NVSwitches, and nv-fabricmanager does not run",
                   host->switches.n);
}

// ---- What NICs need of the driver ----

static bool kernel_has_dmabuf(const struct gpsh_host *host)
{
    int major = 0, minor = 0;
    char text[64];
    gpsh_host_read(host, text, sizeof text, "proc/sys/kernel/osrelease");
    return sscanf(text, "%d.%d", &major, &minor) == 2 && (major > 5 || (major == 5 && minor >= 12));
}

static bool driver_has_dmabuf(const struct gpsh_host *host)
{
    int has = 0;
    gpsh_cu_device device;
    char text[256];
    if (!host->live)
        return kernel_driver_read(host, text, sizeof text) > 0 && strstr(text, "Open Kernel");
    return gpsh_cli_gpus() && !gpsh_cu.device_get(&device, 0) &&
           !gpsh_cu.device_attribute(&has, GPSH_CU_ATTRIBUTE_DMA_BUF, device) && has;
}

static bool has_peer_memory(const struct gpsh_host *host)
{
    return !gpsh_host_access(host, 0, "sys/module/nvidia_peermem") ||
           !gpsh_host_access(host, 0, "sys/module/nv_peer_mem");
}

bool gpsh_gpus_have_dmabuf(const struct gpsh_host *host)
{
    return kernel_has_dmabuf(host) && driver_has_dmabuf(host);
}

bool gpsh_nics_reach_gpus(const struct gpsh_host *host)
{
    return has_peer_memory(host) || gpsh_gpus_have_dmabuf(host);
}

GPSH_CHECK_FUNCTION(gpudirect)
{
    char setting[32] = "";
    bool peer_memory = has_peer_memory(host);
    bool dmabuf = gpsh_gpus_have_dmabuf(host);
    if (!host->nics.n)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no RDMA NIC");
    else if (!strcmp(gpsh_environment_setting(host, "GPUSHMEM_GPUDIRECT", setting, sizeof setting),
                     "never")) {
        gpsh_found(finding, GPSH_PROBLEM, "GPUSHMEM_GPUDIRECT=never turns it off");
        gpsh_mend(finding, "unset GPUSHMEM_GPUDIRECT, or take it out of the settings file");
    } else if (peer_memory || dmabuf)
        gpsh_found(finding, GPSH_OK, "%s%s%s", dmabuf ? "dma-buf" : "",
                   dmabuf && peer_memory ? " and " : "", peer_memory ? "nvidia-peermem" : "");
    else
        gpsh_found(finding, GPSH_PROBLEM,
                   "neither nvidia-peermem is loaded nor dma-buf there, which takes Linux 5.12 and "
                   "the open kernel driver");
}

// ---- The window through which others see a GPU's memory ----

// The largest of the six base address registers.
static long long largest_bar(const char *resource)
{
    long long largest = 0;
    for (int i = 0; i < 6 && *resource; i++) {
        unsigned long long start, end;
        if (sscanf(resource, "%llx %llx", &start, &end) != 2)
            return -1;
        long long bytes = end > start ? (long long)(end - start + 1) : 0;
        largest = bytes > largest ? bytes : largest;
        resource += strcspn(resource, "\n");
        resource += *resource == '\n';
    }
    return largest;
}

GPSH_CHECK_FUNCTION(bar1)
{
    char text[2048];
    const char *pci = item->pci;
    long long heap = gpsh_environment_heap(host);
    int status = gpsh_host_read(host, text, sizeof text, "sys/bus/pci/devices/%s/resource", pci);
    long long bytes = status < 0 ? -1 : largest_bar(text);
    if (bytes < 0)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/bus/pci/devices/%s/resource %s", pci,
                   status < 0 ? strerror(-status) : "is malformed");
    else if (bytes <= heap)
        gpsh_found(finding, GPSH_PROBLEM,
                   "GPU %s shows %lld MiB of its memory, a heap of %lld MiB and the library's "
                   "words do not fit",
                   pci, bytes >> 20, heap >> 20);
    else
        gpsh_found(finding, GPSH_OK, "GPU %s shows %lld MiB", pci, bytes >> 20);
}
