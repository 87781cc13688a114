/* home_later.c - see home_later.h. */
#include "apps/home/later/home_later.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file_lock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "apps/home/later/home_due.h"
#include "apps/home/later/home_later_action.h"
#include "wire/json_strict.h"

#define TICK_MS 1000 /* how late a change of the clock is noticed */
#define JUMP_MS 2000 /* a smaller step is clock discipline (NTP) */
#define MAX_LISTENERS 4u
#define MAX_WORD 64u
#define MAX_ENTRY_BYTES ((size_t)1 << 20)

enum later_job_kind {
    LATER_JOB_ADD,
    LATER_JOB_CANCEL,
    LATER_JOB_REPLACE,
    LATER_JOB_END,
    LATER_JOB_POSTPONE
};

struct later_job {
    struct later_job *next;
    enum later_job_kind kind;
    uint64_t id;
    struct home_later_entry *entry; /* ADD, REPLACE: the new one, then what was there before */
    char *result, *reason;          /* END */
    home_later_done_fn done;
    void *ctx;
    int rc;      /* result of the job itself, before the file is written */
    bool greedy; /* ADD: this client has too many */
};

struct home_later {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* on the monotonic clock */
    char *path;
    int lock_fd; /* of PATH.lock: two servers would run everything twice; -1: none */
    int64_t grace_ms;
    struct home_later_clock clock;
    home_later_run_fn run;
    void *run_ctx;
    struct {
        home_later_told_fn fn;
        void *ctx;
    } listeners[MAX_LISTENERS];
    uint32_t n_listeners;
    struct home_later_entry *waiting[HOME_LATER_MAX];       /* by due_ms */
    struct home_later_entry *recent[HOME_LATER_MAX_RECENT]; /* the newest first */
    uint32_t n_waiting, n_recent;
    uint64_t last_id, turns;
    struct later_job *first_job, **last_job;
    int64_t offset_ms; /* wall clock minus monotonic clock */
    bool has_offset, dirty, warned, recovered;
    pthread_t thread;
    bool threaded, stop;
};

/* ---- entries -------------------------------------------------------------------------------- */

/* A kept entry, with the memory of everything it points to. */
struct kept_entry {
    struct home_later_entry entry; /* first: the others know this only */
    struct arena arena;
};

static struct kept_entry *kept_of(struct home_later_entry *x)
{
    return (struct kept_entry *)(void *)x;
}

static void entry_free(struct home_later_entry *x)
{
    if (!x)
        return;
    arena_fini(&kept_of(x)->arena);
    mem_free(x);
}

static const char *keep_text(struct arena *a, const char *text)
{
    return text ? arena_copy(a, text, strlen(text) + 1) : NULL;
}

static struct home_later_entry *entry_copy(const struct home_later_entry *x)
{
    struct kept_entry *k = mem_zalloc(sizeof(*k));
    if (!k)
        return NULL;
    struct home_later_entry *c = &k->entry;
    struct arena *a = &k->arena;
    arena_init(a, MAX_ENTRY_BYTES);
    *c = *x;
    c->what = keep_text(a, x->what);
    c->said = keep_text(a, x->said);
    c->by = keep_text(a, x->by);
    c->action = x->action ? ask_plan_action_copy(x->action, a) : NULL;
    c->result = keep_text(a, x->result);
    c->reason = keep_text(a, x->reason);
    c->again.words = keep_text(a, x->again.words);
    if (a->rc == 0)
        return c;
    entry_free(c);
    return NULL;
}

static uint32_t find(const struct home_later *l, uint64_t id)
{
    uint32_t i = 0;
    while (i < l->n_waiting && l->waiting[i]->id != id)
        i++;
    return i;
}

/* Removes a waiting entry. */
static struct home_later_entry *take(struct home_later *l, uint32_t i)
{
    struct home_later_entry *x = l->waiting[i];
    memmove(&l->waiting[i], &l->waiting[i + 1],
            (size_t)(--l->n_waiting - i) * sizeof(l->waiting[0]));
    return x;
}

