// Live control of a running engine, over HTTP with JSON on an address of its own: its status, swaps, draining. Used by
// Server, and by LoopControl where there is no server.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "config/engine_config.hpp"
#include "serve/admin_address.hpp"
#include "serve/admin_orders.hpp"
#include "serve/fields.hpp"
#include "serve/folder_watch.hpp"
#include "serve/live_swaps.hpp"
#include "serve/new_builds.hpp"
#include "serve/routes.hpp"
#include "serve/slot_journal.hpp"

namespace patchbay::serve {

struct AdminOptions {
    AdminAddress address;
    std::function<Result<host::Registry>()> find_plugins; // at start, and when folders are to be scanned again
    config::EngineConfig requested;                       // as the engine was made of
    std::shared_ptr<SlotLedger> ledger{}; // null: there is no supervisor
    bool required = true; // else the server does without where the address cannot be had, and logs why
};

struct ShownModel {
    std::string name, path;
    engine::EngineFacts facts; // at its start
};

struct Controlled { // what is controlled; all of it outlives the Admin
    service::LiveEngine& engine;
    SlotJournal& journal;
    ServeMetrics& metrics;
    std::function<ShownModel()> model; // that runs now
    const std::string task; // what the engine runs for: "serve", "generate", "run quickstart, variant sjf, repeat 3"
    const std::string version;
    std::function<void()> drain;
    std::function<HttpResponse()> metrics_text;
    // What was changed, in words: a swap that was not refused, a setting. May be empty. [any thread]
    std::function<void(const std::string&)> on_change{};
    ModelReplacement* replacement = nullptr; // null: a model that needs a new engine is refused
};

class Admin {
  public:
    static Result<std::unique_ptr<Admin>> start(AdminOptions, Controlled);
    ~Admin(); // stop()
    AdminAddress address() const; // with the port that was chosen
    // Swaps that are not settled are answered so; ends when all answers are sent.
    void stop();

  private:
    Admin(AdminOptions, Controlled, host::Registry);
    std::vector<Route> routes();

    void status(const std::shared_ptr<Exchange>&);
    void plugins(const std::shared_ptr<Exchange>&);
    void swap(const std::shared_ptr<Exchange>&);
    void set(const std::shared_ptr<Exchange>&);
    void reload(const std::shared_ptr<Exchange>&);
    void drain(const std::shared_ptr<Exchange>&);
    std::shared_ptr<const host::Registry> registry() const;
    // Looks for plugins again; what there was before.
    Result<std::shared_ptr<const host::Registry>> find_again();
    Result<> watch_folders();
    void on_file(const std::filesystem::path&, int stop); // that has appeared in one of them
    void adopt(const NewBuild&);
    void note(const char* verb, const ReadSwap&) const; // for controlled_.on_change
    void keep(engine::SwapSlot, const host::Settings&) const;

    const AdminOptions options_;
    const Controlled controlled_;
    Routes routes_;
    LiveSwaps swaps_;
    mutable std::mutex mutex_;
    std::shared_ptr<const host::Registry> registry_; // under the mutex
    NewBuilds new_builds_;
    std::unique_ptr<HttpServer> http_;
    std::unique_ptr<FolderWatch> watch_; // null: folders are not watched
};

}  // namespace patchbay::serve
