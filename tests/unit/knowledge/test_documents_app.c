/* test_documents_app.c - what an application leaves open is looked up in collections. The
 * application behind is the test's, and so is the model: a vector counts letters. */
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
#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "flow/flow.h"
#include "knowledge/documents_app.h"
#include "store/chunk.h"

#define DIMS 26u
#define SORRY "Sorry, I can't help with that."

static char dir[64];
static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct collections *collections;
} site;

/* ---- the model ---- */

static bool broken;

static void make_vector(float *v, const char *text, size_t n)
{
    double sum = 0;
    memset(v, 0, DIMS * sizeof(*v));
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            v[text[i] - 'a'] += 1;
    for (uint32_t i = 0; i < DIMS; i++)
        sum += (double)v[i] * (double)v[i];
    for (uint32_t i = 0; i < DIMS; i++)
        v[i] = (float)((double)v[i] / sqrt(sum > 0 ? sum : 1));
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    const struct sink_start start = {.model = "embedder", .version = "v1"};
    struct failure f;
    (void)d;
    assert_int_equal(r->infer.kind, SHOAL_KIND_EMBED);
    assert_string_equal(r->client.name, "ann");
    if (broken) {
        failure_set(&f, FAILURE_BUSY, SHOAL_EBUSY, NULL, "busy", "too many requests");
        (s->ops->fail)(s, &f);
    } else {
        s->ops->start(s, &start);
        for (uint32_t i = 0; i < r->infer.n_inputs; i++) {
            float v[DIMS];
            struct shoal_result one = {
                .kind = SHOAL_KIND_EMBED, .n_tokens = 3, .vector = v, .n_dims = DIMS};
            make_vector(v, r->infer.inputs[i].text, r->infer.inputs[i].text_bytes);
            const struct sink_result e = {
                .index = i, .result = &one, .last = i + 1 == r->infer.n_inputs};
            s->ops->result(s, &e);
        }
    }
    s->ops->closed(s);
    flow_give_request(o, r);
    return true;
}

/* ---- the application behind ---- */

static struct {
    struct app app;
    enum ask_plan_open open;
    bool fails, waits; /* waits: only a cancellation closes it */
    struct flow_job job;
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
} behind;

static void behind_close(void)
{
    behind.sink->job = NULL;
    behind.sink->ops->closed(behind.sink);
    flow_give_request(behind.owner, behind.request);
}

static void behind_cancel(struct flow_job *j)
{
    (void)j;
    behind_close();
}

static void behind_run(struct app *a, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {behind_cancel, NULL};
    const struct ask_plan_clause clause = {.text = r->ask.text, .intent = "other", .act = "none"};
    const struct ask_plan plan = {.clauses = &clause, .n_clauses = 1, .open = behind.open};
    char name[] = "reply"; /* gone before the answer is sent */
    const struct sink_start start = {.model = name, .version = ""};
    const struct sink_plan e = {&plan};
    const struct sink_token t = {.token = -1, .text = SORRY, .text_bytes = strlen(SORRY)};
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true, .total_ns = 7};
    struct failure f;
    (void)a;
    behind.job.ops = &ops;
    behind.owner = o;
    behind.request = r;
    behind.sink = s;
    s->job = &behind.job;
    s->ops->start(s, &start);
    s->ops->plan(s, &e);
    if (behind.open != ASK_PLAN_SETTLED)
        memset(name, 'x', sizeof(name) - 1);
    if (behind.waits)
        return;
    if (behind.fails) {
        failure_of(&f, SHOAL_EDEADLINE, "too late");
        (s->ops->fail)(s, &f);
    } else {
        s->ops->token(s, &t);
        s->ops->done(s, &done);
    }
    behind_close();
}

/* ---- the client ---- */

static struct {
    struct sink sink;
    const char *start_model; /* must stay until closed */
    char model[16], reply[256], action[32], result[16], reason[64], document[64], text[128];
    double score;
    uint32_t n_actions, n_plans, n_done, n_failed, n_closed, n_steps, n_tokens;
} client;

