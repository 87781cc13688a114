/* ask_apart.c - see ask_apart.h. */
#include "apps/home/ask/ask_apart.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/thread/executor.h"
#include "base/mem.h"
#include "flow/dispatch.h"

#define MAX_WORDS 32u /* words of a text to look up in the tokenizer; the others stay unchanged */
#define MAX_WORD_BYTES 64u
#define MAX_CONFIG_BYTES ((size_t)16 << 20)

struct word {
    char text[MAX_WORD_BYTES];
    uint32_t n_tokens; /* 0: not known */
};

/* One request. */
struct errand {
    struct sink inner; /* first */
    struct ask_apart *all;
    struct errand *prev, *next;
    struct executor_task start;
    enum { ERRAND_INFER, ERRAND_REPLY, ERRAND_WORD, ERRAND_CONFIG } what;
    enum ask_model model;
    bool told, cancelled;
    struct shoal_infer_opts infer;
    struct shoal_task_opts reply;
    const char *message;
    struct word *word;
};

struct ask_apart {
    struct ask_away away; /* first */
    struct flow_owner *owner;
    const struct request *request;
    const char *models[4];
    _Atomic uint32_t refs;  /* held by the ask and by each errand */
    struct errand *running; /* on the owner's thread */
    _Atomic bool cancelled;
    struct failure failure;
    bool has_failure;
    struct buf config;
    struct word words[MAX_WORDS];
    uint32_t n_words, n_asked;
    void (*learned)(void *ctx);
    void *learned_ctx;
};

static struct errand *errand_of(struct sink *s)
{
    return (struct errand *)(void *)s; /* its first member */
}

static void unref(struct ask_apart *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    buf_fini(&p->config);
    mem_free(p);
}

/* ---- how it ends ---- */

/* One of the lookups before the ask has finished. */
static void question_done(struct ask_apart *p)
{
    if (--p->n_asked == 0)
        p->learned(p->learned_ctx);
}

/* Reports that the errand failed, unless it has already ended. */
static void tell_failed(struct errand *x, int code, const char *message)
{
    if (x->told)
        return;
    x->told = true;
    if (x->what == ERRAND_INFER) {
        const struct shoal_result r = {
            .size = sizeof(r), .kind = x->infer.kind, .code = code, .message = message};
        x->infer.done(x->infer.done_ctx, &r);
    } else if (x->what == ERRAND_REPLY) {
        const struct shoal_event ev = {.size = sizeof(ev),
                                       .kind = SHOAL_EVENT_DONE,
                                       .token = -1,
                                       .text = "",
                                       .finish = SHOAL_FINISH_ERROR,
                                       .code = code};
        x->reply.event(x->reply.event_ctx, &ev);
    } else {
        if (x->word)
            x->word->n_tokens = 0;
        question_done(x->all);
    }
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct errand *x = errand_of(s);
    const struct shoal_event ev = {.size = sizeof(ev),
                                   .kind = SHOAL_EVENT_TOKEN,
                                   .token = e->token,
                                   .text = e->text,
                                   .text_bytes = e->text_bytes};
    if (x->what == ERRAND_CONFIG)
        buf_put(&x->all->config, e->text, e->text_bytes);
    else if (x->what == ERRAND_WORD)
        x->word->n_tokens++;
    else if (x->what == ERRAND_REPLY && !x->told)
        x->reply.event(x->reply.event_ctx, &ev);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct errand *x = errand_of(s);
    if (x->what != ERRAND_INFER || x->told)
        return;
    x->told = true;
    x->infer.done(x->infer.done_ctx, e->result);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct errand *x = errand_of(s);
    const struct shoal_event ev = {.size = sizeof(ev),
                                   .kind = SHOAL_EVENT_DONE,
                                   .token = -1,
                                   .text = "",
                                   .finish = e->finish,
                                   .generated_tokens = e->generated_tokens};
    if (x->told)
        return;
    x->told = true;
    if (x->what == ERRAND_REPLY)
        x->reply.event(x->reply.event_ctx, &ev);
    else if (x->what != ERRAND_INFER)
        question_done(x->all);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct errand *x = errand_of(s);
    struct ask_apart *p = x->all;
    if (!p->has_failure && !x->word) {
        p->failure = *f;
        p->failure.param = p->failure.reason = NULL; /* they may live only as long as this event */
        p->has_failure = true;
    }
    tell_failed(x, f->code < 0 ? f->code : SHOAL_EIO, f->message);
}

