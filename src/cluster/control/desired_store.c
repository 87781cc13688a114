/* desired_store.c - see desired_store.h. */
#include "cluster/control/desired_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread/cond.h"
#include "base/thread/executor.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/desired_file.h"
#include "cluster/control/lease.h"
#include "cluster/control/roll_call.h"
#include "cluster/control/roll_code.h"

#define KEY "state"
#define NOTICE "desired" /* the subject's tail; empty: it has changed, else a roll call */
#define SPARE "copy"     /* copies of members that may not write the state */
#define MS 1000000u
#define DOUBT_NS (10000 * (uint64_t)MS) /* a server that woke has heard from the others by then */
#define AGAIN_NS (500 * (uint64_t)MS)   /* between two looks because others know more */
#define CALL_NS (300 * (uint64_t)MS)    /* between two calls of the roll */
#define MAX_HEARD (UINT64_C(1) << 62)   /* more is nonsense, or malice */
enum {
    DEFAULT_WAIT_MS = 2000,
    DEFAULT_POLL_MS = 5000,
    DEFAULT_RETRY_MS = 15000,
    HISTORY = 16,
    MAX_BACKOFF_MS = 400,
};

struct desired_store {
    struct bus *bus;
    struct bucket *bucket;
    struct executor *x;
    desired_change_fn on_change;
    void *ctx;
    char name[ROLL_CALL_NAME];
    char *file;
    bool answers;
    void (*on_call)(void *ctx, uint64_t number);
    uint32_t poll_ms, retry_ms;
    unsigned replicas;
    void (*listen)(void *ctx);
    void *listen_ctx;
    struct desired *current; /* owner's */
    struct bus_sub *notices, *spares;
    pthread_t thread;
    bool threaded;

    /* the thread's */
    uint8_t id[DESIRED_ID_BYTES];
    bool known; /* a state with this id is in force */
    bool blank; /* nothing depends on it yet: see take */
    uint64_t version, fence, last_revision;
    uint64_t doubt_revision, doubt_ns; /* see is_doubtful; since when */
    uint64_t n_connects;               /* of the bus, when it was looked at */
    struct err refusal; /* error of the value at last_revision; code 0: it was accepted */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct desired *next; /* for the owner */
    /* The newest state that this member has, encoded; len 0: none.  In force, or sent by another
     * one when NATS had lost it. */
    struct buf copy;
    struct roll_call_mark copy_mark;
    /* A copy of a member that may not write the state: used if nobody else has one. */
    struct desired *spare;
    struct roll_call roll;
    uint64_t called_ns; /* when the roll was last called */
    struct desired_store_status status;
    uint64_t seen_ns;                    /* NATS last confirmed the state */
    uint64_t heard_version, heard_fence; /* the highest that others know, or NATS had */
    uint64_t behind_ns;                  /* when it last looked because others know more */
    uint64_t controller_ns;              /* when a controller was last heard; 0: never */
    struct executor_task task;
    bool posted, notice, stop;
};

static uint32_t random_below(uint32_t n)
{
    uint32_t r = 0;
    if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
        r = (uint32_t)clock_ns();
    return n ? r % n : 0;
}

