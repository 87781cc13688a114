/* sessions.c - see sessions.h. */
#include "knowledge/sessions.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/state_file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/room.h"
#include "flow/dispatch.h"
#include "flow/routing_choice.h"
#include "flow/sink_front.h"
#include "knowledge/history.h"
#include "knowledge/offload.h"
#include "knowledge/session_note.h"
#include "store/session/session_keys.h"
#include "store/session/session_store.h"

#define MAX_LOCAL 4096u /* conversations buffered while the store is unavailable */
#define MAX_LOCAL_BYTES ((size_t)64 << 20)
#define MIN_TOKENS 32u /* minimum of earlier messages; below, none are sent */
#define TRIES 4        /* against other gateways that save the same conversation */
#define MAX_ANSWER_BYTES ((size_t)4 << 20)
#define MAX_TOLD_BYTES ((size_t)1 << 20)
/* With a model for notes, messages stay until they are in a note, but not longer than until there
 * are this many times history_tokens: the model may be unable to write one. */
#define UNNOTED_TIMES 4u
#define NOTE_PRIORITY (-100) /* nobody waits for it */

/* Turns that could not be saved, since `version`. */
struct pending {
    char tenant[64], id[64];
    char *text; /* the messages of the turns, as history_write has them */
    size_t n;
};

struct sessions {
    struct dispatch stage; /* first */
    struct sessions_opts opts;
    char place[PATH_MAX], key_file[PATH_MAX], summary[128];
    pthread_mutex_t lock; /* guards the rest */
    struct session_keys *keys;
    struct session_store *store; /* NULL: not opened yet */
    struct pending *pending;
    uint32_t n_pending, cap_pending;
    size_t pending_bytes;
    struct sessions_counts counts;
    bool away;
};

int sessions_open(struct sessions **out, const struct sessions_opts *o, struct err *e)
{
    char path[PATH_MAX - 8];
    struct sessions *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for sessions");
    s->opts = *o;
    if (o->summary) {
        snprintf(s->summary, sizeof(s->summary), "%s", o->summary);
        s->opts.summary = s->summary;
    }
    pthread_mutex_init(&s->lock, NULL);
    bool ok = true;
    if (o->place)
        snprintf(s->place, sizeof(s->place), "%s", o->place);
    else if ((ok = state_file_path(path, sizeof(path), "sessions.db")))
        snprintf(s->place, sizeof(s->place), "sqlite:%s", path);
    if (o->key_file)
        snprintf(s->key_file, sizeof(s->key_file), "%s", o->key_file);
    else
        ok = ok && state_file_path(s->key_file, sizeof(s->key_file), "sessions.key");
    if (ok && strncmp(s->place, "sqlite:", 7) != 0 && strncmp(s->place, "redis://", 8) != 0) {
        int rc = err_set(e, SHOAL_EINVAL,
                         "'%.100s' is not a session store: use sqlite:PATH or redis://HOST:PORT",
                         s->place);
        sessions_close(s);
        return rc;
    }
    if (!ok) {
        sessions_close(s);
        return err_set(e, SHOAL_EINVAL,
                       "there is no state folder for sessions: set sessions.store and "
                       "sessions.key_file in the configuration");
    }
    *out = s;
    return 0;
}

