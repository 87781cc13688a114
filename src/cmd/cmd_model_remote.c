/* cmd_model_remote.c - shoal model load, unload, list: the models of a running server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/bytes_text.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/term.h"
#include "net/http_ask.h"
#include "wire/json_out.h"

#define MAX_ANSWER_BYTES ((size_t)8 << 20)
#define ANSWER_MS 30000u
#define LOOK_EVERY_MS 50

#define SERVER_DEFS                                                                                \
    {                                                                                              \
        "server",                                                                                  \
        0,                                                                                         \
        OPTS_TEXT,                                                                                 \
        "ADDRESS",                                                                                 \
        NULL,                                                                                      \
        0,                                                                                         \
        0,                                                                                         \
        "http://HOST:PORT or unix:PATH; default: $SHOAL_SERVER, or http://127.0.0.1:8080"},        \
        {"key", 0, OPTS_TEXT, "KEY",                                                               \
         NULL,  0, 0,         "API key with administration rights; default: $SHOAL_API_KEY"},      \
    {                                                                                              \
        "json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the server's response as JSON"              \
    }
#define TIMEOUT_DEF                                                                                \
    {                                                                                              \
        "timeout", 0, OPTS_UINT, "S", "300", 1, 86400, "timeout in seconds"                        \
    }

static const struct opts_def list_defs[] = {SERVER_DEFS};
static const struct opts_def load_defs[] = {SERVER_DEFS, TIMEOUT_DEF};
static const struct opts_def unload_defs[] = {
    SERVER_DEFS,
    TIMEOUT_DEF,
    {"remove", 0, OPTS_FLAG, NULL, NULL, 0, 0, "also remove it from the server's list"}};

static const struct opts_page list_page = {
    .command = "model list",
    .arguments = "",
    .summary = "Lists the models of a running server.",
    .groups = {OPTS_GROUP("Options", list_defs)},
    .examples = "  shoal model list\n"
                "  shoal model list --server unix:/run/shoal.sock --json\n",
};
static const struct opts_page load_page = {
    .command = "model load",
    .arguments = "NAME[=PATH]",
    .min_args = 1,
    .max_args = 1,
    .summary = "Loads a model on a running server and waits until it is ready.",
    .details = "NAME must be in the server's list; with a PATH it is added.  The server reads the "
               "file, so\nPATH is on the server's machine.",
    .groups = {OPTS_GROUP("Options", load_defs)},
    .examples = "  shoal model load big\n"
                "  shoal model load story=stories15M.gguf --server http://127.0.0.1:8080\n",
};
static const struct opts_page unload_page = {
    .command = "model unload",
    .arguments = "NAME",
    .min_args = 1,
    .max_args = 1,
    .summary = "Unloads a model on a running server as soon as it is no longer in use.",
    .details = "It stays in the server's list and is loaded again when a request needs it.",
    .groups = {OPTS_GROUP("Options", unload_defs)},
    .examples = "  shoal model unload big\n",
};

struct remote {
    const struct opts *o;
    const char *server, *key;
    struct buf body; /* the last response */
    cJSON *json;     /* the response, parsed */
};

static const char *text_or_env(const struct opts *o, const char *option, const char *variable)
{
    const char *s = opts_text(o, option);
    if (!s)
        s = getenv(variable);
    return s && s[0] ? s : NULL;
}

static void remote_init(struct remote *r, const struct opts *o)
{
    const char *server = text_or_env(o, "server", "SHOAL_SERVER");
    *r = (struct remote){.o = o,
                         .server = server ? server : "http://127.0.0.1:8080",
                         .key = text_or_env(o, "key", "SHOAL_API_KEY")};
    buf_init(&r->body, MAX_ANSWER_BYTES);
}

static void remote_fini(struct remote *r)
{
    cJSON_Delete(r->json);
    buf_fini(&r->body);
}

/* A text from the server, safe for a terminal: control characters become '?'. */
static const char *field(const cJSON *object, const char *name)
{
    char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    for (char *p = s; p && *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    return s ? s : "";
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) ? v->valuedouble : 0.0;
}

/* ---- requests ---- */

static int refused(const struct remote *r, int status)
{
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(r->json, "error");
    const char *why = field(error, "message");
    const char *hint = status == 401 || status == 403
                           ? "; use a key with administration rights: --key or SHOAL_API_KEY"
                           : "";
    if (why[0])
        return cmd_fail(r->o->page, "%s%s", why, hint);
    return cmd_fail(r->o->page, "%s refused the request: status %d%s", r->server, status, hint);
}

