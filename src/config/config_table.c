/* config_table.c - every key of the configuration file, one row each; see config_key.h.
 *
 * To add a key: a member in config (or in the struct of its list, below) and a row here.  Then
 * regenerate docs/CONFIG.md: `shoal config reference > docs/CONFIG.md`. */
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "config/config.h"
#include "config/config_key.h"
#include "cluster/shard/shard_plan.h"
#include "config/config_routes.h"
#include "config/config_things.h"
#include "ensemble/confidence_file.h"
#include "mqtt/payload.h"

/* ---- models ---- */

struct adapter_keys {
    char *name, *path;
    double scale;
};

struct model_adapter {
    char name[64], path[PATH_MAX];
    double scale;
};

struct model_keys {
    struct registry_spec spec;
    struct model_adapter adapters[CONFIG_MAX_ADAPTERS];
    uint32_t n_adapters;
    char *name, *path, *task, *labels, *cpus, *calibration, *shard, *key_file;
    uint32_t kv, drafts, isolation, cache, wire, nice; /* which choice, but for nice */
    bool lazy;
    struct config_routes_model facts; /* name is not used: it is the model's */
};

/* "0-3,6" to bits; false: it is not such a list. */
static bool read_cpus(const char *text, uint64_t *bits, size_t n_bits)
{
    const char *p = text;
    while (*p) {
        char *end;
        unsigned long from = strtoul(p, &end, 10), to = from;
        if (end == p || !ascii_is_digit(*p))
            return false;
        if (*end == '-') {
            p = end + 1;
            to = strtoul(p, &end, 10);
            if (end == p || !ascii_is_digit(*p))
                return false;
        }
        if (to < from || to >= n_bits || (*end && (*end != ',' || !end[1])))
            return false;
        for (unsigned long i = from; i <= to; i++)
            bits[i / 64] |= 1ull << (i % 64);
        p = *end ? end + 1 : end;
    }
    return p != text;
}

static int take_adapter(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    const struct adapter_keys *k = item;
    struct model_keys *of = parent;
    struct model_adapter *to = &of->adapters[of->n_adapters];
    if (strlen(k->name) >= sizeof(to->name) || strlen(k->path) >= sizeof(to->path))
        return yaml_in_fail(r, at, "the name or path of an adapter is too long");
    if (k->scale == 0)
        return yaml_in_fail(r, at, "an adapter with a scale of 0 adds nothing");
    memcpy(to->name, k->name, strlen(k->name) + 1);
    memcpy(to->path, k->path, strlen(k->path) + 1);
    to->scale = k->scale;
    of->n_adapters++;
    return 0;
}

static int take_model(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct model_keys *k = item;
    struct registry_apart_opts *o = &k->spec.apart_opts;
    struct shard_want want = {.mode = SHARD_NONE};
    struct err inner = {0};
    k->spec.apart = k->isolation == 1;
    k->spec.shares_cache = k->cache == 1;
    if (!k->spec.apart && (o->memory_bytes || k->nice || k->cpus))
        return yaml_in_fail(r, at, "isolation_memory, nice and cpus need isolation: process");
    if (k->spec.apart && k->spec.context_shift)
        return yaml_in_fail(r, at, "context_shift does not work with isolation: process");
    if (k->lazy && k->spec.standby)
        return yaml_in_fail(r, at, "a standby is loaded: it cannot be lazy");
    if (k->shard && shard_want_read(&want, k->shard, &inner) < 0)
        return yaml_in_fail(r, at, "%.200s", inner.msg);
    if (want.q8)
        return yaml_in_fail(r, at, "\"%.20s\": write wire: q8 beside shard", k->shard);
    if (want.mode != SHARD_NONE && k->spec.apart)
        return yaml_in_fail(r, at, "shard does not work with isolation: process");
    if (want.mode != SHARD_NONE && k->key_file)
        return yaml_in_fail(r, at,
                            "an encrypted model cannot be sharded: other nodes lack its key");
    if (want.mode != SHARD_NONE)
        snprintf(k->spec.shard, sizeof(k->spec.shard), "%s%s", k->shard, k->wire == 1 ? " q8" : "");
    else if (k->wire == 1)
        return yaml_in_fail(r, at, "wire: q8 needs shard: it is about what travels between nodes");
    o->nice = (int32_t)k->nice;
    if (k->cpus && !read_cpus(k->cpus, o->cpus, sizeof(o->cpus) * 8))
        return yaml_in_fail(r, at, "cpus must be a list such as 2-3 or 0,2,4-7");
    k->spec.name = k->name;
    k->spec.path = k->path;
    k->spec.task = k->task;
    k->spec.key_file = k->key_file;
    k->spec.labels = k->labels;
    k->spec.kv_q8 = k->kv == 1;
    k->spec.no_drafts = k->drafts == 1;
    k->spec.pinned = !k->lazy;
    struct config *c = parent;
    if (k->calibration && confidence_file_read(&k->spec.calibration, k->calibration, &inner) < 0)
        return yaml_in_fail(r, at, "%.200s", inner.msg);
    int rc = config_routes_know(&c->router, k->name, &k->facts, &inner);
    if (rc == 0)
        rc = config_add_model(c, &k->spec, &inner);
    for (uint32_t i = 0; rc == 0 && i < k->n_adapters; i++)
        rc = config_add_adapter(c, k->name, k->adapters[i].name, k->adapters[i].path,
                                k->adapters[i].scale, &inner);
    if (rc == SHOAL_ENOMEM)
        return err_set(r->e, rc, "%s: %s", r->name, inner.msg);
    return rc < 0 ? yaml_in_fail(r, at, "%.200s", inner.msg) : 0;
}

/* ---- keys of clients ---- */

struct key_keys {
    struct admission_key key;
    char *sha256;
};

static int take_key(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct config *c = parent;
    struct key_keys *k = item;
    if (strlen(k->sha256) != 64 || strspn(k->sha256, "0123456789abcdefABCDEF") != 64)
        return yaml_in_fail(r, at,
                            "a key needs a name and sha256, the 64 hex digits of its hash (printf "
                            "%%s KEY | sha256sum)");
    if (!admission_name_ok(k->key.name))
        return yaml_in_fail(r, at,
                            "the name of a key has 1 to %zu bytes, without control characters",
                            ADMISSION_NAME_BYTES - 1);
    for (uint32_t i = 0; i < c->n_keys; i++)
        if (strcasecmp(c->keys[i].sha256, k->sha256) == 0 &&
            strcmp(c->keys[i].name, k->key.name) != 0)
            return yaml_in_fail(r, at,
                                "the keys '%.63s' and '%.63s' are the same: each name needs "
                                "a key of its own",
                                c->keys[i].name, k->key.name);
    memcpy(k->key.sha256, k->sha256, 65);
    if (k->key.rate > 0 && k->key.burst < 1)
        k->key.burst = k->key.rate > 1 ? k->key.rate : 1;
    c->keys[c->n_keys++] = k->key; /* the row has the limit of the array */
    k->key.name = NULL;
    return 0;
}

/* ---- routes ---- */

static int take_route(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_routes_take(r, at, item, &((struct config *)parent)->router);
}

/* ---- sensors ---- */

static int take_machine(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_things_take_machine(r, at, item, &((struct config *)parent)->things);
}

static int take_sensor(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_things_take_sensor(r, at, item, &((struct config *)parent)->things);
}

static int take_subscription(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_things_take_subscription(r, at, item, &((struct config *)parent)->things);
}

static int take_webhook(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_webhooks_take(r, at, item, &((struct config *)parent)->webhooks);
}

static int take_signer(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_trust_take(r, at, item, &((struct config *)parent)->trust);
}

static int take_deed(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_deeds_take(r, at, item, &((struct config *)parent)->deeds);
}

static int take_modbus(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_modbus_take(r, at, item, &((struct config *)parent)->modbus);
}

static int take_flow(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    return config_flows_take(r, at, item, &((struct config *)parent)->flows);
}

/* ---- the rows ---- */

#define AT(member) offsetof(struct config, member)
#define MODEL(member) offsetof(struct model_keys, member)
#define KEY(member) offsetof(struct key_keys, member)
#define ROUTE(member) offsetof(struct config_routes_route, member)
#define ENTRY(member) offsetof(struct config_routes_model, member)
#define RULE(member) offsetof(struct config_routes_rule, member)
#define MACHINE(member) offsetof(struct config_things_machine, member)
#define SENSOR(member) offsetof(struct config_things_sensor, member)
#define SUBSCRIPTION(member) offsetof(struct config_subscription, member)
#define WEBHOOK(member) offsetof(struct config_webhook, member)
#define SIGNER(member) offsetof(struct config_signer, member)
#define DEED(member) offsetof(struct config_deed, member)
#define MODBUS(member) offsetof(struct config_modbus, member)
#define TAG(member) offsetof(struct config_modbus_tag, member)
#define FLOW(member) offsetof(struct config_flow, member)
#define INPUT(member) offsetof(struct config_flow_input, member)
#define STEP(member) offsetof(struct config_flow_step, member)
#define CASE(member) offsetof(struct config_flow_case, member)
#define ROW(where, kind, at, def, lo, hi, takes, words)                                            \
    {                                                                                              \
        .path = (where), .type = CONFIG_##kind, .offset = (at), .fallback = (def), .min = (lo),    \
        .max = (hi), .when = CONFIG_##takes, .text = (words)                                       \
    }
#define NEEDED(where, kind, at, takes, words)                                                      \
    {                                                                                              \
        .path = (where), .type = CONFIG_##kind, .offset = (at), .needed = true,                    \
        .when = CONFIG_##takes, .text = (words)                                                    \
    }
#define CHOICE(where, at, words_of, def, takes, words)                                             \
    {                                                                                              \
        .path = (where), .type = CONFIG_CHOICE, .offset = (at), .fallback = (def),                 \
        .choices = (words_of), .when = CONFIG_##takes, .text = (words)                             \
    }
#define MAP(where, words)                                                                          \
    {                                                                                              \
        .path = (where), .type = CONFIG_MAP, .text = (words)                                       \
    }
#define ITEMS(where, item, most, fn, words)                                                        \
    {                                                                                              \
        .path = (where), .type = CONFIG_ITEMS, .offset = sizeof(item), .max = (most),              \
        .take = (fn), .text = (words)                                                              \
    }

