/* api_tokens.c - /tokenize and /detokenize.  Long texts go to the pool: a loop has other work. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "flow/acquire.h"
#include "flow/pool.h"
#include "gateway/api/api.h"
#include "gateway/call.h"
#include "wire/json_out.h"

#define INLINE_BYTES ((size_t)8 << 10)

struct body {
    const char *model, *text, *content, *prompt;
    const cJSON *tokens;
    bool add_special, parse_special, special, with_pieces;
};

#define AT(member) offsetof(struct body, member)
const struct field api_tokenize_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"text", FIELD_STR, AT(text), 0, 0, "what to tokenize", NULL},
    {"content", FIELD_STR, AT(content), 0, 0, "same as text", NULL},
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

struct job {
    struct acquire acquire;
    struct pool_task pool_task;
    struct executor_task finished;
    struct call *call;
    struct registry_model *model;
    struct body body;
    bool decode;
    size_t bytes; /* about, of what is to be read */
    int rc;
    struct err error;
};

static void job_free(struct job *j)
{
    if (j->model)
        registry_put(j->model);
    j->call->job = NULL;
    j->call->abandon = NULL;
    j->call->gl->flow.n_jobs--;
    call_release(j->call);
    mem_free(j);
}

static int encode(struct job *job)
{
    const struct body *b = &job->body;
    int32_t *ids = NULL;
    size_t n = 0;
    unsigned flags = (b->add_special ? SHOAL_TEXT_ADD_SPECIAL : 0) |
                     (b->parse_special ? SHOAL_TEXT_PARSE_SPECIAL : 0);
    int rc = shoal_tokenize(registry_engine(job->model), b->text, strlen(b->text), flags, &ids, &n,
                            &job->error);
    if (rc < 0)
        return rc;
    struct json_out j = json_out_make(&job->call->out);
    json_out_object(&j);
    json_out_key(&j, "tokens");
    json_out_array(&j);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *p =
            shoal_token_text(registry_engine(job->model), ids[i], SHOAL_TEXT_SPECIAL, &len);
        if (!b->with_pieces) {
            json_out_int(&j, ids[i]);
            continue;
        }
        json_out_object(&j);
        json_out_key(&j, "id");
        json_out_int(&j, ids[i]);
        json_out_key(&j, "piece");
        json_out_strn(&j, p, len);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_key(&j, "count");
    json_out_uint(&j, n);
    json_out_object_end(&j);
    shoal_free(ids);
    return 0;
}

static int decode(struct job *job)
{
    const struct body *b = &job->body;
    size_t n = 0, k = 0, len = 0;
    const cJSON *v;
    char *text = NULL;
    cJSON_ArrayForEach(v, b->tokens) n++;
    int32_t *ids = mem_zalloc_n(n, sizeof(*ids));
    if (!ids)
        return err_set(&job->error, SHOAL_ENOMEM, "out of memory");
    cJSON_ArrayForEach(v, b->tokens)
    {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= INT32_MAX) ||
            v->valuedouble != floor(v->valuedouble)) {
            mem_free(ids);
            return err_set(&job->error, SHOAL_EINVAL, "'tokens' must hold token ids");
        }
        ids[k++] = (int32_t)v->valuedouble;
    }
    int rc = shoal_detokenize(registry_engine(job->model), ids, n,
                              b->special ? SHOAL_TEXT_SPECIAL : 0, &text, &len, &job->error);
    if (rc == 0) {
        struct json_out j = json_out_make(&job->call->out);
        json_out_object(&j);
        json_out_key(&j, "text");
        json_out_strn(&j, text, len);
        json_out_key(&j, "content"); /* as llama.cpp's server names it */
        json_out_strn(&j, text, len);
        json_out_object_end(&j);
    }
    shoal_free(text);
    mem_free(ids);
    return rc;
}

static void work(struct job *j)
{
    j->rc = j->decode ? decode(j) : encode(j);
}

static void answer(struct job *j)
{
    if (j->rc < 0)
        call_fail_code(j->call, j->rc, j->error.msg);
    else
        call_json(j->call, 200);
    job_free(j);
}

static void on_finished(struct executor_task *t)
{
    answer(LOOP_OF(t, struct job, finished));
}

static void on_pool(struct pool_task *t)
{
    struct job *j = LOOP_OF(t, struct job, pool_task);
    work(j);
    executor_post(j->call->gl->flow.executor, &j->finished);
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct job *j = LOOP_OF(a, struct job, acquire);
    j->model = m;
    if (m)
        j->call->model_name = m->name;
    if (!m) {
        job_free(j);
    } else if (j->bytes <= INLINE_BYTES) {
        work(j);
        answer(j);
    } else if (pool_submit(j->call->gl->gw->pool, &j->pool_task) < 0) {
        call_refuse(j->call, GW_REFUSED_BUSY, 429, 1, "too many long texts are waiting");
        job_free(j);
    }
}

static void on_failed(struct acquire *a, const struct failure *f)
{
    call_fail_with(LOOP_OF(a, struct job, acquire)->call, f);
}

static void on_abandon(struct call *c)
{
    struct job *j = c->job;
    acquire_cancel(&j->acquire);
}

static void start(struct call *c, const struct body *b, bool decoding)
{
    struct job *j = mem_zalloc(sizeof(*j));
    if (!j) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    j->call = c;
    j->body = *b;
    j->decode = decoding;
    j->bytes = decoding ? sizeof(int32_t) * (size_t)cJSON_GetArraySize(b->tokens) : strlen(b->text);
    j->pool_task.fn = on_pool;
    j->finished.fn = on_finished;
    call_hold(c);
    c->gl->flow.n_jobs++;
    c->job = j;
    c->abandon = on_abandon;
    j->acquire.owner = &c->gl->flow;
    j->acquire.ready = on_model;
    j->acquire.failed = on_failed;
    acquire_model(&j->acquire, b->model, SHOAL_KIND_GENERATE);
}

void api_tokenize(struct call *c)
{
    struct body b = {.add_special = true};
    struct fields_error e = {{0}, {0}, NULL};
    int rc = fields_read(api_tokenize_fields, api_n_tokenize_fields, c->json, &b, c->lenient, &e);
    b.text = b.text ? b.text : b.content ? b.content : b.prompt;
    if (rc == 0 && !b.text)
        rc = fields_fail(&e, "text", "missing_required_parameter", "'text' is missing");
    if (rc < 0)
        call_fail_fields(c, &e);
    else
        start(c, &b, false);
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
        start(c, &b, true);
}
