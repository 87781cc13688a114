/* cmd_rollout.c - shoal rollout: updates of the models of a shoal. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cluster/control/bus.h"
#include "cluster/control/control_json.h"
#include "cluster/control/desired.h"
#include "cluster/control/event_log.h"
#include "cluster/rollout/rollout.h"
#include "cluster/rollout/rollout_admin.h"
#include "cmd/cli/term.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cluster/cluster_site.h"
#include "cmd/cluster/rollout_score.h"
#include "cmd/cmd.h"
#include "host/identity.h"
#include "wire/json_out.h"

cmd_fn cmd_rollout_start, cmd_rollout_pause, cmd_rollout_promote, cmd_rollout_undo,
    cmd_rollout_status, cmd_rollout_history;

#define MAX_OUTPUT_BYTES ((size_t)64 << 20)
#define LOOK_EVERY_MS 300

#define JSON_DEF                                                                                   \
    {                                                                                              \
        "json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"                                       \
    }
#define WAIT_DEF                                                                                   \
    {                                                                                              \
        "wait", 0, OPTS_FLAG, NULL, NULL, 0, 0,                                                    \
            "wait until it ends; the exit code is 3 if it failed or was undone"                    \
    }

static const struct opts_def start_defs[] = {
    {"kind", 'k', OPTS_CHOICE, "rolling|canary|strong|eventual", "rolling", 0, 0,
     "rollout strategy"},
    {"sha256", 0, OPTS_TEXT, "HEX", NULL, 0, 0,
     "SHA-256 of the new version, if no FILE is given; with a FILE it must be the file's"},
    {"source", 0, OPTS_TEXT, "URL", NULL, 0, 0,
     "where nodes can fetch it; default: from each other, or from their own folders"},
    {"memory", 0, OPTS_UINT, "MIB", NULL, 0, 1e9,
     "memory it needs on a node; default: as much as the old version"},
    WAIT_DEF,
    JSON_DEF,
};
static const struct opts_def canary_defs[] = {
    {"share", 0, OPTS_REAL, "PERCENT", "10", 0.1, 99.9, "of the requests for the new version"},
    {"judge-requests", 0, OPTS_UINT, "N", "50", 1, 1e9,
     "requests that the new version must answer before it is judged"},
    {"judge-errors", 0, OPTS_REAL, "PERCENT", "1", 0.1, 100,
     "its error rate may be this much above that of the old version"},
    {"judge-p95", 0, OPTS_UINT, "PERCENT", "150", 0, 100000,
     "its p95 may be at most this share of the old version's; 0: not judged"},
    {"judge-score", 0, OPTS_REAL, "PERCENT", "2", 0.1, 100,
     "its score on the labelled inputs may be this much lower"},
    {"labels", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "labelled inputs, one JSON object a line: {\"input\": ..., \"label\": ...}; both versions "
     "answer them through --server, and the judge waits for the scores"},
    {"server", 0, OPTS_TEXT, "ADDRESS", NULL, 0, 0,
     "gateway for --labels; default: $SHOAL_SERVER, or http://127.0.0.1:8080"},
    {"key", 0, OPTS_TEXT, "KEY", NULL, 0, 0, "API key for --labels; default: $SHOAL_API_KEY"},
};
static const struct opts_def status_defs[] = {
    {"all", 'a', OPTS_FLAG, NULL, NULL, 0, 0, "include finished rollouts"},
    JSON_DEF,
};
static const struct opts_def act_defs[] = {WAIT_DEF, JSON_DEF};
static const struct opts_def history_defs[] = {JSON_DEF};

static const struct opts_page start_page = {
    .command = "rollout start",
    .arguments = "MODEL [FILE]",
    .min_args = 1,
    .max_args = 2,
    .summary = "Starts replacing a model of the shoal with a new version.",
    .details =
        "rolling   one node after the other; the new version is ready before the old one is "
        "unloaded\n"
        "canary    a share of the requests first; then promoted or undone automatically, by\n"
        "          errors, latency and score\n"
        "strong    all nodes load it, then all switch at once: no request sees two versions\n"
        "eventual  every node at its own pace\n\n"
        "The version is named by its SHA-256, which is computed from FILE.  A node that cannot "
        "load it,\nor finds other bytes, ends the rollout, and users keep the old version.",
    .groups = {OPTS_GROUP("Options", start_defs), OPTS_GROUP("Canary", canary_defs),
               &cluster_opts_nats},
    .examples =
        "  shoal rollout start reply reply-v2.gguf --source https://models.lan/reply-v2.gguf\n"
        "  shoal rollout start reply reply-v2.gguf --kind canary --share 5 --wait\n"
        "  shoal rollout start intent --sha256 9f86d0... --kind strong --json\n",
};
static const struct opts_page status_page = {
    .command = "rollout status",
    .arguments = "[ROLLOUT|MODEL]",
    .max_args = 1,
    .summary = "Shows the rollouts in progress, or one of them.",
    .details = "The exit code is 3 if one of them has failed.",
    .groups = {OPTS_GROUP("Options", status_defs), &cluster_opts_nats},
    .examples = "  shoal rollout status\n"
                "  shoal rollout status reply --json\n",
};
static const struct opts_page pause_page = {
    .command = "rollout pause",
    .arguments = "ROLLOUT|MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Pauses a rollout: everything stays as it is until it is promoted or undone.",
    .groups = {OPTS_GROUP("Options", history_defs), &cluster_opts_nats},
    .examples = "  shoal rollout pause reply\n",
};
static const struct opts_page promote_page = {
    .command = "rollout promote",
    .arguments = "ROLLOUT|MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Resumes a paused rollout, or promotes a canary to all nodes without judging it.",
    .groups = {OPTS_GROUP("Options", act_defs), &cluster_opts_nats},
    .examples = "  shoal rollout promote reply --wait\n",
};
static const struct opts_page undo_page = {
    .command = "rollout undo",
    .arguments = "ROLLOUT|MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Returns to the old version.",
    .details = "A finished rollout is undone by another one in the opposite direction.",
    .groups = {OPTS_GROUP("Options", act_defs), &cluster_opts_nats},
    .examples = "  shoal rollout undo reply --wait\n"
                "  shoal rollout undo reply-3\n",
};
static const struct opts_page history_page = {
    .command = "rollout history",
    .arguments = "[MODEL]",
    .max_args = 1,
    .summary = "Shows all rollouts with their steps.",
    .groups = {OPTS_GROUP("Options", history_defs), &cluster_opts_nats},
    .examples = "  shoal rollout history\n"
                "  shoal rollout history reply --json\n",
};

/* ---- output ---- */

