/* test_home_things.c - home files, names of things, states, and execution. */
#include <pthread.h>
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
#include "base/file/file_read.h"
#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_import.h"
#include "apps/home/site/home_near.h"
#include "apps/home/home_fill.h"
#include "apps/home/site/home_things.h"

static const char house[] =
    "name: my house\n"
    "rooms:\n"
    "  - {id: kitchen}\n"
    "  - {id: living, name: Living Room, aliases: [lounge]}\n"
    "devices:\n"
    "  - {id: light.ceiling, name: ceiling light, kind: light, room: kitchen}\n"
    "  - {id: light.counter, name: counter lamp, kind: light, room: kitchen}\n"
    "  - {id: light.desk, name: desk lamp, kind: light, room: living,\n"
    "     limits: {brightness: {min: 10, max: 80, unit: percent}}}\n"
    "  - {id: lock.front, name: front door, kind: door}\n"
    "  - {id: cover.garage, name: garage door, kind: door}\n"
    "  - {id: switch.rack, name: server rack, kind: switch, risk: dangerous}\n"
    "  - {id: switch.fountain, kind: switch, risk: harmless}\n"
    "machines:\n"
    "  - {id: pump.3, name: pump 3, kind: machine, limits: {pressure: {min: 1, max: 6}}}\n"
    "people:\n"
    "  - {id: person.anna, name: Anna, aliases: [mum]}\n"
    "scenes:\n"
    "  - id: scene.night\n"
    "    sets: [{id: light.desk, ability: brightness, to: 20},\n"
    "           {id: lock.front, ability: lock, to: locked}]\n";

static struct ask_pack pack;
static struct arena a;

