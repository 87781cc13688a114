/* serving.c - see serving.h. */
#include "cmd/serve/serving.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file/file_watch.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/plural.h"
#include "config/config_diff.h"
#include "gateway/server/gateway.h"

#define SETTLE_MS 100 /* after a change of the file: an editor may write several files */

static const struct opts_def member_defs[] = {
    {"name", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "name of this member; default: from its certificate, or the host name"},
    {"zone", 0, OPTS_TEXT, "ZONE", NULL, 0, 0, "its location, such as a building; for placement"},
    {"join", 0, OPTS_LIST, "URL", NULL, 0, 0,
     "NATS server of the shoal, nats://HOST:PORT or tls://HOST:PORT; may be repeated"},
    {"shoal", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "name of the shoal, with --join; default: shoal"},
    {"certs", 0, OPTS_TEXT, "FOLDER", NULL, 0, 0,
     "certificate, key and CA of this member, as shoal ca issue writes them"},
    {"insecure", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "without certificates: for tests on one machine only"},
    {"label", 0, OPTS_LIST, "LABEL", NULL, 0, 0,
     "its properties, such as gpu or site=hall-3; for placement; may be repeated"},
    {"controller", 0, OPTS_CHOICE, "auto|never", NULL, 0, 0,
     "whether it may become controller; auto, the default: if its certificate allows it"},
};
const struct opts_group serving_member_group = OPTS_GROUP_INIT("Member", member_defs);

/* ---- options to a configuration ---- */

int serving_begin(struct config **out, const struct opts *o, struct err *e)
{
    int rc = config_create(out, e);
    if (rc == 0 && opts_text(o, "config"))
        rc = config_load(*out, opts_text(o, "config"), e);
    return rc;
}

int serving_listen(struct config *c, const struct opts *o, const char *fallback, struct err *e)
{
    const char *const *list;
    size_t n = opts_list(o, "listen", &list);
    int rc = 0;
    if (n > 0)
        config_clear_listen(c);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_listen(c, list[i], e);
    if (rc == 0 && c->listen.n == 0)
        rc = config_add_listen(c, fallback, e);
    return rc;
}

int serving_wyoming(struct config *c, const struct opts *o, struct err *e)
{
    char *address = opts_text(o, "wyoming") ? mem_strdup(opts_text(o, "wyoming")) : NULL;
    if (opts_text(o, "wyoming") && !address)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an address");
    if (address) {
        mem_free(c->wyoming);
        c->wyoming = address;
    }
    return 0;
}

int serving_models(struct config *c, const struct opts *o, struct err *e)
{
    const char *const *list;
    size_t n = opts_list(o, "model", &list);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_model_arg(c, list[i], e);
    n = opts_list(o, "lora", &list);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_adapter_arg(c, list[i], e);
    return rc;
}

int serving_pack(struct config *c, bool beside, struct err *e)
{
    const bool own = c->n_models > 0;
    if (!c->pack || (own && !beside))
        return 0;
    int rc = config_add_pack(c, NULL, !own, e);
    if (rc != SHOAL_ENOTFOUND)
        return rc;
    return own ? 0 /* installed without models */
               : err_set(e, rc,
                         "no models: use -m NAME=PATH, or set SHOAL_MODELS to a folder "
                         "with a models.json");
}

static int set_text(char **to, const char *text, struct err *e)
{
    if (!text)
        return 0;
    char *copy = mem_strdup(text);
    if (!copy)
        return err_set(e, SHOAL_ENOMEM, "configuration");
    mem_free(*to);
    *to = copy;
    return 0;
}

int serving_member(struct config *c, const struct opts *o, struct err *e)
{
    struct config_cluster *k = &c->cluster;
    char host[65] = "";
    int rc = set_text(&k->name, opts_text(o, "name"), e);
    if (rc == 0)
        rc = set_text(&k->zone, opts_text(o, "zone"), e);
    if (rc == 0)
        rc = set_text(&k->certs, opts_text(o, "certs"), e);
    if (rc == 0 && !k->name && !k->certs && gethostname(host, sizeof(host) - 1) == 0)
        rc = set_text(&k->name, host, e);
    const char *const *urls;
    size_t n = opts_list(o, "join", &urls);
    if (rc == 0 && n > 0) {
        yaml_in_strs_fini(&k->nats);
        rc = yaml_in_strs_add(&k->nats, urls, n, e);
    }
    if (rc == 0)
        rc = set_text(&k->shoal, opts_text(o, "shoal"), e);
    if (opts_given(o, "controller"))
        k->controller = strcmp(opts_text(o, "controller"), "never") == 0 ? CONFIG_CONTROLLER_NEVER
                                                                         : CONFIG_CONTROLLER_AUTO;
    n = rc == 0 ? opts_list(o, "label", &urls) : 0;
    if (rc == 0 && n > 0) {
        yaml_in_strs_fini(&k->labels);
        rc = yaml_in_strs_add(&k->labels, urls, n, e);
    }
    if (opts_flag(o, "insecure"))
        k->insecure = true;
    return rc;
}

/* ---- running ---- */

