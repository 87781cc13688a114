/* desired.c - see desired.h. */
#include "cluster/control/desired.h"

#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/strmap.h"

#define MAX_ARENA_BYTES (256u << 20) /* for one state including everything that changed in it */

int desired_create(struct desired **out, struct err *e)
{
    struct desired *d = mem_zalloc(sizeof(*d));
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "desired state");
    if (getrandom(d->id, sizeof(d->id), 0) != (ssize_t)sizeof(d->id)) {
        mem_free(d);
        return err_set(e, SHOAL_EIO, "no random bytes for the desired state's id");
    }
    arena_init(&d->arena, MAX_ARENA_BYTES);
    d->policy = (struct desired_policy){250, 8, placement_policy_default()};
    *out = d;
    return 0;
}

void desired_destroy(struct desired *d)
{
    if (!d)
        return;
    arena_fini(&d->arena);
    mem_free(d);
}

/* ---- finding -------------------------------------------------------------------------------- */

struct desired_model *desired_find_model(const struct desired *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_models; i++)
        if (strcmp(d->models[i].name, name) == 0)
            return &d->models[i];
    return NULL;
}

struct desired_rollout *desired_find_rollout(const struct desired *d, const char *id)
{
    for (uint32_t i = 0; i < d->n_rollouts; i++)
        if (strcmp(d->rollouts[i].id, id) == 0)
            return &d->rollouts[i];
    return NULL;
}

struct desired_assignment *desired_find_assignment(const struct desired *d, const char *node,
                                                   const char *model,
                                                   const uint8_t sha256[SHA256_BYTES])
{
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        struct desired_assignment *a = &d->assignments[i];
        if (memcmp(a->sha256, sha256, SHA256_BYTES) == 0 && strcmp(a->node, node) == 0 &&
            strcmp(a->model, model) == 0)
            return a;
    }
    return NULL;
}

static uint32_t drained_at(const struct desired *d, const char *node)
{
    uint32_t i = 0;
    while (i < d->drained.n && strcmp(d->drained.items[i], node) != 0)
        i++;
    return i;
}

bool desired_is_drained(const struct desired *d, const char *node)
{
    return drained_at(d, node) < d->drained.n;
}

/* ---- changing ------------------------------------------------------------------------------- */

static const char *copy(struct desired *d, const char *s)
{
    return s ? arena_printf(&d->arena, "%s", s) : "";
}

static struct desired_names copy_names(struct desired *d, const struct desired_names *from)
{
    struct desired_names to = {arena_zalloc_n(&d->arena, from->n, sizeof(char *)), from->n};
    for (uint32_t i = 0; to.items && i < from->n; i++)
        to.items[i] = copy(d, from->items[i]);
    return to.items ? to : (struct desired_names){0};
}

/* Makes room for one more of n items: the array, perhaps a new one.  NULL: no memory. */
static void *room(struct desired *d, void *items, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    uint32_t more = *cap ? *cap * 2 : 8;
    void *p = arena_zalloc_n(&d->arena, more, size);
    if (!p)
        return NULL;
    if (n)
        memcpy(p, items, n * size);
    *cap = more;
    return p;
}

int desired_put_model(struct desired *d, const struct desired_model *m)
{
    struct desired_model c = *m, *at = desired_find_model(d, m->name);
    c.name = copy(d, m->name);
    c.source = copy(d, m->source);
    c.pins = copy_names(d, &m->pins);
    c.zones = copy_names(d, &m->zones);
    c.labels = copy_names(d, &m->labels);
    c.not_labels = copy_names(d, &m->not_labels);
    c.apart = copy(d, m->apart);
    if (d->arena.rc < 0)
        return d->arena.rc;
    if (!at) {
        void *p = room(d, d->models, d->n_models, &d->cap_models, sizeof(c));
        if (!p)
            return d->arena.rc;
        d->models = p;
        at = &d->models[d->n_models++];
    }
    *at = c;
    return 0;
}

