/* once_bucket.c - see once_bucket.h. */
#include "cluster/once/once_bucket.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/once/once_record.h"
#include "host/sha256.h"

#define MS_NS 1000000ull
#define WAIT_MS 5000u
#define HISTORY 1u
#define POLL_NS (100 * MS_NS)
#define GONE_MS 10000u
#define ALONE_NS (2000 * MS_NS) /* as long as a gateway needs to find another NATS server */
#define ASK_NS (500 * MS_NS)    /* between two questions for a gateway that is there */
#define ASK_MS 20u              /* who listens does not answer: this is waited for */
#define HEAR_NS (2000 * MS_NS)  /* between two tests whether this gateway hears itself */
#define LISTEN_BYTES 16u        /* of the name under which a gateway listens */
#define RENEWALS 5u             /* renewals of a record before it would expire */
#define AWAY_NS (1000 * MS_NS)
#define DENIED_NS (30000 * MS_NS)
#define KEEP_TRYING_NS (60000 * MS_NS) /* how long to retry writing an answer */
#define MIN_FADE_MS 120000u            /* how long NATS remembers message ids */
/* largest answer that is shared */
#define MAX_SHARED_BYTES (ONCE_RECORD_MAX_PARTS * ONCE_RECORD_PART_BYTES)
#define MAX_BUCKET_BYTES (64ll << 20) /* of all answers together */
#define MAX_RECORD_BYTES ((size_t)8 << 20)

/* A key that this gateway runs a call for. */
struct held {
    struct held *next;
    uint8_t key[SHA256_BYTES], body[SHA256_BYTES];
    uint64_t revision; /* the thread's, as the next one */
    bool retry;        /* the last attempt to write failed */
    uint64_t due_ns;
    uint64_t ended_ns;  /* 0: the call still runs */
    bool failed, large; /* with ended_ns; large: the answer cannot be shared */
    struct buf answer;  /* the answer */
    uint64_t run; /* run id of its parts; 0: none was written; the thread's, like the next one */
    uint32_t n_parts; /* parts already written */
};

struct once_bucket {
    struct once_ledger ledger; /* first */
    char name[ONCE_RECORD_MAX_OWNER + 1];
    uint32_t ttl_ms;
    uint64_t gone_ns;
    pthread_t thread;
    bool has_thread;
    bool away;          /* unavailable, and already logged; the thread's, like the next one */
    uint64_t silent_ns; /* until then new claims skip NATS */
    uint64_t hear_ns;   /* the next test whether it hears itself */
    char listens[6 + LISTEN_BYTES + 1]; /* the end of its subject */
    _Atomic uint64_t heard_ns;          /* itself, the last time; 0: never */

    pthread_mutex_t
        use; /* guards the next four; held during calls to a server; taken before `lock` */
    struct bucket *bucket; /* NULL: not connected */
    struct bus *bus;
    struct bus_sub *sub;
    bool there; /* the bucket was created */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct once_claim *claims;
    struct held *held;
    bool stop;
};

static struct once_bucket *bucket_of(struct once_ledger *g)
{
    return (struct once_bucket *)(void *)g; /* its first member */
}

static void note(struct once_bucket *b, int rc, const struct err *e)
{
    if (rc < 0) /* a server that denies access does not answer: avoid waiting twice */
        b->silent_ns = clock_ns() + (rc == SHOAL_EBUSY ? AWAY_NS : DENIED_NS);
    if ((rc < 0) == b->away)
        return;
    b->away = rc < 0;
    if (b->away)
        log_warn("idempotency",
                 "idempotency keys are currently not shared with the other gateways, a call "
                 "repeated there runs again: %s",
                 e->msg);
    else
        log_info("idempotency", "keys are shared with the other gateways");
}

/* ---- with the server; `use` is held ---- */

static int prepare(struct once_bucket *b, struct err *e)
{
    if (!b->bucket)
        return err_set(e, SHOAL_EBUSY, "this gateway has not joined its shoal");
    if (b->there)
        return 0;
    int rc = bucket_create(b->bucket, 0, HISTORY, e);
    b->there = rc == 0;
    return rc;
}

