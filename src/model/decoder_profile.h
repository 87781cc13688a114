/* decoder_profile.h - where the passes of a decoder spend their time: each phase, and what every
 * thread did.
 *
 * A pass is planned as always, then each phase's functions are put behind ones that look at the
 * clock.  Without a profile nothing is wrapped, and a pass costs one comparison more.
 *
 * Thread:    decoder_profile_set before passes, by the decoder's thread; what was recorded is read
 *            after them.
 * Ownership: create gives, destroy takes back.  A member that was descheduled may still finish a
 *            chunk that another has done: destroy the decoder first.
 * Failure:   SHOAL_ENOMEM.  What does not fit is counted in n_left_out. */
#ifndef SHOAL_MODEL_DECODER_PROFILE_H
#define SHOAL_MODEL_DECODER_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread/crew.h"

struct decoder;

struct profile_part {
    const char *name;  /* "qkv", "attend", ...; NULL: there is none */
    uint64_t bytes;    /* of weights and cache that it reads */
    uint64_t products; /* multiplications of its matrices */
};

/* One after the other: open, its chunks, its finish, done. */
struct profile_phase {
    struct profile_part chunks, finish;
    int32_t layer;    /* -1: of the whole model */
    uint32_t pass;    /* from 0 */
    uint64_t open_ns; /* the phase before it was done, or the pass was planned */
    uint64_t finish_ns, done_ns;
    struct crew_phase was;
};

struct profile_event { /* a thread worked on a phase */
    uint64_t from_ns, to_ns;
    uint32_t phase;
    bool finish; /* the small work at its end */
};

struct profile_member {
    struct profile_event *events;
    _Atomic uint32_t n;
};

struct decoder_profile {
    struct profile_phase *phases;
    uint32_t n_phases, cap_phases, n_passes, cap_events;
    uint32_t n_members;
    _Atomic uint32_t n_left_out; /* phases and events without room */
    struct profile_member members[CREW_MAX_MEMBERS];
};

/* Room for n_phases phases and n_events of each member. */
SHOAL_MUST_CHECK int decoder_profile_create(struct decoder_profile **out, uint32_t n_members,
                                            uint32_t n_phases, uint32_t n_events, struct err *e);
void decoder_profile_destroy(struct decoder_profile *f); /* NULL is fine */
/* Phases that a pass of this decoder has at most. */
uint32_t decoder_profile_phases(const struct decoder *d);
/* From now on passes are recorded in f, until it is full. */
void decoder_profile_set(struct decoder *d, struct decoder_profile *f);

/* What the functions of a phase are called: constants. */
struct profile_names {
    const char *chunks, *finish; /* NULL: it has none */
    bool of_layer;               /* arg is the layer */
};
/* For the decoder: the n phases of a pass were planned. */
void decoder_profile_pass(struct decoder *d, struct crew_phase *phases, uint32_t n,
                          struct profile_names (*names)(const struct crew_phase *p));

#endif
