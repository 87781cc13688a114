/* quant_fit.c - scales of one block by weighted least squares.
 *
 * For fixed codes the best scale (and minimum) is a closed formula; for a fixed scale the best
 * codes are the nearest ones.  Alternating the two goes downhill to a local minimum only, so each
 * fit starts from a row of scales around the one that just covers the largest value. */
#include "kernels/quants/quant_fit.h"

#include <math.h>
#include <stddef.h>

/* Four partial sums, so that the order of additions is fixed and still fits vector registers. */
struct lanes {
    float v[4];
};

static float lanes_sum(const struct lanes *s)
{
    return (s->v[0] + s->v[1]) + (s->v[2] + s->v[3]);
}

/* xc: sum of w x c, cc: sum of w c c, of the nearest codes at this inverse scale. */
static void scale_sums(float *xc, float *cc, const float *x, const float *w, int n, float inverse,
                       float lo, float hi)
{
    struct lanes sxc = {{0}}, scc = {{0}};
    for (int i = 0; i < n; i += 4)
        for (int k = 0; k < 4; k++) {
            float c = quant_fit_round(x[i + k] * inverse, lo, hi), wc = w[i + k] * c;
            sxc.v[k] += wc * x[i + k];
            scc.v[k] += wc * c;
        }
    *xc = lanes_sum(&sxc);
    *cc = lanes_sum(&scc);
}

/* The value of largest magnitude. */
static float extreme(const float *x, int n)
{
    float best = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(best))
            best = x[i];
    return best;
}

float quant_fit_scale(const float *x, const float *w, int n, float lo, float hi)
{
    /* How much of the code range the extreme value is stretched over: around 1 finely, and some
     * far beyond for weights that make the extreme value matter little. */
    static const float stretch[] = {0.82f, 0.86f, 0.90f, 0.94f, 0.97f, 1.00f, 1.03f, 1.06f,
                                    1.09f, 1.13f, 1.17f, 1.22f, 1.30f, 1.45f, 1.8f,  2.6f};
    float top = extreme(x, n), best = 0, scale = 0;
    if (!(fabsf(top) > 0))
        return 0;

    for (int side = 0; side < 2; side++)
        for (size_t s = 0; s < sizeof(stretch) / sizeof(stretch[0]); s++) {
            float xc, cc, inverse = (side ? hi : lo) * stretch[s] / top;
            scale_sums(&xc, &cc, x, w, n, inverse, lo, hi);
            /* The error is sum of w x x less xc^2 / cc. */
            if (cc > 0 && xc * xc > best * cc) {
                best = xc * xc / cc;
                scale = xc / cc;
            }
        }
    for (int round = 0; round < 4 && scale != 0; round++) {
        float xc, cc;
        scale_sums(&xc, &cc, x, w, n, 1 / scale, lo, hi);
        if (!(cc > 0 && xc * xc > best * cc))
            break;
        best = xc * xc / cc;
        scale = xc / cc;
    }
    return scale;
}

/* Sums over a block of what a line x ~ scale * c + min needs. */
struct line_sums {
    float w, x, xx;  /* of w, w x, w x x: the same for all codes */
    float c, cc, xc; /* of w c, w c c, w x c */
};

static void line_sums_codes(struct line_sums *s, const float *x, const float *w, int n, float min,
                            float inverse, float hi)
{
    struct lanes sc = {{0}}, scc = {{0}}, sxc = {{0}};
    for (int i = 0; i < n; i += 4)
        for (int k = 0; k < 4; k++) {
            float c = quant_fit_round((x[i + k] - min) * inverse, 0, hi), wc = w[i + k] * c;
            sc.v[k] += wc;
            scc.v[k] += wc * c;
            sxc.v[k] += wc * x[i + k];
        }
    s->c = lanes_sum(&sc);
    s->cc = lanes_sum(&scc);
    s->xc = lanes_sum(&sxc);
}

