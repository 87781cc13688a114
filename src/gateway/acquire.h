/* acquire.h - a call gets its model: at once, or when it is loaded, or an answer that says why not.
 *
 * Thread:    the loop's.
 * Ownership: part of whoever asks, who stays until `ready` was called. */
#ifndef SHOAL_GATEWAY_ACQUIRE_H
#define SHOAL_GATEWAY_ACQUIRE_H

#include "gateway/gw.h"

struct acquire {
    struct call *call;
    /* Called once.  m is held; NULL: there will be none, and the call is answered or gone. */
    void (*ready)(struct acquire *a, struct registry_model *m);
    /* private */
    enum shoal_kind kind;
    struct registry_wait wait;
    struct registry_model *model;
    int rc;
    struct loop_task loaded;
    struct loop_timer timer;
    char text[320], wait_text[320];
};

/* name: NULL is the default model of the kind.  ready may be called before this returns. */
void acquire_model(struct acquire *a, struct call *c, const char *name, enum shoal_kind kind,
                   void (*ready)(struct acquire *a, struct registry_model *m));

/* A task was submitted to the model's engine with `held`: the engine is woken at the end of the
 * loop's turn. */
void acquire_wake_later(struct gw_loop *gl, struct registry_model *m);
/* Of gw_loop.wake_engines. */
void acquire_wake(struct loop_task *t);

#endif