void sessions_close(struct sessions *s)
{
    if (!s)
        return;
    if (s->n_pending > 0)
        log_warn("sessions", "%u conversations could not be saved: %s was unavailable",
                 s->n_pending, s->place);
    for (uint32_t i = 0; i < s->n_pending; i++)
        mem_free(s->pending[i].text);
    mem_free(s->pending);
    session_store_close(s->store);
    session_keys_close(s->keys);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

/* On first use. */
static int open_store(struct sessions *s, struct session_store **out, struct err *e)
{
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    if (!s->store) {
        if (strncmp(s->place, "sqlite:", 7) == 0)
            state_file_folders(s->place + 7);
        state_file_folders(s->key_file);
        if (!s->keys)
            rc = session_keys_open(&s->keys, s->key_file, e);
        const struct session_store_opts o = {
            .place = s->place, .keys = s->keys, .ttl_s = s->opts.ttl_s};
        if (rc == 0)
            rc = session_store_open(&s->store, &o, e);
    }
    *out = s->store;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Logs the change, once. */
static void note_away(struct sessions *s, bool away, const char *why)
{
    pthread_mutex_lock(&s->lock);
    bool changed = s->away != away;
    s->away = away;
    pthread_mutex_unlock(&s->lock);
    if (changed && away)
        log_warn("sessions",
                 "%s; conversations continue with the turns that this process has buffered", why);
    else if (changed)
        log_info("sessions", "the session store is back");
}

void sessions_counts(struct sessions *s, struct sessions_counts *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->counts;
    out->unsaved = s->n_pending;
    pthread_mutex_unlock(&s->lock);
}

/* ---- what waits for the place ---- */

/* The lock is held. */
static struct pending *find_pending(struct sessions *s, const char *tenant, const char *id)
{
    for (uint32_t i = 0; i < s->n_pending; i++)
        if (strcmp(s->pending[i].tenant, tenant) == 0 && strcmp(s->pending[i].id, id) == 0)
            return &s->pending[i];
    return NULL;
}

/* The lock is held; takes the text. */
static bool put_pending(struct sessions *s, const char *tenant, const char *id, char *text,
                        size_t n)
{
    struct pending *p = find_pending(s, tenant, id);
    if (!p && (s->n_pending == MAX_LOCAL || s->pending_bytes + n > MAX_LOCAL_BYTES))
        return false;
    if (!p && !room_make32(&s->pending, &s->cap_pending, s->n_pending, sizeof(*s->pending), 16))
        return false;
    if (!p) {
        p = &s->pending[s->n_pending++];
        *p = (struct pending){.n = 0};
        snprintf(p->tenant, sizeof(p->tenant), "%s", tenant);
        snprintf(p->id, sizeof(p->id), "%s", id);
    }
    s->pending_bytes = s->pending_bytes - p->n + n;
    mem_free(p->text);
    p->text = text;
    p->n = n;
    return true;
}

/* Out of the list; the caller frees text. */
static bool take_pending(struct sessions *s, const char *tenant, const char *id,
                         struct pending *out)
{
    pthread_mutex_lock(&s->lock);
    struct pending *p = s->n_pending == 0 ? NULL : id ? find_pending(s, tenant, id) : s->pending;
    if (p) {
        *out = *p;
        s->pending_bytes -= p->n;
        *p = s->pending[--s->n_pending];
    }
    pthread_mutex_unlock(&s->lock);
    return p != NULL;
}

/* ---- loading and saving, on the pool ---- */

/* The stored messages; SHOAL_EIO: the store is unavailable. */
static int load(struct sessions *s, const char *tenant, const char *id, struct history *h,
                uint64_t *version, struct arena *a, struct err *e)
{
    struct session_store *store;
    struct buf text;
    *h = (struct history){.n = 0};
    *version = 0;
    buf_init(&text, 2 * SESSION_STORE_MAX_BYTES);
    int rc = open_store(s, &store, e);
    if (rc == 0)
        rc = session_store_load(store, tenant, id, &text, version, e);
    if (rc == 0 && *version > 0)
        rc = history_read(h, buf_str(&text), text.len, a, e);
    buf_fini(&text);
    return rc;
}

/* Writes a conversation over its version. SHOAL_EBUSY: another one was faster. */
static int save(struct sessions *s, const char *tenant, const char *id, const struct history *h,
                uint64_t *version, struct err *e)
{
    struct session_store *store;
    struct buf text;
    buf_init(&text, 2 * SESSION_STORE_MAX_BYTES);
    history_write(h, &text);
    int rc = text.rc < 0 ? err_set(e, text.rc, "the conversation is too long") : 0;
    if (rc == 0)
        rc = open_store(s, &store, e);
    if (rc == 0)
        rc = session_store_save(store, tenant, id, buf_str(&text), text.len, version, e);
    buf_fini(&text);
    return rc;
}

/* Appends messages to the stored ones, whoever wrote them. out: all of them, in the arena. */
static int append(struct sessions *s, const char *tenant, const char *id,
                  const struct chat_message *add, uint32_t n_add, struct arena *a,
                  struct history *out, uint64_t *version, struct err *e)
{
    const uint32_t most = s->opts.history_tokens * (s->opts.summary ? UNNOTED_TIMES : 1);
    struct history old;
    int rc = SHOAL_EBUSY;
    for (int i = 0; i < TRIES && rc == SHOAL_EBUSY; i++) {
        rc = load(s, tenant, id, &old, version, a, e);
        if (rc == SHOAL_EFORMAT) { /* another key: start afresh, replacing it */
            log_warn("sessions", "%s", e->msg);
            old = (struct history){.n = 0};
            rc = 0;
        }
        if (rc == 0)
            rc = history_join(out, &old, add, n_add, a, e);
        if (rc < 0)
            break;
        history_trim(out, most, n_add);
        rc = save(s, tenant, id, out, version, e);
    }
    return rc;
}

/* Saves buffered turns when the store is back; stops at the first failure. */
static void flush(struct sessions *s)
{
    struct pending p;
    bool more = true;
    while (more && take_pending(s, NULL, NULL, &p)) {
        struct arena a;
        struct history h, all;
        uint64_t version;
        struct err e = {0};
        arena_init(&a, (size_t)64 << 20);
        int rc = history_read(&h, p.text, p.n, &a, &e);
        if (rc == 0)
            rc = append(s, p.tenant, p.id, h.messages, h.n, &a, &all, &version, &e);
        if (rc < 0) {
            pthread_mutex_lock(&s->lock);
            more = false;
            bool kept = put_pending(s, p.tenant, p.id, p.text, p.n);
            pthread_mutex_unlock(&s->lock);
            p.text = kept ? NULL : p.text;
        }
        mem_free(p.text);
        arena_fini(&a);
    }
}

/* Buffers the turn, after those already waiting. */
static int hold_back(struct sessions *s, const char *tenant, const char *id,
                     const struct chat_message *add, uint32_t n_add, struct arena *a, struct err *e)
{
    struct history old = {.n = 0}, all;
    struct buf text;
    int rc = 0;
    buf_init(&text, SESSION_STORE_MAX_BYTES);
    pthread_mutex_lock(&s->lock);
    struct pending *p = find_pending(s, tenant, id);
    if (p)
        rc = history_read(&old, p->text, p->n, a, e);
    if (rc == 0)
        rc = history_join(&all, &old, add, n_add, a, e);
    if (rc == 0) {
        history_trim(&all, s->opts.history_tokens, n_add);
        history_write(&all, &text);
        size_t n;
        char *bytes = buf_take(&text, &n);
        if (!bytes || !put_pending(s, tenant, id, bytes, n)) {
            mem_free(bytes);
            rc = err_set(e, SHOAL_ELIMIT, "too many conversations are waiting to be saved");
        }
    }
    pthread_mutex_unlock(&s->lock);
    buf_fini(&text);
    return rc;
}

/* ---- a request ---- */

/* In the arena of the request that the client sent; a copy of that one runs. */
struct turn {
    struct flow_job job; /* first */
    struct sessions *sessions;
    struct flow_owner *owner;
    struct request *request; /* the client's: its sink lives in it */
    struct sink_front front;
    struct offload offload;
    struct history before;
    uint32_t max_tokens; /* limit of earlier messages, for this attempt */
    bool noted;          /* the note is part of this attempt */
    uint32_t n_sent;     /* messages of it */
    bool away, cancelled;
    bool too_long; /* for the model: retry with fewer messages */
    struct buf answer;
    struct sink_done done;
    bool has_done;
    struct routing_ensemble *ensemble; /* of the decision shown to the client; NULL: none */
    /* the note that is due after the turn */
    uint64_t version; /* of the saved conversation */
    uint32_t n_noted; /* its first messages, which the note replaces; 0: none is due */
    struct buf told;  /* their text */
    const char *new_note;
    struct session_note note;
    int rc;
    struct err error;
};

static struct turn *turn_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct turn, front.sink);
}

