/* hearing.c - see hearing.h: a sink that gathers the results of the windows. */
#include "voice/hearing.h"

#include <string.h>

#include "audio/audio_read.h"
#include "flow/stages.h"

struct hearing {
    struct sink sink;      /* first */
    struct hearing **self; /* the caller's, until done */
    hearing_fn done;       /* NULL: cancelled, or called */
    void *ctx;
    const struct request_input *inputs;
    struct transcript parts;
    double at, sure; /* seconds heard; confidence times bytes of text */
    uint32_t speech_from, speech_to, pause;
    bool speaks;
    struct failure failure;
    bool failed;
};

static struct hearing *of(struct sink *s)
{
    return (struct hearing *)(void *)s; /* its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static uint32_t samples_at(double seconds)
{
    return (uint32_t)(seconds * AUDIO_RATE + 0.5);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct hearing *h = of(s);
    const struct shoal_result *r = e->result;
    const uint32_t n = h->inputs[e->index].n_samples;
    const double end = h->at + (double)n / AUDIO_RATE;
    const bool speaks = r->n_values > 1 || r->text_bytes > 0;
    if (speaks) {
        const double from = r->n_values > 1 ? r->values[0] : 0;
        const double to = r->n_values > 1 ? r->values[r->n_values - 1] : (double)n / AUDIO_RATE;
        for (uint32_t i = 2; h->pause == 0 && i + 1 < r->n_values; i += 2)
            if (r->values[i] - r->values[i - 1] >= HEARING_PAUSE)
                h->pause = samples_at(h->at + (r->values[i] + r->values[i - 1]) / 2);
        if (!h->speaks)
            h->speech_from = samples_at(h->at + from);
        h->speech_to = samples_at(h->at + to);
        h->speaks = true;
    }
    transcript_add_result(&h->parts, h->at, end, r);
    h->sure += (double)r->confidence * (double)r->text_bytes;
    h->at = end;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct hearing *h = of(s);
    h->failure = *f;
    h->failed = true;
}

static void on_closed(struct sink *s)
{
    struct hearing *h = of(s);
    hearing_fn done = h->done;
    if (!h->failed && (h->parts.text.rc < 0 || h->parts.parts.rc < 0)) {
        failure_of(&h->failure, SHOAL_ENOMEM, "out of memory for a transcript");
        h->failed = true;
    }
    const struct hearing_words w = {
        .failure = h->failed ? &h->failure : NULL,
        .text = buf_str(&h->parts.text),
        .text_bytes = h->parts.text.len,
        .confidence = h->parts.text.len ? (float)(h->sure / (double)h->parts.text.len) : 0,
        .speech_from = h->speech_from,
        .speech_to = h->speech_to,
        .pause = h->pause,
        .parts = &h->parts};
    if (done && h->self)
        *h->self = NULL;
    h->done = NULL;
    if (done)
        done(h->ctx, &w);
    transcript_fini(&h->parts);
}

static const struct sink_ops ops = {
    .start = on_start, .result = on_result, .fail = on_fail, .closed = on_closed};

int hearing_window(struct request *r, const int16_t *samples, uint32_t n, const char *phrases,
                   const char *draft)
{
    struct request_input *in = arena_zalloc(&r->arena, sizeof(*in));
    int16_t *copy = arena_zalloc_n(&r->arena, (size_t)n + 1, sizeof(*copy));
    if (!in || !copy)
        return SHOAL_ENOMEM;
    memcpy(copy, samples, n * sizeof(*copy));
    *in = (struct request_input){.samples = copy, .n_samples = n};
    r->kind = REQUEST_INFER;
    r->input_bytes = n * sizeof(*copy);
    r->infer = (struct request_infer){
        .kind = SHOAL_KIND_TRANSCRIBE,
        .inputs = in,
        .n_inputs = 1,
        .labels = r->infer.labels,
        .title = draft && draft[0] ? request_copy(r, draft, strlen(draft)) : NULL,
        .prompt = phrases ? request_copy(r, phrases, strlen(phrases)) : NULL};
    return request_rc(r);
}

void hearing_start(struct hearing **out, struct flow_owner *o, struct request *r, hearing_fn done,
                   void *ctx)
{
    struct hearing *h = arena_zalloc(&r->arena, sizeof(*h));
    *out = NULL;
    if (!h) {
        struct failure f;
        failure_of(&f, SHOAL_ENOMEM, "out of memory for a sound");
        flow_give_request(o, r);
        done(ctx, &(struct hearing_words){.failure = &f, .text = ""});
        return;
    }
    h->sink.ops = &ops;
    h->self = out;
    h->done = done;
    h->ctx = ctx;
    h->inputs = r->infer.inputs;
    transcript_init(&h->parts);
    *out = h;
    stages_run(o, r, &h->sink);
}

void hearing_cancel(struct hearing *h)
{
    h->done = NULL;
    h->self = NULL;
    flow_cancel(&h->sink);
}
