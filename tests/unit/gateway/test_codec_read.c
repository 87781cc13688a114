/* test_codec_read.c - what every API makes of a body: the request that flow gets, or the refusal.
 *
 * A body goes through the door and its handler, and stops where flow would run it.  What is there
 * is written down as text: everything that is not zero, false or missing, and counts that are
 * not 1.  Bodies and texts use ' in place of ". */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "router/router.h"
#include "support/gw_client.h"
#include "wire/value_json.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

/* ---- the request as text ---- */

static void put_number(struct buf *b, const char *name, double v)
{
    if (v != 0)
        buf_printf(b, " %s=%.7g", name, v);
}

static void put_flag(struct buf *b, const char *name, bool v)
{
    if (v)
        buf_printf(b, " %s", name);
}

static void put_text(struct buf *b, const char *name, const char *v)
{
    if (v)
        buf_printf(b, " %s='%s'", name, v);
}

static void put_ids(struct buf *b, const int32_t *ids, size_t n)
{
    buf_putc(b, '[');
    for (size_t i = 0; i < n; i++)
        buf_printf(b, i ? ",%d" : "%d", ids[i]);
    buf_putc(b, ']');
}

/* The bytes that are counted must be those that are there. */
static void put_counted(struct buf *b, const char *text, size_t n)
{
    assert_int_equal(strlen(text), n);
    buf_printf(b, "'%s'", text);
}

static void put_value(struct buf *b, const struct value *v)
{
    struct json_out j = json_out_make(b);
    value_json_put(&j, v);
}

static void put_chat(struct buf *b, const struct chat *c)
{
    static const char *const choices[] = {"auto", "none", "required", "one"};
    for (uint32_t i = 0; i < c->n_messages; i++) {
        const struct chat_message *m = &c->messages[i];
        buf_printf(b, " %s:", m->role);
        put_counted(b, m->content, m->content_bytes);
        put_text(b, "name", m->name);
        put_text(b, "for", m->call_id);
        for (uint32_t k = 0; k < m->n_calls; k++) {
            buf_printf(b, " call(%s %s ", m->calls[k].id, m->calls[k].name);
            put_counted(b, m->calls[k].arguments, m->calls[k].arguments_bytes);
            buf_putc(b, ')');
        }
    }
    for (uint32_t i = 0; i < c->n_vars; i++) {
        buf_printf(b, " var(%s ", c->vars[i].key);
        put_value(b, &c->vars[i].value);
        buf_putc(b, ')');
    }
    put_text(b, "template", c->template);
    for (uint32_t i = 0; i < c->n_tools; i++) {
        buf_printf(b, " tool(%s '%s' ", c->tools[i].name, c->tools[i].description);
        put_value(b, &c->tools[i].parameters);
        buf_puts(b, c->tools[i].strict ? " strict)" : ")");
    }
    if (c->tool_choice != CHAT_TOOLS_AUTO)
        buf_printf(b, " choice=%s", choices[c->tool_choice]);
    put_number(b, "tool", c->tool);
    put_flag(b, "one_call", c->one_call);
}

static void put_pieces(struct buf *b, const struct request_piece *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(b, " piece(");
        if (p[i].text)
            put_counted(b, p[i].text, p[i].text_bytes);
        else
            put_ids(b, p[i].ids, p[i].n_ids);
        put_text(b, "file", p[i].name);
        buf_putc(b, ')');
    }
}

static void put_prompts(struct buf *b, const struct request_generate *g)
{
    for (uint32_t i = 0; g->prompts && i < g->n_prompts; i++) {
        const struct request_prompt *p = &g->prompts[i];
        buf_putc(b, ' ');
        if (p->text)
            put_counted(b, p->text, p->text_bytes);
        else if (p->ids)
            put_ids(b, p->ids, p->n_ids);
        if (p->suffix) {
            buf_puts(b, " before ");
            put_counted(b, p->suffix, p->suffix_bytes);
        }
        put_pieces(b, p->pieces, p->n_pieces);
    }
}

static void put_sampling(struct buf *b, const struct shoal_sampling *s)
{
    put_number(b, "temp", (double)s->temperature);
    put_number(b, "top_k", s->top_k);
    put_number(b, "top_p", (double)s->top_p);
    put_number(b, "min_p", (double)s->min_p);
    put_number(b, "repeat", (double)s->repeat_penalty);
    put_number(b, "last", s->repeat_last_n);
    put_number(b, "presence", (double)s->presence_penalty);
    put_number(b, "frequency", (double)s->frequency_penalty);
    for (uint32_t i = 0; i < s->n_bias; i++)
        buf_printf(b, " bias(%d %g)", s->bias[i].token, (double)s->bias[i].bias);
    put_number(b, "n_logprobs", s->n_logprobs);
    put_flag(b, "logprobs", s->logprobs);
}

static void put_generate(struct buf *b, const struct request_generate *g)
{
    static const char *const kinds[] = {"none", "json", "schema", "gbnf", "regex", "choice"};
    if (g->n_prompts != 1)
        buf_printf(b, " prompts=%u", g->n_prompts);
    if (g->n != 1)
        buf_printf(b, " n=%u", g->n);
    put_number(b, "max", g->max_tokens);
    put_sampling(b, &g->sampling);
    if (g->has_seed)
        buf_printf(b, " seed=%lld", (long long)g->sampling.seed);
    for (uint32_t i = 0; i < g->n_bias_texts; i++)
        buf_printf(b, " bias('%s' %g)", g->bias_texts[i].text, (double)g->bias_texts[i].bias);
    for (uint32_t i = 0; i < g->n_stop; i++)
        put_text(b, "stop", g->stop[i]);
    if (g->constraint.kind) {
        buf_printf(b, " %s:", kinds[g->constraint.kind]);
        put_counted(b, g->constraint.text, g->constraint.text_bytes);
    }
    put_flag(b, "ignore_end", g->ignore_end);
    put_flag(b, "special", g->special);
    put_flag(b, "parse", g->parse_special);
    put_flag(b, "echo", g->echo);
    put_flag(b, "prompt_logprobs", g->prompt_logprobs);
    put_flag(b, "prompt_only", g->prompt_only);
    put_flag(b, "progress", g->progress);
    put_flag(b, "drawn", g->drawn_logprobs);
    put_flag(b, "fresh", g->fresh_prefix);
    put_flag(b, "no_shift", g->no_shift);
    if (g->keep_tokens)
        buf_printf(b, " keep:%u", g->keep_tokens);
    put_prompts(b, g);
    put_chat(b, &g->chat);
}

static void put_infer(struct buf *b, const struct request_infer *q)
{
    put_text(b, "kind", shoal_kind_name(q->kind));
    for (uint32_t i = 0; i < q->n_inputs; i++) {
        const struct request_input *in = &q->inputs[i];
        buf_putc(b, ' ');
        if (in->text)
            put_counted(b, in->text, in->text_bytes);
        else if (in->ids)
            put_ids(b, in->ids, in->n_ids);
        else
            for (uint32_t k = 0; k < in->n_values; k++)
                buf_printf(b, k ? ",%g" : "%g", in->values[k]);
    }
    put_text(b, "query", q->query);
    put_text(b, "labels", q->labels);
    put_text(b, "prompt", q->prompt);
    put_text(b, "stream", q->stream);
    put_number(b, "columns", q->n_columns);
    put_number(b, "dimensions", q->dimensions);
    put_number(b, "sentences", q->max_sentences);
    put_number(b, "max", q->max_tokens);
    put_number(b, "beams", q->beams);
    put_flag(b, "raw", q->raw);
    put_flag(b, "whole", q->whole);
}

static void put_rest(struct buf *b, const struct request *r)
{
    if (r->kind == REQUEST_ASK) {
        put_text(b, "ask", r->ask.text);
        put_text(b, "confirm", r->ask.confirm);
        put_flag(b, "reply", r->ask.reply);
        put_flag(b, "explain", r->ask.explain);
    } else {
        put_flag(b, "decode", r->tokens.decode);
        put_number(b, "flags", r->tokens.flags);
        if (r->tokens.text)
            buf_printf(b, " '%.*s'", (int)r->tokens.text_bytes, r->tokens.text);
        if (r->tokens.ids)
            put_ids(b, r->tokens.ids, r->tokens.n_ids);
    }
}

static void put_request(struct buf *b, const struct request *r)
{
    put_text(b, "model", r->model);
    if (r->kind == REQUEST_GENERATE)
        put_generate(b, &r->generate);
    else if (r->kind == REQUEST_INFER)
        put_infer(b, &r->infer);
    else
        put_rest(b, r);
    put_number(b, "priority", r->priority);
    put_text(b, "session", r->session[0] ? r->session : NULL);
    put_text(b, "language", r->language);
    for (uint32_t i = 0; i < r->n_tags; i++)
        buf_printf(b, " tag(%s='%s')", r->tags[i].name, r->tags[i].value);
    if (r->deadline_ns)
        put_number(b, "within", (double)(r->deadline_ns - r->received_ns) / 1e6);
    put_flag(b, "explain", r->explain);
    put_flag(b, "streams", r->streams);
    put_flag(b, "no_cache", r->no_cache);
    put_flag(b, "once", r->has_once_key);
    put_flag(b, "version", r->version != NULL);
    put_number(b, "bytes", (double)r->input_bytes);
    for (char *p = b->data; p && *p; p++)
        *p = *p == '"' ? '\'' : *p == '\n' ? '|' : *p;
}

/* ---- the way there ---- */

/* Where flow would run a request. */
struct stop {
    struct request *request;
    struct sink *sink;
};

static struct stop stopped;

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)d;
    (void)o;
    stopped = (struct stop){r, s};
    return true;
}

static void open_site(struct gw *gw)
{
    static const struct dispatch_ops ops = {.run = take};
    static struct dispatch dispatch = {&ops};
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    assert_int_equal(gw_site_open(gw, 0), 0);
    gw->loops[0].flow.dispatch = &dispatch;
}

static void close_site(struct gw *gw)
{
    gw->loops[0].flow.dispatch = NULL;
    gw_site_close(gw);
}

/* "400 param code", or the beginning of the message where a dialect has no such fields. */
static void put_refusal(struct buf *out, const struct gw_client *x)
{
    cJSON *json = cJSON_Parse(buf_str(&x->body));
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
    const char *param = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "param"));
    const char *code = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "code"));
    const char *message =
        cJSON_IsString(e) ? e->valuestring
                          : cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "message"));
    buf_printf(out, " %d", x->status);
    if (param)
        buf_printf(out, " %s", param);
    if (code)
        buf_printf(out, " %s", code);
    if (!param && message)
        buf_printf(out, " %.48s", message);
    for (char *p = out->data; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    cJSON_Delete(json);
}

