/* api_collections.c - see api_collections.h. */
#include "gateway/api/own/api_collections.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "gateway/call/guard.h"
#include "knowledge/citing.h"
#include "knowledge/hit_json.h"
#include "knowledge/ingest.h"
#include "store/doc/doc.h"
#include "wire/json_out.h"

#define PREFIX "/v1/collections/"
#define MAX_DOCUMENTS 256u
#define MAX_WORK_BYTES ((size_t)256 << 20)
#define MAX_NAMES 1000u

struct make_body {
    const char *name, *model;
    int64_t chunk_tokens, overlap;
};

/* Fields of all verbs; each refuses those of others. */
struct post_body {
    const cJSON *documents;
    const char *document, *query, *by, *rerank, *question, *model;
    int64_t n, max_tokens, seed;
    double temperature, latency_budget_ms;
    bool explain;
};

#define MAKE(member) offsetof(struct make_body, member)
#define AT(member) offsetof(struct post_body, member)
const struct field api_collections_make_fields[] = {
    {"name", FIELD_STR, MAKE(name), 0, 0, "1 to 63 letters, digits, - and _", NULL},
    {"model", FIELD_STR, MAKE(model), 0, 0, "the model that embeds; default: embed", NULL},
    {"chunk_tokens", FIELD_INT, MAKE(chunk_tokens), 16, 8192, "maximum tokens of a passage", NULL},
    {"overlap", FIELD_INT, MAKE(overlap), 0, 4096, "tokens repeated from the previous passage",
     NULL}};
