/* sim_scenario.c - see sim_scenario.h. */
#include "cluster/sim/sim_scenario.h"

#include <string.h>

#include "base/mem.h"

#define SIZE_OF(a) (sizeof(a) / sizeof((a)[0]))
#define MAX_REQUESTS 50e6 /* of one run */

static const char *const actions[] = {"crash",     "leave", "join", "slow",
                                      "partition", "drain", "spike"};

const char *sim_scenario_action(enum sim_action action)
{
    return actions[action];
}

/* ---- nodes ---- */

static int read_churn(struct yaml_in *r, yaml_node_t *v, const char *name, struct sim_churn *out)
{
    static const struct yaml_in_key table[] = {
        {"every", YAML_IN_MS, offsetof(struct sim_churn, every_ms), NULL},
        {"for", YAML_IN_MS, offsetof(struct sim_churn, for_ms), NULL},
        {"factor", YAML_IN_NUM, offsetof(struct sim_churn, factor), NULL}};
    struct sim_churn c = {.factor = 4};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &c, name);
    if (rc == 0 && (c.every_ms < 1000 || c.for_ms < 1000))
        rc = yaml_in_fail(r, v, "%s needs every and for, each at least 1s", name);
    if (rc == 0 && c.factor < 1)
        rc = yaml_in_fail(r, v, "factor must be at least 1");
    *out = c;
    return rc;
}

static struct sim_class *last_class(struct yaml_in *r)
{
    struct sim_scenario *s = r->ctx;
    return &s->classes[s->n_classes - 1];
}

static int read_crash(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return read_churn(r, v, name, &last_class(r)->crash);
}

static int read_leave(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return read_churn(r, v, name, &last_class(r)->leave);
}

static int read_slow(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return read_churn(r, v, name, &last_class(r)->slow);
}

/* Room for one more entry; the new one is zeroed and counted. */
static int grow(struct yaml_in *r, yaml_node_t *v, void **array, uint32_t *n, uint32_t max,
                size_t size, const char *name)
{
    if (*n == max)
        return yaml_in_fail(r, v, "%s has more than %u entries", name, max);
    char *bigger = mem_realloc(*array, (*n + 1) * size);
    if (!bigger)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    memset(bigger + *n * size, 0, size);
    *array = bigger;
    ++*n;
    return 0;
}

static int add_class(struct yaml_in *r, yaml_node_t *v, const char *name)
{
#define C(member) offsetof(struct sim_class, member)
    static const struct yaml_in_key table[] = {{"class", YAML_IN_STR, C(name), NULL},
                                               {"count", YAML_IN_U32, C(count), NULL},
                                               {"memory", YAML_IN_BYTES, C(memory_bytes), NULL},
                                               {"bandwidth", YAML_IN_BYTES_PER, C(bandwidth), NULL},
                                               {"tokens", YAML_IN_NUM, C(tokens), NULL},
                                               {"variation", YAML_IN_SHARE, C(variation), NULL},
                                               {"load", YAML_IN_BYTES_PER, C(load_bytes), NULL},
                                               {"cost", YAML_IN_NUM, C(cost), NULL},
                                               {"busy", YAML_IN_SHARE, C(busy), NULL},
                                               {"battery", YAML_IN_SHARE, C(battery), NULL},
                                               {"zones", YAML_IN_STRS, C(zones), NULL},
                                               {"labels", YAML_IN_STRS, C(labels), NULL},
                                               {"crash", YAML_IN_CUSTOM, 0, read_crash},
                                               {"leave", YAML_IN_CUSTOM, 0, read_leave},
                                               {"slow", YAML_IN_CUSTOM, 0, read_slow}};
#undef C
    struct sim_scenario *s = r->ctx;
    int rc =
        grow(r, v, (void **)&s->classes, &s->n_classes, SIM_MAX_CLASSES, sizeof(*s->classes), name);
    if (rc < 0)
        return rc;
    struct sim_class *c = last_class(r);
    *c = (struct sim_class){.count = 1, .load_bytes = 200e6, .cost = 1, .battery = -1};
    rc = yaml_in_map(r, v, table, SIZE_OF(table), c, name);
    if (rc < 0)
        return rc;
    if (!c->name || !c->name[0] || c->memory_bytes == 0 || c->bandwidth <= 0)
        return yaml_in_fail(r, v, "nodes need class, memory and bandwidth");
    if (c->load_bytes < 1e3)
        return yaml_in_fail(r, v, "load must be at least 1kB/s");
    for (uint32_t i = 0; i + 1 < s->n_classes; i++)
        if (strcmp(s->classes[i].name, c->name) == 0)
            return yaml_in_fail(r, v, "two classes are named %.40s", c->name);
    return 0;
}

