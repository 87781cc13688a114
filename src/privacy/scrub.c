/* scrub.c - see scrub.h. */
#include "privacy/scrub.h"

#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "privacy/pii.h"

#define MAX_NAME 31u
#define RUN_BYTES 20u    /* letters and digits in one piece: no word of a language */
#define RANDOM_BYTES 32u /* the same with the other characters of base64 */
#define RANDOM_DIGITS 4u

/* How the value behind a name is taken. */
enum behind { BEHIND_NOTHING, BEHIND_SECRET, BEHIND_ID };

struct scrub {
    struct buf *out;
    const char *p;
    size_t n, at;
    bool quoted_only, quoted; /* quoted: within a string */
    enum behind behind;       /* the last word was a name, and only separators came since */
};

static bool is_alnum(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

static bool is_word(char c)
{
    return is_alnum(c) || c == '_' || c == '-';
}

static bool one_of(const char *word, size_t n, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == n && strncasecmp(word, *list, n) == 0)
            return true;
    return false;
}

static enum behind name_of(const char *word, size_t n)
{
    static const char *const secrets[] = {
        "authorization", "bearer", "basic",   "password", "passwd", "pwd",       "secret", "token",
        "key",           "apikey", "api_key", "api-key",  "cookie", "x-api-key", "client", NULL};
    static const char *const ids[] = {"req",     "request", "trace",  "trace_id", "id",
                                      "version", "sha256",  "commit", NULL};
    return n > MAX_NAME               ? BEHIND_NOTHING
           : one_of(word, n, secrets) ? BEHIND_SECRET
           : one_of(word, n, ids)     ? BEHIND_ID
                                      : BEHIND_NOTHING;
}

static bool begins_like_a_key(const char *word, size_t n)
{
    static const char *const starts[] = {"sk-", "sk_",  "ghp_", "gho_", "hf_",
                                         "xox", "AKIA", "eyJ",  "AIza", NULL};
    for (const char *const *s = starts; *s; s++)
        if (n >= 12 && strncmp(word, *s, strlen(*s)) == 0)
            return true;
    return false;
}

/* Part of a value that nothing quotes. */
static bool is_value(char c)
{
    return (unsigned char)c > ' ' && !strchr("\"'\\,;{}", c);
}

/* Letters and digits without a meaning. */
static bool looks_random(const char *word, size_t n)
{
    size_t run = 0, digits = 0, letters = 0, all_digits = 0;
    bool upper = false, lower = false;
    for (size_t i = 0; i < n; i++) {
        const char c = word[i];
        run = is_alnum(c) ? run + 1 : 0;
        digits = run == 0 ? 0 : digits + ascii_is_digit(c);
        letters = run == 0 ? 0 : letters + !ascii_is_digit(c);
        all_digits += ascii_is_digit(c);
        upper |= ascii_is_upper(c);
        lower |= ascii_is_lower(c);
        if (run >= RUN_BYTES && digits > 0 && letters > 0)
            return true;
    }
    return n >= RANDOM_BYTES && upper && lower && all_digits >= RANDOM_DIGITS;
}

/* The scheme and the host stay. */
static bool take_url(struct scrub *s, size_t scheme)
{
    const char *p = s->p + s->at;
    const size_t left = s->n - s->at;
    size_t end = scheme + 3, host;
    if (left < end || memcmp(p + scheme, "://", 3) != 0)
        return false;
    while (end < left && (unsigned char)p[end] > ' ' && !strchr("\"'\\<>,;)]}", p[end]))
        end++;
    host = scheme + 3;
    const char *slash = memchr(p + host, '/', end - host);
    const size_t host_end = slash ? (size_t)(slash - p) : end;
    for (size_t i = host; i < host_end; i++)
        if (p[i] == '@')
            host = i + 1;
    size_t stop = host;
    while (stop < host_end && p[stop] != '?' && p[stop] != '#')
        stop++;
    buf_put(s->out, p, scheme + 3);
    buf_put(s->out, p + host, stop - host);
    if (stop + (slash != NULL) < end)
        buf_puts(s->out, "/" SCRUB_MARK);
    s->at += end;
    return true;
}

static bool take_home(struct scrub *s)
{
    static const char *const homes[] = {"/home/", "/Users/", NULL};
    for (const char *const *h = homes; *h; h++) {
        const size_t k = strlen(*h);
        if (s->n - s->at <= k || memcmp(s->p + s->at, *h, k) != 0)
            continue;
        buf_printf(s->out, "%s" SCRUB_MARK, *h);
        for (s->at += k; s->at < s->n && (is_word(s->p[s->at]) || s->p[s->at] == '.'); s->at++)
            ;
        return true;
    }
    return false;
}

