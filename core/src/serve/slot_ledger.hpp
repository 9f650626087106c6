// What the supervisor of a server has to know of its slots, to start it again after a plugin has ended the process:
// who is in them, who is about to be, and who was before. Written by the server, a JSON object a line, before it acts;
// read by `patchbay serve --supervise`.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/engine_config.hpp"
#include "host/swap.hpp"

namespace patchbay::serve {

struct Culprit { // what has ended a server
    std::string kind, name, sha256;
    std::string call, reason; // "plan", "SIGABRT (abort) in step 3"
    std::string predecessor;  // which took the slot in the next server; empty: there is none that has not crashed
    std::string time;         // when, as utc_now()

    std::string text() const; // "scheduler 'faulty': plan: SIGABRT (abort) in step 3"
};

class SlotLedger { // of the server [any thread]
  public:
    // fd: to the supervisor, and open as long as this; culprits: of the servers before it.
    SlotLedger(int fd, std::vector<Culprit> culprits) : fd_(fd), culprits_(std::move(culprits)) {}

    void first(const std::vector<host::Identity>&);
    // Before the swap. new_engine: it is a model that only a new engine can run.
    void begin(std::string_view kind, const config::PluginChoice&, const std::string& sha256, bool new_engine = false);
    void settled(const host::SwapRecord&);
    // Hot parameters of the component in a slot were changed: `now` has all of its settings.
    void set(std::string_view kind, const config::PluginChoice& now, bool on_probation);
    void draining(); // the server is about to end: no other one is to follow it

    const std::vector<Culprit>& culprits() const { return culprits_; } // the first one first
    const Culprit* culprit(const std::string& sha256) const;           // null: it has ended none

  private:
    void write(const std::string& line);

    const int fd_;
    const std::vector<Culprit> culprits_;
    std::mutex mutex_;
};

class SlotHistory { // of the supervisor
  public:
    struct Choice {
        config::PluginChoice plugin; // of the model: the path of its weights
        bool new_engine = false;     // and tokenizer and model plugin are its own
    };
    using Choices = std::map<std::string, Choice>; // by kind

    void begin_process(); // the slots are as choices() says
    void read(std::string_view line);
    // Of the message with which the process ended: "patchbay: scheduler 'faulty': plan: SIGABRT (abort) in step 3". Its
    // predecessor takes the slot. None: no plugin of a slot was in a call.
    std::optional<Culprit> blame(std::string_view message);
    Choices choices() const; // that differ from the configuration
    bool is_draining() const { return is_draining_; }
    const std::vector<Culprit>& culprits() const { return culprits_; } // of all blame() so far

  private:
    struct Occupant {
        std::string name, sha256;
        std::optional<Choice> choice; // none: as configured
    };
    struct Slot {
        std::vector<Occupant> held;    // the last one is in it, or was when it crashed
        std::vector<Occupant> pending; // in the order of their swaps
    };

    static Occupant* find(Slot&, const std::string& name, bool on_probation); // null: there is none

    std::map<std::string, Slot> slots_;
    std::vector<Culprit> culprits_;
    bool is_draining_ = false;
};

}  // namespace patchbay::serve
