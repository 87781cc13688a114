/* test_sessions.c - conversations that continue by an id.  The test is the model: it sees the
 * messages of every request and answers.  Nothing waits for other threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "knowledge/sessions.h"
#include "support/recorder.h"

static char dir[64];
static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct sessions *sessions;
} site;

/* What the model sees and does. */
static struct {
    char seen[8192];     /* "role:text|" of each message of the last request */
    size_t input_bytes;  /* of it */
    uint32_t n_requests; /* all */
    const char *answer;  /* of the next */
    uint32_t n_fits;     /* it refuses more messages than this; 0: none */
    bool silent;         /* it fails otherwise, before or after its start */
    bool late;
    uint32_t n_choices;
} model;

static void refuse(struct sink *s, const char *reason)
{
    struct failure f;
    failure_set(&f, FAILURE_INVALID, SHOAL_ELIMIT, NULL, reason, "refused");
    (s->ops->fail)(s, &f);
}

/* Runs the request, as the stages behind would. */
static void run_model(struct flow_owner *o, struct request *r, struct sink *s)
{
    trace_request("passed on:", r);
    const struct chat *c = &r->generate.chat;
    const struct sink_start start = {.model = "m", .version = "v", .question = (uint8_t[32]){1}};
    size_t n = 0;
    model.n_requests++;
    model.input_bytes = r->input_bytes;
    model.seen[0] = '\0';
    for (uint32_t i = 0; i < c->n_messages; i++)
        n += (size_t)snprintf(model.seen + n, sizeof(model.seen) - n, "%s:%s|", c->messages[i].role,
                              c->messages[i].content);
    bool fits = model.n_fits == 0 || c->n_messages <= model.n_fits;
    if (fits && !model.silent) {
        s->ops->start(s, &start);
        for (uint32_t k = 0; k < model.n_choices; k++) {
            const struct sink_token echo = {
                .text = "echo", .text_bytes = 4, .choice = k, .echo = true};
            const struct sink_token t = {
                .text = model.answer, .text_bytes = strlen(model.answer), .choice = k, .token = 1};
            const struct sink_done done = {
                .choice = k, .finish = SHOAL_FINISH_STOP, .last = k + 1 == model.n_choices};
            s->ops->token(s, &echo);
            s->ops->token(s, &t);
            if (!model.late)
                s->ops->done(s, &done);
        }
        if (model.late)
            refuse(s, "broken");
    } else {
        if (model.late)
            s->ops->start(s, &start);
        refuse(s, fits ? "broken" : "context_length_exceeded");
    }
    s->ops->closed(s);
    flow_give_request(o, r);
}

/* One turn of a client; what it gets is in out. */
static void say(const char *client, const char *id, const struct chat_message *messages, uint32_t n,
                struct recorder *out)
{
    struct dispatch *stage = sessions_stage(site.sessions);
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    recorder_init(out);
    r->kind = REQUEST_GENERATE;
    r->remembered = true;
    r->way.pass_on = run_model;
    snprintf(r->session, sizeof(r->session), "%s", id);
    snprintf(r->client.name, sizeof(r->client.name), "%s", client);
    r->generate = (struct request_generate){
        .chat = {.messages = messages, .n_messages = n}, .n = 1, .n_prompts = 1};
    assert_true(stage->ops->run(stage, &site.owner, r, &out->sink));
    while (out->n_closed == 0)
        assert_true(executor_queue_run(&site.executor));
    assert_true(site.owner.n_jobs == 0 || site.owner.dispatch); /* a note may be written */
    assert_null(out->sink.job);
    recorder_fini(out);
}

static void say_text(const char *client, const char *id, const char *text, const char *answer)
{
    const struct chat_message m = {.role = "user", .content = text, .content_bytes = strlen(text)};
    struct recorder got;
    model.answer = answer;
    say(client, id, &m, 1, &got);
    assert_int_equal(got.n_last, 1);
    assert_int_equal(got.n_starts, 1);
    assert_string_equal(got.model, "m");
}

