/* prom_in.c - see prom_in.h. */
#include "wire/prom_in.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 40u

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
}

/* The end of labels that begin at p, behind the brace; NULL: there is none. */
static const char *labels_end(const char *p, const char *end)
{
    bool quoted = false;
    for (; p < end; p++) {
        if (quoted && *p == '\\')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (*p == '}' && !quoted)
            return p;
    }
    return NULL;
}

static bool read_line(const char *p, const char *end, struct prom_sample *out)
{
    char number[MAX_NUMBER + 1], *stop;
    *out = (struct prom_sample){.name = p};
    while (p < end && is_name(*p))
        p++;
    out->n_name = (size_t)(p - out->name);
    out->labels = p;
    if (p < end && *p == '{') {
        const char *close = labels_end(p + 1, end);
        if (!close)
            return false;
        out->labels = p + 1;
        out->n_labels = (size_t)(close - out->labels);
        p = close + 1;
    }
    if (out->n_name == 0 || p == end || *p != ' ')
        return false;
    size_t n = 0;
    for (p++; p < end && *p != ' ' && *p != '\r' && n < MAX_NUMBER; p++)
        number[n++] = *p;
    number[n] = '\0';
    out->value = strtod(number, &stop);
    return n > 0 && *stop == '\0';
}

bool prom_in_next(const char **p, const char *end, struct prom_sample *out)
{
    while (*p < end) {
        const char *line = *p, *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        *p = stop < end ? stop + 1 : end;
        if (read_line(line, stop, out))
            return true;
    }
    return false;
}

bool prom_in_is(const struct prom_sample *s, const char *name)
{
    return strlen(name) == s->n_name && memcmp(s->name, name, s->n_name) == 0;
}

bool prom_in_label(const struct prom_sample *s, const char *key, char *out, size_t cap)
{
    const char *p = s->labels, *end = p + s->n_labels;
    const size_t n_key = strlen(key);
    while (p < end) {
        const char *name = p, *equals = memchr(p, '=', (size_t)(end - p));
        if (!equals || end - equals < 2 || equals[1] != '"')
            return false;
        const bool wanted = (size_t)(equals - name) == n_key && memcmp(name, key, n_key) == 0;
        size_t n = 0;
        for (p = equals + 2; p < end && *p != '"'; p++) {
            if (*p == '\\' && p + 1 < end)
                p++;
            if (wanted && n + 1 < cap)
                out[n++] = *p;
        }
        if (wanted) {
            out[n] = '\0';
            return true;
        }
        p++; /* the quote */
        while (p < end && (*p == ',' || *p == ' '))
            p++;
    }
    return false;
}
