/* api_tokens.c - /tokenize and /detokenize: from the call to the flow. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "flow/flow_run.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/api.h"
#include "host/registry.h"
#include "wire/json_out.h"

struct body {
    const char *model, *text, *content, *prompt;
    const cJSON *tokens, *inputs;
    bool add_special, parse_special, special, with_pieces, add_special_tokens;
};

#define AT(member) offsetof(struct body, member)
const struct field api_tokenize_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"text", FIELD_STR, AT(text), 0, 0, "what to tokenize", NULL},
    {"content", FIELD_STR, AT(content), 0, 0,
     "same as text, with llama.cpp's defaults: no tokens are added, special ones are parsed", NULL},
    {"prompt", FIELD_STR, AT(prompt), 0, 0, "same as text", NULL},
    {"add_special", FIELD_BOOL, AT(add_special), 0, 0,
     "add the tokens that the model expects around a text", NULL},
    {"parse_special", FIELD_BOOL, AT(parse_special), 0, 0, "parse special tokens in the text",
     NULL},
    {"with_pieces", FIELD_BOOL, AT(with_pieces), 0, 0, "return objects with id and piece", NULL},
    {"inputs", FIELD_VALUE, AT(inputs), 0, 0,
     "same as text, answered as Text Embeddings Inference does: a text, or a list of one", "{}"},
    {"add_special_tokens", FIELD_BOOL, AT(add_special_tokens), 0, 0,
     "with inputs, same as add_special", NULL},
    {"prompt_name", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
const size_t api_n_tokenize_fields = sizeof(api_tokenize_fields) / sizeof(api_tokenize_fields[0]);
const struct field api_detokenize_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"tokens", FIELD_VALUE, AT(tokens), 0, 0, "token ids",
     "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"},
    {"special", FIELD_BOOL, AT(special), 0, 0, "show special tokens", NULL}};
const size_t api_n_detokenize_fields =
    sizeof(api_detokenize_fields) / sizeof(api_detokenize_fields[0]);

/* Turns events into an answer to the call. */
struct tokens_answer {
    struct answer_sink answer; /* first */
    bool with_pieces, with_places;
};

/* Of Text Embeddings Inference: where a token's text is in the input, in characters. Normalized
 * texts are found as long as only case and spaces differ. */
struct place {
    const char *p, *from, *to;
    uint32_t n_chars, start, stop;
    bool found;
};

static uint32_t count_chars(const char *p, const char *end)
{
    uint32_t n = 0;
    for (; p < end; p++)
        n += ((uint8_t)*p & 0xc0) != 0x80;
    return n;
}

static void find_piece(struct place *at, const char *piece, size_t n)
{
    const char *p = at->p;
    p += strspn(p, " \t\r\n");
    at->found = n > 0 && strnlen(p, n) == n && strncasecmp(p, piece, n) == 0;
    if (!at->found)
        return;
    at->start = at->n_chars + count_chars(at->p, p);
    at->stop = at->start + count_chars(p, p + n);
    at->from = p;
    at->p = at->to = p + n;
    at->n_chars = at->stop;
}