/* The client's part is over; the turn itself may go on. */
static void turn_leave(struct turn *t)
{
    sink_front_close(&t->front);
    t->front.to = NULL;
}

static void turn_close(struct turn *t)
{
    struct flow_owner *o = t->owner;
    struct request *r = t->request;
    buf_fini(&t->answer);
    buf_fini(&t->told);
    o->n_jobs--;
    if (t->front.to)
        turn_leave(t);
    flow_give_request(o, r);
}

static const char *keep(struct turn *t, const char *text)
{
    return text ? request_copy(t->request, text, strlen(text)) : NULL;
}

/* What events point to ends with the inner request; codecs may look at it until they are closed. */

/* Copies the steps of an ensemble so far; more may follow until the answer is complete. */
static void keep_steps(struct turn *t, const struct routing_choice *choice)
{
    const struct routing_ensemble *from = choice ? choice->ensemble : NULL;
    struct routing_ensemble *to = t->ensemble;
    if (!to || !from)
        return;
    *to = *from;
    to->kind = keep(t, from->kind);
    for (uint32_t i = 0; i < to->n_steps; i++) {
        to->steps[i].model = keep(t, from->steps[i].model);
        to->steps[i].what = keep(t, from->steps[i].what);
    }
}

/* A copy of the decision that outlives the running request; NULL: out of memory. */
static struct routing_choice *keep_choice(struct turn *t, const struct routing_choice *from)
{
    struct arena *a = &t->request->arena;
    struct routing_choice *to = arena_zalloc(a, sizeof(*to));
    struct routing_candidate *list = arena_zalloc_n(a, from->n_candidates, sizeof(*list));
    if (!to || !list)
        return NULL;
    *to = *from;
    to->route = keep(t, from->route);
    to->model = keep(t, from->model);
    to->node = keep(t, from->node);
    to->domain = keep(t, from->domain);
    to->policy = keep(t, from->policy);
    for (uint32_t i = 0; i < from->n_candidates; i++) {
        list[i] = from->candidates[i];
        list[i].model = keep(t, list[i].model);
        list[i].node = keep(t, list[i].node);
    }
    to->candidates = from->candidates ? list : NULL;
    if (from->ensemble)
        t->ensemble = arena_zalloc(a, sizeof(*t->ensemble));
    keep_steps(t, from);
    to->ensemble = t->ensemble;
    return to;
}

