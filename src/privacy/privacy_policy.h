/* privacy_policy.h - policy for personal data in requests: of a route, or global.
 *
 * Thread:    plain data; immutable once it is in use.
 * Ownership: the model's name belongs to the owner of the policy. */
#ifndef SHOAL_PRIVACY_PRIVACY_POLICY_H
#define SHOAL_PRIVACY_PRIVACY_POLICY_H

enum privacy_action {
    PRIVACY_DEFAULT, /* route: the global policy; global: none */
    PRIVACY_NONE,
    PRIVACY_MASK,      /* [email] */
    PRIVACY_PSEUDONYM, /* [email-1f2e3d4c], resolved in the answer */
    PRIVACY_REFUSE,
};
#define PRIVACY_ACTIONS "default|none|mask|pseudonym|refuse" /* in the same order */

enum privacy_zone {
    PRIVACY_EVERYWHERE, /* no model sees the values */
    PRIVACY_NODES,      /* models of this server may see them */
};
#define PRIVACY_ZONES "everywhere|nodes" /* in the same order */

struct privacy_policy {
    enum privacy_action action;
    enum privacy_zone zone;
    unsigned kinds; /* PII_BIT()s */
    char *tagger;   /* model that finds names, if they are among the kinds */
};

#endif
