/* node_self.c - see node_self.h. */
#include "gateway/node/node_self.h"

#include "base/hash.h"
#include "cluster/join.h"
#include "cluster/machine/node_measure.h"
#include "cluster/node_machine.h"
#include "cluster/messages/node_state.h"
#include "apps/home/table/home_table.h"
#include "gateway/gw.h"
#include "gateway/node/node_shard.h"
#include "shoal/shoal_version.h"

void node_self_fill(struct node_state *s, struct arena *a, struct gw_loop *gl)
{
    struct gw *gw = gl->gw;
    const struct config_cluster *k = &gl->config->cluster;
    char id[17];
    hash_hex(id, gw->id_salt);
    id[16] = '\0';
    *s = (struct node_state){.name = k->name ? k->name : "",
                             .address = gw->advertise,
                             .zone = k->zone ? k->zone : "",
                             .program_version = SHOAL_VERSION,
                             .id = arena_copy(a, id, sizeof(id)),
                             .draining = atomic_load(&gw->draining),
                             .models_limit = gl->config->memory_bytes,
                             .labels = (const char *const *)k->labels.v,
                             .n_labels = k->labels.n};
    node_machine_fill(s);
    node_health_get(&gw->health, &s->health);
    if (gw->measure)
        node_measure_fill(gw->measure, s);
    node_state_collect(s, a, gw->registry);
    s->link = k->link > 0 ? (double)k->link : (double)atomic_load(&gw->paged.bytes_per_s);
    s->asks = gw->home.table && node_state_model(s, gw->home.table->reader, 0);
    node_shard_fill(gw, s, a);
    if (gw->join)
        join_fill(gw->join, s, a);
}

int node_self_put(struct buf *out, struct gw_loop *gl, uint64_t *prefixes_seen)
{
    struct node_state s;
    struct arena a;
    arena_init(&a, NODE_STATE_MAX_BYTES);
    node_self_fill(&s, &a, gl);
    s.serial = ++gl->n_states;
    if (prefixes_seen)
        s.n_prefixes = prefix_table_since(gl->gw->prefixes, prefixes_seen, &a, &s.prefixes);
    int rc = a.rc < 0 ? a.rc : node_state_put(out, &s);
    arena_fini(&a);
    return rc;
}
