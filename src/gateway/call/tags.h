/* tags.h - data of a call for routes: its language, and the headers and JSON fields that rules
 * test.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_CALL_TAGS_H
#define SHOAL_GATEWAY_CALL_TAGS_H

struct cJSON;
struct http_req;
struct request;
struct router_table;

/* Into the request's arena, whose rc reports failures. from and json may be NULL. */
void tags_read(struct request *r, const struct router_table *t, const struct http_req *from,
               const struct cJSON *json);

#endif
