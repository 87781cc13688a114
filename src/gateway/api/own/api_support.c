/* api_support.c - /admin/support: what somebody who helps from afar asks first: version, settings
 * and the last lines of the log, without secrets and personal data. */
#include "base/clock.h"
#include "base/log_recent.h"
#include "config/config_scrub.h"
#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "privacy/scrub.h"
#include "shoal/shoal_version.h"
#include "wire/json_out.h"

void api_support(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    struct buf log, clean;
    buf_init(&log, LOG_KEPT_BYTES);
    buf_init(&clean, 4 * LOG_KEPT_BYTES);
    log_recent(&log);
    scrub_text(&clean, buf_str(&log), log.len);
    json_out_object(&j);
    json_out_member_str(&j, "version", SHOAL_VERSION);
    json_out_member_num(&j, "up_s", (double)(clock_ns() - c->gl->gw->started_ns) / 1e9);
    json_out_key(&j, "config");
    config_scrub(&j, c->gl->config);
    json_out_key(&j, "log");
    json_out_strn(&j, buf_str(&clean), clean.len);
    json_out_object_end(&j);
    buf_fini(&log);
    buf_fini(&clean);
    call_json(c, 200);
}