/* A start with names that outlive the running request. */
static struct sink_start keep_start(struct turn *t, const struct sink *s,
                                    const struct sink_start *e)
{
    struct sink_start copy = *e;
    copy.model = keep(t, e->model);
    copy.version = keep(t, e->version);
    copy.node = keep(t, e->node);
    copy.sum = e->sum ? (const uint8_t *)request_copy(t->request, (const char *)e->sum, 32) : NULL;
    copy.question = NULL; /* the answer depends on the conversation */
    if (s->routed)
        t->front.to->routed = keep_choice(t, s->routed);
    copy.session_away = t->away;
    return copy;
}

/* Held back until it is sure that this attempt answers. */
static void on_start(struct sink *s, const struct sink_start *e)
{
    struct turn *t = turn_of(s);
    const struct sink_start start = keep_start(t, s, e);
    sink_front_hold(&t->front, &start, t->front.to->routed);
}

/* The other answer is the one that is stored. */
static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct turn *t = turn_of(s);
    struct sink *to = t->front.to;
    buf_clear(&t->answer);
    const struct sink_start start = keep_start(t, s, e->start);
    const struct sink_replace copy = {.start = &start, .why = keep(t, e->why)};
    if (t->front.started)
        to->ops->replace(to, &copy);
    else
        sink_front_hold(&t->front, &start, to->routed);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct turn *t = turn_of(s);
    if (e->choice == 0 && !e->echo)
        buf_put(&t->answer, e->text, e->text_bytes);
    sink_front_token(s, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct turn *t = turn_of(s);
    struct sink *to = sink_front_behind(s);
    if (!e->last) {
        to->ops->done(to, e);
        return;
    }
    keep_steps(t, s->routed);
    t->done = *e;
    t->done.steps = NULL;
    t->done.n_steps = 0;
    t->has_done = true; /* passed on when the turn is saved */
}

