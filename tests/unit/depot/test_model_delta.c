/* test_model_delta.c - patches of models: bit for bit what they were made of, small where little
 * changed, and nothing at all if they were damaged or are for another file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "depot/delta/model_delta.h"
#include "format/gguf_write.h"
#include "kernels/quants/quant.h"

enum { ROW = 256, ROWS = 40, VALUES = ROW * ROWS, MOST = 1 << 20 };
static char folder[64], was[96], is[96], patch[96], out[96];
static uint8_t a[MOST], b[MOST];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/shoal-delta-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(was, sizeof(was), "%s/was", folder);
    snprintf(is, sizeof(is), "%s/is", folder);
    snprintf(patch, sizeof(patch), "%s/patch", folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    const char *all[] = {was, is, patch, out};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        unlink(all[i]);
    return rmdir(folder); /* fails if something else was left behind */
}

static void put(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    close(fd);
}

static size_t get(const char *path, uint8_t *p)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, p, MOST);
    if (fd >= 0)
        close(fd);
    return n < 0 ? 0 : (size_t)n;
}

/* Two matrices and a text; `shift` moves the values of the second a little. */
static void make(const char *path, enum quant_type type, float shift, const char *text)
{
    static float values[VALUES];
    static uint8_t bytes[VALUES * sizeof(float)];
    const uint64_t dims[] = {ROW, ROWS};
    const struct quant_info *info = quant_info(type);
    struct gguf_write *w;
    struct err e = {0};
    assert_int_equal(gguf_write_create(&w, path, &e), 0);
    gguf_write_str(w, "general.architecture", "none", 4);
    gguf_write_str(w, "text", text, strlen(text));
    gguf_write_tensor(w, "one", 3, type, 2, dims);
    gguf_write_tensor(w, "two", 3, type, 2, dims);
    assert_int_equal(gguf_write_begin(w, &e), 0);
    for (uint64_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < VALUES; i++)
            values[i] = (float)(hash_mix(i + k * VALUES) % 4001) / 2000.0f - 1.0f +
                        (k ? shift * (float)(hash_mix(i * 3) % 7) : 0);
        assert_true(quant_from_f32(type, values, bytes, VALUES, NULL));
        assert_int_equal(gguf_write_data(w, bytes, VALUES / info->block * info->block_bytes, &e),
                         0);
    }
    assert_int_equal(gguf_write_finish(w, &e), 0);
    gguf_write_destroy(w);
}

/* There and back; the patch's bytes. */
static size_t assert_patch(struct model_delta *d)
{
    struct err e = {0};
    struct model_delta made;
    if (model_delta_make(was, is, patch, &made, &e) < 0 ||
        model_delta_apply(was, patch, out, d, &e) < 0)
        fail_msg("%s", e.msg);
    const size_t n = get(is, a);
    assert_int_equal(get(out, b), n);
    assert_memory_equal(a, b, n);
    assert_memory_equal(&made, d, sizeof(made));
    assert_int_equal(made.copied + made.differed + made.packed, n);
    struct stat st;
    assert_int_equal(stat(patch, &st), 0);
    assert_int_equal(st.st_size, made.patch_bytes);
    return made.patch_bytes;
}

static void test_same(void **state)
{
    (void)state;
    struct model_delta d;
    make(was, QUANT_Q8_0, 0, "abc");
    make(is, QUANT_Q8_0, 0, "abc");
    assert_int_equal(assert_patch(&d), DELTA_HEAD_BYTES + DELTA_RECORD_BYTES);
}

static void test_metadata(void **state)
{
    (void)state;
    struct model_delta d;
    make(was, QUANT_Q8_0, 0, "abc");
    make(is, QUANT_Q8_0, 0, "another text, so long that every tensor of the file moves away");
    assert_true(assert_patch(&d) < 500);
    assert_true(d.copied > 2 * VALUES);
}

static void test_values(void **state)
{
    (void)state;
    static const enum quant_type types[] = {QUANT_F32,  QUANT_F16,  QUANT_BF16, QUANT_Q8_0,
                                            QUANT_Q4_0, QUANT_Q4_K, QUANT_Q6_K};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct model_delta d;
        make(was, types[i], 0, "abc");
        make(is, types[i], 1e-4f, "abc");
        const size_t n = assert_patch(&d);
        assert_true(n < d.new_bytes / 2); /* half is the matrix that did not change */
        assert_true(d.copied >= d.new_bytes / 2 - 4096 && d.differed > 0);
    }
}

