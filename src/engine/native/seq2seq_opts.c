/* seq2seq_opts.c - see seq2seq_opts.h. */
#include "engine/native/seq2seq_opts.h"

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/mem.h"

#define DEFAULT_TOKENS 200u /* if no document sets a length */
#define MAX_TOKENS 65536u
#define MAX_PREFIX_BYTES 4096u

struct opts_reader {
    struct seq2seq_opts *o;
    const char *document;
    struct err *e;
    /* What sampling would be; one document may set it and another switch it on. */
    struct shoal_sampling sampling;
    bool samples;
};

static int number(const struct opts_reader *r, const cJSON *obj, const char *key, double min,
                  double max, double *out)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, key);
    if (!v || cJSON_IsNull(v))
        return 0;
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= min && v->valuedouble <= max))
        return err_set(r->e, SHOAL_EFORMAT, "%s: %s must be a number from %g to %g", r->document,
                       key, min, max);
    *out = v->valuedouble;
    return 1;
}

/* *out: a whole number minus `less`. */
static int whole(const struct opts_reader *r, const cJSON *obj, const char *key, uint32_t less,
                 uint32_t max, uint32_t *out)
{
    double v = 0.0;
    int rc = number(r, obj, key, 0.0, max, &v);
    if (rc <= 0)
        return rc;
    if (v != floor(v))
        return err_set(r->e, SHOAL_EFORMAT, "%s: %s must be a whole number", r->document, key);
    *out = v > less ? (uint32_t)v - less : 0;
    return 0;
}

static int real(const struct opts_reader *r, const cJSON *obj, const char *key, double min,
                double max, float *out)
{
    double v = 0.0;
    int rc = number(r, obj, key, min, max, &v);
    if (rc > 0)
        *out = (float)v;
    return rc < 0 ? rc : 0;
}

static int read_ends(const struct opts_reader *r, const cJSON *obj)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, "eos_token_id"), *at;
    struct beams_opts *w = &r->o->write;
    if (!v || cJSON_IsNull(v))
        return 0;
    w->n_ends = 0;
    if (cJSON_IsNumber(v) && v->valueint >= 0) {
        w->ends[w->n_ends++] = v->valueint;
        return 0;
    }
    cJSON_ArrayForEach(at, v)
    {
        if (!cJSON_IsNumber(at) || at->valueint < 0 || w->n_ends == BEAMS_MAX_ENDS) {
            w->n_ends = 0;
            break;
        }
        w->ends[w->n_ends++] = at->valueint;
    }
    if (w->n_ends == 0)
        return err_set(r->e, SHOAL_EFORMAT, "%s: eos_token_id must have 1 to %u tokens",
                       r->document, BEAMS_MAX_ENDS);
    return 0;
}

/* A token's number, of which none is negative. */
static int token(const struct opts_reader *r, const cJSON *v, const char *key, int32_t *out)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= INT32_MAX) ||
        v->valuedouble != floor(v->valuedouble))
        return err_set(r->e, SHOAL_EFORMAT, "%s: %s has something that is not a token's number",
                       r->document, key);
    *out = v->valueint;
    return 0;
}

/* forced_bos_token_id, forced_eos_token_id: a number, or a list of one. */
static int read_forced(const struct opts_reader *r, const cJSON *obj, const char *key,
                       struct beams_forced *f)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, key);
    if (v)
        f->on = false;
    if (!v || cJSON_IsNull(v))
        return 0;
    if (cJSON_IsArray(v) && cJSON_GetArraySize(v) != 1)
        return err_set(r->e, SHOAL_EUNSUPPORTED, "%s: %s with %d tokens is not supported: only one",
                       r->document, key, cJSON_GetArraySize(v));
    f->on = true;
    return token(r, cJSON_IsArray(v) ? v->child : v, key, &f->token);
}

