/* language.h - names of languages, as people and OpenAI's API write them.
 *
 * Thread:    no state. */
#ifndef SHOAL_AUDIO_LANGUAGE_H
#define SHOAL_AUDIO_LANGUAGE_H

/* "de" to "german"; a code without a name here is its own, "" is "unknown". */
const char *language_name(const char *code);

#endif
