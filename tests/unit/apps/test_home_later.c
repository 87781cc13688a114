/* test_home_later.c - the schedule: moments, entries and their file, clocks that jump, and
 * execution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "apps/home/home_later_run.h"
#include "apps/home/home_turn.h"
#include "apps/home/later/home_due.h"
#include "apps/home/later/home_later.h"
#include "apps/home/later/home_later_action.h"
#include "apps/home/later/sun.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_things.h"
#include "apps/home/table/home_table.h"

#define MINUTE_MS 60000
#define START_MS ((int64_t)1794841200000) /* 2026-11-16 15:00:00 UTC, a Monday */

static struct home_table *table;
static struct arena a;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    arena_init(&a, (size_t)16 << 20);
    return home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", &e);
}

static int teardown(void **state)
{
    (void)state;
    home_table_close(table);
    arena_fini(&a);
    return 0;
}

/* ---- moments -------------------------------------------------------------------------------- */

static const char *meant(const char *time, const char *date, bool either, bool morning)
{
    const struct home_due_said s = {
        .in_s = -1.0, .time = time, .date = date, .either = either, .morning = morning};
    struct home_due d = home_due_of(&a, table, &s, START_MS / 1000);
    return d.missing_time ? "when?"
           : d.why        ? d.why
                          : home_due_words(&a, table, d.at_s, START_MS / 1000);
}

