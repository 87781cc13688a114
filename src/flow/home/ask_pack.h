/* ask_pack.h - the ask flow with the models of a pack: opened, checked against the manifest, ready.
 *
 * Thread:    one thread opens and closes.
 * Ownership: ask_pack_open gives, ask_pack_close takes back; no request may be left. */
#ifndef SHOAL_FLOW_HOME_ASK_PACK_H
#define SHOAL_FLOW_HOME_ASK_PACK_H

#include "flow/home/ask.h"

#define ASK_ENCODER "intent" /* of the pack: the encoder with all heads */
#define ASK_REPLY "reply"

struct ask_pack {
    struct shoal_engine *encoder, *reply; /* reply NULL: actions only */
    struct ask *ask;
};

struct ask_pack_opts {
    const char *dir; /* NULL: found as pack.h says */
    bool no_reply;
    uint32_t n_threads;
    bool (*progress)(void *ctx, double part); /* as in shoal_engine_opts */
    void *progress_ctx;
};

SHOAL_MUST_CHECK int ask_pack_open(struct ask_pack *p, const struct ask_pack_opts *o,
                                   struct err *e);
void ask_pack_close(struct ask_pack *p);

#endif
