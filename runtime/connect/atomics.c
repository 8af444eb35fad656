// SPDX-License-Identifier: BSD-3-Clause
#include "connect/atomics.h"

#include <stdio.h>

#include "connect/net.h"
#include "core/config.h"
#include "core/error.h"
#include "job/job.h"

struct gpsh_net gpsh_net_state;

static char why[160]; // the choice was made

static bool has_nic(const struct gpsh_transport *t)
{
    return t->ops->caps & GPSH_CAP_NIC_ATOMICS;
}

void gpsh_atomics_offer(struct gpsh_peer_blob *blob)
{
    blob->amo_agent = (uint8_t)gpsh_settings()->amo_agent;
    blob->nic_atomics = GPSH_NIC_NONE;
    for (int i = 0; i < gpsh_net()->n_transports && blob->nic_atomics == GPSH_NIC_NONE; i++)
        if (has_nic(gpsh_net()->transports[i]))
            blob->nic_atomics =
                gpsh_net()->transports[i]->no_atomics ? GPSH_NIC_NO_ATOMICS : GPSH_NIC_ATOMICS;
}

static const char *word_of(int32_t agent)
{
    static const char *const words[] = {"auto", "cpu", "nic"};
    return (uint32_t)agent < sizeof words / sizeof *words ? words[agent] : "?";
}

int gpsh_atomics_check(const struct gpsh_peer_blob *blob)
{
    if (blob->amo_agent == gpsh_settings()->amo_agent)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                     "PE %d has GPUSHMEM_AMO_AGENT=%s, this PE %s: one agent executes all atomics "
                     "of a job; set it alike for all PEs",
                     blob->pe, word_of(blob->amo_agent),
                     word_of((int32_t)gpsh_settings()->amo_agent));
}

bool gpsh_atomics_need_agents(const struct gpsh_records *records)
{
    int without = records->without_atomics, wish = (int)gpsh_settings()->amo_agent;
    why[0] = '\0';
    if (without >= 0)
        snprintf(why, sizeof why, "the NIC of PE %d on %.63s executes no atomics", without,
                 gpsh_records_get(records, without).hostname);
    else if (wish == GPSH_AGENT_CPU)
        snprintf(why, sizeof why, "GPUSHMEM_AMO_AGENT=cpu");
    return records->any_nic && wish != GPSH_AGENT_NIC && (without >= 0 || wish == GPSH_AGENT_CPU);
}

int gpsh_atomics_serve(void)
{
    int status = 0;
    for (int i = 0; i < gpsh_net()->n_transports && !status; i++) {
        struct gpsh_transport *t = gpsh_net()->transports[i];
        if (!has_nic(t))
            continue;
        status = t->ops->serve_atomics
                     ? t->ops->serve_atomics(t)
                     : gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                                 "%s, and the transport %s has no agent that would: give the job "
                                 "NICs with atomics, or another transport (GPUSHMEM_TRANSPORTS=%s)",
                                 why, t->ops->name, gpsh_settings()->transports);
    }
    return status;
}

// Whether the processor's atomics, or those of the GPU that has the heap, are what reaches the PE
// by that transport: by a mapping, or the PE's agent.
static bool is_processors(int transport)
{
    return !has_nic(gpsh_net()->transports[transport]) || gpsh_net()->transports[transport]->agents;
}

uint32_t gpsh_atomics_reach(const struct gpsh_records *records)
{
    uint32_t reach = GPSH_COMMON_PROCESSOR | GPSH_COMMON_NIC;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        if (!is_processors(gpsh_job()->peers[pe].data))
            reach &= ~(uint32_t)GPSH_COMMON_PROCESSOR;
        if (gpsh_job()->peers[pe].amo < 0)
            reach &= ~(uint32_t)GPSH_COMMON_NIC;
    }
    return records->without_atomics >= 0 ? reach & ~(uint32_t)GPSH_COMMON_NIC : reach;
}

static int no_nic(const char *open_failures)
{
    return gpsh_fail(
        GPUSHMEM_ERR_SETTING,
        "GPUSHMEM_AMO_AGENT=nic: no NIC executes atomics for every PE (%s); set it to auto",
        open_failures[0] ? open_failures
        : why[0]         ? why
                         : "verbs is not in GPUSHMEM_TRANSPORTS, or does not reach a PE");
}

static bool any_agent(void)
{
    bool any = false;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        any |= gpsh_net()->transports[gpsh_job()->peers[pe].data]->agents;
    return any;
}

static void note_why(void)
{
    if (!gpsh_net()->cpu_atomics)
        snprintf(why, sizeof why, "%s",
                 gpsh_settings()->amo_agent == GPSH_AGENT_NIC ? "GPUSHMEM_AMO_AGENT=nic"
                                                              : "not every PE is mapped");
    else if (!any_agent())
        snprintf(why, sizeof why, "every PE is mapped");
}

// The processor if it reaches every PE, else the NIC, also towards PEs of this node.
int gpsh_atomics_choose(uint32_t common, const char *open_failures)
{
    bool processor = common & GPSH_COMMON_PROCESSOR, nic = common & GPSH_COMMON_NIC;
    int wish = (int)gpsh_settings()->amo_agent;
    gpsh_net_state.cpu_atomics = wish == GPSH_AGENT_CPU || (wish == GPSH_AGENT_AUTO && processor);
    if (gpsh_net()->cpu_atomics && !processor)
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "GPUSHMEM_AMO_AGENT=cpu: a PE is reached neither by loads and stores nor "
                         "by a transport that has agents; set it to auto");
    if (wish == GPSH_AGENT_NIC && !nic)
        return no_nic(open_failures);
    if (!gpsh_net()->cpu_atomics && !nic)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                         "not every PE is reached by a transport with NIC atomics, which a job on "
                         "several nodes needs; add verbs to GPUSHMEM_TRANSPORTS=%s",
                         gpsh_settings()->transports);
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        if (gpsh_net()->cpu_atomics)
            gpsh_job()->peers[pe].amo = gpsh_job()->peers[pe].data;
    note_why();
    return 0;
}

const char *gpsh_atomics_agent(int pe)
{
    const struct gpsh_transport *t = gpsh_net()->transports[gpsh_job()->peers[pe].amo];
    return !gpsh_net()->cpu_atomics ? t->ops->name : t->agents ? "agent" : "processor";
}

void gpsh_atomics_explain(char *line, size_t bytes)
{
    const char *who = !gpsh_net()->cpu_atomics ? "NICs"
                      : any_agent()            ? "processors and agents"
                                               : "processors";
    snprintf(line, bytes, "atomics by %s: %s", who, why);
}
