/* slot_actions.c - see slot_actions.h.
 *
 * Files are read and written on the pool.  A key has a folder of its own: what it saved is no
 * other's to restore. */
#include "gateway/api/llama/slot_actions.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "flow/pool.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/llama/slot_store.h"
#include "gateway/call/body.h"
#include "wire/json_out.h"

#define PATH "/slots/"
#define MAGIC "shoal slot 1\n" /* before the text */
#define MAX_NAME 128u

struct slot_job {
    struct pool_task pool_task;
    struct executor_task finished;
    struct call *call;
    bool save;
    uint32_t id, n_tokens;
    uint64_t begin_ns;
    char name[MAX_NAME], path[PATH_MAX], folder[PATH_MAX - MAX_NAME - 1];
    struct buf bytes; /* of the file */
    int rc;
    struct err error;
};

struct restored {              /* the evaluation of a text that was saved */
    struct answer_sink answer; /* first */
    uint32_t id;
    uint64_t begin_ns;
    size_t n_read;
    char name[MAX_NAME];
};

static const char *owner_of(const struct call *c)
{
    return c->client ? c->client->name : "";
}

static void put_done(struct call *c, const char *verb, const char *past, uint32_t id,
                     const char *name, uint32_t n_tokens, size_t n_bytes, uint64_t begin_ns)
{
    struct json_out j = json_out_make(&c->out);
    char key[24];
    json_out_object(&j);
    json_out_member_uint(&j, "id_slot", id);
    json_out_member_str(&j, "filename", name);
    snprintf(key, sizeof(key), "n_%sd", verb);
    json_out_member_uint(&j, key, n_tokens);
    json_out_member_uint(&j, past, n_bytes);
    json_out_member_object(&j, "timings");
    snprintf(key, sizeof(key), "%s_ms", verb);
    json_out_member_num(&j, key, (double)(clock_ns() - begin_ns) / 1e6);
    json_out_object_end(&j);
    json_out_object_end(&j);
}

/* ---- restoring ---- */

static void put_restored(struct answer_sink *a, const struct sink_done *d)
{
    const struct restored *x = (struct restored *)(void *)a; /* its first member */
    const struct request_prompt *p = &a->request->generate.prompts[0];
    slot_store_put(a->call->gl->gw->slots, owner_of(a->call), x->id, p->text, p->text_bytes, "", 0,
                   d->prompt_tokens);
    put_done(a->call, "restore", "n_read", x->id, x->name, d->prompt_tokens, x->n_read,
             x->begin_ns);
}

