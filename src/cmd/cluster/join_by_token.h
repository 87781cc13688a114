/* join_by_token.h - the folder of a member, fetched with a token: 'shoal cluster join --token'.
 *
 * Failure: an exit code; the reason is on stderr. */
#ifndef SHOAL_CMD_CLUSTER_JOIN_BY_TOKEN_H
#define SHOAL_CMD_CLUSTER_JOIN_BY_TOKEN_H

struct opts_page;

struct join_by_token {
    const char *token; /* "-": the first line of stdin */
    const char *at;    /* HOST:PORT of 'shoal cluster token'; NULL: found on the local network */
    const char *name;  /* of the member; NULL: that of this machine */
    const char *host;  /* where others reach it; NULL: as the other side sees it */
};

/* Makes a key, has it certified, and writes everything into the folder, which it creates. */
int join_by_token(const struct opts_page *page, const struct join_by_token *j, const char *folder);
/* The name of this machine as one of a member: "Hub 2.lan" is hub-2; "": there is none. */
void join_by_token_name(char out[64]);

#endif
