/* documents_app.c - see documents_app.h.
 *
 * The application behind gets a copy of the request. Its events are passed on, unless its plan
 * leaves the question open: then what it says is kept, the collections are searched one after the
 * other, and when both are through, the answer is sent. */
#include "knowledge/documents_app.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "flow/sink_front.h"
#include "host/sha256.h"
#include "knowledge/quoting.h"

#define MAX_REPLY_BYTES ((size_t)1 << 20)
#define UNKNOWN "I don't know."

struct found { /* the best answer so far; in the arena of the request */
    const char *text, *document, *heading, *collection;
    uint32_t page;
    double score;
};

struct asked {
    struct flow_job job; /* first */
    const struct documents_app *app;
    struct flow_owner *owner;
    struct request *request; /* whole; a copy of it runs behind */
    struct sink_front front;
    const struct ask_plan *plan; /* that left the question open; NULL: none did */
    struct buf said;             /* what the application behind said then */
    struct quoting quoting;
    uint32_t at; /* the collection that is searched */
    bool searching, is_closed, cancelled, failed;
    struct found found;
    const char *reason; /* why a search failed; NULL: none did */
    uint64_t begun_ns, plan_ns, n_tokens;
    uint8_t sum[SHA256_BYTES]; /* of the model that began */
    struct ask_plan_step steps[2];
};

static struct asked *asked_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct asked, front.sink);
}

static void close_all(struct asked *x)
{
    struct flow_owner *o = x->owner;
    struct request *r = x->request;
    buf_fini(&x->said);
    x->front.to->job = NULL;
    o->n_jobs--;
    x->front.to->ops->closed(x->front.to);
    flow_give_request(o, r);
}

/* ---- the answer ---- */

static void add_text(struct ask_plan_action *o, const char *key, const char *text)
{
    if (text && *text)
        o->fields[o->n_fields++] = (struct ask_plan_field){.key = key, .text = text};
}

static void add_number(struct ask_plan_action *o, const char *key, double number)
{
    o->fields[o->n_fields++] = (struct ask_plan_field){.key = key, .number = number};
}

static void fill_action(const struct asked *x, struct ask_plan_action *o)
{
    const struct found *f = &x->found;
    *o = (struct ask_plan_action){.name = "find_document"};
    if (!f->text) {
        add_text(o, "result", "failed");
        add_text(o, "reason", x->reason ? x->reason : "no document answers this");
        return;
    }
    add_text(o, "collection", f->collection);
    add_text(o, "document", f->document);
    if (f->page)
        add_number(o, "page", f->page);
    add_text(o, "heading", f->heading);
    add_text(o, "text", f->text);
    add_number(o, "score", (double)(int64_t)(f->score * 100.0 + 0.5) / 100.0);
    add_text(o, "result", "done");
}

/* The application had something to say, and no document has anything better. */
static bool stays(const struct asked *x)
{
    return !x->found.text && x->plan->open == ASK_PLAN_TALK;
}

/* The plan with the search as its only action; NULL: out of memory. */
static const struct ask_plan *plan_of(struct asked *x)
{
    if (stays(x))
        return x->plan;
    struct arena *a = &x->request->arena;
    struct ask_plan *plan = arena_zalloc(a, sizeof(*plan));
    struct ask_plan_action *action = arena_zalloc(a, sizeof(*action));
    const struct ask_plan_action **list = arena_zalloc(a, sizeof(*list));
    if (!plan || !action || !list)
        return NULL;
    fill_action(x, action);
    list[0] = action;
    *plan = *x->plan;
    plan->actions = list;
    plan->n_actions = 1;
    plan->contexts = NULL;
    plan->n_contexts = 0;
    plan->open = ASK_PLAN_SETTLED;
    return plan;
}

/* "The tank holds 270 litres. That is from boiler.pdf, page 3.": it may be spoken, so the folder of
 * the document is left out. */
