// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_fabric.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/thread.h"

static struct {
    pthread_mutex_t lock;
    struct ofi_library functions;
    bool loaded;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};

// With RTLD_GLOBAL the default search finds what a test has put in front.
static bool find_functions(void)
{
    const struct {
        const char *name;
        void *at;
    } wanted[] = {
        {"fi_getinfo", &library.functions.getinfo},   {"fi_freeinfo", &library.functions.freeinfo},
        {"fi_dupinfo", &library.functions.dupinfo},   {"fi_fabric", &library.functions.fabric},
        {"fi_strerror", &library.functions.strerror}, {"fi_version", &library.functions.version}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = dlsym(RTLD_DEFAULT, wanted[i].name);
        if (!symbol)
            return false;
        memcpy(wanted[i].at, &symbol, sizeof symbol);
    }
    return true;
}

// Providers of old hardware catch the program's SIGSEGV and the like when they are loaded. How a
// program dies is its own affair.
static const int caught[] = {SIGINT, SIGILL, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGTERM};
enum { CAUGHT = sizeof caught / sizeof *caught };

static void keep_handlers(struct sigaction kept[CAUGHT])
{
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], NULL, &kept[i]);
}

static void restore_handlers(const struct sigaction kept[CAUGHT])
{
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &kept[i], NULL);
}

const struct ofi_library *gpsh_ofi_library(void)
{
    struct sigaction kept[CAUGHT];
    pthread_mutex_lock(&library.lock);
    if (!library.loaded)
        keep_handlers(kept);
    bool begun = library.loaded;
    if (!library.loaded && !dlopen("libfabric.so.1", RTLD_NOW | RTLD_GLOBAL))
        gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "libfabric cannot be loaded: %s", dlerror());
    else if (!library.loaded && !(library.loaded = find_functions()))
        gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "libfabric.so.1 lacks functions: %s", dlerror());
    if (!begun)
        restore_handlers(kept);
    pthread_mutex_unlock(&library.lock);
    return library.loaded ? &library.functions : NULL;
}

int gpsh_ofi_error(const struct gpsh_ofi *ofi, const char *what, int64_t error)
{
    const char *provider = ofi->info ? ofi->info->fabric_attr->prov_name : "libfabric";
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "ofi: %s: %s (%s)", what,
                     ofi->library->strerror((int)-error), provider);
}

bool gpsh_ofi_is_loopback(const struct fi_info *info)
{
    const struct sockaddr *address = info->src_addr;
    if (!address || (info->addr_format != FI_SOCKADDR_IN && info->addr_format != FI_SOCKADDR_IN6))
        return false;
    if (info->addr_format == FI_SOCKADDR_IN)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(in6);
}

// Providers list addresses of interfaces that are down. The domain is an interface with TCP and
// UDP.
static bool is_down(const char *interface)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    bool down = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_UP);
    if (fd >= 0)
        close(fd);
    return down;
}

const char *gpsh_ofi_fault(const struct fi_info *info)
{
    if (is_down(info->domain_attr->name))
        return "no message arrives, as that network interface is down (ip link set NAME up)";
    // Seen with libfabric's calls alone, of 1.17: 256 reads under way by each of two processes.
    if (!strcmp(info->fabric_attr->prov_name, "udp;ofi_rxd"))
        return "gets stand still now and then when hundreds are under way, as that provider loses "
               "their answers";
    return NULL;
}

static bool is_link_local(const struct fi_info *info)
{
    const struct sockaddr_in6 *address = info->src_addr;
    return address && info->addr_format == FI_SOCKADDR_IN6 &&
           IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

// Of several with the same boot, network namespaces have loopback devices of their own.
uint64_t gpsh_ofi_machine(const struct gpsh_ofi *ofi)
{
    if (!gpsh_ofi_is_loopback(ofi->info))
        return 0;
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
        if (!fgets(boot, sizeof boot, file))
            boot[0] = '\0';
        fclose(file);
    }
    struct stat network = {0};
    stat("/proc/self/ns/net", &network);
    const uint64_t number = gpsh_hash_more((uint64_t)network.st_ino, boot, strlen(boot));
    return number ? number : 1;
}

