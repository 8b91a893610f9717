// A GPT-2: its weights, a cache of keys and values, and one step of it.
#pragma once

#include <string>
#include <vector>

#include "operators.h"
#include "safetensors.h"

namespace engine {

// The same work done worse, so that there is something to find.
enum class Wasteful {
  nothing,
  gelu,       // in eight pieces
  transpose,  // linear layers turn their weights round at each call
  no_cache,   // every token computes those before it again
};

class Model {
 public:
  // Throws FileError. `heads` 0: what the file says, else heads of 64.
  Model(const Safetensors& file, int heads, Wasteful wasteful, const Recorder& recorder);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  int vocabulary() const { return wte_.rows; }
  int longest() const { return wpe_.rows; }
  // The `count` most likely tokens after the prompt, one by one.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt, int count);

 private:
  struct Norm {
    Matrix weight, bias;
  };
  struct Linear {
    Matrix weight, bias;
  };
  struct Layer {
    Norm before_attention, before_mlp;
    Linear qkv, attention_out, up, down;
    Matrix keys, values;  // of every position so far
  };

  Matrix weight(const std::string& name, int rows, int columns);
  Linear linear_weights(const std::string& name, int in, int out);
  Norm norm_weights(const std::string& name);
  Matrix matrix(int rows, int columns);

  // The token after `tokens`, the first of which is at `position`.
  void forward(const Scope& scope, Tokens next, Tokens tokens, int position);
  void attention(const Scope& scope, Layer& layer, Matrix x, int position);
  void mlp(const Scope& scope, const Layer& layer, Matrix x);
  void linear(const Scope& scope, Matrix out, Matrix x, const Linear& linear,
              std::source_location at = std::source_location::current());
  void gelu(const Scope& scope, Matrix x);
  int heads_of(const Safetensors& file) const;

  const Safetensors& file_;
  const Operators ops_;
  const Wasteful wasteful_;
  int width_ = 0, heads_ = 0;
  std::vector<void*> memory_;
  Matrix wte_, wpe_;
  std::vector<Layer> layers_;
  Norm last_norm_;
  // What a step computes in.
  Tokens tokens_;
  Matrix hidden_, normed_, qkv_, mixed_, inner_, projected_, logits_, turned_, piece_, other_piece_;
};

}  // namespace engine
