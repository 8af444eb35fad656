// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getopt_long
#include "options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/printable.h"
#include "core/spelling.h"
#include "page.h"

enum { LONG = 256 }; // getopt's value of the long form of row 0
// Where --help has the texts of options, also in narrow terminals, and a usage's further lines.
enum { HELP_COLUMN = 27, NARROW = 60, NARROW_COLUMN = 10, USAGE_COLUMN = 11 };

bool gpsh_options_complain(const struct gpsh_command_line *line, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    gpsh_printable(sentence, sizeof sentence); // it repeats what was typed, or what a script made
    fprintf(stderr, "%s: %s\n", line->program, sentence);
    return false;
}

bool gpsh_options_bytes(const struct gpsh_command_line *line, const char *name, const char *text,
                        uint64_t *bytes)
{
    static const char units[] = "KMG";
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (!isdigit((unsigned char)text[0]) || *(unit ? end + 1 : end) || n < 1 ||
        n > (UINT64_C(1) << 32) >> shift)
        return gpsh_options_complain(line, "%s '%s' is not a size from 1 to 4G, like 8, 4K or 1M",
                                     name, text);
    *bytes = (uint64_t)n << shift;
    return true;
}

static bool take_number(const struct gpsh_command_line *line, const struct gpsh_option *o,
                        const char *name, const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < (long)o->low || n > (long)o->high)
        return gpsh_options_complain(line, "%s '%s' is not a number from %.0f to %.0f", name, text,
                                     o->low, o->high);
    *o->number = (int)n;
    return true;
}

static bool take_seconds(const struct gpsh_command_line *line, const struct gpsh_option *o,
                         const char *name, const char *text)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s >= o->low && s <= o->high)) // not a number is neither
        return gpsh_options_complain(line, "%s '%s' is not a number of seconds from %.10g to %.10g",
                                     name, text, o->low, o->high);
    *o->seconds = s;
    return true;
}

static bool take_word(const struct gpsh_command_line *line, const struct gpsh_option *o,
                      const char *name, const char *text)
{
    size_t length = strlen(text);
    unsigned place = 0;
    for (const char *word = o->value;; place++) {
        size_t n = strcspn(word, "|");
        if (n == length && !memcmp(word, text, n)) {
            *o->word = place;
            return true;
        }
        if (!word[n])
            return gpsh_options_complain(line, "%s '%s' is not one of %s", name, text, o->value);
        word += n + 1;
    }
}

static bool take(const struct gpsh_command_line *line, const struct gpsh_option *o,
                 const char *name, char *text)
{
    if (o->flag)
        return *o->flag = true;
    if (o->number)
        return take_number(line, o, name, text);
    if (o->seconds)
        return take_seconds(line, o, name, text);
    if (o->bytes)
        return gpsh_options_bytes(line, name, text, o->bytes);
    if (o->word)
        return take_word(line, o, name, text);
    if (o->take)
        return o->take(line, name, text);
    *o->text = text;
    return true;
}

// "-d D H": the second word of a value that has two.
static bool take_two(const struct gpsh_command_line *line, const struct gpsh_option *o,
                     const char *name, const char *first, const char *second)
{
    char both[128];
    if (!second || (second[0] == '-' && second[1]))
        return gpsh_options_complain(line, "%s needs two values (%s), only '%s' follows it", name,
                                     o->value, first);
    snprintf(both, sizeof both, "%s %s", first, second);
    return take(line, o, name, both);
}

// Bytes of a usage line until it may be broken: before a " | ", or where there is none between the
// words, but not within brackets.
static size_t usage_piece(const char *text, size_t n, bool has_bar)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        depth += (text[i] == '[') - (text[i] == ']');
        if (text[i] == ' ' && depth == 0 && i > 0 && (!has_bar || text[i + 1] == '|'))
            return i;
    }
    return n;
}

static bool usage_has_bar(const char *text, size_t n)
{
    size_t piece = usage_piece(text, n, true);
    return piece < n;
}

static void print_usage(const struct gpsh_command_line *line)
{
    const char *text = line->usage;
    size_t left = strcspn(text, "\n");
    bool has_bar = usage_has_bar(text, left);
    int width = gpsh_page_help_columns(stdout), used = printf("usage: %s", line->program);
    while (left) {
        size_t n = usage_piece(text, left, has_bar);
        size_t first = *text == ' '; // of the pieces after the first one
        if (used + 1 + (int)(n - first) > width)
            used = printf("\n%*s", USAGE_COLUMN - 1, "") - 1;
        used += printf(" %.*s", (int)(n - first), text + first);
        text += n;
        left -= n;
    }
    putchar('\n');
    if (*text)
        gpsh_page_help(stdout, text + 1, 0, 0);
}

