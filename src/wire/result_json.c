/* result_json.c - see result_json.h. */
#include "wire/result_json.h"

static void put_labels(struct json_out *j, const struct shoal_result *r, uint32_t top)
{
    uint32_t n = top && top < r->n_labels ? top : r->n_labels;
    json_out_member_str(j, "label", r->label);
    json_out_member_float(j, "confidence", r->confidence);
    json_out_member_array(j, "labels");
    for (uint32_t i = 0; i < n; i++) {
        json_out_object(j);
        json_out_member_str(j, "label", r->labels[i].name);
        json_out_member_float(j, "score", r->labels[i].score);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_spans(struct json_out *j, const char *key, const struct shoal_result *r,
                      const char *text)
{
    json_out_member_array(j, key);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct shoal_span *s = &r->spans[i];
        json_out_object(j);
        if (s->label)
            json_out_member_str(j, "label", s->label);
        json_out_member_strn(j, "text", text + s->start, s->end - s->start);
        json_out_member_uint(j, "start", s->start_char);
        json_out_member_uint(j, "end", s->end_char);
        json_out_member_float(j, "score", s->score);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_values(struct json_out *j, const struct shoal_result *r)
{
    if (r->n_values == 1) {
        json_out_member_num(j, "score", r->values[0]);
        return;
    }
    json_out_member_array(j, "scores");
    for (uint32_t i = 0; i < r->n_values; i++)
        json_out_num(j, r->values[i]);
    json_out_array_end(j);
}

void result_json_answer(struct json_out *j, const struct shoal_result *r, const char *text,
                        uint32_t top)
{
    switch (r->kind) {
    case SHOAL_KIND_CLASSIFY:
        put_labels(j, r, top);
        break;
    case SHOAL_KIND_TAG:
        put_spans(j, "spans", r, text);
        break;
    case SHOAL_KIND_EMBED:
        json_out_member_array(j, "embedding");
        for (uint32_t i = 0; i < r->n_dims; i++)
            json_out_float(j, r->vector[i]);
        json_out_array_end(j);
        break;
    case SHOAL_KIND_RERANK:
    case SHOAL_KIND_SCORE:
        put_values(j, r);
        break;
    case SHOAL_KIND_SUMMARIZE:
        json_out_member_strn(j, "summary", r->text, r->text_bytes);
        if (r->n_spans > 0)
            put_spans(j, "sentences", r, text);
        break;
    case SHOAL_KIND_TRANSCRIBE:
        json_out_member_strn(j, "text", r->text, r->text_bytes);
        break;
    case SHOAL_KIND_SPEAK: /* its sound is no JSON */
        json_out_member_uint(j, "samples", r->n_samples);
        json_out_member_uint(j, "sample_rate", r->sample_rate);
        break;
    case SHOAL_KIND_GENERATE:
        break;
    }
}

void result_json_cost(struct json_out *j, const struct shoal_result *r)
{
    if (r->n_tokens > 0)
        json_out_member_uint(j, "tokens", r->n_tokens);
    if (r->truncated)
        json_out_member_bool(j, "truncated", true);
    json_out_member_uint(j, "batch", r->batch);
    json_out_member_num(j, "queue_ms", (double)r->queue_ns / 1e6);
    json_out_member_num(j, "run_ms", (double)r->run_ns / 1e6);
    json_out_member_num(j, "total_ms", (double)r->total_ns / 1e6);
}
