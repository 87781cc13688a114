/* test_answer_cache.c - which requests ask the same question: every field that an answer depends on
 * makes it another one, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/log.h"
#include "flow/generate/answer_cache.h"
#include "flow/generate/token_queue.h"
#include "host/kept_answer.h"
#include "host/registry.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct registry *registry;
static struct registry_model *model;

/* A request, and all that it points to. */
struct asked {
    struct request *request;
    struct chat_call calls[2];
    struct chat_message messages[3];
    struct chat_tool tools[2];
    struct value_member parameters[1], vars[2];
    struct request_prompt prompts[2];
    int32_t ids[4];
    const char *stop[2];
    struct shoal_bias bias[2];
    struct request_piece pieces[2];
    struct request_bias bias_texts[2];
};

static void base(struct asked *a)
{
    memset(a, 0, sizeof(*a));
    a->request = request_create();
    assert_non_null(a->request);
    a->request->kind = REQUEST_GENERATE;
    a->calls[0] = (struct chat_call){"c1", "lamp", "{\"on\":true}", 11};
    a->calls[1] = (struct chat_call){"c2", "lamp", "{}", 2};
    a->messages[0] = (struct chat_message){
        .role = "user", .name = "anna", .content = "hello", .content_bytes = 5};
    a->messages[1] =
        (struct chat_message){.role = "assistant", .content = "", .calls = a->calls, .n_calls = 2};
    a->messages[2] = (struct chat_message){
        .role = "tool", .content = "done", .content_bytes = 4, .call_id = "c1"};
    a->parameters[0] = (struct value_member){"type", value_text("object", 6)};
    a->tools[0] = (struct chat_tool){.name = "lamp",
                                     .description = "switches",
                                     .parameters = {.kind = VALUE_MAP, .map = {a->parameters, 1}}};
    a->tools[1] = (struct chat_tool){.name = "door", .description = ""};
    a->vars[0] = (struct value_member){"thinking", {.kind = VALUE_BOOL, .boolean = true}};
    a->vars[1] = (struct value_member){"date", value_text("today", 5)};
    struct request_generate *g = &a->request->generate;
    g->chat = (struct chat){.messages = a->messages,
                            .n_messages = 3,
                            .vars = a->vars,
                            .n_vars = 2,
                            .template = "{{ messages }}",
                            .tools = a->tools,
                            .n_tools = 2,
                            .tool_choice = CHAT_TOOLS_ONE,
                            .tool = 0};
    for (int32_t i = 0; i < 4; i++)
        a->ids[i] = 5 + i;
    a->prompts[0] = (struct request_prompt){.text = "ab", .text_bytes = 2};
    a->prompts[1] = (struct request_prompt){.text = "cd", .text_bytes = 2};
    g->prompts = a->prompts;
    g->n_prompts = g->n = 1;
    g->max_tokens = 16;
    a->stop[0] = "x";
    a->stop[1] = "y";
    g->stop = a->stop;
    g->n_stop = 2;
    a->bias[0] = (struct shoal_bias){3, 1.0f};
    a->bias[1] = (struct shoal_bias){4, -1.0f};
    g->sampling.bias = a->bias;
    g->sampling.n_bias = 2;
    g->constraint = (struct request_constraint){SHOAL_CONSTRAINT_REGEX, "a+", 2};
}

static bool question(struct asked *a, uint8_t out[SHA256_BYTES])
{
    bool ok = answer_cache_question(out, a->request, model);
    request_destroy(a->request);
    return ok;
}

static void edit_chat(struct asked *a, int which)
{
    struct chat *c = &a->request->generate.chat;
    switch (which) {
    case 0:
        a->messages[0].role = "system";
        break;
    case 1:
        a->messages[0].name = "ben";
        break;
    case 2:
        a->messages[0].name = NULL;
        break;
    case 3:
        a->messages[0].content = "hullo";
        break;
    case 4:
        a->messages[0].content_bytes = 4;
        break;
    case 5:
        a->messages[1].n_calls = 1;
        break;
    case 6:
        a->calls[0].id = "c3";
        break;
    case 7:
        a->calls[1].name = "door";
        break;
    case 8:
        a->calls[1].arguments = "[]";
        break;
    case 9:
        a->calls[0].arguments_bytes = 10;
        break;
    case 10:
        a->messages[2].call_id = "c2";
        break;
    case 11:
        a->messages[2].call_id = NULL;
        break;
    case 12:
        c->n_messages = 2;
        break;
    case 13:
        c->n_vars = 1;
        break;
    case 14:
        a->vars[0].value.boolean = false;
        break;
    case 15:
        a->vars[1].key = "day";
        break;
    case 16:
        c->template = "{{ other }}";
        break;
    case 17:
        c->template = NULL;
        break;
    case 18:
        c->n_tools = 1;
        break;
    case 19:
        a->tools[0].name = "lump";
        break;
    case 20:
        a->tools[0].description = "toggles";
        break;
    case 21:
        a->tools[0].parameters.map.n = 0;
        break;
    case 22:
        a->tools[1].strict = true;
        break;
    case 23:
        c->tool_choice = CHAT_TOOLS_REQUIRED;
        break;
    case 24:
        c->tool = 1;
        break;
    case 25:
        c->one_call = true;
        break;
    }
}

