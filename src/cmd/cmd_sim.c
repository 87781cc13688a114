/* cmd_sim.c - shoal sim: a cluster in virtual time, from a scenario file. */
#include <stdio.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/log.h"
#include "base/plural.h"
#include "cluster/sim/shoal/sim_shoal.h"
#include "cluster/sim/sim_run.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_sim;

#define MAX_SCENARIO_BYTES ((size_t)1 << 20)
#define MAX_OUTPUT_BYTES ((size_t)256 << 20)
#define MAX_ROWS 30u /* models in the table */

static const struct opts_def defs[] = {
    {"seed", 0, OPTS_UINT, "N", NULL, 0, 4294967295.0,
     "seed of everything random (default: the scenario's)"},
    {"nodes", 0, OPTS_UINT, "N", NULL, 1, 65536,
     "change the number of nodes; replicas and requests change in proportion"},
    {"steps", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "also print every step of every plan, with its time and reason"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
    {"schedules", 0, OPTS_UINT, "N", NULL, 1, 4294967295.0,
     "search for races instead: run this many schedules of faults, from --seed on"},
    {"streams", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "with --schedules: only clients and nodes, without a control plane; far faster"},
};

static const struct opts_page page = {
    .command = "sim",
    .arguments = "[SCENARIO]",
    .min_args = 0,
    .max_args = 1,
    .summary = "Simulates a cluster: placement, autoscaling and churn in virtual time.",
    .details =
        "The planner and the autoscaler are those of a real cluster; nodes, requests and failures "
        "are\nsimulated.  Every plan is checked: no node holds more than its memory, no model "
        "falls below\nits minimum.  The same seed gives the same figures on every machine, except "
        "for the planner's\ntime.  docs/CLUSTER.md describes scenario files.\n\n"
        "--schedules needs no scenario: it runs the real code of relay, controller, lease, rollout "
        "and\nagent in simulated time, with members that pause and crash, messages that are late "
        "or "
        "lost, and\na NATS that forgets.  It ends with the first rule that is broken, and its "
        "seed.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal sim examples/sim/home.yaml\n"
                "  shoal sim examples/sim/campus.yaml --nodes 500 --seed 7\n"
                "  shoal sim examples/sim/home.yaml --steps | less\n"
                "  shoal sim --json examples/sim/factory.yaml | jq .availability\n"
                "  shoal sim --schedules 1000\n",
};

struct steps { /* steps of all plans, in printed form */
    struct buf b;
    struct json_out j;
    bool json;
};

struct watch {
    struct term_progress bar;
    int interrupt_fd;
};

static bool progress(void *ctx, double part, uint32_t n_nodes, uint64_t n_plans)
{
    struct watch *w = ctx;
    char note[64];
    snprintf(note, sizeof(note), "%u node%s, %llu plan%s", n_nodes, plural(n_nodes),
             (unsigned long long)n_plans, plural(n_plans));
    term_progress_show(&w->bar, part, note);
    return term_interrupted(w->interrupt_fd);
}

static void add_steps(void *ctx, uint64_t at_ms, const struct placement_plan *plan)
{
    struct steps *t = ctx;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct placement_step *s = &plan->steps[i];
        const char *what = s->action == PLACEMENT_LOAD ? "load" : "unload";
        if (!t->json) {
            buf_printf(&t->b, "%9.1f s  %-6s %s on %s: %s\n", (double)at_ms / 1000, what,
                       s->model_name, s->node_name, s->reason);
            continue;
        }
        json_out_object(&t->j);
        json_out_member_num(&t->j, "at_s", (double)at_ms / 1000);
        json_out_member_str(&t->j, "do", what);
        json_out_member_str(&t->j, "model", s->model_name);
        json_out_member_str(&t->j, "node", s->node_name);
        json_out_member_uint(&t->j, "wave", s->wave);
        json_out_member_str(&t->j, "reason", s->reason);
        json_out_object_end(&t->j);
    }
}

/* ---- output ---- */

/* A share of the requests that should have been answered; 1 if there were none. */
static double share(const struct sim_row *r, uint64_t n)
{
    uint64_t all = r->n_requests - r->n_open;
    return all ? (double)n / (double)all : 1;
}