static void put(char *to, size_t n, const struct ask_plan_action *o, const char *key)
{
    const char *text = ask_plan_text_of(o, key);
    snprintf(to, n, "%s", text ? text : "");
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    client.start_model = e->model;
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    (void)s;
    client.n_plans++;
    client.n_actions = e->plan->n_actions;
    assert_int_equal(e->plan->n_clauses, 1);
    if (e->plan->n_actions == 0)
        return;
    const struct ask_plan_action *o = e->plan->actions[0];
    snprintf(client.action, sizeof(client.action), "%s", o->name);
    put(client.result, sizeof(client.result), o, "result");
    put(client.reason, sizeof(client.reason), o, "reason");
    put(client.document, sizeof(client.document), o, "document");
    put(client.text, sizeof(client.text), o, "text");
    const struct ask_plan_field *f = ask_plan_field_of(o, "score");
    client.score = f ? f->number : 0;
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    (void)s;
    strncat(client.reply, t->text, t->text_bytes);
    client.n_tokens++;
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    (void)s;
    client.n_done++;
    client.n_steps = e->n_steps;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    (void)s;
    (void)f;
    client.n_failed++;
}

static void on_closed(struct sink *s)
{
    (void)s;
    snprintf(client.model, sizeof(client.model), "%s", client.start_model);
    client.n_closed++;
}

static struct documents_app documents;

static void begin(const char *text, bool reply)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed};
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    memset(&client, 0, sizeof(client));
    client.sink.ops = &ops;
    r->kind = REQUEST_ASK;
    r->ask.text = text;
    r->ask.reply = reply;
    snprintf(r->client.name, sizeof(r->client.name), "ann");
    documents.app.run(&documents.app, &site.owner, r, &client.sink);
}

static void wait_for_it(void)
{
    while (client.n_closed == 0)
        assert_true(executor_queue_run(&site.executor));
    assert_int_equal(client.n_closed, 1);
    assert_int_equal(site.owner.n_jobs, 0);
    assert_null(client.sink.job);
}

static void ask(const char *text)
{
    begin(text, true);
    wait_for_it();
}

/* ---- the site ---- */

static int fill(const char *collection, const char *document, const char *text)
{
    const struct collection_settings settings = {.model = "embedder", .max_tokens = 100};
    const struct collection_doc doc = {.name = document, .title = "", .hash = 1};
    const struct chunk chunk = {.text = text,
                                .text_bytes = strlen(text),
                                .heading = "Data",
                                .heading_bytes = 4,
                                .ref = "",
                                .page = 3,
                                .n_tokens = 8};
    float vector[DIMS];
    struct collection *c = NULL;
    make_vector(vector, text, strlen(text));
    int rc = collections_make(site.collections, collection, &settings, NULL);
    if (rc == 0)
        rc = collections_hold(site.collections, collection, &c, NULL);
    if (rc == 0)
        rc = collection_put(c, &doc, &chunk, 1, vector, DIMS, "v1", 0, NULL);
    collections_release(site.collections, c);
    return rc;
}

static void use(const char *first, const char *second)
{
    const char *const names[] = {first, second};
    struct err e = {0};
    assert_int_equal(
        documents_app_init(&documents, &behind.app, site.collections, names, second ? 2 : 1, &e),
        0);
}

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = take};
    static struct dispatch dispatch = {&ops};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    broken = false;
    memset(&behind, 0, sizeof(behind));
    behind.app.run = behind_run;
    behind.open = ASK_PLAN_QUESTION;
    snprintf(dir, sizeof(dir), "/tmp/shoal-documents-XXXXXX");
    if (!mkdtemp(dir) || executor_queue_init(&site.executor, NULL) < 0 ||
        collections_open(&site.collections, dir, 0, NULL) < 0)
        return -1;
    site.flow = (struct flow){.pool = NULL};
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.owner.dispatch = &dispatch;
    return fill("valves", "m/valves.pdf", "The valve opens at 5 bar.") < 0 ||
                   fill("pumps", "pumps.md", "The valve of the pump opens at 7 bar, or later.") < 0
               ? -1
               : 0;
}