static const char *last_text(const struct desired_rollout *r)
{
    return r->n_steps ? r->steps[r->n_steps - 1].text : "";
}

static void put_row(struct buf *b, const struct desired_rollout *r)
{
    char from[2 * SHA256_BYTES + 1], to[2 * SHA256_BYTES + 1];
    sha256_hex(from, r->from);
    sha256_hex(to, r->to);
    buf_printf(b, "%-20s %-9s %-8s %.12s %.12s %5.1f %%  %s\n", r->id,
               desired_rollout_kind_text(r->kind), desired_rollout_state_text(r->state), from, to,
               r->share / 10.0, last_text(r));
}

static void put_head(struct buf *b)
{
    buf_printf(b, "%-20s %-9s %-8s %-12s %-12s %7s  %s\n", "ROLLOUT", "KIND", "STATE", "FROM", "TO",
               "SHARE", "LAST STEP");
}

static void put_steps(struct buf *b, const struct desired_rollout *r)
{
    for (uint32_t i = 0; i < r->n_steps; i++) {
        char time[32];
        control_json_time(time, r->steps[i].at_ms);
        buf_printf(b, "  %s %-8s %s\n", time, desired_rollout_state_text(r->steps[i].state),
                   r->steps[i].text);
    }
}

static int print_one(const struct opts *o, const struct desired_rollout *r)
{
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        control_json_rollout(&j, r);
        buf_putc(&b, '\n');
    } else {
        put_head(&b);
        put_row(&b, r);
    }
    int rc = b.rc < 0 ? cmd_fail(o->page, "%s", err_text(b.rc)) : cmd_print(o->page, &b);
    buf_fini(&b);
    return rc;
}

/* ---- changing ---- */

