// SPDX-License-Identifier: BSD-3-Clause
#include "picture.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 16384 };

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "heat: %s: %s\n", path, what);
    return false;
}

// Next number of a PGM header; comments run from # to the end of the line.
static int read_number(FILE *f)
{
    int c = fgetc(f), value;
    while (isspace(c) || c == '#') {
        while (c == '#' && (c = fgetc(f)) != '\n' && c != EOF)
            c = '#';
        c = fgetc(f);
    }
    ungetc(c, f);
    return fscanf(f, "%d", &value) == 1 ? value : -1;
}

// One sample of binary (P5) or text (P2), or -1.
static int read_sample(FILE *f, bool binary, int levels)
{
    if (!binary)
        return read_number(f);
    int c = fgetc(f);
    return c == EOF || levels < 256 ? c : c << 8 | fgetc(f);
}

static bool read_file(struct picture *p, FILE *f, const char *path)
{
    char magic[3] = "";
    if (fscanf(f, "%2s", magic) != 1 || (strcmp(magic, "P2") && strcmp(magic, "P5")))
        return complain(path, "is no PGM picture (it begins with neither P2 nor P5); convert it "
                              "with: convert x.png x.pgm");
    p->width = read_number(f);
    p->height = read_number(f);
    int levels = read_number(f);
    bool binary = magic[1] == '5';
    if (p->width < 1 || p->height < 1 || p->width > MAX_SIDE || p->height > MAX_SIDE ||
        levels < 1 || levels > 65535)
        return complain(path, "has a damaged header, or a side of more than 16384 pixels");
    if (binary)
        fgetc(f); // the one white space behind the header
    size_t pixels = (size_t)p->width * (size_t)p->height;
    p->grey = malloc(pixels);
    if (!p->grey)
        return complain(path, "does not fit into memory");
    for (size_t i = 0; i < pixels; i++) {
        int sample = read_sample(f, binary, levels);
        if (sample < 0 || sample > levels)
            return complain(path, "ends too early or holds a value above its maximum");
        p->grey[i] = (unsigned char)(sample * 255 / levels);
    }
    return true;
}

bool picture_read(struct picture *p, const char *path)
{
    *p = (struct picture){.grey = NULL};
    FILE *f = fopen(path, "rb");
    if (!f)
        return complain(path, strerror(errno));
    bool good = read_file(p, f, path);
    fclose(f);
    if (!good)
        picture_free(p);
    return good;
}

void picture_free(struct picture *p)
{
    free(p->grey);
    *p = (struct picture){.grey = NULL};
}

static void put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

// Length, type, data and CRC-32. `chunk` starts with 8 bytes of room and ends with 4.
static void write_chunk(FILE *f, const char *type, unsigned char *chunk, size_t bytes)
{
    put32(chunk, (uint32_t)bytes);
    memcpy(chunk + 4, type, 4);
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 4; i < bytes + 8; i++) {
        crc ^= chunk[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    put32(chunk + 8 + bytes, ~crc);
    fwrite(chunk, 1, bytes + 12, f);
}

// One zlib stream of stored blocks, a row of the picture each: no compression, and no library
// needed.
static size_t store_rows(const struct picture *p, unsigned char *to)
{
    size_t at = 0, row_bytes = (size_t)p->width + 1;
    uint32_t a = 1, b = 0;
    to[at++] = 0x78;
    to[at++] = 0x01;
    for (int y = 0; y < p->height; y++) {
        to[at++] = y == p->height - 1;
        for (int i = 0; i < 4; i++) // length and its complement, low byte first
            to[at++] = (unsigned char)((i < 2 ? row_bytes : ~row_bytes) >> 8 * (i % 2));
        for (size_t x = 0; x < row_bytes; x++) {
            // filter "none" in front of each row
            to[at] = x ? p->grey[(size_t)y * (size_t)p->width + x - 1] : 0;
            a = (a + to[at++]) % 65521;
            b = (b + a) % 65521;
        }
    }
    put32(to + at, b << 16 | a);
    return at + 4;
}

// The colours of glowing iron, red, green and blue of each value from cold to hot.
static void fill_palette(unsigned char *rgb)
{
    static const unsigned char iron[][3] = {{0, 0, 0},     {38, 8, 82},    {134, 16, 112},
                                            {222, 66, 48}, {250, 166, 32}, {255, 252, 214}};
    enum { SPANS = sizeof iron / sizeof iron[0] - 1 };
    for (int value = 0; value < 256; value++) {
        int span = value * SPANS / 256, far = value * SPANS - span * 256;
        for (int c = 0; c < 3; c++)
            *rgb++ =
                (unsigned char)(iron[span][c] + (iron[span + 1][c] - iron[span][c]) * far / 256);
    }
}

static bool write_png(const struct picture *p, FILE *f)
{
    enum { BITS = 8, FROM_PALETTE = 3, PALETTE_BYTES = 3 * 256 };
    unsigned char header[8 + 13 + 4] = {0}, palette[8 + PALETTE_BYTES + 4], end[8 + 4] = {0};
    size_t room = (size_t)p->height * ((size_t)p->width + 6) + 6;
    unsigned char *data = malloc(8 + room + 4);
    if (!data)
        return false;
    put32(header + 8, (uint32_t)p->width);
    put32(header + 12, (uint32_t)p->height);
    header[16] = BITS;
    header[17] = FROM_PALETTE;
    fill_palette(palette + 8);
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, f);
    write_chunk(f, "IHDR", header, 13);
    write_chunk(f, "PLTE", palette, PALETTE_BYTES);
    write_chunk(f, "IDAT", data, store_rows(p, data + 8));
    write_chunk(f, "IEND", end, 0);
    free(data);
    return true;
}

bool picture_write(const struct picture *p, const char *path)
{
    size_t length = strlen(path), pixels = (size_t)p->width * (size_t)p->height;
    FILE *f = fopen(path, "wb");
    if (!f)
        return complain(path, strerror(errno));
    bool good = true;
    if (length > 4 && !strcmp(path + length - 4, ".png")) {
        good = write_png(p, f);
    } else {
        fprintf(f, "P5\n%d %d\n255\n", p->width, p->height);
        fwrite(p->grey, 1, pixels, f);
    }
    good &= !ferror(f);
    good &= fclose(f) == 0;
    return good || complain(path, "could not be written completely");
}
