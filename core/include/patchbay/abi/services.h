/* patchbay/abi/services.h - what a component may ask of the host, by string id, through pb_host::service. */
#ifndef PATCHBAY_ABI_SERVICES_H
#define PATCHBAY_ABI_SERVICES_H
#include "patchbay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The one thread pool of the process: no plugin starts a second one, nor uses OpenMP. */
#define PB_SERVICE_POOL "patchbay.pool/1"
typedef struct pb_pool {
    uint32_t struct_size;
    uint32_t threads; /* how many run at once, the caller among them; at least 1 */
    void    *ctx;
    /* Calls task(arg, i) for each i in [0, count), on up to `threads` threads, and returns when all are done.
     * Tasks must not throw and must not call run; callers take turns. [step], [control] */
    void (*run)(void *ctx, uint32_t count, void (*task)(void *arg, uint32_t index), void *arg);
} pb_pool;

/* Time. Real, or virtual in a simulation; no plugin reads another clock. */
#define PB_SERVICE_CLOCK "patchbay.clock/1"
typedef struct pb_clock {
    uint32_t struct_size;
    uint32_t reserved;
    void    *ctx;
    uint64_t (*now_ns)(void *ctx); /* [any] monotonic, from an arbitrary start */
} pb_clock;

/* A plugin's own metrics. They appear as patchbay_plugin_<name>{kind,plugin}, counters as …_total. Names are of a-z, 0-9
 * and _; at most 64 a component, more are dropped. */
#define PB_SERVICE_METRICS "patchbay.metrics/1"
typedef struct pb_metrics {
    uint32_t struct_size;
    uint32_t reserved;
    void    *ctx;
    void (*add)(void *ctx, const char *name, double amount); /* [any] a counter: amount ≥ 0 */
    void (*set)(void *ctx, const char *name, double value);  /* [any] a gauge               */
} pb_metrics;

/* Another device, for one that stands before it: asked for in create() only. What it makes lives as long as the component
 * that asked, unless it is closed. Such a device cannot ask for one itself. Offered to devices. */
#define PB_SERVICE_DEVICES "patchbay.devices/1"
struct pb_device;
typedef struct pb_devices {
    uint32_t struct_size;
    uint32_t reserved;
    void    *ctx;
    /* settings: `count` of them; keys that are missing take their defaults. On failure *why [call] says why. [control] */
    pb_status (*open)(void *ctx, const char *name, const pb_setting *settings, uint32_t count,
                      const struct pb_device **table, void **self, pb_str *why);
    void (*close)(void *ctx, void *self);  /* [control]                                                           */
    pb_str (*why)(void *ctx, void *self);  /* why its latest call failed, until its next one; empty: it did not say.
                                              [step], [control] */
} pb_devices;

#ifdef __cplusplus
}
#endif
#endif