static void test_moments(void **state)
{
    static const struct {
        const char *time, *date;
        bool either, morning;
        const char *want;
    } rows[] = {
        {"19:00", NULL, false, false, "today, 19:00"},
        {"07:00", NULL, false, false, "tomorrow, 07:00"},
        {"07:00", NULL, true, false, "today, 19:00"},
        {"07:00", NULL, true, true, "tomorrow, 07:00"},
        {"02:00", NULL, true, false, "tomorrow, 02:00"},
        {"12:00", NULL, true, false, "tomorrow, 00:00"},
        {"07:00", "tomorrow", true, false, "tomorrow, 07:00"},
        {"03:00", "tomorrow", true, false, "tomorrow, 15:00"},
        {"03:00", "tomorrow", true, true, "tomorrow, 03:00"},
        {"08:00", "tonight", true, false, "today, 20:00"},
        {"08:00", "tomorrow evening", true, false, "tomorrow, 20:00"},
        {NULL, "tomorrow evening", false, false, "tomorrow, 19:00"},
        {NULL, "tonight", false, false, "today, 20:00"},
        {NULL, "tomorrow", false, false, "when?"},
        {"14:00", "today", false, false, "that time is over"},
        {"16:00", "today", false, false, "today, 16:00"},
        {"14:00", "Monday", false, false, "23 November 2026, 14:00"},
        {"16:00", "Monday", false, false, "today, 16:00"},
        {"14:00", "next Friday", false, false, "Friday, 14:00"},
        {"14:00", "16 March", false, false, "16 March 2027, 14:00"},
        {"14:00", "March 5", false, false, "5 March 2027, 14:00"},
        {"14:00", "20", false, false, "Friday, 14:00"},
        {"14:00", "the day after tomorrow", false, false, "Wednesday, 14:00"},
        {"sunset", NULL, false, false,
         "I don't know when sunset is, because the home file has no location (latitude and "
         "longitude)"},
        {"evening", NULL, false, false, "today, 19:00"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(meant(rows[i].time, rows[i].date, rows[i].either, rows[i].morning),
                            rows[i].want);
    const struct home_due_said soon = {.in_s = 1200.0}, far = {.in_s = 4e7},
                               days = {.in_s = 172800.0, .time = "07:00"};
    struct home_due d = home_due_of(&a, table, &soon, START_MS / 1000);
    assert_true(d.counted && d.at_s == START_MS / 1000 + 1200);
    assert_non_null(home_due_of(&a, table, &far, START_MS / 1000).why);
    d = home_due_of(&a, table, &days, START_MS / 1000);
    assert_string_equal(home_due_words(&a, table, d.at_s, START_MS / 1000), "Wednesday, 07:00");
    assert_string_equal(home_due_left(&a, table, 3661), "1 hour 1 minute");
    assert_string_equal(home_due_left(&a, table, 0), "0 seconds");
}

/* Clocks go forward on 29 March 2026 and back on 25 October 2026 in Berlin. */
static void test_summer_time(void **state)
{
    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    const struct home_due_said s = {.in_s = -1.0, .time = "07:00", .date = "tomorrow"};
    struct tm before = {.tm_year = 126, .tm_mon = 9, .tm_mday = 24, .tm_hour = 12, .tm_isdst = -1};
    time_t now = mktime(&before);
    struct home_due d = home_due_of(&a, table, &s, now);
    assert_int_equal(d.at_s - (int64_t)now, 20 * 3600); /* the night has 25 hours */
    setenv("TZ", "UTC", 1);
    tzset();
}

/* Times of sunrise and sunset as almanacs print them, to the minute, in UTC. */
static void test_the_sun(void **state)
{
    static const struct {
        double latitude, longitude;
        int month, day, rises, sets; /* minutes since midnight of that date, UTC */
    } rows[] = {
        {51.5074, -0.1278, 6, 20, 3 * 60 + 43, 20 * 60 + 21},          /* London */
        {40.7128, -74.0060, 12, 21, 12 * 60 + 16, 21 * 60 + 31},       /* New York */
        {-33.8688, 151.2093, 12, 21, 18 * 60 + 41 - 1440, 9 * 60 + 5}, /* Sydney */
    };
    int64_t at;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tm day = {.tm_year = 124, .tm_mon = rows[i].month - 1, .tm_mday = rows[i].day};
        struct tm midnight = day;
        int64_t from = (int64_t)timegm(&midnight);
        assert_true(sun_time(&day, rows[i].latitude, rows[i].longitude, SUN_RISES, &at));
        assert_in_range(at - from - 60 * rows[i].rises + 120, 0, 240);
        assert_true(sun_time(&day, rows[i].latitude, rows[i].longitude, SUN_SETS, &at));
        assert_in_range(at - from - 60 * rows[i].sets + 120, 0, 240);
    }
    struct tm summer = {.tm_year = 124, .tm_mon = 5, .tm_mday = 21};
    assert_false(sun_time(&summer, 69.65, 18.96, SUN_SETS, &at)); /* Tromsø */
}

/* A sunrise that has passed: of no day in particular it is tomorrow's, of a weekday the one a week
 * later, of a certain day none.  START_MS is a Monday, 15:00: in Berlin just before sunset. */
static void test_the_sun_of_a_day(void **state)
{
    static const double berlin[] = {52.52, 13.405};
    static const struct {
        const char *time, *date, *want; /* want: how it begins */
    } rows[] = {
        {"sunrise", NULL, "tomorrow, 06:"},
        {"sunset", NULL, "today, 15:"},
        {"sunrise", "Monday", "23 November 2026, 06:"},
        {"sunset", "Monday", "today, 15:"},
        {"sunrise", "Tuesday", "tomorrow, 06:"},
        {"sunset", "Saturday", "Saturday, 15:"},
        {"sunrise", "today", "that time is over"},
        {"sunrise", "tomorrow", "tomorrow, 06:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct home_due_said s = {
            .in_s = -1.0, .time = rows[i].time, .date = rows[i].date, .place = berlin};
        struct home_due d = home_due_of(&a, table, &s, START_MS / 1000);
        const char *got = d.why ? d.why : home_due_words(&a, table, d.at_s, START_MS / 1000);
        if (strncmp(got, rows[i].want, strlen(rows[i].want)) != 0)
            fail_msg("%s of %s: %s", rows[i].time, rows[i].date ? rows[i].date : "any day", got);
    }
}

static struct home_due again(const char *clause, const char *time, const double *place)
{
    struct home_words w = home_words_split(&a, clause);
    struct home_due_said s = {.in_s = -1.0, .time = time, .place = place};
    struct home_due_every e = home_due_every(&a, table, &w);
    s.every = e.words;
    s.days = e.days;
    s.period_s = e.period_s;
    assert_non_null(s.every);
    return home_due_of(&a, table, &s, START_MS / 1000);
}

/* START_MS is a Monday, 15:00. */
static void test_what_comes_again(void **state)
{
    static const double berlin[] = {52.52, 13.405};
    static const struct {
        const char *clause, *time, *first, *second;
    } rows[] = {
        {"lights on every day", "16:00", "today, 16:00", "tomorrow, 16:00"},
        {"lights on every day", "07:00", "tomorrow, 07:00", "Wednesday, 07:00"},
        {"each weekday lights on", "14:00", "tomorrow, 14:00", "Wednesday, 14:00"},
        {"lights on every monday", "14:00", "23 November 2026, 14:00", "30 November 2026, 14:00"},
        {"lights on weekends", "09:00", "Saturday, 09:00", "Sunday, 09:00"},
        {"every tuesday and friday", "09:00", "tomorrow, 09:00", "Friday, 09:00"},
        {"fan on every two hours", NULL, "today, 17:00", "today, 19:00"},
        {"fan on every 30 minutes", NULL, "today, 15:30", "today, 16:00"},
        {"remind me every two hours to stand", NULL, "today, 17:00", "today, 19:00"},
        {"every two and a half hours", NULL, "today, 17:30", "today, 20:00"},
        {"fan on every hour", NULL, "today, 16:00", "today, 17:00"},
        {"fan on every 2 days", NULL, "Wednesday, 15:00", "Friday, 15:00"},
        {"fan on every other day", NULL, "Wednesday, 15:00", "Friday, 15:00"},
        {"every second hour", NULL, "today, 17:00", "today, 19:00"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct home_due d = again(rows[i].clause, rows[i].time, NULL);
        assert_null(d.why);
        assert_string_equal(home_due_words(&a, table, d.at_s, START_MS / 1000), rows[i].first);
        int64_t next = home_due_next(&d.again, d.at_s);
        assert_string_equal(home_due_words(&a, table, next, START_MS / 1000), rows[i].second);
    }
    assert_non_null(again("every two hours", "07:00", NULL).why);
    assert_non_null(again("every ten seconds", NULL, NULL).why);
    assert_non_null(again("every other day", "07:00", NULL).why);
    struct home_due hourly = again("every hour", NULL, NULL); /* late, but it keeps its rhythm */
    assert_int_equal(home_due_next(&hourly.again, hourly.at_s + 5000), hourly.at_s + 7200);
    assert_non_null(again("every day at sunset", "sunset", NULL).why);
    assert_true(again("every day", NULL, NULL).missing_time);
    struct home_due d = again("every day at sunset", "sunset", berlin);
    int64_t next = home_due_next(&d.again, d.at_s);
    assert_null(d.why);
    assert_true(next > d.at_s + 86400 - 300 && next < d.at_s + 86400); /* November */
}

/* ---- the schedule --------------------------------------------------------------------------- */

struct rig {
    struct home_later *later;
    int64_t wall_ms, steady_ms;
    char path[64], ran[512], told[1024];
    bool hold; /* running actions never finish by themselves */
    int rc;
    uint64_t id;
};

static int64_t wall(void *ctx)
{
    return ((struct rig *)ctx)->wall_ms;
}

static int64_t steady(void *ctx)
{
    return ((struct rig *)ctx)->steady_ms;
}

static void note(char *log, size_t cap, const char *what, const char *more)
{
    size_t n = strlen(log);
    snprintf(log + n, cap - n, "%s%s%s;", what, *more ? "=" : "", more);
}

static void run(void *ctx, const struct home_later_entry *x)
{
    struct rig *r = ctx;
    note(r->ran, sizeof(r->ran), x->what, "");
    if (!r->hold)
        home_later_end(r->later, x->id, "done", NULL);
}

static void on_told(void *ctx, const struct home_later_entry *x)
{
    struct rig *r = ctx;
    note(r->told, sizeof(r->told), x->what, x->result);
}

static void on_done(void *ctx, int rc, const char *reason, uint64_t id)
{
    struct rig *r = ctx;
    (void)reason;
    r->rc = rc;
    r->id = id;
}

static void rig_begin(struct rig *r)
{
    struct err e = {0};
    const struct home_later_opts o = {
        .path = r->path[0] ? r->path : NULL, .clock = {wall, steady, r}, .run = run, .run_ctx = r};
    if (home_later_create(&r->later, &o, &e) < 0)
        fail_msg("%s", e.msg);
    home_later_listen(r->later, on_told, r);
}

static void rig_open(struct rig *r, bool kept)
{
    *r = (struct rig){.wall_ms = START_MS, .steady_ms = 1000};
    if (kept) {
        strcpy(r->path, "/tmp/test_home_later_XXXXXX");
        int fd = mkstemp(r->path);
        assert_true(fd >= 0);
        close(fd);
        unlink(r->path);
    }
    rig_begin(r);
}

/* Like kill -9: nothing is written at exit. */
static void rig_die(struct rig *r)
{
    char saved[80], command[200];
    snprintf(saved, sizeof(saved), "%s.kept", r->path);
    snprintf(command, sizeof(command), "cp %s %s 2>/dev/null", r->path, saved);
    (void)!system(command);
    home_later_destroy(r->later);
    assert_int_equal(rename(saved, r->path), 0);
}

static void rig_close(struct rig *r)
{
    char lock[80];
    home_later_destroy(r->later);
    snprintf(lock, sizeof(lock), "%s.lock", r->path);
    if (r->path[0]) {
        unlink(r->path);
        unlink(lock);
    }
}

static void pass(struct rig *r, int64_t ms)
{
    r->wall_ms += ms;
    r->steady_ms += ms;
    (void)home_later_tick(r->later);
    (void)home_later_tick(r->later); /* the results of the actions that ran */
}

static const struct ask_plan_action turn_off = {.name = "turn_off"}, turn_on = {.name = "turn_on"};

static uint64_t add(struct rig *r, const char *what, int64_t in_ms, bool counted)
{
    const struct home_later_entry x = {.kind = HOME_LATER_ACTION,
                                       .due_ms = r->wall_ms + in_ms,
                                       .counted = counted,
                                       .what = what,
                                       .said = what,
                                       .action = &turn_off};
    r->rc = 1;
    home_later_add(r->later, &x, on_done, r);
    (void)home_later_tick(r->later);
    return r->rc == 0 ? r->id : 0;
}

static void test_in_order_and_once(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, false);
    add(&r, "second", 20 * MINUTE_MS, true);
    add(&r, "first", 10 * MINUTE_MS, true);
    pass(&r, 10 * MINUTE_MS - 1);
    assert_string_equal(r.ran, "");
    assert_int_equal(home_later_tick(r.later), 1);
    pass(&r, 1);
    assert_string_equal(r.ran, "first;");
    pass(&r, 30 * MINUTE_MS);
    pass(&r, 30 * MINUTE_MS);
    assert_string_equal(r.ran, "first;"); /* the second is missed by 20 minutes */
    assert_string_equal(r.told, "first=done;second=missed;");
    assert_int_equal(home_later_tick(r.later), -1);
    rig_close(&r);
}

/* Done, missed or interrupted: it waits for its next time, also across a restart, until it is
 * cancelled. */
static void test_it_comes_again(void **state)
{
    struct rig r;
    const int64_t day_ms = 24 * 60 * MINUTE_MS;
    (void)state;
    rig_open(&r, true);
    struct home_later_entry x = {.kind = HOME_LATER_ACTION,
                                 .due_ms = r.wall_ms + 60 * MINUTE_MS,
                                 .again = {.days = 127, .minute = 16 * 60, .words = "every day"},
                                 .what = "daily",
                                 .action = &turn_off};
    home_later_add(r.later, &x, on_done, &r);
    pass(&r, 60 * MINUTE_MS);
    pass(&r, day_ms);
    assert_string_equal(r.ran, "daily;daily;");
    rig_die(&r);
    r.wall_ms += 3 * day_ms + 30 * MINUTE_MS;
    rig_begin(&r);
    pass(&r, 0);
    assert_string_equal(r.told, "daily=done;daily=done;daily=missed;"); /* once for all three */
    pass(&r, day_ms - 30 * MINUTE_MS);
    assert_string_equal(r.ran, "daily;daily;daily;");
    home_later_cancel(r.later, r.id, on_done, &r);
    pass(&r, day_ms);
    assert_string_equal(r.ran, "daily;daily;daily;");
    assert_int_equal(home_later_tick(r.later), -1);
    rig_close(&r);
}

/* A recurring entry survives a restart, whatever time it ran at. */
static void test_a_rhythm(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, true);
    struct home_later_entry x = {
        .kind = HOME_LATER_ACTION,
        .due_ms = r.wall_ms + 60 * MINUTE_MS,
        .again = {.period_s = 3600, .first_s = r.wall_ms / 1000 + 3600, .words = "every hour"},
        .what = "hourly",
        .action = &turn_on};
    home_later_add(r.later, &x, on_done, &r);
    pass(&r, 62 * MINUTE_MS); /* two minutes late */
    rig_die(&r);
    rig_begin(&r);
    pass(&r, 57 * MINUTE_MS);
    assert_string_equal(r.ran, "hourly;");
    pass(&r, MINUTE_MS);
    assert_string_equal(r.ran, "hourly;hourly;");
    rig_close(&r);
}

