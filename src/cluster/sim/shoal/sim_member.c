/* sim_member.c - see sim_inside.h: a process of the shoal, its models and its disk. */
#include "cluster/sim/shoal/sim_inside.h"

#include <stdio.h>
#include <string.h>

#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/desired_file.h"
#include "cluster/deployed.h"
#include "cluster/join.h"
#include "cluster/quota_bucket.h"

#define TELL_NS (250 * SIM_MS) /* between two states of a node to the gateway */
#define HEARTBEAT_MS 500u
#define LEASE_MS 3000u
#define TOLD_NS (12 * SIM_S) /* longer than an election takes, with the time that others wait */
#define NODE_BYTES ((uint64_t)64 << 20)
#define DISK_BYTES ((size_t)1 << 20)

/* ---- the disk ---- */

int sim_desired_file_write(const char *path, const struct desired *d, struct err *e)
{
    struct sim_member *m = &sim.members[sim.current];
    struct buf b;
    (void)path;
    if (m->dead || sim.now_ns < m->full_ns)
        return err_set(e, SHOAL_EIO, "the disk is full");
    buf_init(&b, DISK_BYTES);
    int rc = desired_code_put(&b, d, e);
    if (rc == 0) {
        buf_fini(&m->disk);
        m->disk = b;
    } else {
        buf_fini(&b);
    }
    return rc;
}

int sim_desired_file_read(struct desired **out, const char *path, struct err *e)
{
    struct sim_member *m = &sim.members[sim.current];
    (void)path;
    *out = NULL;
    if (m->disk.len == 0)
        return err_set(e, SHOAL_ENOTFOUND, "no file");
    return desired_code_get(out, buf_str(&m->disk), m->disk.len, e);
}

/* ---- the models of a node ---- */

static struct sim_member *member_of(struct registry *r)
{
    return (struct sim_member *)(void *)r; /* a registry is its member here */
}

struct loading {
    uint32_t member, life;
    uint8_t version;
};

static void loaded(void *ctx)
{
    struct loading *l = ctx;
    struct sim_member *m = &sim.members[l->member];
    uint8_t sum[SHA256_BYTES];
    sim_version_sum(sum, l->version);
    struct sim_loaded *k = m->life == l->life && !m->dead ? sim_member_model(m, sum) : NULL;
    if (k && k->slot.state == REGISTRY_LOADING) {
        const bool fails = !sim.calm && sim_pick(60) == 0;
        k->slot.state = fails ? REGISTRY_FAILED : REGISTRY_READY;
        snprintf(k->slot.error, sizeof(k->slot.error), "%s", fails ? "out of memory" : "");
    }
    sim_free(l);
}

int sim_registry_add(struct registry *r, const struct registry_spec *spec, struct err *e)
{
    struct sim_member *m = member_of(r);
    struct sim_loaded *first = sim_member_model(m, spec->sum);
    if (spec->copy) {
        if (!first || spec->copy != first->n_extra + 1)
            return err_set(e, SHOAL_EINVAL, "copy %u after %u", spec->copy,
                           first ? first->n_extra : 0);
        if (!sim.calm && sim_pick(20) == 0)
            return err_set(e, SHOAL_ENOMEM, "out of memory");
        first->n_extra++;
        return 0;
    }
    if (first)
        return err_set(e, SHOAL_EINVAL, "it exists");
    struct sim_loaded *k = sim_zalloc(sizeof(*k));
    snprintf(k->name, sizeof(k->name), "%s", spec->name);
    k->model.name = k->name;
    k->model.slot = &k->slot;
    k->model.versioned = true;
    memcpy(k->model.sum, spec->sum, SHA256_BYTES);
    k->model.service.duty = spec->staged ? REGISTRY_STAGE : REGISTRY_SERVE;
    k->slot.state = REGISTRY_LOADING;
    k->next = m->models;
    m->models = k;
    struct loading *l = sim_zalloc(sizeof(*l));
    *l = (struct loading){(uint32_t)(m - sim.members), m->life, spec->sum[0]};
    sim_at(sim.now_ns + sim_between(10 * SIM_MS, 1500 * SIM_MS), l->member, loaded, l);
    return 0;
}

