/* node_door.c - see node_door.h. */
#include "gateway/node/node_door.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/roles.h"
#include "gateway/call/call.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/grpc/health.h"
#include "gateway/node/node_fetch.h"
#include "gateway/node/node_pages.h"
#include "gateway/node/node_run.h"
#include "gateway/node/node_watch.h"

static const struct route methods[] = {
    {.method = "POST", .path = "/shoal.node.v1.Node/Run", .handle = node_run},
    {.method = "POST", .path = "/shoal.node.v1.Node/Watch", .handle = node_watch},
    {.method = "POST", .path = "/shoal.node.v1.Node/Fetch", .handle = node_fetch},
    {.method = "POST", .path = "/shoal.node.v1.Node/Pages", .handle = node_pages},
    {.method = "POST", .path = "/grpc.health.v1.Health/Check", .handle = health_handle}};
#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

/* Only members that serve models may fetch them, or what they have read; a gateway does not need
 * it. */
static unsigned roles_for(const struct route *method)
{
    if (method->handle == node_pages)
        return ROLE_NODE;
    return method->handle == node_fetch ? ROLE_NODE | ROLE_CONTROLLER
                                        : ROLE_GATEWAY | ROLE_NODE | ROLE_CONTROLLER;
}

/* Whether the member's role allows the call. A client on a unix socket has the rights of this
 * machine; an unencrypted client, those of `insecure`. */
static bool may(struct call *c)
{
    struct cert_identity who;
    struct err e = {0};
    char roles[64], why[160];
    if (!c->req->peer_cert)
        return true;
    unsigned needed = roles_for(c->route);
    if (cert_identity(&who, c->req->peer_cert, &e) == 0 && (who.roles & needed))
        return true;
    roles_text(roles, sizeof(roles), needed);
    snprintf(why, sizeof(why), "this certificate is not authorized: it needs one of the roles %s",
             roles);
    log_warn("cluster", "refused %s: %s", c->req->peer, e.code ? e.msg : why);
    grpc_call_fail_plain(c, GRPC_PERMISSION_DENIED, "ROLE", e.code ? e.msg : why);
    return false;
}

static void pass(struct call *c)
{
    const struct http_req *r = c->req;
    for (size_t i = 0; i < N_METHODS && !c->route; i++)
        if (strcmp(methods[i].path, r->path) == 0)
            c->route = &methods[i];
    if (!grpc_call_has_type(r))
        call_fail(c, 415, NULL, NULL, NULL,
                  "this address is for the nodes of a shoal; clients use the gateway's");
    else if (strcmp(r->protocol, "h2") != 0)
        call_fail(c, 426, NULL, NULL, NULL, "nodes speak HTTP/2");
    else if (!c->route)
        grpc_call_fail_plain(c, GRPC_UNIMPLEMENTED, "UNKNOWN_METHOD", "there is no such method");
    else if (may(c))
        c->route->handle(c);
}

void node_door_handle(void *gw_loop, struct http_req *r)
{
    struct call *c = call_create(gw_loop, r);
    if (!c)
        return;
    call_hold(c); /* while the handler runs */
    pass(c);
    call_release(c);
}
