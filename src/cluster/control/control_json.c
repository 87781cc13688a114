/* control_json.c - see control_json.h. */
#include "cluster/control/control_json.h"

#include <stdio.h>
#include <time.h>

#include "cluster/control/desired.h"
#include "cluster/control/event_log.h"
#include "wire/json_out.h"

void control_json_time(char out[32], uint64_t unix_ms)
{
    time_t s = (time_t)(unix_ms / 1000);
    struct tm tm;
    char text[24] = "";
    if (!gmtime_r(&s, &tm) || tm.tm_year > 8099 ||
        !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
        snprintf(out, 32, "?"); /* a sender's clock may be arbitrary */
    else
        snprintf(out, 32, "%s.%03uZ", text, (unsigned)(unix_ms % 1000));
}

static void put_sum(struct json_out *j, const char *key, const uint8_t sum[SHA256_BYTES])
{
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, sum);
    json_out_member_str(j, key, hex);
}

static void put_names(struct json_out *j, const char *key, const struct desired_names *l)
{
    json_out_key(j, key);
    json_out_array(j);
    for (uint32_t i = 0; i < l->n; i++)
        json_out_str(j, l->items[i]);
    json_out_array_end(j);
}

static void put_time(struct json_out *j, const char *key, uint64_t unix_ms)
{
    char text[32];
    control_json_time(text, unix_ms);
    json_out_member_str(j, key, text);
}

static void put_model(struct json_out *j, const struct desired_model *m)
{
    json_out_object(j);
    json_out_member_str(j, "name", m->name);
    put_sum(j, "sha256", m->sha256);
    json_out_member_str(j, "source", m->source);
    json_out_member_uint(j, "kinds", m->kinds);
    json_out_member_uint(j, "memory_bytes", m->memory_bytes);
    json_out_member_uint(j, "weight_bytes", m->weight_bytes);
    json_out_member_uint(j, "replicas_min", m->replicas_min);
    json_out_member_uint(j, "replicas_max", m->replicas_max);
    json_out_member_uint(j, "replicas_want", m->replicas_want);
    json_out_member_uint(j, "standby", m->standby);
    json_out_key(j, "priority");
    json_out_int(j, m->priority);
    put_names(j, "pins", &m->pins);
    put_names(j, "zones", &m->zones);
    put_names(j, "labels", &m->labels);
    put_names(j, "not_labels", &m->not_labels);
    json_out_member_str(j, "apart", m->apart);
    json_out_member_uint(j, "max_per_zone", m->max_per_zone);
    json_out_member_uint(j, "per_node", m->per_node > 1 ? m->per_node : 1);
    json_out_key(j, "spread");
    json_out_bool(j, m->spread);
    json_out_member_num(j, "want_tokens_per_s", m->want_tokens_per_s);
    json_out_member_uint(j, "budget_ms", m->budget_ms);
    json_out_member_uint(j, "idle_ms", m->idle_ms);
    json_out_object_end(j);
}

/* A share of right answers; null: not known yet. */
static void put_score(struct json_out *j, const char *key, uint32_t score)
{
    json_out_key(j, key);
    if (score)
        json_out_num(j, (score - 1) / 1000.0);
    else
        json_out_null(j);
}

