/* test_modbus.c - tags and registers, and a controller (libmodbus) that is read, set, cut off and
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <modbus.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"
#include "site/modbus/modbus_site.h"
#include "site/modbus/modbus_tag.h"
#include "site/things/plant.h"

/* ---- registers ---- */

static struct config_modbus_tag tag_of(uint32_t type, uint32_t order, double scale, double offset)
{
    return (struct config_modbus_tag){
        .name = "t", .type = type, .order = order, .scale = scale, .offset = offset};
}

static void test_registers(void **state)
{
    static const struct {
        uint32_t type, order;
        uint16_t words[4];
        double value;
    } rows[] = {
        {CONFIG_MODBUS_INT16, CONFIG_MODBUS_ABCD, {0xff83}, -125},
        {CONFIG_MODBUS_UINT16, CONFIG_MODBUS_ABCD, {0xff83}, 65411},
        {CONFIG_MODBUS_INT16, CONFIG_MODBUS_BADC, {0x83ff}, -125},
        {CONFIG_MODBUS_INT32, CONFIG_MODBUS_ABCD, {0xfffe, 0x1dc0}, -123456},
        {CONFIG_MODBUS_INT32, CONFIG_MODBUS_CDAB, {0x1dc0, 0xfffe}, -123456},
        {CONFIG_MODBUS_UINT32, CONFIG_MODBUS_DCBA, {0xc01d, 0xfeff}, 4294843840.0},
        {CONFIG_MODBUS_FLOAT32, CONFIG_MODBUS_ABCD, {0x41ac, 0x0000}, 21.5},
        {CONFIG_MODBUS_FLOAT32, CONFIG_MODBUS_CDAB, {0x0000, 0x41ac}, 21.5},
        {CONFIG_MODBUS_FLOAT32, CONFIG_MODBUS_BADC, {0xac41, 0x0000}, 21.5},
        {CONFIG_MODBUS_FLOAT32, CONFIG_MODBUS_DCBA, {0x0000, 0xac41}, 21.5},
        {CONFIG_MODBUS_FLOAT64, CONFIG_MODBUS_ABCD, {0x4035, 0x8000, 0, 0}, 21.5},
        {CONFIG_MODBUS_FLOAT64, CONFIG_MODBUS_CDAB, {0, 0, 0x8000, 0x4035}, 21.5},
        {CONFIG_MODBUS_BOOL, CONFIG_MODBUS_ABCD, {1}, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_modbus_tag t = tag_of(rows[i].type, rows[i].order, 1, 0);
        uint16_t words[MODBUS_TAG_MAX_WORDS] = {0};
        struct err e = {0};
        assert_true(modbus_tag_decode(&t, rows[i].words) == rows[i].value);
        assert_int_equal(modbus_tag_encode(&t, rows[i].value, words, &e), 0);
        assert_memory_equal(words, rows[i].words, sizeof(words));
    }
}

static void test_scale_and_limits(void **state)
{
    struct config_modbus_tag t = tag_of(CONFIG_MODBUS_INT16, CONFIG_MODBUS_ABCD, 0.1, 20);
    uint16_t w[MODBUS_TAG_MAX_WORDS];
    struct err e = {0};
    (void)state;
    assert_int_equal(modbus_tag_encode(&t, 24.27, w, &e), 0);
    assert_int_equal(w[0], 43);
    assert_true(fabs(modbus_tag_decode(&t, w) - 24.3) < 1e-9);
    assert_int_equal(modbus_tag_encode(&t, 4000, w, &e), SHOAL_EINVAL);
    assert_int_equal(modbus_tag_encode(&t, (double)NAN, w, &e), SHOAL_EINVAL);
    t = tag_of(CONFIG_MODBUS_FLOAT32, CONFIG_MODBUS_ABCD, 1, 0);
    assert_int_equal(modbus_tag_encode(&t, 1e300, w, &e), SHOAL_EINVAL);
    t = tag_of(CONFIG_MODBUS_UINT16, CONFIG_MODBUS_ABCD, 1, 0);
    assert_int_equal(modbus_tag_encode(&t, -1, w, &e), SHOAL_EINVAL);
}

/* ---- a controller ---- */

struct controller {
    pthread_t thread;
    int listener;
    uint16_t port;
    modbus_mapping_t *map;
    _Atomic bool stop, deaf; /* deaf: sets nothing, though it says so */
    _Atomic int client;
};

static void *serve(void *arg)
{
    struct controller *c = arg;
    modbus_t *line = modbus_new_tcp("127.0.0.1", c->port);
    uint8_t query[MODBUS_TCP_MAX_ADU_LENGTH];
    while (!atomic_load(&c->stop)) {
        int fd = accept(c->listener, NULL, NULL), n;
        if (fd < 0)
            break;
        atomic_store(&c->client, fd);
        modbus_set_socket(line, fd);
        while ((n = modbus_receive(line, query)) >= 0) {
            uint16_t kept = c->map->tab_registers[4];
            if (n > 0 && modbus_reply(line, query, n, c->map) < 0)
                break;
            if (atomic_load(&c->deaf))
                c->map->tab_registers[4] = kept;
        }
        atomic_store(&c->client, -1);
        close(fd);
    }
    modbus_free(line);
    return NULL;
}

static void open_controller(struct controller *c)
{
    modbus_t *line = modbus_new_tcp("127.0.0.1", c->port);
    assert_non_null(line);
    c->listener = modbus_tcp_listen(line, 4);
    assert_true(c->listener >= 0);
    modbus_free(line);
    c->map = modbus_mapping_new(8, 8, 8, 8);
    c->map->tab_registers[2] = 75;
    c->map->tab_bits[1] = 1;
    atomic_store(&c->stop, false);
    atomic_store(&c->client, -1);
    assert_int_equal(pthread_create(&c->thread, NULL, serve, c), 0);
}

static void close_controller(struct controller *c)
{
    atomic_store(&c->stop, true);
    shutdown(c->listener, SHUT_RDWR);
    int fd = atomic_load(&c->client);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    pthread_join(c->thread, NULL);
    close(c->listener);
    modbus_mapping_free(c->map);
}

/* A port that nothing listens on. */
static uint16_t free_port(void)
{
    struct sockaddr_storage a = {.ss_family = AF_INET};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    close(fd);
    const uint8_t *p = (const uint8_t *)&a;
    return (uint16_t)(p[2] << 8 | p[3]);
}

static void copy_view(void *ctx, struct things *t)
{
    struct things_view *v = ctx;
    for (uint32_t i = 0; i < things_count(t); i++)
        things_view(t, i, &v[i]);
}

enum { LEVEL, VALVE, NOWHERE, SENSORS };

/* Waits until a sensor has this value, or NAN: a bad reading. */
static void await(struct plant *p, uint32_t sensor, double value)
{
    struct things_view v[SENSORS];
    for (int i = 0; i < 6000; i++) {
        plant_look(p, copy_view, v);
        if (isnan(value) ? v[sensor].counts.bad > 0 : v[sensor].value == value)
            return;
        usleep(10000);
    }
    fail_msg("sensor %u is %g, not %g", sensor, v[sensor].value, value);
}

static void test_a_controller(void **state)
{
    static const char *const names[SENSORS] = {"level", "valve", "nowhere"};
    struct controller c = {.port = free_port()};
    struct config_modbus_tag tags[] = {
        {"level", "level", CONFIG_MODBUS_HOLDING, CONFIG_MODBUS_INT16, 0, 2, 0.1, 0},
        {"valve", "valve", CONFIG_MODBUS_COIL, CONFIG_MODBUS_BOOL, 0, 1, 1, 0},
        {"nowhere", "nowhere", CONFIG_MODBUS_HOLDING, CONFIG_MODBUS_INT16, 0, 9, 1, 0},
        {"wanted", NULL, CONFIG_MODBUS_HOLDING, CONFIG_MODBUS_INT16, 0, 4, 0.1, 0},
    };
    char host[32];
    snprintf(host, sizeof(host), "127.0.0.1:%u", c.port);
    struct config_modbus plc = {"plc", host, 1, 20, 2000, tags, 4};
    const struct config_modbuses list = {&plc, 1};
    struct things_sensor_opts opts[SENSORS];
    struct config config = {.things = {.sensors = opts, .n_sensors = SENSORS}};
    struct plant *plant;
    struct modbus_site *s;
    struct err e = {0};
    (void)state;
    for (int i = 0; i < SENSORS; i++) {
        opts[i] = things_sensor_defaults();
        opts[i].name = names[i];
    }
    assert_int_equal(plant_create(&plant, &config, NULL, &e), 0);
    tags[0].sensor = (char *)(uintptr_t) "nosuch";
    assert_int_equal(modbus_site_create(&s, &list, plant, &e), SHOAL_EINVAL);
    tags[0].sensor = (char *)(uintptr_t) "level";
    assert_int_equal(modbus_site_create(&s, &list, plant, &e), 0);
    assert_int_equal(modbus_site_write(s, "plc.wanted", 1, &e), SHOAL_EBUSY);
    open_controller(&c);
    assert_int_equal(modbus_site_start(s, &e), 0);
    await(plant, LEVEL, 7.5); /* in the same request as one that is refused */
    await(plant, VALVE, 1);
    await(plant, NOWHERE, (double)NAN);
    assert_int_equal(modbus_site_write(s, "plc.wanted", 12.5, &e), 0);
    assert_int_equal(c.map->tab_registers[4], 125);
    assert_int_equal(modbus_site_write(s, "plc.wanted", 1e9, &e), SHOAL_EINVAL);
    assert_int_equal(modbus_site_write(s, "plc.nosuch", 1, &e), SHOAL_ENOTFOUND);
    atomic_store(&c.deaf, true);
    assert_int_equal(modbus_site_write(s, "plc.wanted", 3, &e), SHOAL_EIO);
    assert_int_equal(c.map->tab_registers[4], 125);
    close_controller(&c);
    for (int i = 0; i < 6000 && modbus_site_write(s, "plc.wanted", 1, &e) != SHOAL_EBUSY; i++)
        usleep(10000);
    atomic_store(&c.deaf, false);
    open_controller(&c); /* it comes back, */
    c.map->tab_registers[2] = 80;
    await(plant, LEVEL, 8);
    modbus_site_stop(s);
    modbus_site_destroy(s);
    close_controller(&c);
    plant_destroy(plant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_scale_and_limits),
        cmocka_unit_test(test_a_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
