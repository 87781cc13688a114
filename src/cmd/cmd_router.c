/* cmd_router.c - shoal router fit: a router model from labelled texts, as a head on an encoder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "host/model_name.h"
#include "eval/eval_rows.h"
#include "eval/linear_head.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

cmd_fn cmd_router_fit;

#define MAX_MODEL_BYTES ((size_t)1 << 30)
#define MAX_TEXT_BYTES ((size_t)32 << 20)
#define MAX_HEADER_BYTES ((size_t)16 << 20)
#define IN_FLIGHT 64u
#define MIN_EPOCHS 15u
#define MAX_EPOCHS 60u
#define ROW_EPOCHS 300000u /* rows times epochs: more rows need fewer */

static const struct opts_def fit_defs[] = {
    {"out", 'o', OPTS_TEXT, "DIR", NULL, 0, 0, "folder for the model; it must not exist yet"},
    {"model", 'm', OPTS_TEXT, "MODEL", "intent", 0, 0,
     "encoder: folder of a BERT classifier, or an included model"},
    {"layers", 0, OPTS_TEXT, "N", NULL, 0, 0,
     "use only the first N layers, and the mean of all tokens; 0: only the embeddings"},
    {"heldout", 0, OPTS_UINT, "PERCENT", "20", 5, 50, "rows held out for measuring"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page fit_page = {
    .command = "router fit",
    .arguments = "FILE...",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Trains a router model on labelled texts, in seconds.",
    .details =
        "Each row is a JSON object {\"text\", \"domain\"}; a domain of \"none\" marks texts that "
        "belong to\nno domain.  The encoder stays as it is: a linear layer over its pooled output "
        "is learned, with\nrare domains counting as much as frequent ones.  Held-out rows give the "
        "accuracy and the\nthreshold below which a text belongs to no domain.  DIR is a model "
        "folder like any other; the\nlast lines show how a route uses it.\n\nWith --layers the "
        "model is "
        "faster and less exact: the first one of a cascade (docs/ENSEMBLES.md).",
    .groups = {OPTS_GROUP("Options", fit_defs)},
    .examples = "  shoal router fit -o my-router tickets.jsonl\n"
                "  shoal classify -m my-router \"my invoice is wrong\"\n"
                "  shoal router fit --layers 0 -o quick tickets.jsonl\n",
};

struct fit {
    const struct opts *o;
    struct eval_rows rows;
    const char **texts;  /* [n] */
    uint32_t *domains;   /* [n]; n_labels: none of these */
    const char **labels; /* sorted */
    uint32_t n_labels;
    size_t n;
    char *from;       /* folder of the encoder */
    struct buf model; /* the encoder's file; its weights begin at data_at */
    cJSON *header, *config;
    size_t data_at;
    int32_t n_layers; /* layers that are kept; -1: all, with the pooler */
    uint32_t dim;
    float *vectors; /* [n][dim] */
    struct linear_head head;
    double accuracy, threshold, seconds;
    uint32_t n_heldout, n_none, n_none_right;
};

/* ---- rows ---- */

static bool is_none(const char *domain)
{
    return !domain[0] || strcmp(domain, "none") == 0 || strcmp(domain, "oos") == 0;
}

static int read_rows(struct fit *f, struct err *e)
{
    static const char *const text_keys[] = {"text", NULL}, *const keys[] = {"domain", "label",
                                                                            NULL};
    int rc = 0;
    for (size_t i = 0; i < f->o->n_args && rc == 0; i++)
        rc = eval_rows_read(&f->rows, f->o->args[i], e);
    f->n = f->rows.n;
    f->texts = mem_zalloc_n(f->n + 1, sizeof(*f->texts));
    f->labels = mem_zalloc_n(f->n + 1, sizeof(*f->labels));
    f->domains = mem_zalloc_n(f->n + 1, sizeof(*f->domains));
    if (rc == 0 && (!f->texts || !f->labels || !f->domains))
        rc = err_set(e, SHOAL_ENOMEM, "rows");
    for (size_t i = 0; i < f->n && rc == 0; i++) {
        const char *domain = "";
        rc = eval_rows_text(&f->rows.rows[i], text_keys, &f->texts[i], e);
        if (rc == 0)
            rc = eval_rows_text(&f->rows.rows[i], keys, &domain, e);
        if (rc == 0 && !is_none(domain))
            f->labels[f->n_labels++] = domain;
    }
    if (rc < 0)
        return rc;
    qsort(f->labels, f->n_labels, sizeof(*f->labels), order_text);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_labels; i++)
        if (n == 0 || strcmp(f->labels[n - 1], f->labels[i]) != 0)
            f->labels[n++] = f->labels[i];
    f->n_labels = n;
    if (n < 2 || n > LINEAR_HEAD_MAX_CLASSES)
        return err_set(e, SHOAL_EINVAL, "the rows have %u domains; 2 to %u are possible", n,
                       LINEAR_HEAD_MAX_CLASSES);
    for (size_t i = 0; i < f->n && rc == 0; i++) {
        const char *domain = "";
        rc = eval_rows_text(&f->rows.rows[i], keys, &domain, e);
        const char **at = bsearch(&domain, f->labels, n, sizeof(*f->labels), order_text);
        f->domains[i] = at && !is_none(domain) ? (uint32_t)(at - f->labels) : n;
    }
    return rc;
}

/* By the text, so that the same rows are held out each time. */
static bool is_heldout(const struct fit *f, size_t i)
{
    return hash_bytes(f->texts[i], strlen(f->texts[i]), 1) % 100 < opts_uint(f->o, "heldout");
}

/* ---- the encoder's files ---- */

static int path_of(char out[4096], const char *dir, const char *name, struct err *e)
{
    int n = snprintf(out, 4096, "%s/%s", dir, name);
    return n > 0 && n < 4096 ? 0 : err_set(e, SHOAL_EINVAL, "the path of %s is too long", name);
}

static int read_json(cJSON **out, const char *dir, const char *name, struct err *e)
{
    char path[4096];
    struct buf b;
    buf_init(&b, MAX_TEXT_BYTES);
    int rc = path_of(path, dir, name, e);
    if (rc == 0)
        rc = file_read(path, &b, e);
    *out = rc == 0 ? cJSON_ParseWithLength(buf_str(&b), b.len) : NULL;
    if (rc == 0 && !cJSON_IsObject(*out))
        rc = err_set(e, SHOAL_EFORMAT, "%s is not a JSON object", path);
    buf_fini(&b);
    return rc;
}

/* The weights: a header of JSON, then the bytes that it describes. */
static int read_model(struct fit *f, struct err *e)
{
    char path[4096];
    uint64_t n = 0;
    int rc = path_of(path, f->from, "model.safetensors", e);
    if (rc == 0)
        rc = file_read(path, &f->model, e);
    if (rc < 0)
        return rc;
    if (f->model.len >= sizeof(n))
        memcpy(&n, f->model.data, sizeof(n));
    if (n == 0 || n > MAX_HEADER_BYTES || n > f->model.len - sizeof(n))
        return err_set(e, SHOAL_EFORMAT, "%s is not a safetensors file", path);
    f->header = cJSON_ParseWithLength(f->model.data + sizeof(n), (size_t)n);
    f->data_at = sizeof(n) + (size_t)n;
    if (!cJSON_IsObject(f->header))
        return err_set(e, SHOAL_EFORMAT, "%s: its header is not JSON", path);
    return 0;
}

static int read_encoder(struct fit *f, struct err *e)
{
    struct model_name name = {0};
    struct stat st;
    int rc = model_name_find(&name, NULL, opts_text(f->o, "model"), e);
    if (rc == 0 && (stat(name.path, &st) < 0 || !S_ISDIR(st.st_mode)))
        rc = err_set(e, SHOAL_EINVAL,
                     "%s is not a model folder: a head needs a BERT encoder in one", name.path);
    f->from = rc == 0 ? mem_strdup(name.path) : NULL;
    model_name_fini(&name);
    if (rc == 0 && !f->from)
        rc = err_set(e, SHOAL_ENOMEM, "a path");
    if (rc == 0)
        rc = read_json(&f->config, f->from, "config.json", e);
    if (rc == 0)
        rc = read_model(f, e);
    const cJSON *type = rc == 0 ? cJSON_GetObjectItemCaseSensitive(f->config, "model_type") : NULL;
    bool pooler =
        f->header && cJSON_GetObjectItemCaseSensitive(f->header, "bert.pooler.dense.weight");
    if (rc == 0 && (!cJSON_IsString(type) || strcmp(type->valuestring, "bert") != 0 || !pooler))
        rc = err_set(e, SHOAL_EINVAL, "%s is not a BERT encoder with a pooler", f->from);
    return rc;
}

/* The layers of the encoder that --layers keeps. */
static int cut_layers(struct fit *f, struct err *e)
{
    const char *text = opts_text(f->o, "layers");
    const cJSON *has = cJSON_GetObjectItemCaseSensitive(f->config, "num_hidden_layers");
    char *end = NULL;
    f->n_layers = -1;
    if (!text)
        return 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 0 || !cJSON_IsNumber(has) || n > has->valueint)
        return err_set(e, SHOAL_EINVAL, "--layers is %.20s: the encoder has 0 to %d", text,
                       cJSON_IsNumber(has) ? has->valueint : 0);
    f->n_layers = (int32_t)n;
    return cJSON_ReplaceItemInObjectCaseSensitive(f->config, "num_hidden_layers",
                                                  cJSON_CreateNumber((double)n))
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory for config.json");
}

