// SPDX-License-Identifier: BSD-3-Clause
// libfabric itself: the library, the provider that is chosen, and what it can do.
#ifndef GPSH_OFI_FABRIC_H
#define GPSH_OFI_FABRIC_H

#include "transports/ofi/ofi_state.h"

// Loaded when it is first needed: what has no use for libfabric does not wait for its providers.
// NULL with a sentence where it is not to be had.
const struct ofi_library *gpsh_ofi_library(void);

// Chooses a provider, and opens fabric, domain and address vector.
int gpsh_ofi_fabric_open(struct gpsh_ofi *ofi);
void gpsh_ofi_fabric_close(struct gpsh_ofi *ofi);
// What was opened did not work: it is closed, and that NIC of that provider is not chosen again.
void gpsh_ofi_fabric_spoil(struct gpsh_ofi *ofi);

// The first part of it: sets library, info, hmem and atomics, and starts nothing that has to be
// closed but by gpsh_ofi_fabric_close.
int gpsh_ofi_choose(struct gpsh_ofi *ofi);

// What a provider is not taken without, beside reliable datagram endpoints; a name of NULL ends it.
struct ofi_want {
    const char *name;
    void (*ask)(struct fi_info *hints);
};
extern const struct ofi_want gpsh_ofi_wants[];
// Hints that ask for such endpoints, and take every mode there is: for freeinfo. NULL without
// memory.
struct fi_info *gpsh_ofi_hints(const struct gpsh_ofi *ofi);
// fi_getinfo, whose providers neither get this thread's signals nor keep their handlers.
int gpsh_ofi_list(const struct gpsh_ofi *ofi, const struct fi_info *hints, struct fi_info **out);
bool gpsh_ofi_is_loopback(const struct fi_info *info);
// What is known to go wrong with that provider, whatever it claims, or NULL.
const char *gpsh_ofi_fault(const struct fi_info *info);

// What an address is good for: 0 if other machines reach it, else this machine's number.
uint64_t gpsh_ofi_machine(const struct gpsh_ofi *ofi);
// "192.0.2.7:4711", or what the provider calls it.
void gpsh_ofi_address_text(const struct gpsh_ofi *ofi, const void *address, char *text,
                           size_t bytes);
const char *gpsh_ofi_format_name(uint32_t format); // of addresses
// Fails with "what: why" and code GPUSHMEM_ERR_TRANSPORT. `error` as libfabric returns it.
int gpsh_ofi_error(const struct gpsh_ofi *ofi, const char *what, int64_t error);

// ofi_survey.c: survey and survey_all of gpsh_transport_ops.
int gpsh_ofi_survey(const struct gpsh_settings *settings, char *line, size_t bytes);
int gpsh_ofi_survey_all(const struct gpsh_settings *settings, gpsh_survey_row *row, void *arg);

#endif
