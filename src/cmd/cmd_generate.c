/* cmd_generate.c - shoal generate: continue a text. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/model_opts.h"
#include "cmd/stream.h"
#include "cmd/term.h"
#include "wire/json_out.h"

#define MAX_JSON_BYTES ((size_t)256 << 20)

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the prompt from FILE; - means stdin"},
    {"tokens", 0, OPTS_TEXT, "IDS", NULL, 0, 0, "the prompt as token ids: 1,2,3"},
    {"continued", 0, OPTS_UINT, "N", "0", 0, 16777216,
     "treat the last N prompt tokens as generated: penalties count them"},
    {"max-tokens", 'n', OPTS_UINT, "N", "256", 0, 16777216,
     "maximum tokens to generate; 0: until the context is full"},
    {"stop", 0, OPTS_LIST, "TEXT", NULL, 0, 0, "stop before this text; may be repeated"},
    {"ignore-end", 0, OPTS_FLAG, NULL, NULL, 0, 0, "continue after the model's end token"},
    {"special", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "parse special tokens in the prompt and print generated ones"},
    {"echo", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the prompt before the generated text"},
    {"deadline-ms", 0, OPTS_UINT, "MS", "0", 0, 86400000, "stop after this time; 0: no limit"},
};

static const struct opts_def output_defs[] = {
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object at the end"},
    {"stream", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "with --json: print one object per token, one per line"},
    {"logprobs", 0, OPTS_UINT, "N", "0", 0, 20,
     "with --json: log-probabilities of each token and of the N most likely ones"},
    {"stats", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print speed and token counts to stderr"},
};

static const struct opts_page page = {
    .command = "generate",
    .arguments = "[PROMPT]",
    .max_args = 1,
    .summary = "Continues a text and streams the result.",
    .details =
        "The prompt is the argument, the contents of -f FILE, or stdin.  One newline at the "
        "end of a\nfile or of stdin is removed.  Ctrl-C stops the generation (exit code 130).",
    .groups = {OPTS_GROUP("Generation", defs), OPTS_GROUP("Output", output_defs)},
    .examples =
        "  shoal generate -m stories15M.gguf \"Once upon a time\"\n"
        "  shoal generate -m model.gguf -f prompt.txt -n 100 --temp 0 --stats\n"
        "  echo \"The capital of France is\" | shoal generate -m model.gguf --stop . --json\n",
};

/* The page plus the option groups of other files, which are not constant expressions. */
static struct opts_page full_page(void)
{
    struct opts_page p = page;
    p.groups[2] = sampling_opts_group;
    p.groups[3] = model_opts_group;
    return p;
}

enum mode { MODE_TEXT, MODE_JSON, MODE_JSON_LINES };

struct generation {
    enum mode mode;
    bool logprobs;
    const struct shoal_engine *engine;
    struct stream stream;
    struct shoal_task *task;
    uint32_t n_interrupts;
    /* written by the engine's thread until the end, then by the main thread */
    struct buf text, tokens, details; /* tokens and details: JSON list items */
    struct json_out tokens_json, details_json;
    struct shoal_event done;
};

static void put_token_text(struct json_out *j, const struct generation *g, int32_t token)
{
    char *text = NULL;
    size_t n = 0;
    if (shoal_detokenize(g->engine, &token, 1, SHOAL_TEXT_SPECIAL, &text, &n, NULL) == 0)
        json_out_strn(j, text, n);
    else
        json_out_null(j);
    shoal_free(text);
}