/* 0: written; 1: another gateway wrote first. */
static int write_record(struct once_bucket *b, const uint8_t *key, const struct once_record *r,
                        uint64_t expected, uint64_t *revision, struct err *e)
{
    char hex[2 * SHA256_BYTES + 1];
    struct buf out;
    sha256_hex(hex, key);
    buf_init(&out, MAX_RECORD_BYTES);
    once_record_put(&out, r);
    int rc = out.rc < 0 ? err_set(e, out.rc, "out of memory for an idempotency key") : 0;
    if (rc == 0)
        rc = bucket_put(b->bucket, hex, out.data, out.len, expected, NULL, revision, e);
    buf_fini(&out);
    return rc;
}

/* ---- answers in parts ---- */

#define PART_KEY_BYTES (2 * SHA256_BYTES + 40)

static void part_key(char out[PART_KEY_BYTES], const uint8_t *key, uint64_t run, uint32_t i)
{
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, key);
    snprintf(out, PART_KEY_BYTES, "%s-%llx-%x", hex, (unsigned long long)run, i);
}

/* Writes the missing parts. 0, or SHOAL_EBUSY: retry later; other failures: permanent. */
static int write_parts(struct once_bucket *b, struct held *h, struct err *e)
{
    int rc = 0;
    if (h->run == 0)
        h->run = h->revision; /* only this run of the call has had it */
    for (uint32_t i = h->n_parts; rc >= 0 && i < once_record_n_parts(h->answer.len); i++) {
        char name[PART_KEY_BYTES];
        size_t at = i * ONCE_RECORD_PART_BYTES, left = h->answer.len - at;
        uint64_t revision;
        part_key(name, h->key, h->run, i);
        /* 1: it exists, from a write whose answer was lost */
        rc = bucket_put(b->bucket, name, h->answer.data + at,
                        left < ONCE_RECORD_PART_BYTES ? left : ONCE_RECORD_PART_BYTES, 0, NULL,
                        &revision, e);
        h->n_parts += rc >= 0;
    }
    return rc < 0 ? rc : 0;
}

static bool sum_of(uint8_t out[SHA256_BYTES], const struct buf *b)
{
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, b->data, b->len);
    return sha256_end(&h, out);
}

/* Appends the answer. SHOAL_ENOTFOUND: a part has expired. */
static int read_parts(struct once_bucket *b, struct once_claim *c, const struct once_record *r,
                      struct err *e)
{
    struct once_record_parts p;
    uint8_t sum[SHA256_BYTES];
    uint64_t revision;
    int rc = once_record_read_parts(&p, r->answer, r->n_answer, e);
    for (uint32_t i = 0; rc == 0 && i < once_record_n_parts(p.bytes); i++) {
        char name[PART_KEY_BYTES];
        part_key(name, c->key, p.run, i);
        rc = bucket_get(b->bucket, name, &c->answer, &revision, e);
    }
    if (rc == 0 && (c->answer.len != p.bytes || !sum_of(sum, &c->answer) ||
                    memcmp(sum, p.sum, sizeof(sum)) != 0))
        rc = err_set(e, SHOAL_ENOTFOUND, "the answer to an idempotency key is not whole");
    if (rc < 0)
        buf_clear(&c->answer);
    return rc;
}

/* ---- who is there ---- */

#define LISTENS "alive."

static void on_heard(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct once_bucket *b = ctx;
    (void)subject;
    (void)bytes;
    (void)n;
    atomic_store_explicit(&b->heard_ns, clock_ns(), memory_order_relaxed);
}

/* Only who hears itself may be missed by others: a server that was not told of the permission
 * refuses the subscription and says nothing. */
static void test_hearing(struct once_bucket *b, uint64_t now)
{
    struct err e = {0};
    b->hear_ns = now + HEAR_NS;
    pthread_mutex_lock(&b->use);
    if (b->bus)
        (void)!bus_publish(b->bus, b->listens, "", 0, &e);
    pthread_mutex_unlock(&b->use);
}

static void say_running(const struct once_bucket *b, struct once_record *r)
{
    const uint64_t heard = atomic_load_explicit(&b->heard_ns, memory_order_relaxed);
    r->state = ONCE_RECORD_RUNNING;
    if (heard > 0 && clock_ns() - heard < 2 * HEAR_NS) {
        r->answer = (const uint8_t *)b->listens + strlen(LISTENS);
        r->n_answer = LISTEN_BYTES;
    }
}

