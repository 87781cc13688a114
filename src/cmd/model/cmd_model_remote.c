/* cmd_model_remote.c - shoal model load, unload, list: the models of a running server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes_text.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/server_ask.h"
#include "wire/json_out.h"

cmd_fn cmd_model_list, cmd_model_load, cmd_model_unload;

#define LOOK_EVERY_MS 50

#define TIMEOUT_DEF                                                                                \
    {                                                                                              \
        "timeout", 0, OPTS_UINT, "S", "300", 1, 86400, "timeout in seconds"                        \
    }

static const struct opts_def list_defs[] = {SERVER_ASK_DEFS};
static const struct opts_def load_defs[] = {SERVER_ASK_DEFS, TIMEOUT_DEF};
static const struct opts_def unload_defs[] = {
    SERVER_ASK_DEFS,
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

static int act(struct server_ask *r, const char *action, const char *name, const char *path)
{
    struct buf b;
    buf_init(&b, SERVER_ASK_MAX_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_member_str(&j, "model", name);
    json_out_member_str(&j, "action", action);
    if (path)
        json_out_member_str(&j, "path", path);
    json_out_object_end(&j);
    int rc = b.rc < 0 ? cmd_fail(r->o->page, "%s", err_text(b.rc))
                      : server_ask(r, "/admin/models", "models", b.data, b.len);
    buf_fini(&b);
    return rc;
}

/* The model in the last response, or NULL. */
static const cJSON *find(const struct server_ask *r, const char *name)
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

static int print_one(const struct server_ask *r, const cJSON *m, const char *done)
{
    char bytes[32];
    struct buf b;
    buf_init(&b, SERVER_ASK_MAX_BYTES);
    if (opts_flag(r->o, "json")) {
        char *text = m ? cJSON_PrintUnformatted(m) : NULL;
        buf_printf(&b, "%s\n", text ? text : "{}");
        cJSON_free(text);
    } else {
        buf_puts(&b, done);
        if (m && server_ask_number(m, "bytes") > 0)
            buf_printf(&b, " (%s, %.0f ms)", bytes_text(bytes, server_ask_number(m, "bytes")),
                       server_ask_number(m, "load_ms"));
        buf_putc(&b, '\n');
    }
    return cmd_print_end(r->o->page, &b);
}

static int print_list(const struct server_ask *r)
{
    const cJSON *m, *all = cJSON_GetObjectItemCaseSensitive(r->json, "models");
    int wide = 5;
    struct buf b;
    buf_init(&b, 2 * SERVER_ASK_MAX_BYTES);
    cJSON_ArrayForEach(m, all)
    {
        size_t n = strlen(server_ask_text(m, "model"));
        wide = n > (size_t)wide ? n < 40 ? (int)n : 40 : wide;
    }
    buf_printf(&b, "%-*s  %-9s  %-10s  %10s  %8s  %s\n", wide, "MODEL", "STATE", "TASK", "MEMORY",
               "REQUESTS", "FILE");
    cJSON_ArrayForEach(m, all)
    {
        char bytes[32] = "-";
        const char *error = server_ask_text(m, "error"), *task = server_ask_text(m, "task");
        if (server_ask_number(m, "bytes") > 0)
            bytes_text(bytes, server_ask_number(m, "bytes"));
        buf_printf(&b, "%-*s  %-9s  %-10s  %10s  %8.0f  %s%s%s\n", wide,
                   server_ask_text(m, "model"), server_ask_text(m, "state"), task[0] ? task : "-",
                   bytes, server_ask_number(m, "requests"), server_ask_text(m, "path"),
                   error[0] ? ": " : "", error);
    }
    return cmd_print_end(r->o->page, &b);
}

int cmd_model_list(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    int rc;
    if (!cmd_begin(&o, &list_page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    rc = server_ask(&r, "/admin/models", "models", NULL, 0);
    if (rc == CMD_OK && opts_flag(&o, "json")) {
        buf_putc(&r.body, '\n');
        rc = cmd_print(&list_page, &r.body);
    } else if (rc == CMD_OK) {
        rc = print_list(&r);
    }
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}

/* ---- load ---- */

/* Waits until the requested load is done. */
static int wait_loaded(struct server_ask *r, const char *name)
{
    struct term_progress bar;
    uint64_t until = give_up_at(r->o);
    int rc = CMD_OK;
    term_progress_init(&bar, "loading");
    for (;;) {
        const cJSON *m = find(r, name);
        const char *state = m ? server_ask_text(m, "state") : "";
        if (strcmp(state, "ready") == 0)
            break;
        term_progress_show(&bar, server_ask_number(m, "progress"), NULL);
        if (!m)
            rc = cmd_fail(r->o->page, "'%s' was removed from the server's list meanwhile", name);
        else if (strcmp(state, "failed") == 0)
            rc = cmd_fail(r->o->page, "the server cannot load '%s': %s", name,
                          server_ask_text(m, "error"));
        else if (clock_ns() > until)
            rc = cmd_fail(r->o->page, "'%s' is still %s; the server continues", name, state);
        if (rc != CMD_OK)
            break;
        pause_a_little();
        /* it was being unloaded when the load was requested */
        rc = strcmp(state, "unloaded") == 0 ? act(r, "load", name, NULL)
                                            : server_ask(r, "/admin/models", "models", NULL, 0);
        if (rc != CMD_OK)
            break;
    }
    term_progress_end(&bar);
    return rc;
}

static int load(struct server_ask *r, char *name)
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
    } else if (added && find(r, name) &&
               strcmp(server_ask_text(find(r, name), "state"), "failed") == 0) {
        (void)act(r, "remove", name, NULL); /* so that the name can be used for another file */
    }
    free(path); /* allocated by realpath */
    return rc;
}

int cmd_model_load(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    int rc;
    if (!cmd_begin(&o, &load_page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    char *name = mem_strdup(o.args[0]);
    rc = name ? load(&r, name) : cmd_fail(&load_page, "%s", err_text(SHOAL_ENOMEM));
    mem_free(name);
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}

/* ---- unload ---- */

static int wait_unloaded(struct server_ask *r, const char *name)
{
    struct term_progress bar;
    uint64_t until = give_up_at(r->o);
    int rc;
    term_progress_init(&bar, "unloading");
    for (;;) {
        /* repeat the request: a client may keep the model loaded in between */
        rc = act(r, "unload", name, NULL);
        const cJSON *m = rc == CMD_OK ? find(r, name) : NULL;
        const char *state = m ? server_ask_text(m, "state") : "";
        if (!m || strcmp(state, "unloaded") == 0 || strcmp(state, "failed") == 0)
            break;
        if (clock_ns() > until) {
            rc = cmd_fail(r->o->page, "'%s' is still %s, %.0f requests use it", name, state,
                          server_ask_number(m, "users"));
            break;
        }
        term_progress_show(&bar, 0, server_ask_number(m, "users") > 0 ? "in use" : NULL);
        pause_a_little();
    }
    term_progress_end(&bar);
    return rc;
}

int cmd_model_unload(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    char done[160];
    int rc;
    if (!cmd_begin(&o, &unload_page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    const char *name = o.args[0];
    bool gone = opts_flag(&o, "remove");
    rc = wait_unloaded(&r, name);
    if (rc == CMD_OK && gone)
        rc = act(&r, "remove", name, NULL);
    if (rc == CMD_OK) {
        snprintf(done, sizeof(done), "%.100s is %s", name, gone ? "removed" : "unloaded");
        rc = print_one(&r, find(&r, name), done);
    }
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}
