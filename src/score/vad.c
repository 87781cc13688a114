/* vad.c - see vad.h. */
#include "score/vad.h"

#include <stdbool.h>

#include "base/mem.h"
#include "score/recurrent.h"

#define BEGINS 0.5f                     /* speech begins at this probability */
#define GOES_ON 0.35f                   /* and goes on above this one */
#define MIN_PAUSE (VAD_RATE * 3 / 10)   /* samples; shorter ones are within speech */
#define MIN_SPEECH (VAD_RATE * 9 / 100) /* samples; shorter ones are clicks */
#define MARGIN (VAD_RATE / 10)          /* samples around speech that belong to it */

struct vad {
    struct recurrent *net;
    uint32_t hop;
};

int vad_create(struct vad **out, const void *config, size_t n_config, const void *weights,
               size_t n_weights, const char *kernels, struct err *e)
{
    const struct recurrent_opts o = {.kernels = kernels};
    struct vad *v = mem_zalloc(sizeof(*v));
    *out = NULL;
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a detector of speech");
    int rc = recurrent_parse(&v->net, config, n_config, weights, n_weights, &o, e);
    if (rc == 0) {
        const struct recurrent_info info = recurrent_info(v->net);
        v->hop = info.hop;
        if (info.channels != 1 || info.n_outputs != 1 || !info.stateful)
            rc = err_set(e, SHOAL_EFORMAT,
                         "a detector of speech has one channel, one output and a state; this one "
                         "has %u, %u and %s",
                         info.channels, info.n_outputs, info.stateful ? "a state" : "none");
    }
    if (rc < 0) {
        vad_destroy(v);
        return rc;
    }
    *out = v;
    return 0;
}

void vad_destroy(struct vad *v)
{
    if (!v)
        return;
    recurrent_close(v->net);
    mem_free(v);
}

uint32_t vad_find(const float *p, uint32_t n_p, uint32_t hop, uint32_t n_samples,
                  struct vad_span *out, uint32_t most)
{
    uint32_t n = 0, start = 0, quiet = 0; /* quiet: where the current pause began */
    bool speaks = false, pauses = false;
    for (uint32_t i = 0; i <= n_p; i++) {
        const uint32_t at = i * hop;
        if (i < n_p && !speaks && p[i] >= BEGINS) {
            speaks = true;
            pauses = false;
            start = at;
        }
        if (!speaks)
            continue;
        const bool over = i == n_p;
        if (!over && p[i] >= GOES_ON) {
            pauses = false;
            continue;
        }
        if (!pauses)
            quiet = at;
        pauses = true;
        if (!over && at + hop - quiet < MIN_PAUSE)
            continue;
        speaks = false;
        if (quiet - start < MIN_SPEECH || n == most)
            continue;
        const struct vad_span s = {start > MARGIN ? start - MARGIN : 0,
                                   quiet + MARGIN < n_samples ? quiet + MARGIN : n_samples};
        if (n > 0 && s.start <= out[n - 1].end)
            out[n - 1].end = s.end;
        else
            out[n++] = s;
    }
    return n;
}

int vad_listen(const struct vad *v, const int16_t *x, uint32_t n, struct vad_span **out,
               uint32_t *n_out, struct err *e)
{
    const uint32_t hop = v->hop, n_p = (n + hop - 1) / hop;
    float *state = mem_aligned(recurrent_state_floats(v->net) * sizeof(*state));
    void *scratch = mem_aligned(recurrent_scratch_bytes(v->net));
    float *block = mem_aligned(hop * sizeof(*block)), *p = mem_zalloc_n(n_p + 1u, sizeof(*p));
    struct vad_span *spans = mem_zalloc_n(n_p + 1u, sizeof(*spans));
    const bool ok = state && scratch && block && p && spans;
    *out = NULL;
    *n_out = 0;
    if (ok) {
        recurrent_reset(v->net, state);
        for (uint32_t i = 0; i < n_p; i++) {
            for (uint32_t k = 0; k < hop; k++) /* the end of the last block is silent */
                block[k] = i * hop + k < n ? (float)x[i * hop + k] / 32768.0f : 0.0f;
            recurrent_step(v->net, state, block, &p[i], scratch);
        }
        *n_out = vad_find(p, n_p, hop, n, spans, n_p);
        *out = spans;
    }
    mem_free(state);
    mem_free(scratch);
    mem_free(block);
    mem_free(p);
    if (!ok)
        mem_free(spans);
    return ok ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for finding speech");
}
