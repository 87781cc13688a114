/* http_conn.c - see http_conn.h: services of the connection and server for a protocol. */
#include "net/http_conn.h"

#include <time.h>

void http_conn_wait(struct http_conn *c, bool waits)
{
    struct http_server *s = c->server;
    if (c->waits == waits)
        return;
    c->waits = waits;
    if (waits) { /* last in line */
        c->waits_before = s->last_wait;
        *(s->last_wait ? &s->last_wait->waits_after : &s->longest_wait) = c;
        s->last_wait = c;
        return;
    }
    *(c->waits_before ? &c->waits_before->waits_after : &s->longest_wait) = c->waits_after;
    *(c->waits_after ? &c->waits_after->waits_before : &s->last_wait) = c->waits_before;
    c->waits_before = c->waits_after = NULL;
}

/* In steps, so that a connection that grows a little does not touch the shared counters. */
static size_t countable(const struct http_conn *c)
{
    size_t n = http_conn_bytes(&c->sock.in) + http_conn_bytes(&c->sock.out) +
               (c->proto->held ? c->proto->held(c) : 0);
    size_t step = HTTP_CONN_FREE_BYTES;
    return n <= step ? 0 : (n - 1) / step * step;
}

enum peers_verdict http_conn_count(struct http_conn *c)
{
    size_t n = countable(c);
    if (n > c->counted) {
        enum peers_verdict v = peers_take(c->account, n - c->counted);
        if (v != PEERS_OK)
            return v;
    } else if (n < c->counted) {
        peers_give(c->account, c->counted - n);
    }
    c->counted = n;
    return PEERS_OK;
}

const struct http_refusal *http_conn_full(enum peers_verdict v)
{
    static const struct http_refusal
        all = {503, "overloaded",
               "the memory for all clients is used up (limits.buffers): try again later", 1},
        peer = {503, "overloaded",
                "the memory for this client is used up (limits.client_buffers): try again later",
                1};
    return v == PEERS_PEER_FULL ? &peer : &all;
}

void http_conn_timer(struct http_conn *c, uint32_t ms)
{
    struct loop *l = c->server->loop;
    if (ms)
        loop_timer_set(l, &c->timer, loop_now(l) + (uint64_t)ms * 1000000u);
    else
        loop_timer_clear(l, &c->timer);
}

void http_conn_switch(struct http_conn *c, const struct http_proto *proto, void *state)
{
    c->proto = proto;
    c->state = state;
    http_conn_timer(c, 0);
}

const char *http_server_date(struct http_server *s)
{
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    if ((uint64_t)ts.tv_sec != s->date_s) {
        s->date_s = (uint64_t)ts.tv_sec;
        gmtime_r(&ts.tv_sec, &tm);
        strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    }
    return s->date;
}

void http_refuse(struct http_server *s, struct http_req *r, const struct http_refusal *why)
{
    if (s->refuse) {
        s->refuse(r, why);
        return;
    }
    http_begin(r, why->status, NULL, 0, 0);
    http_end(r);
}