struct change {
    const struct rollout_start *start; /* NULL: an action */
    const char *name;
    enum rollout_action action;
    uint32_t score_from, score_to;
    bool score;
    char id[DESIRED_MAX_NAME + 1]; /* of the rollout */
    char text[256];                /* of its last step */
};

static int apply(void *ctx, struct desired *d, struct err *e)
{
    struct change *c = ctx;
    const struct desired_rollout *r = NULL;
    uint64_t now = clock_unix_ms();
    if (c->score)
        return rollout_admin_score(d, c->name, c->score_from, c->score_to, now, e);
    int rc = c->start ? rollout_admin_start(d, c->start, now, &r, e)
                      : rollout_admin_act(d, c->name, c->action, "an administrator", now, &r, e);
    if (rc == 0) {
        snprintf(c->id, sizeof(c->id), "%s", r->id);
        snprintf(c->text, sizeof(c->text), "%s", last_text(r));
    }
    return rc;
}

/* Writes the change and an event about it; the state after it is in *d. */
static int change(struct cluster_site *s, struct change *c, struct desired **d)
{
    const struct event_log_opts lo = {.bus = s->bus, .name = "shoal rollout"};
    struct event_log *log = NULL;
    struct err e = {0};
    *d = NULL;
    int rc = cluster_site_change(s, apply, c, d);
    if (rc != CMD_OK)
        return rc;
    const struct desired_rollout *r = desired_find_rollout(*d, c->id);
    if (r && event_log_open(&log, &lo, &e) == 0) {
        char text[400];
        snprintf(text, sizeof(text), "%s: %s", c->id, c->text);
        struct event_log_entry entry = {
            .kind = EVENT_LOG_ROLLOUT_STEP, .model = r->model, .text = text, .has_sha256 = true};
        memcpy(entry.sha256, r->to, SHA256_BYTES);
        event_log_add(log, &entry);
    }
    event_log_close(log);
    return CMD_OK;
}

/* ---- waiting ---- */

/* "failed: 40 % of ..." says its state itself. */
static void print_step(const struct desired_step *s)
{
    const char *state = desired_rollout_state_text(s->state);
    const bool said = strncmp(s->text, state, strlen(state)) == 0;
    fprintf(stderr, "%s%s%s\n", said ? "" : state, said ? "" : ": ", s->text);
}

static void say_step(const struct opts *o, const struct desired_rollout *r, uint64_t *told_ms)
{
    for (uint32_t i = 0; i < r->n_steps; i++)
        if (r->steps[i].at_ms > *told_ms) {
            if (!opts_flag(o, "json"))
                print_step(&r->steps[i]);
            *told_ms = r->steps[i].at_ms;
        }
}

static int exit_of(const struct desired_rollout *r)
{
    return r->state == DESIRED_FAILED || r->state == DESIRED_UNDONE ? CMD_NOT_WELL : CMD_OK;
}

/* Once the canary can be reached, both versions answer the labelled inputs. */
static int score(struct cluster_site *s, const struct desired_rollout *r, bool *scored)
{
    struct change c = {.name = r->id, .score = true};
    struct desired *after = NULL;
    if (*scored || !r->judge.labelled || r->state != DESIRED_RUNNING)
        return CMD_OK;
    *scored = true;
    int rc = rollout_score(s->o, r, &c.score_from, &c.score_to);
    if (rc == CMD_OK)
        rc = change(s, &c, &after);
    desired_destroy(after);
    return rc;
}

/* wanted: what the caller expects to end well: DONE, or UNDONE for an undo. */
static int wait_for(struct cluster_site *s, const char *id, bool undo)
{
    int interrupt = term_catch_interrupt(), rc = CMD_OK;
    uint64_t told_ms = 0;
    bool over = false, scored = false;
    while (rc == CMD_OK && !over) {
        struct desired *d = NULL;
        rc = cluster_site_load(s, &d);
        const struct desired_rollout *r = rc == CMD_OK ? desired_find_rollout(d, id) : NULL;
        if (rc == CMD_OK && !r)
            rc = cmd_fail(s->o->page, "rollout %s is gone", id);
        if (r) {
            say_step(s->o, r, &told_ms);
            over = !rollout_active(r);
            rc = score(s, r, &scored);
        }
        if (over && rc == CMD_OK) {
            rc = print_one(s->o, r);
            if (rc == CMD_OK)
                rc = undo && r->state == DESIRED_UNDONE ? CMD_OK : exit_of(r);
            over = true;
        }
        desired_destroy(d);
        struct pollfd p = {.fd = interrupt, .events = POLLIN};
        if (!over && rc == CMD_OK)
            poll(&p, 1, LOOK_EVERY_MS);
        if (term_interrupted(interrupt))
            rc = CMD_INTERRUPTED; /* the rollout continues */
    }
    term_release_interrupt(interrupt);
    return rc;
}

