/* cmd_ask.c - shoal ask: a command or question for the included models. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/term.h"
#include "flow/home/ask_pack.h"

static const struct opts_def defs[] = {
    {"explain", 0, OPTS_FLAG, NULL, NULL, 0, 0, "also show each model's output and time"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
    {"no-reply", 0, OPTS_FLAG, NULL, NULL, 0, 0, "return only the actions"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from FILE; - means stdin"},
    {"budget-ms", 0, OPTS_UINT, "N", "0", 0, 3600000, "stop after N milliseconds; 0: no limit"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,
     "number of threads; 0: chosen for the models and the machine"},
    {"models", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder of the models; default: $SHOAL_MODELS, ./models, or next to the program"},
    {"table", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "JSON table of words and actions; default: home.json of the models folder"},
};

static const struct opts_page page = {
    .command = "ask",
    .arguments = "[TEXT]",
    .max_args = 1,
    .summary = "Turns a command or question into actions (JSON) and a spoken reply.",
    .details =
        "Runs the models included with Shoal, on this machine only.  Shoal does not carry out "
        "the\nactions: that is up to the program that reads the JSON.  docs/ASK.md describes "
        "what it\nunderstands.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples =
        "  shoal ask \"turn off the kitchen lights\"\n"
        "  shoal ask --explain \"turn off the kitchen lights and set the heating to 19 degrees\"\n"
        "  shoal ask --json \"remind me to call Anna at six\" | jq .actions\n",
};

struct work {
    const struct opts *o;
    struct term_progress bar;
    int interrupt_fd;
    bool interrupted, streamed;
};

static bool tiling(void *ctx, double part)
{
    struct work *w = ctx;
    term_progress_show(&w->bar, part, NULL);
    w->interrupted |= term_interrupted(w->interrupt_fd);
    return w->interrupted;
}

/* Prints the actions when they are known and streams the reply. */
static void show(void *ctx, const struct ask_request *r, const struct ask_event *ev)
{
    struct work *w = ctx;
    if (ev->kind == ASK_EVENT_PLAN) {
        const struct ask_plan *plan = ask_plan_of(r);
        struct buf b;
        buf_init(&b, (size_t)1 << 20);
        for (uint32_t i = 0; i < plan->n_actions; i++) {
            struct json_out j = json_out_make(&b);
            ask_plan_action_json(&j, plan->actions[i]);
            buf_putc(&b, '\n');
        }
        fwrite(buf_str(&b), 1, b.len, stdout);
        buf_fini(&b);
    } else if (ev->kind == ASK_EVENT_TEXT) {
        fwrite(ev->text, 1, ev->text_bytes, stdout);
        w->streamed = true;
    }
    fflush(stdout);
}

static void explain(const struct ask_request *r)
{
    const struct ask_plan_answer a = ask_answer_of(r);
    const struct ask_plan_step *steps = a.steps;
    printf("\n%-12s %-10s %8s %8s %7s\n", "step", "model", "start ms", "ms", "tokens");
    for (uint32_t i = 0; i < a.n_steps; i++)
        printf("%-12s %-10s %8.2f %8.2f %7u\n", steps[i].name,
               steps[i].model ? steps[i].model : "-", (double)steps[i].start_ns / 1e6,
               (double)steps[i].ns / 1e6, steps[i].tokens);
    printf("%-12s %-10s %8s %8.2f\n", "all", "", "", (double)a.total_ns / 1e6);
}

static int print_json(const struct opts *o, const struct ask_request *r)
{
    struct buf b;
    buf_init(&b, (size_t)1 << 22);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    const struct ask_plan_answer a = ask_answer_of(r);
    ask_plan_answer_json(&j, &a, opts_flag(o, "explain"));
    json_out_object_end(&j);
    buf_putc(&b, '\n');
    int rc = cmd_print(o->page, &b);
    buf_fini(&b);
    return rc;
}

static void print_clauses(const struct ask_request *r)
{
    struct buf b;
    buf_init(&b, (size_t)1 << 20);
    ask_plan_explain(&b, ask_plan_of(r));
    fwrite(buf_str(&b), 1, b.len, stdout);
    buf_fini(&b);
}

static int answer(struct work *w, struct ask_pack *p, const struct buf *text)
{
    const struct opts *o = w->o;
    bool json = opts_flag(o, "json");
    uint64_t budget = opts_uint(o, "budget-ms");
    struct ask_request *r;
    struct err e = {0};
    struct ask_opts ao = {.text = buf_str(text),
                          .text_bytes = text->len,
                          .no_reply = opts_flag(o, "no-reply"),
                          .deadline_ns = budget ? clock_ns() + budget * 1000000u : 0,
                          .event = json ? NULL : show,
                          .event_ctx = w};
    if (ask_submit(p->ask, &ao, &r, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    int code = ask_wait(r), rc = CMD_OK;
    if (w->streamed)
        putchar('\n');
    if (code < 0)
        rc = cmd_fail(o->page, "%s", ask_message_of(r));
    else if (json)
        rc = print_json(o, r);
    else if (opts_flag(o, "explain")) {
        print_clauses(r);
        explain(r);
    }
    if (rc == CMD_OK && fflush(stdout) != 0)
        rc = cmd_fail(o->page, "cannot write: %m");
    ask_free(r);
    return rc;
}

int cmd_ask(int argc, const char *const *argv)
{
    struct opts o;
    struct buf text;
    struct ask_pack p;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = cmd_read_text(&o, o.n_args ? o.args[0] : NULL, opts_text(&o, "file"), &text);
    struct work w = {.o = &o, .interrupt_fd = term_catch_interrupt()};
    struct ask_pack_opts po = {.dir = opts_text(&o, "models"),
                               .table = opts_text(&o, "table"),
                               .no_reply = opts_flag(&o, "no-reply"),
                               .n_threads = opts_u32(&o, "threads"),
                               .progress = tiling,
                               .progress_ctx = &w};
    term_progress_init(&w.bar, "tiling weights");
    if (rc == CMD_OK && ask_pack_open(&p, &po, &e) < 0)
        rc = w.interrupted ? CMD_INTERRUPTED : cmd_fail(&page, "%s", e.msg);
    term_progress_end(&w.bar);
    term_release_interrupt(w.interrupt_fd); /* from now on Ctrl-C ends the program */
    if (rc == CMD_OK) {
        rc = answer(&w, &p, &text);
        ask_pack_close(&p);
    }
    buf_fini(&text);
    opts_fini(&o);
    return rc;
}