static void put_row(struct json_out *j, const struct sim_row *r)
{
    json_out_member_uint(j, "requests", r->n_requests);
    json_out_member_uint(j, "open", r->n_open);
    json_out_member_num(j, "availability", share(r, r->n_available));
    json_out_member_num(j, "on_time", share(r, r->n_on_time));
    json_out_member_uint(j, "moved", r->n_moved);
    json_out_member_num(j, "p50_ms", r->p50_ms);
    json_out_member_num(j, "p95_ms", r->p95_ms);
    json_out_member_num(j, "p99_ms", r->p99_ms);
    json_out_member_num(j, "below_min_s", r->below_min_s);
    json_out_member_uint(j, "ready", r->n_ready);
    json_out_member_uint(j, "scaled_up", r->n_up);
    json_out_member_uint(j, "scaled_down", r->n_down);
}

static void print_json(struct buf *b, const struct sim_scenario *s, const struct sim_result *r,
                       uint32_t seed, double wall_s, const struct steps *steps)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "scenario", s->name ? s->name : "");
    json_out_member_uint(&j, "seed", seed);
    json_out_member_num(&j, "simulated_s", r->seconds);
    json_out_member_uint(&j, "nodes", r->n_nodes_start);
    json_out_member_uint(&j, "nodes_at_end", r->n_nodes_end);
    json_out_member_uint(&j, "models", r->n_models);
    put_row(&j, &r->all);
    json_out_member_object(&j, "churn");
    for (int i = 0; i < SIM_N_ACTIONS; i++)
        json_out_member_uint(&j, sim_scenario_action((enum sim_action)i), r->n_churn[i]);
    json_out_object_end(&j);
    json_out_member_uint(&j, "plans", r->n_plans);
    json_out_member_uint(&j, "plans_with_gaps", r->n_plans_with_gaps);
    json_out_member_str(&j, "last_gap", r->last_gap);
    json_out_member_uint(&j, "loads", r->n_loads);
    json_out_member_uint(&j, "unloads", r->n_unloads);
    json_out_member_uint(&j, "moves", r->n_moves);
    json_out_member_uint(&j, "replaced", r->n_replaced);
    json_out_member_num(&j, "replaced_per_event", r->replaced_per_event);
    json_out_member_num(&j, "memory_mean", r->memory_mean);
    json_out_member_num(&j, "memory_max", r->memory_max);
    json_out_member_uint(&j, "to_zero", r->n_to_zero);
    json_out_member_uint(&j, "from_zero", r->n_from_zero);
    json_out_member_array(&j, "by_model");
    for (uint32_t i = 0; i < r->n_models; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "name", r->models[i].name);
        put_row(&j, &r->models[i]);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    if (steps) {
        json_out_key(&j, "steps");
        buf_putc(b, '[');
        buf_put(b, buf_str(&steps->b), steps->b.len);
        buf_putc(b, ']');
        j.comma = true;
    }
    json_out_key(&j, "this_machine"); /* values that differ from run to run */
    json_out_object(&j);
    json_out_member_num(&j, "plan_mean_ms", r->plan_mean_ms);
    json_out_member_num(&j, "plan_max_ms", r->plan_max_ms);
    json_out_member_num(&j, "wall_s", wall_s);
    json_out_object_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void print_row(struct buf *b, const struct sim_row *r, const char *name)
{
    buf_printf(b, "%-20.20s %9llu %8.3f %8.3f %9.1f %9.1f %7llu %9.1f %6u %4u %4u\n", name,
               (unsigned long long)r->n_requests, share(r, r->n_available) * 100,
               share(r, r->n_on_time) * 100, r->p50_ms, r->p95_ms, (unsigned long long)r->n_moved,
               r->below_min_s, r->n_ready, r->n_up, r->n_down);
}

