/* ollama_manage.c - see ollama_manage.h.
 *
 * A call becomes a job: the loop reads the body and finds the model it is about, the pool does disk
 * work, and the loop changes the registry and answers. Network transfers may take hours: they have
 * their own thread, which reports progress to the loop. */
#include "gateway/api/ollama/ollama_manage.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "depot/model_pull.h"
#include "depot/model_push.h"
#include "depot/store/model_store.h"
#include "depot/source/web.h"
#include "flow/flow_run.h"
#include "flow/pool.h"
#include "flow/request.h"
#include "gateway/api/model_profiles.h"
#include "gateway/api/ollama/go_template.h"
#include "gateway/api/ollama/ollama.h"
#include "gateway/call/call.h"
#include "wire/json_out.h"

#define MAX_TEMPLATE_BYTES ((size_t)4 << 20)
#define MAX_JOB_BYTES ((size_t)8 << 20)
#define BLOB_PATH "/api/blobs/"
#define NO_REGISTRY                                                                                \
    "no registry is configured to push to: set 'ollama.registry' to a folder or to the URL of a "  \
    "registry"
#define MAX_TRANSFERS 2u
#define PROGRESS_NS 100000000u

enum action { ACTION_CREATE, ACTION_COPY, ACTION_DELETE, ACTION_PULL, ACTION_PUSH, ACTION_BLOB };

struct body {
    const char *model, *name, *from, *template, *system, *source, *destination, *digest, *modelfile;
    const cJSON *files, *parameters, *license, *messages;
    bool stream, insecure;
};

#define AT(member) offsetof(struct body, member)
#define STREAM                                                                                     \
    {                                                                                              \
        "stream", FIELD_BOOL, AT(stream), 0, 0, "one JSON object per line; default: true", NULL    \
    }
#define NAMES                                                                                      \
    {"model", FIELD_STR, AT(model), 0, 0, "name of the model", NULL},                              \
    {                                                                                              \
        "name", FIELD_STR, AT(name), 0, 0, "same as model", NULL                                   \
    }
