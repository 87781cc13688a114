/* test_node_pb.c - messages between nodes: requests, events and states survive a round trip, and
 * invalid bytes are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cluster/messages/event_pb.h"
#include "cluster/control/desired.h"
#include "cluster/machine/clock_offset.h"
#include "cluster/messages/node_state.h"
#include "cluster/messages/request_pb.h"
#include "host/sha256.h"
#include "wire/value_bytes.h"

#define NOW 5000000000u
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct request *send_on(const struct request *r, int want)
{
    struct request *to = request_create();
    struct buf b;
    struct err e = {0};
    assert_non_null(to);
    buf_init(&b, 1 << 20);
    assert_int_equal(request_pb_put(&b, r, NOW), 0);
    assert_int_equal(request_pb_read(to, (const uint8_t *)b.data, b.len, NOW + 7, &e), want);
    buf_fini(&b);
    return to;
}

/* Text and ids in one prompt, files for a fill-in-the-middle text, and biases given as text. */
static void test_pieces(void **state)
{
    static const int32_t ids[] = {5, 6};
    const struct request_piece mixed[] = {{.ids = ids, .n_ids = 2},
                                          {.text = "a\0b", .text_bytes = 3}};
    const struct request_piece files[] = {{.name = "x.c", .text = "int x;", .text_bytes = 6},
                                          {.text = "y", .text_bytes = 1}};
    const struct request_prompt prompts[] = {{.pieces = mixed, .n_pieces = 2},
                                             {.text = "p",
                                              .text_bytes = 1,
                                              .suffix = "s",
                                              .suffix_bytes = 1,
                                              .pieces = files,
                                              .n_pieces = 2}};
    static const struct shoal_bias bias[] = {{7, 1.5f}};
    static const struct request_bias texts[] = {{" the", -2.5f}};
    struct request r = {.kind = REQUEST_GENERATE};
    (void)state;
    r.generate = (struct request_generate){.prompts = prompts,
                                           .n_prompts = 2,
                                           .n = 1,
                                           .sampling = {.bias = bias, .n_bias = 1},
                                           .bias_texts = texts,
                                           .n_bias_texts = 1,
                                           .progress = true,
                                           .drawn_logprobs = true,
                                           .fresh_prefix = true,
                                           .no_shift = true,
                                           .keep_tokens = 5};
    struct request *to = send_on(&r, 0);
    const struct request_generate *g = &to->generate;
    const struct request_prompt *p = g->prompts;
    assert_true(g->progress && g->drawn_logprobs && g->fresh_prefix && g->no_shift);
    assert_int_equal(g->keep_tokens, 5);
    assert_null(p[0].text);
    assert_int_equal(p[0].n_ids, 0);
    assert_int_equal(p[0].n_pieces, 2);
    assert_memory_equal(p[0].pieces[0].ids, ids, sizeof(ids));
    assert_null(p[0].pieces[0].text);
    assert_memory_equal(p[0].pieces[1].text, "a\0b", 4);
    assert_null(p[0].pieces[1].name);
    assert_string_equal(p[1].suffix, "s");
    assert_string_equal(p[1].pieces[0].name, "x.c");
    assert_string_equal(p[1].pieces[0].text, "int x;");
    assert_null(p[1].pieces[1].name);
    assert_int_equal(g->sampling.n_bias, 1);
    assert_int_equal(g->sampling.bias[0].token, 7);
    assert_int_equal(g->n_bias_texts, 1);
    assert_string_equal(g->bias_texts[0].text, " the");
    assert_true(g->bias_texts[0].bias == -2.5f);
    request_destroy(to);
    const struct request_prompt both = {
        .text = "p", .text_bytes = 1, .pieces = mixed, .n_pieces = 2};
    r.generate.prompts = &both;
    r.generate.n_prompts = 1;
    request_destroy(send_on(&r, SHOAL_EINVAL)); /* both a text and pieces */
}

