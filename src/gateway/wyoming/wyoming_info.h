/* wyoming_info.h - what this server can do, as Wyoming describes it.
 *
 * Thread:    the loop's. */
#ifndef SHOAL_GATEWAY_WYOMING_WYOMING_INFO_H
#define SHOAL_GATEWAY_WYOMING_WYOMING_INFO_H

#include <stddef.h>

#include "base/buf.h"

struct gw_loop;

/* The data of an info event: models that recognize speech, the home, a list for voices. */
void wyoming_info_put(struct buf *b, struct gw_loop *gl);

/* The name of the model that speaks, written to out. */
const char *wyoming_info_voice(struct gw_loop *gl, char *out, size_t cap);

#endif
