/* text_out.c - see text_out.h. */
#include "engine/decode/text_out.h"

#include <string.h>

#include "base/mem.h"

#define PENDING_MAX (1u << 20)

int text_out_init(struct text_out *o, const struct tokenizer *t, int32_t prev, unsigned flags,
                  const char *const *stops, uint32_t n_stops, struct err *e)
{
    *o = (struct text_out){0};
    buf_init(&o->pending, PENDING_MAX);
    if (n_stops > TEXT_OUT_MAX_STOPS)
        return err_set(e, SHOAL_ELIMIT, "there are %u stop strings, at most %u are allowed",
                       n_stops, TEXT_OUT_MAX_STOPS);
    tokenizer_stream_init(&o->stream, t, prev, flags);
    o->stops = n_stops > 0 ? mem_zalloc_n(n_stops, sizeof(*o->stops)) : NULL;
    if (n_stops > 0 && !o->stops)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the stop strings");
    for (uint32_t i = 0; i < n_stops; i++) {
        size_t n = strlen(stops[i]);
        if (n == 0 || n > TEXT_OUT_MAX_STOP_BYTES)
            return err_set(e, SHOAL_EINVAL, "a stop string has %zu bytes, expected 1 to %u", n,
                           TEXT_OUT_MAX_STOP_BYTES);
        o->stops[i] = (struct text_out_stop){mem_strndup(stops[i], n), n};
        if (!o->stops[i].text)
            return err_set(e, SHOAL_ENOMEM, "out of memory for the stop strings");
        o->n_stops++;
    }
    /* room for two of the longest pieces and a stop string that is held back */
    size_t room = 2 * (size_t)tokenizer_info(t)->max_piece_bytes + 2 * TEXT_OUT_MAX_STOP_BYTES + 64;
    if (!buf_room(&o->pending, room))
        return err_set(e, o->pending.rc, "cannot reserve the output buffer");
    return 0;
}

void text_out_fini(struct text_out *o)
{
    buf_fini(&o->pending);
    for (uint32_t i = 0; i < o->n_stops; i++)
        mem_free(o->stops[i].text);
    mem_free(o->stops);
    *o = (struct text_out){0};
}

/* Bytes at the end of the pending text that begin some stop string. */
static size_t held_back(const struct text_out *o)
{
    size_t most = 0;
    for (uint32_t i = 0; i < o->n_stops; i++) {
        size_t n = o->stops[i].bytes - 1;
        n = n < o->pending.len ? n : o->pending.len;
        for (; n > most; n--)
            if (memcmp(o->pending.data + o->pending.len - n, o->stops[i].text, n) == 0)
                most = n;
    }
    return most;
}

bool text_out_push(struct text_out *o, int32_t token, size_t *show)
{
    tokenizer_stream_push(&o->stream, &o->pending, token);
    const char *text = buf_str(&o->pending);
    const char *first = NULL;
    for (uint32_t i = 0; i < o->n_stops; i++) {
        const char *at = memmem(text, o->pending.len, o->stops[i].text, o->stops[i].bytes);
        if (at && (!first || at < first)) {
            first = at;
            o->stopped_by = i;
        }
    }
    if (first) {
        *show = (size_t)(first - text);
        return true;
    }
    *show = o->pending.len - held_back(o);
    return false;
}

size_t text_out_flush(struct text_out *o)
{
    tokenizer_stream_flush(&o->stream, &o->pending);
    return o->pending.len;
}

void text_out_shown(struct text_out *o, size_t n)
{
    if (n == 0)
        return;
    memmove(o->pending.data, o->pending.data + n, o->pending.len - n);
    o->pending.len -= n;
    o->pending.data[o->pending.len] = '\0';
}
