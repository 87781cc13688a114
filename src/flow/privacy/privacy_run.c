/* privacy_run.c - see privacy_run.h. */
#include "flow/privacy/privacy_run.h"

#include <string.h>

#include "base/buf.h"
#include "base/thread/executor.h"
#include "flow/privacy/privacy_fields.h"
#include "flow/flow_run.h"
#include "privacy/pii_tags.h"

/* ---- what is wanted ---- */

const struct privacy_policy *privacy_policy_of(const struct flow_owner *o, struct request *r)
{
    const struct router_table *t = o->routes;
    if (!t || !t->private || r->screened)
        return NULL;
    flow_resolve_name(o, r);
    const struct router_route *route =
        r->model ? router_table_find_for(t, r->model, r->client.name) : NULL;
    const struct privacy_policy *p =
        route && route->privacy.action != PRIVACY_DEFAULT ? &route->privacy : &t->privacy;
    return p->action == PRIVACY_DEFAULT || p->action == PRIVACY_NONE ? NULL : p;
}

/* ---- a request ---- */

/* A part of a text that the tagger reads. */
struct piece {
    uint32_t field;
    size_t at;
};

/* In the arena of the request. */
struct screening {
    struct flow_job job; /* first */
    struct sink inner;   /* of the tagger's request */
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
    /* copies: the configuration may be replaced meanwhile */
    enum privacy_action action;
    unsigned kinds;
    const char *tagger;
    struct privacy_fields fields;
    struct piece *pieces;
    bool cancelled, failed;
    int rc;
    struct failure failure;
};

static void refuse(struct screening *x, const struct failure *f)
{
    struct flow_owner *o = x->owner;
    struct request *r = x->request;
    struct sink *s = x->sink;
    s->job = NULL;
    s->ops->fail(s, f);
    s->ops->closed(s);
    flow_give_request(o, r);
}

static void refuse_code(struct screening *x, int rc)
{
    struct failure f;
    if (rc == SHOAL_EINVAL)
        failure_set(
            &f, FAILURE_INVALID, rc, NULL, "personal_data",
            "token ids cannot be searched for personal data, as '%.64s' requires: send the text",
            x->request->model ? x->request->model : "this server");
    else if (rc == SHOAL_EUNSUPPORTED)
        failure_set(&f, FAILURE_INVALID, rc, NULL, "personal_data",
                    "images cannot be searched for personal data, as '%.64s' requires: ask a model "
                    "without that policy",
                    x->request->model ? x->request->model : "this server");
    else if (rc == SHOAL_ELIMIT)
        failure_set(&f, FAILURE_INVALID, rc, NULL, "personal_data",
                    "the request has too much text or personal data to be searched: send less");
    else
        failure_of(&f, rc, "out of memory");
    refuse(x, &f);
}

/* The findings, for the message: "an e-mail address, a phone number". */
static unsigned found_kinds(const struct privacy_fields *f, const char **where)
{
    unsigned kinds = 0;
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = 0; k < f->list[i].n_hits; k++) {
            *where = kinds ? *where : f->list[i].name;
            kinds |= PII_BIT(f->list[i].hits[k].kind);
        }
    return kinds;
}

static void refuse_found(struct screening *x, unsigned kinds, const char *where)
{
    struct failure f;
    char list[256];
    struct buf b;
    buf_init(&b, sizeof(list) - 1);
    for (unsigned k = 0; k < PII_N_KINDS; k++)
        if (kinds & PII_BIT(k))
            buf_printf(&b, "%s%s", b.len ? ", " : "", pii_kind_text((enum pii_kind)k));
    failure_set(&f, FAILURE_INVALID, SHOAL_EINVAL, where, "personal_data",
                "'%.64s' accepts no personal data, but the request contains %s: remove it and send "
                "the request again",
                x->request->model ? x->request->model : "this server", buf_str(&b));
    buf_fini(&b);
    refuse(x, &f);
}

