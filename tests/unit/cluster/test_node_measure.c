/* test_node_measure.c - what a node learns about its machine: measured again and again, stored on
 * disk, not while requests run; GPUs as reported by the system. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/machine/node_gpu.h"
#include "cluster/machine/node_measure.h"
#include "cluster/machine/speed_history.h"
#include "cluster/messages/node_state.h"
#include "depot/store/model_store.h"

static char dir[] = "/tmp/test_node_measure.XXXXXX";
static _Atomic bool busy;
static _Atomic uint32_t n_asked;

static bool is_busy(void *ctx)
{
    (void)ctx;
    n_asked++;
    return busy;
}

static struct node_state state_of(struct node_measure *m)
{
    struct node_state s = {.id = ""};
    node_measure_fill(m, &s);
    return s;
}

static struct node_measure *open_measure(void)
{
    const struct node_measure_opts o = {.cache_dir = dir, .delay_ms = 1, .busy = is_busy};
    struct node_measure *m;
    assert_int_equal(node_measure_open(&m, &o, NULL), 0);
    return m;
}

/* In sequence: the second finds the first one's result. */
static void test_measured_when_idle_and_kept(void **state)
{
    char path[128], text[128] = "";
    (void)state;
    busy = true;
    struct node_measure *m = open_measure();
    while (n_asked < 3) /* it checks, and waits */
        usleep(1000);
    assert_true(state_of(m).bandwidth == 0);
    busy = false;
    while (state_of(m).bandwidth == 0)
        usleep(1000);
    double measured = state_of(m).bandwidth;
    assert_true(measured > 1e6);
    snprintf(path, sizeof(path), "%s/machine", dir);
    while (access(path, R_OK) < 0)
        usleep(1000);
    node_measure_close(m);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    fclose(f);
    assert_int_equal(strncmp(text, "shoal machine 2 ", 16), 0);
    /* stored: available although requests run */
    busy = true;
    m = open_measure();
    while (state_of(m).bandwidth == 0)
        usleep(1000);
    assert_true(state_of(m).bandwidth > 0.99 * measured && state_of(m).bandwidth < 1.01 * measured);
    node_measure_close(m);
    /* from a different machine: measured again */
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("shoal machine 2 0123456789abcdef\nbandwidth 5\nprobe 5\n", f);
    fclose(f);
    busy = false;
    m = open_measure();
    while (state_of(m).bandwidth == 0)
        usleep(1000);
    assert_true(state_of(m).bandwidth > 1e6);
    node_measure_close(m);
}

/* A machine whose boot leaves a tenth of it, and which then is busy now and then. */
static _Atomic uint32_t n_measured;

static double fake_bandwidth(void *ctx)
{
    static const double gb_s[] = {1, 8, 10, 3, 9};
    (void)ctx;
    return 1e9 * gb_s[n_measured % 5];
}

static double fake_probe(void *ctx)
{
    static const double tokens[] = {725, 0, 6479, 700, 6000}; /* 0: a request arrived */
    (void)ctx;
    busy = n_measured == 4; /* five are enough */
    return tokens[n_measured++ % 5];
}

static struct node_measure *open_fake(const char *folder)
{
    const struct node_measure_opts o = {.cache_dir = folder,
                                        .delay_ms = 1,
                                        .again_ms = 1,
                                        .busy = is_busy,
                                        .bandwidth = fake_bandwidth,
                                        .probe = fake_probe};
    struct node_measure *m;
    assert_int_equal(node_measure_open(&m, &o, NULL), 0);
    return m;
}

/* The first measurement does not stay. */
static void test_measured_again(void **state)
{
    char folder[128], path[160], text[512] = "";
    (void)state;
    busy = false;
    snprintf(folder, sizeof(folder), "%s/again", dir);
    struct node_measure *m = open_fake(folder);
    while (n_measured < 5)
        usleep(1000);
    while (state_of(m).probe_tokens < 6479)
        usleep(1000);
    assert_true(state_of(m).bandwidth == 10e9);
    node_measure_close(m);
    /* both are stored, with those that were slower */
    snprintf(path, sizeof(path), "%s/machine", folder);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    assert_non_null(strstr(text, "\nbandwidth 1000000000 8000000000 10000000000 3000000000"));
    assert_non_null(strstr(text, "\nprobe 725 6479 700"));
    m = open_fake(folder); /* available although requests run */
    while (state_of(m).probe_tokens == 0)
        usleep(1000);
    assert_true(state_of(m).probe_tokens == 6479 && state_of(m).bandwidth == 10e9);
    node_measure_close(m);
}

static void test_history(void **state)
{
    struct speed_history h = {.n = 0}, again = {.n = 0};
    struct buf b;
    (void)state;
    assert_true(speed_history_best(&h) == 0 && speed_history_spread(&h) == 0);
    speed_history_add(&h, 0);
    speed_history_add(&h, -1);
    speed_history_add(&h, NAN);
    speed_history_add(&h, INFINITY);
    assert_true(speed_history_best(&h) == 0);
    speed_history_add(&h, 100);
    assert_true(speed_history_best(&h) == 100 && speed_history_spread(&h) == 0);
    speed_history_add(&h, 25);
    assert_true(speed_history_best(&h) == 100 && speed_history_spread(&h) == 0.75);
    for (uint32_t i = 0; i < SPEED_HISTORY_N; i++) /* a machine that has become slower */
        speed_history_add(&h, 50 + i);
    assert_true(speed_history_best(&h) == 57);
    buf_init(&b, 4096);
    speed_history_write(&h, &b);
    assert_string_equal(buf_str(&b), " 50 51 52 53 54 55 56 57");
    speed_history_read(&again, buf_str(&b));
    assert_true(speed_history_best(&again) == 57 &&
                speed_history_spread(&again) == speed_history_spread(&h));
    buf_fini(&b);
    again = (struct speed_history){.n = 0};
    speed_history_read(&again, " 7 -3 nan 1e999 x 9");
    assert_int_equal(again.n, 1);
}

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (char *p = path + strlen(dir) + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0755);
            *p = '/';
        }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_gpus(void **state)
{
    struct node_gpu g;
    char root[128];
    (void)state;
    snprintf(root, sizeof(root), "%s/none", dir);
    node_gpu_read_below(&g, root);
    assert_int_equal(g.n, 0);
    assert_string_equal(g.name, "");
    put("amd/sys/class/drm/card0/device/mem_info_vram_total", "17163091968\n");
    put("amd/sys/class/drm/card0/device/product_name", "Radeon RX 7600 XT\n");
    put("amd/sys/class/drm/card1/device/mem_info_vram_total", "536870912\n");
    snprintf(root, sizeof(root), "%s/amd", dir);
    node_gpu_read_below(&g, root);
    assert_int_equal(g.n, 2);
    assert_string_equal(g.name, "Radeon RX 7600 XT");
    assert_int_equal(g.memory_bytes, 17163091968u + 536870912u);
    put("nv/proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA RTX A2000\nIRQ:   \t\t 145\n");
    snprintf(root, sizeof(root), "%s/nv", dir);
    node_gpu_read_below(&g, root);
    assert_int_equal(g.n, 1);
    assert_string_equal(g.name, "NVIDIA RTX A2000");
    assert_int_equal(g.memory_bytes, 0);
}

static int setup(void **state)
{
    (void)state;
    setenv("SHOAL_MODELS", "/nowhere", 1); /* no probe here: a test with real nodes covers it */
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    model_store_delete_tree(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_when_idle_and_kept),
        cmocka_unit_test(test_measured_again),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_gpus),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
