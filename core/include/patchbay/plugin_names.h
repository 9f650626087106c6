/* patchbay/plugin_names.h - what a library says of itself: its name, its version and how it was built. add_plugin() and
 * `patchbay plugin build` define these three; a build by hand may leave them out. */
#ifndef PATCHBAY_PLUGIN_NAMES_H
#define PATCHBAY_PLUGIN_NAMES_H

#ifndef PATCHBAY_PLUGIN_NAME
#define PATCHBAY_PLUGIN_NAME "unnamed"
#endif
#ifndef PATCHBAY_PLUGIN_VERSION
#define PATCHBAY_PLUGIN_VERSION "0.0.0"
#endif
#ifndef PATCHBAY_PLUGIN_BUILD
#define PATCHBAY_PLUGIN_BUILD "unknown"
#endif

#endif
