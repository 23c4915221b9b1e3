// Values that are valid alone but not together.

#include "config/validate.h"
#include "fixture.h"

TEST_CASE("heads divide the width, and the remedy does too") {
  check_mentions(message(kValid, {"model.heads=5"}),
                 {"model.heads:", "a divisor of model.width = 48", "found 5", "use 4 or 6"});
  check_mentions(message(kValid, {"model.heads=100"}), {"model.heads:", "use 48,"});
  CHECK(message(kValid, {"model.heads=6"}).empty());
  check_mentions(message(kValid, {"model.heads=5"}), {"set model.head_dim"});
}

TEST_CASE("heads of a width of their own need not divide the model's") {
  const auto c = valid_with({"model.heads=5", "model.head_dim=7"});
  CHECK(c.model.head_dim() == 7);
  CHECK(valid_with({}).model.head_dim() == 12);
  check_mentions(message(kValid, {"model.head_dim=7", "model.attention.prior=rope"}),
                 {"even head dimension", "found 7", "set model.head_dim"});
  check_mentions(message(kValid, {"model.head_dim=-1"}),
                 {"model.head_dim:", "found the number -1"});
  check_mentions(message(kValid, {"model.heads=5", "model.head_dim=7", "model.kv_heads=2"}),
                 {"model.kv_heads:", "a divisor of model.heads = 5"});
}

TEST_CASE("key and value heads divide the heads") {
  check_mentions(message(kValid, {"model.kv_heads=3"}),
                 {"model.kv_heads:", "a divisor of model.heads = 4", "found 3", "use 2 or 4"});
  check_mentions(message(kValid, {"model.kv_heads=8"}), {"model.kv_heads:", "found 8", "use 4,"});
  CHECK(valid_with({"model.kv_heads=2"}).model.kv_heads == 2);
}

TEST_CASE("bidirectional attention: what has no formula for it and next tokens are refused") {
  const std::string both = "model.attention.causal=false", prior = "model.attention.prior=";
  check_mentions(message(kValid, {both, prior + "cope"}),
                 {"model.attention.prior: expected a bidirectional prior", "found \"cope\"",
                  "choose another, or remove model.attention.causal"});
  check_mentions(message(kValid, {both, "model.attention.scale=none",
                                  "model.attention.normalizer=stick_breaking"}),
                 {"model.attention.normalizer: expected a bidirectional normalizer",
                  "found \"stick_breaking\"", "remove model.attention.causal"});
  check_mentions(message(kValid, {both}),
                 {"data.train: expected bidirectional tasks",
                  "where a position would see the token it has to predict", "name such tasks"});
  // An evaluation reads a training run's model config, not its data.
  using bamtrain::ConfigUse;
  CHECK_FALSE(valid_with({both}, ConfigUse::evaluation).model.attention.causal);
  const std::string alibi = prior + "{\"name\": \"alibi\", \"asymmetry\": ";
  check_mentions(message(kValid, {both, alibi + "2}"}),
                 {"model.attention.prior.asymmetry:", "found the number 2"});
  // In causal attention the option would have no effect.
  check_mentions(
      message(kValid, {alibi + "0}"}),
      {"model.attention.prior.asymmetry: expected its default: causal attention does not use it"});
  const auto c = valid_with({both, alibi + "0}"}, ConfigUse::evaluation);
  CHECK(c.model.attention.prior.of(0).options.number("asymmetry") == 0);
}

TEST_CASE("rope needs an even head dimension") {
  check_mentions(message(kValid, {"model.heads=16", "model.attention.prior=rope"}),
                 {"--set model.attention.prior=rope: expected", "even head dimension", "found 3",
                  "change model.width"});
  CHECK(message(kValid, {"model.heads=16"}).empty());
}

