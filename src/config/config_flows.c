/* config_flows.c - see config_flows.h. */
#include "config/config_flows.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/config_url.h"
#include "config/config_where.h"
#include "mqtt/mqtt_topic.h"
#include "pipeline/graph/graph_kind.h"
#include "router/router.h"

#define MAX_USES 4096u

static int nomem(struct yaml_in *r)
{
    return err_set(r->e, SHOAL_ENOMEM, "%s: out of memory", r->name);
}

static int graph_of(struct yaml_in *r, struct config_flow *flow)
{
    return flow->graph || graph_create(&flow->graph, "") == 0 ? 0 : nomem(r);
}

static int limit(struct yaml_in *r, const yaml_node_t *at, int rc, const char *what)
{
    return rc == SHOAL_ELIMIT ? yaml_in_fail(r, at, "too many %s", what) : rc < 0 ? nomem(r) : 0;
}

/* ---- inputs ---- */

int config_flows_take_input(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct config_flow *flow = parent;
    const struct config_flow_input *k = item;
    int rc = graph_of(r, flow);
    if (rc == 0)
        rc = limit(
            r, at,
            graph_add_input(flow->graph, k->name, (enum graph_input_type)k->type, k->fallback, at),
            "inputs");
    return rc;
}

/* ---- steps ---- */

int config_flows_take_case(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct config_flow_step *step = parent;
    struct config_flow_case *k = item;
    if (step->n_cases == GRAPH_MAX_CASES)
        return yaml_in_fail(r, at, "too many cases");
    k->at = at;
    step->cases[step->n_cases++] = *k;
    *k = (struct config_flow_case){.when = NULL};
    return 0;
}

void config_flows_drop_step(void *item)
{
    struct config_flow_step *k = item;
    for (uint32_t i = 0; i < k->n_cases; i++) {
        mem_free(k->cases[i].when);
        mem_free(k->cases[i].value);
        mem_free(k->cases[i].step);
    }
    k->n_cases = 0;
}

/* Keys that steps of another kind have, and keys that are missing. */
static int check_keys(struct yaml_in *r, const yaml_node_t *at, const struct config_flow_step *k)
{
    const struct graph_kind_info *info = &graph_kinds[k->kind];
    for (yaml_node_pair_t *p = at->data.mapping.pairs.start; p < at->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, p->key);
        const char *name = key ? yaml_in_scalar(key) : NULL;
        if (name && !graph_kind_may(k->kind, name))
            return yaml_in_fail(r, key, "a %s has no '%s'. It may have: %s", info->name, name,
                                info->keys);
    }
    for (const char *p = info->needed; *p;) {
        char word[32];
        size_t n = strcspn(p, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, p);
        if (!yaml_in_find(r, at, word))
            return yaml_in_fail(r, at, "a %s needs '%s'", info->name, word);
        p += n;
        p += *p == ' ';
    }
    return 0;
}

/* "http[s]://HOST:PORT" of a URL, whose path may have expressions; NULL: invalid. */
static char *server_of(const char *url)
{
    bool known = strncmp(url, "http://", 7) == 0 || config_url_is_secure(url);
    const char *at = known ? config_url_host(url) : url, *slash = known ? strchr(at, '/') : NULL;
    size_t n = slash ? (size_t)(slash - at) : 0;
    if (n == 0 || memchr(at, '$', n) || memchr(at, '@', n) || memchr(at, '{', n))
        return NULL;
    return mem_strndup(url, (size_t)(slash - url));
}

static int use(struct yaml_in *r, struct config_flow *c, uint32_t via, const char *what,
               const yaml_node_t *at)
{
    struct config_flow_use x = {.via = via, .what = mem_strdup(what)};
    struct config_flow_use *v =
        c->n_uses < MAX_USES ? mem_realloc(c->uses, (c->n_uses + 1) * sizeof(*v)) : NULL;
    if (v)
        c->uses = v;
    if (!v || !x.what) {
        mem_free(x.what);
        return nomem(r);
    }
    yaml_in_place(r, at, 0, &x.line, &x.column);
    v[c->n_uses++] = x;
    return 0;
}