/* A list of lists: of the inputs, of their tokens. */
static void put_places(struct answer_sink *a, const char *text)
{
    struct json_out j = json_out_make(&a->call->out);
    struct answer_cursor cursor = {0};
    struct place at = {.p = text};
    struct sink_token t;
    json_out_array(&j);
    json_out_array(&j);
    while (answer_next_token(&a->choices[0], &cursor, &t)) {
        for (; t.text_bytes > 0 && t.text[0] == ' '; t.text_bytes--)
            t.text++;
        find_piece(&at, t.text, t.text_bytes);
        const bool named = t.text_bytes > 2 && strchr("[<", t.text[0]);
        json_out_object(&j);
        json_out_member_int(&j, "id", t.token);
        json_out_key(&j, "text");
        at.found ? json_out_strn(&j, at.from, (size_t)(at.to - at.from))
                 : json_out_strn(&j, t.text, t.text_bytes);
        json_out_member_bool(&j, "special", !at.found && named);
        json_out_key(&j, "start");
        at.found ? json_out_uint(&j, at.start) : json_out_null(&j);
        json_out_key(&j, "stop");
        at.found ? json_out_uint(&j, at.stop) : json_out_null(&j);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_array_end(&j);
}

static void put_ids(struct answer_sink *a, const struct sink_done *d)
{
    const struct tokens_answer *own = (struct tokens_answer *)(void *)a; /* its first member */
    const bool with_pieces = own->with_pieces;
    struct json_out j = json_out_make(&a->call->out);
    struct answer_cursor at = {0};
    struct sink_token t;
    size_t n = 0;
    (void)d;
    if (own->with_places) {
        put_places(a, a->request->tokens.text); /* as it was read: personal data may be masked */
        return;
    }
    json_out_object(&j);
    json_out_member_array(&j, "tokens");
    for (; answer_next_token(&a->choices[0], &at, &t); n++) {
        if (with_pieces) {
            json_out_object(&j);
            json_out_key(&j, "id");
        }
        json_out_int(&j, t.token);
        if (with_pieces) {
            json_out_member_strn(&j, "piece", t.text, t.text_bytes);
            json_out_object_end(&j);
        }
    }
    json_out_array_end(&j);
    json_out_member_uint(&j, "count", n);
    json_out_object_end(&j);
}

static void put_text(struct answer_sink *a, const struct sink_done *d)
{
    const struct buf *text = &a->choices[0].text;
    struct json_out j = json_out_make(&a->call->out);
    (void)d;
    json_out_object(&j);
    json_out_member_strn(&j, "text", buf_str(text), text->len);
    json_out_key(&j, "content"); /* as llama.cpp's server names it */
    json_out_strn(&j, buf_str(text), text->len);
    json_out_object_end(&j);
}

/* Runs the request, or answers with the error; takes the request. */
static void run(struct call *c, struct request *r, const struct body *b)
{
    static const struct answer_dialect ids = {.frame = &answer_events, .whole = put_ids};
    static const struct answer_dialect text = {.frame = &answer_events, .whole = put_text};
    if (b->model)
        r->model = request_copy(r, b->model, strlen(b->model));
    r->input_bytes = r->tokens.text_bytes + r->tokens.n_ids * sizeof(int32_t);
    if (request_rc(r) < 0) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    struct tokens_answer *a =
        answer_create(c, r, sizeof(*a), r->tokens.decode ? &text : &ids, false);
    if (!a)
        return;
    a->with_pieces = b->with_pieces;
    a->with_places = b->inputs != NULL;
    a->answer.keeps |= ANSWER_KEEPS_TOKENS;
    c->meter.reads_only = true;
    stages_run(&c->gl->flow, r, c->sink);
}

/* What the models here can do whose name was asked for; name NULL: of all. */
struct abilities {
    const char *name;
    size_t name_bytes;
    unsigned first, all; /* kinds of the first of them that can do anything, and of all */
};

static void add_abilities(void *ctx, const struct registry_model *m)
{
    struct abilities *x = ctx;
    if (x->name &&
        (strncmp(m->name, x->name, x->name_bytes) != 0 || m->name[x->name_bytes] != '\0'))
        return;
    if (x->first == 0)
        x->first = m->slot->kinds;
    x->all |= m->slot->kinds;
}

/* Any model has a tokenizer: the kind to ask for is one that the model can do. wanted: if it can,
 * or if nothing is known of it here. */
static enum shoal_kind kind_to_ask(const struct call *c, const char *name, enum shoal_kind wanted)
{
    static const enum shoal_kind others[] = {SHOAL_KIND_RERANK, SHOAL_KIND_CLASSIFY, SHOAL_KIND_TAG,
                                             SHOAL_KIND_EMBED, SHOAL_KIND_GENERATE};
    struct abilities x = {.name = name};
    if (!name && c->gl->members)
        return wanted; /* another node may have one */
    if (name)
        x.name_bytes = flow_name_bytes(c->gl->flow.flow, name);
    registry_each(c->gl->gw->registry, add_abilities, &x);
    if (x.all & wanted)
        return wanted;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (x.first & others[i])
            return others[i];
    return wanted;
}

static void start_encode(struct call *c, const struct body *b)
{
    struct request *r = call_request(c);
    if (!r)
        return;
    size_t n = strlen(b->text);
    r->kind = REQUEST_TOKENS;
    r->tokens = (struct request_tokens){
        .kind = kind_to_ask(c, b->model, b->inputs ? SHOAL_KIND_EMBED : SHOAL_KIND_GENERATE),
        .flags = (b->add_special ? SHOAL_TEXT_ADD_SPECIAL : 0) |
                 (b->parse_special ? SHOAL_TEXT_PARSE_SPECIAL : 0),
        .text = request_copy(r, b->text, n),
        .text_bytes = n};
    run(c, r, b);
}

/* Reads the ids of a list; false: they are invalid. */
static bool read_ids(struct request *r, const cJSON *list)
{
    size_t n = (size_t)cJSON_GetArraySize(list), k = 0;
    int32_t *ids = arena_zalloc_n(&r->arena, n + 1, sizeof(*ids));
    const cJSON *v;
    cJSON_ArrayForEach(v, list)
    {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= INT32_MAX) ||
            v->valuedouble != floor(v->valuedouble))
            return false;
        if (ids)
            ids[k++] = (int32_t)v->valuedouble;
    }
    r->tokens.ids = ids;
    r->tokens.n_ids = k;
    return true;
}

