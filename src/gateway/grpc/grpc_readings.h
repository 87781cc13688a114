/* grpc_readings.h - ScoreStream of shoal.v1.Shoal: readings in, scores out, on one gRPC stream.
 *
 * Every message is a request of its own, as if it had come to Score: keys, rates, limits and
 * deadlines hold for each.  Model, stream and raw of the first message hold for those after it that
 * do not say their own.  Answers come in the order of the readings; the first that fails ends the
 * stream with its status.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_READINGS_H
#define SHOAL_GATEWAY_GRPC_GRPC_READINGS_H

struct call;

void grpc_readings(struct call *c); /* /shoal.v1.Shoal/ScoreStream */

#endif