/* Everything was found. */
static void go_on(struct screening *x)
{
    struct request *r = x->request;
    const char *where = NULL;
    unsigned kinds = found_kinds(&x->fields, &where);
    struct pseudonyms *names = x->owner->flow->pseudonyms;
    struct pseudonyms_map *map = NULL;
    uint32_t n = r->kind == REQUEST_INFER ? r->infer.n_inputs : 0;
    struct privacy_input *inputs = arena_zalloc_n(&r->arena, n + 1u, sizeof(*inputs));
    int rc = inputs ? 0 : SHOAL_ENOMEM;
    r->screened = true;
    if (kinds && x->action == PRIVACY_REFUSE) {
        refuse_found(x, kinds, where);
        return;
    }
    bool marks = x->action == PRIVACY_PSEUDONYM && names && (kinds || r->session[0]);
    if (!kinds && !marks) {
        x->sink->job = NULL;
        request_pass_on(x->owner, r, x->sink);
        return;
    }
    if (marks) {
        map = arena_zalloc(&r->arena, sizeof(*map));
        if (map)
            pseudonyms_map_init(map, names, &r->arena, r->client.name, r->session);
    }
    if (rc == 0 && marks && !map)
        rc = SHOAL_ENOMEM;
    r->marked = marks && kinds;
    if (rc == 0)
        rc = privacy_fields_replace(&x->fields, map, inputs);
    struct sink *s = NULL;
    if (rc == 0 && r->kind == REQUEST_TOKENS) { /* the tokens are those that a model would read */
        s = x->sink;
        s->job = NULL;
    } else if (rc == 0) {
        s = privacy_sink_open(r, x->sink, map, inputs, n);
    }
    if (!s)
        refuse_code(x, rc < 0 ? rc : SHOAL_ENOMEM);
    else
        request_pass_on(x->owner, r, s);
}

/* ---- the tagger ---- */

static void on_tag_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_tagged(struct sink *s, const struct sink_result *e)
{
    struct screening *x = EXECUTOR_OF(s, struct screening, inner);
    const struct piece *p = &x->pieces[e->index];
    const char *text = *x->fields.list[p->field].text;
    for (uint32_t i = 0; i < e->result->n_spans && x->rc == 0; i++) {
        const struct shoal_span *span = &e->result->spans[i];
        const struct pii_tag tag = {span->label, p->at + span->start, p->at + span->end,
                                    span->score};
        struct pii_hit h;
        if (pii_tags_hit(&h, &tag, text, x->kinds))
            x->rc = privacy_fields_add(&x->fields, p->field, &h);
    }
}

static void on_tag_fail(struct sink *s, const struct failure *f)
{
    struct screening *x = EXECUTOR_OF(s, struct screening, inner);
    x->failed = true;
    x->failure = *f;
}

static void on_tag_closed(struct sink *s)
{
    struct screening *x = EXECUTOR_OF(s, struct screening, inner);
    struct failure f;
    if (x->cancelled) {
        struct flow_owner *o = x->owner;
        struct request *r = x->request;
        x->sink->job = NULL;
        x->sink->ops->closed(x->sink);
        flow_give_request(o, r);
    } else if (x->failed) { /* without it names would pass */
        bool late = x->failure.kind == FAILURE_DEADLINE || x->failure.kind == FAILURE_BUSY;
        failure_set(&f, late ? x->failure.kind : FAILURE_UNAVAILABLE, x->failure.code, NULL,
                    "personal_data", "the model that finds names failed: %.300s",
                    x->failure.message);
        f.retry_after_s = x->failure.retry_after_s ? x->failure.retry_after_s : 2;
        refuse(x, &f);
    } else if (x->rc < 0) {
        refuse_code(x, x->rc);
    } else {
        go_on(x);
    }
}

static void on_cancel(struct flow_job *j)
{
    struct screening *x = (struct screening *)(void *)j;
    if (x->cancelled)
        return;
    x->cancelled = true;
    flow_cancel(&x->inner);
}

static void on_resume(struct flow_job *j)
{
    (void)j;
}