static void open_sessions(const char *place, uint32_t history_tokens)
{
    char full[128], keys[128];
    struct err e = {0};
    snprintf(full, sizeof(full), place, dir);
    snprintf(keys, sizeof(keys), "%s/keys", dir);
    const struct sessions_opts o = {
        .place = full, .key_file = keys, .ttl_s = 3600, .history_tokens = history_tokens};
    if (sessions_open(&site.sessions, &o, &e) < 0)
        fail_msg("%s", e.msg);
}

static int open_site(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    snprintf(dir, sizeof(dir), "/tmp/shoal-talks-XXXXXX");
    memset(&model, 0, sizeof(model));
    model.answer = "yes";
    model.n_choices = 1;
    if (executor_queue_init(&site.executor, NULL) < 0)
        return -1;
    site.flow = (struct flow){.pool = NULL};
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    return mkdtemp(dir) ? 0 : -1;
}

static int close_site(void **state)
{
    char command[96];
    (void)state;
    sessions_close(site.sessions);
    site.sessions = NULL;
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* The earlier messages come first, those of one client and one id; also in another process. */
static void test_turns_follow_each_other(void **state)
{
    struct sessions_counts n;
    struct err e = {0};
    struct buf b;
    (void)state;
    trace("== %s\n", __func__);
    open_sessions("sqlite:%s/s.db", 1000);
    say_text("ann", "a", "one", "1");
    assert_string_equal(model.seen, "user:one|");
    say_text("ann", "a", "two", "2");
    assert_string_equal(model.seen, "user:one|assistant:1|user:two|");
    assert_int_equal(model.input_bytes, 7);
    say_text("ann", "b", "three", "3");
    assert_string_equal(model.seen, "user:three|");
    say_text("bob", "a", "four", "4");
    assert_string_equal(model.seen, "user:four|");
    sessions_counts(site.sessions, &n);
    assert_int_equal(n.turns, 4);
    assert_int_equal(n.degraded, 0);
    assert_int_equal(n.unsaved, 0);
    sessions_close(site.sessions);
    open_sessions("sqlite:%s/s.db", 1000);
    say_text("ann", "a", "five", "5");
    assert_string_equal(model.seen, "user:one|assistant:1|user:two|assistant:2|user:five|");
    buf_init(&b, 4096);
    assert_int_equal(sessions_show(site.sessions, "bob", "a", &b, &e), 0);
    assert_non_null(strstr(buf_str(&b), "four"));
    assert_null(strstr(buf_str(&b), "one"));
    assert_int_equal(sessions_show(site.sessions, "bob", "b", &b, &e), SHOAL_ENOTFOUND);
    assert_int_equal(sessions_forget(site.sessions, "ann", "a", &e), 0);
    assert_int_equal(sessions_forget(site.sessions, "ann", "a", &e), SHOAL_ENOTFOUND);
    assert_int_equal(sessions_show(site.sessions, "ann", "a", &b, &e), SHOAL_ENOTFOUND);
    buf_fini(&b);
    say_text("ann", "a", "six", "6");
    assert_string_equal(model.seen, "user:six|");
}

/* The first of several answers is kept, without the echo of the prompt; the answer depends on the
 * conversation, so that it has no question of its own. */
static void test_only_the_first_answer_is_kept(void **state)
{
    const struct chat_message m = {.role = "user", .content = "hi", .content_bytes = 2};
    static const uint8_t none[32];
    struct recorder got;
    (void)state;
    trace("== %s\n", __func__);
    open_sessions("sqlite:%s/s.db", 1000);
    model.n_choices = 2;
    model.answer = "x";
    say("c", "a", &m, 1, &got);
    assert_int_equal(got.n_done, 2);
    assert_int_equal(got.n_last, 1);
    assert_string_equal(got.text[0], "echox");
    assert_string_equal(got.text[1], "echox");
    assert_memory_equal(got.question, none, sizeof(none));
    assert_false(got.start.session_away);
    model.n_choices = 1;
    say_text("c", "a", "ho", "y");
    assert_string_equal(model.seen, "user:hi|assistant:x|user:ho|");
}

/* A system message among the new ones replaces the stored one. */
static void test_a_new_system_message_replaces_the_old(void **state)
{
    static const struct chat_message first[] = {
        {.role = "system", .content = "A", .content_bytes = 1},
        {.role = "user", .content = "hi", .content_bytes = 2}};
    static const struct chat_message second[] = {
        {.role = "system", .content = "B", .content_bytes = 1},
        {.role = "user", .content = "ho", .content_bytes = 2}};
    struct recorder got;
    (void)state;
    trace("== %s\n", __func__);
    open_sessions("sqlite:%s/s.db", 1000);
    say("c", "a", first, 2, &got);
    say_text("c", "a", "go", "y");
    assert_string_equal(model.seen, "system:A|user:hi|assistant:yes|user:go|");
    say("c", "a", second, 2, &got);
    assert_string_equal(model.seen, "system:B|user:hi|assistant:yes|user:go|assistant:y|user:ho|");
}

/* A failed turn is not kept, and its failure passes on. */
static void test_failures_leave_no_turn(void **state)
{
    static const struct {
        bool silent, late;
        uint32_t n_starts;
    } rows[] = {{true, false, 0}, {true, true, 1}, {false, true, 1}};
    const struct chat_message m = {.role = "user", .content = "bad", .content_bytes = 3};
    struct sessions_counts n;
    struct recorder got;
    (void)state;
    trace("== %s\n", __func__);
    open_sessions("sqlite:%s/s.db", 1000);
    say_text("c", "a", "hi", "1");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        model.silent = rows[i].silent;
        model.late = rows[i].late;
        say("c", "a", &m, 1, &got);
        assert_int_equal(got.n_fails, 1);
        assert_string_equal(got.reason, "broken");
        assert_int_equal(got.n_starts, rows[i].n_starts);
        assert_int_equal(got.n_last, 0);
    }
    model.silent = model.late = false;
    say_text("c", "a", "ho", "2");
    assert_string_equal(model.seen, "user:hi|assistant:1|user:ho|");
    sessions_counts(site.sessions, &n);
    assert_int_equal(n.turns, 2);
}

