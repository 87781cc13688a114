/* config_scrub.h - the settings of a configuration file for others to see: without secrets, texts
 * and addresses of people.
 *
 * Numbers, sizes, times, choices and plain words stay; a text of several words, a header, the path
 * of a URL or what looks like a key is only said to be there.
 *
 * Thread:    pure. */
#ifndef SHOAL_CONFIG_CONFIG_SCRUB_H
#define SHOAL_CONFIG_CONFIG_SCRUB_H

struct config;
struct json_out;

/* An object: the path of each key that is set, and its value. */
void config_scrub(struct json_out *j, const struct config *c);

#endif