/* Checks the requirements of a call; *server must be freed. */
static int check_call(struct yaml_in *r, const yaml_node_t *at, const struct config_flow_step *k,
                      struct config_flow *c, char **server)
{
    const yaml_node_t *v;
    *server = NULL;
    if (k->via == GRAPH_HTTP) {
        if (!k->url)
            return yaml_in_fail(r, at, "via: http needs 'url'");
        v = yaml_in_find(r, at, "url");
        *server = server_of(k->url);
        if (!*server)
            return yaml_in_fail(r, v,
                                "url must be http://HOST:PORT/PATH or https://HOST:PORT/PATH, with "
                                "expressions in the path only");
        return use(r, c, k->via, config_url_host(*server), v);
    }
    if (k->via == GRAPH_MQTT) {
        if (!k->topic || !k->payload)
            return yaml_in_fail(r, at, "via: mqtt needs 'topic' and 'payload'");
        v = yaml_in_find(r, at, "topic");
        if (strpbrk(k->topic, "+#"))
            return yaml_in_fail(r, v, "a topic to publish to has no '+' and no '#'");
        return use(r, c, k->via, k->topic, v);
    }
    if (k->via == GRAPH_PLUGIN) {
        v = yaml_in_find(r, at, "plugin");
        if (!k->plugin || k->plugin[0] != '/' || strstr(k->plugin, "/../") ||
            strchr(k->plugin, '$'))
            return yaml_in_fail(r, v ? v : at,
                                "via: plugin needs 'plugin', the absolute path of a shared object, "
                                "without '..' and without expressions");
        return use(r, c, k->via, k->plugin, v);
    }
    v = yaml_in_find(r, at, "command");
    if (k->command.n == 0 || k->command.v[0][0] != '/' || strchr(k->command.v[0], '$'))
        return yaml_in_fail(r, v ? v : at,
                            "via: command needs 'command', a list whose first entry is the "
                            "absolute path of a program");
    return use(r, c, k->via, k->command.v[0], v);
}

struct arg_row {
    enum graph_role role;
    const char *key;
    const char *text;
};

/* The i-th text of a list, or the only one of a key without brackets. */
static const yaml_node_t *nth(struct yaml_in *r, const yaml_node_t *list, uint32_t i)
{
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return list;
    return yaml_document_get_node(r->doc, list->data.sequence.items.start[i]);
}

static int add_args(struct yaml_in *r, const yaml_node_t *at, const struct config_flow_step *k,
                    struct graph *g, struct graph_step *s)
{
    const struct arg_row rows[] = {
        {GRAPH_ROLE_TEXT, "text", k->text},
        {GRAPH_ROLE_SYSTEM, "system", k->system},
        {GRAPH_ROLE_QUERY, "query", k->query},
        {GRAPH_ROLE_VALUES, "values", k->values},
        {GRAPH_ROLE_PASSAGES, "passages", k->passages},
        {GRAPH_ROLE_OVER, "over", k->over},
        {GRAPH_ROLE_WHEN, "when", k->when},
        {GRAPH_ROLE_FALLBACK, "fallback", k->fallback},
        {GRAPH_ROLE_ON_TIMEOUT, "on_timeout", k->on_timeout},
        {GRAPH_ROLE_PATH, "url", k->url},
        {GRAPH_ROLE_TOPIC, "topic", k->topic},
        {GRAPH_ROLE_PAYLOAD, "payload", k->payload},
    };
    const struct {
        enum graph_role role;
        const char *key;
        const struct yaml_in_strs *list;
    } lists[] = {{GRAPH_ROLE_FROM, "from", &k->from},
                 {GRAPH_ROLE_ARGUMENT, "command", &k->command}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].text)
            rc = graph_add_arg(g, s, rows[i].role, rows[i].text, yaml_in_find(r, at, rows[i].key));
    for (size_t l = 0; l < 2; l++)
        for (uint32_t i = 0; rc == 0 && i < lists[l].list->n; i++)
            rc = graph_add_arg(g, s, lists[l].role, lists[l].list->v[i],
                               nth(r, yaml_in_find(r, at, lists[l].key), i));
    for (uint32_t i = 0; rc == 0 && i < k->n_cases; i++) {
        const struct config_flow_case *c = &k->cases[i];
        rc = graph_add_case(g, s, c->when, yaml_in_find(r, c->at, "when"), c->value,
                            yaml_in_find(r, c->at, "value"), c->step, c->at);
    }
    return limit(r, at, rc, "expressions in a step");
}

