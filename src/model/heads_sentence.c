/* heads_sentence.c - the modules of a sentence-transformers folder: pooling, dense layers,
 * normalizing, prompts, similarity and the limit of tokens; see heads.h.
 *
 * Anything unknown (a module, a pooling mode, an activation, a similarity) is an error that names
 * it: a vector computed differently would be silently wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/model_file.h"
#include "model/heads_int.h"
#include "wire/json_in.h"

#define MAX_JSON_BYTES ((size_t)16 << 20)
#define MAX_PROMPTS 256

static const char *text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(json_in_item(o, key));
    return s ? s : "";
}

/* ---- pooling -------------------------------------------------------------------------------- */

/* In the order in which sentence-transformers concatenates the modes of the older keys. */
static const struct {
    const char *key, *name; /* older files: a boolean of each mode; newer ones: its name */
    enum heads_pooling pooling;
} modes[] = {
    {"pooling_mode_cls_token", "cls", HEADS_POOLING_CLS},
    {"pooling_mode_max_tokens", "max", HEADS_POOLING_MAX},
    {"pooling_mode_mean_tokens", "mean", HEADS_POOLING_MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", HEADS_POOLING_MEAN_SQRT},
    {"pooling_mode_weightedmean_tokens", "weightedmean", HEADS_POOLING_WEIGHTED_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", HEADS_POOLING_LAST},
};
#define N_MODES (sizeof(modes) / sizeof(modes[0]))

static int add_mode(struct heads *h, const cJSON *name, struct err *e)
{
    const char *s = cJSON_GetStringValue(name);
    struct heads_info *info = &h->info;
    for (size_t i = 0; s && i < N_MODES; i++)
        if (strcmp(s, modes[i].name) == 0) {
            if (info->n_poolings == HEADS_MAX_POOLINGS)
                return err_set(e, SHOAL_EUNSUPPORTED, "more than %d pooling modes",
                               HEADS_MAX_POOLINGS);
            info->poolings[info->n_poolings++] = modes[i].pooling;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED,
                   "the pooling mode \"%.60s\" is not supported; known: cls, max, mean, "
                   "mean_sqrt_len_tokens, weightedmean, lasttoken",
                   s ? s : "(not a string)");
}

/* The older form: every mode is a key. */
static int read_old_modes(struct heads *h, const cJSON *o, struct err *e)
{
    struct heads_info *info = &h->info;
    for (const cJSON *c = o->child; c; c = c->next) {
        bool known = strncmp(c->string, "pooling_mode_", 13) != 0 || cJSON_IsFalse(c);
        for (size_t i = 0; !known && i < N_MODES; i++)
            known = strcmp(c->string, modes[i].key) == 0;
        if (!known)
            return err_set(e, SHOAL_EUNSUPPORTED, "the pooling mode %.80s is not supported",
                           c->string);
    }
    for (size_t i = 0; i < N_MODES; i++)
        if (cJSON_IsTrue(json_in_item(o, modes[i].key)))
            info->poolings[info->n_poolings++] = modes[i].pooling;
    if (info->n_poolings == 0) /* as sentence-transformers does */
        info->poolings[info->n_poolings++] = HEADS_POOLING_MEAN;
    return 0;
}

static int read_pooling(struct heads *h, const cJSON *o, struct err *e)
{
    const cJSON *mode = json_in_item(o, "pooling_mode");
    int rc = 0;
    uint32_t dim;
    h->embeds = true;
    h->info.n_poolings = 0;
    if (!mode)
        rc = read_old_modes(h, o, e);
    else if (cJSON_IsArray(mode))
        for (const cJSON *c = mode->child; rc == 0 && c; c = c->next)
            rc = add_mode(h, c, e);
    else
        rc = add_mode(h, mode, e);
    if (rc == 0 && h->info.n_poolings == 0)
        rc = err_set(e, SHOAL_EFORMAT, "pooling_mode is an empty list");
    const char *key =
        json_in_item(o, "embedding_dimension") ? "embedding_dimension" : "word_embedding_dimension";
    if (rc == 0)
        rc = json_in_u32(o, key, 1, 65536, h->info.dim, &dim, e);
    if (rc == 0 && dim != h->info.dim)
        rc = err_set(e, SHOAL_EFORMAT, "the pooling expects vectors of %u values, the model has %u",
                     dim, h->info.dim);
    h->include_prompt = !cJSON_IsFalse(json_in_item(o, "include_prompt"));
    return rc < 0 ? err_wrap(e, "1_Pooling/config.json") : 0;
}

/* ---- dense layers --------------------------------------------------------------------------- */

static int read_activation(struct heads_step *s, const cJSON *o, struct err *e)
{
    static const struct {
        const char *name;
        enum heads_act act;
    } acts[] = {{"Tanh", HEADS_ACT_TANH},
                {"Identity", HEADS_ACT_NONE},
                {"ReLU", HEADS_ACT_RELU},
                {"GELU", HEADS_ACT_GELU},
                {"Sigmoid", HEADS_ACT_SIGMOID}};
    const char *name =
        json_in_item(o, "activation_function") ? text_of(o, "activation_function") : "Tanh";
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        if (strcmp(dot ? dot + 1 : name, acts[i].name) == 0) {
            s->act = acts[i].act;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "the activation \"%.80s\" of a dense layer", name);
}

/* A tensor of the dense layer as floats that belong to h. */
static int read_tensor(struct heads *h, const float **out, const struct model_file *g,
                       const char *name, uint32_t cols, uint32_t rows, struct err *e)
{
    const struct model_file_tensor *t = g ? model_file_find_tensor(g, name) : NULL;
    if (!t || t->dims[0] != cols || t->dims[1] != rows || t->dims[2] * t->dims[3] != 1)
        return err_set(e, SHOAL_EFORMAT, "tensor %s is missing or not %u x %u", name, rows, cols);
    float *v = heads_keep(h, mem_aligned(((size_t)rows * cols + 16) * sizeof(*v)));
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for tensor %s", name);
    for (uint32_t r = 0; r < rows; r++)
        model_file_row_f32(t, r, v + (size_t)r * cols);
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        if (!isfinite(v[i]))
            return err_set(e, SHOAL_EFORMAT, "tensor %s has a value that is not finite", name);
    *out = v;
    return 0;
}

static int read_dense(struct heads *h, const struct heads_source *src, uint32_t which,
                      uint32_t *width, struct err *e)
{
    char key[64], name[64];
    struct str text = {NULL, 0};
    cJSON *o = NULL;
    struct heads_step *s = &h->steps[h->n_steps];
    snprintf(key, sizeof(key), "huggingface.sentence_dense.%u", which);
    if (!src->file || !model_file_get_str(src->file, key, &text))
        return err_set(e, SHOAL_EFORMAT,
                       "modules.json names dense layer %u, but its config.json "
                       "is missing",
                       which);
    int rc = json_in_object(&o, key, text.p, text.n, MAX_JSON_BYTES, e);
    *s = (struct heads_step){.kind = HEADS_STEP_DENSE};
    if (rc == 0)
        rc = json_in_u32(o, "in_features", 1, 1 << 20, 0, &s->n_in, e);
    if (rc == 0)
        rc = json_in_u32(o, "out_features", 1, 1 << 20, 0, &s->n_out, e);
    if (rc == 0)
        rc = read_activation(s, o, e);
    if (rc == 0 && s->n_in != *width)
        rc = err_set(e, SHOAL_EFORMAT, "in_features is %u, but the vector has %u values", s->n_in,
                     *width);
    const char *in = text_of(o, "module_input_name"), *to = text_of(o, "module_output_name");
    if (rc == 0 && ((in[0] && strcmp(in, "sentence_embedding") != 0) ||
                    (to[0] && strcmp(to, "sentence_embedding") != 0)))
        rc = err_set(e, SHOAL_EUNSUPPORTED, "a dense layer from \"%.40s\" to \"%.40s\"", in, to);
    if (rc == 0 && cJSON_IsTrue(json_in_item(o, "use_residual")))
        rc = err_set(e, SHOAL_EUNSUPPORTED, "use_residual of a dense layer is not supported");
    snprintf(name, sizeof(name), "sentence_dense.%u.weight", which);
    if (rc == 0)
        rc = read_tensor(h, &s->weight, src->file, name, s->n_in, s->n_out, e);
    snprintf(name, sizeof(name), "sentence_dense.%u.bias", which);
    if (rc == 0 && !cJSON_IsFalse(json_in_item(o, "bias")))
        rc = read_tensor(h, &s->bias, src->file, name, s->n_out, 1, e);
    cJSON_Delete(o);
    if (rc < 0)
        return err_wrap(e, "dense layer %u", which);
    *width = s->n_out;
    h->n_steps++;
    return 0;
}

/* ---- modules -------------------------------------------------------------------------------- */

/* Pooling comes once, before the dense layers and the normalizing. */
static int read_modules(struct heads *h, const struct heads_source *src, const cJSON *list,
                        uint32_t *width, struct err *e)
{
    uint32_t n_dense = 0, n_pooling = 0;
    int rc = 0, at = 0;
    for (const cJSON *c = list->child; rc == 0 && c; c = c->next, at++) {
        const char *type = text_of(c, "type"), *dot = strrchr(type, '.');
        type = dot ? dot + 1 : type;
        bool is_first = at == 0, dense = strcmp(type, "Dense") == 0;
        if (strcmp(type, "Transformer") == 0 && is_first)
            continue;
        if (strcmp(type, "Pooling") == 0 && at == 1 && n_pooling++ == 0)
            continue;
        if ((!dense && strcmp(type, "Normalize") != 0) || n_pooling == 0)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "modules.json: \"%.80s\" as module %d is not "
                           "supported",
                           type, at);
        if (h->n_steps == HEADS_MAX_STEPS)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "modules.json: more than %d modules after the "
                           "pooling",
                           HEADS_MAX_STEPS);
        if (dense)
            rc = read_dense(h, src, n_dense++, width, e);
        else
            h->steps[h->n_steps++] = (struct heads_step){.kind = HEADS_STEP_NORMALIZE};
    }
    return rc;
}