const struct field api_collections_post_fields[] = {
    {"documents", FIELD_VALUE, AT(documents), 0, 0,
     "documents: a list of {\"name\", \"text\" or \"data\" (base64), \"format\", \"title\"}",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"},
    {"document", FIELD_STR, AT(document), 0, 0, "remove: name of the document", NULL},
    {"query", FIELD_STR, AT(query), 0, 0, "query: what to look for", NULL},
    {"question", FIELD_STR, AT(question), 0, 0, "answer: the question", NULL},
    {"n", FIELD_INT, AT(n), 1, COLLECTION_MAX_HITS, "query, answer: how many passages", NULL},
    {"by", FIELD_STR, AT(by), 0, 0, "query, answer: both, meaning or words", NULL},
    {"rerank", FIELD_STR, AT(rerank), 0, 0, "query, answer: a model that re-sorts them", NULL},
    {"model", FIELD_STR, AT(model), 0, 0,
     "answer: a model that answers in its own words; default: the sentence that answers", NULL},
    {"explain", FIELD_BOOL, AT(explain), 0, 0, "answer: all sentences, and how each was judged",
     NULL},
    {"max_tokens", FIELD_INT, AT(max_tokens), 1, 4096, "answer: maximum number of tokens", NULL},
    {"temperature", FIELD_NUM, AT(temperature), 0, 2, "answer: 0 takes the likeliest token", NULL},
    {"seed", FIELD_INT, AT(seed), 0, 9007199254740991.0, "answer: random seed of the sampling",
     NULL},
    {"latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,
     "refuse or stop a request that takes longer", NULL}};
const size_t api_n_collections_make_fields =
                 sizeof(api_collections_make_fields) / sizeof(api_collections_make_fields[0]),
             api_n_collections_post_fields =
                 sizeof(api_collections_post_fields) / sizeof(api_collections_post_fields[0]);

struct item { /* a document to add */
    const char *name, *title, *bytes;
    size_t n_bytes;
    enum doc_format format;
};

/* One call and its work, until it is answered. */
struct work {
    struct call *call; /* held */
    struct arena arena;
    const char *name; /* of the collection */
    struct offload offload;
    int rc;
    struct err error;
    struct buf out; /* made on the pool */
    struct collection_settings settings;
    const char *document;
    struct item *items;
    uint32_t n_items, at;
    uint64_t n_tokens;
    struct ingest ingest;
    struct retrieval retrieval;
    struct citing citing;
};

/* ---- beginning and end ---- */

static void work_end(struct work *w)
{
    struct call *c = w->call;
    c->job = NULL;
    c->abandon = NULL;
    if (c->client && w->n_tokens > 0)
        admission_spend(c->gl->gw->admission, c->client, w->n_tokens, 0);
    buf_fini(&w->out);
    arena_fini(&w->arena);
    mem_free(w);
    call_release(c);
}

static void work_fail(struct work *w, const struct failure *f)
{
    if (w->call->req)
        call_fail_with(w->call, f);
    work_end(w);
}

static void work_fail_code(struct work *w, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    if (rc == SHOAL_ENOTFOUND)
        failure_set(&f, FAILURE_NOT_FOUND, rc, NULL, "not_found", "%s", msg);
    work_fail(w, &f);
}

/* A failure of a flow: missing items are 404. */
static void work_fail_flow(struct work *w, const struct failure *f)
{
    if (f->code == SHOAL_ENOTFOUND && f->kind != FAILURE_NOT_FOUND)
        work_fail_code(w, f->code, f->message);
    else
        work_fail(w, f);
}

static struct work *work_create(struct call *c, const char *name, size_t n)
{
    if (!c->gl->gw->collections) {
        call_fail(c, 503, NULL, NULL, "no_collections",
                  "there is no folder for collections: set collections.dir in the configuration");
        return NULL;
    }
    struct work *w = mem_zalloc(sizeof(*w));
    if (!w) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    arena_init(&w->arena, MAX_WORK_BYTES);
    buf_init(&w->out, MAX_WORK_BYTES);
    char *copy = arena_copy(&w->arena, name, n + 1);
    if (!copy) {
        arena_fini(&w->arena);
        mem_free(w);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    copy[n] = '\0';
    w->name = copy;
    w->call = c;
    c->job = w;
    call_hold(c);
    return w;
}

static const char *keep(struct work *w, const char *text)
{
    return text ? arena_copy(&w->arena, text, strlen(text) + 1) : NULL;
}

/* Only administrators may change collections. */
static bool may_change(struct call *c)
{
    if (guard_may_change(c))
        return guard_origin(c);
    call_fail(c, 403, NULL, NULL, "admin_key_needed",
              admission_needed(c->gl->gw->admission)
                  ? "this key may not change collections: use an admin key"
                  : "without keys in the configuration, collections cannot be changed over TCP: "
                    "configure an admin key, or use the unix socket or 'shoal index'");
    return false;
}

static struct embedding_who who_of(const struct call *c)
{
    struct embedding_who who = {.deadline_ns = c->deadline_ns};
    memcpy(who.id, c->id, sizeof(who.id));
    who.spans = c->spans;
    if (c->client) {
        memcpy(who.client.name, c->client->name, sizeof(who.client.name));
        who.client.priority = c->client->priority;
        who.client.weight = c->client->weight;
    }
    return who;
}

/* ---- work on files alone ---- */

static void answer_out(void *ctx)
{
    struct work *w = ctx;
    struct call *c = w->call;
    if (w->rc < 0) {
        work_fail_code(w, w->rc, w->error.msg);
        return;
    }
    if (c->req) {
        buf_clear(&c->out);
        buf_put(&c->out, buf_str(&w->out), w->out.len);
        call_json(c, 200);
    }
    work_end(w);
}

static void run_on_pool(struct work *w, void (*fn)(void *))
{
    w->offload = (struct offload){.work = fn, .then = answer_out, .ctx = w};
    if (offload_run(&w->offload, &w->call->gl->flow) < 0)
        work_fail_code(w, SHOAL_EBUSY, "too much work is waiting: try again later");
}

static int put_info(struct work *w, struct json_out *j, const char *name)
{
    struct collections *cs = w->call->gl->gw->collections;
    struct collection *c = NULL;
    struct collection_info info;
    const char **names;
    uint32_t n;
    int rc = collections_hold(cs, name, &c, &w->error);
    if (rc == 0)
        rc = collection_info(c, &info, &w->error);
    if (rc == 0) {
        json_out_object(j);
        hit_json_info(j, name, &info);
        if (w->name[0]) { /* one collection: with the first of its documents */
            rc = collection_docs(c, "", MAX_NAMES, &w->arena, &names, &n, &w->error);
            json_out_member_array(j, "names");
            for (uint32_t i = 0; rc == 0 && i < n; i++)
                json_out_str(j, names[i]);
            json_out_array_end(j);
        }
        json_out_object_end(j);
    }
    collections_release(cs, c);
    return rc;
}

static void list_it(void *ctx)
{
    struct work *w = ctx;
    struct json_out j = json_out_make(&w->out);
    const char **names;
    uint32_t n = 0;
    w->rc = collections_list(w->call->gl->gw->collections, &w->arena, &names, &n, &w->error);
    json_out_object(&j);
    json_out_member_str(&j, "object", "list");
    json_out_member_array(&j, "data");
    for (uint32_t i = 0; i < n && w->rc == 0; i++) {
        w->rc = put_info(w, &j, names[i]);
        if (w->rc == SHOAL_ENOTFOUND)
            w->rc = 0; /* deleted meanwhile */
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
}

static void show_it(void *ctx)
{
    struct work *w = ctx;
    struct json_out j = json_out_make(&w->out);
    w->rc = put_info(w, &j, w->name);
}

static void make_it(void *ctx)
{
    struct work *w = ctx;
    w->rc = collections_make(w->call->gl->gw->collections, w->name, &w->settings, &w->error);
    if (w->rc == 0)
        show_it(w);
}

static void put_deleted(struct work *w, const char *key, const char *name)
{
    struct json_out j = json_out_make(&w->out);
    json_out_object(&j);
    json_out_member_str(&j, key, name);
    json_out_member_bool(&j, "deleted", true);
    json_out_object_end(&j);
}

static void drop_it(void *ctx)
{
    struct work *w = ctx;
    w->rc = collections_delete(w->call->gl->gw->collections, w->name, &w->error);
    put_deleted(w, "name", w->name);
}

static void remove_it(void *ctx)
{
    struct work *w = ctx;
    struct collections *cs = w->call->gl->gw->collections;
    struct collection *c = NULL;
    w->rc = collections_hold(cs, w->name, &c, &w->error);
    if (w->rc == 0)
        w->rc = collection_remove(c, w->document, &w->error);
    collections_release(cs, c);
    put_deleted(w, "document", w->document);
}

void api_collections_list(struct call *c)
{
    struct work *w = work_create(c, "", 0);
    if (w)
        run_on_pool(w, list_it);
}

void api_collections_make(struct call *c)
{
    struct make_body b = {.model = "embed", .chunk_tokens = 160, .overlap = 32};
    struct fields_error fe = {{0}, {0}, NULL};
    if (!may_change(c))
        return;
    int rc = fields_read(api_collections_make_fields, api_n_collections_make_fields, c->json, &b,
                         c->lenient, &fe);
    if (rc == 0 && (!b.name || !collection_name_ok(b.name)))
        rc = fields_fail(&fe, "name", b.name ? "invalid_value" : "missing_required_parameter",
                         "'name' must be 1 to %u letters, digits, - and _", COLLECTION_MAX_NAME);
    if (rc == 0 && b.overlap * 2 >= b.chunk_tokens)
        rc = fields_fail(&fe, "overlap", "invalid_value",
                         "'overlap' must be less than half of 'chunk_tokens'");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    struct work *w = work_create(c, b.name, strlen(b.name));
    if (!w)
        return;
    w->settings = (struct collection_settings){.model = keep(w, b.model),
                                               .max_tokens = (uint32_t)b.chunk_tokens,
                                               .overlap = (uint32_t)b.overlap};
    if (w->settings.model)
        run_on_pool(w, make_it);
    else
        work_fail_code(w, SHOAL_ENOMEM, "out of memory");
}

void api_collections_show(struct call *c)
{
    const char *name = c->req->path + strlen(PREFIX);
    struct work *w = work_create(c, name, strlen(name));
    if (w)
        run_on_pool(w, show_it);
}

void api_collections_drop(struct call *c)
{
    const char *name = c->req->path + strlen(PREFIX);
    struct work *w = may_change(c) ? work_create(c, name, strlen(name)) : NULL;
    if (w)
        run_on_pool(w, drop_it);
}

/* ---- documents ---- */

static void next_document(struct work *w);

static void on_added(struct ingest *x, const struct failure *f)
{
    struct work *w = EXECUTOR_OF(x, struct work, ingest);
    w->n_tokens += x->n_tokens;
    if (f) {
        work_fail_flow(w, f);
        return;
    }
    struct json_out j = json_out_make(&w->out);
    if (w->at > 0)
        buf_putc(&w->out, ',');
    json_out_object(&j);
    json_out_member_str(&j, "name", x->name);
    json_out_member_uint(&j, "passages", x->n_chunks);
    json_out_member_bool(&j, "unchanged", x->unchanged);
    json_out_object_end(&j);
    w->at++;
    next_document(w);
}

static void next_document(struct work *w)
{
    struct call *c = w->call;
    if (w->at == w->n_items || !c->req) {
        buf_puts(&w->out, "]}");
        answer_out(w);
        return;
    }
    const struct item *i = &w->items[w->at];
    w->ingest = (struct ingest){.owner = &c->gl->flow,
                                .who = who_of(c),
                                .collections = c->gl->gw->collections,
                                .collection = w->name,
                                .name = i->name,
                                .title = i->title,
                                .format = i->format,
                                .bytes = i->bytes,
                                .n_bytes = i->n_bytes,
                                .max_chunks = c->gl->config->collections_max_passages,
                                .done = on_added};
    ingest_run(&w->ingest);
}

static void abandon_ingest(struct call *c)
{
    ingest_cancel(&((struct work *)c->job)->ingest);
}

static const char *text_at(const cJSON *object, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static int read_base64(struct work *w, struct item *to, const char *data, struct fields_error *e)
{
    size_t n = strlen(data), pad = 0;
    while (pad < 2 && pad < n && data[n - 1 - pad] == '=')
        pad++;
    char *out = arena_bytes(&w->arena, n / 4 * 3 + 4);
    int k = out && n % 4 == 0 && n > 0 && n < INT32_MAX
                ? EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)data, (int)n)
                : -1;
    if (k < 0)
        return fields_fail(e, "documents", "invalid_value", "'data' is not base64");
    to->bytes = out;
    to->n_bytes = (size_t)k - pad;
    return 0;
}

static int read_item(struct work *w, struct item *to, const cJSON *d, struct fields_error *e)
{
    static const char *const known[] = {"name", "text", "data", "format", "title"};
    const cJSON *v;
    cJSON_ArrayForEach(v, d)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found |= v->string && strcmp(v->string, known[i]) == 0;
        if (!found || !cJSON_IsString(v))
            return fields_fail(e, "documents", "invalid_value",
                               "a document is {\"name\", \"text\" or \"data\", \"format\", "
                               "\"title\"}, all texts; '%.40s' is not",
                               v->string ? v->string : "");
    }
    const char *name = text_at(d, "name"), *text = text_at(d, "text"), *data = text_at(d, "data"),
               *format = text_at(d, "format");
    if (!cJSON_IsObject(d) || !name || !name[0] || strlen(name) > COLLECTION_MAX_DOC_NAME ||
        !text == !data)
        return fields_fail(e, "documents", "invalid_value",
                           "a document needs a 'name' of at most %u bytes, and either 'text' or "
                           "'data'",
                           COLLECTION_MAX_DOC_NAME);
    to->format = doc_format_of(name);
    if (format && !doc_format_find(format, &to->format))
        return fields_fail(e, "documents", "invalid_value",
                           "unknown format '%.40s': text, markdown, html, jsonl or pdf", format);
    to->name = keep(w, name);
    to->title = keep(w, text_at(d, "title"));
    if (data)
        return read_base64(w, to, data, e);
    to->n_bytes = strlen(text);
    to->bytes = keep(w, text);
    return 0;
}

static void add_documents(struct call *c, struct work *w, const struct post_body *b)
{
    struct fields_error e = {{0}, {0}, NULL};
    int n = cJSON_GetArraySize(b->documents), rc = 0;
    const cJSON *d;
    if (!cJSON_IsArray(b->documents) || n == 0 || n > (int)MAX_DOCUMENTS)
        rc = fields_fail(&e, "documents", "invalid_value", "'documents' must hold 1 to %u items",
                         MAX_DOCUMENTS);
    w->items = rc == 0 ? arena_zalloc_n(&w->arena, (size_t)n, sizeof(*w->items)) : NULL;
    cJSON_ArrayForEach(d, b->documents)
    {
        if (rc == 0 && w->items)
            rc = read_item(w, &w->items[w->n_items++], d, &e);
    }
    if (rc == 0 && w->arena.rc < 0)
        rc = fields_fail(&e, "documents", NULL, "out of memory");
    if (rc < 0) {
        call_fail_fields(c, &e);
        work_end(w);
        return;
    }
    buf_puts(&w->out, "{\"object\":\"list\",\"data\":[");
    c->abandon = abandon_ingest;
    next_document(w);
}

/* ---- query and answer ---- */

static void on_found(struct retrieval *x, const struct failure *f)
{
    struct work *w = EXECUTOR_OF(x, struct work, retrieval);
    struct json_out j = json_out_make(&w->out);
    w->n_tokens = x->n_tokens;
    if (f) {
        retrieval_fini(x);
        work_fail_flow(w, f);
        return;
    }
    json_out_object(&j);
    json_out_member_str(&j, "object", "list");
    json_out_member_str(&j, "collection", w->name);
    json_out_member_array(&j, "data");
    for (uint32_t i = 0; i < x->n_hits; i++)
        hit_json_put(&j, &x->hits[i], true);
    json_out_array_end(&j);
    json_out_object_end(&j);
    retrieval_fini(x);
    answer_out(w);
}

static void on_answered(struct citing *x, const struct failure *f)
{
    struct work *w = EXECUTOR_OF(x, struct work, citing);
    struct json_out j = json_out_make(&w->out);
    w->n_tokens =
        x->quoting.n_tokens + x->embedding.n_tokens + x->prompt_tokens + x->generated_tokens;
    if (f) {
        citing_fini(x);
        work_fail_flow(w, f);
        return;
    }
    json_out_object(&j);
    json_out_member_str(&j, "object", "answer");
    json_out_member_str(&j, "collection", w->name);
    citing_json(&j, x);
    json_out_object_end(&j);
    citing_fini(x);
    answer_out(w);
}

static void abandon_query(struct call *c)
{
    retrieval_cancel(&((struct work *)c->job)->retrieval);
}

static void abandon_answer(struct call *c)
{
    citing_cancel(&((struct work *)c->job)->citing);
}

static void look_up(struct call *c, struct work *w, const struct post_body *b, bool answer)
{
    const char *text = answer ? b->question : b->query, *name = answer ? "question" : "query";
    enum retrieval_mode mode = RETRIEVAL_BOTH;
    struct fields_error e = {{0}, {0}, NULL};
    int rc = 0;
    if (!text || !text[0] || strlen(text) > COLLECTION_MAX_QUERY_BYTES)
        rc = fields_fail(&e, name, text ? "invalid_value" : "missing_required_parameter",
                         "'%s' must have 1 to %u bytes", name, COLLECTION_MAX_QUERY_BYTES);
    else if (b->by && !retrieval_mode_find(b->by, &mode))
        rc = fields_fail(&e, "by", "invalid_value", "'by' must be both, meaning or words");
    else if (answer && b->n > (int64_t)CITING_MAX_PASSAGES)
        rc = fields_fail(&e, "n", "invalid_value", "'n' is at most %u for an answer",
                         CITING_MAX_PASSAGES);
    if (rc < 0) {
        call_fail_fields(c, &e);
        work_end(w);
        return;
    }
    struct retrieval q = {.owner = &c->gl->flow,
                          .who = who_of(c),
                          .collections = c->gl->gw->collections,
                          .collection = w->name,
                          .query = keep(w, text),
                          .n_results = b->n ? (uint32_t)b->n : 5,
                          .mode = mode,
                          .reranker = keep(w, b->rerank),
                          .done = on_found};
    const char *model = keep(w, b->model);
    if (w->arena.rc < 0) {
        work_fail_code(w, SHOAL_ENOMEM, "out of memory");
    } else if (answer) {
        w->citing = (struct citing){.quoting = {.retrieval = q},
                                    .n_given = (uint32_t)b->n,
                                    .write = model != NULL,
                                    .explain = b->explain,
                                    .model = model,
                                    .max_tokens = b->max_tokens ? (uint32_t)b->max_tokens : 256,
                                    .temperature = (float)b->temperature,
                                    .seed = (uint64_t)b->seed,
                                    .done = on_answered};
        c->abandon = abandon_answer;
        citing_run(&w->citing);
    } else {
        w->retrieval = q;
        c->abandon = abandon_query;
        retrieval_run(&w->retrieval);
    }
}

/* Which members of the body a verb has. */
static bool only_has(const struct call *c, const char *const *names, struct fields_error *e)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, c->json)
    {
        bool found = c->lenient;
        for (size_t i = 0; names[i] && !found; i++)
            found = v->string && strcmp(v->string, names[i]) == 0;
        if (!found) {
            (void)fields_fail(e, v->string ? v->string : "body", "unknown_parameter",
                              "'%.60s' is not used here", v->string ? v->string : "");
            return false;
        }
    }
    return true;
}