/* Too long for the model: tried again with fewer of the earlier messages, at last with none. */
static void test_what_does_not_fit_is_shortened(void **state)
{
    const struct chat_message m = {.role = "user", .content = "last", .content_bytes = 4};
    char text[256];
    struct recorder got;
    (void)state;
    trace("== %s\n", __func__);
    open_sessions("sqlite:%s/s.db", 1000);
    memset(text, 0, sizeof(text));
    for (int i = 0; i < 40; i++)
        strncat(text, "word ", sizeof(text) - strlen(text) - 1);
    for (int i = 0; i < 6; i++)
        say_text("c", "a", text, "ok");
    model.n_fits = 3;
    model.answer = "fine";
    uint32_t before = model.n_requests;
    say("c", "a", &m, 1, &got);
    assert_int_equal(got.n_last, 1);
    assert_int_equal(got.n_fails, 0);
    assert_int_equal(got.n_starts, 1); /* that of the attempt that answered */
    assert_true(model.n_requests - before > 2);
    assert_true(strncmp(model.seen, "user:word", 9) == 0 && strstr(model.seen, "|user:last|"));
    model.n_fits = 1;
    say_text("c", "a", "again", "fine");
    assert_string_equal(model.seen, "user:again|");
    /* a message that does not fit by itself fails, and is not tried for ever */
    static const struct chat_message two[] = {{.role = "user", .content = "a", .content_bytes = 1},
                                              {.role = "user", .content = "b", .content_bytes = 1}};
    say("c", "new", two, 2, &got);
    assert_string_equal(got.reason, "context_length_exceeded");
    assert_int_equal(got.n_fails, 1);
}

/* About as many tokens as are allowed are sent and kept; the first message left is a user's. */
static void test_old_messages_are_dropped(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_sessions("sqlite:%s/s.db", 40);
    for (int i = 0; i < 20; i++)
        say_text("c", "a", "one two three four five", "six seven eight");
    assert_int_equal(strncmp(model.seen, "user:one", 8), 0);
    assert_in_range(strlen(model.seen), 80, 400);
}

