/* serving.h - shared by `shoal serve`, `shoal node` and `shoal gateway`: from options to a running
 * gateway, until a signal stops it.
 *
 * Thread: the main thread. */
#ifndef SHOAL_CMD_SERVE_SERVING_H
#define SHOAL_CMD_SERVE_SERVING_H

#include "cmd/cmd.h"
#include "config/config.h"

struct serving {
    const struct opts_page *page; /* has the options --config and --check */
    unsigned role; /* role that the certificate of such a member must have: cluster/trust/roles.h */
    /* Options to a configuration; called again by a reload. */
    int (*configure)(struct config **out, const struct opts *o, struct err *e);
};

/* Options of a member of a shoal: certificates, name, zone. */
extern const struct opts_group serving_member_group;

int serving_main(const struct serving *s, int argc, const char *const *argv);

/* An empty configuration, or that of --config. */
SHOAL_MUST_CHECK int serving_begin(struct config **out, const struct opts *o, struct err *e);
/* The addresses of --listen; if there are none at all, fallback. */
SHOAL_MUST_CHECK int serving_listen(struct config *c, const struct opts *o, const char *fallback,
                                    struct err *e);
/* The models of --model. */
SHOAL_MUST_CHECK int serving_wyoming(struct config *c, const struct opts *o, struct err *e);
SHOAL_MUST_CHECK int serving_models(struct config *c, const struct opts *o, struct err *e);
/* Adds the models that come with Shoal, unless the configuration leaves them out, or there are
 * others and `beside` is false. Beside others they are loaded when they are first needed. */
SHOAL_MUST_CHECK int serving_pack(struct config *c, bool beside, struct err *e);
/* The options of serving_member_group. */
SHOAL_MUST_CHECK int serving_member(struct config *c, const struct opts *o, struct err *e);

#endif
