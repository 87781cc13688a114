/* sim_show.c - see sim_inside.h: what a schedule looks like, for people who repeat one. */
#include "cluster/sim/shoal/sim_inside.h"

#include "base/log.h"
#include "cluster/control/desired.h"
#include "cluster/join.h"

#define MAX_LINE 2048u

static void show_nats(void)
{
    struct desired *d = sim_nats_state();
    struct buf b;
    buf_init(&b, MAX_LINE);
    for (uint32_t i = 0; d && i < d->n_assignments; i++)
        buf_printf(&b, " %s=%u/%s", d->assignments[i].node, d->assignments[i].sha256[0],
                   desired_duty_text(d->assignments[i].duty));
    for (uint32_t i = 0; d && i < d->n_rollouts; i++)
        buf_printf(&b, " %s:%u-%u/%s", desired_rollout_kind_text(d->rollouts[i].kind),
                   d->rollouts[i].from[0], d->rollouts[i].to[0],
                   desired_rollout_state_text(d->rollouts[i].state));
    for (uint32_t i = 0; d && i < d->drained.n; i++)
        buf_printf(&b, " drained=%s", d->drained.items[i]);
    log_debug("sim", "%.2f s: NATS lost=%u version=%llu fence=%llu%s", (double)sim.now_ns / 1e9,
              sim.n_lost, d ? (unsigned long long)d->version : 0,
              d ? (unsigned long long)d->fence : 0, buf_str(&b));
    buf_fini(&b);
    desired_destroy(d);
}

static void see_version(void *ctx, const struct desired *d)
{
    *(uint64_t *)ctx = d->version;
}

static void show_member(uint32_t i)
{
    const struct sim_member *m = &sim.members[i];
    uint64_t version = 0, fence = 0;
    struct buf b;
    sim.current = i;
    buf_init(&b, MAX_LINE);
    if (m->join)
        join_with_desired(m->join, see_version, &version);
    if (m->join && i < SIM_NODES && sim_nats_held(i, &fence))
        buf_printf(&b, " controller=%llu", (unsigned long long)fence);
    for (const struct sim_loaded *k = m->models; k; k = k->next)
        buf_printf(&b, " %u:%s/%d", k->model.sum[0], registry_state_name(k->slot.state),
                   (int)k->model.service.duty);
    log_debug("sim", "%s life=%u%s%s%s version=%llu%s", m->name, m->life, m->join ? "" : " dead",
              m->paused_ns > sim.now_ns ? " paused" : "", m->cut_ns > sim.now_ns ? " cut" : "",
              (unsigned long long)version, buf_str(&b));
    buf_fini(&b);
}

void sim_show(void)
{
    enum log_level level;
    enum log_format format;
    log_settings(&level, &format);
    if (level < LOG_LEVEL_DEBUG)
        return;
    show_nats();
    for (uint32_t i = 0; i <= SIM_GATEWAY; i++)
        if (i < sim.n_nodes || i == SIM_GATEWAY)
            show_member(i);
}