/* Only the executing node knows the model's context. A conversation that has outgrown it continues
 * with its last messages; otherwise it would fail permanently. */
static bool may_shorten(const struct turn *t, const struct failure *f)
{
    return f->reason && strcmp(f->reason, "context_length_exceeded") == 0 && !t->front.started &&
           !t->cancelled && t->max_tokens > 0 &&
           (t->noted || t->n_sent > t->request->generate.chat.n_messages);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct turn *t = turn_of(s);
    t->too_long = may_shorten(t, f);
    if (t->too_long)
        return;
    struct sink *to = sink_front_behind(s);
    keep_steps(t, s->routed);
    to->ops->fail(to, f);
}

static void on_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    keep_steps(turn_of(s), s->routed);
    sink_front_broke_off(s, e, code);
}

/* ---- the note of what is dropped, after the turn: nobody waits for it ---- */

/* On the pool. Half of the history is left, so that a note is not due after every turn. */
static void plan_note(struct turn *t, const struct history *all)
{
    const uint32_t most = t->sessions->opts.history_tokens;
    if (!t->sessions->opts.summary || history_excess(all, most, 1) == 0)
        return;
    t->n_noted = history_excess(all, most / 2, 1);
    history_tell(all, t->n_noted, &t->told);
}

/* The messages leave the conversation, unless it has changed meanwhile: then the next turn plans
 * again. */
static void save_note(void *ctx)
{
    struct turn *t = ctx;
    const struct request *r = t->request;
    struct history h;
    uint64_t version;
    t->rc =
        load(t->sessions, r->client.name, r->session, &h, &version, &t->request->arena, &t->error);
    if (t->rc < 0 || version != t->version)
        return;
    history_drop(&h, t->n_noted);
    h.note = t->new_note;
    t->rc = save(t->sessions, r->client.name, r->session, &h, &version, &t->error);
}

static void on_note_saved(void *ctx)
{
    struct turn *t = ctx;
    if (t->rc < 0 && t->rc != SHOAL_EBUSY)
        log_warn("sessions", "a note was not saved: %s", t->error.msg);
    turn_close(t);
}

static void on_note(struct session_note *x, const struct failure *f)
{
    struct turn *t = EXECUTOR_OF(x, struct turn, note);
    if (f)
        log_warn("sessions", "%s writes no note: %s", x->model, f->message);
    t->new_note = f ? NULL : request_copy_utf8(t->request, buf_str(&x->note), x->note.len, NULL);
    t->rc = 0;
    t->offload = (struct offload){.work = save_note, .then = on_note_saved, .ctx = t};
    if (!t->new_note || offload_run(&t->offload, t->owner) < 0)
        turn_close(t);
}

static void write_note(struct turn *t)
{
    const struct request *r = t->request;
    t->note = (struct session_note){.owner = t->owner,
                                    .model = t->sessions->opts.summary,
                                    .text = buf_str(&t->told),
                                    .text_bytes = t->told.len,
                                    .done = on_note};
    t->note.who = (struct embedding_who){.client = r->client, .priority = NOTE_PRIORITY};
    memcpy(t->note.who.id, r->id, sizeof(r->id));
    t->note.who.spans = r->spans;
    session_note_run(&t->note);
}

/* ---- the end of a turn ---- */