static int read_bad(const struct opts_reader *r, const cJSON *obj)
{
    static const char key[] = "bad_words_ids";
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(obj, key), *word, *at;
    struct beams_opts *w = &r->o->write;
    int rc = 0;
    if (!all)
        return 0;
    w->n_bad = 0;
    cJSON_ArrayForEach(word, all)
    {
        const int n = cJSON_IsArray(word) ? cJSON_GetArraySize(word) : 0;
        if (n < 1 || n > (int)BEAMS_MAX_BAD_TOKENS || w->n_bad == BEAMS_MAX_BAD)
            return err_set(r->e, SHOAL_EUNSUPPORTED,
                           "%s: %s must have at most %u lists of 1 to %u tokens", r->document, key,
                           BEAMS_MAX_BAD, BEAMS_MAX_BAD_TOKENS);
        struct beams_bad *b = &w->bad[w->n_bad++];
        b->n = 0;
        cJSON_ArrayForEach(at, word)
        {
            if ((rc = token(r, at, key, &b->tokens[b->n++])) < 0)
                return rc;
        }
    }
    return 0;
}

static int read_prefix(const struct opts_reader *r, const cJSON *obj)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, "prefix");
    if (!cJSON_IsString(v))
        return 0;
    if (strlen(v->valuestring) > MAX_PREFIX_BYTES)
        return err_set(r->e, SHOAL_EFORMAT, "%s: the prefix has more than %u bytes", r->document,
                       MAX_PREFIX_BYTES);
    mem_free(r->o->prefix);
    r->o->prefix = mem_strdup(v->valuestring);
    return r->o->prefix ? 0 : err_set(r->e, SHOAL_ENOMEM, "out of memory for a prefix");
}

static int read_sampling(struct opts_reader *r, const cJSON *obj)
{
    struct shoal_sampling *s = &r->sampling;
    const cJSON *on = cJSON_GetObjectItemCaseSensitive(obj, "do_sample");
    int rc;
    if (cJSON_IsBool(on))
        r->samples = cJSON_IsTrue(on);
    if ((rc = real(r, obj, "temperature", 0.0, 100.0, &s->temperature)) < 0 ||
        (rc = whole(r, obj, "top_k", 0, INT32_MAX, &s->top_k)) < 0 ||
        (rc = real(r, obj, "top_p", 0.0, 1.0, &s->top_p)) < 0 ||
        (rc = real(r, obj, "min_p", 0.0, 1.0, &s->min_p)) < 0)
        return rc;
    if (r->samples && s->temperature < 1e-3f)
        return err_set(r->e, SHOAL_EFORMAT, "%s: temperature must be a number from 0.001 to 100",
                       r->document);
    r->o->write.sampling = r->samples ? *s : (struct shoal_sampling){0};
    return 0;
}

