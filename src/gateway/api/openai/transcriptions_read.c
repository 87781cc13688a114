/* transcriptions_read.c - forms and their sounds to requests; see transcriptions.h. */
#include <string.h>

#include "audio/audio_read.h"
#include "audio/windows.h"
#include "base/mem.h"
#include "gateway/api/openai/transcriptions.h"
#include "wire/multipart.h"

#define MAX_FIELD ((size_t)1 << 16)

static bool is(struct str s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static int read_form(struct transcriptions_ask *ask, struct str v, struct fields_error *e)
{
    static const char *const names[] = {[TRANSCRIPTIONS_JSON] = "json",
                                        [TRANSCRIPTIONS_VERBOSE] = "verbose_json",
                                        [TRANSCRIPTIONS_TEXT] = "text",
                                        [TRANSCRIPTIONS_SRT] = "srt",
                                        [TRANSCRIPTIONS_VTT] = "vtt"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is(v, names[i])) {
            ask->form = (enum transcriptions_form)i;
            return 0;
        }
    return fields_fail(e, "response_format", "invalid_value",
                       "response_format must be json, verbose_json, text, srt or vtt");
}

/* One field of the form. */
static int read_field(struct request *r, struct transcriptions_ask *ask, const char *name,
                      struct str v, bool lenient, struct fields_error *e)
{
    if (v.n > MAX_FIELD)
        return fields_fail(e, name, "invalid_value", "%s is longer than %zu bytes", name,
                           MAX_FIELD);
    if (strcmp(name, "model") == 0) {
        ask->model = request_copy_utf8(r, v.p, v.n, NULL);
        return 0;
    }
    if (strcmp(name, "response_format") == 0)
        return read_form(ask, v, e);
    if (strcmp(name, "stream") == 0) {
        if (!is(v, "true") && !is(v, "false"))
            return fields_fail(e, name, "invalid_type", "stream must be true or false");
        ask->stream = is(v, "true");
        return 0;
    }
    if (strcmp(name, "chunking_strategy") == 0) /* sounds are always cut at pauses */
        return is(v, "auto") || lenient ? 0
                                        : fields_fail(e, name, "unsupported_parameter",
                                                      "chunking_strategy can only be auto");
    if (strcmp(name, "language") == 0)
        return v.n == 0 || is(v, "en") || lenient
                   ? 0
                   : fields_fail(e, name, "unsupported_parameter",
                                 "language can only be en: the models here hear English");
    if (strcmp(name, "temperature") == 0)
        return is(v, "0") || is(v, "0.0") || lenient
                   ? 0
                   : fields_fail(e, name, "unsupported_parameter",
                                 "temperature can only be 0: the likeliest words are written");
    if (strcmp(name, "timestamp_granularities[]") == 0 ||
        strcmp(name, "timestamp_granularities") == 0)
        return is(v, "segment") || lenient
                   ? 0
                   : fields_fail(e, name, "unsupported_parameter",
                                 "timestamp_granularities can only be segment");
    if (strcmp(name, "prompt") == 0) { /* phrases that are likely to be said */
        ask->prompt = request_copy_utf8(r, v.p, v.n, NULL);
        return 0;
    }
    return lenient ? 0
                   : fields_fail(e, name, "unknown_parameter", "unknown field '%.60s' of the form",
                                 name);
}

int transcriptions_read(struct request *r, struct transcriptions_ask *ask, const char *type,
                        const char *body, size_t n, bool lenient, struct fields_error *e)
{
    struct multipart_part part;
    struct multipart m;
    struct err why = {0};
    int rc = multipart_open(&m, type, body, n, &why);
    *ask = (struct transcriptions_ask){.form = TRANSCRIPTIONS_JSON};
    while (rc == 0 && (rc = multipart_next(&m, &part, &why)) > 0) {
        const char *name = request_copy_utf8(r, part.name.p, part.name.n, NULL);
        if (strcmp(name, "file") == 0) {
            ask->sound = part.content;
            rc = 0;
        } else if ((rc = read_field(r, ask, name, part.content, lenient, e)) < 0) {
            return rc;
        }
    }
    if (rc < 0)
        return fields_fail(e, "", "invalid_form", "%s", why.msg);
    if (!ask->sound.p)
        return fields_fail(e, "file", "missing_required_parameter",
                           "the form has no file: send the sound in the field 'file'");
    if (ask->stream && ask->form != TRANSCRIPTIONS_JSON)
        return fields_fail(e, "response_format", "invalid_value",
                           "a stream can only have the format json");
    r->model = ask->model && ask->model[0] ? ask->model : NULL;
    r->streams = ask->stream;
    return request_rc(r) < 0 ? fields_fail(e, "", NULL, "out of memory") : 0;
}

/* ---- the sound ---- */

struct hearing {
    struct request *request;
    bool (*charge)(void *ctx, size_t n);
    void *ctx;
    struct request_input inputs[REQUEST_MAX_INPUTS];
    uint32_t n_inputs;
    int16_t sound[2 * WINDOWS_MOST]; /* what no window has yet */
    uint32_t n_sound;
};

static int add_window(struct hearing *h, uint32_t n, struct err *e)
{
    struct request *r = h->request;
    const size_t bytes = n * sizeof(*h->sound);
    if (h->n_inputs == REQUEST_MAX_INPUTS)
        return err_set(e, SHOAL_ELIMIT, "the sound is longer than %u windows: send it in parts",
                       REQUEST_MAX_INPUTS);
    if (!h->charge(h->ctx, bytes))
        return err_set(e, SHOAL_EBUSY,
                       "the sound does not fit into the memory for clients (limits.buffers, "
                       "limits.client_buffers): send it in parts, or try again later");
    int16_t *samples = arena_zalloc_n(&r->arena, n, sizeof(*samples));
    if (!samples)
        return err_set(e, request_rc(r), "out of memory for the sound");
    memcpy(samples, h->sound, bytes);
    h->inputs[h->n_inputs++] = (struct request_input){.samples = samples, .n_samples = n};
    r->input_bytes += bytes;
    h->n_sound -= n;
    memmove(h->sound, h->sound + n, h->n_sound * sizeof(*h->sound));
    return 0;
}

static int read_sound(struct hearing *h, struct audio *a, struct err *e)
{
    bool last = false;
    while (!last) {
        const int64_t got =
            audio_read(a, h->sound + h->n_sound, 2 * (size_t)WINDOWS_MOST - h->n_sound, e);
        if (got < 0)
            return (int)got;
        h->n_sound += (uint32_t)got;
        last = got == 0;
        for (uint32_t n; (n = windows_cut(h->sound, h->n_sound, last)) > 0;) {
            const int rc = add_window(h, n, e);
            if (rc < 0)
                return rc;
        }
    }
    return h->n_inputs > 0 ? 0 : err_set(e, SHOAL_EFORMAT, "there is no sound in the file");
}

int transcriptions_hear(struct request *r, const struct transcriptions_ask *ask,
                        bool (*charge)(void *ctx, size_t n), void *ctx, struct err *e)
{
    struct audio *a = NULL;
    struct hearing *h = mem_zalloc(sizeof(*h));
    int rc = h ? audio_open_memory(&a, ask->sound.p, ask->sound.n, e)
               : err_set(e, SHOAL_ENOMEM, "out of memory for a sound");
    if (rc == 0) {
        h->request = r;
        h->charge = charge;
        h->ctx = ctx;
        rc = read_sound(h, a, e);
    }
    if (rc == 0) {
        struct request_input *list = arena_zalloc_n(&r->arena, h->n_inputs, sizeof(*list));
        if (list)
            memcpy(list, h->inputs, h->n_inputs * sizeof(*list));
        r->kind = REQUEST_INFER;
        r->infer = (struct request_infer){.kind = SHOAL_KIND_TRANSCRIBE,
                                          .inputs = list,
                                          .n_inputs = h->n_inputs,
                                          .prompt = ask->prompt};
        rc = list ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a sound");
    }
    audio_close(a);
    mem_free(h);
    return rc;
}