static void save_it(void *ctx)
{
    struct turn *t = ctx;
    struct sessions *s = t->sessions;
    const struct request *r = t->request;
    const struct chat *c = &r->generate.chat;
    struct chat_message *add = arena_zalloc_n(&t->request->arena, c->n_messages + 1, sizeof(*add));
    struct history all;
    if (!add || t->answer.rc < 0) {
        t->rc = err_set(&t->error, SHOAL_ENOMEM, "out of memory for a conversation");
        return;
    }
    memcpy(add, c->messages, c->n_messages * sizeof(*add));
    add[c->n_messages] = (struct chat_message){
        .role = "assistant", .content = buf_str(&t->answer), .content_bytes = t->answer.len};
    uint32_t n = c->n_messages + 1;
    pthread_mutex_lock(&s->lock);
    bool waits = find_pending(s, r->client.name, r->session) != NULL;
    pthread_mutex_unlock(&s->lock);
    if (waits)
        flush(s); /* in order */
    t->rc = append(s, r->client.name, r->session, add, n, &t->request->arena, &all, &t->version,
                   &t->error);
    note_away(s, t->rc == SHOAL_EIO, t->error.msg);
    if (t->rc == 0)
        plan_note(t, &all);
    if (t->rc < 0)
        t->rc = hold_back(s, r->client.name, r->session, add, n, &t->request->arena, &t->error);
    else
        flush(s);
    pthread_mutex_lock(&s->lock);
    s->counts.turns += t->rc == 0;
    pthread_mutex_unlock(&s->lock);
}

static void on_saved(void *ctx)
{
    struct turn *t = ctx;
    if (t->rc < 0)
        log_warn("sessions", "a turn was not saved: %s", t->error.msg);
    if (!t->cancelled)
        t->front.to->ops->done(t->front.to, &t->done);
    if (t->n_noted == 0 || t->told.rc < 0) {
        turn_close(t);
        return;
    }
    turn_leave(t);
    write_note(t);
}

static void turn_fail(struct turn *t, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    if (!t->cancelled)
        t->front.to->ops->fail(t->front.to, &f);
    turn_close(t);
}

static void shorten_it(void *ctx)
{
    struct turn *t = ctx;
    t->max_tokens = t->max_tokens > MIN_TOKENS ? t->max_tokens / 2 : 0;
}

static void on_loaded(void *turn);

static void on_closed(struct sink *s)
{
    struct turn *t = turn_of(s);
    if (t->too_long) { /* not from here: the request that ends is still in use */
        t->too_long = false;
        s->job = NULL;
        t->offload = (struct offload){.work = shorten_it, .then = on_loaded, .ctx = t};
        if (offload_run(&t->offload, t->owner) < 0)
            turn_fail(t, SHOAL_EBUSY, "too many conversations are waiting: try again later");
        return;
    }
    if (!t->has_done) {
        turn_close(t);
        return;
    }
    t->rc = 0;
    t->offload = (struct offload){.work = save_it, .then = on_saved, .ctx = t};
    if (offload_run(&t->offload, t->owner) < 0) { /* the pool is full: better late than never */
        save_it(t);
        on_saved(t);
    }
}

/* ---- the beginning ---- */

static void load_it(void *ctx)
{
    struct turn *t = ctx;
    struct sessions *s = t->sessions;
    const struct request *r = t->request;
    struct history here = {.n = 0}, both;
    struct arena *a = &t->request->arena;
    uint64_t version;
    int rc = load(s, r->client.name, r->session, &t->before, &version, a, &t->error);
    note_away(s, rc == SHOAL_EIO, t->error.msg);
    t->away = rc < 0;
    if (rc < 0 && rc != SHOAL_EIO)
        log_warn("sessions", "%s", t->error.msg);
    pthread_mutex_lock(&s->lock);
    s->counts.degraded += t->away;
    struct pending *p = find_pending(s, r->client.name, r->session);
    if (p && history_read(&here, p->text, p->n, a, &t->error) == 0 &&
        history_join(&both, &t->before, here.messages, here.n, a, &t->error) == 0)
        t->before = both;
    pthread_mutex_unlock(&s->lock);
}

