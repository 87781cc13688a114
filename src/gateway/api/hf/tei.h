/* tei.h - /info as Hugging Face's Text Embeddings Inference has it; of a server that only
 * generates, as its Text Generation Inference does (tgi.h).  The paths that compute are in
 * specialists.h.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_HF_TEI_H
#define SHOAL_GATEWAY_API_HF_TEI_H

struct call;

void tei_info(struct call *c);

#endif