int desired_put_assignment(struct desired *d, const struct desired_assignment *a)
{
    struct desired_assignment c = *a;
    struct desired_assignment *at = desired_find_assignment(d, a->node, a->model, a->sha256);
    if (at) {
        at->duty = a->duty;
        at->epoch = a->epoch;
        at->until = a->until;
        at->since_ms = a->since_ms;
        return 0;
    }
    void *p = room(d, d->assignments, d->n_assignments, &d->cap_assignments, sizeof(c));
    if (!p)
        return d->arena.rc;
    d->assignments = p;
    const struct desired_model *m = desired_find_model(d, a->model);
    c.node = copy(d, a->node);
    c.model = m ? m->name : copy(d, a->model);
    if (d->arena.rc < 0)
        return d->arena.rc;
    d->assignments[d->n_assignments++] = c;
    return 0;
}

int desired_set_assignments(struct desired *d, const struct desired_assignment *a, uint32_t n)
{
    struct desired_assignment *p = arena_zalloc_n(&d->arena, n, sizeof(*p));
    for (uint32_t i = 0; p && i < n; i++) {
        p[i] = a[i];
        p[i].node = copy(d, a[i].node);
        p[i].model = copy(d, a[i].model);
    }
    if (d->arena.rc < 0)
        return d->arena.rc;
    d->assignments = p;
    d->n_assignments = d->cap_assignments = n;
    return 0;
}

int desired_put_rollout(struct desired *d, const struct desired_rollout *r)
{
    struct desired_rollout c = *r, *at = desired_find_rollout(d, r->id);
    uint32_t n = r->n_steps < DESIRED_MAX_STEPS ? r->n_steps : DESIRED_MAX_STEPS;
    c.id = copy(d, r->id);
    c.model = copy(d, r->model);
    c.source = copy(d, r->source);
    c.steps = arena_zalloc_n(&d->arena, DESIRED_MAX_STEPS, sizeof(*c.steps));
    c.n_steps = n;
    for (uint32_t i = 0; c.steps && i < n; i++) {
        c.steps[i] = r->steps[r->n_steps - n + i];
        c.steps[i].text = copy(d, c.steps[i].text);
    }
    if (d->arena.rc < 0)
        return d->arena.rc;
    if (!at) {
        void *p = room(d, d->rollouts, d->n_rollouts, &d->cap_rollouts, sizeof(c));
        if (!p)
            return d->arena.rc;
        d->rollouts = p;
        at = &d->rollouts[d->n_rollouts++];
    }
    *at = c;
    return 0;
}

int desired_put_step(struct desired *d, struct desired_rollout *r, const struct desired_step *s)
{
    struct desired_step c = *s;
    c.text = copy(d, s->text);
    if (d->arena.rc < 0)
        return d->arena.rc;
    if (r->n_steps == DESIRED_MAX_STEPS)
        memmove(r->steps, r->steps + 1, --r->n_steps * sizeof(c));
    r->steps[r->n_steps++] = c;
    r->state = s->state;
    r->share = s->share;
    return 0;
}

int desired_set_drained(struct desired *d, const char *node, bool drained)
{
    uint32_t at = drained_at(d, node);
    if (at < d->drained.n && !drained)
        d->drained.items[at] = d->drained.items[--d->drained.n];
    if (at < d->drained.n || !drained)
        return 0;
    void *p = room(d, d->drained.items, d->drained.n, &d->cap_drained, sizeof(char *));
    if (!p)
        return d->arena.rc;
    d->drained.items = p;
    d->drained.items[d->drained.n++] = copy(d, node);
    return d->arena.rc;
}

int desired_set_all_drained(struct desired *d, const struct desired_names *nodes)
{
    struct desired_names c = copy_names(d, nodes);
    if (d->arena.rc < 0)
        return d->arena.rc;
    d->drained = c;
    d->cap_drained = c.n;
    return 0;
}