int sim_registry_load(struct registry *r, const char *name, struct err *e)
{
    (void)r;
    return err_set(e, SHOAL_ENOTFOUND, "%s", name);
}

int sim_registry_remove_version(struct registry *r, const char *name,
                                const uint8_t sum[SHA256_BYTES], struct err *e)
{
    struct sim_member *m = member_of(r);
    struct sim_loaded **at = &m->models;
    while (*at && memcmp((*at)->model.sum, sum, SHA256_BYTES) != 0)
        at = &(*at)->next;
    if (!*at)
        return err_set(e, SHOAL_ENOTFOUND, "%s", name);
    struct sim_loaded *k = *at;
    *at = k->next;
    sim_free(k);
    return 0;
}

int sim_registry_remove_copy(struct registry *r, const char *name, const uint8_t sum[SHA256_BYTES],
                             uint32_t copy, struct err *e)
{
    struct sim_loaded *k = sim_member_model(member_of(r), sum);
    if (!k || copy == 0 || copy != k->n_extra)
        return err_set(e, SHOAL_ENOTFOUND, "%s", name);
    k->n_extra--;
    return 0;
}

int sim_registry_set_service(struct registry *r, const char *name, const uint8_t sum[SHA256_BYTES],
                             const struct registry_service *s, struct err *e)
{
    struct sim_loaded *k = sim_member_model(member_of(r), sum);
    if (!k)
        return err_set(e, SHOAL_ENOTFOUND, "%s", name);
    k->model.service = *s;
    return 0;
}

void sim_registry_set_epoch(struct registry *r, uint64_t epoch, uint64_t end)
{
    member_of(r)->epoch = epoch;
    member_of(r)->epoch_end = end;
}

void sim_registry_each_version(struct registry *r,
                               void (*fn)(void *ctx, const struct registry_model *m), void *ctx)
{
    for (struct sim_loaded *k = member_of(r)->models, *next; k; k = next) {
        next = k->next;
        fn(ctx, &k->model);
    }
}

/* ---- its state ---- */

static uint32_t duty_of(const struct registry_model *m)
{
    return m->service.duty == REGISTRY_SERVE   ? DESIRED_SERVE
           : m->service.duty == REGISTRY_LEAVE ? DESIRED_LEAVE
                                               : DESIRED_STAGE;
}

static int put_state(struct sim_member *m, struct buf *out)
{
    const uint32_t i = (uint32_t)(m - sim.members);
    struct node_model models[16] = {{0}};
    struct node_state s = {.name = m->name,
                           .address = i < SIM_NODES ? m->name : "",
                           .program_version = "sim",
                           .isa = "sim",
                           .zone = "",
                           .gpu = ""};
    struct arena a;
    char id[32];
    arena_init(&a, NODE_STATE_MAX_BYTES);
    snprintf(id, sizeof(id), "%s-%u", m->name, m->life);
    s.id = id;
    s.serial = ++m->serial;
    for (struct sim_loaded *k = m->models; k && s.n_models < 16; k = k->next)
        models[s.n_models++] = (struct node_model){.name = k->name,
                                                   .sum = k->model.sum,
                                                   .kinds = SHOAL_KIND_GENERATE,
                                                   .state = k->slot.state,
                                                   .n_ctx = 512,
                                                   .in_flight = k->model.users,
                                                   .prefill_ns = 1e6,
                                                   .token_ns = 2e7,
                                                   .bytes = 1 << 20,
                                                   .duty = duty_of(&k->model),
                                                   .error = k->slot.error,
                                                   .epoch = k->model.service.epoch,
                                                   .until = k->model.service.until,
                                                   .share = k->model.service.share,
                                                   .waits = k->model.service.duty == REGISTRY_WAIT,
                                                   .parallel = 4,
                                                   .replicas = 1 + k->n_extra};
    s.models = models;
    s.n_cores = 4;
    s.memory_bytes = s.models_limit = NODE_BYTES;
    s.memory_free = NODE_BYTES - ((uint64_t)s.n_models << 20);
    s.bandwidth = 1e10;
    s.probe_tokens = 100;
    s.cpu = 0.1;
    s.epoch = m->epoch;
    s.epoch_end = m->epoch_end;
    s.oldest_epoch = i == SIM_GATEWAY ? sim_stream_held() : sim_stream_oldest(i);
    if (m->models) /* what the agent completes must be in the arena */
        s.models = arena_zalloc_n(&a, s.n_models, sizeof(models[0]));
    if (s.models != models)
        memcpy((void *)(uintptr_t)s.models, models, s.n_models * sizeof(models[0]));
    if (m->join)
        join_fill(m->join, &s, &a);
    int rc = node_state_put(out, &s);
    arena_fini(&a);
    return rc;
}