void gpsh_ofi_address_text(const struct gpsh_ofi *ofi, const void *address, char *text,
                           size_t bytes)
{
    size_t room = bytes;
    char plain[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in in; // copies: an address lies at any place of a record
    struct sockaddr_in6 in6;
    if (ofi->info->addr_format == FI_SOCKADDR_IN) {
        memcpy(&in, address, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, plain, sizeof plain);
        snprintf(text, bytes, "%s:%d", plain, ntohs(in.sin_port));
    } else if (ofi->info->addr_format == FI_SOCKADDR_IN6) {
        memcpy(&in6, address, sizeof in6);
        inet_ntop(AF_INET6, &in6.sin6_addr, plain, sizeof plain);
        snprintf(text, bytes, "[%s]:%d", plain, ntohs(in6.sin6_port));
    } else {
        fi_av_straddr(ofi->av, address, text, &room);
    }
}

const char *gpsh_ofi_format_name(uint32_t format)
{
    return format == FI_SOCKADDR_IN ? "IPv4" : format == FI_SOCKADDR_IN6 ? "IPv6" : "of a provider";
}

// ------------------------------------------------------------------------------------------
// what is asked of a provider: it is not taken without

static void want_kinds(struct fi_info *hints)
{
    hints->caps |= FI_MSG | FI_RMA;
}

static void want_hosts(struct fi_info *hints)
{
    hints->caps |= FI_REMOTE_COMM;
}

static void want_delivery(struct fi_info *hints)
{
    hints->tx_attr->op_flags |= FI_DELIVERY_COMPLETE;
}

static void want_room(struct fi_info *hints)
{
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
}

static void want_threads(struct fi_info *hints)
{
    hints->domain_attr->threading = FI_THREAD_COMPLETION;
}

const struct ofi_want gpsh_ofi_wants[] = {
    {"FI_MSG, FI_RMA", want_kinds},          {"FI_REMOTE_COMM", want_hosts},
    {"FI_DELIVERY_COMPLETE", want_delivery}, {"FI_RM_ENABLED", want_room},
    {"FI_THREAD_COMPLETION", want_threads},  {NULL, NULL},
};

struct fi_info *gpsh_ofi_hints(const struct gpsh_ofi *ofi)
{
    struct fi_info *hints = ofi->library->dupinfo(NULL);
    if (!hints)
        return NULL;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                                  FI_MR_ENDPOINT | FI_MR_RAW | FI_MR_HMEM;
    return hints;
}

static struct fi_info *hints_for(struct gpsh_ofi *ofi, uint64_t caps, enum fi_threading threading)
{
    const struct gpsh_settings *settings = ofi->env.settings;
    struct fi_info *hints = gpsh_ofi_hints(ofi);
    if (!hints)
        return NULL;
    for (const struct ofi_want *want = gpsh_ofi_wants; want->name; want++)
        want->ask(hints);
    hints->caps |= caps;
    if (!(caps & FI_HMEM))
        hints->domain_attr->mr_mode &= ~FI_MR_HMEM;
    hints->domain_attr->threading = threading;
    if (settings->ofi_provider[0])
        hints->fabric_attr->prov_name = strdup(settings->ofi_provider);
    return hints;
}

// ------------------------------------------------------------------------------------------
// the choice

static bool is_spoiled(const struct gpsh_ofi *ofi, const struct fi_info *info)
{
    const struct fi_info *spoiled = ofi->spoiled;
    while (spoiled && (strcmp(spoiled->fabric_attr->prov_name, info->fabric_attr->prov_name) != 0 ||
                       strcmp(spoiled->domain_attr->name, info->domain_attr->name) != 0))
        spoiled = spoiled->next;
    return spoiled;
}

// The first that other machines can reach, as libfabric orders them, or else the first; of the NIC
// that GPUSHMEM_OFI_DOMAIN names, if it names one: not all providers look at the name.
static const struct fi_info *best_of(const struct gpsh_ofi *ofi, const struct fi_info *list)
{
    const char *domain = ofi->env.settings->ofi_domain;
    const struct fi_info *first = NULL;
    for (const struct fi_info *info = list; info; info = info->next) {
        if ((domain[0] && strcmp(info->domain_attr->name, domain) != 0) || is_spoiled(ofi, info))
            continue;
        if (!gpsh_ofi_is_loopback(info) && !is_link_local(info))
            return info;
        first = first ? first : info;
    }
    return first;
}

struct search {
    const struct gpsh_ofi *ofi;
    const struct fi_info *hints;
    struct fi_info *list;
};

static int ask(void *arg)
{
    struct search *search = arg;
    return search->ofi->library->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, search->hints,
                                         &search->list);
}

int gpsh_ofi_list(const struct gpsh_ofi *ofi, const struct fi_info *hints, struct fi_info **out)
{
    struct search search = {ofi, hints, NULL};
    struct sigaction kept[CAUGHT];
    keep_handlers(kept);
    int error = gpsh_without_signals(ask, &search); // providers start threads
    restore_handlers(kept);
    *out = search.list;
    return error;
}