/* "logprob":...,"top":[...] of one token. */
static void put_logprobs(struct json_out *j, const struct generation *g,
                         const struct shoal_event *ev)
{
    json_out_key(j, "logprob");
    json_out_float(j, ev->logprob);
    json_out_key(j, "top");
    json_out_array(j);
    for (uint32_t i = 0; i < ev->n_top; i++) {
        json_out_object(j);
        json_out_key(j, "token");
        json_out_int(j, ev->top[i].token);
        json_out_key(j, "piece");
        put_token_text(j, g, ev->top[i].token);
        json_out_key(j, "logprob");
        json_out_float(j, ev->top[i].logprob);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_line(struct generation *g, const struct shoal_event *ev)
{
    struct buf line;
    buf_init(&line, MAX_JSON_BYTES);
    struct json_out j = json_out_make(&line);
    json_out_object(&j);
    if (ev->token >= 0) {
        json_out_key(&j, "token");
        json_out_int(&j, ev->token);
    }
    json_out_key(&j, "text");
    json_out_strn(&j, ev->text, ev->text_bytes);
    if (g->logprobs && ev->token >= 0)
        put_logprobs(&j, g, ev);
    json_out_object_end(&j);
    buf_putc(&line, '\n');
    stream_put(&g->stream, buf_str(&line), line.len);
    buf_fini(&line);
}

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct generation *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE) {
        g->done = *ev;
        stream_end(&g->stream);
        return;
    }
    if (g->mode == MODE_TEXT)
        stream_put(&g->stream, ev->text, ev->text_bytes);
    if (g->mode == MODE_JSON_LINES)
        put_line(g, ev);
    if (g->mode == MODE_TEXT)
        return;
    buf_put(&g->text, ev->text, ev->text_bytes);
    if (ev->token < 0)
        return;
    json_out_int(&g->tokens_json, ev->token);
    if (g->logprobs && g->mode == MODE_JSON) {
        struct json_out *j = &g->details_json;
        json_out_object(j);
        json_out_key(j, "token");
        json_out_int(j, ev->token);
        json_out_key(j, "piece");
        put_token_text(j, g, ev->token);
        put_logprobs(j, g, ev);
        json_out_object_end(j);
    }
}

static bool on_interrupt(void *ctx)
{
    struct generation *g = ctx;
    shoal_task_cancel(g->task);
    return ++g->n_interrupts > 1; /* the second one does not wait for a stuck reader */
}

static const char *finish_name(const struct shoal_event *done)
{
    switch (done->finish) {
    case SHOAL_FINISH_STOP:
        return "stop";
    case SHOAL_FINISH_LENGTH:
        return "length";
    default:
        return done->code == SHOAL_ECANCELLED  ? "cancelled"
               : done->code == SHOAL_EDEADLINE ? "deadline"
                                               : "error";
    }
}

static double decode_speed(const struct shoal_event *d)
{
    uint64_t ns = d->total_ns - d->first_token_ns;
    return d->generated_tokens > 1 && d->first_token_ns && ns > 0
               ? (double)(d->generated_tokens - 1) * 1e9 / (double)ns
               : 0;
}

static double prompt_speed(const struct shoal_event *d)
{
    uint64_t ns = d->first_token_ns - d->queue_ns;
    return d->first_token_ns > d->queue_ns
               ? (double)(d->prompt_tokens - d->cached_tokens) * 1e9 / (double)ns
               : 0;
}