static void edit_prompts(struct asked *a, int which)
{
    struct request_generate *g = &a->request->generate;
    g->chat.n_messages = 0;
    switch (which) {
    case 0:
        a->prompts[0].text = "ac";
        break;
    case 1:
        a->prompts[0].text_bytes = 1;
        break;
    case 2:
        break;
    case 3:
        g->n_prompts = 2;
        break;
    case 4:
        g->n_prompts = 2, a->prompts[1].text_bytes = 1;
        break;
    case 5: /* "a", "bcd": the same bytes */
        g->n_prompts = 2;
        a->prompts[0].text_bytes = 1;
        a->prompts[1] = (struct request_prompt){.text = "bcd", .text_bytes = 3};
        break;
    case 6:
        g->n = 2;
        break;
    case 7:
        a->prompts[0] = (struct request_prompt){.ids = a->ids, .n_ids = 4};
        break;
    case 8:
        a->prompts[0] = (struct request_prompt){.ids = a->ids, .n_ids = 3};
        break;
    case 9:
        a->ids[3]++, a->prompts[0] = (struct request_prompt){.ids = a->ids, .n_ids = 4};
        break;
    case 10: /* two and two tokens, */
    case 11: /* three and one */
        g->n_prompts = 2;
        a->prompts[0] = (struct request_prompt){.ids = a->ids, .n_ids = which == 10 ? 2 : 3};
        a->prompts[1] = (struct request_prompt){.ids = a->ids + a->prompts[0].n_ids,
                                                .n_ids = 4 - a->prompts[0].n_ids};
        break;
    }
}

/* What surrounds a prompt, and prompts of pieces. */
static void edit_surroundings(struct asked *a, int which)
{
    struct request_prompt *p = &a->prompts[0];
    a->request->generate.chat.n_messages = 0;
    a->pieces[0] = (struct request_piece){.text = "ab", .text_bytes = 2};
    a->pieces[1] = (struct request_piece){.ids = a->ids, .n_ids = 2};
    if (which < 2) {
        p->suffix = which ? "end" : "ind";
        p->suffix_bytes = 3;
        return;
    }
    *p = (struct request_prompt){.pieces = a->pieces, .n_pieces = 2};
    switch (which) {
    case 3:
        a->pieces[0].text = "ac";
        break;
    case 4:
        a->pieces[1].n_ids = 1;
        break;
    case 5:
        p->n_pieces = 1;
        break;
    case 6:
        a->pieces[0].name = "main.c";
        break;
    case 7: /* of the same characters */
        a->pieces[1] = (struct request_piece){.text = "ab", .text_bytes = 2};
        break;
    case 8:
        p->suffix = "end", p->suffix_bytes = 3;
        break;
    }
}

