// SPDX-License-Identifier: BSD-3-Clause
// Devices and contexts: what a program sees of the software HCA before it makes a queue pair.
#define _GNU_SOURCE // pipe2, PR_SET_PTRACER
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "softhca.h"

struct shca_device shca_devices[SHCA_DEVICES];

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

enum { GIDS_ROCE = 4, GIDS_IB = 1 };
enum { MELLANOX = 0x02c9, CONNECTX_7 = 4129 }; // MLX5=1

static void devices_fill(void)
{
    for (int i = 0; i < SHCA_DEVICES; i++) {
        struct shca_device *device = &shca_devices[i];
        device->index = i;
        device->proc = -1;
        device->ibv.node_type = IBV_NODE_CA;
        device->ibv.transport_type = IBV_TRANSPORT_IB;
        snprintf(device->ibv.name, sizeof device->ibv.name, "softhca%d", i);
        snprintf(device->ibv.dev_name, sizeof device->ibv.dev_name, "uverbs-softhca%d", i);
        snprintf(device->ibv.dev_path, sizeof device->ibv.dev_path,
                 "/sys/class/infiniband_verbs/uverbs-softhca%d", i);
        const char *sysfs = getenv("GPUSHMEM_SOFTHCA_SYSFS");
        snprintf(device->ibv.ibdev_path, sizeof device->ibv.ibdev_path, "%.200s/softhca%d",
                 sysfs ? sysfs : "/sys/class/infiniband", i);
        pthread_mutex_init(&device->engine_lock, NULL);
        pthread_mutex_init(&device->ready_lock, NULL);
    }
}

static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

SHCA_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    if (num_devices)
        *num_devices = 0;
    if (!shca_settings_read()) {
        errno = EINVAL;
        return NULL;
    }
    pthread_once(&devices_once, devices_fill);
    struct ibv_device **list = calloc((size_t)shca_settings.devices + 1, sizeof *list);
    if (!list)
        return NULL;
    for (int i = 0; i < shca_settings.devices; i++)
        list[i] = &shca_devices[i].ibv;
    if (num_devices)
        *num_devices = (int)shca_settings.devices;
    return list;
}

SHCA_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SHCA_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

SHCA_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return ((struct shca_device *)device)->index;
}

// "SHCA" and the number, locally administered
static uint64_t guid_of(const struct shca_device *device)
{
    return 0x0253484341000000u + (uint64_t)device->index;
}

SHCA_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    uint64_t guid = guid_of((struct shca_device *)device);
    return (uint64_t)htonl((uint32_t)guid) << 32 | htonl((uint32_t)(guid >> 32));
}

struct shca_device *shca_device_of(struct ibv_context *context)
{
    return (struct shca_device *)context->device;
}

static struct shca_context *own(struct ibv_context *context)
{
    return (struct shca_context *)((char *)context - offsetof(struct shca_context, verbs.context));
}

static int device_use(struct shca_device *device, struct shca_context *context)
{
    size_t i = 0, room = sizeof device->contexts / sizeof device->contexts[0];
    while (i < room && device->contexts[i])
        i++;
    if (i == room) {
        errno = EMFILE;
        return -1;
    }
    if (!device->opens && (shca_segment_attach(device) || shca_engine_start(device))) {
        shca_segment_detach(device);
        errno = ENODEV;
        return -1;
    }
    device->contexts[i] = context;
    device->opens++;
    return 0;
}

static void device_unuse(struct shca_device *device, struct shca_context *context)
{
    for (size_t i = 0; i < sizeof device->contexts / sizeof device->contexts[0]; i++)
        if (device->contexts[i] == context)
            device->contexts[i] = NULL;
    if (--device->opens)
        return;
    shca_engine_stop(device);
    shca_peers_free(device);
    shca_gpu_free(device);
    shca_segment_detach(device);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out,
                      size_t bytes);
static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t bytes);

static int no_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    return EOPNOTSUPP;
}