/* ---- prompts, similarity, limits ------------------------------------------------------------ */

static int read_prompts(struct heads *h, const cJSON *o, struct err *e)
{
    const cJSON *all = json_in_item(o, "prompts");
    const char *def = text_of(o, "default_prompt_name");
    int n = cJSON_GetArraySize(all);
    if (all && (!cJSON_IsObject(all) || n > MAX_PROMPTS))
        return err_set(e, SHOAL_EFORMAT, "prompts is not an object of at most %d texts",
                       MAX_PROMPTS);
    h->prompts = heads_keep(h, mem_zalloc_n((size_t)n + 1, sizeof(*h->prompts)));
    if (!h->prompts)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the prompts");
    for (const cJSON *c = all ? all->child : NULL; c; c = c->next) {
        const char *text = cJSON_GetStringValue(c);
        if (!text)
            return err_set(e, SHOAL_EFORMAT, "the prompt \"%.60s\" is not a text", c->string);
        if (text[0] && !h->include_prompt)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "include_prompt is false: prompts outside of the pooling are not "
                           "supported");
        struct heads_prompt *p = &h->prompts[h->n_prompts];
        p->name = heads_keep(h, mem_strdup(c->string));
        p->text = heads_keep(h, mem_strdup(text));
        if (!p->name || !p->text)
            return err_set(e, SHOAL_ENOMEM, "out of memory for the prompts");
        if (strcmp(p->name, def) == 0)
            h->default_prompt = p;
        h->n_prompts++;
    }
    if (def[0] && !h->default_prompt)
        return err_set(e, SHOAL_EFORMAT, "default_prompt_name \"%.60s\" is not among the prompts",
                       def);
    return 0;
}

