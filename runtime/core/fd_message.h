// SPDX-License-Identifier: BSD-3-Clause
// Messages on unix sockets that bear descriptors, and say who sends them.
#ifndef GPSH_FD_MESSAGE_H
#define GPSH_FD_MESSAGE_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { GPSH_FD_MESSAGE_MOST = 252 }; // descriptors; the kernel takes 253

// As sendmsg, whatever signals come: `message` has its parts, and the address if the socket has no
// other end. With it go n descriptors, which stay the caller's. `signs`: it says who sends, and the
// kernel lets nobody lie; it would say so itself where the receiver asks for it, but gives a name
// to a socket that asks and sends.
ssize_t gpsh_fd_message_send(int socket, struct msghdr *message, const int *fds, int n, bool signs);

// As recvmsg, whatever signals come. *n becomes how many descriptors came, no more than it was;
// they are the caller's. message->msg_flags has MSG_CTRUNC where there were more, or this process
// has no room for them. `sender`: who sent it, of a socket that asks for that (SO_PASSCRED); else
// NULL.
struct gpsh_fd_sender {
    pid_t pid; // as seen from here; 0 where it cannot be seen
    uid_t uid;
};
ssize_t gpsh_fd_message_receive(int socket, struct msghdr *message, int *fds, int *n,
                                struct gpsh_fd_sender *sender);

void gpsh_fds_close(const int *fds, int n);

#endif
