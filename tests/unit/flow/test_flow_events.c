/* test_flow_events.c - every event of typed requests to real models, with every field but times,
 * and what the models counted.
 *
 * tests/data/flow/events.txt holds what is expected; SHOAL_GOLDEN=1 writes a new one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/executor_queue.h"
#include "flow/flow_run.h"
#include "flow/pool.h"
#include "host/prompt_cache.h"
#include "host/registry.h"
#include "support/script.h"

#define GOLDEN SHOAL_TEST_DATA "/flow/events.txt"
#define N_CHOICES 4u
#define MAX_TURNS 300 /* each waits up to a second */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const names[] = {"reply", "encoder"};

static struct {
    struct executor_queue owner;
    struct flow flow;
    struct flow_owner requests;
    struct registry_model *models[2];
    struct buf out;
    struct buf
        choices[N_CHOICES]; /* events of each: in which order choices advance is the engine's */
} site;

/* ---- a sink that writes events down ---- */

struct writer {
    struct sink sink; /* first */
    uint32_t n_closed;
    bool full;
};

static void put_text(struct buf *b, const char *p, size_t n)
{
    buf_putc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c < ' ' || c > '~' || c == '"')
            buf_printf(b, "\\x%02x", c);
        else
            buf_putc(b, (char)c);
    }
    buf_putc(b, '"');
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    static const char *const caches[] = {"off", "miss", "hit", "similar"};
    const bool hashed = strcmp(e->model, "anomaly") != 0; /* it is hashed meanwhile */
    buf_printf(&site.out, "start %s cache=%s tools=%d version=%s sum=%s question=%s slot=%s\n",
               e->model, caches[e->cache], (int)e->tools,
               !hashed         ? "?"
               : e->version[0] ? "yes"
                               : "no",
               !hashed  ? "?"
               : e->sum ? "yes"
                        : "no",
               e->question ? "yes" : "no", e->slot ? "yes" : "no");
}

/* How many come in between depends on the engine's speed. */
static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    (void)s;
    if (e->computed == e->cached || e->computed == e->tokens)
        buf_printf(&site.out, "prompt %u: %u, %u cached, %u computed\n", e->choice, e->tokens,
                   e->cached, e->computed);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct buf *b = &site.choices[e->choice];
    (void)s;
    buf_printf(b, "token %u: %d%s ", e->choice, e->token, e->echo ? " echo" : "");
    put_text(b, e->text, e->text_bytes);
    for (uint32_t i = 0; i < e->n_logprobs; i++) {
        const struct sink_logprob *l = &e->logprobs[i];
        buf_printf(b, " %d:", l->token);
        put_text(b, l->text, l->text_bytes);
        buf_printf(b, ":%s%.2f", isnan(l->logprob) ? "none" : "",
                   isnan(l->logprob) ? 0.0 : (double)l->logprob);
    }
    buf_putc(b, '\n');
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    const struct shoal_result *r = e->result;
    (void)s;
    buf_printf(&site.out, "result %u: code %d, %u tokens%s%s", e->index, r->code, r->n_tokens,
               r->truncated ? ", truncated" : "", e->last ? ", last" : "");
    if (r->label)
        buf_printf(&site.out, ", %s %.2f of %u", r->label, (double)r->confidence, r->n_labels);
    for (uint32_t i = 0; i < r->n_spans; i++)
        buf_printf(&site.out, ", %s", r->spans[i].label);
    if (r->n_dims > 0)
        buf_printf(&site.out, ", %u dims %.3f", r->n_dims, (double)r->vector[0]);
    for (uint32_t i = 0; i < r->n_values; i++)
        buf_printf(&site.out, ", %.3f", r->values[i]);
    buf_putc(&site.out, '\n');
}

static void put_choices(void)
{
    for (uint32_t i = 0; i < N_CHOICES; i++) {
        buf_put(&site.out, site.choices[i].data, site.choices[i].len);
        buf_clear(&site.choices[i]);
    }
}

