/* fuzz_node_pb.c - messages of other members of a shoal: requests, events of answers, states of
 * nodes.  The first byte chooses.  The result is within the limits that its readers rely on, and
 * survives another round trip. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/messages/event_pb.h"
#include "cluster/messages/node_state.h"
#include "cluster/messages/request_pb.h"
#include "support/fuzz_note.h"

#define NOW 1000u
#define MAX_BYTES ((size_t)1 << 26)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

/* ---- requests ---- */

static void check_generate(const struct request_generate *g)
{
    expect(g->n_prompts >= 1 && g->n >= 1 && request_choices(g) <= REQUEST_MAX_CHOICES);
    expect(g->n_stop <= REQUEST_MAX_STOPS && g->sampling.n_bias <= REQUEST_MAX_BIAS);
    for (uint32_t i = 0; i < g->chat.n_messages; i++)
        expect(g->chat.messages[i].role && g->chat.messages[i].content);
    for (uint32_t i = 0; g->chat.n_messages == 0 && i < g->n_prompts; i++)
        expect(g->prompts[i].text || g->prompts[i].n_ids == 0 || g->prompts[i].ids);
    for (uint32_t i = 0; g->resume && i < request_choices(g); i++)
        expect(g->resume[i].n_tokens == 0 || g->resume[i].tokens);
}

static void check_infer(const struct request_infer *q)
{
    expect(q->n_inputs >= 1 && q->n_inputs <= REQUEST_MAX_INPUTS);
    expect(q->kind != SHOAL_KIND_RERANK || q->query);
    for (uint32_t i = 0; i < q->n_inputs; i++)
        expect(q->kind == SHOAL_KIND_SCORE ? q->inputs[i].n_values == 0 || q->inputs[i].values
                                           : q->inputs[i].text != NULL);
}

static void put_request(struct buf *out, const struct request *r)
{
    buf_init(out, MAX_BYTES);
    expect(request_pb_put(out, r, NOW) == 0);
}

static void read_request(const uint8_t *p, size_t n)
{
    struct request *r = request_create(), *again = request_create();
    struct buf first, second;
    struct err e = {0};
    if (!r || !again)
        abort();
    int rc = request_pb_read(r, p, n, NOW, &e);
    expect(rc == 0 || e.msg[0]); /* the sender gets the reason */
    FUZZ_NOTE("%d %s ", rc, e.msg);
    if (rc == 0) {
        if (r->kind == REQUEST_GENERATE)
            check_generate(&r->generate);
        else if (r->kind == REQUEST_INFER)
            check_infer(&r->infer);
        else
            expect(r->ask.text != NULL);
        put_request(&first, r);
        expect(request_pb_read(again, (const uint8_t *)first.data, first.len, NOW, &e) == 0);
        put_request(&second, again);
        expect(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        FUZZ_NOTE_BYTES(first.data, first.len);
        buf_fini(&first);
        buf_fini(&second);
    }
    request_destroy(r);
    request_destroy(again);
}

/* ---- events ---- */

static void check_result(const struct shoal_result *r)
{
    expect(r->label && r->text && r->text[r->text_bytes] == '\0');
    for (uint32_t i = 0; i < r->n_labels; i++)
        expect(r->labels[i].name != NULL);
    expect(r->n_dims == 0 || r->vector);
    expect(r->n_values == 0 || r->values);
}

static void put_event(struct buf *out, const struct event_pb *e)
{
    switch (e->kind) {
    case EVENT_PB_START:
        expect(e->start.model && e->start.version);
        event_pb_put_start(out, &e->start);
        break;
    case EVENT_PB_PLAN:
        event_pb_put_plan(out, &e->plan);
        break;
    case EVENT_PB_PROMPT:
        event_pb_put_prompt(out, &e->prompt);
        break;
    case EVENT_PB_TOKEN:
        expect(e->token.text && e->token.token >= -1);
        event_pb_put_token(out, &e->token);
        break;
    case EVENT_PB_RESULT:
        check_result(e->result.result);
        event_pb_put_result(out, &e->result);
        break;
    case EVENT_PB_DONE:
        expect(e->done.n_steps == 0 || e->done.steps);
        event_pb_put_done(out, &e->done);
        break;
    case EVENT_PB_FAILURE:
        expect(e->failure.code < 0);
        event_pb_put_failure(out, &e->failure);
        break;
    }
}

/* Reads events and writes the well-formed ones; returns how many. */
static size_t read_events(struct buf *out, const uint8_t *p, size_t n)
{
    struct arena scratch, keep;
    struct event_pb_list list;
    struct event_pb e;
    size_t n_good = 0;
    arena_init(&scratch, MAX_BYTES);
    arena_init(&keep, MAX_BYTES);
    buf_init(out, MAX_BYTES);
    if (event_pb_open(&list, p, n, &scratch, &keep) < 0)
        expect(list.n == 0);
    for (size_t i = 0; i < list.n; i++)
        if (event_pb_get(&e, &list, i) == 0) {
            put_event(out, &e);
            n_good++;
        }
    expect(out->rc == 0);
    arena_fini(&scratch);
    arena_fini(&keep);
    return n_good;
}

static void read_answer(const uint8_t *p, size_t n)
{
    struct buf first, second;
    size_t n_first = read_events(&first, p, n);
    size_t n_second = read_events(&second, (const uint8_t *)first.data, first.len);
    expect(n_first == n_second && first.len == second.len);
    FUZZ_NOTE("%zu ", n_first);
    FUZZ_NOTE_BYTES(first.data, first.len);
    expect(first.len == 0 || memcmp(first.data, second.data, first.len) == 0);
    buf_fini(&first);
    buf_fini(&second);
}

/* ---- states ---- */

static void check_state(const struct node_state *s)
{
    expect(s->id && s->name && s->address && s->zone && s->isa && s->program_version);
    expect(s->n_models <= NODE_STATE_MAX_MODELS);
    expect(isfinite(s->bandwidth) && isfinite(s->probe_tokens));
    for (const char *p = s->name; *p; p++) /* it goes to logs and terminals */
        expect((unsigned char)*p >= 0x20 && *p != 0x7f);
    for (uint32_t i = 0; i < s->n_models; i++) {
        const struct node_model *m = &s->models[i];
        expect(m->name && m->name[0] && m->state <= REGISTRY_FAILED);
        expect(isfinite(m->token_ns) && m->token_ns >= 0);
        expect(isfinite(m->prefill_ns) && m->prefill_ns >= 0);
        expect(node_state_model(s, m->name, 0) != NULL);
    }
}

static bool read_state(struct buf *out, const uint8_t *p, size_t n)
{
    struct node_state s;
    struct arena a;
    struct err e = {0};
    arena_init(&a, MAX_BYTES);
    buf_init(out, MAX_BYTES);
    int rc = node_state_read(&s, &a, p, n, &e);
    FUZZ_NOTE("%d %s ", rc, e.msg);
    expect(rc == 0 || e.msg[0]);
    if (rc == 0) {
        check_state(&s);
        expect(node_state_put(out, &s) == 0);
        FUZZ_NOTE_BYTES(out->data, out->len);
    }
    arena_fini(&a);
    return rc == 0;
}

static void read_heartbeat(const uint8_t *p, size_t n)
{
    struct buf first, second;
    if (read_state(&first, p, n)) {
        expect(read_state(&second, (const uint8_t *)first.data, first.len));
        expect(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        buf_fini(&second);
    }
    buf_fini(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {read_request, read_answer,
                                                               read_heartbeat};
    if (size > 0)
        readers[data[0] % 3](data + 1, size - 1);
    return 0;
}