/* Without the store the turns of this process go on; they are saved when it is back. */
static void test_the_store_may_be_away(void **state)
{
    char path[128], moved[128];
    const struct chat_message m = {.role = "user", .content = "hi", .content_bytes = 2};
    struct sessions_counts n;
    struct recorder got;
    struct err e = {0};
    struct buf b;
    (void)state;
    trace("== %s\n", __func__);
    snprintf(path, sizeof(path), "%s/s.db", dir);
    snprintf(moved, sizeof(moved), "%s/s.db/keep", dir);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder is no database */
    assert_int_equal(mkdir(moved, 0700), 0);
    open_sessions("sqlite:%s/s.db", 1000);
    say("c", "a", &m, 1, &got);
    assert_int_equal(got.n_last, 1);
    assert_true(got.start.session_away);
    say_text("c", "a", "ho", "2");
    assert_string_equal(model.seen, "user:hi|assistant:yes|user:ho|");
    say_text("c", "b", "other", "3");
    sessions_counts(site.sessions, &n);
    assert_int_equal(n.turns, 3);
    assert_int_equal(n.degraded, 3);
    assert_int_equal(n.unsaved, 2);
    assert_int_equal(rmdir(moved), 0);
    assert_int_equal(rmdir(path), 0);
    say("c", "a", &m, 1, &got); /* the store is back */
    assert_string_equal(model.seen, "user:hi|assistant:yes|user:ho|assistant:2|user:hi|");
    assert_false(got.start.session_away);
    sessions_counts(site.sessions, &n);
    assert_int_equal(n.turns, 4);
    assert_int_equal(n.degraded, 3);
    assert_int_equal(n.unsaved, 0);
    buf_init(&b, 4096);
    assert_int_equal(sessions_show(site.sessions, "c", "b", &b, &e), 0);
    assert_non_null(strstr(buf_str(&b), "other"));
    buf_clear(&b);
    assert_int_equal(sessions_show(site.sessions, "c", "a", &b, &e), 0);
    /* in their order, each once */
    const char *first = strstr(buf_str(&b), "\"hi\""), *ho = strstr(buf_str(&b), "\"ho\"");
    assert_true(first && ho && first < ho && strstr(ho, "\"hi\""));
    assert_null(strstr(ho + 1, "\"ho\""));
    buf_fini(&b);
}

static void test_places(void **state)
{
    static const char *const bad[] = {"mysql://x", "sqlite", "redis:x", ""};
    struct err e;
    (void)state;
    trace("== %s\n", __func__);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct sessions_opts o = {.place = bad[i], .key_file = "/tmp/x"};
        assert_int_equal(sessions_open(&site.sessions, &o, &e), SHOAL_EINVAL);
        assert_null(site.sessions);
        assert_non_null(strstr(e.msg, "sqlite:PATH or redis://HOST:PORT"));
    }
    const struct sessions_opts o = {.place = "redis://localhost:1", .key_file = "/tmp/x"};
    assert_int_equal(sessions_open(&site.sessions, &o, &e), 0); /* connects on first use */
}

/* ---- notes of what is dropped ---- */

/* The model that writes notes. */
static struct {
    char told[4096];           /* the last text to condense */
    uint32_t n_infer, n_asked; /* requests of each kind */
    const char *note;          /* "": it writes nothing */
    bool generates, broken;    /* generates: it does not summarize */
} notes;

static void write_infer_note(struct request *r, struct sink *s)
{
    struct shoal_result one = {
        .kind = SHOAL_KIND_SUMMARIZE, .text = notes.note, .text_bytes = strlen(notes.note)};
    const struct sink_result e = {.result = &one, .last = true};
    const struct sink_start start = {.model = "sum", .version = ""};
    struct failure f;
    notes.n_infer++;
    assert_int_equal(r->infer.kind, SHOAL_KIND_SUMMARIZE);
    assert_int_equal(r->infer.n_inputs, 1);
    assert_int_equal(r->infer.max_sentences, 6);
    assert_int_equal(r->infer.max_tokens, 200);
    assert_int_equal(r->input_bytes, r->infer.inputs[0].text_bytes);
    snprintf(notes.told, sizeof(notes.told), "%.*s", (int)r->infer.inputs[0].text_bytes,
             r->infer.inputs[0].text);
    if (notes.generates || notes.broken) {
        failure_set(&f, notes.broken ? FAILURE_BUSY : FAILURE_INVALID,
                    notes.broken ? SHOAL_EBUSY : SHOAL_EINVAL, NULL, "no", "it does not");
        (s->ops->fail)(s, &f);
    } else {
        s->ops->start(s, &start);
        s->ops->result(s, &e);
    }
}

