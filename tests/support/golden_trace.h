/* golden_trace.h - what happened in a test, written down: requests and events with every field but
 * times and addresses.  tests/data/traces/NAME.txt holds what is expected; SHOAL_GOLDEN=1 writes a
 * new one, and the commit shows what changed.
 *
 * Include it after cmocka.h.  Nothing is written until golden_begin.
 *
 * Thread: one. */
#ifndef SHOAL_TESTS_GOLDEN_TRACE_H
#define SHOAL_TESTS_GOLDEN_TRACE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "flow/request.h"
#include "flow/routing_choice.h"
#include "flow/sink.h"

static struct buf golden_text;
static bool trace_on;

static inline void golden_begin(void)
{
    buf_init(&golden_text, 1 << 22);
    trace_on = true;
}

/* Pseudonyms are random: [email-89fa44bd] becomes [email-xxxxxxxx]. */
static inline void trace_hide_marks(void)
{
    for (char *p = strchr(golden_text.data, '-'); p; p = strchr(p + 1, '-'))
        if (strspn(p + 1, "0123456789abcdef") == 8 && p[9] == ']')
            memset(p + 1, 'x', 8);
}

/* Compares with what is expected, or writes that. */
static inline void golden_end(const char *name)
{
    char path[512];
    struct err e;
    struct buf want;
    snprintf(path, sizeof(path), "%s/traces/%s.txt", SHOAL_TEST_DATA, name);
    trace_on = false;
    assert_int_equal(golden_text.rc, 0);
    trace_hide_marks();
    if (getenv("SHOAL_GOLDEN")) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(golden_text.data, 1, golden_text.len, f), golden_text.len);
        fclose(f);
    } else {
        buf_init(&want, 1 << 22);
        if (file_read(path, &want, &e) < 0)
            print_error("%s\n", e.msg);
        const char *a = buf_str(&want), *b = buf_str(&golden_text);
        unsigned line = 1;
        for (; *a && *a == *b; a++, b++)
            line += *a == '\n';
        const bool same = *a == *b;
        if (!same) {
            while (a > buf_str(&want) && a[-1] != '\n')
                a--, b--;
            print_error("%s:%u\n  was %.*s\n  is  %.*s\n", path, line, (int)strcspn(a, "\n"), a,
                        (int)strcspn(b, "\n"), b);
        }
        assert_true(same);
        buf_fini(&want);
    }
    buf_fini(&golden_text);
}

__attribute__((format(printf, 1, 2))) static inline void trace(const char *format, ...)
{
    char text[2048];
    va_list ap;
    if (!trace_on)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    buf_puts(&golden_text, text);
}

/* ---- requests ---- */

static inline void trace_generate(const struct request_generate *g)
{
    const struct shoal_sampling *s = &g->sampling;
    trace(" n=%u max=%u temp=%g top_p=%g seed=%llu logprobs=%d:%u", g->n, g->max_tokens,
          (double)s->temperature, (double)s->top_p, (unsigned long long)s->seed, s->logprobs,
          s->n_logprobs);
    trace(" stops=%u constraint=%d:%.*s flags=%d%d%d%d%d%d%d%d", g->n_stop, (int)g->constraint.kind,
          (int)g->constraint.text_bytes, g->constraint.text ? g->constraint.text : "", g->has_seed,
          g->seeded, g->ignore_end, g->special, g->echo, g->prompt_logprobs, g->prompt_only,
          g->progress);
    for (uint32_t i = 0; i < g->chat.n_messages; i++)
        trace(" %s:'%.*s'", g->chat.messages[i].role, (int)g->chat.messages[i].content_bytes,
              g->chat.messages[i].content);
    for (uint32_t i = 0; i < g->chat.n_vars; i++)
        trace(" var:%s", g->chat.vars[i].key);
    for (uint32_t i = 0; g->chat.n_messages == 0 && g->prompts && i < g->n_prompts; i++)
        trace(" prompt:'%.*s'+%zu", (int)g->prompts[i].text_bytes,
              g->prompts[i].text ? g->prompts[i].text : "", g->prompts[i].n_ids);
}

static inline void trace_infer(const struct request_infer *q)
{
    trace(" kind=%d labels=%s query=%s", (int)q->kind, q->labels ? q->labels : "-",
          q->query ? q->query : "-");
    for (uint32_t i = 0; i < q->n_inputs; i++)
        trace(" '%.*s'+%u+%u", (int)q->inputs[i].text_bytes,
              q->inputs[i].text ? q->inputs[i].text : "", q->inputs[i].n_ids,
              q->inputs[i].n_values);
}

