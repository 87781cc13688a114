/* quantize_report.c - see quantize_report.h. */
#include "cmd/model/quantize_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes_text.h"

/* "f32, f16, q8_0, ..." */
static void list_kinds(char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < QUANTIZE_N_KINDS && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, i ? ", %s" : "%s",
                              quantize_kind_name((enum quantize_kind)i));
}

int quantize_report_kind(const struct opts *o, enum quantize_kind *kind)
{
    char kinds[160];
    const char *name = opts_text(o, "type");
    list_kinds(kinds, sizeof(kinds));
    if (!name)
        return opts_usage(o->page, "no type given: use --type with one of %s", kinds);
    if (!quantize_kind_from_name(name, kind))
        return opts_usage(o->page, "--type is %s, expected one of %s", name, kinds);
    return CMD_OK;
}

bool quantize_report_progress(void *ctx, const struct quantize_progress *p)
{
    struct quantize_report_watch *w = ctx;
    double part = p->bytes_total ? (double)p->bytes_done / (double)p->bytes_total : 0;
    term_progress_show(&w->bar, part, p->tensor);
    return !term_interrupted(w->interrupt_fd);
}

void quantize_report_text(struct buf *b, const struct quantize_result *r, bool tensors)
{
    char x[32], y[32];
    for (size_t i = 0; tensors && i < r->n_tensors; i++) {
        const struct quantize_tensor *t = &r->tensors[i];
        buf_printf(b, "%-32s %-6s -> %-6s %10s", t->name, quant_info(t->from)->name,
                   quant_info(t->to)->name, bytes_text(x, (double)t->bytes_to));
        if (t->relative > 0)
            buf_printf(b, "  error %.2f %%%s", 100 * t->relative,
                       t->important ? ", calibrated" : "");
        buf_putc(b, '\n');
    }
    for (size_t i = 0; i < sizeof(r->types) / sizeof(r->types[0]); i++)
        if (r->types[i].n_tensors)
            buf_printf(b, "%-8s %5u tensors %12s\n", quant_info((uint32_t)i)->name,
                       r->types[i].n_tensors, bytes_text(x, (double)r->types[i].n_bytes));
    buf_printf(b, "size     %s -> %s (%.1f %%)\n", bytes_text(x, (double)r->bytes_from),
               bytes_text(y, (double)r->bytes_to),
               r->bytes_from ? 100 * (double)r->bytes_to / (double)r->bytes_from : 0);
}

void quantize_report_json(struct json_out *j, const struct quantize_result *r)
{
    json_out_member_uint(j, "bytes_from", r->bytes_from);
    json_out_member_uint(j, "bytes_to", r->bytes_to);
    json_out_member_array(j, "types");
    for (size_t i = 0; i < sizeof(r->types) / sizeof(r->types[0]); i++) {
        if (!r->types[i].n_tensors)
            continue;
        json_out_object(j);
        json_out_member_str(j, "type", quant_info((uint32_t)i)->name);
        json_out_member_uint(j, "tensors", r->types[i].n_tensors);
        json_out_member_uint(j, "bytes", r->types[i].n_bytes);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_member_array(j, "tensors");
    for (size_t i = 0; i < r->n_tensors; i++) {
        const struct quantize_tensor *t = &r->tensors[i];
        json_out_object(j);
        json_out_member_str(j, "name", t->name);
        json_out_member_str(j, "from", quant_info(t->from)->name);
        json_out_member_str(j, "to", quant_info(t->to)->name);
        json_out_member_uint(j, "bytes", t->bytes_to);
        json_out_member_num(j, "rmse", t->rmse);
        json_out_member_num(j, "relative", t->relative);
        json_out_member_bool(j, "calibrated", t->important);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}