/* Sends a request; r->json then has "models".  CMD_OK, or an exit code after a message. */
static int ask(struct remote *r, const char *json, size_t n)
{
    struct err e = {0};
    int status = 0;
    struct http_ask a = {.server = r->server,
                         .method = n > 0 ? "POST" : "GET",
                         .path = "/admin/models",
                         .key = r->key,
                         .json = json,
                         .json_bytes = n,
                         .timeout_ms = ANSWER_MS};
    buf_clear(&r->body);
    cJSON_Delete(r->json);
    r->json = NULL;
    int rc = http_ask(&a, &status, &r->body, &e);
    if (rc == SHOAL_ENOTFOUND)
        return cmd_fail(r->o->page,
                        "%s\nIs it running? Start it with 'shoal serve', or name its address "
                        "with --server.",
                        e.msg);
    if (rc < 0)
        return cmd_fail(r->o->page, "%s", e.msg);
    r->json = cJSON_ParseWithLength(buf_str(&r->body), r->body.len);
    if (status != 200)
        return refused(r, status);
    if (!cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(r->json, "models")))
        return cmd_fail(r->o->page, "%s does not respond like 'shoal serve'", r->server);
    return CMD_OK;
}

static int act(struct remote *r, const char *action, const char *name, const char *path)
{
    struct buf b;
    buf_init(&b, MAX_ANSWER_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_key(&j, "model");
    json_out_str(&j, name);
    json_out_key(&j, "action");
    json_out_str(&j, action);
    if (path) {
        json_out_key(&j, "path");
        json_out_str(&j, path);
    }
    json_out_object_end(&j);
    int rc = b.rc < 0 ? cmd_fail(r->o->page, "%s", err_text(b.rc)) : ask(r, b.data, b.len);
    buf_fini(&b);
    return rc;
}

/* The model in the last response, or NULL. */
static const cJSON *find(const struct remote *r, const char *name)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(r->json, "models"))
    {
        const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "model"));
        if (s && strcmp(s, name) == 0)
            return m;
    }
    return NULL;
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){0, LOOK_EVERY_MS * 1000000L}, NULL);
}

static uint64_t give_up_at(const struct opts *o)
{
    return clock_ns() + opts_uint(o, "timeout") * 1000000000u;
}

/* ---- responses ---- */

static int print_one(const struct remote *r, const cJSON *m, const char *done)
{
    char bytes[32];
    struct buf b;
    buf_init(&b, MAX_ANSWER_BYTES);
    if (opts_flag(r->o, "json")) {
        char *text = m ? cJSON_PrintUnformatted(m) : NULL;
        buf_printf(&b, "%s\n", text ? text : "{}");
        cJSON_free(text);
    } else {
        buf_puts(&b, done);
        if (m && number(m, "bytes") > 0)
            buf_printf(&b, " (%s, %.0f ms)", bytes_text(bytes, number(m, "bytes")),
                       number(m, "load_ms"));
        buf_putc(&b, '\n');
    }
    int rc = cmd_print(r->o->page, &b);
    buf_fini(&b);
    return rc;
}

static int print_list(const struct remote *r)
{
    const cJSON *m, *all = cJSON_GetObjectItemCaseSensitive(r->json, "models");
    int wide = 5;
    struct buf b;
    buf_init(&b, 2 * MAX_ANSWER_BYTES);
    cJSON_ArrayForEach(m, all)
    {
        size_t n = strlen(field(m, "model"));
        wide = n > (size_t)wide ? n < 40 ? (int)n : 40 : wide;
    }
    buf_printf(&b, "%-*s  %-9s  %-10s  %10s  %8s  %s\n", wide, "MODEL", "STATE", "TASK", "MEMORY",
               "REQUESTS", "FILE");
    cJSON_ArrayForEach(m, all)
    {
        char bytes[32] = "-";
        const char *error = field(m, "error"), *task = field(m, "task");
        if (number(m, "bytes") > 0)
            bytes_text(bytes, number(m, "bytes"));
        buf_printf(&b, "%-*s  %-9s  %-10s  %10s  %8.0f  %s%s%s\n", wide, field(m, "model"),
                   field(m, "state"), task[0] ? task : "-", bytes, number(m, "requests"),
                   field(m, "path"), error[0] ? ": " : "", error);
    }
    int rc = cmd_print(r->o->page, &b);
    buf_fini(&b);
    return rc;
}

int cmd_model_list(int argc, const char *const *argv)
{
    struct opts o;
    struct remote r;
    int rc;
    if (!cmd_begin(&o, &list_page, argc, argv, &rc))
        return rc;
    remote_init(&r, &o);
    rc = ask(&r, NULL, 0);
    if (rc == CMD_OK && opts_flag(&o, "json")) {
        buf_putc(&r.body, '\n');
        rc = cmd_print(&list_page, &r.body);
    } else if (rc == CMD_OK) {
        rc = print_list(&r);
    }
    remote_fini(&r);
    opts_fini(&o);
    return rc;
}