/* One object of settings.  Lengths count the decoder's first token, ours do not. */
static int read_settings(struct opts_reader *r, const cJSON *obj)
{
    struct beams_opts *w = &r->o->write;
    const cJSON *early = cJSON_GetObjectItemCaseSensitive(obj, "early_stopping");
    const cJSON *renormalize = cJSON_GetObjectItemCaseSensitive(obj, "renormalize_logits");
    uint32_t start = (uint32_t)w->start;
    int rc;
    if ((rc = whole(r, obj, "num_beams", 0, BEAMS_MAX, &w->n_beams)) < 0 ||
        (rc = whole(r, obj, "max_length", 1, MAX_TOKENS, &w->max_tokens)) < 0 ||
        (rc = whole(r, obj, "max_new_tokens", 0, MAX_TOKENS, &w->max_tokens)) < 0 ||
        (rc = whole(r, obj, "min_length", 1, MAX_TOKENS, &w->min_tokens)) < 0 ||
        (rc = whole(r, obj, "min_new_tokens", 0, MAX_TOKENS, &w->min_tokens)) < 0 ||
        (rc = whole(r, obj, "no_repeat_ngram_size", 0, MAX_TOKENS, &w->no_repeat_ngram)) < 0 ||
        (rc = whole(r, obj, "decoder_start_token_id", 0, INT32_MAX, &start)) < 0 ||
        (rc = real(r, obj, "length_penalty", -100.0, 100.0, &w->length_penalty)) < 0 ||
        (rc = real(r, obj, "repetition_penalty", 1e-3, 100.0, &w->repeat_penalty)) < 0 ||
        (rc = read_ends(r, obj)) < 0 || (rc = read_bad(r, obj)) < 0 ||
        (rc = read_forced(r, obj, "forced_bos_token_id", &w->first)) < 0 ||
        (rc = read_forced(r, obj, "forced_eos_token_id", &w->last)) < 0 ||
        (rc = read_sampling(r, obj)) < 0)
        return rc;
    w->start = (int32_t)start;
    if (cJSON_IsBool(renormalize))
        w->renormalize = cJSON_IsTrue(renormalize);
    if (cJSON_IsBool(early))
        w->early = cJSON_IsTrue(early) ? BEAMS_EARLY_YES : BEAMS_EARLY_NO;
    else if (cJSON_IsString(early) && strcmp(early->valuestring, "never") == 0)
        w->early = BEAMS_EARLY_NEVER;
    if (w->n_beams == 0 || w->max_tokens == 0)
        return err_set(r->e, SHOAL_EFORMAT, "%s: %u beams, %u tokens", r->document, w->n_beams,
                       w->max_tokens);
    return read_prefix(r, obj);
}

/* A document that is present must be a JSON object. */
static int parse(cJSON **out, struct str text, const struct opts_reader *r)
{
    if (!text.p)
        return 0;
    *out = cJSON_ParseWithLength(text.p, text.n);
    if (cJSON_IsObject(*out))
        return 0;
    return err_set(r->e, SHOAL_EFORMAT, "%s must be a JSON object", r->document);
}

int seq2seq_opts_read(struct seq2seq_opts *o, struct str config_text, struct str generation_text,
                      struct err *e)
{
    cJSON *config = NULL, *generation = NULL;
    /* the library's defaults */
    struct opts_reader r = {
        .o = o, .document = "config.json", .e = e, .sampling = {.temperature = 1.0f, .top_k = 50}};
    *o = (struct seq2seq_opts){.write = {.n_beams = 1,
                                         .max_tokens = DEFAULT_TOKENS,
                                         .length_penalty = 1.0f,
                                         .start = TOKENIZER_NONE}};
    int rc = parse(&config, config_text, &r);
    if (rc == 0 && config)
        rc = read_settings(&r, config);
    r.document = "generation_config.json";
    if (rc == 0)
        rc = parse(&generation, generation_text, &r);
    if (rc == 0 && generation)
        rc = read_settings(&r, generation);
    r.document = "config.json, task_specific_params.summarization";
    const cJSON *tasks = cJSON_GetObjectItemCaseSensitive(config, "task_specific_params");
    const cJSON *task = cJSON_GetObjectItemCaseSensitive(tasks, "summarization");
    if (rc == 0 && cJSON_IsObject(task))
        rc = read_settings(&r, task);
    if (rc == 0 && !o->prefix) {
        /* a model without any configuration is treated as the original T5 */
        o->prefix = mem_strdup(config ? "" : "summarize: ");
        rc = o->prefix ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a prefix");
    }
    cJSON_Delete(config);
    cJSON_Delete(generation);
    if (rc < 0)
        seq2seq_opts_fini(o);
    return rc;
}

int seq2seq_opts_init(struct seq2seq_opts *o, const struct model_file *file, struct err *e)
{
    struct str config = {NULL, 0}, generation = {NULL, 0};
    (void)model_file_get_str(file, "huggingface.config", &config); /* stays NULL if there is none */
    (void)model_file_get_str(file, "huggingface.generation_config", &generation);
    return seq2seq_opts_read(o, config, generation, e);
}

void seq2seq_opts_fini(struct seq2seq_opts *o)
{
    mem_free(o->prefix);
    o->prefix = NULL;
}