/* The copy that runs: with all messages. */
static void on_loaded(void *ctx)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = sink_front_prompt,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = on_broke_off,
                                        .may_replace = sink_front_may_replace,
                                        .replace = on_replace,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    struct turn *t = ctx;
    struct request *r = t->request, *copy = t->cancelled ? NULL : flow_take_request(t->owner);
    struct history all;
    if (!copy) {
        turn_fail(t, t->cancelled ? SHOAL_ECANCELLED : SHOAL_ENOMEM, "out of memory");
        return;
    }
    int rc = history_join(&all, &t->before, r->generate.chat.messages, r->generate.chat.n_messages,
                          &r->arena, &t->error);
    if (rc < 0) {
        flow_give_request(t->owner, copy);
        turn_fail(t, rc, t->error.msg);
        return;
    }
    history_trim(&all, t->max_tokens, r->generate.chat.n_messages);
    t->n_sent = all.n;
    t->noted = t->max_tokens > 0 && all.note; /* it may be what is too long */
    if (t->max_tokens > 0 && history_use_note(&all, &r->arena, &t->error) < 0)
        log_warn("sessions", "%s", t->error.msg); /* it goes on without it */
    request_borrow(copy, r);                      /* which stays until the turn is closed */
    copy->generate.chat.messages = all.messages;
    copy->generate.chat.n_messages = all.n;
    copy->input_bytes = 0;
    for (uint32_t i = 0; i < all.n; i++)
        copy->input_bytes += all.messages[i].content_bytes;
    sink_front_init(&t->front, &ops, t->front.to);
    request_pass_on(t->owner, copy, &t->front.sink);
}

static void on_cancel(struct flow_job *j)
{
    struct turn *t = (struct turn *)(void *)j;
    if (t->cancelled)
        return;
    if (!t->has_done) /* a complete answer is stored even if its reader has gone */
        t->cancelled = true;
    if (t->front.sink.job)
        flow_cancel(&t->front.sink);
}

static void on_resume(struct flow_job *j)
{
    struct turn *t = (struct turn *)(void *)j;
    if (t->front.sink.job)
        flow_resume(&t->front.sink);
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *to)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct sessions *s = (struct sessions *)(void *)d; /* its first member */
    struct turn *t = arena_zalloc(&r->arena, sizeof(*t));
    if (!t) {
        flow_refuse_nomem(o, r, to);
        return true;
    }
    *t = (struct turn){.job = {&ops},
                       .sessions = s,
                       .owner = o,
                       .request = r,
                       .front.to = to,
                       .max_tokens = s->opts.history_tokens};
    buf_init(&t->answer, MAX_ANSWER_BYTES);
    buf_init(&t->told, MAX_TOLD_BYTES);
    to->job = &t->job;
    o->n_jobs++;
    t->offload = (struct offload){.work = load_it, .then = on_loaded, .ctx = t};
    if (offload_run(&t->offload, o) < 0)
        turn_fail(t, SHOAL_EBUSY, "too many conversations are waiting: try again later");
    return true;
}

/* ---- for the gateway ---- */

int sessions_show(struct sessions *s, const char *tenant, const char *id, struct buf *out,
                  struct err *e)
{
    struct history h;
    struct arena a;
    uint64_t version;
    arena_init(&a, (size_t)64 << 20);
    int rc = load(s, tenant, id, &h, &version, &a, e);
    if (rc == 0 && version == 0)
        rc = err_set(e, SHOAL_ENOTFOUND, "there is no session '%s'", id);
    if (rc == 0)
        history_write(&h, out);
    arena_fini(&a);
    return rc;
}

int sessions_forget(struct sessions *s, const char *tenant, const char *id, struct err *e)
{
    struct session_store *store;
    struct pending p;
    bool waited = take_pending(s, tenant, id, &p);
    if (waited)
        mem_free(p.text);
    int rc = open_store(s, &store, e);
    if (rc == 0)
        rc = session_store_delete(store, tenant, id, e);
    return rc == SHOAL_ENOTFOUND && waited ? 0 : rc;
}

struct dispatch *sessions_stage(struct sessions *s)
{
    static const struct dispatch_ops ops = {.run = take};
    s->stage.ops = &ops;
    return &s->stage;
}
