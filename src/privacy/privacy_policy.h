/* privacy_policy.h - what is done with personal data in requests: of a route, or of all.
 *
 * Thread:    plain data; immutable once it is in use.
 * Ownership: the model's name belongs to whoever owns the policy. */
#ifndef SHOAL_PRIVACY_PRIVACY_POLICY_H
#define SHOAL_PRIVACY_PRIVACY_POLICY_H

enum privacy_action {
    PRIVACY_DEFAULT, /* of a route: what is said for all; of all: none */
    PRIVACY_NONE,
    PRIVACY_MASK,      /* [email] */
    PRIVACY_PSEUDONYM, /* [email-1f2e3d4c], put back in the answer */
    PRIVACY_REFUSE,
};
#define PRIVACY_ACTIONS "default|none|mask|pseudonym|refuse" /* in the same order */

enum privacy_zone {
    PRIVACY_EVERYWHERE, /* no model sees what was found */
    PRIVACY_NODES,      /* those of this server may */
};
#define PRIVACY_ZONES "everywhere|nodes" /* in the same order */

struct privacy_policy {
    enum privacy_action action;
    enum privacy_zone zone;
    unsigned kinds; /* PII_BIT()s */
    char *tagger;   /* model that finds names, if they are among the kinds */
};

#endif
