// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_CLI_COLLECTIVES_H
#define GPSH_CLI_COLLECTIVES_H

// The table of `gpushmem info --collectives`. The program's exit status.
int gpsh_cli_print_collectives(void);

#endif