static void write_asked_note(struct request *r, struct sink *s)
{
    const struct request_generate *g = &r->generate;
    const struct sink_start start = {.model = "sum", .version = ""};
    const struct sink_token t = {.text = notes.note, .text_bytes = strlen(notes.note), .token = 1};
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
    notes.n_asked++;
    assert_int_equal(g->chat.n_messages, 2);
    assert_string_equal(g->chat.messages[0].role, "system");
    assert_non_null(strstr(g->chat.messages[0].content, "short note"));
    assert_string_equal(g->chat.messages[1].role, "user");
    assert_int_equal(strncmp(g->chat.messages[1].content, notes.told, strlen(notes.told)), 0);
    assert_int_equal(g->max_tokens, 200);
    assert_int_equal(g->n, 1);
    assert_int_equal(g->n_prompts, 1);
    assert_true(r->truncates && r->no_cache);
    s->ops->start(s, &start);
    s->ops->token(s, &t);
    s->ops->done(s, &done);
}

static bool take_note(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)d;
    assert_string_equal(r->model, "sum");
    assert_string_equal(r->client.name, "c");
    assert_int_equal(r->priority, -100); /* nobody waits for it */
    if (r->kind == REQUEST_INFER)
        write_infer_note(r, s);
    else
        write_asked_note(r, s);
    s->ops->closed(s);
    flow_give_request(o, r);
    return true;
}

static void open_with_notes(uint32_t history_tokens)
{
    static const struct dispatch_ops ops = {.run = take_note};
    static struct dispatch dispatch = {&ops};
    char full[128], keys[128];
    struct err e = {0};
    memset(&notes, 0, sizeof(notes));
    notes.note = "Ann likes tea.";
    snprintf(full, sizeof(full), "sqlite:%s/s.db", dir);
    snprintf(keys, sizeof(keys), "%s/keys", dir);
    const struct sessions_opts o = {.place = full,
                                    .key_file = keys,
                                    .ttl_s = 3600,
                                    .summary = "sum",
                                    .history_tokens = history_tokens};
    assert_int_equal(sessions_open(&site.sessions, &o, &e), 0);
    site.owner.dispatch = &dispatch;
}

/* A turn, and the note that it may cause. */
static void say_and_note(const char *text, const char *answer)
{
    say_text("c", "a", text, answer);
    while (site.owner.n_jobs > 0)
        assert_true(executor_queue_run(&site.executor));
}

/* Turns until the first note was wanted. */
static uint32_t say_until_noted(void)
{
    uint32_t n = 0;
    while (notes.n_infer == 0 && n < 20) {
        char text[64];
        snprintf(text, sizeof(text), "one two three four five %u", n++);
        say_and_note(text, "six seven eight");
    }
    assert_in_range(n, 2, 10);
    return n;
}

static void test_what_is_dropped_becomes_a_note(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    for (int generates = 0; generates < 2; generates++) {
        open_with_notes(60);
        notes.generates = generates;
        say_until_noted();
        assert_int_equal(notes.n_asked, generates);
        assert_int_equal(strncmp(notes.told, "User: one two three four five 0\nAssistant: six", 46),
                         0);
        notes.note = "Bob came.";
        uint32_t before = notes.n_infer;
        say_and_note("and now", "fine");
        assert_int_equal(strncmp(model.seen,
                                 "system:What was said earlier in this conversation: "
                                 "Ann likes tea.|user:one",
                                 74),
                         0);
        assert_null(strstr(model.seen, "five 0")); /* it is in the note */
        assert_int_equal(notes.n_infer, before);   /* half was left: not after every turn */
        for (int i = 0; i < 10 && notes.n_infer == before; i++)
            say_and_note("one two three four five", "six");
        assert_int_equal(notes.n_infer, before + 1);
        /* the next note is of the first one and what followed */
        assert_int_equal(strncmp(notes.told, "Ann likes tea.\nUser: one", 24), 0);
        say_and_note("and now", "fine");
        assert_non_null(strstr(model.seen, "conversation: Bob came.|user:"));
        struct err e;
        assert_int_equal(sessions_forget(site.sessions, "c", "a", &e), 0);
        sessions_close(site.sessions);
        site.sessions = NULL;
    }
}