static const char *words_of(struct asked *x)
{
    const struct found *f = &x->found;
    if (!f->text)
        return stays(x) ? buf_str(&x->said) : UNKNOWN;
    const char *slash = strrchr(f->document, '/');
    const char *name = slash && slash[1] ? slash + 1 : f->document;
    return f->page ? arena_printf(&x->request->arena, "%s That is from %s, page %u.", f->text, name,
                                  f->page)
                   : arena_printf(&x->request->arena, "%s That is from %s.", f->text, name);
}

static void send_done(struct asked *x)
{
    const uint64_t now = clock_ns();
    x->steps[0] = (struct ask_plan_step){.name = "understand", .ns = x->plan_ns - x->begun_ns};
    x->steps[1] = (struct ask_plan_step){.name = "documents",
                                         .model = "embed",
                                         .start_ns = x->plan_ns - x->begun_ns,
                                         .ns = now - x->plan_ns,
                                         .tokens = (uint32_t)x->n_tokens};
    const struct sink_done e = {.finish = SHOAL_FINISH_STOP,
                                .prompt_tokens = (uint32_t)x->n_tokens,
                                .usage.prompt_tokens = (uint32_t)x->n_tokens,
                                .total_ns = now - x->begun_ns,
                                .last = true,
                                .steps = x->steps,
                                .n_steps = 2};
    x->front.to->ops->done(x->front.to, &e);
}

static void send_answer(struct asked *x)
{
    const struct sink_plan e = {plan_of(x)};
    const char *words = words_of(x);
    struct failure f;
    if (!e.plan || request_rc(x->request) < 0) {
        failure_of(&f, SHOAL_ENOMEM, "out of memory");
        x->front.to->ops->fail(x->front.to, &f);
        return;
    }
    const struct sink_token t = {.token = -1, .text = words, .text_bytes = strlen(words)};
    x->front.to->ops->plan(x->front.to, &e);
    if (!x->cancelled && x->request->ask.reply && t.text_bytes > 0)
        x->front.to->ops->token(x->front.to, &t);
    if (!x->cancelled)
        send_done(x);
}

/* When the search is over and the application behind is through. */
static void maybe_finish(struct asked *x)
{
    if (x->searching || !x->is_closed)
        return;
    if (x->plan && !x->failed && !x->cancelled)
        send_answer(x);
    close_all(x);
}

/* ---- the search ---- */

static const char *keep(struct asked *x, const char *text)
{
    return request_copy(x->request, text, strlen(text));
}

static void take_found(struct asked *x)
{
    struct quoting *q = &x->quoting;
    if (!q->found || (x->found.text && q->sentences[0].score <= x->found.score))
        return;
    const struct collection_hit *h = &q->retrieval.hits[q->sentences[0].hit];
    x->found = (struct found){.text = keep(x, quoting_text(q)),
                              .document = keep(x, h->doc),
                              .heading = keep(x, h->heading),
                              .collection = x->app->names[x->at],
                              .page = h->page,
                              .score = q->sentences[0].score};
}

static void search(struct asked *x);

static void on_quoted(struct quoting *q, const struct failure *f)
{
    struct asked *x = EXECUTOR_OF(q, struct asked, quoting);
    if (f && !x->cancelled) {
        x->reason = keep(x, f->message);
        log_warn("documents", "a question was not looked up in '%s': %s", x->app->names[x->at],
                 f->message);
    } else if (!f) {
        take_found(x);
        x->n_tokens += q->n_tokens;
    }
    quoting_fini(q);
    if (++x->at < x->app->n && !x->cancelled) {
        search(x);
        return;
    }
    x->searching = false;
    maybe_finish(x);
}

static struct embedding_who who_of(const struct request *r)
{
    struct embedding_who who = {
        .client = r->client, .deadline_ns = r->deadline_ns, .priority = r->priority};
    memcpy(who.id, r->id, sizeof(who.id));
    who.spans = r->spans;
    return who;
}

