/* native_lm.h - the native decoder as a language model of the scheduler. */
#ifndef SHOAL_ENGINE_NATIVE_NATIVE_LM_H
#define SHOAL_ENGINE_NATIVE_NATIVE_LM_H

#include "engine/decode/lm.h"

/* Takes over the decoder. */
void native_lm_from_decoder(struct lm *lm, struct decoder *d);

#endif