/* Whether the gateway that runs the call has ended, as far as NATS knows. */
static bool is_lost(struct once_bucket *b, struct once_claim *c, const struct once_record *r,
                    uint64_t now)
{
    char tail[sizeof(b->listens)] = LISTENS, *name = tail + strlen(LISTENS);
    if (r->n_answer != LISTEN_BYTES || now < c->ask_ns)
        return false;
    memcpy(name, r->answer, LISTEN_BYTES);
    if (strspn(name, "0123456789abcdef") != LISTEN_BYTES)
        return false; /* not one of ours: its age decides */
    if (!bus_nobody_listens(b->bus, tail, ASK_MS)) {
        c->alone_ns = 0;
        c->ask_ns = now + ASK_NS;
    } else if (c->alone_ns == 0) {
        c->alone_ns = now;
    }
    return c->alone_ns > 0 && now - c->alone_ns >= ALONE_NS;
}

static int run_here(struct once_bucket *b, struct once_claim *c, uint64_t expected,
                    uint64_t *revision, struct err *e)
{
    struct once_record mine = {.state = ONCE_RECORD_FREE};
    say_running(b, &mine);
    memcpy(mine.body, c->body, sizeof(mine.body));
    memcpy(mine.owner, b->name, sizeof(mine.owner));
    return write_record(b, c->key, &mine, expected, revision, e);
}

/* Reads the record of the key, after another gateway wrote it. 0: the claim is decided. 1: poll
 * again later. *revision: of our own record, if it is ours now. */
static int look(struct once_bucket *b, struct once_claim *c, uint64_t *revision, struct err *e)
{
    char hex[2 * SHA256_BYTES + 1];
    struct once_record r = {.state = ONCE_RECORD_FREE};
    struct buf in;
    uint64_t at = 0, now = clock_ns();
    sha256_hex(hex, c->key);
    buf_init(&in, MAX_RECORD_BYTES);
    int rc = bucket_get(b->bucket, hex, &in, &at, e);
    if (rc == 0)
        rc = once_record_read(&r, (const uint8_t *)in.data, in.len, e);
    else if (rc == SHOAL_ENOTFOUND)
        rc = 0; /* forgotten meanwhile */
    bool over =
        r.state == ONCE_RECORD_DONE || r.state == ONCE_RECORD_LARGE || r.state == ONCE_RECORD_PARTS;
    if (over && r.until_ms <= clock_unix_ms())
        r.state = ONCE_RECORD_FREE;
    snprintf(c->where, sizeof(c->where), "%s", r.owner);
    if (rc < 0) { /* the earlier result still holds */
        buf_fini(&in);
        return rc;
    }
    if (at != c->seen) {
        c->seen = at;
        c->seen_ns = now;
        c->alone_ns = 0;
    }
    bool same = memcmp(r.body, c->body, sizeof(r.body)) == 0;
    bool gone =
        r.state == ONCE_RECORD_RUNNING && (now - c->seen_ns > b->gone_ns || is_lost(b, c, &r, now));
    if (r.state == ONCE_RECORD_FREE || gone) {
        rc = run_here(b, c, at, revision, e);
        c->how = ONCE_CLAIMED_MINE;
        if (rc == 0 && gone)
            log_warn("idempotency", "gateway %s is gone: running its call again here", c->where);
    } else if (!same) {
        c->how = ONCE_CLAIMED_OTHER;
    } else if (r.state == ONCE_RECORD_RUNNING) {
        rc = 1;
    } else if (r.state == ONCE_RECORD_PARTS) {
        rc = read_parts(b, c, &r, e);
        c->how = rc == SHOAL_ENOTFOUND ? ONCE_CLAIMED_LARGE : ONCE_CLAIMED_ANSWERED;
        rc = rc == SHOAL_ENOTFOUND ? 0 : rc;
    } else {
        c->how = r.state == ONCE_RECORD_DONE ? ONCE_CLAIMED_ANSWERED : ONCE_CLAIMED_LARGE;
        buf_put(&c->answer, r.answer, r.n_answer);
        rc = c->answer.rc < 0 ? err_set(e, c->answer.rc, "out of memory for an answer") : 0;
    }
    buf_fini(&in);
    return rc;
}