static int read_nodes(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_class);
}

/* ---- models ---- */

static struct sim_model *last_model(struct yaml_in *r)
{
    struct sim_scenario *s = r->ctx;
    return &s->models[s->n_models - 1];
}

static int read_kind(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const char *const kinds[] = {"decoder", "encoder", "scorer"};
    const char *text = yaml_in_scalar(v);
    for (size_t i = 0; text && i < SIZE_OF(kinds); i++)
        if (strcmp(kinds[i], text) == 0) {
            last_model(r)->kind = (enum placement_kind)i;
            return 0;
        }
    return yaml_in_fail(r, v, "%s must be decoder, encoder or scorer", name);
}

static int read_arrivals(struct yaml_in *r, yaml_node_t *v, const char *name)
{
#define M(member) offsetof(struct sim_model, member)
    static const struct yaml_in_key table[] = {{"rate", YAML_IN_RATE, M(rate), NULL},
                                               {"swing", YAML_IN_SHARE, M(swing), NULL},
                                               {"period", YAML_IN_MS, M(period_ms), NULL},
                                               {"steady", YAML_IN_BOOL, M(steady), NULL}};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), last_model(r), name);
    if (rc == 0 && last_model(r)->period_ms < 1000)
        rc = yaml_in_fail(r, v, "period must be at least 1s");
    return rc;
}

static int read_autoscale(struct yaml_in *r, yaml_node_t *v, const char *name)
{
#define A(member) M(scaling.member)
    static const struct yaml_in_key table[] = {{"cpu", YAML_IN_SHARE, A(cpu), NULL},
                                               {"queue", YAML_IN_NUM, A(queue), NULL},
                                               {"p95", YAML_IN_SHARE, A(p95), NULL},
                                               {"tolerance", YAML_IN_SHARE, A(tolerance), NULL},
                                               {"max_growth", YAML_IN_NUM, A(max_growth), NULL},
                                               {"up", YAML_IN_MS, A(up_ms), NULL},
                                               {"down", YAML_IN_MS, A(down_ms), NULL},
                                               {"idle", YAML_IN_MS, A(idle_ms), NULL}};
#undef A
    last_model(r)->autoscale = true;
    return yaml_in_map(r, v, table, SIZE_OF(table), last_model(r), name);
}

static int check_model(struct yaml_in *r, yaml_node_t *v, const struct sim_model *m)
{
    const struct sim_scenario *s = r->ctx;
    if (!m->name || !m->name[0] || m->memory_bytes == 0)
        return yaml_in_fail(r, v, "a model needs a name and memory");
    if (m->copies == 0 || m->copies > PLACEMENT_MAX_MODELS)
        return yaml_in_fail(r, v, "copies must be from 1 to %u", PLACEMENT_MAX_MODELS);
    if (m->max > 0 && m->min > m->max)
        return yaml_in_fail(r, v, "min %u is above max %u", m->min, m->max);
    if (m->max > PLACEMENT_MAX_NODES || m->min > PLACEMENT_MAX_NODES ||
        m->standby > PLACEMENT_MAX_NODES)
        return yaml_in_fail(r, v, "min, max and standby must be at most %u", PLACEMENT_MAX_NODES);
    if (m->max > 0 && m->pins.n > m->max)
        return yaml_in_fail(r, v, "%u pins, but max is %u", m->pins.n, m->max);
    if (m->budget_ms == 0 || m->tokens <= 0)
        return yaml_in_fail(r, v, "budget and tokens must be above 0");
    for (uint32_t i = 0; i + 1 < s->n_models; i++)
        if (strcmp(s->models[i].name, m->name) == 0)
            return yaml_in_fail(r, v, "two models are named %.40s", m->name);
    return 0;
}