TEST_CASE("a scale for evaluation only is refused in training, with what to do instead") {
  const std::vector<std::string> entropy = {"model.attention.scale=entropy"};
  check_mentions(message(kValid, entropy),
                 {"--set model.attention.scale=entropy:", "a scale that trains",
                  "\"entropy\", for evaluation only", "train with another scale",
                  "bamtrain eval --set model.attention.scale=entropy"});
  const auto c = valid_with(entropy, bamtrain::ConfigUse::evaluation);
  CHECK(c.model.attention.scale.name() == "entropy");
  // If the file has options of the old scale, the override that names another scale is at fault.
  const std::string options =
      replaced("{\"name\": \"ssmax\"}", "{\"name\": \"ssmax\", \"offset\": 1}");
  check_mentions(message(options, {"model.attention.scale.name=entropy"}),
                 {"--set model.attention.scale.name=entropy: model.attention.scale.offset:",
                  "--set model.attention.scale=entropy replaces the whole object"});
  // Other errors are refused for evaluation too.
  CHECK_THROWS_AS(valid_with({"model.heads=5"}, bamtrain::ConfigUse::evaluation), bamtrain::Error);
  check_mentions(
      message(kValid, {"model.attention.scale={\"name\":\"entropy\",\"scale_bias\":\"false\"}"}),
      {"entropy has no option \"scale_bias\" (an option of ssmax"});
  check_mentions(message(kValid, {"model.attention.scale={\"name\":\"adaptive\",\"g\":-1}"}),
                 {"model.attention.scale.g:", "from 0 to 10", "found the number -1"});
  CHECK(message(kValid, {"model.attention.scale={\"name\":\"adaptive\",\"bias\":true}",
                         "optimizer.lr_multipliers={\"beta_bias\":0.5,\"gamma_weight\":2}"})
            .empty());
}

TEST_CASE("sequences fit into a learned table of positions") {
  const std::string prior = "model.attention.prior={\"name\":\"learned\",\"positions\":";
  check_mentions(
      message(kValid, {prior + "15}"}),
      {"model.attention.prior.positions", "data.sequence_length = 16", "found 15", "raise it"});
  CHECK(message(kValid, {prior + "16}"}).empty());
  check_mentions(message(kValid, {prior + "20}", "data.val=v", "eval.lengths=[16,21]"}),
                 {"eval.lengths:", "the 20 positions", "\"learned\"", "found 21", "remove"});
  check_mentions(message(kValid, {prior + "0}", "data.val=v", "eval.lengths=[17]"}),
                 {"eval.lengths:", "the 16 positions"});
  CHECK(message(kValid, {prior + "20}", "data.val=v", "eval.lengths=[16,20]"}).empty());
  CHECK(message(kValid, {"data.val=v", "eval.lengths=[4096]"}).empty());
}

TEST_CASE("a step is a whole number of micro-batches") {
  check_mentions(message(kValid, {"train.tokens_per_step=250"}),
                 {"train.tokens_per_step:", "train.micro_batch * data.sequence_length = 32",
                  "found 250", "use 224 or 256"});
  check_mentions(message(kValid, {"train.tokens_per_step=8"}),
                 {"train.tokens_per_step:", "found 8", "use 32,"});
}

TEST_CASE("lanes default to the largest power of two up to 8 that divides the micro-batches") {
  // Microbatches per step, and the default number of lanes.
  const std::vector<std::pair<int, int>> expected = {{1, 1}, {2, 2},  {3, 1},  {4, 4},  {6, 2},
                                                     {8, 8}, {12, 4}, {16, 8}, {24, 8}, {72, 8}};
  for (const auto& [micro_batches, lanes] : expected) {
    INFO(micro_batches << " micro-batches");
    const std::string tokens = std::to_string(32 * micro_batches);
    CHECK(valid_with({"train.tokens_per_step=" + tokens}).train.lanes == lanes);
  }
  CHECK(valid_with({"train.tokens_per_step=512", "train.lanes=16"}).train.lanes == 16);
  CHECK(valid_with({"train.lanes=1"}).train.lanes == 1);
}

TEST_CASE("lanes that do not divide the micro-batches are refused") {
  check_mentions(
      message(kValid, {"train.lanes=3"}),
      {"train.lanes:", "a divisor of the 8 micro-batches", "found 3", "use 2 or 4, or 0"});
  check_mentions(message(kValid, {"train.lanes=16"}), {"train.lanes:", "found 16", "use 8, or 0"});
  check_mentions(message(kValid, {"train.tokens_per_step=96", "train.lanes=2"}),
                 {"train.lanes:", "the 3 micro-batches", "use 1 or 3,"});
}