static struct ibv_mw *no_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    errno = EOPNOTSUPP;
    return NULL;
}

static int no_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return EOPNOTSUPP;
}

static struct shca_context *context_new(struct shca_device *device)
{
    struct shca_context *context = calloc(1, sizeof *context);
    int fds[2];
    if (!context)
        return NULL;
    if (pipe2(fds, O_CLOEXEC)) {
        free(context);
        return NULL;
    }
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    context->device = device;
    context->event_writer = fds[1];
    context->verbs.sz = sizeof context->verbs;
    context->verbs.query_port = query_port;
    context->verbs.query_device_ex = query_device_ex;
    struct ibv_context *ibv = &context->verbs.context;
    ibv->device = &device->ibv;
    ibv->cmd_fd = -1;
    ibv->async_fd = fds[0];
    ibv->num_comp_vectors = 1;
    ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&ibv->mutex, NULL);
    ibv->ops.poll_cq = shca_poll_cq;
    ibv->ops.req_notify_cq = shca_req_notify_cq;
    ibv->ops.post_send = shca_post_send;
    ibv->ops.post_recv = shca_post_recv;
    ibv->ops.post_srq_recv = no_srq_recv;
    ibv->ops.alloc_mw = no_mw;
    ibv->ops.bind_mw = no_bind;
    return context;
}

static void context_free(struct shca_context *context)
{
    close(context->event_writer);
    close(context->verbs.context.async_fd);
    pthread_mutex_destroy(&context->verbs.context.mutex);
    free(context);
}

static void introduce(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (shca_settings.quiet || atomic_flag_test_and_set(&said))
        return;
    shca_say(
        "a software HCA for tests stands in for the RDMA devices of this process (%ld, seed %ld)",
        shca_settings.devices, shca_settings.seed);
}

SHCA_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
    struct shca_device *device = (struct shca_device *)ibv;
    struct shca_context *context = context_new(device);
    if (!context)
        return NULL;
    // the peers' engines write into this process
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pthread_mutex_lock(&open_lock);
    int status = device_use(device, context);
    pthread_mutex_unlock(&open_lock);
    if (status) {
        context_free(context);
        return NULL;
    }
    introduce();
    return &context->verbs.context;
}

void shca_context_use(struct ibv_context *ibv, int n)
{
    atomic_fetch_add(&own(ibv)->objects, n);
}

SHCA_EXPORT int ibv_close_device(struct ibv_context *ibv)
{
    struct shca_context *context = own(ibv);
    int left = atomic_load(&context->objects);
    if (left) // a kernel would clean up; a test wants to know, and the memory is still pointed to
        shca_say("%s is closed with %d objects (PDs, MRs, CQs, QPs) not destroyed",
                 ibv->device->name, left);
    pthread_mutex_lock(&open_lock);
    if (!left)
        device_unuse(context->device, context);
    pthread_mutex_unlock(&open_lock);
    if (!left)
        context_free(context);
    return 0;
}

static int count(uint32_t value)
{
    return (int)value;
}

SHCA_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct shca_device *device = shca_device_of(context);
    *attr = (struct ibv_device_attr){
        .fw_ver = "test double",
        .node_guid = ibv_get_device_guid(&device->ibv),
        .sys_image_guid = ibv_get_device_guid(&device->ibv),
        .max_mr_size = UINT64_MAX,
        .page_size_cap = 0xfffff000,
        .vendor_id = shca_settings.mlx5 ? MELLANOX : 0,
        .vendor_part_id = shca_settings.mlx5 ? CONNECTX_7 : 0,
        .max_qp = (int)shca_settings.max_qp,
        .max_qp_wr = (int)shca_settings.max_qp_wr,
        .max_sge = (int)shca_settings.max_sge,
        .max_sge_rd = (int)shca_settings.max_sge,
        .max_cq = 1 << 16,
        .max_cqe = (int)shca_settings.max_cqe,
        .max_mr = SHCA_MRS - 1,
        .max_pd = 1 << 16,
        .max_qp_rd_atom = (int)shca_settings.max_rd_atomic,
        .max_res_rd_atom = count((uint32_t)shca_settings.max_rd_atomic * 1024),
        .max_qp_init_rd_atom = (int)shca_settings.max_rd_atomic,
        .atomic_cap = (enum ibv_atomic_cap)shca_settings.atomic_cap,
        .max_pkeys = 1,
        .local_ca_ack_delay = 15,
        .phys_port_cnt = 1,
    };
    return 0;
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t bytes)
{
    memset(attr, 0, bytes);
    return ibv_query_device(context, &attr->orig_attr);
}

