/* test_deeds.c - templates of deeds, commands without a shell, and the keys of the configuration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_things.h"
#include "apps/home/table/home_table.h"
#include "config/config.h"
#include "config/deed_text.h"
#include "site/deeds/deed_command.h"
#include "site/deeds/deeds.h"

static void test_templates_are_filled(void **state)
{
    static const struct {
        const char *pattern, *want;
        enum deed_text_form form;
    } cases[] = {
        {"home/{id}/{ability}/set", "home/light.a/color/set", DEED_TEXT_PLAIN},
        {"{value}{unit}", "a \"b\"/cpercent", DEED_TEXT_PLAIN},
        {"{\"v\":\"{value}\",\"by\":\"{action}\"}", "{\"v\":\"a \\\"b\\\"/c\",\"by\":\"set\"}",
         DEED_TEXT_JSON},
        {"/set?v={value}&x=1", "/set?v=a%20%22b%22%2Fc&x=1", DEED_TEXT_URL},
        {"{other} {", "{other} {", DEED_TEXT_PLAIN},
    };
    const struct deed_text_facts f = {"light.a", "color", "a \"b\"/c", "percent", "set"};
    struct buf b;
    (void)state;
    buf_init(&b, 1024);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buf_clear(&b);
        deed_text_fill(&b, cases[i].pattern, &f, cases[i].form);
        assert_string_equal(buf_str(&b), cases[i].want);
    }
    buf_fini(&b);
    assert_true(deed_text_ok("{id}/{value} {\"a\":1}"));
    assert_false(deed_text_ok("home/{thing}/set"));
}

static void test_state_topics_are_matched(void **state)
{
    char filter[64], small[4];
    struct str id, ability;
    (void)state;
    assert_true(deed_text_filter(filter, sizeof(filter), "z/{id}/{ability}/state"));
    assert_string_equal(filter, "z/+/+/state");
    assert_false(deed_text_filter(filter, sizeof(filter), "z/lamp-{id}"));
    assert_false(deed_text_filter(filter, sizeof(filter), "z/{value}"));
    assert_false(deed_text_filter(filter, sizeof(filter), "z/+"));
    assert_false(deed_text_filter(filter, sizeof(filter), ""));
    assert_false(deed_text_filter(small, sizeof(small), "a/b/c"));
    assert_true(deed_text_match("z/{id}/{ability}/state", "z/light.a/power/state", &id, &ability));
    assert_true(str_is(id, "light.a") && str_is(ability, "power"));
    assert_true(deed_text_match("z/lamp", "z/lamp", &id, &ability));
    assert_null(id.p);
    assert_false(deed_text_match("z/{id}", "z/a/b", &id, &ability));
    assert_false(deed_text_match("z/{id}/x", "z/a", &id, &ability));
    assert_true(deed_text_glob("light.*", "light.kitchen"));
    assert_true(deed_text_glob("*", ""));
    assert_true(deed_text_glob("a*b*c", "aXbYbZc"));
    assert_false(deed_text_glob("light.*", "lock.front"));
    assert_false(deed_text_glob("a*b", "ac"));
}

static void test_commands_get_their_arguments_as_they_are(void **state)
{
    char file[] = "/tmp/shoal-deed-XXXXXX", script[] = "/tmp/shoal-deed-sh-XXXXXX", got[256] = "";
    struct err e = {0};
    (void)state;
    close(mkstemp(file));
    int fd = mkstemp(script);
    static const char text[] = "#!/bin/sh\nprintf '%s|' \"$@\" \"$HOME\" > \"$1\"\n";
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    chmod(script, 0700);
    char *args[] = {script, file, "$(id); rm -rf /", "a b", NULL};
    assert_int_equal(deed_command_run(args, 10000, &e), 0);
    fd = open(file, O_RDONLY);
    assert_true(read(fd, got, sizeof(got) - 1) > 0);
    close(fd);
    assert_non_null(strstr(got, "|$(id); rm -rf /|a b||")); /* HOME is not passed on */
    char *none[] = {"/nowhere/program", NULL}, *bad[] = {"/bin/false", NULL},
         *endless[] = {"/bin/sleep", "infinity", NULL};
    assert_int_equal(deed_command_run(none, 1000, &e), SHOAL_ENOTFOUND);
    assert_int_equal(deed_command_run(bad, 10000, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "ended with 1"));
    assert_int_equal(deed_command_run(endless, 50, &e), SHOAL_EDEADLINE);
    unlink(file);
    unlink(script);
}