/* ---- the folder that is made ---- */

static int write_file(const char *dir, const char *name, const void *p, size_t n, struct err *e)
{
    char path[4096];
    int rc = path_of(path, dir, name, e);
    if (rc == 0)
        rc = file_replace(path, p, n, e);
    if (rc == 0 && chmod(path, 0644) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot make %s readable", path);
    return rc;
}

static int write_json(const char *dir, const char *name, const cJSON *json, struct err *e)
{
    char *text = cJSON_Print(json);
    int rc = text ? write_file(dir, name, text, strlen(text), e)
                  : err_set(e, SHOAL_ENOMEM, "out of memory for %s", name);
    cJSON_free(text);
    return rc;
}

static int copy_tokenizer(const struct fit *f, const char *dir, struct err *e)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "vocab.txt",
                                        "special_tokens_map.json"};
    int rc = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++) {
        char path[4096];
        struct buf b;
        buf_init(&b, MAX_TEXT_BYTES);
        rc = path_of(path, f->from, names[i], e);
        if (rc == 0 && access(path, R_OK) == 0) {
            rc = file_read(path, &b, e);
            if (rc == 0)
                rc = write_file(dir, names[i], buf_str(&b), b.len, e);
        }
        buf_fini(&b);
    }
    return rc;
}