static void print_text(struct buf *b, const struct sim_scenario *s, const struct sim_result *r,
                       uint32_t seed, double wall_s)
{
    static const char *const names[] = {"crashed",    "left",    "joined",     "slowed down",
                                        "partitions", "drained", "load spikes"};
    buf_printf(b, "%s: %.0f s with %u node%s and %u model%s, seed %u (%.1f s on this machine)\n\n",
               s->name ? s->name : "scenario", r->seconds, r->n_nodes_start,
               plural(r->n_nodes_start), r->n_models, plural(r->n_models), seed, wall_s);
    buf_printf(b, "%-20s %9s %8s %8s %9s %9s %7s %9s %6s %4s %4s\n", "model", "requests", "avail %",
               "time %", "p50 ms", "p95 ms", "moved", "<min s", "ready", "up", "down");
    for (uint32_t i = 0; i < r->n_models && i < MAX_ROWS; i++)
        print_row(b, &r->models[i], r->models[i].name);
    if (r->n_models > MAX_ROWS)
        buf_printf(b, "... %u more; --json lists them\n", r->n_models - MAX_ROWS);
    print_row(b, &r->all, "all");
    buf_puts(b, "\nchurn       ");
    for (int i = 0; i < SIM_N_ACTIONS; i++)
        buf_printf(b, "%s%llu %s", i ? ", " : "", (unsigned long long)r->n_churn[i], names[i]);
    buf_printf(b,
               "\nplacement   %llu load%s, %llu unload%s, %llu of them moves; %llu re-placement%s, "
               "%.2f per event\n",
               (unsigned long long)r->n_loads, plural(r->n_loads), (unsigned long long)r->n_unloads,
               plural(r->n_unloads), (unsigned long long)r->n_moves,
               (unsigned long long)r->n_replaced, plural(r->n_replaced), r->replaced_per_event);
    buf_printf(b, "scaling     %u up, %u down, %llu to zero, %llu from zero\n", r->all.n_up,
               r->all.n_down, (unsigned long long)r->n_to_zero, (unsigned long long)r->n_from_zero);
    buf_printf(b, "memory      %.1f %% used on average, %.1f %% at most\n", r->memory_mean * 100,
               r->memory_max * 100);
    buf_printf(b,
               "planner     %llu plan%s, %.1f ms of processor time on average, %.1f ms at most\n",
               (unsigned long long)r->n_plans, plural(r->n_plans), r->plan_mean_ms, r->plan_max_ms);
    if (r->last_gap[0])
        buf_printf(b, "no place    in %llu plans; the last: %s\n",
                   (unsigned long long)r->n_plans_with_gaps, r->last_gap);
}

/* ---- the run ---- */

static int print(const struct opts *o, const struct sim_scenario *s, const struct sim_result *r,
                 uint32_t seed, double wall_s, const struct steps *steps)
{
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (steps->json) {
        print_json(&b, s, r, seed, wall_s, opts_flag(o, "steps") ? steps : NULL);
    } else {
        buf_put(&b, buf_str(&steps->b), steps->b.len);
        if (steps->b.len > 0)
            buf_putc(&b, '\n');
        print_text(&b, s, r, seed, wall_s);
    }
    int rc = steps->b.rc < 0 || b.rc < 0
                 ? cmd_fail(o->page, "too many steps to print: leave out --steps")
                 : cmd_print(o->page, &b);
    buf_fini(&b);
    return rc;
}

static int run(const struct opts *o, const struct sim_scenario *s)
{
    struct watch w = {.interrupt_fd = term_catch_interrupt()};
    struct steps steps = {.json = opts_flag(o, "json")};
    struct sim_opts so = {.seed = opts_given(o, "seed") ? opts_u32(o, "seed") : s->seed,
                          .progress = progress,
                          .progress_ctx = &w,
                          .on_plan = opts_flag(o, "steps") ? add_steps : NULL,
                          .on_plan_ctx = &steps};
    struct sim_result r;
    struct err e = {0};
    uint64_t start = clock_ns();
    buf_init(&steps.b, MAX_OUTPUT_BYTES);
    steps.j = json_out_make(&steps.b);
    term_progress_init(&w.bar, "sim");
    int rc, failed = sim_run(&r, s, &so, &e);
    term_progress_end(&w.bar);
    term_release_interrupt(w.interrupt_fd);
    if (failed == 0)
        rc = print(o, s, &r, so.seed, (double)(clock_ns() - start) / 1e9, &steps);
    else
        rc = failed == SHOAL_ECANCELLED ? CMD_INTERRUPTED
                                        : cmd_fail(o->page, "%s: %s", o->args[0], e.msg);
    buf_fini(&steps.b);
    if (failed == 0)
        sim_result_fini(&r);
    return rc;
}

/* ---- schedules of faults ---- */

static void put_count(struct buf *b, struct json_out *j, const char *key, uint64_t n,
                      const char *what)
{
    if (j) {
        json_out_member_uint(j, key, n);
    } else {
        buf_printf(b, "%12llu  %s\n", (unsigned long long)n, what);
    }
}