/* There is room. */
static void insert(struct home_later *l, struct home_later_entry *x)
{
    uint32_t i = l->n_waiting++;
    for (; i > 0 && l->waiting[i - 1]->due_ms > x->due_ms; i--)
        l->waiting[i] = l->waiting[i - 1];
    l->waiting[i] = x;
}

static void remember(struct home_later *l, struct home_later_entry *x)
{
    if (l->n_recent == HOME_LATER_MAX_RECENT)
        entry_free(l->recent[--l->n_recent]);
    memmove(&l->recent[1], &l->recent[0], l->n_recent * sizeof(l->recent[0]));
    l->recent[0] = x;
    l->n_recent++;
}

static void change(struct home_later *l)
{
    l->turns++;
    l->dirty = true;
}

/* ---- the file ------------------------------------------------------------------------------- */

static void put_text(struct json_out *j, const char *key, const char *text)
{
    if (text)
        json_out_member_str(j, key, text);
}

static void put_time(struct json_out *j, const char *key, int64_t ms)
{
    json_out_key(j, key);
    json_out_int(j, ms);
}

/* How an entry repeats: in words, and in full for the file. */
static void put_again(struct json_out *j, const struct ask_plan_again *g, bool whole)
{
    if (g->days == 0 && g->period_s == 0)
        return;
    put_text(j, "repeats", g->words);
    if (!whole)
        return;
    json_out_member_uint(j, "days", g->days);
    json_out_member_uint(j, "period_s", (uint64_t)g->period_s);
    json_out_member_uint(j, "first_s", (uint64_t)g->first_s);
    json_out_member_uint(j, "minute", g->minute);
    json_out_member_uint(j, "sun", g->sun);
    json_out_member_num(j, "latitude", g->latitude);
    json_out_member_num(j, "longitude", g->longitude);
}

/* The file keeps it as text. */
static void put_action(struct json_out *j, const struct ask_plan_action *o)
{
    struct buf b;
    buf_init(&b, HOME_LATER_ACTION_MAX);
    home_later_action_write(&b, o);
    json_out_member_str(j, "action", buf_str(&b));
    if (b.rc < 0)
        j->b->rc = b.rc;
    buf_fini(&b);
}

static void put_entry(struct json_out *j, const struct home_later_entry *x, bool whole)
{
    json_out_object(j);
    json_out_member_uint(j, "id", x->id);
    json_out_member_str(j, "kind", home_table_later_name(x->kind));
    json_out_member_str(j, "what", x->what);
    put_time(j, "due_ms", x->due_ms);
    put_time(j, "made_ms", x->made_ms);
    put_text(j, "said", x->said);
    put_again(j, &x->again, whole);
    if (whole) {
        put_text(j, "by", x->by);
        put_action(j, x->action);
        json_out_key(j, "counted");
        json_out_bool(j, x->counted);
        json_out_key(j, "confirmed");
        json_out_bool(j, x->confirmed);
    }
    if (whole || x->begun) {
        json_out_key(j, "begun");
        json_out_bool(j, x->begun);
    }
    if (x->paused) {
        json_out_key(j, "paused");
        json_out_bool(j, true);
        put_time(j, "left_ms", x->left_ms);
    }
    put_text(j, "result", x->result);
    put_text(j, "reason", x->reason);
    if (x->result)
        put_time(j, "ended_ms", x->ended_ms);
    json_out_object_end(j);
}

void home_later_put(struct json_out *j, const struct home_later_entry *x)
{
    put_entry(j, x, false);
}

static void put_lists(struct home_later *l, struct json_out *j, bool whole)
{
    json_out_key(j, "scheduled");
    json_out_array(j);
    for (uint32_t i = 0; i < l->n_waiting; i++)
        put_entry(j, l->waiting[i], whole);
    json_out_array_end(j);
    json_out_key(j, "recent");
    json_out_array(j);
    for (uint32_t i = 0; i < l->n_recent; i++)
        put_entry(j, l->recent[i], whole);
    json_out_array_end(j);
}

void home_later_json(struct home_later *l, struct json_out *j)
{
    pthread_mutex_lock(&l->lock);
    put_lists(l, j, false);
    pthread_mutex_unlock(&l->lock);
}

