/* wyoming_door.h - Wyoming connections: Home Assistant's speech services over TCP (docs/VOICE.md).
 *
 * Sound becomes a transcript (asr), a transcript is carried out and answered (handle), or only read
 * (intent).  The protocol has neither keys nor encryption: whoever reaches the address may use it,
 * as a client without a key would.
 *
 * Thread:    the first loop's; opened before the loop runs, closed after it has ended.
 * Ownership: open gives, close takes back.
 * Failure:   of open: as listen_open. */
#ifndef SHOAL_GATEWAY_WYOMING_WYOMING_DOOR_H
#define SHOAL_GATEWAY_WYOMING_WYOMING_DOOR_H

#include "base/err.h"

struct gw_loop;
struct wyoming_door;

/* address: "tcp://HOST:PORT", or as of listen_open. */
SHOAL_MUST_CHECK int wyoming_door_open(struct wyoming_door **out, struct gw_loop *gl,
                                       const char *address, struct err *e);
void wyoming_door_close(struct wyoming_door *d); /* NULL is fine */
/* "tcp://127.0.0.1:10300", with the port that was assigned. */
const char *wyoming_door_address(const struct wyoming_door *d);

#endif
