/* cmd_listen.c - shoal listen: writes down what is said at a microphone or in a pipe, turn by turn,
 * and with --ask carries it out. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/home/ask/ask_pack.h"
#include "apps/home/ask/ask_run.h"
#include "apps/home/site/home_open.h"
#include "audio/microphone.h"
#include "audio/pcm.h"
#include "audio/wav_head.h"
#include "base/clock.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/home_phrases.h"
#include "cmd/local/local.h"
#include "cmd/local/model_opts.h"
#include "voice/listener.h"
#include "voice/wake.h"
#include "wire/json_out.h"

cmd_fn cmd_listen;

#define BLOCK 640u /* samples of the microphone at a time */
#define MAX_OUT_BYTES ((size_t)4 << 20)

static const struct opts_def defs[] = {
    {"device", 'd', OPTS_TEXT, "NAME", "default", 0, 0,
     "microphone, by its name in ALSA; -: sound from stdin, a WAV file or samples"},
    {"ask", 'a', OPTS_FLAG, NULL, NULL, 0, 0, "carry out what is said, as shoal ask does"},
    {"home", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "home file (docs/HOME.md): its names are likely to be said, and with --ask it is controlled; "
     "default: a simulated demo home"},
    {"room", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "the room that the speaker is in"},
    {"phrases", 0, OPTS_TEXT, "TEXT", NULL, 0, 0,
     "more words that are likely to be said, separated by commas"},
    {"wake", 'w', OPTS_TEXT, "WORD", NULL, 0, 0,
     "wait for this word before each turn: the included one, or the folder of another"},
    {"rate", 0, OPTS_UINT, "N", "16000", 2000, 768000, "of samples from stdin"},
    {"channels", 0, OPTS_UINT, "N", "1", 1, 64, "of samples from stdin"},
    {"format", 0, OPTS_CHOICE, "s16|f32|u8", "s16", 0, 0, "of samples from stdin"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object for each turn"},
};

static const struct opts_page page = {
    .command = "listen",
    .arguments = "",
    .summary = "Writes down what is said at a microphone, turn by turn.",
    .details = "A turn ends by its silence.  The sound is held in memory for its turn and written "
               "nowhere.\nOn a terminal the words appear while they are spoken.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_hear_group},
    .examples = "  shoal listen\n"
                "  shoal listen --ask --room kitchen\n"
                "  shoal listen --ask --wake \"hey shoal\"\n"
                "  arecord -q -f S16_LE -r 16000 -t raw | shoal listen -d - --json\n",
};

struct work {
    const struct opts *o;
    struct local local;
    struct listener *listener;
    struct wake *wake; /* NULL: always awake */
    struct buf phrases, samples;
    float confidence;
    bool tty, asks;
    int interrupt_fd, exit_code;
};

/* ---- what is asked ---- */

struct asking {
    struct sink sink; /* first */
    struct work *work;
    struct buf reply, plan;
    bool closed;
};

static struct asking *asking_of(struct sink *s)
{
    return (struct asking *)(void *)s; /* its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct json_out j = json_out_make(&asking_of(s)->plan);
    json_out_array(&j);
    for (uint32_t i = 0; i < e->plan->n_actions; i++)
        ask_plan_action_json(&j, e->plan->actions[i]);
    json_out_array_end(&j);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    buf_put(&asking_of(s)->reply, t->text, t->text_bytes);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    (void)s;
    (void)d;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    fprintf(stderr, "shoal listen: %s\n", f->message);
    asking_of(s)->work->exit_code = CMD_FAILED;
}

static void on_closed(struct sink *s)
{
    asking_of(s)->closed = true;
}

static void ask(struct work *w, struct asking *a, const char *text, size_t n)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct request *r = flow_take_request(&w->local.owner);
    *a = (struct asking){.sink = {.ops = &ops}, .work = w};
    buf_init(&a->reply, MAX_OUT_BYTES);
    buf_init(&a->plan, MAX_OUT_BYTES);
    if (!r) {
        w->exit_code = cmd_fail(w->o->page, "out of memory");
        return;
    }
    r->kind = REQUEST_ASK;
    r->received_ns = clock_ns();
    r->input_bytes = n;
    r->ask = (struct request_ask){.text = request_copy(r, text, n),
                                  .room = opts_text(w->o, "room"),
                                  .reply = true,
                                  .heard = w->confidence};
    snprintf(r->session, sizeof(r->session), "terminal");
    if (local_run(&w->local, r, &a->sink, &a->closed, w->interrupt_fd))
        w->exit_code = CMD_INTERRUPTED;
}

/* ---- turns ---- */

static void clear_line(const struct work *w)
{
    if (w->tty)
        fputs("\r\033[K", stderr);
}

static void on_partial(void *ctx, const char *text, size_t n)
{
    struct work *w = ctx;
    if (!w->tty)
        return;
    clear_line(w);
    fprintf(stderr, "%.*s ...", (int)n, text);
}

static void print_json(struct work *w, const struct listener_turn *t, const struct asking *a)
{
    struct buf out;
    buf_init(&out, MAX_OUT_BYTES);
    struct json_out j = json_out_make(&out);
    json_out_object(&j);
    json_out_member_strn(&j, "text", t->text, t->text_bytes);
    json_out_member_num(&j, "confidence", (double)t->confidence);
    json_out_member_num(&j, "start", t->start_s);
    json_out_member_num(&j, "end", t->end_s);
    if (a) {
        json_out_key(&j, "actions");
        buf_puts(&out, a->plan.len ? buf_str(&a->plan) : "[]");
        j.comma = true;
        json_out_member_strn(&j, "reply", buf_str(&a->reply), a->reply.len);
    }
    json_out_object_end(&j);
    buf_putc(&out, '\n');
    if (cmd_print(w->o->page, &out) != CMD_OK)
        w->exit_code = CMD_FAILED;
    buf_fini(&out);
}

static void print_text(const struct listener_turn *t, const struct asking *a)
{
    printf("%.*s\n", (int)t->text_bytes, t->text);
    if (a && a->plan.len > 2)
        printf("  %s\n", buf_str(&a->plan));
    if (a && a->reply.len > 0)
        printf("  %s\n", buf_str(&a->reply));
    fflush(stdout);
}

static void on_turn(void *ctx, const struct listener_turn *t)
{
    struct work *w = ctx;
    struct asking a;
    if (t->text_bytes == 0)
        return;
    clear_line(w);
    w->confidence = t->confidence;
    if (w->asks)
        ask(w, &a, t->text, t->text_bytes);
    if (opts_flag(w->o, "json"))
        print_json(w, t, w->asks ? &a : NULL);
    else
        print_text(t, w->asks ? &a : NULL);
    if (w->asks) {
        buf_fini(&a.reply);
        buf_fini(&a.plan);
    }
}

static void on_woken(void *ctx)
{
    struct work *w = ctx;
    if (w->tty)
        fputs("\r\033[Kyes?", stderr);
}

static void on_asleep(void *ctx)
{
    clear_line(ctx);
}

static int await_word(struct work *w, struct err *e)
{
    const char *word = opts_text(w->o, "wake");
    struct wake_ear *ear = NULL;
    int rc = word ? wake_open_named(&w->wake, word, e) : 0;
    if (rc == 0 && word && (rc = wake_ear_create(&ear, w->wake, e)) == 0)
        listener_await(w->listener, ear);
    return rc;
}

static void on_failed(void *ctx, const struct failure *f)
{
    struct work *w = ctx;
    w->exit_code = cmd_fail(w->o->page, "%s", f->message);
}

static struct request *new_request(void *ctx)
{
    struct work *w = ctx;
    struct request *r = flow_take_request(&w->local.owner);
    if (!r)
        return NULL;
    r->received_ns = clock_ns();
    r->model = opts_text(w->o, "model");
    return r;
}

static const char *phrases(void *ctx)
{
    return buf_str(&((struct work *)ctx)->phrases);
}

/* ---- sound ---- */

static int feed(struct work *w, const int16_t *samples, uint32_t n, struct err *e)
{
    const int rc = listener_feed(w->listener, samples, n);
    while (w->exit_code == CMD_OK && listener_full(w->listener))
        if (local_turn(&w->local, w->interrupt_fd))
            w->exit_code = CMD_INTERRUPTED;
    while (executor_queue_run(&w->local.queue))
        continue;
    return rc < 0 ? err_set(e, rc, "the sound comes faster than it can be heard") : 0;
}

static int from_microphone(struct work *w, struct err *e)
{
    struct microphone *m;
    int16_t block[BLOCK];
    int64_t got = microphone_open(&m, opts_text(w->o, "device"), e);
    if (got == 0 && w->tty)
        fputs("listening; Ctrl-C ends it\n", stderr);
    while (got >= 0 && w->exit_code == CMD_OK) {
        struct pollfd p = {.fd = w->interrupt_fd, .events = POLLIN};
        if (poll(&p, 1, 0) > 0 && term_interrupted(w->interrupt_fd))
            break; /* as usual for what has no end */
        if (m && (got = microphone_read(m, block, BLOCK, e)) > 0)
            got = feed(w, block, (uint32_t)got, e);
    }
    microphone_close(m);
    return got < 0 ? (int)got : 0;
}

static struct pcm_form form_of(const struct opts *o)
{
    const char *name = opts_text(o, "format");
    return (struct pcm_form){.rate = opts_u32(o, "rate"),
                             .channels = opts_u32(o, "channels"),
                             .is_float = strcmp(name, "f32") == 0,
                             .width = strcmp(name, "f32") == 0   ? 4
                                      : strcmp(name, "s16") == 0 ? 2
                                                                 : 1};
}

/* Waits for bytes of stdin, while hearings go on; 0: the end, or Ctrl-C. */
static ssize_t read_some(struct work *w, char *to, size_t cap, struct err *e)
{
    for (;;) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = w->local.queue.fd, .events = POLLIN},
                             {.fd = w->interrupt_fd, .events = POLLIN}};
        while (executor_queue_run(&w->local.queue))
            continue;
        (void)poll(p, 3, executor_queue_wait_ms(&w->local.queue));
        if (p[2].revents && term_interrupted(w->interrupt_fd)) {
            w->exit_code = CMD_INTERRUPTED;
            return 0;
        }
        if (!p[0].revents)
            continue;
        const ssize_t n = read(STDIN_FILENO, to, cap);
        if (n < 0 && errno == EINTR)
            continue;
        return n < 0 ? err_set(e, SHOAL_EIO, "cannot read stdin: %s", strerror(errno)) : n;
    }
}