static enum ibv_mtu mtu_code(long bytes)
{
    enum ibv_mtu code = IBV_MTU_256;
    for (; bytes > 256; bytes /= 2)
        code++;
    return code;
}

static bool is_roce(void)
{
    return shca_settings.link == IBV_LINK_LAYER_ETHERNET;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out,
                      size_t bytes)
{
    if (port != 1)
        return EINVAL;
    struct ibv_port_attr attr = {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = mtu_code(shca_settings.mtu),
        .gid_tbl_len = is_roce() ? GIDS_ROCE : GIDS_IB,
        .max_msg_sz = (uint32_t)shca_settings.max_msg,
        .pkey_tbl_len = 1,
        .lid = is_roce() ? 0 : (uint16_t)(shca_device_of(context)->index + 1),
        .max_vl_num = 1,
        .active_width = 2,  // 4x
        .active_speed = 32, // EDR
        .phys_state = 5,    // link up
        .link_layer = (uint8_t)shca_settings.link,
    };
    memset(out, 0, bytes);
    memcpy(out, &attr, bytes < sizeof attr ? bytes : sizeof attr);
    return 0;
}

#undef ibv_query_port
SHCA_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
                               struct _compat_ibv_port_attr *attr)
{
    // Callers of the plain symbol know the structure as it was before its last member.
    return query_port(context, port, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

// RoCE: link-local, then IPv4, each as RoCE v1 and v2, the order of a common NIC. InfiniBand: one.
static void gid_fill(int device, uint32_t index, union ibv_gid *gid)
{
    memset(gid, 0, sizeof *gid);
    if (device == shca_settings.no_gid_device)
        return;
    if (is_roce() && index >= 2 && device == shca_settings.no_ipv4_device)
        return;
    if (is_roce() && index >= 2) {
        uint8_t ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, (uint8_t)device, 1};
        memcpy(gid->raw, ipv4, sizeof ipv4);
        return;
    }
    gid->raw[0] = 0xfe;
    gid->raw[1] = 0x80;
    uint64_t guid = guid_of(&shca_devices[device]);
    for (int i = 0; i < 8; i++)
        gid->raw[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
}

static uint32_t gids(void)
{
    return is_roce() ? GIDS_ROCE : GIDS_IB;
}

SHCA_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
                              union ibv_gid *gid)
{
    if (port != 1 || index < 0 || (uint32_t)index >= gids()) {
        errno = EINVAL;
        return -1;
    }
    gid_fill(shca_device_of(context)->index, (uint32_t)index, gid);
    return 0;
}

static void gid_entry(int device, uint32_t index, struct ibv_gid_entry *entry)
{
    *entry = (struct ibv_gid_entry){.gid_index = index, .port_num = 1};
    entry->gid_type = !is_roce()  ? IBV_GID_TYPE_IB
                      : index % 2 ? IBV_GID_TYPE_ROCE_V2
                                  : IBV_GID_TYPE_ROCE_V1;
    gid_fill(device, index, &entry->gid);
}

SHCA_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                                  struct ibv_gid_entry *entry, uint32_t flags, size_t bytes)
{
    if (port != 1 || index >= gids() || flags)
        return EINVAL;
    struct ibv_gid_entry full;
    gid_entry(shca_device_of(context)->index, index, &full);
    memcpy(entry, &full, bytes < sizeof full ? bytes : sizeof full);
    return 0;
}