void desired_remove_model(struct desired *d, const char *name)
{
    const struct desired_model *m = desired_find_model(d, name);
    if (!m)
        return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_assignments; i++)
        if (strcmp(d->assignments[i].model, name) != 0)
            d->assignments[n++] = d->assignments[i];
    d->n_assignments = n;
    for (uint32_t i = 0; i < d->n_rollouts;) {
        if (strcmp(d->rollouts[i].model, name) == 0)
            d->rollouts[i] = d->rollouts[--d->n_rollouts];
        else
            i++;
    }
    d->models[m - d->models] = d->models[--d->n_models];
}

void desired_remove_assignment(struct desired *d, struct desired_assignment *a)
{
    *a = d->assignments[--d->n_assignments];
}

/* ---- checking ------------------------------------------------------------------------------- */

int desired_add_all(struct desired *d, const struct desired *from)
{
    int rc = 0;
    for (uint32_t i = 0; i < from->n_models && rc == 0; i++) {
        const struct desired_model *m = &from->models[i], *had = desired_find_model(d, m->name);
        if (had && memcmp(had->sha256, m->sha256, SHA256_BYTES) != 0)
            continue;
        rc = desired_put_model(d, m);
        for (uint32_t k = 0; k < from->n_rollouts && rc == 0 && !had; k++)
            if (strcmp(from->rollouts[k].model, m->name) == 0)
                rc = desired_put_rollout(d, &from->rollouts[k]);
    }
    for (uint32_t i = 0; i < from->drained.n && rc == 0; i++)
        rc = desired_set_drained(d, from->drained.items[i], true);
    return rc;
}

bool desired_name_ok(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n > DESIRED_MAX_NAME)
        return false;
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 127 || *p == '*' || *p == '>')
            return false;
    return true;
}

static int check_names(const struct desired_names *l, const char *what, const char *model,
                       struct err *e)
{
    if (l->n > DESIRED_MAX_LIST)
        return err_set(e, SHOAL_EINVAL, "model %s: %u %s, at most %u", model, l->n, what,
                       DESIRED_MAX_LIST);
    for (uint32_t i = 0; i < l->n; i++)
        if (!desired_name_ok(l->items[i]))
            return err_set(e, SHOAL_EINVAL, "model %s: %s has a name that is not allowed", model,
                           what);
    return 0;
}

static int check_text(const char *s, const char *what, const char *of, struct err *e)
{
    if (strlen(s) <= DESIRED_MAX_TEXT)
        return 0;
    return err_set(e, SHOAL_EINVAL, "%s: its %s is longer than %u bytes", of, what,
                   DESIRED_MAX_TEXT);
}

static int check_model(const struct desired_model *m, struct err *e)
{
    int rc;
    if (!desired_name_ok(m->name))
        return err_set(e, SHOAL_EINVAL, "a model has a name that is not allowed");
    if (m->replicas_min > m->replicas_max)
        return err_set(e, SHOAL_EINVAL, "model %s: at least %u replicas and at most %u", m->name,
                       m->replicas_min, m->replicas_max);
    if (m->per_node > DESIRED_MAX_PER_NODE)
        return err_set(e, SHOAL_EINVAL, "model %s: %u replicas on a node, at most %u", m->name,
                       m->per_node, DESIRED_MAX_PER_NODE);
    if (strlen(m->apart) > DESIRED_MAX_NAME)
        return err_set(e, SHOAL_EINVAL, "model %s: the word of 'apart' is longer than %u bytes",
                       m->name, DESIRED_MAX_NAME);
    if (!(m->want_tokens_per_s >= 0 && m->want_tokens_per_s < 1e15))
        return err_set(e, SHOAL_EINVAL, "model %s: %g tokens per second", m->name,
                       m->want_tokens_per_s);
    if ((rc = check_text(m->source, "source", m->name, e)) < 0 ||
        (rc = check_names(&m->pins, "pins", m->name, e)) < 0 ||
        (rc = check_names(&m->zones, "zones", m->name, e)) < 0 ||
        (rc = check_names(&m->labels, "labels", m->name, e)) < 0)
        return rc;
    return check_names(&m->not_labels, "not_labels", m->name, e);
}