void api_collections_post(struct call *c)
{
    static const char *const of_documents[] = {"documents", "latency_budget_ms", NULL};
    static const char *const of_remove[] = {"document", NULL};
    static const char *const of_query[] = {"query", "n", "by", "rerank", "latency_budget_ms", NULL};
    static const char *const of_answer[] = {
        "question",   "n",    "by",          "rerank",  "model",
        "max_tokens", "seed", "temperature", "explain", "latency_budget_ms",
        NULL};
    static const struct {
        const char *name;
        const char *const *fields;
        bool changes;
    } verbs[] = {{"documents", of_documents, true},
                 {"remove", of_remove, true},
                 {"query", of_query, false},
                 {"answer", of_answer, false}};
    const char *name = c->req->path + strlen(PREFIX), *slash = strchr(name, '/');
    struct post_body b = {.n = 0};
    struct fields_error e = {{0}, {0}, NULL};
    size_t v = 0;
    while (slash && v < 4 && strcmp(slash + 1, verbs[v].name) != 0)
        v++;
    if (!slash || v == 4) {
        call_fail(c, 404, NULL, NULL, "not_found",
                  "there is nothing at %.100s: POST to NAME/documents, /remove, /query or /answer",
                  c->req->path);
        return;
    }
    if (verbs[v].changes && !may_change(c))
        return;
    if (!only_has(c, verbs[v].fields, &e) ||
        fields_read(api_collections_post_fields, api_n_collections_post_fields, c->json, &b,
                    c->lenient, &e) < 0) {
        call_fail_fields(c, &e);
        return;
    }
    struct work *w = work_create(c, name, (size_t)(slash - name));
    if (!w)
        return;
    if (b.latency_budget_ms > 0) {
        uint64_t end = c->start_ns + (uint64_t)(b.latency_budget_ms * 1e6);
        c->deadline_ns = c->deadline_ns && c->deadline_ns < end ? c->deadline_ns : end;
    }
    if (v == 0) {
        add_documents(c, w, &b);
    } else if (v == 1) {
        w->document = keep(w, b.document ? b.document : "");
        run_on_pool(w, remove_it);
    } else {
        look_up(c, w, &b, v == 3);
    }
}
