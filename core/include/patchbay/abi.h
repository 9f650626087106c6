/* patchbay/abi.h - the part of the contract that every plugin shares. C11 and C++20, no dependencies.
 * Each kind adds one header, patchbay/abi/<kind>.h. Authors of C++ plugins include patchbay/plugin.hpp instead.
 *
 * Rules (held by tests/abi):
 *   1. Structs and lists of values only grow, at the end or into a field called reserved. Drafts may change otherwise: that
 *      raises PB_<KIND>_REVISION, and another one is refused. What is released (abi/kinds.h, and this) raises PB_ABI_MINOR only.
 *   2. Every struct that crosses alone starts with struct_size, written by the side that allocates it. The other side may
 *      know a shorter or a longer struct: it reads PB_HAS() fields only, and writes no further than struct_size. Elements
 *      of arrays have no struct_size: the struct that carries the array gives their stride, in bytes. An element that is
 *      "closed" never changes.
 *   3. Nothing crosses but these types: no C++ object, no exception, no ownership. The side that made memory frees it.
 *   4. Each pointer states its lifetime: [call] until the function returns, [step] until the device's end_step,
 *      [load] as long as the component.
 *   5. Every function names its thread: [any]; [control] (never beside a call of the same object: a step that uses
 *      others may run); [step] (never twice at once).
 *   6. In a field, 0 or NULL means none, off or not known, so a field that one side does not write means that; an index
 *      that may be none is stored plus one. In an array of ids or indices, -1 means none.
 *   7. A function that can fail returns a status and says why through pb_host.error. Ops of a device return nothing: the
 *      device keeps the first error of a step, which end_step reports.
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
#define PB_ABI_MINOR 0           /* plugin's > host's: refused, since it may rely on what the host does not know */

/* Whether the side that made *p knows the field: struct_size covers it. */
#define PB_HAS(p, field) ((p)->struct_size >= (size_t)((const char *)&(p)->field - (const char *)(p)) + sizeof((p)->field))

typedef struct pb_str { /* UTF-8, not terminated; closed */
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
    PB_UNAVAILABLE = 5, /* the machine lacks what this needs (no GPU, say)        */
    PB_EXHAUSTED   = 6, /* memory, pages or another limit is used up              */
    PB_CANCELLED   = 7  /* the caller took the work back before it was done       */
};

/* ---- settings ------------------------------------------------------------------------------ */

typedef int32_t pb_param_type;
enum { PB_PARAM_BOOL = 0, PB_PARAM_INT = 1, PB_PARAM_FLOAT = 2, PB_PARAM_STRING = 3, PB_PARAM_ENUM = 4 };

enum { PB_PARAM_HOT = 1u /* may change on a live component, see pb_configure */, PB_PARAM_HAS_MIN = 2u, PB_PARAM_HAS_MAX = 4u };

typedef struct pb_param { /* [load] an element of params: one key that the YAML may set under this plugin */
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

typedef struct pb_setting { /* a value as YAML text, already checked against the schema; closed: it is a pair of texts */
    pb_str key, value;
} pb_setting;

typedef struct pb_config { /* [call] every key of the schema is present */
    uint32_t          struct_size;
    uint32_t          count;
    const pb_setting *items;
} pb_config;

/* ---- saved state --------------------------------------------------------------------------- */

typedef struct pb_sink { /* [call] where save() writes */
    uint32_t struct_size;
    uint32_t reserved;
    void    *ctx;
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

typedef struct pb_extension { /* [load] an element of extensions: an optional table beside the vtable. It starts with struct_size */
    const char *id;       /* "patchbay.device.graphs/1"                                                */
    uint32_t    revision; /* PB_DEVICE_GRAPHS_REVISION: as of kinds; an id that the host does not know is ignored */
    uint32_t    reserved;
} pb_extension;

typedef struct pb_component { /* [load] one thing that YAML can name */
    uint32_t    struct_size;
    uint32_t    param_count;
    uint32_t    param_stride;  /* sizeof(pb_param) at the plugin                                                 */
    uint32_t    revision;      /* PB_SCHEDULER_REVISION: which layout of the kind's structs it was built for     */
    const char *kind;          /* "patchbay.scheduler/1": says which vtable follows                              */
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
    const pb_extension *extensions; /* all that extension() may give; extension_count entries                    */
    uint32_t    extension_count;
    uint32_t    extension_stride;   /* bytes                                                                     */
    /* [control], after create(): the table of an extension, [load]; NULL: this instance has none (a device whose machine
     * cannot do it, say). NULL: the component has no extensions. */
    const void *(*extension)(void *self, const char *id);
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

/* ---- extension of every kind: parameters that change while the component is used ------------- */

#define PB_CONFIGURE "patchbay.component.configure/1"
#define PB_CONFIGURE_REVISION 1 /* released */

typedef struct pb_configure { /* a component has it if a parameter is PB_PARAM_HOT */
    uint32_t struct_size;
    uint32_t reserved;
    /* Between two steps: every key of the schema, of which only those with PB_PARAM_HOT have other values than before. All
     * new values are taken, or none and a status says why. [step] */
    pb_status (*configure)(void *self, const pb_config *);
} pb_configure;

#define PB_ENTRY_SYMBOL "pb_plugin_v1" /* the only symbol that a plugin exports: a pb_plugin */

#ifdef __cplusplus
}
#endif
#endif
