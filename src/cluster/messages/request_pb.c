/* request_pb.c - see request_pb.h. */
#include "cluster/messages/request_pb.h"

#include <stdio.h>
#include <string.h>

#include <shoal/node/v1/node.pb-c.h>

#include "base/utf8.h"
#include "host/sha256.h"
#include "wire/pb.h"
#include "wire/value_bytes.h"
#include "wire/value_json.h"

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_MESSAGES 65536u

typedef Shoal__Node__V1__RunRequest pb_request;
typedef Shoal__Node__V1__Generate pb_generate;
typedef Shoal__Node__V1__Infer pb_infer;

/* ---- writing ---- */

static void put_calls(struct arena *a, Shoal__Node__V1__ChatMessage *m,
                      const struct chat_message *from)
{
    Shoal__Node__V1__ChatCall *list =
        pb_list(a, from->n_calls, sizeof(*list), (void ***)(void *)&m->calls);
    for (uint32_t i = 0; list && i < from->n_calls; i++) {
        shoal__node__v1__chat_call__init(&list[i]);
        list[i].id = pb_text(from->calls[i].id);
        list[i].name = pb_text(from->calls[i].name);
        list[i].arguments = pb_bytes(from->calls[i].arguments, from->calls[i].arguments_bytes);
    }
    m->n_calls = list ? from->n_calls : 0;
    if (from->call_id) {
        m->set_call_id_case = SHOAL__NODE__V1__CHAT_MESSAGE__SET_CALL_ID_CALL_ID;
        m->call_id = pb_text(from->call_id);
    }
}

/* A schema travels as JSON. */
static ProtobufCBinaryData put_schema(struct arena *a, const struct value *v)
{
    struct buf b;
    buf_init(&b, REQUEST_MAX_BYTES);
    struct json_out j = json_out_make(&b);
    if (v->kind != VALUE_NULL)
        value_json_put(&j, v);
    if (b.rc < 0)
        a->rc = b.rc;
    const char *copy = arena_copy(a, buf_str(&b), b.len);
    const ProtobufCBinaryData out = pb_bytes(copy, copy ? b.len : 0);
    buf_fini(&b);
    return out;
}

static int read_schema(struct request *r, struct value *out, const ProtobufCBinaryData *from,
                       struct err *e)
{
    *out = (struct value){.kind = VALUE_NULL};
    if (from->len == 0)
        return 0;
    r->input_bytes += from->len;
    if (value_json_read(out, &r->arena, (const char *)from->data, from->len) == SHOAL_EFORMAT)
        return err_set(e, SHOAL_EINVAL, "the parameters of a tool are not JSON");
    return 0;
}

static void put_tools(struct arena *a, pb_generate *m, const struct chat *c)
{
    Shoal__Node__V1__ChatTool *list =
        pb_list(a, c->n_tools, sizeof(*list), (void ***)(void *)&m->tools);
    for (uint32_t i = 0; list && i < c->n_tools; i++) {
        shoal__node__v1__chat_tool__init(&list[i]);
        list[i].name = pb_text(c->tools[i].name);
        list[i].description = pb_text(c->tools[i].description);
        list[i].parameters = put_schema(a, &c->tools[i].parameters);
        list[i].strict = c->tools[i].strict;
    }
    m->n_tools = list ? c->n_tools : 0;
    m->tool_choice = c->tool_choice;
    m->tool = c->tool;
    m->one_call = c->one_call;
}

static void put_messages(struct arena *a, pb_generate *m, const struct chat *c, struct buf *vars)
{
    const struct value map = {.kind = VALUE_MAP, .map = {c->vars, c->n_vars}};
    Shoal__Node__V1__ChatMessage *list =
        pb_list(a, c->n_messages, sizeof(*list), (void ***)(void *)&m->messages);
    for (uint32_t i = 0; list && i < c->n_messages; i++) {
        shoal__node__v1__chat_message__init(&list[i]);
        list[i].role = pb_text(c->messages[i].role);
        list[i].content = pb_bytes(c->messages[i].content, c->messages[i].content_bytes);
        if (c->messages[i].name) {
            list[i].set_name_case = SHOAL__NODE__V1__CHAT_MESSAGE__SET_NAME_NAME;
            list[i].name = pb_text(c->messages[i].name);
        }
        put_calls(a, &list[i], &c->messages[i]);
    }
    m->n_messages = list ? c->n_messages : 0;
    put_tools(a, m, c);
    if (c->n_vars > 0) {
        value_bytes_put(vars, &map);
        m->vars = pb_bytes(vars->data, vars->len);
    }
}