static void edit_settings(struct asked *a, int which)
{
    struct request_generate *g = &a->request->generate;
    switch (which) {
    case 0:
        g->max_tokens++;
        break;
    case 1:
        a->stop[1] = "z";
        break;
    case 2:
        g->n_stop = 1;
        break;
    case 3:
        g->ignore_end = true;
        break;
    case 4:
        g->special = true;
        break;
    case 5:
        g->parse_special = true;
        break;
    case 6:
        g->constraint.kind = SHOAL_CONSTRAINT_GBNF;
        break;
    case 7:
        g->constraint.text = "b+";
        break;
    case 8:
        g->constraint.text_bytes = 1;
        break;
    case 9:
        a->bias[0].token = 9;
        break;
    case 10:
        a->bias[1].bias = 2;
        break;
    case 11:
        g->sampling.n_bias = 1;
        break;
    case 12:
        g->sampling.logprobs = true;
        break;
    case 13:
        g->sampling.repeat_penalty = 1.5f;
        break;
    case 14:
        snprintf(a->request->client.name, sizeof(a->request->client.name), "anna");
        break;
    case 15:
        snprintf(a->request->client.name, sizeof(a->request->client.name), "ben");
        break;
    case 16:
        g->sampling.temperature = 1, g->has_seed = true;
        break;
    case 17:
        g->sampling.temperature = 1, g->has_seed = true, g->sampling.seed = 3;
        break;
    case 18:
    case 19:
    case 20:
    case 21:
        a->bias_texts[0] = (struct request_bias){which == 19 ? "yes" : "no", 1.0f};
        a->bias_texts[1] = (struct request_bias){"no", which == 20 ? 2.0f : 1.0f};
        g->bias_texts = a->bias_texts;
        g->n_bias_texts = which == 21 ? 1 : 2;
        break;
    case 22:
        g->no_shift = true;
        break;
    case 23:
        g->keep_tokens = 4;
        break;
    case 24:
        g->drawn_logprobs = true;
        break;
    case 25:
    case 26:
        g->adapter_scale = which == 25 ? 0.5f : 0.75f;
        break;
    }
}

static void test_every_field_counts(void **state)
{
    static const struct {
        void (*edit)(struct asked *a, int which);
        int n;
    } parts[] = {{edit_chat, 26}, {edit_prompts, 12}, {edit_surroundings, 9}, {edit_settings, 27}};
    static uint8_t seen[80][SHA256_BYTES];
    struct asked a, b;
    uint8_t again[SHA256_BYTES];
    uint32_t n = 0;
    (void)state;
    base(&a);
    assert_true(question(&a, seen[n++]));
    base(&b); /* in other memory */
    assert_true(question(&b, again));
    assert_memory_equal(seen[0], again, SHA256_BYTES);
    for (size_t part = 0; part < COUNT(parts); part++)
        for (int i = 0; i < parts[part].n; i++) {
            base(&a);
            parts[part].edit(&a, i);
            assert_true(question(&a, seen[n]));
            base(&b);
            parts[part].edit(&b, i);
            assert_true(question(&b, again));
            assert_memory_equal(seen[n], again, SHA256_BYTES);
            for (uint32_t k = 0; k < n; k++)
                if (memcmp(seen[k], seen[n], SHA256_BYTES) == 0)
                    fail_msg("edit %d of part %zu asks what question %u asks", i, part, k);
            n++;
        }
}

/* Settings of the model count, too. */
static void test_the_model_counts(void **state)
{
    struct registry_slot *s = model->slot;
    uint8_t seen[4][SHA256_BYTES];
    struct asked a;
    (void)state;
    const uint32_t n_ctx = s->n_ctx;
    const bool int8 = s->spec.int8, kv_q8 = s->spec.kv_q8;
    for (uint32_t i = 0; i < 4; i++) {
        s->n_ctx = n_ctx + (i == 1);
        s->spec.int8 = int8 != (i == 2);
        s->spec.kv_q8 = kv_q8 != (i == 3);
        base(&a);
        assert_true(question(&a, seen[i]));
        for (uint32_t k = 0; k < i; k++)
            assert_memory_not_equal(seen[i], seen[k], SHA256_BYTES);
    }
    s->spec.kv_q8 = kv_q8;
    struct prompt_key key = answer_cache_key(seen[0], model);
    assert_memory_equal(key.question, seen[0], SHA256_BYTES);
    assert_memory_equal(key.model, registry_identity(model)->sum, SHA256_BYTES);
}

/* A tool that is not forced has no index; clients that share a cache ask the same. */
static void test_what_does_not_count(void **state)
{
    uint8_t seen[2][SHA256_BYTES];
    struct asked a;
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        base(&a);
        a.request->generate.chat.tool_choice = CHAT_TOOLS_AUTO;
        a.request->generate.chat.tool = i;
        assert_true(question(&a, seen[i]));
    }
    assert_memory_equal(seen[0], seen[1], SHA256_BYTES);
    for (uint32_t i = 0; i < 2; i++) { /* the request says so */
        base(&a);
        a.request->shares_cache = true;
        snprintf(a.request->client.name, sizeof(a.request->client.name), "%s", i ? "anna" : "ben");
        assert_true(answer_cache_shared(a.request, model));
        assert_true(question(&a, seen[i]));
    }
    assert_memory_equal(seen[0], seen[1], SHA256_BYTES);
    for (uint32_t i = 0; i < 2; i++) { /* or the model */
        base(&a);
        assert_false(answer_cache_shared(a.request, model));
        model->slot->spec.shares_cache = true;
        snprintf(a.request->client.name, sizeof(a.request->client.name), "%s", i ? "anna" : "ben");
        assert_true(answer_cache_shared(a.request, model));
        assert_true(question(&a, seen[i]));
        model->slot->spec.shares_cache = false;
    }
    assert_memory_equal(seen[0], seen[1], SHA256_BYTES);
}

