// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getifaddrs, IFF_UP
#include "bootstrap/tcp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

bool gpsh_tcp_address_from(const struct sockaddr *from, struct gpsh_tcp_address *address)
{
    *address = (struct gpsh_tcp_address){0};
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        address->version = 4;
        address->port = ntohs(in.sin_port);
        memcpy(address->bytes, &in.sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, from, sizeof in);
        address->version = 6;
        address->port = ntohs(in.sin6_port);
        memcpy(address->bytes, &in.sin6_addr, 16);
    }
    return address->version != 0;
}

socklen_t gpsh_tcp_address_to(const struct gpsh_tcp_address *address, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof *to);
    if (address->version == 4) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(address->port)};
        memcpy(&in.sin_addr, address->bytes, 4);
        memcpy(to, &in, sizeof in);
        return sizeof in;
    }
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};
    memcpy(&in.sin6_addr, address->bytes, 16);
    memcpy(to, &in, sizeof in);
    return sizeof in;
}

const char *gpsh_tcp_address_text(const struct gpsh_tcp_address *address,
                                  char text[GPSH_TCP_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?", port[8] = "";
    bool six = address->version == 6;
    inet_ntop(six ? AF_INET6 : AF_INET, address->bytes, host, sizeof host);
    if (address->port)
        snprintf(port, sizeof port, ":%u", address->port);
    snprintf(text, GPSH_TCP_TEXT_BYTES, six && port[0] ? "[%s]%s" : "%s%s", host, port);
    return text;
}

enum rank { DEFAULT_ROUTE, RDMA, OTHER, BRIDGE, LOOPBACK, UNUSABLE };

// Name of the interface of the default route, "" if there is none: the row of /proc/net/route
// whose destination and mask are zero.
static void default_route(char name[IFNAMSIZ])
{
    FILE *routes = fopen("/proc/net/route", "re");
    char line[256], row[IFNAMSIZ];
    unsigned destination, mask;
    name[0] = '\0';
    while (routes && !name[0] && fgets(line, sizeof line, routes))
        if (sscanf(line, "%15s %x %*x %*x %*d %*d %*d %x", row, &destination, &mask) == 3 &&
            !destination && !mask)
            memcpy(name, row, IFNAMSIZ);
    if (routes)
        fclose(routes);
}

static bool has_rdma_device(const char *name)
{
    char path[64 + IFNAMSIZ];
    snprintf(path, sizeof path, "/sys/class/net/%s/device/infiniband", name);
    return access(path, F_OK) == 0;
}

// Every host has the same addresses there.
static bool is_bridge(const char *name)
{
    static const char *const prefixes[] = {"docker", "br-", "veth", "virbr", "cni", "podman"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

// Addresses of one link alone mean nothing without the name of an interface of the other host.
static bool is_link_local(const struct gpsh_tcp_address *a)
{
    return a->version == 6 ? a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80
                           : a->bytes[0] == 169 && a->bytes[1] == 254;
}

static enum rank rank_of(const struct ifaddrs *interface, const char *routed,
                         struct gpsh_tcp_address *address)
{
    if (!interface->ifa_addr || !(interface->ifa_flags & IFF_UP) ||
        !gpsh_tcp_address_from(interface->ifa_addr, address) || is_link_local(address))
        return UNUSABLE;
    if (interface->ifa_flags & IFF_LOOPBACK)
        return LOOPBACK;
    if (strcmp(interface->ifa_name, routed) == 0)
        return DEFAULT_ROUTE;
    if (has_rdma_device(interface->ifa_name))
        return RDMA;
    return is_bridge(interface->ifa_name) ? BRIDGE : OTHER;
}

static int choose_best(const struct ifaddrs *all, struct gpsh_tcp_address *out, int most)
{
    char routed[IFNAMSIZ];
    int n = 0;
    default_route(routed);
    for (int rank = DEFAULT_ROUTE; rank < UNUSABLE; rank++) {
        if (rank >= BRIDGE && n)
            break; // these are only for a host that has nothing else
        for (const struct ifaddrs *i = all; i && n < most; i = i->ifa_next)
            if ((int)rank_of(i, routed, &out[n]) == rank)
                n++;
    }
    return n;
}

// One entry of the setting, of `length` bytes.
static int choose_named(const struct ifaddrs *all, const char *entry, int length,
                        struct gpsh_tcp_address *out, int most)
{
    char name[GPSH_TCP_TEXT_BYTES], text[GPSH_TCP_TEXT_BYTES];
    int n = 0;
    snprintf(name, sizeof name, "%.*s", length, entry);
    for (const struct ifaddrs *i = all; i && n < most; i = i->ifa_next) {
        if (rank_of(i, "", &out[n]) == UNUSABLE)
            continue;
        if (!strcmp(i->ifa_name, name) || !strcmp(gpsh_tcp_address_text(&out[n], text), name))
            n++;
    }
    return n;
}

static int choose_set(const struct ifaddrs *all, const char *setting, struct gpsh_tcp_address *out,
                      int most)
{
    enum { NAMED = 100 }; // in a sentence
    int n = 0;
    for (const char *entry = setting; *entry; entry += *entry == ',') {
        int length = (int)strcspn(entry, ",");
        int found = choose_named(all, entry, length, out + n, most - n);
        if (!found && n < most)
            return gpsh_fail(
                GPUSHMEM_ERR_SETTING,
                "GPUSHMEM_BOOTSTRAP_INTERFACE=%.100s: '%.*s' is neither an interface that is up "
                "and has an address, nor an address of this host (link-local ones do not count); "
                "`ip addr` lists them; if it is unset, the library chooses",
                setting, length < NAMED ? length : NAMED, entry);
        n += found;
        entry += length;
    }
    return n;
}

int gpsh_tcp_address_choose(const char *setting, struct gpsh_tcp_address *out, int most)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all))
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the network interfaces cannot be listed: %s",
                         strerror(errno));
    int n = *setting ? choose_set(all, setting, out, most) : choose_best(all, out, most);
    freeifaddrs(all);
    return n ? n
             : gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "this host has no network interface that is up, not even loopback");
}
