/* relevance.h - whether a passage of a manual is about an alarm.
 *
 * A search always finds something. A passage counts only if one of its sentences, with its heading,
 * names what is measured and near it how it is wrong ("excessive vibration"), and the passage names
 * the machine, another sensor that shows it, or what to do ("the bearing is worn: replace it").
 * Words are compared by their stems. The floor was chosen on manuals of power supplies (related)
 * and on encyclopedias, abstracts and dialogues (not related).
 *
 * Thread:    pure functions.
 * Failure:   cannot fail. */
#ifndef SHOAL_SITE_THINGS_RELEVANCE_H
#define SHOAL_SITE_THINGS_RELEVANCE_H

struct alarm_event;

#define RELEVANCE_FLOOR 0.9

/* The words that a manual would use for the way in which it is wrong; "" for none. */
const char *relevance_words(const struct alarm_event *e);
/* 0 to 1: how much of the alarm the best sentence is about. heading may be NULL. */
double relevance_of(const struct alarm_event *e, const char *heading, const char *passage);

#endif
