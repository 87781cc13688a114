/* slot_actions.h - POST /slots/ID?action=save, restore or erase; see slot_store.h.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_SLOT_ACTIONS_H
#define SHOAL_GATEWAY_API_SLOT_ACTIONS_H

struct call;

void slot_actions_post(struct call *c);

#endif