static int add_model(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {{"name", YAML_IN_STR, M(name), NULL},
                                               {"copies", YAML_IN_U32, M(copies), NULL},
                                               {"kind", YAML_IN_CUSTOM, 0, read_kind},
                                               {"memory", YAML_IN_BYTES, M(memory_bytes), NULL},
                                               {"bytes", YAML_IN_BYTES, M(bytes), NULL},
                                               {"min", YAML_IN_U32, M(min), NULL},
                                               {"max", YAML_IN_U32, M(max), NULL},
                                               {"standby", YAML_IN_U32, M(standby), NULL},
                                               {"max_per_zone", YAML_IN_U32, M(max_per_zone), NULL},
                                               {"priority", YAML_IN_I32, M(priority), NULL},
                                               {"spread", YAML_IN_BOOL, M(spread), NULL},
                                               {"apart", YAML_IN_STR, M(apart), NULL},
                                               {"pins", YAML_IN_STRS, M(pins), NULL},
                                               {"labels", YAML_IN_STRS, M(labels), NULL},
                                               {"not_labels", YAML_IN_STRS, M(not_labels), NULL},
                                               {"zones", YAML_IN_STRS, M(zones), NULL},
                                               {"budget", YAML_IN_MS, M(budget_ms), NULL},
                                               {"tokens", YAML_IN_NUM, M(tokens), NULL},
                                               {"arrivals", YAML_IN_CUSTOM, 0, read_arrivals},
                                               {"autoscale", YAML_IN_CUSTOM, 0, read_autoscale}};
#undef M
    struct sim_scenario *s = r->ctx;
    int rc =
        grow(r, v, (void **)&s->models, &s->n_models, SIM_MAX_MODELS, sizeof(*s->models), name);
    if (rc < 0)
        return rc;
    struct sim_model *m = last_model(r);
    *m = (struct sim_model){.copies = 1,
                            .min = 1,
                            .budget_ms = 1000,
                            .tokens = 20,
                            .period_ms = 24 * 3600 * 1000,
                            .scaling = autoscale_policy_default()};
    rc = yaml_in_map(r, v, table, SIZE_OF(table), m, name);
    return rc < 0 ? rc : check_model(r, v, m);
}

static int read_models(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_model);
}

/* ---- events ---- */

struct event_keys {
    struct sim_event event;
    char *action, *class_name, *model;
};

static uint32_t find_class(const struct sim_scenario *s, const char *name)
{
    uint32_t i = 0;
    while (i < s->n_classes && strcmp(s->classes[i].name, name) != 0)
        i++;
    return i < s->n_classes ? i : UINT32_MAX;
}

static uint32_t find_model(const struct sim_scenario *s, const char *name)
{
    uint32_t i = 0;
    while (i < s->n_models && strcmp(s->models[i].name, name) != 0)
        i++;
    return i < s->n_models ? i : UINT32_MAX;
}

static int finish_event(struct yaml_in *r, yaml_node_t *v, struct event_keys *k)
{
    const struct sim_scenario *s = r->ctx;
    struct sim_event *ev = &k->event;
    ev->class_id = ev->model_id = UINT32_MAX;
    ev->action = SIM_N_ACTIONS;
    for (size_t i = 0; k->action && i < SIM_N_ACTIONS; i++)
        if (strcmp(actions[i], k->action) == 0)
            ev->action = (enum sim_action)i;
    if (ev->action == SIM_N_ACTIONS)
        return yaml_in_fail(r, v, "do must be crash, leave, join, slow, partition, drain or spike");
    if (k->class_name && (ev->class_id = find_class(s, k->class_name)) == UINT32_MAX)
        return yaml_in_fail(r, v, "no nodes above have class %.40s", k->class_name);
    if (k->model && (ev->model_id = find_model(s, k->model)) == UINT32_MAX)
        return yaml_in_fail(r, v, "no model above is named %.40s", k->model);
    if (ev->action == SIM_JOIN && ev->class_id == UINT32_MAX)
        return yaml_in_fail(r, v, "join needs a class");
    if (ev->action == SIM_PARTITION && !ev->zone)
        return yaml_in_fail(r, v, "partition needs a zone");
    if (ev->action == SIM_SPIKE && ev->model_id == UINT32_MAX)
        return yaml_in_fail(r, v, "spike needs a model");
    if (ev->count == 0 || ev->count > PLACEMENT_MAX_NODES)
        return yaml_in_fail(r, v, "count must be from 1 to %u", PLACEMENT_MAX_NODES);
    if (ev->factor < (ev->action == SIM_SLOW ? 1 : 0) || ev->factor > 1000)
        return yaml_in_fail(r, v, "factor must be from %d to 1000", ev->action == SIM_SLOW);
    return 0;
}

