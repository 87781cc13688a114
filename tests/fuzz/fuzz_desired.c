/* fuzz_desired.c - what other members wrote to NATS: the desired state, the lease, events, roll
 * calls.
 * What decodes as a state is checked and encodes to the same bytes again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/event_log.h"
#include "cluster/control/lease.h"
#include "cluster/control/roll_code.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_log_entry entry;
    struct lease_value lease;
    struct roll_code call;
    struct desired *d;
    struct buf again;
    struct err e;
    void *memory;
    int rc = lease_parse(&lease, data, size, &e);
    if (rc == 0 && lease.ttl_ms == 0)
        abort();
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : "");
    rc = event_log_parse(&entry, &memory, data, size, &e);
    if (rc == 0 && strlen(entry.text) > EVENT_LOG_MAX_TEXT)
        abort();
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : entry.text);
    event_log_free(memory);
    rc = roll_code_parse(&call, data, size, &e);
    if (rc == 0 && call.number == 0)
        abort();
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : call.state ? "copy" : "call");
    roll_code_free(&call);
    rc = desired_code_get(&d, data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc < 0)
        return 0;
    buf_init(&again, size + 1);
    if (desired_code_put(&again, d, &e) < 0 || again.len != size ||
        memcmp(again.data, data, size) != 0)
        abort();
    buf_fini(&again);
    desired_destroy(d);
    return 0;
}