static void put_tensor(struct json_out *j, const char *name, const char *type, const uint32_t *dims,
                       uint32_t n_dims, size_t from, size_t to)
{
    json_out_member_object(j, name);
    json_out_member_str(j, "dtype", type);
    json_out_member_array(j, "shape");
    for (uint32_t i = 0; i < n_dims; i++)
        json_out_uint(j, dims[i]);
    json_out_array_end(j);
    json_out_member_array(j, "data_offsets");
    json_out_uint(j, from);
    json_out_uint(j, to);
    json_out_array_end(j);
    json_out_object_end(j);
}

/* Adds the encoder's own tensor: its entry to j, its bytes to data. */
static int put_old(const struct fit *f, const cJSON *t, struct json_out *j, struct buf *data,
                   struct err *e)
{
    const cJSON *span = cJSON_GetObjectItemCaseSensitive(t, "data_offsets");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(t, "shape"), *v;
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(t, "dtype");
    const double from = cJSON_GetNumberValue(cJSON_GetArrayItem(span, 0));
    const double to = cJSON_GetNumberValue(cJSON_GetArrayItem(span, 1));
    uint32_t dims[8], n = 0;
    if (!cJSON_IsString(type) || !(from >= 0) || !(to >= from) ||
        to > (double)(f->model.len - f->data_at) || cJSON_GetArraySize(shape) > 8)
        return err_set(e, SHOAL_EFORMAT, "the encoder's tensor %s has an invalid description",
                       t->string);
    cJSON_ArrayForEach(v, shape) dims[n++] = (uint32_t)cJSON_GetNumberValue(v);
    size_t at = data->len;
    buf_put(data, f->model.data + f->data_at + (size_t)from, (size_t)(to - from));
    put_tensor(j, t->string, type->valuestring, dims, n, at, data->len);
    return 0;
}

