/* cmd_flow.c - shoal flow: checks, runs, traces and draws flows of a configuration file. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/plural.h"
#include "cmd/cmd.h"
#include "cmd/flow/flow_site.h"
#include "cmd/index/index_site.h"
#include "pipeline/graph/graph_draw.h"
#include "pipeline/graph/graph_kind.h"
#include "pipeline/pipeline_report.h"
#include "wire/json_out.h"
#include "wire/value_json.h"

cmd_fn cmd_flow_check, cmd_flow_draw, cmd_flow_run, cmd_flow_trace;

#define MAX_OUTPUT_BYTES ((size_t)32 << 20)

static const struct opts_def check_defs[] = {
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};
static const struct opts_def draw_defs[] = {
    {"flow", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "which flow; needed if the file has several"},
};
static const struct opts_def run_defs[] = {
    {"flow", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "which flow; needed if the file has several"},
    {"input", 'i', OPTS_TEXT, "JSON", NULL, 0, 0,
     "the flow's inputs besides the text: an object, '{\"room\": \"hall\"}'"},
    {"budget", 0, OPTS_REAL, "MS", NULL, 0.001, 86400000,
     "time for all steps; default: the flow's own"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from a file"},
    {"dir", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder of the collections; default: the configuration's, or the usual one"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page check_page = {
    .command = "flow check",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Checks the flows of a configuration file, and lists them.",
    .details = "Exit code 1: the file has an error, which is printed with line and column.",
    .groups = {OPTS_GROUP("Options", check_defs)},
    .examples = "  shoal flow check shoal.yaml\n",
};
static const struct opts_page run_page = {
    .command = "flow run",
    .arguments = "FILE [TEXT]",
    .min_args = 1,
    .max_args = 2,
    .summary = "Runs a flow of a configuration file in this process, and prints its answer.",
    .details =
        "Models are those of the file, or the included ones.  Calls over MQTT need a server.",
    .groups = {OPTS_GROUP("Options", run_defs), &index_site_model_group},
    .examples = "  shoal flow run examples/flow.yaml \"what is the weather in Bern\"\n"
                "  shoal flow run shoal.yaml --flow help --budget 500 --json \"hello\"\n",
};
static const struct opts_page trace_page = {
    .command = "flow trace",
    .arguments = "FILE [TEXT]",
    .min_args = 1,
    .max_args = 2,
    .summary = "Runs a flow and shows each step: its start, duration and result.",
    .groups = {OPTS_GROUP("Options", run_defs), &index_site_model_group},
    .examples = "  shoal flow trace examples/flow.yaml \"what is the weather in Bern\"\n",
};
static const struct opts_page draw_page = {
    .command = "flow draw",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Draws a flow as SVG: steps from left to right, dashed if they may not run.",
    .groups = {OPTS_GROUP("Options", draw_defs)},
    .examples = "  shoal flow draw examples/flow.yaml > flow.svg\n",
};

/* ---- check ---- */

