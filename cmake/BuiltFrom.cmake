# cmake -D SOURCE=<source tree> -D OUT=<file.cpp> -P BuiltFrom.cmake: what built_from() of core/tools/cli says, at every
# build; the file is written only where that is something else.
execute_process(COMMAND git -C "${SOURCE}" rev-parse --verify HEAD
                OUTPUT_VARIABLE commit RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(has_changes false)
if(failed)
    set(commit "")
else()
    # Others may be at work in the tree: it is only read.
    execute_process(COMMAND git --no-optional-locks -C "${SOURCE}" status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
        set(has_changes true)
    endif()
endif()
file(CONFIGURE OUTPUT "${OUT}" CONTENT [[
#include "cli/built_from.hpp"

namespace patchbay::cli {

experiment::BuiltFrom built_from() { return {"@commit@", @has_changes@}; }

}  // namespace patchbay::cli
]] @ONLY)
