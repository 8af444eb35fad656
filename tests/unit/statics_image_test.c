// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "core/error.h"
#include "memory/statics_image.h"

static const uintptr_t BIAS = 0x7f0000000000;
static long variable = 3;

static ElfW(Phdr) load(uint32_t flags, uintptr_t at, uint64_t file, uint64_t memory)
{
    return (ElfW(Phdr)){
        .p_type = PT_LOAD, .p_flags = flags, .p_vaddr = at, .p_filesz = file, .p_memsz = memory};
}

static ElfW(Phdr) relro(uintptr_t at, uint64_t bytes)
{
    return (ElfW(Phdr)){.p_type = PT_GNU_RELRO, .p_vaddr = at, .p_memsz = bytes};
}

// As GNU ld: RELRO ends at a page boundary inside the only writable segment.
Test(statics_image, range__relro_first__is_what_follows)
{
    const ElfW(Phdr) headers[] = {load(PF_R | PF_X, 0, 0x2000, 0x2000),
                                  load(PF_R | PF_W, 0x3d90, 0x1280, 0x9000), relro(0x3d90, 0x270)};
    struct gpsh_statics_image image;
    cr_assert_eq(gpsh_statics_image_range(headers, 3, BIAS, &image), 0, "%s", gpsh_last_error());
    cr_expect_eq(image.base, (char *)BIAS + 0x4000);
    cr_expect_eq(image.bytes, 0x9000);
    cr_expect_eq(image.file_bytes, 0x2000);
}

// As lld: a segment of its own for RELRO, of which nothing is left.
Test(statics_image, range__relro_apart__is_the_other_segment)
{
    const ElfW(Phdr) headers[] = {load(PF_R | PF_W, 0x3500, 0x300, 0xb00), relro(0x3500, 0xb00),
                                  load(PF_R | PF_W, 0x4010, 0x10, 0x5000)};
    struct gpsh_statics_image image;
    cr_assert_eq(gpsh_statics_image_range(headers, 3, BIAS, &image), 0, "%s", gpsh_last_error());
    cr_expect_eq(image.base, (char *)BIAS + 0x4000);
    cr_expect_eq(image.bytes, 0x6000);
    cr_expect_eq(image.file_bytes, 0x1000);
}

Test(statics_image, range__none_or_two__refused)
{
    const ElfW(Phdr)
        headers[] = {load(PF_R, 0, 0x1000, 0x1000), load(PF_R | PF_W, 0x4000, 0x10, 0x10),
                     load(PF_R | PF_W, 0x8000, 0x10, 0x10)};
    struct gpsh_statics_image image;
    cr_expect_eq(gpsh_statics_image_range(headers, 1, BIAS, &image), GPUSHMEM_ERR_UNSUPPORTED);
    cr_expect_eq(gpsh_statics_image_range(headers, 2, BIAS, &image), 0);
    cr_expect_eq(gpsh_statics_image_range(headers, 3, BIAS, &image), GPUSHMEM_ERR_UNSUPPORTED);
}

Test(statics_image, find__this_program__holds_its_variables)
{
    static const long constant = 4;
    struct gpsh_statics_image image;
    cr_assert_eq(gpsh_statics_image_find(&image), 0, "%s", gpsh_last_error());
    cr_expect((char *)&variable >= image.base && (char *)&variable < image.base + image.bytes);
    cr_expect_not((const char *)&constant >= image.base &&
                  (const char *)&constant < image.base + image.bytes);
    cr_expect_neq(image.id, 0);
}