static void print_option(const struct gpsh_option *o)
{
    char left[80] = "      ";
    int column = gpsh_page_help_columns(stdout) < NARROW ? NARROW_COLUMN : HELP_COLUMN;
    if (o->letter)
        snprintf(left, sizeof left, "  -%c%s", o->letter, o->name ? ", " : "");
    size_t used = strlen(left);
    snprintf(left + used, sizeof left - used, "%s%s%s%s", o->name ? "--" : "",
             o->name ? o->name : "", o->value ? " " : "", o->value ? o->value : "");
    if ((int)strlen(left) + 2 > column) {
        puts(left);
        left[0] = '\0';
    }
    printf("%-*s", column, left);
    gpsh_page_help(stdout, o->help, column, column);
}

static void print_help(const struct gpsh_command_line *line)
{
    static const struct gpsh_option help = {'h', .name = "help", .help = "print this"};
    print_usage(line);
    putchar('\n');
    for (const struct gpsh_option *o = line->options; o->help; o++)
        print_option(o);
    print_option(&help);
    if (line->print_more)
        line->print_more();
}

// The table as getopt_long wants it.
static void describe(const struct gpsh_command_line *line, char *letters, struct option *names)
{
    const struct gpsh_option *o = line->options;
    letters += sprintf(letters, "%s:h", line->program_follows ? "+" : "");
    for (int i = 0; i < GPSH_OPTIONS_MAX && o[i].help; i++) {
        if (o[i].letter)
            letters += sprintf(letters, "%c%s", o[i].letter, o[i].value ? ":" : "");
        if (o[i].name)
            *names++ = (struct option){o[i].name, o[i].value ? required_argument : no_argument,
                                       NULL, LONG + i};
    }
    *names = (struct option){"help", no_argument, NULL, 'h'};
}

static bool complain_unknown(const struct gpsh_command_line *line, const char *word)
{
    struct gpsh_spelling spelling = {.typed = word + 2, .length = strcspn(word + 2, "=")};
    for (const struct gpsh_option *o = line->options; o->help; o++)
        if (o->name)
            gpsh_spelling_consider(&spelling, o->name, o->name);
    return spelling.meant
               ? gpsh_options_complain(line,
                                       "unknown option '%s'; did you mean --%s? See %s --help",
                                       word, spelling.meant, line->program)
               : gpsh_options_complain(line, "unknown option '%s'; see %s --help", word,
                                       line->program);
}

static bool complain_of_option(const struct gpsh_command_line *line, int result, const char *word)
{
    const char *wrong = result == ':'    ? "option '%s' needs a value; see %s --help"
                        : optopt >= LONG ? "option '%s' takes no value; see %s --help"
                                         : "unknown option '%s'; see %s --help";
    char letter[] = {'-', (char)optopt, '\0'}; // word may hold several
    if (result == '?' && optopt == 0 && !strncmp(word, "--", 2))
        return complain_unknown(line, word);
    return gpsh_options_complain(line, wrong, optopt > 0 && optopt < LONG ? letter : word,
                                 line->program);
}

int gpsh_options_parse(const struct gpsh_command_line *line, int argc, char **argv,
                       int *exit_status)
{
    char letters[2 * GPSH_OPTIONS_MAX + 4];
    struct option names[GPSH_OPTIONS_MAX + 2] = {0};
    describe(line, letters, names);
    *exit_status = GPSH_OPTIONS_EXIT_USAGE;
    opterr = 0;
    optind = 1;
    for (int result; (result = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
        if (result == 'h') {
            print_help(line);
            *exit_status = 0;
            return -1;
        }
        if (result == '?' || result == ':') {
            complain_of_option(line, result, argv[optind - 1]);
            return -1;
        }
        const struct gpsh_option *o = line->options;
        while (result != LONG + (int)(o - line->options) && result != o->letter)
            o++;
        // "-np 4", as mpirun has it, is no "-n" with the value "p".
        if (result < LONG && o->number && o->name && optarg && optind < argc &&
            !strcmp(argv[optind - 1] + 1, o->name))
            optarg = argv[optind++];
        char name[64];
        snprintf(name, sizeof name, result >= LONG ? "--%s" : "-%.1s",
                 result >= LONG ? o->name : &o->letter);
        bool two = o->value && strchr(o->value, ' ');
        if (two ? !take_two(line, o, name, optarg, optind < argc ? argv[optind] : NULL)
                : !take(line, o, name, optarg))
            return -1;
        optind += two;
    }
    return optind;
}