// Sets ofi->info, or leaves it as it is.
static int look_for(struct gpsh_ofi *ofi, uint64_t caps, enum fi_threading threading)
{
    struct fi_info *hints = hints_for(ofi, caps, threading);
    if (!hints)
        return -FI_ENOMEM;
    struct fi_info *list;
    int error = gpsh_ofi_list(ofi, hints, &list);
    if (!error) {
        const struct fi_info *best = best_of(ofi, list);
        struct fi_info *found = best ? ofi->library->dupinfo(best) : NULL;
        ofi->library->freeinfo(list);
        error = found ? 0 : best ? -FI_ENOMEM : -FI_ENODATA;
        ofi->info = found ? found : ofi->info;
    }
    ofi->library->freeinfo(hints);
    return error;
}

static int choose_with(struct gpsh_ofi *ofi, uint64_t caps)
{
    int error = look_for(ofi, caps, FI_THREAD_SAFE);
    return error ? look_for(ofi, caps, FI_THREAD_COMPLETION) : 0;
}

// Atomics of a NIC are wanted where it executes them itself. Where libfabric would do it in the
// target's process, so does the agent, and then they are exclusive with the processors'.
static int choose(struct gpsh_ofi *ofi)
{
    uint64_t memory = ofi_device_heap(ofi) ? FI_HMEM : 0;
    int error = memory ? choose_with(ofi, memory) : -FI_ENODATA;
    ofi->hmem = !error;
    if (error) {
        memory = 0;
        error = choose_with(ofi, 0);
    }
    if (error)
        return error;
    bool wanted = ofi->env.settings->amo_agent == GPSH_AGENT_NIC ||
                  ofi->info->domain_attr->data_progress == FI_PROGRESS_AUTO;
    struct fi_info *plain = ofi->info;
    ofi->atomics = false;
    if (!wanted || choose_with(ofi, memory | FI_ATOMIC))
        return 0;
    ofi->atomics = !strcmp(ofi->info->fabric_attr->prov_name, plain->fabric_attr->prov_name);
    ofi->library->freeinfo(ofi->atomics ? plain : ofi->info);
    ofi->info = ofi->atomics ? ofi->info : plain;
    return 0;
}

static bool has_atomic(const struct gpsh_ofi *ofi, enum fi_datatype type, enum fi_op op,
                       uint64_t flags)
{
    struct fi_atomic_attr attr;
    return fi_query_atomic(ofi->domain, type, op, &attr, flags) == 0 && attr.count >= 1;
}

static bool has_all_atomics(const struct gpsh_ofi *ofi)
{
    static const enum fi_datatype types[] = {FI_UINT32, FI_UINT64};
    static const enum fi_op ops[] = {FI_SUM, FI_BAND, FI_BOR, FI_BXOR, FI_ATOMIC_WRITE};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (!has_atomic(ofi, types[t], ops[i], 0) ||
                !has_atomic(ofi, types[t], ops[i], FI_FETCH_ATOMIC))
                return false;
        if (!has_atomic(ofi, types[t], FI_ATOMIC_READ, FI_FETCH_ATOMIC) ||
            !has_atomic(ofi, types[t], FI_CSWAP, FI_COMPARE_ATOMIC))
            return false;
    }
    return true;
}

static void note_manners(struct gpsh_ofi *ofi)
{
    const struct fi_info *info = ofi->info;
    int mode = info->domain_attr->mr_mode;
    uint64_t atomic_order = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAW;
    bool software = info->domain_attr->data_progress != FI_PROGRESS_AUTO;
    ofi->virtual_addresses = mode & FI_MR_VIRT_ADDR;
    ofi->local_keys = mode & FI_MR_LOCAL;
    ofi->endpoint_keys = mode & FI_MR_ENDPOINT;
    ofi->raw_keys = mode & FI_MR_RAW;
    ofi->provider_keys = mode & FI_MR_PROV_KEY;
    ofi->in_order = info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS;
    ofi->atomics_in_order = (info->tx_attr->msg_order & atomic_order) == atomic_order;
    ofi->max_message = info->ep_attr->max_msg_size;
    ofi->small = software ? (uint64_t)ofi->env.settings->ofi_small : 0;
    if (ofi->small > OFI_PAYLOAD)
        ofi->small = OFI_PAYLOAD;
    ofi->atomics = ofi->atomics && has_all_atomics(ofi);
}