/* The first bytes: a WAV file's header is skipped.  Returns the bytes behind it. */
static int read_head(struct work *w, char *bytes, size_t *n, struct pcm_form *form, struct err *e)
{
    size_t skip = 0;
    int rc = 0;
    *n = 0;
    while (rc == 0 && *n < WAV_HEAD_MOST) {
        const ssize_t got = read_some(w, bytes + *n, WAV_HEAD_MOST - *n, e);
        if (got < 0)
            return (int)got;
        *n += (size_t)got;
        const bool is_wav = *n >= 4 && memcmp(bytes, "RIFF", 4) == 0;
        if (got == 0 || (*n >= 4 && !is_wav))
            break;
        rc = is_wav ? wav_head(bytes, *n, form, &skip, e) : 0;
    }
    if (rc < 0)
        return rc;
    *n -= skip;
    memmove(bytes, bytes + skip, *n);
    return 0;
}

static int from_stdin(struct work *w, struct err *e)
{
    static char bytes[WAV_HEAD_MOST];
    struct pcm_form form = form_of(w->o);
    struct pcm *pcm = NULL;
    ssize_t n = 0;
    size_t first = 0;
    int rc = read_head(w, bytes, &first, &form, e);
    if (rc == 0)
        rc = pcm_create(&pcm, &form, e);
    for (n = (ssize_t)first; rc == 0 && n > 0 && w->exit_code == CMD_OK;) {
        buf_clear(&w->samples);
        rc = pcm_feed(pcm, bytes, (size_t)n, &w->samples, e);
        if (rc == 0)
            rc = feed(w, (const int16_t *)(const void *)buf_str(&w->samples),
                      (uint32_t)(w->samples.len / sizeof(int16_t)), e);
        if (rc == 0 && (n = read_some(w, bytes, sizeof(bytes), e)) < 0)
            rc = (int)n;
    }
    pcm_destroy(pcm);
    if (rc == 0 && w->exit_code == CMD_OK)
        listener_finish(w->listener);
    while (rc == 0 && w->exit_code == CMD_OK && listener_works(w->listener))
        if (local_turn(&w->local, w->interrupt_fd))
            w->exit_code = CMD_INTERRUPTED;
    return rc;
}