static void search(struct asked *x)
{
    x->quoting = (struct quoting){.retrieval = {.owner = x->owner,
                                                .who = who_of(x->request),
                                                .collections = x->app->collections,
                                                .collection = x->app->names[x->at],
                                                .query = x->request->ask.text},
                                  .done = on_quoted};
    quoting_run(&x->quoting);
}

/* ---- events of the application behind ---- */

/* The application behind is gone when the answer is sent, and its names with it. */
static void on_start(struct sink *s, const struct sink_start *e)
{
    struct asked *x = asked_of(s);
    struct sink_start start = *e;
    start.model = keep(x, e->model);
    start.version = keep(x, e->version);
    start.node = e->node ? keep(x, e->node) : NULL;
    start.sum = e->sum ? memcpy(x->sum, e->sum, sizeof(x->sum)) : NULL;
    sink_front_start(s, &start);
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct asked *x = asked_of(s);
    if (e->plan->open == ASK_PLAN_SETTLED) {
        sink_front_plan(s, e);
        return;
    }
    x->plan_ns = clock_ns();
    x->plan = ask_plan_copy(e->plan, &x->request->arena);
    if (!x->plan) { /* no memory for more: the answer is what the application says */
        sink_front_plan(s, e);
        return;
    }
    x->searching = true;
    search(x);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct asked *x = asked_of(s);
    if (x->plan)
        buf_put(&x->said, t->text, t->text_bytes);
    else
        sink_front_token(s, t);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct asked *x = asked_of(s);
    if (!x->plan)
        sink_front_done(s, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct asked *x = asked_of(s);
    x->failed = true;
    sink_front_fail(s, f);
}

static void on_closed(struct sink *s)
{
    struct asked *x = asked_of(s);
    s->job = NULL;
    x->is_closed = true;
    maybe_finish(x);
}

/* ---- life ---- */

static void on_cancel(struct flow_job *j)
{
    struct asked *x = (struct asked *)(void *)j;
    if (x->cancelled)
        return;
    x->cancelled = true;
    if (x->searching)
        quoting_cancel(&x->quoting);
    if (!x->is_closed)
        flow_cancel(&x->front.sink);
}

static void on_resume(struct flow_job *j)
{
    flow_resume(&((struct asked *)(void *)j)->front.sink);
}

static void run(struct app *app, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    const struct documents_app *a = (const struct documents_app *)(void *)app; /* first member */
    struct asked *x = arena_zalloc(&r->arena, sizeof(*x));
    struct request *copy = x ? flow_take_request(o) : NULL;
    if (!copy) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    *x = (struct asked){
        .job = {&job_ops}, .app = a, .owner = o, .request = r, .begun_ns = clock_ns()};
    buf_init(&x->said, MAX_REPLY_BYTES);
    sink_front_init(&x->front, &ops, s);
    s->job = &x->job;
    o->n_jobs++;
    request_borrow(copy, r);
    a->behind->run(a->behind, o, copy, &x->front.sink);
}

int documents_app_init(struct documents_app *a, struct app *behind, struct collections *collections,
                       const char *const *names, uint32_t n, struct err *e)
{
    *a = (struct documents_app){.app.run = run, .behind = behind, .collections = collections};
    if (n > DOCUMENTS_APP_MAX)
        return err_set(e, SHOAL_EINVAL, "at most %u collections can answer questions",
                       DOCUMENTS_APP_MAX);
    if (!collections)
        return err_set(e, SHOAL_EINVAL,
                       "there is no folder of collections: set collections.dir, or a home folder");
    for (uint32_t i = 0; i < n; i++) {
        if (!collection_name_ok(names[i]))
            return err_set(e, SHOAL_EINVAL, "'%.100s' cannot name a collection", names[i]);
        memcpy(a->names[i], names[i], strlen(names[i]) + 1);
    }
    a->n = n;
    return 0;
}