static int setup(void **state)
{
    struct ask_pack_opts o = {
        .dir = SHOAL_TEST_DATA "/../../models", .no_reply = true, .parts_only = true};
    struct err e = {0};
    (void)state;
    arena_init(&a, (size_t)16 << 20);
    if (ask_pack_open(&pack, &o, &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ask_pack_close(&pack);
    arena_fini(&a);
    return 0;
}

static struct home_file *read_file(const char *text)
{
    struct home_file *f;
    struct err e = {0};
    if (home_file_read_text(&f, pack.table, text, strlen(text), "t.yaml", &e) < 0)
        fail_msg("%s", e.msg);
    return f;
}

/* ---- the file ---- */

static void test_a_file_is_read(void **state)
{
    struct home_file *f = read_file(house);
    (void)state;
    assert_string_equal(f->name, "my house");
    assert_false(f->open);
    assert_int_equal(f->n_things, 12);
    const struct home_thing *x = home_file_thing(f, "light.desk");
    assert_non_null(x);
    assert_string_equal(x->room->name, "Living Room");
    assert_string_equal(x->room->names.w[0], "living room");
    assert_true(home_file_able(x, "brightness"));
    assert_false(home_file_able(x, "lock"));
    assert_int_equal(x->n_limits, 1);
    assert_string_equal(home_file_thing(f, "switch.fountain")->name, "fountain");
    assert_int_equal(home_file_thing(f, "scene.night")->n_sets, 2);
    assert_null(home_file_thing(f, "light.attic"));
    assert_true(home_file_has_word(f, "fountain"));
    assert_false(home_file_has_word(f, "fount"));
    assert_false(home_file_has_word(NULL, "fountain"));
    home_file_unref(f);
}

#define STARTS                                                                                     \
    "starts:\n"                                                                                    \
    "  - {id: light.desk, ability: power, to: \"off\"}\n"                                          \
    "  - {id: light.desk, ability: brightness, to: 40}\n"

/* A home's own output is a valid home file. */
static void test_json_is_a_home_file(void **state)
{
    struct home_file *f = read_file(arena_printf(&a, "%s%s", house, STARTS)), *g;
    struct buf b, c;
    (void)state;
    buf_init(&b, 1 << 20);
    buf_init(&c, 1 << 20);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    home_file_json(&j, f);
    json_out_object_end(&j);
    g = read_file(buf_str(&b));
    j = json_out_make(&c);
    json_out_object(&j);
    home_file_json(&j, g);
    json_out_object_end(&j);
    assert_string_equal(buf_str(&b), buf_str(&c));
    assert_non_null(
        strstr(buf_str(&c), "{\"id\":\"light.desk\",\"ability\":\"brightness\",\"to\":40}"));
    buf_fini(&b);
    buf_fini(&c);
    home_file_unref(f);
    home_file_unref(g);
}

/* Whether the state of the desk lamp is this text, or this number. */
static void assert_desk(struct home_things *h, const char *ability, const char *text, double number)
{
    struct home_state v = {0};
    assert_true(home_states_get(home_things_states(h), &a, "light.desk", ability, &v));
    if (text)
        assert_string_equal(v.text, text);
    else
        assert_true(!v.text && v.number == number);
}

/* A home begins with the states of its file; what is known already stays. */
static void test_states_from_the_start(void **state)
{
    struct home_file *f = read_file(house), *g = read_file(arena_printf(&a, "%s%s", house, STARTS));
    struct home_things *h;
    struct home_state v;
    struct err e = {0};
    (void)state;
    assert_int_equal(home_things_create(&h, g, NULL, &e), 0);
    assert_desk(h, "power", "off", 0);
    assert_desk(h, "brightness", NULL, 40);
    home_things_destroy(h);
    assert_int_equal(home_things_create(&h, f, NULL, &e), 0);
    assert_false(home_states_get(home_things_states(h), &a, "light.desk", "power", &v));
    assert_true(home_things_report(h, "light.desk", "power", "on", 0, NULL));
    home_things_set_file(h, g);
    assert_desk(h, "power", "on", 0);
    assert_desk(h, "brightness", NULL, 40);
    home_things_destroy(h);
    home_file_unref(f);
    home_file_unref(g);
}

static void test_errors_say_where(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"rooms: kitchen", "t.yaml:1:8: rooms must be a list"},
        {"devices:\n  - {id: a, nme: x}", "t.yaml:2:13: unknown key 'nme' in device (did you mean"},
        {"devices:\n  - {name: x}", "t.yaml:2:5: a device needs an id"},
        {"devices:\n  - {id: a b}", "t.yaml:2:5: a device needs an id"},
        {"devices: [{id: a}, {id: a}]", "the id 'a' is used twice"},
        {"devices: [{id: a, room: attic}]", "'a' is in the room 'attic', which is not listed"},
        {"devices: [{id: a, kind: lihgt}]", "unknown kind 'lihgt' (did you mean 'light'?)"},
        {"devices: [{id: a, abilities: [powr]}]", "unknown ability 'powr' (did you mean 'power'?)"},
        {"devices: [{id: a, risk: high}]", "risk must be harmless, disturbing or dangerous"},
        {"devices: [{id: a, limits: {power: {min: 2, max: 1}}}]", "min is above max"},
        {"devices: [{id: a, limits: {power: {min: 2}}}]", "a limit needs min and max"},
        {"devices: [{id: a, limits: {temperature: {min: 2, max: 3, unit: bar}}}]",
         "temperature is not measured in 'bar'"},
        {"devices: [{id: a, name: 'x;y'}]", "without ';'"},
        {"scenes: [{id: s, sets: [{id: a, ability: power, to: x}]}]",
         "there is no thing with the id 'a'"},
        {"devices: [{id: a, kind: light}]\nstarts: [{id: a, ability: lock, to: locked}]",
         "t.yaml:2:10: 'a' has no ability 'lock'"},
        {"starts: {id: a}", "starts must be a list of {id, ability, to}"},
        {"starts: [{id: a}]", "an entry of starts needs id, ability and to"},
        {"people: [{id: p, kind: light}]", "unknown key 'kind'"},
        {"home: x", "unknown key 'home'"},
        {"devices: [", "t.yaml:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct home_file *f;
        struct err e = {0};
        int rc =
            home_file_read_text(&f, pack.table, rows[i].text, strlen(rows[i].text), "t.yaml", &e);
        assert_true(rc < 0);
        assert_null(f);
        if (!strstr(e.msg, rows[i].error))
            fail_msg("%s\n  got %s\n  expected %s", rows[i].text, e.msg, rows[i].error);
    }
}

/* ---- names ---- */

static void test_distances(void **state)
{
    (void)state;
    assert_int_equal(home_near_typed("kitchen", "kitchen", 2), 0);
    assert_int_equal(home_near_typed("kitchne", "kitchen", 2), 1);
    assert_int_equal(home_near_typed("kichen", "kitchen", 2), 1);
    assert_int_equal(home_near_typed("kitten", "sitting", 3), 3);
    assert_true(home_near_typed("kitten", "sitting", 2) == HOME_NEAR_FAR);
    assert_true(home_near_heard("lite", "light"));
    assert_true(home_near_heard("kichen", "kitchen") == false);
    assert_true(home_near_heard("phan", "fan"));
    assert_false(home_near_heard("door", "fan"));
    assert_true(home_near("fan", "tan") == HOME_NEAR_FAR); /* short words differ by one letter */
}

static void test_states_are_kept(void **state)
{
    char path[] = "/tmp/test_home_things_XXXXXX";
    struct home_states *s;
    struct home_state v;
    struct err e = {0};
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(home_states_create(&s, path, &e), 0);
    assert_false(home_states_get(s, &a, "light.desk", NULL, &v));
    uint64_t turns = home_states_turns(s);
    home_states_set(s, "light.desk", &(struct home_state){.ability = "power", .text = "on"});
    assert_true(home_states_turns(s) > turns);
    home_states_set(s, "light.desk",
                    &(struct home_state){.ability = "brightness", .number = 40, .unit = "percent"});
    assert_true(home_states_add(s, "light.desk",
                                &(struct home_state){.ability = "brightness", .number = -15}));
    assert_false(home_states_add(s, "fan", &(struct home_state){.ability = "mode", .number = 1}));
    home_states_destroy(s);
    assert_int_equal(home_states_create(&s, path, &e), 0);
    assert_true(home_states_get(s, &a, "light.desk", "power", &v));
    assert_string_equal(v.text, "on");
    assert_true(v.since_s > 1600000000);
    assert_true(home_states_get(s, &a, "light.desk", "brightness", &v));
    assert_true(v.number == 25.0);
    assert_string_equal(v.unit, "percent");
    home_states_destroy(s);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"version\": 1, \"states\": [{\"id\": 5}]}", f);
    fclose(f);
    assert_int_equal(home_states_create(&s, path, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, path));
    unlink(path);
}

