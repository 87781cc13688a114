/* test_ask_plan.c - plans as data: their copies, edits, JSON and explanations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "flow/ask_plan.h"

static const char *const items[] = {"milk", "eggs"};
static const struct ask_plan_action first = {
    .name = "turn_on",
    .fields = {{.key = "room", .text = "kitchen"},
               {.key = "items", .items = items, .n_items = 2},
               {.key = "level", .number = 40.5}},
    .n_fields = 3,
    .due_s = 1700000000,
    .due_counted = true,
    .due_told = true,
    .again = {.days = 0x15,
              .period_s = 60,
              .first_s = 1700000001,
              .minute = 420,
              .sun = 1,
              .latitude = 47.5,
              .longitude = 8.25,
              .words = "every day"}};
static const struct ask_plan_action second = {.name = "stop"};
static const struct ask_plan_action *const actions[] = {&first, &second};
static const struct ask_plan_entity entities[] = {{"room", "kitchen"}, {"time", "seven"}};
static const struct ask_plan_clause clauses[] = {
    {.text = "turn on the light",
     .intent = "turn_on",
     .router = "home",
     .flow = "lights",
     .intent_p = 0.75f,
     .router_p = 0.5f,
     .act = "command",
     .act_p = 0.25f,
     .entities = entities,
     .n_entities = 2},
    {.text = "and stop", .intent = "stop", .router = "other", .flow = "", .act = "command"}};
static const char *const contexts[] = {"light: on", "time: seven"};
static const struct ask_plan whole = {.actions = actions,
                                      .n_actions = 2,
                                      .clauses = clauses,
                                      .n_clauses = 2,
                                      .contexts = contexts,
                                      .n_contexts = 2,
                                      .open = ASK_PLAN_TALK};

#define ACTIONS                                                                                    \
    "\"actions\":[{\"action\":\"turn_on\",\"room\":\"kitchen\",\"items\":[\"milk\",\"eggs\"],"     \
    "\"level\":40.5},{\"action\":\"stop\"}]"
#define UNDERSTOOD                                                                                 \
    "\"clauses\":[{\"text\":\"turn on the light\",\"act\":\"command\",\"act_confidence\":0.25,"    \
    "\"intent\":\"turn_on\",\"confidence\":0.75,\"router\":\"home\",\"router_confidence\":0.5,"    \
    "\"entities\":[{\"type\":\"room\",\"text\":\"kitchen\"},{\"type\":\"time\",\"text\":"          \
    "\"seven\"}]},{\"text\":\"and stop\",\"act\":\"command\",\"act_confidence\":0,\"intent\":"     \
    "\"stop\",\"confidence\":0,\"router\":\"other\",\"router_confidence\":0,\"entities\":[]}],"    \
    "\"contexts\":[\"light: on\",\"time: seven\"]"

static const char *json_of(const struct ask_plan *p, struct buf *b)
{
    buf_clear(b);
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    ask_plan_json(&j, p);
    json_out_object_end(&j);
    return buf_str(b);
}

static void check_again(const struct ask_plan_again *got)
{
    const struct ask_plan_again *want = &first.again;
    assert_int_equal(got->days, want->days);
    assert_int_equal(got->period_s, want->period_s);
    assert_int_equal(got->first_s, want->first_s);
    assert_int_equal(got->minute, want->minute);
    assert_int_equal(got->sun, want->sun);
    assert_true(got->latitude == want->latitude && got->longitude == want->longitude);
    assert_string_equal(got->words, want->words);
}

/* A copy has everything, and nothing of the original. */
static void test_copies(void **state)
{
    struct arena a;
    struct buf b;
    (void)state;
    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 16);
    const struct ask_plan *copy = ask_plan_copy(&whole, &a);
    assert_non_null(copy);
    assert_string_equal(json_of(copy, &b), "{" ACTIONS "," UNDERSTOOD "}");
    assert_int_equal(copy->open, ASK_PLAN_TALK);
    assert_int_equal(copy->actions[0]->due_s, 1700000000);
    assert_true(copy->actions[0]->due_counted && copy->actions[0]->due_told);
    assert_false(copy->actions[1]->due_counted || copy->actions[1]->due_told);
    check_again(&copy->actions[0]->again);
    assert_null(copy->actions[1]->again.words);
    assert_string_equal(copy->clauses[0].flow, "lights");
    assert_ptr_not_equal(copy->actions[0]->fields[0].text, first.fields[0].text);
    assert_ptr_not_equal(copy->actions[0]->fields[1].items, items);
    assert_ptr_not_equal(copy->actions[0]->fields[1].items[0], items[0]);
    assert_ptr_not_equal(copy->clauses[0].entities, entities);
    assert_ptr_not_equal(copy->contexts[0], contexts[0]);
    assert_ptr_not_equal(copy->actions[0]->again.words, first.again.words);
    const struct ask_plan_action *one = ask_plan_action_copy(&first, &a);
    assert_non_null(one);
    assert_string_equal(one->name, "turn_on");
    assert_int_equal(one->n_fields, 3);
    assert_int_equal(one->due_s, 0); /* when is the caller's */
    buf_fini(&b);
    arena_fini(&a);
}