/* As look.  The first call with a key needs one message to the server. */
static int try_claim(struct once_bucket *b, struct once_claim *c, uint64_t *revision, struct err *e)
{
    int rc = prepare(b, e);
    if (rc == 0 && c->seen == 0) {
        rc = run_here(b, c, 0, revision, e);
        c->how = ONCE_CLAIMED_MINE;
        if (rc <= 0)
            return rc;
    }
    return rc < 0 ? rc : look(b, c, revision, e);
}

/* ---- the thread ---- */

/* The lock is held. */
static void hold(struct once_bucket *b, const struct once_claim *c, struct held *h,
                 uint64_t revision)
{
    memcpy(h->key, c->key, sizeof(h->key));
    memcpy(h->body, c->body, sizeof(h->body));
    h->revision = revision;
    h->due_ns = clock_ns() + b->gone_ns / RENEWALS;
    buf_init(&h->answer, MAX_SHARED_BYTES);
    h->next = b->held;
    b->held = h;
}

/* c is in no list.  The lock is not held. */
static void answer_claim(struct once_bucket *b, struct once_claim *c)
{
    struct err e = {0};
    uint64_t revision = 0;
    if (c->seen == 0 && clock_ns() < b->silent_ns) {
        c->how = ONCE_CLAIMED_UNSHARED;
        executor_post(c->executor, &c->done);
        return;
    }
    struct held *h = mem_zalloc(sizeof(*h));
    pthread_mutex_lock(&b->use);
    int rc = h ? try_claim(b, c, &revision, &e) : err_set(&e, SHOAL_ENOMEM, "out of memory");
    bool joined = b->bucket != NULL;
    b->there &= rc >= 0; /* NATS may have lost it */
    pthread_mutex_unlock(&b->use);
    note(b, rc, &e);
    pthread_mutex_lock(&b->lock);
    bool mine = rc == 0 && c->how == ONCE_CLAIMED_MINE;
    if (mine) {
        hold(b, c, h, revision);
        h = NULL;
    }
    /* another gateway runs it: an unavailable NATS does not change that */
    bool waits = !c->cancelled && !b->stop && (rc == 1 || (rc < 0 && c->seen > 0 && joined));
    if (waits) {
        c->due_ns = clock_ns() + POLL_NS;
        c->next = b->claims;
        b->claims = c;
    }
    pthread_mutex_unlock(&b->lock);
    mem_free(h);
    if (waits)
        return;
    if (rc != 0)
        c->how = ONCE_CLAIMED_UNSHARED;
    executor_post(c->executor, &c->done);
}

/* Fills the record of a finished call. `use` is held. */
static int describe_end(struct once_bucket *b, struct held *h, struct once_record *r,
                        struct buf *parts, struct err *e)
{
    struct once_record_parts p = {.bytes = h->answer.len};
    bool apart = !h->failed && !h->large && h->answer.len > ONCE_RECORD_PART_BYTES;
    int rc = apart ? write_parts(b, h, e) : 0;
    if (rc == SHOAL_EBUSY)
        return rc;
    h->large |= rc < 0 || (apart && !sum_of(p.sum, &h->answer)); /* it cannot be stored */
    p.run = h->run;
    once_record_put_parts(parts, &p);
    r->until_ms = clock_unix_ms() + b->ttl_ms;
    r->state = h->failed  ? ONCE_RECORD_FREE
               : h->large ? ONCE_RECORD_LARGE
               : apart    ? ONCE_RECORD_PARTS
                          : ONCE_RECORD_DONE;
    if (r->state == ONCE_RECORD_DONE) {
        r->answer = (const uint8_t *)h->answer.data;
        r->n_answer = h->answer.len;
    } else if (r->state == ONCE_RECORD_PARTS) {
        r->answer = (const uint8_t *)parts->data;
        r->n_answer = parts->len;
    }
    return 0;
}

/* Renews the record of a key; true: it is finished. The lock is not held; only this thread frees h,
 * and the fields set by complete and release do not change once `ended` is true. */
