// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SOCK_CLOEXEC
#include "core/launcher_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

// The launcher's socket, if this process still writes where the launcher let it.
static bool address_find(struct sockaddr_un *address)
{
    unsigned long long device, inode;
    int path = 0;
    struct stat st;
    const char *where = getenv(GPSH_LAUNCHER_LOG);
    if (!where || sscanf(where, "%llu:%llu:%n", &device, &inode, &path) != 2 || path == 0 ||
        strlen(where + path) >= sizeof(address->sun_path) || fstat(STDERR_FILENO, &st) < 0)
        return false;
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, where + path);
    return st.st_dev == device && st.st_ino == inode;
}

bool gpsh_launcher_log_call(int pe)
{
    return gpsh_launcher_log_send(pe, "", 0);
}

bool gpsh_launcher_log_send(int pe, const char *text, size_t bytes)
{
    struct sockaddr_un address;
    const char *launched_as = getenv("GPUSHMEM_RUN_PE");
    if (!address_find(&address) || (pe < 0 && !launched_as))
        return false;
    struct gpsh_launcher_line head = {.pe = pe < 0 ? atoi(launched_as) : pe};
    struct iovec parts[] = {{.iov_base = &head, .iov_len = sizeof(head)},
                            {.iov_base = (void *)text, .iov_len = bytes}};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = parts, .msg_iovlen = 2};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    struct timeval patience = {.tv_sec = 1}; // a stopped launcher must not stop the PE
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    bool sent = sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
    close(fd);
    return sent;
}
