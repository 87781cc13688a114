/* job.c - see job.h. */
#include "engine/job.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"

struct job *job_create(const struct shoal_infer_opts *o)
{
    struct job *j = mem_zalloc(sizeof(*j));
    if (!j)
        return NULL;
    j->o = *o;
    j->result.size = sizeof(j->result);
    j->result.kind = o->kind;
    const bool score = o->kind == SHOAL_KIND_SCORE, sound = o->kind == SHOAL_KIND_TRANSCRIBE;
    const bool text = !score && !sound && !o->image;
    j->text = text ? mem_strndup(o->text, o->text_bytes) : NULL;
    j->document = o->document ? mem_strndup(o->document, o->document_bytes) : NULL;
    j->labels = o->labels ? mem_strdup(o->labels) : NULL;
    j->prompt = o->prompt ? mem_strdup(o->prompt) : NULL;
    j->stream = o->stream ? mem_strdup(o->stream) : NULL;
    j->values = score ? mem_alloc(o->n_values * sizeof(*j->values)) : NULL;
    j->samples = sound ? mem_alloc(o->n_samples * sizeof(*j->samples)) : NULL;
    if ((text && !j->text) || (sound && !j->samples) || (o->document && !j->document) ||
        (o->labels && !j->labels) || (o->prompt && !j->prompt) || (o->stream && !j->stream) ||
        (score && !j->values)) {
        job_destroy(j);
        return NULL;
    }
    if (score)
        memcpy(j->values, o->values, o->n_values * sizeof(*j->values));
    if (sound)
        memcpy(j->samples, o->samples, o->n_samples * sizeof(*j->samples));
    j->o.text = j->text;
    j->o.document = j->document;
    j->o.labels = j->labels;
    j->o.prompt = j->prompt;
    j->o.stream = j->stream;
    j->o.values = j->values;
    j->o.samples = j->samples;
    return j;
}

void job_fail(struct job *j, int code, const char *message)
{
    j->result.code = code;
    j->result.message = message;
}

void job_destroy(struct job *j)
{
    if (!j)
        return;
    if (j->drop)
        j->drop(j);
    mem_free(j->text);
    mem_free(j->document);
    mem_free(j->labels);
    mem_free(j->prompt);
    mem_free(j->stream);
    mem_free(j->values);
    mem_free(j->samples);
    mem_free(j);
}

int job_too_long(uint32_t max_tokens, struct err *e)
{
    return err_set(e, SHOAL_ELIMIT,
                   "the text is longer than the %u tokens that the model can read: shorten it, or "
                   "allow truncation",
                   max_tokens);
}
