/* test_sealed_file.c - encrypted files: they come back bit for bit, and nothing of them can be
 * changed without an error. */
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

#include "base/mem.h"
#include "format/sealed_file.h"

enum { PLAIN = 300, CHUNK = 64, CHUNKS = 5 }; /* the last one is shorter */
#define SEALED (SEALED_HEAD_BYTES + PLAIN + CHUNKS * SEALED_TAG_BYTES)

static char folder[64], plain[96], sealed[96], other[96], key[96], wrong[96], phrase[96];
static uint8_t bytes[PLAIN], good[SEALED + 64];

static void put(const char *path, const void *p, size_t n, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static size_t get(const char *path, uint8_t *p, size_t cap)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, p, cap);
    if (fd >= 0)
        close(fd);
    return n < 0 ? 0 : (size_t)n;
}

static const struct sealed_opts by_key = {.wrap = SEALED_KEY_FILE, .key_file = key, .log_chunk = 6};

static int set_up(void **state)
{
    struct err e = {0};
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/shoal-sealed-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(plain, sizeof(plain), "%s/plain", folder);
    snprintf(sealed, sizeof(sealed), "%s/sealed", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    snprintf(key, sizeof(key), "%s/key", folder);
    snprintf(wrong, sizeof(wrong), "%s/wrong", folder);
    snprintf(phrase, sizeof(phrase), "%s/phrase", folder);
    for (size_t i = 0; i < PLAIN; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 64);
    put(plain, bytes, PLAIN, 0600);
    put(key, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", 65, 0600);
    put(wrong, "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", 65, 0600);
    put(phrase, "correct horse battery\n", 22, 0400);
    int rc = sealed_encrypt(plain, sealed, &by_key, &e);
    return rc == 0 && get(sealed, good, sizeof(good)) == SEALED ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    const char *all[] = {plain, sealed, other, key, wrong, phrase};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        unlink(all[i]);
    return rmdir(folder); /* fails if something else was left behind */
}

static void assert_opens(const char *path, const char *with)
{
    struct file_map m;
    struct err e = {0};
    if (sealed_open(&m, path, with, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(m.n_bytes, PLAIN);
    assert_memory_equal(m.bytes, bytes, PLAIN);
    assert_true(m.is_secret);
    assert_false(file_map_changed(&m));
    file_map_trim(&m, PLAIN); /* must not lose them */
    assert_memory_equal(m.bytes, bytes, PLAIN);
    file_map_close(&m);
}

static void assert_refused(const uint8_t *p, size_t n, const char *what, size_t at)
{
    struct file_map m;
    struct err e = {0};
    put(other, p, n, 0600);
    if (sealed_open(&m, other, key, &e) == 0)
        fail_msg("%s at byte %zu was not noticed", what, at);
    assert_null(m.bytes);
    assert_true(strstr(e.msg, other) == e.msg && strlen(e.msg) > strlen(other) + 10);
    unlink(other);
    assert_true(sealed_decrypt(sealed, other, wrong, &e) < 0);
    assert_int_equal(access(other, F_OK), -1); /* no half of a file */
}

static void test_comes_back(void **state)
{
    (void)state;
    struct err e = {0};
    uint8_t back[PLAIN + 1];
    struct stat st;
    assert_opens(sealed, key);
    assert_int_equal(sealed_decrypt(sealed, other, key, &e), 0);
    assert_int_equal(get(other, back, sizeof(back)), PLAIN);
    assert_memory_equal(back, bytes, PLAIN);
    assert_int_equal(stat(other, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    /* nothing of the plain file is in it, and the same file never looks the same */
    for (size_t i = 0; i + 8 <= PLAIN; i++)
        assert_null(memmem(good, SEALED, bytes + i, 8));
    uint8_t again[SEALED];
    assert_int_equal(sealed_encrypt(plain, other, &by_key, &e), 0);
    assert_int_equal(get(other, again, sizeof(again)), SEALED);
    for (size_t i = 0; i < CHUNKS; i++) {
        const size_t at = SEALED_HEAD_BYTES + i * (CHUNK + SEALED_TAG_BYTES);
        assert_memory_not_equal(good + at, again + at, 16);
    }
    assert_opens(other, key);
}

/* Every bit of every byte would take long: one changed bit per byte, another in each. */
static void test_every_byte_counts(void **state)
{
    (void)state;
    uint8_t bad[SEALED];
    for (size_t i = 0; i < SEALED; i++) {
        memcpy(bad, good, SEALED);
        bad[i] ^= (uint8_t)(1u << i % 8);
        struct file_map m;
        struct err e = {0};
        put(other, bad, SEALED, 0600);
        if (sealed_open(&m, other, key, &e) == 0)
            fail_msg("byte %zu was changed, and nobody noticed", i);
        assert_true(e.msg[0]);
        assert_null(m.bytes);
    }
}

static void test_cut_and_grown(void **state)
{
    (void)state;
    uint8_t longer[SEALED + 20] = {0};
    for (size_t n = 1; n < SEALED; n++)
        assert_refused(good, n, "the end", n);
    memcpy(longer, good, SEALED);
    for (size_t n = SEALED + 1; n <= sizeof(longer); n++)
        assert_refused(longer, n, "more", n);
}

static void test_chunks_moved(void **state)
{
    (void)state;
    enum { STEP = CHUNK + SEALED_TAG_BYTES };
    uint8_t bad[SEALED], mixed[SEALED];
    struct err e = {0};
    for (size_t a = 0; a < CHUNKS - 1; a++)
        for (size_t b = 0; b < CHUNKS - 1; b++) {
            if (a == b)
                continue;
            memcpy(bad, good, SEALED); /* b twice, and a lost */
            memcpy(bad + SEALED_HEAD_BYTES + a * STEP, good + SEALED_HEAD_BYTES + b * STEP, STEP);
            assert_refused(bad, SEALED, "a chunk repeated", a);
            memcpy(bad + SEALED_HEAD_BYTES + b * STEP, good + SEALED_HEAD_BYTES + a * STEP, STEP);
            assert_refused(bad, SEALED, "chunks exchanged", a);
        }
    /* a chunk, or the header, of another file with the same key */
    assert_int_equal(sealed_encrypt(plain, other, &by_key, &e), 0);
    assert_int_equal(get(other, mixed, sizeof(mixed)), SEALED);
    memcpy(bad, good, SEALED);
    memcpy(bad + SEALED_HEAD_BYTES, mixed + SEALED_HEAD_BYTES, STEP);
    assert_refused(bad, SEALED, "a foreign chunk", 0);
    memcpy(bad, good, SEALED);
    memcpy(bad, mixed, SEALED_HEAD_BYTES);
    assert_refused(bad, SEALED, "a foreign header", 0);
    /* the last chunk lost, and the length in the header made to fit */
    memcpy(bad, good, SEALED);
    const uint64_t n = 4 * CHUNK;
    memcpy(bad + 16, &n, sizeof(n));
    assert_refused(bad, SEALED_HEAD_BYTES + 4 * STEP, "a lost chunk", 0);
}

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        mode_t mode;
        const char *why;
    } bad[] = {
        {"", 0, 0600, "empty"},
        {"short\n", 6, 0600, "is not a key"},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddeefg\n", 65, 0600,
         "is not a key"},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", 65, 0640,
         "chmod 600"},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddeefe\n", 65, 0600,
         "encrypted with another key"},
    };
    struct file_map m;
    struct err e = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(other, bad[i].text, bad[i].n, bad[i].mode);
        assert_int_equal(sealed_open(&m, sealed, other, &e), SHOAL_EINVAL);
        if (!strstr(e.msg, bad[i].why))
            fail_msg("%s", e.msg);
    }
    assert_int_equal(sealed_open(&m, sealed, "/nowhere/key", &e), SHOAL_EIO);
    /* 32 bytes are the same key as their digits */
    uint8_t raw[32];
    for (size_t i = 0; i < 32; i++)
        raw[i] = (uint8_t)(i % 16 * 17);
    put(other, raw, sizeof(raw), 0600);
    assert_opens(sealed, other);
}

