// SPDX-License-Identifier: BSD-3-Clause
// What libfabric has for this host, without a job: for doctor, and `gpushmem info --providers`.
#ifndef GPSH_OFI_SURVEY_H
#define GPSH_OFI_SURVEY_H

#include "core/config.h"
#include "transport/transport.h"

// transport.h
int gpsh_ofi_survey(const struct gpsh_settings *settings, char *line, size_t bytes);
int gpsh_ofi_survey_all(const struct gpsh_settings *settings, gpsh_survey_row *row, void *arg);

#endif