int config_flows_take_step(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    const struct config_flow_step *k = item;
    struct config_flow *flow = parent;
    static const char *const methods[] = {"POST", "PUT", "GET"};
    struct graph_step *s;
    char *server = NULL;
    int rc = check_keys(r, at, k);
    if (rc == 0)
        rc = graph_of(r, flow);
    if (rc == 0 && k->kind == GRAPH_CALL)
        rc = check_call(r, at, k, flow, &server);
    if (rc == 0 && k->kind == GRAPH_SWITCH && k->n_cases == 0)
        rc = yaml_in_fail(r, at, "a switch needs cases");
    if (rc == 0 && k->kind == GRAPH_MERGE && k->from.n == 0)
        rc = yaml_in_fail(r, at, "a merge needs at least one value in 'from'");
    const struct graph_step_spec spec = {.name = k->name,
                                         .kind = (enum graph_kind)k->kind,
                                         .model = k->model,
                                         .labels = k->labels,
                                         .collection = k->collection,
                                         .reranker = k->reranker,
                                         .separator = k->separator,
                                         .body = k->step,
                                         .fallback_step = k->fallback_step,
                                         .count = k->count,
                                         .max_tokens = k->max_tokens,
                                         .timeout_ms = k->timeout_ms,
                                         .temperature = k->temperature,
                                         .share = k->share,
                                         .how = (enum graph_how)k->how,
                                         .call = {.via = (enum graph_via)k->via,
                                                  .server = server,
                                                  .method = methods[k->method],
                                                  .plugin = k->plugin,
                                                  .qos = k->qos,
                                                  .retry = k->retry,
                                                  .retain = k->retain,
                                                  .json = k->json}};
    if (rc == 0)
        rc = limit(r, at, graph_add_step(flow->graph, &spec, at, &s), "steps");
    if (rc == 0)
        rc = add_args(r, at, k, flow->graph, s);
    mem_free(server);
    return rc;
}

/* ---- flows ---- */

static int check(struct yaml_in *r, const yaml_node_t *at, struct graph *g)
{
    struct graph_error bad;
    int rc = graph_check(g, &bad);
    if (rc == 0)
        return 0;
    if (rc == SHOAL_ENOMEM || !bad.msg[0])
        return nomem(r);
    const yaml_node_t *where = bad.where ? bad.where : at;
    return yaml_in_fail_at(r, where, bad.at, "%.220s", bad.msg);
}

int config_flows_take(struct yaml_in *r, yaml_node_t *at, struct config_flow *k,
                      struct config_flows *c)
{
    int rc = graph_of(r, k);
    if (config_flows_find(c, k->name))
        return yaml_in_fail(r, at, "two flows are named %.80s", k->name);
    if (c->n == CONFIG_MAX_FLOWS)
        return yaml_in_fail(r, at, "more than %u flows", CONFIG_MAX_FLOWS);
    if (rc == 0)
        rc = graph_set_name(k->graph, k->name, k->text, k->budget_ms);
    if (rc == 0)
        rc = graph_set_output(k->graph, k->output, yaml_in_find(r, at, "output"));
    if (rc == 0 && k->fallback)
        rc = graph_set_fallback(k->graph, k->fallback, yaml_in_find(r, at, "fallback"));
    if (rc < 0)
        return nomem(r);
    rc = check(r, at, k->graph);
    if (rc < 0)
        return rc;
    struct config_flow_use *v = mem_realloc(c->uses, (c->n_uses + k->n_uses + 1) * sizeof(*v));
    if (!v)
        return nomem(r);
    c->uses = v;
    for (uint32_t i = 0; i < k->n_uses; i++)
        v[c->n_uses++] = k->uses[i];
    k->n_uses = 0;
    c->v[c->n++] = k->graph;
    k->graph = NULL;
    return 0;
}

void config_flows_drop(void *item)
{
    struct config_flow *k = item;
    graph_unref(k->graph);
    for (uint32_t i = 0; i < k->n_uses; i++)
        mem_free(k->uses[i].what);
    mem_free(k->uses);
}

