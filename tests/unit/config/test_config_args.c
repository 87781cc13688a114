/* test_config_args.c - models and adapters of the command line, members of a shoal, the folders
 * that models may come from, and what the configuration says of a key. */
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

#include "base/mem.h"
#include "cluster/trust/roles.h"
#include "config/config.h"
#include "config/config_describe.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

static struct config *make(void)
{
    struct config *c;
    struct err e = {0};
    assert_int_equal(config_create(&c, &e), 0);
    return c;
}

static void test_models(void **state)
{
    static char long_name[200];
    static const struct {
        const char *arg, *name, *path; /* name NULL: refused */
    } rows[] = {
        {"a=/x/m.gguf", "a", "/x/m.gguf"},
        {"/x/m.gguf", "m", "/x/m.gguf"},
        {"m.gguf", "m", "m.gguf"},
        {"folder", "folder", "folder"},
        {"/x/a=b.gguf", "a=b", "/x/a=b.gguf"},
        {"n=rel/a=b", "n", "rel/a=b"},
        {"/x/v1.5.gguf", "v1.5", "/x/v1.5.gguf"},
        {"=x", NULL, NULL},
        {"/x/", NULL, NULL},
        {"/x/.gguf", NULL, NULL},
        {"", NULL, NULL},
        {"a=", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct config *c = make();
        struct err e = {0};
        const int rc = config_add_model_arg(c, rows[i].arg, &e);
        if ((rc == 0) != (rows[i].name != NULL))
            fail_msg("%s: %d %s", rows[i].arg, rc, e.msg);
        assert_int_equal(c->n_models, rows[i].name ? 1 : 0);
        if (rows[i].name) {
            assert_string_equal(c->models[0].name, rows[i].name);
            assert_string_equal(c->models[0].path, rows[i].path);
            assert_true(c->models[0].pinned);
            assert_int_equal(config_add_model_arg(c, rows[i].arg, &e), SHOAL_EINVAL); /* twice */
        } else {
            assert_int_equal(rc, SHOAL_EINVAL);
        }
        config_unref(c);
    }
    struct config *c = make();
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[128] = '=';
    assert_int_equal(config_add_model_arg(c, long_name, NULL), SHOAL_EINVAL);
    long_name[127] = '=';
    assert_int_equal(config_add_model_arg(c, long_name, NULL), 0);
    config_unref(c);
}

static void test_adapters(void **state)
{
    static char long_arg[300];
    static const struct {
        const char *arg, *name, *base, *path, *error; /* name NULL: refused */
    } rows[] = {
        {"one=/l", "first:one", "first", "/l", NULL},
        {"second:one=/l", "second:one", "second", "/l", NULL},
        {"one=/l=m", "first:one", "first", "/l=m", NULL},
        {"one", NULL, NULL, NULL, "expected NAME=PATH"},
        {"one=", NULL, NULL, NULL, "expected NAME=PATH"},
        {"=/l", NULL, NULL, NULL, "expected NAME=PATH"},
        {"third:one=/l", NULL, NULL, NULL, "which is not configured here"},
        {"first:=/l", NULL, NULL, NULL, "cannot name an adapter"},
        {"a/b=/l", NULL, NULL, NULL, "cannot name an adapter"},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct config *c = make();
        struct err e = {0};
        assert_int_equal(config_add_adapter_arg(c, "one=/l", &e), SHOAL_EINVAL);
        assert_non_null(strstr(e.msg, "no model is named"));
        assert_int_equal(config_add_model_arg(c, "first=/m", &e), 0);
        assert_int_equal(config_add_model_arg(c, "second=/m", &e), 0);
        const int rc = config_add_adapter_arg(c, rows[i].arg, &e);
        if (rows[i].name) {
            const struct registry_spec *s = &c->models[2];
            assert_int_equal(rc, 0);
            assert_int_equal(c->n_models, 3);
            assert_string_equal(s->name, rows[i].name);
            assert_string_equal(s->base, rows[i].base);
            assert_string_equal(s->path, rows[i].path);
            assert_string_equal(s->task, "generate");
            assert_true(s->adapter_scale == 1.0 && s->pinned);
        } else {
            assert_int_equal(rc, SHOAL_EINVAL);
            assert_int_equal(c->n_models, 2);
            if (!strstr(e.msg, rows[i].error))
                fail_msg("%s: %s", rows[i].arg, e.msg);
        }
        config_unref(c);
    }
    struct config *c = make();
    struct err e = {0};
    assert_int_equal(config_add_model_arg(c, "m=/m", &e), 0);
    memset(long_arg, 'x', sizeof(long_arg) - 1);
    memcpy(long_arg + 126, "=/l", 4); /* with its base and the colon 128 bytes */
    assert_int_equal(config_add_adapter_arg(c, long_arg, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "too long"));
    memcpy(long_arg + 125, "=/l", 4);
    assert_int_equal(config_add_adapter_arg(c, long_arg, &e), 0);
    config_unref(c);
}

/* Tokens of a shoal cross no network in the clear; times that make no sense are refused. */
static void test_members(void **state)
{
    static const struct {
        const char *text, *error; /* NULL: accepted */
    } rows[] = {
        {"cluster: {listen: ['unix:/a'], nodes: ['unix:/b']}", NULL},
        {"cluster: {listen: ['0.0.0.0:1']}", "cannot listen on 0.0.0.0:1"},
        {"cluster: {listen: ['unix:/a', '0.0.0.0:1']}", "cannot listen on 0.0.0.0:1"},
        {"cluster: {nodes: ['h:1']}", "cannot use node h:1"},
        {"cluster: {listen: ['0.0.0.0:1'], nodes: ['h:1'], insecure: true}", NULL},
        {"cluster: {heartbeat: 20ms, silent: 40ms}", NULL},
        {"cluster: {heartbeat: 20ms, silent: 39ms}", "silent at least twice as long"},
        {"cluster: {lease: 500ms}", NULL},
        {"cluster: {lease: 499ms}", "lease must be from"},
        {"cluster: {lease: 5m}", NULL},
        {"cluster: {lease: 300001ms}", "lease must be from"},
        {"cluster: {certs: /nosuch}", "/nosuch"},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct config *c = make();
        struct err e = {0};
        int rc = config_parse(c, rows[i].text, strlen(rows[i].text), "f", &e);
        if (rc == 0)
            rc = config_check_cluster(c, ROLE_GATEWAY, &e);
        if ((rc == 0) != !rows[i].error || (rows[i].error && !strstr(e.msg, rows[i].error)))
            fail_msg("%s: %d %s", rows[i].text, rc, e.msg);
        config_unref(c);
    }
}

static void test_who_may_change_a_shoal(void **state)
{
    static const struct {
        const char *text;
        bool certs;
        unsigned roles;
        bool change, control;
    } rows[] = {
        {"threads: 1", false, 0, true, false},
        {"cluster: {nats: ['nats://h:1']}", false, 0, true, true},
        {"cluster: {nats: ['nats://h:1'], controller: 'never'}", false, 0, true, false},
        {"cluster: {nats: ['nats://h:1']}", true, ROLE_GATEWAY, false, false},
        {"cluster: {nats: ['nats://h:1']}", true, ROLE_NODE, false, false},
        {"cluster: {nats: ['nats://h:1']}", true, ROLE_ADMIN, true, false},
        {"cluster: {nats: ['nats://h:1']}", true, ROLE_CONTROLLER, true, true},
        {"cluster: {nats: ['nats://h:1'], controller: 'never'}", true, ROLE_CONTROLLER, true,
         false},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct config *c = make();
        struct err e = {0};
        if (config_parse(c, rows[i].text, strlen(rows[i].text), "f", &e) < 0)
            fail_msg("%s", e.msg);
        c->cluster.certs = rows[i].certs ? mem_strdup("x") : NULL;
        c->cluster.roles = rows[i].roles;
        if (config_may_change(c) != rows[i].change || config_may_control(c) != rows[i].control)
            fail_msg("row %zu", i);
        config_unref(c);
    }
}

/* Models are added at run time from named folders only, whatever links and dots say. */
static void test_folders_of_models(void **state)
{
    char dir[64] = "/tmp/test_config_args.XXXXXX", text[512], path[256], *found;
    static const struct {
        const char *path; /* below the folder */
        bool ok;
    } rows[] = {{"in/m.gguf", true},   {"in/deep/n.gguf", true},  {"in/../out/o.gguf", false},
                {"out/o.gguf", false}, {"in/link/o.gguf", false}, {"in/nosuch", true},
                {"in2/m.gguf", false}, {"in/../in/m.gguf", true}, {"in", false},
                {"in/dead", false},    {"in/nosuch/..", false},   {"nosuch/x", false},
                {"in/nosuch/x", false}};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(text, sizeof(text),
             "cd %s && mkdir -p in/deep in2 out && touch in/m.gguf in/deep/n.gguf in2/m.gguf "
             "out/o.gguf && ln -s ../out in/link && ln -s ../out/nosuch in/dead",
             dir);
    assert_int_equal(system(text), 0);
    for (int by_model = 0; by_model < 2; by_model++) {
        struct config *c = make();
        struct err e = {0};
        snprintf(text, sizeof(text),
                 by_model ? "models: [{name: m, path: %s/in/m.gguf}]" : "model_dirs: [%s/in]", dir);
        if (config_parse(c, text, strlen(text), "f", &e) < 0)
            fail_msg("%s", e.msg);
        for (size_t i = 0; i < N(rows); i++) {
            snprintf(path, sizeof(path), "%s/%s", dir, rows[i].path);
            const int rc = config_confine(c, path, &found, &e);
            if (rc != (rows[i].ok ? 0 : SHOAL_EINVAL) || !found != !rows[i].ok)
                fail_msg("%s: %d", path, rc);
            mem_free(found);
        }
        config_unref(c);
    }
    struct config *c = make();
    snprintf(path, sizeof(path), "%s/in/m.gguf", dir);
    assert_int_equal(config_confine(c, path, &found, NULL), SHOAL_EINVAL); /* none is named */
    assert_null(found);
    config_unref(c);
    snprintf(text, sizeof(text), "rm -rf %s", dir);
    assert_int_equal(system(text), 0);
}

/* Requests are searched for personal data if anything in the file asks for it. */
static void test_who_is_private(void **state)
{
    static const struct {
        const char *text;
        bool want;
    } rows[] = {
        {"threads: 1", false},
        {"privacy: {action: none}", false},
        {"privacy: {action: mask}", true},
        {"routes: [{name: r}]", false},
        {"routes: [{name: r, privacy: {action: none}}]", false},
        {"routes: [{name: q}, {name: r, privacy: {action: mask}}]", true},
        {"routes: [{name: r, privacy: {action: mask}}, {name: q}]", true},
        {"privacy: {action: mask}\nroutes: [{name: r, privacy: {action: none}}]", true},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct config *c = make();
        struct err e = {0};
        if (config_parse(c, rows[i].text, strlen(rows[i].text), "f", &e) < 0)
            fail_msg("%s", e.msg);
        if (c->router.private != rows[i].want)
            fail_msg("%s", rows[i].text);
        config_unref(c);
    }
}

static const struct config_key *key_of(const char *path)
{
    for (size_t i = 0; i < config_n_keys; i++)
        if (strcmp(config_keys[i].path, path) == 0)
            return &config_keys[i];
    fail_msg("there is no %s", path);
    return NULL;
}

static void test_keys_in_words(void **state)
{
    static const struct {
        const char *path, *want; /* in the text */
    } rows[] = {
        {"threads", "threads: whole number, 0 to 64\n"},
        {"admin", "admin: choice of off, loopback\n"},
        {"models", "  Keys:\n    name"},
        {"models[].name", "  Every entry needs it.\n"},
        {"models[].kv", "  Default: f16.\n  A change takes effect after a restart.\n"},
        {"routes[].name", "  A change takes effect when the file is read again.\n"},
    };
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < N(rows); i++) {
        buf_clear(&b);
        config_describe_key(&b, key_of(rows[i].path));
        if (!strstr(buf_str(&b), rows[i].want))
            fail_msg("%s", buf_str(&b));
        const bool has_keys = strcmp(rows[i].path, "models") == 0;
        assert_int_equal(strstr(buf_str(&b), "  Keys:\n") != NULL, has_keys);
        assert_int_equal(strstr(buf_str(&b), "takes effect") != NULL, !has_keys);
    }
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_who_may_change_a_shoal),
        cmocka_unit_test(test_folders_of_models),
        cmocka_unit_test(test_who_is_private),
        cmocka_unit_test(test_keys_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