/* Sends the body, with a header "name: value" if there is one. */
static void ask(struct gw *gw, const char *path, const char *header, const char *body, size_t n,
                struct buf *out)
{
    char headers[512];
    struct gw_client x;
    snprintf(headers, sizeof(headers), "host: localhost\ncontent-type: application/json\n%s%s",
             header ? header : "", header ? "\n" : "");
    gw_client_init(&x, gw, "POST", path, headers, body, n);
    stopped.request = NULL;
    gw_client_send(&x, gw);
    if (stopped.request) {
        struct failure f;
        put_request(out, stopped.request);
        failure_of(&f, SHOAL_ECANCELLED, "seen");
        (stopped.sink->ops->fail)(stopped.sink, &f);
        stopped.sink->ops->closed(stopped.sink);
        flow_give_request(&gw->loops[0].flow, stopped.request);
    } else {
        put_refusal(out, &x);
    }
    assert_int_equal(gw->loops[0].n_calls, 0);
    gw_client_fini(&x);
}

static void ask_quoted(struct gw *gw, const char *path, const char *header, const char *body,
                       struct buf *out)
{
    char text[4096];
    size_t n = strlen(body);
    assert_true(n < sizeof(text));
    for (size_t i = 0; i <= n; i++)
        text[i] = body[i] == '\'' ? '"' : body[i];
    ask(gw, path, header, text, n, out);
}

struct row {
    const char *path, *body, *want;
};

#define CHAT "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define RESPONSES "/v1/responses"
#define MESSAGES "/v1/messages"
#define HI "'messages':[{'role':'user','content':'hi'}]"
#define LAMP                                                                                       \
    "{'type':'function','function':{'name':'lamp','description':'on or off','parameters':{'type':" \
    "'object'},'strict':true}}"
#define DOOR "{'function':{'name':'door'}}"
#define LAMP_SEEN "tool(lamp 'on or off' {'type':'object'} strict)"
#define DOOR_SEEN "tool(door '' null)"
/* the defaults of an API */
#define OPENAI "temp=1 top_p=1 "
#define LLAMA "temp=0.8 top_k=40 top_p=0.95 min_p=0.05 repeat=1 last=64 "
#define OLLAMA "temp=0.8 top_k=40 top_p=0.9 repeat=1.1 last=64 "
#define TGI "max=100 top_p=1 repeat=1 "

static void check(const struct row *rows, size_t n)
{
    static struct gw gw;
    size_t n_wrong = 0;
    open_site(&gw);
    for (size_t i = 0; i < n; i++) {
        struct buf out;
        buf_init(&out, 1 << 16);
        ask_quoted(&gw, rows[i].path, NULL, rows[i].body, &out);
        const char *got = buf_str(&out);
        got += *got == ' ';
        if (strcmp(got, rows[i].want) != 0) {
            print_error("%s %s\n  got  %s\n  want %s\n", rows[i].path, rows[i].body, got,
                        rows[i].want);
            n_wrong++;
        }
        buf_fini(&out);
    }
    close_site(&gw);
    assert_int_equal(n_wrong, 0);
}