/* The best line for these codes, and its error.  false when there is none with scale > 0. */
static bool line_solve(const struct line_sums *s, bool any_min, float *scale, float *min,
                       float *error)
{
    float det = s->w * s->cc - s->c * s->c;
    bool sloped = det > 1e-5f * s->w * s->cc; /* not all codes alike */
    *min = 0;
    if (sloped) {
        *scale = (s->w * s->xc - s->x * s->c) / det;
        *min = (s->cc * s->x - s->c * s->xc) / det;
    }
    if (!any_min && s->cc > 0 && (!sloped || *min > 0)) {
        *min = 0;
        *scale = s->xc / s->cc;
    } else if (!sloped) {
        return false;
    }
    *error = s->xx - 2 * (*scale * s->xc + *min * s->x) + *scale * *scale * s->cc +
             2 * *scale * *min * s->c + *min * *min * s->w;
    return *scale > 0;
}

float quant_fit_scale_min(float *min, const float *x, const float *w, int n, float hi, bool any_min)
{
    struct line_sums s = {0};
    float low = INFINITY, high = -INFINITY, best = INFINITY, scale = 0;

    for (int i = 0; i < n; i++) {
        s.w += w[i];
        s.x += w[i] * x[i];
        s.xx += w[i] * x[i] * x[i];
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    if (!any_min)
        low = fminf(low, 0);
    *min = any_min || s.x < 0 ? s.x / s.w : 0; /* all values equal: use the mean, no scale */
    if (!(high > low))
        return 0;

    for (float codes = hi - 1; codes < hi + 3; codes += 0.5f)
        for (int clip = 0; clip < 3; clip++) {
            /* Codes beyond the range are clipped above, on both sides alike, or below. */
            float try_scale = (high - low) / codes, error;
            float try_min = low + try_scale * (codes - hi) * 0.5f * (float)clip;
            for (int round = 0; round < 3; round++) {
                line_sums_codes(&s, x, w, n, try_min, 1 / try_scale, hi);
                if (!line_solve(&s, any_min, &try_scale, &try_min, &error) || !(error < best))
                    break;
                best = error;
                scale = try_scale;
                *min = try_min;
            }
        }
    return scale;
}

int quant_fit_level(float v, const float mids[15])
{
    int code = v > mids[7] ? 8 : 0;
    code += v > mids[code + 3] ? 4 : 0;
    code += v > mids[code + 1] ? 2 : 0;
    return code + (v > mids[code]);
}

static void level_sums(float *xc, float *cc, const float *x, const float *w, int n, float inverse,
                       const float levels[16], const float mids[15])
{
    *xc = *cc = 0;
    for (int i = 0; i < n; i++) {
        float c = levels[quant_fit_level(x[i] * inverse, mids)], wc = w[i] * c;
        *xc += wc * x[i];
        *cc += wc * c;
    }
}

float quant_fit_levels(const float *x, const float *w, int n, const float levels[16],
                       const float mids[15])
{
    float top = extreme(x, n), best = 0, scale = 0;
    if (!(fabsf(top) > 0))
        return 0;

    for (int side = 0; side < 16; side += 15)
        for (float stretch = 0.85f; stretch < 1.4f; stretch += 0.05f) {
            float try_scale = top / (levels[side] * stretch);
            for (int round = 0; round < 3; round++) {
                float xc, cc;
                level_sums(&xc, &cc, x, w, n, 1 / try_scale, levels, mids);
                if (!(cc > 0 && xc * xc > best * cc))
                    break;
                best = xc * xc / cc;
                scale = try_scale = xc / cc;
            }
        }
    return scale;
}

float quant_fit_error(const float *x, const float *w, int n, float scale, float min, float lo,
                      float hi)
{
    struct lanes sum = {{0}};
    float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < n; i += 4)
        for (int k = 0; k < 4; k++) {
            float c = quant_fit_round((x[i + k] - min) * inverse, lo, hi);
            float e = x[i + k] - (scale * c + min);
            sum.v[k] += w[i + k] * e * e;
        }
    return lanes_sum(&sum);
}
