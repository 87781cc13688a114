/* home_truth.c - see home_truth.h. */
#include "apps/home/home_truth.h"

#include <string.h>

#include "apps/home/table/home_words.h"

#define DIGITS "0123456789"

/* Lower case; keeps letters, digits and parts of numbers, all else becomes one space. A space at
 * both ends lets words be found whole. */
static const char *plain(struct arena *a, const char *text)
{
    const char *low = home_words_lower(a, text);
    size_t n = strlen(low), len = 0;
    char *s = arena_bytes(a, n + 3);
    if (!s)
        return NULL;
    s[len++] = ' ';
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)low[i];
        bool digit = c >= '0' && c <= '9';
        bool inside = (c == '.' || c == ':' || c == ',') && i > 0 && strchr(DIGITS, low[i - 1]) &&
                      low[i + 1] && strchr(DIGITS, low[i + 1]);
        bool sign =
            (c == '-' || c == '+') && low[i + 1] && strchr(DIGITS, low[i + 1]) && s[len - 1] == ' ';
        bool keep = (c >= 'a' && c <= 'z') || digit || inside || sign || c >= 0x80 || c == '%';
        if (keep)
            s[len++] = (char)c;
        else if (c != '\'' && s[len - 1] != ' ')
            s[len++] = ' ';
    }
    if (s[len - 1] != ' ')
        s[len++] = ' ';
    s[len] = '\0';
    return s;
}

static bool is(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* Keys whose values the reply words in its own way. */
static bool is_free(const char *key, size_t n, bool act)
{
    return is(key, n, "act") || is(key, n, "ask") || is(key, n, "reason") ||
           (act && is(key, n, "result"));
}

static bool line_holds(struct arena *a, const char *line, const char *reply)
{
    bool act = strncmp(line, "act:", 4) == 0 || strncmp(line, "ask:", 4) == 0;
    if (strncmp(line, "chat:", 5) == 0 || strncmp(line, "oos:", 4) == 0)
        return true;
    for (const char *p = line; *p;) {
        size_t pair = strcspn(p, ";"), key = strcspn(p, ":");
        if (key < pair) {
            const char *from = p + key + 1;
            const char *value = plain(a, arena_printf(a, "%.*s", (int)(pair - key - 1), from));
            if (!value || (!is_free(p, key, act) && strcmp(value, " none ") != 0 &&
                           value[1] != '\0' && !strstr(reply, value)))
                return false;
        }
        p += pair;
        p += strspn(p, "; ");
    }
    return true;
}

/* Is every run of digits of the reply in the context? */
static bool numbers_hold(struct arena *a, const char *context, const char *reply)
{
    for (const char *p = reply + strcspn(reply, DIGITS); *p; p += strcspn(p, DIGITS)) {
        size_t n = strspn(p, DIGITS);
        const char *number = arena_printf(a, "%.*s", (int)n, p);
        bool found = false;
        for (const char *q = strstr(context, number); q && *number; q = strstr(q + 1, number))
            found |= (q == context || !strchr(DIGITS, q[-1])) && !(q[n] && strchr(DIGITS, q[n]));
        if (!found)
            return false;
        p += n;
    }
    return true;
}

bool home_truth_holds(struct arena *a, const char *context, const char *reply)
{
    const char *said = plain(a, reply);
    if (!said || a->rc < 0)
        return false;
    if (strncmp(context, "chat:", 5) == 0 || strncmp(context, "oos:", 4) == 0)
        return true;
    for (const char *line = context; *line;) {
        size_t n = strcspn(line, "\n");
        if (!line_holds(a, arena_printf(a, "%.*s", (int)n, line), said))
            return false;
        line += n + (line[n] == '\n');
    }
    return numbers_hold(a, context, reply) && a->rc == 0;
}
