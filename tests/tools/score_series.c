/* score_series.c - runs a scorer over rows for tests.
 *
 * usage: score_series MODEL ROWS.f32 [int8]     rows as little-endian floats; a line per score
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "score/scorer.h"

static double *read_rows(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    double *rows = NULL;
    size_t cap = 0;
    float v;
    *n = 0;
    while (f && fread(&v, sizeof(v), 1, f) == 1) {
        if (*n == cap) {
            cap = cap ? cap * 2 : 65536;
            rows = mem_realloc(rows, cap * sizeof(*rows));
            if (!rows)
                return NULL;
        }
        rows[(*n)++] = v;
    }
    if (f)
        fclose(f);
    return rows;
}

int main(int argc, char **argv)
{
    struct scorer *s = NULL;
    struct err e = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: score_series MODEL ROWS.f32 [int8]\n");
        return 2;
    }
    struct scorer_opts o = {.int8 = argc > 3 && strcmp(argv[3], "int8") == 0};
    if (scorer_open(&s, argv[1], &o, &e) < 0) {
        fprintf(stderr, "score_series: %s\n", e.msg);
        return 1;
    }
    struct scorer_info info = scorer_info(s);
    size_t n;
    double *rows = read_rows(argv[2], &n);
    uint32_t n_columns = info.n_inputs ? info.n_inputs : 1;
    size_t n_rows = n / n_columns, n_scores = scorer_n_scores(s, n_rows);
    double *out = mem_zalloc_n(n_scores + 1, info.n_outputs * sizeof(*out));
    void *scratch = mem_aligned(scorer_scratch_bytes(s));
    void *state = mem_aligned(scorer_state_bytes(s, n_columns) + 1);
    if (!rows || !out || !scratch || !state) {
        fprintf(stderr, "score_series: cannot read %s\n", argv[2]);
        return 1;
    }
    scorer_run(s, rows, n_rows, n_columns, out, state, scratch);
    for (size_t i = 0; i < n_scores; i++)
        for (uint32_t k = 0; k < info.n_outputs; k++)
            printf("%.9g%c", out[i * info.n_outputs + k], k + 1 == info.n_outputs ? '\n' : ' ');
    mem_free(rows);
    mem_free(out);
    mem_free(scratch);
    mem_free(state);
    scorer_close(s);
    return 0;
}
