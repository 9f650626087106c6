#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/unicode_versions.hpp"

#include <pcre2.h>
#include <unicode/uchar.h>
#include <unicode/uversion.h>

namespace patchbay::text {

std::vector<UnicodeTables> unicode_tables() {
    UVersionInfo library, unicode;
    u_getVersion(library);
    u_getUnicodeVersion(unicode);
    UnicodeTables pcre2{"PCRE2"};
    char text[64] = {}; // "14.0.0", "10.42 2022-12-11"
    if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, text) > 0) std::sscanf(text, "%d.%d", &pcre2.major, &pcre2.minor);
    if (pcre2_config(PCRE2_CONFIG_VERSION, text) > 0)
        pcre2.library += " " + std::string(text).substr(0, std::string(text).find(' '));
    return {{"ICU " + std::to_string(library[0]) + "." + std::to_string(library[1]), unicode[0], unicode[1]}, pcre2};
}

}  // namespace patchbay::text