static void put_pieces(struct arena *a, Shoal__Node__V1__Prompt *m, const struct request_prompt *p)
{
    Shoal__Node__V1__PromptPiece *list =
        pb_list(a, p->n_pieces, sizeof(*list), (void ***)(void *)&m->pieces);
    for (uint32_t i = 0; list && i < p->n_pieces; i++) {
        const struct request_piece *from = &p->pieces[i];
        shoal__node__v1__prompt_piece__init(&list[i]);
        list[i].is_ids = !from->text;
        if (from->text)
            list[i].text = pb_bytes(from->text, from->text_bytes);
        list[i].ids = (int32_t *)(uintptr_t)from->ids;
        list[i].n_ids = from->text ? 0 : from->n_ids;
        if (from->name) {
            list[i].set_name_case = SHOAL__NODE__V1__PROMPT_PIECE__SET_NAME_NAME;
            list[i].name = pb_bytes(from->name, strlen(from->name));
        }
    }
    m->n_pieces = list ? p->n_pieces : 0;
}

static void put_prompts(struct arena *a, pb_generate *m, const struct request_generate *g)
{
    Shoal__Node__V1__Prompt *list =
        pb_list(a, g->n_prompts, sizeof(*list), (void ***)(void *)&m->prompts);
    for (uint32_t i = 0; list && i < g->n_prompts; i++) {
        const struct request_prompt *p = &g->prompts[i];
        shoal__node__v1__prompt__init(&list[i]);
        list[i].is_ids = !p->text;
        if (p->text)
            list[i].text = pb_bytes(p->text, p->text_bytes);
        list[i].ids = (int32_t *)(uintptr_t)p->ids;
        list[i].n_ids = p->text ? 0 : p->n_ids;
        if (p->suffix) {
            list[i].set_suffix_case = SHOAL__NODE__V1__PROMPT__SET_SUFFIX_SUFFIX;
            list[i].suffix = pb_bytes(p->suffix, p->suffix_bytes);
        }
        put_pieces(a, &list[i], p);
    }
    m->n_prompts = list ? g->n_prompts : 0;
}

static void put_sampling(struct arena *a, pb_generate *m, const struct request_generate *g)
{
    const struct shoal_sampling *s = &g->sampling;
    Shoal__Node__V1__Sampling *out = arena_zalloc(a, sizeof(*out));
    if (!out)
        return;
    shoal__node__v1__sampling__init(out);
    out->temperature = s->temperature;
    out->top_k = s->top_k;
    out->top_p = s->top_p;
    out->min_p = s->min_p;
    out->repeat_penalty = s->repeat_penalty;
    out->repeat_last = s->repeat_last_n;
    out->presence_penalty = s->presence_penalty;
    out->frequency_penalty = s->frequency_penalty;
    out->seed = s->seed;
    out->n_logprobs = s->n_logprobs;
    out->logprobs = s->logprobs;
    const uint32_t n = s->n_bias + g->n_bias_texts;
    Shoal__Node__V1__Bias *list = pb_list(a, n, sizeof(*list), (void ***)(void *)&out->bias);
    for (uint32_t i = 0; list && i < n; i++) {
        const struct request_bias *text = i < s->n_bias ? NULL : &g->bias_texts[i - s->n_bias];
        shoal__node__v1__bias__init(&list[i]);
        list[i].token = text ? 0 : s->bias[i].token;
        list[i].value = text ? text->bias : s->bias[i].bias;
        if (text)
            list[i].text = pb_bytes(text->text, strlen(text->text));
    }
    out->n_bias = list ? n : 0;
    m->sampling = out;
}

static void put_resume(struct arena *a, pb_generate *m, const struct request_generate *g)
{
    uint32_t n = g->resume ? request_choices(g) : 0;
    Shoal__Node__V1__Resume *list = pb_list(a, n, sizeof(*list), (void ***)(void *)&m->resume);
    for (uint32_t i = 0; list && i < n; i++) {
        shoal__node__v1__resume__init(&list[i]);
        list[i].done = g->resume[i].done;
        list[i].tokens = (int32_t *)(uintptr_t)g->resume[i].tokens;
        list[i].n_tokens = g->resume[i].n_tokens;
    }
    m->n_resume = list ? n : 0;
}

