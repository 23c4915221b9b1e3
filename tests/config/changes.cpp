#include "config/changes.h"

#include <nlohmann/json.hpp>

#include "fixture.h"

using bamtrain::changed_keys;
using bamtrain::keys_refused_on_resume;
using bamtrain::resolved_json;
using nlohmann::json;
using Names = std::vector<std::string>;

namespace {

Names refused(const Names& overrides, const Names& allow_change = {}) {
  return keys_refused_on_resume(resolved_json(valid_with({"data.val=v"})),
                                resolved_json(valid_with(overrides)), allow_change);
}

}  // namespace

TEST_CASE("changed keys are named by their paths") {
  const json a = {{"x", 1}, {"y", {{"z", "s"}, {"w", {1, 2}}}}};
  CHECK(changed_keys(a, a).empty());
  CHECK(changed_keys(a, {{"x", 2}, {"y", {{"z", "s"}, {"w", {1, 3}}}}}) == Names{"x", "y.w"});
  CHECK(changed_keys(a, {{"x", 1}, {"v", 0}}) == Names{"v", "y.w", "y.z"});
  CHECK(changed_keys({{"m", json::object()}}, {{"m", {{"prior", 0.5}}}}) == Names{"m.prior"});
  CHECK(changed_keys({{"n", nullptr}}, {{"n", 0}}) == Names{"n"});
}

TEST_CASE("a change of prior shows its name and its options") {
  const json a = resolved_json(valid_with({}));
  const json b = resolved_json(valid_with({"model.attention.prior=rope"}));
  CHECK(changed_keys(a, b) ==
        Names{"model.attention.prior.decay", "model.attention.prior.eval_positions",
              "model.attention.prior.factor", "model.attention.prior.init",
              "model.attention.prior.name", "model.attention.prior.original_length",
              "model.attention.prior.randomized", "model.attention.prior.randomized_draw",
              "model.attention.prior.randomized_length", "model.attention.prior.scaling",
              "model.attention.prior.share", "model.attention.prior.theta",
              "model.attention.prior.train"});
}

TEST_CASE("a resumed run may change paths, device, eval, samples, log, checkpoint and its end") {
  CHECK(refused({"data.val=v"}).empty());
  CHECK(refused({"out_dir=elsewhere", "data.train=moved", "data.val=moved", "device=cpu", "name=x",
                 "eval.every=2", "eval.lengths=[16]", "log.every=7", "checkpoint.every=3",
                 "checkpoint.resume=never", "checkpoint.allow_change=[\"seed\"]", "train.stop_at=5",
                 "train.recompute=block"})
            .empty());
  CHECK(refused({"sample.prompts=[\"a\"]", "sample.every=2", "sample.tokenizer=t",
                 "sample.max_tokens=9", "sample.temperature=0", "sample.top_k=3",
                 "sample.top_p=0.5", "sample.min_p=0.1"})
            .empty());
}

TEST_CASE("a run from another's weights may leave open what it has of their length") {
  const std::vector<std::string> rope = {"model.attention.prior={\"name\":\"rope_local\"}"};
  std::vector<std::string> spelt = rope, other = rope;
  spelt.emplace_back("model.attention.prior.window=17");
  other.emplace_back("model.attention.prior.window=18");
  const json now = resolved_json(valid_with(rope));
  json before = resolved_json(valid_with(spelt));
  CHECK(keys_refused_on_resume(before, now, {}) == Names{"model.attention.prior.window"});
  before["init_from"]["folder"] = "f";
  CHECK(keys_refused_on_resume(before, now, {}).empty());
  CHECK(keys_refused_on_resume(before, resolved_json(valid_with(other)), {}) ==
        Names{"model.attention.prior.window"});
}

TEST_CASE("the id that begins a document is the run's where its documents are masked") {
  const std::string mask = "model.attention.document_mask=true", start = "data.document_start=5";
  const auto refused_between = [](const Names& before, const Names& now) {
    return keys_refused_on_resume(resolved_json(valid_with(before)), resolved_json(valid_with(now)),
                                  {});
  };
  CHECK(refused_between({}, {start}).empty());
  CHECK(refused_between({start}, {}).empty());
  CHECK(refused_between({mask}, {mask, start}) == Names{"data.document_start"});
  CHECK(refused_between({mask, start}, {start}) == Names{"model.attention.document_mask"});
}

