/* hit_json.c - see hit_json.h. */
#include "knowledge/hit_json.h"

#include <math.h>

static void put_text(struct json_out *j, const char *key, const char *text)
{
    if (!text[0])
        return;
    json_out_member_str(j, key, text);
}

static void put_number(struct json_out *j, const char *key, uint64_t v)
{
    json_out_member_uint(j, key, v);
}

void hit_json_put(struct json_out *j, const struct collection_hit *h, bool with_text)
{
    json_out_object(j);
    put_number(j, "id", (uint64_t)h->id);
    json_out_member_str(j, "document", h->doc);
    put_text(j, "title", h->title);
    put_text(j, "heading", h->heading);
    put_text(j, "ref", h->ref);
    if (h->page)
        put_number(j, "page", h->page);
    json_out_member_num(j, "score", h->score);
    if (!isnan(h->similarity))
        json_out_member_float(j, "similarity", h->similarity);
    if (h->by_vector)
        put_number(j, "rank_by_meaning", h->by_vector);
    if (h->by_words)
        put_number(j, "rank_by_words", h->by_words);
    if (with_text)
        json_out_member_str(j, "text", h->text);
    json_out_object_end(j);
}

void hit_json_info(struct json_out *j, const char *name, const struct collection_info *info)
{
    json_out_member_str(j, "name", name);
    json_out_member_str(j, "model", info->model);
    put_text(j, "version", info->version);
    put_number(j, "dimensions", info->n_dims);
    put_number(j, "chunk_tokens", info->max_tokens);
    put_number(j, "overlap", info->overlap);
    put_number(j, "documents", info->n_docs);
    put_number(j, "passages", info->n_chunks);
    put_number(j, "bytes", info->text_bytes);
    put_number(j, "file_bytes", info->file_bytes);
    put_number(j, "memory_bytes", info->memory_bytes);
    put_number(j, "indexed", info->n_indexed);
}
