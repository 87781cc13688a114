/* config_where.c - see config_where.h. */
#include "config/config_where.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/config_read.h"

static bool has_value(const struct config_setting *s, const char *value)
{
    const size_t n = strlen(value);
    for (const char *p = s->value; (p = strstr(p, value)); p++)
        if ((p == s->value || p[-1] == ' ') && (p[n] == '\0' || p[n] == ','))
            return true;
    return false;
}

int config_where_fail(const struct config_where *w, const char *key, const char *value,
                      const char *fmt, ...)
{
    const struct config_setting *s = w->set->v, *end = s + w->set->n;
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    while (s < end && (strcmp(s->key->path, key) != 0 || (value && !has_value(s, value))))
        s++;
    if (s == end) /* of the command line, or a default */
        return err_set(w->e, SHOAL_EFORMAT, "%s", text);
    return err_set(w->e, SHOAL_EFORMAT, "%s:%u:%u: %s", w->file, s->line, s->column, text);
}
