/* api_tokens.c - /tokenize and /detokenize: from the call to the flow. */
#include <math.h>
#include <string.h>

#include "flow/flow_run.h"
#include "gateway/answer.h"
#include "gateway/api/api.h"
#include "wire/json_out.h"

struct body {
    const char *model, *text, *content, *prompt;
    const cJSON *tokens;
    bool add_special, parse_special, special, with_pieces;
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
    {"with_pieces", FIELD_BOOL, AT(with_pieces), 0, 0, "return objects with id and piece", NULL}};
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
    bool with_pieces;
};

static void put_ids(struct answer_sink *a, const struct sink_done *d)
{
    const bool with_pieces =
        ((struct tokens_answer *)(void *)a)->with_pieces; /* its first member */
    struct json_out j = json_out_make(&a->call->out);
    struct answer_cursor at = {0};
    struct sink_token t;
    size_t n = 0;
    (void)d;
    json_out_object(&j);
    json_out_key(&j, "tokens");
    json_out_array(&j);
    for (; answer_next_token(&a->choices[0], &at, &t); n++) {
        if (with_pieces) {
            json_out_object(&j);
            json_out_key(&j, "id");
        }
        json_out_int(&j, t.token);
        if (with_pieces) {
            json_out_key(&j, "piece");
            json_out_strn(&j, t.text, t.text_bytes);
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
    json_out_key(&j, "text");
    json_out_strn(&j, buf_str(text), text->len);
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
    a->answer.keeps |= ANSWER_KEEPS_TOKENS;
    flow_run(&c->gl->flow, r, &a->answer.sink);
}

static void start_encode(struct call *c, const struct body *b)
{
    struct request *r = call_request(c);
    if (!r)
        return;
    size_t n = strlen(b->text);
    r->kind = REQUEST_TOKENS;
    r->tokens = (struct request_tokens){.flags = (b->add_special ? SHOAL_TEXT_ADD_SPECIAL : 0) |
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
    struct body b = {.add_special = true};
    struct fields_error e = {{0}, {0}, NULL};
    if (cJSON_HasObjectItem(c->json, "content")) { /* llama.cpp's form has other defaults */
        b.add_special = false;
        b.parse_special = true;
    }
    int rc = fields_read(api_tokenize_fields, api_n_tokenize_fields, c->json, &b, c->lenient, &e);
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
