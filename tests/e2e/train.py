"""A training loop that knows nothing of Joulediff: python train.py OPTIMIZER [ITERATIONS].

OPTIMIZER: loop, foreach or fused, the three forms of AdamW. On the GPU where there is one.
"""

import sys

import torch


def main(form, iterations):
    from transformers import GPT2Config, GPT2LMHeadModel

    device = "cuda" if torch.cuda.is_available() else "cpu"
    wide = device == "cuda"
    torch.manual_seed(0)
    config = GPT2Config(n_layer=4 if wide else 2, n_head=12 if wide else 2,
                        n_embd=768 if wide else 64, vocab_size=512, n_positions=256,
                        bos_token_id=0, eos_token_id=0,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config).to(device).train()
    tokens = torch.randint(0, 512, (8, 256) if wide else (2, 32)).to(device)
    how = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **how[form])
    for _ in range(iterations):
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40)
