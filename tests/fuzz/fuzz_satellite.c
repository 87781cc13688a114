/* fuzz_satellite.c - events of Wyoming that a satellite gets, with sound of its microphone between
 * them; the first byte says whether it serves. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_note.h"
#include "voice/satellite.h"
#include "wire/wyoming.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    size_t n_sent, n_samples;
    bool plays;
    char last[64];
};

static void on_send(void *ctx, const char *type, const char *data, size_t n, const void *payload,
                    size_t n_payload)
{
    struct seen *s = ctx;
    (void)payload;
    s->n_sent++;
    if ((n > 0 && (data[0] != '{' || data[n - 1] != '}')) || n_payload > 4096)
        abort();
    snprintf(s->last, sizeof(s->last), "%s", type);
}

static void on_begin(void *ctx, uint32_t rate)
{
    struct seen *s = ctx;
    (void)rate;
    if (s->plays)
        abort(); /* the last sound has not ended */
    s->plays = true;
}

static void on_sound(void *ctx, const int16_t *samples, size_t n)
{
    struct seen *s = ctx;
    if (!s->plays)
        abort();
    s->n_samples += n + (size_t)(samples[n - 1] == 12345);
}

static void on_end(void *ctx)
{
    struct seen *s = ctx;
    if (!s->plays)
        abort();
    s->plays = false;
}

static void on_note(void *ctx, const char *what, const char *text)
{
    (void)ctx;
    FUZZ_NOTE("%s %s", what, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct satellite_ops ops = {on_send, on_begin, on_sound, on_end, on_note};
    static const int16_t sound[320];
    struct satellite_opts o = {.name = "s", .room = "kitchen", .serves = size > 0 && data[0] & 1};
    struct seen seen = {.n_sent = 0};
    struct satellite s;
    satellite_init(&s, &o, &ops, &seen);
    satellite_hear(&s, sound, 320);
    for (size_t at = 1; at < size;) {
        struct wyoming_event ev;
        struct err e = {0};
        size_t want;
        const int64_t took = wyoming_next(&ev, (const char *)data + at, size - at, &want, &e);
        if (took <= 0)
            break;
        satellite_event(&s, &ev);
        wyoming_free(&ev);
        satellite_hear(&s, sound, 320);
        at += (size_t)took;
    }
    satellite_end(&s);
    FUZZ_NOTE("state %d, %zu sent, last %s, %zu samples", s.state, seen.n_sent, seen.last,
              seen.n_samples);
    satellite_fini(&s);
    return 0;
}