TEST_CASE("warm-up, stop and decay lie within the steps") {
  check_mentions(message(kValid, {"schedule.warmup_steps=11"}),
                 {"schedule.warmup_steps:", "at most train.steps = 10", "found 11", "raise"});
  CHECK(message(kValid, {"schedule.warmup_steps=10"}).empty());
  check_mentions(message(kValid, {"train.stop_at=11"}),
                 {"train.stop_at:", "at most train.steps = 10", "found 11", "lower it"});
  CHECK(message(kValid, {"train.stop_at=10"}).empty());
  check_mentions(
      message(kValid, {"schedule.name=wsd", "schedule.warmup_steps=4", "schedule.decay_steps=7"}),
      {"schedule.decay_steps:", "from 1 to", "= 6", "found 7"});
  check_mentions(message(kValid, {"schedule.name=wsd"}), {"schedule.decay_steps:", "found 0"});
  CHECK(message(kValid, {"schedule.name=wsd", "schedule.warmup_steps=4", "schedule.decay_steps=6"})
            .empty());
  // A warm-up past the last step gets wsd's limit at once, not first the limit of other schedules.
  for (const std::string steps : {"10", "11"}) {
    const std::string warmup = "schedule.warmup_steps=" + steps, found = "found " + steps;
    const std::string what = "--set " + warmup + ":";
    check_mentions(message(kValid, {"schedule.name=wsd", warmup, "schedule.decay_steps=1"}),
                   {what.c_str(), "at most train.steps - 1 = 9 with the wsd schedule",
                    found.c_str(), "shorten the warm-up or raise train.steps"});
  }
  CHECK(message(kValid, {"schedule.name=wsd", "schedule.warmup_steps=9", "schedule.decay_steps=1"})
            .empty());
}

TEST_CASE("an undefined combination is refused by name") {
  check_mentions(message(kValid, {"schedule.decay_steps=3"}),
                 {"schedule.decay_steps:", "schedule.name is \"wsd\"", "found 3", "remove it"});
  check_mentions(message(kValid, {"eval.every=5"}),
                 {"data.val:", "shards or a task for the validation that eval asks for",
                  "found an empty value", "set data.val"});
  check_mentions(message(kValid, {"eval.lengths=[16]"}), {"data.val:"});
  const std::vector<std::string> targets = {"data.val=v", "eval.length_tokens=100"};
  check_mentions(message(kValid, targets), {"eval.length_tokens:", "0 or null without eval.lengths",
                                            "found 100", "set eval.lengths, or remove it"});
  CHECK(valid_with(targets, bamtrain::ConfigUse::evaluation).eval.length_tokens == 100);
  CHECK(message(kValid, {"eval.length_tokens=0"}).empty());
  CHECK(message(kValid, {targets[0], targets[1], "eval.lengths=[16]"}).empty());
  for (const char* of_samples : {"sample.every=5", "sample.tokenizer=t"}) {
    check_mentions(message(kValid, {of_samples}),
                   {"sample.prompts:", "a prompt", "found an empty list"});
    CHECK(message(kValid, {of_samples, "sample.prompts=[\"\"]"}).empty());
  }
  check_mentions(message(kValid, {"checkpoint.keep_every=4"}),
                 {"checkpoint.keep_every:", "checkpoint.every = 0", "set checkpoint.every"});
  check_mentions(message(kValid, {"checkpoint.keep_every=4", "checkpoint.every=3"}),
                 {"checkpoint.keep_every:", "a multiple of checkpoint.every = 3", "found 4"});
  check_mentions(message(kValid, {"eval.tokens=15", "data.val=v"}),
                 {"eval.tokens:", "data.sequence_length = 16", "found 15", "raise it"});
}

TEST_CASE("random positions suffice for the sequence and for the evaluation") {
  const std::string rope = "model.attention.prior={\"name\":\"rope\",\"randomized\":true}";
  const auto length = [](int n) {
    return "model.attention.prior.randomized_length=" + std::to_string(n);
  };
  CHECK(message(kValid, {rope}).empty());
  CHECK(message(kValid, {rope, length(16)}).empty());
  check_mentions(message(kValid, {rope, length(15)}),
                 {"model.attention.prior.randomized_length:",
                  "0 or at least data.sequence_length = 16", "found 15", "raise it"});
  check_mentions(message(kValid, {rope, length(32), "model.attention.prior.randomized=false"}),
                 {"model.attention.prior.randomized_length:", "0 unless positions are randomized",
                  "found 32", "set model.attention.prior.randomized"});
  CHECK(message(kValid, {rope, "data.val=v", "eval.lengths=[64]"}).empty());
  check_mentions(message(kValid, {rope, "data.val=v", "eval.lengths=[64,65]"}),
                 {"eval.lengths:", "up to the 64 positions of the \"rope\" prior", "found 65",
                  "raise model.attention.prior.randomized_length"});
  CHECK(message(kValid, {rope, length(65), "data.val=v", "eval.lengths=[65]"}).empty());
  check_mentions(message(kValid, {"model.attention.prior={\"name\":\"bam\",\"randomized\":true}"}),
                 {"model.attention.prior.randomized:", "(an option of alibi"});
}

