// SPDX-License-Identifier: BSD-3-Clause
// A command line as a table: it makes the parser, the sentences about mistakes, and --help.
#ifndef GPSH_OPTIONS_H
#define GPSH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpsh_command_line;

// One option. Exactly one of the pointers is set: it says where the value goes, and by its type
// what is allowed.
struct gpsh_option {
    char letter;      // after one dash; 0: none
    const char *name; // after two dashes; NULL: none
    // what --help calls the value; NULL: there is none. Two words: the value is two, and `take` is
    // given both with a space between
    const char *value;
    const char *help; // is wrapped; a line break in it stays one
    bool *flag;       // becomes true
    int *number;      // low to high
    double *seconds;  // low to high
    uint64_t *bytes;  // 1 to 4G
    unsigned *word;   // becomes the place in `value`, which lists the words: "none|core"
    const char **text;
    // Anything else; `name` is the option as it was written. Says itself what is wrong.
    bool (*take)(const struct gpsh_command_line *line, const char *name, char *text);
    double low, high;
};

enum { GPSH_OPTIONS_MAX = 24, GPSH_OPTIONS_EXIT_USAGE = 2 };

struct gpsh_command_line {
    const char *program; // starts every sentence
    // follows the program's name in --help, and after a line break what the program does
    const char *usage;
    void (*print_more)(void); // ends --help; may be NULL
    // GPSH_OPTIONS_MAX at most, and a row of zeros; --help is added
    const struct gpsh_option *options;
    bool program_follows; // the first word that is no option ends them
    void *context;        // for `take`
};

// The index of the first operand (argv is permuted so that they come last). Negative: leave with
// *exit_status; help was printed, or the command line is wrong and was explained.
int gpsh_options_parse(const struct gpsh_command_line *line, int argc, char **argv,
                       int *exit_status);

// "program: sentence" on stderr; false.
bool gpsh_options_complain(const struct gpsh_command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Reads a size like 8, 4K or 1M, or complains about the option `name`.
bool gpsh_options_bytes(const struct gpsh_command_line *line, const char *name, const char *text,
                        uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
