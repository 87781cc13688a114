/* agree.c - see agree.h. */
#include "ensemble/agree.h"

#include <stdbool.h>
#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Punctuation that may stand around an answer; not signs that mean something, such as '-' or '%'.
 */
static bool is_edge(char c)
{
    return is_blank(c) || (c != '\0' && strchr(".,;:!?\"'`*()[]", c) != NULL);
}

static void trim(const char **text, size_t *n)
{
    while (*n > 0 && is_edge(**text)) {
        (*text)++;
        (*n)--;
    }
    while (*n > 0 && is_edge((*text)[*n - 1]))
        (*n)--;
}

/* The last line that is not empty. */
static void last_line(const char **text, size_t *n)
{
    size_t from = *n;
    trim(text, n);
    from = *n;
    while (from > 0 && (*text)[from - 1] != '\n')
        from--;
    *text += from;
    *n -= from;
}

/* Copies the last number: "1,234.50" is "1234.5".  0: none. */
static size_t last_number(char *out, const char *text, size_t n)
{
    size_t end = n, from, k = 0;
    bool decimals = false;
    while (end > 0 && !ascii_is_digit(text[end - 1]))
        end--;
    if (end == 0)
        return 0;
    from = end;
    while (from > 0 &&
           (ascii_is_digit(text[from - 1]) || ((text[from - 1] == '.' || text[from - 1] == ',') &&
                                               from > 1 && ascii_is_digit(text[from - 2]))))
        from--;
    if (from > 0 && text[from - 1] == '-' && (from == 1 || !ascii_is_digit(text[from - 2])))
        out[k++] = '-';
    for (size_t i = from; i < end; i++) {
        if (text[i] == ',')
            continue;
        decimals |= text[i] == '.';
        out[k++] = text[i];
    }
    while (decimals && out[k - 1] == '0')
        k--;
    if (decimals && out[k - 1] == '.')
        k--;
    return k;
}

char *agree_normal(const char *text, size_t n, enum ensemble_part part)
{
    char *out = mem_alloc(n + 1);
    size_t k = 0;
    if (!out)
        return NULL;
    if (part == ENSEMBLE_NUMBER && (k = last_number(out, text, n)) > 0) {
        out[k] = '\0';
        return out;
    }
    if (part == ENSEMBLE_LAST_LINE)
        last_line(&text, &n);
    trim(&text, &n);
    for (size_t i = 0; i < n; i++) {
        char c = is_blank(text[i]) ? ' ' : text[i];
        if (c == ' ' && k > 0 && out[k - 1] == ' ')
            continue;
        out[k++] = ascii_lower(c);
    }
    out[k] = '\0';
    return out;
}

struct agree_choice agree_choose(const struct agree_answer *answers, uint32_t n)
{
    struct agree_choice best = {0, 0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_for = 0;
        for (uint32_t k = 0; k < n; k++)
            n_for += strcmp(answers[i].normal, answers[k].normal) == 0;
        if (n_for > best.n_for ||
            (n_for == best.n_for && answers[i].score > answers[best.best].score))
            best = (struct agree_choice){i, n_for};
    }
    return best;
}