TEST_CASE("what is random is drawn in one way, and says nothing where nothing is") {
  const auto prior = [](const std::string& name, const std::string& options) {
    return "model.attention.prior={\"name\":\"" + name + "\"" + options + "}";
  };
  const std::string random = ",\"randomized\":true";
  for (const char* name :
       {"rope", "rope_local", "learned", "sinusoidal", "alibi", "transformer_xl"}) {
    INFO(name);
    CHECK(message(kValid, {prior(name, random)}).empty());
    CHECK(message(kValid, {prior(name, random + ",\"eval_positions\":\"drawn\"")}).empty());
    check_mentions(message(kValid, {prior(name, ",\"eval_positions\":\"drawn\"")}),
                   {"model.attention.prior.eval_positions:",
                    "counted unless positions are randomized", "found drawn"});
    check_mentions(message(kValid, {prior(name, random + ",\"randomized_length\":15")}),
                   {"randomized_length:", "at least data.sequence_length = 16"});
    check_mentions(message(kValid, {prior(name, random + ",\"eval_positions\":\"drawn\""),
                                    "data.val=v", "eval.lengths=[16]"}),
                   {"eval_positions", "\"counted\" with eval.lengths"});
  }
  const std::string step = ",\"randomized_draw\":\"step\"";
  for (const char* name : {"rope", "learned", "sinusoidal"}) {
    CHECK(message(kValid, {prior(name, random + step)}).empty());
    check_mentions(message(kValid, {prior(name, step)}),
                   {"randomized_draw:", "sequence unless positions are randomized"});
  }
  // alibi has no such option: a step's sequences share its positions.
  check_mentions(message(kValid, {prior("alibi", random + step)}), {"randomized_draw:"});
  // The table needs a row for every position.
  check_mentions(message(kValid, {prior("learned", random + ",\"positions\":20")}),
                 {"positions:", "randomized_length = 64 rows", "found 20"});
  CHECK(message(kValid, {prior("learned", random + ",\"positions\":64")}).empty());
  check_mentions(
      message(kValid, {prior("learned", random), "data.val=v", "eval.lengths=[65]"}),
      {"eval.lengths:", "up to the 64 positions", "raise model.attention.prior.randomized_length"});
  // A bias by distance may be evaluated at longer lengths.
  CHECK(message(kValid, {prior("alibi", random), "data.val=v", "eval.lengths=[65]"}).empty());
  const auto two = [&](const std::string& a, const std::string& b) {
    return message(kValid, {"model.attention.prior=[{\"name\":" + a + random + "},{\"name\":" + b +
                            random + "}]"});
  };
  CHECK(two("\"rope\"", "\"rope\",\"theta\":7").empty());
  CHECK(two("\"alibi\"", "\"transformer_xl\"").empty());
  check_mentions(two("\"rope\"", "\"alibi\""), {"model.attention.prior[1]", "prior[0]"});
  check_mentions(two("\"rope\"", "\"rope\"" + step), {"model.attention.prior[1]", "prior[0]"});
}

TEST_CASE("the token that begins a document is in the vocabulary") {
  check_mentions(message(kValid, {"data.document_start=96"}),
                 {"data.document_start:", "below model.vocab = 96", "found 96"});
  CHECK(valid_with({"data.document_start=95"}).data.document_start == 95);
}

TEST_CASE("learning rates are multiplied for parameters that exist") {
  const auto c = valid_with({"optimizer.lr_multipliers={\"prior\":0.1,\"theta_alpha\":2,\"s\":3}"});
  CHECK(c.optimizer.lr_multipliers ==
        std::map<std::string, double>{{"prior", 0.1}, {"s", 3.0}, {"theta_alpha", 2.0}});
  check_mentions(message(kValid, {"optimizer.lr_multipliers.theta_alfa=1"}),
                 {"optimizer.lr_multipliers.theta_alfa:", "prior, scale, theta_alpha",
                  "did you mean theta_alpha?"});
  check_mentions(
      message(kValid, {"optimizer.lr_multipliers.theta_alpha=1", "model.attention.prior=rope"}),
      {"optimizer.lr_multipliers.theta_alpha:", "expected one of scale, s, found"});
}