static bool renew(struct once_bucket *b, struct held *h, bool ended)
{
    struct once_record r = {.state = ONCE_RECORD_FREE};
    struct err e = {0};
    struct buf parts;
    if (!ended)
        say_running(b, &r);
    buf_init(&parts, 256);
    memcpy(r.body, h->body, sizeof(r.body));
    memcpy(r.owner, b->name, sizeof(r.owner));
    pthread_mutex_lock(&b->use);
    int rc = prepare(b, &e);
    if (rc == 0 && ended)
        rc = describe_end(b, h, &r, &parts, &e);
    if (rc == 0)
        rc = write_record(b, h->key, &r, h->revision, &h->revision, &e);
    b->there &= rc >= 0;
    pthread_mutex_unlock(&b->use);
    buf_fini(&parts);
    note(b, rc, &e);
    if (rc == 1) { /* no other gateway should: this one was silent for too long */
        log_warn("idempotency", "another gateway has taken over a call that runs here");
        return true;
    }
    h->retry = rc < 0;
    return ended && (rc == 0 || clock_ns() - h->ended_ns > KEEP_TRYING_NS);
}

static void held_free(struct held *h)
{
    buf_fini(&h->answer);
    mem_free(h);
}

/* Removes the due entries from its list; the lock is held. */
static struct once_claim *due_claim(struct once_bucket *b, uint64_t now, uint64_t *next_ns)
{
    for (struct once_claim **at = &b->claims; *at; at = &(*at)->next) {
        struct once_claim *c = *at;
        if (c->due_ns <= now || c->cancelled || b->stop) {
            *at = c->next;
            return c;
        }
        *next_ns = c->due_ns < *next_ns ? c->due_ns : *next_ns;
    }
    return NULL;
}

/* Stays in its list. */
static struct held *due_held(struct once_bucket *b, uint64_t now, uint64_t *next_ns)
{
    for (struct held *h = b->held; h; h = h->next) {
        if (h->due_ns <= now)
            return h;
        *next_ns = h->due_ns < *next_ns ? h->due_ns : *next_ns;
    }
    return NULL;
}

/* The lock is held, and released in between. */
static void run_held(struct once_bucket *b, struct held *h)
{
    bool ended = h->ended_ns > 0;
    h->due_ns = UINT64_MAX;
    pthread_mutex_unlock(&b->lock);
    bool over = renew(b, h, ended);
    pthread_mutex_lock(&b->lock);
    if (over) {
        struct held **at = &b->held;
        while (*at != h)
            at = &(*at)->next;
        *at = h->next;
        held_free(h);
    } else if (h->due_ns == UINT64_MAX) { /* otherwise it has ended meanwhile */
        h->due_ns = clock_ns() + (h->retry ? 5 * POLL_NS : b->gone_ns / RENEWALS);
    }
}

