/* response_store.h - stored answers of /v1/responses, which clients can read again or continue
 * from.
 *
 * Entries are found by their id and by the client that made them.  They are kept for a time and
 * within a number of bytes; beyond it the oldest of the client that holds most are forgotten.  With
 * a file they survive a restart: a thread of the store replaces it, at most once a second.
 *
 * A response that is still being made in the background is an entry too, beside a run that can be
 * cancelled.
 *
 * Thread:    any; one lock inside.
 * Ownership: put copies; get gives the caller a reference that unref takes back.  What an entry
 *            points to does not change and lives as long as the reference.
 * Failure:   an entry that does not fit is not kept. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_STORE_H
#define SHOAL_GATEWAY_API_RESPONSE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread/executor.h"
#include "gateway/api/openai/response_entry.h"

struct buf;
struct response_store;

struct response_run { /* the work on such an entry; the owner's, from add to remove */
    char id[RESPONSE_STORE_ID_BYTES], owner[RESPONSE_STORE_ID_BYTES];
    struct executor *executor;   /* where `cancel` runs */
    struct executor_task cancel; /* posted once */
    bool posted;                 /* with the store's lock */
    struct response_run *next;
};

SHOAL_MUST_CHECK int response_store_create(struct response_store **out, size_t max_bytes,
                                           uint32_t ttl_ms, struct err *e);
void response_store_destroy(struct response_store *s); /* NULL is fine */
/* Reads what the file holds, and keeps it up to date from now on.  A file that does not exist yet
 * is made; damaged lines are left out, with a warning. */
SHOAL_MUST_CHECK int response_store_use_file(struct response_store *s, const char *path,
                                             uint64_t now_ns, struct err *e);
/* Replaces an entry with the same id and owner.  False: it is not kept. */
bool response_store_put(struct response_store *s, const struct response_entry *e, uint64_t now_ns);
/* NULL: none. */
const struct response_entry *response_store_get(struct response_store *s, const char *id,
                                                const char *owner, uint64_t now_ns);
void response_store_unref(struct response_store *s, const struct response_entry *e);
/* False: none. */
bool response_store_delete(struct response_store *s, const char *id, const char *owner,
                           uint64_t now_ns);
/* Between them no other thread changes an entry that is read and then put again. */
void response_store_lock_edits(struct response_store *s);
void response_store_unlock_edits(struct response_store *s);
void response_store_add_run(struct response_store *s, struct response_run *r);
/* True: `cancel` was posted and will still run, so r must live until then. */
bool response_store_remove_run(struct response_store *s, struct response_run *r);
/* Posts `cancel` of that run; false: there is none. */
bool response_store_cancel(struct response_store *s, const char *id, const char *owner);
/* How many there are, and their bytes. */
void response_store_count(struct response_store *s, uint32_t *n, size_t *bytes);

#endif