static void test_a_conversation(void **state)
{
    static const struct chat_message messages[] = {
        {.role = "system", .content = "be\0brief", .content_bytes = 8},
        {.role = "user",
         .name = "anna",
         .content = "gr\xc3\xbc\xc3\x9f dich",
         .content_bytes = 11}};
    static const struct value inner[] = {{.kind = VALUE_NUMBER, .number = 2.5},
                                         {.kind = VALUE_NULL}};
    const struct value_member vars[] = {{"flag", value_bool(true)},
                                        {"list", {.kind = VALUE_LIST, .list = {inner, 2}}}};
    static const struct shoal_bias bias[] = {{7, -100}, {9, 2.5f}};
    static const char *const stops[] = {"\n\n", "END"};
    static const int32_t so_far[] = {3, 1, 4};
    const struct request_resume begun[] = {{true, NULL, 0}, {false, so_far, 3}};
    uint8_t version[SHA256_BYTES];
    struct request r = {.id = "req_1",
                        .session = "s",
                        .client = {"anna", 3, 2.5f},
                        .model = "reply",
                        .version = version,
                        .epoch = 12,
                        .may_be_old = true,
                        .deadline_ns = NOW + 1000,
                        .priority = -2,
                        .kind = REQUEST_GENERATE};
    (void)state;
    memset(version, 0xab, sizeof(version));
    r.generate = (struct request_generate){
        .chat = {.messages = messages, .n_messages = 2, .vars = vars, .n_vars = 2},
        .n_prompts = 1,
        .n = 2,
        .max_tokens = 50,
        .sampling = {.temperature = 0.7f,
                     .top_k = 40,
                     .top_p = 0.9f,
                     .min_p = 0.05f,
                     .repeat_penalty = 1.1f,
                     .repeat_last_n = 32,
                     .presence_penalty = 0.5f,
                     .frequency_penalty = -0.5f,
                     .seed = UINT64_MAX,
                     .bias = bias,
                     .n_bias = 2,
                     .n_logprobs = 3,
                     .logprobs = true},
        .stop = stops,
        .n_stop = 2,
        .resume = begun,
        .has_seed = true,
        .ignore_end = true,
        .special = true,
        .parse_special = true,
        .echo = true,
        .constraint = {SHOAL_CONSTRAINT_REGEX, "a\xc3\xa9+", 4}};
    char trace[TRACE_CONTEXT_CHARS + 1];
    assert_true(trace_context_read(&r.spans.context, TRACE));
    struct request *to = send_on(&r, 0);
    const struct request_generate *g = &to->generate;
    assert_string_equal(to->id, "req_1");
    trace_at_write(&to->spans, trace);
    assert_string_equal(trace, TRACE);
    assert_string_equal(to->session, "s");
    assert_string_equal(to->client.name, "anna");
    assert_int_equal(to->client.priority, 3);
    assert_true(to->client.weight == 2.5f);
    assert_int_equal(to->priority, -2);
    assert_string_equal(to->model, "reply");
    assert_memory_equal(to->version, version, sizeof(version));
    assert_int_equal(to->epoch, 12);
    assert_true(to->may_be_old);
    assert_int_equal(to->received_ns, NOW + 7);
    assert_int_equal(to->deadline_ns, NOW + 1007); /* the remaining time, on this clock */
    assert_int_equal(g->n_prompts, 1);
    assert_int_equal(g->n, 2);
    assert_int_equal(g->chat.n_messages, 2);
    assert_int_equal(g->chat.messages[0].content_bytes, 8);
    assert_memory_equal(g->chat.messages[0].content, "be\0brief", 9);
    assert_null(g->chat.messages[0].name);
    assert_string_equal(g->chat.messages[1].name, "anna");
    assert_int_equal(g->chat.n_vars, 2);
    assert_true(g->chat.vars[0].value.boolean);
    assert_true(g->chat.vars[1].value.list.items[0].number == 2.5);
    assert_int_equal(g->chat.vars[1].value.list.items[1].kind, VALUE_NULL);
    assert_true(g->sampling.temperature == 0.7f && g->sampling.min_p == 0.05f);
    assert_true(g->sampling.seed == UINT64_MAX);
    assert_int_equal(g->sampling.repeat_last_n, 32);
    assert_int_equal(g->sampling.bias[1].token, 9);
    assert_true(g->sampling.bias[1].bias == 2.5f);
    assert_int_equal(g->n_stop, 2);
    assert_string_equal(g->stop[0], "\n\n");
    assert_true(g->resume[0].done && !g->resume[1].done);
    assert_int_equal(g->resume[1].n_tokens, 3);
    assert_memory_equal(g->resume[1].tokens, so_far, sizeof(so_far));
    assert_true(g->has_seed && g->seeded && g->ignore_end && g->special && g->echo);
    assert_true(g->parse_special);
    assert_int_equal(g->constraint.kind, SHOAL_CONSTRAINT_REGEX);
    assert_int_equal(g->constraint.text_bytes, 4);
    assert_memory_equal(g->constraint.text, "a\xc3\xa9+", 4);
    assert_int_equal(to->input_bytes, 19);
    request_destroy(to);
}

