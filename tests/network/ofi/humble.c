// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// A provider that claims less than the one below it, and insists on it: preloaded, it stands
// between the ofi transport and libfabric. GPUSHMEM_HUMBLE names what it is like, separated by
// commas:
//
//   virt       FI_MR_VIRT_ADDR and FI_MR_PROV_KEY, as of EFA: remote addresses are the target's,
//   and
//              keys are not to be chosen
//   local      FI_MR_LOCAL: local memory is named by a descriptor that covers it
//   endpoint   FI_MR_ENDPOINT, as of CXI: keys belong to an endpoint, and are good once enabled
//   raw        FI_MR_RAW: keys of 24 bytes, which have to be mapped
//   unordered  messages between two endpoints are promised no order
//   auto       operations make progress by themselves: the transport takes it for hardware
//   asleep     queues that nobody can sleep for
//   tiny       nothing is injected, and no message has more than 20,000 bytes
//   busy       every third call finds no room, of a receive too
//   crowded    of three sends, two find no room
//   elsewhere  atomics are those of another NIC
//   broken     tcp is listed, opens, and has no endpoint
//
// What breaks these rules ends the process with a sentence.
#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BITS = 20, MAPPED = 4096, RAW_MAGIC = 0x68756d62, LARGEST = 20000 };

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("humble: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static bool is(const char *word)
{
    const char *at = getenv("GPUSHMEM_HUMBLE");
    size_t length = strlen(word);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, word, length) && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

// Sets *function, which is a pointer to one.
static void real(const char *name, void *function)
{
    void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol)
        complain("libfabric has no %s", name);
    memcpy(function, &symbol, sizeof symbol);
}

// Layers of libfabric call each other by the same names.
static bool is_inside(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libfabric");
}

static bool is_full(void)
{
    static __thread unsigned calls;
    return is("busy") && ++calls % 3 == 0;
}

// What waits for two PEs is refused one after the other, and the next message is not.
static bool is_crowded(void)
{
    static __thread unsigned calls;
    return is_full() || (is("crowded") && ++calls % 3 != 0);
}

// ------------------------------------------------------------------------------------------
// what is claimed

static struct {
    uint64_t tx_order, rx_order, max_message;
    size_t inject, key_size;
    enum fi_progress progress;
} truth;

static void humble(struct fi_info *info)
{
    struct fi_domain_attr *domain = info->domain_attr;
    truth.tx_order = info->tx_attr->msg_order;
    truth.rx_order = info->rx_attr->msg_order;
    truth.max_message = info->ep_attr->max_msg_size;
    truth.inject = info->tx_attr->inject_size;
    truth.progress = domain->data_progress;
    truth.key_size = domain->mr_key_size;
    domain->mr_mode |= (is("virt") ? FI_MR_VIRT_ADDR | FI_MR_PROV_KEY : 0) |
                       (is("local") ? FI_MR_LOCAL : 0) | (is("endpoint") ? FI_MR_ENDPOINT : 0) |
                       (is("raw") ? FI_MR_RAW | FI_MR_PROV_KEY : 0);
    if (is("raw"))
        domain->mr_key_size = 24;
    if (is("unordered"))
        info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
    if (is("auto"))
        domain->data_progress = FI_PROGRESS_AUTO;
    if (is("tiny")) {
        info->tx_attr->inject_size = 0;
        info->ep_attr->max_msg_size = LARGEST;
    }
}

// What the provider below is to see.
static struct fi_info *proud(const struct fi_info *info)
{
    struct fi_info *(*dup)(const struct fi_info *);
    real("fi_dupinfo", &dup);
    struct fi_info *copy = dup(info);
    copy->domain_attr->mr_mode = 0;
    copy->domain_attr->mr_key_size = truth.key_size;
    copy->domain_attr->data_progress = truth.progress;
    copy->tx_attr->msg_order = truth.tx_order;
    copy->rx_attr->msg_order = truth.rx_order;
    copy->tx_attr->inject_size = truth.inject;
    copy->ep_attr->max_msg_size = truth.max_message;
    return copy;
}

static void drop(struct fi_info *info)
{
    void (*release)(struct fi_info *);
    real("fi_freeinfo", &release);
    release(info);
}

__attribute__((visibility("default"))) int fi_getinfo(uint32_t version, const char *node,
                                                      const char *service, uint64_t flags,
                                                      const struct fi_info *hints,
                                                      struct fi_info **info)
{
    int (*get)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
               struct fi_info **);
    real("fi_getinfo", &get);
    int error = get(version, node, service, flags, hints, info);
    bool inside = is_inside(__builtin_return_address(0));
    for (struct fi_info *at = error || inside ? NULL : *info; at; at = at->next) {
        humble(at);
        if (is("elsewhere") && hints && hints->caps & FI_ATOMIC)
            at->domain_attr->name[0] = '?';
    }
    return error;
}

