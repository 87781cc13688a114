/* router_rule.c - see router_rule.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "router/router_rule.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* A text that needs more steps than this does not match: rules run on an event loop. */
#define MATCH_LIMIT 20000u
#define HEAP_LIMIT_KIB 256u
#define MAX_PATTERN_BYTES 1024u

struct router_regex {
    pcre2_code *code;
};

int router_regex_create(struct router_regex **out, const char *pattern, struct err *e)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR text[128] = "";
    struct router_regex *x = mem_zalloc(sizeof(*x));
    *out = NULL;
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "expression of a rule");
    if (strlen(pattern) > MAX_PATTERN_BYTES) {
        mem_free(x);
        return err_set(e, SHOAL_EINVAL, "an expression has at most %u bytes", MAX_PATTERN_BYTES);
    }
    x->code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern),
                            PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &at, NULL);
    if (!x->code) {
        pcre2_get_error_message(error, text, sizeof(text));
        mem_free(x);
        return err_set(e, SHOAL_EINVAL, "bad expression at character %zu: %s", at + 1,
                       (const char *)text);
    }
    (void)pcre2_jit_compile(x->code, PCRE2_JIT_COMPLETE); /* where it works, it is faster */
    *out = x;
    return 0;
}

void router_regex_destroy(struct router_regex *x)
{
    if (!x)
        return;
    pcre2_code_free(x->code);
    mem_free(x);
}

/* Text that ends in the middle of a character is cut before it. */
static size_t whole_characters(const char *text, size_t n, size_t most)
{
    if (n <= most)
        return n;
    n = most;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

bool router_regex_matches(const struct router_regex *x, const char *text, size_t n)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    bool found = false;
    if (data && context) {
        pcre2_set_match_limit(context, MATCH_LIMIT);
        pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
        n = whole_characters(text, n, ROUTER_MAX_MATCH_BYTES);
        /* Invalid UTF-8 is an error of the call: no match. */
        found = pcre2_match(x->code, (PCRE2_SPTR)text, n, 0, 0, data, context) >= 0;
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    return found;
}

/* ---- rules ---- */

int router_rule_check(const struct router_rule *r, struct err *e)
{
    bool named = r->field == ROUTER_FIELD_HEADER || r->field == ROUTER_FIELD_JSON;
    bool range = r->above_given || r->below_given;
    if (named && (!r->name || !r->name[0]))
        return err_set(e, SHOAL_EINVAL, "a rule on a header or JSON field needs its name");
    if (!named && r->name)
        return err_set(e, SHOAL_EINVAL, "only rules on a header or JSON field have a name");
    if ((r->n_is > 0) + (r->regex != NULL) + range != 1)
        return err_set(e, SHOAL_EINVAL,
                       "a rule needs one condition: is, matches, or above and below");
    if (r->field == ROUTER_FIELD_SIZE && !range)
        return err_set(e, SHOAL_EINVAL, "a rule on the size needs above or below");
    if (range && r->field != ROUTER_FIELD_SIZE && !named)
        return err_set(e, SHOAL_EINVAL,
                       "above and below are for sizes, headers and JSON fields with numbers");
    if (r->n_use == 0)
        return err_set(e, SHOAL_EINVAL, "a rule needs 'use': the models that remain");
    return 0;
}

static const char *value_of(const struct router_rule *r, const struct router_facts *f, size_t *n)
{
    const char *v = NULL;
    switch (r->field) {
    case ROUTER_FIELD_TEXT:
        *n = f->text_bytes;
        return f->text;
    case ROUTER_FIELD_PATH:
        v = f->path;
        break;
    case ROUTER_FIELD_KEY:
        v = f->client;
        break;
    case ROUTER_FIELD_LANGUAGE:
        v = f->language;
        break;
    case ROUTER_FIELD_KIND:
        v = f->kind;
        break;
    case ROUTER_FIELD_SIZE:
        break;
    case ROUTER_FIELD_HEADER:
    case ROUTER_FIELD_JSON:
        for (uint32_t i = 0; i < f->n_tags && !v; i++)
            if (f->tags[i].field == r->field &&
                (r->field == ROUTER_FIELD_HEADER ? strcasecmp(f->tags[i].name, r->name)
                                                 : strcmp(f->tags[i].name, r->name)) == 0)
                v = f->tags[i].value;
        break;
    }
    *n = v ? strlen(v) : 0;
    return v;
}

static bool in_range(const struct router_rule *r, double x)
{
    return (!r->above_given || x > r->above) && (!r->below_given || x < r->below);
}

static bool matches(const struct router_rule *r, const struct router_facts *f)
{
    size_t n = 0;
    if (r->field == ROUTER_FIELD_SIZE)
        return in_range(r, (double)f->text_bytes);
    const char *v = value_of(r, f, &n);
    if (!v)
        return false;
    if (r->regex)
        return router_regex_matches(r->regex, v, n);
    if (r->above_given || r->below_given) {
        char *end;
        double x = strtod(v, &end);
        return end != v && *end == '\0' && in_range(r, x);
    }
    for (uint32_t i = 0; i < r->n_is; i++)
        if (strlen(r->is[i]) == n && memcmp(r->is[i], v, n) == 0)
            return true;
    return false;
}

bool router_rule_matches(const struct router_rule *r, const struct router_facts *f)
{
    return matches(r, f) != r->negate;
}

bool router_rule_uses(const struct router_rule *r, const char *model)
{
    for (uint32_t i = 0; i < r->n_use; i++)
        if (strcmp(r->use[i], model) == 0)
            return true;
    return false;
}

static void free_all(char **v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        mem_free(v[i]);
    mem_free(v);
}

void router_rule_fini(struct router_rule *r)
{
    mem_free(r->name);
    free_all(r->is, r->n_is);
    free_all(r->use, r->n_use);
    router_regex_destroy(r->regex);
    *r = (struct router_rule){.name = NULL};
}