static void test_tools_and_calls(void **state)
{
    static const struct chat_call calls[] = {{"call_1", "f", "{\"a\":1}", 7}, {"", "g", "{}", 2}};
    static const struct chat_message messages[] = {
        {.role = "assistant", .content = "", .calls = calls, .n_calls = 2},
        {.role = "tool", .content = "1", .content_bytes = 1, .call_id = "call_1"}};
    static const struct value_member schema[] = {
        {"type", {.kind = VALUE_TEXT, .text = {"object", 6}}}};
    static const struct chat_tool tools[] = {{.name = "f",
                                              .description = "d",
                                              .parameters = {.kind = VALUE_MAP, .map = {schema, 1}},
                                              .strict = true},
                                             {.name = "g", .description = ""}};
    struct request r = {.kind = REQUEST_GENERATE, .id = "x"};
    (void)state;
    r.generate = (struct request_generate){.chat = {.messages = messages,
                                                    .n_messages = 2,
                                                    .tools = tools,
                                                    .n_tools = 2,
                                                    .tool_choice = CHAT_TOOLS_ONE,
                                                    .tool = 1,
                                                    .one_call = true},
                                           .n_prompts = 1,
                                           .n = 1};
    struct request *to = send_on(&r, 0);
    const struct chat *c = &to->generate.chat;
    assert_int_equal(c->messages[0].n_calls, 2);
    assert_string_equal(c->messages[0].calls[0].id, "call_1");
    assert_string_equal(c->messages[0].calls[0].arguments, "{\"a\":1}");
    assert_string_equal(c->messages[0].calls[1].name, "g");
    assert_null(c->messages[0].call_id);
    assert_string_equal(c->messages[1].call_id, "call_1");
    assert_int_equal(c->n_tools, 2);
    assert_true(c->tools[0].strict && !c->tools[1].strict);
    assert_int_equal(c->tools[0].parameters.kind, VALUE_MAP);
    assert_int_equal(c->tools[0].parameters.map.n, 1);
    assert_string_equal(c->tools[0].parameters.map.members[0].key, "type");
    assert_string_equal(c->tools[0].parameters.map.members[0].value.text.p, "object");
    assert_string_equal(c->tools[0].description, "d");
    assert_int_equal(c->tools[1].parameters.kind, VALUE_NULL);
    assert_int_equal(c->tool_choice, CHAT_TOOLS_ONE);
    assert_int_equal(c->tool, 1);
    assert_true(c->one_call);
    request_destroy(to);
    r.generate.chat.tool = 2; /* there is none */
    request_destroy(send_on(&r, SHOAL_EINVAL));
}

static void test_prompts_inputs_and_commands(void **state)
{
    static const int32_t ids[] = {5, 6};
    const struct request_prompt prompts[] = {{.text = "once", .text_bytes = 4},
                                             {.ids = ids, .n_ids = 2}};
    const double values[] = {1.5, NAN, -3};
    const struct request_input rows[] = {{.values = values, .n_values = 3}};
    static const int16_t samples[] = {1, -2, INT16_MAX};
    const struct request_input sounds[] = {{.samples = samples, .n_samples = 3}};
    const struct request_input docs[] = {{.text = "a", .text_bytes = 1},
                                         {.text = "", .text_bytes = 0}};
    struct request r = {.kind = REQUEST_GENERATE,
                        .generate = {.prompts = prompts, .n_prompts = 2, .n = 1}};
    (void)state;
    struct request *to = send_on(&r, 0);
    assert_null(to->model);
    assert_null(to->version);
    assert_int_equal(to->deadline_ns, 0);
    assert_string_equal(to->generate.prompts[0].text, "once");
    assert_null(to->generate.prompts[1].text);
    assert_memory_equal(to->generate.prompts[1].ids, ids, sizeof(ids));
    assert_null(to->generate.resume);
    request_destroy(to);
    r = (struct request){.kind = REQUEST_INFER,
                         .infer = {.kind = SHOAL_KIND_SCORE,
                                   .inputs = rows,
                                   .n_inputs = 1,
                                   .n_columns = 3,
                                   .raw = true,
                                   .whole = true}};
    to = send_on(&r, 0);
    assert_int_equal(to->infer.inputs[0].n_values, 3);
    assert_true(isnan(to->infer.inputs[0].values[1]) && to->infer.inputs[0].values[2] == -3);
    assert_true(to->infer.raw && to->infer.whole && !to->infer.query && !to->infer.labels &&
                !to->infer.prompt);
    request_destroy(to);
    r.infer = (struct request_infer){.kind = SHOAL_KIND_RERANK,
                                     .inputs = docs,
                                     .n_inputs = 2,
                                     .query = "q",
                                     .labels = "l",
                                     .prompt = ""};
    to = send_on(&r, 0);
    assert_string_equal(to->infer.query, "q");
    assert_string_equal(to->infer.labels, "l");
    assert_string_equal(to->infer.prompt, "");
    assert_string_equal(to->infer.inputs[1].text, "");
    assert_null(to->infer.title);
    request_destroy(to);
    r.infer = (struct request_infer){.kind = SHOAL_KIND_SUMMARIZE,
                                     .inputs = docs,
                                     .n_inputs = 2,
                                     .title = "t",
                                     .temperature = 0.5f,
                                     .seed = UINT64_MAX,
                                     .beams = 4};
    to = send_on(&r, 0);
    assert_string_equal(to->infer.title, "t");
    assert_true(to->infer.temperature == 0.5f && to->infer.seed == UINT64_MAX);
    assert_int_equal(to->infer.beams, 4);
    request_destroy(to);
    r.infer =
        (struct request_infer){.kind = SHOAL_KIND_TRANSCRIBE, .inputs = sounds, .n_inputs = 1};
    to = send_on(&r, 0);
    assert_int_equal(to->infer.inputs[0].n_samples, 3);
    assert_memory_equal(to->infer.inputs[0].samples, samples, sizeof(samples));
    assert_null(to->infer.inputs[0].text);
    assert_int_equal(to->input_bytes, sizeof(samples));
    request_destroy(to);
    const struct request_input seen[] = {{.image = "\xff\xd8\0\xff", .image_bytes = 4},
                                         {.text = "a", .text_bytes = 1}};
    r.infer = (struct request_infer){.kind = SHOAL_KIND_CLASSIFY, .inputs = seen, .n_inputs = 2};
    to = send_on(&r, 0);
    assert_int_equal(to->infer.inputs[0].image_bytes, 4);
    assert_memory_equal(to->infer.inputs[0].image, seen[0].image, 4);
    assert_null(to->infer.inputs[0].text);
    assert_null(to->infer.inputs[1].image);
    assert_string_equal(to->infer.inputs[1].text, "a");
    assert_int_equal(to->input_bytes, 1); /* of an image none are tokens */
    request_destroy(to);
    const struct request_input said = {.text = "hello", .text_bytes = 5, .part = 3};
    r.infer = (struct request_infer){.kind = SHOAL_KIND_SPEAK,
                                     .inputs = &said,
                                     .n_inputs = 1,
                                     .speed = 1.5f,
                                     .volume = 0.5f,
                                     .words = true};
    to = send_on(&r, 0);
    assert_string_equal(to->infer.inputs[0].text, "hello");
    assert_int_equal(to->infer.inputs[0].part, 3);
    assert_true(to->infer.speed == 1.5f && to->infer.volume == 0.5f && to->infer.words);
    request_destroy(to);
    r = (struct request){
        .kind = REQUEST_ASK,
        .language = "de",
        .ask = {
            .text = "lights off", .room = "kitchen", .explain = true, .dry = true, .heard = 0.5f}};
    to = send_on(&r, 0);
    assert_string_equal(to->ask.text, "lights off");
    assert_true(to->ask.explain && !to->ask.reply && to->ask.dry && to->ask.heard == 0.5f);
    assert_string_equal(to->ask.room, "kitchen");
    assert_string_equal(to->language, "de");
    request_destroy(to);
}

