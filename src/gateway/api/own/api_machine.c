/* api_machine.c - /v1/machine: memory and speed of this machine, and the models that could be
 * pulled to it, with what can be expected of them.
 *
 * The recipes are on the disk, so the pool reads them; the loop answers. */
#include <string.h>

#include "base/mem.h"
#include "cluster/machine/node_measure.h"
#include "cluster/messages/node_state.h"
#include "cluster/node_machine.h"
#include "depot/store/model_store.h"
#include "depot/model_suggest.h"
#include "depot/source/recipe.h"
#include "flow/pool.h"
#include "gateway/api/api.h"
#include "gateway/api/model_profiles.h"
#include "gateway/call/call.h"
#include "gateway/measured.h"
#include "wire/json_out.h"

struct machine_job {
    struct pool_task task;
    struct executor_task finished;
    struct call *call; /* held */
    struct recipes *recipes;
    uint64_t disk_bytes;
    struct err why; /* there are no recipes */
};

struct loaded {
    uint64_t bytes;   /* of all models in memory */
    const char *name; /* one to look for */
    bool found;
    double tokens_per_second; /* that it reached here; 0: not known */
};

static void add_loaded(void *ctx, const struct registry_model *m)
{
    struct loaded *x = ctx;
    double prefill_ns, token_ns;
    if (m->slot->state == REGISTRY_READY)
        x->bytes += m->slot->bytes / (m->slot->n_names ? m->slot->n_names : 1);
    if (!x->name || strcmp(m->name, x->name) != 0)
        return;
    x->found = true;
    registry_speed(m, &prefill_ns, &token_ns);
    x->tokens_per_second = token_ns > 0 ? 1e9 / token_ns : 0;
}

/* The name that a recipe's model has here; NULL: it is not here. */
static const char *present_as(struct registry *all, const struct recipe *r, double *tokens_per_s)
{
    for (uint32_t i = 0; i <= r->n_also; i++) {
        struct loaded x = {.name = i == 0 ? r->name : r->also[i - 1]};
        registry_each(all, add_loaded, &x);
        *tokens_per_s = x.tokens_per_second;
        if (x.found)
            return x.name;
    }
    return NULL;
}

static void put_optional(struct json_out *j, const char *key, double value)
{
    json_out_key(j, key);
    value > 0 ? json_out_num(j, value) : json_out_null(j);
}

static void put_suggestion(struct json_out *j, struct registry *all, const struct recipe *r,
                           const struct model_room *room)
{
    double measured = 0;
    char reason[112];
    const char *here = present_as(all, r, &measured);
    const struct model_suggestion s = model_suggest(r, room, here != NULL);
    model_suggest_reason(reason, &s, room);
    json_out_object(j);
    json_out_member_str(j, "name", r->name);
    json_out_member_str(j, "about", r->about ? r->about : "");
    json_out_member_str(j, "task", r->task ? r->task : "");
    json_out_member_str(j, "licence", r->licence ? r->licence : "");
    json_out_member_uint(j, "bytes", s.bytes);
    json_out_member_uint(j, "download_bytes", s.download_bytes);
    json_out_member_uint(j, "memory_bytes", s.memory_bytes);
    json_out_member_bool(j, "fits", s.misfit == MODEL_FITS);
    json_out_member_str(j, "reason", reason);
    json_out_key(j, "present");
    here ? json_out_str(j, here) : json_out_null(j);
    put_optional(j, "tokens_per_s", measured > 0 ? measured : s.tokens_per_second);
    json_out_member_bool(j, "measured", measured > 0);
    json_out_object_end(j);
}

static void put_machine(struct call *c, const struct machine_job *k)
{
    struct gw *gw = c->gl->gw;
    struct node_measure *measure = measured_get(gw);
    struct node_state s = {.name = ""};
    struct loaded x = {.name = NULL};
    node_machine_fill(&s);
    if (measure)
        node_measure_fill(measure, &s);
    registry_each(gw->registry, add_loaded, &x);
    const uint64_t limit = c->gl->config->memory_bytes;
    /* Idle models make room for others. */
    const struct model_room room = {.memory_bytes = limit           ? limit
                                                    : s.memory_free ? s.memory_free + x.bytes
                                                                    : 0,
                                    .disk_bytes = k->disk_bytes,
                                    .bytes_per_second = s.bandwidth};
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_uint(&j, "cpus", s.n_cores);
    json_out_member_uint(&j, "memory_bytes", s.memory_bytes);
    json_out_member_uint(&j, "memory_free_bytes", s.memory_free);
    json_out_member_uint(&j, "models_limit_bytes", limit);
    json_out_member_uint(&j, "models_bytes", x.bytes);
    json_out_member_uint(&j, "disk_free_bytes", k->disk_bytes);
    put_optional(&j, "memory_bytes_per_s", s.bandwidth);
    json_out_member_array(&j, "suggested");
    for (uint32_t i = 0; k->recipes && i < k->recipes->n; i++)
        put_suggestion(&j, gw->registry, &k->recipes->v[i], &room);
    json_out_array_end(&j);
    json_out_object_end(&j);
    call_json(c, 200);
}

static void on_finished(struct executor_task *t)
{
    struct machine_job *k = EXECUTOR_OF(t, struct machine_job, finished);
    struct call *c = k->call;
    if (c->req && k->why.code < 0)
        call_fail_code(c, k->why.code, k->why.msg);
    else if (c->req)
        put_machine(c, k);
    recipes_close(k->recipes);
    mem_free(k);
    call_release(c);
}

static void on_pool(struct pool_task *t)
{
    struct machine_job *k = EXECUTOR_OF(t, struct machine_job, task);
    struct model_profiles *profiles = k->call->gl->gw->profiles;
    int rc = recipes_open(&k->recipes, NULL, &k->why);
    if (rc == 0 && profiles)
        k->disk_bytes = model_store_disk_free(model_profiles_store(profiles));
    if (k->disk_bytes == UINT64_MAX) /* the store is not there yet */
        k->disk_bytes = 0;
    executor_post(k->call->gl->flow.executor, &k->finished);
}

void api_machine(struct call *c)
{
    struct machine_job *k = mem_zalloc(sizeof(*k));
    if (!k) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    *k = (struct machine_job){.task = {.fn = on_pool}, .finished = {.fn = on_finished}, .call = c};
    call_hold(c);
    if (pool_submit(c->gl->gw->pool, &k->task) == 0)
        return;
    mem_free(k);
    call_refuse(c, GW_REFUSED_BUSY, 503, 1, "the server is busy");
    call_release(c);
}
