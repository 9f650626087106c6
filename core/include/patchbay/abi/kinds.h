/* patchbay/abi/kinds.h - the kinds of plugins, in one list. The host, the SDK's build, the checks and the tests take theirs
 * from here. */
#ifndef PATCHBAY_ABI_KINDS_H
#define PATCHBAY_ABI_KINDS_H
#include "patchbay/abi/attention.h"
#include "patchbay/abi/device.h"
#include "patchbay/abi/kv_policy.h"
#include "patchbay/abi/model.h"
#include "patchbay/abi/proposer.h"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"

/* X(NAME, word, Type), in the order in which they are listed: the id PB_NAME, "patchbay.word/1", and PB_NAME_REVISION; the
 * table pb_word; the host's view of a component, host::Type, and its conformance suite, kType. */
#define PB_EACH_KIND(X)                \
    X(SCHEDULER, scheduler, Scheduler) \
    X(SAMPLER, sampler, Sampler)       \
    X(PROPOSER, proposer, Proposer)    \
    X(KV_POLICY, kv_policy, KvPolicy)  \
    X(ATTENTION, attention, Attention) \
    X(MODEL, model, Model)             \
    X(DEVICE, device, Device)

/* X(NAME, id): the parts of the contract that are released, beside abi.h and abi/tensor.h: kinds, extensions, services.
 * PB_NAME_REVISION stays for ever; structs and lists of values only grow at their end, and PB_ABI_MINOR counts that
 * (docs/plugins/compatibility.md). All others are drafts. */
#define PB_EACH_RELEASED(X)      \
    X(SCHEDULER, PB_SCHEDULER)   \
    X(SAMPLER, PB_SAMPLER)       \
    X(CONFIGURE, PB_CONFIGURE)   \
    X(POOL, PB_SERVICE_POOL)     \
    X(CLOCK, PB_SERVICE_CLOCK)   \
    X(METRICS, PB_SERVICE_METRICS)

#endif
