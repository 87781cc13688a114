/* roll_code.c - see roll_code.h. */
#include "cluster/control/roll_code.h"

#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "shoal/control/v1/control.pb-c.h"
#include "wire/pb.h"

#define FORMAT 1u
#define MAX_BYTES (DESIRED_CODE_MAX_BYTES + 64u)

int roll_code_put_call(struct buf *out, uint64_t number, struct roll_call_mark have)
{
    Shoal__Control__V1__RollCall m = SHOAL__CONTROL__V1__ROLL_CALL__INIT;
    m.format = FORMAT;
    m.number = number;
    m.version = have.version;
    m.fence = have.writer;
    return pb_put(out, &m.base);
}

int roll_code_put_copy(struct buf *out, uint64_t number, const void *state, size_t n)
{
    Shoal__Control__V1__RollCall m = SHOAL__CONTROL__V1__ROLL_CALL__INIT;
    m.format = FORMAT;
    m.number = number;
    m.state = pb_bytes(state, n);
    return pb_put(out, &m.base);
}

int roll_code_parse(struct roll_code *out, const void *bytes, size_t n, struct err *e)
{
    Shoal__Control__V1__RollCall *m = NULL;
    int rc = 0;
    *out = (struct roll_code){.number = 0};
    if (n <= MAX_BYTES)
        m = shoal__control__v1__roll_call__unpack(pb_heap(), n, bytes);
    if (!m || m->format != FORMAT || m->number == 0 || desired_code_unknown(m))
        rc = err_set(e, SHOAL_EFORMAT, "the message is not a roll call");
    else if (m->state.len > 0)
        rc = desired_code_get(&out->state, m->state.data, m->state.len, e);
    if (rc == 0) {
        out->number = m->number;
        out->have = (struct roll_call_mark){m->version, m->fence};
    }
    if (m)
        shoal__control__v1__roll_call__free_unpacked(m, pb_heap());
    return rc;
}

void roll_code_free(struct roll_code *c)
{
    desired_destroy(c->state);
    c->state = NULL;
}
