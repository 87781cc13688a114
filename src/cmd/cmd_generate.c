/* cmd_generate.c - shoal generate: continue a text. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/local.h"
#include "cmd/local/model_opts.h"
#include "cmd/local/stream.h"
#include "cmd/remote.h"
#include "cmd/remote_generate.h"
#include "flow/stages.h"
#include "wire/json_out.h"

cmd_fn cmd_generate;

#define MAX_JSON_BYTES ((size_t)256 << 20)

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the prompt from FILE; - means stdin"},
    {"lora", 0, OPTS_TEXT, "PATH", NULL, 0, 0,
     "with this LoRA adapter: a folder as PEFT writes it, or a GGUF file"},
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

static const struct opts_def constraint_defs[] = {
    {"json-schema", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "JSON that satisfies the schema in FILE"},
    {"grammar", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "a text that matches the GBNF grammar in FILE"},
    {"regex", 0, OPTS_TEXT, "REGEX", NULL, 0, 0, "a text that matches REGEX as a whole"},
    {"choice", 0, OPTS_TEXT, "TEXTS", NULL, 0, 0, "one of the texts, separated by commas: yes,no"},
};

static const struct opts_def output_defs[] = {
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object at the end"},
    {"stream", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "with --json: print one object per token, one per line"},
    {"logprobs", 0, OPTS_UINT, "N", "0", 0, 20,
     "with --json: log-probabilities of each token and of the N most likely ones"},
    {"stats", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print speed and token counts to stderr"},
};

static const struct opts_def server_defs[] = {REMOTE_DEFS};

static const struct opts_page page = {
    .command = "generate",
    .arguments = "[PROMPT]",
    .max_args = 1,
    .summary = "Continues a text and streams the result.",
    .details =
        "The prompt is the argument, the contents of -f FILE, or stdin.  One newline at the "
        "end of a\nfile or of stdin is removed.  Ctrl-C stops the generation (exit code 130).",
    .groups = {OPTS_GROUP("Generation", defs),
               OPTS_GROUP("Constraint on the answer (one of these)", constraint_defs),
               OPTS_GROUP("Output", output_defs), &model_opts_sampling_group,
               &model_opts_group_reply, OPTS_GROUP("Server", server_defs)},
    .examples =
        "  shoal generate \"Once upon a time\"\n"
        "  shoal generate -m model.gguf -f prompt.txt -n 100 --temp 0 --stats\n"
        "  echo \"The capital of France is\" | shoal generate -m model.gguf --stop . --json\n"
        "  shoal generate -m model.gguf --json-schema person.json \"A person: \"\n"
        "  shoal generate -m model.gguf --choice yes,no \"Is water wet? \"\n"
        "  shoal generate --server http://edge:8080 \"Once upon a time\"\n",
};

enum mode { MODE_TEXT, MODE_JSON, MODE_JSON_LINES };

struct generation {
    struct sink sink;
    enum mode mode;
    bool logprobs;
    const struct shoal_engine *engine;
    struct stream stream;
    uint32_t n_interrupts, n_tokens;
    struct buf text, tokens, details; /* tokens and details: JSON list items */
    struct json_out tokens_json, details_json;
    /* how it ended */
    bool closed;
    bool ended; /* done and code are valid; otherwise nothing was started, and failure has the
                   reason */
    struct sink_done done;
    int code;
    struct failure failure;
};