static void test_openai_chat(void **state)
{
    static const struct row rows[] = {
        {CHAT, "{" HI "}", OPENAI "user:'hi' bytes=2"},
        {CHAT,
         "{" HI ",'model':'m','stream':true,'return_progress':true,'max_tokens':7,'temperature':0."
         "5,'top_p':0.25,'top_k':3,'min_p':0.125,'n':2,'seed':-5,'presence_penalty':-1.5,'"
         "frequency_penalty':1.5,'repeat_penalty':1.25,'ignore_eos':true,'priority':-3,'"
         "latency_budget_ms':60000,'explain':true}",
         "model='m' n=2 max=7 temp=0.5 top_k=3 top_p=0.25 min_p=0.125 repeat=1.25 presence=-1.5 "
         "frequency=1.5 seed=-5 ignore_end progress user:'hi' priority=-3 within=60000 explain "
         "streams bytes=2"},
        {CHAT, "{" HI ",'top_p':0,'seed':0,'max_tokens':0,'return_progress':true}",
         "temp=1 top_p=1e-06 seed=0 prompt_only user:'hi' bytes=2"},
        {CHAT, "{" HI ",'max_tokens':7,'max_completion_tokens':9}",
         "max=9 " OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'repetition_penalty':2}", OPENAI "repeat=2 user:'hi' bytes=2"},
        {CHAT, "{" HI ",'stop':'x'}", OPENAI "stop='x' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'stop':['x','','y']}", OPENAI "stop='x' stop='y' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'stop':5}", "400 stop invalid_type"},
        {CHAT, "{" HI ",'stop':['x',5]}", "400 stop invalid_type"},
        {CHAT, "{" HI ",'logit_bias':{'5':-100,'0':100,'7':1.5}}",
         OPENAI "bias(5 -inf) bias(0 100) bias(7 1.5) user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logit_bias':{'5':101}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'5':-100.5}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'-1':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'5x':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'2147483647':1}}",
         OPENAI "bias(2147483647 1) user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logit_bias':{'2147483648':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'5':true}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':[5]}", "400 logit_bias invalid_type"},
        {CHAT, "{" HI ",'logprobs':true,'top_logprobs':4}",
         OPENAI "n_logprobs=4 logprobs user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logprobs':true}", OPENAI "logprobs user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logprobs':false,'top_logprobs':0}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'top_logprobs':1}", "400 top_logprobs invalid_value"},
        {CHAT, "{" HI ",'logprobs':1}", "400 logprobs invalid_type"},
        {CHAT,
         "{" HI
         ",'stream':true,'stream_options':{'include_usage':true,'include_obfuscation':true}}",
         OPENAI "user:'hi' streams bytes=2"},
        {CHAT, "{" HI ",'stream':true,'stream_options':{'other':1}}",
         "400 stream_options.other unknown_parameter"},
        {CHAT, "{" HI ",'stream':true,'stream_options':5}", "400 stream_options invalid_type"},
        {CHAT, "{" HI ",'stream_options':{'other':1}}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'chat_template_kwargs':{'a':[1,'x',null],'b':{'c':true}}}",
         OPENAI "user:'hi' var(a [1,'x',null]) var(b {'c':true}) bytes=2"},
        {CHAT, "{" HI ",'chat_template_kwargs':[]}", "400 chat_template_kwargs invalid_type"},
        {CHAT, "{" HI ",'reasoning_effort':'high','verbosity':'low'}",
         OPENAI "user:'hi' var(verbosity 'low') var(reasoning_effort 'high') bytes=2"},
        {CHAT, "{" HI ",'reasoning_effort':'none','verbosity':''}",
         OPENAI "user:'hi' var(enable_thinking false) var(reasoning_effort 'none') bytes=2"},
        {CHAT, "{" HI ",'reasoning_effort':''}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}]}",
         OPENAI "user:'hi' assistant:'a' var(continue_final_message true) bytes=3"},
        {CHAT, "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':''}]}",
         OPENAI "user:'hi' assistant:'' bytes=2"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}],'"
         "continue_final_message':false}",
         OPENAI "user:'hi' assistant:'a' bytes=3"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}],'add_"
         "generation_prompt':true}",
         OPENAI "user:'hi' assistant:'a' var(add_generation_prompt true) bytes=3"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}],'add_"
         "generation_prompt':false}",
         OPENAI "user:'hi' assistant:'a' var(continue_final_message true) "
                "var(add_generation_prompt false) bytes=3"},
        {CHAT, "{" HI ",'continue_final_message':true}",
         OPENAI "user:'hi' var(continue_final_message true) bytes=2"},
        {CHAT, "{" HI ",'continue_final_message':true,'add_generation_prompt':true}",
         "400 continue_final_message invalid_value"},
        {CHAT, "{" HI ",'continue_final_message':true,'add_generation_prompt':false}",
         OPENAI
         "user:'hi' var(continue_final_message true) var(add_generation_prompt false) bytes=2"},
        {CHAT, "{}", "400 messages missing_required_parameter"},
        {CHAT, "{'messages':[]}", "400 messages invalid_type"},
        {CHAT, "{'messages':5}", "400 messages invalid_type"},
        {CHAT, "{'messages':[5]}", "400 messages[0] invalid_type"},
        {CHAT, "{'messages':[{'content':'x'}]}", "400 messages[0].role invalid_value"},
        {CHAT, "{'messages':[{'role':'other','content':'x'}]}",
         "400 messages[0].role invalid_value"},
        {CHAT, "{'messages':[{'role':'user','content':'x'},{'role':'user','content':5}]}",
         "400 messages[1].content invalid_type"},
        {CHAT, "{'messages':[{'role':'user','content':'x','other':1}]}",
         "400 messages[0].other unknown_parameter"},
        {CHAT,
         "{'messages':[{'role':'developer','content':null},{'role':'system'},{'role':'user','"
         "content':[{'type':'text','text':'a'},'b',{'type':'input_text','text':'c'},{'type':'"
         "refusal','refusal':'d'}],'name':'N'}]}",
         OPENAI "system:'' system:'' user:'a|b|c|d' name='N' bytes=7"},
        {CHAT, "{'messages':[{'role':'user','content':[]}]}", OPENAI "user:''"},
        {CHAT, "{'messages':[{'role':'user','content':[{'type':'image_url','image_url':'x'}]}]}",
         "400 messages[0].content invalid_value"},
        {CHAT, "{'messages':[{'role':'user','content':[{'text':'a'}]}]}",
         "400 messages[0].content invalid_value"},
        {CHAT, "{'messages':[{'role':'user','content':'x','images':['a']}]}",
         "400 messages[0].images unsupported_parameter"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_tools(void **state)
{
    static const struct row rows[] = {
        {CHAT, "{" HI ",'tools':[" LAMP "," DOOR "]}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR
         "],'tool_choice':'required','parallel_tool_calls':false}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=required one_call bytes=33"},
        {CHAT, "{" HI ",'tools':[" LAMP "," DOOR "],'tool_choice':'none'}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=none bytes=33"},
        {CHAT, "{" HI ",'tools':[" LAMP "," DOOR "],'tool_choice':'auto'}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR
         "],'tool_choice':{'type':'function','function':{'name':'door'}}}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=one tool=1 bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR "],'tool_choice':{'type':'function','name':'lamp'}}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=one bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR
         "],'tool_choice':{'type':'function','function':{'name':'gate'}}}",
         "400 tool_choice invalid_value"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "],'tool_choice':{'type':'other','function':{'name':'lamp'}}}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "],'tool_choice':{'function':{'name':'lamp'}}}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "],'tool_choice':{'type':'function'}}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "],'tool_choice':'maybe'}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tool_choice':'required'}", "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tool_choice':'auto'}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'tool_choice':'none'}", OPENAI "user:'hi' choice=none bytes=2"},
        {CHAT, "{" HI ",'tools':5}", "400 tools invalid_type"},
        {CHAT, "{" HI ",'tools':[5]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'type':'other','function':{'name':'a'}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'type':5,'function':{'name':'a'}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'type':'function','name':'a'}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "," LAMP "]}", "400 tools[1] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':''}}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{}}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'a b'}}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'aZ0_-.:/'}}]}",
         OPENAI "user:'hi' tool(aZ0_-.:/ '' null) bytes=6"},
        {CHAT,
         "{" HI ",'tools':[{'function':{'name':'"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'}}]}",
         OPENAI "user:'hi' "
                "tool("
                "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn '' null) bytes=6"},
        {CHAT,
         "{" HI ",'tools':[{'function':{'name':'"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'a','parameters':5}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'a','parameters':null,'description':5}}]}",
         OPENAI "user:'hi' tool(a '' null) bytes=6"},
        {CHAT,
         "{" HI ",'tools':[{'function':{'name':'a','parameters':{'x':[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
         "]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}}]}",
         "400 tools[0] invalid_value"},
        {CHAT,
         "{" HI ",'functions':[{'name':'lamp'},{'name':'door'}],'function_call':{'name':'door'}}",
         OPENAI "user:'hi' tool(lamp '' null) " DOOR_SEEN " choice=one tool=1 one_call bytes=10"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':'none'}",
         OPENAI "user:'hi' tool(lamp '' null) choice=none one_call bytes=6"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':'auto'}",
         OPENAI "user:'hi' tool(lamp '' null) one_call bytes=6"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':''}",
         OPENAI "user:'hi' tool(lamp '' null) one_call bytes=6"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':'required'}",
         "400 function_call invalid_value"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':{'name':'gate'}}",
         "400 function_call invalid_value"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'tools':[" LAMP "]}",
         "400 functions invalid_value"},
        {CHAT, "{" HI ",'functions':[],'tools':[" LAMP "]}",
         OPENAI "user:'hi' " LAMP_SEEN " bytes=29"},
        {CHAT, "{" HI ",'functions':5,'function_call':'auto'}", "400 functions invalid_type"},
        {CHAT, "{" HI ",'function_call':{'name':'lamp'}}", "400 function_call invalid_value"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','tool_calls':[{'id':'c1',"
         "'type':'function','function':{'name':'lamp','arguments':'{}'}},{'id':'c2','function':{'"
         "name':'door','arguments':{'a':1}}}]},{'role':'tool','tool_call_id':'c2','content':'ok'},{"
         "'role':'tool','tool_call_id':'c9','content':'?'}]}",
         OPENAI "user:'hi' assistant:'' call(c1 lamp '{}') call(c2 door '{'a':1}') tool:'ok' "
                "name='door' for='c2' tool:'?' for='c9' bytes=14"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'lamp'}},{'id':'','"
         "function':{'name':'door','arguments':''}}]},{'role':'tool','content':'1'},{'role':'tool',"
         "'content':'2'},{'role':'tool','content':'3'}]}",
         OPENAI
         "assistant:'' call(messages[0].tool_calls[0] lamp '{}') call(messages[0].tool_calls[1] "
         "door '{}') tool:'1' name='lamp' for='messages[0].tool_calls[0]' tool:'2' name='door' "
         "for='messages[0].tool_calls[1]' tool:'3' bytes=7"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'lamp','arguments':"
         "null}},{'id':null,'function':{'name':'door'}}]},{'role':'tool','name':'door','content':'"
         "1'},{'role':'user','content':'u'},{'role':'tool','content':'late'}]}",
         OPENAI "assistant:'' call(messages[0].tool_calls[0] lamp '{}') "
                "call(messages[0].tool_calls[1] door '{}') tool:'1' name='door' "
                "for='messages[0].tool_calls[1]' user:'u' tool:'late' bytes=10"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'c1','function':{'name':'lamp'}}]},{"
         "'role':'user','content':'u'},{'role':'function','tool_call_id':'c1','content':'late'}]}",
         OPENAI
         "assistant:'' call(c1 lamp '{}') user:'u' tool:'late' name='lamp' for='c1' bytes=7"},
        {CHAT, "{'messages':[{'role':'user','tool_calls':[]},{'role':'user','tool_calls':null}]}",
         OPENAI "user:'' user:''"},
        {CHAT, "{'messages':[{'role':'user','tool_calls':[{'function':{'name':'lamp'}}]}]}",
         "400 messages[0].tool_calls invalid_value"},
        {CHAT, "{'messages':[{'role':'assistant','tool_calls':5}]}",
         "400 messages[0].tool_calls invalid_type"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':5,'function':{'name':'lamp'}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT, "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{'name':'lamp','"
         "arguments':'[1]'}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{'name':'lamp','"
         "arguments':'{'}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{'name':'lamp','"
         "arguments':5}}]}]}",
         "400 messages[0].tool_calls[0] invalid_type"},
        {CHAT,
         "{'messages':[{'role':'assistant','function_call':{'name':'lamp','arguments':'{}'}}]}",
         OPENAI "assistant:'' call(messages[0].function_call lamp '{}') bytes=2"},
        {CHAT,
         "{'messages':[{'role':'assistant','function_call':{'name':'lamp'},'tool_calls':[{'id':'c1'"
         ",'function':{'name':'door'}}]}]}",
         OPENAI "assistant:'' call(c1 door '{}') bytes=2"},
        {CHAT, "{'messages':[{'role':'user','function_call':{'name':'lamp'}}]}",
         "400 messages[0].function_call invalid_value"},
        {CHAT, "{'messages':[{'role':'assistant','function_call':{}}]}",
         "400 messages[0].function_call invalid_value"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_constraints(void **state)
{
    static const struct row rows[] = {
        {CHAT, "{" HI ",'response_format':{'type':'text'}}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'response_format':{'type':'json_object'}}",
         OPENAI "json:'' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'response_format':{'type':'json_object','schema':{'type':'array'}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT,
         "{" HI ",'response_format':{'type':'json_schema','json_schema':{'name':'a','schema':{'"
         "type':'array'}}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT, "{" HI ",'response_format':{'type':'json_schema','schema':true}}",
         OPENAI "schema:'true' user:'hi' bytes=6"},
        {CHAT, "{" HI ",'response_format':{'type':'json_schema','json_schema':{'name':'a'}}}",
         "400 response_format.json_schema missing_required_parameter"},
        {CHAT, "{" HI ",'response_format':{'type':'json_schema','json_schema':{'schema':5}}}",
         "400 response_format.json_schema.schema invalid_type"},
        {CHAT, "{" HI ",'response_format':{'type':'other'}}", "400 response_format invalid_value"},
        {CHAT, "{" HI ",'response_format':{}}", "400 response_format invalid_value"},
        {CHAT, "{" HI ",'grammar':'root ::= x'}", OPENAI "gbnf:'root ::= x' user:'hi' bytes=12"},
        {CHAT, "{" HI ",'grammar':''}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'grammar':5}", "400 grammar invalid_type"},
        {CHAT, "{" HI ",'json_schema':{'type':'array'}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT, "{" HI ",'json_schema':'{}'}", OPENAI "schema:'{}' user:'hi' bytes=4"},
        {CHAT, "{" HI ",'json_schema':''}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'json_schema':[1]}", "400 json_schema invalid_type"},
        {CHAT, "{" HI ",'guided_json':false}", OPENAI "schema:'false' user:'hi' bytes=7"},
        {CHAT, "{" HI ",'guided_regex':'a+'}", OPENAI "regex:'a+' user:'hi' bytes=4"},
        {CHAT, "{" HI ",'guided_choice':['a','b']}",
         OPENAI "choice:'['a','b']' user:'hi' bytes=11"},
        {CHAT, "{" HI ",'guided_choice':[]}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'guided_choice':['a','']}", "400 guided_choice invalid_type"},
        {CHAT, "{" HI ",'guided_choice':['a',1]}", "400 guided_choice invalid_type"},
        {CHAT, "{" HI ",'guided_choice':'a'}", "400 guided_choice invalid_type"},
        {CHAT, "{" HI ",'guided_grammar':'root ::= y'}",
         OPENAI "gbnf:'root ::= y' user:'hi' bytes=12"},
        {CHAT, "{" HI ",'structured_outputs':{'json':{'type':'array'}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT, "{" HI ",'structured_outputs':{'regex':'b+'}}",
         OPENAI "regex:'b+' user:'hi' bytes=4"},
        {CHAT, "{" HI ",'structured_outputs':{'choice':['c']}}",
         OPENAI "choice:'['c']' user:'hi' bytes=7"},
        {CHAT, "{" HI ",'structured_outputs':{'grammar':'root ::= z'}}",
         OPENAI "gbnf:'root ::= z' user:'hi' bytes=12"},
        {CHAT, "{" HI ",'structured_outputs':{'json_object':true}}",
         OPENAI "json:'' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'structured_outputs':{'json_object':false}}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'structured_outputs':[]}", "400 structured_outputs invalid_type"},
        {CHAT, "{" HI ",'structured_outputs':{'regex':'b+','choice':['c']}}",
         "400 structured_outputs.choice invalid_value"},
        {CHAT, "{" HI ",'guided_regex':'a+','response_format':{'type':'json_object'}}",
         "400 guided_regex invalid_value"},
        {CHAT, "{" HI ",'guided_grammar':'root ::= y','grammar':'root ::= x'}",
         "400 guided_grammar invalid_value"},
        {"/api/chat", "{" HI ",'format':'json'}", OLLAMA "json:'' user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':''}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':{}}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':null}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':'yaml'}", "400 'format' must be 'json' or a schema"},
        {"/api/chat", "{" HI ",'format':5}", "400 'format' must be a JSON Schema"},
        {"/api/chat", "{" HI ",'format':{'type':'array'}}",
         OLLAMA "schema:'{'type':'array'}' user:'hi' streams bytes=18"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_openai_completions(void **state)
{
    static const struct row rows[] = {
        {COMPLETIONS, "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n_predict':-1}", OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':['hi']}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':['hi','ho'],'n':3}",
         "prompts=2 n=3 max=16 " OPENAI "parse 'hi' 'ho' bytes=4"},
        {COMPLETIONS, "{'prompt':[5]}", "max=16 " OPENAI "parse [5] bytes=4"},
        {COMPLETIONS, "{'prompt':[5,0,2147483647]}",
         "max=16 " OPENAI "parse [5,0,2147483647] bytes=12"},
        {COMPLETIONS, "{'prompt':[5,2147483648]}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[5,-1]}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[5,1.5]}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[5,'a']}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[[5,6],[7]]}",
         "prompts=2 max=16 " OPENAI "parse [5,6] [7] bytes=12"},
        {COMPLETIONS, "{'prompt':[[5,6]]}", "max=16 " OPENAI "parse [5,6] bytes=8"},
        {COMPLETIONS, "{'prompt':['a',[7]]}", "prompts=2 max=16 " OPENAI "parse 'a' [7] bytes=5"},
        {COMPLETIONS, "{'prompt':['a',[]]}", "400 prompt[1] invalid_type"},
        {COMPLETIONS, "{'prompt':['a',5]}", "400 prompt[1] invalid_type"},
        {COMPLETIONS, "{'prompt':['a',[7,-1]]}", "400 prompt[1] invalid_value"},
        {COMPLETIONS, "{'prompt':[]}", "400 prompt invalid_type"},
        {COMPLETIONS, "{'prompt':5}", "400 prompt invalid_type"},
        {COMPLETIONS, "{}", "400 prompt missing_required_parameter"},
        {COMPLETIONS, "{'prompt':{'prompt_string':'x'}}", "max=16 " OPENAI "parse 'x' bytes=1"},
        {COMPLETIONS, "{'prompt':{'prompt_string':'x','other':1}}", "400 prompt invalid_type"},
        {COMPLETIONS,
         "{'prompt':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a']}",
         "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':['a','a','a','a','a','a','a','a','a'],'n':15}",
         "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','suffix':'ho'}",
         "max=16 " OPENAI "parse 'hi' before 'ho' no_cache bytes=4"},
        {COMPLETIONS, "{'prompt':'hi','suffix':''}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':['hi','yo'],'suffix':'ho'}",
         "prompts=2 max=16 " OPENAI "parse 'hi' before 'ho' 'yo' before 'ho' no_cache bytes=8"},
        {COMPLETIONS, "{'prompt':[[1,2],[3]],'suffix':'ho'}",
         "prompts=2 max=16 " OPENAI "parse [1,2] [3] no_cache bytes=16"},
        {COMPLETIONS, "{'prompt':'hi','echo':true}", "max=16 " OPENAI "parse echo 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':0}",
         "max=16 " OPENAI "logprobs parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':20,'echo':true}",
         "max=16 " OPENAI
         "n_logprobs=20 logprobs parse echo prompt_logprobs 'hi' no_cache bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':21}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':-1}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':1.5}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':true}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':false,'echo':true}",
         "max=16 " OPENAI "parse echo 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n':2,'best_of':2}",
         "n=2 max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n':2,'best_of':3}",
         "n=3 max=16 " OPENAI "logprobs parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n':3,'best_of':2}", "400 best_of invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','best_of':2,'stream':true}", "400 best_of invalid_value"},
        {COMPLETIONS,
         "{'prompt':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a'],'best_of':8}",
         "prompts=16 n=8 max=16 " OPENAI
         "logprobs parse 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' bytes=16"},
        {COMPLETIONS,
         "{'prompt':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a'],'best_of':9}",
         "400 best_of invalid_value"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_openai_responses(void **state)
{
    static const struct row rows[] = {
        {RESPONSES, "{'input':'hi'}", OPENAI "user:'hi' bytes=2"},
        {RESPONSES,
         "{'input':'hi','model':'m','instructions':'be','stream':true,'max_output_tokens':5,'"
         "temperature':0.5,'top_p':0,'priority':-2,'latency_budget_ms':60000,'reasoning':{'effort':"
         "'high'},'chat_template_kwargs':{'a':1}}",
         "model='m' max=5 temp=0.5 top_p=1e-06 system:'be' user:'hi' var(reasoning_effort 'high') "
         "var(a 1) priority=-2 within=60000 streams bytes=4"},
        {RESPONSES, "{'input':'hi','instructions':'','top_logprobs':3}",
         OPENAI "n_logprobs=3 logprobs user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','include':['message.output_text.logprobs']}",
         OPENAI "logprobs user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','include':['reasoning.encrypted_content',5]}",
         OPENAI "user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','include':'x'}", "400 include invalid_type"},
        {RESPONSES, "{'input':'hi','metadata':[]}", "400 metadata invalid_type"},
        {RESPONSES, "{'input':'hi','metadata':{'a':'b'},'user':'u','store':false}",
         OPENAI "user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','text':{'format':{'type':'json_object'}}}",
         OPENAI "json:'' user:'hi' bytes=2"},
        {RESPONSES,
         "{'input':'hi','text':{'format':{'type':'json_schema','schema':{'type':'array'}}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {RESPONSES, "{'input':'hi','text':{'format':{'type':'odd'}}}",
         "400 text.format invalid_value"},
        {RESPONSES,
         "{'input':'hi','tools':[{'type':'function','name':'lamp'}],'tool_choice':'required','"
         "parallel_tool_calls':false}",
         OPENAI "user:'hi' tool(lamp '' null) choice=required one_call bytes=6"},
        {RESPONSES, "{'input':'hi','tools':[{'type':'function','function':{'name':'lamp'}}]}",
         "400 tools[0] invalid_value"},
        {RESPONSES, "{'input':'hi','tools':[{'type':'web_search'}]}", "400 tools[0] invalid_value"},
        {RESPONSES,
         "{'input':'hi','tools':[{'type':'function','name':'lamp'}],'tool_choice':{'type':'"
         "function','name':'lamp'}}",
         OPENAI "user:'hi' tool(lamp '' null) choice=one bytes=6"},
        {RESPONSES,
         "{'input':[{'role':'user','content':'a'},{'type':'message','role':'assistant','content':[{"
         "'type':'output_text','text':'b'}]},{'type':'function_call','call_id':'c1','name':'lamp','"
         "arguments':'{}'},{'type':'function_call','call_id':'c2','name':'door'},{'type':'function_"
         "call_output','call_id':'c1','output':'ok'},{'type':'function_call_output','call_id':'c2',"
         "'output':[{'type':'input_text','text':'x'}]},{'type':'function_call','call_id':'c3','"
         "name':'gate'}]}",
         OPENAI
         "user:'a' assistant:'b' call(c1 lamp '{}') call(c2 door '{}') tool:'ok' name='lamp' "
         "for='c1' tool:'x' name='door' for='c2' assistant:'' call(c3 gate '{}') bytes=11"},
        {RESPONSES,
         "{'input':[{'type':'function_call','call_id':'c1','name':'lamp'},{'role':'user','content':"
         "'a'},{'type':'function_call','call_id':'c2','name':'lamp'}]}",
         OPENAI "assistant:'' call(c1 lamp '{}') user:'a' assistant:'' call(c2 lamp '{}') bytes=5"},
        {RESPONSES, "{'input':[{'type':'function_call','call_id':'','name':'lamp'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call','name':'lamp'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call','call_id':'c1'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES,
         "{'input':[{'type':'function_call','call_id':'c1','name':'lamp','arguments':5}]}",
         "400 input[0] invalid_type"},
        {RESPONSES, "{'input':[{'type':'function_call_output','call_id':'','output':'x'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call_output','output':'x'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call_output','call_id':'c1','output':5}]}",
         "400 input[0] invalid_value"},
        {RESPONSES,
         "{'input':[{'type':'function_call_output','call_id':'c1','output':[{'type':'image'}]}]}",
         "400 input[0].content invalid_value"},
        {RESPONSES,
         "{'input':[{'type':'reasoning','id':'rs_1','summary':[]},{'role':'user','content':'a'}]}",
         OPENAI "user:'a' bytes=1"},
        {RESPONSES, "{'input':[{'type':'reasoning','summary':[]}]}", "400 input invalid_value"},
        {RESPONSES, "{'input':[{'type':'odd'}]}", "400 input[0] unsupported_parameter"},
        {RESPONSES, "{'input':[{'role':'user','content':'a'},{'role':'odd','content':'a'}]}",
         "400 input[1].role invalid_value"},
        {RESPONSES, "{'input':[]}", "400 input invalid_type"},
        {RESPONSES, "{'input':5}", "400 input invalid_type"},
        {RESPONSES, "{}", "400 input missing_required_parameter"},
        {RESPONSES, "{'input':'hi','previous_response_id':'resp_none'}",
         "404 previous_response_id response_not_found"},
        {RESPONSES, "{'input':'hi','background':true,'store':false}",
         "400 background invalid_value"},
        {RESPONSES, "{'input':'hi','background':true,'stream':true}",
         "400 background invalid_value"},
        {RESPONSES, "{'input':'hi','background':false}", OPENAI "user:'hi' bytes=2"},
        {"/v1/responses/input_tokens", "{'input':'hi'}",
         OPENAI "prompt_only user:'hi' no_cache bytes=2"},
        {"/v1/chat/completions/input_tokens", "{" HI "}",
         OPENAI "prompt_only user:'hi' no_cache bytes=2"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_anthropic(void **state)
{
    static const struct row rows[] = {
        {MESSAGES, "{'max_tokens':9," HI "}", "max=9 " OPENAI "user:'hi' bytes=2"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'model':'m','system':'be','stream':true,'temperature':0.5,'top_p':"
         "0,'top_k':4,'stop_sequences':['x']}",
         "model='m' max=9 temp=0.5 top_k=4 top_p=1e-06 stop='x' progress system:'be' user:'hi' "
         "streams no_cache bytes=4"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'system':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}",
         "max=9 " OPENAI "system:'ab' user:'hi' bytes=4"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'output_config':{'format':{'type':'json_schema','schema':{'type':"
         "'null'}},'effort':'low'}}",
         "max=9 " OPENAI "schema:'{'type':'null'}' user:'hi' var(reasoning_effort 'low') bytes=17"},
        {MESSAGES, "{'max_tokens':9," HI ",'output_config':{'format':{'type':'odd'}}}",
         "400 output_config.format: {'type': 'json_schema', 's"},
        {MESSAGES, "{'max_tokens':9," HI ",'output_config':5}",
         "400 output_config: an object is expected"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'stop_sequences':['a','b','c','d','e','f','g','h','i','j','k','l',"
         "'m','n','o','p','q']}",
         "max=9 " OPENAI "stop='a' stop='b' stop='c' stop='d' stop='e' stop='f' stop='g' stop='h' "
         "stop='i' stop='j' stop='k' stop='l' stop='m' stop='n' stop='o' stop='p' stop='q' "
         "user:'hi' "
         "no_cache bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':''}", "max=9 " OPENAI "user:'hi' bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':5}",
         "400 system: a text or a list of blocks is expected"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':[{'type':'image'}]}",
         "400 system: a block of type 'image' is not supported"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':[{'type':'text'}]}",
         "400 system: a block of type 'text' is not supported "},
        {MESSAGES, "{" HI "}", "400 max_tokens: the field is required"},
        {MESSAGES, "{'max_tokens':9,'messages':[]}",
         "400 messages: a list with at least one message is ex"},
        {MESSAGES, "{'max_tokens':9,'messages':5}",
         "400 messages: a list with at least one message is ex"},
        {MESSAGES, "{'max_tokens':9}", "400 messages: a list with at least one message is ex"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'system','content':'x'}]}",
         "400 messages.0.role: 'user' or 'assistant' is expect"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'content':'x'}]}",
         "400 messages.0.role: 'user' or 'assistant' is expect"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':5}]}",
         "400 messages.0.content: a text or a list of blocks i"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[]}]}",
         "400 messages: there is nothing to answer"},
        {MESSAGES, "{'max_tokens':9," HI ",'thinking':{'type':'disabled'}}",
         "max=9 " OPENAI "user:'hi' bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'thinking':{'type':'enabled'}}",
         "400 thinking: only {'type': 'disabled'} is supported"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':"
         "[{'type':'thinking','thinking':'t'},{'type':'text','text':'a'},{'type':'text','text':'b'}"
         ",{'type':'tool_use','id':'c1','name':'lamp','input':{'x':1}},{'type':'redacted_thinking',"
         "'data':'t'}]},{'role':'user','content':[{'type':'text','text':'then'},{'type':'tool_"
         "result','tool_use_id':'c1','content':[{'type':'text','text':'ok'}]}]}]}",
         "max=9 " OPENAI "user:'hi' assistant:'ab' call(c1 lamp '{'x':1}') tool:'ok' name='lamp' "
         "for='c1' user:'then' bytes=17"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'c1','"
         "name':'lamp','input':{}}]},{'role':'user','content':[{'type':'tool_result','tool_use_id':"
         "'c1'}]},{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','content':"
         "null}]}]}",
         "max=9 " OPENAI "assistant:'' call(c1 lamp '{}') tool:'' name='lamp' for='c1' tool:'' "
         "name='lamp' for='c1' bytes=2"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'tool_use','id':'c1','name'"
         ":'lamp','input':{}}]}]}",
         "400 messages.0.content.0: a block of type 'tool_use'"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_result','tool_"
         "use_id':'c1'}]}]}",
         "400 messages.0.content.0: a block of type 'tool_resu"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'thinking'}]}]}",
         "400 messages.0.content.0: a block of type 'thinking'"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[{'text':'x'}]}]}",
         "400 messages.0.content.0: a block of type '?' is not"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'text'}]}]}",
         "400 messages.0.content.0: a block of type 'text' is "},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'image'}]}]}",
         "400 messages.0.content.0: a block of type 'image' is"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'tool_result'}]}]}",
         "400 messages.0.content.0: 'tool_use_id' is missing"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'tool_result','tool_use_id'"
         ":'c1','content':5}]}]}",
         "400 messages.0.content.0: a text or a list of blocks"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','name':'"
         "lamp','input':{}}]}]}",
         "400 messages.0.content.0: a tool_use needs 'id', 'na"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'c1','"
         "input':{}}]}]}",
         "400 messages.0.content.0: a tool_use needs 'id', 'na"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'c1','"
         "name':'lamp','input':'x'}]}]}",
         "400 messages.0.content.0: a tool_use needs 'id', 'na"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp','description':'d','input_schema':{'type':'"
         "object'},'strict':true},{'type':'custom','name':'door'}]}",
         "max=9 " OPENAI "user:'hi' tool(lamp 'd' {'type':'object'} strict) " DOOR_SEEN
         " bytes=25"},
        {MESSAGES, "{'max_tokens':9," HI ",'tools':[{'type':'bash_1','name':'lamp'}]}",
         "400 tools.0: a tool of type 'bash_1' is not supporte"},
        {MESSAGES, "{'max_tokens':9," HI ",'tools':5}",
         "400 tools: a list of at most 512 is expected"},
        {MESSAGES, "{'max_tokens':9," HI ",'tools':[{}]}",
         "400 'tools.0' needs a name of 1 to 128 letters, digi"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'any','disable_"
         "parallel_tool_use':true}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) choice=required one_call bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'auto'}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'none'}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) choice=none bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI
         ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'tool','name':'lamp'}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) choice=one bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI
         ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'tool','name':'door'}}",
         "400 'tool_choice' names the function 'door', which i"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'tool'}}",
         "400 tool_choice: {'type': 'auto'}, 'any', 'none' or "},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'required'}}",
         "400 tool_choice: {'type': 'auto'}, 'any', 'none' or "},
        {MESSAGES, "{'max_tokens':9," HI ",'tool_choice':{'type':'any'}}",
         "400 'tool_choice' needs 'tools'"},
        {"/v1/messages/count_tokens", "{" HI "}", "max=1 " OPENAI "prompt_only user:'hi' bytes=2"},
        {"/v1/messages/count_tokens", "{'max_tokens':9," HI "}", "400 unknown field 'max_tokens'"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_llamacpp(void **state)
{
    static const struct row rows[] = {
        {"/completion", "{'prompt':'hi'}", LLAMA "parse 'hi' bytes=2"},
        {"/completion",
         "{'prompt':'hi','model':'m','stream':true,'return_progress':true,'n_predict':7,'"
         "temperature':-1,'top_k':-1,'top_p':0,'min_p':-0.5,'repeat_penalty':1.5,'repeat_last_n':-"
         "1,'presence_penalty':1,'frequency_penalty':2,'seed':5,'ignore_eos':true,'n_probs':3,'"
         "post_sampling_probs':true,'priority':-1,'latency_budget_ms':60000}",
         "model='m' max=7 top_p=1e-06 repeat=1.5 last=1048576 presence=1 frequency=2 n_logprobs=3 "
         "logprobs seed=5 ignore_end parse progress drawn 'hi' priority=-1 within=60000 streams "
         "no_cache bytes=2"},
        {"/completion",
         "{'prompt':'hi','n_predict':0,'temperature':0,'top_k':0,'top_p':1.5,'min_p':0,'repeat_"
         "penalty':1.5,'repeat_last_n':0,'presence_penalty':1,'frequency_penalty':2,'seed':-1,'"
         "return_progress':true,'post_sampling_probs':true}",
         "top_p=1 repeat=1 parse prompt_only 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','max_tokens':3,'seed':0,'stop':['x'],'top_p':1}",
         "max=3 temp=0.8 top_k=40 top_p=1 min_p=0.05 repeat=1 last=64 seed=0 stop='x' parse 'hi' "
         "no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','cache_prompt':false,'n_keep':5}",
         LLAMA "parse fresh keep:5 'hi' no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','cache_prompt':true,'n_keep':-1}",
         LLAMA "parse keep:16777216 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','n_predict':-2}", LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':[[5,1.5],[6,false],['word',2]]}",
         LLAMA "bias(5 1.5) bias(6 -inf) bias('word' 2) parse 'hi' no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':{'5':1,'word':false,'7x':3}}",
         LLAMA "bias(5 1) bias('word' -inf) bias('7x' 3) parse 'hi' no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':[]}", LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':[[5]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[[5,true]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[[-1,1]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[['',1]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[5]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','response_fields':['content']}",
         LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','response_fields':'content'}",
         "400 response_fields invalid_value"},
        {"/completion", "{'prompt':'hi','response_fields':[5]}",
         "400 response_fields invalid_type"},
        {"/completion",
         "{'prompt':'hi','response_fields':['a','a','a','a','a','a','a','a','a','a','a','a','a','a'"
         ",'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a',"
         "'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a']}",
         LLAMA "parse 'hi' bytes=2"},
        {"/completion",
         "{'prompt':'hi','response_fields':['a','a','a','a','a','a','a','a','a','a','a','a','a','a'"
         ",'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a',"
         "'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a','a']}",
         "400 response_fields invalid_value"},
        {"/completion", "{'prompt':'hi','grammar':'root ::= x'}",
         LLAMA "gbnf:'root ::= x' parse 'hi' bytes=12"},
        {"/completion", "{'prompt':'hi','mirostat':0}", LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','mirostat':1}", "400 mirostat unsupported_parameter"},
        {"/completion", "{'prompt':['a',5,6,'b',7]}",
         LLAMA "parse  piece('a') piece([5,6]) piece('b') piece([7]) no_cache bytes=14"},
        {"/completion", "{'prompt':[['a',5],'b',[6]]}",
         "prompts=3 " LLAMA "parse  piece('a') piece([5]) 'b' [6] no_cache bytes=10"},
        {"/completion", "{'prompt':['a',5,true]}", "400 prompt invalid_type"},
        {"/completion", "{'prompt':['a',5,-1]}", "400 prompt invalid_value"},
        {"/completion", "{'prompt':{'prompt_string':'x'}}", LLAMA "parse 'x' bytes=1"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b'}",
         LLAMA "'a' before 'b' no_cache bytes=2"},
        {"/infill",
         "{'input_prefix':'a','input_suffix':'','prompt':'c','input_extra':[{'text':'t','filename':"
         "'f'},{'text':'u'}]}",
         LLAMA "'ac' before '' piece('t' file='f') piece('u') no_cache bytes=4"},
        {"/infill", "{'input_prefix':'a'}", "400 input_suffix missing_required_parameter"},
        {"/infill", "{'input_suffix':'a'}", "400 input_prefix missing_required_parameter"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b','prompt':5}",
         "400 prompt invalid_type"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b','input_extra':5}",
         "400 input_extra invalid_value"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b','input_extra':[{'filename':'f'}]}",
         "400 input_extra invalid_value"},
        {"/infill",
         "{'input_prefix':'a','input_suffix':'b','input_extra':[{'text':'t','filename':5}]}",
         "400 input_extra invalid_value"},
        {"/apply-template",
         "{" HI ",'model':'m','chat_template_kwargs':{'a':1},'tools':[" DOOR
         "],'add_generation_prompt':false}",
         "model='m' special echo prompt_only user:'hi' var(add_generation_prompt false) var(a "
         "1) " DOOR_SEEN " bytes=6"},
        {"/apply-template", "{'messages':[{'role':'assistant','content':'a'}]}",
         "special echo prompt_only assistant:'a' var(continue_final_message true) bytes=1"},
        {"/apply-template", "{}", "400 messages missing_required_parameter"},
        {"/tokenize", "{'text':'hi','model':'m'}", "model='m' flags=1 'hi' bytes=2"},
        {"/tokenize", "{'content':'hi'}", "flags=2 'hi' bytes=2"},
        {"/tokenize", "{'content':'hi','add_special':true,'parse_special':false}",
         "flags=1 'hi' bytes=2"},
        {"/tokenize", "{'prompt':'hi','parse_special':true}", "flags=3 'hi' bytes=2"},
        {"/tokenize", "{'inputs':'hi'}", "flags=1 'hi' bytes=2"},
        {"/tokenize", "{'inputs':['hi'],'add_special_tokens':false}", "'hi' bytes=2"},
        {"/tokenize", "{'inputs':['hi','you']}", "400 inputs invalid_type"},
        {"/tokenize", "{'add_special':false}", "400 text missing_required_parameter"},
        {"/detokenize", "{'tokens':[5,6],'special':true}", "decode flags=4[5,6] bytes=8"},
        {"/detokenize", "{'tokens':[]}", "decode[]"},
        {"/detokenize", "{'tokens':[5,-1]}", "400 'tokens' must hold token ids"},
        {"/detokenize", "{'tokens':[2147483648]}", "400 'tokens' must hold token ids"},
        {"/detokenize", "{'tokens':[1.5]}", "400 'tokens' must hold token ids"},
        {"/detokenize", "{'tokens':5}", "400 tokens invalid_type"},
        {"/detokenize", "{}", "400 tokens invalid_type"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_ollama(void **state)
{
    static const struct row rows[] = {
        {"/api/chat", "{" HI "}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat",
         "{" HI ",'model':'m','stream':false,'logprobs':true,'top_logprobs':2,'think':true}",
         "model='m' " OLLAMA "n_logprobs=2 logprobs user:'hi' var(enable_thinking true) bytes=2"},
        {"/api/chat", "{" HI ",'think':'high','top_logprobs':2}",
         OLLAMA "user:'hi' var(reasoning_effort 'high') var(enable_thinking true) streams bytes=2"},
        {"/api/chat", "{" HI ",'think':false}",
         OLLAMA "user:'hi' var(enable_thinking false) streams bytes=2"},
        {"/api/chat", "{" HI ",'think':''}",
         OLLAMA "user:'hi' var(enable_thinking false) streams bytes=2"},
        {"/api/chat", "{" HI ",'think':5}", "400 'think' must be true, false or a level"},
        {"/api/chat", "{" HI ",'tools':[" DOOR "]}",
         OLLAMA "user:'hi' " DOOR_SEEN " streams bytes=6"},
        {"/api/chat", "{'messages':[{'role':'assistant','content':'a'}]}",
         OLLAMA "assistant:'a' var(continue_final_message true) streams bytes=1"},
        {"/api/chat",
         "{" HI ",'options':{'seed':7.9,'temperature':0.5,'top_k':3.7,'top_p':0.5,'min_p':0.25,'"
         "num_predict':4.9,'repeat_penalty':2,'repeat_last_n':8,'presence_penalty':1,'"
         "frequency_penalty':-1,'stop':['x']}}",
         "max=4 temp=0.5 top_k=3 top_p=0.5 min_p=0.25 repeat=2 last=8 presence=1 frequency=-1 "
         "seed=7 stop='x' user:'hi' streams bytes=2"},
        {"/api/chat",
         "{" HI
         ",'options':{'seed':-3,'temperature':-1,'top_k':0,'top_p':0,'min_p':2,'num_predict':0,'"
         "repeat_penalty':11,'repeat_last_n':-1,'presence_penalty':-11,'frequency_penalty':11}}",
         "top_p=1e-06 min_p=1 repeat=10 last=1048576 presence=-10 frequency=10 seed=-3 user:'hi' "
         "streams bytes=2"},
        {"/api/chat",
         "{" HI ",'options':{'temperature':101,'top_k':2e9,'top_p':2,'min_p':-1,'num_predict':1e9,'"
         "repeat_penalty':-1,'repeat_last_n':0,'odd':1}}",
         "max=1.677722e+07 temp=100 top_k=1e+09 top_p=1 repeat=1 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'options':{'repeat_last_n':2e9,'num_predict':1}}",
         "max=1 temp=0.8 top_k=40 top_p=0.9 repeat=1.1 last=1048576 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'shift':false,'options':{'num_keep':4.7}}",
         OLLAMA "no_shift keep:4 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'shift':true,'options':{'num_keep':-1}}",
         OLLAMA "keep:16777216 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'options':5}", "400 'options' must be an object"},
        {"/api/chat", "{" HI ",'options':{'seed':'a'}}", "400 'seed' must be a number"},
        {"/api/generate", "{'prompt':'hi'}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','system':'be','template':'T','think':true}",
         OLLAMA "system:'be' user:'hi' var(enable_thinking true) template='T' streams bytes=4"},
        {"/api/generate", "{'prompt':'hi','system':'','template':''}",
         OLLAMA "user:'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','raw':true,'system':'be','template':'T','think':true}",
         OLLAMA "parse 'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','suffix':'ho'}",
         OLLAMA "'hi' before 'ho' streams no_cache bytes=4"},
        {"/api/generate", "{'prompt':'hi','suffix':'','raw':true}",
         OLLAMA "parse 'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'','suffix':'ho'}",
         OLLAMA "'' before 'ho' streams no_cache bytes=2"},
        {"/api/generate", "{'prompt':'hi','context':[]}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/generate",
         "{'prompt':'hi','system':'s','context':[341041,13,256,6356992,513,6422528,99]}",
         OLLAMA "system:'s' user:'a' assistant:'bc' user:'hi' streams bytes=9"},
        {"/api/generate", "{'prompt':'hi','context':[341041,13,256,6356992,513,6422528]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,13,256,6356992,513,6422528,99,0]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341042,13,256,6356992,513,6422528,99]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,14,256,6356992,513,6422528,99]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,5,256,0]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,5,0,0]}",
         OLLAMA "user:'' user:'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','context':[341041,5,2,0]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,3,16777216]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,-1]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[1,2]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':5}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','keep_alive':'5x'}",
         "400 'keep_alive' must be a duration such as '5m', or"},
        {"/api/generate", "{'prompt':'hi','keep_alive':''}",
         "400 'keep_alive' must be a duration such as '5m', or"},
        {"/api/generate", "{'prompt':'hi','keep_alive':[]}",
         "400 'keep_alive' must be a duration such as '5m', or"},
        {"/api/generate", "{'prompt':'hi','images':['x']}",
         "400 'images' is not supported yet; leave it out, or "},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_tgi(void **state)
{
    static const struct row rows[] = {
        {"/generate", "{'inputs':'hi'}", TGI "parse 'hi' bytes=2"},
        {"/", "{'inputs':'hi'}", TGI "parse 'hi' bytes=2"},
        {"/generate_stream", "{'inputs':'hi','parameters':{'top_n_tokens':2}}",
         TGI "n_logprobs=2 logprobs parse 'hi' streams bytes=2"},
        {"/generate", "{'inputs':'hi','stream':true}", TGI "logprobs parse 'hi' streams bytes=2"},
        {"/generate",
         "{'inputs':'hi','model':'m','parameters':{'max_new_tokens':5,'temperature':0.5,'top_k':3,'"
         "top_p':0.25,'repetition_penalty':1.5,'frequency_penalty':-1,'seed':0,'stop':['x'],'"
         "details':true,'top_n_tokens':2,'return_full_text':true}}",
         "model='m' max=5 temp=0.5 top_k=3 top_p=0.25 repeat=1.5 frequency=-1 n_logprobs=2 "
         "logprobs seed=0 stop='x' parse 'hi' no_cache bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'do_sample':true,'top_n_tokens':2}}",
         "max=100 " OPENAI "repeat=1 parse 'hi' bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'top_k':3,'stop_sequences':['y']}}",
         "max=100 temp=1 top_k=3 top_p=1 repeat=1 stop='y' parse 'hi' no_cache bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'top_p':0.5}}",
         "max=100 temp=1 top_p=0.5 repeat=1 parse 'hi' bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'top_p':0}}",
         "max=100 temp=1 top_p=1e-06 repeat=1 parse 'hi' bytes=2"},
        {"/generate",
         "{'inputs':'hi','parameters':{'grammar':{'type':'json','value':{'type':'array'}}}}",
         TGI "schema:'{'type':'array'}' parse 'hi' bytes=18"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'type':'regex','value':'a+'}}}",
         TGI "regex:'a+' parse 'hi' bytes=4"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'type':'odd','value':'a+'}}}",
         "400 parameters.grammar invalid_value"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'type':'json'}}}",
         "400 parameters.grammar invalid_value"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'value':'x'}}}",
         "400 parameters.grammar invalid_value"},
        {"/generate", "{'inputs':'hi','parameters':{'odd':1}}",
         "400 parameters.odd unknown_parameter"},
        {"/generate", "{'inputs':'hi','parameters':5}", "400 parameters invalid_type"},
        {"/generate", "{'inputs':'hi','parameters':{'best_of':1}}", TGI "parse 'hi' bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'best_of':2}}",
         "400 parameters.best_of unsupported_parameter"},
        {"/generate", "{}", "400 inputs missing_required_parameter"},
    };
    (void)state;
    check(rows, N(rows));
}

