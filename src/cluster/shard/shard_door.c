/* shard_door.c - see shard_door.h. */
#include "cluster/shard/shard_door.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/crew.h"
#include "base/thread/thread.h"
#include "cluster/shard/shard_link.h"
#include "cluster/shard/shard_part.h"
#include "cluster/shard/shard_rows.h"
#include "net/tls.h"
#include "shoal/shoal_version.h"

#define MAX_CONNS 64u
#define MAX_QUEUED 64u /* steps of a session that wait */
#define CONNECT_MS 3000u
#define ANSWER_MS 10000u
#define TICK_MS 500u

struct queued { /* a step that waits */
    struct queued *next;
    size_t n;
    uint8_t bytes[];
};

/* A part.  Under the door's lock: the list, queue, stop, out. */
struct session {
    struct session *next;
    struct shard_door *door;
    struct shard_link *opener; /* outlives the session */
    struct shard_open open;
    char next_address[256];
    struct shard_part part; /* layers NULL: not loaded */
    struct shard_link *out; /* to the next part; NULL: results go to the opener */
    struct queued *first, **last;
    uint32_t n_queued;
    bool stop;
    pthread_cond_t wake;
    pthread_t thread;
    char engine[64], model[13]; /* for people: whose it is, and the beginning of its SHA-256 */
    struct buf reply, packed;
    uint64_t step, mark_ns; /* by rows: the step that is computed, and since when it computes */
    struct err lost;        /* why a gather failed; code 0: none did */
};

struct conn {
    struct conn *next;
    struct shard_door *door;
    int fd;               /* until the link has it */
    struct tls_conn *tls; /* likewise */
    struct shard_link *link;
    struct session *own;                 /* that it opened; NULL: none */
    uint8_t attached[SHARD_MSG_SESSION]; /* whose steps it sends */
    uint64_t chain;
    bool has_attached;
};

struct shard_door {
    struct shard_door_opts o;
    char *name, *cache_dir;
    pthread_mutex_t lock;
    pthread_cond_t idle; /* a connection has ended */
    struct conn *conns;
    uint32_t n_conns;
    struct session *sessions;
    bool stop;
};

/* ---- a session's thread ---- */

static int tell(struct shard_link *l, int code, const char *who, const char *text)
{
    char line[300];
    struct buf b;
    snprintf(line, sizeof(line), "%s: %s", who, text);
    buf_init(&b, 4096);
    shard_fail_put(&b, &(struct shard_fail){code, {line, strlen(line)}});
    int rc = shard_link_send(l, &b, NULL);
    buf_fini(&b);
    return rc;
}

/* The next part must be there already, and of the same chain. */
static int attach_next(struct session *s, struct err *e)
{
    struct shard_attach m = {.chain = s->open.chain};
    struct shard_link *out;
    struct shard_frame f;
    struct shard_fail fail;
    struct buf b;
    memcpy(m.session, s->open.session, sizeof(m.session));
    int rc = shard_link_open(&out, s->next_address, s->door->o.tls, CONNECT_MS, e);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&s->door->lock);
    s->out = out; /* from here on session_end can break it */
    pthread_mutex_unlock(&s->door->lock);
    buf_init(&b, 4096);
    shard_hello_put(&b, &(struct shard_hello){{SHOAL_VERSION, strlen(SHOAL_VERSION)}});
    shard_attach_put(&b, &m);
    rc = shard_link_send(s->out, &b, e);
    buf_fini(&b);
    while (rc == 0) { /* WELCOME, then ECHOED: it is attached */
        rc = shard_link_receive(s->out, &f, ANSWER_MS, e);
        if (rc == 0)
            return err_set(e, SHOAL_EIO, "%s does not answer", s->next_address);
        if (rc < 0)
            return rc;
        if (f.kind == SHARD_ECHOED)
            return 0;
        if (f.kind == SHARD_FAIL && shard_fail_read(&fail, &f, e) == 0)
            return err_set(e, fail.code, "%.*s", (int)fail.text.n, fail.text.p);
        rc = f.kind == SHARD_WELCOME
                 ? 0
                 : err_set(e, SHOAL_EFORMAT, "%s sends nonsense", s->next_address);
    }
    return rc;
}

