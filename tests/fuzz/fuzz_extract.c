/* fuzz_extract.c - the summarizer's file, and any text for a summarizer with a valid file. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "score/extract.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] =
    "{\"model_type\":\"shoal_summary\",\"encoder\":\"e\",\"features\":[\"centroid\",\"start\","
    "\"position\",\"length\",\"short\",\"digit\",\"frequency\",\"title\",\"backward\",\"first\","
    "\"question\",\"content\"],\"weights\":[1,1,1,1,1,1,1,1,1,1,1,1],\"bias\":0,\"redundancy\":0.5,"
    "\"dialogue\":{\"weights\":[1,1,1,1,1,1,1,1,1,1,1,1],\"bias\":0,\"redundancy\":0},"
    "\"sentences\":3,\"max_sentences\":20,\"abbreviations\":[\"mr\"],\"stop_words\":[\"about\"],"
    "\"backward_words\":[\"it\"]}";

static void summarize(const struct extract *x, const char *text, size_t n)
{
    struct extract_doc *d;
    struct err e;
    float vectors[20 * 4], mean[4];
    uint32_t chosen[20];
    if (extract_doc_create(&d, x, text, n, text, n < 20 ? n : 20, &e) < 0)
        return;
    if (d->n <= 20) {
        for (uint32_t i = 0; i < 80; i++)
            vectors[i] = (float)(i % 7) / 7.0f;
        extract_choose(x, d, vectors, 4, 0, mean, chosen);
        char *summary = malloc(20 * 50 + n + 1); /* a name in front of each */
        const struct extract_sentence *before = NULL;
        size_t len = 0;
        for (uint32_t i = 0; summary && i < extract_count(x, d, 0); i++) {
            const struct extract_sentence *s = &d->sentences[chosen[i]];
            if (chosen[i] >= d->n || s->end > n || s->start > s->end || s->label > s->n)
                __builtin_trap();
            len = extract_append(summary, len, before, s);
            FUZZ_NOTE(" %u", chosen[i]);
            before = s;
        }
        FUZZ_NOTE_BYTES(summary, len);
        free(summary);
    }
    extract_doc_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct extract *x;
    struct err e;
    const int rc = extract_parse(&x, (const char *)data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc == 0) {
        summarize(x, "A text. It is short.", 20);
        extract_close(x);
    }
    if (extract_parse(&x, config, sizeof(config) - 1, &e) == 0) {
        summarize(x, (const char *)data, size);
        extract_close(x);
    }
    return 0;
}
