/* event_pb.c - see event_pb.h. */
#include "cluster/messages/event_pb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/node/v1/node.pb-c.h>

#include "cluster/messages/plan_pb.h"
#include "host/sha256.h"
#include "wire/pb.h"

typedef Shoal__Node__V1__RunEvent pb_event;
typedef Shoal__Node__V1__Result pb_result;

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_LOGPROBS (1 + SHOAL_MAX_LOGPROBS)

/* ---- writing ---- */

static void put_varint(struct buf *out, uint64_t v)
{
    char bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    buf_put(out, bytes, n);
}

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

/* The event as one more entry of RunEvents.events. */
static void put_event(struct buf *out, const pb_event *m)
{
    buf_putc(out, 0x0a); /* field 1, a message */
    put_varint(out, protobuf_c_message_get_packed_size(&m->base));
    if (pb_put(out, &m->base) < 0 && out->rc == 0)
        out->rc = SHOAL_ENOMEM;
}

void event_pb_put_start(struct buf *out, const struct sink_start *e)
{
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    Shoal__Node__V1__Start start = SHOAL__NODE__V1__START__INIT;
    start.model = pb_text(e->model);
    start.version = pb_text(e->version);
    start.cache = e->cache;
    start.tools = e->tools;
    start.isolated = e->isolated;
    if (e->sum)
        start.sum = pb_bytes(e->sum, SHA256_BYTES);
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_START;
    m.start = &start;
    put_event(out, &m);
}

void event_pb_put_plan(struct buf *out, const struct sink_plan *e)
{
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    struct arena a;
    arena_init(&a, MAX_BYTES);
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_PLAN;
    m.plan = plan_pb_of(&a, e->plan);
    if (m.plan)
        put_event(out, &m);
    else if (out->rc == 0)
        out->rc = a.rc;
    arena_fini(&a);
}

void event_pb_put_prompt(struct buf *out, const struct sink_prompt *e)
{
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    Shoal__Node__V1__PromptProgress prompt = SHOAL__NODE__V1__PROMPT_PROGRESS__INIT;
    prompt.choice = e->choice;
    prompt.tokens = e->tokens;
    prompt.cached = e->cached;
    prompt.computed = e->computed;
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_PROMPT;
    m.prompt = &prompt;
    put_event(out, &m);
}

static void put_token_slow(struct buf *out, const struct sink_token *e)
{
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    Shoal__Node__V1__Token token = SHOAL__NODE__V1__TOKEN__INIT;
    Shoal__Node__V1__Logprob list[MAX_LOGPROBS], *pointers[MAX_LOGPROBS];
    for (uint32_t i = 0; i < e->n_logprobs && i < MAX_LOGPROBS; i++) {
        shoal__node__v1__logprob__init(&list[i]);
        list[i].token = e->logprobs[i].token;
        list[i].logprob = e->logprobs[i].logprob;
        list[i].text = pb_bytes(e->logprobs[i].text, e->logprobs[i].text_bytes);
        pointers[token.n_logprobs++] = &list[i];
    }
    token.logprobs = pointers;
    token.choice = e->choice;
    token.token = e->token;
    token.echo = e->echo;
    token.text = pb_bytes(e->text, e->text_bytes);
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_TOKEN;
    m.token = &token;
    put_event(out, &m);
}

/* Encoded by hand if it has no other fields: this runs for every token. */
void event_pb_put_token(struct buf *out, const struct sink_token *e)
{
    uint64_t zigzag = (uint64_t)e->token << 1; /* token >= 0 */
    if (e->n_logprobs > 0 || e->echo || e->token < 0) {
        put_token_slow(out, e);
        return;
    }
    size_t n = 1 + varint_bytes(zigzag);
    n += e->choice ? 1 + varint_bytes(e->choice) : 0;
    n += e->text_bytes ? 1 + varint_bytes(e->text_bytes) + e->text_bytes : 0;
    buf_putc(out, 0x0a); /* RunEvents.events */
    put_varint(out, 1 + varint_bytes(n) + n);
    buf_putc(out, 0x12); /* RunEvent.token: field 2, a message */
    put_varint(out, n);
    if (e->choice) {
        buf_putc(out, 0x08); /* Token.choice: field 1, a number */
        put_varint(out, e->choice);
    }
    buf_putc(out, 0x10); /* Token.token: field 2, a number with a sign */
    put_varint(out, zigzag);
    if (e->text_bytes) {
        buf_putc(out, 0x22); /* Token.text: field 4, bytes */
        put_varint(out, e->text_bytes);
        buf_put(out, e->text, e->text_bytes);
    }
}

