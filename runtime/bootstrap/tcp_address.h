// SPDX-License-Identifier: BSD-3-Clause
// Where somebody listens, as it travels between PEs; and which addresses of this host those are.
#ifndef GPSH_TCP_ADDRESS_H
#define GPSH_TCP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { GPSH_TCP_TEXT_BYTES = 64 };

struct gpsh_tcp_address {
    uint8_t version; // 4 or 6, 0: none
    uint8_t zero;
    uint16_t port;
    uint8_t bytes[16]; // 4 of them with version 4; the others are 0
};

// False if it is of neither version.
bool gpsh_tcp_address_from(const struct sockaddr *from, struct gpsh_tcp_address *address);
socklen_t gpsh_tcp_address_to(const struct gpsh_tcp_address *address, struct sockaddr_storage *to);
// "10.0.0.1:4242", "[fd00::1]:4242", and without a port if that is 0. Returns `text`.
const char *gpsh_tcp_address_text(const struct gpsh_tcp_address *address,
                                  char text[GPSH_TCP_TEXT_BYTES]);

// The addresses at which others may reach this process, best first, with port 0. `setting` is
// GPUSHMEM_BOOTSTRAP_INTERFACE: names of interfaces, or addresses of this host, separated by
// commas. If it is empty, those of the default route come first, then those of RDMA devices'
// interfaces, then the rest; bridges of containers are left out, and the loopback interface is
// taken if there is nothing else. Returns how many (at most `most`), or
//   GPUSHMEM_ERR_SETTING  an entry of `setting` is neither, or that interface has no address
//   GPUSHMEM_ERR_SYSTEM   this host has no address at all
int gpsh_tcp_address_choose(const char *setting, struct gpsh_tcp_address *out, int most);

#endif