static void put_done(struct buf *b, const char *what, const struct sink_done *e)
{
    static const char *const finishes[] = {[SHOAL_FINISH_STOP] = "stop",
                                           [SHOAL_FINISH_LENGTH] = "length",
                                           [SHOAL_FINISH_ERROR] = "error"};
    buf_printf(b, "%s %u: %s, prompt %u, cached %u, generated %u", what, e->choice,
               finishes[e->finish], e->prompt_tokens, e->cached_tokens, e->generated_tokens);
    if (e->stopped_by_text)
        buf_printf(b, ", by text %u", e->stop_index);
    if (e->generated_tokens > 0) /* times are in order */
        assert_true(e->queue_ns <= e->first_token_ns && e->first_token_ns <= e->total_ns &&
                    e->total_ns > 0);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct buf *b = &site.choices[e->choice];
    (void)s;
    put_done(b, "done", e);
    buf_putc(b, '\n');
    if (e->last) {
        put_choices();
        buf_printf(&site.out, "last: %u, %u, %u\n", e->usage.prompt_tokens, e->usage.cached_tokens,
                   e->usage.generated_tokens);
    }
}

static void on_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    struct buf *b = &site.choices[e->choice];
    (void)s;
    put_done(b, "broke off", e);
    buf_printf(b, ", code %d\n", code);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    (void)s;
    put_choices();
    buf_printf(&site.out, "fail %d, code %d, %s, %s, retry %u: %s\n", (int)f->kind, f->code,
               f->param ? f->param : "-", f->reason ? f->reason : "-", f->retry_after_s,
               f->message);
}

static void on_closed(struct sink *s)
{
    ((struct writer *)(void *)s)->n_closed++;
    put_choices();
    buf_puts(&site.out, "closed\n");
}

static bool on_full(struct sink *s)
{
    return ((struct writer *)(void *)s)->full;
}

static const struct sink_ops ops = {.start = on_start,
                                    .prompt = on_prompt,
                                    .token = on_token,
                                    .result = on_result,
                                    .done = on_done,
                                    .fail = on_fail,
                                    .closed = on_closed,
                                    .broke_off = on_broke_off,
                                    .full = on_full};

/* ---- what the models counted ---- */

static uint64_t samples(struct histogram *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
        n += h->bucket[i];
    return n;
}

static void count(struct model_stats *m, uint64_t out[20])
{
    uint64_t n = 0;
    out[n++] = m->requests;
    out[n++] = m->prompt_tokens;
    out[n++] = m->generated_tokens;
    out[n++] = m->cached_tokens;
    out[n++] = m->prefix_hits;
    out[n++] = m->cancelled;
    out[n++] = m->errors;
    for (uint32_t i = 0; i < MODEL_STATS_N_REFUSED; i++)
        out[n++] = m->refused[i];
    out[n++] = m->cache_hits;
    out[n++] = m->cache_misses;
    out[n++] = samples(&m->queue);
    out[n++] = samples(&m->first_token);
    out[n++] = samples(&m->per_token);
    out[n++] = samples(&m->total);
    out[n++] = m->in_flight;
    assert_int_equal(n, 17);
}

static void put_counts(uint64_t before[2][20])
{
    static const char *const what[] = {
        "requests",    "prompt", "generated", "cached",      "prefix hits", "cancelled",
        "errors",      "busy",   "late",      "invalid",     "cache hits",  "cache misses",
        "queue times", "firsts", "per token", "total times", "in flight"};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t now[20];
        count(&site.models[i]->stats, now);
        for (uint32_t k = 0; k < 17; k++)
            if (now[k] != before[i][k])
                buf_printf(&site.out, "%s: %s %+d\n", names[i], what[k],
                           (int)(now[k] - before[i][k]));
    }
}

/* ---- cases ---- */

static struct request *make(enum request_kind kind, const char *model)
{
    struct request *r = flow_take_request(&site.requests);
    assert_non_null(r);
    r->kind = kind;
    r->model = model;
    return r;
}

static struct request *prompt(const char *text, uint32_t max_tokens)
{
    struct request *r = make(REQUEST_GENERATE, "reply");
    struct request_prompt *p = arena_zalloc_n(&r->arena, 2, sizeof(*p));
    assert_non_null(p);
    p[0] = p[1] = (struct request_prompt){.text = text, .text_bytes = strlen(text)};
    r->generate.prompts = p;
    r->generate.n_prompts = r->generate.n = 1;
    r->generate.max_tokens = max_tokens;
    r->generate.ignore_end = true;
    return r;
}