static void say_hello(struct gateway *g, const struct config *c)
{
    const char *url = gateway_address(g, 0);
    for (size_t i = 0; gateway_address(g, i); i++)
        printf("listening on %s\n", gateway_address(g, i));
    if (gateway_wyoming_address(g))
        printf("listening for Wyoming on %s\n", gateway_wyoming_address(g));
    for (size_t i = 0; gateway_node_address(g, i); i++)
        printf("listening for other members on %s\n", gateway_node_address(g, i));
    if (c->cluster.nodes.n > 0) {
        printf("nodes:");
        for (uint32_t i = 0; i < c->cluster.nodes.n; i++)
            printf(" %s", c->cluster.nodes.v[i]);
        printf("\n");
    }
    if (c->n_models > 0) {
        printf("models:");
        for (uint32_t i = 0; i < c->n_models; i++)
            printf(" %s", c->models[i].name);
        printf("\n");
    } else if (c->cluster.listen.n > 0 && c->cluster.nats.n > 0) {
        printf("models: assigned by the controller\n");
    }
    if (url && strncmp(url, "http", 4) == 0)
        printf("open %s in a browser, or: curl %s/v1/models\n", url, url);
    fflush(stdout);
}

static void tell_change(void *ctx, const struct config_change *c)
{
    uint32_t *n = ctx;
    ++*n;
    if (!c->from)
        log_info("serve", "%s was added", c->path);
    else if (!c->to)
        log_info("serve", "%s was removed", c->path);
    else if (c->restart)
        log_warn("serve", "%s: %.200s -> %.200s, takes effect after a restart", c->path, c->from,
                 c->to);
    else
        log_info("serve", "%s: %.200s -> %.200s", c->path, c->from, c->to);
}

static void reload(const struct serving *s, struct gateway *g, struct config **current,
                   const struct opts *o)
{
    struct config *next = NULL;
    struct err e = {0};
    uint32_t n_changes = 0;
    int rc = s->configure(&next, o, &e);
    /* Programs that rewrite the file empty it first. */
    if (rc == 0 && next->set.n == 0 && (*current)->set.n > 0)
        rc = err_set(&e, SHOAL_EINVAL, "%s is empty", opts_text(o, "config"));
    if (rc == 0)
        rc = config_check_cluster(next, s->role, &e);
    if (rc == 0)
        rc = gateway_reload(g, next, &e);
    if (rc < 0) {
        log_error("serve", "keeping the old configuration: %s", e.msg);
        config_unref(next);
        return;
    }
    config_diff(&(*current)->set, &next->set, tell_change, &n_changes);
    config_unref(*current);
    *current = next;
    log_info("serve", "configuration reloaded, %u change%s", n_changes, plural(n_changes));
}

/* Reloads until a signal ends the server. */
static void wait_for_end(const struct serving *s, struct gateway *g, struct config **c,
                         const struct opts *o, int signals)
{
    const char *path = opts_text(o, "config"), *names = gateway_names_folder(g);
    struct file_watch *watch = NULL, *names_watch = NULL;
    char any[PATH_MAX];
    struct err e = {0};
    struct signalfd_siginfo info;
    if (path && file_watch_open(&watch, path, &e) < 0)
        log_warn("serve", "configuration changes need a SIGHUP: %s", e.msg);
    snprintf(any, sizeof(any), "%.4000s/any", names ? names : "");
    if (names && file_watch_open(&names_watch, any, &e) < 0)
        log_warn("serve", "models pulled by other programs need a SIGHUP: %s", e.msg);
    for (;;) {
        struct pollfd p[3] = {
            {.fd = signals, .events = POLLIN},
            {.fd = watch && (*c)->watch ? file_watch_fd(watch) : -1, .events = POLLIN},
            {.fd = names_watch ? file_watch_fd(names_watch) : -1, .events = POLLIN}};
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            break;
        if (p[2].revents != 0) {
            (void)file_watch_changed(names_watch); /* reads the events */
            gateway_refresh(g);
        }
        if (p[0].revents == 0 && p[1].revents != 0)
            (void)poll(p, 1, SETTLE_MS);
        if (p[0].revents != 0) {
            if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
                info.ssi_signo != SIGHUP)
                break;
            if (watch)
                file_watch_seen(watch);
            reload(s, g, c, o);
        } else if (p[1].revents != 0 && file_watch_changed(watch)) {
            log_info("serve", "%s has changed", path);
            reload(s, g, c, o);
        }
    }
    file_watch_close(names_watch);
    file_watch_close(watch);
}

static int serve(const struct serving *s, struct config **c, const struct opts *o)
{
    struct gateway *g = NULL;
    struct err e = {0};
    sigset_t set;
    /* Threads inherit the mask, so that only this thread receives signals. */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    mem_map_large();
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        return cmd_fail(s->page, "cannot receive signals: %s", strerror(errno));
    if (gateway_start(&g, *c, &e) < 0) {
        close(signals);
        return cmd_fail(s->page, "%s", e.msg);
    }
    say_hello(g, *c);
    wait_for_end(s, g, c, o, signals);
    close(signals);
    log_info("serve", "stopping");
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* a second Ctrl-C exits at once */
    signal(SIGHUP, SIG_IGN);
    gateway_drain(g);
    gateway_destroy(g);
    return CMD_OK;
}

int serving_main(const struct serving *s, int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct config *c = NULL;
    int code;
    if (!cmd_begin(&o, s->page, argc, argv, &code))
        return code;
    if (s->configure(&c, &o, &e) < 0 || config_check_cluster(c, s->role, &e) < 0 ||
        (opts_flag(&o, "check") && gateway_check(c, &e) < 0))
        code = cmd_fail(s->page, "%s", e.msg);
    else if (opts_flag(&o, "check"))
        code =
            printf("the configuration is valid: %u model%s\n", c->n_models, plural(c->n_models)) < 0
                ? CMD_FAILED
                : CMD_OK;
    else
        code = serve(s, &c, &o);
    config_unref(c);
    opts_fini(&o);
    return code;
}