/* ---- with the models: the effect of a text on things ---- */

struct fake { /* a sink that answers later, on its own thread */
    struct home_sink sink;
    pthread_mutex_t lock;
    char log[1024];
    enum home_sink_result result;
    const char *reason;
    bool later;
};

struct late {
    struct fake *fake;
    home_sink_done_fn done;
    void *ctx;
};

static void *answer_late(void *arg)
{
    struct late l = *(struct late *)arg;
    free(arg);
    l.done(l.ctx, l.fake->result, l.fake->reason);
    return NULL;
}

static void carry(struct home_sink *s, const struct home_deed *d, home_sink_done_fn done, void *ctx)
{
    struct fake *f = (struct fake *)(void *)s;
    size_t n = strlen(f->log);
    pthread_mutex_lock(&f->lock);
    if (d->text)
        snprintf(f->log + n, sizeof(f->log) - n, "%s.%s=%s ", d->id, d->ability, d->text);
    else
        snprintf(f->log + n, sizeof(f->log) - n, "%s.%s=%s%g%s ", d->id, d->ability,
                 d->change ? "+" : "", d->number, d->unit ? d->unit : "");
    pthread_mutex_unlock(&f->lock);
    if (!f->later) {
        done(ctx, f->result, f->reason);
        return;
    }
    struct late *l = malloc(sizeof(*l));
    pthread_t t;
    assert_non_null(l);
    *l = (struct late){f, done, ctx};
    assert_int_equal(pthread_create(&t, NULL, answer_late, l), 0);
    pthread_detach(t);
}