const struct field ollama_create_fields[] = {
    NAMES,
    {"from", FIELD_STR, AT(from), 0, 0, "a model, or the path of a file in a folder of model_dirs",
     NULL},
    {"files", FIELD_VALUE, AT(files), 0, 0, "file names and the digests of their blobs",
     "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"},
    {"template", FIELD_STR, AT(template), 0, 0, "chat template, Jinja", NULL},
    {"system", FIELD_STR, AT(system), 0, 0, "system message", NULL},
    {"parameters", FIELD_VALUE, AT(parameters), 0, 0, "default options", "{\"type\":\"object\"}"},
    {"license", FIELD_VALUE, AT(license), 0, 0, "a text, or a list of them", "{}"},
    STREAM,
    {"quantize", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"adapters", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "messages in front of every conversation",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"},
    {"modelfile", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
const size_t ollama_n_create_fields =
    sizeof(ollama_create_fields) / sizeof(ollama_create_fields[0]);
const struct field ollama_copy_fields[] = {
    {"source", FIELD_STR, AT(source), 0, 0, "a model", NULL},
    {"destination", FIELD_STR, AT(destination), 0, 0, "its other name", NULL}};
const size_t ollama_n_copy_fields = sizeof(ollama_copy_fields) / sizeof(ollama_copy_fields[0]);
const struct field ollama_name_fields[] = {
    NAMES,
    STREAM,
    {"insecure", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"username", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"password", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL}};
const size_t ollama_n_name_fields = sizeof(ollama_name_fields) / sizeof(ollama_name_fields[0]);

struct manage_job {
    struct pool_task task;
    struct executor_task finished;
    struct call *call; /* held */
    struct arena arena;
    enum action action;
    bool stream;
    struct model_profiles *store;
    struct model_profile profile; /* texts in the arena; path NULL: not known yet */
    const char *registry;         /* the folder or the URL of pull and push; or NULL */
    const char *hub;
    unsigned sources; /* that a pull may use without a registry */
    uint64_t max_model;
    const char *digest;
    char *body; /* of a blob; mem_free */
    size_t body_bytes;
    /* what became of it */
    int rc;
    struct err error;
    uint64_t bytes;
    char path[PATH_MAX], sum[MODEL_PROFILES_DIGEST_BYTES];
    /* a transfer */
    pthread_t thread;
    bool transfer;
    _Atomic bool stop, posted; /* posted: `step` is on its way to the loop */
    struct executor_task step;
    pthread_mutex_t lock; /* guards everything below */
    char at_digest[MODEL_PROFILES_DIGEST_BYTES];
    uint64_t at_total, at_completed, told_ns;
};

/* ---- jobs ---- */

static struct manage_job *job_create(struct call *c, enum action action)
{
    struct manage_job *j = mem_zalloc(sizeof(*j));
    if (!j) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    arena_init(&j->arena, MAX_JOB_BYTES);
    j->call = c;
    j->action = action;
    j->stream = true;
    j->store = c->gl->gw->profiles;
    j->max_model = c->gl->config->ollama_max_model;
    pthread_mutex_init(&j->lock, NULL);
    call_hold(c);
    return j;
}

static void job_free(struct manage_job *j)
{
    struct call *c = j->call;
    arena_fini(&j->arena);
    pthread_mutex_destroy(&j->lock);
    mem_free(j->body);
    mem_free(j);
    call_release(c);
}

static const char *keep(struct manage_job *j, const char *text)
{
    return text ? arena_copy(&j->arena, text, strlen(text) + 1) : NULL;
}

static void fail(struct manage_job *j, int status, const char *param, const char *code,
                 const char *msg)
{
    call_fail(j->call, status, NULL, param, code, "%s", msg);
    job_free(j);
}

/* ---- the disk ---- */

/* FOLDER/NAME.gguf, with ':' as '-'; names from the registry are already checked. */
static void registry_path(const struct manage_job *j, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%.3500s/%.200s.gguf", j->registry, j->profile.name);
    for (char *p = path + strlen(j->registry); n > 0 && *p; p++)
        if (*p == ':')
            *p = '-';
}

static int push(struct manage_job *j)
{
    char to[PATH_MAX];
    struct stat st;
    registry_path(j, to);
    if (stat(j->profile.path, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(&j->error, SHOAL_EUNSUPPORTED,
                       "the model '%.64s' is a folder: only models of one file can be pushed",
                       j->profile.name);
    j->bytes = (uint64_t)st.st_size;
    for (char *p = to + strlen(j->registry) + 1; (p = strchr(p, '/'));
         p++) { /* names of two parts */
        *p = '\0';
        mkdir(to, 0755);
        *p = '/';
    }
    return model_profiles_copy_out(j->profile.path, to, &j->error);
}

/* ---- transfers, on a thread of their own ---- */

static bool on_stopped(void *ctx)
{
    struct manage_job *j = ctx;
    return atomic_load(&j->stop) || atomic_load(&j->call->gl->gw->draining);
}

/* Reports progress to the loop at most every PROGRESS_NS, and the end of a blob. */
static void on_bytes(void *ctx, const struct model_progress *p)
{
    struct manage_job *j = ctx;
    uint64_t now = clock_ns();
    pthread_mutex_lock(&j->lock);
    bool due = p->done == p->total || now - j->told_ns >= PROGRESS_NS;
    snprintf(j->at_digest, sizeof(j->at_digest), "%s", p->digest[0] ? p->digest : "sha256:");
    j->at_total = p->total;
    j->at_completed = p->done;
    if (due)
        j->told_ns = now;
    pthread_mutex_unlock(&j->lock);
    if (due && !atomic_exchange(&j->posted, true))
        executor_post(j->call->gl->flow.executor, &j->step);
}

static void set_sum(struct manage_job *j, const uint8_t sum[SHA256_BYTES])
{
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, sum);
    snprintf(j->sum, sizeof(j->sum), "sha256:%s", hex);
}

/* From the registry of the configuration: a URL, or a folder with files NAME.gguf. Without one,
 * from where the name says. */
static int pull(struct manage_job *j, struct model_source_opts *o)
{
    char from[PATH_MAX];
    struct model_pulled m;
    struct stat st;
    const char *what = j->profile.name;
    if (j->registry && web_is_url(j->registry)) {
        o->registry = j->registry;
    } else if (j->registry) {
        registry_path(j, from);
        if (stat(from, &st) < 0)
            return err_set(&j->error, SHOAL_ENOTFOUND, "the registry has no model '%.64s' (%.200s)",
                           j->profile.name, from);
        what = from;
    } else {
        o->allow = j->sources;
    }
    int rc = model_pull(&m, what, j->profile.name, o, &j->error);
    if (rc < 0)
        return rc;
    memcpy(j->path, m.path, sizeof(j->path));
    set_sum(j, m.sha256);
    j->bytes = m.bytes;
    j->profile.path = j->path;
    rc = registry_check_path(j->path, &j->error);
    if (rc == 0)
        rc = model_profiles_adopt(j->store, j->profile.name, &j->error);
    if (rc < 0) { /* nothing that cannot be loaded stays */
        (void)!model_profiles_adopt(j->store, j->profile.name, NULL);
        (void)!model_profiles_remove(j->store, j->profile.name, NULL);
    }
    return rc;
}

static int push_remote(struct manage_job *j, const struct model_source_opts *o)
{
    const struct model_push_opts p = {.base = j->registry,
                                      .name = j->profile.name,
                                      .path = j->profile.path,
                                      .system = j->profile.system,
                                      .parameters = j->profile.parameters,
                                      .license = j->profile.license,
                                      .messages = j->profile.messages};
    struct model_pushed m;
    int rc = model_push(&m, &p, o, &j->error);
    set_sum(j, m.sha256);
    j->bytes = m.bytes;
    return rc;
}

static void *run_transfer(void *arg)
{
    struct manage_job *j = arg;
    struct model_source_opts o = {.store = model_profiles_store(j->store),
                                  .stop = &j->stop,
                                  .stopped = on_stopped,
                                  .hub = j->hub,
                                  .trust = j->call->gl->gw->trust,
                                  .max_bytes = j->max_model,
                                  .progress = on_bytes,
                                  .ctx = j};
    j->rc = j->action == ACTION_PULL ? pull(j, &o) : push_remote(j, &o);
    executor_post(j->call->gl->flow.executor, &j->finished);
    return NULL;
}

static void on_pool(struct pool_task *t)
{
    struct manage_job *j = LOOP_OF(t, struct manage_job, task);
    switch (j->action) {
    case ACTION_CREATE:
        j->rc = registry_check_path(j->profile.path, &j->error);
        if (j->rc == 0)
            j->rc = model_profiles_put(j->store, &j->profile, &j->error);
        break;
    case ACTION_COPY:
        j->rc = model_profiles_put(j->store, &j->profile, &j->error);
        break;
    case ACTION_DELETE:
        j->rc = model_profiles_remove(j->store, j->profile.name, &j->error);
        if (j->rc == SHOAL_ENOTFOUND) /* a configured model: only the registry knows it */
            j->rc = 0;
        break;
    case ACTION_PULL: /* has a thread of its own */
    case ACTION_PUSH:
        j->rc = push(j);
        break;
    case ACTION_BLOB:
        j->rc = model_profiles_put_blob(j->store, j->digest, j->body, j->body_bytes, &j->error);
        break;
    }
    executor_post(j->call->gl->flow.executor, &j->finished);
}

/* ---- answers ---- */

static void put_status(struct manage_job *j, const char *status, bool with_bytes)
{
    struct json_out out = json_out_make(&j->call->out);
    json_out_object(&out);
    json_out_member_str(&out, "status", status);
    if (with_bytes) {
        json_out_member_str(&out, "digest", j->sum);
        json_out_member_uint(&out, "total", j->bytes);
        json_out_member_uint(&out, "completed", j->bytes);
    }
    json_out_object_end(&out);
    call_line_end(j->call);
}

/* How far a transfer is. */
static void on_step(struct executor_task *t)
{
    struct manage_job *j = LOOP_OF(t, struct manage_job, step);
    struct call *c = j->call;
    char status[32];
    atomic_store(&j->posted, false);
    if (!c->req || !j->stream)
        return;
    if (!c->began) {
        call_begin(c, "application/x-ndjson");
        buf_clear(&c->out);
        put_status(j, j->action == ACTION_PULL ? "pulling manifest" : "retrieving manifest", false);
    }
    pthread_mutex_lock(&j->lock);
    struct json_out out = json_out_make(&c->out);
    json_out_object(&out);
    snprintf(status, sizeof(status), "%s %.12s", j->action == ACTION_PULL ? "pulling" : "pushing",
             j->at_digest + 7);
    json_out_member_str(&out, "status", status);
    json_out_member_str(&out, "digest", j->at_digest);
    json_out_member_uint(&out, "total", j->at_total);
    json_out_member_uint(&out, "completed", j->at_completed);
    json_out_object_end(&out);
    pthread_mutex_unlock(&j->lock);
    call_line_end(c);
    call_flush(c);
}

static void answer(struct manage_job *j)
{
    struct call *c = j->call;
    bool moves = j->action == ACTION_PULL || j->action == ACTION_PUSH;
    if (!c->req)
        return;
    if (j->action == ACTION_COPY || j->action == ACTION_DELETE || j->action == ACTION_BLOB) {
        call_text(c, j->action == ACTION_BLOB ? 201 : 200, "application/json", "", 0);
        return;
    }
    const bool began = c->began;
    buf_clear(&c->out);
    if (!j->stream) {
        struct json_out out = json_out_make(&c->out);
        json_out_object(&out);
        json_out_member_str(&out, "status", "success");
        json_out_object_end(&out);
        call_json(c, 200);
        return;
    }
    if (!began)
        call_begin(c, "application/x-ndjson");
    buf_clear(&c->out);
    if (moves) {
        if (!began)
            put_status(j, j->action == ACTION_PULL ? "pulling manifest" : "retrieving manifest",
                       false);
        if (!began && j->bytes > 0)
            put_status(j, j->action == ACTION_PULL ? "pulling model" : "pushing model", true);
        put_status(j, "verifying sha256 digest", false);
    } else {
        put_status(j, "reading model metadata", false);
    }
    put_status(j, j->action == ACTION_PUSH ? "pushing manifest" : "writing manifest", false);
    put_status(j, "success", false);
    call_end_flushed(c);
}

/* Adds the model to the registry, replacing an earlier one of this name. */
static int publish(struct manage_job *j)
{
    struct registry *all = j->call->gl->gw->registry;
    const struct registry_spec spec = {.name = j->profile.name, .path = j->profile.path};
    enum registry_state state;
    int rc;
    do { /* whoever watches the store may have offered it meanwhile */
        struct err e = {0};
        if (registry_state(all, spec.name, &state) && registry_remove(all, spec.name, &e) < 0 &&
            e.code != SHOAL_ENOTFOUND)
            return err_set(&j->error, e.code, "%s", e.msg);
        j->error = (struct err){0};
        rc = registry_add(all, &spec, &j->error);
    } while (rc == SHOAL_EINVAL && registry_state(all, spec.name, &state));
    return rc;
}

/* A registry that sends nonsense is not the client's mistake. */
static void fail_finished(struct manage_job *j)
{
    struct call *c = j->call;
    const char *msg = j->error.msg[0] ? j->error.msg : err_text(j->rc);
    if (j->rc == SHOAL_ECANCELLED)
        msg = "the server is stopping: pull again to resume";
    if (!c->began && j->transfer && (j->rc == SHOAL_EFORMAT || j->rc == SHOAL_EIO)) {
        call_fail(c, 502, NULL, NULL, "registry_failed", "%s", msg);
    } else if (!c->began) {
        call_fail_code(c, j->rc == SHOAL_EFORMAT ? SHOAL_EINVAL : j->rc, msg);
    } else {
        buf_clear(&c->out);
        struct json_out out = json_out_make(&c->out);
        json_out_object(&out);
        json_out_member_str(&out, "error", msg);
        json_out_object_end(&out);
        call_line_end(c);
        call_end_flushed(c);
    }
}

static void on_finished(struct executor_task *t)
{
    struct manage_job *j = LOOP_OF(t, struct manage_job, finished);
    struct call *c = j->call;
    struct err e = {0};
    c->gl->flow.n_jobs--;
    if (j->transfer) {
        pthread_join(j->thread, NULL); /* it is about to end */
        c->job = NULL;
        c->abandon = NULL;
        atomic_fetch_sub(&c->gl->gw->ollama_transfers, 1);
    }
    if (j->rc == 0 && (j->action == ACTION_CREATE || j->action == ACTION_COPY ||
                       (j->action == ACTION_PULL && j->profile.path)))
        j->rc = publish(j);
    if (j->rc == 0 && j->action == ACTION_DELETE)
        j->rc = registry_remove(c->gl->gw->registry, j->profile.name, &e) == SHOAL_ENOMEM
                    ? SHOAL_ENOMEM
                    : 0;
    if (j->rc == 0) {
        answer(j);
    } else if (c->req) {
        fail_finished(j);
    }
    job_free(j);
}

static void start(struct manage_job *j)
{
    struct call *c = j->call;
    if (j->arena.rc < 0) {
        fail(j, 503, NULL, NULL, "out of memory");
        return;
    }
    if (!j->store) {
        fail(j, 503, NULL, NULL, "no folder for models can be used: set 'store.dir'");
        return;
    }
    j->task.fn = on_pool;
    j->finished.fn = on_finished;
    c->gl->flow.n_jobs++;
    if (pool_submit(c->gl->gw->pool, &j->task) == 0)
        return;
    c->gl->flow.n_jobs--;
    fail(j, 503, NULL, "overloaded", "too much work is waiting: try again later");
}

/* The client is gone: the transfer ends, also one that waits for another; what arrived stays. */
static void on_gone_client(struct call *c)
{
    struct manage_job *j = c->job;
    atomic_store(&j->stop, true);
}

/* Pulls, and pushes over the network, have a thread of their own. */
static void start_move(struct manage_job *j)
{
    struct call *c = j->call;
    struct err e = {0};
    if ((j->action == ACTION_PUSH && !web_is_url(j->registry)) || j->arena.rc < 0 || !j->store) {
        start(j);
        return;
    }
    if (atomic_fetch_add(&c->gl->gw->ollama_transfers, 1) >= MAX_TRANSFERS) {
        atomic_fetch_sub(&c->gl->gw->ollama_transfers, 1);
        fail(j, 503, NULL, "overloaded",
             "two models are being pulled or pushed already: try again later");
        return;
    }
    j->transfer = true;
    j->finished.fn = on_finished;
    j->step.fn = on_step;
    c->job = j;
    c->abandon = on_gone_client;
    c->gl->flow.n_jobs++;
    if (thread_create(&j->thread, "registry-io", run_transfer, j, &e) == 0)
        return;
    c->job = NULL;
    c->abandon = NULL;
    c->gl->flow.n_jobs--;
    atomic_fetch_sub(&c->gl->gw->ollama_transfers, 1);
    fail(j, 503, NULL, NULL, e.msg);
}

/* ---- finding what a call is about ---- */

struct lookup {
    const char *name;
    size_t name_bytes;
    struct manage_job *job;
    const char *path; /* of the model, in the job's arena; NULL: none */
};

static void on_model(void *ctx, const struct registry_model *m)
{
    struct lookup *x = ctx;
    if (!x->path && strncmp(m->name, x->name, x->name_bytes) == 0 && !m->name[x->name_bytes])
        x->path = keep(x->job, m->slot->path);
}

/* The file of a model of this server; NULL: none. */
static const char *path_of(struct manage_job *j, const char *name)
{
    struct gw *gw = j->call->gl->gw;
    struct lookup x = {name, flow_name_bytes(&gw->flow, name), j, NULL};
    registry_each(gw->registry, on_model, &x);
    return x.path;
}

/* The name of a model without ":latest", in the job's arena. */
static const char *name_of(struct manage_job *j, const char *name)
{
    size_t n = flow_name_bytes(&j->call->gl->gw->flow, name);
    char *copy = arena_zalloc_n(&j->arena, n + 1, 1);
    if (copy)
        memcpy(copy, name, n);
    return copy ? copy : "";
}

/* Whether the name is that of a model of the configuration, which clients cannot replace. */
static bool is_configured(const struct call *c, const char *name)
{
    const struct config *config = c->gl->config;
    for (uint32_t i = 0; i < config->n_models; i++)
        if (strcmp(config->models[i].name, name) == 0)
            return true;
    return false;
}

/* Fills the profile with that of another model. */
static void inherit(struct manage_job *j, const char *name)
{
    const struct model_profile *p = j->store ? model_profiles_get(j->store, name) : NULL;
    if (!p)
        return;
    j->profile.from = keep(j, p->from);
    j->profile.system = keep(j, p->system);
    j->profile.template = keep(j, p->template);
    j->profile.parameters = keep(j, p->parameters);
    j->profile.license = keep(j, p->license);
    j->profile.messages = keep(j, p->messages);
    model_profiles_unref(j->store, p);
}

/* A body of one of the tables.  False: the call is answered. */
static bool read_body(struct call *c, const struct field *table, size_t n, struct body *b)
{
    struct fields_error e = {{0}, {0}, NULL};
    b->stream = true;
    if (fields_read(table, n, c->json, b, c->lenient, &e) < 0) {
        call_fail_fields(c, &e);
        return false;
    }
    if (!b->model || !b->model[0]) /* Ollama's own client sends both, one of them empty */
        b->model = b->name;
    return true;
}

/* A name that a model may get.  False: the call is answered and the job freed. */
static bool check_new_name(struct manage_job *j, const char *name, const char *param)
{
    char msg[256];
    if (!name || !model_profiles_is_name(name)) {
        fail(j, 400, param, name ? "invalid_value" : "missing_required_parameter",
             name ? "a model's name has letters, digits and ._:/-" : "the name is missing");
        return false;
    }
    if (is_configured(j->call, name)) {
        snprintf(msg, sizeof(msg), "'%.64s' is a model of the configuration: choose another name",
                 name);
        fail(j, 400, param, "invalid_value", msg);
        return false;
    }
    return true;
}

/* ---- handlers ---- */

/* The file of the new model. False: the call is answered and the job freed. */
static bool find_file(struct manage_job *j, const struct body *b)
{
    struct call *c = j->call;
    const cJSON *file = b->files ? b->files->child : NULL;
    struct err e = {0};
    char *real = NULL;
    if (b->from && b->from[0] && (j->profile.path = path_of(j, b->from))) {
        inherit(j, name_of(j, b->from));
        j->profile.from = name_of(j, b->from);
        return true;
    }
    if (b->from && strchr(b->from, '/')) {
        if (config_confine(c->gl->config, b->from, &real, &e) == 0)
            j->profile.path = keep(j, real);
        mem_free(real);
        if (j->profile.path)
            return true;
        fail(j, 403, "from", "path_refused", e.msg);
        return false;
    }
    if (b->from && b->from[0]) {
        snprintf(e.msg, sizeof(e.msg), "model '%.64s' not found", b->from);
        fail(j, 404, "from", "model_not_found", e.msg);
        return false;
    }
    if (!cJSON_IsString(file) || file->next) {
        fail(j, 400, b->files ? "files" : "from", "invalid_value",
             "'from' (a model, or a file) or 'files' (one GGUF file and its digest) is needed");
        return false;
    }
    if (!j->store || model_profiles_find_blob(j->store, file->valuestring, j->path, &e) < 0) {
        fail(j, e.code == SHOAL_ENOTFOUND ? 404 : 400, "files", NULL,
             j->store ? e.msg : "no folder for models can be used: set 'store.dir'");
        return false;
    }
    j->profile.path = j->path;
    return true;
}

/* The template of a new model; one of Go's becomes Jinja.  False: the call is answered. */
static bool use_template(struct manage_job *j, const char *text)
{
    struct err e = {0};
    struct buf jinja;
    if (!go_template_is(text)) {
        j->profile.template = keep(j, text);
        return true;
    }
    buf_init(&jinja, MAX_TEMPLATE_BYTES);
    const int rc = go_template_translate(&jinja, text, &e);
    if (rc == 0)
        j->profile.template = keep(j, buf_str(&jinja));
    else
        fail(j, 400, "template", "unsupported_parameter", e.msg);
    buf_fini(&jinja);
    return rc == 0;
}

/* The first messages of a new model's conversations.  False: the call is answered. */
static bool use_messages(struct manage_job *j, const cJSON *list)
{
    const cJSON *v;
    bool ok = cJSON_IsArray(list);
    cJSON_ArrayForEach(v, list)
    {
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "role"));
        ok = ok && role && cJSON_IsString(cJSON_GetObjectItemCaseSensitive(v, "content")) &&
             (strcmp(role, "user") == 0 || strcmp(role, "assistant") == 0 ||
              strcmp(role, "system") == 0);
    }
    if (!ok) {
        fail(j, 400, "messages", "invalid_value",
             "'messages' must be a list of messages of the roles system, user and assistant, with "
             "texts as content");
        return false;
    }
    char *text = list->child ? cJSON_PrintUnformatted(list) : NULL;
    j->profile.messages = keep(j, text);
    cJSON_free(text);
    return true;
}

void ollama_create(struct call *c)
{
    struct body b = {.model = NULL};
    if (!read_body(c, ollama_create_fields, ollama_n_create_fields, &b))
        return;
    struct manage_job *j = job_create(c, ACTION_CREATE);
    if (!j || !check_new_name(j, b.model, "model"))
        return;
    if ((b.parameters && !cJSON_IsObject(b.parameters)) || (b.files && !cJSON_IsObject(b.files))) {
        fail(j, 400, b.parameters ? "parameters" : "files", "invalid_type",
             "'parameters' and 'files' must be objects");
        return;
    }
    struct fields_error fe = {{0}, {0}, NULL};
    if (b.parameters && ollama_check_options(b.parameters, &fe) < 0) {
        fail(j, 400, fe.param, fe.code, fe.msg);
        return;
    }
    if (!find_file(j, &b))
        return;
    j->stream = b.stream;
    j->profile.name = name_of(j, b.model);
    if (b.system)
        j->profile.system = keep(j, b.system);
    if (b.template && b.template[0] && !use_template(j, b.template))
        return;
    if (b.messages && !use_messages(j, b.messages))
        return;
    if (cJSON_IsString(b.license))
        j->profile.license = keep(j, b.license->valuestring);
    char *parameters = b.parameters ? cJSON_PrintUnformatted(b.parameters) : NULL;
    if (parameters)
        j->profile.parameters = keep(j, parameters);
    cJSON_free(parameters);
    start(j);
}

void ollama_copy(struct call *c)
{
    struct body b = {.model = NULL};
    if (!read_body(c, ollama_copy_fields, ollama_n_copy_fields, &b))
        return;
    struct manage_job *j = job_create(c, ACTION_COPY);
    if (!j || !check_new_name(j, b.destination, "destination"))
        return;
    j->profile.path = b.source ? path_of(j, b.source) : NULL;
    if (!j->profile.path) {
        struct err e;
        err_set(&e, SHOAL_ENOTFOUND, "model '%.64s' not found", b.source ? b.source : "");
        fail(j, b.source ? 404 : 400, "source", b.source ? "model_not_found" : NULL, e.msg);
        return;
    }
    inherit(j, name_of(j, b.source));
    j->profile.from = name_of(j, b.source);
    j->profile.name = name_of(j, b.destination);
    start(j);
}

/* A call about one model.  NULL: the call is answered. */
static struct manage_job *read_name(struct call *c, enum action action)
{
    struct body b = {.model = NULL};
    if (!read_body(c, ollama_name_fields, ollama_n_name_fields, &b))
        return NULL;
    struct manage_job *j = job_create(c, action);
    if (!j)
        return NULL;
    if (!b.model || !model_profiles_is_name(b.model)) {
        fail(j, 400, "model", b.model ? "invalid_value" : "missing_required_parameter",
             b.model ? "a model's name has letters, digits and ._:/-" : "'model' is missing");
        return NULL;
    }
    j->stream = b.stream;
    j->profile.name = name_of(j, b.model);
    j->profile.path = path_of(j, b.model);
    j->registry = keep(j, c->gl->config->ollama_registry);
    j->hub = keep(j, c->gl->config->store_hub);
    j->sources = config_store_sources(c->gl->config);
    return j;
}

static void fail_unknown(struct manage_job *j)
{
    struct err e;
    err_set(&e, SHOAL_ENOTFOUND, "model '%.64s' not found", j->profile.name);
    fail(j, 404, "model", "model_not_found", e.msg);
}

void ollama_delete(struct call *c)
{
    struct manage_job *j = read_name(c, ACTION_DELETE);
    if (j && !j->profile.path)
        fail_unknown(j);
    else if (j)
        start(j);
}

void ollama_pull(struct call *c)
{
    struct manage_job *j = read_name(c, ACTION_PULL);
    if (!j)
        return;
    if (j->profile.path) { /* the model is already here */
        answer(j);
        job_free(j);
    } else {
        start_move(j);
    }
}

void ollama_push(struct call *c)
{
    struct manage_job *j = read_name(c, ACTION_PUSH);
    if (!j)
        return;
    if (!j->profile.path) {
        fail_unknown(j);
    } else if (!j->registry) {
        fail(j, 503, NULL, "offline", NO_REGISTRY);
    } else {
        inherit(j, j->profile.name);
        start_move(j);
    }
}

void ollama_blob_head(struct call *c)
{
    const char *digest = c->req->path + strlen(BLOB_PATH);
    char path[PATH_MAX];
    struct err e = {0};
    int rc = c->gl->gw->profiles ? model_profiles_find_blob(c->gl->gw->profiles, digest, path, &e)
                                 : err_set(&e, SHOAL_ENOTFOUND, "there are no blobs");
    if (rc < 0)
        call_fail(c, rc == SHOAL_ENOTFOUND ? 404 : 400, NULL, "digest", NULL, "%s", e.msg);
    else
        call_text(c, 200, "application/json", "", 0);
}

void ollama_blob_put(struct call *c)
{
    struct manage_job *j = job_create(c, ACTION_BLOB);
    if (!j)
        return;
    j->digest = keep(j, c->req->path + strlen(BLOB_PATH));
    j->body_bytes = c->req->body_bytes;
    j->body = http_take_body(c->req);
    if (!j->body)
        fail(j, 503, NULL, NULL, "out of memory");
    else
        start(j);
}

/* ---- names of the store ---- */

struct restoring {
    struct gw *gw;
    const struct config *config;
};

/* Offers a model of the store. One that is already there under this name stays: that of the
 * configuration. */
static void offer(void *ctx, const struct model_profile *p)
{
    const struct restoring *x = ctx;
    const struct registry_spec spec = {.name = p->name,
                                       .path = p->path,
                                       .task = p->task,
                                       .labels = p->labels,
                                       .n_ctx = p->context,
                                       .max_tasks = p->parallel,
                                       .pinned = p->pinned};
    enum registry_state state;
    uint8_t sum[SHA256_BYTES];
    struct err e = {0};
    char *real = NULL;
    if (registry_state(x->gw->registry, p->name, &state))
        return;
    bool ours = model_store_owns(model_profiles_store(x->gw->profiles), p->path, sum);
    int rc = ours ? 0 : config_confine(x->config, p->path, &real, &e);
    if (rc == 0)
        rc = registry_add(x->gw->registry, &spec, &e);
    if (rc < 0 && !registry_state(x->gw->registry, p->name, &state)) /* not added meanwhile */
        log_warn("store", "a model is not offered: name=%s %s", p->name, e.msg);
    mem_free(real);
}

int ollama_manage_open(struct gw *gw, const struct config *config, struct err *e)
{
    const char *dir = config->ollama_dir ? config->ollama_dir : config->store_dir;
    struct restoring x = {gw, config};
    struct err why = {0};
    int rc = model_profiles_open(&gw->profiles, dir, registry_memo_dir(gw->registry), &why);
    if (rc == SHOAL_EINVAL && !dir)
        return 0; /* no folder: calls that need one report it */
    if (rc < 0) {
        *e = why;
        return rc;
    }
    if (config->store_offer)
        model_profiles_each(gw->profiles, offer, &x);
    return 0;
}

static void on_gone(void *ctx, const char *name)
{
    const struct restoring *x = ctx;
    struct err e = {0};
    for (uint32_t i = 0; i < x->config->n_models; i++)
        if (strcmp(x->config->models[i].name, name) == 0)
            return;
    if (registry_remove(x->gw->registry, name, &e) == 0)
        log_info("store", "a model was removed: name=%s", name);
}

void ollama_manage_refresh(struct gw *gw, const struct config *config)
{
    struct restoring x = {gw, config};
    struct err e = {0};
    if (!gw->profiles || !config->store_offer)
        return;
    if (model_profiles_refresh(gw->profiles, on_gone, &x, &e) < 0)
        log_warn("store", "cannot read the names of models: %s", e.msg);
    else
        model_profiles_each(gw->profiles, offer, &x);
}
