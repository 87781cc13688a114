/* speech.c - see speech.h: the handler, and sounds to answers. */
#include "gateway/api/openai/speech.h"

#include <openssl/evp.h>

#include "base/mem.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "wire/json_out.h"

#define BYTES_OF_LETTER 3000u /* of sound for a letter of text, about */

struct speech {
    struct answer_sink answer; /* first */
    enum audio_form form;
    struct audio_out *out; /* from the first sound on */
    uint32_t n_tokens;
    uint64_t n_samples;
};

static struct speech *of(struct answer_sink *a)
{
    return (struct speech *)(void *)a; /* its first member */
}

/* A sound into the bytes of the answer's form; false: the call's buffer has the reason. */
static bool encode(struct speech *s, const struct shoal_result *r)
{
    struct buf *out = &s->answer.call->out;
    struct err e = {0};
    int rc = s->out ? 0 : audio_out_create(&s->out, s->form, r->sample_rate, 0, &e);
    if (rc == 0)
        rc = audio_out_put(s->out, r->samples, r->n_samples, &e);
    if (rc < 0)
        out->rc = rc;
    s->n_samples += r->n_samples;
    s->n_tokens += r->n_tokens;
    return rc == 0;
}

static void finish(struct speech *s)
{
    struct err e = {0};
    if (s->out && audio_out_end(s->out, &e) < 0)
        s->answer.call->out.rc = e.code;
}

/* ---- the bytes of the sound ---- */

static void put_sound(struct answer_sink *a, const struct sink_result *e)
{
    struct speech *s = of(a);
    if (e->result->n_samples == 0 || !encode(s, e->result))
        return;
    answer_begin(a);
    audio_out_take(s->out, &a->call->out);
}

static void end_sound(struct answer_sink *a, const struct sink_done *d)
{
    struct speech *s = of(a);
    (void)d;
    finish(s);
    answer_begin(a);
    if (s->out)
        audio_out_take(s->out, &a->call->out);
}

/* A sound that has begun can only end: its form has no place for a reason. */
static void no_more_sound(struct answer_sink *a, const struct failure *f)
{
    (void)a;
    (void)f;
}

/* ---- events ---- */

static void put_bytes(struct speech *s)
{
    struct buf bytes;
    buf_init(&bytes, SIZE_MAX / 4);
    audio_out_take(s->out, &bytes);
    unsigned char *text = mem_alloc((bytes.len + 2) / 3 * 4 + 1);
    if (!text || bytes.rc < 0 || bytes.len > INT32_MAX) {
        s->answer.call->out.rc = SHOAL_ENOMEM;
    } else if (bytes.len > 0) {
        const int n = EVP_EncodeBlock(text, (const unsigned char *)buf_str(&bytes), (int)bytes.len);
        struct json_out j = answer_event(&s->answer, "speech.audio.delta");
        json_out_member_strn(&j, "audio", (const char *)text, (size_t)n);
        answer_event_end(&s->answer, &j);
    }
    mem_free(text);
    buf_fini(&bytes);
}

static void put_delta(struct answer_sink *a, const struct sink_result *e)
{
    struct speech *s = of(a);
    if (e->result->n_samples > 0 && encode(s, e->result))
        put_bytes(s);
}

static void put_usage(struct speech *s, struct json_out *j)
{
    json_out_member_object(j, "usage");
    json_out_member_num(j, "input_tokens", s->n_tokens);
    json_out_member_num(j, "output_tokens", 0);
    json_out_member_num(j, "total_tokens", s->n_tokens);
    json_out_object_end(j);
}

static void end_events(struct answer_sink *a, const struct sink_done *d)
{
    struct speech *s = of(a);
    (void)d;
    finish(s);
    if (s->out)
        put_bytes(s);
    struct json_out j = answer_event(a, "speech.audio.done");
    put_usage(s, &j);
    answer_event_end(a, &j);
}

static void closed(struct answer_sink *a)
{
    audio_out_destroy(of(a)->out);
}

/* ---- the handler ---- */

static const struct answer_dialect *dialect_of(const struct speech_ask *ask)
{
    static const struct answer_frame frames[] = {[AUDIO_FORM_WAV] = {.type = "audio/wav"},
                                                 [AUDIO_FORM_PCM] = {.type = "audio/pcm"},
                                                 [AUDIO_FORM_FLAC] = {.type = "audio/flac"},
                                                 [AUDIO_FORM_OPUS] = {.type = "audio/ogg"},
                                                 [AUDIO_FORM_MP3] = {.type = "audio/mpeg"}};
    static const struct answer_dialect sounds[] = {
#define ROW(form)                                                                                  \
    [form] = {.frame = &frames[form],                                                              \
              .result = put_sound,                                                                 \
              .end = end_sound,                                                                    \
              .failure = no_more_sound,                                                            \
              .closed = closed}
        ROW(AUDIO_FORM_WAV), ROW(AUDIO_FORM_PCM), ROW(AUDIO_FORM_FLAC), ROW(AUDIO_FORM_OPUS),
        ROW(AUDIO_FORM_MP3)
#undef ROW
    };
    static const struct answer_dialect events = {
        .frame = &answer_events, .result = put_delta, .end = end_events, .closed = closed};
    return ask->sse ? &events : &sounds[ask->form];
}

bool speech_charge(struct call *c, const struct request *r)
{
    if (call_count_input(c, r->input_bytes * BYTES_OF_LETTER))
        return true;
    call_refuse(c, GW_REFUSED_BUSY, 503, 1,
                "the sound would not fit into the memory for clients (limits.buffers, "
                "limits.client_buffers): send a shorter text, or try again later");
    return false;
}

void speech_create(struct call *c)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct speech_ask ask;
    struct request *r = call_request(c);
    if (!r)
        return;
    if (speech_read(r, &ask, c->json, c->lenient, &e) < 0) {
        flow_give_request(&c->gl->flow, r);
        call_fail_fields(c, &e);
        return;
    }
    if (!speech_charge(c, r)) {
        flow_give_request(&c->gl->flow, r);
        return;
    }
    struct speech *s = answer_create(c, r, sizeof(*s), dialect_of(&ask), true);
    if (!s)
        return;
    s->form = ask.form;
    stages_run(&c->gl->flow, r, c->sink);
}