static void test_specialists(void **state)
{
    static const struct row rows[] = {
        {"/v1/embeddings", "{'input':'hi'}", "kind='embed' 'hi' bytes=2"},
        {"/v1/embeddings",
         "{'input':['a','b'],'model':'m','dimensions':8,'prompt_name':'q','encoding_format':'"
         "base64','priority':-1,'latency_budget_ms':60000,'truncate':false}",
         "model='m' kind='embed' 'a' 'b' prompt='q' dimensions=8 whole priority=-1 within=60000 "
         "bytes=2"},
        {"/v1/embeddings", "{'input':[5,6],'prompt_name':''}",
         "kind='embed' [5,6] prompt='' bytes=8"},
        {"/v1/embeddings", "{'input':[[5,6],[7]],'encoding_format':'float'}",
         "kind='embed' [5,6] [7] bytes=12"},
        {"/v1/embeddings", "{'input':[[5],6]}", "400 input invalid_type"},
        {"/v1/embeddings", "{'input':[[5],[]]}", "400 input invalid_type"},
        {"/v1/embeddings", "{'input':[5,-1]}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':[5,2147483648]}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':[5,1.5]}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':[5,'a']}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':''}", "kind='embed' ''"},
        {"/v1/embeddings", "{'input':[]}", "400 input invalid_value"},
        {"/v1/embeddings", "{}", "400 input missing_required_parameter"},
        {"/v1/embeddings", "{'input':5}", "400 input invalid_type"},
        {"/v1/embeddings", "{'input':{'text':'x'}}", "kind='embed' 'x' bytes=1"},
        {"/v1/embeddings", "{'input':'hi','encoding_format':'odd'}",
         "400 encoding_format invalid_value"},
        {"/v1/embeddings", "{'input':'hi','truncate':true}", "kind='embed' 'hi' bytes=2"},
        {"/v1/embeddings", "{'input':'hi','truncate':'NONE'}", "kind='embed' 'hi' whole bytes=2"},
        {"/v1/embeddings", "{'input':'hi','truncate':'End'}", "kind='embed' 'hi' bytes=2"},
        {"/v1/embeddings", "{'input':'hi','truncate':'START'}", "400 truncate invalid_value"},
        {"/v1/embeddings", "{'input':'hi','truncate':5}", "400 truncate invalid_value"},
        {"/v1/classify", "{'input':['a'],'labels':'l','top':3}",
         "kind='classify' 'a' labels='l' bytes=1"},
        {"/v1/classify", "{'input':''}", "400 input invalid_value"},
        {"/v1/classify", "{'input':['a',5]}", "400 input invalid_type"},
        {"/v1/classify", "{'input':[5]}", "400 input invalid_type"},
        {"/v1/entities", "{'input':'a'}", "kind='tag' 'a' bytes=1"},
        {"/v1/rerank", "{'query':'q','documents':['a',{'text':'b'}],'top_n':1,'raw':true}",
         "kind='rerank' 'a' 'b' query='q' raw bytes=2"},
        {"/v1/rerank",
         "{'query':'q','texts':['a'],'raw_scores':true,'truncation_direction':'Right'}",
         "kind='rerank' 'a' query='q' raw bytes=1"},
        {"/v1/rerank", "{'query':'','documents':['a']}", "400 query missing_required_parameter"},
        {"/v1/rerank", "{'documents':['a']}", "400 query missing_required_parameter"},
        {"/v1/rerank", "{'query':'q'}", "400 documents missing_required_parameter"},
        {"/v1/rerank", "{'query':'q','documents':[]}", "400 documents invalid_value"},
        {"/v1/rerank", "{'query':'q','texts':[]}", "400 texts invalid_value"},
        {"/v1/rerank", "{'query':'q','texts':['a'],'truncation_direction':'left'}",
         "400 truncation_direction unsupported_parameter"},
        {"/v1/rerank", "{'query':'q','documents':['a'],'rank_fields':['text']}",
         "kind='rerank' 'a' query='q' bytes=1"},
        {"/v1/rerank", "{'query':'q','documents':['a'],'rank_fields':['title']}",
         "400 rank_fields unsupported_parameter"},
        {"/v1/summarize", "{'input':'a','max_sentences':2,'max_tokens':3,'beams':4}",
         "kind='summarize' 'a' sentences=2 max=3 beams=4 bytes=1"},
        {"/v1/score", "{'input':[1,null,2.5]}", "kind='score' 1,nan,2.5 bytes=24"},
        {"/v1/score", "{'input':[[1,2],[3]],'raw':true}", "kind='score' 1,2 3 raw bytes=24"},
        {"/v1/score", "{'input':[[1,2],[3,4]],'stream':'s'}",
         "kind='score' 1,2,3,4 stream='s' columns=2 bytes=32"},
        {"/v1/score", "{'input':[1,2],'stream':'s'}",
         "kind='score' 1,2 stream='s' columns=2 bytes=16"},
        {"/v1/score", "{'series':[[1,2],[3,4]]}", "kind='score' 1,2,3,4 columns=2 bytes=32"},
        {"/v1/score", "{'series':[[1,2],[3]]}", "400 series invalid_value"},
        {"/v1/score", "{'series':[[1],5]}", "400 series invalid_value"},
        {"/v1/score", "{'series':[]}", "400 series invalid_type"},
        {"/v1/score", "{'series':[[]]}", "400 series invalid_type"},
        {"/v1/score", "{'series':5}", "400 series invalid_type"},
        {"/v1/score", "{'series':[[1]],'input':[1]}", "400 series invalid_value"},
        {"/v1/score", "{}", "400 input missing_required_parameter"},
        {"/v1/score", "{'input':[]}", "400 input invalid_type"},
        {"/v1/score", "{'input':[[]]}", "400 input invalid_type"},
        {"/v1/score", "{'input':['a']}", "400 input invalid_type"},
        {"/v1/score", "{'input':[1e999]}", "400 input invalid_value"},
        {"/v1/score", "{'input':[[1],'a']}", "400 input invalid_type"},
        {"/v1/score", "{'series':[['a']]}", "400 series invalid_type"},
        {"/api/embed", "{'input':['a','b'],'dimensions':4}",
         "kind='embed' 'a' 'b' dimensions=4 bytes=2"},
        {"/api/embeddings", "{'prompt':'a'}", "kind='embed' 'a' bytes=1"},
        {"/api/embeddings", "{}", "400 'prompt' is missing"},
        {"/embedding", "{'content':'a'}", "kind='embed' 'a' bytes=1"},
        {"/embedding", "{'input':[1,2]}", "kind='embed' [1,2] bytes=8"},
        {"/embedding", "{'content':'a','embd_normalize':2}", "kind='embed' 'a' bytes=1"},
        {"/embedding", "{'content':'a','embd_normalize':1}",
         "400 embd_normalize unsupported_parameter"},
        {"/embed", "{'inputs':['a'],'normalize':true,'prompt_name':'q','dimensions':4}",
         "kind='embed' 'a' prompt='q' dimensions=4 bytes=1"},
        {"/embed", "{'inputs':'a','normalize':false}", "400 normalize unsupported_parameter"},
        {"/embed", "{}", "400 inputs missing_required_parameter"},
        {"/embed", "{'inputs':'a','parameters':5}", "400 parameters invalid_type"},
        {"/predict", "{'inputs':'a','labels':'l','parameters':{'top_k':2}}",
         "kind='classify' 'a' labels='l' bytes=1"},
        {"/predict", "{'inputs':[5]}", "400 inputs invalid_type"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':['b','c']}}",
         "kind='embed' 'a' 'b' 'c' bytes=3"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':[]}}",
         "400 inputs invalid_value"},
        {"/similarity", "{'inputs':{'sentences':['a']}}", "400 inputs invalid_type"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':['b',5]}}",
         "400 inputs invalid_type"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':'b'}}",
         "400 inputs invalid_type"},
        {"/similarity", "{'inputs':'a'}", "400 inputs invalid_type"},
        {"/v1/process", "{'text':'lights off'}", "ask='lights off' reply bytes=10"},
        {"/v1/process",
         "{'text':'lights "
         "off','model':'ask','stream':true,'explain':true,'reply':false,'priority':-4,'latency_"
         "budget_ms':60000}",
         "ask='lights off' explain priority=-4 within=60000 streams bytes=10"},
        {"/v1/process", "{'text':'lights off','session_id':'s'}",
         "ask='lights off' reply session='s' bytes=10"},
        {"/v1/process", "{'confirm':'t'}", "ask='' confirm='t' reply"},
        {"/v1/process", "{}", "400 text missing_required_parameter"},
        {"/v1/process", "{'text':'x','model':'odd'}", "404 model model_not_found"},
        {"/v1/process", "{'text':'x','input':{'a':1}}", "400 input"},
        {"/v1/process", "{'text':'x','input':5}", "400 input"},
    };
    (void)state;
    check(rows, N(rows));
}