static struct request *chat(const char *text)
{
    struct request *r = prompt("", 4);
    struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
    *m = (struct chat_message){.role = "user", .content = text, .content_bytes = strlen(text)};
    r->generate.chat.messages = m;
    r->generate.chat.n_messages = 1;
    return r;
}

static struct request_prompt *first_prompt(struct request *r)
{
    return (struct request_prompt *)(uintptr_t)r->generate.prompts;
}

static struct request *infer(enum shoal_kind kind, const char *const *texts, uint32_t n)
{
    struct request *r = make(REQUEST_INFER, "encoder");
    struct request_input *in = arena_zalloc_n(&r->arena, n, sizeof(*in));
    for (uint32_t i = 0; i < n; i++)
        in[i] = (struct request_input){.text = texts[i], .text_bytes = strlen(texts[i])};
    r->infer = (struct request_infer){.kind = kind, .inputs = in, .n_inputs = n};
    return r;
}

static struct request *texts(const char *text, bool decode, unsigned flags)
{
    static const int32_t ids[] = {70, 71, 72, 1};
    struct request *r = make(REQUEST_TOKENS, "reply");
    r->tokens.decode = decode;
    r->tokens.flags = flags;
    r->tokens.text = decode ? NULL : text;
    r->tokens.text_bytes = decode ? 0 : strlen(text);
    r->tokens.ids = decode ? ids : NULL;
    r->tokens.n_ids = decode ? 4 : 0;
    return r;
}