/* NULL: the session ends. */
static struct queued *next_step(struct session *s)
{
    struct shard_door *d = s->door;
    struct queued *q = NULL;
    pthread_mutex_lock(&d->lock);
    while (!s->stop && !s->first)
        pthread_cond_wait(&s->wake, &d->lock);
    if (!s->stop) {
        q = s->first;
        s->first = q->next;
        if (!s->first)
            s->last = &s->first;
        s->n_queued--;
    }
    pthread_mutex_unlock(&d->lock);
    return q;
}

/* The columns of another part; they come one after the other, in any order. */
static int take_slice(struct session *s, struct shard_gather *g, struct err *e)
{
    struct shard_frame f;
    struct shard_slice slice;
    struct queued *q = next_step(s);
    if (!q)
        return err_set(e, SHOAL_ECANCELLED, "the engine's node is gone");
    int rc = shard_frame_next(&f, q->bytes, q->n, e);
    if (rc >= 0)
        rc = rc > 0 ? shard_gather_take(g, &f, &slice, e) : SHOAL_EFORMAT;
    mem_free(q);
    return rc;
}

/* By rows: called by the thread that computes. */
static bool gather(void *ctx, const struct decoder_gather *what)
{
    struct session *s = ctx;
    struct shard_gather g =
        shard_gather_begin(what, s->open.chain, s->step, s->open.rows.n_parts, s->open.rows.index);
    g.q8 = s->open.wire_q8;
    buf_clear(&s->reply);
    shard_gather_put(&s->reply, &s->packed, &g, clock_ns() - s->mark_ns);
    int rc = shard_link_send(s->opener, &s->reply, &s->lost);
    while (rc == 0 && !shard_gather_done(&g))
        rc = take_slice(s, &g, &s->lost);
    s->mark_ns = clock_ns();
    return rc == 0;
}

/* What is computed, for people. */
static void put_what(char *out, size_t cap, const struct shard_open *o)
{
    if (o->rows.n_parts)
        snprintf(out, cap, "rows %u to %u of %u", o->rows.ffn[o->rows.index],
                 o->rows.ffn[o->rows.index + 1] - 1, o->rows.ffn[o->rows.n_parts]);
    else
        snprintf(out, cap, "layers %u to %u", o->first, o->end - 1);
}

static int load(struct session *s, struct err *e)
{
    struct shard_door *d = s->door;
    char path[4096], what[64];
    const struct shard_part_opts po = {.path = path,
                                       .cache_dir = d->cache_dir,
                                       .memory_bytes = d->o.memory(d->o.ctx),
                                       .gather = gather,
                                       .gather_ctx = s};
    int rc = d->o.find(d->o.ctx, s->open.sha256, path, sizeof(path), e);
    if (rc == 0)
        rc = shard_part_open(&s->part, &s->open, &po, e);
    if (rc == 0)
        d->o.take_memory(d->o.ctx, (int64_t)shard_part_bytes(&s->part));
    if (rc == 0 && s->next_address[0])
        rc = attach_next(s, e);
    if (rc < 0)
        return rc;
    buf_clear(&s->reply);
    shard_opened_put(&s->reply, &(struct shard_opened){s->open.chain, shard_part_bytes(&s->part)});
    put_what(what, sizeof(what), &s->open);
    log_info("shard", "computes %s of model=%s for node=%s mib=%zu", what, s->model, s->engine,
             shard_part_bytes(&s->part) >> 20);
    return shard_link_send(s->opener, &s->reply, e);
}