static void test_types(void **state)
{
    (void)state;
    struct model_delta d;
    make(was, QUANT_F16, 0, "abc");
    make(is, QUANT_Q8_0, 0, "abc");
    assert_true(assert_patch(&d) < d.new_bytes / 4); /* made of the old values */
    make(is, QUANT_IQ4_NL, 0, "abc");
    assert_true(assert_patch(&d) < d.new_bytes / 2);
    make(was, QUANT_Q4_0, 0, "abc");
    make(is, QUANT_F32, 0, "abc"); /* more than there was */
    assert_true(assert_patch(&d) > 0);
}

static void test_any_files(void **state)
{
    (void)state;
    struct model_delta d;
    for (size_t i = 0; i < 100000; i++)
        a[i] = (uint8_t)hash_mix(i);
    put(was, a, 100000);
    a[5000] ^= 1;
    memmove(a + 60010, a + 60000, 40000);
    put(is, a, 100010);
    assert_true(assert_patch(&d) < 2000);
    put(is, a, 1);
    assert_true(assert_patch(&d) < 300);
    make(is, QUANT_Q8_0, 0, "abc"); /* of one kind, and of the other */
    assert_true(assert_patch(&d) > 0);
    struct err e = {0};
    assert_int_equal(model_delta_make("/nowhere", is, patch, &d, &e), SHOAL_EIO);
    assert_int_equal(model_delta_make(was, is, "/nowhere/x", &d, &e), SHOAL_EIO);
}

static void assert_refused(int want, const char *why)
{
    struct err e = {0};
    struct model_delta d;
    unlink(out);
    const int rc = model_delta_apply(was, patch, out, &d, &e);
    if (rc == 0 || (want && rc != want) || !strstr(e.msg, why))
        fail_msg("%d: %s", rc, e.msg);
    assert_int_equal(access(out, F_OK), -1);
}

static void test_damaged(void **state)
{
    (void)state;
    struct model_delta d;
    static uint8_t good[MOST];
    make(was, QUANT_Q4_0, 0, "abc");
    make(is, QUANT_Q4_0, 1e-4f, "abcdefgh");
    const size_t n = assert_patch(&d);
    assert_int_equal(get(patch, good), n);
    /* every byte of the header and the records' heads, and many others: refused, or without a
     * meaning for these files */
    const size_t n_is = get(is, a);
    size_t accepted = 0, tried = 0;
    for (size_t i = 0; i < n; i += i < 400 ? 1 : 1 + n / 300, tried++) {
        struct err e = {0};
        unlink(out);
        good[i] ^= (uint8_t)(1u << i % 8);
        put(patch, good, n);
        if (model_delta_apply(was, patch, out, &d, &e) == 0) {
            accepted++;
            assert_int_equal(get(out, b), n_is);
            assert_memory_equal(a, b, n_is);
        } else {
            assert_true(strstr(e.msg, patch) == e.msg && strlen(e.msg) > strlen(patch) + 10);
            assert_int_equal(access(out, F_OK), -1);
        }
        good[i] ^= (uint8_t)(1u << i % 8);
    }
    assert_true(tried > 500 && accepted < tried / 10);
    for (size_t i = 0; i < n; i += 1 + n / 50) {
        put(patch, good, i);
        assert_refused(0, patch);
    }
    good[n] = 0;
    put(patch, good, n + 1);
    assert_refused(SHOAL_EFORMAT, "goes on after its end");
    put(patch, good, n);
    make(was, QUANT_Q4_0, 1e-3f, "abc");
    assert_refused(SHOAL_EINVAL, "for another file");
    put(patch, "no patch", 8);
    assert_refused(SHOAL_EFORMAT, "not a patch");
}

static void test_memory_fails(void **state)
{
    (void)state;
    struct model_delta d;
    make(was, QUANT_Q4_0, 0, "abc");
    make(is, QUANT_Q8_0, 1e-4f, "abcdefgh");
    for (uint64_t n = 1; n <= 40; n++) {
        struct err e = {0};
        mem_fail_at(n);
        int rc = model_delta_make(was, is, patch, &d, &e);
        mem_fail_at(0);
        if (rc < 0) {
            assert_true(e.msg[0]);
            continue;
        }
        mem_fail_at(n);
        rc = model_delta_apply(was, patch, out, &d, &e);
        mem_fail_at(0);
        assert_true(rc == 0 || e.msg[0]);
    }
    (void)assert_patch(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),         cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_types),
        cmocka_unit_test(test_any_files),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_memory_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
