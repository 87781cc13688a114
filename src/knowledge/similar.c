/* similar.c - see similar.h. */
#include "knowledge/similar.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "flow/dispatch.h"
#include "flow/sink_front.h"
#include "host/sha256.h"
#include "knowledge/embedding.h"
#include "knowledge/same_ask.h"
#include "router/router.h"

#define MAX_PROMPT_BYTES 2000u
#define MAX_ANSWER_BYTES ((size_t)64 << 10)
#define MAX_TRIES 8u /* nearest ones to try, if they ask something else */

struct entry {
    uint8_t scope[SHA256_BYTES];
    uint64_t expires_ns;
    char *prompt, *answer;
    float *vector;
    size_t prompt_bytes, answer_bytes;
    uint32_t n_dims, prompt_tokens, generated_tokens;
    char model[128];
    char embedder[64]; /* version of the model that made the vector; "": not known */
};

struct similar {
    struct dispatch stage; /* first */
    struct similar_opts opts;
    char model[128];
    pthread_mutex_t lock; /* guards the rest */
    struct entry list[SIMILAR_MAX_ENTRIES];
    uint32_t n, next; /* next: the one to be replaced when all are used */
    size_t bytes;
    struct similar_counts counts;
};

int similar_create(struct similar **out, const struct similar_opts *o, struct err *e)
{
    struct similar *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the semantic cache");
    s->opts = *o;
    snprintf(s->model, sizeof(s->model), "%s", o->model);
    s->opts.model = s->model;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return 0;
}

static size_t bytes_of(const struct entry *x)
{
    return x->prompt_bytes + x->answer_bytes + x->n_dims * sizeof(float);
}

/* The lock is held. */
static void clear(struct similar *s, struct entry *x)
{
    s->bytes -= bytes_of(x);
    mem_free(x->prompt);
    mem_free(x->answer);
    mem_free(x->vector);
    *x = (struct entry){.n_dims = 0};
}

void similar_destroy(struct similar *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        clear(s, &s->list[i]);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

void similar_counts(struct similar *s, struct similar_counts *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->counts;
    out->n_entries = 0;
    for (uint32_t i = 0; i < s->n; i++)
        out->n_entries += s->list[i].answer != NULL;
    pthread_mutex_unlock(&s->lock);
}

/* ---- which requests ---- */

static bool plain(const struct request *r)
{
    const struct request_generate *g = &r->generate;
    const struct chat *c = &g->chat;
    const struct chat_message *last = c->n_messages ? &c->messages[c->n_messages - 1] : NULL;
    return r->kind == REQUEST_GENERATE && last && strcmp(last->role, "user") == 0 &&
           last->content_bytes > 0 && last->content_bytes <= MAX_PROMPT_BYTES && g->n == 1 &&
           c->n_vars == 0 && c->n_tools == 0 && !c->template &&
           g->constraint.kind == SHOAL_CONSTRAINT_NONE && !g->resume && !g->echo && !g->special &&
           !g->ignore_end && !g->prompt_only && !g->sampling.logprobs && g->sampling.n_bias == 0 &&
           !r->no_cache && !r->explain && !r->dry && !r->version && !r->has_once_key;
}

/* The threshold of the request's route, if the answer may come from the cache; 0: it may not. */
static double threshold_of(const struct flow_owner *o, const struct request *r)
{
    const struct router_route *route =
        o->routes && r->model ? router_table_find_for(o->routes, r->model, r->client.name) : NULL;
    bool may = route && route->similar > 0 && !route->no_cache && plain(r);
    return may ? route->similar : 0;
}

static void add_text(struct sha256 *h, const char *p, size_t n)
{
    uint64_t len = n;
    sha256_add(h, &len, sizeof(len));
    sha256_add(h, p, n);
}

/* Everything that decides the answer but the last message. */
static bool scope_of(uint8_t out[SHA256_BYTES], const struct request *r)
{
    const struct request_generate *g = &r->generate;
    const float numbers[] = {g->sampling.temperature,
                             g->sampling.top_p,
                             g->sampling.min_p,
                             g->sampling.repeat_penalty,
                             g->sampling.presence_penalty,
                             g->sampling.frequency_penalty,
                             g->adapter_scale};
    const uint64_t counts[] = {g->max_tokens,
                               g->sampling.top_k,
                               g->sampling.repeat_last_n,
                               g->has_seed ? g->sampling.seed + 1 : 0,
                               g->n_stop,
                               g->chat.n_messages};
    struct sha256 h;
    sha256_begin(&h);
    add_text(&h, r->model, strlen(r->model));
    add_text(&h, r->client.name, strlen(r->client.name));
    sha256_add(&h, numbers, sizeof(numbers));
    sha256_add(&h, counts, sizeof(counts));
    for (uint32_t i = 0; i < g->n_stop; i++)
        add_text(&h, g->stop[i], strlen(g->stop[i]));
    for (uint32_t i = 0; i + 1 < g->chat.n_messages; i++) {
        add_text(&h, g->chat.messages[i].role, strlen(g->chat.messages[i].role));
        add_text(&h, g->chat.messages[i].content ? g->chat.messages[i].content : "",
                 g->chat.messages[i].content_bytes);
    }
    return sha256_end(&h, out);
}

/* ---- a request ---- */

struct look {            /* in the arena of its request */
    struct flow_job job; /* first; while the text is embedded */
    struct similar *similar;
    struct flow_owner *owner;
    struct request *request;
    struct sink_front front;
    struct embedding embedding;
    struct str text;
    uint8_t scope[SHA256_BYTES];
    double threshold;
    bool cancelled;
    /* what came, to be kept */
    struct buf answer;
    char model[128];
    /* what was kept */
    const char *kept;
    size_t kept_bytes;
    uint32_t prompt_tokens, generated_tokens;
};

static struct look *look_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct look, front.sink);
}