static void put_generate(struct arena *a, pb_request *m, const struct request_generate *g,
                         struct buf *vars)
{
    pb_generate *out = arena_zalloc(a, sizeof(*out));
    ProtobufCBinaryData *stops = arena_zalloc_n(a, g->n_stop, sizeof(*stops));
    if (!out || !stops)
        return;
    shoal__node__v1__generate__init(out);
    if (g->chat.n_messages > 0)
        put_messages(a, out, &g->chat, vars);
    else
        put_prompts(a, out, g);
    if (g->chat.n_messages > 0 && g->chat.template) {
        out->set_template_case = SHOAL__NODE__V1__GENERATE__SET_TEMPLATE_TEMPLATE;
        out->template_ = pb_bytes(g->chat.template, strlen(g->chat.template));
    }
    put_sampling(a, out, g);
    put_resume(a, out, g);
    for (uint32_t i = 0; i < g->n_stop; i++)
        stops[i] = pb_bytes(g->stop[i], strlen(g->stop[i]));
    out->stop = stops;
    out->n_stop = g->n_stop;
    out->n = g->n;
    out->max_tokens = g->max_tokens;
    out->has_seed = g->has_seed;
    out->ignore_end = g->ignore_end;
    out->special = g->special;
    out->parse_special = g->parse_special;
    out->echo = g->echo;
    out->prompt_only = g->prompt_only;
    out->prompt_logprobs = g->prompt_logprobs;
    out->progress = g->progress;
    out->drawn_logprobs = g->drawn_logprobs;
    out->fresh_prefix = g->fresh_prefix;
    out->no_shift = g->no_shift;
    out->keep_tokens = g->keep_tokens;
    out->adapter_scale = g->adapter_scale;
    out->constraint = (uint32_t)g->constraint.kind;
    out->constraint_text = pb_bytes(g->constraint.text, g->constraint.text_bytes);
    m->work_case = SHOAL__NODE__V1__RUN_REQUEST__WORK_GENERATE;
    m->generate = out;
}

static void put_infer(struct arena *a, pb_request *m, const struct request_infer *q)
{
    pb_infer *out = arena_zalloc(a, sizeof(*out));
    if (!out)
        return;
    shoal__node__v1__infer__init(out);
    Shoal__Node__V1__Input *list =
        pb_list(a, q->n_inputs, sizeof(*list), (void ***)(void *)&out->inputs);
    for (uint32_t i = 0; list && i < q->n_inputs; i++) {
        const struct request_input *in = &q->inputs[i];
        shoal__node__v1__input__init(&list[i]);
        if (in->text)
            list[i].text = pb_bytes(in->text, in->text_bytes);
        list[i].values = (double *)(uintptr_t)in->values;
        list[i].n_values = in->n_values;
        list[i].ids = (int32_t *)(uintptr_t)in->ids;
        list[i].n_ids = in->n_ids;
        list[i].part = in->part;
        if (in->image)
            list[i].image = pb_bytes(in->image, in->image_bytes);
        if (in->samples)
            list[i].samples =
                pb_bytes((const char *)in->samples, in->n_samples * sizeof(*in->samples));
    }
    out->n_inputs = list ? q->n_inputs : 0;
    out->kind = q->kind;
    if (q->query) {
        out->set_query_case = SHOAL__NODE__V1__INFER__SET_QUERY_QUERY;
        out->query = pb_bytes(q->query, strlen(q->query));
    }
    if (q->labels) {
        out->set_labels_case = SHOAL__NODE__V1__INFER__SET_LABELS_LABELS;
        out->labels = pb_text(q->labels);
    }
    if (q->prompt) {
        out->set_prompt_case = SHOAL__NODE__V1__INFER__SET_PROMPT_PROMPT;
        out->prompt = pb_text(q->prompt);
    }
    if (q->title) {
        out->set_title_case = SHOAL__NODE__V1__INFER__SET_TITLE_TITLE;
        out->title = pb_bytes(q->title, strlen(q->title));
    }
    out->temperature = q->temperature;
    out->seed = q->seed;
    out->n_columns = q->n_columns;
    out->stream = pb_text(q->stream);
    out->dimensions = q->dimensions;
    out->max_sentences = q->max_sentences;
    out->max_tokens = q->max_tokens;
    out->beams = q->beams;
    out->raw = q->raw;
    out->words = q->words;
    out->whole = q->whole;
    out->speed = q->speed;
    out->volume = q->volume;
    m->work_case = SHOAL__NODE__V1__RUN_REQUEST__WORK_INFER;
    m->infer = out;
}

static void put_ask(struct arena *a, pb_request *m, const struct request *r)
{
    const struct request_ask *q = &r->ask;
    Shoal__Node__V1__Ask *out = arena_zalloc(a, sizeof(*out));
    if (!out)
        return;
    shoal__node__v1__ask__init(out);
    out->text = pb_text(q->text);
    out->confirm = pb_text(q->confirm);
    out->room = pb_text(q->room);
    out->language = pb_text(r->language);
    out->dry = q->dry;
    out->heard = q->heard;
    out->explain = q->explain;
    out->reply = q->reply;
    m->work_case = SHOAL__NODE__V1__RUN_REQUEST__WORK_ASK;
    m->ask = out;
}

static void put_tokens(struct arena *a, pb_request *m, const struct request_tokens *q)
{
    Shoal__Node__V1__Tokens *out = arena_zalloc(a, sizeof(*out));
    if (!out)
        return;
    shoal__node__v1__tokens__init(out);
    out->decode = q->decode;
    out->flags = q->flags;
    out->kind = q->kind;
    out->metadata = pb_text(q->metadata);
    if (q->text)
        out->text = pb_bytes(q->text, q->text_bytes);
    out->ids = (int32_t *)(uintptr_t)q->ids; /* only read */
    out->n_ids = q->n_ids;
    m->work_case = SHOAL__NODE__V1__RUN_REQUEST__WORK_TOKENS;
    m->tokens = out;
}

