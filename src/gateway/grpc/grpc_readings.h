/* grpc_readings.h - ScoreStream of shoal.v1.Shoal: readings in, scores out, on one gRPC stream.
 *
 * Every message is a separate request, as if sent to Score: keys, rates, limits and deadlines apply
 * to each. Model, stream and raw of the first message are defaults for the later ones. Answers are
 * in the order of the readings; the first failure ends the stream with its status.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_READINGS_H
#define SHOAL_GATEWAY_GRPC_GRPC_READINGS_H

struct call;

void grpc_readings(struct call *c); /* /shoal.v1.Shoal/ScoreStream */

#endif
