/* transcript.c - see transcript.h. */
#include "audio/transcript.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "shoal/shoal_infer.h"
#include "wire/json_out.h"

#define MAX_BYTES ((size_t)64 << 20)

struct part {          /* one window or part of it, or a word */
    double start, end; /* seconds */
    size_t text_at, text_bytes;
    float confidence; /* mean probability of a token; 0: nothing was said */
};

void transcript_init(struct transcript *t)
{
    buf_init(&t->text, MAX_BYTES);
    buf_init(&t->parts, MAX_BYTES);
    buf_init(&t->words, MAX_BYTES);
    t->seconds = 0;
    t->language[0] = '\0';
}

void transcript_fini(struct transcript *t)
{
    buf_fini(&t->text);
    buf_fini(&t->parts);
    buf_fini(&t->words);
}

void transcript_clear(struct transcript *t)
{
    buf_clear(&t->text);
    buf_clear(&t->parts);
    buf_clear(&t->words);
    t->seconds = 0;
    t->language[0] = '\0';
}

void transcript_add(struct transcript *t, double start, double end, const double *speech,
                    uint32_t n_speech, const char *text, size_t n, float confidence)
{
    t->seconds = end;
    if (n_speech >= 2) {
        end = start + speech[n_speech - 1];
        start += speech[0];
    }
    for (; n > 0 && text[0] == ' '; n--)
        text++;
    for (; n > 0 && text[n - 1] == ' '; n--)
        ;
    if (n == 0)
        return;
    if (t->text.len > 0)
        buf_putc(&t->text, ' ');
    const struct part p = {start, end, t->text.len, n, confidence};
    buf_put(&t->text, text, n);
    buf_put(&t->parts, &p, sizeof(p));
}

static bool is_word(const struct shoal_span *s)
{
    return s->label && strcmp(s->label, "word") == 0;
}

/* The words of a part whose text is at `at` in the transcript and begins at `from` in the result.
 */
static void add_words(struct transcript *t, double start, const struct shoal_result *r,
                      uint32_t from, uint32_t to, size_t at)
{
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct shoal_span *s = &r->spans[i];
        const double *time = r->values + 2 * (size_t)i;
        if (!is_word(s) || s->start < from || s->end > to || s->start >= s->end)
            continue;
        const struct part p = {start + time[0], start + time[1], at + s->start - from,
                               s->end - s->start, r->confidence};
        buf_put(&t->words, &p, sizeof(p));
    }
}

void transcript_add_result(struct transcript *t, double start, double end,
                           const struct shoal_result *r)
{
    const bool parts = r->n_spans > 0 && r->n_values == 2 * (uint64_t)r->n_spans;
    if (!t->language[0] && r->text_bytes > 0 && r->label)
        snprintf(t->language, sizeof(t->language), "%s", r->label);
    if (!parts)
        transcript_add(t, start, end, r->values, r->n_values, r->text, r->text_bytes,
                       r->confidence);
    for (uint32_t i = 0; parts && i < r->n_spans; i++) {
        const struct shoal_span *s = &r->spans[i];
        uint32_t from = s->start;
        if (is_word(s) || s->start > s->end || s->end > r->text_bytes) /* of another node, too */
            continue;
        while (from < s->end && r->text[from] == ' ')
            from++;
        const size_t at = t->text.len + (t->text.len > 0);
        transcript_add(t, start, end, r->values + 2 * (size_t)i, 2, r->text + from, s->end - from,
                       r->confidence);
        add_words(t, start, r, from, s->end, at);
    }
}

static uint32_t n_of(const struct buf *parts)
{
    return (uint32_t)(parts->len / sizeof(struct part));
}

static const struct part *part_at(const struct buf *parts, uint32_t i)
{
    return (const struct part *)(const void *)buf_str(parts) + i;
}

uint32_t transcript_n(const struct transcript *t)
{
    return n_of(&t->parts);
}

/* 00:00:01,500: SubRip has a comma, WebVTT a point. */
static void put_time(struct buf *out, double seconds, char point)
{
    const uint64_t ms = (uint64_t)llround(seconds * 1000);
    buf_printf(out, "%02llu:%02llu:%02llu%c%03llu", (unsigned long long)(ms / 3600000),
               (unsigned long long)(ms / 60000 % 60), (unsigned long long)(ms / 1000 % 60), point,
               (unsigned long long)(ms % 1000));
}

void transcript_put(const struct transcript *t, struct buf *out, enum transcript_form form)
{
    const char *text = buf_str(&t->text), point = form == TRANSCRIPT_SRT ? ',' : '.';
    const struct buf *captions = t->words.len > 0 ? &t->words : &t->parts;
    if (form == TRANSCRIPT_TEXT) {
        buf_put(out, text, t->text.len);
        buf_putc(out, '\n');
        return;
    }
    if (form == TRANSCRIPT_VTT)
        buf_puts(out, "WEBVTT\n\n");
    for (uint32_t i = 0; i < n_of(captions); i++) {
        const struct part *p = part_at(captions, i);
        if (form == TRANSCRIPT_SRT)
            buf_printf(out, "%u\n", i + 1);
        put_time(out, p->start, point);
        buf_puts(out, " --> ");
        put_time(out, p->end, point);
        buf_putc(out, '\n');
        buf_put(out, text + p->text_at, p->text_bytes);
        buf_puts(out, "\n\n");
    }
}

static void put_words(const struct transcript *t, struct json_out *j)
{
    const char *text = buf_str(&t->text);
    json_out_member_array(j, "words");
    for (uint32_t i = 0; i < n_of(&t->words); i++) {
        const struct part *p = part_at(&t->words, i);
        json_out_object(j);
        json_out_member_strn(j, "word", text + p->text_at, p->text_bytes);
        json_out_member_num(j, "start", round(p->start * 1000) / 1000);
        json_out_member_num(j, "end", round(p->end * 1000) / 1000);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

void transcript_json(const struct transcript *t, struct json_out *j)
{
    const char *text = buf_str(&t->text);
    json_out_member_num(j, "duration", t->seconds);
    json_out_member_strn(j, "text", text, t->text.len);
    json_out_member_array(j, "segments");
    for (uint32_t i = 0; i < transcript_n(t); i++) {
        const struct part *p = part_at(&t->parts, i);
        json_out_object(j);
        json_out_member_uint(j, "id", i);
        json_out_member_num(j, "start", p->start);
        json_out_member_num(j, "end", p->end);
        json_out_member_strn(j, "text", text + p->text_at, p->text_bytes);
        json_out_member_num(j, "avg_logprob", log((double)p->confidence));
        json_out_object_end(j);
    }
    json_out_array_end(j);
    if (t->words.len > 0)
        put_words(t, j);
}