static void test_requests_that_are_none(void **state)
{
    const struct request_resume all[] = {{true, NULL, 0}};
    const struct request_prompt one = {.text = "a", .text_bytes = 1};
    struct request r = {.kind = REQUEST_GENERATE, .generate = {.prompts = &one, .n_prompts = 1}};
    struct err e = {0};
    (void)state;
    request_destroy(send_on(&r, SHOAL_EINVAL)); /* no answer is expected */
    r.generate.n = REQUEST_MAX_CHOICES + 1;
    request_destroy(send_on(&r, SHOAL_EINVAL));
    r.generate.n = 1;
    r.generate.resume = all;
    request_destroy(send_on(&r, SHOAL_EINVAL)); /* nothing is left to do */
    r = (struct request){.kind = REQUEST_INFER, .infer = {.kind = SHOAL_KIND_RERANK}};
    request_destroy(send_on(&r, SHOAL_EINVAL));
    struct request *to = request_create();
    assert_int_equal(request_pb_read(to, (const uint8_t *)"\xff\xff\xff", 3, NOW, &e),
                     SHOAL_EFORMAT);
    request_destroy(to);
    to = request_create();
    assert_int_equal(request_pb_read(to, (const uint8_t *)"", 0, NOW, &e), SHOAL_EINVAL);
    request_destroy(to);
}