static void sleep_ms(uint32_t ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* ---- reading and changing ------------------------------------------------------------------- */

/* SHOAL_ENOTFOUND: none yet; revision is then the one that a first write must expect. */
static int load(struct desired_store *s, struct desired **out, uint64_t *revision, struct err *e)
{
    struct buf b;
    *out = NULL;
    buf_init(&b, DESIRED_CODE_MAX_BYTES);
    int rc = bucket_get(s->bucket, KEY, &b, revision, e);
    if (rc == 0) {
        rc = desired_code_get(out, buf_str(&b), b.len, e);
        if (rc < 0)
            err_wrap(e, "revision %llu in NATS is refused", (unsigned long long)*revision);
        else
            (*out)->revision = *revision;
    }
    buf_fini(&b);
    return rc;
}

int desired_store_load(struct desired_store *s, struct desired **out, struct err *unsure,
                       struct err *e)
{
    const uint64_t until = clock_ns() + (uint64_t)s->retry_ms * MS;
    uint32_t backoff = 4;
    uint64_t revision;
    for (;;) {
        int rc = load(s, out, &revision, e);
        const bool late = clock_ns() >= until;
        if ((rc < 0 && (rc != SHOAL_EBUSY || late)) || (rc == 0 && !unsure))
            return rc;
        if (rc == 0) {
            *unsure = (struct err){0};
            if (bucket_confirm(s->bucket, revision, unsure) <= 0)
                return 0;
            if (late) {
                err_set(unsure, SHOAL_EBUSY, "it changed faster than it could be read");
                return 0;
            }
        }
        desired_destroy(*out);
        sleep_ms(1 + random_below(backoff));
        backoff = backoff * 2 > MAX_BACKOFF_MS ? MAX_BACKOFF_MS : backoff * 2;
    }
}

static void write_id(char out[40])
{
    uint32_t r[4];
    for (int i = 0; i < 4; i++)
        r[i] = random_below(UINT32_MAX);
    snprintf(out, 40, "%08x%08x%08x%08x", r[0], r[1], r[2], r[3]);
}

/* Writes d, and repeats the write while its outcome is unknown. 1: another writer was first. */
static int put(struct desired_store *s, struct desired *d, uint64_t expected, uint64_t until_ns,
               struct err *e)
{
    struct buf b;
    char id[40];
    int rc;
    buf_init(&b, DESIRED_CODE_MAX_BYTES);
    write_id(id);
    rc = desired_code_put(&b, d, e);
    if (rc == 0)
        while ((rc = bucket_put(s->bucket, KEY, b.data, b.len, expected, id, &d->revision, e)) ==
                   SHOAL_EBUSY &&
               clock_ns() < until_ns)
            sleep_ms(20 + random_below(100));
    buf_fini(&b);
    return rc;
}

static void raise_to(uint64_t *to, uint64_t value)
{
    if (value > *to && value <= MAX_HEARD)
        *to = value;
}

void desired_store_heard(struct desired_store *s, const struct desired_heard *h)
{
    pthread_mutex_lock(&s->lock);
    raise_to(&s->heard_version, h->version);
    raise_to(&s->heard_fence, h->fence);
    raise_to(&s->heard_fence, h->writer);
    raise_to(&s->heard_fence, h->known_fence);
    if (h->name && h->version <= MAX_HEARD && h->writer <= MAX_HEARD)
        roll_call_heard(&s->roll, h->name, (struct roll_call_mark){h->version, h->writer},
                        h->roll_call, clock_ns());
    if (s->heard_version > s->status.version && clock_ns() - s->behind_ns >= AGAIN_NS) {
        s->behind_ns = clock_ns(); /* the notice of that change was lost */
        s->notice = true;
        pthread_cond_signal(&s->wake);
    }
    if (h->fence)
        s->controller_ns = clock_ns();
    pthread_mutex_unlock(&s->lock);
}

static uint64_t known_fence(const struct desired_store *s)
{
    return s->heard_fence > s->status.fence ? s->heard_fence : s->status.fence;
}

void desired_store_known(void *store, struct lease_known *out)
{
    struct desired_store *s = store;
    pthread_mutex_lock(&s->lock);
    out->fence = known_fence(s);
    out->heard_ago_ns = s->controller_ns ? clock_ns() - s->controller_ns + 1 : 0;
    pthread_mutex_unlock(&s->lock);
}

static struct roll_call_mark mark_of(const struct desired *d)
{
    return d ? (struct roll_call_mark){d->version, d->fence} : (struct roll_call_mark){0, 0};
}

/* The newest version that anybody knows; 0: none.  out: the newest copy that this member has, or
 * NULL. */
static uint64_t find_copy(struct desired_store *s, struct desired **out)
{
    struct desired *kept = NULL; /* the disk may have been full, or another one has sent it */
    if (!s->file || desired_file_read(out, s->file, NULL) < 0)
        *out = NULL;
    pthread_mutex_lock(&s->lock);
    uint64_t newest = s->heard_version > s->status.version ? s->heard_version : s->status.version;
    if (s->copy.len > 0 && roll_call_newer(s->copy_mark, mark_of(*out)) &&
        desired_code_get(&kept, buf_str(&s->copy), s->copy.len, NULL) == 0) {
        desired_destroy(*out);
        *out = kept;
    }
    pthread_mutex_unlock(&s->lock);
    if (*out && (*out)->version > newest)
        newest = (*out)->version;
    return newest;
}

/* Asks the members what they know. */
static void call_roll(struct desired_store *s, uint64_t number, struct roll_call_mark have)
{
    struct buf b;
    buf_init(&b, 128);
    if (roll_code_put_call(&b, number, have) == 0)
        (void)!bus_publish(s->bus, NOTICE, b.data, b.len, NULL);
    buf_fini(&b);
}

/* NATS has lost the state, and this member is to write it back: whether it has heard enough. It
 * calls the roll until it has. */
static int hear_members(struct desired_store *s, const struct desired *copy, uint64_t fence,
                        struct err *e)
{
    const uint64_t now = clock_ns();
    const struct roll_call_mark have = mark_of(copy);
    uint64_t number = 0;
    (void)!getrandom(&number, sizeof(number), 0);
    pthread_mutex_lock(&s->lock);
    roll_call_begin(&s->roll, number | 1, now);
    for (uint32_t i = 0; copy && i < copy->n_assignments; i++)
        roll_call_name(&s->roll, copy->assignments[i].node);
    const bool complete = roll_call_is_complete(&s->roll, s->name, have, now);
    const bool call = now - s->called_ns >= CALL_NS;
    const uint64_t known = known_fence(s);
    number = s->roll.number;
    s->called_ns = call ? now : s->called_ns;
    pthread_mutex_unlock(&s->lock);
    if (call)
        call_roll(s, number, have);
    if (known > fence)
        return err_set(e, SHOAL_ECHANGED, "members know fence %llu, this controller has %llu",
                       (unsigned long long)known, (unsigned long long)fence);
    if (!complete)
        return err_set(e, SHOAL_ENOTFOUND,
                       "NATS has no desired state: waiting for what members know of it");
    return 0;
}

/* All who may write the state have lost it; they were waited for. */
static struct desired *take_spare(struct desired_store *s)
{
    pthread_mutex_lock(&s->lock);
    struct desired *d = s->spare;
    s->spare = NULL;
    pthread_mutex_unlock(&s->lock);
    return d;
}

/* The initial state when NATS has none: the newest that a member has, as the version after the last
 * one that anybody knows, or an empty one. */
static int begin(struct desired_store *s, uint64_t fence, struct desired **out, struct err *e)
{
    struct desired *copy;
    unsigned long long newest = find_copy(s, &copy);
    int rc = 0;
    if (newest == 0 && fence == 0 && s->listen) {
        s->listen(s->listen_ctx);
        newest = find_copy(s, &copy);
    }
    if (newest > 0 && fence == 0)
        rc = err_set(e, SHOAL_EBUSY,
                     "NATS has lost the desired state, of which members know version %llu: "
                     "nothing can be changed until the controller has written it back",
                     newest);
    else if (fence > 0) /* also before an empty one: somebody may know of another */
        rc = hear_members(s, copy, fence, e);
    if (rc == 0 && newest > 0 && !copy)
        copy = take_spare(s);
    if (rc == 0 && newest > 0 && !copy)
        rc = err_set(e, SHOAL_ENOTFOUND,
                     "NATS has lost the desired state, and no member that can be reached has a "
                     "copy of version %llu",
                     newest);
    if (rc == 0)
        rc = bucket_create(s->bucket, s->replicas, HISTORY, e);
    if (rc < 0) {
        desired_destroy(copy);
        return rc;
    }
    if (!copy)
        return desired_create(out, e);
    log_warn("control", "NATS has lost the desired state: restoring version %llu as %llu",
             (unsigned long long)copy->version, newest + 1);
    copy->version = newest;
    copy->fence = 0;
    *out = copy;
    return 0;
}

/* Nobody has deployed or drained anything, or no controller has carried it out yet. */
static bool is_blank(const struct desired *d)
{
    return d->fence == 0 || (d->n_models == 0 && d->n_rollouts == 0 && d->drained.n == 0);
}

/* NATS lost the state while nobody who knew it could be heard, and an administrator began another
 * one.  A controller that knows the lost one writes it back, with what was asked for meanwhile:
 * otherwise those who know it and those who do not would never follow the same state again.  rc and
 * *d as from load; what another controller has carried out stays as it is. */
static int unite(struct desired_store *s, uint64_t fence, struct desired **d, struct err *e)
{
    struct desired *copy = NULL, *began = *d;
    uint64_t newest = fence > 0 && began->fence == 0 ? find_copy(s, &copy) : 0;
    const bool other =
        copy && !is_blank(copy) && memcmp(copy->id, began->id, sizeof(copy->id)) != 0;
    int rc = other ? hear_members(s, copy, fence, e) : 0;
    if (other && rc == 0 && desired_add_all(copy, began) < 0)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the desired state");
    if (other && rc == 0) {
        newest = began->version > newest ? began->version : newest;
        log_warn("control",
                 "NATS had lost the desired state, and another one was begun: restoring version "
                 "%llu as %llu, with what was changed since",
                 (unsigned long long)copy->version, (unsigned long long)newest + 1);
        copy->version = newest;
        copy->fence = 0;
        *d = copy;
        copy = began;
    }
    desired_destroy(copy);
    return other && rc == 0 ? 1 : rc;
}

/* What NATS has, which may be lost before the next attempt. */
static void note_stored(struct desired_store *s, const struct desired *d)
{
    const struct desired_heard h = {.version = d->version, .writer = d->fence};
    desired_store_heard(s, &h);
    pthread_mutex_lock(&s->lock);
    roll_call_end(&s->roll);
    pthread_mutex_unlock(&s->lock);
}

/* One attempt.  1: another writer was first. */
static int attempt(struct desired_store *s, uint64_t fence, desired_update_fn fn, void *ctx,
                   uint64_t until_ns, struct desired **out, struct err *e)
{
    struct desired *d = NULL;
    uint64_t revision;
    int rc = load(s, &d, &revision, e);
    if (rc == SHOAL_ENOTFOUND)
        rc = begin(s, fence, &d, e);
    else if (rc == 0 && (rc = unite(s, fence, &d, e)) == 0)
        note_stored(s, d);
    if (rc < 0) {
        desired_destroy(d);
        return rc;
    }
    if (fence && d->fence > fence)
        rc = err_set(e, SHOAL_ECHANGED,
                     "a newer controller (fence %llu) has written the desired state; this one "
                     "(fence %llu) must not",
                     (unsigned long long)d->fence, (unsigned long long)fence);
    else if ((rc = fn(ctx, d, e)) == 0) {
        pthread_mutex_lock(&s->lock);
        if (fence) /* members may know more of a state that gave way to this one: see take */
            raise_to(&d->version, s->heard_version);
        pthread_mutex_unlock(&s->lock);
        d->version++;
        if (fence)
            d->fence = fence;
        rc = put(s, d, revision, until_ns, e);
    } else if (rc == 1) {
        rc = 0;
    }
    if (rc == 0 && out) {
        *out = d;
        d = NULL;
    }
    desired_destroy(d);
    return rc;
}

int desired_store_update(struct desired_store *s, uint64_t fence, desired_update_fn fn, void *ctx,
                         struct desired **out, struct err *e)
{
    uint64_t until = clock_ns() + (uint64_t)s->retry_ms * MS;
    uint32_t backoff = 4;
    int rc;
    if (out)
        *out = NULL;
    while ((rc = attempt(s, fence, fn, ctx, until, out, e)) == 1 || rc == SHOAL_EBUSY) {
        if (clock_ns() >= until)
            return rc == 1 ? err_set(e, SHOAL_EBUSY,
                                     "the desired state changed faster than it could be written: "
                                     "try again")
                           : rc;
        sleep_ms(1 + random_below(backoff));
        backoff = backoff * 2 > MAX_BACKOFF_MS ? MAX_BACKOFF_MS : backoff * 2;
    }
    if (rc < 0)
        return rc;
    /* Members that miss it find the change with their next poll. */
    (void)!bus_publish(s->bus, NOTICE, "", 0, NULL);
    return 0;
}

static int change_nothing(void *ctx, struct desired *d, struct err *e)
{
    (void)ctx;
    (void)d;
    (void)e;
    return 0;
}

int desired_store_claim(void *store, uint64_t fence, struct err *e)
{
    struct desired_store *s = store;
    pthread_mutex_lock(&s->lock);
    raise_to(&s->heard_fence, fence); /* NATS may lose it before anybody else has heard of it */
    pthread_mutex_unlock(&s->lock);
    return desired_store_update(store, fence, change_nothing, NULL, NULL, e);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void hand_over(struct desired_store *s, struct desired *d, enum desired_origin origin)
{
    struct desired *old;
    memcpy(s->id, d->id, sizeof(s->id));
    s->known = true;
    s->blank = is_blank(d);
    s->version = d->version;
    s->fence = d->fence;
    pthread_mutex_lock(&s->lock);
    s->status.origin = origin;
    s->status.revision = d->revision;
    s->status.version = d->version;
    s->status.fence = d->fence;
    s->status.n_changes++;
    old = s->next;
    s->next = d;
    if (!s->posted && !s->stop) {
        s->posted = true;
        executor_post(s->x, &s->task);
    }
    pthread_mutex_unlock(&s->lock);
    desired_destroy(old);
}

/* For when NATS loses its data.  Without memory for it, the file is what there is. */
static void keep_copy(struct desired_store *s, const struct desired *d)
{
    struct buf b;
    buf_init(&b, DESIRED_CODE_MAX_BYTES);
    if (desired_code_put(&b, d, NULL) < 0) {
        buf_fini(&b);
        return;
    }
    pthread_mutex_lock(&s->lock);
    buf_fini(&s->copy);
    s->copy = b;
    s->copy_mark = mark_of(d);
    pthread_mutex_unlock(&s->lock);
}

/* Takes the value in NATS, unless it is not newer than the state in force.  Of one version there
 * may be two when NATS lost its data, a controller restored them, and NATS lost them again: that of
 * the later controller counts.  A state that nothing depends on yet gives way to any: an
 * administrator who knows nothing of it may begin another when NATS has lost it. */
static int take(struct desired_store *s, uint64_t *read, struct err *e)
{
    struct desired *d = NULL;
    uint64_t revision;
    int rc = load(s, &d, &revision, e);
    *read = revision;
    if (rc < 0)
        return rc;
    const bool other = s->known && memcmp(d->id, s->id, sizeof(s->id)) != 0;
    if (other && !s->blank) {
        rc = err_set(e, SHOAL_ECHANGED,
                     "NATS has the desired state of another cluster; this member keeps its own. To "
                     "follow the new one, stop the member and remove %s",
                     s->file ? s->file : "its snapshot");
    } else if (s->known && !other && d->version < s->version) {
        rc = err_set(e, SHOAL_ECHANGED,
                     "NATS has version %llu of the desired state, this member has %llu: it keeps "
                     "the newer one",
                     (unsigned long long)d->version, (unsigned long long)s->version);
    } else if (s->known && !other && d->version == s->version && d->fence <= s->fence) {
        pthread_mutex_lock(&s->lock);
        s->status.origin = DESIRED_FROM_NATS;
        s->status.revision = revision;
        pthread_mutex_unlock(&s->lock);
    } else {
        struct err file = {0};
        if (s->file && desired_file_write(s->file, d, &file) < 0)
            log_warn("control", "snapshot not written: %s", file.msg);
        keep_copy(s, d);
        hand_over(s, d, DESIRED_FROM_NATS);
        d = NULL;
    }
    desired_destroy(d);
    return rc;
}

/* What was read is older than the bucket's last write.  That may have been one of another key, or a
 * server has answered that stood still and does not know it yet: so it is read again, until that
 * cannot be the reason any more. */
static bool is_doubtful(struct desired_store *s, uint64_t last, uint64_t read, uint64_t now_ns)
{
    if (read >= last)
        return false;
    if (s->doubt_revision != last)
        s->doubt_ns = now_ns;
    s->doubt_revision = last;
    return now_ns - s->doubt_ns < DOUBT_NS;
}

static bool is_behind(struct desired_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool behind = s->heard_version > s->status.version;
    pthread_mutex_unlock(&s->lock);
    return behind;
}

static void look(struct desired_store *s)
{
    const uint64_t began = clock_ns();
    struct err e = {0};
    struct bus_status bus;
    uint64_t last = 0, read = 0;
    bool refused = false;
    bus_get_status(s->bus, &bus);
    if (bus.n_connects != s->n_connects) /* another server may count its revisions from 1 */
        s->last_revision = 0;
    s->n_connects = bus.n_connects;
    int rc = bucket_last(s->bucket, &last, &e);
    if (rc == SHOAL_ENOTFOUND)
        s->last_revision = 0;
    if (rc == 0 && (last != s->last_revision || is_behind(s))) {
        rc = take(s, &read, &e);
        refused = rc == SHOAL_EFORMAT || rc == SHOAL_ECHANGED;
        if (rc == 0 || refused) {
            /* not looked at again until it changes */
            s->last_revision = is_doubtful(s, last, read, began) ? 0 : last;
            s->refusal = refused ? e : (struct err){0};
        }
    } else if (rc == 0 && s->refusal.code) {
        rc = s->refusal.code;
        e = s->refusal;
    }
    pthread_mutex_lock(&s->lock);
    struct desired_store_status *t = &s->status;
    bool first = rc < 0 && strcmp(t->error, e.msg) != 0;
    t->n_refused += refused;
    snprintf(t->error, sizeof(t->error), "%s", rc < 0 ? e.msg : "");
    if (rc == 0)
        s->seen_ns = began; /* what was written since may be missing */
    pthread_mutex_unlock(&s->lock);
    if (refused)
        log_error("control", "desired state refused: %s", e.msg);
    else if (first && rc != SHOAL_ENOTFOUND)
        log_warn("control", "desired state: %s", e.msg);
}

static void *run(void *arg)
{
    struct desired_store *s = arg;
    for (;;) {
        look(s);
        uint64_t wait = (uint64_t)s->poll_ms + random_below(s->poll_ms / 2 + 1);
        uint64_t until = clock_ns() + wait * MS;
        struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        int rc = 0;
        pthread_mutex_lock(&s->lock);
        while (!s->stop && !s->notice && rc == 0)
            rc = pthread_cond_timedwait(&s->wake, &s->lock, &at);
        s->notice = false;
        bool stop = s->stop;
        pthread_mutex_unlock(&s->lock);
        if (stop)
            return NULL;
    }
}

/* ---- the owner ------------------------------------------------------------------------------ */

static void free_store(struct desired_store *s)
{
    bucket_close(s->bucket);
    desired_destroy(s->current);
    desired_destroy(s->next);
    desired_destroy(s->spare);
    buf_fini(&s->copy);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->file);
    mem_free(s);
}

static void run_task(struct executor_task *t)
{
    struct desired_store *s = EXECUTOR_OF(t, struct desired_store, task);
    pthread_mutex_lock(&s->lock);
    struct desired *d = s->next;
    s->next = NULL;
    s->posted = false;
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    if (stop) {
        desired_destroy(d);
        free_store(s);
        return;
    }
    if (!d)
        return;
    struct desired *old = s->current;
    s->current = d;
    s->on_change(s->ctx, d); /* may close the store: nothing of it is used afterwards */
    desired_destroy(old);
}

void desired_store_look(struct desired_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->notice = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

bool desired_store_confirmed(struct desired_store *s, uint64_t version, uint64_t since_ns)
{
    pthread_mutex_lock(&s->lock);
    bool confirmed = s->seen_ns >= since_ns && s->status.version == version &&
                     s->heard_version <= version; /* a server that just woke may not know */
    pthread_mutex_unlock(&s->lock);
    return confirmed;
}

/* ---- roll calls ---- */

/* Somebody wants to write the state back, and has an older copy or none. */
static void send_copy(struct desired_store *s, const struct roll_code *call)
{
    struct buf b;
    int rc = 1;
    buf_init(&b, DESIRED_CODE_MAX_BYTES + 64);
    pthread_mutex_lock(&s->lock);
    if (s->copy.len > 0 && roll_call_newer(s->copy_mark, call->have))
        rc = roll_code_put_copy(&b, call->number, s->copy.data, s->copy.len);
    pthread_mutex_unlock(&s->lock);
    if (rc == 0)
        (void)!bus_publish(s->bus, s->answers ? NOTICE : SPARE, b.data, b.len, NULL);
    buf_fini(&b);
}

/* Another member's copy. It is not followed, but written back if this member is to do that. */
static void take_copy(struct desired_store *s, const struct roll_code *answer)
{
    const struct desired *own = s->current, *d = answer->state;
    pthread_mutex_lock(&s->lock);
    const bool wanted = s->roll.number == answer->number &&
                        (s->copy.len == 0 || roll_call_newer(mark_of(d), s->copy_mark)) &&
                        d->version <= MAX_HEARD && d->fence <= MAX_HEARD;
    pthread_mutex_unlock(&s->lock);
    if (wanted && own && !is_blank(own) && memcmp(own->id, d->id, sizeof(d->id)) != 0)
        log_warn("control", "a copy of the desired state of another cluster is ignored");
    else if (wanted)
        keep_copy(s, d);
}

static void on_notice(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct desired_store *s = ctx;
    struct roll_code call;
    struct err e = {0};
    (void)subject;
    if (n == 0) {
        desired_store_look(s);
    } else if (roll_code_parse(&call, bytes, n, &e) < 0) {
        log_warn("control", "a message about the desired state is refused: %s", e.msg);
    } else if (call.state) {
        take_copy(s, &call);
    } else {
        send_copy(s, &call);
        if (s->on_call)
            s->on_call(s->ctx, call.number);
    }
    if (n > 0)
        roll_code_free(&call);
}

/* A copy that a member without the right to write the state has sent. */
static void on_spare(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct desired_store *s = ctx;
    struct roll_code c;
    (void)subject;
    if (roll_code_parse(&c, bytes, n, NULL) < 0)
        return;
    pthread_mutex_lock(&s->lock);
    if (c.state && c.number == s->roll.number && c.state->version <= MAX_HEARD &&
        roll_call_newer(mark_of(c.state), mark_of(s->spare))) {
        struct desired *old = s->spare;
        s->spare = c.state;
        c.state = old;
    }
    pthread_mutex_unlock(&s->lock);
    roll_code_free(&c);
}

static void read_file(struct desired_store *s)
{
    struct desired *d = NULL;
    struct err e = {0};
    int rc = desired_file_read(&d, s->file, &e);
    if (rc == 0) {
        log_info("control", "desired state from %s version=%llu, until NATS answers", s->file,
                 (unsigned long long)d->version);
        keep_copy(s, d);
        hand_over(s, d, DESIRED_FROM_FILE);
    } else if (rc != SHOAL_ENOTFOUND) {
        log_warn("control", "snapshot not used: %s", e.msg);
    }
}

int desired_store_open(struct desired_store **out, const struct desired_store_opts *o,
                       struct executor *x, desired_change_fn on_change, void *ctx, struct err *e)
{
    struct desired_store *s = mem_zalloc(sizeof(*s));
    int rc;
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "desired state");
    s->bus = o->bus;
    s->x = x;
    s->on_change = on_change;
    s->ctx = ctx;
    s->poll_ms = o->poll_ms ? o->poll_ms : DEFAULT_POLL_MS;
    s->retry_ms = o->retry_ms ? o->retry_ms : DEFAULT_RETRY_MS;
    s->replicas = o->replicas;
    s->answers = o->answers;
    s->on_call = o->on_call;
    snprintf(s->name, sizeof(s->name), "%s", o->name ? o->name : "");
    s->listen = o->listen;
    s->listen_ctx = o->listen_ctx;
    s->task.fn = run_task;
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->wake);
    rc = bucket_open(&s->bucket, o->bus, "desired", o->wait_ms ? o->wait_ms : DEFAULT_WAIT_MS, e);
    if (rc == 0 && x && o->file && !(s->file = mem_strdup(o->file)))
        rc = err_set(e, SHOAL_ENOMEM, "desired state");
    if (rc == 0 && x)
        rc = bus_subscribe(o->bus, NOTICE, on_notice, s, &s->notices, e);
    if (rc == 0 && x && o->answers)
        rc = bus_subscribe(o->bus, SPARE, on_spare, s, &s->spares, e);
    if (rc == 0 && s->file)
        read_file(s);
    if (rc == 0 && x && (rc = thread_create(&s->thread, "desired", run, s, e)) == 0)
        s->threaded = true;
    if (rc < 0) {
        desired_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void desired_store_close(struct desired_store *s)
{
    if (!s)
        return;
    bus_unsubscribe(s->notices);
    bus_unsubscribe(s->spares);
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->threaded)
        pthread_join(s->thread, NULL);
    if (!s->posted) /* else the task frees it */
        free_store(s);
}

const struct desired *desired_store_current(const struct desired_store *s)
{
    return s->current;
}

void desired_store_get_status(struct desired_store *s, struct desired_store_status *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->status;
    out->known_fence = known_fence(s);
    uint64_t seen = s->seen_ns;
    pthread_mutex_unlock(&s->lock);
    out->fresh = seen && clock_ns() - seen < 3 * (uint64_t)s->poll_ms * MS;
}
