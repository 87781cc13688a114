/* check_trees.c - compares a tree model with predictions that LightGBM made.
 *
 * usage: check_trees MODEL ROWS EXPECTED [raw|leaves]
 *
 * ROWS: a row a line, values between blanks, tabs or commas, a label in front where there is one
 * value too many; or libsvm's INDEX:VALUE.  EXPECTED: all numbers, row by row.  Prints the largest
 * error; exits with 1 when it is above 1e-12 (relative to values above 1). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "score/trees.h"

enum { MAX_LINE = 1 << 20 };

/* The next row of in; 0 at the end, -1 if it is not a row of the model. */
static int read_row(FILE *in, char *line, double *row, uint32_t n_features, double *values)
{
    bool pairs = false;
    uint32_t n = 0;
    if (!fgets(line, MAX_LINE, in))
        return 0;
    for (uint32_t i = 0; i < n_features; i++)
        row[i] = 0;
    for (char *p = line, *end; *(p += strspn(p, " \t,\r\n")); p = end) {
        double v = strtod(p, &end);
        if (end == p || n > n_features)
            return -1;
        if (*end == ':') {
            uint32_t at = (uint32_t)v;
            v = strtod(end + 1, &end);
            pairs = true;
            if (at < n_features)
                row[at] = v;
        } else {
            values[n++] = v;
        }
    }
    if (pairs)
        return 1;
    if (n < n_features)
        return n == 0 ? 0 : -1;
    memcpy(row, values + (n - n_features), n_features * sizeof(*row));
    return 1;
}

int main(int argc, char **argv)
{
    struct trees *t = NULL;
    struct err e = {0};
    if (argc < 4) {
        fprintf(stderr, "usage: check_trees MODEL ROWS EXPECTED [raw|leaves]\n");
        return 2;
    }
    if (trees_open(&t, argv[1], &e) < 0) {
        fprintf(stderr, "check_trees: %s\n", e.msg);
        return 1;
    }
    struct trees_info info = trees_info(t);
    const char *mode = argc > 4 ? argv[4] : "";
    bool leaves = strcmp(mode, "leaves") == 0;
    uint32_t n_out = leaves ? info.n_trees : info.n_outputs;
    FILE *in = fopen(argv[2], "r"), *expected = fopen(argv[3], "r");
    char *line = malloc(MAX_LINE);
    double *row = calloc(info.n_features, sizeof(*row));
    double *values = calloc((size_t)info.n_features + 1, sizeof(*values));
    double *out = calloc(n_out, sizeof(*out)), *scratch = calloc(trees_scratch(t), sizeof(double));
    uint32_t *leaf = calloc(info.n_trees, sizeof(*leaf));
    double worst = 0, want;
    int rc = in && expected && line && row && values && out && scratch && leaf ? 1 : -1;
    size_t n_rows = 0;

    while (rc > 0 && (rc = read_row(in, line, row, info.n_features, values)) > 0) {
        n_rows++;
        if (leaves)
            trees_leaves(t, row, leaf, scratch);
        else
            trees_predict(t, row, 1, strcmp(mode, "raw") == 0, out, scratch);
        for (uint32_t k = 0; k < n_out && rc > 0; k++) {
            if (fscanf(expected, "%lf", &want) != 1)
                rc = -1;
            double err = fabs((leaves ? leaf[k] : out[k]) - want) / fmax(1, fabs(want));
            worst = err > worst || isnan(err) ? err : worst;
        }
    }
    printf("%s%s%s: %s, %u trees, %u features, %zu rows x %u: worst error %.3g\n", argv[1],
           *mode ? " " : "", mode, info.objective, info.n_trees, info.n_features, n_rows, n_out,
           worst);
    bool ok = rc == 0 && n_rows > 0 && fscanf(expected, "%lf", &want) != 1 && worst <= 1e-12;
    if (rc < 0)
        fprintf(stderr, "check_trees: rows or predictions do not fit the model\n");
    trees_close(t);
    return ok ? 0 : 1;
}