// ------------------------------------------------------------------------------------------
// registered memory

struct region {
    struct fid_mr mr; // what the transport has
    struct fid_mr *below;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fi_mr_attr attr;
    struct iovec iov;
    uint64_t key; // below
    bool enabled;
    struct region *next; // of those that belong to an endpoint
};

static struct {
    pthread_mutex_t lock;
    uint64_t next_key;
    struct fi_ops_domain domain_ops;
    struct fi_ops_mr mr_ops, *below_mr;
    struct fi_ops fid_ops, *below_fid;
    struct fi_ops_fabric fabric_ops, *below_fabric;
    struct fi_ops_domain *below_domain;
    struct fi_ops_rma rma, *below_rma;
    struct fi_ops_msg msg, *below_msg;
    struct fi_ops_atomic atomic, *below_atomic;
    struct {
        uint64_t base, key;
    } mapped[MAPPED];
    uint64_t n_mapped;
    struct region *bound;
    struct fi_ops endpoint_fid, *below_endpoint;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool translates(void)
{
    return is("virt") || is("raw");
}

static int begin(struct region *region)
{
    struct fi_mr_attr attr = region->attr;
    attr.mr_iov = &region->iov;
    if (translates()) {
        if (attr.requested_key)
            complain("a key of %llu was asked for, where the provider chooses",
                     (unsigned long long)attr.requested_key);
        pthread_mutex_lock(&state.lock);
        attr.requested_key = ++state.next_key;
        pthread_mutex_unlock(&state.lock);
    }
    int error = state.below_mr->regattr(&region->domain->fid, &attr, 0, &region->below);
    region->enabled = !error;
    region->key = attr.requested_key;
    // The base goes with the key: who uses it sends addresses of the target.
    region->mr.key = is("raw") ? FI_KEY_NOTAVAIL
                     : is("virt")
                         ? (uint64_t)(uintptr_t)region->iov.iov_base >> 12 << KEY_BITS | region->key
                         : region->key;
    return error;
}

static int region_close(struct fid *fid)
{
    struct region *region = (struct region *)fid;
    int error = region->below ? fi_close(&region->below->fid) : 0;
    pthread_mutex_lock(&state.lock);
    struct region **at = &state.bound;
    while (*at && *at != region)
        at = &(*at)->next;
    if (*at)
        *at = region->next;
    pthread_mutex_unlock(&state.lock);
    free(region);
    return error;
}

static int region_bind(struct fid *fid, struct fid *ep, uint64_t flags)
{
    if (!is("endpoint"))
        complain("a key was bound to an endpoint, where none belongs to one");
    struct region *region = (struct region *)fid;
    region->ep = (struct fid_ep *)ep;
    pthread_mutex_lock(&state.lock);
    region->next = state.bound;
    state.bound = region;
    pthread_mutex_unlock(&state.lock);
    return 0;
}

static int region_control(struct fid *fid, int command, void *arg)
{
    struct region *region = (struct region *)fid;
    if (command == FI_ENABLE) {
        if (!region->ep || region->enabled)
            complain("a key was enabled twice, or before it was bound");
        return begin(region);
    }
    if (command != FI_GET_RAW_MR || !is("raw"))
        return -FI_ENOSYS;
    struct fi_mr_raw_attr *raw = arg;
    uint64_t key[3] = {RAW_MAGIC, region->key, (uintptr_t)region->iov.iov_base};
    if (*raw->key_size < sizeof key)
        return -FI_ETOOSMALL;
    memcpy(raw->raw_key, key, sizeof key);
    *raw->key_size = sizeof key;
    *raw->base_addr = is("virt") ? key[2] : 0;
    return 0;
}

static struct fi_ops region_ops = {.size = sizeof(struct fi_ops),
                                   .close = region_close,
                                   .bind = region_bind,
                                   .control = region_control};

static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                   struct fid_mr **mr)
{
    struct region *region = calloc(1, sizeof *region);
    region->mr.fid.fclass = FI_CLASS_MR;
    region->mr.fid.ops = &region_ops;
    region->mr.mem_desc = region;
    region->domain = (struct fid_domain *)fid;
    region->attr = *attr;
    region->iov = *attr->mr_iov;
    int error = is("endpoint") ? 0 : begin(region);
    *mr = &region->mr;
    if (error)
        free(region);
    return error;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
    if (command != FI_MAP_RAW_MR || !is("raw"))
        return state.below_fid->control(fid, command, arg);
    const struct fi_mr_map_raw *map = arg;
    uint64_t key[3];
    if (map->key_size != sizeof key)
        complain("a raw key of %zu bytes", map->key_size);
    memcpy(key, map->raw_key, sizeof key);
    if (key[0] != RAW_MAGIC)
        complain("that is no raw key");
    pthread_mutex_lock(&state.lock);
    uint64_t at = state.n_mapped++;
    if (at >= MAPPED)
        complain("more than %d keys are mapped", MAPPED);
    state.mapped[at].key = key[1];
    state.mapped[at].base = is("virt") ? key[2] : 0;
    *map->key = at;
    pthread_mutex_unlock(&state.lock);
    return 0;
}

