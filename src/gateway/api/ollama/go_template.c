/* go_template.c - see go_template.h. */
#include "gateway/api/ollama/go_template.h"

#include <string.h>

#define MAX_DEPTH 16u
#define MAX_WORDS 4u
#define SPACES " \t\r\n"

struct action {
    const char *p; /* between the braces, without spaces and dashes */
    size_t n;
    const char *end; /* after the braces */
    bool trims_before, trims_after;
};

struct translation {
    struct buf *out;
    struct err *e;
    bool has_else[MAX_DEPTH]; /* of the open ifs */
    uint32_t depth;
    bool in_tail; /* .Response was there */
};

bool go_template_is(const char *text)
{
    static const char *const words[] = {"if .",   "if or ", "if and ", "if not ", "if eq ",
                                        "range ", "end }}", "end -}}", "end}}",   "with "};
    for (const char *p = text; (p = strstr(p, "{{")); p += 2) {
        const char *q = p + 2 + strspn(p + 2, "- ");
        if (*q == '.' || *q == '$')
            return true;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            if (strncmp(q, words[i], strlen(words[i])) == 0)
                return true;
    }
    return false;
}

static int unknown(struct translation *t, const struct action *a)
{
    return err_set(t->e, SHOAL_EUNSUPPORTED,
                   "the action '{{ %.*s }}' of the Go template is not supported: only .System, "
                   ".Prompt and .Response with if, else and end are; use a Jinja template",
                   a->n < 60 ? (int)a->n : 60, a->p);
}

/* Literal text as an expression: Jinja drops spaces around blocks, Go does not. */
static void put_text(struct buf *out, const char *p, size_t n)
{
    if (n == 0)
        return;
    buf_puts(out, "{{ \"");
    for (size_t i = 0; i < n; i++) {
        const char *escape = p[i] == '"'    ? "\\\""
                             : p[i] == '\\' ? "\\\\"
                             : p[i] == '\n' ? "\\n"
                             : p[i] == '\r' ? "\\r"
                             : p[i] == '\t' ? "\\t"
                                            : NULL;
        escape ? buf_puts(out, escape) : buf_putc(out, p[i]);
    }
    buf_puts(out, "\" }}");
}

static int read_action(struct translation *t, const char *at, struct action *a)
{
    const char *close = strstr(at + 2, "}}");
    if (!close)
        return err_set(t->e, SHOAL_EINVAL, "the Go template has {{ without }}");
    *a = (struct action){.p = at + 2, .end = close + 2};
    if (a->p[0] == '-' && strchr(SPACES, a->p[1])) {
        a->trims_before = true;
        a->p++;
    }
    const char *last = close;
    if (last - a->p >= 2 && last[-1] == '-' && strchr(SPACES, last[-2])) {
        a->trims_after = true;
        last--;
    }
    while (a->p < last && strchr(SPACES, *a->p))
        a->p++;
    while (last > a->p && strchr(SPACES, last[-1]))
        last--;
    a->n = (size_t)(last - a->p);
    return 0;
}

/* The next word of an action; false: there is none. */
static bool next_word(const char **p, const char *end, const char **word, size_t *n)
{
    while (*p < end && strchr(SPACES, **p))
        ++*p;
    *word = *p;
    while (*p < end && !strchr(SPACES, **p))
        ++*p;
    *n = (size_t)(*p - *word);
    return *n > 0;
}

static bool is_word(const char *word, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(word, text, n) == 0;
}

/* The Jinja variable of a field; NULL: there is no such field. */
static const char *field_of(const char *word, size_t n)
{
    return is_word(word, n, ".System")     ? "System"
           : is_word(word, n, ".Prompt")   ? "Prompt"
           : is_word(word, n, ".Response") ? "Response"
                                           : NULL;
}

/* ".X", "not .X", "and .X .Y" or "or .X .Y", after "if". */
static int put_condition(struct translation *t, const struct action *a, const char *p)
{
    const char *end = a->p + a->n, *word, *join = NULL;
    size_t n;
    uint32_t k = 0;
    if (!next_word(&p, end, &word, &n))
        return unknown(t, a);
    const bool negated = is_word(word, n, "not");
    if (is_word(word, n, "and") || is_word(word, n, "or"))
        join = is_word(word, n, "and") ? " and " : " or ";
    if ((join || negated) && !next_word(&p, end, &word, &n))
        return unknown(t, a);
    buf_puts(t->out, negated ? "not " : "");
    do {
        const char *field = field_of(word, n);
        if (!field || strcmp(field, "Response") == 0 || k == MAX_WORDS || (k > 0 && !join))
            return unknown(t, a);
        buf_puts(t->out, k++ > 0 ? join : "");
        buf_puts(t->out, field);
    } while (next_word(&p, end, &word, &n));
    return 0;
}