static int add_event(struct yaml_in *r, yaml_node_t *v, const char *name)
{
#define E(member) offsetof(struct event_keys, member)
    static const struct yaml_in_key table[] = {{"at", YAML_IN_MS, E(event.at_ms), NULL},
                                               {"for", YAML_IN_MS, E(event.for_ms), NULL},
                                               {"do", YAML_IN_STR, E(action), NULL},
                                               {"class", YAML_IN_STR, E(class_name), NULL},
                                               {"model", YAML_IN_STR, E(model), NULL},
                                               {"zone", YAML_IN_STR, E(event.zone), NULL},
                                               {"count", YAML_IN_U32, E(event.count), NULL},
                                               {"factor", YAML_IN_NUM, E(event.factor), NULL}};
#undef E
    struct sim_scenario *s = r->ctx;
    struct event_keys k = {.event = {.count = 1, .factor = 4}};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &k, name);
    if (rc == 0)
        rc = finish_event(r, v, &k);
    if (rc == 0)
        rc =
            grow(r, v, (void **)&s->events, &s->n_events, SIM_MAX_EVENTS, sizeof(*s->events), name);
    if (rc == 0)
        s->events[s->n_events - 1] = k.event;
    else
        mem_free(k.event.zone);
    mem_free(k.action);
    mem_free(k.class_name);
    mem_free(k.model);
    return rc;
}

static int read_events(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_event);
}

/* ---- all ---- */

#define S(member) offsetof(struct sim_scenario, member)
static int read_policy(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"zone_weight", YAML_IN_NUM, S(policy.zone_weight), NULL},
        {"cost_weight", YAML_IN_NUM, S(policy.cost_weight), NULL},
        {"battery_weight", YAML_IN_NUM, S(policy.battery_weight), NULL},
        {"pack_weight", YAML_IN_NUM, S(policy.pack_weight), NULL},
        {"min_gain", YAML_IN_SHARE, S(policy.min_gain), NULL},
        {"battery_min", YAML_IN_SHARE, S(policy.battery_min), NULL},
        {"battery_margin", YAML_IN_SHARE, S(policy.battery_margin), NULL},
        {"cooldown", YAML_IN_MS, S(policy.cooldown_ms), NULL},
        {"max_moves", YAML_IN_U32, S(policy.max_moves), NULL}};
    return yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
}

static int read_control(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"pause", YAML_IN_MS, S(pause_ms), NULL},       {"plan", YAML_IN_MS, S(plan_ms), NULL},
        {"scale", YAML_IN_MS, S(scale_ms), NULL},       {"detect", YAML_IN_MS, S(detect_ms), NULL},
        {"failover", YAML_IN_MS, S(failover_ms), NULL}, {"stall", YAML_IN_MS, S(stall_ms), NULL}};
    const struct sim_scenario *s = r->ctx;
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
    if (rc == 0 && (s->plan_ms < 1000 || s->scale_ms < 1000))
        rc = yaml_in_fail(r, v, "plan and scale must be at least 1s");
    return rc;
}

static const struct yaml_in_key top[] = {
    {"name", YAML_IN_STR, S(name), NULL},        {"duration", YAML_IN_MS, S(duration_ms), NULL},
    {"warmup", YAML_IN_MS, S(warmup_ms), NULL},  {"seed", YAML_IN_U32, S(seed), NULL},
    {"nodes", YAML_IN_CUSTOM, 0, read_nodes},    {"models", YAML_IN_CUSTOM, 0, read_models},
    {"events", YAML_IN_CUSTOM, 0, read_events},  {"policy", YAML_IN_CUSTOM, 0, read_policy},
    {"control", YAML_IN_CUSTOM, 0, read_control}};

uint64_t sim_scenario_nodes(const struct sim_scenario *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n_classes; i++)
        n += s->classes[i].count;
    for (uint32_t i = 0; i < s->n_events; i++)
        n += s->events[i].action == SIM_JOIN ? s->events[i].count : 0;
    return n;
}