TEST_CASE("learning rates are multiplied by names that the optimizer honours, and no others") {
  const auto refusal = [](const char* name, const char* prior, const char* scale) {
    return message(kValid, {std::string("optimizer.lr_multipliers={\"") + name + "\":3}",
                            std::string("model.attention.prior=") + prior,
                            std::string("model.attention.scale=") + scale});
  };
  // The learned table is part of the embedding.
  for (const char* name : {"prior", "weight"}) {
    check_mentions(refusal(name, "learned", "ssmax"), {"expected one of scale, s, found"});
  }
  // The group's name is known, although this model has no parameters in it.
  for (const char* prior : {"rope", "learned"}) {
    check_mentions(refusal("prior", prior, "ssmax"),
                   {"expected one of scale, s, found prior, but this model's prior has no trained "
                    "parameters; remove it"});
  }
  check_mentions(refusal("scale", "bam", "none"),
                 {"found scale, but this model's scale has no trained parameters"});
  for (const char* name : {"prior", "scale", "foo"}) {
    check_mentions(
        refusal(name, "nope", "none"),
        {"expected no names: no prior, scale or normalizer has trained parameters", "remove it"});
  }
  check_mentions(refusal("scale", "kerple", "none"), {"expected one of prior, r1, r2, found"});
  CHECK(refusal("prior", "kerple", "none").empty());
  CHECK(refusal("scale", "learned", "ssmax").empty());
}

TEST_CASE("the entropy scale is one of softmax") {
  const std::vector<std::string> entropy = {"model.attention.scale=entropy"};
  CHECK_NOTHROW(valid_with(entropy, bamtrain::ConfigUse::evaluation));
  for (const char* name : {"entmax", "topk"}) {
    try {
      valid_with({entropy[0], std::string("model.attention.normalizer=") + name},
                 bamtrain::ConfigUse::evaluation);
      FAIL("no error");
    } catch (const bamtrain::Error& e) {
      CHECK(e.code() == bamtrain::ExitCode::config);
      check_mentions(e.what(), {"--set model.attention.scale=entropy:", name, "softmax's entropy",
                                "choose another"});
    }
  }
}

TEST_CASE("normalizers take what is defined for them") {
  const std::string normalizer = "model.attention.normalizer";
  const auto topk = [&](const std::string& k) {
    return message(kValid, {normalizer + "=topk", normalizer + ".k=" + k});
  };
  const char* expected = "expected an integer from 1 to 1000000000 or \"n/2\"";
  check_mentions(topk("2.5"), {expected, "write a whole number, or \"n/2\""});
  check_mentions(topk("n/3"), {expected, "write a whole number, or \"n/2\""});
  check_mentions(topk("\"32\""), {expected, "write it without the quotes"});
  check_mentions(topk("0"), {expected, "found the number 0"});
  check_mentions(message(kValid, {normalizer + "=topk", normalizer + ".of=sequence"}),
                 {"model.attention.normalizer.of: expected \"row\" unless "
                  "model.attention.normalizer.k is \"n/2\"",
                  "\"sequence\""});
  check_mentions(message(kValid, {normalizer + ".alpha=2"}),
                 {"--set model.attention.normalizer.alpha=2: model.attention.normalizer.name:",
                  "choose one first: --set model.attention.normalizer=NAME"});
  CHECK(message(kValid, {normalizer + "=entmax", normalizer + ".alpha=2"}).empty());
  check_mentions(message(kValid, {normalizer + "=stick_breaking"}),
                 {"model.attention.scale: expected \"none\" with stick_breaking", "\"ssmax\""});
  CHECK(message(kValid, {normalizer + "=stick_breaking", "model.attention.scale=none"}).empty());
  for (const char* alpha : {"1", "65"}) {
    check_mentions(message(kValid, {normalizer + "=entmax", normalizer + ".alpha=" + alpha}),
                   {"model.attention.normalizer.alpha", "from 1.001 to 64"});
  }
  check_mentions(message(kValid, {normalizer + "=topk", normalizer + ".k=0"}),
                 {"model.attention.normalizer.k", "n/2"});
  check_mentions(message(kValid, {normalizer + "=topk", normalizer + ".k=half"}),
                 {"model.attention.normalizer.k", "n/2"});
  check_mentions(message(kValid, {normalizer + "=entmax", normalizer + ".decay=true"}),
                 {"--set model.attention.normalizer.decay=true:",
                  "model.attention.normalizer.learned is false"});
  check_mentions(message(kValid, {normalizer + "=[\"entmax\",\"softmax\"]"}),
                 {"--set model.attention.normalizer=[", "all layers share one"});
  for (const char* k : {"1", "n/2"}) {
    CHECK(message(kValid, {normalizer + "=topk", normalizer + ".k=" + k}).empty());
  }
  check_mentions(message(kValid, {"optimizer.lr_multipliers.normalizer=2"}),
                 {"this model's normalizer has no trained parameters"});
  CHECK(message(kValid, {"optimizer.lr_multipliers.normalizer=2", normalizer + "=entmax",
                         normalizer + ".learned=true"})
            .empty());
}

