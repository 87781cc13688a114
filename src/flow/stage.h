/* stage.h - the way of a request through the stages, as each stage sees it (stages.h has the
 * table).
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_STAGE_H
#define SHOAL_FLOW_STAGE_H

#include <stdint.h>

struct flow_owner;
struct request;
struct sink;

enum stage {
    STAGE_AUDIT,    /* the audit log gets a line when it ends */
    STAGE_DEADLINE, /* the request ends in time, whatever it waits for */
    STAGE_PRIVACY,  /* personal data is masked, replaced or refused, before anything is stored */
    STAGE_SESSION,  /* earlier messages are added, the answer is stored */
    STAGE_FIT,      /* a conversation that is too long continues with its last turns */
    STAGE_SIMILAR,  /* the semantic cache answers */
    STAGE_TOOLS,    /* the model's text becomes tool calls */
    STAGE_ROUTE,    /* a route, a flow or an ensemble chooses who answers */
    STAGE_LEAVE,    /* personal data that must not leave this server is masked */
    STAGE_PLACE,    /* an idempotency key, or a replica on another node */
    STAGE_RUN,      /* this process answers */
    STAGE_N
};

/* When each stage took the request; 0: it did not. */
struct stage_log {
    uint64_t entered_ns[STAGE_N];
};

/* Part of a request; copies of the request continue on the same way. */
struct stage_way {
    /* Set by stages_run: hands the request to the next stage that wants it. */
    void (*pass_on)(struct flow_owner *o, struct request *r, struct sink *s);
    uint32_t next;         /* enum stage */
    struct stage_log *log; /* NULL: nobody asked for an explanation */
    uint32_t span, below;  /* of the present stage, and of all of them: see trace/trace.h */
};

#endif