struct rig {
    struct home_things *things;
    struct ask *ask;
    struct fake fake;
};

static void rig_open(struct rig *r, const char *text)
{
    static const struct home_sink_ops ops = {carry};
    struct home_file *f = read_file(text);
    struct err e = {0};
    *r = (struct rig){.fake = {.sink = {&ops}}};
    pthread_mutex_init(&r->fake.lock, NULL);
    assert_int_equal(home_things_create(&r->things, f, NULL, &e), 0);
    home_file_unref(f);
    assert_int_equal(ask_create(&r->ask, pack.table, r->things, pack.reader, NULL, &e), 0);
}

static void rig_close(struct rig *r)
{
    ask_destroy(r->ask);
    home_things_destroy(r->things);
    pthread_mutex_destroy(&r->fake.lock);
}

/* The value of a key of the first action that a text causes; "": none. */
static const char *does(struct rig *r, const char *text, const char *key)
{
    struct ask_request *q;
    struct err e = {0};
    struct ask_opts o = {
        .text = text, .text_bytes = strlen(text), .conversation = "test", .no_reply = true};
    const char *out = "";
    r->fake.log[0] = '\0';
    if (ask_submit(r->ask, &o, &q, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    assert_int_equal(ask_wait(q), 0);
    const struct ask_plan *p = ask_plan_of(q);
    for (uint32_t i = 0; p->n_actions > 0 && i < p->actions[0]->n_fields; i++) {
        const struct ask_plan_field *f = &p->actions[0]->fields[i];
        if (strcmp(f->key, key) != 0)
            continue;
        out = f->text ? arena_printf(&a, "%s", f->text) : arena_printf(&a, "%g", f->number);
        for (uint32_t k = 0; k < f->n_items; k++)
            out = arena_printf(&a, "%s%s%s", k ? out : "", k ? " " : "", f->items[k]);
    }
    ask_free(q);
    return out;
}

static void test_a_home_without_a_sink_is_simulated(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, house);
    assert_string_equal(does(&r, "turn on the kitchen lights", "ids"),
                        "light.ceiling light.counter");
    assert_string_equal(does(&r, "turn them off", "result"), "simulated");
    assert_string_equal(does(&r, "turn them back on", "result"), "simulated");
    assert_string_equal(does(&r, "is the ceiling light on?", "state"), "on");
    assert_string_equal(does(&r, "what is on in the kitchen?", "things"),
                        "kitchen ceiling light, kitchen counter lamp");
    assert_string_equal(does(&r, "open the garage door", "result"), "confirm");
    assert_string_equal(does(&r, "is the garage door open?", "result"), "failed");
    assert_string_equal(does(&r, "open the garage door", "id"), "cover.garage");
    assert_string_equal(does(&r, "yes", "result"), "simulated");
    assert_string_equal(does(&r, "is the garage door open?", "state"), "open");
    assert_string_equal(does(&r, "set the desk lamp to 95 percent", "reason"),
                        "the maximum is 80%");
    assert_string_equal(does(&r, "set the pressure of pump 3 to 8 bar", "result"), "refused");
    assert_string_equal(does(&r, "turn off the server rack", "risk"), "dangerous");
    assert_string_equal(does(&r, "turn on the fountain", "result"), "simulated");
    assert_string_equal(does(&r, "turn on the saw", "unknown"), "saw");
    assert_string_equal(does(&r, "stop the saw", "result"), "unknown");
    assert_string_equal(does(&r, "call mum", "id"), "person.anna");
    assert_string_equal(does(&r, "call Peter", "unknown"), "Peter");
    assert_string_equal(does(&r, "dim the front door to 30 percent", "result"), "refused");
    rig_close(&r);
}

static void test_a_sink_carries_out(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, house);
    home_things_set_sink(r.things, &r.fake.sink);
    for (int later = 0; later < 2; later++) {
        r.fake.later = later;
        r.fake.result = HOME_SINK_DONE;
        assert_string_equal(does(&r, "dim the desk lamp to 40 percent", "result"), "done");
        assert_string_equal(r.fake.log, "light.desk.brightness=40percent ");
        r.fake.result = HOME_SINK_SENT;
        assert_string_equal(does(&r, "turn off the kitchen lights", "result"), "sent");
        assert_string_equal(r.fake.log, "light.ceiling.power=off light.counter.power=off ");
        assert_string_equal(does(&r, "activate the night scene", "result"), "sent");
        assert_string_equal(r.fake.log, "light.desk.brightness=20percent lock.front.lock=locked ");
        assert_string_equal(does(&r, "unlock the front door", "result"), "confirm");
        assert_string_equal(r.fake.log, "");
        assert_string_equal(does(&r, "yes", "result"), "sent");
        assert_string_equal(r.fake.log, "lock.front.lock=unlocked ");
        r.fake.result = HOME_SINK_FAILED;
        r.fake.reason = "the lock is jammed";
        assert_string_equal(does(&r, "lock the front door", "reason"), "the lock is jammed");
        assert_string_equal(does(&r, "is the front door locked?", "state"), "unlocked");
        r.fake.result = HOME_SINK_NOT_CONNECTED;
        r.fake.reason = NULL;
        assert_string_equal(does(&r, "lock the front door", "result"), "failed");
        assert_string_equal(does(&r, "set a timer for ten minutes", "result"), "scheduled");
    }
    /* a state reported by the thing counts */
    assert_true(home_things_report(r.things, "lock.front", "lock", "locked", 0, NULL));
    assert_false(home_things_report(r.things, "lock.attic", "lock", "locked", 0, NULL));
    assert_string_equal(does(&r, "is the front door locked?", "state"), "locked");
    rig_close(&r);
}

