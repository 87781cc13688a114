/* listener.h - hears live sound turn by turn: an ear (ear.h) and its hearings (hearing.h).
 *
 * While somebody speaks, the sound so far is recognized again and again; at the end of a turn its
 * words are mostly there already.  One hearing runs at a time.  The sound of a turn is kept until
 * it is over, so that a hearing that fails is done again, perhaps by another node.
 *
 * Thread:    the owner's (flow/flow.h).  Callbacks may come inside listener_feed and
 *            listener_finish; listener_destroy must not be called in one.
 * Ownership: the caller destroys; the owner, the callbacks' context and the texts of the options
 *            outlive it.
 * Failure:   SHOAL_ENOMEM; SHOAL_EBUSY: more sound waits than LISTENER_MOST, since it comes faster
 *            than it is heard: stop reading while listener_full, until `room`.  `failed`: the sound
 *            of the turn could not be recognized, and is lost. */
#ifndef SHOAL_VOICE_LISTENER_H
#define SHOAL_VOICE_LISTENER_H

#include "flow/flow.h"

struct failure;
struct listener;
struct wake_ear;

#define LISTENER_MOST (60u * 16000u) /* samples that wait besides those of the turn */

struct listener_turn {
    const char *text; /* "": nothing was said */
    size_t text_bytes;
    const char *language;   /* as "en"; "": not known */
    float confidence;       /* of the recognizer */
    double start_s, end_s;  /* of the speech, from the start of the stream */
    const int16_t *samples; /* of the turn */
    uint32_t n_samples;
    uint32_t n_hearings;
    bool last;        /* of listener_finish */
    uint64_t over_ns; /* when the end of the turn was known */
    float clipped;    /* part of the samples at full scale: the microphone is too loud */
};

struct listener_ops {
    /* Somebody speaks, since start_s of the stream; once for each turn; may be NULL */
    void (*started)(void *ctx, double start_s);
    void (*partial)(void *ctx, const char *text, size_t n); /* may be NULL */
    void (*turn)(void *ctx, const struct listener_turn *t);
    void (*woken)(void *ctx);  /* the wake word was said; may be NULL */
    void (*asleep)(void *ctx); /* nothing was said behind it; may be NULL */
    void (*failed)(void *ctx, const struct failure *f);
    void (*room)(void *ctx); /* listener_full is false again; may be NULL */
    /* An empty request of the listener's client, or NULL: out of memory; infer.labels may be the
     * language that is spoken. */
    struct request *(*request)(void *ctx);
    const char *(*phrases)(void *ctx); /* likely to be said; may be NULL, or return it */
};

SHOAL_MUST_CHECK int listener_create(struct listener **out, struct flow_owner *o,
                                     const struct listener_ops *ops, void *ctx, struct err *e);
void listener_destroy(struct listener *l); /* NULL is fine */
/* From now on every turn needs the wake word in front of it, which is not part of it.  The listener
 * takes the ear; before the first sound. */
void listener_await(struct listener *l, struct wake_ear *wake);
SHOAL_MUST_CHECK int listener_feed(struct listener *l, const int16_t *samples, uint32_t n);
/* The client says that the turn is over; `turn` or `failed` follows, exactly once. */
void listener_finish(struct listener *l);
/* Whether so much sound waits that no more should be read. */
bool listener_full(const struct listener *l);
/* Whether a hearing runs, or a turn that was finished is still open. */
bool listener_works(const struct listener *l);

#endif