static void write_locked(struct home_later *l, struct buf *out)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_uint(&j, "version", 1);
    json_out_member_uint(&j, "last_id", l->last_id);
    put_lists(l, &j, true);
    json_out_object_end(&j);
    buf_putc(out, '\n');
}

void home_later_write(struct home_later *l, struct buf *out)
{
    pthread_mutex_lock(&l->lock);
    write_locked(l, out);
    pthread_mutex_unlock(&l->lock);
}

static const char *text_in(struct json_strict *d, const struct json_node *at, const char *key,
                           size_t most)
{
    struct json_node v = json_strict_get(at, key);
    return v.v ? json_strict_any_text(d, &v, most) : NULL;
}

static int64_t time_in(struct json_strict *d, const struct json_node *at, const char *key)
{
    struct json_node v = json_strict_get(at, key);
    return (int64_t)json_strict_number(d, &v, 0, 1e15, 0);
}

static bool bool_in(struct json_strict *d, const struct json_node *at, const char *key)
{
    struct json_node v = json_strict_get(at, key);
    return json_strict_bool(d, &v, false);
}

static double number_in(struct json_strict *d, const struct json_node *at, const char *key,
                        double lo, double hi)
{
    struct json_node v = json_strict_get(at, key);
    return json_strict_number(d, &v, lo, hi, 0);
}

static struct ask_plan_again read_again(struct json_strict *d, const struct json_node *at)
{
    return (struct ask_plan_again){.days = (uint32_t)number_in(d, at, "days", 0, 127),
                                   .period_s =
                                       (int64_t)number_in(d, at, "period_s", 0, HOME_DUE_MAX_S),
                                   .first_s = (int64_t)number_in(d, at, "first_s", 0, 9e12),
                                   .minute = (uint32_t)number_in(d, at, "minute", 0, 1439),
                                   .sun = (uint32_t)number_in(d, at, "sun", 0, 2),
                                   .latitude = number_in(d, at, "latitude", -90, 90),
                                   .longitude = number_in(d, at, "longitude", -180, 180),
                                   .words = text_in(d, at, "repeats", HOME_LATER_MAX_TEXT)};
}

static const struct ask_plan_action *action_in(struct json_strict *d, const struct json_node *at,
                                               struct arena *a)
{
    const char *text = text_in(d, at, "action", HOME_LATER_ACTION_MAX);
    const struct ask_plan_action *o = text ? home_later_action_read(a, text) : NULL;
    if (a->rc < 0)
        json_strict_no_memory(d);
    return o;
}

static struct home_later_entry *read_entry(struct json_strict *d, const struct json_node *at)
{
    if (!json_strict_object(d, at, "id kind what due_ms made_ms action",
                            "said by counted confirmed begun result reason ended_ms repeats days "
                            "period_s first_s minute sun latitude longitude paused left_ms"))
        return NULL;
    struct json_node id = json_strict_get(at, "id"), kind = json_strict_get(at, "kind");
    struct arena a;
    arena_init(&a, MAX_ENTRY_BYTES);
    struct home_later_entry x = {.id = (uint64_t)json_strict_number(d, &id, 1, 9e15, 0),
                                 .due_ms = time_in(d, at, "due_ms"),
                                 .made_ms = time_in(d, at, "made_ms"),
                                 .ended_ms = time_in(d, at, "ended_ms"),
                                 .counted = bool_in(d, at, "counted"),
                                 .confirmed = bool_in(d, at, "confirmed"),
                                 .begun = bool_in(d, at, "begun"),
                                 .paused = bool_in(d, at, "paused"),
                                 .left_ms = time_in(d, at, "left_ms"),
                                 .again = read_again(d, at),
                                 .what = text_in(d, at, "what", HOME_LATER_MAX_TEXT),
                                 .said = text_in(d, at, "said", HOME_LATER_MAX_TEXT),
                                 .by = text_in(d, at, "by", HOME_LATER_MAX_BY),
                                 .action = action_in(d, at, &a),
                                 .result = text_in(d, at, "result", MAX_WORD),
                                 .reason = text_in(d, at, "reason", HOME_LATER_MAX_TEXT)};
    const char *name = json_strict_text(d, &kind, MAX_WORD);
    if (d->rc == 0 && !home_table_later_kind(name, &x.kind))
        json_strict_fail(d, &kind, "there is no kind \"%s\"", name);
    struct home_later_entry *c = d->rc == 0 ? entry_copy(&x) : NULL;
    if (d->rc == 0 && !c)
        json_strict_no_memory(d);
    arena_fini(&a);
    return c;
}

