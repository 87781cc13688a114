/* tok_regex.c - see tok_regex.h. */
#include "text/tokenizer/split/tok_regex.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/mem.h"

#define MAX_PATTERN ((size_t)1 << 16)
#define MATCH_LIMIT 10000000 /* steps of one match, for expressions that come from files */

struct tok_regex {
    pcre2_code *code;
    pcre2_general_context *gctx;
    pcre2_match_context *mctx;
};

static void *pcre_alloc(size_t n, void *ctx)
{
    (void)ctx;
    return mem_alloc(n);
}

static void pcre_free(void *p, void *ctx)
{
    (void)ctx;
    mem_free(p);
}

static int compile(struct tok_regex *rx, const char *pattern, size_t n, bool trusted, struct err *e)
{
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *cctx = pcre2_compile_context_create(rx->gctx);
    if (!cctx)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the regular expression");
    pcre2_set_parens_nest_limit(cctx, 100);
    /* Oniguruma's ^ and $ are those of lines */
    uint32_t how = PCRE2_UTF | PCRE2_UCP | (trusted ? 0 : PCRE2_MULTILINE);
    rx->code = pcre2_compile((PCRE2_SPTR)pattern, n, how, &code, &at, cctx);
    pcre2_compile_context_free(cctx);
    if (!rx->code) {
        char text[96] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
        int rc = code == PCRE2_ERROR_HEAP_FAILED ? SHOAL_ENOMEM
                 : trusted                       ? SHOAL_EINTERNAL
                                                 : SHOAL_EFORMAT;
        return err_set(e, rc, "regular expression, at %zu: %s", at, text);
    }
    /* Where the system forbids executable memory this fails, and matching is only slower. */
    (void)pcre2_jit_compile(rx->code, PCRE2_JIT_COMPLETE);
    return 0;
}

int tok_regex_create(struct tok_regex **out, const char *pattern, size_t n, bool trusted,
                     struct err *e)
{
    struct tok_regex *rx = mem_zalloc(sizeof(*rx));
    int rc = 0;
    *out = NULL;
    if (n > MAX_PATTERN)
        rc = err_set(e, SHOAL_ELIMIT, "a regular expression of %zu bytes is too long", n);
    if (rx) {
        rx->gctx = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
        rx->mctx = rx->gctx ? pcre2_match_context_create(rx->gctx) : NULL;
    }
    if (rc == 0 && (!rx || !rx->mctx))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the regular expression");
    if (rc < 0)
        goto out;
    /* Ours are linear, so a long text may take many steps; the heap is what must stay small. */
    pcre2_set_match_limit(rx->mctx, trusted ? UINT32_MAX : MATCH_LIMIT);
    pcre2_set_heap_limit(rx->mctx, 64 * 1024);
    rc = compile(rx, pattern, n, trusted, e);
    if (rc < 0)
        goto out;
    *out = rx;
    rx = NULL;
out:
    tok_regex_destroy(rx);
    return rc;
}

void tok_regex_destroy(struct tok_regex *rx)
{
    if (!rx)
        return;
    pcre2_code_free(rx->code);
    pcre2_match_context_free(rx->mctx);
    pcre2_general_context_free(rx->gctx);
    mem_free(rx);
}

void tok_regex_match_free(void *match)
{
    pcre2_match_data_free(match);
}

int tok_regex_find(const struct tok_regex *rx, void **match, const char *p, size_t n, size_t from,
                   size_t *start, size_t *end)
{
    if (!*match) {
        *match = pcre2_match_data_create(1, rx->gctx);
        if (!*match)
            return SHOAL_ENOMEM;
    }
    int rc = pcre2_match(rx->code, (PCRE2_SPTR)p, n, from, PCRE2_NO_UTF_CHECK, *match, rx->mctx);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(rx->code, (PCRE2_SPTR)p, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         *match, rx->mctx);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc < 0)
        return rc == PCRE2_ERROR_NOMEMORY ? SHOAL_ENOMEM : SHOAL_ELIMIT;
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(*match);
    *start = v[0];
    *end = v[1];
    return *end >= *start ? 1 : SHOAL_ELIMIT; /* \K can turn them around */
}

/* The classes that the two libraries read differently, inside and outside of brackets. */
static const char *class_text(char c, bool in_brackets)
{
    switch (c) {
    case 's':
        return in_brackets ? TOK_REGEX_WS : "[" TOK_REGEX_WS "]";
    case 'S':
        return in_brackets ? NULL : "[^" TOK_REGEX_WS "]";
    case 'w':
        return in_brackets ? "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}"
                           : "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]";
    case 'W':
        return in_brackets ? NULL : "[^\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]";
    case 'h': /* not horizontal space */
        return in_brackets ? "0-9a-fA-F" : "[0-9a-fA-F]";
    case 'H':
        return in_brackets ? NULL : "[^0-9a-fA-F]";
    case 'd':
        return "\\p{Nd}";
    case 'D':
        return "\\P{Nd}";
    default:
        return NULL;
    }
}

/* What opens a class: [ or [^ or []... where the second bracket is a character. */
static size_t opening(const char *p, size_t n)
{
    size_t k = 1;
    k += k < n && p[k] == '^';
    k += k < n && p[k] == ']';
    return k;
}

int tok_regex_translate(char **out, const char *p, size_t n, struct err *e)
{
    struct buf b;
    const char *wrong = NULL;
    bool in_class = false;
    size_t i = 0, used = 1;
    buf_init(&b, 8 * MAX_PATTERN);
    *out = NULL;
    for (; i < n && !wrong; i += used) {
        const char *class = p[i] == '\\' && i + 1 < n ? class_text(p[i + 1], in_class) : NULL;
        bool posix = in_class && p[i] == '[' && i + 1 < n && p[i + 1] == ':';
        const char *close = posix ? memchr(p + i, ']', n - i) : NULL;
        used = 1;
        if (p[i] == '\\' && i + 1 < n) {
            used = 2;
        } else if (close) { /* [:alpha:] */
            used = (size_t)(close - (p + i)) + 1;
        } else if (in_class && p[i] == '[') {
            wrong = "a class in a class is not supported";
        } else if (in_class && p[i] == '&' && i + 1 < n && p[i + 1] == '&') {
            wrong = "&& in a class is not supported";
        } else if (p[i] == '[') {
            used = opening(p + i, n - i);
            in_class = true;
        } else if (p[i] == ']') {
            in_class = false;
        }
        if (class)
            buf_puts(&b, class);
        else
            buf_put(&b, p + i, used);
    }
    if (!wrong)
        *out = buf_take(&b, NULL);
    buf_fini(&b);
    if (wrong)
        return err_set(e, SHOAL_EUNSUPPORTED, "regular expression, at %zu: %s", i - used, wrong);
    return *out ? 0
                : err_set(e, n > MAX_PATTERN ? SHOAL_ELIMIT : SHOAL_ENOMEM,
                          "out of memory for the regular expression");
}