int request_pb_put(struct buf *out, const struct request *r, uint64_t now_ns)
{
    pb_request m = SHOAL__NODE__V1__RUN_REQUEST__INIT;
    char trace[TRACE_CONTEXT_CHARS + 1];
    struct arena a;
    struct buf vars;
    arena_init(&a, MAX_BYTES);
    buf_init(&vars, MAX_BYTES);
    m.id = pb_text(r->id);
    trace_at_write(&r->spans, trace);
    m.trace = pb_text(trace);
    m.session = pb_text(r->session);
    m.client = pb_text(r->client.name);
    m.client_priority = r->client.priority;
    m.client_weight = r->client.weight;
    m.shares_cache = r->shares_cache;
    m.pages_from = pb_text(r->pages_from);
    m.pages_name = pb_text(r->pages_name);
    m.pages_part = r->pages_part;
    m.priority = r->priority;
    m.model = pb_text(r->model);
    if (r->version)
        m.version = pb_bytes(r->version, SHA256_BYTES);
    m.epoch = r->epoch;
    m.may_be_old = r->may_be_old;
    if (r->deadline_ns) /* 1: it has already passed */
        m.budget_ns = r->deadline_ns > now_ns ? r->deadline_ns - now_ns : 1;
    if (r->kind == REQUEST_GENERATE)
        put_generate(&a, &m, &r->generate, &vars);
    else if (r->kind == REQUEST_INFER)
        put_infer(&a, &m, &r->infer);
    else if (r->kind == REQUEST_TOKENS)
        put_tokens(&a, &m, &r->tokens);
    else
        put_ask(&a, &m, r);
    int rc = a.rc < 0 ? a.rc : vars.rc < 0 ? vars.rc : pb_put(out, &m.base);
    buf_fini(&vars);
    arena_fini(&a);
    return rc;
}

/* ---- reading ---- */

/* In the arena already; bytes that are not UTF-8 are replaced. */
static const char *text_of(struct request *r, const char *s)
{
    size_t n = strlen(s);
    return utf8_valid_prefix(s, n) == n ? s : request_copy_utf8(r, s, n, NULL);
}

static const char *bytes_text(struct request *r, const ProtobufCBinaryData *b, size_t *n)
{
    return request_copy_utf8(r, b->len > 0 ? (const char *)b->data : "", b->len, n);
}

static int read_word(char *out, size_t cap, const char *s, const char *what, struct err *e)
{
    if (strlen(s) >= cap)
        return err_set(e, SHOAL_EINVAL, "the %s has more than %zu bytes", what, cap - 1);
    memcpy(out, s, strlen(s) + 1);
    return 0;
}

static int read_calls(struct request *r, struct chat_message *out,
                      const Shoal__Node__V1__ChatMessage *m, struct err *e)
{
    struct chat_call *list = arena_zalloc_n(&r->arena, m->n_calls, sizeof(*list));
    if (m->n_calls > REQUEST_MAX_CALLS)
        return err_set(e, SHOAL_EINVAL, "a message has more than %u calls", REQUEST_MAX_CALLS);
    for (size_t i = 0; list && i < m->n_calls; i++) {
        list[i].id = text_of(r, m->calls[i]->id);
        list[i].name = text_of(r, m->calls[i]->name);
        list[i].arguments = bytes_text(r, &m->calls[i]->arguments, &list[i].arguments_bytes);
        r->input_bytes += list[i].arguments_bytes;
    }
    out->calls = list;
    out->n_calls = (uint32_t)m->n_calls;
    if (m->set_call_id_case == SHOAL__NODE__V1__CHAT_MESSAGE__SET_CALL_ID_CALL_ID)
        out->call_id = text_of(r, m->call_id);
    return 0;
}

static int read_tools(struct request *r, const pb_generate *m, struct err *e)
{
    struct chat *c = &r->generate.chat;
    struct chat_tool *list = arena_zalloc_n(&r->arena, m->n_tools, sizeof(*list));
    if (m->n_tools > REQUEST_MAX_TOOLS || m->tool_choice > CHAT_TOOLS_ONE ||
        (m->tool_choice == CHAT_TOOLS_ONE && m->tool >= m->n_tools))
        return err_set(e, SHOAL_EINVAL,
                       "there are more than %u tools, or the choice is none of them",
                       REQUEST_MAX_TOOLS);
    for (size_t i = 0; list && i < m->n_tools; i++) {
        const Shoal__Node__V1__ChatTool *from = m->tools[i];
        list[i].name = text_of(r, from->name);
        list[i].description = text_of(r, from->description);
        list[i].strict = from->strict;
        int rc = read_schema(r, &list[i].parameters, &from->parameters, e);
        if (rc < 0)
            return rc;
    }
    c->tools = list;
    c->n_tools = (uint32_t)m->n_tools;
    c->tool_choice = (enum chat_tool_choice)m->tool_choice;
    c->tool = m->tool;
    c->one_call = m->one_call;
    return 0;
}

