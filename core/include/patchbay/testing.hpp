// patchbay/testing.hpp - for the tests of a plugin's author: a host that is not there, one class a kind that calls a
// plugin as the engine would, and the checks of the kind. With GoogleTest, or with a plain main() and expect(). What
// goes wrong is thrown as patchbay::Error or std::runtime_error. docs/plugins/testing.md has examples.
#pragma once
#include "patchbay/testing/attention.hpp"
#include "patchbay/testing/checks.hpp"
#include "patchbay/testing/component.hpp"
#include "patchbay/testing/device.hpp"
#include "patchbay/testing/expect.hpp"
#include "patchbay/testing/host.hpp"
#include "patchbay/testing/kv_policy.hpp"
#include "patchbay/testing/model.hpp"
#include "patchbay/testing/plugin.hpp"
#include "patchbay/testing/proposer.hpp"
#include "patchbay/testing/sampler.hpp"
#include "patchbay/testing/scheduler.hpp"