static int close_site(void **state)
{
    char command[96];
    (void)state;
    collections_close(site.collections);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* ---- tests ---- */

#define OPENS "at how many bar does the valve open?"

static void test_what_is_settled_is_passed_on(void **state)
{
    (void)state;
    use("valves", NULL);
    behind.open = ASK_PLAN_SETTLED;
    ask(OPENS);
    assert_string_equal(client.reply, SORRY);
    assert_int_equal(client.n_plans, 1);
    assert_int_equal(client.n_actions, 0);
    assert_int_equal(client.n_done, 1);
    assert_int_equal(client.n_steps, 0);
}

static void test_a_sentence_answers(void **state)
{
    (void)state;
    use("valves", NULL);
    ask(OPENS);
    assert_string_equal(client.model, "reply");
    assert_string_equal(client.reply, "The valve opens at 5 bar. That is from valves.pdf, page 3.");
    assert_string_equal(client.action, "find_document");
    assert_string_equal(client.document, "m/valves.pdf");
    assert_string_equal(client.text, "The valve opens at 5 bar.");
    assert_string_equal(client.result, "done");
    assert_true(client.score >= 0.35 && client.score <= 1);
    assert_int_equal(client.n_plans, 1);
    assert_int_equal(client.n_done, 1);
    assert_int_equal(client.n_steps, 2);
}

static void test_the_best_of_two_collections(void **state)
{
    double worse;
    (void)state;
    use("pumps", NULL);
    ask(OPENS);
    assert_string_equal(client.document, "pumps.md");
    worse = client.score;
    use("pumps", "valves");
    ask(OPENS);
    assert_true(client.score > worse);
    assert_string_equal(client.document, "m/valves.pdf");
    use("valves", "pumps");
    ask(OPENS);
    assert_string_equal(client.document, "m/valves.pdf");
}

static void test_talk_that_a_document_answers(void **state)
{
    (void)state;
    use("valves", NULL);
    behind.open = ASK_PLAN_TALK;
    ask(OPENS);
    assert_string_equal(client.action, "find_document");
    assert_string_equal(client.result, "done");
}

static void test_nothing_answers(void **state)
{
    (void)state;
    use("valves", NULL);
    ask("who founded the city of Madrid?");
    assert_string_equal(client.reply, "I don't know.");
    assert_string_equal(client.result, "failed");
    assert_string_equal(client.reason, "no document answers this");
    behind.open = ASK_PLAN_TALK; /* perhaps it was none: what was said stays */
    ask("I like trains");
    assert_string_equal(client.reply, SORRY);
    assert_int_equal(client.n_tokens, 1);
    assert_int_equal(client.n_actions, 0);
}

static void test_a_search_that_fails(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    use("missing", NULL);
    ask(OPENS);
    assert_string_equal(client.reply, "I don't know.");
    assert_non_null(strstr(client.reason, "no collection 'missing'"));
    use("missing", "valves"); /* the others are still asked */
    ask(OPENS);
    assert_string_equal(client.result, "done");
    use("valves", NULL);
    broken = true;
    ask(OPENS);
    assert_string_equal(client.reason, "too many requests");
    assert_int_equal(client.n_done, 1);
}

static void test_actions_only(void **state)
{
    (void)state;
    use("valves", NULL);
    begin(OPENS, false);
    wait_for_it();
    assert_string_equal(client.result, "done");
    assert_int_equal(client.n_tokens, 0);
    assert_int_equal(client.n_done, 1);
}

static void test_a_failure_behind(void **state)
{
    (void)state;
    use("valves", NULL);
    behind.fails = true;
    ask(OPENS);
    assert_int_equal(client.n_failed, 1);
    assert_int_equal(client.n_done, 0);
    assert_int_equal(client.n_plans, 0);
}

static void test_cancelled(void **state)
{
    (void)state;
    use("valves", NULL);
    behind.waits = true;
    begin(OPENS, true);
    flow_cancel(&client.sink);
    flow_cancel(&client.sink);
    wait_for_it();
    assert_int_equal(client.n_done, 0);
    assert_int_equal(client.n_plans, 0);
    assert_int_equal(client.n_failed, 0);
}

static void test_names_that_are_none(void **state)
{
    const char *const bad[] = {"../x"};
    const char *many[DOCUMENTS_APP_MAX + 1];
    struct err e = {0};
    (void)state;
    for (uint32_t i = 0; i <= DOCUMENTS_APP_MAX; i++)
        many[i] = "valves";
    assert_int_equal(documents_app_init(&documents, &behind.app, site.collections, bad, 1, &e),
                     SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "cannot name a collection"));
    assert_int_equal(documents_app_init(&documents, &behind.app, site.collections, many,
                                        DOCUMENTS_APP_MAX + 1, &e),
                     SHOAL_EINVAL);
    assert_int_equal(
        documents_app_init(&documents, &behind.app, site.collections, many, DOCUMENTS_APP_MAX, &e),
        0);
    assert_int_equal(documents_app_init(&documents, &behind.app, NULL, many, 1, &e), SHOAL_EINVAL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_site, close_site)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_settled_is_passed_on),
        TEST(test_a_sentence_answers),
        TEST(test_the_best_of_two_collections),
        TEST(test_talk_that_a_document_answers),
        TEST(test_nothing_answers),
        TEST(test_a_search_that_fails),
        TEST(test_actions_only),
        TEST(test_a_failure_behind),
        TEST(test_cancelled),
        TEST(test_names_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
