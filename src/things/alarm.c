/* alarm.c - see alarm.h. */
#include "things/alarm.h"

#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "wire/json_out.h"

static const char *const kinds[ALARM_N_KINDS] = {"limit", "rate",    "range", "spike",
                                                 "shift", "drift",   "noise", "stuck",
                                                 "lost",  "pattern", "cycle"};
static const char *const severities[] = {"info", "warning", "critical"};
static const char *const changes[ALARM_N_CHANGES] = {"raised",  "worsened",  "acknowledged",
                                                     "cleared", "explained", "extended"};

const char *alarm_kind_name(enum alarm_kind k)
{
    return kinds[k];
}

const char *alarm_severity_name(enum alarm_severity s)
{
    return severities[s];
}

const char *alarm_change_name(enum alarm_change c)
{
    return changes[c];
}

/* ---- JSON ---- */

static void put_channel(struct json_out *j, const struct alarm_channel *c)
{
    json_out_object(j);
    json_out_member_str(j, "sensor", c->sensor);
    json_out_member_str(j, "title", c->title);
    json_out_member_str(j, "unit", c->unit);
    json_out_member_num(j, "value", c->value);
    json_out_member_num(j, "before", c->before);
    json_out_member_num(j, "normal_low", c->low);
    json_out_member_num(j, "normal_high", c->high);
    json_out_object_end(j);
}

static void put_evidence(struct json_out *j, const struct alarm_evidence *v)
{
    json_out_object(j);
    json_out_member_str(j, "sensor", v->sensor);
    json_out_member_str(j, "title", v->title);
    json_out_member_str(j, "unit", v->unit);
    json_out_member_str(j, "kind", kinds[v->kind]);
    json_out_member_str(j, "severity", severities[v->severity]);
    json_out_member_num(j, "value", v->value);
    json_out_member_num(j, "before", v->before);
    json_out_member_int(j, "since_ms", v->since_ms);
    json_out_member_int(j, "seen_ms", v->seen_ms);
    json_out_object_end(j);
}

/* Which detector decides about this kind: "fast" or "precise". */
static const char *detector_name(enum alarm_kind k)
{
    switch (k) {
    case ALARM_SPIKE:
    case ALARM_SHIFT:
    case ALARM_DRIFT:
    case ALARM_NOISE:
    case ALARM_PATTERN:
        return "precise";
    default:
        return "fast";
    }
}

void alarm_json(struct json_out *j, const struct alarm_event *e)
{
    json_out_member_uint(j, "id", e->id);
    json_out_member_str(j, "change", changes[e->change]);
    json_out_member_str(j, "kind", kinds[e->kind]);
    json_out_member_str(j, "severity", severities[e->severity]);
    json_out_member_str(j, "machine", e->machine);
    json_out_member_str(j, "machine_title", e->machine_title);
    json_out_member_array(j, "channels");
    for (uint32_t i = 0; i < e->n_channels; i++)
        put_channel(j, &e->channels[i]);
    json_out_array_end(j);
    json_out_member_array(j, "evidence");
    for (uint32_t i = 0; i < e->n_evidence; i++)
        put_evidence(j, &e->evidence[i]);
    json_out_array_end(j);
    json_out_member_num(j, "score", e->score);
    json_out_member_str(j, "detector", detector_name(e->kind));
    json_out_member_num(j, "limit", e->limit);
    json_out_member_bool(j, "learning", e->learned > 0);
    if (e->learned > 0)
        json_out_member_uint(j, "learned", e->learned);
    json_out_member_int(j, "since_ms", e->since_ms);
    json_out_member_int(j, "raised_ms", e->raised_ms);
    json_out_member_int(j, "changed_ms", e->changed_ms);
    json_out_key(j, "cleared_ms");
    if (e->cleared_ms)
        json_out_int(j, e->cleared_ms);
    else
        json_out_null(j);
    json_out_member_bool(j, "acknowledged", e->acknowledged);
    json_out_member_str(j, "acknowledged_by", e->acknowledged_by);
    json_out_member_str(j, "text", e->text);
    if (e->passage) {
        json_out_member_str(j, "passage", e->passage);
        json_out_member_str(j, "source", e->source);
    }
}

/* ---- sentences ---- */

/* Three or four digits, as on an instrument. */
static void put_value(struct buf *b, double v, const char *unit)
{
    double size = fabs(v);
    int digits = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    char text[40];
    if (size >= 1e7 || (size > 0 && size < 1e-3))
        snprintf(text, sizeof(text), "%.3g", v);
    else
        snprintf(text, sizeof(text), "%.*f", digits, v);
    /* 2.50 reads as 2.5 */
    char *dot = strchr(text, '.'), *end = text + strlen(text);
    while (dot && !strchr(text, 'e') && end > dot && (end[-1] == '0' || end[-1] == '.')) {
        bool was_dot = end[-1] == '.';
        *--end = '\0';
        if (was_dot)
            break;
    }
    buf_printf(b, "%s%s%s", text, *unit ? " " : "", unit);
}

