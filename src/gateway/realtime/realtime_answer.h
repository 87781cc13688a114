/* realtime_answer.h - one response of a /v1/realtime session: a chat or a command, its words as
 * events, and their sound.
 *
 * Thread:    the loop's.
 * Ownership: belongs to its session, which cancels or finishes it before it goes.  `done` is called
 *            once for each start, also inside it. */
#ifndef SHOAL_GATEWAY_REALTIME_REALTIME_ANSWER_H
#define SHOAL_GATEWAY_REALTIME_REALTIME_ANSWER_H

#include <stdbool.h>

#include "base/buf.h"
#include "gateway/realtime/realtime_items.h"
#include "gateway/realtime/realtime_read.h"
#include "wire/json_out.h"

struct gw_loop;
struct inner_call;
struct pcm;
struct peer;

#define REALTIME_HOME "home" /* the model that carries out commands of the home */

struct realtime_answer_ops {
    /* An event; begin gives it a type and an id, end sends it. */
    struct json_out (*begin)(void *ctx, const char *type);
    void (*end)(void *ctx, struct json_out *j);
    void (*done)(void *ctx);
};

struct realtime_answer {
    /* set by the session */
    struct gw_loop *gl;
    struct realtime_items *items;
    const struct realtime_answer_ops *ops;
    void *ctx;
    const char *authorization, *peer, *model, *session;
    struct peer *account;
    bool beta;   /* names of the beta's events */
    float heard; /* confidence of the last words; 0: they were typed */
    /* private */
    bool active, audio, speaks, has_message;
    struct realtime_settings settings;
    char id[40], item_id[40], voice[128];
    struct inner_call *call;
    struct buf text, arguments, name, call_id;
    bool calls; /* a function call is being written */
    char call_item[40];
    uint32_t n_output; /* items of the response */
    cJSON *output;     /* they, when complete */
    struct pcm *pcm;
    struct buf samples, coded;
    bool failed;
};

void realtime_answer_init(struct realtime_answer *a);
void realtime_answer_fini(struct realtime_answer *a);
/* Takes what s owns.  Not while one is active. */
void realtime_answer_start(struct realtime_answer *a, struct realtime_settings *s);
/* status: "cancelled"; reason: "client_cancelled" or "turn_detected". */
void realtime_answer_cancel(struct realtime_answer *a, const char *reason);

#endif