static int check_rollout(const struct desired_rollout *r, const struct strmap *models,
                         struct err *e)
{
    uint32_t at;
    int rc;
    if (!desired_name_ok(r->id))
        return err_set(e, SHOAL_EINVAL, "a rollout has an id that is not allowed");
    if (!strmap_get(models, r->model, strlen(r->model), &at))
        return err_set(e, SHOAL_EINVAL, "rollout %s names the model %.127s, which does not exist",
                       r->id, r->model);
    if (r->kind < DESIRED_ROLLING || r->kind > DESIRED_EVENTUAL)
        return err_set(e, SHOAL_EINVAL, "rollout %s: unknown kind %u", r->id, (unsigned)r->kind);
    if (r->state < DESIRED_PENDING || r->state > DESIRED_FAILED)
        return err_set(e, SHOAL_EINVAL, "rollout %s: unknown state %u", r->id, (unsigned)r->state);
    if (r->share > 1000)
        return err_set(e, SHOAL_EINVAL, "rollout %s: a share of %u thousandths", r->id, r->share);
    if (r->n_steps > DESIRED_MAX_STEPS)
        return err_set(e, SHOAL_EINVAL, "rollout %s: %u steps, at most %u", r->id, r->n_steps,
                       DESIRED_MAX_STEPS);
    if (r->judge.errors > 1000 || r->judge.score > 1000 || r->judge.score_from > 1001 ||
        r->judge.score_to > 1001)
        return err_set(e, SHOAL_EINVAL, "rollout %s: a judge threshold is above 1000", r->id);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const struct desired_step *s = &r->steps[i];
        if (s->state < DESIRED_PENDING || s->state > DESIRED_FAILED || s->share > 1000)
            return err_set(e, SHOAL_EINVAL, "rollout %s: step %u is not valid", r->id, i);
        if ((rc = check_text(s->text, "history", r->id, e)) < 0)
            return rc;
    }
    return check_text(r->source, "source", r->id, e);
}

/* Keys are unique: three fields in one string, separated by a byte that no name has. */
static int check_assignments(const struct desired *d, const struct strmap *models, struct err *e)
{
    struct strmap seen;
    struct arena keys;
    uint32_t at;
    int rc = strmap_init(&seen, d->n_assignments);
    if (rc < 0)
        return err_set(e, rc, "desired state");
    arena_init(&keys, MAX_ARENA_BYTES);
    for (uint32_t i = 0; rc == 0 && i < d->n_assignments; i++) {
        const struct desired_assignment *a = &d->assignments[i];
        char hex[2 * SHA256_BYTES + 1];
        if (!desired_name_ok(a->node)) {
            rc = err_set(e, SHOAL_EINVAL, "an assignment has a node's name that is not allowed");
            break;
        }
        if (!strmap_get(models, a->model, strlen(a->model), &at)) {
            rc = err_set(e, SHOAL_EINVAL, "node %s is assigned %.127s, which does not exist",
                         a->node, a->model);
            break;
        }
        if (a->duty < DESIRED_SERVE || a->duty > DESIRED_LEAVE) {
            rc = err_set(e, SHOAL_EINVAL, "node %s, model %s: unknown duty %u", a->node, a->model,
                         (unsigned)a->duty);
            break;
        }
        if (a->copies > DESIRED_MAX_PER_NODE) {
            rc = err_set(e, SHOAL_EINVAL, "node %s, model %s: %u replicas on a node, at most %u",
                         a->node, a->model, a->copies, DESIRED_MAX_PER_NODE);
            break;
        }
        sha256_hex(hex, a->sha256);
        const char *key = arena_printf(&keys, "%s\n%s\n%s", a->node, a->model, hex);
        rc = keys.rc < 0 ? keys.rc : strmap_put(&seen, key, strlen(key), i);
        if (rc < 0)
            err_set(e, rc, "desired state");
        else if (rc == 1)
            rc = err_set(e, SHOAL_EINVAL, "node %s is assigned %s twice", a->node, a->model);
    }
    arena_fini(&keys);
    strmap_fini(&seen);
    return rc;
}

