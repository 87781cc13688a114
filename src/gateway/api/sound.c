/* sound.c - see sound.h. */
#include "gateway/api/sound.h"

#include <string.h>

#include "audio/audio_read.h"
#include "audio/windows.h"
#include "base/mem.h"
#include "flow/pool.h"
#include "gateway/call/call.h"

/* ---- a sound to inputs ---- */

struct windows_of {
    struct request *request;
    bool (*charge)(void *ctx, size_t n);
    void *ctx;
    struct request_input inputs[REQUEST_MAX_INPUTS];
    uint32_t n_inputs;
    int16_t sound[2 * WINDOWS_MOST]; /* what no window has yet */
    uint32_t n_sound;
};

static int add_window(struct windows_of *h, uint32_t n, struct err *e)
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

static int read_sound(struct windows_of *h, struct audio *a, struct err *e)
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

static int fill(struct request *r, const struct windows_of *h, const char *phrases, struct err *e)
{
    struct request_input *list = arena_zalloc_n(&r->arena, h->n_inputs, sizeof(*list));
    if (!list)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a sound");
    memcpy(list, h->inputs, h->n_inputs * sizeof(*list));
    r->kind = REQUEST_INFER;
    r->infer = (struct request_infer){
        .kind = SHOAL_KIND_TRANSCRIBE, .inputs = list, .n_inputs = h->n_inputs, .prompt = phrases};
    return 0;
}

/* charge: counts bytes before they are used; false: too many. */
static int to_inputs(struct request *r, struct str sound, const char *phrases,
                     bool (*charge)(void *ctx, size_t n), void *ctx, struct err *e)
{
    struct audio *a = NULL;
    struct windows_of *h = mem_zalloc(sizeof(*h));
    int rc = h ? audio_open_memory(&a, sound.p, sound.n, e)
               : err_set(e, SHOAL_ENOMEM, "out of memory for a sound");
    if (rc == 0) {
        h->request = r;
        h->charge = charge;
        h->ctx = ctx;
        rc = read_sound(h, a, e);
    }
    if (rc == 0)
        rc = fill(r, h, phrases, e);
    audio_close(a);
    mem_free(h);
    return rc;
}

/* ---- on the pool ---- */

struct decoding {
    struct pool_task pool_task;
    struct executor_task finished;
    struct call *call;       /* held */
    struct request *request; /* owned */
    char *body;              /* that the sound points into; owned */
    struct sound_ask ask;
    int rc;
    struct err error;
};

static bool charge_call(void *ctx, size_t n)
{
    return call_count_input(ctx, n);
}

static void on_pool(struct pool_task *p)
{
    struct decoding *d = LOOP_OF(p, struct decoding, pool_task);
    d->rc = to_inputs(d->request, d->ask.sound, d->ask.phrases, charge_call, d->call, &d->error);
    mem_free(d->body);
    d->body = NULL;
    executor_post(d->call->gl->flow.executor, &d->finished);
}

static void decoding_free(struct decoding *d)
{
    struct call *c = d->call;
    if (d->request)
        flow_give_request(&c->gl->flow, d->request);
    mem_free(d->body);
    c->gl->flow.n_jobs--;
    mem_free(d);
    call_release(c);
}

static void on_finished(struct executor_task *task)
{
    struct decoding *d = LOOP_OF(task, struct decoding, finished);
    struct call *c = d->call;
    struct request *r = d->request;
    if (c->req && d->rc == SHOAL_EFORMAT) {
        call_fail(c, 400, NULL, "file", "invalid_file", "%s", d->error.msg);
    } else if (c->req && d->rc == SHOAL_ELIMIT) {
        call_fail(c, 413, NULL, "file", "file_too_large", "%s", d->error.msg);
    } else if (c->req && d->rc < 0) {
        call_fail_code(c, d->rc, d->error.msg);
    } else if (c->req) {
        d->request = NULL;
        d->ask.then(c, r, d->ask.ctx);
    }
    decoding_free(d);
}

void sound_decode(struct call *c, struct request *r, char *body, size_t n,
                  const struct sound_ask *ask)
{
    struct decoding *d = mem_zalloc(sizeof(*d));
    if (!d) {
        mem_free(body);
        flow_give_request(&c->gl->flow, r);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *d = (struct decoding){.pool_task.fn = on_pool,
                           .finished.fn = on_finished,
                           .call = c,
                           .request = r,
                           .body = body,
                           .ask = *ask};
    call_hold(c);
    c->gl->flow.n_jobs++;
    if (!call_count_input(c, n)) {
        call_refuse(c, GW_REFUSED_BUSY, 503, 1,
                    "the sound does not fit into the memory for clients (limits.buffers, "
                    "limits.client_buffers): try again later");
        decoding_free(d);
    } else if (pool_submit(c->gl->gw->pool, &d->pool_task) < 0) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too many sounds are waiting to be decoded");
        decoding_free(d);
    }
}