static void test_events(void **state)
{
    static const struct sink_logprob logprobs[] = {{4, -0.5f, "x\0y", 3}, {5, -2, "z", 1}};
    static const struct shoal_label labels[] = {{"on", 0.75f}, {"off", 0.25f}};
    static const struct shoal_span spans[] = {{"room", 3, 9, 2, 8, 0.5f}};
    static const float vector[] = {1, -2};
    const struct shoal_result result = {.size = sizeof(result),
                                        .kind = SHOAL_KIND_CLASSIFY,
                                        .label = "on",
                                        .confidence = 0.75f,
                                        .labels = labels,
                                        .n_labels = 2,
                                        .spans = spans,
                                        .n_spans = 1,
                                        .vector = vector,
                                        .n_dims = 2,
                                        .truncated = true,
                                        .total_ns = 9};
    const struct sink_token plain = {.choice = 300, .token = 70000, .text = "hi", .text_bytes = 2};
    const struct sink_token rich = {
        .token = 4, .text = "x\0y", .text_bytes = 3, .logprobs = logprobs, .n_logprobs = 2};
    const struct sink_token loose = {.token = -1, .text = "!", .text_bytes = 1};
    const struct ask_plan_step steps[] = {{"reply", "reply", 5, 6, 7}, {"rules", NULL, 1, 2, 0}};
    const struct sink_done done = {.choice = 1,
                                   .finish = SHOAL_FINISH_LENGTH,
                                   .prompt_tokens = 3,
                                   .generated_tokens = 4,
                                   .total_ns = 5,
                                   .last = true,
                                   .stopped_by_text = true,
                                   .stop_index = 3,
                                   .steps = steps,
                                   .n_steps = 2};
    struct failure f, *g;
    uint8_t sum[SHA256_BYTES] = {1, 2, 3};
    const struct sink_start start = {
        .model = "m", .version = "fp_1", .sum = sum, .cache = SINK_CACHE_HIT};
    struct event_pb_list l;
    struct event_pb e;
    struct arena scratch, keep;
    struct buf b;
    (void)state;
    failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "overloaded", "come back");
    f.retry_after_s = 3;
    buf_init(&b, 1 << 20);
    arena_init(&scratch, 1 << 20);
    arena_init(&keep, 1 << 20);
    event_pb_put_start(&b, &start);
    const struct sink_prompt prompt = {1, 400, 160, 300};
    event_pb_put_token(&b, &plain);
    event_pb_put_token(&b, &rich);
    event_pb_put_token(&b, &loose);
    const struct sink_result r = {2, &result, true};
    event_pb_put_result(&b, &r);
    event_pb_put_done(&b, &done);
    event_pb_put_failure(&b, &f);
    event_pb_put_prompt(&b, &prompt);
    assert_int_equal(b.rc, 0);
    assert_int_equal(event_pb_open(&l, (const uint8_t *)b.data, b.len, &scratch, &keep), 0);
    assert_int_equal(l.n, 8);
    assert_int_equal(event_pb_get(&e, &l, 0), 0);
    assert_int_equal(e.kind, EVENT_PB_START);
    assert_string_equal(e.start.model, "m");
    assert_memory_equal(e.start.sum, sum, sizeof(sum));
    assert_int_equal(event_pb_get(&e, &l, 1), 0);
    assert_int_equal(e.token.choice, 300);
    assert_int_equal(e.token.token, 70000);
    assert_memory_equal(e.token.text, "hi", 2);
    assert_int_equal(event_pb_get(&e, &l, 2), 0);
    assert_int_equal(e.token.n_logprobs, 2);
    assert_memory_equal(e.token.logprobs[0].text, "x\0y", 3);
    assert_int_equal(event_pb_get(&e, &l, 3), 0);
    assert_int_equal(e.token.token, -1);
    assert_int_equal(event_pb_get(&e, &l, 4), 0);
    assert_int_equal(e.kind, EVENT_PB_RESULT);
    assert_true(e.result.last && e.result.index == 2 && e.result.result->truncated);
    assert_string_equal(e.result.result->labels[1].name, "off");
    assert_int_equal(e.result.result->spans[0].end_char, 8);
    assert_true(e.result.result->vector[1] == -2);
    assert_int_equal(event_pb_get(&e, &l, 5), 0);
    assert_int_equal(e.done.finish, SHOAL_FINISH_LENGTH);
    assert_true(e.done.stopped_by_text && e.done.stop_index == 3);
    assert_int_equal(e.done.n_steps, 2);
    assert_string_equal(e.done.steps[0].model, "reply");
    assert_null(e.done.steps[1].model);
    assert_int_equal(event_pb_get(&e, &l, 6), 0);
    g = &e.failure;
    assert_int_equal(g->kind, FAILURE_BUSY);
    assert_int_equal(g->code, SHOAL_EBUSY);
    assert_string_equal(g->reason, "overloaded");
    assert_null(g->param);
    assert_string_equal(g->message, "come back");
    assert_int_equal(g->retry_after_s, 3);
    assert_int_equal(event_pb_get(&e, &l, 7), 0);
    assert_int_equal(e.kind, EVENT_PB_PROMPT);
    assert_memory_equal(&e.prompt, &prompt, sizeof(prompt));
    buf_fini(&b);
    arena_fini(&scratch);
    arena_fini(&keep);
}

static void test_a_plan(void **state)
{
    static const char *const items[] = {"lamp", "fan"};
    static const struct ask_plan_action off = {
        .name = "turn_off",
        .fields = {{.key = "room", .text = "kitchen"},
                   {.key = "level", .number = 19.5},
                   {.key = "devices", .items = items, .n_items = 2}},
        .n_fields = 3};
    static const struct ask_plan_action *const actions[] = {&off};
    static const struct ask_plan_entity entities[] = {{"room", "kitchen"}};
    static const struct ask_plan_clause clauses[] = {
        {"lights off", "off", "home", "", 0.5f, 0.25f, "command", 0.75f, entities, 1}};
    static const char *const contexts[] = {"a", "b"};
    const struct ask_plan plan = {actions, 1, clauses, 1, contexts, 2, ASK_PLAN_SETTLED};
    const struct sink_plan event = {&plan};
    struct event_pb_list l;
    struct event_pb e;
    struct arena scratch, keep;
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    arena_init(&scratch, 1 << 20);
    arena_init(&keep, 1 << 20);
    event_pb_put_plan(&b, &event);
    assert_int_equal(event_pb_open(&l, (const uint8_t *)b.data, b.len, &scratch, &keep), 0);
    assert_int_equal(event_pb_get(&e, &l, 0), 0);
    arena_fini(&scratch); /* the plan is a copy */
    buf_fini(&b);
    const struct ask_plan *p = e.plan.plan;
    assert_int_equal(p->n_actions, 1);
    assert_string_equal(p->actions[0]->name, "turn_off");
    assert_string_equal(p->actions[0]->fields[0].text, "kitchen");
    assert_null(p->actions[0]->fields[1].text);
    assert_true(p->actions[0]->fields[1].number == 19.5);
    assert_string_equal(p->actions[0]->fields[2].items[1], "fan");
    assert_string_equal(p->clauses[0].entities[0].type, "room");
    assert_string_equal(p->clauses[0].flow, "");
    assert_string_equal(p->contexts[1], "b");
    arena_fini(&keep);
}