static int state_of(void *ctx, struct buf *out)
{
    return put_state(ctx, out);
}

struct told { /* a node's state on its way to the gateway */
    uint32_t node, life;
    struct buf bytes;
};

static void hear(void *ctx)
{
    struct told *t = ctx;
    struct sim_link *k = &sim.links[t->node];
    struct err e = {0};
    if (sim.now_ns >= sim.members[t->node].cable_ns && t->life == sim.members[t->node].life) {
        arena_fini(&k->arena);
        arena_init(&k->arena, NODE_STATE_MAX_BYTES);
        k->has_state = node_state_read(&k->state, &k->arena, (const uint8_t *)t->bytes.data,
                                       t->bytes.len, &e) == 0;
        k->life = t->life;
        k->heard_ns = sim.now_ns;
        sim_stream_told(t->node);
    }
    buf_fini(&t->bytes);
    sim_free(t);
}

static void on_tell(struct executor_timer *timer)
{
    struct sim_member *m = EXECUTOR_OF(timer, struct sim_member, tell);
    const uint32_t i = (uint32_t)(m - sim.members);
    struct sim_link *k = &sim.links[i];
    executor_timer_set(&m->executor, timer, sim_local_ns(m, sim.now_ns) + TELL_NS);
    struct told *t = sim_zalloc(sizeof(*t));
    *t = (struct told){.node = i, .life = m->life};
    buf_init(&t->bytes, NODE_STATE_MAX_BYTES);
    (void)!put_state(m, &t->bytes);
    uint64_t at = sim.now_ns + sim_between(0, sim.slow_ns);
    if (at < k->last_ns)
        at = k->last_ns;
    k->last_ns = at;
    sim_at(at, SIM_GATEWAY, hear, t);
}

/* ---- start and end ---- */

static enum agent_found find_model(void *ctx, const struct desired_model *model,
                                   const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                                   uint32_t *progress, struct err *e)
{
    (void)ctx;
    (void)e;
    *progress = 1000;
    snprintf(path, cap, "%s-%u", model->name, sha256[0]);
    return AGENT_HERE;
}

static void add_static_model(struct sim_member *m)
{
    uint8_t sum[SHA256_BYTES];
    sim_version_sum(sum, 1);
    const struct registry_spec spec = {.name = SIM_MODEL, .sum = sum};
    if (sim_registry_add((struct registry *)(void *)m, &spec, NULL) == 0)
        m->models->slot.state = REGISTRY_READY;
}

void sim_member_start(uint32_t i)
{
    struct sim_member *m = &sim.members[i];
    struct err e = {0};
    static const char *const urls[] = {"nats://sim"};
    const struct agent_source source = {.find = find_model};
    const bool node = i < SIM_NODES;
    sim.current = i;
    m->life++;
    m->dead = false;
    m->jump_ns = 0;
    m->version = 0;
    m->paused_ns = 0;
    m->tell.fn = on_tell;
    if (node)
        executor_timer_set(&m->executor, &m->tell, sim_local_ns(m, sim.now_ns) + SIM_MS);
    if (sim.streams) {
        if (node)
            add_static_model(m);
        return;
    }
    if (!node && deployed_create(&m->deployed, &e) < 0)
        sim_broken("%s", e.msg);
    if (quota_bucket_create(&m->quota, &e) < 0)
        sim_broken("%s", e.msg);
    const struct join_opts o = {.cluster = "sim",
                                .name = m->name,
                                .urls = urls,
                                .n_urls = 1,
                                .snapshot = "disk",
                                .heartbeat_ms = HEARTBEAT_MS,
                                .forget_ms = 60000,
                                .lease_ms = LEASE_MS,
                                .may_control = node,
                                .may_change = node,
                                .state = state_of,
                                .ctx = m,
                                .registry = node ? (struct registry *)(void *)m : NULL,
                                .source = node ? &source : NULL,
                                .deployed = m->deployed};
    if (join_open(&m->join, &m->executor, &o, &e) < 0)
        sim_broken("%s", e.msg);
    else if (quota_bucket_connect(m->quota, m->bus, &e) < 0)
        sim_broken("%s", e.msg);
}

