/* tei.h - /info in the format of Hugging Face's Text Embeddings Inference, or, on a server that
 * only generates, of Text Generation Inference (tgi.h). The paths that compute are in
 * specialists.h.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_HF_TEI_H
#define SHOAL_GATEWAY_API_HF_TEI_H

struct call;

void tei_info(struct call *c);

#endif
