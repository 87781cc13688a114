/* tei.c - see tei.h. */
#include "gateway/api/hf/tei.h"

#include "gateway/api/hf/tgi.h"
#include "gateway/call/call.h"
#include "wire/json_out.h"

/* The model that /embed uses when none is named, else the one of /rerank or /predict. */
struct shown {
    struct json_out j;
    enum shoal_kind kind;
    bool found;
};

static void put_info(void *ctx, const struct registry_model *m)
{
    struct shown *x = ctx;
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct json_out *j = &x->j;
    if (x->found || !m->slot->engine || !(m->slot->kinds & x->kind))
        return;
    shoal_engine_info(m->slot->engine, &info);
    x->found = true;
    json_out_object(j);
    json_out_member_str(j, "model_id", m->name);
    json_out_key(j, "model_sha");
    const char *version = registry_identity(m)->version;
    version[0] ? json_out_str(j, version) : json_out_null(j);
    json_out_member_str(j, "model_dtype", "float32");
    json_out_member_object(j, "model_type");
    json_out_key(j, x->kind == SHOAL_KIND_EMBED    ? "embedding"
                    : x->kind == SHOAL_KIND_RERANK ? "reranker"
                                                   : "classifier");
    json_out_object(j);
    json_out_object_end(j);
    json_out_object_end(j);
    json_out_member_uint(j, "max_concurrent_requests", info.max_tasks);
    json_out_member_uint(j, "max_input_length", info.n_ctx);
    json_out_member_uint(j, "max_batch_tokens", info.n_ctx);
    json_out_member_null(j, "max_batch_requests");
    json_out_member_uint(j, "max_client_batch_size", REQUEST_MAX_INPUTS);
    json_out_member_bool(j, "auto_truncate", true);
    json_out_member_uint(j, "tokenization_workers", 1);
    json_out_member_str(j, "version", shoal_version());
    json_out_member_null(j, "sha");
    json_out_member_null(j, "docker_label");
    json_out_object_end(j);
}

void tei_info(struct call *c)
{
    static const enum shoal_kind kinds[] = {SHOAL_KIND_EMBED, SHOAL_KIND_RERANK,
                                            SHOAL_KIND_CLASSIFY};
    struct shown x = {.j = json_out_make(&c->out)};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !x.found; i++) {
        x.kind = kinds[i];
        registry_each(c->gl->gw->registry, put_info, &x);
    }
    if (x.found || tgi_put_info(c))
        call_json(c, 200);
    else
        call_fail(c, 404, NULL, NULL, "model_not_found", "no model is loaded");
}