/* A yes is about the plan that was asked for, and about the home as it is then. */
static void test_a_yes_does_not_open_the_gate_for_more(void **state)
{
    static const char before[] = "devices:\n  - {id: oven, name: oven, kind: heater}\n"
                                 "  - {id: lock.front, name: front door, kind: door}\n"
                                 "machines:\n  - {id: pump.3, name: pump 3, kind: machine,\n"
                                 "     limits: {pressure: {min: 1, max: 6, unit: bar}}}\n",
                      after[] = "devices:\n  - {id: oven, name: oven, kind: heater,\n"
                                "     limits: {temperature: {min: 30, max: 100, unit: celsius}}}\n"
                                "machines:\n  - {id: pump.3, name: pump 3, kind: machine}\n";
    struct rig r;
    (void)state;
    rig_open(&r, before);
    home_things_set_sink(r.things, &r.fake.sink);
    assert_string_equal(does(&r, "set the oven to 200 degrees", "result"), "confirm");
    assert_string_equal(does(&r, "yes", "result"), "done");
    assert_string_equal(r.fake.log, "oven.temperature=200celsius ");
    assert_string_equal(does(&r, "yes", "result"), ""); /* once */
    assert_string_equal(r.fake.log, "");
    assert_string_equal(does(&r, "set the oven to 200 degrees", "result"), "confirm");
    struct home_file *f = read_file(after);
    home_things_set_file(r.things, f);
    assert_string_equal(does(&r, "yes", "reason"), "the maximum is 100 degrees");
    assert_string_equal(r.fake.log, "");
    home_file_unref(f);
    f = read_file(before);
    home_things_set_file(r.things, f);
    home_file_unref(f);
    assert_string_equal(does(&r, "unlock the front door", "result"), "confirm");
    f = read_file(after);
    home_things_set_file(r.things, f);
    home_file_unref(f);
    assert_string_equal(does(&r, "yes", "reason"), "it is not in the home any more");
    assert_string_equal(r.fake.log, "");
    rig_close(&r);
}

