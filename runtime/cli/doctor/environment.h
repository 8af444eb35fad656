// SPDX-License-Identifier: BSD-3-Clause
// What several checks ask of the process and of what it runs in.
#ifndef GPSH_DOCTOR_ENVIRONMENT_H
#define GPSH_DOCTOR_ENVIRONMENT_H

#include "doctor/host.h"

// "docker", "podman", ... or NULL outside containers.
const char *gpsh_environment_container(const struct gpsh_host *host);

// Bytes of GPUSHMEM_HEAP_SIZE, or its default.
int64_t gpsh_environment_heap(const struct gpsh_host *host);

// A variable, or what settings files say for it: the value, or "" if nobody has given one.
const char *gpsh_environment_setting(const struct gpsh_host *host, const char *name, char *value,
                                     size_t bytes);

// A file of this process's control group, "memory.max": 0, -errno or -ENOENT without such a group.
int gpsh_environment_cgroup(const struct gpsh_host *host, const char *file, char *text,
                            size_t bytes);

// The number after "Name:" in /proc/self/status or /proc/self/limits; false if there is none.
bool gpsh_environment_field(const char *text, const char *name, char *value, size_t bytes);

#endif
