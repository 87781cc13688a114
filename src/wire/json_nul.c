/* json_nul.c - see json_nul.h. */
#include "wire/json_nul.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

static const char escape[] = "\\u0000", hidden[] = JSON_NUL;
#define ESCAPE_BYTES (sizeof(escape) - 1)
#define HIDDEN_BYTES (sizeof(hidden) - 1)

/* Copies [p, p + n) with each `from` replaced.  pairs: a backslash and the byte after it belong
 * together, so that \\u0000 is no NUL. */
static size_t replace(char *out, const char *p, size_t n, const char *from, size_t from_bytes,
                      const char *to, size_t to_bytes, bool pairs)
{
    char *at = out;
    for (const char *end = p + n; p < end;) {
        const size_t left = (size_t)(end - p);
        if (left >= from_bytes && memcmp(p, from, from_bytes) == 0) {
            memcpy(at, to, to_bytes);
            at += to_bytes;
            p += from_bytes;
            continue;
        }
        if (pairs && *p == '\\' && left > 1)
            *at++ = *p++;
        *at++ = *p++;
    }
    return (size_t)(at - out);
}

cJSON *json_nul_parse(const char *p, size_t n)
{
    if (!memmem(p, n, escape, ESCAPE_BYTES))
        return cJSON_ParseWithLength(p, n);
    char *copy = mem_alloc(n);
    cJSON *v = NULL;
    if (copy)
        v = cJSON_ParseWithLength(
            copy, replace(copy, p, n, escape, ESCAPE_BYTES, hidden, HIDDEN_BYTES, true));
    mem_free(copy);
    return v;
}

char *json_nul_print(const cJSON *v)
{
    char *text = cJSON_PrintUnformatted(v);
    size_t n_nuls = 0;
    for (const char *at = text; at && (at = strstr(at, hidden)) != NULL; at += HIDDEN_BYTES)
        n_nuls++;
    if (n_nuls == 0)
        return text;
    const size_t n = strlen(text);
    char *out = cJSON_malloc(n + n_nuls * (ESCAPE_BYTES - HIDDEN_BYTES) + 1);
    if (out)
        out[replace(out, text, n, hidden, HIDDEN_BYTES, escape, ESCAPE_BYTES, false)] = '\0';
    cJSON_free(text);
    return out;
}

char *json_nul_text(struct arena *a, const char *text, size_t n, size_t *n_out)
{
    char *out = arena_zalloc(a, n + 1);
    *n_out = out ? replace(out, text, n, hidden, HIDDEN_BYTES, "", 1, false) : 0;
    return out;
}