// A target's address and key, as the provider below knows them.
static void lower(uint64_t *address, uint64_t *key)
{
    if (is("raw")) {
        if (*key >= state.n_mapped)
            complain("key %llu was not mapped", (unsigned long long)*key);
        *address -= state.mapped[*key].base;
        *key = state.mapped[*key].key;
    } else if (is("virt")) {
        uint64_t base = *key >> KEY_BITS << 12;
        // Wrong ones are the target's to refuse.
        *address = *address >= base ? *address - base : UINT64_MAX >> 1;
        *key &= (1 << KEY_BITS) - 1;
    }
}

static void check_local(struct fid_ep *ep, const void *buffer, size_t bytes, void *descriptor)
{
    const struct region *region = descriptor;
    if (!is("local") || !bytes)
        return;
    if (!region)
        complain("%zu bytes at %p have no descriptor", bytes, buffer);
    const char *base = region->iov.iov_base, *at = buffer;
    if (at < base || at + bytes > base + region->iov.iov_len)
        complain("%zu bytes at %p are not in what their descriptor covers", bytes, buffer);
    if (is("endpoint") && (region->ep != ep || !region->enabled))
        complain("the descriptor of %p belongs to another endpoint", buffer);
}

// ------------------------------------------------------------------------------------------
// operations

static ssize_t rma_write(struct fid_ep *ep, const void *buffer, size_t bytes, void *descriptor,
                         fi_addr_t to, uint64_t address, uint64_t key, void *context)
{
    check_local(ep, buffer, bytes, descriptor);
    if (is("tiny") && bytes > LARGEST)
        complain("a message of %zu bytes", bytes);
    if (is_full())
        return -FI_EAGAIN;
    lower(&address, &key);
    return state.below_rma->write(ep, buffer, bytes, NULL, to, address, key, context);
}

static ssize_t rma_read(struct fid_ep *ep, void *buffer, size_t bytes, void *descriptor,
                        fi_addr_t to, uint64_t address, uint64_t key, void *context)
{
    check_local(ep, buffer, bytes, descriptor);
    if (is("tiny") && bytes > LARGEST)
        complain("a message of %zu bytes", bytes);
    if (is_full())
        return -FI_EAGAIN;
    lower(&address, &key);
    return state.below_rma->read(ep, buffer, bytes, NULL, to, address, key, context);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buffer, size_t bytes, void *descriptor,
                        fi_addr_t to, void *context)
{
    check_local(ep, buffer, bytes, descriptor);
    return is_crowded() ? -FI_EAGAIN : state.below_msg->send(ep, buffer, bytes, NULL, to, context);
}

static ssize_t msg_recv(struct fid_ep *ep, void *buffer, size_t bytes, void *descriptor,
                        fi_addr_t from, void *context)
{
    check_local(ep, buffer, bytes, descriptor);
    return is_full() ? -FI_EAGAIN : state.below_msg->recv(ep, buffer, bytes, NULL, from, context);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buffer, size_t bytes, fi_addr_t to)
{
    if (is("tiny"))
        complain("%zu bytes are injected", bytes);
    return is_crowded() ? -FI_EAGAIN : state.below_msg->inject(ep, buffer, bytes, to);
}

static void lower_atomic(struct fid_ep *ep, const struct fi_msg_atomic *from,
                         struct fi_msg_atomic *to, struct fi_rma_ioc *target)
{
    *to = *from;
    *target = from->rma_iov[0];
    if (from->op != FI_ATOMIC_READ)
        check_local(ep, from->msg_iov[0].addr, 8, from->desc ? from->desc[0] : NULL);
    lower(&target->addr, &target->key);
    to->rma_iov = target;
    to->desc = NULL;
}

static ssize_t atomic_write(struct fid_ep *ep, const struct fi_msg_atomic *message, uint64_t flags)
{
    struct fi_msg_atomic lowered;
    struct fi_rma_ioc target;
    lower_atomic(ep, message, &lowered, &target);
    return is_full() ? -FI_EAGAIN : state.below_atomic->writemsg(ep, &lowered, flags);
}

