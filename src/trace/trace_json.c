/* trace_json.c - see trace_json.h. */
#include "trace/trace_json.h"

#include "base/hash.h"

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void put_ms(struct json_out *j, const char *key, uint64_t ns)
{
    json_out_member_rounded(j, key, ms(ns), 3);
}

static void put_notes(struct json_out *j, const struct trace_note *n)
{
    json_out_member_object(j, "attributes");
    for (; n; n = n->next) {
        json_out_key(j, n->key);
        if (n->text)
            json_out_str(j, n->text);
        else
            json_out_int(j, n->number);
    }
    json_out_object_end(j);
}

static void put_span(struct json_out *j, const struct trace_view *v, const struct trace_span *s)
{
    char id[17];
    json_out_object(j);
    hash_hex(id, s->id);
    json_out_member_str(j, "id", id);
    json_out_key(j, "parent");
    if (s->parent == TRACE_NO_SPAN)
        json_out_null(j);
    else
        json_out_uint(j, s->parent);
    json_out_member_str(j, "name", s->name);
    put_ms(j, "start_ms", s->start_ns - v->spans[TRACE_ROOT].start_ns);
    put_ms(j, "took_ms", s->end_ns - s->start_ns);
    json_out_member_bool(j, "failed", s->failed);
    put_notes(j, s->notes);
    json_out_object_end(j);
}

void trace_json(struct json_out *j, struct trace *t, bool spans)
{
    const struct trace_view v = trace_look(t);
    const struct trace_span *root = &v.spans[TRACE_ROOT];
    char id[33];
    trace_context_id(id, &v.from);
    json_out_object(j);
    json_out_member_str(j, "trace_id", id);
    json_out_member_str(j, "request", v.request);
    json_out_member_str(j, "client", v.client);
    json_out_member_str(j, "name", root->name);
    json_out_member_uint(j, "began_unix_ms", (root->start_ns + v.unix_ns) / 1000000u);
    put_ms(j, "took_ms", root->end_ns - root->start_ns);
    json_out_member_bool(j, "failed", root->failed);
    json_out_member_bool(j, "sampled", v.from.sampled);
    if (v.n_left_out)
        json_out_member_uint(j, "spans_left_out", v.n_left_out);
    if (spans) {
        json_out_member_array(j, "spans");
        for (uint32_t i = 0; i < v.n_spans; i++)
            put_span(j, &v, &v.spans[i]);
        json_out_array_end(j);
    }
    json_out_object_end(j);
}