static int read_messages(struct request *r, const pb_generate *m, struct err *e)
{
    struct chat *c = &r->generate.chat;
    struct chat_message *list = arena_zalloc_n(&r->arena, m->n_messages, sizeof(*list));
    struct value vars = {.kind = VALUE_MAP};
    if (m->n_messages > MAX_MESSAGES)
        return err_set(e, SHOAL_EINVAL, "there are more than %u messages", MAX_MESSAGES);
    for (size_t i = 0; list && i < m->n_messages; i++) {
        const Shoal__Node__V1__ChatMessage *from = m->messages[i];
        list[i].role = text_of(r, from->role);
        if (from->set_name_case == SHOAL__NODE__V1__CHAT_MESSAGE__SET_NAME_NAME)
            list[i].name = text_of(r, from->name);
        list[i].content = bytes_text(r, &from->content, &list[i].content_bytes);
        r->input_bytes += list[i].content_bytes;
        int bad = read_calls(r, &list[i], from, e);
        if (bad < 0)
            return bad;
    }
    int rc = read_tools(r, m, e);
    if (rc < 0)
        return rc;
    rc = m->vars.len > 0 ? value_bytes_get(&vars, &r->arena, m->vars.data, m->vars.len) : 0;
    if (rc < 0 || vars.kind != VALUE_MAP)
        return err_set(e, rc < 0 ? rc : SHOAL_EFORMAT, "the variables of the template are damaged");
    c->messages = list;
    c->n_messages = (uint32_t)m->n_messages;
    c->vars = vars.map.members;
    c->n_vars = (uint32_t)vars.map.n;
    if (m->set_template_case == SHOAL__NODE__V1__GENERATE__SET_TEMPLATE_TEMPLATE)
        c->template = bytes_text(r, &m->template_, NULL);
    r->generate.n_prompts = 1;
    return 0;
}

static int read_pieces(struct request *r, struct request_prompt *p,
                       const Shoal__Node__V1__Prompt *m, struct err *e)
{
    struct request_piece *list = arena_zalloc_n(&r->arena, m->n_pieces, sizeof(*list));
    if (m->n_pieces > REQUEST_MAX_PIECES)
        return err_set(e, SHOAL_EINVAL, "a prompt has more than %u pieces", REQUEST_MAX_PIECES);
    for (size_t i = 0; list && i < m->n_pieces; i++) {
        const Shoal__Node__V1__PromptPiece *from = m->pieces[i];
        if (from->is_ids) {
            list[i].ids = from->ids;
            list[i].n_ids = from->n_ids;
        } else {
            list[i].text = bytes_text(r, &from->text, &list[i].text_bytes);
        }
        if (from->set_name_case == SHOAL__NODE__V1__PROMPT_PIECE__SET_NAME_NAME)
            list[i].name = bytes_text(r, &from->name, NULL);
        if (p->suffix && !list[i].text)
            return err_set(e, SHOAL_EINVAL, "a file of a prompt has no text");
        r->input_bytes += list[i].text_bytes + sizeof(int32_t) * list[i].n_ids;
    }
    p->pieces = list;
    p->n_pieces = (uint32_t)m->n_pieces;
    return 0;
}

static int read_prompts(struct request *r, const pb_generate *m, struct err *e)
{
    struct request_prompt *list = arena_zalloc_n(&r->arena, m->n_prompts, sizeof(*list));
    if (m->n_prompts == 0 || m->n_prompts > REQUEST_MAX_PROMPTS)
        return err_set(e, SHOAL_EINVAL, "there are %zu prompts, allowed are 1 to %u", m->n_prompts,
                       REQUEST_MAX_PROMPTS);
    for (size_t i = 0; list && i < m->n_prompts; i++) {
        const Shoal__Node__V1__Prompt *from = m->prompts[i];
        if (from->is_ids) {
            list[i].ids = from->ids;
            list[i].n_ids = from->n_ids;
            r->input_bytes += 4 * from->n_ids;
        } else {
            list[i].text = bytes_text(r, &from->text, &list[i].text_bytes);
            r->input_bytes += list[i].text_bytes;
            if (from->set_suffix_case == SHOAL__NODE__V1__PROMPT__SET_SUFFIX_SUFFIX) {
                list[i].suffix = bytes_text(r, &from->suffix, &list[i].suffix_bytes);
                r->input_bytes += list[i].suffix_bytes;
            }
        }
        if (from->n_pieces > 0 && (from->n_ids > 0 || (!from->is_ids && !list[i].suffix)))
            return err_set(e, SHOAL_EINVAL, "a prompt has pieces beside its text");
        int rc = read_pieces(r, &list[i], from, e);
        if (rc < 0)
            return rc;
    }
    r->generate.prompts = list;
    r->generate.n_prompts = (uint32_t)m->n_prompts;
    return 0;
}