struct editing {
    struct arena *arena;
    uint32_t n, fails_at;
};

static const char *shout(void *ctx, const char *text)
{
    struct editing *x = ctx;
    if (++x->n == x->fails_at)
        return NULL;
    return arena_printf(x->arena, "<%s>", text);
}

static void test_edits(void **state)
{
    struct arena a;
    struct editing x = {.arena = &a};
    (void)state;
    arena_init(&a, 1 << 20);
    const struct ask_plan *p = ask_plan_edit(&whole, &a, shout, &x);
    assert_non_null(p);
    const uint32_t all = x.n;
    assert_string_equal(p->actions[0]->name, "<turn_on>");
    assert_string_equal(p->actions[0]->fields[0].key, "<room>");
    assert_string_equal(p->actions[0]->fields[0].text, "<kitchen>");
    assert_string_equal(p->actions[0]->fields[1].items[1], "<eggs>");
    assert_true(p->actions[0]->fields[2].number == 40.5);
    assert_null(p->actions[0]->fields[2].text);
    assert_string_equal(p->clauses[0].entities[1].text, "<seven>");
    assert_string_equal(p->contexts[1], "<time: seven>");
    for (uint32_t i = 1; i <= all; i++) { /* one that cannot be made fails all */
        x = (struct editing){.arena = &a, .fails_at = i};
        assert_null(ask_plan_edit(&whole, &a, shout, &x));
    }
    arena_fini(&a);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (size_t max = 0; max < 8192; max += 64) { /* an arena that small has no room */
        struct arena a;
        arena_init(&a, max);
        const struct ask_plan *p = ask_plan_copy(&whole, &a);
        assert_int_equal(p == NULL, a.rc < 0);
        arena_fini(&a);
        arena_init(&a, max);
        const struct ask_plan_action *one = ask_plan_action_copy(&first, &a);
        assert_int_equal(one == NULL, a.rc < 0);
        arena_fini(&a);
    }
}

static void test_fields(void **state)
{
    (void)state;
    assert_ptr_equal(ask_plan_field_of(&first, "items"), &first.fields[1]);
    assert_ptr_equal(ask_plan_field_of(&first, "level"), &first.fields[2]);
    assert_null(ask_plan_field_of(&first, "rooms"));
    assert_null(ask_plan_field_of(&second, "room"));
    assert_string_equal(ask_plan_text_of(&first, "room"), "kitchen");
    assert_null(ask_plan_text_of(&first, "level"));
    assert_null(ask_plan_text_of(&first, "none"));
}

static void test_answers(void **state)
{
    static const struct ask_plan_step steps[] = {
        {.name = "understand", .model = "encoder", .start_ns = 1500000, .ns = 2500000, .tokens = 7},
        {.name = "act", .start_ns = 4000000, .ns = 250000, .tokens = 9}};
    const struct ask_plan_answer answer = {.plan = &whole,
                                           .reply = "Done. More",
                                           .reply_bytes = 5,
                                           .steps = steps,
                                           .n_steps = 2,
                                           .total_ns = 5000000};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 16);
    for (int explain = 0; explain < 2; explain++) {
        buf_clear(&b);
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        ask_plan_answer_json(&j, &answer, explain);
        json_out_object_end(&j);
        assert_string_equal(
            buf_str(&b),
            explain ? "{" ACTIONS ",\"reply\":\"Done.\"," UNDERSTOOD
                      ",\"steps\":[{\"step\":\"understand\",\"model\":\"encoder\",\"tokens\":7,"
                      "\"start_ms\":1.5,\"ms\":2.5},{\"step\":\"act\",\"start_ms\":4,\"ms\":0.25}],"
                      "\"total_ms\":5}"
                    : "{" ACTIONS ",\"reply\":\"Done.\"}");
    }
    buf_clear(&b);
    ask_plan_explain(&b, &whole);
    assert_string_equal(buf_str(&b), "\n\"turn on the light\"\n  act     command 0.25\n"
                                     "  intent  turn_on 0.75\n  router  home 0.50 (lights)\n"
                                     "  room  kitchen\n  time  seven\n"
                                     "\n\"and stop\"\n  act     command 0.00\n"
                                     "  intent  stop 0.00\n  router  other 0.00 ()\n"
                                     "\ncontext \"light: on\"\ncontext \"time: seven\"\n");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),  cmocka_unit_test(test_edits),
        cmocka_unit_test(test_fields),  cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
