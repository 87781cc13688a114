/* heads.c - reads the description of a model's heads; see heads.h. */
#include "model/heads.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "model/encoder.h"
#include "format/model_file.h"
#include "model/heads_int.h"

#define MAX_LABELS 65535u /* tags are 16-bit */
#define MAX_SETS 64

static const char *keep_str(struct heads *h, const char *s, size_t n)
{
    return heads_keep(h, mem_strndup(s, n));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(member(o, key));
    return s ? s : "";
}

static double number_or(const cJSON *o, const char *key, double missing)
{
    const cJSON *v = member(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : missing;
}

static int parse(cJSON **out, const char *text, size_t n, const char *what, struct err *e)
{
    *out = NULL;
    if (!text)
        return 0;
    *out = cJSON_ParseWithLength(text, n);
    if (*out && cJSON_IsObject(*out))
        return 0;
    cJSON_Delete(*out);
    *out = NULL;
    return err_set(e, SHOAL_EFORMAT, "%s is not a JSON object", what);
}

/* ---- label sets ----------------------------------------------------------------------------- */

static int check_set(const struct heads_set *s, uint32_t rows, struct err *e)
{
    if (s->count == 0 || s->count > MAX_LABELS || s->first > rows || s->count > rows - s->first)
        return err_set(e, SHOAL_EFORMAT,
                       "label set \"%.60s\": rows %u to %u are not within the head's %u rows",
                       s->name, s->first, s->first + s->count, rows);
    if (!(s->temperature > 0.0f && s->temperature < 1e6f))
        return err_set(e, SHOAL_EFORMAT, "label set \"%.60s\": the temperature is out of range",
                       s->name);
    return 0;
}

static int read_labels(struct heads *h, struct heads_set *s, const cJSON *list, struct err *e)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)s->count)
        return err_set(e, SHOAL_EFORMAT, "label set \"%.60s\": expected %u labels", s->name,
                       s->count);
    const char **labels = heads_keep(h, mem_zalloc_n(s->count, sizeof(*labels)));
    uint32_t i = 0;
    for (const cJSON *c = list->child; labels && c; c = c->next) {
        const char *text = cJSON_GetStringValue(c);
        if (!text)
            return err_set(e, SHOAL_EFORMAT, "label set \"%.60s\": label %u is not a string",
                           s->name, i);
        labels[i] = keep_str(h, text, strlen(text));
        labels = labels[i++] ? labels : NULL;
    }
    s->labels = labels;
    return labels ? 0 : err_set(e, SHOAL_ENOMEM, "labels");
}

static int read_transitions(struct heads *h, struct heads_set *s, const struct model_file *file,
                            struct err *e)
{
    char name[128];
    snprintf(name, sizeof(name), "tag.transitions.%.80s", s->name);
    const struct model_file_tensor *t = file ? model_file_find_tensor(file, name) : NULL;
    if (!t)
        return err_set(e, SHOAL_EFORMAT, "tensor %s is missing", name);
    if (t->n_dims != 2 || t->dims[0] != s->count || t->dims[1] != s->count + 1)
        return err_set(e, SHOAL_EFORMAT, "tensor %s is not %u x %u", name, s->count + 1, s->count);
    size_t n = (size_t)s->count * (s->count + 1);
    float *v = heads_keep(h, mem_aligned((n + 16) * sizeof(*v)));
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "tensor %s", name);
    quant_to_f32(t->type, t->data, v, n);
    s->transitions = v;
    return 0;
}

static int32_t label_index(const struct heads_set *s, const char *label)
{
    for (uint32_t i = 0; label[0] && i < s->count; i++)
        if (strcmp(s->labels[i], label) == 0)
            return (int32_t)i;
    return -1;
}

