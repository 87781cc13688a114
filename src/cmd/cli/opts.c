/* opts.c - see opts.h. */
#include "cmd/cli/opts.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "cmd/cli/exit_code.h"
#include "cmd/cli/term.h"

#define HELP_COLUMN 30
#define HELP_WIDTH 96

/* Every command has these. */
static const struct opts_def common_defs[] = {
    {"log-level", 0, OPTS_CHOICE, "error|warn|info|debug", "warn", 0, 0,
     "log messages up to this level to stderr"},
    {"log-format", 0, OPTS_CHOICE, "logfmt|json", "logfmt", 0, 0, "format of log messages"},
    {"help", 'h', OPTS_FLAG, NULL, NULL, 0, 0, "show this help"},
};
const struct opts_group opts_common = OPTS_GROUP_INIT("General", common_defs);

/* ---- messages ------------------------------------------------------------------------------- */

void opts_complain(const struct opts_page *page, const char *fmt, va_list ap)
{
    fflush(stdout);
    fprintf(stderr, "%sshoal %s:%s ", term_style(STDERR_FILENO, TERM_RED), page->command,
            term_style(STDERR_FILENO, TERM_PLAIN));
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

int opts_usage(const struct opts_page *page, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    opts_complain(page, fmt, ap);
    va_end(ap);
    fprintf(stderr, "Try 'shoal %s --help'.\n", page->command);
    return CMD_USAGE;
}

static int unknown_option(const struct opts *o, const char *name)
{
    const char *names[OPTS_MAX_DEFS + 1];
    size_t n = 0;
    for (; n < o->n_defs; n++)
        names[n] = o->defs[n]->name;
    names[n] = NULL;
    const char *near = nearest_word(name, names);
    if (near)
        return opts_usage(o->page, "unknown option --%s (did you mean --%s?)", name, near);
    return opts_usage(o->page, "unknown option --%s", name);
}

/* ---- values --------------------------------------------------------------------------------- */

static int bad_value(const struct opts *o, const struct opts_def *d, const char *text)
{
    if (d->type == OPTS_CHOICE)
        return opts_usage(o->page, "--%s is %s, expected one of %s", d->name, text, d->value);
    if (d->max > d->min)
        return opts_usage(o->page, "--%s is %s, expected a%s number from %.10g to %.10g", d->name,
                          text, d->type == OPTS_UINT ? " whole" : "", d->min, d->max);
    return opts_usage(o->page, "--%s is %s, expected a%s number", d->name, text,
                      d->type == OPTS_UINT ? " whole" : "");
}

static bool in_words(const char *words, const char *text)
{
    size_t n = strcspn(text, "|");
    if (n == 0 || text[n])
        return false;
    for (const char *p = words; p; p = strchr(p, '|')) {
        p += *p == '|';
        if (strncmp(p, text, n) == 0 && (p[n] == '|' || p[n] == '\0'))
            return true;
    }
    return false;
}

static bool read_number(const struct opts_def *d, struct opts_value *v, const char *text)
{
    char *end;
    errno = 0;
    if (d->type == OPTS_UINT) {
        if (!isdigit((unsigned char)text[0]))
            return false;
        v->u = strtoull(text, &end, 10);
        v->d = (double)v->u;
    } else {
        if (isspace((unsigned char)text[0]))
            return false;
        v->d = strtod(text, &end);
    }
    if (errno || end == text || *end || isnan(v->d))
        return false;
    return d->max <= d->min || (v->d >= d->min && v->d <= d->max);
}

static int set_value(struct opts *o, size_t i, const char *text)
{
    const struct opts_def *d = o->defs[i];
    struct opts_value *v = &o->values[i];
    switch (d->type) {
    case OPTS_FLAG:
        v->flag = true;
        return 0;
    case OPTS_UINT:
    case OPTS_REAL:
        return read_number(d, v, text) ? 0 : bad_value(o, d, text);
    case OPTS_CHOICE:
        v->s = text;
        return in_words(d->value, text) ? 0 : bad_value(o, d, text);
    case OPTS_TEXT:
        v->s = text;
        return 0;
    case OPTS_LIST:
        if (!v->list)
            v->list = mem_zalloc_n(OPTS_MAX_LIST, sizeof(*v->list));
        if (!v->list)
            return opts_usage(o->page, "out of memory");
        if (v->n_list == OPTS_MAX_LIST)
            return opts_usage(o->page, "--%s is given more than %u times", d->name, OPTS_MAX_LIST);
        v->list[v->n_list++] = text;
        return 0;
    }
    return 0;
}

/* ---- help ----------------------------------------------------------------------------------- */

/* Prints text from the current column on, wrapped and indented at HELP_COLUMN. */
static void put_wrapped(const char *text, int column)
{
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!first && column + 1 + (int)n > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)n, text);
        column += (int)n;
        first = false;
        text += n;
        text += *text == ' ';
    }
}