void control_json_rollout(struct json_out *j, const struct desired_rollout *r)
{
    json_out_object(j);
    json_out_member_str(j, "id", r->id);
    json_out_member_str(j, "model", r->model);
    json_out_member_str(j, "kind", desired_rollout_kind_text(r->kind));
    put_sum(j, "from", r->from);
    put_sum(j, "to", r->to);
    json_out_member_str(j, "source", r->source);
    json_out_member_uint(j, "memory_bytes", r->memory_bytes);
    json_out_member_uint(j, "share", r->share);
    json_out_member_str(j, "state", desired_rollout_state_text(r->state));
    json_out_member_uint(j, "epoch", r->epoch);
    json_out_key(j, "judge");
    json_out_object(j);
    json_out_member_uint(j, "requests", r->judge.requests);
    json_out_member_num(j, "errors", r->judge.errors / 1000.0);
    json_out_member_uint(j, "p95_percent", r->judge.p95);
    json_out_key(j, "labelled");
    json_out_bool(j, r->judge.labelled);
    put_score(j, "score_from", r->judge.score_from);
    put_score(j, "score_to", r->judge.score_to);
    json_out_object_end(j);
    json_out_key(j, "history");
    json_out_array(j);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        json_out_object(j);
        put_time(j, "time", r->steps[i].at_ms);
        json_out_member_str(j, "state", desired_rollout_state_text(r->steps[i].state));
        json_out_member_uint(j, "share", r->steps[i].share);
        json_out_member_str(j, "text", r->steps[i].text);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

static void put_policy(struct json_out *j, const struct desired_policy *p)
{
    json_out_object(j);
    json_out_member_uint(j, "heartbeat_ms", p->heartbeat_ms);
    json_out_member_uint(j, "silent_beats", p->silent_beats);
    json_out_member_num(j, "zone_weight", p->placement.zone_weight);
    json_out_member_num(j, "cost_weight", p->placement.cost_weight);
    json_out_member_num(j, "battery_weight", p->placement.battery_weight);
    json_out_member_num(j, "pack_weight", p->placement.pack_weight);
    json_out_member_num(j, "min_gain", p->placement.min_gain);
    json_out_member_num(j, "battery_min", p->placement.battery_min);
    json_out_member_num(j, "battery_margin", p->placement.battery_margin);
    json_out_member_uint(j, "cooldown_ms", p->placement.cooldown_ms);
    json_out_member_uint(j, "max_moves", p->placement.max_moves);
    json_out_object_end(j);
}

void control_json_desired(struct json_out *j, const struct desired *d)
{
    char id[2 * DESIRED_ID_BYTES + 1];
    for (size_t i = 0; i < DESIRED_ID_BYTES; i++)
        snprintf(id + 2 * i, 3, "%02x", d->id[i]);
    json_out_object(j);
    json_out_member_str(j, "id", id);
    json_out_member_uint(j, "revision", d->revision);
    json_out_member_uint(j, "version", d->version);
    json_out_member_uint(j, "fence", d->fence);
    json_out_member_uint(j, "epoch", d->epoch);
    json_out_key(j, "models");
    json_out_array(j);
    for (uint32_t i = 0; i < d->n_models; i++)
        put_model(j, &d->models[i]);
    json_out_array_end(j);
    json_out_key(j, "assignments");
    json_out_array(j);
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *a = &d->assignments[i];
        json_out_object(j);
        json_out_member_str(j, "node", a->node);
        json_out_member_str(j, "model", a->model);
        put_sum(j, "sha256", a->sha256);
        json_out_member_str(j, "duty", desired_duty_text(a->duty));
        json_out_member_uint(j, "epoch", a->epoch);
        json_out_member_uint(j, "until", a->until);
        put_time(j, "since", a->since_ms);
        json_out_member_uint(j, "replicas", desired_copies(a));
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_key(j, "rollouts");
    json_out_array(j);
    for (uint32_t i = 0; i < d->n_rollouts; i++)
        control_json_rollout(j, &d->rollouts[i]);
    json_out_array_end(j);
    put_names(j, "drained", &d->drained);
    json_out_key(j, "policy");
    put_policy(j, &d->policy);
    json_out_object_end(j);
}

void control_json_event(struct json_out *j, const struct event_log_entry *entry)
{
    json_out_object(j);
    json_out_member_uint(j, "sequence", entry->sequence);
    put_time(j, "time", entry->at_ms);
    json_out_member_str(j, "kind", event_log_kind_text(entry->kind));
    json_out_member_str(j, "sender", entry->sender);
    if (entry->node[0])
        json_out_member_str(j, "node", entry->node);
    if (entry->model[0])
        json_out_member_str(j, "model", entry->model);
    if (entry->has_sha256)
        put_sum(j, "sha256", entry->sha256);
    if (entry->fence)
        json_out_member_uint(j, "fence", entry->fence);
    json_out_member_str(j, "text", entry->text);
    json_out_object_end(j);
}