static int open_objects(void *arg)
{
    struct gpsh_ofi *ofi = arg;
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = (size_t)ofi->env.n_pes};
    int error = ofi->library->fabric(ofi->info->fabric_attr, &ofi->fabric, NULL);
    if (error)
        return gpsh_ofi_error(ofi, "fi_fabric", error);
    error = fi_domain(ofi->fabric, ofi->info, &ofi->domain, NULL);
    if (error)
        return gpsh_ofi_error(ofi, "fi_domain", error);
    error = fi_av_open(ofi->domain, &av, &ofi->av, NULL);
    return error ? gpsh_ofi_error(ofi, "fi_av_open", error) : 0;
}

// What would do if no setting named one: "tcp on eth0, tcp on lo", each once, or nothing.
static void tell_choices(const struct gpsh_ofi *ofi, char *text, size_t bytes)
{
    struct gpsh_settings any = *ofi->env.settings;
    struct gpsh_ofi all = {.library = ofi->library, .env = {.settings = &any}};
    any.ofi_provider = any.ofi_domain = "";
    struct fi_info *hints = hints_for(&all, 0, FI_THREAD_COMPLETION), *list = NULL;
    char one[96];
    text[0] = '\0';
    if (!hints)
        return;
    (void)gpsh_ofi_list(&all, hints, &list);
    for (const struct fi_info *info = list; info; info = info->next) {
        size_t used = strlen(text);
        snprintf(one, sizeof one, "%s%s on %s", used ? ", " : "", info->fabric_attr->prov_name,
                 info->domain_attr->name);
        if (strstr(text, used ? one + 2 : one))
            continue;
        bool fits = used + strlen(one) + sizeof ", ..." <= bytes;
        snprintf(text + used, bytes - used, "%s", fits ? one : ", ...");
        if (!fits)
            break;
    }
    if (list)
        ofi->library->freeinfo(list);
    ofi->library->freeinfo(hints);
}

// GPUSHMEM_OFI_PROVIDER or GPUSHMEM_OFI_DOMAIN names what is not here, but something else is.
static int fail_named(const struct gpsh_ofi *ofi, const char *choices)
{
    const char *provider = ofi->env.settings->ofi_provider, *domain = ofi->env.settings->ofi_domain;
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                     "ofi: libfabric has nothing here for %s%s%s%s%s; there are: %s (provider on "
                     "domain)",
                     provider[0] ? "GPUSHMEM_OFI_PROVIDER=" : "", provider,
                     provider[0] && domain[0] ? " and " : "",
                     domain[0] ? "GPUSHMEM_OFI_DOMAIN=" : "", domain, choices);
}

int gpsh_ofi_choose(struct gpsh_ofi *ofi)
{
    ofi->library = gpsh_ofi_library();
    if (!ofi->library)
        return gpsh_last_error_code();
    int error = choose(ofi);
    if (!error)
        return 0;
    char choices[240] = "";
    if (ofi->env.settings->ofi_provider[0] || ofi->env.settings->ofi_domain[0])
        tell_choices(ofi, choices, sizeof choices);
    if (choices[0] && !ofi->spoiled)
        return fail_named(ofi, choices);
    return gpsh_fail(
        GPUSHMEM_ERR_TRANSPORT,
        "ofi: no provider of libfabric has messages, one-sided operations and completion at "
        "the target: %s (fi_info lists them)",
        ofi->library->strerror(-error));
}

int gpsh_ofi_fabric_open(struct gpsh_ofi *ofi)
{
    int status = gpsh_ofi_choose(ofi);
    if (!status)
        status = gpsh_without_signals(open_objects, ofi);
    if (!status)
        note_manners(ofi);
    return status;
}

static void close_objects(struct gpsh_ofi *ofi)
{
    if (ofi->av)
        fi_close(&ofi->av->fid);
    if (ofi->domain)
        fi_close(&ofi->domain->fid);
    if (ofi->fabric)
        fi_close(&ofi->fabric->fid);
    ofi->av = NULL;
    ofi->domain = NULL;
    ofi->fabric = NULL;
}

void gpsh_ofi_fabric_spoil(struct gpsh_ofi *ofi)
{
    close_objects(ofi);
    ofi->info->next = ofi->spoiled; // freeinfo frees what is behind it as well
    ofi->spoiled = ofi->info;
    ofi->info = NULL;
}

void gpsh_ofi_fabric_close(struct gpsh_ofi *ofi)
{
    close_objects(ofi);
    if (ofi->info)
        ofi->library->freeinfo(ofi->info);
    if (ofi->spoiled)
        ofi->library->freeinfo(ofi->spoiled);
}
