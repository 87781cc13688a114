/* fuzz_seq2seq_opts.c - settings of sequence-to-sequence models from hostile documents: the bytes
 * are config.json and, after a NUL, generation_config.json. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/native/seq2seq_opts.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seq2seq_opts o;
    struct err e = {0};
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    struct str config = {(const char *)data, nul ? (size_t)(nul - data) : size};
    struct str generation = {NULL, 0};
    if (nul)
        generation = (struct str){(const char *)nul + 1, size - config.n - 1};
    if (seq2seq_opts_read(&o, config, generation, &e) < 0) {
        if (e.code == 0 || o.prefix)
            abort();
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    const struct beams_opts *w = &o.write;
    if (w->n_beams < 1 || w->n_beams > BEAMS_MAX || w->max_tokens < 1 || w->max_tokens > 65536 ||
        w->n_ends > BEAMS_MAX_ENDS || w->n_bad > BEAMS_MAX_BAD || !isfinite(w->length_penalty) ||
        !o.prefix)
        abort();
    FUZZ_NOTE("%u %u %u %u %g %g %d %d %u ends %g %u %g %g '%s'", w->n_beams, w->max_tokens,
              w->min_tokens, w->no_repeat_ngram, (double)w->repeat_penalty,
              (double)w->length_penalty, (int)w->early, w->start, w->n_ends,
              (double)w->sampling.temperature, w->sampling.top_k, (double)w->sampling.top_p,
              (double)w->sampling.min_p, o.prefix);
    for (uint32_t i = 0; i < w->n_ends; i++)
        FUZZ_NOTE(" %d", w->ends[i]);
    FUZZ_NOTE(" forced %d %d %d %d%s bad", w->first.on, w->first.token, w->last.on, w->last.token,
              w->renormalize ? " renormalized" : "");
    for (uint32_t i = 0; i < w->n_bad; i++) {
        if (w->bad[i].n < 1 || w->bad[i].n > BEAMS_MAX_BAD_TOKENS)
            abort();
        for (uint32_t k = 0; k < w->bad[i].n; k++) {
            if (w->bad[i].tokens[k] < 0)
                abort();
            FUZZ_NOTE("%c%d", k ? '-' : ' ', w->bad[i].tokens[k]);
        }
    }
    seq2seq_opts_fini(&o);
    return 0;
}
