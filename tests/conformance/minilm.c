/* minilm.c - the real all-MiniLM-L6-v2 through the native encoder, against transformers' vectors.
 *   minilm FOLDER DATA     FOLDER: the model, DATA: tests/data/encoders
 * Prints one line per kind of weights; ends with 1 when a bound is missed. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/encoder.h"
#include "model/heads.h"
#include "format/model_open.h"
#include "text/tokenizer/tokenizer.h"
#include "support/ref_file.h"

enum { MAX_SENTENCES = 64, MAX_DIM = 384, MAX_TOKENS = 2048 };

struct sentences {
    char *texts[MAX_SENTENCES];
    struct encoder_seq seqs[MAX_SENTENCES];
    int32_t ids[MAX_TOKENS];
    uint32_t n, n_ids;
};

static int fail(const char *what)
{
    fprintf(stderr, "minilm: %s\n", what);
    return 1;
}

/* Tokenizes the sentences; the ids must be those of the reference. */
static int read_sentences(struct sentences *s, const char *path, const struct model_file *g,
                          const struct ref_file *ref)
{
    static char line[4096];
    struct err e = {0};
    struct tokenizer *t;
    struct tok_ids ids;
    const struct ref_array *want = ref_find(ref, "tokens"), *lengths = ref_find(ref, "lengths");
    FILE *in = fopen(path, "r");
    if (!in || !want || !lengths)
        return fail(path);
    if (tokenizer_create(&t, g, &e) < 0)
        return fail(e.msg);
    while (s->n < MAX_SENTENCES && fgets(line, sizeof(line), in)) {
        line[strcspn(line, "\n")] = '\0';
        tok_ids_init(&ids, MAX_TOKENS);
        if (tokenizer_encode(t, &ids, line, strlen(line), TOKENIZER_ADD_SPECIAL, &e) < 0)
            return fail(e.msg);
        if (s->n >= lengths->cols || ids.n != (size_t)ref_int(lengths, s->n))
            return fail("a sentence has another number of tokens than the reference");
        s->seqs[s->n++] = (struct encoder_seq){.tokens = s->ids + s->n_ids, .n = (uint32_t)ids.n};
        for (size_t i = 0; i < ids.n; i++, s->n_ids++) {
            if (ids.ids[i] != ref_int(want, s->n_ids))
                return fail("a sentence has other tokens than the reference");
            s->ids[s->n_ids] = ids.ids[i];
        }
        tok_ids_fini(&ids);
    }
    fclose(in);
    tokenizer_destroy(t);
    return s->n == lengths->cols ? 0 : fail("too few sentences");
}

static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < MAX_DIM; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static uint32_t nearest(const float *v, uint32_t n, uint32_t i)
{
    uint32_t best = i == 0;
    for (uint32_t j = 0; j < n; j++)
        if (j != i && dot(v + (size_t)i * MAX_DIM, v + (size_t)j * MAX_DIM) >
                          dot(v + (size_t)i * MAX_DIM, v + (size_t)best * MAX_DIM))
            best = j;
    return best;
}

static int check(const char *folder, const struct model_file *g, const struct sentences *s,
                 const float *want, bool int8, double bound)
{
    struct err e = {0};
    struct encoder *d;
    struct heads *h;
    const struct encoder_opts o = {.int8 = int8, .max_tokens = MAX_TOKENS};
    float *got = malloc((size_t)s->n * MAX_DIM * sizeof(float));
    if (encoder_create(&d, g, folder, &o, &e) < 0 || heads_open(&h, g, d, &e) < 0)
        return fail(e.msg);
    encoder_forward(d, s->seqs, s->n);
    double least = 2, sum = 0;
    uint32_t same = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        heads_vector(h, d, i, 0, got + (size_t)i * MAX_DIM);
        double c = dot(got + (size_t)i * MAX_DIM, want + (size_t)i * MAX_DIM);
        least = c < least ? c : least;
        sum += c;
    }
    for (uint32_t i = 0; i < s->n; i++)
        same += nearest(got, s->n, i) == nearest(want, s->n, i);
    printf(
        "%s: %u sentences, cosine at least %.6f, %.6f in the mean; %u nearest neighbours equal\n",
        int8 ? "INT8" : "F16", s->n, least, sum / s->n, same);
    heads_destroy(h);
    encoder_destroy(d);
    free(got);
    return least >= bound && same == s->n ? 0 : fail("that is not near enough");
}

int main(int argc, char **argv)
{
    static struct sentences s;
    struct ref_file ref;
    struct err e = {0};
    struct model_file *g;
    char path[4096];
    if (argc != 3)
        return fail("usage: minilm FOLDER DATA");
    snprintf(path, sizeof(path), "%s/minilm.ref", argv[2]);
    if (ref_open(&ref, path) < 0 || !ref_find(&ref, "vectors"))
        return fail("no reference");
    if (model_open(&g, argv[1], &e) < 0)
        return fail(e.msg);
    const float *want = (const float *)(const void *)ref_find(&ref, "vectors")->data;
    snprintf(path, sizeof(path), "%s/sentences.txt", argv[2]);
    int rc = read_sentences(&s, path, g, &ref);
    if (rc == 0)
        rc = check(argv[1], g, &s, want, false, 0.9999) | check(argv[1], g, &s, want, true, 0.995);
    model_file_close(g);
    ref_close(&ref);
    return rc;
}
