/* quota.h - how many tokens each client may use in a day (UTC), counted over prompts and answers.
 *
 * A client is known by its name and has one account, whatever keys it has.  It spends from a slice
 * of its limit.  Alone, a server has the whole limit as its slice.  When several servers share the
 * limits, a quota_source hands out slices: a server asks for the next one before the last is used
 * up, and when the source cannot be reached it continues with what it has.  A day begins with a
 * slice that the server takes before it has asked, so that clients need not wait.
 *
 * What is used today is kept in a file, written by a thread of its own at most once a second; a
 * crash loses no more than that.
 *
 * Thread:    any; one lock, held for a few instructions.  The thread writes and asks the source.
 * Ownership: accounts live as long as the quota.
 * Failure:   create: SHOAL_ENOMEM.  The file: SHOAL_EIO, SHOAL_EBUSY (another server uses it); one
 *            that is damaged is reported in the log and replaced. */
#ifndef SHOAL_HOST_QUOTA_H
#define SHOAL_HOST_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct quota;
struct quota_source;

/* Hands out slices to servers that share limits. */
struct quota_source_ops {
    /* Requests `want` more tokens of a client's limit on that day; *got: how many were granted, 0
     * to want. Blocks. Failure: the source is unreachable; nothing was taken, or it is lost. */
    int (*lease)(struct quota_source *s, const char *name, uint64_t day, uint64_t limit,
                 uint64_t want, uint64_t *got, struct err *e);
};

struct quota_source {
    const struct quota_source_ops *ops;
};

struct quota_opts {
    const char *file;      /* copied; NULL: `quota` in the cache folder */
    const char *cache_dir; /* as of engines: NULL: the default one; "": none, nothing is kept */
    struct quota_source *source;  /* borrowed; NULL: limits are not shared */
    uint64_t (*now_s)(void *ctx); /* seconds since 1970; NULL: the clock's */
    void *now_ctx;
};

enum quota_refusal {
    QUOTA_REFUSED_RATE,
    QUOTA_REFUSED_BUSY,
    QUOTA_REFUSED_TOKENS,
    QUOTA_N_REFUSED
};

struct quota_account {
    char name[64];
    /* Counted since the start, also without a limit. */
    _Atomic uint64_t prompt_tokens, generated_tokens, refused[QUOTA_N_REFUSED];
    /* private, under the lock */
    struct quota_account *next;
    bool listed;    /* belongs to a key of the configuration */
    bool asked;     /* the source granted less than requested: nothing is left today */
    uint64_t limit; /* tokens a day; 0: none */
    uint64_t day;
    uint64_t used, granted; /* on that day */
    uint64_t owed;          /* part of `granted` taken before asking the source */
};

struct quota_figures {
    const char *name;
    uint64_t prompt_tokens, generated_tokens, refused[QUOTA_N_REFUSED];
    uint64_t used, limit; /* today */
};

SHOAL_MUST_CHECK int quota_create(struct quota **out, const struct quota_opts *o, struct err *e);
void quota_destroy(struct quota *q); /* writes the file; NULL is fine */

/* The account of a client, listed from now on; limit 0: none.  With the first limit the file is
 * read.  SHOAL_ELIMIT: too many names. */
SHOAL_MUST_CHECK int quota_open_account(struct quota *q, const char *name, uint64_t limit,
                                        struct quota_account **out, struct err *e);
/* Unlists all accounts: before the keys of a new configuration. */
void quota_unlist_all(struct quota *q);

/* Whether the client has tokens left today. *retry_s: otherwise, the time until tomorrow, or until
 * the source may grant more. */
bool quota_has_left(struct quota *q, struct quota_account *a, uint32_t *retry_s);
void quota_spend(struct quota *q, struct quota_account *a, uint64_t prompt, uint64_t generated);
/* Of all listed accounts.  fn must not call this module. */
void quota_each(struct quota *q, void (*fn)(void *ctx, const struct quota_figures *f), void *ctx);

#endif
