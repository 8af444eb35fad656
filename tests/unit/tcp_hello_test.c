// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <string.h>

#include "bootstrap/tcp_wire.h"

static const struct gpsh_uniqueid job = {.job = {1}, .secret = {2}, .n_addresses = 1};

struct talk {
    struct gpsh_greeting greeting;
    struct gpsh_hello hello;
    struct gpsh_confirmation answer;
};

static struct talk talk_of(const struct gpsh_uniqueid *caller)
{
    struct talk t = {.hello = {.purpose = GPSH_PURPOSE_CHILD, .pe = 3, .n_pes = 7}};
    cr_assert_eq(gpsh_greeting_make(&job, &t.greeting), 0);
    cr_assert_eq(gpsh_hello_make(caller, &t.greeting, &t.hello), 0);
    gpsh_confirmation_make(caller, &t.greeting, &t.hello, &t.answer);
    return t;
}

Test(tcp_hello, check__same_id__accepted_on_both_sides)
{
    struct talk t = talk_of(&job);
    cr_expect_eq(gpsh_greeting_check(&job, &t.greeting), GPSH_GREETED_OK);
    cr_expect(gpsh_hello_check(&job, &t.greeting, &t.hello));
    cr_expect(gpsh_confirmation_check(&job, &t.greeting, &t.hello, &t.answer));
}

Test(tcp_hello, check__another_secret__refused_on_both_sides)
{
    struct gpsh_uniqueid other = job;
    other.secret[15] ^= 1;
    struct talk t = talk_of(&other);
    cr_expect_not(gpsh_hello_check(&job, &t.greeting, &t.hello));
    cr_expect_not(gpsh_confirmation_check(&job, &t.greeting, &t.hello, &t.answer));
}

Test(tcp_hello, check__any_byte_changed__refused)
{
    struct talk t = talk_of(&job);
    uint8_t *byte = (uint8_t *)&t.hello;
    for (size_t i = 0; i < sizeof t.hello; i++) {
        byte[i] ^= 1;
        cr_expect_not(gpsh_hello_check(&job, &t.greeting, &t.hello), "byte %zu", i);
        byte[i] ^= 1;
    }
}

// What was heard on one connection is of no use on the next, and one side's code is not the
// other's.
Test(tcp_hello, check__replayed_or_reflected__refused)
{
    struct talk first = talk_of(&job), second = talk_of(&job);
    struct gpsh_confirmation reflected;
    cr_expect_not(gpsh_hello_check(&job, &second.greeting, &first.hello));
    memcpy(reflected.mac, first.hello.mac, sizeof reflected.mac);
    cr_expect_not(gpsh_confirmation_check(&job, &first.greeting, &first.hello, &reflected));
    cr_expect_not(gpsh_confirmation_check(&job, &second.greeting, &second.hello, &first.answer));
}

Test(tcp_hello, greeting__of_others__told_apart)
{
    struct talk t = talk_of(&job);
    t.greeting.job[7] ^= 1;
    cr_expect_eq(gpsh_greeting_check(&job, &t.greeting), GPSH_GREETED_JOB);
    t.greeting.version++;
    cr_expect_eq(gpsh_greeting_check(&job, &t.greeting), GPSH_GREETED_VERSION);
    t.greeting.magic++;
    cr_expect_eq(gpsh_greeting_check(&job, &t.greeting), GPSH_GREETED_STRANGE);
}