static int read_sampling(struct request *r, const pb_generate *m, struct err *e)
{
    static const Shoal__Node__V1__Sampling none = SHOAL__NODE__V1__SAMPLING__INIT;
    const Shoal__Node__V1__Sampling *s = m->sampling ? m->sampling : &none;
    struct shoal_bias *bias = arena_zalloc_n(&r->arena, s->n_bias, sizeof(*bias));
    if (s->n_bias > REQUEST_MAX_BIAS)
        return err_set(e, SHOAL_EINVAL, "there are biases for more than %u tokens",
                       REQUEST_MAX_BIAS);
    struct request_bias *texts = arena_zalloc_n(&r->arena, s->n_bias, sizeof(*texts));
    uint32_t n_bias = 0, n_texts = 0;
    for (size_t i = 0; bias && texts && i < s->n_bias; i++) {
        if (s->bias[i]->text.len > 0)
            texts[n_texts++] =
                (struct request_bias){bytes_text(r, &s->bias[i]->text, NULL), s->bias[i]->value};
        else
            bias[n_bias++] = (struct shoal_bias){s->bias[i]->token, s->bias[i]->value};
    }
    r->generate.bias_texts = texts;
    r->generate.n_bias_texts = n_texts;
    /* the engine checks the values: sampler_check */
    r->generate.sampling = (struct shoal_sampling){.temperature = s->temperature,
                                                   .top_k = s->top_k,
                                                   .top_p = s->top_p,
                                                   .min_p = s->min_p,
                                                   .repeat_penalty = s->repeat_penalty,
                                                   .repeat_last_n = s->repeat_last,
                                                   .presence_penalty = s->presence_penalty,
                                                   .frequency_penalty = s->frequency_penalty,
                                                   .seed = s->seed,
                                                   .bias = bias,
                                                   .n_bias = n_bias,
                                                   .n_logprobs = s->n_logprobs,
                                                   .logprobs = s->logprobs};
    return 0;
}

static int read_stops(struct request *r, const pb_generate *m, struct err *e)
{
    const char **list = arena_zalloc_n(&r->arena, m->n_stop, sizeof(*list));
    if (m->n_stop > REQUEST_MAX_STOPS)
        return err_set(e, SHOAL_EINVAL, "there are more than %u stop texts", REQUEST_MAX_STOPS);
    for (size_t i = 0; list && i < m->n_stop; i++)
        list[i] = bytes_text(r, &m->stop[i], NULL);
    r->generate.stop = list;
    r->generate.n_stop = (uint32_t)m->n_stop;
    return 0;
}

static int read_resume(struct request *r, const pb_generate *m, struct err *e)
{
    uint32_t n = request_choices(&r->generate);
    struct request_resume *list = arena_zalloc_n(&r->arena, m->n_resume, sizeof(*list));
    if (m->n_resume == 0)
        return 0;
    if (m->n_resume != n)
        return err_set(e, SHOAL_EINVAL, "%zu of %u choices are resumed", m->n_resume, n);
    bool all = true;
    for (size_t i = 0; list && i < n; i++) {
        list[i] = (struct request_resume){m->resume[i]->done, m->resume[i]->tokens,
                                          (uint32_t)m->resume[i]->n_tokens};
        all &= list[i].done;
    }
    r->generate.resume = list;
    return all ? err_set(e, SHOAL_EINVAL, "all choices are complete") : 0;
}

static int read_constraint(struct request *r, const pb_generate *m, struct err *e)
{
    if (m->constraint > SHOAL_CONSTRAINT_PARTS)
        return err_set(e, SHOAL_EINVAL, "%u is not a kind of constraint", m->constraint);
    struct request_constraint *c = &r->generate.constraint;
    c->kind = (enum shoal_constraint)m->constraint;
    c->text = bytes_text(r, &m->constraint_text, &c->text_bytes);
    return 0;
}