/* Writes the entries of a list; `over` if they have a result. */
static void read_list(struct home_later *l, struct json_strict *d, const struct json_node *root,
                      const char *key, bool over)
{
    struct json_node list = json_strict_get(root, key), v;
    (void)json_strict_array(d, &list, over ? HOME_LATER_MAX_RECENT : HOME_LATER_MAX);
    for (v = json_strict_first(&list); d->rc == 0 && v.v; v = json_strict_next(&v)) {
        struct home_later_entry *x = read_entry(d, &v);
        if (x && !x->result == over)
            json_strict_fail(d, &v, over ? "the result is missing" : "it has a result");
        if (x && x->id > l->last_id)
            json_strict_fail(d, &v, "the id is higher than last_id");
        if (x && d->rc == 0 && !over)
            insert(l, x);
        else if (x && d->rc == 0)
            l->recent[l->n_recent++] = x;
        else
            entry_free(x);
    }
}

static void clear(struct home_later *l)
{
    while (l->n_waiting > 0)
        entry_free(l->waiting[--l->n_waiting]);
    while (l->n_recent > 0)
        entry_free(l->recent[--l->n_recent]);
}

int home_later_read(struct home_later *l, const char *json, size_t n, struct err *e)
{
    struct json_strict d;
    int rc = json_strict_parse(&d, json, n, HOME_LATER_MAX_FILE, e);
    struct json_node root = json_strict_root(&d), v;
    pthread_mutex_lock(&l->lock);
    clear(l);
    if (rc == 0 && json_strict_object(&d, &root, "version last_id scheduled recent", "")) {
        v = json_strict_get(&root, "version");
        (void)json_strict_u32(&d, &v, 1, 1, 0);
        v = json_strict_get(&root, "last_id");
        l->last_id = (uint64_t)json_strict_number(&d, &v, 0, 9e15, 0);
        read_list(l, &d, &root, "scheduled", false);
        read_list(l, &d, &root, "recent", true);
    }
    rc = json_strict_rc(&d);
    if (rc < 0)
        clear(l);
    pthread_mutex_unlock(&l->lock);
    json_strict_fini(&d);
    return rc;
}

/* Writes the file if something changed; called with the lock held, releases it meanwhile. */
static int save(struct home_later *l, struct err *e)
{
    struct buf b;
    if (!l->dirty || !l->path) {
        l->dirty = false;
        return 0;
    }
    l->dirty = false;
    buf_init(&b, HOME_LATER_MAX_FILE);
    write_locked(l, &b);
    pthread_mutex_unlock(&l->lock);
    int rc =
        b.rc < 0 ? err_set(e, b.rc, "out of memory") : file_replace(l->path, buf_str(&b), b.len, e);
    buf_fini(&b);
    pthread_mutex_lock(&l->lock);
    if (rc < 0) {
        l->dirty = true; /* the next change tries again */
        if (!l->warned)
            log_warn("home", "what is scheduled is not saved: %s", e->msg);
    }
    l->warned = rc < 0;
    return rc;
}

/* ---- jobs: what others ask for ----------------------------------------------------------------
 */

static void job_free(struct later_job *j)
{
    entry_free(j->entry);
    mem_free(j->result);
    mem_free(j->reason);
    mem_free(j);
}

static void push(struct home_later *l, struct later_job *j)
{
    pthread_mutex_lock(&l->lock);
    bool late = l->stop && j->done; /* results are still written */
    if (!late) {
        *l->last_job = j;
        l->last_job = &j->next;
        pthread_cond_signal(&l->wake);
    }
    pthread_mutex_unlock(&l->lock);
    if (late) {
        j->done(j->ctx, SHOAL_ECANCELLED, "the server is ending", j->id);
        job_free(j);
    }
}

static struct later_job *job_create(enum later_job_kind kind, home_later_done_fn done, void *ctx)
{
    struct later_job *j = mem_zalloc(sizeof(*j));
    if (j)
        *j = (struct later_job){.kind = kind, .done = done, .ctx = ctx};
    return j;
}

