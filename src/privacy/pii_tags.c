/* pii_tags.c - see pii_tags.h. */
#include "privacy/pii_tags.h"

#include <stdint.h>
#include <string.h>

#define PIECE_BYTES 400u

size_t pii_tags_piece_end(const char *text, size_t n, size_t at)
{
    if (n - at <= PIECE_BYTES)
        return n;
    size_t end = at + PIECE_BYTES;
    for (size_t i = end; i > at + PIECE_BYTES / 2; i--)
        if (text[i] == ' ' || text[i] == '\n')
            return i;
    while (end > at + 1 && ((uint8_t)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

static bool kind_of(const char *label, enum pii_kind *kind)
{
    static const struct {
        const char *label;
        enum pii_kind kind;
    } labels[] = {{"person", PII_PERSON},  {"PER", PII_PERSON}, {"place", PII_PLACE},
                  {"address", PII_PLACE},  {"city", PII_PLACE}, {"country", PII_PLACE},
                  {"location", PII_PLACE}, {"LOC", PII_PLACE}};
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (strcmp(labels[i].label, label) == 0) {
            *kind = labels[i].kind;
            return true;
        }
    return false;
}

bool pii_tags_hit(struct pii_hit *out, const char *label, const char *text, size_t start,
                  size_t end, unsigned kinds)
{
    *out = (struct pii_hit){.form = "", .start = start, .end = start};
    if (!kind_of(label, &out->kind) || !(kinds & PII_BIT(out->kind)))
        return false;
    while (out->end < end && (uint8_t)text[out->end] >= 0x20 && text[out->end] != '"' &&
           text[out->end] != '\\')
        out->end++;
    return out->end > start;
}