static void list_flow(struct buf *b, struct json_out *j, const struct graph *g)
{
    if (!j) {
        buf_printf(b, "%s: %u step%s%s%s\n", g->name, g->n_steps, plural(g->n_steps),
                   g->text[0] ? ", " : "", g->text);
        return;
    }
    json_out_object(j);
    json_out_member_str(j, "name", g->name);
    json_out_member_array(j, "steps");
    for (uint32_t i = 0; i < g->n_steps; i++) {
        json_out_object(j);
        json_out_member_str(j, "name", g->steps[i].spec.name);
        json_out_member_str(j, "do", graph_kinds[g->steps[i].spec.kind].name);
        json_out_member_bool(j, "lazy", g->steps[i].lazy);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

int cmd_flow_check(int argc, const char *const *argv)
{
    struct opts o;
    struct buf b;
    struct config *c;
    int rc;
    if (!cmd_begin(&o, &check_page, argc, argv, &rc))
        return rc;
    rc = flow_site_load(&c, &o, o.args[0]);
    buf_init(&b, MAX_OUTPUT_BYTES);
    struct json_out j = json_out_make(&b);
    bool json = opts_flag(&o, "json");
    if (rc == CMD_OK && json)
        json_out_array(&j);
    for (uint32_t i = 0; rc == CMD_OK && i < c->flows.n; i++)
        list_flow(&b, json ? &j : NULL, c->flows.v[i]);
    if (rc == CMD_OK && json) {
        json_out_array_end(&j);
        buf_putc(&b, '\n');
    }
    if (rc == CMD_OK)
        rc = cmd_print(&check_page, &b);
    config_unref(c);
    buf_fini(&b);
    opts_fini(&o);
    return rc;
}

/* ---- draw ---- */

int cmd_flow_draw(int argc, const char *const *argv)
{
    struct opts o;
    struct buf b;
    struct config *c;
    struct graph *g = NULL;
    int rc;
    if (!cmd_begin(&o, &draw_page, argc, argv, &rc))
        return rc;
    rc = flow_site_load(&c, &o, o.args[0]);
    if (rc == CMD_OK)
        rc = flow_site_choose(&o, c, &g);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (rc == CMD_OK) {
        graph_draw_svg(&b, g);
        rc = cmd_print(&draw_page, &b);
    }
    config_unref(c);
    buf_fini(&b);
    opts_fini(&o);
    return rc;
}

/* ---- run, trace ---- */

struct answer {
    struct sink sink;
    const struct opts *o;
    bool trace, closed;
    struct buf text;
    int exit_code;
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    buf_put(&answer_of(s)->text, e->text, e->text_bytes);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(a->o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_strn(&j, "text", buf_str(&a->text), a->text.len);
        pipeline_report_json(&j, d->report, a->trace);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_put(&b, a->text.data, a->text.len);
        buf_putc(&b, '\n');
        if (a->trace) {
            buf_putc(&b, '\n');
            pipeline_report_text(&b, d->report);
        } else if (d->report->degraded) {
            fputs("degraded: a step failed or took too long ('shoal flow trace' shows which)\n",
                  stderr);
        }
    }
    a->exit_code = cmd_print(a->o->page, &b);
    buf_fini(&b);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    answer_of(s)->exit_code = cmd_fail(answer_of(s)->o->page, "%s", f->message);
}

static void on_closed(struct sink *s)
{
    answer_of(s)->closed = true;
}

/* --input into the request. */
static int read_input(const struct opts *o, struct request *r)
{
    const char *text = opts_text(o, "input");
    struct value *v = text ? arena_zalloc(&r->arena, sizeof(*v)) : NULL;
    if (!text)
        return CMD_OK;
    if (!v || value_json_read(v, &r->arena, text, strlen(text)) < 0 || v->kind != VALUE_MAP)
        return opts_usage(o->page, "--input must be a JSON object");
    r->input = v;
    return CMD_OK;
}

static int run(struct flow_site *s, const struct buf *text, bool trace)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct answer a = {.sink = {.ops = &ops}, .o = s->o, .trace = trace};
    struct request *r = flow_take_request(&s->local.owner);
    if (!r)
        return cmd_fail(s->o->page, "out of memory");
    int rc = read_input(s->o, r);
    if (rc != CMD_OK) {
        flow_give_request(&s->local.owner, r);
        return rc;
    }
    r->kind = REQUEST_ASK;
    r->model = s->graph->name;
    r->received_ns = clock_ns();
    snprintf(r->id, sizeof(r->id), "flow-%llx", (unsigned long long)r->received_ns);
    if (opts_given(s->o, "budget"))
        request_set_budget(r, opts_real(s->o, "budget"));
    r->ask.text = buf_str(text);
    buf_init(&a.text, MAX_OUTPUT_BYTES);
    bool interrupted = flow_site_run(s, r, &a.sink, &a.closed);
    buf_fini(&a.text);
    return interrupted ? CMD_INTERRUPTED : a.exit_code;
}

static int run_or_trace(const struct opts_page *page, int argc, const char *const *argv, bool trace)
{
    struct opts o;
    struct buf text;
    struct flow_site s;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    buf_init(&text, (size_t)4 << 20);
    rc = flow_site_open(&s, &o, o.args[0]);
    if (rc == CMD_OK)
        rc = cmd_read_text(&o, o.n_args > 1 ? o.args[1] : NULL, opts_text(&o, "file"), &text);
    if (rc == CMD_OK)
        rc = flow_site_lend(&s);
    if (rc == CMD_OK)
        rc = run(&s, &text, trace);
    flow_site_close(&s);
    buf_fini(&text);
    opts_fini(&o);
    return rc;
}

int cmd_flow_run(int argc, const char *const *argv)
{
    return run_or_trace(&run_page, argc, argv, false);
}

int cmd_flow_trace(int argc, const char *const *argv)
{
    return run_or_trace(&trace_page, argc, argv, true);
}
