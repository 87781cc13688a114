/* llamacpp.c - see llamacpp.h: events to answers, and the handlers. */
#include "gateway/api/llama/llamacpp.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "flow/stages.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/timings_json.h"
#include "gateway/call.h"
#include "gateway/door.h"
#include "wire/json_out.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)

struct choice {             /* the answer to one prompt */
    struct buf text, probs; /* probs: elements of completion_probabilities */
    struct buf tokens;      /* int32_t each */
    uint32_t n_probs, n_tokens;
    bool new_line; /* its text contains a line break */
    struct sink_done done;
};

/* Turns the events of a generation into an answer to the call. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    struct llamacpp_shape shape;
    struct request_generate asked; /* for generation_settings; pointers are the request's */
    const char *model;
    struct choice *choices; /* [shape.n_prompts]; mem_free */
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

static void put_settings(struct json_out *j, const char *key, const struct request_generate *g)
{
    const struct shoal_sampling *s = &g->sampling;
    json_out_key(j, key);
    json_out_object(j);
    json_out_key(j, "n_predict");
    json_out_int(j, g->prompt_only ? 0 : g->max_tokens > 0 ? (int64_t)g->max_tokens : -1);
    json_out_key(j, "seed");
    json_out_uint(j, g->has_seed ? s->seed : 4294967295u);
    const struct {
        const char *name;
        float v;
    } numbers[] = {{"temperature", s->temperature},
                   {"top_p", s->top_p},
                   {"min_p", s->min_p},
                   {"repeat_penalty", s->repeat_penalty},
                   {"presence_penalty", s->presence_penalty},
                   {"frequency_penalty", s->frequency_penalty}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_out_key(j, numbers[i].name);
        json_out_float(j, numbers[i].v);
    }
    json_out_member_uint(j, "top_k", s->top_k);
    json_out_member_uint(j, "repeat_last_n", s->repeat_last_n);
    json_out_member_uint(j, "n_probs", s->n_logprobs);
    json_out_key(j, "max_tokens"); /* another name of n_predict */
    json_out_int(j, g->prompt_only ? 0 : g->max_tokens > 0 ? (int64_t)g->max_tokens : -1);
    json_out_key(j, "logit_bias");
    json_out_array(j);
    for (uint32_t i = 0; i < s->n_bias; i++) {
        json_out_object(j);
        json_out_key(j, "bias");
        isfinite(s->bias[i].bias) ? json_out_float(j, s->bias[i].bias) : json_out_null(j);
        json_out_key(j, "token");
        json_out_int(j, s->bias[i].token);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_key(j, "ignore_eos");
    json_out_bool(j, g->ignore_end);
    json_out_key(j, "stop");
    json_out_array(j);
    for (uint32_t i = 0; i < g->n_stop; i++)
        json_out_str(j, g->stop[i]);
    json_out_array_end(j);
    json_out_object_end(j);
}

/* drawn: as the probability that the token was drawn by. */
static void put_prob(struct json_out *j, const struct sink_logprob *l, bool drawn)
{
    json_out_key(j, "id");
    json_out_int(j, l->token);
    json_out_key(j, "token");
    json_out_strn(j, l->text, l->text_bytes);
    json_out_key(j, "bytes");
    json_out_array(j);
    for (size_t i = 0; i < l->text_bytes; i++)
        json_out_uint(j, (uint8_t)l->text[i]);
    json_out_array_end(j);
    json_out_key(j, drawn ? "prob" : "logprob");
    json_out_float(j, drawn ? expf(l->logprob) : l->logprob);
}

static void put_probs(struct json_out *j, const struct sink_token *t, bool drawn)
{
    json_out_object(j);
    put_prob(j, &t->logprobs[0], drawn);
    json_out_key(j, drawn ? "top_probs" : "top_logprobs");
    json_out_array(j);
    for (uint32_t i = 1; i < t->n_logprobs; i++) {
        json_out_object(j);
        put_prob(j, &t->logprobs[i], drawn);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

static void put_tokens(struct json_out *j, const struct buf *tokens)
{
    json_out_key(j, "tokens");
    json_out_array(j);
    for (size_t at = 0; at + sizeof(int32_t) <= tokens->len; at += sizeof(int32_t)) {
        int32_t id;
        memcpy(&id, tokens->data + at, sizeof(id));
        json_out_int(j, id);
    }
    json_out_array_end(j);
}

/* The end of an answer: all of it, or the last event of a stream. */
static void put_end(struct answer *a, struct json_out *j, uint32_t i)
{
    const struct choice *ch = &a->choices[i];
    const struct sink_done *d = &ch->done;
    bool length = d->finish == SHOAL_FINISH_LENGTH;
    json_out_object(j);
    json_out_member_uint(j, "index", i);
    json_out_key(j, "content");
    json_out_strn(j, a->shape.stream ? "" : buf_str(&ch->text), a->shape.stream ? 0 : ch->text.len);
    put_tokens(j, &ch->tokens);
    json_out_member_uint(j, "id_slot", i);
    json_out_key(j, "stop");
    json_out_bool(j, true);
    json_out_member_str(j, "model", a->model);
    json_out_member_uint(j, "tokens_predicted", d->generated_tokens);
    json_out_member_uint(j, "tokens_evaluated", d->prompt_tokens);
    json_out_member_uint(j, "tokens_cached", d->prompt_tokens + d->generated_tokens);
    put_settings(j, "generation_settings", &a->asked);
    if (a->asked.prompts && a->asked.prompts[i].text) {
        json_out_key(j, "prompt");
        json_out_strn(j, a->asked.prompts[i].text, a->asked.prompts[i].text_bytes);
    }
    json_out_key(j, "has_new_line");
    json_out_bool(j, ch->new_line);
    json_out_key(j, "truncated");
    json_out_bool(j, false);
    json_out_member_str(j, "stop_type", length ? "limit" : d->stopped_by_text ? "word" : "eos");
    json_out_member_str(j, "stopping_word",
                        !length && d->stopped_by_text && d->stop_index < a->asked.n_stop
                            ? a->asked.stop[d->stop_index]
                            : "");
    if (a->asked.sampling.logprobs) {
        json_out_key(j, "completion_probabilities");
        json_out_list(j, &ch->probs);
    }
    timings_json(j, d);
    json_out_object_end(j);
}

/* The requested fields of an answer, each under its full path. */
static void put_fields(struct answer *a, struct json_out *j, uint32_t i)
{
    struct buf whole;
    buf_init(&whole, MAX_TEXT_BYTES);
    struct json_out all = json_out_make(&whole);
    put_end(a, &all, i);
    cJSON *tree = whole.rc < 0 ? NULL : cJSON_Parse(buf_str(&whole)), *some = cJSON_CreateObject();
    for (uint32_t k = 0; tree && some && k < a->shape.n_fields; k++) {
        const char *path = a->shape.fields[k], *at = path;
        cJSON *v = tree;
        while (v && at) {
            char name[64];
            size_t n = strcspn(at, "/");
            if (n >= sizeof(name)) {
                v = NULL;
                break;
            }
            memcpy(name, at, n);
            name[n] = '\0';
            v = cJSON_GetObjectItemCaseSensitive(v, name);
            at = at[n] ? at + n + 1 : NULL;
        }
        if (v && !cJSON_HasObjectItem(some, path))
            cJSON_AddItemToObject(some, path, cJSON_Duplicate(v, true));
    }
    char *text = tree && some ? cJSON_PrintUnformatted(some) : NULL;
    if (!text)
        j->b->rc = SHOAL_ENOMEM;
    else
        json_out_raw(j, text, strlen(text));
    cJSON_free(text);
    cJSON_Delete(some);
    cJSON_Delete(tree);
    buf_fini(&whole);
}

static void put_whole(struct answer *a)
{
    struct buf *b = &a->call->out;
    buf_clear(b);
    struct json_out j = json_out_make(b);
    if (a->shape.raw) {
        json_out_object(&j);
        json_out_key(&j, "prompt");
        json_out_strn(&j, buf_str(&a->choices[0].text), a->choices[0].text.len);
        json_out_object_end(&j);
        return;
    }
    if (a->shape.several)
        json_out_array(&j);
    for (uint32_t i = 0; i < a->shape.n_prompts; i++)
        if (a->shape.n_fields > 0)
            put_fields(a, &j, i);
        else
            put_end(a, &j, i);
    if (a->shape.several)
        json_out_array_end(&j);
    for (uint32_t i = 0; i < a->shape.n_prompts; i++)
        if (a->choices[i].text.rc < 0 || a->choices[i].probs.rc < 0 || a->choices[i].tokens.rc < 0)
            b->rc = SHOAL_ENOMEM;
}

/* ---- events ---- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    answer_of(s)->model = e->model;
    call_set_model(answer_of(s)->call, e);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    struct call *c = answer_of(s)->call;
    if (!c->req)
        return;
    (void)call_begin_events(c);
    call_event_begin(c, NULL);
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_uint(&j, "index", e->choice);
    json_out_member_str(&j, "content", "");
    json_out_key(&j, "tokens");
    json_out_array(&j);
    json_out_array_end(&j);
    json_out_key(&j, "stop");
    json_out_bool(&j, false);
    timings_json_progress(&j, e, c->start_ns);
    json_out_object_end(&j);
    call_event_end(c);
}

static void stream_token(struct answer *a, const struct sink_token *t)
{
    struct call *c = a->call;
    (void)call_begin_events(c);
    call_event_begin(c, NULL);
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_uint(&j, "index", t->choice);
    json_out_key(&j, "content");
    json_out_strn(&j, t->text, t->text_bytes);
    json_out_key(&j, "tokens");
    json_out_array(&j);
    if (t->token >= 0)
        json_out_int(&j, t->token);
    json_out_array_end(&j);
    json_out_key(&j, "stop");
    json_out_bool(&j, false);
    json_out_member_uint(&j, "id_slot", t->choice);
    json_out_member_uint(&j, "tokens_predicted", a->choices[t->choice].n_tokens);
    if (t->logprobs) {
        json_out_key(&j, "completion_probabilities");
        json_out_array(&j);
        put_probs(&j, t, a->shape.drawn);
        json_out_array_end(&j);
    }
    json_out_object_end(&j);
    call_event_end(c);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = answer_of(s);
    struct choice *ch = &a->choices[t->choice];
    if (!a->call->req)
        return;
    ch->n_tokens += t->token >= 0;
    ch->new_line |= t->text_bytes > 0 && memchr(t->text, '\n', t->text_bytes);
    if (a->shape.stream) {
        stream_token(a, t);
        return;
    }
    buf_put(&ch->text, t->text, t->text_bytes);
    if (t->token >= 0 && a->shape.return_tokens)
        buf_put(&ch->tokens, &t->token, sizeof(t->token));
    if (t->logprobs) {
        struct json_out j = json_out_make(&ch->probs);
        j.comma = ch->n_probs++ > 0;
        put_probs(&j, t, a->shape.drawn);
    }
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    a->choices[d->choice].done = *d;
    if (!c->req)
        return;
    if (a->shape.stream) {
        (void)call_begin_events(c);
        call_event_begin(c, NULL);
        struct json_out j = json_out_make(&c->out);
        put_end(a, &j, d->choice);
        call_event_end(c);
        if (d->last)
            call_end_flushed(c);
    } else if (d->last) {
        put_whole(a);
        call_json(c, 200);
    }
}

static void on_fail(struct sink *s, const struct failure *f)
{
    call_fail_stream(answer_of(s)->call, "error", f);
}

static void on_flush(struct sink *s)
{
    if (answer_of(s)->shape.stream)
        call_flush(answer_of(s)->call);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    for (uint32_t i = 0; i < a->shape.n_prompts; i++) {
        buf_fini(&a->choices[i].text);
        buf_fini(&a->choices[i].probs);
        buf_fini(&a->choices[i].tokens);
    }
    mem_free(a->choices);
    call_unset_sink(a->call);
}

/* ---- handlers ---- */

static void run(struct call *c, struct request *r, const struct llamacpp_shape *shape)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct answer *a = arena_zalloc(&r->arena, sizeof(*a));
    struct choice *choices = a ? mem_zalloc_n(shape->n_prompts, sizeof(*choices)) : NULL;
    if (!choices) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    for (uint32_t i = 0; i < shape->n_prompts; i++) {
        buf_init(&choices[i].text, MAX_TEXT_BYTES);
        buf_init(&choices[i].probs, MAX_TEXT_BYTES);
        buf_init(&choices[i].tokens, MAX_TEXT_BYTES);
    }
    *a = (struct answer){.sink = {.ops = &ops},
                         .call = c,
                         .shape = *shape,
                         .asked = r->generate,
                         .choices = choices};
    call_set_sink(c, &a->sink);
    stages_run(&c->gl->flow, r, c->sink);
}

static void complete(struct call *c, bool infill)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct llamacpp_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    bool ok = llamacpp_read(r, &shape, c->json, infill, c->lenient, &e) == 0;
    if (!ok)
        call_fail_fields(c, &e);
    if (ok && door_enter_more(c, shape.n_prompts))
        run(c, r, &shape);
    else
        flow_give_request(&c->gl->flow, r);
}

void llamacpp_completion(struct call *c)
{
    complete(c, false);
}

void llamacpp_infill(struct call *c)
{
    complete(c, true);
}

void llamacpp_apply_template(struct call *c)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct llamacpp_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    if (llamacpp_read_template(r, &shape, c->json, c->lenient, &e) == 0) {
        run(c, r, &shape);
        return;
    }
    call_fail_fields(c, &e);
    flow_give_request(&c->gl->flow, r);
}

