// SPDX-License-Identifier: BSD-3-Clause
// A peer that the test plays: PE 1 of a fake pair whose connections are made on first use. It keeps
// the datagrams that PE 0 sends to make and close them, and answers each as an end of its own
// would, unless the test says otherwise.
#ifndef VERBS_FAKE_PEER_H
#define VERBS_FAKE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fakes/fake_pair.h"
#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

enum { MOST_SENT = 64 };

struct fake_peer {
    bool mute;   // hears all, and says nothing
    bool keeps;  // does not close what it is asked to close
    int refuses; // not 0: everything, for this errno value
    int loses;   // so many datagrams from now on do not reach it
    int repeats; // says everything so many times more
    // what PE 0 has sent, lost ones included: the newest is last_sent()
    int n_sent;
    struct gpsh_verbs_message sent[MOST_SENT];
};

extern struct fake_pair pair;
extern struct fake_peer peer;

// What each test begins and ends with: one rail, and one channel that is connected with nobody.
void open_lazy(void);
void close_all(void); // nothing that was made may be left
// Another pair in place of that one.
void reopen_with(int channels, const char *setting);
void reopen_with_two_rails(void);

// What PE 0 sends.
int count(int kind);
struct gpsh_verbs_message last_sent(void);
void wait_until_sent(int kind, int n);

// What the peer says: an answer to `to`, in which its own attempt is number `own`, ...
void reply(const struct gpsh_verbs_message *to, uint8_t kind, uint32_t own);
// ... and a message of its own accord, such as the greeting of its attempt 3.
void hear(const struct gpsh_verbs_message *message);
struct gpsh_verbs_message greeting(void);
// A mute peer answers after all, until something is posted on `channel`. Returns how many answers
// that took; what is sent again because nobody has answered yet is not counted again.
int round_trips(struct gpsh_channel *channel);

// What PE 0 does.
void put(struct gpsh_channel *channel, uint64_t value, uint64_t to);
uint64_t there(uint64_t at); // the value that has arrived
void nap(void);
void progress_for(int naps); // of the first channel
void finish(int pe);         // until nothing on the first channel is under way to that PE
struct verbs_flow *flow_to(int pe);
struct verbs_rail *first_rail(void);

#endif
