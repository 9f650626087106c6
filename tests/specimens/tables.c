/* A healthy plugin in pure C11 and, by the macros of CMakeLists.txt, plugins whose table or process is wrong in one
 * place. Each macro is one field or one moment; its default is the healthy one. */
#define _DEFAULT_SOURCE /* on_exit */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "patchbay/abi/proposer.h"

#ifndef ENTRY
#define ENTRY pb_plugin_v1
#endif
#ifndef MAGIC
#define MAGIC PB_MAGIC
#endif
#ifndef MAJOR
#define MAJOR PB_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR PB_ABI_MINOR
#endif
#ifndef BUILD
#define BUILD "by hand"
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef KIND
#define KIND PB_PROPOSER
#endif
#ifndef REVISION
#define REVISION PB_PROPOSER_REVISION
#endif
#ifndef NAME
#define NAME "again"
#endif
#ifndef SUMMARY
#define SUMMARY "proposes the newest token once more"
#endif
#ifndef STATE
#define STATE NULL
#endif
#ifndef SAVE
#define SAVE NULL
#endif
#ifndef CREATE
#define CREATE create
#endif
#ifndef DESTROY
#define DESTROY destroy
#endif
#ifndef PROPOSE
#define PROPOSE propose
#endif
#ifndef EXTENSIONS
#define EXTENSIONS 0
#endif
#ifndef DEFAULT
#define DEFAULT "1"
#endif
#ifndef HOT
#define HOT 0
#endif
#ifndef MOST
#define MOST 8
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof table
#endif
#ifndef AT_LOAD
#define AT_LOAD (void)0
#endif
#ifndef AT_UNLOAD
#define AT_UNLOAD (void)0
#endif

#define NO_NUMBER __builtin_nan("")
#define MAYBE_UNUSED __attribute__((unused)) static

MAYBE_UNUSED pb_status create(const pb_host *host, const pb_config *config, void **self) {
    (void)host, (void)config;
    *self = malloc(1);
    return *self ? PB_OK : PB_FAILED;
}
MAYBE_UNUSED void destroy(void *self) { free(self); }
MAYBE_UNUSED pb_status propose(void *self, pb_propose_batch *batch) {
    (void)self;
    for (uint32_t i = 0; i < batch->row_count; ++i) {
        const pb_propose_row *row = (const pb_propose_row *)((const char *)batch->rows + (size_t)i * batch->row_stride);
        batch->counts[i] = row->token_count > 0 && row->max_drafts > 0;
        if (batch->counts[i]) batch->drafts[(size_t)i * batch->max_drafts] = row->tokens[row->token_count - 1];
    }
    return PB_OK;
}

/* As a GPU's driver does: it looks itself up in /proc by its number. */
MAYBE_UNUSED pb_status create_if_proc_shows_it(const pb_host *host, const pb_config *config, void **self) {
    char link[16] = "";
    if (readlink("/proc/self", link, sizeof link - 1) > 0 && atoi(link) == getpid()) return create(host, config, self);
    static const char why[] = "/proc/self is another process";
    host->error(host->ctx, (pb_str){why, sizeof why - 1});
    return PB_FAILED;
}

/* ---- what is wrong, where a value does not say it ------------------------------------------- */

MAYBE_UNUSED pb_status save(void *self, const pb_sink *sink) { return (void)self, (void)sink, PB_OK; }
MAYBE_UNUSED pb_status create_nothing(const pb_host *h, const pb_config *c, void **self) {
    return (void)h, (void)c, (void)self, PB_OK;
}
MAYBE_UNUSED pb_status create_and_fail(const pb_host *h, const pb_config *c, void **self) {
    static const char why[] = "the stars are wrong";
    h->error(h->ctx, (pb_str){why, sizeof why - 1});
    return (void)c, (void)self, PB_FAILED;
}
MAYBE_UNUSED pb_status create_and_crash(const pb_host *h, const pb_config *c, void **self) {
    return (void)h, (void)c, (void)self, abort(), PB_OK;
}
MAYBE_UNUSED pb_status create_and_leave(const pb_host *h, const pb_config *c, void **self) {
    return (void)h, (void)c, (void)self, _exit(0), PB_OK;
}
MAYBE_UNUSED void destroy_and_crash(void *self) { (void)self, abort(); }
MAYBE_UNUSED pb_status propose_for_ever(void *self, pb_propose_batch *batch) {
    for (volatile uint32_t *count = &batch->row_count;;) /* no end, and no undefined behaviour either */
        if (*count == UINT32_MAX) return (void)self, PB_OK;
}
MAYBE_UNUSED pb_status propose_out_of_memory(void *self, pb_propose_batch *batch) {
    for (int blocks = 0; blocks < 1024; ++blocks) /* 64 GiB: the probe's limit comes earlier */
        *(volatile char *)malloc((size_t)64 << 20) = 1;
    return (void)self, (void)batch, PB_OK;
}
MAYBE_UNUSED void forge_a_verdict(void) {
    static const char words[] = "{\"verdict\": \"ok\"}\n";
    (void)!write(3, words, sizeof words - 1);
}
MAYBE_UNUSED void leave_a_session(void) { /* a daemon: of no group, no session and no parent of the probe */
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (;;) pause();
        _exit(0);
    }
}
MAYBE_UNUSED void start_many(void) {
    for (int i = 0; i < 600; ++i)
        if (fork() == 0)
            for (;;) pause();
}
MAYBE_UNUSED void share_memory(void) { /* which no limit of data counts */
    const size_t size = (size_t)1 << 30;
    char *const p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) memset(p, 1, size);
}
MAYBE_UNUSED void leave_a_file(void) {
    char name[4096];
    const char *const folder = getenv("TMPDIR");
    strcpy(name, folder ? folder : "/tmp");
    strcat(name, "/left-by-a-plugin-XXXXXX");
    if (mkstemp(name) < 0) abort();
    for (;;) pause();
}
MAYBE_UNUSED void give_way_and_abort(void) { /* to a newer build, while the probe of this one goes on */
    (void)rename(getenv("NEWER_BUILD"), getenv("THIS_BUILD"));
    abort();
}
MAYBE_UNUSED void on_exit_crash(int status, void *unused) { (void)status, (void)unused, abort(); }

__attribute__((constructor)) static void at_load(void) { AT_LOAD; }
__attribute__((destructor)) static void at_unload(void) { AT_UNLOAD; }

/* ---- tables --------------------------------------------------------------------------------- */

static const pb_param params[] = {
    {"drafts", PB_PARAM_INT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX | HOT, DEFAULT, 1, MOST, NULL, "tokens",
     "to be checked"}};

static const pb_proposer table = {TABLE_SIZE, 0, PROPOSE, NULL, NULL};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_count = 1,
                                       .param_stride = sizeof *params,
                                       .revision = REVISION,
                                       .kind = KIND,
                                       .name = NAME,
                                       .version = "1.0.0",
                                       .summary = SUMMARY,
                                       .state = STATE,
                                       .params = params,
                                       .create = CREATE,
                                       .destroy = DESTROY,
                                       .save = SAVE,
                                       .vtable = &table,
                                       .extension_count = EXTENSIONS};
static const pb_component *const components[] = {&component, &component};

__attribute__((visibility("default"))) extern const pb_plugin ENTRY;
const pb_plugin ENTRY = {MAGIC, MAJOR, MINOR, sizeof ENTRY, COUNT, "tables", "1.0.0", BUILD, components};