static void test_what_is_no_question(void **state)
{
    static const struct request_resume begun = {0};
    uint8_t out[SHA256_BYTES];
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct asked a;
        base(&a);
        struct request_generate *g = &a.request->generate;
        g->resume = i == 0 ? &begun : NULL;
        g->echo = i == 1;
        g->prompt_only = i == 2;
        g->sampling.temperature = i >= 3 ? 1 : 0; /* drawn, without a seed */
        g->has_seed = i == 4;
        assert_int_equal(question(&a, out), i == 4);
    }
}

/* What is kept of a choice is how it ended; an answer that broke off is not kept at all. */
static void test_the_kept_answer(void **state)
{
    struct prompt_cache *cache;
    struct token_queue_end ends[2] = {
        {.done = {.finish = SHOAL_FINISH_STOP,
                  .prompt_tokens = 1,
                  .generated_tokens = 2,
                  .queue_ns = 3,
                  .first_token_ns = 4,
                  .total_ns = 5}},
        {.done = {.finish = SHOAL_FINISH_LENGTH, .prompt_tokens = 6, .generated_tokens = 7}}};
    const struct kept_token token = {.choice = 1, .token = 9, .text = "hi", .text_bytes = 2};
    struct prompt_key key = {.model = {1}, .question = {2}};
    struct kept_answer kept;
    struct kept_token got;
    struct buf tokens;
    struct err e;
    (void)state;
    assert_int_equal(prompt_cache_create(&cache, 1 << 20, 0, &e), 0);
    buf_init(&tokens, 1 << 10);
    kept_answer_put_token(&tokens, &token);
    answer_cache_keep(cache, &key, ends, 2, &tokens);
    const struct prompt_entry *entry = prompt_cache_get(cache, &key, 1);
    assert_non_null(entry);
    assert_int_equal(kept_answer_open(&kept, entry->data, entry->n, &e), 0);
    assert_int_equal(kept.n_choices, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct kept_choice c = kept_answer_choice(&kept, i);
        assert_int_equal(c.finish, ends[i].done.finish);
        assert_int_equal(c.prompt_tokens, ends[i].done.prompt_tokens);
        assert_int_equal(c.generated_tokens, ends[i].done.generated_tokens);
        assert_int_equal(c.queue_ns, ends[i].done.queue_ns);
        assert_int_equal(c.first_token_ns, ends[i].done.first_token_ns);
        assert_int_equal(c.total_ns, ends[i].done.total_ns);
    }
    assert_true(kept_answer_next(&kept, &got));
    assert_int_equal(got.token, 9);
    assert_false(kept_answer_next(&kept, &got));
    prompt_cache_unref(entry);
    ends[1].done.finish = SHOAL_FINISH_ERROR;
    key.question[0] = 3;
    answer_cache_keep(cache, &key, ends, 2, &tokens);
    assert_null(prompt_cache_get(cache, &key, 1));
    buf_fini(&tokens);
    prompt_cache_destroy(cache);
}

static int open_site(void **state)
{
    const struct registry_spec spec = {
        .name = "reply", .path = SHOAL_TEST_DATA "/../../models/reply.gguf", .pinned = true};
    const struct registry_opts ro = {.cache_dir = ""};
    struct err e;
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (registry_create(&registry, &ro, &e) < 0 || registry_add(registry, &spec, &e) < 0)
        return -1;
    for (int i = 0; i < 60000 && !registry_ready(registry); i++)
        usleep(1000);
    return registry_get(registry, "reply", SHOAL_KIND_GENERATE, &model, NULL, &e);
}

static int close_site(void **state)
{
    (void)state;
    registry_put(model);
    registry_destroy(registry);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_counts), cmocka_unit_test(test_the_model_counts),
        cmocka_unit_test(test_what_does_not_count), cmocka_unit_test(test_what_is_no_question),
        cmocka_unit_test(test_the_kept_answer)};
    return cmocka_run_group_tests(tests, open_site, close_site);
}