static void push_entry(struct home_later *l, enum later_job_kind kind, uint64_t id,
                       const struct home_later_entry *x, home_later_done_fn done, void *ctx)
{
    struct later_job *j = job_create(kind, done, ctx);
    if (j)
        j->entry = entry_copy(x);
    if (!j || !j->entry) {
        mem_free(j);
        done(ctx, SHOAL_ENOMEM, "out of memory", id);
        return;
    }
    j->id = id;
    push(l, j);
}

void home_later_add(struct home_later *l, const struct home_later_entry *x, home_later_done_fn done,
                    void *ctx)
{
    push_entry(l, LATER_JOB_ADD, 0, x, done, ctx);
}

void home_later_replace(struct home_later *l, uint64_t id, const struct home_later_entry *x,
                        home_later_done_fn done, void *ctx)
{
    push_entry(l, LATER_JOB_REPLACE, id, x, done, ctx);
}

void home_later_cancel(struct home_later *l, uint64_t id, home_later_done_fn done, void *ctx)
{
    struct later_job *j = job_create(LATER_JOB_CANCEL, done, ctx);
    if (!j) {
        done(ctx, SHOAL_ENOMEM, "out of memory", id);
        return;
    }
    j->id = id;
    push(l, j);
}

static void push_end(struct home_later *l, enum later_job_kind kind, uint64_t id,
                     const char *result, const char *reason)
{
    struct later_job *j = job_create(kind, NULL, NULL);
    if (!j) { /* it stays begun, and is reported as interrupted after a restart */
        log_warn("home", "the result of a scheduled action is lost: out of memory");
        return;
    }
    j->id = id;
    j->result = mem_strdup(result);
    j->reason = reason ? mem_strdup(reason) : NULL;
    push(l, j);
}

void home_later_end(struct home_later *l, uint64_t id, const char *result, const char *reason)
{
    push_end(l, LATER_JOB_END, id, result, reason);
}

void home_later_postpone(struct home_later *l, uint64_t id, const char *reason)
{
    push_end(l, LATER_JOB_POSTPONE, id, "failed", reason);
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    int rc;
    char reason[160];
};

