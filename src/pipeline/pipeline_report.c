/* pipeline_report.c - see pipeline_report.h. */
#include "pipeline/pipeline_report.h"

#include "wire/value_json.h"
#include "pipeline/graph/graph_kind.h"

#define MAX_SHOWN 60u

const char *pipeline_state_name(enum pipeline_state s)
{
    static const char *const names[] = {"unused", "waiting", "running", "pending",
                                        "done",   "skipped", "failed"};
    return names[s];
}

static double ms(uint64_t ns)
{
    return (double)(ns / 1000u) / 1000.0;
}

static void put_step(struct json_out *j, const struct pipeline_report_step *s)
{
    json_out_object(j);
    json_out_member_str(j, "name", s->name);
    json_out_member_str(j, "do", graph_kinds[s->kind].name);
    json_out_member_str(j, "state", pipeline_state_name(s->state));
    if (s->state != PIPELINE_UNUSED && s->state != PIPELINE_WAITING) {
        json_out_member_num(j, "start_ms", ms(s->start_ns));
        json_out_member_num(j, "ms", ms(s->ns));
    }
    json_out_member_bool(j, "degraded", s->degraded);
    if (s->late)
        json_out_member_bool(j, "timeout", true);
    if (s->why[0])
        json_out_member_str(j, "error", s->why);
    if (s->n_items > 0)
        json_out_member_uint(j, "items", s->n_items);
    if (s->state == PIPELINE_DONE) {
        json_out_key(j, "output");
        value_json_put(j, &s->value);
    }
    json_out_object_end(j);
}

void pipeline_report_json(struct json_out *j, const struct pipeline_report *r, bool explain)
{
    json_out_member_str(j, "flow", r->flow);
    json_out_key(j, "output");
    value_json_put(j, &r->output);
    json_out_member_bool(j, "degraded", r->degraded);
    json_out_member_num(j, "total_ms", ms(r->total_ns));
    if (r->budget_ns > 0)
        json_out_member_num(j, "budget_ms", ms(r->budget_ns));
    if (!explain)
        return;
    json_out_member_array(j, "steps");
    for (uint32_t i = 0; i < r->n_steps; i++)
        put_step(j, &r->steps[i]);
    json_out_array_end(j);
}

/* The first of a value, in one line. */
static void put_short(struct buf *b, const struct value *v)
{
    struct buf all;
    buf_init(&all, (size_t)8 << 20);
    struct json_out j = json_out_make(&all);
    value_json_put(&j, v);
    size_t n = all.len;
    if (n > MAX_SHOWN) {
        n = MAX_SHOWN;
        while (n > 0 && ((unsigned char)buf_str(&all)[n] & 0xc0) == 0x80)
            n--;
    }
    buf_put(b, buf_str(&all), n);
    if (n < all.len)
        buf_puts(b, "...");
    buf_fini(&all);
}

void pipeline_report_text(struct buf *b, const struct pipeline_report *r)
{
    buf_printf(b, "%-16s %-10s %-9s %10s %10s  %s\n", "STEP", "DOES", "STATE", "START ms", "ms",
               "RESULT");
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const struct pipeline_report_step *s = &r->steps[i];
        buf_printf(b, "%-16s %-10s %-9s", s->name, graph_kinds[s->kind].name,
                   s->degraded ? "degraded" : pipeline_state_name(s->state));
        if (s->state == PIPELINE_UNUSED || s->state == PIPELINE_WAITING)
            buf_printf(b, " %10s %10s  ", "-", "-");
        else
            buf_printf(b, " %10.2f %10.2f  ", ms(s->start_ns), ms(s->ns));
        if (s->state == PIPELINE_DONE)
            put_short(b, &s->value);
        if (s->why[0])
            buf_printf(b, "%s(%s)", s->state == PIPELINE_DONE ? " " : "", s->why);
        buf_putc(b, '\n');
    }
    buf_printf(b, "%.2f ms", ms(r->total_ns));
    if (r->budget_ns > 0)
        buf_printf(b, " of %.0f ms", ms(r->budget_ns));
    buf_printf(b, "%s\n", r->degraded ? ", degraded" : "");
}