/* Sizes that are checked again after a resize. */
static int check_sizes(const struct sim_scenario *s, const char *name, struct err *e)
{
    uint64_t n_models = 0, n_nodes = sim_scenario_nodes(s);
    double requests = 0;
    for (uint32_t i = 0; i < s->n_models; i++) {
        double factor = 1;
        for (uint32_t k = 0; k < s->n_events; k++)
            if (s->events[k].model_id == i && s->events[k].factor > factor)
                factor = s->events[k].factor;
        n_models += s->models[i].copies;
        requests += s->models[i].rate * s->models[i].copies * (1 + s->models[i].swing) * factor *
                    s->duration_ms / 1000;
    }
    if (n_nodes == 0 || n_nodes > PLACEMENT_MAX_NODES)
        return err_set(e, SHOAL_EFORMAT, "%s: %llu nodes; 1 to %u are possible", name,
                       (unsigned long long)n_nodes, PLACEMENT_MAX_NODES);
    if (n_models == 0 || n_models > PLACEMENT_MAX_MODELS)
        return err_set(e, SHOAL_EFORMAT, "%s: %llu models; 1 to %u are possible", name,
                       (unsigned long long)n_models, PLACEMENT_MAX_MODELS);
    if (n_nodes * n_models > PLACEMENT_MAX_CELLS)
        return err_set(e, SHOAL_EFORMAT, "%s: %llu nodes times %llu models are too many", name,
                       (unsigned long long)n_nodes, (unsigned long long)n_models);
    if (requests > MAX_REQUESTS)
        return err_set(e, SHOAL_EFORMAT,
                       "%s: %.0f million requests; at most %.0f million are simulated: lower the "
                       "rates or the duration",
                       name, requests / 1e6, MAX_REQUESTS / 1e6);
    return 0;
}

int sim_scenario_parse(struct sim_scenario *s, const char *text, size_t n, const char *name,
                       struct err *e)
{
    *s = (struct sim_scenario){.duration_ms = 3600 * 1000,
                               .warmup_ms = 120 * 1000,
                               .seed = 1,
                               .pause_ms = 1000,
                               .plan_ms = 10 * 1000,
                               .scale_ms = 10 * 1000,
                               .detect_ms = 3000,
                               .failover_ms = 500,
                               .stall_ms = 2000,
                               .policy = placement_policy_default()};
    int rc = yaml_in_parse(text, n, name, top, SIZE_OF(top), s, s, e);
    if (rc == 0 && s->duration_ms <= s->warmup_ms)
        rc = err_set(e, SHOAL_EFORMAT, "%s: duration must be longer than warmup", name);
    return rc < 0 ? rc : check_sizes(s, name, e);
}

void sim_scenario_fini(struct sim_scenario *s)
{
    for (uint32_t i = 0; i < s->n_classes; i++) {
        mem_free(s->classes[i].name);
        yaml_in_strs_fini(&s->classes[i].zones);
        yaml_in_strs_fini(&s->classes[i].labels);
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        struct sim_model *m = &s->models[i];
        mem_free(m->name);
        mem_free(m->apart);
        yaml_in_strs_fini(&m->pins);
        yaml_in_strs_fini(&m->labels);
        yaml_in_strs_fini(&m->not_labels);
        yaml_in_strs_fini(&m->zones);
    }
    for (uint32_t i = 0; i < s->n_events; i++)
        mem_free(s->events[i].zone);
    mem_free(s->name);
    mem_free(s->classes);
    mem_free(s->models);
    mem_free(s->events);
    *s = (struct sim_scenario){0};
}

static uint32_t scaled(uint32_t n, double factor)
{
    double v = n * factor + 0.5;
    return n == 0 ? 0 : v < 1 ? 1 : v > PLACEMENT_MAX_NODES ? PLACEMENT_MAX_NODES : (uint32_t)v;
}

int sim_scenario_resize(struct sim_scenario *s, uint32_t n_nodes, struct err *e)
{
    uint64_t now = 0;
    for (uint32_t i = 0; i < s->n_classes; i++)
        now += s->classes[i].count;
    double factor = now ? (double)n_nodes / (double)now : 1;
    for (uint32_t i = 0; i < s->n_classes; i++)
        s->classes[i].count = scaled(s->classes[i].count, factor);
    for (uint32_t i = 0; i < s->n_events; i++)
        s->events[i].count = scaled(s->events[i].count, factor);
    for (uint32_t i = 0; i < s->n_models; i++) {
        struct sim_model *m = &s->models[i];
        m->min = scaled(m->min, factor);
        m->max = scaled(m->max, factor);
        m->max = m->max && m->max < m->pins.n ? m->pins.n : m->max;
        m->standby = scaled(m->standby, factor);
        m->rate *= factor;
    }
    return check_sizes(s, s->name ? s->name : "the scenario", e);
}
