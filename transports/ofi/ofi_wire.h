// SPDX-License-Identifier: BSD-3-Clause
// The wire: messages to and from the peers' wires. All but open and close with its lock held.
#ifndef GPSH_OFI_WIRE_H
#define GPSH_OFI_WIRE_H

#include "transports/ofi/ofi_state.h"

enum { OFI_READ_AT_ONCE = 16 };

// Opens libfabric's first provider that works (some are listed, and then have no endpoint), and the
// wire's endpoint. Messages can be received when memory is registered: gpsh_ofi_wire_receive.
int gpsh_ofi_wire_open(struct gpsh_ofi *ofi);
int gpsh_ofi_wire_receive(struct gpsh_ofi *ofi);
void gpsh_ofi_wire_close(struct gpsh_ofi *ofi);

// NULL without memory, with a sentence. The header is filled in but for what it counts.
struct ofi_message *gpsh_ofi_message(struct gpsh_ofi *ofi, int pe, enum ofi_parcel_kind kind,
                                     int channel);
void gpsh_ofi_message_drop(struct gpsh_ofi *ofi, struct ofi_message *message);
// Sends it as soon as libfabric takes it, behind what waits for the same PE; it is the wire's then.
void gpsh_ofi_send(struct gpsh_ofi *ofi, struct ofi_message *message);
// Sends what has waited. False while something waits still.
bool gpsh_ofi_send_waiting(struct gpsh_ofi *ofi);

// Reads the completion queue once: messages that have come go to `came`, and back by
// gpsh_ofi_received. -1: nothing was there; failures are told to their peers.
int gpsh_ofi_wire_read(struct gpsh_ofi *ofi, struct ofi_message *came[OFI_READ_AT_ONCE]);
void gpsh_ofi_received(struct gpsh_ofi *ofi, struct ofi_message *message);
// Posts the receives for which there was no room. False while there is none still.
bool gpsh_ofi_receive_again(struct gpsh_ofi *ofi);

#endif