static void put_labels(struct arena *a, pb_result *m, const struct shoal_result *r)
{
    Shoal__Node__V1__Label *list = arena_zalloc_n(a, r->n_labels, sizeof(*list));
    m->labels = arena_zalloc_n(a, r->n_labels, sizeof(*m->labels));
    for (uint32_t i = 0; list && m->labels && i < r->n_labels; i++) {
        shoal__node__v1__label__init(&list[i]);
        list[i].name = pb_text(r->labels[i].name);
        list[i].score = r->labels[i].score;
        m->labels[m->n_labels++] = &list[i];
    }
}

static void put_spans(struct arena *a, pb_result *m, const struct shoal_result *r)
{
    Shoal__Node__V1__Span *list = arena_zalloc_n(a, r->n_spans, sizeof(*list));
    m->spans = arena_zalloc_n(a, r->n_spans, sizeof(*m->spans));
    for (uint32_t i = 0; list && m->spans && i < r->n_spans; i++) {
        const struct shoal_span *from = &r->spans[i];
        shoal__node__v1__span__init(&list[i]);
        list[i].label = pb_text(from->label);
        list[i].start = from->start;
        list[i].end = from->end;
        list[i].start_char = from->start_char;
        list[i].end_char = from->end_char;
        list[i].score = from->score;
        m->spans[m->n_spans++] = &list[i];
    }
}

void event_pb_put_result(struct buf *out, const struct sink_result *e)
{
    const struct shoal_result *r = e->result;
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    pb_result x = SHOAL__NODE__V1__RESULT__INIT;
    struct arena a;
    arena_init(&a, MAX_BYTES);
    x.index = e->index;
    x.last = e->last;
    x.kind = r->kind;
    x.label = pb_text(r->label);
    x.confidence = r->confidence;
    put_labels(&a, &x, r);
    put_spans(&a, &x, r);
    x.vector = (float *)(uintptr_t)r->vector;
    x.n_vector = r->n_dims;
    x.values = (double *)(uintptr_t)r->values;
    x.n_values = r->n_values;
    x.text = pb_bytes(r->text, r->text ? r->text_bytes : 0);
    x.samples = pb_bytes((const char *)r->samples, r->n_samples * sizeof(*r->samples));
    x.sample_rate = r->sample_rate;
    x.n_tokens = r->n_tokens;
    x.truncated = r->truncated;
    x.batch = r->batch;
    x.queue_ns = r->queue_ns;
    x.run_ns = r->run_ns;
    x.total_ns = r->total_ns;
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_RESULT;
    m.result = &x;
    if (a.rc == 0)
        put_event(out, &m);
    else if (out->rc == 0)
        out->rc = a.rc;
    arena_fini(&a);
}

void event_pb_put_done(struct buf *out, const struct sink_done *e)
{
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    Shoal__Node__V1__Done x = SHOAL__NODE__V1__DONE__INIT;
    x.choice = e->choice;
    x.finish = e->finish;
    x.prompt_tokens = e->prompt_tokens;
    x.cached_tokens = e->cached_tokens;
    x.generated_tokens = e->generated_tokens;
    x.queue_ns = e->queue_ns;
    x.first_token_ns = e->first_token_ns;
    x.stopped_by_text = e->stopped_by_text;
    x.stop_index = e->stop_index;
    x.total_ns = e->total_ns;
    x.last = e->last;
    if (e->usage.energy.known) {
        x.set_joules_case = SHOAL__NODE__V1__DONE__SET_JOULES_JOULES;
        x.joules = e->usage.energy.joules;
        x.joules_estimated = e->usage.energy.estimated;
    }
    struct arena a;
    arena_init(&a, MAX_BYTES);
    x.steps = plan_pb_steps(&a, e->steps, e->n_steps, &x.n_steps);
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_DONE;
    m.done = &x;
    put_event(out, &m);
    if (a.rc < 0 && out->rc == 0)
        out->rc = a.rc;
    arena_fini(&a);
}

void event_pb_put_failure(struct buf *out, const struct failure *f)
{
    pb_event m = SHOAL__NODE__V1__RUN_EVENT__INIT;
    Shoal__Node__V1__Failure x = SHOAL__NODE__V1__FAILURE__INIT;
    x.kind = f->kind;
    x.code = f->code;
    x.reason = pb_text(f->reason);
    x.param = pb_text(f->param);
    x.retry_after_s = f->retry_after_s;
    x.message = pb_text(f->message);
    m.kind_case = SHOAL__NODE__V1__RUN_EVENT__KIND_FAILURE;
    m.failure = &x;
    put_event(out, &m);
}