static void start_decode(struct call *c, const struct body *b)
{
    struct request *r = call_request(c);
    if (!r)
        return;
    r->kind = REQUEST_TOKENS;
    r->tokens =
        (struct request_tokens){.decode = true, .flags = b->special ? SHOAL_TEXT_SPECIAL : 0};
    if (!read_ids(r, b->tokens)) {
        call_fail_code(c, SHOAL_EINVAL, "'tokens' must hold token ids");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    run(c, r, b);
}

void api_tokenize(struct call *c)
{
    struct body b = {.add_special = true, .add_special_tokens = true};
    struct fields_error e = {{0}, {0}, NULL};
    if (cJSON_HasObjectItem(c->json, "content")) { /* llama.cpp's form has other defaults */
        b.add_special = false;
        b.parse_special = true;
    }
    int rc = fields_read(api_tokenize_fields, api_n_tokenize_fields, c->json, &b, c->lenient, &e);
    if (rc == 0 && b.inputs) {
        const bool list = cJSON_IsArray(b.inputs) && cJSON_GetArraySize(b.inputs) == 1;
        b.text = cJSON_GetStringValue(list ? b.inputs->child : b.inputs);
        b.add_special = b.add_special_tokens;
        if (!b.text)
            rc = fields_fail(&e, "inputs", "invalid_type",
                             "'inputs' must be a text, or a list of one: send several texts in "
                             "several requests");
    }
    b.text = b.text ? b.text : b.content ? b.content : b.prompt;
    if (rc == 0 && !b.text)
        rc = fields_fail(&e, "text", "missing_required_parameter", "'text' is missing");
    if (rc < 0)
        call_fail_fields(c, &e);
    else
        start_encode(c, &b);
}

void api_detokenize(struct call *c)
{
    struct body b = {.model = NULL};
    struct fields_error e = {{0}, {0}, NULL};
    int rc =
        fields_read(api_detokenize_fields, api_n_detokenize_fields, c->json, &b, c->lenient, &e);
    if (rc == 0 && !cJSON_IsArray(b.tokens))
        rc = fields_fail(&e, "tokens", "invalid_type", "'tokens' must be a list of token ids");
    if (rc < 0)
        call_fail_fields(c, &e);
    else
        start_decode(c, &b);
}