/* ---- start ---- */

static int hash_file(const struct opts *o, const char *path, uint8_t out[SHA256_BYTES])
{
    struct identity_list *l = NULL;
    struct identity id;
    struct err e = {0};
    _Atomic bool stop = false;
    int rc = identity_list(&l, path, &e);
    if (rc == 0)
        rc = identity_read(&id, l, NULL, &stop, &e);
    identity_list_free(l);
    if (rc < 0)
        return cmd_fail(o->page, "%s", e.msg);
    memcpy(out, id.sum, SHA256_BYTES);
    return CMD_OK;
}

static int read_version(const struct opts *o, uint8_t out[SHA256_BYTES])
{
    const char *hex = opts_text(o, "sha256");
    uint8_t said[SHA256_BYTES];
    if (hex && (strlen(hex) != 2 * SHA256_BYTES || !sha256_read_hex(said, hex)))
        return opts_usage(o->page, "--sha256 needs 64 hex digits");
    if (o->n_args < 2 && !hex)
        return opts_usage(o->page, "give the new version's FILE, or --sha256");
    if (o->n_args < 2) {
        memcpy(out, said, SHA256_BYTES);
        return CMD_OK;
    }
    int rc = hash_file(o, o->args[1], out);
    if (rc == CMD_OK && hex && memcmp(out, said, SHA256_BYTES) != 0)
        return cmd_fail(o->page, "%s does not have the SHA-256 %.16s...", o->args[1], hex);
    return rc;
}

static enum desired_rollout_kind kind_of(const char *word)
{
    enum desired_rollout_kind k = DESIRED_ROLLING;
    while (k < DESIRED_EVENTUAL && strcmp(desired_rollout_kind_text(k), word) != 0)
        k++;
    return k;
}

static int read_start(const struct opts *o, struct rollout_start *s)
{
    static const char *const canary_only[] = {"share",     "judge-requests", "judge-errors",
                                              "judge-p95", "judge-score",    "labels"};
    *s = (struct rollout_start){.model = o->args[0],
                                .kind = kind_of(opts_text(o, "kind")),
                                .source = opts_text(o, "source"),
                                .memory_bytes = opts_uint(o, "memory") << 20,
                                .share = (uint32_t)(opts_real(o, "share") * 10 + 0.5),
                                .by = "an administrator"};
    s->judge = (struct desired_judge){.requests = opts_u32(o, "judge-requests"),
                                      .errors = (uint32_t)(opts_real(o, "judge-errors") * 10 + 0.5),
                                      .p95 = opts_u32(o, "judge-p95"),
                                      .score = (uint32_t)(opts_real(o, "judge-score") * 10 + 0.5),
                                      .labelled = opts_given(o, "labels")};
    s->any_p95 = s->judge.p95 == 0;
    for (size_t i = 0; s->kind != DESIRED_CANARY && i < sizeof(canary_only) / sizeof(char *); i++)
        if (opts_given(o, canary_only[i]))
            return opts_usage(o->page, "--%s needs --kind canary", canary_only[i]);
    if (s->judge.labelled && !opts_flag(o, "wait"))
        return opts_usage(o->page, "--labels needs --wait: this command asks for the answers");
    int rc = cluster_opts_check_source(o);
    if (rc == CMD_OK && s->judge.labelled)
        rc = rollout_score_check(o);
    return rc == CMD_OK ? read_version(o, s->to) : rc;
}

