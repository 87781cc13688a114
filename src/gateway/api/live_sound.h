/* live_sound.h - live sound of a connection: whose it is, the memory that it may take, samples of
 * any form, and the listener (voice/listener.h) that makes turns of them.  Sessions of /v1/voice,
 * /v1/realtime and gRPC's Recognize begin with it.
 *
 * Thread:    the loop's.
 * Ownership: open/fini over the caller's storage.  It is the first member of the session, which is
 *            the context of the listener's callbacks: live_room, live_home_phrases are such.
 * Failure:   functions that take a call answer it themselves when they return false. */
#ifndef SHOAL_GATEWAY_API_LIVE_SOUND_H
#define SHOAL_GATEWAY_API_LIVE_SOUND_H

#include "audio/pcm.h"
#include "gateway/gw.h"
#include "voice/listener.h"

struct call;
struct ws;
struct ws_ops;

struct live_sound {
    struct gw_loop *gl;
    struct ws *ws;        /* NULL: it is no WebSocket, or is closed */
    struct peer *account; /* held and charged with the sound; NULL: none */
    char *authorization;  /* NULL: none */
    char peer[56];
    uint64_t from;
    struct request_client client;
    struct pcm_form form;      /* of the samples; 16,000 a second, 16 bits */
    struct pcm *pcm;           /* NULL: before the first sound */
    struct listener *listener; /* the same */
    struct buf samples, out, phrases;
    bool draining;
    bool paused; /* no message of the WebSocket is read */
};

/* l is zeroed.  max_message: bytes of one message with sound; max_out: of an answer.  After false
 * only live_fini may follow, which takes a zeroed one as well. */
SHOAL_MUST_CHECK bool live_open(struct live_sound *l, struct call *c, size_t max_message,
                                size_t max_out);
void live_fini(struct live_sound *l);
/* The call becomes a WebSocket of `session`. */
SHOAL_MUST_CHECK bool live_accept(struct live_sound *l, struct call *c, const struct ws_ops *ops,
                                  void *session, size_t max_message);

/* Sends `out`; a client that does not read is closed, as after a lack of memory. */
void live_send(struct live_sound *l);
/* Nothing is being done: a server that ends need not wait for it. */
void live_rest(struct live_sound *l);
/* The server ends. */
void live_drain(struct live_sound *l, bool busy);

/* A listener, if there is none; returns 1 if it is new. */
SHOAL_MUST_CHECK int live_listen(struct live_sound *l, const struct listener_ops *ops,
                                 struct err *e);
/* Sound for the listener, which is there. */
SHOAL_MUST_CHECK int live_feed(struct live_sound *l, const void *bytes, size_t n, struct err *e);
/* What was heard so far is forgotten. */
void live_forget(struct live_sound *l);
static inline bool live_works(const struct live_sound *l)
{
    return l->listener && listener_works(l->listener);
}

/* An empty request of the client; recognizer: NULL or "": any. */
struct request *live_request(struct live_sound *l, const char *path, const char *recognizer);
void live_room(void *session);
const char *live_home_phrases(void *session);

#endif
