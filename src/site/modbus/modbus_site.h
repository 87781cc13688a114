/* modbus_site.h - controllers over Modbus TCP: their tags are readings of sensors, and set points
 * are written to them.
 *
 * Each controller has a connection and a thread, "modbus", which reads all tags every `every`. Tags
 * that lie close together are read in one request; if the controller refuses that, one by one. A
 * refused tag is a bad reading. A connection that is lost, silent or answers nonsense is closed and
 * made again, after a pause of 0.5 s that doubles up to 30 s; meanwhile there are no readings, so
 * the sensors' signals are lost.
 *
 * A set point is written and read back. Whoever writes has checked its limits (gate.h, by way of
 * deeds.h): nothing else may call modbus_site_write.
 *
 * Thread:    write, metrics: any; write blocks for the controller's timeout.
 * Ownership: create/destroy (NULL is fine); config and plant are borrowed.
 * Failure:   create: a sensor is unknown. write: SHOAL_EBUSY, not connected; SHOAL_EIO, refused or
 *            not confirmed; SHOAL_EINVAL, the value does not fit. */
#ifndef SHOAL_SITE_MODBUS_MODBUS_SITE_H
#define SHOAL_SITE_MODBUS_MODBUS_SITE_H

#include "base/err.h"

struct buf;
struct config_modbuses;
struct modbus_site;
struct plant;

/* *out is NULL without controllers.  plant: NULL if there are no sensors. */
SHOAL_MUST_CHECK int modbus_site_create(struct modbus_site **out, const struct config_modbuses *c,
                                        struct plant *plant, struct err *e);
SHOAL_MUST_CHECK int modbus_site_start(struct modbus_site *s, struct err *e); /* NULL is fine */
void modbus_site_stop(struct modbus_site *s); /* before the plant is destroyed; NULL is fine */
void modbus_site_destroy(struct modbus_site *s);
/* tag: "CONTROLLER.TAG". */
SHOAL_MUST_CHECK int modbus_site_write(struct modbus_site *s, const char *tag, double value,
                                       struct err *e);
void modbus_site_metrics(struct modbus_site *s, struct buf *b); /* NULL is fine */

#endif
