// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "connect/peers.h"
#include "gpushmem/gpushmem.h"
#include "json.h"
#include "say.h"

// In a job of more PEs than this each prints one line for all that it reaches alike.
enum { LINE_BYTES = 1024, MOST_IN_DETAIL = 8 };

static const char *by_kernels(const struct gpushmem_peer_info *info)
{
    return info->device_direct ? "direct" : "by ring";
}

static bool alike(const struct gpushmem_peer_info *a, const struct gpushmem_peer_info *b)
{
    return !strcmp(a->transport, b->transport) && !strcmp(a->atomics, b->atomics) &&
           a->device_direct == b->device_direct;
}

static int say_pe(int pe, char *line)
{
    struct gpushmem_peer_info info;
    int status = gpushmem_peer_info(pe, &info);
    if (!status)
        snprintf(line, LINE_BYTES, "PE %d reaches %s, kernels %s", gpushmem_my_pe(),
                 info.description, by_kernels(&info));
    return status;
}

// "PE 3 reaches PEs 0 to 7 by p2p, atomics by verbs, kernels direct; PEs 8 to 63 by verbs, atomics
// by verbs, kernels by ring"
static int say_groups(char *line)
{
    size_t used = (size_t)snprintf(line, LINE_BYTES, "PE %d reaches", gpushmem_my_pe());
    struct gpushmem_peer_info first, next;
    for (int from = 0, to = 0; from < gpushmem_n_pes() && used < LINE_BYTES; from = to) {
        int status = gpushmem_peer_info(from, &first);
        do
            to++;
        while (!status && to < gpushmem_n_pes() && !(status = gpushmem_peer_info(to, &next)) &&
               alike(&first, &next));
        if (status)
            return status;
        char last[24] = "";
        if (to - 1 > from)
            snprintf(last, sizeof last, " to %d", to - 1);
        used += (size_t)snprintf(line + used, LINE_BYTES - used,
                                 "%s PE%s %d%s by %s, atomics by %s, kernels %s", from ? ";" : "",
                                 last[0] ? "s" : "", from, last, first.transport, first.atomics,
                                 by_kernels(&first));
    }
    return 0;
}

// ---- For programs ----

// How one PE reaches another, in the place of a line.
struct peer_row {
    int same_node, device_direct;
    char transport[32], atomics[32], description[256];
};
_Static_assert(sizeof(struct peer_row) <= LINE_BYTES, "a row has the room of a line");

static int say_row(int pe, char *line)
{
    struct gpushmem_peer_info info;
    int status = gpushmem_peer_info(pe, &info);
    if (status)
        return status;
    struct peer_row row = {.same_node = info.same_node, .device_direct = info.device_direct};
    snprintf(row.transport, sizeof row.transport, "%s", info.transport);
    snprintf(row.atomics, sizeof row.atomics, "%s", info.atomics);
    snprintf(row.description, sizeof row.description, "%s", info.description);
    memcpy(line, &row, sizeof row);
    return 0;
}

static void row_add(struct gpsh_json *json, int pe, const char *line)
{
    struct peer_row row;
    memcpy(&row, line, sizeof row);
    gpsh_json_object(json, NULL);
    gpsh_json_integer(json, "pe", pe);
    gpsh_json_bool(json, "same_node", row.same_node);
    gpsh_json_text(json, "transport", row.transport);
    gpsh_json_text(json, "atomics", row.atomics);
    gpsh_json_text(json, "kernels", row.device_direct ? "direct" : "by ring");
    gpsh_json_text(json, "description", row.description);
    gpsh_json_end(json);
}

static int pe_add(struct gpsh_json *json, const char *lines, int pe, char *line)
{
    int n = gpushmem_n_pes(), status = gpushmem_getmem(line, lines, LINE_BYTES, pe);
    gpsh_json_object(json, NULL);
    gpsh_json_integer(json, "pe", pe);
    gpsh_json_text(json, "has", line);
    gpsh_json_list(json, "reaches");
    for (int to = 0; to < n && !status; to++) {
        status = gpushmem_getmem(line, lines + (size_t)(to + 1) * LINE_BYTES, LINE_BYTES, pe);
        if (!status)
            row_add(json, to, line);
    }
    gpsh_json_end(json);
    gpsh_json_end(json);
    return status;
}

static int print_json(const char *lines, char *line)
{
    struct gpsh_json json = {.out = stdout};
    int status = 0;
    gpsh_json_object(&json, NULL);
    gpsh_json_list(&json, "pes");
    for (int pe = 0; pe < gpushmem_n_pes() && !status; pe++)
        status = pe_add(&json, lines, pe, line);
    gpsh_json_end(&json);
    gpsh_json_end(&json);
    return status;
}

// ---- For readers ----

// What this PE says: line 0 of itself, the others of how it reaches the PEs.
static int say_line(int number, bool json, char *line)
{
    bool in_detail = gpushmem_n_pes() <= MOST_IN_DETAIL;
    if (number > 0)
        return json        ? say_row(number - 1, line)
               : in_detail ? say_pe(number - 1, line)
                           : say_groups(line);
    gpsh_self_explain(line, LINE_BYTES);
    return 0;
}

// Lines first..last of `pe`.
static int print_lines(const char *lines, int pe, int first, int last, char *line)
{
    int status = 0;
    for (int i = first; i <= last && !status; i++) {
        status = gpushmem_getmem(line, lines + (size_t)i * LINE_BYTES, LINE_BYTES, pe);
        if (!status)
            printf("%s\n", line);
    }
    return status;
}

static int print_text(const char *lines, int others, char *line)
{
    int n = gpushmem_n_pes(), status = 0;
    for (int pe = 0; pe < n && !status; pe++)
        status = print_lines(lines, pe, 0, 0, line);
    for (int pe = 0; pe < n && !status; pe++)
        status = print_lines(lines, pe, 1, others, line);
    return status;
}

// Every PE writes its lines, one of itself and `others`, into its own heap; PE 0 gets and prints
// them.
static int gather_and_print(char *lines, int others, bool json)
{
    char line[LINE_BYTES] = "";
    int me = gpushmem_my_pe(), status = 0;
    for (int i = 0; i <= others && !status; i++) {
        status = say_line(i, json, line);
        if (!status)
            status = gpushmem_putmem(lines + (size_t)i * LINE_BYTES, line, LINE_BYTES,
                                     me); // may be on a GPU
    }
    if (!status)
        status = gpushmem_barrier_all();
    if (me == 0 && !status)
        status = json ? print_json(lines, line) : print_text(lines, others, line);
    return status ? status : gpushmem_barrier_all();
}

int gpsh_cli_print_peers(bool json)
{
    int status = gpushmem_init();
    if (!status) {
        int n = gpushmem_n_pes(), others = json || n <= MOST_IN_DETAIL ? n : 1;
        char *lines = gpushmem_calloc((size_t)others + 1, LINE_BYTES);
        status = lines ? gather_and_print(lines, others, json) : GPUSHMEM_ERR_NO_MEMORY;
        if (!status)
            status = gpushmem_free(lines);
        if (!status)
            status = gpushmem_finalize();
    }
    if (status)
        gpsh_cli_say("info", "%s", gpushmem_last_error());
    return status ? 1 : 0;
}