static int run_step(struct session *s, const struct queued *q, struct err *e)
{
    struct shard_frame f;
    struct shard_step step;
    const float *x;
    const uint64_t t0 = clock_ns();
    int rc = shard_frame_next(&f, q->bytes, q->n, e);
    if (rc > 0)
        rc = shard_step_read(&step, &f, e);
    if (rc == 0 && (f.kind != SHARD_STEP || step.chain != s->open.chain))
        rc = err_set(e, SHOAL_EFORMAT, "a step of another chain");
    s->step = rc == 0 ? step.number : 0;
    s->mark_ns = t0;
    if (rc == 0)
        rc = shard_part_run(&s->part, &step, &x, e);
    if (rc < 0 && s->lost.code < 0)
        return err_set(e, s->lost.code, "%s", s->lost.msg);
    if (rc < 0 || s->open.rows.n_parts) /* by rows, the results have been gathered */
        return rc;
    step.compute_ns += clock_ns() - t0;
    step.dim = s->open.dim;
    step.q8 = s->open.wire_q8;
    buf_clear(&s->packed);
    for (uint32_t t = 0; t < step.n_tokens; t++)
        shard_row_put(&s->packed, step.q8, x + (size_t)t * step.dim, step.dim);
    if (s->packed.rc < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a message");
    step.data = (const uint8_t *)s->packed.data;
    if (!s->out) {
        step.n_runs = 0;
        step.runs_bytes = 0;
    }
    buf_clear(&s->reply);
    shard_step_put(&s->reply, s->out ? SHARD_STEP : SHARD_RESULT, &step);
    return shard_link_send(s->out ? s->out : s->opener, &s->reply, e);
}

static void *session_main(void *arg)
{
    struct session *s = arg;
    struct err e = {0};
    struct queued *q;
    int rc = load(s, &e);
    while (rc == 0 && (q = next_step(s))) {
        rc = run_step(s, q, &e);
        mem_free(q);
    }
    if (rc < 0 && rc != SHOAL_ECANCELLED) {
        char what[64];
        put_what(what, sizeof(what), &s->open);
        log_warn("shard", "%s of model=%s for node=%s: %s", what, s->model, s->engine, e.msg);
        (void)tell(s->opener, rc, s->door->name, e.msg);
    }
    return NULL;
}

static struct session *find_session(struct shard_door *d, const uint8_t *id)
{
    struct session *s = d->sessions;
    while (s && memcmp(s->open.session, id, SHARD_MSG_SESSION) != 0)
        s = s->next;
    return s;
}

static void session_end(struct session *s)
{
    struct shard_door *d = s->door;
    pthread_mutex_lock(&d->lock);
    struct session **at = &d->sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->stop = true;
    pthread_cond_signal(&s->wake);
    if (s->out)
        shard_link_break(s->out);
    pthread_mutex_unlock(&d->lock);
    pthread_join(s->thread, NULL);
    shard_link_close(s->out);
    if (s->part.layers)
        d->o.take_memory(d->o.ctx, -(int64_t)shard_part_bytes(&s->part));
    shard_part_close(&s->part);
    for (struct queued *q = s->first, *next; q; q = next) {
        next = q->next;
        mem_free(q);
    }
    pthread_cond_destroy(&s->wake);
    buf_fini(&s->reply);
    buf_fini(&s->packed);
    mem_free(s);
}

/* ---- a connection's thread ---- */

static int session_begin(struct conn *c, const struct shard_open *o, struct err *e)
{
    struct shard_door *d = c->door;
    char hex[2 * SHA256_BYTES + 1];
    if (c->own)
        return err_set(e, SHOAL_EFORMAT, "a second OPEN on a connection");
    if (o->next.n >= sizeof(((struct session *)0)->next_address))
        return err_set(e, SHOAL_EFORMAT, "an address that is too long");
    struct session *s = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a part of a model");
    sha256_hex(hex, o->sha256);
    s->door = d;
    s->opener = c->link;
    s->open = *o;
    memcpy(s->next_address, o->next.p, o->next.n);
    s->last = &s->first;
    snprintf(s->engine, sizeof(s->engine), "%s", shard_link_peer(c->link));
    snprintf(s->model, sizeof(s->model), "%.12s", hex);
    pthread_cond_init(&s->wake, NULL);
    buf_init(&s->reply, SHARD_MSG_MAX_BODY + SHARD_MSG_HEAD);
    buf_init(&s->packed, SHARD_MSG_MAX_BODY);
    pthread_mutex_lock(&d->lock);
    int rc =
        d->stop || find_session(d, o->session) ? err_set(e, SHOAL_EBUSY, "cannot open it now") : 0;
    if (rc == 0)
        rc = thread_create(&s->thread, "shard-part", session_main, s, e);
    if (rc == 0) {
        s->next = d->sessions;
        d->sessions = s;
        c->own = s;
        memcpy(c->attached, o->session, sizeof(c->attached));
        c->chain = o->chain;
        c->has_attached = true;
    }
    pthread_mutex_unlock(&d->lock);
    if (rc < 0) {
        pthread_cond_destroy(&s->wake);
        buf_fini(&s->reply);
        mem_free(s);
    }
    return rc;
}

static int attach(struct conn *c, const struct shard_attach *a, struct err *e)
{
    struct shard_door *d = c->door;
    struct buf b;
    pthread_mutex_lock(&d->lock);
    const struct session *s = find_session(d, a->session);
    const bool ok = s && s->open.chain == a->chain && s->open.first > 0;
    pthread_mutex_unlock(&d->lock);
    if (!ok)
        return err_set(e, SHOAL_EFORMAT, "a part of another chain wants to attach");
    memcpy(c->attached, a->session, sizeof(c->attached));
    c->chain = a->chain;
    c->has_attached = true;
    buf_init(&b, 64);
    shard_echoed_put(&b);
    int rc = shard_link_send(c->link, &b, e);
    buf_fini(&b);
    return rc;
}

static int queue_step(struct conn *c, const struct shard_frame *f, struct err *e)
{
    struct shard_door *d = c->door;
    struct queued *q = mem_alloc(sizeof(*q) + f->bytes);
    if (!q)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a step");
    q->next = NULL;
    q->n = f->bytes;
    memcpy(q->bytes, f->body - SHARD_MSG_HEAD, f->bytes);
    pthread_mutex_lock(&d->lock);
    struct session *s = c->has_attached ? find_session(d, c->attached) : NULL;
    const bool ok = s && s->n_queued < MAX_QUEUED;
    if (ok) {
        *s->last = q;
        s->last = &q->next;
        s->n_queued++;
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&d->lock);
    if (ok)
        return 0;
    mem_free(q);
    return err_set(e, SHOAL_EFORMAT, s ? "too many steps at once" : "a step without a part");
}

static int answer_echo(struct conn *c, struct err *e)
{
    struct buf b;
    buf_init(&b, 64);
    shard_echoed_put(&b);
    int rc = shard_link_send(c->link, &b, e);
    buf_fini(&b);
    return rc;
}

static int take(struct conn *c, const struct shard_frame *f, struct err *e)
{
    struct shard_open open;
    struct shard_attach a;
    int rc;
    if (f->kind != SHARD_ECHO && !shard_link_is_node(c->link))
        return err_set(e, SHOAL_EINVAL, "only nodes may have parts of models");
    switch (f->kind) {
    case SHARD_ECHO:
        return answer_echo(c, e);
    case SHARD_OPEN:
        rc = shard_open_read(&open, f, e);
        return rc < 0 ? rc : session_begin(c, &open, e);
    case SHARD_ATTACH:
        rc = shard_attach_read(&a, f, e);
        return rc < 0 ? rc : attach(c, &a, e);
    case SHARD_STEP:
    case SHARD_SLICE:
        return queue_step(c, f, e);
    default:
        return err_set(e, SHOAL_EFORMAT, "a message that does not belong here");
    }
}

/* Versions are never mixed: results of two programs need not be the same bits. */
static int greet(struct conn *c, struct err *e)
{
    struct shard_door *d = c->door;
    struct shard_hello h;
    struct shard_frame f;
    struct buf b;
    int rc = shard_link_receive(c->link, &f, ANSWER_MS, e);
    if (rc == 0)
        return err_set(e, SHOAL_EIO, "it says nothing");
    if (rc > 0)
        rc = shard_hello_read(&h, &f, e);
    if (rc == 0 && !str_is(h.version, SHOAL_VERSION))
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "it runs Shoal %.*s and this node " SHOAL_VERSION
                     ": one model needs one version",
                     (int)h.version.n, h.version.p);
    if (rc < 0)
        return rc;
    buf_init(&b, 4096);
    shard_welcome_put(&b, &(struct shard_welcome){.version = {SHOAL_VERSION, strlen(SHOAL_VERSION)},
                                                  .name = {d->name, strlen(d->name)},
                                                  .memory_bytes = d->o.memory(d->o.ctx),
                                                  .rate = d->o.rate(d->o.ctx),
                                                  .n_cores = crew_cores()});
    rc = shard_link_send(c->link, &b, e);
    buf_fini(&b);
    return rc;
}

