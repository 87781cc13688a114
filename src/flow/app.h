/* app.h - interface of the application that answers asks.
 *
 * Flow does not know applications; src/apps implements this interface, and an owner's flow names
 * one.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_APP_H
#define SHOAL_FLOW_APP_H

struct app;
struct flow_owner;
struct request;
struct sink;

struct app {
    /* Takes the request, of kind REQUEST_ASK.  Events may arrive before this returns. */
    void (*run)(struct app *a, struct flow_owner *o, struct request *r, struct sink *s);
};

#endif