/* Whether a tensor of the encoder belongs to the model: not its heads, nor removed layers. */
static bool is_kept(const struct fit *f, const char *name)
{
    static const char layer[] = "bert.encoder.layer.";
    if (strncmp(name, "bert.", 5) != 0)
        return false;
    if (f->n_layers < 0)
        return true;
    if (strncmp(name, layer, sizeof(layer) - 1) == 0)
        return strtol(name + sizeof(layer) - 1, NULL, 10) < f->n_layers;
    return strncmp(name, "bert.pooler.", 12) != 0;
}

static const char *pooling_of(const struct fit *f)
{
    return f->n_layers < 0 ? "pooler" : "mean";
}

/* head NULL: only the encoder. */
static int write_model(const struct fit *f, const char *dir, const struct linear_head *head,
                       struct err *e)
{
    struct buf text, data, all;
    const cJSON *t;
    int rc = 0;
    buf_init(&text, MAX_HEADER_BYTES);
    buf_init(&data, MAX_MODEL_BYTES);
    buf_init(&all, 2 * MAX_MODEL_BYTES);
    struct json_out j = json_out_make(&text);
    json_out_object(&j);
    cJSON_ArrayForEach(t, f->header)
    {
        if (rc == 0 && is_kept(f, t->string))
            rc = put_old(f, t, &j, &data, e);
    }
    if (rc == 0 && head) {
        const uint32_t dims[] = {head->n_classes, head->dim};
        size_t at = data.len, n = (size_t)head->n_classes * head->dim * sizeof(float);
        buf_put(&data, head->weight, n);
        put_tensor(&j, "classifier.weight", "F32", dims, 2, at, at + n);
        buf_put(&data, head->bias, head->n_classes * sizeof(float));
        put_tensor(&j, "classifier.bias", "F32", dims, 1, at + n, data.len);
    }
    json_out_object_end(&j);
    while (text.len % 8)
        buf_putc(&text, ' ');
    uint64_t n = text.len;
    buf_put(&all, &n, sizeof(n));
    buf_put(&all, buf_str(&text), text.len);
    buf_put(&all, buf_str(&data), data.len);
    if (rc == 0 && (text.rc < 0 || data.rc < 0 || all.rc < 0))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the weights");
    if (rc == 0)
        rc = write_file(dir, "model.safetensors", all.data, all.len, e);
    buf_fini(&text);
    buf_fini(&data);
    buf_fini(&all);
    return rc;
}