static void put_result(struct buf *b, const struct generation *g, uint64_t seed)
{
    const struct shoal_event *d = &g->done;
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct json_out j = json_out_make(b);
    shoal_engine_info(g->engine, &info);
    json_out_object(&j);
    if (g->mode == MODE_JSON_LINES) {
        json_out_key(&j, "done");
        json_out_bool(&j, true);
    }
    json_out_key(&j, "text");
    json_out_strn(&j, buf_str(&g->text), g->text.len);
    json_out_key(&j, "tokens");
    json_out_array(&j);
    buf_put(b, buf_str(&g->tokens), g->tokens.len);
    json_out_array_end(&j);
    if (g->logprobs && g->mode == MODE_JSON) {
        json_out_key(&j, "logprobs");
        json_out_array(&j);
        buf_put(b, buf_str(&g->details), g->details.len);
        json_out_array_end(&j);
    }
    json_out_key(&j, "finish");
    json_out_str(&j, finish_name(d));
    const struct {
        const char *name;
        uint64_t v;
    } counts[] = {{"prompt_tokens", d->prompt_tokens},
                  {"cached_tokens", d->cached_tokens},
                  {"generated_tokens", d->generated_tokens},
                  {"seed", seed}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        json_out_key(&j, counts[i].name);
        json_out_uint(&j, counts[i].v);
    }
    const struct {
        const char *name;
        double v;
    } times[] = {{"load_ms", info.load_ms},
                 {"queue_ms", (double)d->queue_ns / 1e6},
                 {"first_token_ms", (double)d->first_token_ns / 1e6},
                 {"total_ms", (double)d->total_ns / 1e6},
                 {"prompt_tok_s", prompt_speed(d)},
                 {"decode_tok_s", decode_speed(d)}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        json_out_key(&j, times[i].name);
        json_out_num(&j, times[i].v);
    }
    json_out_key(&j, "kernels");
    json_out_str(&j, info.kernels);
    json_out_key(&j, "threads");
    json_out_uint(&j, info.n_threads);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void print_stats(const struct generation *g, uint64_t seed)
{
    const struct shoal_event *d = &g->done;
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(g->engine, &info);
    fprintf(stderr,
            "prompt    %u tokens (%u cached), %.1f tokens/s, first token after %.1f ms\n"
            "generated %u tokens, %.1f tokens/s, %s\n"
            "load      %.1f ms%s, %s kernels, %u threads, seed %llu\n",
            d->prompt_tokens, d->cached_tokens, prompt_speed(d), (double)d->first_token_ns / 1e6,
            d->generated_tokens, decode_speed(d), finish_name(d), info.load_ms,
            info.from_cache ? " (tiled weights from the cache)" : "", info.kernels, info.n_threads,
            (unsigned long long)seed);
}

/* ---- the prompt ----------------------------------------------------------------------------- */

struct prompt {
    struct buf text;
    int32_t *tokens; /* mem_free */
    size_t n;
};

/* Called before the model is loaded, so that mistakes are reported at once. */
static int read_prompt(const struct opts *o, struct prompt *p)
{
    const char *argument = o->n_args > 0 ? o->args[0] : NULL, *ids = opts_text(o, "tokens");
    struct buf *text = &p->text;
    struct err e = {0};
    if (ids && (argument || opts_text(o, "file")))
        return opts_usage(o->page, "give either a text or token ids, not both");
    if (ids)
        return cmd_parse_ids(ids, strlen(ids), &p->tokens, &p->n, &e) < 0
                   ? opts_usage(o->page, "--tokens: %s", e.msg)
                   : CMD_OK;
    int rc = cmd_read_text(o, argument, opts_text(o, "file"), text);
    bool typed = argument && strcmp(argument, "-") != 0;
    if (rc == CMD_OK && !typed && text->len > 0 && text->data[text->len - 1] == '\n') {
        text->len--;
        if (text->len > 0 && text->data[text->len - 1] == '\r')
            text->len--;
        text->data[text->len] = '\0';
    }
    return rc;
}

static int tokenize_prompt(const struct opts *o, const struct shoal_engine *engine,
                           struct prompt *p)
{
    struct err e = {0};
    unsigned flags = SHOAL_TEXT_ADD_SPECIAL;
    if (opts_flag(o, "special"))
        flags |= SHOAL_TEXT_PARSE_SPECIAL;
    if (opts_text(o, "tokens"))
        return CMD_OK;
    if (shoal_tokenize(engine, buf_str(&p->text), p->text.len, flags, &p->tokens, &p->n, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

static int submit(const struct opts *o, struct generation *g, struct shoal_engine *engine,
                  const struct sampling_opts *so, const struct prompt *p)
{
    struct err e = {0};
    struct shoal_task_opts t = {.size = sizeof(t),
                                .tokens = p->tokens,
                                .n_tokens = p->n < UINT32_MAX ? (uint32_t)p->n : UINT32_MAX,
                                .n_continued = opts_u32(o, "continued"),
                                .max_tokens = opts_u32(o, "max-tokens"),
                                .sampling = so->sampling,
                                .ignore_end = opts_flag(o, "ignore-end"),
                                .special = opts_flag(o, "special"),
                                .event = on_event,
                                .event_ctx = g};
    t.n_stop = (uint32_t)opts_list(o, "stop", &t.stop);
    t.sampling.logprobs = g->logprobs;
    t.sampling.n_logprobs = opts_u32(o, "logprobs");
    if (opts_u32(o, "deadline-ms"))
        t.deadline_ns = clock_ns() + opts_uint(o, "deadline-ms") * 1000000u;
    if (shoal_task_submit(engine, &t, &g->task, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

static int conclude(const struct opts *o, struct generation *g, uint64_t seed)
{
    int rc = CMD_OK;
    if (g->mode != MODE_TEXT) {
        struct buf b;
        buf_init(&b, MAX_JSON_BYTES);
        put_result(&b, g, seed);
        rc =
            g->text.rc < 0 ? cmd_fail(o->page, "%s", err_text(g->text.rc)) : cmd_print(o->page, &b);
        buf_fini(&b);
    } else if (isatty(STDOUT_FILENO) && g->stream.last && g->stream.last != '\n') {
        if (write(STDOUT_FILENO, "\n", 1) < 0)
            rc = CMD_FAILED;
    }
    if (opts_flag(o, "stats"))
        print_stats(g, seed);
    if (g->done.finish == SHOAL_FINISH_ERROR && rc == CMD_OK)
        rc = g->n_interrupts ? CMD_INTERRUPTED
                             : cmd_fail(o->page, "%s after %u tokens", err_text(g->done.code),
                                        g->done.generated_tokens);
    return rc;
}

static int run(const struct opts *o, struct generation *g, const struct sampling_opts *so,
               struct prompt *p, int interrupt_fd)
{
    struct shoal_engine *engine = NULL;
    struct err e = {0};
    /* One task needs a cache for one sequence. */
    const struct shoal_engine_opts base = {.size = sizeof(base), .max_tasks = 1};
    int rc = model_opts_open(o, &base, interrupt_fd, &engine);
    if (rc != CMD_OK)
        return rc;
    g->engine = engine;
    rc = tokenize_prompt(o, engine, p);
    if (rc == CMD_OK && stream_init(&g->stream, &e) < 0)
        rc = cmd_fail(o->page, "%s", e.msg);
    if (rc == CMD_OK && opts_flag(o, "echo") && g->mode == MODE_TEXT)
        stream_put(&g->stream, buf_str(&p->text), p->text.len);
    if (rc == CMD_OK)
        rc = submit(o, g, engine, so, p);
    if (rc == CMD_OK) {
        int failed = stream_pump(&g->stream, STDOUT_FILENO, interrupt_fd, on_interrupt, g, &e);
        if (failed < 0)
            shoal_task_cancel(g->task);
        (void)shoal_task_wait(g->task);
        rc = failed < 0 ? cmd_fail(o->page, "%s", e.msg) : conclude(o, g, so->sampling.seed);
    }
    shoal_task_free(g->task);
    shoal_engine_close(engine);
    stream_fini(&g->stream);
    return rc;
}

int cmd_generate(int argc, const char *const *argv)
{
    const struct opts_page p = full_page();
    struct opts o;
    struct prompt prompt = {0};
    struct sampling_opts so = {0};
    int rc, interrupt_fd = -1;
    if (!cmd_begin(&o, &p, argc, argv, &rc))
        return rc;
    struct generation g = {.logprobs = opts_given(&o, "logprobs")};
    g.mode = !opts_flag(&o, "json")    ? MODE_TEXT
             : opts_flag(&o, "stream") ? MODE_JSON_LINES
                                       : MODE_JSON;
    buf_init(&g.text, MAX_JSON_BYTES);
    buf_init(&g.tokens, MAX_JSON_BYTES);
    buf_init(&g.details, MAX_JSON_BYTES);
    g.tokens_json = json_out_make(&g.tokens);
    g.details_json = json_out_make(&g.details);
    if (g.logprobs && g.mode == MODE_TEXT)
        rc = opts_usage(&p, "--logprobs needs --json");
    else if (!opts_text(&o, "model"))
        rc = opts_usage(&p, "no model given: use -m MODEL");
    else
        rc = read_prompt(&o, &prompt);
    if (rc == CMD_OK)
        rc = sampling_opts_read(&o, &so);
    if (rc == CMD_OK) {
        interrupt_fd = term_catch_interrupt();
        rc = run(&o, &g, &so, &prompt, interrupt_fd);
    }
    term_release_interrupt(interrupt_fd);
    sampling_opts_fini(&so);
    buf_fini(&prompt.text);
    mem_free(prompt.tokens);
    buf_fini(&g.text);
    buf_fini(&g.tokens);
    buf_fini(&g.details);
    opts_fini(&o);
    return rc;
}