static void test_a_restart_does_what_was_due(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, true);
    add(&r, "soon", 1 * MINUTE_MS, true);
    add(&r, "late", -20 * MINUTE_MS + 8 * MINUTE_MS + 13 * MINUTE_MS, false);
    add(&r, "tomorrow", 24 * 60 * MINUTE_MS, false);
    rig_die(&r);
    r.wall_ms += 5 * MINUTE_MS; /* off: "soon" and "late" are four minutes late */
    rig_begin(&r);
    pass(&r, 0);
    assert_string_equal(r.told, "soon=done;late=done;");
    rig_die(&r);
    r.told[0] = r.ran[0] = '\0';
    rig_begin(&r); /* the results are on disk: nothing is repeated */
    pass(&r, 0);
    assert_string_equal(r.ran, "");
    uint64_t last = add(&r, "new", MINUTE_MS, true);
    assert_int_equal(last, 4); /* ids are never reused */
    rig_close(&r);
}

static void test_what_had_begun_is_not_repeated(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, true);
    r.hold = true;
    add(&r, "pour", MINUTE_MS, true);
    pass(&r, MINUTE_MS);
    assert_string_equal(r.ran, "pour;");
    rig_die(&r);
    rig_begin(&r);
    pass(&r, 1000);
    assert_string_equal(r.ran, "pour;");
    assert_string_equal(r.told, "pour=interrupted;");
    rig_die(&r);
    rig_begin(&r);
    pass(&r, 1000);
    assert_string_equal(r.told, "pour=interrupted;"); /* reported once */
    rig_close(&r);
}

