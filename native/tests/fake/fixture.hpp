// A fake in its default state before and after each test; checks that the test leaks nothing.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "fake/fake.hpp"

namespace waywiser::test {

class OnFake : public ::testing::Test {
protected:
    OnFake() {
        setenv("WAYWISER_POLICY", "off", 0);  // not a policy of whoever runs the tests
        fake::reset();
    }

public:
    ~OnFake() override {
        fake::reset();
        EXPECT_EQ(fake::live(), fake::Live{}) << "something outlived the test";
    }
    OnFake(const OnFake&) = delete;
    OnFake& operator=(const OnFake&) = delete;
};

}  // namespace waywiser::test