static void errand_close(struct errand *x)
{
    struct ask_apart *p = x->all;
    tell_failed(x, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
    *(x->prev ? &x->prev->next : &p->running) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    mem_free(x);
    unref(p);
}

static void on_closed(struct sink *s)
{
    errand_close(errand_of(s));
}

/* ---- how it begins ---- */

static void fill(struct errand *x, struct request *q)
{
    const struct ask_apart *p = x->all;
    const struct request *r = p->request;
    memcpy(q->id, r->id, sizeof(q->id));
    memcpy(q->trace, r->trace, sizeof(q->trace));
    q->client = r->client;
    q->priority = r->priority;
    q->model = p->models[x->model];
    q->epoch = r->epoch;
    q->received_ns = r->received_ns;
    q->deadline_ns = r->deadline_ns;
    q->here = q->no_cache = true;
}

/* What is pointed to stays until the errand has told its end, and is not read after that.  False:
 * out of memory. */
static bool fill_work(struct errand *x, struct request *q)
{
    if (x->what == ERRAND_INFER) {
        struct request_input *in = arena_zalloc(&q->arena, sizeof(*in));
        if (!in)
            return false;
        in->text = request_copy(q, x->infer.text, x->infer.text_bytes);
        in->text_bytes = q->input_bytes = x->infer.text_bytes;
        q->kind = REQUEST_INFER;
        q->infer = (struct request_infer){
            .kind = x->infer.kind, .inputs = in, .n_inputs = 1, .labels = x->infer.labels};
    } else if (x->what == ERRAND_REPLY) {
        struct chat_message *m = arena_zalloc(&q->arena, sizeof(*m));
        if (!m)
            return false;
        m->role = "user";
        m->content_bytes = q->input_bytes = strlen(x->message);
        m->content = request_copy(q, x->message, m->content_bytes);
        q->kind = REQUEST_GENERATE;
        q->generate = (struct request_generate){.chat = {.messages = m, .n_messages = 1},
                                                .n_prompts = 1,
                                                .n = 1,
                                                .max_tokens = x->reply.max_tokens,
                                                .seeded = true};
    } else {
        q->kind = REQUEST_TOKENS;
        q->tokens = (struct request_tokens){.kind = SHOAL_KIND_CLASSIFY,
                                            .metadata = x->word ? NULL : "huggingface.config",
                                            .text = x->word ? x->word->text : "",
                                            .text_bytes = x->word ? strlen(x->word->text) : 0};
    }
    return request_rc(q) == 0;
}

static void start(struct executor_task *t)
{
    struct errand *x = EXECUTOR_OF(t, struct errand, start);
    struct ask_apart *p = x->all;
    x->next = p->running;
    if (x->next)
        x->next->prev = x;
    p->running = x;
    struct request *q = NULL;
    if (!atomic_load_explicit(&p->cancelled, memory_order_relaxed)) {
        q = flow_take_request(p->owner);
        if (!q || !fill_work(x, q))
            tell_failed(x, SHOAL_ENOMEM, "out of memory");
    }
    if (!q || x->told) {
        if (q)
            flow_give_request(p->owner, q);
        errand_close(x);
        return;
    }
    fill(x, q);
    struct dispatch *d = p->owner->apart;
    if (d && d->ops->run(d, p->owner, q, &x->inner))
        return;
    flow_give_request(p->owner, q);
    tell_failed(x, SHOAL_EIO,
                "a model of this command no longer runs in its own process: try again");
    errand_close(x);
}

/* NULL: out of memory. */
static struct errand *errand_create(struct ask_apart *p, enum ask_model model)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct errand *x = mem_zalloc(sizeof(*x));
    if (!x)
        return NULL;
    x->inner.ops = &ops;
    x->all = p;
    x->model = model;
    x->start.fn = start;
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return x;
}

static struct ask_apart *of_away(struct ask_away *w)
{
    return (struct ask_apart *)(void *)w; /* its first member */
}

/* On any thread, as reply. */
static void infer(struct ask_away *w, enum ask_model which, const struct shoal_infer_opts *o)
{
    struct ask_apart *p = of_away(w);
    struct errand *x = errand_create(p, which);
    if (!x) {
        const struct shoal_result r = {
            .size = sizeof(r), .kind = o->kind, .code = SHOAL_ENOMEM, .message = "out of memory"};
        o->done(o->done_ctx, &r);
        return;
    }
    x->what = ERRAND_INFER;
    x->infer = *o;
    executor_post(p->owner->executor, &x->start);
}