/* A note that is too long for the model is left out, too. */
static void test_a_note_that_does_not_fit(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    open_with_notes(60);
    say_until_noted();
    char text[600] = "again"; /* leaves no room for earlier messages: only the note is added */
    for (int i = 0; i < 90; i++)
        strcat(text, " word");
    model.n_fits = 1;
    say_and_note(text, "fine");
    assert_int_equal(strncmp(model.seen, "user:again word", 15), 0);
    model.n_fits = 0;
}

/* Without a note messages stay, up to four times as many; the conversation goes on. */
static void test_a_note_that_is_not_written(void **state)
{
    size_t longest = 0;
    (void)state;
    trace_on = false; /* too many turns to read */
    for (int broken = 0; broken < 2; broken++) {
        open_with_notes(60);
        notes.broken = broken;
        notes.note = ""; /* it answers, but writes nothing */
        for (int i = 0; i < 40; i++) {
            struct buf b;
            struct err e;
            say_and_note("one two three four five", "six seven eight");
            buf_init(&b, 1 << 16);
            assert_int_equal(sessions_show(site.sessions, "c", "a", &b, &e), 0);
            longest = b.len > longest ? b.len : longest;
            assert_null(strstr(buf_str(&b), "note"));
            buf_fini(&b);
        }
        assert_true(notes.n_infer > 10); /* after each turn it is tried again */
        assert_int_equal(notes.n_asked, 0);
        assert_null(strstr(model.seen, "earlier"));
        assert_in_range(longest, 400, 4000);
        struct err e;
        assert_int_equal(sessions_forget(site.sessions, "c", "a", &e), 0);
        sessions_close(site.sessions);
        site.sessions = NULL;
    }
    trace_on = true;
}

/* Without settings the store and its key are in the state folder; without one, that is said. */
static void test_the_usual_place(void **state)
{
    const struct sessions_opts none = {.ttl_s = 60, .history_tokens = 100};
    char file[128];
    struct err e;
    (void)state;
    trace("== %s\n", __func__);
    setenv("STATE_DIRECTORY", dir, 1);
    assert_int_equal(sessions_open(&site.sessions, &none, &e), 0);
    say_text("c", "a", "hi", "ho");
    snprintf(file, sizeof(file), "%s/sessions.db", dir);
    assert_int_equal(access(file, R_OK), 0);
    snprintf(file, sizeof(file), "%s/sessions.key", dir);
    assert_int_equal(access(file, R_OK), 0);
    sessions_close(site.sessions);
    unsetenv("STATE_DIRECTORY");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    for (int i = 0; i < 3; i++) { /* one of the two is not enough */
        const struct sessions_opts o = {.place = i == 1 ? "sqlite:/tmp/x" : NULL,
                                        .key_file = i == 2 ? "/tmp/x" : NULL};
        assert_int_equal(sessions_open(&site.sessions, &o, &e), SHOAL_EINVAL);
        assert_non_null(strstr(e.msg, "set sessions.store and sessions.key_file"));
        assert_null(site.sessions);
    }
}

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("sessions");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_site, close_site)
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        TEST(test_turns_follow_each_other),
        TEST(test_only_the_first_answer_is_kept),
        TEST(test_a_new_system_message_replaces_the_old),
        TEST(test_failures_leave_no_turn),
        TEST(test_what_does_not_fit_is_shortened),
        TEST(test_old_messages_are_dropped),
        TEST(test_the_store_may_be_away),
        TEST(test_places),
        TEST(test_what_is_dropped_becomes_a_note),
        TEST(test_a_note_that_does_not_fit),
        TEST(test_a_note_that_is_not_written),
        TEST(test_the_usual_place),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