static void test_the_clock_is_set(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, true);
    add(&r, "counted", 20 * MINUTE_MS, true);
    add(&r, "at four", 60 * MINUTE_MS, false);
    pass(&r, 10 * MINUTE_MS);
    r.wall_ms += (int64_t)3 * 86400000; /* a machine without an RTC battery learns the date */
    pass(&r, 0);
    assert_string_equal(r.told, "at four=missed;");
    assert_string_equal(r.ran, "");
    pass(&r, 10 * MINUTE_MS);
    assert_string_equal(r.ran, "counted;");
    add(&r, "again", 20 * MINUTE_MS, true);
    add(&r, "at five", 20 * MINUTE_MS, false);
    r.wall_ms -= 60 * MINUTE_MS; /* clock set back: nothing that ran is due again */
    pass(&r, 20 * MINUTE_MS);
    assert_string_equal(r.ran, "counted;again;");
    pass(&r, 60 * MINUTE_MS);
    assert_string_equal(r.ran, "counted;again;at five;");
    rig_close(&r);
}

static void test_cancel_and_limit(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, false);
    uint64_t id = add(&r, "one", MINUTE_MS, true);
    home_later_cancel(r.later, id, on_done, &r);
    (void)home_later_tick(r.later);
    assert_int_equal(r.rc, 0);
    home_later_cancel(r.later, id, on_done, &r);
    (void)home_later_tick(r.later);
    assert_int_equal(r.rc, SHOAL_ENOTFOUND);
    for (uint32_t i = 0; i < HOME_LATER_MAX; i++)
        assert_true(add(&r, "many", (int64_t)60 * MINUTE_MS + i, true) > 0);
    assert_int_equal(add(&r, "one more", MINUTE_MS, true), 0);
    assert_int_equal(r.rc, SHOAL_ELIMIT);
    pass(&r, 2 * MINUTE_MS);
    assert_string_equal(r.ran, "");
    rig_close(&r);
}