static void test_the_configuration_of_deeds(void **state)
{
    static const struct {
        const char *text, *error; /* NULL: it is fine */
    } cases[] = {
        {"deeds: [{things: 'light.*', topic: 'h/{id}/set', state: 'h/{id}/{ability}'}]\n", NULL},
        {"deeds: [{things: a, via: command, command: [/bin/true, '{value}']}]\n"
         "deeds_allow: {commands: [/bin/true]}\n",
         NULL},
        {"deeds: [{things: a, via: http, url: 'http://h:80/x/{id}'}]\ndeeds_allow: {hosts: "
         "['h:80']}\n",
         NULL},
        {"deeds: [{topic: x}]\n", "needs things"},
        {"deeds: [{things: a}]\n", "needs a topic"},
        {"deeds: [{things: a, topic: 'x/#'}]\n", "needs a topic"},
        {"deeds: [{things: a, topic: 'x/{thing}'}]\n", "words in braces"},
        {"deeds: [{things: a, topic: x, payload: '{what}'}]\n", "words in braces"},
        {"deeds: [{things: a, topic: x, values: ['on']}]\n", "values must be"},
        {"deeds: [{things: 'a*', topic: x, ability: p, state: y}]\n", "state needs {id}"},
        {"deeds: [{things: a, topic: x, state: y}]\n", "state needs {ability}"},
        {"deeds: [{things: a, topic: x, ability: p, state: 'y/#'}]\n", "state must be a topic"},
        {"deeds: [{things: a, topic: x, state_value: v}]\n", "state_value needs state"},
        {"deeds: [{things: a, via: http, url: 'ftp://h/x'}]\n", "url must be"},
        {"deeds: [{things: a, via: http, url: 'https:///x'}]\n", "url must be"},
        {"deeds: [{things: a, via: http, url: 'https://h:8/x'}]\n", "add h:8 to deeds_allow"},
        {"deeds: [{things: a, via: http, url: 'http://{id}/x'}]\n", "url must be"},
        {"deeds: [{things: a, via: http, url: 'http://h/x'}]\n", "deeds_allow.hosts"},
        {"deeds: [{things: a, via: command, command: [/bin/rm, '{value}']}]\n",
         "deeds_allow.commands"},
        {"deeds: [{things: a, via: command, command: [rm]}]\n", "absolute path"},
        {"deeds: [{things: a, via: command, command: ['/bin/{value}']}]\n", "absolute path"},
        {"deeds: [{things: a, topic: x, timeout: 1h}]\n", "timeout must be"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c;
        struct err e = {0};
        assert_int_equal(config_create(&c, &e), 0);
        int rc = config_parse(c, cases[i].text, strlen(cases[i].text), "f", &e);
        if ((rc < 0) != (cases[i].error != NULL) || (rc < 0 && !strstr(e.msg, cases[i].error)))
            fail_msg("%s: %d %s", cases[i].text, rc, e.msg);
        config_unref(c);
    }
}

struct outcome {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    enum home_sink_result result;
    char reason[128];
};

static void on_done(void *ctx, enum home_sink_result result, const char *reason)
{
    struct outcome *o = ctx;
    pthread_mutex_lock(&o->lock);
    o->over = true;
    o->result = result;
    snprintf(o->reason, sizeof(o->reason), "%s", reason ? reason : "");
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void carry(struct deeds *d, const struct home_deed *deed, struct outcome *o)
{
    *o = (struct outcome){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    deeds_sink(d)->ops->carry(deeds_sink(d), deed, on_done, o);
    pthread_mutex_lock(&o->lock);
    while (!o->over)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

/* "2 percent brighter" needs to know how bright it is: 2 must not be sent as the brightness. */
/* The gate makes a new value of a change and checks it; what is still a change has no known value,
 * or got one meanwhile. The sink must not add: nobody would check the sum. */
static void test_a_change_is_not_added_here(void **state)
{
    static const char house[] = "devices:\n"
                                "  - {id: light.a, name: lamp, kind: light}\n";
    static const struct {
        const char *text; /* state before, if it is one */
        double known;     /* or NAN: none is known */
        bool change;
        double number;
        const char *sent; /* NULL: nothing */
    } cases[] = {
        {NULL, NAN, true, 2, NULL},   {NULL, NAN, false, 2, "2"},  {NULL, 19.5, true, 2, NULL},
        {NULL, 19.5, true, -2, NULL}, {NULL, 19.5, false, 2, "2"}, {"dim", NAN, true, 2, NULL},
    };
    char file[] = "/tmp/shoal-deeds-XXXXXX", text[512];
    struct home_table *table;
    struct config *c;
    struct err e = {0};
    (void)state;
    close(mkstemp(file));
    snprintf(text, sizeof(text),
             "deeds: [{things: 'light.*', via: command, command: [/bin/cp, /dev/null, "
             "'%s-{value}']}]\ndeeds_allow: {commands: [/bin/cp]}\n",
             file);
    assert_int_equal(home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e), 0);
    assert_int_equal(config_create(&c, &e), 0);
    if (config_parse(c, text, strlen(text), "f", &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct home_file *f;
        struct home_things *home;
        struct deeds *d;
        struct outcome o;
        char made[64];
        const struct home_deed deed = {.id = "light.a",
                                       .ability = "brightness",
                                       .number = cases[i].number,
                                       .change = cases[i].change,
                                       .action = "set"};
        if (home_file_read_text(&f, table, house, strlen(house), "h", &e) < 0)
            fail_msg("%s", e.msg);
        assert_int_equal(home_things_create(&home, f, NULL, &e), 0);
        home_file_unref(f);
        assert_int_equal(deeds_create(&d, &c->deeds, NULL, NULL, home, &e), 0);
        if (cases[i].text || !isnan(cases[i].known))
            assert_true(home_things_report(home, "light.a", "brightness", cases[i].text,
                                           cases[i].known, NULL));
        carry(d, &deed, &o);
        assert_int_equal(o.result, cases[i].sent ? HOME_SINK_SENT : HOME_SINK_FAILED);
        assert_string_equal(o.reason, cases[i].sent ? "" : "its current value is unknown");
        snprintf(made, sizeof(made), "%s-%s", file, cases[i].sent ? cases[i].sent : "2");
        assert_int_equal(unlink(made), cases[i].sent ? 0 : -1);
        deeds_stop(d);
        deeds_destroy(d);
        home_things_destroy(home);
    }
    config_unref(c);
    home_table_close(table);
    unlink(file);
}

/* Which entry carries a deed out, and with which words: a program makes a file of that name. */
static void test_words_of_a_deed(void **state)
{
    static const char house[] = "devices:\n"
                                "  - {id: light.a, name: lamp, kind: light}\n"
                                "  - {id: light.b, name: other lamp, kind: light}\n"
                                "  - {id: fan, kind: fan}\n";
    static const struct {
        struct home_deed deed;
        enum home_sink_result result;
        const char *made, *reason;
    } rows[] = {
        /* the first entry that fits: by thing and ability */
        {{.id = "light.a", .ability = "power", .text = "on", .action = "turn_on"},
         HOME_SINK_SENT,
         "first-light.a-power-ON--turn_on",
         ""},
        {{.id = "light.a", .ability = "power", .text = "off", .action = "turn_off"},
         HOME_SINK_SENT,
         "first-light.a-power-0--turn_off",
         ""},
        {{.id = "light.a", .ability = "power", .text = "o", .action = "x"}, /* no word of it */
         HOME_SINK_SENT,
         "first-light.a-power-o--x",
         ""},
        {{.id = "light.a", .ability = "color", .text = "on", .action = "set"},
         HOME_SINK_SENT,
         "second-light.a-color-on--set",
         ""},
        {{.id = "light.b", .ability = "power", .text = "on"},
         HOME_SINK_SENT,
         "second-light.b-power-on--",
         ""},
        {{.id = "light.b", .ability = "brightness", .number = 12.5, .unit = "percent"},
         HOME_SINK_SENT,
         "second-light.b-brightness-12.5-percent-",
         ""},
        {{.id = "light.a", .ability = "power", .number = 7}, /* numbers have words, too */
         HOME_SINK_SENT,
         "first-light.a-power-seven--",
         ""},
        {{.id = "fan", .ability = "power", .text = "on"},
         HOME_SINK_NOT_CONNECTED,
         NULL,
         "nothing is configured for it"},
        {{.id = "light", .ability = "power", .text = "on"},
         HOME_SINK_NOT_CONNECTED,
         NULL,
         "nothing is configured for it"},
    };
    char dir[] = "/tmp/shoal-words-XXXXXX", text[1024];
    struct home_table *table;
    struct home_file *f = NULL;
    struct home_things *home;
    struct deeds *d;
    struct deeds_counts n;
    struct config *c;
    struct err e = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(
        text, sizeof(text),
        "deeds:\n"
        "  - {things: [light.a, garage], ability: power, values: ['on=ON', 'off=0', '7=seven'],\n"
        "     via: command, timeout: 60s, command: [/bin/cp, /dev/null, "
        "'%s/first-{id}-{ability}-{value}-{unit}-{action}']}\n"
        "  - {things: 'light.*', via: command, timeout: 60s, command: [/bin/cp, /dev/null, "
        "'%s/second-{id}-{ability}-{value}-{unit}-{action}']}\n"
        "deeds_allow: {commands: [/bin/cp]}\n",
        dir, dir);
    assert_int_equal(home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e), 0);
    assert_int_equal(config_create(&c, &e), 0);
    if (config_parse(c, text, strlen(text), "f", &e) < 0 ||
        home_file_read_text(&f, table, house, strlen(house), "h", &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(home_things_create(&home, f, NULL, &e), 0);
    home_file_unref(f);
    assert_int_equal(deeds_create(&d, &c->deeds, NULL, NULL, home, &e), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o;
        char made[256];
        carry(d, &rows[i].deed, &o);
        if (o.result != rows[i].result || strcmp(o.reason, rows[i].reason) != 0)
            fail_msg("row %zu: %d %s", i, (int)o.result, o.reason);
        snprintf(made, sizeof(made), "%s/%s", dir, rows[i].made ? rows[i].made : "none");
        if (unlink(made) != (rows[i].made ? 0 : -1))
            fail_msg("row %zu did not make %s", i, made);
    }
    deeds_count(d, &n);
    assert_int_equal(n.n_sent, 7);
    assert_int_equal(n.n_not_connected, 2);
    assert_int_equal(n.n_done + n.n_failed + n.n_reports, 0);
    assert_int_equal(rmdir(dir), 0); /* nothing else was made */
    struct outcome o;
    deeds_stop(d);
    carry(d, &rows[0].deed, &o); /* too late */
    assert_int_equal(o.result, HOME_SINK_FAILED);
    deeds_count(d, &n);
    assert_int_equal(n.n_failed, 1);
    deeds_destroy(d);
    home_things_destroy(home);
    config_unref(c);
    home_table_close(table);
}

/* Entries that need a broker are refused without one. */
static void test_no_broker(void **state)
{
    static const char text[] = "deeds:\n"
                               "  - {things: a, via: command, command: [/bin/true]}\n"
                               "  - {things: b, topic: x}\n"
                               "deeds_allow: {commands: [/bin/true]}\n";
    struct config *c;
    struct deeds *d;
    struct err e = {0};
    (void)state;
    assert_int_equal(config_create(&c, &e), 0);
    assert_int_equal(config_parse(c, text, strlen(text), "f", &e), 0);
    assert_int_equal(deeds_create(&d, &c->deeds, NULL, NULL, NULL, &e), SHOAL_EINVAL);
    assert_string_equal(e.msg, "deeds: entry 2 needs mqtt.broker");
    assert_null(d);
    config_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_templates_are_filled),
        cmocka_unit_test(test_state_topics_are_matched),
        cmocka_unit_test(test_commands_get_their_arguments_as_they_are),
        cmocka_unit_test(test_the_configuration_of_deeds),
        cmocka_unit_test(test_a_change_is_not_added_here),
        cmocka_unit_test(test_words_of_a_deed),
        cmocka_unit_test(test_no_broker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