/* What reaches the sink is in the thing's own unit, and a change is the value that it leads to. */
static void test_a_sink_gets_what_passed(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r,
             "machines:\n  - {id: pump.3, name: pump 3, kind: machine,\n"
             "     limits: {pressure: {min: 1, max: 6, unit: bar}}}\n"
             "scenes:\n  - {id: odd, name: night, sets: [{id: pump.3, ability: power, to: off},\n"
             "     {id: pump.3, ability: temperature, to: warm}]}\n");
    home_things_set_sink(r.things, &r.fake.sink);
    assert_string_equal(does(&r, "activate the night scene", "reason"),
                        "it is not clear what to set");
    assert_string_equal(r.fake.log, ""); /* nor does the other half of it happen */
    assert_string_equal(does(&r, "set the pressure of pump 3 to 200 kPa", "result"), "done");
    assert_string_equal(r.fake.log, "pump.3.pressure=2bar ");
    assert_string_equal(does(&r, "increase the pressure of pump 3 by 100 kPa", "result"), "done");
    assert_string_equal(r.fake.log, "pump.3.pressure=3bar ");
    assert_string_equal(does(&r, "increase the pressure of pump 3 by 4 bar", "reason"),
                        "the maximum is 6 bar");
    assert_string_equal(r.fake.log, "");
    rig_close(&r);
}

/* ---- Home Assistant ---- */

static void test_registries_become_a_home(void **state)
{
    static const char areas[] = "{\"data\":{\"areas\":[{\"id\":\"kitchen\",\"name\":\"Kitchen\","
                                "\"aliases\":[\"galley\"]},{\"id\":\"hall\",\"name\":\"Hall\"}]}}";
    static const char devices[] =
        "{\"data\":{\"devices\":[{\"id\":\"d1\",\"area_id\":\"kitchen\",\"name\":\"Hue 12\","
        "\"name_by_user\":\"Counter\"}]}}";
    static const char entities[] =
        "{\"data\":{\"entities\":["
        "{\"entity_id\":\"light.hue_12\",\"device_id\":\"d1\",\"has_entity_name\":true,"
        "\"original_name\":\"Light\",\"aliases\":[\"worktop\"]},"
        "{\"entity_id\":\"cover.garage\",\"name\":\"Garage\",\"original_device_class\":\"garage\"},"
        "{\"entity_id\":\"sensor.temp\",\"original_name\":\"Temperature\",\"area_id\":\"hall\","
        "\"unit_of_measurement\":\"\\u00b0C\"},"
        "{\"entity_id\":\"sensor.rssi\",\"entity_category\":\"diagnostic\"},"
        "{\"entity_id\":\"light.old\",\"disabled_by\":\"user\"},"
        "{\"entity_id\":\"person.anna\",\"original_name\":\"Anna\"},"
        "{\"entity_id\":\"automation.x\"}]}}";
    const struct home_import in = {{areas, sizeof(areas) - 1},
                                   {devices, sizeof(devices) - 1},
                                   {entities, sizeof(entities) - 1}};
    struct home_import_report report;
    struct err e = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    assert_int_equal(home_import_write(&in, &b, &report, &e), 0);
    assert_int_equal(report.rooms, 2);
    assert_int_equal(report.things, 4);
    assert_int_equal(report.skipped, 3);
    struct home_file *f = read_file(buf_str(&b));
    const struct home_thing *x = home_file_thing(f, "light.hue_12");
    assert_string_equal(x->name, "Counter Light");
    assert_string_equal(x->room->name, "Kitchen");
    assert_true(home_table_lists(&x->names, "worktop"));
    assert_string_equal(home_file_thing(f, "cover.garage")->kind, "door");
    assert_string_equal(home_file_thing(f, "sensor.temp")->unit, "\xc2\xb0"
                                                                 "C");
    home_file_unref(f);
    const struct home_import bad = {.entities = {"{}", 2}};
    buf_clear(&b);
    assert_int_equal(home_import_write(&bad, &b, &report, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "data.entities"));
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_read),
        cmocka_unit_test(test_json_is_a_home_file),
        cmocka_unit_test(test_states_from_the_start),
        cmocka_unit_test(test_errors_say_where),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_states_are_kept),
        cmocka_unit_test(test_a_home_without_a_sink_is_simulated),
        cmocka_unit_test(test_a_sink_carries_out),
        cmocka_unit_test(test_a_yes_does_not_open_the_gate_for_more),
        cmocka_unit_test(test_a_sink_gets_what_passed),
        cmocka_unit_test(test_registries_become_a_home),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
