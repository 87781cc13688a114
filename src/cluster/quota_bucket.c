/* quota_bucket.c - see quota_bucket.h. */
#include "cluster/quota_bucket.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/control/bucket.h"
#include "host/quota.h"
#include "host/sha256.h"

#define WAIT_MS 2000u
#define HISTORY 1u
#define MAX_TRIES 16 /* others write the same client at the same time */
#define MAX_VALUE_BYTES 64u

struct quota_bucket {
    struct quota_source source; /* first */
    pthread_mutex_t lock;       /* guards everything below; held during calls to a server */
    struct bucket *bucket;      /* NULL: not connected */
    bool there;                 /* the bucket was created */
    bool away;                  /* unreachable, and that was logged */
};

/* The tokens handed out: "DAY TOKENS". */
static int read_value(const struct buf *b, uint64_t *day, uint64_t *sold, struct err *e)
{
    char text[MAX_VALUE_BYTES + 1] = "";
    int end = 0;
    if (b->len > 0 && b->len <= MAX_VALUE_BYTES)
        memcpy(text, b->data, b->len);
    if (sscanf(text, "%" SCNu64 " %" SCNu64 "%n", day, sold, &end) != 2 || text[end] != '\0')
        return err_set(e, SHOAL_EFORMAT, "the bucket of token limits holds something else");
    return 0;
}

/* One attempt; 1: another gateway wrote in the meantime. */
static int take(struct quota_bucket *q, const char *key, uint64_t day, uint64_t limit,
                uint64_t want, uint64_t *got, struct err *e)
{
    struct buf b;
    char text[MAX_VALUE_BYTES];
    uint64_t revision = 0, kept_day = day, sold = 0;
    buf_init(&b, 4096);
    int rc = bucket_get(q->bucket, key, &b, &revision, e);
    if (rc == 0)
        rc = read_value(&b, &kept_day, &sold, e);
    else if (rc == SHOAL_ENOTFOUND)
        rc = 0;
    buf_fini(&b);
    *got = 0;
    if (rc < 0 || kept_day > day) /* this member's clock is behind: it is already tomorrow */
        return rc;
    if (kept_day < day)
        sold = 0;
    *got = sold >= limit ? 0 : want < limit - sold ? want : limit - sold;
    if (*got == 0)
        return 0;
    int n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, day, sold + *got);
    return bucket_put(q->bucket, key, text, (size_t)n, revision, NULL, &revision, e);
}

static void note(struct quota_bucket *q, int rc, const struct err *e)
{
    if ((rc < 0) == q->away)
        return;
    q->away = rc < 0;
    if (q->away)
        log_warn("quota",
                 "token quotas are currently not shared, clients are limited to this gateway's "
                 "slice: %s",
                 e->msg);
    else
        log_info("quota", "token quotas are shared with the other gateways");
}

static int lease(struct quota_source *s, const char *name, uint64_t day, uint64_t limit,
                 uint64_t want, uint64_t *got, struct err *e)
{
    struct quota_bucket *q = (struct quota_bucket *)(void *)s;
    uint8_t sum[SHA256_BYTES];
    char key[2 * SHA256_BYTES + 1];
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, name, strlen(name));
    if (!sha256_end(&h, sum))
        return err_set(e, SHOAL_ENOMEM, "token limits");
    sha256_hex(key, sum); /* a name may contain characters that a subject may not */
    pthread_mutex_lock(&q->lock);
    int rc = q->bucket ? 0 : err_set(e, SHOAL_EBUSY, "this gateway has not joined its shoal yet");
    if (rc == 0 && !q->there && (rc = bucket_create(q->bucket, 0, HISTORY, e)) == 0)
        q->there = true;
    if (rc == 0)
        rc = 1;
    for (int i = 0; i < MAX_TRIES && rc == 1; i++)
        rc = take(q, key, day, limit, want, got, e);
    if (rc == 1)
        rc = err_set(e, SHOAL_EBUSY, "too many gateways ask at the same time");
    q->there &= rc >= 0; /* NATS may have lost it */
    note(q, rc, e);
    pthread_mutex_unlock(&q->lock);
    return rc;
}

int quota_bucket_create(struct quota_bucket **out, struct err *e)
{
    static const struct quota_source_ops ops = {lease};
    struct quota_bucket *q = *out = mem_zalloc(sizeof(*q));
    if (!q)
        return err_set(e, SHOAL_ENOMEM, "token limits");
    q->source.ops = &ops;
    pthread_mutex_init(&q->lock, NULL);
    return 0;
}

void quota_bucket_destroy(struct quota_bucket *q)
{
    if (!q)
        return;
    quota_bucket_disconnect(q);
    pthread_mutex_destroy(&q->lock);
    mem_free(q);
}

struct quota_source *quota_bucket_source(struct quota_bucket *q)
{
    return &q->source;
}

int quota_bucket_connect(struct quota_bucket *q, struct bus *b, struct err *e)
{
    struct bucket *k = NULL;
    int rc = bucket_open(&k, b, "quota", WAIT_MS, e);
    pthread_mutex_lock(&q->lock);
    q->bucket = k;
    pthread_mutex_unlock(&q->lock);
    return rc;
}

void quota_bucket_disconnect(struct quota_bucket *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    bucket_close(q->bucket);
    q->bucket = NULL;
    q->there = false;
    pthread_mutex_unlock(&q->lock);
}