/* What is paused waits, also over a restart, and goes on with what was left. */
static void test_pause_and_change(void **state)
{
    struct home_later_entry x;
    struct ask_plan_action pause = {.name = "pause_scheduled"},
                           go_on = {.name = "resume_scheduled"};
    struct ask_plan_action move = {.name = "change_scheduled"};
    struct rig r;
    (void)state;
    rig_open(&r, true);
    const uint64_t id = add(&r, "tea", 10 * MINUTE_MS, true);
    pass(&r, 4 * MINUTE_MS);
    assert_true(home_turn_is(table, &pause) && !home_turn_is(table, &turn_off));
    assert_true(home_turn_find(&a, r.later, id, &x));
    assert_false(home_turn_apply(&a, table, &go_on, r.wall_ms, &x)); /* it runs */
    assert_true(home_turn_apply(&a, table, &pause, r.wall_ms, &x));
    assert_string_equal(home_turn_when(&a, table, &x, r.wall_ms), "6 minutes left, paused");
    home_later_replace(r.later, id, &x, on_done, &r);
    pass(&r, 0);
    assert_int_equal(r.rc, 0);
    pass(&r, 30 * MINUTE_MS);
    rig_die(&r);
    rig_begin(&r);
    pass(&r, 30 * MINUTE_MS);
    assert_string_equal(r.ran, "");
    assert_true(home_turn_find(&a, r.later, id, &x));
    assert_true(x.paused);
    assert_true(home_turn_apply(&a, table, &go_on, r.wall_ms, &x));
    home_later_replace(r.later, id, &x, on_done, &r);
    pass(&r, 5 * MINUTE_MS);
    assert_string_equal(r.ran, "");
    assert_true(home_turn_find(&a, r.later, id, &x));
    move.due_s = (r.wall_ms + 3 * MINUTE_MS) / 1000;
    assert_true(home_turn_apply(&a, table, &move, r.wall_ms, &x));
    x.what = "tea";
    home_later_replace(r.later, id, &x, on_done, &r);
    pass(&r, 2 * MINUTE_MS);
    assert_string_equal(r.ran, "");
    pass(&r, MINUTE_MS);
    assert_string_equal(r.ran, "tea;");
    home_later_replace(r.later, id, &x, on_done, &r);
    pass(&r, 0);
    assert_int_equal(r.rc, SHOAL_ENOTFOUND);
    rig_close(&r);
}

static void test_a_file_has_one_user(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, true);
    struct home_later *second;
    struct err e = {0};
    const struct home_later_opts o = {.path = r.path, .run = run};
    assert_int_equal(home_later_create(&second, &o, &e), SHOAL_EBUSY);
    rig_close(&r);
    strcpy(r.path, "/tmp/test_home_later_missing/file");
    assert_int_equal(home_later_create(&second, &o, &e), SHOAL_EIO);
}