/* ---- load ---- */

/* Waits until the requested load is done. */
static int wait_loaded(struct remote *r, const char *name)
{
    struct term_progress bar;
    uint64_t until = give_up_at(r->o);
    int rc = CMD_OK;
    term_progress_init(&bar, "loading");
    for (;;) {
        const cJSON *m = find(r, name);
        const char *state = m ? field(m, "state") : "";
        if (strcmp(state, "ready") == 0)
            break;
        term_progress_show(&bar, number(m, "progress"), NULL);
        if (!m)
            rc = cmd_fail(r->o->page, "'%s' was removed from the server's list meanwhile", name);
        else if (strcmp(state, "failed") == 0)
            rc = cmd_fail(r->o->page, "the server cannot load '%s': %s", name, field(m, "error"));
        else if (clock_ns() > until)
            rc = cmd_fail(r->o->page, "'%s' is still %s; the server continues", name, state);
        if (rc != CMD_OK)
            break;
        pause_a_little();
        /* it was being unloaded when the load was requested */
        rc = strcmp(state, "unloaded") == 0 ? act(r, "load", name, NULL) : ask(r, NULL, 0);
        if (rc != CMD_OK)
            break;
    }
    term_progress_end(&bar);
    return rc;
}

static int load(struct remote *r, char *name)
{
    char *eq = strchr(name, '='), *path = NULL, done[160];
    bool added = false;
    if (eq) {
        *eq = '\0';
        /* the server may run in another folder, and a path missing here may exist there */
        path = realpath(eq + 1, NULL);
    }
    if (name[0] == '\0' || (eq && eq[1] == '\0')) {
        free(path);
        return opts_usage(r->o->page, "%s is not NAME=PATH", r->o->args[0]);
    }
    int rc = eq ? act(r, "add", name, path ? path : eq + 1) : CMD_OK;
    added = eq && rc == CMD_OK;
    if (rc == CMD_OK)
        rc = act(r, "load", name, NULL);
    if (rc == CMD_OK)
        rc = wait_loaded(r, name);
    if (rc == CMD_OK) {
        snprintf(done, sizeof(done), "%.100s is loaded", name);
        rc = print_one(r, find(r, name), done);
    } else if (added && find(r, name) && strcmp(field(find(r, name), "state"), "failed") == 0) {
        (void)act(r, "remove", name, NULL); /* so that the name can be used for another file */
    }
    free(path); /* allocated by realpath */
    return rc;
}

int cmd_model_load(int argc, const char *const *argv)
{
    struct opts o;
    struct remote r;
    int rc;
    if (!cmd_begin(&o, &load_page, argc, argv, &rc))
        return rc;
    remote_init(&r, &o);
    char *name = mem_strdup(o.args[0]);
    rc = name ? load(&r, name) : cmd_fail(&load_page, "%s", err_text(SHOAL_ENOMEM));
    mem_free(name);
    remote_fini(&r);
    opts_fini(&o);
    return rc;
}

/* ---- unload ---- */

static int wait_unloaded(struct remote *r, const char *name)
{
    struct term_progress bar;
    uint64_t until = give_up_at(r->o);
    int rc;
    term_progress_init(&bar, "unloading");
    for (;;) {
        /* repeat the request: a client in between keeps the model loaded */
        rc = act(r, "unload", name, NULL);
        const cJSON *m = rc == CMD_OK ? find(r, name) : NULL;
        const char *state = m ? field(m, "state") : "";
        if (!m || strcmp(state, "unloaded") == 0 || strcmp(state, "failed") == 0)
            break;
        if (clock_ns() > until) {
            rc = cmd_fail(r->o->page, "'%s' is still %s, %.0f requests use it", name, state,
                          number(m, "users"));
            break;
        }
        term_progress_show(&bar, 0, number(m, "users") > 0 ? "in use" : NULL);
        pause_a_little();
    }
    term_progress_end(&bar);
    return rc;
}

int cmd_model_unload(int argc, const char *const *argv)
{
    struct opts o;
    struct remote r;
    char done[160];
    int rc;
    if (!cmd_begin(&o, &unload_page, argc, argv, &rc))
        return rc;
    remote_init(&r, &o);
    const char *name = o.args[0];
    bool gone = opts_flag(&o, "remove");
    rc = wait_unloaded(&r, name);
    if (rc == CMD_OK && gone)
        rc = act(&r, "remove", name, NULL);
    if (rc == CMD_OK) {
        snprintf(done, sizeof(done), "%.100s is %s", name, gone ? "removed" : "unloaded");
        rc = print_one(&r, find(&r, name), done);
    }
    remote_fini(&r);
    opts_fini(&o);
    return rc;
}