struct graph *config_flows_find(const struct config_flows *c, const char *name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i]->name, name) == 0)
            return c->v[i];
    return NULL;
}

/* ---- the whole file ---- */

/* A topic may have expressions; their values stay within one level (GRAPH_EXPR_TOPIC), and only a
 * wildcard of a filter covers them. */
static bool topic_allowed(const struct yaml_in_strs *filters, const char *topic)
{
    char plain[MQTT_TOPIC_MAX_BYTES];
    size_t n = 0;
    for (const char *p = topic; *p && n + 2 < sizeof(plain);) {
        if (p[0] == '$' && p[1] == '{') {
            const char *end = strchr(p, '}');
            p = end ? end + 1 : p + strlen(p);
            plain[n++] = '\x01'; /* a byte that no filter contains */
            continue;
        }
        plain[n++] = *p++;
    }
    plain[n] = '\0';
    for (uint32_t i = 0; i < filters->n; i++)
        if (mqtt_topic_matches(filters->v[i], plain, NULL, NULL))
            return true;
    return false;
}

/* A plug-in must be directly in one of the folders. */
static bool plugin_allowed(const struct yaml_in_strs *folders, const char *path)
{
    const char *name = strrchr(path, '/');
    for (uint32_t i = 0; name && i < folders->n; i++) {
        size_t n = strlen(folders->v[i]);
        while (n > 0 && folders->v[i][n - 1] == '/')
            n--;
        if (n == (size_t)(name - path) && strncmp(folders->v[i], path, n) == 0)
            return true;
    }
    return false;
}

int config_flows_finish(const struct config_flows *c, const struct router_table *t,
                        const struct config_where *w)
{
    static const char *const lists[] = {"hosts", "topics", "commands", "plugins"};
    for (uint32_t i = 0; i < c->n_uses; i++) {
        const struct config_flow_use *x = &c->uses[i];
        bool ok = x->via == GRAPH_HTTP     ? yaml_in_strs_has(&c->hosts, x->what)
                  : x->via == GRAPH_MQTT   ? topic_allowed(&c->topics, x->what)
                  : x->via == GRAPH_PLUGIN ? plugin_allowed(&c->plugins, x->what)
                                           : yaml_in_strs_has(&c->commands, x->what);
        if (!ok && x->via == GRAPH_PLUGIN)
            return err_set(w->e, SHOAL_EFORMAT,
                           "%s:%zu:%zu: add the folder of %.100s to flows_allow.plugins to use it",
                           w->file, x->line, x->column, x->what);
        if (!ok)
            return err_set(w->e, SHOAL_EFORMAT,
                           "%s:%zu:%zu: add %.100s to flows_allow.%s to use it", w->file, x->line,
                           x->column, x->what, lists[x->via]);
    }
    for (uint32_t i = 0; i < t->n_routes; i++) {
        const struct router_route *r = &t->routes[i];
        if (r->flow && !config_flows_find(c, r->flow))
            return config_where_fail(w, "routes[].flow", r->flow,
                                     "the route '%.80s' names the flow '%.80s', which is not in "
                                     "`flows`",
                                     r->name, r->flow);
        if (config_flows_find(c, r->name))
            return config_where_fail(w, "routes[].name", r->name,
                                     "'%.80s' is the name of a flow and of a route", r->name);
    }
    for (uint32_t i = 0; i < t->n_known; i++)
        if (config_flows_find(c, t->known[i].name))
            return config_where_fail(w, "flows[].name", t->known[i].name,
                                     "'%.80s' is the name of a flow and of a model",
                                     t->known[i].name);
    if (!c->process || strcmp(c->process, "ask") == 0 || config_flows_find(c, c->process))
        return 0;
    for (uint32_t i = 0; i < t->n_routes; i++)
        if (t->routes[i].flow && strcmp(t->routes[i].name, c->process) == 0)
            return 0;
    return config_where_fail(
        w, "process.flow", c->process,
        "process.flow is '%.80s', which is neither a flow nor a route with one", c->process);
}

void config_flows_fini(struct config_flows *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        graph_unref(c->v[i]);
    for (uint32_t i = 0; i < c->n_uses; i++)
        mem_free(c->uses[i].what);
    mem_free(c->uses);
}
