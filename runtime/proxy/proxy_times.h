// SPDX-License-Identifier: BSD-3-Clause
// What the proxy threads' clocks (proxy_clock.h) add up to.
#ifndef GPSH_PROXY_TIMES_H
#define GPSH_PROXY_TIMES_H

struct gpsh_proxy;
struct gpushmem_proxy_times;

// Sum over the threads of the proxy; any thread may ask.
void gpsh_proxy_times_read(const struct gpsh_proxy *proxy, struct gpushmem_proxy_times *out);
// One line for each thread, to stderr.
void gpsh_proxy_times_print(const struct gpsh_proxy *proxy, int my_pe);

#endif