static inline void trace_request(const char *what, const struct request *r)
{
    if (!trace_on)
        return;
    trace("%s %s kind=%d client=%s session=%s priority=%d deadline=%d bytes=%zu node=%s", what,
          r->model ? r->model : "-", (int)r->kind, r->client.name, r->session, r->priority,
          r->deadline_ns != 0, r->input_bytes, r->node ? r->node : "-");
    trace(" flags=%d%d%d%d%d%d%d%d%d%d%d%d", r->remembered, r->has_once_key, r->explain, r->dry,
          r->streams, r->shares_cache, r->no_cache, r->screened, r->marked, r->here, r->truncates,
          r->leaving != NULL);
    if (r->kind == REQUEST_GENERATE)
        trace_generate(&r->generate);
    else if (r->kind == REQUEST_INFER)
        trace_infer(&r->infer);
    else if (r->kind == REQUEST_ASK)
        trace(" '%s' room=%s confirm=%s", r->ask.text, r->ask.room ? r->ask.room : "-",
              r->ask.confirm ? r->ask.confirm : "-");
    trace("\n");
}

/* ---- events ---- */

static inline void trace_choice(const struct routing_choice *c)
{
    if (!c)
        return;
    trace(
        "  route %s model=%s node=%s degraded=%d domain=%s:%.3f rule=%d policy=%s candidates=%u\n",
        c->route ? c->route : "-", c->model ? c->model : "-", c->node ? c->node : "-", c->degraded,
        c->domain ? c->domain : "-", c->domain_p, c->rule, c->policy ? c->policy : "-",
        c->n_candidates);
    for (uint32_t i = 0; i < c->n_candidates; i++)
        trace("  candidate %s@%s quality=%g cost=%g verdict=%d\n", c->candidates[i].model,
              c->candidates[i].node ? c->candidates[i].node : "-", c->candidates[i].quality,
              c->candidates[i].cost, (int)c->candidates[i].verdict);
    for (uint32_t i = 0; c->ensemble && i < c->ensemble->n_steps; i++)
        trace("  step %s of %s: %s %.3f%s\n", c->ensemble->steps[i].model, c->ensemble->kind,
              c->ensemble->steps[i].what, c->ensemble->steps[i].sureness,
              c->ensemble->steps[i].answered ? ", answered" : "");
}

static inline void trace_start(const struct sink *s, const struct sink_start *e)
{
    trace(
        "start %s version=%s sum=%d node=%s cache=%d flags=%d%d%d dropped=%u tools=%d question=%d "
        "slot=%d\n",
        e->model, e->version, e->sum != NULL, e->node ? e->node : "-", (int)e->cache, e->isolated,
        e->session_away, e->private, e->n_dropped, (int)e->tools, e->question != NULL,
        e->slot != 0);
    trace_choice(s->routed);
}

static inline void trace_token(const struct sink_token *e)
{
    trace("token %u: %d%s '%.*s'", e->choice, e->token, e->echo ? " echo" : "", (int)e->text_bytes,
          e->text);
    for (uint32_t i = 0; i < e->n_logprobs; i++)
        trace(" %d:%.*s:%.3f", e->logprobs[i].token, (int)e->logprobs[i].text_bytes,
              e->logprobs[i].text, (double)e->logprobs[i].logprob);
    trace("\n");
}

static inline void trace_result(const struct sink_result *e)
{
    const struct shoal_result *r = e->result;
    trace("result %u: kind=%d code=%d %s %.3f tokens=%u%s%s", e->index, (int)r->kind, r->code,
          r->label ? r->label : "-", (double)r->confidence, r->n_tokens,
          r->truncated ? " truncated" : "", e->last ? " last" : "");
    for (uint32_t i = 0; i < r->n_labels; i++)
        trace(" %s:%.3f", r->labels[i].name, (double)r->labels[i].score);
    for (uint32_t i = 0; i < r->n_spans; i++)
        trace(" %s@%u-%u", r->spans[i].label, (unsigned)r->spans[i].start,
              (unsigned)r->spans[i].end);
    trace("\n");
}

static inline void trace_done(const char *what, const struct sink *s, const struct sink_done *e)
{
    trace("%s %u: finish=%d by_text=%d:%u prompt=%u cached=%u generated=%u calls=%u", what,
          e->choice, (int)e->finish, e->stopped_by_text, e->stop_index, e->prompt_tokens,
          e->cached_tokens, e->generated_tokens, e->n_calls);
    if (e->last)
        trace(" last: %u %u %u", e->usage.prompt_tokens, e->usage.cached_tokens,
              e->usage.generated_tokens);
    trace("\n");
    trace_choice(s->routed);
}

static inline void trace_failure(const struct failure *f)
{
    trace("fail kind=%d code=%d param=%s reason=%s retry=%u: %s\n", (int)f->kind, f->code,
          f->param ? f->param : "-", f->reason ? f->reason : "-", f->retry_after_s, f->message);
}

#endif