/* Cosine does not depend on the length of vectors; the others do, so it is kept. */
static int read_similarity(struct heads *h, const cJSON *o, struct err *e)
{
    static const char *const names[] = {"dot", "dot_score", "euclidean", "manhattan"};
    const char *name = text_of(o, "similarity_fn_name");
    h->info.similarity = "cosine";
    if (!name[0] || strcmp(name, "cosine") == 0 || strcmp(name, "cos_sim") == 0)
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0) {
            h->info.similarity = i < 2 ? "dot" : names[i];
            h->info.keep_length = true;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED,
                   "similarity_fn_name \"%.60s\" is not supported; known: "
                   "cosine, dot, euclidean, manhattan",
                   name);
}

/* A JSON object of the metadata; *out is NULL if there is none. */
static int document(cJSON **out, const struct model_file *g, const char *key, struct err *e)
{
    struct str text;
    *out = NULL;
    return g && model_file_get_str(g, key, &text)
               ? json_in_object(out, key, text.p, text.n, MAX_JSON_BYTES, e)
               : 0;
}

/* The token limit of a text: max_seq_length, otherwise the tokenizer's. Tokenizers without a limit
 * have 1e30. */
static int read_limit(struct heads *h, const struct model_file *g, struct err *e)
{
    cJSON *sentence = NULL, *tokenizer = NULL;
    int rc = document(&sentence, g, "huggingface.sentence_config", e);
    if (rc == 0)
        rc = document(&tokenizer, g, "tokenizer.huggingface.config", e);
    const cJSON *n = json_in_item(sentence, "max_seq_length");
    const char *key =
        n ? "sentence_bert_config.json: max_seq_length" : "tokenizer_config.json: model_max_length";
    n = n ? n : json_in_item(tokenizer, "model_max_length");
    if (rc == 0 && n && (!cJSON_IsNumber(n) || !(n->valuedouble >= 1)))
        rc = err_set(e, SHOAL_EFORMAT, "%s is not a number of tokens", key);
    if (rc == 0 && n && n->valuedouble < 1u << 24)
        h->info.max_tokens = (uint32_t)n->valuedouble;
    if (rc == 0 && cJSON_IsTrue(json_in_item(sentence, "do_lower_case")) &&
        !cJSON_IsTrue(json_in_item(tokenizer, "do_lower_case")))
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "sentence_bert_config.json: do_lower_case with a tokenizer that keeps case");
    cJSON_Delete(sentence);
    cJSON_Delete(tokenizer);
    return rc;
}