TEST_CASE("a resumed run may change nothing else") {
  CHECK(refused({"model.tied=true"}) == Names{"model.tied"});
  CHECK(refused({"seed=3", "train.steps=20", "optimizer.lr=1"}) ==
        Names{"optimizer.lr", "seed", "train.steps"});
  CHECK(refused({"data.sequence_length=8", "data.shuffle=false", "train.lanes=4"}) ==
        Names{"data.sequence_length", "data.shuffle", "train.lanes"});
  CHECK(refused({"train.precision=bf16"}) == Names{"train.precision"});
  CHECK(refused({"train.reduction=library"}) == Names{"train.reduction"});
  CHECK(refused({"optimizer.lr_multipliers.prior=2"}) == Names{"optimizer.lr_multipliers.prior"});
  CHECK(refused({"model.attention.prior.share=true"}) == Names{"model.attention.prior.share"});
}

TEST_CASE("a key that only the earlier run knows is refused") {
  const json now = resolved_json(valid_with({}));
  json before = now;
  before["model"]["dropout"] = 0.1;
  CHECK(keys_refused_on_resume(before, now, {}) == Names{"model.dropout"});
  CHECK(keys_refused_on_resume(before, now, {"model.dropout"}).empty());
}

TEST_CASE("a key that the earlier run did not know yet may be there, at its default alone") {
  const json now = resolved_json(valid_with({}));
  json before = now;
  before["train"].erase("reduction");
  before["data"].erase("shuffle");
  before["data"].erase("verify");
  CHECK(keys_refused_on_resume(before, now, {}).empty());
  CHECK(keys_refused_on_resume(before, resolved_json(valid_with({"train.reduction=library"})),
                               {}) == Names{"train.reduction"});
  before["train"].erase("steps");  // a required key: every earlier run had it
  CHECK(keys_refused_on_resume(before, now, {}) == Names{"train.steps"});
}

TEST_CASE("an option that the earlier run's prior did not have yet may be there, at its default") {
  const json now = resolved_json(valid_with({"model.attention.prior=rope"}));
  json before = now;
  before["model"]["attention"]["prior"].erase("scaling");
  before["model"]["attention"]["prior"].erase("factor");
  CHECK(keys_refused_on_resume(before, now, {}).empty());
  const json scaled = resolved_json(
      valid_with({"model.attention.prior=rope", "model.attention.prior.scaling=linear",
                  "model.attention.prior.factor=2"}));
  CHECK(keys_refused_on_resume(before, scaled, {}) ==
        Names{"model.attention.prior.factor", "model.attention.prior.scaling"});
}

TEST_CASE("multipliers of what is not trained may go, which earlier programs took") {
  const auto gone = [](const json& multipliers, const Names& overrides) {
    const json now = resolved_json(valid_with(overrides));
    json before = now;
    before["optimizer"]["lr_multipliers"] = multipliers;
    return keys_refused_on_resume(before, now, {});
  };
  CHECK(gone({{"theta_mu", 2}}, {}).empty());
  CHECK(gone({{"theta_mu", 2}, {"theta_beta", 3}, {"s", 4}}, {}) ==
        Names{"optimizer.lr_multipliers.s", "optimizer.lr_multipliers.theta_beta"});
  CHECK(gone({{"theta_mu", 2}}, {"model.attention.prior.train=[\"theta_mu\"]"}) ==
        Names{"optimizer.lr_multipliers.theta_mu"});
  const Names rope = {"model.attention.prior=rope", "optimizer.lr_multipliers.s=3"};
  CHECK(gone({{"prior", 2}, {"s", 3}}, rope).empty());
  CHECK(gone({{"prior", 2}, {"s", 4}}, rope) == Names{"optimizer.lr_multipliers.s"});
}

TEST_CASE("what allow_change names may change, a group with all below it") {
  CHECK(refused({"optimizer.lr=1"}, {"optimizer.lr"}).empty());
  CHECK(refused({"optimizer.lr=1", "seed=2"}, {"optimizer"}) == Names{"seed"});
  CHECK(refused({"model.attention.prior=rope"}, {"model.attention.prior"}).empty());
  // A prefix of a name is not a group.
  CHECK(refused({"train.steps=20"}, {"train.step"}) == Names{"train.steps"});
}
