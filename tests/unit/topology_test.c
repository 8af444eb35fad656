// SPDX-License-Identifier: BSD-3-Clause
// Distances on two machines in topology/*.xml: virtual.xml was recorded on a virtual machine with
// an H200, two_sockets.xml is a GPU server with every distance there is, written down by hand in
// the same form.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/topology.h"

#define GPU       "0000:13:00.0"
#define NIC_SAME  "0000:14:00.0" // on the GPU's switch
#define NIC_BELOW "0000:17:00.0" // on a second switch below that one
#define NIC_ROOT  "0000:1a:00.0" // on another root port
#define NIC_NODE  "0000:41:00.0" // on another host bridge of the socket
#define NIC_FAR   "0000:91:00.0" // on the other socket

static struct gpsh_topology *topology;

static void open_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", TOPOLOGY_DIR, name);
    cr_assert_eq(gpsh_topology_open(path, &topology), 0, "%s", gpsh_last_error());
}

static void open_server(void)
{
    open_file("two_sockets.xml");
}

static void close_topology(void)
{
    gpsh_topology_close(topology);
}

TestSuite(topology, .init = open_server, .fini = close_topology);

Test(topology, between__server__as_nvidia_smi_would_say)
{
    static const struct {
        const char *pci;
        enum gpsh_distance distance;
    } rows[] = {{GPU, GPSH_DISTANCE_PIX},       {NIC_SAME, GPSH_DISTANCE_PIX},
                {NIC_BELOW, GPSH_DISTANCE_PXB}, {NIC_ROOT, GPSH_DISTANCE_PHB},
                {NIC_NODE, GPSH_DISTANCE_NODE}, {NIC_FAR, GPSH_DISTANCE_SYS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(gpsh_topology_between(topology, GPU, rows[i].pci), rows[i].distance, "to %s",
                     rows[i].pci);
        cr_assert_eq(gpsh_topology_between(topology, rows[i].pci, GPU), rows[i].distance, "from %s",
                     rows[i].pci);
    }
}

Test(topology, between__unknown_address__unknown)
{
    cr_assert_eq(gpsh_topology_between(topology, GPU, "0000:ff:00.0"), GPSH_DISTANCE_UNKNOWN);
    cr_assert_eq(gpsh_topology_between(topology, GPU, "not an address"), GPSH_DISTANCE_UNKNOWN);
    cr_assert_eq(gpsh_topology_between(topology, GPU, ""), GPSH_DISTANCE_UNKNOWN);
    cr_assert_eq(gpsh_topology_between(topology, NULL, GPU), GPSH_DISTANCE_UNKNOWN);
}

Test(topology, between__virtual_machine__one_host_bridge)
{
    close_topology();
    open_file("virtual.xml");
    cr_assert_eq(gpsh_topology_between(topology, "0000:00:06.0", "0000:00:03.0"),
                 GPSH_DISTANCE_PHB);
}

Test(topology, from_cpu__own_socket_and_other)
{
    cr_assert_eq(gpsh_topology_from_cpu(topology, 1, NIC_NODE), GPSH_DISTANCE_NODE);
    cr_assert_eq(gpsh_topology_from_cpu(topology, 2, NIC_NODE), GPSH_DISTANCE_SYS);
    cr_assert_eq(gpsh_topology_from_cpu(topology, 3, NIC_FAR), GPSH_DISTANCE_NODE);
    cr_assert_eq(gpsh_topology_from_cpu(topology, -1, NIC_FAR), GPSH_DISTANCE_UNKNOWN);
}

Test(topology, open__no_such_file__says_which)
{
    struct gpsh_topology *none = NULL;
    cr_assert_eq(gpsh_topology_open("/nowhere.xml", &none), GPUSHMEM_ERR_SYSTEM);
    cr_assert(strstr(gpsh_last_error(), "/nowhere.xml"));
    cr_assert_null(none);
}

Test(topology, open__this_machine__loads)
{
    struct gpsh_topology *here = NULL;
    cr_assert_eq(gpsh_topology_open(NULL, &here), 0, "%s", gpsh_last_error());
    gpsh_topology_close(here);
}

Test(topology, name__every_distance_has_one)
{
    cr_assert_str_eq(gpsh_distance_name(GPSH_DISTANCE_PIX), "PIX");
    cr_assert_str_eq(gpsh_distance_name(GPSH_DISTANCE_SYS), "SYS");
    cr_assert_str_eq(gpsh_distance_name(GPSH_DISTANCE_UNKNOWN), "?");
}