/* Reads one member of "label_sets". */
static int read_set(struct heads *h, struct heads_set *s, const struct heads_source *src,
                    uint32_t rows, const cJSON *o, struct err *e)
{
    double first = number_or(o, "first", 0), count = number_or(o, "count", 0);
    *s = (struct heads_set){.oos = -1};
    s->name = keep_str(h, o->string, strlen(o->string));
    if (!s->name)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a label set");
    s->first = first >= 0 && first < 1e9 ? (uint32_t)first : UINT32_MAX;
    s->count = count >= 0 && count < 1e9 ? (uint32_t)count : 0;
    s->temperature = (float)number_or(o, "temperature", 1);
    s->threshold = (float)number_or(o, "threshold", 0);
    s->multi = cJSON_IsTrue(member(o, "multi"));
    s->cased = cJSON_IsTrue(member(o, "cased"));
    int rc = check_set(s, rows, e);
    if (rc == 0)
        rc = read_labels(h, s, member(o, "labels"), e);
    if (rc < 0)
        return rc;
    s->oos = label_index(s, text_of(o, "oos"));
    if (s->oos < 0 && text_of(o, "oos")[0])
        return err_set(e, SHOAL_EFORMAT, "label set \"%.60s\": \"%.60s\" is not one of its labels",
                       s->name, text_of(o, "oos"));
    return text_of(o, "transitions")[0] ? read_transitions(h, s, src->file, e) : 0;
}

/* Reads one head of the section "shoal": an object with label_sets. */
static int read_head(struct heads *h, struct heads_head *head, const struct heads_source *src,
                     const cJSON *o, struct err *e)
{
    const cJSON *sets = member(o, "label_sets");
    int n = cJSON_GetArraySize(sets);
    if (!cJSON_IsObject(sets) || n < 1 || n > MAX_SETS || head->sets)
        return err_set(e, SHOAL_EFORMAT, "config.json: shoal.%.60s has no usable label sets",
                       o->string);
    head->sets = heads_keep(h, mem_zalloc_n((size_t)n, sizeof(*head->sets)));
    if (!head->sets)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the label sets");
    for (const cJSON *c = sets->child; c; c = c->next) {
        int rc = read_set(h, &head->sets[head->n_sets++], src, head->rows, c, e);
        if (rc < 0)
            return rc;
        if (strcmp(c->string, text_of(o, "default")) == 0)
            head->def = head->n_sets - 1;
    }
    return 0;
}

static int read_shoal(struct heads *h, const struct heads_source *src, const cJSON *shoal,
                      struct err *e)
{
    for (const cJSON *c = shoal->child; c; c = c->next) {
        if (!member(c, "label_sets"))
            continue;
        bool tags = strncmp(text_of(c, "weight"), "tag", 3) == 0;
        int rc = read_head(h, &h->head[tags ? HEADS_TAG : HEADS_CLASSIFY], src, c, e);
        if (rc < 0)
            return rc;
        if (!tags && strcmp(text_of(c, "pooling"), "mean") == 0)
            h->mean_class = true;
        if (tags)
            h->info.whole_words = strstr(text_of(c, "unit"), "whitespace") != NULL;
    }
    const cJSON *embed = member(shoal, "embed");
    if (embed) {
        double n = number_or(embed, "dimensions", h->info.vector_dim);
        h->embeds = true;
        if (n >= 1 && n <= (double)h->info.vector_dim)
            h->info.dimensions = (uint32_t)n;
        if (strcmp(text_of(embed, "pooling"), "cls") == 0)
            h->info.poolings[0] = HEADS_POOLING_CLS;
        else if (strcmp(text_of(embed, "pooling"), "pooler") == 0)
            h->info.poolings[0] = HEADS_POOLING_POOLER;
    }
    return 0;
}

