/* patchbay/abi.h - the part of the contract that every plugin shares. C11 and C++20, no dependencies.
 * Each kind adds one header, patchbay/abi/<kind>.h. Authors of C++ plugins include patchbay/plugin.hpp instead.
 *
 * Rules (held by tests/abi):
 *   1. Structs only grow at the end; a slot, once released, is frozen.
 *   2. Every struct that crosses alone starts with struct_size, written by its owner. Array elements do not:
 *      the struct that carries the array gives their stride, so records may grow too.
 *   3. Nothing crosses but these types: no C++ object, no exception, no ownership. The side that made memory frees it.
 *   4. Each pointer states its lifetime: [call] until the function returns, [step] until the device's end_step,
 *      [load] as long as the component.
 *   5. Every function names its thread: [any]; [control] (never beside a call of the same object: a step that uses
 *      others may run); [step] (never twice at once).
 */
#ifndef PATCHBAY_ABI_H
#define PATCHBAY_ABI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PB_MAGIC     0x31474C50u /* "PLG1" */
#define PB_ABI_MAJOR 1           /* differs: refused             */
#define PB_ABI_MINOR 0           /* plugin's > host's: refused   */

typedef struct pb_str { /* UTF-8, not terminated */
    const char *data;
    size_t      size;
} pb_str;

typedef int32_t pb_status;
enum {
    PB_OK          = 0,
    PB_INVALID     = 1, /* the caller's argument or setting is wrong              */
    PB_UNSUPPORTED = 2, /* right, but this component does not do it; says why     */
    PB_BAD_STATE   = 3, /* saved bytes that cannot be read, or calls out of order */
    PB_FAILED      = 4, /* the work itself failed                                 */
    PB_UNAVAILABLE = 5  /* the machine lacks what this needs (no GPU, say)        */
};

/* ---- settings ------------------------------------------------------------------------------ */

typedef int32_t pb_param_type;
enum { PB_PARAM_BOOL = 0, PB_PARAM_INT = 1, PB_PARAM_FLOAT = 2, PB_PARAM_STRING = 3, PB_PARAM_ENUM = 4 };

enum { PB_PARAM_HOT = 1u /* may change on a live component */, PB_PARAM_HAS_MIN = 2u, PB_PARAM_HAS_MAX = 4u };

typedef struct pb_param { /* [load] one key that the YAML may set under this plugin */
    const char        *name;
    pb_param_type      type;
    uint32_t           flags;
    const char        *default_value; /* the default, as YAML text; NULL: required            */
    double             min, max; /* of INT and FLOAT, inclusive, where the flags say so  */
    const char *const *choices;  /* of ENUM, NULL-terminated                             */
    const char        *unit;     /* "tokens", "s", "ms", "bytes"; "path" of a STRING: a file or folder, meant from the
                                    YAML file that names it where it is there; NULL: none */
    const char        *description;  /* one sentence, lower case                             */
} pb_param;

typedef struct pb_setting { /* values as YAML text, already checked against the schema */
    pb_str key, value;
} pb_setting;

typedef struct pb_config { /* [call] every key of the schema is present */
    uint32_t          struct_size;
    uint32_t          count;
    const pb_setting *items;
} pb_config;

/* ---- saved state --------------------------------------------------------------------------- */

typedef struct pb_sink { /* [call] where save() writes */
    void *ctx;
    void (*put)(void *ctx, const void *data, size_t size);
} pb_sink;

/* ---- host ---------------------------------------------------------------------------------- */

enum { PB_LOG_DEBUG = 1, PB_LOG_INFO = 2, PB_LOG_WARN = 3, PB_LOG_ERROR = 4 };

typedef struct pb_host { /* [load] what a plugin may call; one for each component, outlives it */
    uint32_t struct_size;
    uint32_t reserved;
    void    *ctx;
    void (*log)(void *ctx, int32_t level, pb_str text);      /* [any]                                       */
    void (*error)(void *ctx, pb_str text);                   /* [any] why the call under way fails; copied  */
    const void *(*service)(void *ctx, const char *id);       /* [control] see abi/services.h; NULL: absent  */
} pb_host;

/* ---- component and plugin ------------------------------------------------------------------ */

typedef struct pb_component { /* [load] one thing that YAML can name */
    uint32_t    struct_size;
    uint32_t    param_count;
    const char *kind;          /* "patchbay.scheduler/1-draft": says which vtable follows                        */
    const char *kind_digest;   /* PB_SCHEDULER_DIGEST: the header it was built with; must match while a draft    */
    const char *name;          /* "fcfs": the word in the YAML, [a-z0-9_]+                                       */
    const char *version;       /* semver of the algorithm, recorded with every result                            */
    const char *summary;       /* one line                                                                       */
    const char *state;         /* "fcfs/1": components of any "fcfs/…" are given its saved bytes; NULL: stateless   */
    const pb_param *params;    /* schema; param_count entries                                                    */
    pb_status (*create)(const pb_host *, const pb_config *, void **self);                /* [control] */
    void (*destroy)(void *self);                                                         /* [control] */
    pb_status (*save)(void *self, const pb_sink *);             /* [control] or at a boundary [step]; NULL iff stateless */
    pb_status (*load)(void *self, const char *state, pb_str bytes);                      /* likewise  */
    const void *vtable;        /* pb_scheduler, pb_sampler, …                                                    */
} pb_component;

typedef struct pb_plugin { /* static and const: reading it runs no code */
    uint32_t    magic;
    uint16_t    abi_major, abi_minor;
    uint32_t    struct_size;
    uint32_t    component_count;
    const char *name, *version;
    const char *build;         /* compiler, flags, commit: recorded, never a gate */
    const pb_component *const *components;
} pb_plugin;

#define PB_ENTRY_SYMBOL "pb_plugin_v1" /* the only symbol that a plugin exports: a pb_plugin */

#ifdef __cplusplus
}
#endif
#endif