static struct generation *generation_of(struct sink *s)
{
    return (struct generation *)(void *)s; /* its first member */
}

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
static void put_logprobs(struct json_out *j, const struct generation *g, const struct sink_token *t)
{
    json_out_member_float(j, "logprob", t->logprobs[0].logprob);
    json_out_member_array(j, "top");
    for (uint32_t i = 1; i < t->n_logprobs; i++) {
        json_out_object(j);
        json_out_member_int(j, "token", t->logprobs[i].token);
        json_out_key(j, "piece");
        put_token_text(j, g, t->logprobs[i].token);
        json_out_member_float(j, "logprob", t->logprobs[i].logprob);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_line(struct generation *g, const struct sink_token *t)
{
    struct buf line;
    buf_init(&line, MAX_JSON_BYTES);
    struct json_out j = json_out_make(&line);
    json_out_object(&j);
    if (t->token >= 0)
        json_out_member_int(&j, "token", t->token);
    json_out_member_strn(&j, "text", t->text, t->text_bytes);
    if (t->logprobs)
        put_logprobs(&j, g, t);
    json_out_object_end(&j);
    buf_putc(&line, '\n');
    stream_put(&g->stream, buf_str(&line), line.len);
    buf_fini(&line);
}

/* ---- events --------------------------------------------------------------------------------- */

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct generation *g = generation_of(s);
    g->n_tokens += t->token >= 0;
    if (g->mode == MODE_TEXT)
        stream_put(&g->stream, t->text, t->text_bytes);
    if (g->mode == MODE_JSON_LINES)
        put_line(g, t);
    if (g->mode == MODE_TEXT)
        return;
    buf_put(&g->text, t->text, t->text_bytes);
    if (t->token < 0)
        return;
    json_out_int(&g->tokens_json, t->token);
    if (t->logprobs && g->mode == MODE_JSON) {
        struct json_out *j = &g->details_json;
        json_out_object(j);
        json_out_member_int(j, "token", t->token);
        json_out_key(j, "piece");
        put_token_text(j, g, t->token);
        put_logprobs(j, g, t);
        json_out_object_end(j);
    }
}

static void on_broke_off(struct sink *s, const struct sink_done *d, int code)
{
    struct generation *g = generation_of(s);
    g->ended = true;
    g->done = *d;
    g->done.generated_tokens = g->n_tokens; /* after Ctrl-C the last ones are not shown */
    g->code = code;
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    on_broke_off(s, d, 0);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    generation_of(s)->failure = *f;
}

static void on_closed(struct sink *s)
{
    generation_of(s)->closed = true;
}

static bool on_interrupt(void *ctx)
{
    struct generation *g = ctx;
    flow_cancel(&g->sink);
    return ++g->n_interrupts > 1; /* the second one does not wait for a stuck reader */
}

/* ---- the result ----------------------------------------------------------------------------- */

static const char *finish_name(const struct generation *g)
{
    switch (g->done.finish) {
    case SHOAL_FINISH_STOP:
        return "stop";
    case SHOAL_FINISH_LENGTH:
        return "length";
    default:
        return g->code == SHOAL_ECANCELLED  ? "cancelled"
               : g->code == SHOAL_EDEADLINE ? "deadline"
                                            : "error";
    }
}

static double decode_speed(const struct sink_done *d)
{
    uint64_t ns = d->total_ns - d->first_token_ns;
    return d->generated_tokens > 1 && d->first_token_ns && ns > 0
               ? (double)(d->generated_tokens - 1) * 1e9 / (double)ns
               : 0;
}

static double prompt_speed(const struct sink_done *d)
{
    uint64_t ns = d->first_token_ns - d->queue_ns;
    return d->first_token_ns > d->queue_ns
               ? (double)(d->prompt_tokens - d->cached_tokens) * 1e9 / (double)ns
               : 0;
}

static void put_result(struct buf *b, const struct generation *g, const char *model, uint64_t seed)
{
    const struct sink_done *d = &g->done;
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct json_out j = json_out_make(b);
    shoal_engine_info(g->engine, &info);
    json_out_object(&j);
    if (g->mode == MODE_JSON_LINES)
        json_out_member_bool(&j, "done", true);
    json_out_member_str(&j, "model", model);
    json_out_member_strn(&j, "text", buf_str(&g->text), g->text.len);
    json_out_member_array(&j, "tokens");
    buf_put(b, buf_str(&g->tokens), g->tokens.len);
    json_out_array_end(&j);
    if (g->logprobs && g->mode == MODE_JSON) {
        json_out_member_array(&j, "logprobs");
        buf_put(b, buf_str(&g->details), g->details.len);
        json_out_array_end(&j);
    }
    json_out_member_str(&j, "finish", finish_name(g));
    const struct {
        const char *name;
        uint64_t v;
    } counts[] = {{"prompt_tokens", d->prompt_tokens},
                  {"cached_tokens", d->cached_tokens},
                  {"generated_tokens", d->generated_tokens},
                  {"seed", seed}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        json_out_member_uint(&j, counts[i].name, counts[i].v);
    const struct {
        const char *name;
        double v;
    } times[] = {{"load_ms", info.load_ms},
                 {"queue_ms", (double)d->queue_ns / 1e6},
                 {"first_token_ms", (double)d->first_token_ns / 1e6},
                 {"total_ms", (double)d->total_ns / 1e6},
                 {"prompt_tok_s", prompt_speed(d)},
                 {"decode_tok_s", decode_speed(d)}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        json_out_member_num(&j, times[i].name, times[i].v);
    json_out_member_str(&j, "kernels", info.kernels);
    json_out_member_uint(&j, "threads", info.n_threads);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void print_stats(const struct generation *g, uint64_t seed)
{
    const struct sink_done *d = &g->done;
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(g->engine, &info);
    fprintf(stderr,
            "prompt    %u token%s (%u cached), %.1f tokens/s, first token after %.1f ms\n"
            "generated %u token%s, %.1f tokens/s, %s\n"
            "load      %.1f ms%s, %s kernels, %u thread%s, seed %llu\n",
            d->prompt_tokens, plural(d->prompt_tokens), d->cached_tokens, prompt_speed(d),
            (double)d->first_token_ns / 1e6, d->generated_tokens, plural(d->generated_tokens),
            decode_speed(d), finish_name(g), info.load_ms,
            info.from_cache ? " (tiled weights from the cache)" : "", info.kernels, info.n_threads,
            plural(info.n_threads), (unsigned long long)seed);
}

/* ---- the prompt ----------------------------------------------------------------------------- */

struct prompt_input {
    struct buf text;
    struct buf constraint; /* its text */
    enum shoal_constraint constraint_kind;
    int32_t *tokens; /* mem_free */
    size_t n;
};

static void put_choices(struct buf *b, const char *texts)
{
    struct json_out j = json_out_make(b);
    json_out_array(&j);
    for (const char *at = texts;; at++) {
        size_t n = strcspn(at, ",");
        json_out_strn(&j, at, n);
        at += n;
        if (!*at)
            break;
    }
    json_out_array_end(&j);
}

static int read_constraint(const struct opts *o, struct prompt_input *p)
{
    static const struct {
        const char *option;
        enum shoal_constraint kind;
    } kinds[] = {{"json-schema", SHOAL_CONSTRAINT_SCHEMA},
                 {"grammar", SHOAL_CONSTRAINT_GBNF},
                 {"regex", SHOAL_CONSTRAINT_REGEX},
                 {"choice", SHOAL_CONSTRAINT_CHOICE}};
    int rc = CMD_OK;
    buf_init(&p->constraint, MAX_JSON_BYTES);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && rc == CMD_OK; i++) {
        const char *v = opts_text(o, kinds[i].option);
        if (!v)
            continue;
        if (p->constraint_kind != SHOAL_CONSTRAINT_NONE)
            return opts_usage(o->page, "give only one of --json-schema, --grammar, --regex and "
                                       "--choice");
        p->constraint_kind = kinds[i].kind;
        if (kinds[i].kind == SHOAL_CONSTRAINT_CHOICE)
            put_choices(&p->constraint, v);
        else if (kinds[i].kind == SHOAL_CONSTRAINT_REGEX)
            buf_puts(&p->constraint, v);
        else
            rc = cmd_read_text(o, NULL, v, &p->constraint);
    }
    return rc;
}

/* Called before the model is loaded, so that mistakes are reported at once. */
static int read_prompt(const struct opts *o, struct prompt_input *p)
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
                           struct prompt_input *p)
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

/* The last tokens of the prompt count as generated before. */
static void set_resume(struct request *r, const struct opts *o, struct request_prompt *p)
{
    struct request_resume *resume = arena_zalloc(&r->arena, sizeof(*resume));
    uint32_t n = opts_u32(o, "continued");
    if (!resume)
        return; /* request_rc tells */
    p->n_ids -= n;
    resume->tokens = p->ids + p->n_ids;
    resume->n_tokens = n;
    r->generate.resume = resume;
    if (r->generate.max_tokens > 0) /* --max-tokens counts only new tokens */
        r->generate.max_tokens += n;
}

/* Tokens, stops and bias belong to the command, which outlives the request. */
static int fill(struct request *r, const struct opts *o, const struct generation *g,
                const struct sampling_opts *so, const struct prompt_input *p)
{
    struct request_prompt *prompt = arena_zalloc(&r->arena, sizeof(*prompt));
    struct request_generate *q = &r->generate;
    r->kind = REQUEST_GENERATE;
    r->model = opts_text(o, "model");
    r->received_ns = clock_ns();
    request_set_budget(r, (double)opts_uint(o, "deadline-ms"));
    q->n_prompts = q->n = 1;
    q->prompts = prompt;
    q->max_tokens = opts_u32(o, "max-tokens");
    q->sampling = so->sampling;
    q->sampling.logprobs = g->logprobs;
    q->sampling.n_logprobs = opts_u32(o, "logprobs");
    q->has_seed = true;
    q->ignore_end = opts_flag(o, "ignore-end");
    q->special = opts_flag(o, "special");
    q->n_stop = (uint32_t)opts_list(o, "stop", &q->stop);
    q->constraint =
        (struct request_constraint){p->constraint_kind, buf_str(&p->constraint), p->constraint.len};
    if (prompt)
        *prompt = (struct request_prompt){.ids = p->tokens, .n_ids = p->n};
    if (prompt && opts_u32(o, "continued") > 0)
        set_resume(r, o, prompt);
    return request_rc(r);
}

static int conclude(const struct opts *o, struct generation *g, uint64_t seed)
{
    int rc = CMD_OK;
    if (g->mode != MODE_TEXT) {
        struct buf b;
        buf_init(&b, MAX_JSON_BYTES);
        put_result(&b, g, opts_text(o, "model"), seed);
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
                             : cmd_fail(o->page, "%s after %u token%s", err_text(g->code),
                                        g->done.generated_tokens, plural(g->done.generated_tokens));
    return rc;
}

static int generate(const struct opts *o, struct generation *g, struct local *l,
                    const struct sampling_opts *so, const struct prompt_input *p, int interrupt_fd)
{
    struct err e = {0};
    if (opts_u32(o, "continued") > p->n)
        return cmd_fail(o->page, "--continued is %u, but the prompt has only %zu token%s",
                        opts_u32(o, "continued"), p->n, plural(p->n));
    struct request *r = flow_take_request(&l->owner);
    if (!r || fill(r, o, g, so, p) < 0) {
        if (r)
            flow_give_request(&l->owner, r);
        return cmd_fail(o->page, "out of memory");
    }
    stages_run(&l->owner, r, &g->sink);
    int failed = stream_pump(&g->stream, &l->queue, &g->closed, STDOUT_FILENO, interrupt_fd,
                             on_interrupt, g, &e);
    if (failed < 0)
        flow_cancel(&g->sink);
    while (!g->closed)
        (void)local_turn(l, -1);
    return failed < 0  ? cmd_fail(o->page, "%s", e.msg)
           : !g->ended ? cmd_fail(o->page, "%s", g->failure.message)
                       : conclude(o, g, so->sampling.seed);
}

static int run(const struct opts *o, struct generation *g, const struct sampling_opts *so,
               struct prompt_input *p, int interrupt_fd)
{
    struct shoal_engine *engine = NULL;
    struct local l = {.opened = false};
    struct err e = {0};
    /* One task needs a cache for one sequence. */
    const struct shoal_engine_opts base = {.size = sizeof(base), .max_tasks = 1};
    int rc = model_opts_open(o, &base, interrupt_fd, &engine);
    if (rc != CMD_OK)
        return rc;
    g->engine = engine;
    rc = tokenize_prompt(o, engine, p);
    if (rc == CMD_OK &&
        (local_open(&l, &e) < 0 || local_lend(&l, opts_text(o, "model"), NULL, engine, &e) < 0 ||
         local_adapt(&l, opts_text(o, "model"), opts_text(o, "lora"), engine, &e) < 0))
        rc = cmd_fail(o->page, "%s", e.msg);
    if (rc == CMD_OK && opts_flag(o, "echo") && g->mode == MODE_TEXT)
        stream_put(&g->stream, buf_str(&p->text), p->text.len);
    if (rc == CMD_OK)
        rc = generate(o, g, &l, so, p, interrupt_fd);
    local_close(&l);
    shoal_engine_close(engine);
    return rc;
}

int cmd_generate(int argc, const char *const *argv)
{
    struct opts o;
    struct prompt_input prompt = {0};
    struct sampling_opts so = {0};
    int rc, interrupt_fd = -1;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = on_broke_off};
    struct generation g = {.sink = {.ops = &ops}, .logprobs = opts_given(&o, "logprobs")};
    g.mode = !opts_flag(&o, "json")    ? MODE_TEXT
             : opts_flag(&o, "stream") ? MODE_JSON_LINES
                                       : MODE_JSON;
    stream_init(&g.stream);
    buf_init(&g.text, MAX_JSON_BYTES);
    buf_init(&g.tokens, MAX_JSON_BYTES);
    buf_init(&g.details, MAX_JSON_BYTES);
    g.tokens_json = json_out_make(&g.tokens);
    g.details_json = json_out_make(&g.details);
    if (g.logprobs && g.mode == MODE_TEXT)
        rc = opts_usage(&page, "--logprobs needs --json");
    else
        rc = read_constraint(&o, &prompt);
    if (rc == CMD_OK)
        rc = read_prompt(&o, &prompt);
    if (rc == CMD_OK)
        rc = model_opts_sampling_read(&o, &so);
    if (rc == CMD_OK) {
        interrupt_fd = term_catch_interrupt();
        rc = remote_server(&o) ? remote_generate(&o, &prompt.text, interrupt_fd)
                               : run(&o, &g, &so, &prompt, interrupt_fd);
    }
    term_release_interrupt(interrupt_fd);
    model_opts_sampling_fini(&so);
    buf_fini(&prompt.text);
    buf_fini(&prompt.constraint);
    mem_free(prompt.tokens);
    stream_fini(&g.stream);
    buf_fini(&g.text);
    buf_fini(&g.tokens);
    buf_fini(&g.details);
    opts_fini(&o);
    return rc;
}