TEST_CASE("learning rates are multiplied of what is trained") {
  const std::string rate = "optimizer.lr_multipliers.";
  check_mentions(message(kValid, {rate + "theta_mu=2"}),
                 {"--set optimizer.lr_multipliers.theta_mu=2:",
                  "trained: one of prior, scale, theta_alpha, theta_beta, s, found theta_mu",
                  "which is not trained", "remove it, or train it"});
  CHECK(
      message(kValid, {rate + "theta_mu=2", "model.attention.prior.train=[\"theta_mu\"]"}).empty());
  // In a list of priors, one layer that trains it is enough.
  const std::string trains = R"({"name":"bam","train":["theta_mu"]})";
  CHECK(message(kValid, {rate + "theta_mu=2", "model.attention.prior=[\"bam\"," + trains + "]"})
            .empty());
  const std::string sentmax = "model.attention.scale=sentmax",
                    fixed = "model.attention.scale.train_gamma=false";
  CHECK(message(kValid, {rate + "gamma=2", sentmax}).empty());
  check_mentions(message(kValid, {rate + "gamma=2", sentmax, fixed}),
                 {"optimizer.lr_multipliers.gamma:", "theta_beta, beta, found gamma"});
  CHECK(message(kValid, {rate + "scale=2", sentmax, fixed}).empty());
  // A group without trained parameters.
  const std::string none = "model.attention.prior.train=[]";
  check_mentions(message(kValid, {rate + "prior=2", none}),
                 {"one of scale, s, found prior, which is not trained"});
  check_mentions(message(kValid, {rate + "prior=2", none, "model.attention.scale=none"}),
                 {"expected a group or parameter that is trained, found prior"});
  // Runs of earlier programs that set it can still be evaluated.
  CHECK(valid_with({rate + "theta_mu=2"}, bamtrain::ConfigUse::evaluation)
            .optimizer.lr_multipliers.size() == 1);
}

TEST_CASE("an evaluation's prior need not go with what the training alone reads") {
  const auto check = [](const std::vector<std::string>& overrides, const std::string& key) {
    check_mentions(message(kValid, overrides), {key + ": expected"});
    CHECK_NOTHROW(valid_with(overrides, bamtrain::ConfigUse::evaluation));
  };
  const std::string alibi = "model.attention.prior=alibi";
  for (const char* name : {"theta_alpha", "prior"}) {
    const std::string key = std::string("optimizer.lr_multipliers.") + name;
    check({alibi, key + "=2"}, key);
  }
  check({alibi, "init_from.folder=x", "init_from.new=[\"theta_alpha\"]"}, "init_from.new");
  check({R"(model.attention.prior={"name":"rope","randomized":true,"randomized_length":16})",
         "data.val=v", "eval.lengths=[17]"},
        "eval.lengths");
}

TEST_CASE("lengths to evaluate see no more keys than a learned scale has entries") {
  const auto refusal = [](const std::string& lengths, int entries,
                          std::vector<std::string> more = {}) {
    more.insert(more.end(), {"model.attention.scale={\"name\":\"by_length\",\"lengths\":" +
                                 std::to_string(entries) + "}",
                             "data.val=v", "eval.lengths=" + lengths});
    return message(kValid, more);
  };
  CHECK(refusal("[16,32]", 32).empty());
  check_mentions(refusal("[16,33]", 32),
                 {"eval.lengths:", "at most 32 visible keys per row", "\"by_length\" scale",
                  "found 33", "raise model.attention.scale.lengths"});
  check_mentions(refusal("[17]", 0), {"at most 16 visible keys per row", "found 17"});
  // Keys hidden by a window in every layer need no entry.
  CHECK(refusal("[1000]", 32, {"model.attention.window=32"}).empty());
  check_mentions(refusal("[1000]", 32, {"model.attention.window=33"}),
                 {"at most 32", "found 1000"});
  CHECK(refusal("[1000]", 17, {"model.attention.prior=rope_local"}).empty());
  check_mentions(refusal("[1000]", 17, {"model.attention.prior=[\"rope_local\",\"nope\"]"}),
                 {"at most 17 visible keys per row", "found 1000"});
}