static void put_span(struct buf *b, int64_t ms)
{
    if (ms < 1000)
        buf_printf(b, "%lld ms", (long long)(ms < 0 ? 0 : ms));
    else if (ms < 120000)
        buf_printf(b, "%lld s", (long long)((ms + 500) / 1000));
    else if (ms < 7200000)
        buf_printf(b, "%lld min", (long long)((ms + 30000) / 60000));
    else
        buf_printf(b, "%lld h", (long long)((ms + 1800000) / 3600000));
}

/* "Vibration on motor 3" */
static void put_subject(struct buf *b, const struct alarm_event *e, const struct alarm_channel *c)
{
    buf_puts(b, c->title);
    if (*e->machine_title)
        buf_printf(b, " on %s", e->machine_title);
}

static void put_change(struct buf *b, const struct alarm_event *e, const struct alarm_channel *c)
{
    int64_t took = e->changed_ms - e->since_ms;
    put_subject(b, e, c);
    if (!isfinite(c->before) || !isfinite(c->value)) {
        buf_puts(b, " is ");
        if (isfinite(c->value))
            put_value(b, c->value, c->unit);
        else
            buf_puts(b, "unknown");
        return;
    }
    buf_puts(b, c->value > c->before   ? " rose from "
                : c->value < c->before ? " fell from "
                                       : " is at ");
    put_value(b, c->before, c->value == c->before ? c->unit : "");
    if (c->value != c->before) {
        buf_puts(b, " to ");
        put_value(b, c->value, c->unit);
    }
    if (took > 0) {
        buf_puts(b, " within ");
        put_span(b, took);
    }
}

static void put_normal(struct buf *b, const struct alarm_channel *c)
{
    if (!isfinite(c->low) || !isfinite(c->high))
        return;
    buf_puts(b, " Normal is ");
    put_value(b, c->low, "");
    buf_puts(b, " to ");
    put_value(b, c->high, c->unit);
    buf_putc(b, '.');
}

/* "; bearing temperature is up 6 degrees": other channels that also left their usual level. */
static void put_others(struct buf *b, const struct alarm_event *e)
{
    for (uint32_t i = 1; i < e->n_channels && i < 3; i++) {
        const struct alarm_channel *c = &e->channels[i];
        double by = c->value - c->before;
        if (!isfinite(by) || by == 0)
            continue;
        buf_printf(b, "; %s is %s ", c->title, by > 0 ? "up" : "down");
        put_value(b, fabs(by), c->unit);
    }
}

static void put_main(struct buf *b, const struct alarm_event *e, const struct alarm_channel *c)
{
    switch (e->kind) {
    case ALARM_LIMIT:
        put_change(b, e, c);
        buf_puts(b, c->value > e->limit ? ", above the limit of " : ", below the limit of ");
        put_value(b, e->limit, c->unit);
        break;
    case ALARM_RATE:
        put_change(b, e, c);
        buf_puts(b, ", faster than the ");
        put_value(b, e->limit, c->unit);
        buf_puts(b, " per second that are allowed");
        break;
    case ALARM_NOISE:
        put_subject(b, e, c);
        buf_puts(b, " varies more than usual; it is now at ");
        put_value(b, c->value, c->unit);
        break;
    case ALARM_STUCK:
        put_subject(b, e, c);
        buf_puts(b, " has stayed at exactly ");
        put_value(b, c->value, c->unit);
        buf_puts(b, " for ");
        put_span(b, e->changed_ms - e->since_ms);
        break;
    case ALARM_CYCLE:
        put_subject(b, e, c);
        buf_puts(b, " has been at ");
        put_value(b, c->value, c->unit);
        buf_puts(b, " for ");
        put_span(b, e->changed_ms - e->since_ms);
        buf_puts(b, ", far longer than ever before it switched");
        break;
    case ALARM_LOST:
        put_subject(b, e, c);
        buf_puts(b, " has sent no good reading for ");
        put_span(b, e->changed_ms - e->since_ms);
        break;
    case ALARM_PATTERN:
        buf_printf(b, "The readings of %s do not fit together as usual: ",
                   *e->machine_title ? e->machine_title : c->title);
        buf_puts(b, c->title);
        buf_puts(b, " is at ");
        put_value(b, c->value, c->unit);
        break;
    case ALARM_SPIKE:
    case ALARM_RANGE:
    case ALARM_SHIFT:
    case ALARM_DRIFT:
    case ALARM_N_KINDS:
        put_change(b, e, c);
        break;
    }
}

void alarm_explain(struct buf *out, const struct alarm_event *e)
{
    if (e->n_channels == 0)
        return;
    const struct alarm_channel *c = &e->channels[0];
    put_main(out, e, c);
    put_others(out, e);
    buf_putc(out, '.');
    if (e->kind != ALARM_LIMIT && e->kind != ALARM_STUCK && e->kind != ALARM_LOST &&
        e->kind != ALARM_CYCLE)
        put_normal(out, c);
    if (e->learned > 0)
        buf_printf(out, " Still learning: only %u readings are known.", e->learned);
}