static int read_generate(struct request *r, const pb_generate *m, struct err *e)
{
    struct request_generate *g = &r->generate;
    r->kind = REQUEST_GENERATE;
    g->n = m->n;
    g->max_tokens = m->max_tokens;
    g->has_seed = m->has_seed;
    g->seeded = true; /* chosen by the sender, so that another replica can continue */
    g->ignore_end = m->ignore_end;
    g->special = m->special;
    g->parse_special = m->parse_special;
    g->echo = m->echo;
    g->prompt_only = m->prompt_only;
    g->prompt_logprobs = m->prompt_logprobs && m->echo;
    g->progress = m->progress;
    g->drawn_logprobs = m->drawn_logprobs;
    g->fresh_prefix = m->fresh_prefix;
    g->no_shift = m->no_shift;
    g->keep_tokens = m->keep_tokens;
    g->adapter_scale = m->adapter_scale;
    int rc = m->n_messages > 0 ? read_messages(r, m, e) : read_prompts(r, m, e);
    if (rc == 0 && (g->n == 0 || g->n > REQUEST_MAX_CHOICES / g->n_prompts))
        rc = err_set(e, SHOAL_EINVAL, "there are %u answers to each of %u prompts, allowed are %u",
                     g->n, g->n_prompts, REQUEST_MAX_CHOICES);
    if (rc == 0)
        rc = read_sampling(r, m, e);
    if (rc == 0)
        rc = read_stops(r, m, e);
    if (rc == 0)
        rc = read_constraint(r, m, e);
    if (rc == 0)
        rc = read_resume(r, m, e);
    return rc;
}

static int read_inputs(struct request *r, const pb_infer *m, struct err *e)
{
    struct request_input *list = arena_zalloc_n(&r->arena, m->n_inputs, sizeof(*list));
    if (m->n_inputs == 0 || m->n_inputs > REQUEST_MAX_INPUTS)
        return err_set(e, SHOAL_EINVAL, "there are %zu inputs, allowed are 1 to %u", m->n_inputs,
                       REQUEST_MAX_INPUTS);
    for (size_t i = 0; list && i < m->n_inputs; i++) {
        const Shoal__Node__V1__Input *from = m->inputs[i];
        list[i].part = from->part;
        if (m->kind == SHOAL_KIND_SCORE) {
            list[i].values = from->values;
            list[i].n_values = (uint32_t)from->n_values;
            r->input_bytes += 8 * from->n_values;
        } else if (m->kind == SHOAL_KIND_TRANSCRIBE) {
            int16_t *samples = arena_zalloc_n(&r->arena, from->samples.len / 2, sizeof(*samples));
            list[i].samples = samples;
            list[i].n_samples = samples ? (uint32_t)(from->samples.len / 2) : 0;
            if (samples)
                memcpy(samples, from->samples.data, from->samples.len / 2 * 2);
            r->input_bytes += from->samples.len;
        } else if (from->image.len > 0) {
            list[i].image = from->image.data;
            list[i].image_bytes = from->image.len;
        } else if (from->n_ids > 0) {
            list[i].ids = from->ids;
            list[i].n_ids = (uint32_t)from->n_ids;
            r->input_bytes += sizeof(int32_t) * from->n_ids;
        } else {
            list[i].text = bytes_text(r, &from->text, &list[i].text_bytes);
            r->input_bytes += list[i].text_bytes;
        }
    }
    r->infer.inputs = list;
    r->infer.n_inputs = (uint32_t)m->n_inputs;
    return 0;
}

static int read_infer(struct request *r, const pb_infer *m, struct err *e)
{
    struct request_infer *q = &r->infer;
    r->kind = REQUEST_INFER;
    if (m->kind < SHOAL_KIND_CLASSIFY || m->kind > SHOAL_KIND_SPEAK || (m->kind & (m->kind - 1)))
        return err_set(e, SHOAL_EINVAL, "%u is not a kind of inference", m->kind);
    q->kind = (enum shoal_kind)m->kind;
    if (m->set_query_case == SHOAL__NODE__V1__INFER__SET_QUERY_QUERY)
        q->query = bytes_text(r, &m->query, NULL);
    else if (q->kind == SHOAL_KIND_RERANK)
        return err_set(e, SHOAL_EINVAL, "there is no query to rank by");
    if (m->set_labels_case == SHOAL__NODE__V1__INFER__SET_LABELS_LABELS)
        q->labels = text_of(r, m->labels);
    if (m->set_prompt_case == SHOAL__NODE__V1__INFER__SET_PROMPT_PROMPT)
        q->prompt = text_of(r, m->prompt);
    if (m->set_title_case == SHOAL__NODE__V1__INFER__SET_TITLE_TITLE)
        q->title = bytes_text(r, &m->title, NULL);
    q->temperature = m->temperature;
    q->seed = m->seed;
    q->n_columns = m->n_columns;
    q->stream = m->stream && *m->stream ? text_of(r, m->stream) : NULL;
    q->dimensions = m->dimensions;
    q->max_sentences = m->max_sentences;
    q->max_tokens = m->max_tokens;
    q->beams = m->beams;
    q->raw = m->raw;
    q->words = m->words;
    q->whole = m->whole;
    q->speed = m->speed;
    q->volume = m->volume;
    return read_inputs(r, m, e);
}