static int read_settings(struct heads *h, const struct model_file *g, struct err *e)
{
    cJSON *o;
    int rc = document(&o, g, "huggingface.sentence_settings", e);
    if (rc == 0)
        rc = read_similarity(h, o, e);
    if (rc == 0)
        rc = read_prompts(h, o, e);
    cJSON_Delete(o);
    return rc < 0 ? err_wrap(e, "config_sentence_transformers.json") : 0;
}

int heads_sentence_read(struct heads *h, const struct heads_source *src, const cJSON *pooling,
                        struct err *e)
{
    struct str text;
    uint32_t width;
    h->include_prompt = true;
    int rc = pooling ? read_pooling(h, pooling, e) : 0;
    if (rc == 0)
        rc = read_limit(h, src->file, e);
    if (rc == 0)
        rc = read_settings(h, src->file, e);
    width = h->info.room = h->info.n_poolings * h->info.dim;
    if (rc == 0 && !src->pools_itself && src->file &&
        model_file_get_str(src->file, "huggingface.sentence_modules", &text)) {
        cJSON *list = cJSON_ParseWithLength(text.p, text.n);
        rc = cJSON_IsArray(list) ? read_modules(h, src, list, &width, e)
                                 : err_set(e, SHOAL_EFORMAT, "modules.json is not a JSON array");
        cJSON_Delete(list);
    }
    if (src->pools_itself)
        width = h->info.room = h->info.dim;
    h->info.vector_dim = h->info.dimensions = width;
    for (uint32_t i = 0; i < h->n_steps; i++) {
        if (h->steps[i].kind == HEADS_STEP_NORMALIZE)
            h->info.keep_length = false;
        else if (h->steps[i].n_out > h->info.room)
            h->info.room = h->steps[i].n_out;
    }
    h->buffer = h->info.room;
    if (h->n_steps) /* a dense layer reads one half and writes the other */
        h->info.room *= 2;
    return rc;
}

int heads_find_prompt(const struct heads *h, const char *name, const char **text, struct err *e)
{
    char known[200] = "";
    size_t at = 0;
    *text = h->default_prompt ? h->default_prompt->text : "";
    if (!name)
        return 0;
    *text = "";
    if (!name[0])
        return 0;
    for (uint32_t i = 0; i < h->n_prompts; i++) {
        if (strcmp(h->prompts[i].name, name) == 0) {
            *text = h->prompts[i].text;
            return 0;
        }
        if (at < sizeof(known))
            at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%.40s", i ? ", " : "",
                                   h->prompts[i].name);
    }
    return err_set(e, SHOAL_EINVAL, "unknown prompt \"%.60s\"; available: %s", name,
                   known[0] ? known : "none");
}