static bool stopped(struct shard_door *d)
{
    pthread_mutex_lock(&d->lock);
    bool stop = d->stop;
    pthread_mutex_unlock(&d->lock);
    return stop;
}

static int converse(struct conn *c, struct err *e)
{
    int rc = shard_link_adopt(&c->link, c->fd, c->tls, e);
    c->fd = -1;
    if (rc == 0)
        rc = greet(c, e);
    while (rc == 0 && !stopped(c->door)) {
        struct shard_frame f;
        rc = shard_link_receive(c->link, &f, TICK_MS, e);
        if (rc > 0)
            rc = take(c, &f, e);
    }
    return rc;
}

static void *conn_main(void *arg)
{
    struct conn *c = arg;
    struct shard_door *d = c->door;
    struct err e = {0};
    int rc = converse(c, &e);
    if (rc < 0 && rc != SHOAL_EIO) { /* a connection that ends is nothing unusual */
        log_warn("shard", "refused node=%s: %s", c->link ? shard_link_peer(c->link) : "unknown",
                 e.msg);
        if (c->link)
            (void)tell(c->link, rc, d->name, e.msg);
    }
    if (c->link)
        shard_link_break(c->link);
    if (c->own)
        session_end(c->own);
    shard_link_close(c->link);
    pthread_mutex_lock(&d->lock);
    struct conn **at = &d->conns;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    d->n_conns--;
    pthread_cond_signal(&d->idle);
    pthread_mutex_unlock(&d->lock);
    mem_free(c);
    return NULL;
}

