/* failure.c - see failure.h. */
#include "flow/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "host/model_stats.h"

void failure_set(struct failure *f, enum failure_kind kind, int code, const char *param,
                 const char *reason, const char *fmt, ...)
{
    va_list ap;
    f->kind = kind;
    f->code = code;
    f->param = param;
    f->reason = reason;
    f->retry_after_s = 0;
    va_start(ap, fmt);
    vsnprintf(f->message, sizeof(f->message), fmt, ap);
    va_end(ap);
}

void failure_late(struct failure *f, bool refused, bool others, const char *msg)
{
    failure_set(f, FAILURE_DEADLINE, SHOAL_EDEADLINE, NULL,
                refused && !others ? "deadline_unreachable" : "deadline", "%s", msg);
    f->retry_after_s = others ? 1 : 0;
}

void failure_of(struct failure *f, int code, const char *msg)
{
    switch (code) {
    case SHOAL_EINVAL:
    case SHOAL_EFORMAT:
    case SHOAL_EUNSUPPORTED:
    case SHOAL_ENOTOKEN:
        failure_set(f, FAILURE_INVALID, code, NULL, NULL, "%s", msg);
        break;
    case SHOAL_ELIMIT:
        failure_set(f, FAILURE_INVALID, code, NULL, "limit_exceeded", "%s", msg);
        break;
    case SHOAL_ENOTFOUND:
        failure_set(f, FAILURE_NOT_FOUND, code, NULL, "model_not_found", "%s", msg);
        break;
    case SHOAL_EBUSY:
        failure_set(f, FAILURE_BUSY, code, NULL, "overloaded", "%s", msg);
        f->retry_after_s = 1;
        break;
    case SHOAL_EDEADLINE:
        failure_late(f, false, false, msg);
        break;
    case SHOAL_ECHANGED:
        failure_set(f, FAILURE_UNAVAILABLE, code, NULL, "model_changed", "%s", msg);
        break;
    case SHOAL_ENOMEM:
    case SHOAL_ECANCELLED:
        failure_set(f, FAILURE_UNAVAILABLE, code, NULL, NULL, "%s", msg);
        break;
    default:
        failure_set(f, FAILURE_INTERNAL, code, NULL, NULL, "%s", msg);
        break;
    }
}

void failure_of_model(struct failure *f, int code, const char *msg)
{
    failure_of(f, code, msg);
    if (code == SHOAL_ELIMIT)
        f->reason = "context_length_exceeded";
}

void failure_count(struct model_stats *m, const struct failure *f)
{
    if (f->kind == FAILURE_BUSY)
        counter_add(&m->refused[MODEL_STATS_BUSY], 1);
    else if (f->kind == FAILURE_DEADLINE)
        counter_add(&m->refused[MODEL_STATS_DEADLINE], 1);
    else if (f->kind == FAILURE_INVALID)
        counter_add(&m->refused[MODEL_STATS_INVALID], 1);
}