/* ---- reading ---- */

int event_pb_open(struct event_pb_list *l, const uint8_t *p, size_t n, struct arena *scratch,
                  struct arena *keep)
{
    const Shoal__Node__V1__RunEvents *m =
        pb_unpack(&shoal__node__v1__run_events__descriptor, scratch, p, n);
    *l = (struct event_pb_list){m, m ? m->n_events : 0, scratch, keep};
    return m ? 0 : scratch->rc < 0 ? scratch->rc : SHOAL_EFORMAT;
}

static int get_start(struct event_pb *out, const Shoal__Node__V1__Start *m)
{
    if (m->cache > SINK_CACHE_HIT || m->tools >= TOOL_FORMAT_COUNT ||
        (m->sum.len != 0 && m->sum.len != SHA256_BYTES))
        return SHOAL_EFORMAT;
    out->start = (struct sink_start){.model = m->model,
                                     .version = m->version,
                                     .sum = m->sum.len ? m->sum.data : NULL,
                                     .cache = (enum sink_cache)m->cache,
                                     .tools = (enum tool_format)m->tools,
                                     .isolated = m->isolated};
    return 0;
}

static int get_token(struct event_pb *out, const Shoal__Node__V1__Token *m, struct arena *scratch)
{
    struct sink_logprob *list = arena_zalloc_n(scratch, m->n_logprobs, sizeof(*list));
    if (m->n_logprobs > 0 && !list)
        return scratch->rc;
    for (size_t i = 0; i < m->n_logprobs; i++)
        list[i] = (struct sink_logprob){m->logprobs[i]->token, m->logprobs[i]->logprob,
                                        (const char *)m->logprobs[i]->text.data,
                                        m->logprobs[i]->text.len};
    out->token = (struct sink_token){.choice = m->choice,
                                     .token = m->token,
                                     .echo = m->echo,
                                     .text = m->text.len ? (const char *)m->text.data : "",
                                     .text_bytes = m->text.len,
                                     .logprobs = m->n_logprobs ? list : NULL,
                                     .n_logprobs = (uint32_t)m->n_logprobs};
    return m->token < -1 ? SHOAL_EFORMAT : 0;
}

static const char *keep_text(struct arena *a, const char *p, size_t n)
{
    char *to = arena_bytes(a, n + 1);
    if (!to)
        return "";
    if (n > 0)
        memcpy(to, p, n);
    to[n] = '\0';
    return to;
}

static void get_lists(struct shoal_result *r, const pb_result *m, struct arena *keep)
{
    struct shoal_label *labels = arena_zalloc_n(keep, m->n_labels, sizeof(*labels));
    struct shoal_span *spans = arena_zalloc_n(keep, m->n_spans, sizeof(*spans));
    float *vector = arena_zalloc_n(keep, m->n_vector, sizeof(*vector));
    double *values = arena_zalloc_n(keep, m->n_values, sizeof(*values));
    int16_t *samples = arena_zalloc_n(keep, m->samples.len / 2, sizeof(*samples));
    if (keep->rc < 0)
        return;
    for (size_t i = 0; i < m->n_labels; i++)
        labels[i] = (struct shoal_label){
            keep_text(keep, m->labels[i]->name, strlen(m->labels[i]->name)), m->labels[i]->score};
    for (size_t i = 0; i < m->n_spans; i++) {
        const Shoal__Node__V1__Span *from = m->spans[i];
        spans[i] = (struct shoal_span){
            from->label[0] ? keep_text(keep, from->label, strlen(from->label)) : NULL,
            from->start,
            from->end,
            from->start_char,
            from->end_char,
            from->score};
    }
    if (m->n_vector)
        memcpy(vector, m->vector, m->n_vector * sizeof(*vector));
    if (m->n_values)
        memcpy(values, m->values, m->n_values * sizeof(*values));
    if (m->samples.len)
        memcpy(samples, m->samples.data, m->samples.len / 2 * 2);
    r->samples = samples;
    r->n_samples = (uint32_t)(m->samples.len / 2);
    r->sample_rate = m->sample_rate;
    r->labels = labels;
    r->n_labels = (uint32_t)m->n_labels;
    r->spans = spans;
    r->n_spans = (uint32_t)m->n_spans;
    r->vector = vector;
    r->n_dims = (uint32_t)m->n_vector;
    r->values = values;
    r->n_values = (uint32_t)m->n_values;
}