static void test_the_state_of_a_node(void **state)
{
    uint8_t sum[SHA256_BYTES] = {9};
    const struct prefix_slot prefixes[] = {{0, 1}, {PREFIX_TABLE_SLOTS - 1, UINT64_MAX}};
    const struct prefix_slot outside = {PREFIX_TABLE_SLOTS, 1};
    const struct node_model models[] = {
        {.name = "reply",
         .sum = sum,
         .kinds = SHOAL_KIND_GENERATE,
         .state = REGISTRY_READY,
         .n_ctx = 512,
         .in_flight = 2,
         .prefill_ns = 10,
         .token_ns = NAN,
         .bytes = 99,
         .duty = DESIRED_SERVE,
         .requests = 1000,
         .errors = 3,
         .p95_us = 250,
         .epoch = 4,
         .until = 9,
         .share = 50},
        {.name = "enc\x1b[31m", .kinds = SHOAL_KIND_CLASSIFY | SHOAL_KIND_TAG}};
    const struct node_state s = {.id = "1",
                                 .name = "hub",
                                 .address = "10.0.0.1:9000",
                                 .isa = "x86_64",
                                 .serial = 7,
                                 .draining = true,
                                 .asks = true,
                                 .models = models,
                                 .n_models = 2,
                                 .n_cores = 4,
                                 .memory_bytes = 1 << 30,
                                 .bandwidth = 2e10,
                                 .probe_tokens = 600,
                                 .gpu = "RTX A2000",
                                 .n_gpus = 2,
                                 .gpu_bytes = 24,
                                 .epoch = 8,
                                 .epoch_end = 10,
                                 .prefixes = prefixes,
                                 .n_prefixes = 2,
                                 .health = {.clock_ms = 5,
                                            .clock = NODE_CLOCK_FREE,
                                            .cert_until_s = 9,
                                            .disk_free = 1,
                                            .disk_bytes = 2,
                                            .celsius = 71,
                                            .celsius_limit = (double)NAN,
                                            .throttled = true}};
    struct node_state to;
    struct arena a;
    struct buf b;
    struct err e = {0};
    (void)state;
    buf_init(&b, 1 << 20);
    arena_init(&a, 1 << 20);
    assert_int_equal(node_state_put(&b, &s), 0);
    assert_int_equal(node_state_read(&to, &a, (const uint8_t *)b.data, b.len, &e), 0);
    assert_string_equal(to.name, "hub");
    assert_true(to.draining && to.asks && to.serial == 7 && to.n_models == 2);
    assert_true(to.bandwidth == 2e10 && to.probe_tokens == 600);
    assert_string_equal(to.gpu, "RTX A2000");
    assert_true(to.n_gpus == 2 && to.gpu_bytes == 24);
    const struct node_health *h = &to.health;
    assert_true(h->clock_ms == 5 && h->clock == NODE_CLOCK_FREE && h->cert_until_s == 9);
    assert_true(h->disk_free == 1 && h->disk_bytes == 2 && h->celsius == 71 && h->throttled);
    assert_true(h->celsius_limit == 0); /* NaN: unknown */
    assert_memory_equal(to.models[0].sum, sum, sizeof(sum));
    assert_true(to.models[0].token_ns == 0); /* NaN: unknown */
    assert_null(to.models[1].sum);
    const struct node_model *m = &to.models[0];
    assert_true(m->requests == 1000 && m->errors == 3 && m->p95_us == 250 && m->share == 50);
    assert_true(m->duty == DESIRED_SERVE && m->epoch == 4 && m->until == 9);
    assert_false(node_model_usable(m, 3, false));
    assert_true(node_model_usable(m, 4, false) && node_model_usable(m, 8, false));
    assert_false(node_model_usable(m, 9, false));
    assert_true(node_model_usable(&to.models[1], 3, false)); /* its own: it serves whatever comes */
    assert_true(to.epoch == 8 && node_state_knows(&to, 9));
    assert_false(node_state_knows(&to, 10));
    assert_int_equal(to.n_prefixes, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(to.prefixes[i].at == prefixes[i].at && to.prefixes[i].hash == prefixes[i].hash);
    assert_string_equal(to.models[1].name, "enc?[31m"); /* safe for a terminal */
    assert_ptr_equal(node_state_model(&to, "reply", 0), &to.models[0]);
    assert_ptr_equal(node_state_model(&to, NULL, SHOAL_KIND_TAG), &to.models[1]);
    assert_null(node_state_model(&to, "nope", 0));
    assert_int_equal(node_state_read(&to, &a, (const uint8_t *)"\x32\x02\x08", 3, &e),
                     SHOAL_EFORMAT);
    struct node_state bad = s;
    bad.prefixes = &outside;
    bad.n_prefixes = 1;
    buf_clear(&b);
    assert_int_equal(node_state_put(&b, &bad), 0);
    assert_int_equal(node_state_read(&to, &a, (const uint8_t *)b.data, b.len, &e), SHOAL_EFORMAT);
    buf_fini(&b);
    arena_fini(&a);
}

enum field_type { FIELD_FLAG, FIELD_U32, FIELD_U64, FIELD_REAL, FIELD_TEXT };

struct field {
    size_t at;
    enum field_type type;
};

static void set_field(void *of, const struct field *f)
{
    const bool flag = true;
    const uint32_t small = 3; /* also a state, a duty and a share */
    const uint64_t large = (uint64_t)1 << 40;
    const double real = 2.5;
    const char *text = "word";
    const void *const values[] = {&flag, &small, &large, &real, &text};
    const size_t sizes[] = {sizeof(flag), sizeof(small), sizeof(large), sizeof(real), sizeof(text)};
    memcpy((char *)of + f->at, values[f->type], sizes[f->type]);
}

static bool has_field(const void *of, const struct field *f)
{
    const char *at = (const char *)of + f->at, *text;
    uint32_t small;
    uint64_t large;
    double real;
    bool flag;
    switch (f->type) {
    case FIELD_FLAG:
        memcpy(&flag, at, sizeof(flag));
        return flag;
    case FIELD_U32:
        memcpy(&small, at, sizeof(small));
        return small == 3;
    case FIELD_U64:
        memcpy(&large, at, sizeof(large));
        return large == (uint64_t)1 << 40;
    case FIELD_REAL:
        memcpy(&real, at, sizeof(real));
        return real == 2.5;
    case FIELD_TEXT:
        memcpy(&text, at, sizeof(text));
        return strcmp(text, "word") == 0;
    }
    return false;
}

/* A figure that does not reach the gateways would silently be 0 in every decision. */
static void test_every_field_of_a_node_travels(void **state)
{
#define N(name, type)                                                                              \
    {                                                                                              \
        offsetof(struct node_state, name), FIELD_##type                                            \
    }
#define M(name, type)                                                                              \
    {                                                                                              \
        offsetof(struct node_model, name), FIELD_##type                                            \
    }
    static const struct field of_node[] = {N(id, TEXT),
                                           N(name, TEXT),
                                           N(address, TEXT),
                                           N(program_version, TEXT),
                                           N(isa, TEXT),
                                           N(zone, TEXT),
                                           N(serial, U64),
                                           N(draining, FLAG),
                                           N(asks, FLAG),
                                           N(n_cores, U32),
                                           N(memory_bytes, U64),
                                           N(memory_free, U64),
                                           N(bandwidth, REAL),
                                           N(probe_tokens, REAL),
                                           N(gpu, TEXT),
                                           N(n_gpus, U32),
                                           N(gpu_bytes, U64),
                                           N(on_battery, FLAG),
                                           N(battery_percent, U32),
                                           N(epoch, U64),
                                           N(epoch_end, U64),
                                           N(oldest_epoch, U64),
                                           N(cpu, REAL),
                                           N(models_limit, U64),
                                           N(fence, U64),
                                           N(desired, U64)};
    static const struct field of_model[] = {M(kinds, U32),          M(state, U32),
                                            M(n_ctx, U32),          M(in_flight, U32),
                                            M(prefill_ns, REAL),    M(token_ns, REAL),
                                            M(bytes, U64),          M(duty, U32),
                                            M(progress, U32),       M(error, TEXT),
                                            M(requests, U64),       M(p95_us, U64),
                                            M(recent_p95_us, U64),  M(errors, U64),
                                            M(epoch, U64),          M(until, U64),
                                            M(share, U32),          M(standby, FLAG),
                                            M(unit_ns, REAL),       M(queue_ns, REAL),
                                            M(answer_tokens, REAL), M(prediction_error, REAL),
                                            M(parallel, U32),       M(waits, FLAG),
                                            M(images, FLAG)};
#undef N
#undef M
    const size_t n_node = sizeof(of_node) / sizeof(of_node[0]);
    const size_t n_model = sizeof(of_model) / sizeof(of_model[0]);
    static const char *const words[] = {"one", "two=2", "three"};
    (void)state;
    for (size_t i = 0; i < n_node + n_model; i++) {
        const struct field *f = i < n_node ? &of_node[i] : &of_model[i - n_node];
        struct node_model model = {.name = "m"};
        struct node_state s = {.models = &model,
                               .n_models = 1,
                               .wanted = words,
                               .n_wanted = 3,
                               .labels = words,
                               .n_labels = 3};
        struct node_state to;
        struct arena a;
        struct buf b;
        struct err e = {0};
        set_field(i < n_node ? (void *)&s : (void *)&model, f);
        buf_init(&b, 1 << 20);
        arena_init(&a, 1 << 20);
        assert_int_equal(node_state_put(&b, &s), 0);
        if (node_state_read(&to, &a, (const uint8_t *)b.data, b.len, &e) < 0)
            fail_msg("field %zu: %s", i, e.msg);
        assert_int_equal(to.n_models, 1);
        if (!has_field(i < n_node ? (const void *)&to : (const void *)&to.models[0], f))
            fail_msg("field %zu of the %s is lost", i < n_node ? i : i - n_node,
                     i < n_node ? "node" : "model");
        assert_true(to.n_wanted == 3 && to.n_labels == 3);
        for (int k = 0; k < 3; k++) {
            assert_string_equal(to.wanted[k], words[k]);
            assert_string_equal(to.labels[k], words[k]);
        }
        buf_fini(&b);
        arena_fini(&a);
    }
}

/* A model of the configuration may be loaded by the request; one that was assigned must be ready.
 */
static void test_which_models_are_usable(void **state)
{
    static const bool own[] = {[REGISTRY_UNLOADED] = true,
                               [REGISTRY_LOADING] = true,
                               [REGISTRY_READY] = true,
                               [REGISTRY_UNLOADING] = false,
                               [REGISTRY_FAILED] = false};
    (void)state;
    for (int s = REGISTRY_UNLOADED; s <= REGISTRY_FAILED; s++)
        for (uint32_t duty = 0; duty <= DESIRED_LEAVE; duty++) {
            const struct node_model m = {.state = (enum registry_state)s, .duty = duty};
            bool want = duty == 0 ? own[s] : duty == DESIRED_SERVE && s == REGISTRY_READY;
            if (node_model_usable(&m, 0, false) != want || node_model_usable(&m, 0, true) != want)
                fail_msg("state %d, duty %u", s, duty);
            /* it waits for the present state: only a request that accepts any version is sent */
            const struct node_model w = {.state = m.state, .duty = DESIRED_STAGE, .waits = true};
            if (node_model_usable(&w, 0, false) ||
                node_model_usable(&w, 0, true) != (s == REGISTRY_READY))
                fail_msg("state %d, waiting", s);
        }
}

static void test_values_that_are_too_deep(void **state)
{
    struct value chain[VALUE_BYTES_MAX_DEPTH + 1], out;
    struct arena a;
    struct buf b;
    (void)state;
    chain[VALUE_BYTES_MAX_DEPTH] = (struct value){.kind = VALUE_NULL};
    for (int i = VALUE_BYTES_MAX_DEPTH - 1; i >= 0; i--)
        chain[i] = (struct value){.kind = VALUE_LIST, .list = {&chain[i + 1], 1}};
    buf_init(&b, 1 << 20);
    arena_init(&a, 1 << 20);
    value_bytes_put(&b, &chain[0]);
    assert_int_equal(value_bytes_get(&out, &a, (const uint8_t *)b.data, b.len), SHOAL_ELIMIT);
    buf_clear(&b);
    value_bytes_put(&b, &chain[1]);
    assert_int_equal(value_bytes_get(&out, &a, (const uint8_t *)b.data, b.len), 0);
    assert_int_equal(value_bytes_get(&out, &a, (const uint8_t *)b.data, b.len - 1), SHOAL_EFORMAT);
    buf_fini(&b);
    arena_fini(&a);
}

/* The message that was on its way the shortest tells the most; old ones are forgotten. */
static void test_clock_offset(void **state)
{
    struct clock_offset o = {0};
    int64_t ms;
    (void)state;
    assert_false(clock_offset_get(&o, &ms));
    for (uint64_t i = 0; i < CLOCK_OFFSET_SPAN; i++) /* 700 ms ahead, 3 to 34 ms on the way */
        clock_offset_add(&o, 10700 + i, 10000 + i + 34 - i);
    assert_true(clock_offset_get(&o, &ms) && ms == 697);
    clock_offset_add(&o, 5000, 9000); /* it was set back */
    assert_true(clock_offset_get(&o, &ms) && ms == 697);
    for (uint64_t i = 0; i < 2 * CLOCK_OFFSET_SPAN; i++)
        clock_offset_add(&o, 5000, 9000);
    assert_true(clock_offset_get(&o, &ms) && ms == -4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_a_conversation),
                                       cmocka_unit_test(test_tools_and_calls),
                                       cmocka_unit_test(test_prompts_inputs_and_commands),
                                       cmocka_unit_test(test_requests_that_are_none),
                                       cmocka_unit_test(test_events),
                                       cmocka_unit_test(test_a_plan),
                                       cmocka_unit_test(test_the_state_of_a_node),
                                       cmocka_unit_test(test_every_field_of_a_node_travels),
                                       cmocka_unit_test(test_which_models_are_usable),
                                       cmocka_unit_test(test_clock_offset),
                                       cmocka_unit_test(test_values_that_are_too_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
