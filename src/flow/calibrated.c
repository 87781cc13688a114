/* calibrated.c - see calibrated.h. */
#include "flow/calibrated.h"

#include <math.h>
#include <string.h>

#define SUM_ERROR 0.01 /* more: the labels do not exclude each other, and have no temperature */

const struct shoal_result *calibrated_result(struct arena *a, const struct shoal_result *r,
                                             const struct confidence_calibration *c)
{
    if (c->temperature <= 0 || r->kind != SHOAL_KIND_CLASSIFY || r->code < 0 || r->n_labels == 0)
        return r;
    struct shoal_result *out = arena_zalloc(a, sizeof(*out));
    struct shoal_label *labels = arena_zalloc_n(a, r->n_labels, sizeof(*labels));
    float *p = arena_zalloc_n(a, r->n_labels, sizeof(*p));
    double sum = 0;
    if (!out || !labels || !p)
        return r;
    for (uint32_t i = 0; i < r->n_labels; i++) {
        p[i] = r->labels[i].score;
        sum += (double)p[i];
    }
    if (fabs(sum - 1) > SUM_ERROR)
        return r;
    confidence_scale(p, r->n_labels, c->temperature);
    for (uint32_t i = 0; i < r->n_labels; i++)
        labels[i] = (struct shoal_label){r->labels[i].name, p[i]};
    *out = *r;
    out->labels = labels;
    out->confidence = confidence_of_answer(p[0], strcmp(r->label, r->labels[0].name) == 0);
    return out;
}