/* An entry that cannot be written is not scheduled, and the client is told. */
static void test_a_full_disk(void **state)
{
    struct rig r;
    char dir[] = "/tmp/test_home_later_dir_XXXXXX", command[128];
    (void)state;
    assert_non_null(mkdtemp(dir));
    r = (struct rig){.wall_ms = START_MS};
    snprintf(r.path, sizeof(r.path), "%s/file", dir);
    rig_begin(&r);
    uint64_t kept = add(&r, "kept", MINUTE_MS, true);
    snprintf(command, sizeof(command), "%s.new", r.path);
    assert_int_equal(symlink("/nowhere/at/all", command), 0); /* the new file cannot be created */
    assert_int_equal(add(&r, "lost", MINUTE_MS, true), 0);
    assert_int_equal(r.rc, SHOAL_EIO);
    home_later_cancel(r.later, kept, on_done, &r);
    (void)home_later_tick(r.later);
    assert_int_equal(r.rc, SHOAL_EIO);
    struct home_later_entry x;
    assert_true(home_turn_find(&a, r.later, kept, &x));
    x.due_ms += 60 * MINUTE_MS;
    home_later_replace(r.later, kept, &x, on_done, &r);
    (void)home_later_tick(r.later);
    assert_int_equal(r.rc, SHOAL_EIO);
    pass(&r, MINUTE_MS);
    assert_string_equal(r.ran, "kept;"); /* neither lost nor cancelled nor moved */
    home_later_destroy(r.later);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_a_file_is_read_strictly(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"version\":2,\"last_id\":0,\"scheduled\":[],\"recent\":[]}",
        "{\"version\":1,\"last_id\":1,\"scheduled\":[{\"id\":1}],\"recent\":[]}",
        "{\"version\":1,\"last_id\":0,\"scheduled\":[{\"id\":1,\"kind\":\"timer\",\"what\":\"x\","
        "\"due_ms\":1,\"made_ms\":1,\"action\":\"{}\"}],\"recent\":[]}",
        "{\"version\":1,\"last_id\":1,\"scheduled\":[{\"id\":1,\"kind\":\"nap\",\"what\":\"x\","
        "\"due_ms\":1,\"made_ms\":1,\"action\":\"{}\"}],\"recent\":[]}",
    };
    struct rig r;
    struct err e = {0};
    (void)state;
    rig_open(&r, false);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(home_later_read(r.later, bad[i], strlen(bad[i]), &e), SHOAL_EFORMAT);
    add(&r, "a \"quoted\" thing", MINUTE_MS, true);
    struct buf one, two;
    buf_init(&one, HOME_LATER_MAX_FILE);
    buf_init(&two, HOME_LATER_MAX_FILE);
    home_later_write(r.later, &one);
    assert_int_equal(home_later_read(r.later, buf_str(&one), one.len, &e), 0);
    home_later_write(r.later, &two);
    assert_string_equal(buf_str(&one), buf_str(&two));
    buf_fini(&one);
    buf_fini(&two);
    rig_close(&r);
}

static void test_out_of_reach_is_tried_again(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, false);
    r.hold = true;
    uint64_t id = add(&r, "lamp", MINUTE_MS, true);
    pass(&r, MINUTE_MS);
    home_later_postpone(r.later, id, "it is not connected");
    pass(&r, 0);
    assert_string_equal(r.ran, "lamp;");
    pass(&r, HOME_LATER_RETRY_MS);
    assert_string_equal(r.ran, "lamp;lamp;");
    r.wall_ms += HOME_LATER_GRACE_MS;
    r.steady_ms += HOME_LATER_GRACE_MS;
    home_later_postpone(r.later, id, "it is not connected");
    pass(&r, 0);
    assert_string_equal(r.told, "lamp=failed;"); /* too late for another run */
    rig_close(&r);
}

/* ---- execution ------------------------------------------------------------------------------ */

struct world {
    struct rig rig;
    struct home_things *things;
    struct home_later_run runner;
    struct home_sink sink;
    enum home_sink_result result;
    char carried[512];
};

static struct world *the_world;

static void carry(struct home_sink *s, const struct home_deed *d, home_sink_done_fn done, void *ctx)
{
    struct world *w = the_world;
    char value[64];
    (void)s;
    if (d->text)
        snprintf(value, sizeof(value), "%s", d->text);
    else
        snprintf(value, sizeof(value), "%.6g", d->number);
    note(w->carried, sizeof(w->carried), d->id, value);
    done(ctx, w->result, w->result >= HOME_SINK_FAILED ? "it is broken" : NULL);
}

static void set_home(struct world *w, const char *yaml)
{
    struct home_file *f;
    struct err e = {0};
    if (home_file_read_text(&f, table, yaml, strlen(yaml), "test", &e) < 0)
        fail_msg("%s", e.msg);
    if (w->things)
        home_things_set_file(w->things, f);
    else
        assert_int_equal(home_things_create(&w->things, f, NULL, &e), 0);
    home_file_unref(f);
}

static void world_open(struct world *w, const char *yaml)
{
    static const struct home_sink_ops ops = {carry};
    struct err e = {0};
    *w = (struct world){.sink = {&ops}, .rig = {.wall_ms = START_MS}};
    the_world = w;
    set_home(w, yaml);
    const struct home_later_opts o = {
        .clock = {wall, steady, &w->rig}, .run = home_later_run_entry, .run_ctx = &w->runner};
    assert_int_equal(home_later_create(&w->rig.later, &o, &e), 0);
    w->runner = (struct home_later_run){table, w->things, w->rig.later};
    home_later_listen(w->rig.later, on_told, &w->rig);
    home_things_set_sink(w->things, &w->sink);
}

static void world_close(struct world *w)
{
    home_later_destroy(w->rig.later);
    home_things_destroy(w->things);
}