static void *run(void *arg)
{
    struct once_bucket *b = arg;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        uint64_t now = clock_ns(), next_ns = now + 60000 * MS_NS;
        struct once_claim *c = due_claim(b, now, &next_ns);
        struct held *h = c || b->stop ? NULL : due_held(b, now, &next_ns);
        next_ns = b->hear_ns < next_ns ? b->hear_ns : next_ns;
        if (now >= b->hear_ns && !b->stop) {
            pthread_mutex_unlock(&b->lock);
            test_hearing(b, now);
            pthread_mutex_lock(&b->lock);
        }
        if (c) {
            pthread_mutex_unlock(&b->lock);
            answer_claim(b, c);
            pthread_mutex_lock(&b->lock);
        } else if (h) {
            run_held(b, h);
        } else if (b->stop) {
            break;
        } else {
            struct timespec t = {(time_t)(next_ns / 1000000000u), (long)(next_ns % 1000000000u)};
            (void)pthread_cond_timedwait(&b->wake, &b->lock, &t);
        }
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- the ledger ---- */

static void claim(struct once_ledger *g, struct once_claim *c)
{
    struct once_bucket *b = bucket_of(g);
    c->due_ns = c->seen_ns = c->seen = c->ask_ns = c->alone_ns = 0;
    c->cancelled = false;
    buf_init(&c->answer, MAX_RECORD_BYTES);
    pthread_mutex_lock(&b->lock);
    c->next = b->claims;
    b->claims = c;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

static void cancel(struct once_ledger *g, struct once_claim *c)
{
    struct once_bucket *b = bucket_of(g);
    pthread_mutex_lock(&b->lock);
    c->cancelled = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

/* The call has ended: its record is written at once. */
static void end_held(struct once_bucket *b, const uint8_t *key, bool failed, const void *answer,
                     size_t n)
{
    pthread_mutex_lock(&b->lock);
    struct held *h = b->held;
    while (h && (h->ended_ns || memcmp(h->key, key, sizeof(h->key)) != 0))
        h = h->next;
    if (h) {
        h->failed = failed;
        h->large = n > MAX_SHARED_BYTES;
        if (!h->large)
            buf_put(&h->answer, answer, n);
        h->large |= h->answer.rc < 0;
        if (h->large)
            buf_clear(&h->answer);
        h->ended_ns = clock_ns();
        h->due_ns = 0;
        pthread_cond_signal(&b->wake);
    }
    pthread_mutex_unlock(&b->lock);
}

static void complete(struct once_ledger *g, const uint8_t *key, const void *answer, size_t n)
{
    end_held(bucket_of(g), key, false, answer, n);
}

static void release(struct once_ledger *g, const uint8_t *key)
{
    end_held(bucket_of(g), key, true, NULL, 0);
}

/* ---- lifetime ---- */

int once_bucket_create(struct once_bucket **out, const struct once_bucket_opts *o, struct err *e)
{
    static const struct once_ledger_ops ops = {claim, cancel, complete, release};
    struct once_bucket *b = mem_zalloc(sizeof(*b));
    *out = NULL;
    if (!b)
        return err_set(e, SHOAL_ENOMEM, "out of memory for idempotency keys");
    b->ledger.ops = &ops;
    b->ttl_ms = o->ttl_ms;
    b->gone_ns = (o->gone_ms ? o->gone_ms : GONE_MS) * MS_NS;
    snprintf(b->name, sizeof(b->name), "%s", o->name);
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) < 0)
        random = clock_ns();
    snprintf(b->listens, sizeof(b->listens), LISTENS "%016llx", (unsigned long long)random);
    pthread_mutex_init(&b->use, NULL);
    pthread_mutex_init(&b->lock, NULL);
    cond_init(&b->wake);
    int rc = thread_create(&b->thread, "once", run, b, e);
    b->has_thread = rc == 0;
    if (rc < 0) {
        once_bucket_destroy(b);
        return rc;
    }
    *out = b;
    return 0;
}

void once_bucket_destroy(struct once_bucket *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
    if (b->has_thread)
        pthread_join(b->thread, NULL);
    once_bucket_disconnect(b);
    for (struct held *h = b->held, *next; h; h = next) {
        next = h->next;
        held_free(h);
    }
    pthread_cond_destroy(&b->wake);
    pthread_mutex_destroy(&b->lock);
    pthread_mutex_destroy(&b->use);
    mem_free(b);
}

struct once_ledger *once_bucket_ledger(struct once_bucket *b)
{
    return &b->ledger;
}

int once_bucket_connect(struct once_bucket *b, struct bus *bus, struct err *e)
{
    struct bucket *k = NULL;
    int rc = bucket_open(&k, bus, "once", WAIT_MS, e);
    if (rc < 0)
        return rc;
    bucket_limit(k, b->ttl_ms > MIN_FADE_MS ? b->ttl_ms : MIN_FADE_MS, MAX_BUCKET_BYTES);
    struct bus_sub *sub = NULL;
    rc = bus_subscribe(bus, b->listens, on_heard, b, &sub, e);
    if (rc < 0) {
        bucket_close(k);
        return rc;
    }
    pthread_mutex_lock(&b->use);
    b->bucket = k;
    b->bus = bus;
    b->sub = sub;
    pthread_mutex_unlock(&b->use);
    return 0;
}

void once_bucket_disconnect(struct once_bucket *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->use);
    bucket_close(b->bucket);
    bus_unsubscribe(b->sub);
    b->bucket = NULL;
    b->bus = NULL;
    b->sub = NULL;
    b->there = false;
    pthread_mutex_unlock(&b->use);
}