/* The encoder without heads; a head reads its embedding. */
static int write_plain(const struct fit *f, const char *dir, struct err *e)
{
    static const char unscaled[] = "{\"similarity_fn_name\": \"dot\"}";
    cJSON *c = cJSON_Duplicate(f->config, true);
    cJSON *shoal = cJSON_CreateObject();
    cJSON *embed = shoal ? cJSON_AddObjectToObject(shoal, "embed") : NULL;
    static const char *const drop[] = {"id2label", "label2id", "shoal"};
    for (size_t i = 0; c && i < 3; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(c, drop[i]);
    int rc = 0;
    if (!c || !embed || !cJSON_AddStringToObject(embed, "pooling", pooling_of(f)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for config.json");
    if (c && shoal && cJSON_AddItemToObject(c, "shoal", shoal))
        shoal = NULL;
    cJSON_Delete(shoal);
    if (rc == 0)
        rc = write_json(dir, "config.json", c, e);
    if (rc == 0)
        rc =
            write_file(dir, "config_sentence_transformers.json", unscaled, sizeof(unscaled) - 1, e);
    if (rc == 0)
        rc = copy_tokenizer(f, dir, e);
    if (rc == 0)
        rc = write_model(f, dir, NULL, e);
    cJSON_Delete(c);
    return rc;
}

/* The section "shoal" of config.json: one head with one set of labels. */
static cJSON *label_sets(const struct fit *f)
{
    cJSON *shoal = cJSON_CreateObject(), *head = cJSON_AddObjectToObject(shoal, "intent");
    cJSON *sets = cJSON_AddObjectToObject(head, "label_sets");
    cJSON *set = cJSON_AddObjectToObject(sets, "domains");
    cJSON_AddStringToObject(head, "weight", "classifier.weight");
    cJSON_AddStringToObject(head, "bias", "classifier.bias");
    cJSON_AddStringToObject(head, "pooling", pooling_of(f));
    cJSON_AddStringToObject(head, "default", "domains");
    cJSON_AddNumberToObject(set, "first", 0);
    cJSON_AddNumberToObject(set, "count", f->n_labels);
    cJSON_AddNumberToObject(set, "temperature", f->head.temperature);
    cJSON *labels = cJSON_AddArrayToObject(set, "labels");
    for (uint32_t i = 0; i < f->n_labels; i++)
        cJSON_AddItemToArray(labels, cJSON_CreateString(f->labels[i]));
    cJSON *fitted = cJSON_AddObjectToObject(shoal, "fitted");
    cJSON_AddNumberToObject(fitted, "rows", (double)f->n);
    cJSON_AddNumberToObject(fitted, "heldout", f->n_heldout);
    cJSON_AddNumberToObject(fitted, "accuracy", f->accuracy);
    cJSON_AddNumberToObject(fitted, "threshold", f->threshold);
    if (labels && cJSON_GetArraySize(labels) == (int)f->n_labels && fitted)
        return shoal;
    cJSON_Delete(shoal);
    return NULL;
}

static int write_fitted(const struct fit *f, const char *dir, struct err *e)
{
    char path[4096];
    cJSON *c = cJSON_Duplicate(f->config, true), *shoal = label_sets(f);
    static const char *const drop[] = {"id2label", "label2id", "shoal"};
    for (size_t i = 0; c && i < 3; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(c, drop[i]);
    cJSON *names = c ? cJSON_AddObjectToObject(c, "id2label") : NULL;
    for (uint32_t i = 0; names && i < f->n_labels; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", i);
        cJSON_AddStringToObject(names, key, f->labels[i]);
    }
    int rc = 0;
    if (!names || !shoal)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for config.json");
    if (c && shoal && cJSON_AddItemToObject(c, "shoal", shoal))
        shoal = NULL;
    cJSON_Delete(shoal);
    if (rc == 0)
        rc = write_model(f, dir, &f->head, e);
    if (rc == 0)
        rc = write_json(dir, "config.json", c, e);
    if (rc == 0)
        rc = path_of(path, dir, "config_sentence_transformers.json", e);
    if (rc == 0)
        unlink(path);
    cJSON_Delete(c);
    return rc;
}

/* ---- what the encoder says ---- */

static int take_vector(struct fit *f, size_t i, struct shoal_task *task, struct err *e)
{
    (void)shoal_task_wait(task); /* the result has the code */
    const struct shoal_result *r = shoal_task_result(task);
    int rc = r ? r->code : SHOAL_EINVAL;
    if (rc < 0)
        return err_set(e, rc, "%s", r && r->message ? r->message : "the encoder gives no vectors");
    if (!f->vectors) {
        f->dim = r->n_dims;
        f->vectors = mem_zalloc_n(f->n, r->n_dims * sizeof(float));
    }
    if (!f->vectors || r->n_dims != f->dim)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu vectors", f->n);
    memcpy(f->vectors + i * f->dim, r->vector, f->dim * sizeof(float));
    return 0;
}

static int embed_all(struct fit *f, const char *dir, int interrupt_fd, struct err *e)
{
    const struct shoal_engine_opts eo = {.size = sizeof(eo), .cache_dir = ""};
    struct shoal_engine *engine = NULL;
    struct shoal_error why = {0};
    struct shoal_task *tasks[IN_FLIGHT] = {NULL};
    struct term_progress bar;
    term_progress_init(&bar, "texts");
    int rc = shoal_engine_open(&engine, dir, &eo, &why);
    if (rc < 0)
        return err_set(e, rc, "%s", why.msg);
    for (size_t at = 0; at < f->n && rc == 0; at += IN_FLIGHT) {
        size_t n = f->n - at < IN_FLIGHT ? f->n - at : IN_FLIGHT, sent = 0;
        for (; sent < n && rc == 0; sent++) {
            const struct shoal_infer_opts o = {.size = sizeof(o),
                                               .kind = SHOAL_KIND_EMBED,
                                               .text = f->texts[at + sent],
                                               .text_bytes = strlen(f->texts[at + sent])};
            rc = shoal_infer_submit(engine, &o, &tasks[sent], &why);
            if (rc < 0) {
                err_set(e, rc, "row %zu: %s", at + sent + 1, why.msg);
                break;
            }
        }
        for (size_t i = 0; i < sent; i++) {
            if (rc == 0)
                rc = take_vector(f, at + i, tasks[i], e);
            shoal_task_free(tasks[i]);
        }
        term_progress_show(&bar, (double)(at + n) / (double)f->n, NULL);
        if (rc == 0 && term_interrupted(interrupt_fd))
            rc = SHOAL_ECANCELLED;
    }
    term_progress_end(&bar);
    shoal_engine_close(engine);
    return rc;
}

/* ---- the head ---- */

/* Rows of domains, held out or not, as an array of their own; *n of them. */
static int select_rows(const struct fit *f, bool heldout, struct linear_head_rows *out,
                       struct err *e)
{
    float *x = mem_zalloc_n(f->n, f->dim * sizeof(*x));
    uint32_t *y = mem_zalloc_n(f->n, sizeof(*y));
    *out = (struct linear_head_rows){x, y, 0};
    if (!x || !y)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", f->n);
    for (size_t i = 0; i < f->n; i++)
        if (f->domains[i] < f->n_labels && is_heldout(f, i) == heldout) {
            memcpy(x + out->n * f->dim, f->vectors + i * f->dim, f->dim * sizeof(*x));
            y[out->n++] = f->domains[i];
        }
    return 0;
}

static void free_rows(struct linear_head_rows *r)
{
    mem_free((void *)(uintptr_t)r->x);
    mem_free((void *)(uintptr_t)r->y);
}

static int measure(struct fit *f, const struct linear_head_rows *held, struct err *e)
{
    double *right = mem_zalloc_n(held->n + 1, sizeof(*right));
    double *none = mem_zalloc_n(f->n + 1, sizeof(*none)), p;
    size_t n_right = 0, n_none = 0;
    int rc = right && none ? 0 : err_set(e, SHOAL_ENOMEM, "figures");
    for (size_t i = 0; rc == 0 && i < held->n; i++)
        if (linear_head_best(&f->head, held->x + i * f->dim, &p) == held->y[i])
            right[n_right++] = p;
    for (size_t i = 0; rc == 0 && i < f->n; i++)
        if (f->domains[i] == f->n_labels) {
            (void)linear_head_best(&f->head, f->vectors + i * f->dim, &p);
            none[n_none++] = p;
        }
    if (rc == 0) {
        f->n_heldout = (uint32_t)held->n;
        f->n_none = (uint32_t)n_none;
        f->accuracy = held->n ? (double)n_right / (double)held->n : 0;
        f->threshold = linear_head_threshold(right, n_right, none, n_none);
        for (size_t i = 0; i < n_none; i++)
            f->n_none_right += none[i] < f->threshold;
    }
    mem_free(right);
    mem_free(none);
    return rc;
}

static int fit_head(struct fit *f, struct err *e)
{
    struct linear_head_rows train = {0}, held = {0};
    int rc = select_rows(f, false, &train, e);
    if (rc == 0)
        rc = select_rows(f, true, &held, e);
    if (rc == 0 && held.n == 0)
        rc = err_set(e, SHOAL_EINVAL, "no row is held out: use more rows, or a higher --heldout");
    size_t epochs = ROW_EPOCHS / (train.n + 1);
    epochs = epochs < MIN_EPOCHS ? MIN_EPOCHS : epochs > MAX_EPOCHS ? MAX_EPOCHS : epochs;
    if (rc == 0)
        rc = linear_head_fit(&f->head, &train, f->dim, f->n_labels, (uint32_t)epochs, e);
    if (rc == 0) {
        rc = linear_head_calibrate(&f->head, &held, e);
        rc = rc < 0 ? rc : measure(f, &held, e);
    }
    free_rows(&train);
    free_rows(&held);
    return rc;
}

/* ---- the command ---- */

static void put_result(struct buf *b, const struct fit *f, const char *dir)
{
    buf_printf(b, "%s: %u domain%s from %zu row%s in %.1f s\n", dir, f->n_labels,
               plural(f->n_labels), f->n, plural(f->n), f->seconds);
    buf_printf(b, "held out: %u row%s, accuracy %.1f %%\n", f->n_heldout, plural(f->n_heldout),
               100 * f->accuracy);
    if (f->n_none > 0)
        buf_printf(b, "of no domain: %u row%s, %u below the threshold\n", f->n_none,
                   plural(f->n_none), f->n_none_right);
    buf_printf(b,
               "\nmodels:\n  - {name: my-router, path: %s}\nroutes:\n  - name: my-route\n"
               "    classifier: {model: my-router, threshold: %.3f}\n",
               dir, f->threshold);
}

static void put_number(struct json_out *j, const char *key, double v)
{
    json_out_member_num(j, key, v);
}

static void put_json(struct buf *b, const struct fit *f, const char *dir)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "model", dir);
    json_out_member_array(&j, "domains");
    for (uint32_t i = 0; i < f->n_labels; i++)
        json_out_str(&j, f->labels[i]);
    json_out_array_end(&j);
    put_number(&j, "rows", (double)f->n);
    put_number(&j, "heldout", f->n_heldout);
    put_number(&j, "accuracy", f->accuracy);
    put_number(&j, "threshold", f->threshold);
    put_number(&j, "temperature", f->head.temperature);
    put_number(&j, "none", f->n_none);
    put_number(&j, "none_below", f->n_none_right);
    put_number(&j, "seconds", f->seconds);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* Removes the output written before it failed. */
static void remove_folder(const char *dir)
{
    static const char *const names[] = {"tokenizer.json",   "tokenizer_config.json",
                                        "vocab.txt",        "special_tokens_map.json",
                                        "config.json",      "config_sentence_transformers.json",
                                        "model.safetensors"};
    struct err e;
    char path[4096];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (path_of(path, dir, names[i], &e) == 0)
            unlink(path);
    rmdir(dir);
}

static int run(struct fit *f, const char *dir, int interrupt_fd, struct err *e)
{
    uint64_t t0 = clock_ns();
    bool made = false;
    int rc = read_rows(f, e);
    if (rc == 0)
        rc = read_encoder(f, e);
    if (rc == 0)
        rc = cut_layers(f, e);
    if (rc == 0 && mkdir(dir, 0777) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", dir, strerror(errno));
    made = rc == 0;
    if (rc == 0)
        rc = write_plain(f, dir, e);
    if (rc == 0)
        rc = embed_all(f, dir, interrupt_fd, e);
    if (rc == 0)
        rc = fit_head(f, e);
    if (rc == 0)
        rc = write_fitted(f, dir, e);
    if (rc < 0 && made)
        remove_folder(dir);
    f->seconds = (double)(clock_ns() - t0) / 1e9;
    return rc;
}

static void fit_fini(struct fit *f)
{
    eval_rows_fini(&f->rows);
    mem_free(f->texts);
    mem_free(f->domains);
    mem_free(f->labels);
    mem_free(f->from);
    mem_free(f->vectors);
    buf_fini(&f->model);
    cJSON_Delete(f->header);
    cJSON_Delete(f->config);
    linear_head_fini(&f->head);
}

int cmd_router_fit(int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct buf b;
    int exit_code;
    if (!cmd_begin(&o, &fit_page, argc, argv, &exit_code))
        return exit_code;
    struct fit f = {.o = &o};
    const char *dir = opts_text(&o, "out");
    buf_init(&b, (size_t)1 << 20);
    buf_init(&f.model, MAX_MODEL_BYTES);
    int interrupt_fd = term_catch_interrupt();
    if (!dir) {
        exit_code = opts_usage(&fit_page, "no folder given: use -o DIR");
    } else {
        int rc = run(&f, dir, interrupt_fd, &e);
        if (rc == 0 && opts_flag(&o, "json"))
            put_json(&b, &f, dir);
        else if (rc == 0)
            put_result(&b, &f, dir);
        exit_code = rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED
                    : rc < 0               ? cmd_fail(&fit_page, "%s", e.msg)
                                           : cmd_print(&fit_page, &b);
    }
    term_release_interrupt(interrupt_fd);
    fit_fini(&f);
    buf_fini(&b);
    opts_fini(&o);
    return exit_code;
}
