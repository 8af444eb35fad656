// SPDX-License-Identifier: BSD-3-Clause
// What PEs send each other in messages, always to the endpoint that the other end's thread serves.
//
//   request  records of one flow, carried out at the target in the order in which they were posted:
//            small puts, signals, atomics, and everything on a heap that the provider cannot reach
//   reply    how many records of that flow have been carried out, and what was fetched
//   ping     asks for a reply: whether the other PE is there, and how many requests it has seen
//
// The PEs of a job run on machines of one byte order. Everything in a parcel comes from another
// process: the receiver checks each length and range.
#ifndef GPSH_OFI_PARCEL_H
#define GPSH_OFI_PARCEL_H

#include <stdint.h>

#include "transport/request.h"

enum { OFI_PARCEL_BYTES = 16384 }; // largest, with its header

enum ofi_parcel_kind { OFI_REQUEST = 1, OFI_REPLY, OFI_PING };

// Why an agent carries out nothing more of a flow.
enum ofi_refusal {
    OFI_REFUSED_NOT,
    OFI_REFUSED_RANGE,
    OFI_REFUSED_QUEUE,  // the GPU's
    OFI_REFUSED_MEMORY, // for an answer
    OFI_REFUSED_GAP,    // an earlier request has not come
};

struct ofi_parcel {
    uint64_t secret; // the receiver's, which only PEs of the job know
    uint32_t pe;     // the sender
    uint16_t channel;
    uint8_t kind;    // enum ofi_parcel_kind
    uint8_t refused; // REPLY: enum ofi_refusal
    // REQUEST: its number in the flow, from 1; PING: of the last request sent; REPLY: of the last
    // one that has come
    uint64_t number;
    uint64_t pinged; // REPLY: the number of the ping that is answered, and 1; 0: no ping is
    uint64_t done;   // REPLY: records carried out
    uint32_t bytes;  // behind this header
    uint32_t reserved;
};
_Static_assert(sizeof(struct ofi_parcel) == 48, "the same on both ends");

// Of a request. Behind it its payload, padded to 8 bytes.
struct ofi_record {
    struct gpsh_request op;
    uint64_t at; // get: where the bytes belong in the operation
};
_Static_assert(sizeof(struct ofi_record) == 56, "the same on both ends");

// Of a reply: bytes fetched for a slot. Behind it the bytes, padded to 8.
struct ofi_item {
    uint32_t slot, bytes;
    uint64_t at;
};

enum {
    OFI_PAYLOAD = OFI_PARCEL_BYTES - (int)sizeof(struct ofi_parcel) -
                  (int)sizeof(struct ofi_record), // of one record
    OFI_ANSWER = OFI_PARCEL_BYTES - (int)sizeof(struct ofi_parcel) - (int)sizeof(struct ofi_item)
};

static inline uint32_t ofi_padded(uint64_t bytes)
{
    return (uint32_t)((bytes + 7) & ~UINT64_C(7));
}

#endif
