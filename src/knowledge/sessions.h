/* sessions.h - conversations that continue by an id: a request gets the messages before it, and its
 * answer is kept before the client has all of it.
 *
 * What is kept lies outside of the process (store/session): any gateway with the same place and
 * keys can continue.  While the place is away, a gateway goes on with what it knows itself, says so
 * (degraded), and saves when the place is back.
 *
 * Thread:    struct sessions: any.  sessions_run: the owner's; files and servers are the pool's.
 * Ownership: open/close.
 * Failure:   a request never fails because of the place alone. */
#ifndef SHOAL_KNOWLEDGE_SESSIONS_H
#define SHOAL_KNOWLEDGE_SESSIONS_H

#include "base/buf.h"
#include "flow/flow.h"

struct sessions;

struct sessions_opts {
    const char *place;       /* as session_store.h; NULL: sqlite in the state folder */
    const char *key_file;    /* NULL: beside it */
    uint32_t ttl_s;          /* after the last turn */
    uint32_t history_tokens; /* about, of the messages before a request */
};

struct sessions_counts {
    uint64_t turns;    /* kept */
    uint64_t degraded; /* begun while the place was away */
    uint32_t unsaved;  /* conversations that wait for it */
};

/* Files are made when the first conversation is. */
SHOAL_MUST_CHECK int sessions_open(struct sessions **out, const struct sessions_opts *o,
                                   struct err *e);
void sessions_close(struct sessions *s);
void sessions_counts(struct sessions *s, struct sessions_counts *out);

/* As routing_run, of a chat with request.session; its answer (the first choice) becomes part of the
 * conversation before `done` is passed on.  *away: set before `start` if the place is away; it must
 * stay until `closed`. */
void sessions_run(struct sessions *s, struct flow_owner *o, struct request *r, struct sink *to,
                  bool *away);

/* For the gateway's pool: the messages as JSON, appended; SHOAL_ENOTFOUND. */
SHOAL_MUST_CHECK int sessions_show(struct sessions *s, const char *tenant, const char *id,
                                   struct buf *out, struct err *e);
SHOAL_MUST_CHECK int sessions_forget(struct sessions *s, const char *tenant, const char *id,
                                     struct err *e);

#endif
