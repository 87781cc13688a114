/* cmd_ask.c - shoal ask: a command or question for the included models. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/lines.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/ask_documents.h"
#include "cmd/local/local.h"
#include "apps/home/ask/ask_pack.h"
#include "apps/home/ask/ask_run.h"
#include "apps/home/site/home_open.h"

cmd_fn cmd_ask;

#define SESSION "terminal" /* all texts of one call are one conversation */
#define TOKEN_BYTES 64u

static const struct opts_def defs[] = {
    {"explain", 0, OPTS_FLAG, NULL, NULL, 0, 0, "also show each model's output and time"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
    {"no-reply", 0, OPTS_FLAG, NULL, NULL, 0, 0, "return only the actions"},
    {"yes", 'y', OPTS_FLAG, NULL, NULL, 0, 0, "confirm dangerous actions without asking"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from FILE; - means stdin"},
    {"budget-ms", 0, OPTS_UINT, "N", "0", 0, 3600000, "stop after N milliseconds; 0: no limit"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,
     "number of threads; 0: chosen for the models and the machine"},
    {"models", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder of the models; default: $SHOAL_MODELS, ./models, or next to the program"},
    {"table", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "JSON table of words and actions; default: home.json of the models folder"},
    {"home", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "home file with your rooms and devices (docs/HOME.md); default: a simulated demo home"},
    {"language", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "language of the words, such as de; default: that of the home file, or en"},
    {"room", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "the room that the speaker is in"},
    {"state", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "file that keeps the states of things"},
    {"documents", 0, OPTS_LIST, "NAME", NULL, 0, 0,
     "collection (shoal index) that answers what the home cannot; may be repeated"},
};

static const struct opts_page page = {
    .command = "ask",
    .arguments = "[TEXT]",
    .max_args = 1,
    .summary = "Turns a command or question into actions (JSON) and a spoken reply.",
    .details =
        "Runs the models included with Shoal, on this machine only.  docs/ASK.md describes what "
        "it\nunderstands.  Without TEXT every line of stdin is a turn of one conversation: \"it\" "
        "means what\nwas spoken of before, and \"yes\" answers a question.  On a terminal a "
        "dangerous action asks\n\"[y/N]\" first; elsewhere it has the result \"confirm\" and does "
        "not "
        "happen, unless --yes says so.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples =
        "  shoal ask \"turn off the kitchen lights\"\n"
        "  shoal ask --explain \"turn off the kitchen lights and set the heating to 19 degrees\"\n"
        "  shoal ask --json \"remind me to call Anna at six\" | jq .actions\n"
        "  shoal ask --yes \"unlock the front door\"\n"
        "  shoal ask --documents manuals \"how often must the filter be cleaned?\"\n"
        "  printf 'open the blinds\\nno, close them\\n' | shoal ask\n",
};

struct work {
    const struct opts *o;
    struct term_progress bar;
    int interrupt_fd;
    bool interrupted;
    bool tty;                /* the user can be asked */
    char token[TOKEN_BYTES]; /* token of actions that wait for a yes; "": none */
};

static bool tiling(void *ctx, double part)
{
    struct work *w = ctx;
    term_progress_show(&w->bar, part, NULL);
    w->interrupted |= term_interrupted(w->interrupt_fd);
    return w->interrupted;
}

/* ---- the answer ----------------------------------------------------------------------------- */

struct answer {
    struct sink sink;
    const struct opts *o;
    struct work *work;
    bool json, closed;
    int write_errno; /* of the first write that failed; 0: none did */
    const struct ask_plan *plan;
    struct buf reply;
    int exit_code;
};

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

/* Later calls change errno, and the failure is told at the end. */
static void write_out(struct answer *a, const char *p, size_t n)
{
    errno = 0;
    if ((fwrite(p, 1, n, stdout) < n || fflush(stdout) != 0) && a->write_errno == 0)
        a->write_errno = errno ? errno : EIO;
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

/* Keeps the token of actions that wait for a yes. */
static void keep_token(struct work *w, const struct ask_plan *p)
{
    for (uint32_t i = 0; i < p->n_actions; i++)
        for (uint32_t k = 0; k < p->actions[i]->n_fields; k++) {
            const struct ask_plan_field *f = &p->actions[i]->fields[k];
            if (strcmp(f->key, "token") == 0 && f->text)
                snprintf(w->token, sizeof(w->token), "%s", f->text);
        }
}

/* Prints the actions when they are known. */
static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct answer *a = answer_of(s);
    struct buf b;
    a->plan = e->plan;
    keep_token(a->work, e->plan);
    if (a->json)
        return;
    buf_init(&b, (size_t)1 << 20);
    for (uint32_t i = 0; i < e->plan->n_actions; i++) {
        struct json_out j = json_out_make(&b);
        ask_plan_action_json(&j, e->plan->actions[i]);
        buf_putc(&b, '\n');
    }
    write_out(a, buf_str(&b), b.len);
    buf_fini(&b);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = answer_of(s);
    buf_put(&a->reply, t->text, t->text_bytes);
    if (a->json)
        return;
    write_out(a, t->text, t->text_bytes);
}

static void end_line(const struct answer *a)
{
    if (!a->json && a->reply.len > 0)
        putchar('\n');
}

static void print_steps(const struct sink_done *d)
{
    const struct ask_plan_step *steps = d->steps;
    printf("\n%-12s %-10s %8s %8s %7s\n", "step", "model", "start ms", "ms", "tokens");
    for (uint32_t i = 0; i < d->n_steps; i++)
        printf("%-12s %-10s %8.2f %8.2f %7u\n", steps[i].name,
               steps[i].model ? steps[i].model : "-", (double)steps[i].start_ns / 1e6,
               (double)steps[i].ns / 1e6, steps[i].tokens);
    printf("%-12s %-10s %8s %8.2f\n", "all", "", "", (double)d->total_ns / 1e6);
}

static void print_json(struct answer *a, const struct sink_done *d)
{
    const struct ask_plan_answer x = {.plan = a->plan,
                                      .reply = buf_str(&a->reply),
                                      .reply_bytes = a->reply.len,
                                      .steps = d->steps,
                                      .n_steps = d->n_steps,
                                      .total_ns = d->total_ns};
    struct buf b;
    buf_init(&b, (size_t)1 << 22);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    ask_plan_answer_json(&j, &x, opts_flag(a->o, "explain"));
    json_out_object_end(&j);
    buf_putc(&b, '\n');
    if (a->reply.rc < 0)
        b.rc = a->reply.rc;
    a->exit_code = cmd_print(a->o->page, &b);
    buf_fini(&b);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    struct buf b;
    end_line(a);
    if (a->json) {
        print_json(a, d);
    } else if (opts_flag(a->o, "explain")) {
        buf_init(&b, (size_t)1 << 20);
        ask_plan_explain(&b, a->plan);
        fwrite(buf_str(&b), 1, b.len, stdout);
        buf_fini(&b);
        print_steps(d);
    }
    write_out(a, "", 0);
    if (a->exit_code == CMD_OK && a->write_errno)
        a->exit_code = cmd_fail(a->o->page, "cannot write: %s", strerror(a->write_errno));
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct answer *a = answer_of(s);
    end_line(a);
    a->exit_code = cmd_fail(a->o->page, "%s", f->message);
}

static void on_closed(struct sink *s)
{
    answer_of(s)->closed = true;
}

/* ---- the request ---------------------------------------------------------------------------- */

/* One turn: a text, or the token of actions that wait. */
static int answer(struct work *w, struct local *l, const char *text, size_t n, const char *confirm)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct answer a = {
        .sink = {.ops = &ops}, .o = w->o, .work = w, .json = opts_flag(w->o, "json")};
    struct request *r = flow_take_request(&l->owner);
    if (!r)
        return cmd_fail(w->o->page, "out of memory");
    w->token[0] = '\0';
    r->kind = REQUEST_ASK;
    r->received_ns = clock_ns();
    request_set_budget(r, (double)opts_uint(w->o, "budget-ms"));
    r->input_bytes = n;
    r->ask.text = text;
    r->ask.confirm = confirm;
    r->language = opts_text(w->o, "language");
    r->ask.room = opts_text(w->o, "room");
    r->ask.reply = !opts_flag(w->o, "no-reply");
    snprintf(r->session, sizeof(r->session), "%s", SESSION);
    buf_init(&a.reply, (size_t)1 << 22);
    bool interrupted = local_run(l, r, &a.sink, &a.closed, w->interrupt_fd);
    if (interrupted)
        end_line(&a);
    buf_fini(&a.reply);
    return interrupted ? CMD_INTERRUPTED : a.exit_code;
}

static bool is_yes(const char *line)
{
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

static bool is_no(const char *line)
{
    return !*line || strcasecmp(line, "n") == 0 || strcasecmp(line, "no") == 0;
}

/* Sends a text and, with --yes, confirms its actions. */
static int turn(struct work *w, struct local *l, const char *text, size_t n)
{
    char token[TOKEN_BYTES];
    memcpy(token, w->token, sizeof(token));
    int rc;
    if (*token && is_yes(text))
        rc = answer(w, l, "", 0, token);
    else if (*token && is_no(text))
        rc = answer(w, l, "no", 2, NULL);
    else
        rc = answer(w, l, text, n, NULL);
    if (rc == CMD_OK && *w->token && opts_flag(w->o, "yes")) {
        memcpy(token, w->token, sizeof(token));
        rc = answer(w, l, "", 0, token);
    }
    return rc;
}

static void prompt(const struct work *w)
{
    if (w->tty)
        fputs(*w->token ? "[y/N] " : "> ", stderr);
}

/* Lines from stdin, each of them a turn.  answers_only: no more than answers to a question. */
static int converse(struct work *w, struct local *l, bool answers_only)
{
    struct lines in;
    struct err e = {0};
    char *line;
    size_t n;
    int rc = CMD_OK, got = LINES_END;
    lines_init(&in, STDIN_FILENO);
    while (rc == CMD_OK && (!answers_only || *w->token)) {
        prompt(w);
        got = lines_next(&in, w->interrupt_fd, &line, &n, &e);
        if (got != LINES_LINE)
            break;
        if (n == 0 && !*w->token)
            continue;
        rc = turn(w, l, line, n);
        if (rc == CMD_FAILED && w->tty && !answers_only)
            rc = CMD_OK; /* the error is shown, and the conversation continues */
    }
    lines_fini(&in);
    if (got < 0)
        return cmd_fail(w->o->page, "%s", e.msg);
    if (got == LINES_END && w->tty && rc == CMD_OK && (!answers_only || *w->token))
        fputc('\n', stderr);
    return got == LINES_INTERRUPT ? CMD_INTERRUPTED : rc;
}

/* The home: a file, or the demo. A custom table has no demo. */
static int open_home(struct home_things **out, const struct opts *o, const struct home_table *t,
                     struct err *e)
{
    const struct home_open_opts ho = {.path = opts_text(o, "home"),
                                      .models = opts_text(o, "models"),
                                      .state_path = opts_text(o, "state")};
    *out = NULL;
    return !ho.path && opts_text(o, "table") ? 0 : home_open(out, t, &ho, e);
}

/* text NULL: a conversation. */
static int run(struct work *w, struct ask_pack *p, const struct buf *text)
{
    struct local l;
    struct ask_app home;
    struct ask_documents documents = {.n_engines = 0};
    const char *const *names;
    const size_t n_names = opts_list(w->o, "documents", &names);
    struct err e = {0};
    int rc = local_open(&l, &e), exit_code;
    ask_app_init(&home);
    home.table = p->table;
    l.flow.app = &home.app;
    if (rc == 0)
        rc = open_home(&home.things, w->o, p->table, &e);
    if (rc == 0)
        rc = local_lend(&l, p->table->reader, NULL, p->reader, &e);
    if (rc == 0 && p->reply)
        rc = local_lend(&l, p->table->reply, NULL, p->reply, &e);
    if (rc == 0 && n_names > 0)
        rc = ask_documents_open(&documents, &l, names, n_names, opts_text(w->o, "models"), &e);
    if (rc < 0) {
        exit_code = cmd_fail(w->o->page, "%s", e.msg);
    } else if (text) {
        exit_code = turn(w, &l, buf_str(text), text->len);
        if (exit_code == CMD_OK && *w->token && w->tty)
            exit_code = converse(w, &l, true);
    } else {
        exit_code = converse(w, &l, false);
    }
    if (exit_code == CMD_OK && *w->token && text && !w->tty)
        fputs("nothing was confirmed: add --yes, or use a terminal\n", stderr);
    local_close(&l);
    ask_documents_close(&documents);
    home_things_destroy(home.things);
    return exit_code;
}

int cmd_ask(int argc, const char *const *argv)
{
    struct opts o;
    struct buf text = {0};
    struct ask_pack p;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    bool given = o.n_args > 0 || opts_text(&o, "file");
    if (given)
        rc = cmd_read_text(&o, o.n_args ? o.args[0] : NULL, opts_text(&o, "file"), &text);
    struct work w = {.o = &o, .interrupt_fd = term_catch_interrupt()};
    w.tty = isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !opts_flag(&o, "json");
    struct ask_pack_opts po = {.dir = opts_text(&o, "models"),
                               .table = opts_text(&o, "table"),
                               .home = opts_text(&o, "home"),
                               .language = opts_text(&o, "language"),
                               .no_reply = opts_flag(&o, "no-reply"),
                               .parts_only = true,
                               .n_threads = opts_u32(&o, "threads"),
                               .progress = tiling,
                               .progress_ctx = &w};
    term_progress_init(&w.bar, "tiling weights");
    if (rc == CMD_OK && ask_pack_open(&p, &po, &e) < 0)
        rc = w.interrupted ? CMD_INTERRUPTED : cmd_fail(&page, "%s", e.msg);
    term_progress_end(&w.bar);
    if (rc == CMD_OK) {
        rc = run(&w, &p, given ? &text : NULL);
        ask_pack_close(&p);
    }
    term_release_interrupt(w.interrupt_fd);
    buf_fini(&text);
    opts_fini(&o);
    return rc;
}
