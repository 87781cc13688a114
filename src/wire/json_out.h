/* json_out.h - writes JSON into a buf, including commas and escapes.
 *
 * Thread:    belongs to its caller.
 * Failure:   through the buf's sticky rc.  Invalid UTF-8 becomes U+FFFD; NaN and infinities become
 *            null.  json_in.h reads JSON. */
#ifndef SHOAL_WIRE_JSON_OUT_H
#define SHOAL_WIRE_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json_out {
    struct buf *b;
    bool comma; /* the next value needs a comma before it */
};

struct json_out json_out_make(struct buf *b);
void json_out_object(struct json_out *j);
void json_out_object_end(struct json_out *j);
void json_out_array(struct json_out *j);
void json_out_array_end(struct json_out *j);
void json_out_key(struct json_out *j, const char *key);
void json_out_str(struct json_out *j, const char *s);
void json_out_strn(struct json_out *j, const char *s, size_t n);
void json_out_int(struct json_out *j, int64_t v);
void json_out_uint(struct json_out *j, uint64_t v);
void json_out_num(struct json_out *j, double v); /* shortest text that parses to the same value */
/* At most this many decimals (0 to 15), without trailing zeros: much cheaper, for times and
 * rates. */
void json_out_rounded(struct json_out *j, double v, int decimals);
void json_out_float(struct json_out *j, float v);
void json_out_bool(struct json_out *j, bool v);
void json_out_null(struct json_out *j);
/* A value that is JSON already. */
void json_out_raw(struct json_out *j, const char *p, size_t n);

/* A member of an object: its key and its value, or the beginning of its value. */
void json_out_member_object(struct json_out *j, const char *key);
void json_out_member_array(struct json_out *j, const char *key);
void json_out_member_str(struct json_out *j, const char *key, const char *s);
void json_out_member_strn(struct json_out *j, const char *key, const char *s, size_t n);
void json_out_member_int(struct json_out *j, const char *key, int64_t v);
void json_out_member_uint(struct json_out *j, const char *key, uint64_t v);
void json_out_member_num(struct json_out *j, const char *key, double v);
void json_out_member_rounded(struct json_out *j, const char *key, double v, int decimals);
void json_out_member_float(struct json_out *j, const char *key, float v);
void json_out_member_bool(struct json_out *j, const char *key, bool v);
void json_out_member_null(struct json_out *j, const char *key);
void json_out_member_raw(struct json_out *j, const char *key, const char *p, size_t n);

#endif