static void on_waited(void *ctx, int rc, const char *reason, uint64_t id)
{
    struct waiter *w = ctx;
    (void)id;
    pthread_mutex_lock(&w->lock);
    w->rc = rc;
    snprintf(w->reason, sizeof(w->reason), "%s", reason ? reason : "");
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

int home_later_cancel_wait(struct home_later *l, uint64_t id, struct err *e)
{
    struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    home_later_cancel(l, id, on_waited, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    return w.rc < 0 ? err_set(e, w.rc, "%s", w.reason) : 0;
}

/* ---- time ----------------------------------------------------------------------------------- */

static int64_t clock_read_ms(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t wall_ms(const struct home_later *l)
{
    return l->clock.wall_ms ? l->clock.wall_ms(l->clock.ctx) : clock_read_ms(CLOCK_REALTIME);
}

static int64_t steady_ms(const struct home_later *l)
{
    return l->clock.steady_ms ? l->clock.steady_ms(l->clock.ctx) : clock_read_ms(CLOCK_BOOTTIME);
}

int64_t home_later_now_ms(struct home_later *l)
{
    return wall_ms(l);
}

static int by_due(const void *a, const void *b)
{
    const struct home_later_entry *x = *(const struct home_later_entry *const *)a,
                                  *y = *(const struct home_later_entry *const *)b;
    return x->due_ms < y->due_ms ? -1 : x->due_ms > y->due_ms;
}

/* The clock was set: entries counted from now keep their distance. */
static void follow_clock(struct home_later *l, int64_t now_ms)
{
    int64_t offset = now_ms - steady_ms(l), jump = offset - l->offset_ms;
    bool first = !l->has_offset;
    l->has_offset = true;
    l->offset_ms = offset;
    if (first || (jump <= JUMP_MS && jump >= -JUMP_MS))
        return;
    bool moved = false;
    for (uint32_t i = 0; i < l->n_waiting; i++)
        if (l->waiting[i]->counted && !l->waiting[i]->begun) {
            l->waiting[i]->due_ms += jump;
            moved = true;
        }
    if (moved) {
        qsort(l->waiting, l->n_waiting, sizeof(l->waiting[0]), by_due);
        change(l);
    }
}

/* ---- ticking -------------------------------------------------------------------------------- */

struct outcome { /* entries of one tick to report without the lock */
    struct home_later_entry *begun[HOME_LATER_MAX], *over[HOME_LATER_MAX];
    uint32_t n_begun, n_over;
};

/* A repeating entry waits for its next time, under the same id. */
static void renew(struct home_later *l, const struct home_later_entry *x, int64_t now_ms)
{
    int64_t after_ms = now_ms > x->due_ms ? now_ms : x->due_ms;
    int64_t next = home_due_next(&x->again, after_ms / 1000);
    struct home_later_entry *c = next && l->n_waiting < HOME_LATER_MAX ? entry_copy(x) : NULL;
    if (!c) {
        log_warn("home", "\"%s\" does not come again: there is no next time, or no room", x->what);
        return;
    }
    c->begun = false;
    c->not_before_ms = 0;
    c->due_ms = next * 1000;
    insert(l, c);
}

/* The entry has ended; the caller gets a copy. */
static void finish(struct home_later *l, struct home_later_entry *x, const char *result,
                   const char *reason, int64_t now_ms, struct outcome *o)
{
    if (x->again.days != 0 || x->again.period_s != 0)
        renew(l, x, now_ms);
    x->result = keep_text(&kept_of(x)->arena, result);
    x->reason = keep_text(&kept_of(x)->arena, reason);
    x->ended_ms = now_ms;
    struct home_later_entry *told = x->result ? entry_copy(x) : NULL;
    if (told && o->n_over < HOME_LATER_MAX)
        o->over[o->n_over++] = told;
    else
        entry_free(told);
    if (x->result)
        remember(l, x);
    else
        entry_free(x);
    change(l);
}

static uint32_t waiting_of(const struct home_later *l, const char *by)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_waiting; i++)
        n += l->waiting[i]->by && strcmp(l->waiting[i]->by, by) == 0;
    return n;
}

static void add(struct home_later *l, struct later_job *j, int64_t now_ms)
{
    const char *by = j->entry->by;
    j->greedy = by && *by && waiting_of(l, by) >= HOME_LATER_MAX_EACH;
    if (l->n_waiting == HOME_LATER_MAX || j->greedy) {
        j->rc = SHOAL_ELIMIT;
        return;
    }
    j->id = j->entry->id = ++l->last_id;
    j->entry->made_ms = j->entry->made_ms ? j->entry->made_ms : now_ms;
    insert(l, j->entry);
    j->entry = NULL;
    change(l);
}

static void cancel(struct home_later *l, struct later_job *j)
{
    uint32_t i = find(l, j->id);
    if (i == l->n_waiting || l->waiting[i]->begun) {
        j->rc = SHOAL_ENOTFOUND;
        return;
    }
    j->entry = take(l, i); /* restored if it cannot be written */
    change(l);
}

/* The entry of the job takes the place of the one with its id, and the job keeps that. */
static void replace(struct home_later *l, struct later_job *j)
{
    uint32_t i = find(l, j->id);
    if (i == l->n_waiting || l->waiting[i]->begun) {
        j->rc = SHOAL_ENOTFOUND;
        return;
    }
    struct home_later_entry *old = take(l, i);
    j->entry->id = j->id;
    insert(l, j->entry);
    j->entry = old;
    change(l);
}

static void postpone(struct home_later *l, struct home_later_entry *x, int64_t now_ms)
{
    x->begun = false;
    x->not_before_ms = now_ms + HOME_LATER_RETRY_MS;
    change(l);
}

static void do_jobs(struct home_later *l, struct later_job *first, int64_t now_ms,
                    struct outcome *o)
{
    for (struct later_job *j = first; j; j = j->next) {
        uint32_t i = find(l, j->id);
        if (j->kind == LATER_JOB_ADD)
            add(l, j, now_ms);
        else if (j->kind == LATER_JOB_CANCEL)
            cancel(l, j);
        else if (j->kind == LATER_JOB_REPLACE)
            replace(l, j);
        else if (i < l->n_waiting && j->kind == LATER_JOB_POSTPONE && !l->stop &&
                 now_ms + HOME_LATER_RETRY_MS - l->waiting[i]->due_ms <= l->grace_ms)
            postpone(l, l->waiting[i], now_ms);
        else if (i < l->n_waiting)
            finish(l, take(l, i), j->result ? j->result : "failed", j->reason, now_ms, o);
    }
}

/* The file could not be written: undoes what would be lost. */
static void undo(struct home_later *l, struct later_job *j, int rc)
{
    uint32_t i = find(l, j->id);
    if (j->rc < 0)
        return;
    if (j->kind == LATER_JOB_ADD && i < l->n_waiting)
        entry_free(take(l, i));
    if (j->kind == LATER_JOB_CANCEL && j->entry && l->n_waiting < HOME_LATER_MAX) {
        insert(l, j->entry);
        j->entry = NULL;
    }
    if (j->kind == LATER_JOB_REPLACE)
        replace(l, j);
    j->rc = rc;
}

static const char *reason_of(const struct later_job *j, const char *said)
{
    switch (j->rc) {
    case 0:
        return NULL;
    case SHOAL_ELIMIT:
        return j->greedy ? "you have too many things scheduled already; cancel one first"
                         : "too many things are scheduled already; cancel one first";
    case SHOAL_ENOTFOUND:
        return "nothing that waits has this id";
    default:
        return said;
    }
}

static void answer_jobs(struct later_job *first, const char *said)
{
    for (struct later_job *j = first, *next; j; j = next) {
        next = j->next;
        if (j->done)
            j->done(j->ctx, j->rc, reason_of(j, said), j->id);
        job_free(j);
    }
}

/* Entries that had begun when the last process died: handled once, before anything starts here. */
static void end_interrupted(struct home_later *l, int64_t now_ms, struct outcome *o)
{
    for (uint32_t i = 0; !l->recovered && i < l->n_waiting;)
        if (l->waiting[i]->begun)
            finish(l, take(l, i), "interrupted",
                   "the server ended while it was being done; it is not repeated", now_ms, o);
        else
            i++;
    l->recovered = true;
}

/* Marks due entries as begun, and ends those that are too late. */
static void begin_due(struct home_later *l, int64_t now_ms, struct outcome *o)
{
    for (uint32_t i = 0; i < l->n_waiting;) {
        struct home_later_entry *x = l->waiting[i];
        if (x->begun || x->paused || x->due_ms > now_ms || x->not_before_ms > now_ms) {
            i++;
            continue;
        }
        if (now_ms - x->due_ms > l->grace_ms) {
            finish(l, take(l, i), "missed", "nothing was running, or the clock was set", now_ms, o);
            continue;
        }
        struct home_later_entry *c = entry_copy(x);
        if (!c)
            return; /* the next tick tries again */
        x->begun = c->begun = true;
        o->begun[o->n_begun++] = c;
        change(l);
        i++;
    }
}

static void tell(struct home_later *l, struct outcome *o)
{
    for (uint32_t i = 0; i < o->n_over; i++) {
        for (uint32_t k = 0; k < l->n_listeners; k++)
            l->listeners[k].fn(l->listeners[k].ctx, o->over[i]);
        entry_free(o->over[i]);
    }
    for (uint32_t i = 0; i < o->n_begun; i++) {
        l->run(l->run_ctx, o->begun[i]);
        entry_free(o->begun[i]);
    }
}

static int64_t next_ms(struct home_later *l, int64_t now_ms)
{
    int64_t next = -1;
    for (uint32_t i = 0; i < l->n_waiting && next < 0; i++)
        if (!l->waiting[i]->begun && !l->waiting[i]->paused)
            next = l->waiting[i]->due_ms > now_ms ? l->waiting[i]->due_ms - now_ms : 0;
    return next > TICK_MS ? TICK_MS : next;
}

int64_t home_later_tick(struct home_later *l)
{
    struct outcome *o = mem_zalloc(sizeof(*o));
    struct err e = {0};
    if (!o)
        return TICK_MS;
    pthread_mutex_lock(&l->lock);
    struct later_job *first = l->first_job;
    l->first_job = NULL;
    l->last_job = &l->first_job;
    int64_t now_ms = wall_ms(l);
    end_interrupted(l, now_ms, o);
    follow_clock(l, now_ms); /* before new entries: they count from now */
    do_jobs(l, first, now_ms, o);
    if (!l->stop)
        begin_due(l, now_ms, o);
    int rc = save(l, &e);
    for (struct later_job *j = first; rc < 0 && j; j = j->next)
        undo(l, j, rc);
    int64_t next = l->first_job ? 0 : next_ms(l, now_ms);
    pthread_mutex_unlock(&l->lock);
    answer_jobs(first, e.msg);
    tell(l, o);
    mem_free(o);
    return next;
}

static void *run_thread(void *arg)
{
    struct home_later *l = arg;
    bool stop = false;
    while (!stop) {
        int64_t next = home_later_tick(l);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t wait_ms = next < 0 ? 60000 : next;
        until.tv_sec += wait_ms / 1000;
        until.tv_nsec += (wait_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_mutex_lock(&l->lock);
        if (wait_ms > 0 && !l->stop && !l->first_job)
            (void)pthread_cond_timedwait(&l->wake, &l->lock, &until);
        stop = l->stop && !l->first_job;
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int open_file(struct home_later *l, const char *path, struct err *e)
{
    struct buf b;
    int rc = file_lock(&l->lock_fd, path, e);
    if (rc < 0)
        return rc == SHOAL_EBUSY ? err_wrap(e, "set home_schedule") : rc;
    l->path = mem_strdup(path);
    if (!l->path)
        return err_set(e, SHOAL_ENOMEM, "schedule");
    if (access(path, F_OK) != 0)
        return 0;
    buf_init(&b, HOME_LATER_MAX_FILE);
    rc = file_read(path, &b, e);
    if (rc == 0)
        rc = home_later_read(l, buf_str(&b), b.len, e);
    if (rc < 0)
        err_wrap(e, "%s", path);
    buf_fini(&b);
    return rc;
}

int home_later_create(struct home_later **out, const struct home_later_opts *o, struct err *e)
{
    struct home_later *l = mem_zalloc(sizeof(*l));
    *out = NULL;
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "schedule");
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->wake);
    l->lock_fd = -1;
    l->last_job = &l->first_job;
    l->grace_ms = o->grace_ms ? o->grace_ms : HOME_LATER_GRACE_MS;
    l->clock = o->clock;
    l->run = o->run;
    l->run_ctx = o->run_ctx;
    int rc = o->path ? open_file(l, o->path, e) : 0;
    if (rc < 0) {
        home_later_destroy(l);
        return rc;
    }
    *out = l;
    return 0;
}

void home_later_listen(struct home_later *l, home_later_told_fn fn, void *ctx)
{
    assert(l->n_listeners < MAX_LISTENERS); /* a constant of this program */
    l->listeners[l->n_listeners].fn = fn;
    l->listeners[l->n_listeners++].ctx = ctx;
}

int home_later_start(struct home_later *l, struct err *e)
{
    int rc = thread_create(&l->thread, "home-later", run_thread, l, e);
    l->threaded = rc == 0;
    return rc;
}

void home_later_stop(struct home_later *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (l->threaded)
        pthread_join(l->thread, NULL);
    l->threaded = false;
}

void home_later_destroy(struct home_later *l)
{
    if (!l)
        return;
    home_later_stop(l);
    (void)home_later_tick(l); /* results that arrived since */
    clear(l);
    if (l->lock_fd >= 0)
        close(l->lock_fd);
    mem_free(l->path);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

uint64_t home_later_turns(struct home_later *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t n = l->turns;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void home_later_each(struct home_later *l, void (*fn)(void *ctx, const struct home_later_entry *x),
                     void *ctx)
{
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->n_waiting; i++)
        fn(ctx, l->waiting[i]);
    for (uint32_t i = 0; i < l->n_recent; i++)
        fn(ctx, l->recent[i]);
    pthread_mutex_unlock(&l->lock);
}
