/* test_bucket.c - what a NATS server's answer to a write means.  The code is that of bucket.c, with
 * the server in the test's hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <nats/nats.h>

static natsStatus publish(jsPubAck **ack, jsCtx *js, const char *subject, const void *bytes, int n,
                          jsPubOptions *o, jsErrCode *code);
static natsStatus no_context(jsCtx **js, natsConnection *c, jsOptions *o);
#define js_Publish publish
#define natsConnection_JetStream no_context
#include "cluster/control/bucket.c" /* NOLINT: the code under test, with the names above */

static struct {
    natsStatus status;
    jsErrCode code;
    uint64_t sequence;
    bool duplicate;
    char id[16];
    uint64_t expected;
    bool expects_none;
} w;

static natsStatus publish(jsPubAck **ack, jsCtx *js, const char *subject, const void *bytes, int n,
                          jsPubOptions *o, jsErrCode *code)
{
    (void)js, (void)bytes, (void)n;
    assert_string_equal(subject, "$KV.shoal-home-desired.state");
    snprintf(w.id, sizeof(w.id), "%s", o->MsgId ? o->MsgId : "");
    w.expected = o->ExpectLastSubjectSeq;
    w.expects_none = o->ExpectNoMessage;
    *code = w.code;
    *ack = NULL;
    if (w.status != NATS_OK)
        return w.status;
    *ack = calloc(1, sizeof(**ack)); /* freed by the library */
    assert_non_null(*ack);
    (*ack)->Sequence = w.sequence;
    (*ack)->Duplicate = w.duplicate;
    return NATS_OK;
}

static natsStatus no_context(jsCtx **js, natsConnection *c, jsOptions *o)
{
    static char context;
    (void)c, (void)o;
    *js = (jsCtx *)(void *)&context;
    return NATS_OK;
}

/* bus.h */
uint32_t bus_generation(const struct bus *b)
{
    (void)b;
    return 1;
}

natsConnection *bus_connection(struct bus *b)
{
    (void)b;
    return NULL;
}

const char *bus_cluster(const struct bus *b)
{
    (void)b;
    return "home";
}

size_t bus_n_urls(const struct bus *b)
{
    (void)b;
    return 1;
}

void bus_reason(struct bus *b, char out[160], int status)
{
    (void)b;
    snprintf(out, 160, "status %d", status);
}

void bus_get_status(struct bus *b, struct bus_status *out)
{
    (void)b;
    *out = (struct bus_status){.link = BUS_UP};
}

static uint64_t revision;

static int put(uint64_t expected)
{
    struct bucket k = {.generation = 1, .name = "shoal-home-desired"};
    struct err e = {0};
    revision = 77;
    pthread_mutex_init(&k.lock, NULL);
    const int rc = bucket_put(&k, "state", "x", 1, expected, "id", &revision, &e);
    assert_string_equal(w.id, "id");
    assert_int_equal(w.expected, expected);
    assert_int_equal(w.expects_none, expected == 0);
    assert_int_equal(rc < 0, e.code != 0);
    return rc;
}

/* Also of a write that is repeated, after its first answer was lost. */
static void test_a_write_that_is_stored(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    w.sequence = 5;
    assert_int_equal(put(0), 0);
    assert_int_equal(revision, 5);
    w.duplicate = true;
    assert_int_equal(put(4), 0);
    assert_int_equal(revision, 5);
}

static void test_another_writer_was_first(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    w.status = NATS_ERR;
    w.code = JSStreamWrongLastSequenceErr;
    assert_int_equal(put(4), 1);
    w.code = (jsErrCode)WRONG_SEQUENCE;
    assert_int_equal(put(4), 1);
}

/* A server that has only seen the id says "duplicate", with no sequence or as an error: that is no
 * success, for it may have ceased to lead before it stored anything. */
static void test_a_write_that_was_only_seen(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    w.duplicate = true;
    assert_int_equal(put(4), SHOAL_EBUSY);
    assert_int_equal(revision, 77);
    w.status = NATS_ERR;
    w.code = (jsErrCode)DUPLICATE_CONFLICT;
    assert_int_equal(put(4), SHOAL_EBUSY);
    w.code = (jsErrCode)NOT_READY;
    assert_int_equal(put(4), SHOAL_EBUSY);
}

static void test_no_answer(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    w.status = NATS_TIMEOUT;
    assert_int_equal(put(4), SHOAL_EBUSY);
    w.status = NATS_ERR;
    w.code = JSBadRequestErr;
    assert_int_equal(put(4), SHOAL_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_write_that_is_stored),
                                       cmocka_unit_test(test_another_writer_was_first),
                                       cmocka_unit_test(test_a_write_that_was_only_seen),
                                       cmocka_unit_test(test_no_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