static void test_passphrase(void **state)
{
    (void)state;
    const struct sealed_opts o = {
        .wrap = SEALED_PASSPHRASE, .key_file = phrase, .log_n = 10, .log_chunk = 6};
    struct file_map m;
    struct err e = {0};
    assert_int_equal(sealed_encrypt(plain, other, &o, &e), 0);
    assert_opens(other, phrase);
    assert_int_equal(sealed_open(&m, other, key, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "another passphrase"));
    /* less work for who guesses: noticed, since the header is covered */
    uint8_t bad[SEALED];
    assert_int_equal(get(other, bad, sizeof(bad)), SEALED);
    bad[10] = 11;
    put(other, bad, SEALED, 0600);
    assert_int_equal(sealed_open(&m, other, phrase, &e), SHOAL_EINVAL);
    /* more memory than there is */
    bad[10] = 63;
    put(other, bad, SEALED, 0600);
    assert_int_equal(sealed_open(&m, other, phrase, &e), SHOAL_EFORMAT);
}

static void test_what_is_not_encrypted(void **state)
{
    (void)state;
    struct file_map m;
    struct err e = {0};
    assert_int_equal(sealed_check(plain, &e), 0);
    assert_int_equal(sealed_check("/nowhere", &e), 0);
    assert_int_equal(sealed_check(sealed, &e), 1);
    put(other, good, 60, 0600);
    assert_int_equal(sealed_check(other, &e), SHOAL_EFORMAT);
    assert_int_equal(sealed_open(&m, plain, key, &e), SHOAL_EFORMAT);
    assert_int_equal(sealed_encrypt(sealed, other, &by_key, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "encrypted already"));
    assert_int_equal(sealed_encrypt("/nowhere", other, &by_key, &e), SHOAL_EIO);
    assert_int_equal(sealed_encrypt(plain, "/nowhere/x", &by_key, &e), SHOAL_EIO);
}

