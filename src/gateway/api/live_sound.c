/* live_sound.c - see live_sound.h. */
#include "gateway/api/live_sound.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "gateway/api/own/voice_turn.h"
#include "gateway/call/api_key.h"
#include "gateway/call/call.h"
#include "net/peers.h"
#include "net/ws.h"
#include "voice/ear.h"

/* The sound of a turn, its copy while it is heard, and what waits. */
#define SOUND_BYTES ((2 * (size_t)EAR_MOST + LISTENER_MOST) * sizeof(int16_t))
#define MAX_PHRASE_BYTES ((size_t)128 << 10)

/* ---- the connection ---- */

static bool charge(struct live_sound *l, struct call *c)
{
    if (c->req->account && peers_take(c->req->account, SOUND_BYTES) != PEERS_OK) {
        call_refuse(c, GW_REFUSED_BUSY, 503, 1,
                    "the sound does not fit into the memory for clients (limits.buffers, "
                    "limits.client_buffers): try again later");
        return false;
    }
    l->account = c->req->account ? peers_ref(c->req->account) : NULL;
    return true;
}

bool live_open(struct live_sound *l, struct call *c, size_t max_message, size_t max_out)
{
    l->gl = c->gl;
    l->form = (struct pcm_form){.rate = EAR_RATE, .channels = 1, .width = 2};
    snprintf(l->peer, sizeof(l->peer), "%s", c->req->peer);
    l->from = hash_bytes(l->peer, strlen(l->peer), 0) | 1u;
    if (c->client) {
        memcpy(l->client.name, c->client->name, sizeof(l->client.name));
        l->client.priority = c->client->priority;
        l->client.weight = c->client->weight;
    }
    /* a message of 8-bit samples at 2 kHz becomes 16 times its bytes */
    buf_init(&l->samples, 16 * max_message + 64);
    buf_init(&l->out, max_out);
    buf_init(&l->phrases, MAX_PHRASE_BYTES);
    if (api_key_header(&l->authorization, c->req) < 0) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return false;
    }
    return charge(l, c);
}

void live_fini(struct live_sound *l)
{
    l->ws = NULL;
    live_forget(l);
    if (l->account) {
        peers_give(l->account, SOUND_BYTES);
        peers_leave(l->account);
    }
    buf_fini(&l->samples);
    buf_fini(&l->out);
    buf_fini(&l->phrases);
    mem_free(l->authorization);
}

bool live_accept(struct live_sound *l, struct call *c, const struct ws_ops *ops, void *session,
                 size_t max_message)
{
    l->ws = ws_accept(c->req, ops, session, max_message);
    if (l->ws)
        call_detach(c, 101);
    else
        call_fail(c, 426, NULL, NULL, NULL, "this path needs WebSocket version 13 over HTTP/1.1");
    return l->ws != NULL;
}

void live_send(struct live_sound *l)
{
    if (l->ws && l->out.rc == 0 && ws_queued(l->ws) < l->out.max)
        ws_send(l->ws, buf_str(&l->out), l->out.len);
    else if (l->ws)
        ws_close(l->ws, 1011);
}

void live_rest(struct live_sound *l)
{
    if (!l->ws)
        return;
    ws_rest(l->ws);
    if (l->draining)
        ws_close(l->ws, 1001);
}

void live_drain(struct live_sound *l, bool busy)
{
    l->draining = true;
    if (!busy)
        ws_close(l->ws, 1001);
}

/* ---- sound ---- */

int live_listen(struct live_sound *l, const struct listener_ops *ops, struct err *e)
{
    int rc = l->pcm ? 0 : pcm_create(&l->pcm, &l->form, e);
    if (rc < 0 || l->listener)
        return rc;
    rc = listener_create(&l->listener, &l->gl->flow, ops, l, e);
    return rc < 0 ? rc : 1;
}

int live_feed(struct live_sound *l, const void *bytes, size_t n, struct err *e)
{
    buf_clear(&l->samples);
    int rc = pcm_feed(l->pcm, bytes, n, &l->samples, e);
    if (rc == 0 &&
        (rc = listener_feed(l->listener, (const int16_t *)(const void *)buf_str(&l->samples),
                            (uint32_t)(l->samples.len / sizeof(int16_t)))) < 0)
        (void)err_set(e, rc,
                      rc == SHOAL_EBUSY
                          ? "the sound comes faster than it can be heard: some is lost"
                          : "out of memory for sound");
    if (l->ws && !l->paused && listener_full(l->listener)) {
        l->paused = true;
        mem_free(ws_take(l->ws)); /* no further message until live_room */
    }
    return rc;
}

void live_forget(struct live_sound *l)
{
    listener_destroy(l->listener);
    l->listener = NULL;
    pcm_destroy(l->pcm);
    l->pcm = NULL;
    live_room(l);
}

void live_room(void *session)
{
    struct live_sound *l = session;
    if (l->paused && l->ws)
        ws_go_on(l->ws);
    l->paused = false;
}

struct request *live_request(struct live_sound *l, const char *path, const char *recognizer)
{
    struct request *r = flow_take_request(&l->gl->flow);
    if (!r)
        return NULL;
    r->client = l->client;
    r->from = l->from;
    r->path = path;
    r->received_ns = loop_now(l->gl->loop);
    if (recognizer && recognizer[0])
        r->model = request_copy(r, recognizer, strlen(recognizer));
    return r;
}

const char *live_home_phrases(void *session)
{
    struct live_sound *l = session;
    if (l->phrases.len == 0)
        voice_turn_phrases(&l->phrases, l->gl);
    return l->phrases.rc == 0 ? buf_str(&l->phrases) : NULL;
}