/* ---- headers ---- */

static void test_headers(void **state)
{
    static const struct {
        const char *header, *body, *want;
    } rows[] = {
        {"x-latency-budget-ms: 5000", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' within=5000 bytes=2"},
        {"x-latency-budget-ms: 0.5", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' within=1 bytes=2"},
        {"x-latency-budget-ms: 86400000", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' within=8.64e+07 bytes=2"},
        {"x-latency-budget-ms: 86400001", "{'prompt':'hi'}",
         "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: 0", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: -1", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: 5s", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: x", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: 5000", "{'prompt':'hi','latency_budget_ms':3000}",
         "max=16 " OPENAI "parse 'hi' within=3000 bytes=2"},
        {"x-latency-budget-ms: 5000", "{'prompt':'hi','latency_budget_ms':7000}",
         "max=16 " OPENAI "parse 'hi' within=5000 bytes=2"},
        {"x-session-id: sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss",
         "{'prompt':'hi'}",
         "max=16 " OPENAI
         "parse 'hi' session='sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss' "
         "bytes=2"},
        {"x-session-id: ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss",
         "{'prompt':'hi'}", "400 x-session-id invalid_value"},
        {"x-shoal-session: a.b", "{'prompt':'hi'}", "400 session_id sessions_off"},
        {"x-shoal-session: a b", "{'prompt':'hi'}", "400 session_id invalid_value"},
        {"x-shoal-explain: 1", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' explain bytes=2"},
        {"x-shoal-explain: 0", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {"content-language: de-DE", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' language='de' bytes=2"},
        {"content-language: en, de", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' language='en' bytes=2"},
        {"content-language: fr", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' language='fr' bytes=2"},
        {"content-language: "
         "ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
         "dddddddddddddddddddddddddddddddddddddd",
         "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' "
         "language='"
         "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
         "ddddddddddddddddddddddddddddddddddddddddddddddddddddddd' bytes=2"},
        {"content-language: "
         "ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
         "ddddddddddddddddddddddddddddddddddddddd",
         "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {"idempotency-key: k", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' once bytes=2"},
        {"x-idempotency-key: k", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' once bytes=2"},
        {"idempotency-key: "
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
         "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' once bytes=2"},
        {"x-shoal-version: abc", "{'prompt':'hi'}", "400 x-shoal-version invalid_value"},
        {"x-shoal-version: 0000000000000000000000000000000000000000000000000000000000000000",
         "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' version bytes=2"},
        {"x-shoal-version: gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg",
         "{'prompt':'hi'}", "400 x-shoal-version invalid_value"},
        {"x-shoal-lenient: 1", "{'prompt':'hi','odd':1,'mirostat':1}",
         "max=16 " OPENAI "parse 'hi' bytes=2"},
        {"x-shoal-lenient: 0", "{'prompt':'hi','odd':1}", "400 odd unknown_parameter"},
        {"x-shoal-lenient: 1", "{'prompt':'hi','temperature':3}", "400 temperature invalid_value"},
        {"x-none: 1", "{'prompt':'hi'",
         "400 invalid_json the body is not valid JSON (near byte 13)"},
        {"x-none: 1", "[]", "400 invalid_type the body must be a JSON object"},
        {"x-none: 1", "", "400 the body is empty: send a JSON object"},
    };
    static struct gw gw;
    size_t n_wrong = 0;
    (void)state;
    open_site(&gw);
    for (size_t i = 0; i < N(rows); i++) {
        struct buf out;
        buf_init(&out, 1 << 16);
        ask_quoted(&gw, "/v1/completions", rows[i].header, rows[i].body, &out);
        const char *got = buf_str(&out);
        got += *got == ' ';
        if (strcmp(got, rows[i].want) != 0) {
            print_error("/H %s %s\n  got  %s\n  want %s\n", rows[i].header, rows[i].body, got,
                        rows[i].want);
            n_wrong++;
        }
        buf_fini(&out);
    }
    close_site(&gw);
    assert_int_equal(n_wrong, 0);
}

/* ---- ranges ---- */

struct range {
    const char *path, *field; /* of the body, or of its member after a dot */
    double min, max;
};

/* Whether the field is taken with this value. */
static bool takes(struct gw *gw, const struct range *x, double v)
{
    static const struct {
        const char *path, *body;
    } bodies[] = {{"/v1/chat", "'messages':[{'role':'user','content':'a'}],'logprobs':true"},
                  {"/v1/completions", "'prompt':'a'"},
                  {"/v1/responses", "'input':'a'"},
                  {"/v1/messages", "'messages':[{'role':'user','content':'a'}]"},
                  {"/completion", "'prompt':'a'"},
                  {"/generate", "'inputs':'a'"},
                  {"/v1/rerank", "'query':'q','documents':['a']"},
                  {"/v1/process", "'text':'a'"},
                  {"/api/chat", "'messages':[{'role':'user','content':'a'}],'logprobs':true"},
                  {"/v1/", "'input':'a'"}};
    char body[512];
    size_t i = 0;
    while (strncmp(x->path, bodies[i].path, strlen(bodies[i].path)) != 0)
        i++;
    const char *dot = strchr(x->field, '.'), *name = dot ? dot + 1 : x->field;
    const bool more = strcmp(x->path, "/v1/messages") == 0 && strcmp(name, "max_tokens") != 0;
    snprintf(body, sizeof(body), dot ? "{%s%s,'%.*s':{'%s':%.17g}}" : "{%s%s,%.*s'%s':%.17g}",
             bodies[i].body, more ? ",'max_tokens':1" : "", dot ? (int)(dot - x->field) : 0,
             x->field, name, v);
    struct buf out;
    buf_init(&out, 1 << 16);
    ask_quoted(gw, x->path, NULL, body, &out);
    const bool refused = strncmp(buf_str(&out), " 400", 4) == 0;
    if (refused && strncmp(x->path, "/api", 4) != 0)
        assert_non_null(strstr(buf_str(&out), name)); /* the refusal names the field */
    buf_fini(&out);
    return !refused;
}

/* Both ends are taken, and nothing outside of them. */
static void test_ranges(void **state)
{
    static const struct range ranges[] = {
        {CHAT, "max_tokens", -1, 16777216},
        {CHAT, "temperature", 0, 2},
        {CHAT, "top_p", 0, 1},
        {CHAT, "n", 1, 16},
        {CHAT, "presence_penalty", -2, 2},
        {CHAT, "frequency_penalty", -2, 2},
        {CHAT, "top_k", 0, 2147483647},
        {CHAT, "min_p", 0, 1},
        {CHAT, "repeat_penalty", 0, 10},
        {CHAT, "priority", -100, 0},
        {CHAT, "latency_budget_ms", 1, 86400000},
        {CHAT, "max_completion_tokens", 1, 16777216},
        {CHAT, "top_logprobs", 0, 20},
        {COMPLETIONS, "max_tokens", -1, 16777216},
        {COMPLETIONS, "temperature", 0, 2},
        {COMPLETIONS, "top_p", 0, 1},
        {COMPLETIONS, "n", 1, 16},
        {COMPLETIONS, "presence_penalty", -2, 2},
        {COMPLETIONS, "frequency_penalty", -2, 2},
        {COMPLETIONS, "top_k", 0, 2147483647},
        {COMPLETIONS, "min_p", 0, 1},
        {COMPLETIONS, "repeat_penalty", 0, 10},
        {COMPLETIONS, "priority", -100, 0},
        {COMPLETIONS, "latency_budget_ms", 1, 86400000},
        {COMPLETIONS, "best_of", 1, 16},
        {COMPLETIONS, "n_predict", -1, 16777216},
        {COMPLETIONS, "logprobs", 0, 20},
        {RESPONSES, "max_output_tokens", 1, 16777216},
        {RESPONSES, "temperature", 0, 2},
        {RESPONSES, "top_p", 0, 1},
        {RESPONSES, "top_logprobs", 0, 20},
        {RESPONSES, "priority", -100, 0},
        {RESPONSES, "latency_budget_ms", 1, 86400000},
        {MESSAGES, "max_tokens", 1, 16777216},
        {MESSAGES, "temperature", 0, 2},
        {MESSAGES, "top_p", 0, 1},
        {MESSAGES, "top_k", 0, 2147483647},
        {"/completion", "n_predict", -2, 16777216},
        {"/completion", "max_tokens", -1, 16777216},
        {"/completion", "temperature", -100, 100},
        {"/completion", "top_k", -1, 1000000000},
        {"/completion", "top_p", 0, 1000000000},
        {"/completion", "min_p", -1, 1},
        {"/completion", "repeat_penalty", 0, 10},
        {"/completion", "repeat_last_n", -1, 1048576},
        {"/completion", "presence_penalty", -10, 10},
        {"/completion", "frequency_penalty", -10, 10},
        {"/completion", "n_probs", 0, 256},
        {"/completion", "n_keep", -1, 1 << 24},
        {"/completion", "priority", -100, 0},
        {"/completion", "latency_budget_ms", 1, 86400000},
        {"/generate", "parameters.max_new_tokens", 1, 16777216},
        {"/generate", "parameters.temperature", 0, 100},
        {"/generate", "parameters.top_k", 0, 1000000000},
        {"/generate", "parameters.top_p", 0, 1},
        {"/generate", "parameters.repetition_penalty", 0, 10},
        {"/generate", "parameters.frequency_penalty", -2, 2},
        {"/generate", "parameters.top_n_tokens", 0, 5},
        {"/api/chat", "top_logprobs", 0, 20},
        {"/v1/embeddings", "dimensions", 1, 65536},
        {"/v1/embeddings", "priority", -100, 0},
        {"/v1/embeddings", "latency_budget_ms", 1, 86400000},
        {"/v1/classify", "top", 1, 10000},
        {"/v1/rerank", "top_n", 1, 2048},
        {"/v1/summarize", "max_sentences", 1, 1000},
        {"/v1/summarize", "max_tokens", 1, 65536},
        {"/v1/summarize", "beams", 1, 16},
        {"/v1/process", "priority", -100, 0},
        {"/v1/process", "latency_budget_ms", 1, 86400000},
    };
    static struct gw gw;
    (void)state;
    open_site(&gw);
    for (size_t i = 0; i < N(ranges); i++) {
        const struct range *x = &ranges[i];
        const double step = x->max - x->min < 3 ? 0.25 : 1;
        const bool whole = step == 1;
        if (!takes(&gw, x, x->min) || !takes(&gw, x, x->max) || takes(&gw, x, x->min - step) ||
            takes(&gw, x, x->max + step) || (whole && !takes(&gw, x, x->min + 1)))
            fail_msg("%s: %s is not from %.15g to %.15g", x->path, x->field, x->min, x->max);
    }
    close_site(&gw);
}

/* ---- messages ---- */

/* What a refusal says: the field, what is wrong with it, and what would be right. */
static void test_messages(void **state)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"{'temperature':'a'}", "'temperature' must be a number"},
        {"{'max_tokens':1.5}", "'max_tokens' must be a whole number"},
        {"{'stream':1}", "'stream' must be true or false"},
        {"{'model':1}", "'model' must be a string"},
        {"{'temperature':2.5}", "'temperature' is 2.5, it must be from 0 to 2"},
        {"{'n':17}", "'n' is 17, it must be from 1 to 16"},
        {"{'odd':1}", "unknown field 'odd'"},
        {"{'n':1,'n':2}", "'n' is given twice"},
        {"{'mirostat':1}", "'mirostat' is not supported yet; leave it out, or send "
                           "'x-shoal-lenient: 1' to ignore it"},
        {"{'best_of':2,'n':3,'prompt':'a'}", "'best_of' must be at least 'n'"},
        {"{'prompt':'a','grammar':'x','guided_regex':'y'}",
         "'guided_regex' is given beside another constraint: give only one"},
    };
    static struct gw gw;
    (void)state;
    open_site(&gw);
    for (size_t i = 0; i < N(rows); i++) {
        struct gw_client x;
        char body[512];
        snprintf(body, sizeof(body), "%s", rows[i].body);
        for (char *p = body; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        gw_client_init(&x, &gw, "POST", COMPLETIONS, "host: localhost\n", body, strlen(body));
        gw_client_send(&x, &gw);
        assert_int_equal(x.status, 400);
        cJSON *json = cJSON_Parse(buf_str(&x.body));
        const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "message")),
                            rows[i].want);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "type")),
                            "invalid_request_error");
        cJSON_Delete(json);
        gw_client_fini(&x);
    }
    close_site(&gw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openai_chat),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_constraints),
        cmocka_unit_test(test_openai_completions),
        cmocka_unit_test(test_openai_responses),
        cmocka_unit_test(test_anthropic),
        cmocka_unit_test(test_llamacpp),
        cmocka_unit_test(test_ollama),
        cmocka_unit_test(test_tgi),
        cmocka_unit_test(test_specialists),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