static int read_who(struct request *r, const pb_request *m, uint64_t now_ns, struct err *e)
{
    int rc = read_word(r->id, sizeof(r->id), m->id, "id", e);
    if (!trace_context_read(&r->spans.context, m->trace))
        r->spans.context.span = 0;
    if (rc == 0)
        rc = read_word(r->session, sizeof(r->session), m->session, "session", e);
    if (rc == 0)
        rc = read_word(r->client.name, sizeof(r->client.name), m->client, "client", e);
    if (rc == 0 && m->version.len > 0 && m->version.len != SHA256_BYTES)
        rc = err_set(e, SHOAL_EINVAL, "the version has %zu bytes instead of %u", m->version.len,
                     SHA256_BYTES);
    if (rc == 0)
        rc = read_word(r->pages_from, sizeof(r->pages_from), m->pages_from, "pages_from", e);
    if (rc == 0)
        rc = read_word(r->pages_name, sizeof(r->pages_name), m->pages_name, "pages_name", e);
    r->pages_part = m->pages_part > 0 && m->pages_part <= 1 ? m->pages_part : 0;
    r->client.priority = m->client_priority;
    r->client.weight = m->client_weight;
    r->shares_cache = m->shares_cache;
    r->priority = m->priority;
    r->model = m->model[0] ? text_of(r, m->model) : NULL;
    r->version = m->version.len == SHA256_BYTES ? m->version.data : NULL;
    r->epoch = m->epoch;
    r->may_be_old = m->may_be_old;
    r->received_ns = now_ns;
    if (m->budget_ns > 0)
        r->deadline_ns = m->budget_ns < UINT64_MAX - now_ns ? now_ns + m->budget_ns : UINT64_MAX;
    return rc;
}

static int read_tokens(struct request *r, const Shoal__Node__V1__Tokens *m, struct err *e)
{
    const unsigned known = SHOAL_TEXT_ADD_SPECIAL | SHOAL_TEXT_PARSE_SPECIAL | SHOAL_TEXT_SPECIAL;
    if (m->flags & ~known)
        return err_set(e, SHOAL_EINVAL, "the request has unknown flags for its text");
    if (m->kind > SHOAL_KIND_SPEAK || (m->kind & (m->kind - 1)))
        return err_set(e, SHOAL_EINVAL, "the request is for an unknown kind of model");
    r->kind = REQUEST_TOKENS;
    r->tokens = (struct request_tokens){
        .kind = (enum shoal_kind)m->kind, .decode = m->decode, .flags = m->flags};
    if (m->metadata[0])
        r->tokens.metadata = request_copy(r, m->metadata, strlen(m->metadata));
    if (m->decode) {
        r->tokens.ids = m->ids;
        r->tokens.n_ids = m->n_ids;
    } else {
        r->tokens.text = request_copy(r, (const char *)m->text.data, m->text.len);
        r->tokens.text_bytes = m->text.len;
    }
    r->input_bytes = m->text.len + m->n_ids * sizeof(int32_t);
    return 0;
}

/* NULL: an empty text. */
static const char *some_text(struct request *r, const char *s)
{
    return s && *s ? text_of(r, s) : NULL;
}

int request_pb_read(struct request *r, const uint8_t *p, size_t n, uint64_t now_ns, struct err *e)
{
    const pb_request *m = pb_unpack(&shoal__node__v1__run_request__descriptor, &r->arena, p, n);
    if (!m)
        return err_set(e, request_rc(r) < 0 ? request_rc(r) : SHOAL_EFORMAT,
                       "the request is damaged, or too large");
    int rc = read_who(r, m, now_ns, e);
    if (rc < 0)
        return rc;
    switch (m->work_case) {
    case SHOAL__NODE__V1__RUN_REQUEST__WORK_GENERATE:
        rc = read_generate(r, m->generate, e);
        break;
    case SHOAL__NODE__V1__RUN_REQUEST__WORK_INFER:
        rc = read_infer(r, m->infer, e);
        break;
    case SHOAL__NODE__V1__RUN_REQUEST__WORK_ASK:
        r->kind = REQUEST_ASK;
        r->ask = (struct request_ask){.text = text_of(r, m->ask->text),
                                      .confirm = some_text(r, m->ask->confirm),
                                      .room = some_text(r, m->ask->room),
                                      .dry = m->ask->dry,
                                      .heard = m->ask->heard,
                                      .explain = m->ask->explain,
                                      .reply = m->ask->reply};
        r->language = some_text(r, m->ask->language);
        r->input_bytes = strlen(r->ask.text);
        break;
    case SHOAL__NODE__V1__RUN_REQUEST__WORK_TOKENS:
        rc = read_tokens(r, m->tokens, e);
        break;
    default:
        rc = err_set(e, SHOAL_EINVAL, "the request has no operation");
    }
    if (rc == 0 && request_rc(r) < 0)
        rc = err_set(e, request_rc(r), "out of memory for the request");
    return rc;
}