static void plan(struct world *w, enum home_later_kind kind, const char *what, const char *action,
                 bool confirmed)
{
    struct arena own;
    arena_init(&own, 1u << 20);
    const struct home_later_entry x = {.kind = kind,
                                       .due_ms = w->rig.wall_ms + MINUTE_MS,
                                       .counted = true,
                                       .confirmed = confirmed,
                                       .what = what,
                                       .said = what,
                                       .action = home_later_action_read(&own, action)};
    w->carried[0] = w->rig.told[0] = '\0';
    home_later_add(w->rig.later, &x, on_done, &w->rig);
    arena_fini(&own); /* entries are copied */
    (void)home_later_tick(w->rig.later);
    assert_int_equal(w->rig.rc, 0);
    pass(&w->rig, MINUTE_MS);
}

/* An action as text in the file, and text that is not an action. */
static void test_actions_as_text(void **state)
{
    static const char good[] =
        "{\"action\":\"turn_off\",\"device\":\"a \\\"lamp\\\"\",\"value\":-0.5,"
        "\"ids\":[\"x\",\"y\"],\"empty\":\"\"}";
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"action\":[]}",
        "{\"action\":\"a\",\"x\":null}",
        "{\"action\":\"a\",\"x\":1e999}",
        "{\"action\":\"a\",\"x\":[]}",
        "{\"action\":\"a\",\"x\":[1]}",
        "{\"action\":\"a\",\"x\":{}}",
        "{\"action\":\"a\",\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,"
        "\"7\":1,\"8\":1,\"9\":1,\"10\":1,\"11\":1,\"12\":1,\"13\":1,"
        "\"14\":1,\"15\":1,\"16\":1,\"17\":1}"};
    struct arena own;
    struct buf b;
    (void)state;
    arena_init(&own, 1u << 20);
    buf_init(&b, 1000);
    const struct ask_plan_action *o = home_later_action_read(&own, good);
    assert_non_null(o);
    assert_string_equal(o->name, "turn_off");
    assert_int_equal(o->n_fields, 4);
    assert_string_equal(o->fields[2].items[1], "y");
    home_later_action_write(&b, o);
    assert_string_equal(buf_str(&b), good);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (home_later_action_read(&own, bad[i]))
            fail_msg("%s is read as an action", bad[i]);
    struct ask_plan_action long_one = {.name = "a", .n_fields = 1};
    char text[HOME_LATER_ACTION_MAX];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    long_one.fields[0] = (struct ask_plan_field){.key = "k", .text = text};
    assert_false(home_later_action_fits(&long_one));
    text[100] = '\0';
    assert_true(home_later_action_fits(&long_one));
    buf_fini(&b);
    arena_fini(&own);
}

static void test_what_is_due_is_carried_out(void **state)
{
    static const char house[] =
        "devices:\n  - {id: light.desk, name: desk lamp, kind: light}\n"
        "  - {id: oven, name: oven, kind: appliance, abilities: [power, temperature],\n"
        "     limits: {temperature: {min: 30, max: 250}}}\n"
        "  - {id: lock.front, name: front door, kind: door}\n";
    static const char off[] =
        "{\"action\":\"turn_off\",\"device\":\"desk lamp\",\"id\":\"light.desk\"}",
                      hot[] = "{\"action\":\"set_temperature\",\"device\":\"oven\",\"value\":200,"
                              "\"unit\":\"celsius\",\"id\":\"oven\"}",
                      unlock[] =
                          "{\"action\":\"unlock\",\"device\":\"front door\",\"id\":\"lock.front\"}";
    struct world w;
    (void)state;
    world_open(&w, house);
    plan(&w, HOME_LATER_ACTION, "off", off, false);
    assert_string_equal(w.carried, "light.desk=off;");
    assert_string_equal(w.rig.told, "off=done;");
    w.result = HOME_SINK_FAILED;
    plan(&w, HOME_LATER_ACTION, "off", off, false);
    assert_string_equal(w.rig.told, "off=failed;");
    w.result = HOME_SINK_DONE;
    plan(&w, HOME_LATER_REMINDER, "reminder: tea", "{\"action\":\"set_reminder\"}", false);
    assert_string_equal(w.rig.told, "reminder: tea=rang;");
    assert_string_equal(w.carried, "");
    plan(&w, HOME_LATER_ACTION, "unlock", unlock, false); /* not confirmed */
    assert_string_equal(w.rig.told, "unlock=failed;");
    assert_string_equal(w.carried, "");
    plan(&w, HOME_LATER_ACTION, "unlock", unlock, true);
    assert_string_equal(w.carried, "lock.front=unlocked;");
    plan(&w, HOME_LATER_ACTION, "hot", hot, true);
    assert_string_equal(w.carried, "oven=200;");
    plan(&w, HOME_LATER_ACTION, "for a while",
         "{\"action\":\"turn_on\",\"device\":\"desk "
         "lamp\",\"duration_s\":120,\"id\":\"light.desk\"}",
         false);
    assert_string_equal(w.carried, "light.desk=on;");
    pass(&w.rig, 2 * MINUTE_MS);
    assert_string_equal(w.carried, "light.desk=on;light.desk=off;");
    plan(&w, HOME_LATER_ACTION, "nonsense", "{\"action\":[]}", true);
    assert_string_equal(w.rig.told, "nonsense=failed;");
    /* the home changes between scheduling and execution */
    set_home(&w, "devices:\n  - {id: oven, name: oven, kind: appliance, abilities: [temperature],\n"
                 "     limits: {temperature: {min: 30, max: 150}}}\n");
    plan(&w, HOME_LATER_ACTION, "hot", hot, true);
    assert_string_equal(w.rig.told, "hot=failed;");
    plan(&w, HOME_LATER_ACTION, "off", off, false);
    assert_string_equal(w.rig.told, "off=failed;");
    assert_string_equal(w.carried, "");
    world_close(&w);
}

