/* api_admin.c - /admin/models: lists models, and loads, unloads, adds and removes them at run
 * time; and the same by the paths of llama.cpp's server. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "flow/pool.h"
#include "gateway/api/api.h"
#include "gateway/api/model_profiles.h"
#include "gateway/call/call.h"
#include "gateway/call/guard.h"
#include "wire/json_out.h"

struct body {
    const char *model, *action, *path, *task, *labels;
    bool pinned;
    int64_t context, parallel;
};

#define AT(member) offsetof(struct body, member)
const struct field api_admin_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model", NULL},
    {"action", FIELD_STR, AT(action), 0, 0, "load, unload, add or remove", NULL},
    {"path", FIELD_STR, AT(path), 0, 0, "add: the file or folder", NULL},
    {"task", FIELD_STR, AT(task), 0, 0, "add: the task it becomes the default model for", NULL},
    {"labels", FIELD_STR, AT(labels), 0, 0, "add: its label set", NULL},
    {"pinned", FIELD_BOOL, AT(pinned), 0, 0, "add: load now and keep", NULL},
    {"context", FIELD_INT, AT(context), 0, 1 << 24, "add: context length in tokens", NULL},
    {"parallel", FIELD_INT, AT(parallel), 0, 1024, "add: maximum number of tasks that run at once",
     NULL}};
const size_t api_n_admin_fields = sizeof(api_admin_fields) / sizeof(api_admin_fields[0]);

static double per_second(double ns)
{
    return ns > 0 ? 1e9 / ns : 0.0;
}

/* Its work since the server started, and its speed since it was loaded; 0: not known yet.
 */
static void put_measured(struct json_out *j, struct registry_model *m)
{
    struct model_stats *k = &m->stats;
    double prefill_ns, token_ns;
    registry_speed(m, &prefill_ns, &token_ns);
    json_out_member_uint(j, "requests", counter_read(&k->requests));
    json_out_member_num(j, "median_ms", (double)histogram_quantile(&k->total, 0.5) / 1e6);
    json_out_member_num(j, "tokens_per_s", per_second(token_ns));
    json_out_member_num(j, "prompt_tokens_per_s", per_second(prefill_ns));
}

static void put_engine(struct json_out *j, const struct shoal_engine *en)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(en, &info);
    json_out_member_str(j, "architecture", info.arch);
    json_out_member_uint(j, "parameters", info.n_params);
    json_out_member_uint(j, "file_bytes", info.file_bytes);
    json_out_member_uint(j, "context", info.n_ctx);
    json_out_member_str(j, "kernels", info.kernels);
    json_out_member_uint(j, "threads", info.n_threads);
}

static void put_model(void *ctx, const struct registry_model *m)
{
    struct json_out *j = ctx;
    const struct registry_slot *s = m->slot;
    json_out_object(j);
    json_out_member_str(j, "model", m->name);
    json_out_member_str(j, "task", m->task);
    json_out_member_str(j, "path", s->path);
    json_out_member_str(j, "state", registry_state_name(s->state));
    if (s->state == REGISTRY_LOADING) {
        json_out_key(j, "progress");
        json_out_num(j,
                     (double)atomic_load_explicit(&((struct registry_slot *)(uintptr_t)s)->progress,
                                                  memory_order_relaxed) /
                         1000.0);
    }
    if (s->error[0])
        json_out_member_str(j, "error", s->error);
    if (s->spec.apart) {
        json_out_member_str(j, "isolation", "process");
        json_out_member_uint(j, "restarts", s->n_restarts);
    }
    json_out_member_uint(j, "bytes", s->bytes);
    json_out_member_uint(j, "users", m->users);
    json_out_member_bool(j, "pinned", s->spec.pinned);
    json_out_member_num(j, "load_ms", s->load_ms);
    json_out_key(j, "version");
    const char *version = registry_identity(m)->version;
    version[0] ? json_out_str(j, version) : json_out_null(j);
    if (s->signer[0])
        json_out_member_str(j, "signer", s->signer);
    json_out_member_bool(j, "card", m->card != NULL);
    put_measured(j, (struct registry_model *)(uintptr_t)m);
    if (s->engine)
        put_engine(j, s->engine);
    else if (s->file_bytes > 0)
        json_out_member_uint(j, "file_bytes", s->file_bytes);
    json_out_object_end(j);
}

void api_admin_models(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_key(&j, "may_change"); /* whether this client may load and unload */
    json_out_bool(&j, guard_may_change(c));
    json_out_member_array(&j, "models");
    registry_each(c->gl->gw->registry, put_model, &j);
    json_out_array_end(&j);
    json_out_object_end(&j);
    call_json(c, 200);
}

/* ---- what stays after a restart ---- */

/* Writes a name to the store, or removes it: on the pool, for the disk. */
struct keeping {
    struct pool_task task;
    struct model_profiles *profiles;
    struct model_profile profile; /* texts are in the block; path NULL: remove the name */
};

static void on_keep(struct pool_task *t)
{
    struct keeping *k = EXECUTOR_OF(t, struct keeping, task);
    struct err e = {0};
    int rc = k->profile.path ? model_profiles_put(k->profiles, &k->profile, &e)
                             : model_profiles_forget(k->profiles, k->profile.name, &e);
    if (rc < 0 && rc != SHOAL_ENOTFOUND)
        log_warn("admin", "the change of %s is lost with the next start: %s", k->profile.name,
                 e.msg);
    mem_free(k);
}

