// Builds of plugins in use that have appeared in plugin folders: what a server announces or adopts. Used by Admin.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "serve/slot_journal.hpp"

namespace patchbay::serve {

struct NewBuild {
    std::string kind, plugin, sha256, library;
};

class NewBuilds { // [any thread]
  public:
    // Those of the registry that are other bytes than what is in a slot under their name, and were not reported since
    // they are there; of the model's slot, which has a checkpoint's name, under its library's path. The device cannot
    // be swapped.
    std::vector<NewBuild> look(const JournalState&, const host::Registry&);
    std::vector<NewBuild> unused(const JournalState&) const; // of the reported that no other build has replaced,
                                                         // those in no slot

  private:
    mutable std::mutex mutex_;
    std::vector<NewBuild> reported_;
};

}  // namespace patchbay::serve
