// SPDX-License-Identifier: BSD-3-Clause
// Grey pictures in files: reads PGM, writes PGM or PNG.
#ifndef HEAT_PICTURE_H
#define HEAT_PICTURE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct picture {
    int width, height;
    unsigned char *grey; // [height][width], 0 black to 255 white
};

// False, with a sentence on stderr, if the file cannot be read or is no PGM (P2 or P5, at most 255
// or 65535 levels).
bool picture_read(struct picture *p, const char *path);
// PNG in the colours of heat if the name ends in .png, else PGM. False, with a sentence on stderr,
// if the file cannot be written.
bool picture_write(const struct picture *p, const char *path);
void picture_free(struct picture *p);

#ifdef __cplusplus
}
#endif

#endif