static ssize_t atomic_fetch(struct fid_ep *ep, const struct fi_msg_atomic *message,
                            struct fi_ioc *result, void **descriptors, size_t n, uint64_t flags)
{
    struct fi_msg_atomic lowered;
    struct fi_rma_ioc target;
    lower_atomic(ep, message, &lowered, &target);
    check_local(ep, result->addr, 8, descriptors ? descriptors[0] : NULL);
    return is_full() ? -FI_EAGAIN
                     : state.below_atomic->readwritemsg(ep, &lowered, result, NULL, n, flags);
}

static ssize_t atomic_compare(struct fid_ep *ep, const struct fi_msg_atomic *message,
                              const struct fi_ioc *compare, void **compare_descriptors,
                              size_t n_compare, struct fi_ioc *result, void **descriptors, size_t n,
                              uint64_t flags)
{
    struct fi_msg_atomic lowered;
    struct fi_rma_ioc target;
    lower_atomic(ep, message, &lowered, &target);
    check_local(ep, result->addr, 8, descriptors ? descriptors[0] : NULL);
    return is_full() ? -FI_EAGAIN
                     : state.below_atomic->compwritemsg(ep, &lowered, compare, NULL, n_compare,
                                                        result, NULL, n, flags);
}

// ------------------------------------------------------------------------------------------
// objects

static int endpoint_close(struct fid *fid)
{
    pthread_mutex_lock(&state.lock);
    for (const struct region *region = state.bound; region; region = region->next)
        if (&region->ep->fid == fid)
            complain("an endpoint is closed before the key of %zu bytes at %p that belongs to it",
                     region->iov.iov_len, region->iov.iov_base);
    pthread_mutex_unlock(&state.lock);
    return state.below_endpoint->close(fid);
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                    void *context)
{
    if (is("broken") && !strncmp(info->fabric_attr->prov_name, "tcp", 3))
        return -FI_ENODEV;
    struct fi_info *below = proud(info);
    int error = state.below_domain->endpoint(domain, below, ep, context);
    drop(below);
    if (error)
        return error;
    state.below_endpoint = (*ep)->fid.ops;
    state.endpoint_fid = *(*ep)->fid.ops;
    state.endpoint_fid.close = endpoint_close;
    (*ep)->fid.ops = &state.endpoint_fid;
    state.below_rma = (*ep)->rma;
    state.below_msg = (*ep)->msg;
    state.below_atomic = (*ep)->atomic;
    state.rma = *(*ep)->rma;
    state.msg = *(*ep)->msg;
    state.rma.write = rma_write;
    state.rma.read = rma_read;
    state.msg.send = msg_send;
    state.msg.recv = msg_recv;
    state.msg.inject = msg_inject;
    (*ep)->rma = &state.rma;
    (*ep)->msg = &state.msg;
    if (!state.below_atomic)
        return 0;
    state.atomic = *(*ep)->atomic;
    state.atomic.writemsg = atomic_write;
    state.atomic.readwritemsg = atomic_fetch;
    state.atomic.compwritemsg = atomic_compare;
    (*ep)->atomic = &state.atomic;
    return 0;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
                   void *context)
{
    if (is("asleep") && attr->wait_obj == FI_WAIT_FD)
        return -FI_ENOSYS;
    return state.below_domain->cq_open(domain, attr, cq, context);
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                       void *context)
{
    struct fi_info *below = proud(info);
    int error = state.below_fabric->domain(fabric, below, domain, context);
    drop(below);
    if (error)
        return error;
    state.below_domain = (*domain)->ops;
    state.below_mr = (*domain)->mr;
    state.below_fid = (*domain)->fid.ops;
    state.domain_ops = *(*domain)->ops;
    state.mr_ops = *(*domain)->mr;
    state.fid_ops = *(*domain)->fid.ops;
    state.domain_ops.endpoint = endpoint;
    state.domain_ops.cq_open = cq_open;
    state.mr_ops.regattr = regattr;
    state.fid_ops.control = domain_control;
    (*domain)->ops = &state.domain_ops;
    (*domain)->mr = &state.mr_ops;
    (*domain)->fid.ops = &state.fid_ops;
    return 0;
}

__attribute__((visibility("default"))) int fi_fabric(struct fi_fabric_attr *attr,
                                                     struct fid_fabric **fabric, void *context)
{
    int (*open)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    real("fi_fabric", &open);
    int error = open(attr, fabric, context);
    if (error || is_inside(__builtin_return_address(0)))
        return error;
    pthread_mutex_lock(&state.lock);
    if ((*fabric)->ops != &state.fabric_ops) { // one that is opened twice is the same
        state.below_fabric = (*fabric)->ops;
        state.fabric_ops = *(*fabric)->ops;
        state.fabric_ops.domain = domain_open;
        (*fabric)->ops = &state.fabric_ops;
    }
    pthread_mutex_unlock(&state.lock);
    return 0;
}