static int print_counts(const struct opts *o, const struct sim_shoal_counts *c, double seconds)
{
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    struct json_out json = json_out_make(&b), *j = opts_flag(o, "json") ? &json : NULL;
    if (j)
        json_out_object(j);
    put_count(&b, j, "schedules", c->n_schedules, "schedules, no rule broken");
    put_count(&b, j, "events", c->n_events, "events");
    put_count(&b, j, "terms", c->n_terms, "terms of a controller");
    put_count(&b, j, "crashes", c->n_crashes, "crashes");
    put_count(&b, j, "pauses", c->n_pauses, "pauses");
    put_count(&b, j, "nats_lost", c->n_lost, "times NATS lost its data");
    put_count(&b, j, "nats_stale", c->n_stale, "answers of NATS from the past");
    put_count(&b, j, "changes", c->n_changes, "changes of the desired state");
    put_count(&b, j, "updates", c->n_rollouts, "updates done");
    put_count(&b, j, "restored", c->n_restored, "states written back after NATS had lost them");
    put_count(&b, j, "minority", c->n_minority, "of them known to less than half of the members");
    put_count(&b, j, "streams", c->n_streams, "streams");
    put_count(&b, j, "moved", c->n_moved, "moved to another node");
    put_count(&b, j, "doubled", c->n_doubled, "also sent to a second node");
    put_count(&b, j, "given_up", c->n_failed, "given up: no node for too long");
    put_count(&b, j, "tokens", c->n_tokens, "tokens");
    put_count(&b, j, "pause_p50_ms", sim_shoal_pause_ms(c, 0.5),
              "ms: the longest pause of a stream beside a node that could answer, p50");
    put_count(&b, j, "pause_p99_ms", sim_shoal_pause_ms(c, 0.99), "ms, p99");
    put_count(&b, j, "pause_p999_ms", sim_shoal_pause_ms(c, 0.999), "ms, p99.9");
    put_count(&b, j, "simulated_s", (uint64_t)c->seconds, "simulated seconds");
    if (j) {
        json_out_member_object(j, "this_machine");
        json_out_member_num(j, "seconds", seconds);
        json_out_object_end(j);
        json_out_object_end(j);
        buf_putc(&b, '\n');
    }
    return cmd_print_end(&page, &b);
}

static int run_schedules(const struct opts *o)
{
    const uint32_t n = opts_u32(o, "schedules");
    const uint64_t first = opts_given(o, "seed") ? opts_u32(o, "seed") : 1, start = clock_ns();
    struct sim_shoal_counts c = {0};
    struct watch w = {.interrupt_fd = term_catch_interrupt()};
    struct err e = {0};
    int failed = 0;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT); /* what its members say is about no real one */
    for (uint32_t i = 0; i < n && failed == 0 && !term_interrupted(w.interrupt_fd); i++)
        failed = sim_shoal_run(first + i, opts_flag(o, "streams"), &c, &e);
    term_release_interrupt(w.interrupt_fd);
    if (failed < 0)
        return cmd_fail(o->page, "%s: repeat it with --schedules 1 --seed %llu", e.msg,
                        (unsigned long long)(first + c.n_schedules - 1));
    return print_counts(o, &c, (double)(clock_ns() - start) / 1e9);
}

int cmd_sim(int argc, const char *const *argv)
{
    struct sim_scenario s = {0};
    struct opts o;
    struct buf text;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    const bool search = opts_given(&o, "schedules");
    if (search || o.n_args == 0) {
        rc = search && o.n_args == 0 ? run_schedules(&o) : CMD_USAGE;
        if (rc == CMD_USAGE)
            (void)!cmd_fail(&page, "give it a SCENARIO, or --schedules without one; see --help");
        opts_fini(&o);
        return rc;
    }
    buf_init(&text, MAX_SCENARIO_BYTES);
    if (file_read(o.args[0], &text, &e) < 0 ||
        sim_scenario_parse(&s, buf_str(&text), text.len, o.args[0], &e) < 0 ||
        (opts_given(&o, "nodes") && sim_scenario_resize(&s, opts_u32(&o, "nodes"), &e) < 0))
        rc = cmd_fail(&page, "%s", e.msg);
    else
        rc = run(&o, &s);
    sim_scenario_fini(&s);
    buf_fini(&text);
    opts_fini(&o);
    return rc;
}