static char *long_text(struct request *r, size_t n)
{
    char *p = arena_bytes(&r->arena, n + 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = "the lamp in the hall is on "[i % 27];
    p[n] = '\0';
    return p;
}

/* Runs a request to its end; full: its sink first lets nothing through. */
static void run_with(const char *what, struct request *r, bool full)
{
    struct writer w = {.sink = {.ops = &ops}, .full = full};
    uint64_t before[2][20];
    for (uint32_t i = 0; i < 2; i++)
        count(&site.models[i]->stats, before[i]);
    buf_printf(&site.out, "== %s\n", what);
    flow_run(&site.requests, r, &w.sink);
    if (full) {
        for (int i = 0; i < 2; i++)
            executor_queue_turn(&site.owner, 1000);
        buf_puts(&site.out, "-- resumed\n");
        w.full = false;
        flow_resume(&w.sink);
    }
    for (int i = 0; i < MAX_TURNS && w.n_closed == 0; i++)
        executor_queue_turn(&site.owner, 1000);
    assert_int_equal(w.n_closed, 1);
    assert_null(w.sink.job);
    assert_int_equal(site.requests.n_jobs, 0);
    put_counts(before);
}

static void run(const char *what, struct request *r)
{
    run_with(what, r, false);
}

static void run_prompts(void)
{
    static const int32_t ids[] = {5, 6, 7}, bad[] = {5, 1 << 30};
    struct request *r;
    run("four tokens", prompt("ask: what time is it", 4));
    run("the same from the cache", prompt("ask: what time is it", 4));
    r = prompt("ask: what time is it", 4);
    r->no_cache = true;
    run("the same, but not from the cache", r);
    for (int twice = 0; twice < 2; twice++) {
        r = prompt("ask: is it late", 3);
        r->generate.sampling.logprobs = true;
        r->generate.sampling.n_logprobs = 2;
        run("with two alternatives", r);
    }
    r = prompt("lights off", 2);
    r->generate.echo = true;
    run("with an echo", r);
    r = prompt("lights off", 2);
    r->generate.echo = r->generate.prompt_logprobs = r->generate.sampling.logprobs = true;
    run("with an echo that has log-probabilities", r);
    r = prompt("<|im_start|>lights", 1);
    r->generate.echo = r->generate.parse_special = true;
    run("an echo without special tokens", r);
    r = prompt("<|im_start|>lights", 1);
    r->generate.echo = r->generate.parse_special = r->generate.special = true;
    run("an echo with special tokens", r);
    r = prompt("lights off", 2);
    r->generate.prompt_only = true;
    run("the prompt alone", r);
    r = prompt("lights off", 2);
    r->generate.prompt_only = r->generate.prompt_logprobs = r->generate.echo =
        r->generate.sampling.logprobs = true;
    run("the prompt alone, with log-probabilities", r);
    for (int twice = 0; twice < 2; twice++) {
        r = prompt("", 2);
        first_prompt(r)->text = long_text(r, 500);
        first_prompt(r)->text_bytes = 500;
        r->generate.progress = true;
        run(twice ? "progress of a cached answer" : "progress", r);
    }
    r = prompt("", 2);
    r->input_bytes = 9 << 10;
    first_prompt(r)->text = long_text(r, r->input_bytes);
    first_prompt(r)->text_bytes = r->input_bytes;
    run("a prompt that is too long, on the pool", r);
    r = prompt("a short one", 1);
    first_prompt(r)[1].text = long_text(r, 9000);
    first_prompt(r)[1].text_bytes = 9000;
    r->generate.n_prompts = 2;
    run("the second of two is too long", r);
    r = prompt("", 2);
    first_prompt(r)[0] = (struct request_prompt){.ids = ids, .n_ids = 3};
    run("token ids", r);
    r = prompt("", 2);
    first_prompt(r)[0] = (struct request_prompt){.ids = bad, .n_ids = 2};
    run("ids of no token", r);
    r = prompt("", 0);
    r->generate.max_tokens = 2;
    run("nothing", r);
    const struct request_piece pieces[] = {{.text = "ask: ", .text_bytes = 5},
                                           {.ids = ids, .n_ids = 3},
                                           {.text = "lamp", .text_bytes = 4}};
    r = prompt("", 1);
    first_prompt(r)[0] = (struct request_prompt){.pieces = pieces, .n_pieces = 3};
    r->generate.echo = true;
    run("pieces", r);
    r = prompt("", 1);
    first_prompt(r)[0] = (struct request_prompt){.pieces = pieces + 1, .n_pieces = 2};
    r->generate.echo = true;
    run("pieces that begin with ids", r);
    r = prompt("int f(", 1);
    first_prompt(r)->suffix = "}";
    first_prompt(r)->suffix_bytes = 1;
    r->no_cache = true;
    run("a text to fill in", r);
}

static void run_choices(void)
{
    static const char *const stop[] = {"nothing", "e"};
    static struct request_bias many[2];
    struct request *r;
    for (int way = 0; way < 3; way++) { /* with the client's seed, a forwarder's, none */
        r = prompt("ask: tell me about the weather", 3);
        r->generate.n_prompts = r->generate.n = 2;
        r->generate.sampling = (struct shoal_sampling){.temperature = 1, .seed = 77};
        r->generate.has_seed = way == 0;
        r->generate.seeded = way == 1;
        run(way == 0   ? "two prompts, two choices, a seed"
            : way == 1 ? "a seed of the forwarder"
                       : "no seed",
            r);
    }
    r = prompt("ask: tell me about the weather", 30);
    r->generate.stop = stop;
    r->generate.n_stop = 2;
    run("a stop text", r);
    many[0] = (struct request_bias){"lamp", 30};
    r = prompt("ask: tell me about the weather", 3);
    r->generate.bias_texts = many;
    r->generate.n_bias_texts = 1;
    r->no_cache = true; /* the key covers biases of ids only */
    run("a biased text", r);
    r = prompt("ask: tell me about the weather", 3);
    char *text = long_text(r, 8000);
    many[1] = (struct request_bias){text, 1};
    r->generate.bias_texts = many;
    r->generate.n_bias_texts = 2;
    r->no_cache = true;
    run("a biased text that is too long", r);
    r = prompt("ask: tell me", 3);
    r->generate.constraint = (struct request_constraint){SHOAL_CONSTRAINT_REGEX, "a[bc]d", 6};
    run("an expression", r);
    r = prompt("ask: tell me", 3);
    r->generate.constraint = (struct request_constraint){SHOAL_CONSTRAINT_REGEX, "a[b", 3};
    run("an expression that is none", r);
    const struct request_resume begun[] = {{.done = true}, {false, (const int32_t[]){70, 71}, 2}};
    r = prompt("ask: tell me", 2);
    r->generate.n = 2;
    r->generate.resume = begun;
    r->generate.progress = r->generate.echo = true;
    run("one choice is complete, the other has all its tokens", r);
    r = prompt("ask: tell me", 3);
    r->generate.n = 2;
    r->generate.resume = begun;
    run("and lacks one", r);
    run_with("a sink that is full", prompt("count to ten", 3), true);
}

static void run_chats(void)
{
    static const struct chat_tool tools[] = {{.name = "lamp", .description = "switches the lamp"}};
    struct request *r;
    run("a conversation", chat("hello"));
    r = chat("hello");
    r->generate.chat.tools = tools;
    r->generate.chat.n_tools = 1;
    run("with a tool", r);
    r = chat("hello");
    r->generate.chat.tools = tools;
    r->generate.chat.n_tools = 1;
    r->generate.chat.tool_choice = CHAT_TOOLS_NONE;
    run("with a tool that it does not see", r);
    r = chat("hello");
    r->generate.chat.tools = tools;
    r->generate.chat.n_tools = 1;
    r->generate.chat.tool_choice = CHAT_TOOLS_REQUIRED;
    r->generate.max_tokens = 40;
    run("with a tool that it must call", r);
    r = chat("hello");
    r->generate.chat.tools = tools;
    r->generate.chat.n_tools = 1;
    r->generate.chat.tool_choice = CHAT_TOOLS_REQUIRED;
    r->generate.constraint = (struct request_constraint){SHOAL_CONSTRAINT_JSON, "", 0};
    run("that, and a format", r);
    r = chat("hello");
    r->generate.chat.template = "{{ nothing";
    run("a template that is none", r);
}

static void run_refused(void)
{
    struct request *r;
    r = prompt("a", 1);
    r->model = "nope";
    run("no such model", r);
    r = prompt("a", 1);
    r->model = NULL;
    run("the default model", r);
    r = prompt("a", 1);
    r->model = "reply:latest";
    run("the latest", r);
    r = prompt("a", 1);
    r->model = "default";
    run("any model", r);
    r = prompt("a", 1);
    r->model = "encoder";
    run("a model that does not generate", r);
    r = prompt("never seen before", 1);
    r->deadline_ns = 1;
    run("too late", r);
    r = make(REQUEST_ASK, NULL);
    r->ask.text = "hello";
    run("nobody answers asks", r);
}

static void run_specialists(void)
{
    static const char *const lines[] = {"turn off the kitchen lights", "hello there",
                                        "18 degrees please"};
    static const int32_t ids[] = {10, 11, 12}, bad[] = {10, 1 << 30}, negative[] = {-1};
    struct request *r;
    run("classes", infer(SHOAL_KIND_CLASSIFY, lines, 3));
    r = infer(SHOAL_KIND_CLASSIFY, lines, 1);
    r->infer.labels = "nope";
    run("classes of no set", r);
    run("spans", infer(SHOAL_KIND_TAG, lines, 2));
    run("vectors", infer(SHOAL_KIND_EMBED, lines, 2));
    r = infer(SHOAL_KIND_EMBED, lines, 1);
    r->infer.dimensions = 8;
    run("short vectors", r);
    r = infer(SHOAL_KIND_EMBED, lines, 1);
    r->infer.prompt = "";
    run("a vector without a prompt", r);
    const struct {
        const char *what;
        const int32_t *ids;
        uint32_t n;
    } of_ids[] = {{"the vector of ids", ids, 3},
                  {"of an id that is too high", bad, 2},
                  {"of a negative one", negative, 1}};
    for (size_t i = 0; i < COUNT(of_ids); i++) {
        r = infer(SHOAL_KIND_EMBED, lines, 1);
        struct request_input *in = (struct request_input *)(uintptr_t)r->infer.inputs;
        *in = (struct request_input){.ids = of_ids[i].ids, .n_ids = of_ids[i].n};
        run(of_ids[i].what, r);
    }
    r = infer(SHOAL_KIND_RERANK, lines, 2);
    r->infer.query = "which lights are off";
    run("an order of documents", r);
    r = infer(SHOAL_KIND_CLASSIFY, lines, 1);
    r->deadline_ns = 1;
    run("classes, too late", r);
    const char *longer = long_text(r = infer(SHOAL_KIND_CLASSIFY, lines, 1), 6000);
    struct request_input *in = (struct request_input *)(uintptr_t)r->infer.inputs;
    *in = (struct request_input){.text = longer, .text_bytes = 6000};
    r->input_bytes = 6000;
    run("a long text, on the pool", r);
    longer = long_text(r = infer(SHOAL_KIND_CLASSIFY, lines, 1), 6000);
    in = (struct request_input *)(uintptr_t)r->infer.inputs;
    *in = (struct request_input){.text = longer, .text_bytes = 6000};
    r->infer.whole = true;
    run("a long text that must be read whole", r);
    run_with("a full sink", infer(SHOAL_KIND_CLASSIFY, lines, 2), true);
}

/* A model that is not loaded until it is asked: rows of any number of values. */
static void run_rows(void)
{
    static const double one[] = {1, 2}, two[] = {3};
    for (int twice = 0; twice < 2; twice++) {
        struct request *r = make(REQUEST_INFER, "anomaly");
        struct request_input *in = arena_zalloc_n(&r->arena, 2, sizeof(*in));
        in[0] = (struct request_input){.values = one, .n_values = 2};
        in[1] = (struct request_input){.values = two, .n_values = 1};
        r->infer = (struct request_infer){.kind = SHOAL_KIND_SCORE, .inputs = in, .n_inputs = 2};
        run(twice ? "rows again" : "rows, once the model is loaded", r);
    }
    struct request *r = make(REQUEST_INFER, "nowhere");
    struct request_input *in = arena_zalloc(&r->arena, sizeof(*in));
    *in = (struct request_input){.values = one, .n_values = 2};
    r->infer = (struct request_infer){.kind = SHOAL_KIND_SCORE, .inputs = in, .n_inputs = 1};
    run("a model that cannot be loaded", r);
}

static void run_tokens(void)
{
    struct request *r;
    run("tokens", texts("lamp <|im_start|>", false, 0));
    run("tokens with special ones", texts("lamp <|im_start|>", false, SHOAL_TEXT_PARSE_SPECIAL));
    run("tokens with those that the model adds", texts("lamp", false, SHOAL_TEXT_ADD_SPECIAL));
    run("text", texts(NULL, true, 0));
    run("text with special tokens", texts(NULL, true, SHOAL_TEXT_SPECIAL));
    r = texts("", false, 0);
    r->tokens.metadata = "general.architecture";
    run("metadata", r);
    r = texts("", false, 0);
    r->tokens.metadata = "nope";
    run("no metadata", r);
    r = texts("", false, 0);
    r->tokens.text_bytes = 9 << 10;
    r->tokens.text = memset(long_text(r, r->tokens.text_bytes), 'a', r->tokens.text_bytes);
    r->tokens.metadata = "general.architecture";
    run("metadata beside a long text, on the pool", r);
    r = texts("lamp", false, 0);
    r->model = "encoder";
    run("of a model that does not generate", r);
    r = texts("lamp", false, 0);
    r->model = "encoder";
    r->tokens.kind = SHOAL_KIND_EMBED;
    run("of one that embeds", r);
}

static void test_events(void **state)
{
    struct err e;
    (void)state;
    run_prompts();
    run_choices();
    run_chats();
    run_refused();
    run_specialists();
    run_tokens();
    run_rows();
    assert_int_equal(site.out.rc, 0);
    script_replace(&site.out, SHOAL_TEST_DATA, "$");
    if (getenv("SHOAL_GOLDEN")) {
        script_write(GOLDEN, site.out.data, site.out.len);
        return;
    }
    struct buf want;
    buf_init(&want, 1 << 20);
    assert_int_equal(file_read(GOLDEN, &want, &e), 0);
    assert_string_equal(buf_str(&site.out), buf_str(&want));
    buf_fini(&want);
}

/* ---- without memory ---- */

static struct request *memory_case(uint32_t i)
{
    static const char *const lines[] = {"turn off the kitchen lights", "hello there"};
    static const struct chat_tool tools[] = {{.name = "lamp", .description = "switches"}};
    static const struct request_bias bias[] = {{"lamp", 1}};
    static const int32_t ids[] = {5, 6, 7};
    static const struct request_piece pieces[] = {{.text = "ask: ", .text_bytes = 5},
                                                  {.ids = ids, .n_ids = 3}};
    struct request *r;
    switch (i) {
    case 0:
        r = prompt("ask: never asked before", 2);
        r->generate.n_prompts = r->generate.n = 2;
        break;
    case 1:
        r = prompt("", 1);
        first_prompt(r)[0] = (struct request_prompt){.pieces = pieces, .n_pieces = 2};
        r->generate.echo = true;
        break;
    case 2:
        r = prompt("ask: never asked before", 1);
        r->generate.bias_texts = bias;
        r->generate.n_bias_texts = 1;
        break;
    case 3:
        r = chat("hello");
        r->generate.chat.tools = tools;
        r->generate.chat.n_tools = 1;
        r->generate.chat.tool_choice = CHAT_TOOLS_REQUIRED;
        break;
    case 4:
        r = infer(SHOAL_KIND_CLASSIFY, lines, 2);
        break;
    default:
        r = texts("lamp <|im_start|>", i == 5, 0);
    }
    r->no_cache = true;
    return r;
}

/* Whichever allocation fails: the request ends once, with an answer or a failure, and nothing is
 * left of it. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    buf_clear(&site.out);
    for (uint32_t i = 0; i < 7; i++)
        for (uint64_t k = 1; k < 500; k++) {
            struct writer w = {.sink = {.ops = &ops}};
            struct request *r = memory_case(i);
            const uint64_t before = mem_calls();
            mem_fail_at(k);
            flow_run(&site.requests, r, &w.sink);
            for (int turn = 0; turn < MAX_TURNS && w.n_closed == 0; turn++)
                executor_queue_turn(&site.owner, 1000);
            mem_fail_at(0);
            assert_int_equal(w.n_closed, 1);
            assert_null(w.sink.job);
            assert_int_equal(site.requests.n_jobs, 0);
            for (uint32_t m = 0; m < 2; m++)
                assert_int_equal(site.models[m]->stats.in_flight, 0);
            buf_clear(&site.out);
            if (mem_calls() - before < k)
                break;
        }
}

static int open_site(void **state)
{
    static const struct registry_spec specs[] = {
        {.name = "reply", .path = SHOAL_TEST_DATA "/../../models/reply.gguf", .pinned = true},
        {.name = "encoder", .path = SHOAL_TEST_DATA "/../../models/encoder", .pinned = true},
        {.name = "anomaly", .path = SHOAL_TEST_DATA "/../../models/anomaly"},
        {.name = "nowhere", .path = SHOAL_TEST_DATA "/refs/README.md"}};
    const struct registry_opts ro = {.cache_dir = ""};
    struct err e = {0};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    buf_init(&site.out, 1 << 20);
    for (uint32_t i = 0; i < N_CHOICES; i++)
        buf_init(&site.choices[i], 1 << 16);
    int rc = executor_queue_init(&site.owner, &e);
    if (rc == 0)
        rc = registry_create(&site.flow.registry, &ro, &e);
    if (rc == 0)
        rc = pool_create(&site.flow.pool, 1, 16, &e);
    if (rc == 0)
        rc = prompt_cache_create(&site.flow.cache, 1 << 20, 0, &e);
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = registry_add(site.flow.registry, &specs[i], &e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 60000 && !registry_ready(site.flow.registry); i++)
        usleep(1000);
    for (int i = 0; i < 2; i++)
        if (registry_get(site.flow.registry, names[i], i ? SHOAL_KIND_EMBED : SHOAL_KIND_GENERATE,
                         &site.models[i], NULL, &e) < 0)
            return -1;
    for (int i = 0; i < 60000 && (!registry_sum(site.models[0]) || !registry_sum(site.models[1]));
         i++)
        usleep(1000); /* hashed in the background */
    flow_owner_init(&site.requests, &site.flow, &site.owner.executor);
    site.requests.load_wait_ms = 600000;
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        registry_put(site.models[i]);
    flow_wake(&site.requests);
    pool_destroy(site.flow.pool);
    registry_destroy(site.flow.registry);
    prompt_cache_destroy(site.flow.cache);
    flow_owner_fini(&site.requests);
    executor_queue_fini(&site.owner);
    buf_fini(&site.out);
    for (uint32_t i = 0; i < N_CHOICES; i++)
        buf_fini(&site.choices[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_events),
                                       cmocka_unit_test(test_every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, open_site, close_site);
}