static const char *copy_text(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *to = *at;
    memcpy(to, text, n);
    *at += n;
    return to;
}

/* A model that was added stays after a restart, one that was removed does not come back: unless
 * the server was started with --once. */
static void keep_change(struct call *c, const struct body *b)
{
    const bool adds = strcmp(b->action, "add") == 0;
    struct gw *gw = c->gl->gw;
    if (!gw->profiles || c->gl->config->once || !model_profiles_is_name(b->model) ||
        (!adds && strcmp(b->action, "remove") != 0))
        return;
    const char *const texts[] = {b->model, adds ? b->path : NULL, b->task, b->labels};
    size_t n = sizeof(struct keeping);
    for (size_t i = 0; i < 4; i++)
        n += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct keeping *k = mem_zalloc(n);
    if (!k)
        return;
    char *at = (char *)(k + 1);
    k->task.fn = on_keep;
    k->profiles = gw->profiles;
    k->profile = (struct model_profile){
        .context = (uint32_t)b->context, .parallel = (uint32_t)b->parallel, .pinned = b->pinned};
    k->profile.name = copy_text(&at, texts[0]);
    k->profile.path = copy_text(&at, texts[1]);
    k->profile.task = copy_text(&at, texts[2]);
    k->profile.labels = copy_text(&at, texts[3]);
    if (pool_submit(gw->pool, &k->task) < 0) {
        log_warn("admin", "the change of %s is lost with the next start: too much work", b->model);
        mem_free(k);
    }
}

static int act(struct registry *ms, const struct body *b, struct err *e)
{
    if (strcmp(b->action, "load") == 0)
        return registry_load(ms, b->model, e);
    if (strcmp(b->action, "unload") == 0)
        return registry_unload(ms, b->model, e);
    if (strcmp(b->action, "remove") == 0)
        return registry_remove(ms, b->model, e);
    if (strcmp(b->action, "add") != 0)
        return err_set(e, SHOAL_EINVAL, "'action' must be load, unload, add or remove");
    if (!b->path)
        return err_set(e, SHOAL_EINVAL, "'path' is missing");
    struct registry_spec spec = {.name = b->model,
                                 .path = b->path,
                                 .task = b->task,
                                 .labels = b->labels,
                                 .n_ctx = (uint32_t)b->context,
                                 .max_tasks = (uint32_t)b->parallel,
                                 .pinned = b->pinned};
    return registry_add(ms, &spec, e);
}

void api_admin_change(struct call *c)
{
    struct body b = {.model = NULL};
    struct fields_error fe = {{0}, {0}, NULL};
    struct err e = {0};
    int rc = fields_read(api_admin_fields, api_n_admin_fields, c->json, &b, c->lenient, &fe);
    if (rc == 0 && (!b.model || !b.model[0] || !b.action))
        rc = fields_fail(&fe, b.model ? "action" : "model", "missing_required_parameter",
                         "'model' and 'action' are required");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    char *path = NULL;
    if (strcmp(b.action, "add") == 0 && b.path) {
        rc = config_confine(c->gl->config, b.path, &path, &e);
        b.path = path;
    }
    if (rc == SHOAL_EINVAL) {
        call_fail(c, 403, NULL, "path", "path_refused", "%s", e.msg);
        return;
    }
    if (rc == 0)
        rc = act(c->gl->gw->registry, &b, &e);
    if (rc == 0)
        keep_change(c, &b);
    mem_free(path);
    if (rc < 0)
        call_fail_code(c, rc, e.msg);
    else
        api_admin_models(c);
}

/* ---- as llama.cpp's server calls it ---- */

const struct field api_models_change_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model", NULL}};
const size_t api_n_models_change_fields =
    sizeof(api_models_change_fields) / sizeof(api_models_change_fields[0]);

static void act_on(struct call *c, struct body *b, const char *action)
{
    struct err e = {0};
    b->action = action;
    const int rc = act(c->gl->gw->registry, b, &e);
    if (rc < 0) {
        call_fail_code(c, rc, e.msg);
        return;
    }
    keep_change(c, b);
    call_text(c, 200, "application/json", "{\"success\":true}", 16);
}

static void act_on_body(struct call *c, const char *action)
{
    struct body b = {.model = NULL};
    struct fields_error fe = {{0}, {0}, NULL};
    int rc = fields_read(api_models_change_fields, api_n_models_change_fields, c->json, &b,
                         c->lenient, &fe);
    if (rc == 0 && (!b.model || !b.model[0]))
        rc = fields_fail(&fe, "model", "missing_required_parameter", "'model' is required");
    if (rc < 0)
        call_fail_fields(c, &fe);
    else
        act_on(c, &b, action);
}

void api_models_load(struct call *c)
{
    act_on_body(c, "load");
}

void api_models_unload(struct call *c)
{
    act_on_body(c, "unload");
}

void api_models_remove(struct call *c)
{
    char name[256];
    struct body b = {.model = name};
    if (http_query(c->req, "model", name, sizeof(name)) && name[0])
        act_on(c, &b, "remove");
    else
        call_fail(c, 400, NULL, "model", "missing_required_parameter",
                  "the query needs the name of a model: DELETE /models?model=NAME");
}