static int check_policy(const struct desired_policy *p, struct err *e)
{
    const struct placement_policy *w = &p->placement;
    const double weights[] = {w->zone_weight, w->cost_weight, w->battery_weight, w->pack_weight,
                              w->min_gain,    w->battery_min, w->battery_margin};
    if (p->heartbeat_ms < 20 || p->heartbeat_ms > 60000 || p->silent_beats < 1 ||
        p->silent_beats > 1000)
        return err_set(e, SHOAL_EINVAL,
                       "policy: a heartbeat every %u ms and %u silent ones are out of range (20 to "
                       "60000, 1 to 1000)",
                       p->heartbeat_ms, p->silent_beats);
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++)
        if (!(weights[i] >= 0 && weights[i] < 1e9))
            return err_set(e, SHOAL_EINVAL, "policy: a weight of %g is out of range (0 to 1e9)",
                           weights[i]);
    return 0;
}

static int check_counts(const struct desired *d, struct err *e)
{
    const struct {
        const char *what;
        uint32_t n, max;
    } counts[] = {{"models", d->n_models, DESIRED_MAX_MODELS},
                  {"assignments", d->n_assignments, DESIRED_MAX_ASSIGNMENTS},
                  {"rollouts", d->n_rollouts, DESIRED_MAX_ROLLOUTS},
                  {"drained nodes", d->drained.n, DESIRED_MAX_DRAINED}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].n > counts[i].max)
            return err_set(e, SHOAL_EINVAL, "%u %s, at most %u", counts[i].n, counts[i].what,
                           counts[i].max);
    return check_policy(&d->policy, e);
}

int desired_check(const struct desired *d, struct err *e)
{
    struct strmap models, ids;
    int rc = check_counts(d, e);
    if (rc < 0)
        return rc;
    if ((rc = strmap_init(&models, d->n_models)) < 0)
        return err_set(e, rc, "desired state");
    if ((rc = strmap_init(&ids, d->n_rollouts + d->drained.n)) < 0) {
        strmap_fini(&models);
        return err_set(e, rc, "desired state");
    }
    for (uint32_t i = 0; rc == 0 && i < d->n_models; i++) {
        const struct desired_model *m = &d->models[i];
        rc = check_model(m, e);
        if (rc == 0 && (rc = strmap_put(&models, m->name, strlen(m->name), i)) == 1)
            rc = err_set(e, SHOAL_EINVAL, "two models are named %s", m->name);
    }
    for (uint32_t i = 0; rc == 0 && i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        rc = check_rollout(r, &models, e);
        if (rc == 0 && (rc = strmap_put(&ids, r->id, strlen(r->id), i)) == 1)
            rc = err_set(e, SHOAL_EINVAL, "two rollouts have the id %s", r->id);
    }
    for (uint32_t i = 0; rc == 0 && i < d->drained.n; i++)
        if (!desired_name_ok(d->drained.items[i]))
            rc = err_set(e, SHOAL_EINVAL, "a drained node has a name that is not allowed");
    if (rc == 0)
        rc = check_assignments(d, &models, e);
    strmap_fini(&ids);
    strmap_fini(&models);
    return rc;
}

/* ---- texts ---------------------------------------------------------------------------------- */

const char *desired_duty_text(enum desired_duty duty)
{
    static const char *const texts[] = {"?", "serve", "stage", "leave"};
    return duty >= DESIRED_SERVE && duty <= DESIRED_LEAVE ? texts[duty] : "?";
}

const char *desired_rollout_kind_text(enum desired_rollout_kind kind)
{
    static const char *const texts[] = {"?", "rolling", "canary", "strong", "eventual"};
    return kind >= DESIRED_ROLLING && kind <= DESIRED_EVENTUAL ? texts[kind] : "?";
}

const char *desired_rollout_state_text(enum desired_rollout_state state)
{
    static const char *const texts[] = {"?",    "pending", "staging", "running", "paused",
                                        "done", "undoing", "undone",  "failed"};
    return state >= DESIRED_PENDING && state <= DESIRED_FAILED ? texts[state] : "?";
}
