/* err.c - see err.h. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        e->code = code;
        vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return SHOAL_EINTERNAL;
    char old[sizeof(e->msg)];
    memcpy(old, e->msg, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->msg) &&
        snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s", old) < 0)
        e->msg[n] = '\0'; /* the check also tells gcc -O1 that truncation is intended */
    return e->code;
}

const char *err_name(int code)
{
    switch (code) {
    case 0:
        return "OK";
#define X(n, id, text)                                                                             \
    case n:                                                                                        \
        return #id;
        SHOAL_ERR_MAP(X)
#undef X
    default:
        return "UNKNOWN";
    }
}

const char *err_text(int code)
{
    switch (code) {
    case 0:
        return "ok";
#define X(n, id, text)                                                                             \
    case n:                                                                                        \
        return text;
        SHOAL_ERR_MAP(X)
#undef X
    default:
        return "unknown error";
    }
}