static void help_option(const struct opts_def *d)
{
    char left[128], right[512];
    snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", d->letter ? '-' : ' ',
             d->letter ? d->letter : ' ', d->letter ? ',' : ' ', d->name, d->value ? " " : "",
             d->value ? d->value : "");
    snprintf(right, sizeof(right), "%s%s%s%s", d->help, d->fallback ? " [" : "",
             d->fallback ? d->fallback : "", d->fallback ? "]" : "");
    int used = printf("%s", left);
    if (used >= HELP_COLUMN) {
        putchar('\n');
        used = 0;
    }
    printf("%*s", HELP_COLUMN - used, "");
    put_wrapped(right, HELP_COLUMN);
    putchar('\n');
}

static void help_group(const struct opts_group *g)
{
    printf("\n%s:\n", g->title);
    for (size_t i = 0; i < g->n_defs; i++)
        help_option(&g->defs[i]);
}

static void print_help(const struct opts_page *page)
{
    printf("%s\n\nUsage: shoal %s [options]%s%s\n", page->summary, page->command,
           page->arguments[0] ? " " : "", page->arguments);
    if (page->details)
        printf("\n%s\n", page->details);
    for (size_t g = 0; g < OPTS_MAX_GROUPS && page->groups[g]; g++)
        help_group(page->groups[g]);
    help_group(&opts_common);
    if (page->examples)
        printf("\nExamples:\n%s", page->examples);
}

/* ---- parsing -------------------------------------------------------------------------------- */

static void add_group(struct opts *o, const struct opts_group *g)
{
    for (size_t i = 0; i < g->n_defs; i++) {
        assert(o->n_defs < OPTS_MAX_DEFS);
        const struct opts_def *d = &g->defs[i];
        struct opts_value *v = &o->values[o->n_defs];
        v->s = d->fallback;
        if (d->fallback && (d->type == OPTS_UINT || d->type == OPTS_REAL)) {
            bool ok = read_number(d, v, d->fallback);
            assert(ok);
            (void)ok;
        }
        o->defs[o->n_defs++] = d;
    }
}

static size_t find_long(const struct opts *o, const char *name, size_t n)
{
    for (size_t i = 0; i < o->n_defs; i++)
        if (strncmp(o->defs[i]->name, name, n) == 0 && o->defs[i]->name[n] == '\0')
            return i;
    return SIZE_MAX;
}

static size_t find_letter(const struct opts *o, char letter)
{
    for (size_t i = 0; i < o->n_defs; i++)
        if (o->defs[i]->letter == letter)
            return i;
    return SIZE_MAX;
}