static void reply(struct ask_away *w, const char *message, const struct shoal_task_opts *o)
{
    struct ask_apart *p = of_away(w);
    struct errand *x = errand_create(p, ASK_MODEL_REPLY);
    if (!x) {
        const struct shoal_event ev = {.size = sizeof(ev),
                                       .kind = SHOAL_EVENT_DONE,
                                       .token = -1,
                                       .text = "",
                                       .finish = SHOAL_FINISH_ERROR,
                                       .code = SHOAL_ENOMEM};
        o->event(o->event_ctx, &ev);
        return;
    }
    x->what = ERRAND_REPLY;
    x->reply = *o;
    x->message = message;
    executor_post(p->owner->executor, &x->start);
}

/* On the owner's thread, like all calls of ask_cancel. A cancelled errand may end inside, so the
 * search restarts after each. */
static void cancel(struct ask_away *w)
{
    struct ask_apart *p = of_away(w);
    struct errand *x = p->running;
    atomic_store_explicit(&p->cancelled, true, memory_order_relaxed);
    while (x) {
        if (x->cancelled) {
            x = x->next;
            continue;
        }
        x->cancelled = true;
        flow_cancel(&x->inner);
        x = p->running;
    }
}

/* ---- words ---- */

void ask_apart_doubt(void *apart, const char *word)
{
    struct ask_apart *p = apart;
    for (uint32_t i = 0; i < p->n_words; i++)
        if (strcmp(p->words[i].text, word) == 0)
            return;
    if (p->n_words < MAX_WORDS && strlen(word) < MAX_WORD_BYTES)
        snprintf(p->words[p->n_words++].text, MAX_WORD_BYTES, "%s", word);
}

/* False: out of memory. */
static bool ask_question(struct ask_apart *p, struct word *w)
{
    struct errand *x = errand_create(p, ASK_MODEL_ENCODER);
    if (!x)
        return false;
    x->what = w ? ERRAND_WORD : ERRAND_CONFIG;
    x->word = w;
    p->n_asked++;
    executor_post(p->owner->executor, &x->start);
    return true;
}

static void begin_questions(struct ask_apart *p, void (*done)(void *ctx), void *ctx)
{
    p->learned = done;
    p->learned_ctx = ctx;
    p->n_asked = 1; /* not before all are sent */
}

void ask_apart_learn(struct ask_apart *p, void (*done)(void *ctx), void *ctx)
{
    begin_questions(p, done, ctx);
    for (uint32_t i = 0; i < p->n_words; i++)
        if (!ask_question(p, &p->words[i]))
            break;
    question_done(p);
}

/* ---- the configuration ---- */

void ask_apart_configure(struct ask_apart *p, void (*done)(void *ctx), void *ctx)
{
    begin_questions(p, done, ctx);
    (void)ask_question(p, NULL); /* without memory there is no configuration */
    question_done(p);
}

const char *ask_apart_config(const struct ask_apart *p, size_t *n)
{
    *n = p->config.len;
    return p->config.len > 0 && p->config.rc == 0 ? p->config.data : NULL;
}

bool ask_apart_is_common(void *apart, const char *word)
{
    const struct ask_apart *p = apart;
    for (uint32_t i = 0; i < p->n_words; i++)
        if (strcmp(p->words[i].text, word) == 0)
            return p->words[i].n_tokens < 2;
    return true;
}

/* ---- lifetime ---- */

struct ask_apart *ask_apart_create(struct flow_owner *o, const struct request *r,
                                   const char *const models[4])
{
    static const struct ask_away_ops ops = {infer, reply, cancel};
    struct ask_apart *p = mem_zalloc(sizeof(*p));
    if (!p)
        return NULL;
    p->away.ops = &ops;
    p->owner = o;
    p->request = r;
    memcpy(p->models, models, sizeof(p->models));
    atomic_init(&p->refs, 1);
    buf_init(&p->config, MAX_CONFIG_BYTES);
    return p;
}

void ask_apart_put(struct ask_apart *p)
{
    if (p)
        unref(p);
}

struct ask_away *ask_apart_away(struct ask_apart *p)
{
    return p ? &p->away : NULL;
}

const struct failure *ask_apart_failure(const struct ask_apart *p)
{
    return p && p->has_failure ? &p->failure : NULL;
}