static int get_result(struct event_pb *out, const pb_result *m, struct arena *keep)
{
    struct shoal_result *r = arena_zalloc(keep, sizeof(*r));
    if (!r)
        return keep->rc;
    if (m->kind < SHOAL_KIND_CLASSIFY || m->kind > SHOAL_KIND_SPEAK || (m->kind & (m->kind - 1)))
        return SHOAL_EFORMAT;
    *r = (struct shoal_result){.size = sizeof(*r),
                               .kind = (enum shoal_kind)m->kind,
                               .confidence = m->confidence,
                               .n_tokens = m->n_tokens,
                               .truncated = m->truncated,
                               .batch = m->batch,
                               .queue_ns = m->queue_ns,
                               .run_ns = m->run_ns,
                               .total_ns = m->total_ns};
    get_lists(r, m, keep);
    r->label = keep_text(keep, m->label, strlen(m->label));
    r->text = keep_text(keep, (const char *)m->text.data, m->text.len);
    r->text_bytes = m->text.len;
    out->result = (struct sink_result){m->index, r, m->last};
    return keep->rc;
}

static int get_done(struct event_pb *out, const Shoal__Node__V1__Done *m, struct arena *scratch)
{
    if (m->finish != SHOAL_FINISH_STOP && m->finish != SHOAL_FINISH_LENGTH)
        return SHOAL_EFORMAT;
    out->done = (struct sink_done){.choice = m->choice,
                                   .finish = (enum shoal_finish)m->finish,
                                   .prompt_tokens = m->prompt_tokens,
                                   .cached_tokens = m->cached_tokens,
                                   .generated_tokens = m->generated_tokens,
                                   .queue_ns = m->queue_ns,
                                   .first_token_ns = m->first_token_ns,
                                   .stopped_by_text = m->stopped_by_text,
                                   .stop_index = m->stop_index,
                                   .total_ns = m->total_ns,
                                   .last = m->last,
                                   .n_steps = (uint32_t)m->n_steps};
    if (m->set_joules_case == SHOAL__NODE__V1__DONE__SET_JOULES_JOULES && m->joules >= 0 &&
        isfinite(m->joules))
        out->done.usage.energy = (struct sink_energy){
            .known = true, .estimated = m->joules_estimated, .joules = m->joules};
    out->done.steps = plan_pb_read_steps(scratch, m->steps, m->n_steps);
    return out->done.steps ? 0 : scratch->rc;
}

static int get_failure(struct event_pb *out, const Shoal__Node__V1__Failure *m)
{
    if (m->kind > FAILURE_CONFLICT || m->code >= 0)
        return SHOAL_EFORMAT;
    out->failure = (struct failure){.kind = (enum failure_kind)m->kind,
                                    .code = m->code,
                                    .reason = m->reason[0] ? m->reason : NULL,
                                    .param = m->param[0] ? m->param : NULL,
                                    .retry_after_s = m->retry_after_s};
    snprintf(out->failure.message, sizeof(out->failure.message), "%s", m->message);
    return 0;
}

int event_pb_get(struct event_pb *out, const struct event_pb_list *l, size_t i)
{
    const pb_event *m = ((const Shoal__Node__V1__RunEvents *)l->message)->events[i];
    switch (m->kind_case) {
    case SHOAL__NODE__V1__RUN_EVENT__KIND_START:
        out->kind = EVENT_PB_START;
        return get_start(out, m->start);
    case SHOAL__NODE__V1__RUN_EVENT__KIND_PLAN:
        out->kind = EVENT_PB_PLAN;
        return plan_pb_read(&out->plan.plan, l->keep, m->plan);
    case SHOAL__NODE__V1__RUN_EVENT__KIND_PROMPT:
        out->kind = EVENT_PB_PROMPT;
        out->prompt = (struct sink_prompt){m->prompt->choice, m->prompt->tokens, m->prompt->cached,
                                           m->prompt->computed};
        return 0;
    case SHOAL__NODE__V1__RUN_EVENT__KIND_TOKEN:
        out->kind = EVENT_PB_TOKEN;
        return get_token(out, m->token, l->scratch);
    case SHOAL__NODE__V1__RUN_EVENT__KIND_RESULT:
        out->kind = EVENT_PB_RESULT;
        return get_result(out, m->result, l->keep);
    case SHOAL__NODE__V1__RUN_EVENT__KIND_DONE:
        out->kind = EVENT_PB_DONE;
        return get_done(out, m->done, l->scratch);
    case SHOAL__NODE__V1__RUN_EVENT__KIND_FAILURE:
        out->kind = EVENT_PB_FAILURE;
        return get_failure(out, m->failure);
    default:
        return SHOAL_EFORMAT;
    }
}