/* Everything is checked with the home and its states as they are when it runs. */
static void test_the_gate_when_it_runs(void **state)
{
    static const char cellar[] =
        "devices:\n  - {id: lamp, kind: light}\n  - {id: door, kind: door}\n"
        "machines:\n"
        "  - {id: fv1, kind: machine, limits: {pressure: {unit: bar, min: 0, max: 2}}}\n"
        "scenes:\n  - {id: night, sets: [{id: lamp, ability: power, to: \"off\"}]}\n";
    static const char set[] = "{\"action\":\"set_machine\",\"machine\":\"fv1\",\"value\":100,"
                              "\"unit\":\"kPa\",\"id\":\"fv1\"}",
                      more[] = "{\"action\":\"set_machine\",\"machine\":\"fv1\","
                               "\"sensor\":\"pressure\",\"change\":0.8,\"id\":\"fv1\"}",
                      night[] =
                          "{\"action\":\"activate_scene\",\"scene\":\"night\",\"id\":\"night\"}",
                      on[] = "{\"action\":\"turn_on\",\"device\":\"lamp\",\"id\":\"lamp\"}",
                      lock[] = "{\"action\":\"lock\",\"device\":\"door\",\"duration_s\":60,"
                               "\"id\":\"door\"}";
    struct world w;
    (void)state;
    world_open(&w, cellar);
    plan(&w, HOME_LATER_ACTION, "more", more, false); /* from where?  Nobody said yes */
    assert_string_equal(w.rig.told, "more=failed;");
    plan(&w, HOME_LATER_ACTION, "set", set, false);
    assert_string_equal(w.carried, "fv1=1;"); /* bar */
    plan(&w, HOME_LATER_ACTION, "more", more, false);
    assert_string_equal(w.carried, "fv1=1.8;");
    plan(&w, HOME_LATER_ACTION, "more", more, true); /* no yes helps over a limit */
    assert_string_equal(w.rig.told, "more=failed;");
    assert_true(home_things_report(w.things, "fv1", "pressure", NULL, 10, "kPa"));
    plan(&w, HOME_LATER_ACTION, "more", more, false);
    assert_string_equal(w.carried, "fv1=0.9;");
    plan(&w, HOME_LATER_ACTION, "night", night, false);
    assert_string_equal(w.carried, "lamp=off;");
    plan(&w, HOME_LATER_ACTION, "lock", lock, true); /* its end would unlock, unconfirmed */
    pass(&w.rig, 2 * MINUTE_MS);
    assert_string_equal(w.carried, "door=locked;");
    /* what was harmless when it was set has become dangerous */
    set_home(&w, "devices:\n  - {id: lamp, kind: heater}\n  - {id: door, kind: door}\n"
                 "scenes:\n  - {id: night, sets: [{id: lamp, ability: power, to: \"off\"},\n"
                 "     {id: door, ability: lock, to: unlocked}]}\n");
    plan(&w, HOME_LATER_ACTION, "on", on, false);
    assert_string_equal(w.rig.told, "on=failed;");
    plan(&w, HOME_LATER_ACTION, "night", night, false);
    assert_string_equal(w.rig.told, "night=failed;");
    assert_string_equal(w.carried, "");
    plan(&w, HOME_LATER_ACTION, "set", set, true);
    assert_string_equal(w.rig.told, "set=failed;");
    plan(&w, HOME_LATER_ACTION, "night", night, true);
    assert_string_equal(w.carried, "lamp=off;door=unlocked;");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_summer_time),
        cmocka_unit_test(test_the_sun),
        cmocka_unit_test(test_the_sun_of_a_day),
        cmocka_unit_test(test_what_comes_again),
        cmocka_unit_test(test_in_order_and_once),
        cmocka_unit_test(test_it_comes_again),
        cmocka_unit_test(test_a_rhythm),
        cmocka_unit_test(test_a_restart_does_what_was_due),
        cmocka_unit_test(test_what_had_begun_is_not_repeated),
        cmocka_unit_test(test_the_clock_is_set),
        cmocka_unit_test(test_cancel_and_limit),
        cmocka_unit_test(test_pause_and_change),
        cmocka_unit_test(test_a_file_has_one_user),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_a_file_is_read_strictly),
        cmocka_unit_test(test_out_of_reach_is_tried_again),
        cmocka_unit_test(test_actions_as_text),
        cmocka_unit_test(test_what_is_due_is_carried_out),
        cmocka_unit_test(test_the_gate_when_it_runs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
