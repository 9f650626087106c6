// What the supervisor of a server has to know of its slots, to start it again after a plugin has ended the process:
// who is in them, who is about to be, and who was before. Written by the server, a JSON object a line, before it acts;
// read by `patchbay serve --supervise`.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/engine_config.hpp"
#include "host/swap.hpp"

namespace patchbay::serve {

class SlotLedger { // of the server [any thread]
  public:
    // fd: to the supervisor, and open as long as this; crashed: digests of libraries that have ended a server before.
    SlotLedger(int fd, std::set<std::string> crashed) : fd_(fd), crashed_(std::move(crashed)) {}

    void first(const std::vector<host::Identity>&);
    void begin(std::string_view kind, const config::PluginChoice&, const std::string& sha256); // before the swap
    void settled(const host::SwapRecord&);
    bool has_crashed(const std::string& sha256) const { return crashed_.contains(sha256); }

  private:
    void write(const std::string& line);

    const int fd_;
    const std::set<std::string> crashed_;
    std::mutex mutex_;
};

class SlotHistory { // of the supervisor
  public:
    using Choices = std::map<std::string, config::PluginChoice>; // by kind; of the model: the path of its weights

    struct Culprit {
        std::string kind, name, sha256;
        std::string predecessor; // empty: there is none that has not crashed
    };

    void begin_process(); // the slots are as choices() says
    void read(std::string_view line);
    // Of the message with which the process ended: "patchbay: scheduler 'faulty': plan: SIGABRT (abort) in step 3". Its
    // predecessor takes the slot. None: no plugin of a slot was in a call.
    std::optional<Culprit> blame(std::string_view message);
    Choices choices() const; // that differ from the configuration
    const std::set<std::string>& crashed() const { return crashed_; }

  private:
    struct Occupant {
        std::string name, sha256;
        std::optional<config::PluginChoice> choice; // none: as configured
    };
    struct Slot {
        std::vector<Occupant> held;    // the last one is in it, or was when it crashed
        std::vector<Occupant> pending; // in the order of their swaps
    };

    std::map<std::string, Slot> slots_;
    std::set<std::string> crashed_;
};

}  // namespace patchbay::serve