/* ---- keeping ---- */

static void keep(struct look *x, const struct sink_done *e)
{
    struct similar *s = x->similar;
    struct entry n = {.prompt = mem_strndup(x->text.p, x->text.n),
                      .answer = mem_strndup(buf_str(&x->answer), x->answer.len),
                      .vector = x->embedding.vectors,
                      .prompt_bytes = x->text.n,
                      .answer_bytes = x->answer.len,
                      .n_dims = x->embedding.n_dims,
                      .prompt_tokens = e->prompt_tokens,
                      .generated_tokens = e->generated_tokens,
                      .expires_ns = clock_ns() + s->opts.ttl_ns};
    memcpy(n.scope, x->scope, sizeof(n.scope));
    memcpy(n.model, x->model, sizeof(n.model));
    memcpy(n.embedder, x->embedding.version, sizeof(n.embedder));
    if (!n.prompt || !n.answer || !n.vector || bytes_of(&n) > s->opts.max_bytes) {
        mem_free(n.prompt);
        mem_free(n.answer);
        return;
    }
    x->embedding.vectors = NULL; /* the entry's now */
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n && s->bytes + bytes_of(&n) > s->opts.max_bytes; i++)
        clear(s, &s->list[(s->next + i) % s->n]);
    struct entry *at = s->n < SIMILAR_MAX_ENTRIES ? &s->list[s->n++] : &s->list[s->next++ % s->n];
    clear(s, at);
    *at = n;
    s->bytes += bytes_of(at);
    pthread_mutex_unlock(&s->lock);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct look *x = look_of(s);
    snprintf(x->model, sizeof(x->model), "%s", e->model);
    sink_front_start(s, e);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct look *x = look_of(s);
    buf_put(&x->answer, e->text, e->text_bytes);
    sink_front_token(s, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct look *x = look_of(s);
    if (e->finish == SHOAL_FINISH_STOP && x->answer.rc == 0 && x->answer.len > 0)
        keep(x, e);
    sink_front_done(s, e);
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    struct look *x = look_of(s);
    buf_clear(&x->answer);
    snprintf(x->model, sizeof(x->model), "%s", e->start->model);
    sink_front_replace(s, e);
}

static void on_closed(struct sink *s)
{
    struct look *x = look_of(s);
    mem_free(x->embedding.vectors);
    buf_fini(&x->answer);
    sink_front_close(&x->front); /* the request, and x in it, is freed after this */
}

/* ---- looking ---- */