/* Parts are decrypted when they are asked for, and only then found to be changed. */
static void test_parts(void **state)
{
    (void)state;
    struct file_map m;
    struct err e = {0};
    uint8_t bad[SEALED];
    memcpy(bad, good, SEALED);
    bad[SEALED_HEAD_BYTES + 3 * (CHUNK + SEALED_TAG_BYTES)] ^= 1;
    put(other, bad, SEALED, 0600);
    assert_int_equal(sealed_open_parts(&m, other, key, &e), 0);
    assert_int_equal(file_map_need(&m, 70, 20, &e), 0); /* of the second chunk */
    assert_memory_equal(m.bytes + CHUNK, bytes + CHUNK, CHUNK);
    assert_int_equal(m.bytes[0] | m.bytes[1] | m.bytes[2], 0);
    assert_int_equal(file_map_need(&m, 0, 3 * CHUNK, &e), 0);
    assert_memory_equal(m.bytes, bytes, 3 * CHUNK);
    assert_int_equal(file_map_need(&m, 4 * CHUNK, PLAIN - 4 * CHUNK, &e), 0);
    assert_memory_equal(m.bytes + 4 * CHUNK, bytes + 4 * CHUNK, PLAIN - 4 * CHUNK);
    assert_int_equal(file_map_need(&m, 0, 0, &e), 0);
    assert_int_equal(file_map_need(&m, 0, PLAIN, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "bytes 192 to 256"));
    assert_false(file_map_changed(&m));
    file_map_close(&m);
}

/* What is made of an encrypted file is kept with a key of that file. */
static void test_made_of_it(void **state)
{
    (void)state;
    struct file_map m, same, renamed;
    struct err e = {0};
    uint8_t made[PLAIN], back[PLAIN], kept[2 * SEALED];
    for (size_t i = 0; i < PLAIN; i++)
        made[i] = (uint8_t)(255 - bytes[i]);
    assert_int_equal(sealed_encrypt(plain, sealed, &by_key, &e), 0);
    assert_int_equal(sealed_open(&m, sealed, key, &e), 0);
    assert_int_equal(sealed_open(&same, sealed, key, &e), 0);
    assert_memory_equal(&m.secret, &same.secret, sizeof(m.secret));
    assert_int_equal(sealed_put(other, m.secret.key, made, PLAIN, &e), 0);
    assert_int_equal(sealed_get(other, m.secret.key, back, PLAIN, &e), 0);
    assert_memory_equal(back, made, PLAIN);
    const size_t n = get(other, kept, sizeof(kept));
    for (size_t i = 0; i + 8 <= PLAIN; i++)
        assert_null(memmem(kept, n, made + i, 8));
    assert_int_equal(sealed_get(other, m.secret.key, back, PLAIN - 1, &e), SHOAL_EFORMAT);
    for (size_t i = SEALED_HEAD_BYTES; i < n; i++) {
        kept[i] ^= 1;
        put(other, kept, n, 0600);
        assert_int_equal(sealed_get(other, m.secret.key, back, PLAIN, &e), SHOAL_EFORMAT);
        kept[i] ^= 1;
    }
    put(other, kept, n, 0600);
    /* the same content that was encrypted anew has another key */
    assert_int_equal(sealed_encrypt(plain, sealed, &by_key, &e), 0);
    assert_int_equal(sealed_open(&renamed, sealed, key, &e), 0);
    assert_true(renamed.secret.source != m.secret.source);
    assert_int_equal(sealed_get(other, renamed.secret.key, back, PLAIN, &e), SHOAL_EINVAL);
    file_map_close(&m);
    file_map_close(&same);
    file_map_close(&renamed);
    assert_int_equal(get(sealed, good, sizeof(good)), SEALED); /* for other tests */
}

/* Memory that is lacking is an error that says so, or another thread does the work. */
static void test_memory_fails(void **state)
{
    (void)state;
    struct file_map m;
    for (uint64_t n = 1; n <= 12; n++) {
        struct err e = {0};
        mem_fail_at(n);
        int rc = sealed_open(&m, sealed, key, &e);
        mem_fail_at(0);
        assert_true(rc == SHOAL_ENOMEM || (rc == 0 && n > 1));
        if (rc == 0)
            assert_memory_equal(m.bytes, bytes, PLAIN);
        file_map_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_cut_and_grown),
        cmocka_unit_test(test_chunks_moved),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_passphrase),
        cmocka_unit_test(test_what_is_not_encrypted),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_made_of_it),
        cmocka_unit_test(test_memory_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
