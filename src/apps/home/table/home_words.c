/* home_words.c - see home_words.h. */
#include "apps/home/table/home_words.h"

#include <string.h>
#include <utf8proc.h>

#define SPACE " \t\n\v\f\r"
#define APOSTROPHE "\xe2\x80\x99" /* U+2019 */

struct home_words home_words_split(struct arena *a, const char *text)
{
    struct home_words out = {0};
    uint32_t n = 0;
    for (const char *p = text + strspn(text, SPACE); *p; p += strspn(p, SPACE)) {
        p += strcspn(p, SPACE);
        n++;
    }
    out.w = arena_zalloc_n(a, (size_t)n + 1, sizeof(*out.w));
    if (!out.w)
        return out;
    for (const char *p = text + strspn(text, SPACE); *p; p += strspn(p, SPACE)) {
        size_t len = strcspn(p, SPACE);
        out.w[out.n++] = arena_printf(a, "%.*s", (int)len, p);
        p += len;
    }
    return out;
}

const char *home_words_join(struct arena *a, const struct home_words *w, uint32_t from, uint32_t to)
{
    size_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n += strlen(w->w[i]) + 1;
    char *s = arena_bytes(a, n), *p = s;
    if (!s)
        return "";
    for (uint32_t i = from; i < to; i++) {
        if (i > from)
            *p++ = ' ';
        size_t len = strlen(w->w[i]);
        memcpy(p, w->w[i], len);
        p += len;
    }
    *p = '\0';
    return s;
}

const char *home_words_lower(struct arena *a, const char *text)
{
    size_t n = strlen(text), at = 0, len = 0;
    /* A lower-case letter may be longer than its capital: at most three bytes for two. */
    char *s = arena_bytes(a, n * 2 + 5);
    if (!s)
        return "";
    while (at < n) {
        utf8proc_int32_t c;
        utf8proc_ssize_t used =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), &c);
        if (used <= 0) { /* not UTF-8 */
            s[len++] = text[at++];
            continue;
        }
        len += (size_t)utf8proc_encode_char(utf8proc_tolower(c), (utf8proc_uint8_t *)s + len);
        at += (size_t)used;
    }
    s[len] = '\0';
    return s;
}

const char *home_words_trim_end(struct arena *a, const char *text, const char *set)
{
    size_t n = strlen(text);
    while (n > 0 && strchr(set, text[n - 1]))
        n--;
    return arena_printf(a, "%.*s", (int)n, text);
}

/* Is it one of ¡ ¿ «, two bytes each? */
static bool opens(const char *s)
{
    return s[0] == '\xc2' && (s[1] == '\xa1' || s[1] == '\xbf' || s[1] == '\xab');
}

const char *home_words_plain(struct arena *a, const char *word)
{
    static const char set[] = ".,;:!?\"()";
    while (*word && (strchr(set, *word) || opens(word)))
        word += opens(word) ? 2 : 1;
    const char *low = home_words_lower(a, home_words_trim_end(a, word, set));
    if (!strstr(low, APOSTROPHE))
        return low;
    char *s = arena_bytes(a, strlen(low) + 1), *to = s;
    if (!s)
        return "";
    for (size_t n; *low; low += n) {
        n = strncmp(low, APOSTROPHE, sizeof(APOSTROPHE) - 1) == 0 ? sizeof(APOSTROPHE) - 1 : 1;
        *to++ = (char)(n > 1 ? '\'' : *low);
    }
    *to = '\0';
    return s;
}

struct home_words home_words_plain_all(struct arena *a, const struct home_words *w)
{
    struct home_words out = {.w = arena_zalloc_n(a, (size_t)w->n + 1, sizeof(*out.w))};
    for (; out.w && out.n < w->n; out.n++)
        out.w[out.n] = home_words_plain(a, w->w[out.n]);
    return out;
}

uint32_t home_words_phrase(const struct home_words *w, uint32_t i, const char *phrase)
{
    uint32_t n = 0;
    for (const char *p = phrase; *p; n++) {
        size_t len = strcspn(p, " ");
        if (i + n >= w->n || strlen(w->w[i + n]) != len || memcmp(w->w[i + n], p, len) != 0)
            return 0;
        p += len + (p[len] == ' ');
    }
    return n;
}