static float dot(const float *a, const float *b, uint32_t n)
{
    float s = 0;
    for (uint32_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* An unknown version does not count as different. */
static bool other_embedder(const struct entry *k, const struct embedding *m)
{
    return k->embedder[0] && m->version[0] && strcmp(k->embedder, m->version) != 0;
}

/* The nearest entry that is similar enough and asks the same question: its answer, in the request's
 * arena. */
static bool find(struct look *x)
{
    struct similar *s = x->similar;
    float below = 2;
    uint64_t now = clock_ns();
    const struct entry *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (uint32_t tries = 0; tries < MAX_TRIES && !found; tries++) {
        const struct entry *best = NULL;
        float near = (float)x->threshold;
        for (uint32_t i = 0; i < s->n; i++) {
            const struct entry *k = &s->list[i];
            if (!k->answer || k->expires_ns <= now || k->n_dims != x->embedding.n_dims ||
                other_embedder(k, &x->embedding) ||
                memcmp(k->scope, x->scope, sizeof(k->scope)) != 0)
                continue;
            float score = dot(k->vector, x->embedding.vectors, k->n_dims);
            if (score >= near && score < below) {
                near = score;
                best = k;
            }
        }
        if (!best)
            break;
        below = near;
        if (same_ask(x->text.p, x->text.n, best->prompt, best->prompt_bytes, NULL))
            found = best;
        else
            s->counts.refused++;
    }
    s->counts.hits += found != NULL;
    s->counts.misses += !found;
    if (found) {
        x->kept = request_copy(x->request, found->answer, found->answer_bytes);
        x->kept_bytes = found->answer_bytes;
        x->prompt_tokens = found->prompt_tokens;
        x->generated_tokens = found->generated_tokens;
        memcpy(x->model, found->model, sizeof(x->model));
    }
    pthread_mutex_unlock(&s->lock);
    return found && request_rc(x->request) == 0;
}

static void replay(struct look *x)
{
    struct flow_owner *o = x->owner;
    struct request *r = x->request;
    struct sink *to = x->front.to;
    const struct sink_start start = {.model = x->model, .version = "", .cache = SINK_CACHE_SIMILAR};
    const struct sink_token token = {.token = -1, .text = x->kept, .text_bytes = x->kept_bytes};
    const struct sink_done done = {
        .finish = SHOAL_FINISH_STOP,
        .prompt_tokens = x->prompt_tokens,
        .cached_tokens = x->prompt_tokens,
        .generated_tokens = x->generated_tokens,
        .last = true,
        .usage = {x->prompt_tokens, x->prompt_tokens, x->generated_tokens}};
    mem_free(x->embedding.vectors);
    buf_fini(&x->answer);
    to->job = NULL;
    to->ops->start(to, &start);
    to->ops->token(to, &token);
    to->ops->done(to, &done);
    to->ops->closed(to);
    flow_give_request(o, r);
}

static void run(struct look *x)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = sink_front_prompt,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = sink_front_fail,
                                        .closed = on_closed,
                                        .broke_off = sink_front_broke_off,
                                        .may_replace = sink_front_may_replace,
                                        .replace = on_replace,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    sink_front_open(&x->front, &ops, x->front.to);
    request_pass_on(x->owner, x->request, &x->front.sink);
}

static void on_embedded(struct embedding *m, const struct failure *f)
{
    struct look *x = EXECUTOR_OF(m, struct look, embedding);
    if (x->cancelled) {
        struct flow_owner *o = x->owner;
        struct request *r = x->request;
        mem_free(m->vectors);
        buf_fini(&x->answer);
        sink_front_close(&x->front);
        flow_give_request(o, r);
    } else if (!f && find(x)) {
        replay(x);
    } else {
        run(x);
    }
}

static void on_cancel(struct flow_job *j)
{
    struct look *x = (struct look *)(void *)j;
    if (x->cancelled)
        return;
    x->cancelled = true;
    embedding_cancel(&x->embedding);
}

static void on_resume(struct flow_job *j)
{
    (void)j; /* nothing was sent yet */
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *to)
{
    static const struct flow_job_ops ops = {on_cancel, on_resume};
    struct similar *s = (struct similar *)(void *)d; /* its first member */
    double threshold = threshold_of(o, r);
    struct look *x = threshold > 0 ? arena_zalloc(&r->arena, sizeof(*x)) : NULL;
    if (!x || !scope_of(x->scope, r))
        return false;
    const struct chat_message *last = &r->generate.chat.messages[r->generate.chat.n_messages - 1];
    x->job.ops = &ops;
    x->similar = s;
    x->owner = o;
    x->request = r;
    x->front.to = to;
    x->threshold = threshold;
    x->text = (struct str){last->content, last->content_bytes};
    buf_init(&x->answer, MAX_ANSWER_BYTES);
    x->embedding = (struct embedding){
        .owner = o,
        .who = {.client = r->client, .deadline_ns = r->deadline_ns, .priority = r->priority},
        .model = s->model,
        .texts = &x->text,
        .n = 1,
        .done = on_embedded};
    memcpy(x->embedding.who.id, r->id, sizeof(r->id));
    x->embedding.who.spans = r->spans;
    to->job = &x->job;
    embedding_run(&x->embedding);
    return true;
}

struct dispatch *similar_stage(struct similar *s)
{
    static const struct dispatch_ops ops = {.run = take};
    s->stage.ops = &ops;
    return &s->stage;
}
