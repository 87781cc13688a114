/* satellite.h - a microphone and a loudspeaker somewhere in a home, as events of Wyoming.
 *
 * As a client it brings the sound of a turn to a Shoal (shoal serve --wyoming), has its words
 * carried out, and plays the spoken reply.  As a server it offers microphone and loudspeaker to
 * Home Assistant, which runs the turn.  It waits for a wake word, if there is one, and for
 * otherwise nothing: every turn then follows the last one.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage; texts of the options and the wake word outlive
 *            it.  Sound is sent or dropped, never kept.
 * Failure:   events that do not fit are skipped, as the protocol wants. */
#ifndef SHOAL_VOICE_SATELLITE_H
#define SHOAL_VOICE_SATELLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct wake_ear;
struct wyoming_event;

#define SATELLITE_RATE 16000u

enum satellite_state {
    SATELLITE_PAUSED, /* a server: nobody wants its sound */
    SATELLITE_WAITS,  /* for the wake word, or for sound */
    SATELLITE_HEARS,  /* the sound of a turn is being sent */
    SATELLITE_THINKS, /* the other side works */
    SATELLITE_SPEAKS, /* a reply is being played */
};

struct satellite_ops {
    void (*send)(void *ctx, const char *type, const char *data, size_t n, const void *payload,
                 size_t n_payload);
    void (*sound_begin)(void *ctx, uint32_t rate);
    void (*sound)(void *ctx, const int16_t *samples, size_t n);
    void (*sound_end)(void *ctx); /* returns when it was heard */
    /* What happens, for people: "heard", "reply", "error", "woken"; text may be "". */
    void (*note)(void *ctx, const char *what, const char *text);
};

struct satellite_opts {
    const char *name, *room; /* room: NULL: unknown */
    bool serves;             /* the other side runs the turns */
    struct wake_ear *wake;   /* NULL: it is always awake */
};

struct satellite {
    const struct satellite_ops *ops;
    void *ctx;
    struct satellite_opts o;
    enum satellite_state state;
    uint32_t n_sent; /* samples of the turn */
    bool words;      /* of the turn were understood */
    bool ended;      /* no sound follows */
    bool plays;      /* between audio-start and audio-stop */
    struct buf out;
};

void satellite_init(struct satellite *s, const struct satellite_opts *o,
                    const struct satellite_ops *ops, void *ctx);
void satellite_fini(struct satellite *s);
/* n samples of the microphone. */
void satellite_hear(struct satellite *s, const int16_t *samples, uint32_t n);
/* No sound follows. */
void satellite_end(struct satellite *s);
void satellite_event(struct satellite *s, const struct wyoming_event *ev);
/* Whether it can still do something: the sound may end before its answer has come. */
bool satellite_works(const struct satellite *s);

#endif
