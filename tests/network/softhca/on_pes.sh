#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# on_pes.sh "PES" NAME=VALUE program [argument]...: the program, with that in the environment of those PEs alone.
case " $1 " in *" $GPUSHMEM_RUN_PE "*) export "${2?}" ;; esac
exec "${@:3}"