void llamacpp_health(struct call *c)
{
    if (registry_ready(c->gl->gw->registry)) {
        call_text(c, 200, "application/json", "{\"status\":\"ok\"}", 15);
        return;
    }
    call_fail(c, 503, "unavailable_error", NULL, NULL, "Loading model");
}

/* The model that answers when none is named: the first that generates. */
struct first {
    struct json_out *j;
    bool found;
    void (*put)(struct json_out *j, const struct registry_model *m,
                const struct shoal_engine_info *info);
};

static void on_first(void *ctx, const struct registry_model *m)
{
    struct first *f = ctx;
    struct shoal_engine_info info = {.size = sizeof(info)};
    if (f->found || !m->slot->engine || !(m->slot->kinds & SHOAL_KIND_GENERATE))
        return;
    shoal_engine_info(m->slot->engine, &info);
    f->found = true;
    f->put(f->j, m, &info);
}

static void put_first(struct call *c,
                      void (*put)(struct json_out *j, const struct registry_model *m,
                                  const struct shoal_engine_info *info))
{
    struct json_out j = json_out_make(&c->out);
    struct first f = {&j, false, put};
    registry_each(c->gl->gw->registry, on_first, &f);
    if (f.found)
        call_json(c, 200);
    else
        call_fail(c, 503, "unavailable_error", NULL, "model_loading",
                  "no model that generates text is loaded");
}