void shard_door_take(void *door, int fd, struct tls_conn *tls)
{
    struct shard_door *d = door;
    struct conn *c = mem_zalloc(sizeof(*c));
    pthread_t thread;
    bool ok = false;
    pthread_mutex_lock(&d->lock);
    if (c && !d->stop && d->n_conns < MAX_CONNS) {
        *c = (struct conn){.door = d, .fd = fd, .tls = tls, .next = d->conns};
        ok = thread_create(&thread, "shard-conn", conn_main, c, NULL) == 0;
    }
    if (ok) {
        pthread_detach(thread);
        d->conns = c;
        d->n_conns++;
    }
    pthread_mutex_unlock(&d->lock);
    if (ok)
        return;
    log_warn("shard", "refused a connection: there are %u", MAX_CONNS);
    tls_conn_destroy(tls);
    close(fd);
    mem_free(c);
}

/* ---- the door ---- */

int shard_door_open(struct shard_door **out, const struct shard_door_opts *o, struct err *e)
{
    struct shard_door *d = mem_zalloc(sizeof(*d));
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "out of memory for parts of models");
    d->o = *o;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->idle, NULL);
    d->name = mem_strdup(o->name);
    d->cache_dir = o->cache_dir ? mem_strdup(o->cache_dir) : NULL;
    if (!d->name || (o->cache_dir && !d->cache_dir)) {
        shard_door_close(d);
        return err_set(e, SHOAL_ENOMEM, "out of memory for parts of models");
    }
    *out = d;
    return 0;
}

void shard_door_close(struct shard_door *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = true; /* connections look at it twice a second */
    while (d->n_conns > 0)
        pthread_cond_wait(&d->idle, &d->lock);
    pthread_mutex_unlock(&d->lock);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->idle);
    mem_free(d->name);
    mem_free(d->cache_dir);
    mem_free(d);
}