SHCA_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                         size_t room, uint32_t flags, size_t bytes)
{
    if (flags || bytes != sizeof *entries)
        return -EINVAL;
    if (room < gids())
        return -ENOSPC;
    for (uint32_t i = 0; i < gids(); i++)
        gid_entry(shca_device_of(context)->index, i, &entries[i]);
    return (ssize_t)gids();
}

SHCA_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    if (port != 1 || index) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(0xffff);
    return 0;
}

SHCA_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    return port == 1 && pkey == htons(0xffff) ? 0 : -1;
}

// Which device an address vector leads to, or -1.
int shca_device_by_address(const struct ibv_ah_attr *address)
{
    if (!address->is_global)
        return is_roce() || !address->dlid || address->dlid > SHCA_DEVICES ? -1 : address->dlid - 1;
    if (address->grh.sgid_index >= gids())
        return -1;
    for (int i = 0; i < SHCA_DEVICES; i++)
        for (uint32_t g = 0; g < gids(); g++) {
            union ibv_gid gid;
            gid_fill(i, g, &gid);
            if (!memcmp(&gid, &address->grh.dgid, sizeof gid))
                return i;
        }
    return -1;
}

struct shca_path shca_path_of(const struct shca_device *device, const struct ibv_ah_attr *address)
{
    struct shca_path path = {0};
    if (!address->is_global)
        return path;
    struct ibv_gid_entry entry;
    gid_entry(device->index, address->grh.sgid_index, &entry);
    path.source = entry.gid;
    path.target = address->grh.dgid;
    path.gid_type = entry.gid_type;
    return path;
}

void shca_context_event(struct ibv_context *context, const struct ibv_async_event *event)
{
    if (write(own(context)->event_writer, event, sizeof *event) != sizeof *event)
        shca_say("%s: nobody reads the asynchronous events, one is lost", context->device->name);
}

// To every context that has the device open.
void shca_device_event(struct shca_device *device, const struct ibv_async_event *event)
{
    for (size_t i = 0; i < sizeof device->contexts / sizeof device->contexts[0]; i++)
        if (device->contexts[i])
            shca_context_event(&device->contexts[i]->verbs.context, event);
}

static bool about_qp(const struct ibv_async_event *event)
{
    return event->event_type == IBV_EVENT_QP_FATAL || event->event_type == IBV_EVENT_QP_ACCESS_ERR;
}

SHCA_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (read(context->async_fd, event, sizeof *event) != sizeof *event)
        return -1;
    if (about_qp(event))
        atomic_fetch_add(&((struct shca_qp *)event->element.qp)->unacked, 1);
    return 0;
}

SHCA_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    if (about_qp(event))
        atomic_fetch_sub(&((struct shca_qp *)event->element.qp)->unacked, 1);
}

// Takes out of a pipe the events nobody has read, about an object that is being destroyed. Each
// item begins with the object's address.
void shca_pipe_forget(int reader, int writer, size_t item, const void *object)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char bytes[64];
    int waiting = 0;
    pthread_mutex_lock(&lock);
    ioctl(reader, FIONREAD, &waiting);
    for (size_t left = (size_t)waiting / item; left--;) {
        if (read(reader, bytes, item) != (ssize_t)item)
            break;
        const void *about;
        memcpy(&about, bytes, sizeof about);
        if (about != object && write(writer, bytes, item) != (ssize_t)item)
            break;
    }
    pthread_mutex_unlock(&lock);
}

void shca_context_forget(struct ibv_context *context, const void *object)
{
    shca_pipe_forget(context->async_fd, own(context)->event_writer, sizeof(struct ibv_async_event),
                     object);
}

SHCA_EXPORT int ibv_fork_init(void)
{
    return 0;
}