/* Evaluates the text: then its pages are there for the next request. */
static void evaluate(struct slot_job *j)
{
    static const struct answer_dialect dialect = {.frame = &answer_events, .whole = put_restored};
    const char *text = buf_str(&j->bytes) + strlen(MAGIC);
    const size_t n = j->bytes.len - strlen(MAGIC);
    struct call *c = j->call;
    struct request *r = call_request(c);
    if (!r)
        return;
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    r->kind = REQUEST_GENERATE;
    r->no_cache = true; /* not an answer that is known: the pages are wanted */
    r->input_bytes = n;
    if (p) {
        p->text = request_copy(r, text, n);
        p->text_bytes = n;
    }
    r->generate.prompts = p;
    r->generate.n = r->generate.n_prompts = r->generate.max_tokens =
        1; /* one token, and all before it */
    if (request_rc(r) < 0) {
        flow_give_request(&c->gl->flow, r);
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    struct restored *a = answer_create(c, r, sizeof(*a), &dialect, false);
    if (!a)
        return;
    a->id = j->id;
    a->begin_ns = j->begin_ns;
    a->n_read = j->bytes.len;
    memcpy(a->name, j->name, sizeof(a->name));
    stages_run(&c->gl->flow, r, c->sink);
}

/* ---- files ---- */

static void job_free(struct slot_job *j)
{
    struct call *c = j->call;
    buf_fini(&j->bytes);
    c->gl->flow.n_jobs--;
    mem_free(j);
    call_release(c);
}

static void on_finished(struct executor_task *t)
{
    struct slot_job *j = LOOP_OF(t, struct slot_job, finished);
    struct call *c = j->call;
    const size_t n = strlen(MAGIC);
    const bool ours = j->bytes.len > n && memcmp(j->bytes.data, MAGIC, n) == 0;
    if (c->req && j->rc == SHOAL_EIO && !j->save) { /* where the files are is nobody's business */
        call_fail(c, 404, NULL, "filename", NULL, "no slot was saved as '%s'", j->name);
    } else if (c->req && j->rc < 0) {
        log_warn("slots", "%s", j->error.msg);
        call_fail(c, 500, NULL, "filename", NULL, "'%s' cannot be %s: the log says why", j->name,
                  j->save ? "saved" : "read");
    } else if (c->req && j->save) {
        put_done(c, "save", "n_written", j->id, j->name, j->n_tokens, j->bytes.len, j->begin_ns);
        call_json(c, 200);
    } else if (c->req && !ours) {
        call_fail(c, 400, NULL, "filename", "invalid_value",
                  "'%s' was not saved by this server: files of llama.cpp hold its own state",
                  j->name);
    } else if (c->req) {
        evaluate(j);
    }
    job_free(j);
}

static void on_pool(struct pool_task *t)
{
    struct slot_job *j = LOOP_OF(t, struct slot_job, pool_task);
    if (j->save && mkdir(j->folder, 0700) < 0 && errno != EEXIST)
        j->rc = err_set(&j->error, SHOAL_EIO, "cannot make the folder of saved slots: %s",
                        strerror(errno));
    else if (j->save)
        j->rc = file_replace(j->path, buf_str(&j->bytes), j->bytes.len, &j->error);
    else
        j->rc = file_read(j->path, &j->bytes, &j->error);
    executor_post(j->call->gl->flow.executor, &j->finished);
}

/* A name without a path: letters, digits and ._- */
static bool is_name(const char *name)
{
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n < MAX_NAME && !name[n] && name[0] != '.';
}

static void start_file(struct call *c, uint32_t id, const char *name, bool save)
{
    const char *owner = owner_of(c);
    struct slot_job *j = mem_zalloc(sizeof(*j));
    size_t n = 0;
    if (!j) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    j->pool_task.fn = on_pool;
    j->finished.fn = on_finished;
    j->call = c;
    j->save = save;
    j->id = id;
    j->begin_ns = clock_ns();
    snprintf(j->name, sizeof(j->name), "%s", name);
    /* "key-": the names of keys are free, that of the folder of nobody's is not one of them */
    snprintf(j->folder, sizeof(j->folder), "%.3000s/%s%s", c->gl->config->slots_dir,
             owner[0] ? "key-" : "open", owner);
    snprintf(j->path, sizeof(j->path), "%s/%s", j->folder, j->name);
    buf_init(&j->bytes, SLOT_STORE_MAX_TEXT + 64);
    call_hold(c);
    c->gl->flow.n_jobs++;
    char *text = save ? slot_store_take(c->gl->gw->slots, owner, id, &n, &j->n_tokens) : NULL;
    if (save && text) {
        buf_puts(&j->bytes, MAGIC);
        buf_put(&j->bytes, text, n);
    }
    const bool empty = save && !text;
    mem_free(text);
    if (empty) {
        call_fail(c, 400, NULL, "id_slot", "invalid_value",
                  "slot %u is empty: send a request to /completion with a text as its prompt and "
                  "this 'id_slot' first",
                  id);
        job_free(j);
    } else if (strchr(owner, '/')) {
        call_fail(c, 501, "not_supported_error", NULL, NULL,
                  "slots of a key with a '/' in its name are not saved: it is no name of a folder");
        job_free(j);
    } else if (pool_submit(c->gl->gw->pool, &j->pool_task) < 0) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 1, "too much work is waiting: try again later");
        job_free(j);
    }
}

void slot_actions_post(struct call *c)
{
    char action[16] = "", *end;
    const char *path = c->req->path + strlen(PATH);
    const unsigned long id = strtoul(path, &end, 10);
    (void)http_query(c->req, "action", action, sizeof(action));
    const bool save = strcmp(action, "save") == 0, restore = strcmp(action, "restore") == 0;
    if (end == path || *end || id > SLOT_STORE_MAX_ID) {
        call_fail(c, 400, NULL, "id_slot", "invalid_value", "Invalid slot ID: 0 to %u are slots",
                  SLOT_STORE_MAX_ID);
        return;
    }
    if (strcmp(action, "erase") == 0) {
        struct json_out j = json_out_make(&c->out);
        json_out_object(&j);
        json_out_member_uint(&j, "id_slot", id);
        json_out_member_uint(&j, "n_erased",
                             slot_store_erase(c->gl->gw->slots, owner_of(c), (uint32_t)id));
        json_out_object_end(&j);
        call_json(c, 200);
        return;
    }
    if (!save && !restore) {
        call_fail(c, 400, NULL, "action", "invalid_value",
                  "Invalid action: 'action' must be save, restore or erase");
        return;
    }
    if (!c->gl->config->slots_dir) {
        call_fail(c, 501, "not_supported_error", NULL, NULL,
                  "slots are not saved: set 'slots.dir' in the configuration");
        return;
    }
    bool answered;
    cJSON *body = body_parse_small(c, &answered);
    if (answered)
        return;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "filename"));
    if (name && is_name(name))
        start_file(c, (uint32_t)id, name, save);
    else
        call_fail(c, 400, NULL, "filename", "invalid_value",
                  "Invalid filename: 'filename' must be a name of letters, digits and ._-");
    cJSON_Delete(body);
}