static void put_props(struct json_out *j, const struct registry_model *m,
                      const struct shoal_engine_info *info)
{
    const struct request_generate g = {.sampling = {.temperature = 0.8f,
                                                    .top_k = 40,
                                                    .top_p = 0.95f,
                                                    .min_p = 0.05f,
                                                    .repeat_penalty = 1,
                                                    .repeat_last_n = 64}};
    json_out_object(j);
    json_out_key(j, "default_generation_settings");
    json_out_object(j);
    json_out_member_uint(j, "id", 0);
    json_out_member_uint(j, "n_ctx", info->n_ctx);
    put_settings(j, "params", &g);
    json_out_object_end(j);
    json_out_member_uint(j, "total_slots", info->max_tasks);
    json_out_member_str(j, "model_alias", m->name);
    json_out_member_str(j, "model_path", m->name); /* server paths are not exposed */
    json_out_member_str(j, "chat_template", info->chat_template ? info->chat_template : "");
    json_out_key(j, "modalities");
    json_out_object(j);
    json_out_key(j, "vision");
    json_out_bool(j, false);
    json_out_key(j, "audio");
    json_out_bool(j, false);
    json_out_object_end(j);
    json_out_member_str(j, "build_info", shoal_version());
    json_out_object_end(j);
}

void llamacpp_props(struct call *c)
{
    put_first(c, put_props);
}

static void put_slots(struct json_out *j, const struct registry_model *m,
                      const struct shoal_engine_info *info)
{
    struct model_stats *k = &((struct registry_model *)(uintptr_t)m)->stats; /* atomics */
    uint32_t busy = (uint32_t)atomic_load_explicit(&k->in_flight, memory_order_relaxed);
    json_out_array(j);
    for (uint32_t i = 0; i < info->max_tasks; i++) {
        json_out_object(j);
        json_out_member_uint(j, "id", i);
        json_out_member_uint(j, "n_ctx", info->n_ctx);
        json_out_key(j, "speculative");
        json_out_bool(j, false);
        json_out_key(j, "is_processing");
        json_out_bool(j, i < busy);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void llamacpp_slots(struct call *c)
{
    put_first(c, put_slots);
}

void llamacpp_lora(struct call *c)
{
    call_text(c, 200, "application/json", "[]", 2);
}
