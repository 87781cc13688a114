/* jinja_names.c - see jinja_names.h. */
#include "text/jinja/jinja_names.h"

bool jinja_names_has(const char *list, struct jinja_str name)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n == name.n && memcmp(p, name.p, n) == 0)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

static int find(const char *const *names, int n, const char *unsupported, struct jinja_str name)
{
    for (int i = 0; i < n; i++)
        if (jinja_str_is(name, names[i]))
            return i;
    return jinja_names_has(unsupported, name) ? JINJA_NAME_UNSUPPORTED : JINJA_NAME_UNKNOWN;
}

int jinja_names_filter(struct jinja_str name)
{
#define X(id, name) name,
    static const char *const names[] = {JINJA_FILTERS(X)};
#undef X
    return find(names, JINJA_FILTER_N,
                "attr batch center filesizeformat forceescape groupby pprint random slice "
                "striptags truncate urlencode urlize wordwrap xmlattr",
                name);
}

int jinja_names_test(struct jinja_str name)
{
#define X(id, name) name,
    static const char *const names[] = {JINJA_TESTS(X)};
#undef X
    return find(names, JINJA_TEST_N, "", name);
}
