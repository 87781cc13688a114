/* ask_public.c - shoal_ask_* of include/shoal/shoal_ask.h: the ask flow for programs that link the
 * library.  A thin layer over ask.h and ask_pack.h. */
#include "shoal/shoal_ask.h"

#include <stdatomic.h>

#include "base/arg.h"
#include "base/mem.h"
#include "base/sized.h"
#include "apps/home/ask/ask_pack.h"

#define MAX_JSON_BYTES ((size_t)1 << 22)

struct shoal_ask {
    struct ask_pack pack;
};

struct shoal_ask_request {
    struct ask_request *inner; /* set when submit returns: events use the one they are given */
    _Atomic uint32_t refs;     /* one of the caller, and one until DONE is delivered */
    shoal_ask_event_fn event;
    void *event_ctx;
};

int shoal_ask_open(struct shoal_ask **out, const struct shoal_ask_opts *opts, struct err *e)
{
    struct shoal_ask_opts o = {.size = sizeof(o)};
    struct err own;
    if (!e)
        e = &own;
    int rc = arg_check(out, "out", e);
    if (rc < 0)
        return rc;
    *out = NULL;
    if (opts)
        rc = sized_read(&o, sizeof(o), opts, "shoal_ask_opts", e);
    if (rc < 0)
        return rc;
    struct shoal_ask *a = mem_zalloc(sizeof(*a));
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "ask");
    struct ask_pack_opts po = {.dir = o.models,
                               .table = o.table,
                               .home = o.home,
                               .reader = o.reader,
                               .reply = o.reply,
                               .no_reply = o.no_reply,
                               .n_threads = o.n_threads,
                               .progress = o.progress,
                               .progress_ctx = o.progress_ctx};
    rc = ask_pack_open(&a->pack, &po, e);
    if (rc < 0) {
        mem_free(a);
        return rc;
    }
    *out = a;
    return 0;
}

void shoal_ask_close(struct shoal_ask *a)
{
    if (!a)
        return;
    ask_pack_close(&a->pack);
    mem_free(a);
}

static void unref(struct shoal_ask_request *r)
{
    /* acq_rel: the thread that frees sees all writes of the other side */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        mem_free(r);
}

static void plan_event(struct shoal_ask_request *r, const struct ask_request *inner)
{
    struct buf b;
    buf_init(&b, MAX_JSON_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    ask_plan_json(&j, ask_plan_of(inner));
    json_out_object_end(&j);
    /* out of memory: the event is skipped; shoal_ask_json reports the error */
    if (b.rc == 0)
        r->event(r->event_ctx, &(struct shoal_ask_event){.size = sizeof(struct shoal_ask_event),
                                                         .kind = SHOAL_ASK_EVENT_PLAN,
                                                         .text = buf_str(&b),
                                                         .text_bytes = b.len});
    buf_fini(&b);
}

static void on_event(void *ctx, const struct ask_request *inner, const struct ask_event *ev)
{
    struct shoal_ask_request *r = ctx;
    if (r->event && ev->kind == ASK_EVENT_PLAN) {
        plan_event(r, inner);
    } else if (r->event) {
        bool done = ev->kind == ASK_EVENT_DONE;
        struct shoal_ask_event out = {.size = sizeof(out),
                                      .kind = done ? SHOAL_ASK_EVENT_DONE : SHOAL_ASK_EVENT_TEXT,
                                      .text = ev->text,
                                      .text_bytes = ev->text_bytes,
                                      .code = ev->code,
                                      .message = ev->message};
        r->event(r->event_ctx, &out);
    }
    if (ev->kind == ASK_EVENT_DONE)
        unref(r);
}

int shoal_ask_submit(struct shoal_ask *a, const struct shoal_ask_request_opts *opts,
                     struct shoal_ask_request **request, struct err *e)
{
    struct shoal_ask_request_opts o;
    struct err own;
    if (!e)
        e = &own;
    int rc = arg_check(request, "request", e);
    if (rc < 0)
        return rc;
    *request = NULL;
    rc = arg_check(a, "ask", e);
    if (rc == 0)
        rc = sized_read(&o, sizeof(o), opts, "shoal_ask_request_opts", e);
    if (rc < 0)
        return rc;
    if (!o.text && !o.confirm)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    rc = arg_check_n(o.text, o.text_bytes, "text", e);
    if (rc < 0)
        return rc;
    struct shoal_ask_request *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "request");
    atomic_init(&r->refs, 2);
    r->event = o.event;
    r->event_ctx = o.event_ctx;
    struct ask_opts ao = {.text = o.text,
                          .text_bytes = o.text_bytes,
                          .conversation = o.conversation,
                          .confirm = o.confirm,
                          .now = (time_t)o.now_s,
                          .no_reply = o.no_reply,
                          .deadline_ns = o.deadline_ns,
                          .priority = o.priority,
                          .event = on_event,
                          .event_ctx = r};
    rc = ask_submit(a->pack.ask, &ao, &r->inner, e);
    if (rc < 0) {
        mem_free(r);
        return rc;
    }
    *request = r;
    return 0;
}

void shoal_ask_cancel(struct shoal_ask_request *r)
{
    if (r)
        ask_cancel(r->inner);
}

int shoal_ask_wait(struct shoal_ask_request *r)
{
    return r ? ask_wait(r->inner) : SHOAL_EINVAL;
}

void shoal_ask_free(struct shoal_ask_request *r)
{
    if (!r)
        return;
    ask_free(r->inner);
    unref(r);
}

int shoal_ask_json(const struct shoal_ask_request *r, unsigned flags, char **json, size_t *n,
                   struct err *e)
{
    struct buf b;
    int rc = arg_check(json, "json", e);
    if (rc < 0)
        return rc;
    *json = NULL;
    rc = arg_check(r, "request", e);
    if (rc < 0)
        return rc;
    const struct ask_plan_answer answer = ask_answer_of(r->inner);
    buf_init(&b, MAX_JSON_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    ask_plan_answer_json(&j, &answer, (flags & SHOAL_ASK_EXPLAIN) != 0);
    json_out_object_end(&j);
    *json = buf_take(&b, n);
    rc = *json ? 0 : err_set(e, b.rc < 0 ? b.rc : SHOAL_ENOMEM, "the answer as JSON");
    buf_fini(&b);
    return rc;
}

const char *shoal_ask_reply(const struct shoal_ask_request *r, size_t *n)
{
    size_t len = 0;
    const char *text = r ? ask_reply_of(r->inner, &len) : "";
    if (n)
        *n = len;
    return text;
}