/* The only set of a head: labels from id2label, from the GGUF key, or "LABEL_0", ... */
static int plain_set(struct heads *h, struct heads_head *head, const struct heads_source *src,
                     const cJSON *config, struct err *e)
{
    struct heads_set *s = heads_keep(h, mem_zalloc(sizeof(*s)));
    const char **labels = heads_keep(h, mem_zalloc_n(head->rows, sizeof(*labels)));
    const cJSON *names = member(config, "id2label");
    struct model_file_strings texts = {0};
    struct str given;
    char key[96];
    if (!s || !labels)
        return err_set(e, SHOAL_ENOMEM, "labels");
    *s = (struct heads_set){
        .name = "", .count = head->rows, .labels = labels, .temperature = 1.0f, .oos = -1};
    s->multi = strcmp(text_of(config, "problem_type"), "multi_label_classification") == 0;
    snprintf(key, sizeof(key), "%.40s.classifier.output_labels", src->arch ? src->arch : "");
    if (src->file)
        texts = model_file_strings(model_file_find(src->file, key));
    for (uint32_t i = 0; i < head->rows; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%u", i);
        const char *name = names ? cJSON_GetStringValue(member(names, text)) : NULL;
        bool has_given = model_file_strings_next(&texts, &given);
        if (name)
            labels[i] = keep_str(h, name, strlen(name));
        else if (has_given)
            labels[i] = keep_str(h, given.p, given.n);
        else
            labels[i] = keep_str(h, text, (size_t)snprintf(text, sizeof(text), "LABEL_%u", i));
        if (!labels[i])
            return err_set(e, SHOAL_ENOMEM, "labels");
    }
    head->sets = s;
    head->n_sets = 1;
    return check_set(s, head->rows, e);
}

/* ---- pooling -------------------------------------------------------------------------------- */

/* The key of GGUF files that llama.cpp's tools make; a folder's own settings come afterwards. */
static void read_pooling_type(struct heads *h, const struct heads_source *src)
{
    char key[96];
    uint64_t type;
    snprintf(key, sizeof(key), "%.40s.pooling_type", src->arch ? src->arch : "");
    if (src->file && model_file_get_u64(src->file, key, &type) && type >= 1 && type <= 3) {
        h->embeds = true;
        h->info.poolings[0] = type == 2   ? HEADS_POOLING_CLS
                              : type == 3 ? HEADS_POOLING_LAST
                                          : HEADS_POOLING_MEAN;
    }
}

/* The activation is given as the name of a torch class by sentence-transformers. */
static bool rerank_is_raw(const cJSON *config)
{
    const char *old = text_of(config, "sbert_ce_default_activation_function");
    const char *now = text_of(member(config, "sentence_transformers"), "activation_fn");
    return strstr(old, "Identity") || strstr(now, "Identity") ||
           strcmp(text_of(config, "problem_type"), "regression") == 0;
}

/* ---- create --------------------------------------------------------------------------------- */

static int read_all(struct heads *h, const struct heads_source *s, const cJSON *config,
                    const cJSON *sentence, struct err *e)
{
    const cJSON *shoal = member(config, "shoal");
    read_pooling_type(h, s);
    int rc = heads_sentence_read(h, s, sentence, e);
    if (rc == 0 && cJSON_IsObject(shoal))
        rc = read_shoal(h, s, shoal, e);
    for (uint32_t i = 0; rc == 0 && i < HEADS_N_HEADS; i++)
        if (h->head[i].rows && !h->head[i].sets)
            rc = plain_set(h, &h->head[i], s, config, e);
    if (rc < 0)
        return rc;
    h->reranks = s->n_classes == 1;
    if (strcmp(text_of(config, "classifier_pooling"), "mean") == 0) /* ModernBERT */
        h->mean_class = true;
    h->info.rerank_sigmoid = !rerank_is_raw(config);
    if (!s->n_classes && !s->n_tags) /* a model without heads is used for its embeddings */
        h->embeds = true;
    if (h->info.poolings[0] == HEADS_POOLING_POOLER && !s->has_pooler)
        return err_set(e, SHOAL_EFORMAT, "the pooling mode is \"pooler\", but there is no pooler");
    return 0;
}

static enum heads_act act_before_classes(const char *arch)
{
    static const struct {
        const char *arch;
        enum heads_act act;
    } others[] = {{"distilbert", HEADS_ACT_RELU},
                  {"electra", HEADS_ACT_GELU},
                  {"deberta-v2", HEADS_ACT_GELU},
                  {"modern-bert", HEADS_ACT_GELU}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(arch, others[i].arch) == 0)
            return others[i].act;
    return HEADS_ACT_TANH;
}

/* A model that sees images reads its classes from the first token, without the pooler, and has
 * embeddings, too: the pooler's if there is one and it is no classifier. */
