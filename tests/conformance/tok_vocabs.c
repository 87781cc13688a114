/* tok_vocabs.c - encodes the .inp of every vocabulary in a folder and compares with its .out.
 *
 * usage: tok_vocabs DIR: DIR/ggml-vocab-NAME.gguf, .gguf.inp (texts between separator lines) and
 * .gguf.out (one line of ids for each).  Every text is also decoded again.  Exit 1 when a case
 * differs, when a file does not load that should, or when fewer pairs are there than expected. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/gguf.h"
#include "text/tokenizer/tokenizer.h"

#define SEPARATOR "\n__ggml_vocab_test__\n"
#define MIN_PAIRS 15 /* the number in the pinned package */

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *p = calloc(*n + 1, 1);
    if (p && fread(p, 1, *n, f) != *n) {
        free(p);
        p = NULL;
    }
    fclose(f);
    return p;
}

struct tally {
    int cases, good, round_trips;
};

static void show(const char *what, const int32_t *ids, size_t n)
{
    printf("    %s:", what);
    for (size_t i = 0; i < n; i++)
        printf(" %d", ids[i]);
    printf("\n");
}

static void run_case(struct tally *tally, const struct tokenizer *t, const char *text, size_t n,
                     char *line)
{
    struct tok_ids got, want;
    struct err e;
    struct buf back;
    char *rest = line, *end;
    tok_ids_init(&got, 1 << 20);
    tok_ids_init(&want, 1 << 20);
    buf_init(&back, 1 << 20);
    for (;;) {
        long id = strtol(rest, &end, 10);
        if (end == rest || tok_ids_push(&want, (int32_t)id) < 0)
            break;
        rest = end;
    }
    int rc = tokenizer_encode(t, &got, text, n, 0, &e);
    tally->cases++;
    if (rc == 0 && got.n == want.n &&
        (got.n == 0 || memcmp(got.ids, want.ids, got.n * sizeof(*got.ids)) == 0)) {
        tally->good++;
    } else {
        printf("  differs: \"%.*s\"\n", (int)n, text);
        show("want", want.ids, want.n);
        show("got ", got.ids, got.n);
    }
    tokenizer_decode(t, &back, got.ids, got.n, 0);
    tally->round_trips += back.len == n && memcmp(buf_str(&back), text, n) == 0;
    buf_fini(&back);
    tok_ids_fini(&got);
    tok_ids_fini(&want);
}

/* 0 good, 1 bad. */
static int run_pair(const struct tokenizer *t, const char *path)
{
    char name[2048];
    size_t n_in, n_out;
    struct tally tally = {0};
    snprintf(name, sizeof(name), "%s.inp", path);
    char *in = read_file(name, &n_in);
    snprintf(name, sizeof(name), "%s.out", path);
    char *out = read_file(name, &n_out);
    if (!in || !out) {
        printf("  cannot read the pair of %s\n", path);
        free(in);
        free(out);
        return 1;
    }
    char *line = out;
    int n_lines = 0;
    for (size_t i = 0; i < n_out; i++)
        n_lines += out[i] == '\n';
    for (char *p = in, *end = in + n_in; p < end && line < out + n_out;) {
        char *stop = memmem(p, (size_t)(end - p), SEPARATOR, strlen(SEPARATOR));
        char *newline = strchr(line, '\n');
        if (newline)
            *newline = '\0';
        run_case(&tally, t, p, (size_t)((stop ? stop : end) - p), line);
        line = newline ? newline + 1 : out + n_out;
        p = stop ? stop + strlen(SEPARATOR) : end;
    }
    free(in);
    free(out);
    bool wpm = tokenizer_info(t)->kind == TOKENIZER_KIND_WPM; /* it normalizes the text */
    printf("  %d of %d cases match, %d of %d round trips%s\n", tally.good, tally.cases,
           tally.round_trips, tally.cases, wpm ? " (text is normalized)" : "");
    if (tally.cases != n_lines)
        printf("  the .out has %d lines\n", n_lines);
    return tally.cases == 0 || tally.cases != n_lines || tally.good != tally.cases ||
           (!wpm && tally.round_trips != tally.cases);
}

/* 0 good, 1 bad; *pairs counts. */
static int run_vocab(const char *path, int *pairs)
{
    struct model_file *g = NULL;
    struct tokenizer *t = NULL;
    struct err e = {0};
    char inp[2048];
    int bad = 0;
    snprintf(inp, sizeof(inp), "%s.inp", path);
    FILE *f = fopen(inp, "rb");
    int rc = gguf_open(&g, path, &e);
    if (rc == 0)
        rc = tokenizer_create(&t, g, &e);
    model_file_close(g); /* the tokenizer must not need it */
    if (rc < 0) {
        printf("  not loaded: %s\n", e.msg);
        bad = f || rc != SHOAL_EUNSUPPORTED;
    } else {
        const struct tokenizer_info *in = tokenizer_info(t);
        printf("  %s, pre-tokenizer \"%s\", %u tokens\n", tokenizer_kind_name(in->kind), in->pre,
               in->n_vocab);
        if (f) {
            bad = run_pair(t, path);
            (*pairs)++;
        } else {
            printf("  no pair\n");
        }
    }
    if (f)
        fclose(f);
    tokenizer_destroy(t);
    return bad;
}

static int is_vocab(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return strncmp(d->d_name, "ggml-vocab-", 11) == 0 && strcmp(d->d_name + n - 5, ".gguf") == 0;
}

int main(int argc, char **argv)
{
    struct dirent **names;
    int bad = 0, pairs = 0;
    int n = argc == 2 ? scandir(argv[1], &names, is_vocab, alphasort) : -1;
    if (n < 0) {
        fprintf(stderr, "usage: %s DIR (with ggml-vocab-*.gguf)\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", argv[1], names[i]->d_name);
        printf("%s\n", names[i]->d_name);
        bad += run_vocab(path, &pairs);
        free(names[i]);
    }
    free(names);
    printf("%d pairs, %d bad files\n", pairs, bad);
    if (pairs < MIN_PAIRS)
        printf("expected at least %d pairs\n", MIN_PAIRS);
    return bad > 0 || pairs < MIN_PAIRS;
}