static int put_if(struct translation *t, const struct action *a, const char *rest)
{
    if (t->depth == MAX_DEPTH)
        return unknown(t, a);
    t->has_else[t->depth++] = false;
    buf_puts(t->out, "{% if ");
    int rc = put_condition(t, a, rest);
    buf_puts(t->out, " %}");
    return rc;
}

static int put_else(struct translation *t, const struct action *a, const char *rest)
{
    const char *end = a->p + a->n, *word;
    size_t n;
    if (t->depth == 0 || t->has_else[t->depth - 1])
        return unknown(t, a);
    if (!next_word(&rest, end, &word, &n)) {
        t->has_else[t->depth - 1] = true;
        buf_puts(t->out, "{% else %}");
        return 0;
    }
    if (!is_word(word, n, "if"))
        return unknown(t, a);
    buf_puts(t->out, "{% elif ");
    int rc = put_condition(t, a, rest);
    buf_puts(t->out, " %}");
    return rc;
}

/* Where the answer of a turn is: what comes before it begins a turn, the rest ends it. */
static void begin_tail(struct translation *t)
{
    t->in_tail = true;
    buf_puts(t->out, "{%- endmacro -%}{%- macro tail(System, Prompt) -%}");
}

static int put_action(struct translation *t, const struct action *a)
{
    const char *rest = a->p, *end = a->p + a->n, *word, *more;
    size_t n, n_more;
    if (a->n >= 4 && memcmp(a->p, "/*", 2) == 0 && memcmp(end - 2, "*/", 2) == 0)
        return 0;
    if (!next_word(&rest, end, &word, &n))
        return unknown(t, a);
    if (is_word(word, n, "if"))
        return put_if(t, a, rest);
    if (is_word(word, n, "else"))
        return put_else(t, a, rest);
    const char *field = field_of(word, n);
    const bool ends = is_word(word, n, "end");
    if (next_word(&rest, end, &more, &n_more) || (!field && !ends))
        return unknown(t, a);
    if (ends) {
        if (t->depth == 0)
            return unknown(t, a);
        t->depth--;
        buf_puts(t->out, "{% endif %}");
    } else if (strcmp(field, "Response") == 0) {
        if (t->depth > 0 || t->in_tail)
            return unknown(t, a);
        begin_tail(t);
    } else {
        buf_printf(t->out, "{{ %s }}", field);
    }
    return 0;
}

int go_template_translate(struct buf *out, const char *text, struct err *e)
{
    struct translation t = {.out = out, .e = e};
    bool trim = false; /* spaces at the beginning of the next text */
    buf_puts(out, "{%- macro head(System, Prompt) -%}");
    for (const char *p = text; *p;) {
        const char *at = strstr(p, "{{");
        struct action a = {.end = NULL};
        const char *last = at ? at : p + strlen(p);
        int rc = at ? read_action(&t, at, &a) : 0;
        if (rc < 0)
            return rc;
        p += trim ? strspn(p, SPACES) : 0;
        while (a.trims_before && last > p && strchr(SPACES, last[-1]))
            last--;
        if (last > p)
            put_text(out, p, (size_t)(last - p));
        if (!at)
            break;
        rc = put_action(&t, &a);
        if (rc < 0)
            return rc;
        trim = a.trims_after;
        p = a.end;
    }
    if (t.depth > 0)
        return err_set(e, SHOAL_EINVAL, "the Go template has an if without its end");
    if (!t.in_tail)
        begin_tail(&t);
    buf_puts(out, "{%- endmacro -%}"
                  "{%- set turn = namespace(system=\"\", prompt=\"\") -%}"
                  "{%- for m in messages -%}"
                  "{%- if m.role == \"assistant\" -%}"
                  "{{ head(turn.system, turn.prompt) }}{{ m.content }}"
                  "{{ tail(turn.system, turn.prompt) }}"
                  "{%- set turn.system = \"\" -%}{%- set turn.prompt = \"\" -%}"
                  "{%- elif m.role == \"system\" -%}"
                  "{%- set turn.system = turn.system + (\"\\n\\n\" if turn.system else \"\") + "
                  "m.content -%}"
                  "{%- else -%}"
                  "{%- set turn.prompt = turn.prompt + (\"\\n\\n\" if turn.prompt else \"\") + "
                  "m.content -%}"
                  "{%- endif -%}{%- endfor -%}"
                  "{%- if turn.system or turn.prompt -%}{{ head(turn.system, turn.prompt) }}"
                  "{%- endif -%}");
    return out->rc < 0 ? err_set(e, out->rc, "the Go template is too long") : 0;
}
