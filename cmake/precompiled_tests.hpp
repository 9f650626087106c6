// The same of tests.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "precompiled.hpp"
