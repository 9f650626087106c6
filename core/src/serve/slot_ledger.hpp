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
    // Before the swap. new_engine: it is a model that only a new engine can run.
    void begin(std::string_view kind, const config::PluginChoice&, const std::string& sha256, bool new_engine = false);
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
    struct Choice {
        config::PluginChoice plugin; // of the model: the path of its weights
        bool new_engine = false;     // and tokenizer and model plugin are its own
    };
    using Choices = std::map<std::string, Choice>; // by kind

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
        std::optional<Choice> choice; // none: as configured
    };
    struct Slot {
        std::vector<Occupant> held;    // the last one is in it, or was when it crashed
        std::vector<Occupant> pending; // in the order of their swaps
    };

    std::map<std::string, Slot> slots_;
    std::set<std::string> crashed_;
};

}  // namespace patchbay::serve