/* Parses one option at argv[*at]; moves *at past its value. */
static int parse_option(struct opts *o, int argc, const char *const *argv, int *at)
{
    const char *arg = argv[*at], *value = NULL;
    size_t i;
    if (arg[1] == '-') {
        const char *eq = strchr(arg, '=');
        size_t n = eq ? (size_t)(eq - arg - 2) : strlen(arg + 2);
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)(n < 60 ? n : 60), arg + 2);
        i = find_long(o, arg + 2, n);
        if (i == SIZE_MAX)
            return unknown_option(o, name);
        value = eq ? eq + 1 : NULL;
    } else {
        i = find_letter(o, arg[1]);
        if (i == SIZE_MAX)
            return opts_usage(o->page, "unknown option %s", arg);
        value = arg[2] ? arg + 2 + (arg[2] == '=') : NULL;
    }
    const struct opts_def *d = o->defs[i];
    o->values[i].given = true;
    if (d->type == OPTS_FLAG) {
        if (value)
            return opts_usage(o->page, "--%s takes no value", d->name);
        return set_value(o, i, NULL);
    }
    if (!value) {
        if (*at + 1 >= argc)
            return opts_usage(o->page, "--%s needs a value (%s)", d->name, d->value);
        value = argv[++*at];
    }
    return set_value(o, i, value);
}

static int parse_all(struct opts *o, int argc, const char *const *argv)
{
    bool only_args = false;
    for (int at = 0; at < argc; at++) {
        if (!only_args && strcmp(argv[at], "--") == 0) {
            only_args = true;
        } else if (!only_args && argv[at][0] == '-' && argv[at][1]) {
            int rc = parse_option(o, argc, argv, &at);
            if (rc != 0)
                return rc;
            if (opts_flag(o, "help"))
                return 0;
        } else {
            o->args[o->n_args++] = argv[at];
        }
    }
    if (o->n_args > o->page->max_args)
        return opts_usage(o->page, "unexpected argument %s%s", o->args[o->page->max_args],
                          o->page->max_args == 1 && o->page->arguments[0] == '['
                              ? " (quote a text of several words)"
                              : "");
    if (o->n_args < o->page->min_args)
        return opts_usage(o->page, "missing argument: %s", o->page->arguments);
    return 0;
}

enum opts_outcome opts_parse(struct opts *o, const struct opts_page *page, int argc,
                             const char *const *argv)
{
    memset(o, 0, sizeof(*o));
    o->page = page;
    for (size_t g = 0; g < OPTS_MAX_GROUPS && page->groups[g]; g++)
        add_group(o, page->groups[g]);
    add_group(o, &opts_common);
    o->args = mem_zalloc_n((size_t)argc + 1, sizeof(*o->args));
    if (!o->args) {
        opts_usage(page, "out of memory");
        return OPTS_USAGE;
    }
    if (parse_all(o, argc, argv) != 0)
        return OPTS_USAGE;
    if (opts_flag(o, "help")) {
        print_help(page);
        return OPTS_HELP_SHOWN;
    }
    return OPTS_RUN;
}

void opts_fini(struct opts *o)
{
    for (size_t i = 0; i < o->n_defs; i++)
        mem_free(o->values[i].list);
    mem_free(o->args);
    memset(o, 0, sizeof(*o));
}

/* ---- reading values ------------------------------------------------------------------------- */

static const struct opts_value *value_of(const struct opts *o, const char *name)
{
    size_t i = find_long(o, name, strlen(name));
    assert(i != SIZE_MAX);
    return &o->values[i];
}

bool opts_given(const struct opts *o, const char *name)
{
    return value_of(o, name)->given;
}

bool opts_flag(const struct opts *o, const char *name)
{
    return value_of(o, name)->flag;
}

uint64_t opts_uint(const struct opts *o, const char *name)
{
    return value_of(o, name)->u;
}

uint32_t opts_u32(const struct opts *o, const char *name)
{
    uint64_t u = value_of(o, name)->u;
    assert(u <= UINT32_MAX); /* the table's max guarantees it */
    return (uint32_t)u;
}

double opts_real(const struct opts *o, const char *name)
{
    return value_of(o, name)->d;
}

const char *opts_text(const struct opts *o, const char *name)
{
    return value_of(o, name)->s;
}

size_t opts_list(const struct opts *o, const char *name, const char *const **list)
{
    const struct opts_value *v = value_of(o, name);
    *list = v->list;
    return v->n_list;
}
