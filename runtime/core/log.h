// SPDX-License-Identifier: BSD-3-Clause
// Logging: one write(2) per line to stderr (or GPUSHMEM_LOG_FILE), with the PE; errno is kept.
// Under `gpushmem run` lines for stderr, down to INFO, go by way of the launcher (launcher.h).
#ifndef GPSH_LOG_H
#define GPSH_LOG_H

enum gpsh_log_level {
    GPSH_LOG_ERROR,
    GPSH_LOG_WARN,
    GPSH_LOG_INFO,
    GPSH_LOG_DEBUG,
    GPSH_LOG_TRACE
};

// GPSH_LOG(WARN, "verbs", "rail %s is down", name): subsystem is a short word, the text one
// sentence without newline.
#define GPSH_LOG(level, subsystem, ...)                                                            \
    do {                                                                                           \
        if (GPSH_LOG_##level <= gpsh_log_threshold)                                                \
            gpsh_log_write(GPSH_LOG_##level, subsystem, __VA_ARGS__);                              \
    } while (0)

extern enum gpsh_log_level gpsh_log_threshold;

// As soon as the settings are read. An empty file name is stderr. 0, or the errno of opening the
// file: the log then goes on to where it went before.
int gpsh_log_open(enum gpsh_log_level level, const char *file);
// pe < 0 while the PE number is not known yet.
void gpsh_log_set_pe(int pe);
void gpsh_log_close(void);

void gpsh_log_write(enum gpsh_log_level level, const char *subsystem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