const struct config_key config_keys[] = {
    ROW("listen", STRS, AT(listen), NULL, 0, CONFIG_MAX_LISTEN, START,
        "Addresses for clients: HOST:PORT or unix:PATH. Port 0 takes a free one. Default: "
        "127.0.0.1:8080 for `shoal serve` and `shoal gateway`, none for `shoal node`."),
    ROW("wyoming", STR, AT(wyoming), NULL, 0, 0, START,
        "Address for Wyoming, the protocol of Home Assistant's voice services (docs/VOICE.md): "
        "tcp://HOST:PORT. It has no keys: whoever reaches the address may use it. Default: off."),
    ROW("wake", STR, AT(wake), NULL, 0, 0, START,
        "Wake word of /v1/voice and Wyoming (docs/VOICE.md): \"hey shoal\", or the folder of "
        "another "
        "one, with a slash. Default: off."),
    ROW("threads", U32, AT(threads), NULL, 0, 64, START,
        "Number of event loops. Default: 1; 2 from 8 cores, 4 from 16. Most cores are left to the "
        "models."),
    ROW("watch", BOOL, AT(watch), "true", 0, 0, LIVE,
        "Whether the server reads the file again when it changes. `SIGHUP` always does."),
    MAP("tls", "Certificate of this server. Without it, clients connect without encryption."),
    ROW("tls.cert", STR, AT(tls_cert), NULL, 0, 0, LIVE,
        "PEM file with the certificate and its chain."),
    ROW("tls.key", STR, AT(tls_key), NULL, 0, 0, LIVE, "PEM file with its private key."),
    ROW("tls.client_ca", STR, AT(tls_client_ca), NULL, 0, 0, LIVE,
        "PEM file of a CA: clients need a certificate signed by it."),

    ITEMS("models", struct model_keys, CONFIG_MAX_MODELS, take_model,
          "Models of this process. Default: those included with Shoal, and none for a gateway."),
    NEEDED("models[].name", STR, MODEL(name), LIVE, "Its name for clients."),
    NEEDED("models[].path", STR, MODEL(path), LIVE, "GGUF file, or Hugging Face folder."),
    ROW("models[].key_file", STR, MODEL(key_file), NULL, 0, 0, START,
        "File with the key or the passphrase of a model that shoal model encrypt wrote. It is "
        "decrypted into memory only."),
    ROW("models[].task", STR, MODEL(task), NULL, 0, 0, START,
        "Its purpose, in lists of models. Default: what the file supports."),
    ROW("models[].labels", STR, MODEL(labels), NULL, 0, 0, START,
        "Which of the model's label sets this name uses. Default: the model's own default."),
    ROW("models[].calibration", STR, MODEL(calibration), NULL, 0, 0, START,
        "File that `shoal calibrate` wrote for this name's label set: its temperature calibrates "
        "confidences, and drift of their distribution is reported. Default: the model's own "
        "confidences."),
    ROW("models[].context", U32, MODEL(spec.n_ctx), NULL, 0, 16777216, START,
        "Tokens of the longest conversation. Default: the model's own length, at most 4096."),
    ROW("models[].parallel", U32, MODEL(spec.max_tasks), NULL, 0, 4096, START,
        "How many requests it computes at once. Default: 8."),
    ROW("models[].queue", U32, MODEL(spec.max_queue), NULL, 0, 1048576, START,
        "How many requests may wait for it; more are refused with 429. Default: 256."),
    ROW("models[].threads", U32, MODEL(spec.n_threads), NULL, 0, 1024, START,
        "Threads that compute it. Default: measured when it is loaded."),
    ROW("models[].kv_bytes", BYTES, MODEL(spec.kv_bytes), NULL, 0, 0, START,
        "Memory of its KV cache. Default: room for `context` tokens of half of the `parallel` "
        "requests."),
    ROW("models[].context_shift", BOOL, MODEL(spec.context_shift), "false", 0, 0, START,
        "Whether an answer with `max_tokens` may be longer than `context`: when it is full, the "
        "start of the prompt (up to a quarter) and the later half of the rest stay, and the rest "
        "is forgotten. Not for structured answers, and not with `isolation: process`."),
    CHOICE("models[].drafts", MODEL(drafts), "auto|never", "auto", START,
           "Whether tokens that repeat the prompt or the answer are guessed and verified together, "
           "as far as that is measured to be faster. The answer is the same."),
    CHOICE("models[].kv", MODEL(kv), "f16|q8", "f16", START,
           "Numbers of its KV cache: 16 bits, or 8 bits with a scale for each block."),
    ROW("models[].streams", U32, MODEL(spec.max_streams), "4096", 1, 1048576, START,
        "Scorers: streams of `/v1/score` that may be open at once."),
    ROW("models[].stream_ttl", MS, MODEL(spec.stream_ttl_ms), "1h", 1000, 604800000.0, START,
        "Scorers: a stream ends after this long without rows."),
    ROW("models[].stream_save", MS, MODEL(spec.stream_save_ms), "2s", 10, 600000, START,
        "Scorers: how long after a change the state of a stream is written to `streams` in the "
        "cache folder of the weights. A server that is killed resumes from there."),
    CHOICE("models[].cache", MODEL(cache), "private|shared", "private", START,
           "Whether keys share the model's cached answers and prompt prefixes. `shared`: only for "
           "prompts that are no secret, since one client can find out by a hit what another has "
           "sent."),
    ROW("models[].lazy", BOOL, MODEL(lazy), "false", 0, 0, START,
        "Load it on first use, and unload it when memory is short. Otherwise it is loaded at start "
        "and stays loaded."),
    ROW("models[].standby", BOOL, MODEL(spec.standby), "false", 0, 0, START,
        "In a shoal: keep it loaded, and answer only when no other node can. Not with `lazy`."),
    ROW("models[].shard", STR, MODEL(shard), NULL, 0, 0, START,
        "In a shoal with certificates: other nodes compute some of its layers. `auto`: if it does "
        "not fit this node, or is at least 15 % faster so; `layers:2` or `layers:2..4`: over that "
        "many nodes, with this one; `rows:2` or `rows:2..4`: all of them compute rows of every "
        "layer at once; `none`. The answers are the same."),
    CHOICE("models[].wire", MODEL(wire), "exact|q8", "exact", START,
           "What travels between the nodes of a model with `shard`. `q8`: in 8 bits, a quarter of "
           "the bytes; the answers may then differ from those of the whole model."),
    ROW("models[].priority", I32, MODEL(spec.priority), "0", -1000, 1000, START,
        "When memory is short, models with a lower number are unloaded first."),
    CHOICE("models[].isolation", MODEL(isolation), "none|process", "none", START,
           "`process`: it runs in its own sandboxed process, so that a crash or a hostile file "
           "harms nothing else."),
    ROW("models[].isolation_memory", BYTES, MODEL(spec.apart_opts.memory_bytes), NULL, 0, 0, START,
        "Limit of that process's address space. Default: none."),
    ROW("models[].nice", U32, MODEL(nice), NULL, 0, 19, START,
        "Niceness of that process, 0 to 19. Default: 0."),
    ROW("models[].cpus", STR, MODEL(cpus), NULL, 0, 0, START,
        "CPUs that it may use, such as `2-3` or `0,2,4-7`. Default: all."),
    ITEMS("models[].adapters", struct adapter_keys, CONFIG_MAX_ADAPTERS, take_adapter,
          "LoRA adapters beside the model, which requests choose by the name MODEL:ADAPTER "
          "(docs/ADAPTERS.md)."),
    NEEDED("models[].adapters[].name", STR, offsetof(struct adapter_keys, name), LIVE,
           "What follows the model's name and a colon."),
    NEEDED("models[].adapters[].path", STR, offsetof(struct adapter_keys, path), LIVE,
           "A folder as PEFT writes it, or a GGUF file as llama.cpp has it."),
    ROW("models[].adapters[].scale", NUM, offsetof(struct adapter_keys, scale), "1", -1000, 1000,
        START, "Factor on what it adds; a request may ask for another."),
    ROW("models[].quality", SHARE, MODEL(facts.quality), "0", 0, 1, LIVE,
        "How good its answers are, for routes: 0 to 1, from an evaluation. 0: unknown."),
    ROW("models[].cost", NUM, MODEL(facts.cost), "0", 0, 1e9, LIVE,
        "Cost of 1000 tokens, for routes, in any unit."),
    ROW("models[].watts", NUM, MODEL(facts.watts), "0", 0, 1e6, LIVE,
        "Power draw while it computes, for routes. 0: unknown."),
    ROW("models[].domains", STRS, MODEL(facts.domains), NULL, 0, 64, LIVE,
        "Domains it is good at, as labels of a route's `classifier`. None: all."),
    ROW("models[].languages", STRS, MODEL(facts.languages), NULL, 0, 64, LIVE,
        "Languages it supports, such as `en`. None: all."),
    ROW("model_dirs", STRS, AT(model_dirs), NULL, 0, CONFIG_MAX_MODEL_DIRS, LIVE,
        "Folders that models may be added from at run time. Default: the folders of `models`."),
    ROW("table", STR, AT(table), NULL, 0, 0, START,
        "JSON file with the words and actions of /v1/process. Default: home.json of the included "
        "models."),
    ROW("home", STR, AT(home), NULL, 0, 0, START,
        "Home file of /v1/process: your rooms, devices, machines and people (docs/HOME.md). "
        "Default: a simulated demo home."),
    ROW("home_state", STR, AT(home_state), NULL, 0, 0, START,
        "File that keeps the states of the home's things across restarts. Default: in memory "
        "only."),
    ROW("home_schedule", STR, AT(home_schedule), NULL, 0, 0, START,
        "File that keeps the schedules of the home: timers, alarms, reminders, actions. Default: "
        "home-scheduled.json in the user's state folder."),
    ROW("home_grace", MS, AT(home_grace_ms), "5m", 1000, 86400000, START,
        "How late a scheduled entry may still run, if the server was off or the clock was changed. "
        "After that it is reported as missed."),
    ROW("memory", BYTES, AT(memory_bytes), NULL, 0, 0, START,
        "Limit for weights, scratch memory and caches of all models together. Default: what the "
        "machine has."),
    ROW("idle_unload", MS, AT(idle_unload_ms), "0", 0, 0, START,
        "Unload a `lazy` model after this long without requests. 0: never."),
    ROW("load_wait", MS, AT(load_wait_ms), "10s", 0, 0, LIVE,
        "How long a request waits for its model to be loaded before it gets 503. 0: not at all."),
    ROW("any_model", BOOL, AT(any_model), "false", 0, 0, LIVE,
        "Answer a request for an unknown model with the first suitable model, as llama.cpp's "
        "server does. For programs with a fixed model name, such as gpt-4o. Otherwise such a "
        "request gets 404."),
    CHOICE("admin", AT(admin), "off|loopback", "off", LIVE,
           "`loopback`: without keys, programs of this machine may change models over a loopback "
           "address, "
           "as Ollama's command line does; never pages of other origins, other names in Host, or "
           "proxies. "
           "`off`: only over the unix socket, or with an admin key."),
    ROW("lenient", BOOL, AT(lenient), "false", 0, 0, LIVE,
        "Ignore unknown and unsupported fields of requests, for all clients, as the "
        "header `x-shoal-lenient: 1` does for one request. Otherwise they are refused by name."),

    {.path = "routes",
     .type = CONFIG_ITEMS,
     .offset = sizeof(struct config_routes_route),
     .max = CONFIG_MAX_ROUTES,
     .take = take_route,
     .drop = config_routes_drop,
     .text = "Names that clients use like models: the server chooses the model. `auto` always "
             "exists: it covers all models, with the policy `sla`."},
    NEEDED("routes[].name", STR, ROUTE(name), LIVE, "Its name for clients."),
    ROW("routes[].callers", STRS, ROUTE(callers), NULL, 0, CONFIG_MAX_KEYS, LIVE,
        "Names of `keys` that may use it. None: everyone."),
    ROW("routes[].policy", STRS, ROUTE(policy), "sla", 0, ROUTER_MAX_STEPS, LIVE,
        "How to choose; each word narrows the remaining candidates. `fit`: meets the deadline. "
        "`quality`, `cost`, `energy`, `battery`, `latency`, `least_loaded`: the best by it. "
        "`round_robin`: in turn. `hash`: a session stays at its replica. `sla`: fit, quality, "
        "latency. `cheapest`: fit, cost, latency."),
    ROW("routes[].budget", MS, ROUTE(budget_ms), "0", 0, 0, LIVE,
        "Deadline of requests without their own. 0: none."),
    ROW("routes[].max_budget", MS, ROUTE(max_budget_ms), "0", 0, 0, LIVE,
        "Upper limit of a request's deadline. 0: no limit."),
    ROW("routes[].priority", I32, ROUTE(priority), "0", -1000, 1000, LIVE,
        "Added to the priority of its requests. Above 0 only with `callers`."),
    CHOICE(
        "routes[].cache", ROUTE(cache), "true|false|shared", "true", LIVE,
        "Whether answers may come from the prompt cache, and go into it. `shared`: and keys share "
        "cached answers and prompt prefixes; only for prompts that are no secret, since one "
        "client can find out by a hit what another has sent."),
    ROW("routes[].similar", SHARE, ROUTE(similar), "0", 0, 1, LIVE,
        "Semantic cache: a chat may be answered with the cached answer to a paraphrase of its "
        "prompt, if the similarity of their vectors is at least this; 0.8 is a good value. 0: "
        "off."),
    ROW("routes[].min_quality", SHARE, ROUTE(min_quality), "0", 0, 1, LIVE,
        "Models below it are used only if there is no other; then the answer is marked degraded."),
    ROW("routes[].least_battery", U32, ROUTE(least_battery), "20", 0, 100, LIVE,
        "Percent; the policy `battery` avoids nodes below it."),
    ROW("routes[].flow", STR, ROUTE(flow), NULL, 0, 0, LIVE,
        "Name of one of the `flows`, which answers instead of a model."),
    MAP("routes[].classifier",
        "A router model: an encoder that finds the domain of a text before the choice."),
    ROW("routes[].classifier.model", STR, ROUTE(classifier), NULL, 0, 0, LIVE,
        "Name of a model that can classify."),
    ROW("routes[].classifier.labels", STR, ROUTE(labels), NULL, 0, 0, LIVE,
        "Which of its label sets. Default: the model's own default."),
    ROW("routes[].classifier.threshold", SHARE, ROUTE(threshold), "0.5", 0, 1, LIVE,
        "Below this confidence the text belongs to no domain, and models without domains answer."),
    MAP("routes[].privacy", "As `privacy`, for requests to this route."),
    CHOICE("routes[].privacy.action", ROUTE(privacy.action), PRIVACY_ACTIONS, "default", LIVE,
           "As `privacy.action`. `default`: use the global `privacy` settings."),
    ROW("routes[].privacy.find", STRS, ROUTE(privacy.find), NULL, 0, 16, LIVE,
        "As `privacy.find`."),
    CHOICE("routes[].privacy.zone", ROUTE(privacy.zone), PRIVACY_ZONES, "everywhere", LIVE,
           "As `privacy.zone`."),
    ROW("routes[].privacy.model", STR, ROUTE(privacy.model), NULL, 0, 0, LIVE,
        "As `privacy.model`."),
    MAP("routes[].cascade", "The first model answers; if it is not confident enough, the next one "
                            "does (docs/ENSEMBLES.md). For classifications and generations."),
    ROW("routes[].cascade.models", STRS, ROUTE(ensemble.cascade.models), NULL, 0,
        ENSEMBLE_MAX_MODELS, LIVE, "The models, the cheapest first."),
    ROW("routes[].cascade.threshold", SHARE, ROUTE(ensemble.cascade.threshold), "0.8", 0, 1, LIVE,
        "Below this confidence the next model is used. For a generation, the confidence is the "
        "geometric mean of its tokens' probabilities."),
    CHOICE("routes[].cascade.measure", ROUTE(ensemble.cascade.measure), ENSEMBLE_MEASURES,
           "confidence", LIVE,
           "Confidence of a classification: the probability of the answer, or its lead over the "
           "second label."),
    ROW("routes[].cascade.hold", U32, ROUTE(ensemble.cascade.hold), "8", 0, 1000, LIVE,
        "Number of first tokens of a generation that are held back: until then the model can be "
        "replaced unnoticed."),
    ROW("routes[].cascade.replace", BOOL, ROUTE(ensemble.cascade.replace), "false", 0, 0, LIVE,
        "Whether a stream may be replaced later, by a marked event that the client must "
        "understand."),
    MAP("routes[].vote", "All models classify; the label with the most votes is the answer."),
    ROW("routes[].vote.models", STRS, ROUTE(ensemble.vote.models), NULL, 0, ENSEMBLE_MAX_MODELS,
        LIVE, "The models that vote."),
    ROW("routes[].vote.weights", STRS, ROUTE(ensemble.vote.weights), NULL, 0, ENSEMBLE_MAX_MODELS,
        LIVE, "Their weights, in the same order. Default: 1 each."),
    CHOICE("routes[].vote.by", ROUTE(ensemble.vote.by), ENSEMBLE_COUNTS, "label", LIVE,
           "`label`: a model's weight goes to its answer. `probability`: the weight is divided "
           "among all labels."),
    MAP("routes[].consensus", "One model answers several times; the majority answer is returned."),
    ROW("routes[].consensus.model", STR, ROUTE(ensemble.consensus.model), NULL, 0, 0, LIVE,
        "The model."),
    ROW("routes[].consensus.samples", U32, ROUTE(ensemble.consensus.samples), "5", 2,
        ENSEMBLE_MAX_SAMPLES, LIVE, "How many answers."),
    ROW("routes[].consensus.temperature", NUM, ROUTE(ensemble.consensus.temperature), "0.7", 0.01,
        10, LIVE, "Temperature for requests with temperature 0."),
    CHOICE("routes[].consensus.part", ROUTE(ensemble.consensus.part), ENSEMBLE_PARTS, "whole", LIVE,
           "Which part of the answers is compared: all, the last line, or the last number."),
    MAP("routes[].rerank", "A fast model writes several answers; a better one chooses by their "
                           "likelihood."),
    ROW("routes[].rerank.model", STR, ROUTE(ensemble.rerank.model), NULL, 0, 0, LIVE,
        "The model that writes."),
    ROW("routes[].rerank.judge", STR, ROUTE(ensemble.rerank.judge), NULL, 0, 0, LIVE,
        "The model that reads: the mean log-probability of the answer's tokens is the score."),
    ROW("routes[].rerank.samples", U32, ROUTE(ensemble.rerank.samples), "4", 2,
        ENSEMBLE_MAX_SAMPLES, LIVE, "How many answers."),
    ROW("routes[].rerank.temperature", NUM, ROUTE(ensemble.rerank.temperature), "0.7", 0.01, 10,
        LIVE, "Temperature for requests with temperature 0."),
    MAP("routes[].refine", "A fast answer at once; a better one replaces it later, in a stream by "
                           "a marked event."),
    ROW("routes[].refine.model", STR, ROUTE(ensemble.refine.model), NULL, 0, 0, LIVE,
        "The fast model."),
    ROW("routes[].refine.better", STR, ROUTE(ensemble.refine.better), NULL, 0, 0, LIVE,
        "The better model."),
    MAP("routes[].average",
        "Several decoders with the same vocabulary write one text: each token is chosen by the "
        "mean of their probabilities (docs/ENSEMBLES.md)."),
    ROW("routes[].average.models", STRS, ROUTE(ensemble.average.models), NULL, 0,
        ENSEMBLE_MAX_MODELS, LIVE,
        "Models of this file. The first one's chat template, context and limits are used."),
    ROW("routes[].average.weights", STRS, ROUTE(ensemble.average.weights), NULL, 0,
        ENSEMBLE_MAX_MODELS, LIVE,
        "Their weights, in the same order. Default: 1 each. A model with 0 is not computed."),
    {.path = "routes[].models",
     .type = CONFIG_ITEMS,
     .offset = sizeof(struct config_routes_model),
     .max = CONFIG_MAX_MODELS,
     .take = config_routes_take_model,
     .short_form = true,
     .text = "Models that it may choose, here or on other nodes. None: all suitable ones. Values "
             "here override those in `models`."},
    NEEDED("routes[].models[].name", STR, ENTRY(name), LIVE, "Name of the model."),
    ROW("routes[].models[].quality", SHARE, ENTRY(quality), "0", 0, 1, LIVE,
        "As `models[].quality`."),
    ROW("routes[].models[].cost", NUM, ENTRY(cost), "0", 0, 1e9, LIVE, "As `models[].cost`."),
    ROW("routes[].models[].watts", NUM, ENTRY(watts), "0", 0, 1e6, LIVE, "As `models[].watts`."),
    ROW("routes[].models[].domains", STRS, ENTRY(domains), NULL, 0, 64, LIVE,
        "As `models[].domains`."),
    ROW("routes[].models[].languages", STRS, ENTRY(languages), NULL, 0, 64, LIVE,
        "As `models[].languages`."),
    ITEMS("routes[].rules", struct config_routes_rule, CONFIG_MAX_RULES, config_routes_take_rule,
          "Rules on the properties of a request; the first match restricts the choice to the "
          "models of its `use`."),
    CHOICE("routes[].rules[].when", RULE(when), ROUTER_FIELDS, "text", LIVE,
           "The property to test. `size`: bytes of text. `kind`: generate, classify, ..."),
    ROW("routes[].rules[].name", STR, RULE(name), NULL, 0, 0, LIVE,
        "Name of the header, or of the JSON field of the body: `metadata.tier`."),
    ROW("routes[].rules[].is", STRS, RULE(is), NULL, 0, 64, LIVE,
        "Matches if the value is one of these texts."),
    ROW("routes[].rules[].matches", STR, RULE(matches), NULL, 0, 0, LIVE,
        "Matches if the value matches this regular expression (PCRE)."),
    ROW("routes[].rules[].above", NUM, RULE(above), NULL, 0, 1e12, LIVE,
        "Matches if the value is a number above this."),
    ROW("routes[].rules[].below", NUM, RULE(below), NULL, 0, 1e12, LIVE,
        "Matches if the value is a number below this."),
    ROW("routes[].rules[].not", BOOL, RULE(negate), "false", 0, 0, LIVE, "Negates the condition."),
    ROW("routes[].rules[].use", STRS, RULE(use), NULL, 0, 64, LIVE, "Models that remain."),

    MAP("privacy", "How personal data in requests is handled, before they are stored or sent to "
                   "another node (docs/PRIVACY.md)."),
    CHOICE("privacy.action", AT(privacy.action), PRIVACY_ACTIONS, "default", LIVE,
           "`mask`: [email] instead of the value. `pseudonym`: [email-1f2e3d4c], and the value "
           "again in the answer. `refuse`: 400. `none`, `default`: nothing."),
    ROW("privacy.find", STRS, AT(privacy.find), NULL, 0, 16, LIVE,
        "What to find: `email`, `phone`, `card`, `iban`, `ip`, `id`, `birth`, and with a "
        "model `person`, `place`. Default: all but those two."),
    CHOICE("privacy.zone", AT(privacy.zone), PRIVACY_ZONES, "everywhere", LIVE,
           "`everywhere`: no model sees it. `nodes`: models of this server may see it; requests to "
           "other nodes are changed."),
    ROW("privacy.model", STR, AT(privacy.model), NULL, 0, 0, LIVE,
        "Model of this server that finds persons and places. Default: `entities`."),
    ROW("privacy.key_file", STR, AT(privacy_key_file), NULL, 0, 0, START,
        "File of at least 32 bytes used as the key for pseudonyms. Servers with the same file "
        "generate the same ones. Default: random at each start."),

    {.path = "flows",
     .type = CONFIG_ITEMS,
     .offset = sizeof(struct config_flow),
     .max = CONFIG_MAX_FLOWS,
     .take = take_flow,
     .drop = config_flows_drop,
     .text = "Graphs of steps under one deadline, used like models: by name, by a route's `flow`, "
             "and by /v1/process (docs/FLOWS.md)."},
    NEEDED("flows[].name", STR, FLOW(name), LIVE, "Its name for clients and routes."),
    ROW("flows[].text", STR, FLOW(text), NULL, 0, 0, LIVE, "Its purpose, in lists of models."),
    ROW("flows[].budget", MS, FLOW(budget_ms), "0", 0, 0, LIVE,
        "Time for all steps together, for requests without a deadline. 0: none."),
    NEEDED("flows[].output", STR, FLOW(output), LIVE,
           "The answer, an expression such as `${answer.text}`."),
    ROW("flows[].fallback", STR, FLOW(fallback), NULL, 0, 0, LIVE,
        "The answer if the output is not available in time, or at all. It may use `input`. "
        "Default: "
        "the request fails."),
    ITEMS("flows[].inputs", struct config_flow_input, GRAPH_MAX_INPUTS, config_flows_take_input,
          "What a request carries besides `text`."),
    NEEDED("flows[].inputs[].name", STR, INPUT(name), LIVE, "As in `${input.NAME}`."),
    CHOICE("flows[].inputs[].type", INPUT(type), "text|number|bool|texts|numbers", "text", LIVE,
           "Its type; `texts` and `numbers` are lists."),
    ROW("flows[].inputs[].default", STR, INPUT(fallback), NULL, 0, 0, LIVE,
        "Value for requests without this input. Without a default they are refused."),
    {.path = "flows[].steps",
     .type = CONFIG_ITEMS,
     .offset = sizeof(struct config_flow_step),
     .max = GRAPH_MAX_STEPS,
     .take = config_flows_take_step,
     .drop = config_flows_drop_step,
     .text = "The steps, in any order: a step starts when the steps it refers to are done."},
    NEEDED("flows[].steps[].name", STR, STEP(name), LIVE, "As in `${NAME.text}`."),
    {.path = "flows[].steps[].do",
     .type = CONFIG_CHOICE,
     .offset = STEP(kind),
     .choices = GRAPH_KINDS,
     .needed = true,
     .text = "What it does."},
    ROW("flows[].steps[].when", STR, STEP(when), NULL, 0, 0, LIVE,
        "A condition, such as `${intent.score} > 0.5`; otherwise the step is skipped and its "
        "result is empty."),
    ROW("flows[].steps[].timeout", MS, STEP(timeout_ms), "0", 0, 0, LIVE,
        "How long it may take. 0: as long as the flow."),
    ROW("flows[].steps[].share", SHARE, STEP(share), "0", 0, 1, LIVE,
        "How much of the flow's whole time it may take. 0: no limit."),
    ROW("flows[].steps[].fallback", STR, STEP(fallback), NULL, 0, 0, LIVE,
        "Its main result if it fails or takes too long."),
    ROW("flows[].steps[].fallback_step", STR, STEP(fallback_step), NULL, 0, 0, LIVE,
        "A step that runs instead if it fails or takes too long."),
    ROW("flows[].steps[].on_timeout", STR, STEP(on_timeout), NULL, 0, 0, LIVE,
        "Its main result if it takes too long; takes precedence over `fallback` and "
        "`fallback_step`."),
    ROW("flows[].steps[].model", STR, STEP(model), NULL, 0, 0, LIVE,
        "Name of a model or route. Default: the default model of the kind; verify: embed."),
    ROW("flows[].steps[].labels", STR, STEP(labels), NULL, 0, 0, LIVE,
        "classify, tag: which of the model's label sets."),
    ROW("flows[].steps[].text", STR, STEP(text), NULL, 0, 0, LIVE,
        "The text that is read, or the prompt; template: the result; verify: the answer."),
    ROW("flows[].steps[].system", STR, STEP(system), NULL, 0, 0, LIVE,
        "generate: the system message."),
    ROW("flows[].steps[].max_tokens", U32, STEP(max_tokens), "256", 1, 16777216, LIVE,
        "generate, summarize: the longest answer."),
    ROW("flows[].steps[].temperature", NUM, STEP(temperature), "0", 0, 100, LIVE,
        "generate: 0 takes the likeliest token."),
    ROW("flows[].steps[].query", STR, STEP(query), NULL, 0, 0, LIVE,
        "retrieve: the search query; verify: the question that the text must answer. Default for "
        "verify: none, the text only has to agree with the passages."),
    ROW("flows[].steps[].collection", STR, STEP(collection), NULL, 0, 0, LIVE,
        "retrieve: name of the collection."),
    ROW("flows[].steps[].reranker", STR, STEP(reranker), NULL, 0, 0, LIVE,
        "retrieve: a model that re-sorts the passages. Default: none."),
    ROW("flows[].steps[].count", U32, STEP(count), "5", 1, 100, LIVE,
        "retrieve: how many passages; summarize: how many sentences, where they are extracted."),
    ROW("flows[].steps[].passages", STR, STEP(passages), NULL, 0, 0, LIVE,
        "verify: the passages, `${found.passages}`."),
    ROW("flows[].steps[].values", STR, STEP(values), NULL, 0, 0, LIVE,
        "score: a row of numbers, `${input.readings}`."),
    ROW("flows[].steps[].over", STR, STEP(over), NULL, 0, 0, LIVE, "map: a list."),
    ROW("flows[].steps[].step", STR, STEP(step), NULL, 0, 0, LIVE,
        "map: the step that runs for each item, available as `${item}`."),
    ROW("flows[].steps[].from", STRS, STEP(from), NULL, 0, 32, LIVE,
        "merge: expressions; results of steps that failed count as empty."),
    CHOICE("flows[].steps[].how", STEP(how), "first|join|list", "first", LIVE,
           "merge: the first that is not empty; all texts, with `separator` between them; a list."),
    ROW("flows[].steps[].separator", STR, STEP(separator), NULL, 0, 0, LIVE,
        "merge: see `how`. Default: a line break."),
    ITEMS("flows[].steps[].cases", struct config_flow_case, GRAPH_MAX_CASES, config_flows_take_case,
          "switch: the first case whose condition is true is used."),
    ROW("flows[].steps[].cases[].when", STR, CASE(when), NULL, 0, 0, LIVE,
        "A condition. A case without one always matches; it must be the last."),
    ROW("flows[].steps[].cases[].value", STR, CASE(value), NULL, 0, 0, LIVE, "The result."),
    ROW("flows[].steps[].cases[].step", STR, CASE(step), NULL, 0, 0, LIVE,
        "Or a step, which runs only if it is chosen: its main result."),
    CHOICE("flows[].steps[].via", STEP(via), "http|mqtt|command|plugin", "http", LIVE,
           "call: the transport."),
    ROW("flows[].steps[].url", STR, STEP(url), NULL, 0, 0, LIVE,
        "call, http: http://HOST:PORT/PATH; values in the path are escaped."),
    CHOICE("flows[].steps[].method", STEP(method), "post|put|get", "post", LIVE,
           "call, http: the method."),
    ROW("flows[].steps[].topic", STR, STEP(topic), NULL, 0, 0, LIVE,
        "call, mqtt: the topic to publish to."),
    ROW("flows[].steps[].payload", STR, STEP(payload), NULL, 0, 0, LIVE,
        "call, http, mqtt and plugin: the payload. If it begins with `{` or `[`, values are "
        "escaped as "
        "in JSON texts."),
    ROW("flows[].steps[].command", STRS, STEP(command), NULL, 0, 32, LIVE,
        "call, command: absolute path of a program and its arguments. No shell reads them."),
    ROW("flows[].steps[].plugin", STR, STEP(plugin), NULL, 0, 0, LIVE,
        "call, plugin: absolute path of a shared object (docs/FLOWS.md)."),
    ROW("flows[].steps[].qos", U32, STEP(qos), "1", 0, 2, LIVE, "call, mqtt: quality of service."),
    ROW("flows[].steps[].retain", BOOL, STEP(retain), "false", 0, 0, LIVE,
        "call, mqtt: whether the broker keeps it for later subscribers."),
    ROW("flows[].steps[].retry", U32, STEP(retry), "1", 0, 10, LIVE,
        "call: number of retries if it fails, with the same Idempotency-Key."),
    ROW("flows[].steps[].json", BOOL, STEP(json), "false", 0, 0, LIVE,
        "call, http, command and plugin: the answer is JSON: `${NAME.json.field}`."),
    MAP("flows_allow", "Allowlist for calls of `flows`."),
    ROW("flows_allow.hosts", STRS, AT(flows.hosts), NULL, 0, 64, LIVE,
        "HOST:PORT of servers, as in the `url`."),
    ROW("flows_allow.topics", STRS, AT(flows.topics), NULL, 0, 64, LIVE,
        "Filters of topics, such as `home/+/say`."),
    ROW("flows_allow.commands", STRS, AT(flows.commands), NULL, 0, 64, LIVE,
        "Absolute paths of programs."),
    ROW("flows_allow.plugins", STRS, AT(flows.plugins), NULL, 0, 64, LIVE,
        "Absolute paths of folders with plug-ins."),
    ROW("flows_allow.plugin_memory", BYTES, AT(flows.plugin_memory), "1GiB", 0, 0, START,
        "Address space of a plug-in's process; 0: no limit."),
    ROW("flows_allow.ca", STR, AT(flows.ca), NULL, 0, 0, START,
        "PEM file of the CAs that sign the certificates of https servers. Default: the system's "
        "CAs."),
    MAP("process", "Settings of /v1/process."),
    ROW("process.flow", STR, AT(flows.process), NULL, 0, 0, LIVE,
        "Name of a flow, or of a route with one, for requests that name none. Default: `ask`, the "
        "home flow."),
    ROW("process.documents", STRS, AT(documents), NULL, 0, 8, START,
        "Collections (docs/RETRIEVAL.md) that answer what the home flow cannot: with the sentence "
        "that answers, or \"I don't know\"."),

    ITEMS("keys", struct key_keys, CONFIG_MAX_KEYS, take_key,
          "Keys of clients. None: everyone who can reach the server may use it."),
    NEEDED("keys[].name", STR, KEY(key.name), LIVE,
           "Name of the client, for logs and limits: up to 63 bytes."),
    {.path = "keys[].sha256",
     .type = CONFIG_STR,
     .offset = KEY(sha256),
     .needed = true,
     .secret = true,
     .text = "SHA-256 of the key in hex digits: printf %s KEY | sha256sum."},
    ROW("keys[].rate", NUM, KEY(key.rate), "0", 0, 1e9, LIVE, "Requests per second. 0: no limit."),
    ROW("keys[].burst", NUM, KEY(key.burst), NULL, 0, 1e9, LIVE,
        "Size of a burst of requests after a pause. Default: `rate`, at least 1."),
    ROW("keys[].in_flight", U32, KEY(key.max_in_flight), "0", 0, 0, LIVE,
        "How many of its requests may run at once. 0: no limit."),
    ROW("keys[].admin", BOOL, KEY(key.admin), "false", 0, 0, LIVE,
        "Whether it may load, unload and add models."),
    ROW("keys[].priority", I32, KEY(key.priority), "0", -1000, 1000, LIVE,
        "Requests of clients with a higher number are computed first."),
    ROW("keys[].weight", NUM, KEY(key.weight), "1", 0.001, 1000, LIVE,
        "Its share of a model relative to other keys, counted in tokens."),
    ROW("keys[].tokens_per_day", NUM, KEY(key.tokens_per_day), "0", 0, 1e15, LIVE,
        "Tokens of prompts and answers that it may use in a day (UTC). Keys of one name share it. "
        "0: no limit."),
    MAP("collections", "Collections of documents (docs/RETRIEVAL.md)."),
    ROW("collections.dir", STR, AT(collections_dir), NULL, 0, 0, START,
        "Folder of the collections. Default: $SHOAL_COLLECTIONS, or shoal/collections in the "
        "user's "
        "state folder."),
    ROW("collections.max_passages", U32, AT(collections_max_passages), "1000000", 1, 1e9, LIVE,
        "Passages of one collection. A million need about 2 GiB of memory."),
    ROW("collections.exact_passages", U32, AT(collections_exact_passages), "100000", 0, 1e9, START,
        "Up to this many passages, a search by meaning reads all of them and is exact. Larger "
        "collections get an index in memory (HNSW), which finds nearly all of the nearest. "
        "0: always exact."),
    ROW("collections.watch", STRS, AT(collections_watch), NULL, 0, 64, START,
        "Folders that collections follow, as NAME=FOLDER: documents in a folder and below it are "
        "added, replaced and removed with their files. A missing collection is made. Default: "
        "none."),
    MAP("sessions", "Conversations that continue by an id (docs/SESSIONS.md)."),
    ROW("sessions.store", STR, AT(sessions_store), NULL, 0, 0, START,
        "Where they are kept: sqlite:PATH, redis://HOST:PORT or redis://HOST:PORT/DB, or off. "
        "Default: sessions.db in the user's state folder."),
    ROW("sessions.key_file", STR, AT(sessions_key_file), NULL, 0, 0, START,
        "File with the keys that encrypt them: a tenant (the name of a key, or *) and 64 hex "
        "digits "
        "a line. Created with a random key if missing. Default: sessions.key in the user's "
        "state folder."),
    ROW("sessions.ttl", MS, AT(sessions_ttl_ms), "24h", 1000, 4294967295.0, START,
        "A conversation is deleted this long after its last turn."),
    ROW("sessions.history_tokens", U32, AT(sessions_tokens), "2048", 16, 1e7, START,
        "About this many tokens of earlier messages are kept and read again."),
    ROW("sessions.summary", STR, AT(sessions_summary), NULL, 0, 0, START,
        "A model that condenses older messages into a note, which is read again in their place: "
        "one "
        "that summarizes, such as `summary`, or one that chats. Default: they are dropped."),
    MAP("quota", "Storage of the token counts of keys."),
    ROW("quota.file", STR, AT(quota_file), NULL, 0, 0, START,
        "File that keeps the tokens of the day across restarts. Default: `quota` in the cache "
        "folder of the weights."),

    ROW("cors", STRS, AT(cors), NULL, 0, CONFIG_MAX_ORIGINS, LIVE,
        "Origins of web pages that may use this server, such as https://app.example; `localhost`: "
        "pages of this machine, on any port; `*`: all."),
    ROW("hosts", STRS, AT(hosts), NULL, 0, CONFIG_MAX_HOSTS, LIVE,
        "Names of this server beside localhost and the `listen` addresses; `*`: any. A request "
        "with another Host header is refused."),
    MAP("limits", "Limits for clients."),
    ROW("limits.body", BYTES, AT(limits.max_body_bytes), "16MiB", 0, 0, LIVE,
        "Bytes of one request's body."),
    ROW("limits.headers", BYTES, AT(limits.max_header_bytes), "32KiB", 0, 0, LIVE,
        "Bytes of one request's headers."),
    ROW("limits.connections", U32, AT(limits.max_conns), "4096", 0, 0, LIVE,
        "Open connections of one event loop."),
    ROW("limits.streams", U32, AT(limits.max_streams), "128", 0, 0, LIVE,
        "Requests at once on one HTTP/2 connection."),
    ROW("limits.in_flight", U32, AT(max_in_flight), "0", 0, 0, LIVE,
        "Requests at once of all clients together. 0: no limit."),
    ROW("limits.request_timeout", MS, AT(limits.request_ms), "15s", 0, 0, LIVE,
        "How long a client may take to send a request."),
    ROW("limits.idle_timeout", MS, AT(limits.idle_ms), "75s", 0, 0, LIVE,
        "A connection without a request is closed after this time."),
    ROW("limits.write_timeout", MS, AT(limits.write_ms), "30s", 0, 0, LIVE,
        "A connection is closed if its client reads nothing for this long."),
    ROW("limits.buffers", BYTES, AT(limits.max_held_bytes), NULL, 0, 0, LIVE,
        "Memory held for all clients. Default: three times `client_buffers`."),
    ROW("limits.client_buffers", BYTES, AT(limits.max_peer_held_bytes), NULL, 0, 0, LIVE,
        "Memory held for one client address. Default: 48 MiB, or three bodies if that is more."),
    ROW("limits.resets", U32, AT(limits.max_resets), "400", 0, 0, LIVE,
        "HTTP/2 streams of a client address that may be reset in ten seconds. 0: no limit."),
    ROW("limits.values", U32, AT(max_values), "262144", 0, 0, LIVE, "JSON values in one body."),
    MAP("deadline", "Deadlines of requests."),
    ROW("deadline.default", MS, AT(default_deadline_ms), "0", 0, 0, LIVE,
        "For requests without their own. 0: no deadline."),
    ROW("deadline.max", MS, AT(max_deadline_ms), "0", 0, 0, LIVE,
        "Upper limit of a requested deadline. 0: no limit."),
    MAP("cache", "Cached answers and files."),
    ROW("cache.bytes", BYTES, AT(cache_bytes), "16MiB", 0, 0, START,
        "Memory for cached answers. 0: cache none."),
    ROW("cache.ttl", MS, AT(cache_ttl_ms), "10m", 0, 0, START,
        "How long an answer stays in the cache."),
    ROW("cache.similar_model", STR, AT(similar_model), NULL, 0, 0, START,
        "The model that embeds prompts for routes with `similar`. Default: embed."),
    ROW("cache.weights_dir", STR, AT(cache_dir), NULL, 0, 0, START,
        "Folder for weights in the layout of this machine. Default: shoal in the user's cache "
        "folder."),
    MAP("idempotency", "Answers to calls with an `Idempotency-Key`."),
    ROW("idempotency.bytes", BYTES, AT(once_bytes), "16MiB", 0, 0, START,
        "Memory for these answers. 0: the keys are ignored."),
    ROW("idempotency.ttl", MS, AT(once_ttl_ms), "10m", 0, 0, START,
        "How long a repeated request with the same key gets the stored answer."),
    ROW("idempotency.shared", BOOL, AT(once_shared), "true", 0, 0, START,
        "In a shoal with NATS: whether gateways share keys and answers there."),
    MAP("deferred", "Requests that are answered later (docs/GATEWAY.md)."),
    ROW("deferred.file", STR, AT(deferred_file), NULL, 0, 0, START,
        "SQLite file for them and their answers, not encrypted. Without it requests cannot be "
        "deferred."),
    ROW("deferred.requests", U32, AT(deferred_requests), "10000", 1, 1e7, START,
        "Maximum number, including answered ones. A key may have at most a quarter of them."),
    ROW("deferred.bytes", BYTES, AT(deferred_bytes), "256MiB", 0, 0, START,
        "Bytes of requests and answers. The oldest answers are evicted for new ones."),
    ROW("deferred.ttl", MS, AT(deferred_ttl_ms), "24h", 1000, 4294967295.0, START,
        "The longest time that a request may wait for its answer."),
    ROW("deferred.keep", MS, AT(deferred_keep_ms), "24h", 1000, 4294967295.0, START,
        "How long an answer waits to be fetched."),
    ROW("pack", BOOL, AT(pack), "true", 0, 0, LIVE,
        "Serve the models that come with Shoal, too. They are loaded at the start only if there "
        "are no others in `models`."),
    MAP("store", "The models that were pulled by name (docs/STORE.md)."),
    ROW("store.dir", STR, AT(store_dir), NULL, 0, 0, START,
        "Folder of the store. Default: store in $STATE_DIRECTORY, or ~/.local/share/shoal/store."),
    ROW("store.offer", BOOL, AT(store_offer), "true", 0, 0, START,
        "Serve its models. They are loaded when they are first needed."),
    ROW("store.share", BOOL, AT(store_share), "false", 0, 0, LIVE,
        "Let other programs pull its models from this server, by the protocol of OCI registries: "
        "`shoal pull shoal://HOST:PORT/NAME`."),
    ROW("store.hub", STR, AT(store_hub), NULL, 0, 0, LIVE,
        "URL of the hub for models named ORG/REPO. Default: $HF_ENDPOINT, or huggingface.co."),
    ROW("store.sources", STRS, AT(store_sources), NULL, 0, 5, LIVE,
        "What clients may pull from without `ollama.registry`: `recipes`, `hub`, `oci`, `url`, "
        "`path`, or `none`. Default: recipes and hub."),
    MAP("trust", "Who may sign which models (docs/SUPPLY.md)."),
    CHOICE("trust.require", AT(trust.require), "none|signed", "none", START,
           "`signed`: a model is pulled and loaded only with a signature of one of `signers`. "
           "`none`: signatures are checked where there are any, and shown."),
    ROW("trust.included", BOOL, AT(trust.included), "true", 0, 0, START,
        "The models that come with Shoal need no signature: the package that brought them has "
        "one."),
    ROW("trust.signatures", STR, AT(trust.signatures), NULL, 0, 0, START,
        "Folder with signatures for models that have none beside them, such as those that a node "
        "fetches: SHA256.sig, with the SHA-256 of the model."),
    ROW("trust.revoked", STRS, AT(trust.revoked), NULL, 0, 256, START,
        "Keys that are believed no longer: public keys as files, or their names as `shoal model "
        "verify` prints them. And versions that are loaded no longer, by the SHA-256 of the model: "
        "older ones, which still have a valid signature."),
    ITEMS("trust.signers", struct config_signer, CONFIG_MAX_SIGNERS, take_signer,
          "Signers. A key that replaces another is one more signer, until all models are signed "
          "with it."),
    NEEDED("trust.signers[].name", STR, SIGNER(name), START, "Name of the signer, for logs."),
    ROW("trust.signers[].key", STR, SIGNER(key), NULL, 0, 0, START,
        "Public key: a PEM file with an elliptic curve, or one of minisign."),
    ROW("trust.signers[].certificate", STR, SIGNER(certificate), NULL, 0, 0, START,
        "Or a PEM file with the authorities that the signer's certificate must lead to, and their "
        "revocation lists."),
    ROW("trust.signers[].subject", STR, SIGNER(subject), NULL, 0, 0, START,
        "Common name that the signer's certificate must have. Default: any."),
    ROW("trust.signers[].until", STR, SIGNER(until), NULL, 0, 0, START,
        "Day (UTC) from when on it is believed no longer: `2027-12-31`. Default: always."),
    ROW("trust.signers[].models", STRS, SIGNER(models), NULL, 0, 64, START,
        "Names of the models that it may sign, as patterns: `line-*`. Default: all."),
    MAP("audit", "A log of every request that cannot be changed unnoticed (docs/SUPPLY.md)."),
    ROW("audit.dir", STR, AT(audit_dir), NULL, 0, 0, START,
        "Folder of the log and of its key. Default: none is kept."),
    ROW("audit.file_size", BYTES, AT(audit_file_bytes), "64MiB", 4096, 1099511627776.0, START,
        "A file of this size is followed by another."),
    ROW("audit.keep", U32, AT(audit_keep), "0", 0, 1e6, START,
        "Files that are kept; 0: all. The oldest are removed."),
    CHOICE(
        "audit.full", AT(audit_full), "stop|serve", "stop", START,
        "If the log cannot be written, because the disk is full: `stop` refuses requests, `serve` "
        "answers them and logs later how many lines are missing."),
    ROW("audit.syslog", BOOL, AT(audit_syslog), "false", 0, 0, START,
        "Send every line to the system's log too."),
    MAP("ollama", "Models that clients create and pull with Ollama's interface."),
    ROW("ollama.dir", STR, AT(ollama_dir), NULL, 0, 0, START,
        "Folder of a store of their own. Default: `store.dir`."),
    ROW("ollama.registry", STR, AT(ollama_registry), NULL, 0, 0, LIVE,
        "Where `/api/pull` takes models from and `/api/push` writes them to: a folder, with files "
        "NAME.gguf, or the URL of an OCI registry, `https://HOST:PORT`. Default: none; then a pull "
        "uses `store.sources`, and a push answers 503."),
    ROW("ollama.max_model", BYTES, AT(ollama_max_model), "64GiB", 0, 0, LIVE,
        "Larger models are not fetched from a registry."),
    MAP("slots", "Slots of `/slots`, as users of llama.cpp's server save them."),
    ROW("slots.dir", STR, AT(slots_dir), NULL, 0, 0, START,
        "Folder for saved slots, with one folder for each key. Without it nothing is saved."),
    MAP("responses", "Responses that `/v1/responses` stores by id."),
    ROW("responses.bytes", BYTES, AT(responses_bytes), "16MiB", 0, 0, START,
        "Memory for stored responses. 0: none are stored."),
    ROW("responses.file", STR, AT(responses_file), NULL, 0, 0, START,
        "File that keeps them over a restart. Without one they are in memory alone."),
    ROW("responses.ttl", MS, AT(responses_ttl_ms), "1h", 0, 0, START,
        "How long a response can be read again or continued from."),
    ROW("leave", MS, AT(leave_ms), "0s", 0, 0, LIVE,
        "How long requests are still accepted after SIGTERM, while `/readyz` answers 503, so that "
        "load balancers notice. Then `drain` begins."),
    ROW("drain", MS, AT(drain_ms), "30s", 0, 0, LIVE,
        "How long running requests may take after SIGTERM and `leave`."),
    ROW("log_requests", BOOL, AT(log_requests), "true", 0, 0, LIVE,
        "One line in the log for each request, without its text."),

    MAP("energy", "What requests cost in joules (docs/TRACING.md)."),
    ROW("energy.count", BOOL, AT(energy.count), "false", 0, 0, START,
        "Whether energy is counted: in `usage`, metrics and traces."),
    ROW("energy.idle_watts", NUM, AT(energy.model.idle), "0", 0, 100000, START,
        "For a machine that cannot measure: its power while idle. `shoal doctor --energy` finds "
        "out."),
    ROW("energy.core_watts", NUM, AT(energy.model.core), "0", 0, 100000, START,
        "For a machine that cannot measure: the power that each busy core adds."),
    MAP("tracing", "Where requests spend their time (docs/TRACING.md)."),
    ROW("tracing.keep", U32, AT(tracing.keep), "256", 0, 65536, START,
        "The last traces, for `shoal trace`. 0: none are kept, and without an endpoint nothing is "
        "traced."),
    ROW("tracing.endpoint", STR, AT(tracing.endpoint), NULL, 0, 0, START,
        "OpenTelemetry collector that gets traces: http[s]://HOST:PORT, OTLP over HTTP. Default: "
        "that of OTEL_EXPORTER_OTLP_ENDPOINT, if it is set."),
    ROW("tracing.sample", SHARE, AT(tracing.sample), "1", 0, 1, START,
        "Share of traces that the collector gets, of those that begin here. Others follow their "
        "callers."),
    ROW("tracing.slow", MS, AT(tracing.slow_ms), "0s", 0, 0, START,
        "The collector also gets every trace of this length. Those that failed it gets anyway. 0: "
        "by no length."),
    ROW("tracing.service", STR, AT(tracing.service), NULL, 0, 0, START,
        "Name of this server in traces. Default: OTEL_SERVICE_NAME, or shoal."),
    ROW("tracing.headers", STRS, AT(tracing.headers), NULL, 0, 16, START,
        "Headers for the collector, each `name: value`, such as a key."),
    ROW("tracing.ca", STR, AT(tracing.ca), NULL, 0, 0, START,
        "PEM file of the CA of the collector. Default: those of the system."),
    MAP("mqtt", "Connection to an MQTT 5 broker, and its uses (docs/MQTT.md)."),
    ROW("mqtt.broker", STR, AT(mqtt.broker), NULL, 0, 0, START,
        "mqtt://HOST:PORT, or mqtts://HOST:PORT with TLS. None: no MQTT."),
    ROW("mqtt.client_id", STR, AT(mqtt.client_id), NULL, 0, 0, START,
        "Name of this client at the broker. Default: shoal- and the name of the member or the "
        "machine."),
    ROW("mqtt.user", STR, AT(mqtt.user), NULL, 0, 0, START, "User name for the broker."),
    ROW("mqtt.password_file", STR, AT(mqtt.password_file), NULL, 0, 0, START,
        "File with the password for the broker."),
    ROW("mqtt.ca", STR, AT(mqtt.ca), NULL, 0, 0, START,
        "PEM file of the CA that signed the broker's certificate. Default: the system's CAs."),
    ROW("mqtt.cert", STR, AT(mqtt.cert), NULL, 0, 0, START,
        "PEM file with the certificate that this client shows to the broker."),
    ROW("mqtt.key", STR, AT(mqtt.key), NULL, 0, 0, START, "PEM file with its private key."),
    ROW("mqtt.topic", STR, AT(mqtt.topic), "shoal", 0, 0, START,
        "Prefix of all topics of this server: `shoal/status`, `shoal/request/...`."),
    ROW("mqtt.keepalive", MS, AT(mqtt.keepalive_ms), "30s", 5000, 3600000, START,
        "A silent connection is checked after this time."),
    ROW("mqtt.session", MS, AT(mqtt.session_ms), "1h", 0, 0, START,
        "How long the broker keeps messages for this server while it is disconnected."),
    ROW("mqtt.reconnect_max", MS, AT(mqtt.reconnect_max_ms), "30s", 250, 3600000, START,
        "The longest pause between two attempts to connect; the first is 250 ms."),
    MAP("mqtt.queue", "Messages that wait for the broker."),
    ROW("mqtt.queue.file", STR, AT(mqtt.queue_file), NULL, 0, 0, START,
        "File for messages that must survive a restart, such as alarms. Default: "
        "`mqtt-queue` in the user's state folder."),
    ROW("mqtt.queue.bytes", BYTES, AT(mqtt.queue_bytes), "16MiB", 65536, 1073741824.0, START,
        "Bytes that may wait, in memory and in the file."),
    MAP("mqtt.requests", "Requests that come as messages to `shoal/request/NAME`."),
    ROW("mqtt.requests.serve", BOOL, AT(mqtt.requests), "true", 0, 0, START,
        "Whether to answer requests over MQTT."),
    ROW("mqtt.requests.share", STR, AT(mqtt.share), NULL, 0, 0, START,
        "Group of a shared subscription: each request goes to one server of the group."),
    ROW("mqtt.requests.qos", U32, AT(mqtt.qos), "1", 0, 2, START,
        "Quality of service of the subscription."),
    ROW("mqtt.requests.payload", BYTES, AT(mqtt.payload_bytes), "1MiB", 1, 16777216, START,
        "Bytes of one request's payload."),
    ROW("mqtt.requests.in_flight", U32, AT(mqtt.in_flight), "64", 0, 65536, START,
        "Requests over MQTT that may run at once. 0: no limit."),
    ROW("mqtt.requests.responses", STRS, AT(mqtt.responses), NULL, 0, 64, START,
        "Filters of topics that a request may name for its answer, beside `shoal/response/#`."),
    ITEMS("mqtt.subscribe", struct config_subscription, CONFIG_MAX_SUBSCRIPTIONS, take_subscription,
          "Messages that carry readings of `sensors`."),
    NEEDED("mqtt.subscribe[].topic", STR, SUBSCRIPTION(topic), START,
           "Filter of topics, such as `plant/+/vibration`."),
    NEEDED("mqtt.subscribe[].sensor", STR, SUBSCRIPTION(sensor), START,
           "Name of the sensor. {1}, {2}, ... are the texts matched by the topic's wildcards, "
           "{name} is the member, column or metric."),
    CHOICE("mqtt.subscribe[].payload", SUBSCRIPTION(payload), "number|json|csv|sparkplug", "number",
           START, "Format of a message."),
    ROW("mqtt.subscribe[].value", STR, SUBSCRIPTION(value), NULL, 0, 0, START,
        "json: path of the value, such as `motor.bearings[1]`; a last part `*`: every member. "
        "Default: the document itself."),
    ROW("mqtt.subscribe[].time", STR, SUBSCRIPTION(time), NULL, 0, 0, START,
        "json: path of the time; csv: its column. Default: when the message arrives."),
    ROW("mqtt.subscribe[].columns", STRS, SUBSCRIPTION(columns), NULL, 0, PAYLOAD_MAX_COLUMNS,
        START, "csv: names of the columns; `-`: skip it. Default: 1, 2, ..."),
    ROW("mqtt.subscribe[].qos", U32, SUBSCRIPTION(qos), "1", 0, 2, START,
        "Quality of service of the subscription. With 1 no reading is lost when the server is "
        "killed; "
        "with 2 the library holds a few in memory only."),
    ROW("mqtt.discovery", STR, AT(mqtt.discovery), NULL, 0, 0, START,
        "Prefix of Home Assistant's discovery topics, usually `homeassistant`: its "
        "lights, "
        "switches, fans, covers and locks become devices of the home, and our alarms and the "
        "assistant appear there. Default: off."),
    ROW("mqtt.alarms", STR, AT(mqtt.alarm_topic), NULL, 0, 0, START,
        "Prefix of alarm topics. Default: `shoal/alarm`."),

    ITEMS("machines", struct config_things_machine, CONFIG_MAX_MACHINES, take_machine,
          "Machines that `sensors` belong to."),
    NEEDED("machines[].name", STR, MACHINE(name), START, "Its name in topics and alarms."),
    ROW("machines[].title", STR, MACHINE(title), NULL, 0, 0, START,
        "Its display name. Default: its name."),
    ROW("machines[].learned", STR, MACHINE(learned), NULL, 0, 0, START,
        "File of `shoal anomaly fit`: what is normal for its sensors, whose names are the file's "
        "channels. Default: learned from the readings."),
    ROW("machines[].joint", BOOL, MACHINE(joint), "true", 0, 0, START,
        "Whether its sensors are also monitored together, and a fault that several of them show is "
        "one alarm."),
    ROW("machines[].delay", MS, MACHINE(policy.delay_ms), NULL, 0, 0, START,
        "A cause must persist this long before it raises an alarm. Default: no delay."),
    ROW("machines[].clear", MS, MACHINE(policy.clear_ms), NULL, 0, 0, START,
        "A cause must be gone this long before its alarm clears. Default: ten intervals of the "
        "sensor, at least 10s."),
    ROW("machines[].hold_off", MS, MACHINE(policy.hold_off_ms), NULL, 0, 0, START,
        "If the same cause returns within this time, the alarm continues. Default: 60s."),
    ROW("machines[].false_alarms", NUM, MACHINE(policy.false_alarms), NULL, 0, 1e6, START,
        "Target for false alarms of the statistics, per day and sensor. A sensor that was seen for "
        "less than five days may spend what these allow on the time that it was seen. Default: "
        "0.02."),
    ROW("machines[].cascade", BOOL, MACHINE(cascade), "true", 0, 0, START,
        "Whether a fast detector handles clear readings, and the precise one sees only doubtful "
        "ones. The alarms are the same; `false` takes more time."),
    ITEMS("sensors", struct config_things_sensor, CONFIG_MAX_SENSORS, take_sensor,
          "Monitored sensors (docs/MQTT.md)."),
    NEEDED("sensors[].name", STR, SENSOR(name), START, "Its name, as `mqtt.subscribe` makes it."),
    ROW("sensors[].title", STR, SENSOR(title), NULL, 0, 0, START,
        "Its display name. Default: its name."),
    ROW("sensors[].unit", STR, SENSOR(unit), NULL, 0, 0, START, "Unit of its values."),
    ROW("sensors[].machine", STR, SENSOR(machine), NULL, 0, 0, START, "Name of its machine."),
    ROW("sensors[].normal", STR, SENSOR(normal), NULL, 0, 0, START,
        "Range of usual values, such as `2.5..7`, `..7` or `2.5..`. Default: learned."),
    ROW("sensors[].limits", STR, SENSOR(limits), NULL, 0, 0, START,
        "Hard limits in the same form: one reading outside is an alarm. Default: none."),
    ROW("sensors[].max_rate", NUM, SENSOR(max_rate), NULL, 0, 1e12, START,
        "Largest change per second. Default: none."),
    ROW("sensors[].interval", MS, SENSOR(interval_ms), NULL, 0, 0, START,
        "Expected time between readings. Default: learned."),
    ROW("sensors[].lost", MS, SENSOR(lost_ms), NULL, 0, 0, START,
        "After this long without a reading the signal is lost. Default: five intervals, at least "
        "5s."),
    ROW("sensors[].learn", U32, SENSOR(learn), NULL, 0, 1024, START,
        "Number of readings to learn from. Large changes are found from the 33rd reading on. "
        "Default: 512."),
    ROW("sensors[].delay", MS, SENSOR(policy.delay_ms), NULL, 0, 0, START,
        "As `machines[].delay`."),
    ROW("sensors[].clear", MS, SENSOR(policy.clear_ms), NULL, 0, 0, START,
        "As `machines[].clear`."),
    ROW("sensors[].hold_off", MS, SENSOR(policy.hold_off_ms), NULL, 0, 0, START,
        "As `machines[].hold_off`."),
    ROW("sensors[].false_alarms", NUM, SENSOR(policy.false_alarms), NULL, 0, 1e6, START,
        "As `machines[].false_alarms`."),
    ROW("sensors[].statistics", BOOL, SENSOR(statistics), "true", 0, 0, START,
        "Whether unusual values raise alarms too, in addition to limits, rates and lost signals."),
    ROW("sensors[].cascade", BOOL, SENSOR(cascade), "true", 0, 0, START,
        "As `machines[].cascade`."),
    MAP("alarms", "Storage and delivery of alarms."),
    ROW("alarms.file", STR, AT(alarms_file), NULL, 0, 0, START,
        "File that keeps open alarms across restarts. Default: `open-alarms.json` in the "
        "user's state folder."),
    ROW("alarms.manuals", STR, AT(manuals), NULL, 0, 0, START,
        "Collection of manuals (docs/RETRIEVAL.md): after an alarm, the best matching passage is "
        "sent as a second event. Default: none."),
    ROW("alarms.allow", STRS, AT(webhooks.hosts), NULL, 0, 64, START,
        "HOST:PORT of servers that `alarms.webhooks` may call, as in their `url`."),
    ITEMS("alarms.webhooks", struct config_webhook, CONFIG_MAX_WEBHOOKS, take_webhook,
          "Servers that receive every change of an alarm as an HTTP POST (docs/SENSORS.md)."),
    NEEDED("alarms.webhooks[].url", STR, WEBHOOK(url), START,
           "http://HOST:PORT/PATH or https://HOST:PORT/PATH."),
    ROW("alarms.webhooks[].ca", STR, WEBHOOK(ca), NULL, 0, 0, START,
        "https: PEM file of the CAs that may sign the server's certificate. Default: the system's "
        "CAs."),
    ROW("alarms.webhooks[].secret_file", STR, WEBHOOK(secret_file), NULL, 0, 0, START,
        "File with a secret that messages are signed with. Default: no signature."),
    CHOICE("alarms.webhooks[].severity", WEBHOOK(severity), "info|warning|critical", "info", START,
           "Only alarms of at least this severity."),
    ROW("alarms.webhooks[].timeout", MS, WEBHOOK(timeout_ms), "5s", 100, 60000, START,
        "How long one attempt may take."),
    ROW("alarms.webhooks[].keep", MS, WEBHOOK(keep_ms), "24h", 1000, 604800000.0, START,
        "How long delivery of a message is retried."),
    ROW("alarms.webhooks[].queue", BYTES, WEBHOOK(queue_bytes), "4MiB", 65536, 1073741824.0, START,
        "Maximum bytes of waiting messages, on disk beside `alarms.file`."),
    CHOICE(
        "demo", AT(demo), "off|here|mqtt", "off", START,
        "The simulated plant of `make run` (examples/plant.yaml): `here`, readings come from this "
        "process; `mqtt`, from devices at the broker."),

    MAP("history", "The history of readings, in a local file of bounded size."),
    ROW("history.file", STR, AT(history), NULL, 0, 0, START,
        "SQLite file with the good readings of all sensors; `shoal anomaly export` prints them. "
        "Default: none, they are not kept."),
    ROW("history.days", U32, AT(history_days), "30", 1, 36500, START,
        "Days after which a reading is removed."),
    ROW("history.max", BYTES, AT(history_bytes), "1GiB", 1048576, 1e15, START,
        "Maximum size of the file: the oldest readings are removed first."),

    {.path = "modbus",
     .type = CONFIG_ITEMS,
     .offset = sizeof(struct config_modbus),
     .max = CONFIG_MAX_MODBUS,
     .take = take_modbus,
     .drop = config_modbus_drop,
     .text = "Controllers that are read, and set by `deeds`, over Modbus TCP (docs/SENSORS.md)."},
    NEEDED("modbus[].name", STR, MODBUS(name), START, "Its name, for `deeds` and messages."),
    NEEDED("modbus[].address", STR, MODBUS(host), START, "HOST:PORT; the usual port is 502."),
    ROW("modbus[].unit", U32, MODBUS(unit), "1", 0, 255, START, "Its unit identifier."),
    ROW("modbus[].every", MS, MODBUS(every_ms), "1s", 10, 86400000.0, START,
        "How often its tags are read."),
    ROW("modbus[].timeout", MS, MODBUS(timeout_ms), "1s", 10, 60000, START,
        "How long it may take to connect, or to answer."),
    ITEMS("modbus[].tags", struct config_modbus_tag, CONFIG_MAX_TAGS, config_modbus_take_tag,
          "Its values."),
    NEEDED("modbus[].tags[].name", STR, TAG(name), START, "Its name."),
    ROW("modbus[].tags[].sensor", STR, TAG(sensor), NULL, 0, 0, START,
        "The sensor that it is a reading of. Default: none, it is only set."),
    CHOICE("modbus[].tags[].table", TAG(table), CONFIG_MODBUS_TABLES, "holding", START,
           "Where it is; coils and holding registers can be set."),
    ROW("modbus[].tags[].register", U32, TAG(address), "0", 0, 65535, START,
        "Its address, from 0; manuals that count from 1 (40001) say one more."),
    CHOICE("modbus[].tags[].type", TAG(type), CONFIG_MODBUS_TYPES, "int16", START,
           "Its type; coils and discrete inputs are `bool`."),
    CHOICE("modbus[].tags[].order", TAG(order), CONFIG_MODBUS_ORDERS, "abcd", START,
           "How the bytes of a value, A the highest, lie in its registers."),
    ROW("modbus[].tags[].scale", NUM, TAG(scale), "1", -1e12, 1e12, START,
        "The value is the number in the registers times this, plus `offset`."),
    ROW("modbus[].tags[].offset", NUM, TAG(offset), "0", -1e12, 1e12, START, "See `scale`."),

    ITEMS("deeds", struct config_deed, CONFIG_MAX_DEEDS, take_deed,
          "How actions on things of the `home` are carried out; the first matching entry is used. "
          "None: the home is simulated (docs/MQTT.md)."),
    NEEDED("deeds[].things", STRS, DEED(things), START,
           "Ids of things, `*` for any characters: `light.*`."),
    ROW("deeds[].ability", STR, DEED(ability), NULL, 0, 0, START,
        "The ability to set, such as `power`. Default: any."),
    CHOICE("deeds[].via", DEED(via), "mqtt|http|command|modbus", "mqtt", START, "The transport."),
    ROW("deeds[].tag", STR, DEED(tag), NULL, 0, 0, START,
        "modbus: the tag to write, CONTROLLER.TAG, such as `press.setpoint`. It is read back."),
    ROW("deeds[].topic", STR, DEED(topic), NULL, 0, 0, START,
        "mqtt: the topic, such as `home/{id}/set`. Placeholders, here and below: id, ability, "
        "value, unit, action."),
    ROW("deeds[].payload", STR, DEED(payload), "{value}", 0, 0, START,
        "mqtt, http: the payload. In a JSON object values are escaped."),
    ROW("deeds[].qos", U32, DEED(qos), "1", 0, 2, START, "mqtt: quality of service."),
    ROW("deeds[].retain", BOOL, DEED(retain), "false", 0, 0, START,
        "mqtt: whether the broker keeps it for later subscribers."),
    ROW("deeds[].url", STR, DEED(url), NULL, 0, 0, START,
        "http: http://HOST:PORT/PATH or https://HOST:PORT/PATH."),
    CHOICE("deeds[].method", DEED(method), "post|put|get", "post", START, "http: the method."),
    ROW("deeds[].command", STRS, DEED(command), NULL, 0, CONFIG_MAX_ARGUMENTS, START,
        "command: absolute path of a program and its arguments. No shell reads them."),
    ROW("deeds[].values", STRS, DEED(values), NULL, 0, 64, START,
        "The thing's names for values: [\"on=ON\", \"off=OFF\"]."),
    ROW("deeds[].state", STR, DEED(state), NULL, 0, 0, START,
        "Topic where the thing reports its state, such as `home/{id}/state`: an action is done "
        "when the new value arrives there."),
    ROW("deeds[].state_value", STR, DEED(state_value), NULL, 0, 0, START,
        "Path of the value if the state is JSON. Default: the whole message."),
    ROW("deeds[].state_values", STRS, DEED(state_values), NULL, 0, 64, START,
        "The state's names for values, if they differ from `values`."),
    ROW("deeds[].unit", STR, DEED(unit), NULL, 0, 0, START, "Unit of the state's numbers."),
    ROW("deeds[].timeout", MS, DEED(timeout_ms), "2s", 10, 60000, START,
        "How long it may take, including its confirmation."),
    ROW("deeds[].retry", U32, DEED(retry), "1", 0, 10, START,
        "Number of retries within this time."),
    MAP("deeds_allow", "Allowlist for entries of `deeds`."),
    ROW("deeds_allow.commands", STRS, AT(deeds.commands), NULL, 0, 64, START,
        "Absolute paths of programs."),
    ROW("deeds_allow.hosts", STRS, AT(deeds.hosts), NULL, 0, 64, START,
        "HOST:PORT of servers, as in the `url`."),
    ROW("deeds_allow.ca", STR, AT(deeds.ca), NULL, 0, 0, START,
        "PEM file of the CAs that may sign certificates of https servers. Default: the system's "
        "CAs."),

    MAP("cluster", "Membership of this process in a shoal of several machines (docs/CLUSTER.md)."),
    ROW("cluster.name", STR, AT(cluster.name), NULL, 0, 0, START,
        "Name of this member. Default: from its certificate, or the host name."),
    ROW("cluster.zone", STR, AT(cluster.zone), NULL, 0, 0, START,
        "Its location, such as a building; for placement."),
    ROW("cluster.advertise", STR, AT(cluster.advertise), NULL, 0, 0, START,
        "HOST:PORT announced to other members. Default: the listen address."),
    ROW("cluster.shoal", STR, AT(cluster.shoal), NULL, 0, 0, START,
        "Name of the shoal on its NATS servers. Default: shoal."),
    ROW("cluster.nats", STRS, AT(cluster.nats), NULL, 0, YAML_IN_MAX_STRS, START,
        "NATS servers of the shoal, nats://HOST:PORT or tls://HOST:PORT. None: the list `nodes`."),
    ROW("cluster.forget", MS, AT(cluster.forget_ms), "60s", 0, 0, START,
        "A node is removed from the list after this long without heartbeats."),
    ROW("cluster.listen", STRS, AT(cluster.listen), NULL, 0, YAML_IN_MAX_STRS, START,
        "Addresses for other members."),
    ROW("cluster.nodes", STRS, AT(cluster.nodes), NULL, 0, YAML_IN_MAX_STRS, START,
        "Nodes to send requests to."),
    ROW("cluster.certs", STR, AT(cluster.certs), NULL, 0, 0, START,
        "Folder with certificate, key and CA of this member, as `shoal ca issue` writes it."),
    ROW("cluster.insecure", BOOL, AT(cluster.insecure), "false", 0, 0, START,
        "Without certificates: for tests on one machine only."),
    ROW("cluster.wait", MS, AT(cluster.wait_ms), "10s", 0, 0, START,
        "How long a request waits for a lost node to come back."),
    ROW("cluster.patience", MS, AT(cluster.patience_ms), "5m", 1000, 2147483647.0, START,
        "Total time without progress after which a request is abandoned, however often it was "
        "moved."),
    ROW("cluster.heartbeat", MS, AT(cluster.heartbeat_ms), "200ms", 20, 2147483647.0, START,
        "Time between two heartbeats of a node."),
    ROW("cluster.silent", MS, AT(cluster.silent_ms), "1s", 0, 0, START,
        "A node that is silent for this long gets no requests; at least twice `heartbeat`."),
    ROW("cluster.store", STR, AT(cluster.store), NULL, 0, 0, START,
        "Folder for models that the shoal assigns to this node. Default: shoal/store in the "
        "user's state folder."),
    ROW("cluster.store_limit", BYTES, AT(cluster.store_limit), "0", 0, 0, START,
        "Size limit of that folder; the least recently used models are evicted. 0: the disk's free "
        "space."),
    ROW("cluster.scrub", MS, AT(cluster.scrub_ms), "24h", 0, 2147483647.0, START,
        "How often the models in that folder are read again; a damaged one is fetched again. 0: "
        "never."),
    ROW("cluster.fetch_rate", BYTES, AT(cluster.fetch_rate), "0", 0, 0, START,
        "Rate limit for fetching models, in bytes per second, all together. 0: no limit."),
    ROW("cluster.share_rate", BYTES, AT(cluster.share_rate), "0", 0, 0, START,
        "Rate limit for sending models to other nodes, in bytes per second. 0: no limit."),
    ROW("cluster.fetch_ca", STR, AT(cluster.fetch_ca), NULL, 0, 0, START,
        "PEM file with the CAs to trust for https:// sources. Default: the system's CAs."),
    ROW("cluster.hedge", MS, AT(cluster.hedge_ms), "0", 0, 0, START,
        "A request with a deadline is also sent to a second node after this long without output. "
        "0: never."),
    ROW("cluster.hedge_models", STRS, AT(cluster.hedge_models), NULL, 0, YAML_IN_MAX_STRS, START,
        "The models that `hedge` applies to. Default: all."),
    ROW("cluster.affinity", BOOL, AT(cluster.affinity), "true", 0, 0, START,
        "Whether a conversation, and whatever else begins alike, is sent to the node that has read "
        "its beginning."),
    ROW("cluster.link", BYTES, AT(cluster.link), "0", 0, 0, START,
        "Bytes a second of the network between nodes: whether the computed prompt of a "
        "conversation "
        "that moves is fetched, or computed again. 0: measured."),
    CHOICE("cluster.split", AT(cluster.split), "auto|never|always", "auto", START,
           "Whether a node that reads fast computes long prompts for another one, which writes the "
           "answer. `auto`: where it pays by what both nodes and the link between them have "
           "measured. `always`: whenever there are two. Needs `affinity`."),
    CHOICE("cluster.isolation", AT(cluster.isolation), "none|process", "none", START,
           "Whether each replica of a model that the controller assigns to this node runs in a "
           "process of its own; with several replicas on a node, one continues what another's "
           "crash interrupted."),
    CHOICE("cluster.controller", AT(cluster.controller), "auto|never", "auto", START,
           "Whether it may become controller. `auto`: if its certificate has the role."),
    ROW("cluster.lease", MS, AT(cluster.lease_ms), NULL, 0, 300000, START,
        "How long a silent controller keeps its role. Default: 10s."),
    ROW("cluster.snapshot", STR, AT(cluster.snapshot), NULL, 0, 0, START,
        "File for the last desired state, used while NATS is down. Default: in the cache folder."),
    ROW("cluster.labels", STRS, AT(cluster.labels), NULL, 0, YAML_IN_MAX_STRS, START,
        "Its properties, such as gpu or site=hall-3; for placement."),
};
const size_t config_n_keys = sizeof(config_keys) / sizeof(config_keys[0]);
