#include "core/unexpanded_path.h"

#include "catch.h"

using namespace bamtrain;

namespace {

/// The message with which a path is refused; "" if it is accepted.
std::string path_refusal(const std::string& path) {
  try {
    require_expanded_path(path, ExitCode::config, "out_dir");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::config);
    CHECK(e.where() == "out_dir");
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a path that a shell was to replace is refused with what it is") {
  for (const char* path : {"~", "~/runs", "~user/runs"}) {
    INFO(path);
    CHECK(path_refusal(path).find("which only a shell expands, found \"" + std::string(path)) !=
          std::string::npos);
  }
  for (const char* path : {"$HOME/runs", "out/${NAME}", "out/$(date)", "a$$_b", "out/run-$SEED"}) {
    INFO(path);
    CHECK(path_refusal(path).find("a path without variables") != std::string::npos);
  }
  CHECK(path_refusal("out/run-$SEED/a").find("in place of $SEED/a") != std::string::npos);
  for (const char* path : {"s3://bucket/runs", "gs://b", "file:///tmp/x", "hdfs+x.y-z://h"}) {
    INFO(path);
    CHECK(path_refusal(path).find("not a URL") != std::string::npos);
  }
}

TEST_CASE("a path that only looks like one of a shell's is taken") {
  for (const char* path :
       {"out", "/tmp/a~", "./~", "./~/runs", "a/~/b", "price$", "a$1", "$", "a$/b", "a:b", "://x",
        "1a://x", "a b://c", "out//x", "http:/x", "-s://x"}) {
    INFO(path);
    CHECK(path_refusal(path).empty());
  }
}
