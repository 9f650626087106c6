// `patchbay serve --supervise`: a parent that holds the listening socket, and starts the server again after a plugin
// has ended its process: with the component that was in the slot before. See docs/decisions/0068.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "serve/slot_ledger.hpp"

namespace patchbay::cli {

struct Supervised { // what the server gets, in a process of its own
    int listener;   // a socket that listens
    std::shared_ptr<serve::SlotLedger> ledger;
    serve::SlotHistory::Choices choices; // in place of the configured ones
    uint32_t restarts = 0;               // of the server before it
};

// Calls `serve` in a child process, again and again, until it ends otherwise than in a plugin's call: then its exit
// code is returned. The failure: the address cannot be had, or what ended it has no predecessor. SIGINT and SIGTERM go
// to the server. To be called before any thread is started.
Result<int> supervise(const std::string& host, uint16_t port, const std::function<int(const Supervised&)>& serve);

}  // namespace patchbay::cli
