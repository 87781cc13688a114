/* sessions.h - conversations that continue by an id: a request gets the earlier messages, and its
 * answer is stored before the client has received all of it.
 *
 * Conversations are stored outside the process (store/session): any gateway with the same store and
 * keys can continue. While the store is unavailable, a gateway continues with its own buffered
 * turns, reports that (degraded), and saves them when the store is back.
 *
 * Thread:    struct sessions: any.  The stage: the owner's; files and servers are the pool's.
 * Ownership: open/close.
 * Failure:   a request never fails only because of the store. */
#ifndef SHOAL_KNOWLEDGE_SESSIONS_H
#define SHOAL_KNOWLEDGE_SESSIONS_H

#include "base/buf.h"
#include "flow/flow.h"

struct sessions;

struct sessions_opts {
    const char *place;       /* as session_store.h; NULL: sqlite in the state folder */
    const char *key_file;    /* NULL: beside it */
    uint32_t ttl_s;          /* after the last turn */
    uint32_t history_tokens; /* estimated limit of the earlier messages of a request */
    const char *summary; /* model that condenses older ones into a note; NULL: they are dropped */
};

struct sessions_counts {
    uint64_t turns;    /* kept */
    uint64_t degraded; /* begun while the store was unavailable */
    uint32_t unsaved;  /* conversations waiting to be saved */
};

/* Files are created with the first conversation. */
SHOAL_MUST_CHECK int sessions_open(struct sessions **out, const struct sessions_opts *o,
                                   struct err *e);
void sessions_close(struct sessions *s);
void sessions_counts(struct sessions *s, struct sessions_counts *out);

/* For struct flow. STAGE_SESSION: a chat with request.remembered gets the earlier messages; its
 * answer (the first choice) becomes part of the conversation before `done` is passed on. */
struct dispatch *sessions_stage(struct sessions *s);

/* For the gateway's pool: the messages as JSON, appended; SHOAL_ENOTFOUND. */
SHOAL_MUST_CHECK int sessions_show(struct sessions *s, const char *tenant, const char *id,
                                   struct buf *out, struct err *e);
SHOAL_MUST_CHECK int sessions_forget(struct sessions *s, const char *tenant, const char *id,
                                     struct err *e);

#endif