/* Outside of strings only names matter. */
static void pass_word(struct scrub *s)
{
    const size_t from = s->at;
    while (s->at < s->n && is_word(s->p[s->at]))
        s->at++;
    buf_put(s->out, s->p + from, s->at - from);
    s->behind = name_of(s->p + from, s->at - from);
}

static void take_word(struct scrub *s)
{
    const char *p = s->p + s->at;
    size_t n = 0;
    while (s->at + n < s->n && is_word(p[n]))
        n++;
    if (take_url(s, n)) {
        s->behind = BEHIND_NOTHING;
        return;
    }
    const enum behind name = name_of(p, n);
    if (s->behind == BEHIND_SECRET && name != BEHIND_SECRET) {
        /* all of it, whatever a password is made of */
        while (s->at + n < s->n && is_value(p[n]))
            n++;
        buf_puts(s->out, SCRUB_MARK);
    } else if (begins_like_a_key(p, n) || (looks_random(p, n) && s->behind != BEHIND_ID)) {
        buf_puts(s->out, SCRUB_MARK);
    } else {
        buf_put(s->out, p, n);
    }
    s->behind = name;
    s->at += n;
}

static void take_separator(struct scrub *s)
{
    const char c = s->p[s->at];
    const bool may = !s->quoted_only || s->quoted;
    if (c == '\\' && s->quoted && s->at + 1 < s->n) { /* an escape is no end of the string */
        buf_put(s->out, s->p + s->at, 2);
        s->at += 2;
        return;
    }
    s->quoted ^= c == '"' && s->quoted_only;
    if (may && take_home(s)) {
        s->behind = BEHIND_NOTHING;
        return;
    }
    if (may && s->behind == BEHIND_SECRET && is_value(c) && c != '=' && c != ':') {
        take_word(s); /* a password that begins with a sign */
        return;
    }
    if (c == '\0' || !strchr(" \t=:\"'\\", c))
        s->behind = BEHIND_NOTHING;
    buf_putc(s->out, c);
    s->at++;
}

struct masking {
    struct buf *out;
    const char *text;
    size_t at;
};

static void on_hit(void *ctx, const struct pii_hit *h)
{
    struct masking *m = ctx;
    buf_put(m->out, m->text + m->at, h->start - m->at);
    buf_printf(m->out, "(%s)", pii_kind_name(h->kind));
    m->at = h->end;
}

/* Where the string ends that begins behind a quote at `from`. */
static size_t string_end(const char *text, size_t n, size_t from)
{
    size_t i = from + 1;
    for (; i < n && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i < n ? i : n;
}

static void mask(struct buf *out, const char *text, size_t n)
{
    struct masking m = {.out = out, .text = text};
    pii_find(text, n, PII_BY_RULES, on_hit, &m);
    buf_put(out, text + m.at, n - m.at);
}

static void mask_quoted(struct buf *out, const char *text, size_t n)
{
    for (size_t at = 0, from; at < n;) {
        const char *quote = memchr(text + at, '"', n - at);
        from = quote ? (size_t)(quote - text) : n;
        buf_put(out, text + at, from - at);
        at = from < n ? string_end(text, n, from) : n;
        mask(out, text + from, at - from);
        if (at < n)
            buf_putc(out, text[at++]);
    }
}

static void scrub(struct buf *out, const char *text, size_t n, bool quoted_only)
{
    struct buf first;
    buf_init(&first, out->max);
    struct scrub s = {.out = &first, .p = text, .n = n, .quoted_only = quoted_only};
    while (s.at < n)
        if (!is_word(text[s.at]))
            take_separator(&s);
        else if (quoted_only && !s.quoted)
            pass_word(&s);
        else
            take_word(&s);
    (quoted_only ? mask_quoted : mask)(out, buf_str(&first), first.len);
    if (first.rc < 0)
        out->rc = first.rc;
    buf_fini(&first);
}

void scrub_text(struct buf *out, const char *text, size_t n)
{
    scrub(out, text, n, false);
}

void scrub_quoted(struct buf *out, const char *text, size_t n)
{
    scrub(out, text, n, true);
}

bool scrub_is_clean(const char *text, size_t n)
{
    struct buf b;
    buf_init(&b, 4 * n + 64);
    scrub_text(&b, text, n);
    const bool same = b.rc == 0 && b.len == n && memcmp(buf_str(&b), text, n) == 0;
    buf_fini(&b);
    return same;
}
