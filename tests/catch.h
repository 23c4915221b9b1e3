#pragma once
// Headers differ between Catch2 2.13 (Debian 12) and 3.x (Debian 13). The rest of what the tests
// use is the same in both.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