static int listen_to(struct work *w)
{
    static const struct listener_ops ops = {.partial = on_partial,
                                            .turn = on_turn,
                                            .woken = on_woken,
                                            .asleep = on_asleep,
                                            .failed = on_failed,
                                            .request = new_request,
                                            .phrases = phrases};
    struct err e = {0};
    int rc = listener_create(&w->listener, &w->local.owner, &ops, w, &e);
    if (rc == 0)
        rc = await_word(w, &e);
    if (rc == 0)
        rc = strcmp(opts_text(w->o, "device"), "-") == 0 ? from_stdin(w, &e)
                                                         : from_microphone(w, &e);
    listener_destroy(w->listener);
    wake_close(w->wake);
    while (w->local.owner.n_jobs > 0) /* a hearing that was cancelled */
        (void)local_turn(&w->local, -1);
    return w->exit_code != CMD_OK ? w->exit_code
           : rc < 0               ? cmd_fail(w->o->page, "%s", e.msg)
                                  : CMD_OK;
}

/* ---- opening ---- */

struct home {
    struct ask_pack pack;
    struct ask_app app;
    bool opened;
};

static int open_home(struct work *w, struct home *h, struct err *e)
{
    const struct ask_pack_opts po = {.parts_only = true,
                                     .home = opts_text(w->o, "home"),
                                     .n_threads = opts_u32(w->o, "threads")};
    const struct home_open_opts ho = {.path = opts_text(w->o, "home")};
    ask_app_init(&h->app);
    int rc = ask_pack_open(&h->pack, &po, e);
    if (rc < 0)
        return rc;
    h->opened = true;
    const struct ask_pack *p = &h->pack;
    h->app.table = p->table;
    w->local.flow.app = &h->app.app;
    rc = home_open(&h->app.things, p->table, &ho, e);
    if (rc == 0)
        rc = local_lend(&w->local, p->table->reader, NULL, p->reader, e);
    return rc == 0 && p->reply ? local_lend(&w->local, p->table->reply, NULL, p->reply, e) : rc;
}