/* At once: whatever it still waits for has no effect. */
void sim_member_end(uint32_t i)
{
    struct sim_member *m = &sim.members[i];
    if (!sim_member_up(m))
        return;
    sim.current = i;
    m->dead = true;
    m->paused_ns = 0;
    executor_timer_clear(&m->executor, &m->tell);
    struct join *j = m->join;
    m->join = NULL;
    if (m->uses_quota) /* it holds a lock while it waits */
        (void)!pthread_join(m->quota_user, NULL);
    m->uses_quota = false;
    quota_bucket_disconnect(m->quota);
    join_close(j);
    sim_run_tasks(m);
    deployed_destroy(m->deployed);
    quota_bucket_destroy(m->quota);
    m->deployed = NULL;
    m->quota = NULL;
    for (struct sim_loaded *k = m->models, *next; k; k = next) {
        next = k->next;
        sim_free(k);
    }
    m->models = NULL;
    m->epoch = m->epoch_end = 0;
    if (i < SIM_NODES)
        sim_stream_ended(i);
}

/* ---- checks ---- */

bool sim_is_heard(const struct sim_member *m)
{
    return sim.now_ns - m->away_ns > TOLD_NS && sim.loss < 10 && sim.slow_ns < 100 * SIM_MS;
}

struct seen {
    uint64_t version;
    uint8_t id[DESIRED_ID_BYTES];
};

static void see(void *ctx, const struct desired *d)
{
    struct seen *s = ctx;
    s->version = d->version;
    memcpy(s->id, d->id, sizeof(s->id));
}

static void check_version(struct sim_member *m)
{
    struct seen s = {0};
    join_with_desired(m->join, see, &s);
    if (s.version < m->version && memcmp(s.id, m->state_id, sizeof(s.id)) == 0)
        sim_broken("%s had version %llu of the desired state, and now has %llu", m->name,
                   (unsigned long long)m->version, (unsigned long long)s.version);
    m->version = s.version;
    memcpy(m->state_id, s.id, sizeof(s.id));
}

/* A fence that only members out of reach know cannot be known to a new controller: NATS, which had
 * it, has lost it.  But everybody who was there to tell must have been heard. */
static void check_fence(uint64_t fence)
{
    if (sim.n_lost == 0)
        sim_broken("fence %llu after %llu", (unsigned long long)fence,
                   (unsigned long long)sim.fence);
    for (uint32_t i = 0; i <= SIM_GATEWAY; i++) {
        const struct sim_member *m = &sim.members[i];
        if (m->join && sim_is_heard(m) && sim_nats_known(i) > fence)
            sim_broken("fence %llu after %llu, and %s knows of %llu", (unsigned long long)fence,
                       (unsigned long long)sim.fence, m->name,
                       (unsigned long long)sim_nats_known(i));
    }
}

void sim_check_members(void)
{
    uint32_t n = 0;
    uint64_t fence = 0;
    for (uint32_t i = 0; i < SIM_GATEWAY + 1; i++) {
        struct sim_member *m = &sim.members[i];
        uint64_t one = 0;
        if (!m->join || m->paused_ns > sim.now_ns)
            continue;
        sim.current = i;
        check_version(m);
        if (i < SIM_NODES && sim_nats_held(i, &one)) {
            fence = one;
            n++;
            sim.holder = i;
        }
    }
    if (n > 1)
        sim_broken("%u members hold the lease", n);
    if (n == 0 || fence == sim.fence)
        return;
    if (fence < sim.fence)
        check_fence(fence);
    sim.fence = fence;
    sim.counts->n_terms++;
}