/* The texts in pieces; NULL: out of memory, or too many (*n is then 0). */
static struct request_input *cut(struct screening *x, struct request *q, uint32_t *n)
{
    struct request_input *list = arena_zalloc_n(&q->arena, REQUEST_MAX_INPUTS, sizeof(*list));
    x->pieces = arena_zalloc_n(&x->request->arena, REQUEST_MAX_INPUTS, sizeof(*x->pieces));
    *n = 0;
    for (uint32_t i = 0; list && x->pieces && i < x->fields.n; i++) {
        const struct privacy_field *f = &x->fields.list[i];
        for (size_t at = 0, end; f->prose && at < f->bytes; at = end) {
            end = pii_tags_piece_end(*f->text, f->bytes, at);
            if (*n == REQUEST_MAX_INPUTS) {
                x->rc = SHOAL_ELIMIT;
                return NULL;
            }
            x->pieces[*n] = (struct piece){.field = i, .at = at};
            list[*n].text = request_copy(q, *f->text + at, end - at);
            list[(*n)++].text_bytes = end - at;
            q->input_bytes += end - at;
        }
    }
    if (!list || !x->pieces || request_rc(q) < 0)
        x->rc = SHOAL_ENOMEM;
    return x->rc < 0 ? NULL : list;
}

/* Asks the tagger of this server, which may read everything. */
static void tag(struct screening *x)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    static const struct sink_ops inner_ops = {
        .start = on_tag_start, .result = on_tagged, .fail = on_tag_fail, .closed = on_tag_closed};
    const struct request *r = x->request;
    struct request *q = flow_take_request(x->owner);
    uint32_t n = 0;
    struct request_input *list = q ? cut(x, q, &n) : NULL;
    if (!list || n == 0) {
        int rc = list ? 0 : x->rc < 0 ? x->rc : SHOAL_ENOMEM;
        if (q)
            flow_give_request(x->owner, q);
        if (rc < 0)
            refuse_code(x, rc);
        else
            go_on(x);
        return;
    }
    q->kind = REQUEST_INFER;
    q->model = request_copy(q, x->tagger, strlen(x->tagger));
    q->client = r->client;
    q->priority = r->priority;
    q->received_ns = r->received_ns;
    q->deadline_ns = r->deadline_ns;
    q->here = q->screened = true;
    q->infer = (struct request_infer){.kind = SHOAL_KIND_TAG, .inputs = list, .n_inputs = n};
    x->job.ops = &job_ops;
    x->inner = (struct sink){.ops = &inner_ops};
    x->sink->job = &x->job;
    flow_run(x->owner, q, &x->inner);
}

static void run(struct flow_owner *o, struct request *r, struct sink *s,
                const struct privacy_policy *p)
{
    struct screening *x = arena_zalloc(&r->arena, sizeof(*x));
    if (!x) {
        flow_refuse_nomem(o, r, s);
        return;
    }
    *x = (struct screening){.owner = o,
                            .request = r,
                            .sink = s,
                            .action = p->action,
                            .kinds = p->kinds,
                            .tagger =
                                p->tagger ? request_copy(r, p->tagger, strlen(p->tagger)) : ""};
    int rc = privacy_fields_open(&x->fields, r);
    if (rc == 0)
        rc = privacy_fields_find(&x->fields, p->kinds);
    if (rc == 0)
        rc = request_rc(r);
    if (rc < 0)
        refuse_code(x, rc);
    else if (p->kinds & PII_BY_MODEL)
        tag(x);
    else
        go_on(x);
}

bool privacy_take(struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct privacy_policy *p = privacy_policy_of(o, r);
    if (!p || p->zone != PRIVACY_EVERYWHERE)
        return false;
    run(o, r, s, p);
    return true;
}

bool privacy_take_leaving(struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct privacy_policy *p = r->leaving;
    r->leaving = NULL;
    if (!p)
        return false;
    run(o, r, s, p);
    return true;
}