/* Connects, changes, and prints or waits. */
static int run_change(const struct opts *o, struct change *c)
{
    struct desired *d = NULL;
    struct cluster_site s;
    int rc = cluster_site_open(&s, o, false);
    if (rc == CMD_OK)
        rc = change(&s, c, &d);
    const struct desired_rollout *r = rc == CMD_OK ? desired_find_rollout(d, c->id) : NULL;
    bool waits = r && o->page->command != pause_page.command && opts_flag(o, "wait");
    if (waits)
        rc = wait_for(&s, c->id, !c->start && c->action == ROLLOUT_UNDO);
    else if (r)
        rc = print_one(o, r);
    desired_destroy(d);
    cluster_site_close(&s);
    return rc;
}

int cmd_rollout_start(int argc, const char *const *argv)
{
    struct rollout_start start;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &start_page, argc, argv, &rc))
        return rc;
    rc = read_start(&o, &start);
    struct change c = {.start = &start};
    if (rc == CMD_OK)
        rc = run_change(&o, &c);
    opts_fini(&o);
    return rc;
}

/* ---- pause, promote, undo ---- */

static int act(const struct opts_page *page, enum rollout_action action, int argc,
               const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    struct change c = {.name = o.args[0], .action = action};
    rc = run_change(&o, &c);
    opts_fini(&o);
    return rc;
}

int cmd_rollout_pause(int argc, const char *const *argv)
{
    return act(&pause_page, ROLLOUT_PAUSE, argc, argv);
}

int cmd_rollout_promote(int argc, const char *const *argv)
{
    return act(&promote_page, ROLLOUT_PROMOTE, argc, argv);
}

int cmd_rollout_undo(int argc, const char *const *argv)
{
    return act(&undo_page, ROLLOUT_UNDO, argc, argv);
}

/* ---- status, history ---- */

/* Whether the rollout is to be shown. */
static bool is_wanted(const struct desired *d, const struct desired_rollout *r, const char *name,
                      bool all)
{
    if (!name)
        return all || rollout_active(r);
    return all ? strcmp(r->model, name) == 0 || strcmp(r->id, name) == 0
               : rollout_admin_find(d, name) == r;
}

static int print_list(const struct opts *o, const struct desired *d, const char *name, bool all,
                      bool steps)
{
    struct buf b;
    uint32_t n = 0;
    int rc = CMD_OK;
    buf_init(&b, MAX_OUTPUT_BYTES);
    struct json_out j = json_out_make(&b);
    bool json = opts_flag(o, "json");
    if (json) {
        json_out_object(&j);
        json_out_member_array(&j, "rollouts");
    } else {
        put_head(&b);
    }
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        if (!is_wanted(d, r, name, all))
            continue;
        n++;
        rc = !steps && r->state == DESIRED_FAILED ? CMD_NOT_WELL : rc;
        if (json) {
            control_json_rollout(&j, r);
            continue;
        }
        put_row(&b, r);
        if (steps)
            put_steps(&b, r);
    }
    if (json) {
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else if (n == 0) {
        buf_clear(&b);
        buf_puts(&b, steps || all ? "no rollouts\n" : "no rollout is in progress\n");
    }
    if (n == 0 && name)
        rc = cmd_fail(o->page, "there is no rollout '%.64s'", name);
    int printed = b.rc < 0 ? cmd_fail(o->page, "%s", err_text(b.rc)) : CMD_OK;
    if (printed == CMD_OK && rc != CMD_FAILED)
        printed = cmd_print(o->page, &b);
    buf_fini(&b);
    return printed == CMD_OK ? rc : printed;
}

static int show(const struct opts_page *page, bool steps, int argc, const char *const *argv)
{
    struct desired *d = NULL;
    struct cluster_site s;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    rc = cluster_site_open(&s, &o, false);
    if (rc == CMD_OK)
        rc = cluster_site_load(&s, &d);
    if (rc == CMD_OK)
        rc = print_list(&o, d, o.n_args ? o.args[0] : NULL, steps || opts_flag(&o, "all"), steps);
    desired_destroy(d);
    cluster_site_close(&s);
    opts_fini(&o);
    return rc;
}

int cmd_rollout_status(int argc, const char *const *argv)
{
    return show(&status_page, false, argc, argv);
}

int cmd_rollout_history(int argc, const char *const *argv)
{
    return show(&history_page, true, argc, argv);
}