TEST_CASE("nape has a head with a bias") {
  check_mentions(message(kValid, {"model.heads=1", "model.attention.prior=nape"}),
                 {"model.heads:", "at least 2 for nape", "found 1"});
  CHECK(message(kValid, {"model.heads=2", "model.attention.prior=nape"}).empty());
}

TEST_CASE("keys allowed to change on resume are known keys") {
  CHECK(message(kValid, {"checkpoint.allow_change=[\"optimizer.lr\",\"schedule\","
                         "\"model.attention.prior.share\"]"})
            .empty());
  check_mentions(message(kValid, {"checkpoint.allow_change=[\"optimiser.lr\"]"}),
                 {"checkpoint.allow_change:", "\"optimiser.lr\"", "did you mean optimizer.lr?"});
  check_mentions(message(kValid, {"checkpoint.allow_change=[\"lr\"]"}),
                 {"checkpoint.allow_change:", "did you mean optimizer.lr?"});
  check_mentions(message(kValid, {"checkpoint.allow_change=[\"optimizer.lr.x\"]"}),
                 {"checkpoint.allow_change:", "did you mean optimizer.lr?"});
}

TEST_CASE("a struct filled by a program is checked like a file") {
  bamtrain::RunConfig c = valid_with({});
  CHECK_NOTHROW(bamtrain::validate(c));
  c.train.lanes = 0;
  c.model.kv_heads = 0;
  CHECK_NOTHROW(bamtrain::validate(c));
  const auto refusal = [](const bamtrain::RunConfig& config) -> std::string {
    try {
      bamtrain::validate(config);
    } catch (const bamtrain::Error& e) {
      return e.what();
    }
    return "";
  };
  bamtrain::RunConfig wide = c;
  wide.model.width = 50;
  CHECK(refusal(wide).find("model.heads: expected a divisor") == 0);
  bamtrain::RunConfig rate = c;
  rate.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal(rate).find("optimizer.lr: expected a number above 0") == 0);
  bamtrain::RunConfig decay = c;
  decay.optimizer.weight_decay = std::numeric_limits<double>::infinity();
  CHECK(refusal(decay).find("optimizer.weight_decay:") == 0);
  bamtrain::RunConfig prior = c;
  prior.model.attention.prior.pattern[0] = {};  // no prior chosen
  CHECK(refusal(prior).find("model.attention.prior") == 0);
  CHECK(refusal(bamtrain::RunConfig{}).find("out_dir:") == 0);
}

TEST_CASE("what a folder to start from has not is named by parameters of the prior and the scale") {
  const std::string folder = "init_from.folder=x";
  CHECK(message(kValid, {folder, "init_from.new=[\"prior\",\"theta_alpha\"]"}).empty());
  check_mentions(message(kValid, {folder, "init_from.new=[\"theta_alhpa\"]"}),
                 {"init_from.new", "one of prior, mix, scale, normalizer, theta_alpha",
                  "theta_alhpa", "did you mean theta_alpha?"});
  check_mentions(message(kValid, {"init_from.model_type=llama"}),
                 {"init_from.model_type", "without init_from.folder"});
  check_mentions(message(kValid, {"init_from.new=[\"prior\"]"}),
                 {"init_from.new", "no names without init_from.folder", "prior"});
}

TEST_CASE("moments to start from are of a folder, and of parameters that it has") {
  const std::string optimizer = "init_from.optimizer=true", folder = "init_from.folder=x";
  CHECK(message(kValid, {folder, optimizer}).empty());
  check_mentions(message(kValid, {optimizer}),
                 {"init_from.optimizer", "false without init_from.folder"});
  check_mentions(message(kValid, {folder, optimizer, "init_from.new=[\"prior\"]"}),
                 {"init_from.optimizer", "false with init_from.new", "remove these names"});
}
