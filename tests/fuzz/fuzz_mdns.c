/* fuzz_mdns.c - messages of multicast DNS, which anybody on the link can send.  What is read as an
 * answer is written and read again as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/mdns.h"
#include "support/fuzz_note.h"

#define TYPE "_shoal-join._tcp"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mdns_service s, again;
    struct err e;
    struct buf b;
    uint16_t id;
    int rc = mdns_read_question(data, size, TYPE, &id, &e);
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : "");
    rc = mdns_read_answer(&s, data, size, TYPE, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : s.txt);
    if (rc < 0)
        return 0;
    buf_init(&b, 4096);
    if (s.port == 0 || mdns_put_answer(&b, &s, 0) != 0 ||
        mdns_read_answer(&again, b.data, b.len, TYPE, &e) != 0 ||
        memcmp(&s, &again, sizeof(s)) != 0)
        abort();
    buf_fini(&b);
    return 0;
}
