/* sim_names.h - what the simulation of a shoal puts in the place of time, threads, NATS, the disk
 * and the models.
 *
 * The real code of lease, desired store, controller, agent, join and relay is compiled a second
 * time with this header in front of each file (src/cluster/CMakeLists.txt).  The first part gives
 * its functions other names, so that both copies fit into one program; the second part leads its
 * calls into the simulation. Nothing else of that code differs.
 *
 * Thread: see sim_shoal.h. */
#ifndef SHOAL_CLUSTER_SIM_NAMES_H
#define SHOAL_CLUSTER_SIM_NAMES_H

#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

/* ---- the second copy ---- */

#define agent_create sim_agent_create
#define agent_damaged sim_agent_damaged
#define agent_destroy sim_agent_destroy
#define agent_fill sim_agent_fill
#define agent_follow sim_agent_follow
#define agent_wait sim_agent_wait
#define choose_end sim_choose_end
#define choose_kind sim_choose_kind
#define choose_look sim_choose_look
#define choose_model sim_choose_model
#define control_beat sim_control_beat
#define control_bus sim_control_bus
#define control_close sim_control_close
#define control_confirmed sim_control_confirmed
#define control_desired sim_control_desired
#define control_event sim_control_event
#define control_get_status sim_control_get_status
#define control_heard sim_control_heard
#define control_held sim_control_held
#define control_known_fence sim_control_known_fence
#define control_look sim_control_look
#define control_open sim_control_open
#define control_submit sim_control_submit
#define controller_create sim_controller_create
#define controller_destroy sim_controller_destroy
#define controller_get_status sim_controller_get_status
#define controller_on_desired sim_controller_on_desired
#define controller_on_heartbeat sim_controller_on_heartbeat
#define controller_on_lease sim_controller_on_lease
#define controller_on_link sim_controller_on_link
#define controller_snapshot_free sim_controller_snapshot_free
#define controller_snapshot_node sim_controller_snapshot_node
#define controller_snapshot_read sim_controller_snapshot_read
#define controller_snapshot_remove sim_controller_snapshot_remove
#define controller_view_count sim_controller_view_count
#define controller_view_create sim_controller_view_create
#define controller_view_destroy sim_controller_view_destroy
#define controller_view_expire sim_controller_view_expire
#define controller_view_hear sim_controller_view_hear
#define controller_view_refresh sim_controller_view_refresh
#define controller_view_take sim_controller_view_take
#define deployed_create sim_deployed_create
#define deployed_destroy sim_deployed_destroy
#define deployed_each sim_deployed_each
#define deployed_is_behind sim_deployed_is_behind
#define deployed_set sim_deployed_set
#define deployed_settle sim_deployed_settle
#define deployed_settled sim_deployed_settled
#define deployed_want sim_deployed_want
#define deployed_wanted sim_deployed_wanted
#define desired_store_claim sim_desired_store_claim
#define desired_store_close sim_desired_store_close
#define desired_store_confirmed sim_desired_store_confirmed
#define desired_store_current sim_desired_store_current
#define desired_store_get_status sim_desired_store_get_status
#define desired_store_heard sim_desired_store_heard
#define desired_store_known sim_desired_store_known
#define desired_store_load sim_desired_store_load
#define desired_store_look sim_desired_store_look
#define desired_store_open sim_desired_store_open
#define desired_store_update sim_desired_store_update
#define join_close sim_join_close
#define join_damaged sim_join_damaged
#define join_fill sim_join_fill
#define join_get_view sim_join_get_view
#define join_heartbeats sim_join_heartbeats
#define join_is_isolated sim_join_is_isolated
#define join_open sim_join_open
#define join_set_drained sim_join_set_drained
#define join_submit sim_join_submit
#define join_up sim_join_up
#define join_with_desired sim_join_with_desired
#define lease_close sim_lease_close
#define lease_expiry_ns sim_lease_expiry_ns
#define lease_get_status sim_lease_get_status
#define lease_held sim_lease_held
#define lease_open sim_lease_open
#define lease_parse sim_lease_parse
#define quota_bucket_connect sim_quota_bucket_connect
#define quota_bucket_create sim_quota_bucket_create
#define quota_bucket_destroy sim_quota_bucket_destroy
#define quota_bucket_disconnect sim_quota_bucket_disconnect
#define quota_bucket_source sim_quota_bucket_source
#define relay_run sim_relay_run

/* ---- what it calls ---- */

#define bucket_close sim_bucket_close
#define bucket_confirm sim_bucket_confirm
#define bucket_create sim_bucket_create
#define bucket_get sim_bucket_get
#define bucket_last sim_bucket_last
#define bucket_limit sim_bucket_limit
#define bucket_open sim_bucket_open
#define bucket_put sim_bucket_put
#define bus_close sim_bus_close
#define bus_cluster sim_bus_cluster
#define bus_get_status sim_bus_get_status
#define bus_open sim_bus_open
#define bus_publish sim_bus_publish
#define bus_subscribe sim_bus_subscribe
#define bus_unsubscribe sim_bus_unsubscribe
#define desired_file_read sim_desired_file_read
#define desired_file_write sim_desired_file_write
#define event_log_add sim_event_log_add
#define event_log_close sim_event_log_close
#define event_log_get_status sim_event_log_get_status
#define event_log_open sim_event_log_open
#define flow_give_request sim_flow_give_request
#define flow_hold_epoch sim_flow_hold_epoch
#define registry_add sim_registry_add
#define registry_each_version sim_registry_each_version
#define registry_load sim_registry_load
#define registry_remove_copy sim_registry_remove_copy
#define registry_remove_version sim_registry_remove_version
#define registry_set_epoch sim_registry_set_epoch
#define registry_set_service sim_registry_set_service
#define thread_create sim_thread_create
#define clock_gettime sim_clock_gettime
#define getrandom sim_getrandom
#define nanosleep sim_nanosleep
#define pthread_cond_signal sim_cond_signal
#define pthread_cond_timedwait sim_cond_timedwait
#define pthread_cond_wait sim_cond_wait
#define pthread_join sim_thread_join
#define pthread_mutex_lock sim_mutex_lock

int sim_clock_gettime(clockid_t id, struct timespec *out);
ssize_t sim_getrandom(void *out, size_t n, unsigned flags);
int sim_nanosleep(const struct timespec *t, struct timespec *left);
int sim_cond_signal(pthread_cond_t *c);
int sim_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at);
int sim_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int sim_mutex_lock(pthread_mutex_t *m);
int sim_thread_join(pthread_t t, void **out);

#endif
