// A folder for the files of one test, with the manifests of a few plugins in it.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "config/load.hpp"
#include "host/registry.hpp"

namespace patchbay::config {

class ConfigFiles : public ::testing::Test {
  protected:
    ConfigFiles();
    ~ConfigFiles() override;

    // Writes a file; names in errors are relative to the folder, which is the current directory.
    std::string write(const std::string& name, const std::string& text) const;
    void make_model(const std::string& folder) const;
    // The error of load_engine_config for a text, or "".
    std::string fault_of(const std::string& text, const Overrides& = {}) const;
    Loaded load(const std::string& text, const Overrides& = {}) const; // fails the test on a fault

    // fcfs, sjf {ageing: float, first: enum, name: string}, needy {must: int}, standard, paged, cpu, ngram {n: int},
    // llama
    const host::Registry& registry() const { return *registry_; }

  private:
    std::filesystem::path folder_, before_;
    std::unique_ptr<host::Registry> registry_;
};

}  // namespace patchbay::config