static int open_all(struct work *w, struct shoal_engine *engine, struct home *h, struct err *e)
{
    const char *file = opts_text(w->o, "home");
    int rc = local_open(&w->local, e);
    if (rc == 0)
        rc = local_lend(&w->local, opts_text(w->o, "model"), NULL, engine, e);
    if (rc == 0 && w->asks)
        rc = open_home(w, h, e);
    if (rc == 0)
        rc = home_phrases_put(&w->phrases, file, opts_text(w->o, "phrases"), e);
    return rc;
}

int cmd_listen(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct work w = {.o = &o, .exit_code = CMD_OK, .interrupt_fd = term_catch_interrupt()};
    struct home home = {.opened = false};
    struct shoal_engine *engine = NULL;
    struct model_name name;
    struct err e = {0};
    w.tty = isatty(STDERR_FILENO);
    w.asks = opts_flag(&o, "ask");
    buf_init(&w.phrases, (size_t)1 << 20);
    buf_init(&w.samples, (size_t)4 << 20);
    rc = model_opts_specialist_open(&o, w.interrupt_fd, &engine, &name);
    if (rc == CMD_OK)
        rc = open_all(&w, engine, &home, &e) < 0 ? cmd_fail(o.page, "%s", e.msg) : listen_to(&w);
    local_close(&w.local);
    if (home.opened) {
        home_things_destroy(home.app.things);
        ask_pack_close(&home.pack);
    }
    buf_fini(&w.phrases);
    buf_fini(&w.samples);
    shoal_engine_close(engine);
    model_name_fini(&name);
    term_release_interrupt(w.interrupt_fd);
    opts_fini(&o);
    return rc;
}