static void see(struct heads *h, const struct heads_source *s)
{
    h->embeds = true;
    h->has_pre = s->has_pooler && s->n_classes == 0;
    h->info.poolings[0] = h->has_pre ? HEADS_POOLING_POOLER : HEADS_POOLING_CLS;
}

int heads_create(struct heads **out, const struct heads_source *s, struct err *e)
{
    cJSON *config = NULL, *sentence = NULL;
    *out = NULL;
    struct heads *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_set(e, SHOAL_ENOMEM, "heads");
    h->info.dim = s->dim;
    h->info.n_poolings = 1;
    h->head[HEADS_CLASSIFY].rows = s->n_classes;
    h->head[HEADS_TAG].rows = s->n_tags;
    h->has_pre = s->has_pooler;
    h->pre_act = act_before_classes(s->arch ? s->arch : "");
    if (s->arch && strcmp(s->arch, "vit") == 0)
        see(h, s);
    int rc = parse(&config, s->config, s->n_config, "huggingface.config", e);
    if (rc == 0)
        rc = parse(&sentence, s->pooling, s->n_pooling, "huggingface.sentence_pooling", e);
    if (rc == 0)
        rc = read_all(h, s, config, sentence, e);
    cJSON_Delete(config);
    cJSON_Delete(sentence);
    if (rc < 0) {
        heads_destroy(h);
        return rc;
    }
    *out = h;
    return 0;
}

int heads_open(struct heads **out, const struct model_file *file, const struct encoder *d,
               struct err *e)
{
    struct str config = {NULL, 0}, pooling = {NULL, 0};
    (void)model_file_get_str(file, "huggingface.config", &config);
    (void)model_file_get_str(file, "huggingface.sentence_pooling", &pooling);
    const struct heads_source s = {.file = file,
                                   .config = config.p,
                                   .n_config = config.n,
                                   .pooling = pooling.p,
                                   .n_pooling = pooling.n,
                                   .arch = encoder_config(d)->arch,
                                   .dim = encoder_config(d)->dim,
                                   .n_classes = encoder_top_rows(d, ENCODER_TOP_CLS_OUTPUT),
                                   .n_tags = encoder_top_rows(d, ENCODER_TOP_TAG_OUTPUT),
                                   .has_pooler = encoder_top_rows(d, ENCODER_TOP_CLS) > 0};
    return heads_create(out, &s, e);
}

bool heads_has(const struct heads *h, enum heads_task task)
{
    switch (task) {
    case HEADS_CLASSIFY:
        return h->head[HEADS_CLASSIFY].rows > 1;
    case HEADS_TAG:
        return h->head[HEADS_TAG].rows > 0;
    case HEADS_EMBED:
        return h->embeds;
    default:
        return h->reranks;
    }
}

const struct heads_info *heads_info(const struct heads *h)
{
    return &h->info;
}

uint32_t heads_n_sets(const struct heads *h, enum heads_task task)
{
    return (uint32_t)task < HEADS_N_HEADS && heads_has(h, task) ? h->head[task].n_sets : 0;
}

const struct heads_set *heads_set(const struct heads *h, enum heads_task task, uint32_t i)
{
    return i < heads_n_sets(h, task) ? &h->head[task].sets[i] : NULL;
}

int heads_find_set(const struct heads *h, enum heads_task task, const char *name,
                   const struct heads_set **out, struct err *e)
{
    uint32_t n = heads_n_sets(h, task);
    char known[200] = "";
    size_t at = 0;
    *out = NULL;
    if (n == 0)
        return err_set(e, SHOAL_EINVAL, "the model cannot %s",
                       task == HEADS_TAG ? "tag words" : "classify");
    if (!name || !name[0]) {
        *out = &h->head[task].sets[h->head[task].def];
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct heads_set *s = &h->head[task].sets[i];
        if (strcmp(s->name, name) == 0) {
            *out = s;
            return 0;
        }
        if (at < sizeof(known))
            at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%.40s", i ? ", " : "",
                                   s->name[0] ? s->name : "the default, without a name");
    }
    return err_set(e, SHOAL_EINVAL, "unknown label set \"%.60s\"; available: %s", name, known);
}
