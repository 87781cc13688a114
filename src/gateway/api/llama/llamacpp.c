/* llamacpp.c - see llamacpp.h: events to answers, and the handlers. */
#include "gateway/api/llama/llamacpp.h"

#include <math.h>
#include <string.h>

#include "flow/stages.h"
#include "gateway/api/llama/slot_store.h"
#include "gateway/call/answer.h"
#include "gateway/api/timings_json.h"
#include "gateway/call/door.h"
#include "wire/json_out.h"

#define MAX_FIELDS_BYTES ((size_t)64 << 20)

/* Turns the events of a generation into an answer to the call. */
struct llamacpp_answer {
    struct answer_sink answer; /* first */
    struct llamacpp_shape shape;
    struct request_generate asked;      /* for generation_settings; pointers are the request's */
    bool new_line[REQUEST_MAX_CHOICES]; /* streams: the text contained a line break */
};

static struct llamacpp_answer *llamacpp_of(struct answer_sink *a)
{
    return (struct llamacpp_answer *)(void *)a; /* its first member */
}

static void put_settings(struct json_out *j, const char *key, const struct request_generate *g)
{
    const struct shoal_sampling *s = &g->sampling;
    json_out_member_object(j, key);
    json_out_member_int(j, "n_predict",
                        g->prompt_only      ? 0
                        : g->max_tokens > 0 ? (int64_t)g->max_tokens
                                            : -1);
    json_out_member_uint(j, "seed", g->has_seed ? s->seed : 4294967295u);
    const struct {
        const char *name;
        float v;
    } numbers[] = {{"temperature", s->temperature},
                   {"top_p", s->top_p},
                   {"min_p", s->min_p},
                   {"repeat_penalty", s->repeat_penalty},
                   {"presence_penalty", s->presence_penalty},
                   {"frequency_penalty", s->frequency_penalty}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_out_member_float(j, numbers[i].name, numbers[i].v);
    json_out_member_uint(j, "top_k", s->top_k);
    json_out_member_uint(j, "repeat_last_n", s->repeat_last_n);
    json_out_member_uint(j, "n_probs", s->n_logprobs);
    json_out_key(j, "max_tokens"); /* another name of n_predict */
    json_out_int(j, g->prompt_only ? 0 : g->max_tokens > 0 ? (int64_t)g->max_tokens : -1);
    json_out_member_array(j, "logit_bias");
    for (uint32_t i = 0; i < s->n_bias; i++) {
        json_out_object(j);
        json_out_key(j, "bias");
        isfinite(s->bias[i].bias) ? json_out_float(j, s->bias[i].bias) : json_out_null(j);
        json_out_member_int(j, "token", s->bias[i].token);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_member_bool(j, "ignore_eos", g->ignore_end);
    json_out_member_array(j, "stop");
    for (uint32_t i = 0; i < g->n_stop; i++)
        json_out_str(j, g->stop[i]);
    json_out_array_end(j);
    json_out_object_end(j);
}

/* drawn: as the probability that the token was drawn by. */
static void put_prob(struct json_out *j, const struct sink_logprob *l, bool drawn)
{
    json_out_member_int(j, "id", l->token);
    json_out_member_strn(j, "token", l->text, l->text_bytes);
    json_out_member_array(j, "bytes");
    for (size_t i = 0; i < l->text_bytes; i++)
        json_out_uint(j, (uint8_t)l->text[i]);
    json_out_array_end(j);
    json_out_member_float(j, drawn ? "prob" : "logprob", drawn ? expf(l->logprob) : l->logprob);
}

static void put_probs(struct json_out *j, const struct sink_token *t, bool drawn)
{
    json_out_object(j);
    put_prob(j, &t->logprobs[0], drawn);
    json_out_member_array(j, drawn ? "top_probs" : "top_logprobs");
    for (uint32_t i = 1; i < t->n_logprobs; i++) {
        json_out_object(j);
        put_prob(j, &t->logprobs[i], drawn);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

static void put_tokens(struct json_out *j, struct answer_choice *ch, bool wanted)
{
    struct answer_cursor at = {0};
    struct sink_token t;
    json_out_member_array(j, "tokens");
    while (wanted && answer_next_token(ch, &at, &t))
        if (t.token >= 0)
            json_out_int(j, t.token);
    json_out_array_end(j);
}

static void put_all_probs(struct json_out *j, struct answer_choice *ch, bool drawn)
{
    struct answer_cursor at = {0};
    struct sink_token t;
    json_out_member_array(j, "completion_probabilities");
    while (answer_next_token(ch, &at, &t))
        if (t.logprobs)
            put_probs(j, &t, drawn);
    json_out_array_end(j);
}

static uint64_t slot_of(const struct llamacpp_answer *a, uint32_t choice)
{
    return a->shape.id_slot >= 0 ? (uint64_t)a->shape.id_slot : choice;
}

/* The slot that the client named holds what was evaluated: a prompt that is a text, and the answer.
 */
static void keep_slot(const struct llamacpp_answer *a, const struct answer_choice *ch, uint32_t i)
{
    const struct call *c = a->answer.call;
    const struct request_prompt *p = a->asked.prompts;
    if (!c->gl->gw->slots || a->shape.id_slot < 0 || i > 0 || !p || !p->text || p->suffix ||
        p->n_pieces > 0)
        return;
    slot_store_put(c->gl->gw->slots, c->client ? c->client->name : "", (uint32_t)a->shape.id_slot,
                   p->text, p->text_bytes, buf_str(&ch->text), ch->text.len,
                   ch->done.prompt_tokens + ch->done.generated_tokens);
}

/* The context of the model that answers; 0: it is on another node, or in a process of its own. */
struct context_of {
    const char *name;
    uint32_t n_ctx;
};

static void on_context(void *ctx, const struct registry_model *m)
{
    struct context_of *x = ctx;
    if (strcmp(m->name, x->name) == 0)
        x->n_ctx = m->slot->n_ctx;
}

/* As llama.cpp has it: the context was shifted, or it ended the answer before n_predict did. */
static bool is_truncated(const struct llamacpp_answer *a, const struct sink_done *d)
{
    struct context_of x = {a->answer.model ? a->answer.model : "", 0};
    if (d->finish == SHOAL_FINISH_LENGTH && !a->asked.prompt_only &&
        (a->asked.max_tokens == 0 || d->generated_tokens < a->asked.max_tokens))
        return true;
    registry_each(a->answer.call->gl->gw->registry, on_context, &x);
    return x.n_ctx > 0 && (uint64_t)d->prompt_tokens + d->generated_tokens > x.n_ctx;
}

/* The end of an answer: all of it, or the last event of a stream. */
static void put_end(struct llamacpp_answer *a, struct json_out *j, uint32_t i)
{
    struct answer_choice *ch = &a->answer.choices[i];
    const struct sink_done *d = &ch->done;
    bool length = d->finish == SHOAL_FINISH_LENGTH;
    keep_slot(a, ch, i);
    json_out_object(j);
    json_out_member_uint(j, "index", i);
    json_out_member_strn(j, "content", buf_str(&ch->text), a->shape.stream ? 0 : ch->text.len);
    put_tokens(j, ch, a->shape.return_tokens);
    json_out_member_uint(j, "id_slot", slot_of(a, i));
    json_out_member_bool(j, "stop", true);
    json_out_member_str(j, "model", a->answer.model);
    json_out_member_uint(j, "tokens_predicted", d->generated_tokens);
    json_out_member_uint(j, "tokens_evaluated", d->prompt_tokens);
    json_out_member_uint(j, "tokens_cached", d->prompt_tokens + d->generated_tokens);
    put_settings(j, "generation_settings", &a->asked);
    if (a->asked.prompts && a->asked.prompts[i].text)
        json_out_member_strn(j, "prompt", a->asked.prompts[i].text, a->asked.prompts[i].text_bytes);
    json_out_member_bool(j, "has_new_line",
                         a->new_line[i] || memchr(buf_str(&ch->text), '\n', ch->text.len));
    json_out_member_bool(j, "truncated", is_truncated(a, d));
    json_out_member_str(j, "stop_type", length ? "limit" : d->stopped_by_text ? "word" : "eos");
    json_out_member_str(j, "stopping_word",
                        !length && d->stopped_by_text && d->stop_index < a->asked.n_stop
                            ? a->asked.stop[d->stop_index]
                            : "");
    if (a->asked.sampling.logprobs)
        put_all_probs(j, ch, a->shape.drawn);
    timings_json(j, d);
    json_out_object_end(j);
}

/* The requested fields of an answer, each under its full path. */
static void put_fields(struct llamacpp_answer *a, struct json_out *j, uint32_t i)
{
    struct buf whole;
    buf_init(&whole, MAX_FIELDS_BYTES);
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

static void put_whole(struct answer_sink *sink, const struct sink_done *d)
{
    struct llamacpp_answer *a = llamacpp_of(sink);
    struct json_out j = json_out_make(&sink->call->out);
    (void)d; /* of the last choice */
    if (a->shape.several)
        json_out_array(&j);
    for (uint32_t i = 0; i < sink->n_choices; i++)
        if (a->shape.n_fields > 0)
            put_fields(a, &j, i);
        else
            put_end(a, &j, i);
    if (a->shape.several)
        json_out_array_end(&j);
}

/* The prompt of a conversation, which is all that was asked for. */
static void put_prompt(struct answer_sink *sink, const struct sink_done *d)
{
    const struct buf *text = &sink->choices[0].text;
    struct json_out j = json_out_make(&sink->call->out);
    (void)d;
    json_out_object(&j);
    json_out_member_strn(&j, "prompt", buf_str(text), text->len);
    json_out_object_end(&j);
}

/* ---- streams ---- */

static struct json_out event_begin(struct answer_sink *sink, uint32_t choice)
{
    answer_begin(sink);
    call_event_begin(sink->call, NULL);
    struct json_out j = json_out_make(&sink->call->out);
    json_out_object(&j);
    json_out_member_uint(&j, "index", choice);
    return j;
}

static void event_end(struct answer_sink *sink, struct json_out *j)
{
    json_out_object_end(j);
    call_event_end(sink->call);
}

static void stream_prompt(struct answer_sink *sink, const struct sink_prompt *e)
{
    struct json_out j = event_begin(sink, e->choice);
    json_out_member_str(&j, "content", "");
    json_out_member_array(&j, "tokens");
    json_out_array_end(&j);
    json_out_member_bool(&j, "stop", false);
    timings_json_progress(&j, e, sink->call->start_ns);
    event_end(sink, &j);
}

static void stream_token(struct answer_sink *sink, const struct sink_token *t)
{
    struct llamacpp_answer *a = llamacpp_of(sink);
    struct json_out j = event_begin(sink, t->choice);
    json_out_member_strn(&j, "content", t->text, t->text_bytes);
    json_out_member_array(&j, "tokens");
    if (t->token >= 0)
        json_out_int(&j, t->token);
    json_out_array_end(&j);
    json_out_member_bool(&j, "stop", false);
    json_out_member_uint(&j, "id_slot", slot_of(a, t->choice));
    json_out_member_uint(&j, "tokens_predicted", sink->choices[t->choice].n_tokens);
    if (t->logprobs) {
        json_out_member_array(&j, "completion_probabilities");
        put_probs(&j, t, a->shape.drawn);
        json_out_array_end(&j);
    }
    event_end(sink, &j);
    a->new_line[t->choice] |= t->text_bytes > 0 && memchr(t->text, '\n', t->text_bytes);
}

static void stream_done(struct answer_sink *sink, const struct sink_done *d)
{
    call_event_begin(sink->call, NULL);
    struct json_out j = json_out_make(&sink->call->out);
    put_end(llamacpp_of(sink), &j, d->choice);
    call_event_end(sink->call);
}

/* ---- handlers ---- */

static const struct answer_dialect completion = {.frame = &answer_events,
                                                 .failure_event = "error",
                                                 .every_token = true,
                                                 .prompt = stream_prompt,
                                                 .text = stream_token,
                                                 .done = stream_done,
                                                 .whole = put_whole};
static const struct answer_dialect template = {.frame = &answer_events, .whole = put_prompt};

static void run(struct call *c, struct request *r, const struct llamacpp_shape *shape,
                const struct answer_dialect *d)
{
    struct llamacpp_answer *a = answer_create(c, r, sizeof(*a), d, shape->stream);
    if (!a)
        return;
    a->shape = *shape;
    a->asked = r->generate;
    if (shape->id_slot >= 0)
        a->answer.keeps |= ANSWER_KEEPS_TEXT;
    if (!shape->stream && (shape->return_tokens || r->generate.sampling.logprobs))
        a->answer.keeps |= ANSWER_KEEPS_TOKENS;
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
    if (ok && lora_api_choose(c, r, &shape.lora) && door_enter_more(c, shape.n_prompts))
        run(c, r, &shape, &completion);
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
        run(c, r, &shape, &template);
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
    json_out_member_object(j, "default_generation_settings");
    json_out_member_uint(j, "id", 0);
    json_out_member_uint(j, "n_ctx", info->n_ctx);
    put_settings(j, "params", &g);
    json_out_object_end(j);
    json_out_member_uint(j, "total_slots", info->max_tasks);
    json_out_member_str(j, "model_alias", m->name);
    json_out_member_str(j, "model_path", m->name); /* server paths are not exposed */
    json_out_member_str(j, "chat_template", info->chat_template ? info->chat_template : "");
    json_out_member_object(j, "modalities");
    json_out_member_bool(j, "vision", false);
    json_out_member_bool(j, "audio", false);
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
        json_out_member_bool(j, "speculative", false);
        json_out_member_bool(j, "is_processing", i < busy);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void llamacpp_slots(struct call *c)
{
    put_first(c, put_slots);
}
