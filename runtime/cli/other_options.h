// SPDX-License-Identifier: BSD-3-Clause
// Options of mpirun, mpiexec, oshrun and srun on the command line of `gpushmem run`: those that
// mean something on one machine are taken, the others are answered with what to do.
#ifndef GPSH_OTHER_OPTIONS_H
#define GPSH_OTHER_OPTIONS_H

#include "options.h"

// Looks at what stands before the program. Takes out of argv, and of *argc, what has no effect
// here, and writes in this program's words what has. False after a sentence about one that needs
// another launcher.
bool gpsh_other_options_take(const struct gpsh_command_line *line, int *argc, char **argv);

#endif
